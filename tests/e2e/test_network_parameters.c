// What ROS tools expect of a node: parameters, log levels and /rosout, asked in both dialects.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "net_peer.h"
#include "understudy/service.h"

enum { BYTES = 4096 };

static net_peer *p;

static void start(const char *network) {
    net_write_k10("k10.xml", network);
    p = net_open("cyclone");
    net_run("k10.xml --headless --quiet --rate 2");
    net_wait_until(p, 0.3);
}

static void end(void) {
    assert_int_equal(net_end(SIGINT), 0);
    net_close(p);
}

static bool has_fastdds(void) {
    net_peer *fast = net_open("fastdds");
    if (!fast) {
        print_message("skipped: the plug-in for Fast DDS is not built\n");
        return false;
    }
    net_close(fast);
    return true;
}

typedef struct line {
    us_client *client;
    const us_message_type *request, *response;
    _Alignas(16) uint8_t memory[4 * BYTES];
} line;

static void open_line(line *l, const char *name, const char *type, us_dialect dialect) {
    char full[300], half[300];
    snprintf(full, sizeof full, "/k10/driver/%s", name);
    snprintf(half, sizeof half, "rcl_interfaces/srv/%s_Request", type);
    l->request = us_message_find(half);
    snprintf(half, sizeof half, "rcl_interfaces/srv/%s_Response", type);
    l->response = us_message_find(half);
    assert_true(l->request && l->response);
    us_error err = {0};
    const us_client_def def = {full, l->request, l->response, -1, dialect};
    if (us_bus_add_client(net_bus(p), &def, &l->client, &err)) fail_msg("%s", err.message);
    NET_WAIT(us_client_is_ready(l->client));
}

// Asks until it is answered: the service may not have found us yet.
static const void *ask(line *l, const void *message) {
    uint8_t bytes[BYTES];
    size_t length = 0;
    int64_t number = 0, answered = 0;
    assert_int_equal(us_message_encode(l->request, message, bytes, sizeof bytes, &length), US_OK);
    const double until = net_clock() + NET_PATIENCE;
    for (double next = 0;;) {
        if (net_clock() > next) {
            assert_int_equal(us_client_ask(l->client, bytes, length, &number), US_OK);
            next = net_clock() + 2;
        }
        uint8_t reply[BYTES];
        size_t n = 0;
        assert_int_equal(us_client_take(l->client, reply, sizeof reply, &n, &answered), US_OK);
        const void *m = NULL;
        if (n > 0 && answered == number) {
            assert_int_equal(us_message_decode(l->response, reply, n, l->memory, sizeof l->memory, &m, NULL),
                             US_OK);
            return m;
        }
        if (net_clock() > until) net_fail("waited for", "an answer");
        net_nap();
    }
}

static void check_parameters(us_dialect dialect) {
    static line list, get, types, describe, set, set_all;
    open_line(&list, "list_parameters", "ListParameters", dialect);
    const us_msg_list_parameters_response *names = ask(&list, &(us_msg_list_parameters_request){.depth = 0});
    bool has_time = false;
    for (uint32_t i = 0; i < names->result.names._length; i++)
        has_time = has_time || strcmp(names->result.names._buffer[i], "use_sim_time") == 0;
    assert_true(has_time);
    char *asked[] = {usi_text("use_sim_time"), usi_text("cmd_vel_timeout"), usi_text("nonsense")};
    open_line(&get, "get_parameters", "GetParameters", dialect);
    const us_msg_get_parameters_response *values =
        ask(&get, &(us_msg_get_parameters_request){.names = {._length = 3, ._buffer = asked}});
    assert_int_equal(values->values._length, 3);
    assert_int_equal(values->values._buffer[0].type, 1);
    assert_true(values->values._buffer[0].bool_value);
    assert_int_equal(values->values._buffer[1].type, 3);
    assert_true(values->values._buffer[1].double_value == 0.5);
    assert_int_equal(values->values._buffer[2].type, 0);
    open_line(&types, "get_parameter_types", "GetParameterTypes", dialect);
    const us_msg_get_parameter_types_response *kinds =
        ask(&types, &(us_msg_get_parameter_types_request){.names = {._length = 3, ._buffer = asked}});
    assert_memory_equal(kinds->types._buffer, "\1\3\0", 3);
    open_line(&describe, "describe_parameters", "DescribeParameters", dialect);
    const us_msg_describe_parameters_response *texts =
        ask(&describe, &(us_msg_describe_parameters_request){.names = {._length = 1, ._buffer = asked}});
    assert_true(texts->descriptors._buffer[0].read_only);
    assert_int_equal(texts->descriptors._buffer[0].type, 1);
    us_msg_parameter wanted[] = {
        {.name = usi_text("use_sim_time"), .value = {.type = 1, .bool_value = true}},
        {.name = usi_text("use_sim_time"), .value = {.type = 1, .bool_value = false}},
        {.name = usi_text("use_sim_time"), .value = {.type = 2, .integer_value = 1}},
        {.name = usi_text("nonsense"), .value = {.type = 1}}};
    open_line(&set, "set_parameters", "SetParameters", dialect);
    const us_msg_set_parameters_response *results =
        ask(&set, &(us_msg_set_parameters_request){.parameters = {._length = 4, ._buffer = wanted}});
    assert_true(results->results._buffer[0].successful);
    assert_non_null(strstr(results->results._buffer[1].reason, "read-only"));
    assert_non_null(strstr(results->results._buffer[2].reason, "type"));
    assert_non_null(strstr(results->results._buffer[3].reason, "not declared"));
    for (int i = 1; i < 4; i++)
        assert_false(results->results._buffer[i].successful);
    open_line(&set_all, "set_parameters_atomically", "SetParametersAtomically", dialect);
    const us_msg_set_parameters_atomically_response *all =
        ask(&set_all,
            &(us_msg_set_parameters_atomically_request){.parameters = {._length = 2, ._buffer = wanted}});
    assert_false(all->result.successful);
    line *lines[] = {&list, &get, &types, &describe, &set, &set_all};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        us_client_remove(lines[i]->client);
}

static void tools_find_the_parameters_of_the_node(void **state) {
    (void)state;
    start("<network/>");
    check_parameters(US_DIALECT_CYCLONE);
    if (has_fastdds()) check_parameters(US_DIALECT_FASTDDS);
    end();
}

// How many lines of a level there are whose text has a part.
static int count_lines(int32_t ear, int level, const char *part) {
    int n = 0;
    for (int64_t i = 0; i < net_count(p, ear); i++) {
        const us_msg_log *m = net_decode(p, ear, i);
        assert_string_equal(m->name, "k10.driver");
        n += m->level == level && strstr(m->msg, part) != NULL;
    }
    return n;
}

static void the_log_is_on_rosout_as_loud_as_asked(void **state) {
    (void)state;
    start("<network/>");
    int32_t log = net_listen(p, "/rosout", usi_type_log);
    us_writer *writer = net_speak(p, "/k10/cmd_vel", usi_type_twist);
    // What was said before we came is kept; net_listen asks for no history, so a new line is waited for.
    const us_msg_twist too_fast = {.linear = {.x = 40}};
    NET_WAIT((net_say(writer, usi_type_twist, &too_fast), count_lines(log, 30, "cmd_vel") > 0));
    static line get, set;
    open_line(&get, "get_logger_levels", "GetLoggerLevels", US_DIALECT_CYCLONE);
    open_line(&set, "set_logger_levels", "SetLoggerLevels", US_DIALECT_CYCLONE);
    char *names[] = {usi_text("k10.driver"), usi_text("other")};
    const us_msg_get_logger_levels_response *levels =
        ask(&get, &(us_msg_get_logger_levels_request){.names = {._length = 2, ._buffer = names}});
    assert_int_equal(levels->levels._buffer[0].level, 20);
    assert_int_equal(levels->levels._buffer[1].level, 0);
    us_msg_logger_level wanted[] = {{.name = names[0], .level = 40}, {.name = names[1], .level = 40}};
    const us_msg_set_logger_levels_response *results =
        ask(&set, &(us_msg_set_logger_levels_request){.levels = {._length = 2, ._buffer = wanted}});
    assert_true(results->results._buffer[0].successful);
    assert_false(results->results._buffer[1].successful);
    levels = ask(&get, &(us_msg_get_logger_levels_request){.names = {._length = 1, ._buffer = names}});
    assert_int_equal(levels->levels._buffer[0].level, 40);
    // Warnings are no longer sent: more than a second passes, after which the same line would come again.
    const double from = net_time(p);
    const int n = count_lines(log, 30, "cmd_vel");
    while (net_time(p) < from + 3) {
        net_say(writer, usi_type_twist, &too_fast);
        net_nap();
    }
    assert_true(count_lines(log, 30, "cmd_vel") <= n + 1);
    us_client_remove(get.client);
    us_client_remove(set.client);
    us_writer_remove(writer);
    end();
}

static void the_same_line_comes_once_a_second(void **state) {
    (void)state;
    start("<network/>");
    int32_t log = net_listen(p, "/rosout", usi_type_log);
    us_writer *writer = net_speak(p, "/k10/cmd_vel", usi_type_twist);
    const us_msg_twist too_fast = {.linear = {.x = 40}};
    NET_WAIT((net_say(writer, usi_type_twist, &too_fast), count_lines(log, 30, "cmd_vel") > 0));
    const double from = net_time(p);
    const int n = count_lines(log, 30, "cmd_vel");
    while (net_time(p) < from + 3) {
        net_say(writer, usi_type_twist, &too_fast);
        net_nap();
    }
    const int more = count_lines(log, 30, "cmd_vel") - n;
    assert_true(more >= 2 && more <= 4);
    us_writer_remove(writer);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_find_the_parameters_of_the_node),
        cmocka_unit_test(the_log_is_on_rosout_as_loud_as_asked),
        cmocka_unit_test(the_same_line_comes_once_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}

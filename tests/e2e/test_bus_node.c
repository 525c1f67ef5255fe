// Parameters of a node that can be set: ranges, the program's veto, all or none, and what is told of a
// change.
#include "bus/node.h"

#include "test_bus_support.h"
#include "understudy/service.h"

enum { BYTES = 4096 };

static bool on_set(void *context, const usi_parameter *wanted, char why[USI_PARAMETER_WHY]) {
    (void)context;
    if (wanted->double_value != 13) return true;
    snprintf(why, USI_PARAMETER_WHY, "13 is unlucky");
    return false;
}

static const usi_parameter parameters[] = {
    {.name = "gain",
     .description = "",
     .type = USI_PARAMETER_DOUBLE,
     .double_value = 1,
     .low = 0,
     .high = 20},
    {.name = "camera.rate", .description = "", .type = USI_PARAMETER_INTEGER, .integer_value = 30},
};

static us_client *add_client(us_bus *bus, const char *name, const us_message_type *request,
                             const us_message_type *response) {
    us_error err = {0};
    us_client *client = NULL;
    const us_client_def def = {name, request, response, -1, US_DIALECT_CYCLONE};
    expect_ok(us_bus_add_client(bus, &def, &client, &err), &err);
    WAIT_FOR(us_client_is_ready(client));
    return client;
}

// Sets to a number and says whether all went well, with the reason if not.
static bool set_all(us_bus *bus, us_client *client, us_msg_parameter *list, uint32_t n,
                    char why[USI_PARAMETER_WHY]) {
    static _Alignas(16) uint8_t memory[BYTES];
    uint8_t bytes[BYTES];
    size_t length = 0;
    int64_t number = 0, answered = 0;
    const us_msg_set_parameters_atomically_request m = {.parameters = {._length = n, ._buffer = list}};
    assert_int_equal(
        us_message_encode(usi_type_set_parameters_atomically_request, &m, bytes, sizeof bytes, &length),
        US_OK);
    uint8_t reply_bytes[BYTES];
    size_t n_reply = 0;
    // What is asked before the service has found us is lost: it is asked again.
    const double until = clock_now() + PATIENCE;
    for (double next = 0; n_reply == 0 || answered != number;) {
        if (clock_now() > until) fail_msg("no answer");
        if (clock_now() > next) {
            assert_int_equal(us_client_ask(client, bytes, length, &number), US_OK);
            next = clock_now() + 3;
        }
        us_bus_wait(bus, 0.01);
        assert_int_equal(us_client_take(client, reply_bytes, sizeof reply_bytes, &n_reply, &answered), US_OK);
    }
    const void *reply = NULL;
    assert_int_equal(us_message_decode(usi_type_set_parameters_atomically_response, reply_bytes, n_reply,
                                       memory, sizeof memory, &reply, NULL),
                     US_OK);
    const us_msg_set_parameters_result *r =
        &((const us_msg_set_parameters_atomically_response *)reply)->result;
    snprintf(why, USI_PARAMETER_WHY, "%s", r->reason);
    return r->successful;
}

static void parameters_are_set_together_and_told(void **state) {
    (void)state;
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    int32_t number = -1;
    us_error err = {0};
    usi_ros_node *node = NULL;
    expect_ok(us_bus_add_node(robot, "/bot", "driver", &number, &err), &err);
    const usi_node_def def = {number, "/bot/driver", 2, parameters, on_set, NULL};
    expect_ok(usi_node_open(robot, &def, &node, &err), &err);
    us_reader *events = add_reader(tool, "/parameter_events", usi_type_parameter_event,
                                   (us_qos){.is_reliable = true, .depth = 100}, NULL, NULL);
    WAIT_FOR(us_reader_n_match(events) > 0);
    us_client *client =
        add_client(tool, "/bot/driver/set_parameters_atomically", usi_type_set_parameters_atomically_request,
                   usi_type_set_parameters_atomically_response);
    char gain[] = "gain", rate[] = "camera.rate", why[USI_PARAMETER_WHY];
    us_msg_parameter list[] = {{.name = gain, .value = {.type = 3, .double_value = 2}},
                               {.name = rate, .value = {.type = 2, .integer_value = 15}}};
    // One that changes nothing is not told.
    us_msg_parameter same = {.name = gain, .value = {.type = 3, .double_value = 1}};
    assert_true(set_all(tool, client, &same, 1, why));
    assert_true(set_all(tool, client, list, 2, why));
    usi_parameter now;
    assert_true(usi_node_get(node, "gain", &now) && now.double_value == 2);
    assert_true(usi_node_get(node, "camera.rate", &now) && now.integer_value == 15);
    assert_false(usi_node_get(node, "other", &now));
    uint8_t bytes[BYTES];
    size_t length = 0;
    WAIT_FOR(us_reader_take(events, bytes, sizeof bytes, &length, NULL) == US_OK && length > 0);
    assert_true(us_message_get_number(usi_type_parameter_event, bytes, length,
                                      "changed_parameters[0].value.double_value") == 2);
    assert_true(us_message_get_number(usi_type_parameter_event, bytes, length,
                                      "changed_parameters[1].value.integer_value") == 15);
    // One of them is bad: none is set, nothing is told.
    const double bad[] = {21, -1, 13};
    for (int i = 0; i < 3; i++) {
        list[0].value.double_value = bad[i];
        list[1].value.integer_value = 99;
        us_msg_parameter order[] = {list[1], list[0]};
        assert_false(set_all(tool, client, order, 2, why));
        assert_non_null(strstr(why, i < 2 ? "from 0 to 20" : "unlucky"));
        assert_true(usi_node_get(node, "camera.rate", &now) && now.integer_value == 15);
    }
    assert_int_equal(take_all(events), 0);
    us_client_remove(client);
    us_reader_remove(events);
    usi_node_close(node);
    us_bus_close(tool);
    us_bus_close(robot);
}

// A name of a megabyte is a name that is not declared, and stands in the answer.
static void a_request_of_a_megabyte_is_answered(void **state) {
    (void)state;
    enum { LARGE = 1 << 20 };
    static char name[LARGE + 1];
    static uint8_t bytes[LARGE + BYTES];
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    us_error err = {0};
    usi_ros_node *node = NULL;
    int32_t index = -1;
    expect_ok(us_bus_add_node(robot, "/bot", "driver", &index, &err), &err);
    const usi_node_def def = {index, "/bot/driver", 2, parameters, on_set, NULL};
    expect_ok(usi_node_open(robot, &def, &node, &err), &err);
    us_client *client =
        add_client(tool, "/bot/driver/describe_parameters", usi_type_describe_parameters_request,
                   usi_type_describe_parameters_response);
    memset(name, 'x', LARGE);
    char *names[] = {name};
    const us_msg_describe_parameters_request m = {.names = {._length = 1, ._buffer = names}};
    size_t length = 0, n_reply = 0;
    int64_t number = 0;
    assert_int_equal(
        us_message_encode(usi_type_describe_parameters_request, &m, bytes, sizeof bytes, &length), US_OK);
    static uint8_t reply[LARGE + BYTES];
    const double until = clock_now() + PATIENCE;
    for (double next = 0; n_reply == 0;) {
        if (clock_now() > until) fail_msg("no answer");
        if (clock_now() > next) {
            assert_int_equal(us_client_ask(client, bytes, length, &number), US_OK);
            next = clock_now() + 5;
        }
        us_bus_wait(tool, 0.01);
        assert_int_equal(us_client_take(client, reply, sizeof reply, &n_reply, &number), US_OK);
    }
    assert_true(n_reply > LARGE);
    us_client_remove(client);
    usi_node_close(node);
    us_bus_close(tool);
    us_bus_close(robot);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_request_of_a_megabyte_is_answered),
    cmocka_unit_test(parameters_are_set_together_and_told),
};

BUS_TEST_MAIN(tests, NULL, NULL)

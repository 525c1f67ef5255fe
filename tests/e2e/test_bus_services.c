// Services and clients: two vendors, two dialects side by side, and programs of either vendor that ask and
// answer as the rmw layers do.
#include "test_bus_support.h"
#include "understudy/service.h"

enum { N_ASK = 60, BYTES = 4096 };

static us_service *add_service(us_bus *bus) {
    us_error err = {0};
    us_service *service = NULL;
    const us_service_def def = {"/test/echo", usi_type_get_parameters_request,
                                usi_type_get_parameters_response, -1};
    expect_ok(us_bus_add_service(bus, &def, &service, &err), &err);
    return service;
}

static us_client *add_client(us_bus *bus, us_dialect dialect) {
    us_error err = {0};
    us_client *client = NULL;
    const us_client_def def = {"/test/echo", usi_type_get_parameters_request,
                               usi_type_get_parameters_response, -1, dialect};
    expect_ok(us_bus_add_client(bus, &def, &client, &err), &err);
    return client;
}

// Answers all that waits: "a042" with the number 42. How many they were.
static int serve(us_service *service) {
    uint8_t bytes[BYTES];
    _Alignas(16) static uint8_t memory[BYTES];
    for (int n = 0;; n++) {
        size_t length = 0;
        us_request_id id;
        assert_int_equal(us_service_take(service, bytes, sizeof bytes, &length, &id), US_OK);
        if (length == 0) return n;
        const void *m = NULL;
        assert_int_equal(us_message_decode(usi_type_get_parameters_request, bytes, length, memory,
                                           sizeof memory, &m, NULL),
                         US_OK);
        const us_msg_get_parameters_request *request = m;
        assert_int_equal(request->names._length, 1);
        us_msg_parameter_value value = {.type = 2,
                                        .integer_value = strtol(request->names._buffer[0] + 1, NULL, 10)};
        us_msg_get_parameters_response reply = {.values = {._length = 1, ._buffer = &value}};
        assert_int_equal(
            us_message_encode(usi_type_get_parameters_response, &reply, bytes, sizeof bytes, &length), US_OK);
        assert_int_equal(us_service_reply(service, id, bytes, length), US_OK);
    }
}

static int64_t ask(us_client *client, int i) {
    char text[8];
    snprintf(text, sizeof text, "a%03d", i % 1000);
    char *names[] = {text};
    us_msg_get_parameters_request request = {.names = {._length = 1, ._buffer = names}};
    uint8_t bytes[BYTES];
    size_t length = 0;
    assert_int_equal(
        us_message_encode(usi_type_get_parameters_request, &request, bytes, sizeof bytes, &length), US_OK);
    int64_t number = 0;
    assert_int_equal(us_client_ask(client, bytes, length, &number), US_OK);
    return number;
}

// The next reply: the number of its request, 0 when none waits; and what it says, -1 when it says nothing.
static int64_t take_reply(us_client *client, int *out_value) {
    uint8_t bytes[BYTES];
    size_t length = 0;
    int64_t number = 0;
    assert_int_equal(us_client_take(client, bytes, sizeof bytes, &length, &number), US_OK);
    if (length == 0) return 0;
    const double value =
        us_message_get_number(usi_type_get_parameters_response, bytes, length, "values[0].integer_value");
    *out_value = value == value ? (int)value : -1;
    return number;
}

// Asks until it is answered: then each knows the other. All that was asked is answered before this returns.
static void meet(us_service *service, us_client *client) {
    WAIT_FOR(us_client_is_ready(client));
    const double until = clock_now() + PATIENCE;
    int64_t last = 0, answered = 0;
    for (int i = 0; answered == 0 || answered != last; i++) {
        if (clock_now() > until) fail_msg("asked %d times, and none was answered", i);
        if (answered == 0 && i % 100 == 0) last = ask(client, 0);
        if (service) serve(service);
        int value = -1;
        const int64_t number = take_reply(client, &value);
        if (number > 0) answered = number;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

// Every one of N_ASK requests of each client is answered once, with what it asked.
static void check_exchange(us_service *service, us_client *const *clients, int n_client) {
    static int64_t numbers[4][N_ASK];
    int n_answer = 0;
    for (int c = 0; c < n_client; c++)
        meet(service, clients[c]);
    for (int i = 0; i < N_ASK; i++) {
        for (int c = 0; c < n_client; c++)
            numbers[c][i] = ask(clients[c], i);
        serve(service);
    }
    const double until = clock_now() + PATIENCE;
    while (n_answer < n_client * N_ASK) {
        if (clock_now() > until) fail_msg("%d of %d were answered", n_answer, n_client * N_ASK);
        serve(service);
        for (int c = 0; c < n_client; c++) {
            int value = -1;
            const int64_t number = take_reply(clients[c], &value);
            if (number == 0) continue;
            assert_in_range(value, 0, N_ASK - 1);
            assert_int_equal(numbers[c][value], number);
            numbers[c][value] = 0;
            n_answer++;
        }
    }
    // Nothing is answered twice.
    int value = -1;
    for (int c = 0; c < n_client; c++)
        assert_int_equal(take_reply(clients[c], &value), 0);
}

// Two clients of each dialect, one of each on a bus of either vendor, and of the service's own bus.
static void check_dialects(const char *server) {
    us_bus *robot = open_bus(server, test_domain()), *tool = open_bus("cyclone", test_domain()),
           *other = open_bus("fastdds", test_domain());
    us_service *service = add_service(robot);
    us_client *clients[] = {add_client(tool, US_DIALECT_CYCLONE), add_client(other, US_DIALECT_FASTDDS),
                            add_client(tool, US_DIALECT_FASTDDS), add_client(other, US_DIALECT_CYCLONE)};
    check_exchange(service, clients, 4);
    for (int i = 0; i < 4; i++)
        us_client_remove(clients[i]);
    us_service_remove(service);
    us_bus_close(other);
    us_bus_close(tool);
    us_bus_close(robot);
}

static void every_request_is_answered_once_over_cyclone(void **state) {
    (void)state;
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    us_service *service = add_service(robot);
    // The last is of the same bus: its samples are never on the network.
    us_client *clients[] = {add_client(tool, US_DIALECT_CYCLONE), add_client(tool, US_DIALECT_CYCLONE),
                            add_client(robot, US_DIALECT_CYCLONE)};
    check_exchange(service, clients, 3);
    for (int i = 0; i < 3; i++)
        us_client_remove(clients[i]);
    us_service_remove(service);
    us_bus_close(tool);
    us_bus_close(robot);
}

static void both_dialects_are_answered_over_cyclone(void **state) {
    (void)state;
    if (has_fastdds()) check_dialects("cyclone");
}

static void both_dialects_are_answered_over_fast_dds(void **state) {
    (void)state;
    if (has_fastdds()) check_dialects("fastdds");
}

// ---- the other vendor, when it is wanted ----

static int count_participants(us_bus *bus) {
    us_participant list[20];
    int32_t n = 0;
    assert_int_equal(us_bus_list_participants(bus, list, 20, &n), US_OK);
    return n;
}

static bool has_heard_of(us_bus *bus, const char *topic) {
    us_endpoint list[100];
    int32_t n = 0;
    bool has = false;
    assert_int_equal(us_bus_list(bus, list, 100, &n), US_OK);
    for (int32_t i = 0; i < n && i < 100; i++)
        has = has || strcmp(list[i].topic, topic) == 0;
    return has;
}

static void without_a_client_of_the_other_vendor_there_is_no_second_participant(void **state) {
    (void)state;
    if (!has_fastdds()) return;
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("fastdds", test_domain());
    us_service *service = add_service(robot);
    us_reader *reader = add_reader(tool, "/test/other", usi_type_clock, (us_qos){.depth = 1}, NULL, NULL);
    us_writer *elsewhere = add_writer(tool, "rq/test/elsewhereRequest", usi_type_get_parameters_request,
                                      (us_qos){.is_reliable = true, .depth = 10});
    // They have met: the robot's bus has heard of a client, of another service.
    WAIT_FOR(has_heard_of(robot, "rq/test/elsewhereRequest"));
    assert_int_equal(count_participants(robot), 2);
    us_client *client = add_client(tool, US_DIALECT_FASTDDS);
    meet(service, client);
    assert_int_equal(count_participants(robot), 3);
    us_client_remove(client);
    us_writer_remove(elsewhere);
    us_reader_remove(reader);
    us_service_remove(service);
    us_bus_close(tool);
    us_bus_close(robot);
}

// A service that comes after its client is found too.
static void a_client_may_be_there_before_the_service(void **state) {
    (void)state;
    if (!has_fastdds()) return;
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("fastdds", test_domain());
    us_client *client = add_client(tool, US_DIALECT_FASTDDS);
    for (int i = 0; i < 3; i++) {
        us_service *service = add_service(robot);
        meet(service, client);
        us_service_remove(service);
        WAIT_FOR(!us_client_is_ready(client));
    }
    us_client_remove(client);
    us_bus_close(tool);
    us_bus_close(robot);
}

// ---- handlers ----

static void on_echo(void *context, us_service *service, us_request_id id, const void *bytes, size_t length) {
    (void)context;
    us_msg_parameter_value value = {.type = 2};
    _Alignas(16) uint8_t memory[BYTES], reply_bytes[BYTES];
    const void *m = NULL;
    if (us_message_decode(usi_type_get_parameters_request, bytes, length, memory, sizeof memory, &m, NULL))
        return;
    value.integer_value = strtol(((const us_msg_get_parameters_request *)m)->names._buffer[0] + 1, NULL, 10);
    const us_msg_get_parameters_response reply = {.values = {._length = 1, ._buffer = &value}};
    size_t n = 0;
    if (!us_message_encode(usi_type_get_parameters_response, &reply, reply_bytes, sizeof reply_bytes, &n))
        us_service_reply(service, id, reply_bytes, n);
}

static void a_handler_answers_by_itself(void **state) {
    (void)state;
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    us_service *service = add_service(robot);
    us_client *client = add_client(tool, US_DIALECT_CYCLONE);
    assert_int_equal(us_service_serve(service, NULL, NULL), US_ERR_ARG);
    assert_int_equal(us_service_serve(service, on_echo, NULL), US_OK);
    meet(NULL, client);
    for (int i = 0; i < N_ASK; i++) {
        const int64_t number = ask(client, i);
        int value = -1;
        int64_t answered = 0;
        WAIT_FOR((answered = take_reply(client, &value)) != 0);
        assert_int_equal(answered, number);
        assert_int_equal(value, i);
    }
    us_service_remove(service);
    us_client_remove(client);
    us_bus_close(tool);
    us_bus_close(robot);
}

// ---- large requests ----

enum { LARGE = 1 << 20 };

// Answers what waits by how many bytes the request's text has.
static void serve_large(us_service *service) {
    static uint8_t bytes[2 * LARGE];
    static _Alignas(16) uint8_t memory[2 * LARGE];
    size_t length = 0;
    us_request_id id;
    const void *m = NULL;
    assert_int_equal(us_service_take(service, bytes, sizeof bytes, &length, &id), US_OK);
    if (length == 0) return;
    assert_int_equal(
        us_message_decode(usi_type_get_parameters_request, bytes, length, memory, sizeof memory, &m, NULL),
        US_OK);
    const char *text = ((const us_msg_get_parameters_request *)m)->names._buffer[0];
    us_msg_parameter_value value = {.type = 4, .integer_value = (int64_t)strlen(text)};
    union {
        const char *in;
        char *out;
    } back = {.in = text};
    value.string_value = back.out;
    const us_msg_get_parameters_response reply = {.values = {._length = 1, ._buffer = &value}};
    assert_int_equal(
        us_message_encode(usi_type_get_parameters_response, &reply, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_service_reply(service, id, bytes, length), US_OK);
}

// A text of a megabyte there and back.
static void ask_large(us_service *service, us_client *client) {
    static char text[LARGE + 1];
    static uint8_t bytes[2 * LARGE];
    memset(text, 'x', LARGE);
    char *names[] = {text};
    const us_msg_get_parameters_request request = {.names = {._length = 1, ._buffer = names}};
    size_t length = 0;
    int64_t number = 0, answered = 0;
    meet(service, client);
    assert_int_equal(
        us_message_encode(usi_type_get_parameters_request, &request, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_client_ask(client, bytes, length, &number), US_OK);
    const double until = clock_now() + PATIENCE;
    for (length = 0; length == 0;) {
        if (clock_now() > until) fail_msg("a request of a megabyte is not answered");
        serve_large(service);
        assert_int_equal(us_client_take(client, bytes, sizeof bytes, &length, &answered), US_OK);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(answered, number);
    assert_true(us_message_get_number(usi_type_get_parameters_response, bytes, length,
                                      "values[0].integer_value") == LARGE);
    assert_true(length > LARGE);
}

static void check_large(const char *server, const char *vendor, us_dialect dialect) {
    us_bus *robot = open_bus(server, test_domain()), *tool = open_bus(vendor, test_domain());
    us_service *service = add_service(robot);
    us_client *client = add_client(tool, dialect);
    ask_large(service, client);
    us_client_remove(client);
    us_service_remove(service);
    us_bus_close(tool);
    us_bus_close(robot);
}

static void a_request_and_a_reply_of_a_megabyte_pass(void **state) {
    (void)state;
    check_large("cyclone", "cyclone", US_DIALECT_CYCLONE);
    if (!has_fastdds()) return;
    check_large("cyclone", "fastdds", US_DIALECT_FASTDDS);
    check_large("fastdds", "fastdds", US_DIALECT_FASTDDS);
    check_large("fastdds", "cyclone", US_DIALECT_CYCLONE);
}

// ---- who meets whom ----

// How many readers of requests there are, as `bus` sees it.
static int count_readers(us_bus *bus) {
    static us_endpoint list[400];
    int32_t n = 0, n_reader = 0;
    assert_int_equal(us_bus_list(bus, list, 400, &n), US_OK);
    assert_in_range(n, 0, 400);
    for (int32_t i = 0; i < n; i++) {
        if (list[i].is_writer || strcmp(list[i].topic, "rq/test/echoRequest") != 0) continue;
        assert_string_equal(list[i].hash, us_message_hash(usi_type_get_parameters_request));
        n_reader++;
    }
    return n_reader;
}

// Endpoints with the defaults of a vendor, as the rmw layers make them, match `n_match` pairs of a service.
static void check_meeting(const char *server, const char *vendor, int n_pair, int n_match) {
    us_bus *robot = open_bus(server, test_domain()), *tool = open_bus(vendor, test_domain());
    us_writer *writer = add_writer(tool, "rq/test/echoRequest", usi_type_get_parameters_request,
                                   (us_qos){.is_reliable = true, .depth = 10});
    us_reader *reader = add_reader(tool, "rr/test/echoReply", usi_type_get_parameters_response,
                                   (us_qos){.is_reliable = true, .depth = 10}, NULL, NULL);
    us_service *service = add_service(robot);
    WAIT_FOR(count_readers(tool) == n_pair);
    WAIT_FOR(us_writer_n_match(writer) == n_match && us_reader_n_match(reader) == n_match);
    us_service_remove(service);
    us_bus_close(tool);
    us_bus_close(robot);
}

static void each_kind_of_client_meets_the_pair_of_its_own_dialect(void **state) {
    (void)state;
    check_meeting("cyclone", "cyclone", 1, 1);
    if (!has_fastdds()) return;
    check_meeting("cyclone", "fastdds", 2, 1);
    check_meeting("fastdds", "cyclone", 2, 1);
    check_meeting("fastdds", "fastdds", 1, 1);
}

// ---- programs of others ----

static bool start_asker(peer *out, const char *vendor, const char *role, const char *times) {
    char program[300];
    snprintf(program, sizeof program, US_BINARY_DIR "/tests/e2e/asker_%s", vendor);
    if (access(program, X_OK) != 0) {
        print_message("skipped: asker_%s is not built\n", vendor);
        return false;
    }
    char domain[16], what[16], n[16];
    snprintf(domain, sizeof domain, "%d", test_domain());
    snprintf(what, sizeof what, "%s", role);
    snprintf(n, sizeof n, "%s", times);
    *out = start_peer(program, (char *[]){program, domain, what, n, NULL});
    return true;
}

static void check_program(const char *vendor, const char *theirs) {
    us_bus *robot = open_bus(vendor, test_domain());
    us_service *service = add_service(robot);
    peer p;
    if (start_asker(&p, theirs, "ask", "500")) {
        struct pollfd waiting = {.fd = p.out, .events = POLLIN};
        const double until = clock_now() + 4 * PATIENCE;
        int n = 0;
        while (poll(&waiting, 1, 0) == 0) {
            if (clock_now() > until) fail_msg("no answer of the program; it asked %d times", n);
            if (us_bus_wait(robot, 0.01)) n += serve(service);
        }
        char text[100] = "";
        assert_true(read(p.out, text, sizeof text - 1) > 0);
        assert_memory_equal(text, "answered 500 wrong 0", 20);
        assert_int_equal(n, 500);
        stop_peer(&p);
    }
    us_service_remove(service);
    us_bus_close(robot);
}

static void a_program_that_asks_as_rmw_fastrtps_does_is_answered(void **state) {
    (void)state;
    if (!has_fastdds()) return;
    check_program("fastdds", "fastdds");
    check_program("cyclone", "fastdds");
}

static void a_program_that_asks_as_rmw_cyclonedds_does_is_answered(void **state) {
    (void)state;
    check_program("cyclone", "cyclone");
    if (has_fastdds()) check_program("fastdds", "cyclone");
}

// A server of theirs, asked over a bus of either vendor.
static void check_server(const char *vendor, const char *theirs, us_dialect dialect) {
    us_bus *bus = open_bus(vendor, test_domain());
    peer p;
    if (start_asker(&p, theirs, "serve", "")) {
        us_client *client = add_client(bus, dialect);
        // One in the other dialect does not find it.
        us_client *other =
            add_client(bus, dialect == US_DIALECT_CYCLONE ? US_DIALECT_FASTDDS : US_DIALECT_CYCLONE);
        meet(NULL, client);
        for (int i = 0; i < N_ASK; i++) {
            const int64_t number = ask(client, i);
            int value = -1;
            int64_t answered = 0;
            WAIT_FOR((answered = take_reply(client, &value)) != 0);
            assert_int_equal(answered, number);
        }
        assert_false(us_client_is_ready(other));
        us_client_remove(other);
        us_client_remove(client);
        stop_peer(&p);
    }
    us_bus_close(bus);
}

static void programs_that_answer_as_the_rmw_layers_do_can_be_asked(void **state) {
    (void)state;
    if (!has_fastdds()) return;
    check_server("fastdds", "fastdds", US_DIALECT_FASTDDS);
    check_server("cyclone", "fastdds", US_DIALECT_FASTDDS);
    check_server("cyclone", "cyclone", US_DIALECT_CYCLONE);
    check_server("fastdds", "cyclone", US_DIALECT_CYCLONE);
}

// ---- arguments ----

static void bad_definitions_and_messages_are_refused(void **state) {
    (void)state;
    us_bus *bus = open_bus("cyclone", test_domain());
    us_error err = {0};
    us_service *service = NULL;
    us_service_def def = {"echo", usi_type_get_parameters_request, usi_type_get_parameters_response, -1};
    assert_int_equal(us_bus_add_service(bus, &def, &service, &err), US_ERR_NAME);
    assert_non_null(err.remedy[0] ? err.remedy : NULL);
    def.name = "rt/echo";
    assert_int_equal(us_bus_add_service(bus, &def, &service, &err), US_ERR_NAME);
    def.name = "/echo";
    def.response = NULL;
    assert_int_equal(us_bus_add_service(bus, &def, &service, &err), US_ERR_ARG);
    assert_null(service);
    service = add_service(bus);
    us_client *client = add_client(bus, US_DIALECT_CYCLONE);
    const uint8_t short_message[] = {0, 1, 0, 0, 1, 0, 0, 0};
    int64_t number = 0;
    assert_int_equal(us_client_ask(client, short_message, sizeof short_message, &number), US_ERR_SYNTAX);
    assert_int_equal(us_service_reply(service, (us_request_id){1, 1}, short_message, sizeof short_message),
                     US_ERR_SYNTAX);
    us_client_remove(NULL);
    us_service_remove(NULL);
    us_client_remove(client);
    us_service_remove(service);
    us_bus_close(bus);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_request_is_answered_once_over_cyclone),
    cmocka_unit_test(both_dialects_are_answered_over_cyclone),
    cmocka_unit_test(both_dialects_are_answered_over_fast_dds),
    cmocka_unit_test(without_a_client_of_the_other_vendor_there_is_no_second_participant),
    cmocka_unit_test(a_client_may_be_there_before_the_service),
    cmocka_unit_test(a_request_and_a_reply_of_a_megabyte_pass),
    cmocka_unit_test(a_handler_answers_by_itself),
    cmocka_unit_test(each_kind_of_client_meets_the_pair_of_its_own_dialect),
    cmocka_unit_test(a_program_that_asks_as_rmw_fastrtps_does_is_answered),
    cmocka_unit_test(a_program_that_asks_as_rmw_cyclonedds_does_is_answered),
    cmocka_unit_test(programs_that_answer_as_the_rmw_layers_do_can_be_asked),
    cmocka_unit_test(bad_definitions_and_messages_are_refused),
};

BUS_TEST_MAIN(tests, NULL, NULL)

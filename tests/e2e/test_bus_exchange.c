// Two processes of ours on the loopback, and what the qualities of service promise.
#include "test_bus_support.h"

static const us_qos reliable = {.is_reliable = true, .depth = 10};
static const us_qos latched = {.is_reliable = true, .is_transient_local = true, .depth = 3};
static const us_qos best_effort = {.depth = 10};

static void two_processes_exchange_every_type_and_ten_thousand_samples(void **state) {
    (void)state;
    peer p = start_self("cyclone", test_domain());
    us_bus *bus = open_bus("cyclone", test_domain());
    exchange_every_type(bus);
    exchange_many(bus, 10000);
    us_bus_close(bus);
    stop_peer(&p);
}

static void a_sample_carries_its_time_and_its_writer(void **state) {
    (void)state;
    us_bus *a = open_bus("cyclone", test_domain()), *b = open_bus("cyclone", test_domain());
    us_writer *writer = add_writer(a, "/time", usi_type_string, latched);
    us_reader *reader = add_reader(b, "/time", usi_type_string, latched, NULL, NULL);
    us_msg_string message = {0};
    uint8_t bytes[64], buf[64];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_string, &message, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_writer_write(writer, bytes, length, 123456789012), US_OK);
    assert_true(us_bus_wait(b, PATIENCE));
    us_sample sample = {0};
    // A buffer that is too small takes nothing and learns what it takes.
    assert_int_equal(us_reader_take(reader, buf, 4, &length, &sample), US_ERR_LIMIT);
    assert_true(length > 4 && length <= sizeof buf);
    assert_int_equal(us_reader_take(reader, buf, sizeof buf, &length, &sample), US_OK);
    assert_true(length > 4);
    assert_ptr_equal(sample.bytes, buf);
    // DDS counts in 2^-32 s: a nanosecond may be lost.
    assert_true(sample.source_time >= 123456789011 && sample.source_time <= 123456789013);
    us_endpoint all[32];
    int32_t n = 0;
    bool is_found = false;
    assert_int_equal(us_bus_list(b, all, 32, &n), US_OK);
    for (int32_t i = 0; i < n && i < 32; i++) {
        if (memcmp(all[i].id, sample.writer, 16) != 0) continue;
        is_found = true;
        assert_true(all[i].is_writer && !all[i].is_own && all[i].is_xcdr1);
        assert_string_equal(all[i].topic, "rt/time");
        assert_string_equal(all[i].type, "std_msgs::msg::dds_::String_");
        assert_string_equal(all[i].hash, us_message_hash(usi_type_string));
    }
    assert_true(is_found);
    assert_int_equal(us_reader_take(reader, buf, sizeof buf, &length, &sample), US_OK);
    assert_int_equal(length, 0);
    assert_false(us_bus_wait(b, 0));
    us_bus_close(a);
    us_bus_close(b);
}

static void a_late_reader_gets_the_latched_samples_and_no_more(void **state) {
    (void)state;
    us_bus *a = open_bus("cyclone", test_domain());
    us_writer *writer = add_writer(a, "/latched", usi_type_string, latched);
    for (int i = 0; i < 10; i++)
        write_text_message(writer, "x");
    us_bus *b = open_bus("cyclone", test_domain());
    us_qos many = latched;
    many.depth = 100;
    us_reader *reader = add_reader(b, "/latched", usi_type_string, many, NULL, NULL);
    // The last sample says that all have come.
    WAIT_FOR(us_writer_n_match(writer) == 1 && us_reader_n_match(reader) == 1);
    int32_t n = 0;
    WAIT_FOR((n += take_all(reader)) >= latched.depth);
    write_text_message(writer, "last");
    WAIT_FOR((n += take_all(reader)) >= latched.depth + 1);
    assert_int_equal(n, latched.depth + 1);
    us_bus_close(a);
    us_bus_close(b);
}

static void check_matches(const char *vendor, const char *other) {
    static const struct {
        us_qos writer, reader;
        bool is_match;
    } cases[] = {
        {{.is_reliable = true, .depth = 1}, {.is_reliable = true, .depth = 10}, true},
        {{.is_reliable = true, .depth = 1}, {.depth = 10}, true},
        {{.depth = 1}, {.depth = 10}, true},
        {{.depth = 1}, {.is_reliable = true, .depth = 10}, false},
        {{.is_reliable = true, .depth = 1},
         {.is_reliable = true, .is_transient_local = true, .depth = 1},
         false},
        {{.is_reliable = true, .is_transient_local = true, .depth = 1},
         {.is_reliable = true, .depth = 0},
         true},
        {{.depth = 1, .partition = "k10"}, {.depth = 1}, false},
        {{.depth = 1}, {.depth = 1, .partition = "k10"}, false},
        {{.depth = 1, .partition = "k10"}, {.depth = 1, .partition = "k11"}, false},
        {{.depth = 1, .partition = "k10"}, {.depth = 1, .partition = "lab,k10"}, true},
        {{.depth = 1, .partition = "lab,k1*"}, {.depth = 1, .partition = "k10"}, true},
    };
    enum { N = sizeof cases / sizeof cases[0] };
    us_bus *a = open_bus(vendor, test_domain()), *b = open_bus(other, test_domain());
    us_writer *writers[N];
    us_reader *readers[N];
    for (int i = 0; i < N; i++) {
        char topic[32];
        snprintf(topic, sizeof topic, "/case_%c", 'a' + i);
        writers[i] = add_writer(a, topic, usi_type_string, cases[i].writer);
        readers[i] = add_reader(b, topic, usi_type_string, cases[i].reader, NULL, NULL);
    }
    // Discovery is done when the last pair, which fits, has met, and all others that fit; matching is decided
    // when an endpoint becomes known.
    us_writer *last_writer = add_writer(a, "/last", usi_type_string, reliable);
    us_reader *last_reader = add_reader(b, "/last", usi_type_string, reliable, NULL, NULL);
    WAIT_FOR(us_writer_n_match(last_writer) == 1 && us_reader_n_match(last_reader) == 1);
    for (int i = 0; i < N; i++)
        WAIT_FOR(us_writer_n_match(writers[i]) >= cases[i].is_match &&
                 us_reader_n_match(readers[i]) >= cases[i].is_match);
    for (int i = 0; i < N; i++) {
        assert_int_equal(us_writer_n_match(writers[i]), cases[i].is_match);
        assert_int_equal(us_reader_n_match(readers[i]), cases[i].is_match);
    }
    us_bus_close(a);
    us_bus_close(b);
}

static void readers_match_writers_that_offer_enough(void **state) {
    (void)state;
    check_matches("cyclone", "cyclone");
    if (!has_fastdds()) return;
    check_matches("fastdds", "fastdds");
    check_matches("cyclone", "fastdds");
    check_matches("fastdds", "cyclone");
}

static void domains_and_buses_that_want_nobody_stay_apart(void **state) {
    (void)state;
    us_bus_def def = us_bus_def_default();
    def.domain = test_domain();
    us_bus *a = open_bus_def(&def), *near = open_bus_def(&def);
    def.range = US_BUS_OFF;
    us_bus *alone = open_bus_def(&def);
    def.range = US_BUS_LOCALHOST;
    def.domain = test_domain_of(1);
    us_bus *far = open_bus_def(&def);
    us_bus *all[] = {near, alone, far};
    us_reader *readers[3];
    us_writer *writer = add_writer(a, "/apart", usi_type_string, latched);
    for (int i = 0; i < 3; i++)
        readers[i] = add_reader(all[i], "/apart", usi_type_string, latched, NULL, NULL);
    us_writer *far_writer = add_writer(far, "/apart", usi_type_string, latched);
    WAIT_FOR(us_reader_n_match(readers[0]) == 1 && us_reader_n_match(readers[2]) == 1 &&
             us_writer_n_match(writer) == 1);
    assert_int_equal(us_reader_n_match(readers[1]), 0);
    assert_int_equal(us_writer_n_match(far_writer), 1);
    us_participant people[8];
    int32_t n = 0;
    assert_int_equal(us_bus_list_participants(alone, people, 8, &n), US_OK);
    assert_int_equal(n, 1);
    assert_true(people[0].is_own);
    assert_string_equal(people[0].vendor, "cyclone");
    assert_string_equal(people[0].enclave, "/");
    assert_int_equal(us_bus_list_participants(near, people, 8, &n), US_OK);
    assert_int_equal(n, 2);
    us_bus_close(a);
    for (int i = 0; i < 3; i++)
        us_bus_close(all[i]);
}

static void two_types_on_one_topic_do_not_meet(void **state) {
    (void)state;
    us_bus *a = open_bus("cyclone", test_domain()), *b = open_bus("cyclone", test_domain());
    us_writer *writer = add_writer(a, "/cmd_vel", usi_type_twist, latched);
    us_reader *plain = add_reader(b, "/cmd_vel", usi_type_twist, latched, NULL, NULL);
    us_reader *stamped = add_reader(b, "/cmd_vel", usi_type_twist_stamped, latched, NULL, NULL);
    WAIT_FOR(us_writer_n_match(writer) == 1 && us_reader_n_match(plain) == 1);
    assert_int_equal(us_reader_n_match(stamped), 0);
    us_bus_close(a);
    us_bus_close(b);
}

static void a_stalled_reader_neither_blocks_the_writer_nor_robs_the_others(void **state) {
    (void)state;
    enum { N = 2000 };
    peer p = start_self("cyclone", test_domain());
    us_bus *bus = open_bus("cyclone", test_domain()), *other = open_bus("cyclone", test_domain());
    us_qos all = {.is_reliable = true};
    count c = {0};
    us_writer *writer = add_writer(bus, "/to_peer/understudy_msgs_TickHash", usi_type_tick_hash, reliable);
    us_reader *reader =
        add_reader(other, "/to_peer/understudy_msgs_TickHash", usi_type_tick_hash, all, count_in_order, &c);
    WAIT_FOR(us_writer_n_match(writer) == 2 && us_reader_n_match(reader) == 1);
    WAIT_FOR((send_tick(writer, -1), atomic_load(&c.is_heard)));
    assert_int_equal(kill(p.pid, SIGSTOP), 0);  // acknowledges nothing from here on
    us_msg_tick_hash message = {0};
    uint8_t bytes[64];
    size_t length = 0;
    for (int64_t i = 0; i < N; i++) {
        message.tick = i;
        assert_int_equal(us_message_encode(usi_type_tick_hash, &message, bytes, sizeof bytes, &length),
                         US_OK);
        assert_int_equal(us_writer_write(writer, bytes, length, 0), US_OK);
        // One after another, as a simulation does: the history of 10 is not outrun.
        if (i % 5 == 4) WAIT_FOR(atomic_load(&c.n) > i);
    }
    assert_int_equal(atomic_load(&c.n), N);
    assert_int_equal(atomic_load(&c.n_wrong), 0);
    assert_int_equal(kill(p.pid, SIGCONT), 0);
    us_bus_close(other);
    us_bus_close(bus);
    stop_peer(&p);
}

static void bad_names_types_and_bytes_are_refused(void **state) {
    (void)state;
    us_error err = {0};
    us_bus_def def = us_bus_def_default();
    us_bus *bus = NULL;
    def.domain = 233;
    assert_int_equal(us_bus_open(&def, &bus, &err), US_ERR_VALUE);
    assert_null(bus);
    def.domain = test_domain();
    def.vendor = "opensplice";
    assert_int_equal(us_bus_open(&def, &bus, &err), US_ERR_NAME);
    assert_non_null(strstr(err.remedy, "cyclone"));
    def.vendor = NULL;
    const char *peers[] = {"<evil/>"};
    def.peers = peers;
    def.n_peer = 1;
    assert_int_equal(us_bus_open(&def, &bus, &err), US_ERR_VALUE);
    assert_int_equal(us_bus_open(NULL, &bus, &err), US_ERR_ARG);
    us_bus_close(NULL);

    bus = open_bus("cyclone", test_domain());
    assert_string_equal(us_bus_vendor(bus), "cyclone");
    assert_int_equal(us_bus_domain(bus), test_domain());
    static const char *const bad[] = {"",           "odom",  "/",   "/k10/",  "//odom",
                                      "/k10//odom", "/k 10", "/10", "/odom<", "rt/"};
    us_writer *writer = NULL;
    us_reader *reader = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        us_topic_def topic = {bad[i], usi_type_string, reliable, -1};
        assert_int_equal(us_bus_add_writer(bus, &topic, &writer, &err), US_ERR_NAME);
        assert_int_equal(us_bus_add_reader(bus, &topic, NULL, NULL, &reader, &err), US_ERR_NAME);
        assert_non_null(strstr(err.remedy, "/k10/odom"));
    }
    char overlong[400] = "/";
    memset(overlong + 1, 'a', sizeof overlong - 2);
    assert_int_equal(
        us_bus_add_writer(bus, &(us_topic_def){overlong, usi_type_string, reliable, -1}, &writer, &err),
        US_ERR_NAME);
    assert_int_equal(us_bus_add_writer(bus, &(us_topic_def){"/x", NULL, reliable, -1}, &writer, &err),
                     US_ERR_ARG);
    assert_int_equal(
        us_bus_add_writer(bus, &(us_topic_def){"/x", usi_type_string, reliable, 0}, &writer, &err),
        US_ERR_ARG);
    assert_int_equal(
        us_bus_add_writer(bus, &(us_topic_def){"/x", usi_type_string, {.depth = -1}, -1}, &writer, &err),
        US_ERR_VALUE);
    int32_t node = -1;
    assert_int_equal(us_bus_add_node(bus, "/k10", "bad name", &node, &err), US_ERR_NAME);
    assert_int_equal(us_bus_add_node(bus, "k10", "driver", &node, &err), US_ERR_NAME);
    assert_int_equal(us_bus_add_node(bus, "/k10", "driver", &node, &err), US_OK);
    assert_int_equal(us_bus_add_node(bus, "/k10", "driver", &node, &err), US_ERR_NAME);

    writer = add_writer(bus, "/x", usi_type_string, best_effort);
    assert_int_equal(us_writer_write(writer, "\0\1\0\0\2\0\0\0a", 10, 0), US_OK);
    assert_int_equal(us_writer_write(writer, "\0\1\0\0\2\0\0\0a", 9, 0),
                     US_ERR_SYNTAX);  // the text's end is missing
    assert_int_equal(us_writer_write(writer, "\0\7\0\0\2\0\0\0a", 10, 0), US_ERR_SYNTAX);  // another encoding
    assert_int_equal(us_writer_write(writer, "\0\1", 2, 0), US_ERR_SYNTAX);
    assert_int_equal(us_writer_write(writer, NULL, 0, 0), US_ERR_ARG);
    us_bus_close(bus);
}

static void conventional_qualities_follow_the_name(void **state) {
    (void)state;
    us_qos q = us_qos_for_topic("/tf_static", usi_type_tf_message);
    assert_true(q.is_reliable && q.is_transient_local && q.depth == 1);
    q = us_qos_for_topic("/k10/robot_description", usi_type_string);
    assert_true(q.is_reliable && q.is_transient_local && q.depth == 1);
    q = us_qos_for_topic("/tf", usi_type_tf_message);
    assert_true(q.is_reliable && !q.is_transient_local && q.depth == 100);
    q = us_qos_for_topic("/clock", usi_type_clock);
    assert_true(q.is_reliable && !q.is_transient_local && q.depth == 1);
    q = us_qos_for_topic("/k10/odom", usi_type_odometry);
    assert_true(q.is_reliable && !q.is_transient_local && q.depth == 10);
    q = us_qos_sensor();
    assert_true(!q.is_reliable && !q.is_transient_local && q.depth == 5);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_processes_exchange_every_type_and_ten_thousand_samples),
    cmocka_unit_test(a_sample_carries_its_time_and_its_writer),
    cmocka_unit_test(a_late_reader_gets_the_latched_samples_and_no_more),
    cmocka_unit_test(readers_match_writers_that_offer_enough),
    cmocka_unit_test(domains_and_buses_that_want_nobody_stay_apart),
    cmocka_unit_test(two_types_on_one_topic_do_not_meet),
    cmocka_unit_test(a_stalled_reader_neither_blocks_the_writer_nor_robs_the_others),
    cmocka_unit_test(bad_names_types_and_bytes_are_refused),
    cmocka_unit_test(conventional_qualities_follow_the_name),
};

BUS_TEST_MAIN(tests, NULL, NULL)

// Where on the network a program belongs, as the environment of ROS 2 says it.
#include "test_bus_support.h"

static const char *const names[] = {"ROS_DOMAIN_ID",      "ROS_AUTOMATIC_DISCOVERY_RANGE",
                                    "ROS_STATIC_PEERS",   "RMW_IMPLEMENTATION",
                                    "ROS_LOCALHOST_ONLY", "CYCLONEDDS_URI",
                                    "ROS_DISTRO"};
enum { N_NAME = sizeof names / sizeof names[0] };

static int clear_environment(void **state) {
    (void)state;
    for (int i = 0; i < N_NAME; i++)
        unsetenv(names[i]);
    return 0;
}

static us_status read_environment(us_bus_def *def, char *text, size_t cap, us_error *err) {
    *def = us_bus_def_default();
    return us_bus_def_from_environment(def, text, cap, err);
}

static void nothing_set_means_this_machine_and_domain_0(void **state) {
    (void)state;
    us_bus_def def;
    us_error err = {0};
    char text[256];
    setenv("ROS_DOMAIN_ID", "", 1);  // empty is absent
    assert_int_equal(read_environment(&def, text, sizeof text, &err), US_OK);
    assert_int_equal(def.domain, 0);
    assert_int_equal(def.range, US_BUS_LOCALHOST);
    assert_int_equal(def.n_peer, 0);
    assert_string_equal(def.vendor, "cyclone");
}

static void good_values_are_taken(void **state) {
    (void)state;
    static const struct {
        const char *name, *value;
        int32_t domain;
        us_bus_range range;
        const char *vendor;
    } cases[] = {
        {"ROS_DOMAIN_ID", "0", 0, US_BUS_LOCALHOST, "cyclone"},
        {"ROS_DOMAIN_ID", "232", 232, US_BUS_LOCALHOST, "cyclone"},
        {"ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", 0, US_BUS_LOCALHOST, "cyclone"},
        {"ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET", 0, US_BUS_SUBNET, "cyclone"},
        {"ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF", 0, US_BUS_OFF, "cyclone"},
        {"ROS_AUTOMATIC_DISCOVERY_RANGE", "SYSTEM_DEFAULT", 0, US_BUS_SYSTEM_DEFAULT, "cyclone"},
        {"RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp", 0, US_BUS_LOCALHOST, "cyclone"},
        {"RMW_IMPLEMENTATION", "rmw_fastrtps_cpp", 0, US_BUS_LOCALHOST, "fastdds"},
        {"ROS_LOCALHOST_ONLY", "0", 0, US_BUS_LOCALHOST, "cyclone"},
        {"ROS_LOCALHOST_ONLY", "1", 0, US_BUS_LOOPBACK, "cyclone"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clear_environment(NULL);
        setenv(cases[i].name, cases[i].value, 1);
        us_bus_def def;
        us_error err = {0};
        char text[256];
        expect_ok(read_environment(&def, text, sizeof text, &err), &err);
        assert_int_equal(def.domain, cases[i].domain);
        assert_int_equal(def.range, cases[i].range);
        assert_string_equal(def.vendor, cases[i].vendor);
    }
}

static void the_release_of_ros_decides_how_long_ids_are(void **state) {
    (void)state;
    static const struct {
        const char *value;
        bool is_old;
    } cases[] = {{"humble", true}, {"foxy", true}, {"iron", false}, {"jazzy", false}, {"something", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        us_bus_def def;
        us_error err = {0};
        char text[256];
        setenv("ROS_DISTRO", cases[i].value, 1);
        expect_ok(read_environment(&def, text, sizeof text, &err), &err);
        assert_int_equal(def.use_humble_gid, cases[i].is_old);
    }
}

static void bad_values_are_named_with_what_they_may_be(void **state) {
    (void)state;
    static const struct {
        const char *name, *value, *remedy;
    } cases[] = {
        {"ROS_DOMAIN_ID", "233", "232"},
        {"ROS_DOMAIN_ID", "-1", "232"},
        {"ROS_DOMAIN_ID", "7x", "232"},
        {"ROS_DOMAIN_ID", "99999999999999999999", "232"},
        {"ROS_AUTOMATIC_DISCOVERY_RANGE", "localhost", "LOCALHOST"},
        {"RMW_IMPLEMENTATION", "rmw_zenoh_cpp", "rmw_cyclonedds_cpp"},
        {"ROS_LOCALHOST_ONLY", "yes", "0 or 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clear_environment(NULL);
        setenv(cases[i].name, cases[i].value, 1);
        us_bus_def def = us_bus_def_default();
        def.domain = 5;
        us_error err = {0};
        char text[256];
        assert_int_equal(us_bus_def_from_environment(&def, text, sizeof text, &err), US_ERR_VALUE);
        assert_non_null(strstr(err.message, cases[i].name));
        assert_non_null(strstr(err.message, cases[i].value));
        assert_non_null(strstr(err.remedy, cases[i].remedy));
        assert_int_equal(def.domain, 5);  // nothing changed
    }
}

static void peers_are_split_and_localhost_only_drops_them(void **state) {
    (void)state;
    us_bus_def def;
    us_error err = {0};
    char text[256];
    setenv("ROS_STATIC_PEERS", "192.168.0.7;;rover.local;", 1);
    // Whatever the alignment of the text.
    for (size_t skip = 0; skip < 9; skip++) {
        expect_ok(read_environment(&def, text + skip, sizeof text - skip, &err), &err);
        assert_int_equal(def.n_peer, 2);
        assert_string_equal(def.peers[0], "192.168.0.7");
        assert_string_equal(def.peers[1], "rover.local");
    }
    assert_int_equal(read_environment(&def, text, 20, &err), US_ERR_LIMIT);
    assert_int_equal(read_environment(&def, NULL, 0, &err), US_ERR_LIMIT);
    assert_int_equal(def.n_peer, 0);
    setenv("ROS_LOCALHOST_ONLY", "1", 1);
    expect_ok(read_environment(&def, text, sizeof text, &err), &err);
    assert_int_equal(def.n_peer, 0);
    setenv("ROS_LOCALHOST_ONLY", "0", 1);
    setenv("ROS_STATIC_PEERS", ";;", 1);
    expect_ok(read_environment(&def, text, sizeof text, &err), &err);
    assert_int_equal(def.n_peer, 0);
}

static void peers_that_are_listed_are_found(void **state) {
    (void)state;
    // Each knows the other by its address alone besides the loopback.
    const char *peers[] = {"localhost", "127.0.0.1"};
    us_bus_def def = us_bus_def_default();
    def.domain = test_domain();
    def.peers = peers;
    def.n_peer = 2;
    us_bus *a = open_bus_def(&def), *b = open_bus_def(&def);
    us_qos qos = {.is_reliable = true, .depth = 1};
    us_writer *writer = add_writer(a, "/x", usi_type_string, qos);
    us_reader *reader = add_reader(b, "/x", usi_type_string, qos, NULL, NULL);
    WAIT_FOR(us_writer_n_match(writer) == 1 && us_reader_n_match(reader) == 1);
    us_bus_close(a);
    us_bus_close(b);
}

// Two buses, the second with other settings of Cyclone's own. Returns whether they find each other within the
// time.
static bool do_they_meet(const char *uri, double timeout) {
    us_bus *a = open_bus("cyclone", test_domain());
    setenv("CYCLONEDDS_URI", uri, 1);
    us_bus *b = open_bus("cyclone", test_domain());
    unsetenv("CYCLONEDDS_URI");
    us_qos qos = {.is_reliable = true, .depth = 1};
    add_writer(a, "/x", usi_type_string, qos);
    us_reader *reader = add_reader(b, "/x", usi_type_string, qos, NULL, NULL);
    double until = clock_now() + timeout;
    while (!us_reader_n_match(reader) && clock_now() < until)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    bool met = us_reader_n_match(reader) > 0;
    us_bus_close(a);
    us_bus_close(b);
    return met;
}

static void settings_of_cyclone_count_last(void **state) {
    (void)state;
    assert_true(do_they_meet(
        "<CycloneDDS><Domain "
        "Id=\"any\"><Discovery><LeaseDuration>20s</LeaseDuration></Discovery></Domain></CycloneDDS>",
        PATIENCE));
    // Half a second is ten times what the meeting above takes: enough to see that a tag keeps them apart.
    assert_false(do_they_meet(
        "<CycloneDDS><Domain Id=\"any\"><Discovery><Tag>other</Tag></Discovery></Domain></CycloneDDS>", 0.5));
}

static void bad_settings_of_cyclone_are_told(void **state) {
    (void)state;
    us_bus_def def = us_bus_def_default();
    def.domain = test_domain();
    us_bus *bus = NULL;
    us_error err = {0};
    setenv("CYCLONEDDS_URI",
           "<CycloneDDS><Domain "
           "Id=\"any\"><General><NoSuchThing>1</NoSuchThing></General></Domain></CycloneDDS>",
           1);
    assert_int_equal(us_bus_open(&def, &bus, &err), US_ERR_IO);
    assert_null(bus);
    assert_non_null(strstr(err.message, "NoSuchThing"));
    assert_non_null(strstr(err.remedy, "CYCLONEDDS_URI"));
    setenv("CYCLONEDDS_URI", "file:///no/such/file.xml", 1);
    assert_int_equal(us_bus_open(&def, &bus, &err), US_ERR_IO);
    unsetenv("CYCLONEDDS_URI");
    us_bus_close(open_bus_def(&def));  // and nothing is left behind
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(nothing_set_means_this_machine_and_domain_0, clear_environment),
    cmocka_unit_test_setup(good_values_are_taken, clear_environment),
    cmocka_unit_test_setup(the_release_of_ros_decides_how_long_ids_are, clear_environment),
    cmocka_unit_test_setup(bad_values_are_named_with_what_they_may_be, clear_environment),
    cmocka_unit_test_setup(peers_are_split_and_localhost_only_drops_them, clear_environment),
    cmocka_unit_test_setup(peers_that_are_listed_are_found, clear_environment),
    cmocka_unit_test_setup(settings_of_cyclone_count_last, clear_environment),
    cmocka_unit_test_setup(bad_settings_of_cyclone_are_told, clear_environment),
};

BUS_TEST_MAIN(tests, NULL, NULL)

// understudy doctor: what is planted is found, with a remedy; what is well is left alone.
#include "test_network_support.h"

static bool has_finding(const cJSON *json, const char *weight, const char *where, const char *what) {
    const cJSON *finding;
    cJSON_ArrayForEach(finding, member(json, "findings")) {
        if (strcmp(member(finding, "weight")->valuestring, weight) == 0 &&
            strcmp(member(finding, "where")->valuestring, where) == 0 &&
            strstr(member(finding, "what")->valuestring, what) && member(finding, "remedy")->valuestring[0])
            return true;
    }
    return false;
}

static void doctor_finds_nothing_wrong_with_a_robot(void **state) {
    (void)state;
    topics_with("/k10/odom", "");
    outcome a = run("doctor --wait 3 --listen 3");
    assert_code(a, 0);
    assert_has(a.out, "nothing is wrong");
    assert_has(a.out, "/k10/driver");
    assert_has(a.out, "ROS_DOMAIN_ID");
    assert_has(a.out, "lo ");
}

// A program of somebody else that looks for nobody: the doctor says so, and says why.
static void doctor_finds_a_program_that_does_not_hear_us(void **state) {
    (void)state;
    use_domain(quiet_domain());
    char line[600];
    snprintf(line, sizeof line,
             "ROS_DOMAIN_ID=%d ROS_AUTOMATIC_DISCOVERY_RANGE=OFF exec %s/tests/e2e/meet_cyclone jazzy %d a b "
             ">/dev/null",
             (int)quiet_domain(), US_BINARY_DIR, (int)quiet_domain());
    FILE *program = popen(line, "w");
    assert_non_null(program);
    bool is_found = false;
    for (const double until = clock_now() + PATIENCE; !is_found && clock_now() < until;) {
        outcome a = run("doctor --wait 0.2 --listen 0.1");
        const char *at = strstr(a.out, "meet_cyclone (process ");
        is_found = at && strstr(at, "ROS_AUTOMATIC_DISCOVERY_RANGE is OFF") && a.code == 1;
    }
    pclose(program);
    assert_true(is_found);
    outcome b = run("doctor --wait 0.2 --listen 0.1");
    assert_null(strstr(b.out, "ROS_AUTOMATIC_DISCOVERY_RANGE is OFF"));
}

static us_writer *add_node_writer(us_bus *bus, const char *node, const char *topic,
                                  const us_message_type *type, us_qos qos) {
    us_error err = {0};
    us_writer *writer = NULL;
    int32_t index = -1;
    expect_ok(us_bus_add_node(bus, "/", node, &index, &err), &err);
    expect_ok(us_bus_add_writer(bus, &(us_topic_def){topic, type, qos, index}, &writer, &err), &err);
    return writer;
}

static void write_odometry(us_writer *writer, int32_t sec) {
    us_msg_odometry message = {.header.stamp.sec = sec};
    uint8_t bytes[2048];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_odometry, &message, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_writer_write(writer, bytes, length, 0), US_OK);
}

static void doctor_finds_what_was_planted(void **state) {
    (void)state;
    use_domain(quiet_domain());
    us_bus *one = open_bus("cyclone", quiet_domain()), *two = open_bus("cyclone", quiet_domain());
    us_qos sensor = us_qos_sensor(), reliable = {.is_reliable = true, .depth = 10},
           latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    // A node's name twice; two who drive one robot; two who tell the time.
    add_node_writer(one, "twin", "/r/cmd_vel", usi_type_twist, reliable);
    add_node_writer(two, "twin", "/r/cmd_vel", usi_type_twist, reliable);
    add_writer(one, "/clock", usi_type_clock, reliable);
    add_writer(two, "/clock", usi_type_clock, reliable);
    // A reader that asks for more than is offered, in two ways; and one that waits for another type.
    add_writer(one, "/r/imu", usi_type_imu, sensor);
    add_reader(two, "/r/imu", usi_type_imu, reliable, NULL, NULL);
    add_writer(one, "/r/map", usi_type_string, reliable);
    add_reader(two, "/r/map", usi_type_string, latched, NULL, NULL);
    add_writer(one, "/r/odom", usi_type_odometry, reliable);
    add_reader(two, "/r/odom", usi_type_pose_stamped, reliable, NULL, NULL);
    // What overrides of QoS, and programs of plain DDS, may ask for.
    add_writer(one, "/r/hurry", usi_type_string, (us_qos){.is_reliable = true, .deadline = 2000000000});
    add_reader(two, "/r/hurry", usi_type_string, (us_qos){.deadline = 1000000000}, NULL, NULL);
    add_writer(one, "/r/alive", usi_type_string, reliable);
    add_reader(two, "/r/alive", usi_type_string, (us_qos){.lease = 1000000000}, NULL, NULL);
    add_writer(one, "/r/mine", usi_type_string, reliable);
    add_reader(two, "/r/mine", usi_type_string, (us_qos){.is_exclusive = true}, NULL, NULL);
    add_writer(one, "/r/lab", usi_type_string, (us_qos){.depth = 1, .partition = "lab,k10"});
    add_reader(two, "/r/lab", usi_type_string, (us_qos){.depth = 1, .partition = "k11"}, NULL, NULL);
    // Nothing is wrong with these.
    add_writer(one, "/fine_part", usi_type_string, (us_qos){.depth = 1, .partition = "lab,k1*"});
    add_reader(two, "/fine_part", usi_type_string, (us_qos){.depth = 1, .partition = "k10"}, NULL, NULL);
    add_writer(one, "/fine_hurry", usi_type_string, (us_qos){.depth = 1, .deadline = 500000000});
    add_reader(two, "/fine_hurry", usi_type_string, (us_qos){.depth = 1, .deadline = 1000000000}, NULL, NULL);
    add_writer(one, "/fine", usi_type_string, latched);
    add_reader(two, "/fine", usi_type_string, sensor, NULL, NULL);
    outcome a = run("doctor --json --wait 5 --listen 0");
    assert_code(a, 1);
    cJSON *json = parse_json(a.out);
    assert_true(has_finding(json, "warning", "/twin", "more than one program"));
    assert_true(has_finding(json, "warning", "/r/cmd_vel", "both command this robot"));
    assert_true(has_finding(json, "error", "/clock", "both publish the time"));
    assert_true(has_finding(json, "error", "/r/imu", "reads reliably"));
    assert_true(has_finding(json, "error", "/r/map", "transient local"));
    assert_true(has_finding(json, "error", "/r/odom", "do not match"));
    assert_true(has_finding(json, "error", "/r/hurry", "asks for a sample every 1 s"));
    assert_true(has_finding(json, "error", "/r/alive", "more liveliness"));
    assert_true(has_finding(json, "error", "/r/mine", "ownership"));
    assert_true(has_finding(json, "error", "/r/lab", "partition \"k11\""));
    assert_lacks(a.out, "/fine");
    assert_int_equal(cJSON_GetArraySize(member(json, "participants")), 2);
    cJSON_Delete(json);
    us_bus_close(one);
    us_bus_close(two);
}

static void doctor_compares_stamps_with_the_clock(void **state) {
    (void)state;
    use_domain(quiet_domain());
    us_bus *bus = open_bus("cyclone", quiet_domain());
    us_qos last = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    us_writer *odom = add_node_writer(bus, "late", "/late/odom", usi_type_odometry, last);
    // Said again and again, for the doctor listens only to what is said while it listens.
    pid_t pid = start("doctor", "doctor --json --wait 2 --listen 5");
    int status = 0;
    double until = clock_now() + PATIENCE;
    while (waitpid(pid, &status, WNOHANG) != pid) {
        assert_true(clock_now() < until);
        write_odometry(odom, 12);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    forget(pid);
    char *text = read_text("doctor.out");
    assert_non_null(text);
    assert_int_equal(exit_code(status), 1);
    cJSON *json = parse_json(text);
    assert_true(has_finding(json, "warning", "/late/odom", "nobody writes /clock"));
    cJSON_Delete(json);
    free(text);
    us_bus_close(bus);
}

static void doctor_tells_of_bad_variables_and_goes_on(void **state) {
    (void)state;
    setenv("ROS_DOMAIN_ID", "lots", 1);
    setenv("RMW_IMPLEMENTATION", "rmw_zenoh_cpp", 1);
    setenv("CYCLONEDDS_URI", "file:///nonexistent.xml", 1);
    // With none of them usable it would be domain 0 and others would be met: nobody is looked for.
    setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF", 1);
    outcome a = run("doctor --json --wait 0 --listen 0");
    outcome b = {.code = a.code, .out = strdup(a.out)};
    outcome c = run("topics --wait 0");
    unsetenv("RMW_IMPLEMENTATION");
    unsetenv("CYCLONEDDS_URI");
    setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", 1);
    assert_int_equal(b.code, 1);
    cJSON *json = parse_json(b.out);
    assert_true(has_finding(json, "error", "ROS_DOMAIN_ID", "\"lots\""));
    assert_true(has_finding(json, "error", "RMW_IMPLEMENTATION", "rmw_zenoh_cpp"));
    assert_true(has_finding(json, "error", "CYCLONEDDS_URI", "cannot be read"));
    assert_true(has_finding(json, "warning", "ROS_AUTOMATIC_DISCOVERY_RANGE", "nobody is looked for"));
    cJSON_Delete(json);
    free(b.out);
    assert_int_equal(c.code, 2);
    assert_has(c.err, "ROS_DOMAIN_ID");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(doctor_finds_nothing_wrong_with_a_robot, use_own_domain),
        cmocka_unit_test_setup(doctor_finds_what_was_planted, use_own_domain),
        cmocka_unit_test_setup(doctor_finds_a_program_that_does_not_hear_us, use_own_domain),
        cmocka_unit_test_setup(doctor_compares_stamps_with_the_clock, use_own_domain),
        cmocka_unit_test_setup(doctor_tells_of_bad_variables_and_goes_on, use_own_domain),
    };
    return cmocka_run_group_tests(tests, start_robot, kill_the_rest);
}

// understudy topics and echo, as a user has them: real processes on a domain of their own, loopback only.
#include "test_network_support.h"
#include "understudy/interface.h"
#include "understudy/record.h"

static void every_command_of_the_network_explains_itself(void **state) {
    (void)state;
    static const char *const commands[] = {"topics", "echo", "drive", "record", "replay", "doctor"};
    char *all = strdup(run("help").out);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        assert_has(all, commands[i]);
        outcome a = run("%s --help", commands[i]);
        assert_code(a, 0);
        char usage[64];
        snprintf(usage, sizeof usage, "Usage: understudy %s", commands[i]);
        assert_has(a.out, usage);
        assert_has(a.out, "Example");
    }
    free(all);
    assert_has(run("record --help").out, "record FILE [TOPIC...] [OPTIONS]");
}

static void topics_lists_what_the_robot_says(void **state) {
    (void)state;
    outcome a = topics_with("/k10/odom", "");
    assert_has(a.out, "nav_msgs/msg/Odometry");
    assert_has(a.out, "/k10/cmd_vel");
    assert_has(a.out, "/clock");
    assert_has(a.out, "/k10/driver");
    assert_lacks(a.out, "ros_discovery_info");
    outcome b = topics_with("/k10/odom", "--all");
    assert_has(b.out, "ros_discovery_info");
}

static void topics_as_json_have_rates_and_qos(void **state) {
    (void)state;
    outcome a = topics_with("/k10/robot_description", "--json --rates 1");
    cJSON *json = parse_json(a.out);
    assert_int_equal((int)number_of(json, "domain"), test_domain());
    const cJSON *topic;
    int n_seen = 0;
    cJSON_ArrayForEach(topic, member(json, "topics")) {
        const char *name = member(topic, "topic")->valuestring;
        const cJSON *writers = member(topic, "writers");
        if (strcmp(name, "/k10/odom") == 0) {
            n_seen++;
            assert_string_equal(member(topic, "type")->valuestring, "nav_msgs/msg/Odometry");
            assert_int_equal(cJSON_GetArraySize(writers), 1);
            assert_string_equal(member(cJSON_GetArrayItem(writers, 0), "node")->valuestring, "/k10/driver");
            assert_true(cJSON_IsTrue(member(cJSON_GetArrayItem(writers, 0), "reliable")));
            assert_true(cJSON_IsFalse(member(cJSON_GetArrayItem(writers, 0), "transient_local")));
            assert_true(number_of(topic, "samples") > 1);
            assert_true(number_of(topic, "rate") > 0);
        } else if (strcmp(name, "/k10/robot_description") == 0) {
            n_seen++;
            assert_true(cJSON_IsTrue(member(cJSON_GetArrayItem(writers, 0), "transient_local")));
        }
    }
    assert_int_equal(n_seen, 2);
    cJSON_Delete(json);
}

static void echo_prints_messages(void **state) {
    (void)state;
    outcome a = run("echo /k10/odom --count 2 --timeout 20");
    assert_code(a, 0);
    assert_int_equal(count_text(a.out, "---\n"), 2);
    assert_int_equal(count_text(a.out, "child_frame_id: k10/base\n"), 2);
    // What was said before it listened comes too, where the writer keeps it.
    outcome b = run("echo k10/robot_description --count 1 --timeout 20");
    assert_code(b, 0);
    assert_has(b.out, "<robot");
    outcome c = run("echo /k10/odom --count 1 --raw --timeout 20");
    assert_code(c, 0);
    assert_int_equal(strncmp(c.out, "00 01 00 00 ", 12), 0);
}

static void echo_picks_fields(void **state) {
    (void)state;
    outcome a = run("echo /k10/odom --count 1 --field pose.pose.orientation.w --timeout 20");
    assert_code(a, 0);
    char *end_of_number;
    double w = strtod(a.out, &end_of_number);
    assert_true(end_of_number != a.out && w >= -1 && w <= 1);
    assert_string_equal(end_of_number, "\n---\n");
    outcome b = run("echo /k10/joint_states --count 1 --field name --timeout 20");
    assert_code(b, 0);
    assert_has(b.out, ": front_left_drive\n");
    outcome c = run("echo /k10/odom --count 1 --field pose.pose.positin.x --timeout 20");
    assert_int_equal(c.code, 2);
    assert_has(c.err, "did you mean \"pose.pose.position.x\"?");
}

static void echo_makes_csv(void **state) {
    (void)state;
    outcome a = run("echo /k10/odom --count 3 --csv --field pose.pose.position,child_frame_id --timeout 20");
    assert_code(a, 0);
    char *rest = a.out, *line = strsep(&rest, "\n");
    assert_string_equal(line,
                        "time,child_frame_id,pose.pose.position.x,pose.pose.position.y,pose.pose.position.z");
    double last = -1;
    for (int i = 0; i < 3; i++) {
        line = strsep(&rest, "\n");
        double time = strtod(line, NULL);
        assert_true(time > last);
        last = time;
        assert_int_equal(count_text(line, ","), 4);
        assert_has(line, ",k10/base,");
    }
}

static void echo_of_an_unknown_topic_names_the_nearest(void **state) {
    (void)state;
    topics_with("/k10/odom", "");
    outcome a = run("echo /k10/odmo --timeout 2");
    assert_int_equal(a.code, 3);
    assert_has(a.err, "there is no topic /k10/odmo");
    assert_has(a.err, "did you mean /k10/odom?");
    // Somebody waits for it, but nobody says anything.
    outcome b = run("echo /k10/joint_commands --timeout 1");
    assert_int_equal(b.code, 3);
    assert_has(b.err, "nobody writes it");
}

// A topic of plain DDS of somebody's own type, in a partition, is heard with the file that has the type.
static void topics_of_ones_own_types_are_echoed_and_recorded(void **state) {
    (void)state;
    const char *const file = "own.idl";
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs("module lab { struct State { @key string<16> name; double level; }; };", f);
    assert_int_equal(fclose(f), 0);
    us_error err = {0};
    us_interface_def types = us_interface_def_default();
    us_interface *own = NULL;
    types.n_file = 1;
    types.files = &file;
    if (us_interface_load(&types, &own, &err)) fail_msg("%s", err.message);
    us_bus_def def = us_bus_def_default();
    us_bus *bus = NULL;
    us_writer *writer = NULL;
    def.domain = test_domain();
    if (us_bus_open(&def, &bus, &err)) fail_msg("%s", err.message);
    const us_message_type *type = us_interface_find(own, "lab::State");
    const us_qos qos = {.is_reliable = true, .is_transient_local = true, .depth = 1, .partition = "lab"};
    const us_topic_def topic = {"dds:lab_state", type, qos, -1};
    if (us_bus_add_writer(bus, &topic, &writer, &err)) fail_msg("%s", err.message);
    const us_member_value values[] = {{"name", 0, "tank"}, {"level", 0.75, NULL}};
    uint8_t bytes[64];
    size_t length = 0;
    if (us_message_compose(type, values, 2, bytes, sizeof bytes, &length, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_writer_write(writer, bytes, length, 0), US_OK);

    outcome a = run("echo dds:lab_state --interface own.idl --count 1 --timeout 20");
    assert_code(a, 0);
    assert_string_equal(a.out, "name: tank\nlevel: 0.75\n---\n");
    outcome b = run("echo dds:lab_state --count 1 --timeout 20");
    assert_int_equal(b.code, 3);
    assert_has(b.err, "is of type lab::State, which is not known here");
    assert_has(b.err, "--interface FILE.idl");
    assert_int_equal(run("echo dds:lab_state --interface other.idl").code, 2);
    assert_has(topics_with("/k10/odom", "").out, "and 1 that is of plain DDS: --all");
    // A recording begins with what is kept, once it has found who keeps it.
    us_recording *recording = NULL;
    us_recorded m;
    bool has = false;
    const double until = clock_now() + PATIENCE;
    while (!has) {
        if (clock_now() > until) fail_msg("nothing is recorded");
        us_recording_close(recording);
        assert_code(run("record own.mcap dds:lab_state --interface own.idl --time 2 --quiet"), 0);
        if (us_recording_open("own.mcap", NULL, &recording, &err)) fail_msg("%s", err.message);
        assert_int_equal(us_recording_next(recording, &m, &has, &err), US_OK);
    }
    assert_true(us_message_get_number(type, m.bytes, m.length, "level") == 0.75);
    assert_string_equal(us_recording_get_channel(recording, m.channel).topic, "dds:lab_state");
    us_recording_close(recording);
    us_bus_close(bus);
    us_interface_release(own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_command_of_the_network_explains_itself, use_own_domain),
        cmocka_unit_test_setup(topics_lists_what_the_robot_says, use_own_domain),
        cmocka_unit_test_setup(topics_as_json_have_rates_and_qos, use_own_domain),
        cmocka_unit_test_setup(echo_prints_messages, use_own_domain),
        cmocka_unit_test_setup(echo_picks_fields, use_own_domain),
        cmocka_unit_test_setup(echo_makes_csv, use_own_domain),
        cmocka_unit_test_setup(echo_of_an_unknown_topic_names_the_nearest, use_own_domain),
        cmocka_unit_test_setup(topics_of_ones_own_types_are_echoed_and_recorded, use_own_domain),
    };
    return cmocka_run_group_tests(tests, start_robot, kill_the_rest);
}

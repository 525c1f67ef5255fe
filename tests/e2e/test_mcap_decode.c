// A recording of a run, read by programs that others wrote: every message of every channel decodes by the
// schema in the file.
#include "test_cli_support.h"

static int count_of(const char *text, const char *topic) {
    char line[200], type[100];
    int n = -1;
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        int found = 0;
        if (sscanf(at, "%199s %99s %d", line, type, &found) == 3 && strcmp(line, topic) == 0) n = found;
    }
    return n;
}

static void every_message_of_a_run_is_decoded_by_others(void **state) {
    (void)state;
    const char *npm = getenv("US_NPM");
    char path[1200];
    snprintf(path, sizeof path, "%s/@mcap/core/package.json", npm ? npm : "");
    if (!npm || access(path, R_OK) != 0) {
        print_message("skipped: US_NPM names no node_modules directory with @mcap/core\n");
        skip();
    }
    assert_code(run("run %s/scenes/default.xml --time 2 --rate max --offline --quiet --record run.mcap",
                    US_SOURCE_DIR),
                0);
    char command[2000], text[16384];
    snprintf(command, sizeof command, "US_NPM='%s' node '%s/tests/e2e/mcap_decode.mjs' run.mcap 2>&1", npm,
             US_SOURCE_DIR);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(text, 1, sizeof text - 1, pipe);
    text[n] = 0;
    int code = pclose(pipe);
    if (code != 0) print_message("%s\n", text);
    assert_int_equal(code, 0);
    // From tick 0 to tick 2000, both included.
    assert_int_equal(count_of(text, "/understudy/ticks"), 2001);
    assert_int_equal(count_of(text, "/k10/joint_states"), 101);
    assert_int_equal(count_of(text, "/k10/odom"), 101);
    assert_int_equal(count_of(text, "/k10/imu/data"), 201);
    assert_int_equal(count_of(text, "/tf"), 101);
    assert_int_equal(count_of(text, "/k10/robot_description"), 1);
    assert_int_equal(count_of(text, "/k10/motor_group/status"), 51);
    assert_true(count_of(text, "/diagnostics") >= 2);
    assert_true(count_of(text, "/clock") >= 400);
    assert_non_null(strstr(text, "joints 10 first left_rocker"));
    assert_non_null(strstr(text, "frame k10/odom stamp 2"));
    assert_non_null(strstr(text, "tick 2000"));
    // What rosbag2 offers when it plays the file: numbers of rmw (history 1 keep last, 2 keep all;
    // reliability 1 reliable; durability 1 transient local, 2 volatile).
    assert_non_null(strstr(text, "bag records 2 messages "));
    assert_non_null(strstr(text, "duration 2000000000 file run.mcap run.mcap"));
    assert_non_null(
        strstr(text, "offers /k10/robot_description history 1 depth 1 reliability 1 durability 1\n"));
    assert_non_null(strstr(text, "offers /tf history 1 depth 100 reliability 1 durability 2\n"));
    assert_non_null(strstr(text, "offers /k10/odom history 1 depth 10 reliability 1 durability 2\n"));
    // Of what is no topic there is nothing to offer: rosbag2 takes its defaults.
    assert_non_null(strstr(text, "offers /understudy/ticks \n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_message_of_a_run_is_decoded_by_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

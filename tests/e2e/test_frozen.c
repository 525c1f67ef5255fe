// Programs that somebody stops for a while (SIGSTOP) and lets go on, as a debugger, a full memory or a
// machine with too much to do may: what they had is still there, they go on, and what was lost is said.
// Switches that are stopped are those of test_switch_lease.c, pages that are not read those of
// test_web_hostile.c.
#include "test_network_support.h"

enum { FREEZE_MS = 1500 };  // longer than the second from which on a standstill is one

static void freeze(pid_t pid) {
    assert_int_equal(kill(pid, SIGSTOP), 0);
    const double until = clock_now() + 1e-3 * FREEZE_MS;
    while (clock_now() < until)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(kill(pid, SIGCONT), 0);
}

static bool has(const char *path, const char *part) {
    char *text = read_text(path);
    const bool is_there = text && strstr(text, part);
    free(text);
    return is_there;
}

static long size_of(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? (long)about.st_size : 0;
}

static pid_t start_flat(const char *options) {
    pid_t pid = start("robot", "run %s/scenes/flat.xml --headless %s", US_SOURCE_DIR, options);
    // Drive waits for somebody who listens.
    WAIT_FOR(run("drive k10 --v 0 --time 0 --quiet").code == 0);
    return pid;
}

static void a_run_goes_on_and_its_recording_is_whole(void **state) {
    (void)state;
    remove("frozen.mcap");
    pid_t robot = start_flat("--record frozen.mcap");
    freeze(robot);
    const long before = size_of("frozen.mcap");
    assert_code(run("drive k10 --v 0.2 --time 1"), 0);
    WAIT_FOR(size_of("frozen.mcap") > before);
    end(robot);
    // The time that it stood still is not simulated, and is said.
    assert_true(has("robot.out", "schedule slipped by "));
    outcome a = run("replay frozen.mcap --verify --scene %s/scenes/flat.xml", US_SOURCE_DIR);
    assert_code(a, 0);
    assert_has(a.out, "same: ");
}

static void a_recording_of_the_network_says_what_may_be_missing(void **state) {
    (void)state;
    remove("heard.mcap");
    pid_t robot = start_flat("--quiet"), recorder = start("record", "record heard.mcap");
    WAIT_FOR(size_of("heard.mcap") > 20000);
    freeze(recorder);
    const long before = size_of("heard.mcap");
    WAIT_FOR(has("record.err", "stood still for "));
    WAIT_FOR(size_of("heard.mcap") > before + 20000);
    assert_true(has("record.err", "may be missing in heard.mcap"));
    end(recorder);
    assert_code(run("replay heard.mcap --compare heard.mcap"), 0);
    end(robot);
}

static void a_driver_says_that_the_robot_was_without(void **state) {
    (void)state;
    pid_t robot = start_flat("--quiet"), driver = start("drive", "drive k10 --v 0.2");
    // It drives, stands still by its own watchdog, and drives again.
    WAIT_FOR(strstr(run("echo /k10/odom --count 1 --field twist.twist.linear.x").out, "0.2") ||
             strstr(run("echo /k10/odom --count 1 --field twist.twist.linear.x").out, "0.19"));
    freeze(driver);
    WAIT_FOR(has("drive.err", "the robot had no commands meanwhile"));
    WAIT_FOR(strstr(run("echo /k10/odom --count 1 --field twist.twist.linear.x").out, "0.2") ||
             strstr(run("echo /k10/odom --count 1 --field twist.twist.linear.x").out, "0.19"));
    end(driver);
    assert_true(has("drive.out", "sent "));
    end(robot);
}

// What was due meanwhile does not come in one burst: it takes as long as the recording, and the standstill.
static void a_recording_that_is_played_goes_on_later(void **state) {
    (void)state;
    assert_code(
        run("run %s/scenes/flat.xml --offline --headless --rate max --time 4 --quiet --record played.mcap",
            US_SOURCE_DIR),
        0);
    const double begun = clock_now();
    pid_t player = start("play", "replay played.mcap");
    WAIT_FOR(strstr(run("echo /k10/odom --count 1 --timeout 5 --field child_frame_id").out, "k10/"));
    freeze(player);
    WAIT_FOR(has("play.out", "played "));
    end(player);
    assert_true(clock_now() - begun > 4 + 1e-3 * FREEZE_MS);
    assert_true(has("play.err", "stood still for "));
    assert_true(has("play.err", "comes that much later"));
}

static void what_was_measured_meanwhile_is_said_to_be_wrong(void **state) {
    (void)state;
    pid_t robot = start_flat("--quiet"), measuring = start("rates", "topics --rates 15");
    // It is measuring when others see its readers, which belong to no node.
    WAIT_FOR(strstr(run("topics --wait 0.5").out, "/k10/driver -> (DDS)"));
    freeze(measuring);
    WAIT_FOR(has("rates.out", "/k10/odom"));
    assert_true(has("rates.err", "what was measured in that time is wrong"));
    end(measuring);
    end(robot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_run_goes_on_and_its_recording_is_whole, kill_the_rest),
        cmocka_unit_test_teardown(a_recording_of_the_network_says_what_may_be_missing, kill_the_rest),
        cmocka_unit_test_teardown(a_driver_says_that_the_robot_was_without, kill_the_rest),
        cmocka_unit_test_teardown(a_recording_that_is_played_goes_on_later, kill_the_rest),
        cmocka_unit_test_teardown(what_was_measured_meanwhile_is_said_to_be_wrong, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, NULL);
}

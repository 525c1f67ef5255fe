// Ctrl-C: every command ends soon, whatever it is doing: while it starts, while it runs, while nobody reads
// what it prints.
//
// A person who presses Ctrl-C should not have to wait: 0.2 s on a machine that is free. This machine may do
// other things meanwhile, so that a test fails at BOUND only; what was measured is printed.
#include <signal.h>
#include <time.h>

#include "domain.h"
#include "instrumented.h"
#include "test_cli_support.h"

// s. A second and not 0.2: tests run beside others, and sanitizers make all of it slower.
static const double BOUND = IS_INSTRUMENTED ? 4 : 1;

static double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_for(double seconds) {
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL);
}

static pid_t start(const char *line, int out) {
    char text[2048], *argv[MAX_ARGS];
    snprintf(text, sizeof text, "%s", line);
    split(text, argv);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (out >= 0) {
        posix_spawn_file_actions_adddup2(&actions, out, 1);
    } else {
        posix_spawn_file_actions_addopen(&actions, 1, "out.txt", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    }
    posix_spawn_file_actions_addopen(&actions, 2, "err.txt", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

// Waits for the process; seconds from now until its end, or -1 when that took longer than `patience`.
static double wait_for_end(pid_t pid, double patience, int *out_code) {
    const double begin = clock_now();
    int status = 0;
    while (clock_now() - begin < patience) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            *out_code = exit_code(status);
            return clock_now() - begin;
        }
        sleep_for(0.002);
    }
    return -1;
}

static double worst;
static char worst_line[200];
static char pressed[4000];  // " run echo ...": the commands that were tried

// Starts, waits, presses Ctrl-C. A command that has ended by then is none that takes long.
static void press(const char *line, double after) {
    const size_t n = strlen(pressed);
    snprintf(pressed + n, sizeof pressed - n, " %.*s ", (int)strcspn(line, " "), line);
    const pid_t pid = start(line, -1);
    int code = 0;
    if (wait_for_end(pid, after, &code) >= 0) {
        if (code == 2) {
            char *err = read_text("err.txt");
            fail_msg("%s: this is no command: %s", line, err);
        }
        return;
    }
    assert_int_equal(kill(pid, SIGINT), 0);
    const double took = wait_for_end(pid, 20 * BOUND, &code);
    if (took < 0) kill(pid, SIGKILL);
    if (took < 0 || took > BOUND)
        fail_msg("%s, after %g s: Ctrl-C took %g s (-1: it did not end)", line, after, took);
    if (code > 4 && code != 128 + SIGINT) fail_msg("%s, after %g s: exit code %d", line, after, code);
    if (took > worst) {
        worst = took;
        snprintf(worst_line, sizeof worst_line, "%s, after %g s", line, after);
    }
}

static pid_t robot = -1;

// A recording is on the disk when its program ends, and a disk that others write to may take seconds for it.
// What is measured here are programs: their files are in memory where the system has a place for that.
static char directory[] = "/dev/shm/us-stop-XXXXXX";
static bool has_directory;

// A robot on the network and a recording of it: commands that listen have something to hear.
static int set_up(void **state) {
    (void)state;
    has_directory = mkdtemp(directory) && chdir(directory) == 0;
    char line[1024];
    snprintf(line, sizeof line,
             "run %s/scenes/default.xml --offline --rate max --time 3 --record seen.mcap --quiet",
             US_SOURCE_DIR);
    int code = 0;
    const pid_t pid = start(line, -1);
    if (wait_for_end(pid, 60, &code) < 0 || code != 0) return -1;
    snprintf(line, sizeof line, "run %s/scenes/default.xml --headless --quiet", US_SOURCE_DIR);
    robot = start(line, -1);
    // Drive waits for somebody who listens.
    const double until = clock_now() + 60;
    do
        if (wait_for_end(start("drive k10 --v 0 --time 0 --quiet", -1), 20, &code) >= 0 && code == 0)
            return 0;
    while (clock_now() < until);
    return -1;
}

static int tear_down(void **state) {
    (void)state;
    int code = 0;
    kill(robot, SIGINT);
    if (wait_for_end(robot, 20, &code) < 0) kill(robot, SIGKILL);
    print_message("the longest: %.3f s (%s)\n", worst, worst_line);
    char line[64];
    snprintf(line, sizeof line, "rm -rf %s", directory);
    if (has_directory && system(line)) return -1;
    return code == 0 ? 0 : -1;
}

static void press_at_all_times(const char *format, const char *scene) {
    static const double moments[] = {0.03, 0.12, 0.35};
    char line[1024];
    snprintf(line, sizeof line, format, US_SOURCE_DIR, scene);
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++)
        press(line, moments[i]);
}

static void commands_of_the_network_end(void **state) {
    (void)state;
    static const char *const lines[] = {
        "record x.mcap",
        "echo /k10/odom",
        "topics --rates 30",
        "doctor --wait 30",
        "timing k10",
        "drive k10 --v 0.1",
        "replay seen.mcap",
        "switch k10 --status --wait 30",
        "switch k10 --to proxy --wait 30",
        "switch k10 --watch",
        "tell pause",
        "fault k10 imu=stuck",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        press_at_all_times(lines[i], "");
    char line[200];
    snprintf(line, sizeof line, "switch k10 --evidence none --operators %d --hardware %d --proxy %d",
             test_domain_of(0), test_domain_of(1), test_domain_of(2));
    press_at_all_times(line, "");
}

static void runs_end(void **state) {
    (void)state;
    press_at_all_times("run %s/scenes/%s.xml --port 0 --quiet --record r.mcap", "default");
    press_at_all_times("run %s/scenes/%s.xml --headless --quiet --offline --rate max", "default");
    press_at_all_times("run %s/scenes/%s.xml --port 0 --quiet --offline", "forest");
    press_at_all_times("run %s/scenes/%s.xml --headless --quiet --offline --own r0 --share alone", "convoy");
}

static void commands_that_compute_end(void **state) {
    (void)state;
    press_at_all_times("replay seen.mcap --verify --scene %s/scenes/%s.xml", "default");
    press_at_all_times("bench %s/scenes/%s.xml --steps 1000000", "default");
    press_at_all_times("bench chain-100 --steps 1000000", "");
    press_at_all_times("check %s/scenes/%s.xml", "forest");
    press_at_all_times("info %s/scenes/%s.xml", "forest");
    press_at_all_times("eval %s/scenes/%s.xml", "forest");
    press_at_all_times("sense %s/scenes/%s.xml --time 1000 -o frame.ply", "lidar");
    char line[1024];
    snprintf(line, sizeof line,
             "stereo %s/examples/stereo/left.png %s/examples/stereo/right.png --from -100 "
             "--disparities 256 -o d.png",
             US_SOURCE_DIR, US_SOURCE_DIR);
    press_at_all_times(line, "");
    press("keys create keystore", 0.01);
    for (int i = 0; i < 3; i++) {
        // A site that was not finished is in the way of the next.
        if (system("rm -rf site")) fail_msg("the directory \"site\" cannot be removed");
        press("terrain random -o site --size 20000 --spacing 2 --method patch", 0.05 + 0.15 * i);
    }
}

// Somebody who listens and does not answer, such as a program in a debugger, holds nobody up.
static void a_frozen_listener_holds_nobody_up(void **state) {
    (void)state;
    char line[1024];
    snprintf(line, sizeof line, "run %s/scenes/default.xml --headless --quiet", US_SOURCE_DIR);
    const pid_t listener = start("record y.mcap", -1), speaker = start(line, -1);
    int code = 0;
    assert_true(wait_for_end(speaker, 1.5, &code) < 0);
    assert_int_equal(kill(listener, SIGSTOP), 0);
    assert_true(wait_for_end(speaker, 0.3, &code) < 0);
    assert_int_equal(kill(speaker, SIGINT), 0);
    const double took = wait_for_end(speaker, 20 * BOUND, &code);
    assert_int_equal(kill(listener, SIGCONT), 0);
    assert_int_equal(kill(listener, SIGINT), 0);
    assert_true(wait_for_end(listener, 20, &code) >= 0);
    if (took < 0) kill(speaker, SIGKILL);
    if (took < 0 || took > BOUND) fail_msg("Ctrl-C took %g s (-1: it did not end)", took);
}

// A pager that nobody looks at reads nothing: the pipe is full, and the command waits in its write.
static void a_command_whose_output_nobody_reads_ends(void **state) {
    (void)state;
    int pipe_ends[2];
    assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
    assert_true(fcntl(pipe_ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    const pid_t pid = start("echo /k10/odom", pipe_ends[1]);
    int code = 0;
    assert_true(wait_for_end(pid, 1.5, &code) < 0);
    assert_int_equal(kill(pid, SIGINT), 0);
    const double took = wait_for_end(pid, 20 * BOUND, &code);
    if (took < 0) kill(pid, SIGKILL);
    if (took < 0 || took > BOUND) fail_msg("Ctrl-C took %g s (-1: it did not end)", took);
    assert_int_equal(code, 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

// What was asked for was not done: a script must not go on as if it were.
static void a_command_that_was_not_given_is_no_success(void **state) {
    (void)state;
    char domain[16];
    snprintf(domain, sizeof domain, "%d", test_domain_of(3));
    assert_int_equal(setenv("ROS_DOMAIN_ID", domain, 1), 0);
    const pid_t pid = start("tell pause", -1);
    int code = 0;
    assert_true(wait_for_end(pid, 0.5, &code) < 0);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_true(wait_for_end(pid, 20 * BOUND, &code) >= 0);
    assert_int_equal(code, 3);
    char *err = read_text("err.txt");
    assert_has(err, "stopped before");
    free(err);
}

// Every command of the program is among those above.
static void no_command_was_left_out(void **state) {
    (void)state;
    outcome a = run("help");
    assert_code(a, 0);
    const char *at = strstr(a.out, "Commands:\n");
    assert_non_null(at);
    int n = 0;
    for (at = strchr(at, '\n') + 1; *at == ' '; at = strchr(at, '\n') + 1, n++) {
        char name[40];
        assert_int_equal(sscanf(at, " %30s", name + 1), 1);
        name[0] = ' ';
        memcpy(name + strlen(name), " ", 2);
        if (strcmp(name, " help ") != 0 && !strstr(pressed, name)) fail_msg("%s was not tried", name);
    }
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_of_the_network_end),
        cmocka_unit_test(runs_end),
        cmocka_unit_test(commands_that_compute_end),
        cmocka_unit_test(no_command_was_left_out),
        cmocka_unit_test(a_frozen_listener_holds_nobody_up),
        cmocka_unit_test(a_command_whose_output_nobody_reads_ends),
        cmocka_unit_test(a_command_that_was_not_given_is_no_success),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

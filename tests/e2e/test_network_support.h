// What the tests of the network commands share: a domain of their own, programs in the background, and a
// robot to talk to.
#ifndef UNDERSTUDY_TEST_NETWORK_SUPPORT_H
#define UNDERSTUDY_TEST_NETWORK_SUPPORT_H

#include "test_bus_support.h"
#include "test_cli_support.h"

static const char *const scene = US_SOURCE_DIR "/scenes/default.xml";

// ---- domains and background programs ----

static inline void use_domain(int32_t domain) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)domain);
    setenv("ROS_DOMAIN_ID", text, 1);
}

// The robot that most tests talk to lives on the first; a test that must be alone takes the second.
static inline int32_t quiet_domain(void) { return test_domain_of(1); }

enum { MAX_BACKGROUND = 8 };
static pid_t background[MAX_BACKGROUND];

static inline pid_t keep(pid_t pid) {
    for (int i = 0; i < MAX_BACKGROUND; i++) {
        if (background[i] <= 0) {
            background[i] = pid;
            return pid;
        }
    }
    fail_msg("too many programs at once");
    return pid;
}

static inline void forget(pid_t pid) {
    for (int i = 0; i < MAX_BACKGROUND; i++) {
        if (background[i] == pid) background[i] = 0;
    }
}

// The program with its outputs in the files NAME.out and NAME.err.
__attribute__((format(printf, 2, 3))) static inline pid_t start(const char *name, const char *format, ...) {
    char line[4096], *argv[MAX_ARGS], out[64], err[64];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    split(line, argv);
    snprintf(out, sizeof out, "%s.out", name);
    snprintf(err, sizeof err, "%s.err", name);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_addopen(&actions, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return keep(pid);
}

// Its exit code; fails when it does not end in time.
static inline int wait_for_end(pid_t pid) {
    int status = 0;
    WAIT_FOR(waitpid(pid, &status, WNOHANG) == pid);
    forget(pid);
    return exit_code(status);
}

static inline void end(pid_t pid) {
    kill(pid, SIGTERM);
    assert_int_equal(wait_for_end(pid), 0);
}

static inline int kill_the_rest(void **state) {
    (void)state;
    for (int i = 0; i < MAX_BACKGROUND; i++) {
        if (background[i] <= 0) continue;
        kill(background[i], SIGKILL);
        waitpid(background[i], NULL, 0);
        background[i] = 0;
    }
    return 0;
}

// ---- the robot ----

// A group's setup: an environment in which nothing but the domain is said.
static inline int start_alone(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    use_domain(test_domain());
    setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", 1);
    static const char *const others[] = {"ROS_STATIC_PEERS", "ROS_LOCALHOST_ONLY", "RMW_IMPLEMENTATION",
                                         "CYCLONEDDS_URI", "ROS_DISCOVERY_SERVER"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        unsetenv(others[i]);
    return 0;
}

// The same with a robot.
static inline int start_robot(void **state) {
    start_alone(state);
    start("robot", "run %s --headless --set motor_port=0", scene);
    return 0;
}

static inline int use_own_domain(void **state) {
    (void)state;
    use_domain(test_domain());
    return 0;
}

// Asks until the answer has the text: discovery takes its time on a busy machine.
static inline outcome topics_with(const char *text, const char *options) {
    double until = clock_now() + PATIENCE;
    for (;;) {
        outcome a = run("topics --wait 3 %s", options);
        assert_code(a, 0);
        if (strstr(a.out, text)) return a;
        if (clock_now() > until) fail_msg("\"%s\" is not in:\n%s", text, a.out);
    }
}

static inline int count_text(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        n++;
    return n;
}

#endif

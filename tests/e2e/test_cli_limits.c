// A machine without enough memory or descriptors: the program says so and ends with its code, never by a
// signal.
#include <signal.h>
#include <sys/resource.h>

#include "instrumented.h"
#include "shell.h"
#include "test_cli_support.h"

// Runs the program with a limit of the system's: its code, and all that it printed on standard error.
static outcome run_limited(int resource, rlim_t limit, const char *scene) {
    static char *last;
    char path[600], *argv[] = {(char *)(uintptr_t)program(),
                               (char[]){"run"},
                               path,
                               (char[]){"--port"},
                               (char[]){"0"},
                               (char[]){"--time"},
                               (char[]){"0.05"},
                               (char[]){"--quiet"},
                               NULL};
    snprintf(path, sizeof path, "%s/scenes/%s", US_SOURCE_DIR, scene);
    const pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit both = {limit, limit};
        int out = open("stderr.txt", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (out < 0 || dup2(out, 2) < 0 || close(out) || setrlimit((__rlimit_resource_t)resource, &both))
            _exit(99);
        execv(argv[0], argv);
        _exit(98);
    }
    int status = 0;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    free(last);
    last = read_text("stderr.txt");
    assert_non_null(last);
    return (outcome){.code = exit_code(status), .err = last};
}

// The least limit with which the program runs at all: below it the system cannot load it.
static rlim_t find_least(int resource, rlim_t low, rlim_t high) {
    while (high - low > high / 16 + 1) {
        const rlim_t middle = low + (high - low) / 2;
        const int code = run_limited(resource, middle, "flat.xml").code;
        if (code == 0)
            high = middle;
        else
            low = middle;
    }
    return high;
}

// From far below what a run needs to a little above: wherever it runs out, there is a line with a remedy.
static void sweep(int resource, rlim_t first, rlim_t last, int n) {
    int n_short = 0;
    for (int i = 0; i <= n; i++) {
        const rlim_t limit = first + (last - first) * (rlim_t)i / (rlim_t)n;
        outcome a = run_limited(resource, limit, "flat.xml");
        if (a.code == 0) continue;
        if (strstr(a.err, "error while loading shared libraries")) continue;  // the system's own words
        n_short++;
        if (a.code != 3 || !strstr(a.err, "error: ") || !strstr(a.err, "remedy: "))
            fail_msg("limit %llu: exit code %d, %s", (unsigned long long)limit, a.code, a.err);
    }
    // Else this test saw nothing.
    assert_true(n_short > 0);
}

static void out_of_memory_is_said_and_ends_with_code_3(void **state) {
    (void)state;
    const rlim_t mb = 1 << 20, least = find_least(RLIMIT_AS, 40 * mb, 1000 * mb);
    sweep(RLIMIT_AS, least / 3, least, getenv("US_LONG_TESTS") ? 200 : 12);
}

static void out_of_descriptors_is_said_and_ends_with_code_3(void **state) {
    (void)state;
    const rlim_t least = find_least(RLIMIT_NOFILE, 4, 256);
    sweep(RLIMIT_NOFILE, 8, least, getenv("US_LONG_TESTS") ? (int)least : 10);
}

// ---- every command ----

static const char *const commands[] = {
    "check %s/scenes/flat.xml", "info %s/scenes/flat.xml", "eval %s/scenes/arm.xml",
    "bench chain-6 --steps 3",
    "run %s/scenes/flat.xml --headless --offline --quiet --rate max --time 0.01 --record out.mcap",
    "replay in.mcap --verify --scene %s/scenes/flat.xml", "replay in.mcap --compare in.mcap",
    "terrain random -o site --size 64 --spacing 4 --method patch", "terrain info in.site",
    "keys add in.keys /rover",
    // From here on with a network.
    "topics --wait 0.1", "echo /nothing --timeout 0.1", "drive nobody --v 0.1 --time 0.1", "tell pause",
    "record heard.mcap --time 0.1", "replay in.mcap --rate max", "doctor --wait 0.1 --listen 0.1",
    "switch nobody --status --wait 0.1",
    "switch nobody --evidence none",  // runs until it is told to end
};
enum { N_COMMAND = sizeof commands / sizeof commands[0], FIRST_OF_NETWORK = 10 };

// What the commands read, and what the last one left.
static void prepare_files(bool is_first) {
    assert_true(shell("rm -rf site out.mcap out.csv heard.mcap"));
    if (!is_first) return;
    assert_true(shell("rm -rf in.*"));
    assert_code(run("run %s/scenes/flat.xml --headless --offline --quiet --rate max --time 0.01 "
                    "--record in.mcap",
                    US_SOURCE_DIR),
                0);
    assert_code(run("terrain random -o in.site --size 64 --spacing 4 --method patch"), 0);
    assert_code(run("keys create in.keys"), 0);
}

// Runs a command with a limit, or, with the limit 0, with the n-th allocation failing, for once or for good.
// Its code; what it printed on standard error is in stderr.txt. After 0.7 s one of the network is asked to
// end.
static int run_short(int which, int resource, rlim_t limit, int fail_at, bool stays) {
    const char *format = commands[which];
    char line[1024], *argv[MAX_ARGS], number[16];
    snprintf(line, sizeof line, format, US_SOURCE_DIR);
    split(line, argv);
    snprintf(number, sizeof number, "%d", fail_at);
    const pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit both = {limit, limit};
        int out = open("/dev/null", O_WRONLY), err = open("stderr.txt", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (out < 0 || err < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(99);
        close(out);
        close(err);
        if (fail_at > 0) {
            setenv("LD_PRELOAD", US_BINARY_DIR "/tests/preload/failing_malloc.so", 1);
            setenv("US_FAIL_AT", number, 1);
            if (stays) setenv("US_FAIL_STAYS", "1", 1);
        } else if (setrlimit((__rlimit_resource_t)resource, &both)) {
            _exit(97);
        }
        execv(argv[0], argv);
        _exit(98);
    }
    int status = 0;
    assert_true(pid > 0);
    for (int i = 0; i < 2000 && waitpid(pid, &status, WNOHANG) == 0; i++) {
        usleep(10000);
        if (i == 70 && which >= FIRST_OF_NETWORK) kill(pid, SIGINT);
        if (i == 1999) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            fail_msg("%s does not end", line);
        }
    }
    return exit_code(status);
}

// A short run is good when it came to its end, or says why it did not, with the code for it. `may_crash`: in
// a library that uses memory which it was not given: said, and ended by the signal.
static void judge_short(int which, int code, const char *how, long long n, bool may_crash) {
    char *err = read_text("stderr.txt");
    const bool is_said = strstr(err, "error: ") && (strstr(err, "remedy: ") || strstr(err, "stopped before"));
    const bool is_foreign = may_crash && code == 128 + SIGSEGV && strstr(err, "bad address");
    // One of the network that was asked to end before it could listen to that.
    const bool is_asked = which >= FIRST_OF_NETWORK && code == 128 + SIGINT;
    const bool is_loader = strstr(err, "error while loading shared libraries") != NULL;
    // doctor finds that there is nobody.
    if (code > 1 && !(code <= 4 && is_said) && !is_foreign && !is_loader && !is_asked)
        fail_msg("%s, %s %lld: exit code %d, %s", commands[which], how, n, code, err);
    free(err);
}

static void every_command_says_that_it_is_short_of_memory(void **state) {
    (void)state;
    const bool is_long = getenv("US_LONG_TESTS") != NULL;
    prepare_files(true);
    for (int i = 0; i < N_COMMAND; i++) {
        for (rlim_t mb = i < FIRST_OF_NETWORK ? 60 : 72; mb <= 260; mb += is_long ? 2 : mb / 4) {
            prepare_files(false);
            const int code = run_short(i, RLIMIT_AS, mb << 20, 0, false);
            judge_short(i, code, "MB", (long long)mb, true);
            if (code == 0 && !is_long) break;
        }
    }
}

// What libxml2's schema parser and OpenSSL need is looked for before they are called: wherever a limit of
// memory lies, down to where the program cannot be loaded, none of them crashes.
static void libraries_are_called_only_with_the_memory_that_they_need(void **state) {
    (void)state;
    const char *const names[] = {"check %s", "keys add "};
    const rlim_t step = (rlim_t)(getenv("US_LONG_TESTS") ? 16 : 256) << 10;
    prepare_files(true);
    for (int i = 0; i < N_COMMAND; i++) {
        if (strncmp(commands[i], names[0], 8) != 0 && strncmp(commands[i], names[1], 9) != 0) continue;
        // From where it does all that it should downwards; before the first limit that is too low in small
        // steps.
        bool is_fine = false;
        for (rlim_t limit = (rlim_t)256 << 20; limit > step;) {
            prepare_files(false);
            const int code = run_short(i, RLIMIT_AS, limit, 0, false);
            judge_short(i, code, "kB", (long long)(limit >> 10), false);
            if (is_fine && code == 127) break;
            if (code != 0 && !is_fine) {
                is_fine = true;
                limit += 16 * step;
            } else {
                limit -= is_fine ? step : 16 * step;
            }
        }
        assert_true(is_fine);
    }
}

static void every_command_says_that_it_is_short_of_descriptors(void **state) {
    (void)state;
    prepare_files(true);
    for (int i = 0; i < N_COMMAND; i++) {
        for (rlim_t n = 5; n <= 60; n += getenv("US_LONG_TESTS") ? 1 : n) {
            prepare_files(false);
            judge_short(i, run_short(i, RLIMIT_NOFILE, n, 0, false), "descriptors", (long long)n, true);
        }
    }
}

// One allocation after the other fails, in our code and in that of others.
static void every_allocation_may_fail(void **state) {
    (void)state;
    const bool is_long = getenv("US_LONG_TESTS") != NULL;
    prepare_files(true);
    for (int i = 0; i < FIRST_OF_NETWORK; i++) {
        for (int n = 7, k = 0; n < 20000; n += is_long ? 1 + n / 40 : n * 3 / 2, k++) {
            prepare_files(false);
            judge_short(i, run_short(i, 0, 0, n, k % 2 == 1), "allocation", n, true);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory_is_said_and_ends_with_code_3),
        cmocka_unit_test(out_of_descriptors_is_said_and_ends_with_code_3),
        cmocka_unit_test(every_command_says_that_it_is_short_of_memory),
        cmocka_unit_test(libraries_are_called_only_with_the_memory_that_they_need),
        cmocka_unit_test(every_command_says_that_it_is_short_of_descriptors),
        cmocka_unit_test(every_allocation_may_fail),
    };
    // Shadow memory of sanitizers is no memory that a limit could be set for.
    if (IS_INSTRUMENTED) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

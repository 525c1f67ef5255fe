// A machine without enough memory or descriptors: the program says so and ends with its code, never by a
// signal.
#include <sys/resource.h>

#include "instrumented.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory_is_said_and_ends_with_code_3),
        cmocka_unit_test(out_of_descriptors_is_said_and_ends_with_code_3),
    };
    // Shadow memory of sanitizers is no memory that a limit could be set for.
    if (IS_INSTRUMENTED) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

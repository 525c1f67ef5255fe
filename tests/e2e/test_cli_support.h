// Running the program as a user does: its arguments in, its two outputs and its exit code back.
#ifndef UNDERSTUDY_TEST_CLI_SUPPORT_H
#define UNDERSTUDY_TEST_CLI_SUPPORT_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

extern char **environ;

// What the program left behind. The texts are freed by the next run of the same test.
typedef struct outcome {
    int code;  // exit code; 128 + number when a signal ended it
    char *out, *err;
} outcome;

static inline char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    size_t length = 0, cap = 1 << 16;
    char *text = malloc(cap);
    assert_non_null(text);
    for (size_t n; (n = fread(text + length, 1, cap - length - 1, file)) > 0;) {
        length += n;
        if (length + 1 == cap) {
            cap *= 2;
            text = realloc(text, cap);
            assert_non_null(text);
        }
    }
    fclose(file);
    text[length] = 0;
    return text;
}

static inline void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
}

static inline const char *program(void) {
    const char *path = getenv("US_PROGRAM");
    return path ? path : US_PROGRAM;
}

enum { MAX_ARGS = 40 };

// Cuts a command line at blanks (no quoting) into argv. `line` is overwritten.
static inline void split(char *line, char **argv) {
    int n = 0;
    argv[n++] = (char *)(uintptr_t)program();
    for (char *rest = line, *part; n < MAX_ARGS - 1 && (part = strsep(&rest, " ")) != NULL;) {
        if (part[0]) argv[n++] = part;
    }
    argv[n] = NULL;
}

static inline int exit_code(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Standard output and error of the last run in this directory; `out_path` may be another file, such as
// /dev/full.
static inline outcome run_to(const char *out_path, const char *format, va_list args) {
    static char *last[2];
    char line[4096], *argv[MAX_ARGS];
    vsnprintf(line, sizeof line, format, args);
    split(line, argv);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_addopen(&actions, 2, "stderr.txt", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    pid_t pid;
    int status;
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    outcome result = {.code = exit_code(status)};
    free(last[0]);
    free(last[1]);
    result.out = last[0] = strcmp(out_path, "stdout.txt") == 0 ? read_text(out_path) : calloc(1, 1);
    result.err = last[1] = read_text("stderr.txt");
    assert_non_null(result.out);
    assert_non_null(result.err);
    return result;
}

__attribute__((format(printf, 1, 2))) static inline outcome run(const char *format, ...) {
    va_list args;
    va_start(args, format);
    outcome result = run_to("stdout.txt", format, args);
    va_end(args);
    return result;
}

__attribute__((format(printf, 2, 3))) static inline outcome run_into(const char *out_path, const char *format,
                                                                     ...) {
    va_list args;
    va_start(args, format);
    outcome result = run_to(out_path, format, args);
    va_end(args);
    return result;
}

// A run that must succeed; its messages are shown when it does not.
#define assert_code(result, expected)                                               \
    do {                                                                            \
        outcome asked_ = (result); /* often a run: once only */                     \
        if (asked_.code != (expected)) print_error("%s%s", asked_.out, asked_.err); \
        assert_int_equal(asked_.code, (expected));                                  \
    } while (0)

#define assert_has(text, part)                                                          \
    do {                                                                                \
        if (!strstr((text), (part))) fail_msg("\"%s\" is not in:\n%s", (part), (text)); \
    } while (0)

#define assert_lacks(text, part)                                                   \
    do {                                                                           \
        if (strstr((text), (part))) fail_msg("\"%s\" is in:\n%s", (part), (text)); \
    } while (0)

static inline cJSON *parse_json(const char *text) {
    cJSON *json = cJSON_ParseWithOpts(text, NULL, true);
    if (!json) fail_msg("not JSON: %.2000s", text);
    return json;
}

static inline const cJSON *member(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item) fail_msg("no key \"%s\"", key);
    return item;
}

static inline double number_at(const cJSON *array, int i) {
    const cJSON *item = cJSON_GetArrayItem(array, i);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static inline double number_of(const cJSON *object, const char *key) {
    const cJSON *item = member(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static inline void assert_near(double value, double expected, double tolerance) {
    double difference = value - expected;
    if (!(difference <= tolerance && difference >= -tolerance))
        fail_msg("%.17g is not within %g of %.17g", value, tolerance, expected);
}

// A file of the reference data, or NULL (and a note) when it is not there.
static inline const char *shared_file(const char *name) {
    static char path[1024];
    const char *shared = getenv("US_SHARED");
    snprintf(path, sizeof path, "%s/%s", shared ? shared : US_SOURCE_DIR "/../shared", name);
    if (access(path, R_OK) == 0) return path;
    print_message("skipped: %s is not there\n", path);
    return NULL;
}

// A rod of 1 m and 1 kg, hung by its end: inertia 1/3 about the hinge. Moves in the x-z plane.
static const char pendulum_scene[] = "<scene name=\"pendulum\" version=\"1\">\n"
                                     "  <parameter name=\"start\" value=\"0.1\"/>\n"
                                     "  <object name=\"pendulum\">\n"
                                     "    <link name=\"rod\">\n"
                                     "      <inertial mass=\"1\" com=\"0 0 -0.5\" "
                                     "inertia=\"0.083333333333333333 0.083333333333333333 0.001\"/>\n"
                                     "    </link>\n"
                                     "    <joint name=\"hinge\" type=\"revolute\" parent=\"world\" "
                                     "child=\"rod\" axis=\"0 1 0\" q=\"${start}\"/>\n"
                                     "  </object>\n"
                                     "</scene>\n";

#endif

// The real program on every broken file: exit code 2, and an error on standard error that has a remedy.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
// cmocka needs the headers above.
#include <cmocka.h>

// Runs `understudy check FILE`; its standard error goes to `out`.
static int check(const char *path, char *out, size_t cap) {
    char command[1200];
    snprintf(command, sizeof command, "'%s' check '%s' 2>&1 >/dev/null </dev/null", US_PROGRAM, path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(out, 1, cap - 1, pipe);
    out[n] = 0;
    char rest[4096];
    while (fread(rest, 1, sizeof rest, pipe) > 0) {
    }
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

// Returns how many files were tried.
static int try_directory(const char *name, const char *end) {
    char path[600];
    snprintf(path, sizeof path, "%s/tests/bad/%s", US_SOURCE_DIR, name);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (!ends_in(entry->d_name, end)) continue;
        char file[1000], text[4096];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        int code = check(file, text, sizeof text);
        if (code != 2 || !strstr(text, "remedy"))
            fail_msg("%s: exit code %d, expected 2; it says:\n%s", file, code, text);
        n++;
    }
    closedir(directory);
    return n;
}

static void every_broken_scene_makes_the_program_end_with_code_2(void **state) {
    (void)state;
    assert_true(try_directory("scene", ".xml") >= 35);
}

static void every_broken_robot_makes_the_program_end_with_code_2(void **state) {
    (void)state;
    assert_true(try_directory("urdf", ".urdf") >= 25);
}

static void every_broken_mesh_makes_the_program_end_with_code_2(void **state) {
    (void)state;
    assert_true(try_directory("mesh", ".urdf") >= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_scene_makes_the_program_end_with_code_2),
        cmocka_unit_test(every_broken_robot_makes_the_program_end_with_code_2),
        cmocka_unit_test(every_broken_mesh_makes_the_program_end_with_code_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

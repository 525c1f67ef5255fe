// Directories and whole files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "io_fault.h"

static void what_is_written_is_read_again(void **state) {
    (void)state;
    char room[16];
    size_t n = 0;
    us_error err = {0};
    assert_int_equal(usi_bytes_write("a.bin", "head", 4, "body", 4, &err), US_OK);
    assert_int_equal(usi_bytes_read("a.bin", room, 8, &n), US_OK);
    assert_true(n == 8 && memcmp(room, "headbody", 8) == 0);
    assert_int_equal(usi_bytes_read("a.bin", room, 7, &n), US_ERR_LIMIT);
    // Nothing else is left.
    assert_int_equal(access("a.bin.part", F_OK), -1);
    assert_int_equal(usi_bytes_write("a.bin", "x", 1, NULL, 0, &err), US_OK);
    assert_int_equal(usi_bytes_read("a.bin", room, sizeof room, &n), US_OK);
    assert_int_equal(n, 1);
    assert_int_equal(remove("a.bin"), 0);
    assert_int_equal(usi_bytes_read("a.bin", room, sizeof room, &n), US_ERR_IO);
}

static void what_cannot_be_written_says_where_and_why(void **state) {
    (void)state;
    us_error err = {0};
    assert_int_equal(usi_bytes_write("nowhere/a.bin", "x", 1, NULL, 0, &err), US_ERR_IO);
    assert_string_equal(err.file, "nowhere/a.bin");
    assert_true(err.message[0] && err.remedy[0]);
    char path[5000];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = 0;
    assert_int_equal(usi_bytes_write(path, "x", 1, NULL, 0, &err), US_ERR_LIMIT);
}

static void a_directory_is_begun_when_it_is_new_or_empty(void **state) {
    (void)state;
    us_error err = {0};
    assert_int_equal(usi_directory_begin("begun", &err), US_OK);
    assert_int_equal(usi_directory_begin("begun", &err), US_OK);
    assert_int_equal(usi_directory_make("begun", &err), US_OK);
    assert_int_equal(usi_bytes_write("begun/file", "x", 1, NULL, 0, &err), US_OK);
    assert_int_equal(usi_directory_begin("begun", &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "not empty"));
    assert_int_equal(usi_directory_begin("begun/file", &err), US_ERR_IO);
    assert_int_equal(usi_directory_begin("nowhere/begun", &err), US_ERR_IO);
    assert_non_null(strstr(err.remedy, "above it"));
    assert_int_equal(remove("begun/file"), 0);
    assert_int_equal(rmdir("begun"), 0);
}

// ---- disks that fail ----

static int replace(void *context) {
    return (int)usi_bytes_write("kept.txt", "another ", 8, "text", 4, context);
}

static int append(void *context) { return (int)usi_bytes_append("kept.txt", 0666, "line\n", 5, context); }

// Whether the file has this text.
static bool has_text(const char *text) {
    char room[64] = "";
    size_t n = 0;
    return usi_bytes_read("kept.txt", room, sizeof room - 1, &n) == US_OK && n == strlen(text) &&
           memcmp(room, text, n) == 0;
}

// At every operation: the new content, or an error and the old one. A line whose file cannot be closed is
// there as a whole, and an error nevertheless.
static void the_old_content_or_the_new_one(void **state) {
    (void)state;
    static const struct {
        int (*body)(void *context);
        const char *after;
    } ways[] = {{replace, "another text"}, {append, "old\nline\n"}};
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    for (int way = 0; way < 2; way++) {
        for (io_fault_kind kind = IO_FAULT_EIO; kind < IO_FAULT_KINDS; kind++) {
            for (int at = 1;; at++) {
                us_error err = {0};
                assert_int_equal(usi_bytes_write("kept.txt", "old\n", 4, NULL, 0, &err), US_OK);
                io_fault fault = {.kind = kind, .at = at, .directory = here};
                if (!io_fault_run(&fault, ways[way].body, &err))
                    fail_msg("this system cannot hand system calls to a test (seccomp)");
                const bool is_mild = kind == IO_FAULT_SHORT || kind == IO_FAULT_EINTR;
                const bool must_work = fault.n_hit == 0 || is_mild;
                if (fault.code != (must_work ? US_OK : US_ERR_IO) ||
                    !(must_work ? has_text(ways[way].after)
                                : has_text("old\n") || strcmp(fault.call, "close") == 0))
                    fail_msg("%s at operation %d (%s): status %d", io_fault_name(kind), at, fault.call,
                             fault.code);
                assert_int_equal(access("kept.txt.part", F_OK), -1);
                if (fault.n_hit == 0) break;
            }
        }
    }
    assert_int_equal(remove("kept.txt"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(what_cannot_be_written_says_where_and_why),
        cmocka_unit_test(a_directory_is_begun_when_it_is_new_or_empty),
        cmocka_unit_test(the_old_content_or_the_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

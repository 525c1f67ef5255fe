// Directories and whole files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(what_cannot_be_written_says_where_and_why),
        cmocka_unit_test(a_directory_is_begun_when_it_is_new_or_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

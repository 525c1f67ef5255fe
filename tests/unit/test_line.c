// Lines of text that grow by pieces: what fits stands there, and others' texts cannot break out of their
// quotes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/line.h"

static void pieces_follow_each_other(void **state) {
    (void)state;
    char text[64];
    usi_line line = {text, 0, sizeof text};
    usi_line_put(&line, "{\"n\":%d,", 3);
    usi_line_put_text(&line, "name", "k10");
    usi_line_put(&line, "}");
    assert_string_equal(text, "{\"n\":3,\"name\":\"k10\"}");
    assert_int_equal(line.n, strlen(text));
}

static void what_would_break_the_quotes_is_made_to_fit(void **state) {
    (void)state;
    char text[64];
    usi_line line = {text, 0, sizeof text};
    usi_line_put_quoted(&line, "a\"b\\c\nd\x7f\xc3\xa9");
    assert_string_equal(text, "\"a\\\"b\\\\c d \xc3\xa9\"");
}

static void what_does_not_fit_is_left_out(void **state) {
    (void)state;
    char text[8] = "#######";
    usi_line line = {text, 0, 6};
    usi_line_put(&line, "%s", "abc");
    usi_line_put(&line, "%s", "defgh");
    usi_line_put(&line, "%s", "ijk");
    assert_string_equal(text, "abcde");
    assert_int_equal(line.n, 5);
    assert_int_equal(text[6], '#');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_follow_each_other),
        cmocka_unit_test(what_would_break_the_quotes_is_made_to_fit),
        cmocka_unit_test(what_does_not_fit_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Status texts, and errors with a place and a remedy.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/base.h"

static void every_status_has_a_text_of_its_own(void **state) {
    (void)state;
    for (int i = 0; i < US_STATUS_COUNT; i++) {
        const char *text = us_status_text((us_status)i);
        assert_true(text[0] != 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(text, us_status_text((us_status)k));
    }
    assert_string_equal(us_status_text(US_OK), "ok");
    assert_string_equal(us_status_text(US_ERR_LIMIT), "a limit of this program is exceeded");
    assert_int_equal(US_OK, 0);
}

static void a_number_outside_the_list_is_an_unknown_status(void **state) {
    (void)state;
    assert_string_equal(us_status_text(US_STATUS_COUNT), "unknown status");
    assert_string_equal(us_status_text((us_status)-1), "unknown status");
    assert_string_equal(us_status_text((us_status)12345), "unknown status");
}

static void an_error_takes_place_message_and_remedy(void **state) {
    (void)state;
    us_error err;
    memset(&err, 0xff, sizeof err);
    us_place place = {"robot.urdf", 12, 7, "joint \"elbow\""};
    assert_int_equal(
        us_error_set(&err, US_ERR_VALUE, &place, "write %d less", "the limit is %d of %s", 3, "five"),
        US_ERR_VALUE);
    assert_int_equal(err.code, US_ERR_VALUE);
    assert_int_equal(err.line, 12);
    assert_int_equal(err.column, 7);
    assert_string_equal(err.file, "robot.urdf");
    assert_string_equal(err.element, "joint \"elbow\"");
    assert_string_equal(err.message, "the limit is 3 of five");
    assert_string_equal(err.remedy, "write %d less");
}

static void an_error_without_place_and_remedy_has_empty_texts(void **state) {
    (void)state;
    us_error err;
    memset(&err, 0xff, sizeof err);
    assert_int_equal(us_error_set(&err, US_ERR_IO, NULL, NULL, "%s", "gone"), US_ERR_IO);
    assert_int_equal(err.line, 0);
    assert_int_equal(err.column, 0);
    assert_string_equal(err.file, "");
    assert_string_equal(err.element, "");
    assert_string_equal(err.remedy, "");
    us_place nothing = {NULL, 3, 0, NULL};
    us_error_set(&err, US_ERR_IO, &nothing, NULL, "gone");
    assert_string_equal(err.file, "");
    assert_string_equal(err.element, "");
    assert_int_equal(err.line, 3);
}

static void nobody_needs_to_want_the_error(void **state) {
    (void)state;
    assert_int_equal(us_error_set(NULL, US_ERR_TREE, NULL, "x", "%d", 1), US_ERR_TREE);
}

// A text of n letters, n below 2048.
static const char *letters(size_t n) {
    static char text[2048];
    memset(text, 'x', sizeof text - 1);
    return text + sizeof text - 1 - n;
}

static void texts_that_do_not_fit_are_cut_and_end_in_dots(void **state) {
    (void)state;
    us_error err;
    us_place place = {letters(1500), 1, 1, letters(1500)};
    us_error_set(&err, US_ERR_NAME, &place, letters(1500), "%s", letters(1500));
    const struct {
        const char *text;
        size_t cap;
    } cut[] = {{err.file, sizeof err.file},
               {err.element, sizeof err.element},
               {err.message, sizeof err.message},
               {err.remedy, sizeof err.remedy}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(strlen(cut[i].text), cut[i].cap - 1);
        assert_string_equal(cut[i].text + cut[i].cap - 4, "...");
        assert_int_equal(cut[i].text[cut[i].cap - 5], 'x');
    }
}

static void texts_that_just_fit_are_whole(void **state) {
    (void)state;
    us_error err;
    us_error_set(&err, US_ERR_NAME, NULL, letters(sizeof err.remedy - 1), "%s",
                 letters(sizeof err.message - 1));
    assert_string_equal(err.message, letters(sizeof err.message - 1));
    assert_string_equal(err.remedy, letters(sizeof err.remedy - 1));
    us_error_set(&err, US_ERR_NAME, NULL, letters(sizeof err.remedy), "%s", letters(sizeof err.message));
    assert_string_equal(err.message + sizeof err.message - 4, "...");
    assert_string_equal(err.remedy + sizeof err.remedy - 4, "...");
}

static void expect_format(const us_place *place, const char *remedy, const char *want) {
    us_error err;
    char text[256];
    us_error_set(&err, US_ERR_VALUE, place, remedy, "bad");
    assert_int_equal(us_error_format(&err, text, sizeof text), strlen(want));
    assert_string_equal(text, want);
}

static void formatting_leaves_out_what_is_not_known(void **state) {
    (void)state;
    expect_format(&(us_place){"a.xml", 3, 4, "link \"b\""}, "mend it",
                  "a.xml:3:4: link \"b\": bad\n  remedy: mend it");
    expect_format(&(us_place){"a.xml", 3, 0, "link \"b\""}, NULL, "a.xml:3: link \"b\": bad");
    expect_format(&(us_place){"a.xml", 0, 0, NULL}, NULL, "a.xml: bad");
    expect_format(&(us_place){NULL, 3, 4, "link"}, NULL, "link: bad");
    expect_format(NULL, "mend it", "bad\n  remedy: mend it");
    expect_format(NULL, NULL, "bad");
}

static void formatting_into_little_room_tells_the_length_it_needs(void **state) {
    (void)state;
    us_error err;
    us_error_set(&err, US_ERR_VALUE, NULL, "mend it", "bad");
    const char *whole = "bad\n  remedy: mend it";
    size_t need = us_error_format(&err, NULL, 0);
    assert_int_equal(need, strlen(whole));
    for (size_t cap = 1; cap <= need + 1; cap++) {
        char text[64];
        memset(text, 'z', sizeof text);
        assert_int_equal(us_error_format(&err, text, cap), need);
        assert_int_equal(strlen(text), cap - 1);
        assert_memory_equal(text, whole, cap - 1);
        assert_int_equal(text[cap], 'z');
    }
}

static void the_longest_error_can_be_formatted_whole(void **state) {
    (void)state;
    us_error err;
    us_place place = {letters(255), 2147483647, 2147483647, letters(127)};
    us_error_set(&err, US_ERR_VALUE, &place, letters(383), "%s", letters(511));
    char text[2048];
    size_t n = us_error_format(&err, text, sizeof text);
    assert_int_equal(n, strlen(text));
    assert_int_equal(n,
                     255 + strlen(":2147483647:2147483647: ") + 127 + 2 + 511 + strlen("\n  remedy: ") + 383);
}

static void the_version_has_three_numbers(void **state) {
    (void)state;
    const char *version = us_version();
    int dots = 0;
    for (const char *c = version; *c; c++) {
        dots += *c == '.';
        assert_true(*c == '.' || (*c >= '0' && *c <= '9'));
    }
    assert_int_equal(dots, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        cmocka_unit_test(a_number_outside_the_list_is_an_unknown_status),
        cmocka_unit_test(an_error_takes_place_message_and_remedy),
        cmocka_unit_test(an_error_without_place_and_remedy_has_empty_texts),
        cmocka_unit_test(nobody_needs_to_want_the_error),
        cmocka_unit_test(texts_that_do_not_fit_are_cut_and_end_in_dots),
        cmocka_unit_test(texts_that_just_fit_are_whole),
        cmocka_unit_test(formatting_leaves_out_what_is_not_known),
        cmocka_unit_test(formatting_into_little_room_tells_the_length_it_needs),
        cmocka_unit_test(the_longest_error_can_be_formatted_whole),
        cmocka_unit_test(the_version_has_three_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

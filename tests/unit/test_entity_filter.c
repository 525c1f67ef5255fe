// Filters of entities come from anybody: those that would cost much are refused, others mean what POSIX says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "world/entity_filter.h"

// 1 found, 0 not found, -1 refused.
static int look(const char *filter, const char *name) {
    regex_t regex;
    if (usi_entity_filter_compile(filter, &regex)) return -1;
    const int found = regexec(&regex, name, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static void what_is_usual_is_taken(void **state) {
    (void)state;
    assert_int_equal(look("^k10$", "k10"), 1);
    assert_int_equal(look("^k10$", "k10_2"), 0);
    assert_int_equal(look("k10|crate", "a_crate"), 1);
    assert_int_equal(look("^[a-z]+_[0-9]{1,3}$", "crate_17"), 1);
    assert_int_equal(look("^[a-z]+_[0-9]{1,3}$", "crate_1776"), 0);
    assert_int_equal(look("^([a-z]+_)+[0-9]+$", "red_crate_7"), 1);
    assert_int_equal(look("^a\\{2\\}$", "a{2}"), 1);
    assert_int_equal(look("[[:digit:]]{2}\\.", "wall12.b"), 1);
    assert_int_equal(look("^a{255}$", "a"), 0);
    // Plus signs behind single characters are not copies of what they stand behind.
    assert_int_equal(look("a+b+c+d+e+f+g+h+i+j+k+l+", "abcdefghijkl"), 1);
}

static void brackets(char *out, int n, const char *inside, const char *behind) {
    out[0] = 0;
    for (int i = 0; i < n; i++)
        strcat(out, "(");
    strcat(out, inside);
    for (int i = 0; i < n; i++)
        strcat(out, behind);
}

static void what_would_cost_much_is_refused(void **state) {
    (void)state;
    assert_int_equal(look("(((", "a"), -1);
    assert_int_equal(look("[z-a", "a"), -1);
    assert_int_equal(look("(.*)(.*)(.*)(.*)\\1\\2x", "aaaa"), -1);
    assert_int_equal(look("(a{1,255}){1,255}", "aaaa"), -1);
    assert_int_equal(look("(a{16}){16}", "aaaa"), -1);
    assert_int_equal(look("a{99999999999999999999999}", "aaaa"), -1);
    assert_int_equal(look("a{2,}{2,}{2,}{2,}{2,}{2,}{2,}{2,}", "aaaa"), -1);
    assert_int_equal(look("a{,256}", "aaaa"), -1);
    assert_int_equal(look("a+++++++++", "aaaa"), -1);
    // A bracket expression hides neither a count nor a reference.
    assert_int_equal(look("[\\]{256}", "aaaa"), -1);
    assert_int_equal(look("([\\])\\1", "aaaa"), -1);
    static char text[200000];
    brackets(text, 20, "a+", "+)");
    assert_int_equal(look(text, "aaaa"), -1);
    brackets(text, 60000, "a", ")");
    assert_int_equal(look(text, "aaaa"), -1);
    brackets(text, USI_FILTER_MAX / 2, "", ")");
    assert_true(strlen(text) == USI_FILTER_MAX && look(text, "a") >= 0);
    strcat(text, "a");
    assert_int_equal(look(text, "a"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_usual_is_taken),
        cmocka_unit_test(what_would_cost_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

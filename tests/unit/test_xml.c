// The safe XML floor: numbers, suggestions, files, places, refusals.
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "spec/xml.h"

// A reader with everything it needs.
typedef struct fixture {
    us_spec *spec;
    us_load_def def;
    us_error err;
    usi_reader r;
} fixture;

static void start(fixture *f) {
    f->def = us_load_def_default();
    memset(&f->err, 0, sizeof f->err);
    assert_int_equal(us_spec_create(NULL, &f->spec), US_OK);
    usi_reader_init(&f->r, f->spec, &f->def, &f->err);
}

static void finish(fixture *f) {
    usi_reader_fini(&f->r);
    us_spec_destroy(f->spec);
}

static xmlDoc *parse(fixture *f, const char *text) {
    xmlDoc *doc = NULL;
    assert_int_equal(usi_xml_parse(&f->r, text, strlen(text), "a file.xml", &doc), US_OK);
    return doc;
}

static double number(const char *text) {
    const char *end = NULL;
    double value = -77;
    assert_null(usi_number_scan(text, &end, &value));
    return value;
}

static void numbers_are_read_to_the_last_bit(void **state) {
    (void)state;
    assert_true(number("0.1") == 0.1);
    assert_true(number("-1.5e-3") == -1.5e-3);
    assert_true(number("+.5") == 0.5);
    assert_true(number("5.") == 5);
    assert_true(number("1e15") == 1e15);
    assert_true(number("1e-400") == 0);
    assert_true(number("2.2250738585072014e-308") == 2.2250738585072014e-308);
}

static void what_is_not_a_decimal_number_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",  "nan", "NaN", "inf",   "-inf",  "infinity", "e5",
                                      ".", "+",   "-",   "1e400", "-1e16", "abc"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *end = NULL;
        double value = 0;
        if (!usi_number_scan(bad[i], &end, &value)) fail_msg("\"%s\" was taken for a number", bad[i]);
    }
    // Hexadecimal is no number, but its first digit is: what follows is left.
    const char *end = NULL;
    double value = 1;
    assert_null(usi_number_scan("0x10", &end, &value));
    assert_string_equal(end, "x10");
}

static void numbers_do_not_depend_on_the_locale(void **state) {
    (void)state;
    char before[64];
    snprintf(before, sizeof before, "%s", setlocale(LC_ALL, NULL));
    // Where the locale is not installed the test still holds, in the C locale.
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) setlocale(LC_ALL, "de_DE.utf8");
    double value = number("1.5");
    setlocale(LC_ALL, before);
    assert_true(value == 1.5);
}

static void attributes_are_checked_for_count_and_kind(void **state) {
    (void)state;
    fixture f;
    start(&f);
    xmlDoc *doc = parse(&f, "<a three='1 2 3' two='1 2' unit='1 m' yes='true' no='0' maybe='perhaps' "
                            "whole='3' half='3.5' empty=''/>");
    const xmlNode *node = xmlDocGetRootElement(doc);
    double v[3] = {7, 7, 7};
    assert_int_equal(usi_xml_doubles(&f.r, node, "three", true, 3, v), US_OK);
    assert_true(v[0] == 1 && v[1] == 2 && v[2] == 3);
    assert_int_equal(usi_xml_doubles(&f.r, node, "two", true, 3, v), US_ERR_VALUE);
    assert_non_null(strstr(f.err.message, "3 numbers are needed, 2 given"));
    assert_int_equal(usi_xml_double(&f.r, node, "unit", true, v), US_ERR_VALUE);
    assert_int_equal(usi_xml_double(&f.r, node, "empty", true, v), US_ERR_VALUE);
    assert_int_equal(usi_xml_double(&f.r, node, "absent", true, v), US_ERR_SCHEMA);
    assert_non_null(strstr(f.err.remedy, "absent=\"...\""));
    assert_true(v[0] == 1);
    v[0] = 5;
    assert_int_equal(usi_xml_double(&f.r, node, "absent", false, v), US_OK);
    assert_true(v[0] == 5);
    bool flag = false;
    assert_int_equal(usi_xml_bool(&f.r, node, "yes", true, &flag), US_OK);
    assert_true(flag);
    assert_int_equal(usi_xml_bool(&f.r, node, "no", true, &flag), US_OK);
    assert_false(flag);
    assert_int_equal(usi_xml_bool(&f.r, node, "maybe", true, &flag), US_ERR_VALUE);
    int32_t i = 0;
    assert_int_equal(usi_xml_int(&f.r, node, "whole", true, &i), US_OK);
    assert_int_equal(i, 3);
    assert_int_equal(usi_xml_int(&f.r, node, "half", true, &i), US_ERR_VALUE);
    xmlFreeDoc(doc);
    finish(&f);
}

static void predefined_entities_are_understood(void **state) {
    (void)state;
    fixture f;
    start(&f);
    xmlDoc *doc = parse(&f, "<a name='&lt;&amp;&quot;&#65;&#x42;'/>");
    assert_string_equal(usi_xml_attr(xmlDocGetRootElement(doc), "name"), "<&\"AB");
    xmlFreeDoc(doc);
    finish(&f);
}

static void a_place_has_file_line_and_element(void **state) {
    (void)state;
    fixture f;
    start(&f);
    xmlDoc *doc = parse(&f, "<a>\n\n  <joint name='elbow'/>\n</a>");
    const xmlNode *joint = usi_xml_child(xmlDocGetRootElement(doc), "joint");
    assert_int_equal(usi_fail(&f.r, US_ERR_VALUE, joint, "bend it", "it is %d", 7), US_ERR_VALUE);
    assert_int_equal(f.err.line, 3);
    assert_string_equal(f.err.file, "a file.xml");
    assert_string_equal(f.err.element, "joint \"elbow\"");
    assert_string_equal(f.err.message, "it is 7");
    assert_string_equal(f.err.remedy, "bend it");
    assert_int_equal(usi_warn(&f.r, joint, NULL, "creaks"), US_OK);
    assert_int_equal(us_spec_get_counts(f.spec).n_warning, 1);
    assert_int_equal(us_spec_view_warning(f.spec, 0)->line, 3);
    xmlFreeDoc(doc);
    finish(&f);
}

static void lines_beyond_65535_are_right(void **state) {
    (void)state;
    fixture f;
    start(&f);
    enum { LINES = 70000 };
    char *text = usi_reader_alloc(&f.r, LINES + 100);
    memset(text, '\n', LINES + 3);
    text[0] = '<';
    text[1] = 'a';
    text[2] = '>';
    // Text in the element, because libxml2 keeps large line numbers there.
    static const char end[] = "<b>x</b></a>";
    memcpy(text + 3 + LINES, end, sizeof end);
    xmlDoc *doc = parse(&f, text);
    assert_int_equal(usi_xml_line(usi_xml_child(xmlDocGetRootElement(doc), "b")), LINES + 1);
    xmlFreeDoc(doc);
    finish(&f);
}

static void entities_are_never_expanded(void **state) {
    (void)state;
    fixture f;
    start(&f);
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>", "external"},
        {"<!DOCTYPE a [<!ENTITY % x SYSTEM 'http://127.0.0.1/x.dtd'> %x;]><a/>", "external"},
        {"<!DOCTYPE a [<!ENTITY x 'y'><!ENTITY z '&x;&x;'>]><a>&z;</a>", "nested"},
        {"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "declares the entity \"x\""},
        {"<!DOCTYPE a><a/>", "DOCTYPE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        xmlDoc *doc = NULL;
        assert_int_equal(usi_xml_parse(&f.r, cases[i].text, strlen(cases[i].text), "x", &doc), US_ERR_SYNTAX);
        assert_null(doc);
        if (!strstr(f.err.message, cases[i].message))
            fail_msg("\"%s\" lacks \"%s\"", f.err.message, cases[i].message);
        assert_true(f.err.remedy[0] != 0);
    }
    finish(&f);
}

static void utf16_is_text_and_not_binary(void **state) {
    (void)state;
    fixture f;
    start(&f);
    static const char text[] = "\xFF\xFE<\0a\0/\0>\0";
    xmlDoc *doc = NULL;
    assert_int_equal(usi_xml_parse(&f.r, text, sizeof text - 1, "x", &doc), US_OK);
    assert_true(usi_xml_is(xmlDocGetRootElement(doc), "a"));
    xmlFreeDoc(doc);
    finish(&f);
}

static const char *guess_for(const char *wanted) {
    usi_guess guess = usi_guess_start(wanted);
    usi_guess_offer(&guess, "gravity");
    usi_guess_offer(&guess, "integrator");
    usi_guess_offer(&guess, "world");
    return guess.best ? guess.best : "";
}

static void the_nearest_name_is_suggested_and_no_far_one(void **state) {
    (void)state;
    assert_string_equal(guess_for("gravty"), "gravity");
    assert_string_equal(guess_for("intergrator"), "integrator");
    assert_string_equal(guess_for("wrold"), "world");
    assert_string_equal(guess_for("banana"), "");
}

static void a_fifo_and_a_missing_file_are_refused_without_waiting(void **state) {
    (void)state;
    fixture f;
    start(&f);
    char *text = NULL;
    size_t length = 0;
    remove("test_xml.fifo");
    assert_int_equal(mkfifo("test_xml.fifo", 0600), 0);
    assert_int_equal(usi_file_read(&f.r, "test_xml.fifo", NULL, &text, &length), US_ERR_IO);
    assert_non_null(strstr(f.err.message, "regular"));
    remove("test_xml.fifo");
    assert_int_equal(usi_file_read(&f.r, "no such file", NULL, &text, &length), US_ERR_IO);
    assert_null(text);
    finish(&f);
}

static void paths_start_at_the_file_that_names_them(void **state) {
    (void)state;
    fixture f;
    start(&f);
    assert_string_equal(usi_path_beside(&f.r, "a/b/scene.xml", "../c.urdf"), "a/b/../c.urdf");
    assert_string_equal(usi_path_beside(&f.r, "scene.xml", "c.urdf"), "c.urdf");
    assert_string_equal(usi_path_beside(&f.r, "a/scene.xml", "/c.urdf"), "/c.urdf");
    assert_string_equal(usi_path_beside(&f.r, "/scene.xml", "c.urdf"), "/c.urdf");
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_to_the_last_bit),
        cmocka_unit_test(what_is_not_a_decimal_number_is_refused),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(attributes_are_checked_for_count_and_kind),
        cmocka_unit_test(predefined_entities_are_understood),
        cmocka_unit_test(a_place_has_file_line_and_element),
        cmocka_unit_test(lines_beyond_65535_are_right),
        cmocka_unit_test(entities_are_never_expanded),
        cmocka_unit_test(utf16_is_text_and_not_binary),
        cmocka_unit_test(the_nearest_name_is_suggested_and_no_far_one),
        cmocka_unit_test(a_fifo_and_a_missing_file_are_refused_without_waiting),
        cmocka_unit_test(paths_start_at_the_file_that_names_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// What programs read of texts from the network: robot descriptions, answers of a world, lines of switches.
// Each text lies in memory that ends with it, whole and cut off anywhere and with bytes changed, so that a
// reader beyond the end is found.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/cdr.h"
#include "wire/description.h"
#include "wire/messages.h"
#include "wire/world_status.h"

static const char urdf[] =
    "<?xml version=\"1.0\"?><robot name='r'>\n"
    "<!-- <joint name='ghost' type='continuous'/> -->\n"
    "<joint name=\"wheel\" type=\"continuous\"><limit effort=\"12.5\" velocity='3'/></joint>"
    "<joint type='revolute' name='steer' ><parent link='a>b'/><limit\n effort = '40' /></joint>"
    "<joint name='fixed_mount' type='fixed'/>"
    "<transmission><joint name='steer'><x/></joint></transmission>"
    "<jointed name='no' type='continuous'/>"
    "<joint name='free' type='revolute'><limit lower='0'/></joint>"
    "<joint typename='x' type='prismatic' name='slide'><limit effort='7'/></joint>"
    "</robot>";

static void a_description_has_its_joints_in_order(void **state) {
    (void)state;
    static const struct {
        const char *name, *type;
        double effort;
    } want[] = {{"wheel", "continuous", 12.5},
                {"steer", "revolute", 40},
                {"fixed_mount", "fixed", 0},
                {"free", "revolute", 0},
                {"slide", "prismatic", 7}};
    usi_description_joint j;
    size_t at = 0;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_true(usi_description_next(urdf, sizeof urdf - 1, &at, &j));
        assert_string_equal(j.name, want[i].name);
        assert_string_equal(j.type, want[i].type);
        assert_true(j.effort == want[i].effort);
    }
    assert_false(usi_description_next(urdf, sizeof urdf - 1, &at, &j));
    assert_true(usi_description_find(urdf, sizeof urdf - 1, "slide", &j) && j.effort == 7);
    assert_false(usi_description_find(urdf, sizeof urdf - 1, "ghost", &j));
    assert_false(usi_description_find(NULL, 0, "slide", &j));
}

static void a_joint_whose_name_does_not_fit_is_passed_over(void **state) {
    (void)state;
    char text[400], name[100];
    memset(name, 'a', sizeof name);
    for (int n = 62; n < 66; n++) {
        snprintf(text, sizeof text, "<joint name='%.*s' type='fixed'/><joint name='b' type='fixed'/>", n,
                 name);
        usi_description_joint j;
        size_t at = 0;
        assert_true(usi_description_next(text, strlen(text), &at, &j));
        assert_int_equal(strlen(j.name), n < USI_DESCRIPTION_NAME ? n : 1);
    }
}

static const char status_line[] =
    "{\"time\":1.5,\"tick\":1500,\"paused\":false,\"rate\":1,\"epoch\":2,\"last\":null,\"answers\":["
    "{\"source\":\"cli\",\"text\":\"pause\",\"ok\":true,\"message\":\"\"},"
    "{\"source\":\"x\",\"text\":\"adopt k10 stamp=1,2 odom=0\",\"ok\":false,\"message\":\"there is no "
    "\\\"k10\\\"; "
    "name \\u0041 robot\\n\"},"
    "{\"source\":\"x\",\"text\":\"adopt k10 stamp=1,20\",\"ok\":true,\"message\":\"here\"}]}";

static void an_answer_is_found_by_how_its_command_begins(void **state) {
    (void)state;
    usi_status_answer a;
    size_t n = sizeof status_line - 1;
    assert_true(usi_status_find_answer(status_line, n, "pause", &a));
    assert_true(a.is_ok && a.message[0] == 0);
    assert_true(usi_status_find_answer(status_line, n, "adopt k10 stamp=1,2 ", &a));
    assert_false(a.is_ok);
    assert_string_equal(a.message, "there is no \"k10\"; name A robot\n");
    assert_true(usi_status_find_answer(status_line, n, "adopt k10 stamp=1,20", &a));
    assert_true(a.is_ok);
    assert_string_equal(a.message, "here");
    assert_false(usi_status_find_answer(status_line, n, "adopt k10 stamp=1,3", &a));
    // A command cannot pass for another by what stands in its quotes.
    static const char sly[] = "{\"text\":\"x \\\"text\\\":\\\"pause\\\"\",\"ok\":false,\"message\":\"no\"}";
    assert_false(usi_status_find_answer(sly, sizeof sly - 1, "pause", &a));
}

static void a_line_of_a_switch_has_robot_and_epoch(void **state) {
    (void)state;
    static const char line[] =
        "{\"robot\":\"k10\",\"mode\":\"proxy\",\"epoch\":18446744073709551615,\"x\":1}";
    usi_authority_line a;
    assert_true(usi_authority_read(line, sizeof line - 1, &a));
    assert_string_equal(a.robot, "k10");
    assert_true(a.has_epoch && a.epoch == UINT64_MAX);
    assert_true(usi_authority_read("{\"robot\":\"b\"}", 13, &a) && !a.has_epoch);
    assert_false(usi_authority_read("{\"robot\":\"\",", 12, &a));
    assert_false(usi_authority_read("{\"mode\":\"b\"}", 12, &a));
}

static void a_string_is_seen_in_its_message(void **state) {
    (void)state;
    us_msg_string m = {usi_text("hello")};
    uint8_t bytes[64];
    size_t length = 0, n = 0;
    assert_int_equal(us_message_encode(usi_type_string, &m, bytes, sizeof bytes, &length), US_OK);
    const char *text = usi_cdr_view_text(bytes, length, &n);
    assert_non_null(text);
    assert_int_equal(n, 5);
    assert_string_equal(text, "hello");
    for (size_t cut = 0; cut < 4 + 4 + 6; cut++)
        assert_null(usi_cdr_view_text(bytes, cut, &n));
    uint8_t other[] = {0, 0, 0, 0, 0, 0, 0, 2, 'x', 0};  // the other endianness
    assert_string_equal(usi_cdr_view_text(other, sizeof other, &n), "x");
    other[9] = 'y';  // no end
    assert_null(usi_cdr_view_text(other, sizeof other, &n));
    other[7] = 0;  // not even a 0
    assert_null(usi_cdr_view_text(other, sizeof other, &n));
}

static void read_all(const char *text, size_t n) {
    usi_description_joint j;
    usi_status_answer a;
    usi_authority_line l;
    size_t length;
    for (size_t at = 0, before = 0; usi_description_next(text, n, &at, &j); before = at)
        assert_true(at > before && at <= n && strlen(j.name) < sizeof j.name);
    if (usi_status_find_answer(text, n, "adopt", &a)) assert_true(strlen(a.message) < sizeof a.message);
    if (usi_authority_read(text, n, &l)) assert_true(l.robot[0] && strlen(l.robot) < sizeof l.robot);
    (void)usi_cdr_view_text(text, n, &length);
}

static void damaged_texts_are_read_within_their_bounds(void **state) {
    (void)state;
    const struct {
        const char *text;
        size_t n;
    } seeds[] = {{urdf, sizeof urdf - 1},
                 {status_line, sizeof status_line - 1},
                 {"{\"robot\":\"k10\",\"epoch\":12}", 26},
                 {"\0\1\0\0\6\0\0\0hello", 14}};
    static const char spice[] = "<>\"'\\/!-=u0{}: \0\xff";
    uint32_t random = 1;
    for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
        for (size_t n = 0; n <= seeds[s].n; n++) {
            for (int round = 0; round < 8; round++) {
                char *copy = malloc(n + (n == 0));
                assert_non_null(copy);
                memcpy(copy, seeds[s].text, n);
                for (int k = 0; k < round && n > 0; k++) {
                    random = 1664525 * random + 1013904223;
                    copy[(random >> 8) % n] = spice[(random >> 4) % sizeof spice];
                }
                read_all(copy, n);
                free(copy);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_has_its_joints_in_order),
        cmocka_unit_test(a_joint_whose_name_does_not_fit_is_passed_over),
        cmocka_unit_test(an_answer_is_found_by_how_its_command_begins),
        cmocka_unit_test(a_line_of_a_switch_has_robot_and_epoch),
        cmocka_unit_test(a_string_is_seen_in_its_message),
        cmocka_unit_test(damaged_texts_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The page's protocol as bytes: frames as they stand in docs/viewer-protocol.md, byte by byte, and what of a
// client's messages is taken and refused.
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/view.h"

// ---- frames ----

static void a_head_has_its_golden_bytes(void **state) {
    (void)state;
    const usi_view_head head = {.kind = USI_VIEW_POSES,
                                .flags = USI_VIEW_FULL,
                                .epoch = 0x04030201,
                                .time = 1.5,
                                .tick = 1500,
                                .n = 2};
    const uint8_t golden[USI_VIEW_HEAD_SIZE] = {
        1,    1, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f,  // kind .. time
        0xdc, 5, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0,    0};    // tick, n, 0
    uint8_t bytes[USI_VIEW_HEAD_SIZE + 1];
    memset(bytes, 0xaa, sizeof bytes);
    assert_ptr_equal(usi_view_put_head(bytes, &head), bytes + USI_VIEW_HEAD_SIZE);
    assert_memory_equal(bytes, golden, sizeof golden);
    assert_int_equal(bytes[USI_VIEW_HEAD_SIZE], 0xaa);
}

static void a_tick_before_the_start_keeps_its_sign(void **state) {
    (void)state;
    const usi_view_head head = {.kind = USI_VIEW_TORQUES, .tick = -2};
    const uint8_t golden[8] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    uint8_t bytes[USI_VIEW_HEAD_SIZE];
    usi_view_put_head(bytes, &head);
    assert_int_equal(bytes[0], 4);
    assert_memory_equal(bytes + 16, golden, 8);
}

static void a_pose_has_its_golden_bytes(void **state) {
    (void)state;
    const float pose[7] = {1, -2, 0.5f, 1, 0, 0, -0.0f};
    const uint8_t golden[USI_VIEW_POSE_SIZE] = {7,    0, 0, 0, 0,    0, 0x80, 0x3f, 0,    0,   0,
                                                0xc0, 0, 0, 0, 0x3f, 0, 0,    0x80, 0x3f, 0,   0,
                                                0,    0, 0, 0, 0,    0, 0,    0,    0,    0x80};
    uint8_t bytes[USI_VIEW_POSE_SIZE];
    assert_ptr_equal(usi_view_put_pose(bytes, 7, pose), bytes + USI_VIEW_POSE_SIZE);
    assert_memory_equal(bytes, golden, sizeof golden);
}

static void a_value_and_a_torque_have_their_golden_bytes(void **state) {
    (void)state;
    const uint8_t value[USI_VIEW_VALUE_SIZE] = {0x18, 0x2d, 0x44, 0x54, 0xfb, 0x21, 0x09, 0x40},
                  torque[USI_VIEW_TORQUE_SIZE] = {0, 0, 0xc8, 0xc2};
    uint8_t bytes[16];
    assert_ptr_equal(usi_view_put_value(bytes, 3.141592653589793), bytes + USI_VIEW_VALUE_SIZE);
    assert_memory_equal(bytes, value, sizeof value);
    assert_ptr_equal(usi_view_put_torque(bytes, -100), bytes + USI_VIEW_TORQUE_SIZE);
    assert_memory_equal(bytes, torque, sizeof torque);
}

static void a_tile_of_ruts_has_its_golden_bytes(void **state) {
    (void)state;
    static int16_t change[USI_VIEW_RUT_COLUMNS];
    change[0] = -2;
    change[USI_VIEW_RUT_COLUMNS - 1] = 0x1234;
    const uint8_t head[] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0x3f, 0xfe, 0xff, 0, 0};
    static uint8_t bytes[USI_VIEW_RUT_SIZE];
    assert_ptr_equal(usi_view_put_rut(bytes, 1, 2, 259, 0.5f, change), bytes + USI_VIEW_RUT_SIZE);
    assert_memory_equal(bytes, head, sizeof head);
    assert_true(bytes[USI_VIEW_RUT_SIZE - 2] == 0x34 && bytes[USI_VIEW_RUT_SIZE - 1] == 0x12);
}

static void a_cloud_and_a_point_have_their_golden_bytes(void **state) {
    (void)state;
    const usi_view_cloud cloud = {.lidar = 3, .unit = 0.5f, .origin = {1.5, -2, 0}};
    const uint8_t golden[USI_VIEW_CLOUD_SIZE] = {3, 0, 0, 0, 0, 0, 0, 0x3f, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f,
                                                 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0,    0};
    const int16_t place[3] = {1, -2, 0x1234};
    const uint8_t point[USI_VIEW_POINT_SIZE] = {1, 0, 0xfe, 0xff, 0x34, 0x12, 200, 31};
    uint8_t bytes[USI_VIEW_CLOUD_SIZE];
    assert_ptr_equal(usi_view_put_cloud(bytes, &cloud), bytes + USI_VIEW_CLOUD_SIZE);
    assert_memory_equal(bytes, golden, sizeof golden);
    assert_ptr_equal(usi_view_put_point(bytes, place, 200, 31), bytes + USI_VIEW_POINT_SIZE);
    assert_memory_equal(bytes, point, sizeof point);
}

static void a_contact_has_its_golden_bytes(void **state) {
    (void)state;
    const usi_view_contact contact = {3, -1, {1, 2, 3}, {0, 0, 1}, {0, 0, 9.5f}, -0.25f, true};
    const uint8_t golden[USI_VIEW_CONTACT_SIZE] = {
        3, 0, 0,    0,    0xff, 0xff, 0xff, 0xff,                    // bodies
        0, 0, 0x80, 0x3f, 0,    0,    0,    0x40, 0, 0, 0x40, 0x40,  // point
        0, 0, 0,    0,    0,    0,    0,    0,    0, 0, 0x80, 0x3f,  // normal
        0, 0, 0,    0,    0,    0,    0,    0,    0, 0, 0x18, 0x41,  // force
        0, 0, 0x80, 0xbe, 1,    0,    0,    0,                       // gap, sliding
    };
    uint8_t bytes[USI_VIEW_CONTACT_SIZE];
    assert_ptr_equal(usi_view_put_contact(bytes, &contact), bytes + USI_VIEW_CONTACT_SIZE);
    assert_memory_equal(bytes, golden, sizeof golden);
}

static void numbers_beyond_a_float_become_the_greatest_one(void **state) {
    (void)state;
    assert_true(usi_view_float(1e300) == FLT_MAX && usi_view_float(-1e300) == -FLT_MAX);
    assert_true(usi_view_float(0.1) == 0.1f && isnan(usi_view_float(NAN)));
}

// ---- messages ----

static usi_view_message m;
static us_error err;

static us_status parse(const char *text) {
    memset(&m, 0xaa, sizeof m);
    memset(&err, 0, sizeof err);
    return usi_view_parse(text, strlen(text), &m, &err);
}

static void every_op_is_read_with_its_fields(void **state) {
    (void)state;
    assert_int_equal(
        parse("{\"op\":\"view\",\"hz\":12.5,\"contacts\":true,\"torques\":false,\"topics\":true}"), US_OK);
    assert_true(m.op == USI_VIEW_OP_VIEW && m.hz == 12.5 && m.enable_contacts && !m.enable_torques &&
                m.enable_topics);
    assert_int_equal(m.has,
                     USI_VIEW_HAS_HZ | USI_VIEW_HAS_CONTACTS | USI_VIEW_HAS_TORQUES | USI_VIEW_HAS_TOPICS);
    assert_int_equal(parse(" {\"torques\" : true,\n\t\"op\":\"view\"}\r\n "), US_OK);
    assert_true(m.op == USI_VIEW_OP_VIEW && m.has == USI_VIEW_HAS_TORQUES && m.enable_torques);

    assert_int_equal(parse("{\"op\":\"watch\",\"generation\":4294967295,\"values\":[\"a.q\",\"robot/"
                           "\\u00e4rm.v\",\"a.q\"]}"),
                     US_OK);
    assert_true(m.op == USI_VIEW_OP_WATCH && m.generation == UINT32_MAX && m.n_value == 3);
    assert_string_equal(m.values[0], "a.q");
    assert_string_equal(m.values[1], "robot/\xc3\xa4rm.v");
    assert_string_equal(m.values[2], "a.q");
    assert_int_equal(parse("{\"op\":\"watch\",\"generation\":0,\"values\":[]}"), US_OK);
    assert_int_equal(m.n_value, 0);

    assert_int_equal(parse("{\"op\":\"full\"}"), US_OK);
    assert_int_equal(m.op, USI_VIEW_OP_FULL);

    assert_int_equal(
        parse("{\"op\":\"command\",\"id\":-9007199254740992,\"text\":\"pair \\\"a\\\\u0000\\\" b\"}"), US_OK);
    assert_true(m.op == USI_VIEW_OP_COMMAND && m.id == -9007199254740992);
    assert_string_equal(m.text, "pair \"a\\u0000\" b");

    assert_int_equal(parse("{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":0.5,\"vy\":-1e-3,\"wz\":0}"), US_OK);
    assert_true(m.op == USI_VIEW_OP_DRIVE && m.vx == 0.5 && m.vy == -1e-3 && m.wz == 0);
    assert_string_equal(m.robot, "k10");
    // A robot file alone is a robot without a name.
    assert_int_equal(parse("{\"op\":\"drive\",\"robot\":\"\",\"vx\":0.5,\"vy\":0,\"wz\":0}"), US_OK);
    assert_string_equal(m.robot, "");
}

static void what_is_no_message_is_refused_with_a_text(void **state) {
    (void)state;
    const struct {
        const char *text;
        us_status status;
        const char *why;  // part of what is said
    } bad[] = {
        {"", US_ERR_SYNTAX, "empty"},
        {" ", US_ERR_SYNTAX, "not JSON"},
        {"{", US_ERR_SYNTAX, "not JSON"},
        {"{\"op\":\"full\"", US_ERR_SYNTAX, "not JSON"},
        {"{\"op\":\"full\"}x", US_ERR_SYNTAX, "follows"},
        {"{\"op\":\"full\"}{\"op\":\"full\"}", US_ERR_SYNTAX, "follows"},
        {"{\"op\":\"full\",}", US_ERR_SYNTAX, "not JSON"},
        {"{op:\"full\"}", US_ERR_SYNTAX, "not JSON"},
        {"{'op':'full'}", US_ERR_SYNTAX, "not JSON"},
        {"[]", US_ERR_SYNTAX, "not a JSON object"},
        {"null", US_ERR_SYNTAX, "not a JSON object"},
        {"7", US_ERR_SYNTAX, "not a JSON object"},
        {"\"full\"", US_ERR_SYNTAX, "not a JSON object"},
        {"{}", US_ERR_NAME, "no \"op\""},
        {"{\"op\":1}", US_ERR_NAME, "no \"op\""},
        {"{\"op\":null}", US_ERR_NAME, "no \"op\""},
        {"{\"op\":\"\"}", US_ERR_NAME, "unknown op"},
        {"{\"op\":\"Full\"}", US_ERR_NAME, "unknown op \"Full\""},
        {"{\"OP\":\"full\"}", US_ERR_NAME, "no \"op\""},
        {"{\"op\":\"subscribe\"}", US_ERR_NAME, "unknown op \"subscribe\""},
        {"{\"op\":\"full\",\"more\":1}", US_ERR_NAME, "unknown field \"more\""},
        {"{\"op\":\"full\",\"op\":\"full\"}", US_ERR_NAME, "twice"},
        {"{\"op\":\"view\",\"hz\":1,\"hz\":2}", US_ERR_NAME, "twice"},
        {"{\"op\":\"view\",\"HZ\":1}", US_ERR_NAME, "unknown field \"HZ\""},
        // Kinds and ranges.
        {"{\"op\":\"view\",\"hz\":\"30\"}", US_ERR_VALUE, "hz"},
        {"{\"op\":\"view\",\"hz\":null}", US_ERR_VALUE, "hz"},
        {"{\"op\":\"view\",\"hz\":-1}", US_ERR_VALUE, "hz"},
        {"{\"op\":\"view\",\"hz\":60.5}", US_ERR_VALUE, "hz"},
        {"{\"op\":\"view\",\"points\":-1}", US_ERR_VALUE, "points"},
        {"{\"op\":\"view\",\"points\":1.5}", US_ERR_VALUE, "whole"},
        {"{\"op\":\"view\",\"points\":200001}", US_ERR_VALUE, "200000"},
        {"{\"op\":\"view\",\"points\":true}", US_ERR_VALUE, "points"},
        {"{\"op\":\"view\",\"hz\":1e999}", US_ERR_VALUE, "hz"},
        {"{\"op\":\"view\",\"hz\":NaN}", US_ERR_SYNTAX, "not JSON"},
        {"{\"op\":\"view\",\"hz\":Infinity}", US_ERR_SYNTAX, "not JSON"},
        {"{\"op\":\"view\",\"contacts\":1}", US_ERR_VALUE, "contacts"},
        {"{\"op\":\"view\",\"topics\":\"true\"}", US_ERR_VALUE, "topics"},
        {"{\"op\":\"watch\",\"values\":[]}", US_ERR_VALUE, "\"generation\" is missing"},
        {"{\"op\":\"watch\",\"generation\":1}", US_ERR_VALUE, "\"values\" is missing"},
        {"{\"op\":\"watch\",\"generation\":1.5,\"values\":[]}", US_ERR_VALUE, "whole"},
        {"{\"op\":\"watch\",\"generation\":-1,\"values\":[]}", US_ERR_VALUE, "generation"},
        {"{\"op\":\"watch\",\"generation\":4294967296,\"values\":[]}", US_ERR_VALUE, "generation"},
        {"{\"op\":\"watch\",\"generation\":1,\"values\":\"a.q\"}", US_ERR_VALUE, "list"},
        {"{\"op\":\"watch\",\"generation\":1,\"values\":{\"a\":\"b\"}}", US_ERR_VALUE, "list"},
        {"{\"op\":\"watch\",\"generation\":1,\"values\":[1]}", US_ERR_VALUE, "not a text"},
        {"{\"op\":\"watch\",\"generation\":1,\"values\":[null]}", US_ERR_VALUE, "not a text"},
        {"{\"op\":\"watch\",\"generation\":1,\"values\":[\"\"]}", US_ERR_VALUE, "empty"},
        {"{\"op\":\"watch\",\"generation\":1,\"values\":[[\"a\"]]}", US_ERR_LIMIT, "nested"},
        {"{\"op\":\"command\",\"text\":\"pause\"}", US_ERR_VALUE, "\"id\" is missing"},
        {"{\"op\":\"command\",\"id\":1}", US_ERR_VALUE, "\"text\" is missing"},
        {"{\"op\":\"command\",\"id\":\"1\",\"text\":\"pause\"}", US_ERR_VALUE, "id"},
        {"{\"op\":\"command\",\"id\":0.5,\"text\":\"pause\"}", US_ERR_VALUE, "whole"},
        {"{\"op\":\"command\",\"id\":1e17,\"text\":\"pause\"}", US_ERR_VALUE, "id"},
        {"{\"op\":\"command\",\"id\":1,\"text\":true}", US_ERR_VALUE, "not a text"},
        {"{\"op\":\"command\",\"id\":1,\"text\":\"\"}", US_ERR_VALUE, "empty"},
        {"{\"op\":\"command\",\"id\":1,\"text\":\"pause\\nresume\"}", US_ERR_VALUE, "control character"},
        {"{\"op\":\"command\",\"id\":1,\"text\":\"pause\\u007f\"}", US_ERR_VALUE, "control character"},
        {"{\"op\":\"command\",\"id\":1,\"text\":\"pause\\u0000\"}", US_ERR_SYNTAX, "zero character"},
        {"{\"op\":\"command\",\"id\":1,\"text\":\"pause\\ud800\"}", US_ERR_SYNTAX, "not JSON"},
        {"{\"op\":\"command\",\"id\":1,\"text\":\"pause\nresume\"}", US_ERR_SYNTAX, "control character"},
        {"{\"op\":\"drive\",\"vx\":0,\"vy\":0,\"wz\":0}", US_ERR_VALUE, "\"robot\" is missing"},
        {"{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":0,\"vy\":0}", US_ERR_VALUE, "\"wz\" is missing"},
        {"{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":1e999,\"vy\":0,\"wz\":0}", US_ERR_VALUE, "vx"},
        {"{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":0,\"vy\":-1e999,\"wz\":0}", US_ERR_VALUE, "vy"},
        {"{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":0,\"vy\":0,\"wz\":nan}", US_ERR_SYNTAX, "not JSON"},
        {"{\"op\":\"drive\",\"robot\":[\"k10\"],\"vx\":0,\"vy\":0,\"wz\":0}", US_ERR_VALUE, "not a text"},
        // Characters and nesting.
        {"\xff\xfe", US_ERR_SYNTAX, "UTF-8"},
        {"{\"op\":\"full\xc3\"}", US_ERR_SYNTAX, "UTF-8"},
        {"{\"op\":\"\xc0\xaf\"}", US_ERR_SYNTAX, "UTF-8"},
        {"{\"op\":\"\xed\xa0\x80\"}", US_ERR_SYNTAX, "UTF-8"},
        {"{\"op\":\"\xf4\x90\x80\x80\"}", US_ERR_SYNTAX, "UTF-8"},
        {"{\"op\":\v\"full\"}", US_ERR_SYNTAX, "control character"},
        {"[[[[[[[[[[[[[[[[", US_ERR_LIMIT, "nested"},
        {"{\"a\":{\"a\":{\"a\":{}}}}", US_ERR_LIMIT, "nested"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        us_status status = parse(bad[i].text);
        if (status != bad[i].status || !strstr(err.message, bad[i].why)) {
            fail_msg("%s: status %d (expected %d), message \"%s\" (expected \"%s\")", bad[i].text,
                     (int)status, (int)bad[i].status, err.message, bad[i].why);
        }
        assert_int_equal(err.code, status);
    }
}

static void a_zero_byte_in_a_message_is_refused(void **state) {
    (void)state;
    const char in_text[] = "{\"op\":\"command\",\"id\":1,\"text\":\"pause\0 all\"}",
               outside[] = "{\"op\":\"full\"}\0";
    assert_int_equal(usi_view_parse(in_text, sizeof in_text - 1, &m, &err), US_ERR_SYNTAX);
    assert_int_equal(usi_view_parse(outside, sizeof outside - 1, &m, &err), US_ERR_SYNTAX);
    assert_int_equal(usi_view_parse(outside, sizeof outside - 2, &m, &err), US_OK);
}

// A watch of n names of a length each.
static char *watch_of(int n, int length) {
    size_t cap = (size_t)n * ((size_t)length + 3) + 100, at = 0;
    char *text = malloc(cap);
    assert_non_null(text);
    at += (size_t)snprintf(text, cap, "{\"op\":\"watch\",\"generation\":1,\"values\":[");
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, cap - at, "%s\"%0*d\"", i ? "," : "", length, i);
    snprintf(text + at, cap - at, "]}");
    return text;
}

static void as_many_names_as_allowed_are_read_and_one_more_is_refused(void **state) {
    (void)state;
    char *text = watch_of(USI_VIEW_VALUE_COUNT, 200);
    assert_int_equal(parse(text), US_OK);
    assert_int_equal(m.n_value, USI_VIEW_VALUE_COUNT);
    for (int i = 0; i < m.n_value; i++)
        assert_int_equal(atoi(m.values[i]), i);
    free(text);
    text = watch_of(USI_VIEW_VALUE_COUNT + 1, 3);
    assert_int_equal(parse(text), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "more than 256 names"));
    free(text);
}

static void texts_that_are_too_long_are_refused(void **state) {
    (void)state;
    char *text = watch_of(1, USI_VIEW_NAME);
    assert_int_equal(parse(text), US_OK);
    free(text);
    text = watch_of(1, USI_VIEW_NAME + 1);
    assert_int_equal(parse(text), US_ERR_LIMIT);
    free(text);
    static char command[USI_VIEW_COMMAND + 100];
    snprintf(command, sizeof command, "{\"op\":\"command\",\"id\":1,\"text\":\"%0*d\"}", USI_VIEW_COMMAND, 1);
    assert_int_equal(parse(command), US_OK);
    assert_int_equal(strlen(m.text), USI_VIEW_COMMAND);
    snprintf(command, sizeof command, "{\"op\":\"command\",\"id\":1,\"text\":\"%0*d\"}", USI_VIEW_COMMAND + 1,
             1);
    assert_int_equal(parse(command), US_ERR_LIMIT);
    // A long name of an op or a field does not get into the answer whole.
    snprintf(command, sizeof command, "{\"op\":\"%0*d\"}", 3000, 1);
    assert_int_equal(parse(command), US_ERR_NAME);
    assert_true(strlen(err.message) < 100);
}

static void a_message_that_is_too_long_is_refused_and_one_that_just_fits_is_read(void **state) {
    (void)state;
    char *text = malloc(USI_VIEW_MESSAGE + 2);
    assert_non_null(text);
    memset(text, ' ', USI_VIEW_MESSAGE + 1);
    memcpy(text, "{\"op\":\"full\"}", 13);
    text[USI_VIEW_MESSAGE + 1] = 0;
    assert_int_equal(parse(text), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "65536"));
    text[USI_VIEW_MESSAGE] = 0;
    assert_int_equal(parse(text), US_OK);
    // As deep and as full of lists as it gets.
    memset(text, '[', USI_VIEW_MESSAGE);
    assert_int_equal(parse(text), US_ERR_LIMIT);
    for (int i = 0; i < USI_VIEW_MESSAGE; i += 2)
        memcpy(text + i, "1,", 2);
    text[0] = '[';
    text[USI_VIEW_MESSAGE - 1] = ']';
    assert_int_equal(parse(text), US_ERR_SYNTAX);
    free(text);
}

static void numbers_are_read_the_same_in_every_locale(void **state) {
    (void)state;
    // Not every machine has one; the numbers are checked all the same.
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) print_message("no locale with a comma here\n");
    us_status status = parse("{\"op\":\"drive\",\"robot\":\"k10\",\"vx\":0.5,\"vy\":0,\"wz\":0}");
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(status, US_OK);
    assert_true(m.vx == 0.5);
}

static void utf8_is_told_from_what_is_not(void **state) {
    (void)state;
    const char *good[] = {"",
                          "plain",
                          "\xc2\x80",
                          "\xdf\xbf",
                          "\xe0\xa0\x80",
                          "\xed\x9f\xbf",
                          "\xee\x80\x80",
                          "\xf0\x90\x80\x80",
                          "\xf4\x8f\xbf\xbf"};
    const char *bad[] = {"\x80",
                         "\xc1\xbf",
                         "\xc2",
                         "\xe0\x9f\xbf",
                         "\xe2\x82",
                         "\xed\xa0\x80",
                         "\xf0\x8f\xbf\xbf",
                         "\xf4\x90\x80\x80",
                         "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(usi_view_is_utf8(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(usi_view_is_utf8(bad[i], strlen(bad[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_has_its_golden_bytes),
        cmocka_unit_test(a_tick_before_the_start_keeps_its_sign),
        cmocka_unit_test(a_pose_has_its_golden_bytes),
        cmocka_unit_test(a_value_and_a_torque_have_their_golden_bytes),
        cmocka_unit_test(a_tile_of_ruts_has_its_golden_bytes),
        cmocka_unit_test(a_cloud_and_a_point_have_their_golden_bytes),
        cmocka_unit_test(a_contact_has_its_golden_bytes),
        cmocka_unit_test(numbers_beyond_a_float_become_the_greatest_one),
        cmocka_unit_test(every_op_is_read_with_its_fields),
        cmocka_unit_test(what_is_no_message_is_refused_with_a_text),
        cmocka_unit_test(a_zero_byte_in_a_message_is_refused),
        cmocka_unit_test(as_many_names_as_allowed_are_read_and_one_more_is_refused),
        cmocka_unit_test(texts_that_are_too_long_are_refused),
        cmocka_unit_test(a_message_that_is_too_long_is_refused_and_one_that_just_fits_is_read),
        cmocka_unit_test(numbers_are_read_the_same_in_every_locale),
        cmocka_unit_test(utf8_is_told_from_what_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Messages as text, and numbers by their path.
#include "test_message_support.h"

#include <locale.h>
#include <unistd.h>

enum { BUF = 1 << 16 };
static uint8_t bytes[BUF];
static char text[BUF];

static const char *print(const us_message_type *type, const void *message, int32_t max_item) {
    size_t length = encode(type, message, bytes, BUF), n = 0;
    us_error err = {0};
    if (us_message_print(type, bytes, length, max_item, text, sizeof text, &n, &err))
        fail_msg("%s", err.message);
    assert_int_equal(n, strlen(text));
    return text;
}

static void nested_messages_are_indented_and_arrays_are_lists(void **state) {
    (void)state;
    char *names[] = {usi_text("left"), usi_text("right")};
    double positions[] = {0.5, -1.0};
    us_msg_joint_state joints = {.header = {{12, 500000000}, usi_text("base")},
                                 .name = {2, 2, names, false},
                                 .position = {2, 2, positions, false}};
    assert_string_equal(print(usi_type_joint_state, &joints, 0), "header:\n"
                                                                 "  stamp:\n"
                                                                 "    sec: 12\n"
                                                                 "    nanosec: 500000000\n"
                                                                 "  frame_id: base\n"
                                                                 "name:\n"
                                                                 "- left\n"
                                                                 "- right\n"
                                                                 "position:\n"
                                                                 "- 0.5\n"
                                                                 "- -1.0\n"
                                                                 "velocity: []\n"
                                                                 "effort: []\n");
    us_msg_key_value values[] = {{usi_text("volts"), usi_text("24.1")}, {NULL, usi_text("two words")}};
    us_msg_diagnostic_status status[] = {
        {.level = 2, .name = usi_text("motor: left"), .values = {2, 2, values, false}}};
    us_msg_diagnostic_array diagnostics = {.status = {1, 1, status, false}};
    assert_string_equal(print(usi_type_diagnostic_array, &diagnostics, 0), "header:\n"
                                                                           "  stamp:\n"
                                                                           "    sec: 0\n"
                                                                           "    nanosec: 0\n"
                                                                           "  frame_id: ''\n"
                                                                           "status:\n"
                                                                           "- level: 2\n"
                                                                           "  name: 'motor: left'\n"
                                                                           "  message: ''\n"
                                                                           "  hardware_id: ''\n"
                                                                           "  values:\n"
                                                                           "  - key: volts\n"
                                                                           "    value: '24.1'\n"
                                                                           "  - key: ''\n"
                                                                           "    value: two words\n");
    us_msg_tf_message no_frames = {0};
    assert_string_equal(print(usi_type_tf_message, &no_frames, 0), "transforms: []\n");
    us_msg_empty nothing = {0};
    assert_string_equal(print(usi_type_empty, &nothing, 0), "{}\n");
    us_msg_bool truth = {true};
    assert_string_equal(print(usi_type_bool, &truth, 0), "data: true\n");
    us_msg_nav_sat_status fix = {-2, 65535};
    assert_string_equal(print(usi_type_nav_sat_status, &fix, 0), "status: -2\nservice: 65535\n");
    us_msg_tick_hash hash = {INT64_MIN, UINT64_MAX};
    assert_string_equal(print(usi_type_tick_hash, &hash, 0),
                        "tick: -9223372036854775808\nhash: 18446744073709551615\n");
}

static void long_arrays_are_cut_where_asked(void **state) {
    (void)state;
    double data[5] = {1, 2, 3, 4, 5};
    us_msg_multi_array_dimension dims[3] = {
        {.label = usi_text("a")}, {.label = usi_text("b")}, {.label = usi_text("c")}};
    us_msg_float64_multi_array array = {.layout = {{3, 3, dims, false}, 7}, .data = {5, 5, data, false}};
    assert_string_equal(print(usi_type_float64_multi_array, &array, 2), "layout:\n"
                                                                        "  dim:\n"
                                                                        "  - label: a\n"
                                                                        "    size: 0\n"
                                                                        "    stride: 0\n"
                                                                        "  - label: b\n"
                                                                        "    size: 0\n"
                                                                        "    stride: 0\n"
                                                                        "  - '...'\n"
                                                                        "  data_offset: 7\n"
                                                                        "data:\n"
                                                                        "- 1.0\n"
                                                                        "- 2.0\n"
                                                                        "- '...'\n");
    assert_non_null(strstr(print(usi_type_float64_multi_array, &array, 5), "- 5.0\n"));
    assert_null(strstr(text, "..."));
}

static void double_is(double x, const char *expected) {
    us_msg_float64 message = {x};
    print(usi_type_float64, &message, 0);
    text[strlen(text) - 1] = 0;
    assert_string_equal(text + strlen("data: "), expected);
}

static void doubles_are_printed_as_python_prints_them(void **state) {
    (void)state;
    double_is(0.0, "0.0");
    double_is(-0.0, "-0.0");
    double_is(1.0, "1.0");
    double_is(0.1, "0.1");
    double_is(0.1 + 0.2, "0.30000000000000004");
    double_is(-1234.5, "-1234.5");
    double_is(100.0, "100.0");
    double_is(0.0001, "0.0001");
    double_is(0.00001, "1.0e-05");
    double_is(1.25e-7, "1.25e-07");
    double_is(1e15, "1000000000000000.0");
    double_is(1234567890123456.0, "1234567890123456.0");
    double_is(1e16, "1.0e+16");
    double_is(1.7976931348623157e308, "1.7976931348623157e+308");
    double_is(5e-324, "5.0e-324");
    double_is((double)INFINITY, ".inf");
    double_is(-(double)INFINITY, "-.inf");
    double_is((double)NAN, ".nan");
}

static void printed_numbers_read_back_to_the_same_bits(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = us_random_bits(1, 2, i);
        us_msg_float64 message;
        memcpy(&message.data, &bits, sizeof bits);
        if (!isfinite(message.data)) continue;
        print(usi_type_float64, &message, 0);
        double back = strtod(text + strlen("data: "), NULL);
        assert_memory_equal(&back, &message.data, sizeof back);
    }
}

static void a_foreign_decimal_point_does_not_show(void **state) {
    (void)state;
    // Few machines have such a locale ready; it is made here, where the C library then looks for it.
    FILE *file = fopen("comma.txt", "w");
    assert_non_null(file);
    fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3\nEND LC_NUMERIC\n", file);
    assert_int_equal(fclose(file), 0);
    int made = system("localedef -c -i ./comma.txt -f ISO-8859-1 ./comma >localedef.log 2>&1");
    char here[1024];
    assert_non_null(getcwd(here, sizeof here));
    setenv("LOCPATH", here, 1);
    // It warns of the categories that are not there, and ends with 1 then: what counts is whether it can be
    // used.
    if (!setlocale(LC_NUMERIC, "comma")) {
        print_message("skipped: localedef (%d) cannot make a locale with a decimal comma\n", made);
        skip();
    }
    char comma[8];
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    assert_string_equal(comma, "0,5");
    double_is(0.5, "0.5");
    double_is(1.25e-7, "1.25e-07");
    setlocale(LC_NUMERIC, "C");
}

static void string_is(const char *s, const char *expected) {
    us_msg_string message = {.data = usi_text(s)};
    print(usi_type_string, &message, 0);
    text[strlen(text) - 1] = 0;
    assert_string_equal(text + strlen("data: "), expected);
}

static void strings_are_quoted_where_yaml_would_misread_them(void **state) {
    (void)state;
    string_is("odom", "odom");
    string_is("k10/base_link", "k10/base_link");
    string_is("two words", "two words");
    string_is("grün", "grün");
    string_is("http://a:80/b", "http://a:80/b");
    string_is("a-b", "a-b");
    string_is("-x", "-x");
    string_is("3d_camera", "3d_camera");
    string_is("", "''");
    string_is("12", "'12'");
    string_is("-1.5e3", "'-1.5e3'");
    string_is("0x1F", "'0x1F'");
    string_is("2024-01-01", "'2024-01-01'");
    string_is(".nan", "'.nan'");
    string_is("True", "'True'");
    string_is("no", "'no'");
    string_is("null", "'null'");
    string_is("~", "'~'");
    string_is("it's", "it's");
    string_is("'it's'", "'''it''s'''");
    string_is("- x", "'- x'");
    string_is("key: value", "'key: value'");
    string_is("end:", "'end:'");
    string_is("a #b", "'a #b'");
    string_is(" a", "' a'");
    string_is("a ", "'a '");
    string_is("[1]", "'[1]'");
    string_is("---", "'---'");
    string_is("a\nb\t\"c\" \\", "\"a\\nb\\t\\\"c\\\" \\\\\"");
    string_is("bell\a", "\"bell\\x07\"");
    string_is("bad \xff utf", "\"bad \\xff utf\"");
    string_is("grün\n", "\"grün\\n\"");
}

static void a_short_buffer_keeps_what_fits_and_says_what_all_would_need(void **state) {
    (void)state;
    us_msg_string message = {.data = usi_text("abcdef")};
    size_t length = encode(usi_type_string, &message, bytes, BUF), n = 0;
    const char *all = "data: abcdef\n";
    for (size_t cap = 0; cap < 20; cap++) {
        memset(text, 0x55, 32);
        assert_int_equal(us_message_print(usi_type_string, bytes, length, 0, text, cap, &n, NULL), US_OK);
        assert_int_equal(n, strlen(all));
        size_t kept = cap == 0 ? 0 : cap - 1 < strlen(all) ? cap - 1 : strlen(all);
        assert_memory_equal(text, all, kept);
        if (cap > 0) assert_int_equal(text[kept], 0);
        for (size_t i = cap > kept + 1 ? cap : kept + (cap > 0); i < 32; i++)
            assert_int_equal(text[i], 0x55);
    }
    us_error err;
    assert_int_equal(us_message_print(usi_type_string, bytes, length, 0, NULL, 0, &n, NULL), US_OK);
    assert_int_equal(us_message_print(usi_type_string, bytes, length - 1, 0, text, sizeof text, &n, &err),
                     US_ERR_SYNTAX);
    assert_string_equal(text, "");
    assert_int_equal(us_message_print(usi_type_string, bytes, length, -1, text, sizeof text, &n, &err),
                     US_ERR_ARG);
    assert_int_equal(us_message_print(NULL, bytes, length, 0, text, sizeof text, &n, &err), US_ERR_ARG);
    assert_int_equal(us_message_print(usi_type_string, NULL, length, 0, text, sizeof text, &n, &err),
                     US_ERR_ARG);
    assert_int_equal(us_message_print(usi_type_string, bytes, length, 0, NULL, 5, &n, &err), US_ERR_ARG);
}

static void a_path_finds_its_number(void **state) {
    (void)state;
    us_msg_odometry odometry = {.header = {{3, 4}, usi_text("odom")}, .child_frame_id = usi_text("base")};
    odometry.pose.pose.position.x = 1.5;
    odometry.pose.covariance[35] = 36.0;
    odometry.twist.twist.angular.z = -0.25;
    size_t n = encode(usi_type_odometry, &odometry, bytes, BUF);
    assert_true(us_message_get_number(usi_type_odometry, bytes, n, "header.stamp.sec") == 3.0);
    assert_true(us_message_get_number(usi_type_odometry, bytes, n, "pose.pose.position.x") == 1.5);
    assert_true(us_message_get_number(usi_type_odometry, bytes, n, "pose.covariance[35]") == 36.0);
    assert_true(us_message_get_number(usi_type_odometry, bytes, n, "twist.twist.angular.z") == -0.25);

    us_msg_transform_stamped frames[2] = {{.child_frame_id = usi_text("longer than the other")},
                                          {.child_frame_id = usi_text("b")}};
    frames[1].transform.rotation.w = 0.75;
    us_msg_tf_message tf = {.transforms = {2, 2, frames, false}};
    size_t n_tf = encode(usi_type_tf_message, &tf, room, ROOM);
    assert_true(
        us_message_get_number(usi_type_tf_message, room, n_tf, "transforms[1].transform.rotation.w") == 0.75);
    us_msg_battery_state battery = {.present = true, .percentage = 0.5f, .power_supply_status = 200};
    size_t n_battery = encode(usi_type_battery_state, &battery, room + 4096, ROOM - 4096);
    assert_true(us_message_get_number(usi_type_battery_state, room + 4096, n_battery, "present") == 1.0);
    assert_true(us_message_get_number(usi_type_battery_state, room + 4096, n_battery, "percentage") == 0.5);
    assert_true(us_message_get_number(usi_type_battery_state, room + 4096, n_battery,
                                      "power_supply_status") == 200.0);

    static const char *const none[] = {"",
                                       "pose",
                                       "pose.",
                                       "pose.pose.position",
                                       "pose.pose.position.q",
                                       "pose.pose.position.x.y",
                                       "pose.covariance",
                                       "pose.covariance[36]",
                                       "pose.covariance[-1]",
                                       "pose.covariance[]",
                                       "pose.covariance[1",
                                       "pose.covariance[1]x",
                                       "pose.covariance[99999999999999999999]",
                                       "header[0].stamp.sec",
                                       "header.frame_id",
                                       "header.stamp.sec "};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        if (!isnan(us_message_get_number(usi_type_odometry, bytes, n, none[i])))
            fail_msg("\"%s\" is a number", none[i]);
    }
    assert_true(
        isnan(us_message_get_number(usi_type_tf_message, room, n_tf, "transforms[2].transform.rotation.w")));
    assert_true(isnan(us_message_get_number(usi_type_odometry, bytes, n - 8, "twist.covariance[35]")));
    assert_true(isnan(us_message_get_number(NULL, bytes, n, "pose")));
    assert_true(isnan(us_message_get_number(usi_type_odometry, NULL, n, "pose")));
    assert_true(isnan(us_message_get_number(usi_type_odometry, bytes, n, NULL)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_messages_are_indented_and_arrays_are_lists),
        cmocka_unit_test(long_arrays_are_cut_where_asked),
        cmocka_unit_test(doubles_are_printed_as_python_prints_them),
        cmocka_unit_test(printed_numbers_read_back_to_the_same_bits),
        cmocka_unit_test(a_foreign_decimal_point_does_not_show),
        cmocka_unit_test(strings_are_quoted_where_yaml_would_misread_them),
        cmocka_unit_test(a_short_buffer_keeps_what_fits_and_says_what_all_would_need),
        cmocka_unit_test(a_path_finds_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

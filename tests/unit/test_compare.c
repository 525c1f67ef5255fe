// Two recordings side by side: which numbers differ, by how much, when, and what has no counterpart.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "record/track.h"
#include "understudy/record.h"
#include "wire/messages.h"
#include "wire/numbers.h"

// ---- recordings ----

typedef struct script {
    double period, shift, scale, from, to;  // s, s, -, s, s
    bool has_twist;
} script;

static const script plain = {.period = 0.01, .scale = 1, .to = 2, .has_twist = true};

static void write(us_recorder *recorder, int32_t channel, double time, const us_message_type *type,
                  const void *message) {
    uint8_t bytes[1024];
    size_t length = 0;
    int64_t ns = llround(1e9 * time);
    assert_int_equal(us_message_encode(type, message, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_recorder_write(recorder, channel, ns, ns, bytes, length), US_OK);
}

// x = scale * (t + shift), y = 0 and an orientation that is not a number.
static us_recording *make(const char *path, const script *s) {
    us_error err = {0};
    us_recorder *recorder = NULL;
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    assert_int_equal(us_recorder_open(&def, &recorder, &err), US_OK);
    int32_t odom = us_recorder_add_channel(recorder, "/r/odom", usi_type_odometry, &err);
    int32_t twist = s->has_twist ? us_recorder_add_channel(recorder, "/r/cmd_vel", usi_type_twist, &err) : -1;
    int32_t own = us_recorder_add_channel(recorder, "/understudy/ticks", usi_type_tick_hash, &err);
    for (int64_t i = llround(s->from / s->period); (double)i * s->period <= s->to + 1e-9; i++) {
        double t = (double)i * s->period;
        us_msg_odometry m = {.header.stamp.sec = (int32_t)(1000 * s->shift), .pose.pose.orientation.w = NAN};
        m.header.frame_id = m.child_frame_id = usi_text("");
        m.pose.pose.position.x = s->scale * (t + s->shift);
        write(recorder, odom, t, usi_type_odometry, &m);
        us_msg_twist v = {.linear.x = 0.5};
        if (twist >= 0 && i % 10 == 0) write(recorder, twist, t, usi_type_twist, &v);
        us_msg_tick_hash h = {i, (uint64_t)(1e6 * s->scale)};
        write(recorder, own, t, usi_type_tick_hash, &h);
    }
    assert_int_equal(us_recorder_close(recorder, &err), US_OK);
    us_recording *recording = NULL;
    assert_int_equal(us_recording_open(path, NULL, &recording, &err), US_OK);
    return recording;
}

static us_compared_field seen[8];
static char seen_path[8][64], seen_topic[8][64];
static int n_seen;

static void on_field(void *context, const us_compared_field *f) {
    (void)context;
    assert_true(n_seen < 8);
    snprintf(seen_path[n_seen], sizeof seen_path[0], "%s", f->path ? f->path : f->topic);
    // Its texts end with the recordings.
    snprintf(seen_topic[n_seen], sizeof seen_topic[0], "%s", f->topic);
    seen[n_seen] = *f;
    seen[n_seen].topic = seen_topic[n_seen];
    seen[n_seen].path = f->path ? seen_path[n_seen] : NULL;
    n_seen++;
}

static us_compare_result compare(const script *a, const script *b, double tolerance, double slack) {
    us_recording *first = make("a.mcap", a), *second = make("b.mcap", b);
    us_compare_def def = us_compare_def_default();
    us_compare_result result;
    us_error err = {0};
    def.tolerance = tolerance;
    def.slack = slack;
    def.field = on_field;
    n_seen = 0;
    assert_int_equal(us_recording_compare(first, second, &def, &result, &err), US_OK);
    us_recording_close(first);
    us_recording_close(second);
    return result;
}

// ---- tests ----

static void the_same_has_no_difference(void **state) {
    (void)state;
    us_compare_result r = compare(&plain, &plain, 0, 0);
    assert_int_equal(n_seen, 0);
    assert_int_equal(r.n_topic, 2);
    assert_int_equal(r.n_sample, 201 + 21);
    assert_true(r.n_unmatched == 0 && r.n_different == 0 && r.n_beyond == 0 && r.n_alone == 0);
    // All of a Twist, and all of an Odometry but its stamp.
    assert_int_equal(r.n_field, 6 + 7 + 36 + 6 + 36);
}

static void a_difference_has_its_size_and_its_time(void **state) {
    (void)state;
    script b = plain;
    b.scale = 1.5;
    us_compare_result r = compare(&plain, &b, 0.25, 0);
    assert_true(r.n_different == 1 && r.n_beyond == 1 && n_seen == 1);
    assert_string_equal(seen_path[0], "pose.pose.position.x");
    assert_string_equal(seen[0].topic, "/r/odom");
    // 0.5 t, up to 2 s: its root mean square is 1 / sqrt(3) but for the steps.
    assert_true(fabs(seen[0].max - 1) < 1e-12 && fabs(seen[0].max_time - 2) < 1e-9 && seen[0].n == 201);
    assert_true(fabs(seen[0].rms - 1 / sqrt(3)) < 0.005);
    assert_true(seen[0].onset > 0.5 && seen[0].onset < 0.52);
    r = compare(&plain, &b, 1.01, 0);
    assert_true(r.n_different == 1 && r.n_beyond == 0 && isnan(seen[0].onset));
}

static void samples_between_those_of_the_other_are_interpolated(void **state) {
    (void)state;
    script b = plain;
    b.period = 0.04;
    us_compare_result r = compare(&plain, &b, 1e-9, 0);
    assert_true(r.n_beyond == 0 && r.n_unmatched == 0);
    assert_int_equal(r.n_sample, 201 + 21);
}

static void a_shift_within_the_slack_is_no_difference(void **state) {
    (void)state;
    script b = plain;
    b.shift = 0.05;
    assert_int_equal(compare(&plain, &b, 1e-9, 0).n_beyond, 1);
    assert_true(fabs(seen[0].max - 0.05) < 1e-9);
    us_compare_result r = compare(&plain, &b, 1e-9, 0.06);
    // At the ends the other has nothing to shift to.
    assert_true(r.n_beyond == 0 && r.n_unmatched > 0 && r.n_unmatched < 20);
    assert_int_equal(compare(&plain, &b, 1e-9, 0.04).n_beyond, 1);
}

static void what_the_other_has_not_is_counted(void **state) {
    (void)state;
    script b = plain;
    b.from = 0.5;
    b.has_twist = false;
    us_compare_result r = compare(&plain, &b, 0, 0);
    assert_true(r.n_topic == 1 && r.n_alone == 1 && n_seen == 1);
    assert_string_equal(seen_path[0], "/r/cmd_vel");
    assert_true(seen[0].path == NULL && seen[0].side == 0);
    assert_int_equal(r.n_sample, 151);
    assert_int_equal(r.n_unmatched, 50);
    r = compare(&b, &plain, 0, 0);
    assert_true(r.n_alone == 1 && seen[0].side == 1 && r.n_unmatched == 0);
    // Far more samples than a track keeps, and none of the other until late.
    script dense = plain;
    dense.period = 0.001;
    r = compare(&dense, &b, 1e-9, 0);
    assert_true(r.n_beyond == 0 && r.n_sample + r.n_unmatched == 2001 && r.n_sample == 1501);
    script never = plain;
    never.from = 10;
    never.to = 11;
    r = compare(&plain, &never, 0, 0);
    assert_true(r.n_sample == 0 && r.n_unmatched == 201 + 21);
}

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    us_recording *a = make("a.mcap", &plain), *b = make("b.mcap", &plain);
    us_compare_result r;
    us_error err = {0};
    us_compare_def def = us_compare_def_default();
    assert_int_equal(us_recording_compare(a, NULL, &def, &r, &err), US_ERR_ARG);
    assert_int_equal(us_recording_compare(a, a, &def, &r, &err), US_ERR_ARG);
    assert_int_equal(us_recording_compare(a, b, &def, NULL, &err), US_ERR_ARG);
    assert_int_equal(us_recording_compare(a, b, NULL, &r, &err), US_OK);
    def.tolerance = -1;
    assert_int_equal(us_recording_compare(a, b, &def, &r, &err), US_ERR_VALUE);
    def.tolerance = 0;
    def.slack = NAN;
    assert_int_equal(us_recording_compare(a, b, &def, &r, &err), US_ERR_VALUE);
    us_recording_close(a);
    us_recording_close(b);
}

static bool count_number(void *context, const char *path, double value) {
    int *n = context;
    assert_true(path[0] != 0 && !isnan(value));
    return ++*n < 3;
}

static void numbers_of_a_message_can_be_cut_short_and_damaged(void **state) {
    (void)state;
    us_msg_twist v = {.linear.x = 0.5};
    uint8_t bytes[128];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &v, bytes, sizeof bytes, &length), US_OK);
    int n = 0;
    assert_false(usi_message_each_number(usi_type_twist, bytes, length, count_number, &n));
    assert_int_equal(n, 3);
    for (size_t cut = 0; cut < length; cut++) {
        n = -100;
        assert_false(usi_message_each_number(usi_type_twist, bytes, cut, count_number, &n));
    }
    n = -100;
    assert_true(usi_message_each_number(usi_type_twist, bytes, length, count_number, &n));
    assert_int_equal(n, -94);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_has_no_difference),
        cmocka_unit_test(a_difference_has_its_size_and_its_time),
        cmocka_unit_test(samples_between_those_of_the_other_are_interpolated),
        cmocka_unit_test(a_shift_within_the_slack_is_no_difference),
        cmocka_unit_test(what_the_other_has_not_is_counted),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(numbers_of_a_message_can_be_cut_short_and_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

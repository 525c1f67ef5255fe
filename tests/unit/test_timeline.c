// Playing a recording: what is due when, at every rate, from clock values alone.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/record.h"
#include "wire/mcap.h"

static const int64_t MS = 1000000;
enum { N = 6 };
// Recorded at these times, ms; the fourth goes back.
static const int64_t times[N] = {1000, 1010, 1010, 1005, 1040, 1100};

typedef struct played {
    uint8_t *bytes;
    us_recording *recording;
} played;

static played make(void) {
    us_allocator a = us_allocator_default();
    usi_mcap_writer w;
    uint16_t channel;
    assert_int_equal(usi_mcap_writer_init(&w, &a, USI_MCAP_NONE, "ros2", ""), US_OK);
    assert_int_equal(usi_mcap_write_channel(&w, 0, "/a", "cdr", 0, NULL, NULL, &channel), US_OK);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t t = (uint64_t)(times[i] * MS);
        assert_int_equal(usi_mcap_write_message(&w, channel, i, t, t, "x", 1), US_OK);
    }
    assert_int_equal(usi_mcap_write_end(&w), US_OK);
    played p = {malloc(w.out.length), NULL};
    assert_non_null(p.bytes);
    memcpy(p.bytes, w.out.data, w.out.length);
    assert_int_equal(us_recording_open_bytes(p.bytes, w.out.length, NULL, &p.recording, NULL), US_OK);
    usi_mcap_writer_fini(&w);
    return p;
}

static void done(played *p) {
    us_recording_close(p->recording);
    free(p->bytes);
}

static us_timeline_step next(us_timeline *t, int64_t clock) {
    us_timeline_step step;
    assert_int_equal(us_timeline_next(t, clock, &step, NULL), US_OK);
    return step;
}

static void expect_due(us_timeline *t, int64_t clock, uint32_t sequence) {
    us_timeline_step step = next(t, clock);
    assert_int_equal(step.what, US_TIMELINE_DUE);
    assert_int_equal(step.message.sequence, sequence);
    assert_int_equal(step.wait, 0);
}

static void expect_wait(us_timeline *t, int64_t clock, int64_t wait) {
    us_timeline_step step = next(t, clock);
    assert_int_equal(step.what, US_TIMELINE_WAIT);
    assert_int_equal(step.wait, wait);
}

static void expect_end(us_timeline *t, int64_t clock) {
    assert_int_equal(next(t, clock).what, US_TIMELINE_END);
}

static void at_rate_one_messages_come_as_far_apart_as_they_were_recorded(void **state) {
    (void)state;
    played p = make();
    us_timeline t;
    int64_t start = 77 * MS;
    assert_int_equal(us_timeline_init(&t, p.recording, 1, -1), US_OK);
    expect_due(&t, start, 0);
    expect_wait(&t, start, 10 * MS);
    expect_wait(&t, start + 10 * MS - 1, 1);
    expect_due(&t, start + 10 * MS, 1);
    expect_due(&t, start + 10 * MS, 2);
    // It went back in time, and keeps its place.
    expect_due(&t, start + 10 * MS, 3);
    expect_wait(&t, start + 10 * MS, 30 * MS);
    assert_int_equal(us_timeline_get_time(&t, start + 25 * MS), 1025 * MS);
    // A caller that overslept gets all that is late, one by one.
    expect_due(&t, start + 500 * MS, 4);
    expect_due(&t, start + 500 * MS, 5);
    expect_end(&t, start + 500 * MS);
    expect_end(&t, start + 500 * MS);
    done(&p);
}

static void at_other_rates_time_is_stretched(void **state) {
    (void)state;
    static const double rates[] = {4, 0.25, 3};
    for (int i = 0; i < 3; i++) {
        played p = make();
        us_timeline t;
        int64_t clock = -5 * MS, started = clock;
        assert_int_equal(us_timeline_init(&t, p.recording, rates[i], -1), US_OK);
        int64_t shown = times[0];
        for (uint32_t k = 0; k < N;) {
            us_timeline_step step = next(&t, clock);
            if (step.what == US_TIMELINE_WAIT) {
                clock += step.wait;
                continue;
            }
            assert_int_equal(step.message.sequence, k);
            if (times[k] > shown) shown = times[k];
            // Never early, and late by less than the nanosecond that rounding up costs.
            double due = (double)((shown - times[0]) * MS) / rates[i];
            assert_true((double)(clock - started) >= due && (double)(clock - started) < due + 1);
            k++;
        }
        expect_end(&t, clock);
        done(&p);
    }
}

static void at_an_infinite_rate_all_come_at_once(void **state) {
    (void)state;
    played p = make();
    us_timeline t;
    assert_int_equal(us_timeline_init(&t, p.recording, INFINITY, -1), US_OK);
    for (uint32_t i = 0; i < N; i++)
        expect_due(&t, 0, i);
    assert_int_equal(us_timeline_get_time(&t, 0), 1100 * MS);
    expect_end(&t, 0);
    done(&p);
}

static void a_pause_and_a_new_rate_do_not_make_the_time_jump(void **state) {
    (void)state;
    played p = make();
    us_timeline t;
    assert_int_equal(us_timeline_init(&t, p.recording, 1, -1), US_OK);
    for (uint32_t i = 0; i < 4; i++)
        expect_due(&t, i ? 10 * MS : 0, i);
    assert_int_equal(us_timeline_set_rate(&t, 20 * MS, 0), US_OK);
    expect_wait(&t, 1000 * MS, INT64_MAX);
    assert_int_equal(us_timeline_get_time(&t, 1000 * MS), 1020 * MS);
    assert_int_equal(us_timeline_set_rate(&t, 1000 * MS, 2), US_OK);
    assert_int_equal(us_timeline_get_time(&t, 1000 * MS), 1020 * MS);
    // 20 ms of recorded time are left to the fifth message, 10 ms at this rate.
    expect_wait(&t, 1000 * MS, 10 * MS);
    expect_due(&t, 1010 * MS, 4);
    expect_wait(&t, 1010 * MS, 30 * MS);
    expect_due(&t, 1040 * MS, 5);
    expect_end(&t, 1040 * MS);
    done(&p);
}

static void playing_can_begin_in_the_middle(void **state) {
    (void)state;
    played p = make();
    us_timeline t;
    assert_int_equal(us_timeline_init(&t, p.recording, 1, 1030 * MS), US_OK);
    expect_wait(&t, 0, 10 * MS);
    expect_due(&t, 10 * MS, 4);
    expect_due(&t, 70 * MS, 5);
    expect_end(&t, 70 * MS);
    done(&p);
}

static void wrong_rates_are_refused_and_damage_is_passed_on(void **state) {
    (void)state;
    played p = make();
    us_timeline t;
    us_timeline_step step;
    assert_int_equal(us_timeline_init(&t, p.recording, -1, 0), US_ERR_ARG);
    assert_int_equal(us_timeline_init(&t, p.recording, NAN, 0), US_ERR_ARG);
    assert_int_equal(us_timeline_init(&t, NULL, 1, 0), US_ERR_ARG);
    assert_int_equal(us_timeline_init(&t, p.recording, INFINITY, -1), US_OK);
    assert_int_equal(us_timeline_set_rate(&t, 0, NAN), US_ERR_ARG);
    assert_int_equal(us_timeline_next(&t, 0, NULL, NULL), US_ERR_ARG);
    // The chunk's first message: its bytes are under the checksum, which is compared when the chunk is
    // opened.
    uint8_t *x = memchr(p.bytes + 100, 'x', 400);
    assert_non_null(x);
    *x = 'y';
    us_error err = {0};
    assert_int_equal(us_timeline_next(&t, 0, &step, &err), US_ERR_SYNTAX);
    assert_non_null(strstr(err.message, "at byte"));
    done(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_rate_one_messages_come_as_far_apart_as_they_were_recorded),
        cmocka_unit_test(at_other_rates_time_is_stretched),
        cmocka_unit_test(at_an_infinite_rate_all_come_at_once),
        cmocka_unit_test(a_pause_and_a_new_rate_do_not_make_the_time_jump),
        cmocka_unit_test(playing_can_begin_in_the_middle),
        cmocka_unit_test(wrong_rates_are_refused_and_damage_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

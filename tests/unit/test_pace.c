// Pace: steps come when they are due, and those that came late are counted.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "understudy/pace.h"

static double seconds_since(int64_t begin) { return 1e-9 * (double)(us_clock_ns() - begin); }

static void work_for(double seconds) {
    int64_t begin = us_clock_ns();
    while (seconds_since(begin) < seconds) {
    }
}

static void a_loop_takes_the_time_of_its_steps(void **state) {
    (void)state;
    const double rates[] = {1, 2, 0.5}, steps[] = {2e-3, 1e-4, 1e-3};
    for (int k = 0; k < 3; k++) {
        int64_t begin = us_clock_ns();
        us_pace pace = us_pace_start(rates[k], steps[k]);
        const int n = (int)lround(0.1 * rates[k] / steps[k]);
        for (int i = 0; i <= n; i++)
            assert_int_equal(us_pace_wait(&pace, 5 + i * steps[k]), US_OK);
        // A busy machine makes it later, nothing makes it earlier: up to the first step, which is due one
        // step after the start.
        assert_true(seconds_since(begin) >= 0.1);
        assert_int_equal(pace.n_done, n);
    }
}

static void without_a_rate_nothing_waits(void **state) {
    (void)state;
    const double none[] = {0, -1, NAN, INFINITY};
    for (int k = 0; k < 4; k++) {
        us_pace pace = us_pace_start(none[k], 10);
        for (int i = 0; i < 100; i++)
            assert_int_equal(us_pace_wait(&pace, 10.0 * i), US_OK);
        assert_int_equal(pace.n_done, 99);
        assert_int_equal(pace.n_missed, 0);
    }
}

static void steps_that_take_too_long_are_missed(void **state) {
    (void)state;
    us_pace pace = us_pace_start(1, 1e-3);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(us_pace_wait(&pace, 1e-3 * i), US_OK);
        work_for(0.02);
    }
    assert_int_equal(us_pace_wait(&pace, 0.010), US_OK);
    // Step k ended at 0.02 k + 0.001 or later, 2 ms after 0.001 k at the latest: all of them are late.
    assert_int_equal(pace.n_done, 10);
    assert_int_equal(pace.n_missed, 10);
    assert_true(pace.worst_late >= 0.18);
    assert_true(pace.slipped == 0);
}

static void a_lag_of_more_than_a_second_moves_the_schedule(void **state) {
    (void)state;
    us_pace pace = us_pace_start(1, 1e-3);
    assert_int_equal(us_pace_wait(&pace, 0), US_OK);
    // As if the step had taken 1.2 s: the schedule and the last return lie that far back.
    pace.start_ns -= 1.2e9;
    pace.wake_ns -= 1200000000;
    assert_int_equal(us_pace_wait(&pace, 1e-3), US_OK);
    assert_true(pace.slipped > 1 && pace.n_missed >= 1 && pace.worst_late > 1);
    // The next ones are due in their own time again.
    int64_t begin = us_clock_ns();
    for (int i = 2; i < 52; i++)
        assert_int_equal(us_pace_wait(&pace, 1e-3 * i), US_OK);
    assert_true(seconds_since(begin) > 0.04);
}

static void a_time_that_goes_back_begins_anew(void **state) {
    (void)state;
    us_pace pace = us_pace_start(1, 1e-3);
    for (int i = 0; i < 20; i++)
        assert_int_equal(us_pace_wait(&pace, 1e-3 * i), US_OK);
    int64_t done = pace.n_done, begin = us_clock_ns();
    for (int i = 0; i < 20; i++)
        assert_int_equal(us_pace_wait(&pace, 1e-3 * i), US_OK);
    assert_true(seconds_since(begin) >= 0.018);
    assert_int_equal(pace.n_done, done + 19);
}

static void what_is_no_time_is_refused(void **state) {
    (void)state;
    us_pace pace = us_pace_start(1, 1e-3);
    assert_int_equal(us_pace_wait(&pace, NAN), US_ERR_VALUE);
    assert_int_equal(us_pace_wait(NULL, 0), US_ERR_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_takes_the_time_of_its_steps),
        cmocka_unit_test(without_a_rate_nothing_waits),
        cmocka_unit_test(steps_that_take_too_long_are_missed),
        cmocka_unit_test(a_lag_of_more_than_a_second_moves_the_schedule),
        cmocka_unit_test(a_time_that_goes_back_begins_anew),
        cmocka_unit_test(what_is_no_time_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

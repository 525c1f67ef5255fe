// The trapezoid profile: it arrives, exactly; it keeps its limits; nothing in it jumps; no quicker way is
// left out.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "firmware/trapezoid.h"

static void near(const char *what, double value, double expected, double tolerance) {
    if (fabs(value - expected) <= tolerance) return;
    fail_msg("%s: %.17g instead of %.17g, tolerance %.3g", what, value, expected, tolerance);
}

static usi_trapezoid profile(double a, double u, double position, double velocity, double end) {
    usi_trapezoid p;
    assert_int_equal(usi_trapezoid_init(&p, a, u, position, velocity, end), US_OK);
    return p;
}

static void a_long_way_speeds_up_cruises_and_brakes(void **state) {
    (void)state;
    // 2 s to 1 rad/s over 1 rad, 3 rad at 1 rad/s, 2 s over the last rad.
    usi_trapezoid p = profile(0.5, 1, 10, 0, 15);
    // All of these numbers are exact in binary: so must be the results.
    assert_true(p.duration == 7 && p.first_end == 2 && p.cruise_end == 5);
    const struct {
        double t, position, velocity, acceleration;
    } points[] = {{-1, 10, 0, 0.5},      {0, 10, 0, 0.5},   {1, 10.25, 0.5, 0.5},
                  {2, 11, 1, 0},         {3.5, 12.5, 1, 0}, {5, 14, 1, -0.5},
                  {6, 14.75, 0.5, -0.5}, {7, 15, 0, 0},     {8, 15, 0, 0}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        usi_trapezoid_point at = usi_trapezoid_at(&p, points[i].t);
        assert_true(at.position == points[i].position);
        assert_true(at.velocity == points[i].velocity);
        assert_true(at.acceleration == points[i].acceleration);
    }
}

static void a_short_way_is_a_triangle(void **state) {
    (void)state;
    usi_trapezoid p = profile(1, 10, 0, 0, -4);
    assert_true(p.duration == 4 && p.first_end == 2 && p.cruise_end == 2);
    usi_trapezoid_point top = usi_trapezoid_at(&p, 2);
    assert_true(top.position == -2 && top.velocity == -2);
}

static void a_start_in_the_wrong_direction_turns_round_without_a_pause(void **state) {
    (void)state;
    // Away from the end at 1 rad/s with 1 rad/s^2: 1 s back to rest at -0.5; from there 1 s to 1 rad/s at 0,
    // cruise 1.5, brake over 0.5.
    usi_trapezoid p = profile(1, 1, 0, -1, 2);
    assert_true(p.duration == 1 + 1 + 1.5 + 1);
    usi_trapezoid_point turn = usi_trapezoid_at(&p, 1);
    assert_true(turn.position == -0.5 && turn.velocity == 0 && turn.acceleration == 1);
}

static void a_start_too_fast_slows_down_to_the_greatest_velocity_first(void **state) {
    (void)state;
    // From 3 to 1 rad/s in 2 s over 4 rad, 5.5 rad at 1 rad/s, 1 s over the last 0.5.
    usi_trapezoid p = profile(1, 1, 0, 3, 10);
    assert_true(p.duration == 2 + 5.5 + 1);
    assert_true(usi_trapezoid_at(&p, 0).acceleration == -1);
    assert_true(usi_trapezoid_at(&p, 2).velocity == 1);
    assert_true(usi_trapezoid_at(&p, 2).position == 4);
}

static void a_start_too_fast_to_stop_in_time_overshoots_and_comes_back(void **state) {
    (void)state;
    // Braking from 2 rad/s with 1 rad/s^2 takes 2 rad; the end is at 1. Back over 1 rad: 2 s as a triangle.
    usi_trapezoid p = profile(1, 5, 0, 2, 1);
    near("duration", p.duration, 4, 1e-15);
    near("turning point", usi_trapezoid_at(&p, 2).position, 2, 1e-15);
    assert_true(usi_trapezoid_at(&p, 4).position == 1);
}

static void braking_alone_is_enough_when_it_ends_at_the_end(void **state) {
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        usi_trapezoid p = profile(1, 1, 0, 2.0 * sign, 2.0 * sign);
        assert_true(p.duration == 2);
        usi_trapezoid_point at = usi_trapezoid_at(&p, 1);
        assert_true(at.velocity == sign && at.acceleration == -sign && at.position == 1.5 * sign);
    }
    usi_trapezoid rest = profile(1, 1, 3, 0, 3);
    assert_true(rest.duration == 0);
    assert_true(usi_trapezoid_at(&rest, 0).position == 3);
}

static void numbers_that_make_no_profile_are_refused(void **state) {
    (void)state;
    usi_trapezoid p = {.duration = 42};
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(usi_trapezoid_init(&p, bad[i], 1, 0, 0, 1), US_ERR_VALUE);
        assert_int_equal(usi_trapezoid_init(&p, 1, bad[i], 0, 0, 1), US_ERR_VALUE);
        assert_int_equal(usi_trapezoid_init(&p, 1, 1, bad[i], 0, 1), US_ERR_VALUE);
        assert_int_equal(usi_trapezoid_init(&p, 1, 1, 0, bad[i], 1), US_ERR_VALUE);
        assert_int_equal(usi_trapezoid_init(&p, 1, 1, 0, 0, bad[i]), US_ERR_VALUE);
    }
    assert_int_equal(usi_trapezoid_init(&p, 0, 1, 0, 0, 1), US_ERR_VALUE);
    assert_int_equal(usi_trapezoid_init(&p, 1, -1, 0, 0, 1), US_ERR_VALUE);
    assert_int_equal(usi_trapezoid_init(&p, 1e-300, 1, 0, 1e200, 1), US_ERR_VALUE);  // it would never arrive
    assert_int_equal(usi_trapezoid_init(NULL, 1, 1, 0, 0, 1), US_ERR_ARG);
    assert_true(p.duration == 42);
}

static double uniform(uint64_t *counter, double low, double high) {
    return low + (high - low) * us_random_uniform(11, 4, (*counter)++);
}

// Magnitudes over several powers of ten, so that long and short ways, slow and fast starts all come up.
static double magnitude(uint64_t *counter, double low, double high) {
    return pow(10, uniform(counter, low, high));
}

static double signed_magnitude(uint64_t *counter, double low, double high) {
    double m = magnitude(counter, low, high);
    return uniform(counter, 0, 1) < 0.5 ? -m : m;
}

// The time of the quickest motion, from a formula of its own: brake to rest, and go the rest of the way from
// rest; or, when braking at once does not reach the end, add the time and distance that speeding up from rest
// to |v| would have taken. Valid when |v| <= u.
static double quickest(double a, double u, double d, double v) {
    double beyond = d - v * fabs(v) / (2 * a), way, before;
    if (v != 0 && (beyond > 0) == (v > 0)) {
        way = fabs(d) + v * v / (2 * a);
        before = -fabs(v) / a;  // as if it had started from rest behind
    } else {
        way = fabs(beyond);
        before = fabs(v) / a;
    }
    double time = way > u * u / a ? way / u + u / a : 2 * sqrt(way / a);
    return before + time;
}

static void ten_thousand_random_profiles_arrive_keep_their_limits_and_never_jump(void **state) {
    (void)state;
    uint64_t counter = 0;
    int n_cruise = 0, n_triangle = 0, n_fast = 0, n_wrong = 0, n_over = 0;
    for (int k = 0; k < 10000; k++) {
        double a = magnitude(&counter, -2, 2), u = magnitude(&counter, -2, 2);
        double start = signed_magnitude(&counter, -3, 3),
               end = k % 50 ? signed_magnitude(&counter, -3, 3) : start;
        double v = k % 5 ? signed_magnitude(&counter, -3, 2) : 0;
        usi_trapezoid p = profile(a, u, start, v, end);
        double T = p.duration, greatest = fmax(fabs(v), u);
        // Where it may be off: a few roundings of the greatest position and velocity that occur, and of
        // times, which velocity and acceleration scale.
        double reach = fmax(fabs(start), fabs(end)) + v * v / a, eps = 0x1p-50;
        double e_v = eps * (greatest + a * T), e_x = eps * (reach + greatest * T);

        usi_trapezoid_point first = usi_trapezoid_at(&p, 0), last = usi_trapezoid_at(&p, T);
        if (T > 0) {
            near("start position", first.position, start, e_x);
            near("start velocity", first.velocity, v, e_v);
        }
        assert_true(last.position == end && last.velocity == 0 && last.acceleration == 0);

        // No jumps at the seams: both sides within what the limits allow in a nanosecond, and rounding.
        const double seams[] = {p.first_end, p.cruise_end, T};
        for (int i = 0; i < 3; i++) {
            double h = fmin(1e-9, T);
            usi_trapezoid_point before = usi_trapezoid_at(&p, seams[i] - h),
                                after = usi_trapezoid_at(&p, seams[i]);
            near("velocity at a seam", before.velocity, after.velocity, 2 * a * h + e_v);
            near("position at a seam", before.position, after.position, 2 * greatest * h + e_x);
        }

        // Limits at every time; a velocity beyond the greatest only while it comes down from the start's. Its
        // area is the way.
        enum { N = 64 };
        double area = 0, span[4] = {0, p.first_end, p.cruise_end, T};
        for (int phase = 0; phase < 3; phase++) {
            double h = (span[phase + 1] - span[phase]) / N;
            for (int i = 0; i <= N; i++) {
                usi_trapezoid_point at = usi_trapezoid_at(&p, span[phase] + h * i);
                assert_true(fabs(at.acceleration) <= a);
                if (phase > 0 || fabs(v) <= u)
                    assert_true(fabs(at.velocity) <= u + e_v || p.first_end == p.cruise_end);
                assert_true(fabs(at.velocity) <= greatest + e_v);
                // The velocity is piecewise linear: the trapezoid rule is exact.
                area += at.velocity * h * (i == 0 || i == N ? 0.5 : 1);
            }
        }
        near("area under the velocity", area, end - start,
             300 * e_x + e_v * T);  // 195 terms, and each velocity is off by e_v

        if (fabs(v) <= u)
            near("the quickest time", T, quickest(a, u, end - start, v),
                 eps * (T + greatest / a) + sqrt(eps * reach / a));
        n_cruise += p.cruise_end > p.first_end;
        n_triangle += p.cruise_end == p.first_end;
        n_fast += fabs(v) > u;
        n_wrong += v * (end - start) < 0;
        n_over += (end - start - v * fabs(v) / (2 * a)) * (end - start) < 0;
    }
    // Every kind of profile was there, many times.
    assert_true(n_cruise > 1000 && n_triangle > 1000 && n_fast > 1000 && n_wrong > 1000 && n_over > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_way_speeds_up_cruises_and_brakes),
        cmocka_unit_test(a_short_way_is_a_triangle),
        cmocka_unit_test(a_start_in_the_wrong_direction_turns_round_without_a_pause),
        cmocka_unit_test(a_start_too_fast_slows_down_to_the_greatest_velocity_first),
        cmocka_unit_test(a_start_too_fast_to_stop_in_time_overshoots_and_comes_back),
        cmocka_unit_test(braking_alone_is_enough_when_it_ends_at_the_end),
        cmocka_unit_test(numbers_that_make_no_profile_are_refused),
        cmocka_unit_test(ten_thousand_random_profiles_arrive_keep_their_limits_and_never_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

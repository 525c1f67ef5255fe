// Sine and cosine of many angles against the C library's in extended precision.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "math/v4.h"
#include "understudy/base.h"

static const double PI = 3.14159265358979323846;

// Distance in units of the last place of the true value; near the zeros, where the reduced angle carries the
// error of a multiple of pi/2 in three parts, units of 2^-53 of the result's own size still hold.
static double ulps(double got, long double want) {
    double near = (double)want;
    double unit = fmax(fabs(nextafter(near, INFINITY) - near), 0x1p-1074);
    return fabs((double)(((long double)got - want) / unit));
}

static double worst_of(const double *angle, int n) {
    _Alignas(32) double x[64], s[64], c[64];
    double worst = 0;
    for (int at = 0; at < n; at += 64) {
        int count = n - at < 64 ? n - at : 64;
        for (int i = 0; i < 64; i++)
            x[i] = i < count ? angle[at + i] : 0;
        usi_sincos(64, x, s, c);
        for (int i = 0; i < count; i++) {
            double e = fmax(ulps(s[i], sinl((long double)x[i])), ulps(c[i], cosl((long double)x[i])));
            if (!(e <= worst)) worst = e;
        }
    }
    return worst;
}

enum { N = 200000 };
static double angles[N];

static void random_angles_are_right_to_two_units_in_the_last_place(void **state) {
    (void)state;
    const double ranges[] = {1, 4, 100, 1e4, 99999};
    for (int r = 0; r < 5; r++) {
        for (int i = 0; i < N; i++)
            angles[i] = ranges[r] * (2 * us_random_uniform(3, (uint64_t)r, (uint64_t)i) - 1);
        double worst = worst_of(angles, N);
        if (!(worst <= 2)) fail_msg("up to %g: %g units", ranges[r], worst);
    }
}

static void small_angles_of_every_size_are_right(void **state) {
    (void)state;
    for (int i = 0; i < N; i++)
        angles[i] = ldexp(us_random_uniform(4, 0, (uint64_t)i) + 1, -(i % 1000)) * (i & 1 ? -1 : 1);
    assert_true(worst_of(angles, N) <= 2);
}

static void angles_next_to_multiples_of_a_quarter_turn_are_right(void **state) {
    (void)state;
    int n = 0;
    for (int k = -60000; k <= 60000; k += 7) {
        double x = k * (PI / 2);
        angles[n++] = x;
        angles[n++] = nextafter(x, INFINITY);
        angles[n++] = nextafter(x, -INFINITY);
    }
    // Here the sine or cosine is itself of the size of one rounding of the angle: its last places come from
    // pi's 100th bit.
    double worst = worst_of(angles, n);
    if (!(worst <= 2)) fail_msg("%g units", worst);
}

static void the_four_quadrants_have_the_right_signs(void **state) {
    (void)state;
    _Alignas(32) const double x[8] = {0.3,  0.3 + PI / 2,  0.3 + PI,  0.3 + 3 * PI / 2,
                                      -0.3, -0.3 - PI / 2, -0.3 - PI, -0.3 - 3 * PI / 2};
    _Alignas(32) double s[8], c[8];
    usi_sincos(8, x, s, c);
    for (int i = 0; i < 8; i++) {
        assert_true(fabs(s[i] - sin(x[i])) < 3e-16);
        assert_true(fabs(c[i] - cos(x[i])) < 3e-16);
    }
}

static void zero_gives_zero_and_one_exactly(void **state) {
    (void)state;
    _Alignas(32) const double x[4] = {0, -0.0, 0x1p-1074, 1e-300};
    _Alignas(32) double s[4], c[4];
    usi_sincos(4, x, s, c);
    for (int i = 0; i < 4; i++) {
        assert_true(s[i] == x[i]);
        assert_true(c[i] == 1);
    }
}

static void far_angles_go_to_the_c_library(void **state) {
    (void)state;
    _Alignas(32) double x[8] = {1e5, -1e5, 1e6, 123456789.5, 1e22, -1e300, 99999.99, 0.5};
    _Alignas(32) double s[8], c[8];
    usi_sincos(8, x, s, c);
    for (int i = 0; i < 8; i++) {
        assert_true(ulps(s[i], sinl((long double)x[i])) <= 2);
        assert_true(ulps(c[i], cosl((long double)x[i])) <= 2);
    }
}

static void what_is_not_a_number_stays_so_and_its_neighbours_are_right(void **state) {
    (void)state;
    for (int bad = 0; bad < 4; bad++) {
        _Alignas(32) double x[4] = {0.1, 0.2, 0.3, 0.4};
        _Alignas(32) double s[4], c[4];
        const double values[3] = {NAN, INFINITY, -INFINITY};
        for (int k = 0; k < 3; k++) {
            x[bad] = values[k];
            usi_sincos(4, x, s, c);
            for (int i = 0; i < 4; i++) {
                assert_int_equal(isnan(s[i]) != 0, i == bad);
                assert_int_equal(isnan(c[i]) != 0, i == bad);
                if (i != bad) assert_true(fabs(s[i] - sin(x[i])) < 3e-16 && fabs(c[i] - cos(x[i])) < 3e-16);
            }
        }
    }
}

// A lane's result must not depend on its neighbours, or two robots in one world would disturb each other.
static void a_lane_does_not_depend_on_its_neighbours(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        _Alignas(32) double x[4], s[4], c[4], s1[4], c1[4];
        for (uint64_t k = 0; k < 4; k++)
            x[k] = 10 * us_random_normal(8, k, i);
        usi_sincos(4, x, s, c);
        for (int k = 0; k < 4; k++) {
            _Alignas(32) double one[4] = {x[k], 0, 0, 0};
            usi_sincos(4, one, s1, c1);
            assert_true(s1[0] == s[k] && c1[0] == c[k]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_angles_are_right_to_two_units_in_the_last_place),
        cmocka_unit_test(small_angles_of_every_size_are_right),
        cmocka_unit_test(angles_next_to_multiples_of_a_quarter_turn_are_right),
        cmocka_unit_test(the_four_quadrants_have_the_right_signs),
        cmocka_unit_test(zero_gives_zero_and_one_exactly),
        cmocka_unit_test(far_angles_go_to_the_c_library),
        cmocka_unit_test(what_is_not_a_number_stays_so_and_its_neighbours_are_right),
        cmocka_unit_test(a_lane_does_not_depend_on_its_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

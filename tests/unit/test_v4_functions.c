// Elementary functions of four numbers at once against the C library's in extended precision, over all
// doubles.
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "math/v4_functions.h"
#include "understudy/base.h"

// Distance from the true value in units of its last place; those of subnormal numbers are 2^-1074.
static double ulps(double got, long double want) {
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if (isinf((double)want) || isinf(got)) return got == (double)want ? 0 : INFINITY;
    double near = fabs((double)want), unit = fmax(nextafter(near, INFINITY) - near, 0x1p-1074);
    if (isinf(unit)) unit = 0x1p971;
    return fabs((double)(((long double)got - want) / unit));
}

// A double of any bits: each sign, exponent and kind of number comes up.
static double any_double(uint64_t i) {
    uint64_t bits = us_random_bits(11, 1, i);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const double edges[] = {0.0,
                               -0.0,
                               0x1p-1074,
                               -0x1p-1074,
                               0x1.8p-1073,
                               0x1p-1023,
                               DBL_MIN,
                               0x1.fffffffffffffp-1023,
                               DBL_MAX,
                               -DBL_MAX,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               1.0,
                               0x1.6a09e667f3bcdp-1,
                               0x1.6a09e667f3bccp-1,
                               709.782712893384,
                               709.7827128933841,
                               -708.3964185322641,
                               -708.3964185322642,
                               -744.4400719213812,
                               -745.1332191019411,
                               -745.1332191019412,
                               -746,
                               710,
                               -779.236};
enum { N_EDGE = sizeof edges / sizeof edges[0], N = 400000 };

typedef usi_v4 (*function)(usi_v4);
typedef long double (*truth)(long double);

// The numbers go through the lanes in fours: what a lane holds must not depend on its neighbours.
static void expect_all(const char *name, function f, truth of, const double *x, int n, double most) {
    double worst = 0, at = 0;
    for (int i = 0; i < n; i += 4) {
        usi_v4 in = {0, 0, 0, 0};
        for (int l = 0; l < 4; l++)
            in[l] = x[i + l < n ? i + l : n - 1];
        usi_v4 out = f(in);
        for (int l = 0; l < 4; l++) {
            double e = ulps(out[l], of((long double)in[l]));
            if (!(e <= worst)) {
                worst = e;
                at = in[l];
            }
        }
    }
    if (!(worst <= most))
        fail_msg("%s of %.17g is off by %g units in the last place, %.17g", name, at, worst,
                 f(usi_v4_all(at))[0]);
    printf("    %s: %.3f units at worst\n", name, worst);
}

static double numbers[N];

static void exponentials_and_logarithms_of_any_bits_are_those_of_the_c_library(void **state) {
    (void)state;
    expect_all("exp", usi_v4_exp, expl, edges, N_EDGE, 4);
    expect_all("log", usi_v4_log, logl, edges, N_EDGE, 4);
    for (int i = 0; i < N; i++)
        numbers[i] = any_double((uint64_t)i);
    // Each of the last few operations of the series rounds: a few units of the last digit.
    expect_all("exp", usi_v4_exp, expl, numbers, N, 4);
    expect_all("log", usi_v4_log, logl, numbers, N, 4);
}

static void exponentials_are_right_up_to_both_ends_of_the_range(void **state) {
    (void)state;
    static const double low[] = {-1, -40, -720, -750, 680}, high[] = {1, 40, 720, -690, 715};
    for (int r = 0; r < 5; r++) {
        for (int i = 0; i < N; i++)
            numbers[i] = low[r] + (high[r] - low[r]) * us_random_uniform(12, (uint64_t)r, (uint64_t)i);
        expect_all("exp", usi_v4_exp, expl, numbers, N, 4);
    }
}

static void logarithms_of_subnormal_numbers_and_of_those_near_one_are_right(void **state) {
    (void)state;
    for (int i = 0; i < N; i++)
        numbers[i] = ldexp(us_random_uniform(13, 0, (uint64_t)i), -1022 - i % 52);
    expect_all("log of subnormal", usi_v4_log, logl, numbers, N, 4);
    for (int i = 0; i < N; i++)
        numbers[i] = 1 + ldexp(us_random_uniform(13, 1, (uint64_t)i) - 0.5, -(i % 50));
    expect_all("log near 1", usi_v4_log, logl, numbers, N, 4);
}

// A power by its logarithm has the relative error of an absolute one: |n ln z| units of the last place.
static void powers_of_every_depth_are_finite_and_grow(void **state) {
    (void)state;
    static const double exponents[] = {0.05, 0.13, 0.5, 0.7, 1.1, 1.6, 3};
    for (int k = 0; k < 7; k++) {
        double n = exponents[k], before = 0;
        for (double z = 0x1p-1074; z < 10; z *= 1.5) {
            double p = usi_v4_exp(n * usi_v4_log(usi_v4_all(z)))[0];
            double want = pow(z, n), room = 4e-16 * (2 + fabs(n * log(z))) * want + 0x1p-1073;
            if (!(fabs(p - want) <= room)) fail_msg("%g^%g is %.17g instead of %.17g", z, n, p, want);
            if (!(p >= before)) fail_msg("%g^%g falls", z, n);
            before = p;
        }
    }
}

static long double sine(long double x) { return sinl(x); }
static long double cosine(long double x) { return cosl(x); }
static usi_v4 sine_of(usi_v4 x) {
    usi_v4 s, c;
    usi_v4_sin_cos(x, &s, &c);
    return s;
}
static usi_v4 cosine_of(usi_v4 x) {
    usi_v4 s, c;
    usi_v4_sin_cos(x, &s, &c);
    return c;
}

static void sines_and_cosines_are_right_within_a_quarter_turn_and_a_bit(void **state) {
    (void)state;
    for (int i = 0; i < N; i++)
        numbers[i] = ldexp(3.4 * us_random_uniform(14, 0, (uint64_t)i) - 1.7, -(i % 4 ? 0 : i % 1000));
    expect_all("sin", sine_of, sine, numbers, N, 6);
    // Near a quarter turn the cosine is a difference of numbers near 1: right to a few 2^-53 of 1, not of
    // itself.
    double worst = 0;
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs((double)(cosine_of(usi_v4_all(numbers[i]))[0] - cosine(numbers[i]))));
    printf("    cos: off by %.3g at worst\n", worst);
    assert_true(worst <= 1.2e-15);
}

static void least_greatest_and_sign_of_any_bits_are_those_of_the_comparison(void **state) {
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        double a = i < N_EDGE ? edges[i] : any_double(2 * i),
               b = i < N_EDGE ? edges[N_EDGE - 1 - i] : any_double(2 * i + 1);
        double min = usi_v4_min(usi_v4_all(a), usi_v4_all(b))[i % 4],
               max = usi_v4_max(usi_v4_all(a), usi_v4_all(b))[i % 4],
               sign = usi_v4_copysign(usi_v4_all(a), usi_v4_all(b))[i % 4], less = a < b ? a : b,
               more = a > b ? a : b, signed_a = copysign(a, b);
        // The second is taken where one is no number, with and without vector instructions.
        assert_memory_equal(&min, &less, sizeof min);
        assert_memory_equal(&max, &more, sizeof max);
        assert_memory_equal(&sign, &signed_a, sizeof sign);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials_and_logarithms_of_any_bits_are_those_of_the_c_library),
        cmocka_unit_test(exponentials_are_right_up_to_both_ends_of_the_range),
        cmocka_unit_test(logarithms_of_subnormal_numbers_and_of_those_near_one_are_right),
        cmocka_unit_test(powers_of_every_depth_are_finite_and_grow),
        cmocka_unit_test(sines_and_cosines_are_right_within_a_quarter_turn_and_a_bit),
        cmocka_unit_test(least_greatest_and_sign_of_any_bits_are_those_of_the_comparison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

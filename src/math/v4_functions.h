// Elementary functions of four numbers at once, to a few units of the last digit, without branches. Compiled
// without fused multiply-add they give the same bits on every machine, which C libraries do not promise.
#ifndef USI_MATH_V4_FUNCTIONS_H
#define USI_MATH_V4_FUNCTIONS_H

#include <stdint.h>

#include "math/v4.h"

static inline usi_v4 usi_v4_min(usi_v4 a, usi_v4 b) {
#ifdef __AVX__
    return (usi_v4)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
    for (int l = 0; l < 4; l++)
        a[l] = a[l] < b[l] ? a[l] : b[l];
    return a;
#endif
}
static inline usi_v4 usi_v4_max(usi_v4 a, usi_v4 b) {
#ifdef __AVX__
    return (usi_v4)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
    for (int l = 0; l < 4; l++)
        a[l] = a[l] > b[l] ? a[l] : b[l];
    return a;
#endif
}
// Magnitude of a with the sign of b.
static inline usi_v4 usi_v4_copysign(usi_v4 a, usi_v4 b) {
    usi_v4i sign = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    return (usi_v4)(((usi_v4i)a & ~sign) | ((usi_v4i)b & sign));
}

// Sine and cosine for |x| <= 1.7 (elsewhere: usi_sincos), by the series of half the angle.
static inline void usi_v4_sin_cos(usi_v4 x, usi_v4 *out_sin, usi_v4 *out_cos) {
    static const double odd[] = {1.0 / 6227020800.0, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040,
                                 1.0 / 120,          -1.0 / 6,        1.0};
    static const double even[] = {-1.0 / 87178291200.0, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320,
                                  -1.0 / 720,           1.0 / 24,        -0.5,           1.0};
    usi_v4 h = 0.5 * x, y = h * h, s = usi_v4_all(-1.0 / 1307674368000.0),
           c = usi_v4_all(1.0 / 20922789888000.0);
    for (int i = 0; i < 7; i++)
        s = s * y + odd[i];
    for (int i = 0; i < 8; i++)
        c = c * y + even[i];
    s *= h;
    *out_sin = 2 * s * c;
    *out_cos = 1 - 2 * s * s;
}

// Lanes of a where the mask is set (all bits of a lane), of b elsewhere.
static inline usi_v4 usi_v4_select(usi_v4i mask, usi_v4 a, usi_v4 b) {
    return (usi_v4)(((usi_v4i)a & mask) | ((usi_v4i)b & ~mask));
}

// Exponential of every number: 0 below the least subnormal, infinity above the greatest double. x = k ln 2 +
// r with |r| <= ln 2 / 2: the series of r times 2^k. Half of k goes into the exponent, where it always fits,
// and half is a factor, so that results near the ends of the range are rounded once, and never wrap around.
static inline usi_v4 usi_v4_exp(usi_v4 x) {
    const double round = 6755399441055744.0;  // 1.5 * 2^52: what is added to it loses its fraction
    // Beyond these the result is 0 or infinity. x stands second: there a NaN passes.
    x = usi_v4_min(usi_v4_all(710), usi_v4_max(usi_v4_all(-746), x));
    usi_v4 shifted = x * 1.4426950408889634074 + round, k = shifted - round;
    usi_v4 r = x - k * 6.93147180369123816490e-01 - k * 1.90821492927058770002e-10;
    usi_v4 e = 1.0 / 479001600 + usi_v4_zero();
    static const double inverse[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                     1.0 / 5040,     1.0 / 720,     1.0 / 120,    1.0 / 24,
                                     1.0 / 6,        0.5,           1.0,          1.0};
    for (int i = 0; i < 12; i++)
        e = e * r + inverse[i];
    // The low bits of a number that has lost its fraction are the whole number.
    usi_v4 half = 0.5 * k + round, rest = k - (half - round) + round;
    usi_v4 scaled = (usi_v4)((usi_v4i)e + ((usi_v4i)half << 52));
    usi_v4 factor = (usi_v4)((usi_v4i)usi_v4_all(1) + ((usi_v4i)rest << 52));
    // x is at most 710 by now, or NaN, which no number is greater than.
    return usi_v4_select(x < usi_v4_all(1000), scaled * factor, x);
}

// Logarithm of every number: -infinity at 0, NaN below. x = 2^k m with m near 1: ln m = 2 artanh((m - 1) / (m
// + 1)). Subnormal numbers are made normal first.
static inline usi_v4 usi_v4_log(usi_v4 x) {
    const usi_v4i half = {0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd,
                          0x3fe6a09e667f3bcd};  // sqrt(1/2)
    const usi_v4 least = usi_v4_all(0x1p-1022), infinite = usi_v4_all(__builtin_inf());
    usi_v4i is_small = x < least;
    usi_v4 normal = usi_v4_select(is_small, x * 0x1p54, x);
    usi_v4i steps = (usi_v4i)normal - half, k = steps >> 52;
    usi_v4 m = (usi_v4)((usi_v4i)normal - (k << 52)), t = (m - 1) / (m + 1), y = t * t;
    usi_v4 s = 1.0 / 21 + usi_v4_zero();
    for (int i = 19; i > 0; i -= 2)
        s = s * y + 1.0 / i;
    usi_v4 count =
        __builtin_convertvector(k, usi_v4) - usi_v4_select(is_small, usi_v4_all(54), usi_v4_zero());
    usi_v4 value = count * 6.93147180369123816490e-01 + (2 * t * s + count * 1.90821492927058770002e-10);
    // Infinity and NaN are their own logarithms; that of 0 is -infinity, and of less there is none.
    value = usi_v4_select(x < infinite, value, x);
    value = usi_v4_select(x == 0, -infinite, value);
    return usi_v4_select(x < 0, usi_v4_all(__builtin_nan("")), value);
}

#endif

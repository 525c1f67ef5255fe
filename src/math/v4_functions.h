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

// Sine and cosine for |x| <= 1.7, by the series of half the angle.
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

// Exponential for |x| <= 700. x = k ln 2 + r with |r| <= ln 2 / 2: the series of r, and k into the exponent.
static inline usi_v4 usi_v4_exp(usi_v4 x) {
    const double round = 6755399441055744.0;  // 1.5 * 2^52: what is added to it loses its fraction
    usi_v4 shifted = x * 1.4426950408889634074 + round, k = shifted - round;
    usi_v4 r = x - k * 6.93147180369123816490e-01 - k * 1.90821492927058770002e-10;
    usi_v4 e = 1.0 / 479001600 + usi_v4_zero();
    static const double inverse[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                     1.0 / 5040,     1.0 / 720,     1.0 / 120,    1.0 / 24,
                                     1.0 / 6,        0.5,           1.0,          1.0};
    for (int i = 0; i < 12; i++)
        e = e * r + inverse[i];
    usi_v4i exponent = (usi_v4i)shifted << 52;  // the low bits of `shifted` are k
    return (usi_v4)((usi_v4i)e + exponent);
}

// Logarithm of normal numbers greater than 0. x = 2^k m with m near 1: ln m = 2 artanh((m - 1) / (m + 1)).
static inline usi_v4 usi_v4_log(usi_v4 x) {
    const usi_v4i half = {0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd, 0x3fe6a09e667f3bcd,
                          0x3fe6a09e667f3bcd};  // sqrt(1/2)
    usi_v4i steps = (usi_v4i)x - half, k = steps >> 52;
    usi_v4 m = (usi_v4)((usi_v4i)x - (k << 52)), t = (m - 1) / (m + 1), y = t * t;
    usi_v4 s = 1.0 / 21 + usi_v4_zero();
    for (int i = 19; i > 0; i -= 2)
        s = s * y + 1.0 / i;
    usi_v4 count = __builtin_convertvector(k, usi_v4);
    return count * 6.93147180369123816490e-01 + (2 * t * s + count * 1.90821492927058770002e-10);
}

#endif

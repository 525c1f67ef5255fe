// Four-lane vectors: x y z and a spare lane, in one AVX register.
//
// The inner loops of dynamics and contact are written with these few functions and + - *. The spare lane
// is 0 unless a comment says otherwise, so that sums over lanes need no mask. Without AVX2 the compiler
// splits the vectors: same results to rounding, slower.
#ifndef USI_MATH_V4_H
#define USI_MATH_V4_H

#include <stdbool.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#include "understudy/math.h"

typedef double usi_v4 __attribute__((vector_size(32)));
typedef long long usi_v4i __attribute__((vector_size(32)));

static inline usi_v4 usi_v4_set(double x, double y, double z) { return (usi_v4){x, y, z, 0}; }
static inline usi_v4 usi_v4_all(double s) { return (usi_v4){s, s, s, s}; }
static inline usi_v4 usi_v4_zero(void) { return (usi_v4){0, 0, 0, 0}; }
static inline usi_v4 usi_v4_from(us_vec3 a) { return usi_v4_set(a.x, a.y, a.z); }
static inline us_vec3 usi_v4_vec3(usi_v4 a) { return us_vec3_make(a[0], a[1], a[2]); }

// Four doubles without alignment.
typedef double usi_v4_unaligned __attribute__((vector_size(32), may_alias, aligned(8)));

// Loads the 3 doubles at `a`; reads one past them, which the caller guarantees to be readable.
static inline usi_v4 usi_v4_load3(const us_vec3 *a) {
    const usi_v4 four = *(const usi_v4_unaligned *)a;
    return (usi_v4)((usi_v4i)four & (usi_v4i){-1, -1, -1, 0});
}

// Broadcast of one lane to all four.
static inline usi_v4 usi_v4_lane0(usi_v4 a) { return __builtin_shufflevector(a, a, 0, 0, 0, 0); }
static inline usi_v4 usi_v4_lane1(usi_v4 a) { return __builtin_shufflevector(a, a, 1, 1, 1, 1); }
static inline usi_v4 usi_v4_lane2(usi_v4 a) { return __builtin_shufflevector(a, a, 2, 2, 2, 2); }

// Cross product with one shuffle fewer than the textbook: rotate(a * rotate(b) - rotate(a) * b), where rotate
// makes (y, z, x). usi_v4_cross_rotated leaves the outer rotation to the caller.
static inline usi_v4 usi_v4_rotate_lanes(usi_v4 a) { return __builtin_shufflevector(a, a, 1, 2, 0, 3); }
static inline usi_v4 usi_v4_cross_rotated(usi_v4 a, usi_v4 b) {
    return a * usi_v4_rotate_lanes(b) - usi_v4_rotate_lanes(a) * b;
}
static inline usi_v4 usi_v4_cross(usi_v4 a, usi_v4 b) {
    return usi_v4_rotate_lanes(usi_v4_cross_rotated(a, b));
}
// a x b + c x d, with one outer rotation.
static inline usi_v4 usi_v4_cross2(usi_v4 a, usi_v4 b, usi_v4 c, usi_v4 d) {
    return usi_v4_rotate_lanes(usi_v4_cross_rotated(a, b) + usi_v4_cross_rotated(c, d));
}

// Sum of all four lanes, in every lane. The halves are swapped by name where that can be: for a plain shuffle
// gcc picks an instruction that takes twice as long on some processors.
static inline usi_v4 usi_v4_swap_halves(usi_v4 a) {
#ifdef __AVX__
    return (usi_v4)_mm256_permute2f128_pd((__m256d)a, (__m256d)a, 1);
#else
    return __builtin_shufflevector(a, a, 2, 3, 0, 1);
#endif
}
static inline usi_v4 usi_v4_sum_all(usi_v4 a) {
    a += usi_v4_swap_halves(a);
    return a + __builtin_shufflevector(a, a, 1, 0, 3, 2);
}
static inline double usi_v4_sum(usi_v4 a) { return usi_v4_sum_all(a)[0]; }
static inline double usi_v4_dot(usi_v4 a, usi_v4 b) { return usi_v4_sum(a * b); }

// Whether a comparison holds in any of the first three lanes.
static inline bool usi_v4_any_of_three(usi_v4i a) {
#ifdef __AVX__
    return _mm256_movemask_pd((__m256d)a) & 7;
#else
    return (a[0] | a[1] | a[2]) != 0;
#endif
}

// a x + b y + c z: a matrix of columns a, b, c times a vector whose components are at `x`.
static inline usi_v4 usi_v4_columns(usi_v4 a, usi_v4 b, usi_v4 c, const double x[3]) {
    return a * usi_v4_all(x[0]) + b * usi_v4_all(x[1]) + c * usi_v4_all(x[2]);
}

// The same of a vector's components.
static inline usi_v4 usi_v4_columns_of(usi_v4 a, usi_v4 b, usi_v4 c, us_vec3 x) {
    return a * usi_v4_all(x.x) + b * usi_v4_all(x.y) + c * usi_v4_all(x.z);
}

static inline usi_v4 usi_v4_sqrt(usi_v4 a) {
#ifdef __AVX__
    return (usi_v4)_mm256_sqrt_pd((__m256d)a);
#else
    return (usi_v4){__builtin_sqrt(a[0]), __builtin_sqrt(a[1]), __builtin_sqrt(a[2]), __builtin_sqrt(a[3])};
#endif
}

// Transposition of four vectors.
static inline __attribute__((always_inline)) void usi_v4_transpose(usi_v4 r0, usi_v4 r1, usi_v4 r2, usi_v4 r3,
                                                                   usi_v4 out[4]) {
    usi_v4 e01 = __builtin_shufflevector(r0, r1, 0, 4, 2, 6),
           o01 = __builtin_shufflevector(r0, r1, 1, 5, 3, 7);
    usi_v4 e23 = __builtin_shufflevector(r2, r3, 0, 4, 2, 6),
           o23 = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
    out[0] = __builtin_shufflevector(e01, e23, 0, 1, 4, 5);
    out[1] = __builtin_shufflevector(o01, o23, 0, 1, 4, 5);
    out[2] = __builtin_shufflevector(e01, e23, 2, 3, 6, 7);
    out[3] = __builtin_shufflevector(o01, o23, 2, 3, 6, 7);
}

static inline usi_v4 usi_v4_abs(usi_v4 a) { return (usi_v4)((usi_v4i)a & 0x7fffffffffffffffll); }

// Sine and cosine of n angles (n a multiple of 4, arrays aligned to 32 bytes), to 1.5 units in the last
// place.
void usi_sincos(int n, const double *angle, double *out_sin, double *out_cos);

#endif

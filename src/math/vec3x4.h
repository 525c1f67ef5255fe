// Vectors of four things at once, one in each lane: x, y and z of all four.
//
// Where the same is done to many bodies or points, this takes a fraction of the instructions of vectors that
// lie in one register each, and none of them waits for a sum over lanes.
#ifndef USI_MATH_VEC3X4_H
#define USI_MATH_VEC3X4_H

#include "math/v4.h"

typedef struct usi_four {
    usi_v4 x, y, z;
} usi_four;

static inline usi_four usi_four_add(usi_four a, usi_four b) {
    return (usi_four){a.x + b.x, a.y + b.y, a.z + b.z};
}
static inline usi_four usi_four_sub(usi_four a, usi_four b) {
    return (usi_four){a.x - b.x, a.y - b.y, a.z - b.z};
}
static inline usi_four usi_four_scale(usi_v4 s, usi_four a) { return (usi_four){s * a.x, s * a.y, s * a.z}; }
static inline usi_v4 usi_four_dot(usi_four a, usi_four b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline usi_four usi_four_cross(usi_four a, usi_four b) {
    return (usi_four){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
// Matrices of columns R[0], R[1], R[2] times a.
static inline usi_four usi_four_columns(const usi_four R[3], usi_four a) {
    return (usi_four){R[0].x * a.x + R[1].x * a.y + R[2].x * a.z, R[0].y * a.x + R[1].y * a.y + R[2].y * a.z,
                      R[0].z * a.x + R[1].z * a.y + R[2].z * a.z};
}

// Four rotations.
typedef struct usi_four_quat {
    usi_v4 w;
    usi_four v;
} usi_four_quat;

static inline usi_four_quat usi_four_conj(usi_four_quat q) {
    return (usi_four_quat){q.w, {-q.v.x, -q.v.y, -q.v.z}};
}
static inline usi_four_quat usi_four_mul(usi_four_quat a, usi_four_quat b) {
    usi_four v = usi_four_add(usi_four_add(usi_four_scale(a.w, b.v), usi_four_scale(b.w, a.v)),
                              usi_four_cross(a.v, b.v));
    return (usi_four_quat){a.w * b.w - usi_four_dot(a.v, b.v), v};
}
static inline usi_four usi_four_rotate(usi_four_quat q, usi_four a) {
    usi_four t = usi_four_scale(usi_v4_all(2), usi_four_cross(q.v, a));
    return usi_four_add(usi_four_add(a, usi_four_scale(q.w, t)), usi_four_cross(q.v, t));
}
// exp(r). What turns by less than a tenth of a radian, as nearly everything does in a step, needs no
// functions: the series are exact to rounding. The others, one by one.
static inline usi_four_quat usi_four_exp(usi_four r) {
    usi_v4 x = usi_four_dot(r, r);
    usi_v4 c = 1 - x * (1.0 / 8 - x * (1.0 / 384 - x * (1.0 / 46080 - x * (1.0 / 10321920))));
    usi_v4 s = 0.5 - x * (1.0 / 48 - x * (1.0 / 3840 - x * (1.0 / 645120 - x * (1.0 / 185794560))));
    usi_four_quat e = {c, usi_four_scale(s, r)};
    usi_v4i is_small = x < 0.01;
    for (int l = 0; l < 4; l++) {
        if (is_small[l]) continue;
        us_quat q = us_quat_exp(us_vec3_make(r.x[l], r.y[l], r.z[l]));
        e.w[l] = q.w;
        e.v.x[l] = q.x;
        e.v.y[l] = q.y;
        e.v.z[l] = q.z;
    }
    return e;
}
static inline usi_four_quat usi_four_normalize(usi_four_quat q) {
    usi_v4 n = q.w * q.w + usi_four_dot(q.v, q.v), s = 1 / usi_v4_sqrt(n);
    return (usi_four_quat){s * q.w, usi_four_scale(s, q.v)};
}

// From four vectors, and back; the spare lanes hold a fourth number.
static inline usi_four usi_four_from(usi_v4 a, usi_v4 b, usi_v4 c, usi_v4 d, usi_v4 *out_spare) {
    usi_v4 t[4];
    usi_v4_transpose(a, b, c, d, t);
    if (out_spare) *out_spare = t[3];
    return (usi_four){t[0], t[1], t[2]};
}
static inline void usi_four_to(usi_four v, usi_v4 spare, usi_v4 *a, usi_v4 *b, usi_v4 *c, usi_v4 *d) {
    usi_v4 t[4];
    usi_v4_transpose(v.x, v.y, v.z, spare, t);
    *a = t[0];
    *b = t[1];
    *c = t[2];
    *d = t[3];
}

// The same field of four structures.
#define USI_FOUR_FROM(of, field) \
    usi_four_from((of)[0]->field, (of)[1]->field, (of)[2]->field, (of)[3]->field, NULL)
#define USI_FOUR_TO(v, spare, of, field) \
    usi_four_to(v, spare, &(of)[0]->field, &(of)[1]->field, &(of)[2]->field, &(of)[3]->field)

#endif

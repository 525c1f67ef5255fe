// Four vectors at once in structure-of-arrays form: x, y and z of all four, one vector in each lane.
//
// Where the same is done to many bodies or points, this takes a fraction of the instructions of vectors that
// lie in one register each, and none of them waits for a sum over lanes.
#ifndef USI_MATH_VEC3X4_H
#define USI_MATH_VEC3X4_H

#include "math/v4.h"

typedef struct usi_vec3x4 {
    usi_v4 x, y, z;
} usi_vec3x4;

static inline usi_vec3x4 usi_vec3x4_add(usi_vec3x4 a, usi_vec3x4 b) {
    return (usi_vec3x4){a.x + b.x, a.y + b.y, a.z + b.z};
}
static inline usi_vec3x4 usi_vec3x4_sub(usi_vec3x4 a, usi_vec3x4 b) {
    return (usi_vec3x4){a.x - b.x, a.y - b.y, a.z - b.z};
}
static inline usi_vec3x4 usi_vec3x4_scale(usi_v4 s, usi_vec3x4 a) {
    return (usi_vec3x4){s * a.x, s * a.y, s * a.z};
}
static inline usi_v4 usi_vec3x4_dot(usi_vec3x4 a, usi_vec3x4 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline usi_vec3x4 usi_vec3x4_cross(usi_vec3x4 a, usi_vec3x4 b) {
    return (usi_vec3x4){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
// Matrices of columns R[0], R[1], R[2] times a.
static inline usi_vec3x4 usi_vec3x4_columns(const usi_vec3x4 R[3], usi_vec3x4 a) {
    return (usi_vec3x4){R[0].x * a.x + R[1].x * a.y + R[2].x * a.z,
                        R[0].y * a.x + R[1].y * a.y + R[2].y * a.z,
                        R[0].z * a.x + R[1].z * a.y + R[2].z * a.z};
}

// Four rotations.
typedef struct usi_quatx4 {
    usi_v4 w;
    usi_vec3x4 v;
} usi_quatx4;

static inline usi_quatx4 usi_quatx4_conj(usi_quatx4 q) { return (usi_quatx4){q.w, {-q.v.x, -q.v.y, -q.v.z}}; }
static inline usi_quatx4 usi_quatx4_mul(usi_quatx4 a, usi_quatx4 b) {
    usi_vec3x4 v = usi_vec3x4_add(usi_vec3x4_add(usi_vec3x4_scale(a.w, b.v), usi_vec3x4_scale(b.w, a.v)),
                                  usi_vec3x4_cross(a.v, b.v));
    return (usi_quatx4){a.w * b.w - usi_vec3x4_dot(a.v, b.v), v};
}
static inline usi_vec3x4 usi_quatx4_rotate(usi_quatx4 q, usi_vec3x4 a) {
    usi_vec3x4 t = usi_vec3x4_scale(usi_v4_all(2), usi_vec3x4_cross(q.v, a));
    return usi_vec3x4_add(usi_vec3x4_add(a, usi_vec3x4_scale(q.w, t)), usi_vec3x4_cross(q.v, t));
}
// exp(r) of four rotation vectors. Below a tenth of a radian, as nearly all are in a step, the series are
// exact to rounding; larger ones are computed one by one.
static inline usi_quatx4 usi_quatx4_exp(usi_vec3x4 r) {
    usi_v4 x = usi_vec3x4_dot(r, r);
    usi_v4 c = 1 - x * (1.0 / 8 - x * (1.0 / 384 - x * (1.0 / 46080 - x * (1.0 / 10321920))));
    usi_v4 s = 0.5 - x * (1.0 / 48 - x * (1.0 / 3840 - x * (1.0 / 645120 - x * (1.0 / 185794560))));
    usi_quatx4 e = {c, usi_vec3x4_scale(s, r)};
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
static inline usi_quatx4 usi_quatx4_normalize(usi_quatx4 q) {
    usi_v4 n = q.w * q.w + usi_vec3x4_dot(q.v, q.v), s = 1 / usi_v4_sqrt(n);
    return (usi_quatx4){s * q.w, usi_vec3x4_scale(s, q.v)};
}

// Transposition from four vectors, and back; the spare lanes hold a fourth number.
static inline usi_vec3x4 usi_vec3x4_from(usi_v4 a, usi_v4 b, usi_v4 c, usi_v4 d, usi_v4 *out_spare) {
    usi_v4 t[4];
    usi_v4_transpose(a, b, c, d, t);
    if (out_spare) *out_spare = t[3];
    return (usi_vec3x4){t[0], t[1], t[2]};
}
static inline void usi_vec3x4_to(usi_vec3x4 v, usi_v4 spare, usi_v4 *a, usi_v4 *b, usi_v4 *c, usi_v4 *d) {
    usi_v4 t[4];
    usi_v4_transpose(v.x, v.y, v.z, spare, t);
    *a = t[0];
    *b = t[1];
    *c = t[2];
    *d = t[3];
}

// The same field of four structures.
#define USI_VEC3X4_FROM(of, field) \
    usi_vec3x4_from((of)[0]->field, (of)[1]->field, (of)[2]->field, (of)[3]->field, NULL)
#define USI_VEC3X4_TO(v, spare, of, field) \
    usi_vec3x4_to(v, spare, &(of)[0]->field, &(of)[1]->field, &(of)[2]->field, &(of)[3]->field)

#endif

// Vectors, quaternions, rotations, poses: small values, passed by value, all inline.
//
// Frames by monogram: p_AB is the position of B from A, expressed in A; R_AB takes coordinates in B to
// coordinates in A; X_AB is the pose of B in A. Neighbouring letters cancel: X_AC = us_pose_mul(X_AB, X_BC).
// Quaternions are Hamilton's, w first, of unit length. Matrices are row-major.
#ifndef UNDERSTUDY_MATH_H
#define UNDERSTUDY_MATH_H

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_vec3 {
    double x, y, z;
} us_vec3;

typedef struct us_quat {
    double w, x, y, z;
} us_quat;

typedef struct us_mat3 {
    double m[9];  // row-major
} us_mat3;

typedef struct us_pose {
    us_quat q;
    us_vec3 p;
} us_pose;

// Velocity of a frame: angular, and linear at the frame's origin.
typedef struct us_twist {
    us_vec3 w, v;
} us_twist;

// Moment about a frame's origin, and force.
typedef struct us_wrench {
    us_vec3 n, f;
} us_wrench;

// Mass properties of a link B: mass, centre of mass p_BBcm, and the moments and products of inertia about the
// centre of mass, in B's axes, in the order xx yy zz xy xz yz. The products are entries of the matrix (xy is
// -integral of x y dm).
typedef struct us_inertia {
    double mass;
    us_vec3 com;
    double about_com[6];
} us_inertia;

static inline us_vec3 us_vec3_make(double x, double y, double z) {
    us_vec3 r = {x, y, z};
    return r;
}
static inline us_vec3 us_vec3_add(us_vec3 a, us_vec3 b) {
    return us_vec3_make(a.x + b.x, a.y + b.y, a.z + b.z);
}
static inline us_vec3 us_vec3_sub(us_vec3 a, us_vec3 b) {
    return us_vec3_make(a.x - b.x, a.y - b.y, a.z - b.z);
}
static inline us_vec3 us_vec3_scale(double s, us_vec3 a) { return us_vec3_make(s * a.x, s * a.y, s * a.z); }
static inline double us_vec3_dot(us_vec3 a, us_vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline us_vec3 us_vec3_cross(us_vec3 a, us_vec3 b) {
    return us_vec3_make(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static inline double us_vec3_norm(us_vec3 a) { return sqrt(us_vec3_dot(a, a)); }

static inline us_quat us_quat_identity(void) {
    us_quat r = {1, 0, 0, 0};
    return r;
}
static inline us_quat us_quat_conj(us_quat a) {
    us_quat r = {a.w, -a.x, -a.y, -a.z};
    return r;
}
static inline us_quat us_quat_mul(us_quat a, us_quat b) {
    us_quat r = {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                 a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
                 a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
    return r;
}
static inline us_quat us_quat_normalize(us_quat a) {
    double s = 1.0 / sqrt(a.w * a.w + a.x * a.x + a.y * a.y + a.z * a.z);
    us_quat r = {s * a.w, s * a.x, s * a.y, s * a.z};
    return r;
}
// The rotation by the vector's length about its direction.
static inline us_quat us_quat_exp(us_vec3 r) {
    double n2 = us_vec3_dot(r, r), n = sqrt(n2);
    // sin(n/2)/n; below 1e-4 the series is exact to rounding.
    double s = n < 1e-4 ? 0.5 - n2 / 48 + n2 * n2 / 3840 : sin(0.5 * n) / n;
    us_quat q = {n < 1e-4 ? 1 - n2 / 8 + n2 * n2 / 384 : cos(0.5 * n), s * r.x, s * r.y, s * r.z};
    return q;
}
// The rotation vector of a rotation, of length 0 .. pi.
static inline us_vec3 us_quat_log(us_quat a) {
    double n = sqrt(a.x * a.x + a.y * a.y + a.z * a.z);
    double w = a.w < 0 ? -a.w : a.w, sign = a.w < 0 ? -1 : 1;
    double s = n < 1e-9 ? 2.0 / w : 2.0 * atan2(n, w) / n;
    return us_vec3_make(sign * s * a.x, sign * s * a.y, sign * s * a.z);
}
static inline us_mat3 us_quat_matrix(us_quat q) {
    double w = q.w, x = q.x, y = q.y, z = q.z;
    us_mat3 r = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 2 * (x * y + w * z),
                  1 - 2 * (x * x + z * z), 2 * (y * z - w * x), 2 * (x * z - w * y), 2 * (y * z + w * x),
                  1 - 2 * (x * x + y * y)}};
    return r;
}
static inline us_quat us_quat_from_matrix(us_mat3 R) {
    const double *m = R.m;
    double t = m[0] + m[4] + m[8];
    us_quat q;
    // The largest of the four components is found first, so that nothing is divided by a small number.
    if (t > m[0] && t > m[4] && t > m[8]) {
        q.w = 1 + t;
        q.x = m[7] - m[5];
        q.y = m[2] - m[6];
        q.z = m[3] - m[1];
    } else if (m[0] >= m[4] && m[0] >= m[8]) {
        q.w = m[7] - m[5];
        q.x = 1 + m[0] - m[4] - m[8];
        q.y = m[1] + m[3];
        q.z = m[2] + m[6];
    } else if (m[4] >= m[8]) {
        q.w = m[2] - m[6];
        q.x = m[1] + m[3];
        q.y = 1 - m[0] + m[4] - m[8];
        q.z = m[5] + m[7];
    } else {
        q.w = m[3] - m[1];
        q.x = m[2] + m[6];
        q.y = m[5] + m[7];
        q.z = 1 - m[0] - m[4] + m[8];
    }
    return us_quat_normalize(q);
}
// Fixed-axis roll, pitch, yaw (x, then y, then z, about the fixed axes), as URDF writes them: R = Rz(yaw)
// Ry(pitch) Rx(roll).
static inline us_quat us_quat_from_rpy(double roll, double pitch, double yaw) {
    us_quat x = {cos(0.5 * roll), sin(0.5 * roll), 0, 0}, y = {cos(0.5 * pitch), 0, sin(0.5 * pitch), 0},
            z = {cos(0.5 * yaw), 0, 0, sin(0.5 * yaw)};
    return us_quat_mul(z, us_quat_mul(y, x));
}
static inline us_vec3 us_quat_rotate(us_quat q, us_vec3 a) {
    us_vec3 u = us_vec3_make(q.x, q.y, q.z), t = us_vec3_scale(2, us_vec3_cross(u, a));
    return us_vec3_add(us_vec3_add(a, us_vec3_scale(q.w, t)), us_vec3_cross(u, t));
}
// The shortest rotation that carries +z onto the unit vector d (about x where d is -z).
static inline us_quat us_quat_from_z(us_vec3 d) {
    // w is 1 + d.z, written so that little is lost near -z. Within 1e-12 rad of -z the tilt of d is rounding.
    double side = d.x * d.x + d.y * d.y;
    us_quat q = {d.z < 0 ? side / (1 - d.z) : 1 + d.z, -d.y, d.x, 0};
    us_quat flip = {0, 1, 0, 0};
    return d.z < 0 && side < 1e-24 ? flip : us_quat_normalize(q);
}

static inline us_vec3 us_mat3_mul_vec(const us_mat3 *R, us_vec3 a) {
    const double *m = R->m;
    return us_vec3_make(m[0] * a.x + m[1] * a.y + m[2] * a.z, m[3] * a.x + m[4] * a.y + m[5] * a.z,
                        m[6] * a.x + m[7] * a.y + m[8] * a.z);
}

static inline us_pose us_pose_identity(void) {
    us_pose X = {{1, 0, 0, 0}, {0, 0, 0}};
    return X;
}
static inline us_vec3 us_pose_point(us_pose X_AB, us_vec3 p_BQ) {
    return us_vec3_add(X_AB.p, us_quat_rotate(X_AB.q, p_BQ));
}
static inline us_pose us_pose_mul(us_pose X_AB, us_pose X_BC) {
    us_pose X = {us_quat_mul(X_AB.q, X_BC.q), us_pose_point(X_AB, X_BC.p)};
    return X;
}
static inline us_pose us_pose_inverse(us_pose X_AB) {
    us_quat q = us_quat_conj(X_AB.q);
    us_pose X = {q, us_vec3_scale(-1, us_quat_rotate(q, X_AB.p))};
    return X;
}

#ifdef __cplusplus
}
#endif
#endif

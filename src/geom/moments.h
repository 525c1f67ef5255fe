// Moments of a set of points: the integrals of 1, x and x x^T over it. Of a solid, a surface, a line or a
// single point alike.
//
// Two rules build everything from simple pieces. Pieces side by side add. And where a set is the sum of two
// others, each point x + y met once (a prism is a polygon plus a segment across it), the integrals multiply
// out:
//
//     m = m1 m2      s = m1 s2 + m2 s1      q = m1 q2 + m2 q1 + s1 s2^T + s2 s1^T
#ifndef USI_GEOM_MOMENTS_H
#define USI_GEOM_MOMENTS_H

#include "understudy/math.h"

typedef struct usi_moments {
    double m;     // measure: m^3, m^2, m or 1
    us_vec3 s;    // first moments
    double q[6];  // second moments, xx yy zz xy xz yz
} usi_moments;

// q += f (a b^T + b a^T) / 2
static inline void usi_moments_add_outer(usi_moments *M, double f, us_vec3 a, us_vec3 b) {
    M->q[0] += f * a.x * b.x;
    M->q[1] += f * a.y * b.y;
    M->q[2] += f * a.z * b.z;
    M->q[3] += 0.5 * f * (a.x * b.y + a.y * b.x);
    M->q[4] += 0.5 * f * (a.x * b.z + a.z * b.x);
    M->q[5] += 0.5 * f * (a.y * b.z + a.z * b.y);
}

static inline void usi_moments_add(usi_moments *M, const usi_moments *N) {
    M->m += N->m;
    M->s = us_vec3_add(M->s, N->s);
    for (int i = 0; i < 6; i++)
        M->q[i] += N->q[i];
}

// The set of all x + y; see above.
static inline usi_moments usi_moments_product(const usi_moments *M, const usi_moments *N) {
    usi_moments P = {.m = M->m * N->m,
                     .s = us_vec3_add(us_vec3_scale(M->m, N->s), us_vec3_scale(N->m, M->s))};
    for (int i = 0; i < 6; i++)
        P.q[i] = M->m * N->q[i] + N->m * M->q[i];
    usi_moments_add_outer(&P, 2, M->s, N->s);
    return P;
}

// A simplex of measure m with k corners: q = m / (k (k + 1)) (S S^T + sum of p p^T), S the sum of the
// corners.
static inline usi_moments usi_moments_simplex(double m, const us_vec3 *p, int k) {
    usi_moments M = {.m = m};
    us_vec3 S = us_vec3_make(0, 0, 0);
    double f = m / (k * (k + 1));
    for (int i = 0; i < k; i++) {
        S = us_vec3_add(S, p[i]);
        usi_moments_add_outer(&M, f, p[i], p[i]);
    }
    usi_moments_add_outer(&M, f, S, S);
    M.s = us_vec3_scale(m / k, S);
    return M;
}

// The solid between the origin and a triangle: below 0 where the triangle's back is seen from outside.
static inline usi_moments usi_moments_tetrahedron(us_vec3 a, us_vec3 b, us_vec3 c) {
    us_vec3 p[4] = {{0, 0, 0}, a, b, c};
    return usi_moments_simplex(us_vec3_dot(a, us_vec3_cross(b, c)) / 6, p, 4);
}

// Mass properties at density 1 about the centre of mass; the moments were taken about `origin`. All 0 without
// volume.
static inline us_inertia usi_moments_inertia(const usi_moments *M, us_vec3 origin) {
    us_inertia I = {0};
    if (!(M->m > 0)) return I;
    us_vec3 c = us_vec3_scale(1 / M->m, M->s);
    double q[6] = {M->q[0] - M->m * c.x * c.x, M->q[1] - M->m * c.y * c.y, M->q[2] - M->m * c.z * c.z,
                   M->q[3] - M->m * c.x * c.y, M->q[4] - M->m * c.x * c.z, M->q[5] - M->m * c.y * c.z};
    I.mass = M->m;
    I.com = us_vec3_add(c, origin);
    I.about_com[0] = q[1] + q[2];
    I.about_com[1] = q[0] + q[2];
    I.about_com[2] = q[0] + q[1];
    I.about_com[3] = -q[3];
    I.about_com[4] = -q[4];
    I.about_com[5] = -q[5];
    return I;
}

// Eigenvectors of a symmetric 3 x 3 matrix by Jacobi's rotations: columns of V.
static inline void usi_principal_axes(double A[3][3], double V[3][3]) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            V[i][j] = i == j;
    for (int sweep = 0; sweep < 12; sweep++) {
        for (int p = 0; p < 2; p++) {
            for (int q = p + 1; q < 3; q++) {
                if (fabs(A[p][q]) <= 1e-15 * (fabs(A[p][p]) + fabs(A[q][q]))) continue;
                double theta = (A[q][q] - A[p][p]) / (2 * A[p][q]),
                       t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < 3; k++) {
                    double x = A[k][p], y = A[k][q];
                    A[k][p] = c * x - s * y;
                    A[k][q] = s * x + c * y;
                }
                for (int k = 0; k < 3; k++) {
                    double x = A[p][k], y = A[q][k];
                    A[p][k] = c * x - s * y;
                    A[q][k] = s * x + c * y;
                    double v = V[k][p], u = V[k][q];
                    V[k][p] = c * v - s * u;
                    V[k][q] = s * v + c * u;
                }
            }
        }
    }
}

#endif

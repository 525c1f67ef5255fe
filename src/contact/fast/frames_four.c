// Frames of free bodies, four at a time: one body in each lane. As vectors of x y z most of a body's numbers
// would wait for one another.
#include "contact/contact__parts.h"
#include "math/vec3x4.h"

void usi_frames_four(const usi_contacts *c, usi_collision_body *const k[4], const double *v) {
    const us_model *m = c->model;
    const usi_v4 zero = usi_v4_zero();
    usi_v4 q[4], low[4], high[4], four[4][3];
    for (int l = 0; l < 4; l++) {
        // Six numbers: the first four, and the last four.
        const double *t = v + m->tree[k[l]->tree].first;
        four[l][0] = *(const usi_v4_unaligned *)&k[l]->X_WN.q;
        four[l][1] = *(const usi_v4_unaligned *)t;
        four[l][2] = *(const usi_v4_unaligned *)(t + 2);
    }
    usi_v4_transpose(four[0][0], four[1][0], four[2][0], four[3][0], q);
    usi_v4_transpose(four[0][1], four[1][1], four[2][1], four[3][1], low);
    usi_v4_transpose(four[0][2], four[1][2], four[2][2], four[3][2], high);
    const usi_v4 x2 = 2 * q[1], y2 = 2 * q[2], z2 = 2 * q[3], xx = x2 * q[1], yy = y2 * q[2], zz = z2 * q[3],
                 xy = x2 * q[2], xz = x2 * q[3], yz = y2 * q[3], wx = x2 * q[0], wy = y2 * q[0],
                 wz = z2 * q[0];
    const usi_vec3x4 R[3] = {{1 - (yy + zz), xy + wz, xz - wy},
                             {xy - wz, 1 - (xx + zz), yz + wx},
                             {xz + wy, yz - wx, 1 - (xx + yy)}};
    USI_VEC3X4_TO(R[0], zero, k, X);
    USI_VEC3X4_TO(R[1], zero, k, Y);
    USI_VEC3X4_TO(R[2], zero, k, Z);
    USI_VEC3X4_TO(usi_vec3x4_columns(R, ((usi_vec3x4){low[0], low[1], low[2]})), zero, k, w);
    USI_VEC3X4_TO(usi_vec3x4_columns(R, ((usi_vec3x4){high[1], high[2], high[3]})), zero, k, v);
}

// Joints about whose axes nothing resists: the articulated-body inertia at the start state.
//
// The inertia of all that hangs on a joint, taken as one rigid piece, may well be positive where the piece
// is not rigid: a massless link on a free joint that carries a body by a hinge turns about the hinge's axis
// without moving the body. What counts is what remains when the joints beyond give way (Featherstone 2008,
// section 7.2): from the leaves to the root,
//
//   D = S^T I S + armature,  I_parent += I - (I S)(I S)^T / D
//
// with all inertias 6 x 6, in world axes about the place of the tree's root. A D that is lost in the rounding
// of S^T I S has no sign: such a joint gets an armature that is not lost there (compile.c).
#include <string.h>

#include "model/compile.h"

// Relative to the inertia of all beyond the joint, as one piece. The subtractions along a chain of a hundred
// joints round by 1e-14, and where one leaves little, ten thousand times that.
static const double NOTHING = 1e-10;

// Relative to the sum of the sizes of what S^T I S adds up: some thousand times its rounding, since the
// dynamics add it up in another order.
static const double ROUNDING = 1e-12;

typedef struct spatial {
    double m[6][6];
} spatial;

static spatial spatial_of(const us_inertia *I, us_pose X_WN, us_vec3 root) {
    us_vec3 com = us_vec3_sub(us_pose_point(X_WN, I->com), root);
    us_mat3 R = us_quat_matrix(X_WN.q);
    const double *a = I->about_com, A[9] = {a[0], a[3], a[4], a[3], a[1], a[5], a[4], a[5], a[2]};
    const double c[3] = {com.x, com.y, com.z}, c2 = c[0] * c[0] + c[1] * c[1] + c[2] * c[2];
    const double cross[3][3] = {{0, -c[2], c[1]}, {c[2], 0, -c[0]}, {-c[1], c[0], 0}};
    spatial S = {0};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            double turned = 0;
            for (int p = 0; p < 3; p++) {
                for (int q = 0; q < 3; q++)
                    turned += R.m[3 * i + p] * A[3 * p + q] * R.m[3 * k + q];
            }
            S.m[i][k] = turned + I->mass * ((i == k ? c2 : 0) - c[i] * c[k]);
            S.m[i][k + 3] = I->mass * cross[i][k];
            S.m[k + 3][i] = I->mass * cross[i][k];
        }
        S.m[i + 3][i + 3] = I->mass;
    }
    return S;
}

// The motion that a node's coordinate makes: angular, then linear at the root's place.
static void motion_of(const usi_build *b, int32_t i, us_pose X_WN, us_vec3 root, double S[6]) {
    const usi_node *d = &b->node[i];
    const usi_joint *joint = &b->joint[d->joint];
    bool is_ball = joint->type == US_JOINT_SPHERICAL || joint->type == US_JOINT_FLOATING;
    bool is_linear = d->kind == USI_NODE_SLIDE || (is_ball && i - joint->first_v >= 3);
    us_vec3 axis = us_quat_rotate(X_WN.q, us_vec3_make(d->axis == 0, d->axis == 1, d->axis == 2));
    us_vec3 linear = is_linear ? axis : us_vec3_cross(us_vec3_sub(X_WN.p, root), axis);
    if (d->kind == USI_NODE_SCREW) linear = us_vec3_add(linear, us_vec3_scale(d->pitch, axis));
    const double out[6] = {
        is_linear ? 0 : axis.x, is_linear ? 0 : axis.y, is_linear ? 0 : axis.z, linear.x, linear.y, linear.z};
    memcpy(S, out, sizeof out);
}

// Takes the motion along S out of I. Returns the least D that is not lost in rounding where this one is; 0:
// it is not.
static double give_way(spatial *I, const double S[6], double armature, double least) {
    double U[6], D = armature, size = 0;
    for (int i = 0; i < 6; i++) {
        U[i] = 0;
        for (int k = 0; k < 6; k++) {
            U[i] += I->m[i][k] * S[k];
            size += fabs(S[i] * I->m[i][k] * S[k]);
        }
        D += S[i] * U[i];
    }
    least = fmax(least, ROUNDING * size);
    if (!(D > least)) return fmax(least, 1e-300);
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 6; k++)
            I->m[i][k] -= U[i] * U[k] / D;
    }
    return 0;
}

// An axis about which nothing resists may lie askew in the three rotations of a ball joint. Only that of the
// three which gives way last is found, and an armature about it alone could hardly be felt about the axis.
static void spread_over_balls(usi_build *b) {
    for (int32_t i = 0; i + 2 < b->n_node; i++) {
        const usi_joint *joint = &b->joint[b->node[i].joint];
        const bool is_ball = joint->type == US_JOINT_SPHERICAL || joint->type == US_JOINT_FLOATING;
        if (!is_ball || joint->first_v != i) continue;
        double *lost = &b->lost_inertia[i];
        lost[0] = lost[1] = lost[2] = fmax(lost[0], fmax(lost[1], lost[2]));
    }
}

us_status usi_build_articulate(usi_build *b) {
    size_t n = (size_t)b->n_node + 1;
    us_pose *X_WN = usi_arena_alloc(&b->arena, n * sizeof *X_WN, _Alignof(us_pose));
    spatial *I = usi_arena_alloc(&b->arena, n * sizeof *I, _Alignof(spatial));
    int32_t *root = usi_arena_alloc(&b->arena, n * sizeof *root, _Alignof(int32_t));
    b->lost_inertia = usi_arena_alloc(&b->arena, n * sizeof *b->lost_inertia, _Alignof(double));
    if (!X_WN || !I || !root || !b->lost_inertia) return usi_build_out_of_memory(b);
    usi_build_place(b, X_WN);
    for (int32_t i = 0; i < b->n_node; i++) {
        root[i] = b->node[i].parent < 0 ? i : root[b->node[i].parent];
        I[i] = spatial_of(&b->inertia[i], X_WN[i], X_WN[root[i]].p);
    }
    for (int32_t i = b->n_node - 1; i >= 0; i--) {
        double S[6], armature = b->joint_def[b->node[i].joint].armature, least = NOTHING * b->axis_inertia[i];
        motion_of(b, i, X_WN[i], X_WN[root[i]].p, S);
        b->lost_inertia[i] = give_way(&I[i], S, armature, least);
        int32_t parent = b->node[i].parent;
        for (int k = 0; parent >= 0 && k < 36; k++)
            I[parent].m[k / 6][k % 6] += I[i].m[k / 6][k % 6];
    }
    spread_over_balls(b);
    return US_OK;
}

// One node's step outwards: pose, axis, velocity, bias acceleration. Shared by the plain kinematics and by
// the articulated-body algorithm, which does it in the same pass as inertias and forces.
#ifndef USI_DYN_KINEMATICS_H
#define USI_DYN_KINEMATICS_H

#include <string.h>

#include "dyn/dyn.h"

// Hinge angles and their sines and cosines, all at once (those of slides are not used). The rest of the
// padded arrays is 0.
static inline void usi_angles(us_dyn *d, const double *q) {
    const us_model *m = d->model;
    if (m->is_flat) memcpy(d->angle, q, (size_t)m->n_node * sizeof *q);
    for (int32_t i = 0; !m->is_flat && i < m->n_node; i++) {
        const usi_node *n = &m->node[i];
        d->angle[i] = n->kind == USI_NODE_HINGE || n->kind == USI_NODE_SCREW ? q[n->q] : 0;
    }
    for (int32_t i = m->n_node; i < m->n_pad; i++)
        d->angle[i] = 0;
    usi_sincos(m->n_pad, d->angle, d->sine, d->cosine);
}

// Frame of N before the joint moves.
static inline void usi_link_base(const usi_node *n, usi_link *k, const usi_link *P) {
    const double *r = (const double *)&n->r;
    k->p = P->p + usi_v4_columns(P->X, P->Y, P->Z, r);
    if (n->flags & USI_NODE_TURNED) {
        k->X = usi_v4_columns(P->X, P->Y, P->Z, (const double *)&n->T[0]);
        k->Y = usi_v4_columns(P->X, P->Y, P->Z, (const double *)&n->T[1]);
        k->Z = usi_v4_columns(P->X, P->Y, P->Z, (const double *)&n->T[2]);
    } else {
        k->X = P->X;
        k->Y = P->Y;
        k->Z = P->Z;
    }
}

// Velocity and bias acceleration beyond an axis S that turns with either side of it: dS/dt = V_P x S.
static inline void usi_link_move(usi_link *k, const usi_link *P, usi_v4 Vw, usi_v4 Vv, double v) {
    usi_v4 dw = k->Sw * v, dv = k->Sv * v;
    k->w = P->w + dw;
    k->v = P->v + dv;
    k->aw = P->aw + usi_v4_cross(Vw, dw);
    k->av = P->av + usi_v4_cross2(Vw, dv, Vv, dw);
}

static inline void usi_link_turn_by(usi_link *k, const double *q) {
    us_mat3 R = us_quat_matrix(us_quat_normalize((us_quat){q[0], q[1], q[2], q[3]}));
    usi_v4 X = k->X, Y = k->Y, Z = k->Z;
    k->X = X * R.m[0] + Y * R.m[3] + Z * R.m[6];
    k->Y = X * R.m[1] + Y * R.m[4] + Z * R.m[7];
    k->Z = X * R.m[2] + Y * R.m[5] + Z * R.m[8];
}

// A root's joint carries the tree's origin with it.
static inline void usi_link_rebase(us_dyn *d, const usi_node *n, usi_link *k) {
    if (!(n->flags & USI_NODE_ROOT)) return;
    d->origin[n->tree] = (n->parent < 0 ? usi_v4_zero() : d->origin[n->tree]) + k->p;
    k->p = usi_v4_zero();
}

static inline void usi_link_copy_motion(usi_link *to, const usi_link *from) {
    to->X = from->X;
    to->Y = from->Y;
    to->Z = from->Z;
    to->p = from->p;
    to->w = from->w;
    to->v = from->v;
    to->aw = from->aw;
    to->av = from->av;
}

// A ball or free joint: all its nodes, from `i`. The velocity parts are skipped when v is NULL. Returns the
// last node.
static inline int32_t usi_link_group(us_dyn *d, int32_t i, const usi_link *P, const double *q,
                                     const double *v) {
    const us_model *m = d->model;
    const usi_node *n = &m->node[i];
    usi_link *k = &d->link[i];
    bool is_free = n->kind == USI_NODE_FREE;
    usi_link_base(n, k, P);
    if (is_free) k->p += usi_v4_columns(k->X, k->Y, k->Z, q + n->q + 4);
    usi_link_turn_by(k, q + n->q);
    usi_link_rebase(d, n, k);
    int32_t count = is_free ? 6 : 3;
    for (int32_t j = 0; j < count; j++) {
        usi_link *c = &d->link[i + j];
        const usi_link *before = j ? c - 1 : P;
        c->X = k->X;
        c->Y = k->Y;
        c->Z = k->Z;
        c->p = k->p;
        usi_v4 axis = j % 3 == 0 ? k->X : j % 3 == 1 ? k->Y : k->Z;
        c->Sw = j < 3 ? axis : usi_v4_zero();
        c->Sv = j < 3 ? usi_v4_cross(k->p, axis) : axis;
        if (v) usi_link_move(c, before, P->w, P->v, v[i + j]);
    }
    return i + count - 1;
}

// A joint of one axis, with the sine and cosine of its angle and its velocity.
static inline void usi_link_axis(us_dyn *d, const usi_node *n, usi_link *k, const usi_link *P, double sine,
                                 double cosine, const double *q, double v) {
    usi_link_base(n, k, P);
    usi_v4 X = k->X, Y = k->Y, Z = k->Z, axis;
    if (n->kind == USI_NODE_SLIDE) {
        sine = 0;
        cosine = 1;
    }
    // A turn about one axis mixes the other two.
    if (n->axis == 2) {
        axis = Z;
        k->X = X * cosine + Y * sine;
        k->Y = Y * cosine - X * sine;
    } else if (n->axis == 1) {
        axis = Y;
        k->Z = Z * cosine + X * sine;
        k->X = X * cosine - Z * sine;
    } else {
        axis = X;
        k->Y = Y * cosine + Z * sine;
        k->Z = Z * cosine - Y * sine;
    }
    if (n->kind == USI_NODE_HINGE) {
        usi_link_rebase(d, n, k);
        k->Sw = axis;
        k->Sv = usi_v4_cross(k->p, axis);
    } else {
        k->p += axis * (n->kind == USI_NODE_SLIDE ? q[n->q] : n->pitch * q[n->q]);
        usi_link_rebase(d, n, k);
        k->Sw = n->kind == USI_NODE_SLIDE ? usi_v4_zero() : axis;
        k->Sv = n->kind == USI_NODE_SLIDE ? axis : usi_v4_cross(k->p, axis) + axis * n->pitch;
    }
    usi_link_move(k, P, P->w, P->v, v);
}

// Inertia of a massive node about O, and, when asked, the force (n, f) about O that its acceleration (aw, av)
// needs. The force is found at the centre of mass (five cross products) and then moved to O.
static inline void usi_link_inertia(const usi_node *n, usi_link *k, bool want_force) {
    const double *c = (const double *)&n->com, *x = (const double *)&k->X, *y = (const double *)&k->Y,
                 *z = (const double *)&k->Z;
    usi_v4 X = k->X, Y = k->Y, Z = k->Z;
    usi_v4 com = k->p + usi_v4_columns(X, Y, Z, c), mass = usi_v4_all(c[3]);
    // About the centre of mass, R I R^T: first the columns of R I, then those of (R I) R^T.
    const double *I = (const double *)n->I;
    usi_v4 A, B, C;
    if (n->flags & USI_NODE_DIAGONAL) {
        A = X * I[0];
        B = Y * I[5];
        C = Z * I[10];
    } else {
        A = usi_v4_columns(X, Y, Z, I);
        B = usi_v4_columns(X, Y, Z, I + 4);
        C = usi_v4_columns(X, Y, Z, I + 8);
    }
    usi_v4 J0 = A * x[0] + B * y[0] + C * z[0];
    usi_v4 J1 = A * x[1] + B * y[1] + C * z[1];
    usi_v4 J2 = A * x[2] + B * y[2] + C * z[2];
    if (want_force) {
        const double *w = (const double *)&k->w, *a = (const double *)&k->aw;
        usi_v4 angular = J0 * w[0] + J1 * w[1] + J2 * w[2];
        usi_v4 moment = J0 * a[0] + J1 * a[1] + J2 * a[2];
        usi_v4 v_com = k->v + usi_v4_cross(k->w, com);
        usi_v4 force = mass * (k->av + usi_v4_cross2(k->aw, com, k->w, v_com));
        k->f = force;
        k->n = moment + usi_v4_cross2(k->w, angular, com, force);
    }
    // To O: plus m (c.c 1 - c c^T).
    usi_v4 h = com * mass, square = usi_v4_all(usi_v4_dot(h, com));
    k->J[0] = J0 - h * usi_v4_lane0(com) + square * (usi_v4){1, 0, 0, 0};
    k->J[1] = J1 - h * usi_v4_lane1(com) + square * (usi_v4){0, 1, 0, 0};
    k->J[2] = J2 - h * usi_v4_lane2(com) + square * (usi_v4){0, 0, 1, 0};
    k->h = __builtin_shufflevector(h, mass, 0, 1, 2, 4);
}

// The force alone, from the inertia about O that is there already: I A + V x* I V, with I V = (J w + h x v, m
// v - h x w).
static inline void usi_link_force(usi_link *k) {
    const double *w = (const double *)&k->w, *a = (const double *)&k->aw;
    usi_v4 h = k->h * (usi_v4){1, 1, 1, 0}, mass = usi_v4_all(((const double *)&k->h)[3]);
    usi_v4 angular = k->J[0] * w[0] + k->J[1] * w[1] + k->J[2] * w[2] + usi_v4_cross(h, k->v),
           linear = mass * k->v - usi_v4_cross(h, k->w);
    k->n = k->J[0] * a[0] + k->J[1] * a[1] + k->J[2] * a[2] +
           usi_v4_rotate_lanes(usi_v4_cross_rotated(h, k->av) + usi_v4_cross_rotated(k->w, angular) +
                               usi_v4_cross_rotated(k->v, linear));
    k->f = mass * k->av +
           usi_v4_rotate_lanes(usi_v4_cross_rotated(k->w, linear) - usi_v4_cross_rotated(h, k->aw));
}

static inline void usi_link_massless(usi_link *k) {
    k->J[0] = k->J[1] = k->J[2] = k->h = k->n = k->f = usi_v4_zero();
}

#endif

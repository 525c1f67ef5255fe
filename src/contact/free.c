// Free bodies in an island: what a step does to them without contact, and where they end with it.
#include "contact/world.h"

// The gyroscopic torque of the step's end: the w that solves J (w - w0) + h w x J w = 0, by one step of Newton's method. Taken at the start it would
// give energy to a body that tumbles; solved this way it takes a little, of second order.
static usi_v4 gyroscopic(usi_v4 J0, usi_v4 J1, usi_v4 J2, usi_v4 w, usi_v4 angular, double h) {
    usi_v4 torque = -usi_v4_cross(w, angular);
    // Columns of J + h (w x J - (J w) x).
    usi_v4 x = usi_v4_set(1, 0, 0), y = usi_v4_set(0, 1, 0), z = usi_v4_set(0, 0, 1);
    usi_v4 A = J0 + h * (usi_v4_cross(w, J0) - usi_v4_cross(angular, x)), B = J1 + h * (usi_v4_cross(w, J1) - usi_v4_cross(angular, y)),
           C = J2 + h * (usi_v4_cross(w, J2) - usi_v4_cross(angular, z));
    usi_v4 BC = usi_v4_cross(B, C), CA = usi_v4_cross(C, A), AB = usi_v4_cross(A, B);
    double inverse = 1 / usi_v4_dot(A, BC);
    usi_v4 change = inverse * usi_v4_set(usi_v4_dot(BC, torque), usi_v4_dot(CA, torque), usi_v4_dot(AB, torque));
    return J0 * usi_v4_lane0(change) + J1 * usi_v4_lane1(change) + J2 * usi_v4_lane2(change);
}

// Momentum form, first order.
void usi_free_start(usi_contacts *c, usi_island *s, const usi_push *push) {
    const us_model *m = c->model;
    const double h = m->step;
    for (int32_t i = 0; i < s->n_body; i++) {
        const usi_carrier *k = &c->carrier[c->body_carrier[s->first_body + i]];
        const usi_tree *tree = &m->tree[k->tree];
        usi_free *b = &c->body[s->first_body + i];
        if (!tree->is_free_body) continue;
        const usi_node *n = &m->node[tree->end - 1];
        const double *com = (const double *)&n->com, *I = (const double *)n->I, *inv = (const double *)c->inv_inertia[k->tree];
        // Single lanes come from memory: out of a register they cost more.
        const double *x = (const double *)&k->X, *y = (const double *)&k->Y, *z = (const double *)&k->Z;
        usi_v4 X = k->X, Y = k->Y, Z = k->Z, mass = usi_v4_all(com[3]);
        usi_v4 arm = usi_v4_columns(X, Y, Z, com), at = k->p + arm - s->O;
        // About the centre of mass, R I R^T, and its inverse.
        usi_v4 A = usi_v4_columns(X, Y, Z, I), B = usi_v4_columns(X, Y, Z, I + 4), C = usi_v4_columns(X, Y, Z, I + 8);
        usi_v4 J0 = A * x[0] + B * y[0] + C * z[0], J1 = A * x[1] + B * y[1] + C * z[1], J2 = A * x[2] + B * y[2] + C * z[2];
        A = usi_v4_columns(X, Y, Z, inv), B = usi_v4_columns(X, Y, Z, inv + 4), C = usi_v4_columns(X, Y, Z, inv + 8);
        b->inv_I[0] = A * x[0] + B * y[0] + C * z[0];
        b->inv_I[1] = A * x[1] + B * y[1] + C * z[1];
        b->inv_I[2] = A * x[2] + B * y[2] + C * z[2];
        usi_v4 w = k->w, angular = J0 * usi_v4_lane0(w) + J1 * usi_v4_lane1(w) + J2 * usi_v4_lane2(w);
        usi_v4 moment = gyroscopic(J0, J1, J2, w, angular, h), force = usi_v4_from(m->gravity) * mass;
        if (push->torque) {
            const double *t = push->torque + tree->first;
            usi_v4 f = usi_v4_columns(X, Y, Z, t + 3);
            force += f;
            moment += usi_v4_columns(X, Y, Z, t) - usi_v4_cross(arm, f);
        }
        for (int32_t j = c->body_start[k->tree]; push->wrench && j < c->body_start[k->tree + 1]; j++) {
            const us_wrench *given = &push->wrench[c->body_of_tree[j]];
            us_vec3 p = m->body[c->body_of_tree[j]].X_NB.p;
            usi_v4 f = usi_v4_from(given->f);
            force += f;
            moment += usi_v4_from(given->n) + usi_v4_cross(usi_v4_columns_of(X, Y, Z, p) - arm, f);
        }
        usi_v4 L = angular + moment * h;
        usi_v4 w_end = b->inv_I[0] * usi_v4_lane0(L) + b->inv_I[1] * usi_v4_lane1(L) + b->inv_I[2] * usi_v4_lane2(L);
        usi_v4 v_com = k->v + usi_v4_cross(w, arm), v_end = v_com + force * (h / com[3]);
        b->pv = v_end * mass;
        b->pw = L + usi_v4_cross(at, b->pv);
        b->fw = w_end, b->fv = v_end - usi_v4_cross(w_end, at);
        b->w = w, b->v = v_com - usi_v4_cross(w, at);
        usi_v4 hm = at * mass, square = usi_v4_all(usi_v4_dot(hm, at));
        b->J[0] = J0 - hm * usi_v4_lane0(at) + square * (usi_v4){1, 0, 0, 0};
        b->J[1] = J1 - hm * usi_v4_lane1(at) + square * (usi_v4){0, 1, 0, 0};
        b->J[2] = J2 - hm * usi_v4_lane2(at) + square * (usi_v4){0, 0, 1, 0};
        b->h = __builtin_shufflevector(hm, mass, 0, 1, 2, 4);
        b->c = (usi_v4){at[0], at[1], at[2], 1 / com[3]};
    }
}

// exp(r) q. What turns by less than a tenth of a radian, as everything does in a step, needs no functions: the series are exact to rounding. The
// product of two that are nearly units is made one by the first step of Newton's method on 1/sqrt.
static us_quat turn_by(us_vec3 r, us_quat q) {
    double x = us_vec3_dot(r, r);
    if (!(x < 0.01)) return us_quat_normalize(us_quat_mul(us_quat_exp(r), q));
    double c = 1 - x * (1.0 / 8 - x * (1.0 / 384 - x * (1.0 / 46080 - x * (1.0 / 10321920))));
    double s = 0.5 - x * (1.0 / 48 - x * (1.0 / 3840 - x * (1.0 / 645120 - x * (1.0 / 185794560))));
    us_quat p = us_quat_mul((us_quat){c, s * r.x, s * r.y, s * r.z}, q);
    double n = p.w * p.w + p.x * p.x + p.y * p.y + p.z * p.z, by = 1.5 - 0.5 * n;
    if (!(fabs(n - 1) < 1e-8)) return us_quat_normalize(p);
    return (us_quat){p.w * by, p.x * by, p.y * by, p.z * by};
}

// The centre of mass goes straight on, the body turns about it.
void usi_free_finish(usi_contacts *c, usi_island *s, const usi_push *push) {
    const us_model *m = c->model;
    const double h = m->step;
    for (int32_t i = 0; i < s->n_body; i++) {
        const usi_carrier *k = &c->carrier[c->body_carrier[s->first_body + i]];
        const usi_tree *tree = &m->tree[k->tree];
        const usi_free *b = &c->body[s->first_body + i];
        if (!tree->is_free_body) continue;
        const usi_node *root = &m->node[tree->first], *n = &m->node[tree->end - 1];
        us_vec3 w = usi_v4_vec3(b->w), com = usi_v4_vec3(n->com);
        usi_v4 at = b->c * (usi_v4){1, 1, 1, 0}, v_com = b->v + usi_v4_cross(b->w, at);
        us_quat q = turn_by(us_vec3_scale(h, w), k->X_WN.q), back = us_quat_conj(q);
        us_vec3 arm = us_quat_rotate(q, com), p = us_vec3_sub(usi_v4_vec3(s->O + at + v_com * h), arm);
        us_vec3 v = us_quat_rotate(back, us_vec3_sub(usi_v4_vec3(v_com), us_vec3_cross(w, arm)));
        us_vec3 turn = us_quat_rotate(back, w);
        us_pose X = {q, p};
        if (root->flags & USI_NODE_TURNED)
            X = us_pose_mul(us_pose_inverse(usi_node_rest(root)), X);
        else
            X.p = us_vec3_sub(X.p, usi_v4_vec3(root->r));
        const double out_q[7] = {X.q.w, X.q.x, X.q.y, X.q.z, X.p.x, X.p.y, X.p.z}, out_v[6] = {turn.x, turn.y, turn.z, v.x, v.y, v.z};
        for (int j = 0; j < 7; j++) push->out_q[root->q + j] = out_q[j];
        for (int j = 0; j < 6; j++) push->out_v[tree->first + j] = out_v[j];
    }
}

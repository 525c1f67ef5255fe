// Free bodies in islands: what a step does to them without contact, and where they end with it.
#include "contact/contact__parts.h"

// What commands push a body with: force, and moment about the centre of mass, which is at `arm` from the
// body's origin.
void usi_free_command(const usi_contacts *c, const usi_contact_input *in, const usi_collision_body *k,
                      usi_v4 *out_force, usi_v4 *out_moment) {
    const us_model *m = c->model;
    const usi_tree *tree = &m->tree[k->tree];
    usi_v4 arm = usi_to_world(k, usi_v4_vec3(m->node[tree->end - 1].com)), force = usi_v4_zero(),
           moment = force;
    if (in->torque) {
        const double *t = in->torque + tree->first;
        force = usi_v4_columns(k->X, k->Y, k->Z, t + 3);
        moment = usi_v4_columns(k->X, k->Y, k->Z, t) - usi_v4_cross(arm, force);
    }
    for (int32_t j = c->body_start[k->tree]; in->wrench && j < c->body_start[k->tree + 1]; j++) {
        const us_wrench *given = &in->wrench[c->body_of_tree[j]];
        usi_v4 f = usi_v4_from(given->f), at = usi_to_world(k, m->body[c->body_of_tree[j]].X_NB.p);
        force += f;
        moment += usi_v4_from(given->n) + usi_v4_cross(at - arm, f);
    }
    *out_force = force;
    *out_moment = moment;
}

// ---------------------------------------------------------------- one body

static usi_v4 times(const usi_v4 A[3], usi_v4 b) { return A[0] * b[0] + A[1] * b[1] + A[2] * b[2]; }

// R A R^T of a symmetric matrix in the body's axes, by columns.
static void rotate(const usi_collision_body *k, const usi_v4 A[3], usi_v4 out[3]) {
    usi_v4 B[3];
    for (int i = 0; i < 3; i++)
        B[i] = usi_v4_columns(k->X, k->Y, k->Z, (const double *)&A[i]);
    for (int i = 0; i < 3; i++)
        out[i] = B[0] * k->X[i] + B[1] * k->Y[i] + B[2] * k->Z[i];
}

// The gyroscopic torque of the step's end: the w that solves J (w - w0) + h w x J w = 0, by one step of
// Newton's method. Taken at the start it would give energy to a body that tumbles; solved this way it takes a
// little, of second order.
static usi_v4 gyroscopic(const usi_v4 J[3], usi_v4 w, usi_v4 L, double h) {
    usi_v4 A[3];
    for (int i = 0; i < 3; i++)
        A[i] = J[i] + h * (usi_v4_cross(w, J[i]) - usi_v4_cross(L, usi_v4_set(i == 0, i == 1, i == 2)));
    const usi_v4 BC = usi_v4_cross(A[1], A[2]), CA = usi_v4_cross(A[2], A[0]), AB = usi_v4_cross(A[0], A[1]),
                 torque = usi_v4_cross(L, w);
    const double inverse = 1 / usi_v4_dot(A[0], BC);
    return times(J, usi_v4_set(usi_v4_dot(BC, torque), usi_v4_dot(CA, torque), usi_v4_dot(AB, torque)) *
                        usi_v4_all(inverse));
}

// The same of a body that turns by more than a part of a radian in the step, where one step of Newton's
// method may end with more energy than it began with: shortened to what it had.
static usi_v4 hold_energy(const usi_v4 inv_I[3], usi_v4 w, usi_v4 L, usi_v4 torque, double h) {
    if (!(h * h * usi_v4_dot(w, w) > USI_FAST_TURN)) return torque;
    const usi_v4 end = L + h * torque;
    const double had = usi_v4_dot(w, L), has = usi_v4_dot(times(inv_I, end), end);
    return has > had ? (end * usi_v4_all(sqrt(had / has)) - L) * (1 / h) : torque;
}

// Momentum form, first order.
static void start_body(const usi_contacts *c, const usi_contact_input *in, const usi_collision_body *k,
                       usi_free *b) {
    const double h = c->model->step;
    const usi_node *node = &c->model->node[c->model->tree[k->tree].end - 1];
    const double mass = node->com[3];
    const usi_v4 arm = usi_to_world(k, usi_v4_vec3(node->com)), w = k->w,
                 at = k->p + arm - c->islands.island[c->islands.tree[k->tree].island].O;
    usi_v4 J[3], force, moment;
    rotate(k, node->I, J);
    rotate(k, c->inv_inertia[k->tree], b->inv_I);
    usi_free_command(c, in, k, &force, &moment);

    // Momentum at the end, about the centre of mass.
    const usi_v4 angular = times(J, w),
                 turning = hold_energy(b->inv_I, w, angular, gyroscopic(J, w, angular, h), h),
                 L = angular + h * (turning + moment);
    const usi_v4 v_com = k->v + usi_v4_cross(w, arm),
                 v_end = v_com + h * (usi_v4_from(c->model->gravity) + force * (1 / mass));

    // About O.
    b->w = w;
    b->v = v_com - usi_v4_cross(w, at);
    b->fw = times(b->inv_I, L);
    b->fv = v_end - usi_v4_cross(b->fw, at);
    b->pv = mass * v_end;
    b->pw = L + usi_v4_cross(at, b->pv);
    for (int i = 0; i < 3; i++)
        b->J[i] = J[i] + mass * (usi_v4_set(i == 0, i == 1, i == 2) * usi_v4_all(usi_v4_dot(at, at)) -
                                 at * usi_v4_all(at[i]));
    b->h = mass * at;
    b->h[3] = mass;
    b->c = at;
    b->c[3] = 1 / mass;
}

// The centre of mass goes straight on, the body turns about it.
void usi_free_finish_one(const usi_contacts *c, const usi_contact_input *in, const usi_collision_body *k,
                         const usi_free *b) {
    const double h = c->model->step;
    const usi_v4 O = c->islands.island[c->islands.tree[k->tree].island].O, at = b->c * (usi_v4){1, 1, 1, 0},
                 com = c->model->node[c->model->tree[k->tree].end - 1].com,
                 v_com = b->v + usi_v4_cross(b->w, at);
    const us_quat q = us_quat_normalize(us_quat_mul(us_quat_exp(usi_v4_vec3(h * b->w)), k->X_WN.q)),
                  back = us_quat_conj(q);
    const usi_v4 arm = usi_v4_from(us_quat_rotate(q, usi_v4_vec3(com)));
    usi_free_end(c, in, k, (usi_v4){q.w, q.x, q.y, q.z}, O + at + h * v_com - arm,
                 usi_v4_from(us_quat_rotate(back, usi_v4_vec3(b->w))),
                 usi_v4_from(us_quat_rotate(back, usi_v4_vec3(v_com - usi_v4_cross(b->w, arm)))));
}

// ---------------------------------------------------------------- all

static int32_t n_bodies(const usi_contacts *c) {
    if (c->islands.n_island == 0 || !c->has_free) return 0;
    const usi_island *last = &c->islands.island[c->islands.n_island - 1];
    return last->first_body + last->n_body;
}

void usi_free_start(usi_contacts *c, const usi_contact_input *in) {
    if (usi_is_fast(c, USI_FAST_FREE)) {
        usi_free_four_start(c, in);
        return;
    }
    for (int32_t i = 0; i < n_bodies(c); i++) {
        const usi_collision_body *k = &c->collide.collision_body[c->islands.collision_body_of[i]];
        if (c->model->tree[k->tree].is_free_body) start_body(c, in, k, &c->solve.body[i]);
    }
}

void usi_free_finish(usi_contacts *c, const usi_contact_input *in) {
    if (usi_is_fast(c, USI_FAST_FREE)) {
        usi_free_four_finish(c, in);
        return;
    }
    for (int32_t i = 0; i < n_bodies(c); i++) {
        const usi_collision_body *k = &c->collide.collision_body[c->islands.collision_body_of[i]];
        if (c->model->tree[k->tree].is_free_body) usi_free_finish_one(c, in, k, &c->solve.body[i]);
    }
}

// Trees in an island: what acts on their joints during a step, what they start from, and where they end.
//
// Every joint row is implicit: what counts is the velocity and position at the end of the step.
#include <math.h>
#include <string.h>

#include "contact/contact__parts.h"

// 1/s: how fast energy may grow by the torques of motion, h w^2, before they are taken at the end of the
// step.
static const double FAST = 0.01;

// The rows of a tree: from .. to.
typedef struct row_span {
    const usi_joint_row *from, *to;
} row_span;

static row_span rows_of(const usi_contacts *c, int32_t tree) {
    const usi_actuation *list = c->actuation;
    int32_t k = c->model->tree[tree].actuated;
    if (k < 0) return (row_span){NULL, NULL};
    return (row_span){list->row + list->start[k], list->row + list->start[k + 1]};
}

void usi_joint_rows(const usi_contacts *c, int32_t tree, const double *restrict v, double *restrict impulse,
                    double *restrict slope) {
    const double h = c->model->step;
    const row_span rows = rows_of(c, tree);
    for (const usi_joint_row *r = rows.from; r < rows.to; r++) {
        double rate = r->kd + h * r->kp, torque = r->torque - rate * v[r->v],
               bound = usi_row_clamp(r, torque);
        impulse[r->v] += h * bound;
        slope[r->v] += bound == torque ? h * rate : 0;
    }
}

// The impulse of bias, torques and weight, from the links' velocities.
static void tree_impulse(usi_contacts *c, const usi_contact_input *in, int32_t tree, usi_span span) {
    const us_model *m = c->model;
    us_dyn *d = c->dyn;
    usi_inertias_of(d, span, true);
    for (int32_t j = c->body_start[tree]; in->wrench && j < c->body_start[tree + 1]; j++) {
        const usi_body *body = &m->body[c->body_of_tree[j]];
        const us_wrench *x = &in->wrench[c->body_of_tree[j]];
        usi_link *k = &d->link[body->node];
        usi_v4 at = usi_link_point(k, body->X_NB.p), f = usi_v4_from(x->f);
        k->f -= f;
        k->n -= usi_v4_from(x->n) + usi_v4_cross(at, f);
    }
    usi_project_forces_of(d, span, c->joints.impulse);
    for (int32_t i = span.first; i < span.end; i++)
        c->joints.impulse[i] = m->step * ((in->torque ? in->torque[i] : 0) - c->joints.impulse[i]);
}

// The square of the spin of the link that turns fastest, (rad/s)^2.
static double max_spin(const us_dyn *d, usi_span span) {
    double max = 0;
    for (int32_t i = span.first; i < span.end; i++) {
        double square = usi_v4_dot(d->link[i].w, d->link[i].w);
        max = square > max ? square : max;
    }
    return max;
}

// Motion of a tree at (q, v).
typedef struct motion {
    double kinetic;           // J
    usi_v4 momentum, moment;  // kg m/s; kg m, the mass times the place of its centre
} motion;

// Overwrites the links' frames, velocities and inertias.
static motion motion_of(us_dyn *d, usi_span span, const double *q, const double *v) {
    const us_model *m = d->model;
    motion sum = {0, usi_v4_zero(), usi_v4_zero()};
    usi_kinematics_of(d, span, q, v, NULL);
    usi_inertias_of(d, span, false);
    for (int32_t i = span.first; i < span.end; i++) {
        const usi_link *k = &d->link[i];
        usi_v4 angular, linear;
        usi_inertia_times(k->J, k->h, k->w, k->v, &angular, &linear);
        sum.kinetic += 0.5 * (usi_v4_sum(k->w * angular + k->v * linear) + m->armature[i] * v[i] * v[i]);
        sum.momentum += linear;
        sum.moment += k->h * (usi_v4){1, 1, 1, 0} + usi_v4_all(k->h[3]) * d->origin[m->node[i].tree];
    }
    return sum;
}

// What the mass matrix makes of the accelerations that the links have, less that against gravity.
static void project_motion(us_dyn *d, usi_span span, double *out) {
    const usi_v4 up = d->world.av;
    usi_inertias_of(d, span, true);
    for (int32_t i = span.first; i < span.end; i++) {
        usi_link *k = &d->link[i];
        k->f -= up * usi_v4_all(((const double *)&k->h)[3]);
        k->n -= usi_v4_cross(k->h * (usi_v4){1, 1, 1, 0}, up);
    }
    usi_project_forces_of(d, span, out);
}

// The velocity that the torques of motion of the links' velocities alone would leave, from the factors of the
// mass matrix: the weight and the drives are held by contacts more often than not.
static void predict(usi_contacts *c, const usi_contact_input *in, usi_span span) {
    project_motion(c->dyn, span, c->joints.step_v);
    for (int32_t i = span.first; i < span.end; i++)
        c->joints.step_v[i] *= -c->model->step;
    usi_solve_of(c->dyn, span, c->joints.step_v);
    for (int32_t i = span.first; i < span.end; i++)
        c->joints.vel[i] = in->v[i] + c->joints.step_v[i];
}

// The same of a tree that turns by more than a part of a radian in the step, where the end of the step may
// not be foreseen: what the torques of motion would leave is shortened to the energy that the tree had.
static void hold_energy(usi_contacts *c, const usi_contact_input *in, usi_span span) {
    us_dyn *d = c->dyn;
    double *const x = c->joints.step_v, *const none = c->joints.work;
    predict(c, in, span);
    const double had = motion_of(d, span, in->q, in->v).kinetic,
                 has = motion_of(d, span, in->q, c->joints.vel).kinetic;
    if (!(has > had)) return;
    const double less = 1 - sqrt(had / has);
    for (int32_t i = span.first; i < span.end; i++) {
        x[i] = less * c->joints.vel[i];
        none[i] = 0;
    }
    usi_kinematics_of(d, span, in->q, none, x);
    project_motion(d, span, none);
    for (int32_t i = span.first; i < span.end; i++)
        c->joints.impulse[i] -= none[i] + c->model->armature[i] * x[i];
}

// The torques of motion (centrifugal, gyroscopic) depend on the velocity at the end of the step, and taken at
// the start they feed a tree that spins: its energy grows by (h w)^2 in each step. Links that are fast enough
// for that to matter get those of the velocity that they would leave by themselves, which takes energy
// instead, as an implicit step does.
bool usi_tree_start(usi_contacts *c, const usi_contact_input *in, int32_t tree, bool wants_matrix,
                    bool is_again) {
    const us_model *m = c->model;
    us_dyn *d = c->dyn;
    usi_span span = {m->tree[tree].first, m->tree[tree].end};
    if (is_again) usi_kinematics_of(d, span, in->q, in->v, NULL);
    tree_impulse(c, in, tree, span);
    if (!wants_matrix) usi_crba_diagonal_of(d, span, c->joints.inertia);
    if (wants_matrix) usi_crba_of(d, span, c->joints.H);
    for (int32_t i = span.first; wants_matrix && i < span.end; i++)
        c->joints.inertia[i] = c->joints.H[m->row_start[i + 1] - 1];
    const double spin = max_spin(d, span);
    bool is_ahead = spin * m->step > FAST;
    if (is_ahead) {
        usi_crba_of(d, span, d->row);
        is_ahead = usi_factor_of(d, span, m->armature, NULL);
    }
    if (is_ahead) {
        predict(c, in, span);
        usi_kinematics_of(d, span, in->q, c->joints.vel, NULL);
        tree_impulse(c, in, tree, span);
        if (spin * m->step * m->step > USI_FAST_TURN) hold_energy(c, in, span);
    }
    for (int32_t i = span.first; i < span.end; i++) {
        c->joints.vel[i] = in->v[i];
        c->joints.inertia[i] += m->armature[i];
        c->joints.inv_pivot[i] = 1 / c->joints.inertia[i];
    }
    return !is_ahead;
}

// A tree that has turned by more than a part of a radian has another mass matrix at the end of the step, and
// with the velocities of the solve another energy; and its weight has moved along arcs, not by h v. What it
// would have more than the solve thought is taken from its velocities.
static void keep_energy(const usi_contacts *c, const usi_contact_input *in, usi_span span) {
    const us_model *m = c->model;
    const double h = m->step, *v = c->joints.vel;
    us_dyn *d = c->dyn;
    double max = 0;
    for (int32_t i = span.first; i < span.end; i++) {
        const double before = in->v[i] * in->v[i], after = v[i] * v[i];
        max = before > max ? before : max;
        max = after > max ? after : max;
    }
    if (!(h * h * max > USI_FAST_TURN)) return;
    const motion solved = motion_of(d, span, in->q, v);
    usi_angles_of(d, span, in->out_q);
    const motion left = motion_of(d, span, in->out_q, v);
    const usi_v4 arc = left.moment - solved.moment - h * solved.momentum;
    const double most = fmax(solved.kinetic + usi_v4_dot(arc, usi_v4_from(m->gravity)), 0),
                 share = left.kinetic > most ? sqrt(most / left.kinetic) : 1;
    for (int32_t i = span.first; i < span.end; i++)
        in->out_v[i] = share * v[i];
    usi_angles_of(d, span, in->q);
    usi_kinematics_of(d, span, in->q, in->v, NULL);
}

void usi_tree_finish(usi_contacts *c, const usi_contact_input *in, int32_t tree) {
    const us_model *m = c->model;
    for (int32_t i = m->tree[tree].first; i < m->tree[tree].end; i++) {
        in->out_v[i] = c->joints.vel[i];
        c->joints.work[i] = m->step * c->joints.vel[i];
    }
    usi_add_range(m, in->q, c->joints.work, in->out_q, m->tree[tree].first, m->tree[tree].end);
    keep_energy(c, in, (usi_span){m->tree[tree].first, m->tree[tree].end});
    const row_span rows = rows_of(c, tree);
    for (const usi_joint_row *r = rows.from; r < rows.to; r++) {
        if (r->drive < 0) continue;
        double torque = r->torque - (r->kd + m->step * r->kp) * c->joints.vel[r->v];
        in->drive_effort[r->drive] = usi_row_clamp(r, torque);
    }
}

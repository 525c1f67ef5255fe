// Trees in an island: what acts on their joints during a step, what they start from, and where they end.
//
// Every joint row is implicit: what counts is the velocity and position at the end of the step.
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

// Whether a link is so fast that its energy may grow by more than FAST of itself per second.
static bool is_fast(const us_dyn *d, usi_span span, double h) {
    double max = 0;
    for (int32_t i = span.first; i < span.end; i++) {
        double square = usi_v4_dot(d->link[i].w, d->link[i].w);
        max = square > max ? square : max;
    }
    return max * h > FAST;
}

// The velocity that the torques of motion alone would leave: the weight and the drives are held by contacts
// more often than not. False when the mass matrix is not positive.
static bool predict(usi_contacts *c, const usi_contact_input *in, usi_span span) {
    const us_model *m = c->model;
    us_dyn *d = c->dyn;
    usi_v4 up = d->world.av;
    usi_crba_of(d, span, d->row);
    if (!usi_factor_of(d, span, m->armature, NULL)) return false;
    usi_inertias_of(d, span, true);
    for (int32_t i = span.first; i < span.end; i++) {
        usi_link *k = &d->link[i];
        k->f -= up * usi_v4_all(((const double *)&k->h)[3]);
        k->n -= usi_v4_cross(k->h * (usi_v4){1, 1, 1, 0}, up);
    }
    usi_project_forces_of(d, span, c->joints.step_v);
    for (int32_t i = span.first; i < span.end; i++)
        c->joints.step_v[i] *= -m->step;
    usi_solve_of(d, span, c->joints.step_v);
    for (int32_t i = span.first; i < span.end; i++)
        c->joints.vel[i] = in->v[i] + c->joints.step_v[i];
    return true;
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
    const bool is_ahead = is_fast(d, span, m->step) && predict(c, in, span);
    if (is_ahead) {
        usi_kinematics_of(d, span, in->q, c->joints.vel, NULL);
        tree_impulse(c, in, tree, span);
    }
    for (int32_t i = span.first; i < span.end; i++) {
        c->joints.vel[i] = in->v[i];
        c->joints.inertia[i] += m->armature[i];
        c->joints.inv_pivot[i] = 1 / c->joints.inertia[i];
    }
    return !is_ahead;
}

void usi_tree_finish(usi_contacts *c, const usi_contact_input *in, int32_t tree) {
    const us_model *m = c->model;
    for (int32_t i = m->tree[tree].first; i < m->tree[tree].end; i++) {
        in->out_v[i] = c->joints.vel[i];
        c->joints.work[i] = m->step * c->joints.vel[i];
    }
    usi_add_range(m, in->q, c->joints.work, in->out_q, m->tree[tree].first, m->tree[tree].end);
    const row_span rows = rows_of(c, tree);
    for (const usi_joint_row *r = rows.from; r < rows.to; r++) {
        if (r->drive < 0) continue;
        double torque = r->torque - (r->kd + m->step * r->kp) * c->joints.vel[r->v];
        in->drive_effort[r->drive] = usi_row_clamp(r, torque);
    }
}

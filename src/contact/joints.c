// Trees in an island: what acts on their joints during a step, what they start from, and where they end.
//
// Every joint row is implicit: what counts is the velocity and position at the end of the step.
#include <string.h>

#include "contact/contact__parts.h"

// 1/s: how fast energy may grow by the torques of motion, h w^2, before they are taken at the end of the
// step.
static const double FAST = 0.01;

// A drive pulls towards its command, dry friction towards the place where the joint stuck; both give way at
// their bounds. Beyond each of its limits a joint is only pushed back, and not before it is there. All that
// does not depend on the velocity is found once a step.
static void find_joint_rows(usi_contacts *c, const usi_contact_input *in, int32_t tree) {
    const us_model *m = c->model;
    const double h = m->step;
    for (int32_t k = c->bounded_torque_start[tree]; k < c->bounded_torque_start[tree + 1]; k++) {
        const usi_bounded_torque *e = &m->element[c->bounded_torque_of_tree[k]];
        const double q = in->q[e->q];
        double torque = e->drive < 0 ? e->kp * (in->stuck[c->bounded_torque_of_tree[k]] - q)
                                     : in->drive_torque[e->drive] + e->kd * in->drive_velocity[e->drive] +
                                           e->kp * (in->drive_position[e->drive] - q);
        double most = e->drive < 0 ? e->high : usi_drive_bound(e->high, in->drive_limit_scale[e->drive]);
        c->bounded_torque_now[k] = (usi_joint_now){torque, e->kd + h * e->kp, -most, most, e->v};
    }
    for (int32_t k = c->joint_limit_start[tree]; k < c->joint_limit_start[tree + 1]; k++) {
        const usi_joint_limit *e = &m->stop[c->joint_limit_of_tree[k]];
        double q = in->q[e->q], down = q - e->lower, up = e->upper - q, K = h * (h * e->kp + e->kd);
        c->joint_limit_now[k] = (usi_joint_now){0, K, down > 0 ? -down / h * K : -h * e->kp * down,
                                                up > 0 ? up / h * K : h * e->kp * up, e->v};
    }
    for (int32_t i = m->tree[tree].first; m->n_soft > 0 && i < m->tree[tree].end; i++) {
        double k = m->stiffness[i];
        c->spring[i] = k != 0 ? h * k * (m->rest[i] - in->q[m->node[i].q]) : 0;
        c->soft[i] = h * (m->damping[i] + h * k);
    }
}

static double within(double torque, const usi_joint_now *e) {
    return torque < e->low ? e->low : torque > e->high ? e->high : torque;
}

void usi_joint_rows(const usi_contacts *c, int32_t tree, const double *restrict v, double *restrict impulse,
                    double *restrict slope) {
    const us_model *m = c->model;
    const double h = m->step;
    for (int32_t k = c->bounded_torque_start[tree]; k < c->bounded_torque_start[tree + 1]; k++) {
        const usi_joint_now *e = &c->bounded_torque_now[k];
        double torque = e->torque - e->rate * v[e->v], bound = within(torque, e);
        impulse[e->v] += h * bound;
        slope[e->v] += bound == torque ? h * e->rate : 0;
    }
    for (int32_t k = c->joint_limit_start[tree]; k < c->joint_limit_start[tree + 1]; k++) {
        const usi_joint_now *e = &c->joint_limit_now[k];
        double less = e->rate * v[e->v];
        if (!(e->low - less > 0) && !(e->high - less < 0)) continue;
        impulse[e->v] += (e->low - less > 0 ? e->low : e->high) - less;
        slope[e->v] += e->rate;
    }
    const double *spring = c->spring, *soft = c->soft;
    for (int32_t i = m->tree[tree].first; m->n_soft > 0 && i < m->tree[tree].end; i++) {
        impulse[i] += spring[i] - soft[i] * v[i];
        slope[i] += soft[i];
    }
}

// The impulse of bias, torques and weight, from the links' velocities.
static void tree_push(usi_contacts *c, const usi_contact_input *push, int32_t tree, usi_span span) {
    const us_model *m = c->model;
    us_dyn *d = c->dyn;
    usi_inertias_of(d, span, true);
    for (int32_t j = c->body_start[tree]; push->wrench && j < c->body_start[tree + 1]; j++) {
        const usi_body *body = &m->body[c->body_of_tree[j]];
        const us_wrench *x = &push->wrench[c->body_of_tree[j]];
        usi_link *k = &d->link[body->node];
        usi_v4 at = usi_link_point(k, body->X_NB.p), f = usi_v4_from(x->f);
        k->f -= f;
        k->n -= usi_v4_from(x->n) + usi_v4_cross(at, f);
    }
    usi_project_forces_of(d, span, c->push);
    for (int32_t i = span.first; i < span.end; i++)
        c->push[i] = m->step * ((push->torque ? push->torque[i] : 0) - c->push[i]);
}

// Whether a link is so fast that its energy may grow by more than FAST of itself per second.
static bool is_fast(const us_dyn *d, usi_span span, double h) {
    double most = 0;
    for (int32_t i = span.first; i < span.end; i++) {
        double square = usi_v4_dot(d->link[i].w, d->link[i].w);
        most = square > most ? square : most;
    }
    return most * h > FAST;
}

// The velocity that the torques of motion alone would leave: the weight and the drives are held by contacts
// more often than not. False when the mass matrix is not positive.
static bool predict(usi_contacts *c, const usi_contact_input *push, usi_span span) {
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
    usi_project_forces_of(d, span, c->step_v);
    for (int32_t i = span.first; i < span.end; i++)
        c->step_v[i] *= -m->step;
    usi_solve_of(d, span, c->step_v);
    for (int32_t i = span.first; i < span.end; i++)
        c->vel[i] = push->v[i] + c->step_v[i];
    return true;
}

// The torques of motion (centrifugal, gyroscopic) depend on the velocity at the end of the step, and taken at
// the start they feed a tree that spins: its energy grows by (h w)^2 in each step. Links that are fast enough
// for that to matter get those of the velocity that they would leave by themselves, which takes energy
// instead, as an implicit step does.
void usi_tree_start(usi_contacts *c, const usi_contact_input *push, int32_t tree, bool wants_matrix) {
    const us_model *m = c->model;
    us_dyn *d = c->dyn;
    usi_span span = {m->tree[tree].first, m->tree[tree].end};
    tree_push(c, push, tree, span);
    if (!wants_matrix) usi_crba_diagonal_of(d, span, c->inertia);
    if (wants_matrix) usi_crba_of(d, span, c->H);
    for (int32_t i = span.first; wants_matrix && i < span.end; i++)
        c->inertia[i] = c->H[m->row_start[i + 1] - 1];
    if (is_fast(d, span, m->step) && predict(c, push, span)) {
        usi_kinematics_of(d, span, push->q, c->vel, NULL);
        tree_push(c, push, tree, span);
    }
    for (int32_t i = span.first; i < span.end; i++) {
        c->vel[i] = push->v[i];
        c->inertia[i] += m->armature[i];
        c->inv_pivot[i] = 1 / c->inertia[i];
    }
    find_joint_rows(c, push, tree);
}

void usi_tree_finish(usi_contacts *c, const usi_contact_input *push, int32_t tree) {
    const us_model *m = c->model;
    for (int32_t i = m->tree[tree].first; i < m->tree[tree].end; i++) {
        push->out_v[i] = c->vel[i];
        c->turn[i] = m->step * c->vel[i];
    }
    usi_add_range(m, push->q, c->turn, push->out_q, m->tree[tree].first, m->tree[tree].end);
    for (int32_t k = c->bounded_torque_start[tree]; k < c->bounded_torque_start[tree + 1]; k++) {
        const usi_bounded_torque *e = &m->element[c->bounded_torque_of_tree[k]];
        const usi_joint_now *now = &c->bounded_torque_now[k];
        if (e->drive >= 0) push->drive_effort[e->drive] = within(now->torque - now->rate * c->vel[e->v], now);
    }
}

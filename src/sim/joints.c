// Torques at the joints: commands, springs, dampers, and elements with bounds (drives, dry friction, limits).
//
// Everything linear is implicit: a spring k and a damper c that act on a step's later state give the same accelerations as
// explicit ones plus (spring k + theta span c) on the diagonal of the mass matrix, which costs nothing and is stable for any
// k and c. An element with bounds is tried as linear first; where its torque comes out beyond a bound it is held
// there and the step is solved again, until the set of held elements stays the same. The guess of the acceleration
// (that of the last step) picks the set well enough that one solution is the rule.
#include "sim/sim.h"

#include <string.h>

enum { MAX_TRIES = 6 };  // an arm that swings into three limits at once needs three

typedef struct command_of {
    double position, velocity, torque;
} command_of;

static command_of element_command(const us_sim *s, const usi_element *e) {
    if (e->drive < 0) return (command_of){e->position, 0, 0};
    return (command_of){s->next.drive_position[e->drive], s->next.drive_velocity[e->drive], s->next.drive_torque[e->drive]};
}

// The element's torque if it had no bounds, at (q, v), without what the acceleration takes from it.
static double linear_torque(const us_sim *s, const usi_element *e, const usi_scheme *scheme, const double *q, const double *v) {
    command_of c = element_command(s, e);
    double torque = c.torque + e->kd * (c.velocity - v[e->v]);
    return e->kp == 0 ? torque : torque + e->kp * (c.position - q[e->q] - scheme->lead * v[e->v]);
}

// What a unit of acceleration takes from it; theta weighs the damper.
static double slope(const usi_element *e, const usi_scheme *scheme, double theta) { return e->kp * scheme->spring + e->kd * theta * scheme->span; }

static int bound_of(const usi_element *e, double torque) { return torque < e->low ? -1 : torque > e->high ? 1 : 0; }

// Whether a limit is out of reach in this step: then it is on its bound, which is no torque. The quick way to the answer
// that nearly every limit has nearly always.
static bool is_far(const usi_element *e, const usi_scheme *scheme, const double *q, const double *v, const double *a) {
    double outwards = e->high > 0 ? -1 : 1, now = outwards * v[e->v], gain = outwards * a[e->v];
    double way = outwards * (e->position - q[e->q]) - scheme->lead * now - scheme->spring * gain;
    double fastest = gain > 0 ? now + scheme->span * gain : now;
    return way > 0 && e->kp * way > e->kd * fastest;
}

// Each element's torque without acceleration, and the first guess of its bound.
static void prepare(us_sim *s, const usi_scheme *scheme, const double *q, const double *v, const double *a) {
    const us_model *m = s->model;
    for (int32_t k = 0; k < m->n_element; k++) {
        const usi_element *e = &m->element[k];
        double torque = s->torque[k] = linear_torque(s, e, scheme, q, v);
        if (e->is_stop) {
            s->bound[k] = is_far(e, scheme, q, v, a) ? (e->high > 0 ? -1 : 1) : 0;
        } else {
            s->bound[k] = (int8_t)bound_of(e, torque - slope(e, scheme, 0.5) * a[e->v]);
        }
    }
}

// Fills d->tau, d->diag, d->damp.
static void assemble(us_sim *s, const usi_scheme *scheme, const double *q, const double *v, const us_command *command) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    size_t bytes = (size_t)m->n_pad * sizeof(double);
    memset(d->tau, 0, bytes);
    memset(d->damp, 0, bytes);
    memcpy(d->diag, m->armature, (size_t)m->n_node * sizeof(double));
    if (command && command->torque) memcpy(d->tau, command->torque, (size_t)m->n_node * sizeof(double));
    for (int32_t k = 0; k < m->n_soft; k++) {
        int32_t i = m->soft[k];
        d->tau[i] -= m->damping[i] * v[i];
        d->damp[i] += scheme->span * m->damping[i];
        if (m->stiffness[i] == 0) continue;
        d->tau[i] -= m->stiffness[i] * (q[m->node[i].q] + scheme->lead * v[i] - m->rest[i]);
        d->diag[i] += scheme->spring * m->stiffness[i];
    }
    for (int32_t k = 0; k < m->n_element; k++) {
        const usi_element *e = &m->element[k];
        if (s->bound[k] != 0) {
            d->tau[e->v] += s->bound[k] < 0 ? e->low : e->high;
        } else {
            d->tau[e->v] += s->torque[k];
            d->diag[e->v] += scheme->spring * e->kp;
            d->damp[e->v] += scheme->span * e->kd;
        }
    }
}

// Compares each element's torque with its bounds. Returns whether some element changed.
static bool check(us_sim *s, const usi_scheme *scheme, const double *q, const double *v, const double *a) {
    const us_model *m = s->model;
    const us_dyn *d = s->dyn;
    bool changed = false;
    for (int32_t k = 0; k < m->n_element; k++) {
        const usi_element *e = &m->element[k];
        if (e->is_stop && s->bound[k] != 0 && is_far(e, scheme, q, v, a)) continue;
        // The weight that the damper has, or would have if the element were not held.
        double damp = d->damp[e->v] + (s->bound[k] ? scheme->span * e->kd : 0), theta = usi_damping_weight(d->pivot[e->v], damp);
        double torque = s->torque[k] - slope(e, scheme, theta) * a[e->v];
        int bound = bound_of(e, torque);
        // From one bound to the other the way leads over no bound at all: a joint that sticks would be missed otherwise.
        if (bound == -s->bound[k]) bound = 0;
        changed = changed || bound != s->bound[k];
        s->bound[k] = (int8_t)bound;
        if (e->drive >= 0) s->next.drive_effort[e->drive] = bound < 0 ? e->low : bound > 0 ? e->high : torque;
    }
    return changed;
}

bool usi_accelerate(us_sim *s, const usi_scheme *scheme, const usi_pass *pass, const double *q, const double *v, const us_command *command,
                    double *out_a) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    const us_wrench *wrench = command ? command->wrench : NULL;
    const double *q0 = s->now.q, *v0 = s->now.v;
    if (m->n_soft == 0 && m->n_element == 0) {
        if (pass->is_first) memset(d->tau, 0, (size_t)m->n_pad * sizeof(double));
        usi_joint_terms plain = {command && command->torque ? command->torque : d->tau, NULL, NULL, scheme->closes_position};
        return pass->is_first ? usi_forward(d, q, v, &plain, wrench, out_a) : usi_forward_again(d, q, v, &plain, wrench, out_a);
    }
    const usi_joint_terms terms = {d->tau, d->diag, d->damp, scheme->closes_position};
    if (pass->is_first) {
        prepare(s, scheme, q0, v0, out_a);
        assemble(s, scheme, q0, v0, command);
    }
    for (int tries = 0;; tries++) {
        bool is_again = !pass->is_first && tries == 0;
        if (!(is_again ? usi_forward_again : usi_forward)(d, q, v, &terms, wrench, out_a)) return false;
        if (!pass->is_last || !check(s, scheme, q0, v0, out_a) || tries == MAX_TRIES) return true;
        assemble(s, scheme, q0, v0, command);
    }
}

bool usi_accelerate_first(us_sim *s, double *out_a) {
    const double h = s->model->step;
    const usi_scheme scheme = {h, h * h, h, false};
    memset(out_a, 0, (size_t)s->model->n_pad * sizeof(double));
    return usi_accelerate(s, &scheme, &(usi_pass){true, true}, s->now.q, s->now.v, NULL, out_a);
}

bool usi_accelerate_explicit(us_sim *s, const double *q, const double *v, const us_command *command, double *out_a) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    static const usi_scheme here = {0, 0, 0, false};
    usi_joint_terms terms = {d->tau, NULL, NULL, false};
    for (int32_t k = 0; k < m->n_element; k++) {
        const usi_element *e = &m->element[k];
        double torque = s->torque[k] = linear_torque(s, e, &here, q, v);
        // A limit acts only beyond its position, also when its damper alone would push.
        bool is_beyond = !e->is_stop || (e->high > 0 ? q[e->q] < e->position : q[e->q] > e->position);
        int bound = is_beyond ? bound_of(e, torque) : e->high > 0 ? -1 : 1;
        s->bound[k] = (int8_t)bound;
        if (e->drive >= 0) s->next.drive_effort[e->drive] = bound < 0 ? e->low : bound > 0 ? e->high : torque;
    }
    assemble(s, &here, q, v, command);
    return usi_forward(d, q, v, &terms, command ? command->wrench : NULL, out_a);
}

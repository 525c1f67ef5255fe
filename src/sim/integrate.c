// Smooth motion: accelerations of trees that nothing touches, with what acts on their joints (src/actuate),
// and the two implicit one-stage integrators, semi-implicit Euler and midpoint.
//
// Everything linear is implicit: a spring k and a damper c that act on a step's later state give the same
// accelerations as explicit ones plus (spring k + theta span c) on the diagonal of the mass matrix, which
// costs nothing and is stable for any k and c. A row with bounds is tried as linear first; where its torque
// comes out beyond a bound it is held there and the step is solved again, until the set of held rows stays
// the same. The guess of the acceleration (that of the last step) picks the set well enough that one solution
// is the rule.
#include <string.h>

#include "sim/sim.h"

enum { MAX_TRIES = 6 };  // an arm that swings into three limits at once needs three

static int bound_of(const usi_joint_row *r, double torque) {
    return torque < r->low ? -1 : torque > r->high ? 1 : 0;
}

// A limit acts at the step's end under every scheme: at its middle it would throw a light link back faster
// than it came.
static inline usi_scheme scheme_of(const usi_joint_row *r, usi_scheme scheme) {
    if (r->kind == USI_LAW_LIMIT) {
        scheme.lead = scheme.span;
        scheme.spring = scheme.span * scheme.span;
    }
    return scheme;
}

// What a unit of acceleration takes from a row; theta weighs the damper.
static double slope(const usi_joint_row *r, usi_scheme scheme, double theta) {
    return r->kp * scheme_of(r, scheme).spring + r->kd * theta * scheme.span;
}

// The commanded torques and no rows yet, in d->tau.
static void start_torques(us_sim *s, const us_command *command) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_pad; i += 4)
        *(usi_v4 *)(s->dyn->tau + i) = usi_v4_zero();
    if (command && command->torque) memcpy(s->dyn->tau, command->torque, (size_t)m->n_node * sizeof(double));
}

// No rows yet in d->tau, d->diag, d->damp.
static void start_terms(us_sim *s, const us_command *command) {
    const us_model *m = s->model;
    start_torques(s, command);
    for (int32_t i = 0; i < m->n_pad; i += 4) {
        *(usi_v4 *)(s->dyn->damp + i) = usi_v4_zero();
        *(usi_v4 *)(s->dyn->diag + i) = *(const usi_v4 *)(m->armature + i);
    }
}

// A row on a bound is a torque, others are linear too.
static inline void add_row(us_sim *s, usi_scheme scheme, int32_t k) {
    const usi_joint_row *r = &s->row[k];
    us_dyn *d = s->dyn;
    if (s->bound[k] != 0) {
        d->tau[r->v] += s->bound[k] < 0 ? r->low : r->high;
        return;
    }
    d->tau[r->v] += s->torque[k];
    d->diag[r->v] += scheme_of(r, scheme).spring * r->kp;
    d->damp[r->v] += scheme.span * r->kd;
}

// Each row's torque without acceleration, and the first guess of which bounds act; springs have none.
static void prepare(us_sim *s, usi_scheme scheme, const double *v, const double *a) {
    const us_model *m = s->model;
    for (int32_t t = 0; t < m->n_actuated; t++) {
        if (usi_is_touched(s, m->actuated[t].tree)) continue;
        for (int32_t k = s->row_start[t]; k < s->row_start[t + 1]; k++) {
            const usi_joint_row *r = &s->row[k];
            s->torque[k] = r->torque - (r->kp * scheme_of(r, scheme).lead + r->kd) * v[r->v];
            s->bound[k] =
                r->kind == USI_LAW_SPRING ? 0 : bound_of(r, s->torque[k] - slope(r, scheme, 0.5) * a[r->v]);
            add_row(s, scheme, k);
        }
    }
}

static void assemble(us_sim *s, usi_scheme scheme) {
    const us_model *m = s->model;
    for (int32_t t = 0; t < m->n_actuated; t++) {
        if (usi_is_touched(s, m->actuated[t].tree)) continue;
        for (int32_t k = s->row_start[t]; k < s->row_start[t + 1]; k++)
            add_row(s, scheme, k);
    }
}

// Compares a row's torque with its bounds. Returns whether it is on another one than before.
static bool check_row(us_sim *s, usi_scheme scheme, int32_t k, const double *a) {
    const usi_joint_row *r = &s->row[k];
    const us_dyn *d = s->dyn;
    // The weight that the damper has in the last solution, or would have if it joined.
    double joining = s->bound[k] ? scheme.span * r->kd : 0;
    double theta = usi_damping_weight(d->pivot[r->v], d->damp[r->v] + joining);
    double torque = s->torque[k] - slope(r, scheme, theta) * a[r->v];
    int bound = bound_of(r, torque);
    // From one bound to the other a row passes through no bound at all: a joint that sticks would be missed
    // otherwise.
    if (bound == -s->bound[k]) bound = 0;
    bool has_changed = bound != s->bound[k];
    s->bound[k] = bound;
    if (r->drive >= 0) s->next.drive_effort[r->drive] = bound < 0 ? r->low : bound > 0 ? r->high : torque;
    return has_changed;
}

static bool check(us_sim *s, usi_scheme scheme, const double *a) {
    const us_model *m = s->model;
    bool has_changed = false;
    for (int32_t t = 0; t < m->n_actuated; t++) {
        if (usi_is_touched(s, m->actuated[t].tree)) continue;
        for (int32_t k = s->row_start[t]; k < s->row_start[t + 1]; k++) {
            if (s->row[k].kind != USI_LAW_SPRING) has_changed |= check_row(s, scheme, k, a);
        }
    }
    return has_changed;
}

bool usi_accelerate(us_sim *s, const usi_scheme *scheme, const usi_pass *pass, const double *q,
                    const double *v, const us_command *command, double *out_a) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    const us_wrench *wrench = command ? command->wrench : NULL;
    if (m->n_actuated == 0 || s->row_start[m->n_actuated] == 0) {
        if (pass->is_first) memset(d->tau, 0, (size_t)m->n_pad * sizeof(double));
        usi_joint_terms plain = {command && command->torque ? command->torque : d->tau, NULL, NULL,
                                 scheme->closes_position};
        return pass->is_first ? usi_forward(d, q, v, &plain, wrench, out_a)
                              : usi_forward_again(d, q, v, &plain, wrench, out_a);
    }
    const usi_joint_terms terms = {d->tau, d->diag, d->damp, scheme->closes_position};
    if (pass->is_first) {
        start_terms(s, command);
        prepare(s, *scheme, s->now.v, out_a);
    }
    for (int tries = 0;; tries++) {
        bool is_again = !pass->is_first && tries == 0;
        if (!(is_again ? usi_forward_again : usi_forward)(d, q, v, &terms, wrench, out_a)) return false;
        if (!pass->is_last || !check(s, *scheme, out_a) || tries == MAX_TRIES) return true;
        start_terms(s, command);
        assemble(s, *scheme);
    }
}

bool usi_accelerate_first(us_sim *s, double *out_a) {
    const double h = s->model->step;
    const usi_scheme scheme = {h, h * h, h, false};
    usi_make_joint_rows(s);
    memset(out_a, 0, (size_t)s->model->n_pad * sizeof(double));
    return usi_accelerate(s, &scheme, &(usi_pass){true, true}, s->now.q, s->now.v, NULL, out_a);
}

bool usi_accelerate_explicit(us_sim *s, const double *q, const double *v, const us_command *command,
                             double *out_a) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    const double *q0 = s->now.q;
    start_torques(s, command);
    for (int32_t t = 0; t < m->n_actuated; t++) {
        if (usi_is_touched(s, m->actuated[t].tree)) continue;
        for (int32_t k = s->row_start[t]; k < s->row_start[t + 1]; k++) {
            const usi_joint_row *r = &s->row[k];
            double torque = r->torque - r->kd * v[r->v];
            if (r->kp != 0) torque -= r->kp * (q[r->q] - q0[r->q]);
            torque = usi_row_clamp(r, torque);
            d->tau[r->v] += torque;
            if (r->drive >= 0) s->next.drive_effort[r->drive] = torque;
        }
    }
    usi_joint_terms terms = {d->tau, NULL, NULL, false};
    return usi_forward(d, q, v, &terms, command ? command->wrench : NULL, out_a);
}

// ---------------------------------------------------------------- integrators

// Semi-implicit Euler: v' = v + h a(q, v), q' = q (+) h v'. First order; what the other engines do.
// Loops: a keeps the new positions closed, K a = -1/2 dK/dt v, and the projection then turns v' along the
// loop. With the whole of dK/dt v each step would lengthen v' by (h w)^2 / 2, and a swinging four-bar gain
// some percent of energy per second.
us_status usi_step_euler(us_sim *s, const us_command *command) {
    const us_model *m = s->model;
    const double h = m->step;
    const usi_scheme scheme = {h, h * h, h, true};
    double *a = s->next.a, *v = s->next.v, *displacement = s->displacement;
    for (int32_t i = 0; i < m->n_pad; i++)
        a[i] = s->now.a[i];
    if (!usi_accelerate(s, &scheme, &(usi_pass){true, true}, s->now.q, s->now.v, command, a))
        return usi_diverged(s, "dynamics", NULL);
    if (s->model->n_loop > 0) usi_closures_add(s, 1);
    for (int32_t i = 0; i < m->n_pad; i++) {
        v[i] = s->now.v[i] + h * a[i];
        displacement[i] = h * v[i];
    }
    usi_add(m, s->now.q, displacement, s->next.q);
    usi_step_free_bodies(s, command, false);
    return US_OK;
}

// Midpoint: v' = v + h a(q_m, v_m), q' = q (+) h v_m, with v_m = v + h/2 a and q_m = q (+) h/2 v_m.
//
// Symmetric in time, so that the energy of smooth motion swings within O(h^2) and does not drift, and exact
// for springs. The equation for a is solved by substitution: two evaluations, from the last two steps'
// accelerations carried on in a straight line, leave an error of O(h^4) in a, so that a pendulum at 1 ms
// drifts by less than 1e-9 of its energy in 100 s. After a jump (a new command, a changed state) the first
// guess is off by O(1); that step alone is then of second order like an explicit one.
//
// With loops the first evaluation is made at the step's start, where they are closed, and the second at the
// middle. Near a dead point, where rows become dependent at an angle theta, an error in v comes back from the
// next evaluation h |v| / theta times as large: substitution would throw a four-bar off its branch. Two
// evaluations from a closed state do not; what they give up in symmetry is a drift: 1e-8 of a four-bar's
// energy per second at 1 ms.
us_status usi_step_midpoint(us_sim *s, const us_command *command) {
    const us_model *m = s->model;
    const double h = m->step;
    const usi_scheme scheme = {0.5 * h, 0.25 * h * h, h, false};
    double *a = s->next.a, *v = s->next.v, *mid_v = s->mid_v, *displacement = s->displacement;
    for (int32_t i = 0; i < m->n_pad; i++)
        a[i] = 2 * s->now.a[i] - s->now.a_before[i];
    for (int pass = 0; pass < 2; pass++) {
        double part = pass == 0 && m->n_row > 0 && !s->dyn->ignores_rows ? 0 : 0.5 * h;
        for (int32_t i = 0; i < m->n_pad; i++) {
            mid_v[i] = s->now.v[i] + part * a[i];
            displacement[i] = part * mid_v[i];
        }
        usi_add(m, s->now.q, displacement, s->mid_q);
        if (!usi_accelerate(s, &scheme, &(usi_pass){pass == 0, pass == 1}, s->mid_q, mid_v, command, a))
            return usi_diverged(s, "dynamics", NULL);
    }
    if (s->model->n_loop > 0) usi_closures_add(s, 1);
    for (int32_t i = 0; i < m->n_pad; i++) {
        v[i] = s->now.v[i] + h * a[i];
        displacement[i] = h * (s->now.v[i] + 0.5 * h * a[i]);
    }
    usi_add(m, s->now.q, displacement, s->next.q);
    usi_step_free_bodies(s, command, true);
    usi_step_free_trees(s, command);
    return US_OK;
}

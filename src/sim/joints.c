// Torques at the joints: commands, springs, dampers, and elements with bounds (drives, dry friction, limits).
//
// Everything linear is implicit: a spring k and a damper c that act on a step's later state give the same
// accelerations as explicit ones plus (spring k + theta span c) on the diagonal of the mass matrix, which
// costs nothing and is stable for any k and c. An element with bounds is tried as linear first; where its
// torque comes out beyond a bound it is held there and the step is solved again, until the set of held
// elements stays the same. The guess of the acceleration (that of the last step) picks the set well enough
// that one solution is the rule.
#include "sim/sim.h"

#include <string.h>

enum { MAX_TRIES = 6 };  // an arm that swings into three limits at once needs three

// ---------------------------------------------------------------- drives and dry friction

// The element's torque if it had no bounds, at (q, v), without what the acceleration takes from it.
static double linear_torque(const us_sim *s, const usi_bounded_torque *e, const usi_scheme *scheme,
                            const double *q, const double *v) {
    if (e->drive < 0) {
        double torque = -e->kd * v[e->v];
        return e->kp == 0 ? torque
                          : torque + e->kp * (s->now.stuck[e - s->model->element] - q[e->q] -
                                              scheme->lead * v[e->v]);
    }
    double torque = s->next.drive_torque[e->drive] + e->kd * (s->next.drive_velocity[e->drive] - v[e->v]);
    return e->kp == 0
               ? torque
               : torque + e->kp * (s->next.drive_position[e->drive] - q[e->q] - scheme->lead * v[e->v]);
}

// What an element gives at most, upwards; downwards it is the same.
static double most(const us_sim *s, const usi_bounded_torque *e) {
    return e->drive < 0 ? e->high : usi_drive_bound(e->high, s->next.drive_limit_scale[e->drive]);
}

static int bound_of(double high, double torque) { return torque < -high ? -1 : torque > high ? 1 : 0; }

// What a unit of acceleration takes from a spring and a damper; theta weighs the damper.
static double slope(double kp, double kd, const usi_scheme *scheme, double theta) {
    return kp * scheme->spring + kd * theta * scheme->span;
}

// The weight that a damper has in the last solution, or would have if it joined.
static double theta_of(const us_dyn *d, int32_t v, double joining) {
    return usi_damping_weight(d->pivot[v], d->damp[v] + joining);
}

void usi_set_stiction_anchors(us_sim *s) {
    const us_model *m = s->model;
    for (int32_t k = 0; k < m->n_bounded_torque; k++)
        s->now.stuck[k] = m->element[k].drive < 0 && m->element[k].kp > 0 ? s->now.q[m->element[k].q] : 0;
}

void usi_move_stiction_anchors(us_sim *s) {
    const us_model *m = s->model;
    for (int32_t k = 0; k < m->n_bounded_torque; k++) {
        const usi_bounded_torque *e = &m->element[k];
        s->next.stuck[k] = 0;
        if (e->drive >= 0 || e->kp == 0) continue;
        double q = s->next.q[e->q], way = e->high / e->kp, stretch = s->now.stuck[k] - q;
        s->next.stuck[k] = stretch > way ? q + way : stretch < -way ? q - way : s->now.stuck[k];
    }
}

// ---------------------------------------------------------------- limits

// Which limit may push in this step, the acceleration being a: the nearer one unless it is out of reach,
// which nearly every limit is nearly always. Where it may push, stop_torque decides.
static int stop_near(const usi_joint_limit *p, const usi_scheme *scheme, const double *q, const double *v,
                     const double *a) {
    double end = q[p->q] + scheme->lead * v[p->v] + scheme->spring * a[p->v], up = p->upper - end,
           down = end - p->lower;
    double side = up < down ? 1 : -1, way = up < down ? up : down, now = side * v[p->v],
           gain = side * a[p->v];
    double fastest = gain > 0 ? now + scheme->span * gain : now;
    return way > 0 && p->kp * way > p->kd * fastest ? 0 : (int)side;
}

// The torque of a limit, pushing or not, without what the acceleration takes from it.
static double stop_torque(const usi_joint_limit *p, int side, const usi_scheme *scheme, const double *q,
                          const double *v) {
    return p->kp * ((side > 0 ? p->upper : p->lower) - q[p->q] - scheme->lead * v[p->v]) - p->kd * v[p->v];
}

// ---------------------------------------------------------------- all together

// Each element's torque without acceleration, and the first guess of which bounds and limits act.
static void prepare(us_sim *s, const usi_scheme *scheme, const double *q, const double *v, const double *a) {
    const us_model *m = s->model;
    for (int32_t k = 0; k < m->n_bounded_torque; k++) {
        const usi_bounded_torque *e = &m->element[k];
        s->bound[k] = 0;
        s->torque[k] = 0;
        if (usi_is_touched(s, m->node[e->v].tree)) continue;
        s->torque[k] = linear_torque(s, e, scheme, q, v);
        s->bound[k] = (int8_t)bound_of(most(s, e), s->torque[k] - slope(e->kp, e->kd, scheme, 0.5) * a[e->v]);
    }
    for (int32_t k = 0; k < m->n_joint_limit; k++)
        s->side[k] = usi_is_touched(s, m->node[m->stop[k].v].tree)
                         ? 0
                         : (int8_t)stop_near(&m->stop[k], scheme, q, v, a);
}

// Fills d->tau, d->diag, d->damp.
static void assemble(us_sim *s, const usi_scheme *scheme, const double *q, const double *v,
                     const us_command *command) {
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
    for (int32_t k = 0; k < m->n_bounded_torque; k++) {
        const usi_bounded_torque *e = &m->element[k];
        if (s->bound[k] != 0) {
            d->tau[e->v] += s->bound[k] * most(s, e);
            continue;
        }
        d->tau[e->v] += s->torque[k];
        d->diag[e->v] += scheme->spring * e->kp;
        d->damp[e->v] += scheme->span * e->kd;
    }
    for (int32_t k = 0; k < m->n_joint_limit; k++) {
        const usi_joint_limit *p = &m->stop[k];
        if (s->side[k] == 0) continue;
        d->tau[p->v] += stop_torque(p, s->side[k], scheme, q, v);
        d->diag[p->v] += scheme->spring * p->kp;
        d->damp[p->v] += scheme->span * p->kd;
    }
}

// Compares each torque with its bounds. Returns whether some element or limit changed.
static bool check(us_sim *s, const usi_scheme *scheme, const double *q, const double *v, const double *a) {
    const us_model *m = s->model;
    const us_dyn *d = s->dyn;
    bool changed = false;
    for (int32_t k = 0; k < m->n_bounded_torque; k++) {
        const usi_bounded_torque *e = &m->element[k];
        if (usi_is_touched(s, m->node[e->v].tree)) continue;
        double theta = theta_of(d, e->v, s->bound[k] ? scheme->span * e->kd : 0);
        double torque = s->torque[k] - slope(e->kp, e->kd, scheme, theta) * a[e->v];
        double high = most(s, e);
        int bound = bound_of(high, torque);
        // From one bound to the other the way leads over no bound at all: a joint that sticks would be missed
        // otherwise.
        if (bound == -s->bound[k]) bound = 0;
        changed = changed || bound != s->bound[k];
        s->bound[k] = (int8_t)bound;
        if (e->drive >= 0) s->next.drive_effort[e->drive] = bound ? bound * high : torque;
    }
    for (int32_t k = 0; k < m->n_joint_limit; k++) {
        const usi_joint_limit *p = &m->stop[k];
        if (usi_is_touched(s, m->node[p->v].tree)) continue;
        int side = s->side[k] ? s->side[k] : stop_near(p, scheme, q, v, a);
        if (side == 0) continue;
        double theta = theta_of(d, p->v, s->side[k] ? 0 : scheme->span * p->kd);
        double torque = stop_torque(p, side, scheme, q, v) - slope(p->kp, p->kd, scheme, theta) * a[p->v];
        if (side * torque >= 0) side = 0;  // a limit does not pull
        changed = changed || side != s->side[k];
        s->side[k] = (int8_t)side;
    }
    return changed;
}

bool usi_accelerate(us_sim *s, const usi_scheme *scheme, const usi_pass *pass, const double *q,
                    const double *v, const us_command *command, double *out_a) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    const us_wrench *wrench = command ? command->wrench : NULL;
    const double *q0 = s->now.q, *v0 = s->now.v;
    if (m->n_soft == 0 && m->n_bounded_torque == 0 && m->n_joint_limit == 0) {
        if (pass->is_first) memset(d->tau, 0, (size_t)m->n_pad * sizeof(double));
        usi_joint_terms plain = {command && command->torque ? command->torque : d->tau, NULL, NULL,
                                 scheme->closes_position};
        return pass->is_first ? usi_forward(d, q, v, &plain, wrench, out_a)
                              : usi_forward_again(d, q, v, &plain, wrench, out_a);
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

bool usi_accelerate_explicit(us_sim *s, const double *q, const double *v, const us_command *command,
                             double *out_a) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    static const usi_scheme here = {0, 0, 0, false};
    usi_joint_terms terms = {d->tau, NULL, NULL, false};
    for (int32_t k = 0; k < m->n_bounded_torque; k++) {
        const usi_bounded_torque *e = &m->element[k];
        double torque = s->torque[k] = linear_torque(s, e, &here, q, v);
        double high = most(s, e);
        int bound = bound_of(high, torque);
        s->bound[k] = (int8_t)bound;
        if (usi_is_touched(s, m->node[e->v].tree)) continue;
        if (e->drive >= 0) s->next.drive_effort[e->drive] = bound ? bound * high : torque;
    }
    for (int32_t k = 0; k < m->n_joint_limit; k++) {
        const usi_joint_limit *p = &m->stop[k];
        int side = q[p->q] > p->upper ? 1 : q[p->q] < p->lower ? -1 : 0;
        s->side[k] = (int8_t)(side * stop_torque(p, side, &here, q, v) < 0 ? side : 0);
    }
    assemble(s, &here, q, v, command);
    return usi_forward(d, q, v, &terms, command ? command->wrench : NULL, out_a);
}

// Explicit Runge-Kutta schemes: the classical one of fourth order, and Dormand and Prince's 5(4) with error
// control.
//
// Rotations: within a step a quaternion is q0 exp(theta), and the scheme integrates theta, whose rate is the
// angular velocity corrected by the inverse of the exponential's derivative (Munthe-Kaas). That keeps the
// order, and the quaternion's length. A floating joint's position is integrated as it is, with rate R v.
#include <string.h>

#include "math/rotation.h"
#include "sim/sim.h"

typedef struct tableau {
    int stages;
    double a[USI_STAGES][USI_STAGES - 1];
    double b[USI_STAGES];
    double e[USI_STAGES];  // b less the weights of the embedded scheme
} tableau;

static const tableau RK4 = {4, {{0}, {0.5}, {0, 0.5}, {0, 0, 1}}, {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}, {0}};

static const tableau DOPRI5 = {
    7,
    {{0},
     {1.0 / 5},
     {3.0 / 40, 9.0 / 40},
     {44.0 / 45, -56.0 / 15, 32.0 / 9},
     {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
     {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
     {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0},
    {71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40}};

// q0 moved by the displacement t.
void usi_displace(const us_model *m, const double *q0, const double *t, double *out_q) {
    usi_add(m, q0, t, out_q);
    for (int32_t i = 0; i < m->n_node; i++) {
        const usi_node *n = &m->node[i];
        for (int k = 0; n->kind == USI_NODE_FREE && k < 3; k++)
            out_q[n->q + 4 + k] = q0[n->q + 4 + k] + t[i + 3 + k];
    }
}

// The displacement's rate, at the displacement t, where the position is q and the velocity v.
void usi_displacement_rate(const us_model *m, const double *t, const double *q, const double *v,
                           double *out) {
    memcpy(out, v, (size_t)m->n_pad * sizeof *out);
    for (int32_t i = 0; i < m->n_node; i++) {
        const usi_node *n = &m->node[i];
        if (n->kind != USI_NODE_BALL && n->kind != USI_NODE_FREE) continue;
        us_vec3 theta = us_vec3_make(t[i], t[i + 1], t[i + 2]), w = us_vec3_make(v[i], v[i + 1], v[i + 2]);
        us_vec3 r = usi_rotation_rate(theta, w);
        out[i] = r.x;
        out[i + 1] = r.y;
        out[i + 2] = r.z;
        if (n->kind != USI_NODE_FREE) continue;
        us_vec3 p = us_quat_rotate((us_quat){q[n->q], q[n->q + 1], q[n->q + 2], q[n->q + 3]},
                                   us_vec3_make(v[i + 3], v[i + 4], v[i + 5]));
        out[i + 3] = p.x;
        out[i + 4] = p.y;
        out[i + 5] = p.z;
    }
}

// One step of length h from (q0, v0) to (q1, v1). The stages' rates and accelerations stay in scratch.
static bool runge_kutta(us_sim *s, const tableau *T, double h, const double *q0, const double *v0,
                        const us_command *command, double *q1, double *v1) {
    const us_model *m = s->model;
    const size_t n = (size_t)m->n_pad;
    for (int i = 0; i < T->stages; i++) {
        for (size_t k = 0; k < n; k++) {
            double dt = 0, dv = 0;
            for (int j = 0; j < i; j++) {
                dt += T->a[i][j] * s->rate[(size_t)j * n + k];
                dv += T->a[i][j] * s->accel[(size_t)j * n + k];
            }
            s->displacement[k] = h * dt;
            s->mid_v[k] = v0[k] + h * dv;
        }
        usi_displace(m, q0, s->displacement, s->mid_q);
        double *accel = s->accel + (size_t)i * n;
        memset(accel, 0, n * sizeof *accel);
        if (!usi_accelerate_explicit(s, s->mid_q, s->mid_v, command, accel)) return false;
        usi_closures_add(s, T->b[i] * h / m->step);
        usi_displacement_rate(m, s->displacement, s->mid_q, s->mid_v, s->rate + (size_t)i * n);
    }
    for (size_t k = 0; k < n; k++) {
        double dt = 0, dv = 0;
        for (int j = 0; j < T->stages; j++) {
            dt += T->b[j] * s->rate[(size_t)j * n + k];
            dv += T->b[j] * s->accel[(size_t)j * n + k];
        }
        s->displacement[k] = h * dt;
        v1[k] = v0[k] + h * dv;
    }
    usi_displace(m, q0, s->displacement, q1);
    return true;
}

// Within the last sub-step of Dormand and Prince's scheme: its continuous extension of fourth order (Hairer,
// Norsett, Wanner 1993, section II.6), from the stages that it has left in scratch.
static void sample_dopri(us_sim *s, double share, double length, double *out_q, double *out_v) {
    static const double d[7] = {-12715105075.0 / 11282082432.0,  0,
                                87487479700.0 / 32700410799.0,   -10690763975.0 / 1880347072.0,
                                701980252875.0 / 199316789632.0, -1453857185.0 / 822651844.0,
                                69997945.0 / 29380423.0};
    const size_t n = (size_t)s->model->n_pad;
    const double back = 1 - share;
    for (size_t k = 0; k < n; k++) {
        double y[2] = {0, s->sub_v[k]};
        for (int i = 0; i < 2; i++) {
            const double *rate = (i == 0 ? s->rate : s->accel) + k;
            double change = 0, bend = 0;
            for (size_t j = 0; j < 7; j++) {
                change += DOPRI5.b[j] * rate[j * n];
                bend += d[j] * rate[j * n];
            }
            const double first = rate[0] - change, last = change - rate[6 * n] - first;
            y[i] += length * share * (change + back * (first + share * (last + back * bend)));
        }
        s->displacement[k] = y[0];
        out_v[k] = y[1];
    }
    usi_displace(s->model, s->sub_q, s->displacement, out_q);
}

static const char EXPLICIT_REMEDY[] =
    "make the step smaller, or use integrator=\"midpoint\", which is stable for stiff springs and dampers";

us_status usi_step_rk4(us_sim *s, const us_command *command) {
    const us_model *m = s->model;
    if (!runge_kutta(s, &RK4, m->step, s->now.q, s->now.v, command, s->next.q, s->next.v))
        return usi_diverged(s, "dynamics", EXPLICIT_REMEDY);
    for (int32_t i = 0; i < m->n_pad; i++)
        s->next.a[i] = (s->next.v[i] - s->now.v[i]) / m->step;
    return US_OK;
}

// The largest error of a trial step, in units of the tolerance; infinite when something is not finite.
static double trial_error(const us_sim *s, const tableau *T, double h, const double *v0) {
    const us_model *m = s->model;
    const size_t n = (size_t)m->n_pad;
    double largest = 0;
    for (size_t k = 0; k < (size_t)m->n_node; k++) {
        double et = 0, ev = 0;
        for (int j = 0; j < T->stages; j++) {
            et += T->e[j] * s->rate[(size_t)j * n + k];
            ev += T->e[j] * s->accel[(size_t)j * n + k];
        }
        et = fabs(h * et);
        ev = fabs(h * ev) / (1 + fabs(v0[k]));
        if (!isfinite(et + ev)) return INFINITY;
        largest = fmax(largest, fmax(et, ev));
    }
    return largest / m->tolerance;
}

// A tolerance below what rounding leaves would make sub-steps without end: a tick that has taken this many is
// given up.
enum { MAX_SUBSTEPS = 100000 };

us_status usi_step_adaptive(us_sim *s, const us_command *command) {
    const us_model *m = s->model;
    const size_t bytes_q = (size_t)m->n_q * sizeof(double), bytes_v = (size_t)m->n_pad * sizeof(double);
    double left = m->step, h = s->now.substep[0] > 0 ? s->now.substep[0] : m->step;
    memcpy(s->sub_q, s->now.q, bytes_q);
    memcpy(s->sub_v, s->now.v, bytes_v);
    for (int32_t n = 0; left > 1e-12 * m->step; n++) {
        if (m->n_loop > 0) memcpy(s->closure_before, s->closure, (size_t)m->n_loop * sizeof *s->closure);
        // A last piece that would be tiny is shared between the last two sub-steps.
        double use = h >= left ? left : 2 * h > left ? 0.5 * left : h;
        if (!runge_kutta(s, &DOPRI5, use, s->sub_q, s->sub_v, command, s->trial_q, s->trial_v))
            return usi_diverged(s, "dynamics", EXPLICIT_REMEDY);
        double error = trial_error(s, &DOPRI5, use, s->sub_v);
        // The classical controller for a scheme of fifth order, with its usual safety factor and bounds.
        double factor = error > 0 ? 0.9 * pow(error, -0.2) : 5;
        factor = factor > 5 ? 5 : factor > 0.2 ? factor : 0.2;
        if (error <= 1) {
            us_status status =
                s->events ? usi_events_in_part(s, m->step - left, use, sample_dopri, s->trial_q, s->trial_v)
                          : US_OK;
            if (status) return status;
            left -= use;
            memcpy(s->sub_q, s->trial_q, bytes_q);
            memcpy(s->sub_v, s->trial_v, bytes_v);
            if (m->n_row > 0) {
                usi_project(s->dyn, s->sub_q, s->sub_v, 3);
                usi_closures_add_projection(s);
            }
            // A sub-step that was cut by the tick's end says nothing against the longer one.
            if (use * factor > h || use >= h) h = use * factor;
        } else {
            h = use * factor;
            if (m->n_loop > 0) memcpy(s->closure, s->closure_before, (size_t)m->n_loop * sizeof *s->closure);
        }
        if (h > 1e-10 * m->step && n < MAX_SUBSTEPS) continue;
        memcpy(s->next.v, s->trial_v, bytes_v);  // for the diagnosis: which joint it was
        return usi_diverged(s, "dynamics",
                            "allow a larger tolerance, or use integrator=\"midpoint\", which is stable for "
                            "stiff springs and dampers");
    }
    memcpy(s->next.q, s->sub_q, bytes_q);
    memcpy(s->next.v, s->sub_v, bytes_v);
    s->next.substep[0] = h < m->step ? h : m->step;
    for (int32_t i = 0; i < m->n_pad; i++)
        s->next.a[i] = (s->next.v[i] - s->now.v[i]) / m->step;
    return US_OK;
}

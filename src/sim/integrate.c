// The two implicit one-stage integrators: semi-implicit Euler and midpoint.
#include "sim/sim.h"

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

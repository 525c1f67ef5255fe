// One step: the table of contents. Commands in at the tick boundary, one step, nothing reaches back.
//
// A step reads `now` and writes `next`; they change places when all has gone well.
#include <string.h>
#include <time.h>

#include "sim/half_steps.h"

// ---------------------------------------------------------------- stages that fit here

void usi_make_joint_rows(us_sim *s) {
    const usi_actuation_input in = {.q = s->now.q,
                                    .v = s->now.v,
                                    .drive_position = s->next.drive_position,
                                    .drive_velocity = s->next.drive_velocity,
                                    .drive_torque = s->next.drive_torque,
                                    .drive_limit_scale = s->next.drive_limit_scale,
                                    .drive_strength = s->next.drive_strength,
                                    .battery_energy = s->now.battery_energy,
                                    .battery_on = s->next.battery_on,
                                    .blockage = s->now.blockage,
                                    .stuck = s->now.stuck,
                                    .encoder = s->is_trial ? NULL : s->now.encoder,
                                    .tick = s->now.tick[0]};
    usi_actuation out = usi_actuation_of(s);
    usi_actuate(s->model, &in, &out, s->next.drive_effort);
    s->n_friction_row = out.n_friction;
}

// Free bodies and touched trees alone need no integrator: their own stages say all.
us_status usi_integrate(us_sim *s, const us_command *c) {
    us_status status = s->events ? usi_events_begin(s) : US_OK;
    if (status) return status;
    if (s->model->n_loop > 0) usi_closures_start(s);
    usi_choose_runs(s, c);
    if (s->dyn->n_run == 0 && (s->model->n_row == 0 || s->dyn->ignores_rows)) {
        usi_step_free_bodies(s, c, s->model->integrator != US_INTEGRATOR_EULER);
        return US_OK;
    }
    switch (s->model->integrator) {
    case US_INTEGRATOR_EULER:
        return usi_step_euler(s, c);
    case US_INTEGRATOR_RK4:
        return usi_step_rk4(s, c);
    case US_INTEGRATOR_ADAPTIVE:
        return usi_step_adaptive(s, c);
    default:
        return usi_step_midpoint(s, c);
    }
}

// Puts loops and couplings back where they belong. The contact solve keeps couplings itself: they are linear
// in the positions, so that rows on velocities say all.
us_status usi_constrain(us_sim *s) {
    if (s->model->n_row == 0 || (s->dyn->ignores_rows && s->model->n_loop == 0)) return US_OK;
    double error = usi_project(s->dyn, s->next.q, s->next.v, 3);
    usi_closures_add_projection(s);
    // So of trees that touch: what becomes of one robot must not depend on whether another one, with which it
    // has nothing to do, is in the air.
    if (s->model->n_loop == 0) usi_take_touched(s);
    // A micrometre is a million times what a step at 1 ms leaves: beyond that the loop has come apart.
    return error <= 1e-6 ? US_OK
                         : usi_diverged(s, "constrain",
                                        "make the step smaller, or check that the loop can be closed in "
                                        "every position it gets to");
}

// Of padded arrays: 0 times a number is 0 unless it is infinite or not a number.
static bool all_finite(const double *x, int32_t n_pad) {
    usi_v4 zero = usi_v4_zero();
    for (int32_t i = 0; i < n_pad; i += 4)
        zero += *(const usi_v4 *)(x + i) * 0.0;
    return usi_v4_sum(zero) == 0;
}

// From here on the new tick is the state.
static us_status commit(us_sim *s) {
    const us_model *m = s->model;
    if (!all_finite(s->next.v, m->n_pad) || !all_finite(s->next.q, m->n_q_pad))
        return usi_diverged(s, "commit", NULL);
    if (s->n_friction_row > 0) {
        usi_stiction_move(m, s->next.q, s->now.blockage, s->now.stuck, s->next.stuck);
    } else if (m->n_friction > 0) {
        memset(s->next.stuck, 0, (size_t)m->n_friction * sizeof(double));
    }
    if (m->n_battery > 0)
        usi_batteries_draw(m, s->next.drive_effort, s->next.v, s->next.battery_on, s->now.battery_energy,
                           s->next.battery_energy);
    s->next.tick[0] = s->now.tick[0] + 1;
    s->next.n_applied[0] = 0;
    usi_state previous = s->now;
    s->now = s->next;
    s->next = previous;
    s->back_buffer_is_one_step_old = true;
    s->has_last_step = !s->is_trial;
    s->has_stepped |= !s->is_trial;
    if (!s->is_trial) usi_find_contact_events(s);
    return US_OK;
}

// What a kind got wrong undoes the tick: the state before it is next's.
static us_status sense(us_sim *s) {
    us_status status = usi_sensors_step(s);
    if (!status) return US_OK;
    usi_state failed = s->now;
    s->now = s->next;
    s->next = failed;
    s->back_buffer_is_one_step_old = s->has_last_step = false;
    s->n_event = 0;
    return status;
}

// ---------------------------------------------------------------- time that each takes

typedef struct stopwatch {
    bool is_on;
    double last;  // s
    double seconds[US_STAGE_COUNT];
} stopwatch;

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void lap(stopwatch *w, us_stage stage) {
    if (!w->is_on) return;
    double now = seconds_now();
    w->seconds[stage] = now - w->last;
    w->last = now;
}

static void add_laps(us_sim *s, const stopwatch *w) {
    for (int stage = 0; stage < US_STAGE_COUNT; stage++)
        s->profile.seconds[stage] += w->seconds[stage];
    s->profile.n_step++;
}

// ---------------------------------------------------------------- the step

us_status us_sim_step(us_sim *s, const us_command *command) {
    if (!s) return US_ERR_ARG;
    stopwatch watch = {.is_on = s->enable_profile};
    if (watch.is_on) watch.last = seconds_now();
    if (s->has_sensor_failed) return US_ERR_VALUE;

    // Reads: command, now. Writes: next's commands, faults and plug-in states.
    us_status status = usi_take_command(s, command);
    us_command with_wrenches;
    const us_command *all = usi_take_applied(s, command, &with_wrenches);
    lap(&watch, US_STAGE_COMMAND);

    // Reads: now. Writes: what touches and which trees hang together (scratch), next.contact.parted.
    if (!status && s->half) usi_take_half_steps(s, all);
    if (!status && s->contacts) status = usi_find_contacts(s);
    lap(&watch, US_STAGE_COLLIDE);

    // Reads: now, next's commands. Writes: joint rows (scratch), next.drive_effort: 0.
    if (!status && s->model->n_actuated + s->model->n_drive > 0) usi_make_joint_rows(s);
    lap(&watch, US_STAGE_ACTUATE);

    // Reads: now, command, what touches, joint rows. Writes: next.contact, and of touched trees
    // next.drive_effort, end_q and end_v.
    if (!status && s->contacts) status = usi_solve_contacts(s, all);
    lap(&watch, US_STAGE_CONTACT);

    // Reads: now, command, joint rows, end_q and end_v. Writes: next.q, v, a, substep, drive_effort.
    if (!status) status = usi_integrate(s, all);
    if (!status) usi_take_touched(s);
    if (!status && s->half) usi_refine_touched(s);
    lap(&watch, US_STAGE_DYNAMICS);

    // Reads and writes: next.q, next.v.
    if (!status) status = usi_constrain(s);
    if (!status && s->events) status = usi_events_end(s);
    lap(&watch, US_STAGE_CONSTRAIN);

    // Reads: next. Writes: next.stuck, battery_energy, tick; then next is now; contact events.
    if (!status) status = commit(s);
    lap(&watch, US_STAGE_COMMIT);

    // Reads: now. Writes: its sensors and their readings.
    if (!status && s->model->n_sensor > 0 && !s->is_trial) status = sense(s);
    lap(&watch, US_STAGE_SENSE);

    // Reads: now, what was in soil. Writes: deformable ground.
    if (!status && s->patch && !s->is_trial) usi_deformables_step(s);
    lap(&watch, US_STAGE_MORPH);

    // Reads: the state before the step, which is next's, now, the ground. Writes: frames of lidars.
    if (!status && s->lidars && !s->is_trial) usi_lidars_step(s);
    lap(&watch, US_STAGE_SCAN);

    if (!status && watch.is_on) add_laps(s, &watch);
    if (!status) usi_report_input(s, &(usi_input){.kind = USI_INPUT_STATE});
    return status;
}

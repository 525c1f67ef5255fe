// One step: the table of contents. Commands in at the tick boundary, one step, nothing reaches back.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sim/sim.h"

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Of padded arrays: 0 times a number is 0 unless it is infinite or not a number.
static bool all_finite(const double *x, int32_t n_pad) {
    usi_v4 zero = usi_v4_zero();
    for (int32_t i = 0; i < n_pad; i += 4)
        zero += *(const usi_v4 *)(x + i) * 0.0;
    return usi_v4_sum(zero) == 0;
}

void usi_carry_over(us_sim *s) {
    s->next.substep[0] = s->now.substep[0];
    memcpy(s->next.a_before, s->now.a, (size_t)s->model->n_pad * sizeof(double));
    for (int32_t i = s->model->n_q; i < s->model->n_q_pad; i++)
        s->next.q[i] = 0;
    for (int32_t i = s->model->n_node; i < s->model->n_pad; i++)
        s->next.v[i] = s->next.a[i] = 0;
    int32_t n_pair = s->model->n_material * s->model->n_material;
    if (n_pair > 0)
        memcpy(s->next.contact.pair, s->now.contact.pair, (size_t)n_pair * sizeof *s->now.contact.pair);
    for (int32_t i = 0; i < s->model->n_loose; i++)
        s->next.contact.parted[i] = s->now.contact.parted[i];
    for (int32_t i = 0; i < s->model->n_soil; i++)
        s->next.contact.soil[i] = s->now.contact.soil[i];
    for (int32_t i = 0; i < s->model->n_region; i++)
        s->next.contact.region[i] = s->now.contact.region[i];
    s->next.contact.n_touch[0] = s->next.contact.n_anchor[0] = 0;
    if (s->model->n_sensor > 0) {
        memcpy(s->next.sensor, s->now.sensor, (size_t)s->model->n_sensor * sizeof *s->now.sensor);
        memcpy(s->next.reading, s->now.reading, (size_t)s->model->n_reading * sizeof *s->now.reading);
    }
    usi_carry_plugins(s);
    // The drive arrays stand one behind the other.
    if (s->model->n_drive > 0)
        memcpy(s->next.drive_position, s->now.drive_position,
               (size_t)((char *)(s->now.drive_effort + s->model->n_drive) - (char *)s->now.drive_position));
}

static us_status refuse(us_sim *s, const char *what, int32_t index) {
    return us_error_set(&s->error, US_ERR_VALUE, NULL, "send finite numbers",
                        "tick %lld: command %s[%d] is not finite; the command is refused",
                        (long long)s->now.tick[0], what, index);
}

// Reads: command, now. Writes: next.drive_*. Values that are not finite are refused whole.
static us_status take_command(us_sim *s, const us_command *c) {
    const us_model *m = s->model;
    const size_t bytes = (size_t)m->n_drive * sizeof(double);
    usi_carry_over(s);
    if (!c) return US_OK;
    const double *const vectors[] = {c->torque,       c->drive_position,    c->drive_velocity,
                                     c->drive_torque, c->drive_limit_scale, (const double *)c->wrench};
    const int32_t sizes[] = {m->n_node, m->n_drive, m->n_drive, m->n_drive, m->n_drive, 6 * m->n_body};
    static const char *const names[] = {"torque",       "drive_position",    "drive_velocity",
                                        "drive_torque", "drive_limit_scale", "wrench"};
    for (int k = 0; k < 6; k++) {
        for (int32_t i = 0; vectors[k] && i < sizes[k]; i++) {
            if (!isfinite(vectors[k][i])) return refuse(s, names[k], k == 5 ? i / 6 : i);
        }
    }
    if (c->drive_position) memcpy(s->next.drive_position, c->drive_position, bytes);
    if (c->drive_velocity) memcpy(s->next.drive_velocity, c->drive_velocity, bytes);
    if (c->drive_torque) memcpy(s->next.drive_torque, c->drive_torque, bytes);
    if (c->drive_limit_scale) memcpy(s->next.drive_limit_scale, c->drive_limit_scale, bytes);
    return US_OK;
}

// Reads: now. Writes: the contacts' scratch: what touches, and which trees hang together;
// next.contact.parted. Waits for ground that is paged in.
static us_status collide(us_sim *s) {
    if (!s->contacts) return US_OK;
    us_status status = usi_deformables_check(s);
    if (status) return status;
    status = usi_collide(s->contacts, &s->now.contact, s->now.q, s->now.v);
    if (status && s->contacts->is_residency_error) {
        const us_error *why = &s->contacts->residency_error;
        us_place place = {why->file[0] ? why->file : NULL, 0, 0, NULL};
        return us_error_set(&s->error, status, &place, why->remedy, "tick %lld, stage collide: %.400s",
                            (long long)s->now.tick[0], why->message);
    }
    if (status == US_ERR_LIMIT) {
        const usi_contacts *c = s->contacts;
        return us_error_set(&s->error, status, NULL, "give the world a larger max-contact",
                            "tick %lld, stage collide: %d %s, and room for %d", (long long)s->now.tick[0],
                            c->error_count,
                            c->is_pair_error ? "pairs of shapes are near each other" : "contact points",
                            c->is_pair_error ? c->max_pair : c->max_contact);
    }
    if (status) return usi_diverged(s, "collide", NULL);
    for (int32_t i = 0; i < s->model->n_loose; i++)
        s->next.contact.parted[i] |= !s->contacts->overlap[i];
    usi_find_islands(s->contacts);
    return US_OK;
}

// Reads: now, command, what touches. Writes: next.contact, next.drive_effort, end_q and end_v of touched
// trees.
static us_status solve_contact(us_sim *s, const us_command *c) {
    if (!s->contacts) return US_OK;
    const usi_actuation actuation = usi_actuation_of(s);
    const usi_contact_input push = {.q = s->now.q,
                                    .v = s->now.v,
                                    .a = s->now.a,
                                    .torque = c ? c->torque : NULL,
                                    .wrench = c ? c->wrench : NULL,
                                    .actuation = &actuation,
                                    .drive_effort = s->next.drive_effort,
                                    .out_q = s->end_q,
                                    .out_v = s->end_v};
    if (usi_solve_islands(s->contacts, &s->now.contact, &s->next.contact, &push)) return US_OK;
    for (int32_t i = 0; i < s->contacts->n_island; i++) {
        int32_t model = s->contacts->island[i].refused - 1;
        if (model < 0) continue;
        return us_error_set(&s->error, US_ERR_VALUE, NULL,
                            "check the model's parameters in its <pair>, and what it answers",
                            "tick %lld, stage contact: the interaction model \"%s\" gave no usable law",
                            (long long)s->now.tick[0], s->model->interaction[model].name);
    }
    return usi_diverged(s, "contact", NULL);
}

// Whether some loop or coupling is left to the integrator: those of touched trees are rows of the contact
// solve. Trees that one holds together are touched together.
static bool has_rows(const us_sim *s) {
    const us_model *m = s->model;
    if (!s->contacts) return m->n_row > 0;
    for (int32_t i = 0; i < m->n_coupling; i++) {
        if (!usi_is_touched(s, m->node[m->coupling[i].v[0]].tree)) return true;
    }
    for (int32_t i = 0; i < m->n_loop; i++) {
        int32_t node = m->loop[i].node_a >= 0 ? m->loop[i].node_a : m->loop[i].node_b;
        if (!usi_is_touched(s, m->node[node].tree)) return true;
    }
    return false;
}

// The trees that the integrator moves: those that nothing touches. Free bodies are moved by their momentum,
// unless something pushes their root.
static void choose_runs(us_sim *s, const us_command *c) {
    const us_model *m = s->model;
    us_dyn *d = s->dyn;
    d->ignores_rows = m->n_row > 0 && !has_rows(s);
    bool no_rows = m->n_row == 0 || d->ignores_rows;
    bool by_momentum =
        no_rows && (m->integrator == US_INTEGRATOR_MIDPOINT || m->integrator == US_INTEGRATOR_EULER);
    d->n_run = 0;
    for (int32_t t = 0; t < m->n_tree; t++) {
        const usi_tree *tree = &m->tree[t];
        if (usi_is_touched(s, t) || (by_momentum && tree->is_free_body && !usi_pushes_root(tree, c)))
            continue;
        if (d->n_run > 0 && d->run[d->n_run - 1].end == tree->first)
            d->run[d->n_run - 1].end = tree->end;
        else
            d->run[d->n_run++] = (usi_span){tree->first, tree->end};
    }
}

// Touched trees end where the contact solve has put them, ghosts that are still where they were. Those that
// stand side by side go together.
static void take_touched(us_sim *s) {
    const us_model *m = s->model;
    const double inverse = 1 / m->step;
    for (int32_t t = 0, end; (s->contacts || s->ghost) && t < m->n_tree; t = end) {
        end = t + 1;
        if (!usi_is_touched(s, t)) continue;
        const bool is_still = usi_is_still(s, t);
        while (end < m->n_tree && usi_is_touched(s, end) && usi_is_still(s, end) == is_still)
            end++;
        const double *end_q = is_still ? s->now.q : s->end_q, *end_v = is_still ? s->now.v : s->end_v;
        const int32_t last = m->tree[end - 1].end;
        for (int32_t i = m->tree[t].first; i < last; i++) {
            s->next.v[i] = end_v[i];
            s->next.a[i] = (end_v[i] - s->now.v[i]) * inverse;
        }
        int32_t from = m->node[m->tree[t].first].q, to = last < m->n_node ? m->node[last].q : m->n_q;
        memcpy(s->next.q + from, end_q + from, (size_t)(to - from) * sizeof(double));
    }
}

// Reads: now, command, next.drive_*. Writes: next.q, v, a, substep, drive_effort.
static us_status integrate(us_sim *s, const us_command *c) {
    choose_runs(s, c);
    // Nothing but free bodies and touched trees: their own ways say all.
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

// Reads and writes: next.q, next.v. Puts loops and couplings back where they belong.
static us_status constrain(us_sim *s) {
    // The contact solve keeps couplings itself: they are linear in the positions, so that rows on velocities
    // say all.
    if (s->model->n_row == 0 || (s->dyn->ignores_rows && s->model->n_loop == 0)) return US_OK;
    double error = usi_project(s->dyn, s->next.q, s->next.v, 3);
    // So of trees that touch: what becomes of one robot must not depend on whether another one, with which it
    // has nothing to do, is in the air.
    if (s->model->n_loop == 0) take_touched(s);
    // A micrometre is a million times what a step at 1 ms leaves: beyond that the loop has come apart.
    return error <= 1e-6 ? US_OK
                         : usi_diverged(s, "constrain",
                                        "make the step smaller, or check that the loop can be closed in "
                                        "every position it gets to");
}

// Reads: now, the state that the step has reached. Writes: its sensors and their readings.
static void sense(us_sim *s) {
    const usi_sense_input in = {s->now.q, s->now.v, s->now.tick[0], s->model->step};
    usi_sense(s->model, &in, s->now.sensor, s->now.reading);
}

// Reads: next. Writes: now. From here on the new tick is the state.
static us_status commit(us_sim *s) {
    const us_model *m = s->model;
    if (!all_finite(s->next.v, m->n_pad) || !all_finite(s->next.q, m->n_q_pad))
        return usi_diverged(s, "commit", NULL);
    usi_stiction_move(m, s->next.q, s->now.stuck, s->next.stuck);
    s->next.tick[0] = s->now.tick[0] + 1;
    usi_state previous = s->now;
    s->now = s->next;
    s->next = previous;
    if (s->bed && !s->is_trial) usi_deformables_step(s);
    s->back_buffer_is_one_step_old = true;
    if (!s->is_trial) sense(s);
    return US_OK;
}

// A joint whose inertia is not positive, or else the first velocity that is not finite, or else the one that
// changed most.
static int32_t find_culprit(const us_sim *s) {
    const us_model *m = s->model;
    const us_dyn *d = s->dyn;
    int32_t most = 0;
    for (int32_t r = 0; r < d->n_run; r++) {
        for (int32_t i = d->run[r].first; i < d->run[r].end; i++) {
            if (!(d->pivot[i] > 0)) return i;
        }
    }
    for (int32_t i = 0; i < m->n_node; i++) {
        if (!isfinite(s->next.v[i])) return i;
        if (fabs(s->next.v[i] - s->now.v[i]) > fabs(s->next.v[most] - s->now.v[most])) most = i;
    }
    return most;
}

us_status usi_diverged(us_sim *s, const char *stage, const char *remedy) {
    char name[100] = "", element[128] = "";
    us_model_velocity_name(s->model, find_culprit(s), name, sizeof name);
    if (name[0]) snprintf(element, sizeof element, "joint \"%s\"", name);
    us_place place = {NULL, 0, 0, element};
    return us_error_set(
        &s->error, US_ERR_DIVERGED, &place,
        remedy ? remedy
               : "make the step smaller, or look for forces and speeds beyond what the robot can have",
        "tick %lld, stage %s: the motion diverged", (long long)s->now.tick[0], stage);
}

us_status us_sim_step(us_sim *s, const us_command *command) {
    if (!s) return US_ERR_ARG;
    double t[US_STAGE_COUNT + 1] = {0};
    us_status status = US_OK;
    for (int stage = 0; stage < US_STAGE_COUNT && !status; stage++) {
        if (s->enable_profile) t[stage] = seconds_now();
        switch ((us_stage)stage) {
        case US_STAGE_COMMAND:
            status = take_command(s, command);
            if (!status) status = usi_run_plugins(s);
            break;
        case US_STAGE_COLLIDE:
            status = collide(s);
            break;
        case US_STAGE_ACTUATE:
            usi_make_joint_rows(s);
            break;
        case US_STAGE_CONTACT:
            status = solve_contact(s, command);
            break;
        case US_STAGE_DYNAMICS:
            status = integrate(s, command);
            take_touched(s);
            break;
        case US_STAGE_CONSTRAIN:
            status = constrain(s);
            break;
        default:
            status = commit(s);
            break;
        }
    }
    if (!s->enable_profile || status) return status;
    t[US_STAGE_COUNT] = seconds_now();
    for (int stage = 0; stage < US_STAGE_COUNT; stage++)
        s->profile.seconds[stage] += t[stage + 1] - t[stage];
    s->profile.n_step++;
    return US_OK;
}

// States that come from files, before they are believed.
//
// A checksum shows that a file is whole, not that it is honest. What the step takes for granted is checked
// here: indices within their lists, counts within their room, numbers finite and within their range. Plug-ins
// check their own part.
#include "base/sound.h"
#include "sim/sim.h"
#include "spec/publication.h"
#include "spec/sensor_kind.h"

static bool are_between(const double *x, int32_t n, double low, double high) {
    for (int32_t i = 0; i < n; i++) {
        if (!(x[i] >= low && x[i] <= high)) return false;
    }
    return true;
}

// ---------------------------------------------------------------- motion

static bool has_rotations(const us_model *m, const double *q) {
    for (int32_t tree = 0; tree < m->n_tree; tree++) {
        if (!usi_has_rotations(m, tree, q + usi_first_q(m, tree))) return false;
    }
    return true;
}

static bool is_tick(const us_model *m, int64_t tick) {
    return tick >= 0 && tick <= USI_MAX_TICK && (double)tick * m->step <= USI_MAX_TIME;
}

static bool is_motion_sound(const us_model *m, const usi_state *t) {
    return is_tick(m, t->tick[0]) && usi_are_numbers(t->q, (size_t)m->n_q_pad) &&
           usi_are_numbers(t->v, (size_t)m->n_pad) && usi_are_numbers(t->a, (size_t)m->n_pad) &&
           usi_are_numbers(t->a_before, (size_t)m->n_pad) && are_between(t->substep, 1, 0, m->step) &&
           has_rotations(m, t->q);
}

// ---------------------------------------------------------------- drives, batteries, sensors

static bool are_drives_sound(const us_model *m, const usi_state *t) {
    const int32_t n = m->n_drive;
    bool is_sound =
        usi_are_numbers(t->drive_position, (size_t)n) && usi_are_numbers(t->drive_velocity, (size_t)n) &&
        usi_are_numbers(t->drive_torque, (size_t)n) && usi_are_numbers(t->drive_effort, (size_t)n) &&
        are_between(t->drive_limit_scale, n, 0, USI_MAX_NUMBER) && are_between(t->drive_strength, n, 0, 1) &&
        are_between(t->blockage, m->n_friction, 0, USI_MAX_NUMBER) &&
        usi_are_numbers(t->stuck, (size_t)m->n_friction) && are_between(t->battery_on, m->n_battery, 0, 1);
    for (int32_t i = 0; i < m->n_battery && is_sound; i++)
        is_sound = t->battery_energy[i] >= 0 && t->battery_energy[i] <= m->battery[i].capacity;
    return is_sound;
}

static bool are_encoders_sound(const us_model *m, const usi_state *t) {
    for (int32_t i = 0; i < m->n_encoder; i++) {
        const usi_encoder_state *k = &t->encoder[i];
        const double numbers[] = {k->held, k->offset, k->drift};
        if (!usi_are_numbers(numbers, 3) || k->is_stuck < 0 || k->is_stuck > 1 || !is_tick(m, k->since))
            return false;
    }
    return true;
}

static bool is_tick_or_none(const us_model *m, int64_t tick) { return tick == -1 || is_tick(m, tick); }

// A number that goes on counting.
static bool is_count(int64_t n) { return n >= 0 && n <= USI_MAX_TICK; }

// What can be set while it runs, or was made so.
static bool has_sensor_times(const usi_sensor *k, const usi_sensor_state *t) {
    const bool is_rate = t->rate == k->rate || are_between(&t->rate, 1, 0, USI_SENSOR_MAX_RATE);
    return is_rate && are_between(&t->latency, 1, 0, USI_SENSOR_MAX_LATENCY) &&
           are_between(&t->delay, 1, 0, USI_SENSOR_MAX_DELAY);
}

static bool is_sensor_sound(const us_model *m, const usi_sensor *k, const usi_sensor_state *t,
                            const double *part) {
    const double *value = part + usi_sensor_part_at(k, USI_SENSOR_PARAMETER);
    if (!usi_are_numbers(t->offset, 4) || !usi_are_numbers(t->before, 3) || t->is_stuck < 0 ||
        t->is_stuck > 1 || t->is_dead < 0 || t->is_dead > 1 || !are_between(&t->drop, 1, 0, 1) ||
        !are_between(&t->scale, 1, -1, USI_MAX_NUMBER) || !has_sensor_times(k, t) || t->due < 0 ||
        !is_count(t->n_sample) || !is_count(t->n_lost))
        return false;
    // Lidars have a stage of their own: no sample is taken of them here.
    if (k->kind->is_frame && (t->wake != INT64_MAX || t->n_pending != 0)) return false;
    if (!is_tick_or_none(m, t->tick) || !is_tick_or_none(m, t->tick_before) ||
        !is_tick_or_none(m, t->sampled) || !is_tick_or_none(m, t->delivered) || !is_tick_or_none(m, t->moved))
        return false;
    if (t->n_pending < 0 || t->n_pending > k->max_pending || t->first < 0 ||
        (t->first > 0 && t->first >= k->max_pending))
        return false;
    for (int32_t i = 0; i < k->kind->n_parameter; i++) {
        const us_sensor_parameter *p = &k->kind->parameters[i];
        const bool is_as_made = value[i] == k->parameter[i];
        if (!is_as_made && (p->is_fixed || usi_is_reference(p) || usi_check_parameter(p, value[i], NULL)))
            return false;
    }
    return !k->kind->check || k->kind->check(value, part + usi_sensor_part_at(k, USI_SENSOR_MEMORY));
}

static bool are_sensors_sound(const us_model *m, const usi_state *t) {
    for (int32_t i = 0; i < m->n_sensor; i++) {
        if (!is_sensor_sound(m, &m->sensor[i], &t->sensor[i], t->sensor_part)) return false;
    }
    return usi_are_numbers(t->reading, (size_t)m->n_reading) &&
           usi_are_numbers(t->sensor_part, (size_t)m->n_sensor_part);
}

static bool are_wrenches_sound(const us_model *m, const usi_state *t) {
    if (t->n_applied[0] < 0 || t->n_applied[0] > m->n_body) return false;
    for (int32_t i = 0; i < t->n_applied[0]; i++) {
        const usi_applied *a = &t->applied[i];
        const double numbers[] = {a->wrench.n.x, a->wrench.n.y, a->wrench.n.z,
                                  a->wrench.f.x, a->wrench.f.y, a->wrench.f.z};
        if (a->body < 0 || a->body >= m->n_body || !usi_are_numbers(numbers, 6)) return false;
    }
    return true;
}

static bool are_holds_sound(const us_model *m, const usi_state *t) {
    for (int32_t i = 0; i < m->n_hold; i++) {
        if (t->held[i] > 1) return false;
    }
    return true;
}

// ---------------------------------------------------------------- contact

static bool is_touch_sound(const us_model *m, const usi_contact_state *c, const usi_touch *t) {
    const double X[] = {t->X_AB.q.w, t->X_AB.q.x, t->X_AB.q.y, t->X_AB.q.z,
                        t->X_AB.p.x, t->X_AB.p.y, t->X_AB.p.z};
    return t->geom_a >= 0 && t->geom_a < m->n_geom && t->geom_b >= 0 && t->geom_b < m->n_geom &&
           t->first >= 0 && t->n >= 0 && t->n <= c->n_anchor[0] - t->first && t->material >= 0 &&
           t->material < m->n_material && t->overlap >= 0 && t->overlap <= 1e30f && usi_are_numbers(X, 7);
}

static bool is_anchor_sound(const usi_anchor *a) {
    const us_vec3 vectors[] = {a->p_A, a->p_B, a->normal, a->xi, a->hold, a->angle, a->g};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const double x[] = {vectors[i].x, vectors[i].y, vectors[i].z};
        if (!usi_are_numbers(x, 3)) return false;
    }
    const double springs[] = {a->stiffness, a->damping};
    return are_between(springs, 2, 0, 1e300) && usi_are_numbers(a->memory, US_TOUCH_MEMORY);
}

static bool is_contact_sound(const us_sim *s, const usi_contact_state *c) {
    const us_model *m = s->model;
    const int32_t max_contact = m->n_geom > 0 ? s->max_contact : 0;
    if (c->n_touch[0] < 0 || c->n_touch[0] > max_contact || c->n_anchor[0] < 0 ||
        c->n_anchor[0] > max_contact)
        return false;
    for (int32_t i = 0; i < c->n_touch[0]; i++) {
        if (!is_touch_sound(m, c, &c->touch[i])) return false;
    }
    for (int32_t i = 0; i < c->n_anchor[0]; i++) {
        if (!is_anchor_sound(&c->anchor[i])) return false;
    }
    for (int32_t i = 0; i < m->n_material * m->n_material; i++) {
        const int32_t model = c->pair_model[i];
        if (!usi_pair_is_sound(&c->pair[i]) || model >= m->n_interaction ||
            model < USI_MODEL_SOIL - m->n_soil_law ||
            !usi_pair_model_fits(m, i / m->n_material, i % m->n_material, model))
            return false;
    }
    if (m->n_law_state > 0 && !usi_are_numbers(c->law_state, (size_t)c->n_anchor[0] * (size_t)m->n_law_state))
        return false;
    for (int32_t i = 0; i < m->n_loose; i++) {
        if (c->parted[i] < 0 || c->parted[i] > 1) return false;
    }
    for (int32_t i = 0; i < m->n_soil; i++) {
        if (m->material[i].is_soil &&
            (us_soil_check(&c->soil[i], NULL) || usi_soil_map_check(m, i, &c->soil[i], NULL)))
            return false;
    }
    for (int32_t i = 0; i < m->n_region; i++) {
        if (c->region[i] < 0 || c->region[i] >= m->n_material) return false;
    }
    return true;
}

// ---------------------------------------------------------------- all

bool usi_state_is_sound(const us_sim *s, const usi_state *t) {
    const us_model *m = s->model;
    return is_motion_sound(m, t) && are_drives_sound(m, t) && are_wrenches_sound(m, t) &&
           are_holds_sound(m, t) && are_encoders_sound(m, t) && are_sensors_sound(m, t) &&
           is_contact_sound(s, &t->contact) && usi_plugins_are_sound(s, t->plugin);
}

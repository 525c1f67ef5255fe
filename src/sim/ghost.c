// Ghosts: trees of a world that another process moves (split/split.c).
//
// Their numbers come from their owner from time to time; in between one that is still stays where it is and
// costs the step next to nothing, and one that is awake goes on by itself. Which is which is no part of the
// state: whoever steps says it before each stretch of time, from what all processes know.
#include <math.h>
#include <string.h>

#include "sim/sim.h"

int32_t usi_first_q(const us_model *m, int32_t tree) { return m->node[m->tree[tree].first].q; }
static int32_t end_q(const us_model *m, int32_t tree) {
    return m->tree[tree].end < m->n_node ? m->node[m->tree[tree].end].q : m->n_q;
}
static bool is_of(const us_model *m, int32_t drive, int32_t tree) {
    return m->drive[drive].v >= 0 && m->node[m->drive[drive].v].tree == tree;
}

us_status usi_sim_allow_ghosts(us_sim *s) {
    us_status status = usi_sim_make_marks(s);
    if (status) return status;
    s->has_ghosts = true;
    if (s->contacts) {
        s->contacts->ghost = s->ghost;
        s->contacts->pushed = s->pushed;
    }
    return US_OK;
}

us_status usi_sim_make_marks(us_sim *s) {
    if (s->ghost) return US_OK;
    size_t bytes = (size_t)s->model->n_tree + 1;
    s->ghost = usi_alloc(&s->allocator, 2 * bytes, 1);
    if (!s->ghost) return US_ERR_MEMORY;
    memset(s->ghost, USI_OWN, 2 * bytes);
    s->pushed = (bool *)(s->ghost + bytes);
    return US_OK;
}

void usi_sim_mark_ghost(us_sim *s, int32_t tree, usi_ghost ghost) {
    usi_ghost before = (usi_ghost)s->ghost[tree];
    if (before == ghost) return;
    s->ghost[tree] = (uint8_t)ghost;
    // The pairs that may touch are others now.
    if (s->contacts) s->contacts->collide.is_fat_valid = false;
    if (before == USI_GHOST_STILL) usi_sim_restart(s, tree);
}

// Commands, fault and battery of a drive.
enum { DRIVE_NUMBERS = 7 };

static void get_drive(const us_sim *s, int32_t i, double *out) {
    const int32_t battery = s->model->drive[i].battery;
    out[0] = s->now.drive_position[i];
    out[1] = s->now.drive_velocity[i];
    out[2] = s->now.drive_torque[i];
    out[3] = s->now.drive_limit_scale[i];
    out[4] = s->now.drive_strength[i];
    out[5] = battery >= 0 ? s->now.battery_energy[battery] : 0;
    out[6] = battery >= 0 ? s->now.battery_on[battery] : 0;
}

static void put_drive(us_sim *s, int32_t i, const double *from) {
    const int32_t battery = s->model->drive[i].battery;
    s->now.drive_position[i] = from[0];
    s->now.drive_velocity[i] = from[1];
    s->now.drive_torque[i] = from[2];
    s->now.drive_limit_scale[i] = from[3];
    s->now.drive_strength[i] = from[4];
    if (battery < 0) return;
    s->now.battery_energy[battery] = from[5];
    s->now.battery_on[battery] = from[6];
}

// What a fault adds to dry friction, and where that holds the joint.
enum { FRICTION_NUMBERS = 2 };

static bool has_friction(const us_model *m, int32_t i, int32_t tree) {
    return m->node[m->joint_law[m->friction[i]].v].tree == tree;
}

usi_tree_size usi_sim_tree_size(const us_sim *s, int32_t tree) {
    const us_model *m = s->model;
    usi_tree_size n = {end_q(m, tree) - usi_first_q(m, tree), m->tree[tree].end - m->tree[tree].first, 0};
    for (int32_t i = 0; i < m->n_drive; i++)
        n.n_actuation += is_of(m, i, tree) ? DRIVE_NUMBERS : 0;
    for (int32_t i = 0; i < m->n_friction; i++)
        n.n_actuation += has_friction(m, i, tree) ? FRICTION_NUMBERS : 0;
    return n;
}

void usi_sim_get_tree(const us_sim *s, int32_t tree, double *out_q, double *out_v, double *out_actuation) {
    const us_model *m = s->model;
    usi_tree_size n = usi_sim_tree_size(s, tree);
    memcpy(out_q, s->now.q + usi_first_q(m, tree), (size_t)n.n_q * sizeof(double));
    memcpy(out_v, s->now.v + m->tree[tree].first, (size_t)n.n_v * sizeof(double));
    for (int32_t i = 0; i < m->n_drive; i++) {
        if (!is_of(m, i, tree)) continue;
        get_drive(s, i, out_actuation);
        out_actuation += DRIVE_NUMBERS;
    }
    for (int32_t i = 0; i < m->n_friction; i++) {
        if (!has_friction(m, i, tree)) continue;
        *out_actuation++ = s->now.blockage[i];
        *out_actuation++ = s->now.stuck[i];
    }
}

static bool all_finite(const double *x, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) return false;
    }
    return true;
}

// The owner's bits are taken as they are: a quaternion that was normalised once more would no longer be its
// own.
bool usi_has_rotations(const us_model *m, int32_t tree, const double *q) {
    for (int32_t i = m->tree[tree].first; i < m->tree[tree].end; i++) {
        const usi_node *n = &m->node[i];
        if (n->kind != USI_NODE_BALL && n->kind != USI_NODE_FREE) continue;
        const double *r = q + n->q - usi_first_q(m, tree);
        if (!(fabs(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3] - 1) < 1e-6)) return false;
    }
    return true;
}

// Strengths from 0 to 1, energies and blockages not negative.
static bool is_actuation_valid(const us_model *m, int32_t tree, const double *x, int32_t n) {
    if (!all_finite(x, n)) return false;
    for (int32_t i = 0; i < m->n_drive; i++) {
        if (!is_of(m, i, tree)) continue;
        if (x[4] < 0 || x[4] > 1 || x[5] < 0) return false;
        x += DRIVE_NUMBERS;
    }
    for (int32_t i = 0; i < m->n_friction; i++) {
        if (!has_friction(m, i, tree)) continue;
        if (x[0] < 0) return false;
        x += FRICTION_NUMBERS;
    }
    return true;
}

bool usi_sim_put_tree(us_sim *s, int32_t tree, const double *q, const double *v, const double *actuation) {
    const us_model *m = s->model;
    usi_tree_size n = usi_sim_tree_size(s, tree);
    if (!all_finite(q, n.n_q) || !all_finite(v, n.n_v) || !usi_has_rotations(m, tree, q) ||
        !is_actuation_valid(m, tree, actuation, n.n_actuation))
        return false;
    memcpy(s->now.q + usi_first_q(m, tree), q, (size_t)n.n_q * sizeof(double));
    memcpy(s->now.v + m->tree[tree].first, v, (size_t)n.n_v * sizeof(double));
    for (int32_t i = 0; i < m->n_drive; i++) {
        if (!is_of(m, i, tree)) continue;
        put_drive(s, i, actuation);
        actuation += DRIVE_NUMBERS;
    }
    for (int32_t i = 0; i < m->n_friction; i++) {
        if (!has_friction(m, i, tree)) continue;
        s->now.blockage[i] = *actuation++;
        s->now.stuck[i] = *actuation++;
    }
    usi_sim_sense_tree(s, tree);
    return true;
}

void usi_sim_set_tick(us_sim *s, int64_t tick) { s->now.tick[0] = tick; }

// What may act on the joints: springs and dampers, drives, dry friction, limits, sorted by velocity and so by
// tree.
#include <stdlib.h>
#include <string.h>

#include "model/compile.h"

// Joint limits are stiff springs with critical damping: 1e5 N m/rad (N/m) holds an arm of 1000 N m within
// 0.01 rad and is stable at any step because it is implicit. What is heavy gets 1e5 1/s^2 times its inertia,
// so that its own weight is held within 0.1 mm.
static const double LIMIT_STIFFNESS = 1e5;
// A joint held by dry friction gives way by up to this, rad or m, like a spring, before it slides; then it
// stays where it is.
static const double STICTION_REACH = 1e-7;
// Where there is no position to hold (ball joints, explicit integrators) friction is a damper that gives way
// at this speed, rad/s or m/s: it creeps.
static const double STICTION_SPEED = 1e-4;

bool usi_build_has_limit(const us_joint_def *j) {
    return j->has_limits && us_joint_type_n_v(j->type) == 1 && j->type != US_JOINT_CONTINUOUS &&
           (isfinite(j->lower) || isfinite(j->upper));
}

bool usi_build_is_idle(const us_spec *s, const us_drive_def *d) {
    return d->joint >= 0 && d->joint < s->n_joint && s->joint[d->joint].is_broken;
}

// Which joints are driven: any of these can be blocked.
static us_status find_driven(usi_build *b) {
    const us_spec *s = b->spec;
    b->is_driven = usi_arena_alloc(&b->arena, (size_t)s->n_joint + 1, _Alignof(bool));
    if (!b->is_driven) return usi_build_out_of_memory(b);
    memset(b->is_driven, 0, (size_t)s->n_joint + 1);
    for (int32_t i = 0; i < s->n_drive; i++) {
        int32_t joint = s->drive[i].joint;
        if (joint >= 0 && joint < s->n_joint && !usi_build_is_idle(s, &s->drive[i]))
            b->is_driven[joint] = true;
    }
    return US_OK;
}

// Whether dry friction may act on a joint: its own, or that of a blockage.
static bool can_stick(const usi_build *b, int32_t joint) {
    const us_joint_def *j = &b->joint_def[joint];
    return j->friction + j->blockage > 0 || b->is_driven[joint];
}

// How many laws there are: as many as put_laws puts.
us_status usi_build_count_laws(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    us_status status = find_driven(b);
    if (status) return status;
    int32_t n_limit = 0;
    m->n_soft = m->n_joint_law = m->n_friction = 0;
    for (int32_t i = 0; i < s->n_drive; i++)
        m->n_joint_law += !usi_build_is_idle(s, &s->drive[i]);
    for (int32_t k = 0; k < s->n_joint; k++) {
        const us_joint_def *j = &b->joint_def[k];
        int32_t n = us_joint_type_n_v(j->type);
        if (j->damping > 0 || j->stiffness > 0) m->n_soft += n;
        if (can_stick(b, k)) m->n_friction += n;
        n_limit += usi_build_has_limit(j);
    }
    m->n_joint_law += m->n_soft + m->n_friction + n_limit;
    m->max_joint_row = m->n_joint_law + n_limit;
    m->n_actuated = m->n_tree < m->n_joint_law ? m->n_tree : m->n_joint_law;
    return US_OK;
}

// The laws of all trees are put twice: to be counted, and to their places.
typedef struct placing {
    us_model *m;
    int32_t *place;  // per tree and kind: how many there are, then where the next one goes
    bool is_counted;
} placing;

static void put(placing *p, usi_joint_law_kind kind, const usi_joint_law *law) {
    int32_t *place = &p->place[p->m->node[law->v].tree * USI_LAW_KINDS + (int32_t)kind];
    if (p->is_counted) p->m->joint_law[*place] = *law;
    ++*place;
}

static void put_springs(placing *p) {
    const us_model *m = p->m;
    for (int32_t v = 0; v < m->n_node; v++) {
        usi_joint_law law = {.kp = m->stiffness[v], .kd = m->damping[v], .lower = m->rest[v], .index = -1};
        law.battery = law.encoder = -1;
        law.v = v;
        law.q = m->node[v].q;
        if (law.kp > 0 || law.kd > 0) put(p, USI_LAW_SPRING, &law);
    }
}

static void put_drives(placing *p) {
    for (int32_t i = 0; i < p->m->n_drive; i++) {
        const usi_drive *d = &p->m->drive[i];
        usi_joint_law law = {.kp = d->kp, .kd = d->kd, .bound = d->limit, .v = d->v, .q = d->q, .index = i};
        law.battery = d->battery;
        law.encoder = d->encoder;
        if (d->v >= 0) put(p, USI_LAW_DRIVE, &law);
    }
}

void usi_friction_gains(const usi_joint_law *law, double friction, double *out_kp, double *out_kd) {
    *out_kp = law->is_held ? friction / STICTION_REACH : 0;
    *out_kd = law->is_held ? 2 * sqrt(*out_kp * law->inertia) : friction / STICTION_SPEED;
}

static void put_friction(placing *p, const usi_build *b, int32_t joint) {
    const us_model *m = p->m;
    const usi_joint *j = &m->joint[joint];
    const bool is_held =
        j->n_q == j->n_v && (m->integrator == US_INTEGRATOR_MIDPOINT || m->integrator == US_INTEGRATOR_EULER);
    for (int32_t i = 0; can_stick(b, joint) && i < j->n_v; i++) {
        usi_joint_law law = {.bound = b->joint_def[joint].friction, .v = j->first_v + i, .q = j->first_q + i};
        law.is_held = is_held;
        law.inertia = b->axis_inertia[law.v] + m->armature[law.v];
        law.battery = -1;
        usi_friction_gains(&law, law.bound, &law.kp, &law.kd);
        put(p, USI_LAW_FRICTION, &law);
    }
}

static void put_limit(placing *p, const usi_build *b, int32_t joint) {
    const us_model *m = p->m;
    const us_joint_def *def = &b->joint_def[joint];
    if (!usi_build_has_limit(def)) return;
    usi_joint_law law = {.lower = def->lower, .upper = def->upper, .index = -1};
    law.battery = -1;
    law.v = m->joint[joint].first_v;
    law.q = m->joint[joint].first_q;
    const double inertia = b->axis_inertia[law.v] + m->armature[law.v];
    law.kp = LIMIT_STIFFNESS * fmax(1, inertia);
    if (m->integrator == US_INTEGRATOR_RK4) {
        // An explicit step follows nothing faster than itself. A half: joints further out, which are loose,
        // take from the inertia.
        const double fastest = 0.5 / m->step;
        law.kp = fmin(law.kp, fastest * fastest * inertia);
    }
    law.kd = 2 * sqrt(law.kp * inertia);
    law.reach = law.kd / law.kp + m->step;
    put(p, USI_LAW_LIMIT, &law);
}

static void put_laws(placing *p, const usi_build *b) {
    put_springs(p);
    put_drives(p);
    for (int32_t k = 0; k < p->m->n_joint; k++) {
        put_friction(p, b, k);
        put_limit(p, b, k);
    }
}

// From counts to places; and the trees that have laws.
static void find_places(us_model *m, int32_t *place) {
    int32_t at = 0;
    m->n_actuated = 0;
    for (int32_t t = 0; t < m->n_tree; t++) {
        usi_actuated list = {.tree = t};
        for (int32_t k = 0; k < USI_LAW_KINDS; k++) {
            int32_t n = place[t * USI_LAW_KINDS + k];
            place[t * USI_LAW_KINDS + k] = list.first[k] = at;
            at += n;
        }
        list.first[USI_LAW_KINDS] = at;
        if (at == list.first[0]) continue;
        m->tree[t].actuated = m->n_actuated;
        m->actuated[m->n_actuated++] = list;
    }
}

static int compare_by_velocity(const void *a, const void *b) {
    int32_t x = ((const usi_joint_law *)a)->v, y = ((const usi_joint_law *)b)->v;
    return x < y ? -1 : x > y;
}

// Friction in the order of velocities: joints are not, where some of them hang on later ones.
static void number_frictions(const usi_build *b, us_model *m) {
    int32_t n = 0;
    for (int32_t t = 0; t < m->n_actuated; t++) {
        const int32_t *first = m->actuated[t].first + USI_LAW_FRICTION;
        if (first[1] - first[0] > 1)
            qsort(m->joint_law + first[0], (size_t)(first[1] - first[0]), sizeof *m->joint_law,
                  compare_by_velocity);
        for (int32_t i = first[0]; i < first[1]; i++) {
            m->joint_law[i].index = n;
            m->blockage[n] = b->joint_def[m->node[m->joint_law[i].v].joint].blockage;
            m->friction[n++] = i;
        }
    }
}

us_status usi_build_laws(usi_build *b, us_model *m) {
    const size_t n = (size_t)m->n_tree * USI_LAW_KINDS + 1;
    placing p = {m, usi_arena_alloc(&b->arena, n * sizeof *p.place, _Alignof(int32_t)), false};
    if (!p.place) return usi_build_out_of_memory(b);
    memset(p.place, 0, n * sizeof *p.place);
    put_laws(&p, b);
    find_places(m, p.place);
    p.is_counted = true;
    put_laws(&p, b);
    number_frictions(b, m);
    return US_OK;
}

int32_t usi_find_friction(const us_model *m, int32_t v) {
    int32_t low = 0, high = m->n_friction;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (m->joint_law[m->friction[middle]].v < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->n_friction && m->joint_law[m->friction[low]].v == v ? low : -1;
}

// A world that is changed while it runs: another model with the old state, other places for single objects.
//
// A model is constant, so an edit compiles a new one; the sim then goes on with it. What has a name in both
// goes on as it was; what the edit changed is as the new model says. The rule is the same everywhere: where
// the two models start alike, the state is carried over, and where they start differently, somebody wanted it
// so.
//
//     joint      position, velocity, acceleration, by name and kind, when the start state is the same in
//     both; one that has broken in between
//                lets its link go with the pose and velocity that it has
//     drive      command, by name, when the start command is the same in both; effort, strength
//     battery    energy, by the robot's name, when the capacity is the same in both
//     wrench     one that waits for the next step, by body
//     contact    what the points remember, by pair of shapes, when both are the same shape at the same place
//     on the same link,
//                and nothing between that link and the world was put elsewhere
//     materials  values that were changed while running, by names, when both tables say the same
//     plug-ins   all that they remember, as it is: one that knows indices of the model finds them anew
//     before the next step
//
// The new world is made beside the old one, which is given up only when everything has gone well.
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

// ---------------------------------------------------------------- by name

typedef struct name_entry {
    const char *name;
    int32_t i;
} name_entry;

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const name_entry *)a)->name, ((const name_entry *)b)->name);
}

// A shape as what it is: link, form and place. Equal shapes on one link are told apart by their order.
typedef struct geom_entry {
    uint64_t key;
    int32_t i;
} geom_entry;

static int compare_geom_entries(const void *a, const void *b) {
    const geom_entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

// A touch in terms of the new shapes, to be sorted like the pairs.
typedef struct touch_entry {
    int32_t low, high, old;
} touch_entry;

static int compare_touch_entries(const void *a, const void *b) {
    const touch_entry *x = a, *y = b;
    if (x->low != y->low) return x->low < y->low ? -1 : 1;
    return x->high < y->high ? -1 : x->high > y->high;
}

typedef struct move {
    us_sim *from;
    us_sim *to;
    usi_arena arena;     // of what only the move needs
    int32_t *old_joint;  // per joint of the new model: the one of the same name and kind, or -1
    bool *is_same_node;  // per node of the new model: it is where it was, and so is all between it and the
                         // world
    int32_t *old_node;   // and which one it was
    int32_t *new_geom;   // per shape of the old model, or -1
} move;

static void *take(move *x, size_t n, size_t each, size_t align) {
    return usi_arena_alloc(&x->arena, (n + 1) * each, align);
}

// For each of the new names the index of the same old name, or -1. NULL without memory.
static int32_t *match_names(move *x, const char *new_names, const int32_t *new_at, int32_t n_new,
                            const char *old_names, const int32_t *old_at, int32_t n_old) {
    name_entry *sorted = take(x, (size_t)n_old, sizeof *sorted, _Alignof(name_entry));
    int32_t *out = take(x, (size_t)n_new, sizeof *out, _Alignof(int32_t));
    if (!sorted || !out) return NULL;
    for (int32_t i = 0; i < n_old; i++)
        sorted[i] = (name_entry){old_names + old_at[i], i};
    if (n_old > 1) qsort(sorted, (size_t)n_old, sizeof *sorted, compare_entries);
    for (int32_t i = 0; i < n_new; i++) {
        name_entry wanted = {new_names + new_at[i], 0};
        const name_entry *found =
            n_old > 0 ? bsearch(&wanted, sorted, (size_t)n_old, sizeof *sorted, compare_entries) : NULL;
        out[i] = found ? found->i : -1;
    }
    return out;
}

// ---------------------------------------------------------------- joints and drives

static bool same_numbers(const double *a, const double *b, int32_t n) {
    return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

// The link of a joint that has just broken, as it moves. A broken joint's frame is the world's.
static void let_go(move *x, const usi_joint *j, const usi_joint *was) {
    us_pose X = us_sim_get_pose(x->from, (us_body){was->child});
    us_twist V = us_sim_get_twist(x->from, (us_body){was->child});
    us_quat to_body = us_quat_conj(X.q);
    us_vec3 w = us_quat_rotate(to_body, V.w), v = us_quat_rotate(to_body, V.v);
    const double q[7] = {X.q.w, X.q.x, X.q.y, X.q.z, X.p.x, X.p.y, X.p.z},
                 u[6] = {w.x, w.y, w.z, v.x, v.y, v.z};
    memcpy(x->to->now.q + j->first_q, q, sizeof q);
    memcpy(x->to->now.v + j->first_v, u, sizeof u);
}

// What a fault has added to a joint's friction, where both models start alike.
static void carry_blockage(const move *x, const usi_joint *j, const usi_joint *was) {
    for (int32_t i = 0; i < j->n_v && i < was->n_v; i++) {
        int32_t to = usi_find_friction(x->to->model, j->first_v + i),
                from = usi_find_friction(x->from->model, was->first_v + i);
        if (to < 0 || from < 0 || x->to->model->blockage[to] != x->from->model->blockage[from]) continue;
        x->to->now.blockage[to] = x->from->now.blockage[from];
    }
}

static us_status carry_joints(move *x) {
    const us_model *m = x->to->model, *o = x->from->model;
    x->old_joint = match_names(x, m->names, m->joint_name, m->n_joint, o->names, o->joint_name, o->n_joint);
    if (!x->old_joint) return US_ERR_MEMORY;
    const usi_state *from = &x->from->now;
    usi_state *to = &x->to->now;
    for (int32_t i = 0; i < m->n_joint; i++) {
        if (x->old_joint[i] < 0) continue;
        const usi_joint *j = &m->joint[i], *k = &o->joint[x->old_joint[i]];
        carry_blockage(x, j, k);
        // Where a broken one starts says nothing: see model/broken.c.
        bool is_same =
            j->type == k->type && j->n_q == k->n_q && j->n_v == k->n_v && j->is_broken == k->is_broken;
        if (is_same && !j->is_broken)
            is_same = same_numbers(m->q_start + j->first_q, o->q_start + k->first_q, j->n_q) &&
                      same_numbers(m->v_start + j->first_v, o->v_start + k->first_v, j->n_v);
        if (!is_same) x->old_joint[i] = -1;
        if (j->is_broken && !k->is_broken) let_go(x, j, k);
        if (!is_same || j->n_v == 0) continue;
        memcpy(to->q + j->first_q, from->q + k->first_q, (size_t)j->n_q * sizeof(double));
        memcpy(to->v + j->first_v, from->v + k->first_v, (size_t)j->n_v * sizeof(double));
        memcpy(to->a + j->first_v, from->a + k->first_v, (size_t)j->n_v * sizeof(double));
        memcpy(to->a_before + j->first_v, from->a_before + k->first_v, (size_t)j->n_v * sizeof(double));
    }
    // Where dry friction holds the joints: of those that go on, what they remember.
    usi_stiction_set(m, to->q, to->blockage, to->stuck);
    for (int32_t i = 0; i < m->n_friction; i++) {
        const usi_joint_law *law = &m->joint_law[m->friction[i]];
        const usi_node *n = &m->node[law->v];
        int32_t joint = x->old_joint[n->joint];
        if (joint < 0) continue;
        int32_t was = usi_find_friction(o, o->joint[joint].first_v + law->v - m->joint[n->joint].first_v);
        if (was < 0) continue;
        bool is_stuck = usi_friction_now(law, to->blockage[i]).kp > 0;
        const usi_joint_law *old = &o->joint_law[o->friction[was]];
        if (is_stuck && usi_friction_now(old, from->blockage[was]).kp > 0) to->stuck[i] = from->stuck[was];
    }
    to->tick[0] = from->tick[0];
    if (m->integrator == o->integrator && m->step == o->step) to->substep[0] = from->substep[0];
    return US_OK;
}

static us_status carry_drives(move *x) {
    const us_model *m = x->to->model, *o = x->from->model;
    const int32_t *old =
        match_names(x, m->names, m->drive_name, m->n_drive, o->names, o->drive_name, o->n_drive);
    if (!old) return US_ERR_MEMORY;
    const usi_state *from = &x->from->now;
    usi_state *to = &x->to->now;
    for (int32_t i = 0; i < m->n_drive; i++) {
        int32_t k = old[i];
        if (k < 0) continue;
        const usi_drive *a = &m->drive[i], *b = &o->drive[k];
        to->drive_effort[i] = a->v >= 0 ? from->drive_effort[k] : 0;
        to->drive_limit_scale[i] = from->drive_limit_scale[k];
        to->drive_strength[i] = from->drive_strength[k];
        if (a->position != b->position || a->velocity != b->velocity || a->torque != b->torque) continue;
        to->drive_position[i] = from->drive_position[k];
        to->drive_velocity[i] = from->drive_velocity[k];
        to->drive_torque[i] = from->drive_torque[k];
    }
    return US_OK;
}

// Wrenches that wait for the next step, by body.
static us_status carry_applied(move *x) {
    const us_model *m = x->to->model, *o = x->from->model;
    if (x->from->now.n_applied[0] == 0) return US_OK;
    const int32_t *new_body =
        match_names(x, o->names, o->body_name, o->n_body, m->names, m->body_name, m->n_body);
    if (!new_body) return US_ERR_MEMORY;
    for (int32_t i = 0; i < x->from->now.n_applied[0]; i++) {
        usi_applied a = x->from->now.applied[i];
        a.body = new_body[a.body];
        if (a.body >= 0) x->to->now.applied[x->to->now.n_applied[0]++] = a;
    }
    return US_OK;
}

static us_status carry_batteries(move *x) {
    const us_model *m = x->to->model, *o = x->from->model;
    const int32_t *old =
        match_names(x, m->names, m->battery_name, m->n_battery, o->names, o->battery_name, o->n_battery);
    if (!old) return US_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_battery; i++) {
        if (old[i] < 0) continue;
        x->to->now.battery_on[i] = x->from->now.battery_on[old[i]];
        if (m->battery[i].capacity == o->battery[old[i]].capacity)
            x->to->now.battery_energy[i] = x->from->now.battery_energy[old[i]];
    }
    return US_OK;
}

// ---------------------------------------------------------------- materials

// What was chosen while running stays chosen, where the model has not changed its mind and still has it.
static void carry_pair_model(const move *x, int32_t a, int32_t b, int32_t at, int32_t was) {
    const us_model *m = x->to->model, *o = x->from->model;
    const char *then = usi_pair_model_name(o, o->pair_model[was]),
               *acts = usi_pair_model_name(o, x->from->now.contact.pair_model[was]);
    int32_t model;
    if (strcmp(usi_pair_model_name(m, m->pair_model[at]), then) == 0 &&
        usi_find_pair_model(m, acts, &model) == US_OK && usi_pair_model_fits(m, a, b, model))
        x->to->now.contact.pair_model[at] = model;
}

static us_status carry_pairs(move *x) {
    const us_model *m = x->to->model, *o = x->from->model;
    const int32_t *old =
        match_names(x, m->names, m->material_name, m->n_material, o->names, o->material_name, o->n_material);
    if (!old) return US_ERR_MEMORY;
    for (int32_t a = 0; a < m->n_material; a++) {
        for (int32_t b = 0; b < m->n_material; b++) {
            if (old[a] < 0 || old[b] < 0) continue;
            int32_t at = a * m->n_material + b, was = old[a] * o->n_material + old[b];
            const us_pair_values *now = &m->pair[at].values, *then = &o->pair[was].values;
            if (memcmp(now, then, sizeof *now) == 0)
                x->to->now.contact.pair[at] = x->from->now.contact.pair[was];
            carry_pair_model(x, a, b, at, was);
        }
    }
    for (int32_t a = 0; a < m->n_soil; a++) {
        bool is_same = old[a] >= 0 && o->n_soil > 0 && m->material[a].is_soil &&
                       o->material[old[a]].is_soil &&
                       memcmp(&m->material[a].soil, &o->material[old[a]].soil, sizeof(us_soil)) == 0;
        if (is_same) x->to->now.contact.soil[a] = x->from->now.contact.soil[old[a]];
    }
    for (int32_t i = 0; i < m->n_region; i++) {
        for (int32_t k = 0; k < o->n_region; k++) {
            if (strcmp(m->region[i].name, o->region[k].name) != 0 ||
                strcmp(m->material[m->region[i].material].name, o->material[o->region[k].material].name) != 0)
                continue;
            int32_t is = usi_find_material(m, o->material[x->from->now.contact.region[k]].name);
            if (is >= 0) x->to->now.contact.region[i] = is;
        }
    }
    return US_OK;
}

// ---------------------------------------------------------------- contact

// Parents come before children.
static us_status find_same_nodes(move *x) {
    const us_model *m = x->to->model, *o = x->from->model;
    x->is_same_node = take(x, (size_t)m->n_node, sizeof *x->is_same_node, _Alignof(bool));
    x->old_node = take(x, (size_t)m->n_node, sizeof *x->old_node, _Alignof(int32_t));
    if (!x->is_same_node || !x->old_node) return US_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_node; i++) {
        const usi_node *n = &m->node[i];
        x->is_same_node[i] = false;
        x->old_node[i] = -1;
        int32_t joint = x->old_joint[n->joint];
        if (joint < 0) continue;
        int32_t was = o->joint[joint].first_v + i - m->joint[n->joint].first_v;
        const usi_node *k = &o->node[was];
        bool parent =
            n->parent < 0 ? k->parent < 0 : x->is_same_node[n->parent] && x->old_node[n->parent] == k->parent;
        bool place = memcmp(n->T, k->T, sizeof n->T) == 0 && memcmp(&n->r, &k->r, sizeof n->r) == 0 &&
                     n->pitch == k->pitch && n->axis == k->axis;
        x->is_same_node[i] = parent && place && n->kind == k->kind;
        x->old_node[i] = was;
    }
    return US_OK;
}

static uint64_t geom_key(const us_model *m, const usi_geom *g) {
    uint64_t key = (uint64_t)(g->body < 0);
    if (g->body >= 0) {
        const char *name = m->names + m->body_name[g->body];
        key = us_hash_bytes(key, name, strlen(name));
    }
    key = us_hash_bytes(usi_geometry_hash(key, &g->geom), &g->X_NG, sizeof g->X_NG);
    return us_hash_bytes(key, &g->margin, sizeof g->margin);
}

static bool is_same_shape(const us_model *m, int32_t a, const us_model *o, int32_t b) {
    return m->geom[a].node < 0 && o->geom[b].node < 0 && geom_key(m, &m->geom[a]) == geom_key(o, &o->geom[b]);
}

static geom_entry *sorted_geoms(move *x, const us_model *m) {
    geom_entry *out = take(x, (size_t)m->n_geom, sizeof *out, _Alignof(geom_entry));
    if (!out) return NULL;
    for (int32_t i = 0; i < m->n_geom; i++)
        out[i] = (geom_entry){geom_key(m, &m->geom[i]), i};
    if (m->n_geom > 1) qsort(out, (size_t)m->n_geom, sizeof *out, compare_geom_entries);
    return out;
}

static bool is_same_place(const move *x, int32_t new_node, int32_t old_node) {
    if (new_node < 0 || old_node < 0) return new_node < 0 && old_node < 0;
    return x->is_same_node[new_node] && x->old_node[new_node] == old_node;
}

static us_status match_geoms(move *x) {
    const us_model *m = x->to->model, *o = x->from->model;
    const geom_entry *now = sorted_geoms(x, m), *old = sorted_geoms(x, o);
    x->new_geom = take(x, (size_t)o->n_geom, sizeof *x->new_geom, _Alignof(int32_t));
    if (!now || !old || !x->new_geom) return US_ERR_MEMORY;
    for (int32_t i = 0; i < o->n_geom; i++)
        x->new_geom[i] = -1;
    for (int32_t i = 0, k = 0; i < m->n_geom && k < o->n_geom;) {
        if (now[i].key != old[k].key) {
            if (now[i].key < old[k].key)
                i++;
            else
                k++;
            continue;
        }
        if (is_same_place(x, m->geom[now[i].i].node, o->geom[old[k].i].node))
            x->new_geom[old[k].i] = now[i].i;
        i++;
        k++;
    }
    return US_OK;
}

// Numbers of one model's law mean nothing to another one.
static bool is_same_law(const move *x, const usi_touch *t, int32_t a, int32_t b) {
    const us_model *m = x->to->model, *o = x->from->model;
    const int32_t now = m->geom[a].material * m->n_material + m->geom[b].material,
                  then = o->geom[t->geom_a].material * o->n_material + o->geom[t->geom_b].material;
    return strcmp(usi_pair_model_name(m, x->to->now.contact.pair_model[now]),
                  usi_pair_model_name(o, x->from->now.contact.pair_model[then])) == 0;
}

static us_status carry_contacts(move *x, us_error *err) {
    const us_model *m = x->to->model, *o = x->from->model;
    const usi_contact_state *from = &x->from->now.contact;
    usi_contact_state *to = &x->to->now.contact;
    int32_t n_old = from->n_touch[0], n = 0;
    if (m->n_geom == 0 || o->n_geom == 0 || n_old == 0) return US_OK;
    us_status status = find_same_nodes(x);
    if (!status) status = match_geoms(x);
    touch_entry *list = status ? NULL : take(x, (size_t)n_old, sizeof *list, _Alignof(touch_entry));
    if (!list) return US_ERR_MEMORY;
    for (int32_t i = 0; i < n_old; i++) {
        const usi_touch *t = &from->touch[i];
        int32_t a = x->new_geom[t->geom_a], b = x->new_geom[t->geom_b];
        if (a < 0 || b < 0 || !is_same_law(x, t, a, b)) continue;
        // The first shape is the one that does not roll, or else the lesser index: where the order has
        // changed, so has the frame of the memory.
        bool is_first = m->geom[a].is_round == m->geom[b].is_round ? a < b : !m->geom[a].is_round;
        if (is_first) list[n++] = (touch_entry){a < b ? a : b, a < b ? b : a, i};
    }
    if (n > 1) qsort(list, (size_t)n, sizeof *list, compare_touch_entries);
    const double ratio = m->step / o->step;
    int32_t n_anchor = 0;
    for (int32_t i = 0; i < n; i++)
        n_anchor += from->touch[list[i].old].n;
    const int32_t n_contact = n > n_anchor ? n : n_anchor;
    if (n_contact > x->to->max_contact && x->to->has_fixed_room)
        return us_error_set(err, US_ERR_LIMIT, NULL, "give the world a larger max-contact",
                            "the contact points exceed the new model's %d", (int)x->to->max_contact);
    if (n_contact > x->to->max_contact && usi_make_room(x->to, n_contact)) return US_ERR_MEMORY;
    n_anchor = 0;
    for (int32_t i = 0; i < n; i++) {
        const usi_touch *t = &from->touch[list[i].old];
        to->touch[i] = *t;
        to->touch[i].geom_a = x->new_geom[t->geom_a];
        to->touch[i].geom_b = x->new_geom[t->geom_b];
        to->touch[i].first = n_anchor;
        to->touch[i].material = usi_find_material(m, o->material[t->material].name);
        for (int32_t k = 0; k < t->n; k++) {
            for (int32_t j = 0; j < m->n_law_state; j++)
                to->law_state[n_anchor * m->n_law_state + j] =
                    j < o->n_law_state ? from->law_state[(t->first + k) * o->n_law_state + j] : 0;
            usi_anchor *a = &to->anchor[n_anchor++];
            *a = from->anchor[t->first + k];
            // What is kept is an impulse: the same force over another step.
            if (ratio != 1) a->g = us_vec3_scale(ratio, a->g);
        }
    }
    to->n_touch[0] = n;
    to->n_anchor[0] = n_anchor;
    return US_OK;
}

// What has been apart stays so; what has just broken has not been yet.
static void carry_parted(move *x) {
    const us_model *m = x->to->model, *o = x->from->model;
    for (int32_t i = 0; i < m->n_loose; i++) {
        const char *a = m->names + m->body_name[m->loose[i].a], *b = m->names + m->body_name[m->loose[i].b];
        int32_t at =
            usi_exclusion_find(o->loose, o->n_loose, us_model_find_body(o, a).i, us_model_find_body(o, b).i);
        x->to->now.contact.parted[i] = at >= 0 ? x->from->now.contact.parted[at] : 0;
    }
}

// ---------------------------------------------------------------- all together

// What is carried over may meet a loop that is new. Loops that were closed stay as they are, to the last bit.
static us_status close_loops(us_sim *s, us_error *err) {
    if (us_sim_get_closure(s) <= 1e-6) return US_OK;
    if (us_dyn_project(s->dyn, s->now.q, s->now.v) == US_OK) return US_OK;
    return us_error_set(err, US_ERR_CONSTRAINT, NULL,
                        "bring the links together before they are joined, or check the loops' frames",
                        "the present state cannot be moved onto the loops and couplings of the new model");
}

// The last acceleration is where the next step's iteration begins: of this tree alone, the others go on.
static void start_tree(us_sim *s, int32_t tree) {
    const us_model *m = s->model;
    usi_sim_sense_tree(s, tree);
    usi_carry_over(s);
    usi_let_all_run(s);
    bool ok = usi_accelerate_first(s, s->next.a);
    for (int32_t i = m->tree[tree].first; i < m->tree[tree].end; i++)
        s->now.a[i] = s->now.a_before[i] = ok ? s->next.a[i] : 0;
    s->now.substep[0] = 0;
}

// Nothing is known yet about how the pieces that a break has made go on.
static void start_pieces(us_sim *s, const us_sim *was) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_joint; i++) {
        if (!m->joint[i].is_broken) continue;
        us_joint old = us_model_find_joint(was->model, m->names + m->joint_name[i]);
        if (old.i >= 0 && !was->model->joint[old.i].is_broken)
            start_tree(s, m->node[m->joint[i].first_v].tree);
    }
}

static bool is_same_plugin(const us_plugin *a, const us_plugin *b) {
    return a->context == b->context && a->before == b->before && a->state_size == b->state_size;
}

// The plug-in that goes on as number i, -1: it is new. Two may have the same context: the place counts first.
static int32_t find_plugin(const us_sim *s, const us_plugin *p, int32_t i) {
    if (i < s->n_plugin && is_same_plugin(&s->plugin[i], p)) return i;
    for (int32_t k = 0; k < s->n_plugin; k++) {
        if (is_same_plugin(&s->plugin[k], p)) return k;
    }
    return -1;
}

// Plug-ins that go on do not start again, and keep what they remember to the last bit.
static void carry_plugins(const us_sim *from, us_sim *to) {
    for (int32_t i = 0; i < to->n_plugin; i++) {
        const int32_t was = find_plugin(from, &to->plugin[i], i);
        if (was >= 0 && to->plugin[i].state_size > 0)
            memcpy(usi_sim_plugin(to, i), us_sim_view_plugin(from, was), to->plugin[i].state_size);
    }
}

static void start_new_plugins(us_sim *s, const us_sim *was) {
    for (int32_t i = 0; i < s->n_plugin; i++) {
        const us_plugin *p = &s->plugin[i];
        if (p->start && find_plugin(was, p, i) < 0) p->start(p->context, s, usi_sim_plugin(s, i));
    }
}

us_status us_sim_replace(us_sim *sim, const us_model *model, us_error *err) {
    if (!sim || !model)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a sim and a model",
                            "us_sim_replace: an argument is NULL");
    return usi_sim_replace(sim, model, sim->n_plugin, sim->plugin, err);
}

us_status usi_sim_replace(us_sim *sim, const us_model *model, int32_t n_plugin, const us_plugin *plugins,
                          us_error *err) {
    us_sim_def def = {.allocator = sim->allocator,
                      .enable_profile = sim->enable_profile,
                      .n_thread = usi_pool_n_thread(sim->pool),
                      .n_plugin = n_plugin,
                      .plugins = plugins,
                      .has_fixed_room = sim->has_fixed_room};
    usi_events_define(sim, &def);
    us_sim *fresh = NULL;
    us_status status = usi_sim_make(model, &def, &fresh, err);
    if (status) return status;
    carry_plugins(sim, fresh);
    us_error why = {.code = US_OK};
    move x = {.from = sim, .to = fresh};
    usi_arena_init(&x.arena, &sim->allocator);
    status = carry_joints(&x);
    if (!status) status = carry_drives(&x);
    if (!status) status = carry_applied(&x);
    if (!status) status = carry_batteries(&x);
    if (!status) status = carry_pairs(&x);
    if (!status) status = carry_contacts(&x, &why);
    if (!status) carry_parted(&x);
    if (!status) status = close_loops(fresh, &why);
    if (!status) usi_sim_carry_sensors(sim, fresh);
    if (!status) start_pieces(fresh, sim);
    if (!status) status = usi_deformables_carry(sim, fresh, is_same_shape, &why);
    usi_arena_fini(&x.arena);
    if (status) {
        us_sim_destroy(fresh);
        if (status == US_ERR_MEMORY)
            return us_error_set(err, status, NULL, "free memory or make the model smaller",
                                "no memory left for the edit");
        if (err) *err = why;
        return status;
    }
    us_profile profile = sim->profile;
    us_sim old = *sim;
    *sim = *fresh;
    *fresh = old;
    sim->profile = profile;
    usi_sim_set_input_tap(sim, old.input_tap, old.input_context);
    usi_sim_set_hold_tap(sim, old.hold_tap, old.hold_context);
    sim->has_stepped = old.has_stepped;
    start_new_plugins(sim, fresh);
    us_sim_destroy(fresh);
    usi_report_input(sim, &(usi_input){.kind = USI_INPUT_MODEL});
    return US_OK;
}

// ---------------------------------------------------------------- single objects

// Which pairs of shapes: those of a tree, or, -1, of two materials.
typedef struct forgotten {
    int32_t tree, a, b;
} forgotten;

static bool is_forgotten(const us_model *m, const usi_touch *t, const forgotten *f) {
    const int32_t ma = t->material, mb = m->geom[t->geom_b].material;
    if (f->tree >= 0) return m->geom[t->geom_a].tree == f->tree || m->geom[t->geom_b].tree == f->tree;
    return (ma == f->a && mb == f->b) || (ma == f->b && mb == f->a);
}

// What touched a tree that is now elsewhere, or by another model, says nothing about what comes.
static void forget_contacts(us_sim *s, const forgotten *f) {
    const us_model *m = s->model;
    usi_contact_state *c = &s->now.contact;
    const int32_t n_state = m->n_law_state;
    int32_t n = 0, n_anchor = 0;
    for (int32_t i = 0; i < c->n_touch[0]; i++) {
        usi_touch t = c->touch[i];
        if (is_forgotten(m, &t, f)) continue;
        for (int32_t k = 0; k < t.n; k++)
            c->anchor[n_anchor + k] = c->anchor[t.first + k];
        for (int32_t k = 0; k < t.n * n_state; k++)
            c->law_state[n_anchor * n_state + k] = c->law_state[t.first * n_state + k];
        t.first = n_anchor;
        n_anchor += t.n;
        c->touch[n++] = t;
    }
    c->n_touch[0] = n;
    c->n_anchor[0] = n_anchor;
}

us_status us_sim_set_pair_model(us_sim *s, us_material a, us_material b, const char *model) {
    int32_t acts = 0;
    if (!s || !model || a.i < 0 || b.i < 0 || a.i >= s->model->n_material || b.i >= s->model->n_material)
        return US_ERR_ARG;
    if (usi_find_pair_model(s->model, model, &acts)) return US_ERR_NAME;
    if (!usi_pair_model_fits(s->model, a.i, b.i, acts)) return US_ERR_VALUE;
    const int32_t n = s->model->n_material;
    int32_t *now = s->now.contact.pair_model;
    if (now[a.i * n + b.i] != acts) {
        forget_contacts(s, &(forgotten){-1, a.i, b.i});
        s->has_last_step = false;
        if (s->contacts) s->contacts->collide.n_soil_contact = 0;
    }
    now[a.i * n + b.i] = now[b.i * n + a.i] = acts;
    usi_report_input(s, &(usi_input){USI_INPUT_PAIR_MODEL, a.i, b.i, 1, &(double){acts}});
    return US_OK;
}

const char *us_sim_get_pair_model(const us_sim *s, us_material a, us_material b) {
    if (!s || a.i < 0 || b.i < 0 || a.i >= s->model->n_material || b.i >= s->model->n_material) return NULL;
    return usi_pair_model_name(s->model, s->now.contact.pair_model[a.i * s->model->n_material + b.i]);
}

void usi_sim_restart(us_sim *s, int32_t tree) {
    s->has_last_step = false;
    forget_contacts(s, &(forgotten){.tree = tree});
    start_tree(s, tree);
}

void usi_sim_renew(us_sim *s, int32_t tree) {
    const us_model *m = s->model;
    for (int32_t i = 0; i < m->n_friction; i++) {
        const usi_joint_law *law = &m->joint_law[m->friction[i]];
        bool is_stuck = usi_friction_now(law, s->now.blockage[i]).kp > 0;
        if (is_stuck && m->node[law->v].tree == tree) s->now.stuck[i] = s->now.q[law->q];
    }
    usi_sim_restart(s, tree);
}

us_status usi_sim_go_home(us_sim *s) {
    const us_model *m = s->model;
    // Scratch for the state of now, which stays where the start state is none.
    double *q = s->next.q, *v = s->next.v;
    s->back_buffer_is_one_step_old = false;
    memcpy(q, s->now.q, (size_t)m->n_q * sizeof *q);
    memcpy(v, s->now.v, (size_t)m->n_node * sizeof *v);
    for (int32_t i = 0; i < m->n_joint; i++) {
        const usi_joint *j = &m->joint[i];
        if (j->is_broken || j->n_v == 0) continue;
        memcpy(q + j->first_q, m->q_start + j->first_q, (size_t)j->n_q * sizeof *q);
        memcpy(v + j->first_v, m->v_start + j->first_v, (size_t)j->n_v * sizeof *v);
    }
    usi_let_all_run(s);
    if (us_dyn_project(s->dyn, q, v)) return US_ERR_CONSTRAINT;
    memcpy(s->now.q, q, (size_t)m->n_q * sizeof *q);
    memcpy(s->now.v, v, (size_t)m->n_node * sizeof *v);
    for (int32_t i = 0; i < m->n_drive; i++) {
        s->now.drive_position[i] = m->drive[i].position;
        s->now.drive_velocity[i] = m->drive[i].velocity;
        s->now.drive_torque[i] = m->drive[i].torque;
    }
    usi_stiction_set(m, s->now.q, s->now.blockage, s->now.stuck);
    s->now.contact.n_touch[0] = s->now.contact.n_anchor[0] = 0;
    s->has_last_step = false;
    usi_sim_sense(s);
    usi_carry_over(s);
    const bool ok = usi_accelerate_first(s, s->next.a);
    for (int32_t i = 0; i < m->n_node; i++)
        s->now.a[i] = s->now.a_before[i] = ok ? s->next.a[i] : 0;
    s->now.substep[0] = 0;
    return US_OK;
}

us_status us_sim_set_joint(us_sim *s, us_joint joint, const double *q, const double *v) {
    if (!s || joint.i < 0 || joint.i >= s->model->n_joint) return US_ERR_ARG;
    const us_model *m = s->model;
    const usi_joint *j = &m->joint[joint.i];
    bool has_quaternion = j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING;
    for (int32_t i = 0; q && i < j->n_q; i++) {
        if (!isfinite(q[i])) return US_ERR_VALUE;
    }
    for (int32_t i = 0; v && i < j->n_v; i++) {
        if (!isfinite(v[i])) return US_ERR_VALUE;
    }
    if (q && has_quaternion) {
        double n2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
        if (!(n2 > 1e-12 && isfinite(n2))) return US_ERR_VALUE;
    }
    if (j->n_v == 0 || (!q && !v)) return US_OK;
    // Before the change: q and v may lie in the state.
    usi_report_joint(s, joint, q, v);
    double *to = s->now.q + j->first_q;
    if (q) {
        memmove(to, q, (size_t)j->n_q * sizeof(double));
        if (has_quaternion) {
            us_quat r = us_quat_normalize((us_quat){to[0], to[1], to[2], to[3]});
            memcpy(to, &r, sizeof r);
        }
    }
    if (v) memmove(s->now.v + j->first_v, v, (size_t)j->n_v * sizeof(double));
    int32_t tree = m->node[j->first_v].tree;
    if (q) forget_contacts(s, &(forgotten){.tree = tree});
    for (int32_t i = 0; q && i < m->n_friction; i++) {
        const usi_joint_law *law = &m->joint_law[m->friction[i]];
        bool is_stuck = usi_friction_now(law, s->now.blockage[i]).kp > 0;
        if (is_stuck && m->node[law->v].joint == joint.i) s->now.stuck[i] = s->now.q[law->q];
    }
    start_tree(s, tree);
    return US_OK;
}

us_status us_sim_move(us_sim *s, us_body body, us_pose X_WB) {
    if (!s || body.i < 0 || body.i >= s->model->n_body) return US_ERR_ARG;
    const us_model *m = s->model;
    const double n2 = X_WB.q.w * X_WB.q.w + X_WB.q.x * X_WB.q.x + X_WB.q.y * X_WB.q.y + X_WB.q.z * X_WB.q.z;
    if (!(n2 > 1e-12) || !isfinite(n2) || !isfinite(X_WB.p.x) || !isfinite(X_WB.p.y) || !isfinite(X_WB.p.z))
        return US_ERR_VALUE;
    int32_t node = m->body[body.i].node;
    if (node < 0) return US_ERR_TREE;
    const usi_node *root = &m->node[m->tree[m->node[node].tree].first];
    if (root->kind != USI_NODE_FREE) return US_ERR_TREE;
    X_WB.q = us_quat_normalize(X_WB.q);
    // The root goes where it carries the body to its new place, the joints between being as they are.
    us_pose X_WR = us_pose_mul(usi_node_rest(root), usi_node_motion(root, s->now.q + root->q));
    us_pose X_BR = us_pose_mul(us_pose_inverse(us_sim_get_pose(s, body)), X_WR);
    us_pose X = us_pose_mul(us_pose_inverse(usi_node_rest(root)), us_pose_mul(X_WB, X_BR));
    const double q[7] = {X.q.w, X.q.x, X.q.y, X.q.z, X.p.x, X.p.y, X.p.z}, v[6] = {0};
    return us_sim_set_joint(s, (us_joint){root->joint}, q, v);
}

us_status us_sim_set_twist(us_sim *s, us_body body, us_twist V_WB) {
    if (!s || body.i < 0 || body.i >= s->model->n_body) return US_ERR_ARG;
    const us_model *m = s->model;
    const int32_t node = m->body[body.i].node;
    if (!isfinite(us_vec3_norm(V_WB.w)) || !isfinite(us_vec3_norm(V_WB.v))) return US_ERR_VALUE;
    if (node < 0) return US_ERR_TREE;
    // A floating root is six nodes, of which the last carries the links.
    const usi_node *root = &m->node[m->tree[m->node[node].tree].first];
    if (root->kind != USI_NODE_FREE || m->node[node].joint != root->joint) return US_ERR_TREE;
    const us_pose X_WR = us_pose_mul(usi_node_rest(root), usi_node_motion(root, s->now.q + root->q));
    const us_vec3 p_BR = us_vec3_sub(X_WR.p, us_sim_get_pose(s, body).p);
    const us_quat R_RW = us_quat_conj(X_WR.q);
    const us_vec3 w = us_quat_rotate(R_RW, V_WB.w),
                  u = us_quat_rotate(R_RW, us_vec3_add(V_WB.v, us_vec3_cross(V_WB.w, p_BR)));
    const double v[6] = {w.x, w.y, w.z, u.x, u.y, u.z};
    return us_sim_set_joint(s, (us_joint){root->joint}, NULL, v);
}

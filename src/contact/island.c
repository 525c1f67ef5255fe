// Islands: trees that hang together through contacts and loops.
#include "contact/contact__parts.h"

// Bodies that differ more than this in mass cannot be swept: the error of a light one between heavy ones dies
// out too slowly.
static const double MAX_MASS_RATIO = 100;
// Couplings are put in one by one beside a tree's factors: with more than this, a full matrix is cheaper.
enum { MAX_BRANCH_COUPLINGS = 4 };
// How fast an overlap is separated at most, m/s.
static const double MAX_SEPARATION = 1;
// The same where a ground has regions: a wheel that comes from soil onto rock is as deep in the rock as it
// was in the soil, and climbs out.
static const double MAX_RISE = 0.1;

static int32_t find_root(int32_t *root, int32_t t) {
    while (root[t] != t)
        t = root[t] = root[root[t]];
    return t;
}
static void join(int32_t *root, int32_t a, int32_t b) {
    a = find_root(root, a);
    b = find_root(root, b);
    if (a < b)
        root[b] = a;
    else
        root[a] = b;
}

static void join_trees(usi_contacts *c) {
    const us_model *m = c->model;
    for (int32_t t = 0; t < m->n_tree; t++) {
        c->islands.root[t] = t;
        c->islands.tree[t].island = -1;
    }
    for (int32_t l = 0; l < m->n_loop; l++) {
        int32_t a = m->loop[l].node_a, b = m->loop[l].node_b;
        if (a >= 0 && b >= 0) join(c->islands.root, m->node[a].tree, m->node[b].tree);
    }
    for (int32_t k = 0; k < m->n_coupling; k++) {
        for (int32_t i = 1; i < m->coupling[k].n_term; i++)
            join(c->islands.root, m->node[m->coupling[k].v[0]].tree, m->node[m->coupling[k].v[i]].tree);
    }
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        int32_t a = usi_tree_of_geom(c, c->collide.touch_now[i].geom_a),
                b = usi_tree_of_geom(c, c->collide.touch_now[i].geom_b);
        if (a >= 0 && b >= 0) join(c->islands.root, a, b);
        c->islands.touch_tree[i] = a >= 0 ? a : b;
    }
    // -2 marks the roots of islands that something touches.
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        if (c->collide.may_press[i])
            c->islands.tree[find_root(c->islands.root, c->islands.touch_tree[i])].island = -2;
    }
    for (int32_t t = 0; t < m->n_tree && c->pushed; t++) {
        if (c->pushed[t]) c->islands.tree[find_root(c->islands.root, t)].island = -2;
    }
}

static int32_t n_coupling_of(const usi_contacts *c, int32_t tree) {
    return c->coupling_start[tree + 1] - c->coupling_start[tree];
}

// Whether the bodies of an island stand in a line: hardly more pairs touch than there are bodies. Such a
// matrix has next to no fill, and Newton's method costs no more per body than in a small island; sweeps would
// carry what happens at one end of a tall stack to the other too slowly, and it would sway for ever.
static bool is_line(const usi_contacts *c, const usi_island *s) {
    const int32_t max_pair = s->n_tree + 1;
    int32_t n_pair = 0;
    for (int32_t i = 0; i < s->n_point && n_pair <= max_pair;) {
        const int32_t touch = c->collide.point[c->islands.order[s->first_point + i]].touch;
        n_pair += c->collide.may_press[touch];
        i += c->collide.touch_now[touch].n;
    }
    return n_pair <= max_pair;
}

// Whether every contact is between one tree and the world, nothing closes a loop in it, and it is not a free
// body: then it is solved joint by joint (branch.c).
usi_island_kind usi_kind_of_island(const usi_contacts *c, const usi_island *s) {
    const us_model *m = c->model;
    bool all_free = true;
    for (int32_t i = 0; i < s->n_tree; i++)
        all_free = all_free && m->tree[c->islands.members[s->first_tree + i]].is_free_body;
    if (m->solver == USI_SOLVER_RIGID_DIRECT || m->solver == USI_SOLVER_RIGID_ITERATIVE)
        return USI_ISLAND_RIGID;
    bool can_sweep = all_free && s->max_mass <= MAX_MASS_RATIO * s->min_mass;
    if (can_sweep &&
        (m->solver == USI_SOLVER_GAUSS_SEIDEL || (s->n_tree > USI_MAX_NEWTON_BODIES && !is_line(c, s))))
        return USI_ISLAND_GAUSS_SEIDEL;
    if (s->n_tree > 1 || all_free || m->n_loop > 0 ||
        n_coupling_of(c, c->islands.members[s->first_tree]) > MAX_BRANCH_COUPLINGS)
        return USI_ISLAND_BLOCKS;
    if (!usi_is_fast(c, USI_FAST_BRANCH)) return USI_ISLAND_BLOCKS;
    // The points of a pair follow each other.
    for (int32_t i = 0; i < s->n_point;) {
        const usi_touch *t =
            &c->collide.touch_now[c->collide.point[c->islands.order[s->first_point + i]].touch];
        const bool is_active = c->collide.may_press[t - c->collide.touch_now];
        if (is_active && usi_tree_of_geom(c, t->geom_a) >= 0 && usi_tree_of_geom(c, t->geom_b) >= 0)
            return USI_ISLAND_BLOCKS;
        i += t->n;
    }
    return USI_ISLAND_BRANCH;
}

// What does not depend on the step. Member by member: what compilers make of a whole structure of this size
// is much slower.
static void clear_island(usi_island *s) {
    s->n_tree = s->n_body = s->n_block = s->n_point = 0;
    s->load = s->max_mass = 0;
    s->min_mass = INFINITY;
}

static double mass_of(const usi_contacts *c, const usi_collision_body *k) {
    return k->node < 0 ? INFINITY : c->tree_mass[k->tree];
}
static double reduced_mass(const usi_contacts *c, const usi_collision_body *A, const usi_collision_body *B) {
    double a = mass_of(c, A), b = mass_of(c, B);
    return isinf(a) ? b : isinf(b) ? a : a * b / (a + b);
}

// Numbers the islands, and counts what is in each.
static void count_islands(usi_contacts *c) {
    const us_model *m = c->model;
    double g = us_vec3_norm(m->gravity);
    c->islands.n_island = 0;
    c->islands.has_idle = false;
    for (int32_t t = 0; t < m->n_tree; t++) {
        int32_t root = find_root(c->islands.root, t);
        if (root == t && c->islands.tree[t].island == -2) {
            c->islands.tree[t].island = c->islands.n_island;
            clear_island(&c->islands.island[c->islands.n_island++]);
        }
        c->islands.tree[t].island = c->islands.tree[root].island;
        if (c->islands.tree[t].island < 0) continue;
        usi_island *s = &c->islands.island[c->islands.tree[t].island];
        double mass = c->tree_mass[t];
        s->n_tree++;
        s->n_body += c->tree_body_start[t + 1] - c->tree_body_start[t];
        s->load += mass * g;
        s->min_mass = mass < s->min_mass ? mass : s->min_mass;
        s->max_mass = mass > s->max_mass ? mass : s->max_mass;
    }
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        const int32_t island = c->islands.tree[c->islands.touch_tree[i]].island;
        if (island >= 0)
            c->islands.island[island].n_point += c->collide.touch_now[i].n;
        else
            c->islands.has_idle = true;
    }
    // A loop's rows are two blocks at most.
    for (int32_t l = 0; l < m->n_loop; l++) {
        int32_t island =
            c->islands.tree[m->node[m->loop[l].node_a >= 0 ? m->loop[l].node_a : m->loop[l].node_b].tree]
                .island;
        if (island >= 0) c->islands.island[island].n_block += 2;
    }
}

// Gives each island its places, one island behind the other, and empties it.
static void place_islands(usi_contacts *c) {
    int32_t n_tree = 0, n_body = 0, n_point = 0, n_block = 0;
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        usi_island *s = &c->islands.island[i];
        s->first_tree = n_tree;
        s->first_body = n_body;
        s->first_point = n_point;
        s->first_block = n_block;
        n_tree += s->n_tree;
        n_body += s->n_body;
        n_point += s->n_point;
        n_block += usi_blocks_of_point(c->model) * s->n_point + s->n_block;
        s->n_tree = s->n_body = s->n_point = 0;
    }
}

static void fill_islands(usi_contacts *c) {
    const us_model *m = c->model;
    for (int32_t t = 0; t < m->n_tree; t++) {
        if (c->islands.tree[t].island < 0) continue;
        usi_island *s = &c->islands.island[c->islands.tree[t].island];
        c->islands.members[s->first_tree + s->n_tree++] = t;
        for (int32_t k = c->tree_body_start[t]; k < c->tree_body_start[t + 1]; k++)
            c->islands.collision_body_of[s->first_body + s->n_body++] = k;
    }
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        const usi_touch *t = &c->collide.touch_now[i];
        const int32_t island = c->islands.tree[c->islands.touch_tree[i]].island;
        if (island >= 0) {
            usi_island *s = &c->islands.island[island];
            int32_t *order = c->islands.order + s->first_point + s->n_point;
            for (int32_t k = 0; k < t->n; k++)
                order[k] = t->first + k;
            s->n_point += t->n;
        }
        int32_t a = c->body_of_geom[t->geom_a], b = c->body_of_geom[t->geom_b];
        c->islands.grouped[i] = (usi_grouped){
            .geom_a = t->geom_a,
            .geom_b = t->geom_b,
            .n = t->n,
            .may_press = c->collide.may_press[i],
            .collision_body_a = a,
            .collision_body_b = b,
            .material_b = m->geom[t->geom_b].material,
            .mass = reduced_mass(c, &c->collide.collision_body[a], &c->collide.collision_body[b]),
            .separation = m->geom[t->geom_a].has_region ? MAX_RISE : MAX_SEPARATION};
    }
    c->islands.n_grouped = c->pushed ? -1 : c->collide.n_touch;
}

static void find_groups(usi_contacts *c) {
    join_trees(c);
    count_islands(c);
    place_islands(c);
    fill_islands(c);
    for (int32_t i = 0; i < c->islands.n_island; i++)
        c->islands.island[i].kind = (int32_t)usi_kind_of_island(c, &c->islands.island[i]);
}

void usi_find_islands(usi_contacts *c) {
    if (!usi_is_fast(c, USI_FAST_ISLANDS) || !usi_islands_hold(c)) find_groups(c);
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        usi_island *s = &c->islands.island[i];
        s->n_iteration = s->refused = s->n_impact = s->round = 0;
        s->share = s->low = s->high = s->low_work = s->high_work = 0;
        s->failed = s->is_started = s->is_again = s->is_pushed = s->is_drained = false;
        s->fallback = 0;
        for (int32_t k = 0; k < s->n_body; k++)
            c->collide.collision_body[c->islands.collision_body_of[s->first_body + k]].body = k;
        // All twists are about the first tree's place: near enough to everything in the island.
        int32_t t = c->islands.members[s->first_tree];
        s->O = c->model->tree[t].is_free_body
                   ? c->collide.collision_body[c->islands.collision_body_of[s->first_body]].p
                   : c->dyn->origin[t];
    }
}

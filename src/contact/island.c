// Islands: trees that hang together through contacts and loops. Each is solved by itself, in any order, on
// any thread.
#include <string.h>

#include "contact/contact__newton.h"
#include "contact/residency.h"

// Islands of free bodies larger than this are swept; smaller ones are solved by Newton's method.
enum { MAX_NEWTON_BODIES = 24 };
// Bodies that differ more than this in mass cannot be swept: the error of a light one between heavy ones dies
// out too slowly.
static const double MAX_MASS_RATIO = 100;
// Couplings are put in one by one beside a tree's factors: with more than this, a full matrix is cheaper.
enum { MAX_BRANCH_COUPLINGS = 4 };
// How fast an overlap is pushed apart at most, m/s.
static const double MAX_PUSH = 1;
// The same where a ground has regions: a wheel that comes from soil onto rock is as deep in the rock as it
// was in the soil, and climbs out.
static const double MAX_RISE = 0.1;
enum { MIN_SWEEPS = 4, MAX_SWEEPS = 10 };
// Of so many trees, the first ones, matrices are kept: 1 MiB.
enum { MAX_LAYOUTS = 32 };

// ---------------------------------------------------------------- life

static void find_carriers(const us_model *m, int32_t *is_carrier) {
    for (int32_t g = 0; g < m->n_geom; g++) {
        if (m->geom[g].node >= 0) is_carrier[m->geom[g].node] = 1;
    }
    for (int32_t l = 0; l < m->n_loop; l++) {
        if (m->loop[l].node_a >= 0) is_carrier[m->loop[l].node_a] = 1;
        if (m->loop[l].node_b >= 0) is_carrier[m->loop[l].node_b] = 1;
    }
    for (int32_t t = 0; t < m->n_tree; t++) {
        if (m->tree[t].is_free_body) is_carrier[m->tree[t].end - 1] = 1;
    }
}

int32_t usi_contacts_fields(const usi_contacts *c, usi_field *out, int32_t cap, size_t *out_size) {
    const us_model *m = c->model;
    const size_t n_collision_body = (size_t)c->n_collision_body, n_geom = (size_t)m->n_geom,
                 max_pair = (size_t)c->max_pair, n_tree = (size_t)m->n_tree,
                 max_contact = (size_t)c->max_contact, max_block = (size_t)c->max_block,
                 n_path = (size_t)m->n_path, n_pad = (size_t)m->n_pad, n_loose = (size_t)m->n_loose,
                 n_node = (size_t)m->n_node, max_sunk = m->n_soil > 0 ? max_contact : 0,
                 max_soil_here = m->n_soil_map > 0 ? max_sunk : 0;
    size_t size = 0;
    int32_t n = 0;
    USI_COLLIDE_FIELDS(USI_FIELD_ROW)
    USI_ISLANDS_FIELDS(USI_FIELD_ROW)
    USI_ROWS_FIELDS(USI_FIELD_ROW)
    USI_SOLVE_FIELDS(USI_FIELD_ROW)
    USI_JOINTS_FIELDS(USI_FIELD_ROW)
    if (out_size) *out_size = size ? size : 1;
    return n;
}

enum { MAX_FIELDS = 48 };

static bool make_scratch(usi_contacts *c) {
    usi_field f[MAX_FIELDS];
    usi_contacts_fields(c, f, MAX_FIELDS, &c->block_size);
    c->block_memory = usi_alloc(&c->allocator, c->block_size, USI_ALIGN);
    if (!c->block_memory) return false;
    memset(c->block_memory, 0, c->block_size);
    int32_t i = 0;
#define CARVE(to, type, name) to name = (type *)(void *)((char *)c->block_memory + f[i++].offset);
#define CARVE_COLLIDE(type, name, count, unit, about) CARVE(c->collide., type, name)
#define CARVE_ISLANDS(type, name, count, unit, about) CARVE(c->islands., type, name)
#define CARVE_ROWS(type, name, count, unit, about) CARVE(c->rows., type, name)
#define CARVE_SOLVE(type, name, count, unit, about) CARVE(c->solve., type, name)
#define CARVE_JOINTS(type, name, count, unit, about) CARVE(c->, type, name)
    USI_COLLIDE_FIELDS(CARVE_COLLIDE)
    USI_ISLANDS_FIELDS(CARVE_ISLANDS)
    USI_ROWS_FIELDS(CARVE_ROWS)
    USI_SOLVE_FIELDS(CARVE_SOLVE)
    USI_JOINTS_FIELDS(CARVE_JOINTS)
#undef CARVE_JOINTS
#undef CARVE_SOLVE
#undef CARVE_ROWS
#undef CARVE_ISLANDS
#undef CARVE_COLLIDE
#undef CARVE
    return true;
}

// Lists by tree: which entries of an array of n belong to each tree.
static bool list_by_tree(usi_contacts *c, int32_t n, int32_t (*tree_of)(const us_model *, int32_t),
                         int32_t **out_start, int32_t **out_list) {
    const us_model *m = c->model;
    int32_t *start = usi_arena_alloc(&c->fixed, (size_t)(m->n_tree + 1) * sizeof *start, _Alignof(int32_t));
    int32_t *list = usi_arena_alloc(&c->fixed, (size_t)(n + 1) * sizeof *list, _Alignof(int32_t));
    if (!start || !list) return false;
    for (int32_t t = 0; t <= m->n_tree; t++)
        start[t] = 0;
    for (int32_t i = 0; i < n; i++) {
        if (tree_of(m, i) >= 0) start[tree_of(m, i) + 1]++;
    }
    for (int32_t t = 0; t < m->n_tree; t++)
        start[t + 1] += start[t];
    for (int32_t i = 0; i < n; i++) {
        if (tree_of(m, i) >= 0) list[start[tree_of(m, i)]++] = i;
    }
    for (int32_t t = m->n_tree; t > 0; t--)
        start[t] = start[t - 1];
    start[0] = 0;
    *out_start = start;
    *out_list = list;
    return true;
}
static int32_t coupling_tree(const us_model *m, int32_t i) { return m->node[m->coupling[i].v[0]].tree; }

static int32_t body_tree(const us_model *m, int32_t i) {
    return m->body[i].node < 0 ? -1 : m->node[m->body[i].node].tree;
}

static void invert_inertia(const usi_node *n, usi_v4 out[3]) {
    usi_v4 a = usi_v4_cross(n->I[1], n->I[2]), b = usi_v4_cross(n->I[2], n->I[0]),
           c = usi_v4_cross(n->I[0], n->I[1]);
    double inverse = 1 / usi_v4_dot(n->I[0], a);
    for (int i = 0; i < 3; i++)
        out[i] = usi_v4_set(a[i], b[i], c[i]) * inverse;
}

static double greatest_distance(const usi_geom *g) {
    us_aabb b = us_geom_box(&g->geom, g->X_NG);
    us_vec3 far = us_vec3_make(fmax(fabs(b.min.x), fabs(b.max.x)), fmax(fabs(b.min.y), fabs(b.max.y)),
                               fmax(fabs(b.min.z), fabs(b.max.z)));
    return us_vec3_norm(far);
}

// Nodes of the same depth come in the order of the tree.
static void order_inwards(usi_contacts *c) {
    const us_model *m = c->model;
    for (int32_t t = 0; t < m->n_tree; t++) {
        const usi_span tree = {m->tree[t].first, m->tree[t].end}, root = usi_free_root(m, tree);
        int32_t deepest = 0, at = root.end;
        for (int32_t i = tree.first; i < tree.end; i++) {
            int32_t length = m->row_start[i + 1] - m->row_start[i];
            deepest = length > deepest ? length : deepest;
            c->inwards[i] = i;
        }
        for (int32_t depth = deepest; depth > 0; depth--) {
            for (int32_t i = root.end; i < tree.end; i++) {
                if (m->row_start[i + 1] - m->row_start[i] == depth) c->inwards[at++] = i;
            }
        }
    }
}

static bool fill_fixed(usi_contacts *c) {
    const us_model *m = c->model;
    int32_t *of_node =
        usi_arena_alloc(&c->fixed, (size_t)(m->n_node + 1) * sizeof *of_node, _Alignof(int32_t));
    c->carrier_of = usi_arena_alloc(&c->fixed, (size_t)(m->n_geom + 1) * sizeof(int32_t), _Alignof(int32_t));
    c->far = usi_arena_alloc(&c->fixed, (size_t)(m->n_geom + 1) * sizeof(double), _Alignof(double));
    c->is_plain = usi_arena_alloc(&c->fixed, (size_t)(m->n_geom + 1) * sizeof(bool), _Alignof(bool));
    c->tree_mass = usi_arena_alloc(&c->fixed, (size_t)(m->n_tree + 1) * sizeof(double), _Alignof(double));
    c->carrier_start =
        usi_arena_alloc(&c->fixed, (size_t)(m->n_tree + 1) * sizeof(int32_t), _Alignof(int32_t));
    c->loop_carrier =
        usi_arena_alloc(&c->fixed, (size_t)(2 * m->n_loop + 1) * sizeof(int32_t), _Alignof(int32_t));
    c->inwards = usi_arena_alloc(&c->fixed, (size_t)(m->n_node + 1) * sizeof(int32_t), _Alignof(int32_t));
    if (!of_node || !c->inwards || !c->carrier_of || !c->far || !c->is_plain || !c->tree_mass ||
        !c->carrier_start || !c->loop_carrier)
        return false;
    memset(of_node, 0, (size_t)(m->n_node + 1) * sizeof *of_node);
    find_carriers(m, of_node);
    c->n_collision_body = 1;
    for (int32_t i = 0; i < m->n_node; i++)
        c->n_collision_body += of_node[i];
    c->fixed_carrier = usi_arena_alloc(&c->fixed, (size_t)c->n_collision_body * sizeof *c->fixed_carrier,
                                       _Alignof(usi_collision_body));
    if (!c->fixed_carrier) return false;
    memset(c->fixed_carrier, 0, (size_t)c->n_collision_body * sizeof *c->fixed_carrier);
    c->fixed_carrier[0].node = c->fixed_carrier[0].tree = -1;
    int32_t n = 1, t = 0;
    for (int32_t i = 0; i < m->n_node; i++) {
        while (t <= m->node[i].tree)
            c->carrier_start[t++] = n;
        if (!of_node[i]) continue;
        c->fixed_carrier[n].node = i;
        c->fixed_carrier[n].tree = m->node[i].tree;
        of_node[i] = n++;
    }
    while (t <= m->n_tree)
        c->carrier_start[t++] = n;
    for (int32_t g = 0, k = 0; k < c->n_collision_body; k++) {
        c->fixed_carrier[k].first_geom = g;
        while (g < m->n_geom && m->geom[g].node == c->fixed_carrier[k].node)
            c->carrier_of[g++] = k;
        c->fixed_carrier[k].end_geom = g;
    }
    for (int32_t g = 0; g < m->n_geom; g++) {
        us_quat q = m->geom[g].X_NG.q;
        c->is_plain[g] = q.x == 0 && q.y == 0 && q.z == 0;
        c->far[g] = greatest_distance(&m->geom[g]);
    }
    order_inwards(c);
    for (int32_t l = 0; l < m->n_loop; l++) {
        c->loop_carrier[2 * l] = m->loop[l].node_a < 0 ? 0 : of_node[m->loop[l].node_a];
        c->loop_carrier[2 * l + 1] = m->loop[l].node_b < 0 ? 0 : of_node[m->loop[l].node_b];
    }
    c->inv_inertia =
        usi_arena_alloc(&c->fixed, (size_t)(m->n_tree + 1) * sizeof *c->inv_inertia, _Alignof(usi_v4));
    if (!c->inv_inertia) return false;
    c->fall_speed = m->step * us_vec3_norm(m->gravity);
    for (int32_t k = 0; k < m->n_tree; k++) {
        if (m->tree[k].is_free_body) {
            invert_inertia(&m->node[m->tree[k].end - 1], c->inv_inertia[k]);
            c->has_free = true;
        } else {
            c->has_joints = true;
        }
        c->tree_mass[k] = 0;
    }
    for (int32_t i = 0; i < m->n_node; i++)
        c->tree_mass[m->node[i].tree] += m->node[i].com[3];
    return list_by_tree(c, m->n_coupling, coupling_tree, &c->coupling_start, &c->coupling_of_tree) &&
           list_by_tree(c, m->n_body, body_tree, &c->body_start, &c->body_of_tree);
}

static us_status make_broad(usi_contacts *c) {
    const us_model *m = c->model;
    usi_broad_pair *excluded =
        usi_arena_alloc(&c->fixed, (size_t)(m->n_exclusion + 1) * sizeof *excluded, _Alignof(usi_broad_pair));
    if (!excluded) return US_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_exclusion; i++)
        excluded[i] = (usi_broad_pair){m->exclusion[i].a + 1, m->exclusion[i].b + 1};
    usi_broad_def def = {.max_box = m->n_geom,
                         .n_body = m->n_body + 1,
                         .max_pair = c->max_pair,
                         .excluded = excluded,
                         .n_excluded = m->n_exclusion,
                         .allocator = &c->allocator};
    return usi_broad_create(&def, &c->broad, NULL);
}

// The largest island that Newton's method can meet: all robots, and as many free bodies as it takes on.
static size_t work_bytes(const us_model *m) {
    size_t n = 0, trees = 0, free_bodies = 0;
    for (int32_t t = 0; t < m->n_tree; t++) {
        if (m->tree[t].is_free_body)
            free_bodies++;
        else {
            n += (size_t)(m->tree[t].end - m->tree[t].first + 3) / 4 * 4;
            trees++;
        }
    }
    if (free_bodies > MAX_NEWTON_BODIES && trees == 0) free_bodies = MAX_NEWTON_BODIES;
    size_t sum = n + 8 * free_bodies, most = (size_t)1 << 27;
    size_t bytes = sum * sum * 3 * sizeof(double) + (trees + free_bodies) * (trees + free_bodies) * 64 +
                   ((size_t)1 << 20);
    return bytes < most ? bytes : most;
}

// Room for the matrices of islands of several free bodies.
static bool make_layouts(usi_contacts *c) {
    const us_model *m = c->model;
    int32_t n_free = 0;
    for (int32_t t = 0; t < m->n_tree; t++)
        n_free += m->tree[t].is_free_body;
    if (n_free < 2) return true;
    int32_t n = m->n_tree < MAX_LAYOUTS ? m->n_tree : MAX_LAYOUTS;
    c->solve.layout = usi_arena_alloc(&c->fixed, (size_t)n * sizeof *c->solve.layout, _Alignof(usi_layout));
    if (!c->solve.layout) return false;
    for (; c->solve.n_layout < n; c->solve.n_layout++) {
        c->solve.layout[c->solve.n_layout] =
            (usi_layout){.memory = usi_arena_alloc(&c->fixed, USI_LAYOUT_BYTES, USI_ALIGN)};
        if (!c->solve.layout[c->solve.n_layout].memory) return false;
    }
    return true;
}

us_status usi_contacts_create(const us_model *m, us_dyn *dyn, usi_pool *pool, const us_allocator *allocator,
                              usi_contacts **out) {
    usi_contacts *c = usi_alloc(allocator, sizeof *c, _Alignof(usi_contacts));
    if (!c) return US_ERR_MEMORY;
    memset(c, 0, sizeof *c);
    c->model = m;
    c->dyn = dyn;
    c->fast = USI_FAST_ALL;
    c->pool = pool;
    c->allocator = *allocator;
    usi_arena_init(&c->fixed, allocator);
    c->n_geom = m->n_geom;
    c->islands.n_grouped = -1;
    c->max_contact = m->max_contact;
    int64_t all = (int64_t)m->n_geom * (m->n_geom - 1) / 2, most = 64 + 4 * (int64_t)m->max_contact;
    c->max_pair = (int32_t)(all < most ? all : most) + 1;
    c->max_block = usi_blocks_of_point(m) * c->max_contact + 2 * m->n_loop;
    us_status status = fill_fixed(c) && make_scratch(c) && usi_rows_create(c) ? US_OK : US_ERR_MEMORY;
    if (!status) status = make_broad(c);
    if (!status) status = usi_residency_create(c);
    int32_t n_thread = usi_pool_n_thread(pool);
    if (!status) {
        c->solve.work =
            usi_arena_alloc(&c->fixed, (size_t)n_thread * sizeof *c->solve.work, _Alignof(void *));
        size_t newton = work_bytes(m), sweeps = usi_gauss_seidel_bytes(c->n_collision_body, c->max_block);
        c->solve.work_size = newton > sweeps ? newton : sweeps;
        size_t rigid = usi_rigid_island_bytes(m);
        if (rigid > c->solve.work_size) c->solve.work_size = rigid;
        status = c->solve.work ? US_OK : US_ERR_MEMORY;
    }
    if (!status && !make_layouts(c)) status = US_ERR_MEMORY;
    for (int32_t i = 0; !status && i < n_thread; i++) {
        c->solve.work[i] = usi_arena_alloc(&c->fixed, c->solve.work_size, USI_ALIGN);
        if (!c->solve.work[i]) status = US_ERR_MEMORY;
    }
    if (status) {
        usi_contacts_destroy(c);
        return status;
    }
    *out = c;
    return US_OK;
}

void usi_contacts_destroy(usi_contacts *c) {
    if (!c) return;
    us_allocator a = c->allocator;
    usi_residency_destroy(c);
    usi_broad_destroy(c->broad);
    usi_arena_fini(&c->fixed);
    usi_release(&a, c->block_memory, c->block_size, USI_ALIGN);
    usi_release(&a, c, sizeof *c, _Alignof(usi_contacts));
}

void usi_contacts_poison(usi_contacts *c) {
    memset(c->block_memory, 0xff, c->block_size);
    for (int32_t i = 0; i < c->solve.n_layout; i++) {
        memset(c->solve.layout[i].memory, 0xff, USI_LAYOUT_BYTES);
        c->solve.layout[i].n_unit = 0;
    }
    c->collide.is_fat_valid = false;
    c->islands.n_grouped = -1;
    c->collide.n_near = c->collide.n_touch = c->collide.n_point = c->islands.n_island =
        c->collide.n_soil_contact = 0;
}

// ---------------------------------------------------------------- islands

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

static int32_t tree_of(const usi_contacts *c, int32_t geom) { return c->model->geom[geom].tree; }

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
        int32_t a = tree_of(c, c->collide.touch_now[i].geom_a),
                b = tree_of(c, c->collide.touch_now[i].geom_b);
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

// Whether every contact is between one tree and the world, nothing closes a loop in it, and it is not a free
// body: then it is solved joint by joint (branch.c).
static usi_island_kind kind_of(const usi_contacts *c, const usi_island *s) {
    const us_model *m = c->model;
    bool all_free = true;
    for (int32_t i = 0; i < s->n_tree; i++)
        all_free = all_free && m->tree[c->islands.members[s->first_tree + i]].is_free_body;
    if (m->solver == USI_SOLVER_RIGID_DIRECT || m->solver == USI_SOLVER_RIGID_ITERATIVE)
        return USI_ISLAND_RIGID;
    bool can_sweep = all_free && s->most_mass <= MAX_MASS_RATIO * s->least_mass;
    if (can_sweep && (m->solver == USI_SOLVER_GAUSS_SEIDEL || s->n_tree > MAX_NEWTON_BODIES))
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
        if (is_active && tree_of(c, t->geom_a) >= 0 && tree_of(c, t->geom_b) >= 0) return USI_ISLAND_BLOCKS;
        i += t->n;
    }
    return USI_ISLAND_BRANCH;
}

// What does not depend on the step. Member by member: what compilers make of a whole structure of this size
// is much slower.
static void clear_island(usi_island *s) {
    s->n_tree = s->n_body = s->n_block = s->n_point = 0;
    s->load = s->most_mass = 0;
    s->least_mass = INFINITY;
}

// Islands follow from which shapes touch, and at how many points: as long as these are the same, the last
// ones hold.
static bool are_kept(usi_contacts *c) {
    if (!usi_is_fast(c, USI_FAST_ISLANDS) || c->pushed || c->islands.n_grouped != c->collide.n_touch)
        return false;
    for (int32_t i = 0; i < c->collide.n_touch; i++) {
        const usi_touch *t = &c->collide.touch_now[i];
        const usi_grouped *g = &c->islands.grouped[i];
        if ((t->geom_a ^ g->geom_a) | (t->geom_b ^ g->geom_b) | (t->n ^ g->n) |
            (c->collide.may_press[i] ^ g->may_press))
            return false;
    }
    return true;
}

static double mass_of(const usi_contacts *c, const usi_collision_body *k) {
    return k->node < 0 ? INFINITY : c->tree_mass[k->tree];
}
static double reduced_mass(const usi_contacts *c, const usi_collision_body *A, const usi_collision_body *B) {
    double a = mass_of(c, A), b = mass_of(c, B);
    return isinf(a) ? b : isinf(b) ? a : a * b / (a + b);
}

static void find_groups(usi_contacts *c) {
    const us_model *m = c->model;
    double g = us_vec3_norm(m->gravity);
    join_trees(c);
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
        s->n_body += c->carrier_start[t + 1] - c->carrier_start[t];
        s->load += mass * g;
        s->least_mass = mass < s->least_mass ? mass : s->least_mass;
        s->most_mass = mass > s->most_mass ? mass : s->most_mass;
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
        n_block += usi_blocks_of_point(m) * s->n_point + s->n_block;
        s->n_tree = s->n_body = s->n_point = 0;
    }
    for (int32_t t = 0; t < m->n_tree; t++) {
        if (c->islands.tree[t].island < 0) continue;
        usi_island *s = &c->islands.island[c->islands.tree[t].island];
        c->islands.members[s->first_tree + s->n_tree++] = t;
        for (int32_t k = c->carrier_start[t]; k < c->carrier_start[t + 1]; k++)
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
        int32_t a = c->carrier_of[t->geom_a], b = c->carrier_of[t->geom_b];
        c->islands.grouped[i] = (usi_grouped){
            .geom_a = t->geom_a,
            .geom_b = t->geom_b,
            .n = t->n,
            .may_press = c->collide.may_press[i],
            .collision_body_a = a,
            .collision_body_b = b,
            .material_b = m->geom[t->geom_b].material,
            .mass = reduced_mass(c, &c->collide.collision_body[a], &c->collide.collision_body[b]),
            .push = m->geom[t->geom_a].has_region ? MAX_RISE : MAX_PUSH};
    }
    c->islands.n_grouped = c->pushed ? -1 : c->collide.n_touch;
    for (int32_t i = 0; i < c->islands.n_island; i++)
        c->islands.island[i].kind = (int32_t)kind_of(c, &c->islands.island[i]);
}

void usi_find_islands(usi_contacts *c) {
    if (!are_kept(c)) find_groups(c);
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        usi_island *s = &c->islands.island[i];
        s->n_iteration = s->refused = s->n_impact = s->round = 0;
        s->share = s->low = s->high = s->low_work = s->high_work = 0;
        s->failed = s->is_lagged = s->is_again = false;
        for (int32_t k = 0; k < s->n_body; k++)
            c->collide.collision_body[c->islands.collision_body_of[s->first_body + k]].body = k;
        // All twists are about the first tree's place: near enough to everything in the island.
        int32_t t = c->islands.members[s->first_tree];
        s->O = c->model->tree[t].is_free_body
                   ? c->collide.collision_body[c->islands.collision_body_of[s->first_body]].p
                   : c->dyn->origin[t];
    }
}

// ---------------------------------------------------------------- solve

typedef struct solve_context {
    usi_contacts *c;
    const usi_contact_state *now;
    usi_contact_state *next;
    const usi_contact_input *push;
} solve_context;

static void sweep(usi_contacts *c, usi_island *s, int32_t thread) {
    s->n_iteration +=
        usi_gauss_seidel(&c->solve.body[s->first_body], s->n_body, &c->rows.block[s->first_block], s->n_block,
                         MIN_SWEEPS, MAX_SWEEPS, 1e-5, c->solve.work[thread]);
    const usi_free *body = &c->solve.body[s->first_body];
    for (int32_t i = 0; i < s->n_block; i++) {
        const usi_block *k = &c->rows.block[s->first_block + i];
        usi_v4 w = usi_v4_zero(), v = w;
        if (k->a >= 0) {
            w = body[k->a].w;
            v = body[k->a].v;
        }
        if (k->b_ >= 0) {
            w -= body[k->b_].w;
            v -= body[k->b_].v;
        }
        for (int j = 0; j < 3; j++)
            c->solve.u[3 * (s->first_block + i) + j] = usi_v4_sum(k->m[j] * w + k->d[j] * v);
    }
}

static void solve_rows(usi_contacts *c, usi_island *s, const usi_contact_input *push, int32_t thread) {
    switch ((usi_island_kind)s->kind) {
    case USI_ISLAND_GAUSS_SEIDEL:
        sweep(c, s, thread);
        break;
    case USI_ISLAND_RIGID:
        usi_rigid_island(c, s, push, thread);
        break;
    default:
        usi_newton(c, s, push, thread);
        break;
    }
}

// Points without rows that the solution goes through: from now on they have rows. A point without rows has no
// impulse, and while the solution ends with a gap at it that is what its law asks for: with none of these the
// solution is that of all points.
static bool find_missed(usi_contacts *c, usi_island *s) {
    const usi_free *body = &c->solve.body[s->first_body];
    const double h = c->model->step;
    usi_v4 w = usi_v4_zero(), v = w;
    bool any = false;
    for (int32_t i = 0, touch = -1; i < s->n_point; i++) {
        usi_point_now *p = &c->collide.point[c->islands.order[s->first_point + i]];
        if (p->may_press) continue;
        usi_grouped *pair = &c->islands.grouped[p->touch];
        if (p->touch != touch) {
            touch = p->touch;
            const int32_t a = c->collide.collision_body[pair->collision_body_a].body,
                          b = c->collide.collision_body[pair->collision_body_b].body;
            w = v = usi_v4_zero();
            if (a >= 0) {
                w = body[a].w;
                v = body[a].v;
            }
            if (b >= 0) {
                w -= body[b].w;
                v -= body[b].v;
            }
        }
        if (p->gap + h * usi_v4_dot(v + usi_v4_cross(w, p->p - s->O), p->n) >= 0) continue;
        // The pair's entry changes too, so that the islands are found anew in the next step.
        p->may_press = c->collide.may_press[touch] = pair->may_press = any = true;
    }
    if (any) {
        s->kind = (int32_t)kind_of(c, s);
        s->is_again = true;
    }
    return any;
}

static void solve_one(void *context, int32_t i, int32_t thread) {
    solve_context *x = context;
    usi_contacts *c = x->c;
    usi_island *s = &c->islands.island[i];
    do {
        if (!usi_make_rows(c, s, x->now, x->next, thread)) {
            s->failed = true;
            return;
        }
        if (s->n_impact > 0) usi_impact_start(c, s);
        do
            solve_rows(c, s, x->push, thread);
        while (s->n_impact > 0 && usi_impact_again(c, s, x->next));
    } while (s->n_skipped > 0 && !s->failed && find_missed(c, s));
    usi_keep_rows(c, s, x->now, x->next);
}

// Adds an impulse along a block's rows to a ghost's link: about O as forces F and moments N, at the link's
// origin N - (p - O) x F.
static void push_ghost(const usi_contacts *c, const usi_island *s, const usi_block *k, int32_t geom,
                       double sign, us_wrench *out_wrench, bool *out_is_touched) {
    const us_model *m = c->model;
    const usi_geom *g = &m->geom[geom];
    if (g->tree < 0 || c->ghost[g->tree] == USI_OWN) return;
    const usi_collision_body *collision_body = &c->collide.collision_body[c->carrier_of[geom]];
    usi_v4 f = usi_v4_zero(), n = f,
           at = collision_body->p + usi_to_world(collision_body, m->body[g->body].X_NB.p) - s->O;
    for (int j = 0; j < k->n; j++) {
        usi_v4 impulse = usi_v4_all(sign * k->g[j] / m->step);
        f += k->d[j] * impulse;
        n += k->m[j] * impulse;
    }
    us_wrench *w = &out_wrench[g->body];
    out_is_touched[g->body] = true;
    w->f = us_vec3_add(w->f, usi_v4_vec3(f));
    w->n = us_vec3_add(w->n, usi_v4_vec3(n - usi_v4_cross(at, f)));
}

void usi_contacts_pushes(const usi_contacts *c, us_wrench *out_wrench, bool *out_is_touched) {
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        const usi_island *s = &c->islands.island[i];
        for (int32_t b = s->first_block; b < s->first_block + s->n_block; b++) {
            const usi_block *k = &c->rows.block[b];
            if (k->point < 0) continue;
            const usi_touch *t = &c->collide.touch_now[c->collide.point[k->point].touch];
            int32_t tree_a = tree_of(c, t->geom_a), tree_b = tree_of(c, t->geom_b);
            // What a ghost gets from the ground and from itself its owner knows better.
            if (tree_a < 0 || tree_b < 0 || (c->ghost[tree_a] == USI_OWN) == (c->ghost[tree_b] == USI_OWN))
                continue;
            push_ghost(c, s, k, t->geom_a, 1, out_wrench, out_is_touched);
            push_ghost(c, s, k, t->geom_b, -1, out_wrench, out_is_touched);
        }
    }
}

bool usi_solve_islands(usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                       const usi_contact_input *push) {
    next->n_touch[0] = c->collide.n_touch;
    next->n_anchor[0] = c->collide.n_point;
    if (c->collide.n_touch)
        memcpy(next->touch, c->collide.touch_now, (size_t)c->collide.n_touch * sizeof *next->touch);
    solve_context x = {c, now, next, push};
    c->actuation = push->actuation;
    usi_free_start(c, push);
    usi_rows_start(c);
    usi_pool_run(c->pool, c->islands.n_island, 1, solve_one, &x);
    // Pairs that are near each other, and in no island.
    for (int32_t i = 0; i < c->collide.n_touch && c->islands.has_idle; i++) {
        const usi_touch *t = &c->collide.touch_now[i];
        for (int32_t k = 0; k < t->n && c->islands.tree[c->islands.touch_tree[i]].island < 0; k++)
            usi_keep_place(c, t->first + k, now, next);
    }
    usi_free_finish(c, push);
    bool ok = true;
    for (int32_t i = 0; i < c->islands.n_island; i++) {
        ok = ok && !c->islands.island[i].failed;
        c->n_iteration += c->islands.island[i].n_iteration;
        c->n_fallback += c->islands.island[i].is_lagged;
        c->n_solve++;
    }
    return ok;
}

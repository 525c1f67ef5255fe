// Contacts of a world: what never changes, scratch, and the work space of the solvers.
#include <string.h>

#include "contact/contact__collide.h"
#include "contact/contact__newton.h"
#include "contact/residency.h"

// Of so many trees, the first ones, matrices are kept: 1 MiB.
enum { MAX_LAYOUTS = 32 };

static void mark_collision_bodies(const us_model *m, int32_t *is_collision_body) {
    for (int32_t g = 0; g < m->n_geom; g++) {
        if (m->geom[g].node >= 0) is_collision_body[m->geom[g].node] = 1;
    }
    for (int32_t l = 0; l < m->n_loop; l++) {
        if (m->loop[l].node_a >= 0) is_collision_body[m->loop[l].node_a] = 1;
        if (m->loop[l].node_b >= 0) is_collision_body[m->loop[l].node_b] = 1;
    }
    for (int32_t t = 0; t < m->n_tree; t++) {
        if (m->tree[t].is_free_body) is_collision_body[m->tree[t].end - 1] = 1;
    }
}

int32_t usi_contacts_fields(const usi_contacts *c, usi_field *out, int32_t cap, size_t *out_size) {
    const us_model *m = c->model;
    const size_t n_collision_body = (size_t)c->n_collision_body, n_geom = (size_t)m->n_geom,
                 max_pair = (size_t)c->max_pair, n_tree = (size_t)m->n_tree,
                 max_contact = (size_t)c->max_contact, max_block = (size_t)c->max_block,
                 n_path = (size_t)m->n_path, n_pad = (size_t)m->n_pad, n_loose = (size_t)m->n_loose,
                 n_node = (size_t)m->n_node, max_soil_contact = m->n_soil > 0 ? max_contact : 0,
                 max_soil_here = m->n_soil_map > 0 ? max_soil_contact : 0,
                 max_ground_node = m->n_ground_model > 0 ? max_contact : 0;
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
#define CARVE_JOINTS(type, name, count, unit, about) CARVE(c->joints., type, name)
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

static double max_distance(const usi_geom *g) {
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

static bool carve_fixed(usi_contacts *c) {
    const us_model *m = c->model;
    c->body_of_geom =
        usi_arena_alloc(&c->fixed, (size_t)(m->n_geom + 1) * sizeof(int32_t), _Alignof(int32_t));
    c->far = usi_arena_alloc(&c->fixed, (size_t)(m->n_geom + 1) * sizeof(double), _Alignof(double));
    c->core = usi_arena_alloc(&c->fixed, (size_t)(m->n_geom + 1) * sizeof *c->core, _Alignof(usi_v4));
    c->is_plain = usi_arena_alloc(&c->fixed, (size_t)(m->n_geom + 1) * sizeof(bool), _Alignof(bool));
    c->tree_mass = usi_arena_alloc(&c->fixed, (size_t)(m->n_tree + 1) * sizeof(double), _Alignof(double));
    c->tree_body_start =
        usi_arena_alloc(&c->fixed, (size_t)(m->n_tree + 1) * sizeof(int32_t), _Alignof(int32_t));
    c->loop_body =
        usi_arena_alloc(&c->fixed, (size_t)(2 * m->n_loop + 1) * sizeof(int32_t), _Alignof(int32_t));
    c->inwards = usi_arena_alloc(&c->fixed, (size_t)(m->n_node + 1) * sizeof(int32_t), _Alignof(int32_t));
    c->inv_inertia =
        usi_arena_alloc(&c->fixed, (size_t)(m->n_tree + 1) * sizeof *c->inv_inertia, _Alignof(usi_v4));
    return c->inwards && c->body_of_geom && c->far && c->core && c->is_plain && c->tree_mass &&
           c->tree_body_start && c->loop_body && c->inv_inertia;
}

// Collision bodies: the world and the nodes that need one, tree by tree, each with its shapes. `of_node` gets
// the number of each node's.
static bool list_collision_bodies(usi_contacts *c, int32_t *of_node) {
    const us_model *m = c->model;
    memset(of_node, 0, (size_t)(m->n_node + 1) * sizeof *of_node);
    mark_collision_bodies(m, of_node);
    c->n_collision_body = 1;
    for (int32_t i = 0; i < m->n_node; i++)
        c->n_collision_body += of_node[i];
    c->fixed_body = usi_arena_alloc(&c->fixed, (size_t)c->n_collision_body * sizeof *c->fixed_body,
                                    _Alignof(usi_collision_body));
    c->slow = usi_arena_alloc(&c->fixed, (size_t)c->n_collision_body * sizeof *c->slow, _Alignof(usi_slow));
    if (!c->fixed_body || !c->slow) return false;
    memset(c->fixed_body, 0, (size_t)c->n_collision_body * sizeof *c->fixed_body);
    c->fixed_body[0].node = c->fixed_body[0].tree = -1;
    int32_t n = 1, t = 0;
    for (int32_t i = 0; i < m->n_node; i++) {
        while (t <= m->node[i].tree)
            c->tree_body_start[t++] = n;
        if (!of_node[i]) continue;
        c->fixed_body[n].node = i;
        c->fixed_body[n].tree = m->node[i].tree;
        of_node[i] = n++;
    }
    while (t <= m->n_tree)
        c->tree_body_start[t++] = n;
    for (int32_t g = 0, k = 0; k < c->n_collision_body; k++) {
        c->fixed_body[k].body = -1;
        c->fixed_body[k].first_geom = g;
        while (g < m->n_geom && m->geom[g].node == c->fixed_body[k].node)
            c->body_of_geom[g++] = k;
        c->fixed_body[k].end_geom = g;
    }
    return true;
}

static void fill_trees(usi_contacts *c) {
    const us_model *m = c->model;
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
}

static bool fill_fixed(usi_contacts *c) {
    const us_model *m = c->model;
    int32_t *of_node =
        usi_arena_alloc(&c->fixed, (size_t)(m->n_node + 1) * sizeof *of_node, _Alignof(int32_t));
    if (!of_node || !carve_fixed(c) || !list_collision_bodies(c, of_node)) return false;
    for (int32_t g = 0; g < m->n_geom; g++) {
        us_quat q = m->geom[g].X_NG.q;
        c->is_plain[g] = q.x == 0 && q.y == 0 && q.z == 0;
        c->far[g] = max_distance(&m->geom[g]);
        c->core[g] = usi_core_of(&m->geom[g]);
        c->has_skin = c->has_skin || m->geom[g].geom.kind == US_GEOM_MESH ||
                      m->geom[g].geom.kind == US_GEOM_HEIGHT_FIELD;
    }
    for (int32_t k = 0; k < c->n_collision_body; k++)
        c->slow[k] = usi_slow_of(c, &c->fixed_body[k]);
    order_inwards(c);
    for (int32_t l = 0; l < m->n_loop; l++) {
        c->loop_body[2 * l] = m->loop[l].node_a < 0 ? 0 : of_node[m->loop[l].node_a];
        c->loop_body[2 * l + 1] = m->loop[l].node_b < 0 ? 0 : of_node[m->loop[l].node_b];
    }
    c->fall_speed = m->step * us_vec3_norm(m->gravity);
    fill_trees(c);
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
    if (free_bodies > USI_MAX_NEWTON_BODIES && trees == 0) free_bodies = USI_MAX_NEWTON_BODIES;
    size_t sum = n + 8 * free_bodies, max = (size_t)1 << 27;
    size_t bytes = sum * sum * 3 * sizeof(double) + (trees + free_bodies) * (trees + free_bodies) * 64 +
                   ((size_t)1 << 20);
    return bytes < max ? bytes : max;
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
                              int32_t max_contact, usi_contacts **out) {
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
    c->max_contact = max_contact;
    int64_t all = (int64_t)m->n_geom * (m->n_geom - 1) / 2, max = 64 + 4 * (int64_t)max_contact;
    c->max_pair = (int32_t)(all < max ? all : max) + 1;
    c->max_block = usi_blocks_of_point(m) * c->max_contact + 2 * m->n_loop;
    us_status status = fill_fixed(c) && make_scratch(c) && usi_rows_create(c) && usi_shared_pairs_create(c)
                           ? US_OK
                           : US_ERR_MEMORY;
    if (!status) status = make_broad(c);
    if (!status) status = usi_residency_create(c);
    int32_t n_thread = usi_pool_n_thread(pool);
    if (!status) {
        c->solve.work =
            usi_arena_alloc(&c->fixed, (size_t)n_thread * sizeof *c->solve.work, _Alignof(void *));
        c->solve.newton_size = work_bytes(m);
        size_t newton = c->solve.newton_size + (size_t)c->max_block * USI_NEWTON_BLOCK_BYTES,
               sweeps = usi_gauss_seidel_bytes(c->n_collision_body, c->max_block),
               four = usi_gauss_seidel_four_bytes(c->n_collision_body, c->max_block);
        c->solve.work_size = newton > sweeps ? newton : sweeps;
        if (four > c->solve.work_size) c->solve.work_size = four;
        size_t rigid = usi_rigid_island_bytes(m, max_contact);
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
    c->collide.has_ends = true;
    c->islands.n_grouped = -1;
    c->collide.n_near = c->collide.n_touch = c->collide.n_point = c->islands.n_island =
        c->collide.n_soil_contact = 0;
}

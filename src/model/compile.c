// From the spec to the model: check the whole (check.c), find the tree and its nodes (nodes.c), what things
// are made of (materials.c) and what collides (shapes.c), then lay out and fill the arrays. All arrays but
// those of shapes and materials are one block, whose size is known before it is allocated.
#include "model/compile.h"

#include <stdio.h>
#include <string.h>

// The rotor inertia given to a joint that would have none at all, so that its acceleration is defined. kg m^2
// or kg.
static const double MIN_ARMATURE = 1e-4;

us_status usi_build_warn(usi_build *b, const char *file, int32_t line, const char *element,
                         const char *remedy, const char *message) {
    us_error warning;
    us_place place = {file, line, 0, element};
    us_error_set(&warning, US_OK, &place, remedy, "%s", message);
    // Once is enough: for the axes of one joint, and when the spec is compiled again.
    for (int32_t i = 0; i < b->spec->n_warning; i++) {
        if (memcmp(&b->spec->warning[i], &warning, sizeof warning) == 0) return US_OK;
    }
    us_status status = us_spec_add_warning(b->spec, &warning);
    return status ? usi_build_out_of_memory(b) : US_OK;
}

static us_status warn_joint(usi_build *b, const us_joint_def *j, const char *remedy, const char *message) {
    char element[128];
    snprintf(element, sizeof element, "joint \"%.100s\"", j->name);
    return usi_build_warn(b, j->file, j->line, element, remedy, message);
}

static us_status allocate(usi_build *b, us_model *m) {
    usi_field f[USI_MODEL_MAX_FIELDS];
    usi_model_fields(m, f, USI_MODEL_MAX_FIELDS, &m->block_size);
    m->block = usi_alloc(&m->allocator, m->block_size, USI_ALIGN);
    if (!m->block) return usi_build_out_of_memory(b);
    memset(m->block, 0, m->block_size);
    int32_t i = 0;
#define CARVE(type, name, count, unit, about) m->name = (type *)(void *)((char *)m->block + f[i++].offset);
    USI_MODEL_FIELDS(CARVE)
#undef CARVE
    return US_OK;
}

// Depth of the deepest part decides the size of the path tables: a row per node, from the root to itself.
static us_status count_paths(usi_build *b, us_model *m) {
    int32_t *depth = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *depth, 4);
    if (!depth) return usi_build_out_of_memory(b);
    int64_t total = 0;
    for (int32_t i = 0; i < b->n_node; i++) {
        depth[i] = b->node[i].parent < 0 ? 1 : depth[b->node[i].parent] + 1;
        total += depth[i];
    }
    if (total > 200000000)
        return us_error_set(b->err, US_ERR_LIMIT, NULL, "shorten the longest chain",
                            "the chains are too long: their paths need %lld entries", (long long)total);
    m->n_path = (int32_t)total;
    return US_OK;
}

static void fill_paths(us_model *m) {
    int32_t at = 0;
    for (int32_t i = 0; i < m->n_node; i++) {
        int32_t parent = m->node[i].parent, n = 0;
        m->row_start[i] = at;
        if (parent >= 0) {
            n = m->row_start[parent + 1] - m->row_start[parent];
            memcpy(m->path + at, m->path + m->row_start[parent], (size_t)n * sizeof *m->path);
        }
        m->path[at + n] = i;
        at += n + 1;
        m->row_start[i + 1] = at;
    }
}

static us_status fill_joints(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    for (int32_t k = 0; k < s->n_joint; k++) {
        const us_joint_def *j = &b->joint_def[k];
        const usi_joint *at = &m->joint[k];
        bool is_ball = j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING;
        for (int32_t i = 0; i < at->n_q; i++)
            m->q_start[at->first_q + i] = j->q0[i];
        if (is_ball) {
            us_quat q = us_quat_normalize((us_quat){j->q0[0], j->q0[1], j->q0[2], j->q0[3]});
            memcpy(&m->q_start[at->first_q], &q, sizeof q);
        }
        for (int32_t i = 0; i < at->n_v; i++) {
            int32_t v = at->first_v + i;
            m->v_start[v] = j->v0[i];
            m->armature[v] = j->armature;
            m->damping[v] = j->damping;
            m->stiffness[v] = j->stiffness;
            m->rest[v] = j->rest;
            bool is_empty = b->axis_inertia[v] + j->armature < 1e-15;
            if (!is_empty && b->lost_inertia[v] == 0) continue;
            // What is added must not be lost in the rounding of what is there.
            m->armature[v] = is_empty ? MIN_ARMATURE : fmax(MIN_ARMATURE, 1e3 * b->lost_inertia[v]);
            if (is_ball && i > 0 && i < 3 && b->lost_inertia[v - 1] > 0) continue;  // told already
            char message[200];
            snprintf(message, sizeof message, "%s: an armature of %.3g (kg m^2 or kg) is used",
                     is_empty ? "nothing with inertia about its axis hangs on this joint"
                              : "nothing resists a motion about its axis when the joints beyond give way",
                     m->armature[v]);
            us_status status = warn_joint(
                b, j, "give the link beyond it mass and inertia, or the joint an armature", message);
            if (status) return status;
        }
        if (usi_build_has_limit(j) && (j->q0[0] < j->lower || j->q0[0] > j->upper)) {
            us_status status = warn_joint(b, j, "start between the limits, or widen them",
                                          "it starts outside its limits: the limit pushes it back");
            if (status) return status;
        }
    }
    return US_OK;
}

static us_status fill_drives(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    for (int32_t i = 0; i < s->n_drive; i++) {
        const us_drive_def *d = &s->drive[i];
        usi_drive *out = &m->drive[i];
        if (d->joint < 0 || d->joint >= s->n_joint)
            return usi_build_fail(b, US_ERR_NAME, d->file, d->line, "drive", d->name,
                                  "name a joint that exists", "its joint does not exist");
        const us_joint_type type = s->joint[d->joint].type;
        bool is_ball = type == US_JOINT_SPHERICAL || type == US_JOINT_FLOATING;
        if (d->coordinate < 0 || d->coordinate >= us_joint_type_n_v(type) || is_ball) {
            return usi_build_fail(b, US_ERR_VALUE, d->file, d->line, "drive", d->name,
                                  "drive a coordinate of a revolute, continuous, prismatic, helical, "
                                  "cylindrical, universal or planar joint",
                                  "its joint has no such coordinate");
        }
        const double x[] = {d->kp, d->kd, d->position, d->velocity, d->torque, d->limit};
        if (!usi_all_finite(x, 6) || d->kp < 0 || d->kd < 0 || d->limit < 0) {
            return usi_build_fail(b, US_ERR_VALUE, d->file, d->line, "drive", d->name,
                                  "write finite numbers, gains and limit of 0 or more",
                                  "a gain or limit is negative, or a number is not finite");
        }
        double effort = s->joint[d->joint].effort;
        out->kp = d->kp;
        out->kd = d->kd;
        out->limit = d->limit > 0 ? d->limit : effort > 0 ? effort : INFINITY;
        out->position = d->position;
        out->velocity = d->velocity;
        out->torque = d->torque;
        const usi_joint *j = &m->joint[d->joint];
        out->joint = d->joint;
        out->battery = usi_build_battery_of(b, s->joint[d->joint].group);
        out->v = out->q = -1;
        if (!usi_build_is_idle(s, d)) {
            out->v = j->first_v + d->coordinate;
            out->q = j->first_q + d->coordinate;
        }
    }
    return US_OK;
}

static us_status fill_couplings(usi_build *b, us_model *m, int32_t *row) {
    const us_spec *s = b->spec;
    for (int32_t i = 0; i < s->n_coupling; i++) {
        const us_coupling_def *c = &s->coupling[i];
        if (!usi_build_couples(b, c)) continue;
        usi_coupling *out = &m->coupling[*row];
        out->n_term = c->n_term;
        out->offset = c->offset;
        out->row = (*row)++;
        if (c->n_term < 1)
            return usi_build_fail(b, US_ERR_VALUE, c->file, c->line, "coupling", c->name,
                                  "give it at least one term", "it has no terms");
        for (int32_t k = 0; k < c->n_term; k++) {
            if (c->joint[k] < 0 || c->joint[k] >= s->n_joint)
                return usi_build_fail(b, US_ERR_NAME, c->file, c->line, "coupling", c->name,
                                      "name joints that exist", "a joint of it does not exist");
            const usi_joint *j = &m->joint[c->joint[k]];
            bool is_ball = j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING;
            if (c->coordinate[k] < 0 || c->coordinate[k] >= j->n_v || is_ball) {
                return usi_build_fail(
                    b, US_ERR_VALUE, c->file, c->line, "coupling", c->name,
                    "couple coordinates of joints that are not fixed, spherical or floating",
                    "a joint of it has no such coordinate");
            }
            if (!isfinite(c->factor[k]) || !isfinite(c->offset))
                return usi_build_fail(b, US_ERR_VALUE, c->file, c->line, "coupling", c->name,
                                      "write finite numbers", "a factor or the offset is not finite");
            out->factor[k] = c->factor[k];
            out->v[k] = j->first_v + c->coordinate[k];
            out->q[k] = j->first_q + c->coordinate[k];
        }
    }
    return US_OK;
}

// Its links and frames as they are written.
static us_status check_loop(usi_build *b, const us_loop_def *l) {
    const us_spec *s = b->spec;
    const us_pose X_AC = l->X_AC, X_BD = l->X_BD;
    if (l->link_a < US_WORLD || l->link_a >= s->n_link || l->link_b < US_WORLD || l->link_b >= s->n_link) {
        return usi_build_fail(b, US_ERR_NAME, l->file, l->line, "loop", l->name,
                              "name links that exist, or world", "one of its links does not exist");
    }
    if (!usi_all_finite(&X_AC.q.w, 4) || !usi_all_finite(&X_AC.p.x, 3) || !usi_all_finite(&X_BD.q.w, 4) ||
        !usi_all_finite(&X_BD.p.x, 3)) {
        return usi_build_fail(b, US_ERR_VALUE, l->file, l->line, "loop", l->name, "write finite numbers",
                              "one of its frames is not finite");
    }
    if (!usi_is_rotation(X_AC.q) || !usi_is_rotation(X_BD.q)) {
        return usi_build_fail(b, US_ERR_VALUE, l->file, l->line, "loop", l->name,
                              "write quaternions of length 1, w first",
                              "the quaternion of one of its frames is 0 or too long");
    }
    return US_OK;
}

static us_status fill_loops(usi_build *b, us_model *m, int32_t *row) {
    const us_spec *s = b->spec;
    for (int32_t i = 0; i < s->n_loop; i++) {
        const us_loop_def *l = &s->loop[i];
        us_status status = check_loop(b, l);
        if (status) return status;
        usi_loop *out = &m->loop[i];
        us_pose X_AC = l->X_AC, X_BD = l->X_BD;
        X_AC.q = us_quat_normalize(X_AC.q);
        X_BD.q = us_quat_normalize(X_BD.q);
        out->body_a = l->link_a;
        out->body_b = l->link_b;
        out->node_a = l->link_a < 0 ? -1 : m->body[l->link_a].node;
        out->node_b = l->link_b < 0 ? -1 : m->body[l->link_b].node;
        if (out->node_a == out->node_b)
            return usi_build_fail(b, US_ERR_CONSTRAINT, l->file, l->line, "loop", l->name,
                                  "close it between links that move against each other",
                                  "its two links cannot move against each other");
        out->X_AC = l->link_a < 0 ? X_AC : us_pose_mul(m->body[l->link_a].X_NB, X_AC);
        out->X_BD = l->link_b < 0 ? X_BD : us_pose_mul(m->body[l->link_b].X_NB, X_BD);
        out->n_axis = l->type == US_LOOP_POINT ? 0 : l->type == US_LOOP_HINGE ? 2 : 3;
        // Hinge: C's z is perpendicular to D's x and y. Weld: x to y, y to z, z to x.
        static const int32_t c[2][3] = {{2, 2, 0}, {0, 1, 2}}, d[2][3] = {{0, 1, 0}, {1, 2, 0}};
        memcpy(out->axis_c, c[l->type == US_LOOP_WELD], sizeof out->axis_c);
        memcpy(out->axis_d, d[l->type == US_LOOP_WELD], sizeof out->axis_d);
        out->row = *row;
        *row += 3 + out->n_axis;
    }
    return US_OK;
}

static us_status fill_constraints(usi_build *b, us_model *m) {
    int32_t row = 0;
    us_status status = fill_couplings(b, m, &row);
    return status ? status : fill_loops(b, m, &row);
}

static int32_t count_couplings(const usi_build *b) {
    int32_t n = 0;
    for (int32_t i = 0; i < b->spec->n_coupling; i++)
        n += usi_build_couples(b, &b->spec->coupling[i]);
    return n;
}

static int32_t count_rows(const us_spec *s, int32_t n_coupling) {
    int32_t n = n_coupling;
    for (int32_t i = 0; i < s->n_loop; i++)
        n += s->loop[i].type == US_LOOP_POINT ? 3 : s->loop[i].type == US_LOOP_HINGE ? 5 : 6;
    return n;
}

static double joint_friction(const usi_build *b, int32_t joint) {
    return b->joint_def[joint].friction + b->joint_def[joint].blockage;
}

// Which nodes belong to which tree, and which trees nothing outside them holds.
static void fill_trees(const usi_build *b, us_model *m) {
    for (int32_t i = 0; i < m->n_tree; i++)
        m->tree[i] = (usi_tree){m->n_node, 0, 0, 0, -1};
    for (int32_t i = 0; i < m->n_node; i++) {
        usi_tree *t = &m->tree[m->node[i].tree];
        if (i < t->first) t->first = i;
        t->end = i + 1;
    }
    for (int32_t k = 0; k < m->n_tree; k++) {
        usi_tree *t = &m->tree[k];
        bool is_free = m->node[t->first].kind == USI_NODE_FREE;
        for (int32_t i = t->first; is_free && i < t->first + 6; i++)
            is_free = m->damping[i] == 0 && m->armature[i] == 0 && joint_friction(b, m->node[i].joint) == 0;
        t->is_free_tree = is_free;
        t->is_free_body = is_free && t->end - t->first == 6;
    }
    for (int32_t i = 0; i < m->n_loop; i++) {
        const usi_loop *l = &m->loop[i];
        int32_t ta = l->node_a < 0 ? -1 : m->node[l->node_a].tree,
                tb = l->node_b < 0 ? -1 : m->node[l->node_b].tree;
        if (ta == tb) continue;
        if (ta >= 0) m->tree[ta].is_free_tree = m->tree[ta].is_free_body = 0;
        if (tb >= 0) m->tree[tb].is_free_tree = m->tree[tb].is_free_body = 0;
    }
    for (int32_t i = 0; i < m->n_coupling; i++) {
        const usi_coupling *c = &m->coupling[i];
        for (int32_t k = 1; k < c->n_term; k++) {
            int32_t ta = m->node[c->v[0]].tree, tb = m->node[c->v[k]].tree;
            if (ta != tb) m->tree[ta].is_free_tree = m->tree[tb].is_free_tree = 0;
        }
    }
}

static void fill_names(const us_spec *s, us_model *m) {
    int32_t at = 0;
#define COPY(list, n)                                   \
    for (int32_t i = 0; i < (n); i++) {                 \
        size_t length = strlen(s->list[i].name) + 1;    \
        memcpy(m->names + at, s->list[i].name, length); \
        m->list##_name[i] = at;                         \
        at += (int32_t)length;                          \
    }
    for (int32_t i = 0; i < s->n_link; i++) {
        size_t length = strlen(s->link[i].name) + 1;
        memcpy(m->names + at, s->link[i].name, length);
        m->body_name[i] = at;
        at += (int32_t)length;
    }
    COPY(joint, s->n_joint)
    COPY(drive, s->n_drive)
    for (int32_t i = 0; i < m->n_material; i++) {
        size_t length = strlen(m->material[i].name) + 1;
        memcpy(m->names + at, m->material[i].name, length);
        m->material_name[i] = at;
        at += (int32_t)length;
    }
    for (int32_t i = 0, n = 0; i < s->n_network; i++) {
        if (!usi_build_has_battery(&s->network[i])) continue;
        const char *name = s->group[s->network[i].group].name;
        size_t length = strlen(name) + 1;
        memcpy(m->names + at, name, length);
        m->battery_name[n++] = at;
        at += (int32_t)length;
    }
#undef COPY
}

static us_status count_names(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    size_t n = 0;
    for (int32_t i = 0; i < s->n_link; i++)
        n += strlen(s->link[i].name) + 1;
    for (int32_t i = 0; i < s->n_joint; i++)
        n += strlen(s->joint[i].name) + 1;
    for (int32_t i = 0; i < s->n_drive; i++)
        n += strlen(s->drive[i].name) + 1;
    for (int32_t i = 0; i < m->n_material; i++)
        n += strlen(m->material[i].name) + 1;
    for (int32_t i = 0; i < s->n_network; i++) {
        if (usi_build_has_battery(&s->network[i])) n += strlen(s->group[s->network[i].group].name) + 1;
    }
    if (n > INT32_MAX)
        return us_error_set(b->err, US_ERR_LIMIT, NULL, "shorten the names",
                            "the names are longer than 2 GiB together");
    m->n_names = (int32_t)n;
    return US_OK;
}

static us_status fill(usi_build *b, us_model *m) {
    us_spec *s = b->spec;
    m->gravity = s->world.gravity;
    m->sky = s->world.sky;
    m->step = s->world.step;
    m->tolerance = s->world.tolerance;
    m->integrator = s->world.integrator;
    m->seed = s->world.seed;
    m->n_node = b->n_node;
    m->n_q = b->n_q;
    m->n_tree = b->n_tree;
    m->n_body = s->n_link;
    m->n_joint = s->n_joint;
    m->n_drive = s->n_drive;
    m->n_coupling = count_couplings(b);
    m->n_loop = s->n_loop;
    m->n_row = count_rows(s, m->n_coupling);
    usi_build_count_batteries(b, m);
    m->n_pad = (m->n_node + 3) / 4 * 4;
    m->n_q_pad = (m->n_q + 3) / 4 * 4;
    m->is_flat = m->n_q == m->n_node;
    us_status status = usi_build_count_laws(b, m);
    if (!status) status = usi_build_materials(b, m);
    if (!status) status = usi_build_shapes(b, m);
    if (!status) status = count_paths(b, m);
    if (!status) status = count_names(b, m);
    if (!status) status = allocate(b, m);
    if (status) return status;
    if (m->n_node) memcpy(m->node, b->node, (size_t)m->n_node * sizeof *m->node);
    if (m->n_body) memcpy(m->body, b->body, (size_t)m->n_body * sizeof *m->body);
    if (m->n_joint) memcpy(m->joint, b->joint, (size_t)m->n_joint * sizeof *m->joint);
    if (m->n_exclusion) memcpy(m->exclusion, b->exclusion, (size_t)m->n_exclusion * sizeof *m->exclusion);
    if (m->n_loose) memcpy(m->loose, b->loose, (size_t)m->n_loose * sizeof *m->loose);
    for (int32_t i = 0; i < m->n_node; i++)
        m->total_mass += b->inertia[i].mass;
    fill_paths(m);
    fill_names(s, m);
    status = fill_joints(b, m);
    usi_build_batteries(b, m);
    if (!status) status = fill_drives(b, m);
    if (!status) status = fill_constraints(b, m);
    if (!status) status = usi_build_pairs(b, m);
    if (!status) status = usi_build_robots(b, m);
    if (status) return status;
    fill_trees(b, m);
    status = usi_build_laws(b, m);
    if (status) return status;
    const double settings[] = {m->gravity.x, m->gravity.y,          m->gravity.z,     m->step,
                               m->tolerance, (double)m->integrator, (double)m->solver};
    m->hash = us_hash_bytes(us_hash_bytes(m->seed, settings, sizeof settings), m->block, m->block_size);
    const us_sky *sky = &m->sky;
    const double place[] = {(double)sky->planet, sky->origin.latitude, sky->origin.longitude,
                            sky->origin.height,  sky->heading,         sky->date};
    if (sky->planet != US_PLANET_NONE) m->hash = us_hash_bytes(m->hash, place, sizeof place);
    m->hash = usi_materials_hash(m, usi_shapes_hash(m, m->hash));
    return US_OK;
}

static us_status keep_warnings(usi_build *b, us_model *m) {
    int32_t n = b->spec->n_warning;
    if (n == 0) return US_OK;
    us_error *to = usi_arena_alloc(&m->assets.arena, (size_t)n * sizeof *to, _Alignof(us_error));
    if (!to) return usi_build_out_of_memory(b);
    memcpy(to, b->spec->warning, (size_t)n * sizeof *to);
    m->warning = to;
    m->n_warning = n;
    return US_OK;
}

us_status us_model_compile(us_spec *spec, const us_allocator *allocator, us_model **out_model,
                           us_error *err) {
    if (!spec || !out_model)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a place for the model",
                            "us_model_compile: an argument is NULL");
    us_allocator a = allocator ? *allocator : us_allocator_default();
    usi_build b = {.spec = spec, .err = err};
    usi_arena_init(&b.arena, &a);
    us_model *m = NULL;
    us_status status = usi_build_check(&b);
    if (!status) status = usi_build_break(&b);
    if (!status) status = usi_build_sort(&b);
    if (!status) status = usi_build_nodes(&b);
    if (!status) status = usi_build_measure(&b);
    if (!status) status = usi_build_articulate(&b);
    if (!status) {
        m = usi_alloc(&a, sizeof *m, _Alignof(us_model));
        status = m ? US_OK : usi_build_out_of_memory(&b);
    }
    if (!status && m) {
        memset(m, 0, sizeof *m);
        m->allocator = a;
        usi_assets_init(&m->assets, &a);
        status = fill(&b, m);
        if (!status) status = keep_warnings(&b, m);
    }
    usi_arena_fini(&b.arena);
    if (status) {
        us_model_destroy(m);
        return status;
    }
    *out_model = m;
    return US_OK;
}

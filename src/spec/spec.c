// The editable description: growing lists of definitions whose texts live in one arena.
#include "spec/spec.h"

#include <string.h>

static const struct {
    const char *name;
    int32_t n_q, n_v;
} joint_types[] = {
#define JOINT_ROW(code, name, nq, nv) {name, nq, nv},
    US_JOINT_LIST(JOINT_ROW)
#undef JOINT_ROW
};

static bool is_joint_type(us_joint_type type) { return (unsigned)type < (unsigned)US_JOINT_COUNT; }
const char *us_joint_type_name(us_joint_type type) {
    return is_joint_type(type) ? joint_types[type].name : "?";
}
int32_t us_joint_type_n_q(us_joint_type type) { return is_joint_type(type) ? joint_types[type].n_q : 0; }
int32_t us_joint_type_n_v(us_joint_type type) { return is_joint_type(type) ? joint_types[type].n_v : 0; }

const char *us_integrator_name(us_integrator integrator) {
    static const char *const names[] = {"midpoint", "euler", "rk4", "adaptive"};
    return (unsigned)integrator < (unsigned)US_INTEGRATOR_COUNT ? names[integrator] : "?";
}

const char *us_shape_kind_name(us_shape_kind kind) {
    static const char *const names[] = {
        "box",  "sphere",    "cylinder",    "capsule", "mesh",       "lozenge",      "disc",  "triangle",
        "cone", "ellipsoid", "tetrahedron", "convex",  "half-space", "height-field", "union", "intersection"};
    return (unsigned)kind < (unsigned)US_SHAPE_COUNT ? names[kind] : "?";
}

us_world_settings us_world_settings_default(void) {
    us_world_settings d = {.name = "",
                           .gravity = {0, 0, -9.81},
                           .step = 1e-3,
                           .integrator = US_INTEGRATOR_MIDPOINT,
                           .tolerance = 1e-9,
                           .seed = 1};
    d.solver = "newton";
    d.fidelity = "";
    return d;
}

us_link_def us_link_def_default(void) {
    us_link_def d = {.name = "", .group = -1};
    return d;
}

us_joint_def us_joint_def_default(us_joint_type type) {
    us_joint_def d = {.name = "",
                      .group = -1,
                      .type = type,
                      .parent = US_WORLD,
                      .child = -1,
                      .axis = {1, 0, 0},
                      .axis2 = {0, 1, 0}};
    d.X_PF = us_pose_identity();
    if (type == US_JOINT_SPHERICAL || type == US_JOINT_FLOATING) d.q0[0] = 1;
    return d;
}

us_shape_def us_shape_def_default(us_shape_kind kind) {
    us_shape_def d = {.link = US_WORLD,
                      .kind = kind,
                      .is_visual = true,
                      .is_collision = true,
                      .rgba = {0.7f, 0.7f, 0.7f, 1.0f}};
    d.X_BG = us_pose_identity();
    d.size[0] = d.size[1] = d.size[2] = 1;
    d.group = 1;
    d.mask = UINT32_MAX;
    d.patch_depth = 0.5;
    d.patch_memory = 1e9;
    d.memory = 200e6;
    return d;
}

us_pair_def us_pair_def_default(void) {
    us_pair_def d = {.model = NULL};
    d.values = (us_pair_values){.static_friction = 0.90,
                                .kinetic_friction = 0.80,
                                .viscous = 0.50,
                                .normal_static = 0.35,
                                .rotational = 1.00,
                                .assumed_mass = 40,
                                .reference_speed = 1,
                                .damping_ratio = 1};
    return d;
}

us_coupling_def us_coupling_def_default(void) {
    us_coupling_def d = {.name = "", .group = -1};
    return d;
}

us_loop_def us_loop_def_default(us_loop_type type) {
    us_loop_def d = {.name = "", .group = -1, .type = type, .link_a = US_WORLD, .link_b = US_WORLD};
    d.X_AC = d.X_BD = us_pose_identity();
    return d;
}

us_drive_def us_drive_def_default(void) {
    us_drive_def d = {.name = "", .joint = -1};
    return d;
}

us_record_def us_record_def_default(void) {
    us_record_def d = {.file_name = ""};
    return d;
}

us_status us_spec_create(const us_allocator *allocator, us_spec **out_spec) {
    if (!out_spec) return US_ERR_ARG;
    us_allocator a = allocator ? *allocator : us_allocator_default();
    us_spec *spec = usi_alloc(&a, sizeof *spec, _Alignof(us_spec));
    if (!spec) return US_ERR_MEMORY;
    memset(spec, 0, sizeof *spec);
    usi_arena_init(&spec->texts, &a);
    spec->world = us_world_settings_default();
    spec->clock_rate = 200;
    *out_spec = spec;
    return US_OK;
}

void us_spec_destroy(us_spec *spec) {
    if (!spec) return;
    us_allocator a = spec->texts.allocator;
    for (int32_t i = 0; i < spec->n_network; i++)
        us_interface_release(spec->network[i].interface_);
#define FREE_LIST(type, list) \
    usi_release(&a, spec->list, (size_t)spec->cap_##list * sizeof(type), _Alignof(max_align_t));
    USI_SPEC_LISTS(FREE_LIST)
    FREE_LIST(us_interaction, interaction)
    FREE_LIST(us_soil_law, soil_law)
    FREE_LIST(us_ground_model, ground_model)
    FREE_LIST(const us_sensor_kind *, sensor_kind)
    FREE_LIST(us_network_def, network)
#undef FREE_LIST
    usi_arena_fini(&spec->texts);
    usi_release(&a, spec, sizeof *spec, _Alignof(us_spec));
}

// Replaces every text of a definition by a copy in the arena. Returns false when there is no memory.
static bool keep(us_spec *spec, const char **text) {
    bool ok = true;
    if (*text) *text = usi_arena_text(&spec->texts, *text, &ok);
    return ok;
}
static bool keep_group(us_spec *s, us_group_def *d) {
    return keep(s, &d->name) && keep(s, &d->file) && keep(s, &d->tags);
}
static bool keep_link(us_spec *s, us_link_def *d) { return keep(s, &d->name) && keep(s, &d->file); }
static bool keep_joint(us_spec *s, us_joint_def *d) { return keep(s, &d->name) && keep(s, &d->file); }

// A copy of n things of `each` bytes. Nothing stays nothing.
static bool keep_array(us_spec *s, const void **array, int32_t n, size_t each) {
    if (n == 0) *array = NULL;
    if (!*array) return true;
    void *copy = usi_arena_alloc(&s->texts, (size_t)n * each, 16);
    if (copy) memcpy(copy, *array, (size_t)n * each);
    *array = copy;
    return copy != NULL;
}

// Points and triangles of a mesh that many shapes show are kept once.
static bool share_mesh(const us_spec *s, us_shape_def *d) {
    for (int32_t i = 0; d->triangles && i < s->n_shape; i++) {
        const us_shape_def *known = &s->shape[i];
        if (!known->triangles || known->n_point != d->n_point || known->n_triangle != d->n_triangle) continue;
        if (memcmp(known->points, d->points, (size_t)d->n_point * sizeof *d->points) != 0) continue;
        if (memcmp(known->triangles, d->triangles, 3 * (size_t)d->n_triangle * sizeof *d->triangles) != 0)
            continue;
        d->points = known->points;
        d->triangles = known->triangles;
        return true;
    }
    return false;
}

static bool keep_shape(us_spec *s, us_shape_def *d) {
    const void *points = d->points, *triangles = d->triangles, *heights = d->heights;
    if (!keep(s, &d->name) || !keep(s, &d->mesh) || !keep(s, &d->mesh_uri) || !keep(s, &d->material) ||
        !keep(s, &d->surface) || !keep(s, &d->file) || !keep(s, &d->site) || !keep(s, &d->wkt) ||
        !keep(s, &d->patch_model))
        return false;
    if (!share_mesh(s, d)) {
        if (!keep_array(s, &points, d->n_point, sizeof *d->points)) return false;
        if (triangles && !keep_array(s, &triangles, d->n_triangle, 3 * sizeof *d->triangles)) return false;
        d->points = points;
        d->triangles = triangles;
    }
    if (!keep_array(s, &heights, heights ? d->n_x * d->n_y : 0, sizeof *d->heights)) return false;
    d->heights = heights;
    us_shape_def *parts =
        d->n_part ? usi_arena_alloc(&s->texts, (size_t)d->n_part * sizeof *parts, _Alignof(us_shape_def))
                  : NULL;
    if (d->n_part && !parts) return false;
    for (int32_t i = 0; i < d->n_part; i++) {
        parts[i] = d->parts[i];
        if (!keep_shape(s, &parts[i])) return false;
    }
    d->parts = parts;
    return true;
}

bool usi_properties_keep(usi_arena *arena, const us_property **properties, int32_t n) {
    if (n == 0) *properties = NULL;
    if (!*properties) return true;
    us_property *copy = usi_arena_alloc(arena, (size_t)n * sizeof *copy, _Alignof(us_property));
    bool ok = copy != NULL;
    for (int32_t i = 0; i < n && ok; i++) {
        const us_property *from = &(*properties)[i];
        copy[i] = (us_property){.key = usi_arena_text(arena, from->key, &ok),
                                .type = from->type,
                                .number = from->number,
                                .integer = from->integer};
        copy[i].text = usi_arena_text(arena, from->text, &ok);
    }
    *properties = copy;
    return ok;
}
static bool keep_material(us_spec *s, us_material_def *d) {
    return keep(s, &d->name) && keep(s, &d->file) &&
           usi_properties_keep(&s->texts, &d->properties, d->n_property);
}
static bool keep_region(us_spec *s, us_region_def *d) {
    const void *corners = d->corners, *mask = d->mask;
    if (!keep(s, &d->name) || !keep(s, &d->ground) || !keep(s, &d->material) || !keep(s, &d->file))
        return false;
    if (!keep_array(s, &corners, d->n_corner, 2 * sizeof *d->corners)) return false;
    if (!keep_array(s, &mask, d->mask ? d->n_x * d->n_y : 0, 1)) return false;
    d->corners = corners;
    d->mask = mask;
    return true;
}
static bool keep_soil_map(us_spec *s, us_soil_map_def *d) {
    const void *values = d->values;
    if (!keep(s, &d->ground) || !keep(s, &d->material) || !keep(s, &d->parameter) || !keep(s, &d->file))
        return false;
    if (!keep_array(s, &values, d->values ? d->n_x * d->n_y : 0, sizeof *d->values)) return false;
    d->values = values;
    return true;
}
static bool keep_pair(us_spec *s, us_pair_def *d) {
    return keep(s, &d->material_a) && keep(s, &d->material_b) && keep(s, &d->fidelity) &&
           keep(s, &d->model) && keep(s, &d->file) &&
           usi_properties_keep(&s->texts, &d->parameters, d->n_parameter);
}
static bool keep_exclude(us_spec *s, us_exclude_def *d) { return keep(s, &d->file); }
static bool keep_coupling(us_spec *s, us_coupling_def *d) { return keep(s, &d->name) && keep(s, &d->file); }
static bool keep_loop(us_spec *s, us_loop_def *d) { return keep(s, &d->name) && keep(s, &d->file); }
static bool keep_drive(us_spec *s, us_drive_def *d) { return keep(s, &d->name) && keep(s, &d->file); }
static bool keep_record(us_spec *s, us_record_def *d) {
    if (!keep(s, &d->file_name) || !keep(s, &d->file)) return false;
    if (d->n_value == 0) return true;
    const char **names =
        usi_arena_alloc(&s->texts, (size_t)d->n_value * sizeof *names, _Alignof(const char *));
    if (!names) return false;
    for (int32_t i = 0; i < d->n_value; i++) {
        names[i] = d->values[i];
        if (!keep(s, &names[i])) return false;
    }
    d->values = names;
    return true;
}
static bool keep_extension(us_spec *s, us_extension_def *d) {
    return keep(s, &d->tag) && keep(s, &d->reference) && keep(s, &d->xml) && keep(s, &d->file);
}
static bool keep_warning(us_spec *s, us_error *d) {
    (void)s;
    (void)d;
    return true;
}

static const char **copy_texts(us_spec *s, const char *const *texts, int32_t n, bool *ok) {
    const char **copy = usi_arena_alloc(&s->texts, ((size_t)n + 1) * sizeof *copy, _Alignof(const char *));
    *ok = *ok && copy;
    for (int32_t i = 0; i < n && *ok; i++)
        copy[i] = usi_arena_text(&s->texts, texts[i], ok);
    return copy;
}

us_status usi_spec_set_origin(us_spec *spec, const usi_origin *origin) {
    bool ok = true;
    usi_origin copy = *origin;
    copy.path = copy.path ? usi_arena_text(&spec->texts, copy.path, &ok) : NULL;
    copy.parameters = copy_texts(spec, origin->parameters, origin->n_parameter, &ok);
    copy.search = copy_texts(spec, origin->search, origin->n_search, &ok);
    if (!ok) return US_ERR_MEMORY;
    spec->origin = copy;
    return US_OK;
}

us_status us_spec_set_world(us_spec *spec, const us_world_settings *def) {
    if (!spec || !def) return US_ERR_ARG;
    us_world_settings copy = *def;
    if (!keep(spec, &copy.name) || !keep(spec, &copy.solver) || !keep(spec, &copy.fidelity))
        return US_ERR_MEMORY;
    spec->world = copy;
    return US_OK;
}

// The functions that add to a list, look at it and count it differ in the type alone.
#define DEFINE_ADD(type, list)                                                                    \
    static us_status add_##list(us_spec *spec, const type *def, int32_t *out_index) {             \
        if (!spec || !def) return US_ERR_ARG;                                                     \
        type copy = *def;                                                                         \
        us_status status = usi_grow(&spec->texts.allocator, (void **)&spec->list, spec->n_##list, \
                                    &spec->cap_##list, sizeof(type));                             \
        if (status) return status;                                                                \
        if (!keep_##list(spec, &copy)) return US_ERR_MEMORY;                                      \
        spec->list[spec->n_##list] = copy;                                                        \
        if (out_index) *out_index = spec->n_##list;                                               \
        spec->n_##list++;                                                                         \
        return US_OK;                                                                             \
    }                                                                                             \
    const type *us_spec_view_##list(const us_spec *spec, int32_t i) {                             \
        return spec && i >= 0 && i < spec->n_##list ? &spec->list[i] : NULL;                      \
    }
USI_SPEC_LISTS(DEFINE_ADD)
#undef DEFINE_ADD

us_status us_spec_add_group(us_spec *spec, const us_group_def *def, int32_t *out_index) {
    return add_group(spec, def, out_index);
}
us_status usi_spec_set_tags(us_spec *spec, int32_t group, const char *tags) {
    if (!keep(spec, &tags)) return US_ERR_MEMORY;
    spec->group[group].tags = tags;
    return US_OK;
}
us_status us_spec_add_link(us_spec *spec, const us_link_def *def, int32_t *out_index) {
    return add_link(spec, def, out_index);
}
us_status us_spec_add_joint(us_spec *spec, const us_joint_def *def, int32_t *out_index) {
    if (!def || !is_joint_type(def->type)) return US_ERR_ARG;
    return add_joint(spec, def, out_index);
}

enum { PART_DEPTH = 16 };  // nesting of unions and intersections

// Counts that have their arrays, parts that are shapes themselves.
static bool is_whole_shape(const us_shape_def *d, int depth) {
    if ((unsigned)d->kind >= (unsigned)US_SHAPE_COUNT || depth > PART_DEPTH) return false;
    if (d->n_point < 0 || d->n_triangle < 0 || d->n_x < 0 || d->n_y < 0 || d->n_part < 0) return false;
    if ((d->n_point && !d->points) || (d->n_part && !d->parts) ||
        (d->triangles && (!d->points || d->n_triangle == 0)))
        return false;
    if (d->heights && (int64_t)d->n_x * d->n_y > INT32_MAX) return false;
    for (int32_t i = 0; i < d->n_part; i++) {
        if (!is_whole_shape(&d->parts[i], depth + 1)) return false;
    }
    return true;
}
us_status us_spec_add_shape(us_spec *spec, const us_shape_def *def, int32_t *out_index) {
    if (!def || !is_whole_shape(def, 0)) return US_ERR_ARG;
    return add_shape(spec, def, out_index);
}

static bool are_whole_properties(const us_property *p, int32_t n) {
    if (n < 0 || (n > 0 && !p)) return false;
    for (int32_t i = 0; i < n; i++) {
        if (!p[i].key || (unsigned)p[i].type > (unsigned)US_PROPERTY_INTEGER ||
            (p[i].type == US_PROPERTY_STRING && !p[i].text))
            return false;
    }
    return true;
}
us_status us_spec_add_material(us_spec *spec, const us_material_def *def, int32_t *out_index) {
    if (!def || !are_whole_properties(def->properties, def->n_property)) return US_ERR_ARG;
    return add_material(spec, def, out_index);
}
us_status us_spec_add_region(us_spec *spec, const us_region_def *def, int32_t *out_index) {
    if (!def || !def->name || !def->ground || !def->material) return US_ERR_ARG;
    bool has_corners = def->corners && def->n_corner >= 3,
         has_mask = def->mask && def->n_x > 0 && def->n_y > 0 && def->dx > 0 && def->dy > 0;
    if (has_corners == has_mask || def->value < 0 || def->value > 255 ||
        (int64_t)def->n_x * def->n_y > INT32_MAX)
        return US_ERR_ARG;
    return add_region(spec, def, out_index);
}
us_status us_spec_add_soil_map(us_spec *spec, const us_soil_map_def *def, int32_t *out_index) {
    if (!def || !def->ground || !def->parameter) return US_ERR_ARG;
    bool has_samples = def->n_x >= 2 && def->n_y >= 2 && (int64_t)def->n_x * def->n_y <= INT32_MAX &&
                       def->dx > 0 && def->dy > 0;
    if (def->values && !has_samples) return US_ERR_ARG;
    return add_soil_map(spec, def, out_index);
}
us_status us_spec_add_pair(us_spec *spec, const us_pair_def *def, int32_t *out_index) {
    if (!def || !are_whole_properties(def->parameters, def->n_parameter)) return US_ERR_ARG;
    return add_pair(spec, def, out_index);
}
us_status us_spec_add_exclude(us_spec *spec, const us_exclude_def *def, int32_t *out_index) {
    return add_exclude(spec, def, out_index);
}
us_status us_spec_add_coupling(us_spec *spec, const us_coupling_def *def, int32_t *out_index) {
    if (!def || def->n_term < 0 || def->n_term > US_COUPLING_TERMS) return US_ERR_ARG;
    return add_coupling(spec, def, out_index);
}
us_status us_spec_add_loop(us_spec *spec, const us_loop_def *def, int32_t *out_index) {
    if (!def || (unsigned)def->type >= (unsigned)US_LOOP_COUNT) return US_ERR_ARG;
    return add_loop(spec, def, out_index);
}
us_status us_spec_add_drive(us_spec *spec, const us_drive_def *def, int32_t *out_index) {
    return add_drive(spec, def, out_index);
}
us_status us_spec_add_record(us_spec *spec, const us_record_def *def, int32_t *out_index) {
    if (!def || def->n_value < 0 || (def->n_value > 0 && !def->values)) return US_ERR_ARG;
    return add_record(spec, def, out_index);
}
us_status us_spec_add_extension(us_spec *spec, const us_extension_def *def, int32_t *out_index) {
    return add_extension(spec, def, out_index);
}
us_status us_spec_add_warning(us_spec *spec, const us_error *warning) {
    return add_warning(spec, warning, NULL);
}
const us_world_settings *us_spec_view_world(const us_spec *spec) { return spec ? &spec->world : NULL; }

us_status us_spec_set_joint(us_spec *spec, int32_t joint, const us_joint_def *def) {
    const us_joint_def *old = us_spec_view_joint(spec, joint);
    if (!old || !def || def->parent != old->parent || def->child != old->child || !is_joint_type(def->type))
        return US_ERR_ARG;
    us_joint_def copy = *def;
    if (!keep_joint(spec, &copy)) return US_ERR_MEMORY;
    spec->joint[joint] = copy;
    return US_OK;
}

us_status us_spec_set_drive(us_spec *spec, int32_t drive, const us_drive_def *def) {
    const us_drive_def *old = us_spec_view_drive(spec, drive);
    if (!old || !def || def->joint != old->joint || def->coordinate != old->coordinate) return US_ERR_ARG;
    us_drive_def copy = *def;
    if (!keep_drive(spec, &copy)) return US_ERR_MEMORY;
    spec->drive[drive] = copy;
    return US_OK;
}

us_spec_counts us_spec_get_counts(const us_spec *spec) {
    us_spec_counts c = {0};
    if (!spec) return c;
#define COUNT_LIST(type, list) c.n_##list = spec->n_##list;
    USI_SPEC_LISTS(COUNT_LIST)
#undef COUNT_LIST
    return c;
}

#define DEFINE_FIND(list)                                                \
    int32_t us_spec_find_##list(const us_spec *spec, const char *name) { \
        if (!spec || !name) return -1;                                   \
        for (int32_t i = 0; i < spec->n_##list; i++) {                   \
            const char *other = spec->list[i].name;                      \
            if (other && strcmp(other, name) == 0) return i;             \
        }                                                                \
        return -1;                                                       \
    }
DEFINE_FIND(link)
DEFINE_FIND(joint)
DEFINE_FIND(drive)
#undef DEFINE_FIND

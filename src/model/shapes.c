// The shapes that collide: each on its node, in order of nodes; and which links never do.
//
// Links that are joined by fixed joints are one rigid cluster, also where it stands on the world. The
// clusters on both sides of a joint or a loop never collide with each other, for their shapes usually overlap
// at the hinge. A joint on the world itself takes nothing out: whatever floats must be able to stand on the
// ground. Of a joint that is broken the two sides overlap at first, and collide as soon as they were apart
// once: such pairs are told apart as loose, and the state knows which were.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geom/box_tree.h"
#include "geom/geom.h"
#include "model/compile.h"
#include "soil/deformable.h"

// Room for contact points where the world does not say: 32 for each moving shape suffice for a box among its
// neighbours.
enum { MIN_CONTACTS = 64, CONTACTS_PER_GEOM = 32 };

// ---- Shapes ----

typedef struct list {
    usi_geom *geom;
    int32_t n, cap;
} list;

static void name_of_shape(const us_spec *s, int32_t i, char *buf, size_t cap) {
    const us_shape_def *d = &s->shape[i];
    const char *link = d->link >= 0 && d->link < s->n_link ? s->link[d->link].name : "world";
    if (d->name && d->name[0]) {
        snprintf(buf, cap, "%.90s", d->name);
    } else {
        snprintf(buf, cap, "%s of %.80s", us_shape_kind_name(d->kind), link);
    }
}

static us_status fail_shape(usi_build *b, int32_t i, us_status code, const char *remedy,
                            const char *message) {
    char name[128];
    name_of_shape(b->spec, i, name, sizeof name);
    return usi_build_fail(b, code, b->spec->shape[i].file, b->spec->shape[i].line, "shape", name, remedy,
                          message);
}

static us_status warn_shape(usi_build *b, int32_t i, const char *remedy, const char *message) {
    char name[128], element[128];
    name_of_shape(b->spec, i, name, sizeof name);
    snprintf(element, sizeof element, "shape \"%.100s\"", name);
    return usi_build_warn(b, b->spec->shape[i].file, b->spec->shape[i].line, element, remedy, message);
}

static us_status check_shape(usi_build *b, int32_t i) {
    const us_shape_def *d = &b->spec->shape[i];
    if (d->link < US_WORLD || d->link >= b->spec->n_link)
        return fail_shape(b, i, US_ERR_NAME, "put it on a link that exists, or on the world",
                          "its link does not exist");
    if (!usi_all_finite(&d->X_BG.p.x, 3) || !usi_is_rotation(d->X_BG.q))
        return fail_shape(b, i, US_ERR_VALUE, "write finite numbers, and a quaternion of length 1, w first",
                          "its frame is not finite or its quaternion is 0");
    if (!(d->margin >= 0 && d->margin <= 1e6))
        return fail_shape(b, i, US_ERR_VALUE, "write a length of 0 or more",
                          "its margin is negative or not finite");
    if (!(d->part_error >= 0 && d->part_error <= 1e6))
        return fail_shape(b, i, US_ERR_VALUE, "write a length of 0 or more",
                          "its part error is negative or not finite");
    return US_OK;
}

// Of the light of a colour on a screen, as a share: what a number of the sRGB standard stands for.
static float linear_of(float x) {
    const double c = (double)x;
    return (float)(c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
}

// Where something else is drawn than collides, its colour is that of the first drawn shape of the link: of
// the same kind, or of any.
static void find_colour(const us_spec *s, int32_t i, float out[3]) {
    const us_shape_def *own = &s->shape[i], *seen = own;
    for (int32_t k = 0, rank = 0; k < s->n_shape && !own->is_visual && own->link >= 0; k++) {
        const us_shape_def *d = &s->shape[k];
        const int32_t its = d->link != own->link || !d->is_visual ? 0 : d->kind == own->kind ? 2 : 1;
        if (its > rank) {
            rank = its;
            seen = d;
        }
    }
    for (int k = 0; k < 3; k++)
        out[k] = linear_of(seen->rgba[k]);
}

static us_status add_geom(usi_build *b, us_model *m, list *l, int32_t i, const us_geom *geom,
                          int32_t material) {
    const us_shape_def *d = &b->spec->shape[i];
    us_status status = usi_grow(&m->allocator, (void **)&l->geom, l->n, &l->cap, sizeof *l->geom);
    if (status) return usi_build_out_of_memory(b);
    usi_geom *g = &l->geom[l->n++];
    memset(g, 0, sizeof *g);
    us_pose X_BG = {us_quat_normalize(d->X_BG.q), d->X_BG.p};
    // A part of a site lies where it does in the whole.
    if (geom->field && geom->field->pager) X_BG.p = us_pose_point(X_BG, geom->field->p_SF);
    g->geom = *geom;
    g->body = d->link;
    g->owner = d->link < 0 ? -1 : b->spec->link[d->link].group;
    g->node = d->link < 0 ? -1 : b->body[d->link].node;
    g->X_NG = d->link < 0 ? X_BG : us_pose_mul(b->body[d->link].X_NB, X_BG);
    us_aabb box = us_geom_box(geom, us_pose_identity());
    g->reach = 0.5 * us_vec3_norm(us_vec3_sub(box.max, box.min));
    g->margin = d->margin;
    g->shape = i;
    g->material = material;
    g->is_round = usi_geometry_is_round(geom);
    bool is_ground = g->node < 0 && (geom->kind == US_GEOM_HALF_SPACE || geom->kind == US_GEOM_HEIGHT_FIELD);
    g->is_soil = is_ground && m->material[material].is_soil;
    const us_material_def *tread = &m->material[material];
    if (m->n_soil > 0 && g->node >= 0 && geom->kind == US_GEOM_CYLINDER && tread->n_grouser > 0)
        g->tread = tread->grouser_height;
    find_colour(b->spec, i, g->colour);
    g->patch = -1;
    g->group = d->group;
    g->mask = d->mask;
    return US_OK;
}

// A moving mesh whose hull is much larger than itself touches where nothing is seen.
static const double FAR_FROM_CONVEX = 1.5;

static us_status warn_of_hull(usi_build *b, int32_t i, const us_geom *geom) {
    const us_shape_def *d = &b->spec->shape[i];
    if (d->kind != US_SHAPE_MESH || geom->kind != US_GEOM_CONVEX || !(d->unit_inertia.mass > 0)) return US_OK;
    double ratio = us_geom_unit_inertia(geom).mass / d->unit_inertia.mass;
    if (!(ratio > FAR_FROM_CONVEX)) return US_OK;
    char message[300];
    snprintf(message, sizeof message,
             "it collides as its convex hull, which has %.3g times the volume of the mesh \"%.100s\"", ratio,
             d->mesh_uri ? d->mesh_uri : "");
    return warn_shape(b, i,
                      "split it into convex parts: part-error=\"1 mm\" at the shape, or in <surface "
                      "link=\"...\" part-error=\"1 mm\"/> of a robot",
                      message);
}

// The convex parts of a moving mesh, each a shape of its own.
static us_status compile_parts(usi_build *b, us_model *m, list *l, int32_t i, int32_t material,
                               bool *out_is_done) {
    us_geom *parts = usi_arena_alloc(&b->arena, USI_COMPONENT_LIMIT * sizeof *parts, _Alignof(us_geom));
    if (!parts) return usi_build_out_of_memory(b);
    us_error why;
    int32_t n = 0;
    double reached = 0, wanted = b->spec->shape[i].part_error;
    us_status status = usi_geometry_split(&m->assets, &b->spec->shape[i], parts, &n, &reached, &why);
    if (status) return fail_shape(b, i, status, why.remedy, why.message);
    char message[200];
    *out_is_done = n > 0;
    if (n == 0)
        return warn_shape(b, i, "close the mesh, for example in Blender (Make Manifold)",
                          "the mesh is open and cannot be split: it collides as its convex hull");
    if (reached > wanted) {
        snprintf(message, sizeof message, "%d convex parts stand off the mesh by up to %.3g m, not %.3g m",
                 (int)n, reached, wanted);
        status = warn_shape(b, i, "write a larger part-error, or split the mesh into several", message);
    }
    for (int32_t k = 0; k < n && !status; k++)
        status = add_geom(b, m, l, i, &parts[k], material);
    return status;
}

static us_status compile_shape(usi_build *b, us_model *m, list *l, int32_t i) {
    const us_spec *s = b->spec;
    const us_shape_def *d = &s->shape[i];
    us_status status = check_shape(b, i);
    if (status) return status;
    int32_t level = d->link < 0 ? 0 : s->link[d->link].level, material = 0;
    if (!d->is_collision || d->level != level) return US_OK;
    if (d->surface && d->surface[0]) {
        material = usi_find_material(m, d->surface);
        if (material < 0) {
            char name[128];
            name_of_shape(s, i, name, sizeof name);
            return usi_build_unknown_material(b, m, d->file, d->line, "shape", name, d->surface);
        }
    }
    if (!usi_geometry_has_data(d)) return US_OK;
    bool is_moving = d->link >= 0 && b->body[d->link].node >= 0;
    if (is_moving && (d->kind == US_SHAPE_HALF_SPACE || d->kind == US_SHAPE_HEIGHT_FIELD)) {
        char message[160];
        snprintf(message, sizeof message, "a %s cannot move", us_shape_kind_name(d->kind));
        return fail_shape(b, i, US_ERR_VALUE,
                          "put it on the world or on a link that is fixed to it, or use a box or a mesh",
                          message);
    }
    us_error why;
    us_geom geom;
    if (is_moving && d->kind == US_SHAPE_MESH && d->part_error > 0) {
        bool is_done = false;
        status = compile_parts(b, m, l, i, material, &is_done);
        if (status || is_done) return status;
    }
    status = usi_geometry_make(&m->assets, d, is_moving, &geom, &why);
    if (status == US_ERR_VALUE && d->kind == US_SHAPE_MESH) {
        char message[sizeof why.message + 40];
        snprintf(message, sizeof message, "it does not collide: %s", why.message);
        return warn_shape(b, i, "use a box or a lozenge instead of a mesh without volume", message);
    }
    if (status) return fail_shape(b, i, status, why.remedy, why.message);
    status = d->part_error > 0 ? US_OK : warn_of_hull(b, i, &geom);
    return status ? status : add_geom(b, m, l, i, &geom, material);
}

// By node, those of the world first; on one node in the order in which they were written.
static int compare_geoms(const void *a, const void *b) {
    const usi_geom *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    if (x->shape != y->shape) return x->shape < y->shape ? -1 : 1;
    return x->tree < y->tree ? -1 : x->tree > y->tree;  // still the order of making, see below
}

// Rocks and trees by the thousand: a tree of their boxes for rays. Few shapes are asked one by one.
static us_status plant_tree(usi_build *b, us_model *m) {
    enum { MANY = 48 };
    us_aabb *box = usi_arena_alloc(&b->arena, ((size_t)m->n_geom + 1) * sizeof *box, _Alignof(us_aabb));
    m->fixed_geom = usi_arena_alloc(&m->assets.arena, ((size_t)m->n_geom + 1) * sizeof(int32_t), 4);
    if (!box || !m->fixed_geom) return usi_build_out_of_memory(b);
    int32_t n = 0, rest = m->n_geom;
    for (int32_t i = m->n_geom - 1; i >= 0; i--) {
        const usi_geom *g = &m->geom[i];
        const bool may_stand = g->node < 0 && g->geom.kind != US_GEOM_HEIGHT_FIELD && isfinite(g->reach);
        m->fixed_geom[may_stand ? n++ : --rest] = i;
    }
    if (n < MANY) {
        for (int32_t i = 0; i < m->n_geom; i++)
            m->fixed_geom[i] = i;
        return US_OK;
    }
    for (int32_t i = 0; i < n; i++)
        box[i] = us_geom_box(&m->geom[m->fixed_geom[i]].geom, m->geom[m->fixed_geom[i]].X_NG);
    return usi_box_tree_create(box, n, &m->allocator, &m->fixed_tree) ? usi_build_out_of_memory(b) : US_OK;
}

static us_status compile_shapes(usi_build *b, us_model *m, list *l) {
    us_status status = US_OK;
    for (int32_t i = 0; i < b->spec->n_shape && !status; i++)
        status = compile_shape(b, m, l, i);
    if (status || l->n == 0) return status;
    for (int32_t i = 0; i < l->n; i++)
        l->geom[i].tree = i;
    qsort(l->geom, (size_t)l->n, sizeof *l->geom, compare_geoms);
    for (int32_t i = 0; i < l->n; i++)
        l->geom[i].tree = l->geom[i].node < 0 ? -1 : b->node[l->geom[i].node].tree;
    m->geom = usi_arena_alloc(&m->assets.arena, (size_t)l->n * sizeof *m->geom, _Alignof(usi_geom));
    if (!m->geom) return usi_build_out_of_memory(b);
    memcpy(m->geom, l->geom, (size_t)l->n * sizeof *m->geom);
    m->n_geom = l->n;
    return plant_tree(b, m);
}

// ---- Beds of soil ----

enum { MAX_BEDS = 16 };
static const double MAX_TILES =
    1e9;  // of a patch's grid: their numbers are 32 bits wide, and each takes 4 bytes of addresses
static const double MAX_BED_MEMORY = 20e9;  // of a million touched tiles, with room for those of a step
static const double MAX_BED_HEIGHT = 2000;  // m, as micrometres in 32 bits

// A soil whose kc is negative carries wheels that are wide enough.
static us_status check_width(usi_build *b, const us_model *m, const usi_geom *g) {
    double width = 2 * (g->geom.size[1] + g->geom.radius);
    for (int32_t i = 0; i < m->n_material; i++) {
        const us_material_def *d = &m->material[i];
        if (!d->is_soil || d->soil.kc / width + d->soil.kphi > 0) continue;
        char message[200];
        snprintf(message, sizeof message,
                 "the soil \"%.60s\" does not carry a wheel that is %g m wide: kc/width + kphi is %g",
                 d->name, width, d->soil.kc / width + d->soil.kphi);
        return fail_shape(b, g->shape, US_ERR_VALUE,
                          "make the wheel wider, or write the soil's kc and kphi for wheels of this width",
                          message);
    }
    return US_OK;
}

static us_status check_soil(usi_build *b, us_model *m, int32_t i) {
    const usi_geom *g = &m->geom[i];
    if (m->n_soil > 0 && g->node >= 0 && g->geom.kind == US_GEOM_CYLINDER) {
        us_status status = check_width(b, m, g);
        if (status) return status;
    }
    const us_shape_def *d = &b->spec->shape[g->shape];
    if (d->patch_spacing > 0 && !g->is_soil)
        return fail_shape(b, g->shape, US_ERR_VALUE,
                          "give it a surface whose <material> has a <soil>, or leave bed out",
                          "it has a bed, but does not give way");
    if (d->patch_model && !(d->patch_spacing > 0))
        return fail_shape(b, g->shape, US_ERR_VALUE, "give it a bed: the spacing of its columns",
                          "it has a ground model, but no bed");
    if (m->material[g->material].is_soil && !g->is_soil)
        return warn_shape(
            b, g->shape, "use a half-space or a height-field of the world, or another surface",
            "soil gives way in half spaces and height fields of the world alone: this shape does not");
    if (g->is_soil && (m->solver == USI_SOLVER_RIGID_DIRECT || m->solver == USI_SOLVER_RIGID_ITERATIVE))
        return fail_shape(b, g->shape, US_ERR_VALUE, "use the solver newton, or another surface",
                          "rigid contact cannot give way, and this is soil");
    return US_OK;
}

// The material by which a ground flows: its own, or that of its first region of soil.
static int32_t soil_of(const us_model *m, int32_t geom) {
    int32_t material = m->geom[geom].material;
    for (int32_t i = 0; i < m->n_region && !m->material[material].is_soil; i++) {
        if (m->region[i].geom == geom) material = m->region[i].material;
    }
    return material;
}

// Where the frame that a ground is written in has its origin, in the ground's own: a part of a site lies
// where it does in the whole.
static us_vec3 written_origin(const usi_geom *g) {
    bool is_part = g->geom.kind == US_GEOM_HEIGHT_FIELD && g->geom.field->pager;
    return is_part ? us_vec3_scale(-1, g->geom.field->p_SF) : us_vec3_make(0, 0, 0);
}

static bool keep_corners(us_model *m, const us_region_def *d, usi_region_row *row) {
    double *corner =
        usi_arena_alloc(&m->assets.arena, 2 * (size_t)d->n_corner * sizeof *corner, _Alignof(double));
    if (!corner) return false;
    us_vec3 o = written_origin(&m->geom[row->geom]);
    for (int32_t k = 0; k < d->n_corner; k++) {
        corner[2 * k] = d->corners[2 * k] + o.x;
        corner[2 * k + 1] = d->corners[2 * k + 1] + o.y;
    }
    row->corner = corner;
    row->n = d->n_corner;
    row->min_x = row->min_y = INFINITY;
    row->max_x = row->max_y = -INFINITY;
    for (int32_t k = 0; k < d->n_corner; k++) {
        row->min_x = fmin(row->min_x, corner[2 * k]);
        row->max_x = fmax(row->max_x, corner[2 * k]);
        row->min_y = fmin(row->min_y, corner[2 * k + 1]);
        row->max_y = fmax(row->max_y, corner[2 * k + 1]);
    }
    return true;
}

static bool keep_mask(us_model *m, const us_region_def *d, usi_region_row *row) {
    size_t n = (size_t)d->n_x * (size_t)d->n_y;
    uint8_t *mask = usi_arena_alloc(&m->assets.arena, n, 1);
    if (!mask) return false;
    memcpy(mask, d->mask, n);
    row->mask = mask;
    row->mask_x = d->n_x;
    row->mask_y = d->n_y;
    row->value = d->value;
    row->dx = d->dx;
    row->dy = d->dy;
    us_vec3 o = written_origin(&m->geom[row->geom]);
    row->min_x = o.x - 0.5 * d->n_x * d->dx;
    row->max_x = o.x + 0.5 * d->n_x * d->dx;
    row->min_y = o.y - 0.5 * d->n_y * d->dy;
    row->max_y = o.y + 0.5 * d->n_y * d->dy;
    return true;
}

int32_t usi_build_ground(const usi_build *b, const us_model *m, const char *name) {
    int32_t found = -1;
    for (int32_t g = 0; g < m->n_geom; g++) {
        const us_shape_def *shape = &b->spec->shape[m->geom[g].shape];
        bool is_ground = m->geom[g].node < 0 && (m->geom[g].geom.kind == US_GEOM_HALF_SPACE ||
                                                 m->geom[g].geom.kind == US_GEOM_HEIGHT_FIELD);
        if (is_ground && shape->name && strcmp(shape->name, name) == 0) found = g;
    }
    return found;
}

static us_status find_regions(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    usi_region_row *rows =
        usi_arena_alloc(&m->assets.arena, ((size_t)s->n_region + 1) * sizeof *rows, _Alignof(usi_region_row));
    if (!rows) return usi_build_out_of_memory(b);
    m->region = rows;
    for (int32_t i = 0; i < s->n_region; i++) {
        const us_region_def *d = &s->region[i];
        usi_region_row *row = &rows[m->n_region++];
        *row = (usi_region_row){.material = usi_find_material(m, d->material)};
        if (row->material < 0)
            return usi_build_unknown_material(b, m, d->file, d->line, "region", d->name, d->material);
        row->geom = usi_build_ground(b, m, d->ground);
        if (row->geom < 0)
            return usi_build_fail(b, US_ERR_NAME, d->file, d->line, "region", d->name,
                                  "give the name of a plane or height field of the world that collides",
                                  "there is no such ground");
        m->geom[row->geom].has_region = 1;
        if (m->material[row->material].is_soil) m->geom[row->geom].is_soil = 1;
        bool ok = true;
        row->name = usi_arena_text(&m->assets.arena, d->name, &ok);
        if (!ok || !(d->mask ? keep_mask(m, d, row) : keep_corners(m, d, row)))
            return usi_build_out_of_memory(b);
    }
    return US_OK;
}

static us_status find_ground_model(usi_build *b, const us_model *m, const usi_geom *g, int32_t *out_model) {
    const char *name = b->spec->shape[g->shape].patch_model;
    *out_model = -1;
    for (int32_t i = 0; name && i < m->n_ground_model; i++) {
        if (strcmp(m->ground_model[i].name, name) == 0) *out_model = i;
    }
    if (!name || *out_model >= 0) return US_OK;
    char message[400];
    int n = snprintf(message, sizeof message, "there is no ground model \"%.80s\"; known: ", name);
    for (int32_t i = 0; i < m->n_ground_model && n < (int)sizeof message - 64; i++)
        n += snprintf(message + n, sizeof message - (size_t)n, "%s%.60s", i ? ", " : "",
                      m->ground_model[i].name);
    if (m->n_ground_model == 0) snprintf(message + n, sizeof message - (size_t)n, "none");
    return fail_shape(b, g->shape, US_ERR_NAME,
                      "name one of these, or load the plug-in that has it: <plugin file=\"...\"/>", message);
}

static us_status find_patches(usi_build *b, us_model *m) {
    usi_deformable_row *rows =
        usi_arena_alloc(&m->assets.arena, MAX_BEDS * sizeof *rows, _Alignof(usi_deformable_row));
    if (!rows) return usi_build_out_of_memory(b);
    m->patch = rows;
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_geom && !status; i++) {
        usi_geom *g = &m->geom[i];
        const us_shape_def *d = &b->spec->shape[g->shape];
        status = check_soil(b, m, i);
        if (status || !g->is_soil || !(d->patch_spacing > 0)) continue;
        us_aabb box = us_geom_box(&g->geom, us_pose_identity());
        double wide = (box.max.x - box.min.x) / d->patch_spacing + 1,
               deep = (box.max.y - box.min.y) / d->patch_spacing + 1;
        if (m->n_deformable == MAX_BEDS)
            return fail_shape(b, g->shape, US_ERR_LIMIT, "use fewer", "there are more than 16 beds of soil");
        if (!(ceil(wide / (double)USI_DEFORMABLE_TILE) * ceil(deep / (double)USI_DEFORMABLE_TILE) <=
              MAX_TILES) ||
            wide < 3 || deep < 3 || fmax(wide, deep) > MAX_TILES)
            return fail_shape(b, g->shape, US_ERR_LIMIT,
                              "choose a bed spacing that gives 3 by 3 to 4e12 columns",
                              "its bed has too many or too few columns");
        if (!(d->patch_memory > 0 && d->patch_memory <= MAX_BED_MEMORY))
            return fail_shape(b, g->shape, US_ERR_VALUE,
                              "write bed-memory=\"1 GB\", for example; 20 GB are the most",
                              "that is no memory for its bed of soil");
        if (!(box.min.z > -MAX_BED_HEIGHT && box.max.z < MAX_BED_HEIGHT))
            return fail_shape(
                b, g->shape, US_ERR_VALUE,
                "move it: heights that lie around 0, and xyz=\"0 0 ...\" for where it is",
                "its bed counts heights in micrometres, and it reaches beyond 2000 m up or down");
        if (g->X_NG.q.x != 0 || g->X_NG.q.y != 0)
            return fail_shape(b, g->shape, US_ERR_VALUE, "lay it level: turn it about z alone",
                              "a bed of soil cannot be tilted");
        int32_t model;
        status = find_ground_model(b, m, g, &model);
        if (!status && model >= 0 && g->geom.field->pager)
            return fail_shape(b, g->shape, US_ERR_VALUE,
                              "take a part of the site as a height field: a GeoTIFF of it, or heights",
                              "its ground model may look at any column, but a site is paged in by tiles");
        if (status) break;
        rows[m->n_deformable] = (usi_deformable_row){i,
                                                     soil_of(m, i),
                                                     (int32_t)wide,
                                                     (int32_t)deep,
                                                     d->patch_spacing,
                                                     d->patch_depth,
                                                     d->patch_memory,
                                                     model};
        g->patch = m->n_deformable++;
    }
    return status;
}

// What ground that is paged in may have to hold: sim/hold.c.
static void count_holds(us_model *m) {
    bool has_pager = false;
    for (int32_t i = 0; i < m->n_geom; i++)
        has_pager |= m->geom[i].geom.kind == US_GEOM_HEIGHT_FIELD && m->geom[i].geom.field->pager;
    for (int32_t i = 0; i < m->n_soil_map; i++)
        has_pager |= m->soil_map[i].paged != NULL;
    if (has_pager) m->n_hold = m->n_tree + m->n_deformable;
}

// ---- Exclusions ----

typedef struct exclusions {
    usi_exclusion *pair;
    int32_t n, cap;
    int32_t *cluster;       // of each link
    int32_t *first, *next;  // of each cluster the bodies that have shapes
} exclusions;

static us_status exclude(usi_build *b, exclusions *e, int32_t x, int32_t y) {
    if (usi_grow(&b->arena.allocator, (void **)&e->pair, e->n, &e->cap, sizeof *e->pair))
        return usi_build_out_of_memory(b);
    e->pair[e->n++] = (usi_exclusion){x < y ? x : y, x < y ? y : x};
    return US_OK;
}

static us_status exclude_clusters(usi_build *b, exclusions *e, int32_t x, int32_t y) {
    us_status status = US_OK;
    for (int32_t i = e->first[x]; i >= 0 && x != y; i = e->next[i]) {
        for (int32_t k = e->first[y]; k >= 0 && !status; k = e->next[k])
            status = exclude(b, e, i, k);
    }
    return status;
}

static int compare_exclusions(const void *a, const void *b) {
    const usi_exclusion *x = a, *y = b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return x->b < y->b ? -1 : x->b > y->b;
}

int32_t usi_exclusion_find(const usi_exclusion *pairs, int32_t n, int32_t a, int32_t b) {
    usi_exclusion wanted = {a < b ? a : b, a < b ? b : a};
    int32_t low = 0, high = n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = compare_exclusions(&pairs[middle], &wanted);
        if (order == 0) return middle;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

static us_status find_clusters(usi_build *b, const us_model *m, exclusions *e) {
    const us_spec *s = b->spec;
    size_t bytes = ((size_t)s->n_link + 1) * sizeof(int32_t);
    int32_t *cluster = e->cluster = usi_arena_alloc(&b->arena, bytes, 4);
    bool *has_shape = usi_arena_alloc(&b->arena, (size_t)s->n_link + 1, 1);
    e->first = usi_arena_alloc(&b->arena, bytes, 4);
    e->next = usi_arena_alloc(&b->arena, bytes, 4);
    if (!cluster || !has_shape || !e->first || !e->next) return usi_build_out_of_memory(b);
    for (int32_t i = 0; i < s->n_link; i++) {
        e->first[i] = e->next[i] = -1;
        has_shape[i] = false;
        cluster[i] = i;
    }
    for (int32_t i = 0; i < m->n_geom; i++) {
        if (m->geom[i].body >= 0) has_shape[m->geom[i].body] = true;
    }
    for (int32_t i = 0; i < s->n_joint; i++) {  // parents come before children in this order
        const us_joint_def *j = &b->joint_def[b->order[i]];
        cluster[j->child] = j->type == US_JOINT_FIXED && j->parent >= 0 ? cluster[j->parent] : j->child;
    }
    for (int32_t i = s->n_link - 1; i >= 0; i--) {
        if (!has_shape[i]) continue;
        e->next[i] = e->first[cluster[i]];
        e->first[cluster[i]] = i;
    }
    return US_OK;
}

// Across joints as they were written: those that hold, or those that are broken.
static us_status exclude_joints(usi_build *b, exclusions *e, bool is_broken) {
    const us_spec *s = b->spec;
    us_status status = US_OK;
    for (int32_t i = 0; i < s->n_joint && !status; i++) {
        const us_joint_def *j = &s->joint[i];
        if (j->parent >= 0 && j->is_broken == is_broken)
            status = exclude_clusters(b, e, e->cluster[j->parent], e->cluster[j->child]);
    }
    return status;
}

static us_status find_exclusions(usi_build *b, exclusions *e) {
    const us_spec *s = b->spec;
    const int32_t *cluster = e->cluster;
    us_status status = exclude_joints(b, e, false);
    for (int32_t i = 0; i < s->n_loop && !status; i++) {
        const us_loop_def *l = &s->loop[i];
        bool is_pair = l->link_a >= 0 && l->link_a < s->n_link && l->link_b >= 0 && l->link_b < s->n_link;
        if (is_pair) status = exclude_clusters(b, e, cluster[l->link_a], cluster[l->link_b]);
    }
    for (int32_t i = 0; i < s->n_exclude && !status; i++) {
        const us_exclude_def *d = &s->exclude[i];
        if (d->link_a < US_WORLD || d->link_a >= s->n_link || d->link_b < US_WORLD || d->link_b >= s->n_link)
            return usi_build_fail(b, US_ERR_NAME, d->file, d->line, "exclude", "",
                                  "name links that exist, or world", "one of its links does not exist");
        if (d->link_a == d->link_b)
            return usi_build_fail(b, US_ERR_VALUE, d->file, d->line, "exclude",
                                  d->link_a < 0 ? "world" : s->link[d->link_a].name,
                                  "name two different links: a link never collides with itself",
                                  "both its links are the same");
        status = exclude(b, e, d->link_a, d->link_b);
    }
    return status;
}

typedef struct overlap_sink {
    usi_build *b;
    exclusions *e;
} overlap_sink;

static us_status exclude_overlap(void *context, const usi_geom *a, const usi_geom *b, double depth) {
    overlap_sink *sink = context;
    (void)depth;
    return sink->b->spec->group[a->owner].excludes_overlaps ? exclude(sink->b, sink->e, a->body, b->body)
                                                            : US_OK;
}

// Of the robots that ask for it: links that overlap at the start.
static us_status exclude_overlaps(usi_build *b, const us_model *m, exclusions *e) {
    bool is_asked = false;
    for (int32_t i = 0; i < b->spec->n_group; i++)
        is_asked |= b->spec->group[i].excludes_overlaps;
    if (!is_asked) return US_OK;
    us_pose *X_WN = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *X_WN, _Alignof(us_pose));
    if (!X_WN) return usi_build_out_of_memory(b);
    usi_build_place(b, X_WN);
    overlap_sink sink = {b, e};
    return usi_each_overlap(m, X_WN, exclude_overlap, &sink);
}

// Sorted, each once, without those that `not` has.
static us_status keep_exclusions(usi_build *b, exclusions *e, const usi_exclusion * not, int32_t n_not,
                                 usi_exclusion **out, int32_t *out_n) {
    if (e->n == 0) return US_OK;
    qsort(e->pair, (size_t)e->n, sizeof *e->pair, compare_exclusions);
    int32_t n = 0;
    for (int32_t i = 0; i < e->n; i++) {
        if (n > 0 && compare_exclusions(&e->pair[i], &e->pair[n - 1]) == 0) continue;
        if (usi_exclusion_find(not, n_not, e->pair[i].a, e->pair[i].b) < 0) e->pair[n++] = e->pair[i];
    }
    *out = usi_arena_alloc(&b->arena, ((size_t)n + 1) * sizeof **out, _Alignof(usi_exclusion));
    if (!*out) return usi_build_out_of_memory(b);
    memcpy(*out, e->pair, (size_t)n * sizeof **out);
    *out_n = n;
    e->n = 0;
    return US_OK;
}

// ---- What stands beside the ground ----

static bool is_over(const usi_geom *g, us_vec3 p) {
    us_aabb box = us_geom_box(&g->geom, g->X_NG);
    return g->node < 0 && p.x >= box.min.x && p.x <= box.max.x && p.y >= box.min.y && p.y <= box.max.y;
}

// A site has a zone that robots may drive on. One that starts outside it, over nothing else, falls without
// end.
static us_status warn_of_falls(usi_build *b, const us_model *m) {
    int32_t site = -1;
    for (int32_t i = 0; i < m->n_geom && site < 0; i++)
        site = m->geom[i].geom.field && m->geom[i].geom.field->pager ? i : -1;
    if (site < 0) return US_OK;
    us_pose *X_WN = usi_arena_alloc(&b->arena, ((size_t)b->n_node + 1) * sizeof *X_WN, _Alignof(us_pose));
    if (!X_WN) return usi_build_out_of_memory(b);
    usi_build_place(b, X_WN);
    us_status status = US_OK;
    for (int32_t i = 0; i < b->spec->n_joint && !status; i++) {
        const us_joint_def *j = &b->joint_def[i];
        const usi_body *body = &b->body[j->child];
        if (j->type != US_JOINT_FLOATING || j->parent != US_WORLD || body->node < 0) continue;
        us_vec3 p = us_pose_point(X_WN[body->node], body->X_NB.p);
        bool has_ground = false;
        for (int32_t k = 0; k < m->n_geom && !has_ground; k++)
            has_ground = is_over(&m->geom[k], p);
        if (has_ground) continue;
        char element[128], message[200];
        us_aabb box = us_geom_box(&m->geom[site].geom, m->geom[site].X_NG);
        snprintf(element, sizeof element, "link \"%.100s\"", b->spec->link[j->child].name);
        snprintf(message, sizeof message,
                 "it starts at x = %.6g, y = %.6g, beside the ground, which goes from %.6g, %.6g to %.6g, "
                 "%.6g: it will fall",
                 p.x, p.y, box.min.x, box.min.y, box.max.x, box.max.y);
        status = usi_build_warn(b, b->spec->link[j->child].file, b->spec->link[j->child].line, element,
                                "start it over the ground, or make the ground's zone larger", message);
    }
    return status;
}

us_status usi_build_shapes(usi_build *b, us_model *m) {
    list l = {0};
    us_status status = compile_shapes(b, m, &l);
    usi_release(&m->allocator, l.geom, (size_t)l.cap * sizeof *l.geom, _Alignof(max_align_t));
    if (!status) status = find_regions(b, m);
    if (!status) status = usi_build_soil_maps(b, m);
    if (!status) status = find_patches(b, m);
    if (!status) count_holds(m);
    if (!status) status = warn_of_falls(b, m);
    if (status) return status;
    exclusions e = {0};
    status = find_clusters(b, m, &e);
    if (!status) status = find_exclusions(b, &e);
    if (!status) status = exclude_overlaps(b, m, &e);
    if (!status) status = keep_exclusions(b, &e, NULL, 0, &b->exclusion, &m->n_exclusion);
    if (!status) status = exclude_joints(b, &e, true);
    if (!status) status = keep_exclusions(b, &e, b->exclusion, m->n_exclusion, &b->loose, &m->n_loose);
    usi_release(&b->arena.allocator, e.pair, (size_t)e.cap * sizeof *e.pair, _Alignof(max_align_t));
    if (status) return status;
    int64_t room = MIN_CONTACTS;
    for (int32_t i = 0; i < m->n_geom; i++)
        room += m->geom[i].node >= 0 ? CONTACTS_PER_GEOM : 0;
    if (b->spec->world.max_contact > 0) room = b->spec->world.max_contact;
    if (room > USI_MAX_CONTACTS)
        return us_error_set(b->err, US_ERR_LIMIT, NULL, "set max_contact of the world, or use fewer shapes",
                            "room for %lld contact points", (long long)room);
    m->max_contact = (int32_t)room;
    return US_OK;
}

// ---- Questions ----

bool usi_model_may_collide(const us_model *m, int32_t geom_a, int32_t geom_b) {
    const usi_geom *a = &m->geom[geom_a], *b = &m->geom[geom_b];
    if (a->node == b->node || !(a->group & b->mask) || !(b->group & a->mask)) return false;
    return usi_exclusion_find(m->exclusion, m->n_exclusion, a->body, b->body) < 0;
}

uint64_t usi_shapes_hash(const us_model *m, uint64_t seed) {
    uint64_t h = seed;
    for (int32_t i = 0; i < m->n_geom; i++) {
        const usi_geom *g = &m->geom[i];
        const double numbers[] = {g->reach, g->margin};
        const int32_t whole[] = {g->node,     g->tree,     g->body,           g->shape,
                                 g->material, g->is_round, (int32_t)g->group, (int32_t)g->mask};
        h = us_hash_bytes(us_hash_bytes(usi_geometry_hash(h, &g->geom), numbers, sizeof numbers), whole,
                          sizeof whole);
        h = us_hash_bytes(h, &g->X_NG, sizeof g->X_NG);
    }
    for (int32_t i = 0; i < m->n_region; i++) {
        const usi_region_row *r = &m->region[i];
        const int32_t whole[] = {r->geom, r->material, r->n, r->mask_x, r->mask_y, r->value};
        const double numbers[] = {r->dx, r->dy};
        h = us_hash_bytes(us_hash_bytes(h, whole, sizeof whole), numbers, sizeof numbers);
        if (r->corner) h = us_hash_bytes(h, r->corner, 2 * (size_t)r->n * sizeof *r->corner);
        if (r->mask) h = us_hash_bytes(h, r->mask, (size_t)r->mask_x * (size_t)r->mask_y);
    }
    for (int32_t i = 0; i < m->n_deformable; i++) {
        const double patch[] = {m->patch[i].geom, m->patch[i].spacing, m->patch[i].depth};
        h = us_hash_bytes(h, patch, sizeof patch);
        if (m->patch[i].model < 0) continue;
        const us_ground_model *model = &m->ground_model[m->patch[i].model];
        const int32_t state[] = {model->n_state, model->n_column_state};
        h = us_hash_bytes(us_hash_bytes(h, state, sizeof state), model->name, strlen(model->name) + 1);
    }
    return usi_soil_maps_hash(m, h);
}

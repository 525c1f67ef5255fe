// Shapes as viewers draw them: boxes, balls and cylinders as they are, meshes as files, every other convex
// shape as triangles over its support function.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/geometry.h"
#include "view/view__asset.h"
#include "view/view__scenery.h"

// Of triangles over a ball of directions: 16 round, 12 from pole to pole. A ball of 1 m is off by 2 cm.
enum { ROUND = 16, UP = 12, MAX_DEPTH = 8 };

// A half space is drawn as a slab: as far as people look, and with nothing below its surface.
static const double PLANE_SIDE = 200, PLANE_DEPTH = 0.01;  // m

typedef struct part_maker {
    usi_scenery_parts *to;
    usi_assets assets;
    const char *name;
    int32_t body;
    us_status status;
} part_maker;

static usi_scenery_part *add(part_maker *k, const us_shape_def *shape, us_pose X_BG, usi_part_kind kind) {
    usi_scenery_parts *to = k->to;
    if (!k->status)
        k->status = usi_grow(&to->arena.allocator, (void **)&to->part, to->n, &to->cap, sizeof *to->part);
    if (k->status) return NULL;
    usi_scenery_part *p = &to->part[to->n++];
    *p = (usi_scenery_part){.kind = kind, .body = k->body, .name = k->name, .X_BG = X_BG, .size = {1, 1, 1}};
    memcpy(p->rgba, shape->rgba, sizeof p->rgba);
    return p;
}

static void add_sized(part_maker *k, const us_shape_def *shape, us_pose X_BG, usi_part_kind kind, double x,
                      double y, double z) {
    usi_scenery_part *p = add(k, shape, X_BG, kind);
    if (!p) return;
    p->size[0] = x;
    p->size[1] = y;
    p->size[2] = z;
}

// The farthest points in directions that are spread over a ball, joined as the directions are.
static void add_convex(part_maker *k, const us_shape_def *shape, us_pose X_BG) {
    us_geom geom;
    // What cannot be made was refused with the model, or collides with nothing and is not known.
    if (usi_geometry_make(&k->assets, shape, true, &geom, NULL)) return;
    usi_scenery_part *p = add(k, shape, X_BG, USI_PART_TRIANGLES);
    if (!p) return;
    const int32_t n_point = ROUND * (UP - 1) + 2, n_index = 3 * 2 * ROUND * (UP - 1);
    p->point = usi_arena_alloc(&k->to->arena, (size_t)n_point * sizeof *p->point, _Alignof(us_msg_point));
    p->index = usi_arena_alloc(&k->to->arena, (size_t)n_index * sizeof *p->index, _Alignof(uint32_t));
    if (!p->point || !p->index) {
        k->status = US_ERR_MEMORY;
        return;
    }
    for (int32_t i = 0; i < n_point; i++) {
        const bool is_pole = i >= ROUND * (UP - 1);
        const int32_t circle = i / ROUND + 1;
        const double pi = 3.141592653589793, up = pi * circle / UP, round = 2 * pi * (i % ROUND) / ROUND;
        const us_vec3 d = is_pole ? us_vec3_make(0, 0, i == n_point - 2 ? 1 : -1)
                                  : us_vec3_make(sin(up) * cos(round), sin(up) * sin(round), cos(up));
        const us_vec3 q = us_geom_support(&geom, d);
        p->point[p->n_point++] = (us_msg_point){q.x, q.y, q.z};
    }
    const uint32_t north = (uint32_t)n_point - 2, south = north + 1;
    for (uint32_t j = 0; j < UP; j++) {
        for (uint32_t i = 0; i < ROUND; i++) {
            const uint32_t next = (i + 1) % ROUND, above = (j - 1) * ROUND, here = j * ROUND;
            const uint32_t quad[4] = {j == 0 ? north : above + i, j == UP - 1 ? south : here + i,
                                      j == UP - 1 ? south : here + next, j == 0 ? north : above + next};
            static const int split[2][3] = {{0, 1, 2}, {0, 2, 3}};
            for (int t = 0; t < 2; t++) {
                if (t == (j == 0 ? 1 : j == UP - 1 ? 0 : 2)) continue;  // at a pole one has no area
                for (int c = 0; c < 3; c++)
                    p->index[p->n_index++] = quad[split[t][c]];
            }
        }
    }
}

static void add_model(part_maker *k, const us_shape_def *shape, us_pose X_BG, const char *name) {
    usi_scenery_part *p = add(k, shape, X_BG, USI_PART_MODEL);
    char file[64];
    bool is_good = true;
    snprintf(file, sizeof file, "%.50s.glb", name);
    if (p) p->file = usi_arena_text(&k->to->arena, file, &is_good);
    if (!is_good) k->status = US_ERR_MEMORY;
}

// `name` is that of its asset: "3", of a part "3.0".
static void add_shape(part_maker *k, const us_shape_def *shape, us_pose X_BG, const char *name, int depth) {
    const double *s = shape->size;
    if (usi_asset_of(shape) == USI_ASSET_GLB) {
        add_model(k, shape, X_BG, name);
        return;
    }
    switch (shape->kind) {
    case US_SHAPE_BOX:
        add_sized(k, shape, X_BG, USI_PART_CUBE, s[0], s[1], s[2]);
        break;
    case US_SHAPE_SPHERE:
        add_sized(k, shape, X_BG, USI_PART_BALL, 2 * s[0], 2 * s[0], 2 * s[0]);
        break;
    case US_SHAPE_ELLIPSOID:
        add_sized(k, shape, X_BG, USI_PART_BALL, 2 * s[0], 2 * s[1], 2 * s[2]);
        break;
    case US_SHAPE_CYLINDER:
        add_sized(k, shape, X_BG, USI_PART_CYLINDER, 2 * s[0], 2 * s[0], s[1]);
        break;
    case US_SHAPE_HALF_SPACE:
        X_BG = us_pose_mul(X_BG, (us_pose){{1, 0, 0, 0}, {0, 0, -0.5 * PLANE_DEPTH}});
        add_sized(k, shape, X_BG, USI_PART_CUBE, PLANE_SIDE, PLANE_SIDE, PLANE_DEPTH);
        break;
    case US_SHAPE_UNION:
        for (int32_t i = 0; i < shape->n_part && depth < MAX_DEPTH; i++) {
            char part[48];
            snprintf(part, sizeof part, "%.36s.%d", name, (int)i);
            add_shape(k, &shape->parts[i], us_pose_mul(X_BG, shape->parts[i].X_BG), part, depth + 1);
        }
        break;
    case US_SHAPE_HEIGHT_FIELD:  // ground is a content of its own
    case US_SHAPE_MESH:          // a file that was not found
        break;
    default:
        add_convex(k, shape, X_BG);
    }
}

// What is fixed to the world goes by its own name.
static const char *name_in_world(part_maker *k, const us_shape_def *shape, int32_t i) {
    char text[80];
    bool is_good = true;
    snprintf(text, sizeof text, "world/%.60s", shape->name ? shape->name : "");
    if (!shape->name) snprintf(text, sizeof text, "world/%d", (int)i);
    const char *name = usi_arena_text(&k->to->arena, text, &is_good);
    if (!is_good) k->status = US_ERR_MEMORY;
    return name;
}

// Shapes by body, in their order: those that are there to be seen, and of a body without any those that
// collide. first[body + 1], next[shape]; -1: no more.
static void sort_by_body(const us_spec *spec, int32_t n_shape, int32_t n_link, int32_t *first,
                         int32_t *next) {
    for (int32_t i = 0; i <= n_link; i++)
        first[i] = -1;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = n_shape - 1; i >= 0; i--) {
            const us_shape_def *shape = us_spec_view_shape(spec, i);
            int32_t *to = &first[shape->link + 1];
            // In the second pass bodies that have something to be seen have a list already.
            const bool is_bare = pass == 1 && shape->link >= 0 && !shape->is_visual &&
                                 (*to < 0 || !us_spec_view_shape(spec, *to)->is_visual);
            if (!(pass == 0 ? shape->is_visual : is_bare)) continue;
            next[i] = *to;
            *to = i;
        }
    }
}

static void add_body(part_maker *k, const us_spec *spec, const int32_t *first, const int32_t *next) {
    char name[16];
    bool is_good = true;
    const int32_t begin = first[k->body + 1];
    // Names are kept: the revision may go before the parts do.
    if (k->body >= 0 && begin >= 0)
        k->name = usi_arena_text(&k->to->arena, us_spec_view_link(spec, k->body)->name, &is_good);
    if (!is_good) k->status = US_ERR_MEMORY;
    for (int32_t i = begin; i >= 0 && !k->status; i = next[i]) {
        const us_shape_def *shape = us_spec_view_shape(spec, i);
        snprintf(name, sizeof name, "%d", (int)i);
        if (k->body < 0) k->name = name_in_world(k, shape, i);
        if (!k->status) add_shape(k, shape, shape->X_BG, name, 0);
    }
}

us_status usi_scenery_parts_make(const usi_revision *revision, const us_allocator *allocator,
                                 usi_scenery_parts *out) {
    const us_spec *spec = revision->spec;
    const us_spec_counts n = us_spec_get_counts(spec);
    *out = (usi_scenery_parts){0};
    usi_arena_init(&out->arena, allocator);
    part_maker k = {.to = out};
    usi_assets_init(&k.assets, allocator);
    int32_t *first = usi_arena_alloc(&out->arena, ((size_t)n.n_link + 1) * sizeof *first, _Alignof(int32_t));
    int32_t *next = usi_arena_alloc(&out->arena, ((size_t)n.n_shape + 1) * sizeof *next, _Alignof(int32_t));
    k.status = first && next ? US_OK : US_ERR_MEMORY;
    if (!k.status) sort_by_body(spec, n.n_shape, n.n_link, first, next);
    for (k.body = -1; k.body < n.n_link && !k.status; k.body++)
        add_body(&k, spec, first, next);
    usi_assets_fini(&k.assets);
    if (k.status) usi_scenery_parts_fini(out);
    return k.status;
}

void usi_scenery_parts_fini(usi_scenery_parts *parts) {
    if (!parts->arena.allocator.release) return;
    usi_release(&parts->arena.allocator, parts->part, (size_t)parts->cap * sizeof *parts->part,
                _Alignof(max_align_t));
    usi_arena_fini(&parts->arena);
    *parts = (usi_scenery_parts){0};
}

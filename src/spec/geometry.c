// Collision geometry of shapes. Shapes as written have full lengths and lists of points; collision geometry
// has half lengths, a radius that is added all round, and data that is made once: hulls, trees of triangles,
// height fields.
#include "spec/geometry.h"

#include <string.h>

#include "geom/geom.h"

typedef enum asset_type { ASSET_HULL, ASSET_MESH, ASSET_FIELD } asset_type;

struct usi_asset {
    usi_asset *next;
    asset_type type;
    void *data;
    const void *key;  // points or heights it was made from; NULL: not shared
    int32_t n;        // how many
};

void usi_assets_init(usi_assets *assets, const us_allocator *allocator) {
    usi_arena_init(&assets->arena, allocator);
    assets->first = NULL;
}

void usi_assets_fini(usi_assets *assets) {
    for (const usi_asset *a = assets->first; a; a = a->next) {
        switch (a->type) {
        case ASSET_HULL:
            us_hull_destroy(a->data);
            break;
        case ASSET_MESH:
            us_mesh_destroy(a->data);
            break;
        case ASSET_FIELD:
            us_height_field_destroy(a->data);
            break;
        }
    }
    assets->first = NULL;
    usi_arena_fini(&assets->arena);
}

static us_status out_of_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, "free memory or make the shape smaller",
                        "no memory left for the shape");
}

static void *find_asset(const usi_assets *assets, asset_type type, const void *key, int32_t n) {
    for (const usi_asset *a = assets->first; a && key; a = a->next) {
        if (a->type == type && a->key == key && a->n == n) return a->data;
    }
    return NULL;
}

// Takes the data over, also when it fails.
static us_status add_asset(usi_assets *assets, asset_type type, void *data, const void *key, int32_t n,
                           us_error *err) {
    usi_asset one = {.next = assets->first, .type = type, .data = data, .key = key, .n = n};
    usi_asset *kept = usi_arena_alloc(&assets->arena, sizeof *kept, _Alignof(usi_asset));
    if (!kept) {
        usi_assets only = {.first = &one};
        one.next = NULL;
        usi_arena_init(&only.arena, &assets->arena.allocator);
        usi_assets_fini(&only);
        return out_of_memory(err);
    }
    *kept = one;
    assets->first = kept;
    return US_OK;
}

// ---- One kind after the other ----

static us_status make_hull(usi_assets *assets, const us_shape_def *shape, us_geom *out, us_error *err) {
    out->kind = US_GEOM_CONVEX;
    out->hull = find_asset(assets, ASSET_HULL, shape->points, shape->n_point);
    if (out->hull) return US_OK;
    if (shape->n_point < 4)
        return us_error_set(err, US_ERR_VALUE, NULL, "give at least 4 points that are not in one plane",
                            "a convex shape with %d point%s", (int)shape->n_point,
                            shape->n_point == 1 ? "" : "s");
    us_hull *hull = NULL;
    us_status status = us_hull_create(shape->points, shape->n_point, &assets->arena.allocator, &hull, err);
    if (status) return status;
    out->hull = hull;
    return add_asset(assets, ASSET_HULL, hull, shape->points, shape->n_point, err);
}

static us_status make_mesh(usi_assets *assets, const us_shape_def *shape, us_geom *out, us_error *err) {
    out->kind = US_GEOM_MESH;
    out->mesh = find_asset(assets, ASSET_MESH, shape->triangles, shape->n_triangle);
    if (out->mesh) return US_OK;
    us_mesh *mesh = NULL;
    us_status status =
        us_mesh_create(shape->points, shape->n_point, (const int32_t(*)[3])(const void *)shape->triangles,
                       shape->n_triangle, &assets->arena.allocator, &mesh, err);
    if (status) return status;
    out->mesh = mesh;
    return add_asset(assets, ASSET_MESH, mesh, shape->triangles, shape->n_triangle, err);
}

us_status usi_geometry_layer(usi_assets *assets, const us_shape_def *shape, const char *layer,
                             const us_height_field **out, us_error *err) {
    us_height_field *paged = NULL;
    us_error why;
    us_status status = usi_field_open(shape->site, layer, shape->zone, shape->memory,
                                      &assets->arena.allocator, &paged, &why);
    if (status)
        return us_error_set(err, status, NULL, why.remedy, "%.150s: %s", why.file[0] ? why.file : shape->site,
                            why.message);
    *out = paged;
    return add_asset(assets, ASSET_FIELD, paged, NULL, 0, err);
}

static us_status make_field(usi_assets *assets, const us_shape_def *shape, us_geom *out, us_error *err) {
    if (shape->site) return usi_geometry_layer(assets, shape, NULL, &out->field, err);
    if (!shape->heights)
        return us_error_set(err, US_ERR_VALUE, NULL, "give n_x * n_y heights",
                            "a height field without heights");
    us_height_field *field = NULL;
    us_status status = us_height_field_create(shape->heights, shape->n_x, shape->n_y, shape->size[0],
                                              shape->size[1], &assets->arena.allocator, &field, err);
    if (status) return status;
    out->field = field;
    return add_asset(assets, ASSET_FIELD, field, NULL, 0, err);
}

static us_status make_parts(usi_assets *assets, const us_shape_def *shape, bool is_moving, us_geom *out,
                            us_error *err) {
    if (shape->n_part == 0)
        return us_error_set(err, US_ERR_VALUE, NULL, "give it at least one part", "a %s of nothing",
                            us_shape_kind_name(shape->kind));
    us_geom_part *parts =
        usi_arena_alloc(&assets->arena, (size_t)shape->n_part * sizeof *parts, _Alignof(us_geom_part));
    if (!parts) return out_of_memory(err);
    for (int32_t i = 0; i < shape->n_part; i++) {
        us_pose X = shape->parts[i].X_BG;
        double n2 = X.q.w * X.q.w + X.q.x * X.q.x + X.q.y * X.q.y + X.q.z * X.q.z;
        if (!(n2 > 1e-12) || !isfinite(n2 + X.p.x + X.p.y + X.p.z))
            return us_error_set(err, US_ERR_VALUE, NULL,
                                "write finite numbers, and a quaternion of length 1, w first",
                                "part %d: its frame is not finite or its quaternion is 0", (int)i);
        X.q = us_quat_normalize(X.q);
        parts[i].X_GP = X;
        // What bounds an intersection need not be bounded itself, and every mesh in it must be convex.
        bool is_inside = shape->kind == US_SHAPE_INTERSECTION;
        const us_shape_def *part = &shape->parts[i];
        if (is_moving && !is_inside &&
            (part->kind == US_SHAPE_HALF_SPACE || part->kind == US_SHAPE_HEIGHT_FIELD))
            return us_error_set(err, US_ERR_VALUE, NULL, "put it on the world, or use a box",
                                "a %s cannot move", us_shape_kind_name(part->kind));
        if (part->site)
            return us_error_set(err, US_ERR_VALUE, NULL, "write them side by side",
                                "a site cannot be part of a %s", us_shape_kind_name(shape->kind));
        us_status status = usi_geometry_make(assets, part, is_moving || is_inside, &parts[i].geom, err);
        if (status) return status;
    }
    out->parts = parts;
    out->n_part = shape->n_part;
    return US_OK;
}

static us_status make_points(const us_shape_def *shape, int32_t n, us_geom *out, us_error *err) {
    if (shape->n_point != n)
        return us_error_set(err, US_ERR_VALUE, NULL, "give one point for each corner",
                            "a %s needs %d points, %d are given", us_shape_kind_name(shape->kind), (int)n,
                            (int)shape->n_point);
    memcpy(out->point, shape->points, (size_t)n * sizeof *out->point);
    return US_OK;
}

// Sizes and radius of kinds that have no data of their own.
static void set_size(const us_shape_def *shape, us_geom *g) {
    const double *s = shape->size;
    switch (shape->kind) {
    case US_SHAPE_BOX:
        g->size[0] = 0.5 * s[0];
        g->size[1] = 0.5 * s[1];
        g->size[2] = 0.5 * s[2];
        break;
    case US_SHAPE_SPHERE:
    case US_SHAPE_TRIANGLE:
        g->radius = s[0];
        break;
    case US_SHAPE_CYLINDER:
    case US_SHAPE_CONE:
        g->size[0] = s[0];
        g->size[1] = 0.5 * s[1];
        break;
    case US_SHAPE_CAPSULE:
        g->radius = s[0];
        g->size[0] = 0.5 * s[1];
        break;
    case US_SHAPE_LOZENGE:
        g->size[0] = 0.5 * s[0];
        g->size[1] = 0.5 * s[1];
        g->radius = s[2];
        break;
    case US_SHAPE_DISC:
        g->size[0] = s[0];
        g->radius = s[1];
        break;
    case US_SHAPE_ELLIPSOID:
        memcpy(g->size, s, sizeof g->size);
        break;
    default:
        break;
    }
}

us_status usi_geometry_make(usi_assets *assets, const us_shape_def *shape, bool is_moving, us_geom *out,
                            us_error *err) {
    static const us_geom_kind kinds[US_SHAPE_COUNT] = {
        [US_SHAPE_BOX] = US_GEOM_BOX,
        [US_SHAPE_SPHERE] = US_GEOM_SPHERE,
        [US_SHAPE_CYLINDER] = US_GEOM_CYLINDER,
        [US_SHAPE_CAPSULE] = US_GEOM_CAPSULE,
        [US_SHAPE_MESH] = US_GEOM_MESH,
        [US_SHAPE_LOZENGE] = US_GEOM_LOZENGE,
        [US_SHAPE_DISC] = US_GEOM_DISC,
        [US_SHAPE_TRIANGLE] = US_GEOM_TRIANGLE,
        [US_SHAPE_CONE] = US_GEOM_CONE,
        [US_SHAPE_ELLIPSOID] = US_GEOM_ELLIPSOID,
        [US_SHAPE_TETRAHEDRON] = US_GEOM_TETRAHEDRON,
        [US_SHAPE_CONVEX] = US_GEOM_CONVEX,
        [US_SHAPE_HALF_SPACE] = US_GEOM_HALF_SPACE,
        [US_SHAPE_HEIGHT_FIELD] = US_GEOM_HEIGHT_FIELD,
        [US_SHAPE_UNION] = US_GEOM_UNION,
        [US_SHAPE_INTERSECTION] = US_GEOM_INTERSECTION,
    };
    us_geom g;
    memset(&g, 0, sizeof g);
    g.kind = kinds[shape->kind];
    set_size(shape, &g);
    us_status status = US_OK;
    switch (shape->kind) {
    case US_SHAPE_TRIANGLE:
        status = make_points(shape, 3, &g, err);
        break;
    case US_SHAPE_TETRAHEDRON:
        status = make_points(shape, 4, &g, err);
        break;
    case US_SHAPE_CONVEX:
        status = make_hull(assets, shape, &g, err);
        break;
    case US_SHAPE_MESH:
        status = is_moving ? make_hull(assets, shape, &g, err) : make_mesh(assets, shape, &g, err);
        break;
    case US_SHAPE_HEIGHT_FIELD:
        status = make_field(assets, shape, &g, err);
        break;
    case US_SHAPE_UNION:
    case US_SHAPE_INTERSECTION:
        status = make_parts(assets, shape, is_moving, &g, err);
        break;
    default:
        break;
    }
    if (!status) status = us_geom_check(&g, err);
    if (!status) *out = g;
    return status;
}

us_status usi_geometry_split(usi_assets *assets, const us_shape_def *shape, us_geom out[USI_COMPONENT_LIMIT],
                             int32_t *out_n, double *out_error, us_error *err) {
    us_geom whole = {0};
    us_hull *hulls[USI_COMPONENT_LIMIT];
    *out_n = 0;
    us_status status = make_mesh(assets, shape, &whole, err);
    if (status) return status;
    int32_t n = 0;
    status = us_mesh_decompose(whole.mesh, shape->part_error, USI_COMPONENT_LIMIT, &assets->arena.allocator,
                               hulls, &n, out_error, err);
    if (status == US_ERR_MESH) return US_OK;
    if (status) return status;
    for (int32_t i = 0; i < n; i++) {
        // All are taken over, also behind one that failed.
        us_status added = add_asset(assets, ASSET_HULL, hulls[i], NULL, 0, err);
        memset(&out[i], 0, sizeof out[i]);
        out[i].kind = US_GEOM_CONVEX;
        out[i].hull = hulls[i];
        if (added) status = added;
    }
    if (!status) *out_n = n;
    return status;
}

bool usi_geometry_has_data(const us_shape_def *d) {
    if (d->kind == US_SHAPE_MESH) return d->triangles != NULL;
    if (d->kind == US_SHAPE_CONVEX) return d->n_point > 0 || !d->mesh_uri;
    for (int32_t i = 0; i < d->n_part; i++) {
        if (!usi_geometry_has_data(&d->parts[i])) return false;
    }
    return true;
}

us_status usi_geometry_inertia(const us_shape_def *shape, const us_allocator *allocator, us_inertia *out,
                               us_error *err) {
    usi_assets assets;
    usi_assets_init(&assets, allocator);
    us_geom geom;
    us_status status = usi_geometry_make(&assets, shape, false, &geom, err);
    if (!status) *out = us_geom_unit_inertia(&geom);
    usi_assets_fini(&assets);
    return status;
}

bool usi_geometry_is_round(const us_geom *g) {
    switch (g->kind) {
    case US_GEOM_SPHERE:
    case US_GEOM_CAPSULE:
    case US_GEOM_DISC:
    case US_GEOM_CYLINDER:
    case US_GEOM_CONE:
    case US_GEOM_ELLIPSOID:
        return true;
    default:
        return false;
    }
}

uint64_t usi_geometry_hash(uint64_t seed, const us_geom *g) {
    const double numbers[] = {(double)g->kind, g->radius,  g->size[0],
                              g->size[1],      g->size[2], (double)g->n_part};
    uint64_t h = us_hash_bytes(us_hash_bytes(seed, numbers, sizeof numbers), g->point, sizeof g->point);
    if (g->hull) h = us_hash_bytes(h, g->hull->vertex, (size_t)g->hull->n_vertex * sizeof *g->hull->vertex);
    if (g->mesh) {
        h = us_hash_bytes(h, g->mesh->vertex, (size_t)g->mesh->n_vertex * sizeof *g->mesh->vertex);
        h = us_hash_bytes(h, g->mesh->triangle, (size_t)g->mesh->n_triangle * sizeof *g->mesh->triangle);
    }
    if (g->field) {
        const double grid[] = {g->field->n_x, g->field->n_y, g->field->dx, g->field->dy};
        h = us_hash_bytes(h, grid, sizeof grid);
        if (g->field->pager)
            h = us_hash_bytes(h, &g->field->hash, sizeof g->field->hash);
        else
            h = us_hash_bytes(h, g->field->height,
                              (size_t)g->field->n_x * (size_t)g->field->n_y * sizeof *g->field->height);
    }
    for (int32_t i = 0; i < g->n_part; i++) {
        h = us_hash_bytes(h, &g->parts[i].X_GP, sizeof g->parts[i].X_GP);
        h = usi_geometry_hash(h, &g->parts[i].geom);
    }
    return h;
}

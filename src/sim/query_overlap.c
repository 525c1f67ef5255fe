// Overlaps of a shape with those of a world.
#include <math.h>

#include "contact/residency.h"
#include "contact/soil.h"
#include "geom/geom.h"
#include "sim/sim__query.h"

static bool boxes_meet(const us_aabb *a, const us_aabb *b) {
    return a->min.x <= b->max.x && b->min.x <= a->max.x && a->min.y <= b->max.y && b->min.y <= a->max.y &&
           a->min.z <= b->max.z && b->min.z <= a->max.z;
}

// The columns of a patch that a box, in the ground's frame, reaches.
typedef struct column_range {
    int32_t x0, y0, x1, y1;
} column_range;

static int32_t clamp(double x, int32_t n) { return x < 0 ? 0 : x > n - 1 ? n - 1 : (int32_t)x; }

static column_range columns_under(const usi_deformable *patch, const us_aabb *box) {
    const double half_x = 0.5 * (patch->n_x - 1), half_y = 0.5 * (patch->n_y - 1);
    return (column_range){clamp(floor(box->min.x / patch->spacing + half_x), patch->n_x),
                          clamp(floor(box->min.y / patch->spacing + half_y), patch->n_y),
                          clamp(ceil(box->max.x / patch->spacing + half_x), patch->n_x),
                          clamp(ceil(box->max.y / patch->spacing + half_y), patch->n_y)};
}

static bool has_changed(const usi_deformable *patch, column_range c) {
    for (int32_t v = c.y0 >> 6; v <= c.y1 >> 6; v++) {
        for (int32_t u = c.x0 >> 6; u <= c.x1 >> 6; u++) {
            if (patch->slot[(size_t)v * (size_t)patch->n_tile_x + (size_t)u] != 0) return true;
        }
    }
    return false;
}

// Whether a shape reaches into one of the columns: boxes from below the shape up to the column's height.
static us_status meets_columns(const usi_geom *ground, const usi_deformable *patch, column_range c,
                               const us_geom *geom, us_pose X_TG, const us_aabb *box, bool *out_is_met) {
    *out_is_met = false;
    for (int32_t y = c.y0; y <= c.y1; y++) {
        for (int32_t x = c.x0; x <= c.x1; x++) {
            us_vec3 p = us_vec3_make((x - 0.5 * (patch->n_x - 1)) * patch->spacing,
                                     (y - 0.5 * (patch->n_y - 1)) * patch->spacing, 0);
            double top = usi_surface_at(ground, patch, p.x, p.y), bottom = box->min.z - 1;
            if (top < box->min.z) continue;
            us_geom column = {.kind = US_GEOM_BOX,
                              .size = {0.5 * patch->spacing, 0.5 * patch->spacing, 0.5 * (top - bottom)}};
            p.z = 0.5 * (top + bottom);
            us_gap gap;
            us_status status = us_geom_distance(geom, X_TG, &column, (us_pose){us_quat_identity(), p}, &gap);
            if (status) return status;
            if (gap.distance <= 0) {
                *out_is_met = true;
                return US_OK;
            }
        }
    }
    return US_OK;
}

// Ground of which only the part under the shape is in memory has contact points, and no distance. A shape
// that is all below the surface may have none.
static us_status meets_paged(const usi_geom *ground, us_pose X_WT, const us_geom *geom, us_pose X_WG,
                             bool *out_is_met) {
    us_manifold points = {.n = 0};
    us_status status = us_geom_contact(geom, X_WG, &ground->geom, X_WT, 0, &points);
    for (int32_t i = 0; i < points.n && !status; i++)
        *out_is_met = *out_is_met || points.gap[i] <= 0;
    us_aabb box = us_geom_box(geom, us_pose_mul(us_pose_inverse(X_WT), X_WG));
    const double x = 0.5 * (box.min.x + box.max.x), y = 0.5 * (box.min.y + box.max.y);
    const us_height_field *f = ground->geom.field;
    const bool is_over = fabs(x) <= 0.5 * (f->n_x - 1) * f->dx && fabs(y) <= 0.5 * (f->n_y - 1) * f->dy;
    if (is_over && usi_ground_at(ground, x, y) >= box.max.z) *out_is_met = true;
    return status;
}

static us_status meets(const us_sim *s, int32_t i, const us_geom *geom, us_pose X_WG, bool *out_is_met) {
    const usi_geom *g = &s->model->geom[i];
    const us_pose X_WT = usi_shape_pose(s, i);
    const usi_deformable *patch = usi_shape_patch(s, i);
    *out_is_met = false;
    if (patch) {
        us_pose X_TG = us_pose_mul(us_pose_inverse(X_WT), X_WG);
        us_aabb box = us_geom_box(geom, X_TG);
        bool has_end = isfinite(box.min.x + box.min.y + box.min.z + box.max.x + box.max.y);
        column_range c = {0, 0, 0, 0};
        if (has_end) c = columns_under(patch, &box);
        if (has_end && has_changed(patch, c)) return meets_columns(g, patch, c, geom, X_TG, &box, out_is_met);
    }
    if (g->geom.kind == US_GEOM_HEIGHT_FIELD && g->geom.field->pager)
        return meets_paged(g, X_WT, geom, X_WG, out_is_met);
    us_gap gap;
    us_status status = us_geom_distance(geom, X_WG, &g->geom, X_WT, &gap);
    if (!status) *out_is_met = gap.distance <= 0;
    return status;
}

us_status us_sim_overlap(const us_sim *s, const us_geom *geom, us_pose X_WG, const us_query_filter *filter,
                         int32_t *out_geoms, int32_t cap, int32_t *out_n) {
    if (!s || !geom || !out_n || cap < 0 || (cap > 0 && !out_geoms)) return US_ERR_ARG;
    *out_n = 0;
    us_status status = us_geom_check(geom, NULL);
    if (status) return status;
    const us_aabb box = us_geom_box(geom, X_WG);
    if (!isfinite(X_WG.p.x + X_WG.p.y + X_WG.p.z + X_WG.q.w + X_WG.q.x + X_WG.q.y + X_WG.q.z))
        return US_ERR_VALUE;
    if (s->contacts && s->contacts->n_paged > 0) status = usi_residency_look(s->contacts, box);
    if (status) return status;
    usi_shapes_start(s);
    int32_t n = 0;
    for (int32_t i = 0; i < s->model->n_geom; i++) {
        if (!usi_shape_is_seen(s->model, i, filter)) continue;
        // A field is solid below its box, and soil may lie above it.
        const us_geom *shape = &s->model->geom[i].geom;
        us_aabb there = us_geom_box(shape, usi_shape_pose(s, i));
        if (shape->kind != US_GEOM_HEIGHT_FIELD && !boxes_meet(&box, &there)) continue;
        bool is_met;
        status = meets(s, i, geom, X_WG, &is_met);
        if (status) return status;
        if (!is_met) continue;
        if (n < cap) out_geoms[n] = i;
        n++;
    }
    *out_n = n;
    return US_OK;
}

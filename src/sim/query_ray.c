// Rays into a world: every shape whose box a ray crosses is asked, and the nearest answer counts.
//
// Ground with a patch of soil is cast in pieces: over tiles of the patch in which nothing has happened the
// ray meets the height field as it was written; over the others the surface is sampled at a quarter of the
// columns' distance, but where the ray is above all that it may be, and where the ray goes under it the place
// is found by bisection.
//
// Ground that is paged in is asked for along the ray, a stretch at a time, and no further than the first hit.
#include <math.h>

#include "contact/residency.h"
#include "contact/soil.h"
#include "geom/geom.h"
#include "sim/sim__query.h"

// m: paged ground is asked for in boxes around so much of the ray.
static const double STRETCH = 50;
// m: to which bisection finds the place on deformed ground.
static const double PRECISION = 1e-9;

typedef struct segment {
    double from, to;  // m along the ray; empty when from > to
} segment;

static bool is_empty(segment s) { return !(s.from <= s.to); }

// The part of a segment in which low <= o + d t <= high.
static segment clip_slab(segment s, double o, double d, double low, double high) {
    if (d == 0) return o >= low && o <= high ? s : (segment){1, 0};
    double a = (low - o) / d, b = (high - o) / d;
    return (segment){fmax(s.from, fmin(a, b)), fmin(s.to, fmax(a, b))};
}

static segment clip_box(segment s, us_vec3 o, us_vec3 d, const us_aabb *box) {
    s = clip_slab(s, o.x, d.x, box->min.x, box->max.x);
    s = clip_slab(s, o.y, d.y, box->min.y, box->max.y);
    return clip_slab(s, o.z, d.z, box->min.z, box->max.z);
}

static us_vec3 point_at(us_vec3 o, us_vec3 d, double t) { return us_vec3_add(o, us_vec3_scale(t, d)); }

// ---------------------------------------------------------------- deformed ground

// A height field with a patch, and a ray in its frame.
typedef struct deformed {
    const usi_geom *g;
    const usi_deformable *patch;
    us_vec3 o, d;
} deformed;

static double height_over(const deformed *x, double t) {
    us_vec3 p = point_at(x->o, x->d, t);
    return p.z - usi_surface_at(x->g, x->patch, p.x, p.y);
}

// A segment cut into n parts; where the k-th ends.
typedef struct cut {
    segment s;
    int64_t n;
} cut;

static double cut_at(const cut *c, int64_t k) {
    return k < c->n ? c->s.from + (double)k / (double)c->n * (c->s.to - c->s.from) : c->s.to;
}

// Whether the ray is above all that the surface may be over some of the parts: the ground as it was written,
// and as much as soil has risen anywhere.
static bool is_above(const deformed *x, const cut *c, int64_t first, int64_t last) {
    const us_geom *g = &x->g->geom;
    const us_vec3 a = point_at(x->o, x->d, cut_at(c, first)), b = point_at(x->o, x->d, cut_at(c, last));
    const double risen = x->patch->highest > 0 ? USI_DEFORMABLE_UNIT * x->patch->highest : 0;
    return fmin(a.z, b.z) >
           usi_field_top(g->field, fmin(a.x, b.x), fmin(a.y, b.y), fmax(a.x, b.x), fmax(a.y, b.y)) +
               g->radius + risen + PRECISION;
}

// The first part at whose end the ray is not above the surface, of those from one to another; the other + 1:
// none. Halves over which it is above all are left out.
static int64_t find_below(const deformed *x, const cut *c, int64_t first, int64_t last) {
    enum { FEW = 4 };
    if (is_above(x, c, first - 1, last)) return last + 1;
    if (last - first >= FEW) {
        const int64_t middle = first + (last - first) / 2, found = find_below(x, c, first, middle);
        return found <= middle ? found : find_below(x, c, middle + 1, last);
    }
    for (int64_t k = first; k <= last; k++) {
        if (height_over(x, cut_at(c, k)) <= 0) return k;
    }
    return last + 1;
}

// The first place in a segment at which the ray is not above the surface.
static us_ray_hit sample(const deformed *x, segment s) {
    const us_ray_hit miss = {INFINITY, {0, 0, 0}};
    const double across = hypot(x->d.x, x->d.y), apart = 0.25 * x->patch->spacing;
    // A steep ray is over one place, where the surface is the same all along: its ends say all.
    const double wanted = across > 0 ? ceil(across * (s.to - s.from) / apart) : 1;
    // A segment lies within one tile: it has some hundreds of samples.
    const int64_t n = wanted >= 1 ? (int64_t)fmin(wanted, 1e6) : 1;
    double before = s.from;
    if (height_over(x, before) > 0) {
        const cut parts = {s, n};
        const int64_t k = find_below(x, &parts, 1, n);
        if (k > n) return miss;
        double after = cut_at(&parts, k);
        if (k > 1) before = cut_at(&parts, k - 1);
        while (after - before > PRECISION) {
            double middle = 0.5 * (before + after);
            if (!(middle > before && middle < after)) break;
            if (height_over(x, middle) > 0)
                before = middle;
            else
                after = middle;
        }
        before = after;
    }
    us_vec3 p = point_at(x->o, x->d, before);
    double gx = usi_surface_at(x->g, x->patch, p.x + 0.5 * apart, p.y) -
                usi_surface_at(x->g, x->patch, p.x - 0.5 * apart, p.y),
           gy = usi_surface_at(x->g, x->patch, p.x, p.y + 0.5 * apart) -
                usi_surface_at(x->g, x->patch, p.x, p.y - 0.5 * apart);
    us_vec3 normal = us_vec3_make(-gx / apart, -gy / apart, 1);
    return (us_ray_hit){before, us_vec3_scale(1 / us_vec3_norm(normal), normal)};
}

static int32_t clamp(double x, int32_t n) { return x < 0 ? 0 : x > n - 1 ? n - 1 : (int32_t)x; }

// Whether the surface between the columns of a tile is as it was: so are those of the next ones, from which
// it goes on.
static bool is_untouched(const usi_deformable *patch, int32_t u, int32_t v) {
    const int32_t n_u = patch->n_tile_x, n_v = (patch->n_y + USI_DEFORMABLE_TILE - 1) / USI_DEFORMABLE_TILE;
    for (int k = 0; k < 4; k++) {
        int32_t i = u + (k & 1), j = v + (k >> 1);
        if (i < n_u && j < n_v && patch->slot[(size_t)j * (size_t)n_u + (size_t)i] != 0) return false;
    }
    return true;
}

static us_ray_hit cast_deformed(const deformed *x, double range) {
    const us_ray_hit miss = {INFINITY, {0, 0, 0}};
    const us_geom *geom = &x->g->geom;
    const us_height_field *f = geom->field;
    const double half_x = 0.5 * (f->n_x - 1) * f->dx, half_y = 0.5 * (f->n_y - 1) * f->dy;
    const usi_deformable *patch = x->patch;
    const double tile = (double)USI_DEFORMABLE_TILE * patch->spacing;
    segment s = clip_slab((segment){0, range}, x->o.x, x->d.x, -half_x, half_x);
    s = clip_slab(s, x->o.y, x->d.y, -half_y, half_y);
    // Above all of it there is nothing to be met; far below it all is solid.
    us_aabb box = us_geom_box(geom, us_pose_identity());
    s = clip_slab(s, x->o.z, x->d.z, -INFINITY, box.max.z + patch->depth);
    if (is_empty(s)) return miss;
    // A ray that begins inside, or that meets the wall around the field.
    if (height_over(x, s.from) <= 0) {
        us_vec3 p = point_at(x->o, x->d, s.from), normal = us_vec3_scale(-1, x->d);
        double to_x = half_x - fabs(p.x), to_y = half_y - fabs(p.y);
        if (s.from > 0 && to_x <= to_y) normal = us_vec3_make(p.x > 0 ? 1 : -1, 0, 0);
        if (s.from > 0 && to_y < to_x) normal = us_vec3_make(0, p.y > 0 ? 1 : -1, 0);
        return (us_ray_hit){s.from, normal};
    }
    if (x->d.z < 0) s.to = fmin(s.to, fmax(s.from, (box.min.z - patch->depth - 1 - x->o.z) / x->d.z));
    if (!isfinite(s.to)) return miss;
    // Tile after tile; the columns of the first one begin half the patch to the left of the middle.
    const double x0 = -0.5 * (patch->n_x - 1) * patch->spacing, y0 = -0.5 * (patch->n_y - 1) * patch->spacing;
    const int32_t n_v = (patch->n_y + USI_DEFORMABLE_TILE - 1) / USI_DEFORMABLE_TILE;
    us_vec3 p = point_at(x->o, x->d, s.from);
    int32_t u = clamp((p.x - x0) / tile, patch->n_tile_x), v = clamp((p.y - y0) / tile, n_v);
    // Tiles in a row that nothing has touched are one stretch of the height field, cast at its end.
    double fresh = INFINITY;
    for (double t = s.from;;) {
        double end_u = x->d.x > 0 ? x0 + (u + 1) * tile : x0 + u * tile,
               end_v = x->d.y > 0 ? y0 + (v + 1) * tile : y0 + v * tile;
        double to_u = x->d.x != 0 ? (end_u - x->o.x) / x->d.x : INFINITY,
               to_v = x->d.y != 0 ? (end_v - x->o.y) / x->d.y : INFINITY;
        bool is_last_u = x->d.x > 0 ? u == patch->n_tile_x - 1 : u == 0,
             is_last_v = x->d.y > 0 ? v == n_v - 1 : v == 0;
        if (is_last_u) to_u = INFINITY;
        if (is_last_v) to_v = INFINITY;
        double leave = fmax(t, fmin(s.to, fmin(to_u, to_v)));
        const bool is_fresh = is_untouched(patch, u, v);
        us_ray_hit hit = miss;
        if (is_fresh && fresh == INFINITY) fresh = t;
        if (fresh < INFINITY && (!is_fresh || leave >= s.to)) {
            const double until = is_fresh ? leave : t;
            hit = us_geom_ray(geom, us_pose_identity(), point_at(x->o, x->d, fresh), x->d, until - fresh);
            hit.range += fresh;
            fresh = INFINITY;
        }
        if (!is_fresh && !isfinite(hit.range)) hit = sample(x, (segment){t, leave});
        if (isfinite(hit.range) || leave >= s.to) return hit;
        t = leave;
        if (to_u <= to_v)
            u += x->d.x > 0 ? 1 : -1;
        else
            v += x->d.y > 0 ? 1 : -1;
    }
}

// ---------------------------------------------------------------- all shapes

us_ray_hit usi_shape_ray(const us_sim *s, int32_t geom, us_pose X_WG, us_vec3 o, us_vec3 d, double range) {
    const usi_geom *g = &s->model->geom[geom];
    const usi_deformable *patch = usi_shape_patch(s, geom);
    if (!patch) return us_geom_ray(&g->geom, X_WG, o, d, range);
    us_pose X_GW = us_pose_inverse(X_WG);
    deformed x = {g, patch, us_pose_point(X_GW, o), us_quat_rotate(X_GW.q, d)};
    us_ray_hit hit = cast_deformed(&x, range);
    hit.normal = us_quat_rotate(X_WG.q, hit.normal);
    return hit;
}

// Ground whose tiles are read when something asks for them: stretch after stretch of the ray.
static us_status cast_paged(const us_sim *s, int32_t geom, us_pose X_WG, us_vec3 o, us_vec3 d, segment part,
                            us_ray_hit *out_hit) {
    for (double t = part.from; t <= part.to && isfinite(part.to); t += STRETCH) {
        double end = fmin(t + STRETCH, part.to);
        us_vec3 a = point_at(o, d, t), b = point_at(o, d, end);
        us_aabb box = {us_vec3_make(fmin(a.x, b.x), fmin(a.y, b.y), fmin(a.z, b.z)),
                       us_vec3_make(fmax(a.x, b.x), fmax(a.y, b.y), fmax(a.z, b.z))};
        us_status status = usi_residency_look(s->contacts, box);
        if (status) return status;
        *out_hit = usi_shape_ray(s, geom, X_WG, a, d, end - t);
        out_hit->range += t;
        if (isfinite(out_hit->range)) return US_OK;
    }
    return US_OK;
}

us_query_filter us_query_filter_default(void) {
    us_query_filter f = {.mask = UINT32_MAX, .except = {-1}};
    return f;
}

static us_sim_hit no_hit(void) {
    const us_vec3 nowhere = {NAN, NAN, NAN};
    return (us_sim_hit){.body = {-1},
                        .shape = -1,
                        .geom = -1,
                        .distance = INFINITY,
                        .point = nowhere,
                        .normal = nowhere,
                        .material = {-1},
                        .u = NAN,
                        .v = NAN};
}

static bool is_finite(us_vec3 a) { return isfinite(a.x) && isfinite(a.y) && isfinite(a.z); }

// Rays that are asked about together, and the shape that they are asked of.
enum { SOME = 64 };
typedef struct inquiry {
    const us_sim *s;
    int32_t geom;
    us_pose X_WG;
    us_aabb box;
    bool is_field, is_paged;
    int32_t n;
    us_vec3 o[SOME], d[SOME];  // d is unit
    double range[SOME];        // as far as a hit counts; -1: not at all
    us_ray_hit hit[SOME];
} inquiry;

// Which part of a ray can meet the shape. Fields are solid downwards without end, and soil may lie above
// them: their own rays know.
static segment part_of(const inquiry *q, int32_t i) {
    const us_model *m = q->s->model;
    segment part = {0, q->range[i]};
    if (!q->is_field) return clip_box(part, q->o[i], q->d[i], &q->box);
    if (!q->is_paged) return part;
    const us_aabb high = {{q->box.min.x, q->box.min.y, -INFINITY}, {q->box.max.x, q->box.max.y, INFINITY}};
    part = clip_box(part, q->o[i], q->d[i], &high);
    if (q->d[i].z == 0) return part;
    const int32_t patch = m->geom[q->geom].patch;
    const double depth = patch >= 0 ? m->patch[patch].depth : 0;
    return clip_slab(part, q->o[i].z, q->d[i].z, q->box.min.z - depth - STRETCH, q->box.max.z + depth);
}

static us_status ask(inquiry *q) {
    if (q->is_field && !q->is_paged && !usi_shape_patch(q->s, q->geom)) {
        us_geom_rays(&q->s->model->geom[q->geom].geom, q->X_WG, q->n, q->o, q->d, q->range, q->hit);
        return US_OK;
    }
    for (int32_t i = 0; i < q->n; i++) {
        const segment part = part_of(q, i);
        us_status status = US_OK;
        q->hit[i] = (us_ray_hit){INFINITY, {0, 0, 0}};
        if (is_empty(part)) continue;
        if (q->is_paged)
            status = cast_paged(q->s, q->geom, q->X_WG, q->o[i], q->d[i], part, &q->hit[i]);
        else
            q->hit[i] = usi_shape_ray(q->s, q->geom, q->X_WG, q->o[i], q->d[i], q->range[i]);
        if (status) return status;
    }
    return US_OK;
}

static us_sim_hit hit_of(const inquiry *q, int32_t i) {
    const us_sim *s = q->s;
    const usi_geom *g = &s->model->geom[q->geom];
    us_sim_hit h = {.body = {g->body},
                    .shape = g->shape,
                    .geom = q->geom,
                    .distance = q->hit[i].range,
                    .point = point_at(q->o[i], q->d[i], q->hit[i].range),
                    .normal = q->hit[i].normal,
                    .material = {g->material},
                    .u = NAN,
                    .v = NAN};
    if (!q->is_field) return h;
    const us_height_field *f = g->geom.field;
    const us_vec3 p = us_pose_point(us_pose_inverse(q->X_WG), h.point);
    h.material.i = usi_ground_material_at(s->model, &s->now.contact, q->geom, p.x, p.y);
    h.u = fmin(1, fmax(0, p.x / ((f->n_x - 1) * f->dx) + 0.5));
    h.v = fmin(1, fmax(0, p.y / ((f->n_y - 1) * f->dy) + 0.5));
    return h;
}

// Of every shape in turn some rays at a time. Hits go to out_hits, or whether there is one to out_is_hit.
static us_status cast_all(const us_sim *s, int32_t n, const us_vec3 *origins, const us_vec3 *directions,
                          double max_distance, const us_query_filter *filter, us_sim_hit *out_hits,
                          bool *out_is_hit) {
    const us_model *m = s->model;
    usi_shapes_start(s);
    for (int32_t k = 0; k < m->n_geom; k++) {
        const usi_geom *g = &m->geom[k];
        if (!usi_shape_is_seen(m, k, filter)) continue;
        inquiry q;
        q.s = s;
        q.geom = k;
        q.X_WG = usi_shape_pose(s, k);
        q.box = us_geom_box(&g->geom, q.X_WG);
        q.is_field = g->geom.kind == US_GEOM_HEIGHT_FIELD;
        q.is_paged = q.is_field && g->geom.field->pager;
        for (int32_t first = 0; first < n;) {
            int32_t of[SOME];
            for (q.n = 0; q.n < SOME && first < n; first++) {
                if (out_is_hit && out_is_hit[first]) continue;
                of[q.n] = first;
                q.hit[q.n].range = INFINITY;
                q.o[q.n] = origins[first];
                q.d[q.n] = us_vec3_scale(1 / us_vec3_norm(directions[first]), directions[first]);
                q.range[q.n++] = out_hits ? fmin(max_distance, out_hits[first].distance) : max_distance;
            }
            const int32_t n_asked = q.n;
            us_status status = ask(&q);
            if (status) return status;
            for (int32_t i = 0; i < n_asked; i++) {
                const double until = out_hits ? out_hits[of[i]].distance : INFINITY;
                if (!(q.hit[i].range < until) || q.hit[i].range > max_distance) continue;
                if (out_hits)
                    out_hits[of[i]] = hit_of(&q, i);
                else
                    out_is_hit[of[i]] = true;
            }
        }
    }
    return US_OK;
}

static bool are_rays(int32_t n, const us_vec3 *origins, const us_vec3 *directions, double max_distance) {
    bool is_good = max_distance >= 0;
    for (int32_t i = 0; i < n; i++) {
        const double length = us_vec3_norm(directions[i]);
        is_good = is_good && is_finite(origins[i]) && isfinite(length) && length > 0;
    }
    return is_good;
}

us_status us_sim_cast_rays(const us_sim *s, int32_t n, const us_vec3 *origins, const us_vec3 *directions,
                           double max_distance, const us_query_filter *filter, us_sim_hit *out_hits) {
    if (!s || n < 0 || (n > 0 && (!origins || !directions || !out_hits))) return US_ERR_ARG;
    for (int32_t i = 0; i < n; i++)
        out_hits[i] = no_hit();
    if (!are_rays(n, origins, directions, max_distance)) return US_ERR_VALUE;
    return cast_all(s, n, origins, directions, max_distance, filter, out_hits, NULL);
}

us_status us_sim_any_hit(const us_sim *s, int32_t n, const us_vec3 *origins, const us_vec3 *directions,
                         double max_distance, const us_query_filter *filter, bool *out_is_hit) {
    if (!s || n < 0 || (n > 0 && (!origins || !directions || !out_is_hit))) return US_ERR_ARG;
    for (int32_t i = 0; i < n; i++)
        out_is_hit[i] = false;
    if (!are_rays(n, origins, directions, max_distance)) return US_ERR_VALUE;
    return cast_all(s, n, origins, directions, max_distance, filter, NULL, out_is_hit);
}

us_status us_sim_cast_ray(const us_sim *s, us_vec3 origin, us_vec3 direction, double max_distance,
                          const us_query_filter *filter, us_sim_hit *out_hit) {
    if (!out_hit) return US_ERR_ARG;
    us_status status = us_sim_cast_rays(s, 1, &origin, &direction, max_distance, filter, out_hit);
    if (status) *out_hit = no_hit();
    return status;
}

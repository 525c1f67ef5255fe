// Rays into a world: every shape whose box a ray crosses is asked, and the nearest answer counts.
//
// Ground that is paged in is asked for along the ray, a stretch at a time, and no further than the first hit.
#include <math.h>

#include "contact/residency.h"
#include "contact/soil.h"
#include "geom/box_tree.h"
#include "geom/geom.h"
#include "sim/sim__query.h"

// m: paged ground is asked for in boxes around so much of the ray.
static const double STRETCH = 50;

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

// ---------------------------------------------------------------- all shapes

us_ray_hit usi_shape_ray(const us_sim *s, int32_t geom, us_pose X_WG, us_vec3 o, us_vec3 d, double range) {
    const usi_geom *g = &s->model->geom[geom];
    const usi_deformable *patch = usi_shape_patch(s, geom);
    if (!patch) return us_geom_ray(&g->geom, X_WG, o, d, range);
    us_pose X_GW = us_pose_inverse(X_WG);
    us_ray_hit hit = usi_deformable_ray(g, patch, us_pose_point(X_GW, o), us_quat_rotate(X_GW.q, d), range);
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

// One ray among the shapes of the tree.
typedef struct tree_ray {
    inquiry *q;
    const us_query_filter *filter;
    us_sim_hit *out_hit;
    bool *out_is_hit;
} tree_ray;

static double visit(void *context, int32_t box, double until) {
    const tree_ray *r = context;
    inquiry *q = r->q;
    const us_model *m = q->s->model;
    q->geom = m->fixed_geom[box];
    if (!usi_shape_is_seen(m, q->geom, r->filter)) return until;
    const usi_geom *g = &m->geom[q->geom];
    q->hit[0] = us_geom_ray(&g->geom, g->X_NG, q->o[0], q->d[0], until);
    if (!(q->hit[0].range < (r->out_hit ? r->out_hit->distance : INFINITY))) return until;
    if (r->out_is_hit) *r->out_is_hit = true;
    if (!r->out_hit) return -1;
    q->X_WG = g->X_NG;
    *r->out_hit = hit_of(q, 0);
    return q->hit[0].range;
}

// Shapes by the thousand, before all others: what they hide need not be asked.
static void cast_into_tree(inquiry *q, int32_t n, const us_vec3 *origins, const us_vec3 *directions,
                           double max_distance, const us_query_filter *filter, us_sim_hit *out_hits,
                           bool *out_is_hit) {  // NOLINT(readability-non-const-parameter): visit writes it
    q->is_field = q->is_paged = false;
    for (int32_t i = 0; i < n; i++) {
        tree_ray r = {q, filter, out_hits ? &out_hits[i] : NULL, out_is_hit ? &out_is_hit[i] : NULL};
        q->o[0] = origins[i];
        q->d[0] = us_vec3_scale(1 / us_vec3_norm(directions[i]), directions[i]);
        usi_box_tree_cast(q->s->model->fixed_tree, q->o[0], q->d[0], max_distance, visit, &r);
    }
}

// Of every shape in turn some rays at a time. Hits go to out_hits, or whether there is one to out_is_hit.
static us_status cast_all(const us_sim *s, int32_t n, const us_vec3 *origins, const us_vec3 *directions,
                          double max_distance, const us_query_filter *filter, us_sim_hit *out_hits,
                          bool *out_is_hit) {
    const us_model *m = s->model;
    inquiry q;
    q.s = s;
    usi_shapes_start(s);
    if (m->fixed_tree) cast_into_tree(&q, n, origins, directions, max_distance, filter, out_hits, out_is_hit);
    for (int32_t at = usi_box_tree_n(m->fixed_tree); at < m->n_geom; at++) {
        const int32_t k = m->fixed_geom[at];
        const usi_geom *g = &m->geom[k];
        if (!usi_shape_is_seen(m, k, filter)) continue;
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

// Rays of pictures: the nearest surface of all shapes, and whether anything is in the way to a light.
//
// Rays come in tiles of 8 by 8 pixels. A tile's rays lie in a narrow cone, and most shapes beside it are left
// out by their spheres at once; rays towards the Sun from what a tile met lie in a narrow beam. Ground comes
// last, in packets.
#include <math.h>
#include <string.h>

#include "contact/soil.h"
#include "geom/box_tree.h"
#include "geom/ray.h"
#include "sim/sim__picture.h"

// m: nothing is seen farther than this. Finite, so that a tree of boxes can tell a miss.
static const double FAR = 1e6;

// ---------------------------------------------------------------- the scene

us_status usi_picture_scene_init(usi_picture_scene *x, const us_model *m, const us_allocator *allocator) {
    *x = (usi_picture_scene){.allocator = *allocator, .n_geom = (size_t)m->n_geom + 1};
    x->target = usi_alloc(allocator, x->n_geom * sizeof *x->target, _Alignof(usi_picture_target));
    x->pager = usi_alloc(allocator, x->n_geom * sizeof(void *), _Alignof(void *));
    if (!x->target || !x->pager) return US_ERR_MEMORY;
    memset(x->pager, 0, x->n_geom * sizeof(void *));
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_geom && !status; i++) {
        const us_geom *g = &m->geom[i].geom;
        if (g->kind != US_GEOM_HEIGHT_FIELD || !g->field->pager) continue;
        status = usi_pager_client_create(g->field->pager, &x->pager[i]);
        x->is_paged = true;
    }
    return status;
}

void usi_picture_scene_fini(usi_picture_scene *x) {
    for (size_t i = 0; x->pager && i < x->n_geom; i++)
        usi_pager_client_destroy(x->pager[i]);
    if (x->target)
        usi_release(&x->allocator, x->target, x->n_geom * sizeof *x->target, _Alignof(usi_picture_target));
    if (x->pager) usi_release(&x->allocator, x->pager, x->n_geom * sizeof(void *), _Alignof(void *));
    x->target = NULL;
    x->pager = NULL;
}

// Tiles of paged ground around the eye: rays end within `reach`, and those towards a light as far beyond.
static bool page_in(usi_picture_scene *x, const usi_picture_target *t) {
    usi_pager_client *client = x->pager[t->geom];
    if (!client) return true;
    const us_height_field *f = x->sim->model->geom[t->geom].geom.field;
    const us_vec3 p = us_pose_point(us_pose_inverse(t->X_WG), x->eye);
    const double u = p.x / f->dx + 0.5 * (f->n_x - 1), v = p.y / f->dy + 0.5 * (f->n_y - 1),
                 a = 2 * x->reach / f->dx + 2, b = 2 * x->reach / f->dy + 2;
    usi_pager_begin(client);
    usi_pager_need(
        client, (usi_window){(int32_t)fmax(-2, fmin(f->n_x, u - a)), (int32_t)fmax(-2, fmin(f->n_x, u + a)),
                             (int32_t)fmax(-2, fmin(f->n_y, v - b)), (int32_t)fmax(-2, fmin(f->n_y, v + b))});
    return usi_pager_wait(client, NULL) == US_OK;
}

static usi_picture_target target_of(const us_sim *s, int32_t geom) {
    const usi_geom *g = &s->model->geom[geom];
    usi_picture_target t = {.X_WG = usi_shape_pose(s, geom),
                            .geom = geom,
                            .radius = INFINITY,
                            .is_field = g->geom.kind == US_GEOM_HEIGHT_FIELD};
    const us_quat q = t.X_WG.q;
    t.is_level = t.is_field && g->geom.radius == 0 && q.w == 1 && q.x == 0 && q.y == 0 && q.z == 0;
    if (t.is_field || !isfinite(g->reach)) return t;
    const us_aabb box = us_geom_box(&g->geom, us_pose_identity());
    t.centre = us_pose_point(t.X_WG, us_vec3_scale(0.5, us_vec3_add(box.min, box.max)));
    for (int k = 0; k < 8; k++)
        t.corner[k] =
            us_pose_point(t.X_WG, us_vec3_make(k & 1 ? box.max.x : box.min.x, k & 2 ? box.max.y : box.min.y,
                                               k & 4 ? box.max.z : box.min.z));
    t.radius = g->reach * (1 + 1e-6) + 1e-6;
    return t;
}

void usi_picture_scene_take(usi_picture_scene *x, const us_sim *s, us_vec3 eye, double reach) {
    const us_model *m = s->model;
    x->sim = s;
    x->eye = eye;
    x->reach = reach;
    x->n = 0;
    usi_shapes_start(s);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t at = usi_box_tree_n(m->fixed_tree); at < m->n_geom; at++) {
            const usi_picture_target t = target_of(s, m->fixed_geom[at]);
            if (t.is_field == (pass == 1) && page_in(x, &t)) x->target[x->n++] = t;
        }
        if (pass == 0) x->n_solid = x->n;
    }
}

// How far a ray may go: over ground that is paged in, no farther than it is there, in a ball around the eye.
static double limit_of(const usi_picture_scene *x, const usi_picture_target *t, us_vec3 o, double ball) {
    if (!x->pager[t->geom]) return FAR;
    return fmax(0, ball - us_vec3_norm(us_vec3_sub(o, x->eye)));
}

// ---------------------------------------------------------------- rays and one shape

static bool may_meet(const usi_picture_target *t, us_vec3 o, us_vec3 d, double until) {
    const us_vec3 v = us_vec3_sub(t->centre, o);
    const double along = us_vec3_dot(v, d), r = t->radius;
    return along > -r && along < until + r && us_vec3_dot(v, v) - along * along <= r * r;
}

// Ground in packets; with soil on it, as far as it may have risen, and then each ray by itself.
static void cast_level(const usi_picture_scene *x, const usi_picture_target *t, int32_t n, const us_vec3 *o,
                       const us_vec3 *d, const double *until, us_ray_hit *out) {
    const usi_geom *g = &x->sim->model->geom[t->geom];
    const usi_deformable *patch = usi_shape_patch(x->sim, t->geom);
    const us_vec3 lift = us_vec3_make(0, 0, patch ? usi_deformable_lift(patch) : 0);
    usi_ray ray[USI_PICTURE_RAYS];
    for (int32_t i = 0; i < n; i++)
        ray[i] = (usi_ray){us_vec3_sub(us_vec3_sub(o[i], t->X_WG.p), lift), d[i]};
    usi_ray_cast_field_many(g->geom.field, n, ray, until, out);
    for (int32_t i = 0; patch && i < n; i++)
        out[i] = usi_deformable_ray_from(g, patch, us_vec3_add(ray[i].o, lift), d[i], until[i], out[i]);
}

static void cast_ground(const usi_picture_scene *x, const usi_picture_target *t, int32_t n, const us_vec3 *o,
                        const us_vec3 *d, const double *until, us_ray_hit *out) {
    if (t->is_level) {
        cast_level(x, t, n, o, d, until, out);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        out[i] = usi_shape_ray(x->sim, t->geom, t->X_WG, o[i], d[i], until[i]);
}

// ---------------------------------------------------------------- the first hit

// The cone in which the rays of a tile lie, from a ball around their starts; and, closer to them, the wedges
// between two planes each, with the normals inwards.
typedef struct ray_cone {
    us_vec3 o, axis, plane[4];
    double cosine, sine, slack;
    bool is_wide;
} ray_cone;

// Two directions across an axis.
static void find_across(us_vec3 axis, us_vec3 *u, us_vec3 *v) {
    const us_vec3 any = fabs(axis.z) < 0.9 ? us_vec3_make(0, 0, 1) : us_vec3_make(1, 0, 0),
                  across = us_vec3_cross(any, axis);
    *u = us_vec3_scale(1 / us_vec3_norm(across), across);
    *v = us_vec3_cross(axis, *u);
}

static void find_planes(const usi_picture_rays *r, ray_cone *c) {
    us_vec3 across[2];
    find_across(c->axis, &across[0], &across[1]);
    for (int k = 0; k < 2; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int32_t i = 0; i < r->n; i++) {
            const double tangent = us_vec3_dot(r->d[i], across[k]) / us_vec3_dot(r->d[i], c->axis);
            low = fmin(low, tangent);
            high = fmax(high, tangent);
        }
        c->plane[2 * k] = us_vec3_sub(across[k], us_vec3_scale(low - 1e-9, c->axis));
        c->plane[2 * k + 1] = us_vec3_sub(us_vec3_scale(high + 1e-9, c->axis), across[k]);
    }
}

static ray_cone cone_of(const usi_picture_rays *r) {
    us_vec3 sum = us_vec3_make(0, 0, 0);
    for (int32_t i = 0; i < r->n; i++)
        sum = us_vec3_add(sum, r->d[i]);
    ray_cone c = {.o = r->o[0], .cosine = 1};
    const double length = us_vec3_norm(sum);
    c.is_wide = !(length > 0.5 * r->n);
    if (c.is_wide) return c;
    c.axis = us_vec3_scale(1 / length, sum);
    for (int32_t i = 0; i < r->n; i++) {
        c.cosine = fmin(c.cosine, us_vec3_dot(c.axis, r->d[i]));
        c.slack = fmax(c.slack, us_vec3_norm(us_vec3_sub(r->o[i], c.o)));
    }
    c.is_wide = c.cosine < 0.1;
    c.sine = sqrt(fmax(0, 1 - c.cosine * c.cosine)) + 1e-9;
    if (!c.is_wide) find_planes(r, &c);
    return c;
}

// Whether all corners of a shape's box lie behind one of the planes.
static bool is_behind(const ray_cone *c, const usi_picture_target *t) {
    for (int k = 0; k < 4; k++) {
        const double slack = 2 * c->slack + 1e-6;
        bool is = true;
        for (int i = 0; i < 8 && is; i++)
            is = us_vec3_dot(c->plane[k], us_vec3_sub(t->corner[i], c->o)) < -slack;
        if (is) return true;
    }
    return false;
}

// Whether the sphere around a shape lies beside the cone, farther from its surface than its radius, or its
// box does.
static bool is_beside(const ray_cone *c, const usi_picture_target *t) {
    if (c->is_wide || !isfinite(t->radius)) return false;
    const us_vec3 v = us_vec3_sub(t->centre, c->o);
    const double r = t->radius + c->slack, along = us_vec3_dot(v, c->axis), all = us_vec3_dot(v, v);
    if (all > r * r && (along < -r || sqrt(fmax(0, all - along * along)) * c->cosine - along * c->sine > r))
        return true;
    return is_behind(c, t);
}

static void keep(usi_picture_rays *r, int32_t i, us_ray_hit hit, int32_t geom) {
    if (!(hit.range < r->hit[i].range)) return;
    r->hit[i] = hit;
    r->geom[i] = geom;
}

// A ray among the shapes of the world's tree.
typedef struct picture_tree_ray {
    const us_model *m;
    usi_picture_rays *r;
    int32_t i;
} picture_tree_ray;

static double visit(void *context, int32_t box, double until) {
    const picture_tree_ray *x = context;
    const int32_t geom = x->m->fixed_geom[box];
    const usi_geom *g = &x->m->geom[geom];
    const us_ray_hit hit = us_geom_ray(&g->geom, g->X_NG, x->r->o[x->i], x->r->d[x->i], until);
    if (hit.range == 0) return until;
    keep(x->r, x->i, hit, geom);
    return hit.range < until ? hit.range : until;
}

static double until_of(const usi_picture_rays *r, int32_t i, double limit) {
    return r->hit[i].range < limit ? r->hit[i].range : limit;
}

void usi_picture_cast(const usi_picture_scene *x, usi_picture_rays *rays) {
    const us_model *m = x->sim->model;
    if (rays->n == 0) return;
    const ray_cone cone = cone_of(rays);
    for (int32_t i = 0; i < rays->n; i++) {
        rays->hit[i] = (us_ray_hit){INFINITY, {0, 0, 0}};
        rays->geom[i] = -1;
        picture_tree_ray line = {m, rays, i};
        if (m->fixed_tree) usi_box_tree_cast(m->fixed_tree, rays->o[i], rays->d[i], FAR, visit, &line);
    }
    for (int32_t k = 0; k < x->n_solid; k++) {
        const usi_picture_target *t = &x->target[k];
        if (is_beside(&cone, t)) continue;
        for (int32_t i = 0; i < rays->n; i++) {
            const double until = until_of(rays, i, FAR);
            if (isfinite(t->radius) && !may_meet(t, rays->o[i], rays->d[i], until)) continue;
            const us_ray_hit hit = usi_shape_ray(x->sim, t->geom, t->X_WG, rays->o[i], rays->d[i], until);
            if (hit.range > 0) keep(rays, i, hit, t->geom);
        }
    }
    for (int32_t k = x->n_solid; k < x->n; k++) {
        const usi_picture_target *t = &x->target[k];
        double until[USI_PICTURE_RAYS];
        us_ray_hit hit[USI_PICTURE_RAYS];
        for (int32_t i = 0; i < rays->n; i++)
            until[i] = until_of(rays, i, limit_of(x, t, rays->o[i], x->reach));
        cast_ground(x, t, rays->n, rays->o, rays->d, until, hit);
        for (int32_t i = 0; i < rays->n; i++)
            keep(rays, i, hit[i], t->geom);
    }
}

// ---------------------------------------------------------------- what is in the way

typedef struct cover_ray {
    const us_model *m;
    us_vec3 o, d;
    bool *is_dark;
} cover_ray;

static double visit_any(void *context, int32_t box, double until) {
    const cover_ray *x = context;
    const usi_geom *g = &x->m->geom[x->m->fixed_geom[box]];
    if (!isfinite(us_geom_ray(&g->geom, g->X_NG, x->o, x->d, until).range)) return until;
    *x->is_dark = true;
    return -1;
}

// The points that are still in the light, one behind the other: of[] says which.
static int32_t gather(int32_t n, const us_vec3 *p, const bool *is_dark, us_vec3 *o, int32_t *of) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        if (is_dark[i]) continue;
        o[count] = p[i];
        of[count++] = i;
    }
    return count;
}

// The beam from points towards a light: a rectangle across it in which all of them lie, and where it begins.
typedef struct light_beam {
    us_vec3 axis[3];  // the last one along it
    double low[3], high[3];
} light_beam;

static light_beam beam_of(int32_t n, const us_vec3 *p, us_vec3 toward) {
    light_beam b = {.axis = {[2] = toward}};
    find_across(toward, &b.axis[0], &b.axis[1]);
    for (int k = 0; k < 3; k++) {
        b.low[k] = INFINITY;
        b.high[k] = -INFINITY;
        for (int32_t i = 0; i < n; i++) {
            const double x = us_vec3_dot(p[i], b.axis[k]);
            b.low[k] = fmin(b.low[k], x);
            b.high[k] = fmax(b.high[k], x);
        }
    }
    return b;
}

// Whether the box of a shape lies beside the beam or behind its beginning.
static bool is_out_of_beam(const light_beam *b, const usi_picture_target *t) {
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int i = 0; i < 8; i++) {
            const double x = us_vec3_dot(t->corner[i], b->axis[k]);
            low = fmin(low, x);
            high = fmax(high, x);
        }
        if (high < b->low[k] - 1e-6 || (k < 2 && low > b->high[k] + 1e-6)) return true;
    }
    return false;
}

// By shapes that are no ground.
static void cover_by_solids(const usi_picture_scene *x, int32_t n, const us_vec3 *p, us_vec3 toward,
                            bool *is_dark) {
    const light_beam beam = beam_of(n, p, toward);
    for (int32_t k = 0; k < x->n_solid; k++) {
        const usi_picture_target *t = &x->target[k];
        if (isfinite(t->radius) && is_out_of_beam(&beam, t)) continue;
        for (int32_t i = 0; i < n; i++) {
            if (is_dark[i] || (isfinite(t->radius) && !may_meet(t, p[i], toward, FAR))) continue;
            is_dark[i] = isfinite(usi_shape_ray(x->sim, t->geom, t->X_WG, p[i], toward, FAR).range);
        }
    }
}

void usi_picture_cover(const usi_picture_scene *x, int32_t n, const us_vec3 *p, us_vec3 toward,
                       bool *out_is_dark) {
    const us_model *m = x->sim->model;
    for (int32_t i = 0; i < n; i++) {
        cover_ray ray = {m, p[i], toward, &out_is_dark[i]};
        out_is_dark[i] = false;
        if (m->fixed_tree) usi_box_tree_cast(m->fixed_tree, p[i], toward, FAR, visit_any, &ray);
    }
    if (n > 0) cover_by_solids(x, n, p, toward, out_is_dark);
    for (int32_t k = x->n_solid; k < x->n; k++) {
        const usi_picture_target *t = &x->target[k];
        us_vec3 o[USI_PICTURE_RAYS], d[USI_PICTURE_RAYS];
        double until[USI_PICTURE_RAYS];
        us_ray_hit hit[USI_PICTURE_RAYS];
        int32_t of[USI_PICTURE_RAYS];
        const int32_t count = gather(n, p, out_is_dark, o, of);
        for (int32_t i = 0; i < count; i++) {
            d[i] = toward;
            until[i] = limit_of(x, t, o[i], 2 * x->reach);
        }
        if (count > 0) cast_ground(x, t, count, o, d, until, hit);
        for (int32_t i = 0; i < count; i++)
            out_is_dark[of[i]] = isfinite(hit[i].range);
    }
}

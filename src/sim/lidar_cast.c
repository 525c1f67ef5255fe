// What the beams of lidars meet within a step.
//
// Few shapes can be met at all in a step: the head turns by some degrees in it, and what lies outside the
// wedge between its two ends, by the sphere around it, is left out; so is what lies above or below all beams.
// A shape in which the sensor itself is (range 0), its housing, does not stop the beams.
#include <string.h>

#include "contact/soil.h"
#include "geom/box_tree.h"
#include "geom/ray.h"
#include "model/robots.h"
#include "sim/sim__lidar.h"

// ---------------------------------------------------------------- poses within a step

usi_course usi_course_of(us_pose before, us_pose now) {
    const bool is_still = memcmp(&before, &now, sizeof now) == 0;
    usi_course c = {before, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 0), is_still};
    if (is_still) return c;
    c.along = us_vec3_sub(now.p, before.p);
    c.turn = us_quat_log(us_quat_mul(us_quat_conj(before.q), now.q));
    return c;
}

static bool is_level(const us_sim *s, int32_t geom, us_pose X) {
    const us_geom *g = &s->model->geom[geom].geom;
    return g->kind == US_GEOM_HEIGHT_FIELD && g->radius == 0 && X.q.w == 1 && X.q.x == 0 && X.q.y == 0 &&
           X.q.z == 0;
}

void usi_lidar_find_targets(us_sim *s) {
    const us_model *m = s->model;
    usi_lidars *x = s->lidars;
    usi_kinematics(s->dyn, s->next.q, s->next.v, NULL);
    for (int32_t at = usi_box_tree_n(m->fixed_tree); at < m->n_geom; at++)
        x->before[m->fixed_geom[at]] = usi_shape_pose(s, m->fixed_geom[at]);
    usi_kinematics(s->dyn, s->now.q, s->now.v, NULL);
    for (int32_t at = usi_box_tree_n(m->fixed_tree); at < m->n_geom; at++) {
        const int32_t i = m->fixed_geom[at];
        const usi_geom *g = &m->geom[i];
        usi_lidar_target *t = &x->all[i];
        const us_pose now = usi_shape_pose(s, i);
        *t = (usi_lidar_target){.X_WG = usi_course_of(x->before[i], now),
                                .geom = i,
                                .radius = g->reach,
                                .is_field = g->geom.kind == US_GEOM_HEIGHT_FIELD,
                                .is_level = is_level(s, i, now)};
        if (t->is_field || !isfinite(g->reach)) {
            t->radius = INFINITY;
            continue;
        }
        const us_aabb box = us_geom_box(&g->geom, us_pose_identity());
        const us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(box.min, box.max));
        for (int k = 0; k < 8; k++)
            t->corner[k] = us_vec3_make(k & 1 ? box.max.x : box.min.x, k & 2 ? box.max.y : box.min.y,
                                        k & 4 ? box.max.z : box.min.z);
        t->centre = us_pose_point(x->before[i], middle);
        t->shift = us_vec3_sub(us_pose_point(now, middle), t->centre);
    }
}

// Whether all corners of a shape's box lie in the cone above the highest beam or below the lowest: between
// them nothing of the shape can be seen, since these cones are convex. What carries a lidar is often there.
static bool is_beside_beams(const usi_lidar *l, const usi_lidar_target *t, us_pose X_SW, double slack) {
    const us_pose X_SG = us_pose_mul(X_SW, t->X_WG.X);
    bool is_below = l->lowest<0, is_above = l->highest> 0;
    for (int k = 0; k < 8 && (is_below || is_above); k++) {
        const us_vec3 p = us_pose_point(X_SG, t->corner[k]);
        const double across = sqrt(p.x * p.x + p.y * p.y);
        is_below = is_below && p.z < l->lowest * (across + slack) - slack;
        is_above = is_above && p.z > l->highest * (across + slack) + slack;
    }
    return is_below || is_above;
}

// Tiles of ground within reach are read before the beams go out. Ground that cannot be read is not seen.
static void page_in(us_sim *s, us_vec3 o, double range) {
    usi_lidars *x = s->lidars;
    for (int32_t i = 0; i < x->n_near; i++) {
        usi_lidar_target *t = &x->near[i];
        usi_pager_client *client = x->pager[t->geom];
        if (!client) continue;
        const us_height_field *f = s->model->geom[t->geom].geom.field;
        const us_vec3 p = us_pose_point(us_pose_inverse(t->X_WG.X), o);
        const double u = p.x / f->dx + 0.5 * (f->n_x - 1), v = p.y / f->dy + 0.5 * (f->n_y - 1),
                     a = range / f->dx + 2, b = range / f->dy + 2;
        usi_pager_begin(client);
        usi_pager_need(client, (usi_window){(int32_t)fmax(-2, fmin(f->n_x, u - a)),
                                            (int32_t)fmax(-2, fmin(f->n_x, u + a)),
                                            (int32_t)fmax(-2, fmin(f->n_y, v - b)),
                                            (int32_t)fmax(-2, fmin(f->n_y, v + b))});
        if (usi_pager_wait(client, NULL)) x->near[i--] = x->near[--x->n_near];
    }
}

// The wedge that the head turns through in a step, grown by how the sensor itself turns: shapes behind one
// of its two planes are out of reach.
void usi_lidar_choose_targets(us_sim *s, const usi_lidar *l, const usi_course *sensor, double from,
                              double to) {
    usi_lidars *x = s->lidars;
    const double half = 0.5 * fabs(to - from) + l->widest + us_vec3_norm(sensor->turn) + 1e-6,
                 middle = 0.5 * (from + to), moved = us_vec3_norm(sensor->along);
    const us_quat q = sensor->X.q;
    const us_vec3 o = sensor->X.p;
    const us_vec3 left = us_quat_rotate(q, us_vec3_make(sin(middle + half), -cos(middle + half), 0)),
                  right = us_quat_rotate(q, us_vec3_make(-sin(middle - half), cos(middle - half), 0));
    const us_pose X_SW = us_pose_inverse(sensor->X);
    const double turned = us_vec3_norm(sensor->turn);
    const bool is_narrow = half < 1.5;
    x->n_near = 0;
    for (int32_t at = usi_box_tree_n(s->model->fixed_tree); at < s->model->n_geom; at++) {
        const usi_lidar_target *t = &x->all[s->model->fixed_geom[at]];
        if (isfinite(t->radius)) {
            const us_vec3 v = us_vec3_sub(t->centre, o);
            const double r = t->radius + moved + us_vec3_norm(t->shift) + 1e-6, far = l->def->max_range + r;
            if (us_vec3_dot(v, v) > far * far) continue;
            if (is_narrow && (us_vec3_dot(v, left) < -r || us_vec3_dot(v, right) < -r)) continue;
            // Corners move by no more than this, seen from the sensor.
            const double slack = moved + us_vec3_norm(t->shift) + us_vec3_norm(t->X_WG.turn) * 2 * t->radius +
                                 turned * (us_vec3_norm(v) + t->radius) + 1e-6;
            if (is_beside_beams(l, t, X_SW, slack)) continue;
        }
        x->near[x->n_near++] = *t;
    }
    page_in(s, o, l->def->max_range);
}

// ---------------------------------------------------------------- lines

static bool may_meet(const usi_lidar_target *t, us_vec3 o, us_vec3 d, double u, double range) {
    const us_vec3 v = us_vec3_sub(us_vec3_add(t->centre, us_vec3_scale(u, t->shift)), o);
    // A shape that turns about another point than its middle goes by an arc: a little more than its sphere.
    const double along = us_vec3_dot(v, d), r = t->radius * (1 + 1e-6) + 1e-6;
    return along > -r && along < range + r && us_vec3_dot(v, v) - along * along <= r * r;
}

// What the surface of a shape makes of the line that meets it.
static void put_echo(const us_sim *s, const usi_lidar *l, int32_t geom, us_vec3 o, us_vec3 d,
                     const us_ray_hit *hit, usi_lidar_echo *out) {
    const us_model *m = s->model;
    const usi_geom *g = &m->geom[geom];
    int32_t material = g->material;
    const int32_t robot = m->sensor[l->sensor].robot;
    if (l->def->hides_own_robot && g->owner >= 0 && g->owner == m->robot[robot].network->group) {
        out->range = INFINITY;
        return;
    }
    if (g->has_region) {
        const us_vec3 p =
            us_pose_point(us_pose_inverse(g->X_NG), us_vec3_add(o, us_vec3_scale(hit->range, d)));
        material = usi_ground_material_at(m, &s->now.contact, geom, p.x, p.y);
    }
    const usi_lidar_surface *look = &l->surface[material];
    const double facing = us_vec3_dot(hit->normal, d);
    out->range = hit->range;
    out->cosine = fabs(facing);
    out->reflectivity = look->reflectivity;
    out->retroreflection = look->retroreflection;
    out->sunlit = 0;
    if (l->def->sun > 0) {
        // Of the side that is seen.
        const double sun = us_vec3_dot(hit->normal, l->def->sun_direction) * (facing > 0 ? -1 : 1);
        if (sun > 0) out->sunlit = look->reflectivity * sun;
    }
}

// A shape, or ground with soil on it.
static us_ray_hit cast_one(const us_sim *s, const usi_lidar_target *t, us_vec3 o, us_vec3 d, double u,
                           double until) {
    const us_ray_hit miss = {INFINITY, {0, 0, 0}};
    if (isfinite(t->radius) && !may_meet(t, o, d, u, until)) return miss;
    const us_ray_hit hit = usi_shape_ray(s, t->geom, usi_course_at(&t->X_WG, u), o, d, until);
    return hit.range == 0 && !t->is_field ? miss : hit;
}

// What was met so far of each line.
typedef struct meeting {
    us_ray_hit best[USI_LIDAR_LINES];
    int32_t geom[USI_LIDAR_LINES];
} meeting;

static void keep(meeting *m, int32_t i, us_ray_hit hit, int32_t geom) {
    if (!(hit.range < m->best[i].range)) return;
    m->best[i] = hit;
    m->geom[i] = geom;
}

// One line among the shapes of the world's tree.
typedef struct tree_line {
    const us_model *m;
    us_vec3 o, d;
    meeting *to;
    int32_t i;
} tree_line;

static double visit(void *context, int32_t box, double until) {
    const tree_line *x = context;
    const usi_geom *g = &x->m->geom[x->m->fixed_geom[box]];
    const us_ray_hit hit = us_geom_ray(&g->geom, g->X_NG, x->o, x->d, until);
    if (hit.range == 0) return until;
    keep(x->to, x->i, hit, x->m->fixed_geom[box]);
    return hit.range < until ? hit.range : until;
}

// Ground in packets; with soil on it, as far as it may have risen, and then each ray by itself.
static void cast_level(const us_sim *s, const usi_lidar_target *t, const usi_lidar_lines *x, double range,
                       meeting *m) {
    const usi_geom *g = &s->model->geom[t->geom];
    const usi_deformable *patch = usi_shape_patch(s, t->geom);
    const us_vec3 lift = us_vec3_make(0, 0, patch ? usi_deformable_lift(patch) : 0);
    usi_ray ray[USI_LIDAR_LINES];
    double until[USI_LIDAR_LINES];
    us_ray_hit hit[USI_LIDAR_LINES];
    for (int32_t i = 0; i < x->n; i++) {
        ray[i] = (usi_ray){us_vec3_sub(us_vec3_sub(x->o[i], t->X_WG.X.p), lift), x->d[i]};
        until[i] = m->best[i].range < range ? m->best[i].range : range;
    }
    usi_ray_cast_field_many(g->geom.field, x->n, ray, until, hit);
    for (int32_t i = 0; i < x->n; i++) {
        if (patch)
            hit[i] =
                usi_deformable_ray_from(g, patch, us_vec3_add(ray[i].o, lift), x->d[i], until[i], hit[i]);
        keep(m, i, hit[i], t->geom);
    }
}

// Ground comes last: what stands before it ends its rays early.
void usi_lidar_cast(const us_sim *s, const usi_lidar *l, const usi_lidar_lines *x) {
    const usi_lidars *all = s->lidars;
    const double range = l->def->max_range;
    meeting m;
    for (int32_t i = 0; i < x->n; i++) {
        m.best[i] = (us_ray_hit){INFINITY, {0, 0, 0}};
        m.geom[i] = -1;
        tree_line line = {s->model, x->o[i], x->d[i], &m, i};
        if (s->model->fixed_tree)
            usi_box_tree_cast(s->model->fixed_tree, x->o[i], x->d[i], range, visit, &line);
        for (int32_t k = 0; k < all->n_near; k++) {
            const usi_lidar_target *t = &all->near[k];
            const double until = m.best[i].range < range ? m.best[i].range : range;
            if (!t->is_field) keep(&m, i, cast_one(s, t, x->o[i], x->d[i], x->u[i], until), t->geom);
        }
    }
    for (int32_t k = 0; k < all->n_near; k++) {
        const usi_lidar_target *t = &all->near[k];
        if (t->is_level) cast_level(s, t, x, range, &m);
        for (int32_t i = 0; t->is_field && !t->is_level && i < x->n; i++) {
            const double until = m.best[i].range < range ? m.best[i].range : range;
            keep(&m, i, cast_one(s, t, x->o[i], x->d[i], x->u[i], until), t->geom);
        }
    }
    for (int32_t i = 0; i < x->n; i++) {
        if (m.geom[i] >= 0)
            put_echo(s, l, m.geom[i], x->o[i], x->d[i], &m.best[i], x->to[i]);
        else
            x->to[i]->range = INFINITY;
    }
}

// What rays and overlaps share: which shapes are asked, where they are, and ground that is paged in.
#ifndef USI_SIM_SIM__QUERY_H
#define USI_SIM_SIM__QUERY_H

#include "sim/sim.h"
#include "soil/deformable.h"

// Poses of all links, for usi_shape_pose.
static inline void usi_shapes_start(const us_sim *s) { usi_kinematics(s->dyn, s->now.q, s->now.v, NULL); }

static inline us_pose usi_shape_pose(const us_sim *s, int32_t geom) {
    const usi_geom *g = &s->model->geom[geom];
    if (g->node < 0) return g->X_NG;
    us_pose X = us_pose_mul(usi_link_pose(&s->dyn->link[g->node], s->dyn->origin[g->tree]), g->X_NG);
    X.q = us_quat_normalize(X.q);
    return X;
}

// Whether a filter, which may be NULL, lets a shape be seen.
static inline bool usi_shape_is_seen(const us_model *m, int32_t geom, const us_query_filter *f) {
    const usi_geom *g = &m->geom[geom];
    if (!f) return true;
    if (!(g->group & f->mask) || (f->except_world && g->body < 0)) return false;
    if (f->except.i < 0 || f->except.i >= m->n_body) return true;
    if (g->body == f->except.i) return false;
    const int32_t node = m->body[f->except.i].node;
    return !(f->except_object && node >= 0 && g->node >= 0 && g->tree == m->node[node].tree);
}

// The patch of soil on a shape; NULL: it keeps its form.
static inline const usi_deformable *usi_shape_patch(const us_sim *s, int32_t geom) {
    const int32_t patch = s->model->geom[geom].patch;
    return patch >= 0 && s->patch ? &s->patch[patch] : NULL;
}

// query_ray.c: a ray into one shape, with the form that soil has now. Ground that is paged in is there.
us_ray_hit usi_shape_ray(const us_sim *s, int32_t geom, us_pose X_WG, us_vec3 o, us_vec3 d, double range);
// deformable_ray.c: a ray, in the frame of a height field, into it and the soil on it. The same where it is
// known where the ray meets the ground as it was written, lifted by so much: nothing is met before.
double usi_deformable_lift(const usi_deformable *patch);
us_ray_hit usi_deformable_ray_from(const usi_geom *g, const usi_deformable *patch, us_vec3 o, us_vec3 d,
                                   double range, us_ray_hit first);
us_ray_hit usi_deformable_ray(const usi_geom *g, const usi_deformable *patch, us_vec3 o, us_vec3 d,
                              double range);

#endif

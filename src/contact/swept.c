// What would pass through a mesh within one step: a point for its core.
//
// A mesh is a skin. Contact points are rows on velocities, taken where a shape is at the start of the step.
// For what moves by more than its own thickness in a step that is not enough: a row at a corner is met by
// spin, which the step then turns by a radian and more, while the middle goes on to the other side, from
// where the skin is seen no more; or the triangle that is hit is not among the nearest ones.
//
//        o  core           Its middle is followed along its way, and where that ends in or behind a triangle,
//         \                the core, a sphere within the shape, gets a point on the triangle's plane. The
//     _____\_________      point lies on the normal through the middle, so that spin alone cannot meet it.
//           x
//
// Slower shapes, and shapes that do not meet a mesh, never come here.
#include <math.h>

#include "contact/contact__collide.h"

// The core, of the smallest half side of the box around a shape: within a cone too.
static const double CORE = 0.5;

usi_v4 usi_core_of(const usi_geom *g) {
    const us_aabb b = us_geom_box(&g->geom, us_pose_identity());
    const us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(b.min, b.max)), half = us_vec3_sub(b.max, middle);
    usi_v4 core = usi_v4_from(us_pose_point(g->X_NG, middle));
    core[3] = fmin(fmin(half.x, half.y), half.z);
    return core;
}

static inline usi_v4 velocity_at(const usi_collision_body *k, usi_v4 p) {
    return k->v + usi_v4_cross(k->w, p - k->p);
}

// Where the core of a shape of `mover` comes down on the mesh: the plane's normal and the core's gap.
bool usi_swept_find(const usi_contacts *c, int32_t mesh, const usi_collision_body *ground, int32_t geom,
                    const usi_collision_body *mover, usi_core_hit *out) {
    const us_model *m = c->model;
    const double h = m->step, half = c->core[geom][3], radius = CORE * half;
    const usi_v4 middle = mover->p + usi_to_world(mover, usi_v4_vec3(c->core[geom])),
                 way = h * (velocity_at(mover, middle) - velocity_at(ground, middle)) +
                       (h * h) * usi_v4_from(m->gravity);
    const double length = sqrt(usi_v4_dot(way, way));
    if (!(length > 0)) return false;
    const us_vec3 along = usi_v4_vec3(way * (1 / length));
    const us_ray_hit hit = us_geom_ray(&m->geom[mesh].geom, usi_geom_pose(c, mesh, ground),
                                       usi_v4_vec3(middle), along, length + radius);
    const double steep = -us_vec3_dot(hit.normal, along);
    // Inside a closed mesh: that is not where it passes.
    if (!(hit.range > 0 && hit.range < INFINITY && steep > 0)) return false;
    out->normal = usi_v4_from(hit.normal);
    out->on_core = middle - radius * out->normal;
    // What is nearer already lies on it in another way, and is only to come no nearer.
    out->gap = fmax(hit.range * steep - radius, 0);
    return true;
}

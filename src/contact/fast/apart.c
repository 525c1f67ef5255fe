// Directions along which near pairs were last seen apart (USI_FAST_APART). Plain code finds the points of
// every pair whose boxes overlap.
#include "contact/contact__collide.h"

// How far a shape reaches along a direction (a unit vector of the world) from its node's origin.
static double reach_along(const usi_contacts *c, int32_t geom, const usi_collision_body *k, usi_v4 d) {
    const usi_geom *g = &c->model->geom[geom];
    const double *size = g->geom.size;
    if (c->is_plain[geom] && g->geom.kind == US_GEOM_CAPSULE)
        return fabs(usi_v4_dot(k->Z, d)) * size[0] + g->geom.radius +
               usi_v4_dot(usi_to_world(k, g->X_NG.p), d);
    us_vec3 local = usi_to_local(k, d),
            in_G = c->is_plain[geom] ? local : us_quat_rotate(us_quat_conj(g->X_NG.q), local);
    double reach = g->geom.kind == US_GEOM_BOX ? fabs(in_G.x) * size[0] + fabs(in_G.y) * size[1] +
                                                     fabs(in_G.z) * size[2] + g->geom.radius
                                               : us_vec3_dot(in_G, us_geom_support(&g->geom, in_G));
    return reach + us_vec3_dot(local, g->X_NG.p);
}

// Whether the direction in which the pair was last seen apart still shows them so: much cheaper than finding
// it anew.
bool usi_is_apart(const usi_contacts *c, const usi_touch *t, us_vec3 direction_A) {
    if (direction_A.x == 0 && direction_A.y == 0 && direction_A.z == 0) return false;
    const usi_collision_body *A = &c->collide.collision_body[c->body_of_geom[t->geom_a]],
                             *B = &c->collide.collision_body[c->body_of_geom[t->geom_b]];
    usi_v4 d = usi_to_world(A, direction_A);
    double between =
        usi_v4_dot(d, A->p - B->p) - reach_along(c, t->geom_a, A, -d) - reach_along(c, t->geom_b, B, d);
    // The nanometre is for rounding: what is dropped here would have had no point.
    return between > c->collide.grow[t->geom_a] + c->collide.grow[t->geom_b] + 1e-9;
}

static bool has_support(const usi_geom *g) { return g->geom.kind <= US_GEOM_CONVEX; }

us_vec3 usi_find_apart(const usi_contacts *c, const usi_touch *t) {
    const usi_geom *ga = &c->model->geom[t->geom_a], *gb = &c->model->geom[t->geom_b];
    const usi_collision_body *A = &c->collide.collision_body[c->body_of_geom[t->geom_a]],
                             *B = &c->collide.collision_body[c->body_of_geom[t->geom_b]];
    us_gap gap;
    if (!has_support(ga) || !has_support(gb) ||
        us_geom_distance(&ga->geom, usi_geom_pose(c, t->geom_a, A), &gb->geom, usi_geom_pose(c, t->geom_b, B),
                         &gap))
        return us_vec3_make(0, 0, 0);
    return usi_to_local(A, usi_v4_from(gap.normal));
}

// Minkowski difference of two convex cores: shared by distance (gjk.c) and depth (epa.c).
#ifndef USI_GEOM_GJK_H
#define USI_GEOM_GJK_H

#include "geom/geom.h"

// Two cores in A's frame. Their difference C = { a - b } holds the origin where they overlap, and is as far
// from it as they are apart.
typedef struct usi_intersection usi_intersection;
typedef struct usi_convex_pair {
    const us_geom *A, *B;
    us_mat3 R_AB;
    us_vec3 p_AB;
    us_vec3 up;  // +z of W, in A: the separating direction where the shapes prefer none
    usi_intersection *intersection_A, *intersection_B;  // of intersections, otherwise NULL
    double noise;  // of the supports of intersections, relative to the size of C; 0 without
} usi_convex_pair;

// A point of C with the two points it is made of.
typedef struct usi_minkowski_point {
    us_vec3 w, a, b;  // w = a - b
} usi_minkowski_point;

// The farthest point of C along d.
usi_minkowski_point usi_convex_pair_support(const usi_convex_pair *pair, us_vec3 d);

// Result between two cores in A's frame: normal * distance = a - b.
typedef struct usi_core_gap {
    double distance;
    us_vec3 normal, a, b;
    double slack;  // by how much less than `distance` the normal separates the cores
} usi_core_gap;

// Distance of the origin from C, started at C's support point along `start` (may be 0). False where it is
// inside, or nearer than a direction can be resolved; then the points (nearly) coincide.
bool usi_gjk(const usi_convex_pair *pair, us_vec3 start, usi_core_gap *out);

// Depth of the origin in C, or near its surface. `touch` holds a point a of A and b of B that (nearly)
// coincide; used where C has no volume.
usi_core_gap usi_epa(const usi_convex_pair *pair, const usi_core_gap *touch);

// True where (B, A) is the order in which the pair is computed, so that both orders give the same bits.
bool usi_is_swapped(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB);
static inline us_gap usi_gap_swapped(us_gap g) {
    us_gap t = {g.distance, g.p_B, g.p_A, us_vec3_scale(-1, g.normal)};
    return t;
}
// usi_convex_gap (geom.h) of an intersection A whose cutting planes are kept from query to query. B is of
// another kind. intersection_A NULL: A is any convex shape.
us_gap usi_convex_gap_cached(const us_geom *A, us_pose X_WA, usi_intersection *intersection_A,
                             const us_geom *B, us_pose X_WB);
// Takes the radii off the distance and moves the points to the swept surfaces.
static inline us_gap usi_gap_less_radii(us_gap g, double r_A, double r_B) {
    g.distance -= r_A + r_B;
    g.p_A = us_vec3_sub(g.p_A, us_vec3_scale(r_A, g.normal));
    g.p_B = us_vec3_add(g.p_B, us_vec3_scale(r_B, g.normal));
    return g;
}

#endif

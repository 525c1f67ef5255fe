// Shapes at random places, and references to judge the distance between them by.
//
// The reference is duality. For convex A and B the distance (or minus the depth) is the largest separation
// over all unit directions n,
//
//     s(n) = min of n.x over A - max of n.x over B,
//
// so an answer (distance, points, normal) is proved right by: s(normal) = distance, which no answer above the
// truth can pass; and, apart, by points of A and B that are this near, which no answer below the truth can
// pass. Where they overlap, s is maximised by sampling the sphere of directions and refining the best
// samples. Supports and the distance of points are written here once more, from the definitions of the
// shapes.
#ifndef TEST_PAIRS_H
#define TEST_PAIRS_H

#include "instrumented.h"
#include "understudy/geom.h"

#define PAIRS_POSES(n) (IS_INSTRUMENTED ? (n) / 20 : (n))

typedef struct pairs_shape {
    us_geom geom;
    us_geom twin;  // the same set of points for the reference: of intersections another kind where there is
                   // one, else geom itself
    double size;   // radius of a ball around the shape's origin that holds it
    us_hull *hull;
    us_mesh *mesh;
    us_height_field *field;
    us_geom_part parts[4];
} pairs_shape;

// A random shape of a kind; sizes from 0.05 to 1, about half without a radius. `out` must not move
// afterwards.
void pairs_shape_make(us_geom_kind kind, uint64_t stream, pairs_shape *out);
void pairs_shape_free(pairs_shape *s);
// Uniform in [low, high) as a function of (stream, counter).
double pairs_random(uint64_t stream, uint64_t counter, double low, double high);
us_vec3 pairs_direction(uint64_t stream, uint64_t counter);  // unit
us_quat pairs_rotation(uint64_t stream, uint64_t counter);
// Two poses at which shapes of these sizes overlap about half of the time.
void pairs_poses(double size_A, double size_B, uint64_t stream, us_pose *out_X_WA, us_pose *out_X_WB);

// Convex kinds, radius included.
us_vec3 pairs_support(const us_geom *g, us_vec3 d);        // in the shape's frame, d unit
double pairs_point_distance(const us_geom *g, us_vec3 p);  // of a point outside; 0 inside
double pairs_separation(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB,
                        us_vec3 n);  // s(n) above
// The largest s that sampling finds.
double pairs_best_separation(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB);

// Checks, as cmocka assertions; all print the pair's kinds and the pose's number when they fail.
// Distance against the reference, exchange of A and B, what a small motion changes, contact points. Convex
// kinds and intersections.
void pairs_check_convex(us_geom_kind a, us_geom_kind b, int n_pose);
// One test for each pair of a kind in [first, last] with itself and the convex kinds after it, intersections
// left out.
int pairs_run(us_geom_kind first, us_geom_kind last, int n_pose);
// One test for each pair of a kind with those in [first, last] that are convex, or intersections.
int pairs_run_with(us_geom_kind a, us_geom_kind first, us_geom_kind last, int n_pose);
void pairs_check_exchange(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, const us_gap *g);
// Moved by u and turned by an angle, no distance changes by more than |u| + angle * size, and the noise,
// relative to the sizes.
void pairs_check_motion(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB,
                        const us_gap *g, uint64_t stream, double noise);
// Contact points agree with the distance.
void pairs_check_contact(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, const us_gap *g,
                         double size);
// Poses of shapes of kind a (A) and b (B).
typedef void pairs_check_pose(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB,
                              uint64_t pose);
void pairs_for_poses(us_geom_kind a, us_geom_kind b, int n_pose, pairs_check_pose *check);
us_gap pairs_gap(const us_geom *A, us_pose X_WA, const us_geom *B,
                 us_pose X_WB);           // checked to be numbers, with a unit normal
bool pairs_is_convex(us_geom_kind kind);  // intersections included
// A convex shape (A) or a surface against a surface (B), against all triangles and all balls. See
// pairs_surface.c.
pairs_check_pose pairs_check_surface, pairs_check_surfaces;
// Anything (A) against a union (B): its distance from the nearest part, each by itself.
pairs_check_pose pairs_check_union;
// Where a failing check stands: set before checks.
void pairs_at(us_geom_kind a, us_geom_kind b, uint64_t pose);
// A failed condition prints what it is, with two numbers.
void pairs_expect(bool holds, const char *what, double value, double limit);

#endif

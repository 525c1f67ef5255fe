// Shapes, and what can be asked of them: box, distance or penetration, contact points, rays, mass properties.
//
// Frame letters: G the shape's own frame, A and B two shapes, W the world. A shape is a small value; the data
// of hulls, meshes and height fields is borrowed, immutable and may be shared by any number of shapes and
// threads. Nothing here allocates except the functions that create such data.
#ifndef UNDERSTUDY_GEOM_H
#define UNDERSTUDY_GEOM_H

#include "understudy/base.h"
#include "understudy/math.h"

#ifdef __cplusplus
extern "C" {
#endif

// X(code, name). Convex kinds come first, then those that are made of many convex pieces.
//   every kind      `radius` is added all round (a sphere sweeps the rest): 0 or more
//   sphere          a point
//   capsule         a segment along z; size[0] half length
//   lozenge         a rectangle in x, y; size[0], size[1] half lengths
//   disc            circular lozenge: a disc in x, y; size[0] its radius
//   triangle        triangular lozenge: point[0..2]
//   box             size: half lengths x y z
//   cylinder        along z; size[0] radius, size[1] half length
//   cone            along z; size[0] radius of the base at z = -size[1], tip at z = +size[1]
//   ellipsoid       size: half axes x y z
//   tetrahedron     point[0..3]
//   convex          hull: a convex polyhedron
//   half-space      everything below z = 0 (of G), without end
//   mesh            triangles; solid where it is closed
//   height-field    everything below a surface z = h(x, y) over a rectangle of samples, each cell two
//                   triangles
//   union           of children
//   intersection    of convex children
#define US_GEOM_LIST(X)                     \
    X(US_GEOM_SPHERE, "sphere")             \
    X(US_GEOM_CAPSULE, "capsule")           \
    X(US_GEOM_LOZENGE, "lozenge")           \
    X(US_GEOM_DISC, "disc")                 \
    X(US_GEOM_TRIANGLE, "triangle")         \
    X(US_GEOM_BOX, "box")                   \
    X(US_GEOM_CYLINDER, "cylinder")         \
    X(US_GEOM_CONE, "cone")                 \
    X(US_GEOM_ELLIPSOID, "ellipsoid")       \
    X(US_GEOM_TETRAHEDRON, "tetrahedron")   \
    X(US_GEOM_CONVEX, "convex")             \
    X(US_GEOM_HALF_SPACE, "half-space")     \
    X(US_GEOM_MESH, "mesh")                 \
    X(US_GEOM_HEIGHT_FIELD, "height-field") \
    X(US_GEOM_UNION, "union")               \
    X(US_GEOM_INTERSECTION, "intersection")

typedef enum us_geom_kind {
#define US_GEOM_ENUM(code, name) code,
    US_GEOM_LIST(US_GEOM_ENUM)
#undef US_GEOM_ENUM
        US_GEOM_COUNT
} us_geom_kind;

US_API const char *us_geom_kind_name(us_geom_kind kind);  // "?" outside the list

typedef struct us_hull us_hull;
typedef struct us_mesh us_mesh;
typedef struct us_height_field us_height_field;
typedef struct us_geom_part us_geom_part;

typedef struct us_geom {
    us_geom_kind kind;
    double radius;
    double size[3];
    us_vec3 point[4];
    const us_hull *hull;
    const us_mesh *mesh;
    const us_height_field *field;
    const us_geom_part *parts;  // union and intersection
    int32_t n_part;
} us_geom;

struct us_geom_part {
    us_geom geom;
    us_pose X_GP;
};

// Check of sizes and data: degenerate sizes (a box of no thickness) are allowed, negative, infinite and
// missing ones are not.
US_API us_status us_geom_check(const us_geom *geom, us_error *err);

// Convex hull of n points (Qhull). Points in a plane or line are refused: US_ERR_VALUE.
US_API us_status us_hull_create(const us_vec3 *points, int32_t n, const us_allocator *allocator,
                                us_hull **out_hull, us_error *err);
US_API void us_hull_destroy(us_hull *hull);  // NULL is allowed

// Triangles over shared vertices, counter-clockwise seen from outside, with a tree of boxes over them.
US_API us_status us_mesh_create(const us_vec3 *vertices, int32_t n_vertex, const int32_t (*triangles)[3],
                                int32_t n_triangle, const us_allocator *allocator, us_mesh **out_mesh,
                                us_error *err);
US_API void us_mesh_destroy(us_mesh *mesh);  // NULL is allowed

// Convex decomposition of a closed mesh, for moving bodies: cut by planes until no part stands off the solid
// by more than max_error (m), or there are max_part of them. out_hulls has room for max_part; each is the
// caller's, for us_hull_destroy. No point of a part's surface is farther from the solid than *out_error;
// inside, hollows with narrow mouths are found by samples. It is above max_error where max_part was too few.
// The parts cover the solid. Deterministic. Cost: 10 ms to seconds. US_ERR_MESH: the mesh is open.
US_API us_status us_mesh_decompose(const us_mesh *mesh, double max_error, int32_t max_part,
                                   const us_allocator *allocator, us_hull **out_hulls, int32_t *out_n,
                                   double *out_error, us_error *err);

// Height field of n_x * n_y heights, x fastest, spacing (dx, dy), centred on G's origin. `heights` is copied.
US_API us_status us_height_field_create(const double *heights, int32_t n_x, int32_t n_y, double dx, double dy,
                                        const us_allocator *allocator, us_height_field **out_field,
                                        us_error *err);
US_API void us_height_field_destroy(us_height_field *field);  // NULL is allowed

// Height field over any shape but a half space, on n_x * n_y samples from one side of the shape's box to
// the other, along z of the shape's frame G; *out_X_GF is where its middle lies. Overhangs are filled; where
// there is no shape, the height is that of its lowest point.
//   is_bound false  the upper side, sampled by rays from above: exact at the samples
//   is_bound true   a volume that contains the shape: nowhere lower than it, by more than 1e-6 of its height
// *out_error (may be NULL): the maximum difference in height, m, at the samples and in the middle of every
// triangle; at a wall, the wall's height. Cost: 0.1 to 10 us per sample by rays, up to a hundred distances
// per cell for a volume. US_ERR_VALUE: a shape without end or without width.
US_API us_status us_height_field_create_from(const us_geom *geom, int32_t n_x, int32_t n_y, bool is_bound,
                                             const us_allocator *allocator, us_height_field **out_field,
                                             us_pose *out_X_GF, double *out_error, us_error *err);

typedef struct us_aabb {
    us_vec3 min, max;
} us_aabb;

// The box around a shape, radius included; infinite for a half space; a height field's ends at its lowest
// sample.
US_API us_aabb us_geom_box(const us_geom *geom, us_pose X_WG);

// The support point: farthest in a direction (any length but 0; in G), radius included. Convex kinds and
// intersections, NaN for the others.
US_API us_vec3 us_geom_support(const us_geom *geom, us_vec3 direction_G);

// Mass properties at density 1, about the centre of mass in G's axes, radius included. Exact for all convex
// kinds with flat or round faces; lozenges by their exact pieces; swept ellipsoids to 1e-12; intersections to
// about 3e-4; a union counts overlaps twice. Mass 0 for shapes without volume; NaN for a half space, a height
// field, and an open or swept mesh.
US_API us_inertia us_geom_unit_inertia(const us_geom *geom);

// Distance between two shapes, or penetration depth where they overlap. Between convex shapes, intersections
// and half spaces the depth is the length of the shortest translation that separates them, along the normal.
// In unions it is that of the deepest part; in meshes and height fields the maximum of the translations off
// single triangles and of balls of the shape out of the solid (docs/geometry.md): never more than the
// shortest translation that separates them.
typedef struct us_gap {
    double distance;   // m; negative: minus the depth
    us_vec3 p_A, p_B;  // in W: the nearest points, or the deepest ones
    us_vec3 normal;    // in W: unit, from B to A
} us_gap;

// Distance query, symmetric: with A and B exchanged the distance is the same, the points are exchanged, the
// normal is reversed. An intersection is known to 1e-6 of its size, others to 1e-8 and better. US_ERR_ARG: an
// intersection that is empty or without end, or two half spaces that do not face each other (their overlap
// has no end).
US_API us_status us_geom_distance(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB,
                                  us_gap *out_gap);

enum { US_MANIFOLD_POINTS = 8 };

// Contact manifold: points at which two shapes touch or are nearer than the margin.
typedef struct us_manifold {
    int32_t n;
    // In W, unit, from B to A; the same for all points of one flat contact.
    us_vec3 normal[US_MANIFOLD_POINTS];
    us_vec3 p_A[US_MANIFOLD_POINTS];  // in W, on A's surface
    us_vec3 p_B[US_MANIFOLD_POINTS];  // in W, on B's surface
    double gap[US_MANIFOLD_POINTS];   // m, negative where they overlap: normal . (p_A - p_B)
    // Which faces, edges, vertices meet: the same from step to step while they do.
    uint64_t feature[US_MANIFOLD_POINTS];
} us_manifold;

US_API us_status us_geom_contact(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB,
                                 double margin, us_manifold *out_manifold);

typedef struct us_ray_hit {
    double range;    // m along the ray; infinite when it misses
    us_vec3 normal;  // in W, unit, outwards; of the surface that is hit
} us_ray_hit;

// Ray cast: the first surface within `range` along the unit direction. A ray that starts inside a solid shape
// hits at range 0, normal against the ray.
US_API us_ray_hit us_geom_ray(const us_geom *geom, us_pose X_WG, us_vec3 origin_W, us_vec3 direction_W,
                              double range);
// n rays, each within its own range: the same bits as one by one, in any order. Height fields are cast in
// packets, two to three times as fast; neighbours in the list should be neighbours in space.
US_API void us_geom_rays(const us_geom *geom, us_pose X_WG, int32_t n, const us_vec3 *origins_W,
                         const us_vec3 *directions_W, const double *ranges, us_ray_hit *out_hits);

#ifdef __cplusplus
}
#endif
#endif

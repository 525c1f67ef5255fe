// Intersection of convex shapes as a support function, by cutting planes. See intersection.c.
#ifndef USI_GEOM_INTERSECTION_H
#define USI_GEOM_INTERSECTION_H

#include "geom/gjk.h"
#include "math/v4.h"

enum {
    USI_INTERSECTION_PARTS = 16,    // parts with curved sides, or too many flat ones
    USI_INTERSECTION_FLAT = 70,     // planes of parts with flat sides, and the six of the box
    USI_INTERSECTION_PLANES = 128,  // these, and planes that touch curved sides
};

// One part in the frame of the intersection.
typedef struct usi_intersection_part {
    const us_geom *geom;
    us_pose X_GP;
    us_mat3 R_GP;
    double radius;
} usi_intersection_part;

// Polyhedron around an intersection, refined while one pair is processed. Lengths are from `centre`, in units
// of `size`.
struct usi_intersection {
    us_vec3 centre;
    double size;
    double half[3];  // of the box that holds it all
    int n_part, n_flat, n_plane, next;
    usi_intersection_part part[USI_INTERSECTION_PARTS];
    // normal . x <= offset, four planes side by side; the box first.
    usi_v4 normal_x[USI_INTERSECTION_PLANES / 4], normal_y[USI_INTERSECTION_PLANES / 4],
        normal_z[USI_INTERSECTION_PLANES / 4], offset[USI_INTERSECTION_PLANES / 4];
};

// Starts with the box and the planes of flat parts. False: not bounded by its parts' boxes, or too many
// parts.
bool usi_intersection_init(usi_intersection *meet, const us_geom *intersection);
// Support point along d, without the intersection's own radius: exact where all parts at it are flat, else
// outside by less than 1e-7 of the size. NaN for an empty intersection.
us_vec3 usi_intersection_support(usi_intersection *meet, us_vec3 d);

#endif

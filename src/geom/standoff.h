// Nearest point of a mesh, and the standoff of a convex polyhedron from the solid that a closed mesh
// encloses.
#ifndef USI_GEOM_STANDOFF_H
#define USI_GEOM_STANDOFF_H

#include "geom/geom.h"

// The point of a mesh that is nearest to p.
typedef struct usi_mesh_point {
    double distance;
    us_vec3 q;
    int32_t triangle;
} usi_mesh_point;
usi_mesh_point usi_mesh_nearest(const us_mesh *mesh, us_vec3 p);
// Whether all of a mesh is farther from p than that.
bool usi_mesh_is_beyond(const us_mesh *mesh, us_vec3 p, double distance);
// Whether p is inside a closed mesh.
bool usi_mesh_contains(const us_mesh *mesh, us_vec3 p);

// Standoff: the maximum distance of a hull's points from the solid.
typedef struct usi_standoff {
    double found;      // at `worst`
    double bound;      // upper bound on the hull's surface, and at the sampled points inside
    us_vec3 worst, q;  // a point of the hull, and the mesh's nearest to it
} usi_standoff;
// Refined until bound <= max(1.05 found, enough), or MAX_LOOKS queries: then the bound is true, but wider.
// Given up as soon as a distance above `limit` was found: then that is all that is known.
usi_standoff usi_hull_standoff(const us_hull *hull, const us_mesh *mesh, double enough, double limit);

#endif

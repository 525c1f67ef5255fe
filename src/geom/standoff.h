// How far a mesh is from a point, and how far a convex polyhedron stands off the solid that a closed mesh
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
// Whether a closed mesh goes round p.
bool usi_mesh_contains(const us_mesh *mesh, us_vec3 p);

// The greatest distance of a hull's points from the solid.
typedef struct usi_standoff {
    double found;      // at `worst`
    double bound;      // nowhere on the hull's surface more than this, and not more at the points inside that
                       // were looked at
    us_vec3 worst, q;  // a point of the hull, and the mesh's nearest to it
} usi_standoff;
// Until bound <= max(1.05 found, enough), or the work gets too much: then the bound is true, but wider.
usi_standoff usi_hull_standoff(const us_hull *hull, const us_mesh *mesh, double enough);

#endif

// Distance and depth of surfaces made of triangles: meshes and height fields. See surface.c.
#ifndef USI_GEOM_SURFACE_H
#define USI_GEOM_SURFACE_H

#include "geom/geom.h"

// Gap of a convex shape or an intersection and a mesh or a height field, without the surface's own radius.
// All in the surface's frame.
us_gap usi_surface_gap_convex(const us_geom *shape, us_pose X_GS, const us_geom *surface);
// Gap of two surfaces, without their radii, in the frame of B.
us_gap usi_surface_gap(const us_geom *A, us_pose X_BA, const us_geom *B);

// The point of a triangle nearest to q.
us_vec3 usi_triangle_nearest(us_vec3 q, us_vec3 a, us_vec3 b, us_vec3 c);

#endif

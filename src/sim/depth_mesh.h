// The shapes of a model as triangles, for pictures of depths (depth_mesh.c).
#ifndef USI_SIM_DEPTH_MESH_H
#define USI_SIM_DEPTH_MESH_H

#include "sim/sim.h"

// Triangles of all shapes, one shape after the other. Points are in the frame of their shape.
typedef struct usi_depth_mesh {
    us_allocator allocator;
    int32_t n_point, n_triangle, cap_point, cap_triangle;
    us_vec3 *point;
    uint32_t (*corner)[3];
    int32_t *first_point, *first_triangle;  // of each shape, and where the last one ends
    int32_t n_geom;
} usi_depth_mesh;

// `facet`: m that triangles may stand off round surfaces. Released by usi_depth_mesh_fini, also after an
// error.
us_status usi_depth_mesh_init(usi_depth_mesh *m, const us_model *model, double facet,
                              const us_allocator *allocator, us_error *err);
void usi_depth_mesh_fini(usi_depth_mesh *m);
// All points in the frame of a sensor, as the world stands: the form that soil has now, and shapes that the
// sensor is in nowhere (all their points are where it is).
void usi_depth_mesh_place(const usi_depth_mesh *m, const us_sim *s, us_pose X_WS, us_vec3 *out_points);

#endif

// Meshes and the mass properties of shapes: what the readers share beside spec/xml.h.
#ifndef USI_SPEC_MESH_H
#define USI_SPEC_MESH_H

#include "spec/xml.h"

// A surface made of triangles, as it is worked on while its mass properties are found. `vertex` is three numbers per corner,
// three corners per triangle: equal corners are made one by usi_surface_weld.
typedef struct usi_surface {
    int32_t n_triangle;
    double *vertex;          // 9 * n_triangle, m, in G
    double low[3], high[3];  // the box around them; set by usi_surface_box
    // After welding:
    int32_t n_vertex;
    int32_t *corner;   // 3 * n_triangle: which vertex each corner is
    bool is_closed;    // every edge has exactly two triangles
    bool is_oriented;  // and they run along it in opposite directions, so that inside and outside are told apart
} usi_surface;

void usi_surface_box(usi_surface *surface);
// Finds equal corners and looks at the edges. Triangles with two equal corners are nothing but a line: they are left out of
// the look. Cost: linear. Error: US_ERR_MEMORY.
us_status usi_surface_weld(const us_allocator *a, usi_surface *surface);
// Mass properties at density 1 of what a closed, oriented surface encloses, by signed tetrahedra. The box must be known.
// False when it encloses (next to) nothing.
bool usi_surface_unit_inertia(const usi_surface *surface, us_inertia *out);

// Fills `shape` from `known` when both are the same mesh at the same scale.
bool usi_mesh_reuse(const us_shape_def *known, us_shape_def *shape);

// I in B's axes to A's axes: R I R^T, in the order xx yy zz xy xz yz.
void usi_inertia_rotate(const us_quat *q_AB, const double in_B[6], double out_A[6]);
// Of two things together, both in the same frame.
us_inertia usi_inertia_add(const us_inertia *a, const us_inertia *b);
// Of a shape whose unit_inertia is known, in its link's frame; density in kg/m^3.
us_inertia usi_shape_inertia(const us_shape_def *shape, double density);

#endif

// Mesh files and mass properties of shapes: shared by the readers.
#ifndef USI_SPEC_MESH_FILE_H
#define USI_SPEC_MESH_FILE_H

#include "spec/mesh_answer.h"
#include "spec/xml.h"

// A surface made of triangles, as it is worked on while its mass properties are found. `vertex` is three
// numbers per corner, three corners per triangle: equal corners are made one by usi_surface_weld.
typedef struct usi_surface {
    int32_t n_triangle;
    double *vertex;          // 9 * n_triangle, m, in G
    double low[3], high[3];  // the box around them; set by usi_surface_box
    // After welding:
    int32_t n_vertex;
    int32_t *corner;   // 3 * n_triangle: which vertex each corner is
    bool is_closed;    // every edge has exactly two triangles
    bool is_oriented;  // and they run along it in opposite directions: inside and outside are distinct
} usi_surface;

void usi_surface_box(usi_surface *surface);
// Finds equal corners and looks at the edges. Triangles with two equal corners are nothing but a line: they
// are left out of the look. Cost: linear. Error: US_ERR_MEMORY.
us_status usi_surface_weld(const us_allocator *a, usi_surface *surface);
// Mass properties at density 1 of what a closed, oriented surface encloses, by signed tetrahedra. The box
// must be known. False when it encloses (next to) nothing.
bool usi_surface_unit_inertia(const usi_surface *surface, us_inertia *out);

// ---- mesh_child.c: the process that reads mesh files ----

// An answer of the reader, mapped and closed to any change; not looked at yet.
typedef struct usi_mesh_block {
    void *bytes;
    size_t length;
} usi_mesh_block;

// Has the file read. `size`: its bytes, by which its limits are set. The error is at `node`.
us_status usi_mesh_ask(usi_reader *r, const xmlNode *node, const char *path, int64_t size, uint32_t steps,
                       enum usi_mesh_looks looks, usi_mesh_block *out);
void usi_mesh_block_release(usi_mesh_block *block);
// Ends the process, if there is one.
void usi_mesh_child_end(usi_reader *r);
// A file that the mesh at `mesh` names, for reading; -1 when there is none beneath the mesh's own folder.
int usi_mesh_open_beside(const char *mesh, const char *name);

// ---- mesh_file.c: what is in a mesh file ----

enum { USI_TRIANGLE_LIMIT = 5 * 1000 * 1000 };  // of one mesh: some 0.7 GB while it is looked at

// From a node of a mesh file to G: the upper three rows, row-major.
typedef struct usi_placement {
    double m[12];
} usi_placement;

// False when a number is out of any reasonable range or not finite.
static inline bool usi_placement_point(const usi_placement *X, float x, float y, float z, double out[3]) {
    bool is_good = true;
    for (int row = 0; row < 3; row++) {
        const double *m = X->m + 4 * row;
        out[row] = m[0] * (double)x + m[1] * (double)y + m[2] * (double)z + m[3];
        is_good &= out[row] <= 1e15 && out[row] >= -1e15;
    }
    return is_good;
}

// A mesh file as the reader of mesh files has answered. Every rule about unit, up-axis and scale is in X: it
// takes what the root node holds to G.
typedef struct usi_mesh_scene {
    usi_mesh_answer answer;
    usi_mesh_part *parts;      // answer.n_mesh
    usi_placement *placement;  // of each node to G
    usi_placement X;
    char turned_from;  // 'x' or 'y': the axis that the file says is up; 0: z, or it says nothing
    int64_t n_max;     // triangles that a file of this length may have, each as often as nodes place it
    usi_mesh_block block;
    us_allocator allocator;
} usi_mesh_scene;

// Reads shape->mesh at the scale shape->size. Any thread. Errors: US_ERR_MESH, US_ERR_LIMIT, US_ERR_MEMORY,
// at `node` (may be NULL).
us_status usi_mesh_open(usi_reader *r, const xmlNode *node, const us_shape_def *shape,
                        enum usi_mesh_looks looks, usi_mesh_scene *out);
void usi_mesh_close(usi_mesh_scene *mesh);  // also after a failure

// Visits each mesh of each node, with the node's placement, in the order of the file. A visit that returns
// false is the last one.
typedef bool usi_mesh_visit(void *context, const usi_mesh_part *part, const usi_placement *X);
void usi_mesh_walk(const usi_mesh_scene *mesh, usi_mesh_visit *visit, void *context);

bool usi_mesh_is(const char *path, const char *extension);  // by the name's end, in any case

// Fills `shape` from `known` when both are the same mesh at the same scale.
bool usi_mesh_reuse(const us_shape_def *known, us_shape_def *shape);

// I in B's axes to A's axes: R I R^T, in the order xx yy zz xy xz yz.
void usi_inertia_rotate(const us_quat *q_AB, const double in_B[6], double out_A[6]);
// Of two things together, both in the same frame.
us_inertia usi_inertia_add(const us_inertia *a, const us_inertia *b);
// Of a shape whose unit_inertia is known, in its link's frame; density in kg/m^3.
us_inertia usi_shape_inertia(const us_shape_def *shape, double density);

#endif

// Contact with surfaces of triangles by the general method: what contact_triangles*.c, contact_field.c and
// contact_mesh.c share. The idea stands in contact_triangles.c.
#ifndef USI_GEOM_TRIANGLES_H
#define USI_GEOM_TRIANGLES_H

#include "geom/contact_support.h"

enum {
    USI_SEEN_VERTICES = 64,    // a power of 2
    USI_PLAIN_TRIANGLES = 64,  // visited before any is left out as of no use
};

// Bits of the feature ids: which feature of the surface it is. Faces have none.
enum {
    USI_SURFACE_ID_LOWEST = 0x3f0000,  // a face with the shape's lowest point
    USI_SURFACE_ID_RIDGE = 0x1000000,
    USI_SURFACE_ID_PEAK = 0x2000000,
    USI_SURFACE_ID_DEEP = 0x4000000,
    USI_SURFACE_ID_EDGE = USI_SURFACE_ID_RIDGE | USI_SURFACE_ID_PEAK,
};

// One triangle of the surface with what lies across its sides. Side k runs from v[k] to v[k + 1].
typedef struct usi_facet {
    us_vec3 v[3], normal;
    double offset;
    uint32_t index;        // of this triangle
    uint32_t vertex[3];    // of the corners
    us_vec3 across[3];     // the far corner of the neighbour; hangs below the edge where there is none
    int64_t neighbour[3];  // index of the neighbour, -1 where there is none
    bool is_peak[3];       // the corner is a peak under the flat feature of the shape that looks at the face
} usi_facet;

// Everything about the shape, in the surface's frame F.
typedef struct usi_surface_query {
    const us_geom *A;
    us_pose X_FA;
    us_mat3 R_FA;
    us_aabb box;  // grown by the margin
    double margin, size, tolerance;
    us_vec3 middle;     // a point inside the shape
    bool is_one_sided;  // faces act only on shapes whose middle is on their outer side
    usi_candidates *c;
    int32_t first;  // of the candidates that belong to this pair
    // Corners of the surface that were tested, each + 1 at the place of its last bits: one that has lost its
    // place to another is tested again.
    uint32_t seen[USI_SEEN_VERTICES];
    // The feature of the shape that was found last, and the direction it lies in.
    bool has_feature;
    us_vec3 feature_direction;
    usi_feature feature;
    int32_t n_visited;  // triangles
    bool is_pruned;  // `support` has all candidates, and parts of the surface that add nothing are left out
    usi_support support;
} usi_surface_query;

// Part of the shape: a cylinder or capsule that lies across several faces stands on each with one end, and
// the ends are tested one by one.
enum { USI_WHOLE, USI_END_MINUS, USI_END_PLUS };

// Ridge: a convex edge that the shape, or a part of it, rests on.
typedef struct usi_ridge {
    us_vec3 e, u, n1, n2;  // first end, direction, and the normals of the faces beside it
    double length;
    us_vec3 p1, p2;  // lowest points along n1 and n2
    double f1, f2;   // how far they are beyond the ridge, of opposite signs
    int part;
} usi_ridge;

// Starts a query: the shape A in the frame of the surface B, with what is added to c from here on.
void usi_surface_begin(usi_surface_query *t, const us_geom *A, us_pose X_WA, us_pose X_WB, double margin,
                       usi_candidates *c);
// Ends it: points into W, with the surface's radius.
void usi_surface_end(usi_surface_query *t, us_pose X_WB, double radius);

// Column k of a rotation matrix.
static inline us_vec3 usi_column(const us_mat3 *R, int k) {
    return us_vec3_make(R->m[k], R->m[3 + k], R->m[6 + k]);
}

static inline bool usi_has_ends(const us_geom *g) {
    return (g->kind == US_GEOM_CYLINDER && g->size[1] > 0) || (g->kind == US_GEOM_CAPSULE && g->size[0] > 0);
}

// The lowest point along n of the core, or of a part of it, in F.
us_vec3 usi_lowest_part(const usi_surface_query *t, us_vec3 n, int part);
static inline us_vec3 usi_lowest_point(const usi_surface_query *t, us_vec3 n) {
    return usi_lowest_part(t, n, USI_WHOLE);
}
// Height of the lowest point along n, radius included.
double usi_lowest_height(const usi_surface_query *t, us_vec3 n);
// The flat feature of the shape that lies farthest along the unit vector d, in F.
const usi_feature *usi_surface_feature(usi_surface_query *t, us_vec3 d);

// Lower bound of the gaps of all points of the surface in a box: above 0 it is how far the shape is from the
// box, below 0 how deep the box reaches into it.
double usi_surface_min_gap(const usi_surface_query *t, const us_aabb *box);
// Whether the shape is apart from a triangle of unit normal n, by one direction: from its point nearest to
// the shape's middle.
bool usi_is_triangle_apart(const usi_surface_query *t, const us_vec3 v[3], us_vec3 n);
// Counts a triangle that is visited; after some, parts that add nothing are left out (is_pruned).
void usi_surface_count(usi_surface_query *t);
// Whether a part of the surface, of these facings, within a box and no nearer than min_gap, may add to the
// support.
bool usi_surface_is_open(const usi_surface_query *t, uint32_t facing, const us_aabb *box, double min_gap);

// Adds a point unless there is one at the same position with the same normal, of which the deeper stays.
void usi_surface_add(usi_surface_query *t, us_vec3 n, us_vec3 p_A, us_vec3 p_B, uint64_t id);

// Reduces the candidates of this query to a manifold: contact_triangles_choice.c.
void usi_surface_reduce(usi_surface_query *t);

// Contact with a face and its ridges. Each ridge is done by that of its two triangles whose index is lower.
void usi_collide_facet(usi_surface_query *t, const usi_facet *f);
// Whether the shape, or a part of it, rests on side k of a facet rather than on the faces beside it: then `r`
// is filled. n2: the normal of the neighbour; p1: the part's lowest point along the facet's normal.
bool usi_is_on_ridge(const usi_surface_query *t, const usi_facet *f, int k, us_vec3 n2, int part, us_vec3 p1,
                     usi_ridge *r);
void usi_collide_ridge(usi_surface_query *t, const usi_facet *f, int k, const usi_ridge *r);
// Peak: a corner of the surface that pokes into the shape, with the normal of the contact.
typedef struct usi_peak {
    us_vec3 v, normal;
    us_vec3 face_normal;  // of a triangle at the corner
    uint32_t index;
    bool is_flat;     // under a flat feature of the shape
    double distance;  // from the shape, where that is not flat
} usi_peak;
// Whether a corner of the surface, of a triangle of that normal, is near the shape and was not tested in this
// query. It is a peak where every edge that leaves it falls away along the normal, one of them by some angle.
bool usi_find_peak(usi_surface_query *t, us_vec3 v, uint32_t index, us_vec3 face_normal, usi_peak *out);
// Whether the edge from the peak to a corner does not rise; sets *io_is_any where it falls.
static inline bool usi_is_rim_below(const usi_peak *p, us_vec3 corner, bool *io_is_any) {
    us_vec3 d = us_vec3_sub(corner, p->v);
    double rise = us_vec3_dot(p->normal, d);
    *io_is_any |= rise * rise > 1e-12 * us_vec3_dot(d, d);
    return rise <= 0;
}
void usi_collide_peak(usi_surface_query *t, const usi_peak *p);

#endif

// Contact with surfaces of triangles by the general method: what contact_triangles*.c, contact_field.c and
// contact_mesh.c share. The idea stands in contact_triangles.c.
#ifndef USI_GEOM_TRIANGLES_H
#define USI_GEOM_TRIANGLES_H

#include "geom/contact_candidates.h"

enum { USI_MAX_SEEN_VERTICES = 64 };

// Bits of the feature ids: which feature of the surface it is. Faces have none.
enum {
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
} usi_facet;

// Everything about the shape, in the surface's frame F.
typedef struct usi_surface_query {
    const us_geom *A;
    us_pose X_FA;
    us_mat3 R_FA;
    us_aabb box;  // grown by the margin
    double margin, size, tolerance;
    usi_candidates *c;
    int32_t first;  // of the candidates that belong to this pair
    uint32_t seen[USI_MAX_SEEN_VERTICES];
    int32_t n_seen;
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

// Adds a point unless there is one at the same position with the same normal, of which the deeper stays.
void usi_surface_add(usi_surface_query *t, us_vec3 n, us_vec3 p_A, us_vec3 p_B, uint64_t id);

// Contact with a face and its ridges. Each ridge is done by that of its two triangles whose index is lower.
void usi_collide_facet(usi_surface_query *t, const usi_facet *f);
// Whether the shape, or a part of it, rests on side k of a facet rather than on the faces beside it: then `r`
// is filled. n2: the normal of the neighbour; p1: the part's lowest point along the facet's normal.
bool usi_is_on_ridge(const usi_surface_query *t, const usi_facet *f, int k, us_vec3 n2, int part, us_vec3 p1,
                     usi_ridge *r);
void usi_collide_ridge(usi_surface_query *t, const usi_facet *f, int k, const usi_ridge *r);
// Whether a corner of the surface is near the shape and was not tested in this query. The distance is NAN
// where it is yet to be found.
bool usi_is_peak_near(usi_surface_query *t, us_vec3 v, uint32_t index, double *out_distance,
                      us_vec3 *out_outward);
// Contact with a corner as a peak. `rim`: the n corners at the far ends of the edges that leave it; distance
// and outward are those of usi_is_peak_near.
void usi_collide_peak(usi_surface_query *t, us_vec3 v, uint32_t index, us_vec3 face_normal, double distance,
                      us_vec3 outward, const us_vec3 *rim, int32_t n);

#endif

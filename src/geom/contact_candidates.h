// Contact candidates: flat features of convex shapes, candidate points of a pair, and the selection of a
// manifold among them.
#ifndef USI_GEOM_CONTACT_CANDIDATES_H
#define USI_GEOM_CONTACT_CANDIDATES_H

#include "geom/geom.h"
#include "math/v4.h"

enum {
    USI_FEATURE_POINTS = 16,  // corners of a flat feature; a circle has as many, larger faces are thinned
    USI_CANDIDATES = 96,      // points before the selection of at most US_MANIFOLD_POINTS
    USI_FACE_POINTS = 4,      // points of one pair of flat faces
};

// Clip tolerance over the size: 0.1 mm on a box of half length 0.1 m. A corner that sticks out of the other
// face by less counts as inside (and is moved onto its rim), so that rounding does not make points come and
// go. With 0, a shaken row of boxes lost hundreds.
#define USI_CLIP_TOLERANCE 1e-3
// Bias over the smaller shape's size (0.05 mm at 0.1 m): faces are preferred to edges, and A's face to B's,
// unless they are worse by more than this.
#define USI_FACE_BIAS 5e-4
// Depth tolerance over the size: a clipped point this near to the exact deepest one replaces it.
#define USI_SAME_DEPTH 5e-7

// Feature: the flat part of a shape's surface (radius included) that lies farthest in some direction: a
// corner (n = 1), a line (n = 2) or a polygon, counter-clockwise seen from outside. In W.
typedef struct usi_feature {
    int32_t n;
    uint32_t id;  // which corner, edge or face: below 2^16
    us_vec3 normal;
    us_vec3 p[USI_FEATURE_POINTS];
} usi_feature;

typedef struct usi_candidate {
    us_vec3 normal, p_A, p_B;
    double gap;
    uint64_t id;
} usi_candidate;

typedef struct usi_candidates {
    int32_t n;
    usi_candidate at[USI_CANDIDATES];
} usi_candidates;

// a + s b
static inline us_vec3 usi_vec3_add_scaled(us_vec3 a, double s, us_vec3 b) {
    return us_vec3_make(a.x + s * b.x, a.y + s * b.y, a.z + s * b.z);
}
static inline us_vec3 usi_vec3_unit(us_vec3 a, us_vec3 otherwise) {
    double n = us_vec3_norm(a);
    return n > 1e-150 ? us_vec3_scale(1 / n, a) : otherwise;
}

// +z of a frame, and R^T a.
static inline us_vec3 usi_quat_z(us_quat q) {
    return us_vec3_make(2 * (q.x * q.z + q.w * q.y), 2 * (q.y * q.z - q.w * q.x),
                        1 - 2 * (q.x * q.x + q.y * q.y));
}
static inline us_vec3 usi_mat3_mul_transposed(const us_mat3 *R, us_vec3 a) {
    const double *m = R->m;
    return us_vec3_make(m[0] * a.x + m[3] * a.y + m[6] * a.z, m[1] * a.x + m[4] * a.y + m[7] * a.z,
                        m[2] * a.x + m[5] * a.y + m[8] * a.z);
}

// Characteristic size, radius included (about half of the longest side). Convex kinds.
double usi_geom_extent(const us_geom *g);
// The feature that lies farthest along the unit direction d_W. `n_rim` points represent a circle: a divisor
// of USI_FEATURE_POINTS.
void usi_feature_find(const us_geom *g, us_pose X_WG, us_vec3 d_W, int32_t n_rim, usi_feature *out);
// The same for the round kinds, in G, without the radius; false when the kind is not round.
bool usi_feature_round(const us_geom *g, us_vec3 d, int32_t n_rim, usi_feature *out);

// Adds a point, unless there is no room or the gap exceeds the margin.
void usi_candidates_add(usi_candidates *c, double margin, us_vec3 normal, us_vec3 p_A, us_vec3 p_B,
                        uint64_t id);
// Clips `inc` against the sides of the polygon `ref` (n >= 3) and adds what is left, with ref's normal.
// Returns the smallest gap.
double usi_clip_face(const usi_feature *ref, const usi_feature *inc, bool ref_is_A, double tolerance,
                     double margin, usi_candidates *c);
// Two lines that run side by side: their common stretch gives two points. False when they cross or only pass
// each other.
bool usi_clip_lines(const usi_feature *A, const usi_feature *B, us_vec3 normal, double margin,
                    usi_candidates *c);
// Puts the exact deepest point among the candidates from `first` on: in place of a near one, whose id it
// takes, or as one more.
void usi_candidates_put_deepest(usi_candidates *c, int32_t first, double near, double margin, us_vec3 normal,
                                us_vec3 p_A, us_vec3 p_B, uint64_t id);
// Reduces the candidates from `first` on to `keep`: the deepest and those that span the largest area.
void usi_candidates_reduce_face(usi_candidates *c, int32_t first, int32_t keep, double tolerance);
// Selects a manifold: at most 8 points, half of them the deepest, the others the most distant.
void usi_candidates_to_manifold(usi_candidates *c, double tolerance, us_manifold *out);
// Reduces the candidates from `first` on to `keep`, half of them the deepest, the others the most distant.
void usi_candidates_keep_spread(usi_candidates *c, int32_t first, int32_t keep, double tolerance);

// Feature ids of pairs in closed form: a kind, plus which corner or end of the shape it is.
enum { USI_ID_POINT = 1 << 20, USI_ID_CORNER = 2 << 20, USI_ID_END = 3 << 20 };

static inline bool usi_has_core_segment(us_geom_kind kind) {
    return kind == US_GEOM_SPHERE || kind == US_GEOM_CAPSULE || kind == US_GEOM_CYLINDER;
}

// Contact of a sphere, capsule or cylinder on a plane: its one or two lowest points, within the margin.
typedef struct usi_plane_contact {
    int32_t n;
    usi_v4 p[2];
    double gap[2];
    uint64_t feature[2];
} usi_plane_contact;

// The same by the shape's centre and axis, the plane's normal n and a point `at` of it. False when only the
// general methods can do it: a cylinder on end, no length.
static inline bool usi_contact_on_plane(const us_geom *g, usi_v4 centre, usi_v4 axis, usi_v4 n, usi_v4 at,
                                        double margin, usi_plane_contact *out) {
    double height = usi_v4_dot(n, centre - at) - g->radius;
    usi_v4 low = centre - g->radius * n;
    out->n = 0;
    if (g->kind == US_GEOM_SPHERE) {
        if (height <= margin) {
            out->n = 1;
            out->p[0] = low;
            out->gap[0] = height;
            out->feature[0] = USI_ID_POINT;
        }
        return true;
    }
    const bool is_cylinder = g->kind == US_GEOM_CYLINDER;
    const double along = usi_v4_dot(n, axis), half = g->size[is_cylinder], r = is_cylinder ? g->size[0] : 0;
    if (r > 0) {
        if (fabs(along) > 0.9) return false;
        double across = sqrt(1 - along * along);
        height -= r * across;
        low -= (r / across) * (n - along * axis);
    }
    if (!(half > 0)) return false;
    for (int k = 0; k < 2; k++) {
        double h = k ? half : -half, gap = height + h * along;
        if (!(gap <= margin)) continue;
        out->p[out->n] = low + h * axis;
        out->gap[out->n] = gap;
        out->feature[out->n] = (uint64_t)(USI_ID_END + k);
        out->n++;
    }
    return true;
}

// Contact of common pairs in closed form, written into the manifold. False: not one of them, or a case that
// only the general methods can do; the manifold is then undefined.
bool usi_contact_closed_form(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                             double margin, us_manifold *out);
// Two boxes without radius; a sphere, capsule or cylinder on a height field (B), known by its centre and its
// axis in W; a box on it.
bool usi_contact_boxes(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                       double margin, us_manifold *out);
bool usi_contact_terrain(const us_geom *A, us_vec3 centre, us_vec3 axis, const us_geom *B,
                         const us_pose *X_WB, double margin, us_manifold *out);
bool usi_contact_terrain_box(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                             double margin, us_manifold *out);

// Candidates of a pair by the general methods. All poses in W; points with a gap above the margin are left
// out.
void usi_contact_convex(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                        usi_candidates *c);
void usi_contact_capsules(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                          usi_candidates *c);
// A convex shape on a half space (B).
void usi_contact_half_space(const us_geom *A, us_pose X_WA, us_pose X_WB, double margin, usi_candidates *c);
// A convex shape on a height field or a mesh (B).
void usi_contact_field(const us_geom *A, us_pose X_WA, const us_height_field *field, double radius,
                       us_pose X_WB, double margin, usi_candidates *c);
void usi_contact_mesh(const us_geom *A, us_pose X_WA, const us_mesh *mesh, double radius, us_pose X_WB,
                      double margin, usi_candidates *c);

#endif

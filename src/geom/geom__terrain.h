// Contact with a height field in closed form: what the files contact_terrain*.c share.
//
//   contact_terrain.c         spheres, capsules and cylinders: one core segment
//   contact_terrain_box.c     boxes: the edges of the lower face, each a core segment
//   contact_terrain_window.c  which cells can touch
//   contact_terrain_cells.c   the triangles of these cells, two cells at a time
//   contact_terrain_edges.c   an end or the line of the segment on an edge of the grid
//   contact_terrain_peaks.c   a grid corner that pokes into the shape
#ifndef USI_GEOM_TERRAIN_H
#define USI_GEOM_TERRAIN_H

#include "geom/contact_candidates.h"
#include "math/v4_functions.h"

enum {
    USI_TERRAIN_MAX_ROW = 64,         // cells of a row under the shape
    USI_TERRAIN_MAX_CANDIDATES = 24,  // points before the reduction
};

// Feature ids: index << 8 and one of these, plus the end (0, 1) or the kind of edge (0, 1, 2).
enum {
    USI_TERRAIN_ID_END = 0,
    USI_TERRAIN_ID_LINE = 4,
    USI_TERRAIN_ID_EDGE_END = 8,
    USI_TERRAIN_ID_PEAK = 16,
    USI_TERRAIN_ID_DEEP = 17,
};

// The shape in the field's frame F: a segment c +- half a with a disc of radius r across each end, swept by a
// sphere of radius R.
typedef struct usi_core_segment {
    us_vec3 c, a;
    double half, r, R, size;
    int n_end;  // a sphere has one
} usi_core_segment;

// The triangles of two cells that are neighbours in a row, one in each lane: lower and upper of the first
// cell, lower and upper of the second one. The foot of an end is its projection onto a triangle's plane. Each
// triangle has three sides, and feet are beyond some of them:
//
//           over
//       +-----------+        lower triangle: first = V, second = U
//       |         / |        upper triangle: first = U, second = V
//       | upper /   |
// under |     /     | over   under   first < 0: beyond the side that is the edge of index 1 (lower) or 2
//       |   / lower |                (upper) of this cell
//       | /         |        over    second > 1: beyond the side that is such an edge of the cell above
//       +-----------+                (upper) or to the right (lower)
//           under            across  first > second: beyond the diagonal, which is the edge of index 0
typedef struct usi_cell_pair {
    usi_v4 sx, sy;      // slopes
    usi_v4 nx, ny, nz;  // normals
    usi_v4 along;       // n . a
    usi_v4 qx, qy, qz;  // from the shape's centre to the middle between the lowest points of the two ends
    usi_v4 height;      // of that middle over the plane
    usi_v4 U[2], V[2];  // feet of the ends, in cells from their cell's first corner
    // A bit for each triangle; those about ends have end 1 in the next four bits.
    int near;                 // within the margin
    int steep;                // too steep for this method
    int inside;               // ends that touch: their feet are in the triangle
    int under, over, across;  // ends whose feet are beyond a side
} usi_cell_pair;

// Contact points of one shape on the field, before the reduction.
typedef struct usi_terrain_contacts {
    const us_height_field *f;
    usi_core_segment s;
    double margin;
    uint64_t prefix;  // of the feature ids
    // m, max distance of a peak from the segment's surface: the margin, and for edges of a box the max depth.
    double reach;
    bool is_edge;      // the segment is an edge of a box: its second end is the first of the next edge
    int counted_ends;  // bits of the ends that count: of a box edge the first alone
    // m: an edge of the grid is convex when its ends are higher than the far corners of its faces by more
    // than this, in sum.
    double min_convexity;
    int32_t n;
    usi_candidate at[USI_TERRAIN_MAX_CANDIDATES + 1];  // the one after the last is the candidate
} usi_terrain_contacts;

// Cells i0 .. i1, j0 .. j1 of the field.
typedef struct usi_cell_window {
    int32_t i0, i1, j0, j1;
    double half_x, half_y, per_x, per_y;
    bool is_gentle;  // no triangle in it is too steep
    // Strip along the shape's line; only cells whose middle is in it count: |x strip_x + y strip_y -
    // strip_at|
    // <= strip_wide.
    double strip_x, strip_y, strip_at, strip_wide;
} usi_cell_window;

typedef enum usi_cell_cover {
    USI_COVER_NONE,
    USI_COVER_SOME,
    USI_COVER_RIM,  // beyond the field's rim in part
} usi_cell_cover;

// One triangle of two cells.
typedef struct usi_lane_face {
    const usi_cell_pair *r;
    int lane;
} usi_lane_face;

// Edge `which` (0 .. 2) of cell (i, j), between faces f1 and f2.
typedef struct usi_grid_edge {
    usi_lane_face f1, f2;
    int32_t i, j;
    uint32_t which;
} usi_grid_edge;

// ---- Points ----

// Keeps the candidate unless an equal one is there; when there is no room, in place of the shallowest.
static inline void usi_terrain_keep(usi_terrain_contacts *g) {
    const usi_candidate *p = &g->at[g->n];
    // Where faces of one plane meet, both have the point.
    const double near = 1e-6 * g->s.size;
    for (const usi_candidate *o = g->at; o < p; o++) {
        if (fabs(o->p_A.x - p->p_A.x) > near) continue;
        us_vec3 d = us_vec3_sub(o->p_A, p->p_A), e = us_vec3_sub(o->normal, p->normal);
        if (us_vec3_dot(d, d) < near * near && us_vec3_dot(e, e) < 1e-12) return;
    }
    if (g->n < USI_TERRAIN_MAX_CANDIDATES) {
        g->n++;
        return;
    }
    // No room: in place of the shallowest.
    int32_t at = 0;
    for (int32_t i = 1; i < USI_TERRAIN_MAX_CANDIDATES; i++)
        at = g->at[i].gap > g->at[at].gap ? i : at;
    if (p->gap < g->at[at].gap) g->at[at] = *p;
}

// Adds a point; its p_B is computed after the reduction.
static inline void usi_terrain_add(usi_terrain_contacts *g, us_vec3 n, us_vec3 p_A, double gap,
                                   uint64_t index, uint32_t kind) {
    usi_candidate *p = &g->at[g->n];
    p->normal = n;
    p->p_A = p_A;
    p->gap = gap;
    p->id = g->prefix | index << 8 | kind;
    usi_terrain_keep(g);
}

// The point that lies lowest along n at end 0 (-) or 1 (+); along = n . a.
static inline us_vec3 usi_lowest_of_end(const usi_core_segment *s, int end, us_vec3 n, double along) {
    double h = end ? s->half : -s->half;
    us_vec3 p = us_vec3_make(s->c.x + h * s->a.x - s->R * n.x, s->c.y + h * s->a.y - s->R * n.y,
                             s->c.z + h * s->a.z - s->R * n.z);
    double across2 = 1 - along * along;
    if (s->r > 0 && across2 > 0) {
        double k = s->r / sqrt(across2);
        p.x -= k * (n.x - along * s->a.x);
        p.y -= k * (n.y - along * s->a.y);
        p.z -= k * (n.z - along * s->a.z);
    }
    return p;
}

static inline us_vec3 usi_lane_normal(usi_lane_face f) {
    return us_vec3_make(f.r->nx[f.lane], f.r->ny[f.lane], f.r->nz[f.lane]);
}
static inline double usi_lane_along(usi_lane_face f) { return f.r->along[f.lane]; }
// The point that lies lowest along the face's normal at end 0 (h = -half) or 1 (h = half), or between them.
static inline us_vec3 usi_lane_point(const usi_core_segment *s, usi_lane_face f, double h) {
    return us_vec3_make(s->c.x + f.r->qx[f.lane] + h * s->a.x, s->c.y + f.r->qy[f.lane] + h * s->a.y,
                        s->c.z + f.r->qz[f.lane] + h * s->a.z);
}

// ---- Cells under a shape: contact_terrain_window.c ----

// The cells under a box in F, x from middle - ax to middle + ax, y alike.
usi_cell_cover usi_terrain_cells_under(const us_height_field *f, us_vec3 middle, double ax, double ay,
                                       usi_cell_window *w);
// Min and max slopes of a window, as differences of neighbouring heights; returns its max height.
double usi_terrain_slopes(const us_height_field *f, const usi_cell_window *w, double dx[2], double dy[2]);
// Makes the window as small as the slopes allow. False when the shape is above everything in it. `bottom`: z
// of the shape's lowest point, less the margin.
bool usi_terrain_shrink(const usi_terrain_contacts *g, double bottom, usi_cell_window *w);

// ---- Contact of one segment ----

// Everything in the window: contact_terrain_cells.c. False: a case for the general method.
bool usi_terrain_collide_cells(usi_terrain_contacts *g, double bottom, const usi_cell_window *w);
// Shrinks the window and collides what is left: contact_terrain.c. False: a case for the general method.
bool usi_terrain_collide_segment(usi_terrain_contacts *g, double bottom, usi_cell_window *w);
// An end, or the line between the ends, on an edge of the grid: contact_terrain_edges.c.
void usi_terrain_end_on_edge(usi_terrain_contacts *g, const usi_grid_edge *e, int end);
void usi_terrain_line_on_edge(usi_terrain_contacts *g, const usi_grid_edge *e);
// A corner (i, j) of the field that may poke into the segment, or into the face k of a box, whose outward
// normal is `out`: contact_terrain_peaks.c.
void usi_terrain_peak(usi_terrain_contacts *g, int32_t i, int32_t j);
void usi_terrain_peaks_in_face(usi_terrain_contacts *g, const usi_cell_window *w, us_vec3 c,
                               const us_vec3 axis[3], const double half[3], int k, us_vec3 out);
// Contact far below the surface, where no foot is in its own triangle: with the triangle over the shape's
// centre.
void usi_terrain_add_deep(usi_terrain_contacts *g, const usi_cell_window *w);

// Reduces the points and writes them in W. R_WB is NULL where F has the axes of W.
void usi_terrain_to_manifold(usi_terrain_contacts *g, const us_mat3 *R_WB, const us_geom *B,
                             const us_pose *X_WB, us_manifold *out);

#endif

// Contact points of spheres, capsules and cylinders on a height field: the closed form for wheels and feet on
// terrain.
//
// Such a shape is a segment, its spine, with a disc at each end (of radius 0 but for cylinders), swept by a
// sphere. Its lowest points along a normal n are the lowest points of the two ends, and the line between
// them:
//
//          _____                  p = c +- half a - r (n - (n.a) a) / |n - (n.a) a| - R n
//        /   |   \     n
//       |    c----|-- a ^         Each triangle under the shape's box gives two such points and their feet on
//        \   |   /      |         the triangle's plane. Over a height field the feet are known by their grid
//     _____ -p- ________|____     coordinates, and a foot is in the triangle by three comparisons.
//
// What touches what:
//   an end on a face     its foot is in the triangle; id: triangle and end, so that it stays while the shape
//                        rolls over this triangle
//   an end on an edge    the feet on the two faces are both beyond their common edge; the normal is where the
//                        lowest point is over the edge. So it is on a ridge, and for an end that has
//                        sunk below the bottom of a valley
//   the line on a ridge  the ends are on different sides of a convex edge; the normal is across the line if
//                        that lies between the two faces' normals, else the nearer of these. One id for all
//                        of it: a line that rocks on the edge of a step keeps it
//   a peak in the shape  a corner nearer than the margin, with the shape's normal within what the six edges
//                        leave free
//
// Other edges, those of flat ground above all, touch nothing themselves. Gaps are continuous across all these
// changes.
//
// Only a few cells are visited, two of a row at a time. The heights under the shape's box bound the slopes
// there, the slopes bound the normals, and the normals bound where the lowest points can be: a wheel on
// gentle ground has its whole tread in one or two cells, whatever its box.
//
// Left to the general method (false is returned): shapes over the field's rim, cylinders on end, walls
// steeper than 45 degrees, windows of more than WIDE cells across.
#include <string.h>

#include "geom/contact_candidates.h"
#include "math/v4_functions.h"

enum {
    WIDE = 64,      // cells of a row under the shape
    GATHERED = 24,  // points before the choice
    KEPT = 4,
    SECANTS = 40,
};

// Ids: index << 8 and one of these, plus the end (0, 1) or the kind of edge (0, 1, 2).
enum { OF_END = 0, OF_LINE = 4, OF_RIDGE_END = 8, OF_PEAK = 16, OF_DEPTH = 17 };

// Feet count as inside when out by this part of a cell: what rounding makes of a foot on the seam of two
// faces of one plane.
#define SEAM 1e-9

// The shape in the field's frame F.
typedef struct spine {
    us_vec3 c, a;
    double half, r, R, size;
    int n_end;
} spine;

// The triangles of two cells that are neighbours in a row, one in each lane: lower and upper of the first
// cell, lower and upper of the second one. Each triangle has three sides, and its feet are beyond some of
// them:
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
typedef struct cell_pair {
    usi_v4 sx, sy;      // slopes
    usi_v4 nx, ny, nz;  // normals
    usi_v4 along;       // n . a
    usi_v4 qx, qy,
        qz;         // from the shape's centre to the point half way between the lowest points of the two ends
    usi_v4 height;  // of that point over the plane
    usi_v4 U[2], V[2];  // feet of the ends, in cells from their cell's first corner
    // A bit for each triangle; those about ends have end 1 in the next four bits.
    int near;                 // within reach
    int walls;                // those that are beyond this method
    int inside;               // ends that touch: their feet are in the triangle
    int under, over, across;  // ends whose feet are beyond a side
} cell_pair;
enum { ENDS = 4, LOWER = 5, FIRST = 3, SECOND = 12 };  // where the bits of end 1 begin; bits of triangles

typedef struct gathered {
    const us_height_field *f;
    spine s;
    double margin;
    uint64_t prefix;  // of the ids
    // m, maximum distance of a peak from the spine's surface: the margin, and for edges of a box the depth it
    // may have sunk to.
    double reach;
    bool is_edge;  // the spine is an edge of a box: its second end is the first of the next edge
    int own;       // bits of the ends that count: of such an edge the first; a sphere has one
    // m: edges whose ends are less than this higher, in sum, than the far corners of their faces do not count
    // as convex.
    double flat;
    int32_t n;
    usi_candidate at[GATHERED + 1];  // the one after the last is the candidate
} gathered;

// Adds the candidate. Its p_B is computed for the selected ones.
static void keep(gathered *g) {
    const usi_candidate *p = &g->at[g->n];
    // Where faces of one plane meet, both have the point.
    const double near = 1e-6 * g->s.size;
    for (const usi_candidate *o = g->at; o < p; o++) {
        if (fabs(o->p_A.x - p->p_A.x) > near) continue;
        us_vec3 d = us_vec3_sub(o->p_A, p->p_A), e = us_vec3_sub(o->normal, p->normal);
        if (us_vec3_dot(d, d) < near * near && us_vec3_dot(e, e) < 1e-12) return;
    }
    if (g->n < GATHERED) {
        g->n++;
        return;
    }
    // No room: the shallowest is replaced.
    int32_t at = 0;
    for (int32_t i = 1; i < GATHERED; i++)
        at = g->at[i].gap > g->at[at].gap ? i : at;
    if (p->gap < g->at[at].gap) g->at[at] = *p;
}

static inline void add(gathered *g, us_vec3 n, us_vec3 p_A, double gap, uint64_t index, uint32_t kind) {
    usi_candidate *p = &g->at[g->n];
    p->normal = n;
    p->p_A = p_A;
    p->gap = gap;
    p->id = g->prefix | index << 8 | kind;
    keep(g);
}

// Which lanes are set, as bits.
static inline int bits_of(usi_v4i a) {
#ifdef __AVX__
    return _mm256_movemask_pd((__m256d)a);
#else
    return (a[0] != 0) | (a[1] != 0) << 1 | (a[2] != 0) << 2 | (a[3] != 0) << 3;
#endif
}

// Cells of the field.
typedef struct cell_window {
    int32_t i0, i1, j0, j1;
    double half_x, half_y, per_x, per_y;
    bool is_gentle;  // there are no walls in it, and the shape is along with none of it
    // Only cells whose middle is within this strip along the shape's line: |x strip_x + y strip_y - strip_at|
    // <= strip_wide.
    double strip_x, strip_y, strip_at, strip_wide;
} cell_window;

static inline double positive(double x) { return x > 0 ? x : 0; }

// The lowest point of end 0 (-) or 1 (+) along n; along = n . a.
static inline us_vec3 lowest_of_end(const spine *s, int end, us_vec3 n, double along) {
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

// ---- Ridges ----

// A triangle of two cells.
typedef struct lane_face {
    const cell_pair *r;
    int lane;
} lane_face;

static inline us_vec3 normal_of(lane_face f) {
    return us_vec3_make(f.r->nx[f.lane], f.r->ny[f.lane], f.r->nz[f.lane]);
}
static inline double along_of(lane_face f) { return f.r->along[f.lane]; }
// The lowest point of end 0 (h = -half) or 1 (h = half), and any between.
static inline us_vec3 point_of(const spine *s, lane_face f, double h) {
    return us_vec3_make(s->c.x + f.r->qx[f.lane] + h * s->a.x, s->c.y + f.r->qy[f.lane] + h * s->a.y,
                        s->c.z + f.r->qz[f.lane] + h * s->a.z);
}

// Edge `which` (0 .. 2) of cell (i, j), between faces 1 and 2.
typedef struct grid_edge {
    lane_face f1, f2;
    int32_t i, j;
    uint32_t which;
} grid_edge;

static inline uint64_t index_of(const gathered *g, const grid_edge *e) {
    return (uint64_t)e->j * (uint64_t)(g->f->n_x - 1) + (uint64_t)e->i;
}

// Vector from the edge's first end, which is the cell's first corner, to its second.
static inline us_vec3 vector_of(const us_height_field *f, const grid_edge *e) {
    const double *h = f->height + (size_t)e->j * (size_t)f->n_x + e->i, *above = h + f->n_x;
    if (e->which == 0) return us_vec3_make(f->dx, f->dy, above[1] - h[0]);
    return e->which == 1 ? us_vec3_make(f->dx, 0, h[1] - h[0]) : us_vec3_make(0, f->dy, above[0] - h[0]);
}

// Where the foot of an end on face 1 or 2 is, in cells: positive on face 2's side of the edge; and how far
// along the edge, on it from 0 to 1.
static inline double side_of(const grid_edge *e, bool is_1, int end) {
    lane_face f = is_1 ? e->f1 : e->f2;
    double u = f.r->U[end][f.lane], v = f.r->V[end][f.lane];
    return e->which == 0 ? v - u : (e->which == 1 ? v : u) - is_1;
}
static inline double pos_of(const grid_edge *e, bool is_1, int end) {
    lane_face f = is_1 ? e->f1 : e->f2;
    return e->which == 2 ? f.r->V[end][f.lane] : f.r->U[end][f.lane];
}

// Normal between those of two faces; it is perpendicular to their common edge as they are.
static inline us_vec3 between(double x, us_vec3 n1, us_vec3 n2) {
    us_vec3 n = usi_vec3_add_scaled(n1, x, us_vec3_sub(n2, n1));
    return us_vec3_scale(1 / us_vec3_norm(n), n);
}

static void end_on_ridge(gathered *g, const grid_edge *e, int end) {
    const spine *s = &g->s;
    // Both feet may only be beyond the ends of the edge as far as they are from each other.
    double side_1 = side_of(e, true, end), side_2 = side_of(e, false, end), pos_1 = pos_of(e, true, end),
           pos_2 = pos_of(e, false, end);
    double low = pos_1 < pos_2 ? pos_1 : pos_2, high = pos_1 < pos_2 ? pos_2 : pos_1,
           slack = side_1 - side_2 + high - low;
    if (!(side_1 > 0 && side_2 < 0 && high + slack >= 0 && low - slack <= 1)) return;
    us_vec3 first = usi_field_point(g->f, e->i, e->j), edge = vector_of(g->f, e);
    double length = us_vec3_norm(edge), h = end ? s->half : -s->half;
    us_vec3 u = us_vec3_scale(1 / length, edge), n1 = normal_of(e->f1), n2 = normal_of(e->f2), n, p;
    if (s->r > 0) {
        us_vec3 p1 = point_of(s, e->f1, h), p2 = point_of(s, e->f2, h);
        double x1 = 0, x2 = 1, f1 = us_vec3_dot(us_vec3_cross(u, n1), us_vec3_sub(p1, first));
        double f2 = us_vec3_dot(us_vec3_cross(u, n2), us_vec3_sub(p2, first));
        // Oriented so that it falls from face 1 to face 2.
        double sign = f1 < 0 || f2 > 0 ? -1 : 1;
        f1 *= sign;
        f2 *= sign;
        if (!(f1 >= 0 && f2 <= 0)) return;
        n = n1;
        p = p1;
        int kept = 0;
        for (int step = 0; step < SECANTS && f1 - f2 > 0; step++) {
            double x = x1 + (x2 - x1) * (f1 / (f1 - f2));
            n = between(x, n1, n2);
            p = lowest_of_end(s, end, n, us_vec3_dot(n, s->a));
            double f = sign * us_vec3_dot(us_vec3_cross(u, n), us_vec3_sub(p, first));
            if (fabs(f) < 1e-11 * s->size) break;
            // An end that stays twice running counts half (Illinois).
            if (f > 0) {
                x1 = x;
                f1 = f;
                if (kept == 1) f2 *= 0.5;
                kept = 1;
            } else {
                x2 = x;
                f2 = f;
                if (kept == 2) f1 *= 0.5;
                kept = 2;
            }
        }
    } else {
        us_vec3 c = usi_vec3_add_scaled(s->c, h, s->a), d = us_vec3_sub(c, first);
        d = usi_vec3_add_scaled(d, -us_vec3_dot(d, u), u);
        n = usi_vec3_unit(d, n1);
        if (us_vec3_dot(n, n1) < 0) n = us_vec3_scale(-1, n);
        p = usi_vec3_add_scaled(c, -s->R, n);
    }
    us_vec3 d = us_vec3_sub(p, first);
    double along = us_vec3_dot(u, d), gap = us_vec3_dot(n, d);
    if (along < 0 || along > length || !(gap <= g->margin)) return;
    add(g, n, p, gap, index_of(g, e), OF_RIDGE_END + 2 * e->which + (uint32_t)end);
}

// The line between the ends where it crosses the edge, with a normal between those of the faces.
static void line_on_edge(gathered *g, const grid_edge *e) {
    const spine *s = &g->s;
    us_vec3 first = usi_field_point(g->f, e->i, e->j), edge = vector_of(g->f, e);
    double a1 = along_of(e->f1), a2 = along_of(e->f2);
    us_vec3 n = between(a1 / (a1 - a2), normal_of(e->f1), normal_of(e->f2));
    us_vec3 low = usi_vec3_add_scaled(s->c, -(s->r + s->R), n), side = us_vec3_cross(edge, n);
    double middle = us_vec3_dot(side, us_vec3_sub(low, first)), to_end = s->half * us_vec3_dot(side, s->a);
    if (!(fabs(middle) < fabs(to_end))) return;
    us_vec3 p = usi_vec3_add_scaled(low, -s->half * middle / to_end, s->a), d = us_vec3_sub(p, first);
    double along = us_vec3_dot(edge, d), gap = us_vec3_dot(n, d);
    if (along < 0 || along > us_vec3_dot(edge, edge) || !(gap <= g->margin)) return;
    add(g, n, p, gap, index_of(g, e), OF_LINE + e->which);
}

// The same, with the normal of the face that it lies flatter on where none between the two is across it.
static inline void line_on_ridge(gathered *g, const grid_edge *e) {
    const spine *s = &g->s;
    double a1 = along_of(e->f1), a2 = along_of(e->f2);
    if (a1 * a2 < 0) {
        line_on_edge(g, e);
        return;
    }
    const bool is_1 = fabs(a1) <= fabs(a2);
    const lane_face f = is_1 ? e->f1 : e->f2;
    double s0 = side_of(e, is_1, 0), s1 = side_of(e, is_1, 1), pos0 = pos_of(e, is_1, 0),
           pos1 = pos_of(e, is_1, 1);
    if (!(s0 * s1 < 0)) return;
    // From -1 at end 0 to 1 at end 1.
    double at = (s0 + s1) / (s0 - s1), pos = 0.5 * (pos0 + pos1 + at * (pos1 - pos0)), h = s->half * at,
           gap = f.r->height[f.lane] + h * along_of(f);
    if (pos < 0 || pos > 1 || !(gap <= g->margin)) return;
    add(g, normal_of(f), point_of(s, f, h), gap, index_of(g, e), OF_LINE + e->which);
}

// ---- Peaks ----

// A corner v within reach, z along the axis.
static void on_peak(gathered *g, int32_t i, int32_t j, us_vec3 v, double z) {
    static const int step[6][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 0}, {-1, -1}, {0, -1}};
    const us_height_field *f = g->f;
    const spine *s = &g->s;
    us_vec3 d = us_vec3_sub(v, s->c), n;
    const double over = fabs(z) - s->half;
    // From the corner to the shape: the outward normal there, turned round.
    us_vec3 radial = usi_vec3_add_scaled(d, -z, s->a), axial = z < 0 ? us_vec3_scale(-1, s->a) : s->a;
    double rho = us_vec3_norm(radial), out = rho - s->r, distance;
    if (!(rho > 1e-12 * s->size) && over <= 0) return;
    radial = rho > 0 ? us_vec3_scale(1 / rho, radial) : us_vec3_make(0, 0, 0);
    if (over > 0 && out > 0) {
        distance = sqrt(over * over + out * out);
        n = us_vec3_scale(1 / distance, us_vec3_add(us_vec3_scale(out, radial), us_vec3_scale(over, axial)));
    } else if (s->r == 0 || out > over) {
        distance = out;
        n = radial;
    } else {
        distance = over;
        n = axial;
    }
    n = us_vec3_scale(-1, n);
    // The spine itself may have sunk below the peak.
    if (s->r == 0 && n.z < 0) {
        n = us_vec3_scale(-1, n);
        distance = -distance;
    }
    distance -= s->R;
    if (!(distance <= g->margin) || !(us_vec3_dot(n, n) > 0.5)) return;
    for (int k = 0; k < 6; k++) {
        int32_t a = i + step[k][0], b = j + step[k][1];
        us_vec3 rim = us_vec3_make(step[k][0] * f->dx, step[k][1] * f->dy,
                                   f->height[(size_t)b * (size_t)f->n_x + (size_t)a] - v.z);
        // Strictly below: what a flat or an edge can do is done there.
        if (us_vec3_dot(n, rim) > -1e-9 * (f->dx + f->dy)) return;
    }
    add(g, n, usi_vec3_add_scaled(v, distance, n), distance, (uint64_t)j * (uint64_t)f->n_x + (uint64_t)i,
        OF_PEAK);
}

// A corner inside the window. A peak is higher than half way between any two neighbours that are opposite.
static inline void touch_peak(gathered *g, int32_t i, int32_t j) {
    const spine *s = &g->s;
    const double *h = g->f->height + (size_t)j * (size_t)g->f->n_x + i, *above = h + g->f->n_x,
                 *below = h - g->f->n_x, twice = 2 * h[0];
    if (h[-1] + h[1] >= twice || below[0] + above[0] >= twice || below[-1] + above[1] >= twice) return;
    us_vec3 v = usi_field_point(g->f, i, j), d = us_vec3_sub(v, s->c);
    double z = us_vec3_dot(s->a, d), near = s->r + s->R + g->reach;
    if (fabs(z) > s->half + s->R + g->margin || (g->is_edge && z > s->half) ||
        us_vec3_dot(d, d) - z * z > near * near)
        return;
    on_peak(g, i, j, v, z);
}

// ---- The field ----

static inline int bits_of_ends(usi_v4i end_0, usi_v4i end_1) {
    return bits_of(end_0) | bits_of(end_1) << ENDS;
}

// Which triangles of two cells are within reach? Fills what is needed of all, unless none is. The heights are
// those of the cells' corners to the left and to the right, lower and upper in turn; dx, dy: from the corner
// of the first cell to the shape's centre. A triangle's normal is
// (-sx, -sy, 1) / L, of slopes sx and sy. `cells`: FIRST, SECOND or both.
static inline void reach_of(const gathered *g, const cell_window *w, usi_v4 left, usi_v4 right, double dx,
                            double dy, int cells, cell_pair *out) {
    const spine *s = &g->s;
    usi_v4 sx = (right - left) * w->per_x;
    usi_v4 sy = (__builtin_shufflevector(right, left, 1, 5, 3, 7) -
                 __builtin_shufflevector(right, left, 0, 4, 2, 6)) *
                w->per_y;
    usi_v4 x = {dx, dx, dx - g->f->dx, dx - g->f->dx}, y = usi_v4_all(dy),
           z = s->c.z - __builtin_shufflevector(left, left, 0, 0, 2, 2);
    // All with m = (-sx, -sy, 1), which is n L, so that the second root need not wait for the first.
    usi_v4 square = 1 + sx * sx + sy * sy, m_a = s->a.z - sx * s->a.x - sy * s->a.y,
           m_d = z - sx * x - sy * y;
    usi_v4 nz = 1 / usi_v4_sqrt(square), nx = -sx * nz, ny = -sy * nz;
    usi_v4 qx = -s->R * nx, qy = -s->R * ny, qz = -s->R * nz;
    if (s->r > 0) {
        usi_v4 across2 = square - m_a * m_a, across = usi_v4_sqrt((usi_v4)((usi_v4i)across2 & (across2 > 0))),
               k = s->r / across;
        m_d -= s->r * across;
        qx += k * (sx + m_a * s->a.x);
        qy += k * (sy + m_a * s->a.y);
        qz -= k * (1 - m_a * s->a.z);
    }
    usi_v4 along = m_a * nz, height = m_d * nz - s->R;
    usi_v4 lift = s->half * along, margin = usi_v4_all(g->margin);
    int touches = bits_of_ends(height - lift <= margin, height + lift <= margin);
    out->near = (touches | touches >> ENDS) & cells;
    if (!out->near) return;
    out->sx = sx;
    out->sy = sy;
    out->nx = nx;
    out->ny = ny;
    out->nz = nz;
    out->along = along;
    out->qx = qx;
    out->qy = qy;
    out->qz = qz;
    out->height = height;
    usi_v4 u = (x + qx - height * nx) * w->per_x, v = (y + qy - height * ny) * w->per_y;
    usi_v4 to_u = (s->half * s->a.x - lift * nx) * w->per_x, to_v = (s->half * s->a.y - lift * ny) * w->per_y;
    usi_v4 u0 = u - to_u, u1 = u + to_u, v0 = v - to_v, v1 = v + to_v;
    out->U[0] = u0;
    out->U[1] = u1;
    out->V[0] = v0;
    out->V[1] = v1;
    out->walls = w->is_gentle
                     ? 0
                     : out->near & bits_of((nz < 0.7) | (usi_v4_abs(along) > (s->r > 0 ? 0.9 : INFINITY)));
    usi_v4 first0 = __builtin_shufflevector(v0, u0, 0, 5, 2, 7),
           second0 = __builtin_shufflevector(u0, v0, 0, 5, 2, 7);
    usi_v4 first1 = __builtin_shufflevector(v1, u1, 0, 5, 2, 7),
           second1 = __builtin_shufflevector(u1, v1, 0, 5, 2, 7);
    out->under = bits_of_ends(first0 < -SEAM, first1 < -SEAM);
    out->over = bits_of_ends(second0 > 1 + SEAM, second1 > 1 + SEAM);
    out->across = bits_of_ends(first0 - second0 > SEAM, first1 - second1 > SEAM);
    out->inside = touches & (out->near | out->near << ENDS) & ~(out->under | out->over | out->across);
}

// Minimum and maximum over the lanes.
typedef struct extent {
    usi_v4 low, high;
} extent;

static inline void widen(extent *e, usi_v4 x) {
    e->low = usi_v4_min(e->low, x);
    e->high = usi_v4_max(e->high, x);
}
static inline usi_v4 load4(const double *x) {
    usi_v4 v;
    memcpy(&v, x, sizeof v);
    return v;
}

// The heights at the left and at the right of four cells of a row, of which there are n: where they are
// fewer, some count twice.
static inline void load_cells(const double *h, int32_t n, usi_v4 *left, usi_v4 *right) {
    if (n >= 4) {
        *left = load4(h);
        *right = load4(h + 1);
    } else {
        const double *b = h + (n > 1), *c = h + n - 1;
        *left = (usi_v4){h[0], b[0], c[0], c[0]};
        *right = (usi_v4){h[1], b[1], c[1], c[1]};
    }
}

// Slopes (as differences of neighbouring heights) and the maximum height of a window. Rows are taken four
// cells at a time, the last four once more rather than less.
static double slopes_of(const us_height_field *f, const cell_window *w, double dx[2], double dy[2]) {
    const int32_t n = w->i1 - w->i0 + 1;
    usi_v4 big = usi_v4_all(INFINITY), top = -big;
    extent ex = {big, -big}, ey = ex;
    for (int32_t i = 0; i < n; i += 4) {
        const double *h =
            f->height + (size_t)w->j0 * (size_t)f->n_x + w->i0 + (i + 4 <= n || n < 4 ? i : n - 4);
        usi_v4 left, right;
        load_cells(h, n, &left, &right);
        for (int32_t j = w->j0;; j++) {
            widen(&ex, right - left);
            top = usi_v4_max(top, usi_v4_max(left, right));
            if (j > w->j1) break;
            usi_v4 last_left = left, last_right = right;
            load_cells(h += f->n_x, n, &left, &right);
            widen(&ey, left - last_left);
            widen(&ey, right - last_right);
        }
    }
    usi_v4 by_lane[4];
    usi_v4_transpose(ex.low, -ex.high, ey.low, -ey.high, by_lane);
    usi_v4 least = usi_v4_min(usi_v4_min(by_lane[0], by_lane[1]), usi_v4_min(by_lane[2], by_lane[3]));
    dx[0] = least[0];
    dx[1] = -least[1];
    dy[0] = least[2];
    dy[1] = -least[3];
    top = usi_v4_max(top, usi_v4_swap_halves(top));
    return top[0] > top[1] ? top[0] : top[1];
}

// Makes the window as small as the slopes allow; false when the shape is above everything in it. `bottom`:
// the lowest point, less the margin.
static bool narrow(const gathered *g, double bottom, cell_window *w) {
    const spine *s = &g->s;
    double dx[2], dy[2], deep = slopes_of(g->f, w, dx, dy) - bottom;
    if (deep < 0) return false;
    double mx = 0.5 * (dx[0] + dx[1]) * w->per_x, my = 0.5 * (dy[0] + dy[1]) * w->per_y;
    double ox = 0.5 * (dx[1] - dx[0]) * w->per_x, oy = 0.5 * (dy[1] - dy[0]) * w->per_y,
           off = sqrt(ox * ox + oy * oy);
    double inverse = 1 / sqrt(1 + mx * mx + my * my);
    us_vec3 n = us_vec3_make(-mx * inverse, -my * inverse, inverse);
    double along = us_vec3_dot(n, s->a), steepest = fabs(along) + off,
           slack = (s->R + deep) * off + 1e-6 * s->size;
    if (s->r > 0) {
        if (steepest > 0.9) return true;
        slack += s->r * off / sqrt(1 - steepest * steepest);
    }
    double steep_x = fabs(mx) + ox, steep_y = fabs(my) + oy;
    w->is_gentle = steep_x * steep_x + steep_y * steep_y < 1;
    us_vec3 p = lowest_of_end(s, 0, n, along);
    // From the lowest points up along the normal, as deep as they may be below the surface, or down by the
    // margin, which `deep` counts too: the middle of that, and half its sides.
    double ux = deep * n.x, uy = deep * n.y, more = g->margin + slack;
    double x = p.x + s->half * s->a.x + 0.5 * ux, half_x = s->half * fabs(s->a.x) + 0.5 * fabs(ux) + more;
    double y = p.y + s->half * s->a.y + 0.5 * uy, half_y = s->half * fabs(s->a.y) + 0.5 * fabs(uy) + more;
    // Few cells left: all of them are tested.
    if (half_x * w->per_x > 1 || half_y * w->per_y > 1) {
        double length = sqrt(s->a.x * s->a.x + s->a.y * s->a.y);
        if (2 * s->half * length > 0.1 * s->size) {
            w->strip_x = -s->a.y / length;
            w->strip_y = s->a.x / length;
            double up = w->strip_x * ux + w->strip_y * uy,
                   cell = 0.5 * sqrt(g->f->dx * g->f->dx + g->f->dy * g->f->dy);
            w->strip_at = w->strip_x * p.x + w->strip_y * p.y + 0.5 * up;
            w->strip_wide = 0.5 * fabs(up) + more + cell;
        }
    }
    double x0 = (x - half_x) * w->per_x + w->half_x, x1 = (x + half_x) * w->per_x + w->half_x;
    double y0 = (y - half_y) * w->per_y + w->half_y, y1 = (y + half_y) * w->per_y + w->half_y;
    if (x0 > w->i0) w->i0 = x0 < w->i1 ? (int32_t)x0 : w->i1;
    if (y0 > w->j0) w->j0 = y0 < w->j1 ? (int32_t)y0 : w->j1;
    if (x1 < w->i1) w->i1 = x1 > w->i0 ? (int32_t)x1 : w->i0;
    if (y1 < w->j1) w->j1 = y1 > w->j0 ? (int32_t)y1 : w->j0;
    return true;
}

// Contact far below the surface, where no foot may be in its own triangle: the one above the shape's middle.
static void lift(gathered *g, const cell_window *w) {
    const us_height_field *f = g->f;
    double x = g->s.c.x * w->per_x + w->half_x, y = g->s.c.y * w->per_y + w->half_y;
    if (!(x >= 0 && y >= 0 && x <= f->n_x - 1 && y <= f->n_y - 1)) return;
    int32_t i = x > f->n_x - 2 ? f->n_x - 2 : (int32_t)x, j = y > f->n_y - 2 ? f->n_y - 2 : (int32_t)y;
    int upper = y - j > x - i;
    us_vec3 a = usi_field_point(f, i, j), b = usi_field_point(f, i + 1, j + 1);
    us_vec3 c = upper ? usi_field_point(f, i, j + 1) : usi_field_point(f, i + 1, j),
            n = us_vec3_cross(us_vec3_sub(c, a), us_vec3_sub(b, a));
    n = usi_vec3_unit(upper ? us_vec3_scale(-1, n) : n, us_vec3_make(0, 0, 1));
    if (us_vec3_dot(n, us_vec3_sub(g->s.c, a)) > 0) return;
    double along = us_vec3_dot(n, g->s.a);
    us_vec3 p = lowest_of_end(&g->s, along < 0, n, along);
    double gap = us_vec3_dot(n, us_vec3_sub(p, a));
    if (gap <= g->margin)
        add(g, n, p, gap, (uint64_t)(((int64_t)j * (f->n_x - 1) + i) * 2 + upper), OF_DEPTH);
}

// Whether a place is beside the strip by more than `more`.
static inline bool is_off_strip(const cell_window *w, double x, double y, double more) {
    return fabs(w->strip_x * x + w->strip_y * y - w->strip_at) > w->strip_wide + more;
}

// Walls, and ends flat on the ground, are beyond this method: false, unless the cell is beside the strip or
// below the shape, and so out of reach.
static bool drop_walls(const gathered *g, const cell_window *w, cell_pair *r, int32_t i, int32_t j,
                       double bottom) {
    const us_height_field *f = g->f;
    for (int k = 0; k < 2; k++) {
        const int cell = k ? SECOND : FIRST;
        if (!(r->walls & cell)) continue;
        const double *h = f->height + (size_t)j * (size_t)f->n_x + i + k, *above = h + f->n_x;
        const bool is_below = h[0] < bottom && h[1] < bottom && above[0] < bottom && above[1] < bottom;
        if (!is_below &&
            !is_off_strip(w, (i + k + 0.5 - w->half_x) * f->dx, (j + 0.5 - w->half_y) * f->dy, 0))
            return false;
        r->near &= ~cell;
        r->inside &= ~(cell | cell << ENDS);
    }
    return true;
}

// Two cells of which none is near.
static const cell_pair nothing;

// The faces of two cells from (i, j) on, and their edges to the cells before them: `left` and `below` are the
// pairs of cells there, or nothing.
static inline void touch_pair(gathered *g, const cell_window *w, int32_t i, int32_t j, const cell_pair *r,
                              const cell_pair *left, const cell_pair *below) {
    const spine *s = &g->s;
    for (int on = r->inside & g->own; on; on &= on - 1) {
        const int bit = __builtin_ctz((unsigned)on), lane = bit % ENDS, end = bit / ENDS;
        const uint64_t cell = (uint64_t)j * (uint64_t)(g->f->n_x - 1) + (uint64_t)i;
        const double h = end ? s->half : -s->half;
        const lane_face t = {r, lane};
        add(g, normal_of(t), point_of(s, t, h), r->height[lane] + h * along_of(t), 2 * cell + (uint64_t)lane,
            OF_END + (uint32_t)end);
    }
    // Edges have the bit of the triangle of this cell, or the lower one: those of index 0 in the first eight
    // bits, then those of index 1 and 2. The edge of index 2 is between an upper triangle and the lower one
    // to the left: of the same two cells, or of those before.
    const int near = (r->near & r->near >> 1 & LOWER) | (r->near & below->near >> 1 & LOWER) << 8 |
                     (r->near & left->near >> 1 & 2) << 16 | (r->near & r->near << 3 & 8) << 16;
    const int beyond_1 = r->across | below->over >> 1 << 8 | (left->over >> 1 & (2 | 2 << ENDS)) << 16 |
                         (r->over << 3 & (8 | 8 << ENDS)) << 16;
    const int beyond_2 = r->across >> 1 | r->under << 8 | r->under << 16;
    // Worth a look: an end's foot on each face is beyond the edge, or those of the two ends are on different
    // sides.
    const int ends = beyond_1 & beyond_2 & (near | near << ENDS) & g->own * 0x10101;
    const int crossed = near & ((beyond_1 ^ beyond_1 >> ENDS) | (beyond_2 ^ beyond_2 >> ENDS));
    for (int look = (ends | ends >> ENDS | crossed) & (FIRST | SECOND) * 0x10101; look; look &= look - 1) {
        const int bit = __builtin_ctz((unsigned)look), which = bit / 8, lane = bit % 8;
        grid_edge e = {{r, lane}, {r, lane}, i + lane / 2, j, (uint32_t)which};
        if (which == 0)
            e.f2.lane = lane + 1;
        else if (which == 1)
            e.f1 = (lane_face){below, lane + 1};
        else
            e.f1 = lane == 3 ? (lane_face){r, 0} : (lane_face){left, 2};
        // Convex: the slope across it falls.
        const usi_v4 *slope_1 = which == 2 ? &e.f1.r->sx : &e.f1.r->sy,
                     *slope_2 = which == 2 ? &e.f2.r->sx : &e.f2.r->sy;
        if ((crossed >> bit & 1) &&
            (*slope_1)[e.f1.lane] - (*slope_2)[e.f2.lane] > g->flat * (which == 2 ? w->per_x : w->per_y))
            line_on_ridge(g, &e);
        if (ends >> bit & 1) end_on_ridge(g, &e, 0);
        if (ends >> bit & 1 << ENDS) end_on_ridge(g, &e, 1);
    }
}

// Everything in the window. `bottom`: the lowest point, less the margin.
static bool touch_cells(gathered *g, double bottom, const cell_window *w) {
    const us_height_field *f = g->f;
    const spine *s = &g->s;
    // Two rows of pairs of cells.
    cell_pair rows[2][WIDE / 2], *row = rows[0], *row_below = rows[1];
    g->own = g->is_edge || s->n_end == 1 ? FIRST | SECOND : 255;
    g->flat = s->n_end == 2 ? 1e-9 * s->size : INFINITY;
    const bool has_strip = w->strip_wide < INFINITY;
    const double *h0 = f->height + (size_t)w->j0 * (size_t)f->n_x;
    // From the first corner to the shape's centre.
    const double dx0 = s->c.x - (w->i0 - w->half_x) * f->dx;
    double dy = s->c.y - (w->j0 - w->half_y) * f->dy;
    for (int32_t j = w->j0; j <= w->j1; j++, h0 += f->n_x, dy -= f->dy) {
        const double *h1 = h0 + f->n_x;
        cell_pair *r = row, *below = row_below;
        double dx = dx0;
        for (int32_t i = w->i0; i <= w->i1; i += 2, r++, below++, dx -= 2 * f->dx) {
            r->near = 0;
            if (has_strip && is_off_strip(w, s->c.x - dx + f->dx, s->c.y - dy + 0.5 * f->dy, 0.5 * f->dx))
                continue;
            // Where a row ends with one cell, that takes the place of the second, which does not count.
            const int32_t k = i < w->i1 ? i + 1 : i;
            const usi_v4 left = {h0[i], h1[i], h0[k], h1[k]},
                         right = {h0[i + 1], h1[i + 1], h0[k + 1], h1[k + 1]};
            reach_of(g, w, left, right, dx, dy, i < w->i1 ? FIRST | SECOND : FIRST, r);
            if (!r->near) continue;
            if (r->walls && !drop_walls(g, w, r, i, j, bottom)) return false;
            const bool has_left = i > w->i0, has_below = j > w->j0;
            touch_pair(g, w, i, j, r, has_left && r[-1].near ? r - 1 : &nothing,
                       has_below && below->near ? below : &nothing);
            if (has_below && has_left && (r->near & FIRST)) touch_peak(g, i, j);
            if (has_below && (r->near & SECOND)) touch_peak(g, i + 1, j);
        }
        cell_pair *last = row;
        row = row_below;
        row_below = last;
    }
    return true;
}

// KEPT of more: the deepest, then always the one farthest from those chosen.
static void choose(gathered *g) {
    for (int32_t k = 0; k < KEPT; k++) {
        int32_t best = k;
        double score = -INFINITY;
        for (int32_t i = k; i < g->n; i++) {
            double x = k ? INFINITY : -g->at[i].gap;
            for (int32_t m = 0; m < k; m++) {
                us_vec3 d = us_vec3_sub(g->at[i].p_A, g->at[m].p_A);
                x = fmin(x, us_vec3_dot(d, d));
            }
            if (x > score) {
                score = x;
                best = i;
            }
        }
        usi_candidate t = g->at[k];
        g->at[k] = g->at[best];
        g->at[best] = t;
    }
    g->n = KEPT;
}

// From F to W, at most KEPT of them. R_WB is NULL where F is not turned.
static void finish(gathered *g, const us_mat3 *R_WB, const us_geom *B, const us_pose *X_WB,
                   us_manifold *out) {
    if (g->n > KEPT) choose(g);
    for (int32_t i = 0; i < g->n; i++) {
        const usi_candidate *p = &g->at[i];
        us_vec3 n = p->normal, p_A = p->p_A;
        if (R_WB) {
            n = us_mat3_mul_vec(R_WB, n);
            p_A = us_mat3_mul_vec(R_WB, p_A);
        }
        p_A = us_vec3_add(X_WB->p, p_A);
        const double gap = p->gap - B->radius;
        out->normal[i] = n;
        out->p_A[i] = p_A;
        out->p_B[i] = usi_vec3_add_scaled(p_A, -gap, n);
        out->gap[i] = gap;
        out->feature[i] = p->id;
    }
    out->n = g->n;
}

// The cells under a box in F, x and y from middle - half to middle + half. COVER_RIM: it reaches beyond the
// field.
typedef enum cell_cover { COVER_NONE, COVER_SOME, COVER_RIM } cell_cover;

static cell_cover cells_under(const us_height_field *f, us_vec3 middle, double ax, double ay,
                              cell_window *w) {
    *w = (cell_window){.half_x = 0.5 * (f->n_x - 1),
                       .half_y = 0.5 * (f->n_y - 1),
                       .per_x = 1 / f->dx,
                       .per_y = 1 / f->dy,
                       .strip_wide = INFINITY};
    double x0 = (middle.x - ax) * w->per_x + w->half_x, x1 = (middle.x + ax) * w->per_x + w->half_x;
    double y0 = (middle.y - ay) * w->per_y + w->half_y, y1 = (middle.y + ay) * w->per_y + w->half_y;
    if (x1 < 0 || y1 < 0 || x0 > f->n_x - 1 || y0 > f->n_y - 1) return COVER_NONE;
    if (!(x0 > 0 && y0 > 0 && x1 < f->n_x - 1 && y1 < f->n_y - 1)) return COVER_RIM;
    w->i0 = (int32_t)x0;
    w->i1 = (int32_t)x1;
    w->j0 = (int32_t)y0;
    w->j1 = (int32_t)y1;
    return COVER_SOME;
}

// Narrows the window and looks at what is left. False: beyond this method.
static bool touch_spine(gathered *g, double bottom, cell_window *w) {
    // A smaller window has fewer slopes: as long as it shrinks well, it may shrink again.
    for (int32_t n = 0, last = INT32_MAX; last > 6; last = n) {
        if (!narrow(g, bottom, w)) return true;
        n = (w->i1 - w->i0 + 1) * (w->j1 - w->j0 + 1);
        if (2 * n > last) break;
    }
    return w->i1 - w->i0 < WIDE && touch_cells(g, bottom, w);
}

bool usi_contact_terrain(const us_geom *A, us_vec3 centre, us_vec3 axis, const us_geom *B,
                         const us_pose *X_WB, double margin, us_manifold *out) {
    const us_height_field *f = B->field;
    gathered g;
    spine *s = &g.s;
    us_mat3 R;
    const bool is_turned = X_WB->q.x != 0 || X_WB->q.y != 0 || X_WB->q.z != 0;
    s->c = us_vec3_sub(centre, X_WB->p);
    s->a = axis;
    if (is_turned) {
        R = us_quat_matrix(X_WB->q);
        s->c = usi_mat3_mul_transposed(&R, s->c);
        s->a = usi_mat3_mul_transposed(&R, s->a);
    }
    s->half = A->kind == US_GEOM_SPHERE ? 0 : A->size[A->kind == US_GEOM_CYLINDER];
    s->r = A->kind == US_GEOM_CYLINDER ? A->size[0] : 0;
    s->R = A->radius;
    s->n_end = s->half > 0 ? 2 : 1;
    s->size = s->half + s->r + s->R;
    if (s->r > 0 && s->n_end == 1) return false;
    g.f = f;
    g.n = 0;
    g.margin = margin + B->radius;
    g.prefix = 0;
    g.is_edge = false;
    g.reach = g.margin;
    out->n = 0;
    double ax = s->half * fabs(s->a.x) + s->R + g.margin, ay = s->half * fabs(s->a.y) + s->R + g.margin;
    double az = s->half * fabs(s->a.z) + s->R + g.margin;
    if (s->r > 0) {
        ax += s->r * sqrt(positive(1 - s->a.x * s->a.x));
        ay += s->r * sqrt(positive(1 - s->a.y * s->a.y));
        az += s->r * sqrt(positive(1 - s->a.z * s->a.z));
    }
    if (s->c.z - az > f->high) return true;
    cell_window w;
    cell_cover under = cells_under(f, s->c, ax, ay, &w);
    if (under != COVER_SOME) return under == COVER_NONE;
    if (!touch_spine(&g, s->c.z - az, &w)) return false;
    if (g.n == 0) lift(&g, &w);
    finish(&g, is_turned ? &R : NULL, B, X_WB, out);
    return true;
}

// ---- Boxes ----
//
// A box that lies more or less flat touches with the corners of its lower face, with the edges of that face,
// or with the face itself where a peak pokes into it. The four edges are spines of no radius (or the box's
// own), each with its first corner.

static void peaks_in_face(gathered *g, const cell_window *w, us_vec3 c, const us_vec3 axis[3],
                          const double half[3], int k, us_vec3 out) {
    static const int step[6][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 0}, {-1, -1}, {0, -1}};
    const us_height_field *f = g->f;
    int u = (k + 1) % 3, v = (k + 2) % 3;
    us_vec3 n = us_vec3_scale(-1, out);
    double outside = half[k] + g->s.R;
    for (int32_t j = w->j0 + 1; j <= w->j1; j++) {
        const double *h = f->height + (size_t)j * (size_t)f->n_x;
        for (int32_t i = w->i0 + 1; i <= w->i1; i++) {
            us_vec3 p = us_vec3_make((i - w->half_x) * f->dx, (j - w->half_y) * f->dy, h[i]),
                    d = us_vec3_sub(p, c);
            double gap = us_vec3_dot(out, d) - outside;
            if (!(gap <= g->margin) || fabs(us_vec3_dot(axis[u], d)) > half[u] ||
                fabs(us_vec3_dot(axis[v], d)) > half[v])
                continue;
            bool is_peak = true;
            for (int q = 0; q < 6 && is_peak; q++) {
                us_vec3 rim = us_vec3_make(step[q][0] * f->dx, step[q][1] * f->dy,
                                           h[i + step[q][0] + step[q][1] * f->n_x] - p.z);
                is_peak = us_vec3_dot(n, rim) < -1e-9 * (f->dx + f->dy);
            }
            if (is_peak)
                add(g, n, usi_vec3_add_scaled(p, gap, n), gap, (uint64_t)j * (uint64_t)f->n_x + (uint64_t)i,
                    OF_PEAK);
        }
    }
}

// Contact of the four edges of a box's lower face k, whose middle is `middle`. False: beyond this method.
static inline bool touch_face_edges(gathered *g, const us_height_field *f, us_vec3 middle,
                                    const us_vec3 axis[3], const double half[3], int k, double grow) {
    int u = (k + 1) % 3, v = (k + 2) % 3;
    spine *s = &g->s;
    // Round the face: along +u, +v, -u, -v, each edge from its first corner.
    for (int e = 0; e < 4; e++) {
        int run = e & 1 ? v : u, off = e & 1 ? u : v;
        double sign = e < 2 ? 1 : -1, side = e == 0 || e == 3 ? -1 : 1;
        s->a = us_vec3_scale(sign, axis[run]);
        s->half = half[run];
        s->size = s->half + s->R;
        s->c = usi_vec3_add_scaled(middle, side * half[off], axis[off]);
        g->prefix = (uint64_t)(4 * k + e + 1) << 58;
        double low = s->c.z - s->half * fabs(s->a.z) - grow;
        cell_window we;
        if (low > f->high || cells_under(f, s->c, s->half * fabs(s->a.x) + grow,
                                         s->half * fabs(s->a.y) + grow, &we) != COVER_SOME)
            continue;
        if (!touch_spine(g, low, &we)) return false;
    }
    return true;
}

bool usi_contact_terrain_box(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                             double margin, us_manifold *out) {
    const us_height_field *f = B->field;
    gathered g;
    us_mat3 R = us_quat_matrix(X_WB->q), R_WA = us_quat_matrix(X_WA->q);
    us_vec3 c = usi_mat3_mul_transposed(&R, us_vec3_sub(X_WA->p, X_WB->p)), axis[3];
    const double *half = A->size;
    for (int k = 0; k < 3; k++)
        axis[k] = usi_mat3_mul_transposed(&R, us_vec3_make(R_WA.m[k], R_WA.m[3 + k], R_WA.m[6 + k]));
    g.f = f;
    g.n = 0;
    g.margin = margin + B->radius;
    g.is_edge = true;
    g.reach = g.margin + fmin(half[0], fmin(half[1], half[2]));
    out->n = 0;
    double grow = A->radius + g.margin, ax = grow, ay = grow, az = grow;
    for (int k = 0; k < 3; k++) {
        ax += half[k] * fabs(axis[k].x);
        ay += half[k] * fabs(axis[k].y);
        az += half[k] * fabs(axis[k].z);
    }
    double bottom = c.z - az;
    if (bottom > f->high) return true;
    cell_window w;
    cell_cover under = cells_under(f, c, ax, ay, &w);
    if (under != COVER_SOME) return under == COVER_NONE;
    double dx[2], dy[2];
    if (slopes_of(f, &w, dx, dy) < bottom) return true;
    // Flat on gentle ground only: within some 25 degrees of each other, so that no other face or edge comes
    // into play.
    double sx = fmax(fabs(dx[0]), fabs(dx[1])) * w.per_x, sy = fmax(fabs(dy[0]), fabs(dy[1])) * w.per_y;
    int k = fabs(axis[2].z) > 0.8 ? 2 : (fabs(axis[0].z) > 0.8 ? 0 : 1);
    if (!(fabs(axis[k].z) > 0.9 && sx * sx + sy * sy < 0.2) || !(half[0] > 0 && half[1] > 0 && half[2] > 0))
        return false;

    // The lower face: its edges, then peaks in it.
    us_vec3 down = axis[k].z > 0 ? us_vec3_scale(-1, axis[k]) : axis[k];
    us_vec3 middle = usi_vec3_add_scaled(c, half[k], down);
    spine *s = &g.s;
    s->r = 0;
    s->R = A->radius;
    s->n_end = 2;
    if (!touch_face_edges(&g, f, middle, axis, half, k, grow)) return false;
    g.prefix = (uint64_t)(4 * k) << 58;
    peaks_in_face(&g, &w, c, axis, half, k, down);
    if (g.n == 0 && c.z < f->high) {
        s->c = c;
        s->a = axis[k];
        s->half = half[k];
        s->R = A->radius;
        s->size = s->half + s->R;
        lift(&g, &w);
    }
    finish(&g, &R, B, X_WB, out);
    return true;
}

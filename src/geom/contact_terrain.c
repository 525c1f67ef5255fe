// Contact points of spheres, capsules and cylinders on a height field: the closed form for wheels and feet on terrain.
//
// Such a shape is a segment, its spine, with a disc at each end (of radius 0 but for cylinders), swept by a sphere. Its lowest points
// along a normal n are the lowest points of the two ends, and the line between them:
//
//          _____                   p = c +- half a - r (n - (n.a) a) / |n - (n.a) a| - R n
//        /   |   \     n
//       |    c----|-- a ^          For each triangle under the shape's box that gives two points and their feet on the triangle's plane.
//        \   |   /      |          Over a height field the feet are known by their grid coordinates, and whether a foot is in the triangle
//     _____ -p- ________|____      is three comparisons.
//
// What touches what:
//   an end on a face     its foot is in the triangle; id: triangle and end, so that it stays while the shape rolls over this triangle
//   an end on an edge    the feet on the two faces are both beyond their common edge; the normal is where the lowest point is over the edge.
//                        So it is on a ridge, and for an end that has sunk below the bottom of a valley
//   the line on a ridge  the ends are on different sides of a convex edge; the normal is across the line if that lies between the two
//                        faces' normals, else the nearer of these. One id for all of it: a line that rocks on the edge of a step keeps it
//   a peak in the shape  a corner nearer than the margin, with the shape's normal within what the six edges leave free
//
// Other edges, those of flat ground above all, touch nothing themselves. Gaps are continuous across all these changes.
//
// Only a few cells are looked at one by one. The heights under the shape's box bound the slopes there, the slopes bound the normals, and the
// normals bound where the lowest points can be: a wheel on gentle ground has its whole tread in one or two cells, whatever its box.
//
// Left to the general method (false is returned): shapes over the field's rim, cylinders that stand on an end, walls steeper than 45
// degrees, windows of more than WIDE cells across.
#include <string.h>

#include "geom/contact.h"
#include "math/v4.h"

enum {
    WIDE = 64,      // cells of a row under the shape
    GATHERED = 24,  // points before the choice
    KEPT = 4,
    SECANTS = 40,
};

// Ids: index << 8 and one of these, plus the end (0, 1) or the kind of edge (0, 1, 2).
enum { OF_END = 0, OF_LINE = 4, OF_RIDGE_END = 8, OF_PEAK = 16, OF_DEPTH = 17 };

// Feet count as inside when out by this part of a cell: what rounding makes of a foot on the seam of two faces of one plane.
#define SEAM 1e-9

// The shape in the field's frame F.
typedef struct spine {
    us_vec3 c, a;
    double half, r, R, size;
    int n_end;
} spine;

// What the two triangles of a cell know, one end of one triangle in each lane: ends 0 and 1 of the lower one, 0 and 1 of the upper one.
typedef struct reach {
    usi_v4 nx, ny, nz;  // normals
    usi_v4 along;       // n . a
    usi_v4 px, py, pz;  // lowest points of the ends
    usi_v4 gap;         // from the plane
    usi_v4 U, V;        // feet, in cells
} reach;

typedef struct gathered {
    const us_height_field *f;
    spine s;
    double margin;
    uint64_t prefix;  // of the ids
    double reach;     // m, how far from the spine's surface a peak may be: the margin, and for edges of a box the depth it may have sunk to
    bool is_edge;     // the spine is an edge of a box: its second end is the first of the next edge
    int32_t n;
    usi_point at[GATHERED];
} gathered;

static void add(gathered *g, us_vec3 n, us_vec3 p_A, double gap, uint64_t index, uint32_t kind) {
    uint64_t id = g->prefix | index << 8 | kind;
    us_vec3 p_B = usi_vec3_ahead(p_A, -gap, n);
    // Where faces of one plane meet, both have the point.
    double near2 = 1e-12 * g->s.size * g->s.size;
    for (int32_t i = 0; i < g->n; i++) {
        us_vec3 d = us_vec3_sub(g->at[i].p_B, p_B), e = us_vec3_sub(g->at[i].normal, n);
        if (us_vec3_dot(d, d) < near2 && us_vec3_dot(e, e) < 1e-12) return;
    }
    int32_t at = g->n < GATHERED ? g->n++ : 0;
    if (g->n == GATHERED && at == 0) {
        // No room: the shallowest gives way.
        for (int32_t i = 1; i < GATHERED; i++) at = g->at[i].gap > g->at[at].gap ? i : at;
        if (gap >= g->at[at].gap) return;
    }
    usi_point *p = &g->at[at];
    p->normal = n, p->p_A = p_A, p->p_B = p_B, p->gap = gap, p->id = id;
}

static inline double positive(double x) { return x > 0 ? x : 0; }

// The lowest point of end 0 (-) or 1 (+) along n; along = n . a.
static inline us_vec3 lowest_of_end(const spine *s, int end, us_vec3 n, double along) {
    double h = end ? s->half : -s->half;
    us_vec3 p = us_vec3_make(s->c.x + h * s->a.x - s->R * n.x, s->c.y + h * s->a.y - s->R * n.y, s->c.z + h * s->a.z - s->R * n.z);
    double across2 = 1 - along * along;
    if (s->r > 0 && across2 > 0) {
        double k = s->r / sqrt(across2);
        p.x -= k * (n.x - along * s->a.x), p.y -= k * (n.y - along * s->a.y), p.z -= k * (n.z - along * s->a.z);
    }
    return p;
}

// ---- Ridges ----

// One of the two triangles.
typedef struct triangle {
    us_vec3 n;
    double along;
    us_vec3 p[2];
} triangle;

static inline us_vec3 lane_of(usi_v4 x, usi_v4 y, usi_v4 z, int lane) { return us_vec3_make(x[lane], y[lane], z[lane]); }
static inline triangle triangle_of(const reach *r, int upper) {
    int at = 2 * upper;
    return (triangle){lane_of(r->nx, r->ny, r->nz, at), r->along[at], {lane_of(r->px, r->py, r->pz, at), lane_of(r->px, r->py, r->pz, at + 1)}};
}

// An edge of the grid, from e along the unit vector u, between faces 1 and 2. `side` is positive on face 2's side.
typedef struct edge {
    us_vec3 e, u;
    double length;
    triangle f1, f2;
    double side[4];  // of the feet on face 1 and on face 2, two each, in cells
    double pos[4];   // how far along the edge they are: on it from 0 to 1
    uint64_t index;
    uint32_t which;  // 0 .. 2
} edge;

// Across the edge as well: the sum of two such normals is.
static inline us_vec3 between(double x, us_vec3 n1, us_vec3 n2) {
    us_vec3 n = usi_vec3_ahead(n1, x, us_vec3_sub(n2, n1));
    return us_vec3_scale(1 / us_vec3_norm(n), n);
}

static void end_on_ridge(gathered *g, const edge *e, int end) {
    const spine *s = &g->s;
    us_vec3 n1 = e->f1.n, n2 = e->f2.n, n, p;
    if (s->r > 0) {
        double x1 = 0, x2 = 1, f1 = us_vec3_dot(us_vec3_cross(e->u, n1), us_vec3_sub(e->f1.p[end], e->e));
        double f2 = us_vec3_dot(us_vec3_cross(e->u, n2), us_vec3_sub(e->f2.p[end], e->e));
        // Oriented so that it falls from face 1 to face 2.
        double sign = f1 < 0 || f2 > 0 ? -1 : 1;
        f1 *= sign, f2 *= sign;
        if (!(f1 >= 0 && f2 <= 0)) return;
        n = n1, p = e->f1.p[end];
        int kept = 0;
        for (int step = 0; step < SECANTS && f1 - f2 > 0; step++) {
            double x = x1 + (x2 - x1) * (f1 / (f1 - f2));
            n = between(x, n1, n2);
            p = lowest_of_end(s, end, n, us_vec3_dot(n, s->a));
            double f = sign * us_vec3_dot(us_vec3_cross(e->u, n), us_vec3_sub(p, e->e));
            if (fabs(f) < 1e-11 * s->size) break;
            // An end that stays twice running counts half (Illinois).
            if (f > 0) {
                x1 = x, f1 = f;
                if (kept == 1) f2 *= 0.5;
                kept = 1;
            } else {
                x2 = x, f2 = f;
                if (kept == 2) f1 *= 0.5;
                kept = 2;
            }
        }
    } else {
        us_vec3 c = usi_vec3_ahead(s->c, end ? s->half : -s->half, s->a), d = us_vec3_sub(c, e->e);
        d = usi_vec3_ahead(d, -us_vec3_dot(d, e->u), e->u);
        n = usi_vec3_unit(d, n1);
        if (us_vec3_dot(n, n1) < 0) n = us_vec3_scale(-1, n);
        p = usi_vec3_ahead(c, -s->R, n);
    }
    us_vec3 d = us_vec3_sub(p, e->e);
    double along = us_vec3_dot(e->u, d), gap = us_vec3_dot(n, d);
    if (along < 0 || along > e->length || !(gap <= g->margin)) return;
    add(g, n, p, gap, e->index, OF_RIDGE_END + 2 * e->which + (uint32_t)end);
}

// The line between the ends where it crosses the edge.
static void line_on_ridge(gathered *g, const edge *e) {
    const spine *s = &g->s;
    double a1 = e->f1.along, a2 = e->f2.along, w;
    us_vec3 n, p0, p1;
    if (a1 * a2 < 0) {
        n = between(a1 / (a1 - a2), e->f1.n, e->f2.n);
        us_vec3 low = usi_vec3_ahead(s->c, -(s->r + s->R), n), side = us_vec3_cross(e->u, n);
        p0 = usi_vec3_ahead(low, -s->half, s->a), p1 = usi_vec3_ahead(low, s->half, s->a);
        double s0 = us_vec3_dot(side, us_vec3_sub(p0, e->e)), s1 = us_vec3_dot(side, us_vec3_sub(p1, e->e));
        if (!(s0 * s1 < 0)) return;
        w = s0 / (s0 - s1);
    } else {
        bool is_1 = fabs(a1) <= fabs(a2);
        const triangle *f = is_1 ? &e->f1 : &e->f2;
        const double *side = e->side + (is_1 ? 0 : 2);
        if (!(side[0] * side[1] < 0)) return;
        w = side[0] / (side[0] - side[1]);
        n = f->n, p0 = f->p[0], p1 = f->p[1];
    }
    us_vec3 p = usi_vec3_ahead(p0, w, us_vec3_sub(p1, p0)), d = us_vec3_sub(p, e->e);
    double along = us_vec3_dot(e->u, d), gap = us_vec3_dot(n, d);
    if (along < 0 || along > e->length || !(gap <= g->margin)) return;
    add(g, n, p, gap, e->index, OF_LINE + e->which);
}

// Where the line between two feet crosses the edge; false when it does not.
static inline bool is_crossing(const double side[2], const double pos[2], double *out_pos) {
    if (!(side[0] * side[1] < 0)) return false;
    *out_pos = pos[0] + side[0] / (side[0] - side[1]) * (pos[1] - pos[0]);
    return true;
}

// Both may only be beyond the ends of the edge as far as they are from each other.
static inline bool is_beside(double a, double b, double slack) {
    double low = a < b ? a : b, high = a < b ? b : a;
    slack += high - low;
    return high + slack >= 0 && low - slack <= 1;
}

// Most edges are left here, for a few comparisons of where the feet are.
static void touch_edge(gathered *g, edge *e, const reach *r1, const reach *r2, bool is_convex, us_vec3 along) {
    const double *side1 = e->side, *side2 = e->side + 2, *pos1 = e->pos, *pos2 = e->pos + 2;
    bool is_line = false, is_end[2] = {false, false};
    for (int k = 0; k < g->s.n_end; k++) {
        is_end[k] = (side1[k] > 0) & (side2[k] < 0) && is_beside(pos1[k], pos2[k], side1[k] - side2[k]);
    }
    if (is_convex) {
        double a = 0, b = 0;
        bool on_1 = is_crossing(side1, pos1, &a), on_2 = is_crossing(side2, pos2, &b);
        is_line = (on_1 | on_2) && is_beside(on_1 ? a : b, on_2 ? b : a, on_1 && on_2 ? 0 : 1);
    }
    if (!(is_line || is_end[0] || is_end[1])) return;
    e->f1 = triangle_of(r1, e->which == 1), e->f2 = triangle_of(r2, e->which != 1);
    e->length = us_vec3_norm(along), e->u = us_vec3_scale(1 / e->length, along);
    if (is_line) line_on_ridge(g, e);
    for (int k = 0; k < (g->is_edge ? 1 : g->s.n_end); k++) {
        if (is_end[k]) end_on_ridge(g, e, k);
    }
}

// ---- Peaks ----

static void touch_peak(gathered *g, int32_t i, int32_t j) {
    static const int step[6][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 0}, {-1, -1}, {0, -1}};
    const us_height_field *f = g->f;
    const spine *s = &g->s;
    us_vec3 v = usi_field_point(f, i, j), d = us_vec3_sub(v, s->c), n;
    double z = us_vec3_dot(s->a, d), far2 = us_vec3_dot(d, d), near = s->r + s->R + g->reach, over = fabs(z) - s->half;
    double rho2 = far2 - z * z;
    if (over > s->R + g->margin || rho2 > near * near || (g->is_edge && z > s->half)) return;
    // From the corner to the shape: the outward normal there, turned round.
    us_vec3 radial = usi_vec3_ahead(d, -z, s->a), axial = z < 0 ? us_vec3_scale(-1, s->a) : s->a;
    double rho = us_vec3_norm(radial), out = rho - s->r, distance;
    if (!(rho > 1e-12 * s->size) && over <= 0) return;
    radial = rho > 0 ? us_vec3_scale(1 / rho, radial) : us_vec3_make(0, 0, 0);
    if (over > 0 && out > 0) {
        distance = sqrt(over * over + out * out);
        n = us_vec3_scale(1 / distance, us_vec3_add(us_vec3_scale(out, radial), us_vec3_scale(over, axial)));
    } else if (s->r == 0 || out > over) {
        distance = out, n = radial;
    } else {
        distance = over, n = axial;
    }
    n = us_vec3_scale(-1, n);
    // The spine itself may have sunk below the peak.
    if (s->r == 0 && n.z < 0) n = us_vec3_scale(-1, n), distance = -distance;
    distance -= s->R;
    if (!(distance <= g->margin) || !(us_vec3_dot(n, n) > 0.5)) return;
    for (int k = 0; k < 6; k++) {
        int32_t a = i + step[k][0], b = j + step[k][1];
        if (a < 0 || b < 0 || a >= f->n_x || b >= f->n_y) return;
        us_vec3 rim = us_vec3_make(step[k][0] * f->dx, step[k][1] * f->dy, f->height[(size_t)b * (size_t)f->n_x + (size_t)a] - v.z);
        // Strictly below: what a flat or an edge can do is done there.
        if (us_vec3_dot(n, rim) > -1e-9 * (f->dx + f->dy)) return;
    }
    add(g, n, usi_vec3_ahead(v, distance, n), distance, (uint64_t)j * (uint64_t)f->n_x + (uint64_t)i, OF_PEAK);
}

// ---- The field ----

typedef struct window {
    int32_t i0, i1, j0, j1;
    double half_x, half_y, per_x, per_y;
    // Only cells whose middle is within this strip along the shape's line: |x strip_x + y strip_y - strip_at| <= strip_wide.
    double strip_x, strip_y, strip_at, strip_wide;
} window;

// Which lanes are set, as bits.
static inline int bits_of(usi_v4i a) {
#ifdef __AVX__
    return _mm256_movemask_pd((__m256d)a);
#else
    return (a[0] != 0) | (a[1] != 0) << 1 | (a[2] != 0) << 2 | (a[3] != 0) << 3;
#endif
}
enum { LOWER = 1, UPPER = 4 };  // bits of the triangles

// Which of a cell's triangles, of slopes sx and sy, are within reach? Fills what is needed of both, unless none is. A triangle's normal is
// (-sx, -sy, 1) / L.
static inline int reach_of(const gathered *g, const window *w, usi_v4 sx, usi_v4 sy, us_vec3 corner, reach *out) {
    const spine *s = &g->s;
    usi_v4 inverse = 1 / usi_v4_sqrt(1 + sx * sx + sy * sy), nx = -sx * inverse, ny = -sy * inverse, nz = inverse;
    us_vec3 d = us_vec3_sub(s->c, corner);
    usi_v4 along = nx * s->a.x + ny * s->a.y + nz * s->a.z, height = nx * d.x + ny * d.y + nz * d.z - s->R, across = usi_v4_all(1);
    if (s->r > 0) {
        usi_v4 square = 1 - along * along;
        across = usi_v4_sqrt((usi_v4)((usi_v4i)square & (square > 0)));
        height -= s->r * across;
    }
    int near = bits_of(height - s->half * usi_v4_abs(along) <= g->margin) & (LOWER | UPPER);
    if (!near) return 0;
    usi_v4 px = s->c.x - s->R * nx, py = s->c.y - s->R * ny, pz = s->c.z - s->R * nz;
    if (s->r > 0) {
        usi_v4 k = (usi_v4)((usi_v4i)(s->r / across) & (across > 0));
        px -= k * (nx - along * s->a.x), py -= k * (ny - along * s->a.y), pz -= k * (nz - along * s->a.z);
    }
    usi_v4 h = {-s->half, s->half, -s->half, s->half}, gap = height + h * along;
    px += h * s->a.x, py += h * s->a.y, pz += h * s->a.z;
    out->nx = nx, out->ny = ny, out->nz = nz, out->along = along, out->px = px, out->py = py, out->pz = pz, out->gap = gap;
    out->U = (px - gap * nx) * w->per_x + w->half_x, out->V = (py - gap * ny) * w->per_y + w->half_y;
    return near;
}

// The least and the greatest of each lane.
typedef struct extent {
    usi_v4 low, high;
} extent;

static inline void widen(extent *e, usi_v4 x) {
#ifdef __AVX__
    e->low = (usi_v4)_mm256_min_pd((__m256d)e->low, (__m256d)x), e->high = (usi_v4)_mm256_max_pd((__m256d)e->high, (__m256d)x);
#else
    for (int k = 0; k < 4; k++) e->low[k] = x[k] < e->low[k] ? x[k] : e->low[k], e->high[k] = x[k] > e->high[k] ? x[k] : e->high[k];
#endif
}
static inline usi_v4 load4(const double *x) {
    usi_v4 v;
    memcpy(&v, x, sizeof v);
    return v;
}
static inline double least4(usi_v4 a) {
    double x = a[0] < a[1] ? a[0] : a[1], y = a[2] < a[3] ? a[2] : a[3];
    return x < y ? x : y;
}
static inline double most4(usi_v4 a) {
    double x = a[0] > a[1] ? a[0] : a[1], y = a[2] > a[3] ? a[2] : a[3];
    return x > y ? x : y;
}

// Slopes (as differences of neighbouring heights) and the greatest height of a window. Rows are taken four cells at a time, the last four
// once more rather than less.
static double slopes_of(const us_height_field *f, const window *w, double dx[2], double dy[2]) {
    int32_t n = w->i1 - w->i0 + 1;
    if (n < 4) {
        double top = -INFINITY;
        dx[0] = dy[0] = INFINITY, dx[1] = dy[1] = -INFINITY;
        for (int32_t j = w->j0; j <= w->j1 + 1; j++) {
            const double *h = f->height + (size_t)j * (size_t)f->n_x + w->i0;
            bool has_next = j <= w->j1;
            for (int32_t i = 0; i <= n; i++) {
                double x = i < n ? h[i + 1] - h[i] : h[i] - h[i - 1], y = has_next ? h[i + f->n_x] - h[i] : dy[0];
                top = h[i] > top ? h[i] : top;
                dx[0] = x < dx[0] ? x : dx[0], dx[1] = x > dx[1] ? x : dx[1];
                dy[0] = y < dy[0] ? y : dy[0], dy[1] = y > dy[1] ? y : dy[1];
            }
        }
        return top;
    }
    usi_v4 big = usi_v4_all(INFINITY);
    extent ex = {big, -big}, ey = ex, eh = ex;
    for (int32_t j = w->j0; j <= w->j1 + 1; j++) {
        const double *h = f->height + (size_t)j * (size_t)f->n_x + w->i0, *next = h + (j <= w->j1 ? f->n_x : -f->n_x);
        usi_v4 sign = usi_v4_all(j <= w->j1 ? 1 : -1);
        for (int32_t i = 0; i < n; i += 4) {
            int32_t k = i + 4 <= n ? i : n - 4;
            usi_v4 a = load4(h + k), b = load4(h + k + 1);
            widen(&ex, b - a), widen(&ey, sign * (load4(next + k) - a)), widen(&ey, sign * (load4(next + k + 1) - b));
            widen(&eh, a), widen(&eh, b);
        }
    }
    dx[0] = least4(ex.low), dx[1] = most4(ex.high), dy[0] = least4(ey.low), dy[1] = most4(ey.high);
    return most4(eh.high);
}

// Makes the window as small as the slopes allow; false when the shape is above everything in it. `bottom`: the lowest point, less the margin.
static bool narrow(const gathered *g, double bottom, window *w) {
    const spine *s = &g->s;
    double dx[2], dy[2], deep = slopes_of(g->f, w, dx, dy) - bottom;
    if (deep < 0) return false;
    double mx = 0.5 * (dx[0] + dx[1]) * w->per_x, my = 0.5 * (dy[0] + dy[1]) * w->per_y;
    double ox = 0.5 * (dx[1] - dx[0]) * w->per_x, oy = 0.5 * (dy[1] - dy[0]) * w->per_y, off = sqrt(ox * ox + oy * oy);
    double inverse = 1 / sqrt(1 + mx * mx + my * my);
    us_vec3 n = us_vec3_make(-mx * inverse, -my * inverse, inverse);
    double along = us_vec3_dot(n, s->a), steepest = fabs(along) + off, slack = (s->R + deep) * off + 1e-6 * s->size;
    if (s->r > 0) {
        if (steepest > 0.9) return true;
        slack += s->r * off / sqrt(1 - steepest * steepest);
    }
    us_vec3 p = lowest_of_end(s, 0, n, along);
    double x = 2 * s->half * s->a.x, y = 2 * s->half * s->a.y, ux = deep * n.x, uy = deep * n.y;
    // From the lowest points up along the normal, as deep as they may be below the surface, or down by the margin, which `deep` counts too.
    double x0 = p.x - g->margin + (x < 0 ? x : 0) + (ux < 0 ? ux : 0) - slack, x1 = p.x + g->margin + (x > 0 ? x : 0) + (ux > 0 ? ux : 0) + slack;
    double y0 = p.y - g->margin + (y < 0 ? y : 0) + (uy < 0 ? uy : 0) - slack, y1 = p.y + g->margin + (y > 0 ? y : 0) + (uy > 0 ? uy : 0) + slack;
    double length = sqrt(x * x + y * y);
    if (length > 0.1 * s->size) {
        w->strip_x = -y / length, w->strip_y = x / length;
        double up = w->strip_x * ux + w->strip_y * uy, cell = 0.5 * sqrt(g->f->dx * g->f->dx + g->f->dy * g->f->dy);
        w->strip_at = w->strip_x * p.x + w->strip_y * p.y + 0.5 * up, w->strip_wide = 0.5 * fabs(up) + g->margin + slack + cell;
    }
    x0 = x0 * w->per_x + w->half_x, x1 = x1 * w->per_x + w->half_x, y0 = y0 * w->per_y + w->half_y, y1 = y1 * w->per_y + w->half_y;
    if (x0 > w->i0) w->i0 = x0 < w->i1 ? (int32_t)x0 : w->i1;
    if (y0 > w->j0) w->j0 = y0 < w->j1 ? (int32_t)y0 : w->j1;
    if (x1 < w->i1) w->i1 = x1 > w->i0 ? (int32_t)x1 : w->i0;
    if (y1 < w->j1) w->j1 = y1 > w->j0 ? (int32_t)y1 : w->j0;
    return true;
}

// Far below the surface no foot may be in its own triangle: the one above the shape's middle pushes up.
static void lift(gathered *g, const window *w) {
    const us_height_field *f = g->f;
    double x = g->s.c.x * w->per_x + w->half_x, y = g->s.c.y * w->per_y + w->half_y;
    if (!(x >= 0 && y >= 0 && x <= f->n_x - 1 && y <= f->n_y - 1)) return;
    int32_t i = x > f->n_x - 2 ? f->n_x - 2 : (int32_t)x, j = y > f->n_y - 2 ? f->n_y - 2 : (int32_t)y;
    int upper = y - j > x - i;
    us_vec3 a = usi_field_point(f, i, j), b = usi_field_point(f, i + 1, j + 1);
    us_vec3 c = upper ? usi_field_point(f, i, j + 1) : usi_field_point(f, i + 1, j), n = us_vec3_cross(us_vec3_sub(c, a), us_vec3_sub(b, a));
    n = usi_vec3_unit(upper ? us_vec3_scale(-1, n) : n, us_vec3_make(0, 0, 1));
    if (us_vec3_dot(n, us_vec3_sub(g->s.c, a)) > 0) return;
    double along = us_vec3_dot(n, g->s.a);
    us_vec3 p = lowest_of_end(&g->s, along < 0, n, along);
    double gap = us_vec3_dot(n, us_vec3_sub(p, a));
    if (gap <= g->margin) add(g, n, p, gap, (uint64_t)(((int64_t)j * (f->n_x - 1) + i) * 2 + upper), OF_DEPTH);
}

// Whether an edge is worth a look: an end's foot on each face is beyond it, or it is convex and the ends are on different sides. Sets where they are.
static inline bool is_between(edge *e, usi_v4 side, usi_v4 pos, uint32_t which, bool is_convex) {
    int back = bits_of(side < 0), crossing = (back ^ back >> 1) & (LOWER | UPPER);
    if (!(~back & back >> 2 & 3) && !(is_convex && crossing)) return false;
    memcpy(e->side, &side, sizeof side), memcpy(e->pos, &pos, sizeof pos);
    e->which = which;
    return true;
}

// Everything in one cell: faces, and the edges to the cells before it.
static bool touch_cells(gathered *g, const window *w) {
    const us_height_field *f = g->f;
    const spine *s = &g->s;
    // Two rows of cells, and which triangles of each are within reach.
    reach rows[2][WIDE];
    int near_rows[2][WIDE];
    double bottom = s->c.z - s->half * fabs(s->a.z) - s->r * sqrt(positive(1 - s->a.z * s->a.z)) - s->R - g->margin;
    // How much higher an edge's ends are than the far corners of its two faces, in sum, where it is convex.
    const double convex = s->n_end == 2 ? 1e-9 * s->size : INFINITY;
    // Of an edge of a box the second end is another's; a sphere has one.
    const int own = g->is_edge || s->n_end == 1 ? LOWER | UPPER : 15;
    for (int32_t j = w->j0; j <= w->j1; j++) {
        const double *h0 = f->height + (size_t)j * (size_t)f->n_x, *h1 = h0 + f->n_x;
        const reach *last_row = rows[(j & 1) ^ 1];
        const int *last_near = near_rows[(j & 1) ^ 1];
        int *near_row = near_rows[j & 1];
        double y = (j - w->half_y) * f->dy;
        for (int32_t i = w->i0; i <= w->i1; i++) {
            int32_t m = i - w->i0;
            near_row[m] = 0;
            double h00 = h0[i], h10 = h0[i + 1], h01 = h1[i], h11 = h1[i + 1];
            double top = (h00 > h10 ? h00 : h10), top1 = (h01 > h11 ? h01 : h11);
            us_vec3 corner = us_vec3_make((i - w->half_x) * f->dx, y, h00);
            double beside = w->strip_x * (corner.x + 0.5 * f->dx) + w->strip_y * (y + 0.5 * f->dy) - w->strip_at;
            if ((top > top1 ? top : top1) < bottom || fabs(beside) > w->strip_wide) continue;
            reach *r = &rows[j & 1][m];
            double x0 = (h10 - h00) * w->per_x, x1 = (h11 - h01) * w->per_x, y0 = (h11 - h10) * w->per_y, y1 = (h01 - h00) * w->per_y;
            int near = near_row[m] = reach_of(g, w, (usi_v4){x0, x0, x1, x1}, (usi_v4){y0, y0, y1, y1}, corner, r);
            if (!near) continue;
            // Walls, and ends flat on the ground, are beyond this method.
            if (near & bits_of((r->nz < 0.7) | (usi_v4_abs(r->along) > (s->r > 0 ? 0.9 : INFINITY)))) return false;
            uint64_t cell = (uint64_t)j * (uint64_t)(f->n_x - 1) + (uint64_t)i;
            usi_v4 u = r->U - i, v = r->V - j, low = __builtin_shufflevector(u, v, 4, 5, 2, 3), high = __builtin_shufflevector(u, v, 0, 1, 6, 7);
            int inside = own & bits_of((low >= -SEAM) & (high <= 1 + SEAM) & (high >= low - SEAM) & (r->gap <= g->margin));
            // Of triangles within reach; both bits of a triangle.
            inside &= near | near << 1;
            for (; inside; inside &= inside - 1) {
                int k = __builtin_ctz((unsigned)inside);
                add(g, lane_of(r->nx, r->ny, r->nz, k), lane_of(r->px, r->py, r->pz, k), r->gap[k], 2 * cell + (uint64_t)(k >> 1),
                    OF_END + (uint32_t)(k & 1));
            }
            edge e;
            e.e = corner, e.index = cell;
            double rise = h00 + h11 - h10 - h01;
            if (near == (LOWER | UPPER) && is_between(&e, v - u, u, 0, rise > convex))
                touch_edge(g, &e, r, r, rise > convex, us_vec3_make(f->dx, f->dy, h11 - h00));
            if ((near & LOWER) && j > w->j0 && (last_near[m] & UPPER)) {
                const reach *b = &last_row[m];
                rise = h00 + h10 - h11 - h0[i - f->n_x];
                usi_v4 side = __builtin_shufflevector(b->V, r->V, 2, 3, 4, 5) - j, pos = __builtin_shufflevector(b->U, r->U, 2, 3, 4, 5) - i;
                if (is_between(&e, side, pos, 1, rise > convex)) touch_edge(g, &e, b, r, rise > convex, us_vec3_make(f->dx, 0, h10 - h00));
            }
            if ((near & UPPER) && m > 0 && (near_row[m - 1] & LOWER)) {
                // Face 1 is on the side of smaller x.
                const reach *b = r - 1;
                rise = h00 + h01 - h11 - h0[i - 1];
                usi_v4 side = __builtin_shufflevector(b->U, r->U, 0, 1, 6, 7) - i, pos = __builtin_shufflevector(b->V, r->V, 0, 1, 6, 7) - j;
                if (is_between(&e, side, pos, 2, rise > convex)) touch_edge(g, &e, b, r, rise > convex, us_vec3_make(0, f->dy, h01 - h00));
            }
            if (m > 0 && j > w->j0) touch_peak(g, i, j);
        }
    }
    return true;
}

// At most KEPT: the deepest, then always the one farthest from those chosen.
static void choose(gathered *g) {
    for (int32_t k = 0; k < KEPT && g->n > KEPT; k++) {
        int32_t best = k;
        double score = -INFINITY;
        for (int32_t i = k; i < g->n; i++) {
            double x = k ? INFINITY : -g->at[i].gap;
            for (int32_t m = 0; m < k; m++) {
                us_vec3 d = us_vec3_sub(g->at[i].p_A, g->at[m].p_A);
                x = fmin(x, us_vec3_dot(d, d));
            }
            if (x > score) score = x, best = i;
        }
        usi_point t = g->at[k];
        g->at[k] = g->at[best], g->at[best] = t;
    }
    if (g->n > KEPT) g->n = KEPT;
}

// From F to W, at most KEPT of them.
static void finish(gathered *g, const us_mat3 *R, const us_geom *B, const us_pose *X_WB, us_manifold *out) {
    choose(g);
    for (int32_t i = 0; i < g->n; i++) {
        const usi_point *p = &g->at[i];
        us_vec3 p_B = usi_vec3_ahead(p->p_B, B->radius, p->normal);
        out->normal[i] = us_mat3_mul_vec(R, p->normal);
        out->p_A[i] = us_vec3_add(X_WB->p, us_mat3_mul_vec(R, p->p_A)), out->p_B[i] = us_vec3_add(X_WB->p, us_mat3_mul_vec(R, p_B));
        out->gap[i] = p->gap - B->radius, out->feature[i] = p->id;
    }
    out->n = g->n;
}

// The cells under a box in F, x and y from middle - half to middle + half. COVER_RIM: it reaches beyond the field.
typedef enum cover { COVER_NONE, COVER_SOME, COVER_RIM } cover;

static cover cells_under(const us_height_field *f, us_vec3 middle, double ax, double ay, window *w) {
    *w = (window){.half_x = 0.5 * (f->n_x - 1), .half_y = 0.5 * (f->n_y - 1), .per_x = 1 / f->dx, .per_y = 1 / f->dy, .strip_wide = INFINITY};
    double x0 = (middle.x - ax) * w->per_x + w->half_x, x1 = (middle.x + ax) * w->per_x + w->half_x;
    double y0 = (middle.y - ay) * w->per_y + w->half_y, y1 = (middle.y + ay) * w->per_y + w->half_y;
    if (x1 < 0 || y1 < 0 || x0 > f->n_x - 1 || y0 > f->n_y - 1) return COVER_NONE;
    if (!(x0 > 0 && y0 > 0 && x1 < f->n_x - 1 && y1 < f->n_y - 1)) return COVER_RIM;
    w->i0 = (int32_t)x0, w->i1 = (int32_t)x1, w->j0 = (int32_t)y0, w->j1 = (int32_t)y1;
    return COVER_SOME;
}

// Narrows the window and looks at what is left. False: beyond this method.
static bool touch_spine(gathered *g, double bottom, window *w) {
    // A smaller window has fewer slopes: as long as it shrinks well, it may shrink again.
    for (int32_t n = 0, last = INT32_MAX; last > 6; last = n) {
        if (!narrow(g, bottom, w)) return true;
        n = (w->i1 - w->i0 + 1) * (w->j1 - w->j0 + 1);
        if (2 * n > last) break;
    }
    return w->i1 - w->i0 < WIDE && touch_cells(g, w);
}

bool usi_contact_terrain(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB, double margin, us_manifold *out) {
    const us_height_field *f = B->field;
    gathered g;
    spine *s = &g.s;
    us_mat3 R = us_quat_matrix(X_WB->q);
    us_vec3 d = us_vec3_sub(X_WA->p, X_WB->p), a = usi_quat_z(X_WA->q);
    s->c = usi_mat3_back(&R, d), s->a = usi_mat3_back(&R, a);
    s->half = A->kind == US_GEOM_SPHERE ? 0 : A->size[A->kind == US_GEOM_CYLINDER], s->r = A->kind == US_GEOM_CYLINDER ? A->size[0] : 0;
    s->R = A->radius, s->n_end = s->half > 0 ? 2 : 1, s->size = s->half + s->r + s->R;
    if (s->r > 0 && s->n_end == 1) return false;
    g.f = f, g.n = 0, g.margin = margin + B->radius, g.prefix = 0, g.is_edge = false, g.reach = g.margin;
    out->n = 0;
    double ax = s->half * fabs(s->a.x) + s->R + g.margin, ay = s->half * fabs(s->a.y) + s->R + g.margin;
    double az = s->half * fabs(s->a.z) + s->R + g.margin;
    if (s->r > 0) {
        ax += s->r * sqrt(positive(1 - s->a.x * s->a.x)), ay += s->r * sqrt(positive(1 - s->a.y * s->a.y));
        az += s->r * sqrt(positive(1 - s->a.z * s->a.z));
    }
    if (s->c.z - az > f->high) return true;
    window w;
    cover under = cells_under(f, s->c, ax, ay, &w);
    if (under != COVER_SOME) return under == COVER_NONE;
    if (!touch_spine(&g, s->c.z - az, &w)) return false;
    if (g.n == 0) lift(&g, &w);
    finish(&g, &R, B, X_WB, out);
    return true;
}

// ---- Boxes ----
//
// A box that lies more or less flat touches with the corners of its lower face, with the edges of that face, or with the face
// itself where a peak pokes into it. The four edges are spines of no radius (or the box's own), each with its first corner.

static void peaks_in_face(gathered *g, const window *w, us_vec3 c, const us_vec3 axis[3], const double half[3], int k, us_vec3 out) {
    static const int step[6][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 0}, {-1, -1}, {0, -1}};
    const us_height_field *f = g->f;
    int u = (k + 1) % 3, v = (k + 2) % 3;
    us_vec3 n = us_vec3_scale(-1, out);
    double face = half[k] + g->s.R;
    for (int32_t j = w->j0 + 1; j <= w->j1; j++) {
        const double *h = f->height + (size_t)j * (size_t)f->n_x;
        for (int32_t i = w->i0 + 1; i <= w->i1; i++) {
            us_vec3 p = us_vec3_make((i - w->half_x) * f->dx, (j - w->half_y) * f->dy, h[i]), d = us_vec3_sub(p, c);
            double gap = us_vec3_dot(out, d) - face;
            if (!(gap <= g->margin) || fabs(us_vec3_dot(axis[u], d)) > half[u] || fabs(us_vec3_dot(axis[v], d)) > half[v]) continue;
            bool is_peak = true;
            for (int q = 0; q < 6 && is_peak; q++) {
                us_vec3 rim = us_vec3_make(step[q][0] * f->dx, step[q][1] * f->dy, h[i + step[q][0] + step[q][1] * f->n_x] - p.z);
                is_peak = us_vec3_dot(n, rim) < -1e-9 * (f->dx + f->dy);
            }
            if (is_peak) add(g, n, usi_vec3_ahead(p, gap, n), gap, (uint64_t)j * (uint64_t)f->n_x + (uint64_t)i, OF_PEAK);
        }
    }
}

bool usi_contact_terrain_box(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB, double margin, us_manifold *out) {
    const us_height_field *f = B->field;
    gathered g;
    us_mat3 R = us_quat_matrix(X_WB->q), R_WA = us_quat_matrix(X_WA->q);
    us_vec3 c = usi_mat3_back(&R, us_vec3_sub(X_WA->p, X_WB->p)), axis[3];
    const double *half = A->size;
    for (int k = 0; k < 3; k++) axis[k] = usi_mat3_back(&R, us_vec3_make(R_WA.m[k], R_WA.m[3 + k], R_WA.m[6 + k]));
    g.f = f, g.n = 0, g.margin = margin + B->radius, g.is_edge = true;
    g.reach = g.margin + fmin(half[0], fmin(half[1], half[2]));
    out->n = 0;
    double grow = A->radius + g.margin, ax = grow, ay = grow, az = grow;
    for (int k = 0; k < 3; k++) ax += half[k] * fabs(axis[k].x), ay += half[k] * fabs(axis[k].y), az += half[k] * fabs(axis[k].z);
    double bottom = c.z - az;
    if (bottom > f->high) return true;
    window w;
    cover under = cells_under(f, c, ax, ay, &w);
    if (under != COVER_SOME) return under == COVER_NONE;
    double dx[2], dy[2];
    if (slopes_of(f, &w, dx, dy) < bottom) return true;
    // Flat on gentle ground only: within some 25 degrees of each other, so that no other face or edge comes into play.
    double sx = fmax(fabs(dx[0]), fabs(dx[1])) * w.per_x, sy = fmax(fabs(dy[0]), fabs(dy[1])) * w.per_y;
    int k = fabs(axis[2].z) > 0.8 ? 2 : (fabs(axis[0].z) > 0.8 ? 0 : 1);
    if (!(fabs(axis[k].z) > 0.9 && sx * sx + sy * sy < 0.2) || !(half[0] > 0 && half[1] > 0 && half[2] > 0)) return false;
    us_vec3 down = axis[k].z > 0 ? us_vec3_scale(-1, axis[k]) : axis[k];
    int u = (k + 1) % 3, v = (k + 2) % 3;
    us_vec3 middle = usi_vec3_ahead(c, half[k], down);
    spine *s = &g.s;
    s->r = 0, s->R = A->radius, s->n_end = 2;
    // Round the face: along +u, +v, -u, -v, each edge from its first corner.
    for (int e = 0; e < 4; e++) {
        int run = e & 1 ? v : u, off = e & 1 ? u : v;
        double sign = e < 2 ? 1 : -1, side = e == 0 || e == 3 ? -1 : 1;
        s->a = us_vec3_scale(sign, axis[run]), s->half = half[run], s->size = s->half + s->R;
        s->c = usi_vec3_ahead(middle, side * half[off], axis[off]);
        g.prefix = (uint64_t)(4 * k + e + 1) << 58;
        double low = s->c.z - s->half * fabs(s->a.z) - grow;
        window we;
        if (low > f->high || cells_under(f, s->c, s->half * fabs(s->a.x) + grow, s->half * fabs(s->a.y) + grow, &we) != COVER_SOME) continue;
        if (!touch_spine(&g, low, &we)) return false;
    }
    g.prefix = (uint64_t)(4 * k) << 58;
    peaks_in_face(&g, &w, c, axis, half, k, down);
    if (g.n == 0 && c.z < f->high) {
        s->c = c, s->a = axis[k], s->half = half[k], s->R = A->radius, s->size = s->half + s->R;
        lift(&g, &w);
    }
    finish(&g, &R, B, X_WB, out);
    return true;
}

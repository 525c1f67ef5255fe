// Contact of a core segment with an edge of a height field: one of its ends, or the line between them.
#include "geom/geom__terrain.h"

enum { MAX_SECANTS = 40 };

static inline uint64_t index_of(const usi_terrain_contacts *g, const usi_grid_edge *e) {
    return (uint64_t)e->j * (uint64_t)(g->f->n_x - 1) + (uint64_t)e->i;
}

// Vector from the edge's first end, which is the cell's first corner, to its second.
static inline us_vec3 vector_of(const us_height_field *f, const usi_grid_edge *e) {
    const double *h = f->height + (size_t)e->j * (size_t)f->n_x + e->i, *above = h + f->n_x;
    if (e->which == 0) return us_vec3_make(f->dx, f->dy, above[1] - h[0]);
    return e->which == 1 ? us_vec3_make(f->dx, 0, h[1] - h[0]) : us_vec3_make(0, f->dy, above[0] - h[0]);
}

// Foot of an end on face 1 or 2, in cells: across the edge, positive on face 2's side, and along it, on the
// edge from 0 to 1.
static inline double side_of(const usi_grid_edge *e, bool is_1, int end) {
    usi_lane_face f = is_1 ? e->f1 : e->f2;
    double u = f.r->U[end][f.lane], v = f.r->V[end][f.lane];
    return e->which == 0 ? v - u : (e->which == 1 ? v : u) - is_1;
}
static inline double pos_of(const usi_grid_edge *e, bool is_1, int end) {
    usi_lane_face f = is_1 ? e->f1 : e->f2;
    return e->which == 2 ? f.r->V[end][f.lane] : f.r->U[end][f.lane];
}

// Normal between those of two faces; it is perpendicular to their common edge as they are.
static inline us_vec3 between(double x, us_vec3 n1, us_vec3 n2) {
    us_vec3 n = usi_vec3_add_scaled(n1, x, us_vec3_sub(n2, n1));
    return us_vec3_scale(1 / us_vec3_norm(n), n);
}

// Contact of an end on an edge: the normal, and the shape's point.
typedef struct edge_point {
    us_vec3 n, p;
} edge_point;

// The normal between n1 and n2 along which the lowest point of the end's disc is over the edge, which leaves
// `first` along u. p1, p2: the lowest points along n1 and n2. By secants with the Illinois rule: an end of
// the bracket that stays twice running counts half. False when the two faces do not bracket it.
static inline bool disc_on_edge(const usi_core_segment *s, int end, us_vec3 first, us_vec3 u, us_vec3 n1,
                                us_vec3 n2, us_vec3 p1, us_vec3 p2, edge_point *out) {
    double x1 = 0, x2 = 1, f1 = us_vec3_dot(us_vec3_cross(u, n1), us_vec3_sub(p1, first));
    double f2 = us_vec3_dot(us_vec3_cross(u, n2), us_vec3_sub(p2, first));
    // Oriented so that it falls from face 1 to face 2.
    double sign = f1 < 0 || f2 > 0 ? -1 : 1;
    f1 *= sign;
    f2 *= sign;
    if (!(f1 >= 0 && f2 <= 0)) return false;
    out->n = n1;
    out->p = p1;
    int kept = 0;
    for (int step = 0; step < MAX_SECANTS && f1 - f2 > 0; step++) {
        double x = x1 + (x2 - x1) * (f1 / (f1 - f2));
        us_vec3 n = between(x, n1, n2), p = usi_lowest_of_end(s, end, n, us_vec3_dot(n, s->a));
        out->n = n;
        out->p = p;
        double f = sign * us_vec3_dot(us_vec3_cross(u, n), us_vec3_sub(p, first));
        if (fabs(f) < 1e-11 * s->size) break;
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
    return true;
}

// The same for an end without a disc: the normal is from the edge to the segment's end c.
static inline edge_point point_on_edge(const usi_core_segment *s, us_vec3 c, us_vec3 first, us_vec3 u,
                                       us_vec3 n1) {
    us_vec3 d = us_vec3_sub(c, first);
    d = usi_vec3_add_scaled(d, -us_vec3_dot(d, u), u);
    us_vec3 n = usi_vec3_unit(d, n1);
    if (us_vec3_dot(n, n1) < 0) n = us_vec3_scale(-1, n);
    return (edge_point){n, usi_vec3_add_scaled(c, -s->R, n)};
}

void usi_terrain_end_on_edge(usi_terrain_contacts *g, const usi_grid_edge *e, int end) {
    const usi_core_segment *s = &g->s;
    // Feet: beyond the edge on both faces, and beyond its ends at most as far as they are from each other.
    double side_1 = side_of(e, true, end), side_2 = side_of(e, false, end);
    double pos_1 = pos_of(e, true, end), pos_2 = pos_of(e, false, end);
    double low = pos_1 < pos_2 ? pos_1 : pos_2, high = pos_1 < pos_2 ? pos_2 : pos_1;
    double slack = side_1 - side_2 + high - low;
    if (!(side_1 > 0 && side_2 < 0 && high + slack >= 0 && low - slack <= 1)) return;

    // Normal.
    us_vec3 first = usi_field_point(g->f, e->i, e->j), edge = vector_of(g->f, e);
    double length = us_vec3_norm(edge), h = end ? s->half : -s->half;
    us_vec3 u = us_vec3_scale(1 / length, edge), n1 = usi_lane_normal(e->f1), n2 = usi_lane_normal(e->f2);
    edge_point at;
    if (s->r > 0) {
        us_vec3 p1 = usi_lane_point(s, e->f1, h), p2 = usi_lane_point(s, e->f2, h);
        if (!disc_on_edge(s, end, first, u, n1, n2, p1, p2, &at)) return;
    } else {
        at = point_on_edge(s, usi_vec3_add_scaled(s->c, h, s->a), first, u, n1);
    }

    // Point on the edge, within the margin.
    us_vec3 d = us_vec3_sub(at.p, first);
    double along = us_vec3_dot(u, d), gap = us_vec3_dot(at.n, d);
    if (along < 0 || along > length || !(gap <= g->margin)) return;
    usi_terrain_add(g, at.n, at.p, gap, index_of(g, e),
                    USI_TERRAIN_ID_EDGE_END + 2 * e->which + (uint32_t)end);
}

// The line between the ends where it crosses the edge; the normal is perpendicular to both.
static void line_across_edge(usi_terrain_contacts *g, const usi_grid_edge *e) {
    const usi_core_segment *s = &g->s;
    us_vec3 first = usi_field_point(g->f, e->i, e->j), edge = vector_of(g->f, e);
    double a1 = usi_lane_along(e->f1), a2 = usi_lane_along(e->f2);
    us_vec3 n = between(a1 / (a1 - a2), usi_lane_normal(e->f1), usi_lane_normal(e->f2));
    us_vec3 low = usi_vec3_add_scaled(s->c, -(s->r + s->R), n), side = us_vec3_cross(edge, n);
    double middle = us_vec3_dot(side, us_vec3_sub(low, first)), to_end = s->half * us_vec3_dot(side, s->a);
    if (!(fabs(middle) < fabs(to_end))) return;
    us_vec3 p = usi_vec3_add_scaled(low, -s->half * middle / to_end, s->a), d = us_vec3_sub(p, first);
    double along = us_vec3_dot(edge, d), gap = us_vec3_dot(n, d);
    if (along < 0 || along > us_vec3_dot(edge, edge) || !(gap <= g->margin)) return;
    usi_terrain_add(g, n, p, gap, index_of(g, e), USI_TERRAIN_ID_LINE + e->which);
}

// Where no normal between those of the two faces is perpendicular to the line, it is that of the face on
// which the line lies flatter.
void usi_terrain_line_on_edge(usi_terrain_contacts *g, const usi_grid_edge *e) {
    const usi_core_segment *s = &g->s;
    double a1 = usi_lane_along(e->f1), a2 = usi_lane_along(e->f2);
    if (a1 * a2 < 0) {
        line_across_edge(g, e);
        return;
    }
    const bool is_1 = fabs(a1) <= fabs(a2);
    const usi_lane_face f = is_1 ? e->f1 : e->f2;
    double s0 = side_of(e, is_1, 0), s1 = side_of(e, is_1, 1), pos0 = pos_of(e, is_1, 0),
           pos1 = pos_of(e, is_1, 1);
    if (!(s0 * s1 < 0)) return;
    // `at`: where the line crosses the edge, from -1 at end 0 to 1 at end 1.
    double at = (s0 + s1) / (s0 - s1), pos = 0.5 * (pos0 + pos1 + at * (pos1 - pos0)), h = s->half * at,
           gap = f.r->height[f.lane] + h * usi_lane_along(f);
    if (pos < 0 || pos > 1 || !(gap <= g->margin)) return;
    usi_terrain_add(g, usi_lane_normal(f), usi_lane_point(s, f, h), gap, index_of(g, e),
                    USI_TERRAIN_ID_LINE + e->which);
}

// Contact points of spheres, capsules and cylinders on a height field: the closed form for wheels and feet on
// terrain.
//
// Such a shape is a core segment with a disc at each end (of radius 0 but for cylinders), swept by a sphere.
// Its lowest points along a normal n are the lowest points of the two ends, and the line between them:
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
//                        lowest point is over the edge. So it is on a ridge, and for an end that is
//                        below the bottom of a valley
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
// Left to the general method (false is returned): shapes over the field's rim, cylinders on end, faces
// steeper than 45 degrees, windows of more than USI_TERRAIN_MAX_ROW cells across.
#include "geom/geom__terrain.h"

enum { MAX_POINTS = 4 };  // after the reduction

// MAX_POINTS of more: the deepest, then always the one farthest from those selected.
static void reduce(usi_terrain_contacts *g) {
    for (int32_t k = 0; k < MAX_POINTS; k++) {
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
    g->n = MAX_POINTS;
}

void usi_terrain_to_manifold(usi_terrain_contacts *g, const us_mat3 *R_WB, const us_geom *B,
                             const us_pose *X_WB, us_manifold *out) {
    if (g->n > MAX_POINTS) reduce(g);
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

void usi_terrain_add_deep(usi_terrain_contacts *g, const usi_cell_window *w) {
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
    us_vec3 p = usi_lowest_of_end(&g->s, along < 0, n, along);
    double gap = us_vec3_dot(n, us_vec3_sub(p, a));
    if (gap <= g->margin)
        usi_terrain_add(g, n, p, gap, (uint64_t)(((int64_t)j * (f->n_x - 1) + i) * 2 + upper),
                        USI_TERRAIN_ID_DEEP);
}

bool usi_terrain_collide_segment(usi_terrain_contacts *g, double bottom, usi_cell_window *w) {
    // A smaller window has a smaller range of slopes: while it shrinks by half, it is shrunk again.
    for (int32_t n = 0, last = INT32_MAX; last > 6; last = n) {
        if (!usi_terrain_shrink(g, bottom, w)) return true;
        n = (w->i1 - w->i0 + 1) * (w->j1 - w->j0 + 1);
        if (2 * n > last) break;
    }
    return w->i1 - w->i0 < USI_TERRAIN_MAX_ROW && usi_terrain_collide_cells(g, bottom, w);
}

static inline double positive(double x) { return x > 0 ? x : 0; }

bool usi_contact_terrain(const us_geom *A, us_vec3 centre, us_vec3 axis, const us_geom *B,
                         const us_pose *X_WB, double margin, us_manifold *out) {
    const us_height_field *f = B->field;
    usi_terrain_contacts g;
    usi_core_segment *s = &g.s;
    us_mat3 R;
    const bool is_rotated = X_WB->q.x != 0 || X_WB->q.y != 0 || X_WB->q.z != 0;
    s->c = us_vec3_sub(centre, X_WB->p);
    s->a = axis;
    if (is_rotated) {
        R = us_quat_matrix(X_WB->q);
        s->c = usi_mat3_mul_transposed(&R, s->c);
        s->a = usi_mat3_mul_transposed(&R, s->a);
    }

    // Core segment.
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

    // Box, the margin included.
    double ax = s->half * fabs(s->a.x) + s->R + g.margin, ay = s->half * fabs(s->a.y) + s->R + g.margin;
    double az = s->half * fabs(s->a.z) + s->R + g.margin;
    if (s->r > 0) {
        ax += s->r * sqrt(positive(1 - s->a.x * s->a.x));
        ay += s->r * sqrt(positive(1 - s->a.y * s->a.y));
        az += s->r * sqrt(positive(1 - s->a.z * s->a.z));
    }
    if (s->c.z - az > f->high) return true;

    usi_cell_window w;
    usi_cell_cover under = usi_terrain_cells_under(f, s->c, ax, ay, &w);
    if (under != USI_COVER_SOME) return under == USI_COVER_NONE;
    if (!usi_terrain_collide_segment(&g, s->c.z - az, &w)) return false;
    if (g.n == 0) usi_terrain_add_deep(&g, &w);
    usi_terrain_to_manifold(&g, is_rotated ? &R : NULL, B, X_WB, out);
    return true;
}

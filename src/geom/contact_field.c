// Contact points of a convex shape on a height field by the general method, triangle by triangle of the cells
// under the shape's box.
#include "geom/geom__triangles.h"

static bool field_corner(const us_height_field *f, int32_t i, int32_t j, us_vec3 *out) {
    if (i < 0 || j < 0 || i >= f->n_x || j >= f->n_y) return false;
    *out = usi_field_point(f, i, j);
    return true;
}

static int64_t field_index(const us_height_field *f, int32_t i, int32_t j, int k) {
    return ((int64_t)j * (f->n_x - 1) + i) * 2 + k;
}

// Triangle k of cell (i, j) with its neighbours.
static void field_facet(const us_height_field *f, int32_t i, int32_t j, int k, usi_facet *t) {
    // Corners as steps from (i, j); neighbours over the sides: their far corner, their cell and which half.
    static const int corner[2][3][2] = {{{0, 0}, {1, 0}, {1, 1}}, {{0, 0}, {1, 1}, {0, 1}}};
    static const int far_corner[2][3][2] = {{{0, -1}, {2, 1}, {0, 1}}, {{1, 0}, {1, 2}, {-1, 0}}};
    static const int cell[2][3][2] = {{{0, -1}, {1, 0}, {0, 0}}, {{0, 0}, {0, 1}, {-1, 0}}};
    t->index = (uint32_t)field_index(f, i, j, k);
    for (int s = 0; s < 3; s++) {
        int32_t a = i + corner[k][s][0], b = j + corner[k][s][1];
        t->v[s] = usi_field_point(f, a, b);
        t->vertex[s] = (uint32_t)b * (uint32_t)f->n_x + (uint32_t)a;
    }
    us_vec3 n = us_vec3_cross(us_vec3_sub(t->v[1], t->v[0]), us_vec3_sub(t->v[2], t->v[0]));
    t->normal = usi_vec3_unit(n, us_vec3_make(0, 0, 1));
    t->offset = us_vec3_dot(t->normal, t->v[0]);
    for (int s = 0; s < 3; s++) {
        int32_t a = i + cell[k][s][0], b = j + cell[k][s][1];
        if (a < 0 || b < 0 || a >= f->n_x - 1 || b >= f->n_y - 1) {
            t->neighbour[s] = -1;
            t->across[s] = t->v[s];
            t->across[s].z -= f->dx + f->dy;
        } else {
            t->neighbour[s] = field_index(f, a, b, 1 - k);
            t->across[s] = usi_field_point(f, i + far_corner[k][s][0], j + far_corner[k][s][1]);
        }
    }
}

// Whether the shape is apart from everything in the column between two corners and below z = top. One
// direction is tried: from the column's nearest point to the shape's middle.
static bool is_column_apart(const usi_surface_query *t, us_vec3 middle, double x0, double y0, double x1,
                            double y1, double top) {
    us_vec3 q = us_vec3_make(fmin(fmax(middle.x, x0), x1), fmin(fmax(middle.y, y0), y1), fmin(middle.z, top)),
            v = us_vec3_sub(middle, q);
    double length = us_vec3_norm(v);
    if (!(length > 1e-6 * t->size)) return false;
    v = us_vec3_scale(1 / length, v);
    return usi_lowest_height(t, v) - us_vec3_dot(v, q) > t->margin;
}

// The same for one triangle: from its nearest point to the shape's middle.
static bool is_triangle_apart(const usi_surface_query *t, us_vec3 middle, const us_vec3 v[3], us_vec3 n) {
    double height = us_vec3_dot(n, us_vec3_sub(middle, v[0])), best = INFINITY;
    if (!(height > 0)) return false;
    us_vec3 foot = usi_vec3_add_scaled(middle, -height, n), q = foot;
    for (int k = 0; k < 3; k++) {
        us_vec3 a = v[k], e = us_vec3_sub(v[k < 2 ? k + 1 : 0], a), d = us_vec3_sub(foot, a);
        if (us_vec3_dot(us_vec3_cross(e, n), d) <= 0) continue;
        double s = us_vec3_dot(e, d) / us_vec3_dot(e, e);
        us_vec3 p = usi_vec3_add_scaled(a, s < 0 ? 0 : (s > 1 ? 1 : s), e);
        d = us_vec3_sub(foot, p);
        double far = us_vec3_dot(d, d);
        if (far < best) {
            best = far;
            q = p;
        }
    }
    if (best == INFINITY) return false;  // the plane has been tried
    us_vec3 w = us_vec3_sub(middle, q);
    w = us_vec3_scale(1 / us_vec3_norm(w), w);
    return usi_lowest_height(t, w) - us_vec3_dot(w, q) > t->margin;
}

// Whether no normal leaves all six edges of a corner behind: it is a saddle, higher than its neighbours along
// one line of the grid and lower along another. `rim` has the neighbours in turn, so that opposite ones are
// three apart.
static bool is_saddle(const us_height_field *f, us_vec3 v, const us_vec3 rim[6]) {
    double min_gap = 1e-9 * (f->dx + f->dy);
    bool is_above = false, is_below = false;
    for (int k = 0; k < 3; k++) {
        double rise = rim[k].z + rim[k + 3].z - 2 * v.z;
        is_above |= rise < -min_gap;
        is_below |= rise > min_gap;
    }
    return is_above && is_below;
}

static int32_t clamp_cell(double x, int32_t n) { return x < 0 ? 0 : (x > n - 2 ? n - 2 : (int32_t)x); }

// The corners of a triangle as peaks in the shape.
static inline void collide_field_peaks(usi_surface_query *t, const us_height_field *f,
                                       const usi_facet *face) {
    static const int step[6][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 0}, {-1, -1}, {0, -1}};
    for (int s = 0; s < 3; s++) {
        us_vec3 rim[6], outward = face->normal;
        double distance;
        if (!usi_is_peak_near(t, face->v[s], face->vertex[s], &distance, &outward)) continue;
        int32_t m = 0, a = (int32_t)(face->vertex[s] % (uint32_t)f->n_x),
                b = (int32_t)(face->vertex[s] / (uint32_t)f->n_x);
        for (int r = 0; r < 6; r++)
            m += field_corner(f, a + step[r][0], b + step[r][1], &rim[m]);
        if (m == 6 && is_saddle(f, face->v[s], rim)) continue;
        usi_collide_peak(t, face->v[s], face->vertex[s], face->normal, distance, outward, rim, m);
    }
}

// Contact far below the surface, where no foot is in its own triangle: with the triangle over the shape's
// middle.
static inline void add_deep(usi_surface_query *t, const us_height_field *f) {
    double x = t->X_FA.p.x / f->dx + 0.5 * (f->n_x - 1), y = t->X_FA.p.y / f->dy + 0.5 * (f->n_y - 1);
    if (!(x >= 0 && y >= 0 && x <= f->n_x - 1 && y <= f->n_y - 1)) return;
    int32_t i = clamp_cell(x, f->n_x), j = clamp_cell(y, f->n_y);
    usi_facet face;
    field_facet(f, i, j, y - j > x - i, &face);
    us_vec3 p = usi_vec3_add_scaled(usi_lowest_point(t, face.normal), -t->A->radius, face.normal);
    double gap = us_vec3_dot(face.normal, p) - face.offset;
    if (us_vec3_dot(face.normal, t->X_FA.p) < face.offset) {
        usi_candidates_add(t->c, t->margin, face.normal, p, usi_vec3_add_scaled(p, -gap, face.normal),
                           (uint64_t)face.index << 32 | USI_SURFACE_ID_DEEP);
    }
}

// Contact with the two triangles of cell (i, j), whose first corner is at x, y.
static inline void collide_cell(usi_surface_query *t, const us_height_field *f, us_vec3 middle, int32_t i,
                                int32_t j, double x, double y) {
    const double *row = f->height + (size_t)j * (size_t)f->n_x, *next = row + f->n_x;
    const double h00 = row[i], h10 = row[i + 1], h01 = next[i], h11 = next[i + 1];
    const double top = fmax(fmax(h00, h10), fmax(h01, h11));
    if (top < t->box.min.z || is_column_apart(t, middle, x, y, x + f->dx, y + f->dy, top)) return;
    for (int k = 0; k < 2; k++) {
        // Plane: most triangles are out of reach.
        us_vec3 n = k == 0 ? us_vec3_make((h00 - h10) * f->dy, (h10 - h11) * f->dx, f->dx * f->dy)
                           : us_vec3_make((h01 - h11) * f->dy, (h00 - h01) * f->dx, f->dx * f->dy);
        n = us_vec3_scale(1 / us_vec3_norm(n), n);
        us_vec3 corner = us_vec3_make(x, y, h00);
        if (usi_lowest_height(t, n) - us_vec3_dot(n, corner) > t->margin) continue;
        us_vec3 v[3] = {corner, us_vec3_make(x + f->dx, y + (k ? f->dy : 0), k ? h11 : h10),
                        us_vec3_make(x + (k ? 0 : f->dx), y + f->dy, k ? h01 : h11)};
        if (is_triangle_apart(t, middle, v, n)) continue;

        // Face, its ridges, its corners as peaks.
        usi_facet face;
        field_facet(f, i, j, k, &face);
        usi_collide_facet(t, &face);
        collide_field_peaks(t, f, &face);
    }
}

void usi_contact_field(const us_geom *A, us_pose X_WA, const us_height_field *f, double radius, us_pose X_WB,
                       double margin, usi_candidates *c) {
    usi_surface_query t;
    usi_surface_begin(&t, A, X_WA, X_WB, margin + radius, c);
    // Cells under the box.
    double half_x = 0.5 * (f->n_x - 1), half_y = 0.5 * (f->n_y - 1);
    double x0 = t.box.min.x / f->dx + half_x, x1 = t.box.max.x / f->dx + half_x;
    double y0 = t.box.min.y / f->dy + half_y, y1 = t.box.max.y / f->dy + half_y;
    if (!(x1 >= 0 && y1 >= 0 && x0 <= f->n_x - 1 && y0 <= f->n_y - 1 && t.box.min.z <= f->high)) return;
    int32_t i0 = clamp_cell(x0, f->n_x), i1 = clamp_cell(x1, f->n_x);
    int32_t j0 = clamp_cell(y0, f->n_y), j1 = clamp_cell(y1, f->n_y);

    us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(t.box.min, t.box.max));
    for (int32_t j = j0; j <= j1; j++) {
        for (int32_t i = i0; i <= i1; i++)
            collide_cell(&t, f, middle, i, j, (i - half_x) * f->dx, (j - half_y) * f->dy);
    }
    if (c->n == t.first) add_deep(&t, f);
    usi_surface_end(&t, X_WB, radius);
}

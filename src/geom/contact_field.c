// Contact points of a convex shape on a height field by the general method, triangle by triangle of the cells
// under the shape's box.
#include "geom/geom__triangles.h"

enum { PLAIN_CELLS = 4096 };  // windows up to this are visited cell by cell

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
    t->is_peak[0] = t->is_peak[1] = t->is_peak[2] = false;
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
        us_vec3 rim[6];
        usi_peak peak;
        if (!usi_find_peak(t, face->v[s], face->vertex[s], face->normal, &peak)) continue;
        int32_t m = 0, a = (int32_t)(face->vertex[s] % (uint32_t)f->n_x),
                b = (int32_t)(face->vertex[s] / (uint32_t)f->n_x);
        bool is_below = true, is_any_below = false;
        for (int r = 0; r < 6; r++)
            m += field_corner(f, a + step[r][0], b + step[r][1], &rim[m]);
        for (int r = 0; r < m && is_below; r++)
            is_below = usi_is_rim_below(&peak, rim[r], &is_any_below);
        if (is_below && is_any_below && !(m == 6 && is_saddle(f, face->v[s], rim)))
            usi_collide_peak(t, &peak);
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
        if (usi_is_triangle_apart(t, v, n)) continue;

        // Face, its ridges, its corners as peaks.
        usi_facet face;
        field_facet(f, i, j, k, &face);
        usi_collide_facet(t, &face);
        collide_field_peaks(t, f, &face);
    }
}

// Cells i0 .. i1, j0 .. j1.
typedef struct cell_rows {
    int32_t i0, i1, j0, j1;
} cell_rows;

static void collide_cells(usi_surface_query *t, const us_height_field *f, cell_rows w) {
    const us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(t->box.min, t->box.max));
    const double half_x = 0.5 * (f->n_x - 1), half_y = 0.5 * (f->n_y - 1);
    for (int32_t j = w.j0; j <= w.j1; j++) {
        for (int32_t i = w.i0; i <= w.i1; i++)
            collide_cell(t, f, middle, i, j, (i - half_x) * f->dx, (j - half_y) * f->dy);
    }
}

// The cells under the corners of the flat side of the shape that looks at the field.
static void collide_field_corners(usi_surface_query *t, const us_height_field *f) {
    if (!t->has_feature) return;
    const usi_feature side = t->feature;
    for (int32_t k = 0; k < side.n; k++) {
        const int32_t i = clamp_cell(side.p[k].x / f->dx + 0.5 * (f->n_x - 1), f->n_x),
                      j = clamp_cell(side.p[k].y / f->dy + 0.5 * (f->n_y - 1), f->n_y);
        collide_cells(t, f, (cell_rows){i, i, j, j});
    }
}

// The box around the part of a tile that is in the window.
static us_aabb tile_box(const us_height_field *f, cell_rows w, const double extremes[2]) {
    const double half_x = 0.5 * (f->n_x - 1), half_y = 0.5 * (f->n_y - 1);
    return (us_aabb){us_vec3_make((w.i0 - half_x) * f->dx, (w.j0 - half_y) * f->dy, extremes[0]),
                     us_vec3_make((w.i1 + 1 - half_x) * f->dx, (w.j1 + 1 - half_y) * f->dy, extremes[1])};
}

// A large body on a fine raster: tile by tile, without those that add nothing to the support.
static void collide_tiles(usi_surface_query *t, const us_height_field *f, cell_rows w) {
    const double reach = t->margin + 1e-9 * t->size;
    for (int32_t v = w.j0 / USI_FIELD_TILE; v <= w.j1 / USI_FIELD_TILE; v++) {
        for (int32_t u = w.i0 / USI_FIELD_TILE; u <= w.i1 / USI_FIELD_TILE; u++) {
            const double *extremes = f->tile[(size_t)v * (size_t)f->n_tile_x + (size_t)u];
            if (extremes[1] < t->box.min.z) continue;
            const int32_t i = u * USI_FIELD_TILE, j = v * USI_FIELD_TILE, end_i = i + USI_FIELD_TILE - 1,
                          end_j = j + USI_FIELD_TILE - 1;
            const cell_rows cells = {i > w.i0 ? i : w.i0, end_i < w.i1 ? end_i : w.i1, j > w.j0 ? j : w.j0,
                                     end_j < w.j1 ? end_j : w.j1};
            const us_aabb box = tile_box(f, cells, extremes);
            const double min_gap = usi_surface_min_gap(t, &box);
            if (min_gap > reach) continue;
            // Where heights differ by less than a cell is wide, all faces look up; else any way but down.
            const bool is_gentle = extremes[1] - extremes[0] < fmin(f->dx, f->dy);
            if (t->is_pruned && !usi_surface_is_open(t, is_gentle ? 1u << 4 : 0x1f, &box, min_gap)) continue;
            collide_cells(t, f, cells);
            const bool was_pruned = t->is_pruned;
            usi_surface_count(t);
            if (t->is_pruned && !was_pruned) collide_field_corners(t, f);
        }
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

    const cell_rows w = {i0, i1, j0, j1};
    if ((int64_t)(i1 - i0 + 1) * (j1 - j0 + 1) <= PLAIN_CELLS)
        collide_cells(&t, f, w);
    else
        collide_tiles(&t, f, w);
    if (c->n == t.first) add_deep(&t, f);
    usi_surface_end(&t, X_WB, radius);
}

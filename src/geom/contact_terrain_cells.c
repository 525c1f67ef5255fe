// Contact of a core segment with the triangles of a height field, two cells of a row at a time.
//
// Each triangle gives the lowest points of the two ends along its normal and their feet on its plane. An end
// whose foot is in the triangle touches the face; feet beyond a common edge of two triangles make that edge a
// candidate; so does a line whose ends are on different sides of it.
#include "geom/geom__terrain.h"

// Bits of usi_cell_pair: where those of end 1 begin, and those of triangles.
enum { END_1 = 4, LOWER_TRIANGLES = 5, FIRST_CELL = 3, SECOND_CELL = 12 };

// Cells by which a foot may be outside of a triangle and count as inside: what rounding makes of a foot on
// the edge between two faces of one plane.
#define SEAM_TOLERANCE 1e-9

// Which lanes are set, as bits.
static inline int bits_of(usi_v4i a) {
#ifdef __AVX__
    return _mm256_movemask_pd((__m256d)a);
#else
    return (a[0] != 0) | (a[1] != 0) << 1 | (a[2] != 0) << 2 | (a[3] != 0) << 3;
#endif
}
static inline int bits_of_ends(usi_v4i end_0, usi_v4i end_1) {
    return bits_of(end_0) | bits_of(end_1) << END_1;
}

// Sides of the triangles beyond which the feet are. `touches`: ends within the margin.
static inline void classify_feet(int touches, usi_cell_pair *r) {
    const usi_v4 u0 = r->U[0], u1 = r->U[1], v0 = r->V[0], v1 = r->V[1];
    usi_v4 first0 = __builtin_shufflevector(v0, u0, 0, 5, 2, 7);
    usi_v4 second0 = __builtin_shufflevector(u0, v0, 0, 5, 2, 7);
    usi_v4 first1 = __builtin_shufflevector(v1, u1, 0, 5, 2, 7);
    usi_v4 second1 = __builtin_shufflevector(u1, v1, 0, 5, 2, 7);
    r->under = bits_of_ends(first0 < -SEAM_TOLERANCE, first1 < -SEAM_TOLERANCE);
    r->over = bits_of_ends(second0 > 1 + SEAM_TOLERANCE, second1 > 1 + SEAM_TOLERANCE);
    r->across = bits_of_ends(first0 - second0 > SEAM_TOLERANCE, first1 - second1 > SEAM_TOLERANCE);
    r->inside = touches & (r->near | r->near << END_1) & ~(r->under | r->over | r->across);
}

// The triangles of two cells; only `near` where none is within the margin. left, right: the heights of the
// cells' corners at the left and at the right, lower and upper in turn; dx, dy: from the corner of the first
// cell to the shape's centre. A triangle's normal is (-sx, -sy, 1) / L, of slopes sx and sy. `cells`:
// FIRST_CELL, SECOND_CELL or both.
static inline void evaluate_pair(const usi_terrain_contacts *g, const usi_cell_window *w, usi_v4 left,
                                 usi_v4 right, double dx, double dy, int cells, usi_cell_pair *out) {
    const usi_core_segment *s = &g->s;
    // Slopes, and the shape's centre from each cell's first corner.
    usi_v4 sx = (right - left) * w->per_x;
    usi_v4 sy = (__builtin_shufflevector(right, left, 1, 5, 3, 7) -
                 __builtin_shufflevector(right, left, 0, 4, 2, 6)) *
                w->per_y;
    usi_v4 x = {dx, dx, dx - g->f->dx, dx - g->f->dx}, y = usi_v4_all(dy),
           z = s->c.z - __builtin_shufflevector(left, left, 0, 0, 2, 2);
    // Lowest points, by m = (-sx, -sy, 1), which is n L: the second root need not wait for the first.
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

    // Ends within the margin.
    usi_v4 along = m_a * nz, height = m_d * nz - s->R;
    usi_v4 lift = s->half * along, margin = usi_v4_all(g->margin);
    int touches = bits_of_ends(height - lift <= margin, height + lift <= margin);
    out->near = (touches | touches >> END_1) & cells;
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

    // Feet of the ends.
    usi_v4 u = (x + qx - height * nx) * w->per_x, v = (y + qy - height * ny) * w->per_y;
    usi_v4 to_u = (s->half * s->a.x - lift * nx) * w->per_x, to_v = (s->half * s->a.y - lift * ny) * w->per_y;
    out->U[0] = u - to_u;
    out->U[1] = u + to_u;
    out->V[0] = v - to_v;
    out->V[1] = v + to_v;
    out->steep = 0;
    if (!w->is_gentle)
        out->steep = out->near & bits_of((nz < 0.7) | (usi_v4_abs(along) > (s->r > 0 ? 0.9 : INFINITY)));
    classify_feet(touches, out);
}

// Whether a position is beside the strip by more than `more`.
static inline bool is_off_strip(const usi_cell_window *w, double x, double y, double more) {
    return fabs(w->strip_x * x + w->strip_y * y - w->strip_at) > w->strip_wide + more;
}

// Steep faces, and cylinders on end, are for the general method: false, unless the cell is beside the strip
// or below the shape, and so out of reach.
static bool drop_steep_cells(const usi_terrain_contacts *g, const usi_cell_window *w, usi_cell_pair *r,
                             int32_t i, int32_t j, double bottom) {
    const us_height_field *f = g->f;
    for (int k = 0; k < 2; k++) {
        const int cell = k ? SECOND_CELL : FIRST_CELL;
        if (!(r->steep & cell)) continue;
        const double *h = f->height + (size_t)j * (size_t)f->n_x + i + k, *above = h + f->n_x;
        const bool is_below = h[0] < bottom && h[1] < bottom && above[0] < bottom && above[1] < bottom;
        if (!is_below &&
            !is_off_strip(w, (i + k + 0.5 - w->half_x) * f->dx, (j + 0.5 - w->half_y) * f->dy, 0))
            return false;
        r->near &= ~cell;
        r->inside &= ~(cell | cell << END_1);
    }
    return true;
}

// Two cells of which none is near.
static const usi_cell_pair nothing;

// Ends on the faces of two cells from (i, j) on.
static inline void collide_faces(usi_terrain_contacts *g, int32_t i, int32_t j, const usi_cell_pair *r) {
    const usi_core_segment *s = &g->s;
    for (int on = r->inside & g->counted_ends; on; on &= on - 1) {
        const int bit = __builtin_ctz((unsigned)on), lane = bit % END_1, end = bit / END_1;
        const uint64_t cell = (uint64_t)j * (uint64_t)(g->f->n_x - 1) + (uint64_t)i;
        const double h = end ? s->half : -s->half;
        const usi_lane_face t = {r, lane};
        usi_terrain_add(g, usi_lane_normal(t), usi_lane_point(s, t, h),
                        r->height[lane] + h * usi_lane_along(t), 2 * cell + (uint64_t)lane,
                        USI_TERRAIN_ID_END + (uint32_t)end);
    }
}

// Whether the slope across an edge falls: it is convex.
static inline bool is_convex(const usi_terrain_contacts *g, const usi_cell_window *w,
                             const usi_grid_edge *e) {
    const bool is_x = e->which == 2;
    const usi_v4 *slope_1 = is_x ? &e->f1.r->sx : &e->f1.r->sy, *slope_2 = is_x ? &e->f2.r->sx : &e->f2.r->sy;
    const double per = is_x ? w->per_x : w->per_y;
    return (*slope_1)[e->f1.lane] - (*slope_2)[e->f2.lane] > g->min_convexity * per;
}

// The edges of two cells from (i, j) on, to each other and to the cells before them: `left` and `below` are
// the pairs of cells there, or nothing.
static inline void collide_edges(usi_terrain_contacts *g, const usi_cell_window *w, int32_t i, int32_t j,
                                 const usi_cell_pair *r, const usi_cell_pair *left,
                                 const usi_cell_pair *below) {
    // Edges have the bit of the triangle of this cell, or the lower one: those of index 0 in the first eight
    // bits, then those of index 1 and 2. The edge of index 2 is between an upper triangle and the lower one
    // to the left: of the same two cells, or of those before.
    const int near = (r->near & r->near >> 1 & LOWER_TRIANGLES) |
                     (r->near & below->near >> 1 & LOWER_TRIANGLES) << 8 |
                     (r->near & left->near >> 1 & 2) << 16 | (r->near & r->near << 3 & 8) << 16;
    const int beyond_1 = r->across | below->over >> 1 << 8 | (left->over >> 1 & (2 | 2 << END_1)) << 16 |
                         (r->over << 3 & (8 | 8 << END_1)) << 16;
    const int beyond_2 = r->across >> 1 | r->under << 8 | r->under << 16;

    // Candidates: an end's foot on each face is beyond the edge, or the two ends are on different sides.
    const int ends = beyond_1 & beyond_2 & (near | near << END_1) & g->counted_ends * 0x10101;
    const int crossed = near & ((beyond_1 ^ beyond_1 >> END_1) | (beyond_2 ^ beyond_2 >> END_1));
    const int candidates = (ends | ends >> END_1 | crossed) & (FIRST_CELL | SECOND_CELL) * 0x10101;
    for (int rest = candidates; rest; rest &= rest - 1) {
        const int bit = __builtin_ctz((unsigned)rest), which = bit / 8, lane = bit % 8;
        usi_grid_edge e = {{r, lane}, {r, lane}, i + lane / 2, j, (uint32_t)which};
        if (which == 0)
            e.f2.lane = lane + 1;
        else if (which == 1)
            e.f1 = (usi_lane_face){below, lane + 1};
        else
            e.f1 = lane == 3 ? (usi_lane_face){r, 0} : (usi_lane_face){left, 2};
        if ((crossed >> bit & 1) && is_convex(g, w, &e)) usi_terrain_line_on_edge(g, &e);
        if (ends >> bit & 1) usi_terrain_end_on_edge(g, &e, 0);
        if (ends >> bit & 1 << END_1) usi_terrain_end_on_edge(g, &e, 1);
    }
}

// Whether the corner (i, j) is higher than half way between any two opposite neighbours.
static inline bool is_local_peak(const us_height_field *f, int32_t i, int32_t j) {
    const double *h = f->height + (size_t)j * (size_t)f->n_x + i, *above = h + f->n_x, *below = h - f->n_x;
    const double twice = 2 * h[0];
    return !(h[-1] + h[1] >= twice || below[0] + above[0] >= twice || below[-1] + above[1] >= twice);
}

bool usi_terrain_collide_cells(usi_terrain_contacts *g, double bottom, const usi_cell_window *w) {
    const us_height_field *f = g->f;
    const usi_core_segment *s = &g->s;
    // Two rows of pairs of cells.
    usi_cell_pair rows[2][USI_TERRAIN_MAX_ROW / 2], *row = rows[0], *row_below = rows[1];
    g->counted_ends = g->is_edge || s->n_end == 1 ? FIRST_CELL | SECOND_CELL : 255;
    g->min_convexity = s->n_end == 2 ? 1e-9 * s->size : INFINITY;
    const bool has_strip = w->strip_wide < INFINITY;
    const double *h0 = f->height + (size_t)w->j0 * (size_t)f->n_x;
    // From the first corner to the shape's centre.
    const double dx0 = s->c.x - (w->i0 - w->half_x) * f->dx;
    double dy = s->c.y - (w->j0 - w->half_y) * f->dy;
    for (int32_t j = w->j0; j <= w->j1; j++, h0 += f->n_x, dy -= f->dy) {
        const double *h1 = h0 + f->n_x;
        usi_cell_pair *r = row, *below = row_below;
        double dx = dx0;
        for (int32_t i = w->i0; i <= w->i1; i += 2, r++, below++, dx -= 2 * f->dx) {
            r->near = 0;
            if (has_strip && is_off_strip(w, s->c.x - dx + f->dx, s->c.y - dy + 0.5 * f->dy, 0.5 * f->dx))
                continue;
            // Where a row ends with one cell, that takes the place of the second, which does not count.
            const int32_t k = i < w->i1 ? i + 1 : i;
            const usi_v4 left = {h0[i], h1[i], h0[k], h1[k]},
                         right = {h0[i + 1], h1[i + 1], h0[k + 1], h1[k + 1]};
            evaluate_pair(g, w, left, right, dx, dy, i < w->i1 ? FIRST_CELL | SECOND_CELL : FIRST_CELL, r);
            if (!r->near) continue;
            if (r->steep && !drop_steep_cells(g, w, r, i, j, bottom)) return false;
            const bool has_left = i > w->i0, has_below = j > w->j0;
            collide_faces(g, i, j, r);
            collide_edges(g, w, i, j, r, has_left && r[-1].near ? r - 1 : &nothing,
                          has_below && below->near ? below : &nothing);
            if (has_below && has_left && (r->near & FIRST_CELL) && is_local_peak(f, i, j))
                usi_terrain_peak(g, i, j);
            if (has_below && (r->near & SECOND_CELL) && is_local_peak(f, i + 1, j))
                usi_terrain_peak(g, i + 1, j);
        }
        usi_cell_pair *last = row;
        row = row_below;
        row_below = last;
    }
    return true;
}

// Rays against height fields: cell by cell near the ground, block by block above it.
#include "geom/geom__ray_field.h"

static int32_t field_cell(double x, double half, double spacing, int32_t n) {
    double c = floor((x + half) * (1 / spacing));
    return c < 0 ? 0 : c > n - 2 ? n - 2 : (int32_t)c;
}

// The plane of one of a cell's two triangles: height = z + gx (x - x_i) + gy (y - y_j).
typedef struct cell_plane {
    double x, y, z, gx, gy;
} cell_plane;

static cell_plane field_facet(const us_height_field *f, int32_t i, int32_t j, bool is_upper) {
    us_vec3 p = usi_field_point(f, i, j);
    double far = usi_field_point(f, i + 1, j + 1).z,
           side = is_upper ? usi_field_point(f, i, j + 1).z : usi_field_point(f, i + 1, j).z;
    return is_upper ? (cell_plane){p.x, p.y, p.z, (far - side) / f->dx, (side - p.z) / f->dy}
                    : (cell_plane){p.x, p.y, p.z, (side - p.z) / f->dx, (far - side) / f->dy};
}

static double above(cell_plane t, us_vec3 p) { return p.z - (t.z + t.gx * (p.x - t.x) + t.gy * (p.y - t.y)); }

// Height of a point over the surface; the point's x, y are inside the rectangle.
static double field_above(const us_height_field *f, us_vec3 p) {
    us_vec3 half = usi_field_half(f);
    int32_t i = field_cell(p.x, half.x, f->dx, f->n_x), j = field_cell(p.y, half.y, f->dy, f->n_y);
    us_vec3 corner = usi_field_point(f, i, j);
    return above(field_facet(f, i, j, (p.y - corner.y) / f->dy > (p.x - corner.x) / f->dx), p);
}

// Whether a point is on the surface or below it: mostly it is above the whole tile.
static bool is_below(const us_height_field *f, us_vec3 p) {
    const us_vec3 half = usi_field_half(f);
    const int32_t i = field_cell(p.x, half.x, f->dx, f->n_x), j = field_cell(p.y, half.y, f->dy, f->n_y);
    return !(p.z > usi_field_peak(f, 0, i, j)) && field_above(f, p) <= 0;
}

// ---------------------------------------------------------------- the walk

// An axis of the grid as the walk goes along it: towards more, whichever way the ray goes. Column k of the
// walk is column k ^ flip of the field.
typedef struct walk_axis {
    double leave, apart;  // the ray leaves column k at leave + k apart
    double at, rate;      // at t it is over column at + t rate, with a fraction
    int32_t flip;         // 0, or -1 where it goes towards less
} walk_axis;

// A ray over a field, and a place on it: the cell (i, j) of the walk, entered at t.
typedef struct field_walk {
    const us_height_field *f;
    usi_ray l;
    double t, end;
    double margin;  // m: what is that far above a block's maximum is above it whatever was rounded
    walk_axis x, y;
    double per_x, per_y;  // 1 / m: cells
    int32_t i, j;
} field_walk;

// Where the ray leaves a column. One product and one sum: what follows from the number alone is the same
// whichever way the walk came, and never less for a later one.
static inline double leave_at(const walk_axis *a, int32_t k) { return a->leave + k * a->apart; }

// Along one axis: o, d of the ray, n samples apart by `spacing`.
static walk_axis axis_of(double o, double d, double spacing, double per, int32_t n) {
    const double half = 0.5 * (n - 1), place = o * per + half;
    // A mirrored column k is -1 - i: what was at x is at -x.
    const double at = d < 0 ? -place : place;
    if (d == 0) return (walk_axis){INFINITY, 0, place, 0, 0};
    const double apart = spacing / fabs(d);
    return (walk_axis){(1 - at) * apart, apart, at, fabs(d) * per, d < 0 ? -1 : 0};
}

static inline double lesser(double a, double b) { return a < b ? a : b; }
static inline double greater(double a, double b) { return a > b ? a : b; }

static inline double lowest_until(const field_walk *w, double leave) {
    return w->l.o.z + (w->l.d.z < 0 ? leave : w->t) * w->l.d.z;
}

// The column of `a` at the time at which another axis is left, between two columns. `is_later`: columns that
// are left at that very time count as left.
static inline int32_t column_at(const walk_axis *a, double t, int32_t from, int32_t to, bool is_later) {
    const double place = a->at + t * a->rate;
    int32_t k = place > from ? (place < to ? (int32_t)floor(place) : to) : from;
    while (k < to && (is_later ? leave_at(a, k) <= t : leave_at(a, k) < t))
        k++;
    while (k > from && !(is_later ? leave_at(a, k - 1) <= t : leave_at(a, k - 1) < t))
        k--;
    return k;
}

// Within a cell the ray is over one triangle and then over the other, and its height over each is linear in
// t. The pieces follow each other without a gap, so that the first piece that begins or ends below the
// surface has the hit, and no ray slips through a seam.
//
//      +-----+-----+
//      |   / |   / |
//      | /  .|.'   |
//      +..'--+-----+
static bool meet_cell(const field_walk *w, double leave, us_ray_hit *out_hit) {
    const us_height_field *f = w->f;
    const usi_ray l = w->l;
    const int32_t i = w->i ^ w->x.flip, j = w->j ^ w->y.flip;
    us_vec3 corner = usi_field_point(f, i, j);
    // The diagonal: v - u = 0, with u and v from 0 to 1 across the cell.
    double side = (l.o.y - corner.y) * w->per_y - (l.o.x - corner.x) * w->per_x,
           rate = l.d.y * w->per_y - l.d.x * w->per_x;
    double cross = rate != 0 ? -side / rate : INFINITY,
           middle = cross > w->t && cross < leave ? cross : leave;
    double piece[3] = {w->t, middle, leave};
    const double *h = f->height + (size_t)j * (size_t)f->n_x + (size_t)i, far = h[f->n_x + 1];
    for (int k = 0; k < 2; k++) {
        const bool is_upper = side + rate * (0.5 * (piece[k] + piece[k + 1])) > 0;
        const double other = is_upper ? h[f->n_x] : h[1];
        const cell_plane under = {corner.x, corner.y, corner.z,
                                  (is_upper ? far - other : other - corner.z) * w->per_x,
                                  (is_upper ? other - corner.z : far - other) * w->per_y};
        double before = above(under, usi_ray_at(l, piece[k])),
               after = above(under, usi_ray_at(l, piece[k + 1]));
        if (before <= 0 || after <= 0) {
            double share = before <= 0 ? 0 : before / (before - after);
            us_vec3 n = usi_unit_or(us_vec3_make(-under.gx, -under.gy, 1), us_vec3_make(0, 0, 1));
            *out_hit = (us_ray_hit){piece[k] + share * (piece[k + 1] - piece[k]), n};
            return true;
        }
    }
    return false;
}

static inline double cell_high(const us_height_field *f, int32_t i, int32_t j) {
    const double *h = f->height + (size_t)j * (size_t)f->n_x + (size_t)i;
    return greater(greater(h[0], h[1]), greater(h[f->n_x], h[f->n_x + 1]));
}

// Steps over the block of 2^shift by 2^shift cells around the walk's cell, if the ray is above all of it.
// The cell behind it and its t are those that a walk cell by cell comes to, to the last bit: the ray leaves a
// column or row at a place that follows from its number alone, and where it leaves both at once the column is
// left first.
static inline bool skip_block(field_walk *w, int shift, double high) {
    const int32_t mask = (int32_t)((1u << shift) - 1), i_end = w->i | mask, j_end = w->j | mask;
    const double to_x = leave_at(&w->x, i_end), to_y = leave_at(&w->y, j_end);
    const double leave = greater(w->t, lesser(w->end, lesser(to_x, to_y)));
    if (!(lowest_until(w, leave) > high)) return false;
    if (leave < w->end) {
        if (to_x <= to_y) {
            w->j = column_at(&w->y, to_x, w->j, j_end, false);
            w->i = i_end + 1;
        } else {
            w->i = column_at(&w->x, to_y, w->i, i_end, true);
            w->j = j_end + 1;
        }
    }
    w->t = leave;
    return true;
}

// One cell further, unless the ray ends or meets the surface in this one.
static inline bool pass_cell(field_walk *w, us_ray_hit *out_hit) {
    const double to_x = leave_at(&w->x, w->i), to_y = leave_at(&w->y, w->j);
    const double leave = greater(w->t, lesser(w->end, lesser(to_x, to_y)));
    const double high = cell_high(w->f, w->i ^ w->x.flip, w->j ^ w->y.flip) + w->margin;
    if (!(lowest_until(w, leave) > high) && meet_cell(w, leave, out_hit)) return false;
    if (leave < w->end) {
        const bool is_column = to_x <= to_y;
        w->i += is_column;
        w->j += !is_column;
    }
    w->t = leave;
    return true;
}

// Follows the ray over the ground. Far above it, blocks of cells are stepped over as a whole: tiles, and
// blocks of tiles (us_height_field.peak). A block that the ray is not above is taken in parts, down to the
// cells; with a block left behind, larger ones are tried again.
//
//      - - ->- - - - - .
//                        ` .     ____
//      |_______|_______|__/_`|../    |
//
// The hit is that of a walk over all cells (top: -1), bit for bit: blocks that have it are never skipped.
static us_ray_hit walk_field(const us_height_field *f, usi_ray l, double t, double end, int32_t top) {
    const us_vec3 half = usi_field_half(f), p = usi_ray_at(l, t);
    field_walk w = {.f = f,
                    .l = l,
                    .t = t,
                    .end = end,
                    .per_x = 1 / f->dx,
                    .per_y = 1 / f->dy,
                    .x = axis_of(l.o.x, l.d.x, f->dx, 1 / f->dx, f->n_x),
                    .y = axis_of(l.o.y, l.d.y, f->dy, 1 / f->dy, f->n_y)};
    w.i = field_cell(p.x, half.x, f->dx, f->n_x) ^ w.x.flip;
    w.j = field_cell(p.y, half.y, f->dy, f->n_y) ^ w.y.flip;
    // The last cells of the walk.
    const int32_t last_i = w.x.flip ? -1 : f->n_x - 2, last_j = w.y.flip ? -1 : f->n_y - 2;
    w.margin = usi_field_margin(f, fabs(l.o.x) + fabs(l.o.y) + fabs(l.o.z));
    us_ray_hit hit = USI_RAY_MISS;
    int32_t level = top < 0 ? top : 0;  // tiles; -1: cells
    while (w.i <= last_i && w.j <= last_j) {
        const int32_t i = w.i, j = w.j;
        if (level >= 0) {
            const double high = usi_field_peak(f, level, i ^ w.x.flip, j ^ w.y.flip) + w.margin;
            if (!skip_block(&w, usi_peak_shift(level), high)) {
                level--;
                continue;
            }
        } else if (!pass_cell(&w, &hit)) {
            return hit;
        }
        if (w.t >= end) return USI_RAY_MISS;
        const int above_it = usi_peak_shift(level + 1);
        if (level < top && (((i ^ w.i) | (j ^ w.j)) >> above_it) != 0) level++;
    }
    return USI_RAY_MISS;
}

// The solid below the surface, radius 0: walls around the rectangle, without end downwards.
static us_ray_hit cast_solid(const us_height_field *f, usi_ray l, double range, int32_t top) {
    us_vec3 half = usi_field_half(f);
    const double down = 1 / l.d.z;
    usi_ray_span s = usi_ray_span_all(l);
    us_ray_hit edge = {0, us_vec3_scale(-1, l.d)};
    if (fabs(l.o.x) < half.x && fabs(l.o.y) < half.y) {
        // From over the rectangle: down to the level of its peak, and then the walk itself finds where the
        // rectangle ends.
        if (l.o.z >= f->high && l.d.z < 0) {
            edge = (us_ray_hit){(f->high - l.o.z) * down, us_vec3_make(0, 0, 1)};
            const us_vec3 p = usi_ray_at(l, edge.range);
            if (edge.range > range || !(fabs(p.x) <= half.x && fabs(p.y) <= half.y)) return USI_RAY_MISS;
        } else if (l.o.z > f->high || (l.o.z == f->high && l.d.z > 0)) {
            return USI_RAY_MISS;
        }
        if (l.d.z > 0) s.out = (f->high - l.o.z) * down;
    } else {
        usi_ray_span_cut_slab(&s, l, us_vec3_make(1, 0, 0), half.x);
        usi_ray_span_cut_slab(&s, l, us_vec3_make(0, 1, 0), half.y);
        usi_ray_span_cut(&s, l, us_vec3_make(0, 0, 1), f->high);
        edge = usi_ray_span_hit(s, l, range);
        if (edge.range == INFINITY) return USI_RAY_MISS;
    }
    // Where the ray comes over the rectangle and down to the highest point: already below the surface?
    const double t = edge.range;
    double end = lesser(s.out, range);
    // A ray that goes down is below everything soon, even one that never leaves the rectangle.
    if (l.d.z < 0) end = lesser(end, greater(t, (usi_field_bottom(f) - l.o.z) * down));
    const bool is_top = edge.normal.z == 1 && t > 0;
    if (!is_top && is_below(f, usi_ray_at(l, t))) return edge;
    return walk_field(f, l, t, end, top);
}

// Swept: the solid, a swept triangle for each half cell, and the walls moved out by the radius with round
// corners. Triangles are taken from the cells around one stretch of the ray after another.
static us_ray_hit cast_swept(const us_height_field *f, usi_ray l, double range, double r) {
    us_vec3 half = usi_field_half(f);
    us_ray_hit best = cast_solid(f, l, range, f->n_peak);
    usi_ray_span s = usi_ray_span_all(l);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(1, 0, 0), half.x + r);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(0, 1, 0), half.y + r);
    usi_ray_span_cut(&s, l, us_vec3_make(0, 0, 1), f->high + r);
    if (usi_ray_span_hit(s, l, range).range == INFINITY) return USI_RAY_MISS;
    // Walls and corners: where the ray enters them, below the surface's border.
    for (int k = 0; k < 4; k++) {
        double sign = k % 2 ? 1 : -1;
        usi_ray_span wall = usi_ray_span_all(l);
        usi_ray_span_cut_slab(&wall, l, us_vec3_make(1, 0, 0), half.x + (k < 2 ? r : 0));
        usi_ray_span_cut_slab(&wall, l, us_vec3_make(0, 1, 0), half.y + (k < 2 ? 0 : r));
        usi_ray_span_cut(&wall, l, k < 2 ? us_vec3_make(-sign, 0, 0) : us_vec3_make(0, -sign, 0),
                         k < 2 ? -half.x : -half.y);
        us_vec3 corner = us_vec3_make(half.x * (k % 2 ? 1 : -1), half.y * (k / 2 ? 1 : -1), 0);
        usi_ray_span pillar = usi_ray_span_tube(l, corner, us_vec3_make(0, 0, 1), r);
        for (int m = 0; m < 2; m++) {
            us_ray_hit hit = usi_ray_span_hit(m ? pillar : wall, l, range);
            if (!(hit.range < best.range)) continue;
            us_vec3 p = m ? corner : usi_ray_at(l, hit.range);
            p.x = fmax(-half.x, fmin(half.x, p.x));
            p.y = fmax(-half.y, fmin(half.y, p.y));
            p.z = usi_ray_at(l, hit.range).z;
            if (field_above(f, p) <= 0) best = hit;
        }
    }
    double t = fmax(s.in, 0), end = fmin(fmin(s.out, range), best.range), stretch = 2 * (f->dx + f->dy) + r;
    // Only over the rectangle's surroundings, so end is finite unless the ray is vertical: then one stretch
    // has it all.
    for (bool is_last = false; !is_last;) {
        double across = hypot(l.d.x, l.d.y), next = across > 1e-9 ? t + stretch / across : end;
        is_last = !(next < end);
        if (is_last) next = end;
        us_vec3 p = usi_ray_at(l, t), q = across > 1e-9 ? usi_ray_at(l, next) : p;
        int32_t i0 = field_cell(fmin(p.x, q.x) - r, half.x, f->dx, f->n_x),
                i1 = field_cell(fmax(p.x, q.x) + r, half.x, f->dx, f->n_x);
        int32_t j0 = field_cell(fmin(p.y, q.y) - r, half.y, f->dy, f->n_y),
                j1 = field_cell(fmax(p.y, q.y) + r, half.y, f->dy, f->n_y);
        for (int32_t j = j0; j <= j1; j++) {
            for (int32_t i = i0; i <= i1; i++) {
                const us_vec3 a = usi_field_point(f, i, j), b = usi_field_point(f, i + 1, j),
                              c = usi_field_point(f, i + 1, j + 1), d = usi_field_point(f, i, j + 1);
                const us_vec3 triangle[2][3] = {{a, b, c}, {a, c, d}};
                for (int k = 0; k < 2; k++) {
                    us_ray_hit hit = usi_ray_span_hit(usi_ray_span_triangle(l, triangle[k], r), l, range);
                    if (hit.range < best.range) best = hit;
                }
            }
        }
        if (best.range <= next) break;
        t = next;
    }
    return best;
}

us_ray_hit usi_ray_cast_field(const us_height_field *f, usi_ray l, double range, double radius) {
    if (f->n_x < 2 || f->n_y < 2) return USI_RAY_MISS;
    return radius > 0 ? cast_swept(f, l, range, radius) : cast_solid(f, l, range, f->n_peak);
}

us_ray_hit usi_ray_cast_field_by_cells(const us_height_field *f, usi_ray l, double range) {
    return f->n_x < 2 || f->n_y < 2 ? USI_RAY_MISS : cast_solid(f, l, range, -1);
}

void usi_ray_cast_field_many(const us_height_field *f, int32_t n, const usi_ray *l, const double *range,
                             us_ray_hit *out_hit) {
    if (f->n_x >= 2 && f->n_y >= 2 && usi_ray_cast_packets(f, n, l, range, out_hit)) return;
    for (int32_t i = 0; i < n; i++)
        out_hit[i] = usi_ray_cast_field(f, l[i], range[i], 0);
}

// Rays against height fields: cell by cell.
#include "geom/ray.h"

// Half the rectangle's sides.
static us_vec3 field_half(const us_height_field *f) {
    return us_vec3_make(0.5 * (f->n_x - 1) * f->dx, 0.5 * (f->n_y - 1) * f->dy, 0);
}

static int32_t field_cell(double x, double half, double spacing, int32_t n) {
    double c = floor((x + half) / spacing);
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
    us_vec3 half = field_half(f);
    int32_t i = field_cell(p.x, half.x, f->dx, f->n_x), j = field_cell(p.y, half.y, f->dy, f->n_y);
    us_vec3 corner = usi_field_point(f, i, j);
    return above(field_facet(f, i, j, (p.y - corner.y) / f->dy > (p.x - corner.x) / f->dx), p);
}

// Follows the ray over the cells it crosses:
//
//      +-----+-----+        Within a cell the ray is over one triangle and then over the other, and its
//      height |   / |   / |        over each is linear in t. The pieces follow each other without a gap, so
//      the first | /  .|.'   |        piece that begins or ends below the surface has the hit, and no ray
//      slips through a
//      +..'--+-----+        seam.
static us_ray_hit walk_field(const us_height_field *f, usi_ray l, double t, double end) {
    us_vec3 half = field_half(f), p = usi_ray_at(l, t);
    int32_t i = field_cell(p.x, half.x, f->dx, f->n_x), j = field_cell(p.y, half.y, f->dy, f->n_y);
    int32_t step_x = l.d.x > 0 ? 1 : -1, step_y = l.d.y > 0 ? 1 : -1;
    while (i >= 0 && j >= 0 && i <= f->n_x - 2 && j <= f->n_y - 2) {
        us_vec3 corner = usi_field_point(f, i, j);
        double to_x = l.d.x != 0 ? (corner.x + (l.d.x > 0 ? f->dx : 0) - l.o.x) / l.d.x : INFINITY;
        double to_y = l.d.y != 0 ? (corner.y + (l.d.y > 0 ? f->dy : 0) - l.o.y) / l.d.y : INFINITY;
        double leave = fmax(t, fmin(end, fmin(to_x, to_y)));
        // The diagonal: v - u = 0, with u and v from 0 to 1 across the cell.
        double side = (l.o.y - corner.y) / f->dy - (l.o.x - corner.x) / f->dx,
               rate = l.d.y / f->dy - l.d.x / f->dx;
        double cross = rate != 0 ? -side / rate : INFINITY,
               middle = cross > t && cross < leave ? cross : leave;
        double piece[3] = {t, middle, leave};
        for (int k = 0; k < 2; k++) {
            double centre = 0.5 * (piece[k] + piece[k + 1]);
            cell_plane under = field_facet(f, i, j, side + rate * centre > 0);
            double before = above(under, usi_ray_at(l, piece[k])),
                   after = above(under, usi_ray_at(l, piece[k + 1]));
            if (before <= 0 || after <= 0) {
                double share = before <= 0 ? 0 : before / (before - after);
                us_vec3 n = usi_unit_or(us_vec3_make(-under.gx, -under.gy, 1), us_vec3_make(0, 0, 1));
                return (us_ray_hit){piece[k] + share * (piece[k + 1] - piece[k]), n};
            }
        }
        if (leave >= end) return USI_RAY_MISS;
        if (to_x <= to_y)
            i += step_x;
        else
            j += step_y;
        t = leave;
    }
    return USI_RAY_MISS;
}

// The solid below the surface, radius 0: walls around the rectangle, without end downwards.
static us_ray_hit cast_solid(const us_height_field *f, usi_ray l, double range) {
    us_vec3 half = field_half(f);
    usi_ray_span s = usi_ray_span_all(l);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(1, 0, 0), half.x);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(0, 1, 0), half.y);
    usi_ray_span_cut(&s, l, us_vec3_make(0, 0, 1), f->high);
    us_ray_hit edge = usi_ray_span_hit(s, l, range);
    if (edge.range == INFINITY) return USI_RAY_MISS;
    // Where the ray comes over the rectangle and down to the highest point: already below the surface?
    double t = edge.range, end = fmin(s.out, range), height = field_above(f, usi_ray_at(l, t));
    // A ray that goes down is below everything soon, even one that never leaves the rectangle.
    if (l.d.z < 0) end = fmin(end, fmax(t, (f->low - (f->high - f->low) - f->dx - f->dy - l.o.z) / l.d.z));
    bool is_top = edge.normal.z == 1 && t > 0;
    if (height <= 0 && !is_top) return edge;
    return walk_field(f, l, t, end);
}

// Swept: the solid, a swept triangle for each half cell, and the walls moved out by the radius with round
// corners. Triangles are taken from the cells around one stretch of the ray after another.
static us_ray_hit cast_swept(const us_height_field *f, usi_ray l, double range, double r) {
    us_vec3 half = field_half(f);
    us_ray_hit best = cast_solid(f, l, range);
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
    return radius > 0 ? cast_swept(f, l, range, radius) : cast_solid(f, l, range);
}

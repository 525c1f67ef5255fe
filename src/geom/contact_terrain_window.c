// Which cells of a height field can touch a shape.
//
// The heights under the shape's box bound the slopes there, the slopes bound the normals, and the normals
// bound where the shape's lowest points can be: a wheel on gentle ground has its whole tread in one or two
// cells, whatever its box.
#include <string.h>

#include "geom/geom__terrain.h"

usi_cell_cover usi_terrain_cells_under(const us_height_field *f, us_vec3 middle, double ax, double ay,
                                       usi_cell_window *w) {
    *w = (usi_cell_window){.half_x = 0.5 * (f->n_x - 1),
                           .half_y = 0.5 * (f->n_y - 1),
                           .per_x = 1 / f->dx,
                           .per_y = 1 / f->dy,
                           .strip_wide = INFINITY};
    double x0 = (middle.x - ax) * w->per_x + w->half_x, x1 = (middle.x + ax) * w->per_x + w->half_x;
    double y0 = (middle.y - ay) * w->per_y + w->half_y, y1 = (middle.y + ay) * w->per_y + w->half_y;
    if (x1 < 0 || y1 < 0 || x0 > f->n_x - 1 || y0 > f->n_y - 1) return USI_COVER_NONE;
    if (!(x0 > 0 && y0 > 0 && x1 < f->n_x - 1 && y1 < f->n_y - 1)) return USI_COVER_RIM;
    w->i0 = (int32_t)x0;
    w->i1 = (int32_t)x1;
    w->j0 = (int32_t)y0;
    w->j1 = (int32_t)y1;
    return USI_COVER_SOME;
}

// Min and max over the lanes.
typedef struct lane_extent {
    usi_v4 low, high;
} lane_extent;

static inline void widen(lane_extent *e, usi_v4 x) {
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

// Rows are taken four cells at a time, the last four once more rather than less.
double usi_terrain_slopes(const us_height_field *f, const usi_cell_window *w, double dx[2], double dy[2]) {
    const int32_t n = w->i1 - w->i0 + 1;
    usi_v4 big = usi_v4_all(INFINITY), top = -big;
    lane_extent ex = {big, -big}, ey = ex;
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
    usi_v4 min = usi_v4_min(usi_v4_min(by_lane[0], by_lane[1]), usi_v4_min(by_lane[2], by_lane[3]));
    dx[0] = min[0];
    dx[1] = -min[1];
    dy[0] = min[2];
    dy[1] = -min[3];
    top = usi_v4_max(top, usi_v4_swap_halves(top));
    return top[0] > top[1] ? top[0] : top[1];
}

bool usi_terrain_shrink(const usi_terrain_contacts *g, double bottom, usi_cell_window *w) {
    const usi_core_segment *s = &g->s;
    double dx[2], dy[2], deep = usi_terrain_slopes(g->f, w, dx, dy) - bottom;
    if (deep < 0) return false;
    // Mean slope, half of its range, and the normal of the mean slope.
    double mx = 0.5 * (dx[0] + dx[1]) * w->per_x, my = 0.5 * (dy[0] + dy[1]) * w->per_y;
    double ox = 0.5 * (dx[1] - dx[0]) * w->per_x, oy = 0.5 * (dy[1] - dy[0]) * w->per_y,
           off = sqrt(ox * ox + oy * oy);
    double inverse = 1 / sqrt(1 + mx * mx + my * my);
    us_vec3 n = us_vec3_make(-mx * inverse, -my * inverse, inverse);

    // Slack: how far the lowest points move over the range of slopes.
    double along = us_vec3_dot(n, s->a), steepest = fabs(along) + off,
           slack = (s->R + deep) * off + 1e-6 * s->size;
    if (s->r > 0) {
        if (steepest > 0.9) return true;
        slack += s->r * off / sqrt(1 - steepest * steepest);
    }
    double steep_x = fabs(mx) + ox, steep_y = fabs(my) + oy;
    w->is_gentle = steep_x * steep_x + steep_y * steep_y < 1;

    us_vec3 p = usi_lowest_of_end(s, 0, n, along);
    // Where the surface can be touched: from the lowest points up along the normal by the max depth, or down
    // by the margin, which `deep` includes. Its middle and half sides.
    double ux = deep * n.x, uy = deep * n.y, more = g->margin + slack;
    double x = p.x + s->half * s->a.x + 0.5 * ux, half_x = s->half * fabs(s->a.x) + 0.5 * fabs(ux) + more;
    double y = p.y + s->half * s->a.y + 0.5 * uy, half_y = s->half * fabs(s->a.y) + 0.5 * fabs(uy) + more;
    // Strip along the shape, unless so few cells are left that all are tested.
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

    // Window.
    double x0 = (x - half_x) * w->per_x + w->half_x, x1 = (x + half_x) * w->per_x + w->half_x;
    double y0 = (y - half_y) * w->per_y + w->half_y, y1 = (y + half_y) * w->per_y + w->half_y;
    if (x0 > w->i0) w->i0 = x0 < w->i1 ? (int32_t)x0 : w->i1;
    if (y0 > w->j0) w->j0 = y0 < w->j1 ? (int32_t)y0 : w->j1;
    if (x1 < w->i1) w->i1 = x1 > w->i0 ? (int32_t)x1 : w->i0;
    if (y1 < w->j1) w->j1 = y1 > w->j0 ? (int32_t)y1 : w->j0;
    return true;
}

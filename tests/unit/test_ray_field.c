// Rays over ground that step over blocks of cells, against a walk over every cell: the same hits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geom/ray.h"
#include "instrumented.h"

enum { RAYS = IS_INSTRUMENTED ? 20000 : 100000 };

// ---------------------------------------------------------------- the judge: cell by cell

typedef struct facet {
    double x, y, z, gx, gy;
} facet;

static int32_t cell_of(double x, double half, double spacing, int32_t n) {
    double c = floor((x + half) / spacing);
    return c < 0 ? 0 : c > n - 2 ? n - 2 : (int32_t)c;
}

static facet facet_of(const us_height_field *f, int32_t i, int32_t j, bool is_upper) {
    us_vec3 p = usi_field_point(f, i, j);
    double far = usi_field_point(f, i + 1, j + 1).z,
           side = is_upper ? usi_field_point(f, i, j + 1).z : usi_field_point(f, i + 1, j).z;
    return is_upper ? (facet){p.x, p.y, p.z, (far - side) / f->dx, (side - p.z) / f->dy}
                    : (facet){p.x, p.y, p.z, (side - p.z) / f->dx, (far - side) / f->dy};
}

static double over(facet t, us_vec3 p) { return p.z - (t.z + t.gx * (p.x - t.x) + t.gy * (p.y - t.y)); }

static us_ray_hit plain_walk(const us_height_field *f, usi_ray l, double t, double end) {
    double half_x = 0.5 * (f->n_x - 1) * f->dx, half_y = 0.5 * (f->n_y - 1) * f->dy;
    us_vec3 p = usi_ray_at(l, t);
    int32_t i = cell_of(p.x, half_x, f->dx, f->n_x), j = cell_of(p.y, half_y, f->dy, f->n_y);
    while (i >= 0 && j >= 0 && i <= f->n_x - 2 && j <= f->n_y - 2) {
        us_vec3 corner = usi_field_point(f, i, j);
        double to_x = l.d.x != 0 ? (corner.x + (l.d.x > 0 ? f->dx : 0) - l.o.x) / l.d.x : INFINITY;
        double to_y = l.d.y != 0 ? (corner.y + (l.d.y > 0 ? f->dy : 0) - l.o.y) / l.d.y : INFINITY;
        double leave = fmax(t, fmin(end, fmin(to_x, to_y)));
        double side = (l.o.y - corner.y) / f->dy - (l.o.x - corner.x) / f->dx,
               rate = l.d.y / f->dy - l.d.x / f->dx;
        double cross = rate != 0 ? -side / rate : INFINITY,
               middle = cross > t && cross < leave ? cross : leave;
        double piece[3] = {t, middle, leave};
        for (int k = 0; k < 2; k++) {
            double centre = 0.5 * (piece[k] + piece[k + 1]);
            facet under = facet_of(f, i, j, side + rate * centre > 0);
            double before = over(under, usi_ray_at(l, piece[k])),
                   after = over(under, usi_ray_at(l, piece[k + 1]));
            if (before <= 0 || after <= 0) {
                double share = before <= 0 ? 0 : before / (before - after);
                us_vec3 n = usi_unit_or(us_vec3_make(-under.gx, -under.gy, 1), us_vec3_make(0, 0, 1));
                return (us_ray_hit){piece[k] + share * (piece[k + 1] - piece[k]), n};
            }
        }
        if (leave >= end) return USI_RAY_MISS;
        if (to_x <= to_y)
            i += l.d.x > 0 ? 1 : -1;
        else
            j += l.d.y > 0 ? 1 : -1;
        t = leave;
    }
    return USI_RAY_MISS;
}

static double height_over(const us_height_field *f, us_vec3 p) {
    int32_t i = cell_of(p.x, 0.5 * (f->n_x - 1) * f->dx, f->dx, f->n_x),
            j = cell_of(p.y, 0.5 * (f->n_y - 1) * f->dy, f->dy, f->n_y);
    us_vec3 corner = usi_field_point(f, i, j);
    return over(facet_of(f, i, j, (p.y - corner.y) / f->dy > (p.x - corner.x) / f->dx), p);
}

static us_ray_hit plain_cast(const us_height_field *f, usi_ray l, double range) {
    double half_x = 0.5 * (f->n_x - 1) * f->dx, half_y = 0.5 * (f->n_y - 1) * f->dy;
    usi_ray_span s = usi_ray_span_all(l);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(1, 0, 0), half_x);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(0, 1, 0), half_y);
    usi_ray_span_cut(&s, l, us_vec3_make(0, 0, 1), f->high);
    us_ray_hit edge = usi_ray_span_hit(s, l, range);
    if (edge.range == INFINITY) return USI_RAY_MISS;
    double t = edge.range, end = fmin(s.out, range);
    double height = height_over(f, usi_ray_at(l, t));
    if (l.d.z < 0) end = fmin(end, fmax(t, (f->low - (f->high - f->low) - f->dx - f->dy - l.o.z) / l.d.z));
    if (height <= 0 && !(edge.normal.z == 1 && t > 0)) return edge;
    return plain_walk(f, l, t, end);
}

// ---------------------------------------------------------------- ground and rays

static double uniform(uint64_t stream, uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(77, stream, i);
}

// Hills with noise on them and some towers: blocks with and without something high in them.
static us_height_field *make_ground(int32_t n_x, int32_t n_y, double dx, double dy, double relief) {
    double *h = malloc((size_t)n_x * (size_t)n_y * sizeof *h);
    us_height_field *f = NULL;
    assert_non_null(h);
    for (int32_t j = 0; j < n_y; j++) {
        for (int32_t i = 0; i < n_x; i++) {
            uint64_t k = (uint64_t)j * (uint64_t)n_x + (uint64_t)i;
            double z = relief * (sin(0.05 * i) * cos(0.033 * j) + 0.05 * uniform(1, k, -1, 1));
            if (us_random_uniform(3, 3, k) < 0.0005) z += relief;
            h[k] = z;
        }
    }
    assert_int_equal(us_height_field_create(h, n_x, n_y, dx, dy, NULL, &f, NULL), US_OK);
    free(h);
    return f;
}

// A compiler may fuse products and sums in one of two copies of a formula and not in the other: the hits
// differ by the rounding of coordinates, which is 1e-16 of the distance from which the ray comes, over the
// sine of the angle to the surface, which is 0.001 and more for nearly all. A ray that is aimed at a corner
// may touch it or not by that rounding: then it is nowhere below the surface around the place.
static bool is_same(const us_height_field *f, usi_ray l, us_ray_hit a, us_ray_hit b) {
    const double rounding = 1e-12 * (1 + us_vec3_norm(l.o)), near = 1e-3 * f->dx;
    const double first = fmin(a.range, b.range);
    if (first == INFINITY || fabs(a.range - b.range) <= rounding) return true;
    for (int k = -1; k <= 1; k++) {
        us_vec3 p = usi_ray_at(l, first + k * near);
        bool is_inside = fabs(p.x) <= 0.5 * (f->n_x - 1) * f->dx && fabs(p.y) <= 0.5 * (f->n_y - 1) * f->dy;
        if (is_inside && height_over(f, p) < -rounding) return false;
    }
    return true;
}

// The library's own walk over every cell is the same code: there every bit is the same.
static bool has_same_bits(us_ray_hit a, us_ray_hit b) {
    return memcmp(&a.range, &b.range, sizeof a.range) == 0 &&
           memcmp(&a.normal, &b.normal, sizeof a.normal) == 0;
}

// Rays of all sorts, with their hits one by one, to be cast again in packets.
static struct crowd {
    usi_ray ray[RAYS];
    double range[RAYS];
    us_ray_hit hit[RAYS], together[RAYS];
    int32_t n;
} crowd;

static void compare(const us_height_field *f, us_vec3 o, us_vec3 d, double range, int *n_hit) {
    double length = us_vec3_norm(d);
    if (length == 0) return;
    usi_ray l = {o, us_vec3_scale(1 / length, d)};
    us_ray_hit fast = usi_ray_cast_field(f, l, range, 0), plain = plain_cast(f, l, range),
               by_cells = usi_ray_cast_field_by_cells(f, l, range);
    *n_hit += plain.range < INFINITY;
    crowd.ray[crowd.n] = l;
    crowd.range[crowd.n] = range;
    crowd.hit[crowd.n++] = fast;
    if (!has_same_bits(fast, by_cells) || !is_same(f, l, fast, plain))
        fail_msg("from %.17g %.17g %.17g along %.17g %.17g %.17g: %.17g, cell by cell %.17g", o.x, o.y, o.z,
                 l.d.x, l.d.y, l.d.z, fast.range, plain.range);
}

// One ray of each sort in turn.
static void compare_sort(const us_height_field *f, uint64_t i, int *n_hit) {
    const double half_x = 0.5 * (f->n_x - 1) * f->dx, half_y = 0.5 * (f->n_y - 1) * f->dy,
                 relief = f->high - f->low;
    us_vec3 o =
        us_vec3_make(uniform(10, i, -1.2 * half_x, 1.2 * half_x), uniform(11, i, -1.2 * half_y, 1.2 * half_y),
                     uniform(12, i, f->low - 0.2 * relief, f->high + relief));
    us_vec3 d = us_vec3_make(uniform(13, i, -1, 1), uniform(14, i, -1, 1), uniform(15, i, -1, 0.3));
    // Exactly on a line of the grid, or on a border.
    const us_vec3 node = usi_field_point(f, (int32_t)(us_random_bits(7, 1, i) % (uint64_t)f->n_x),
                                         (int32_t)(us_random_bits(7, 2, i) % (uint64_t)f->n_y));
    double range = i % 5 == 0 ? uniform(16, i, 0, 2 * half_x) : INFINITY;
    switch (i % 10) {
    case 0:  // grazing: almost level, little above the hills
        o.z = uniform(17, i, f->low, f->high);
        d.z = uniform(18, i, -0.02, 0.02);
        break;
    case 1:  // vertical
        d = us_vec3_make(0, 0, i % 20 < 10 ? -1 : 1);
        break;
    case 2:  // along an axis
        d = i % 20 < 10 ? us_vec3_make(d.x, 0, 0.1 * d.z) : us_vec3_make(0, d.y, 0.1 * d.z);
        break;
    case 3:  // along a line of the grid
        o.x = node.x;
        d = us_vec3_make(0, d.y, 0.1 * d.z);
        break;
    case 4:  // along the diagonals, through corners
        o = us_vec3_make(node.x, node.y, node.z + uniform(19, i, -0.1, 1) * relief);
        d = us_vec3_make(f->dx * (d.x < 0 ? -1 : 1), f->dy * (d.y < 0 ? -1 : 1), 0.1 * d.z * f->dx);
        break;
    case 5:  // from within the solid, and from below
        o.z = f->low - uniform(20, i, 0, relief);
        d.z = fabs(d.z);
        break;
    case 6:  // from the border
        o.x = i % 20 < 10 ? -half_x : half_x;
        break;
    case 7:  // from a corner of a cell, to another
        o = us_vec3_make(node.x, node.y, node.z + 0.5 * relief);
        d = us_vec3_sub(usi_field_point(f, (int32_t)(us_random_bits(7, 3, i) % (uint64_t)f->n_x),
                                        (int32_t)(us_random_bits(7, 4, i) % (uint64_t)f->n_y)),
                        o);
        break;
    case 8:  // from far away
        o = us_vec3_scale(1000, o);
        d = us_vec3_sub(us_vec3_make(uniform(21, i, -half_x, half_x), uniform(22, i, -half_y, half_y), 0), o);
        break;
    default:
        break;
    }
    compare(f, o, d, range, n_hit);
}

// In packets that begin anywhere, of any length, in any company: the same bits as alone.
static void compare_together(const us_height_field *f) {
    for (uint64_t round = 0; round < 6; round++) {
        for (int32_t first = 0, n; first < crowd.n; first += n) {
            n = (int32_t)(us_random_bits(5, round, (uint64_t)first) % (round % 2 ? 40 : 4000)) + 1;
            if (n > crowd.n - first) n = crowd.n - first;
            usi_ray_cast_field_many(f, n, crowd.ray + first, crowd.range + first, crowd.together + first);
        }
        for (int32_t i = 0; i < crowd.n; i++) {
            if (!has_same_bits(crowd.hit[i], crowd.together[i])) {
                const usi_ray l = crowd.ray[i];
                fail_msg("from %.17g %.17g %.17g along %.17g %.17g %.17g: alone %.17g, in a packet %.17g",
                         l.o.x, l.o.y, l.o.z, l.d.x, l.d.y, l.d.z, crowd.hit[i].range,
                         crowd.together[i].range);
            }
        }
        // Others beside each.
        for (int32_t i = crowd.n - 1; i > 0; i--) {
            const int32_t k = (int32_t)(us_random_bits(6, round, (uint64_t)i) % (uint64_t)(i + 1));
            const usi_ray ray = crowd.ray[i];
            const us_ray_hit hit = crowd.hit[i];
            const double range = crowd.range[i];
            crowd.ray[i] = crowd.ray[k];
            crowd.hit[i] = crowd.hit[k];
            crowd.range[i] = crowd.range[k];
            crowd.ray[k] = ray;
            crowd.hit[k] = hit;
            crowd.range[k] = range;
        }
    }
    crowd.n = 0;
}

static void blocks_stepped_over_change_no_hit(void **state) {
    (void)state;
    const struct {
        int32_t n_x, n_y;
        double dx, dy, relief;
    } ground[] = {{300, 260, 0.25, 0.3, 4},    {9, 9, 1, 1, 1},     {2, 2, 1, 1, 1},
                  {8, 700, 0.1, 0.1, 0.3},     {130, 33, 2, 1, 30}, {600, 600, 1.0 / 3, 0.1, 0},
                  {1100, 900, 0.25, 0.25, 500}};
    enum { N = sizeof ground / sizeof *ground };
    for (int k = 0; k < N; k++) {
        us_height_field *f =
            make_ground(ground[k].n_x, ground[k].n_y, ground[k].dx, ground[k].dy, ground[k].relief);
        int n_hit = 0;
        for (uint64_t i = 0; i < RAYS / N; i++)
            compare_sort(f, i + (uint64_t)k * RAYS, &n_hit);
        assert_true(n_hit > RAYS / N / 5);
        compare_together(f);
        us_height_field_destroy(f);
    }
}

// Every height is known to all blocks that have the cell in them.
static void peaks_are_the_maxima_of_their_cells(void **state) {
    (void)state;
    us_height_field *f = make_ground(300, 70, 1, 1, 5);
    assert_int_equal(f->n_peak, 3);  // 38 by 9 tiles, 10 by 3, 3 by 1, 1
    for (int32_t level = 0; level <= f->n_peak; level++) {
        const int shift = usi_peak_shift(level);
        for (int32_t v = 0; v << shift <= f->n_y - 2; v++) {
            for (int32_t u = 0; u << shift <= f->n_x - 2; u++) {
                double high = -INFINITY;
                for (int32_t j = v << shift; j <= (v + 1) << shift && j < f->n_y; j++)
                    for (int32_t i = u << shift; i <= (u + 1) << shift && i < f->n_x; i++)
                        high = fmax(high, usi_field_point(f, i, j).z);
                assert_true(usi_field_peak(f, level, u << shift, v << shift) == high);
            }
        }
    }
    us_height_field_destroy(f);
}

// No corner of a cell is higher than the cap of any block that has the cell in it.
static void caps_are_over_all_of_their_cells(void **state) {
    (void)state;
    us_height_field *f = make_ground(300, 70, 1, 1, 5);
    assert_int_equal(f->n_cap, 6);  // 299 by 69 cells, 75 by 18, 19 by 5, 5 by 2, 2 by 1, 1
    const float *cap = f->cap;
    for (int32_t level = 0; level < f->n_cap; level++) {
        for (int32_t j = 0; j < f->n_y - 1; j++) {
            for (int32_t i = 0; i < f->n_x - 1; i++) {
                const double high = (double)cap[usi_cap_index(f->n_x, level, i >> 2 * level, j >> 2 * level)];
                for (int k = 0; k < 4; k++)
                    assert_true(usi_field_point(f, i + (k & 1), j + (k >> 1)).z - f->low < high);
                assert_true(high <= (f->high - f->low) * (1 + 1e-6));
            }
        }
        cap += (size_t)16 * (size_t)usi_cap_fours(f->n_x, level) * (size_t)usi_cap_fours(f->n_y, level);
    }
    us_height_field_destroy(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_stepped_over_change_no_hit),
        cmocka_unit_test(peaks_are_the_maxima_of_their_cells),
        cmocka_unit_test(caps_are_over_all_of_their_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

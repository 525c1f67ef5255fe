// Several rays over a height field at once: eight walk over blocks and cells in floats, each in its own lane,
// up to the place where they may meet the ground; from there on they go exactly, four at a time, in doubles.
//
// The walk in floats decides nothing but how far a ray is surely above the ground. Its heights are caps:
// maxima of cells, of blocks of 4 by 4 cells, of 4 by 4 such blocks and so on, rounded up, and a margin is
// added for all that floats leave out. So a ray has the same hit, bit for bit, in any packet, in any lane,
// and alone (ray_field.c).
//
//     lane       0           1           2           3             each step: over the block that the lane is
//     in, if level      2           2           0           1             it is above it; otherwise one level
//     down, to where
//                |_______    |_______    ||          |__           it comes down to the block's height
//
// With a block left behind, the larger one is tried again where it, too, is left. Columns and rows are
// counted in the direction of the ray. For rays towards less, column k is column k ^ (2^m - 1) of the field,
// so that blocks are the same from both sides.
//
// How much floats leave out: with columns up to M = 2^m a place is known to 8 units in the last place of M, d
// cells. Over that the ground rises by no more than its whole relief times d, along each axis; heights over
// the lowest one are known to a few units in the last place of the largest that occurs.
//
// What is rare is left to the walk of one ray: rays that begin beside the rectangle or low over the ground.
#include <float.h>

#include "geom/geom__ray_field.h"

#ifdef __AVX2__

#include <stdint.h>
#include <string.h>

#include "math/v4_functions.h"

enum { LANES = 4, PAIR = 2, PACKETS = 2 * PAIR };

typedef int32_t int4 __attribute__((vector_size(16)));
typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));

// A field as packets see it.
typedef struct packet_field {
    const us_height_field *f;
    us_vec3 half;
    double per_x, per_y, bottom;
    float slack[2];   // m: what floats leave out, without reach and for each metre of it
    i8 first, width;  // of each level's fours of blocks in the caps: where they begin, how many are in a row
    int32_t mirror, top;  // 2^m - 1; the highest level
} packet_field;

// An axis of the grid as the walk goes along it: the ray leaves column k at leave + k apart, and is over
// column at + t rate at t.
typedef struct packet_axis {
    usi_v4 leave, apart, at, rate;
    usi_v4 sign, shift;  // column k of the walk is column shift + sign k of the field
    usi_v4 last, k;
} packet_axis;

typedef struct ray_quad {
    packet_axis x, y;
    usi_v4 ox, oy, oz, dx, dy, dz;
    usi_v4 down;  // 1 / dz
    usi_v4 t, end;
    usi_v4i waits;  // lanes whose cell is to be met
    usi_v4 range, nx, ny, nz;
    usi_v4i starts;  // lanes whose walk begins where the ray begins
    int plain;       // lanes for the walk of one ray
} ray_quad;

// The same of eight lanes in floats.
typedef struct axis8 {
    f8 at, rate, apart;
    i8 flip, last, k;
} axis8;

typedef struct flight {
    axis8 x, y;
    f8 z, dz, down;  // height over the field's lowest point, less the margin; 1 / dz where it is negative
    f8 t, end;
    i8 level, flies;
} flight;

static inline int mask_of(usi_v4i a) { return _mm256_movemask_pd((__m256d)a); }
static inline int mask8(i8 a) { return _mm256_movemask_ps((__m256)a); }
static inline usi_v4 floor4(usi_v4 a) { return (usi_v4)_mm256_floor_pd((__m256d)a); }
static inline usi_v4 choose(usi_v4i mask, usi_v4 a, usi_v4 b) {
    return (usi_v4)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)mask);
}
static inline f8 choose8(i8 mask, f8 a, f8 b) {
    return (f8)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
}
static inline i8 choose_int(i8 mask, i8 a, i8 b) {
    return (i8)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)mask);
}
static inline f8 min8(f8 a, f8 b) { return (f8)_mm256_min_ps((__m256)a, (__m256)b); }
static inline f8 max8(f8 a, f8 b) { return (f8)_mm256_max_ps((__m256)a, (__m256)b); }
static inline i8 min_int(i8 a, i8 b) { return (i8)_mm256_min_epi32((__m256i)a, (__m256i)b); }
static inline i8 max_int(i8 a, i8 b) { return (i8)_mm256_max_epi32((__m256i)a, (__m256i)b); }
static inline i8 whole(f8 a) { return (i8)_mm256_cvttps_epi32((__m256)a); }
static inline f8 number(i8 a) { return (f8)_mm256_cvtepi32_ps((__m256i)a); }
static inline i8 all_int(int32_t a) { return (i8)_mm256_set1_epi32(a); }
static inline f8 all8(float a) { return (f8)_mm256_set1_ps(a); }
static inline i8 right(i8 a, i8 by) { return (i8)_mm256_srlv_epi32((__m256i)a, (__m256i)by); }
static inline i8 left(i8 a, i8 by) { return (i8)_mm256_sllv_epi32((__m256i)a, (__m256i)by); }
static inline i8 look_up(i8 table, i8 at) {
    return (i8)_mm256_permutevar8x32_epi32((__m256i)table, (__m256i)at);
}

static packet_field field_of(const us_height_field *f) {
    packet_field p = {.f = f,
                      .half = usi_field_half(f),
                      .per_x = 1 / f->dx,
                      .per_y = 1 / f->dy,
                      .bottom = usi_field_bottom(f),
                      .mirror = (int32_t)((1u << f->cap_bits) - 1),
                      .top = f->n_cap - 1};
    const double relief = f->high - f->low, place = 8 * (double)FLT_EPSILON * (double)(1u << f->cap_bits);
    p.slack[0] = (float)(4 * relief * (place + 4 * (double)FLT_EPSILON) + usi_field_margin(f, 1));
    p.slack[1] = 8 * FLT_EPSILON;
    int32_t first = 0;
    for (int32_t level = 0; level < f->n_cap; level++) {
        p.first[level] = first;
        p.width[level] = usi_cap_fours(f->n_x, level);
        first += usi_cap_fours(f->n_x, level) * usi_cap_fours(f->n_y, level);
    }
    return p;
}

static packet_axis axis_of(usi_v4 o, usi_v4 d, double spacing, double per, int32_t n) {
    const double half = 0.5 * (n - 1);
    const usi_v4 place = o * per + half, apart = spacing / usi_v4_abs(d), zero = usi_v4_zero();
    const usi_v4i is_back = d < zero, is_none = d == zero;
    packet_axis a = {.at = choose(is_back, -place, place)};
    a.apart = choose(is_none, zero, apart);
    a.leave = choose(is_none, usi_v4_all(INFINITY), (1 - a.at) * apart);
    a.rate = usi_v4_abs(d) * per;
    a.sign = choose(is_back, usi_v4_all(-1), usi_v4_all(1));
    a.shift = choose(is_back, usi_v4_all(-1), zero);
    a.last = choose(is_back, usi_v4_all(-1), usi_v4_all(n - 2));
    return a;
}

static inline usi_v4 leave_at(const packet_axis *a, usi_v4 k) { return a->leave + k * a->apart; }

static inline usi_v4 clamp4(usi_v4 x, usi_v4 low, usi_v4 high) {
    return usi_v4_min(usi_v4_max(x, low), high);
}

// The column at t, between two columns; one that is left at t itself does not count as left.
static inline usi_v4 column_at(const packet_axis *a, usi_v4 t, usi_v4 from, usi_v4 to) {
    const usi_v4 one = usi_v4_all(1), zero = usi_v4_zero();
    usi_v4 k = clamp4(floor4(a->at + t * a->rate), from, to), left = leave_at(a, k);
    k += choose((k < to) & (left < t), one, zero);
    left = leave_at(a, k - 1);
    k -= choose((k > from) & ~(left < t), one, zero);
    return k;
}

// ---------------------------------------------------------------- in floats

static inline __attribute__((always_inline)) i8 columns_by(const axis8 *a, f8 t, i8 end) {
    return min_int(max_int(whole(a->at + t * a->rate), a->k), end - 1);
}

// One block of every lane that flies. Returns those that have come down to a cell which they may meet.
static inline __attribute__((always_inline)) i8 fly(const packet_field *f, flight *p) {
    const i8 shift = p->level + p->level, one = all_int(1);
    const i8 u = right(p->x.k, shift), v = right(p->y.k, shift);
    const i8 end_x = left(u + one, shift), end_y = left(v + one, shift);
    const i8 i = right(p->x.k ^ p->x.flip, shift), j = right(p->y.k ^ p->y.flip, shift);
    const i8 fours = look_up(f->first, p->level) + (j >> 2) * look_up(f->width, p->level) + (i >> 2);
    const i8 index = (fours << 4) | (j & all_int(3)) << 2 | (i & all_int(3));
    const f8 high = (f8)_mm256_i32gather_ps(f->f->cap, (__m256i)index, 4);
    const f8 to_x = (number(end_x) - p->x.at) * p->x.apart, to_y = (number(end_y) - p->y.at) * p->y.apart;
    const f8 leave = max8(p->t, min8(p->end, min8(to_x, to_y)));
    const i8 is_down = p->dz<all8(0), is_above = p->z + choose8(is_down, leave, p->t) * p->dz> high;
    const i8 is_column = to_x <= to_y;
    // To where the block ends, or to where the ray comes down to its height.
    const f8 to_high = min8(leave, max8(p->t, (high - p->z) * p->down));
    const f8 t = choose8(is_above, leave, choose8(is_down, to_high, p->t));
    const i8 by_x = columns_by(&p->x, t, end_x), by_y = columns_by(&p->y, t, end_y);
    const i8 next_x = choose_int(is_above & is_column, end_x, by_x),
             next_y = choose_int(is_above & ~is_column, end_y, by_y);
    const i8 is_out = (choose_int(is_column, u, v) & all_int(3)) == all_int(3);
    const i8 level = choose_int(is_above, min_int(p->level - is_out, all_int(f->top)), p->level - one);
    // What leaves the rectangle is looked at exactly.
    const i8 goes_on = p->flies & (~is_above | (leave < p->end)),
             is_gone = (next_x > p->x.last) | (next_y > p->y.last), is_low = level < all_int(0);
    p->t = choose8(goes_on, t, p->t);
    p->flies = goes_on & ~is_gone & ~is_low;
    p->x.k = choose_int(p->flies, next_x, p->x.k);
    p->y.k = choose_int(p->flies, next_y, p->y.k);
    p->level = choose_int(p->flies, level, p->level);
    return goes_on & (is_gone | is_low);
}

static inline f8 floats(usi_v4 low, usi_v4 high) {
    return (f8)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high), _mm256_cvtpd_ps((__m256d)low));
}
static inline i8 masks(usi_v4i low, usi_v4i high) {
    return (i8)_mm256_permutevar8x32_epi32(
        (__m256i)_mm256_shuffle_ps((__m256)low, (__m256)high, _MM_SHUFFLE(2, 0, 2, 0)),
        _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7));
}
static inline usi_v4 doubles(f8 a, int half) {
    return (usi_v4)_mm256_cvtps_pd(half ? _mm256_extractf128_ps((__m256)a, 1)
                                        : _mm256_castps256_ps128((__m256)a));
}
static inline usi_v4i wide_mask(i8 a, int half) {
    return (usi_v4i)_mm256_cvtepi32_epi64(half ? _mm256_extracti128_si256((__m256i)a, 1)
                                               : _mm256_castsi256_si128((__m256i)a));
}

// Columns of the exact walk are -1 - i where the ray goes towards less, those of the flight mirror ^ i.
static axis8 axis8_of(const packet_axis *a, const packet_axis *b, int32_t mirror) {
    const usi_v4i is_back_a = a->sign < usi_v4_zero(), is_back_b = b->sign < usi_v4_zero();
    const usi_v4 turned = usi_v4_all(mirror + 1.0), zero = usi_v4_zero();
    const usi_v4 shift_a = choose(is_back_a, turned, zero), shift_b = choose(is_back_b, turned, zero);
    axis8 r = {.at = floats(a->at + shift_a, b->at + shift_b),
               .rate = floats(a->rate, b->rate),
               .flip = masks(is_back_a, is_back_b) & all_int(mirror),
               .last = whole(floats(a->last + shift_a, b->last + shift_b)),
               .k = whole(floats(a->k + shift_a, b->k + shift_b))};
    r.apart = choose8(r.rate > all8(0), min8(floats(a->apart, b->apart), all8(FLT_MAX)), all8(FLT_MAX));
    return r;
}

// The flight of two packets from where they are; `open`: the lanes that go on.
static flight take_off(const packet_field *f, const ray_quad *p, const usi_v4i *open, int32_t level) {
    const ray_quad *q = p + 1;
    const double low = f->f->low;
    flight w = {.x = axis8_of(&p->x, &q->x, f->mirror),
                .y = axis8_of(&p->y, &q->y, f->mirror),
                .dz = floats(p->dz, q->dz),
                .t = floats(p->t, q->t),
                .end = floats(p->end, q->end),
                .level = all_int(level),
                .flies = masks(open[0], open[1])};
    const f8 z = floats(p->oz - low, q->oz - low);
    // Neither begun too late nor ended too early, whatever was rounded.
    w.t -= w.t * FLT_EPSILON;
    w.end = min8(w.end + w.end * (2 * FLT_EPSILON), all8(FLT_MAX));
    w.z = z - (all8(f->slack[0]) + f->slack[1] * max8(z, -z));
    w.down = choose8(w.dz < all8(0), floats(p->down, q->down), all8(0));
    return w;
}

// The cell at the end of the flight, and when it was entered, of the lanes that have come down. A lane that
// has not moved keeps its cell: also one that a ray through a corner is in for no time may have the hit.
static inline void land(ray_quad *p, usi_v4 flown, usi_v4i is_low) {
    const usi_v4i has_moved = flown > p->t;
    const usi_v4 one = usi_v4_all(1), t = usi_v4_min(usi_v4_max(flown, p->t), p->end);
    const usi_v4 x = choose(has_moved, column_at(&p->x, t, p->x.k, p->x.last + 1), p->x.k),
                 y = choose(has_moved, column_at(&p->y, t, p->y.k, p->y.last + 1), p->y.k);
    const usi_v4 t_x = choose(x > p->x.k, leave_at(&p->x, x - one), p->t),
                 t_y = choose(y > p->y.k, leave_at(&p->y, y - one), p->t);
    p->waits = is_low & (x <= p->x.last) & (y <= p->y.last);
    p->t = usi_v4_max(p->t, usi_v4_max(t_x, t_y));
    p->x.k = choose(p->waits, x, p->x.k);
    p->y.k = choose(p->waits, y, p->y.k);
}

// ---------------------------------------------------------------- cells

typedef double lane_pair __attribute__((vector_size(16)));
typedef double pair_unaligned __attribute__((vector_size(16), may_alias, aligned(8)));

// The first corner of each lane's cell, as an index of heights.
static inline int4 cell_index(const packet_field *f, const ray_quad *p) {
    const usi_v4 i = p->x.shift + p->x.sign * p->x.k, j = p->y.shift + p->y.sign * p->y.k;
    return __builtin_convertvector(j * (double)f->f->n_x + i, int4);
}

// Height at t over a plane through (x, y, z).
static inline usi_v4 above4(const ray_quad *p, usi_v4 x, usi_v4 y, usi_v4 z, usi_v4 gx, usi_v4 gy, usi_v4 t) {
    const usi_v4 px = p->ox + t * p->dx, py = p->oy + t * p->dy, pz = p->oz + t * p->dz;
    return pz - (z + gx * (px - x) + gy * (py - y));
}

// The cells of all lanes that wait. Returns those that meet nothing there and go on to the next cell.
static inline __attribute__((always_inline)) usi_v4i meet(const packet_field *f, ray_quad *p) {
    const us_height_field *h = f->f;
    const usi_v4 zero = usi_v4_zero(), i = p->x.shift + p->x.sign * p->x.k,
                 j = p->y.shift + p->y.sign * p->y.k;
    const usi_v4 to_x = leave_at(&p->x, p->x.k), to_y = leave_at(&p->y, p->y.k);
    const usi_v4 leave = usi_v4_max(p->t, usi_v4_min(p->end, usi_v4_min(to_x, to_y)));
    const int4 at = cell_index(f, p);
    usi_v4 low_row[2], corner[4];
    lane_pair row[4][2];
    for (int lane = 0; lane < LANES; lane++) {
        row[lane][0] = *(const pair_unaligned *)(h->height + at[lane]);
        row[lane][1] = *(const pair_unaligned *)(h->height + at[lane] + h->n_x);
    }
    for (int r = 0; r < 2; r++) {
        low_row[0] = __builtin_shufflevector(row[0][r], row[2][r], 0, 1, 2, 3);
        low_row[1] = __builtin_shufflevector(row[1][r], row[3][r], 0, 1, 2, 3);
        corner[2 * r] = __builtin_shufflevector(low_row[0], low_row[1], 0, 4, 2, 6);
        corner[2 * r + 1] = __builtin_shufflevector(low_row[0], low_row[1], 1, 5, 3, 7);
    }
    const usi_v4 near = corner[0], far = corner[3];
    const usi_v4 x = (i - 0.5 * (h->n_x - 1)) * h->dx, y = (j - 0.5 * (h->n_y - 1)) * h->dy;
    const usi_v4 side = (p->oy - y) * f->per_y - (p->ox - x) * f->per_x,
                 rate = p->dy * f->per_y - p->dx * f->per_x;
    const usi_v4 cross = choose(rate != zero, -side / rate, usi_v4_all(INFINITY)),
                 middle = choose((cross > p->t) & (cross < leave), cross, leave);
    const usi_v4 piece[3] = {p->t, middle, leave};
    // Of the two pieces the first that has a place not above its triangle; what follows is of that one.
    usi_v4i open = p->waits, is_first = {0, 0, 0, 0};
    usi_v4 gx[2], gy[2], before[2], after[2];
    for (int k = 0; k < 2; k++) {
        const usi_v4i is_upper = side + rate * (0.5 * (piece[k] + piece[k + 1])) > zero;
        const usi_v4 other = choose(is_upper, corner[2], corner[1]);
        gx[k] = choose(is_upper, far - other, other - near) * f->per_x;
        gy[k] = choose(is_upper, other - near, far - other) * f->per_y;
        before[k] = above4(p, x, y, near, gx[k], gy[k], piece[k]);
        after[k] = above4(p, x, y, near, gx[k], gy[k], piece[k + 1]);
        const usi_v4i is_hit = open & ((before[k] <= zero) | (after[k] <= zero));
        if (k == 0) is_first = is_hit;
        open &= ~is_hit;
    }
    const usi_v4i hits = p->waits & ~open;
    if (mask_of(hits)) {
        const usi_v4 from = choose(is_first, before[0], before[1]), to = choose(is_first, after[0], after[1]),
                     begin = choose(is_first, piece[0], piece[1]), end = choose(is_first, piece[1], piece[2]),
                     slope_x = choose(is_first, gx[0], gx[1]), slope_y = choose(is_first, gy[0], gy[1]);
        const usi_v4 share = choose(from <= zero, zero, from / (from - to));
        const usi_v4 inverse = 1 / usi_v4_sqrt(slope_x * slope_x + slope_y * slope_y + usi_v4_all(1));
        p->range = choose(hits, begin + share * (end - begin), p->range);
        p->nx = choose(hits, inverse * -slope_x, p->nx);
        p->ny = choose(hits, inverse * -slope_y, p->ny);
        p->nz = choose(hits, inverse, p->nz);
    }
    const usi_v4i is_column = to_x <= to_y;
    const usi_v4 next_x = p->x.k + choose(is_column, usi_v4_all(1), zero),
                 next_y = p->y.k + choose(is_column, zero, usi_v4_all(1));
    open &= (leave < p->end) & (next_x <= p->x.last) & (next_y <= p->y.last);
    p->x.k = choose(open, next_x, p->x.k);
    p->y.k = choose(open, next_y, p->y.k);
    p->t = choose(open, leave, p->t);
    return open;
}

// ---------------------------------------------------------------- packets

static usi_v4 first_column(const packet_axis *a, usi_v4 x, double half, double per, int32_t n) {
    const usi_v4 c = clamp4(floor4((x + half) * per), usi_v4_zero(), usi_v4_all(n - 2));
    return a->shift + a->sign * c;
}

// Four rays. Returns the lanes that begin over the rectangle.
static inline usi_v4i start(const packet_field *f, ray_quad *p, const usi_ray *ray, const double *range) {
    const us_height_field *h = f->f;
    const usi_v4 zero = usi_v4_zero();
    usi_v4 a[4], b[4];
    const usi_v4 limit = *(const usi_v4_unaligned *)range;
    const double *at = &ray->o.x;
    enum { NEXT = sizeof(usi_ray) / sizeof(double) };
    usi_v4_transpose(*(const usi_v4_unaligned *)at, *(const usi_v4_unaligned *)(at + NEXT),
                     *(const usi_v4_unaligned *)(at + 2 * NEXT), *(const usi_v4_unaligned *)(at + 3 * NEXT),
                     a);
    at += 2;
    usi_v4_transpose(*(const usi_v4_unaligned *)at, *(const usi_v4_unaligned *)(at + NEXT),
                     *(const usi_v4_unaligned *)(at + 2 * NEXT), *(const usi_v4_unaligned *)(at + 3 * NEXT),
                     b);
    p->ox = a[0];
    p->oy = a[1];
    p->oz = a[2];
    p->dx = a[3];
    p->dy = b[2];
    p->dz = b[3];
    p->x = axis_of(p->ox, p->dx, h->dx, f->per_x, h->n_x);
    p->y = axis_of(p->oy, p->dy, h->dy, f->per_y, h->n_y);
    p->range = usi_v4_all(INFINITY);
    p->nx = p->ny = p->nz = zero;
    p->waits = (usi_v4i){0, 0, 0, 0};
    const usi_v4 high = usi_v4_all(h->high), half_x = usi_v4_all(f->half.x), half_y = usi_v4_all(f->half.y);
    const usi_v4i is_down = p->dz<zero, is_up = p->dz> zero, is_over = (p->oz >= high) & is_down,
                  is_past = ~is_over & ((p->oz > high) | ((p->oz == high) & is_up));
    // Down to the level of the peak, and up to it.
    p->down = 1 / p->dz;
    const usi_v4 to_high = (high - p->oz) * p->down;
    p->t = choose(is_over, to_high, zero);
    const usi_v4 x = p->ox + p->t * p->dx, y = p->oy + p->t * p->dy;
    p->end = usi_v4_min(choose(is_up, to_high, usi_v4_all(INFINITY)), limit);
    const usi_v4 to_bottom = usi_v4_max(p->t, (f->bottom - p->oz) * p->down);
    p->end = choose(is_down, usi_v4_min(p->end, to_bottom), p->end);
    // Whether a ray begins beside the rectangle, or too far away to count columns.
    const usi_v4 far = usi_v4_all(1e9);
    const usi_v4i is_beside = ~((usi_v4_abs(p->ox) < half_x) & (usi_v4_abs(p->oy) < half_y)) |
                              ~((usi_v4_abs(p->x.at) < far) & (usi_v4_abs(p->y.at) < far));
    const usi_v4i misses =
        is_past | (is_over & ~((p->t <= limit) & (usi_v4_abs(x) <= half_x) & (usi_v4_abs(y) <= half_y)));
    p->x.k = first_column(&p->x, x, f->half.x, f->per_x, h->n_x);
    p->y.k = first_column(&p->y, y, f->half.y, f->per_y, h->n_y);
    const usi_v4i begins = ~is_beside & ~misses;
    p->x.k = choose(begins, p->x.k, p->x.last);
    p->y.k = choose(begins, p->y.k, p->y.last);
    p->plain = mask_of(is_beside);
    p->starts = ~(is_over & (p->t > zero));
    return begins;
}

static inline void finish(const packet_field *f, const ray_quad *p, const usi_ray *ray, const double *range,
                          us_ray_hit *out) {
    usi_v4 row[LANES];
    usi_v4_transpose(p->range, p->nx, p->ny, p->nz, row);
    for (int32_t lane = 0; lane < LANES; lane++)
        *(usi_v4_unaligned *)&out[lane] = row[lane];
    // What is met where the ray begins: it may begin under the ground.
    const int plain = p->plain | mask_of(p->starts & (p->range == usi_v4_zero()));
    for (int32_t lane = 0; plain && lane < LANES; lane++) {
        if (plain >> lane & 1) out[lane] = usi_ray_cast_field(f->f, ray[lane], range[lane], 0);
    }
}

_Static_assert(sizeof(us_ray_hit) == sizeof(usi_v4), "a hit is written at once");
_Static_assert(sizeof(usi_ray) == 6 * sizeof(double), "a ray is read in two");

// Two flights, and the four packets in them: what one waits for, another has ready.
static void cast_batch(const packet_field *f, const usi_ray *ray, const double *range, us_ray_hit *out) {
    enum { START_LEVEL = 2, CELLS = 3 };
    ray_quad p[PACKETS];
    usi_v4i open[PACKETS];
    for (int k = 0; k < PACKETS; k++)
        open[k] = start(f, &p[k], ray + k * LANES, range + k * LANES);
    int32_t level = f->top < START_LEVEL ? f->top : START_LEVEL;
    while (mask_of(open[0] | open[1] | open[2] | open[3])) {
        flight a = take_off(f, &p[0], &open[0], level), b = take_off(f, &p[2], &open[2], level);
        i8 low_a = all_int(0), low_b = low_a;
        while (mask8(a.flies | b.flies)) {
            low_a |= fly(f, &a);
            low_b |= fly(f, &b);
        }
        for (int k = 0; k < PACKETS; k++) {
            land(&p[k], doubles(k < PAIR ? a.t : b.t, k % PAIR),
                 wide_mask(k < PAIR ? low_a : low_b, k % PAIR));
            open[k] = p[k].waits;
        }
        // Mostly a ray that has come that low meets the first cell, or one of the next two.
        for (int i = 0; i < CELLS; i++) {
            for (int k = 0; k < PACKETS; k++) {
                if (mask_of(p[k].waits)) open[k] = p[k].waits = meet(f, &p[k]);
            }
        }
        level = 0;
    }
    for (int k = 0; k < PACKETS; k++)
        finish(f, &p[k], ray + k * LANES, range + k * LANES, out + k * LANES);
}

bool usi_ray_cast_packets(const us_height_field *field, int32_t n, const usi_ray *ray, const double *range,
                          us_ray_hit *out) {
    enum { BATCH = PACKETS * LANES };
    if (field->n_cap == 0 || n < LANES) return false;
    const packet_field f = field_of(field);
    int32_t i = 0;
    for (; i + BATCH <= n; i += BATCH)
        cast_batch(&f, ray + i, range + i, out + i);
    if (i == n) return true;
    // The rest, and the last one again and again.
    usi_ray rest[BATCH];
    double until[BATCH];
    us_ray_hit hit[BATCH];
    for (int32_t k = 0; k < BATCH; k++) {
        rest[k] = ray[i + k < n ? i + k : n - 1];
        until[k] = range[i + k < n ? i + k : n - 1];
    }
    cast_batch(&f, rest, until, hit);
    memcpy(out + i, hit, (size_t)(n - i) * sizeof *out);
    return true;
}

#else

bool usi_ray_cast_packets(const us_height_field *field, int32_t n, const usi_ray *ray, const double *range,
                          us_ray_hit *out) {
    (void)field;
    (void)n;
    (void)ray;
    (void)range;
    (void)out;
    return false;
}

#endif

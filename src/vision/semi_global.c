// Semi-global matching (Hirschmueller 2008): the cost of a disparity is summed along paths that end in the
// pixel, and a path pays p1 for a step of the disparity by one, and p2 for a larger one:
//
//     L(x, d) = C(x, d) + T(x, d),   T = min(L(x', d), L(x', d +- 1) + p1, min L(x') + p2) - min L(x')
//
// x' is the pixel before x on the path. The eight paths are done in two sweeps over the picture:
//
//     first sweep, downwards       second sweep, upwards
//         0  1  2                      .  .  .
//          \ | /                       .  x--3
//         3--x  .                        /|\                     .
//         .  .  .                       2 1 0
//
// Kept of a path is M = min(L - min L, p2), a byte, since T = min(M(d), M(d +- 1) + p1): min L is 0 in M, and
// nothing above p2 matters. Beyond the first and last disparity M is p2; beyond the picture it is 0, where a
// path begins. T is at most p2, so that the sum of L over the paths is n_path C plus sums of T, which are
// written by the first sweep and read by the second; there the winner is found while the sums are still at
// hand.
//
// 32 disparities go in one vector. Neighbours d +- 1 of the three paths from the row before are read from
// memory one byte aside: that is what the guard bytes between pixels are for. The path along the row stays in
// registers, and moves its lanes.
//
// Sums along paths say which disparity is best, but little about the fraction: a step costs p1 on either
// side, so that the sums of the neighbours are alike, and the fraction is drawn to 0 (by 0.25 pixels at
// most). Refined is therefore by the costs themselves, summed over 5 x 5 pixels at the disparity of the
// middle: that leaves 0.04.
//
// Threads: bands of USI_BAND rows are handed out in order. A band is done in blocks of BLOCK pixels, all its
// rows in one block after the other, each row a pixel behind the row before it:
//
//     row 0   | block 0 | block 1 | ...
//     row 1  | block 0 | block 1 | ...
//     row 2 | block 0 | block 1 | ...
//
// and a band stays behind the band before it by a block. Paths of the rows inside a band stay with the
// thread, in two slots that take turns; only those of its last row go from one processor's memory to
// another's. Everything is integer, so the result does not depend on who does what.
#include <string.h>

#include "vision/vision__lanes.h"
#include "vision/vision__stereo.h"
#include "vision/vision__winner.h"

// BLOCK: pixels of a block. N_BEFORE: paths that come from it. REACH: of
// the window that refines.
enum { BLOCK = 32, N_BEFORE = 3, REACH = 2 };

#define INLINE static inline __attribute__((always_inline))

typedef struct sweep {
    us_stereo *s;
    bool is_second;
} sweep;

typedef struct row_job {
    us_stereo *s;
    const uint8_t *before;  // paths of the row before; pixel -1 first
    uint8_t *paths;         // of this row
    uint8_t *along;
    const uint8_t *cost;
    uint16_t *sum;
    size_t pixel;  // bytes from one pixel's paths to the next
    float *result;
    usi_right_view right;
} row_job;

// Lanes of M of the four paths, and from them T.
INLINE usi_u8x32 step(usi_u8x32 same, usi_u8x32 below, usi_u8x32 above, usi_u8x32 p1) {
    return usi_u8_min(same, usi_u8_min(below, above) + p1);
}
INLINE usi_u8x32 step_from(const uint8_t *M, usi_u8x32 p1) {
    return step(usi_u8_load(M), usi_u8_load(M - 1), usi_u8_load(M + 1), p1);
}

// One pixel: reads M of the pixels before, writes M of this one, adds T to `sum`. along: M of the path along
// the row, which is replaced.
INLINE void do_pixel(const row_job *job, int32_t x, int32_t way, usi_u8x32 *along, uint16_t *sum,
                     int32_t n_vector, bool is_second, bool has_diagonal) {
    const us_stereo *s = job->s;
    const usi_u8x32 p1 = usi_u8_all((uint8_t)s->plan.p1), p2 = usi_u8_all((uint8_t)s->plan.p2);
    const size_t lanes = (size_t)s->plan.n_lane + USI_GUARD;
    const uint8_t *from[N_BEFORE] = {job->before + (size_t)(x + 1 - way) * job->pixel,
                                     job->before + (size_t)(x + 1) * job->pixel + lanes,
                                     job->before + (size_t)(x + 1 + way) * job->pixel + 2 * lanes};
    const uint8_t *cost = job->cost + (size_t)x * s->plan.n_lane;
    const uint8_t n_path_log = has_diagonal ? 3 : 2;
    usi_u8x32 L[4][USI_MAX_VECTOR],
        least[4] = {~(usi_u8x32){0}, ~(usi_u8x32){0}, ~(usi_u8x32){0}, ~(usi_u8x32){0}};
    usi_u8x32 last = p2;  // M of the path along the row, one vector back
#pragma GCC unroll 4
    for (int32_t v = 0; v < n_vector; v++) {
        const usi_u8x32 C = usi_u8_load(cost + 32 * v), M = along[v];
        const usi_u8x32 after = v + 1 < n_vector ? along[v + 1] : p2;
        usi_u8x32 T[4] = {{0}};
        T[3] = step(M, usi_u8_up(last, M), usi_u8_down(M, after), p1);
        T[1] = step_from(from[1] + 32 * v, p1);
        if (has_diagonal) {
            T[0] = step_from(from[0] + 32 * v, p1);
            T[2] = step_from(from[2] + 32 * v, p1);
        }
        last = M;
        const usi_u8x32 a = T[0] + T[1], b = T[2] + T[3];
        usi_u16x16 low = usi_u16_low(a) + usi_u16_low(b), high = usi_u16_high(a) + usi_u16_high(b);
        if (is_second) {
            const uint16_t *first = job->sum + (size_t)x * s->plan.n_lane + 32 * v;
            low += usi_u16_load(first) + (usi_u16_low(C) << n_path_log);
            high += usi_u16_load(first + 16) + (usi_u16_high(C) << n_path_log);
        }
        usi_u16_store(sum + 32 * v, low);
        usi_u16_store(sum + 32 * v + 16, high);
        for (int k = 0; k < 4; k++) {
            L[k][v] = usi_u8_add_saturated(C, T[k]);
            least[k] = usi_u8_min(least[k], L[k][v]);
        }
    }
    usi_u8_smallest_of_four(least);
    uint8_t *to = job->paths + (size_t)(x + 1) * job->pixel;
#pragma GCC unroll 4
    for (int32_t v = 0; v < n_vector; v++) {
        along[v] = usi_u8_min(L[3][v] - least[3], p2);
        usi_u8_store(to + lanes + 32 * v, usi_u8_min(L[1][v] - least[1], p2));
        if (!has_diagonal) continue;
        usi_u8_store(to + 32 * v, usi_u8_min(L[0][v] - least[0], p2));
        usi_u8_store(to + 2 * lanes + 32 * v, usi_u8_min(L[2][v] - least[2], p2));
    }
}

// Pixels begin to end - 1 of a row, counted in the direction of the sweep.
INLINE void do_pixels(const row_job *job, int32_t begin, int32_t end, int32_t n_vector, bool is_second,
                      bool has_diagonal) {
    us_stereo *s = job->s;
    const int32_t n = s->plan.n_column, way = is_second ? -1 : 1;
    usi_u8x32 along[USI_MAX_VECTOR];
    uint16_t sum[32 * USI_MAX_VECTOR];
    for (int32_t v = 0; v < n_vector; v++)
        along[v] = usi_u8_load(job->along + 32 * v);
    for (int32_t i = begin; i < end; i++) {
        const int32_t x = is_second ? n - 1 - i : i;
        if (is_second) {
            do_pixel(job, x, way, along, sum, n_vector, true, has_diagonal);
            job->result[s->plan.x0 + x] = usi_pick(s, sum, n_vector, s->plan.x0 + x, false, &job->right);
        } else {
            do_pixel(job, x, way, along, job->sum + (size_t)x * s->plan.n_lane, n_vector, false,
                     has_diagonal);
        }
    }
    for (int32_t v = 0; v < n_vector; v++)
        usi_u8_store(job->along + 32 * v, along[v]);
}

// A copy for each usual number of disparities: 32, 64, 128, and any.
INLINE void do_pixels_of(const row_job *job, int32_t begin, int32_t end, bool is_second, bool has_diagonal) {
    switch (job->s->plan.n_vector) {
    case 1:
        do_pixels(job, begin, end, 1, is_second, has_diagonal);
        break;
    case 2:
        do_pixels(job, begin, end, 2, is_second, has_diagonal);
        break;
    case 4:
        do_pixels(job, begin, end, 4, is_second, has_diagonal);
        break;
    default:
        do_pixels(job, begin, end, job->s->plan.n_vector, is_second, has_diagonal);
        break;
    }
}

static void do_some(const row_job *job, int32_t begin, int32_t end, bool is_second) {
    const bool has_diagonal = job->s->def.n_path == 8;
    if (is_second && has_diagonal) do_pixels_of(job, begin, end, true, true);
    if (is_second && !has_diagonal) do_pixels_of(job, begin, end, true, false);
    if (!is_second && has_diagonal) do_pixels_of(job, begin, end, false, true);
    if (!is_second && !has_diagonal) do_pixels_of(job, begin, end, false, false);
}

static uint8_t *slot_of(const us_stereo *s, int32_t i) {
    return s->path + (size_t)i * s->path_slot + USI_GUARD;
}

// Row r of a band of n_row rows: where its paths come from and go to.
static row_job begin_row(const sweep *w, int32_t band, int32_t r, int32_t n_row, int32_t thread) {
    us_stereo *s = w->s;
    const int32_t i = band * USI_BAND + r, y = w->is_second ? s->def.height - 1 - i : i;
    const int32_t own = s->n_slot + 1 + 2 * thread;
    const size_t volume_row = (size_t)s->plan.n_column * s->plan.n_lane;
    int32_t from = own + ((r + 1) & 1), to = own + (r & 1);
    // Before the first row is the slot that stays 0.
    if (r == 0) from = band == 0 ? s->n_slot : (band - 1) % s->n_slot;
    if (r == n_row - 1) to = band % s->n_slot;
    row_job job = {.s = s,
                   .before = slot_of(s, from),
                   .paths = slot_of(s, to),
                   .along = s->along + (size_t)(thread * USI_BAND + r) * s->plan.n_lane,
                   .cost = s->cost + (size_t)y * volume_row,
                   .sum = s->sum + (size_t)y * volume_row,
                   .pixel = N_BEFORE * ((size_t)s->plan.n_lane + USI_GUARD),
                   .result = s->result + (size_t)y * s->def.width};
    memset(job.along, 0, (size_t)s->plan.n_lane);
    if (w->is_second) job.right = usi_right_begin(s, y, thread, r);
    if (!w->is_second && !s->plan.has_window) usi_census_cost(s, y, s->cost + (size_t)y * volume_row);
    return job;
}

static void band_part(void *context, int32_t band, int32_t thread) {
    const sweep *w = context;
    us_stereo *s = w->s;
    const int32_t n = s->plan.n_column, left = s->def.height - band * USI_BAND,
                  n_row = left < USI_BAND ? left : USI_BAND;
    row_job job[USI_BAND];
    for (int32_t r = 0; r < n_row; r++)
        job[r] = begin_row(w, band, r, n_row, thread);
    for (int32_t begin = 0; begin < n + n_row - 1; begin += BLOCK) {
        const int32_t end = begin + BLOCK;
        if (band > 0 && s->pool)
            usi_pool_wait(&s->progress[(band - 1) * USI_PROGRESS_EACH], end < n ? end + 1 : n);
        for (int32_t r = 0; r < n_row; r++)
            do_some(&job[r], usi_clamp(begin - r, 0, n), usi_clamp(end - r, 0, n), w->is_second);
        if (s->pool)
            atomic_store_explicit(&s->progress[band * USI_PROGRESS_EACH], usi_clamp(end - (n_row - 1), 0, n),
                                  memory_order_release);
    }
}

// Guards are p2, and so is what lies below the first and above the last disparity; the pixels beside the
// picture and the slot before the first row are 0.
static void clear_paths(us_stereo *s) {
    const size_t lanes = (size_t)s->plan.n_lane + USI_GUARD, pixel = N_BEFORE * lanes;
    const int32_t n = s->n_slot + 1 + 2 * usi_pool_n_thread(s->pool);
    memset(s->path, s->plan.p2, (size_t)n * s->path_slot);
    memset(s->path + (size_t)s->n_slot * s->path_slot, 0, s->path_slot);
    for (int32_t k = 0; k < n; k++)
        for (int32_t side = 0; side < 2; side++) {
            uint8_t *at = slot_of(s, k) + (side ? (size_t)(s->plan.n_column + 1) * pixel : 0);
            for (int32_t p = 0; p < N_BEFORE; p++)
                memset(at + (size_t)p * lanes, 0, (size_t)s->plan.n_lane);
        }
}

static void cost_part(void *context, int32_t strip, int32_t thread) {
    usi_window_strip(context, strip, thread);
}

// ---- refinement ----

typedef uint8_t u8x4 __attribute__((vector_size(4), may_alias, aligned(1)));
typedef uint16_t u16x4 __attribute__((vector_size(8)));

// Sums of the costs at d - 1, d, d + 1 (and one more) over 5 x 5 pixels.
static float refine_pixel(const us_stereo *s, int32_t i, int32_t y, int32_t d) {
    u16x4 sum = {0};
    for (int32_t row = y - REACH; row <= y + REACH; row++) {
        const int32_t at_y = usi_clamp(row, 0, s->def.height - 1);
        const uint8_t *costs = s->cost + (size_t)at_y * s->plan.n_column * s->plan.n_lane + d - 1;
        for (int32_t column = i - REACH; column <= i + REACH; column++) {
            const int32_t at = usi_clamp(column, 0, s->plan.n_column - 1);
            sum += __builtin_convertvector(*(const u8x4 *)(costs + (size_t)at * s->plan.n_lane), u16x4);
        }
    }
    return usi_refine(sum[0], sum[1], sum[2]);
}

static void refine_part(void *context, int32_t strip, int32_t thread) {
    us_stereo *s = context;
    (void)thread;
    const float invalid = us_stereo_invalid(&s->def);
    for (int32_t y = strip * USI_STRIP; y < usi_strip_end(s, strip); y++) {
        float *row = s->result + (size_t)y * s->def.width + s->plan.x0;
        for (int32_t i = 0; i < s->plan.n_column; i++) {
            if (row[i] == invalid) continue;
            const int32_t d = usi_whole(row[i]) - s->def.min_disparity;
            if (d > 0 && d < s->def.n_disparity - 1) row[i] += refine_pixel(s, i, y, d);
        }
        usi_right_check(s, y, row - s->plan.x0);
    }
}

void usi_semi_global(us_stereo *s) {
    if (s->plan.has_window) usi_each_strip(s, cost_part);
    clear_paths(s);
    for (int k = 0; k < 2; k++) {
        sweep w = {.s = s, .is_second = k == 1};
        const int32_t n_band = (s->def.height + USI_BAND - 1) / USI_BAND;
        for (int32_t i = 0; i < n_band; i++)
            atomic_store_explicit(&s->progress[i * USI_PROGRESS_EACH], 0, memory_order_relaxed);
        usi_pool_run(s->pool, n_band, 1, band_part, &w);
    }
    usi_each_strip(s, refine_part);
}

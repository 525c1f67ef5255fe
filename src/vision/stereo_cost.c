// Costs of all disparities of a row: Hamming distances of census codes, and sums of windows.
//
// A window's sum is kept up to date instead of summed again (box filter): the sum of each column of the
// window, for each disparity, gains the row that comes and loses the row that goes; along the row the window
// gains a column and loses one. The work per pixel does not depend on the window's size. A strip begins its
// sums anew, so that strips are independent; sums of integers are exact, so that it does not matter where one
// begins.
#include <stdlib.h>
#include <string.h>

#include "vision/vision__lanes.h"
#include "vision/vision__stereo.h"
#include "vision/vision__winner.h"

// Forced inlining: the number of planes is a constant in each copy, and its loop is gone.
#define INLINE static inline __attribute__((always_inline))

INLINE void census_cost(const us_stereo *s, int32_t y, uint8_t *out, int32_t n_plane) {
    const size_t plane = (size_t)s->def.height * s->plan.row, row = (size_t)y * s->plan.row + USI_MARGIN;
    const int32_t n = s->def.n_disparity;
    for (int32_t x = s->plan.x0; x < s->plan.x1; x++) {
        const uint8_t *left = s->code[0] + row + x;
        const uint8_t *right = s->code[1] + row + (s->def.width - 1 - x + s->def.min_disparity);
        for (int32_t d = 0; d < n; d += 32) {
            usi_u8x32 bits = {0};
            for (int32_t k = 0; k < n_plane; k++)
                bits +=
                    usi_u8_count_bits(usi_u8_load(right + d + (size_t)k * plane) ^ left[(size_t)k * plane]);
            usi_u8_store(out + d, bits);
        }
        // Lanes past the last disparity cost so much that no path goes there.
        if (n & 16) memset(out + n, 255, 16);
        out += s->plan.n_lane;
    }
}

void usi_census_cost(const us_stereo *s, int32_t y, uint8_t *out) {
    if (s->plan.n_plane == 3) {
        census_cost(s, y, out, 3);
    } else {
        census_cost(s, y, out, 8);
    }
}

// ---- sums of windows ----

typedef struct window {
    us_stereo *s;
    uint16_t *column;  // [n_column + 2 radius][n_lane], in the order of usi_mixed
    int32_t *texture;  // [n_column + 2 radius]
    int32_t radius, n_vector;
} window;

// Rows of the codes that are compared, at a column's pixel and its first candidate.
typedef struct code_row {
    const uint8_t *left, *right;
} code_row;

static code_row row_of(const us_stereo *s, int32_t y, int32_t plane) {
    const size_t offset = (size_t)plane * (size_t)s->def.height * s->plan.row;
    return (code_row){usi_plane_row(s, s->code[0] + offset, y) + USI_MARGIN,
                      usi_plane_row(s, s->code[1] + offset, y) + USI_MARGIN};
}

// Absolute differences of 32 candidates.
INLINE usi_u8x32 gaps(const code_row row[2], int32_t x, int32_t at, bool has_two) {
    usi_u8x32 r = usi_u8_gap(usi_u8_load(row[0].right + at), usi_u8_all(row[0].left[x]));
    if (has_two) r += usi_u8_gap(usi_u8_load(row[1].right + at), usi_u8_all(row[1].left[x]));
    return r;
}

// Adds a row of absolute differences to the columns of the window, and takes another away.
INLINE void change_columns_of(const window *w, int32_t y_in, int32_t y_out, bool has_out, bool has_two) {
    const us_stereo *s = w->s;
    const code_row in[2] = {row_of(s, y_in, 0), row_of(s, y_in, has_two)};
    const code_row out[2] = {row_of(s, y_out, 0), row_of(s, y_out, has_two)};
    const int32_t cap = s->def.prefilter_cap;
    for (int32_t i = 0; i < s->plan.n_column + 2 * w->radius; i++) {
        const int32_t x = s->plan.x0 - w->radius + i, at = s->def.width - 1 - x + s->def.min_disparity;
        uint16_t *column = w->column + (size_t)i * s->plan.n_lane;
        for (int32_t v = 0; v < w->n_vector; v++) {
            const usi_u8x32 gained = gaps(in, x, at + 32 * v, has_two);
            usi_u16x16 low = usi_u16_load(column + 32 * v) + usi_u16_low(gained);
            usi_u16x16 high = usi_u16_load(column + 32 * v + 16) + usi_u16_high(gained);
            if (has_out) {
                const usi_u8x32 lost = gaps(out, x, at + 32 * v, has_two);
                low -= usi_u16_low(lost);
                high -= usi_u16_high(lost);
            }
            usi_u16_store(column + 32 * v, low);
            usi_u16_store(column + 32 * v + 16, high);
        }
        w->texture[i] += abs(in[0].left[x] - cap);
        if (has_out) w->texture[i] -= abs(out[0].left[x] - cap);
    }
}

static void change_columns(const window *w, int32_t y_in, int32_t y_out, bool has_out) {
    if (w->s->plan.n_plane == 2) {
        change_columns_of(w, y_in, y_out, has_out, true);
    } else {
        change_columns_of(w, y_in, y_out, has_out, false);
    }
}

// Adds column i to the sums of the window, and takes column `out` away (negative: none).
INLINE void change_sums(const window *w, usi_u16x16 *sum, int32_t i, int32_t out) {
    const uint16_t *gained = w->column + (size_t)i * w->s->plan.n_lane;
    for (int32_t v = 0; v < 2 * w->n_vector; v++)
        sum[v] += usi_u16_load(gained + 16 * v);
    if (out < 0) return;
    const uint16_t *lost = w->column + (size_t)out * w->s->plan.n_lane;
    for (int32_t v = 0; v < 2 * w->n_vector; v++)
        sum[v] -= usi_u16_load(lost + 16 * v);
}

// A row of window sums as costs of a byte, for paths.
static void cost_row(const window *w, int32_t y) {
    us_stereo *s = w->s;
    usi_u16x16 sum[2 * USI_MAX_VECTOR] = {{0}};
    uint8_t *out = s->cost + (size_t)y * s->plan.n_column * s->plan.n_lane;
    for (int32_t i = 0; i < 2 * w->radius; i++)
        change_sums(w, sum, i, -1);
    for (int32_t i = 0; i < s->plan.n_column; i++, out += s->plan.n_lane) {
        change_sums(w, sum, i + 2 * w->radius, i - 1);
        for (int32_t v = 0; v < w->n_vector; v++)
            usi_u8_store(out + 32 * v,
                         usi_u8_pack(sum[2 * v] >> s->plan.shift, sum[2 * v + 1] >> s->plan.shift));
        if (s->def.n_disparity & 16) memset(out + s->def.n_disparity, 255, 16);
    }
}

// A row of window sums as disparities: the best of each.
static void match_row(const window *w, int32_t y, int32_t thread) {
    us_stereo *s = w->s;
    usi_u16x16 sum[2 * USI_MAX_VECTOR] = {{0}};
    uint16_t copy[32 * USI_MAX_VECTOR];
    const float invalid = us_stereo_invalid(&s->def);
    float *row = s->result + (size_t)y * s->def.width;
    const usi_right_view right = usi_right_begin(s, y, thread, 0);
    int32_t texture = 0;
    for (int32_t i = 0; i < 2 * w->radius; i++) {
        change_sums(w, sum, i, -1);
        texture += w->texture[i];
    }
    for (int32_t i = 0; i < s->plan.n_column; i++) {
        change_sums(w, sum, i + 2 * w->radius, i - 1);
        texture += w->texture[i + 2 * w->radius] - (i ? w->texture[i - 1] : 0);
        const int32_t x = s->plan.x0 + i;
        row[x] = invalid;
        if (texture < s->def.texture) continue;
        for (int32_t v = 0; v < 2 * w->n_vector; v++)
            usi_u16_store(copy + 16 * v, sum[v]);
        row[x] = usi_pick(s, copy, w->n_vector, x, true, &right);
    }
    usi_right_check(s, y, row);
}

void usi_window_strip(us_stereo *s, int32_t strip, int32_t thread) {
    const int32_t radius = s->def.window / 2, n = s->plan.n_column + 2 * radius;
    window w = {.s = s, .radius = radius, .n_vector = s->plan.n_vector};
    w.column = s->column + (size_t)thread * n * s->plan.n_lane;
    w.texture = s->texture + (size_t)thread * n;
    memset(w.column, 0, (size_t)n * s->plan.n_lane * sizeof w.column[0]);
    memset(w.texture, 0, (size_t)n * sizeof w.texture[0]);
    const int32_t first = strip * USI_STRIP;
    for (int32_t y = first - radius; y < first + radius; y++)
        change_columns(&w, y, y, false);
    for (int32_t y = first; y < usi_strip_end(s, strip); y++) {
        change_columns(&w, y + radius, y - radius - 1, y > first);
        if (s->plan.has_volume) {
            cost_row(&w, y);
        } else {
            match_row(&w, y, thread);
        }
    }
}

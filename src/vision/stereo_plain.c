// Stereo matching as the textbook has it: the fast code is tested against this, and gives the same bytes.
//
// Costs are made pixel by pixel, paths one direction at a time as whole volumes of L, the winner by loops.
// What is shared with the fast code: the settings, the refinement of the winner (usi_refine), the check from
// the right, and the filters before and after.
#include <stdlib.h>
#include <string.h>

#include "vision/vision__stereo.h"
#include "vision/vision__winner.h"

static int32_t grey_at(const us_stereo *s, int side, int32_t x, int32_t y) {
    return usi_plane_row(s, s->grey[side], y)[USI_MARGIN + usi_clamp(x, 0, s->def.width - 1)];
}

static int32_t gradient_at(const us_stereo *s, int side, int32_t x, int32_t y) {
    int32_t sum = 0;
    x = usi_clamp(x, 0, s->def.width - 1);
    y = usi_clamp(y, 0, s->def.height - 1);
    for (int32_t j = -1; j <= 1; j++)
        sum += (j ? 1 : 2) * (grey_at(s, side, x + 1, y + j) - grey_at(s, side, x - 1, y + j));
    return usi_clamp(sum, -s->def.prefilter_cap, s->def.prefilter_cap);
}

static int32_t census_gap(const us_stereo *s, int32_t x_left, int32_t x_right, int32_t y) {
    const int32_t half_width = s->plan.n_plane == 3 ? 2 : 4, half_height = s->plan.n_plane == 3 ? 2 : 3;
    int32_t gap = 0;
    for (int32_t j = -half_height; j <= half_height; j++)
        for (int32_t i = -half_width; i <= half_width; i++) {
            const bool left = grey_at(s, 0, x_left + i, y + j) < grey_at(s, 0, x_left, y);
            const bool right = grey_at(s, 1, x_right + i, y + j) < grey_at(s, 1, x_right, y);
            gap += left != right;
        }
    return gap;
}

static int32_t window_gap(const us_stereo *s, int32_t x_left, int32_t x_right, int32_t y) {
    const int32_t r = s->def.window / 2;
    int32_t sum = 0;
    for (int32_t j = -r; j <= r; j++)
        for (int32_t i = -r; i <= r; i++) {
            sum += abs(gradient_at(s, 0, x_left + i, y + j) - gradient_at(s, 1, x_right + i, y + j));
            if (s->plan.has_volume)
                sum += abs(grey_at(s, 0, x_left + i, y + j) / 4 - grey_at(s, 1, x_right + i, y + j) / 4);
        }
    return sum;
}

static int32_t texture_at(const us_stereo *s, int32_t x, int32_t y) {
    const int32_t r = s->def.window / 2;
    int32_t sum = 0;
    for (int32_t j = -r; j <= r; j++)
        for (int32_t i = -r; i <= r; i++)
            sum += abs(gradient_at(s, 0, x + i, y + j));
    return sum;
}

// The sum of the paths at one pixel and disparity, as the winner sees them.
typedef struct volume {
    us_stereo *s;
    int32_t *L[2];  // [height][n_column][n_disparity]: of one direction
    int32_t n;
} volume;

static size_t at(const volume *v, int32_t i, int32_t y) {
    return ((size_t)y * v->s->plan.n_column + i) * v->n;
}

void usi_path_step(const int32_t *before, const uint8_t *C, int32_t n, int32_t p1, int32_t p2, int32_t *L) {
    int32_t least = INT32_MAX;
    for (int32_t d = 0; before && d < n; d++)
        least = before[d] < least ? before[d] : least;
    for (int32_t d = 0; d < n; d++) {
        L[d] = C[d];
        if (!before) continue;
        int32_t best = least + p2;
        if (before[d] < best) best = before[d];
        if (d > 0 && before[d - 1] + p1 < best) best = before[d - 1] + p1;
        if (d < n - 1 && before[d + 1] + p1 < best) best = before[d + 1] + p1;
        L[d] += best - least;
    }
}

static void add_path(const volume *v, int32_t i, int32_t y, int32_t dx, int32_t dy) {
    const us_stereo *s = v->s;
    int32_t *L = v->L[0] + at(v, i, y), *S = v->L[1] + at(v, i, y);
    const int32_t from_i = i - dx, from_y = y - dy;
    const bool begins = from_i < 0 || from_i >= s->plan.n_column || from_y < 0 || from_y >= s->def.height;
    const int32_t *before = begins ? NULL : v->L[0] + at(v, from_i, from_y);
    usi_path_step(before, s->cost + at(v, i, y), v->n, s->plan.p1, s->plan.p2, L);
    for (int32_t d = 0; d < v->n; d++)
        S[d] += L[d];
}

static void add_direction(const volume *v, int32_t dx, int32_t dy) {
    const us_stereo *s = v->s;
    const bool is_up = dy < 0 || (dy == 0 && dx < 0);
    for (int32_t k = 0; k < s->def.height; k++)
        for (int32_t m = 0; m < s->plan.n_column; m++)
            add_path(v, is_up ? s->plan.n_column - 1 - m : m, is_up ? s->def.height - 1 - k : k, dx, dy);
}

static float pick(const us_stereo *s, const int32_t *S, int32_t x, bool refines,
                  const usi_right_view *right) {
    const int32_t n = s->def.n_disparity;
    int32_t d = 0;
    for (int32_t k = 1; k < n; k++)
        if (S[k] < S[d]) d = k;
    for (int32_t k = 0; s->def.uniqueness > 0 && k < n; k++)
        if (abs(k - d) > 1 && S[k] * (100 - s->def.uniqueness) < S[d] * 100)
            return us_stereo_invalid(&s->def);
    if (s->def.left_right >= 0) usi_right_note(right, x, s->def.min_disparity + d, (uint16_t)S[d]);
    float refined = (float)(s->def.min_disparity + d);
    if (refines && d > 0 && d < n - 1) refined += usi_refine(S[d - 1], S[d], S[d + 1]);
    return refined;
}

static void fill_costs(const volume *v) {
    us_stereo *s = v->s;
    for (int32_t y = 0; y < s->def.height; y++)
        for (int32_t i = 0; i < s->plan.n_column; i++)
            for (int32_t d = 0; d < v->n; d++) {
                const int32_t x = s->plan.x0 + i, x_right = x - s->def.min_disparity - d;
                const int32_t gap =
                    s->plan.has_window ? window_gap(s, x, x_right, y) : census_gap(s, x, x_right, y);
                s->cost[at(v, i, y) + (size_t)d] = (uint8_t)(gap >> s->plan.shift);
                v->L[1][at(v, i, y) + (size_t)d] = s->plan.has_volume ? 0 : gap;
            }
}

// Sum of the costs of disparity d over the 5 x 5 pixels about column i.
static int32_t cost_about(const volume *v, int32_t i, int32_t y, int32_t d) {
    int32_t sum = 0;
    for (int32_t j = -2; j <= 2; j++)
        for (int32_t k = -2; k <= 2; k++) {
            const int32_t column = usi_clamp(i + k, 0, v->s->plan.n_column - 1);
            sum += v->s->cost[at(v, column, usi_clamp(y + j, 0, v->s->def.height - 1)) + (size_t)d];
        }
    return sum;
}

static void refine_row(const volume *v, int32_t y, float *row) {
    const us_stereo *s = v->s;
    for (int32_t i = 0; i < s->plan.n_column; i++) {
        float *x = &row[s->plan.x0 + i];
        const int32_t d = (int32_t)*x - s->def.min_disparity;
        if (*x == us_stereo_invalid(&s->def) || d < 1 || d > v->n - 2) continue;
        *x += usi_refine(cost_about(v, i, y, d - 1), cost_about(v, i, y, d), cost_about(v, i, y, d + 1));
    }
}

void usi_stereo_plain(us_stereo *s) {
    const size_t size = (size_t)s->def.height * s->plan.n_column * s->def.n_disparity;
    const volume v = {.s = s, .L = {s->plain, s->plain + size}, .n = s->def.n_disparity};
    fill_costs(&v);
    if (s->plan.has_volume) {
        static const int8_t way[8][2] = {{1, 0}, {-1, 0}, {0, 1},  {0, -1},
                                         {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
        for (int32_t k = 0; k < s->def.n_path; k++)
            add_direction(&v, way[k][0], way[k][1]);
    }
    for (int32_t y = 0; y < s->def.height; y++) {
        float *row = s->result + (size_t)y * s->def.width;
        const usi_right_view right = usi_right_begin(s, y, 0, 0);
        for (int32_t k = 0; k < s->plan.n_column; k++) {
            // Paths: the second sweep goes from right to left, blocks from left to right; the first of equals
            // counts.
            const int32_t i = s->plan.has_volume ? s->plan.n_column - 1 - k : k, x = s->plan.x0 + i;
            if (!s->plan.has_volume && texture_at(s, x, y) < s->def.texture) continue;
            row[x] = pick(s, v.L[1] + at(&v, i, y), x, !s->plan.has_volume, &right);
        }
        if (s->plan.has_volume) refine_row(&v, y, row);
        usi_right_check(s, y, row);
    }
}

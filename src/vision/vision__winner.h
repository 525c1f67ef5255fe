// The winner among the disparities of a pixel: least cost, unique, refined below a pixel; and the check from
// the right picture.
//
// Uniqueness: no other disparity but the neighbours may cost less than best * 100 / (100 - uniqueness).
// Refinement: semi-global sums are near a parabola about the best; sums of absolute differences are a V.
#ifndef USI_VISION__WINNER_H
#define USI_VISION__WINNER_H

#include "vision/vision__lanes.h"
#include "vision/vision__stereo.h"

// What was found from the left, seen from the right: for each right pixel the best left one.
typedef struct usi_right_view {
    int16_t *disparity;  // [width]; below min_disparity: none
    uint16_t *cost;
} usi_right_view;

static inline usi_right_view usi_right_begin(us_stereo *s, int32_t y, int32_t thread, int32_t row) {
    const usi_right_view right = {s->right_disparity + (size_t)y * s->def.width,
                                  s->right_cost + (size_t)(thread * USI_BAND + row) * s->def.width};
    for (int32_t x = 0; x < s->def.width; x++) {
        right.disparity[x] = INT16_MIN;
        right.cost[x] = UINT16_MAX;
    }
    return right;
}

// The disparity that a refined one began with; 0.5 below counts as the higher one.
static inline int32_t usi_whole(float disparity) { return (int32_t)(disparity + 1024.5f) - 1024; }

static inline void usi_right_note(const usi_right_view *right, int32_t x, int32_t disparity, uint16_t cost) {
    const int32_t at = x - disparity;
    if (cost >= right->cost[at]) return;
    right->cost[at] = cost;
    right->disparity[at] = (int16_t)disparity;
}

// Whether the right pixel that has been found by disparity d agrees, or nobody has found it.
static inline bool usi_right_agrees(const us_stereo *s, const int16_t *right, int32_t x, int32_t d) {
    const int32_t at = x - d;
    if (at < 0 || at >= s->def.width || right[at] == INT16_MIN) return true;
    const int32_t gap = right[at] > d ? right[at] - d : d - right[at];
    return gap <= s->def.left_right;
}

// Drops what the right picture sees otherwise, at both of the whole disparities that a refined one lies
// between.
static inline void usi_right_check(const us_stereo *s, int32_t y, float *row) {
    if (s->def.left_right < 0) return;
    const float invalid = us_stereo_invalid(&s->def);
    const int16_t *right = s->right_disparity + (size_t)y * s->def.width;
    for (int32_t x = s->plan.x0; x < s->plan.x1; x++) {
        if (row[x] == invalid) continue;
        const int32_t low = (int32_t)(row[x] + 1024) - 1024, high = low + ((float)low != row[x]);
        if (!usi_right_agrees(s, right, x, low) && !usi_right_agrees(s, right, x, high)) row[x] = invalid;
    }
}

// Where the costs (below, best, above) at -1, 0, 1 have their least, if they are a V: from -0.5 to 0.5. One
// rounding, in the division, so that it is the same in the fast and in the plain code.
static inline float usi_refine(int32_t below, int32_t best, int32_t above) {
    const int32_t width = below > above ? below - best : above - best;
    return width > 0 ? (float)(below - above) / (float)(2 * width) : 0;
}

// The largest cost that a second best may not have.
static inline uint16_t usi_unique_limit(const us_stereo *s, uint32_t best) {
    const uint32_t limit = best ? (best * 100 - 1) / (uint32_t)(100 - s->def.uniqueness) : 0;
    return (uint16_t)(limit < UINT16_MAX ? limit : UINT16_MAX);
}

// 32 bits of two vectors of sums: which are at most `limit`.
static inline uint32_t usi_at_most(usi_u16x16 low, usi_u16x16 high, usi_u16x16 limit) {
    const usi_u16x16 a = (usi_u16x16)(usi_u16_min(low, limit) == low) & 255;
    const usi_u16x16 b = (usi_u16x16)(usi_u16_min(high, limit) == high) & 255;
    return usi_u8_bits(usi_u8_pack(a, b));
}

// The disparity of column x, from sums in the order of usi_mixed, which may be changed: those past
// n_disparity are.
static inline float usi_pick(const us_stereo *s, uint16_t *sum, int32_t n_vector, int32_t x, bool refines,
                             const usi_right_view *right) {
    const int32_t n = s->def.n_disparity;
    if (n & 16) {
        const usi_u16x16 none = (usi_u16x16){0,      0,      0,      0,      0,      0,      0,      0,
                                             0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff};
        uint16_t *last = sum + 32 * (n_vector - 1);
        usi_u16_store(last, usi_u16_load(last) | none);
        usi_u16_store(last + 16, usi_u16_load(last + 16) | none);
    }
    usi_u16x16 least = usi_u16_load(sum);
    for (int32_t v = 1; v < 2 * n_vector; v++)
        least = usi_u16_min(least, usi_u16_load(sum + 16 * v));
    const uint16_t best = usi_u16_smallest(least);
    const usi_u16x16 best_all = usi_u16_all(best), limit = usi_u16_all(usi_unique_limit(s, best));
    int32_t d = 0;
    for (int32_t v = 0; v < n_vector; v++) {
        const uint32_t bits =
            usi_at_most(usi_u16_load(sum + 32 * v), usi_u16_load(sum + 32 * v + 16), best_all);
        if (!bits) continue;
        d = 32 * v + __builtin_ctz(bits);
        break;
    }
    const float invalid = us_stereo_invalid(&s->def);
    if (best && s->def.uniqueness > 0) {
        for (int32_t v = 0; v < n_vector; v++) {
            const int32_t first = d - 1 - 32 * v;
            uint32_t near = 0;
            if (first >= 0 && first < 32) near = 7u << first;
            if (first < 0 && first > -3) near = 7u >> -first;
            if (usi_at_most(usi_u16_load(sum + 32 * v), usi_u16_load(sum + 32 * v + 16), limit) & ~near)
                return invalid;
        }
    }
    if (s->def.left_right >= 0) usi_right_note(right, x, s->def.min_disparity + d, best);
    float refined = (float)(s->def.min_disparity + d);
    if (refines && d > 0 && d < n - 1)
        refined += usi_refine(sum[usi_mixed(d - 1)], best, sum[usi_mixed(d + 1)]);
    return refined;
}

#endif

// Filters of disparities.
//
// Speckles: regions of pixels whose neighbours differ little (union-find). Strips of rows are labelled each
// for themselves, joined along their seams, and then looked up, so that the work divides; which pixel of a
// region is its root depends on nothing but the picture.
#include <math.h>
#include <string.h>

#include "vision/vision__stereo.h"

typedef struct disparity_job {
    us_stereo *s;
    const us_filter *filter;
} disparity_job;

// ---- median of 3 x 3 ----

typedef float disparity8 __attribute__((vector_size(32)));
typedef float disparity8_unaligned __attribute__((vector_size(32), may_alias, aligned(4)));
typedef int32_t mask8 __attribute__((vector_size(32)));

static inline void order(disparity8 *a, disparity8 *b) {
    const mask8 is_less = *a < *b;
    const disparity8 low = (disparity8)(((mask8)*a & is_less) | ((mask8)*b & ~is_less));
    *b = (disparity8)(((mask8)*b & is_less) | ((mask8)*a & ~is_less));
    *a = low;
}

static disparity8 median_of_nine(disparity8 p[9]) {
    static const uint8_t pair[19][2] = {{1, 2}, {4, 5}, {7, 8}, {0, 1}, {3, 4}, {6, 7}, {1, 2},
                                        {4, 5}, {7, 8}, {0, 3}, {5, 8}, {4, 7}, {3, 6}, {1, 4},
                                        {2, 5}, {4, 7}, {4, 2}, {6, 4}, {4, 2}};
#pragma GCC unroll 19
    for (int i = 0; i < 19; i++)
        order(&p[pair[i][0]], &p[pair[i][1]]);
    return p[4];
}

// What has no disparity counts as lower than all, and stays without.
static void median_row(us_stereo *s, int32_t y) {
    const int32_t width = s->def.width;
    const float *row[3], *here = s->result + (size_t)y * width;
    float *to = s->other + (size_t)y * width;
    memcpy(to, here, (size_t)width * sizeof to[0]);
    if (y == 0 || y == s->def.height - 1) return;
    for (int k = 0; k < 3; k++)
        row[k] = here + (size_t)k * width - width;
    const float invalid = us_stereo_invalid(&s->def);
    for (int32_t x = 1; x < width - 1; x += 8) {
        // The last vector overlaps the one before.
        const int32_t at = x + 8 <= width - 1 ? x : width - 9;
        disparity8 p[9];
        if (at < 1) return;
        for (int i = 0; i < 9; i++)
            p[i] = *(const disparity8_unaligned *)(row[i / 3] + at + i % 3 - 1);
        const disparity8 was = p[4];
        const mask8 is_none = was == (disparity8){0} + invalid;
        const disparity8 median = median_of_nine(p);
        *(disparity8_unaligned *)(to + at) =
            (disparity8)(((mask8)was & is_none) | ((mask8)median & ~is_none));
    }
}

static void median_strip(void *context, int32_t strip, int32_t thread) {
    const disparity_job *j = context;
    (void)thread;
    for (int32_t y = strip * USI_STRIP; y < usi_strip_end(j->s, strip); y++)
        median_row(j->s, y);
}

// ---- speckles ----

static int32_t root_of(int32_t *label, int32_t i) {
    while (label[i] != i) {
        label[i] = label[label[i]];
        i = label[i];
    }
    return i;
}

// The root of a region is its first pixel.
static void join(us_stereo *s, int32_t a, int32_t b) {
    a = root_of(s->label, a);
    b = root_of(s->label, b);
    if (a == b) return;
    const int32_t root = a < b ? a : b, other = a < b ? b : a;
    s->label[other] = root;
    s->count[root] += s->count[other];
}

static inline bool belong_together(const us_stereo *s, int32_t a, int32_t b, float range) {
    const float invalid = us_stereo_invalid(&s->def);
    return s->result[a] != invalid && s->result[b] != invalid && fabsf(s->result[a] - s->result[b]) <= range;
}

static void label_strip(void *context, int32_t strip, int32_t thread) {
    const disparity_job *j = context;
    us_stereo *s = j->s;
    (void)thread;
    const int32_t width = s->def.width, first = strip * USI_STRIP;
    const float range = (float)j->filter->range;
    for (int32_t y = first; y < usi_strip_end(s, strip); y++) {
        // Of a row, first the runs: their pixels point at the run's first. Then each run joins those above
        // it.
        for (int32_t x = 0, run = 0; x < width; x++) {
            const int32_t i = y * width + x;
            if (x == 0 || !belong_together(s, i - 1, i, range)) run = i;
            s->label[i] = run;
            s->count[i] = 0;
            s->count[run]++;
        }
        for (int32_t x = 0; y > first && x < width; x++) {
            const int32_t i = y * width + x;
            if (!belong_together(s, i - width, i, range)) continue;
            // As the pixel before, within the same two runs: joined already.
            if (x > 0 && s->label[i] == s->label[i - 1] && s->label[i - width] == s->label[i - width - 1] &&
                belong_together(s, i - width - 1, i - 1, range))
                continue;
            join(s, i - width, i);
        }
    }
}

static void drop_strip(void *context, int32_t strip, int32_t thread) {
    const disparity_job *j = context;
    us_stereo *s = j->s;
    (void)thread;
    const float invalid = us_stereo_invalid(&s->def);
    const int32_t end = usi_strip_end(s, strip) * s->def.width;
    for (int32_t i = strip * USI_STRIP * s->def.width; i < end; i++) {
        // Other threads look up too: nothing is written here but the pixel itself.
        int32_t root = i;
        while (s->label[root] != root)
            root = s->label[root];
        s->other[i] = s->count[root] < j->filter->size ? invalid : s->result[i];
    }
}

static void join_seams(us_stereo *s, const us_filter *filter) {
    const int32_t width = s->def.width;
    for (int32_t y = USI_STRIP; y < s->def.height; y += USI_STRIP)
        for (int32_t i = y * width; i < (y + 1) * width; i++)
            if (belong_together(s, i - width, i, (float)filter->range)) join(s, i - width, i);
}

// ---- holes ----

// The farther of the two neighbours: holes are mostly behind edges, where the background is hidden from one
// side.
static void fill_strip(void *context, int32_t strip, int32_t thread) {
    const disparity_job *j = context;
    us_stereo *s = j->s;
    (void)thread;
    const float invalid = us_stereo_invalid(&s->def);
    for (int32_t y = strip * USI_STRIP; y < usi_strip_end(s, strip); y++) {
        const float *row = s->result + (size_t)y * s->def.width;
        float *to = s->other + (size_t)y * s->def.width;
        for (int32_t x = 0; x < s->def.width; x++) {
            to[x] = row[x];
            if (row[x] != invalid) continue;
            int32_t end = x;
            while (end < s->def.width && row[end] == invalid)
                end++;
            const float before = x > 0 ? row[x - 1] : invalid,
                        after = end < s->def.width ? row[end] : invalid;
            const float fill = before == invalid ? after : after == invalid ? before : fminf(before, after);
            for (; x < end; x++)
                to[x] = fill;
            x--;
        }
    }
}

void usi_filter_disparity(us_stereo *s, const us_filter *filter) {
    disparity_job j = {s, filter};
    const int32_t n_strip = (s->def.height + USI_STRIP - 1) / USI_STRIP;
    if (filter->kind == US_FILTER_MEDIAN) usi_pool_run(s->pool, n_strip, 1, median_strip, &j);
    if (filter->kind == US_FILTER_FILL) usi_pool_run(s->pool, n_strip, 1, fill_strip, &j);
    if (filter->kind == US_FILTER_SPECKLE) {
        usi_pool_run(s->pool, n_strip, 1, label_strip, &j);
        join_seams(s, filter);
        usi_pool_run(s->pool, n_strip, 1, drop_strip, &j);
    }
    float *t = s->result;
    s->result = s->other;
    s->other = t;
}

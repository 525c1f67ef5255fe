// Filters of pictures before they are matched. Each reads the grey planes and writes the spare ones, which
// then change places.
#include <string.h>

#include "vision/vision__lanes.h"
#include "vision/vision__stereo.h"

typedef struct picture_job {
    us_stereo *s;
    const us_filter *filter;
} picture_job;

// Sorts two lanes of bytes.
static inline void order(usi_u8x32 *a, usi_u8x32 *b) {
    const usi_u8x32 low = usi_u8_min(*a, *b);
    *b = *a + *b - low;
    *a = low;
}

// Median of nine by 19 comparisons (Smith 1996).
static usi_u8x32 median_of_nine(usi_u8x32 p[9]) {
    static const uint8_t pair[19][2] = {{1, 2}, {4, 5}, {7, 8}, {0, 1}, {3, 4}, {6, 7}, {1, 2},
                                        {4, 5}, {7, 8}, {0, 3}, {5, 8}, {4, 7}, {3, 6}, {1, 4},
                                        {2, 5}, {4, 7}, {4, 2}, {6, 4}, {4, 2}};
#pragma GCC unroll 19
    for (int i = 0; i < 19; i++)
        order(&p[pair[i][0]], &p[pair[i][1]]);
    return p[4];
}

static void median_row(const uint8_t *const row[3], uint8_t *to, int32_t width) {
    for (int32_t x = 0; x < width; x += 32) {
        usi_u8x32 p[9];
        for (int i = 0; i < 9; i++)
            p[i] = usi_u8_load(row[i / 3] + x + i % 3 - 1);
        usi_u8_store(to + x, median_of_nine(p));
    }
}

static void blur_row(const uint8_t *const row[3], uint8_t *to, int32_t width) {
    for (int32_t x = 0; x < width; x++) {
        int32_t sum = 8;
        for (int j = 0; j < 3; j++)
            sum += (j == 1 ? 2 : 1) * (row[j][x - 1] + 2 * row[j][x] + row[j][x + 1]);
        to[x] = (uint8_t)(sum >> 4);
    }
}

// Less the local mean, plus 128. The sums of the columns are made anew for each row: windows are small.
static void normalize_row(const us_stereo *s, const uint8_t *plane, int32_t y, int32_t radius, uint8_t *to) {
    const int32_t area = (2 * radius + 1) * (2 * radius + 1);
    int32_t sum = 0;
    for (int32_t j = -radius; j <= radius; j++)
        for (int32_t i = -radius; i < radius; i++)
            sum += usi_plane_row(s, plane, y + j)[USI_MARGIN + i];
    for (int32_t x = 0; x < s->def.width; x++) {
        for (int32_t j = -radius; j <= radius; j++)
            sum += usi_plane_row(s, plane, y + j)[USI_MARGIN + x + radius];
        const int32_t here = usi_plane_row(s, plane, y)[USI_MARGIN + x];
        to[x] = (uint8_t)usi_clamp(here - (sum + area / 2) / area + 128, 0, 255);
        for (int32_t j = -radius; j <= radius; j++)
            sum -= usi_plane_row(s, plane, y + j)[USI_MARGIN + x - radius];
    }
}

static void filter_strip(void *context, int32_t strip, int32_t thread) {
    const picture_job *j = context;
    us_stereo *s = j->s;
    (void)thread;
    for (int side = 0; side < 2; side++)
        for (int32_t y = strip * USI_STRIP; y < usi_strip_end(s, strip); y++) {
            const uint8_t *row[3];
            for (int k = 0; k < 3; k++)
                row[k] = usi_plane_row(s, s->grey[side], y + k - 1) + USI_MARGIN;
            uint8_t *to = s->spare[side] + (size_t)y * s->plan.row;
            if (j->filter->kind == US_FILTER_MEDIAN) median_row(row, to + USI_MARGIN, s->def.width);
            if (j->filter->kind == US_FILTER_BLUR) blur_row(row, to + USI_MARGIN, s->def.width);
            if (j->filter->kind == US_FILTER_NORMALIZE)
                normalize_row(s, s->grey[side], y, j->filter->window / 2, to + USI_MARGIN);
            usi_fill_margins(to, s->def.width);
        }
}

void usi_filter_picture(us_stereo *s, const us_filter *filter) {
    picture_job j = {s, filter};
    usi_pool_run(s->pool, (s->def.height + USI_STRIP - 1) / USI_STRIP, 1, filter_strip, &j);
    for (int side = 0; side < 2; side++) {
        uint8_t *t = s->grey[side];
        s->grey[side] = s->spare[side];
        s->spare[side] = t;
    }
}

// What the files of stereo matching share: the plan that follows from the settings, and the arrays.
//
// Pictures lie in rows with a margin on both sides, into which the first and the last pixel are repeated;
// rows above the first and below the last are those. The right picture's planes are stored mirrored: there
// the candidates of a left pixel, disparity after disparity, follow each other in memory.
//
//     left plane      |margin|  x = 0 ........ W - 1  |margin|
//     right, mirrored |margin|  x = W - 1 ........ 0  |margin|      candidate d of x: W - 1 - x +
//     min_disparity + d
//
// Costs and sums are kept for the columns from x0 to x1 - 1, which have all candidates in the picture, for
// n_lane disparities each: n_disparity, and what is missing to a multiple of 32.
#ifndef USI_VISION__STEREO_H
#define USI_VISION__STEREO_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/pool.h"
#include "understudy/vision.h"

enum {
    USI_MARGIN = 64,        // pixels: more than a window's radius, and a vector may be read across the edge
    USI_STRIP = 32,         // rows that one part of a parallel job does; the same for any number of threads
    USI_MAX_PLANE = 8,      // bytes of the longest census
    USI_GUARD = 32,         // bytes between the lanes of two pixels of a path (semi_global.c)
    USI_MAX_VECTOR = 16,    // vectors of 32 lanes in US_STEREO_MAX_DISPARITY
    USI_BAND = 8,           // rows that a thread does together (semi_global.c)
    USI_PROGRESS_EACH = 16  // progress counters stand a cache line apart
};

typedef struct usi_stereo_plan {
    int32_t x0, x1, n_column;  // columns that are matched
    int32_t n_lane, n_vector;
    size_t row;       // bytes of a row of a plane
    int32_t n_plane;  // bytes of a pixel's code: 1 gradient, 3 or 8 of census
    int32_t shift;    // sums of windows are halved so often to fit into a byte
    int32_t p1, p2;   // in that unit
    bool has_volume, has_window;
} usi_stereo_plan;

struct us_stereo {
    us_allocator allocator;
    us_stereo_def def;
    usi_stereo_plan plan;
    usi_pool *pool;
    char *block;
    size_t size;  // bytes of the block
    const us_image *picture[2];

    // Arrays in the block.
    uint8_t *grey[2], *spare[2];  // [height][row]
    uint8_t *code[2];             // [n_plane][height][row]; the right one mirrored
    uint8_t *cost;                // [height][n_column][n_lane]
    uint16_t *sum;                // [height][n_column][n_lane], in the order of usi_mixed
    uint8_t *path;                // [slot][n_column + 2][3][n_lane + USI_GUARD]
    size_t path_slot;             // bytes of a slot
    int32_t n_slot;               // of last rows of bands; then one of zeros; then two of each thread
    uint8_t *along;               // [thread][USI_BAND][n_lane]: paths along the rows
    _Atomic int32_t *progress;    // [bands * USI_PROGRESS_EACH]: pixels of a band's last row that are done
    uint16_t *column;             // [thread][n_column + 2 radius][n_lane]: columns of a window
    int32_t *texture;             // [thread][n_column + 2 radius]
    int16_t *right_disparity;     // [height][width]: what each right pixel was found by
    uint16_t *right_cost;         // [thread][USI_BAND][width]
    float *result, *other;        // [height][width]
    int32_t *label, *count;       // [height][width], of speckles
    int32_t *plain;               // [2][n_lane][n_column][height]: paths of the plain code
};

static inline int32_t usi_clamp(int32_t x, int32_t low, int32_t high) {
    return x < low ? low : x > high ? high : x;
}
// Row y of a picture plane, the first and last repeated; column 0 stands at [USI_MARGIN].
static inline const uint8_t *usi_plane_row(const us_stereo *s, const uint8_t *plane, int32_t y) {
    return plane + (size_t)usi_clamp(y, 0, s->def.height - 1) * s->plan.row;
}
// Repeats the first and the last pixel into the margins.
void usi_fill_margins(uint8_t *row, int32_t width);

// Runs `part` for strips of USI_STRIP rows.
void usi_each_strip(us_stereo *s, usi_part part);
static inline int32_t usi_strip_end(const us_stereo *s, int32_t strip) {
    const int32_t end = (strip + 1) * USI_STRIP;
    return end < s->def.height ? end : s->def.height;
}

// filter_picture.c, filter_disparity.c
void usi_filter_picture(us_stereo *s, const us_filter *filter);
void usi_filter_disparity(us_stereo *s, const us_filter *filter);
// stereo_code.c: gradients or census of both pictures.
void usi_make_codes(us_stereo *s);
// stereo_cost.c
void usi_census_cost(const us_stereo *s, int32_t y, uint8_t *out_cost);
void usi_window_strip(us_stereo *s, int32_t strip, int32_t thread);
// semi_global.c, stereo_plain.c: everything from codes to s->result.
void usi_semi_global(us_stereo *s);
void usi_stereo_plain(us_stereo *s);
// stereo_plain.c: L of one pixel of a path, from its costs C and L of the pixel before (NULL: the path begins
// here).
void usi_path_step(const int32_t *before, const uint8_t *C, int32_t n, int32_t p1, int32_t p2, int32_t *L);

#endif

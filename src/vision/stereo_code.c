// What is compared of the pictures: gradients, or census.
//
// Gradient: horizontal Sobel of 3 x 3, cut at +-prefilter_cap, which takes away how bright a place is; for
// paths a quarter of the brightness is compared too, which says something where the gradient is the same
// everywhere. Census (Zabih and Woodfill 1994): one bit for each neighbour that is darker than the pixel,
// which takes away exposure and contrast too. The bits of a census lie in planes of a byte.
#include <string.h>

#include "vision/vision__lanes.h"
#include "vision/vision__stereo.h"

static void gradient_row(const us_stereo *s, const uint8_t *plane, int32_t y, uint8_t *to) {
    const uint8_t *above = usi_plane_row(s, plane, y - 1) + USI_MARGIN;
    const uint8_t *here = usi_plane_row(s, plane, y) + USI_MARGIN;
    const uint8_t *below = usi_plane_row(s, plane, y + 1) + USI_MARGIN;
    const int32_t cap = s->def.prefilter_cap;
    for (int32_t x = 0; x < s->def.width; x++) {
        const int32_t slope =
            above[x + 1] - above[x - 1] + 2 * (here[x + 1] - here[x - 1]) + below[x + 1] - below[x - 1];
        to[x] = (uint8_t)(usi_clamp(slope, -cap, cap) + cap);
    }
}

static void quarter_row(const us_stereo *s, const uint8_t *plane, int32_t y, uint8_t *to) {
    const uint8_t *here = usi_plane_row(s, plane, y) + USI_MARGIN;
    for (int32_t x = 0; x < s->def.width; x++)
        to[x] = here[x] >> 2;
}

// Bytes of 32 pixels' codes: neighbours from the upper left to the lower right, without the middle.
static void census_32(const uint8_t *const row[7], int32_t x, int32_t half_width, int32_t n_row,
                      uint8_t *const to[8]) {
    const usi_u8x32 middle = usi_u8_load(row[n_row / 2] + x);
    usi_u8x32 byte = {0};
    int32_t n = 0;
    for (int32_t j = 0; j < n_row; j++)
        for (int32_t i = -half_width; i <= half_width; i++) {
            if (j == n_row / 2 && i == 0) continue;
            const usi_u8x32 is_brighter =
                (usi_u8x32)(usi_u8_min(usi_u8_load(row[j] + x + i), middle) == middle);
            byte |= ~is_brighter & (uint8_t)(1 << (n & 7));
            if ((++n & 7) == 0) {
                usi_u8_store(to[n / 8 - 1] + x, byte);
                byte = (usi_u8x32){0};
            }
        }
    if (n & 7) usi_u8_store(to[n / 8] + x, byte);
}

static void census_row(const us_stereo *s, const uint8_t *plane, int32_t y, int32_t half_width,
                       int32_t half_height, uint8_t *const to[8]) {
    const uint8_t *row[7];
    for (int32_t j = 0; j <= 2 * half_height; j++)
        row[j] = usi_plane_row(s, plane, y + j - half_height) + USI_MARGIN;
    for (int32_t x = 0; x < s->def.width; x += 32)
        census_32(row, x, half_width, 2 * half_height + 1, to);
}

static void mirror_row(uint8_t *row, int32_t width) {
    for (int32_t a = 0, b = width - 1; a < b; a++, b--) {
        const uint8_t t = row[a];
        row[a] = row[b];
        row[b] = t;
    }
}

static void code_strip(void *context, int32_t strip, int32_t thread) {
    us_stereo *s = context;
    (void)thread;
    const size_t plane = (size_t)s->def.height * s->plan.row;
    for (int side = 0; side < 2; side++)
        for (int32_t y = strip * USI_STRIP; y < usi_strip_end(s, strip); y++) {
            uint8_t *to[USI_MAX_PLANE];
            for (int32_t k = 0; k < USI_MAX_PLANE; k++)
                to[k] = s->code[side] + (size_t)k * plane + (size_t)y * s->plan.row + USI_MARGIN;
            if (s->plan.has_window) gradient_row(s, s->grey[side], y, to[0]);
            if (s->plan.n_plane == 2) quarter_row(s, s->grey[side], y, to[1]);
            if (s->plan.n_plane == 3) census_row(s, s->grey[side], y, 2, 2, to);
            if (s->plan.n_plane == 8) census_row(s, s->grey[side], y, 4, 3, to);
            for (int32_t k = 0; k < s->plan.n_plane; k++) {
                if (side == 1) mirror_row(to[k], s->def.width);
                usi_fill_margins(to[k] - USI_MARGIN, s->def.width);
            }
        }
}

void usi_make_codes(us_stereo *s) { usi_each_strip(s, code_strip); }

// What the page sees of ground: tiles of a height field at every level of detail, and the photograph that
// lies on it.
//
// Level k has every 2^k-th sample, and always the last ones, so that the edge stays where it is. Tile (u, v)
// of a level covers cells u*TILE to (u+1)*TILE each way; level n_level - 1 is one tile. Cells beyond the edge
// have no size: their samples are those of the edge.
//
//     level 2   +-------+      level 1   +---+---+      level 0   +-+-+-+-+
//               |       |                |   |   |                +-+-+-+-+
//               |       |                +---+---+                +-+-+-+-+
//               +-------+                +---+---+                +-+-+-+-+
//
// Any thread: nothing here changes anything.
#ifndef USI_WORLD_GROUND_H
#define USI_WORLD_GROUND_H

#include "understudy/spec.h"
#include "understudy/terrain.h"

enum {
    USI_GROUND_TILE = 32,  // cells of a tile, each way
    USI_GROUND_BORDER =
        3,  // samples beyond a tile's edge that come with it: for slopes and hollows at the edge
    USI_GROUND_SIDE = 39,    // samples of a tile as it is sent: cells + 1, and the border on both sides
    USI_GROUND_PIXELS = 128  // of a tile's photograph, each way
};

typedef struct usi_ground {
    const double *heights;  // all of them, x fastest; NULL: they come from the site
    us_site *site;          // NULL: none
    int32_t n_x, n_y;
    double dx, dy;
    int32_t n_level;
    us_layer_info height, colour;  // of the site
    int32_t colour_index;          // -1: no photograph
} usi_ground;

// Opens what a shape's ground is read from: for a site, its site.json. US_ERR_NAME for a shape that is no
// height field or whose heights are not known.
us_status usi_ground_open(const us_shape_def *shape, const us_allocator *allocator, usi_ground *out,
                          us_error *err);
void usi_ground_close(usi_ground *ground);
void usi_ground_extremes(const usi_ground *ground, double *out_low, double *out_high);
// Samples i0 .. i0 + n_i - 1, j0 .. of a level, x fastest; those beyond the edge are the edge's. US_ERR_IO
// names a file of the site that is missing.
us_status usi_ground_window(const usi_ground *ground, const us_allocator *allocator, int32_t level,
                            int64_t i0, int64_t j0, int32_t n_i, int32_t n_j, float *out, us_error *err);
// A tile's USI_GROUND_SIDE^2 samples, and its photograph of USI_GROUND_PIXELS^2 pixels r, g, b, a, the first
// at its least x and y. US_ERR_NAME when there is no such tile.
us_status usi_ground_tile(const usi_ground *ground, const us_allocator *allocator, int32_t level, int32_t u,
                          int32_t v, float *out, us_error *err);
us_status usi_ground_photo(const usi_ground *ground, const us_allocator *allocator, int32_t level, int32_t u,
                           int32_t v, uint8_t *out, us_error *err);
// The photograph of a rectangle with its least corner at (x, y) in the shape's frame, n pixels each way.
us_status usi_ground_picture(const usi_ground *ground, const us_allocator *allocator, double x, double y,
                             double width, double height, int32_t n, uint8_t *out, us_error *err);

#endif

// Ground: random fields with a prescribed covariance, and sites: ground of any size on disk.
//
// Any thread, one at a time per object. docs/random-terrain.md has the mathematics of the fields, docs/paging.md says what a site is.
#ifndef UNDERSTUDY_TERRAIN_H
#define UNDERSTUDY_TERRAIN_H

#include "understudy/base.h"
#include "understudy/math.h"

#ifdef __cplusplus
extern "C" {
#endif

// X(code, name): how alike two places at a distance r are, as a share of the variance.
#define US_COVARIANCE_LIST(X)                                                                              \
    X(US_COVARIANCE_EXPONENTIAL, "exponential") /* exp(-r/L): rough */                                     \
    X(US_COVARIANCE_GAUSSIAN, "gaussian")       /* exp(-(r/L)^2): smooth hills */                          \
    X(US_COVARIANCE_MATERN, "matern")           /* 2^(1-s)/Gamma(s) (r/L)^s K_s(r/L), s the smoothness */  \
    X(US_COVARIANCE_FRACTAL, "fractal")         /* the same: s is the Hurst exponent, L the outer scale */ \
    X(US_COVARIANCE_SPHERICAL, "spherical")     /* 1 - 1.5 r/L + 0.5 (r/L)^3 up to L, then 0 */            \
    X(US_COVARIANCE_TABLE, "table")             /* given by its values */

typedef enum us_covariance {
#define US_COVARIANCE_ENUM(code, name) code,
    US_COVARIANCE_LIST(US_COVARIANCE_ENUM)
#undef US_COVARIANCE_ENUM
        US_COVARIANCE_COUNT
} us_covariance;

US_API const char *us_covariance_name(us_covariance covariance);  // "" for a bad number
US_API us_covariance us_covariance_find(const char *name);        // US_COVARIANCE_COUNT when there is none of that name

typedef enum us_field_method {
    US_FIELD_EMBED,  // circulant embedding: normal, and exactly of that covariance
    US_FIELD_OUTER,  // a sum of turned outer products of two one-dimensional samples: of that covariance along its own axes only; for comparison
} us_field_method;

typedef struct us_field_def {
    us_allocator allocator;
    int32_t n_x, n_y;  // nodes
    double spacing;    // m
    uint64_t seed, stream;
    double mean, variance;
    us_covariance covariance;
    double length;      // m
    double smoothness;  // of matern and fractal; default 0.8
    int32_t n_table;    // values at r = 0, table_spacing, ...; linear between them, 0 behind them; the first is that of r = 0, the variance
    const double *table;
    double table_spacing;
    us_field_method method;
    int32_t n_outer;   // products in the sum; default 200
    int32_t n_thread;  // default 1; the field is the same for any number
} us_field_def;

US_API us_field_def us_field_def_default(void);

typedef struct us_field_outcome {
    int32_t m_x, m_y;    // nodes of the embedding
    double clipped;      // share of the variance that no normal field can have: 0 for a covariance that there is
    double least_eigen;  // the least eigenvalue over the greatest
} us_field_outcome;

// Fills n_x * n_y numbers, row by row (y slowest). The same definition gives the same bits on every machine. `out_info` may be NULL. Errors:
// US_ERR_VALUE with what is wrong in the definition; US_ERR_MEMORY. A table that no field can have is clipped to the nearest that one can: `clipped`.
US_API us_status us_field_make(const us_field_def *def, double *out, us_field_outcome *out_info, us_error *err);
// The covariance at a distance, as the definition says it; NaN for a bad definition.
US_API double us_field_covariance(const us_field_def *def, double r);

// ---------------------------------------------------------------- sites

// A site is a directory: site.json, which says all of us_site_info, and one file per tile and layer, LAYER/LEVEL/U_V.tile. Its frame is local and
// metric: x east, y north, z up, the origin in the middle of its samples; `origin` is where that lies in the reference system, so that large
// coordinates lose nothing. Heights are kept as 32-bit numbers against origin.z. Level k has every 2^k-th sample, so that its numbers and regions are
// those of level 0; a colour of it is the mean of the 2^k * 2^k colours from there on. The coarsest level is the first that fits into one tile. Tile
// (u, v) of a level holds its samples from u*tile, v*tile on, at most tile * tile, x fastest, y to the north; tiles share none.
enum { US_SITE_TILE = 256, US_SITE_LAYERS = 8, US_SITE_LEVELS = 16 };

// X(code, name): what a sample of a layer is.
#define US_LAYER_LIST(X)                                                   \
    X(US_LAYER_NUMBER, "number") /* float: heights, parameters of soils */ \
    X(US_LAYER_REGION, "region") /* uint8_t: which region; 0: none */      \
    X(US_LAYER_COLOUR, "colour") /* uint8_t r, g, b, a: a photograph from above */

typedef enum us_layer_type {
#define US_LAYER_ENUM(code, name) code,
    US_LAYER_LIST(US_LAYER_ENUM)
#undef US_LAYER_ENUM
        US_LAYER_COUNT
} us_layer_type;

typedef struct us_layer_info {
    char name[32];  // "height" always, first; "colour", "region", "soil.cohesion", ...
    us_layer_type type;
    int32_t n_x, n_y;  // samples of level 0; other layers than the height may have their own
    double dx, dy;     // m between them; all layers share their middle
    int32_t n_level;
    double low, high;  // extremes of a layer of numbers
} us_layer_info;

typedef struct us_site_info {
    int32_t n_layer;
    us_layer_info layer[US_SITE_LAYERS];
    us_vec3 origin;      // of the site in its reference system: m east, m north, m up
    char reference[64];  // short name of the reference system ("WGS 84 / UTM zone 10N"); "" when there is none
    const char *wkt;     // all of it; "" when there is none. Borrowed from the site
    uint64_t hash;       // of the layers' names, sizes and spacings and of all samples of level 0
    int64_t n_gap;       // samples of height without a value in the source
} us_site_info;

typedef struct us_site us_site;

// Opens a site for reading. Errors name the file and what to do: US_ERR_IO, US_ERR_SYNTAX.
US_API us_status us_site_open(const char *path, const us_allocator *allocator, us_site **out_site, us_error *err);
// Begins a new one; `info` says its layers (sizes, spacings; n_level, low, high, hash are found) and its place. The directory must be new or empty.
US_API us_status us_site_create(const char *path, const us_site_info *info, const us_allocator *allocator, us_site **out_site, us_error *err);
US_API void us_site_close(us_site *site);  // NULL is allowed; a site under creation that was not finished stays without its site.json
US_API us_site_info us_site_get_info(const us_site *site);
US_API int32_t us_site_find_layer(const us_site *site, const char *name);  // -1 when there is none
// The size of tile (u, v) of a level, in samples; false when there is none.
US_API bool us_site_tile_size(const us_site *site, int32_t layer, int32_t level, int32_t u, int32_t v, int32_t *out_n_x, int32_t *out_n_y);
// Reads a tile's samples (float, uint8_t or 4 uint8_t each), which the caller has room for; checks them against the sum that was written with them.
// Any thread while the site is open for reading, when its allocator is for any thread too. US_ERR_IO names the file that is missing or damaged.
US_API us_status us_site_read(const us_site *site, int32_t layer, int32_t level, int32_t u, int32_t v, void *out, us_error *err);
// Writes a tile of level 0, in any order, each once. A number that is not finite is refused.
US_API us_status us_site_write(us_site *site, int32_t layer, int32_t u, int32_t v, const void *samples, us_error *err);
// Counts samples of height that had no value in the source, where they are known only while tiles are written; adds to n_gap.
US_API void us_site_add_gaps(us_site *site, int64_t n);
// Makes the coarser levels, tile by tile, and site.json: the site is whole now. `progress`, which may be NULL, hears how far it is, 0 to 1.
US_API us_status us_site_finish(us_site *site, void (*progress)(void *context, double share), void *context, us_error *err);

#ifdef __cplusplus
}
#endif
#endif

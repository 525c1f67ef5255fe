// Terrain: random fields with a prescribed covariance, craters, rocks and trees by density, and sites: ground
// of any size on disk.
//
// Any thread, one at a time per object. docs/random-terrain.md has the mathematics of the fields,
// docs/paging.md says what a site is.
#ifndef UNDERSTUDY_TERRAIN_H
#define UNDERSTUDY_TERRAIN_H

#include "understudy/base.h"
#include "understudy/math.h"

#ifdef __cplusplus
extern "C" {
#endif

// X(code, name): covariance of two places at a distance r, as a fraction of the variance.
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
// US_COVARIANCE_COUNT when there is none of that name.
US_API us_covariance us_covariance_find(const char *name);

typedef enum us_field_method {
    // Circulant embedding: normal, and exactly of that covariance.
    US_FIELD_EMBED,
    // Sum of rotated outer products of two one-dimensional samples: of that covariance along its own axes
    // only; for comparison.
    US_FIELD_OUTER,
    // Pyramid of moving averages, patch by patch: of any size in little memory, of that covariance within
    // 1e-3 of the variance.
    US_FIELD_PATCH,
} us_field_method;

// A number at a place, m from the field's node (0, 0).
typedef double (*us_field_number)(const void *context, double x, double y);

typedef struct us_field_def {
    us_allocator allocator;
    int32_t n_x, n_y;  // nodes
    double spacing;    // m
    uint64_t seed, stream;
    double mean, variance;
    // Mean and standard deviation of each node instead; NULL: those above. The covariance of two nodes is
    // then the product of their deviations times that of the definition over its variance. Deviations are not
    // negative.
    us_field_number mean_at, deviation_at;
    const void *mean_context, *deviation_context;
    us_covariance covariance;
    double length;      // m
    double smoothness;  // of matern and fractal; default 0.8
    // Covariances at r = 0, table_spacing, ..., or at the distances of table_at, which begin with 0 and grow;
    // linear between them, 0 beyond; the first is the variance.
    int32_t n_table;
    const double *table, *table_at;  // table_at NULL: evenly spaced
    double table_spacing;
    us_field_method method;
    int32_t n_outer;   // products in the sum; default 200
    int32_t n_thread;  // default 1; the field is the same for any number
} us_field_def;

US_API us_field_def us_field_def_default(void);

typedef struct us_random_field_info {
    int32_t m_x, m_y;       // nodes of the embedding
    double clipped;         // fraction of the variance in negative eigenvalues; 0 for a true covariance
    double min_eigenvalue;  // over the maximum eigenvalue
} us_random_field_info;

// Fills n_x * n_y values, row by row (y slowest). The same definition gives the same bits on every machine.
// `out_info` may be NULL. Errors: US_ERR_VALUE with what is wrong in the definition; US_ERR_MEMORY. A table
// that is no covariance is clipped to the nearest that is one: `clipped`.
US_API us_status us_field_make(const us_field_def *def, double *out, us_random_field_info *out_info,
                               us_error *err);

// Rectangle of a field: value (i, j) is that of node (x + i, y + j), values[j * stride + i].
typedef struct us_field_part {
    int32_t x, y, n_x, n_y, stride;
    const double *values;  // borrowed during the visit
} us_field_part;
typedef us_status (*us_field_visit)(void *context, const us_field_part *part, us_error *err);

// The same field in parts, each node once: US_FIELD_PATCH makes parts of 768 x 768 nodes from the south-west
// on, whose borders are multiples of 768; memory is some 30 MB and 13 MB for each doubling of the size (20000
// nodes each way: 130 MB). The other methods make one part. An error that a visit returns ends it.
US_API us_status us_field_visit_parts(const us_field_def *def, us_field_visit visit, void *context,
                                      us_random_field_info *out_info, us_error *err);

// The covariance of the definition at a distance; NaN for a bad definition.
US_API double us_field_covariance(const us_field_def *def, double r);

// ---------------------------------------------------------------- craters

// Craters by density: N(D) = density * (D / min_size)^-slope of at least diameter D for each m^2, from
// `min_size` to `max_size`. Where and how large they are is a function of seed, stream and place alone:
// ground made in parts is that made at once.
typedef struct us_crater_def {
    uint64_t seed, stream;
    double density;             // of all, per m^2
    double min_size, max_size;  // m, diameters from rim to rim; default 10 and 500
    double slope;               // default 2
    double depth;               // of a fresh one over its diameter, from rim to floor; default 0.2
    double rim;                 // of a fresh one over its diameter, rim above the plain; default 0.036
    double age;  // each is aged between 0, fresh, and this, at most 1: almost levelled; default 0.9
} us_crater_def;

US_API us_crater_def us_crater_def_default(void);

// Number of craters of this diameter or more, per m^2; NaN for a bad definition.
US_API double us_crater_density(const us_crater_def *def, double diameter);

// Height of a crater at r from its middle, over the plain, m.
US_API double us_crater_profile(const us_crater_def *def, double diameter, double age, double r);

// Adds the craters to n_x * n_y heights, the first of which is that of node (x, y); node (i, j) lies at
// (i, j) * spacing. Errors: US_ERR_VALUE.
US_API us_status us_crater_add(const us_crater_def *def, double spacing, int32_t x, int32_t y, int32_t n_x,
                               int32_t n_y, int32_t stride, double *heights, us_error *err);

// ---------------------------------------------------------------- rocks and trees

typedef enum us_scatter_kind { US_SCATTER_ROCKS, US_SCATTER_TREES } us_scatter_kind;

// Rocks by the fraction of the ground that they cover, with the size distribution of the landing sites on
// Mars (Golombek and Rapp 1997): those of at least diameter D cover density * exp(-q D), q = 1.79 + 0.152 /
// density, per m. None overlaps another; covers above 0.4 of rocks from below 0.2 m do not fit. Trees by
// their number per m^2, none nearer to another than `distance`. All a function of seed, stream and place
// alone.
typedef struct us_scatter_def {
    us_scatter_kind kind;
    uint64_t seed, stream;
    double density;  // rocks: covered fraction, up to 0.5; trees: per m^2
    double min_size,
        max_size;           // m: diameters of rocks, default 0.2 and 2; heights of trees, default 5 and 15
    double distance;        // m between trees; default 1
    double x0, y0, x1, y1;  // m: from, up to and without
    // Whether an instance may be placed at (x, y): by region, slope. NULL: everywhere.
    bool (*is_allowed)(void *context, double x, double y);
    void *context;
} us_scatter_def;

typedef struct us_scatter_instance {
    double x, y;      // m
    double diameter;  // m, of a rock or of a trunk
    double height;    // m, of all of it
    double crown;     // m, diameter; 0 for a rock
    double yaw;       // rad
    uint64_t number;  // seed of everything else that is random about it
} us_scatter_instance;

enum { US_ROCK_POINTS = 14 };

US_API us_scatter_def us_scatter_def_default(us_scatter_kind kind);

// Expected number of instances per m^2; NaN for a bad definition.
US_API double us_scatter_density(const us_scatter_def *def);

// Visits each instance of the area, in an order that depends on the definition alone. An error that a visit
// returns ends it.
US_API us_status us_scatter_visit(const us_scatter_def *def,
                                  us_status (*visit)(void *context, const us_scatter_instance *instance,
                                                     us_error *err),
                                  void *context, us_error *err);

// Corners of a rock on z = 0, about its middle, yaw included.
US_API void us_rock_points(const us_scatter_instance *rock, us_vec3 out[US_ROCK_POINTS]);

// ---------------------------------------------------------------- sites

// A site is a directory: site.json, which has all of us_site_info, and one file per tile and layer,
// LAYER/LEVEL/U_V.tile. Its frame is local and metric: x east, y north, z up, the origin in the middle of its
// samples; `origin` is where that lies in the reference system, so that large coordinates lose nothing.
// Heights are kept as 32-bit numbers against origin.z. Level k has every 2^k-th sample, so that its numbers
// and regions are those of level 0; a colour of it is the mean of the 2^k * 2^k colours from there on. The
// coarsest level is the first that fits into one tile. Tile (u, v) of a level holds its samples from u*tile,
// v*tile on, at most tile * tile, x fastest, y to the north; tiles share none.
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
    char reference[64];  // name of the reference system ("WGS 84 / UTM zone 10N"); "" when there is none
    const char *wkt;     // WKT of the reference system; "" when there is none. Borrowed from the site
    uint64_t hash;       // of the layers' names, sizes and spacings and of all samples of level 0
    int64_t n_gap;       // samples of height without a value in the source
} us_site_info;

typedef struct us_site us_site;

// Opens a site for reading. Errors name the file and what to do: US_ERR_IO, US_ERR_SYNTAX.
US_API us_status us_site_open(const char *path, const us_allocator *allocator, us_site **out_site,
                              us_error *err);

// Begins a new site; `info` gives its layers (sizes, spacings; n_level, low, high, hash are computed) and its
// origin. The directory must be new or empty.
US_API us_status us_site_create(const char *path, const us_site_info *info, const us_allocator *allocator,
                                us_site **out_site, us_error *err);

// NULL is allowed. A site under creation that was not finished stays without its site.json.
US_API void us_site_close(us_site *site);

US_API us_site_info us_site_get_info(const us_site *site);
US_API int32_t us_site_find_layer(const us_site *site, const char *name);  // -1 when there is none

// Size of tile (u, v) of a level, in samples; false when there is none.
US_API bool us_site_tile_size(const us_site *site, int32_t layer, int32_t level, int32_t u, int32_t v,
                              int32_t *out_n_x, int32_t *out_n_y);

// Reads a tile's samples (float, uint8_t or 4 uint8_t each) into the caller's memory; checks them against
// the checksum that was written with them. Any thread while the site is open for reading, when its allocator
// is for any thread too. US_ERR_IO names the file that is missing or damaged.
US_API us_status us_site_read(const us_site *site, int32_t layer, int32_t level, int32_t u, int32_t v,
                              void *out, us_error *err);

// Writes a tile of level 0, in any order, each once. A number that is not finite is refused.
US_API us_status us_site_write(us_site *site, int32_t layer, int32_t u, int32_t v, const void *samples,
                               us_error *err);

// Adds to n_gap, where gaps of the source are known only while tiles are written.
US_API void us_site_add_gaps(us_site *site, int64_t n);

// Makes the coarser levels, tile by tile, and site.json: the site is complete now. `progress`, which may be
// NULL, is called with the fraction done, 0 to 1.
US_API us_status us_site_finish(us_site *site, void (*progress)(void *context, double share), void *context,
                                us_error *err);

// ---------------------------------------------------------------- sites from a seed

typedef struct us_soil_field {
    char name[24];  // the layer is "soil.NAME"; values below 0 become 0
    us_field_def field;
} us_soil_field;

typedef struct us_random_site_def {
    us_allocator allocator;
    us_field_def height;    // its mean becomes the site's origin.z
    us_crater_def craters;  // of density 0: none; their seed, and that of rocks and soils, is the heights'
    // Of density 0: none. Half ellipsoids on the heights, so that `min_size` is at least two spacings.
    us_scatter_def rocks;
    int32_t n_soil;
    us_soil_field soil[US_SITE_LAYERS - 1];
    void (*progress)(void *context, double share);  // may be NULL
    void *context;
} us_random_site_def;

typedef struct us_random_layer {
    double mean, variance, low, high;  // of the samples
    int64_t n_raised;                  // of a soil: values that were below 0
    us_random_field_info field;
} us_random_layer;

typedef struct us_random_site_info {
    // The heights, with their mean, craters and rocks, then the soil parameters.
    us_random_layer layer[US_SITE_LAYERS];
    int64_t n_rock;
} us_random_site_info;

US_API us_random_site_def us_random_site_def_default(void);

// Makes a site in a new or empty directory. Memory does not grow with the size by US_FIELD_PATCH.
// Errors: those of fields, craters, rocks, sites.
US_API us_status us_site_make_random(const us_random_site_def *def, const char *path,
                                     us_random_site_info *out_info, us_error *err);

#ifdef __cplusplus
}
#endif
#endif

// Rasters: GeoTIFF and whatever else GDAL reads, as heights, photographs and masks of regions; and sites made
// of them.
//
// docs/terrain.md says how. GDAL is loaded by the first call that needs it. Any thread; nothing is printed,
// and the network is left alone.
#ifndef UNDERSTUDY_RASTER_H
#define UNDERSTUDY_RASTER_H

#include "understudy/base.h"
#include "understudy/terrain.h"

#ifdef __cplusplus
extern "C" {
#endif

// One or many rasters that make one. Where several have a value the first wins. Its frame is that of the
// first file: its map projection, its samples. Files in another projection, or with samples between those,
// are resampled (bilinear; masks: the nearest). A first file in degrees, or any with `is_local`, is laid into
// a frame of its own: transverse Mercator, true to scale in its middle, on the same body. Of a file whose
// rows do not run east the largest upright rectangle inside it is taken.
typedef struct us_raster_def {
    us_allocator allocator;
    int32_t n_file;
    const char *const *file;
    int32_t band;  // from 1; 0: the only one
    const char
        *reference;    // of files that name no reference system: "EPSG:32610", WKT, PROJ, ...; NULL: none
    const char *unit;  // of heights: "m", "ft", "us-ft", "km", or metres as a number; NULL: as the file says,
                       // m when it says nothing
    const double *nodata;  // this number is a gap too; NULL: only what the file says is one
    bool is_metric;        // files that name no reference system are in plain metres
    bool is_local;         // a local frame even where the file has a map projection
    bool is_geotiff;       // refuse other formats, some of which name files and addresses of their own
} us_raster_def;

US_API us_raster_def us_raster_def_default(void);

typedef struct us_raster_info {
    int32_t n_x, n_y;             // samples, of the frame
    double dx, dy;                // m between them
    us_vec3 middle;               // of the samples in the reference system: m east, m north; z 0
    double latitude, longitude;   // of the middle, degrees; NaN when the reference system has none
    double stretch_x, stretch_y;  // a metre of the frame at its middle over a true one, eastward and
                                  // northward; 1 when not known
    double low, high;             // m; extremes of the heights; NaN when every sample is a gap
    int64_t n_gap;                // samples without a value
    int32_t file_n_x, file_n_y;   // samples of the first file
    int32_t band, n_band;         // of the first file: which, of how many
    char type[16],
        colour[16];      // what the first file keeps it as ("Float32"), and what it is for ("Gray", "Red")
    char unit[32];       // of heights, as the file says; "" when it says nothing
    char reference[64];  // short name of the frame's reference system; "" when there is none
    bool is_resampled;   // the first file's samples are not the frame's
} us_raster_info;

// What a raster of heights is. All of it is read once, window by window; `progress` as below. Errors name the
// file and what to do: US_ERR_IO when it is no raster or is damaged, US_ERR_VALUE when it says too little (no
// projection, which band) or something unknown (a unit).
US_API us_status us_raster_find_info(const us_raster_def *def, void (*progress)(void *context, double share),
                                     void *context, us_raster_info *out_info, us_error *err);

typedef struct us_site_import_def {
    us_raster_def height;
    int32_t n_ortho, n_region;
    const char *const
        *ortho;  // photographs from above: layer "colour"; what they do not cover is transparent
    const char *const *region;  // masks, 0 to 255: layer "region"; what they do not cover is 0
    bool is_filled;             // gaps are filled from the nearest values around them, in sixteen directions
    void (*progress)(void *context, double share);  // may be NULL
    void *context;
} us_site_import_def;

US_API us_site_import_def us_site_import_def_default(void);

// Makes a site of rasters in the directory `path`, which must be new or empty. Its reference height origin.z
// is the whole metre nearest to the middle between its extremes. Memory is bounded whatever the size. Gaps
// without `is_filled` are an error that says how many there are and where the first is. On an error the
// directory has no site.json. `out_info`, which may be NULL, is of the heights before gaps were filled.
US_API us_status us_site_import(const us_site_import_def *def, const char *path, us_raster_info *out_info,
                                us_error *err);

// Numbers on a grid, to be written as a GeoTIFF.
typedef struct us_raster_write_def {
    int32_t n_x, n_y;
    double dx, dy;          // m
    us_vec3 middle;         // of the samples in the reference system
    double turn;            // rad, of x from east
    const char *reference;  // "EPSG:32610", WKT, PROJ, ...; NULL: plain metres
    int32_t n_band;
    const char *const *band;  // what each is called
    // Fills n_x numbers of a band, row y from the south; rows are asked for from the north, for one band
    // after the other. An error ends the writing.
    us_status (*row)(void *context, int32_t band, int32_t y, float *out, us_error *err);
    void *context;
} us_raster_write_def;

// Replaces a file that is there. Errors: US_ERR_IO names the file; US_ERR_VALUE for a reference system that
// is not known; those of `row`.
US_API us_status us_raster_write(const us_raster_write_def *def, const char *path, us_error *err);

// Draws a site's ground from above, north up, lit from the north-west, into a PNG of at most 2048 x 2048
// pixels.
US_API us_status us_site_write_hillshade(const us_site *site, const char *path, us_error *err);

#ifdef __cplusplus
}
#endif
#endif

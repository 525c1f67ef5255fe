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

// Raster of one or many files. Where several have a value the first wins. Its frame is that of the first
// file: its map projection, its samples. Files in another projection, or with samples between those, are
// resampled (bilinear; masks: the nearest). A first file in degrees, or any with `is_local`, is resampled
// into a local frame: transverse Mercator, true to scale in its middle, on the same body. Of a file whose
// rows do not run east the largest upright rectangle inside it is taken.
typedef struct us_raster_def {
    us_allocator allocator;
    int32_t n_file;
    const char *const *file;
    int32_t band;           // from 1; 0: the only one
    const char *reference;  // of files without a reference system: "EPSG:32610", WKT, PROJ, ...; NULL: none
    // Unit of heights: "m", "ft", "us-ft", "km", or metres as a number; NULL: the file's, m when it has none.
    const char *unit;
    const double *nodata;  // this number is a gap too; NULL: only the file's own nodata
    bool is_metric;        // files that name no reference system are in plain metres
    bool is_local;         // a local frame even where the file has a map projection
    bool is_geotiff;  // GeoTIFF alone, as in scenes; else also grids and images whose samples are in the file
} us_raster_def;

US_API us_raster_def us_raster_def_default(void);

typedef struct us_raster_info {
    int32_t n_x, n_y;            // samples, of the frame
    double dx, dy;               // m between them
    us_vec3 middle;              // of the samples in the reference system: m east, m north; z 0
    double latitude, longitude;  // of the middle, degrees; NaN when the reference system has none
    // Scale factor of the projection at the middle, eastward and northward; 1 when not known.
    double stretch_x, stretch_y;
    double low, high;            // m; extremes of the heights; NaN when every sample is a gap
    int64_t n_gap;               // samples without a value
    int32_t file_n_x, file_n_y;  // samples of the first file
    int32_t band, n_band;        // of the first file: which, of how many
    char type[16];               // data type of the first file ("Float32")
    char colour[16];             // colour interpretation of its band ("Gray", "Red")
    char unit[32];               // of heights, as in the file; "" when it has none
    char reference[64];          // name of the frame's reference system; "" when there is none
    bool is_resampled;           // the first file's samples are not the frame's
} us_raster_info;

// Information about a raster of heights. All of it is read once, window by window; `progress` as below.
// Errors name the file and the remedy: US_ERR_IO when it is no raster or is damaged, US_ERR_VALUE when
// something is missing (projection, band) or unknown (a unit).
US_API us_status us_raster_find_info(const us_raster_def *def, void (*progress)(void *context, double share),
                                     void *context, us_raster_info *out_info, us_error *err);

// All samples of a raster: out_info->n_x * n_y numbers, row by row from the south-west corner, NaN where
// there is none; to be released by us_raster_release with the same info. Errors as above; US_ERR_LIMIT for
// more than 2^26.
US_API us_status us_raster_load(const us_raster_def *def, us_raster_info *out_info, double **out_samples,
                                us_error *err);
US_API void us_raster_release(const us_raster_def *def, const us_raster_info *info, double *samples);

typedef struct us_site_import_def {
    us_raster_def height;
    int32_t n_ortho, n_region;
    const char *const *ortho;   // orthophotos: layer "colour"; what they do not cover is transparent
    const char *const *region;  // masks, 0 to 255: layer "region"; what they do not cover is 0
    bool is_filled;             // gaps are filled from the nearest values around them, in sixteen directions
    void (*progress)(void *context, double share);  // may be NULL
    void *context;
} us_site_import_def;

US_API us_site_import_def us_site_import_def_default(void);

// Makes a site of rasters in the directory `path`, which must be new or empty. Its reference height origin.z
// is the whole metre nearest to the middle between its extremes. Memory is bounded whatever the size. Gaps
// without `is_filled` are an error that reports how many there are and where the first is. On an error the
// directory has no site.json. `out_info`, which may be NULL, is of the heights before gaps were filled.
US_API us_status us_site_import(const us_site_import_def *def, const char *path, us_raster_info *out_info,
                                us_error *err);

// Bands of numbers on a grid, to be written as a GeoTIFF.
typedef struct us_raster_write_def {
    int32_t n_x, n_y;
    double dx, dy;          // m
    us_vec3 middle;         // of the samples in the reference system
    double yaw;             // rad, of x from east
    const char *reference;  // "EPSG:32610", WKT, PROJ, ...; NULL: plain metres
    int32_t n_band;
    const char *const *band;  // names
    // Fills n_x numbers of a band, row y from the south. Called from the northernmost row on, for one band
    // after the other. An error ends the writing.
    us_status (*row)(void *context, int32_t band, int32_t y, float *out, us_error *err);
    void *context;
} us_raster_write_def;

// Replaces a file that is there. Errors: US_ERR_IO names the file; US_ERR_VALUE for a reference system that
// is not known; those of `row`.
US_API us_status us_raster_write(const us_raster_write_def *def, const char *path, us_error *err);

// Writes a hillshade of a site, north up, lit from the north-west, as a PNG of at most 2048 x 2048 pixels.
US_API us_status us_site_write_hillshade(const us_site *site, const char *path, us_error *err);

#ifdef __cplusplus
}
#endif
#endif

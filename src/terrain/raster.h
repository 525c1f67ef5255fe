// Rasters inside the library: one or many files read as one grid of samples in a local metric frame.
#ifndef USI_TERRAIN_RASTER_H
#define USI_TERRAIN_RASTER_H

#include "terrain/gdal.h"
#include "understudy/raster.h"

// Frame: a grid of samples, row by row from the south-west corner, y to the north, in a reference system in
// metres.
typedef struct usi_frame {
    int32_t n_x, n_y;
    double x, y;  // of the middle
    double dx, dy;
    OGRSpatialReferenceH srs;  // NULL: plain metres. Owned by the raster that made the frame
} usi_frame;

// Base: the grid of the first file, extended to the samples of the other files: columns and rows, from `west`
// to before `east`, and so on.
typedef struct usi_base {
    double gt[6];              // GDAL's: (column, row) to coordinates of the reference system
    double inverse[6];         // and back
    OGRSpatialReferenceH srs;  // NULL: plain metres
    double west, east, north, south;
    double unit;  // m; of the coordinates. Without a meaning in degrees
    bool is_degrees;
} usi_base;

// Chooses the frame for the samples of a base, and whether it has exactly these; `file` is for messages. The
// caller releases out_frame->srs.
us_status usi_frame_plan(const usi_gdal *gdal, const usi_base *base, bool is_local, const char *file,
                         usi_frame *out_frame, bool *out_is_same, us_error *err);
// Latitude, longitude and scale factors of the frame's middle; NaN and 1 where the reference system has none.
void usi_frame_place(const usi_gdal *gdal, const usi_frame *frame, us_raster_info *info);
// The box around a file's outline in columns and rows of the base; false when it cannot be computed.
bool usi_base_box(const usi_gdal *gdal, const usi_base *base, OGRSpatialReferenceH srs, const double gt[6],
                  int32_t n_x, int32_t n_y, double out_box[4]);
// A frame as a base.
usi_base usi_base_of_frame(const usi_frame *frame);
bool usi_geo_inverse(const double gt[6], double out[6]);
static inline void usi_geo_apply(const double gt[6], double a, double b, double *out_x, double *out_y) {
    *out_x = gt[0] + a * gt[1] + b * gt[2];
    *out_y = gt[3] + a * gt[4] + b * gt[5];
}

typedef struct usi_raster usi_raster;

// Opens the files as heights (numbers), regions or colours. Without `within` the frame is that of the first
// file; with it the raster covers the same ground, from the first sample to the last, with samples about as
// far apart as in the first file, and def->band, is_local are not used.
us_status usi_raster_open(const us_raster_def *def, us_layer_type type, const usi_frame *within,
                          usi_raster **out_raster, us_error *err);
void usi_raster_close(usi_raster *raster);  // NULL is allowed
const usi_frame *usi_raster_frame(const usi_raster *raster);
const char *usi_raster_wkt(const usi_raster *raster);  // "" when there is none
// Extremes and gaps are known only after usi_raster_scan.
const us_raster_info *usi_raster_info(const usi_raster *raster);
const char *usi_raster_file(const usi_raster *raster);  // the first, for messages
// Reads a window of samples: double (NaN: a gap), uint8_t (0) or 4 uint8_t (transparent) each. One thread at
// a time.
us_status usi_raster_read(usi_raster *raster, int32_t i, int32_t j, int32_t n_x, int32_t n_y, void *out,
                          us_error *err);
// Finds the extremes and counts the gaps of heights; the first gap's column and row, when there is one, go
// into out_first[2] (may be NULL).
us_status usi_raster_scan(usi_raster *raster, void (*progress)(void *context, double share), void *context,
                          int32_t *out_first, us_error *err);
// The reference height of a site or field of heights between these: the whole metre nearest to their middle.
double usi_raster_datum(double low, double high);

#endif

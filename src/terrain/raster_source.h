// The files of a raster: shared by raster.c, which reads them, and raster_source.c, which resamples them onto
// one grid.
#ifndef USI_TERRAIN_RASTER_SOURCE_H
#define USI_TERRAIN_RASTER_SOURCE_H

#include "terrain/raster.h"

typedef struct usi_raster_source {
    const char *file;
    GDALDatasetH chain[5];  // file, signed, translated, joined, warped: each reads the one before it
    int32_t n_chain;
    OGRSpatialReferenceH srs;  // NULL: plain metres
    double gt[6];
    int32_t n_x, n_y;      // of the file
    int32_t band;          // of the last of the chain
    int32_t alpha;         // band of the file that says where there is something; 0: none
    bool is_signed;        // bytes of the file are from -128 to 127, which GDAL reads from 0 to 255
    double factor, shift;  // value = factor * sample + shift, m
    int32_t column, row, n_column, n_row;  // the part of the grid that it covers; rows from the north
    bool is_joined;                        // with the first: it is read through that
    bool is_much_finer;                    // than the grid
} usi_raster_source;

struct usi_raster {
    us_allocator allocator;
    const usi_gdal *gdal;
    us_raster_def def;
    us_layer_type type;
    usi_raster_source *sources;
    usi_frame frame;
    us_raster_info info;
    char *wkt;  // GDAL's memory
    uint8_t *room;
    size_t room_bytes;
    int64_t n_read;  // samples since blocks were last forgotten
};

// Opens s->file and checks its metadata.
us_status usi_source_open(usi_raster *r, usi_raster_source *s, us_error *err);
// Name of the type of a band's samples; that of bytes with a sign is Int8 for every version of GDAL.
const char *usi_source_type(const usi_gdal *gdal, GDALRasterBandH band);
// Resamples a file onto the grid of the frame. `base` is the grid of the first file; `is_same`: its samples
// are the frame's.
us_status usi_source_resample(usi_raster *r, usi_raster_source *s, const usi_base *base, bool is_same,
                              us_error *err);
// Joins the first files as far as they are heights on one grid and in one unit. Where they overlap the first
// wins.
us_status usi_source_join(usi_raster *r, const usi_base *base, us_error *err);

#endif

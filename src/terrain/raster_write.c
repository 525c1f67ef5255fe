// Writing a raster of numbers as a GeoTIFF, row by row: one row is in memory at a time.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "terrain/gdal.h"
#include "understudy/raster.h"

// Rows of a GeoTIFF run from the north, ours from the south.
static us_status write_rows(const usi_gdal *g, GDALDatasetH to, const us_raster_write_def *def, float *row,
                            us_error *err) {
    for (int32_t y = def->n_y - 1; y >= 0; y--) {
        for (int32_t band = 0; band < def->n_band; band++) {
            us_status status = def->row(def->context, band, y, row, err);
            if (status) return status;
            CPLErr wrong = g->GDALRasterIO(g->GDALGetRasterBand(to, band + 1), GF_Write, 0, def->n_y - 1 - y,
                                           def->n_x, 1, row, def->n_x, 1, GDT_Float32, 0, 0);
            if (wrong != CE_None) return us_error_set(err, US_ERR_IO, NULL, NULL, "a row cannot be written");
        }
    }
    return US_OK;
}

static us_status set_place(const usi_gdal *g, GDALDatasetH to, const us_raster_write_def *def,
                           us_error *err) {
    // From the corner of the first sample in the north-west; a sample lies in the middle of its pixel.
    double c = cos(def->yaw), s = sin(def->yaw), left = -0.5 * def->n_x * def->dx,
           top = 0.5 * def->n_y * def->dy;
    double transform[6] = {def->middle.x + c * left - s * top, c * def->dx, s * def->dy,
                           def->middle.y + s * left + c * top, s * def->dx, -c * def->dy};
    OGRSpatialReferenceH reference = g->OSRNewSpatialReference(NULL);
    const char *text =
        def->reference && def->reference[0] ? def->reference : "LOCAL_CS[\"site\",UNIT[\"metre\",1]]";
    bool is_known = reference && g->OSRSetFromUserInput(reference, text) == OGRERR_NONE;
    bool is_set = is_known && g->GDALSetGeoTransform(to, transform) == CE_None &&
                  g->GDALSetSpatialRef(to, reference) == CE_None;
    if (reference) g->OSRDestroySpatialReference(reference);
    for (int32_t i = 0; i < def->n_band; i++)
        g->GDALSetDescription(g->GDALGetRasterBand(to, i + 1), def->band[i]);
    if (is_set) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, "write EPSG:..., WKT or PROJ, or none",
                        "invalid reference system \"%.80s\"", text);
}

// The whole file. What went wrong is in `why` or in `error`.
static us_status write_file(const usi_gdal *g, const us_raster_write_def *def, const char *path, float *row,
                            usi_gdal_error *error, us_error *why) {
    char *options[] = {(char[]){"COMPRESS=DEFLATE"}, (char[]){"PREDICTOR=3"}, (char[]){"INTERLEAVE=BAND"},
                       (char[]){"BIGTIFF=IF_SAFER"}, NULL};
    usi_gdal_catch_begin(g, error);
    GDALDriverH driver = g->GDALGetDriverByName("GTiff");
    GDALDatasetH to =
        driver ? g->GDALCreate(driver, path, def->n_x, def->n_y, def->n_band, GDT_Float32, options) : NULL;
    us_status status = to ? set_place(g, to, def, why) : US_ERR_IO;
    if (!status) status = write_rows(g, to, def, row, why);
    if (to) g->GDALClose(to);
    usi_gdal_catch_end(g);
    // What was cached is written at the end, and may fail there.
    if (!status && error->text[0]) status = US_ERR_IO;
    return status;
}

us_status us_raster_write(const us_raster_write_def *def, const char *path, us_error *err) {
    if (!def || !path || !def->row || !def->band || def->n_band < 1 || def->n_x < 1 || def->n_y < 1 ||
        !(def->dx > 0) || !(def->dy > 0))
        return us_error_set(err, US_ERR_ARG, NULL, "give sizes, spacings, bands and a file name",
                            "a raster to be written is not whole");
    const usi_gdal *g = usi_gdal_get(err);
    if (!g) return US_ERR_IO;
    char part[USI_PART_PATH];
    us_status status = usi_part_begin(path, part, err);
    if (status) return status;
    us_place place = {.file = path};
    us_allocator allocator = us_allocator_default();
    float *row = usi_alloc(&allocator, sizeof *row * (size_t)def->n_x, USI_ALIGN);
    if (!row)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a row of %d numbers",
                            (int)def->n_x);
    usi_gdal_error error;
    us_error why = {0};
    status = write_file(g, def, part, row, &error, &why);
    usi_release(&allocator, row, sizeof *row * (size_t)def->n_x, USI_ALIGN);
    if (!status) return usi_part_end(part, path, err);
    remove(part);
    const char *message = why.message[0]  ? why.message
                          : error.text[0] ? error.text
                                          : "GDAL has no driver for GeoTIFF";
    return us_error_set(err, status, &place,
                        why.remedy[0] ? why.remedy
                                      : "name a file in a directory that can be written, on a disk with room",
                        "the raster cannot be written: %s", message);
}

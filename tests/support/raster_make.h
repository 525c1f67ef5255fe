// Rasters for tests, written by GDAL itself: a program that includes this links it.
#ifndef TEST_RASTER_MAKE_H
#define TEST_RASTER_MAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal.h>
#include <ogr_srs_api.h>

typedef struct raster_make {
    const char *path;
    int n_x, n_y, n_band;
    GDALDataType type;
    double gt[6];
    const char *srs;  // as OSRSetFromUserInput reads it; NULL: none
    const char *unit;
    double scale, offset;  // of the band; 0: not said
    bool has_nodata, has_no_place;
    double nodata;
    bool is_signed_byte;  // instead of `type`
    bool has_alpha;       // the last band is alpha
    bool has_mask;        // inside the file; `value` of band 0 is in it
    // The sample in a column and row of a band; coordinates are those of its middle.
    double (*value)(int band, int column, int row, double x, double y);
} raster_make;

// Bytes with a sign are a type of their own since GDAL 3.7; before, a creation option makes them, and their
// samples are written as 0 to 255.
static inline GDALDatasetH create_raster(const raster_make *m, int n_band) {
    GDALDataType type = m->type != GDT_Unknown ? m->type : GDT_Float64;
    char **options = NULL;
#if GDAL_VERSION_NUM >= 3070000
    if (m->is_signed_byte) type = GDT_Int8;
#else
    if (m->is_signed_byte) {
        type = GDT_Byte;
        options = CSLSetNameValue(options, "PIXELTYPE", "SIGNEDBYTE");
    }
#endif
    if (m->has_alpha) options = CSLSetNameValue(options, "ALPHA", "YES");
    GDALDatasetH ds =
        GDALCreate(GDALGetDriverByName("GTiff"), m->path, m->n_x, m->n_y, n_band, type, options);
    CSLDestroy(options);
    assert_non_null(ds);
    return ds;
}

static inline double as_written(const raster_make *m, double x) {
#if GDAL_VERSION_NUM < 3070000
    if (m->is_signed_byte && x < 0) return x + 256;
#endif
    (void)m;
    return x;
}

static inline void make_raster(const raster_make *m) {
    GDALAllRegister();
    int n_band = m->n_band ? m->n_band : 1;
    GDALDatasetH ds = create_raster(m, n_band);
    CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES");
    if (m->has_mask) assert_int_equal(GDALCreateDatasetMaskBand(ds, GMF_PER_DATASET), CE_None);
    if (!m->has_no_place) {
        double gt[6];
        for (int i = 0; i < 6; i++)
            gt[i] = m->gt[i];
        assert_int_equal(GDALSetGeoTransform(ds, gt), CE_None);
    }
    if (m->srs) {
        OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
        assert_int_equal(OSRSetFromUserInput(srs, m->srs), OGRERR_NONE);
        assert_int_equal(GDALSetSpatialRef(ds, srs), CE_None);
        OSRDestroySpatialReference(srs);
    }
    double *line = malloc((size_t)m->n_x * sizeof *line);
    assert_non_null(line);
    for (int b = m->has_mask ? 0 : 1; b <= n_band; b++) {
        GDALRasterBandH band = b ? GDALGetRasterBand(ds, b) : GDALGetMaskBand(GDALGetRasterBand(ds, 1));
        if (m->unit && b) assert_int_equal(GDALSetRasterUnitType(band, m->unit), CE_None);
        if (m->scale != 0 && b) assert_int_equal(GDALSetRasterScale(band, m->scale), CE_None);
        if (m->offset != 0 && b) assert_int_equal(GDALSetRasterOffset(band, m->offset), CE_None);
        if (m->has_nodata && b) assert_int_equal(GDALSetRasterNoDataValue(band, m->nodata), CE_None);
        for (int row = 0; row < m->n_y; row++) {
            for (int column = 0; column < m->n_x; column++) {
                double a = column + 0.5, c = row + 0.5;
                line[column] = as_written(m, m->value(b, column, row, m->gt[0] + a * m->gt[1] + c * m->gt[2],
                                                      m->gt[3] + a * m->gt[4] + c * m->gt[5]));
            }
            assert_int_equal(
                GDALRasterIO(band, GF_Write, 0, row, m->n_x, 1, line, m->n_x, 1, GDT_Float64, 0, 0), CE_None);
        }
    }
    free(line);
    GDALClose(ds);
    CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", NULL);
}

#endif

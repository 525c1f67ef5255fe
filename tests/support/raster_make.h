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
    // The sample in a column and row of a band; coordinates are those of its middle.
    double (*value)(int band, int column, int row, double x, double y);
} raster_make;

static inline void make_raster(const raster_make *m) {
    GDALAllRegister();
    int n_band = m->n_band ? m->n_band : 1;
    GDALDataType type = m->type != GDT_Unknown ? m->type : GDT_Float64;
    GDALDatasetH ds = GDALCreate(GDALGetDriverByName("GTiff"), m->path, m->n_x, m->n_y, n_band, type, NULL);
    assert_non_null(ds);
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
    for (int b = 1; b <= n_band; b++) {
        GDALRasterBandH band = GDALGetRasterBand(ds, b);
        if (m->unit) assert_int_equal(GDALSetRasterUnitType(band, m->unit), CE_None);
        if (m->scale != 0) assert_int_equal(GDALSetRasterScale(band, m->scale), CE_None);
        if (m->offset != 0) assert_int_equal(GDALSetRasterOffset(band, m->offset), CE_None);
        if (m->has_nodata) assert_int_equal(GDALSetRasterNoDataValue(band, m->nodata), CE_None);
        for (int row = 0; row < m->n_y; row++) {
            for (int column = 0; column < m->n_x; column++) {
                double a = column + 0.5, c = row + 0.5;
                line[column] = m->value(b, column, row, m->gt[0] + a * m->gt[1] + c * m->gt[2],
                                        m->gt[3] + a * m->gt[4] + c * m->gt[5]);
            }
            assert_int_equal(
                GDALRasterIO(band, GF_Write, 0, row, m->n_x, 1, line, m->n_x, 1, GDT_Float64, 0, 0), CE_None);
        }
    }
    free(line);
    GDALClose(ds);
}

#endif

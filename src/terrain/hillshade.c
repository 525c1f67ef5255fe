// Hillshade of a site: its ground in the light of a sun in the north-west, from the finest level that fits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "terrain/gdal.h"
#include "understudy/raster.h"

enum { MAX_SIZE = 2048 };  // pixels each way

typedef struct hillshade {
    us_allocator allocator;
    int32_t level, n_x, n_y;
    double dx, dy;
    float *height;   // row by row from the south
    uint8_t *shade;  // row by row from the north
    size_t n;
} hillshade;

static int32_t samples_of(int32_t n, int32_t level) { return ((n - 1) >> level) + 1; }

static us_status read_level(const us_site *site, hillshade *p, us_error *err) {
    float *tile = usi_alloc(&p->allocator, sizeof *tile * US_SITE_TILE * US_SITE_TILE, USI_ALIGN);
    if (!tile) return US_ERR_MEMORY;
    us_status status = US_OK;
    int32_t n_x, n_y;
    for (int32_t v = 0; us_site_tile_size(site, 0, p->level, 0, v, &n_x, &n_y) && !status; v++) {
        for (int32_t u = 0; us_site_tile_size(site, 0, p->level, u, v, &n_x, &n_y) && !status; u++) {
            status = us_site_read(site, 0, p->level, u, v, tile, err);
            for (int32_t j = 0; j < n_y && !status; j++) {
                size_t to = (size_t)(v * US_SITE_TILE + j) * (size_t)p->n_x + (size_t)(u * US_SITE_TILE);
                memcpy(p->height + to, tile + (size_t)j * (size_t)n_x, sizeof *tile * (size_t)n_x);
            }
        }
    }
    usi_release(&p->allocator, tile, sizeof *tile * US_SITE_TILE * US_SITE_TILE, USI_ALIGN);
    return status;
}

// The cosine between the ground's normal and the sun, 45 degrees high; level ground is a light grey.
static void shade(hillshade *p) {
    const double sun[3] = {-0.5, 0.5, 0.70710678118654752};
    for (int32_t j = 0; j < p->n_y; j++) {
        int32_t south = j > 0 ? j - 1 : j, north = j + 1 < p->n_y ? j + 1 : j;
        for (int32_t i = 0; i < p->n_x; i++) {
            int32_t west = i > 0 ? i - 1 : i, east = i + 1 < p->n_x ? i + 1 : i;
            const float *row = p->height + (size_t)j * (size_t)p->n_x;
            double x = ((double)row[east] - (double)row[west]) / ((east - west) * p->dx);
            double y = ((double)p->height[(size_t)north * (size_t)p->n_x + (size_t)i] -
                        (double)p->height[(size_t)south * (size_t)p->n_x + (size_t)i]) /
                       ((north - south) * p->dy);
            double light = (sun[2] - x * sun[0] - y * sun[1]) / sqrt(1 + x * x + y * y);
            p->shade[(size_t)(p->n_y - 1 - j) * (size_t)p->n_x + (size_t)i] =
                (uint8_t)(255 * fmin(1, fmax(0, light)) + 0.5);
        }
    }
}

static us_status write_png(const hillshade *p, const char *path, us_error *err) {
    const usi_gdal *g = usi_gdal_get(err);
    if (!g) return US_ERR_IO;
    us_place place = {.file = path};
    usi_gdal_error error;
    // Made in memory: GDAL's writer of PNG does not look at whether the disk takes it.
    char name[64];
    snprintf(name, sizeof name, "/vsimem/understudy-%p.png", (const void *)p);
    usi_gdal_catch_begin(g, &error);
    GDALDriverH memory = g->GDALGetDriverByName("MEM"), png = g->GDALGetDriverByName("PNG");
    GDALDatasetH from = memory && png ? g->GDALCreate(memory, "", p->n_x, p->n_y, 1, GDT_Byte, NULL) : NULL,
                 to = NULL;
    if (from && g->GDALRasterIO(g->GDALGetRasterBand(from, 1), GF_Write, 0, 0, p->n_x, p->n_y, p->shade,
                                p->n_x, p->n_y, GDT_Byte, 0, 0) == CE_None)
        to = g->GDALCreateCopy(png, name, from, 0, NULL, NULL, NULL);
    if (to) g->GDALClose(to);
    if (from) g->GDALClose(from);
    vsi_l_offset length = 0;
    const void *bytes = to ? g->VSIGetMemFileBuffer(name, &length, 0) : NULL;
    us_status status = US_OK;
    if (bytes && !error.text[0]) {
        status = usi_bytes_write(path, bytes, (size_t)length, NULL, 0, err);
    } else {
        status = us_error_set(err, US_ERR_IO, &place, "install GDAL with its PNG driver, or free memory",
                              "the hillshade cannot be made: %s",
                              error.text[0] ? error.text : "GDAL has no driver for PNG");
    }
    if (to) g->VSIUnlink(name);
    usi_gdal_catch_end(g);
    return status;
}

us_status us_site_write_hillshade(const us_site *site, const char *path, us_error *err) {
    if (!site || !path)
        return us_error_set(err, US_ERR_ARG, NULL, "give a site and a file name", "an argument is NULL");
    us_site_info info = us_site_get_info(site);
    const us_layer_info *l = &info.layer[0];
    hillshade p = {.allocator = us_allocator_default()};
    while (p.level + 1 < l->n_level &&
           (samples_of(l->n_x, p.level) > MAX_SIZE || samples_of(l->n_y, p.level) > MAX_SIZE))
        p.level++;
    p.n_x = samples_of(l->n_x, p.level);
    p.n_y = samples_of(l->n_y, p.level);
    p.dx = ldexp(l->dx, p.level);
    p.dy = ldexp(l->dy, p.level);
    p.n = (size_t)p.n_x * (size_t)p.n_y;
    p.height = usi_alloc(&p.allocator, p.n * sizeof *p.height, USI_ALIGN);
    p.shade = usi_alloc(&p.allocator, p.n, USI_ALIGN);
    us_status status = p.height && p.shade ? read_level(site, &p, err) : US_ERR_MEMORY;
    if (status == US_ERR_MEMORY) us_error_set(err, status, NULL, NULL, "no memory for a hillshade");
    if (!status) {
        shade(&p);
        status = write_png(&p, path, err);
    }
    usi_release(&p.allocator, p.height, p.n * sizeof *p.height, USI_ALIGN);
    usi_release(&p.allocator, p.shade, p.n, USI_ALIGN);
    return status;
}

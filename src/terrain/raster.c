// Rasters: one or many files as one grid of samples, opened, and read in windows. How each file is resampled
// onto the grid is in raster_source.c.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "terrain/raster_source.h"

enum { SCAN = 512, MAX_CACHED = 8 * 1000 * 1000 };

us_raster_def us_raster_def_default(void) { return (us_raster_def){.allocator = us_allocator_default()}; }
const usi_frame *usi_raster_frame(const usi_raster *r) { return &r->frame; }
const char *usi_raster_wkt(const usi_raster *r) { return r->wkt ? r->wkt : ""; }
const us_raster_info *usi_raster_info(const usi_raster *r) { return &r->info; }
const char *usi_raster_file(const usi_raster *r) { return r->sources[0].file; }
double usi_raster_datum(double low, double high) { return round(0.5 * (low + high)); }

static us_status no_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a raster");
}

// ---------------------------------------------------------------- opening

// Extends the grid of the first file to all files.
static us_status find_base(usi_raster *r, usi_base *out, us_error *err) {
    const usi_gdal *g = r->gdal;
    const usi_raster_source *first = r->sources;
    usi_base b = {.srs = first->srs, .east = first->n_x, .south = first->n_y, .unit = 1};
    memcpy(b.gt, first->gt, sizeof b.gt);
    usi_geo_inverse(b.gt, b.inverse);
    b.is_degrees = b.srs && g->OSRIsGeographic(b.srs);
    if (b.srs && !b.is_degrees) b.unit = g->OSRGetLinearUnits(b.srs, NULL);
    if (!(b.unit > 0)) b.unit = 1;
    for (int32_t k = 1; k < r->def.n_file; k++) {
        const usi_raster_source *s = &r->sources[k];
        double box[4];
        us_place place = {.file = s->file};
        if (!s->srs != !b.srs)
            return us_error_set(err, US_ERR_VALUE, &place, "say by --reference what the one without is in",
                                "of this file and the first one only one has a reference system");
        if (!usi_base_box(g, &b, s->srs, s->gt, s->n_x, s->n_y, box))
            return us_error_set(err, US_ERR_VALUE, &place,
                                "reproject it first: gdalwarp -t_srs ... IN.tif OUT.tif",
                                "part of it lies where the projection of the first file has no place");
        // Within a thousandth of a sample edges coincide.
        b.west = fmin(b.west, floor(box[0] + 1e-3));
        b.east = fmax(b.east, ceil(box[1] - 1e-3));
        b.north = fmin(b.north, floor(box[2] + 1e-3));
        b.south = fmax(b.south, ceil(box[3] - 1e-3));
    }
    *out = b;
    return US_OK;
}

// Chooses a frame over the ground of another one: about as many samples as the first file has there, the
// first and the last of them in the same places.
static us_status fit_within(usi_raster *r, const usi_frame *within, us_error *err) {
    const usi_gdal *g = r->gdal;
    const usi_raster_source *s = r->sources;
    usi_frame *f = &r->frame;
    us_place place = {.file = s->file};
    usi_base grid = usi_base_of_frame(within);
    double box[4];
    bool is_good = usi_base_box(g, &grid, s->srs, s->gt, s->n_x, s->n_y, box);
    if (!is_good || box[1] <= 0 || box[0] >= within->n_x || box[3] <= 0 || box[2] >= within->n_y)
        return us_error_set(
            err, US_ERR_VALUE, &place, "give one of the same place, with the right reference system",
            "it lies outside of the heights: %.0f to %.0f of %d columns, %.0f to %.0f of %d rows", box[0],
            box[1], (int)within->n_x, box[2], box[3], (int)within->n_y);
    // Columns and rows of the heights for one sample of this; of a rotated one the finer of the two.
    double a = (box[1] - box[0]) / s->n_x, b = (box[3] - box[2]) / s->n_y;
    if (fabs(s->gt[2]) > 0.1 * fabs(s->gt[1]))
        a = b = fmin(box[1] - box[0], box[3] - box[2]) / hypot(s->n_x, s->n_y);
    double n_x = round((within->n_x - 1) / a) + 1, n_y = round((within->n_y - 1) / b) + 1;
    if (!(n_x < INT32_MAX / 2) || !(n_y < INT32_MAX / 2))
        return us_error_set(err, US_ERR_LIMIT, &place, "make it coarser: gdalwarp -tr DX DY IN.tif OUT.tif",
                            "on the ground of the heights it has %.0f x %.0f samples", n_x, n_y);
    *f = *within;
    f->srs = within->srs ? g->OSRClone(within->srs) : NULL;
    f->n_x = n_x < 2 ? 2 : (int32_t)n_x;
    f->n_y = n_y < 2 ? 2 : (int32_t)n_y;
    f->dx = within->dx * (within->n_x - 1) / (f->n_x - 1);
    f->dy = within->dy * (within->n_y - 1) / (f->n_y - 1);
    return US_OK;
}

static void describe(usi_raster *r) {
    const usi_gdal *g = r->gdal;
    const usi_raster_source *s = r->sources;
    us_raster_info *info = &r->info;
    GDALRasterBandH band = g->GDALGetRasterBand(s->chain[0], s->band ? s->band : 1);
    info->n_x = r->frame.n_x;
    info->n_y = r->frame.n_y;
    info->dx = r->frame.dx;
    info->dy = r->frame.dy;
    info->middle = us_vec3_make(r->frame.x, r->frame.y, 0);
    info->file_n_x = s->n_x;
    info->file_n_y = s->n_y;
    info->band = s->band;
    info->n_band = g->GDALGetRasterCount(s->chain[0]);
    info->low = info->high = NAN;
    snprintf(info->type, sizeof info->type, "%s", usi_source_type(g, band));
    snprintf(info->colour, sizeof info->colour, "%s",
             g->GDALGetColorInterpretationName(g->GDALGetRasterColorInterpretation(band)));
    usi_frame_place(g, &r->frame, info);
    if (!r->frame.srs) return;
    snprintf(info->reference, sizeof info->reference, "%s", g->OSRGetName(r->frame.srs));
    static const char *const wkt2[] = {"FORMAT=WKT2_2019", NULL};
    g->OSRExportToWktEx(r->frame.srs, &r->wkt, wkt2);
}

static us_status open_all(usi_raster *r, const usi_frame *within, us_error *err) {
    us_status status = US_OK;
    for (int32_t k = 0; k < r->def.n_file && !status; k++) {
        r->sources[k].file = r->def.file[k];
        status = usi_source_open(r, &r->sources[k], err);
    }
    if (status) return status;
    usi_base base = {.unit = 1};
    bool is_same = true;
    usi_gdal_error error;
    usi_gdal_catch_begin(r->gdal, &error);
    if (within) {
        status = fit_within(r, within, err);
        base = usi_base_of_frame(&r->frame);
    } else {
        status = find_base(r, &base, err);
        if (!status)
            status =
                usi_frame_plan(r->gdal, &base, r->def.is_local, r->def.file[0], &r->frame, &is_same, err);
    }
    if (!status) describe(r);
    usi_gdal_catch_end(r->gdal);
    r->info.is_resampled = !is_same;
    if (!status && !is_same && r->type == US_LAYER_NUMBER) status = usi_source_join(r, &base, err);
    for (int32_t k = 0; k < r->def.n_file && !status; k++) {
        if (!r->sources[k].is_joined) status = usi_source_resample(r, &r->sources[k], &base, is_same, err);
    }
    return status;
}

us_status usi_raster_open(const us_raster_def *def, us_layer_type type, const usi_frame *within,
                          usi_raster **out_raster, us_error *err) {
    if (def->n_file < 1 || !def->file)
        return us_error_set(err, US_ERR_ARG, NULL, "give the names of the rasters",
                            "there is no raster to read");
    const usi_gdal *gdal = usi_gdal_get(err);
    if (!gdal) return US_ERR_IO;
    usi_raster *r = usi_alloc(&def->allocator, sizeof *r, _Alignof(usi_raster));
    if (!r) return no_memory(err);
    memset(r, 0, sizeof *r);
    r->allocator = def->allocator;
    r->gdal = gdal;
    r->def = *def;
    r->type = type;
    if (within) {
        r->def.band = 0;
        r->def.is_local = false;
    }
    size_t bytes = (size_t)def->n_file * sizeof *r->sources;
    us_status status = US_OK;
    if ((r->sources = usi_alloc(&r->allocator, bytes, _Alignof(usi_raster_source)))) {
        memset(r->sources, 0, bytes);
        status = open_all(r, within, err);
    } else {
        status = no_memory(err);
    }
    if (status)
        usi_raster_close(r);
    else
        *out_raster = r;
    return status;
}

void usi_raster_close(usi_raster *r) {
    if (!r) return;
    const usi_gdal *g = r->gdal;
    usi_gdal_error error;
    usi_gdal_catch_begin(g, &error);
    // In this order: a joined dataset reads those of the other files.
    for (int32_t k = 0; r->sources && k < r->def.n_file; k++) {
        usi_raster_source *s = &r->sources[k];
        while (s->n_chain > 0)
            g->GDALClose(s->chain[--s->n_chain]);
        if (s->srs) g->OSRDestroySpatialReference(s->srs);
    }
    if (r->frame.srs) g->OSRDestroySpatialReference(r->frame.srs);
    g->VSIFree(r->wkt);
    usi_gdal_catch_end(g);
    us_allocator a = r->allocator;
    usi_release(&a, r->room, r->room_bytes, USI_ALIGN);
    usi_release(&a, r->sources, (size_t)r->def.n_file * sizeof *r->sources, _Alignof(usi_raster_source));
    usi_release(&a, r, sizeof *r, _Alignof(usi_raster));
}

// ---------------------------------------------------------------- reading

// Window of the frame, in columns and rows from the north-west.
typedef struct raster_window {
    int32_t column, row, n_x, n_y;
} raster_window;

static CPLErr read_band(const usi_raster *r, const usi_raster_source *s, GDALRasterBandH band,
                        const raster_window *p, void *out, GDALDataType type) {
    return r->gdal->GDALRasterIO(band, GF_Read, p->column - s->column, p->row - s->row, p->n_x, p->n_y, out,
                                 p->n_x, p->n_y, type, 0, 0);
}

static CPLErr read_source(const usi_raster *r, const usi_raster_source *s, const raster_window *p,
                          bool *out_has_mask) {
    const usi_gdal *g = r->gdal;
    GDALDatasetH ds = s->chain[s->n_chain - 1];
    size_t n = (size_t)p->n_x * (size_t)p->n_y;
    CPLErr bad = CE_None;
    if (r->type == US_LAYER_COLOUR) {
        for (int i = 0; i < 4 && !bad; i++)
            bad = read_band(r, s, g->GDALGetRasterBand(ds, i + 1), p, r->room + (size_t)i * n, GDT_Byte);
        return bad;
    }
    GDALRasterBandH band = g->GDALGetRasterBand(ds, s->band);
    *out_has_mask = !(g->GDALGetMaskFlags(band) & GMF_ALL_VALID);
    bad = read_band(r, s, band, p, r->room, r->type == US_LAYER_NUMBER ? GDT_Float64 : GDT_Byte);
    uint8_t *mask = r->room + n * sizeof(double), *alpha = mask + n;
    if (!bad && *out_has_mask) bad = read_band(r, s, g->GDALGetMaskBand(band), p, mask, GDT_Byte);
    if (bad || !s->alpha) return bad;
    // Alpha beside a number that means a gap: GDAL's mask is of the number alone.
    if (!*out_has_mask) memset(mask, 255, n);
    *out_has_mask = true;
    bad = read_band(r, s, g->GDALGetRasterBand(ds, s->alpha), p, alpha, GDT_Byte);
    for (size_t k = 0; k < n && !bad; k++)
        if (!alpha[k]) mask[k] = 0;
    return bad;
}

// Fills the gaps of the window with the samples of a source.
static void fill_gaps(const usi_raster *r, const usi_raster_source *s, const raster_window *p, bool has_mask,
                      int32_t west, int32_t south, int32_t n_x, void *out) {
    size_t n = (size_t)p->n_x * (size_t)p->n_y;
    const uint8_t *mask = r->room + n * sizeof(double), *bytes = r->room;
    const double *numbers = (const double *)(const void *)r->room;
    for (int32_t b = 0; b < p->n_y; b++) {
        int32_t j = r->frame.n_y - 1 - (p->row + b) - south;  // northward in the window
        for (int32_t a = 0; a < p->n_x; a++) {
            size_t k = (size_t)b * (size_t)p->n_x + (size_t)a,
                   to = (size_t)j * (size_t)n_x + (size_t)(p->column + a - west);
            if (r->type == US_LAYER_COLOUR) {
                uint8_t *c = (uint8_t *)out + 4 * to;
                if (c[3] == 0 && bytes[3 * n + k] > 0) {
                    c[0] = bytes[k];
                    c[1] = bytes[n + k];
                    c[2] = bytes[2 * n + k];
                    c[3] = bytes[3 * n + k];
                }
            } else if (has_mask && !mask[k]) {
                continue;
            } else if (r->type == US_LAYER_REGION) {
                uint8_t *c = (uint8_t *)out + to;
                if (!*c) *c = bytes[k];
            } else {
                double *z = (double *)out + to, value = s->factor * numbers[k] + s->shift;
                bool is_gap = !isfinite(value) || (r->def.nodata && numbers[k] == *r->def.nodata);
                if (isnan(*z) && !is_gap) *z = value;
            }
        }
    }
}

// Flushes GDAL's cache of blocks, which may take a fraction of the machine's memory; its limit is global and
// not changed by a library.
static void flush_cache(usi_raster *r) {
    const usi_gdal *g = r->gdal;
    for (int32_t k = 0; k < r->def.n_file; k++) {
        const usi_raster_source *s = &r->sources[k];
        for (int32_t c = 0; c < s->n_chain; c++) {
            for (int b = 1; b <= g->GDALGetRasterCount(s->chain[c]); b++)
                g->GDALFlushRasterCache(g->GDALGetRasterBand(s->chain[c], b));
        }
    }
    r->n_read = 0;
}

us_status usi_raster_read(usi_raster *r, int32_t i, int32_t j, int32_t n_x, int32_t n_y, void *out,
                          us_error *err) {
    size_t n = (size_t)n_x * (size_t)n_y, bytes = n * (sizeof(double) + 2);
    if (bytes > r->room_bytes) {
        usi_release(&r->allocator, r->room, r->room_bytes, USI_ALIGN);
        r->room = usi_alloc(&r->allocator, bytes, USI_ALIGN);
        r->room_bytes = r->room ? bytes : 0;
        if (!r->room) return no_memory(err);
    }
    if (r->type == US_LAYER_NUMBER) {
        for (size_t k = 0; k < n; k++)
            ((double *)out)[k] = NAN;
    } else {
        memset(out, 0, n * (r->type == US_LAYER_COLOUR ? 4 : 1));
    }
    for (int32_t k = 0; k < r->def.n_file; k++) {
        const usi_raster_source *s = &r->sources[k];
        int32_t top = r->frame.n_y - j - n_y;  // the window's northernmost row
        int32_t west = i > s->column ? i : s->column,
                east = i + n_x < s->column + s->n_column ? i + n_x : s->column + s->n_column;
        int32_t north = top > s->row ? top : s->row,
                south = top + n_y < s->row + s->n_row ? top + n_y : s->row + s->n_row;
        if (west >= east || north >= south) continue;
        raster_window p = {west, north, east - west, south - north};
        bool has_mask = false;
        usi_gdal_error error;
        usi_gdal_catch_begin(r->gdal, &error);
        CPLErr bad = read_source(r, s, &p, &has_mask);
        usi_gdal_catch_end(r->gdal);
        us_place place = {.file = s->file};
        if (bad)
            return us_error_set(
                err, US_ERR_IO, &place, "get the file again: it may have been cut off on the way",
                "its samples cannot be read: %s", error.text[0] ? error.text : "no message from GDAL");
        fill_gaps(r, s, &p, has_mask, i, j, n_x, out);
    }
    if ((r->n_read += (int64_t)n) > MAX_CACHED) flush_cache(r);
    return US_OK;
}

us_status usi_raster_scan(usi_raster *r, void (*progress)(void *context, double share), void *context,
                          int32_t *out_first, us_error *err) {
    const usi_frame *f = &r->frame;
    double *z = usi_alloc(&r->allocator, sizeof(double) * SCAN * SCAN, USI_ALIGN), low = INFINITY,
           high = -INFINITY;
    if (!z) return no_memory(err);
    int64_t n_gap = 0;
    us_status status = US_OK;
    for (int32_t j = 0; j < f->n_y && !status; j += SCAN) {
        int32_t n_y = f->n_y - j < SCAN ? f->n_y - j : SCAN;
        for (int32_t i = 0; i < f->n_x && !status; i += SCAN) {
            int32_t n_x = f->n_x - i < SCAN ? f->n_x - i : SCAN;
            status = usi_raster_read(r, i, j, n_x, n_y, z, err);
            for (int32_t k = 0; k < n_x * n_y && !status; k++) {
                low = fmin(low, z[k]);
                high = fmax(high, z[k]);  // a NaN is left aside
                if (isnan(z[k]) && n_gap++ == 0 && out_first) {
                    out_first[0] = i + k % n_x;
                    out_first[1] = j + k / n_x;
                }
            }
        }
        if (progress) progress(context, (double)(j + n_y) / f->n_y);
    }
    usi_release(&r->allocator, z, sizeof(double) * SCAN * SCAN, USI_ALIGN);
    if (status) return status;
    r->info.n_gap = n_gap;
    bool is_empty = n_gap == (int64_t)f->n_x * f->n_y;
    r->info.low = is_empty ? NAN : low;
    r->info.high = is_empty ? NAN : high;
    return US_OK;
}

us_status us_raster_find_info(const us_raster_def *def, void (*progress)(void *context, double share),
                              void *context, us_raster_info *out_info, us_error *err) {
    if (!def || !out_info)
        return us_error_set(err, US_ERR_ARG, NULL, "give a definition and a place for the answer",
                            "an argument is NULL");
    usi_raster *r = NULL;
    us_status status = usi_raster_open(def, US_LAYER_NUMBER, NULL, &r, err);
    if (r && !status) status = usi_raster_scan(r, progress, context, NULL, err);
    if (r && !status) *out_info = r->info;
    usi_raster_close(r);
    return status;
}

enum { MAX_LOADED = 1 << 26 };

us_status us_raster_load(const us_raster_def *def, us_raster_info *out_info, double **out_samples,
                         us_error *err) {
    if (!def || !out_info || !out_samples)
        return us_error_set(err, US_ERR_ARG, NULL, "give a definition and places for the answer",
                            "an argument is NULL");
    usi_raster *r = NULL;
    us_status status = usi_raster_open(def, US_LAYER_NUMBER, NULL, &r, err);
    if (status || !r) return status;
    us_place place = {.file = usi_raster_file(r)};
    const size_t n = (size_t)r->frame.n_x * (size_t)r->frame.n_y;
    double *samples = n <= MAX_LOADED ? usi_alloc(&def->allocator, n * sizeof(double), USI_ALIGN) : NULL;
    if (n > MAX_LOADED)
        status = us_error_set(err, US_ERR_LIMIT, &place, "make it coarser: gdalwarp -tr DX DY IN.tif OUT.tif",
                              "%d x %d samples are more than 2^26", (int)r->frame.n_x, (int)r->frame.n_y);
    else
        status =
            samples ? usi_raster_read(r, 0, 0, r->frame.n_x, r->frame.n_y, samples, err) : no_memory(err);
    if (status) {
        usi_release(&def->allocator, samples, n * sizeof(double), USI_ALIGN);
    } else {
        *out_info = r->info;
        *out_samples = samples;
    }
    usi_raster_close(r);
    return status;
}

void us_raster_release(const us_raster_def *def, const us_raster_info *info, double *samples) {
    if (samples)
        usi_release(&def->allocator, samples, (size_t)info->n_x * (size_t)info->n_y * sizeof(double),
                    USI_ALIGN);
}

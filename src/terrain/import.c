// Sites from rasters.
//
// The heights are read twice: once for their extremes and gaps, which decide the reference height and whether
// there is a site at all; then tile by tile. No more than a tile is in memory at a time, or, where one has
// gaps to fill, that tile and the samples as far around it as a filling reaches.
//
// A gap is filled from the values that a sample of it sees in sixteen directions: the first one in each,
// weighted by one over its squared distance.
//
//      . x . x .    The filling depends on the values around it alone, so that tiles meet without a seam, and
//      x x x x x    inside a gap the ground runs smoothly from one rim to the other. The sixteen directions
//      . x o x .    are the sides, the diagonals, and the knight's moves between them.
//      x x x x x
//      . x . x .
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "terrain/raster.h"

enum { TILE = US_SITE_TILE, REACH = 512, WINDOW = TILE + 2 * REACH };

typedef struct importer {
    const us_site_import_def *def;
    const char *path;
    usi_raster *layer[3];  // of a us_layer_type; NULL: not asked for
    us_site *site;
    double datum;
    double *window;   // of heights, with what is around a tile
    void *samples;    // of a tile, as the site keeps them
    double from, to;  // the share of the whole that is under way
    int64_t n_done, n_all;
} importer;

us_site_import_def us_site_import_def_default(void) {
    return (us_site_import_def){.height = us_raster_def_default()};
}

static us_status no_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory to import a site");
}

static void report_progress(void *context, double share) {
    const importer *m = context;
    if (m->def->progress) m->def->progress(m->def->context, m->from + share * (m->to - m->from));
}

static us_status open_layers(importer *m, us_error *err) {
    const us_site_import_def *d = m->def;
    us_status status = usi_raster_open(&d->height, US_LAYER_NUMBER, NULL, &m->layer[US_LAYER_NUMBER], err);
    us_raster_def other = d->height;
    for (int k = 0; k < 2 && !status; k++) {
        other.n_file = k == 0 ? d->n_ortho : d->n_region;
        other.file = k == 0 ? d->ortho : d->region;
        us_layer_type type = k == 0 ? US_LAYER_COLOUR : US_LAYER_REGION;
        if (other.n_file > 0)
            status = usi_raster_open(&other, type, usi_raster_frame(m->layer[US_LAYER_NUMBER]),
                                     &m->layer[type], err);
    }
    return status;
}

// ---------------------------------------------------------------- gaps

static us_status check_gaps(const importer *m, const int32_t first[2], us_error *err) {
    const usi_raster *r = m->layer[US_LAYER_NUMBER];
    const us_raster_info *info = usi_raster_info(r);
    us_place place = {.file = usi_raster_file(r)};
    int64_t n_all = (int64_t)info->n_x * info->n_y;
    if (info->n_gap == n_all)
        return us_error_set(err, US_ERR_VALUE, &place, "look at it with gdalinfo -stats",
                            "no sample of it has a value");
    if (info->n_gap == 0 || m->def->is_filled) return US_OK;
    double x = info->middle.x + (first[0] - 0.5 * (info->n_x - 1)) * info->dx,
           y = info->middle.y + (first[1] - 0.5 * (info->n_y - 1)) * info->dy;
    return us_error_set(
        err, US_ERR_VALUE, &place,
        "fill them from what is around them by --fill, or name another raster behind this one that has them",
        "%lld of its %lld samples (%.2g %%) have no value, the first at %.2f east, %.2f north",
        (long long)info->n_gap, (long long)n_all, 100 * (double)info->n_gap / (double)n_all, x, y);
}

// Filling of a gap at (i, j) of a window; NaN when there is no value in reach.
static double fill_value(const double *z, int32_t n_x, int32_t n_y, int32_t i, int32_t j) {
    static const int32_t step[16][2] = {{1, 0},  {2, 1},  {1, 1},  {1, 2},   {0, 1},   {-1, 2},
                                        {-1, 1}, {-2, 1}, {-1, 0}, {-2, -1}, {-1, -1}, {-1, -2},
                                        {0, -1}, {1, -2}, {1, -1}, {2, -1}};
    double sum = 0, weight = 0;
    for (int d = 0; d < 16; d++) {
        int32_t a = step[d][0], b = step[d][1], each = a * a + b * b;
        for (int32_t k = 1, x = i + a, y = j + b;
             (int64_t)k * k * each <= (int64_t)REACH * REACH && x >= 0 && y >= 0 && x < n_x && y < n_y;
             k++, x += a, y += b) {
            double value = z[(size_t)y * (size_t)n_x + (size_t)x];
            if (isnan(value)) continue;
            double w = 1 / ((double)k * k * each);
            sum += w * value;
            weight += w;
            break;
        }
    }
    return weight > 0 ? sum / weight : NAN;
}

// ---------------------------------------------------------------- tiles

// Reads the heights of a tile; where they have gaps, also what is around it, and fills them.
static us_status read_heights(importer *m, int32_t u, int32_t v, int32_t n_x, int32_t n_y, us_error *err) {
    usi_raster *r = m->layer[US_LAYER_NUMBER];
    const usi_frame *f = usi_raster_frame(r);
    float *out = m->samples;
    int32_t i = u * TILE, j = v * TILE, west = i, south = j, east = i + n_x, north = j + n_y;
    bool has_gap = false;
    us_status status = usi_raster_read(r, i, j, n_x, n_y, m->window, err);
    for (int32_t k = 0; k < n_x * n_y && !status; k++)
        has_gap |= isnan(m->window[k]);
    if (has_gap && !status) {
        west = i > REACH ? i - REACH : 0;
        east = f->n_x - east > REACH ? east + REACH : f->n_x;
        south = j > REACH ? j - REACH : 0;
        north = f->n_y - north > REACH ? north + REACH : f->n_y;
        status = usi_raster_read(r, west, south, east - west, north - south, m->window, err);
    }
    int32_t wide = east - west, high = north - south;
    for (int32_t b = 0; b < n_y && !status; b++) {
        for (int32_t a = 0; a < n_x && !status; a++) {
            int32_t x = i - west + a, y = j - south + b;
            double z = m->window[(size_t)y * (size_t)wide + (size_t)x];
            if (isnan(z)) z = fill_value(m->window, wide, high, x, y);
            us_place place = {.file = usi_raster_file(r)};
            if (isnan(z))
                status = us_error_set(
                    err, US_ERR_LIMIT, &place,
                    "cut out the part that has values: gdal_translate -projwin WEST NORTH EAST SOUTH IN.tif "
                    "OUT.tif",
                    "a gap at column %d, row %d is more than %d samples from any value: too far to fill",
                    (int)(i + a), (int)(j + b), REACH);
            out[(size_t)b * (size_t)n_x + (size_t)a] = (float)(z - m->datum);
        }
    }
    return status;
}

static us_status write_layer(importer *m, int32_t layer, us_layer_type type, us_error *err) {
    int32_t n_x, n_y;
    us_status status = US_OK;
    for (int32_t v = 0; us_site_tile_size(m->site, layer, 0, 0, v, &n_x, &n_y) && !status; v++) {
        for (int32_t u = 0; us_site_tile_size(m->site, layer, 0, u, v, &n_x, &n_y) && !status; u++) {
            status = type == US_LAYER_NUMBER
                         ? read_heights(m, u, v, n_x, n_y, err)
                         : usi_raster_read(m->layer[type], u * TILE, v * TILE, n_x, n_y, m->samples, err);
            if (!status) status = us_site_write(m->site, layer, u, v, m->samples, err);
            m->n_done++;
            report_progress(m, (double)m->n_done / (double)m->n_all);
        }
    }
    return status;
}

static us_status write_site(importer *m, us_error *err) {
    static const struct {
        const char *name;
        us_layer_type type;
    } rows[] = {{"height", US_LAYER_NUMBER}, {"colour", US_LAYER_COLOUR}, {"region", US_LAYER_REGION}};
    usi_raster *r = m->layer[US_LAYER_NUMBER];
    const us_raster_info *raster = usi_raster_info(r);
    us_site_info info = {.wkt = usi_raster_wkt(r), .n_gap = raster->n_gap};
    info.origin = us_vec3_make(raster->middle.x, raster->middle.y, m->datum);
    memcpy(info.reference, raster->reference, sizeof info.reference);
    for (int i = 0; i < 3; i++) {
        if (!m->layer[rows[i].type]) continue;
        const usi_frame *f = usi_raster_frame(m->layer[rows[i].type]);
        us_layer_info *l = &info.layer[info.n_layer];
        *l = (us_layer_info){.type = rows[i].type, .n_x = f->n_x, .n_y = f->n_y, .dx = f->dx, .dy = f->dy};
        memcpy(l->name, rows[i].name, strlen(rows[i].name));
        info.n_layer++;
        m->n_all += (int64_t)((f->n_x - 1) / TILE + 1) * ((f->n_y - 1) / TILE + 1);
    }
    us_status status = us_site_create(m->path, &info, &m->def->height.allocator, &m->site, err);
    m->from = m->to;
    m->to = 0.9;
    for (int32_t k = 0; k < info.n_layer && !status; k++)
        status = write_layer(m, k, info.layer[k].type, err);
    m->from = m->to;
    m->to = 1;
    if (!status) status = us_site_finish(m->site, report_progress, m, err);
    us_site_close(m->site);
    return status;
}

us_status us_site_import(const us_site_import_def *def, const char *path, us_raster_info *out_info,
                         us_error *err) {
    if (!def || !path)
        return us_error_set(err, US_ERR_ARG, NULL, "give a definition and a directory",
                            "an argument is NULL");
    const us_allocator *a = &def->height.allocator;
    importer m = {.def = def, .path = path, .to = 0.4};
    size_t window = sizeof(double) * TILE * TILE, samples = (size_t)4 * TILE * TILE;
    int32_t first[2] = {0, 0};
    us_status status = open_layers(&m, err);
    // A directory that cannot be used is better known before the work than after it.
    if (!status) status = usi_directory_begin(path, err);
    if (!status) status = usi_raster_scan(m.layer[US_LAYER_NUMBER], report_progress, &m, first, err);
    if (!status) status = check_gaps(&m, first, err);
    if (!status) {
        const us_raster_info *info = usi_raster_info(m.layer[US_LAYER_NUMBER]);
        m.datum = usi_raster_datum(info->low, info->high);
        if (info->n_gap > 0) window = sizeof(double) * WINDOW * WINDOW;
        m.window = usi_alloc(a, window, USI_ALIGN);
        m.samples = usi_alloc(a, samples, USI_ALIGN);
        status = m.window && m.samples ? write_site(&m, err) : no_memory(err);
        if (!status && out_info) *out_info = *info;
    }
    usi_release(a, m.window, window, USI_ALIGN);
    usi_release(a, m.samples, samples, USI_ALIGN);
    for (int i = 0; i < 3; i++)
        usi_raster_close(m.layer[i]);
    return status;
}

// Rasters in a scene: a GeoTIFF as ground, and those that lie over a ground, masks of regions and maps of
// soils. All of it is in memory.
//
// <shape type="height-field" file="dem.tif"> is for small ones; larger ones are imported as sites.
// The field is centred: its middle is the middle of the samples, and its z = 0 is the reference height that a
// site of the same file would have, the whole metre nearest to the middle between its extremes. A scene says
// nothing about bands, units, projections and gaps: what needs a word about them is imported, where there are
// options for it.
#include <strings.h>
#include <sys/stat.h>

#include <math.h>
#include <string.h>

#include "spec/scene.h"
#include "terrain/raster.h"

enum {
    RASTER_LIMIT = 16 * 1000 * 1000,  // heights of one field: 128 MB
    RASTER_LARGE = 4 * 1000 * 1000,   // more of them are slow to load and to show
    N_ROW = 64,                       // rows at a time
};

static const char *const remedy =
    "import it as a site, and write file=\"SITE\": understudy terrain import FILE -o SITE";

bool usi_scene_is_raster(const xmlNode *node) {
    const char *file = usi_xml_attr(node, "file"), *end = file ? strrchr(file, '.') : NULL;
    return end && (strcasecmp(end, ".tif") == 0 || strcasecmp(end, ".tiff") == 0);
}

static us_status check(usi_reader *r, const xmlNode *node, const char *path) {
    static const char *const others[] = {"nx", "ny", "dx", "dy", "heights", "expression", "zone", "memory"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (usi_xml_attr(node, others[i]))
            return usi_fail(r, US_ERR_SCHEMA, node, "remove it",
                            "%s: a GeoTIFF says itself what its samples are", others[i]);
    }
    // A plain file only: GDAL would take other names for addresses on the network.
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return usi_fail(r, US_ERR_IO, node,
                        "check the name; relative names start at the file that names them",
                        "the file \"%.200s\" does not exist", path);
    return US_OK;
}

// The file of a height field, unless it is the one that was read last.
static us_status open_ground(usi_reader *r, const xmlNode *node, us_error *why) {
    const char *path = usi_path_beside(r, usi_xml_file(node), usi_xml_attr(node, "file"));
    if (!path) return US_ERR_MEMORY;
    if (r->ground && strcmp(usi_raster_file(r->ground), path) == 0) return US_OK;
    usi_raster_close(r->ground);
    r->ground = NULL;
    us_raster_def def = us_raster_def_default();
    def.allocator = r->def->allocator;
    def.file = &path;
    def.n_file = 1;
    def.is_geotiff = true;
    return usi_raster_open(&def, US_LAYER_NUMBER, NULL, &r->ground, why);
}

// ---- Samples ----

// Reads all samples, row by row, with reports of progress.
static us_status read_samples(usi_reader *r, usi_raster *raster, us_layer_type type, void **out,
                              us_error *why) {
    const usi_frame *f = usi_raster_frame(raster);
    size_t row = (size_t)f->n_x * (type == US_LAYER_NUMBER ? sizeof(double) : 1);
    char *samples = usi_reader_alloc(r, (size_t)f->n_y * row);
    if (!samples) return US_ERR_MEMORY;
    us_status status = US_OK;
    for (int32_t j = 0; j < f->n_y && !status; j += N_ROW) {
        int32_t n = f->n_y - j < N_ROW ? f->n_y - j : N_ROW;
        status = usi_raster_read(raster, 0, j, f->n_x, n, samples + (size_t)j * row, why);
        if (r->def->progress)
            r->def->progress(r->def->context, usi_raster_file(raster), (double)(j + n) / f->n_y);
    }
    *out = samples;
    return status;
}

static us_status check_count(const usi_raster *raster, int64_t max, const char *what_to_do, us_error *why) {
    const usi_frame *f = usi_raster_frame(raster);
    int64_t n = (int64_t)f->n_x * f->n_y;
    if (n <= max) return US_OK;
    return us_error_set(why, US_ERR_LIMIT, NULL, what_to_do, "%lld samples are more than %lld", (long long)n,
                        (long long)max);
}

// ---- Over a ground ----

// `over`: whose frame it is laid by; NULL: its own.
static us_status open_over(usi_reader *r, const char *path, us_layer_type type, const usi_raster *over,
                           usi_raster **out, us_error *why) {
    us_raster_def def = us_raster_def_default();
    def.allocator = r->def->allocator;
    def.file = &path;
    def.n_file = 1;
    def.is_geotiff = true;
    def.is_metric = true;
    def.unit = "1";  // numbers as they are
    return usi_raster_open(&def, type, over ? usi_raster_frame(over) : NULL, out, why);
}

us_status usi_scene_over(usi_reader *r, const xmlNode *node, const char *attribute, const xmlNode *ground,
                         us_layer_type type, int64_t max, usi_scene_grid *out) {
    const char *path = usi_path_beside(r, usi_xml_file(node), usi_xml_attr(node, attribute));
    if (!path) return usi_fail_memory(r);
    usi_raster *raster = NULL;
    us_error why = {0};
    us_status status = usi_reader_permit(r, node, "raster", path);
    if (status) return status;
    status = usi_scene_is_raster(ground) ? open_ground(r, ground, &why) : US_OK;
    if (!status)
        status = open_over(r, path, type, usi_scene_is_raster(ground) ? r->ground : NULL, &raster, &why);
    if (!status)
        status = check_count(raster, max, "take a coarser raster: gdalwarp -tr DX DY IN.tif OUT.tif", &why);
    if (!status) status = read_samples(r, raster, type, &out->samples, &why);
    if (!status) {
        const usi_frame *f = usi_raster_frame(raster);
        out->n_x = f->n_x;
        out->n_y = f->n_y;
        out->dx = f->dx;
        out->dy = f->dy;
    }
    usi_raster_close(raster);
    if (status == US_ERR_MEMORY) return usi_fail_memory(r);
    return status ? usi_fail(r, status, node, why.remedy, "%s: %.150s: %s", attribute, path, why.message)
                  : US_OK;
}

// ---- As ground ----

static us_status read_heights(usi_reader *r, usi_raster *raster, us_shape_def *s, us_error *why) {
    const usi_frame *f = usi_raster_frame(raster);
    void *samples = NULL;
    us_status status = read_samples(r, raster, US_LAYER_NUMBER, &samples, why);
    if (status) return status;
    double *heights = samples, low = INFINITY, high = -INFINITY;
    int64_t n = (int64_t)f->n_x * f->n_y, n_gap = 0;
    for (int64_t k = 0; k < n; k++) {
        low = fmin(low, heights[k]);
        high = fmax(high, heights[k]);  // a NaN is left aside
        n_gap += isnan(heights[k]);
    }
    if (n_gap > 0)
        return us_error_set(why, US_ERR_VALUE, NULL,
                            "import it as a site with its gaps filled, and write file=\"SITE\": understudy "
                            "terrain import FILE --fill -o SITE",
                            "%lld of its %lld samples have no value", (long long)n_gap, (long long)n);
    // Heights as a site has them, to the bit.
    double datum = usi_raster_datum(low, high);
    for (int64_t k = 0; k < n; k++)
        heights[k] = (double)(float)(heights[k] - datum);
    s->n_x = f->n_x;
    s->n_y = f->n_y;
    s->size[0] = f->dx;
    s->size[1] = f->dy;
    s->heights = heights;
    const char *wkt = usi_raster_wkt(raster);
    size_t length = strlen(wkt) + 1;
    char *copy = usi_reader_alloc(r, length);
    if (!copy) return US_ERR_MEMORY;
    s->wkt = memcpy(copy, wkt, length);
    s->origin = us_vec3_make(f->x, f->y, datum);
    return US_OK;
}

us_status usi_scene_raster(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    const char *path = usi_path_beside(r, usi_xml_file(node), usi_xml_attr(node, "file"));
    if (!path) return usi_fail_memory(r);
    us_status status = usi_reader_permit(r, node, "raster", path);
    if (!status) status = check(r, node, path);
    if (status) return status;
    us_error why = {0};
    status = open_ground(r, node, &why);
    if (status == US_ERR_VALUE)
        memcpy(why.remedy, remedy, strlen(remedy) + 1);  // the options that it names are those of an import
    if (!status) status = check_count(r->ground, RASTER_LIMIT, remedy, &why);
    if (!status) status = read_heights(r, r->ground, s, &why);
    if (status == US_ERR_MEMORY) return usi_fail_memory(r);
    if (status) return usi_fail(r, status, node, why.remedy, "%.150s: %s", path, why.message);
    int64_t n = (int64_t)s->n_x * s->n_y;
    if (n > RASTER_LARGE)
        return usi_warn(r, node, remedy, "%.150s: its %lld samples are all in memory", path, (long long)n);
    return US_OK;
}

// <shape type="height-field" file="dem.tif">: a small GeoTIFF as ground, all of it in memory. Larger ones are imported as sites.
//
// The field is centred: its middle is the middle of the samples, and its z = 0 is the reference height that a site of the same file would have, the
// whole metre nearest to the middle between its extremes. A scene says nothing about bands, units, projections and gaps: what needs a word about
// them is imported, where there are options for it.
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

static const char *const remedy = "import it as a site, and write file=\"SITE\": understudy terrain import FILE -o SITE";

bool usi_scene_is_raster(const xmlNode *node) {
    const char *file = usi_xml_attr(node, "file"), *end = file ? strrchr(file, '.') : NULL;
    return end && (strcasecmp(end, ".tif") == 0 || strcasecmp(end, ".tiff") == 0);
}

static us_status check(usi_reader *r, const xmlNode *node, const char *path) {
    static const char *const others[] = {"nx", "ny", "dx", "dy", "heights", "expression", "zone", "memory"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (usi_xml_attr(node, others[i]))
            return usi_fail(r, US_ERR_SCHEMA, node, "remove it", "%s: a GeoTIFF says itself what its samples are", others[i]);
    }
    // A plain file only: GDAL would take other names for addresses on the network.
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return usi_fail(r, US_ERR_IO, node, "check the name; relative names start at the file that names them", "the file \"%.200s\" does not exist",
                        path);
    return US_OK;
}

static us_status read_heights(usi_reader *r, usi_raster *raster, us_shape_def *s, us_error *why) {
    const us_raster_info *info = usi_raster_info(raster);
    us_status status = usi_raster_scan(raster, NULL, NULL, NULL, why);
    if (status) return status;
    if (info->n_gap > 0)
        return us_error_set(why, US_ERR_VALUE, NULL,
                            "import it as a site with its gaps filled, and write file=\"SITE\": understudy terrain import FILE --fill -o SITE",
                            "%lld of its %lld samples have no value", (long long)info->n_gap, (long long)info->n_x * info->n_y);
    double datum = usi_raster_datum(info->low, info->high), *heights = usi_reader_alloc(r, (size_t)info->n_x * (size_t)info->n_y * sizeof *heights);
    if (!heights) return US_ERR_MEMORY;
    for (int32_t j = 0; j < info->n_y && !status; j += N_ROW) {
        int32_t n = info->n_y - j < N_ROW ? info->n_y - j : N_ROW;
        double *rows = heights + (size_t)j * (size_t)info->n_x;
        status = usi_raster_read(raster, 0, j, info->n_x, n, rows, why);
        // Heights as a site has them, to the bit.
        for (size_t k = 0; k < (size_t)n * (size_t)info->n_x; k++) rows[k] = (double)(float)(rows[k] - datum);
    }
    s->n_x = info->n_x, s->n_y = info->n_y;
    s->size[0] = info->dx, s->size[1] = info->dy;
    s->heights = heights;
    const char *wkt = usi_raster_wkt(raster);
    size_t length = strlen(wkt) + 1;
    char *copy = usi_reader_alloc(r, length);
    if (!copy) return US_ERR_MEMORY;
    s->wkt = memcpy(copy, wkt, length);
    s->origin = us_vec3_make(info->middle.x, info->middle.y, datum);
    return status;
}

us_status usi_scene_raster(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    const char *path = usi_path_beside(r, usi_xml_file(node), usi_xml_attr(node, "file"));
    if (!path) return usi_fail_memory(r);
    us_status status = check(r, node, path);
    if (status) return status;
    us_raster_def def = us_raster_def_default();
    def.allocator = r->def->allocator;
    def.file = &path, def.n_file = 1;
    def.is_geotiff = true;
    usi_raster *raster = NULL;
    us_error why = {0};
    status = usi_raster_open(&def, US_LAYER_NUMBER, NULL, &raster, &why);
    if (status == US_ERR_VALUE) memcpy(why.remedy, remedy, strlen(remedy) + 1);  // the options that it names are those of an import
    int64_t n = status ? 0 : (int64_t)usi_raster_info(raster)->n_x * usi_raster_info(raster)->n_y;
    if (n > RASTER_LIMIT) status = us_error_set(&why, US_ERR_LIMIT, NULL, remedy, "%lld samples are more than %d", (long long)n, RASTER_LIMIT);
    if (!status) status = read_heights(r, raster, s, &why);
    usi_raster_close(raster);
    if (status == US_ERR_MEMORY) return usi_fail_memory(r);
    if (status) return usi_fail(r, status, node, why.remedy, "%.150s: %s", path, why.message);
    if (n > RASTER_LARGE) return usi_warn(r, node, remedy, "%.150s: its %lld samples are all in memory", path, (long long)n);
    return US_OK;
}

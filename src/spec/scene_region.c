// <region>: a part of a ground that is made of something else, by a polygon or by a mask.
//
// A mask is a raster of whole numbers, 0 to 255. Over a ground that is a GeoTIFF itself it is laid by its own
// reference system; over other ground its middle is the ground's. A site may have one in it: its layer
// "region", which `understudy terrain import --regions` makes.
#include <string.h>

#include "spec/scene.h"

enum { MAX_CORNERS = 10000, MAX_SAMPLES = 64 * 1000 * 1000 };

typedef struct region_reader {
    usi_reader *r;
    const xmlNode *node, *ground;  // the region, and the shape that it is part of
    const us_shape_def *shape;
    us_region_def d;
} region_reader;

us_status usi_scene_ground(usi_reader *r, const xmlNode *root, const xmlNode *node,
                           const us_shape_def **out_shape, const xmlNode **out_ground) {
    const char *wanted = usi_xml_attr(node, "ground");
    us_spec_counts counts = us_spec_get_counts(r->spec);
    *out_shape = NULL;
    *out_ground = NULL;
    for (int32_t i = 0; i < counts.n_shape; i++) {
        const us_shape_def *s = us_spec_view_shape(r->spec, i);
        bool is_ground = s->kind == US_SHAPE_HALF_SPACE || s->kind == US_SHAPE_HEIGHT_FIELD;
        if (s->link == US_WORLD && is_ground && s->name && strcmp(s->name, wanted) == 0) *out_shape = s;
    }
    for (const xmlNode *w = usi_xml_child(root, "world"); w; w = usi_xml_next(w, "world")) {
        for (const xmlNode *n = usi_xml_child(w, "shape"); n; n = usi_xml_next(n, "shape")) {
            const char *name = usi_xml_attr(n, "name");
            if (name && strcmp(name, wanted) == 0) *out_ground = n;
        }
    }
    if (*out_shape && *out_ground) return US_OK;
    return usi_fail(r, US_ERR_NAME, node, "give the name of a plane or height-field of the world",
                    "ground: there is no ground \"%.60s\"", wanted);
}

static us_status read_polygon(region_reader *x, const char *text) {
    int32_t n = 0;
    us_status status = usi_scene_numbers(x->r, x->node, "polygon", text, NULL, 2 * MAX_CORNERS, &n);
    if (status) return status;
    if (n % 2 != 0 || n < 6)
        return usi_fail(x->r, US_ERR_VALUE, x->node,
                        "write x y of one corner after the other, three corners or more",
                        "polygon: %d numbers", (int)n);
    double *corners = usi_reader_alloc(x->r, (size_t)n * sizeof *corners);
    if (!corners) return usi_fail_memory(x->r);
    x->d.corners = corners;
    x->d.n_corner = n / 2;
    return usi_scene_numbers(x->r, x->node, "polygon", text, corners, n, &n);
}

// ---- Masks ----

static us_status read_mask(region_reader *x) {
    usi_scene_grid grid = {0};
    us_status status = usi_scene_over(x->r, x->node, "mask", x->ground, US_LAYER_REGION, MAX_SAMPLES, &grid);
    x->d.mask = grid.samples;
    x->d.n_x = grid.n_x;
    x->d.n_y = grid.n_y;
    x->d.dx = grid.dx;
    x->d.dy = grid.dy;
    return status;
}

static us_status read_tiles(region_reader *x, const us_site *site, int32_t layer, us_error *why) {
    us_site_info info = us_site_get_info(site);
    const us_layer_info *l = &info.layer[layer];
    int64_t n = (int64_t)l->n_x * l->n_y;
    if (n > MAX_SAMPLES)
        return us_error_set(why, US_ERR_LIMIT, NULL, "take a coarser mask", "%lld samples are more than %d",
                            (long long)n, MAX_SAMPLES);
    uint8_t *mask = usi_reader_alloc(x->r, (size_t)n),
            *tile = usi_reader_alloc(x->r, US_SITE_TILE * US_SITE_TILE);
    us_status status = mask && tile ? US_OK : US_ERR_MEMORY;
    x->d.mask = mask;
    x->d.n_x = l->n_x;
    x->d.n_y = l->n_y;
    x->d.dx = l->dx;
    x->d.dy = l->dy;
    int32_t n_x, n_y;
    for (int32_t v = 0; !status && us_site_tile_size(site, layer, 0, 0, v, &n_x, &n_y); v++) {
        for (int32_t u = 0; !status && us_site_tile_size(site, layer, 0, u, v, &n_x, &n_y); u++) {
            status = us_site_read(site, layer, 0, u, v, tile, why);
            for (int32_t j = 0; j < n_y && !status; j++)
                memcpy(mask + (size_t)(v * US_SITE_TILE + j) * (size_t)l->n_x + (size_t)u * US_SITE_TILE,
                       tile + (size_t)j * (size_t)n_x, (size_t)n_x);
        }
    }
    return status;
}

static us_status read_layer(region_reader *x) {
    us_site *site = NULL;
    us_error why = {0};
    us_status status = us_site_open(x->shape->site, &x->r->def->allocator, &site, &why);
    int32_t layer = status ? -1 : us_site_find_layer(site, "region");
    if (!status && layer < 0)
        status = us_error_set(&why, US_ERR_VALUE, NULL,
                              "import it with --regions MASK.tif, or write polygon or mask",
                              "the site has no layer \"region\"");
    if (!status) status = read_tiles(x, site, layer, &why);
    us_site_close(site);
    if (status == US_ERR_MEMORY) return usi_fail_memory(x->r);
    return status ? usi_fail(x->r, status, x->node, why.remedy, "%.150s: %s", x->shape->site, why.message)
                  : US_OK;
}

// ---- The whole ----

static us_status read_region(usi_reader *r, const xmlNode *root, const xmlNode *node) {
    region_reader x = {.r = r, .node = node};
    x.d = (us_region_def){.name = usi_xml_attr(node, "name"),
                          .ground = usi_xml_attr(node, "ground"),
                          .file = usi_xml_file(node),
                          .line = usi_xml_line(node)};
    us_status status = usi_scene_material(r, node, "surface", &x.d.material);
    if (!status) status = usi_scene_ground(r, root, node, &x.shape, &x.ground);
    if (!status) status = usi_xml_int(r, node, "value", false, &x.d.value);
    if (status) return status;
    const char *polygon = usi_xml_attr(node, "polygon"), *mask = usi_xml_attr(node, "mask");
    bool has_value = usi_xml_attr(node, "value") != NULL, has_layer = has_value && !mask && x.shape->site;
    if ((polygon != NULL) + (mask != NULL) + has_layer != 1 || (polygon && has_value))
        return usi_fail(r, US_ERR_SCHEMA, node,
                        "write polygon=\"x y x y ...\", or mask=\"FILE.tif\" and perhaps value=\"N\", or "
                        "value=\"N\" alone over a site",
                        "the region's place is missing or given twice");
    if (x.d.value < 0 || x.d.value > 255)
        return usi_fail(r, US_ERR_VALUE, node, "write a number from 1 to 255", "value: %d", (int)x.d.value);
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = 0; i < counts.n_region; i++) {
        if (strcmp(us_spec_view_region(r->spec, i)->name, x.d.name) == 0)
            return usi_fail(r, US_ERR_NAME, node, "give each region its own name",
                            "there is a region \"%.60s\" already", x.d.name);
    }
    status = polygon ? read_polygon(&x, polygon) : mask ? read_mask(&x) : read_layer(&x);
    return status ? status : usi_scene_added(r, node, us_spec_add_region(r->spec, &x.d, NULL));
}

us_status usi_scene_regions(usi_reader *r, const xmlNode *root) {
    us_status status = US_OK;
    for (const xmlNode *w = usi_xml_child(root, "world"); w; w = usi_xml_next(w, "world")) {
        for (const xmlNode *n = usi_xml_child(w, "region"); n && !status; n = usi_xml_next(n, "region"))
            status = read_region(r, root, n);
    }
    return status;
}

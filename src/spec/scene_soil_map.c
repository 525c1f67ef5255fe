// <soil-map>: a number of a soil that varies over a ground, by a raster or by a layer of the site that the
// ground is.
//
// A raster lies over the ground as the mask of a <region> does. The layers "soil.NAME" of a site, which
// `understudy terrain random --soil NAME=...` makes, are paged in with its heights; one <soil-map> may stand
// for all of them.
#include <stdio.h>
#include <string.h>

#include "spec/scene.h"

enum { MAX_SAMPLES = 16 * 1000 * 1000 };

static const char LAYER[] = "soil.";

typedef struct map_reader {
    usi_reader *r;
    const xmlNode *node, *ground;
    const us_shape_def *shape;
    us_soil_map_def d;
    char parameter[32];
    double scale;
} map_reader;

// "friction-angle" to "friction_angle". False: a soil has no such number.
static bool take_parameter(map_reader *x, const char *name) {
    us_soil probe;
    snprintf(x->parameter, sizeof x->parameter, "%s", name);
    for (char *c = x->parameter; *c; c++)
        *c = *c == '-' ? '_' : *c;
    x->d.parameter = x->parameter;
    return us_soil_parameter(&probe, x->parameter, NULL, NULL) != NULL;
}

static usi_dimension dimension_of(const char *parameter) {
#define DIMENSION(field, unit, min, max, what) \
    if (strcmp(parameter, #field) == 0)        \
        return strcmp(unit, "m") == 0 ? USI_LENGTH : strcmp(unit, "rad") == 0 ? USI_ANGLE : USI_PLAIN;
    US_SOIL_LIST(DIMENSION)
#undef DIMENSION
    return USI_PLAIN;
}

static us_status add(map_reader *x) {
    return usi_scene_added(x->r, x->node, us_spec_add_soil_map(x->r->spec, &x->d, NULL));
}

static us_status read_raster(map_reader *x) {
    usi_scene_grid grid = {0};
    us_status status = usi_scene_over(x->r, x->node, "file", x->ground, US_LAYER_NUMBER, MAX_SAMPLES, &grid);
    if (status) return status;
    double *values = grid.samples;
    for (int64_t k = 0; k < (int64_t)grid.n_x * grid.n_y && x->scale != 1; k++)
        values[k] *= x->scale;
    x->d.values = values;
    x->d.n_x = grid.n_x;
    x->d.n_y = grid.n_y;
    x->d.dx = grid.dx;
    x->d.dy = grid.dy;
    return add(x);
}

static us_status look_at_site(usi_reader *r, const xmlNode *node, const char *path, us_site_info *out) {
    us_site *site = NULL;
    us_error why = {0};
    us_status status = usi_reader_permit(r, node, "site", path);
    if (status) return status;
    status = us_site_open(path, &r->def->allocator, &site, &why);
    if (status) return usi_fail(r, status, node, why.remedy, "%.150s: %s", path, why.message);
    *out = us_site_get_info(site);
    us_site_close(site);
    return US_OK;
}

static bool is_soil_layer(const us_layer_info *l) {
    return l->type == US_LAYER_NUMBER && strncmp(l->name, LAYER, sizeof LAYER - 1) == 0;
}

// The layers of a site that are numbers of a soil by their names.
static us_status read_layers(map_reader *x) {
    us_site_info info = {.n_layer = 0};
    us_status status = look_at_site(x->r, x->node, x->shape->site, &info);
    int32_t n = 0;
    for (int32_t i = 0; !status && i < info.n_layer; i++) {
        const us_layer_info *l = &info.layer[i];
        if (!is_soil_layer(l)) continue;
        n++;
        if (take_parameter(x, l->name + sizeof LAYER - 1))
            status = add(x);
        else
            status = usi_warn(x->r, x->node, "name the layer after a number of a <soil>",
                              "the layer \"%s\" is no parameter of a soil and is not used", l->name);
    }
    if (!status && n == 0)
        return usi_fail(x->r, US_ERR_NAME, x->node,
                        "make it with them: understudy terrain random --soil cohesion=MEAN,VARIANCE,LENGTH",
                        "%.150s: the site has no layers \"soil.NAME\"", x->shape->site);
    return status;
}

static us_status read_map(usi_reader *r, const xmlNode *root, const xmlNode *node) {
    map_reader x = {.r = r, .node = node, .scale = 1};
    x.d = (us_soil_map_def){
        .ground = usi_xml_attr(node, "ground"), .file = usi_xml_file(node), .line = usi_xml_line(node)};
    us_status status = usi_scene_material(r, node, "surface", &x.d.material);
    if (!status) status = usi_scene_ground(r, root, node, &x.shape, &x.ground);
    if (status) return status;
    const char *parameter = usi_xml_attr(node, "parameter"), *file = usi_xml_attr(node, "file");
    if ((file && !parameter) || (!file && (!x.shape->site || usi_xml_attr(node, "scale"))))
        return usi_fail(r, US_ERR_SCHEMA, node,
                        "write parameter=\"cohesion\" file=\"FILE.tif\", or neither over a site, or the "
                        "parameter alone of one of its layers",
                        "it is not said what varies, or where its numbers are");
    if (!parameter) return read_layers(&x);
    if (!take_parameter(&x, parameter))
        return usi_fail(r, US_ERR_NAME, node,
                        "write the name of a number of a <soil>: cohesion, friction-angle, kphi, ...",
                        "parameter: a soil has no parameter \"%.60s\"", parameter);
    usi_look look = usi_look_at(node);
    status = usi_look_number(r, &look, "scale", dimension_of(x.parameter), &x.scale);
    if (status) return status;
    return file ? read_raster(&x) : add(&x);
}

// Warning for a site with soil layers that no <soil-map> uses.
static us_status warn_of_layers(usi_reader *r, const xmlNode *node) {
    const char *name = usi_xml_attr(node, "name"), *file = usi_xml_attr(node, "file"),
               *surface = usi_xml_attr(node, "surface");
    const char *path = file ? usi_path_beside(r, usi_xml_file(node), file) : NULL;
    if (!path || !surface || !usi_is_site(path)) return US_OK;
    us_spec_counts counts = us_spec_get_counts(r->spec);
    for (int32_t i = 0; i < counts.n_soil_map; i++) {
        if (name && strcmp(us_spec_view_soil_map(r->spec, i)->ground, name) == 0) return US_OK;
    }
    bool is_soil = false;
    for (int32_t i = 0; i < counts.n_material; i++) {
        const us_material_def *m = us_spec_view_material(r->spec, i);
        is_soil |= m->is_soil && strcmp(m->name, surface) == 0;
    }
    us_site_info info = {.n_layer = 0};
    us_status status = is_soil ? look_at_site(r, node, path, &info) : US_OK;
    for (int32_t i = 0; is_soil && !status && i < info.n_layer; i++) {
        if (is_soil_layer(&info.layer[i]))
            return usi_warn(r, node,
                            "write <soil-map ground=\"NAME\"/> into the <world>, with the name of this shape",
                            "the layer \"%s\" of the site is not used", info.layer[i].name);
    }
    return status;
}

us_status usi_scene_soil_maps(usi_reader *r, const xmlNode *root) {
    us_status status = US_OK;
    for (const xmlNode *w = usi_xml_child(root, "world"); w; w = usi_xml_next(w, "world")) {
        for (const xmlNode *n = usi_xml_child(w, "soil-map"); n && !status; n = usi_xml_next(n, "soil-map"))
            status = read_map(r, root, n);
    }
    for (const xmlNode *w = usi_xml_child(root, "world"); w; w = usi_xml_next(w, "world")) {
        for (const xmlNode *n = usi_xml_child(w, "shape"); n && !status; n = usi_xml_next(n, "shape"))
            status = warn_of_layers(r, n);
    }
    return status;
}

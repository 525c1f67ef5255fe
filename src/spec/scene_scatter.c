// <scatter>: rocks and trees by density, standing on the ground of the world.
//
// It is written out when the scene is read: static rocks and trees become shapes of the world, loose rocks
// objects of their own. Where they are and how they look is a function of the seed and the place alone.
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "spec/geometry.h"
#include "spec/mesh_file.h"
#include "spec/scene.h"
#include "understudy/terrain.h"

enum {
    STATIC_LIMIT = 10000,  // instances of one <scatter>
    LOOSE_LIMIT = 1000,
    CLEAR_LIMIT = 16,   // rectangles that are left free
    REGION_LIMIT = 32,  // regions that are allowed
    TILES = 8           // of sites, that are kept
};

// A tile of a site that was read.
typedef struct kept_tile {
    const us_site *site;
    int32_t layer, u, v, n_x;
    void *samples;
    int64_t used;  // when
} kept_tile;

typedef struct scatter {
    usi_reader *r;
    const xmlNode *node;
    us_scatter_def def;
    const char *name, *ground;
    bool is_loose, is_ellipsoid;
    double mass_density, max_slope;
    double clear[4 * CLEAR_LIMIT];
    int n_clear;
    double regions[REGION_LIMIT];
    int n_region;
    us_shape_def like;  // surface, margin, group, mask
    int32_t n_ground;   // shapes of the world before this one
    us_site **site;     // of each of them; NULL: it is none
    kept_tile tile[TILES];
    int64_t n_used;
    us_status status;  // of reading tiles
    int32_t n;         // instances added
} scatter;

// ---- The ground ----

// Sample (i, j) of a layer of a site. A tile that cannot be read ends the scattering.
static double site_sample(scatter *s, const us_site *site, int32_t layer, int32_t i, int32_t j) {
    int32_t u = i / US_SITE_TILE, v = j / US_SITE_TILE, n_y = 0;
    kept_tile *t = &s->tile[0];
    for (int k = 0; k < TILES; k++) {
        kept_tile *each = &s->tile[k];
        if (each->site == site && each->layer == layer && each->u == u && each->v == v) {
            t = each;
            break;
        }
        if (each->used < t->used) t = each;
    }
    if (t->site != site || t->layer != layer || t->u != u || t->v != v) {
        us_error why = {0};
        t->site = NULL;
        if (!t->samples) t->samples = usi_reader_alloc(s->r, US_SITE_TILE * US_SITE_TILE * 4);
        if (!t->samples || !us_site_tile_size(site, layer, 0, u, v, &t->n_x, &n_y))
            s->status = usi_fail_memory(s->r);
        else if ((s->status = us_site_read(site, layer, 0, u, v, t->samples, &why)))
            usi_fail(s->r, s->status, s->node, why.remedy, "%.150s: %s", why.file, why.message);
        if (s->status) return 0;
        t->site = site;
        t->layer = layer;
        t->u = u;
        t->v = v;
    }
    t->used = ++s->n_used;
    size_t at = (size_t)(j - v * US_SITE_TILE) * (size_t)t->n_x + (size_t)(i - u * US_SITE_TILE);
    return us_site_get_info(site).layer[layer].type == US_LAYER_REGION
               ? ((const uint8_t *)t->samples)[at]
               : (double)((const float *)t->samples)[at];
}

// Whether the site under a place has one of the regions that are asked for.
static bool is_in_region(scatter *s, const us_site *site, us_vec3 at) {
    if (s->n_region == 0) return true;
    int32_t layer = us_site_find_layer(site, "region");
    us_layer_info l = us_site_get_info(site).layer[layer];
    double u = floor(at.x / l.dx + 0.5 * l.n_x), v = floor(at.y / l.dy + 0.5 * l.n_y);
    if (!(u >= 0 && u < l.n_x && v >= 0 && v < l.n_y)) return false;
    double region = site_sample(s, site, layer, (int32_t)u, (int32_t)v);
    for (int i = 0; i < s->n_region; i++) {
        if (region == s->regions[i]) return true;
    }
    return false;
}

// The height of ground i at (x, y) and its rise in both directions; false where it has none.
static bool surface_at(scatter *s, int32_t ground, double x, double y, double *out_z, double out_rise[2]) {
    const us_shape_def *g = us_spec_view_shape(s->r->spec, ground);
    us_vec3 up = us_quat_rotate(g->X_BG.q, us_vec3_make(0, 0, 1));
    if (g->kind == US_SHAPE_HALF_SPACE && up.z > 1e-3) {
        out_rise[0] = -up.x / up.z;
        out_rise[1] = -up.y / up.z;
        *out_z = g->X_BG.p.z + out_rise[0] * (x - g->X_BG.p.x) + out_rise[1] * (y - g->X_BG.p.y);
        return s->n_region == 0;
    }
    const us_site *site = s->site[ground];
    if (g->kind != US_SHAPE_HEIGHT_FIELD || (!g->heights && !site) || up.z < 1 - 1e-9) return false;
    us_vec3 at = us_pose_point(us_pose_inverse(g->X_BG), us_vec3_make(x, y, 0));
    int32_t n_x = g->n_x, n_y = g->n_y;
    double dx = g->size[0], dy = g->size[1], h[2][2];
    if (site) {
        us_layer_info l = us_site_get_info(site).layer[0];
        n_x = l.n_x;
        n_y = l.n_y;
        dx = l.dx;
        dy = l.dy;
    }
    double u = at.x / dx + 0.5 * (n_x - 1), v = at.y / dy + 0.5 * (n_y - 1);
    if (!(u >= 0 && u <= n_x - 1 && v >= 0 && v <= n_y - 1) || (!site && s->n_region > 0) ||
        (site && !is_in_region(s, site, at)))
        return false;
    int32_t i = u < n_x - 1 ? (int32_t)u : n_x - 2, j = v < n_y - 1 ? (int32_t)v : n_y - 2;
    for (int32_t k = 0; k < 4; k++) {
        int32_t a = i + k % 2, b = j + k / 2;
        h[k / 2][k % 2] =
            site ? site_sample(s, site, 0, a, b) : g->heights[(size_t)b * (size_t)n_x + (size_t)a];
    }
    u -= i;
    v -= j;
    *out_z =
        g->X_BG.p.z + (1 - v) * (h[0][0] + u * (h[0][1] - h[0][0])) + v * (h[1][0] + u * (h[1][1] - h[1][0]));
    us_vec3 rise = us_quat_rotate(
        g->X_BG.q, us_vec3_make(((1 - v) * (h[0][1] - h[0][0]) + v * (h[1][1] - h[1][0])) / dx,
                                ((1 - u) * (h[1][0] - h[0][0]) + u * (h[1][1] - h[0][1])) / dy, 0));
    out_rise[0] = rise.x;
    out_rise[1] = rise.y;
    return true;
}

// The highest ground there, and its slope as a tangent.
static bool ground_at(scatter *s, double x, double y, double *out_z, double *out_slope) {
    bool is_found = false;
    for (int32_t i = 0; i < s->n_ground; i++) {
        const us_shape_def *shape = us_spec_view_shape(s->r->spec, i);
        double z = 0, rise[2] = {0};
        if (shape->link != US_WORLD || !shape->is_collision ||
            (s->ground && (!shape->name || strcmp(shape->name, s->ground) != 0)))
            continue;
        if (!surface_at(s, i, x, y, &z, rise) || (is_found && z <= *out_z)) continue;
        is_found = true;
        *out_z = z;
        *out_slope = sqrt(rise[0] * rise[0] + rise[1] * rise[1]);
    }
    return is_found;
}

static bool is_allowed(void *context, double x, double y) {
    scatter *s = context;
    for (int i = 0; i < s->n_clear; i++) {
        const double *c = s->clear + 4 * i;
        if (x >= c[0] && x <= c[2] && y >= c[1] && y <= c[3]) return false;
    }
    double z = 0, slope = 0;
    return ground_at(s, x, y, &z, &slope) && slope <= s->max_slope;
}

// ---- Instances ----

static us_status add_shape(scatter *s, us_shape_def *shape, int32_t link) {
    us_error why;
    shape->link = link;
    us_status status = usi_geometry_inertia(shape, &s->r->def->allocator, &shape->unit_inertia, &why);
    if (status == US_ERR_MEMORY) return usi_fail_memory(s->r);
    if (status) return usi_fail(s->r, status, s->node, why.remedy, "%s", why.message);
    return link == US_WORLD ? usi_scene_added(s->r, s->node, us_spec_add_shape(s->r->spec, shape, NULL))
                            : US_OK;
}

static us_shape_def shape_like(const scatter *s, us_shape_kind kind, us_pose X, const float rgb[3]) {
    us_shape_def shape = us_shape_def_default(kind);
    shape.surface = s->like.surface;
    shape.margin = s->like.margin;
    shape.group = s->like.group;
    shape.mask = s->like.mask;
    shape.X_BG = X;
    shape.file = usi_xml_file(s->node);
    shape.line = usi_xml_line(s->node);
    for (int i = 0; i < 3; i++)
        shape.rgba[i] = rgb[i];
    shape.rgba[3] = 1;
    return shape;
}

// An object of one link that starts on the ground.
static us_status add_loose(scatter *s, us_shape_def *shape, us_pose X_WB) {
    usi_reader *r = s->r;
    const char *name = usi_reader_text(r, "%s-%d", s->name, (int)s->n),
               *link_name = name ? usi_reader_text(r, "%s/rock", name) : NULL;
    if (!link_name) return usi_fail_memory(r);
    if (us_spec_find_link(r->spec, link_name) >= 0)
        return usi_fail(r, US_ERR_NAME, s->node, "give it another name", "there is a \"%.100s\" already",
                        name);
    us_group_def group = {.name = name, .file = shape->file, .line = shape->line, .is_floating = true};
    us_link_def link = us_link_def_default();
    link.name = link_name;
    link.file = shape->file;
    link.line = shape->line;
    int32_t index = -1;
    us_status status = usi_scene_added(r, s->node, us_spec_add_group(r->spec, &group, &link.group));
    if (!status) status = add_shape(s, shape, 0);
    if (status) return status;
    link.inertia = usi_shape_inertia(shape, s->mass_density);
    status = usi_scene_added(r, s->node, us_spec_add_link(r->spec, &link, &index));
    shape->link = index;
    if (!status) status = usi_scene_added(r, s->node, us_spec_add_shape(r->spec, shape, NULL));
    return status ? status : usi_base_add(r, s->node, link.group, name, index, X_WB, US_BASE_FLOATING, NULL);
}

static us_status add_rock(scatter *s, const us_scatter_instance *rock, double z, double slope) {
    static const float rgb[3] = {0.52f, 0.48f, 0.43f};
    double radius = 0.5 * rock->diameter, shade = (double)(rock->number >> 11) * 0x1p-53;
    // A fixed instance is sunk as far as the ground falls under it; a loose one starts clear of the
    // ground.
    us_pose X = {us_quat_identity(),
                 {rock->x, rock->y,
                  s->is_loose ? z + radius * slope + 0.01 : z - 0.1 * rock->height - radius * slope}};
    us_shape_def shape = shape_like(s, s->is_ellipsoid ? US_SHAPE_ELLIPSOID : US_SHAPE_CONVEX,
                                    s->is_loose ? us_pose_identity() : X, rgb);
    for (int i = 0; i < 3; i++)
        shape.rgba[i] *= (float)(0.8 + 0.4 * shade);
    us_vec3 points[US_ROCK_POINTS];
    if (s->is_ellipsoid) {
        shape.size[0] = radius;
        shape.size[1] = 0.85 * radius;
        shape.size[2] = 0.5 * rock->height;
        us_pose lift = {us_quat_from_rpy(0, 0, rock->yaw), {0, 0, 0.5 * rock->height}};
        shape.X_BG = us_pose_mul(shape.X_BG, lift);
    } else {
        us_rock_points(rock, points);
        shape.points = points;
        shape.n_point = US_ROCK_POINTS;
    }
    return s->is_loose ? add_loose(s, &shape, X) : add_shape(s, &shape, US_WORLD);
}

// A trunk in the ground, and a crown from a third of the height up.
static us_status add_tree(scatter *s, const us_scatter_instance *tree, double z) {
    static const float bark[3] = {0.36f, 0.26f, 0.17f}, leaves[3] = {0.16f, 0.34f, 0.14f};
    const double start = 0.33, soil_contact = 0.5;
    double trunk = start * tree->height + soil_contact, crown = (1 - start) * tree->height;
    us_pose X_trunk = {us_quat_identity(), {tree->x, tree->y, z - soil_contact + 0.5 * trunk}};
    us_pose X_crown = {us_quat_identity(), {tree->x, tree->y, z + start * tree->height + 0.5 * crown}};
    us_shape_def shape = shape_like(s, US_SHAPE_CYLINDER, X_trunk, bark);
    shape.size[0] = 0.5 * tree->diameter;
    shape.size[1] = trunk;
    us_status status = add_shape(s, &shape, US_WORLD);
    if (status) return status;
    shape = shape_like(s, US_SHAPE_CONE, X_crown, leaves);
    shape.size[0] = 0.5 * tree->crown;
    shape.size[1] = crown;
    return add_shape(s, &shape, US_WORLD);
}

static us_status add_instance(void *context, const us_scatter_instance *instance, us_error *err) {
    (void)err;
    scatter *s = context;
    double z = 0, slope = 0;
    ground_at(s, instance->x, instance->y, &z, &slope);
    if (s->status) return s->status;
    s->n++;
    return s->def.kind == US_SCATTER_TREES ? add_tree(s, instance, z) : add_rock(s, instance, z, slope);
}

// ---- Reading ----

static us_status read_scatter(usi_reader *r, const xmlNode *node, scatter *s) {
    bool is_trees = strcmp(usi_xml_attr(node, "kind"), "trees") == 0;
    *s = (scatter){.r = r,
                   .node = node,
                   .def = us_scatter_def_default(is_trees ? US_SCATTER_TREES : US_SCATTER_ROCKS),
                   .mass_density = 2700};
    s->name = usi_xml_attr(node, "name") ? usi_xml_attr(node, "name") : is_trees ? "tree" : "rock";
    s->ground = usi_xml_attr(node, "ground");
    s->like = us_shape_def_default(US_SHAPE_CONVEX);
    s->n_ground = us_spec_get_counts(r->spec).n_shape;
    const char *form = usi_xml_attr(node, "form");
    s->is_ellipsoid = form && strcmp(form, "ellipsoid") == 0;
    usi_look look = usi_look_at(node);
    usi_dimension lengths[4 * CLEAR_LIMIT], plain[REGION_LIMIT];
    for (int i = 0; i < 4 * CLEAR_LIMIT; i++)
        lengths[i] = USI_LENGTH;
    for (int i = 0; i < REGION_LIMIT; i++)
        plain[i] = USI_PLAIN;
    double area[4] = {0}, slope = is_trees ? 0.6 : 0.8;
    int32_t seed = 1;
    us_status status = usi_look_number(r, &look, "density", USI_PLAIN, &s->def.density);
    if (!status) status = usi_look_numbers(r, &look, "area", USI_LENGTH, 4, area);
    if (!status) status = usi_xml_int(r, node, "seed", false, &seed);
    if (!status) status = usi_look_number(r, &look, "least", USI_LENGTH, &s->def.min_size);
    if (!status) status = usi_look_number(r, &look, "most", USI_LENGTH, &s->def.max_size);
    if (!status) status = usi_look_number(r, &look, "distance", USI_LENGTH, &s->def.distance);
    if (!status) status = usi_look_positive(r, &look, "max-slope", USI_ANGLE, false, &slope);
    if (!status) status = usi_look_positive(r, &look, "mass-density", USI_PLAIN, true, &s->mass_density);
    if (!status) status = usi_look_list(r, &look, "clear", lengths, 4 * CLEAR_LIMIT, s->clear, &s->n_clear);
    if (!status) status = usi_look_list(r, &look, "regions", plain, REGION_LIMIT, s->regions, &s->n_region);
    if (!status) status = usi_xml_bool(r, node, "loose", false, &s->is_loose);
    if (!status) status = usi_scene_contact(r, node, &s->like);
    if (status) return status;
    s->def.seed = (uint64_t)seed;
    s->def.x0 = area[0];
    s->def.y0 = area[1];
    s->def.x1 = area[2];
    s->def.y1 = area[3];
    s->max_slope = slope < 1.57 ? tan(slope) : INFINITY;
    s->def.is_allowed = is_allowed;
    s->def.context = s;
    if (s->n_clear % 4)
        return usi_fail(r, US_ERR_VALUE, node, "write x0 y0 x1 y1 of one rectangle after the other",
                        "clear: %d numbers do not form rectangles", s->n_clear);
    s->n_clear /= 4;
    if (is_trees && (s->is_loose || form))
        return usi_fail(r, US_ERR_VALUE, node, "remove it, or use kind=\"rocks\"", "%s: trees have none",
                        s->is_loose ? "loose" : "form");
    if (!is_trees && usi_xml_attr(node, "distance"))
        return usi_fail(r, US_ERR_VALUE, node, "remove it: rocks do not overlap",
                        "distance: it is for trees");
    return US_OK;
}

// The named ground, if there is a name, must exist.
static us_status check_ground(const scatter *s) {
    usi_guess guess = usi_guess_start(s->ground ? s->ground : "");
    bool is_found = false, has_regions = false;
    for (int32_t i = 0; i < s->n_ground; i++) {
        const us_shape_def *shape = us_spec_view_shape(s->r->spec, i);
        if (shape->link != US_WORLD ||
            (shape->kind != US_SHAPE_HALF_SPACE && shape->kind != US_SHAPE_HEIGHT_FIELD))
            continue;
        if (s->ground && (!shape->name || strcmp(shape->name, s->ground) != 0)) {
            if (shape->name) usi_guess_offer(&guess, shape->name);
            continue;
        }
        is_found = true;
        has_regions |= s->site[i] && us_site_find_layer(s->site[i], "region") >= 0;
    }
    if (is_found && s->n_region > 0 && !has_regions)
        return usi_fail(s->r, US_ERR_NAME, s->node,
                        "use a site with regions: understudy terrain import --regions",
                        "regions: the ground has none");
    if (is_found) return US_OK;
    if (!s->ground)
        return usi_fail(s->r, US_ERR_NAME, s->node,
                        "give the <world> a shape of type \"plane\" or \"height-field\"",
                        "there is no ground to stand on");
    char remedy[200];
    snprintf(remedy, sizeof remedy,
             guess.best ? "did you mean \"%.100s\"?" : "name a plane or height field of the <world>",
             guess.best);
    return usi_fail(s->r, US_ERR_NAME, s->node, remedy, "ground: the world has no ground \"%.100s\"",
                    s->ground);
}

// Opens the sites among the ground. Shapes of the world are the spec's first, in the order in which they are
// written. A site that has no regions is no ground where regions are asked for.
static us_status open_sites(scatter *s, const xmlNode *root) {
    usi_reader *r = s->r;
    int32_t k = 0;
    s->site = usi_reader_alloc(r, ((size_t)s->n_ground + 1) * sizeof(us_site *));
    if (!s->site) return usi_fail_memory(r);
    memset(s->site, 0, ((size_t)s->n_ground + 1) * sizeof(us_site *));
    for (const xmlNode *w = usi_xml_child(root, "world"); w; w = usi_xml_next(w, "world")) {
        for (const xmlNode *n = usi_xml_child(w, "shape"); n && k < s->n_ground;
             n = usi_xml_next(n, "shape"), k++) {
            const char *file =
                strcmp(usi_xml_attr(n, "type"), "height-field") == 0 ? usi_xml_attr(n, "file") : NULL;
            char *path = file ? usi_path_beside(r, usi_xml_file(n), file) : NULL;
            struct stat about;
            if (file && !path) return usi_fail_memory(r);
            if (!path || stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) continue;
            us_error why = {0};
            us_status status = usi_reader_permit(r, n, "site", path);
            if (status) return status;
            status = us_site_open(path, &r->def->allocator, &s->site[k], &why);
            if (status)
                return usi_fail(r, status, n, why.remedy, "%.150s: %s", why.file[0] ? why.file : path,
                                why.message);
            if (s->n_region > 0 && us_site_find_layer(s->site[k], "region") < 0) {
                us_site_close(s->site[k]);
                s->site[k] = NULL;
            }
        }
    }
    return US_OK;
}

static us_status add_instances(scatter *s) {
    double density = us_scatter_density(&s->def), area = (s->def.x1 - s->def.x0) * (s->def.y1 - s->def.y0);
    int limit = s->is_loose ? LOOSE_LIMIT : STATIC_LIMIT;
    if (density * area > limit)
        return usi_fail(
            s->r, US_ERR_LIMIT, s->node, "write a lower density, a smaller area, or a greater least size",
            "density %g over an area of %g m^2 makes some %.0f %s, of at most %d%s", s->def.density, area,
            density * area, s->def.kind == US_SCATTER_TREES ? "trees" : "rocks", limit,
            s->is_loose ? " that are loose" : "");
    us_error why = {0};
    us_status status = us_scatter_visit(&s->def, add_instance, s, &why);
    if (!status) status = s->status;
    // Errors of add_instance are already in the reader.
    return status && why.message[0] ? usi_fail(s->r, status, s->node, why.remedy, "%s", why.message) : status;
}

us_status usi_scene_scatter(usi_reader *r, const xmlNode *node, int32_t n_ground) {
    scatter s;
    us_status status = read_scatter(r, node, &s);
    if (status) return status;
    s.n_ground = n_ground;
    status = open_sites(&s, node->parent);
    if (!status) status = check_ground(&s);
    if (!status) status = add_instances(&s);
    for (int32_t i = 0; s.site && i < n_ground; i++)
        us_site_close(s.site[i]);
    return status;
}

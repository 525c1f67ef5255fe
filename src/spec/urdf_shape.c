// <visual>, <collision> and <material>: what a link looks like and what it touches with.
#include <stdio.h>
#include <string.h>

#include "spec/mesh_file.h"
#include "spec/urdf.h"

// ---- Materials ----

static const usi_urdf_material *find_material(const usi_urdf *u, const char *name) {
    for (int32_t i = 0; i < u->n_material; i++) {
        if (strcmp(u->materials[i].name, name) == 0) return &u->materials[i];
    }
    return NULL;
}

static us_status read_color(usi_urdf *u, const xmlNode *material, float out[4]) {
    const xmlNode *node = usi_xml_child(material, "color");
    if (!node) return US_OK;
    double rgba[4] = {0, 0, 0, 1};
    us_status status = usi_urdf_check(u, node, "", "rgba");
    if (!status) status = usi_xml_doubles(u->r, node, "rgba", true, 4, rgba);
    if (status) return status;
    bool is_outside = false;
    for (int k = 0; k < 4; k++) {
        is_outside |= rgba[k] < 0 || rgba[k] > 1;
        out[k] = (float)(rgba[k] < 0 ? 0 : rgba[k] > 1 ? 1 : rgba[k]);
    }
    if (!is_outside) return US_OK;
    return usi_warn(u->r, node, "write numbers from 0 to 1; divide by 255 where they are bytes",
                    "a colour goes beyond 0 .. 1 and was cut");
}

// A material with a colour can be referred to by name, wherever in the file it was written; the first one
// counts.
static us_status add_material(usi_urdf *u, const xmlNode *node) {
    const char *name = usi_xml_attr(node, "name");
    us_status status = usi_urdf_check(u, node, "color texture", "name");
    if (status || !name || !name[0] || !usi_xml_child(node, "color")) return status;
    usi_urdf_material *m = &u->materials[u->n_material];
    const usi_urdf_material *known = find_material(u, name);
    m->name = name;
    status = read_color(u, node, m->rgba);
    if (!known) u->n_material += !status;
    if (status || !known || memcmp(known->rgba, m->rgba, sizeof m->rgba) == 0) return status;
    char key[200];
    bool is_new = false;
    snprintf(key, sizeof key, "colours of %.100s", name);
    status = usi_urdf_note(u, key, &is_new);
    if (status || !is_new) return status;
    return usi_warn(
        u->r, node, "write its colour once, or give each colour a name of its own",
        "the material \"%.100s\" has two colours: the first one counts where it is referred to by "
        "name",
        name);
}

us_status usi_urdf_read_materials(usi_urdf *u) {
    int32_t n = 0;
    for (const xmlNode *m = usi_xml_child(u->robot, "material"); m; m = usi_xml_next(m, "material"))
        n++;
    for (int32_t i = 0; i < u->n_link; i++) {
        for (const xmlNode *v = usi_xml_child(u->links[i].node, "visual"); v; v = usi_xml_next(v, "visual"))
            n += usi_xml_child(v, "material") != NULL;
    }
    u->materials = usi_reader_alloc(u->r, (size_t)n * sizeof *u->materials);
    if (!u->materials) return usi_fail_memory(u->r);
    us_status status = US_OK;
    for (const xmlNode *m = usi_xml_child(u->robot, "material"); m && !status;
         m = usi_xml_next(m, "material"))
        status = add_material(u, m);
    for (int32_t i = 0; i < u->n_link && !status; i++) {
        for (const xmlNode *v = usi_xml_child(u->links[i].node, "visual"); v && !status;
             v = usi_xml_next(v, "visual")) {
            const xmlNode *m = usi_xml_child(v, "material");
            if (m) status = add_material(u, m);
        }
    }
    return status;
}

static us_status read_material(usi_urdf *u, const xmlNode *visual, us_shape_def *shape) {
    const xmlNode *node = usi_xml_child(visual, "material");
    if (!node) return US_OK;
    const char *name = usi_xml_attr(node, "name");
    if (name && name[0]) shape->material = name;
    if (usi_xml_child(node, "color")) return read_color(u, node, shape->rgba);
    if (usi_xml_child(node, "texture") || !shape->material) return US_OK;
    const usi_urdf_material *known = find_material(u, shape->material);
    if (known) {
        memcpy(shape->rgba, known->rgba, sizeof known->rgba);
        return US_OK;
    }
    usi_guess guess = usi_guess_start(name);
    char remedy[200];
    for (int32_t i = 0; i < u->n_material; i++)
        usi_guess_offer(&guess, u->materials[i].name);
    snprintf(remedy, sizeof remedy,
             guess.best ? "did you mean \"%.100s\"?"
                        : "add <color rgba=\"...\"/> to it, or a <material> of that name to the robot",
             guess.best);
    return usi_warn(u->r, node, remedy,
                    "the material \"%.100s\" has no colour anywhere in the file: grey is used", name);
}

// ---- Shapes ----

// One geometry: its element, its numbers.
typedef struct geometry {
    const char *tag;
    us_shape_kind kind;
    const char *attributes;
} geometry;

static const geometry geometries[] = {
    {"box", US_SHAPE_BOX, "size"},
    {"sphere", US_SHAPE_SPHERE, "radius"},
    {"cylinder", US_SHAPE_CYLINDER, "radius length"},
    {"capsule", US_SHAPE_CAPSULE, "radius length"},
    {"mesh", US_SHAPE_MESH, "filename scale"},
};

static us_status read_size(usi_urdf *u, const xmlNode *node, us_shape_def *shape, int *out_n) {
    us_status status = US_OK;
    *out_n = shape->kind == US_SHAPE_BOX ? 3 : shape->kind == US_SHAPE_SPHERE ? 1 : 2;
    if (shape->kind == US_SHAPE_BOX) return usi_xml_doubles(u->r, node, "size", true, 3, shape->size);
    status = usi_xml_double(u->r, node, "radius", true, &shape->size[0]);
    if (!status && *out_n == 2) status = usi_xml_double(u->r, node, "length", true, &shape->size[1]);
    return status;
}

// One number stands for all three directions.
static us_status read_scale(usi_urdf *u, const xmlNode *node, double scale[3]) {
    const char *text = usi_xml_attr(node, "scale"), *end = NULL;
    double one = 0;
    bool is_new = false, is_one = false;
    if (text) {
        while (usi_is_blank(*text))
            text++;
        is_one = !usi_number_scan(text, &end, &one);
        while (is_one && usi_is_blank(*end))
            end++;
        is_one = is_one && !*end;
    }
    if (!is_one) return usi_xml_doubles(u->r, node, "scale", false, 3, scale);
    scale[0] = scale[1] = scale[2] = one;
    us_status status = usi_urdf_note(u, "scale of one number", &is_new);
    if (status || !is_new) return status;
    return usi_warn(u->r, node, "write three numbers, one for each direction",
                    "the mesh has a scale of one number, %.6g: it holds for all three directions, here and "
                    "wherever else it comes",
                    one);
}

static us_status read_mesh(usi_urdf *u, const xmlNode *node, us_shape_def *shape) {
    const char *uri = usi_xml_attr(node, "filename");
    if (!uri || !uri[0])
        return usi_fail(u->r, US_ERR_SCHEMA, node, "write filename=\"package://...\" or a path",
                        "the mesh names no file");
    shape->mesh_uri = uri;
    us_status status = read_scale(u, node, shape->size);
    if (status) return status;
    for (int k = 0; k < 3; k++) {
        if (shape->size[k] == 0)
            return usi_fail(u->r, US_ERR_VALUE, node,
                            "write a scale other than 0 in each direction, for example 1 1 1",
                            "the mesh has the scale 0");
    }
    // A mesh that this file has named before was found then, or warned of.
    char *path = NULL;
    for (int32_t i = 0; i < u->n_shape; i++) {
        const us_shape_def *known = &u->shapes[i];
        if (known->kind != US_SHAPE_MESH || strcmp(known->mesh_uri, uri) != 0) continue;
        shape->mesh = known->mesh;
        if (!shape->mesh || usi_mesh_reuse(known, shape)) return US_OK;
    }
    if (!shape->mesh) {
        status = usi_mesh_resolve(u->r, node, uri, usi_xml_file(node), &path);
        if (status) return status;
        shape->mesh = path;
    }
    status = usi_mesh_load(u->r, node, shape);
    if (status) return status;
    us_vec3 d = us_vec3_sub(shape->box_max, shape->box_min);
    double largest = d.x > d.y ? d.x : d.y;
    largest = d.z > largest ? d.z : largest;
    // Millimetres taken for metres make even a small part as large as a house.
    if (largest <= 20) return US_OK;
    return usi_warn(u->r, node, "where the file is in millimetres, write scale=\"0.001 0.001 0.001\"",
                    "the mesh \"%.200s\" is %.4g m large", uri, largest);
}

// Reads the shape in a <visual> or <collision>. *out_is_kept is false for one without extent.
static us_status read_geometry(usi_urdf *u, const xmlNode *parent, bool is_visual, us_shape_def *shape,
                               bool *out_is_kept) {
    static const char remedy[] = "write one of <box size>, <sphere radius>, <cylinder radius length>, "
                                 "<capsule radius length>, <mesh filename> into it";
    const xmlNode *outer = usi_xml_child(parent, "geometry"),
                  *node = outer ? usi_xml_child(outer, NULL) : NULL;
    if (!outer)
        return usi_fail(u->r, US_ERR_SCHEMA, parent, "add <geometry> with a shape in it",
                        "the <%s> has no <geometry>", (const char *)parent->name);
    if (!node) return usi_fail(u->r, US_ERR_SCHEMA, outer, remedy, "the <geometry> is empty");
    const geometry *g = NULL;
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
        if (usi_xml_is(node, geometries[i].tag)) g = &geometries[i];
    }
    if (!g)
        return usi_fail(u->r, US_ERR_SCHEMA, node, remedy, "invalid shape <%.60s>", (const char *)node->name);
    if (usi_xml_next(node, NULL))
        return usi_fail(u->r, US_ERR_SCHEMA, outer, "write one <visual> or <collision> for each shape",
                        "the <geometry> has more than one shape");
    us_status status = usi_urdf_check(u, node, "", g->attributes);
    if (status) return status;
    *shape = us_shape_def_default(g->kind);
    shape->is_visual = is_visual;
    shape->is_collision = !is_visual;
    *out_is_kept = true;
    if (g->kind == US_SHAPE_MESH) return read_mesh(u, node, shape);
    int n = 0;
    status = read_size(u, node, shape, &n);
    if (status) return status;
    for (int k = 0; k < n; k++) {
        if (shape->size[k] < 0)
            return usi_fail(u->r, US_ERR_VALUE, node, "write lengths greater than 0",
                            "the %s has a negative length", g->tag);
        // A capsule may be as short as a sphere.
        if (shape->size[k] == 0 && !(g->kind == US_SHAPE_CAPSULE && k == 1)) *out_is_kept = false;
    }
    if (!*out_is_kept)
        return usi_warn(u->r, node, "write lengths greater than 0, or remove it",
                        "the %s has a length of 0 and is left out", g->tag);
    shape->unit_inertia = usi_shape_unit_inertia(shape);
    return US_OK;
}

static us_status read_shape(usi_urdf *u, int32_t link, const xmlNode *node, bool is_visual) {
    us_shape_def *shape = &u->shapes[u->n_shape];
    bool is_kept = true;
    us_status status = usi_urdf_check(u, node,
                                      is_visual ? "origin geometry material"
                                                : "origin geometry material verbose contact_coefficients",
                                      "name group");
    if (!status) status = read_geometry(u, node, is_visual, shape, &is_kept);
    if (status || !is_kept) return status;
    shape->link = link;
    shape->file = usi_xml_file(node);
    shape->line = usi_xml_line(node);
    status = usi_urdf_origin(u, node, &shape->X_BG, NULL);
    if (!status && is_visual) status = read_material(u, node, shape);
    if (status) return status;
    u->n_shape++;
    return US_OK;
}

us_status usi_urdf_read_shapes(usi_urdf *u) {
    size_t n = 0;
    for (int32_t i = 0; i < u->n_link; i++) {
        for (const xmlNode *c = usi_xml_child(u->links[i].node, NULL); c; c = usi_xml_next(c, NULL))
            n += usi_xml_is(c, "visual") || usi_xml_is(c, "collision");
    }
    u->shapes = usi_reader_alloc(u->r, n * sizeof *u->shapes);
    if (!u->shapes) return usi_fail_memory(u->r);
    for (int32_t i = 0; i < u->n_link; i++) {
        usi_urdf_link *link = &u->links[i];
        link->first_shape = u->n_shape;
        for (const xmlNode *c = usi_xml_child(link->node, NULL); c; c = usi_xml_next(c, NULL)) {
            bool is_visual = usi_xml_is(c, "visual");
            us_status status =
                is_visual || usi_xml_is(c, "collision") ? read_shape(u, i, c, is_visual) : US_OK;
            if (status) return status;
        }
        link->n_shape = u->n_shape - link->first_shape;
    }
    return US_OK;
}

// <shape>: what a link or the world looks like and what it touches with.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spec/geometry.h"
#include "spec/mesh_file.h"
#include "spec/scene.h"

enum {
    PART_DEPTH = 16,                 // nesting of unions and intersections
    POINT_LIMIT = 1000 * 1000,       // numbers in points
    SAMPLE_LIMIT = 16 * 1000 * 1000  // heights of one field: 128 MB
};

// Kind of shape: which of the attributes and children that only some kinds have, and how many lengths.
typedef struct kind_row {
    const char *name;
    us_shape_kind kind;
    int min, max;         // number of lengths in size
    const char *lengths;  // one letter for each: + greater than 0, 0 may be 0
    const char *meaning;
    bool has_file, has_points, has_field, has_parts;
} kind_row;

static const kind_row kinds[] = {
    {"box", US_SHAPE_BOX, 3, 3, "+++", "write three lengths: x y z", 0, 0, 0, 0},
    {"sphere", US_SHAPE_SPHERE, 1, 1, "+", "write the radius", 0, 0, 0, 0},
    {"cylinder", US_SHAPE_CYLINDER, 2, 2, "++", "write radius and length", 0, 0, 0, 0},
    {"capsule", US_SHAPE_CAPSULE, 2, 2, "+0", "write radius and length of the straight part", 0, 0, 0, 0},
    {"cone", US_SHAPE_CONE, 2, 2, "++", "write the radius of the base and the length", 0, 0, 0, 0},
    {"ellipsoid", US_SHAPE_ELLIPSOID, 3, 3, "+++", "write three half axes: x y z", 0, 0, 0, 0},
    {"lozenge", US_SHAPE_LOZENGE, 3, 3, "++0", "write two lengths x y and the radius that rounds them", 0, 0,
     0, 0},
    {"disc", US_SHAPE_DISC, 2, 2, "+0", "write the radius of the disc and the one that rounds it", 0, 0, 0,
     0},
    {"triangle", US_SHAPE_TRIANGLE, 0, 1, "0", "write the radius that rounds it", 0, 1, 0, 0},
    {"tetrahedron", US_SHAPE_TETRAHEDRON, 0, 0, "", "", 0, 1, 0, 0},
    {"convex", US_SHAPE_CONVEX, 0, 0, "", "", 1, 1, 0, 0},
    {"mesh", US_SHAPE_MESH, 0, 0, "", "", 1, 0, 0, 0},
    {"half-space", US_SHAPE_HALF_SPACE, 0, 0, "", "", 0, 0, 0, 0},
    {"plane", US_SHAPE_HALF_SPACE, 0, 0, "", "", 0, 0, 0, 0},
    {"height-field", US_SHAPE_HEIGHT_FIELD, 0, 0, "", "", 1, 0, 1, 0},
    {"union", US_SHAPE_UNION, 0, 0, "", "", 0, 0, 0, 1},
    {"intersection", US_SHAPE_INTERSECTION, 0, 0, "", "", 0, 0, 0, 1},
};

// What this kind of shape cannot have is an error rather than silently without effect.
static us_status check_attributes(usi_reader *r, const xmlNode *node, const kind_row *k) {
    const struct {
        const char *name, *remedy;
        bool is_good;
    } rows[] = {
        {"size", "remove it", k->max > 0},
        {"file", "use type=\"mesh\", \"convex\" or \"height-field\", or remove it", k->has_file},
        {"scale", "use type=\"mesh\" or \"convex\", or remove it", k->has_file && !k->has_field},
        {"points", "use type=\"convex\", \"tetrahedron\" or \"triangle\", or remove it", k->has_points},
        {"heights", "use type=\"height-field\", or remove it", k->has_field},
        {"expression", "use type=\"height-field\", or remove it", k->has_field},
        {"nx", "use type=\"height-field\", or remove it", k->has_field},
        {"ny", "use type=\"height-field\", or remove it", k->has_field},
        {"dx", "use type=\"height-field\", or remove it", k->has_field},
        {"dy", "use type=\"height-field\", or remove it", k->has_field},
        {"bed", "use type=\"height-field\", or remove it", k->has_field},
        {"bed-depth", "use type=\"height-field\", or remove it", k->has_field},
        {"bed-memory", "use type=\"height-field\", or remove it", k->has_field},
        {"bed-model", "use type=\"height-field\", or remove it", k->has_field},
        {"zone", "use type=\"height-field\", or remove it", k->has_field},
        {"memory", "use type=\"height-field\", or remove it", k->has_field},
        {"part-error", "use type=\"mesh\", or remove it", k->kind == US_SHAPE_MESH},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].is_good || !usi_xml_attr(node, rows[i].name)) continue;
        if (k->kind == US_SHAPE_MESH && i == 0)
            return usi_fail(r, US_ERR_VALUE, node, "use scale", "size: a mesh has its size from its file");
        return usi_fail(r, US_ERR_VALUE, node, rows[i].remedy, "%s: a %s has none", rows[i].name, k->name);
    }
    const xmlNode *part = usi_xml_child(node, "shape");
    if (part && !k->has_parts)
        return usi_fail(
            r, US_ERR_SCHEMA, part,
            "use type=\"union\" or \"intersection\" for the outer one, or write them side by side",
            "a %s has no shapes inside it", k->name);
    if (!part && k->has_parts)
        return usi_fail(r, US_ERR_SCHEMA, node, "write its parts into it: <shape type=\"...\"/>",
                        "a %s of nothing", k->name);
    return US_OK;
}

static us_status read_size(usi_reader *r, const xmlNode *node, const kind_row *k, us_shape_def *s) {
    static const usi_dimension lengths[3] = {USI_LENGTH, USI_LENGTH, USI_LENGTH};
    usi_look look = usi_look_at(node);
    int count = 0;
    for (int i = 0; i < 3; i++)
        s->size[i] = k->max > 0 ? 0 : 1;
    if (k->min > 0 && !usi_xml_attr(node, "size"))
        return usi_fail(r, US_ERR_SCHEMA, node, k->meaning, "the attribute \"size\" is missing");
    us_status status = usi_look_list(r, &look, "size", lengths, 3, s->size, &count);
    if (status) return status;
    if (count < k->min || count > k->max) {
        return usi_fail(r, US_ERR_VALUE, node, k->meaning, "size: %d number%s needed, %d given", k->max,
                        k->max == 1 ? " is" : "s are", count);
    }
    for (int i = 0; i < count; i++) {
        if (s->size[i] > 0 || (k->lengths[i] == '0' && s->size[i] == 0)) continue;
        return usi_fail(r, US_ERR_VALUE, node,
                        k->lengths[i] == '0' ? "write a length of 0 or more" : "write lengths greater than 0",
                        "size: %g is not a length of a shape", s->size[i]);
    }
    return US_OK;
}

static us_status read_mesh(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    static const usi_dimension plain[3] = {USI_PLAIN, USI_PLAIN, USI_PLAIN};
    s->mesh_uri = usi_xml_attr(node, "file");
    if (!s->mesh_uri)
        return usi_fail(r, US_ERR_SCHEMA, node, "add file=\"...\"", "the attribute \"file\" is missing");
    usi_look look = usi_look_at(node);
    int count = 0;
    double scale[3];
    us_status status = usi_look_list(r, &look, "scale", plain, 3, scale, &count);
    if (status) return status;
    if (count == 2)
        return usi_fail(r, US_ERR_VALUE, node, "write one factor, or one for x, y and z",
                        "scale: 1 or 3 numbers are needed, 2 given");
    for (int i = 0; i < 3; i++)
        s->size[i] = count == 0 ? 1 : count == 1 ? scale[0] : scale[i];
    for (int i = 0; i < 3; i++) {
        if (s->size[i] == 0)
            return usi_fail(r, US_ERR_VALUE, node, "write a factor other than 0",
                            "scale: 0 makes the mesh flat");
    }
    char *path = NULL;
    status = usi_mesh_resolve(r, node, s->mesh_uri, usi_xml_file(node), &path);
    s->mesh = path;
    return status ? status : usi_mesh_load(r, node, s);
}

// ---- Lists of any length ----

static bool is_between(char c) { return usi_is_blank(c) || c == ',' || c == ';'; }

// Counts the numbers in a text, or stores them. Blanks, commas and semicolons separate them; a line that
// begins with # is a remark.
us_status usi_scene_numbers(usi_reader *r, const xmlNode *node, const char *what, const char *text,
                            double *out, int32_t max, int32_t *out_n) {
    int32_t n = 0, line = 1;
    bool is_start = true;
    for (const char *s = text;;) {
        for (; is_between(*s) || (*s == '#' && is_start); s++) {
            if (*s == '#') s += strcspn(s, "\n");
            if (!*s) break;
            if (*s == '\n') {
                line++;
                is_start = true;
            }
        }
        if (!*s) break;
        is_start = false;
        double value = 0;
        const char *end = s, *wrong = usi_number_scan(s, &end, &value);
        size_t length = strcspn(s, " \t\r\n,;");
        if (!wrong && *end && !is_between(*end)) wrong = "is not a number";
        if (wrong)
            return usi_fail(r, US_ERR_VALUE, node,
                            "write plain numbers in metres with blanks or commas between them",
                            "%.150s: \"%.*s\" %s (line %d of it)", what, length < 40 ? (int)length : 40, s,
                            wrong, (int)line);
        if (n == max)
            return usi_fail(r, US_ERR_LIMIT, node, "give fewer", "%.150s: there are more than %d numbers",
                            what, (int)max);
        if (out) out[n] = value;
        n++;
        s = end;
    }
    *out_n = n;
    return US_OK;
}

static us_status read_points(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    const char *text = usi_xml_attr(node, "points");
    int32_t wanted = s->kind == US_SHAPE_TRIANGLE ? 3 : s->kind == US_SHAPE_TETRAHEDRON ? 4 : 0, n = 0;
    if (!text)
        return usi_fail(r, US_ERR_SCHEMA, node, "write the corners: x y z of one after the other",
                        "the attribute \"points\" is missing");
    us_status status = usi_scene_numbers(r, node, "points", text, NULL, POINT_LIMIT, &n);
    if (status) return status;
    if (n % 3 != 0 || (wanted ? n != 3 * wanted : n < 12))
        return usi_fail(r, US_ERR_VALUE, node, "write x y z of one point after the other",
                        "points: %s%d points are needed, but %d numbers are given", wanted ? "" : "at least ",
                        wanted ? (int)wanted : 4, (int)n);
    us_vec3 *points = usi_reader_alloc(r, (size_t)n / 3 * sizeof *points);
    if (!points) return usi_fail_memory(r);
    status = usi_scene_numbers(r, node, "points", text, &points->x, n, &n);
    s->points = points;
    s->n_point = n / 3;
    return status;
}

// ---- Height fields ----

typedef struct place_xy {
    usi_reader *r;
    const xmlNode *node;
    double x, y;
} place_xy;

static us_status value_of_xy(void *context, const char *name, double *out) {
    const place_xy *at = context;
    if (strcmp(name, "x") == 0 || strcmp(name, "y") == 0) {
        *out = name[0] == 'x' ? at->x : at->y;
        return US_OK;
    }
    if (strcmp(name, "pi") == 0) {
        *out = 3.14159265358979323846;
        return US_OK;
    }
    return usi_fail(at->r, US_ERR_NAME, at->node,
                    "x, y and pi are known, and functions such as sin(x); a parameter is written ${name}",
                    "expression: \"%.60s\" is not known", name);
}

static us_status read_expression(usi_reader *r, const xmlNode *node, const us_shape_def *s, const char *text,
                                 double *out) {
    place_xy at = {.r = r, .node = node};
    us_status status = US_OK;
    for (int32_t j = 0; j < s->n_y && !status; j++) {
        for (int32_t i = 0; i < s->n_x && !status; i++) {
            at.x = (i - 0.5 * (s->n_x - 1)) * s->size[0];
            at.y = (j - 0.5 * (s->n_y - 1)) * s->size[1];
            status = usi_expression_plain(r, node, text, value_of_xy, &at,
                                          &out[(size_t)j * (size_t)s->n_x + (size_t)i]);
        }
    }
    return status;
}

// Number and spacing of the samples of a height field.
static us_status read_field_size(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    static const char *const names[] = {"nx", "ny", "dx", "dy"};
    for (int i = 0; i < 4; i++) {
        if (!usi_xml_attr(node, names[i]))
            return usi_fail(r, US_ERR_SCHEMA, node,
                            "write how many samples there are, nx and ny, and how far apart they are, dx and "
                            "dy; or give file=\"...\" the directory of a site",
                            "the attribute \"%s\" is missing", names[i]);
    }
    usi_look look = usi_look_at(node);
    us_status status = usi_xml_int(r, node, "nx", true, &s->n_x);
    if (!status) status = usi_xml_int(r, node, "ny", true, &s->n_y);
    if (!status) status = usi_look_positive(r, &look, "dx", USI_LENGTH, true, &s->size[0]);
    if (!status) status = usi_look_positive(r, &look, "dy", USI_LENGTH, true, &s->size[1]);
    if (status) return status;
    if (s->n_x < 2 || s->n_y < 2)
        return usi_fail(r, US_ERR_VALUE, node, "write at least 2", "nx, ny: %d x %d samples span no surface",
                        (int)s->n_x, (int)s->n_y);
    int64_t wanted = (int64_t)s->n_x * s->n_y;
    if (wanted > SAMPLE_LIMIT)
        return usi_fail(r, US_ERR_LIMIT, node, "use fewer samples, or several fields side by side",
                        "nx, ny: %lld samples are more than %d", (long long)wanted, SAMPLE_LIMIT);
    return US_OK;
}

static us_status read_field(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    const char *inside = usi_xml_attr(node, "heights"), *expression = usi_xml_attr(node, "expression"),
               *file = usi_xml_attr(node, "file");
    if ((inside != NULL) + (expression != NULL) + (file != NULL) != 1)
        return usi_fail(r, US_ERR_SCHEMA, node,
                        "write exactly one of heights=\"...\", expression=\"...\" and file=\"...\"",
                        "%s gives the heights",
                        inside || expression || file ? "more than one attribute" : "nothing");
    char *path = NULL;
    if (file) {
        path = usi_path_beside(r, usi_xml_file(node), file);
        if (!path) return usi_fail_memory(r);
        if (usi_is_site(path)) return usi_scene_site(r, node, path, s);
    }
    if (usi_xml_attr(node, "zone") || usi_xml_attr(node, "memory"))
        return usi_fail(r, US_ERR_VALUE, node, "give file=\"...\" the directory of a site, or remove it",
                        "%s: it belongs to a site", usi_xml_attr(node, "zone") ? "zone" : "memory");
    us_status status = read_field_size(r, node, s);
    if (status) return status;

    int64_t wanted = (int64_t)s->n_x * s->n_y;
    double *heights = usi_reader_alloc(r, (size_t)wanted * sizeof *heights);
    if (!heights) return usi_fail_memory(r);
    s->heights = heights;
    if (expression) return read_expression(r, node, s, expression, heights);
    const char *text = inside, *what = "heights";
    if (file) {
        char *content = NULL, element[128];
        us_place place = usi_xml_place(r, node, element, sizeof element);
        size_t length = 0;
        status = usi_reader_permit(r, node, "height file", path);
        if (!status) status = usi_file_read(r, path, &place, &content, &length);
        if (status) return status;
        text = content;
        what = path;
    }
    int32_t n = 0;
    status = usi_scene_numbers(r, node, what, text, heights, (int32_t)wanted, &n);
    if (status) return status;
    if (n != wanted)
        return usi_fail(r, US_ERR_VALUE, node, "write one height for each sample, x running fastest",
                        "%.150s: %d x %d = %d heights are needed, %d given", what, (int)s->n_x, (int)s->n_y,
                        (int)wanted, (int)n);
    return US_OK;
}

// ---- Contact ----

// A whole number of 0 to 2^32 - 1, decimal or hexadecimal with 0x.
us_status usi_scene_bits(usi_reader *r, const xmlNode *node, const char *name, uint32_t *out) {
    const char *text = usi_xml_attr(node, name);
    if (!text) return US_OK;
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text;
    size_t length = strlen(digits);
    unsigned long long value = 0;
    bool is_good = length > 0 && length <= 10 &&
                   strspn(digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789") == length;
    if (is_good) value = strtoull(digits, NULL, is_hex ? 16 : 10);
    if (!is_good || value > UINT32_MAX)
        return usi_fail(r, US_ERR_VALUE, node,
                        "write a whole number whose bits are the groups: 1, 2, 4, 3 for the first two, "
                        "0xffffffff for all",
                        "%s: invalid number \"%.60s\"", name, text);
    *out = (uint32_t)value;
    return US_OK;
}

us_status usi_scene_contact(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    usi_look look = usi_look_at(node);
    us_status status = usi_scene_material(r, node, "surface", &s->surface);
    if (!status) status = usi_look_positive(r, &look, "margin", USI_LENGTH, false, &s->margin);
    if (!status) status = usi_look_positive(r, &look, "bed", USI_LENGTH, false, &s->patch_spacing);
    if (!status) status = usi_look_positive(r, &look, "bed-depth", USI_LENGTH, true, &s->patch_depth);
    if (!status) status = usi_look_positive(r, &look, "bed-memory", USI_BYTES, true, &s->patch_memory);
    s->patch_model = usi_xml_attr(node, "bed-model");
    if (!status && s->patch_model && !(s->patch_spacing > 0))
        return usi_fail(r, US_ERR_VALUE, node, "write bed=\"2 cm\", for example: the spacing of its columns",
                        "bed-model: the ground has no bed");
    if (!status) status = usi_look_positive(r, &look, "part-error", USI_LENGTH, false, &s->part_error);
    if (!status) status = usi_scene_bits(r, node, "group", &s->group);
    if (!status) status = usi_scene_bits(r, node, "mask", &s->mask);
    return status;
}

static us_status read_colour(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    usi_look look = usi_look_at(node);
    double rgba[4] = {s->rgba[0], s->rgba[1], s->rgba[2], s->rgba[3]};
    us_status status = usi_look_numbers(r, &look, "rgba", USI_PLAIN, 4, rgba);
    if (status) return status;
    for (int i = 0; i < 4; i++) {
        if (rgba[i] < 0 || rgba[i] > 1) {
            return usi_fail(r, US_ERR_VALUE, node, "write four numbers from 0 to 1: red green blue opacity",
                            "rgba: %g is not between 0 and 1", rgba[i]);
        }
        s->rgba[i] = (float)rgba[i];
    }
    return US_OK;
}

// ---- The whole ----

static us_status read_shape(usi_reader *r, const xmlNode *node, int depth, bool is_collision,
                            us_shape_def *out);

static us_status read_parts(usi_reader *r, const xmlNode *node, int depth, us_shape_def *s) {
    if (depth >= PART_DEPTH)
        return usi_fail(r, US_ERR_LIMIT, node, "nest them less",
                        "unions and intersections are nested more than %d deep", PART_DEPTH);
    for (const xmlNode *p = usi_xml_child(node, "shape"); p; p = usi_xml_next(p, "shape"))
        s->n_part++;
    us_shape_def *parts = usi_reader_alloc(r, (size_t)s->n_part * sizeof *parts);
    if (!parts) return usi_fail_memory(r);
    s->parts = parts;
    us_status status = US_OK;
    int32_t k = 0;
    for (const xmlNode *p = usi_xml_child(node, "shape"); p && !status; p = usi_xml_next(p, "shape")) {
        static const char *const outer[] = {"surface", "margin", "group",    "mask",
                                            "level",   "visual", "collision"};
        for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
            if (usi_xml_attr(p, outer[i]))
                return usi_fail(r, US_ERR_VALUE, p, "write it at the outer shape",
                                "%s: it holds for the whole %s", outer[i], us_shape_kind_name(s->kind));
        }
        status = read_shape(r, p, depth + 1, s->is_collision, &parts[k++]);
    }
    return status;
}

// Mass properties of what is not a mesh. A half space and a height field have none, nor has a mesh that was
// not read.
static us_status find_inertia(usi_reader *r, const xmlNode *node, us_shape_def *s) {
    if (!usi_geometry_has_data(s) || s->site) return US_OK;
    us_error why;
    us_status status = usi_geometry_inertia(s, &r->def->allocator, &s->unit_inertia, &why);
    if (status == US_ERR_MEMORY) return usi_fail_memory(r);
    if (status) return usi_fail(r, status, node, why.remedy, "%s", why.message);
    if (!(s->unit_inertia.mass > 0)) memset(&s->unit_inertia, 0, sizeof s->unit_inertia);
    return US_OK;
}

static us_status read_shape(usi_reader *r, const xmlNode *node, int depth, bool is_collision,
                            us_shape_def *out) {
    const char *type = usi_xml_attr(node, "type");
    size_t i = 0;
    while (i + 1 < sizeof kinds / sizeof *kinds && strcmp(type, kinds[i].name) != 0)
        i++;
    const kind_row *k = &kinds[i];
    us_shape_def s = us_shape_def_default(k->kind);
    s.file = usi_xml_file(node);
    s.line = usi_xml_line(node);
    s.name = usi_xml_attr(node, "name");
    s.material = usi_xml_attr(node, "material");
    s.is_collision = is_collision;
    us_status status = usi_scene_pose(r, node, &s.X_BG);
    if (!status) status = usi_xml_bool(r, node, "visual", false, &s.is_visual);
    if (!status) status = usi_xml_bool(r, node, "collision", false, &s.is_collision);
    if (!status) status = usi_xml_int(r, node, "level", false, &s.level);
    if (!status) status = check_attributes(r, node, k);
    if (!status) status = read_size(r, node, k, &s);
    if (!status) status = usi_scene_contact(r, node, &s);
    if (!status) status = read_colour(r, node, &s);
    if (status) return status;
    bool is_file = s.kind == US_SHAPE_MESH || (s.kind == US_SHAPE_CONVEX && usi_xml_attr(node, "file"));
    if (is_file && usi_xml_attr(node, "points"))
        return usi_fail(r, US_ERR_VALUE, node, "keep one of the two", "both file and points give the shape");
    if (!is_file && usi_xml_attr(node, "scale"))
        return usi_fail(r, US_ERR_VALUE, node, "add file=\"...\", or remove it",
                        "scale: it belongs to a mesh file");
    if (is_file) status = read_mesh(r, node, &s);
    if (!is_file && k->has_points) status = read_points(r, node, &s);
    if (k->has_field)
        status = usi_scene_is_raster(node) ? usi_scene_raster(r, node, &s) : read_field(r, node, &s);
    if (k->has_parts) status = read_parts(r, node, depth, &s);
    if (!status && s.kind != US_SHAPE_MESH) status = find_inertia(r, node, &s);
    if (!status) *out = s;
    return status;
}

us_status usi_scene_shape(usi_reader *r, const xmlNode *node, us_shape_def *out) {
    return read_shape(r, node, 0, true, out);
}

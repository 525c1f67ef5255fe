// Writes binary glTF 2.0: a header, a chunk of JSON that tells what is where, and a chunk with the arrays and
// images.
//
//     "glTF" 2 total | length "JSON" {...}   | length "BIN\0" arrays, images
//
// glTF says that y is up. Here the one node is not turned: the mesh stands as it does in the shape's frame, z
// up, and whoever shows it puts it there as it is.
#include <math.h>
#include <string.h>

#include "view/view__asset.h"

enum {
    FLOAT = 5126,
    UNSIGNED_INT = 5125,
    ARRAY_BUFFER = 34962,
    ELEMENT_ARRAY_BUFFER = 34963
};  // numbers of the glTF specification

void usi_glb_init(usi_glb *glb, const us_allocator *allocator) {
    memset(glb, 0, sizeof *glb);
    usi_bytes_init(&glb->data, allocator, USI_ASSET_LIMIT);
}

void usi_glb_fini(usi_glb *glb) {
    const us_allocator *a = &glb->data.allocator;
    usi_release(a, glb->images, (size_t)glb->cap_image * sizeof *glb->images, _Alignof(max_align_t));
    usi_release(a, glb->materials, (size_t)glb->cap_material * sizeof *glb->materials, _Alignof(max_align_t));
    usi_release(a, glb->parts, (size_t)glb->cap_part * sizeof *glb->parts, _Alignof(max_align_t));
    usi_bytes_fini(&glb->data);
}

usi_glb_material usi_glb_material_default(void) {
    return (usi_glb_material){.name = "shape",
                              .rgba = {0.7f, 0.7f, 0.7f, 1},
                              .roughness = 0.7f,
                              .is_two_sided = true,
                              .image = -1,
                              .emissive_image = -1,
                              .normal_image = -1,
                              .rough_image = -1};
}

float usi_linear_of_srgb(float x) {
    if (!(x > 0)) return 0;
    if (x >= 1) return 1;
    return x <= 0.04045f ? x / 12.92f : powf((x + 0.055f) / 1.055f, 2.4f);
}

int32_t usi_glb_add_image(usi_glb *glb, const void *bytes, size_t length, const char *type) {
    usi_bytes *data = &glb->data;
    usi_bytes_align(data, 0);
    usi_glb_image image = {data->length, length, type};
    usi_bytes_put(data, bytes, length);
    if (!data->status)
        data->status =
            usi_grow(&data->allocator, (void **)&glb->images, glb->n_image, &glb->cap_image, sizeof image);
    if (data->status) return -1;
    glb->images[glb->n_image] = image;
    return glb->n_image++;
}

int32_t usi_glb_add_material(usi_glb *glb, const usi_glb_material *material) {
    usi_bytes *data = &glb->data;
    if (!data->status)
        data->status = usi_grow(&data->allocator, (void **)&glb->materials, glb->n_material,
                                &glb->cap_material, sizeof *material);
    if (data->status) return -1;
    glb->materials[glb->n_material] = *material;
    return glb->n_material++;
}

int32_t usi_glb_add_part(usi_glb *glb, const usi_glb_part *part) {
    usi_bytes *data = &glb->data;
    if (!data->status)
        data->status =
            usi_grow(&data->allocator, (void **)&glb->parts, glb->n_part, &glb->cap_part, sizeof *part);
    if (data->status) return -1;
    glb->parts[glb->n_part] = *part;
    return glb->n_part++;
}

// ---- The JSON ----

// An array of a part: where it is, and how glTF calls what it is made of.
typedef struct array_row {
    const char *attribute, *type;
    size_t offset, each;
    uint32_t count;
    int32_t component, target;
    const float *min, *max;  // asked for of positions
} array_row;

enum { N_ARRAY = 5 };

// The arrays that a part has, indices last. Returns how many.
static int rows_of(const usi_glb_part *p, array_row out[N_ARRAY]) {
    const array_row all[N_ARRAY] = {
        {"POSITION", "VEC3", p->position, 12, p->n_vertex, FLOAT, ARRAY_BUFFER, p->min, p->max},
        {"NORMAL", "VEC3", p->normal, 12, p->n_vertex, FLOAT, ARRAY_BUFFER, NULL, NULL},
        {"TEXCOORD_0", "VEC2", p->uv, 8, p->n_vertex, FLOAT, ARRAY_BUFFER, NULL, NULL},
        {"COLOR_0", p->n_colour == 4 ? "VEC4" : "VEC3", p->colour, 4 * (size_t)p->n_colour, p->n_vertex,
         FLOAT, ARRAY_BUFFER, NULL, NULL},
        {NULL, "SCALAR", p->index, 4, p->n_index, UNSIGNED_INT, ELEMENT_ARRAY_BUFFER, NULL, NULL},
    };
    int n = 0;
    for (int i = 0; i < N_ARRAY; i++) {
        if (all[i].offset != SIZE_MAX) out[n++] = all[i];
    }
    return n;
}

// Every array has a view and an accessor of its own, both with the same number; the images' views come
// after them.
static void put_meshes(usi_json *json, const usi_glb *glb) {
    usi_json_begin(json, "meshes", '[');
    usi_json_begin(json, NULL, '{');
    usi_json_begin(json, "primitives", '[');
    int accessor = 0;
    for (int32_t i = 0; i < glb->n_part; i++) {
        array_row rows[N_ARRAY];
        int n = rows_of(&glb->parts[i], rows);
        usi_json_begin(json, NULL, '{');
        usi_json_begin(json, "attributes", '{');
        for (int k = 0; k + 1 < n; k++)
            usi_json_integer(json, rows[k].attribute, accessor++);
        usi_json_end(json, '}');
        usi_json_integer(json, "indices", accessor++);
        usi_json_integer(json, "material", glb->parts[i].material);
        usi_json_end(json, '}');
    }
    usi_json_end(json, ']');
    usi_json_end(json, '}');
    usi_json_end(json, ']');
}

static void put_view(usi_json *json, size_t offset, size_t length, int32_t target) {
    usi_json_begin(json, NULL, '{');
    usi_json_integer(json, "buffer", 0);
    usi_json_integer(json, "byteOffset", (int64_t)offset);
    usi_json_integer(json, "byteLength", (int64_t)length);
    if (target) usi_json_integer(json, "target", target);
    usi_json_end(json, '}');
}

// Returns the number of views for arrays.
static int put_arrays(usi_json *json, const usi_glb *glb) {
    int view = 0;
    usi_json_begin(json, "accessors", '[');
    for (int32_t i = 0; i < glb->n_part; i++) {
        array_row rows[N_ARRAY];
        int n = rows_of(&glb->parts[i], rows);
        for (int k = 0; k < n; k++) {
            usi_json_begin(json, NULL, '{');
            usi_json_integer(json, "bufferView", view++);
            usi_json_integer(json, "componentType", rows[k].component);
            usi_json_integer(json, "count", rows[k].count);
            usi_json_text(json, "type", rows[k].type);
            if (rows[k].min) {
                usi_json_floats(json, "min", rows[k].min, 3);
                usi_json_floats(json, "max", rows[k].max, 3);
            }
            usi_json_end(json, '}');
        }
    }
    usi_json_end(json, ']');
    usi_json_begin(json, "bufferViews", '[');
    for (int32_t i = 0; i < glb->n_part; i++) {
        array_row rows[N_ARRAY];
        int n = rows_of(&glb->parts[i], rows);
        for (int k = 0; k < n; k++)
            put_view(json, rows[k].offset, rows[k].each * rows[k].count, rows[k].target);
    }
    for (int32_t i = 0; i < glb->n_image; i++)
        put_view(json, glb->images[i].offset, glb->images[i].length, 0);
    usi_json_end(json, ']');
    return view;
}

static void put_texture(usi_json *json, const char *key, int32_t image) {
    if (image < 0) return;
    usi_json_begin(json, key, '{');
    usi_json_integer(json, "index", image);  // texture i shows image i
    usi_json_end(json, '}');
}

static void put_material(usi_json *json, const usi_glb_material *m) {
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "name", m->name);
    usi_json_begin(json, "pbrMetallicRoughness", '{');
    usi_json_floats(json, "baseColorFactor", m->rgba, 4);
    usi_json_float(json, "metallicFactor", m->metallic);
    usi_json_float(json, "roughnessFactor", m->roughness);
    put_texture(json, "baseColorTexture", m->image);
    put_texture(json, "metallicRoughnessTexture", m->rough_image);
    usi_json_end(json, '}');
    put_texture(json, "normalTexture", m->normal_image);
    put_texture(json, "emissiveTexture", m->emissive_image);
    usi_json_floats(json, "emissiveFactor", m->emissive, 3);
    if (m->cutoff > 0) {
        usi_json_text(json, "alphaMode", "MASK");
        usi_json_float(json, "alphaCutoff", m->cutoff);
    } else if (m->is_blended) {
        usi_json_text(json, "alphaMode", "BLEND");
    }
    usi_json_bool(json, "doubleSided", m->is_two_sided);
    usi_json_end(json, '}');
}

static void put_materials(usi_json *json, const usi_glb *glb, int n_array) {
    usi_json_begin(json, "materials", '[');
    for (int32_t i = 0; i < glb->n_material; i++)
        put_material(json, &glb->materials[i]);
    usi_json_end(json, ']');
    if (glb->n_image == 0) return;
    usi_json_begin(json, "textures", '[');
    for (int32_t i = 0; i < glb->n_image; i++) {
        usi_json_begin(json, NULL, '{');
        usi_json_integer(json, "source", i);
        usi_json_end(json, '}');
    }
    usi_json_end(json, ']');
    usi_json_begin(json, "images", '[');
    for (int32_t i = 0; i < glb->n_image; i++) {
        usi_json_begin(json, NULL, '{');
        usi_json_integer(json, "bufferView", n_array + i);
        usi_json_text(json, "mimeType", glb->images[i].type);
        usi_json_end(json, '}');
    }
    usi_json_end(json, ']');
}

static void put_json(usi_bytes *out, const usi_glb *glb) {
    usi_json json;
    usi_json_init(&json, out);
    usi_json_begin(&json, NULL, '{');
    usi_json_begin(&json, "asset", '{');
    usi_json_text(&json, "version", "2.0");
    usi_json_text(&json, "generator", "Understudy");
    usi_json_end(&json, '}');
    usi_json_integer(&json, "scene", 0);
    usi_json_begin(&json, "scenes", '[');
    usi_json_begin(&json, NULL, '{');
    usi_json_begin(&json, "nodes", '[');
    usi_json_integer(&json, NULL, 0);
    usi_json_end(&json, ']');
    usi_json_end(&json, '}');
    usi_json_end(&json, ']');
    usi_json_begin(&json, "nodes", '[');
    usi_json_begin(&json, NULL, '{');
    usi_json_integer(&json, "mesh", 0);
    usi_json_end(&json, '}');
    usi_json_end(&json, ']');
    put_meshes(&json, glb);
    put_materials(&json, glb, put_arrays(&json, glb));
    usi_json_begin(&json, "buffers", '[');
    usi_json_begin(&json, NULL, '{');
    usi_json_integer(&json, "byteLength", (int64_t)glb->data.length);
    usi_json_end(&json, '}');
    usi_json_end(&json, ']');
    usi_json_end(&json, '}');
    usi_json_fini(&json);
}

// ---- The file ----

static void put_u32(usi_bytes *out, size_t value) {
    const unsigned char bytes[4] = {(unsigned char)value, (unsigned char)(value >> 8),
                                    (unsigned char)(value >> 16), (unsigned char)(value >> 24)};
    usi_bytes_put(out, bytes, 4);
}

us_status usi_glb_write(usi_glb *glb, char **out_bytes, size_t *out_length) {
    *out_bytes = NULL;
    *out_length = 0;
    usi_bytes_align(&glb->data, 0);
    usi_bytes text, file;
    usi_bytes_init(&text, &glb->data.allocator, USI_ASSET_LIMIT);
    put_json(&text, glb);
    usi_bytes_align(&text, ' ');
    size_t total = 12 + 8 + text.length + 8 + glb->data.length;
    usi_bytes_init(&file, &glb->data.allocator, 2 * (size_t)USI_ASSET_LIMIT);
    if (glb->data.status) file.status = glb->data.status;
    if (text.status) file.status = text.status;
    usi_bytes_put(&file, "glTF", 4);
    put_u32(&file, 2);
    put_u32(&file, total);
    put_u32(&file, text.length);
    usi_bytes_put(&file, "JSON", 4);
    usi_bytes_put(&file, text.at, text.length);
    put_u32(&file, glb->data.length);
    usi_bytes_put(&file, "BIN", 4);
    usi_bytes_put(&file, glb->data.at, glb->data.length);
    usi_bytes_fini(&text);
    return usi_bytes_take(&file, out_bytes, out_length);
}

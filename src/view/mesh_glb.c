// A mesh file of a robot as binary glTF, with its colours and textures.
//
// Assimp reads the file by the same rules as when the scene was loaded (spec/mesh.c: unit, up-axis, scale),
// and this time normals are wanted too. All nodes are baked into one mesh with one part per material: what
// has a hundred small pieces in the file is drawn in a few calls. Equal corners become one.
//
// Colours of STL, OBJ and DAE files, and those of URDF, mean what a screen shows (sRGB), as everybody writes
// them; glTF wants them linear.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spec/mesh_file.h"
#include "view/view__asset.h"

enum { IMAGE_LIMIT = 64 * 1024 * 1024 };  // bytes of one texture

// One mesh at one node.
typedef struct instance {
    const usi_mesh_part *mesh;
    usi_placement X;
} instance;

typedef struct conversion {
    usi_reader *r;
    us_allocator allocator;
    const us_shape_def *shape;
    usi_mesh_scene file;
    bool is_gltf;
    instance *instances;
    int32_t n_instance, cap_instance;
    int64_t n_triangle, n_corner_max;
    char (*image_names)[PATH_MAX];  // of each image of the GLB: as the material names it
    int32_t n_name, cap_name;
    usi_glb glb;
} conversion;

static us_status fail(conversion *c, us_status code, const char *remedy, const char *what) {
    return usi_fail(c->r, code, NULL, remedy, "the mesh \"%.200s\" %s", c->shape->mesh, what);
}

// ---- Textures ----

// What the first bytes say it is; NULL for anything but the two formats that glTF has. Also the reason why
// nothing but a image is ever served, whatever path a mesh file names.
static const char *image_type(const void *bytes, size_t length) {
    if (length >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0) return "image/png";
    if (length >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0) return "image/jpeg";
    return NULL;
}

// Puts the image of a file into the GLB. -1 when there is none, or it is not beneath the mesh's own folder.
static int32_t add_file(conversion *c, const char *path) {
    struct stat about;
    int fd = usi_mesh_open_beside(c->shape->mesh, path);
    if (fd < 0) return -1;
    bool is_good = fstat(fd, &about) == 0 && about.st_size > 0 && about.st_size <= IMAGE_LIMIT;
    size_t size = is_good ? (size_t)about.st_size : 0, n = 0;
    char *bytes = is_good ? usi_alloc(&c->allocator, size, 1) : NULL;
    for (ssize_t got = 1; bytes && n < size && got > 0; n += got > 0 ? (size_t)got : 0)
        got = pread(fd, bytes + n, size - n, (off_t)n);
    close(fd);
    const char *type = bytes && n == size ? image_type(bytes, size) : NULL;
    int32_t image = type ? usi_glb_add_image(&c->glb, bytes, size, type) : -1;
    usi_release(&c->allocator, bytes, size, 1);
    return image;
}

// "*3": inside the mesh file; otherwise a path from the mesh's directory, or, where the one who exported it
// had other directories, just the name.
static int32_t find_image(conversion *c, const char *name) {
    if (name[0] == '*') {
        const usi_mesh_answer *a = &c->file.answer;
        char *end = NULL;
        unsigned long i = strtoul(name + 1, &end, 10);
        if (end == name + 1 || i >= a->n_texture || a->texture_length[i] > IMAGE_LIMIT) return -1;
        const uint8_t *at = a->textures;
        for (unsigned long k = 0; k < i; k++)
            at += usi_mesh_padded(a->texture_length[k]);
        size_t length = (size_t)a->texture_length[i];
        const char *type = image_type(at, length);
        return type ? usi_glb_add_image(&c->glb, at, length, type) : -1;
    }
    char clean[PATH_MAX], path[2 * PATH_MAX];
    snprintf(clean, sizeof clean, "%s", strncmp(name, "file://", 7) == 0 ? name + 7 : name);
    for (char *s = clean; *s; s++) {
        if (*s == '\\') *s = '/';
    }
    const char *slash = strrchr(c->shape->mesh, '/'), *last = strrchr(clean, '/');
    int length = slash ? (int)(slash - c->shape->mesh + 1) : 0;
    snprintf(path, sizeof path, "%.*s%s", clean[0] == '/' ? 0 : length, c->shape->mesh, clean);
    int32_t image = add_file(c, path);
    if (image >= 0 || !last) return image;
    snprintf(path, sizeof path, "%.*s%s", length, c->shape->mesh, last + 1);
    return add_file(c, path);
}

// The image of a material's texture, each file once. -1 when there is none.
static int32_t image_of(conversion *c, const usi_mesh_material *material, usi_mesh_image which) {
    const char *name = material->image[which];
    if (!name[0]) return -1;
    for (int32_t i = 0; i < c->n_name; i++) {
        if (strcmp(c->image_names[i], name) == 0) return i;
    }
    if (usi_grow(&c->allocator, (void **)&c->image_names, c->n_name, &c->cap_name, sizeof *c->image_names))
        return -1;
    int32_t image = find_image(c, name);
    if (image < 0) return -1;
    snprintf(c->image_names[c->n_name++], PATH_MAX, "%s", name);
    return image;
}

// ---- Materials ----

static float number_or(float value, float otherwise) { return isfinite(value) ? value : otherwise; }

static bool colour_of(const usi_mesh_material *material, usi_mesh_colour which, float out[4]) {
    const float *rgba = material->rgba[which];
    if (!material->has_rgba[which]) return false;
    for (int k = 0; k < 4; k++)
        out[k] = !(rgba[k] > 0) ? 0 : rgba[k] > 1 ? 1 : rgba[k];
    return true;
}

static void make_linear(float rgb[3]) {
    for (int k = 0; k < 3; k++)
        rgb[k] = usi_linear_of_srgb(rgb[k]);
}

// Whether the file says nothing of colour: Assimp then makes up a material, white for STL, grey for others.
// glTF files have it behind their own.
static bool is_made_up(const conversion *c, unsigned index, const usi_mesh_material *material) {
    if (c->is_gltf) return index + 1 == c->file.answer.n_material;
    float rgba[4] = {0};
    if (!material->is_default_name || material->image[USI_MESH_DIFFUSE][0] ||
        !colour_of(material, USI_MESH_RGBA_DIFFUSE, rgba))
        return false;
    bool is_grey = rgba[0] == 0.6f && rgba[1] == 0.6f && rgba[2] == 0.6f;
    return is_grey || usi_mesh_is(c->shape->mesh, "stl");
}

static void take_gltf_material(conversion *c, const usi_mesh_material *from, usi_glb_material *m) {
    colour_of(from, USI_MESH_RGBA_BASE, m->rgba);
    m->metallic = number_or(from->metallic, 1);
    m->roughness = number_or(from->roughness, 1);
    m->image = image_of(c, from, USI_MESH_BASE_COLOUR);
    if (m->image < 0) m->image = image_of(c, from, USI_MESH_DIFFUSE);
    m->normal_image = image_of(c, from, USI_MESH_NORMALS);
    m->rough_image = image_of(c, from, USI_MESH_ROUGHNESS);
    m->is_two_sided = from->is_two_sided != 0;
    m->is_blended = from->alpha == USI_MESH_BLEND;
    if (from->alpha == USI_MESH_MASK) m->cutoff = number_or(from->cutoff, 0.5f);
}

static void take_phong_material(conversion *c, const usi_mesh_material *from, usi_glb_material *m) {
    m->image = image_of(c, from, USI_MESH_DIFFUSE);
    // Beside a texture the colour is either white or an exporter's leftover.
    if (m->image < 0) colour_of(from, USI_MESH_RGBA_DIFFUSE, m->rgba);
    if (m->image >= 0) m->rgba[0] = m->rgba[1] = m->rgba[2] = 1;
    make_linear(m->rgba);
    // Nobody ships a part that cannot be seen, but exporters that mix up opacity and transparency are common.
    float opacity = number_or(from->opacity, 1);
    m->rgba[3] = opacity > 0 && opacity < 1 ? opacity : 1;
    m->is_blended = m->rgba[3] < 1;
}

// The material of one part. The shape's own colour counts only where the file has none.
static int32_t add_material(conversion *c, unsigned index, bool has_vertex_colours) {
    usi_glb_material m = usi_glb_material_default();
    const usi_mesh_answer *a = &c->file.answer;
    const usi_mesh_material *from = index < a->n_material ? &a->materials[index] : NULL;
    float emissive[4];
    if (!from || is_made_up(c, index, from)) {
        memcpy(m.rgba, c->shape->rgba, sizeof m.rgba);
        make_linear(m.rgba);
        if (has_vertex_colours) m.rgba[0] = m.rgba[1] = m.rgba[2] = 1;
        m.is_blended = m.rgba[3] < 1;
        return usi_glb_add_material(&c->glb, &m);
    }
    snprintf(m.name, sizeof m.name, "%.60s", from->name[0] ? from->name : "file");
    if (c->is_gltf) take_gltf_material(c, from, &m);
    if (!c->is_gltf) take_phong_material(c, from, &m);
    if (colour_of(from, USI_MESH_RGBA_EMISSIVE, emissive)) {
        memcpy(m.emissive, emissive, sizeof m.emissive);
        if (!c->is_gltf) make_linear(m.emissive);
    }
    m.emissive_image = image_of(c, from, USI_MESH_EMISSIVE);
    return usi_glb_add_material(&c->glb, &m);
}

// ---- Triangles ----

// A corner with all that belongs to it, as it is compared.
typedef struct mesh_corner {
    float position[3], normal[3], uv[2], colour[4];
} mesh_corner;

// The corners of one part, each once: a table of their indices by hash, open addressing.
typedef struct corner_set {
    mesh_corner *corners;
    int32_t n, cap;
    int32_t *table;  // -1: free
    size_t n_slot;   // a power of two
    uint32_t *index;
    size_t n_index;
} corner_set;

static us_status set_init(corner_set *set, const us_allocator *a, size_t n_index) {
    memset(set, 0, sizeof *set);
    set->n_slot = 64;
    while (set->n_slot < 2 * n_index)
        set->n_slot *= 2;
    set->table = usi_alloc(a, set->n_slot * sizeof *set->table, _Alignof(int32_t));
    set->index = usi_alloc(a, n_index * sizeof *set->index, _Alignof(uint32_t));
    if (!set->table || !set->index) return US_ERR_MEMORY;
    memset(set->table, 0xff, set->n_slot * sizeof *set->table);
    return US_OK;
}

static void set_fini(corner_set *set, const us_allocator *a, size_t n_index) {
    usi_release(a, set->corners, (size_t)set->cap * sizeof *set->corners, _Alignof(max_align_t));
    usi_release(a, set->table, set->n_slot * sizeof *set->table, _Alignof(int32_t));
    usi_release(a, set->index, n_index * sizeof *set->index, _Alignof(uint32_t));
}

static us_status set_add(corner_set *set, const us_allocator *a, const mesh_corner *v) {
    size_t slot = (size_t)us_hash_bytes(0, v, sizeof *v) & (set->n_slot - 1);
    while (set->table[slot] >= 0 && memcmp(&set->corners[set->table[slot]], v, sizeof *v) != 0)
        slot = (slot + 1) & (set->n_slot - 1);
    if (set->table[slot] < 0) {
        us_status status = usi_grow(a, (void **)&set->corners, set->n, &set->cap, sizeof *v);
        if (status) return status;
        set->corners[set->n] = *v;
        set->table[slot] = set->n++;
    }
    set->index[set->n_index++] = (uint32_t)set->table[slot];
    return US_OK;
}

// What takes normals along: the cofactors, with the sign that keeps them outside when the placement mirrors.
typedef struct normal_map {
    double m[9];
    bool is_mirror;
} normal_map;

static normal_map normal_map_of(const usi_placement *X) {
    normal_map out;
    for (int i = 0; i < 3; i++) {
        const double *a = X->m + 4 * ((i + 1) % 3), *b = X->m + 4 * ((i + 2) % 3);
        out.m[3 * i] = a[1] * b[2] - a[2] * b[1];
        out.m[3 * i + 1] = a[2] * b[0] - a[0] * b[2];
        out.m[3 * i + 2] = a[0] * b[1] - a[1] * b[0];
    }
    out.is_mirror = X->m[0] * out.m[0] + X->m[1] * out.m[1] + X->m[2] * out.m[2] < 0;
    if (out.is_mirror) {
        for (int i = 0; i < 9; i++)
            out.m[i] = -out.m[i];
    }
    return out;
}

static void take_normal(const normal_map *map, const float from[3], float out[3]) {
    const double *m = map->m, x = (double)from[0], y = (double)from[1], z = (double)from[2];
    const double n[3] = {m[0] * x + m[1] * y + m[2] * z, m[3] * x + m[4] * y + m[5] * z,
                         m[6] * x + m[7] * y + m[8] * z};
    double length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    // A triangle that is a line has no normal; any will do.
    bool is_good = length > 1e-300 && isfinite(length);
    for (int k = 0; k < 3; k++)
        out[k] = is_good ? (float)(n[k] / length) : k == 2 ? 1.0f : 0.0f;
}

static us_status take_mesh(conversion *c, const instance *from, corner_set *set) {
    const usi_mesh_part *mesh = from->mesh;
    normal_map map = normal_map_of(&from->X);
    us_status status = US_OK;
    for (size_t k = 0; k < 3 * (size_t)mesh->n_triangle && !status; k++) {
        // The last corner first where the placement mirrors.
        const size_t i = mesh->corner[map.is_mirror ? k / 3 * 3 + 2 - k % 3 : k];
        double p[3];
        const float *v = mesh->position + 3 * i;
        if (!usi_placement_point(&from->X, v[0], v[1], v[2], p))
            return fail(c, US_ERR_MESH, "write it again from the program that made it",
                        "has a vertex that is not finite");
        mesh_corner q = {
            .position = {(float)p[0], (float)p[1], (float)p[2]}, .normal = {0, 0, 1}, .colour = {1, 1, 1, 1}};
        if (mesh->normal) take_normal(&map, mesh->normal + 3 * i, q.normal);
        // Assimp counts v from below, glTF from above.
        const float *uv = mesh->uv ? mesh->uv + 2 * i : NULL,
                    *rgba = mesh->colour ? mesh->colour + 4 * i : NULL;
        if (uv && isfinite(uv[0]) && isfinite(uv[1])) {
            q.uv[0] = uv[0];
            q.uv[1] = 1 - uv[1];
        }
        if (rgba) {
            for (int n = 0; n < 4; n++)
                q.colour[n] = !(rgba[n] > 0) ? 0 : rgba[n] > 1 ? 1 : rgba[n];
            if (!c->is_gltf) make_linear(q.colour);
        }
        status = set_add(set, &c->allocator, &q);
        if (!status && set->n > c->n_corner_max) status = US_ERR_LIMIT;
    }
    return status;
}

// One array of the part, picked out of the corners. Returns its offset.
static size_t put_array(usi_glb *glb, const corner_set *set, size_t at, size_t length) {
    usi_bytes_align(&glb->data, 0);
    size_t offset = glb->data.length;
    char *room = usi_bytes_room(&glb->data, (size_t)set->n * length);
    for (int32_t i = 0; i < set->n && room; i++)
        memcpy(room + (size_t)i * length, (const char *)&set->corners[i] + at, length);
    return offset;
}

static void put_part(usi_glb *glb, const corner_set *set, int32_t material, bool has_uv, int n_colour) {
    if (set->n == 0) return;
    usi_glb_part part = {
        .material = material, .n_vertex = (uint32_t)set->n, .n_index = (uint32_t)set->n_index};
    memcpy(part.min, set->corners[0].position, sizeof part.min);
    memcpy(part.max, set->corners[0].position, sizeof part.max);
    for (int32_t i = 1; i < set->n; i++) {
        for (int k = 0; k < 3; k++) {
            part.min[k] = fminf(part.min[k], set->corners[i].position[k]);
            part.max[k] = fmaxf(part.max[k], set->corners[i].position[k]);
        }
    }
    part.position = put_array(glb, set, offsetof(mesh_corner, position), sizeof set->corners->position);
    part.normal = put_array(glb, set, offsetof(mesh_corner, normal), sizeof set->corners->normal);
    part.uv = has_uv ? put_array(glb, set, offsetof(mesh_corner, uv), sizeof set->corners->uv) : SIZE_MAX;
    part.n_colour = n_colour;
    part.colour = n_colour > 0 ? put_array(glb, set, offsetof(mesh_corner, colour),
                                           (size_t)n_colour * sizeof *set->corners->colour)
                               : SIZE_MAX;
    usi_bytes_align(&glb->data, 0);
    part.index = glb->data.length;
    usi_bytes_put(&glb->data, set->index, set->n_index * sizeof *set->index);
    usi_glb_add_part(glb, &part);
}

// How many numbers the colours of a mesh's vertices need: 4, 3 when all are opaque, none when all are white,
// as some exporters write them.
static int colour_width(const usi_mesh_part *mesh) {
    const float *rgba = mesh->colour;
    int width = 0;
    for (size_t i = 0; i < mesh->n_vertex && rgba && width < 4; i++, rgba += 4) {
        if (!(rgba[0] >= 1 && rgba[1] >= 1 && rgba[2] >= 1)) width = 3;
        if (!(rgba[3] >= 1)) width = 4;
    }
    return width;
}

// All triangles of one material.
static us_status take_material(conversion *c, unsigned index) {
    size_t n_index = 0;
    bool has_uv = false;
    int n_colour = 0;
    for (int32_t i = 0; i < c->n_instance; i++) {
        const usi_mesh_part *mesh = c->instances[i].mesh;
        if (mesh->material != index) continue;
        n_index += 3 * (size_t)mesh->n_triangle;
        has_uv |= mesh->uv != NULL;
        int width = colour_width(mesh);
        if (width > n_colour) n_colour = width;
    }
    if (n_index == 0) return US_OK;
    int32_t material = add_material(c, index, n_colour > 0);
    const usi_glb_material *made = material >= 0 ? &c->glb.materials[material] : NULL;
    // Coordinates without a image are not needed.
    has_uv &= made && (made->image >= 0 || made->emissive_image >= 0 || made->normal_image >= 0 ||
                       made->rough_image >= 0);
    corner_set set;
    us_status status = set_init(&set, &c->allocator, n_index);
    for (int32_t i = 0; i < c->n_instance && !status; i++) {
        if (c->instances[i].mesh->material == index) status = take_mesh(c, &c->instances[i], &set);
    }
    if (!status) put_part(&c->glb, &set, material, has_uv, n_colour);
    set_fini(&set, &c->allocator, n_index);
    return status;
}

static bool add_instance(void *context, const usi_mesh_part *mesh, const usi_placement *X) {
    conversion *c = context;
    c->n_triangle += mesh->n_triangle;
    if (c->n_triangle > c->file.n_max) return false;
    if (usi_grow(&c->allocator, (void **)&c->instances, c->n_instance, &c->cap_instance,
                 sizeof *c->instances)) {
        c->glb.data.status = US_ERR_MEMORY;
        return false;
    }
    c->instances[c->n_instance++] = (instance){mesh, *X};
    return true;
}

static us_status convert(conversion *c, char **out_bytes, size_t *out_length) {
    usi_mesh_walk(&c->file, add_instance, c);
    if (c->n_triangle > c->file.n_max)
        return fail(c, US_ERR_LIMIT, "simplify the mesh, for example in Blender (Decimate)",
                    "has more triangles than a file of its size may have");
    c->n_corner_max = 3 * c->file.n_max / 2;
    // The made-up material of a glTF file stands behind the last one.
    us_status status = c->glb.data.status;
    for (unsigned m = 0; m < c->file.answer.n_material && !status; m++)
        status = take_material(c, m);
    if (!status && c->glb.n_part == 0 && !c->glb.data.status)
        return fail(c, US_ERR_MESH, "export faces, not only points, edges or curves", "has no triangles");
    if (!status) status = usi_glb_write(&c->glb, out_bytes, out_length);
    if (status == US_ERR_LIMIT)
        return fail(c, status, "simplify the mesh, for example in Blender (Decimate), or its textures",
                    "is too large to be shown");
    return status == US_ERR_MEMORY ? usi_fail_memory(c->r) : status;
}

us_status usi_mesh_glb(const us_shape_def *shape, const us_allocator *allocator, char **out_bytes,
                       size_t *out_length, us_error *err) {
    *out_bytes = NULL;
    *out_length = 0;
    us_load_def def = us_load_def_default();
    def.allocator = *allocator;
    usi_reader reader;
    usi_reader_init(&reader, NULL, &def, err);
    conversion c = {.r = &reader, .allocator = *allocator, .shape = shape};
    c.is_gltf = usi_mesh_is(shape->mesh, "gltf") || usi_mesh_is(shape->mesh, "glb");
    usi_glb_init(&c.glb, allocator);
    us_status status =
        usi_mesh_open(&reader, NULL, shape, c.is_gltf ? USI_MESH_LOOKS_GLTF : USI_MESH_LOOKS_PHONG, &c.file);
    if (!status) status = convert(&c, out_bytes, out_length);
    usi_mesh_close(&c.file);
    usi_glb_fini(&c.glb);
    usi_release(allocator, c.instances, (size_t)c.cap_instance * sizeof *c.instances, _Alignof(max_align_t));
    usi_release(allocator, c.image_names, (size_t)c.cap_name * sizeof *c.image_names, _Alignof(max_align_t));
    usi_reader_fini(&reader);
    return status;
}

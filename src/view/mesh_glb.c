// A mesh file of a robot as binary glTF, with its colours and textures.
//
// Assimp reads the file by the same rules as when the scene was loaded (spec/mesh.c: unit, up-axis, scale),
// and this time normals are wanted too. All nodes are baked into one mesh with one part per material: what
// has a hundred small pieces in the file is drawn in a few calls. Equal corners become one.
//
// Colours of STL, OBJ and DAE files, and those of URDF, mean what a screen shows (sRGB), as everybody writes
// them; glTF wants them linear.
#include <assimp/GltfMaterial.h>
#include <assimp/cimport.h>
#include <assimp/material.h>
#include <assimp/mesh.h>
#include <assimp/postprocess.h>
#include <assimp/scene.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "spec/mesh_file.h"
#include "view/view__asset.h"

enum { IMAGE_LIMIT = 64 * 1024 * 1024 };  // bytes of one texture

// One mesh at one node.
typedef struct instance {
    const struct aiMesh *mesh;
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

// Puts the image of a file into the GLB. -1 when there is none.
static int32_t add_file(conversion *c, const char *path) {
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= 0 ||
        about.st_size > IMAGE_LIMIT)
        return -1;
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    size_t size = (size_t)about.st_size;
    char *bytes = usi_alloc(&c->allocator, size, 1);
    const char *type = bytes && fread(bytes, 1, size, file) == size ? image_type(bytes, size) : NULL;
    fclose(file);
    int32_t image = type ? usi_glb_add_image(&c->glb, bytes, size, type) : -1;
    usi_release(&c->allocator, bytes, size, 1);
    return image;
}

// "*3": inside the mesh file; otherwise a path from the mesh's directory, or, where the one who exported it
// had other directories, just the name.
static int32_t find_image(conversion *c, const char *name) {
    if (name[0] == '*') {
        const struct aiScene *scene = c->file.scene;
        char *end = NULL;
        unsigned long i = strtoul(name + 1, &end, 10);
        if (end == name + 1 || i >= scene->mNumTextures) return -1;
        const struct aiTexture *texture = scene->mTextures[i];
        if (texture->mHeight != 0 || texture->mWidth > IMAGE_LIMIT) return -1;  // pixels without a format
        const char *type = image_type(texture->pcData, texture->mWidth);
        return type ? usi_glb_add_image(&c->glb, texture->pcData, texture->mWidth, type) : -1;
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
static int32_t image_of(conversion *c, const struct aiMaterial *material, enum aiTextureType type) {
    struct aiString name;
    if (aiGetMaterialTexture(material, type, 0, &name, NULL, NULL, NULL, NULL, NULL, NULL) !=
        aiReturn_SUCCESS)
        return -1;
    for (int32_t i = 0; i < c->n_name; i++) {
        if (strcmp(c->image_names[i], name.data) == 0) return i;
    }
    if (usi_grow(&c->allocator, (void **)&c->image_names, c->n_name, &c->cap_name, sizeof *c->image_names))
        return -1;
    int32_t image = find_image(c, name.data);
    if (image < 0) return -1;
    snprintf(c->image_names[c->n_name++], PATH_MAX, "%s", name.data);
    return image;
}

// ---- Materials ----

static float number_of(const struct aiMaterial *material, const char *key, unsigned type, unsigned index,
                       float otherwise) {
    ai_real value = 0;
    unsigned n = 1;
    if (aiGetMaterialFloatArray(material, key, type, index, &value, &n) != aiReturn_SUCCESS || n < 1 ||
        !isfinite(value))
        return otherwise;
    return (float)value;
}

static bool colour_of(const struct aiMaterial *material, const char *key, unsigned type, unsigned index,
                      float out[4]) {
    struct aiColor4D colour = {1, 1, 1, 1};
    if (aiGetMaterialColor(material, key, type, index, &colour) != aiReturn_SUCCESS) return false;
    const float rgba[4] = {(float)colour.r, (float)colour.g, (float)colour.b, (float)colour.a};
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
static bool is_made_up(const conversion *c, unsigned index, const struct aiMaterial *material) {
    if (c->is_gltf) return index + 1 == c->file.scene->mNumMaterials;
    struct aiString name;
    float rgba[4] = {0};
    if (aiGetMaterialString(material, AI_MATKEY_NAME, &name) != aiReturn_SUCCESS ||
        strcmp(name.data, AI_DEFAULT_MATERIAL_NAME) != 0)
        return false;
    if (aiGetMaterialTextureCount(material, aiTextureType_DIFFUSE) > 0 ||
        !colour_of(material, AI_MATKEY_COLOR_DIFFUSE, rgba))
        return false;
    bool is_grey = rgba[0] == 0.6f && rgba[1] == 0.6f && rgba[2] == 0.6f;
    return is_grey || usi_mesh_is(c->shape->mesh, "stl");
}

static void take_gltf_material(conversion *c, const struct aiMaterial *from, usi_glb_material *m) {
    colour_of(from, AI_MATKEY_BASE_COLOR, m->rgba);
    m->metallic = number_of(from, AI_MATKEY_METALLIC_FACTOR, 1);
    m->roughness = number_of(from, AI_MATKEY_ROUGHNESS_FACTOR, 1);
    m->image = image_of(c, from, aiTextureType_BASE_COLOR);
    if (m->image < 0) m->image = image_of(c, from, aiTextureType_DIFFUSE);
    m->normal_image = image_of(c, from, aiTextureType_NORMALS);
    m->rough_image = image_of(c, from, aiTextureType_UNKNOWN);
    int two_sided = 0;
    unsigned n = 1;
    if (aiGetMaterialIntegerArray(from, AI_MATKEY_TWOSIDED, &two_sided, &n) == aiReturn_SUCCESS)
        m->is_two_sided = two_sided != 0;
    struct aiString mode;
    if (aiGetMaterialString(from, AI_MATKEY_GLTF_ALPHAMODE, &mode) != aiReturn_SUCCESS) return;
    m->is_blended = strcmp(mode.data, "BLEND") == 0;
    if (strcmp(mode.data, "MASK") == 0) m->cutoff = number_of(from, AI_MATKEY_GLTF_ALPHACUTOFF, 0.5f);
}

static void take_phong_material(conversion *c, const struct aiMaterial *from, usi_glb_material *m) {
    m->image = image_of(c, from, aiTextureType_DIFFUSE);
    // Beside a texture the colour is either white or an exporter's leftover.
    if (m->image < 0) colour_of(from, AI_MATKEY_COLOR_DIFFUSE, m->rgba);
    if (m->image >= 0) m->rgba[0] = m->rgba[1] = m->rgba[2] = 1;
    make_linear(m->rgba);
    // Nobody ships a part that cannot be seen, but exporters that mix up opacity and transparency are common.
    float opacity = number_of(from, AI_MATKEY_OPACITY, 1);
    m->rgba[3] = opacity > 0 && opacity < 1 ? opacity : 1;
    m->is_blended = m->rgba[3] < 1;
}

// The material of one part. The shape's own colour counts only where the file has none.
static int32_t add_material(conversion *c, unsigned index, bool has_vertex_colours) {
    usi_glb_material m = usi_glb_material_default();
    const struct aiMaterial *from =
        index < c->file.scene->mNumMaterials ? c->file.scene->mMaterials[index] : NULL;
    float emissive[4];
    if (!from || is_made_up(c, index, from)) {
        memcpy(m.rgba, c->shape->rgba, sizeof m.rgba);
        make_linear(m.rgba);
        if (has_vertex_colours) m.rgba[0] = m.rgba[1] = m.rgba[2] = 1;
        m.is_blended = m.rgba[3] < 1;
        return usi_glb_add_material(&c->glb, &m);
    }
    struct aiString name;
    bool is_named = aiGetMaterialString(from, AI_MATKEY_NAME, &name) == aiReturn_SUCCESS && name.data[0];
    snprintf(m.name, sizeof m.name, "%.60s", is_named ? name.data : "file");
    if (c->is_gltf) take_gltf_material(c, from, &m);
    if (!c->is_gltf) take_phong_material(c, from, &m);
    if (colour_of(from, AI_MATKEY_COLOR_EMISSIVE, emissive)) {
        memcpy(m.emissive, emissive, sizeof m.emissive);
        if (!c->is_gltf) make_linear(m.emissive);
    }
    m.emissive_image = image_of(c, from, aiTextureType_EMISSIVE);
    return usi_glb_add_material(&c->glb, &m);
}

// Which set of texture coordinates the material's image uses.
static unsigned uv_channel(const conversion *c, unsigned index) {
    if (index >= c->file.scene->mNumMaterials) return 0;
    struct aiString name;
    unsigned channel = 0;
    enum aiTextureType type = aiTextureType_DIFFUSE;
    if (c->is_gltf &&
        aiGetMaterialTextureCount(c->file.scene->mMaterials[index], aiTextureType_BASE_COLOR) > 0)
        type = aiTextureType_BASE_COLOR;
    if (aiGetMaterialTexture(c->file.scene->mMaterials[index], type, 0, &name, NULL, &channel, NULL, NULL,
                             NULL, NULL) != aiReturn_SUCCESS)
        return 0;
    return channel < AI_MAX_NUMBER_OF_TEXTURECOORDS ? channel : 0;
}

// ---- Triangles ----

// A corner with all that belongs to it, as it is compared.
typedef struct corner {
    float position[3], normal[3], uv[2], colour[4];
} corner;

// The corners of one part, each once: a table of their indices by hash, open addressing.
typedef struct corner_set {
    corner *corners;
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

static us_status set_add(corner_set *set, const us_allocator *a, const corner *v) {
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

static void take_normal(const normal_map *map, struct aiVector3D from, float out[3]) {
    const double *m = map->m, x = (double)from.x, y = (double)from.y, z = (double)from.z;
    const double n[3] = {m[0] * x + m[1] * y + m[2] * z, m[3] * x + m[4] * y + m[5] * z,
                         m[6] * x + m[7] * y + m[8] * z};
    double length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    // A triangle that is a line has no normal; any will do.
    bool is_good = length > 1e-300 && isfinite(length);
    for (int k = 0; k < 3; k++)
        out[k] = is_good ? (float)(n[k] / length) : k == 2 ? 1.0f : 0.0f;
}

static us_status take_mesh(conversion *c, const instance *from, unsigned channel, corner_set *set) {
    const struct aiMesh *mesh = from->mesh;
    const struct aiVector3D *uv = mesh->mTextureCoords[channel];
    const struct aiColor4D *colour = mesh->mColors[0];
    normal_map map = normal_map_of(&from->X);
    us_status status = US_OK;
    for (unsigned f = 0; f < mesh->mNumFaces && !status; f++) {
        const struct aiFace *face = &mesh->mFaces[f];
        if (face->mNumIndices != 3) continue;
        for (int k = 0; k < 3 && !status; k++) {
            unsigned i = face->mIndices[map.is_mirror ? 2 - k : k];
            if (i >= mesh->mNumVertices)
                return fail(c, US_ERR_MESH, "write it again from the program that made it",
                            "has a triangle whose vertex does not exist");
            double p[3];
            const struct aiVector3D *v = &mesh->mVertices[i];
            if (!usi_placement_point(&from->X, v->x, v->y, v->z, p))
                return fail(c, US_ERR_MESH, "write it again from the program that made it",
                            "has a vertex that is not finite");
            corner q = {.position = {(float)p[0], (float)p[1], (float)p[2]},
                        .normal = {0, 0, 1},
                        .colour = {1, 1, 1, 1}};
            if (mesh->mNormals) take_normal(&map, mesh->mNormals[i], q.normal);
            // Assimp counts v from below, glTF from above.
            if (uv && isfinite(uv[i].x) && isfinite(uv[i].y)) {
                q.uv[0] = (float)uv[i].x;
                q.uv[1] = 1 - (float)uv[i].y;
            }
            if (colour) {
                const float rgba[4] = {(float)colour[i].r, (float)colour[i].g, (float)colour[i].b,
                                       (float)colour[i].a};
                for (int n = 0; n < 4; n++)
                    q.colour[n] = !(rgba[n] > 0) ? 0 : rgba[n] > 1 ? 1 : rgba[n];
                if (!c->is_gltf) make_linear(q.colour);
            }
            status = set_add(set, &c->allocator, &q);
        }
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
    part.position = put_array(glb, set, offsetof(corner, position), sizeof set->corners->position);
    part.normal = put_array(glb, set, offsetof(corner, normal), sizeof set->corners->normal);
    part.uv = has_uv ? put_array(glb, set, offsetof(corner, uv), sizeof set->corners->uv) : SIZE_MAX;
    part.n_colour = n_colour;
    part.colour = n_colour > 0 ? put_array(glb, set, offsetof(corner, colour),
                                           (size_t)n_colour * sizeof *set->corners->colour)
                               : SIZE_MAX;
    usi_bytes_align(&glb->data, 0);
    part.index = glb->data.length;
    usi_bytes_put(&glb->data, set->index, set->n_index * sizeof *set->index);
    usi_glb_add_part(glb, &part);
}

static size_t count_corners(const struct aiMesh *mesh) {
    size_t n = 0;
    for (unsigned f = 0; f < mesh->mNumFaces; f++)
        n += mesh->mFaces[f].mNumIndices == 3 ? 3 : 0;
    return n;
}

// How many numbers the colours of a mesh's vertices need: 4, 3 when all are opaque, none when all are white,
// as some exporters write them.
static int colour_width(const struct aiMesh *mesh) {
    const struct aiColor4D *colour = mesh->mColors[0];
    int width = 0;
    for (unsigned i = 0; i < mesh->mNumVertices && colour && width < 4; i++) {
        if (!(colour[i].r >= 1 && colour[i].g >= 1 && colour[i].b >= 1)) width = 3;
        if (!(colour[i].a >= 1)) width = 4;
    }
    return width;
}

// All triangles of one material.
static us_status take_material(conversion *c, unsigned index) {
    unsigned channel = uv_channel(c, index);
    size_t n_index = 0;
    bool has_uv = false;
    int n_colour = 0;
    for (int32_t i = 0; i < c->n_instance; i++) {
        const struct aiMesh *mesh = c->instances[i].mesh;
        if (mesh->mMaterialIndex != index) continue;
        n_index += count_corners(mesh);
        has_uv |= mesh->mTextureCoords[channel] != NULL;
        int width = colour_width(mesh);
        if (width > n_colour) n_colour = width;
    }
    if (n_index == 0) return US_OK;
    if (n_index > 3 * (size_t)USI_TRIANGLE_LIMIT)
        return fail(c, US_ERR_LIMIT, "simplify the mesh, for example in Blender (Decimate)",
                    "has more than 5 million triangles");
    int32_t material = add_material(c, index, n_colour > 0);
    const usi_glb_material *made = material >= 0 ? &c->glb.materials[material] : NULL;
    // Coordinates without a image are not needed.
    has_uv &= made && (made->image >= 0 || made->emissive_image >= 0 || made->normal_image >= 0 ||
                       made->rough_image >= 0);
    corner_set set;
    us_status status = set_init(&set, &c->allocator, n_index);
    for (int32_t i = 0; i < c->n_instance && !status; i++) {
        if (c->instances[i].mesh->mMaterialIndex == index)
            status = take_mesh(c, &c->instances[i], channel, &set);
    }
    if (!status) put_part(&c->glb, &set, material, has_uv, n_colour);
    set_fini(&set, &c->allocator, n_index);
    return status;
}

static bool add_instance(void *context, const struct aiMesh *mesh, const usi_placement *X) {
    conversion *c = context;
    if (usi_grow(&c->allocator, (void **)&c->instances, c->n_instance, &c->cap_instance,
                 sizeof *c->instances)) {
        c->glb.data.status = US_ERR_MEMORY;
        return false;
    }
    c->instances[c->n_instance++] = (instance){mesh, *X};
    return true;
}

static us_status convert(conversion *c, char **out_bytes, size_t *out_length) {
    if (!usi_mesh_walk(&c->file, add_instance, c))
        return fail(c, US_ERR_LIMIT, "simplify the mesh, for example in Blender (Decimate)",
                    "nests its nodes too deeply");
    // The made-up material of a glTF file stands behind the last one.
    us_status status = c->glb.data.status;
    for (unsigned m = 0; m < c->file.scene->mNumMaterials && !status; m++)
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
    // The normals of STL files are flat or missing, and each triangle stands alone in them.
    uint32_t steps = aiProcess_GenSmoothNormals;
    if (usi_mesh_is(shape->mesh, "stl")) steps |= aiProcess_ForceGenNormals;
    us_status status = usi_mesh_open(&reader, NULL, shape, steps, &c.file);
    if (!status) status = convert(&c, out_bytes, out_length);
    usi_mesh_close(&c.file);
    usi_glb_fini(&c.glb);
    usi_release(allocator, c.instances, (size_t)c.cap_instance * sizeof *c.instances, _Alignof(max_align_t));
    usi_release(allocator, c.image_names, (size_t)c.cap_name * sizeof *c.image_names, _Alignof(max_align_t));
    usi_reader_fini(&reader);
    return status;
}

// The look at the reader's answer before anything in it is used.
#include "spec/mesh_answer.h"

#include <string.h>

// What is left of the answer. A part that does not fit ends it all: from then on every part is NULL.
typedef struct rest {
    const uint8_t *at;
    uint64_t left;
    bool is_short;
} rest;

static const void *take(rest *r, uint64_t n, uint64_t size) {
    // Counts are of 32 bits and sizes below 2^13: no overflow.
    uint64_t length = usi_mesh_padded(n * size);
    if (r->is_short || length > r->left) {
        r->is_short = true;
        return NULL;
    }
    const void *at = r->at;
    r->at += length;
    r->left -= length;
    return at;
}

uint64_t usi_mesh_shape_size(const usi_mesh_shape *s) {
    uint64_t n = s->n_vertex, size = usi_mesh_padded(12 * n);
    if (s->has_normals) size += usi_mesh_padded(12 * n);
    if (s->has_uv) size += usi_mesh_padded(8 * n);
    if (s->has_colours) size += usi_mesh_padded(16 * n);
    return size + usi_mesh_padded(12 * (uint64_t)s->n_triangle);
}

static bool is_ended(const char *text, size_t cap) { return memchr(text, 0, cap) != NULL; }

static bool check_materials(const usi_mesh_answer *a) {
    for (uint32_t i = 0; i < a->n_material; i++) {
        const usi_mesh_material *m = &a->materials[i];
        bool is_good = is_ended(m->name, sizeof m->name) && m->alpha < USI_MESH_N_ALPHA;
        for (int k = 0; k < USI_MESH_N_IMAGE; k++)
            is_good &= is_ended(m->image[k], sizeof m->image[k]);
        if (!is_good) return false;
    }
    return true;
}

static bool check_nodes(const usi_mesh_answer *a, uint64_t n_node_mesh) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < a->n_node; i++) {
        if (i == 0 ? a->nodes[i].parent != 0 : a->nodes[i].parent >= i) return false;
        n += a->nodes[i].n_mesh;
    }
    if (n != n_node_mesh) return false;
    for (uint64_t i = 0; i < n; i++) {
        if (a->node_meshes[i] >= a->n_mesh) return false;
    }
    return true;
}

// The arrays of all meshes, and every corner of their triangles.
static const char *check_meshes(usi_mesh_answer *a, rest *r) {
    a->vertices = (const float *)(const void *)r->at;
    for (uint32_t i = 0; i < a->n_mesh; i++) {
        const usi_mesh_shape *s = &a->shapes[i];
        if (s->material >= a->n_material && a->n_material > 0)
            return "has a part whose material does not exist";
        uint64_t size = usi_mesh_shape_size(s), n_corner = 3 * (uint64_t)s->n_triangle;
        const uint8_t *arrays = take(r, size, 1);
        if (!arrays) return "is cut off";
        const uint32_t *corner =
            (const uint32_t *)(const void *)(arrays + size - usi_mesh_padded(4 * n_corner));
        for (uint64_t k = 0; k < n_corner; k++) {
            if (corner[k] >= s->n_vertex) return "has a triangle whose vertex does not exist";
        }
    }
    return NULL;
}

bool usi_mesh_answer_check(const void *bytes, size_t length, usi_mesh_answer *out, const char **why) {
    rest r = {bytes, length, false};
    memset(out, 0, sizeof *out);
    *why = "is cut off";
    const usi_mesh_head *head = take(&r, 1, sizeof *head);
    if (!head) return false;
    *why = "is not one";
    if (head->magic != USI_MESH_ANSWER_MAGIC || head->n_material > USI_MESH_MAX_MATERIAL ||
        head->n_texture > USI_MESH_MAX_TEXTURE || head->n_node > USI_MESH_MAX_NODE ||
        head->n_node_mesh > USI_MESH_MAX_MESH || head->n_mesh > USI_MESH_MAX_MESH)
        return false;
    usi_mesh_answer a = {.n_material = head->n_material,
                         .n_texture = head->n_texture,
                         .n_node = head->n_node,
                         .n_mesh = head->n_mesh};
    a.materials = take(&r, a.n_material, sizeof *a.materials);
    a.texture_length = take(&r, a.n_texture, sizeof *a.texture_length);
    a.textures = r.at;
    for (uint32_t i = 0; i < a.n_texture && !r.is_short; i++) {
        if (a.texture_length[i] > length) r.is_short = true;
        take(&r, r.is_short ? 0 : a.texture_length[i], 1);
    }
    a.nodes = take(&r, a.n_node, sizeof *a.nodes);
    a.node_meshes = take(&r, head->n_node_mesh, sizeof *a.node_meshes);
    a.shapes = take(&r, a.n_mesh, sizeof *a.shapes);
    *why = "is cut off";
    if (r.is_short) return false;
    *why = "has a node, a mesh or a material that does not exist";
    if (!check_materials(&a) || !check_nodes(&a, head->n_node_mesh)) return false;
    *why = check_meshes(&a, &r);
    if (*why) return false;
    *out = a;
    return true;
}

bool usi_mesh_next_part(const usi_mesh_answer *a, usi_mesh_cursor *c, usi_mesh_part *out) {
    if (c->next == 0) c->at = (const uint8_t *)(const void *)a->vertices;
    if (c->next >= a->n_mesh) return false;
    const usi_mesh_shape *s = &a->shapes[c->next++];
    // take() cannot fail here: the check has walked the same way.
    rest r = {c->at, UINT64_MAX, false};
    const uint64_t n = s->n_vertex;
    *out = (usi_mesh_part){.n_vertex = s->n_vertex, .n_triangle = s->n_triangle, .material = s->material};
    out->position = take(&r, n, 12);
    if (s->has_normals) out->normal = take(&r, n, 12);
    if (s->has_uv) out->uv = take(&r, n, 8);
    if (s->has_colours) out->colour = take(&r, n, 16);
    out->corner = take(&r, s->n_triangle, 12);
    c->at = r.at;
    return true;
}

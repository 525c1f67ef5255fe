// Any bytes as the answer of the reader of mesh files: refused in words, or every pointer of it can be
// followed.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spec/mesh_answer.h"
#include "understudy/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    usi_mesh_answer a;
    const char *why = NULL;
    uint8_t *bytes = malloc(size + 1);  // aligned, as a mapped answer is
    if (!bytes) return 0;
    memcpy(bytes, data, size);
    uint64_t hash = 0;
    if (!usi_mesh_answer_check(bytes, size, &a, &why)) {
        must(why && why[0]);
        free(bytes);
        return 0;
    }
    for (uint32_t i = 0; i < a.n_material; i++) {
        hash += strlen(a.materials[i].name);
        for (int k = 0; k < USI_MESH_N_IMAGE; k++)
            hash += strlen(a.materials[i].image[k]);
    }
    const uint8_t *texture = a.textures;
    for (uint32_t i = 0; i < a.n_texture; i++) {
        hash = us_hash_bytes(hash, texture, (size_t)a.texture_length[i]);
        texture += usi_mesh_padded(a.texture_length[i]);
    }
    const uint32_t *mesh = a.node_meshes;
    for (uint32_t i = 0; i < a.n_node; i++) {
        must(i == 0 || a.nodes[i].parent < i);
        for (uint32_t k = 0; k < a.nodes[i].n_mesh; k++)
            must(*mesh++ < a.n_mesh);
    }
    usi_mesh_cursor cursor = {0};
    usi_mesh_part part;
    while (usi_mesh_next_part(&a, &cursor, &part)) {
        for (size_t k = 0; k < 3 * (size_t)part.n_triangle; k++) {
            const size_t i = part.corner[k];
            must(i < part.n_vertex);
            hash = us_hash_bytes(hash, part.position + 3 * i, 12);
            if (part.normal) hash = us_hash_bytes(hash, part.normal + 3 * i, 12);
            if (part.uv) hash = us_hash_bytes(hash, part.uv + 2 * i, 8);
            if (part.colour) hash = us_hash_bytes(hash, part.colour + 4 * i, 16);
        }
    }
    free(bytes);
    volatile uint64_t kept = hash;
    (void)kept;
    return 0;
}

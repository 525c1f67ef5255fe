// What the reader of mesh files answers: the layout that both sides share, and the look at it before use.
//
// A mesh file is read by a process of its own (reader/mesh_reader.c), because whatever a stranger wrote into
// it may make Assimp crash, loop or do worse. The answer is one block of bytes, made of parts of 8 bytes
// aligned:
//
//     head | materials | lengths of textures | bytes of textures | nodes | meshes of nodes
//          | meshes | for each mesh: positions, normals, texture coordinates, colours, corners
//
// It comes from a process that a stranger's file may have taken over. usi_mesh_answer_check believes nothing:
// every count, index and length is compared with what is there, texts end, and only then is a pointer made.
#ifndef USI_SPEC_MESH_ANSWER_H
#define USI_SPEC_MESH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    USI_MESH_ANSWER_MAGIC = 0x3148534d,  // "MSH1"
    USI_MESH_REFUSAL_MAGIC = 0x31465552,
    USI_MESH_PATIENCE = 6,  // seconds of the clock for each of the processor
    USI_MESH_NAME = 1024,   // bytes of the name of a texture, with its end
    USI_MESH_MAX_MATERIAL = 20000,
    USI_MESH_MAX_TEXTURE = 4096,
    USI_MESH_MAX_NODE = 100000,
    USI_MESH_MAX_MESH = 100000,  // also of the meshes of all nodes
};

typedef struct usi_mesh_head {
    uint32_t magic;
    uint32_t n_material, n_texture, n_node, n_node_mesh, n_mesh;
} usi_mesh_head;

// In place of everything else: why the file cannot be read.
typedef struct usi_mesh_refusal {
    uint32_t magic, padding;
    char why[240];
} usi_mesh_refusal;

typedef enum usi_mesh_image {
    USI_MESH_BASE_COLOUR,
    USI_MESH_DIFFUSE,
    USI_MESH_NORMALS,
    USI_MESH_ROUGHNESS,
    USI_MESH_EMISSIVE,
    USI_MESH_N_IMAGE
} usi_mesh_image;

typedef enum usi_mesh_colour {
    USI_MESH_RGBA_BASE,
    USI_MESH_RGBA_DIFFUSE,
    USI_MESH_RGBA_EMISSIVE,
    USI_MESH_N_RGBA
} usi_mesh_colour;

typedef enum usi_mesh_alpha {
    USI_MESH_OPAQUE,
    USI_MESH_BLEND,
    USI_MESH_MASK,
    USI_MESH_N_ALPHA
} usi_mesh_alpha;

typedef struct usi_mesh_material {
    char name[64];
    char image[USI_MESH_N_IMAGE][USI_MESH_NAME];  // as the file names it; "*3": texture 3; "": none
    float rgba[USI_MESH_N_RGBA][4];
    uint32_t has_rgba[USI_MESH_N_RGBA];
    float metallic, roughness, opacity, cutoff;  // NaN: not given
    uint32_t is_default_name, is_two_sided, alpha;
    uint32_t padding;
} usi_mesh_material;

// The upper three rows of its matrix, row-major. The parent stands before it; that of the root is itself.
typedef struct usi_mesh_node {
    uint32_t parent, n_mesh;
    float m[12];
} usi_mesh_node;

typedef struct usi_mesh_shape {
    uint32_t n_vertex, n_triangle, material;
    uint32_t has_normals, has_uv, has_colours;
} usi_mesh_shape;

// ---- after the check ----

typedef struct usi_mesh_part {
    uint32_t n_vertex, n_triangle, material;
    const float *position;   // 3 each
    const float *normal;     // 3 each; NULL: none
    const float *uv;         // 2 each; NULL: none
    const float *colour;     // 4 each; NULL: none
    const uint32_t *corner;  // 3 for each triangle, all below n_vertex
} usi_mesh_part;

typedef struct usi_mesh_answer {
    uint32_t n_material, n_texture, n_node, n_mesh;
    const usi_mesh_material *materials;
    const uint64_t *texture_length;
    const uint8_t *textures;  // one behind the other, each padded to 8 bytes
    const usi_mesh_node *nodes;
    const uint32_t *node_meshes;  // those of the first node, then those of the second..
    const usi_mesh_shape *shapes;
    const float *vertices;  // of the first mesh
} usi_mesh_answer;

// False, with a constant text, when the bytes are not an answer that can be used. `bytes` is 8-byte aligned
// and stays where it is; nothing is copied.
bool usi_mesh_answer_check(const void *bytes, size_t length, usi_mesh_answer *out, const char **why);

// The part behind `from`; `from` NULL: the first. False at the end.
typedef struct usi_mesh_cursor {
    uint32_t next;
    const uint8_t *at;
} usi_mesh_cursor;
bool usi_mesh_next_part(const usi_mesh_answer *answer, usi_mesh_cursor *cursor, usi_mesh_part *out);

static inline uint64_t usi_mesh_padded(uint64_t n) { return (n + 7) / 8 * 8; }
// Bytes of a mesh's arrays.
uint64_t usi_mesh_shape_size(const usi_mesh_shape *shape);

// ---- between the two processes ----

// Whether normals, texture coordinates, colours and materials are wanted, and whose.
enum usi_mesh_looks { USI_MESH_LOOKS_NONE, USI_MESH_LOOKS_PHONG, USI_MESH_LOOKS_GLTF };

// A request, with two descriptors: where the answer goes, and a socket on which files are asked for. The
// reply is the status of the process that served it, an int.
typedef struct usi_mesh_request {
    uint32_t steps;  // of Assimp, beside cutting faces into triangles
    uint32_t looks;  // usi_mesh_looks
    float crease_deg;
    uint32_t seconds;         // of the processor; USI_MESH_PATIENCE times as many of the clock
    uint64_t memory, answer;  // bytes that may be used and written
    char path[4096];
} usi_mesh_request;

// On the socket for files: a name, and as the reply a descriptor, or none.
typedef struct usi_mesh_file_request {
    char path[4096];
} usi_mesh_file_request;

#endif

// The files that the page fetches for shapes whose form does not fit into the world's JSON: meshes as binary
// glTF, heights as floats.
#ifndef USI_VIEW_ASSET_H
#define USI_VIEW_ASSET_H

#include "understudy/spec.h"
#include "view/view__bytes.h"
#include "world/revision.h"

// A text or file made of a revision, for the page. Bytes from the allocator: usi_release(allocator, bytes,
// length, 1). Any thread.
us_status usi_world_json(const usi_revision *revision, const us_allocator *allocator, char **out_bytes,
                         size_t *out_length);
// "SHAPE.glb" or "SHAPE.field", with "SHAPE.PART" for the part of a union. US_ERR_NAME when there is no such
// asset; US_ERR_MESH, US_ERR_LIMIT when its file cannot be read or is too large. err says why. Reads the mesh
// file: up to a second for a large one.
us_status usi_world_asset(const usi_revision *revision, const char *name, const us_allocator *allocator,
                          void **out_bytes, size_t *out_length, us_error *err);

typedef enum usi_asset_kind { USI_ASSET_NONE, USI_ASSET_GLB, USI_ASSET_FIELD } usi_asset_kind;

// What a shape has: GLB for a mesh with a file or triangles, and for a hull of a file whose points were not
// kept; FIELD for a height field.
usi_asset_kind usi_asset_of(const us_shape_def *shape);
const char *usi_asset_ending(usi_asset_kind kind);  // ".glb", ".field"; "" for none

// Numbers of a name with the letters of `between` between them: "2/4_5.field" with "/_" has three. False when
// it is otherwise; *out_ending is what follows them.
bool usi_asset_scan(const char *name, const char *between, int32_t *out, const char **out_ending);

enum { USI_ASSET_LIMIT = 256 * 1024 * 1024 };  // bytes of one asset: more than any page can show

// ---- glb.c: a binary glTF file with one mesh ----
//
// Arrays are put into the file's buffer first (usi_bytes_put on glb->data, aligned to four), then told of by
// offset.

// One image in the file's buffer; a material names it by index.
typedef struct usi_glb_image {
    size_t offset, length;
    const char *type;  // "image/png", "image/jpeg"
} usi_glb_image;

// Colours are linear. Images are -1 where there is none.
typedef struct usi_glb_material {
    char name[64];  // as the file has it; "shape" where the colour is the shape's
    float rgba[4], emissive[3];
    float metallic, roughness;
    float cutoff;  // below which alpha is nothing; 0: alpha blends where it is below 1
    bool is_two_sided, is_blended;
    int32_t image, emissive_image, normal_image, rough_image;  // rough: green is roughness, blue is metallic
} usi_glb_material;

// Triangles of one material. Offsets are SIZE_MAX for what there is not. Without normals each triangle is
// flat.
typedef struct usi_glb_part {
    int32_t material;
    uint32_t n_vertex, n_index;
    size_t position, normal, uv, colour;  // float[3], float[3], float[2], float[n_colour] per vertex
    int32_t n_colour;                     // 3, or 4 with alpha
    size_t index;                         // uint32_t
    float min[3], max[3];                 // of the positions
} usi_glb_part;

typedef struct usi_glb {
    usi_bytes data;
    usi_glb_image *images;
    usi_glb_material *materials;
    usi_glb_part *parts;
    int32_t n_image, cap_image, n_material, cap_material, n_part, cap_part;
} usi_glb;

void usi_glb_init(usi_glb *glb, const us_allocator *allocator);
void usi_glb_fini(usi_glb *glb);
usi_glb_material usi_glb_material_default(void);  // grey, rough, two-sided
int32_t usi_glb_add_image(usi_glb *glb, const void *bytes, size_t length,
                          const char *type);  // -1 without memory; the status is kept
int32_t usi_glb_add_material(usi_glb *glb, const usi_glb_material *material);
int32_t usi_glb_add_part(usi_glb *glb, const usi_glb_part *part);
us_status usi_glb_write(usi_glb *glb, char **out_bytes, size_t *out_length);  // as usi_bytes_take
float usi_linear_of_srgb(float x);

// A region's mask as it is sent: every so many of its samples, no more than USI_REGION_PIXELS each way. Those
// that are sent stand for squares of samples, the last of which may reach over the mask's edge.
enum { USI_REGION_PIXELS = 1024 };
typedef struct usi_region_grid {
    int32_t step, n_x, n_y;
} usi_region_grid;
usi_region_grid usi_region_grid_of(const us_region_def *region);

// ---- mesh_glb.c ----

// The file of a mesh, with its colours and textures, as usi_mesh_open places it: in the shape's frame,
// metres, z up.
us_status usi_mesh_glb(const us_shape_def *shape, const us_allocator *allocator, char **out_bytes,
                       size_t *out_length, us_error *err);

#endif

// From the shapes that people write to the shapes that collide.
#ifndef USI_SPEC_GEOMETRY_H
#define USI_SPEC_GEOMETRY_H

#include "base/memory.h"
#include "understudy/geom.h"
#include "understudy/spec.h"

// Hulls, meshes, height fields and lists of parts that shapes borrow. The same points give the same hull or
// mesh, however many shapes show it.
typedef struct usi_asset usi_asset;
typedef struct usi_assets {
    usi_arena arena;
    usi_asset *first;
} usi_assets;

void usi_assets_init(usi_assets *assets, const us_allocator *allocator);
void usi_assets_fini(usi_assets *assets);  // also after an initialisation by zeros

// The shape in its own frame: lengths become half lengths, points a hull, a mesh triangles (or a hull, where
// it moves). Errors say what is wrong with the shape, without a place. The shape's points and heights must
// stay until the last call.
us_status usi_geometry_make(usi_assets *assets, const us_shape_def *shape, bool is_moving, us_geom *out,
                            us_error *err);
// Convex parts of a moving mesh that stand off it by at most shape->part_error. *out_n is 0 for a mesh that
// is not closed. *out_error is above part_error where the number of parts did not suffice.
enum { USI_COMPONENT_LIMIT = 64 };
us_status usi_geometry_split(usi_assets *assets, const us_shape_def *shape, us_geom out[USI_COMPONENT_LIMIT],
                             int32_t *out_n, double *out_error, us_error *err);
// Another layer of the site that a height field is, paged as its heights are; belongs to the assets.
us_status usi_geometry_layer(usi_assets *assets, const us_shape_def *shape, const char *layer,
                             const us_height_field **out, us_error *err);
// False for a mesh that is known by name alone, or a union with such a part: nothing of it collides.
bool usi_geometry_has_data(const us_shape_def *shape);
// Mass properties at density 1 of any kind of shape; see us_geom_unit_inertia.
us_status usi_geometry_inertia(const us_shape_def *shape, const us_allocator *allocator, us_inertia *out,
                               us_error *err);

bool usi_geometry_is_round(const us_geom *geom);  // rolls
// Chains all numbers of a shape, data included, into a hash.
uint64_t usi_geometry_hash(uint64_t seed, const us_geom *geom);

#endif

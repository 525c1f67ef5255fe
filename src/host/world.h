// What a world is made of during one epoch: spec and model, never changed once made, shared by the threads of
// the host, the page and the snapshots.
#ifndef USI_WORLD_WORLD_H
#define USI_WORLD_WORLD_H

#include <stdatomic.h>

#include "base/memory.h"
#include "understudy/model.h"
#include "understudy/spec.h"

typedef struct usi_revision {
    _Atomic int32_t n_ref;
    us_allocator allocator;
    uint32_t epoch;
    us_spec *spec;
    us_model *model;
    char *edits;       // the commands that made it of the scene as loaded, one per line; ""
    const char *file;  // the scene's path; borrowed from the host, which outlives its worlds
} usi_revision;

// Takes the spec over, also when it fails, and compiles it. One reference.
us_status usi_revision_create(us_spec *spec, const us_allocator *allocator, uint32_t epoch, const char *edits,
                              const char *file, usi_revision **out, us_error *err);
// The same with a model that is compiled already; takes both over.
us_status usi_world_wrap(us_spec *spec, us_model *model, const us_allocator *allocator, uint32_t epoch,
                         const char *edits, const char *file, usi_revision **out, us_error *err);
usi_revision *usi_revision_ref(usi_revision *world);
void usi_revision_unref(usi_revision *world);  // NULL is allowed; the last one frees it

// A text or file made of it, for the page. Bytes from the allocator: usi_release(allocator, bytes, length,
// 1). Any thread.
us_status usi_world_json(const usi_revision *world, const us_allocator *allocator, char **out_bytes,
                         size_t *out_length);
// "SHAPE.glb" or "SHAPE.field", with "SHAPE.PART" for the part of a union. US_ERR_NAME when there is no such
// asset; US_ERR_MESH, US_ERR_LIMIT when its file cannot be read or is too large. err says why. Reads the mesh
// file: up to a second for a large one.
us_status usi_world_asset(const usi_revision *world, const char *name, const us_allocator *allocator,
                          void **out_bytes, size_t *out_length, us_error *err);

#endif

// What a world is made of between two edits: spec and model, never changed once made, shared by the threads
// of the world, the view and the snapshots.
#ifndef USI_WORLD_REVISION_H
#define USI_WORLD_REVISION_H

#include <stdatomic.h>

#include "base/memory.h"
#include "understudy/model.h"
#include "understudy/spec.h"

typedef struct usi_revision {
    _Atomic int32_t n_ref;
    us_allocator allocator;
    uint32_t number;  // us_world_get_revision
    us_spec *spec;
    us_model *model;
    char *edits;       // the commands that made it of the scene as loaded, one per line; ""
    const char *file;  // the scene's path; borrowed from the world, which outlives its revisions
} usi_revision;

// Takes the spec over, also when it fails, and compiles it. One reference.
us_status usi_revision_create(us_spec *spec, const us_allocator *allocator, uint32_t number,
                              const char *edits, const char *file, usi_revision **out, us_error *err);
// The same with a model that is compiled already; takes both over.
us_status usi_revision_wrap(us_spec *spec, us_model *model, const us_allocator *allocator, uint32_t number,
                            const char *edits, const char *file, usi_revision **out, us_error *err);
usi_revision *usi_revision_ref(usi_revision *revision);
void usi_revision_unref(usi_revision *revision);  // NULL is allowed; the last one frees it

#endif

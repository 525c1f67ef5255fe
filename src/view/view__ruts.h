// Ruts on the page: a copy of every tile of a patch of soil that something has touched, as it was when it was
// last looked at.
//
//   stepping thread                                  server's thread
//   usi_ruts_take: a few tiles that changed -------> usi_ruts_put: those that a client has not got yet,
//   oldest first
//
// The copies lie in a list in the order in which they were taken; a tile that changes again goes to its end.
// So a client needs to remember one number, whoever comes later gets all tiles, and one who is slow gets each
// tile as it is when there is room for it, not all that it went through.
//
// One lock guards everything. The stepping thread only tries it: when the server has it, the tiles are taken
// with the next frame.
#ifndef USI_VIEW_RUTS_H
#define USI_VIEW_RUTS_H

#include <pthread.h>

#include "understudy/sim.h"
#include "view/view__bytes.h"
#include "wire/view.h"
#include "world/revision.h"

enum {
    USI_RUTS_DEFORMABLES = 16,      // patches that are shown
    USI_RUTS_TILES = 8192,          // touched tiles that are shown: 64 MB
    USI_RUTS_AT_ONCE = 6,           // tiles that are taken with a frame: some 10 us each
    USI_RUTS_IN_FRAME = 8,          // tiles in one message
    USI_RUTS_DEFORMABLE_SIDE = 67,  // columns of the untouched ground of a tile as it is sent: those up to
                                    // the next tile, and one more on each side
    USI_RUTS_PIXELS = 64,           // of a tile's photograph, each way
    USI_RUTS_CELLS = 1 << 20        // samples of ground that one tile may lie on
};

typedef struct usi_rut {
    int32_t patch, u, v;
    uint32_t version;
    uint64_t stamp;
    int32_t older, newer;  // -1: none
    float unit;            // m
    int16_t *change;
} usi_rut;

typedef struct usi_deformable_view {
    us_deformable_info info;
    int32_t *slot;  // of each touched tile: where its copy is; -1: none
    int32_t n, cap;
    // Of the stepping thread: where to look next, and what the patch was when all of it had been looked at.
    int32_t next;
    bool is_behind;
    uint64_t digest;
} usi_deformable_view;

typedef struct usi_ruts {
    us_allocator allocator;
    pthread_mutex_t lock;
    uint32_t revision;  // 0: none was taken yet
    uint64_t jump;
    int32_t n_deformable;
    usi_deformable_view patch[USI_RUTS_DEFORMABLES];
    int32_t n, cap;
    usi_rut *rut;
    int32_t oldest, newest;
    uint64_t stamp;
    double due;  // s, monotonic
    float scratch[US_DEFORMABLE_TILE * US_DEFORMABLE_TILE];
} usi_ruts;

void usi_ruts_init(usi_ruts *ruts, const us_allocator *allocator);
void usi_ruts_fini(usi_ruts *ruts);

// Stepping thread, between two steps: copies tiles that have changed. `jump` is another number when time has
// jumped: then all are looked at again. What does not fit, or has no memory, is not shown.
void usi_ruts_take(usi_ruts *ruts, const us_sim *sim, uint32_t revision, uint64_t jump, double now);

// Server's thread. Tiles of the revision that were taken after *stamp, oldest first, as entries of a frame at
// `at`; how many, at most USI_RUTS_IN_FRAME. *stamp becomes that of the last one.
int32_t usi_ruts_put(usi_ruts *ruts, uint32_t revision, uint64_t *stamp, uint8_t *at);
// The patches of the revision, for a text; false when none was taken yet.
bool usi_ruts_get_deformables(usi_ruts *ruts, uint32_t revision, int32_t *out_n,
                              us_deformable_info out[USI_RUTS_DEFORMABLES]);
// "B/U_V.photo": its photograph, USI_RUTS_PIXELS^2 pixels r, g, b, a. "B/U_V.field": the ground under a tile
// as it was, USI_RUTS_DEFORMABLE_SIDE^2 heights in the patch's frame from the column before its first on;
// those beyond the patch's edge are the edge's. As usi_world_asset.
us_status usi_ruts_ground(usi_ruts *ruts, const usi_revision *revision, const char *name,
                          const us_allocator *allocator, void **out_bytes, size_t *out_length, us_error *err);

#endif

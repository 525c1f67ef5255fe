// A bed of loose soil: a grid of columns that flows where it is too steep, keeps what presses it, and never
// loses a grain.
//
// Heights are whole micrometres against the ground as it was. What leaves one column enters another, as whole
// numbers: the volume is exactly the same for ever, and the same everywhere. Columns lie in tiles of 64
// by 64. A tile takes memory from the moment on at which something happens in it, and the grid may be as
// large as one likes:
//
//     slot, of each tile of the grid       tile, in the order in which they were touched
//     0 0 0 0 0 0 0 0                      0  all zero for ever: what an untouched column reads
//     0 0 2 1 0 0 0 0                      1  64 x 64 columns: changes, how deep they were pressed, flags
//     0 0 3 0 0 0 0 0                      2  ...
//
// A column is known by the place of its tile in that order and its own in the tile: 32 bits, without regard
// to how large the grid is.
//
// A bed is plain data in memory of the caller, and all that its future depends on lies in it. `digest`
// changes with every change and depends on the heights alone, not on the way there.
#ifndef USI_SOIL_DEFORMABLE_H
#define USI_SOIL_DEFORMABLE_H

#include "understudy/soil.h"

#define USI_DEFORMABLE_UNIT 1e-6          // m
#define USI_DEFORMABLE_PRESSED_UNIT 1e-5  // m
enum {
    USI_DEFORMABLE_TILE = 64,
    USI_DEFORMABLE_TILE_BITS = 12,
    USI_DEFORMABLE_COLUMNS = 1 << USI_DEFORMABLE_TILE_BITS
};

typedef struct usi_deformable_law {
    double repose, critical;  // rad: slopes stop flowing at the first and begin at the second
    double cohesive_step;     // m: a step that stands by cohesion, on top of the slope
    double curvature;         // 1/m, at most; 0: no limit
    double relaxation;        // share of half the excess that a pair exchanges at once; default 0.5
    bool is_firm;             // only what lies on the ground flows, not the ground itself
    // The law of a column, where it is another at each place: then repose is the flattest and cohesive_step
    // and curvature the least that there are anywhere, so that a column is asked about only where it is
    // steeper than that. NULL: the law is the same everywhere.
    struct usi_deformable_law (*at)(const void *context, int32_t x, int32_t y);
    const void *context;
} usi_deformable_law;

// 28 KB: seven pages.
typedef struct usi_deformable_tile {
    int32_t change[USI_DEFORMABLE_COLUMNS];    // units
    uint16_t pressed[USI_DEFORMABLE_COLUMNS];  // USI_DEFORMABLE_PRESSED_UNIT: how deep it was pressed, below
                                               // the fresh surface
    uint8_t flag[USI_DEFORMABLE_COLUMNS];
} usi_deformable_tile;

typedef struct usi_deformable_tile_info {
    uint32_t place;    // of the tile in the grid: v * n_tile_x + u
    uint32_t version;  // another one with every change; 0: nothing has changed
    uint32_t n_busy;   // columns that may flow, or would if nothing stood on them
} usi_deformable_tile_info;

typedef struct usi_deformable {
    int32_t n_x, n_y;
    double spacing;  // m
    double depth;    // m of soil above the bedrock, where it is untouched
    // The ground as it was at a column, in units.
    int32_t (*ground)(const void *context, int32_t x, int32_t y);
    const void *ground_context;
    const void *shape;  // whose ground it is, for the caller
    int32_t n_tile_x;   // of the grid
    uint32_t *slot;
    usi_deformable_tile *tile;
    usi_deformable_tile_info *spot;  // of each touched tile
    uint32_t n_tile, max_tile;  // touched; the caller has memory for one more than max_tile, and sees to it
                                // that they do not run out
    uint32_t version;           // the last one that was given
    bool has_stirred;           // a tile without busy columns has got some since the caller set this to false
    // Columns that may flow, in the order in which they will be looked at: a ring. And those that wait until
    // a body has left them.
    uint32_t *ring, *wait;
    uint32_t cap, head, n, n_wait;  // the capacity, of each, is a power of two
    uint32_t turn;                  // which neighbour is looked at first
    uint64_t digest;
    uint64_t pressed_digest, flag_digest;  // the same of what was pressed, and of the flags that last
    int32_t lowest, highest;               // units: the greatest changes there have been
    int64_t n_lost;  // columns that found no room in the ring: they are found again by usi_deformable_requeue
} usi_deformable;

enum {
    USI_DEFORMABLE_ACTIVE = 1,   // in the ring, waiting or lost
    USI_DEFORMABLE_FLOWING = 2,  // flowed when last looked at: flows on down to the angle of repose
    USI_DEFORMABLE_COVERED = 4,  // a body stands here: nothing flows in or out
    USI_DEFORMABLE_OVERFLOW = 8,
};

usi_deformable_law usi_deformable_law_of(const us_soil *soil, double spacing, double gravity);

// The column at a place of the grid. Of an untouched tile it can be read and not written.
static inline uint32_t usi_deformable_column(const usi_deformable *bed, int32_t x, int32_t y) {
    size_t place = (size_t)(y >> 6) * (size_t)bed->n_tile_x + (size_t)(x >> 6);
    return bed->slot[place] << USI_DEFORMABLE_TILE_BITS | (uint32_t)(y & 63) << 6 | (uint32_t)(x & 63);
}
static inline int32_t usi_deformable_change(const usi_deformable *bed, uint32_t at) {
    return bed->tile[at >> USI_DEFORMABLE_TILE_BITS].change[at % USI_DEFORMABLE_COLUMNS];
}
static inline uint16_t usi_deformable_pressed(const usi_deformable *bed, uint32_t at) {
    return bed->tile[at >> USI_DEFORMABLE_TILE_BITS].pressed[at % USI_DEFORMABLE_COLUMNS];
}
static inline uint8_t usi_deformable_flag(const usi_deformable *bed, uint32_t at) {
    return bed->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS];
}
// Height of a column now, m.
double usi_deformable_height(const usi_deformable *bed, int32_t x, int32_t y);
// The column at a place, to be written: its tile is touched from now on.
uint32_t usi_deformable_column_to_write(usi_deformable *bed, int32_t x, int32_t y);
// Makes tile `place` of the grid the next one that is touched, and gives its number. 0 when there is no room.
uint32_t usi_deformable_open_tile(usi_deformable *bed, uint32_t place);
// A body stands on a column; or no longer.
static inline void usi_deformable_cover(usi_deformable *bed, int32_t x, int32_t y) {
    uint32_t at = usi_deformable_column(bed, x, y);
    if (at < USI_DEFORMABLE_COLUMNS) at = usi_deformable_column_to_write(bed, x, y);
    if (at >= USI_DEFORMABLE_COLUMNS)
        bed->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS] |= USI_DEFORMABLE_COVERED;
}
static inline void usi_deformable_uncover(usi_deformable *bed, int32_t x, int32_t y) {
    uint32_t at = usi_deformable_column(bed, x, y);
    if (at >= USI_DEFORMABLE_COLUMNS)
        bed->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS] &=
            (uint8_t)~USI_DEFORMABLE_COVERED;
}
// Adds soil to a column, or takes it: units. It becomes active, and so do its neighbours.
void usi_deformable_add(usi_deformable *bed, int32_t x, int32_t y, int32_t units);
void usi_deformable_activate(usi_deformable *bed, int32_t x, int32_t y);
// Looks at columns that may flow, at most so many; how many it looked at. Nothing to do costs nothing. With
// no more than there are in the ring, it reads the ground of those and of their neighbours, and no other.
int64_t usi_deformable_settle(usi_deformable *bed, const usi_deformable_law *law, int64_t most);
// Presses the columns in a rectangle to a given height (units; INT32_MAX: not this one): `to` has (x1 - x0) *
// (y1 - y0) numbers, row by row. A share of what was above is lost to compaction, the rest comes up around
// it. The volume, in units, that went and that came up.
typedef struct usi_deformable_pressed_volume {
    int64_t n_pressed, n_risen;
} usi_deformable_pressed_volume;
usi_deformable_pressed_volume usi_deformable_press(usi_deformable *bed, int32_t x0, int32_t y0, int32_t x1,
                                                   int32_t y1, const int32_t *to, double compaction);
// Puts lost columns back into the ring, but for those that are covered.
void usi_deformable_requeue(usi_deformable *bed);
// The digest from the heights, for tests and after a bed was filled by hand.
uint64_t usi_deformable_digest(const usi_deformable *bed);

#endif

// Deformable terrain: a grid of soil columns that flows where it is too steep, keeps ruts and footprints, and
// conserves volume exactly.
//
// Heights are whole micrometres against the original ground. What leaves one column enters another, as whole
// numbers: the volume is exactly conserved. Columns lie in tiles of 64 by 64. A tile takes memory from the
// moment on at which a column of it changes, so the grid may be of any size:
//
//     slot, of each tile of the grid       tile, in the order in which they were first written
//     0 0 0 0 0 0 0 0                      0  all zero for ever: read for untouched columns
//     0 0 2 1 0 0 0 0                      1  64 x 64 columns: changes, how deep they were pressed, flags
//     0 0 3 0 0 0 0 0                      2  ...
//
// A column's index is that of its tile in this order and its own in the tile: 32 bits, whatever the size of
// the grid.
//
// The terrain is plain data in the caller's memory, and all that its future depends on lies in it. `digest`
// is a function of the heights alone, not of their history.
#ifndef USI_SOIL_DEFORMABLE_H
#define USI_SOIL_DEFORMABLE_H

#include "understudy/soil.h"

#define USI_DEFORMABLE_UNIT 1e-6          // m
#define USI_DEFORMABLE_PRESSED_UNIT 1e-5  // m
enum {
    USI_DEFORMABLE_TILE = 64,
    USI_DEFORMABLE_TILE_BITS = 12,
    USI_DEFORMABLE_COLUMNS = 1 << USI_DEFORMABLE_TILE_BITS,
    USI_DEFORMABLE_OWN = 64,
    USI_DEFORMABLE_REACH = 64,  // columns: a face that cohesion holds is followed so far, up and down
    // Units, about a kilometre, that a column may rise: what flows and is thrown fits into its number
    // besides.
    USI_DEFORMABLE_MAX_CHANGE = 1 << 30,
};

typedef struct usi_deformable_law {
    double repose, critical;  // rad: slopes stop flowing at the first and begin at the second
    double friction;          // rad: angle of internal friction
    double cohesive_length;   // m: 4 c / (rho g); what has cohesion stands up to a height, see deformable.c
    double curvature;         // 1/m, maximum; 0: no limit
    double relaxation;        // fraction of half the excess that an edge exchanges at once; default 0.9
    bool is_firm;             // only soil deposited on the ground flows, not the ground itself
    // The law of a column, where it varies over the ground: then repose and curvature above
    // are the minima over all columns, so that `at` is called only where a column is steeper than these.
    // NULL: the law is the same everywhere.
    struct usi_deformable_law (*at)(const void *context, int32_t x, int32_t y);
    const void *context;
} usi_deformable_law;

// 28 KB: seven pages.
typedef struct usi_deformable_tile {
    int32_t change[USI_DEFORMABLE_COLUMNS];  // units, of the height against the original ground
    // USI_DEFORMABLE_PRESSED_UNIT: how deep the column was pressed, below the fresh surface.
    uint16_t pressed[USI_DEFORMABLE_COLUMNS];
    uint8_t flag[USI_DEFORMABLE_COLUMNS];
} usi_deformable_tile;

typedef struct usi_deformable_tile_info {
    uint32_t place;    // of the tile in the grid: v * n_tile_x + u
    uint32_t version;  // a new one with every change; 0: nothing has changed
    uint32_t n_busy;   // columns that may flow, or would if no body covered them
} usi_deformable_tile_info;

typedef struct usi_deformable {
    int32_t n_x, n_y;
    double spacing;  // m
    double depth;    // m of soil above the bedrock, where it is untouched
    // Original height of the ground at a column, in units.
    int32_t (*ground)(const void *context, int32_t x, int32_t y);
    const void *ground_context;
    const void *shape;  // the caller's, the shape of the ground

    // Tiles.
    int32_t n_tile_x;                // of the grid
    uint32_t *slot;                  // of each tile of the grid: its index in `tile`; 0: untouched
    usi_deformable_tile *tile;       // in the order in which they were touched
    usi_deformable_tile_info *spot;  // of each touched tile
    // What a ground model of somebody else keeps: n_own numbers of the ground, and of each column n_extra,
    // which lie tile by tile like the tiles.
    double own[USI_DEFORMABLE_OWN];
    double *extra;
    int32_t n_own, n_extra;
    bool is_flowing;  // the caller's: what that changes flows
    uint64_t extra_digest;
    // Touched tiles. The caller has memory for max_tile + 1, and sees to it that they do not run out.
    uint32_t n_tile, max_tile;
    uint32_t version;  // the last one that was given to a tile
    bool has_stirred;  // a tile without busy columns has got some since the caller set this to false
    bool is_held;      // the caller's: nothing flows for the time being

    // Columns that may flow: a queue (ring buffer) in the order of their visits, and the columns that wait
    // until a body has left them. The capacity, of each, is a power of two.
    uint32_t *ring, *wait;
    uint32_t cap, head, n, n_wait;
    uint32_t turn;  // which neighbour is visited first, round robin

    uint64_t digest;
    uint64_t pressed_digest, flag_digest;  // the same of the pressed depths, and of the flags that persist
    int32_t lowest, highest;               // units: extremes of all changes so far
    int64_t n_lost;  // columns that did not fit into the queue; found again by usi_deformable_requeue
} usi_deformable;

enum {
    USI_DEFORMABLE_ACTIVE = 1,    // in the queue, waiting, or overflowed
    USI_DEFORMABLE_FLOWING = 2,   // flowed when last visited: flows on down to the angle of repose
    USI_DEFORMABLE_COVERED = 4,   // a body is on it: nothing flows in
    USI_DEFORMABLE_OVERFLOW = 8,  // did not fit into the queue
    USI_DEFORMABLE_PRINT = 32,    // in the print that is being made, see usi_deformable_press_column
    USI_DEFORMABLE_BROKEN = 16,   // a bank of it has given way: no cohesion until it is pressed
};

usi_deformable_law usi_deformable_law_of(const us_soil *soil, double spacing, double gravity);

// Index of a column of the grid, for reading only.
static inline uint32_t usi_deformable_column(const usi_deformable *patch, int32_t x, int32_t y) {
    size_t place = (size_t)(y >> 6) * (size_t)patch->n_tile_x + (size_t)(x >> 6);
    return patch->slot[place] << USI_DEFORMABLE_TILE_BITS | (uint32_t)(y & 63) << 6 | (uint32_t)(x & 63);
}
// Place of a column, m from the middle of the patch.
static inline double usi_deformable_x(const usi_deformable *patch, int32_t x) {
    return (x - 0.5 * (patch->n_x - 1)) * patch->spacing;
}
static inline double usi_deformable_y(const usi_deformable *patch, int32_t y) {
    return (y - 0.5 * (patch->n_y - 1)) * patch->spacing;
}
static inline int32_t usi_deformable_change(const usi_deformable *patch, uint32_t at) {
    return patch->tile[at >> USI_DEFORMABLE_TILE_BITS].change[at % USI_DEFORMABLE_COLUMNS];
}
static inline uint16_t usi_deformable_pressed(const usi_deformable *patch, uint32_t at) {
    return patch->tile[at >> USI_DEFORMABLE_TILE_BITS].pressed[at % USI_DEFORMABLE_COLUMNS];
}
static inline uint8_t usi_deformable_flag(const usi_deformable *patch, uint32_t at) {
    return patch->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS];
}
// Present height of a column, m.
double usi_deformable_height(const usi_deformable *patch, int32_t x, int32_t y);
// Index of a column for writing: its tile is touched from now on.
uint32_t usi_deformable_column_to_write(usi_deformable *patch, int32_t x, int32_t y);
// Touches tile `place` of the grid, and returns its index. 0 when there is no room.
uint32_t usi_deformable_open_tile(usi_deformable *patch, uint32_t place);
// Whether a column may have this change, units: not below the bedrock, and not beyond the highest.
bool usi_deformable_may_be(const usi_deformable *patch, int64_t change);
// Sets the change of a column, units: without activating it unless may_flow. False: it may not be, or there
// is no room. And the numbers of its ground model, of which a column that may not be written has zeros.
bool usi_deformable_set(usi_deformable *patch, int32_t x, int32_t y, int64_t change, bool may_flow);
bool usi_deformable_set_extra(usi_deformable *patch, int32_t x, int32_t y, const double *numbers);
static inline double *usi_deformable_extra(const usi_deformable *patch, uint32_t at) {
    return patch->extra + (size_t)at * (size_t)patch->n_extra;
}
// The digest of the numbers computed from them all, as usi_deformable_digest.
uint64_t usi_deformable_extra_digest(const usi_deformable *patch);
// Marks that a body covers a column, or no longer does.
static inline void usi_deformable_cover(usi_deformable *patch, int32_t x, int32_t y) {
    uint32_t at = usi_deformable_column(patch, x, y);
    if (at < USI_DEFORMABLE_COLUMNS) at = usi_deformable_column_to_write(patch, x, y);
    if (at >= USI_DEFORMABLE_COLUMNS)
        patch->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS] |=
            USI_DEFORMABLE_COVERED;
}
static inline void usi_deformable_uncover(usi_deformable *patch, int32_t x, int32_t y) {
    uint32_t at = usi_deformable_column(patch, x, y);
    if (at >= USI_DEFORMABLE_COLUMNS)
        patch->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS] &=
            (uint8_t)~USI_DEFORMABLE_COVERED;
}
// Adds soil to a column, or takes it: units. Activates the column and its neighbours.
void usi_deformable_add(usi_deformable *patch, int32_t x, int32_t y, int64_t units);
void usi_deformable_activate(usi_deformable *patch, int32_t x, int32_t y);
// Visits columns that may flow, max_visit at most, and returns how many. Costs nothing where the queue is
// empty. With max_visit no more than the queue's length, it reads the ground of those columns and of their
// neighbours, and of soil with cohesion that up to USI_DEFORMABLE_REACH columns away.
int64_t usi_deformable_settle(usi_deformable *patch, const usi_deformable_law *law, int64_t max_visit);

// Presses a print of any size: column after column to a given height (units), then its end. Of the displaced
// volume a fraction is lost to compaction, the rest rises around the print. `area` holds all its columns.
typedef struct usi_deformable_area {
    int32_t x0, y0, x1, y1;  // columns, to and without the last
} usi_deformable_area;
typedef struct usi_deformable_pressed_volume {
    int64_t n_pressed, n_risen;  // units
} usi_deformable_pressed_volume;
void usi_deformable_press_column(usi_deformable *patch, int32_t x, int32_t y, int32_t goal,
                                 usi_deformable_pressed_volume *io);
void usi_deformable_press_end(usi_deformable *patch, usi_deformable_area area, double compaction,
                              usi_deformable_pressed_volume *io);
// Both for a rectangle of heights, (x1 - x0) * (y1 - y0) of them, row by row (INT32_MAX: not this one).
usi_deformable_pressed_volume usi_deformable_press(usi_deformable *patch, int32_t x0, int32_t y0, int32_t x1,
                                                   int32_t y1, const int32_t *to, double compaction);

// Puts overflowed columns back into the queue, but for those that are covered.
void usi_deformable_requeue(usi_deformable *patch);
// The digest computed from the heights, for tests and after tiles were filled directly.
uint64_t usi_deformable_digest(const usi_deformable *patch);

#endif

// A bed of loose soil: a grid of columns that flows where it is too steep, keeps what presses it, and never loses a grain.
//
// Heights are whole micrometres against the ground as it was. What leaves one column enters another, as whole numbers: the volume is exactly the same
// for ever, and the same everywhere. Untouched columns are 0 and their memory is never looked at: a bed of 15 000 x 15 000 columns takes
// memory only where something happened, when it comes from pages that the system clears on demand.
//
// A bed is plain data in memory of the caller, and all that its future depends on lies in it. `digest` changes with every change and depends on the
// heights alone, not on the way there.
#ifndef USI_SOIL_BED_H
#define USI_SOIL_BED_H

#include "understudy/soil.h"

#define USI_BED_UNIT 1e-6          // m
#define USI_BED_PRESSED_UNIT 1e-5  // m
enum { USI_BED_TILE = 64 };

typedef struct usi_bed_law {
    double repose, critical;  // rad: slopes stop flowing at the first and begin at the second
    double cohesive_step;     // m: a step that stands by cohesion, on top of the slope
    double curvature;         // 1/m, at most; 0: no limit
    double relaxation;        // share of half the excess that a pair exchanges at once; default 0.5
} usi_bed_law;

typedef struct usi_bed {
    int32_t n_x, n_y;
    double spacing;  // m
    double depth;    // m of soil above the bedrock, where it is untouched
    // The ground as it was at a column, in units.
    int32_t (*ground)(const void *context, int32_t x, int32_t y);
    const void *ground_context;
    const void *shape;  // whose ground it is, for the caller
    int32_t *change;    // units
    uint16_t *pressed;  // USI_BED_PRESSED_UNIT: how deep it was pressed, below the fresh surface
    uint8_t *flag;
    // Columns that may flow, in the order in which they will be looked at: a ring.
    uint32_t *ring;
    uint32_t cap, head, n;  // the capacity is a power of two
    uint32_t turn;          // which neighbour is looked at first
    uint64_t digest;
    uint64_t pressed_digest;  // the same of what was pressed
    int32_t lowest, highest;  // units: the greatest changes there have been
    // Grows with every change in a tile of USI_BED_TILE by USI_BED_TILE columns; NULL: nobody asks.
    uint32_t *version;
    int32_t n_tile_x;
    int64_t n_lost;  // columns that found no room in the ring: they keep their flag, and are found again by usi_bed_gather
} usi_bed;

enum {
    USI_BED_ACTIVE = 1,   // in the ring, or lost
    USI_BED_FLOWING = 2,  // flowed when last looked at: flows on down to the angle of repose
    USI_BED_COVERED = 4,  // a body stands here: nothing flows in or out
};

usi_bed_law usi_bed_law_of(const us_soil *soil, double spacing, double gravity);

static inline size_t usi_bed_at(const usi_bed *bed, int32_t x, int32_t y) { return (size_t)y * (size_t)bed->n_x + (size_t)x; }
// Height of a column now, m.
double usi_bed_height(const usi_bed *bed, int32_t x, int32_t y);
// Adds soil to a column, or takes it: units. It becomes active, and so do its neighbours.
void usi_bed_add(usi_bed *bed, int32_t x, int32_t y, int32_t units);
void usi_bed_wake(usi_bed *bed, int32_t x, int32_t y);
// Looks at columns that may flow, at most so many; how many it looked at. Nothing to do costs nothing.
int64_t usi_bed_settle(usi_bed *bed, const usi_bed_law *law, int64_t most);
// Presses the columns in a rectangle to a given height (units; INT32_MAX: not this one): `to` has (x1 - x0) * (y1 - y0) numbers, row by row. A share
// of what was above is lost to compaction, the rest comes up around it. The volume, in units, that went and that came up.
typedef struct usi_bed_pressing {
    int64_t n_pressed, n_risen;
} usi_bed_pressing;
usi_bed_pressing usi_bed_press(usi_bed *bed, int32_t x0, int32_t y0, int32_t x1, int32_t y1, const int32_t *to, double compaction);
// Puts lost columns back into the ring.
void usi_bed_gather(usi_bed *bed);
// The digest from the heights, for tests and after a bed was filled by hand.
uint64_t usi_bed_digest(const usi_bed *bed);

#endif

// The cellular automaton of loose soil (after Pla-Castells et al., and the virtual testbed's soil).
//
// Two neighbouring columns whose difference in height is more than the slope allows exchange a part of the excess. Eight neighbours: with four, a
// heap would be a pyramid. Exchange takes effect at once, pair by pair, in the order in which columns became active; the neighbour that is looked at
// first goes round, so that no direction is preferred. That takes a hundredth of the visits that sweeps over the whole grid would, and a grid at rest
// takes none.
#include "soil/bed.h"

#include <limits.h>
#include <string.h>

enum { N_NEIGHBOUR = 8 };
static const int8_t step_x[N_NEIGHBOUR] = {1, 0, -1, 0, 1, -1, -1, 1};
static const int8_t step_y[N_NEIGHBOUR] = {0, 1, 0, -1, 1, 1, -1, -1};

usi_bed_law usi_bed_law_of(const us_soil *soil, double spacing, double gravity) {
    // A vertical step of 2 c / (rho g) stands by cohesion alone, with half of what the theory of cuts allows. On a grid finer than the step, cohesion
    // would keep every column; at most the slope over one spacing is given to it.
    double step = gravity > 0 ? 2 * soil->cohesion / (soil->density * gravity) : 0, most = spacing * tan(soil->repose_angle);
    return (usi_bed_law){.repose = soil->repose_angle,
                         .critical = soil->critical_angle,
                         .cohesive_step = fmin(step, most),
                         .curvature = 2 * tan(soil->repose_angle) / (3 * spacing),
                         .relaxation = 0.5};
}

// ---------------------------------------------------------------- columns

// What a column adds to the digest; nothing where it is untouched.
static uint64_t mixed(size_t at, int32_t change) { return change == 0 ? 0 : us_random_bits((uint64_t)at, 0x626564, (uint64_t)(uint32_t)change); }

static void set_change(usi_bed *bed, size_t at, int32_t change) {
    bed->digest += mixed(at, change) - mixed(at, bed->change[at]);
    bed->change[at] = change;
    if (change < bed->lowest) bed->lowest = change;
    if (change > bed->highest) bed->highest = change;
    if (!bed->version) return;
    size_t y = at / (size_t)bed->n_x, x = at % (size_t)bed->n_x;
    uint32_t *version = &bed->version[y / USI_BED_TILE * (size_t)bed->n_tile_x + x / USI_BED_TILE];
    // 0 means untouched for ever.
    if (++*version == 0) *version = 1;
}

static void set_pressed(usi_bed *bed, size_t at, uint16_t pressed) {
    bed->pressed_digest += mixed(at, pressed) - mixed(at, bed->pressed[at]);
    bed->pressed[at] = pressed;
}

static int64_t units_of(const usi_bed *bed, int32_t x, int32_t y) {
    return (int64_t)bed->ground(bed->ground_context, x, y) + bed->change[usi_bed_at(bed, x, y)];
}

double usi_bed_height(const usi_bed *bed, int32_t x, int32_t y) { return USI_BED_UNIT * (double)units_of(bed, x, y); }

uint64_t usi_bed_digest(const usi_bed *bed) {
    uint64_t digest = 0;
    for (size_t i = 0; i < (size_t)bed->n_x * (size_t)bed->n_y; i++) {
        digest += mixed(i, bed->change[i]);
    }
    return digest;
}

// ---------------------------------------------------------------- the ring

static void push(usi_bed *bed, size_t at) {
    if (bed->flag[at] & USI_BED_ACTIVE) return;
    bed->flag[at] |= USI_BED_ACTIVE;
    if (bed->n == bed->cap) {
        bed->n_lost++;
        return;
    }
    bed->ring[(bed->head + bed->n++) & (bed->cap - 1)] = (uint32_t)at;
}

void usi_bed_wake(usi_bed *bed, int32_t x, int32_t y) {
    for (int32_t j = y - 1; j <= y + 1; j++) {
        for (int32_t i = x - 1; i <= x + 1; i++) {
            if (i >= 0 && i < bed->n_x && j >= 0 && j < bed->n_y) push(bed, usi_bed_at(bed, i, j));
        }
    }
}

void usi_bed_gather(usi_bed *bed) {
    if (bed->n_lost == 0) return;
    // Those in the ring are marked first, so that nobody comes in twice.
    for (uint32_t i = 0; i < bed->n; i++) bed->flag[bed->ring[(bed->head + i) & (bed->cap - 1)]] &= (uint8_t)~USI_BED_ACTIVE;
    uint32_t n_before = bed->n;
    bed->n_lost = 0;
    for (size_t at = 0; at < (size_t)bed->n_x * (size_t)bed->n_y; at++) {
        if (!(bed->flag[at] & USI_BED_ACTIVE)) continue;
        if (bed->n == bed->cap) {
            bed->n_lost++;
            continue;
        }
        bed->ring[(bed->head + bed->n++) & (bed->cap - 1)] = (uint32_t)at;
    }
    for (uint32_t i = 0; i < n_before; i++) bed->flag[bed->ring[(bed->head + i) & (bed->cap - 1)]] |= USI_BED_ACTIVE;
}

void usi_bed_add(usi_bed *bed, int32_t x, int32_t y, int32_t units) {
    size_t at = usi_bed_at(bed, x, y);
    set_change(bed, at, bed->change[at] + units);
    usi_bed_wake(bed, x, y);
}

// ---------------------------------------------------------------- flow

// What differences are allowed, in units: along an axis and along a diagonal.
typedef struct limits {
    int64_t stop[2], begin[2];
    double share;
    int64_t bend[2];  // of h_m - 2 h + h_p
    int64_t floor;    // a column's change is never below
} limits;

static limits limits_of(const usi_bed *bed, const usi_bed_law *law) {
    limits l = {.share = 0.5 * law->relaxation, .floor = -(int64_t)(bed->depth / USI_BED_UNIT)};
    for (int d = 0; d < 2; d++) {
        double way = bed->spacing * (d == 0 ? 1 : M_SQRT2);
        l.stop[d] = (int64_t)((way * tan(law->repose) + law->cohesive_step) / USI_BED_UNIT);
        l.begin[d] = (int64_t)((way * tan(law->critical) + law->cohesive_step) / USI_BED_UNIT);
        l.bend[d] = law->curvature > 0 ? (int64_t)(way * way * law->curvature / USI_BED_UNIT) : INT64_MAX;
    }
    return l;
}

// Moves soil from one column to another, as much as is there. False: none.
static bool move(usi_bed *bed, const limits *l, size_t from, size_t to, int64_t units) {
    if ((bed->flag[from] | bed->flag[to]) & USI_BED_COVERED) return false;
    int64_t there = bed->change[from] - l->floor;
    if (units > there) units = there;
    if (units > INT_MAX) units = INT_MAX;
    if (units <= 0) return false;
    set_change(bed, from, bed->change[from] - (int32_t)units);
    set_change(bed, to, bed->change[to] + (int32_t)units);
    return true;
}

// One column and its pairs. Whether anything moved.
static bool visit(usi_bed *bed, const limits *l, int32_t x, int32_t y) {
    size_t here = usi_bed_at(bed, x, y);
    bool has_moved = false, was_flowing = bed->flag[here] & USI_BED_FLOWING;
    uint32_t first = bed->turn++;
    int64_t height = units_of(bed, x, y);
    for (uint32_t k = 0; k < N_NEIGHBOUR; k++) {
        uint32_t d = (first + k) % N_NEIGHBOUR;
        int32_t i = x + step_x[d], j = y + step_y[d];
        if (i < 0 || i >= bed->n_x || j < 0 || j >= bed->n_y) continue;
        size_t there = usi_bed_at(bed, i, j);
        int64_t other = units_of(bed, i, j), difference = height > other ? height - other : other - height;
        bool is_flowing = was_flowing || (bed->flag[there] & USI_BED_FLOWING), is_diagonal = d >= 4;
        if (difference <= (is_flowing ? l->stop : l->begin)[is_diagonal]) continue;
        int64_t units = (int64_t)(l->share * (double)(difference - l->stop[is_diagonal]));
        size_t from = height > other ? here : there, to = height > other ? there : here;
        if (!move(bed, l, from, to, units)) continue;
        bed->flag[there] |= USI_BED_FLOWING;
        has_moved = true;
        height = units_of(bed, x, y);
    }
    // Spikes and notches of a single column, which feet leave.
    for (uint32_t d = 0; d < N_NEIGHBOUR; d++) {
        if (step_y[d] < 0 || (step_y[d] == 0 && step_x[d] < 0)) continue;  // each line once
        int32_t i = x + step_x[d], j = y + step_y[d], m = x - step_x[d], n = y - step_y[d];
        if (i < 0 || i >= bed->n_x || j < 0 || j >= bed->n_y || m < 0 || m >= bed->n_x || n < 0 || n >= bed->n_y) continue;
        int64_t bend = units_of(bed, i, j) - 2 * height + units_of(bed, m, n), size = bend < 0 ? -bend : bend;
        if (size <= l->bend[d >= 4]) continue;
        int64_t half = (size - l->bend[d >= 4]) / 8;  // to or from each side
        size_t one = usi_bed_at(bed, i, j), two = usi_bed_at(bed, m, n);
        // Nothing goes uphill: at the foot of a wall soil comes from the wall alone.
        bool is_one = bend > 0 ? units_of(bed, i, j) > height : units_of(bed, i, j) < height;
        bool is_two = bend > 0 ? units_of(bed, m, n) > height : units_of(bed, m, n) < height;
        bool a = is_one && (bend > 0 ? move(bed, l, one, here, half) : move(bed, l, here, one, half));
        bool b = is_two && (bend > 0 ? move(bed, l, two, here, half) : move(bed, l, here, two, half));
        has_moved |= a || b;
        height = units_of(bed, x, y);
    }
    if (has_moved)
        bed->flag[here] |= USI_BED_FLOWING;
    else
        bed->flag[here] &= (uint8_t)~USI_BED_FLOWING;
    return has_moved;
}

int64_t usi_bed_settle(usi_bed *bed, const usi_bed_law *law, int64_t most) {
    if (bed->n == 0 && bed->n_lost == 0) return 0;
    limits l = limits_of(bed, law);
    int64_t n = 0, n_covered = 0;
    for (; n < most; n++) {
        if (bed->n == 0) usi_bed_gather(bed);
        // Covered columns wait until the body has left. When there are no others, that is all.
        if (bed->n == 0 || n_covered == bed->n) break;
        uint32_t at = bed->ring[bed->head];
        bed->head = (bed->head + 1) & (bed->cap - 1);
        bed->n--;
        bed->flag[at] &= (uint8_t)~USI_BED_ACTIVE;
        if (bed->flag[at] & USI_BED_COVERED) {
            push(bed, at);
            n_covered++;
            continue;
        }
        n_covered = 0;
        int32_t y = (int32_t)(at / (uint32_t)bed->n_x), x = (int32_t)(at % (uint32_t)bed->n_x);
        if (visit(bed, &l, x, y)) usi_bed_wake(bed, x, y);
    }
    return n;
}

// ---------------------------------------------------------------- bodies

usi_bed_pressing usi_bed_press(usi_bed *bed, int32_t x0, int32_t y0, int32_t x1, int32_t y1, const int32_t *to, double compaction) {
    usi_bed_pressing out = {0};
    int64_t floor = -(int64_t)(bed->depth / USI_BED_UNIT);
    int32_t width = x1 - x0;
    for (int32_t y = y0; y < y1; y++) {
        for (int32_t x = x0; x < x1; x++) {
            int32_t goal = to[(y - y0) * width + (x - x0)];
            size_t at = usi_bed_at(bed, x, y);
            if (goal == INT32_MAX) continue;
            int64_t change = (int64_t)goal - bed->ground(bed->ground_context, x, y);
            if (change < floor) change = floor;
            if (change >= bed->change[at]) continue;
            out.n_pressed += bed->change[at] - change;
            set_change(bed, at, (int32_t)change);
            int64_t deep = -change / (int64_t)(USI_BED_PRESSED_UNIT / USI_BED_UNIT + 0.5);
            if (deep > bed->pressed[at]) set_pressed(bed, at, deep < UINT16_MAX ? (uint16_t)deep : UINT16_MAX);
            usi_bed_wake(bed, x, y);
        }
    }
    // What is not compacted comes up in the columns round the pressed ones, in proportion to how many pressed ones each touches.
    int64_t rise = out.n_pressed - (int64_t)(compaction * (double)out.n_pressed), edges = 0;
    for (int pass = 0; pass < 2 && rise > 0; pass++) {
        int64_t left = rise, left_edges = edges;
        for (int32_t y = y0 - 1; y <= y1; y++) {
            for (int32_t x = x0 - 1; x <= x1; x++) {
                if (x < 0 || x >= bed->n_x || y < 0 || y >= bed->n_y) continue;
                bool inside = x >= x0 && x < x1 && y >= y0 && y < y1;
                if ((inside && to[(y - y0) * width + (x - x0)] != INT32_MAX) || (bed->flag[usi_bed_at(bed, x, y)] & USI_BED_COVERED)) continue;
                int64_t touching = 0;
                for (int d = 0; d < 4; d++) {
                    int32_t i = x + step_x[d], j = y + step_y[d];
                    touching += i >= x0 && i < x1 && j >= y0 && j < y1 && to[(j - y0) * width + (i - x0)] != INT32_MAX;
                }
                if (touching == 0) continue;
                if (pass == 0) {
                    edges += touching;
                } else {
                    // Each takes its share of what is left, so that the last takes the rest and nothing is lost to rounding.
                    int64_t units = left * touching / left_edges;
                    left -= units;
                    left_edges -= touching;
                    usi_bed_add(bed, x, y, (int32_t)units);
                    out.n_risen += units;
                }
            }
        }
        if (edges == 0) break;
    }
    return out;
}

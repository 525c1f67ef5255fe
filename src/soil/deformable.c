// The cellular automaton of loose soil (after Pla-Castells et al., and the virtual testbed's soil).
//
// Two neighbouring columns whose difference in height is more than the slope allows exchange a part of the
// excess. Eight neighbours: with four, a heap would be a pyramid. Exchange takes effect at once, pair by
// pair, in the order in which columns became active; the neighbour that is looked at first goes round, so
// that no direction is preferred. That takes a hundredth of the visits that sweeps over the whole grid would,
// and a grid at rest takes none.
#include "soil/deformable.h"

#include <limits.h>
#include <string.h>

enum { N_NEIGHBOUR = 8 };
static const int8_t step_x[N_NEIGHBOUR] = {1, 0, -1, 0, 1, -1, -1, 1};
static const int8_t step_y[N_NEIGHBOUR] = {0, 1, 0, -1, 1, 1, -1, -1};

usi_deformable_law usi_deformable_law_of(const us_soil *soil, double spacing, double gravity) {
    // A vertical step of 2 c / (rho g) stands by cohesion alone, with half of what the theory of cuts allows.
    // On a grid finer than the step, cohesion would keep every column; at most the slope over one spacing is
    // given to it.
    double step = gravity > 0 ? 2 * soil->cohesion / (soil->density * gravity) : 0,
           most = spacing * tan(soil->repose_angle);
    return (usi_deformable_law){.repose = soil->repose_angle,
                                .critical = soil->critical_angle,
                                .cohesive_step = fmin(step, most),
                                .curvature = 2 * tan(soil->repose_angle) / (3 * spacing),
                                .relaxation = 0.5};
}

// ---------------------------------------------------------------- columns

// What a column adds to a digest; nothing where it is untouched. By its place in the grid, not by when its
// tile was touched.
static uint64_t mixed(const usi_deformable *bed, uint32_t at, uint32_t value) {
    uint64_t place = (uint64_t)bed->spot[at >> USI_DEFORMABLE_TILE_BITS].place << USI_DEFORMABLE_TILE_BITS |
                     at % USI_DEFORMABLE_COLUMNS;
    return value == 0 ? 0 : us_random_bits(place, 0x626564, value);
}

uint32_t usi_deformable_open_tile(usi_deformable *bed, uint32_t place) {
    if (bed->n_tile == bed->max_tile) return 0;
    bed->slot[place] = ++bed->n_tile;
    bed->spot[bed->n_tile] = (usi_deformable_tile_info){.place = place};
    return bed->n_tile;
}

uint32_t usi_deformable_column_to_write(usi_deformable *bed, int32_t x, int32_t y) {
    uint32_t at = usi_deformable_column(bed, x, y);
    if (at >= USI_DEFORMABLE_COLUMNS) return at;
    return usi_deformable_open_tile(bed, (uint32_t)(y >> 6) * (uint32_t)bed->n_tile_x + (uint32_t)(x >> 6))
               << USI_DEFORMABLE_TILE_BITS |
           at;
}

// Tile 0 belongs to all untouched columns: nothing is written there, not even when there is no room for more.
static bool is_own(uint32_t at) { return at >= USI_DEFORMABLE_COLUMNS; }

static void set_change(usi_deformable *bed, uint32_t at, int32_t change) {
    if (!is_own(at)) return;
    usi_deformable_tile *tile = &bed->tile[at >> USI_DEFORMABLE_TILE_BITS];
    int32_t *now = &tile->change[at % USI_DEFORMABLE_COLUMNS];
    bed->digest += mixed(bed, at, (uint32_t)change) - mixed(bed, at, (uint32_t)*now);
    *now = change;
    if (change < bed->lowest) bed->lowest = change;
    if (change > bed->highest) bed->highest = change;
    // 0 means untouched for ever.
    if (++bed->version == 0) bed->version = 1;
    bed->spot[at >> USI_DEFORMABLE_TILE_BITS].version = bed->version;
}

static void set_pressed(usi_deformable *bed, uint32_t at, uint16_t pressed) {
    if (!is_own(at)) return;
    uint16_t *now = &bed->tile[at >> USI_DEFORMABLE_TILE_BITS].pressed[at % USI_DEFORMABLE_COLUMNS];
    bed->pressed_digest += mixed(bed, at, pressed) - mixed(bed, at, *now);
    *now = pressed;
}

// Those in the ring and those that wait are known by their lists; who is covered, by what stands there.
enum { LASTING = USI_DEFORMABLE_FLOWING | USI_DEFORMABLE_OVERFLOW };

static void set_flag(usi_deformable *bed, uint32_t at, uint8_t flag) {
    if (!is_own(at)) return;
    uint8_t *now = &bed->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS];
    if ((*now ^ flag) & LASTING)
        bed->flag_digest += mixed(bed, at, flag & LASTING) - mixed(bed, at, *now & LASTING);
    usi_deformable_tile_info *spot = &bed->spot[at >> USI_DEFORMABLE_TILE_BITS];
    if ((*now ^ flag) & USI_DEFORMABLE_ACTIVE) {
        bed->has_stirred |= (flag & USI_DEFORMABLE_ACTIVE) && spot->n_busy == 0;
        spot->n_busy += flag & USI_DEFORMABLE_ACTIVE ? 1U : -1U;
    }
    *now = flag;
}

static void raise_flag(usi_deformable *bed, uint32_t at, int flags) {
    set_flag(bed, at, (uint8_t)(usi_deformable_flag(bed, at) | flags));
}
static void lower_flag(usi_deformable *bed, uint32_t at, int flags) {
    set_flag(bed, at, (uint8_t)(usi_deformable_flag(bed, at) & ~flags));
}

static int64_t units_of(const usi_deformable *bed, int32_t x, int32_t y) {
    return (int64_t)bed->ground(bed->ground_context, x, y) +
           usi_deformable_change(bed, usi_deformable_column(bed, x, y));
}

double usi_deformable_height(const usi_deformable *bed, int32_t x, int32_t y) {
    return USI_DEFORMABLE_UNIT * (double)units_of(bed, x, y);
}

uint64_t usi_deformable_digest(const usi_deformable *bed) {
    uint64_t digest = 0;
    for (uint32_t at = USI_DEFORMABLE_COLUMNS; at < (bed->n_tile + 1) << USI_DEFORMABLE_TILE_BITS; at++) {
        digest += mixed(bed, at, (uint32_t)usi_deformable_change(bed, at));
    }
    return digest;
}

// ---------------------------------------------------------------- the ring

// What is active already, and in no list any more.
static void enlist(usi_deformable *bed, uint32_t at) {
    if (bed->n == bed->cap) {
        raise_flag(bed, at, USI_DEFORMABLE_OVERFLOW);
        bed->n_lost++;
        return;
    }
    bed->ring[(bed->head + bed->n++) & (bed->cap - 1)] = at;
}

static void push(usi_deformable *bed, uint32_t at) {
    if (!is_own(at) || (usi_deformable_flag(bed, at) & USI_DEFORMABLE_ACTIVE)) return;
    raise_flag(bed, at, USI_DEFORMABLE_ACTIVE);
    enlist(bed, at);
}

void usi_deformable_activate(usi_deformable *bed, int32_t x, int32_t y) {
    for (int32_t j = y - 1; j <= y + 1; j++) {
        for (int32_t i = x - 1; i <= x + 1; i++) {
            if (i >= 0 && i < bed->n_x && j >= 0 && j < bed->n_y)
                push(bed, usi_deformable_column_to_write(bed, i, j));
        }
    }
}

void usi_deformable_requeue(usi_deformable *bed) {
    if (bed->n_lost == 0) return;
    for (uint32_t at = USI_DEFORMABLE_COLUMNS;
         at < (bed->n_tile + 1) << USI_DEFORMABLE_TILE_BITS && bed->n < bed->cap && bed->n_lost > 0; at++) {
        if ((usi_deformable_flag(bed, at) & (USI_DEFORMABLE_OVERFLOW | USI_DEFORMABLE_COVERED)) !=
            USI_DEFORMABLE_OVERFLOW)
            continue;
        lower_flag(bed, at, USI_DEFORMABLE_OVERFLOW);
        bed->n_lost--;
        enlist(bed, at);
    }
}

// The body that they waited for may have left. Who waits on keeps the order.
static void end_wait(usi_deformable *bed) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < bed->n_wait; i++) {
        uint32_t at = bed->wait[i];
        if (usi_deformable_flag(bed, at) & USI_DEFORMABLE_COVERED)
            bed->wait[n++] = at;
        else
            enlist(bed, at);
    }
    bed->n_wait = n;
}

static void put_off(usi_deformable *bed, uint32_t at) {
    if (bed->n_wait < bed->cap) {
        bed->wait[bed->n_wait++] = at;
        return;
    }
    raise_flag(bed, at, USI_DEFORMABLE_OVERFLOW);
    bed->n_lost++;
}

void usi_deformable_add(usi_deformable *bed, int32_t x, int32_t y, int32_t units) {
    uint32_t at = usi_deformable_column_to_write(bed, x, y);
    set_change(bed, at, usi_deformable_change(bed, at) + units);
    usi_deformable_activate(bed, x, y);
}

// ---------------------------------------------------------------- flow

// What differences are allowed, in units: along an axis and along a diagonal.
typedef struct limits {
    int64_t stop[2], begin[2];
    double share;
    int64_t bend[2];  // of h_m - 2 h + h_p
    int64_t floor;    // a column's change is never below
} limits;

static limits limits_of(const usi_deformable *bed, const usi_deformable_law *law) {
    limits l = {.share = 0.5 * law->relaxation,
                .floor = law->is_firm ? 0 : -(int64_t)(bed->depth / USI_DEFORMABLE_UNIT)};
    double stop = tan(law->repose), begin = tan(law->critical);
    for (int d = 0; d < 2; d++) {
        double way = bed->spacing * (d == 0 ? 1 : M_SQRT2);
        l.stop[d] = (int64_t)((way * stop + law->cohesive_step) / USI_DEFORMABLE_UNIT);
        l.begin[d] = (int64_t)((way * begin + law->cohesive_step) / USI_DEFORMABLE_UNIT);
        l.bend[d] =
            law->curvature > 0 ? (int64_t)(way * way * law->curvature / USI_DEFORMABLE_UNIT) : INT64_MAX;
    }
    return l;
}

// The law, and what it allows everywhere: all of it, or at least so much.
typedef struct flow {
    const usi_deformable_law *law;
    limits everywhere;
} flow;

// `room` is for those of a place.
static const limits *limits_at(const usi_deformable *bed, const flow *f, int32_t x, int32_t y, limits *room) {
    if (!f->law->at) return &f->everywhere;
    usi_deformable_law here = f->law->at(f->law->context, x, y);
    *room = limits_of(bed, &here);
    return room;
}

// Moves soil from one column to another, as much as is there. False: none.
static bool move(usi_deformable *bed, const limits *l, uint32_t from, uint32_t to, int64_t units) {
    if ((usi_deformable_flag(bed, from) | usi_deformable_flag(bed, to)) & USI_DEFORMABLE_COVERED)
        return false;
    int64_t there = usi_deformable_change(bed, from) - l->floor;
    if (units > there) units = there;
    if (units > INT_MAX) units = INT_MAX;
    if (units <= 0 || !is_own(from) || !is_own(to)) return false;
    set_change(bed, from, usi_deformable_change(bed, from) - (int32_t)units);
    set_change(bed, to, usi_deformable_change(bed, to) + (int32_t)units);
    return true;
}

// One column and its pairs. Whether anything moved. What flows is the soil of the higher column, and goes by
// the law that holds there: so it is the same from whichever side a pair is looked at.
static bool visit(usi_deformable *bed, const flow *f, int32_t x, int32_t y) {
    limits own_room, other_room;
    const limits *own = NULL;  // found when it is asked for
    uint32_t here = usi_deformable_column(bed, x, y);
    bool has_moved = false, was_flowing = usi_deformable_flag(bed, here) & USI_DEFORMABLE_FLOWING;
    uint32_t first = bed->turn++;
    int64_t height = units_of(bed, x, y);
    for (uint32_t k = 0; k < N_NEIGHBOUR; k++) {
        uint32_t d = (first + k) % N_NEIGHBOUR;
        int32_t i = x + step_x[d], j = y + step_y[d];
        if (i < 0 || i >= bed->n_x || j < 0 || j >= bed->n_y) continue;
        uint32_t there = usi_deformable_column(bed, i, j);
        int64_t other = units_of(bed, i, j), difference = height > other ? height - other : other - height;
        bool is_flowing = was_flowing || (usi_deformable_flag(bed, there) & USI_DEFORMABLE_FLOWING),
             is_diagonal = d >= 4;
        if (difference <= f->everywhere.stop[is_diagonal]) continue;
        if (height >= other && !own) own = limits_at(bed, f, x, y, &own_room);
        const limits *l = height >= other ? own : limits_at(bed, f, i, j, &other_room);
        if (difference <= (is_flowing ? l->stop : l->begin)[is_diagonal]) continue;
        int64_t units = (int64_t)(l->share * (double)(difference - l->stop[is_diagonal]));
        if (units <= 0) continue;
        there = usi_deformable_column_to_write(bed, i, j);
        uint32_t from = height > other ? here : there, to = height > other ? there : here;
        if (!move(bed, l, from, to, units)) continue;
        raise_flag(bed, there, USI_DEFORMABLE_FLOWING);
        has_moved = true;
        height = units_of(bed, x, y);
    }
    // Spikes and notches of a single column, which feet leave.
    for (uint32_t d = 0; d < N_NEIGHBOUR; d++) {
        if (step_y[d] < 0 || (step_y[d] == 0 && step_x[d] < 0)) continue;  // each line once
        int32_t i = x + step_x[d], j = y + step_y[d], m = x - step_x[d], n = y - step_y[d];
        if (i < 0 || i >= bed->n_x || j < 0 || j >= bed->n_y || m < 0 || m >= bed->n_x || n < 0 ||
            n >= bed->n_y)
            continue;
        int64_t bend = units_of(bed, i, j) - 2 * height + units_of(bed, m, n), size = bend < 0 ? -bend : bend;
        if (size <= f->everywhere.bend[d >= 4]) continue;
        if (!own) own = limits_at(bed, f, x, y, &own_room);
        if (size <= own->bend[d >= 4]) continue;
        int64_t half = (size - own->bend[d >= 4]) / 8;  // to or from each side
        uint32_t one = usi_deformable_column_to_write(bed, i, j),
                 two = usi_deformable_column_to_write(bed, m, n);
        // Nothing goes uphill: at the foot of a wall soil comes from the wall alone.
        bool is_one = bend > 0 ? units_of(bed, i, j) > height : units_of(bed, i, j) < height;
        bool is_two = bend > 0 ? units_of(bed, m, n) > height : units_of(bed, m, n) < height;
        bool a = is_one && (bend > 0 ? move(bed, limits_at(bed, f, i, j, &other_room), one, here, half)
                                     : move(bed, own, here, one, half));
        bool b = is_two && (bend > 0 ? move(bed, limits_at(bed, f, m, n, &other_room), two, here, half)
                                     : move(bed, own, here, two, half));
        has_moved |= a || b;
        height = units_of(bed, x, y);
    }
    if (has_moved)
        raise_flag(bed, here, USI_DEFORMABLE_FLOWING);
    else
        lower_flag(bed, here, USI_DEFORMABLE_FLOWING);
    return has_moved;
}

int64_t usi_deformable_settle(usi_deformable *bed, const usi_deformable_law *law, int64_t most) {
    if (bed->n == 0 && bed->n_lost == 0 && bed->n_wait == 0) return 0;
    flow f = {law, limits_of(bed, law)};
    // A least curvature of 0 is no bound, not no limit.
    if (law->at && law->curvature <= 0) f.everywhere.bend[0] = f.everywhere.bend[1] = 0;
    int64_t n = 0;
    end_wait(bed);
    for (; n < most; n++) {
        if (bed->n == 0) usi_deformable_requeue(bed);
        if (bed->n == 0) break;
        uint32_t at = bed->ring[bed->head];
        bed->head = (bed->head + 1) & (bed->cap - 1);
        bed->n--;
        // Covered columns wait until the body has left, and cost next to nothing meanwhile.
        if (usi_deformable_flag(bed, at) & USI_DEFORMABLE_COVERED) {
            put_off(bed, at);
            continue;
        }
        lower_flag(bed, at, USI_DEFORMABLE_ACTIVE);
        uint32_t place = bed->spot[at >> USI_DEFORMABLE_TILE_BITS].place, wide = (uint32_t)bed->n_tile_x;
        int32_t x = (int32_t)(place % wide * USI_DEFORMABLE_TILE + at % USI_DEFORMABLE_TILE);
        int32_t y =
            (int32_t)(place / wide * USI_DEFORMABLE_TILE + at % USI_DEFORMABLE_COLUMNS / USI_DEFORMABLE_TILE);
        if (visit(bed, &f, x, y)) usi_deformable_activate(bed, x, y);
    }
    return n;
}

// ---------------------------------------------------------------- bodies

usi_deformable_pressed_volume usi_deformable_press(usi_deformable *bed, int32_t x0, int32_t y0, int32_t x1,
                                                   int32_t y1, const int32_t *to, double compaction) {
    usi_deformable_pressed_volume out = {0};
    int64_t floor = -(int64_t)(bed->depth / USI_DEFORMABLE_UNIT);
    int32_t width = x1 - x0;
    for (int32_t y = y0; y < y1; y++) {
        for (int32_t x = x0; x < x1; x++) {
            int32_t goal = to[(y - y0) * width + (x - x0)];
            if (goal == INT32_MAX) continue;
            uint32_t at = usi_deformable_column_to_write(bed, x, y);
            int64_t change = (int64_t)goal - bed->ground(bed->ground_context, x, y);
            if (change < floor) change = floor;
            if (!is_own(at) || change >= usi_deformable_change(bed, at)) continue;
            out.n_pressed += usi_deformable_change(bed, at) - change;
            set_change(bed, at, (int32_t)change);
            int64_t deep = -change / (int64_t)(USI_DEFORMABLE_PRESSED_UNIT / USI_DEFORMABLE_UNIT + 0.5);
            if (deep > usi_deformable_pressed(bed, at))
                set_pressed(bed, at, deep < UINT16_MAX ? (uint16_t)deep : UINT16_MAX);
            usi_deformable_activate(bed, x, y);
        }
    }
    // What is not compacted comes up in the columns round the pressed ones, in proportion to how many pressed
    // ones each touches.
    int64_t rise = out.n_pressed - (int64_t)(compaction * (double)out.n_pressed), edges = 0;
    for (int pass = 0; pass < 2 && rise > 0; pass++) {
        int64_t left = rise, left_edges = edges;
        for (int32_t y = y0 - 1; y <= y1; y++) {
            for (int32_t x = x0 - 1; x <= x1; x++) {
                if (x < 0 || x >= bed->n_x || y < 0 || y >= bed->n_y) continue;
                bool inside = x >= x0 && x < x1 && y >= y0 && y < y1;
                if ((inside && to[(y - y0) * width + (x - x0)] != INT32_MAX) ||
                    (usi_deformable_flag(bed, usi_deformable_column(bed, x, y)) & USI_DEFORMABLE_COVERED))
                    continue;
                int64_t touching = 0;
                for (int d = 0; d < 4; d++) {
                    int32_t i = x + step_x[d], j = y + step_y[d];
                    touching += i >= x0 && i < x1 && j >= y0 && j < y1 &&
                                to[(j - y0) * width + (i - x0)] != INT32_MAX;
                }
                if (touching == 0) continue;
                if (pass == 0) {
                    edges += touching;
                } else {
                    // Each takes its share of what is left, so that the last takes the rest and nothing is
                    // lost to rounding.
                    int64_t units = left * touching / left_edges;
                    left -= units;
                    left_edges -= touching;
                    usi_deformable_add(bed, x, y, (int32_t)units);
                    out.n_risen += units;
                }
            }
        }
        if (edges == 0) break;
    }
    return out;
}

// Cellular automaton of loose soil (after Pla-Castells et al., and the virtual testbed's soil).
//
// Two neighbouring columns whose difference in height is more than the slope allows exchange a part of the
// excess. Eight neighbours: with four, a pile would be a pyramid. Exchange takes effect at once, pair by
// pair, in the order in which columns became active; the neighbour that is visited first rotates, so that no
// direction is preferred. That takes a hundredth of the visits that sweeps over the whole grid would, and a
// grid at rest takes none.
#include "soil/deformable.h"

#include <limits.h>
#include <string.h>

enum { N_NEIGHBOUR = 8 };
static const int8_t step_x[N_NEIGHBOUR] = {1, 0, -1, 0, 1, -1, -1, 1};
static const int8_t step_y[N_NEIGHBOUR] = {0, 1, 0, -1, 1, 1, -1, -1};

usi_deformable_law usi_deformable_law_of(const us_soil *soil, double spacing, double gravity) {
    // Cohesion alone holds a vertical step of 2 c / (rho g), half of what the theory of cuts allows. On a
    // grid finer than the step it would hold every column; it is limited to the slope over one spacing.
    double step = gravity > 0 ? 2 * soil->cohesion / (soil->density * gravity) : 0,
           max_step = spacing * tan(soil->repose_angle);
    return (usi_deformable_law){.repose = soil->repose_angle,
                                .critical = soil->critical_angle,
                                .cohesive_step = fmin(step, max_step),
                                .curvature = 2 * tan(soil->repose_angle) / (3 * spacing),
                                .relaxation = 0.5};
}

// ---------------------------------------------------------------- columns

// Contribution of a column to a digest; 0 where it is untouched. A function of its place in the grid, not of
// when its tile was touched.
static uint64_t digest_of(const usi_deformable *patch, uint32_t at, uint32_t value) {
    uint64_t place = (uint64_t)patch->spot[at >> USI_DEFORMABLE_TILE_BITS].place << USI_DEFORMABLE_TILE_BITS |
                     at % USI_DEFORMABLE_COLUMNS;
    return value == 0 ? 0 : us_random_bits(place, 0x626564, value);
}

uint32_t usi_deformable_open_tile(usi_deformable *patch, uint32_t place) {
    if (patch->n_tile == patch->max_tile) return 0;
    patch->slot[place] = ++patch->n_tile;
    patch->spot[patch->n_tile] = (usi_deformable_tile_info){.place = place};
    return patch->n_tile;
}

uint32_t usi_deformable_column_to_write(usi_deformable *patch, int32_t x, int32_t y) {
    uint32_t at = usi_deformable_column(patch, x, y);
    if (at >= USI_DEFORMABLE_COLUMNS) return at;
    return usi_deformable_open_tile(patch,
                                    (uint32_t)(y >> 6) * (uint32_t)patch->n_tile_x + (uint32_t)(x >> 6))
               << USI_DEFORMABLE_TILE_BITS |
           at;
}

// Whether a column may be written. Tile 0 is shared by all untouched columns: it is never written, not even
// when there is no room for another tile.
static bool is_writable(uint32_t at) { return at >= USI_DEFORMABLE_COLUMNS; }

static void set_change(usi_deformable *patch, uint32_t at, int32_t change) {
    if (!is_writable(at)) return;
    usi_deformable_tile *tile = &patch->tile[at >> USI_DEFORMABLE_TILE_BITS];
    int32_t *now = &tile->change[at % USI_DEFORMABLE_COLUMNS];
    patch->digest += digest_of(patch, at, (uint32_t)change) - digest_of(patch, at, (uint32_t)*now);
    *now = change;
    if (change < patch->lowest) patch->lowest = change;
    if (change > patch->highest) patch->highest = change;
    // Version 0 means untouched.
    if (++patch->version == 0) patch->version = 1;
    patch->spot[at >> USI_DEFORMABLE_TILE_BITS].version = patch->version;
}

static void set_pressed(usi_deformable *patch, uint32_t at, uint16_t pressed) {
    if (!is_writable(at)) return;
    uint16_t *now = &patch->tile[at >> USI_DEFORMABLE_TILE_BITS].pressed[at % USI_DEFORMABLE_COLUMNS];
    patch->pressed_digest += digest_of(patch, at, pressed) - digest_of(patch, at, *now);
    *now = pressed;
}

// Flags that are part of the state. Queued and waiting columns are known by their lists, covered ones by the
// bodies on them.
enum { LASTING = USI_DEFORMABLE_FLOWING | USI_DEFORMABLE_OVERFLOW };

static void set_flag(usi_deformable *patch, uint32_t at, uint8_t flag) {
    if (!is_writable(at)) return;
    uint8_t *now = &patch->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS];
    if ((*now ^ flag) & LASTING)
        patch->flag_digest += digest_of(patch, at, flag & LASTING) - digest_of(patch, at, *now & LASTING);
    usi_deformable_tile_info *spot = &patch->spot[at >> USI_DEFORMABLE_TILE_BITS];
    if ((*now ^ flag) & USI_DEFORMABLE_ACTIVE) {
        patch->has_stirred |= (flag & USI_DEFORMABLE_ACTIVE) && spot->n_busy == 0;
        spot->n_busy += flag & USI_DEFORMABLE_ACTIVE ? 1U : -1U;
    }
    *now = flag;
}

static void raise_flag(usi_deformable *patch, uint32_t at, int flags) {
    set_flag(patch, at, (uint8_t)(usi_deformable_flag(patch, at) | flags));
}
static void lower_flag(usi_deformable *patch, uint32_t at, int flags) {
    set_flag(patch, at, (uint8_t)(usi_deformable_flag(patch, at) & ~flags));
}

static int64_t units_of(const usi_deformable *patch, int32_t x, int32_t y) {
    return (int64_t)patch->ground(patch->ground_context, x, y) +
           usi_deformable_change(patch, usi_deformable_column(patch, x, y));
}

double usi_deformable_height(const usi_deformable *patch, int32_t x, int32_t y) {
    return USI_DEFORMABLE_UNIT * (double)units_of(patch, x, y);
}

uint64_t usi_deformable_digest(const usi_deformable *patch) {
    uint64_t digest = 0;
    for (uint32_t at = USI_DEFORMABLE_COLUMNS; at < (patch->n_tile + 1) << USI_DEFORMABLE_TILE_BITS; at++) {
        digest += digest_of(patch, at, (uint32_t)usi_deformable_change(patch, at));
    }
    return digest;
}

// ---------------------------------------------------------------- the queue

// Appends an active column that is in no list.
static void enqueue(usi_deformable *patch, uint32_t at) {
    if (patch->n == patch->cap) {
        raise_flag(patch, at, USI_DEFORMABLE_OVERFLOW);
        patch->n_lost++;
        return;
    }
    patch->ring[(patch->head + patch->n++) & (patch->cap - 1)] = at;
}

static void activate(usi_deformable *patch, uint32_t at) {
    if (!is_writable(at) || (usi_deformable_flag(patch, at) & USI_DEFORMABLE_ACTIVE)) return;
    raise_flag(patch, at, USI_DEFORMABLE_ACTIVE);
    enqueue(patch, at);
}

void usi_deformable_activate(usi_deformable *patch, int32_t x, int32_t y) {
    for (int32_t j = y - 1; j <= y + 1; j++) {
        for (int32_t i = x - 1; i <= x + 1; i++) {
            if (i >= 0 && i < patch->n_x && j >= 0 && j < patch->n_y)
                activate(patch, usi_deformable_column_to_write(patch, i, j));
        }
    }
}

void usi_deformable_requeue(usi_deformable *patch) {
    if (patch->n_lost == 0) return;
    for (uint32_t at = USI_DEFORMABLE_COLUMNS;
         at < (patch->n_tile + 1) << USI_DEFORMABLE_TILE_BITS && patch->n < patch->cap && patch->n_lost > 0;
         at++) {
        if ((usi_deformable_flag(patch, at) & (USI_DEFORMABLE_OVERFLOW | USI_DEFORMABLE_COVERED)) !=
            USI_DEFORMABLE_OVERFLOW)
            continue;
        lower_flag(patch, at, USI_DEFORMABLE_OVERFLOW);
        patch->n_lost--;
        enqueue(patch, at);
    }
}

// Requeues waiting columns whose body has left. The others keep their order.
static void requeue_uncovered(usi_deformable *patch) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < patch->n_wait; i++) {
        uint32_t at = patch->wait[i];
        if (usi_deformable_flag(patch, at) & USI_DEFORMABLE_COVERED)
            patch->wait[n++] = at;
        else
            enqueue(patch, at);
    }
    patch->n_wait = n;
}

// Lets a covered column wait until the body has left.
static void wait_uncovered(usi_deformable *patch, uint32_t at) {
    if (patch->n_wait < patch->cap) {
        patch->wait[patch->n_wait++] = at;
        return;
    }
    raise_flag(patch, at, USI_DEFORMABLE_OVERFLOW);
    patch->n_lost++;
}

void usi_deformable_add(usi_deformable *patch, int32_t x, int32_t y, int32_t units) {
    uint32_t at = usi_deformable_column_to_write(patch, x, y);
    set_change(patch, at, usi_deformable_change(patch, at) + units);
    usi_deformable_activate(patch, x, y);
}

// ---------------------------------------------------------------- flow

// Limits of height differences, in units: [0] along an axis, [1] along a diagonal.
typedef struct limits {
    int64_t stop[2], begin[2];  // flow stops, and begins
    double share;               // fraction of the excess that a pair exchanges at once
    int64_t bend[2];            // of h_m - 2 h + h_p
    int64_t floor;              // minimum change of a column: the bedrock
} limits;

static limits limits_of(const usi_deformable *patch, const usi_deformable_law *law) {
    limits l = {.share = 0.5 * law->relaxation,
                .floor = law->is_firm ? 0 : -(int64_t)(patch->depth / USI_DEFORMABLE_UNIT)};
    double stop = tan(law->repose), begin = tan(law->critical);
    for (int d = 0; d < 2; d++) {
        double distance = patch->spacing * (d == 0 ? 1 : M_SQRT2);
        l.stop[d] = (int64_t)((distance * stop + law->cohesive_step) / USI_DEFORMABLE_UNIT);
        l.begin[d] = (int64_t)((distance * begin + law->cohesive_step) / USI_DEFORMABLE_UNIT);
        l.bend[d] = law->curvature > 0 ? (int64_t)(distance * distance * law->curvature / USI_DEFORMABLE_UNIT)
                                       : INT64_MAX;
    }
    return l;
}

// The law, and its limits: exact where it is the same everywhere, else the minima over all columns.
typedef struct flow {
    const usi_deformable_law *law;
    limits everywhere;
} flow;

// Limits of a column; `room` is the memory for those that differ from column to column.
static const limits *limits_at(const usi_deformable *patch, const flow *f, int32_t x, int32_t y,
                               limits *room) {
    if (!f->law->at) return &f->everywhere;
    usi_deformable_law here = f->law->at(f->law->context, x, y);
    *room = limits_of(patch, &here);
    return room;
}

// Moves soil from one column to another, no more than is above the bedrock. False: none.
static bool move(usi_deformable *patch, const limits *l, uint32_t from, uint32_t to, int64_t units) {
    if ((usi_deformable_flag(patch, from) | usi_deformable_flag(patch, to)) & USI_DEFORMABLE_COVERED)
        return false;
    int64_t there = usi_deformable_change(patch, from) - l->floor;
    if (units > there) units = there;
    if (units > INT_MAX) units = INT_MAX;
    if (units <= 0 || !is_writable(from) || !is_writable(to)) return false;
    set_change(patch, from, usi_deformable_change(patch, from) - (int32_t)units);
    set_change(patch, to, usi_deformable_change(patch, to) + (int32_t)units);
    return true;
}

// Flow between a column and its eight neighbours where the slope is too steep. Returns whether soil moved.
// The soil of the higher column flows, by the law that holds there: so it is the same from whichever side a
// pair is visited. *own: the column's limits, computed when they are first needed, in own_room.
static bool relax_slopes(usi_deformable *patch, const flow *f, int32_t x, int32_t y, const limits **own,
                         limits *own_room) {
    limits other_room;
    uint32_t here = usi_deformable_column(patch, x, y);
    bool has_moved = false, was_flowing = usi_deformable_flag(patch, here) & USI_DEFORMABLE_FLOWING;
    uint32_t first = patch->turn++;
    int64_t height = units_of(patch, x, y);
    for (uint32_t k = 0; k < N_NEIGHBOUR; k++) {
        uint32_t d = (first + k) % N_NEIGHBOUR;
        int32_t i = x + step_x[d], j = y + step_y[d];
        if (i < 0 || i >= patch->n_x || j < 0 || j >= patch->n_y) continue;
        uint32_t there = usi_deformable_column(patch, i, j);
        int64_t other = units_of(patch, i, j), difference = height > other ? height - other : other - height;
        bool is_flowing = was_flowing || (usi_deformable_flag(patch, there) & USI_DEFORMABLE_FLOWING),
             is_diagonal = d >= 4;
        if (difference <= f->everywhere.stop[is_diagonal]) continue;
        if (height >= other && !*own) *own = limits_at(patch, f, x, y, own_room);
        const limits *l = height >= other ? *own : limits_at(patch, f, i, j, &other_room);
        if (difference <= (is_flowing ? l->stop : l->begin)[is_diagonal]) continue;
        int64_t units = (int64_t)(l->share * (double)(difference - l->stop[is_diagonal]));
        if (units <= 0) continue;
        there = usi_deformable_column_to_write(patch, i, j);
        uint32_t from = height > other ? here : there, to = height > other ? there : here;
        if (!move(patch, l, from, to, units)) continue;
        raise_flag(patch, there, USI_DEFORMABLE_FLOWING);
        has_moved = true;
        height = units_of(patch, x, y);
    }
    return has_moved;
}

// Flow that levels a spike or notch of a single column, which feet leave: where the curvature along one of
// the four lines through it is above the limit. Returns whether soil moved.
static bool relax_curvature(usi_deformable *patch, const flow *f, int32_t x, int32_t y, const limits **own,
                            limits *own_room) {
    limits other_room;
    uint32_t here = usi_deformable_column(patch, x, y);
    bool has_moved = false;
    int64_t height = units_of(patch, x, y);
    for (uint32_t d = 0; d < N_NEIGHBOUR; d++) {
        if (step_y[d] < 0 || (step_y[d] == 0 && step_x[d] < 0)) continue;  // each line once
        int32_t i = x + step_x[d], j = y + step_y[d], m = x - step_x[d], n = y - step_y[d];
        if (i < 0 || i >= patch->n_x || j < 0 || j >= patch->n_y || m < 0 || m >= patch->n_x || n < 0 ||
            n >= patch->n_y)
            continue;
        int64_t bend = units_of(patch, i, j) - 2 * height + units_of(patch, m, n),
                size = bend < 0 ? -bend : bend;
        if (size <= f->everywhere.bend[d >= 4]) continue;
        if (!*own) *own = limits_at(patch, f, x, y, own_room);
        if (size <= (*own)->bend[d >= 4]) continue;

        int64_t half = (size - (*own)->bend[d >= 4]) / 8;  // to or from each side
        uint32_t one = usi_deformable_column_to_write(patch, i, j),
                 two = usi_deformable_column_to_write(patch, m, n);
        // Nothing flows uphill: at the foot of a wall soil comes from the wall alone.
        bool is_one = bend > 0 ? units_of(patch, i, j) > height : units_of(patch, i, j) < height;
        bool is_two = bend > 0 ? units_of(patch, m, n) > height : units_of(patch, m, n) < height;
        bool a = is_one && (bend > 0 ? move(patch, limits_at(patch, f, i, j, &other_room), one, here, half)
                                     : move(patch, *own, here, one, half));
        bool b = is_two && (bend > 0 ? move(patch, limits_at(patch, f, m, n, &other_room), two, here, half)
                                     : move(patch, *own, here, two, half));
        has_moved |= a || b;
        height = units_of(patch, x, y);
    }
    return has_moved;
}

// Visits one column. Returns whether soil moved.
static bool visit(usi_deformable *patch, const flow *f, int32_t x, int32_t y) {
    limits own_room;
    const limits *own = NULL;
    uint32_t here = usi_deformable_column(patch, x, y);
    bool has_moved = relax_slopes(patch, f, x, y, &own, &own_room);
    has_moved |= relax_curvature(patch, f, x, y, &own, &own_room);
    if (has_moved)
        raise_flag(patch, here, USI_DEFORMABLE_FLOWING);
    else
        lower_flag(patch, here, USI_DEFORMABLE_FLOWING);
    return has_moved;
}

int64_t usi_deformable_settle(usi_deformable *patch, const usi_deformable_law *law, int64_t max_visit) {
    if (patch->n == 0 && patch->n_lost == 0 && patch->n_wait == 0) return 0;
    flow f = {law, limits_of(patch, law)};
    // A minimum curvature of 0 over all columns means that each column is checked, not that there is no
    // limit.
    if (law->at && law->curvature <= 0) f.everywhere.bend[0] = f.everywhere.bend[1] = 0;
    int64_t n = 0;
    requeue_uncovered(patch);
    for (; n < max_visit; n++) {
        if (patch->n == 0) usi_deformable_requeue(patch);
        if (patch->n == 0) break;
        uint32_t at = patch->ring[patch->head];
        patch->head = (patch->head + 1) & (patch->cap - 1);
        patch->n--;
        // Covered columns wait until the body has left, and cost next to nothing meanwhile.
        if (usi_deformable_flag(patch, at) & USI_DEFORMABLE_COVERED) {
            wait_uncovered(patch, at);
            continue;
        }
        lower_flag(patch, at, USI_DEFORMABLE_ACTIVE);
        uint32_t place = patch->spot[at >> USI_DEFORMABLE_TILE_BITS].place, wide = (uint32_t)patch->n_tile_x;
        int32_t x = (int32_t)(place % wide * USI_DEFORMABLE_TILE + at % USI_DEFORMABLE_TILE);
        int32_t y =
            (int32_t)(place / wide * USI_DEFORMABLE_TILE + at % USI_DEFORMABLE_COLUMNS / USI_DEFORMABLE_TILE);
        if (visit(patch, &f, x, y)) usi_deformable_activate(patch, x, y);
    }
    return n;
}

// ---------------------------------------------------------------- bodies

// A rectangle of columns, and the heights that they are pressed to, row by row.
typedef struct footprint {
    int32_t x0, y0, x1, y1;
    const int32_t *to;
} footprint;

// Whether the column is pressed.
static bool is_pressed(const footprint *p, int32_t x, int32_t y) {
    return x >= p->x0 && x < p->x1 && y >= p->y0 && y < p->y1 &&
           p->to[(y - p->y0) * (p->x1 - p->x0) + (x - p->x0)] != INT32_MAX;
}

// Number of the four neighbours of a column that are pressed; 0 for one that cannot rise itself.
static int64_t pressed_neighbours(const usi_deformable *patch, const footprint *p, int32_t x, int32_t y) {
    if (x < 0 || x >= patch->n_x || y < 0 || y >= patch->n_y || is_pressed(p, x, y) ||
        (usi_deformable_flag(patch, usi_deformable_column(patch, x, y)) & USI_DEFORMABLE_COVERED))
        return 0;
    int64_t n = 0;
    for (int d = 0; d < 4; d++)
        n += is_pressed(p, x + step_x[d], y + step_y[d]);
    return n;
}

// Raises the columns round the pressed ones by a volume, in proportion to how many pressed neighbours each
// has. Returns the volume that has risen.
static int64_t raise_around(usi_deformable *patch, const footprint *p, int64_t volume) {
    int64_t n_edge = 0, n_risen = 0;
    for (int32_t y = p->y0 - 1; y <= p->y1; y++) {
        for (int32_t x = p->x0 - 1; x <= p->x1; x++)
            n_edge += pressed_neighbours(patch, p, x, y);
    }
    // Each column takes its fraction of what is left, so that the last takes the rest and nothing is lost to
    // rounding.
    for (int32_t y = p->y0 - 1; y <= p->y1 && n_edge > 0; y++) {
        for (int32_t x = p->x0 - 1; x <= p->x1; x++) {
            int64_t n = pressed_neighbours(patch, p, x, y);
            if (n == 0) continue;
            int64_t units = volume * n / n_edge;
            volume -= units;
            n_edge -= n;
            usi_deformable_add(patch, x, y, (int32_t)units);
            n_risen += units;
        }
    }
    return n_risen;
}

usi_deformable_pressed_volume usi_deformable_press(usi_deformable *patch, int32_t x0, int32_t y0, int32_t x1,
                                                   int32_t y1, const int32_t *to, double compaction) {
    usi_deformable_pressed_volume out = {0};
    int64_t floor = -(int64_t)(patch->depth / USI_DEFORMABLE_UNIT);
    int32_t width = x1 - x0;

    // Press.
    for (int32_t y = y0; y < y1; y++) {
        for (int32_t x = x0; x < x1; x++) {
            int32_t goal = to[(y - y0) * width + (x - x0)];
            if (goal == INT32_MAX) continue;
            uint32_t at = usi_deformable_column_to_write(patch, x, y);
            int64_t change = (int64_t)goal - patch->ground(patch->ground_context, x, y);
            if (change < floor) change = floor;
            if (!is_writable(at) || change >= usi_deformable_change(patch, at)) continue;
            out.n_pressed += usi_deformable_change(patch, at) - change;
            set_change(patch, at, (int32_t)change);
            int64_t deep = -change / (int64_t)(USI_DEFORMABLE_PRESSED_UNIT / USI_DEFORMABLE_UNIT + 0.5);
            if (deep > usi_deformable_pressed(patch, at))
                set_pressed(patch, at, deep < UINT16_MAX ? (uint16_t)deep : UINT16_MAX);
            usi_deformable_activate(patch, x, y);
        }
    }

    // What is not compacted rises around it.
    const footprint p = {x0, y0, x1, y1, to};
    int64_t rise = out.n_pressed - (int64_t)(compaction * (double)out.n_pressed);
    if (rise > 0) out.n_risen = raise_around(patch, &p, rise);
    return out;
}

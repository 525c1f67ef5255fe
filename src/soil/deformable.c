// Cellular automaton of loose soil (after Pla-Castells et al., and the virtual testbed's soil).
//
// Soil flows between neighbouring columns where the surface is steeper than it may be. How steep it is is the
// length of the gradient at the edge between the two, not the difference of their heights alone: so that a
// heap is a round cone at the same angle in every direction.
//
//     . n n .      along  = h - o, the difference over the edge
//     . h o .      across = (sum of n - sum of s) / 4, central difference beside it
//     . s s .      slope^2 = along^2 + across^2, flow = share (slope - limit) along / slope
//
// Exchange takes effect at once, edge by edge, in the order in which columns became active; the neighbour
// that is visited first rotates, so that no direction is preferred. That takes a hundredth of the visits that
// sweeps over the whole grid would, and a grid at rest takes none.
//
// Cohesion holds a bank up to a height, not up to an angle: a plane wedge behind a face of height H at the
// angle b slides where H > 4 c sin b cos phi / (rho g (1 - cos(b - phi))) (Culmann). With the length of the
// face l, its level part x and its drop H that is l - x cos phi - H sin phi > 4 c cos phi / (rho g), which
// has no angle in it. The face is followed up and down from the edge as long as it is steeper than repose,
// so that the grid does not matter. What a bank that gives way is made of has lost its cohesion, as has soil
// that was put on the ground; what is pressed gets it back.
#include "soil/deformable.h"

#include <limits.h>
#include <string.h>

static const int8_t step_x[4] = {1, 0, -1, 0}, step_y[4] = {0, 1, 0, -1};

usi_deformable_law usi_deformable_law_of(const us_soil *soil, double spacing, double gravity) {
    double curvature =
        soil->max_curvature > 0 ? soil->max_curvature : 2 * tan(soil->repose_angle) / (3 * spacing);
    return (usi_deformable_law){.repose = soil->repose_angle,
                                .critical = soil->critical_angle,
                                .friction = soil->friction_angle,
                                .cohesive_length =
                                    gravity > 0 ? 4 * soil->cohesion / (soil->density * gravity) : 0,
                                .curvature = curvature,
                                .relaxation = 0.9};
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
enum { LASTING = USI_DEFORMABLE_FLOWING | USI_DEFORMABLE_OVERFLOW | USI_DEFORMABLE_BROKEN };

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

void usi_deformable_add(usi_deformable *patch, int32_t x, int32_t y, int64_t units) {
    uint32_t at = usi_deformable_column_to_write(patch, x, y);
    int64_t sum = usi_deformable_change(patch, at) + units;
    // No wheel throws up a kilometre; a state that somebody made up may have columns as high as that.
    if (sum > USI_DEFORMABLE_MAX_CHANGE) sum = USI_DEFORMABLE_MAX_CHANGE;
    set_change(patch, at, (int32_t)sum);
    usi_deformable_activate(patch, x, y);
}

// ---------------------------------------------------------------- ground models of others

static uint64_t extra_digest_of(const usi_deformable *patch, uint32_t at) {
    const double *numbers = usi_deformable_extra(patch, at);
    uint64_t digest = 0;
    for (int32_t k = 0; k < patch->n_extra; k++) {
        uint64_t bits;
        memcpy(&bits, &numbers[k], sizeof bits);
        // Both halves: a digest of one column takes 32 bits at a time.
        digest += (digest_of(patch, at, (uint32_t)bits) + 3 * digest_of(patch, at, (uint32_t)(bits >> 32))) *
                  (2 * (uint64_t)k + 1);
    }
    return digest;
}

uint64_t usi_deformable_extra_digest(const usi_deformable *patch) {
    uint64_t digest = 0;
    for (uint32_t at = USI_DEFORMABLE_COLUMNS; at < (patch->n_tile + 1) << USI_DEFORMABLE_TILE_BITS; at++)
        digest += extra_digest_of(patch, at);
    return digest;
}

bool usi_deformable_may_be(const usi_deformable *patch, int64_t change) {
    return change >= -(int64_t)(patch->depth / USI_DEFORMABLE_UNIT) && change <= USI_DEFORMABLE_MAX_CHANGE;
}

bool usi_deformable_set(usi_deformable *patch, int32_t x, int32_t y, int64_t change, bool may_flow) {
    if (!usi_deformable_may_be(patch, change)) return false;
    uint32_t at = usi_deformable_column_to_write(patch, x, y);
    if (!is_writable(at)) return false;
    if (change == usi_deformable_change(patch, at)) return true;
    set_change(patch, at, (int32_t)change);
    int64_t deep = -change / (int64_t)(USI_DEFORMABLE_PRESSED_UNIT / USI_DEFORMABLE_UNIT + 0.5);
    if (deep > usi_deformable_pressed(patch, at))
        set_pressed(patch, at, deep < UINT16_MAX ? (uint16_t)deep : UINT16_MAX);
    if (may_flow) usi_deformable_activate(patch, x, y);
    return true;
}

bool usi_deformable_set_extra(usi_deformable *patch, int32_t x, int32_t y, const double *numbers) {
    uint32_t at = usi_deformable_column_to_write(patch, x, y);
    if (!is_writable(at)) return false;
    patch->extra_digest -= extra_digest_of(patch, at);
    memcpy(usi_deformable_extra(patch, at), numbers, (size_t)patch->n_extra * sizeof *numbers);
    patch->extra_digest += extra_digest_of(patch, at);
    return true;
}

// ---------------------------------------------------------------- flow

// Slopes up to this over that of repose are at rest, a twentieth of a degree, and bends up to that over their
// limit: the last micrometres of an avalanche would take most of the visits.
static const double AT_REST = 1.002, AT_REST_BEND = 1.05;

// Limits of a law, in units.
typedef struct limits {
    double repose;        // steepest slope of soil at rest, over one spacing
    double stop, begin;   // steepest slope over one spacing: flow stops, and begins
    double share;         // fraction of the excess that an edge exchanges at once
    int64_t bend[2];      // of h_m - 2 h + h_p, along an axis and along a diagonal
    int64_t floor;        // minimum change of a column: the bedrock
    double cohesive;      // 4 c cos phi / (rho g); 0: no cohesion
    double cosine, sine;  // of the angle of friction
    double tangent;       // of the angle of friction
} limits;

static limits limits_of(const usi_deformable *patch, const usi_deformable_law *law) {
    double spacing = patch->spacing / USI_DEFORMABLE_UNIT;
    double repose = spacing * tan(law->repose);
    limits l = {.repose = repose,
                .stop = AT_REST * repose,
                .begin = fmax(spacing * tan(law->critical), AT_REST * repose),
                .share = 0.5 * law->relaxation,
                .floor = law->is_firm ? 0 : -(int64_t)(patch->depth / USI_DEFORMABLE_UNIT)};
    for (int d = 0; d < 2; d++) {
        double distance = patch->spacing * (d == 0 ? 1 : M_SQRT2);
        l.bend[d] = law->curvature > 0 ? (int64_t)(distance * distance * law->curvature / USI_DEFORMABLE_UNIT)
                                       : INT64_MAX;
    }
    if (law->is_firm || !(law->cohesive_length > 0)) return l;
    l.cosine = cos(law->friction);
    l.sine = sin(law->friction);
    l.tangent = l.sine / l.cosine;
    l.cohesive = law->cohesive_length * l.cosine / USI_DEFORMABLE_UNIT;
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

// A column and its eight neighbours, row by row: 4 is the column itself. Beyond the border lies the height of
// the border.
typedef struct hood {
    int32_t x, y;
    int64_t height[9];
    uint32_t at[9];
    bool is_in[9], is_covered[9];
} hood;
static const uint8_t beside[4] = {5, 7, 3, 1};  // the four neighbours along the axes

static void look_around(const usi_deformable *patch, int32_t x, int32_t y, hood *out) {
    out->x = x;
    out->y = y;
    for (int k = 0; k < 9; k++) {
        int32_t i = x + k % 3 - 1, j = y + k / 3 - 1, u = i < 0 ? 0 : i, v = j < 0 ? 0 : j;
        if (u >= patch->n_x) u = patch->n_x - 1;
        if (v >= patch->n_y) v = patch->n_y - 1;
        out->is_in[k] = u == i && v == j;
        out->at[k] = usi_deformable_column(patch, u, v);
        out->height[k] =
            (int64_t)patch->ground(patch->ground_context, u, v) + usi_deformable_change(patch, out->at[k]);
        out->is_covered[k] = usi_deformable_flag(patch, out->at[k]) & USI_DEFORMABLE_COVERED;
    }
}

// How much of a column may flow: what is above the bedrock. Of ground that cohesion holds together, what was
// put onto it.
static int64_t loose_part(const usi_deformable *patch, const limits *l, uint32_t at) {
    int64_t change = usi_deformable_change(patch, at);
    if (l->cohesive > 0 && !(usi_deformable_flag(patch, at) & USI_DEFORMABLE_BROKEN))
        return change > 0 ? change : 0;
    return change - l->floor;
}

// Moves soil between two neighbours, no more than is loose. None flows under a body; from under it soil flows
// out. False: none has moved.
static bool move(usi_deformable *patch, const limits *l, hood *near, int from, int to, int64_t units) {
    if (usi_deformable_flag(patch, near->at[to]) & USI_DEFORMABLE_COVERED) return false;
    int64_t there = loose_part(patch, l, near->at[from]);
    if (units > there) units = there;
    if (units > INT_MAX) units = INT_MAX;
    if (units <= 0) return false;
    for (int k = 0; k < 2; k++) {
        uint32_t *at = &near->at[k == 0 ? from : to];
        if (is_writable(*at)) continue;
        int i = k == 0 ? from : to;
        *at = usi_deformable_column_to_write(patch, near->x + i % 3 - 1, near->y + i / 3 - 1);
        if (!is_writable(*at)) return false;
    }
    set_change(patch, near->at[from], usi_deformable_change(patch, near->at[from]) - (int32_t)units);
    set_change(patch, near->at[to], usi_deformable_change(patch, near->at[to]) + (int32_t)units);
    near->height[from] -= units;
    near->height[to] += units;
    return true;
}

// Whether a face stands: its drop over its level length, units.
static bool stands(const limits *l, double drop, double level) {
    return drop <= level * l->tangent ||
           sqrt(drop * drop + level * level) - level * l->cosine - drop * l->sine <= l->cohesive;
}

static bool is_in_patch(const usi_deformable *patch, int32_t x, int32_t y) {
    return x >= 0 && x < patch->n_x && y >= 0 && y < patch->n_y;
}

// Follows the face that column (x, y) and the lower one beside it (dx, dy) belong to, up and down as far as
// it is steeper than repose, the steeper end first, and breaks its columns where it does not stand. `lean` is
// along / slope at the edge: faces need not lie across an axis. Returns whether it has broken.
static bool break_face(usi_deformable *patch, const limits *l, int32_t x, int32_t y, int32_t dx, int32_t dy,
                       double lean) {
    const double level = lean * patch->spacing / USI_DEFORMABLE_UNIT, steep = lean * l->repose;
    int64_t top = units_of(patch, x, y), low = units_of(patch, x + dx, y + dy);
    int32_t up = 0, down = 1;
    while (stands(l, (double)(top - low), (up + down) * level)) {
        int32_t ux = x - (up + 1) * dx, uy = y - (up + 1) * dy, lx = x + (down + 1) * dx,
                ly = y + (down + 1) * dy;
        bool may_rise = up < USI_DEFORMABLE_REACH - 1 && is_in_patch(patch, ux, uy),
             may_fall = down < USI_DEFORMABLE_REACH && is_in_patch(patch, lx, ly);
        int64_t above = may_rise ? units_of(patch, ux, uy) : top,
                below = may_fall ? units_of(patch, lx, ly) : low;
        if (fmax((double)(above - top), (double)(low - below)) <= steep) return false;
        if (above - top >= low - below) {
            top = above;
            up++;
        } else {
            low = below;
            down++;
        }
    }
    for (int32_t k = -up; k < down; k++) {
        uint32_t at = usi_deformable_column_to_write(patch, x + k * dx, y + k * dy);
        raise_flag(patch, at, USI_DEFORMABLE_BROKEN);
        activate(patch, at);
    }
    return true;
}

// Height of a column beside an edge, as one end of the edge sees it: a body that stands in the soil there is
// a wall, into which nothing flows.
static int64_t height_beside(const hood *near, int k, int end) {
    const int64_t *h = near->height;
    return near->is_covered[k] && h[k] < h[end] ? h[end] : h[k];
}

// Height differences over the edge from the middle of a neighbourhood to one of the four beside it: along the
// edge, and across.
static void slope_at(const hood *near, int side, double *out_along, double *out_across) {
    const int step = side == 3 || side == 5 ? 3 : 1;
    *out_along = (double)(near->height[4] - near->height[side]);
    *out_across =
        0.25 * (double)(height_beside(near, 4 + step, 4) - height_beside(near, 4 - step, 4) +
                        height_beside(near, side + step, side) - height_beside(near, side - step, side));
}

// Flow along the four diagonals. Where the slope changes within a neighbourhood, the edges leave some of them
// too steep. What cohesion holds falls over the edges alone.
static bool relax_diagonals(usi_deformable *patch, const flow *f, hood *near, const limits **own,
                            limits *own_room) {
    static const uint8_t corner[4] = {0, 2, 6, 8};
    limits other_room;
    bool has_moved = false, was_flowing = usi_deformable_flag(patch, near->at[4]) & USI_DEFORMABLE_FLOWING;
    for (int k = 0; k < 4; k++) {
        int side = corner[k];
        double along = (double)(near->height[4] - near->height[side]), slope = M_SQRT1_2 * fabs(along);
        if (slope <= f->everywhere.stop || !near->is_in[side]) continue;
        int from = along > 0 ? 4 : side, to = along > 0 ? side : 4;
        int32_t x = near->x + from % 3 - 1, y = near->y + from / 3 - 1;
        if (from == 4 && !*own) *own = limits_at(patch, f, x, y, own_room);
        const limits *l = from == 4 ? *own : limits_at(patch, f, x, y, &other_room);
        bool is_flowing =
            was_flowing || (usi_deformable_flag(patch, near->at[side]) & USI_DEFORMABLE_FLOWING);
        if (slope <= (is_flowing ? l->stop : l->begin)) continue;
        if (!move(patch, l, near, from, to, (int64_t)(M_SQRT1_2 * l->share * (slope - l->repose)))) continue;
        raise_flag(patch, near->at[side], USI_DEFORMABLE_FLOWING);
        has_moved = true;
    }
    return has_moved;
}

// Flow over the four edges of a column where the surface is too steep. Returns whether soil moved. The soil
// of the higher column flows, by the law that holds there: so it is the same from whichever side an edge is
// visited. *own: the column's limits, computed when they are first needed, in own_room.
static bool relax_slopes(usi_deformable *patch, const flow *f, hood *near, const limits **own,
                         limits *own_room) {
    limits other_room;
    bool has_moved = false, was_flowing = usi_deformable_flag(patch, near->at[4]) & USI_DEFORMABLE_FLOWING;
    uint32_t first = patch->turn++;
    const double flat = f->everywhere.stop * f->everywhere.stop;
    for (uint32_t k = 0; k < 4; k++) {
        int side = beside[(first + k) % 4];
        double along, across;
        if (!near->is_in[side]) continue;
        slope_at(near, side, &along, &across);
        double square = along * along + across * across;
        if (square <= flat || along == 0) continue;
        int from = along > 0 ? 4 : side, to = along > 0 ? side : 4;
        int32_t x = near->x + from % 3 - 1, y = near->y + from / 3 - 1;
        if (from == 4 && !*own) *own = limits_at(patch, f, x, y, own_room);
        const limits *l = from == 4 ? *own : limits_at(patch, f, x, y, &other_room);
        bool is_flowing =
            was_flowing || (usi_deformable_flag(patch, near->at[side]) & USI_DEFORMABLE_FLOWING);
        double slope = sqrt(square), lean = fabs(along) / slope;
        if (slope <= (is_flowing ? l->stop : l->begin)) continue;
        int64_t units = (int64_t)(l->share * (slope - l->repose) * lean);
        if (units <= 0) continue;
        // A face is followed along the axis that it drops more along: the other edges know less of it.
        if (l->cohesive > 0 && loose_part(patch, l, near->at[from]) == 0 &&
            (fabs(along) < fabs(across) ||
             !break_face(patch, l, x, y, to % 3 - from % 3, to / 3 - from / 3, lean)))
            continue;
        near->at[from] = usi_deformable_column(patch, x, y);
        if (!move(patch, l, near, from, to, units)) continue;
        raise_flag(patch, near->at[side], USI_DEFORMABLE_FLOWING);
        has_moved = true;
    }
    return has_moved;
}

// Flow that levels a spike or notch of a single column, which feet leave: where the curvature along one of
// the four lines through it is above the limit. Returns whether soil moved.
static bool relax_curvature(usi_deformable *patch, const flow *f, hood *near, const limits **own,
                            limits *own_room) {
    static const uint8_t line[4] = {5, 7, 8, 6};  // one end of each; 8 less it is the other
    limits other_room;
    bool has_moved = false;
    for (int d = 0; d < 4; d++) {
        const int end[2] = {line[d], 8 - line[d]};
        int64_t *h = near->height, bend = h[end[0]] - 2 * h[4] + h[end[1]], size = bend < 0 ? -bend : bend;
        if (size <= f->everywhere.bend[d >= 2] || !near->is_in[end[0]] || !near->is_in[end[1]]) continue;
        if (!*own) *own = limits_at(patch, f, near->x, near->y, own_room);
        if ((double)size <= AT_REST_BEND * (double)(*own)->bend[d >= 2]) continue;
        int64_t half = (size - (*own)->bend[d >= 2]) / 8;  // to or from each side
        // Nothing flows uphill, nor so much that it would flow back: at the foot of a wall soil comes from
        // the wall alone.
        for (int k = 0; k < 2; k++) {
            int32_t x = near->x + end[k] % 3 - 1, y = near->y + end[k] / 3 - 1;
            int64_t fall = bend > 0 ? h[end[k]] - h[4] : h[4] - h[end[k]],
                    units = half < fall / 4 ? half : fall / 4;
            if (units <= 0) continue;
            has_moved |= bend > 0
                             ? move(patch, limits_at(patch, f, x, y, &other_room), near, end[k], 4, units)
                             : move(patch, *own, near, 4, end[k], units);
        }
    }
    return has_moved;
}

// Visits one column. Returns whether soil moved.
static bool visit(usi_deformable *patch, const flow *f, int32_t x, int32_t y) {
    limits own_room;
    const limits *own = NULL;
    hood near;
    look_around(patch, x, y, &near);
    bool has_moved = relax_slopes(patch, f, &near, &own, &own_room);
    has_moved |= relax_diagonals(patch, f, &near, &own, &own_room);
    has_moved |= relax_curvature(patch, f, &near, &own, &own_room);
    uint32_t here = usi_deformable_column(patch, x, y);
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

// Number of the four neighbours of a column that are in the print; 0 for one that cannot rise itself.
static int64_t pressed_neighbours(const usi_deformable *patch, int32_t x, int32_t y) {
    if (!is_in_patch(patch, x, y) || (usi_deformable_flag(patch, usi_deformable_column(patch, x, y)) &
                                      (USI_DEFORMABLE_COVERED | USI_DEFORMABLE_PRINT)))
        return 0;
    int64_t n = 0;
    // Mostly all lie in one tile.
    if ((x & 63) > 0 && (x & 63) < 63 && (y & 63) > 0 && (y & 63) < 63) {
        uint32_t at = usi_deformable_column(patch, x, y);
        const uint8_t *flag = patch->tile[at >> USI_DEFORMABLE_TILE_BITS].flag + at % USI_DEFORMABLE_COLUMNS;
        return (flag[1] & USI_DEFORMABLE_PRINT ? 1 : 0) + (flag[-1] & USI_DEFORMABLE_PRINT ? 1 : 0) +
               (flag[USI_DEFORMABLE_TILE] & USI_DEFORMABLE_PRINT ? 1 : 0) +
               (flag[-USI_DEFORMABLE_TILE] & USI_DEFORMABLE_PRINT ? 1 : 0);
    }
    for (int d = 0; d < 4; d++) {
        int32_t i = x + step_x[d], j = y + step_y[d];
        if (is_in_patch(patch, i, j) &&
            (usi_deformable_flag(patch, usi_deformable_column(patch, i, j)) & USI_DEFORMABLE_PRINT))
            n++;
    }
    return n;
}

// Raises the columns round those of the print by a volume, in proportion to how many neighbours in it each
// has. Returns the volume that has risen.
static int64_t raise_around(usi_deformable *patch, usi_deformable_area p, int64_t volume) {
    int64_t n_edge = 0, n_risen = 0;
    for (int32_t y = p.y0 - 1; y <= p.y1; y++) {
        for (int32_t x = p.x0 - 1; x <= p.x1; x++)
            n_edge += pressed_neighbours(patch, x, y);
    }
    // Each column takes its fraction of what is left, so that the last takes the rest and nothing is lost to
    // rounding.
    for (int32_t y = p.y0 - 1; y <= p.y1 && n_edge > 0; y++) {
        for (int32_t x = p.x0 - 1; x <= p.x1 && n_edge > 0; x++) {
            int64_t n = pressed_neighbours(patch, x, y);
            if (n == 0) continue;
            int64_t units = volume * n / n_edge;
            volume -= units;
            n_edge -= n;
            if (units == 0) continue;
            usi_deformable_add(patch, x, y, units);
            n_risen += units;
        }
    }
    return n_risen;
}

void usi_deformable_press_column(usi_deformable *patch, int32_t x, int32_t y, int32_t goal,
                                 usi_deformable_pressed_volume *io) {
    uint32_t at = usi_deformable_column_to_write(patch, x, y);
    if (!is_writable(at)) return;
    patch->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS] |= USI_DEFORMABLE_PRINT;
    int64_t floor = -(int64_t)(patch->depth / USI_DEFORMABLE_UNIT),
            change = (int64_t)goal - patch->ground(patch->ground_context, x, y);
    if (change < floor) change = floor;
    if (change >= usi_deformable_change(patch, at)) return;
    io->n_pressed += usi_deformable_change(patch, at) - change;
    set_change(patch, at, (int32_t)change);
    int64_t deep = -change / (int64_t)(USI_DEFORMABLE_PRESSED_UNIT / USI_DEFORMABLE_UNIT + 0.5);
    if (deep > usi_deformable_pressed(patch, at))
        set_pressed(patch, at, deep < UINT16_MAX ? (uint16_t)deep : UINT16_MAX);
    lower_flag(patch, at, USI_DEFORMABLE_BROKEN);
    usi_deformable_activate(patch, x, y);
}

void usi_deformable_press_end(usi_deformable *patch, usi_deformable_area area, double compaction,
                              usi_deformable_pressed_volume *io) {
    int64_t rise = io->n_pressed - (int64_t)(compaction * (double)io->n_pressed);
    if (rise > 0) io->n_risen += raise_around(patch, area, rise);
    for (int32_t y = area.y0; y < area.y1; y++) {
        for (int32_t x = area.x0; x < area.x1; x++) {
            uint32_t at = usi_deformable_column(patch, x, y);
            if (!is_writable(at)) continue;
            patch->tile[at >> USI_DEFORMABLE_TILE_BITS].flag[at % USI_DEFORMABLE_COLUMNS] &=
                (uint8_t)~USI_DEFORMABLE_PRINT;
        }
    }
}

usi_deformable_pressed_volume usi_deformable_press(usi_deformable *patch, int32_t x0, int32_t y0, int32_t x1,
                                                   int32_t y1, const int32_t *to, double compaction) {
    usi_deformable_pressed_volume out = {0};
    for (int32_t y = y0; y < y1; y++) {
        for (int32_t x = x0; x < x1; x++) {
            int32_t goal = to[(size_t)(y - y0) * (size_t)(x1 - x0) + (size_t)(x - x0)];
            if (goal != INT32_MAX) usi_deformable_press_column(patch, x, y, goal, &out);
        }
    }
    usi_deformable_press_end(patch, (usi_deformable_area){x0, y0, x1, y1}, compaction, &out);
    return out;
}

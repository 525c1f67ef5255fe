// Rocks and trees by density.
//
// Each cell of the plane has candidates, independent of all others. A candidate stays unless one of higher
// rank lies too near: of rocks the larger one, of trees the one with the higher random number (Matern's hard
// core). Cells are as wide as the maximum distance at which two can meet, so that a look at the eight
// neighbours settles it, and any part of the ground can be made by itself.
//
// The candidates are as many more as the thinning takes away. Of trees of density c, within distance d,
// (1 - exp(-c pi d^2)) / (pi d^2) stay. Of rocks between two sizes near d, those stay that no candidate of a
// larger size D lies within (d + D) / 2 of, and none of their own that is larger: the same, times
// exp(-sum over D of c(D) pi (d + D)^2 / 4). From the largest size down each c follows from those before it.
#include "base/memory.h"
#include "terrain/random_cell.h"
#include "understudy/terrain.h"

enum { SIZES = 256, MAX_PER_CELL = 4096 };
static const uint64_t STREAM = 0x7363617474;
static const double MAX_PACKING = 0.9;  // of the densest packing that thinning reaches

typedef struct scatter_grid {
    const us_scatter_def *def;
    uint64_t key;
    double cell, mean;         // m; candidates in each
    double number[SIZES + 1];  // rocks: how many candidates for each m^2 are smaller than size i
    double kept;               // rocks: how many for each m^2 stay
} scatter_grid;

us_scatter_def us_scatter_def_default(us_scatter_kind kind) {
    if (kind == US_SCATTER_TREES)
        return (us_scatter_def){.kind = kind, .density = 0.02, .min_size = 5, .max_size = 15, .distance = 1};
    return (us_scatter_def){.density = 0.05, .min_size = 0.2, .max_size = 2};
}

static us_status check(const us_scatter_def *def, us_error *err) {
    if (!def) return us_error_set(err, US_ERR_ARG, NULL, "give a definition", "an argument is missing");
    if (def->kind != US_SCATTER_ROCKS && def->kind != US_SCATTER_TREES)
        return us_error_set(err, US_ERR_VALUE, NULL, "take one of us_scatter_kind", "invalid kind number %d",
                            (int)def->kind);
    bool is_rocks = def->kind == US_SCATTER_ROCKS;
    if (!(def->min_size > 0) || !(def->max_size >= def->min_size) || !(def->max_size <= 1000))
        return us_error_set(
            err, US_ERR_VALUE, NULL,
            "give a minimum size greater than 0 m, and a maximum of up to 1000 m that is not less",
            "%s from %g to %g m", is_rocks ? "rocks" : "trees", def->min_size, def->max_size);
    if (!(def->x0 <= def->x1) || !(def->y0 <= def->y1) || !(fabs(def->x0) <= 1e9) ||
        !(fabs(def->x1) <= 1e9) || !(fabs(def->y0) <= 1e9) || !(fabs(def->y1) <= 1e9))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "write x and y of its south-west corner, then of its north-east corner, in m",
                            "the area from (%g, %g) to (%g, %g)", def->x0, def->y0, def->x1, def->y1);
    if (is_rocks && !(def->density >= 0 && def->density <= 0.5))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a share of 0 to 0.5",
                            "rocks that cover %g of the ground", def->density);
    if (is_rocks) return US_OK;
    if (!(def->distance >= 0) || !(def->distance <= 1000) || !(def->density >= 0) || !(def->density <= 100))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "write a density of 0 to 100 for each m^2, and a distance of 0 to 1000 m",
                            "%g trees for each m^2, %g m apart", def->density, def->distance);
    if (def->density * M_PI * def->distance * def->distance > MAX_PACKING)
        return us_error_set(err, US_ERR_VALUE, NULL, "write a lower density, or a smaller distance",
                            "%g trees for each m^2 do not fit %g m apart: %.3g would", def->density,
                            def->distance, MAX_PACKING / (M_PI * def->distance * def->distance));
    return US_OK;
}

static double size_at(const us_scatter_def *def, double i) {
    return def->min_size * usi_exp_of(i / (double)SIZES * usi_log_of(def->max_size / def->min_size));
}

// Rocks for each m^2 between two sizes: the area that they cover over that of one.
static double rocks_between(const us_scatter_def *def, int32_t i) {
    const double q = 1.79 + 0.152 / def->density, d = size_at(def, i + 0.5);
    return def->density * (usi_exp_of(-q * size_at(def, i)) - usi_exp_of(-q * size_at(def, i + 1))) /
           (0.25 * M_PI * d * d);
}

// Candidates of each size for the rocks that are to stay. False: so many do not fit beside each other.
static bool find_rocks(scatter_grid *k) {
    const us_scatter_def *def = k->def;
    double count[SIZES];
    for (int32_t i = SIZES - 1; i >= 0; i--) {
        const double d = size_at(def, i + 0.5), own = M_PI * d * d, n = rocks_between(def, i);
        double exponent = 0;
        for (int32_t j = i + 1; j < SIZES; j++) {
            const double sum = d + size_at(def, j + 0.5);
            exponent += 0.25 * M_PI * sum * sum * count[j];
        }
        const double share = exponent < 30 ? n * own * usi_exp_of(exponent) : 1;
        if (!(share < MAX_PACKING)) return false;
        count[i] = share > 1e-9 ? -usi_log_of(1 - share) / own : share / own;
        k->kept += n;
    }
    for (int32_t i = 0; i < SIZES; i++)
        k->number[i + 1] = k->number[i] + count[i];
    return true;
}

static us_status prepare(scatter_grid *k, const us_scatter_def *def, us_error *err) {
    *k = (scatter_grid){.def = def,
                        .key = usi_random_key(def->seed, def->stream + STREAM + (uint64_t)def->kind)};
    double density = 0, reach = def->distance;
    if (def->kind == US_SCATTER_ROCKS) {
        if (def->density > 0 && !find_rocks(k))
            return us_error_set(
                err, US_ERR_VALUE, NULL, "give a lower density, or a larger minimum size",
                "rocks from %g to %g m that cover %g of the ground do not fit beside each other",
                def->min_size, def->max_size, def->density);
        density = k->number[SIZES];
        reach = def->max_size;
    } else {
        double area = M_PI * reach * reach;
        density = area * def->density > 1e-9 ? -usi_log_of(1 - area * def->density) / area : def->density;
    }
    k->cell = fmax(fmax(reach, density > 0 ? sqrt(2 / density) : 1), 1e-3);
    // A cell is no wider than 10 km, unless instances reach farther.
    k->cell = fmin(k->cell, fmax(1e4, reach));
    k->mean = density * k->cell * k->cell;
    return US_OK;
}

double us_scatter_density(const us_scatter_def *def) {
    scatter_grid k;
    if (check(def, NULL) != US_OK) return NAN;
    if (def->kind == US_SCATTER_TREES) return def->density;
    return prepare(&k, def, NULL) == US_OK ? k.kept : NAN;
}

// Candidate for an instance, with its rank.
typedef struct candidate {
    double x, y, size, rank;
} candidate;

static candidate draw(const scatter_grid *k, uint64_t own, int64_t i, int64_t j, int32_t c) {
    const us_scatter_def *def = k->def;
    candidate out = {.x = ((double)i + usi_cell_uniform(own, c, 0)) * k->cell,
                     .y = ((double)j + usi_cell_uniform(own, c, 1)) * k->cell};
    double u = usi_cell_uniform(own, c, 2);
    if (def->kind == US_SCATTER_TREES) {
        out.size = def->min_size + u * (def->max_size - def->min_size);
        out.rank = usi_cell_uniform(own, c, 3);
        return out;
    }
    double want = u * k->number[SIZES];
    int32_t low = 0, high = SIZES;
    while (high - low > 1) {
        int32_t middle = (low + high) / 2;
        *(k->number[middle] <= want ? &low : &high) = middle;
    }
    double width = k->number[high] - k->number[low];
    out.rank = out.size = size_at(def, low + (width > 0 ? (want - k->number[low]) / width : 0));
    return out;
}

// The candidates of a cell and of the eight around it, drawn once: each of them meets all others.
typedef struct around {
    us_allocator allocator;
    candidate *c;
    int32_t room, n, own, n_own;  // `own`: where those of the cell itself begin, and how many they are
} around;

static bool make_room(around *x, int32_t n) {
    if (n <= x->room) return true;
    const int32_t room = n + n / 2;
    candidate *c = usi_alloc(&x->allocator, (size_t)room * sizeof *c, _Alignof(candidate));
    if (!c) return false;
    usi_release(&x->allocator, x->c, (size_t)x->room * sizeof *c, _Alignof(candidate));
    x->c = c;
    x->room = room;
    return true;
}

static bool draw_around(const scatter_grid *k, int64_t i, int64_t j, around *x) {
    int32_t count[9], n = 0;
    for (int q = 0; q < 9; q++) {
        count[q] = usi_cell_count(usi_cell_key(k->key, i + q % 3 - 1, j + q / 3 - 1), k->mean);
        n += count[q];
    }
    if (!make_room(x, n)) return false;
    x->n = 0;
    for (int q = 0; q < 9; q++) {
        const int64_t a = i + q % 3 - 1, b = j + q / 3 - 1;
        const uint64_t own = usi_cell_key(k->key, a, b);
        if (q == 4) x->own = x->n;
        for (int32_t c = 0; c < count[q]; c++)
            x->c[x->n++] = draw(k, own, a, b, c);
    }
    x->n_own = count[4];
    return true;
}

static bool is_covered(const scatter_grid *k, const around *x, int32_t self) {
    const candidate *me = &x->c[self];
    const bool is_rocks = k->def->kind == US_SCATTER_ROCKS;
    for (int32_t c = 0; c < x->n; c++) {
        const candidate *other = &x->c[c];
        if (other->rank < me->rank || c == self) continue;
        const double distance = is_rocks ? 0.5 * (me->size + other->size) : k->def->distance,
                     dx = other->x - me->x, dy = other->y - me->y;
        if (dx * dx + dy * dy < distance * distance) return true;
    }
    return false;
}

static us_scatter_instance finish(const scatter_grid *k, uint64_t own, int32_t c, const candidate *me) {
    us_scatter_instance t = {.x = me->x,
                             .y = me->y,
                             .yaw = 2 * M_PI * usi_cell_uniform(own, c, 4) - M_PI,
                             .number = usi_random_bits(own, (uint64_t)c * 16 + 5)};
    double u = usi_cell_uniform(own, c, 6), w = usi_cell_uniform(own, c, 7);
    if (k->def->kind == US_SCATTER_ROCKS) {
        t.diameter = me->size;
        t.height = me->size * (0.4 + 0.35 * u);
    } else {
        t.height = me->size;
        t.diameter = me->size * (0.02 + 0.02 * u);
        t.crown = me->size * (0.25 + 0.2 * w);
    }
    return t;
}

typedef us_status visitor(void *context, const us_scatter_instance *instance, us_error *err);

static us_status visit_cell(const scatter_grid *k, int64_t i, int64_t j, around *x, visitor *visit,
                            void *context, us_error *err) {
    const us_scatter_def *def = k->def;
    const uint64_t own = usi_cell_key(k->key, i, j);
    us_status status = US_OK;
    if (!draw_around(k, i, j, x))
        return us_error_set(err, US_ERR_MEMORY, NULL,
                            "give a lower density, or sizes that are less far apart",
                            "no memory for %.3g instances within reach of one another", k->mean);
    for (int32_t c = 0; c < x->n_own && !status; c++) {
        const candidate *me = &x->c[x->own + c];
        if (!(me->x >= def->x0 && me->x < def->x1 && me->y >= def->y0 && me->y < def->y1) ||
            is_covered(k, x, x->own + c))
            continue;
        if (def->is_allowed && !def->is_allowed(def->context, me->x, me->y)) continue;
        const us_scatter_instance instance = finish(k, own, c, me);
        status = visit(context, &instance, err);
    }
    return status;
}

us_status us_scatter_visit(const us_scatter_def *def,
                           us_status (*visit)(void *context, const us_scatter_instance *instance,
                                              us_error *err),
                           void *context, us_error *err) {
    us_status status = check(def, err);
    if (status != US_OK) return status;
    if (!visit) return us_error_set(err, US_ERR_ARG, NULL, "give a function", "an argument is missing");
    scatter_grid k;
    status = prepare(&k, def, err);
    if (status != US_OK) return status;
    if (!(k.mean > 0) || !(def->x0 < def->x1) || !(def->y0 < def->y1)) return US_OK;
    if (k.mean > (double)MAX_PER_CELL)
        return us_error_set(err, US_ERR_LIMIT, NULL, "give a lower density, or sizes that are less far apart",
                            "%.3g instances within reach of one another", k.mean);
    around x = {.allocator = us_allocator_default()};
    int64_t i1 = (int64_t)floor(def->x1 / k.cell), j1 = (int64_t)floor(def->y1 / k.cell);
    for (int64_t j = (int64_t)floor(def->y0 / k.cell); j <= j1 && !status; j++) {
        for (int64_t i = (int64_t)floor(def->x0 / k.cell); i <= i1 && !status; i++)
            status = visit_cell(&k, i, j, &x, visit, context, err);
    }
    usi_release(&x.allocator, x.c, (size_t)x.room * sizeof *x.c, _Alignof(candidate));
    return status;
}

// Corners spread over an ellipsoid by the golden angle, each moved in or out a little; flat on the ground.
void us_rock_points(const us_scatter_instance *rock, us_vec3 out[US_ROCK_POINTS]) {
    double yaw = rock->yaw, long_side = 0.5 * rock->diameter,
           short_side = long_side * (0.7 + 0.3 * usi_random_uniform(rock->number, 1));
    usi_v4 s, c;
    usi_v4_sin_cos(usi_v4_all(0.5 * yaw), &s, &c);
    double sine = 2 * s[0] * c[0], cosine = 1 - 2 * s[0] * s[0];
    double angle_x = 1, angle_y = 0;
    for (int32_t i = 0; i < US_ROCK_POINTS; i++) {
        // Heights from 0 to 1 of the rock in even steps; on the way up the outline narrows as an ellipse
        // does.
        double h = (i + 0.5) / (double)US_ROCK_POINTS, level = i < US_ROCK_POINTS / 2 ? 0.25 * h : h;
        double r =
            sqrt(1 - level * level) * (0.85 + 0.15 * usi_random_uniform(rock->number, 2 + (uint64_t)i));
        double x = long_side * r * angle_x, y = short_side * r * angle_y;
        out[i] = (us_vec3){cosine * x - sine * y, sine * x + cosine * y,
                           i < US_ROCK_POINTS / 3 ? 0 : level * rock->height};
        // The golden angle, 2.39996 rad.
        double next_x = -0.7373688780783198 * angle_x - 0.6754902942615236 * angle_y;
        angle_y = 0.6754902942615236 * angle_x - 0.7373688780783198 * angle_y;
        angle_x = next_x;
    }
}

// Craters by density.
//
//        rim                      R
//      __/\__________________|____/\___      plain
//   ___     \               /         ```--- ejecta blanket: height * (r / R)^-3, 0 from 4 R on
//            \_           _/
//              `---------'   floor           bowl: a parabola, cut by a flat floor where it is large
//
// With age the edge is rounded, the rim sinks and the bowl fills up: the fresh profile blends into a soft
// hollow, shallower and wider. Craters add up, large ones first, so that one inside another follows its
// slope.
//
// Diameters are drawn by octaves. Each octave divides the plane into cells of its own size; the craters of a
// cell are a function of the cell alone.
#include "terrain/random_cell.h"
#include "understudy/terrain.h"

enum { OCTAVES = 32 };
static const double REACH = 4;         // radii to the end of the ejecta blanket
static const double CELL = 4;          // width of an octave's cells, over its maximum diameter
static const double FLOOR = 0.3;       // radius of the flat floor, over that of the crater
static const double OLD_DEPTH = 0.25;  // depth of an old crater, over that of a fresh one
static const double OLD_WIDTH = 1.5;   // radii to the edge of an old crater
static const double ROUNDING = 0.2;    // radii over which the edge of an old crater is rounded
static const double MAX_DENSE = 10;    // maximum of density * min_size^2
static const uint64_t STREAM = 0x6372617465;

us_crater_def us_crater_def_default(void) {
    return (us_crater_def){
        .min_size = 10, .max_size = 500, .slope = 2, .depth = 0.2, .rim = 0.036, .age = 0.9};
}

static us_status check(const us_crater_def *def, us_error *err) {
    if (!def) return us_error_set(err, US_ERR_ARG, NULL, "give a definition", "an argument is missing");
    if (!(def->min_size > 0) || !(def->max_size >= def->min_size) || !isfinite(def->max_size) ||
        !(def->max_size / def->min_size < ldexp(1, OCTAVES)))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "give a minimum diameter greater than 0 m, and a maximum that is not less",
                            "diameters of craters from %g to %g m", def->min_size, def->max_size);
    if (!(def->slope >= 0.5 && def->slope <= 6))
        return us_error_set(err, US_ERR_VALUE, NULL, "it lies between 0.5 and 6",
                            "the slope of the numbers of craters is %g", def->slope);
    if (!(def->depth >= 0 && def->depth <= 1) || !(def->rim >= 0 && def->rim <= def->depth) ||
        !(def->age >= 0 && def->age <= 1))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "a depth of 0 to 1, a rim of at most that, and an age of 0 to 1",
                            "depth %g, rim %g, age %g", def->depth, def->rim, def->age);
    if (!(def->density >= 0) || !(def->density * def->min_size * def->min_size <= MAX_DENSE))
        return us_error_set(err, US_ERR_VALUE, NULL, "give fewer for each m^2, or larger ones",
                            "%g craters of at least %g m for each m^2 would leave no ground between them",
                            def->density, def->min_size);
    return US_OK;
}

static double power(double x, double y) { return x > 0 ? usi_exp_of(y * usi_log_of(x)) : 0; }

double us_crater_density(const us_crater_def *def, double diameter) {
    if (check(def, NULL) != US_OK || !(diameter >= 0)) return NAN;
    if (diameter >= def->max_size) return 0;
    return def->density *
           (power((diameter > def->min_size ? diameter : def->min_size) / def->min_size, -def->slope) -
            power(def->max_size / def->min_size, -def->slope)) /
           (def->max_size > def->min_size ? 1 - power(def->max_size / def->min_size, -def->slope) : 1);
}

// Height of a fresh crater, x radii from the middle.
static double fresh(const us_crater_def *def, double diameter, double x) {
    double rim = def->rim * diameter, bottom = (def->depth - def->rim) * diameter;
    x = fabs(x);
    if (x < 1)
        return -bottom + (bottom + rim) * (x > FLOOR ? (x * x - FLOOR * FLOOR) / (1 - FLOOR * FLOOR) : 0);
    const double end = 1 / (REACH * REACH * REACH);
    return x < REACH ? rim * (1 / (x * x * x) - end) / (1 - end) : 0;
}

double us_crater_profile(const us_crater_def *def, double diameter, double age, double r) {
    if (!def) return NAN;
    double x = fabs(r) / (0.5 * diameter), width = ROUNDING * age, old = 0;
    if (x < OLD_WIDTH) {
        double s = 1 - x * x / (OLD_WIDTH * OLD_WIDTH);
        old = -OLD_DEPTH * (def->depth - def->rim) * diameter * s * s;
    }
    double sharp = fresh(def, diameter, x);
    if (age > 0)
        sharp = 0.5 * sharp + 0.25 * (fresh(def, diameter, x - width) + fresh(def, diameter, x + width));
    return sharp + age * (old - sharp);
}

typedef struct height_grid {
    double spacing;
    int32_t x, y, n_x, n_y, stride;
    double *heights;
} height_grid;

// The first node at or after a coordinate, within 0 .. n after `first`.
static int32_t first_node(double at, double spacing, int32_t first, int32_t n) {
    double i = ceil(at / spacing) - first;
    return i < 0 ? 0 : i > n ? n : (int32_t)i;
}

static void add_one(const us_crater_def *def, const height_grid *s, double x, double y, double diameter,
                    double age) {
    double reach = 0.5 * (REACH + ROUNDING) * diameter;
    int32_t i0 = first_node(x - reach, s->spacing, s->x, s->n_x),
            i1 = first_node(x + reach, s->spacing, s->x, s->n_x);
    int32_t j0 = first_node(y - reach, s->spacing, s->y, s->n_y),
            j1 = first_node(y + reach, s->spacing, s->y, s->n_y);
    for (int32_t j = j0; j < j1; j++) {
        // Where a node lies does not depend on the part of the ground that it is made with.
        double dy = ((double)s->y + j) * s->spacing - y;
        for (int32_t i = i0; i < i1; i++) {
            double dx = ((double)s->x + i) * s->spacing - x, r2 = dx * dx + dy * dy;
            if (r2 < reach * reach)
                s->heights[(size_t)j * (size_t)s->stride + (size_t)i] +=
                    us_crater_profile(def, diameter, age, sqrt(r2));
        }
    }
}

us_status us_crater_add(const us_crater_def *def, double spacing, int32_t x, int32_t y, int32_t n_x,
                        int32_t n_y, int32_t stride, double *heights, us_error *err) {
    us_status status = check(def, err);
    if (status != US_OK) return status;
    if (!heights || !(spacing > 0) || n_x < 0 || n_y < 0 || stride < n_x)
        return us_error_set(err, US_ERR_ARG, NULL, "give heights with their place",
                            "no heights to add craters to");
    height_grid s = {.spacing = spacing, .x = x, .y = y, .n_x = n_x, .n_y = n_y, .stride = stride};
    s.heights = heights;
    double west = x * spacing, south = y * spacing;
    int32_t n_octave = 1;
    while (ldexp(def->min_size, n_octave) < def->max_size)
        n_octave++;
    for (int32_t octave = n_octave - 1; octave >= 0; octave--) {
        double low = ldexp(def->min_size, octave), high = fmin(2 * low, def->max_size), cell = CELL * high,
               reach = 0.5 * (REACH + ROUNDING) * high;
        double mean = (us_crater_density(def, low) - us_crater_density(def, high)) * cell * cell;
        if (def->max_size == def->min_size) mean = def->density * cell * cell;
        uint64_t key = usi_random_key(def->seed, def->stream + STREAM + (uint64_t)octave);
        int64_t i0 = (int64_t)floor((west - reach) / cell),
                i1 = (int64_t)floor((west + n_x * spacing + reach) / cell);
        int64_t j0 = (int64_t)floor((south - reach) / cell),
                j1 = (int64_t)floor((south + n_y * spacing + reach) / cell);
        double at_low = power(low / def->min_size, -def->slope),
               at_high = power(high / def->min_size, -def->slope);
        for (int64_t j = j0; j <= j1; j++) {
            for (int64_t i = i0; i <= i1; i++) {
                uint64_t own = usi_cell_key(key, i, j);
                int32_t n = usi_cell_count(own, mean);
                for (int32_t c = 0; c < n; c++) {
                    double share = usi_cell_uniform(own, c, 2);
                    double diameter =
                        def->min_size * power(at_low + share * (at_high - at_low), -1 / def->slope);
                    add_one(def, &s, ((double)i + usi_cell_uniform(own, c, 0)) * cell,
                            ((double)j + usi_cell_uniform(own, c, 1)) * cell, diameter,
                            def->age * usi_cell_uniform(own, c, 3));
                }
            }
        }
    }
    return US_OK;
}

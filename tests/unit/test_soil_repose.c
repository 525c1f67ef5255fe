// Angles at which loose soil comes to rest, and heights at which soil with cohesion stands: over spacings,
// angles and directions. What is expected is computed here from soil mechanics, by other formulas than those
// of the automaton.
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "soil/deformable.h"

#define DEG (M_PI / 180)
enum { MAX_TILES = 25, CAP = 1 << 17 };

// A face between two levels, or a plane: ground that rises by `slope` along direction `angle`, no higher than
// `high` above its foot.
typedef struct ground_form {
    double spacing, slope, angle, high;
    int32_t n;
} ground_form;

static int32_t form_units(const void *context, int32_t x, int32_t y) {
    const ground_form *g = context;
    double u = (x - 0.5 * (g->n - 1)) * g->spacing, v = (y - 0.5 * (g->n - 1)) * g->spacing,
           along = u * cos(g->angle) + v * sin(g->angle);
    return (int32_t)lrint(fmin(fmax(along * g->slope, -0.5 * g->high), 0.5 * g->high) / USI_DEFORMABLE_UNIT);
}

static usi_deformable_tile tiles[MAX_TILES + 1];
static usi_deformable_tile_info spots[MAX_TILES + 1];
static uint32_t slots[MAX_TILES], rings[2][CAP];

static usi_deformable fresh(const ground_form *g) {
    memset(tiles, 0, sizeof tiles);
    memset(spots, 0, sizeof spots);
    memset(slots, 0, sizeof slots);
    int32_t n_tile = (g->n + USI_DEFORMABLE_TILE - 1) / USI_DEFORMABLE_TILE;
    assert_true(n_tile * n_tile <= MAX_TILES);
    return (usi_deformable){.n_x = g->n,
                            .n_y = g->n,
                            .spacing = g->spacing,
                            .depth = 10,
                            .ground = form_units,
                            .ground_context = g,
                            .n_tile_x = n_tile,
                            .slot = slots,
                            .tile = tiles,
                            .spot = spots,
                            .max_tile = MAX_TILES,
                            .ring = rings[0],
                            .wait = rings[1],
                            .cap = CAP};
}

static us_soil soil_of(double repose, double critical, double cohesion) {
    us_soil soil = us_soil_default();
    soil.repose_angle = repose;
    soil.critical_angle = critical;
    soil.cohesion = cohesion;
    return soil;
}

// Pours a column of soil of the given volume in the middle, and lets it come to rest.
static void pour(usi_deformable *patch, const us_soil *soil, double volume, double radius) {
    usi_deformable_law law = usi_deformable_law_of(soil, patch->spacing, 9.81);
    const double cell = patch->spacing * patch->spacing;
    int64_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t y = 0; y < patch->n_y; y++) {
            for (int32_t x = 0; x < patch->n_x; x++) {
                if (hypot(x - patch->n_x / 2, y - patch->n_y / 2) * patch->spacing > radius) continue;
                if (pass == 0)
                    n++;
                else
                    usi_deformable_add(patch, x, y,
                                       (int32_t)(volume / cell / (double)n / USI_DEFORMABLE_UNIT));
            }
        }
    }
    usi_deformable_settle(patch, &law, INT64_MAX);
    assert_true(patch->n == 0 && patch->n_lost == 0);
}

// The steepness of a heap's flank in one of so many sectors, by least squares of height over radius between a
// fifth and four fifths of its height. NAN: too few columns.
static double flank(const usi_deformable *patch, int sector, int n_sector, double peak) {
    double sx = 0, sy = 0, sxx = 0, sxy = 0, m = 0;
    for (int32_t y = 0; y < patch->n_y; y++) {
        for (int32_t x = 0; x < patch->n_x; x++) {
            int32_t dx = x - patch->n_x / 2, dy = y - patch->n_y / 2;
            double turn = atan2(dy, dx) / (2 * M_PI) * n_sector + 0.5, r = hypot(dx, dy) * patch->spacing,
                   h = usi_deformable_height(patch, x, y);
            if (((int)floor(turn) + n_sector) % n_sector != sector || h < 0.2 * peak || h > 0.8 * peak)
                continue;
            sx += r;
            sy += h;
            sxx += r * r;
            sxy += r * h;
            m += 1;
        }
    }
    return m < 4 ? NAN : -atan((m * sxy - sx * sy) / (m * sxx - sx * sx));
}

static void a_heap_lies_at_the_angle_of_repose_at_every_spacing_and_in_every_direction(void **state) {
    (void)state;
    static const double spacings[] = {0.01, 0.02, 0.05, 0.2}, angles[] = {20, 33, 36, 45};
    const bool is_long = getenv("US_LONG_TESTS") != NULL;
    for (int a = 0; a < 4; a++) {
        for (int k = 0; k < 4; k++) {
            // Cohesion, which soil that was poured does not have, changes nothing; nor does the angle at
            // which what lies begins to flow.
            for (int c = 0; c < 2; c++) {
                us_soil soil = soil_of(angles[a] * DEG, (angles[a] + 3 * c) * DEG, c ? 1040 : 0);
                // Of a radius of so many columns at rest.
                double columns = is_long ? 40 : 18, radius = columns * spacings[k], t = tan(angles[a] * DEG),
                       volume = M_PI / 3 * pow(radius, 3) * t;
                ground_form level = {.spacing = spacings[k], .n = (int32_t)(2.6 * columns) | 1};
                usi_deformable patch = fresh(&level);
                pour(&patch, &soil, volume, 0.4 * radius);
                double peak = radius * t, worst = 0, sum = 0;
                for (int s = 0; s < 16; s++) {
                    double off = flank(&patch, s, 16, peak) / DEG - angles[a];
                    sum += off / 16;
                    if (!(fabs(off) <= fabs(worst))) worst = off;
                }
                printf("    %2g degrees at %3g cm: mean %+.2f, worst %+.2f\n", angles[a], 100 * spacings[k],
                       sum, worst);
                if (!(fabs(worst) <= 0.5)) fail_msg("%g degrees off", worst);
            }
        }
    }
}

static void wake_middle(usi_deformable *patch, int32_t around) {
    for (int32_t y = patch->n_y / 2 - around; y <= patch->n_y / 2 + around; y++) {
        for (int32_t x = patch->n_x / 2 - around; x <= patch->n_x / 2 + around; x++)
            usi_deformable_activate(patch, x, y);
    }
}

static void a_slope_begins_to_flow_at_the_critical_angle_in_every_direction(void **state) {
    (void)state;
    static const double spacings[] = {0.005, 0.02, 0.05, 0.3};
    for (uint64_t k = 0; k < 400; k++) {
        double critical = (10 + 40 * us_random_uniform(7, 1, k)) * DEG,
               angle = 2 * M_PI * us_random_uniform(7, 2, k), off = (k & 1 ? 0.1 : -0.1) * DEG;
        us_soil soil = soil_of(critical - 3 * DEG * us_random_uniform(7, 3, k), critical, 0);
        ground_form plane = {
            .spacing = spacings[k % 4], .slope = tan(critical + off), .angle = angle, .high = 1000, .n = 33};
        usi_deformable patch = fresh(&plane);
        usi_deformable_law law = usi_deformable_law_of(&soil, plane.spacing, 9.81);
        wake_middle(&patch, 3);
        usi_deformable_settle(&patch, &law, 50);
        if ((patch.digest != 0) != (off > 0))
            fail_msg("critical %g, slope %g degrees along %g, %g m: %s", critical / DEG,
                     (critical + off) / DEG, angle / DEG, plane.spacing, patch.digest ? "flows" : "stands");
    }
}

// The height up to which a face at angle b stands (Culmann), m.
static double critical_height(const us_soil *soil, double b) {
    double phi = soil->friction_angle;
    if (b <= phi) return INFINITY;
    return 4 * soil->cohesion / (soil->density * 9.81) * sin(b) * cos(phi) / (1 - cos(b - phi));
}

static void a_bank_stands_up_to_its_critical_height_at_every_spacing_and_in_every_direction(void **state) {
    (void)state;
    int n_stood = 0, n_fell = 0;
    for (uint64_t k = 0; k < 600; k++) {
        us_soil soil = us_soil_default();
        soil.friction_angle = (15 + 25 * us_random_uniform(11, 1, k)) * DEG;
        soil.repose_angle = soil.friction_angle;
        soil.critical_angle = soil.friction_angle + 2 * DEG;
        soil.cohesion = 100 * pow(30, us_random_uniform(11, 2, k));
        double b = soil.critical_angle + 4 * DEG +
                   (80 * DEG - soil.critical_angle) * us_random_uniform(11, 3, k),
               share = k & 1 ? 1.12 : 0.88, high = share * critical_height(&soil, b);
        // The face has 6 to 40 columns along its length on the map.
        double columns = 6 + 34 * us_random_uniform(11, 4, k), spacing = high / tan(b) / columns;
        ground_form bank = {.spacing = spacing,
                            .slope = tan(b),
                            .angle = 2 * M_PI * us_random_uniform(11, 5, k),
                            .high = high,
                            .n = 2 * (int32_t)columns + 31};
        if (high > 100 || spacing * tan(b) > 0.5) continue;
        usi_deformable patch = fresh(&bank);
        usi_deformable_law law = usi_deformable_law_of(&soil, spacing, 9.81);
        wake_middle(&patch, 2);
        usi_deformable_settle(&patch, &law, 60);
        (share < 1 ? &n_stood : &n_fell)[0]++;
        if ((patch.digest != 0) != (share > 1))
            fail_msg("c %g Pa, phi %g, face %g degrees along %g, %g of the critical height, %g columns: %s",
                     soil.cohesion, soil.friction_angle / DEG, b / DEG, bank.angle / DEG, share, columns,
                     patch.digest ? "falls" : "stands");
    }
    printf("    %d banks stood, %d fell\n", n_stood, n_fell);
    assert_true(n_stood > 200 && n_fell > 200);
}

static void a_vertical_cut_stands_up_to_its_critical_height(void **state) {
    (void)state;
    us_soil soil = us_soil_default();
    double phi = soil.friction_angle,
           most = 4 * soil.cohesion / (soil.density * 9.81) * tan(M_PI / 4 + phi / 2);
    for (int k = 0; k < 12; k++) {
        double spacing = (k % 3 == 0 ? 0.005 : k % 3 == 1 ? 0.01 : 0.02), high = most * (k & 1 ? 1.15 : 0.97);
        ground_form cut = {.spacing = spacing,
                           .slope = 1e6,
                           .angle = k < 6 ? 0.5 * M_PI * k : 0.25 * M_PI,
                           .high = high,
                           .n = 65};
        usi_deformable patch = fresh(&cut);
        usi_deformable_law law = usi_deformable_law_of(&soil, spacing, 9.81);
        wake_middle(&patch, 10);
        usi_deformable_settle(&patch, &law, 20000);
        if ((patch.digest != 0) != (high > most))
            fail_msg("%g m of %g m at %g m %s", high, most, spacing, patch.digest ? "fell" : "stood");
        // At what stands nothing is left to do.
        assert_true(high > most || usi_deformable_settle(&patch, &law, INT64_MAX) == 0);
    }
}

// A bank that was too high leaves scree at the angle of repose, and above it no face that is too high again.
static void what_falls_lies_at_repose_and_what_stays_is_not_too_high(void **state) {
    (void)state;
    us_soil soil = soil_of(33 * DEG, 36 * DEG, 300);
    ground_form bank = {.spacing = 0.04, .slope = 1e6, .high = 1, .n = 101};
    usi_deformable patch = fresh(&bank);
    usi_deformable_law law = usi_deformable_law_of(&soil, bank.spacing, 9.81);
    for (int32_t x = 48; x < 54; x++) {
        for (int32_t y = 0; y < bank.n; y++)
            usi_deformable_activate(&patch, x, y);
    }
    usi_deformable_settle(&patch, &law, INT64_MAX);
    // Down the middle: every face between two columns of which each step is steeper than repose.
    double worst = 0, steepest_scree = 0;
    for (int32_t low = 1; low < bank.n - 1; low++) {
        double foot = usi_deformable_height(&patch, low, 50);
        for (int32_t x = low + 1; x < bank.n && x - low < 50; x++) {
            double drop = usi_deformable_height(&patch, x, 50) - foot, b = atan2(drop, (x - low) * 0.04);
            if (usi_deformable_height(&patch, x, 50) - usi_deformable_height(&patch, x - 1, 50) <=
                0.04 * tan(36 * DEG))
                break;
            worst = fmax(worst, drop / critical_height(&soil, b));
        }
        if (foot > -0.4 && foot < 0 && usi_deformable_height(&patch, low + 1, 50) < 0)
            steepest_scree = fmax(steepest_scree, usi_deformable_height(&patch, low + 1, 50) - foot);
    }
    printf("    highest face %.3f of its critical height, scree at %.2f degrees at most\n", worst,
           atan(steepest_scree / 0.04) / DEG);
    assert_true(worst > 0.2 && worst <= 1.001);
    assert_true(atan(steepest_scree / 0.04) < 36.5 * DEG && atan(steepest_scree / 0.04) > 32.5 * DEG);
    int64_t sum = 0;
    for (int32_t k = 0; k < bank.n * bank.n; k++)
        sum += usi_deformable_change(&patch, usi_deformable_column(&patch, k % bank.n, k / bank.n));
    assert_true(sum == 0 && patch.digest != 0);
}

// A body that lies on a slope that gives way: the soil under it goes with the rest.
static void no_pillar_stays_under_a_body_that_lies_on_collapsing_soil(void **state) {
    (void)state;
    us_soil soil = soil_of(33 * DEG, 33 * DEG, 0);
    ground_form cone = {.spacing = 0.02, .n = 129};
    usi_deformable patch = fresh(&cone);
    for (int32_t y = 60; y < 69; y++) {
        for (int32_t x = 60; x < 69; x++)
            usi_deformable_cover(&patch, x, y);
    }
    pour(&patch, &soil, 0.05, 0.2);
    double steepest = 0;
    for (int32_t y = 1; y < cone.n; y++) {
        for (int32_t x = 1; x < cone.n; x++) {
            double h = usi_deformable_height(&patch, x, y);
            bool is_covered = (x >= 60 && x <= 69 && y >= 60 && y <= 69);
            if (is_covered && x > 60 && x < 69 && y > 60 && y < 69) continue;
            steepest = fmax(steepest, fmax(fabs(h - usi_deformable_height(&patch, x - 1, y)),
                                           fabs(h - usi_deformable_height(&patch, x, y - 1))));
        }
    }
    printf("    steepest step %.2f degrees\n", atan(steepest / 0.02) / DEG);
    assert_true(atan(steepest / 0.02) < 33.5 * DEG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heap_lies_at_the_angle_of_repose_at_every_spacing_and_in_every_direction),
        cmocka_unit_test(a_slope_begins_to_flow_at_the_critical_angle_in_every_direction),
        cmocka_unit_test(a_bank_stands_up_to_its_critical_height_at_every_spacing_and_in_every_direction),
        cmocka_unit_test(a_vertical_cut_stands_up_to_its_critical_height),
        cmocka_unit_test(what_falls_lies_at_repose_and_what_stays_is_not_too_high),
        cmocka_unit_test(no_pillar_stays_under_a_body_that_lies_on_collapsing_soil),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

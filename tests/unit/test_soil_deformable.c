// Loose soil: heaps, ruts and volume.
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
enum { N = 81, CAP = 1 << 14, TILES = 4 };

static int32_t flat(const void *context, int32_t x, int32_t y) {
    (void)context;
    (void)x;
    (void)y;
    return 0;
}

typedef struct box {
    usi_deformable patch;
    uint32_t slot[TILES];
    usi_deformable_tile tile[TILES + 1];
    usi_deformable_tile_info spot[TILES + 1];
    uint32_t ring[CAP], wait[CAP];
} box;
static box boxes[2];

static usi_deformable *fresh(box *b, uint32_t cap) {
    memset(b, 0, sizeof *b);
    b->patch = (usi_deformable){.n_x = N,
                                .n_y = N,
                                .spacing = 0.05,
                                .depth = 0.3,
                                .ground = flat,
                                .n_tile_x = 2,
                                .slot = b->slot,
                                .tile = b->tile,
                                .spot = b->spot,
                                .max_tile = TILES,
                                .ring = b->ring,
                                .wait = b->wait,
                                .cap = cap};
    return &b->patch;
}

static int32_t change_at(const usi_deformable *patch, int32_t x, int32_t y) {
    return usi_deformable_change(patch, usi_deformable_column(patch, x, y));
}

static int64_t volume(const usi_deformable *patch) {
    int64_t sum = 0;
    for (int i = 0; i < N * N; i++)
        sum += change_at(patch, i % N, i / N);
    return sum;
}

// A round column of radius 0.5 m, 1 m high, in the middle.
static void heap(usi_deformable *patch) {
    for (int y = 0; y < N; y++) {
        for (int x = 0; x < N; x++) {
            int dx = x - N / 2, dy = y - N / 2;
            if (hypot(dx, dy) * 0.05 <= 0.5) usi_deformable_add(patch, x, y, 1000000);
        }
    }
}

static const usi_deformable_law sand = {.repose = 35 * DEG, .critical = 35 * DEG, .relaxation = 0.5};

static void no_pair_is_steeper_than(const usi_deformable *patch, double angle) {
    for (int y = 0; y < N; y++) {
        for (int x = 0; x < N; x++) {
            for (int d = 0; d < 3; d++) {
                int i = x + (d != 1), j = y + (d != 0);
                if (i >= N || j >= N) continue;
                double way = 0.05 * (d == 2 ? M_SQRT2 : 1),
                       h = fabs(usi_deformable_height(patch, x, y) - usi_deformable_height(patch, i, j));
                // A twentieth of a degree is at rest.
                if (h > way * tan(angle + 0.06 * DEG)) fail_msg("%g over %g at %d %d", h, way, x, y);
            }
        }
    }
}

static void a_column_becomes_a_cone_at_the_angle_of_repose(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    heap(patch);
    int64_t before = volume(patch), n = usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(volume(patch) == before);
    no_pair_is_steeper_than(patch, 35 * DEG);
    // Nothing is left to do.
    assert_true(usi_deformable_settle(patch, &sand, INT64_MAX) == 0);
    // Some half a million looks, 75 times the whole grid, where sweeps took 3191 times.
    if (!(n > 200000 && n < 1000000)) fail_msg("%lld columns looked at", (long long)n);
    // The cone of this volume, whose height columns of 5 cm take 1 cm off or put it on.
    double peak = usi_deformable_height(patch, N / 2, N / 2), t = tan(35 * DEG);
    double ideal = cbrt(3 * USI_DEFORMABLE_UNIT * (double)before * 0.05 * 0.05 * t * t / M_PI);
    if (fabs(peak - ideal) > 0.012) fail_msg("peak %g, of a cone %g", peak, ideal);
    // The flank, by least squares over the middle of its height, along eight directions. One cell step over
    // such a length is half a degree.
    double worst = 0;
    for (int d = 0; d < 8; d++) {
        double sx = 0, sy = 0, sxx = 0, sxy = 0, m = 0, c = cos(d * 45 * DEG), s = sin(d * 45 * DEG),
               way = d % 2 ? 0.05 * M_SQRT2 : 0.05;
        for (int k = 0; k < N / 2; k++) {
            int x = N / 2 + (int)lround(c * k * (d % 2 ? M_SQRT2 : 1)),
                y = N / 2 + (int)lround(s * k * (d % 2 ? M_SQRT2 : 1));
            double r = k * way, h = usi_deformable_height(patch, x, y);
            if (h < 0.1 || h > 0.6) continue;
            sx += r;
            sy += h;
            sxx += r * r;
            sxy += r * h;
            m += 1;
        }
        double angle = -atan((m * sxy - sx * sy) / (m * sxx - sx * sx)) / DEG;
        worst = fmax(worst, fabs(angle - 35));
    }
    if (worst > 0.5) fail_msg("the flank is %g degrees off", worst);
    // Round: the same height in opposite places, up to one cell step.
    for (int k = 0; k < N / 2; k++) {
        double a = usi_deformable_height(patch, N / 2 + k, N / 2),
               b = usi_deformable_height(patch, N / 2 - k, N / 2),
               c = usi_deformable_height(patch, N / 2, N / 2 + k);
        assert_true(fabs(a - b) < 0.05 * tan(35 * DEG) && fabs(a - c) < 0.05 * tan(35 * DEG));
    }
}

static void volume_is_the_same_to_the_last_grain_after_a_hundred_thousand_changes(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    int64_t want = 0;
    for (uint64_t k = 0; k < 3000; k++) {
        int32_t x = (int32_t)(us_random_uniform(3, 1, k) * N), y = (int32_t)(us_random_uniform(3, 2, k) * N);
        int32_t units = (int32_t)(200000 * us_random_uniform(3, 3, k));
        usi_deformable_add(patch, x, y, units);
        want += units;
        usi_deformable_settle(patch, &sand, 40);
    }
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(volume(patch) == want);
    assert_true(patch->digest == usi_deformable_digest(patch));
}

static void what_lies_flatter_than_the_critical_angle_stays_and_what_flows_goes_down_to_repose(void **state) {
    (void)state;
    usi_deformable_law law = {.repose = 30 * DEG, .critical = 38 * DEG, .relaxation = 0.5};
    for (int k = 0; k < 2; k++) {
        usi_deformable *patch = fresh(&boxes[0], CAP);
        // A ridge of 34 or of 40 degrees.
        double slope = tan((k == 0 ? 34 : 40) * DEG);
        for (int y = 0; y < N; y++) {
            for (int x = 0; x < N; x++)
                usi_deformable_add(patch, x, y,
                                   (int32_t)(1e6 * fmax(0, 0.5 - slope * 0.05 * abs(x - N / 2))));
        }
        uint64_t before = patch->digest;
        usi_deformable_settle(patch, &law, INT64_MAX);
        if (k == 0) {
            assert_true(patch->digest == before);
        } else {
            assert_true(patch->digest != before);
            // The last to stop may stop anywhere between the two.
            no_pair_is_steeper_than(patch, law.critical);
            double height = usi_deformable_height(patch, N / 2, N / 2),
                   ideal = sqrt(0.5 * 0.5 / slope * tan(30 * DEG));
            if (!(height > 0.95 * ideal && height < 1.15 * ideal))
                fail_msg("the ridge stands %g m high, at repose %g", height, ideal);
        }
    }
}

static void the_digest_knows_the_heights_not_the_way(void **state) {
    (void)state;
    usi_deformable *a = fresh(&boxes[0], CAP), *b = fresh(&boxes[1], CAP);
    usi_deformable_add(a, 3, 4, 100);
    usi_deformable_add(a, 9, 9, 50);
    usi_deformable_add(b, 9, 9, 70);
    usi_deformable_add(b, 9, 9, -20);
    assert_true(a->digest != b->digest);
    usi_deformable_add(b, 3, 4, 100);
    assert_true(a->digest == b->digest && a->digest == usi_deformable_digest(a));
    usi_deformable_add(a, 3, 4, -100);
    usi_deformable_add(a, 9, 9, -50);
    assert_true(a->digest == 0);
}

// Two patches of the same heights that differ in what flows, or in what is lost, have another future, and
// another digest of their flags.
static void what_flows_and_what_is_lost_have_a_digest_of_their_own(void **state) {
    (void)state;
    usi_deformable *a = fresh(&boxes[0], CAP), *b = fresh(&boxes[1], CAP);
    heap(a);
    heap(b);
    assert_true(a->flag_digest == 0);
    // In one of them it has flowed to where it lies, in the other it was put there.
    assert_true(usi_deformable_settle(a, &sand, 3000) == 3000);
    for (int y = 0; y < N; y++) {
        for (int x = 0; x < N; x++) {
            int32_t difference = change_at(a, x, y) - change_at(b, x, y);
            if (difference != 0) usi_deformable_add(b, x, y, difference);
        }
    }
    assert_true(a->digest == b->digest && a->flag_digest != 0 && b->flag_digest == 0);
    // At rest nothing flows any more, and it is as if nothing ever had.
    usi_deformable_settle(a, &sand, INT64_MAX);
    assert_true(a->flag_digest == 0);
    usi_deformable *c = fresh(&boxes[0], 64);
    heap(c);
    assert_true(c->n_lost > 0 && c->flag_digest != 0);
}

static void a_step_at_a_time_is_the_same_as_all_at_once(void **state) {
    (void)state;
    usi_deformable *a = fresh(&boxes[0], CAP), *b = fresh(&boxes[1], CAP);
    heap(a);
    heap(b);
    usi_deformable_settle(a, &sand, INT64_MAX);
    while (usi_deformable_settle(b, &sand, 777) > 0) {
    }
    assert_memory_equal(boxes[0].tile, boxes[1].tile, sizeof boxes[0].tile);
}

static void a_ring_that_is_too_small_loses_nothing(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], 64);
    heap(patch);
    assert_true(patch->n_lost > 0);
    int64_t before = volume(patch);
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(volume(patch) == before && patch->n_lost == 0);
    no_pair_is_steeper_than(patch, 35 * DEG);
}

static void a_plate_leaves_its_print_and_a_rim(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    int32_t to[36];
    for (int i = 0; i < 36; i++)
        to[i] = -10000;
    usi_deformable_pressed_volume p = usi_deformable_press(patch, 30, 30, 36, 36, to, 0.25);
    assert_true(p.n_pressed == 36 * 10000 && p.n_risen == p.n_pressed - p.n_pressed / 4);
    assert_true(volume(patch) == -p.n_pressed / 4);
    assert_true(usi_deformable_pressed(patch, usi_deformable_column(patch, 33, 33)) == 1000 &&
                usi_deformable_pressed(patch, usi_deformable_column(patch, 29, 33)) == 0);
    usi_deformable_settle(patch, &sand, INT64_MAX);
    // The print stays where it is flatter than repose; the rim round it is higher than before.
    assert_true(change_at(patch, 33, 33) == -10000 && usi_deformable_height(patch, 29, 33) > 0);
    assert_true(volume(patch) == -p.n_pressed / 4);
    // Pressing again to the same depth moves nothing; and nobody digs through the bedrock.
    p = usi_deformable_press(patch, 30, 30, 36, 36, to, 0.25);
    assert_true(p.n_pressed == 0);
    for (int i = 0; i < 36; i++)
        to[i] = i == 0 ? INT32_MAX : -900000;
    usi_deformable_press(patch, 30, 30, 36, 36, to, 1);
    assert_true(change_at(patch, 31, 30) == -300000 && change_at(patch, 30, 30) > -300000);
}

static void soil_does_not_flow_under_a_body_until_it_has_left(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    int32_t to[100];
    for (int i = 0; i < 100; i++)
        to[i] = -200000;
    usi_deformable_press(patch, 30, 30, 40, 40, to, 1);
    for (int y = 30; y < 40; y++) {
        for (int x = 30; x < 40; x++)
            usi_deformable_cover(patch, x, y);
    }
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(change_at(patch, 30, 35) == -200000);
    for (int y = 30; y < 40; y++) {
        for (int x = 30; x < 40; x++) {
            usi_deformable_uncover(patch, x, y);
            usi_deformable_activate(patch, x, y);
        }
    }
    int64_t before = volume(patch);
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(usi_deformable_height(patch, 30, 35) > -0.2 && volume(patch) == before);
    no_pair_is_steeper_than(patch, 35 * DEG);
}

static void soil_under_a_body_waits_for_it_to_leave(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    for (int y = 30; y < 40; y++) {
        for (int x = 30; x < 35; x++) {
            usi_deformable_add(patch, x, y, 300000);
            usi_deformable_cover(patch, x, y);
        }
    }
    // From under the body soil flows out to the sides, but none in or among what is covered; looking at
    // nothing but covered columns ends.
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(change_at(patch, 30, 35) < 300000 && change_at(patch, 29, 35) > 0 &&
                change_at(patch, 32, 35) == 300000 && volume(patch) == 50 * 300000);
    // It has come to rest: nothing is looked at again as long as the body stands there.
    assert_true(patch->n == 0 && patch->n_lost == 0 && patch->n_wait > 0 &&
                usi_deformable_settle(patch, &sand, INT64_MAX) == 0);
    for (int i = 0; i < N * N; i++)
        usi_deformable_uncover(patch, i % N, i / N);
    // Nobody has to wake it.
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(change_at(patch, 32, 35) < 300000 && volume(patch) == 50 * 300000);
    no_pair_is_steeper_than(patch, 35 * DEG);
    assert_true(usi_deformable_settle(patch, &sand, INT64_MAX) == 0);
}

static void a_patch_has_no_more_tiles_than_it_has_memory_for(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    patch->max_tile = 1;
    usi_deformable_add(patch, 10, 10, 1000);
    assert_true(patch->n_tile == 1 && patch->spot[1].place == 0 && change_at(patch, 10, 10) == 1000 &&
                patch->has_stirred);
    // The other three have none: what would be written there is not, and all that is untouched stays level.
    usi_deformable_add(patch, 70, 70, 1000);
    usi_deformable_cover(patch, 70, 10);
    assert_true(patch->n_tile == 1 && change_at(patch, 70, 70) == 0 && volume(patch) == 1000 &&
                usi_deformable_flag(patch, usi_deformable_column(patch, 70, 10)) == 0);
    // At its border it is as at the border of the patch.
    for (int y = 10; y < 50; y++)
        usi_deformable_add(patch, 63, y, 100000);
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(volume(patch) == 1000 + 40 * 100000 && change_at(patch, 64, 30) == 0 &&
                change_at(patch, 62, 30) > 0);
    assert_true(patch->spot[1].n_busy == 0);
}

static void a_wall_falls_onto_the_ground_before_it_and_digs_no_ditch(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    usi_deformable_law law = sand;
    law.curvature = 2 * tan(35 * DEG) / (3 * 0.05);
    for (int y = 0; y < N; y++) {
        for (int x = 40; x < 50; x++)
            usi_deformable_add(patch, x, y, 100000);
    }
    usi_deformable_settle(patch, &law, INT64_MAX);
    for (int i = 0; i < N * N; i++)
        assert_true(change_at(patch, i % N, i / N) >= 0);
    assert_true(change_at(patch, 39, 40) > 0 && volume(patch) == (int64_t)N * 10 * 100000);
}

static void spikes_of_one_column_are_rounded_off(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    usi_deformable_law law = sand;
    law.curvature = 2 * tan(35 * DEG) / (3 * 0.05);
    usi_deformable_add(patch, 40, 40, 34000);  // flatter than repose to every side
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(change_at(patch, 40, 40) == 34000);
    usi_deformable_activate(patch, 40, 40);
    usi_deformable_settle(patch, &law, INT64_MAX);
    assert_true(usi_deformable_height(patch, 40, 40) < 0.034 && volume(patch) == 34000);
    assert_true(usi_deformable_settle(patch, &law, INT64_MAX) == 0);
}

// ---- Laws that vary ----

static usi_deformable_law sand_at(const void *context, int32_t x, int32_t y) {
    (void)context;
    (void)x;
    (void)y;
    return sand;
}

static void a_law_that_is_the_same_at_every_place_gives_the_same_bits(void **state) {
    (void)state;
    usi_deformable *a = fresh(&boxes[0], CAP), *b = fresh(&boxes[1], CAP);
    usi_deformable_law law = {.at = sand_at};
    heap(a);
    heap(b);
    assert_true(usi_deformable_settle(a, &sand, INT64_MAX) == usi_deformable_settle(b, &law, INT64_MAX));
    assert_true(a->digest == b->digest && a->flag_digest == b->flag_digest && a->turn == b->turn);
}

static const double WEST = 35 * DEG, EAST = 20 * DEG;

static usi_deformable_law halves_at(const void *context, int32_t x, int32_t y) {
    (void)context;
    (void)y;
    usi_deformable_law law = sand;
    law.repose = law.critical = x < N / 2 ? WEST : EAST;
    return law;
}

static void each_half_of_a_heap_comes_to_rest_at_its_own_angle(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    usi_deformable_law law = {.at = halves_at};
    heap(patch);
    int64_t before = volume(patch);
    usi_deformable_settle(patch, &law, INT64_MAX);
    assert_true(volume(patch) == before);
    double steepest[2] = {0};
    for (int y = 0; y < N; y++) {
        for (int x = 1; x < N; x++) {
            // The higher column of a pair says how steep it may be.
            double here = usi_deformable_height(patch, x, y), west = usi_deformable_height(patch, x - 1, y);
            bool is_east = (here > west ? x : x - 1) >= N / 2;
            steepest[is_east] = fmax(steepest[is_east], fabs(here - west) / 0.05);
        }
    }
    // A twentieth of a degree is at rest.
    assert_true(steepest[0] < tan(WEST + 0.06 * DEG) && steepest[0] > 0.95 * tan(WEST));
    assert_true(steepest[1] < tan(EAST + 0.06 * DEG) && steepest[1] > 0.95 * tan(EAST));
}

// A wall 0.6 m high in the west.
static int32_t wall(const void *context, int32_t x, int32_t y) {
    (void)context;
    (void)y;
    return x < N / 2 ? 600000 : 0;
}

static usi_deformable_law rock_in_the_west(const void *context, int32_t x, int32_t y) {
    (void)context;
    (void)y;
    usi_deformable_law law = sand;
    law.is_firm = x < N / 2;
    return law;
}

static void rock_stands_as_steep_as_it_is_and_what_lies_on_it_flows(void **state) {
    (void)state;
    usi_deformable *patch = fresh(&boxes[0], CAP);
    patch->ground = wall;
    usi_deformable_law law = {.at = rock_in_the_west};
    // A heap on the brink, and the whole edge woken.
    usi_deformable_add(patch, N / 2 - 1, N / 2, 200000);
    for (int y = 0; y < N; y++)
        usi_deformable_activate(patch, N / 2 - 1, y);
    usi_deformable_settle(patch, &law, INT64_MAX);
    int64_t below = 0;
    for (int y = 0; y < N; y++) {
        for (int x = 0; x < N / 2; x++)
            assert_true(change_at(patch, x, y) >= 0);
        for (int x = N / 2; x < N; x++)
            below += change_at(patch, x, y);
    }
    assert_true(volume(patch) == 200000 && below > 100000);
    // Of sand the wall itself comes down.
    patch = fresh(&boxes[1], CAP);
    patch->ground = wall;
    for (int y = 0; y < N; y++)
        usi_deformable_activate(patch, N / 2 - 1, y);
    usi_deformable_settle(patch, &sand, INT64_MAX);
    assert_true(change_at(patch, N / 2 - 1, N / 2) < -100000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_becomes_a_cone_at_the_angle_of_repose),
        cmocka_unit_test(a_law_that_is_the_same_at_every_place_gives_the_same_bits),
        cmocka_unit_test(each_half_of_a_heap_comes_to_rest_at_its_own_angle),
        cmocka_unit_test(rock_stands_as_steep_as_it_is_and_what_lies_on_it_flows),
        cmocka_unit_test(volume_is_the_same_to_the_last_grain_after_a_hundred_thousand_changes),
        cmocka_unit_test(what_lies_flatter_than_the_critical_angle_stays_and_what_flows_goes_down_to_repose),
        cmocka_unit_test(the_digest_knows_the_heights_not_the_way),
        cmocka_unit_test(what_flows_and_what_is_lost_have_a_digest_of_their_own),
        cmocka_unit_test(a_step_at_a_time_is_the_same_as_all_at_once),
        cmocka_unit_test(a_ring_that_is_too_small_loses_nothing),
        cmocka_unit_test(a_plate_leaves_its_print_and_a_rim),
        cmocka_unit_test(soil_does_not_flow_under_a_body_until_it_has_left),
        cmocka_unit_test(soil_under_a_body_waits_for_it_to_leave),
        cmocka_unit_test(a_patch_has_no_more_tiles_than_it_has_memory_for),
        cmocka_unit_test(a_wall_falls_onto_the_ground_before_it_and_digs_no_ditch),
        cmocka_unit_test(spikes_of_one_column_are_rounded_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

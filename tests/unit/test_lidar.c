// Lidars: scenes whose ranges can be written down, counts and angles of a maker's device, motion within a
// turn, noise against its law, and frames that are the same bytes however a world is run.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrumented.h"
#include "lidar_rig.h"
#include "model/lidars.h"
#include "sense/lidar_return.h"
#include "sim/sim.h"
#include "understudy/model.h"
#include "understudy/sensing.h"

// ---------------------------------------------------------------- shapes

static void a_sphere_is_met_where_it_is(void **state) {
    (void)state;
    lidar_rig r;
    // 21 rows of 0.2 degrees about the level; 1800 columns are 0.2 degrees apart.
    lidar_rig_init(
        &r, "<shape type=\"sphere\" size=\"1\" xyz=\"50 0 0\"/>",
        "elevations=\"-2 -1.8 -1.6 -1.4 -1.2 -1 -0.8 -0.6 -0.4 -0.2 0 0.2 0.4 0.6 0.8 1 1.2 1.4 1.6 1.8 2 "
        "deg\" columns=\"1800\" rate=\"10 Hz\" start=\"180 deg\" sweep=\"-360 deg\" " PLAIN,
        0, 0);
    lidar_rig_see(&r, 0, false);
    int n_hit = 0;
    for (int32_t ring = 0; ring < 21; ring++) {
        for (int32_t c = 0; c < 1800; c++) {
            const us_lidar_point *p = lidar_rig_at(&r, ring, c);
            const double up = (0.2 * ring - 2) * DEGREE, azimuth = (180 - 0.2 * c) * DEGREE;
            const us_vec3 d = us_vec3_make(cos(up) * cos(azimuth), cos(up) * sin(azimuth), sin(up));
            const double b = 50 * d.x, left = b * b - (2500 - 1);
            assert_int_equal(p->ring, ring);
            if (left < 0 || b < 0) {
                assert_true(isnan(p->x));
                continue;
            }
            n_hit++;
            const double range = b - sqrt(left);
            assert_true(fabs(range_of(p) - range) < FLOAT);
            assert_true(fabs((double)p->x - range * d.x) < FLOAT &&
                        fabs((double)p->y - range * d.y) < FLOAT && fabs((double)p->z - range * d.z) < FLOAT);
        }
    }
    // A sphere of half an angle of 1.146 degrees covers some 103 of these rays; the middle one is at 49 m.
    assert_true(n_hit > 90 && n_hit < 115);
    assert_true(fabs(range_of(lidar_rig_at(&r, 10, 900)) - 49) < FLOAT);
    lidar_rig_fini(&r);
}

static void a_plane_and_a_tube_are_met_where_they_are(void **state) {
    (void)state;
    lidar_rig r;
    // A floor 2 m below, as a half space; every beam that looks down meets it at 2 / sin.
    lidar_rig_init(&r, "<shape type=\"plane\" xyz=\"0 0 -2\"/>", "preset=\"hdl-32e\" " PLAIN, 0, 0);
    lidar_rig_see(&r, 0, false);
    for (int32_t c = 0; c < r.frame.n_column - 1; c += 7) {
        for (int32_t ring = 0; ring < 32; ring++) {
            const usi_lidar *l = &r.model->lidar[0];
            double up = 0;
            for (int32_t i = 0; i < 32; i++) {
                if (l->beam[i].ring == ring) up = l->beam[i].sin_up;
            }
            const us_lidar_point *p = lidar_rig_at(&r, ring, c);
            if (up < -0.02) {
                assert_true(fabs(range_of(p) + 2 / up) < FLOAT);
                assert_true(fabs((double)p->z + 2) < FLOAT);
            } else {
                assert_true(isnan(p->x));
            }
        }
    }
    lidar_rig_fini(&r);
    // Four walls 5 m away.
    lidar_rig_init(
        &r,
        "<shape type=\"box\" size=\"1 40 40\" xyz=\"5.5 0 0\"/><shape type=\"box\" size=\"1 40 40\" "
        "xyz=\"-5.5 0 0\"/><shape type=\"box\" size=\"40 1 40\" xyz=\"0 5.5 0\"/><shape type=\"box\" "
        "size=\"40 1 40\" xyz=\"0 -5.5 0\"/>",
        "preset=\"vlp-16\" " PLAIN, 0, 0);
    lidar_rig_see(&r, 1, false);
    for (int32_t i = 0; i < r.n; i++) {
        const us_lidar_point *p = &r.point[i];
        if (isnan(p->x)) continue;
        const double x = fabs((double)p->x), y = fabs((double)p->y);
        assert_true(fabs(fmax(x, y) - 5) < FLOAT);
    }
    lidar_rig_fini(&r);
}

// A ring that surrounds the sensor: every range of a row is the radius over the cosine of its elevation.
static void a_ring_of_ground_is_met_at_the_same_range_all_round(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r,
                   "<shape type=\"height-field\" nx=\"201\" ny=\"201\" dx=\"0.5\" dy=\"0.5\" xyz=\"0 0 -3\" "
                   "expression=\"0\"/>",
                   "preset=\"os1-32\" " PLAIN, 0, 0);
    lidar_rig_see(&r, 0, false);
    int n = 0;
    for (int32_t i = 0; i < r.n; i++) {
        const double up = (-22.5 + 45.0 * r.point[i].ring / 31) * DEGREE;
        if (isnan(r.point[i].x)) {
            assert_true(up > -4 * DEGREE);
            continue;
        }
        n++;
        if (fabs(range_of(&r.point[i]) * sin(up) + 3) > FLOAT)
            fail_msg("ring %d: %.9g m", (int)r.point[i].ring, range_of(&r.point[i]));
    }
    assert_true(n > 12 * 1024);
    lidar_rig_fini(&r);
}

// ---------------------------------------------------------------- the device

static void an_hdl_32e_fires_as_its_manual_says(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, "", "preset=\"hdl-32e\"", 0, 0);
    const usi_lidar *l = &r.model->lidar[0];
    assert_int_equal(r.frame.n_ring, 32);
    assert_int_equal(r.frame.n_column, 2171);
    // Shots in ten turns, which are a second.
    int64_t n = 0;
    for (int64_t turn = 0; turn < 10; turn++)
        n += 32 * usi_lidar_columns_of(l, turn);
    assert_true(llabs(n - 694444) <= 32);
    // The head turns by 0.12856 degrees from the first beam to the last, and by 0.165888 from group to group.
    const double last = atan2(l->beam[31].sin_turn, l->beam[31].cos_turn) / DEGREE;
    assert_true(fabs(fabs(last) - 0.12856) < 5e-6);
    assert_true(last < 0);  // clockwise
    assert_true(fabs(fabs(l->spin) * l->period / DEGREE - 0.165888) < 1e-9);
    // Elevations by laser, of the public table, rad.
    const double table[][2] = {{0, -0.53529248}, {1, -0.16283922}, {2, -0.51190507},
                               {3, -0.13962634}, {15, 0},          {31, 0.18622663}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_true(fabs(asin(l->beam[(int)table[i][0]].sin_up) - table[i][1]) < 1e-8);
    // Rings are counted from below: laser 0 is the lowest, 31 the highest.
    assert_int_equal(l->beam[0].ring, 0);
    assert_int_equal(l->beam[31].ring, 31);
    lidar_rig_fini(&r);
}

static void every_firing_is_in_one_step_and_every_turn_whole(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"plane\" xyz=\"0 0 -2\"/>", "preset=\"hdl-32e\" " PLAIN, 0, 0);
    const usi_lidar *l = &r.model->lidar[0];
    int64_t n_column = 0;
    for (int64_t turn = 0; turn < 3; turn++) {
        lidar_rig_see(&r, turn, false);
        int32_t n = 0;
        for (int32_t c = 0; c < r.frame.n_column; c++)
            n += !isnan(lidar_rig_at(&r, 0, c)->x);
        assert_int_equal(n, usi_lidar_columns_of(l, turn));
        assert_true(fabs(r.frame.time - (double)usi_lidar_first(l, turn) * 46.08e-6) < 1e-12);
        n_column += n;
    }
    assert_int_equal(n_column, usi_lidar_first(l, 3));
    lidar_rig_fini(&r);
}

// ---------------------------------------------------------------- motion

#define WALL "<shape type=\"box\" size=\"1 80 20\" xyz=\"8.5 0 0\"/>"

static void a_wall_seen_in_motion_is_straight_after_deskewing(void **state) {
    (void)state;
    lidar_rig r;
    const double speed = 1, spin = 30 * DEGREE;
    lidar_rig_init(&r, WALL, "preset=\"hdl-32e\" " PLAIN, speed, spin);
    lidar_rig_see(&r, 2, true);
    const double start = r.frame.time;
    int n = 0;
    double worst = 0;
    for (int32_t i = 0; i < r.n; i++) {
        const us_lidar_point *p = &r.point[i];
        if (isnan(p->x)) continue;
        // In the world, by the pose that the frame names: on the wall's face, x = 8.
        us_vec3 w = us_pose_point(r.frame.X_WS, us_vec3_make((double)p->x, (double)p->y, (double)p->z));
        if (w.x > 7 && fabs(w.y) < 30) {
            worst = fmax(worst, fabs(w.x - 8));
            n++;
        }
    }
    assert_true(n > 5000);
    assert_true(worst < 1e-3);
    // By true poses it is exact to what a float holds at 30 m.
    assert_true(worst < 4 * FLOAT);
    // The pose is that of the time at which the turn began.
    assert_true(fabs(r.frame.X_WS.p.x - speed * start) < 1e-6);
    assert_true(fabs(2 * atan2(r.frame.X_WS.q.z, r.frame.X_WS.q.w) - spin * start) < 1e-6);
    // Before that it is bent: what fires at t has been carried by 1 m/s t and turned by 30 deg/s t.
    lidar_rig_see(&r, 2, false);
    double bent = 0;
    for (int32_t c = 0; c < r.frame.n_column - 1; c++) {
        const us_lidar_point *p = lidar_rig_at(&r, 16, c);
        if (isnan(p->x)) continue;
        const double t = start + (double)p->time, turned = spin * t;
        const us_vec3 w = us_vec3_make(speed * t + cos(turned) * (double)p->x - sin(turned) * (double)p->y,
                                       sin(turned) * (double)p->x + cos(turned) * (double)p->y, (double)p->z);
        assert_true(w.x < 7 || fabs(w.y) > 35 || fabs(w.x - 8) < 4 * FLOAT);
        us_vec3 wrong = us_pose_point(r.frame.X_WS, us_vec3_make((double)p->x, (double)p->y, (double)p->z));
        if (w.x > 7 && fabs(w.y) < 30) bent = fmax(bent, fabs(wrong.x - 8));
    }
    assert_true(bent > 0.05);
    lidar_rig_fini(&r);
}

// At 10 m/s towards a wall 20 m away the range straight ahead falls by 1 m within a turn of 10 Hz.
static void ranges_fall_while_it_comes_nearer(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"box\" size=\"1 400 20\" xyz=\"20.5 0 0\"/>",
                   "elevations=\"0 deg\" columns=\"360\" rate=\"10 Hz\" start=\"0\" sweep=\"360 deg\" " PLAIN,
                   10, 0);
    double before = 0;
    for (int64_t turn = 0; turn < 3; turn++) {
        lidar_rig_see(&r, turn, false);
        const double range = range_of(lidar_rig_at(&r, 0, 0));
        assert_true(fabs(range - (20 - 10 * r.frame.time)) < FLOAT);
        if (turn > 0) assert_true(fabs(before - range - 1) < 2 * FLOAT);
        before = range;
        for (int32_t c = -60; c <= 60; c++) {
            const us_lidar_point *p = lidar_rig_at(&r, 0, (c + 360) % 360);
            const double t = r.frame.time + (double)p->time;
            assert_true(fabs((double)p->x - (20 - 10 * t)) < FLOAT);
        }
    }
    lidar_rig_fini(&r);
}

// ---------------------------------------------------------------- noise

static const usi_lidar_aim AHEAD = {0, 1, {1, 0, 0}};

static usi_lidar_echo echo_of(const us_lidar_def *d, double range, double cosine) {
    return (usi_lidar_echo){.range = range, .cosine = cosine, .reflectivity = d->reflectivity};
}

// A sphere around the sensor, which is not solid to it, has the same range for all.
static void noise_follows_its_law(void **state) {
    (void)state;
    const us_model m = {.seed = 5, .sensor = (const usi_sensor[1]){{.seed = 7}}};
    us_lidar_beam beams[US_LIDAR_MAX_BEAM];
    us_lidar_def def;
    double rate;
    assert_int_equal(us_lidar_preset("hdl-32e", beams, &def, &rate), US_OK);
    def.quantum = 0;
    def.reach = 0;
    usi_lidar_beam beam[32];
    for (int i = 0; i < 32; i++)
        beam[i] = (usi_lidar_beam){0, 1, 0, 1, 0, i};
    const usi_lidar l = {.def = &def, .beam = beam, .n_ring = 32, .n_return = 1, .n_ray = 1};
    usi_lidar_echo echo[32];
    for (int i = 0; i < 32; i++)
        echo[i] = echo_of(&def, 20, 1);
    enum { GROUPS = 31250 };  // a million samples
    double sum[3] = {0, 0, 0}, square[3] = {0, 0, 0}, product = 0, lag = 0, before = 0;
    for (int64_t g = 0; g < GROUPS; g++) {
        float out[32][4];
        usi_lidar_points(&m, &l, NULL, g, 0, &AHEAD, echo, out, NULL);
        for (int i = 0; i < 32; i++) {
            const double x[3] = {(double)out[i][0] - 20, (double)out[i][1], (double)out[i][2]};
            for (int k = 0; k < 3; k++) {
                sum[k] += x[k];
                square[k] += x[k] * x[k];
            }
            product += x[1] * x[2];
            lag += x[0] * before;
            before = x[0];
        }
    }
    const double n = 32.0 * GROUPS, want[3] = {0.02, 0.0005 * 20, 0.0005 * 20};
    for (int k = 0; k < 3; k++) {
        const double mean = sum[k] / n, deviation = sqrt(square[k] / n - mean * mean);
        // Of n samples the deviation itself deviates by 1 / sqrt(2 n), 0.07 %, and the mean by 1 / sqrt(n).
        assert_true(fabs(deviation / want[k] - 1) < 4.5 / sqrt(2 * n));
        assert_true(fabs(mean) < 4.5 * want[k] / sqrt(n));
    }
    // Neither across nor from one to the next is anything alike: 4.5 deviations of a mean of n products.
    assert_true(fabs(product / n) < 4.5 * want[1] * want[2] / sqrt(n));
    assert_true(fabs(lag / n) < 4.5 * want[0] * want[0] / sqrt(n));
}

static void ranges_are_rounded_and_weak_returns_are_lost(void **state) {
    (void)state;
    const us_model m = {.seed = 5, .sensor = (const usi_sensor[1]){{.seed = 7}}};
    usi_lidar_beam beam[1] = {{0, 1, 0, 1, 0, 0}};
    us_lidar_def def = us_lidar_def_default();
    def.n_beam = 1;
    def.max_range = 1000;
    def.min_range = 1;
    def.quantum = 0.002;
    def.reach = 70;
    def.reflectivity = 0.1;
    const usi_lidar l = {.def = &def, .beam = beam, .n_ring = 1, .n_return = 1, .n_ray = 1};
    float out[1][4];
    usi_lidar_echo echo = echo_of(&def, 12.34567, 0.5);
    usi_lidar_points(&m, &l, NULL, 0, 0, &AHEAD, &echo, out, NULL);
    assert_true(fabs((double)out[0][0] - 12.346) < 1e-6);
    assert_true(fabs((double)out[0][3] - 255 * 0.1 * 0.5) < 1e-4);
    // Too near, and nothing there: REP 117's two infinities.
    echo = echo_of(&def, 0.5, 1);
    usi_lidar_points(&m, &l, NULL, 0, 0, &AHEAD, &echo, out, NULL);
    assert_true(out[0][0] == -INFINITY);
    echo = echo_of(&def, INFINITY, 0);
    usi_lidar_points(&m, &l, NULL, 0, 0, &AHEAD, &echo, out, NULL);
    assert_true(out[0][0] == INFINITY);
    // P = cos (70 / r)^2. At its reach half of the shots return; where P = 1.1, Phi(1) = 0.8413 of them.
    const double range[] = {70, 70 / sqrt(1.1), 60, 90}, want[] = {0.5, 0.841345, 0.99981, 0};
    enum { SHOTS = 20000 };
    for (int k = 0; k < 4; k++) {
        int n = 0;
        for (int64_t g = 0; g < SHOTS; g++) {
            echo = echo_of(&def, range[k], 1);
            usi_lidar_points(&m, &l, NULL, g, 0, &AHEAD, &echo, out, NULL);
            n += isfinite(out[0][0]);
        }
        // 4.5 deviations of a share of 20 000.
        assert_true(fabs((double)n / SHOTS - want[k]) < 4.5 * sqrt(want[k] * (1 - want[k]) / SHOTS) + 1e-3);
    }
    // Grazing light comes back as little as light from afar.
    echo = echo_of(&def, 20, 0.05);
    usi_lidar_points(&m, &l, NULL, 1, 0, &AHEAD, &echo, out, NULL);
    assert_true(out[0][0] == INFINITY);
}

// ---------------------------------------------------------------- the same bytes

#define BUSY                                                                                                \
    "<shape type=\"plane\" xyz=\"0 0 -1\"/><shape type=\"sphere\" size=\"1\" xyz=\"6 1 0\"/>"               \
    "<shape type=\"cylinder\" size=\"0.5 2\" xyz=\"-4 3 0\"/><shape type=\"cone\" size=\"1 2\" xyz=\"0 -5 " \
    "0\"/>"

static void a_snapshot_in_the_middle_of_a_turn_goes_on_to_the_same_frame(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, BUSY, "preset=\"hdl-32e\"", 0.5, 0.7);
    lidar_rig_step(&r, 153);
    size_t length = 0;
    assert_int_equal(us_sim_save(r.sim, NULL, 0, &length), US_OK);
    void *kept = malloc(length);
    assert_non_null(kept);
    assert_int_equal(us_sim_save(r.sim, kept, length, NULL), US_OK);
    lidar_rig_step(&r, 120);
    const uint64_t hash = us_sim_hash(r.sim);
    us_lidar_point *first = malloc((size_t)r.n * sizeof *first);
    assert_non_null(first);
    assert_int_equal(us_sim_get_lidar_frame(r.sim, r.lidar, false, &r.frame, first, r.n), US_OK);
    assert_int_equal(r.frame.turn, 1);
    lidar_rig_step(&r, 60);
    assert_true(us_sim_hash(r.sim) != hash);
    // Back, with the scratch poisoned at every step.
    assert_int_equal(us_sim_restore(r.sim, kept, length), US_OK);
    for (int i = 0; i < 120; i++) {
        us_sim_poison(r.sim);
        lidar_rig_step(&r, 1);
    }
    assert_true(us_sim_hash(r.sim) == hash);
    assert_int_equal(us_sim_get_lidar_frame(r.sim, r.lidar, false, &r.frame, r.point, r.n), US_OK);
    assert_memory_equal(r.point, first, (size_t)r.n * sizeof *first);
    // A snapshot that was cut off or changed is refused, and nothing has changed.
    assert_int_equal(us_sim_restore(r.sim, kept, length - 8), US_ERR_SNAPSHOT);
    assert_true(us_sim_hash(r.sim) == hash);
    free(first);
    free(kept);
    lidar_rig_fini(&r);
}

static void another_seed_gives_other_noise_and_the_same_gives_the_same(void **state) {
    (void)state;
    uint64_t digest[3];
    const char *const with[3] = {"preset=\"vlp-16\" seed=\"1\"", "preset=\"vlp-16\" seed=\"1\"",
                                 "preset=\"vlp-16\" seed=\"2\""};
    for (int k = 0; k < 3; k++) {
        lidar_rig r;
        lidar_rig_init(&r, BUSY, with[k], 0.5, 0.7);
        lidar_rig_see(&r, 1, false);
        digest[k] = us_hash_bytes(0, r.point, (size_t)r.n * sizeof *r.point);
        lidar_rig_fini(&r);
    }
    assert_true(digest[0] == digest[1]);
    assert_true(digest[0] != digest[2]);
}

static void any_number_of_threads_gives_the_same_bytes(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, BUSY, "preset=\"hdl-32e\"", 0.5, 0.7);
    us_sim_def def = us_sim_def_default();
    us_sim *other = NULL;
    def.n_thread = 3;
    assert_int_equal(us_sim_create(r.model, &def, &other, NULL), US_OK);
    size_t length = 0;
    assert_int_equal(us_sim_save(r.sim, NULL, 0, &length), US_OK);
    void *kept = malloc(length);
    assert_non_null(kept);
    assert_int_equal(us_sim_save(r.sim, kept, length, NULL), US_OK);
    assert_int_equal(us_sim_restore(other, kept, length), US_OK);
    for (int i = 0; i < 130; i++) {
        lidar_rig_step(&r, 1);
        assert_int_equal(us_sim_step(other, NULL), US_OK);
        assert_true(us_sim_hash(r.sim) == us_sim_hash(other));
    }
    free(kept);
    us_sim_destroy(other);
    lidar_rig_fini(&r);
}

// While it is held a lidar ends its turn and begins none: those are counted, the next one is whole, and all
// of it is the same after a snapshot.
static void turns_that_are_left_out_are_counted(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, BUSY, "preset=\"vlp-16\"", 0.5, 0.7);
    lidar_rig_step(&r, 150);
    assert_int_equal(us_sim_hold_lidar(r.sim, (us_lidar){1}, true), US_ERR_ARG);
    assert_int_equal(us_sim_hold_lidar(r.sim, r.lidar, true), US_OK);
    size_t length = 0;
    assert_int_equal(us_sim_save(r.sim, NULL, 0, &length), US_OK);
    void *kept = malloc(length);
    assert_non_null(kept);
    uint64_t hash[2];
    assert_int_equal(us_sim_save(r.sim, kept, length, NULL), US_OK);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(us_sim_restore(r.sim, kept, length), US_OK);
        // The turns 2 and 3 are left out.
        lidar_rig_step(&r, 200);
        assert_int_equal(us_sim_get_lidar_frame(r.sim, r.lidar, false, &r.frame, NULL, 0), US_OK);
        assert_int_equal(r.frame.turn, 1);
        assert_int_equal(r.frame.n_dropped, 2);
        assert_int_equal(us_sim_hold_lidar(r.sim, r.lidar, false), US_OK);
        lidar_rig_see(&r, 4, false);
        int n = 0;
        for (int32_t i = 0; i < r.n; i++)
            n += !isnan(r.point[i].x);
        assert_true(n > r.n / 3);
        assert_int_equal(r.frame.n_dropped, 2);
        hash[k] = us_sim_hash(r.sim);
    }
    assert_true(hash[0] == hash[1]);
    free(kept);
    lidar_rig_fini(&r);
}

// The points of a frame against rays that are cast one by one, with everything at rest.
static void beams_meet_what_rays_meet(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, BUSY, "preset=\"vlp-32c\" xyz=\"0.2 -0.1 0.3\" rpy=\"10 20 30 deg\" " PLAIN, 0, 0);
    lidar_rig_see(&r, 0, false);
    int n = 0;
    for (int32_t i = 0; i < r.n; i += 11) {
        const us_lidar_point *p = &r.point[i];
        if (isnan(p->x)) continue;
        const us_vec3 d =
            us_quat_rotate(r.frame.X_WS.q, us_vec3_make((double)p->x, (double)p->y, (double)p->z));
        us_sim_hit hit;
        assert_int_equal(us_sim_cast_ray(r.sim, r.frame.X_WS.p, d, 100, NULL, &hit), US_OK);
        // The direction was rounded to floats: 6e-8 rad, over the sine of the angle to a surface.
        assert_true(fabs(hit.distance - range_of(p)) < 2e-4);
        n++;
    }
    assert_true(n > 1000);
    lidar_rig_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sphere_is_met_where_it_is),
        cmocka_unit_test(a_plane_and_a_tube_are_met_where_they_are),
        cmocka_unit_test(a_ring_of_ground_is_met_at_the_same_range_all_round),
        cmocka_unit_test(an_hdl_32e_fires_as_its_manual_says),
        cmocka_unit_test(every_firing_is_in_one_step_and_every_turn_whole),
        cmocka_unit_test(a_wall_seen_in_motion_is_straight_after_deskewing),
        cmocka_unit_test(ranges_fall_while_it_comes_nearer),
        cmocka_unit_test(noise_follows_its_law),
        cmocka_unit_test(ranges_are_rounded_and_weak_returns_are_lost),
        cmocka_unit_test(a_snapshot_in_the_middle_of_a_turn_goes_on_to_the_same_frame),
        cmocka_unit_test(another_seed_gives_other_noise_and_the_same_gives_the_same),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
        cmocka_unit_test(turns_that_are_left_out_are_counted),
        cmocka_unit_test(beams_meet_what_rays_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

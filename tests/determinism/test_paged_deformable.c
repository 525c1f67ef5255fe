// A patch of soil on ground that is paged in is the patch on the same ground in memory, to the last bit: the
// ruts of a K10 that drives away until the tiles under them have gone, and comes back.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "build.h"
#include "site_make.h"

// 64 m at 5 cm: 6 by 6 tiles of 12.8 m. Out for N_OUT steps, back over the own ruts.
enum { N = 1281, N_OUT = 9000, N_STEP = N_OUT + 9500 };
static const double SPACING = 0.05, BED = 0.04, SPEED = 3;
static const char *const SITE = "paged_bed";
// Room for two tiles. What flows on the other side of a third one has come to rest before the rover gets to
// its end.
static const double SMALL = 2.6e6;

static float dunes(double x, double y) {
    return (float)(0.15 * sin(x / 3) * cos(y / 4) + 0.03 * sin(2 * x + y));
}

static us_spec *world(void) {
    static const char *const corner[] = {"front_left", "front_right", "rear_left", "rear_right"};
    char text[4000];
    int n = snprintf(text, sizeof text,
                     "<scene version=\"1\"><world step=\"1 ms\"/><material name=\"sand\"><soil "
                     "like=\"dry_sand\" kphi=\"6e6\" compaction=\"0\"/></material>"
                     "<robot name=\"k10\" file=\"models/k10.urdf\" base=\"floating\" xyz=\"-8 0 %.3f\">",
                     (double)dunes(-8, 0) + 0.2);
    for (int i = 0; i < 4; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "<drive joint=\"%s_steer\" kp=\"800\" kd=\"60\" position=\"0\"/><drive "
                      "joint=\"%s_drive\" kd=\"40\" velocity=\"0\"/>",
                      corner[i], corner[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "</robot></scene>");
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load_text(text, (size_t)n, US_SOURCE_DIR "/paged_bed.xml", NULL, &spec, &err))
        fail_msg("%s: %s", err.element, err.message);
    return spec;
}

static us_model *compile(us_spec *spec, us_shape_def ground, const us_allocator *allocator) {
    us_model *model = NULL;
    us_error err = {0};
    ground.surface = "sand";
    ground.patch_spacing = BED;
    ground.name = "dunes";
    if (us_spec_add_shape(spec, &ground, NULL) || us_model_compile(spec, allocator, &model, &err))
        fail_msg("%s (%s)", err.message, err.remedy);
    us_spec_destroy(spec);
    return model;
}

static us_shape_def paged(double memory) {
    us_shape_def d = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    d.site = SITE;
    d.memory = memory;
    return d;
}

static us_model *paged_model(double memory, const us_allocator *allocator) {
    return compile(world(), paged(memory), allocator);
}

static us_model *whole_model(void) {
    us_shape_def d = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    double *heights = site_heights(N, N, SPACING, SPACING, dunes);
    d.heights = heights;
    d.n_x = d.n_y = N;
    d.size[0] = d.size[1] = SPACING;
    us_model *model = compile(world(), d, NULL);
    free(heights);
    return model;
}

static us_status step(us_sim *sim) {
    const us_pose X_WB = us_sim_get_pose(sim, us_model_find_body(us_sim_view_model(sim), "k10/base"));
    const double rim = us_sim_get_tick(sim) < N_OUT ? SPEED : -SPEED;
    // Wheels of the two sides turn at different speeds, so that it keeps to the x axis and meets its ruts.
    const double heading = 2 * atan2(X_WB.q.z, X_WB.q.w), wanted = fmax(-0.3, fmin(0.3, -X_WB.p.y));
    const double turn = 2 * ((rim > 0 ? wanted : -wanted) - heading);
    double velocity[8] = {0};
    for (int i = 0; i < 4; i++)
        velocity[2 * i + 1] = (rim + (i % 2 ? turn : -turn)) / 0.18;
    return us_sim_step(sim, &(us_command){.drive_velocity = velocity});
}

// Of the motion and of the soil.
static uint64_t hash_of(const us_sim *sim) {
    us_deformable_info patch = us_sim_get_deformable(sim, 0);
    const uint64_t soil[] = {patch.digest, (uint64_t)patch.n_active, (uint64_t)patch.n_touched};
    return us_hash_bytes(build_motion_hash(sim), soil, sizeof soil);
}

static void run(us_sim *sim, int32_t from, int32_t to, uint64_t *out) {
    for (int32_t i = from; i < to; i++) {
        if (step(sim)) fail_msg("%s: %s", us_sim_view_error(sim)->file, us_sim_view_error(sim)->message);
        out[i] = hash_of(sim);
    }
}

static void assert_same(const uint64_t *a, const uint64_t *b, int32_t from, int32_t to) {
    for (int32_t i = from; i < to; i++) {
        if (a[i] != b[i]) fail_msg("other bits from step %d on", (int)i);
    }
}

static uint64_t dense[N_STEP];
static float *dense_height;
static int32_t dense_touched;

// Heights and changes of all touched tiles, one after the other.
static float *touched(const us_sim *sim, int32_t *out_n, double *out_volume, double *out_deepest) {
    us_deformable_info patch = us_sim_get_deformable(sim, 0);
    const size_t each = 2 * US_DEFORMABLE_TILE * US_DEFORMABLE_TILE;
    float *out = calloc((size_t)patch.n_touched * each, sizeof *out);
    assert_non_null(out);
    *out_n = patch.n_touched;
    *out_volume = 0;
    *out_deepest = 0;
    for (int32_t k = 0; k < patch.n_touched; k++) {
        int32_t u, v;
        assert_int_equal(us_sim_get_deformable_touched(sim, 0, k, &u, &v), US_OK);
        assert_int_equal(us_sim_find_deformable_tile(sim, 0, u, v), k);
        float *at = out + (size_t)k * each;
        assert_int_equal(us_sim_get_deformable_tile(sim, 0, u, v, at, at + each / 2), US_OK);
        for (size_t i = each / 2; i < each; i++) {
            *out_volume += (double)at[i];
            *out_deepest = fmin(*out_deepest, (double)at[i]);
        }
    }
    return out;
}

static int setup(void **state) {
    (void)state;
    site_make(SITE, N, N, SPACING, SPACING, dunes);
    us_model *model = whole_model();
    us_sim *sim = build_sim_of(model, 1, NULL);
    run(sim, 0, N_STEP, dense);
    double volume, deepest;
    dense_height = touched(sim, &dense_touched, &volume, &deepest);
    us_sim_destroy(sim);
    us_model_destroy(model);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    free(dense_height);
    site_clear(SITE);
    return 0;
}

static void ruts_on_paged_ground_are_those_on_the_same_ground_in_memory(void **state) {
    (void)state;
    static uint64_t hash[N_STEP];
    us_model *model = paged_model(SMALL, NULL);
    for (int32_t n_thread = 1; n_thread <= 2; n_thread++) {
        us_sim *sim = build_sim_of(model, n_thread, NULL);
        run(sim, 0, N_OUT, hash);
        us_paging out = us_sim_get_paging(sim);
        double way = us_sim_get_pose(sim, us_model_find_body(model, "k10/base")).p.x + 8;
        run(sim, N_OUT, N_STEP, hash);
        us_paging back = us_sim_get_paging(sim);
        assert_same(hash, dense, 0, N_STEP);
        int32_t n;
        double volume, deepest;
        float *height = touched(sim, &n, &volume, &deepest);
        printf("    %.1f m out, %d tiles given back and %d on the way back, %d waits; %d tiles of the bed, "
               "ruts of %.1f mm\n",
               way, (int)out.n_drop, (int)(back.n_drop - out.n_drop), (int)back.n_wait, (int)n,
               -1e3 * deepest);
        // The tiles under the first ruts went while it was away, or this says nothing.
        assert_true(way > 12 && out.n_drop > 0 && back.n_drop > out.n_drop && back.bytes <= back.memory &&
                    deepest < -0.005);
        assert_int_equal(n, dense_touched);
        assert_memory_equal(height, dense_height,
                            (size_t)n * 2 * US_DEFORMABLE_TILE * US_DEFORMABLE_TILE * sizeof *height);
        // Without compaction what goes down comes up: the changes are whole micrometres in floats, each
        // rounded to 1e-9 m or better.
        if (fabs(volume) > 1e-9 * n * US_DEFORMABLE_TILE * US_DEFORMABLE_TILE)
            fail_msg("%g m of columns more", volume);
        free(height);
        us_sim_destroy(sim);
    }
    us_model_destroy(model);
}

static void a_snapshot_has_the_ruts_whose_ground_is_not_in_memory(void **state) {
    (void)state;
    static uint64_t hash[N_STEP];
    // Of one model both would share the memory.
    us_model *model = paged_model(SMALL, NULL), *same = paged_model(SMALL, NULL);
    us_sim *sim = build_sim_of(model, 1, NULL), *other = build_sim_of(same, 1, NULL);
    run(sim, 0, N_OUT, hash);
    size_t length = 0;
    us_sim_save(sim, NULL, 0, &length);
    void *kept = malloc(length);
    assert_int_equal(us_sim_save(sim, kept, length, NULL), US_OK);
    uint64_t there = us_sim_hash(sim);
    run(sim, N_OUT, N_OUT + 2000, hash);
    us_sim *const again[] = {other, sim};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(us_sim_restore(again[i], kept, length), US_OK);
        assert_true(us_sim_hash(again[i]) == there);
        us_sim_poison(again[i]);
        // One of them all the way back, the other one a part of it.
        int32_t end = i == 0 ? N_STEP : N_OUT + 2000;
        run(again[i], N_OUT, end, hash);
        assert_same(hash, dense, N_OUT, end);
    }
    // And an edit of the world keeps them.
    assert_int_equal(us_sim_restore(sim, kept, length), US_OK);
    us_shape_def more = paged(2 * SMALL);
    more.patch_memory = 50e6;
    us_model *wider = compile(world(), more, NULL);
    uint64_t digest = us_sim_get_deformable(sim, 0).digest;
    assert_int_equal(us_sim_replace(sim, wider, NULL), US_OK);
    assert_true(us_sim_get_deformable(sim, 0).digest == digest &&
                us_sim_get_deformable(sim, 0).memory == 50000000);
    run(sim, N_OUT, N_OUT + 2000, hash);
    assert_same(hash, dense, N_OUT, N_OUT + 2000);
    us_sim_destroy(sim);
    us_sim_destroy(other);
    us_model_destroy(wider);
    us_model_destroy(same);
    us_model_destroy(model);
    free(kept);
}

static void a_step_allocates_nothing(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    us_model *model = paged_model(SMALL, &t.allocator);
    us_sim *sim = build_sim_of(model, 1, &t.allocator);
    int64_t n = t.n_alloc;
    for (int32_t i = 0; i < N_OUT / 2; i++)
        assert_int_equal(step(sim), US_OK);
    assert_int_equal(t.n_alloc, n);
    us_sim_destroy(sim);
    us_model_destroy(model);
    test_allocator_check(&t);
}

static void a_patch_that_is_full_stops_the_step_and_names_the_setting(void **state) {
    (void)state;
    us_shape_def ground = paged(SMALL);
    ground.patch_memory = 5 * 28672;
    us_model *model = compile(world(), ground, NULL);
    us_sim *sim = build_sim_of(model, 1, NULL);
    int32_t n = 0;
    while (n < N_STEP && !step(sim))
        n++;
    assert_true(n > 100 && n < N_OUT);
    uint64_t hash = us_sim_hash(sim);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(step(sim), US_ERR_LIMIT);
        assert_non_null(strstr(us_sim_view_error(sim)->message, "bed-memory=\"0.14336 MB\""));
        assert_non_null(strstr(us_sim_view_error(sim)->remedy, "larger bed-memory"));
        assert_true(us_sim_hash(sim) == hash && us_sim_get_tick(sim) == n && hash_of(sim) == dense[n - 1]);
    }
    us_deformable_info patch = us_sim_get_deformable(sim, 0);
    assert_true(patch.n_touched > 5 && patch.n_touched < 9 && patch.bytes > patch.memory);
    // With a larger one it goes on where it was.
    us_model *wider = paged_model(SMALL, NULL);
    static uint64_t rest[N_STEP];
    assert_int_equal(us_sim_replace(sim, wider, NULL), US_OK);
    run(sim, n, n + 2000, rest);
    assert_same(rest, dense, n, n + 2000);
    us_sim_destroy(sim);
    us_model_destroy(wider);
    us_model_destroy(model);
}

static void what_a_patch_cannot_be_is_said_before_anything_runs(void **state) {
    (void)state;
    const struct {
        double memory, spacing, high;
        const char *words;
    } rows[] = {{0, BED, 0, "no memory"},
                {30e9, BED, 0, "no memory"},
                {1e9, 1e-5, 0, "too many or too few"},
                {1e9, BED, 2100, "2000 m"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double heights[4] = {0, 0, 0, rows[i].high};
        us_shape_def ground = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
        ground.heights = heights;
        ground.n_x = ground.n_y = 2;
        ground.size[0] = ground.size[1] = 64;
        ground.surface = "sand";
        ground.patch_memory = rows[i].memory;
        ground.patch_spacing = rows[i].spacing;
        us_spec *spec = world();
        us_model *model = NULL;
        us_error err = {0};
        assert_int_equal(us_spec_add_shape(spec, &ground, NULL), US_OK);
        assert_int_not_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
        if (!strstr(err.message, rows[i].words) || !err.remedy[0])
            fail_msg("%s (%s)", err.message, err.remedy);
        us_spec_destroy(spec);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ruts_on_paged_ground_are_those_on_the_same_ground_in_memory),
        cmocka_unit_test(a_snapshot_has_the_ruts_whose_ground_is_not_in_memory),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(a_patch_that_is_full_stops_the_step_and_names_the_setting),
        cmocka_unit_test(what_a_patch_cannot_be_is_said_before_anything_runs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

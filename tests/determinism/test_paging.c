// Ground that is paged in gives the same bits as the same ground in memory, whatever is read when.
#include <math.h>
#include <pthread.h>
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

// 2 km at 1 m: 8 by 8 tiles, 32 MB of numbers.
enum { N = 2001, N_BODY = 6, N_STEP = 3000 };
static const char *const SITE = "ground";
// Room for some five tiles of 64.
static const double SMALL = 6e6;

// Things that are thrown over the ground at 230 m/s: in 3 s they come over half of it, those that roll
// farther than those that slide.
static us_spec *world_on(const us_shape_def *ground) {
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    assert_int_equal(us_spec_add_shape(spec, ground, NULL), US_OK);
    for (int32_t k = 0; k < N_BODY; k++) {
        char name[16];
        snprintf(name, sizeof name, "body%d", (int)k);
        int32_t link = build_link(spec, name, 2, us_vec3_make(0, 0, 0), us_vec3_make(0.05, 0.05, 0.05));
        us_joint_def j =
            build_joint_at(US_JOINT_FLOATING, US_WORLD, link, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1));
        const double x = -400 + 2.0 * k, y = -300 + 3.0 * k,
                     q[7] = {1, 0, 0, 0, x, y, (double)site_hills(x, y) + 1},
                     v[6] = {0, 5, 0, 200, 115 + k, 0};
        memcpy(j.q0, q, sizeof q);
        memcpy(j.v0, v, sizeof v);
        build_joint_def(spec, name, &j);
        us_shape_def s = us_shape_def_default(k % 3 == 0   ? US_SHAPE_SPHERE
                                              : k % 3 == 1 ? US_SHAPE_CYLINDER
                                                           : US_SHAPE_BOX);
        s.link = link;
        s.size[0] = 0.3;
        s.size[1] = 0.4;
        s.size[2] = 0.2;
        assert_int_equal(us_spec_add_shape(spec, &s, NULL), US_OK);
    }
    return spec;
}

static us_shape_def paged_ground(double memory) {
    us_shape_def d = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    d.site = SITE;
    d.memory = memory;
    return d;
}

static us_model *compile(us_spec *spec, const us_allocator *allocator) {
    us_model *model = NULL;
    us_error err = {0};
    if (us_model_compile(spec, allocator, &model, &err)) fail_msg("%s (%s)", err.message, err.remedy);
    us_spec_destroy(spec);
    return model;
}

// In how many steps something touched the ground.
static int32_t n_touching;

static void step(us_sim *sim, int32_t n, uint64_t *out_hash) {
    for (int32_t i = 0; i < n; i++) {
        if (us_sim_step(sim, NULL))
            fail_msg("%s: %s", us_sim_view_error(sim)->file, us_sim_view_error(sim)->message);
        if (out_hash) out_hash[i] = build_motion_hash(sim);
        n_touching += us_sim_n_contact(sim) > 0;
    }
}

// The hashes on the same ground, all of it in memory.
static uint64_t dense[N_STEP];

static int setup(void **state) {
    (void)state;
    site_make(SITE, N, N, 1, 1, site_hills);
    us_shape_def ground = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    double *heights = site_heights(N, N, 1, 1, site_hills);
    ground.heights = heights;
    ground.n_x = ground.n_y = N;
    ground.size[0] = ground.size[1] = 1;
    us_model *model = compile(world_on(&ground), NULL);
    free(heights);
    us_sim *sim = build_sim_of(model, 1, NULL);
    step(sim, N_STEP, dense);
    // They do touch the ground, or this test says nothing.
    assert_true(n_touching > 20);
    us_paging none = us_sim_get_paging(sim);
    assert_true(none.n_read == 0 && none.memory == 0);
    us_sim_destroy(sim);
    us_model_destroy(model);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    site_clear(SITE);
    return 0;
}

static void paged_ground_gives_the_bits_of_dense_ground_for_any_number_of_threads(void **state) {
    (void)state;
    static uint64_t hash[N_STEP];
    us_shape_def ground = paged_ground(SMALL);
    us_model *model = compile(world_on(&ground), NULL);
    for (int32_t n_thread = 1; n_thread <= 3; n_thread += 2) {
        us_sim *sim = build_sim_of(model, n_thread, NULL);
        step(sim, N_STEP, hash);
        assert_memory_equal(hash, dense, sizeof dense);
        us_paging p = us_sim_get_paging(sim);
        print_message("%d threads: %d tiles read, %d given back, %d waits, %.1f MB\n", (int)n_thread,
                      (int)p.n_read, (int)p.n_drop, (int)p.n_wait, 1e-6 * (double)p.bytes);
        // Tiles came and went, and never were more than allowed.
        assert_true(p.n_read > 4 && p.n_drop > 0 && p.bytes > 0 && p.bytes <= p.memory &&
                    (double)p.memory == SMALL);
        us_sim_destroy(sim);
    }
    us_model_destroy(model);
}

static void forgetting_the_scratch_and_jumping_back_change_nothing(void **state) {
    (void)state;
    static uint64_t hash[N_STEP];
    us_shape_def ground = paged_ground(SMALL);
    us_model *model = compile(world_on(&ground), NULL);
    us_sim *sim = build_sim_of(model, 1, NULL);
    size_t length = 0;
    us_sim_save(sim, NULL, 0, &length);
    void *kept = malloc(length);
    assert_int_equal(us_sim_save(sim, kept, length, NULL), US_OK);
    step(sim, N_STEP, NULL);
    int64_t n_wait = us_sim_get_paging(sim).n_wait;
    // Back where they began: nothing of that is in memory any more, and the step must wait for it.
    assert_int_equal(us_sim_restore(sim, kept, length), US_OK);
    us_sim_poison(sim);
    step(sim, 1, hash);
    assert_true(us_sim_get_paging(sim).n_wait > n_wait);
    step(sim, N_STEP - 1, hash + 1);
    assert_memory_equal(hash, dense, sizeof dense);
    free(kept);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

typedef struct run {
    us_sim *sim;
    uint64_t hash[N_STEP];
    us_status status;
} run;

static void *run_steps(void *context) {
    run *r = context;
    for (int32_t i = 0; i < N_STEP && !r->status; i++) {
        r->status = us_sim_step(r->sim, NULL);
        r->hash[i] = build_motion_hash(r->sim);
    }
    return NULL;
}

static void sims_that_share_the_ground_do_not_disturb_each_other(void **state) {
    (void)state;
    static run runs[3];
    us_shape_def ground = paged_ground(4 * SMALL);
    us_model *model = compile(world_on(&ground), NULL);
    pthread_t thread[3];
    for (int k = 0; k < 3; k++) {
        runs[k] = (run){.sim = build_sim_of(model, 1, NULL)};
        assert_int_equal(pthread_create(&thread[k], NULL, run_steps, &runs[k]), 0);
    }
    for (int k = 0; k < 3; k++)
        assert_int_equal(pthread_join(thread[k], NULL), 0);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(runs[k].status, US_OK);
        assert_memory_equal(runs[k].hash, dense, sizeof dense);
        us_sim_destroy(runs[k].sim);
    }
    us_model_destroy(model);
}

static void a_step_allocates_nothing(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    us_shape_def ground = paged_ground(SMALL);
    us_model *model = compile(world_on(&ground), &t.allocator);
    us_sim *sim = build_sim_of(model, 1, &t.allocator);
    int64_t n = t.n_alloc;
    step(sim, N_STEP, NULL);
    assert_int_equal(t.n_alloc, n);
    assert_true(us_sim_get_paging(sim).n_drop > 0);
    us_sim_destroy(sim);
    us_model_destroy(model);
    test_allocator_check(&t);
}

static void a_tile_that_is_not_there_stops_the_step_until_it_is_put_back(void **state) {
    (void)state;
    static uint64_t hash[N_STEP];
    const char *file = "ground/height/0/4_3.tile";
    us_shape_def ground = paged_ground(SMALL);
    us_model *model = compile(world_on(&ground), NULL);
    us_sim *sim = build_sim_of(model, 1, NULL);
    assert_int_equal(rename(file, "kept.tile"), 0);
    us_status status = US_OK;
    int32_t n = 0;
    while (n < N_STEP && !status) {
        status = us_sim_step(sim, NULL);
        if (!status) hash[n++] = build_motion_hash(sim);
    }
    for (int again = 0; again < 2; again++) {
        assert_int_equal(status, US_ERR_IO);
        const us_error *err = us_sim_view_error(sim);
        assert_non_null(strstr(err->file, file));
        assert_non_null(strstr(err->message, "missing"));
        assert_non_null(strstr(err->remedy, "put the file back"));
        // The state is that of the last tick.
        assert_int_equal(us_sim_get_tick(sim), n);
        assert_true(n == 0 || build_motion_hash(sim) == hash[n - 1]);
        status = us_sim_step(sim, NULL);
    }
    assert_int_equal(rename("kept.tile", file), 0);
    step(sim, N_STEP - n, hash + n);
    assert_memory_equal(hash, dense, sizeof dense);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

static void memory_that_is_not_enough_is_named(void **state) {
    (void)state;
    us_shape_def ground = paged_ground(1e6);
    us_model *model = compile(world_on(&ground), NULL);
    us_sim *sim = build_sim_of(model, 1, NULL);
    uint64_t before = us_sim_hash(sim);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(us_sim_step(sim, NULL), US_ERR_LIMIT);
        assert_non_null(strstr(us_sim_view_error(sim)->message, "memory=\"1 MB\""));
        assert_non_null(strstr(us_sim_view_error(sim)->remedy, "larger memory"));
        assert_true(us_sim_hash(sim) == before && us_sim_get_tick(sim) == 0);
    }
    us_sim_destroy(sim);
    us_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paged_ground_gives_the_bits_of_dense_ground_for_any_number_of_threads),
        cmocka_unit_test(forgetting_the_scratch_and_jumping_back_change_nothing),
        cmocka_unit_test(sims_that_share_the_ground_do_not_disturb_each_other),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(a_tile_that_is_not_there_stops_the_step_until_it_is_put_back),
        cmocka_unit_test(memory_that_is_not_enough_is_named),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

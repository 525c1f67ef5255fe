// Room for contacts that grows while the world runs: the same bits as if there had been room from the start.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "contact_crowd.h"
#include "understudy/understudy.h"

static us_model *compile(us_spec *spec, int32_t max_contact) {
    us_world_settings world = *us_spec_view_world(spec);
    world.max_contact = max_contact;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    us_model *model = NULL;
    us_error err = {0};
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s: %s", err.element, err.message);
    us_spec_destroy(spec);
    return model;
}

static us_sim *create(const us_model *model, int32_t n_thread) {
    us_sim_def def = us_sim_def_default();
    def.n_thread = n_thread;
    us_sim *sim = NULL;
    us_error err = {0};
    if (us_sim_create(model, &def, &sim, &err)) fail_msg("%s", err.message);
    return sim;
}

static void step(us_sim *sim) {
    if (us_sim_step(sim, NULL)) fail_msg("%s", us_sim_view_error(sim)->message);
}

static void assert_steps_alike(us_sim *a, us_sim *b, int n_step, const char *what) {
    for (int i = 0; i < n_step; i++) {
        step(a);
        step(b);
        if (us_sim_hash(a) != us_sim_hash(b)) fail_msg("%s: the states differ from step %d on", what, i);
    }
}

static void a_crowd_with_little_room_moves_as_one_with_much(void **state) {
    (void)state;
    static const struct {
        const char *solver;
        int32_t n_column, n_rover, n_pile, n_thread;
        int n_step;
    } cases[] = {
        {"newton", 4, 2, 40, 1, 250},        {"newton", 4, 2, 40, 3, 250},
        {"gauss-seidel", 4, 2, 40, 1, 250},  {"rigid-direct", 1, 1, 4, 1, 60},
        {"rigid-iterative", 1, 1, 4, 1, 60},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        us_model *much =
            compile(crowd_spec(cases[k].n_column, cases[k].n_rover, cases[k].n_pile, cases[k].solver), 20000);
        us_model *little =
            compile(crowd_spec(cases[k].n_column, cases[k].n_rover, cases[k].n_pile, cases[k].solver), 3);
        assert_int_equal(us_model_hash(much), us_model_hash(little));
        us_sim *a = create(much, 1), *b = create(little, cases[k].n_thread);
        assert_steps_alike(a, b, cases[k].n_step, cases[k].solver);
        assert_int_equal(us_sim_get_room(a).n_growth, 0);
        us_room room = us_sim_get_room(b);
        assert_true(room.n_growth > 0 && room.max_contact >= us_sim_n_contact(b));
        us_sim_destroy(a);
        us_sim_destroy(b);
        us_model_destroy(much);
        us_model_destroy(little);
    }
}

// Soil with ruts, paged ground, scattered stones, hexapods, faults: whatever the library comes with.
static void the_scenes_of_the_library_do_the_same_from_room_for_one(void **state) {
    (void)state;
    static const char *const names[] = {"default", "flat",  "forest", "fleet",  "hexapod-sand",
                                        "gripper", "stack", "slope",  "marbles"};
    int n_grown = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        us_model *model[2];
        us_sim *sim[2];
        for (int i = 0; i < 2; i++) {
            char path[512];
            snprintf(path, sizeof path, US_SOURCE_DIR "/scenes/%s.xml", names[k]);
            us_spec *spec = NULL;
            us_error err = {0};
            if (us_spec_load(path, NULL, &spec, &err)) fail_msg("%s", err.message);
            model[i] = compile(spec, i == 0 ? 0 : 1);
            sim[i] = create(model[i], 1);
        }
        assert_steps_alike(sim[0], sim[1], 40, names[k]);
        n_grown += us_sim_get_room(sim[1]).n_growth > 0;
        for (int i = 0; i < 2; i++) {
            us_sim_destroy(sim[i]);
            us_model_destroy(model[i]);
        }
    }
    assert_true(n_grown >= 7);
}

static void snapshots_go_from_any_room_to_any_other(void **state) {
    (void)state;
    us_model *much = compile(crowd_spec(3, 1, 20, "newton"), 5000),
             *little = compile(crowd_spec(3, 1, 20, "newton"), 2);
    us_sim *a = create(much, 1), *b = create(little, 1), *fresh[2] = {create(little, 1), create(much, 1)};
    assert_steps_alike(a, b, 150, "before");
    us_sim *from[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        size_t length = 0;
        assert_int_equal(us_sim_save(from[i], NULL, 0, &length), US_OK);
        void *buf = malloc(length);
        assert_non_null(buf);
        assert_int_equal(us_sim_save(from[i], buf, length, NULL), US_OK);
        assert_int_equal(us_sim_restore(fresh[i], buf, length), US_OK);
        assert_int_equal(us_sim_hash(fresh[i]), us_sim_hash(from[i]));
        free(buf);
    }
    assert_steps_alike(a, fresh[0], 50, "from much to little");
    assert_steps_alike(b, fresh[1], 50, "from little to much");
    assert_int_equal(us_sim_hash(a), us_sim_hash(b));
    us_sim_destroy(a);
    us_sim_destroy(b);
    us_sim_destroy(fresh[0]);
    us_sim_destroy(fresh[1]);
    us_model_destroy(much);
    us_model_destroy(little);
}

// Sensors, firmware and mailboxes take from outside what cannot be taken twice.
static us_status count_run(void *context, us_sim *sim, us_plugin_view *view, us_error *err) {
    (void)sim;
    (void)err;
    ++*(int64_t *)context;
    ++*(int64_t *)view->state;
    return US_OK;
}

static void plugins_run_once_in_a_tick_that_is_done_again(void **state) {
    (void)state;
    us_model *model = compile(crowd_spec(3, 1, 20, "newton"), 2);
    int64_t n_run = 0;
    us_plugin plugin = {.version = US_PLUGIN_VERSION,
                        .name = "count",
                        .state_size = 8,
                        .context = &n_run,
                        .before = count_run};
    us_sim_def def = us_sim_def_default();
    def.n_plugin = 1;
    def.plugins = &plugin;
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(model, &def, &sim, NULL), US_OK);
    for (int i = 0; i < 200; i++)
        step(sim);
    assert_true(us_sim_get_room(sim).n_growth > 1);
    assert_int_equal(n_run, 200);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

static void with_fixed_room_a_step_fails_and_changes_nothing(void **state) {
    (void)state;
    us_model *model = compile(crowd_spec(3, 1, 20, "newton"), 2);
    test_allocator t;
    test_allocator_init(&t);
    us_sim_def def = us_sim_def_default();
    def.allocator = t.allocator;
    def.has_fixed_room = true;
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(model, &def, &sim, NULL), US_OK);
    int64_t n_alloc = t.n_alloc;
    uint64_t hash = us_sim_hash(sim);
    us_status status = US_OK;
    for (int i = 0; i < 200 && !status; i++) {
        status = us_sim_step(sim, NULL);
        if (!status) hash = us_sim_hash(sim);
    }
    assert_int_equal(status, US_ERR_LIMIT);
    assert_non_null(strstr(us_sim_view_error(sim)->remedy, "max-contact"));
    assert_int_equal(us_sim_hash(sim), hash);
    assert_int_equal(t.n_alloc, n_alloc);
    us_sim_destroy(sim);
    test_allocator_check(&t);
    us_model_destroy(model);
}

static void a_growth_without_memory_fails_and_may_be_tried_again(void **state) {
    (void)state;
    us_model *model = compile(crowd_spec(2, 1, 4, "newton"), 2);
    test_allocator t;
    test_allocator_init(&t);
    us_sim_def def = us_sim_def_default();
    def.allocator = t.allocator;
    us_sim *sim = NULL, *plain = create(model, 1);
    assert_int_equal(us_sim_create(model, &def, &sim, NULL), US_OK);
    const int64_t n_live = t.n_live;
    int n_failed = 0;
    for (int i = 0; i < 100; i++) {
        step(plain);
        const uint64_t hash = us_sim_hash(sim);
        for (int64_t k = 1;; k++) {
            const int64_t live = t.n_live;
            t.fail_at = t.n_alloc + k;
            us_status status = us_sim_step(sim, NULL);
            if (!status) break;
            n_failed++;
            assert_int_equal(status, US_ERR_LIMIT);
            assert_true(us_sim_view_error(sim)->remedy[0] != 0);
            assert_int_equal(t.n_live, live);
            assert_int_equal(us_sim_hash(sim), hash);
        }
        t.fail_at = 0;
        assert_int_equal(us_sim_hash(sim), us_sim_hash(plain));
    }
    assert_true(n_failed > 10 && t.n_live == n_live);
    us_sim_destroy(sim);
    us_sim_destroy(plain);
    test_allocator_check(&t);
    us_model_destroy(model);
}

static int n_line;
static void count_line(void *context, int32_t level, const char *text) {
    (void)context;
    (void)level;
    n_line += strstr(text, "contact points was made") && strstr(text, "max-contact=");
}

static void the_world_says_so_once(void **state) {
    (void)state;
    us_spec *spec = crowd_spec(3, 1, 20, "newton");
    us_world_settings settings = *us_spec_view_world(spec);
    settings.max_contact = 2;
    assert_int_equal(us_spec_set_world(spec, &settings), US_OK);
    us_world_def def = us_world_def_default();
    def.log = count_line;
    us_world *world = NULL;
    us_error err = {0};
    if (us_world_create(spec, &def, &world, &err)) fail_msg("%s", err.message);
    for (int i = 0; i < 200; i++) {
        if (us_world_step(world, &err)) fail_msg("%s", err.message);
    }
    assert_int_equal(n_line, 1);
    us_world_destroy(world);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_with_little_room_moves_as_one_with_much),
        cmocka_unit_test(the_scenes_of_the_library_do_the_same_from_room_for_one),
        cmocka_unit_test(snapshots_go_from_any_room_to_any_other),
        cmocka_unit_test(plugins_run_once_in_a_tick_that_is_done_again),
        cmocka_unit_test(with_fixed_room_a_step_fails_and_changes_nothing),
        cmocka_unit_test(a_growth_without_memory_fails_and_may_be_tried_again),
        cmocka_unit_test(the_world_says_so_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Contact is the same bits for any number of threads, whatever the scratch held before, and from any snapshot
// on.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "contact_crowd.h"

enum { N_STEP = 320, HALF = N_STEP / 2, N_RIGID = 60 };

typedef struct trace {
    uint64_t hash[N_STEP];
    int32_t most_contacts;
} trace;

static us_model *compile(us_spec *spec) {
    us_model *model = NULL;
    us_error err = {.code = US_OK};
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s: %s", err.element, err.message);
    us_spec_destroy(spec);
    return model;
}

static us_sim *create(const us_model *model, int32_t n_thread) {
    us_sim_def def = us_sim_def_default();
    def.n_thread = n_thread;
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(model, &def, &sim, NULL), US_OK);
    return sim;
}

static void step(us_sim *sim) {
    if (us_sim_step(sim, NULL)) fail_msg("%s", us_sim_view_error(sim)->message);
}

static void run(us_sim *sim, int from, int to, int poison_every, trace *out) {
    for (int i = from; i < to; i++) {
        if (poison_every && i % poison_every == 0) us_sim_poison(sim);
        step(sim);
        out->hash[i] = us_sim_hash(sim);
        if (us_sim_n_contact(sim) > out->most_contacts) out->most_contacts = us_sim_n_contact(sim);
    }
}

static void assert_same(const trace *a, const trace *b, const char *what) {
    for (int i = 0; i < N_STEP; i++) {
        if (a->hash[i] != b->hash[i]) fail_msg("%s: the states differ from step %d on", what, i);
    }
}

// 60 boxes in ten columns, three rovers, and a pile that is one island of more bodies than Newton's method
// takes on.
static us_model *crowd(const char *solver) { return compile(crowd_spec(10, 3, 60, solver)); }

static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    static trace one, many;
    us_model *model = crowd(NULL);
    us_sim *sim = create(model, 1);
    one = (trace){.most_contacts = 0};
    run(sim, 0, N_STEP, 0, &one);
    us_sim_destroy(sim);
    // Four points under and between the boxes of each column at least.
    assert_true(one.most_contacts > 10 * 6 * 4);
    static const int32_t n_threads[] = {2, 3, 8};
    for (size_t k = 0; k < sizeof n_threads / sizeof *n_threads; k++) {
        sim = create(model, n_threads[k]);
        many = (trace){.most_contacts = 0};
        run(sim, 0, N_STEP, 0, &many);
        assert_same(&one, &many, "threads");
        us_sim_destroy(sim);
    }
    us_model_destroy(model);
}

static void more_threads_than_islands_change_nothing(void **state) {
    (void)state;
    static trace one, many;
    us_model *model = compile(crowd_spec(1, 1, 0, NULL));
    us_sim *a = create(model, 1), *b = create(model, 8);
    one = many = (trace){.most_contacts = 0};
    run(a, 0, N_STEP, 0, &one);
    run(b, 0, N_STEP, 0, &many);
    assert_same(&one, &many, "8 threads for two islands");
    us_sim_destroy(a);
    us_sim_destroy(b);
    us_model_destroy(model);
}

static void garbage_in_the_scratch_changes_nothing(void **state) {
    (void)state;
    static trace clean, poisoned;
    static const char *const solvers[] = {"newton", "gauss-seidel", "rigid-direct", "rigid-iterative"};
    for (size_t k = 0; k < sizeof solvers / sizeof *solvers; k++) {
        // The rigid solvers take their time: a smaller crowd, fewer steps.
        bool is_rigid = k >= 2;
        us_model *model = is_rigid ? compile(crowd_spec(1, 1, 4, solvers[k])) : crowd(solvers[k]);
        us_sim *a = create(model, 1), *b = create(model, 2);
        clean = poisoned = (trace){.most_contacts = 0};
        run(a, 0, is_rigid ? N_RIGID : N_STEP, 0, &clean);
        run(b, 0, is_rigid ? N_RIGID : N_STEP, 1, &poisoned);
        assert_same(&clean, &poisoned, solvers[k]);
        us_sim_destroy(a);
        us_sim_destroy(b);
        us_model_destroy(model);
    }
}

static void a_snapshot_in_the_middle_of_contact_goes_on_with_the_same_bits(void **state) {
    (void)state;
    static trace whole, resumed;
    static const char *const solvers[] = {"newton", "gauss-seidel"};
    for (size_t k = 0; k < sizeof solvers / sizeof *solvers; k++) {
        us_model *model = crowd(solvers[k]);
        us_sim *a = create(model, 1), *b = create(model, 2);
        whole = resumed = (trace){.most_contacts = 0};
        run(a, 0, HALF, 0, &whole);
        size_t length = 0, written = 0;
        assert_int_equal(us_sim_save(a, NULL, 0, &length), US_OK);
        void *snapshot = malloc(length);
        assert_non_null(snapshot);
        assert_int_equal(us_sim_save(a, snapshot, length, &written), US_OK);
        assert_int_equal(written, length);
        run(a, HALF, N_STEP, 0, &whole);

        // Into a world that has just begun, and back into the one that has gone on.
        us_sim *const into[] = {b, a};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(us_sim_restore(into[i], snapshot, length), US_OK);
            assert_true(us_sim_hash(into[i]) == whole.hash[HALF - 1]);
            for (int t = 0; t < HALF; t++)
                resumed.hash[t] = whole.hash[t];
            run(into[i], HALF, N_STEP, 0, &resumed);
            assert_same(&whole, &resumed, "snapshot");
        }
        free(snapshot);
        us_sim_destroy(a);
        us_sim_destroy(b);
        us_model_destroy(model);
    }
}

static void questions_between_steps_change_nothing(void **state) {
    (void)state;
    static trace quiet, asked;
    us_model *model = compile(crowd_spec(2, 2, 8, NULL));
    us_sim *a = create(model, 1), *b = create(model, 1);
    quiet = asked = (trace){.most_contacts = 0};
    run(a, 0, N_STEP, 0, &quiet);
    us_model_counts n = us_model_get_counts(model);
    for (int i = 0; i < N_STEP; i++) {
        us_sim_get_energy(b);
        us_sim_get_momentum(b);
        us_sim_get_closure(b);
        for (int32_t k = 0; k < n.n_body; k++)
            us_sim_get_twist(b, (us_body){k});
        for (int32_t k = 0; k < us_sim_n_contact(b); k++)
            us_sim_get_contact(b, k);
        run(b, i, i + 1, 0, &asked);
    }
    assert_same(&quiet, &asked, "questions");
    us_sim_destroy(a);
    us_sim_destroy(b);
    us_model_destroy(model);
}

// A wall of bricks, each on two, that falls by a hair and is hit by its top: one island of more points than
// one thread is left alone with.
static us_spec *wall_spec(void) {
    us_pair_def pair = scene_pair(0.6);
    pair.values.viscous = 0.5;
    pair.values.rolling_length = pair.values.torsion_radius = 0;
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), 1e-3, &pair);
    scene_ground(spec);
    for (int i = 0; i < 70; i++) {
        char name[16];
        snprintf(name, sizeof name, "brick%d", i);
        scene_start start =
            scene_at(0.202 * (i % 7) + 0.1 * (i / 7 % 2), 0.001 * (i % 3), 0.0501 + 0.1002 * (i / 7));
        if (i == 66) start.v = us_vec3_make(2, 0.5, -3);
        scene_box(spec, name, 1, us_vec3_make(0.2, 0.2, 0.1), &start);
    }
    return spec;
}

static void threads_that_share_an_island_give_the_same_bits(void **state) {
    (void)state;
    static trace one, many;
    us_model *model = compile(wall_spec());
    us_sim *sim = create(model, 1);
    one = (trace){.most_contacts = 0};
    run(sim, 0, N_STEP, 0, &one);
    us_sim_destroy(sim);
    assert_true(one.most_contacts > 300);
    for (int32_t n_thread = 2; n_thread <= 4; n_thread += 2) {
        sim = create(model, n_thread);
        many = (trace){.most_contacts = 0};
        run(sim, 0, N_STEP, n_thread == 4 ? 7 : 0, &many);
        assert_same(&one, &many, "shared");
        us_sim_destroy(sim);
    }
    us_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(threads_that_share_an_island_give_the_same_bits),
        cmocka_unit_test(more_threads_than_islands_change_nothing),
        cmocka_unit_test(garbage_in_the_scratch_changes_nothing),
        cmocka_unit_test(a_snapshot_in_the_middle_of_contact_goes_on_with_the_same_bits),
        cmocka_unit_test(questions_between_steps_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

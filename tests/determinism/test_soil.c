// Soil is the same bits for any number of threads, whatever the scratch held before, and from any snapshot
// on: patches, what feet remember, regions and soils that were changed while running.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "soil_rig.h"

enum { N_STEP = 1500, HALF = N_STEP / 2 };

// Two free rovers of four wheels, a ball and a box, on a patch with a region of other soil.
#define WHEEL(i, x, y)                                                                           \
    "<link name=\"wheel" i "\"><inertial mass=\"0.5\" inertia=\"0.003 0.003 0.003\"/>"           \
    "<shape type=\"cylinder\" size=\"0.09 0.06\" rpy=\"-90 0 0 deg\" surface=\"steel\"/></link>" \
    "<joint name=\"spin" i "\" type=\"continuous\" parent=\"body\" child=\"wheel" i              \
    "\" axis=\"0 1 0\" xyz=\"" x " " y " 0\"/><drive joint=\"spin" i "\" kd=\"20\" velocity=\"4\"/>"
#define ROVER(i, y)                                                                                          \
    "<object name=\"rover" i "\" xyz=\"-0.4 " y                                                              \
    " 0.1\"><link name=\"body\"><inertial mass=\"4\" inertia=\"0.05 0.05 0.05\"/></link>" WHEEL("0", "0.15", \
                                                                                                "0.12")      \
        WHEEL("1", "0.15", "-0.12") WHEEL("2", "-0.15", "0.12") WHEEL("3", "-0.15", "-0.12") "</object>"

static const char *const scene =
    "<scene name=\"soil\" version=\"1\">"
    "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"41\" ny=\"41\" dx=\"0.05\" "
    "dy=\"0.05\" "
    "expression=\"0.01*sin(3*x)*cos(2*y)\" surface=\"sand\" bed=\"2 cm\"/>"
    "<region name=\"patch\" ground=\"ground\" surface=\"loam\" polygon=\"-0.2 -1 0 -1 0 1 -0.2 1\"/></world>"
    "<material name=\"steel\"/><material name=\"sand\"><soil like=\"dry_sand\"/></material><material "
    "name=\"loam\"><soil like=\"sandy_loam\"/></material>" ROVER("0", "-0.4") ROVER(
        "1", "0.4") "<object name=\"ball\" xyz=\"0.5 0 0.2\"><link name=\"ball\" density=\"2000\"><shape "
                    "type=\"sphere\" size=\"0.05\" surface=\"steel\"/></link></object>"
                    "<object name=\"box\" xyz=\"-0.6 0 0.2\" rpy=\"10 5 0 deg\"><link name=\"box\" "
                    "density=\"1500\"><shape type=\"box\" size=\"0.1 0.1 0.1\" "
                    "surface=\"steel\"/></link></object></scene>";

typedef struct trace {
    uint64_t hash[N_STEP];
    int32_t most_sunk;
} trace;

// The commands of a run are part of it: in the middle of each half soil and region change.
static void run(soil_world *w, int from, int to, bool is_poisoned, trace *out) {
    for (int i = from; i < to; i++) {
        if (i == HALF / 2 || i == HALF + HALF / 2) {
            us_soil soil;
            us_material sand = soil_material(w, "sand");
            assert_int_equal(us_sim_get_soil(w->sim, sand, &soil), US_OK);
            soil.cohesion *= i < HALF ? 0.5 : 1.5;
            assert_int_equal(us_sim_set_soil(w->sim, sand, &soil, NULL), US_OK);
            assert_int_equal(us_sim_set_region(w->sim, 0, i < HALF ? sand : soil_material(w, "loam")), US_OK);
        }
        if (is_poisoned && i % 7 == 0) us_sim_poison(w->sim);
        soil_steps(w, 1);
        out->hash[i] = us_sim_hash(w->sim);
        if (us_sim_n_soil_contact(w->sim) > out->most_sunk) out->most_sunk = us_sim_n_soil_contact(w->sim);
    }
}

static void assert_same(const trace *a, const trace *b, int from, const char *what) {
    for (int i = from; i < N_STEP; i++) {
        if (a->hash[i] != b->hash[i]) fail_msg("%s: the states differ from step %d on", what, i);
    }
}

static void one_and_two_threads_and_garbage_in_the_scratch_give_the_same_bits(void **state) {
    (void)state;
    static trace one, two, poisoned;
    soil_world a = soil_text_threads(scene, 1), b = soil_text_threads(scene, 2),
               c = soil_text_threads(scene, 1);
    run(&a, 0, N_STEP, false, &one);
    run(&b, 0, N_STEP, false, &two);
    run(&c, 0, N_STEP, true, &poisoned);
    us_deformable_info patch = us_sim_get_deformable(a.sim, 0);
    double gone = us_sim_get_pose(a.sim, us_model_find_body(a.model, "rover0/body")).p.x + 0.4;
    printf("    %d points in soil at most, ruts of %.1f mm, %.2f m gone\n", (int)one.most_sunk,
           -1e3 * patch.lowest, gone);
    assert_true(one.most_sunk >= 13 && patch.lowest < -0.005 && gone > 0.15);  // into the region
    assert_same(&one, &two, 0, "two threads");
    assert_same(&one, &poisoned, 0, "garbage");
    soil_free(&a);
    soil_free(&b);
    soil_free(&c);
}

static void a_snapshot_goes_on_as_the_original_did(void **state) {
    (void)state;
    static trace whole, again, back;
    soil_world a = soil_text_threads(scene, 1), b = soil_text_threads(scene, 1);
    run(&a, 0, HALF, false, &whole);
    size_t length = 0;
    assert_int_equal(us_sim_save(a.sim, NULL, 0, &length), US_OK);
    void *bytes = malloc(length);
    assert_non_null(bytes);
    assert_int_equal(us_sim_save(a.sim, bytes, length, &length), US_OK);
    run(&a, HALF, N_STEP, false, &whole);
    // A sim that has never stepped, and one that has gone on and comes back.
    assert_int_equal(us_sim_restore(b.sim, bytes, length), US_OK);
    run(&b, HALF, N_STEP, true, &again);
    assert_int_equal(us_sim_restore(a.sim, bytes, length), US_OK);
    run(&a, HALF, N_STEP, false, &back);
    assert_same(&whole, &again, HALF, "another sim");
    assert_same(&whole, &back, HALF, "the same sim");
    // Beds of another length than the world's are refused, and nothing changes.
    uint64_t hash = us_sim_hash(b.sim);
    assert_int_not_equal(us_sim_restore(b.sim, bytes, length - 8), US_OK);
    assert_true(us_sim_hash(b.sim) == hash);
    free(bytes);
    soil_free(&a);
    soil_free(&b);
}

static void a_reset_world_begins_anew_with_smooth_ground(void **state) {
    (void)state;
    static trace first, second;
    soil_world a = soil_text_threads(scene, 1);
    uint64_t start = us_sim_hash(a.sim);
    run(&a, 0, N_STEP, false, &first);
    assert_int_equal(us_sim_reset(a.sim), US_OK);
    assert_true(us_sim_hash(a.sim) == start);
    run(&a, 0, N_STEP, false, &second);
    assert_same(&first, &second, 0, "after a reset");
    soil_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_and_two_threads_and_garbage_in_the_scratch_give_the_same_bits),
        cmocka_unit_test(a_snapshot_goes_on_as_the_original_did),
        cmocka_unit_test(a_reset_world_begins_anew_with_smooth_ground),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// A heap of round bodies: everything slides, rolls, stops and takes off again at once, which is where
// Newton's method on friction has its hard time.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "contact_scene.h"
#include "sim/sim.h"

static const double G = 9.81;

static double hash01(int k) {
    double x = sin(12.9898 * (k + 1)) * 43758.5453;
    return x - floor(x);
}

// 27 capsules of 1 kg, radius 0.1 and 0.3 m between their centres, in three layers, turned every way, that
// fall onto each other.
static us_spec *heap(void) {
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -G), 0.8);
    scene_ground(spec);
    for (int k = 0; k < 27; k++) {
        char name[32];
        snprintf(name, sizeof name, "capsule%d", k);
        int ix = k / 9, iy = k / 3 % 3, iz = k % 3;
        scene_start start =
            scene_at(0.5 * ix + 0.05 * hash01(3 * k), 0.5 * iy + 0.05 * hash01(3 * k + 1), 0.6 + 0.5 * iz);
        start.q = us_quat_from_rpy(3 * hash01(5 * k), 3 * hash01(5 * k + 1), 3 * hash01(5 * k + 2));
        // Near enough to a solid capsule's: 0.4 x 0.2 x 0.2 along z.
        int32_t link = scene_float(spec, name, 1, us_vec3_make(0.0176, 0.0176, 0.0047), &start);
        us_shape_def shape = us_shape_def_default(US_SHAPE_CAPSULE);
        shape.link = link;
        shape.size[0] = 0.1;
        shape.size[1] = 0.3;
        assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
    }
    return spec;
}

static void a_heap_that_falls_takes_few_iterations(void **state) {
    (void)state;
    built b = build_sim(heap());
    build_step(&b, 2000, NULL);
    const usi_contacts *c = b.sim->contacts;
    double mean = (double)c->n_iteration / (double)c->n_solve,
           lagged = (double)c->n_fallback / (double)c->n_solve;
    printf("    %.2f iterations per island and step, %.1e of them with lagged friction\n", mean, lagged);
    // About 1.2 and 2e-4. From the last step's velocities alone, and without holding what turns round, it
    // takes 2.6, and 7e-3 end with lagged friction. Which capsules meet is chance; that makes a tenth of the
    // one and a few of the other.
    assert_true(mean < 1.7);
    assert_true(lagged < 2e-3);
    build_free(&b);
}

static void a_heap_that_has_settled_presses_with_its_weight(void **state) {
    (void)state;
    built b = build_sim(heap());
    build_step(&b, 6000, NULL);
    double up = 0, lowest = 1;
    for (int32_t i = 0; i < us_sim_n_contact(b.sim); i++) {
        us_contact k = us_sim_get_contact(b.sim, i);
        if (k.body_a.i < 0 || k.body_b.i < 0) up += fabs(k.force.z);
    }
    for (int32_t k = 0; k < 27; k++)
        lowest = fmin(lowest, scene_position(&b, k).z);
    printf("    weight off by %.1e, lowest %.6f m\n", up / (27 * G) - 1, lowest);
    // Some still roll about, and one that rocks is not at rest: a thousandth is one capsule with a thirtieth
    // of gravity.
    build_near("weight", up, 27 * G, 1e-3 * 27 * G);
    // Two points of at least 1e7 N/m under one or two capsules of 1 kg sink by micrometres.
    assert_true(lowest > 0.1 - 1e-5);
    build_free(&b);
}

static void a_box_that_slides_stops_and_does_not_turn_back(void **state) {
    (void)state;
    const double mu = 0.5, v0 = 1;
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -G), mu);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, 0.05);
    // Across the axes, so that no row points along the way.
    start.v = us_vec3_make(0.8 * v0, 0.6 * v0, 0);
    scene_box(spec, "box", 1, us_vec3_make(0.4, 0.4, 0.1), &start);
    built b = build_sim(spec);
    double least = v0;
    for (int i = 0; i < 400; i++) {
        build_step(&b, 1, NULL);
        us_vec3 v = scene_velocity(&b, 0);
        least = fmin(least, 0.8 * v.x + 0.6 * v.y);
    }
    us_vec3 p = scene_position(&b, 0);
    double way = 0.8 * p.x + 0.6 * p.y, aside = fabs(0.6 * p.x - 0.8 * p.y);
    printf("    way %.6f m, aside %.1e m, slowest %.1e m/s\n", way, aside, least);
    // Velocities at the end of each step: short by half a step of the start's speed, and sinking in takes a
    // step or two.
    build_near("way", way, v0 * v0 / (2 * mu * G), 3e-3 * v0);
    build_near("aside", aside, 0, 1e-6);
    // The spring of the last stretch, mu m g / k, comes back within a step or two: micrometres per
    // millisecond.
    assert_true(least > -2e-3);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heap_that_falls_takes_few_iterations),
        cmocka_unit_test(a_heap_that_has_settled_presses_with_its_weight),
        cmocka_unit_test(a_box_that_slides_stops_and_does_not_turn_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

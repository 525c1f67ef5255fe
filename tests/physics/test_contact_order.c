// A free body is integrated alike whether other shapes are near it or not: only what pushes it changes its
// motion.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contact_scene.h"

static const us_integrator ALL[] = {US_INTEGRATOR_MIDPOINT, US_INTEGRATOR_EULER, US_INTEGRATOR_RK4};

// A brick that tumbles 1 mm over the ground at its lowest, thrown up; with the ground or without.
static built brick(bool has_ground, us_integrator integrator, double height, double speed) {
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.5);
    us_world_settings world = *us_spec_view_world(spec);
    world.integrator = integrator;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    if (has_ground) scene_ground(spec);
    scene_start start = scene_at(0, 0, height);
    start.v = us_vec3_make(0.3, 0.1, speed);
    start.w = us_vec3_make(0.05, 0.2, 3);
    scene_box(spec, "brick", 2, us_vec3_make(0.1, 0.2, 0.3), &start);
    return build_sim(spec);
}

static void a_body_near_the_ground_flies_as_one_far_from_it_bit_for_bit(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        built near = brick(true, ALL[k], 0.1501, 0.1), alone = brick(false, ALL[k], 0.1501, 0.1);
        int32_t n_near = 0;
        for (int i = 0; i < 15; i++) {
            build_step(&near, 1, NULL);
            build_step(&alone, 1, NULL);
            n_near += us_sim_n_contact(near.sim) > 0;
            assert_memory_equal(us_sim_view_q(near.sim), us_sim_view_q(alone.sim), (size_t)near.n.n_q * 8);
            assert_memory_equal(us_sim_view_v(near.sim), us_sim_view_v(alone.sim), (size_t)near.n.n_v * 8);
        }
        printf("    %s: %d of 15 steps with contact points\n", us_integrator_name(ALL[k]), n_near);
        assert_true(n_near >= 5);
        build_free(&near);
        build_free(&alone);
    }
}

static void a_body_between_others_that_are_pressed_flies_by_itself(void **state) {
    (void)state;
    // A ball that rises from a box which stands: one island while it is near, and nothing pushes the ball.
    double height[2];
    for (int k = 0; k < 2; k++) {
        us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.5);
        us_world_settings world = *us_spec_view_world(spec);
        world.integrator = US_INTEGRATOR_MIDPOINT;
        assert_int_equal(us_spec_set_world(spec, &world), US_OK);
        scene_ground(spec);
        scene_start up = scene_at(0, 0, 1.0501);
        up.v = us_vec3_make(0, 0, 0.3);
        scene_ball(spec, "ball", 1, 0.05, &up);
        scene_start under = scene_at(k == 0 ? 0 : 5, 0, 0.5);
        scene_box(spec, "box", 10, us_vec3_make(1, 1, 1), &under);
        built b = build_sim(spec);
        build_step(&b, 20, NULL);
        height[k] = scene_position(&b, 0).z;
        build_free(&b);
    }
    assert_memory_equal(&height[0], &height[1], sizeof height[0]);
    // Second order: exact for a constant force.
    build_near("height", height[0], 1.0501 + 0.3 * 0.02 - 0.5 * 9.81 * 0.02 * 0.02, 1e-14);
}

static void a_body_at_rest_stays_at_rest(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.5);
        us_world_settings world = *us_spec_view_world(spec);
        world.integrator = ALL[k];
        assert_int_equal(us_spec_set_world(spec, &world), US_OK);
        scene_ground(spec);
        scene_start at = scene_at(0, 0, 0.15);
        scene_box(spec, "brick", 2, us_vec3_make(0.1, 0.2, 0.3), &at);
        built b = build_sim(spec);
        build_step(&b, 2000, NULL);
        double before[7];
        memcpy(before, us_sim_view_q(b.sim), sizeof before);
        build_step(&b, 1000, NULL);
        // The solve leaves 1e-12 of the speed that gravity gives in a step; positions do not move by that.
        for (int i = 0; i < 6; i++)
            build_near("velocity", us_sim_view_v(b.sim)[i], 0, 1e-13);
        assert_memory_equal(us_sim_view_q(b.sim), before, sizeof before);
        build_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_near_the_ground_flies_as_one_far_from_it_bit_for_bit),
        cmocka_unit_test(a_body_between_others_that_are_pressed_flies_by_itself),
        cmocka_unit_test(a_body_at_rest_stays_at_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

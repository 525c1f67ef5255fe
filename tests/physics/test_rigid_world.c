// Worlds with rigid contact, chosen by name: direct (pivoting) and iterative.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "contact/contact_world.h"
#include "contact_crowd.h"
#include "sim/sim.h"

static const char *const SOLVERS[] = {"rigid-direct", "rigid-iterative"};
enum { N_SOLVER = 2, DIRECT = 0 };

static const double G = 9.81;

static void choose(us_spec *spec, int solver, double step) {
    us_world_settings world = *us_spec_view_world(spec);
    world.solver = SOLVERS[solver];
    world.step = step;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
}

static us_spec *level(double friction, int solver, double step) {
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -G), friction);
    choose(spec, solver, step);
    scene_ground(spec);
    return spec;
}

// How far a cube slides in a second on a slope of `ratio` times the friction angle.
static double slide(int solver, double ratio, double direction, double *out_speed) {
    const double mu = 0.5, slope = ratio * atan(mu);
    us_spec *spec = scene_spec(scene_gravity(slope, direction), mu);
    choose(spec, solver, 2e-3);
    scene_ground(spec);
    scene_start at = scene_at(0, 0, 0.1);
    scene_box(spec, "box", 1, us_vec3_make(0.4, 0.4, 0.2), &at);
    built b = build_sim(spec);
    build_step(&b, 500, NULL);
    us_vec3 p = scene_position(&b, 0);
    *out_speed = us_vec3_norm(scene_velocity(&b, 0));
    build_near("height", p.z, 0.1, 1e-4);
    build_free(&b);
    return hypot(p.x, p.y);
}

static void a_box_on_a_slope_sticks_below_the_friction_angle_and_slides_above(void **state) {
    (void)state;
    for (int s = 0; s < N_SOLVER; s++) {
        const double directions[] = {0, atan(1), 0.4};
        for (int d = 0; d < 3; d++) {
            double speed, mu = 0.5, slope = 1.01 * atan(mu), a = G * (sin(slope) - mu * cos(slope));
            // Sticking is exact up to the solver's tolerance in each step.
            build_near("sticks", slide(s, 0.99, directions[d], &speed), 0, 1e-6);
            build_near("speed while it sticks", speed, 0, 1e-8);
            // v = a t: impulses of exact Coulomb friction; what is left is the solver's tolerance.
            slide(s, 1.01, directions[d], &speed);
            build_near("speed while it slides", speed, a, 1e-3 * a);
        }
    }
}

static void a_stack_of_three_stands_for_five_seconds(void **state) {
    (void)state;
    static const char *const names[] = {"low", "middle", "high"};
    for (int s = 0; s < N_SOLVER; s++) {
        us_spec *spec = level(0.5, s, 2e-3);
        for (int i = 0; i < 3; i++) {
            scene_start at = scene_at(0.01 * i, 0, 0.1 + 0.2 * i);
            scene_box(spec, names[i], 1, us_vec3_make(0.2, 0.2, 0.2), &at);
        }
        built b = build_sim(spec);
        build_step(&b, 2500, NULL);
        for (int i = 0; i < 3; i++) {
            us_vec3 p = scene_position(&b, i);
            // Gaps of rounding open and close; a fifth of any penetration goes in a step.
            build_near("height", p.z, 0.1 + 0.2 * i, 1e-6);
            build_near("place", p.x, 0.01 * i, 1e-6);
            build_near("lean", scene_tilt(&b, i), 0, 1e-6);
            build_near("force", scene_contact_force(&b, i).z, G, 1e-3);
        }
        build_free(&b);
    }
}

// Every solve of the direct solver is its own: none is left to the sweeps.
static void the_direct_solver_needs_no_other_on_redundant_points(void **state) {
    (void)state;
    static const char *const names[] = {"low", "middle", "high"};
    const us_vec3 cube = {0.2, 0.2, 0.2};
    for (int k = 0; k < 5; k++) {
        us_spec *spec = level(0.5, DIRECT, 2e-3);
        int n_box = k == 1 || k == 3 ? 3 : 1, n_point = k == 2 || k == 4 ? 8 : 4 * n_box;
        for (int i = 0; i < n_box; i++) {
            scene_start at = scene_at(0.01 * i, 0, 0.1 + 0.2 * i);
            // The last two come down and slide to rest, turning.
            if (k >= 3) {
                at.v = us_vec3_make(0.3, 0.2, -0.1);
                at.w = us_vec3_make(0, 0, 0.5);
            }
            int32_t link = scene_box(spec, names[i], 1, cube, &at);
            if (n_point == 8) scene_add_box(spec, link, us_vec3_make(0.1, 0.3, 0.2), us_vec3_make(0, 0, 0));
        }
        built b = build_sim(spec);
        build_step(&b, 1000, NULL);
        assert_int_equal(us_sim_n_contact(b.sim), n_point);
        assert_true(b.sim->contacts->n_solve >= 1000);
        assert_int_equal(b.sim->contacts->n_fallback, 0);
        for (int i = 0; i < n_box; i++) {
            build_near("height", scene_position(&b, i).z, 0.1 + 0.2 * i, 1e-6);
            // It is at rest: what the solver leaves is a ten-millionth of what gravity does in a step, 0.02
            // m/s.
            build_near("speed", us_vec3_norm(scene_velocity(&b, i)), 0, 1e-8);
        }
        build_free(&b);
    }
}

static void the_impulses_of_a_box_on_four_points_add_up_to_its_weight(void **state) {
    (void)state;
    for (int s = 0; s < N_SOLVER; s++) {
        us_spec *spec = level(0.5, s, 1e-3);
        scene_start at = scene_at(0, 0, 0.1);
        scene_box(spec, "box", 1, us_vec3_make(0.2, 0.2, 0.2), &at);
        built b = build_sim(spec);
        build_step(&b, 1000, NULL);
        assert_int_equal(us_sim_n_contact(b.sim), 4);
        us_vec3 f = scene_contact_force(&b, 0);
        printf("    %s: weight off by %.2e of it\n", SOLVERS[s], f.z / G - 1);
        // Direct: rounding. Sweeps end at changes of 1e-9 m/s, of 0.00981 m/s in a step.
        build_near("weight", f.z, G, (s == DIRECT ? 1e-12 : 1e-6) * G);
        build_near("sideways", hypot(f.x, f.y), 0, (s == DIRECT ? 1e-12 : 1e-6) * G);
        build_free(&b);
    }
}

static void a_ball_bounces_by_its_restitution(void **state) {
    (void)state;
    for (int s = 0; s < N_SOLVER; s++) {
        us_pair_def pair = scene_pair(0.5);
        pair.values.restitution = 0.5;
        us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -G), 1e-3, &pair);
        choose(spec, s, 1e-3);
        scene_ground(spec);
        scene_start at = scene_at(0, 0, 0.11);
        at.v = us_vec3_make(0, 0, -2);
        scene_ball(spec, "ball", 1, 0.1, &at);
        built b = build_sim(spec);
        double fastest_down = 0, up = 0;
        for (int i = 0; i < 20; i++) {
            build_step(&b, 1, NULL);
            double v = scene_velocity(&b, 0).z;
            fastest_down = fmin(fastest_down, v);
            up = fmax(up, v);
        }
        // It arrives at 2 m/s and a little; the speed before the impact is that of the step's start, so that
        // one step of gravity is not seen.
        build_near("speed after", up, -0.5 * fastest_down, 2 * G * 1e-3);
        assert_true(fastest_down < -2);
        build_free(&b);
    }
}

static void a_rover_stands_on_its_wheels_and_drives(void **state) {
    (void)state;
    for (int s = 0; s < N_SOLVER; s++) {
        us_spec *spec = level(0.8, s, 2e-3);
        crowd_rover(spec, "still", us_vec3_make(0, 0, 0.15), 0);
        crowd_rover(spec, "moving", us_vec3_make(0, 2, 0.15), 2);
        built b = build_sim(spec);
        build_step(&b, 1000, NULL);
        int32_t still = us_model_find_body(b.model, "still_chassis").i,
                moving = us_model_find_body(b.model, "moving_chassis").i;
        us_vec3 p = scene_position(&b, still);
        build_near("height", p.z, 0.15, 1e-5);
        build_near("place", hypot(p.x, p.y), 0, 1e-5);
        build_near("lean", scene_tilt(&b, still), 0, 1e-5);
        double weight = 0;
        for (int i = 0; i < 4; i++) {
            char name[32];
            snprintf(name, sizeof name, "still_wheel%d", i);
            weight += scene_contact_force(&b, us_model_find_body(b.model, name).i).z;
        }
        build_near("weight", weight, 24 * G, 1e-3 * 24 * G);
        // 2 rad/s on a radius of 0.1 m. The start takes 26 kg of effective mass at most 160 N.
        build_near("speed", scene_velocity(&b, moving).x, 0.2, 1e-3);
        build_near("straight ahead", scene_position(&b, moving).y, 2, 1e-3);
        build_free(&b);
    }
}

static void couplings_within_a_tree_hold_in_contact(void **state) {
    (void)state;
    for (int s = 0; s < N_SOLVER; s++) {
        us_spec *spec = level(0.5, s, 2e-3);
        const us_vec3 y = {0, 1, 0}, arm = {0.4, 0.05, 0.05};
        int32_t joint[2];
        for (int i = 0; i < 2; i++) {
            // Two arms that fall from their hinges; the first has the ground below it, the second nothing but
            // the coupling.
            int32_t link =
                build_link(spec, i ? "right" : "left", 1, us_vec3_make(0.2, 0, 0), scene_box_moments(1, arm));
            int32_t parent = i ? 0 : US_WORLD;
            joint[i] = build_joint(spec, i ? "right" : "left", US_JOINT_REVOLUTE, parent, link,
                                   us_vec3_make(0, i ? 0.3 : 0, i ? 0 : 0.2), y, 0, 0);
            if (i == 0) scene_add_ball(spec, link, 0.05, us_vec3_make(0.4, 0, 0));
        }
        build_coupling(spec, "same", joint[0], 1, joint[1], -1, 0);
        built b = build_sim(spec);
        build_step(&b, 1000, NULL);
        const double *q = us_sim_view_q(b.sim);
        // The ball rests on the ground: 0.2 - 0.4 sin q = 0.05.
        build_near("angle", q[0], asin(0.15 / 0.4), 1e-4);
        build_near("coupling", q[0] - q[1], 0, 1e-9);
        build_free(&b);
    }
}

static void what_is_too_much_for_the_direct_solver_goes_to_the_iterative_one(void **state) {
    (void)state;
    // Boxes side by side on one plate: 20 x 4 points and those of the plate in one island.
    us_spec *spec = level(0.5, DIRECT, 2e-3);
    scene_start at = scene_at(0, 0, 0.05);
    scene_box(spec, "plate", 10, us_vec3_make(2, 2, 0.1), &at);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "box%d", i);
        int column = i % 5, row = i / 5;
        at = scene_at(-0.8 + 0.4 * column, -0.6 + 0.4 * row, 0.2);
        scene_box(spec, name, 1, us_vec3_make(0.2, 0.2, 0.2), &at);
    }
    built b = build_sim(spec);
    build_step(&b, 200, NULL);
    assert_true(us_sim_n_contact(b.sim) >= 84);
    for (int i = 1; i <= 20; i++)
        build_near("height", scene_position(&b, i).z, 0.2, 1e-5);
    build_free(&b);
}

static void nothing_sinks_in_however_fast_it_comes(void **state) {
    (void)state;
    for (int s = 0; s < N_SOLVER; s++) {
        us_spec *spec = level(0.5, s, 1e-3);
        scene_start at = scene_at(0, 0, 0.5);
        at.v = us_vec3_make(1, 0, -20);
        at.q = us_quat_from_rpy(0.4, 0.3, 0);
        at.w = us_vec3_make(3, -2, 1);
        scene_box(spec, "box", 1, us_vec3_make(0.2, 0.2, 0.2), &at);
        built b = build_sim(spec);
        double deepest = 0;
        for (int i = 0; i < 300; i++) {
            build_step(&b, 1, NULL);
            for (int32_t k = 0; k < us_sim_n_contact(b.sim); k++)
                deepest = fmin(deepest, us_sim_get_contact(b.sim, k).gap);
        }
        // Rows are linear in the step: a corner that turns at 50 rad/s about a body of 0.17 m is off by (w
        // h)^2 r / 2 = 0.2 mm.
        assert_true(deepest > -5e-4);
        build_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_on_a_slope_sticks_below_the_friction_angle_and_slides_above),
        cmocka_unit_test(a_stack_of_three_stands_for_five_seconds),
        cmocka_unit_test(the_direct_solver_needs_no_other_on_redundant_points),
        cmocka_unit_test(the_impulses_of_a_box_on_four_points_add_up_to_its_weight),
        cmocka_unit_test(a_ball_bounces_by_its_restitution),
        cmocka_unit_test(a_rover_stands_on_its_wheels_and_drives),
        cmocka_unit_test(couplings_within_a_tree_hold_in_contact),
        cmocka_unit_test(what_is_too_much_for_the_direct_solver_goes_to_the_iterative_one),
        cmocka_unit_test(nothing_sinks_in_however_fast_it_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Contact of links: a tree on the ground, two trees that lean on each other, one that touches itself, wheels.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "contact_scene.h"

static const double DEGREE = 3.14159265358979323846 / 180, G = 9.81;
static const us_vec3 Y = {0, 1, 0}, ZERO = {0, 0, 0};

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

// A box of 1 kg with a rotor of 1 kg at its middle, on a hinge about `axis`: two links that slide like one.
static us_spec *box_with_rotor(us_vec3 gravity, const us_pair_def *pair, us_vec3 size, us_vec3 axis,
                               double spin, const scene_start *start) {
    us_spec *spec = scene_spec_pair(gravity, 1e-3, pair);
    scene_ground(spec);
    int32_t box = scene_box(spec, "box", 1, size, start);
    int32_t rotor = build_link(spec, "rotor", 1, ZERO, at(0.004, 0.004, 0.004));
    build_joint(spec, "axle", US_JOINT_CONTINUOUS, box, rotor, ZERO, axis, 0, spin);
    return spec;
}

static built rotor_on_slope(double slope, double direction, double friction) {
    us_pair_def pair = scene_pair(friction);
    scene_start start = scene_at(0, 0, 0.05);
    return build_sim(box_with_rotor(scene_gravity(slope, direction), &pair, at(0.2, 0.2, 0.1), Y, 0, &start));
}

static void a_box_of_two_links_slides_like_one(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        double direction = i * 45 * DEGREE;
        built b = rotor_on_slope(20 * DEGREE, direction, 0.2);
        build_step(&b, 1000, NULL);
        us_vec3 early = scene_velocity(&b, 0);
        build_step(&b, 1000, NULL);
        us_vec3 late = scene_velocity(&b, 0);
        double a = us_vec3_norm(us_vec3_sub(late, early));
        printf("    %.9f m/s^2\n", a);
        // A step is solved to 1e-6 of the weight.
        build_near("acceleration", a, 1.5115407, 2e-6);
        build_near("height", scene_position(&b, 0).z, 0.05, 1e-6);
        build_free(&b);
    }
}

static void a_box_of_two_links_does_not_creep(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        built b = rotor_on_slope(atan(0.9 * 0.5), i * 45 * DEGREE, 0.5);
        build_step(&b, 5000, NULL);
        us_vec3 early = scene_position(&b, 0);
        build_step(&b, 45000, NULL);
        double creep = us_vec3_norm(us_vec3_sub(scene_position(&b, 0), early)) / 45;
        printf("    creep %.2e m/s\n", creep);
        assert_true(creep < 1e-12);
        build_free(&b);
    }
}

static bool slips(double slope, double direction) {
    built b = rotor_on_slope(slope, direction, 0.5);
    build_step(&b, 1000, NULL);
    double early = us_vec3_norm(scene_velocity(&b, 0));
    build_step(&b, 1000, NULL);
    double late = us_vec3_norm(scene_velocity(&b, 0));
    build_free(&b);
    return late - early > 0.01;
}

static void a_box_of_two_links_slips_at_the_angle_of_friction(void **state) {
    (void)state;
    // The criterion alone is 0.052 degrees past the angle where forces balance.
    for (int i = 0; i < 2; i++) {
        assert_false(slips(atan(0.5) + 0.04 * DEGREE, i * 45 * DEGREE));
        assert_true(slips(atan(0.5) + 0.06 * DEGREE, i * 45 * DEGREE));
    }
}

// ---- Two trees, and one with itself ----

static void two_arms_that_lean_on_each_other_carry_each_other(void **state) {
    (void)state;
    us_spec *spec = scene_spec(at(0, 0, -G), 0.5);
    const double up = sqrt(1 - 0.16);
    static const char *const names[2][2] = {{"left", "left_hinge"}, {"right", "right_hinge"}};
    // Hinges 1 m apart, arms of 1 m and 2 kg, balls of 0.1 m at their ends.
    for (int i = 0; i < 2; i++) {
        int32_t link = build_link(spec, names[i][0], 2, at(0, 0, 0.5), at(0.17, 0.17, 0.001));
        build_joint(spec, names[i][1], US_JOINT_REVOLUTE, US_WORLD, link, at(i ? 0.5 : -0.5, 0, 0), Y,
                    (i ? -1 : 1) * asin(0.4), 0);
        scene_add_ball(spec, link, 0.1, at(0, 0, 1));
    }
    built b = build_sim(spec);
    build_step(&b, 3000, NULL);
    us_vec3 f = scene_contact_force(&b, 1);
    printf("    %.9f N, statics %.9f N\n", f.x, 2 * G * 0.2 / up);
    build_near("force", f.x, 2 * G * 0.2 / up, 1e-4);
    build_near("angle", us_sim_view_q(b.sim)[0], asin(0.4), 1e-6);
    double q = us_sim_view_q(b.sim)[0];
    build_step(&b, 10000, NULL);
    build_near("creep", us_sim_view_q(b.sim)[0], q, 1e-11);
    build_free(&b);
}

static void an_arm_that_lies_on_its_own_base_presses_with_half_its_weight(void **state) {
    (void)state;
    us_spec *spec = scene_spec(at(0, 0, -G), 0);
    int32_t base = build_link(spec, "base", 1, at(0.5, 0, 0), at(0.01, 0.1, 0.1)),
            post = build_link(spec, "post", 1, at(0, 0, 0.15), at(0.01, 0.01, 0.01));
    int32_t fore = build_link(spec, "arm", 1, at(0.25, 0, 0), at(0.001, 0.02, 0.02));
    int32_t shoulder = build_joint(spec, "shoulder", US_JOINT_REVOLUTE, US_WORLD, base, at(0, 0, 1), Y, 0, 0),
            elbow = build_joint(spec, "elbow", US_JOINT_REVOLUTE, base, post, ZERO, Y, 0, 0);
    build_joint(spec, "wrist", US_JOINT_REVOLUTE, post, fore, at(0, 0, 0.3), Y, 0, 0);
    build_drive(spec, "hold_shoulder", shoulder, 1e6, 1e3, 0, 0);
    build_drive(spec, "hold_elbow", elbow, 1e6, 1e3, 0, 0);
    scene_add_box(spec, base, at(1, 0.1, 0.1), at(0.5, 0, 0));
    scene_add_ball(spec, fore, 0.05, at(0.5, 0, 0));
    built b = build_sim(spec);
    build_step(&b, 3000, NULL);
    us_vec3 f = scene_contact_force(&b, fore);
    printf("    %.6f N at %.6f rad\n", f.z, us_sim_view_q(b.sim)[2]);
    // The drives give way by 1e-5 rad.
    build_near("angle", us_sim_view_q(b.sim)[2], asin(0.4), 1e-4);
    build_near("force", f.z, G / 2, 1e-3);
    build_free(&b);
}

// ---- Wheels ----

static us_spec *cart(double friction, us_vec3 gravity) {
    us_spec *spec = scene_spec(gravity, friction);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, 0.2);
    int32_t body = scene_float(spec, "body", 10, scene_box_moments(10, at(1, 0.6, 0.1)), &start);
    static const char *const names[4][2] = {{"w0", "a0"}, {"w1", "a1"}, {"w2", "a2"}, {"w3", "a3"}};
    for (int i = 0; i < 4; i++) {
        int32_t wheel = build_link(spec, names[i][0], 2, ZERO, at(0.008, 0.04, 0.008));
        build_joint(spec, names[i][1], US_JOINT_CONTINUOUS, body, wheel,
                    at(i & 1 ? -0.5 : 0.5, i & 2 ? -0.4 : 0.4, 0), Y, 0, 0);
        scene_add_ball(spec, wheel, 0.2, ZERO);
    }
    return spec;
}

static double drive_cart(built *b, double torque, double *out_slip) {
    double tau[10] = {0, 0, 0, 0, 0, 0, torque, torque, torque, torque};
    us_command command = {.torque = tau};
    build_step(b, 500, &command);
    double early = scene_velocity(b, 0).x;
    build_step(b, 1000, &command);
    *out_slip = scene_velocity(b, 0).x - 0.2 * us_sim_view_v(b->sim)[6];
    return scene_velocity(b, 0).x - early;
}

static void a_cart_speeds_up_by_the_torque_of_its_wheels(void **state) {
    (void)state;
    built b = build_sim(cart(0.8, at(0, 0, -G)));
    double slip, a = drive_cart(&b, 2, &slip);
    // 4 * 2 N m / 0.2 m on 18 kg and four wheels of 0.04 kg m^2: 40 / (18 + 4).
    printf("    %.7f m/s^2, slip %.2e m/s\n", a, slip);
    // The wheels are pressed in by some 1e-6 of 0.2 m.
    build_near("acceleration", a, 40.0 / 22, 1e-4);
    build_near("slip", slip, 0, 1e-4);
    build_free(&b);
}

static void spinning_wheels_pull_with_all_the_friction_there_is(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        double slope = i ? -10 * DEGREE : 0, slip;
        built b = build_sim(cart(0.3, scene_gravity(slope, 0)));
        double a = drive_cart(&b, 20, &slip);
        printf("    %.7f m/s^2, slip %.2e m/s\n", a, slip);
        // The sum of the wheels' normal forces is the weight, and all of them slide backwards.
        build_near("acceleration", a, G * (0.3 * cos(slope) + sin(slope)), 1e-4);
        assert_true(slip < -1);
        build_free(&b);
    }
}

static void a_cart_with_locked_wheels_stands_on_a_slope(void **state) {
    (void)state;
    us_spec *spec = cart(0.8, scene_gravity(20 * DEGREE, 0));
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"d0", "d1", "d2", "d3"};
        build_drive(spec, names[i], 1 + i, 1e4, 1e2, 0, 0);
    }
    built b = build_sim(spec);
    build_step(&b, 5000, NULL);
    us_vec3 p = scene_position(&b, 0);
    build_step(&b, 20000, NULL);
    double moved = us_vec3_norm(us_vec3_sub(scene_position(&b, 0), p));
    printf("    moved %.2e m in 20 s\n", moved);
    assert_true(moved < 1e-9);
    // Parked, it has stopped.
    assert_true(build_greatest(us_sim_view_v(b.sim), b.n.n_v) == 0);
    // It gives way to what is more than a millionth of its weight.
    us_wrench nudge[5] = {0};
    nudge[0].f = at(0, 1e-3, 0);
    us_command command = {.wrench = nudge};
    build_step(&b, 1, &command);
    const double pushed = build_greatest(us_sim_view_v(b.sim), b.n.n_v);
    printf("    %.1e m/s or rad/s by 1 mN\n", pushed);
    assert_true(pushed > 0);
    build_free(&b);
}

// ---- Energy ----

// The greatest gain, over the energy at the start, since the energy was least.
static double tumble(double step, double friction, uint64_t *counter) {
    const us_vec3 size = {0.3, 0.2, 0.1};
    us_pair_def pair = scene_pair(friction);
    pair.values.stiffness = 1e7;
    scene_start start = scene_at(0, 0, 1);
    start.q = build_random_rotation(11, counter);
    start.v = build_random_vec3(11, counter, 2);
    start.w = build_random_vec3(11, counter, 8);
    us_spec *spec = box_with_rotor(at(0, 0, -G), &pair, size, Y, 10, &start);
    // In the air the midpoint rule keeps the energy: what is seen is contact.
    us_world_settings world = *us_spec_view_world(spec);
    world.integrator = US_INTEGRATOR_MIDPOINT;
    world.step = step;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    built b = build_sim(spec);
    double first = scene_energy(&b, 0, size, 1e7), least = first, worst = 0;
    for (int i = 0; i < (int)(2 / step + 0.5); i++) {
        build_step(&b, 1, NULL);
        double now = scene_energy(&b, 0, size, 1e7);
        least = fmin(least, now);
        worst = fmax(worst, (now - least) / first);
    }
    build_free(&b);
    return worst;
}

static void what_a_tumbling_tree_gains_vanishes_with_the_step(void **state) {
    (void)state;
    // Two links that turn against each other at 10 rad/s. In contact the torques of their motion are those of
    // the step's start, which is right to first order: some (h w)^2 of the energy per step, up or down.
    double most[2] = {0, 0}, sum[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        uint64_t counter = 0;
        for (int i = 0; i < 6; i++) {
            double gain = tumble(k ? 2.5e-4 : 1e-3, 0.5 * (i % 3), &counter);
            most[k] = fmax(most[k], gain);
            sum[k] += gain;
        }
    }
    printf("    greatest gain %.2e, at a quarter of the step %.2e\n", most[0], most[1]);
    assert_true(most[0] < 2e-2);
    // A quarter of it; contacts come and go at other moments, so half is asked.
    assert_true(sum[1] < 0.5 * sum[0]);
}

// How much the momentum of a box with a rotor at its middle changes in a step beyond its weight and what the
// contacts say, N s. The step is solved where the box was: in those axes, with what their turning takes.
static double missing_momentum(built *b, double h) {
    const us_quat q = us_sim_get_pose(b->sim, (us_body){0}).q;
    const double *v = us_sim_view_v(b->sim);
    const us_vec3 w = at(v[0], v[1], v[2]), before = at(v[3], v[4], v[5]);
    build_step(b, 1, NULL);
    v = us_sim_view_v(b->sim);
    us_vec3 change = us_vec3_sub(at(v[3], v[4], v[5]), before);
    change = us_quat_rotate(q, us_vec3_add(change, us_vec3_scale(h, us_vec3_cross(w, before))));
    us_vec3 missing = us_vec3_add(us_vec3_scale(2, change), at(0, 0, 2 * h * G));
    for (int32_t i = 0; i < us_sim_n_contact(b->sim); i++) {
        const us_contact c = us_sim_get_contact(b->sim, i);
        missing = us_vec3_add(missing, us_vec3_scale(c.body_a.i < 0 ? h : -h, c.force));
    }
    return us_vec3_norm(missing);
}

static void a_tree_that_rebounds_has_its_weight_however_often_it_is_solved(void **state) {
    (void)state;
    // With restitution and friction at a lever the step is solved again and again, until it gains no energy.
    const double h = 1e-3;
    double worst = 0;
    uint64_t counter = 0;
    for (int i = 0; i < 100; i++) {
        us_pair_def pair = scene_pair(build_uniform(7, &counter, 0.3, 1));
        pair.values.restitution = build_uniform(7, &counter, 0.5, 1);
        const double tilt = build_uniform(7, &counter, 0.1, 1.2);
        scene_start start = scene_at(0, 0, 0.2 * sin(tilt) + 0.05 * cos(tilt) + 1e-3);
        start.q = us_quat_exp(at(0, tilt, 0));
        start.v = build_random_vec3(7, &counter, 0.4);
        built b = build_sim(box_with_rotor(at(0, 0, -G), &pair, at(0.4, 0.1, 0.1), Y, 0, &start));
        // Beyond 3 rad/s the torques of motion are those of the step's end.
        for (int k = 0; k < 100; k++) {
            const double *v = us_sim_view_v(b.sim), spin = us_vec3_norm(at(v[0], v[1], v[2])) + fabs(v[6]);
            const double missing = missing_momentum(&b, h);
            if (spin < 3) worst = fmax(worst, missing);
        }
        build_free(&b);
    }
    printf("    %.1e N s missing, the weight of a step is %.1e\n", worst, 2 * h * G);
    // Impulses of up to 2 N s to a millionth, and twenty times that for those of an impact, whose rows are
    // stiff.
    assert_true(worst < 4e-5);
}

// A block that lies on the ground, with two light links in a chain that turn by one to four radians in a
// step. Neither the torques of motion, which cannot be foreseen so far, nor that the mass matrix is another
// one at the end of the step, may give energy: without a look at it there were 10^5 times as much after ten
// steps.
static void what_turns_by_radians_in_a_step_gains_nothing(void **state) {
    (void)state;
    double most = 0;
    for (int i = 0; i < 24; i++) {
        const double step = i % 2 ? 4e-3 : 2e-3, spin = (1 + i % 4) / step, light = i % 3 ? 1e-2 : 1e-4;
        us_pair_def pair = scene_pair(0.1 * (i % 5));
        us_spec *spec = scene_spec_pair(at(0, 0, -G), step, &pair);
        scene_ground(spec);
        scene_start start = scene_at(0, 0, 0.05);
        const int32_t block = scene_box(spec, "block", 100, at(0.3, 0.2, 0.1), &start);
        const int32_t upper = build_link(spec, "upper", light, at(0.03, 0.01, 0),
                                         at(2e-5 * light, 9e-4 * light, 9e-4 * light)),
                      lower = build_link(spec, "lower", light, at(0.03, 0, 0.01),
                                         at(9e-4 * light, 9e-4 * light, 2e-5 * light));
        build_joint(spec, "shoulder", US_JOINT_CONTINUOUS, block, upper, at(0, 0, 0.3), Y, 0, spin);
        build_joint(spec, "elbow", US_JOINT_CONTINUOUS, upper, lower, at(0.06, 0, 0), at(0, 0, 1), 0.3 * i,
                    -0.7 * spin);
        built b = build_sim(spec);
        const double had = build_total_energy(&b);
        for (int k = 0; k < 500; k++) {
            build_step(&b, 1, NULL);
            most = fmax(most, build_total_energy(&b) / had);
        }
        build_free(&b);
    }
    printf("    at most %.9f of the energy\n", most);
    assert_true(most <= 1.001);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_of_two_links_slides_like_one),
        cmocka_unit_test(a_box_of_two_links_does_not_creep),
        cmocka_unit_test(a_box_of_two_links_slips_at_the_angle_of_friction),
        cmocka_unit_test(two_arms_that_lean_on_each_other_carry_each_other),
        cmocka_unit_test(an_arm_that_lies_on_its_own_base_presses_with_half_its_weight),
        cmocka_unit_test(a_cart_speeds_up_by_the_torque_of_its_wheels),
        cmocka_unit_test(spinning_wheels_pull_with_all_the_friction_there_is),
        cmocka_unit_test(a_cart_with_locked_wheels_stands_on_a_slope),
        cmocka_unit_test(what_a_tumbling_tree_gains_vanishes_with_the_step),
        cmocka_unit_test(what_turns_by_radians_in_a_step_gains_nothing),
        cmocka_unit_test(a_tree_that_rebounds_has_its_weight_however_often_it_is_solved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

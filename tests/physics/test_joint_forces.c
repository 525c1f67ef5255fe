// Dampers, springs, drives, limits, dry friction, rotor inertia: each against its own formula.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"

static const us_vec3 X = {1, 0, 0}, Y = {0, 1, 0}, ORIGIN = {0, 0, 0};
static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

static const us_integrator IMPLICIT[2] = {US_INTEGRATOR_MIDPOINT, US_INTEGRATOR_EULER};

// A rotor of 0.5 kg m^2 about y, or a slider of 2 kg along x: nothing but the joint acts.
static us_spec *build_rotor(us_joint_def *def, double gravity, double step, us_integrator integrator) {
    us_spec *spec = build_spec(gravity, step, integrator);
    def->parent = US_WORLD;
    def->child = build_link(spec, "part", 2, ORIGIN, at(0.1, 0.5, 0.1));
    def->axis = def->type == US_JOINT_PRISMATIC ? X : Y;
    build_joint_def(spec, "joint", def);
    return spec;
}

static us_joint_def rotor_joint(us_joint_type type) { return build_joint_at(type, US_WORLD, 0, ORIGIN, Y); }

// ---- Dampers ----

static void damper_decays_as_exp_of_minus_t_d_over_I(void **state) {
    (void)state;
    // z = h d / I = 0.004. The implicit schemes weigh the damper so that a step's decay agrees with exp(-z)
    // to third order: z^4 per step or 2.5e-10 / 72 after that weight; a thousand of them leave 4e-9.
    for (int k = 0; k < US_INTEGRATOR_COUNT; k++) {
        us_joint_def def = rotor_joint(US_JOINT_REVOLUTE);
        def.damping = 2;
        def.v0[0] = 3;
        built b = build_sim(build_rotor(&def, 0, 1e-3, (us_integrator)k));
        build_step(&b, 1000, NULL);
        double expected = 3 * exp(-4);
        printf("    %s: off by %.1e\n", us_integrator_name((us_integrator)k),
               us_sim_view_v(b.sim)[0] / expected - 1);
        build_near("v", us_sim_view_v(b.sim)[0] / expected, 1, 1e-8);
        // The way gone is (v0 - v) I / d; the end of a step weighs differently in each scheme: first or
        // second order.
        build_near("q", us_sim_view_q(b.sim)[0], (3 - expected) / 4, k == US_INTEGRATOR_EULER ? 2e-3 : 1e-5);
        build_free(&b);
    }
}

static void stiff_damper_stops_the_joint_without_ringing(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        us_joint_def def = rotor_joint(US_JOINT_PRISMATIC);
        def.damping = 1e8;
        def.v0[0] = 3;
        built b = build_sim(build_rotor(&def, 0, 1e-3, IMPLICIT[k]));
        double before = 3;
        for (int i = 0; i < 20; i++) {
            build_step(&b, 1, NULL);
            double now = us_sim_view_v(b.sim)[0];
            assert_true(fabs(now) < 1e-3 * before || now == 0 || fabs(now) < 1e-30);
            before = fabs(now);
        }
        build_free(&b);
    }
}

static void damped_fall_reaches_its_final_speed(void **state) {
    (void)state;
    for (int k = 0; k < US_INTEGRATOR_COUNT; k++) {
        us_spec *spec = build_spec(9.81, 1e-3, (us_integrator)k);
        int32_t part = build_link(spec, "part", 2, ORIGIN, at(0.1, 0.1, 0.1));
        us_joint_def def = build_joint_at(US_JOINT_PRISMATIC, US_WORLD, part, ORIGIN, at(0, 0, 1));
        def.damping = 40;
        build_joint_def(spec, "rail", &def);
        built b = build_sim(spec);
        build_step(&b, 2000, NULL);
        build_near("final speed", us_sim_view_v(b.sim)[0], -2 * 9.81 / 40, 1e-12);  // exp(-40) is left
        build_free(&b);
    }
}

// ---- Springs ----

static void spring_swings_at_its_frequency_and_keeps_its_energy(void **state) {
    (void)state;
    // w = sqrt(50 / 0.5) = 10 rad/s, h w = 0.01. The midpoint rule has the frequency (2 / h) atan(h w / 2),
    // slow by (h w)^2 / 12 = 8.3e-6, and keeps the energy of a linear spring exactly.
    const double w = 10, h = 1e-3;
    us_joint_def def = rotor_joint(US_JOINT_REVOLUTE);
    def.stiffness = 50;
    def.rest = 0.3;
    def.q0[0] = 0.8;
    built b = build_sim(build_rotor(&def, 0, h, US_INTEGRATOR_MIDPOINT));
    double start = build_total_energy(&b), lost = 0, off = 0;
    build_near("energy at the start", start, 0.5 * 50 * 0.25, 1e-14);
    double discrete = 2 / h * atan(h * w / 2);
    for (int i = 0; i < 100000; i++) {
        build_step(&b, 1, NULL);
        lost = fmax(lost, fabs(build_total_energy(&b) / start - 1));
        off = fmax(off, fabs(us_sim_view_q(b.sim)[0] - 0.3 - 0.5 * cos(discrete * us_sim_get_time(b.sim))));
    }
    printf("    100 s: energy %.1e, position %.1e from the scheme's own cosine; frequency %.2e slow\n", lost,
           off, 1 - discrete / w);
    assert_true(lost < 1e-10);  // rounding of 1e5 steps
    assert_true(off < 1e-8);
    build_free(&b);
    def.child = 0;
    b = build_sim(build_rotor(&def, 0, h, US_INTEGRATOR_RK4));
    build_step(&b, 10000, NULL);
    // Fourth order: phase (h w)^4 / 120 = 8e-11 of 100 rad.
    build_near("rk4", us_sim_view_q(b.sim)[0], 0.3 + 0.5 * cos(100), 1e-8);
    build_free(&b);
}

static void stiff_spring_is_stable_at_any_step(void **state) {
    (void)state;
    // h w = 10: an explicit scheme would be gone after ten steps.
    for (int k = 0; k < 2; k++) {
        us_joint_def def = rotor_joint(US_JOINT_PRISMATIC);
        def.stiffness = 2e6;
        def.q0[0] = 0.1;
        built b = build_sim(build_rotor(&def, 0, 1e-2, IMPLICIT[k]));
        double start = build_total_energy(&b);
        for (int i = 0; i < 1000; i++) {
            build_step(&b, 1, NULL);
            assert_true(build_total_energy(&b) <= start * (1 + 1e-9));
        }
        build_free(&b);
    }
}

// ---- Drives ----

static void stiff_drives_hold_an_arm_at_the_right_place(void **state) {
    (void)state;
    static const double steps[2] = {1e-3, 1e-2};
    for (int k = 0; k < 4; k++) {
        us_spec *spec = build_chain(6, steps[k / 2], IMPLICIT[k % 2]);
        for (int32_t i = 0; i < 6; i++) {
            char name[16];
            snprintf(name, sizeof name, "drive%d", i);
            build_drive(spec, name, i, 1e6, 1e4, 0.1 + 0.2 * i, 0);
        }
        built b = build_sim(spec);
        for (int i = 0; i < 100; i++) {
            build_step(&b, 1, NULL);
            // The first joint has nowhere to go, the last has 1 rad; nothing is thrown about on the way,
            // whatever the step.
            assert_true(fabs(us_sim_view_q(b.sim)[0] - 0.1) < 0.05);
            assert_true(us_sim_view_q(b.sim)[5] > 0.09 && us_sim_view_q(b.sim)[5] < 1.2);
        }
        build_step(&b, (int64_t)(5 / steps[k / 2]) - 100, NULL);
        double zero[6] = {0}, load[6];
        const double *q = us_sim_view_q(b.sim), *v = us_sim_view_v(b.sim), *tau = us_sim_view_torque(b.sim);
        assert_int_equal(us_dyn_bias(b.dyn, q, zero, load), US_OK);
        for (int32_t i = 0; i < 6; i++) {
            // At rest the spring carries the weight: kp (position - q) = load. kp / kd = 100 / s: exp(-500)
            // of the start is left, so what remains is rounding of torques of some 1e5 N m against gains of
            // 1e6.
            build_near("speed", v[i], 0, 1e-10);
            build_near("torque", tau[i], load[i], 1e-8);
            build_near("place", q[i], 0.1 + 0.2 * i - load[i] / 1e6, 1e-12);
        }
        build_free(&b);
    }
}

static void a_drive_tracks_a_changing_command(void **state) {
    (void)state;
    // Critically damped, w = 50: a ramp is followed with the lag 0 when the velocity is commanded too.
    us_joint_def def = rotor_joint(US_JOINT_REVOLUTE);
    us_spec *spec = build_rotor(&def, 0, 1e-3, US_INTEGRATOR_MIDPOINT);
    build_drive(spec, "servo", 0, 0.5 * 2500, 0.5 * 100, 0, 0);
    built b = build_sim(spec);
    double position = 0, velocity = 0.7;
    us_command command = {.drive_position = &position, .drive_velocity = &velocity};
    for (int i = 0; i < 3000; i++) {
        position = 0.7 * 1e-3 * (i + 0.5);  // where the middle of the step ought to be
        build_step(&b, 1, &command);
    }
    build_near("position", us_sim_view_q(b.sim)[0], 0.7 * 3,
               1e-9);  // exp(-150) of the start is left; the rest is rounding
    build_near("velocity", us_sim_view_v(b.sim)[0], 0.7, 1e-9);
    build_free(&b);
}

static void a_drive_never_exceeds_its_torque_limit(void **state) {
    (void)state;
    for (int k = 0; k < US_INTEGRATOR_COUNT; k++) {
        us_joint_def def = rotor_joint(US_JOINT_REVOLUTE);
        us_spec *spec = build_rotor(&def, 0, 1e-3, (us_integrator)k);
        build_drive(spec, "motor", 0, 1000, 50, 100, 2);  // far from its goal: at the limit for long
        built b = build_sim(spec);
        build_step(&b, 1000, NULL);
        build_near("effort", us_sim_view_torque(b.sim)[0], 2, 0);
        build_near("speed", us_sim_view_v(b.sim)[0], 4, 1e-9);  // 2 / 0.5 = 4 rad/s^2
        build_free(&b);
    }
    // A goal nearby: it ends there, and on the way each torque stays within the limit.
    for (int k = 0; k < 2; k++) {
        us_joint_def def = rotor_joint(US_JOINT_REVOLUTE);
        us_spec *spec = build_rotor(&def, 0, 1e-3, IMPLICIT[k]);
        build_drive(spec, "motor", 0, 1000, 50, 1, 2);
        built b = build_sim(spec);
        bool was_high = false, was_low = false;
        for (int i = 0; i < 10000; i++) {
            double before = us_sim_view_v(b.sim)[0];
            build_step(&b, 1, NULL);
            double effort = us_sim_view_torque(b.sim)[0];
            assert_true(fabs(effort) <= 2);
            // What it says is what it did.
            build_near("acceleration", (us_sim_view_v(b.sim)[0] - before) / 1e-3 * 0.5, effort, 1e-9);
            was_high = was_high || effort == 2;
            was_low = was_low || effort == -2;
        }
        assert_true(was_high && was_low);
        build_near("goal", us_sim_view_q(b.sim)[0], 1, 1e-6);
        build_free(&b);
    }
}

static void the_effort_limit_of_the_joint_holds_for_its_drive(void **state) {
    (void)state;
    us_joint_def def = rotor_joint(US_JOINT_REVOLUTE);
    def.effort = 1.5;
    us_spec *spec = build_rotor(&def, 0, 1e-3, US_INTEGRATOR_MIDPOINT);
    build_drive(spec, "motor", 0, 1000, 0, 100, 0);
    built b = build_sim(spec);
    build_step(&b, 10, NULL);
    build_near("effort", us_sim_view_torque(b.sim)[0], 1.5, 0);
    build_free(&b);
}

// ---- Limits ----

static void a_limit_holds_a_falling_arm(void **state) {
    (void)state;
    for (int k = 0; k < US_INTEGRATOR_COUNT; k++) {
        us_spec *spec = build_spec(9.81, 1e-3, (us_integrator)k);
        int32_t bob = build_link(spec, "bob", 1, at(0, 0, -1), at(0.001, 0.001, 0.001));
        us_joint_def def = build_joint_at(US_JOINT_REVOLUTE, US_WORLD, bob, ORIGIN, Y);
        def.q0[0] = 1.5;
        def.has_limits = true;
        def.lower = 0.5;
        def.upper = 2;
        build_joint_def(spec, "hinge", &def);
        built b = build_sim(spec);
        double least = 1.5, bounce = 0;
        bool was_down = false;
        for (int i = 0; i < 5000; i++) {
            build_step(&b, 1, NULL);
            double q = us_sim_view_q(b.sim)[0];
            least = fmin(least, q);
            was_down = was_down || q < 0.5;
            if (was_down) bounce = fmax(bounce, q - 0.5);
        }
        // At rest the stop, 1e5 1/s^2 times 1.001 kg m^2, carries m g L sin(q) = 4.7 N m: 47 microradians
        // deep.
        build_near("rest", us_sim_view_q(b.sim)[0], 0.5 - 9.81 * sin(0.5) / 1.001e5, 1e-8);
        build_near("speed", us_sim_view_v(b.sim)[0], 0, 1e-6);
        printf("    %s: deepest %.2e rad, bounce %.2e rad\n", us_integrator_name((us_integrator)k),
               0.5 - least, bounce);
        // It arrives with 4 rad/s; critically damped at 316 rad/s it goes 4 / (e 316) = 5e-3 deep, plus a
        // step of 4e-3. Such a stop, which cannot pull, lets go with exp(-2) of that speed: 0.54^2 / (2
        // * 9.81 sin 0.5) = 0.031 rad high at the most.
        assert_true(0.5 - least < 0.012);
        assert_true(bounce < 0.032);
        build_free(&b);
    }
}

static void limits_at_both_ends_catch_a_slider(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        us_joint_def def = rotor_joint(US_JOINT_PRISMATIC);
        def.v0[0] = 2;
        def.has_limits = true;
        def.lower = -0.3;
        def.upper = 0.4;
        built b = build_sim(build_rotor(&def, 0, 1e-3, IMPLICIT[k]));
        double before = build_total_energy(&b);
        for (int i = 0; i < 20000; i++) {
            build_step(&b, 1, NULL);
            double q = us_sim_view_q(b.sim)[0];
            assert_true(q > -0.32 && q < 0.42);
            // A stop takes energy and gives none (its own, 1e5 x^2 / 2, is not counted here but comes back
            // less than whole).
            double now = build_total_energy(&b);
            assert_true(now <= 4 + 1e-9);
            before = now;
        }
        assert_true(before < 0.5);
        build_free(&b);
    }
}

// ---- Dry friction ----

static void friction_holds_below_its_value(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        us_joint_def def = rotor_joint(US_JOINT_PRISMATIC);
        def.friction = 10;
        built b = build_sim(build_rotor(&def, 0, 1e-3, IMPLICIT[k]));
        const double push[1] = {9};
        us_command command = {.torque = push};
        build_step(&b, 10000, &command);
        // Friction holds like a spring of 10 N over 0.1 um: 9 N stretch it by 0.09 um, and there it stays
        // (the jolt of the first step may drag it once by as much). Rounding is below 1e-15.
        build_near("creep", us_sim_view_v(b.sim)[0], 0, 1e-15);
        build_near("way", us_sim_view_q(b.sim)[0], 0.9e-7, 1e-7);
        build_free(&b);
    }
}

static void friction_slides_above_its_value_with_the_difference(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        us_joint_def def = rotor_joint(US_JOINT_PRISMATIC);
        def.friction = 10;
        built b = build_sim(build_rotor(&def, 0, 1e-3, IMPLICIT[k]));
        const double push[1] = {16};
        us_command command = {.torque = push};
        build_step(&b, 1000, &command);
        // (16 - 10) / 2 = 3 m/s^2; within the first step it is not yet sliding at full friction: 1e-4 m/s.
        build_near("speed", us_sim_view_v(b.sim)[0], 3, 2e-4);
        double at_speed = us_sim_view_v(b.sim)[0], from = us_sim_view_q(b.sim)[0];
        // Then let go: 5 m/s^2 against it, until it stands after v^2 / 10.
        build_step(&b, 400, NULL);
        build_near("slower", us_sim_view_v(b.sim)[0], at_speed - 5 * 0.4, 1e-9);
        build_step(&b, 2000, NULL);
        build_near("stands", us_sim_view_v(b.sim)[0], 0, 1e-9);
        build_near("way", us_sim_view_q(b.sim)[0] - from, at_speed * at_speed / 10,
                   2e-3);  // first order: half a step of 3 m/s
        build_free(&b);
    }
}

// ---- Rotor inertia ----

static void armature_adds_to_the_inertia_and_the_energy(void **state) {
    (void)state;
    us_joint_def def = rotor_joint(US_JOINT_REVOLUTE);
    def.armature = 1.5;
    built b = build_sim(build_rotor(&def, 0, 1e-3, US_INTEGRATOR_MIDPOINT));
    const double push[1] = {6};
    us_command command = {.torque = push};
    double H = 0, tau = 0, unit = 1;
    build_step(&b, 1000, &command);
    build_near("speed", us_sim_view_v(b.sim)[0], 3, 1e-12);  // 6 / (0.5 + 1.5)
    build_near("energy", build_total_energy(&b), 0.5 * 2 * 9, 1e-11);
    assert_int_equal(us_dyn_mass_matrix(b.dyn, b.q, &H), US_OK);
    build_near("H", H, 2, 1e-14);
    assert_int_equal(us_dyn_inverse(b.dyn, b.q, b.v, &unit, NULL, &tau), US_OK);
    build_near("inverse dynamics", tau, 2, 1e-14);
    build_free(&b);
}

static void a_massless_link_moves_by_its_armature_alone(void **state) {
    (void)state;
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    int32_t part = build_link(spec, "ghost", 0, ORIGIN, ORIGIN);
    us_joint_def def = build_joint_at(US_JOINT_REVOLUTE, US_WORLD, part, ORIGIN, Y);
    def.armature = 0.25;
    build_joint_def(spec, "joint", &def);
    built b = build_sim(spec);
    const double push[1] = {0.5};
    us_command command = {.torque = push};
    build_step(&b, 1000, &command);
    build_near("speed", us_sim_view_v(b.sim)[0], 2, 1e-12);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damper_decays_as_exp_of_minus_t_d_over_I),
        cmocka_unit_test(stiff_damper_stops_the_joint_without_ringing),
        cmocka_unit_test(damped_fall_reaches_its_final_speed),
        cmocka_unit_test(spring_swings_at_its_frequency_and_keeps_its_energy),
        cmocka_unit_test(stiff_spring_is_stable_at_any_step),
        cmocka_unit_test(stiff_drives_hold_an_arm_at_the_right_place),
        cmocka_unit_test(a_drive_tracks_a_changing_command),
        cmocka_unit_test(a_drive_never_exceeds_its_torque_limit),
        cmocka_unit_test(the_effort_limit_of_the_joint_holds_for_its_drive),
        cmocka_unit_test(a_limit_holds_a_falling_arm),
        cmocka_unit_test(limits_at_both_ends_catch_a_slider),
        cmocka_unit_test(friction_holds_below_its_value),
        cmocka_unit_test(friction_slides_above_its_value_with_the_difference),
        cmocka_unit_test(armature_adds_to_the_inertia_and_the_energy),
        cmocka_unit_test(a_massless_link_moves_by_its_armature_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

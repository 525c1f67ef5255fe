// A hundred seconds at 1 ms with the default scheme: what must not drift does not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"

static void pendulum_keeps_its_energy_for_a_hundred_seconds(void **state) {
    (void)state;
    // Released level: 1 kg at 1 m, so that m g L is 9.81 J.
    built b = build_sim(build_pendulum(0.001, 1.57079632679489661923, 1e-3, US_INTEGRATOR_MIDPOINT));
    double start = build_total_energy(&b), worst = 0, last = 0, swing = 0;
    for (int i = 0; i < 100000; i++) {
        build_step(&b, 1, NULL);
        last = (build_total_energy(&b) - start) / 9.81;
        worst = fmax(worst, fabs(last));
        swing = fmax(swing, fabs(us_sim_view_q(b.sim)[0]));
    }
    printf("    energy error / m g L: worst %.2e, at the end %.2e\n", worst, last);
    // 1e-6 is asked. The scheme's own swing within a period is about (h w)^2 / 12 = 1e-6 of the energy at its
    // fastest.
    assert_true(worst < 1e-6);
    assert_true(swing < 1.5708);
    build_free(&b);
}

// ---- A free body that flips ----

static us_spec *build_spin(double step, us_integrator integrator, us_vec3 com) {
    us_spec *spec = build_spec(0, step, integrator);
    int32_t body = build_link(spec, "body", 1, com, us_vec3_make(1, 2, 3));
    us_joint_def root =
        build_joint_at(US_JOINT_FLOATING, US_WORLD, body, us_vec3_make(0, 0, 0), us_vec3_make(1, 0, 0));
    root.v0[0] = 0.01;
    root.v0[1] = 5;
    root.v0[2] = 0.01;
    // The centre of mass at rest.
    us_vec3 v = us_vec3_cross(com, us_vec3_make(0.01, 5, 0.01));
    root.v0[3] = v.x;
    root.v0[4] = v.y;
    root.v0[5] = v.z;
    build_joint_def(spec, "root", &root);
    return spec;
}

static void check_spin(us_vec3 com, double momentum_limit) {
    built b = build_sim(build_spin(1e-3, US_INTEGRATOR_MIDPOINT, com));
    double energy = us_sim_get_energy(b.sim).kinetic, lost = 0, turned = 0, moved = 0;
    us_momentum start = us_sim_get_momentum(b.sim);
    int flips = 0;
    bool is_up = true;
    for (int i = 0; i < 100000; i++) {
        build_step(&b, 1, NULL);
        us_momentum p = us_sim_get_momentum(b.sim);
        lost = fmax(lost, fabs(us_sim_get_energy(b.sim).kinetic - energy) / energy);
        turned =
            fmax(turned, us_vec3_norm(us_vec3_sub(p.angular, start.angular)) / us_vec3_norm(start.angular));
        moved = fmax(moved, us_vec3_norm(us_vec3_sub(p.com, start.com)));
        // The middle axis turns over: its angular velocity in the body changes sign. Half of 5 rad/s is
        // passed but once a flip.
        double w = us_sim_view_v(b.sim)[1];
        if (is_up ? w < -2.5 : w > 2.5) {
            flips++;
            is_up = !is_up;
        }
    }
    printf("    100 s: %d flips, angular momentum off by %.1e, energy by %.1e, centre of mass by %.1e m\n",
           flips, turned, lost, moved);
    assert_int_equal(flips, 20);
    assert_true(turned < momentum_limit);
    assert_true(lost < 1e-6);
    assert_true(moved < 1e-9);
    build_free(&b);
}

static void spinning_body_keeps_momentum_and_energy_and_flips_twenty_times(void **state) {
    (void)state;
    // Momentum is a state of the scheme, so 1e5 steps leave rounding only; 1e-9 is asked.
    check_spin(us_vec3_make(0, 0, 0), 1e-9);
    // The same body described from a frame off its centre of mass.
    check_spin(us_vec3_make(0.3, -0.2, 0.5), 1e-9);
}

static void spinning_body_beside_a_commanded_robot_keeps_its_momentum_too(void **state) {
    (void)state;
    us_spec *spec = build_spin(1e-3, US_INTEGRATOR_MIDPOINT, us_vec3_make(0, 0, 0));
    int32_t arm = build_link(spec, "arm", 1, us_vec3_make(0, 0, -0.5), us_vec3_make(0.1, 0.1, 0.1));
    build_joint(spec, "shoulder", US_JOINT_REVOLUTE, US_WORLD, arm, us_vec3_make(3, 0, 0),
                us_vec3_make(0, 1, 0), 0, 0);
    built b = build_sim(spec);
    double tau[7] = {0};
    tau[us_model_get_joint(b.model, (us_joint){1}).first_v] = 0.01;
    us_command command = {.torque = tau};
    us_pose X = us_sim_get_pose(b.sim, (us_body){0});
    us_twist V = us_sim_get_twist(b.sim, (us_body){0});
    us_vec3 start = us_quat_rotate(X.q, us_vec3_make(V.w.x, 2 * V.w.y, 3 * V.w.z));
    build_step(&b, 20000, &command);
    X = us_sim_get_pose(b.sim, (us_body){0});
    us_vec3 w = us_quat_rotate(us_quat_conj(X.q), us_sim_get_twist(b.sim, (us_body){0}).w);
    us_vec3 end = us_quat_rotate(X.q, us_vec3_make(w.x, 2 * w.y, 3 * w.z));
    assert_true(us_vec3_norm(us_vec3_sub(end, start)) < 1e-9 * us_vec3_norm(start));
    build_free(&b);
}

// A stone thrown with spin: the path of the centre of mass is a parabola, which a second-order scheme has
// exactly.
static void thrown_body_follows_its_parabola(void **state) {
    (void)state;
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    int32_t body = build_link(spec, "stone", 2, us_vec3_make(0.1, 0.2, -0.1), us_vec3_make(0.1, 0.2, 0.25));
    us_joint_def root =
        build_joint_at(US_JOINT_FLOATING, US_WORLD, body, us_vec3_make(1, 2, 3), us_vec3_make(1, 0, 0));
    root.X_PF.q = us_quat_from_rpy(0.3, -0.5, 1.1);  // gravity is then along no axis of the joint's frame
    const double twist[6] = {3, -2, 4, 5, 1, 6};
    memcpy(root.v0, twist, sizeof twist);
    build_joint_def(spec, "root", &root);
    built b = build_sim(spec);
    us_momentum start = us_sim_get_momentum(b.sim);
    build_step(&b, 2000, NULL);
    us_momentum end = us_sim_get_momentum(b.sim);
    us_vec3 v = us_vec3_scale(1 / start.mass, start.linear),
            path = us_vec3_add(start.com, us_vec3_scale(2, v));
    path.z -= 0.5 * 9.81 * 4;
    printf("    off the parabola by %.1e m after 2 s\n", us_vec3_norm(us_vec3_sub(end.com, path)));
    assert_true(us_vec3_norm(us_vec3_sub(end.com, path)) < 1e-10);  // 2000 roundings of 20 m
    assert_true(us_vec3_norm(us_vec3_sub(end.angular, start.angular)) < 1e-11);
    build_free(&b);
}

static void double_pendulum_does_not_drift(void **state) {
    (void)state;
    built b = build_sim(build_double_pendulum(1e-3, US_INTEGRATOR_MIDPOINT));
    double start = build_total_energy(&b), worst[2] = {0, 0};
    for (int i = 0; i < 100000; i++) {
        build_step(&b, 1, NULL);
        int late = i >= 90000;
        worst[late] = fmax(worst[late], fabs(build_total_energy(&b) - start) / fabs(start));
    }
    printf("    energy error: worst %.2e in the first 90 s, %.2e in the last 10 s\n", worst[0], worst[1]);
    assert_true(worst[0] < 1e-4);            // (h w)^2 with w up to 8 rad/s
    assert_true(worst[1] < 1.5 * worst[0]);  // a drift would show here
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pendulum_keeps_its_energy_for_a_hundred_seconds),
        cmocka_unit_test(spinning_body_keeps_momentum_and_energy_and_flips_twenty_times),
        cmocka_unit_test(spinning_body_beside_a_commanded_robot_keeps_its_momentum_too),
        cmocka_unit_test(thrown_body_follows_its_parabola),
        cmocka_unit_test(double_pendulum_does_not_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

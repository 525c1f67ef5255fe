// Numbers worked out independently (by symbolic and by high-precision computation): double pendulum, branched
// tree, rocker differential, pendulum periods, heavy top, floating arm.
//
// Where a number was printed with nine decimals the tolerance is half of the last one, 5e-10, plus rounding.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"

static const double PI = 3.14159265358979323846;
static const double PRINTED = 6e-10;

static void near_all(const char *what, const double *value, const double *expected, int n, double tolerance) {
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s[%d]", what, i);
        build_near(name, value[i], expected[i], tolerance);
    }
}

// ---- T1: double pendulum ----

static void double_pendulum_has_the_printed_matrix_bias_and_accelerations(void **state) {
    (void)state;
    built b = build_model(build_double_pendulum(1e-3, US_INTEGRATOR_MIDPOINT));
    double H[4], C[2], a[2], tau[2] = {0, 0};
    assert_int_equal(us_dyn_mass_matrix(b.dyn, b.q, H), US_OK);
    assert_int_equal(us_dyn_bias(b.dyn, b.q, b.v, C), US_OK);
    near_all("H", H, (const double[]){2.622003156, 0.811001578, 0.811001578, 0.333333333}, 4, PRINTED);
    near_all("C", C, (const double[]){9.211300695, 0.826712964}, 2, PRINTED);
    const double expected[2] = {-11.096707373, 24.518202673};
    assert_int_equal(us_dyn_forward(b.dyn, b.q, b.v, tau, NULL, a), US_OK);
    near_all("a", a, expected, 2, PRINTED);
    assert_int_equal(us_dyn_forward_crba(b.dyn, b.q, b.v, NULL, NULL, a), US_OK);
    near_all("a by crba", a, expected, 2, PRINTED);
    build_free(&b);
}

static void double_pendulum_passes_the_printed_states(void **state) {
    (void)state;
    static const double t[4] = {0.1, 0.5, 1, 2};
    static const double expected[4][4] = {{0.548283535, 0.005783056, 0.04292043, 3.84810209},
                                          {0.44024617, 0.89438995, -0.542189876, -0.003807365},
                                          {0.202769266, -0.578235749, -1.682740146, -0.923182339},
                                          {-0.081654911, -0.843704802, 1.375909148, 1.161427386}};
    // Fourth order at 0.5 ms leaves 1e-12, the error-controlled one at 1e-11 about as much: the print
    // decides. Some of the printed velocities have eight decimals.
    static const us_integrator integrators[2] = {US_INTEGRATOR_RK4, US_INTEGRATOR_ADAPTIVE};
    for (int k = 0; k < 2; k++) {
        us_spec *spec = build_double_pendulum(5e-4, integrators[k]);
        us_world_settings world = *us_spec_view_world(spec);
        world.tolerance = 1e-11;
        us_spec_set_world(spec, &world);
        built b = build_sim(spec);
        for (int i = 0; i < 4; i++) {
            build_step(&b, (int64_t)(t[i] / 5e-4 + 0.5) - us_sim_get_tick(b.sim), NULL);
            near_all("q", us_sim_view_q(b.sim), expected[i], 2, 6e-9);
            near_all("v", us_sim_view_v(b.sim), expected[i] + 2, 2, 6e-9);
        }
        build_free(&b);
    }
}

static void double_pendulum_keeps_its_energy_for_ten_seconds(void **state) {
    (void)state;
    // T7: below 1e-9 of the energy with the fourth-order scheme; the potential is 0 at the pivot, the energy
    // about -14 J.
    static const us_integrator integrators[2] = {US_INTEGRATOR_RK4, US_INTEGRATOR_EULER};
    double worst[2][2] = {{0, 0}, {0, 0}};
    for (int k = 0; k < 2; k++) {
        for (int half = 0; half < 2; half++) {
            double h = half ? 5e-4 : 1e-3;
            built b = build_sim(build_double_pendulum(h, integrators[k]));
            double start = build_total_energy(&b);
            for (int i = 0; i < 10000 * (1 + half); i++) {
                build_step(&b, 1, NULL);
                worst[k][half] = fmax(worst[k][half], fabs(build_total_energy(&b) - start) / fabs(start));
            }
            build_free(&b);
        }
    }
    printf("    energy error over 10 s: rk4 %.2e, euler %.2e at 1 ms and %.2e at 0.5 ms\n", worst[0][0],
           worst[1][0], worst[1][1]);
    assert_true(worst[0][0] < 1e-9);
    // Semi-implicit Euler is bounded (1e-2 is twenty times the swing of one period) and of first order: half
    // the step, half the error.
    assert_true(worst[1][0] < 1e-2);
    assert_true(worst[1][1] < 0.6 * worst[1][0] && worst[1][1] > 0.4 * worst[1][0]);
}

// ---- T2: branched tree ----

static double determinant(const double *H, int n, double *work) {
    memcpy(work, H, (size_t)(n * n) * sizeof *work);
    double product = 1;
    for (int k = 0; k < n; k++) {
        product *= work[k * n + k];
        for (int i = k + 1; i < n; i++) {
            double f = work[i * n + k] / work[k * n + k];
            for (int j = k; j < n; j++)
                work[i * n + j] -= f * work[k * n + j];
        }
    }
    return product;
}

// Greatest eigenvalue of H (or of its inverse) by repeated multiplication (or solution): H is symmetric and
// positive.
static double eigenvalue(us_dyn *dyn, const double *q, const double *H, int n, bool is_inverse) {
    double x[8], y[8], zero[8] = {0}, g[8], most = 0;
    for (int i = 0; i < n; i++)
        x[i] = 1 + 0.1 * i;
    assert_int_equal(us_dyn_bias(dyn, q, zero, g), US_OK);
    for (int it = 0; it < 2000; it++) {
        if (is_inverse) {
            double tau[8];
            for (int i = 0; i < n; i++)
                tau[i] = x[i] + g[i];
            assert_int_equal(us_dyn_forward_crba(dyn, q, zero, tau, NULL, y), US_OK);
        } else {
            for (int i = 0; i < n; i++) {
                y[i] = 0;
                for (int k = 0; k < n; k++)
                    y[i] += H[i * n + k] * x[k];
            }
        }
        double size = 0;
        for (int i = 0; i < n; i++)
            size += y[i] * y[i];
        most = sqrt(size);
        for (int i = 0; i < n; i++)
            x[i] = y[i] / most;
    }
    return most;
}

static void branched_tree_has_the_printed_matrix_bias_and_accelerations(void **state) {
    (void)state;
    built b = build_model(build_branched_tree());
    static const double tau[8] = {1, -2, 3, -4, 5, -6, 7, -8};
    static const double diagonal[8] = {37.358799817, 26.332129467, 9.250880682, 4.881662587,
                                       1.643055177,  0.09535,      8.5,         0.11865};
    static const double row[8] = {37.358799817, -1.400274385, 0.444907669,  8.390914447,
                                  0.641220156,  -0.548547072, 10.489928808, 1.09436517};
    static const double bias[8] = {3.085127567,   -208.50242672, -84.426512991, 10.38126981,
                                   -22.571996503, -1.35665679,   -1.469575695,  1.311332108};
    static const double expected[8] = {9.160879879, 5.981473326,    -0.702575037, -25.491409599,
                                       8.244361583, -114.746239641, -3.702236998, -138.102024284};
    double H[64], C[8], a[8], c[8], work[64];
    assert_int_equal(us_dyn_mass_matrix(b.dyn, b.q, H), US_OK);
    for (int i = 0; i < 8; i++)
        build_near("diagonal of H", H[9 * i], diagonal[i], PRINTED);
    near_all("first row of H", H, row, 8, PRINTED);
    assert_int_equal(us_dyn_bias(b.dyn, b.q, b.v, C), US_OK);
    near_all("C", C, bias, 8, PRINTED);
    assert_int_equal(us_dyn_forward(b.dyn, b.q, b.v, tau, NULL, a), US_OK);
    near_all("a", a, expected, 8, PRINTED);
    assert_int_equal(us_dyn_forward_crba(b.dyn, b.q, b.v, tau, NULL, c), US_OK);
    // Two algorithms at a condition number of 743: 1e-16 * 743, and 1e-12 was asked.
    assert_true(build_difference(a, c, 8) <= 1e-12 * build_greatest(a, 8));
    for (int i = 0; i < 8; i++) {
        double residual = C[i] - tau[i];
        for (int k = 0; k < 8; k++)
            residual += H[8 * i + k] * a[k];
        build_near("H a + C - tau", residual, 0, 1e-12);  // a few units in the last place of 200
    }
    build_near("det H", determinant(H, 8, work), 74.286528, 6e-7);
    build_near("cond H", eigenvalue(b.dyn, b.q, H, 8, false) * eigenvalue(b.dyn, b.q, H, 8, true), 742.954,
               6e-4);
    build_free(&b);
}

// ---- T3: rocker differential ----

static void rocker_differential_shares_a_torque_between_the_rockers(void **state) {
    (void)state;
    built b = build_model(build_rocker_differential(0, 1e-3, US_INTEGRATOR_MIDPOINT));
    double H[9], phi[1], K[3], a[3], lambda[1];
    const double tau[3] = {0, 3, 0};
    int32_t rank = 0;
    assert_int_equal(us_dyn_mass_matrix(b.dyn, b.q, H), US_OK);
    near_all("M", H, (const double[]){9, 2, 2, 2, 2, 0, 2, 0, 2}, 9,
             1e-13);  // the axis y is made by turning z: a few roundings of 9
    assert_int_equal(us_dyn_constraints(b.dyn, b.q, phi, K), US_OK);
    near_all("K", K, (const double[]){0, 1, 1}, 3, 0);
    build_near("phi", phi[0], 0, 0);
    assert_int_equal(us_dyn_forward_constrained(b.dyn, b.q, b.v, tau, NULL, a, lambda, &rank), US_OK);
    assert_int_equal(rank, 1);
    near_all("a", a, (const double[]){0, 0.75, -0.75}, 3, 1e-13);
    // The force on the joints is K^T lambda: -1.5 on both.
    build_near("lambda", lambda[0], -1.5, 1e-13);
    // With the left rocker's acceleration given instead of its torque: the rest follows from the rows with
    // known torque (pitch and right rocker, no torque) and from the differential, and the left torque from
    // its own row: M a = tau + K^T lambda.
    const double known[3] = {0, 1, -1};
    double needed[3];
    assert_int_equal(us_dyn_inverse(b.dyn, b.q, b.v, known, NULL, needed), US_OK);
    build_near("pitch torque", needed[0], 0, 1e-13);
    const double force = needed[2] / K[2];
    build_near("lambda when driven", force, -2, 1e-13);
    build_near("left torque", needed[1] - K[1] * force, 4, 1e-13);
    build_free(&b);
}

// ---- T4: periods of a pendulum ----

static void pendulum_swings_with_the_elliptic_period(void **state) {
    (void)state;
    static const double degrees[4] = {10, 45, 90, 150},
                        period[4] = {2.0098926, 2.0862559, 2.3678419, 3.5350982};
    for (int k = 0; k < 4; k++) {
        const double h = 1e-3;
        built b = build_sim(build_pendulum(0, degrees[k] * PI / 180, h, US_INTEGRATOR_RK4));
        // Released at rest on one side: after half a period its speed comes back through 0 on the other,
        // after a whole one here.
        double t = 0, before = 0, now = 0;
        int crossings = 0;
        while (crossings < 2) {
            build_step(&b, 1, NULL);
            before = now;
            now = us_sim_view_v(b.sim)[0];
            t = us_sim_get_time(b.sim);
            if (us_sim_get_tick(b.sim) > 1 && before * now <= 0) crossings++;
            assert_true(t < 5);
        }
        // At the turning point the acceleration is g sin(q); the chord of the last step is curved by h^3
        // only.
        double root = t - h + h * before / (before - now);
        build_near("period", root, period[k], 6e-8);  // half of the last printed digit, plus the chord's 1e-9
        build_free(&b);
    }
}

// ---- T5: heavy top ----

static void check_precession(double precession, us_integrator integrator, double h, double duration,
                             double tolerance) {
    const double theta = PI / 6;
    built b = build_sim(build_heavy_top(theta, 100, precession, h, integrator));
    double worst = 0;
    us_vec3 axis = {0, 0, 1};
    for (int64_t i = 0; i < (int64_t)(duration / h + 0.5); i++) {
        build_step(&b, 1, NULL);
        axis = us_quat_rotate(us_sim_get_pose(b.sim, (us_body){0}).q, us_vec3_make(0, 0, 1));
        worst = fmax(worst, fabs(acos(axis.z) - theta));
    }
    // The axis starts in the x-z plane and goes round by precession * t.
    double error = remainder(atan2(axis.y, axis.x) - precession * us_sim_get_time(b.sim), 2 * PI);
    printf("    %s, %.7f rad/s, %.2g s at %.1e s: tilt off by %.1e, azimuth by %.1e rad\n",
           us_integrator_name(integrator), precession, duration, h, worst, error);
    build_near("tilt", worst, 0, tolerance);
    // The printed rates have eight digits: that, and the scheme's error.
    build_near("azimuth", error, 0, tolerance + 1e-8 * precession * duration);
    build_near("spin", us_sim_view_v(b.sim)[2], 100, 100 * tolerance);
    build_free(&b);
}

static void heavy_top_precesses_steadily_at_both_rates(void **state) {
    (void)state;
    // One turn of the spin takes 63 ms. Fourth order at 0.1 ms: (h w)^4 = 1e-8 per radian of nutation, some
    // 1e-8 in a second.
    check_precession(0.99826030, US_INTEGRATOR_RK4, 1e-4, 2, 1e-6);
    check_precession(56.7367666, US_INTEGRATOR_RK4, 1e-4, 2, 1e-6);
    check_precession(0.99826030, US_INTEGRATOR_ADAPTIVE, 1e-3, 2, 1e-6);
    // The default at 0.1 ms: (h w)^2 / 12 = 1e-5 of the nutation's frequency.
    check_precession(0.99826030, US_INTEGRATOR_MIDPOINT, 1e-4, 2, 1e-4);
    check_precession(56.7367666, US_INTEGRATOR_MIDPOINT, 1e-4, 2, 5e-3);
}

// ---- T6: momentum of a floating arm ----

static void floating_arm_keeps_linear_and_angular_momentum(void **state) {
    (void)state;
    built b = build_sim(build_floating_arm(0, 1e-3, US_INTEGRATOR_MIDPOINT));
    us_momentum start = us_sim_get_momentum(b.sim);
    double energy = build_total_energy(&b), linear = 0, angular = 0, lost = 0, moved = 0;
    for (int i = 0; i < 10000; i++) {
        build_step(&b, 1, NULL);
        us_momentum p = us_sim_get_momentum(b.sim);
        linear = fmax(linear, us_vec3_norm(us_vec3_sub(p.linear, start.linear)) / us_vec3_norm(start.linear));
        angular =
            fmax(angular, us_vec3_norm(us_vec3_sub(p.angular, start.angular)) / us_vec3_norm(start.angular));
        lost = fmax(lost, fabs(build_total_energy(&b) - energy) / energy);
        us_vec3 path =
            us_vec3_add(start.com, us_vec3_scale(us_sim_get_time(b.sim) / start.mass, start.linear));
        moved = fmax(moved, us_vec3_norm(us_vec3_sub(p.com, path)));
    }
    printf("    10 s: linear %.1e, angular %.1e, energy %.1e, centre of mass off its line by %.1e m\n",
           linear, angular, lost, moved);
    // Rounding: 1e4 steps of 1e-16 add up to 1e-12 at most, and the correction of each step takes most of it
    // away again.
    assert_true(linear <= 1e-12);
    assert_true(angular <= 1e-12);
    // Second order: (h w)^2 with w of some rad/s is 1e-5 per radian of an oscillation that comes back.
    assert_true(lost <= 1e-5);
    assert_true(moved <= 1e-5);
    build_free(&b);
}

static void floating_arm_gains_the_momentum_that_gravity_and_forces_give(void **state) {
    (void)state;
    built b = build_sim(build_floating_arm(9.81, 1e-3, US_INTEGRATOR_MIDPOINT));
    us_momentum start = us_sim_get_momentum(b.sim);
    // Along the base's own axes, through the joint's torque; and once more as a wrench at its origin.
    build_step(&b, 1000, NULL);
    us_momentum p = us_sim_get_momentum(b.sim);
    build_near("fall", p.linear.z, start.linear.z - 9.81 * start.mass, 1e-10);
    double tau[9] = {0, 0, 0, 7, 0, 0, 0, 0, 0};
    us_vec3 along = us_quat_rotate(us_sim_get_pose(b.sim, (us_body){0}).q, us_vec3_make(7e-3, 0, 0));
    us_command push = {.torque = tau};
    us_momentum before = us_sim_get_momentum(b.sim);
    build_step(&b, 1, &push);
    us_momentum after = us_sim_get_momentum(b.sim);
    us_vec3 gain =
        us_vec3_sub(us_vec3_sub(after.linear, before.linear), us_vec3_make(0, 0, -9.81e-3 * start.mass));
    // The base turns by 1 mrad during the step, and so does the force's direction.
    build_near("x", gain.x, along.x, 1e-5);
    build_near("y", gain.y, along.y, 1e-5);
    build_near("z", gain.z, along.z, 1e-5);
    us_wrench wrench[4];
    memset(wrench, 0, sizeof wrench);
    wrench[2].f = us_vec3_make(1, 2, 3);
    us_command pull = {.wrench = wrench};
    before = us_sim_get_momentum(b.sim);
    build_step(&b, 1, &pull);
    after = us_sim_get_momentum(b.sim);
    gain = us_vec3_sub(us_vec3_sub(after.linear, before.linear), us_vec3_make(0, 0, -9.81e-3 * start.mass));
    // What a step without correction leaves: (h w)^2 of the momentum.
    build_near("x", gain.x, 1e-3, 2e-6);
    build_near("y", gain.y, 2e-3, 2e-6);
    build_near("z", gain.z, 3e-3, 2e-6);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_pendulum_has_the_printed_matrix_bias_and_accelerations),
        cmocka_unit_test(double_pendulum_passes_the_printed_states),
        cmocka_unit_test(double_pendulum_keeps_its_energy_for_ten_seconds),
        cmocka_unit_test(branched_tree_has_the_printed_matrix_bias_and_accelerations),
        cmocka_unit_test(rocker_differential_shares_a_torque_between_the_rockers),
        cmocka_unit_test(pendulum_swings_with_the_elliptic_period),
        cmocka_unit_test(heavy_top_precesses_steadily_at_both_rates),
        cmocka_unit_test(floating_arm_keeps_linear_and_angular_momentum),
        cmocka_unit_test(floating_arm_gains_the_momentum_that_gravity_and_forces_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

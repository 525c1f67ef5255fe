// Loops and couplings: forces, redundant rows, starts that cannot close.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }
static const us_vec3 Y = {0, 1, 0};

static void check_closed_motion(built *b, double h) {
    // Accelerations must keep K a + dK/dt v = 0: differentiate K v along the motion.
    enum { MOST = 32 };
    double a[MOST], K[2][MOST * MOST], q[MOST], dq[MOST], phi[MOST], worst = 0, size = 1;
    int32_t n = b->n.n_v, rows = b->n.n_row;
    assert_true(n <= MOST && rows <= MOST && b->n.n_q <= MOST);
    const double *q0 = us_sim_view_q(b->sim), *v0 = us_sim_view_v(b->sim);
    assert_int_equal(us_dyn_forward_constrained(b->dyn, q0, v0, NULL, NULL, a, NULL, NULL), US_OK);
    for (int side = 0; side < 2; side++) {
        double t = side ? h : -h;
        for (int32_t i = 0; i < n; i++)
            dq[i] = t * v0[i] + 0.5 * t * t * a[i];
        assert_int_equal(us_dyn_add(b->model, q0, dq, q), US_OK);
        assert_int_equal(us_dyn_constraints(b->dyn, q, phi, K[side]), US_OK);
    }
    for (int32_t r = 0; r < rows; r++) {
        double rate = 0;
        for (int32_t i = 0; i < n; i++)
            rate += (K[1][r * n + i] * (v0[i] + h * a[i]) - K[0][r * n + i] * (v0[i] - h * a[i])) / (2 * h);
        worst = fmax(worst, fabs(rate));
    }
    for (int32_t i = 0; i < n; i++)
        size = fmax(size, fabs(a[i]));
    // Difference quotient at 1e-5: 1e-9 relative; a missing term of dK/dt would be of the size of v^2, some
    // units.
    assert_true(worst < 1e-6 * size);
}

static void accelerations_keep_every_kind_of_row_closed(void **state) {
    (void)state;
    us_spec *specs[4] = {build_four_bar(0.3, 1, 0.8, 1, 0.7, 3, 1e-3, US_INTEGRATOR_MIDPOINT),
                         build_rocker_bar(1e-3, US_INTEGRATOR_MIDPOINT),
                         build_four_bars(3, 1e-3, US_INTEGRATOR_MIDPOINT), NULL};
    // A hinge and a weld in space: two arms on balls that hold a bar between them.
    us_spec *spec = specs[3] = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    int32_t left = build_link(spec, "left", 1, at(0, 0, -0.5), at(0.1, 0.1, 0.02)),
            right = build_link(spec, "right", 2, at(0, 0, -0.5), at(0.1, 0.1, 0.02));
    us_joint_def ball = build_joint_at(US_JOINT_SPHERICAL, US_WORLD, left, at(0, 0, 0), Y);
    ball.v0[0] = 1;
    ball.v0[1] = 0.5;
    ball.v0[2] = 0.7;
    build_joint_def(spec, "left_ball", &ball);
    ball.child = right;
    ball.X_PF.p = at(0.5, 0, 0);
    build_joint_def(spec, "right_ball", &ball);
    int32_t bar = build_link(spec, "bar", 1, at(0.25, 0, 0), at(0.01, 0.05, 0.05));
    us_joint_def free_bar = build_joint_at(US_JOINT_FLOATING, US_WORLD, bar, at(0, 0, -1), Y);
    build_joint_def(spec, "free_bar", &free_bar);
    build_loop(spec, "weld", US_LOOP_WELD, left, at(0, 0, -1), bar, at(0, 0, 0));
    build_loop(spec, "hinge", US_LOOP_HINGE, bar, at(0.5, 0, 0), right, at(0, 0, -1));
    for (int k = 0; k < 4; k++) {
        built b = build_sim(specs[k]);
        for (int i = 0; i < 10; i++) {
            check_closed_motion(&b, 1e-5);
            build_step(&b, 37, NULL);
            assert_true(us_sim_get_closure(b.sim) < 1e-9);
        }
        build_free(&b);
    }
}

static void constraint_jacobian_is_the_rate_of_the_residuals(void **state) {
    (void)state;
    built b = build_sim(build_rocker_bar(1e-3, US_INTEGRATOR_MIDPOINT));
    enum { MOST = 16 };
    double K[MOST * MOST], phi[2][MOST], dq[MOST] = {0}, q[MOST];
    const double h = 1e-6;
    build_step(&b, 300, NULL);
    int32_t n = b.n.n_v, rows = b.n.n_row;
    assert_true(n == 8 && rows == 6);
    assert_int_equal(us_dyn_constraints(b.dyn, us_sim_view_q(b.sim), phi[0], K), US_OK);
    for (int32_t i = 0; i < n; i++) {
        for (int side = 0; side < 2; side++) {
            dq[i] = side ? h : -h;
            assert_int_equal(us_dyn_add(b.model, us_sim_view_q(b.sim), dq, q), US_OK);
            assert_int_equal(us_dyn_constraints(b.dyn, q, phi[side], NULL), US_OK);
        }
        dq[i] = 0;
        for (int32_t r = 0; r < rows; r++)
            build_near("K", (phi[1][r] - phi[0][r]) / (2 * h), K[r * n + i], 1e-9);  // rounding 1e-16 / 2e-6
    }
    build_free(&b);
}

static void a_gear_carries_inertia_with_its_ratio_squared(void **state) {
    (void)state;
    us_spec *spec = build_spec(0, 1e-3, US_INTEGRATOR_MIDPOINT);
    int32_t motor = build_link(spec, "motor", 1, at(0, 0, 0), at(0.1, 0.2, 0.1)),
            wheel = build_link(spec, "wheel", 1, at(0, 0, 0), at(1, 4.5, 1));
    build_joint(spec, "fast", US_JOINT_CONTINUOUS, US_WORLD, motor, at(0, 0, 0), Y, 0, 0);
    build_joint(spec, "slow", US_JOINT_CONTINUOUS, US_WORLD, wheel, at(1, 0, 0), Y, 0, 0);
    build_coupling(spec, "gear", 0, 1, 1, -3, 0);
    built b = build_sim(spec);
    const double tau[2] = {1.4, 0};
    us_command command = {.torque = tau};
    build_step(&b, 1000, &command);
    // 0.2 + 4.5 / 9 = 0.7 kg m^2 at the motor: 2 rad/s^2.
    build_near("motor", us_sim_view_v(b.sim)[0], 2, 1e-12);
    build_near("wheel", us_sim_view_v(b.sim)[1], 2.0 / 3, 1e-12);
    build_near("angle", us_sim_view_q(b.sim)[0], 1, 1e-12);
    build_free(&b);
}

// ---- Redundant rows ----

static int32_t rank_of(built *b, double *out_a) {
    double a[64];
    int32_t rank = -1;
    assert_int_equal(us_dyn_forward_constrained(b->dyn, us_sim_view_q(b->sim), us_sim_view_v(b->sim), NULL,
                                                NULL, a, NULL, &rank),
                     US_OK);
    if (out_a) memcpy(out_a, a, (size_t)b->n.n_v * sizeof(double));
    for (int32_t i = 0; i < b->n.n_v; i++)
        assert_true(isfinite(a[i]));
    return rank;
}

static void planar_point_loop_has_two_independent_rows_of_three(void **state) {
    (void)state;
    built b = build_sim(build_four_bar(0.3, 1, 0.8, 1, 0.7, 1, 1e-3, US_INTEGRATOR_MIDPOINT));
    double lambda[3], a[3];
    int32_t rank = 0;
    assert_int_equal(b.n.n_row, 3);
    assert_int_equal(us_dyn_forward_constrained(b.dyn, us_sim_view_q(b.sim), us_sim_view_v(b.sim), NULL, NULL,
                                                a, lambda, &rank),
                     US_OK);
    assert_int_equal(rank, 2);
    assert_true(lambda[1] == 0);  // across the plane
    build_free(&b);
}

static void a_coupling_written_twice_counts_once_and_changes_nothing(void **state) {
    (void)state;
    double a[2][3];
    for (int twice = 0; twice < 2; twice++) {
        us_spec *spec = build_rocker_differential(0.3, 1e-3, US_INTEGRATOR_MIDPOINT);
        if (twice) build_coupling(spec, "again", 1, -2, 2, -2, 0);
        built b = build_sim(spec);
        assert_int_equal(b.n.n_row, 1 + twice);
        assert_int_equal(rank_of(&b, a[twice]), 1);
        build_step(&b, 1000, NULL);
        assert_true(us_sim_get_closure(b.sim) < 1e-12);
        build_free(&b);
    }
    assert_true(build_difference(a[0], a[1], 3) < 1e-13);
}

// A parallelogram whose coupler is welded to a bar on a third crank: six rows, of which a planar mechanism
// needs few.
static void weld_that_closes_a_parallelogram_leaves_it_one_motion(void **state) {
    (void)state;
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    const us_vec3 com = {0, 0, -0.25};
    int32_t crank[2], bar[2];
    static const char *const names[2][4] = {{"crank0", "bar0", "pivot0", "knee0"},
                                            {"crank1", "bar1", "pivot1", "knee1"}};
    for (int i = 0; i < 2; i++) {
        crank[i] = build_link(spec, names[i][0], 1, com, at(0.02, 0.02, 0.001));
        bar[i] = build_link(spec, names[i][1], 0.5, at(i ? -0.25 : 0.25, 0, 0), at(0.001, 0.01, 0.01));
        build_joint(spec, names[i][2], US_JOINT_REVOLUTE, US_WORLD, crank[i], at(i, 0, 0), Y, 0.5, 0);
        build_joint(spec, names[i][3], US_JOINT_REVOLUTE, crank[i], bar[i], at(0, 0, -0.5), Y, -0.5, 0);
    }
    build_loop(spec, "weld", US_LOOP_WELD, bar[0], at(0.5, 0, 0), bar[1], at(-0.5, 0, 0));
    built b = build_sim(spec);
    assert_int_equal(b.n.n_row, 6);
    assert_int_equal(rank_of(&b, NULL),
                     3);  // two directions and one angle in the plane; four joints: one motion is left
    double start = build_total_energy(&b), worst = 0, closure = 0;
    for (int i = 0; i < 10000; i++) {
        build_step(&b, 1, NULL);
        worst = fmax(worst, fabs(build_total_energy(&b) - start));
        closure = fmax(closure, us_sim_get_closure(b.sim));
        // The coupler stays level and the cranks parallel.
        const double *q = us_sim_view_q(b.sim);
        build_near("knee", q[1], -q[0], 1e-9);
        build_near("second crank", q[2], q[0], 1e-9);
    }
    // As one rod: I = 2 (0.02 + 0.0625) + 0.25 = 0.415, m g l = 2 * 9.81 * 0.25 + 9.81 * 0.5: swings at 4.9
    // rad/s. (h w)^2 of 1.2 J.
    printf("    energy off by %.1e J, closure %.1e m\n", worst, closure);
    assert_true(worst < 1e-4);
    assert_true(closure < 1e-9);
    build_free(&b);
}

static void every_loop_of_a_row_of_four_bars_is_independent(void **state) {
    (void)state;
    built b = build_sim(build_four_bars(5, 1e-3, US_INTEGRATOR_MIDPOINT));
    assert_int_equal(b.n.n_row, 15);
    assert_int_equal(rank_of(&b, NULL), 10);  // eleven joints, one motion
    build_free(&b);
}

// ---- Starts that cannot close ----

static void check_refused(us_spec *spec) {
    us_model *model = NULL;
    us_sim *sim = NULL;
    us_error err;
    memset(&err, 0, sizeof err);
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
    assert_int_equal(us_sim_create(model, NULL, &sim, &err), US_ERR_CONSTRAINT);
    assert_null(sim);
    assert_int_equal(err.code, US_ERR_CONSTRAINT);
    assert_true(err.message[0] != 0 && err.remedy[0] != 0);
    us_model_destroy(model);
    us_spec_destroy(spec);
}

static void a_loop_that_cannot_close_is_refused(void **state) {
    (void)state;
    // Two rods of half a metre on pivots two metres apart.
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    int32_t a = build_link(spec, "a", 1, at(0, 0, -0.25), at(0.02, 0.02, 0.02)),
            b = build_link(spec, "b", 1, at(0, 0, -0.25), at(0.02, 0.02, 0.02));
    build_joint(spec, "ja", US_JOINT_REVOLUTE, US_WORLD, a, at(0, 0, 0), Y, 0, 0);
    build_joint(spec, "jb", US_JOINT_REVOLUTE, US_WORLD, b, at(2, 0, 0), Y, 0, 0);
    build_loop(spec, "gap", US_LOOP_POINT, a, at(0, 0, -0.5), b, at(0, 0, -0.5));
    check_refused(spec);
}

static void couplings_that_contradict_each_other_are_refused(void **state) {
    (void)state;
    us_spec *spec = build_rocker_differential(0, 1e-3, US_INTEGRATOR_MIDPOINT);
    build_coupling(spec, "contradiction", 1, 1, 2, 1, 0.1);
    check_refused(spec);
}

static void hinge_loop_out_of_the_plane_is_refused(void **state) {
    (void)state;
    // Points meet but the axes of a planar pair are turned against each other by 0.2 rad about x: no planar
    // motion cures that.
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    int32_t a = build_link(spec, "a", 1, at(0, 0, -0.25), at(0.02, 0.02, 0.02));
    build_joint(spec, "ja", US_JOINT_REVOLUTE, US_WORLD, a, at(0, 0, 0), Y, 0.3, 0);
    us_loop_def loop = us_loop_def_default(US_LOOP_HINGE);
    loop.name = "skew";
    loop.link_a = a;
    loop.link_b = US_WORLD;
    loop.X_AC = loop.X_BD = us_pose_identity();
    loop.X_AC.q = us_quat_from_rpy(1.5707963267948966, 0, 0);
    loop.X_BD.q = us_quat_from_rpy(1.5707963267948966 + 0.2, 0, 0);
    assert_int_equal(us_spec_add_loop(spec, &loop, NULL), US_OK);
    check_refused(spec);
}

static void a_start_that_is_off_is_moved_onto_the_loop(void **state) {
    (void)state;
    us_spec *spec = build_four_bar(0.3, 1, 0.8, 1, 0.7, 1, 1e-3, US_INTEGRATOR_MIDPOINT);
    us_joint_def rocker = *us_spec_view_joint(spec, 2);
    rocker.q0[0] += 0.2;
    assert_int_equal(us_spec_set_joint(spec, 2, &rocker), US_OK);
    built b = build_sim(spec);
    double K[9], phi[3];
    assert_true(us_sim_get_closure(b.sim) < 1e-9);
    assert_int_equal(us_dyn_constraints(b.dyn, us_sim_view_q(b.sim), phi, K), US_OK);
    for (int r = 0; r < 3; r++) {
        double rate = 0;
        for (int i = 0; i < 3; i++)
            rate += K[3 * r + i] * us_sim_view_v(b.sim)[i];
        build_near("K v", rate, 0, 1e-14);
    }
    assert_true(fabs(us_sim_view_v(b.sim)[0]) > 0.1);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accelerations_keep_every_kind_of_row_closed),
        cmocka_unit_test(constraint_jacobian_is_the_rate_of_the_residuals),
        cmocka_unit_test(a_gear_carries_inertia_with_its_ratio_squared),
        cmocka_unit_test(planar_point_loop_has_two_independent_rows_of_three),
        cmocka_unit_test(a_coupling_written_twice_counts_once_and_changes_nothing),
        cmocka_unit_test(weld_that_closes_a_parallelogram_leaves_it_one_motion),
        cmocka_unit_test(every_loop_of_a_row_of_four_bars_is_independent),
        cmocka_unit_test(a_loop_that_cannot_close_is_refused),
        cmocka_unit_test(couplings_that_contradict_each_other_are_refused),
        cmocka_unit_test(hinge_loop_out_of_the_plane_is_refused),
        cmocka_unit_test(a_start_that_is_off_is_moved_onto_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Ten kilometres from the origin: the same accelerations, the same motion.
//
// A position of 1e4 m is rounded to 2e-12 m. Nothing of the dynamics may see that: sums are taken about a
// point on the robot.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"

static const us_vec3 FAR = {10000, -7000, 1200};

// Moves every joint on the world by FAR.
static us_spec *moved(us_spec *spec) {
    us_spec_counts n = us_spec_get_counts(spec);
    for (int32_t i = 0; i < n.n_joint; i++) {
        us_joint_def def = *us_spec_view_joint(spec, i);
        if (def.parent != US_WORLD) continue;
        def.X_PF.p = us_vec3_add(def.X_PF.p, FAR);
        assert_int_equal(us_spec_set_joint(spec, i, &def), US_OK);
    }
    return spec;
}

static void compare_accelerations(built *a, built *b) {
    double x[128], y[128];
    us_status (*const algorithms[2])(us_dyn *, const double *, const double *, const double *,
                                     const us_wrench *, double *) = {us_dyn_forward, us_dyn_forward_crba};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(algorithms[k](a->dyn, a->q, a->v, NULL, NULL, x), US_OK);
        assert_int_equal(algorithms[k](b->dyn, b->q, b->v, NULL, NULL, y), US_OK);
        assert_true(build_difference(x, y, a->n.n_v) <= 1e-9 * build_greatest(x, a->n.n_v));
    }
}

static void robots_have_the_same_accelerations(void **state) {
    (void)state;
    us_spec *near[3] = {build_branched_tree(), build_chain(30, 1e-3, US_INTEGRATOR_MIDPOINT),
                        build_floating_arm(9.81, 1e-3, US_INTEGRATOR_MIDPOINT)};
    us_spec *far[3] = {moved(build_branched_tree()), moved(build_chain(30, 1e-3, US_INTEGRATOR_MIDPOINT)),
                       moved(build_floating_arm(9.81, 1e-3, US_INTEGRATOR_MIDPOINT))};
    for (int k = 0; k < 3; k++) {
        built a = build_model(near[k]), b = build_model(far[k]);
        compare_accelerations(&a, &b);
        build_free(&a);
        build_free(&b);
    }
}

static void a_floating_robot_that_went_there_has_the_same_accelerations(void **state) {
    (void)state;
    built a = build_model(build_floating_arm(9.81, 1e-3, US_INTEGRATOR_MIDPOINT)),
          b = build_model(build_floating_arm(9.81, 1e-3, US_INTEGRATOR_MIDPOINT));
    b.q[4] += FAR.x;
    b.q[5] += FAR.y;
    b.q[6] += FAR.z;
    compare_accelerations(&a, &b);
    us_momentum p, r;
    assert_int_equal(us_dyn_momentum(a.dyn, a.q, a.v, &p), US_OK);
    assert_int_equal(us_dyn_momentum(b.dyn, b.q, b.v, &r), US_OK);
    assert_true(us_vec3_norm(us_vec3_sub(p.angular, r.angular)) < 1e-9);
    us_energy e, f;
    assert_int_equal(us_dyn_energy(a.dyn, a.q, a.v, &e), US_OK);
    assert_int_equal(us_dyn_energy(b.dyn, b.q, b.v, &f), US_OK);
    build_near("kinetic energy", f.kinetic, e.kinetic, 1e-12);
    build_free(&a);
    build_free(&b);
}

static void random_trees_have_the_same_accelerations(void **state) {
    (void)state;
    double worst = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        int32_t n = 1 + (int32_t)(seed % 12);
        built a = build_model(build_random_tree(seed, n, US_INTEGRATOR_MIDPOINT)),
              b = build_model(moved(build_random_tree(seed, n, US_INTEGRATOR_MIDPOINT)));
        double x[128], y[128], q[160], v[128];
        build_random_state(a.model, seed, 2, q, v);
        assert_int_equal(us_dyn_forward(a.dyn, q, v, NULL, NULL, x), US_OK);
        assert_int_equal(us_dyn_forward(b.dyn, q, v, NULL, NULL, y), US_OK);
        if (a.n.n_v) worst = fmax(worst, build_difference(x, y, a.n.n_v) / build_greatest(x, a.n.n_v));
        build_free(&a);
        build_free(&b);
    }
    printf("    worst %.1e\n", worst);
    assert_true(worst <= 1e-9);
}

static void a_four_bar_closes_and_swings_the_same(void **state) {
    (void)state;
    built a = build_sim(build_four_bar(0.8, 1, 0.8, 1.5, -1.2, 0, 1e-3, US_INTEGRATOR_MIDPOINT)),
          b = build_sim(moved(build_four_bar(0.8, 1, 0.8, 1.5, -1.2, 0, 1e-3, US_INTEGRATOR_MIDPOINT)));
    for (int i = 0; i < 10000; i++) {
        build_step(&a, 1, NULL);
        build_step(&b, 1, NULL);
        assert_true(us_sim_get_closure(b.sim) < 1e-9);
    }
    // The gap of the loop is a difference of two positions of 1e4 m, 2e-12 m of rounding each; 1e4 steps
    // bring 1e-8 at most.
    printf("    after 10 s: %.1e rad apart\n",
           build_difference(us_sim_view_q(a.sim), us_sim_view_q(b.sim), 3));
    assert_true(build_difference(us_sim_view_q(a.sim), us_sim_view_q(b.sim), 3) < 1e-7);
    build_free(&a);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(robots_have_the_same_accelerations),
        cmocka_unit_test(a_floating_robot_that_went_there_has_the_same_accelerations),
        cmocka_unit_test(random_trees_have_the_same_accelerations),
        cmocka_unit_test(a_four_bar_closes_and_swings_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

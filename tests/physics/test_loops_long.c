// A hundred seconds of closed mechanisms under gravity: they stay closed, they move, and their energy stays.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"

// Closure below 1e-9 m (rad for couplings) is asked; the projection ends at 1e-11.
static void check_long(const char *name, us_spec *spec, double energy_limit) {
    built b = build_sim(spec);
    double start = build_total_energy(&b), lost = 0, late = 0, closure = 0, least = 0, most = 0, size = 0;
    double low[16], high[16];
    assert_true(b.n.n_q <= 16);
    for (int32_t k = 0; k < b.n.n_q; k++)
        low[k] = high[k] = us_sim_view_q(b.sim)[k];
    for (int i = 0; i < 100000; i++) {
        build_step(&b, 1, NULL);
        us_energy e = us_sim_get_energy(b.sim);
        double off = fabs(e.kinetic + e.potential - start);
        size = fmax(size, e.kinetic);
        lost = fmax(lost, off);
        if (i >= 90000) late = fmax(late, off);
        closure = fmax(closure, us_sim_get_closure(b.sim));
        for (int32_t k = 0; k < b.n.n_q; k++) {
            low[k] = fmin(low[k], us_sim_view_q(b.sim)[k]);
            high[k] = fmax(high[k], us_sim_view_q(b.sim)[k]);
        }
    }
    least = high[0] - low[0];
    for (int32_t k = 0; k < b.n.n_q; k++) {
        least = fmin(least, high[k] - low[k]);
        most = fmax(most, high[k] - low[k]);
    }
    printf("    %s: closure %.1e, energy off by %.1e (%.1e in the last 10 s) of %.2f J, joints move by %.2f "
           "to %.2f\n",
           name, closure, lost / size, late / size, size, least, most);
    assert_true(closure < 1e-9);
    assert_true(most > 0.5);
    assert_true(lost < energy_limit * size);
    build_free(&b);
}

static void rocker_differential_stays_closed(void **state) {
    (void)state;
    // Swings with some 3 rad/s: (h w)^2 / 12 = 1e-6 of its energy.
    us_spec *spec = build_rocker_differential(0.5, 1e-3, US_INTEGRATOR_MIDPOINT);
    us_joint_def pitch = *us_spec_view_joint(spec, 0);
    pitch.q0[0] = 1;
    assert_int_equal(us_spec_set_joint(spec, 0, &pitch), US_OK);
    check_long("coupled rockers", spec, 1e-5);
}

static void rocker_bar_stays_closed(void **state) {
    (void)state;
    // Projection onto curved loops moves the state by O(h^3) each step, up or down: no more than ten times
    // the scheme's own swing.
    check_long("rockers and bar", build_rocker_bar(1e-3, US_INTEGRATOR_MIDPOINT), 1e-4);
}

static void four_bar_stays_closed(void **state) {
    (void)state;
    check_long("swinging four-bar", build_four_bar(0.8, 1, 0.8, 1.5, -1.2, 0, 1e-3, US_INTEGRATOR_MIDPOINT),
               1e-4);
    // A crank that goes round one way at up to 23 rad/s: (h w)^2 = 5e-4, and because such a motion is not its
    // own mirror image in time the projections add up, by 2e-5 of the energy per second (a quarter of that at
    // half the step).
    check_long("crank and rocker", build_four_bar(0.3, 1, 0.8, 1, 0.7, 8, 1e-3, US_INTEGRATOR_MIDPOINT),
               5e-3);
    check_long("crank and rocker, rk4", build_four_bar(0.3, 1, 0.8, 1, 0.7, 8, 1e-3, US_INTEGRATOR_RK4),
               1e-6);
    // First order: it loses h w^2 of its energy per second, some tenths of a percent and some percent here,
    // and gains none; the closure does not depend on that.
    check_long("swinging four-bar, euler",
               build_four_bar(0.8, 1, 0.8, 1.5, -1.2, 0, 1e-3, US_INTEGRATOR_EULER), 0.25);
    check_long("crank and rocker, euler", build_four_bar(0.3, 1, 0.8, 1, 0.7, 8, 1e-3, US_INTEGRATOR_EULER),
               0.6);
}

// A parallelogram's two arms lie in line twice a turn, where it could go on crossed as well. It must not, at
// whatever place of a step that happens: sixty crossings or more in each of twenty runs. Crossed, the arms'
// angles part by more than a tenth within a step or two; on the right branch they are equal to the closure.
// The energy tolerance is a hundred times what these runs leave (h^2 w^2 / 24 of up to 200 J at w up to 6
// rad/s), and a hundredth of what a kick at a dead point costs.
static void a_four_bar_keeps_its_branch_through_dead_points(void **state) {
    (void)state;
    static const us_integrator integrators[2] = {US_INTEGRATOR_MIDPOINT, US_INTEGRATOR_RK4};
    for (int k = 0; k < 40; k++) {
        const us_load_def def = us_load_def_default();
        us_spec *spec = NULL;
        assert_int_equal(us_spec_load(US_SOURCE_DIR "/scenes/four-bar.xml", &def, &spec, NULL), US_OK);
        us_world_settings world = *us_spec_view_world(spec);
        world.integrator = integrators[k % 2];
        world.step = k % 4 < 2 ? 1e-3 : 2e-3;
        us_spec_set_world(spec, &world);
        for (int32_t j = 0; j < us_spec_get_counts(spec).n_joint; j++) {
            us_joint_def d = *us_spec_view_joint(spec, j);
            d.v0[0] *= 0.5 + 0.1 * k;
            us_spec_set_joint(spec, j, &d);
        }
        built b = build_sim(spec);
        us_energy e = us_sim_get_energy(b.sim);
        const double start = e.kinetic + e.potential;
        for (int i = 0; i < (int)(30 / world.step); i++) {
            build_step(&b, 1, NULL);
            const double *q = us_sim_view_q(b.sim);
            if (fabs(sin(0.5 * (q[0] - q[2]))) > 1e-3)
                fail_msg("run %d crossed over at %g s", k, us_sim_get_time(b.sim));
        }
        e = us_sim_get_energy(b.sim);
        build_near("energy", e.kinetic + e.potential, start, 1e-2);
        build_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_four_bar_keeps_its_branch_through_dead_points),
        cmocka_unit_test(rocker_differential_stays_closed),
        cmocka_unit_test(rocker_bar_stays_closed),
        cmocka_unit_test(four_bar_stays_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

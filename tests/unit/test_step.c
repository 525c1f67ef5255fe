// One step and what can be asked afterwards: ticks, time, stages, profile, and the four schemes' agreement.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "contract_build.h"

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

static void time_is_the_tick_times_the_step(void **state) {
    (void)state;
    us_spec *spec = contract_pendulum_spec();
    us_world_settings w = *us_spec_view_world(spec);
    w.step = 0.1;
    assert_int_equal(us_spec_set_world(spec, &w), US_OK);
    us_model *m = contract_compile(spec);
    us_sim *sim = contract_sim(m);
    assert_true(us_model_get_step(m) == 0.1);
    assert_ptr_equal(us_sim_view_model(sim), m);
    for (int64_t tick = 0; tick < 100; tick++) {
        assert_int_equal(us_sim_get_tick(sim), tick);
        // Not a sum of steps, which would have drifted by now.
        assert_true(us_sim_get_time(sim) == (double)tick * 0.1);
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    }
    us_sim_destroy(sim);
    us_model_destroy(m);
}

static void a_new_sim_is_at_the_start_state(void **state) {
    (void)state;
    us_model *m = contract_model(CONTRACT_FREE, US_INTEGRATOR_MIDPOINT);
    us_sim *sim = contract_sim(m);
    us_joint_info j = us_model_get_joint(m, us_model_find_joint(m, "bob_joint"));
    const double *q = us_sim_view_q(sim) + j.first_q, *v = us_sim_view_v(sim) + j.first_v;
    assert_true(fabs(q[0] - 0.8) < 2e-16 && fabs(q[1] - 0.6) < 2e-16 && q[2] == 0 && q[3] == 0);
    assert_true(v[0] == 0 && v[1] == 0 && v[2] == 4);
    assert_int_equal(us_sim_get_tick(sim), 0);
    assert_true(us_sim_get_closure(sim) == 0);
    us_sim_destroy(sim);
    us_model_destroy(m);
}

static void the_start_state_is_moved_onto_the_loops(void **state) {
    (void)state;
    us_model *m = contract_model(CONTRACT_LOOPS, US_INTEGRATOR_MIDPOINT);
    us_sim *sim = contract_sim(m);
    assert_true(us_sim_get_closure(sim) < 1e-9);
    assert_true(us_model_get_counts(m).n_row == 3 + 5 + 6 + 1);
    // Velocities too: the pin of the four-bar does not come apart in the first step.
    for (int i = 0; i < 100; i++) {
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        assert_true(us_sim_get_closure(sim) < 1e-9);
    }
    us_sim_destroy(sim);
    us_model_destroy(m);
}

static void stages_have_names(void **state) {
    (void)state;
    for (int i = 0; i < US_STAGE_COUNT; i++)
        assert_true(us_stage_name((us_stage)i)[0] != '?');
    assert_string_equal(us_stage_name(US_STAGE_COMMAND), "command");
    assert_string_equal(us_stage_name(US_STAGE_ACTUATE), "actuate");
    assert_string_equal(us_stage_name(US_STAGE_COMMIT), "commit");
    assert_string_equal(us_stage_name(US_STAGE_MORPH), "morph");
    assert_string_equal(us_stage_name(US_STAGE_COUNT), "?");
    assert_string_equal(us_stage_name((us_stage)-1), "?");
}

static void the_profile_counts_steps_and_starts_again_when_taken(void **state) {
    (void)state;
    us_model *m = contract_model(CONTRACT_EVERY_JOINT, US_INTEGRATOR_MIDPOINT);
    us_sim_def def = us_sim_def_default();
    assert_false(def.enable_profile);
    def.enable_profile = true;
    us_sim *timed = NULL, *plain = contract_sim(m);
    assert_int_equal(us_sim_create(m, &def, &timed, NULL), US_OK);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(us_sim_step(timed, NULL), US_OK);
        assert_int_equal(us_sim_step(plain, NULL), US_OK);
    }
    us_profile p = us_sim_take_profile(timed), again = us_sim_take_profile(timed),
               none = us_sim_take_profile(plain);
    assert_int_equal(p.n_step, 30);
    assert_true(p.seconds[US_STAGE_DYNAMICS] > 0);
    for (int i = 0; i < US_STAGE_COUNT; i++) {
        assert_true(p.seconds[i] >= 0);
        assert_true(again.seconds[i] == 0 && none.seconds[i] == 0);
    }
    assert_int_equal(again.n_step, 0);
    // Looking at the clock does not change the motion.
    assert_int_equal(us_sim_hash(timed), us_sim_hash(plain));
    us_sim_destroy(timed);
    us_sim_destroy(plain);
    us_model_destroy(m);
}

// Without springs, bounds or loops the four schemes solve the same equation.
static double end_angle(us_integrator integrator) {
    us_spec *spec = contract_pendulum_spec();
    us_world_settings w = *us_spec_view_world(spec);
    w.integrator = integrator;
    assert_int_equal(us_spec_set_world(spec, &w), US_OK);
    us_joint_def j = *us_spec_view_joint(spec, 0);
    j.q0[0] = 1;
    assert_int_equal(us_spec_set_joint(spec, 0, &j), US_OK);
    us_model *m = contract_compile(spec);
    assert_int_equal(us_model_get_integrator(m), integrator);
    us_sim *sim = contract_sim(m);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    double q = us_sim_view_q(sim)[0];
    us_sim_destroy(sim);
    us_model_destroy(m);
    return q;
}

static void the_schemes_agree_to_their_orders(void **state) {
    (void)state;
    double truth = end_angle(US_INTEGRATOR_ADAPTIVE);
    // A swing of 1 rad in 1 s at 1 ms: errors of h, h^2 and h^4 with factors of a few.
    double euler = fabs(end_angle(US_INTEGRATOR_EULER) - truth),
           midpoint = fabs(end_angle(US_INTEGRATOR_MIDPOINT) - truth),
           rk4 = fabs(end_angle(US_INTEGRATOR_RK4) - truth);
    assert_true(euler < 1e-2 && euler > 1e-5);
    assert_true(midpoint < 1e-5 && midpoint > 1e-9);
    assert_true(rk4 < 1e-8);
}

static void the_pose_and_the_twist_of_a_link_belong_together(void **state) {
    (void)state;
    for (int w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        us_model *m = contract_model((contract_world)w, US_INTEGRATOR_MIDPOINT);
        us_sim *sim = contract_sim(m);
        us_model_counts n = us_model_get_counts(m);
        for (int i = 0; i < 20; i++)
            assert_int_equal(us_sim_step(sim, NULL), US_OK);
        double q[128], v[64], dq[64], back[128];
        memcpy(q, us_sim_view_q(sim), (size_t)n.n_q * sizeof *q);
        memcpy(v, us_sim_view_v(sim), (size_t)n.n_v * sizeof *v);
        const double h = 1e-6;
        us_pose before[32], after[32];
        for (int32_t k = 0; k < n.n_v; k++)
            dq[k] = -h * v[k];
        assert_int_equal(us_dyn_add(m, q, dq, back), US_OK);
        assert_int_equal(us_sim_set_state(sim, back, NULL), US_OK);
        for (int32_t b = 0; b < n.n_body; b++)
            before[b] = us_sim_get_pose(sim, (us_body){b});
        for (int32_t k = 0; k < n.n_v; k++)
            dq[k] = h * v[k];
        assert_int_equal(us_dyn_add(m, q, dq, back), US_OK);
        assert_int_equal(us_sim_set_state(sim, back, NULL), US_OK);
        for (int32_t b = 0; b < n.n_body; b++)
            after[b] = us_sim_get_pose(sim, (us_body){b});
        assert_int_equal(us_sim_set_state(sim, q, v), US_OK);
        for (int32_t b = 0; b < n.n_body; b++) {
            us_twist V = us_sim_get_twist(sim, (us_body){b});
            us_vec3 p_dot = us_vec3_scale(0.5 / h, us_vec3_sub(after[b].p, before[b].p));
            us_vec3 turn =
                us_vec3_scale(0.5 / h, us_quat_log(us_quat_mul(after[b].q, us_quat_conj(before[b].q))));
            // Central differences: h^2 times the third derivative, and rounding of 1e-16 m over h.
            assert_true(us_vec3_norm(us_vec3_sub(p_dot, V.v)) < 2e-8);
            assert_true(us_vec3_norm(us_vec3_sub(turn, V.w)) < 2e-8);
        }
        us_sim_destroy(sim);
        us_model_destroy(m);
    }
}

static void the_pose_by_path_is_the_pose_by_kinematics(void **state) {
    (void)state;
    for (int w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        us_model *m = contract_model((contract_world)w, US_INTEGRATOR_MIDPOINT);
        us_sim *sim = contract_sim(m);
        us_dyn *d = NULL;
        assert_int_equal(us_dyn_create(m, NULL, &d), US_OK);
        for (int i = 0; i < 50; i++)
            assert_int_equal(us_sim_step(sim, NULL), US_OK);
        us_pose X[32];
        assert_int_equal(us_dyn_poses(d, us_sim_view_q(sim), X), US_OK);
        for (int32_t b = 0; b < us_model_get_counts(m).n_body; b++) {
            us_pose Y = us_sim_get_pose(sim, (us_body){b});
            assert_true(us_vec3_norm(us_vec3_sub(X[b].p, Y.p)) < 1e-14);
            assert_true(us_vec3_norm(us_quat_log(us_quat_mul(X[b].q, us_quat_conj(Y.q)))) < 1e-14);
        }
        us_dyn_destroy(d);
        us_sim_destroy(sim);
        us_model_destroy(m);
    }
}

static void a_limit_stops_the_joint(void **state) {
    (void)state;
    us_spec *spec = contract_pendulum_spec();
    us_joint_def j = *us_spec_view_joint(spec, 0);
    // Falls from 1 rad towards 0, meets the limit at 0.4.
    j.q0[0] = 1;
    j.has_limits = true;
    j.lower = 0.4;
    j.upper = 2;
    assert_int_equal(us_spec_set_joint(spec, 0, &j), US_OK);
    us_model *m = contract_compile(spec);
    us_sim *sim = contract_sim(m);
    double least = 1;
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        least = fmin(least, us_sim_view_q(sim)[0]);
    }
    // The limit's stiffness is 1e5 N m/rad: the weight of 3.8 N m sinks 4e-5 rad in, the blow a little more.
    assert_true(least > 0.38 && us_sim_view_q(sim)[0] > 0.3999 && us_sim_view_q(sim)[0] < 0.4);
    us_sim_destroy(sim);
    us_model_destroy(m);
}

// The pendulum with friction, from (q, v), under an integrator, for 1 s.
static us_sim *rubbed(us_integrator integrator, double gravity, double friction, double q, double v,
                      us_model **out_model) {
    us_spec *spec = contract_pendulum_spec();
    us_world_settings w = *us_spec_view_world(spec);
    w.integrator = integrator;
    w.gravity.z = gravity;
    assert_int_equal(us_spec_set_world(spec, &w), US_OK);
    us_joint_def j = *us_spec_view_joint(spec, 0);
    j.friction = friction;
    j.q0[0] = q;
    j.v0[0] = v;
    assert_int_equal(us_spec_set_joint(spec, 0, &j), US_OK);
    *out_model = contract_compile(spec);
    us_sim *sim = contract_sim(*out_model);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    return sim;
}

static void dry_friction_holds_a_joint_that_pulls_less(void **state) {
    (void)state;
    const us_integrator implicit[] = {US_INTEGRATOR_MIDPOINT, US_INTEGRATOR_EULER};
    for (int i = 0; i < 2; i++) {
        us_model *m = NULL;
        us_sim *sim = rubbed(implicit[i], -9.81, 10, 1, 0, &m);
        // 8.25 N m of weight against 10 N m of friction: it creeps at less than 1e-4 rad/s.
        assert_true(us_sim_view_q(sim)[0] < 1 && us_sim_view_q(sim)[0] > 1 - 1e-4);
        us_sim_destroy(sim);
        us_model_destroy(m);
    }
}

static void dry_friction_brings_a_joint_to_rest(void **state) {
    (void)state;
    const us_integrator implicit[] = {US_INTEGRATOR_MIDPOINT, US_INTEGRATOR_EULER};
    for (int i = 0; i < 2; i++) {
        us_model *m = NULL;
        us_sim *sim = rubbed(implicit[i], 0, 1.2, 0, 1, &m);
        // 1.2 N m on 0.6 kg m^2 take 0.5 s and v^2 I / (2 f) = 0.25 rad; half a step of the way is the
        // scheme's.
        assert_true(fabs(us_sim_view_v(sim)[0]) < 1e-10);
        assert_true(fabs(us_sim_view_q(sim)[0] - 0.25) < 1e-3);
        us_sim_destroy(sim);
        us_model_destroy(m);
    }
}

static void two_worlds_in_one_do_not_disturb_each_other(void **state) {
    (void)state;
    // The same pendulum twice in one model, far apart, and alone: the same motion, bit by bit.
    us_spec *both = contract_pendulum_spec();
    us_joint_def j = *us_spec_view_joint(both, 0);
    us_joint_def start = j;
    start.q0[0] = 0.7;
    assert_int_equal(us_spec_set_joint(both, 0, &start), US_OK);
    int32_t other = contract_link(both, "other", 2, at(0, 0, -0.5), 0.1, 0.1, 0.05);
    start.name = "other hinge";
    start.child = other;
    start.X_PF.p = at(0, 100, 1);
    contract_add_joint(both, &start);
    us_model *m = contract_compile(both);
    us_sim *sim = contract_sim(m);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        assert_true(us_sim_view_q(sim)[0] == us_sim_view_q(sim)[1]);
        assert_true(us_sim_view_v(sim)[0] == us_sim_view_v(sim)[1]);
    }
    us_sim_destroy(sim);
    us_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_the_tick_times_the_step),
        cmocka_unit_test(a_new_sim_is_at_the_start_state),
        cmocka_unit_test(the_start_state_is_moved_onto_the_loops),
        cmocka_unit_test(stages_have_names),
        cmocka_unit_test(the_profile_counts_steps_and_starts_again_when_taken),
        cmocka_unit_test(the_schemes_agree_to_their_orders),
        cmocka_unit_test(the_pose_and_the_twist_of_a_link_belong_together),
        cmocka_unit_test(the_pose_by_path_is_the_pose_by_kinematics),
        cmocka_unit_test(a_limit_stops_the_joint),
        cmocka_unit_test(dry_friction_holds_a_joint_that_pulls_less),
        cmocka_unit_test(dry_friction_brings_a_joint_to_rest),
        cmocka_unit_test(two_worlds_in_one_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

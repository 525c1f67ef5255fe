// A step that diverges says so, names tick and joint, and leaves the last tick whole.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "contract_build.h"

static void check_divergence(contract_world world, us_integrator integrator) {
    us_model *m = contract_model(world, integrator);
    us_sim *sim = contract_sim(m), *twin = contract_sim(m);
    us_model_counts n = us_model_get_counts(m);
    double torque[64];
    for (int i = 0; i < 7; i++) {
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        assert_int_equal(us_sim_step(twin, NULL), US_OK);
    }
    uint64_t before = us_sim_hash(sim);
    for (int32_t i = 0; i < n.n_v; i++) {
        memset(torque, 0, sizeof torque);
        torque[i] = 1e300;
        us_command c = {.torque = torque};
        us_status status = us_sim_step(sim, &c);
        // One axis may take even this without a number overflowing; then the next steps do it.
        if (status == US_OK) {
            for (int k = 0; k < 5 && !status; k++)
                status = us_sim_step(sim, &c);
            assert_true(status == US_OK || status == US_ERR_DIVERGED);
            assert_int_equal(us_sim_reset(sim), US_OK);
            for (int k = 0; k < 7; k++)
                assert_int_equal(us_sim_step(sim, NULL), US_OK);
            assert_int_equal(us_sim_hash(sim), before);
            continue;
        }
        const us_error *err = us_sim_view_error(sim);
        assert_int_equal(status, US_ERR_DIVERGED);
        assert_int_equal(err->code, US_ERR_DIVERGED);
        assert_non_null(strstr(err->message, "tick 7"));
        assert_non_null(strstr(err->message, "stage"));
        if (strncmp(err->element, "joint \"", 7) != 0)
            fail_msg("%s, %s, velocity %d: no joint is named: %s", contract_world_name(world),
                     us_integrator_name(integrator), (int)i, err->element);
        assert_true(err->remedy[0] != 0);
        assert_int_equal(us_sim_get_tick(sim), 7);
        assert_int_equal(us_sim_hash(sim), before);
    }
    // And on without it, as if nothing had happened.
    for (int k = 0; k < 20; k++) {
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        assert_int_equal(us_sim_step(twin, NULL), US_OK);
        assert_int_equal(us_sim_hash(sim), us_sim_hash(twin));
    }
    us_sim_destroy(sim);
    us_sim_destroy(twin);
    us_model_destroy(m);
}

static void an_absurd_torque_is_reported_and_the_last_tick_stays_whole(void **state) {
    (void)state;
    for (int w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        for (int i = 0; i < US_INTEGRATOR_COUNT; i++)
            check_divergence((contract_world)w, (us_integrator)i);
    }
}

static void an_absurd_wrench_is_reported_too(void **state) {
    (void)state;
    for (int i = 0; i < US_INTEGRATOR_COUNT; i++) {
        us_model *m = contract_model(CONTRACT_FREE, (us_integrator)i);
        us_sim *sim = contract_sim(m);
        us_wrench wrench[16];
        uint64_t before = us_sim_hash(sim);
        memset(wrench, 0, sizeof wrench);
        us_body rock = us_model_find_body(m, "rock");
        wrench[rock.i].n = us_vec3_make(1e300, 1e300, 0);
        wrench[rock.i].f = us_vec3_make(0, 1e308, 0);
        us_command c = {.wrench = wrench};
        assert_int_equal(us_sim_step(sim, &c), US_ERR_DIVERGED);
        assert_int_equal(us_sim_hash(sim), before);
        assert_non_null(strstr(us_sim_view_error(sim)->element, "rock_joint"));
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        us_sim_destroy(sim);
        us_model_destroy(m);
    }
}

static void the_first_joint_of_a_pendulum_chain_that_overflows_is_named(void **state) {
    (void)state;
    us_model *m = contract_compile(contract_pendulum_spec());
    us_sim *sim = contract_sim(m);
    const double v = 1e200;
    assert_int_equal(us_sim_set_state(sim, NULL, &v), US_OK);
    uint64_t before = us_sim_hash(sim);
    us_status status = US_OK;
    const double torque = 1e308;
    us_command c = {.torque = &torque};
    for (int i = 0; i < 1000 && !status; i++) {
        before = us_sim_hash(sim);
        status = us_sim_step(sim, &c);
    }
    assert_int_equal(status, US_ERR_DIVERGED);
    assert_string_equal(us_sim_view_error(sim)->element, "joint \"hinge\"");
    assert_int_equal(us_sim_hash(sim), before);
    us_sim_destroy(sim);
    us_model_destroy(m);
}

static void a_loop_that_is_torn_apart_is_reported(void **state) {
    (void)state;
    us_model *m = contract_model(CONTRACT_LOOPS, US_INTEGRATOR_MIDPOINT);
    us_sim *sim = contract_sim(m);
    us_model_counts n = us_model_get_counts(m);
    double v[64];
    memcpy(v, us_sim_view_v(sim), (size_t)n.n_v * sizeof *v);
    // The crank turns by 60 rad in a step of 1 ms: no small correction closes the loop again.
    us_joint_info crank = us_model_get_joint(m, us_model_find_joint(m, "crank_joint")),
                  rod = us_model_get_joint(m, us_model_find_joint(m, "rod_joint"));
    v[crank.first_v] = 6e4;
    v[rod.first_v] = -5e4;
    assert_int_equal(us_sim_set_state(sim, NULL, v), US_OK);
    uint64_t before = 0;
    us_status status = US_OK;
    for (int i = 0; i < 200 && !status; i++) {
        before = us_sim_hash(sim);
        status = us_sim_step(sim, NULL);
        if (!status) assert_true(us_sim_get_closure(sim) < 1e-6);
    }
    assert_int_equal(status, US_ERR_DIVERGED);
    assert_int_equal(us_sim_hash(sim), before);
    assert_true(us_sim_view_error(sim)->message[0] != 0 && us_sim_view_error(sim)->remedy[0] != 0);
    us_sim_destroy(sim);
    us_model_destroy(m);
}

static void a_loop_that_cannot_close_is_refused_at_the_start(void **state) {
    (void)state;
    us_spec *spec = contract_pendulum_spec();
    us_loop_def l = us_loop_def_default(US_LOOP_POINT);
    l.name = "too far";
    l.link_a = us_spec_find_link(spec, "bob");
    l.X_BD.p = us_vec3_make(0, 5, 0);
    assert_int_equal(us_spec_add_loop(spec, &l, NULL), US_OK);
    us_model *m = contract_compile(spec);
    us_sim *sim = (us_sim *)&l;
    us_error err;
    memset(&err, 0, sizeof err);
    assert_int_equal(us_sim_create(m, NULL, &sim, &err), US_ERR_CONSTRAINT);
    assert_ptr_equal(sim, &l);
    assert_int_equal(err.code, US_ERR_CONSTRAINT);
    assert_true(err.message[0] != 0 && err.remedy[0] != 0);
    us_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absurd_torque_is_reported_and_the_last_tick_stays_whole),
        cmocka_unit_test(an_absurd_wrench_is_reported_too),
        cmocka_unit_test(the_first_joint_of_a_pendulum_chain_that_overflows_is_named),
        cmocka_unit_test(a_loop_that_is_torn_apart_is_reported),
        cmocka_unit_test(a_loop_that_cannot_close_is_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

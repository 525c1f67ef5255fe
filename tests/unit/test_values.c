// Values by name: all that are documented, and nothing else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contract_build.h"

typedef struct fixture {
    us_model *model;
    us_sim *sim;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.model = contract_model(CONTRACT_EVERY_JOINT, US_INTEGRATOR_MIDPOINT);
    f.sim = contract_sim(f.model);
    for (int i = 0; i < 25; i++)
        assert_int_equal(us_sim_step(f.sim, NULL), US_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    us_sim_destroy(f->sim);
    us_model_destroy(f->model);
    return 0;
}

static double value(const fixture *f, const char *name) {
    int32_t id = us_sim_find_value(f->sim, name);
    if (id < 0) fail_msg("\"%s\" is not known", name);
    return us_sim_get_value(f->sim, id);
}

static void positions_and_velocities_of_joints_have_names(void **state) {
    fixture *f = *state;
    for (int32_t k = 0; k < us_model_get_counts(f->model).n_joint; k++) {
        us_joint_info j = us_model_get_joint(f->model, (us_joint){k});
        const char *joint = us_model_joint_name(f->model, (us_joint){k});
        char name[64];
        for (int32_t i = 0; i < j.n_q; i++) {
            snprintf(name, sizeof name, "%s.q[%d]", joint, (int)i);
            assert_true(value(f, name) == us_sim_view_q(f->sim)[j.first_q + i]);
        }
        for (int32_t i = 0; i < j.n_v; i++) {
            snprintf(name, sizeof name, "%s.v[%d]", joint, (int)i);
            assert_true(value(f, name) == us_sim_view_v(f->sim)[j.first_v + i]);
        }
        // The short form is for joints with one coordinate.
        snprintf(name, sizeof name, "%s.q", joint);
        if (j.n_q == 1) {
            assert_true(value(f, name) == us_sim_view_q(f->sim)[j.first_q]);
        } else {
            assert_int_equal(us_sim_find_value(f->sim, name), -1);
        }
        snprintf(name, sizeof name, "%s.v", joint);
        if (j.n_v == 1) {
            assert_true(value(f, name) == us_sim_view_v(f->sim)[j.first_v]);
        } else {
            assert_int_equal(us_sim_find_value(f->sim, name), -1);
        }
        snprintf(name, sizeof name, "%s.q[%d]", joint, (int)j.n_q);
        assert_int_equal(us_sim_find_value(f->sim, name), -1);
        snprintf(name, sizeof name, "%s.v[%d]", joint, (int)j.n_v);
        assert_int_equal(us_sim_find_value(f->sim, name), -1);
    }
}

static void torques_of_drives_have_names(void **state) {
    fixture *f = *state;
    for (int32_t i = 0; i < us_model_get_counts(f->model).n_drive; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.torque", us_model_drive_name(f->model, (us_drive){i}));
        assert_true(value(f, name) == us_sim_view_torque(f->sim)[i]);
    }
    assert_true(value(f, "shoulder_motor.torque") != 0);
}

static void poses_of_links_have_names(void **state) {
    fixture *f = *state;
    static const char *const parts[] = {"x", "y", "z", "qw", "qx", "qy", "qz"};
    for (int32_t b = 0; b < us_model_get_counts(f->model).n_body; b++) {
        us_pose X = us_sim_get_pose(f->sim, (us_body){b});
        const double want[] = {X.p.x, X.p.y, X.p.z, X.q.w, X.q.x, X.q.y, X.q.z};
        for (int k = 0; k < 7; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s.%s", us_model_body_name(f->model, (us_body){b}), parts[k]);
            assert_true(value(f, name) == want[k]);
        }
    }
}

static void values_of_the_whole_world_have_names(void **state) {
    fixture *f = *state;
    us_energy e = us_sim_get_energy(f->sim);
    assert_true(value(f, "energy") == e.kinetic + e.potential);
    assert_true(value(f, "energy.kinetic") == e.kinetic);
    assert_true(value(f, "energy.potential") == e.potential);
    assert_true(value(f, "closure") == us_sim_get_closure(f->sim));
    assert_true(value(f, "time") == us_sim_get_time(f->sim));
    assert_true(fabs(value(f, "time") - 0.025) < 1e-15);
}

static void ids_are_good_for_the_whole_life_of_the_sim(void **state) {
    fixture *f = *state;
    int32_t id = us_sim_find_value(f->sim, "shoulder.q");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(us_sim_step(f->sim, NULL), US_OK);
        us_joint_info j = us_model_get_joint(f->model, us_model_find_joint(f->model, "shoulder"));
        assert_true(us_sim_get_value(f->sim, id) == us_sim_view_q(f->sim)[j.first_q]);
    }
}

static void unknown_names_are_minus_one(void **state) {
    fixture *f = *state;
    static const char *const bad[] = {"",
                                      ".",
                                      "q",
                                      ".q",
                                      "shoulder",
                                      "shoulder.",
                                      "shoulder.qq",
                                      "shoulder.a",
                                      "shoulder.q[",
                                      "shoulder.q[]",
                                      "shoulder.q[1]",
                                      "shoulder.q[0",
                                      "shoulder.q[0]x",
                                      "shoulder.q[-1]",
                                      "shoulder.q[ 0]",
                                      "shoulder.q[+0]",
                                      "shoulder.q[99999999999999999999]",
                                      "shoulder.q0",
                                      "nobody.q",
                                      "nobody.x",
                                      "upper.w",
                                      "upper.q",
                                      "upper.xx",
                                      "Upper.x",
                                      "shoulder_motor.q",
                                      "shoulder_motor.torques",
                                      "energy.",
                                      "energy.total",
                                      "Time",
                                      "time ",
                                      "closure.x",
                                      "mount.q",
                                      "mount.q[0]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (us_sim_find_value(f->sim, bad[i]) != -1) fail_msg("\"%s\" has a value", bad[i]);
    }
    char longer[600];
    memset(longer, 'x', sizeof longer);
    memcpy(longer + sizeof longer - 3, ".q", 3);
    assert_int_equal(us_sim_find_value(f->sim, longer), -1);
}

static void a_bad_id_is_not_a_number(void **state) {
    fixture *f = *state;
    const int32_t bad[] = {-1, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 3; i++)
        assert_true(isnan(us_sim_get_value(f->sim, bad[i])));
    // An index one beyond the last of its kind, for every kind that has an index.
    static const char *const last[] = {"leaf_joint.q[6]", "leaf_joint.v[5]", "table_motor.torque", "leaf.x",
                                       "leaf.qz"};
    for (int i = 0; i < 5; i++) {
        int32_t id = us_sim_find_value(f->sim, last[i]);
        assert_true(id >= 0);
        assert_false(isnan(us_sim_get_value(f->sim, id)));
        assert_true(isnan(us_sim_get_value(f->sim, id + 1)));
    }
}

static void names_with_dots_and_slashes_are_found(void **state) {
    (void)state;
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    int32_t body = contract_link(spec, "robot/arm.v2/link", 1, us_vec3_make(0, 0, 0), 1, 1, 1);
    us_joint_def j =
        contract_joint_def(US_JOINT_PRISMATIC, "robot/joint.1", US_WORLD, body, us_vec3_make(0, 0, 0));
    j.q0[0] = 0.25;
    contract_add_joint(spec, &j);
    us_model *m = contract_compile(spec);
    fixture f = {m, contract_sim(m)};
    assert_true(value(&f, "robot/joint.1.q") == 0.25);
    assert_true(fabs(value(&f, "robot/arm.v2/link.x") - 0.25) < 1e-15);
    us_sim_destroy(f.sim);
    us_model_destroy(m);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(positions_and_velocities_of_joints_have_names),
        TEST(torques_of_drives_have_names),
        TEST(poses_of_links_have_names),
        TEST(values_of_the_whole_world_have_names),
        TEST(ids_are_good_for_the_whole_life_of_the_sim),
        TEST(unknown_names_are_minus_one),
        TEST(a_bad_id_is_not_a_number),
        cmocka_unit_test(names_with_dots_and_slashes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

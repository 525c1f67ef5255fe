// One drive, one force: the same as a whole command, and part of the state before the step.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "query_world.h"

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

static const char *const arms =
    "<scene name=\"arms\" version=\"1\"><world step=\"1 ms\"><shape type=\"plane\"/></world>"
    "<object name=\"o\" xyz=\"0 0 1\"><link name=\"a\"><inertial mass=\"2\" inertia=\"0.1 0.2 0.3\"/></link>"
    "<link name=\"b\"><inertial mass=\"1\" com=\"0 0.2 0\" inertia=\"0.05 0.04 0.03\"/></link>"
    "<joint name=\"ab\" type=\"continuous\" parent=\"a\" child=\"b\" axis=\"0 1 0\" xyz=\"0.3 0 0\"/>"
    "<drive joint=\"ab\" kp=\"20\" kd=\"2\" limit=\"5\"/></object>"
    "<object name=\"p\" xyz=\"3 0 0.1\"><link name=\"a\" density=\"500\"><shape type=\"box\" size=\"0.2 0.2 "
    "0.2\"/></link></object></scene>";

static void one_call_is_the_same_as_a_whole_command(void **state) {
    (void)state;
    query_world a = query_world_text(arms), b = query_world_text(arms);
    us_model_counts n = us_model_get_counts(a.model);
    us_body box = query_body(&a, "p/a"), link = query_body(&a, "o/b");
    for (int i = 0; i < 300; i++) {
        us_wrench wrench[8] = {{{0, 0, 0}, {0, 0, 0}}};
        double position[1] = {0.1}, velocity[1] = {0.2}, torque[1] = {0.3};
        us_command c = {.wrench = wrench};
        if (i == 20) {
            c.drive_position = position;
            c.drive_velocity = velocity;
            c.drive_torque = torque;
            assert_int_equal(us_sim_set_drive(b.sim, (us_drive){0}, 0.1, 0.2), US_OK);
            assert_int_equal(us_sim_set_drive_torque(b.sim, (us_drive){0}, 0.3), US_OK);
        }
        if (i % 3 == 0) {
            us_vec3 force = at(5 * sin(i), 2, 30), where = at(3, 0.05 * i, 0.3);
            wrench[box.i] = (us_wrench){where, force};
            wrench[link.i] = (us_wrench){at(0.1, 0, 0), at(0, 1, 0)};
            assert_int_equal(us_sim_apply_wrench(b.sim, box, wrench[box.i]), US_OK);
            assert_int_equal(us_sim_apply_wrench(b.sim, link, (us_wrench){at(0.1, 0, 0), at(0, 0.5, 0)}),
                             US_OK);
            assert_int_equal(us_sim_apply_wrench(b.sim, link, (us_wrench){at(0, 0, 0), at(0, 0.5, 0)}),
                             US_OK);
        }
        assert_int_equal(us_sim_step(a.sim, i % 3 == 0 || i == 20 ? &c : NULL), US_OK);
        assert_int_equal(us_sim_step(b.sim, NULL), US_OK);
        assert_memory_equal(us_sim_view_q(a.sim), us_sim_view_q(b.sim), (size_t)n.n_q * sizeof(double));
        assert_memory_equal(us_sim_view_v(a.sim), us_sim_view_v(b.sim), (size_t)n.n_v * sizeof(double));
        assert_true(us_sim_hash(a.sim) == us_sim_hash(b.sim));
    }
    query_world_free(&a);
    query_world_free(&b);
}

static void a_force_off_the_centre_turns_the_body_too(void **state) {
    (void)state;
    query_world a = query_world_text(arms), b = query_world_text(arms);
    us_body box = query_body(&a, "p/a");
    for (int i = 0; i < 100; i++) {
        us_vec3 force = at(5 * sin(i), 2, 60),
                where = us_vec3_add(us_sim_get_pose(a.sim, box).p, at(0.1, 0.05, 0.02));
        us_vec3 arm = us_vec3_sub(where, us_sim_get_pose(b.sim, box).p);
        us_wrench wrench = {us_vec3_cross(arm, force), force};
        assert_int_equal(us_sim_apply_force(a.sim, box, force, where), US_OK);
        assert_int_equal(us_sim_apply_wrench(b.sim, box, wrench), US_OK);
        query_world_step(&a, 1);
        query_world_step(&b, 1);
        query_near_vec3("place", us_sim_get_pose(a.sim, box).p, us_sim_get_pose(b.sim, box).p, 1e-9);
    }
    assert_true(us_vec3_norm(us_sim_get_twist(a.sim, box).w) > 0.5);
    query_world_free(&a);
    query_world_free(&b);
}

static void what_waits_for_the_step_is_in_the_snapshot_and_the_hash(void **state) {
    (void)state;
    query_world a = query_world_text(arms), b = query_world_text(arms);
    us_body box = query_body(&a, "p/a");
    query_world_step(&a, 100);
    uint64_t before = us_sim_hash(a.sim);
    assert_int_equal(us_sim_apply_force(a.sim, box, at(3, 0, 50), at(3, 0, 0)), US_OK);
    assert_true(us_sim_hash(a.sim) != before);
    assert_int_equal(us_sim_set_drive(a.sim, (us_drive){0}, 1, 0), US_OK);
    char bytes[20000];
    size_t length = 0;
    assert_int_equal(us_sim_save(a.sim, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_sim_restore(b.sim, bytes, length), US_OK);
    assert_true(us_sim_hash(a.sim) == us_sim_hash(b.sim));
    for (int i = 0; i < 50; i++) {
        us_sim_poison(b.sim);
        query_world_step(&a, 1);
        query_world_step(&b, 1);
        assert_true(us_sim_hash(a.sim) == us_sim_hash(b.sim));
    }
    // It acted, once: 50 N for a millisecond lift 4 kg by 12.5 mm/s less what gravity took.
    assert_int_equal(us_sim_reset(a.sim), US_OK);
    assert_int_equal(us_sim_apply_force(a.sim, query_body(&a, "o/a"), at(0, 0, 3000), at(0, 0, 1)), US_OK);
    query_world_step(&a, 1);
    double up = us_sim_get_momentum(a.sim).linear.z;
    query_world_step(&a, 1);
    query_near("once", us_sim_get_momentum(a.sim).linear.z - up, -3 * 9.81e-3, 0.1);
    query_near("momentum", up, 3 - 7 * 9.81e-3, 0.2);
    query_world_free(&a);
    query_world_free(&b);
}

static void a_refused_step_keeps_what_waits(void **state) {
    (void)state;
    query_world a = query_world_text(arms);
    us_body box = query_body(&a, "p/a");
    assert_int_equal(us_sim_apply_force(a.sim, box, at(0, 0, 50), at(3, 0, 0)), US_OK);
    uint64_t before = us_sim_hash(a.sim);
    double bad[8] = {NAN};
    us_command c = {.drive_position = bad};
    assert_int_equal(us_sim_step(a.sim, &c), US_ERR_VALUE);
    assert_true(us_sim_hash(a.sim) == before);
    query_world_free(&a);
}

static void bad_numbers_and_indices_are_refused(void **state) {
    (void)state;
    query_world a = query_world_text(arms);
    uint64_t before = us_sim_hash(a.sim);
    us_body box = query_body(&a, "p/a");
    assert_int_equal(us_sim_set_drive(a.sim, (us_drive){1}, 0, 0), US_ERR_ARG);
    assert_int_equal(us_sim_set_drive(a.sim, (us_drive){-1}, 0, 0), US_ERR_ARG);
    assert_int_equal(us_sim_set_drive(NULL, (us_drive){0}, 0, 0), US_ERR_ARG);
    assert_int_equal(us_sim_set_drive(a.sim, (us_drive){0}, NAN, 0), US_ERR_VALUE);
    assert_int_equal(us_sim_set_drive(a.sim, (us_drive){0}, 0, INFINITY), US_ERR_VALUE);
    assert_int_equal(us_sim_set_drive_torque(a.sim, (us_drive){0}, NAN), US_ERR_VALUE);
    assert_int_equal(us_sim_set_drive_torque(a.sim, (us_drive){9}, 0), US_ERR_ARG);
    assert_int_equal(us_sim_apply_force(a.sim, (us_body){99}, at(0, 0, 1), at(0, 0, 0)), US_ERR_ARG);
    assert_int_equal(us_sim_apply_force(a.sim, box, at(0, NAN, 1), at(0, 0, 0)), US_ERR_VALUE);
    assert_int_equal(us_sim_apply_force(a.sim, box, at(0, 1, 1), at(0, INFINITY, 0)), US_ERR_VALUE);
    assert_int_equal(us_sim_apply_wrench(a.sim, (us_body){-1}, (us_wrench){at(0, 0, 0), at(0, 0, 0)}),
                     US_ERR_ARG);
    assert_true(us_sim_hash(a.sim) == before);
    query_world_free(&a);
}

// A plug-in that pushes and drives from inside the step.
static us_status thrust(void *context, us_sim *sim, us_plugin_view *view, us_error *err) {
    (void)view;
    int *fails = context;
    us_body box = us_model_find_body(us_sim_view_model(sim), "p/a");
    us_sim_apply_force(sim, box, at(0, 0, 100), us_sim_get_pose(sim, box).p);
    us_sim_set_drive(sim, (us_drive){0}, 0.5, 0);
    if (*fails) return us_error_set(err, US_ERR_VALUE, NULL, NULL, "as asked");
    return US_OK;
}

static void a_plugin_pushes_in_its_own_step_and_a_failed_one_leaves_nothing(void **state) {
    (void)state;
    int fails = 1;
    us_plugin plugin = {.version = US_PLUGIN_VERSION, .name = "thrust", .context = &fails, .before = thrust};
    query_world a = query_world_text(arms);
    us_sim_def def = us_sim_def_default();
    def.plugins = &plugin;
    def.n_plugin = 1;
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(a.model, &def, &sim, NULL), US_OK);
    uint64_t before = us_sim_hash(sim);
    assert_int_equal(us_sim_step(sim, NULL), US_ERR_VALUE);
    assert_true(us_sim_hash(sim) == before);
    fails = 0;
    double z = us_sim_get_pose(sim, query_body(&a, "p/a")).p.z;
    for (int i = 0; i < 100; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    // 4 kg, 100 N: (25 - 9.81) m/s^2 over 0.1 s.
    query_near("rise", us_sim_get_pose(sim, query_body(&a, "p/a")).p.z - z, 0.5 * 15.19 * 0.01, 2e-3);
    us_sim_destroy(sim);
    query_world_free(&a);
}

static void an_edit_carries_what_waits_to_the_body_of_the_same_name(void **state) {
    (void)state;
    us_spec *spec = NULL;
    us_error err = US_ZERO;
    us_model *old = NULL, *fresh = NULL;
    us_sim *sim = NULL;
    assert_int_equal(us_spec_load_text(arms, strlen(arms), "arms.xml", NULL, &spec, &err), US_OK);
    assert_int_equal(us_model_compile(spec, NULL, &old, &err), US_OK);
    assert_int_equal(us_sim_create(old, NULL, &sim, &err), US_OK);
    assert_int_equal(
        us_sim_apply_wrench(sim, us_model_find_body(old, "o/b"), (us_wrench){at(0, 0, 0), at(9, 0, 0)}),
        US_OK);
    assert_int_equal(
        us_sim_apply_wrench(sim, us_model_find_body(old, "p/a"), (us_wrench){at(0, 0, 0), at(0, 0, 400)}),
        US_OK);
    assert_int_equal(us_spec_remove_link(spec, us_spec_find_link(spec, "o/a")), US_OK);
    assert_int_equal(us_model_compile(spec, NULL, &fresh, &err), US_OK);
    assert_int_equal(us_sim_replace(sim, fresh, &err), US_OK);
    assert_int_equal(us_sim_step(sim, NULL), US_OK);
    // 400 N for 1 ms on 4 kg.
    query_near("speed", us_sim_get_twist(sim, us_model_find_body(fresh, "p/a")).v.z, 0.1 - 9.81e-3, 1e-3);
    us_sim_destroy(sim);
    us_model_destroy(old);
    us_model_destroy(fresh);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_call_is_the_same_as_a_whole_command),
        cmocka_unit_test(a_force_off_the_centre_turns_the_body_too),
        cmocka_unit_test(what_waits_for_the_step_is_in_the_snapshot_and_the_hash),
        cmocka_unit_test(a_refused_step_keeps_what_waits),
        cmocka_unit_test(bad_numbers_and_indices_are_refused),
        cmocka_unit_test(a_plugin_pushes_in_its_own_step_and_a_failed_one_leaves_nothing),
        cmocka_unit_test(an_edit_carries_what_waits_to_the_body_of_the_same_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Every public function with NULL and with indices that do not exist: documented behaviour, no crash, nothing
// changed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "contract_build.h"

static const int32_t BAD[] = {-1, INT32_MIN, INT32_MAX, 1000000};
enum { N_BAD = 4 };

static void err_is_filled(const us_error *err, us_status code) {
    assert_int_equal(err->code, code);
    assert_true(err->message[0] != 0);
    assert_true(err->remedy[0] != 0);
}

static void errors_and_hashes_of_nothing(void **state) {
    (void)state;
    us_error err;
    char text[8] = "zzz";
    us_error_set(&err, US_ERR_ARG, NULL, NULL, "x");
    assert_int_equal(us_error_format(&err, NULL, 0), 1);
    assert_int_equal(us_error_format(&err, text, 0), 1);
    assert_string_equal(text, "zzz");
    assert_int_equal(us_error_format(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(us_error_format(NULL, NULL, 0), 0);
    assert_int_equal(us_error_set(NULL, US_ERR_ARG, NULL, NULL, "x"), US_ERR_ARG);
    assert_non_null(us_status_text((us_status)-5));
    assert_int_equal(us_hash_bytes(0, NULL, 0), us_hash_bytes(0, "", 0));
}

static void destroying_nothing_is_allowed(void **state) {
    (void)state;
    us_spec_destroy(NULL);
    us_model_destroy(NULL);
    us_dyn_destroy(NULL);
    us_sim_destroy(NULL);
    us_sim_poison(NULL);
}

static void spec_without_a_spec_or_definition(void **state) {
    (void)state;
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(NULL, NULL), US_ERR_ARG);
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    us_world_settings world = us_world_settings_default();
    us_group_def group = {.name = "g"};
    us_link_def link = us_link_def_default();
    us_joint_def joint = us_joint_def_default(US_JOINT_FIXED);
    us_shape_def shape = us_shape_def_default(US_SHAPE_BOX);
    us_coupling_def coupling = us_coupling_def_default();
    us_loop_def loop = us_loop_def_default(US_LOOP_POINT);
    us_drive_def drive = us_drive_def_default();
    us_record_def record = us_record_def_default();
    us_extension_def extension = {.tag = "t"};
    us_error warning = {0};
    for (int i = 0; i < 2; i++) {
        us_spec *s = i ? spec : NULL;
#define DEF(name) (i ? NULL : &(name))
        assert_int_equal(us_spec_set_world(s, DEF(world)), US_ERR_ARG);
        assert_int_equal(us_spec_add_group(s, DEF(group), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_link(s, DEF(link), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_joint(s, DEF(joint), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_shape(s, DEF(shape), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_coupling(s, DEF(coupling), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_loop(s, DEF(loop), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_drive(s, DEF(drive), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_record(s, DEF(record), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_extension(s, DEF(extension), NULL), US_ERR_ARG);
        assert_int_equal(us_spec_add_warning(s, DEF(warning)), US_ERR_ARG);
        assert_int_equal(us_spec_set_joint(s, 0, DEF(joint)), US_ERR_ARG);
        assert_int_equal(us_spec_set_drive(s, 0, DEF(drive)), US_ERR_ARG);
#undef DEF
    }
    us_spec_counts c = us_spec_get_counts(NULL), none = {0};
    assert_memory_equal(&c, &none, sizeof c);
    c = us_spec_get_counts(spec);
    assert_memory_equal(&c, &none, sizeof c);
    assert_null(us_spec_view_world(NULL));
    assert_null(us_spec_view_group(NULL, 0));
    assert_null(us_spec_view_link(NULL, 0));
    assert_null(us_spec_view_joint(NULL, 0));
    assert_null(us_spec_view_shape(NULL, 0));
    assert_null(us_spec_view_coupling(NULL, 0));
    assert_null(us_spec_view_loop(NULL, 0));
    assert_null(us_spec_view_drive(NULL, 0));
    assert_null(us_spec_view_record(NULL, 0));
    assert_null(us_spec_view_extension(NULL, 0));
    assert_null(us_spec_view_warning(NULL, 0));
    assert_int_equal(us_spec_find_link(NULL, "x"), -1);
    assert_int_equal(us_spec_find_joint(NULL, "x"), -1);
    assert_int_equal(us_spec_find_drive(NULL, "x"), -1);
    assert_int_equal(us_spec_find_link(spec, NULL), -1);
    assert_int_equal(us_spec_find_joint(spec, NULL), -1);
    assert_int_equal(us_spec_find_drive(spec, NULL), -1);
    us_spec_destroy(spec);
}

static void loading_without_a_path_or_a_place(void **state) {
    (void)state;
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_error err;
    assert_int_equal(us_spec_load(NULL, NULL, &spec, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_spec_load("x.xml", NULL, NULL, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_spec_load_text(NULL, 0, "x.xml", NULL, &spec, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_spec_load_text("<scene/>", 8, NULL, NULL, &spec, &err), US_ERR_ARG);
    assert_int_equal(us_spec_load_text("<scene/>", 8, "x.xml", NULL, NULL, &err), US_ERR_ARG);
    assert_int_equal(us_model_load(NULL, NULL, &model, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_model_load("no/such/file.xml", NULL, &model, &err), US_ERR_IO);
    err_is_filled(&err, US_ERR_IO);
    assert_int_equal(us_model_load(US_SOURCE_DIR "/scenes/pendulum.xml", NULL, NULL, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_spec_load(NULL, NULL, NULL, NULL), US_ERR_ARG);
    assert_int_equal(us_spec_load("no/such/file.xml", NULL, &spec, NULL), US_ERR_IO);
    assert_null(spec);
    assert_null(model);
}

static void compiling_without_a_spec_or_a_place(void **state) {
    (void)state;
    us_spec *spec = contract_pendulum_spec();
    us_model *model = NULL;
    us_error err;
    assert_int_equal(us_model_compile(NULL, NULL, &model, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_model_compile(spec, NULL, NULL, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_model_compile(NULL, NULL, NULL, NULL), US_ERR_ARG);
    us_spec_destroy(spec);
}

static void asking_no_model(void **state) {
    (void)state;
    us_model_counts c = us_model_get_counts(NULL);
    assert_true(c.n_body == 0 && c.n_v == 0 && c.model_bytes == 0);
    assert_true(isnan(us_model_get_step(NULL)));
    assert_true(isnan(us_model_get_gravity(NULL).z));
    assert_int_equal(us_model_get_integrator(NULL), US_INTEGRATOR_COUNT);
    assert_int_equal(us_model_hash(NULL), 0);
    assert_int_equal(us_model_find_body(NULL, "x").i, -1);
    assert_int_equal(us_model_find_joint(NULL, "x").i, -1);
    assert_int_equal(us_model_find_drive(NULL, "x").i, -1);
    assert_null(us_model_body_name(NULL, (us_body){0}));
    assert_null(us_model_joint_name(NULL, (us_joint){0}));
    assert_null(us_model_drive_name(NULL, (us_drive){0}));
    assert_int_equal(us_model_get_joint(NULL, (us_joint){0}).type, US_JOINT_COUNT);
    assert_true(isnan(us_model_get_inertia(NULL, (us_body){0}).mass));
    assert_int_equal(us_model_get_drive_joint(NULL, (us_drive){0}).i, -1);
    char name[4] = "zz";
    assert_int_equal(us_model_velocity_name(NULL, 0, name, sizeof name), 0);
    assert_string_equal(name, "");
    assert_int_equal(us_model_position_name(NULL, 0, NULL, 0), 0);
    assert_int_equal(us_model_n_field(NULL), 0);
    assert_int_equal(us_model_get_field(NULL, 0).bytes, 0);
}

static void asking_a_model_for_what_it_has_not(void **state) {
    (void)state;
    us_model *m = contract_compile(contract_pendulum_spec());
    assert_int_equal(us_model_find_body(m, NULL).i, -1);
    assert_int_equal(us_model_find_joint(m, NULL).i, -1);
    assert_int_equal(us_model_find_drive(m, NULL).i, -1);
    assert_int_equal(us_model_find_body(m, "").i, -1);
    assert_int_equal(us_model_find_body(m, "hinge").i, -1);
    assert_int_equal(us_model_find_joint(m, "bob").i, -1);
    assert_int_equal(us_model_find_drive(m, "bob").i, -1);
    assert_int_equal(us_model_find_drive(m, "motor").i, 0);
    assert_int_equal(us_model_get_drive_joint(m, (us_drive){0}).i, 0);
    for (int i = 0; i < N_BAD; i++) {
        char name[4] = "zz";
        assert_null(us_model_body_name(m, (us_body){BAD[i]}));
        assert_null(us_model_joint_name(m, (us_joint){BAD[i]}));
        assert_null(us_model_drive_name(m, (us_drive){BAD[i]}));
        assert_int_equal(us_model_get_joint(m, (us_joint){BAD[i]}).type, US_JOINT_COUNT);
        assert_int_equal(us_model_get_joint(m, (us_joint){BAD[i]}).child.i, -1);
        assert_true(isnan(us_model_get_inertia(m, (us_body){BAD[i]}).mass));
        assert_int_equal(us_model_get_drive_joint(m, (us_drive){BAD[i]}).i, -1);
        assert_int_equal(us_model_velocity_name(m, BAD[i], name, sizeof name), 0);
        assert_string_equal(name, "");
        assert_int_equal(us_model_position_name(m, BAD[i], name, sizeof name), 0);
        assert_int_equal(us_model_get_field(m, BAD[i]).bytes, 0);
    }
    us_model_destroy(m);
}

static void evaluating_without_arguments(void **state) {
    (void)state;
    us_model *m = contract_compile(contract_pendulum_spec());
    us_dyn *d = NULL;
    const double x[8] = {0};
    double out[64];
    us_pose X[4];
    us_twist V[4];
    us_energy e;
    us_momentum p;
    assert_int_equal(us_dyn_create(NULL, NULL, &d), US_ERR_ARG);
    assert_int_equal(us_dyn_create(m, NULL, NULL), US_ERR_ARG);
    assert_int_equal(us_dyn_create(m, NULL, &d), US_OK);
    // Each argument that is needed, missing in turn: work space, q, v, out.
    for (int k = 0; k < 4; k++) {
        us_dyn *D = k == 0 ? NULL : d;
        const double *q = k == 1 ? NULL : x, *v = k == 2 ? NULL : x;
        double *o = k == 3 ? NULL : out;
        assert_int_equal(us_dyn_forward(D, q, v, x, NULL, o), US_ERR_ARG);
        assert_int_equal(us_dyn_forward_crba(D, q, v, x, NULL, o), US_ERR_ARG);
        assert_int_equal(us_dyn_forward_constrained(D, q, v, x, NULL, o, NULL, NULL), US_ERR_ARG);
        assert_int_equal(us_dyn_inverse(D, q, v, x, NULL, o), US_ERR_ARG);
        assert_int_equal(us_dyn_bias(D, q, v, o), US_ERR_ARG);
        assert_int_equal(us_dyn_twists(D, q, v, k == 3 ? NULL : V), US_ERR_ARG);
        assert_int_equal(us_dyn_accelerations(D, q, v, x, k == 3 ? NULL : V), US_ERR_ARG);
        assert_int_equal(us_dyn_energy(D, q, v, k == 3 ? NULL : &e), US_ERR_ARG);
        assert_int_equal(us_dyn_momentum(D, q, v, k == 3 ? NULL : &p), US_ERR_ARG);
        if (k == 2) continue;
        assert_int_equal(us_dyn_mass_matrix(D, q, o), US_ERR_ARG);
        assert_int_equal(us_dyn_poses(D, q, k == 3 ? NULL : X), US_ERR_ARG);
        assert_int_equal(us_dyn_jacobian(D, q, (us_body){0}, us_vec3_make(0, 0, 0), o), US_ERR_ARG);
        if (k < 2) assert_int_equal(us_dyn_constraints(D, q, NULL, NULL), US_ERR_ARG);
    }
    double q[1] = {0}, v[1] = {0};
    assert_int_equal(us_dyn_accelerations(d, x, x, NULL, V), US_ERR_ARG);
    assert_int_equal(us_dyn_project(NULL, q, v), US_ERR_ARG);
    assert_int_equal(us_dyn_project(d, NULL, v), US_ERR_ARG);
    assert_int_equal(us_dyn_project(d, q, NULL), US_ERR_ARG);
    assert_int_equal(us_dyn_add(NULL, x, x, out), US_ERR_ARG);
    assert_int_equal(us_dyn_add(m, NULL, x, out), US_ERR_ARG);
    assert_int_equal(us_dyn_add(m, x, NULL, out), US_ERR_ARG);
    assert_int_equal(us_dyn_add(m, x, x, NULL), US_ERR_ARG);
    for (int i = 0; i < N_BAD; i++)
        assert_int_equal(us_dyn_jacobian(d, x, (us_body){BAD[i]}, us_vec3_make(0, 0, 0), out), US_ERR_ARG);
    // What may be missing: torques, wrenches, accelerations of inverse dynamics, forces and rank of the
    // constraints.
    assert_int_equal(us_dyn_forward(d, x, x, NULL, NULL, out), US_OK);
    assert_int_equal(us_dyn_forward_crba(d, x, x, NULL, NULL, out), US_OK);
    assert_int_equal(us_dyn_forward_constrained(d, x, x, NULL, NULL, out, NULL, NULL), US_OK);
    assert_int_equal(us_dyn_inverse(d, x, x, NULL, NULL, out), US_OK);
    assert_int_equal(us_dyn_constraints(d, x, NULL, NULL), US_OK);
    us_dyn_destroy(d);
    us_model_destroy(m);
}

static void creating_a_sim_without_a_model_or_a_place(void **state) {
    (void)state;
    us_model *m = contract_compile(contract_pendulum_spec());
    us_sim *sim = NULL;
    us_error err;
    assert_int_equal(us_sim_create(NULL, NULL, &sim, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_sim_create(m, NULL, NULL, &err), US_ERR_ARG);
    err_is_filled(&err, US_ERR_ARG);
    assert_int_equal(us_sim_create(NULL, NULL, NULL, NULL), US_ERR_ARG);
    assert_null(sim);
    us_model_destroy(m);
}

static void asking_no_sim(void **state) {
    (void)state;
    unsigned char bytes[8] = {0};
    size_t length = 0;
    assert_int_equal(us_sim_reset(NULL), US_ERR_ARG);
    assert_int_equal(us_sim_step(NULL, NULL), US_ERR_ARG);
    assert_null(us_sim_view_error(NULL));
    assert_null(us_sim_view_model(NULL));
    assert_int_equal(us_sim_get_tick(NULL), -1);
    assert_true(isnan(us_sim_get_time(NULL)));
    assert_true(isnan(us_sim_get_pose(NULL, (us_body){0}).p.x));
    assert_true(isnan(us_sim_get_twist(NULL, (us_body){0}).v.x));
    assert_null(us_sim_view_q(NULL));
    assert_null(us_sim_view_v(NULL));
    assert_null(us_sim_view_torque(NULL));
    assert_int_equal(us_sim_set_state(NULL, NULL, NULL), US_ERR_ARG);
    assert_true(isnan(us_sim_get_energy(NULL).kinetic));
    assert_true(isnan(us_sim_get_momentum(NULL).mass));
    assert_true(isnan(us_sim_get_closure(NULL)));
    assert_int_equal(us_sim_find_value(NULL, "time"), -1);
    assert_true(isnan(us_sim_get_value(NULL, 0)));
    assert_int_equal(us_sim_save(NULL, bytes, sizeof bytes, &length), US_ERR_ARG);
    assert_int_equal(us_sim_restore(NULL, bytes, sizeof bytes), US_ERR_ARG);
    assert_int_equal(us_sim_hash(NULL), 0);
    assert_int_equal(us_sim_n_field(NULL), 0);
    assert_int_equal(us_sim_get_field(NULL, 0).bytes, 0);
    assert_int_equal(us_sim_take_profile(NULL).n_step, 0);
}

static void asking_a_sim_for_what_it_has_not(void **state) {
    (void)state;
    us_model *m = contract_compile(contract_pendulum_spec());
    us_sim *sim = contract_sim(m);
    uint64_t before = us_sim_hash(sim);
    for (int i = 0; i < N_BAD; i++) {
        us_pose X = us_sim_get_pose(sim, (us_body){BAD[i]});
        us_twist V = us_sim_get_twist(sim, (us_body){BAD[i]});
        assert_true(isnan(X.q.w) && isnan(X.q.z) && isnan(X.p.x) && isnan(X.p.z));
        assert_true(isnan(V.w.x) && isnan(V.v.z));
        if (BAD[i] < 0 || BAD[i] == INT32_MAX) assert_true(isnan(us_sim_get_value(sim, BAD[i])));
        assert_int_equal(us_sim_get_field(sim, BAD[i]).bytes, 0);
    }
    assert_int_equal(us_sim_find_value(sim, NULL), -1);
    assert_int_equal(us_sim_restore(sim, NULL, 0), US_ERR_ARG);
    assert_int_equal(us_sim_save(sim, NULL, 0, NULL), US_OK);
    assert_int_equal(us_sim_set_state(sim, NULL, NULL), US_OK);
    assert_int_equal(us_sim_hash(sim), before);
    us_sim_destroy(sim);
    us_model_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_and_hashes_of_nothing),
        cmocka_unit_test(destroying_nothing_is_allowed),
        cmocka_unit_test(spec_without_a_spec_or_definition),
        cmocka_unit_test(loading_without_a_path_or_a_place),
        cmocka_unit_test(compiling_without_a_spec_or_a_place),
        cmocka_unit_test(asking_no_model),
        cmocka_unit_test(asking_a_model_for_what_it_has_not),
        cmocka_unit_test(evaluating_without_arguments),
        cmocka_unit_test(creating_a_sim_without_a_model_or_a_place),
        cmocka_unit_test(asking_no_sim),
        cmocka_unit_test(asking_a_sim_for_what_it_has_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

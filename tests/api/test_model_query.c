// What a model says of itself: warnings, parents, limits, drives, mass.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "query_world.h"

static const char *const text =
    "<scene name=\"m\" version=\"1\"><world step=\"1 ms\"/><object name=\"o\" xyz=\"0 0 1\">"
    "<link name=\"a\"><inertial mass=\"2\" inertia=\"0.1 0.2 0.3\"/></link>"
    "<link name=\"b\"><inertial mass=\"1\" inertia=\"0.05 0.04 0.03\"/></link>"
    "<link name=\"c\"><inertial mass=\"0.5\" inertia=\"0.05 0.04 0.03\"/></link>"
    "<joint name=\"ab\" type=\"revolute\" parent=\"a\" child=\"b\" axis=\"0 1 0\" lower=\"-1\" upper=\"2\"/>"
    "<joint name=\"bc\" type=\"continuous\" parent=\"b\" child=\"c\" axis=\"0 1 0\"/>"
    "<drive joint=\"bc\" kp=\"20\" kd=\"2\" limit=\"5\" position=\"0.5\"/><drive name=\"free\" joint=\"ab\" "
    "kd=\"1\"/>"
    "</object></scene>";

static void parents_limits_drives_and_mass_are_what_was_written(void **state) {
    (void)state;
    query_world w = query_world_text(text);
    us_body a = query_body(&w, "o/a"), b = query_body(&w, "o/b"), c = query_body(&w, "o/c");
    assert_int_equal(us_model_get_parent(w.model, c).i, b.i);
    assert_int_equal(us_model_get_parent(w.model, b).i, a.i);
    assert_int_equal(us_model_get_parent(w.model, a).i, US_WORLD);
    assert_true(us_model_get_parent_joint(w.model, a).i >= 0);
    assert_int_equal(us_model_get_parent_joint(w.model, c).i, query_joint(&w, "o/bc").i);
    assert_int_equal(us_model_get_parent_joint(w.model, (us_body){77}).i, -1);
    us_limits l = us_model_get_limits(w.model, query_joint(&w, "o/ab"));
    assert_true(l.lower == -1 && l.upper == 2);
    l = us_model_get_limits(w.model, query_joint(&w, "o/bc"));
    assert_true(l.lower == -INFINITY && l.upper == INFINITY);
    l = us_model_get_limits(w.model, us_model_get_parent_joint(w.model, a));
    assert_true(l.lower == -INFINITY && l.upper == INFINITY);
    assert_true(isnan(us_model_get_limits(w.model, (us_joint){-1}).lower));
    us_drive_info d = us_model_get_drive(w.model, (us_drive){0});
    assert_true(d.kp == 20 && d.kd == 2 && d.limit == 5 && d.position == 0.5 && d.velocity == 0);
    assert_int_equal(d.joint.i, query_joint(&w, "o/bc").i);
    assert_int_equal(d.v, us_model_get_joint(w.model, d.joint).first_v);
    assert_int_equal(d.q, us_model_get_joint(w.model, d.joint).first_q);
    assert_true(us_model_get_drive(w.model, (us_drive){1}).limit == INFINITY);
    d = us_model_get_drive(w.model, (us_drive){2});
    assert_true(d.joint.i == -1 && isnan(d.kp));
    query_near("mass", us_model_get_total_mass(w.model), 3.5, 1e-12);
    assert_true(isnan(us_model_get_total_mass(NULL)));
    assert_int_equal(us_model_n_warning(w.model), 0);
    assert_null(us_model_view_warning(w.model, 0));
    query_world_free(&w);
}

static void warnings_of_loading_reach_who_loads_a_model(void **state) {
    (void)state;
    // A link whose inertia no body can have: usable, and doubtful.
    static const char urdf[] =
        "<robot name=\"r\"><link name=\"base\"/><link name=\"a\"><inertial><mass value=\"1\"/>"
        "<inertia ixx=\"1\" iyy=\"1\" izz=\"5\" ixy=\"0\" ixz=\"0\" iyz=\"0\"/></inertial>"
        "</link><joint name=\"j\" type=\"continuous\"><parent link=\"base\"/><child "
        "link=\"a\"/><axis xyz=\"0 0 1\"/></joint><gazebo/></robot>";
    FILE *f = fopen("doubtful.urdf", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(urdf, 1, sizeof urdf - 1, f), sizeof urdf - 1);
    assert_int_equal(fclose(f), 0);
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_error err = US_ZERO;
    assert_int_equal(us_spec_load("doubtful.urdf", NULL, &spec, &err), US_OK);
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
    int32_t n = us_spec_get_counts(spec).n_warning;
    assert_true(n > 0);
    assert_int_equal(us_model_n_warning(model), n);
    us_model *loaded = NULL;
    assert_int_equal(us_model_load("doubtful.urdf", NULL, &loaded, &err), US_OK);
    assert_int_equal(us_model_n_warning(loaded), n);
    for (int32_t i = 0; i < n; i++) {
        assert_string_equal(us_model_view_warning(loaded, i)->message,
                            us_spec_view_warning(spec, i)->message);
        assert_string_equal(us_model_view_warning(model, i)->message, us_spec_view_warning(spec, i)->message);
        assert_true(us_model_view_warning(loaded, i)->line > 0);
    }
    assert_null(us_model_view_warning(loaded, n));
    us_spec_destroy(spec);
    us_model_destroy(model);
    us_model_destroy(loaded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parents_limits_drives_and_mass_are_what_was_written),
        cmocka_unit_test(warnings_of_loading_reach_who_loads_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

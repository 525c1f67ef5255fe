// Units, parameters and arithmetic, seen through the world's step and gravity.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "understudy/spec.h"

static const double PI = 3.14159265358979323846;

// Loads a scene whose body is given; NULL with *err filled when that fails.
static us_spec *load(const char *body, int32_t n_parameter, const char *const *parameters, us_error *err) {
    char text[4096];
    snprintf(text, sizeof text, "<scene version=\"1\">\n%s\n</scene>", body);
    us_load_def def = us_load_def_default();
    def.n_parameter = n_parameter;
    def.parameters = parameters;
    us_spec *spec = NULL;
    us_spec_load_text(text, strlen(text), "test.xml", &def, &spec, err);
    return spec;
}

// The start angle or distance of a joint of the given type, written as `q`.
static double position(const char *type, const char *q) {
    char body[1024];
    us_error err;
    snprintf(body, sizeof body,
             "<object name='o'><link name='l'/><joint name='j' type='%s' parent='world' child='l' "
             "q='%s'/></object>",
             type, q);
    us_spec *spec = load(body, 0, NULL, &err);
    if (!spec) fail_msg("q=\"%s\": %s", q, err.message);
    double value = us_spec_view_joint(spec, 0)->q0[0];
    us_spec_destroy(spec);
    return value;
}

static double step(const char *text) {
    char body[256];
    us_error err;
    snprintf(body, sizeof body, "<world step='%s'/>", text);
    us_spec *spec = load(body, 0, NULL, &err);
    if (!spec) fail_msg("step=\"%s\": %s", text, err.message);
    double value = us_spec_view_world(spec)->step;
    us_spec_destroy(spec);
    return value;
}

static void near(double a, double b) {
    if (!(fabs(a - b) <= 1e-15 * fabs(b))) fail_msg("%.17g is not %.17g", a, b);
}

static void every_unit_is_converted_to_si(void **state) {
    (void)state;
    near(step("2"), 2);
    near(step("2 s"), 2);
    near(step("2ms"), 2e-3);
    near(step(" 2 us "), 2e-6);
    near(step("0.1 min"), 6);
    near(position("revolute", "30 deg"), PI / 6);
    near(position("revolute", "0.5rad"), 0.5);
    near(position("prismatic", "3 m"), 3);
    near(position("prismatic", "3 mm"), 3e-3);
    near(position("prismatic", "3 cm"), 3e-2);
    near(position("prismatic", "-3km"), -3000);
    near(position("prismatic", "1 in"), 0.0254);
    near(position("prismatic", "1 ft"), 0.3048);
}

static void masses_velocities_and_rates_have_units(void **state) {
    (void)state;
    us_error err;
    us_spec *spec =
        load("<object name='o'>"
             "<link name='l'><inertial mass='250 g'/></link><link name='m'><inertial mass='2 t'/></link>"
             "<joint name='j' type='revolute' parent='world' child='l' v='60 rpm' effort='2 kNm' "
             "velocity='90 deg/s'/>"
             "<joint name='k' type='prismatic' parent='world' child='m' v='36 km/h' effort='2 kN' "
             "velocity='5 mm/s'/></object>"
             "<record file='x.csv' rate='2 kHz'/>",
             0, NULL, &err);
    if (!spec) fail_msg("%s", err.message);
    near(us_spec_view_link(spec, 0)->inertia.mass, 0.25);
    near(us_spec_view_link(spec, 1)->inertia.mass, 2000);
    const us_joint_def *j = us_spec_view_joint(spec, 0), *k = us_spec_view_joint(spec, 1);
    near(j->v0[0], 2 * PI);
    near(j->effort, 2000);
    near(j->velocity, PI / 2);
    near(k->v0[0], 10);
    near(k->effort, 2000);
    near(k->velocity, 5e-3);
    near(us_spec_view_record(spec, 0)->rate, 2000);
    us_spec_destroy(spec);
}

static void one_unit_behind_a_list_holds_for_all_of_it(void **state) {
    (void)state;
    us_error err;
    us_spec *spec =
        load("<object name='o' base='fixed' xyz='1 2 3 mm' rpy='0 0 90 deg'><link name='l'/></object>"
             "<object name='p' base='fixed' xyz='1 m 2 cm 3 mm'><link name='l'/></object>",
             0, NULL, &err);
    if (!spec) fail_msg("%s", err.message);
    us_pose a = us_spec_view_joint(spec, 0)->X_PF, b = us_spec_view_joint(spec, 1)->X_PF;
    near(a.p.x, 1e-3);
    near(a.p.y, 2e-3);
    near(a.p.z, 3e-3);
    near(a.q.z, sqrt(0.5));
    near(b.p.x, 1);
    near(b.p.y, 2e-2);
    near(b.p.z, 3e-3);
    us_spec_destroy(spec);
}

static void parameters_are_replaced_and_computed(void **state) {
    (void)state;
    us_error err;
    us_spec *spec =
        load("<world gravity='${gx} ${2*g+1} ${-(g - 1) / 4 * (1+1)}' step='${fast}' seed='${n}'/>"
             "<parameter name='gx' value='${g}.5'/>"
             "<parameter name='g' value='3'/>"
             "<parameter name='fast' value='5 ms'/>"
             "<parameter name='n' value='${6*7}'/>",
             0, NULL, &err);
    if (!spec) fail_msg("%s", err.message);
    const us_world_settings *w = us_spec_view_world(spec);
    near(w->gravity.x, 3.5);
    near(w->gravity.y, 7);
    near(w->gravity.z, -1);
    near(w->step, 5e-3);
    assert_int_equal(w->seed, 42);
    us_spec_destroy(spec);
}

static void pi_deg_and_units_enter_arithmetic_in_si(void **state) {
    (void)state;
    us_error err;
    us_spec *spec = load("<parameter name='a' value='30 deg'/><world gravity='${2*a} ${pi/2} ${90*deg}'/>", 0,
                         NULL, &err);
    if (!spec) fail_msg("%s", err.message);
    near(us_spec_view_world(spec)->gravity.x, PI / 3);
    near(us_spec_view_world(spec)->gravity.y, PI / 2);
    near(us_spec_view_world(spec)->gravity.z, PI / 2);
    us_spec_destroy(spec);
}

static void the_caller_overrides_parameters_that_exist(void **state) {
    (void)state;
    us_error err;
    const char *const good[] = {"g=5"}, *const twice[] = {"g=5", "g=6"}, *const unknown[] = {"gg=5"},
                      *const broken[] = {"g"};
    static const char body[] =
        "<parameter name='g' value='1'/><parameter name='h' value='${2*g}'/><world gravity='0 ${h} ${g}'/>";
    us_spec *spec = load(body, 1, good, &err);
    if (!spec) fail_msg("%s", err.message);
    near(us_spec_view_world(spec)->gravity.y, 10);
    near(us_spec_view_world(spec)->gravity.z, 5);
    us_spec_destroy(spec);
    spec = load(body, 2, twice, &err);
    assert_non_null(spec);
    near(us_spec_view_world(spec)->gravity.z, 6);
    us_spec_destroy(spec);
    assert_null(load(body, 1, unknown, &err));
    assert_int_equal(err.code, US_ERR_NAME);
    assert_non_null(strstr(err.remedy, "did you mean g?"));
    assert_null(load(body, 1, broken, &err));
    assert_int_equal(err.code, US_ERR_VALUE);
    assert_non_null(strstr(err.remedy, "name=value"));
}

static void substitution_keeps_the_lines_of_errors(void **state) {
    (void)state;
    us_error err;
    assert_null(load("<parameter name='x' value='one\ntwo'/>\n\n<world\n step='${x}'/>", 0, NULL, &err));
    // Line 1 is <scene>; the parameter's value has a line break of its own.
    assert_int_equal(err.line, 6);
    assert_int_equal(err.code, US_ERR_VALUE);
}

static void broken_arithmetic_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"${}",    "${1+}",  "${*2}",      "${(1}",    "${1)}",
                                      "${1 2}", "${1/0}", "${1/(2-2)}", "${1e300}", "${1e15*10}",
                                      "${x}",   "${2*x}", "${a b}",     "${1",      "${$}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char body[256];
        us_error err;
        snprintf(body, sizeof body, "<world step='%s'/>", bad[i]);
        us_spec *spec = load(body, 0, NULL, &err);
        if (spec) fail_msg("\"%s\" was accepted", bad[i]);
        if (!err.remedy[0] || err.line != 2)
            fail_msg("\"%s\": line %d, remedy \"%s\"", bad[i], (int)err.line, err.remedy);
    }
}

static void deeply_nested_arithmetic_is_refused_and_not_crashed_on(void **state) {
    (void)state;
    char open[401], body[1024];
    memset(open, '(', sizeof open - 1);
    open[400] = 0;
    snprintf(body, sizeof body, "<world step='${%s1}'/>", open);
    us_error err;
    assert_null(load(body, 0, NULL, &err));
    assert_non_null(strstr(err.message, "nested too deeply"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_converted_to_si),
        cmocka_unit_test(masses_velocities_and_rates_have_units),
        cmocka_unit_test(one_unit_behind_a_list_holds_for_all_of_it),
        cmocka_unit_test(parameters_are_replaced_and_computed),
        cmocka_unit_test(pi_deg_and_units_enter_arithmetic_in_si),
        cmocka_unit_test(the_caller_overrides_parameters_that_exist),
        cmocka_unit_test(substitution_keeps_the_lines_of_errors),
        cmocka_unit_test(broken_arithmetic_is_refused),
        cmocka_unit_test(deeply_nested_arithmetic_is_refused_and_not_crashed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

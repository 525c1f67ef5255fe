// understudy bench: figures in order, a hash that does not change, and a wheel in soil.
#include "test_cli_support.h"

static void assert_figure(const cJSON *json, const char *key) {
    const cJSON *figure = member(json, key);
    double median = number_of(figure, "median_ns");
    assert_true(number_of(figure, "min_ns") > 0);
    assert_true(number_of(figure, "min_ns") <= median && median <= number_of(figure, "max_ns"));
}

static void json_has_a_line_per_scene(void **state) {
    (void)state;
    outcome a = run("bench --json --steps 20");
    assert_code(a, 0);
    static const struct {
        const char *name;
        int n_v;
    } scenes[] = {{"chain-6", 6}, {"chain-30", 30}, {"chain-100", 100}, {"arm", 6}};
    char *rest = a.out;
    for (int i = 0; i < 4; i++) {
        char *line = strsep(&rest, "\n");
        assert_non_null(line);
        cJSON *json = parse_json(line);
        assert_string_equal(member(json, "scene")->valuestring, scenes[i].name);
        assert_near(number_of(json, "n_v"), scenes[i].n_v, 0);
        assert_string_equal(member(json, "integrator")->valuestring, "euler");
        assert_figure(json, "forward_dynamics");
        assert_figure(json, "one_step");
        assert_true(number_of(member(json, "profile_ns"), "dynamics") > 0);
        cJSON_Delete(json);
    }
    assert_string_equal(rest, "");
}

static void the_hash_tells_whether_the_physics_is_the_same(void **state) {
    (void)state;
    char hash[3][32];
    static const char *const lines[] = {"bench chain-6 --json --steps 100",
                                        "bench chain-6 --json --steps 100",
                                        "bench chain-6 --json --steps 100 --integrator midpoint"};
    for (int i = 0; i < 3; i++) {
        outcome a = run("%s", lines[i]);
        assert_code(a, 0);
        cJSON *json = parse_json(a.out);
        snprintf(hash[i], sizeof hash[i], "%s", member(json, "hash")->valuestring);
        cJSON_Delete(json);
    }
    assert_string_equal(hash[0], hash[1]);
    assert_string_not_equal(hash[0], hash[2]);
}

static void a_scene_file_can_be_measured(void **state) {
    (void)state;
    write_text("pendulum.xml", pendulum_scene);
    outcome a = run("bench pendulum.xml --steps 10");
    assert_code(a, 0);
    assert_has(a.out, "pendulum.xml");
    assert_has(a.out, "midpoint");
    // The hash after ten steps is the one that a run of ten steps ends with.
    outcome b = run("bench pendulum.xml --steps 10 --json");
    assert_code(b, 0);
    cJSON *json = parse_json(b.out);
    char hash[32];
    snprintf(hash, sizeof hash, "%s", member(json, "hash")->valuestring);
    cJSON_Delete(json);
    outcome c = run("run pendulum.xml --time 0.01 --rate max --hash");
    assert_code(c, 0);
    assert_has(c.out, hash);
}

static void a_wheel_in_soil_is_measured_over_slips_and_drawn(void **state) {
    (void)state;
    outcome a = run("bench wheel-soil --soil fjs1 --set dig=0 --angle 0 --angle 15 --json --plot wheel.svg");
    assert_code(a, 0);
    cJSON *json = parse_json(a.out);
    assert_figure(json, "forces");
    const cJSON *curves = member(json, "curves");
    assert_int_equal(cJSON_GetArraySize(curves), 2);
    const cJSON *turned = cJSON_GetArrayItem(curves, 1);
    assert_true(cJSON_IsTrue(member(turned, "settled")));
    assert_int_equal(cJSON_GetArraySize(member(turned, "pull")), 16);
    // Slip 0.2 at 15 degrees, as tests/physics/test_soil_rig.c has it; forces are steady to 1e-5.
    assert_near(number_at(member(turned, "slip"), 8), 0.2, 1e-12);
    assert_near(number_at(member(turned, "pull"), 8), 7.702, 1e-3);
    assert_near(number_at(member(turned, "side"), 8), 29.437, 1e-3);
    assert_near(1e3 * number_at(member(turned, "sinkage"), 8), 15.326, 1e-3);
    cJSON_Delete(json);
    // A picture of four panels with two lines each, and their names.
    char *svg = read_text("wheel.svg");
    int n = 0;
    for (const char *at = svg; (at = strstr(at, "<path fill=\"none\"")); at++)
        n++;
    assert_int_equal(n, 8);
    assert_has(svg, ">drawbar pull</text>");
    assert_has(svg, ">15 deg</text>");
    assert_has(svg, "</svg>");
    free(svg);
}

static void what_a_wheel_cannot_be_measured_in_is_named(void **state) {
    (void)state;
    write_text("pendulum.xml", pendulum_scene);
    static const struct {
        const char *line, *part;
        int code;
    } cases[] = {{"bench wheel-soil --soil lunr", "did you mean lunar", 2},
                 {"bench wheel-soil --plot wheel.pdf", "FILE.svg", 2},
                 {"bench wheel-soil --angle 95", "degrees", 2},
                 {"bench wheel-soil --set radius", "name=value", 2},
                 {"bench wheel-soil --scene pendulum.xml", "no parameter", 2},
                 {"bench wheel-soil --angle 0 --plot nowhere/wheel.svg", "cannot be written", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        outcome a = run("%s", cases[i].line);
        assert_code(a, cases[i].code);
        assert_has(a.err, cases[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_a_line_per_scene),
        cmocka_unit_test(the_hash_tells_whether_the_physics_is_the_same),
        cmocka_unit_test(a_scene_file_can_be_measured),
        cmocka_unit_test(a_wheel_in_soil_is_measured_over_slips_and_drawn),
        cmocka_unit_test(what_a_wheel_cannot_be_measured_in_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

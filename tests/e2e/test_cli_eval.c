// understudy eval: numbers that can be checked by hand, and state files that cannot be used.
#include <math.h>

#include "test_cli_support.h"

static const char free_robot[] =
    "<robot name=\"r\">\n"
    "  <link name=\"body\"><inertial><mass value=\"2\"/><inertia ixx=\"0.1\" iyy=\"0.2\" izz=\"0.25\" "
    "ixy=\"0\" ixz=\"0\" "
    "iyz=\"0\"/></inertial></link>\n"
    "  <link name=\"arm\"><inertial><origin xyz=\"0.1 0 0\"/><mass value=\"1\"/><inertia ixx=\"0.01\" "
    "iyy=\"0.02\" izz=\"0.02\" ixy=\"0\" ixz=\"0\" "
    "iyz=\"0\"/></inertial></link>\n"
    "  <joint name=\"elbow\" type=\"continuous\"><origin xyz=\"0.3 0 0\"/><parent link=\"body\"/><child "
    "link=\"arm\"/><axis xyz=\"0 0 1\"/></joint>\n"
    "</robot>\n";

static int setup(void **state) {
    (void)state;
    write_text("pendulum.xml", pendulum_scene);
    write_text("free.urdf", free_robot);
    return 0;
}

static cJSON *eval(const char *file, const char *state_text, const char *options) {
    write_text("state.json", state_text);
    outcome a = run("eval %s --state state.json --json %s", file, options);
    assert_code(a, 0);
    return parse_json(a.out);
}

static void a_pendulum_agrees_with_its_formulas(void **state) {
    (void)state;
    cJSON *json = eval("pendulum.xml",
                       "{\"positions\": {\"pendulum/hinge\": 0.5}, \"velocities\": {\"pendulum/hinge\": 2}, "
                       "\"torques\": {\"pendulum/hinge\": 1}, "
                       "\"accelerations\": {\"pendulum/hinge\": 3}}",
                       "");
    const double inertia = 1.0 / 3, weight = 9.81 * 0.5, tolerance = 1e-12;
    assert_near(number_at(cJSON_GetArrayItem(member(json, "mass_matrix"), 0), 0), inertia, tolerance);
    assert_near(number_at(member(json, "bias"), 0), weight * sin(0.5), tolerance);
    assert_near(number_at(member(json, "forward"), 0), (1 - weight * sin(0.5)) / inertia, 10 * tolerance);
    assert_near(number_at(member(json, "inverse"), 0), 3 * inertia + weight * sin(0.5), tolerance);
    const cJSON *energy = member(json, "energy");
    assert_near(number_of(energy, "kinetic"), 0.5 * inertia * 4, tolerance);
    assert_near(number_of(energy, "potential"), -weight * cos(0.5), tolerance);
    const cJSON *rod = member(member(json, "links"), "pendulum/rod");
    assert_near(number_at(member(rod, "quaternion"), 0), cos(0.25), tolerance);
    assert_near(number_at(member(rod, "quaternion"), 2), sin(0.25), tolerance);
    assert_near(number_at(member(rod, "angular_velocity"), 1), 2, tolerance);
    // The com moves along the tangent: position -0.5 (sin q, 0, cos q).
    assert_near(number_at(member(member(json, "momentum"), "linear"), 0), -0.5 * cos(0.5) * 2, tolerance);
    assert_non_null(member(member(json, "conventions"), "quaternion"));
    cJSON_Delete(json);
}

static void without_a_state_the_start_state_is_taken(void **state) {
    (void)state;
    outcome a = run("eval pendulum.xml --json --set start=0.25");
    assert_code(a, 0);
    cJSON *json = parse_json(a.out);
    assert_near(number_at(member(json, "positions"), 0), 0.25, 0);
    cJSON_Delete(json);
    outcome b = run("eval pendulum.xml");
    assert_code(b, 0);
    assert_has(b.out, "mass matrix");
    assert_has(b.out, "conventions");
}

static void aliases_and_arrays_mean_the_same(void **state) {
    (void)state;
    static const char *const same[] = {
        "{\"q\": [0.5], \"qd\": [2], \"efforts\": [1]}",
        "{\"joint_positions\": {\"pendulum/hinge\": 0.5}, \"v\": {\"pendulum/hinge\": [2]}, \"tau\": [1]}",
        "{\"joints\": {\"pendulum/hinge\": {\"position\": 0.5, \"velocity\": 2, \"torque\": 1}}}",
        "{\"name\": [\"pendulum/hinge\"], \"position\": [0.5], \"velocity\": [2], \"effort\": [1]}",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        cJSON *json = eval("pendulum.xml", same[i], "");
        assert_near(number_at(member(json, "forward"), 0), (1 - 9.81 * 0.5 * sin(0.5)) * 3, 1e-11);
        assert_near(number_of(member(json, "energy"), "kinetic"), 2.0 / 3, 1e-12);
        cJSON_Delete(json);
    }
}

static void gravity_may_be_replaced(void **state) {
    (void)state;
    cJSON *json = eval("pendulum.xml", "{\"q\": [0.5]}", "--gravity 0,0,-1.62");
    assert_near(number_at(member(json, "bias"), 0), 1.62 * 0.5 * sin(0.5), 1e-12);
    cJSON_Delete(json);
}

static void a_base_in_the_state_lets_a_robot_float(void **state) {
    (void)state;
    // Turned by 90 degrees about z: the base's x axis is the world's y axis.
    static const char text[] =
        "{\"base\": {\"position\": [1, 2, 3], \"quaternion\": [0.70710678118654752, 0, 0, "
        "0.70710678118654752],"
        " \"twist\": {\"angular\": [0, 0, 0.5], \"linear\": [1, 0, 0]%s}}, \"q\": {\"elbow\": 0.2}}";
    char line[512];
    for (int is_world = 0; is_world < 2; is_world++) {
        snprintf(line, sizeof line, text, is_world ? ", \"frame\": \"world\"" : "");
        cJSON *json = eval("free.urdf", line, "");
        assert_string_equal(member(json, "base")->valuestring, "floating");
        assert_int_equal(cJSON_GetArraySize(member(json, "velocities")), 7);
        const cJSON *body = member(member(json, "links"), "body"),
                    *arm = member(member(json, "links"), "arm");
        for (int k = 0; k < 3; k++)
            assert_near(number_at(member(body, "position"), k), 1 + k, 1e-15);
        assert_near(number_at(member(body, "linear_velocity"), 0), is_world ? 1 : 0, 1e-15);
        assert_near(number_at(member(body, "linear_velocity"), 1), is_world ? 0 : 1, 1e-15);
        assert_near(number_at(member(body, "angular_velocity"), 2), 0.5, 1e-15);
        assert_near(number_at(member(arm, "position"), 1), 2.3, 1e-12);
        // Falling freely, whatever else it does.
        assert_near(number_of(member(json, "momentum"), "mass"), 3, 1e-12);
        cJSON_Delete(json);
    }
    cJSON *fixed = eval("free.urdf", "{\"q\": {\"elbow\": 0.2}}", "");
    assert_string_equal(member(fixed, "base")->valuestring, "fixed");
    assert_int_equal(cJSON_GetArraySize(member(fixed, "velocities")), 1);
    cJSON_Delete(fixed);
}

static void a_base_beside_plain_arrays_takes_the_joints_alone(void **state) {
    (void)state;
    cJSON *json = eval("free.urdf",
                       "{\"base_pose\": [0, 0, 5, 1, 0, 0, 0], \"base_twist\": [0, 0, 0, 0, 0, 1], \"q\": "
                       "[0.2], \"v\": [0.3]}",
                       "");
    const cJSON *v = member(json, "velocities");
    assert_near(number_at(v, 5), 1, 0);
    assert_near(number_at(v, 6), 0.3, 0);
    assert_near(number_at(member(member(member(json, "links"), "body"), "position"), 2), 5, 0);
    cJSON_Delete(json);
}

static void a_wrench_pushes(void **state) {
    (void)state;
    // A force of 30 N at the com of everything that floats and does not turn: a = F/m + g, in every link.
    cJSON *json = eval("free.urdf",
                       "{\"base\": {}, \"wrenches\": {\"body\": {\"force\": [0, 0, 20]}, \"arm\": "
                       "{\"force\": [0, 0, 10], \"moment\": [0, -1, 0]}}}",
                       "");
    const cJSON *a = member(json, "forward");
    assert_near(number_at(a, 5), 10 - 9.81, 1e-12);
    for (int k = 0; k < 3; k++)
        assert_near(number_at(a, k), 0, 1e-12);
    cJSON_Delete(json);
}

static void forward_undoes_inverse_on_the_ur10(void **state) {
    (void)state;
    const char *path = shared_file("data/models/ur10/ur10.urdf");
    if (!path) return;
    char *file = strdup(path), line[1024];
    static const char start[] =
        "\"q\": [0.1, -0.7, 0.9, 0.3, -0.4, 0.5], \"v\": [0.5, -0.3, 0.2, 1, -1, 0.7]";
    static const double a[6] = {1, -2, 3, -1, 0.5, 2};
    snprintf(line, sizeof line, "{%s, \"a\": [1, -2, 3, -1, 0.5, 2]}", start);
    cJSON *inverse = eval(file, line, "");
    int n = snprintf(line, sizeof line, "{%s, \"tau\": [", start);
    for (int i = 0; i < 6; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%s%.17g", i ? ", " : "",
                      number_at(member(inverse, "inverse"), i));
    snprintf(line + n, sizeof line - (size_t)n, "]}");
    cJSON *forward = eval(file, line, "");
    // The mass matrix of this arm has a condition number near 1e4.
    for (int i = 0; i < 6; i++)
        assert_near(number_at(member(forward, "forward"), i), a[i], 1e-10);
    const cJSON *H = member(forward, "mass_matrix");
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < i; j++)
            assert_near(number_at(cJSON_GetArrayItem(H, i), j), number_at(cJSON_GetArrayItem(H, j), i),
                        1e-15);
    }
    cJSON_Delete(inverse);
    cJSON_Delete(forward);
    free(file);
}

static void what_cannot_be_used_is_an_error(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"positions\": {\"elbow\": 0.1,}}", "state.json:1:"},
        {"{\"positions\":\n {\"elbow\": }}", "state.json:2:"},
        {"", "not JSON"},
        {"[1, 2]", "not an object"},
        {"{} {}", "not JSON"},
        {"{\"position\": {\"elbwo\": 1}}", "did you mean \"elbow\"?"},
        {"{\"positoins\": {}}", "did you mean \"positions\"?"},
        {"{\"positions\": {\"elbow\": \"1\"}}", "not a finite number"},
        {"{\"positions\": {\"elbow\": 1e999}}", "not a finite number"},
        {"{\"positions\": {\"elbow\": [1, 2]}}", "2 numbers where there should be 1"},
        {"{\"positions\": {\"elbow\": 1, \"elbow\": 2}}", "given twice"},
        {"{\"positions\": {}, \"q\": {}}", "say the same"},
        {"{\"positions\": [1, 2, 3]}", "has 3 numbers"},
        {"{\"positions\": 1}", "neither an object nor an array"},
        {"{\"velocities\": {\"fixed_base\": 1}}", "fixed"},
        {"{\"base\": {\"position\": [1, 2]}}", "2 numbers where there should be 3"},
        {"{\"base\": {\"quaternion\": [0, 0, 0, 0]}}", "length 0"},
        {"{\"base\": {\"rpy\": [0, 0, 0]}}", "unknown key \"rpy\""},
        {"{\"base\": {\"twist\": {\"frame\": \"moon\"}}}", "unknown frame"},
        {"{\"wrenches\": {\"amr\": {}}}", "unknown link \"amr\""},
        {"{\"wrenches\": {\"arm\": {\"force\": 3}}}", "not an array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text("state.json", cases[i][0]);
        outcome a = run("eval free.urdf --state state.json");
        if (a.code != 2) print_error("%s\n", cases[i][0]);
        assert_int_equal(a.code, 2);
        assert_has(a.err, "state.json");
        assert_has(a.err, cases[i][1]);
        assert_has(a.err, "remedy:");
        assert_string_equal(a.out, "");
    }
    write_text("state.json", "{\"base\": {}}");
    outcome b = run("eval free.urdf --state state.json --base fixed");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "nothing floats");
    outcome c = run("eval free.urdf --state none.json");
    assert_int_equal(c.code, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pendulum_agrees_with_its_formulas),
        cmocka_unit_test(without_a_state_the_start_state_is_taken),
        cmocka_unit_test(aliases_and_arrays_mean_the_same),
        cmocka_unit_test(gravity_may_be_replaced),
        cmocka_unit_test(a_base_in_the_state_lets_a_robot_float),
        cmocka_unit_test(a_base_beside_plain_arrays_takes_the_joints_alone),
        cmocka_unit_test(a_wrench_pushes),
        cmocka_unit_test(forward_undoes_inverse_on_the_ur10),
        cmocka_unit_test(what_cannot_be_used_is_an_error),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}

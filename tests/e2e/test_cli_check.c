// understudy check and info: what is in a file, in words and in JSON.
#include <dirent.h>

#include "test_cli_support.h"

// A bit of everything: fixed joint, shapes, spring and damper, drive, coupling, loop, recording.
static const char rich_scene[] =
    "<scene name=\"rich\" version=\"1\">\n"
    "  <parameter name=\"mass\" value=\"2\"/>\n"
    "  <world step=\"2 ms\" integrator=\"euler\" duration=\"3 s\"/>\n"
    "  <object name=\"m\">\n"
    "    <link name=\"a\"><inertial mass=\"${mass}\" com=\"0.1 0 0\" inertia=\"0.01 0.02 0.02\"/><shape "
    "type=\"box\" size=\"0.2 0.1 0.1\"/></link>\n"
    "    <link name=\"tip\"><inertial mass=\"0.5\" com=\"0 0 0\" inertia=\"0.001 0.001 0.001\"/></link>\n"
    "    <link name=\"b\"><inertial mass=\"1\" com=\"0.1 0 0\" inertia=\"0.01 0.02 0.02\"/></link>\n"
    "    <joint name=\"ja\" type=\"revolute\" parent=\"world\" child=\"a\" axis=\"0 1 0\" damping=\"0.3\" "
    "stiffness=\"4\" lower=\"-1\" "
    "upper=\"1\"/>\n"
    "    <joint name=\"weld\" type=\"fixed\" parent=\"a\" child=\"tip\" xyz=\"0.2 0 0\"/>\n"
    "    <joint name=\"jb\" type=\"revolute\" parent=\"world\" child=\"b\" axis=\"0 1 0\" xyz=\"0 1 0\"/>\n"
    "    <drive name=\"motor\" joint=\"ja\" kp=\"10\" kd=\"1\" position=\"0.2\"/>\n"
    "    <coupling name=\"rocker\"><term joint=\"ja\"/><term joint=\"jb\"/></coupling>\n"
    "  </object>\n"
    "  <record file=\"rich.csv\" rate=\"50 Hz\"><value name=\"m/ja.q\"/></record>\n"
    "</scene>\n";

static void check_shows_the_whole_tree(void **state) {
    (void)state;
    write_text("rich.xml", rich_scene);
    outcome a = run("check rich.xml");
    assert_code(a, 0);
    static const char *const parts[] = {
        "scene \"rich\"",
        "joint m/ja: revolute about (0, 1, 0)",
        "limits -1 .. 1 rad",
        "damping 0.3",
        "stiffness 4",
        "link m/a: mass 2 kg, com (0.1, 0, 0)",
        "box 0.2 x 0.1 x 0.1 m",
        "link m/tip: merged into m/a, mass 0.5 kg",
        "drive m/motor on m/ja: kp 10, kd 1, position 0.2",
        "rocker: 1 m/ja + 1 m/jb = 0",
        "record rich.csv: m/ja.q, 50 Hz",
        "2 positions (n_q), 2 velocities (n_v), 1 constraint rows (1 independent), mobility 1",
        "mass 3.5 kg",
        "step 0.002 s, integrator euler",
        "runs for 3 s",
        "no errors, 0 warnings",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        assert_has(a.out, parts[i]);
}

static void check_takes_parameters(void **state) {
    (void)state;
    write_text("rich.xml", rich_scene);
    outcome a = run("check rich.xml --set mass=7");
    assert_code(a, 0);
    assert_has(a.out, "link m/a: mass 7 kg");
    outcome b = run("check rich.xml --set masss=7");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "masss");
}

static void check_as_json_says_the_same(void **state) {
    (void)state;
    write_text("rich.xml", rich_scene);
    outcome a = run("check rich.xml --json");
    assert_code(a, 0);
    cJSON *json = parse_json(a.out);
    assert_int_equal(cJSON_GetArraySize(member(json, "links")), 3);
    assert_int_equal(cJSON_GetArraySize(member(json, "joints")), 3);
    assert_int_equal(cJSON_GetArraySize(member(json, "drives")), 1);
    assert_int_equal(cJSON_GetArraySize(member(json, "couplings")), 1);
    assert_int_equal(cJSON_GetArraySize(member(json, "shapes")), 1);
    assert_int_equal(cJSON_GetArraySize(member(json, "warnings")), 0);
    assert_int_equal(cJSON_GetArraySize(member(json, "errors")), 0);
    assert_near(number_of(json, "mobility"), 1, 0);
    assert_near(number_of(json, "mass"), 3.5, 1e-12);
    assert_near(number_of(json, "step"), 0.002, 0);
    cJSON_Delete(json);
}

// A robot without an inertial at a moving link: usable after a repair, which must be told.
static const char doubtful_robot[] =
    "<robot name=\"r\">\n"
    "  <link name=\"base\"/>\n"
    "  <link name=\"arm\"><inertial><mass value=\"1\"/><inertia ixx=\"1\" iyy=\"0.1\" izz=\"0.1\" ixy=\"0\" "
    "ixz=\"0\" iyz=\"0\"/></inertial></link>\n"
    "  <joint name=\"j\" type=\"continuous\"><parent link=\"base\"/><child link=\"arm\"/><axis xyz=\"0 0 "
    "1\"/></joint>\n"
    "</robot>\n";

static void warnings_name_file_line_and_remedy(void **state) {
    (void)state;
    write_text("doubtful.urdf", doubtful_robot);
    outcome a = run("check doubtful.urdf");
    assert_code(a, 0);
    assert_has(a.out, "warning: doubtful.urdf:3");
    assert_has(a.out, "remedy:");
    assert_lacks(a.out, "no errors, 0 warnings");
    // A run shows the warning too, and goes on.
    outcome b = run("run doubtful.urdf --time 0.01 --rate max");
    assert_code(b, 0);
    assert_has(b.err, "warning: doubtful.urdf:3");
    assert_has(b.out, "(10 steps)");
}

static void check_says_whether_services_answer_requests(void **state) {
    (void)state;
    write_text("doubtful.urdf", doubtful_robot);
    for (int is_on = 0; is_on < 2; is_on++) {
        write_text("asked.xml", is_on ? "<scene version='1'><robot name='r' file='doubtful.urdf'/></scene>"
                                      : "<scene version='1'><robot name='r' file='doubtful.urdf'><network "
                                        "services='false'/></robot></scene>");
        outcome a = run("check asked.xml");
        assert_code(a, 0);
        assert_int_equal(strstr(a.out, "answers requests to its services") != NULL, is_on);
        outcome b = run("check asked.xml --json");
        cJSON *json = parse_json(b.out);
        assert_int_equal(cJSON_IsTrue(member(cJSON_GetArrayItem(member(json, "network"), 0), "services")),
                         is_on);
        cJSON_Delete(json);
    }
}

static void errors_name_file_and_line(void **state) {
    (void)state;
    write_text(
        "broken.xml",
        "<scene version=\"1\">\n  <object name=\"o\">\n    <link nam=\"l\"/>\n  </object>\n</scene>\n");
    static const char *const commands[] = {"check", "run", "info", "eval", "bench"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        outcome a = run("%s broken.xml", commands[i]);
        assert_int_equal(a.code, 2);
        assert_has(a.err, "error: broken.xml:3");
        assert_has(a.err, "remedy:");
    }
    outcome b = run("check broken.xml --json");
    assert_int_equal(b.code, 2);
    cJSON *json = parse_json(b.out);
    assert_int_equal(cJSON_GetArraySize(member(json, "errors")), 1);
    assert_near(number_of(cJSON_GetArrayItem(member(json, "errors"), 0), "line"), 3, 0);
    cJSON_Delete(json);
}

static void base_may_float_or_be_fixed(void **state) {
    (void)state;
    write_text("free.urdf", "<robot name=\"r\"><link name=\"body\"><inertial><mass value=\"2\"/><inertia "
                            "ixx=\"0.1\" iyy=\"0.1\" izz=\"0.1\" "
                            "ixy=\"0\" ixz=\"0\" iyz=\"0\"/>"
                            "</inertial></link></robot>");
    outcome a = run("check free.urdf");
    assert_code(a, 0);
    assert_has(a.out, "0 velocities (n_v)");
    outcome b = run("check free.urdf --base floating");
    assert_code(b, 0);
    assert_has(b.out, "floating base");
    assert_has(b.out, "7 positions (n_q), 6 velocities (n_v)");
    write_text("rich.xml", rich_scene);
    outcome c = run("check rich.xml --base floating");
    assert_code(c, 0);
    assert_has(c.err, "--base has no effect");
}

static void every_shipped_scene_passes_check_and_info(void **state) {
    (void)state;
    DIR *directory = opendir(US_SOURCE_DIR "/scenes");
    assert_non_null(directory);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (!strstr(entry->d_name, ".xml")) continue;
        outcome a = run("check %s/scenes/%s", US_SOURCE_DIR, entry->d_name);
        assert_code(a, 0);
        assert_has(a.out, "no errors, 0 warnings");
        outcome b = run("info %s/scenes/%s", US_SOURCE_DIR, entry->d_name);
        assert_code(b, 0);
        outcome c = run("run %s/scenes/%s --time 0.05 --rate max --quiet", US_SOURCE_DIR, entry->d_name);
        assert_code(c, 0);
        n++;
    }
    closedir(directory);
    assert_true(n > 0);
}

static void known_robots_import_without_error(void **state) {
    (void)state;
    const char *path = shared_file("data/models/husky/husky.urdf");
    if (path) {
        outcome a = run("check %s", path);
        assert_code(a, 0);
        assert_has(a.out, "joint front_left_wheel: continuous about (0, 1, 0)");
        assert_has(a.out, "mass 56.582 kg");
        outcome b = run("check %s --base floating", path);
        assert_code(b, 0);
        assert_has(b.out, "10 velocities (n_v)");
    }
    path = shared_file("data/models/ur10/ur10.urdf");
    if (path) {
        outcome a = run("check %s --json", path);
        assert_code(a, 0);
        cJSON *json = parse_json(a.out);
        assert_near(number_of(json, "n_v"), 6, 0);
        assert_near(number_of(json, "mass"), 32.7, 1e-9);
        cJSON_Delete(json);
    }
}

static void info_lists_indices_and_fields(void **state) {
    (void)state;
    write_text("rich.xml", rich_scene);
    outcome a = run("info rich.xml");
    assert_code(a, 0);
    assert_has(a.out, "m/motor");
    assert_has(a.out, "memory: model");
    outcome b = run("info rich.xml --json");
    assert_code(b, 0);
    cJSON *json = parse_json(b.out);
    assert_near(number_of(json, "n_body"), 3, 0);
    assert_near(number_of(json, "n_row"), 1, 0);
    assert_near(number_of(cJSON_GetArrayItem(member(json, "joints"), 2), "first_v"), 1, 0);
    bool has_state = false;
    double bytes = 0;
    const cJSON *field;
    cJSON_ArrayForEach(field, member(json, "fields")) {
        bool is_state = strcmp(member(field, "block")->valuestring, "state") == 0;
        has_state |= is_state && strcmp(member(field, "name")->valuestring, "q") == 0;
        if (is_state) bytes += number_of(field, "bytes");
        assert_true(strlen(member(field, "about")->valuestring) > 3);
    }
    assert_true(has_state);
    assert_near(number_of(json, "state_bytes"), bytes, 0);
    cJSON_Delete(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_shows_the_whole_tree),
        cmocka_unit_test(check_takes_parameters),
        cmocka_unit_test(check_as_json_says_the_same),
        cmocka_unit_test(warnings_name_file_line_and_remedy),
        cmocka_unit_test(check_says_whether_services_answer_requests),
        cmocka_unit_test(errors_name_file_and_line),
        cmocka_unit_test(base_may_float_or_be_fixed),
        cmocka_unit_test(every_shipped_scene_passes_check_and_info),
        cmocka_unit_test(known_robots_import_without_error),
        cmocka_unit_test(info_lists_indices_and_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

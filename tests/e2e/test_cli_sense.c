// understudy sense: a frame of a lidar in each kind of file, by rays and by depths, and what it refuses.
#include <dlfcn.h>
#include <math.h>

#include "test_cli_support.h"

static const char *const yard =
    "<scene name=\"yard\" version=\"1\"><world step=\"1 ms\">"
    "<shape name=\"ground\" type=\"height-field\" nx=\"81\" ny=\"81\" dx=\"0.5\" dy=\"0.5\" "
    "expression=\"0\"/>"
    "<shape name=\"wall\" type=\"box\" size=\"1 20 6\" xyz=\"6 0 3\"/></world>"
    "<robot name=\"k10\" file=\"" US_SOURCE_DIR "/models/k10.urdf\" base=\"floating\" xyz=\"0 0 0.05\">"
    "<sensor type=\"lidar\" name=\"lidar\" link=\"base\" xyz=\"0.12 0 1.45\" preset=\"os1-32\" "
    "range-noise=\"0\" angle-noise=\"0\" reach=\"0\"/>"
    "<network namespace=\"k10\"/></robot></scene>\n";

static int setup(void **state) {
    (void)state;
    write_text("yard.xml", yard);
    return 0;
}

static void a_camera_gives_its_picture_and_its_depths(void **state) {
    (void)state;
    static const char scene[] =
        "<scene name=\"s\" version=\"1\"><world step=\"1 ms\"><shape type=\"half-space\"/></world>"
        "<robot name=\"k10\" file=\"" US_SOURCE_DIR "/models/k10.urdf\" base=\"floating\" xyz=\"0 0 0.05\">"
        "<sensor type=\"camera\" name=\"eye\" link=\"base\" xyz=\"0.5 0 1\" width=\"32\" height=\"24\"/>"
        "<network namespace=\"k10\"/></robot></scene>\n";
    write_text("eye.xml", scene);
    outcome a = run("sense eye.xml --sensor k10/eye --time 0.1 -o eye.png");
    assert_code(a, 0);
    assert_has(a.out, "eye.png: 32 x 24 pixels, exposed for ");
    char *text = read_text("eye.png");
    assert_int_equal(strncmp(text, "\x89PNG\r\n", 6), 0);
    free(text);
    a = run("sense eye.xml --sensor k10/eye -o eye.pfm");
    assert_code(a, 0);
    text = read_text("eye.pfm");
    assert_int_equal(strncmp(text, "Pf\n32 24\n-1.0\n", 14), 0);
    // The first row is the lowest, which sees the ground about a metre below.
    float depth;
    memcpy(&depth, text + 14, sizeof depth);
    assert_true(depth > 1.5f && depth < 4);
    free(text);
    a = run("sense eye.xml --sensor k10/eye -o eye.ply");
    assert_code(a, 2);
    assert_has(a.err, ".pfm for depths");
}

static bool has_egl(void) {
    void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library) dlclose(library);
    return library != NULL;
}

// How many points of a CSV table there are, and how many of them lie on the wall's face within 1 cm.
static void count(const char *path, int *out_n, int *out_on_wall) {
    char *text = read_text(path);
    assert_non_null(text);
    assert_int_equal(strncmp(text, "x,y,z,intensity,ring,time\n", 26), 0);
    *out_n = *out_on_wall = 0;
    for (const char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        char *end;
        const double x = strtod(line, &end);
        assert_true(*end == ',');
        ++*out_n;
        // The wall's face is at 5.5 m, the sensor 0.12 m before the rover's middle.
        *out_on_wall += fabs(x - 5.38) < 0.01;
    }
    free(text);
}

static void a_frame_is_written_by_the_ending_of_the_file(void **state) {
    (void)state;
    static const struct {
        const char *file, *head;
    } kind[] = {{"a.ply", "ply\nformat ascii 1.0\n"},
                {"a.pcd", "# .PCD v0.7"},
                {"a.csv", "x,y,z,intensity,ring,time\n"},
                {"a.png", "\x89PNG\r\n"}};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        outcome a = run("sense yard.xml --sensor k10/lidar -o %s", kind[i].file);
        assert_code(a, 0);
        assert_has(a.out, "turn 0 of k10/lidar");
        char *text = read_text(kind[i].file);
        assert_non_null(text);
        assert_int_equal(strncmp(text, kind[i].head, strlen(kind[i].head)), 0);
        free(text);
    }
    outcome a = run("sense yard.xml -o a.jpg");
    assert_code(a, 2);
    assert_has(a.err, "end it with .ply, .pcd, .csv or .png");
    a = run("sense yard.xml --sensor k10/nose -o a.ply");
    assert_code(a, 2);
    assert_has(a.err, "there is no sensor \"k10/nose\"");
    assert_has(a.err, "k10/lidar");
}

static void the_default_scene_has_a_lidar(void **state) {
    (void)state;
    outcome a =
        run("sense %s/scenes/default.xml --set motor_port=0 --sensor k10/lidar -o frame.ply", US_SOURCE_DIR);
    assert_code(a, 0);
    assert_has(a.out, "of k10/lidar");
    char *text = read_text("frame.ply");
    assert_non_null(text);
    const char *at = strstr(text, "element vertex ");
    assert_non_null(at);
    // Of 34 560 shots those that look down, two thirds, meet the ground.
    assert_true(atoi(at + 15) > 15000);
    free(text);
}

static void both_methods_see_the_wall(void **state) {
    (void)state;
    if (!has_egl()) skip();
    int n[2], on_wall[2];
    outcome a = run("sense yard.xml --method rays -o rays.csv");
    assert_code(a, 0);
    a = run("sense yard.xml --method depth-buffer --bits 24 --side 1024 -o depths.csv");
    assert_code(a, 0);
    count("rays.csv", &n[0], &on_wall[0]);
    count("depths.csv", &n[1], &on_wall[1]);
    assert_true(on_wall[0] > 1000);
    // Its outline may be seen a pixel aside.
    assert_true(abs(on_wall[0] - on_wall[1]) * 50 < on_wall[0]);
    assert_true(abs(n[0] - n[1]) * 50 < n[0]);
}

static void what_is_no_method_is_refused(void **state) {
    (void)state;
    outcome a = run("sense yard.xml --method eyes -o a.ply");
    assert_code(a, 2);
    assert_has(a.err, "rays or depth-buffer");
    a = run("sense yard.xml --method depth-buffer --bits 40 -o a.ply");
    assert_code(a, 2);
    assert_has(a.err, "8 to 32");
    a = run("sense yard.xml --method depth-buffer --side 3 -o a.ply");
    assert_code(a, 2);
    assert_has(a.err, "64 to 16384");
}

// Where nothing draws, the error says what to install.
static void an_absent_driver_is_named(void **state) {
    (void)state;
    if (!has_egl()) skip();
    setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nowhere.json", 1);
    outcome a = run("sense yard.xml --method depth-buffer -o a.ply");
    unsetenv("__EGL_VENDOR_LIBRARY_FILENAMES");
    assert_code(a, 3);
    assert_has(a.err, "no driver draws without a display");
    assert_has(a.err, "libgl1-mesa-dri");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_camera_gives_its_picture_and_its_depths),
        cmocka_unit_test(a_frame_is_written_by_the_ending_of_the_file),
        cmocka_unit_test(the_default_scene_has_a_lidar),
        cmocka_unit_test(both_methods_see_the_wall),
        cmocka_unit_test(what_is_no_method_is_refused),
        cmocka_unit_test(an_absent_driver_is_named),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}

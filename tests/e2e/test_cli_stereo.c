// understudy stereo: from files to files, and what is said about bad ones.
#include <math.h>
#include <stdint.h>

#include "stereo_pair.h"
#include "test_cli_support.h"

enum { WIDTH = 96, HEIGHT = 48 };
static const double F = 83.138;  // of 60 degrees

// A wall at 1.5 m: 8.3138 pixels.
static void write_pair(void) {
    pair_scene s = {.n = 1, .f = F, .baseline = 0.15, .cx = 47.5, .cy = 23.5, .grain = 0.03, .contrast = 0.9};
    s.plane[0] = (pair_plane){{0, 0, 1}, 1.5, -1e9, 1e9, -1e9, 1e9};
    us_error err = {0};
    us_image picture;
    assert_int_equal(us_image_create(US_PIXEL_MONO8, WIDTH, HEIGHT, NULL, &picture), US_OK);
    for (int side = 0; side < 2; side++) {
        pair_render(&s, side * s.baseline, 1, &picture);
        assert_int_equal(us_image_write_png(&picture, side ? "right.png" : "left.png", &err), US_OK);
    }
    us_image_destroy(&picture, NULL);
}

static int compare_numbers(const void *a, const void *b) {
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

static void disparities_and_points_are_written(void **state) {
    (void)state;
    write_pair();
    outcome a = run(
        "stereo left.png right.png --disparities 16 --baseline 0.15 -o d.png --picture c.png --points p.ply");
    assert_int_equal(a.code, 0);
    assert_has(a.out, "96 x 48 pixels, 16 disparities from 0");
    assert_has(a.out, "baseline 0.15 m");
    us_image d, c;
    us_error err = {0};
    assert_int_equal(us_image_read_png("d.png", NULL, &d, &err), US_OK);
    assert_int_equal(us_image_read_png("c.png", NULL, &c, &err), US_OK);
    assert_true(d.format == US_PIXEL_MONO16 && d.width == WIDTH && d.height == HEIGHT);
    assert_true(c.format == US_PIXEL_RGB8 && c.width == WIDTH && c.height == HEIGHT);
    uint16_t *value = d.pixels;
    qsort(value, (size_t)WIDTH * HEIGHT, sizeof *value, compare_numbers);
    int n_none = 0;
    while (n_none < WIDTH * HEIGHT && value[n_none] == 0)
        n_none++;
    assert_true(n_none < WIDTH * HEIGHT / 4);
    const double median = value[(n_none + WIDTH * HEIGHT) / 2] / 256.0;
    assert_true(fabs(median - F * 0.15 / 1.5) < 0.1);
    us_image_destroy(&d, NULL);
    us_image_destroy(&c, NULL);

    char *ply = read_text("p.ply");
    assert_non_null(ply);
    char *head = strstr(ply, "element vertex ");
    assert_non_null(head);
    assert_int_equal(strtol(head + 15, NULL, 10), WIDTH * HEIGHT - n_none);
    char *body = strstr(ply, "end_header\n");
    assert_non_null(body);
    double x, y, z;
    assert_int_equal(sscanf(body + 11, "%lf %lf %lf", &x, &y, &z), 3);
    assert_true(fabs(z - 1.5) < 0.2);
    free(ply);
}

static void every_method_is_taken_by_name(void **state) {
    (void)state;
    write_pair();
    static const char *const options[] = {"--method block --window 7 --texture 0 --after median,fill",
                                          "--cost census9x7 --paths 4 --before median,blur,normalize:9",
                                          "--cost sad --window 5 --after none --left-right -1 --uniqueness 0",
                                          "--from -8 --threads 2 --p1 5 --p2 50 --after speckle:20:0.5"};
    for (int i = 0; i < 4; i++) {
        outcome a = run("stereo left.png right.png --disparities 32 %s -o d.png", options[i]);
        if (a.code != 0) fail_msg("%s: %s", options[i], a.err);
        assert_has(a.out, "32 disparities from");
    }
}

static const char calibration[] =
    "image_width: 96\nimage_height: 48\ncamera_name: one\ncamera_matrix:\n  data: [83.138, 0, 47.5, 0, "
    "83.138, 23.5, 0, 0, 1]\n"
    "distortion_model: plumb_bob\ndistortion_coefficients:\n  data: [0, 0, 0, 0, 0]\n"
    "projection_matrix:\n  data: [83.138, 0, 47.5, %s, 0, 83.138, 23.5, 0, 0, 0, 1, 0]\n";

static void write_calibration(const char *path, const char *shift) {
    char text[1000];
    snprintf(text, sizeof text, calibration, shift);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void calibrations_rectify(void **state) {
    (void)state;
    write_pair();
    write_calibration("left.yaml", "0");
    write_calibration("right.yaml", "-12.4707");
    outcome a = run("stereo left.png right.png --left-calibration left.yaml --right-calibration right.yaml "
                    "--disparities 16 "
                    "--rectified ideal --points p.ply");
    if (a.code != 0) fail_msg("%s", a.err);
    assert_has(a.out, "baseline 0.15 m");
    // These cameras are ideal already: nothing moves.
    us_image before, after;
    us_error err = {0};
    assert_int_equal(us_image_read_png("left.png", NULL, &before, &err), US_OK);
    assert_int_equal(us_image_read_png("ideal-left.png", NULL, &after, &err), US_OK);
    assert_memory_equal(before.pixels, after.pixels, (size_t)WIDTH * HEIGHT);
    us_image_destroy(&before, NULL);
    us_image_destroy(&after, NULL);
}

static void bad_input_is_named(void **state) {
    (void)state;
    write_pair();
    write_calibration("left.yaml", "0");
    write_calibration("right.yaml", "12");
    FILE *out = fopen("bad.png", "w");
    assert_non_null(out);
    fputs("no picture", out);
    assert_int_equal(fclose(out), 0);
    static const struct {
        const char *line, *says;
    } bad[] = {
        {"stereo left.png", "no right picture"},
        {"stereo left.png right.png left.png", "more than two"},
        {"stereo left.png missing.png", "missing.png"},
        {"stereo bad.png right.png", "bad.png"},
        {"stereo left.png right.png --method sgm", "\"sgm\" is unknown"},
        {"stereo left.png right.png --cost census5", "did you mean \"census5x5\""},
        {"stereo left.png right.png --disparities 20", "n_disparity is 20"},
        {"stereo left.png right.png --disparities 112", "leave nothing"},
        {"stereo left.png right.png --after blur", "filter 1 is not one of disparities"},
        {"stereo left.png right.png --after speckel:1:1", "did you mean \"speckle\""},
        {"stereo left.png right.png --after speckle:1:1x", "no filter"},
        {"stereo left.png right.png --points p.ply", "nobody knows how far"},
        {"stereo left.png right.png --baseline -1 --points p.ply", "no baseline"},
        {"stereo left.png right.png --baseline 1 --hfov 180", "no field of view"},
        {"stereo left.png right.png --threads 0", "threads"},
        {"stereo left.png right.png --left-calibration left.yaml", "give both files"},
        {"stereo left.png right.png --left-calibration left.yaml --right-calibration right.yaml",
         "baseline of"},
        {"stereo left.png right.png --left-calibration left.png --right-calibration right.yaml", "left.png"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        outcome a = run("%s", bad[i].line);
        if (a.code != 2) fail_msg("%s: %d", bad[i].line, a.code);
        if (!strstr(a.err, bad[i].says)) fail_msg("%s: %s", bad[i].line, a.err);
    }
    outcome a = run("stereo left.png right.png --disparities 16 -o nowhere/d.png");
    assert_int_equal(a.code, 4);
    assert_has(a.err, "nowhere/d.png");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disparities_and_points_are_written),
        cmocka_unit_test(every_method_is_taken_by_name),
        cmocka_unit_test(calibrations_rectify),
        cmocka_unit_test(bad_input_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

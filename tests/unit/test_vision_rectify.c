// Rectification, points, and calibration files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stereo_pair.h"

static const double PI = 3.14159265358979323846;

// Two cameras that are distorted, not alike, turned against each other, and not level.
static us_stereo_rig crooked_rig(void) {
    us_stereo_rig rig = {.left = us_camera_from_hfov(640, 480, 60 * PI / 180),
                         .right = us_camera_from_hfov(640, 480, 62 * PI / 180)};
    rig.left.k[0] = -0.2;
    rig.left.k[1] = 0.05;
    rig.left.k[2] = 0.001;
    rig.left.cx += 4;
    rig.right.k[0] = -0.15;
    rig.right.cy -= 3;
    rig.X_LR.q = us_quat_from_rpy(0.02, -0.04, 0.015);
    rig.X_LR.p = us_vec3_make(0.15, 0.01, -0.008);
    us_error err = {0};
    assert_int_equal(us_camera_prepare(&rig.left, &err), US_OK);
    assert_int_equal(us_camera_prepare(&rig.right, &err), US_OK);
    return rig;
}

// The pixel of an ideal camera that sees point p_L of the left optical frame.
static void ideal(const us_rectification *r, us_vec3 p_L, double out[4]) {
    const us_vec3 p_N = us_quat_rotate(us_quat_conj(r->q_LN), p_L);
    out[0] = r->f * p_N.x / p_N.z + r->cx_left;
    out[1] = r->f * p_N.y / p_N.z + r->cy;
    out[2] = r->f * (p_N.x - r->baseline) / p_N.z + r->cx_right;
    out[3] = p_N.z;
}

static void rectified_frames_are_parallel_and_side_by_side(void **state) {
    (void)state;
    const us_stereo_rig rig = crooked_rig();
    us_rectification r;
    us_error err = {0};
    assert_int_equal(us_rectify_rig(&rig, &r, &err), US_OK);
    assert_true(fabs(r.baseline - us_vec3_norm(rig.X_LR.p)) < 1e-12);
    assert_true(r.f == fmin(rig.left.fx, rig.right.fx));
    // The baseline is N's x axis, in both frames.
    const us_vec3 along = us_quat_rotate(us_quat_conj(r.q_LN), rig.X_LR.p);
    assert_true(fabs(along.x - r.baseline) < 1e-12 && fabs(along.y) < 1e-12 && fabs(along.z) < 1e-12);
    const us_quat q_LR = us_quat_mul(r.q_LN, us_quat_conj(r.q_RN));
    for (int k = 0; k < 3; k++) {
        const us_vec3 axis = us_vec3_make(k == 0, k == 1, k == 2);
        assert_true(us_vec3_norm(us_vec3_sub(us_quat_rotate(q_LR, axis), us_quat_rotate(rig.X_LR.q, axis))) <
                    1e-12);
    }
    // Depth from disparity is depth along N's z.
    double at[4];
    ideal(&r, us_vec3_make(0.3, -0.2, 2), at);
    assert_true(fabs(r.f * r.baseline / (at[0] - at[2]) - at[3]) < 1e-12);
}

// A real camera's picture whose grey is a smooth function of where a pixel looks: after rectification it must
// be that function of where the ideal pixel looks.
static double scenery(us_vec3 ray_N) {
    return 127 + 60 * sin(9 * ray_N.x / ray_N.z) + 60 * cos(11 * ray_N.y / ray_N.z);
}

// Returns how many pixels are black, because the camera does not see them.
static int check_remap(const us_camera_model *camera, us_quat q_SN, const us_rectification *r, double cx) {
    us_image from, to;
    assert_int_equal(us_image_create(US_PIXEL_MONO8, camera->width, camera->height, NULL, &from), US_OK);
    assert_int_equal(us_image_create(US_PIXEL_MONO8, r->width, r->height, NULL, &to), US_OK);
    for (int y = 0; y < from.height; y++)
        for (int x = 0; x < from.width; x++) {
            us_vec3 ray;
            if (!us_camera_unproject(camera, x, y, &ray, NULL)) continue;
            ((uint8_t *)from.pixels)[y * from.width + x] =
                (uint8_t)lround(scenery(us_quat_rotate(us_quat_conj(q_SN), ray)));
        }
    us_remap *map;
    assert_int_equal(us_remap_create(camera, r, q_SN, cx, NULL, &map), US_OK);
    assert_int_equal(us_remap_apply(map, &from, &to), US_OK);
    int n = 0, n_black = 0;
    for (int y = 0; y < to.height; y++)
        for (int x = 0; x < to.width; x++) {
            const int grey = ((uint8_t *)to.pixels)[y * to.width + x];
            const us_vec3 ray = us_vec3_make((x - cx) / r->f, (y - r->cy) / r->f, 1);
            double u, v;
            const bool is_seen = us_camera_project(camera, us_quat_rotate(q_SN, ray), &u, &v) && u >= 0 &&
                                 v >= 0 && u <= camera->width - 1 && v <= camera->height - 1;
            if (!is_seen) {
                assert_int_equal(grey, 0);
                n_black++;
                continue;
            }
            // Two roundings to grey levels, and what a 256th of a pixel and a straight line between pixels
            // cost.
            assert_true(fabs(grey - scenery(ray)) < 1.3);
            n++;
        }
    assert_true(n > 640 * 480 * 8 / 10);
    us_remap_destroy(map);
    assert_int_equal(us_remap_create(NULL, r, q_SN, cx, NULL, &map), US_ERR_ARG);
    us_image_destroy(&from, NULL);
    us_image_destroy(&to, NULL);
    return n_black;
}

static void rectified_pictures_show_what_the_ideal_camera_sees(void **state) {
    (void)state;
    const us_stereo_rig rig = crooked_rig();
    us_rectification r;
    us_error err = {0};
    assert_int_equal(us_rectify_rig(&rig, &r, &err), US_OK);
    assert_true(check_remap(&rig.left, r.q_LN, &r, r.cx_left) > 0);
    assert_true(check_remap(&rig.right, r.q_RN, &r, r.cx_right) > 0);
}

static void rigs_that_cannot_be_rectified_are_named(void **state) {
    (void)state;
    us_stereo_rig rigs[5];
    for (int i = 0; i < 5; i++)
        rigs[i] = crooked_rig();
    rigs[0].X_LR.p = us_vec3_make(0, 0, 0);
    rigs[1].X_LR.p = us_vec3_make(-0.1, 0, 0);
    rigs[2].X_LR.p = us_vec3_make(0, 0, 0.3);
    rigs[3].X_LR.q = us_quat_from_rpy(0, 2, 0);
    rigs[4].right.width = 320;
    for (int i = 0; i < 5; i++) {
        us_rectification r;
        us_error err = {0};
        assert_int_equal(us_rectify_rig(&rigs[i], &r, &err), US_ERR_VALUE);
        assert_true(err.message[0] && err.remedy[0]);
    }
}

// A fish-eye pair is rectified to pinholes.
static void fisheyes_are_rectified(void **state) {
    (void)state;
    us_stereo_rig rig = crooked_rig();
    us_error err = {0};
    rig.left = us_camera_fisheye_from_hfov(640, 480, 100 * PI / 180);
    rig.right = rig.left;
    us_rectification r;
    assert_int_equal(us_rectify_rig(&rig, &r, &err), US_OK);
    assert_true(fabs(r.f - rig.left.fx) < 1e-3 * r.f);
    check_remap(&rig.left, r.q_LN, &r, r.cx_left);
}

static void points_lie_where_the_disparity_says(void **state) {
    (void)state;
    const us_rectification r = {
        .width = 4, .height = 3, .f = 277.12813, .cx_left = 1.5, .cx_right = 1.25, .cy = 1, .baseline = 0.15};
    float disparity[12];
    for (int i = 0; i < 12; i++)
        disparity[i] = -1;
    disparity[6] = 20.785f + 0.25f;
    disparity[7] = 0.2f;  // behind infinity
    us_stereo_point points[12];
    assert_int_equal(us_stereo_points(&r, disparity, -1, NULL, points), 1);
    assert_true(fabs((double)points[6].z - 2) < 1e-4);
    assert_true(fabs((double)points[6].x - 0.5 * 2 / 277.12813) < 1e-6 && points[6].y == 0);
    assert_true(isnan(points[7].z) && isnan(points[0].x));
}

// ---- calibration files ----

static const char left_yaml[] =
    "image_width: 640\nimage_height: 480\ncamera_name: mast/left\ncamera_matrix:\n  rows: 3\n  cols: 3\n"
    "  data: [ 530.9,    0. ,  319.2,\n            0. ,  531.3,  241.7,\n            0. ,    0. ,    1. ]\n"
    "distortion_model: plumb_bob\ndistortion_coefficients:\n  rows: 1\n  cols: 5\n"
    "  data: [-0.28, 0.09, 0.0005, -0.0003, -0.012]\nrectification_matrix:\n  rows: 3\n  cols: 3\n"
    "  data: [0.99995, 0.0, 0.0099998333,\n   0, 1, 0,\n   -0.0099998333, 0, 0.99995]\n"
    "projection_matrix:\n  rows: 3\n  cols: 4\n  data: [500, 0, 315.5, 0, 0, 500, 240.5, 0, 0, 0, 1, 0]\n";

static us_status decode(const char *text, us_calibration *out, us_error *err) {
    return us_calibration_decode("left.yaml", text, strlen(text), out, err);
}

static void a_calibration_is_read_whole(void **state) {
    (void)state;
    us_calibration c;
    us_error err = {0};
    if (decode(left_yaml, &c, &err)) fail_msg("%s", err.message);
    assert_int_equal(c.width, 640);
    assert_int_equal(c.height, 480);
    assert_string_equal(c.name, "mast/left");
    assert_string_equal(c.info.distortion_model, "plumb_bob");
    assert_int_equal(c.info.n_d, 5);
    assert_true(c.info.d[4] == -0.012 && c.info.k[0] == 530.9 && c.info.k[5] == 241.7 &&
                c.info.p[2] == 315.5);
    us_camera_model m;
    assert_int_equal(us_camera_from_info(&c.info, c.width, c.height, &m, &err), US_OK);

    // The right camera: turned the other way, and 0.12 m to the right.
    us_calibration right = c;
    right.info.p[3] = -0.12 * 500;
    right.info.r[2] = -right.info.r[2];
    right.info.r[6] = -right.info.r[6];
    us_rectification r;
    assert_int_equal(us_rectify_calibration(&c.info, &right.info, 640, 480, &r, &err), US_OK);
    assert_true(fabs(r.baseline - 0.12) < 1e-12 && r.f == 500 && r.cx_left == 315.5 && r.cy == 240.5);
    // R takes the real frame to the ideal one: its rows are N's axes in the real frame.
    const us_vec3 z = us_quat_rotate(r.q_LN, us_vec3_make(0, 0, 1));
    assert_true(fabs(z.x + 0.0099998333) < 1e-6 && fabs(z.z - 0.99995) < 1e-6);
    check_remap(&m, r.q_LN, &r, r.cx_left);

    assert_int_equal(us_rectify_calibration(&right.info, &c.info, 640, 480, &r, &err), US_ERR_VALUE);
    right.info.r[0] = 2;
    assert_int_equal(us_rectify_calibration(&c.info, &right.info, 640, 480, &r, &err), US_ERR_VALUE);
    right.info.p[0] = 400;
    assert_int_equal(us_rectify_calibration(&c.info, &right.info, 640, 480, &r, &err), US_ERR_VALUE);
    assert_true(err.remedy[0]);
}

// Each broken in one place; the line is where.
static void broken_calibrations_are_refused_with_their_line(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        int line;
    } change[] = {{"640", "none", 1},
                  {"480", "0", 2},
                  {"530.9", "5x0", 7},
                  {"0. ,  531.3", "", 9},
                  {"530.9,", "530.9, 1, 2, 3,", 9},
                  {"[-0.28", "-0.28", 14},
                  {"-0.012]", "-0.012, 1, 2, 3, 4, 5]", 14},
                  {"plumb_bob", "thin_prism", 0},
                  {"530.9", "-530.9", 0},
                  {"image_width", "width", 0},
                  {"-0.28,", "nan,", 14},
                  {"0, 0, 0, 1, 0]\n", "0, 0, 0, 1, 0", 24}};
    for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
        char text[2000];
        const char *at = strstr(left_yaml, change[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - left_yaml), left_yaml, change[i].to,
                 at + strlen(change[i].from));
        us_calibration c;
        us_error err = {0};
        if (decode(text, &c, &err) != US_ERR_SYNTAX) fail_msg("change %zu is taken", i);
        if (err.line != change[i].line) fail_msg("change %zu: line %d: %s", i, (int)err.line, err.message);
        assert_true(err.message[0] && err.remedy[0]);
        assert_string_equal(err.file, "left.yaml");
    }
    us_calibration c;
    us_error err = {0};
    assert_int_equal(us_calibration_read("missing.yaml", &c, &err), US_ERR_IO);
    assert_int_equal(decode("", &c, &err), US_ERR_SYNTAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rectified_frames_are_parallel_and_side_by_side),
        cmocka_unit_test(rectified_pictures_show_what_the_ideal_camera_sees),
        cmocka_unit_test(rigs_that_cannot_be_rectified_are_named),
        cmocka_unit_test(fisheyes_are_rectified),
        cmocka_unit_test(points_lie_where_the_disparity_says),
        cmocka_unit_test(a_calibration_is_read_whole),
        cmocka_unit_test(broken_calibrations_are_refused_with_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

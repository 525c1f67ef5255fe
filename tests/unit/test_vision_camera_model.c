// Camera models: values worked out by hand, there and back, ranges, and camera_info.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/camera_model.h"

static const double PI = 3.14159265358979323846;

// Brown-Conrady with all coefficients; those of the first check of the distortion below.
static us_camera_model distorted_pinhole(void) {
    us_camera_model m = us_camera_from_hfov(640, 480, 60 * PI / 180);
    m.k[0] = -0.28;
    m.k[1] = 0.09;
    m.k[2] = 0.0005;
    m.k[3] = -0.0003;
    m.k[4] = -0.012;
    return m;
}

static us_camera_model rational_pinhole(void) {
    us_camera_model m = distorted_pinhole();
    m.k[5] = 0.05;
    m.k[6] = -0.01;
    m.k[7] = 0.002;
    return m;
}

static us_camera_model fisheye(double hfov_deg) {
    us_camera_model m = us_camera_fisheye_from_hfov(800, 600, hfov_deg * PI / 180);
    m.k[0] = -0.02;
    m.k[1] = 0.004;
    m.k[2] = -0.0012;
    m.k[3] = 0.0001;
    return m;
}

// Vectors of a camera that looks along +z, turned by some thousandths, whose optical axis O is not quite A.
static us_camera_model cahvor(void) {
    us_camera_model m = {.kind = US_CAMERA_CAHVOR, .width = 1024, .height = 768};
    const us_quat turn = us_quat_from_rpy(0.01, -0.02, 0.03), off = us_quat_from_rpy(0.004, 0.003, 0);
    m.C = us_vec3_make(0.01, -0.02, 0.005);
    m.A = us_quat_rotate(turn, us_vec3_make(0, 0, 1));
    m.O = us_quat_rotate(us_quat_mul(turn, off), us_vec3_make(0, 0, 1));
    m.H = us_vec3_add(us_vec3_scale(900, us_quat_rotate(turn, us_vec3_make(1, 0, 0))),
                      us_vec3_scale(511.5, m.A));
    m.V = us_vec3_add(us_vec3_scale(901, us_quat_rotate(turn, us_vec3_make(0, 1, 0))),
                      us_vec3_scale(383.5, m.A));
    m.R = us_vec3_make(0.0003, 0.05, -0.02);
    return m;
}

static us_camera_model cahvore(double linearity) {
    us_camera_model m = cahvor();
    m.kind = US_CAMERA_CAHVORE;
    m.E = us_vec3_make(0.004, -0.0005, 0.0002);
    m.linearity = linearity;
    m.H = us_vec3_add(us_vec3_scale(0.4, us_vec3_sub(m.H, us_vec3_scale(511.5, m.A))),
                      us_vec3_scale(511.5, m.A));
    m.V = us_vec3_add(us_vec3_scale(0.4, us_vec3_sub(m.V, us_vec3_scale(383.5, m.A))),
                      us_vec3_scale(383.5, m.A));
    return m;
}

static us_camera_model prepared(us_camera_model m) {
    us_error err = {0};
    assert_int_equal(us_camera_prepare(&m, &err), US_OK);
    return m;
}

static void focal_length_follows_from_the_field_of_view(void **state) {
    (void)state;
    us_camera_model m = us_camera_from_hfov(320, 240, 60 * PI / 180);
    assert_true(fabs(m.fx - 277.12813) < 1e-5);
    assert_true(m.fx == m.fy && m.cx == 159.5 && m.cy == 119.5);
    // The edge of the picture is half a pixel beyond the centre of its last pixel.
    double u, v;
    assert_true(us_camera_project(&m, us_vec3_make(tan(30 * PI / 180), 0, 1), &u, &v));
    assert_true(fabs(u - 319.5) < 1e-9 && fabs(v - 119.5) < 1e-9);
    assert_false(us_camera_project(&m, us_vec3_make(0, 0, -1), &u, &v));
    assert_false(us_camera_project(&m, us_vec3_make(0, 0, 0), &u, &v));
}

static void brown_conrady_has_the_values_of_the_formula(void **state) {
    (void)state;
    us_camera_model m = prepared(distorted_pinhole());
    double u, v;
    assert_true(us_camera_project(&m, us_vec3_make(0.4, -0.3, 1), &u, &v));
    assert_true(fabs((u - m.cx) / m.fx - 0.373884) < 1e-12);
    assert_true(fabs((v - m.cy) / m.fy + 0.28034425) < 1e-12);
}

static void equidistant_has_the_values_of_the_formula(void **state) {
    (void)state;
    us_camera_model m = us_camera_fisheye_from_hfov(900, 900, PI);
    m.k[0] = 0.1;
    m = prepared(m);
    double u, v;
    // 45 degrees to the right: theta (1 + 0.1 theta^2).
    assert_true(us_camera_project(&m, us_vec3_make(1, 0, 1), &u, &v));
    assert_true(fabs(u - (449.5 + 900 / PI * (PI / 4) * (1 + 0.1 * PI * PI / 16))) < 1e-10);
    assert_true(fabs(v - 449.5) < 1e-10);
    // Beside and behind the camera.
    assert_true(us_camera_project(&m, us_vec3_make(0, 1, 0), &u, &v));
    assert_true(us_camera_project(&m, us_vec3_make(0, 1, -0.5), &u, &v));
    assert_true(v > 449.5 + 450);
}

// CAHVOR and CAHVORE by their defining equations, written out for one point.
static void cahvor_has_the_values_of_its_equations(void **state) {
    (void)state;
    us_camera_model m = prepared(cahvor());
    const us_vec3 p = us_vec3_make(0.7, -0.4, 2.1), d = us_vec3_sub(p, m.C);
    const double zeta = us_vec3_dot(d, m.O);
    const us_vec3 lambda = us_vec3_sub(d, us_vec3_scale(zeta, m.O));
    const double tau = us_vec3_dot(lambda, lambda) / (zeta * zeta),
                 mu = m.R.x + m.R.y * tau + m.R.z * tau * tau;
    const us_vec3 bent = us_vec3_add(d, us_vec3_scale(mu, lambda));
    double u, v;
    assert_true(us_camera_project(&m, p, &u, &v));
    assert_true(fabs(u - us_vec3_dot(bent, m.H) / us_vec3_dot(bent, m.A)) < 1e-10);
    assert_true(fabs(v - us_vec3_dot(bent, m.V) / us_vec3_dot(bent, m.A)) < 1e-10);

    // CAHVORE of linearity 1 and without E is CAHVOR.
    m.kind = US_CAMERA_CAHVORE;
    m.linearity = 1;
    m = prepared(m);
    double u2, v2;
    assert_true(us_camera_project(&m, p, &u2, &v2));
    assert_true(fabs(u2 - u) < 1e-9 && fabs(v2 - v) < 1e-9);
}

static void the_entrance_pupil_of_cahvore_moves(void **state) {
    (void)state;
    us_camera_model m = prepared(cahvore(0));
    us_vec3 direction, origin;
    assert_true(us_camera_unproject(&m, 900, 600, &direction, &origin));
    const double theta = acos(us_vec3_dot(direction, m.O)), t2 = theta * theta;
    const double far_along = (theta / sin(theta) - 1) * (m.E.x + m.E.y * t2 + m.E.z * t2 * t2);
    const us_vec3 expected = us_vec3_add(m.C, us_vec3_scale(far_along, m.O));
    assert_true(theta > 0.5 && far_along > 1e-4);
    assert_true(us_vec3_norm(us_vec3_sub(origin, expected)) < 1e-14);
}

// Every fifth pixel of the picture and some beyond it: its ray, and a point of the ray back to a pixel. 1e-10
// rad is 1e-7 px here; a point is at 0.3 to 30 m.
static int there_and_back(us_camera_model m) {
    m = prepared(m);
    int n = 0;
    for (int y = -20; y < m.height + 20; y += 5)
        for (int x = -20; x < m.width + 20; x += 5) {
            us_vec3 direction, origin;
            double u, v;
            if (!us_camera_unproject(&m, x, y, &direction, &origin)) continue;
            assert_true(fabs(us_vec3_norm(direction) - 1) < 1e-14);
            const double distance = 0.3 * (1 + (n % 100));
            const us_vec3 p = us_vec3_add(origin, us_vec3_scale(distance, direction));
            // The last pixel before the limit may fall on its other side.
            if (!us_camera_project(&m, p, &u, &v)) continue;
            if (!(hypot(u - x, v - y) < 1e-10 * m.width))
                fail_msg("(%d, %d) comes back as (%.15g, %.15g)", x, y, u, v);
            n++;
        }
    return n;
}

static void a_pixel_comes_back_from_its_ray(void **state) {
    (void)state;
    assert_int_equal(there_and_back(us_camera_from_hfov(640, 480, 90 * PI / 180)), 136 * 104);
    assert_int_equal(there_and_back(distorted_pinhole()), 136 * 104);
    assert_int_equal(there_and_back(rational_pinhole()), 136 * 104);
    assert_int_equal(there_and_back(fisheye(110)), 168 * 128);
    assert_int_equal(there_and_back(fisheye(190)), 168 * 128);
    const double linearity[] = {1, 0.5, 0, -0.5, -1};
    assert_int_equal(there_and_back(cahvor()), 213 * 162);
    for (int i = 0; i < 5; i++)
        // An orthographic lens puts half of the world into a circle of 360 pixels: not all pixels have a ray.
        assert_true(there_and_back(cahvore(linearity[i])) > 213 * 162 * 2 / 5);
}

static void a_point_comes_back_from_its_pixel(void **state) {
    (void)state;
    const us_camera_model all[] = {prepared(distorted_pinhole()), prepared(rational_pinhole()),
                                   prepared(fisheye(150)), prepared(cahvor())};
    for (int k = 0; k < 4; k++)
        for (uint64_t i = 0; i < 1000; i++) {
            const us_vec3 p =
                us_vec3_make(us_random_uniform(k, 0, i) - 0.5, us_random_uniform(k, 1, i) - 0.5, 1);
            double u, v;
            us_vec3 d, o;
            assert_true(us_camera_project(&all[k], p, &u, &v));
            assert_true(us_camera_unproject(&all[k], u, v, &d, &o));
            const us_vec3 there = us_vec3_sub(p, o);
            assert_true(us_vec3_norm(us_vec3_cross(there, d)) < 1e-10);
        }
}

// Strong barrel distortion turns back at some radius: what lies farther out is not seen, though the
// polynomial would put it into the middle of the picture.
static void what_is_beyond_the_range_of_the_model_is_not_seen(void **state) {
    (void)state;
    us_camera_model m = us_camera_from_hfov(640, 480, 60 * PI / 180);
    m.k[0] = -0.5;
    m = prepared(m);
    // d(s - 0.5 s^3)/ds = 0 at s = sqrt(2 / 3).
    assert_true(fabs(m.limit - sqrt(2.0 / 3)) < 1e-12);
    double u, v;
    us_vec3 d;
    assert_true(us_camera_project(&m, us_vec3_make(0.8164, 0, 1), &u, &v));
    assert_false(us_camera_project(&m, us_vec3_make(0.8166, 0, 1), &u, &v));
    assert_false(us_camera_project(&m, us_vec3_make(1.4, 0, 1), &u, &v));
    const double edge = m.limit * (1 - 0.5 * m.limit * m.limit);
    assert_true(us_camera_unproject(&m, m.cx + m.fx * (edge - 1e-6), m.cy, &d, NULL));
    assert_false(us_camera_unproject(&m, m.cx + m.fx * (edge + 1e-6), m.cy, &d, NULL));
    // A second range, farther out, where the polynomial grows again.
    m.k[1] = 0.1;
    m = prepared(m);
    assert_true(m.limit < 1.2);
    assert_false(us_camera_project(&m, us_vec3_make(3, 0, 1), &u, &v));
}

static void impossible_cameras_are_refused(void **state) {
    (void)state;
    us_camera_model all[9];
    for (int i = 0; i < 7; i++)
        all[i] = distorted_pinhole();
    all[0].width = 0;
    all[1].height = 70000;
    all[2].fx = 0;
    all[3].fy = NAN;
    all[4].cx = INFINITY;
    all[5].k[1] = NAN;
    all[6].kind = (us_camera_kind)9;
    all[7] = cahvor();
    all[7].A = us_vec3_make(0, 0, 2);
    all[8] = cahvor();
    all[8].V = all[8].H;
    for (int i = 0; i < 9; i++) {
        us_error err = {0};
        assert_int_equal(us_camera_prepare(&all[i], &err), US_ERR_VALUE);
        assert_true(err.message[0] && err.remedy[0]);
    }
}

// The picture that camera_info promises: its own formulas, as a subscriber would write them.
static void project_by_info(const us_camera_info *info, us_vec3 p, double *u, double *v) {
    const double *d = info->d;
    double x = p.x / p.z, y = p.y / p.z;
    const double r2 = x * x + y * y;
    double xd, yd;
    if (strcmp(info->distortion_model, "equidistant") == 0) {
        const double r = sqrt(r2), t = atan(r), t2 = t * t;
        const double s = t * (1 + d[0] * t2 + d[1] * t2 * t2 + d[2] * pow(t2, 3) + d[3] * pow(t2, 4)) / r;
        xd = s * x;
        yd = s * y;
    } else {
        double f = 1 + d[0] * r2 + d[1] * r2 * r2 + d[4] * pow(r2, 3);
        if (info->n_d == 8) f /= 1 + d[5] * r2 + d[6] * r2 * r2 + d[7] * pow(r2, 3);
        xd = f * x + 2 * d[2] * x * y + d[3] * (r2 + 2 * x * x);
        yd = f * y + d[2] * (r2 + 2 * y * y) + 2 * d[3] * x * y;
    }
    *u = info->k[0] * xd + info->k[2];
    *v = info->k[4] * yd + info->k[5];
}

static void camera_info_projects_as_the_camera_does(void **state) {
    (void)state;
    const us_camera_model all[] = {prepared(distorted_pinhole()), prepared(rational_pinhole()),
                                   prepared(fisheye(120))};
    const char *const names[] = {"plumb_bob", "rational_polynomial", "equidistant"};
    for (int k = 0; k < 3; k++) {
        us_camera_info info;
        us_error err = {0};
        assert_int_equal(us_camera_get_info(&all[k], &info, &err), US_OK);
        assert_string_equal(info.distortion_model, names[k]);
        assert_true(info.max_error == 0);
        for (int i = 0; i < 100; i++) {
            const us_vec3 p = us_vec3_make(0.08 * (i % 10) - 0.37, 0.07 * (i / 10) - 0.31, 1.1);
            double u, v, u2, v2;
            assert_true(us_camera_project(&all[k], p, &u, &v));
            project_by_info(&info, p, &u2, &v2);
            assert_true(hypot(u - u2, v - v2) < 1e-9);
        }
        us_camera_model back;
        assert_int_equal(us_camera_from_info(&info, all[k].width, all[k].height, &back, &err), US_OK);
        assert_true(back.kind == all[k].kind && back.fx == all[k].fx && back.cy == all[k].cy);
        assert_memory_equal(back.k, all[k].k, sizeof back.k);
    }
}

static void cahvor_gets_the_nearest_model_with_a_name(void **state) {
    (void)state;
    us_camera_info info;
    us_error err = {0};
    // O along A: CAHVOR is Brown-Conrady, with f = 900 (1 + R0) and k1 = R1 / (1 + R0).
    us_camera_model m = cahvor();
    m.A = m.O = us_vec3_make(0, 0, 1);
    m.H = us_vec3_make(900, 0, 511.5);
    m.V = us_vec3_make(0, 901, 383.5);
    m = prepared(m);
    assert_int_equal(us_camera_get_info(&m, &info, &err), US_OK);
    assert_string_equal(info.distortion_model, "plumb_bob");
    assert_true(info.max_error < 1e-6);
    assert_true(fabs(info.k[0] - 900 * 1.0003) < 1e-4 && fabs(info.d[0] - 0.05 / 1.0003) < 1e-5);

    // An axis that is a little off A: not exactly, and it is said how far.
    m.O = us_quat_rotate(us_quat_from_rpy(0.004, 0.003, 0), m.A);
    m = prepared(m);
    assert_int_equal(us_camera_get_info(&m, &info, &err), US_OK);
    assert_true(info.max_error > 1e-4 && info.max_error < 0.5);

    // Wide: equidistant.
    m = cahvore(0);
    m.A = m.O = us_vec3_make(0, 0, 1);
    m.H = us_vec3_make(360, 0, 511.5);
    m.V = us_vec3_make(0, 360, 383.5);
    m = prepared(m);
    assert_int_equal(us_camera_get_info(&m, &info, &err), US_OK);
    assert_string_equal(info.distortion_model, "equidistant");
    assert_true(info.max_error < 1e-6);
}

static void camera_info_that_is_not_understood_is_refused(void **state) {
    (void)state;
    us_camera_model m;
    us_camera_info info;
    us_error err = {0};
    const us_camera_model good = prepared(distorted_pinhole());
    assert_int_equal(us_camera_get_info(&good, &info, &err), US_OK);
    info.distortion_model = "thin_prism";
    assert_int_equal(us_camera_from_info(&info, 640, 480, &m, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "thin_prism"));
    info.distortion_model = "equidistant";
    assert_int_equal(us_camera_from_info(&info, 640, 480, &m, &err), US_ERR_VALUE);
    info.distortion_model = NULL;
    assert_int_equal(us_camera_from_info(&info, 640, 480, &m, &err), US_ERR_VALUE);
    info.distortion_model = "plumb_bob";
    info.k[0] = 0;
    assert_int_equal(us_camera_from_info(&info, 640, 480, &m, &err), US_ERR_VALUE);
    assert_true(err.remedy[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(focal_length_follows_from_the_field_of_view),
        cmocka_unit_test(brown_conrady_has_the_values_of_the_formula),
        cmocka_unit_test(equidistant_has_the_values_of_the_formula),
        cmocka_unit_test(cahvor_has_the_values_of_its_equations),
        cmocka_unit_test(the_entrance_pupil_of_cahvore_moves),
        cmocka_unit_test(a_pixel_comes_back_from_its_ray),
        cmocka_unit_test(a_point_comes_back_from_its_pixel),
        cmocka_unit_test(what_is_beyond_the_range_of_the_model_is_not_seen),
        cmocka_unit_test(impossible_cameras_are_refused),
        cmocka_unit_test(camera_info_projects_as_the_camera_does),
        cmocka_unit_test(cahvor_gets_the_nearest_model_with_a_name),
        cmocka_unit_test(camera_info_that_is_not_understood_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

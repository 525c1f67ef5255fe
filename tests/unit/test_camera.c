// Pictures of cameras: where things are seen through every lens, how bright they are, and where shadows end.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "camera_rig.h"
#include "sense/image_sensor.h"
#include "understudy/vision.h"

static const double PI = 3.14159265358979323846;

// ---------------------------------------------------------------- geometry

static const char *const lenses[] = {
    "model=\"pinhole\"",
    "model=\"pinhole\" k1=\"-0.28\" k2=\"0.09\" p1=\"0.0005\" p2=\"-0.0003\" k3=\"-0.012\" centre-x=\"2.3\"",
    "model=\"pinhole\" k1=\"-0.2\" k2=\"0.02\" k4=\"0.05\" k5=\"0.01\" k6=\"0.002\" aspect=\"1.1\"",
    "model=\"fisheye\" fov=\"150 deg\" k1=\"-0.02\" k2=\"0.004\" k3=\"-0.001\" k4=\"0.0002\"",
    "model=\"cahvor\" a-x=\"0.001\" a-y=\"-0.0005\" o-x=\"0.01\" r0=\"0.01\" r1=\"0.05\" r2=\"-0.01\"",
    "model=\"cahvore\" r1=\"0.02\" e0=\"0.0002\" e1=\"0.0001\" linearity=\"0.6\"",
};
enum { N_LENS = sizeof lenses / sizeof *lenses };

// The depths of a plane n . p = b of the optical frame, 50 m away, where a pixel looks: n . (x, y, 1) = b /
// z. In the world the camera looks along x: optical x is -y, and optical y is -z.
static void look_at_plane(const char *lens, us_vec3 n, double b, camera_rig *r) {
    char world[400], sensor[400];
    const us_vec3 up = us_vec3_make(-n.z, n.x, n.y);  // of the half space, towards the camera
    const double yaw = atan2(up.y, up.x), pitch = atan2(hypot(up.x, up.y), up.z);
    snprintf(world, sizeof world,
             "<shape type=\"half-space\" xyz=\"%.17g %.17g %.17g\" rpy=\"0 %.17g %.17g\"/>", -b * up.x,
             -b * up.y, -b * up.z, pitch, yaw);
    snprintf(sensor, sizeof sensor, "rate=\"10 Hz\" width=\"64\" height=\"48\" %s", lens);
    camera_rig_init(r, world, sensor, 1);
}

// Two planes say in which direction a pixel looks; the lens, and the lens that camera_info describes, put
// that direction there.
static void points_are_seen_where_the_lens_and_its_camera_info_put_them(void **state) {
    (void)state;
    const double far = 50;  // m; entrance pupils move by a fraction of a millimetre
    for (int k = 0; k < N_LENS; k++) {
        const us_vec3 normals[2] = {{sin(0.3), 0, cos(0.3)}, {0, sin(0.3), cos(0.3)}};
        camera_rig r[2];
        us_camera_info info;
        us_camera_model described;
        for (int i = 0; i < 2; i++)
            look_at_plane(lenses[k], normals[i], far, &r[i]);
        assert_int_equal(us_camera_get_info(&r[0].lens, &info, NULL), US_OK);
        assert_int_equal(us_camera_from_info(&info, 64, 48, &described, NULL), US_OK);
        assert_true(info.max_error < 0.01);
        int32_t n = 0;
        for (int32_t at = 0; at < 64 * 48; at++) {
            const double z[2] = {(double)r[0].depth[at], (double)r[1].depth[at]};
            if (!isfinite(z[0]) || !isfinite(z[1]) || !(z[0] > 1) || !(z[1] > 1)) continue;
            const us_vec3 d =
                us_vec3_make((far / z[0] - cos(0.3)) / sin(0.3), (far / z[1] - cos(0.3)) / sin(0.3), 1);
            double u, v;
            assert_true(us_camera_project(&r[0].lens, us_vec3_scale(far, d), &u, &v));
            assert_true(hypot(u - at % 64, v - at / 64) < 0.01);
            assert_true(us_camera_project(&described, us_vec3_scale(far, d), &u, &v));
            assert_true(hypot(u - at % 64, v - at / 64) < 0.01);
            n++;
        }
        // All pixels of a narrow lens; of a wide one those that see both planes.
        assert_true(n > (k == 3 ? 600 : 64 * 48 - 1));
        camera_rig_fini(&r[0]);
        camera_rig_fini(&r[1]);
    }
}

static void nothing_is_infinitely_far_and_as_bright_as_the_sky(void **state) {
    (void)state;
    camera_rig r;
    camera_rig_init(&r, "<light sky=\"31.4159265358979\"/>", "width=\"9\" height=\"9\"", 1);
    for (int32_t at = 0; at < 81; at++) {
        assert_true(isinf(r.depth[at]) && r.shape[at] == -1);
        const float expected = at / 9 < 4 ? 10.0f : 0.0f;  // the middle row is level
        if (at / 9 != 4) assert_true(fabsf(r.radiance[at][1] - expected) < 1e-5f);
    }
    camera_rig_fini(&r);
}

// ---------------------------------------------------------------- light

// Where the ray of a pixel meets the unit sphere around (5, 0, 0), in the world.
static bool meet_sphere(const camera_rig *r, int32_t u, int32_t v, us_vec3 *out_normal) {
    us_vec3 d, o;
    assert_true(us_camera_unproject(&r->lens, u, v, &d, &o));
    const us_vec3 w = us_vec3_make(d.z, -d.x, -d.y), c = us_vec3_make(5, 0, 0);
    const double along = us_vec3_dot(w, c), room = along * along - (us_vec3_dot(c, c) - 1);
    if (room < 1e-3) return false;  // nothing, or at the very edge
    *out_normal = us_vec3_sub(us_vec3_scale(along - sqrt(room), w), c);
    return true;
}

static void a_rough_sphere_is_as_bright_as_its_formula(void **state) {
    (void)state;
    camera_rig r;
    // Colours are numbers of sRGB: 0.5 is 21.404 % of the light.
    camera_rig_init(&r,
                    "<light direction=\"-1 1 0.5\" sun=\"1000\" sky=\"50\"/>"
                    "<shape type=\"sphere\" size=\"1\" xyz=\"5 0 0\" rgba=\"0.5 1 0.5 1\"/>",
                    "width=\"120\" height=\"120\" fov=\"26 deg\"", 1);
    const us_vec3 sun = us_vec3_scale(1 / 1.5, us_vec3_make(-1, 1, 0.5));
    int32_t n = 0;
    for (int32_t at = 0; at < 120 * 120; at++) {
        us_vec3 normal;
        if (!meet_sphere(&r, at % 120, at / 120, &normal)) continue;
        const double light = 1000 * fmax(0, us_vec3_dot(normal, sun)) + 25 * (1 + normal.z);
        const double red = 0.21404114 / PI * light, green = light / PI;
        assert_true(fabs((double)r.radiance[at][0] - red) <= 1e-3 * red + 1e-9);
        assert_true(fabs((double)r.radiance[at][1] - green) <= 1e-3 * green + 1e-9);
        n++;
    }
    assert_true(n > 6000);
    camera_rig_fini(&r);
}

// The laws as their authors wrote them.
static double lommel_seeliger(double w, double mu0, double mu) { return w / (4 * PI) * mu0 / (mu0 + mu); }
static double chandrasekhar(double x, double w) { return (1 + 2 * x) / (1 + 2 * x * sqrt(1 - w)); }
static double hapke(double w, double b, double b0, double h, double mu0, double mu, double g) {
    const double surge = b0 / (1 + tan(g / 2) / h);
    const double phase = (1 - b * b) / pow(1 - 2 * b * cos(g) + b * b, 1.5);
    return lommel_seeliger(w, mu0, mu) *
           ((1 + surge) * phase + chandrasekhar(mu0, w) * chandrasekhar(mu, w) - 1);
}

static void spheres_of_dust_are_as_bright_as_their_formulas(void **state) {
    (void)state;
    for (int law = 0; law < 2; law++) {
        camera_rig r;
        // The Sun stands behind the camera, almost: there is a surge.
        camera_rig_init_with(
            &r,
            "<light direction=\"-1 0.1 0.05\" sun=\"1361\" sky=\"0\"/>"
            "<shape type=\"sphere\" size=\"1\" xyz=\"5 0 0\" rgba=\"0.5 0.5 0.5 1\" "
            "surface=\"dust\"/>",
            law ? "<material name=\"dust\"><string key=\"reflection\" value=\"hapke\"/>"
                  "<number key=\"hapke-b\" value=\"0.3\"/><number key=\"hapke-b0\" value=\"1.5\"/>"
                  "<number key=\"hapke-h\" value=\"0.05\"/></material>"
                : "<material name=\"dust\"><string key=\"reflection\" "
                  "value=\"lommel-seeliger\"/></material>",
            "width=\"120\" height=\"120\" fov=\"26 deg\"", 1);
        const us_vec3 toward = us_vec3_make(-1, 0.1, 0.05),
                      sun = us_vec3_scale(1 / us_vec3_norm(toward), toward);
        const double colour = 0.21404114, w = 1 - pow((1 - colour) / (1 + colour), 2);
        int32_t n = 0;
        for (int32_t at = 0; at < 120 * 120; at++) {
            us_vec3 normal, d, o;
            if (!meet_sphere(&r, at % 120, at / 120, &normal)) continue;
            assert_true(us_camera_unproject(&r.lens, at % 120, at / 120, &d, &o));
            const us_vec3 eye = us_vec3_make(-d.z, d.x, d.y);
            const double mu0 = us_vec3_dot(normal, sun), mu = us_vec3_dot(normal, eye),
                         g = acos(us_vec3_dot(eye, sun));
            if (mu0 < 1e-3) continue;
            const double expected =
                1361 * (law ? hapke(w, 0.3, 1.5, 0.05, mu0, mu, g) : lommel_seeliger(8 * colour, mu0, mu));
            assert_true(fabs((double)r.radiance[at][1] / expected - 1) < 1e-3);
            n++;
        }
        assert_true(n > 6000);
        camera_rig_fini(&r);
    }
}

// A wall 1 m high with its far edge over the origin, the Sun behind it 30 degrees high: the shadow ends
// sqrt(3) m away. A camera over that place sees half a millimetre in each pixel.
static void a_shadow_ends_where_the_sun_shines_over_the_wall(void **state) {
    (void)state;
    camera_rig r;
    camera_rig_init(
        &r,
        "<light direction=\"0.86602540378443865 0 0.5\" sky=\"0\"/>"
        "<shape type=\"half-space\"/><shape type=\"box\" size=\"0.1 2 1\" xyz=\"0.05 0 0.5\"/>",
        "xyz=\"-1.7320508075688772 0 10\" rpy=\"0 90 0 deg\" width=\"5\" height=\"401\" fov=\"0.00025 rad\"",
        1);
    // The camera looks down with its top towards x. What is lit lies below.
    int32_t n_dark = 0, n_change = 0;
    for (int32_t v = 0; v < 401; v++) {
        const bool is_dark = r.radiance[v * 5 + 2][1] == 0;
        const bool was_dark = v == 0 || r.radiance[(v - 1) * 5 + 2][1] == 0;
        n_dark += is_dark;
        n_change += is_dark != was_dark;
    }
    assert_int_equal(n_change, 1);
    assert_true(abs(n_dark - 200) <= 1);
    camera_rig_fini(&r);
}

// Over the same wall the disc of the Sun goes down: its free share where the edge stands at t of its radius
// is that of a circle beside a line.
static void a_penumbra_has_the_shades_of_a_disc_behind_an_edge(void **state) {
    (void)state;
    camera_rig r;
    camera_rig_init_with(
        &r,
        "<light direction=\"0.86602540378443865 0 0.5\" sky=\"0\"/>"
        "<shape type=\"half-space\" surface=\"plain\"/><shape type=\"box\" size=\"0.1 2 1\" xyz=\"0.05 0 "
        "0.5\"/>",
        "<material name=\"plain\"><number key=\"texture\" value=\"0\"/></material>",
        "xyz=\"-1.7320508075688772 0 10\" rpy=\"0 90 0 deg\" width=\"5\" height=\"401\" fov=\"0.00025 rad\" "
        "shadows=\"soft\"",
        1);
    const double full = (double)r.radiance[400 * 5 + 2][1];
    double first = 0, last = 0;
    for (int32_t v = 0; v < 401; v++) {
        const double x = 1.7320508075688772 + 0.0005 * (v - 200), angle = atan2(1, x) - PI / 6,
                     t = fmax(-1, fmin(1, -angle / 0.004653)),
                     share = 0.5 + (asin(t) + t * sqrt(1 - t * t)) / PI,
                     seen = (double)r.radiance[v * 5 + 2][1] / full;
        assert_true(fabs(seen - share) < 0.05);
        if (seen > 0.1 && first == 0) first = x;
        if (seen < 0.9) last = x;
    }
    // 2 m of light's way times 9.3 mrad, square to it; twice that on the ground. From a tenth to nine
    // tenths of the light it is 0.6870 of that.
    assert_true(fabs((last - first) / 0.6870 - 0.0372) < 0.002);
    camera_rig_fini(&r);
}

// A lamp 2 m over the ground: 20 W / (2 pi (1 - cos 20 deg)) = 52.78 W/sr into its cone, nothing beside it,
// nothing behind a plate.
static void a_lamp_lights_its_cone_by_the_square_of_the_distance(void **state) {
    (void)state;
    static const char world[] = "<light sun=\"0\" sky=\"0\"/><shape type=\"half-space\" surface=\"plain\" "
                                "rgba=\"1 1 1 1\"/>";
    static const char plate[] = "<shape type=\"box\" size=\"0.2 0.2 0.01\" xyz=\"0.1 0 1.5\"/>";
    static const char plain[] = "<material name=\"plain\"><number key=\"texture\" value=\"0\"/></material>";
    for (int k = 0; k < 2; k++) {
        char all[600];
        camera_rig r;
        snprintf(all, sizeof all, "%s%s", world, k ? plate : "");
        camera_rig_init_with(
            &r, all, plain,
            "xyz=\"0 0 1\" rpy=\"0 90 0 deg\" width=\"81\" height=\"81\" fov=\"90 deg\"/>"
            "<light name=\"lamp\" link=\"base\" xyz=\"0 0 2\" rpy=\"0 90 0 deg\" power=\"20 W\" "
            "cone=\"40 deg\" green=\"0.5\" ",
            1);
        for (int32_t at = 0; at < 81 * 81; at++) {
            // The camera is 1 m high, its top towards x, its right towards -y.
            const double x = -(at / 81 - 40) / r.lens.fy, y = -(at % 81 - 40) / r.lens.fx,
                         d2 = x * x + y * y + 4, along = 2 / sqrt(d2);
            const double expected =
                along > cos(PI / 9) ? 20 / (2 * PI * (1 - cos(PI / 9))) / d2 * along / PI : 0;
            const double red = (double)r.radiance[at][0], green = (double)r.radiance[at][1];
            // The plate's shadow: four times its size and its place, from 2 m down to the ground.
            const bool is_behind = k && x > 0.01 && x < 0.79 && fabs(y) < 0.39;
            if (fabs(along - cos(PI / 9)) < 1e-3 || (k && fabs(x) < 0.9 && !is_behind)) continue;
            assert_true(fabs(red - (is_behind ? 0 : expected)) < 1e-3 * expected + 1e-9);
            assert_true(fabs(green - 0.5 * red) < 1e-6 + 1e-6 * red);
        }
        // Off: by a parameter that can change while it runs; and a dead one.
        const us_sensor lamp = us_model_find_sensor(r.model, "r", "lamp");
        assert_true(us_sim_view_sensor_sample(r.sim, lamp).reading[0] == 20);
        assert_true(r.radiance[20 * 81 + 40][0] > 0 || k);
        assert_int_equal(us_sim_set_sensor_parameter(r.sim, lamp, "on", 0, NULL), US_OK);
        camera_rig_render(&r);
        for (int32_t at = 0; at < 81 * 81; at++)
            assert_true(r.radiance[at][0] == 0);
        camera_rig_fini(&r);
    }
}

static void what_throws_no_shadow_leaves_all_lit(void **state) {
    (void)state;
    camera_rig r;
    static const char world[] = "<light direction=\"1 0 1\" sky=\"0\"/><shape type=\"half-space\"/>"
                                "<shape type=\"box\" size=\"1 2 3\" xyz=\"1 0 1.5\"/>";
    camera_rig_init(&r, world,
                    "xyz=\"-1 0 2\" rpy=\"0 90 0 deg\" width=\"20\" height=\"20\" shadows=\"none\"", 1);
    for (int32_t at = 0; at < 400; at++)
        assert_true(r.radiance[at][1] > 0);
    camera_rig_fini(&r);
    camera_rig_init(&r, world, "xyz=\"-1 0 2\" rpy=\"0 90 0 deg\" width=\"20\" height=\"20\" fov=\"20 deg\"",
                    1);
    for (int32_t at = 0; at < 400; at++)
        assert_true(r.radiance[at][1] == 0);
    camera_rig_fini(&r);
}

// ---------------------------------------------------------------- the chip

static uint32_t number_of(usi_image_sensor s, double electrons) {
    usi_image_sensor_prepare(&s);
    return usi_image_sensor_number(&s, electrons);
}

static void electrons_follow_from_light_by_the_formula(void **state) {
    (void)state;
    usi_image_sensor s = {
        .aperture = 2, .pitch = 4e-6, .efficiency = 0.5, .full_well = 1e4, .gain = 1, .bits = 8};
    // 1 W/(m^2 sr): pi/4 / 4 * 16e-12 m^2 * 0.5 / 3.61171e-19 J
    assert_true(fabs(usi_image_sensor_rate(&s) / 4.3491645e6 - 1) < 1e-5);
    s.is_linear = true;
    assert_int_equal(number_of(s, 5000), 128);
    assert_int_equal(number_of(s, 2e4), 255);
    s.gain = 0.5;
    assert_int_equal(number_of(s, 2e4), 128);  // a full well holds no more
    s.bits = 16;
    s.gain = 2;
    assert_int_equal(number_of(s, 2500), 32768);
    s.is_linear = false;
    s.gain = 1;
    s.bits = 8;
    assert_int_equal(number_of(s, 2145), 128);  // sRGB: 0.5 is 21.404 %
    assert_int_equal(number_of(s, -3), 0);
}

// Photon transfer: over numbers of means from dark to white the variance rises by the gain with the mean,
// from what reading out and rounding add.
static void noise_has_the_variance_of_a_photon_transfer_curve(void **state) {
    (void)state;
    enum { LEVELS = 12, N = 60000 };
    const usi_image_sensor s = {
        .full_well = 1e4, .gain = 1, .read_noise = 12, .has_noise = true, .bits = 16, .is_linear = true};
    const double per_electron = 65535 / 1e4;
    double sw = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int l = 0; l < LEVELS; l++) {
        const double mean = 100 + 700 * l;
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < N; i++) {
            const double x =
                usi_image_sensor_number(&s, usi_image_sensor_expose(&s, mean, 0.01, 7 + (uint64_t)l, 9, i));
            sum += x;
            squares += x * x;
        }
        const double m = sum / N, v = squares / N - m * m;
        assert_true(fabs(m / (per_electron * mean) - 1) < 2e-3);
        // Of a variance known to sqrt(2 / N), all levels count by what they are known to.
        const double w = 1 / (v * v);
        sw += w;
        sx += w * m;
        sy += w * v;
        sxx += w * m * m;
        sxy += w * m * v;
    }
    const double slope = (sw * sxy - sx * sy) / (sw * sxx - sx * sx), start = (sy - slope * sx) / sw;
    const double read = 12 * 12 * per_electron * per_electron + 1.0 / 12;
    assert_true(fabs(slope / per_electron - 1) < 0.01);
    assert_true(fabs(start / read - 1) < 0.03);  // a fifth of the variance at the darkest level
}

static void few_photons_come_one_by_one(void **state) {
    (void)state;
    const usi_image_sensor s = {.full_well = 1e4, .gain = 1, .dark = 20, .has_noise = true};
    int count[8] = {0};
    enum { N = 100000 };
    for (uint64_t i = 0; i < N; i++) {
        // One of light, and two of the dark current in a tenth of a second.
        const double e = usi_image_sensor_expose(&s, 1, 0.1, 3, 4, i);
        assert_true(e == floor(e));
        if (e < 8) count[(int)e]++;
    }
    double share = exp(-3);
    for (int k = 0; k < 8; share *= 3.0 / ++k)
        assert_true(fabs(count[k] - N * share) < 4.5 * sqrt(N * share));
}

static void pixels_have_sensitivities_of_their_own(void **state) {
    (void)state;
    const usi_image_sensor s = {.full_well = 1e9, .gain = 1, .pattern = 0.02, .has_noise = true};
    double sum = 0, squares = 0, product = 0;
    enum { N = 20000 };
    for (uint64_t i = 0; i < N; i++) {
        // So many photons that their own noise is nothing beside it; two pictures of one chip.
        const double a = usi_image_sensor_expose(&s, 1e8, 0, 1, 5, i) / 1e8 - 1,
                     b = usi_image_sensor_expose(&s, 1e8, 0, 2, 5, i) / 1e8 - 1;
        sum += a;
        squares += a * a;
        product += a * b;
    }
    assert_true(fabs(sum / N) < 5 * 0.02 / sqrt(N));
    assert_true(fabs(sqrt(squares / N) / 0.02 - 1) < 0.03);
    assert_true(fabs(product / squares - 1) < 0.01);
}

static void a_picture_without_an_exposure_finds_one(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        camera_rig r;
        camera_rig_init(
            &r,
            k ? "<light direction=\"-1 0 1\" sun=\"3\" sky=\"0\"/><shape type=\"sphere\" size=\"1\" "
                "xyz=\"5 0 0\"/>"
              : "<light direction=\"-1 0 1\" sun=\"1000\" sky=\"0\"/><shape type=\"sphere\" size=\"1\" "
                "xyz=\"5 0 0\"/>",
            "width=\"100\" height=\"100\" pixels=\"mono\" bits=\"16\" "
            "response=\"linear\" noise=\"no\" dark-current=\"0\"",
            1);
        const uint16_t *p = r.image.pixels;
        uint16_t most = 0;
        for (int32_t i = 0; i < 10000; i++)
            most = p[i] > most ? p[i] : most;
        assert_true(most > 0.77 * 65535 && most < 0.87 * 65535);
        camera_rig_fini(&r);
    }
}

// ---------------------------------------------------------------- threads and errors

static void the_same_bytes_by_any_number_of_threads(void **state) {
    (void)state;
    static const char world[] =
        "<shape type=\"height-field\" nx=\"41\" ny=\"41\" dx=\"0.5\" dy=\"0.5\" xyz=\"5 0 -1\" "
        "expression=\"0.3*noise(x, y)\"/><shape type=\"sphere\" size=\"0.5\" xyz=\"4 0.5 0\"/>";
    camera_rig one, three;
    camera_rig_init(&one, world, "width=\"75\" height=\"53\"", 1);
    camera_rig_init(&three, world, "width=\"75\" height=\"53\"", 3);
    assert_int_equal(one.image.format, US_PIXEL_RGB8);
    assert_memory_equal(one.image.pixels, three.image.pixels, one.image.stride * 53);
    assert_memory_equal(one.depth, three.depth, 75 * 53 * sizeof *one.depth);
    const uint8_t first = *(uint8_t *)one.image.pixels;
    camera_rig_render(&one);
    assert_int_equal(*(uint8_t *)one.image.pixels, first);
    camera_rig_fini(&one);
    camera_rig_fini(&three);
}

static void ground_has_a_texture_that_stays_where_it_is(void **state) {
    (void)state;
    camera_rig near, moved;
    static const char world[] = "<shape type=\"half-space\"/>";
    camera_rig_init(&near, world,
                    "xyz=\"0 0 1\" rpy=\"0 90 0 deg\" width=\"100\" height=\"100\" fov=\"1 rad\"", 1);
    // By exactly ten pixels along y.
    char sensor[200];
    snprintf(sensor, sizeof sensor,
             "xyz=\"0 %.17g 1\" rpy=\"0 90 0 deg\" width=\"100\" height=\"100\" fov=\"1 rad\"",
             -10 / near.lens.fx);
    camera_rig_init(&moved, world, sensor, 1);
    // A place is seen from another side, with other grains that are just too small to be seen.
    double sum = 0, squares = 0, off = 0;
    for (int32_t at = 0; at < 10000; at++) {
        const double x = (double)near.radiance[at][1];
        sum += x;
        squares += x * x;
        if (at % 100 < 10) continue;
        off += fabs((double)moved.radiance[at - 10][1] / x - 1) / 9000;
    }
    assert_true(off < 0.02);
    const double mean = sum / 10000, contrast = sqrt(squares / 10000 - mean * mean) / mean;
    assert_true(contrast > 0.05 && contrast < 0.4);
    camera_rig_fini(&near);
    camera_rig_fini(&moved);
}

// A plane of ground stands upright 2 m away: f = 277.128 pixels and a baseline of 15 cm make a disparity of
// 20.785 pixels.
static void a_rendered_pair_has_the_disparity_of_its_plane(void **state) {
    (void)state;
    static const char world[] = "<light direction=\"-1 0.2 0.5\"/>"
                                "<shape type=\"half-space\" xyz=\"2 0 0\" rpy=\"0 -90 0 deg\"/>";
    static const char lens[] = "width=\"320\" height=\"240\" pixels=\"mono\" %s";
    char left_sensor[200], right_sensor[200];
    snprintf(left_sensor, sizeof left_sensor, lens, "xyz=\"0 0.075 0\"");
    snprintf(right_sensor, sizeof right_sensor, lens, "xyz=\"0 -0.075 0\"");
    camera_rig left, right;
    camera_rig_init(&left, world, left_sensor, 1);
    camera_rig_init(&right, world, right_sensor, 1);
    us_stereo_def def = us_stereo_def_default(US_STEREO_SEMI_GLOBAL, 320, 240);
    us_stereo *stereo = NULL;
    assert_int_equal(us_stereo_create(&def, 1, NULL, &stereo, NULL), US_OK);
    float *disparity = malloc(320 * 240 * sizeof *disparity);
    assert_non_null(disparity);
    assert_int_equal(us_stereo_match(stereo, &left.image, &right.image, disparity), US_OK);
    const float invalid = us_stereo_invalid(&def);
    int32_t n = 0, n_valid = 0, n_near = 0, n_below = 0;
    for (int32_t v = 4; v < 236; v++) {
        for (int32_t u = 68; u < 316; u++, n++) {
            const float d = disparity[v * 320 + u];
            if (d == invalid) continue;
            n_valid++;
            n_near += fabs((double)d - 20.7846) < 1;
            n_below += (double)d < 20.7846 - 0.05;
        }
    }
    assert_true(n_valid > 0.97 * n);
    assert_true(n_near > 0.99 * n_valid);
    // The median lies within 0.05 of it, or fewer than half were below and more than half below the other
    // side.
    int32_t n_above = 0;
    for (int32_t v = 4; v < 236; v++) {
        for (int32_t u = 68; u < 316; u++)
            n_above += disparity[v * 320 + u] != invalid && (double)disparity[v * 320 + u] > 20.7846 + 0.05;
    }
    assert_true(2 * n_below < n_valid && 2 * n_above < n_valid);
    free(disparity);
    us_stereo_destroy(stereo);
    camera_rig_fini(&left);
    camera_rig_fini(&right);
}

static void a_noisy_camera_is_off_by_more(void **state) {
    (void)state;
    camera_rig r;
    camera_rig_init(
        &r, "<light sky=\"100\" sun=\"0\"/>",
        "rpy=\"0 -90 0 deg\" width=\"100\" height=\"100\" pixels=\"mono\" bits=\"16\" response=\"linear\" "
        "fov=\"10 deg\"",
        1);
    double deviation[2];
    for (int k = 0; k < 2; k++) {
        us_sensor_fault fault = us_sensor_fault_default();
        fault.noise = k ? 3 : 1;
        assert_int_equal(us_sim_set_sensor_fault(r.sim, r.camera, &fault), US_OK);
        camera_rig_render(&r);
        const uint16_t *p = r.image.pixels;
        double sum = 0, squares = 0;
        for (int32_t i = 0; i < 10000; i++) {
            sum += p[i];
            squares += (double)p[i] * p[i];
        }
        deviation[k] = sqrt(squares / 10000 - sum / 10000 * sum / 10000);
    }
    assert_true(deviation[0] > 100);
    assert_true(fabs(deviation[1] / deviation[0] - 3) < 0.05);
    camera_rig_fini(&r);
}

static void materials_that_no_camera_sees_are_named(void **state) {
    (void)state;
    static const struct {
        const char *property, *message;
    } wrong[] = {{"<string key='texture' value='rough'/>", "texture: this is no contrast"},
                 {"<number key='texture' value='1.5'/>", "texture: this is no contrast"},
                 {"<string key='reflection' value='shiny'/>", "reflection: this is no law"},
                 {"<number key='reflection' value='1'/>", "reflection: this is no law"},
                 {"<number key='hapke-b' value='1'/>", "hapke-b: this is no asymmetry"},
                 {"<number key='hapke-b0' value='-1'/>", "hapke-b0: this is no strength"},
                 {"<number key='hapke-h' value='0'/>", "hapke-h: this is no width"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[600];
        us_error err = {0};
        us_spec *spec = NULL;
        us_model *model = NULL;
        us_camera_renderer *x = NULL;
        snprintf(
            text, sizeof text,
            "<scene name='s' version='1'><material name='dust'>%s</material><robot name='r' "
            "file='" US_SOURCE_DIR
            "/tests/support/carrier.urdf'><sensor type='camera' name='eye' link='base'/></robot></scene>",
            wrong[i].property);
        assert_int_equal(us_spec_load_text(text, strlen(text), "test.xml", NULL, &spec, &err), US_OK);
        assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
        assert_int_equal(
            us_camera_renderer_create(model, us_model_find_sensor(model, "r", "eye"), 1, NULL, &x, &err),
            US_ERR_VALUE);
        assert_non_null(strstr(err.message, wrong[i].message));
        assert_string_equal(err.element, "dust");
        us_model_destroy(model);
        us_spec_destroy(spec);
    }
}

static void what_cannot_be_rendered_is_said(void **state) {
    (void)state;
    camera_rig r;
    us_camera_renderer *x = NULL;
    us_error err = {0};
    camera_rig_init(&r, "", "width=\"8\" height=\"8\"", 1);
    const us_sensor imu = us_model_find_sensor(r.model, "r", "imu");
    us_camera_model lens;
    assert_int_equal(us_model_get_camera(r.model, imu, &lens), US_ERR_ARG);
    assert_int_equal(us_camera_renderer_create(r.model, imu, 1, NULL, &x, &err), US_ERR_ARG);
    assert_non_null(strstr(err.message, "no camera"));
    assert_int_equal(us_camera_renderer_create(r.model, r.camera, 0, NULL, &x, &err), US_ERR_ARG);
    assert_int_equal(us_camera_renderer_create(NULL, r.camera, 1, NULL, &x, &err), US_ERR_ARG);
    assert_int_equal(us_camera_renderer_render(NULL, r.sim, &err), US_ERR_ARG);
    assert_int_equal(us_camera_renderer_render(r.renderer, NULL, &err), US_ERR_ARG);
    assert_null(us_camera_renderer_view_depth(NULL));
    us_camera_renderer_destroy(NULL);
    camera_rig_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_seen_where_the_lens_and_its_camera_info_put_them),
        cmocka_unit_test(nothing_is_infinitely_far_and_as_bright_as_the_sky),
        cmocka_unit_test(a_rough_sphere_is_as_bright_as_its_formula),
        cmocka_unit_test(spheres_of_dust_are_as_bright_as_their_formulas),
        cmocka_unit_test(a_shadow_ends_where_the_sun_shines_over_the_wall),
        cmocka_unit_test(a_penumbra_has_the_shades_of_a_disc_behind_an_edge),
        cmocka_unit_test(a_lamp_lights_its_cone_by_the_square_of_the_distance),
        cmocka_unit_test(what_throws_no_shadow_leaves_all_lit),
        cmocka_unit_test(electrons_follow_from_light_by_the_formula),
        cmocka_unit_test(noise_has_the_variance_of_a_photon_transfer_curve),
        cmocka_unit_test(few_photons_come_one_by_one),
        cmocka_unit_test(pixels_have_sensitivities_of_their_own),
        cmocka_unit_test(a_picture_without_an_exposure_finds_one),
        cmocka_unit_test(the_same_bytes_by_any_number_of_threads),
        cmocka_unit_test(ground_has_a_texture_that_stays_where_it_is),
        cmocka_unit_test(a_rendered_pair_has_the_disparity_of_its_plane),
        cmocka_unit_test(a_noisy_camera_is_off_by_more),
        cmocka_unit_test(materials_that_no_camera_sees_are_named),
        cmocka_unit_test(what_cannot_be_rendered_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Where a scene says that its world lies, and where its ground says it.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "site_make.h"
#include "understudy/model.h"
#include "understudy/terrain.h"

static const double DEGREE = 0.017453292519943295769;

static us_status load(const char *world, us_sky *out, us_error *err) {
    char text[1000];
    snprintf(text, sizeof text, "<scene name=\"s\" version=\"1\">%s</scene>", world);
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_load_def def = us_load_def_default();
    us_status status = us_spec_load_text(text, strlen(text), "scene.xml", &def, &spec, err);
    if (!status) status = us_model_compile(spec, NULL, &model, err);
    if (!status) *out = us_model_get_sky(model);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return status;
}

static us_sky loaded(const char *world) {
    us_sky sky = {.planet = US_PLANET_NONE};
    us_error err;
    if (load(world, &sky, &err)) fail_msg("%s", err.message);
    return sky;
}

static void a_world_says_where_and_when_it_is(void **state) {
    (void)state;
    us_sky sky = loaded("<world/>");
    assert_int_equal(sky.planet, US_PLANET_NONE);
    sky = loaded("<world planet=\"mars\" latitude=\"18.4 deg\" longitude=\"77.5 deg\" height=\"-2.5 km\" "
                 "heading=\"10 deg\" date=\"2026-11-18T12:00:00Z\"/>");
    assert_int_equal(sky.planet, US_PLANET_MARS);
    assert_true(fabs(sky.origin.latitude - 18.4 * DEGREE) < 1e-15);
    assert_true(fabs(sky.origin.longitude - 77.5 * DEGREE) < 1e-15);
    assert_true(sky.origin.height == -2500 && fabs(sky.heading - 10 * DEGREE) < 1e-15);
    assert_true(sky.date == 1795003200);
    sky = loaded("<world planet=\"moon\" latitude=\"0\" longitude=\"0\"/>");
    assert_true(sky.date == 1767268800);  // 2026-01-01T12:00:00Z
    assert_true(us_model_get_sky(NULL).planet == US_PLANET_NONE);
}

static float flat(double x, double y) { return (float)(0.01 * x + 0 * y); }

// A site of heights whose origin is at a place of a reference system.
static void make_site(const char *path, const char *reference, us_vec3 origin) {
    us_site *site = NULL;
    us_error err;
    us_site_info info = {.n_layer = 1, .origin = origin, .wkt = reference};
    info.layer[0] =
        (us_layer_info){.name = "height", .type = US_LAYER_NUMBER, .n_x = 17, .n_y = 17, .dx = 1, .dy = 1};
    float samples[17 * 17];
    for (int j = 0; j < 17; j++) {
        for (int i = 0; i < 17; i++)
            samples[17 * j + i] = flat(i - 8, j - 8);
    }
    site_clear(path);
    us_status status = us_site_create(path, &info, NULL, &site, &err);
    if (!status) status = us_site_write(site, 0, 0, 0, samples, &err);
    if (!status) status = us_site_finish(site, NULL, NULL, &err);
    if (status) fail_msg("%s", err.message);
    us_site_close(site);
}

// The meridian's arc from the equator to 40 degrees of WGS 84 is 4 429 529.03 m; UTM has 0.9996 of it.
static void a_site_says_where_the_world_lies(void **state) {
    (void)state;
    make_site("sky-site", "EPSG:32613", us_vec3_make(500000, 0.9996 * 4429529.03, 1600));
    us_sky sky = loaded("<world planet=\"earth\"><shape type=\"height-field\" file=\"sky-site\"/></world>");
    assert_true(fabs(sky.origin.latitude - 40 * DEGREE) < 1e-9);
    assert_true(fabs(sky.origin.longitude + 105 * DEGREE) < 1e-9);
    assert_true(fabs(sky.origin.height - 1600) < 1e-9 && fabs(sky.heading) < 1e-9);
    // 100 km west of its meridian the grid is turned by the difference of longitude times the sine of the
    // latitude.
    make_site("sky-site", "EPSG:32613", us_vec3_make(400000, 0.9996 * 4429529.03, 1600));
    sky = loaded("<world planet=\"earth\"><shape type=\"height-field\" file=\"sky-site\"/></world>");
    const double want = (sky.origin.longitude + 105 * DEGREE) * sin(sky.origin.latitude);
    assert_true(want < -0.01 && fabs(sky.heading / want - 1) < 1e-3);
    // A ground that lies elsewhere in the world: its origin is where it was, and the world's is 300 m south.
    us_sky moved = loaded(
        "<world planet=\"earth\"><shape type=\"height-field\" file=\"sky-site\" xyz=\"0 300 5\"/></world>");
    const us_geo_place ground = us_sky_locate(&moved, us_vec3_make(0, 300, 5));
    assert_true(fabs(ground.latitude - sky.origin.latitude) < 1e-9);
    assert_true(fabs(ground.longitude - sky.origin.longitude) < 1e-9 && fabs(ground.height - 1600) < 1e-9);
    // What is written counts more than the ground.
    sky = loaded("<world planet=\"earth\" latitude=\"1\" longitude=\"0.5\"><shape type=\"height-field\" "
                 "file=\"sky-site\"/></world>");
    assert_true(sky.origin.latitude == 1);
}

static void a_ground_of_another_body_or_of_none_is_refused(void **state) {
    (void)state;
    us_sky sky;
    us_error err;
    make_site("sky-site", "EPSG:32613", us_vec3_make(500000, 4e6, 0));
    assert_int_equal(
        load("<world planet=\"mars\"><shape type=\"height-field\" file=\"sky-site\"/></world>", &sky, &err),
        US_ERR_VALUE);
    assert_non_null(strstr(err.message, "planet: mars has a radius of 3396 km"));
    assert_non_null(strstr(err.message, "6378 km"));
    make_site("sky-site", "", us_vec3_make(0, 0, 0));
    assert_int_equal(
        load("<world planet=\"mars\"><shape type=\"height-field\" file=\"sky-site\"/></world>", &sky, &err),
        US_ERR_VALUE);
    assert_non_null(strstr(err.message, "the ground does not say where it lies"));
    assert_non_null(strstr(err.remedy, "latitude="));
}

// Calls are checked as files are.
static void a_place_by_call_is_checked(void **state) {
    (void)state;
    us_world_settings w = us_world_settings_default();
    w.sky = (us_sky){.planet = US_PLANET_EARTH, .origin = {2, 0, 0}};
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_error err;
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    assert_int_equal(us_spec_set_world(spec, &w), US_OK);
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "place on its planet"));
    us_spec_destroy(spec);
    assert_false(us_sky_is_valid(NULL));
    w.sky.origin.latitude = 0;
    assert_true(us_sky_is_valid(&w.sky));
    w.sky.date = NAN;
    assert_false(us_sky_is_valid(&w.sky));
    w.sky = (us_sky){.planet = (us_planet)9};
    assert_false(us_sky_is_valid(&w.sky));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_world_says_where_and_when_it_is),
        cmocka_unit_test(a_site_says_where_the_world_lies),
        cmocka_unit_test(a_ground_of_another_body_or_of_none_is_refused),
        cmocka_unit_test(a_place_by_call_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Regions of a ground by masks: a raster beside a scene, over a GeoTIFF by its coordinates, and the layer of
// a site.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "raster_make.h"
#include "understudy/sim.h"
#include "understudy/terrain.h"

static char directory[] = "/tmp/us-region-XXXXXX";

// 7 in the eastern half of its ground.
static double half(int band, int column, int row, double x, double y) {
    (void)band;
    (void)row;
    (void)x;
    (void)y;
    return column >= 20 ? 7 : 0;
}
static double level(int band, int column, int row, double x, double y) {
    (void)band;
    (void)column;
    (void)row;
    (void)x;
    (void)y;
    return 100;
}

// Which rasters were read, and how much of the last one.
static char heard[400];
static double heard_share;
static void hear(void *context, const char *file, double share) {
    (void)context;
    const char *name = strrchr(file, '/') + 1;
    if (!strstr(heard, name)) snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s ", name);
    heard_share = share;
}

static us_status load(const char *ground, const char *region, us_model **out_model, us_error *err) {
    char text[2048];
    snprintf(text, sizeof text,
             "<scene name=\"m\" version=\"1\"><world>\n<shape name=\"ground\" %s surface=\"sand\"/>\n"
             "<region name=\"slab\" ground=\"ground\" surface=\"rock\" %s/></world>\n"
             "<material name=\"sand\"><soil/></material><material name=\"rock\"/>\n"
             "<object name=\"a\" xyz=\"-5 0 0.15\"><link name=\"l\" density=\"2600\"><shape type=\"sphere\" "
             "size=\"0.1\"/></link></object>\n"
             "<object name=\"b\" xyz=\"5 0 0.15\"><link name=\"l\" density=\"2600\"><shape type=\"sphere\" "
             "size=\"0.1\"/></link></object>\n"
             "</scene>\n",
             ground, region);
    us_load_def def = us_load_def_default();
    def.progress = hear;
    us_spec *spec = NULL;
    char path[200];
    snprintf(path, sizeof path, "%s/scene.xml", directory);
    us_status status = us_spec_load_text(text, strlen(text), path, &def, &spec, err);
    if (!status) status = us_model_compile(spec, NULL, out_model, err);
    us_spec_destroy(spec);
    return status;
}

// The ball in the west sinks, the one in the east lies on rock.
static void expect_halves(const char *ground, const char *region) {
    us_model *model = NULL;
    us_error err = {0};
    us_status status = load(ground, region, &model, &err);
    if (status) print_message("%s; %s\n", err.message, err.remedy);
    assert_int_equal(status, US_OK);
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(model, NULL, &sim, &err), US_OK);
    for (int i = 0; i < 500; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    assert_int_equal(us_sim_n_soil_contact(sim), 1);
    assert_int_equal(us_sim_get_soil_contact(sim, 0).body.i, us_model_find_body(model, "a/l").i);
    double west = us_sim_get_pose(sim, us_model_find_body(model, "a/l")).p.z,
           east = us_sim_get_pose(sim, us_model_find_body(model, "b/l")).p.z;
    assert_true(west < 0.099 && east > 0.0995);
    // While it runs the slab becomes sand.
    assert_int_equal(us_sim_set_region(sim, 0, us_model_find_material(model, "sand")), US_OK);
    for (int i = 0; i < 500; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    assert_int_equal(us_sim_n_soil_contact(sim), 2);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

static void make(const char *name, GDALDataType type, double west,
                 double (*value)(int, int, int, double, double)) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    raster_make m = {.path = path,
                     .n_x = 40,
                     .n_y = 20,
                     .type = type,
                     .gt = {west, 1, 0, 4000020, 0, -1},
                     .srs = "EPSG:32610",
                     .value = value};
    make_raster(&m);
}

static void a_mask_beside_the_scene_says_where_rock_is(void **state) {
    (void)state;
    make("mask.tif", GDT_Byte, 500000, half);
    expect_halves("type=\"plane\"", "mask=\"mask.tif\" value=\"7\"");
    expect_halves("type=\"plane\"", "mask=\"mask.tif\"");
}

static void over_a_geotiff_it_lies_by_its_coordinates(void **state) {
    (void)state;
    make("dem.tif", GDT_Float32, 500000, level);
    // Ten metres farther west: of the ground the last three quarters are 7 but for what the mask does not
    // cover, its last ten metres.
    make("west.tif", GDT_Byte, 499990, half);
    make("mask.tif", GDT_Byte, 500000, half);
    expect_halves("type=\"height-field\" file=\"dem.tif\"", "mask=\"mask.tif\" value=\"7\"");
    us_model *model = NULL;
    us_error err = {0};
    heard[0] = 0;
    assert_int_equal(
        load("type=\"height-field\" file=\"dem.tif\"", "mask=\"west.tif\" value=\"7\"", &model, &err), US_OK);
    assert_string_equal(heard, "dem.tif west.tif ");
    assert_true(heard_share == 1);
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(model, NULL, &sim, &err), US_OK);
    for (int i = 0; i < 500; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    // At x = -5 and 5 the mask shifted by 10 m has its columns 25 and 35: both rock.
    assert_int_equal(us_sim_n_soil_contact(sim), 0);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

static void in_a_zone_of_a_site_it_lies_where_it_does_in_the_whole(void **state) {
    (void)state;
    us_site_info info = {.n_layer = 2, .wkt = ""};
    info.layer[0] =
        (us_layer_info){.name = "height", .type = US_LAYER_NUMBER, .n_x = 41, .n_y = 41, .dx = 1, .dy = 1};
    info.layer[1] =
        (us_layer_info){.name = "region", .type = US_LAYER_REGION, .n_x = 41, .n_y = 41, .dx = 1, .dy = 1};
    us_site *site = NULL;
    us_error err = {0};
    static float height[41 * 41];
    static uint8_t region[41 * 41];
    for (int i = 0; i < 41 * 41; i++)
        region[i] = i % 41 > 20 ? 7 : 0;
    char path[200];
    snprintf(path, sizeof path, "%s/site", directory);
    assert_int_equal(us_site_create(path, &info, NULL, &site, &err), US_OK);
    assert_int_equal(us_site_write(site, 0, 0, 0, height, &err), US_OK);
    assert_int_equal(us_site_write(site, 1, 0, 0, region, &err), US_OK);
    assert_int_equal(us_site_finish(site, NULL, NULL, &err), US_OK);
    us_site_close(site);
    static const char *const grounds[] = {"type=\"height-field\" file=\"site/\"",
                                          "type=\"height-field\" file=\"site/\" zone=\"-8 -9 20 4\""};
    for (int i = 0; i < 2; i++) {
        expect_halves(grounds[i], "value=\"7\"");
        expect_halves(grounds[i], "polygon=\"1 -9 20 -9 20 9 1 9\"");
    }
}

static void what_is_wrong_is_said(void **state) {
    (void)state;
    us_model *model = NULL;
    us_error err = {0};
    assert_int_equal(load("type=\"plane\"", "mask=\"none.tif\"", &model, &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "none.tif"));
    assert_int_equal(load("type=\"plane\"", "", &model, &err), US_ERR_SCHEMA);
    assert_int_equal(load("type=\"plane\"", "value=\"3\"", &model, &err), US_ERR_SCHEMA);
    assert_int_equal(load("type=\"plane\"", "mask=\"mask.tif\" polygon=\"0 0 1 0 1 1\"", &model, &err),
                     US_ERR_SCHEMA);
    assert_int_equal(load("type=\"plane\"", "mask=\"mask.tif\" value=\"300\"", &model, &err), US_ERR_VALUE);
}

static int start(void **state) {
    (void)state;
    return mkdtemp(directory) ? 0 : 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mask_beside_the_scene_says_where_rock_is),
        cmocka_unit_test(over_a_geotiff_it_lies_by_its_coordinates),
        cmocka_unit_test(in_a_zone_of_a_site_it_lies_where_it_does_in_the_whole),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}

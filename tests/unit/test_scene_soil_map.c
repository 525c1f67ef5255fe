// Maps of soils in scenes: rasters beside a scene and over a GeoTIFF, layers of a site, what is wrong with
// them, and what a world says of them.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"
#include "live_world.h"
#include "raster_make.h"
#include "site_make.h"
#include "understudy/sim.h"

static char directory[] = "/tmp/us-soil-map-XXXXXX";

static const char *beside(const char *name) {
    static char path[4][240];
    static int turn;
    char *out = path[turn = (turn + 1) % 4];
    snprintf(out, sizeof path[0], "%s/%s", directory, name);
    return out;
}

// A ball lies at each of five places along x.
static const char *scene_of(const char *ground, const char *maps) {
    static char text[4000];
    int n = snprintf(
        text, sizeof text,
        "<scene name=\"m\" version=\"1\"><world>\n<shape name=\"ground\" %s surface=\"sand\"/>\n%s</world>\n"
        "<material name=\"sand\"><soil like=\"dry_sand\"/></material><material name=\"clay\"><soil "
        "like=\"clay\"/></material>"
        "<material name=\"rock\"/>\n",
        ground, maps);
    for (int i = 0; i < 5; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "<object name=\"o%d\" xyz=\"%d 0 0.105\"><link name=\"l\" density=\"2600\"><shape "
                      "type=\"sphere\" size=\"0.1\"/></link></object>\n",
                      i, 4 * i - 8);
    snprintf(text + n, sizeof text - (size_t)n, "</scene>\n");
    return text;
}

static us_status load(const char *ground, const char *maps, us_spec **out_spec, us_model **out_model,
                      us_error *err) {
    const char *text = scene_of(ground, maps);
    us_load_def def = us_load_def_default();
    *out_spec = NULL;
    *out_model = NULL;
    us_status status = us_spec_load_text(text, strlen(text), beside("scene.xml"), &def, out_spec, err);
    return status ? status : us_model_compile(*out_spec, NULL, out_model, err);
}

// The number of the soil under each ball; how many warnings came, and the last of them.
static int numbers_of(const char *ground, const char *maps, const char *field, double out[5], char *warning) {
    us_spec *spec;
    us_model *model;
    us_error err = {0};
    if (load(ground, maps, &spec, &model, &err)) fail_msg("%s; %s", err.message, err.remedy);
    int n = us_spec_get_counts(spec).n_warning;
    if (warning) snprintf(warning, 400, "%.399s", n > 0 ? us_spec_view_warning(spec, n - 1)->message : "");
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(model, NULL, &sim, &err), US_OK);
    for (int i = 0; i < 60; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    for (int i = 0; i < 5; i++) {
        char name[16];
        us_soil soil = us_soil_default();
        snprintf(name, sizeof name, "o%d/l", i);
        out[i] = NAN;
        for (int32_t k = 0; k < us_sim_n_soil_contact(sim); k++) {
            if (us_sim_get_soil_contact(sim, k).body.i != us_model_find_body(model, name).i) continue;
            assert_int_equal(us_sim_get_soil_contact_soil(sim, k, &soil), US_OK);
            out[i] = *us_soil_parameter(&soil, field, NULL, NULL);
        }
    }
    us_sim_destroy(sim);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return n;
}

static void expect(const double is[5], double a, double b, double c, double d, double e, double tolerance) {
    const double wanted[5] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++) {
        if (!(fabs(is[i] - wanted[i]) <= tolerance)) fail_msg("ball %d: %.9g, not %.9g", i, is[i], wanted[i]);
    }
}

static void refused(const char *ground, const char *maps, us_status status, const char *part) {
    us_spec *spec;
    us_model *model;
    us_error err = {0};
    us_status is = load(ground, maps, &spec, &model, &err);
    if (is != status || !strstr(err.message, part))
        fail_msg("%s: %d: %s; %s", maps, (int)is, err.message, err.remedy);
    assert_true(err.remedy[0] && err.line > 0);
    us_spec_destroy(spec);
}

// ---- Rasters ----

// Eastings begin at 500000 and pixels are 1 m wide: samples at -19.5, -18.5, ... of the middle.
static double slope(int band, int column, int row, double x, double y) {
    (void)band;
    (void)row;
    (void)y;
    (void)column;
    return 1000 + 10 * (x - 500020);
}
static double degrees(int band, int column, int row, double x, double y) {
    (void)band;
    (void)row;
    (void)x;
    (void)y;
    (void)column;
    return 30;
}
static double gaps(int band, int column, int row, double x, double y) {
    return column >= 26 ? -9999 : slope(band, column, row, x, y);
}
static double soil_contact(int band, int column, int row, double x, double y) {
    return column == 30 && row == 4 ? -7 : slope(band, column, row, x, y);
}
static double level(int band, int column, int row, double x, double y) {
    (void)band;
    (void)column;
    (void)row;
    (void)x;
    (void)y;
    return 100;
}

static void make(const char *name, int n_x, double west, double (*value)(int, int, int, double, double)) {
    raster_make m = {.path = beside(name),
                     .n_x = n_x,
                     .n_y = 20,
                     .type = GDT_Float64,
                     .gt = {west, 1, 0, 4000020, 0, -1},
                     .srs = "EPSG:32610",
                     .value = value};
    m.has_nodata = value == gaps;
    m.nodata = -9999;
    // A unit of its own is no height: the numbers stay as they are.
    m.unit = value == slope ? "Pa" : NULL;
    make_raster(&m);
}

static void a_raster_beside_the_scene_says_what_the_soil_is_at_each_place(void **state) {
    (void)state;
    double is[5];
    make("cohesion.tif", 40, 500000, slope);
    assert_int_equal(numbers_of("type=\"plane\"",
                                "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"cohesion.tif\"/>",
                                "cohesion", is, NULL),
                     0);
    // The numbers are linear, and so is what lies between them: exact but for rounding.
    expect(is, 920, 960, 1000, 1040, 1080, 1e-6);
    make("angle.tif", 40, 500000, degrees);
    numbers_of(
        "type=\"plane\"",
        "<soil-map ground=\"ground\" parameter=\"friction-angle\" file=\"angle.tif\" scale=\"1 deg\"/>",
        "friction_angle", is, NULL);
    double angle = 30 * 3.14159265358979323846 / 180;
    expect(is, angle, angle, angle, angle, angle, 1e-15);
    // For one material alone: the ball in the west lies in clay, whose own cohesion is 4140.
    numbers_of("type=\"plane\"",
               "<region name=\"r\" ground=\"ground\" surface=\"clay\" polygon=\"-20 -9 -6 -9 -6 9 -20 9\"/>"
               "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"cohesion.tif\" surface=\"sand\"/>",
               "cohesion", is, NULL);
    expect(is, 4140, 960, 1000, 1040, 1080, 1e-6);
}

static void where_it_has_no_value_the_materials_own_number_holds_and_a_warning_says_so(void **state) {
    (void)state;
    double is[5], own = us_soil_default().cohesion;
    char warning[400];
    make("gaps.tif", 40, 500000, gaps);
    const char *maps = "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"gaps.tif\"/>";
    assert_int_equal(numbers_of("type=\"plane\"", maps, "cohesion", is, warning), 1);
    assert_string_equal(warning, "280 of its 800 samples have no value");
    expect(is, 920, 960, 1000, 1040, own, 1e-6);
    // What lies below shows through gaps.
    make("angle.tif", 40, 500000, degrees);
    numbers_of("type=\"plane\"",
               "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"angle.tif\"/>"
               "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"gaps.tif\"/>",
               "cohesion", is, NULL);
    expect(is, 920, 960, 1000, 1040, 30, 1e-6);
    // Ten metres wide, on a ground of forty.
    make("narrow.tif", 10, 500015, slope);
    assert_int_equal(
        numbers_of("type=\"height-field\" nx=\"41\" ny=\"11\" dx=\"1\" dy=\"1\" expression=\"0\"",
                   "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"narrow.tif\"/>", "cohesion", is,
                   warning),
        1);
    assert_string_equal(warning, "it has 10 x 20 m of a ground of 40 x 10 m");
    expect(is, own, 960, 1000, 1040, own, 1e-6);
}

static void over_a_geotiff_it_lies_by_its_coordinates(void **state) {
    (void)state;
    double is[5], own = us_soil_default().cohesion;
    make("dem.tif", 40, 500000, level);
    // Ten metres farther west: what it does not cover are the last ten metres, from x = 10 on; its numbers
    // are those of the place.
    make("west.tif", 40, 499990, slope);
    numbers_of("type=\"height-field\" file=\"dem.tif\"",
               "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"west.tif\"/>", "cohesion", is,
               NULL);
    expect(is, 920, 960, 1000, 1040, 1080, 1e-6);
    make("farther.tif", 40, 499985, slope);
    numbers_of("type=\"height-field\" file=\"dem.tif\"",
               "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"farther.tif\"/>", "cohesion", is,
               NULL);
    expect(is, 920, 960, 1000, 1040, own, 1e-6);
}

// ---- Layers of a site ----

static void make_site(const char *path, double angle) {
    us_site_info info = {.n_layer = 4, .wkt = ""};
    // The second is coarser than the heights, the third is a name that no soil has.
    info.layer[0] =
        (us_layer_info){.name = "height", .type = US_LAYER_NUMBER, .n_x = 41, .n_y = 41, .dx = 1, .dy = 1};
    info.layer[1] = (us_layer_info){
        .name = "soil.cohesion", .type = US_LAYER_NUMBER, .n_x = 9, .n_y = 9, .dx = 5, .dy = 5};
    info.layer[2] = (us_layer_info){
        .name = "soil.moisture", .type = US_LAYER_NUMBER, .n_x = 2, .n_y = 2, .dx = 40, .dy = 40};
    info.layer[3] = (us_layer_info){
        .name = "soil.friction-angle", .type = US_LAYER_NUMBER, .n_x = 3, .n_y = 2, .dx = 20, .dy = 40};
    us_site *site = NULL;
    us_error err = {0};
    static float height[41 * 41], cohesion[81], moisture[4], angles[6];
    for (int i = 0; i < 81; i++)
        cohesion[i] = (float)(1000 + 50 * (i % 9 - 4));
    for (int i = 0; i < 6; i++)
        angles[i] = i == 5 ? (float)angle : 0.5F;
    site_clear(path);
    assert_int_equal(us_site_create(path, &info, NULL, &site, &err), US_OK);
    const void *const samples[] = {height, cohesion, moisture, angles};
    for (int32_t i = 0; i < 4; i++)
        assert_int_equal(us_site_write(site, i, 0, 0, samples[i], &err), US_OK);
    assert_int_equal(us_site_finish(site, NULL, NULL, &err), US_OK);
    us_site_close(site);
}

static void layers_of_a_site_are_felt_where_the_scene_says_so(void **state) {
    (void)state;
    double is[5], own = us_soil_default().cohesion;
    char warning[400], ground[300], zone[340];
    make_site(beside("site"), 0.5);
    snprintf(ground, sizeof ground, "type=\"height-field\" file=\"site/\"");
    // All of them, and what nothing feels is told.
    assert_int_equal(numbers_of(ground, "<soil-map ground=\"ground\"/>", "cohesion", is, warning), 1);
    assert_non_null(strstr(warning, "soil.moisture"));
    expect(is, 920, 960, 1000, 1040, 1080, 1e-6);
    numbers_of(ground, "<soil-map ground=\"ground\"/>", "friction_angle", is, NULL);
    expect(is, 0.5, 0.5, 0.5, 0.5, 0.5, 1e-15);
    // A part of the site: things are where they were.
    snprintf(zone, sizeof zone, "%s zone=\"-10 -3 20 9\"", ground);
    assert_int_equal(
        numbers_of(zone, "<soil-map ground=\"ground\" parameter=\"cohesion\"/>", "cohesion", is, NULL), 0);
    expect(is, 920, 960, 1000, 1040, 1080, 1e-6);
    // Nobody says so: nothing is felt, and that is told.
    assert_int_equal(numbers_of(ground, "", "cohesion", is, warning), 1);
    assert_non_null(strstr(warning, "is not used"));
    expect(is, own, own, own, own, own, 0);
}

static void what_is_wrong_is_said_with_its_place(void **state) {
    (void)state;
    static const char plane[] = "type=\"plane\"", site[] = "type=\"height-field\" file=\"site/\"";
    make("cohesion.tif", 40, 500000, slope);
    make("sunk.tif", 40, 500000, soil_contact);
    make("angle.tif", 40, 500000, degrees);
    make_site(beside("site"), 30);
    make_site(beside("good"), 0.5);
    refused(plane, "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"none.tif\"/>", US_ERR_IO,
            "none.tif");
    refused(plane, "<soil-map ground=\"grund\" parameter=\"cohesion\" file=\"cohesion.tif\"/>", US_ERR_NAME,
            "grund");
    refused(plane, "<soil-map ground=\"ground\" parameter=\"coherence\" file=\"cohesion.tif\"/>", US_ERR_NAME,
            "coherence");
    refused(plane,
            "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"cohesion.tif\" surface=\"rock\"/>",
            US_ERR_VALUE, "no soil");
    refused(plane,
            "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"cohesion.tif\" scale=\"1 deg\"/>",
            US_ERR_VALUE, "scale");
    refused(plane, "<soil-map ground=\"ground\" parameter=\"cohesion\"/>", US_ERR_SCHEMA,
            "where its numbers are");
    refused(plane, "<soil-map ground=\"ground\" file=\"cohesion.tif\"/>", US_ERR_SCHEMA, "what varies");
    // Row 4 from the north and column 30, from the south-west corner of 40 x 20.
    refused(plane, "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"sunk.tif\"/>", US_ERR_VALUE,
            "it is -7 at x = 10.5, y = 5.5 m");
    refused(plane, "<soil-map ground=\"ground\" parameter=\"friction-angle\" file=\"angle.tif\"/>",
            US_ERR_VALUE, "it is 30 at x = -19.5, y = -9.5 m");
    refused("type=\"height-field\" nx=\"3\" ny=\"3\" dx=\"9\" dy=\"9\" expression=\"0\" collision=\"false\"",
            "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"cohesion.tif\"/>", US_ERR_NAME,
            "no such ground");
    // A site: the layer that is out of range, by the place of its sample; in a zone beside it there is
    // nothing wrong.
    refused(site, "<soil-map ground=\"ground\"/>", US_ERR_VALUE, "it is 30 at x = 20, y = 20 m");
    refused("type=\"height-field\" file=\"good/\"", "<soil-map ground=\"ground\" parameter=\"kphi\"/>",
            US_ERR_NAME, "soil.kphi");
    double is[5];
    assert_int_equal(numbers_of("type=\"height-field\" file=\"site/\" zone=\"-20 -20 -1 20\"",
                                "<soil-map ground=\"ground\" parameter=\"friction-angle\"/>",
                                "friction_angle", is, NULL),
                     3);  // three balls are beside it
}

static void a_bad_definition_is_refused(void **state) {
    (void)state;
    us_spec *spec = NULL;
    const double values[4] = {1, 2, 3, 4};
    const us_soil_map_def good = {
        .ground = "g", .parameter = "cohesion", .values = values, .n_x = 2, .n_y = 2, .dx = 1, .dy = 1};
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    assert_int_equal(us_spec_add_soil_map(spec, NULL, NULL), US_ERR_ARG);
    assert_int_equal(us_spec_add_soil_map(NULL, &good, NULL), US_ERR_ARG);
    us_soil_map_def bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].ground = NULL;
    bad[1].parameter = NULL;
    bad[2].n_x = 1;
    bad[3].n_y = -2;
    bad[4].dx = 0;
    bad[5].dy = NAN;
    for (int i = 0; i < 6; i++)
        assert_int_equal(us_spec_add_soil_map(spec, &bad[i], NULL), US_ERR_ARG);
    int32_t index = -1;
    assert_int_equal(us_spec_add_soil_map(spec, &good, &index), US_OK);
    // A copy has its own numbers.
    us_spec *copy = NULL;
    assert_int_equal(us_spec_copy(spec, &copy), US_OK);
    us_spec_destroy(spec);
    assert_int_equal(us_spec_get_counts(copy).n_soil_map, 1);
    assert_true(index == 0 && us_spec_view_soil_map(copy, 0)->values[3] == 4 &&
                !us_spec_view_soil_map(copy, 1));
    us_spec_destroy(copy);
}

static void without_memory_it_says_so_and_loses_none(void **state) {
    (void)state;
    make_site(beside("site"), 0.5);
    make("gaps.tif", 40, 500000, gaps);
    const char *text = scene_of("type=\"height-field\" file=\"site/\"",
                                "<soil-map ground=\"ground\"/><soil-map ground=\"ground\" "
                                "parameter=\"cohesion\" file=\"gaps.tif\" surface=\"sand\"/>");
    us_status status = US_ERR_MEMORY;
    for (int n = 1; status != US_OK; n++) {
        test_allocator t;
        test_allocator_init(&t);
        t.fail_at = n;
        us_load_def def = us_load_def_default();
        def.allocator = t.allocator;
        us_spec *spec = NULL;
        us_model *model = NULL;
        us_error err = {0};
        status = us_spec_load_text(text, strlen(text), beside("scene.xml"), &def, &spec, &err);
        if (!status) status = us_model_compile(spec, &t.allocator, &model, &err);
        us_model_destroy(model);
        us_spec_destroy(spec);
        test_allocator_check(&t);
        if (status != (t.n_failed > 0 ? US_ERR_MEMORY : US_OK))
            fail_msg("allocation %d: status %d: %s", n, (int)status, err.message);
        assert_true(n < 10000);
    }
}

// ---- In a world ----

static void what_is_told_of_a_soil_names_the_map(void **state) {
    (void)state;
    make("cohesion.tif", 40, 500000, slope);
    char file[300], maps[500];
    snprintf(file, sizeof file, "%s", beside("cohesion.tif"));
    snprintf(maps, sizeof maps, "<soil-map ground=\"ground\" parameter=\"cohesion\" file=\"%s\"/>", file);
    us_world *world = live_open(scene_of("type=\"plane\"", maps));
    live_reply reply = live_say(world, "soil sand cohesion=77 density=1500");
    assert_int_equal(reply.status, US_OK);
    assert_string_equal(
        reply.text,
        "sand: 2 numbers set; a map has the cohesion of \"ground\": the number holds where the map has none");
    reply = live_say(world, "soil sand density=1500");
    assert_string_equal(reply.text, "sand: 1 number set");
    us_world_destroy(world);
}

static int start(void **state) {
    (void)state;
    return mkdtemp(directory) ? 0 : 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_raster_beside_the_scene_says_what_the_soil_is_at_each_place),
        cmocka_unit_test(where_it_has_no_value_the_materials_own_number_holds_and_a_warning_says_so),
        cmocka_unit_test(over_a_geotiff_it_lies_by_its_coordinates),
        cmocka_unit_test(layers_of_a_site_are_felt_where_the_scene_says_so),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
        cmocka_unit_test(a_bad_definition_is_refused),
        cmocka_unit_test(without_memory_it_says_so_and_loses_none),
        cmocka_unit_test(what_is_told_of_a_soil_names_the_map),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}

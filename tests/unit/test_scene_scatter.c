// <scatter>: rocks and trees that stand on the ground, and what is wrong with those that cannot.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "understudy/sim.h"
#include "understudy/terrain.h"

#define SLOPE                                                                                                \
    "<world><shape type='height-field' name='hill' nx='101' ny='101' dx='1 m' dy='1 m' expression='0.2 * x " \
    "+ 3'/></world>"
#define BOTH                                                                                               \
    "<world><shape type='plane'/><shape type='height-field' name='hill' nx='101' ny='101' dx='1 m' dy='1 " \
    "m' expression='0.2 * x + 3'/></world>"
#define PLANE "<world><shape type='plane' name='floor'/></world>"

static us_status load_body(const char *body, us_spec **out_spec, us_error *err) {
    char text[4096];
    snprintf(text, sizeof text, "<scene version=\"1\">\n%s\n</scene>", body);
    return us_spec_load_text(text, strlen(text), "test.xml", NULL, out_spec, err);
}

static us_spec *load(const char *body) {
    us_spec *spec = NULL;
    us_error err = {0};
    if (load_body(body, &spec, &err)) fail_msg("line %d: %s\n%s", (int)err.line, err.message, err.remedy);
    return spec;
}

static int32_t n_shape(const us_spec *spec) { return us_spec_get_counts(spec).n_shape; }

static void rocks_stand_sunk_a_little_into_the_highest_ground(void **state) {
    (void)state;
    us_spec *spec =
        load(BOTH "<scatter kind='rocks' density='0.05' area='-20 -20 20 20' seed='3' surface='default'/>");
    int32_t n = n_shape(spec);
    assert_true(n > 200);
    for (int32_t i = 2; i < n; i++) {
        const us_shape_def *s = us_spec_view_shape(spec, i);
        double ground = fmax(0.2 * s->X_BG.p.x + 3, 0), top = 0;
        assert_true(s->kind == US_SHAPE_CONVEX && s->link == US_WORLD && s->line == 2 &&
                    fabs(s->X_BG.p.x) <= 20 && fabs(s->X_BG.p.y) <= 20);
        for (int32_t k = 0; k < s->n_point; k++)
            top = fmax(top, s->points[k].z);
        double soil_contact = ground - s->X_BG.p.z;
        if (!(soil_contact > 0 && soil_contact < top))
            fail_msg("a rock at %g %g stands %g deep and is %g high", s->X_BG.p.x, s->X_BG.p.y, soil_contact,
                     top);
    }
    us_model *model = NULL;
    us_error err = {0};
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s", err.message);
    us_model_destroy(model);
    us_spec_destroy(spec);
}

static void the_same_seed_scatters_the_same_and_another_does_not(void **state) {
    (void)state;
    uint64_t hash[3] = {0};
    static const int seeds[] = {1, 1, 2};
    for (int k = 0; k < 3; k++) {
        char body[512];
        snprintf(body, sizeof body,
                 PLANE "<scatter kind='rocks' density='0.03' area='-10 -10 10 10' seed='%d'/>", seeds[k]);
        us_spec *spec = load(body);
        for (int32_t i = 1; i < n_shape(spec); i++) {
            const us_shape_def *s = us_spec_view_shape(spec, i);
            hash[k] = us_hash_bytes(hash[k], &s->X_BG, sizeof s->X_BG);
            hash[k] = us_hash_bytes(hash[k], s->points, sizeof *s->points * (size_t)s->n_point);
        }
        us_spec_destroy(spec);
    }
    assert_true(hash[0] == hash[1] && hash[0] != hash[2]);
}

static void trees_have_a_trunk_in_the_ground_and_a_crown_above(void **state) {
    (void)state;
    us_spec *spec = load(
        PLANE "<scatter kind='trees' density='0.05' area='-30 -30 30 30' distance='2' least='4' most='9'/>");
    int32_t n = n_shape(spec);
    assert_true(n > 200 && n % 2 == 1);
    for (int32_t i = 1; i < n; i += 2) {
        const us_shape_def *trunk = us_spec_view_shape(spec, i), *crown = us_spec_view_shape(spec, i + 1);
        assert_true(trunk->kind == US_SHAPE_CYLINDER && crown->kind == US_SHAPE_CONE &&
                    trunk->X_BG.p.x == crown->X_BG.p.x);
        double bottom = trunk->X_BG.p.z - 0.5 * trunk->size[1], top = trunk->X_BG.p.z + 0.5 * trunk->size[1];
        double height = crown->X_BG.p.z + 0.5 * crown->size[1];
        assert_true(bottom < 0 && fabs(crown->X_BG.p.z - 0.5 * crown->size[1] - top) < 1e-12 && height >= 4 &&
                    height <= 9);
    }
    us_spec_destroy(spec);
}

static void cleared_rectangles_and_steep_ground_stay_free(void **state) {
    (void)state;
    us_spec *spec =
        load(PLANE "<scatter kind='rocks' density='0.05' area='-10 -10 10 10' clear='-3 -3 3 3 5 5 9 9'/>");
    for (int32_t i = 1; i < n_shape(spec); i++) {
        us_vec3 p = us_spec_view_shape(spec, i)->X_BG.p;
        assert_false((fabs(p.x) <= 3 && fabs(p.y) <= 3) || (p.x >= 5 && p.x <= 9 && p.y >= 5 && p.y <= 9));
    }
    assert_true(n_shape(spec) > 50);
    us_spec_destroy(spec);
    // The slope is 11.3 degrees; the named ground wins over the plane, and outside it there is none.
    spec = load(
        SLOPE "<scatter kind='rocks' density='0.05' area='-10 -10 10 10' ground='hill' max-slope='11 deg'/>");
    assert_int_equal(n_shape(spec), 1);
    us_spec_destroy(spec);
    spec = load(
        SLOPE "<scatter kind='rocks' density='0.05' area='49 -10 69 10' ground='hill' max-slope='12 deg'/>");
    assert_true(n_shape(spec) > 1);
    for (int32_t i = 1; i < n_shape(spec); i++)
        assert_true(us_spec_view_shape(spec, i)->X_BG.p.x <= 50);
    us_spec_destroy(spec);
}

// A slope of 300 m x 300 m in four tiles, with region 1 in its west and 2 in its east.
static us_status make_slope(const char *path) {
    enum { N = 300 };
    static float heights[US_SITE_TILE * US_SITE_TILE];
    static uint8_t regions[US_SITE_TILE * US_SITE_TILE];
    us_site_info info = {.n_layer = 2, .wkt = ""};
    info.layer[0] =
        (us_layer_info){.name = "height", .type = US_LAYER_NUMBER, .n_x = N, .n_y = N, .dx = 1, .dy = 1};
    info.layer[1] =
        (us_layer_info){.name = "region", .type = US_LAYER_REGION, .n_x = N, .n_y = N, .dx = 1, .dy = 1};
    us_site *site = NULL;
    us_status status = us_site_create(path, &info, NULL, &site, NULL);
    for (int32_t k = 0; k < 4 && !status; k++) {
        int32_t n_x = 0, n_y = 0, u = k % 2, v = k / 2;
        us_site_tile_size(site, 0, 0, u, v, &n_x, &n_y);
        for (int32_t i = 0; i < n_x * n_y; i++) {
            double x = u * US_SITE_TILE + i % n_x - 0.5 * (N - 1);
            heights[i] = (float)(0.125 * x);
            regions[i] = x < 0 ? 1 : 2;
        }
        status = us_site_write(site, 0, u, v, heights, NULL);
        if (!status) status = us_site_write(site, 1, u, v, regions, NULL);
    }
    if (!status) status = us_site_finish(site, NULL, NULL, NULL);
    us_site_close(site);
    return status;
}

static void rocks_stand_on_a_site_in_its_regions(void **state) {
    (void)state;
    char path[64], line[128], body[512];
    snprintf(path, sizeof path, "slope-%ld", (long)getpid());
    snprintf(line, sizeof line, "rm -rf %s", path);
    assert_int_equal(make_slope(path), US_OK);
    snprintf(body, sizeof body,
             "<world><shape type='height-field' name='hill' file='%s'/></world>"
             "<scatter kind='rocks' density='0.1' area='100 90 140 130' least='0.5'/>"
             "<scatter kind='rocks' density='0.1' area='-30 -30 30 30' least='0.5' regions='2 5'/>",
             path);
    us_spec *spec = load(body);
    assert_true(n_shape(spec) > 100);
    for (int32_t i = 1; i < n_shape(spec); i++) {
        us_vec3 p = us_spec_view_shape(spec, i)->X_BG.p;
        // Sunk by a tenth of its height and the fall under its radius: of 2 m across, 0.3 m at most.
        assert_true(p.x > 0 && p.z < 0.125 * p.x && p.z > 0.125 * p.x - 0.3);
    }
    us_spec_destroy(spec);
    us_error err = {0};
    assert_int_equal(
        load_body(PLANE "<scatter kind='rocks' density='0.1' area='0 0 9 9' regions='2'/>", &spec, &err),
        US_ERR_NAME);
    assert_non_null(strstr(err.message, "regions"));
    assert_int_equal(system(line), 0);
}

static void loose_rocks_are_objects_that_come_to_rest_on_the_ground(void **state) {
    (void)state;
    static const char *const forms[] = {"hull", "ellipsoid"};
    for (int k = 0; k < 2; k++) {
        char body[512];
        snprintf(body, sizeof body,
                 PLANE "<scatter kind='rocks' name='pebble' density='0.1' area='-4 -4 4 4' least='0.3' "
                       "most='1' loose='true' form='%s'/>",
                 forms[k]);
        us_spec *spec = load(body);
        us_model *model = NULL;
        us_sim *sim = NULL;
        us_error err = {0};
        int32_t n = us_spec_get_counts(spec).n_link;
        assert_true(n >= 3 && us_spec_find_link(spec, "pebble-1/rock") >= 0);
        const us_link_def *link = us_spec_view_link(spec, 0);
        // 2700 kg/m^3 of something between 0.3 and 1 m across.
        assert_true(link->inertia.mass > 10 && link->inertia.mass < 1500);
        if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s", err.message);
        assert_int_equal(us_sim_create(model, NULL, &sim, NULL), US_OK);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(us_sim_step(sim, NULL), US_OK);
        for (int32_t i = 0; i < n; i++) {
            us_pose X = us_sim_get_pose(sim, us_model_find_body(model, us_spec_view_link(spec, i)->name));
            // They start a centimetre up and do not sink through; an ellipsoid may roll on its side.
            assert_true(fabs(X.p.x) < 5 && fabs(X.p.y) < 5 && X.p.z > -0.6 && X.p.z < 1);
        }
        us_sim_destroy(sim);
        us_model_destroy(model);
        us_spec_destroy(spec);
    }
}

static void what_is_wrong_is_said_with_density_and_area(void **state) {
    (void)state;
    static const struct {
        const char *body;
        us_status status;
        const char *says;
    } rows[] = {
        {PLANE "<scatter kind='rocks' density='0.2' area='-1000 -1000 1000 1000'/>", US_ERR_LIMIT,
         "density 0.2 over an area of 4e+06 m^2"},
        {PLANE "<scatter kind='rocks' density='0.1' area='-30 -30 30 30' loose='true'/>", US_ERR_LIMIT,
         "loose"},
        {PLANE "<scatter kind='rocks' density='0.9' area='-1 -1 1 1'/>", US_ERR_VALUE, "cover 0.9"},
        {PLANE "<scatter kind='trees' density='1' distance='3' area='-1 -1 1 1'/>", US_ERR_VALUE,
         "do not fit 3 m apart"},
        {PLANE "<scatter kind='trees' density='0.1' area='1 1 -1 -1'/>", US_ERR_VALUE, "area"},
        {PLANE "<scatter kind='trees' density='0.1' area='1 1 2'/>", US_ERR_VALUE, "area"},
        {PLANE "<scatter kind='trees' density='0.1' area='0 0 9 9' loose='true'/>", US_ERR_VALUE, "loose"},
        {PLANE "<scatter kind='rocks' density='0.1' area='0 0 9 9' distance='1'/>", US_ERR_VALUE, "distance"},
        {PLANE "<scatter kind='rocks' density='0.1' area='0 0 9 9' clear='1 2 3'/>", US_ERR_VALUE, "clear"},
        {PLANE "<scatter kind='rocks' density='0.1' area='0 0 9 9' ground='flor'/>", US_ERR_NAME, "flor"},
        {"<scatter kind='rocks' density='0.1' area='0 0 9 9'/>", US_ERR_NAME, "no ground"},
        {PLANE "<scatter kind='cheese' density='0.1' area='0 0 9 9'/>", US_ERR_VALUE, "cheese"},
        {PLANE "<scatter kind='rocks' area='0 0 9 9'/>", US_ERR_SCHEMA, "density"},
        {PLANE "<scatter kind='rocks' density='0.1' area='0 0 9 9' surface='jelly'/>", US_ERR_NAME, "jelly"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        us_spec *spec = NULL;
        us_error err = {0};
        us_status status = load_body(rows[i].body, &spec, &err);
        if (status != rows[i].status || !strstr(err.message, rows[i].says))
            fail_msg("row %d: %d, %s", (int)i, (int)status, err.message);
        assert_true(err.line == 2 && err.remedy[0]);
        assert_null(spec);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rocks_stand_sunk_a_little_into_the_highest_ground),
        cmocka_unit_test(the_same_seed_scatters_the_same_and_another_does_not),
        cmocka_unit_test(trees_have_a_trunk_in_the_ground_and_a_crown_above),
        cmocka_unit_test(cleared_rectangles_and_steep_ground_stay_free),
        cmocka_unit_test(rocks_stand_on_a_site_in_its_regions),
        cmocka_unit_test(loose_rocks_are_objects_that_come_to_rest_on_the_ground),
        cmocka_unit_test(what_is_wrong_is_said_with_density_and_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

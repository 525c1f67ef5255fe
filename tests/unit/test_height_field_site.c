// Height fields of sites in scenes: where they lie, what may be said of them, and what falls beside them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocator.h"
#include "geom/geom.h"
#include "model/model.h"
#include "sim/sim.h"
#include "site_make.h"

enum { N_X = 601, N_Y = 401 };

static float sloped(double x, double y) { return (float)(3 + 0.01 * x - 0.02 * y); }
static float level(double x, double y) { return (float)(0 * (x + y)); }

static int setup(void **state) {
    (void)state;
    site_make("slope", N_X, N_Y, 1, 0.5, sloped);
    site_make("level", N_X, N_Y, 1, 0.5, level);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    site_clear("slope");
    site_clear("level");
    return 0;
}

// The directory that the test runs in is where names in the scene begin.
static us_status load(const char *shape, const char *xyz, us_spec **out_spec, us_model **out_model,
                      us_error *err) {
    char text[2000], here[1000], path[1100];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "%s/scene.xml", here);
    snprintf(text, sizeof text,
             "<scene version=\"1\"><world step=\"1 ms\">%s</world><object name=\"ball\" xyz=\"%s\"><link "
             "name=\"ball\" density=\"500\">"
             "<shape type=\"sphere\" size=\"0.2\"/></link></object></scene>",
             shape, xyz);
    us_status status = us_spec_load_text(text, strlen(text), path, NULL, out_spec, err);
    if (!status && out_model) status = us_model_compile(*out_spec, NULL, out_model, err);
    return status;
}

static us_model *model_of(const char *shape, const char *xyz, int32_t n_warning) {
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_error err = {0};
    if (load(shape, xyz, &spec, &model, &err)) fail_msg("%s (%s)", err.message, err.remedy);
    if (us_spec_get_counts(spec).n_warning != n_warning)
        fail_msg("%s", us_spec_view_warning(spec, 0)->message);
    us_spec_destroy(spec);
    return model;
}

// Where the ball is after some seconds.
static us_vec3 fall(const us_model *model, double seconds) {
    us_sim *sim = NULL;
    us_error err = {0};
    assert_int_equal(us_sim_create(model, NULL, &sim, &err), US_OK);
    for (int k = 0; k < (int)(1000 * seconds); k++) {
        if (us_sim_step(sim, NULL)) fail_msg("%s", us_sim_view_error(sim)->message);
    }
    us_vec3 p = us_sim_get_pose(sim, us_model_find_body(model, "ball/ball")).p;
    us_sim_destroy(sim);
    return p;
}

static void a_ball_comes_to_rest_on_the_site_where_the_site_says(void **state) {
    (void)state;
    us_model *whole =
        model_of("<shape type=\"height-field\" file=\"level\" xyz=\"5 6 7\"/>", "100 20 7.5", 0);
    // Its weight presses the ball in by a few hundredths of a millimetre.
    assert_true(fabs(fall(whole, 1).z - 7.2) < 1e-3);
    us_model_destroy(whole);
}

static void a_zone_lies_where_it_does_in_the_whole(void **state) {
    (void)state;
    // A turned and moved site; the zone is not in its middle.
    const char *pose = "xyz=\"10 -20 1\" rpy=\"0 0 0.5\"";
    char all[300], part[300];
    snprintf(all, sizeof all, "<shape type=\"height-field\" file=\"slope/\" %s/>", pose);
    snprintf(part, sizeof part,
             "<shape type=\"height-field\" file=\"slope/\" zone=\"50 -80 120 m 60.5 m\" %s/>", pose);
    // Refused: a list has one unit, or each number has its own.
    us_spec *spec = NULL;
    us_error err = {0};
    assert_int_equal(load(part, "0 0 0", &spec, NULL, &err), US_ERR_VALUE);
    snprintf(part, sizeof part, "<shape type=\"height-field\" file=\"slope/\" zone=\"50 -80 120 60.5\" %s/>",
             pose);
    us_model *a = model_of(all, "85 20 7", 0), *b = model_of(part, "85 20 7", 0);
    const us_height_field *f = b->geom[0].geom.field;
    // x from 50 to 120 by 1 m, y from -80 to 60.5 by 0.5 m; both ends are samples.
    assert_true(f->n_x == 71 && f->n_y == 282);
    us_vec3 p = fall(a, 1.5), q = fall(b, 1.5);
    // The numbers of the two frames differ by rounding, and rolling spreads that a little.
    assert_true(fabs(p.x - q.x) < 1e-6 && fabs(p.y - q.y) < 1e-6 && fabs(p.z - q.z) < 1e-6);
    assert_true(p.z > 3);
    us_model_destroy(a);
    us_model_destroy(b);
}

static void beside_the_zone_things_fall_and_a_warning_says_so(void **state) {
    (void)state;
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_error err = {0};
    assert_int_equal(load("<shape type=\"height-field\" file=\"level\" zone=\"-10 -10 10 10\"/>", "15 0 1",
                          &spec, &model, &err),
                     US_OK);
    assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
    const us_error *warning = us_spec_view_warning(spec, 0);
    assert_non_null(strstr(warning->element, "ball"));
    assert_non_null(strstr(warning->message, "beside the ground, which goes from -10, -10 to 10, 10"));
    assert_non_null(strstr(warning->remedy, "zone"));
    assert_true(fall(model, 2).z < -15);
    us_model_destroy(model);
    us_spec_destroy(spec);
    // Something else to stand on is ground as well.
    us_model_destroy(model_of("<shape type=\"height-field\" file=\"level\" zone=\"-10 -10 10 10\"/><shape "
                              "type=\"plane\" xyz=\"0 0 -1\"/>",
                              "15 0 1", 0));
}

static void expect(const char *shape, us_status code, const char *message) {
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_error err = {0};
    us_status status = load(shape, "0 0 1", &spec, &model, &err);
    if (status != code || !strstr(err.message, message))
        fail_msg("%d, \"%s\" in place of \"%s\"", (int)status, err.message, message);
    assert_true(err.remedy[0] && err.line == 1);
    us_model_destroy(model);
    if (!status) us_spec_destroy(spec);
}

static void what_cannot_be_is_refused_with_a_remedy(void **state) {
    (void)state;
    expect("<shape type=\"height-field\" file=\"level\" nx=\"5\"/>", US_ERR_VALUE, "nx: a site has its own");
    expect("<shape type=\"height-field\" file=\"level\" zone=\"0 0 5\"/>", US_ERR_VALUE, "zone");
    expect("<shape type=\"height-field\" file=\"level\" zone=\"5 0 0 5\"/>", US_ERR_VALUE,
           "invalid rectangle");
    expect("<shape type=\"height-field\" file=\"level\" zone=\"0 0 0.1 0.1\"/>", US_ERR_VALUE,
           "empty, or reaches beyond");
    expect("<shape type=\"height-field\" file=\"level\" zone=\"0 0 301 50\"/>", US_ERR_VALUE,
           "empty, or reaches beyond");
    expect("<shape type=\"height-field\" file=\"level\" memory=\"-1 MB\"/>", US_ERR_VALUE, "memory");
    expect("<shape type=\"height-field\" file=\"level\" memory=\"5 m\"/>", US_ERR_VALUE, "memory");
    expect("<shape type=\"height-field\" nx=\"2\" ny=\"2\" dx=\"1\" dy=\"1\" heights=\"0 0 0 0\" memory=\"5 "
           "MB\"/>",
           US_ERR_VALUE, "belongs to a site");
    expect("<shape type=\"box\" size=\"1 1 1\" zone=\"0 0 1 1\"/>", US_ERR_VALUE, "zone: a box has none");
    expect("<shape type=\"height-field\" file=\"level/height\"/>", US_ERR_IO, "level/height/site.json");
    expect("<shape type=\"height-field\" file=\"nowhere/\"/>", US_ERR_IO, "nowhere/site.json");
    expect("<shape type=\"union\"><shape type=\"height-field\" file=\"level\"/></shape>", US_ERR_VALUE,
           "cannot be part of a union");
}

static void calls_that_cannot_be_are_refused_too(void **state) {
    (void)state;
    us_allocator a = us_allocator_default();
    us_height_field *field = NULL;
    us_error err = {0};
    const double all[4] = {0}, nowhere[4] = {NAN, 0, 1, 1};
    assert_int_equal(usi_field_open("level", NULL, all, 0, &a, &field, &err), US_ERR_VALUE);
    assert_int_equal(usi_field_open("level", NULL, all, -5, &a, &field, &err), US_ERR_VALUE);
    assert_int_equal(usi_field_open("level", NULL, all, NAN, &a, &field, &err), US_ERR_VALUE);
    assert_int_equal(usi_field_open("level", NULL, nowhere, 1e9, &a, &field, &err), US_ERR_VALUE);
    assert_int_equal(usi_field_open("no such place", NULL, all, 1e9, &a, &field, &err), US_ERR_IO);
    assert_null(field);
}

static void the_model_s_hash_knows_the_site_and_the_zone_and_reads_no_tile(void **state) {
    (void)state;
    const char *shape[] = {"<shape type=\"height-field\" file=\"level\"/>",
                           "<shape type=\"height-field\" file=\"slope\"/>",
                           "<shape type=\"height-field\" file=\"level\" zone=\"-200 -50 200 50\"/>"};
    uint64_t hash[3];
    for (int i = 0; i < 3; i++) {
        us_model *m = model_of(shape[i], "0 0 4", 0);
        hash[i] = us_model_hash(m);
        assert_int_equal(usi_pager_get_info(m->geom[0].geom.field->pager).n_read, 0);
        us_gap gap;
        us_geom ball = {.kind = US_GEOM_SPHERE, .radius = 1};
        // The nearest point may be anywhere: not asked.
        assert_int_equal(
            us_geom_distance(&ball, us_pose_identity(), &m->geom[0].geom, us_pose_identity(), &gap),
            US_ERR_ARG);
        us_model_destroy(m);
    }
    assert_true(hash[0] != hash[1] && hash[0] != hash[2]);
    us_model *again = model_of(shape[0], "0 0 4", 0);
    assert_true(us_model_hash(again) == hash[0]);
    us_model_destroy(again);
}

static void out_of_memory_at_any_allocation_leaves_nothing_behind(void **state) {
    (void)state;
    us_spec *spec = NULL;
    us_error err = {0};
    assert_int_equal(load("<shape type=\"height-field\" file=\"level\"/>", "0 0 1", &spec, NULL, &err),
                     US_OK);
    bool is_whole = false;
    for (int64_t at = 1; !is_whole; at++) {
        assert_true(at < 500);
        test_allocator t;
        test_allocator_init(&t);
        t.fail_at = at;
        us_sim_def def = us_sim_def_default();
        def.allocator = t.allocator;
        us_model *model = NULL;
        us_sim *sim = NULL;
        us_status status = us_model_compile(spec, &t.allocator, &model, &err);
        if (!status) status = us_sim_create(model, &def, &sim, &err);
        if (!status) status = us_sim_step(sim, NULL);
        is_whole = status == US_OK;
        assert_true(is_whole || status == US_ERR_MEMORY);
        us_sim_destroy(sim);
        us_model_destroy(model);
        test_allocator_check(&t);
    }
    us_spec_destroy(spec);
}

static void a_world_goes_on_when_something_is_added_to_it(void **state) {
    (void)state;
    us_spec *spec = NULL, *more = NULL;
    us_model *before = NULL, *after = NULL;
    us_sim *sim = NULL;
    us_error err = {0};
    assert_int_equal(
        load("<shape type=\"height-field\" file=\"level\"/>", "100 20 0.3", &spec, &before, &err), US_OK);
    assert_int_equal(us_sim_create(before, NULL, &sim, &err), US_OK);
    for (int k = 0; k < 300; k++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    assert_int_equal(us_spec_copy(spec, &more), US_OK);
    us_shape_def box = us_shape_def_default(US_SHAPE_BOX);
    assert_int_equal(us_spec_add_shape(more, &box, NULL), US_OK);
    assert_int_equal(us_model_compile(more, NULL, &after, &err), US_OK);
    assert_int_equal(us_sim_replace(sim, after, &err), US_OK);
    us_model_destroy(before);
    for (int k = 0; k < 300; k++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    // It lies where it lay, pressed in by less than a millimetre.
    assert_true(fabs(us_sim_get_pose(sim, us_model_find_body(after, "ball/ball")).p.z - 0.2) < 1e-3);
    us_sim_destroy(sim);
    us_model_destroy(after);
    us_spec_destroy(spec);
    us_spec_destroy(more);
}

static void a_robot_is_put_down_where_the_ground_was_not_read_yet(void **state) {
    (void)state;
    us_model *model = model_of("<shape type=\"height-field\" file=\"slope\"/>", "-200 50 5", 0);
    us_sim *sim = NULL;
    us_error err = {0};
    assert_int_equal(us_sim_create(model, NULL, &sim, &err), US_OK);
    double q[7];
    memcpy(q, us_sim_view_q(sim), sizeof q);
    const double pose[3] = {250, -80, 0};
    us_status status = usi_sim_settle(sim, us_model_find_body(model, "ball/ball"), pose, q, &err);
    if (status) fail_msg("%s", err.message);
    // The ball touches the slope of 0.01 by -0.02 from above: its middle is 0.2 / cos above it. Pressed in by
    // less than a millimetre.
    double z = 3 + 2.5 + 1.6 + 0.2 * sqrt(1 + 0.01 * 0.01 + 0.02 * 0.02);
    assert_true(fabs(q[6] - z) < 1e-3);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ball_comes_to_rest_on_the_site_where_the_site_says),
        cmocka_unit_test(a_zone_lies_where_it_does_in_the_whole),
        cmocka_unit_test(beside_the_zone_things_fall_and_a_warning_says_so),
        cmocka_unit_test(what_cannot_be_is_refused_with_a_remedy),
        cmocka_unit_test(calls_that_cannot_be_are_refused_too),
        cmocka_unit_test(the_model_s_hash_knows_the_site_and_the_zone_and_reads_no_tile),
        cmocka_unit_test(out_of_memory_at_any_allocation_leaves_nothing_behind),
        cmocka_unit_test(a_world_goes_on_when_something_is_added_to_it),
        cmocka_unit_test(a_robot_is_put_down_where_the_ground_was_not_read_yet),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

// Lidars: other patterns than a head that turns, cones of beams with several returns, materials, dust, the
// sun and what is in the way.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "instrumented.h"
#include "lidar_rig.h"
#include "sense/lidar_return.h"

static int32_t count_returns(const lidar_rig *r) {
    int32_t n = 0;
    for (int32_t i = 0; i < r->n; i++)
        n += !isnan(r->point[i].x);
    return n;
}

// ---------------------------------------------------------------- patterns

static void a_grid_goes_over_its_window_row_by_row(void **state) {
    (void)state;
    lidar_rig r;
    // 41 columns and 21 rows, 861 shots of 0.4 ms; a wall at 10 m.
    lidar_rig_init(&r, "<shape type=\"box\" size=\"1 80 80\" xyz=\"10.5 0 0\"/>",
                   "pattern=\"grid\" window=\"40 20 deg\" resolution=\"1 1 deg\" period=\"0.4 ms\" " PLAIN, 0,
                   0);
    assert_int_equal(r.frame.n_column, 41);
    assert_int_equal(r.frame.n_ring, 21);
    lidar_rig_see(&r, 1, false);
    assert_true(fabs(r.frame.time - 861 * 0.4e-3) < 1e-12);
    for (int32_t row = 0; row < 21; row++) {
        for (int32_t c = 0; c < 41; c++) {
            const us_lidar_point *p = lidar_rig_at(&r, row, c);
            const double left = (20 - c) * DEGREE, up = (row - 10) * DEGREE, range = 10 / cos(up) / cos(left);
            assert_int_equal(p->ring, row);
            assert_true(fabs((double)p->time - 0.4e-3 * (41 * row + c)) < 1e-7);
            assert_true(fabs((double)p->x - 10) < FLOAT && fabs((double)p->y - 10 * tan(left)) < FLOAT &&
                        fabs((double)p->z - range * sin(up)) < FLOAT);
        }
    }
    lidar_rig_fini(&r);
}

// While the sensor moves, each shot of a slow grid is where it was fired.
static void a_grid_in_motion_is_straight_after_deskewing(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"box\" size=\"1 80 80\" xyz=\"20.5 0 0\"/>",
                   "pattern=\"grid\" window=\"20 20 deg\" resolution=\"1 1 deg\" period=\"2 ms\" " PLAIN, 1,
                   0);
    lidar_rig_see(&r, 0, true);
    for (int32_t i = 0; i < r.n; i++)
        assert_true(fabs((double)r.point[i].x - 20) < 2 * FLOAT);
    lidar_rig_see(&r, 0, false);
    for (int32_t i = 0; i < r.n; i++)
        assert_true(fabs((double)r.point[i].x - (20 - (double)r.point[i].time)) < 2 * FLOAT);
    lidar_rig_fini(&r);
}

static void a_rosette_is_bent_by_two_prisms_and_does_not_repeat(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"box\" size=\"1 400 400\" xyz=\"10.5 0 0\"/>",
                   "preset=\"rosette-40\" divergence=\"0\" " PLAIN, 0, 0);
    assert_int_equal(r.frame.n_column, 10000);
    us_vec3 first[10];
    double widest = 0;
    for (int turn = 0; turn < 2; turn++) {
        lidar_rig_see(&r, turn, false);
        for (int32_t i = 0; i < 10000; i++) {
            const us_lidar_point *p = &r.point[i];
            const double t = 1e-5 * (10000 * turn + i), a = 7294 * 6 * DEGREE * t, b = -4664 * 6 * DEGREE * t,
                         left = 9.6 * DEGREE * (cos(a) + cos(b)), up = 9.6 * DEGREE * (sin(a) + sin(b)),
                         angle = hypot(left, up), x = (double)p->x, y = (double)p->y, z = (double)p->z;
            assert_true(fabs(x - 10) < FLOAT);
            // The direction is the end of a rotation by `angle` across x.
            assert_true(fabs(atan2(hypot(y, z), x) - angle) < 1e-6);
            assert_true(fabs(y * up - z * left) < 1e-5);
            widest = fmax(widest, angle);
            if (turn == 0 && i < 10) first[i] = us_vec3_make(x, y, z);
            if (turn == 1 && i < 10)
                assert_true(us_vec3_norm(us_vec3_sub(first[i], us_vec3_make(x, y, z))) > 0.1);
        }
    }
    assert_true(widest > 19 * DEGREE && widest <= 19.2 * DEGREE + 1e-9);
    lidar_rig_fini(&r);
}

// ---------------------------------------------------------------- several returns

// A plate that covers the lower half of a level beam, `gap` in front of a wall at 10 m.
#define HALF_PLATE(x)                                                                                        \
    "<shape type=\"box\" size=\"1 80 80\" xyz=\"10.5 0 0\"/><shape type=\"box\" size=\"0.01 40 8\" xyz=\"" x \
    " 0 -4\"/>"
#define LEVEL \
    "elevations=\"0\" columns=\"360\" rate=\"10 Hz\" divergence=\"0.002 rad\" xyz=\"0 0 -0.001\" " PLAIN " "

static double ahead(const char *world, const char *sensor, int which) {
    lidar_rig r;
    lidar_rig_init(&r, world, sensor, 0, 0);
    lidar_rig_see(&r, 0, false);
    const double x = (double)r.point[(int64_t)which * r.frame.n_column].x;
    lidar_rig_fini(&r);
    return x;
}

static void surfaces_far_apart_are_returns_of_their_own(void **state) {
    (void)state;
    // 2 m apart: of five lines four meet the plate, for its edge is 1 mrad, at 8 m 8 mm, less 1 mm above the
    // axis; the plate is the stronger one by that and by its being nearer.
    const char *world = HALF_PLATE("8.005");
    assert_true(fabs(ahead(world, LEVEL "returns=\"first\"", 0) - 8) < 1e-4);
    assert_true(fabs(ahead(world, LEVEL "returns=\"strongest\"", 0) - 8) < 1e-4);
    assert_true(fabs(ahead(world, LEVEL "returns=\"last\"", 0) - 10) < 1e-4);
    assert_true(fabs(ahead(world, LEVEL "returns=\"dual\"", 0) - 8) < 1e-4);
    assert_true(fabs(ahead(world, LEVEL "returns=\"dual\"", 1) - 10) < 1e-4);
    // With a wall alone there is one return, and no second one.
    assert_true(
        isnan(ahead("<shape type=\"box\" size=\"1 80 80\" xyz=\"10.5 0 0\"/>", LEVEL "returns=\"dual\"", 1)));
}

static void surfaces_near_each_other_are_mixed(void **state) {
    (void)state;
    // 0.3 m apart, within a pulse of 0.4 m: the mean of four lines at 9.7 m and one at 10 m, each with the
    // square of its nearness.
    const double x = ahead(HALF_PLATE("9.705"), LEVEL, 0), near = 4 / (9.7 * 9.7), far = 1.0 / 100,
                 want = (near * 9.7 + far * 10) / (near + far);
    assert_true(fabs(x - want) < 1e-4);
    // With a shorter pulse they are told apart.
    assert_true(fabs(ahead(HALF_PLATE("9.705"), LEVEL "pulse=\"0.2 m\"", 0) - 9.7) < 1e-4);
}

static void lines_of_a_cone_are_as_far_from_its_axis_as_its_light(void **state) {
    (void)state;
    lidar_rig r;
    for (int n = 2; n <= 9; n++) {
        char text[400];
        snprintf(text, sizeof text, "preset=\"vlp-16\" divergence=\"0.003 rad\" rays=\"%d\"", n);
        lidar_rig_init(&r, "", text, 0, 0);
        const usi_lidar *l = &r.model->lidar[0];
        double square = 0;
        assert_int_equal(l->n_ray, n);
        for (int i = 0; i < n; i++)
            square += (l->ray[i].left * l->ray[i].left + l->ray[i].up * l->ray[i].up) / n;
        assert_true(fabs(square - 0.5 * 0.0015 * 0.0015) < 1e-15);
        lidar_rig_fini(&r);
    }
}

// ---------------------------------------------------------------- light

static void materials_reflect_as_they_say(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init_with(&r,
                        "<shape type=\"box\" size=\"1 10 10\" xyz=\"5.5 0 0\" surface=\"chalk\"/>"
                        "<shape type=\"box\" size=\"1 10 10\" xyz=\"-5.5 0 0\" surface=\"sign\"/>"
                        "<shape type=\"box\" size=\"10 1 10\" xyz=\"0 5.5 0\" surface=\"plain\"/>",
                        "<material name=\"chalk\"><number key=\"reflectivity\" value=\"0.8\"/></material>"
                        "<material name=\"sign\"><number key=\"retroreflection\" value=\"5\"/></material>"
                        "<material name=\"plain\"/>",
                        "elevations=\"0\" columns=\"360\" rate=\"10 Hz\" " PLAIN, 0, 0, 1);
    lidar_rig_see(&r, 0, false);
    assert_true(fabs((double)r.point[0].intensity - 255 * 0.8) < 1e-3);
    assert_true(fabs((double)r.point[90].intensity - 255 * 0.3) < 1e-3);
    assert_true(fabs((double)r.point[180].intensity - 255) < 1e-3);
    // At 30 degrees a plain surface sends the cosine.
    assert_true(fabs((double)r.point[30].intensity - 255 * 0.8 * cos(30 * DEGREE)) < 1e-3);
    lidar_rig_fini(&r);
}

// Where half of the shots come back: the range at which the power is what is needed.
static int32_t n_at(double range, const char *light) {
    lidar_rig r;
    char world[400], sensor[600];
    snprintf(world, sizeof world, "<shape type=\"sphere\" size=\"0.5\" xyz=\"%.9g 0 0\"/>", range + 0.5);
    snprintf(sensor, sizeof sensor,
             "pattern=\"grid\" window=\"0.001 0.001 deg\" resolution=\"2e-5 2e-5 deg\" period=\"50 us\" "
             "max-range=\"500 m\" reach=\"70 m\" reflectivity=\"0.1\" %s",
             light);
    lidar_rig_init(&r, world, sensor, 0, 0);
    lidar_rig_see(&r, 0, false);
    const int32_t n = count_returns(&r);
    assert_int_equal(r.n, 51 * 51);
    lidar_rig_fini(&r);
    return n;
}

static void dust_and_the_sun_shorten_the_reach(void **state) {
    (void)state;
    // Of 2601 shots half, give or take 4.5 deviations of 25.5.
    const double spread = 4.5 * 25.5;
    assert_true(fabs(n_at(70, "") - 1300.5) < spread);
    // Dust: (70 / r)^2 exp(-2 mu r) = 1 at 40 m for mu = ln(70 / 40) / 40.
    char light[200];
    snprintf(light, sizeof light, "extinction=\"%.12g\"", log(70.0 / 40) / 40);
    assert_true(fabs(n_at(40, light) - 1300.5) < spread);
    assert_true(n_at(48, light) < 100);
    // Sun straight at the surface from behind the lidar: T = sqrt(1 + 80 * 0.1) = 3, the reach 70 / sqrt 3.
    assert_true(fabs(n_at(70 / sqrt(3), "sun=\"80\" sun-direction=\"-2 0 0\"") - 1300.5) < spread);
    // From the other side it does not shine on what is seen.
    assert_true(fabs(n_at(70, "sun=\"80\" sun-direction=\"1 0 0\"") - 1300.5) < spread);
}

// Returns of dust alone: their number and mean range against the chances of each length of the pulse, summed
// here.
static void dust_sends_light_back(void **state) {
    (void)state;
    lidar_rig r;
    const double mu = 0.02, beta = 1e-5, reach = 70, pulse = 0.4, pi = acos(-1);
    lidar_rig_init(
        &r, "",
        "pattern=\"grid\" window=\"20 20 deg\" resolution=\"0.1 0.1 deg\" period=\"5 us\" min-range=\"1 m\" "
        "max-range=\"100 m\" reach=\"70 m\" extinction=\"0.02\" backscatter=\"1e-5\"",
        0, 0);
    lidar_rig_see(&r, 0, false);
    double none = 1, mean = 0, square = 0;
    for (double from = 1; from + pulse / 2 <= 100; from += pulse) {
        const double at = from + pulse / 2,
                     power = 10 * pi * beta * pulse * (reach / at) * (reach / at) * exp(-2 * mu * at),
                     seen = none * exp(-1 / power);
        mean += seen * at;
        square += seen * at * at;
        none -= seen;
    }
    mean /= 1 - none;
    const double deviation = sqrt(square / (1 - none) - mean * mean);
    double sum = 0;
    for (int32_t i = 0; i < r.n; i++)
        sum += isnan(r.point[i].x) ? 0 : range_of(&r.point[i]);
    const int32_t n = count_returns(&r);
    assert_int_equal(r.n, 201 * 201);
    assert_true(none > 0.001 && none < 0.999);
    // 4.5 deviations of a share and of a mean.
    assert_true(fabs((double)n / r.n - (1 - none)) < 4.5 * sqrt(none * (1 - none) / r.n));
    assert_true(fabs(sum / n - mean) < 4.5 * deviation / sqrt(n));
    lidar_rig_fini(&r);
}

// ---------------------------------------------------------------- what is in the way

static void a_blind_sector_has_no_returns(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(
        &r, "<shape type=\"plane\" xyz=\"0 0 -2\"/>",
        "elevations=\"-30 deg\" columns=\"360\" rate=\"10 Hz\" blind=\"169.5 190.5 -20.5 -10.5 deg\" " PLAIN,
        0, 0);
    lidar_rig_see(&r, 0, false);
    for (int32_t i = 0; i < 360; i++) {
        const bool is_dark = (i >= 170 && i <= 190) || (i >= 340 && i <= 349);
        assert_int_equal(isnan(r.point[i].x), is_dark);
    }
    lidar_rig_fini(&r);
}

static int32_t points_on_k10(const char *more) {
    char text[2000];
    us_error err = {0};
    us_spec *spec;
    us_model *model;
    us_sim *sim;
    us_lidar_frame f;
    snprintf(text, sizeof text,
             "<scene name=\"s\" version=\"1\"><world step=\"1 ms\" gravity=\"0 0 0\"/><robot name=\"k10\" "
             "file=\"" US_SOURCE_DIR "/models/k10.urdf\" base=\"floating\"><sensor type=\"lidar\" "
             "name=\"lidar\" link=\"base\" preset=\"vlp-16\" "
             "xyz=\"0.8 0 0.3\" min-range=\"0\" %s/><network namespace=\"k10\"/></robot></scene>",
             more);
    if (us_spec_load_text(text, strlen(text), "test.xml", NULL, &spec, &err) ||
        us_model_compile(spec, NULL, &model, &err) || us_sim_create(model, NULL, &sim, &err))
        fail_msg("%s (%s)", err.message, err.remedy);
    for (int i = 0; i < 105; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    us_lidar_point *p = malloc(16 * 1809 * sizeof *p);
    assert_non_null(p);
    assert_int_equal(us_sim_get_lidar_frame(sim, (us_lidar){0}, false, &f, p, 16 * 1809), US_OK);
    int32_t n = 0;
    for (int32_t i = 0; i < 16 * 1809; i++)
        n += !isnan(p[i].x);
    free(p);
    us_sim_destroy(sim);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return n;
}

static void a_robot_sees_itself_unless_it_is_hidden(void **state) {
    (void)state;
    assert_true(points_on_k10("") > 100);
    assert_int_equal(points_on_k10("hide-robot=\"true\""), 0);
}

// ---------------------------------------------------------------- the same bytes

static void all_of_it_is_the_same_with_threads_and_after_a_snapshot(void **state) {
    (void)state;
    static const char *const sensor[] = {("preset=\"hdl-32e\" divergence=\"0.003\" returns=\"dual\" "
                                          "extinction=\"0.02\" backscatter=\"0.001\" sun=\"3\""),
                                         "preset=\"rosette-40\" returns=\"dual\"",
                                         "preset=\"ilris-3d\" window=\"8 8 deg\" returns=\"last\""};
    const char *world =
        "<shape type=\"plane\" xyz=\"0 0 -1\"/><shape type=\"sphere\" size=\"1\" xyz=\"6 1 0\"/>"
        "<shape type=\"cylinder\" size=\"0.5 2\" xyz=\"4 -1 0\"/>";
    for (int k = 0; k < 3; k++) {
        lidar_rig a, b;
        char text[300];
        snprintf(text, sizeof text, "%s", sensor[k]);
        lidar_rig_init_with(&a, world, "", text, 0.5, 0.7, 1);
        lidar_rig_init_with(&b, world, "", text, 0.5, 0.7, 3);
        size_t length = 0;
        lidar_rig_step(&a, 77);
        lidar_rig_step(&b, 77);
        assert_true(us_sim_hash(a.sim) == us_sim_hash(b.sim));
        assert_int_equal(us_sim_save(a.sim, NULL, 0, &length), US_OK);
        char *kept = malloc(length), *other = malloc(length);
        assert_true(kept && other);
        assert_int_equal(us_sim_save(a.sim, kept, length, NULL), US_OK);
        assert_int_equal(us_sim_save(b.sim, other, length, NULL), US_OK);
        assert_memory_equal(kept, other, length);
        lidar_rig_step(&a, 400);
        const uint64_t hash = us_sim_hash(a.sim);
        assert_int_equal(us_sim_restore(b.sim, kept, length), US_OK);
        for (int i = 0; i < 400; i++) {
            us_sim_poison(b.sim);
            lidar_rig_step(&b, 1);
        }
        assert_true(us_sim_hash(b.sim) == hash);
        free(kept);
        free(other);
        lidar_rig_fini(&a);
        lidar_rig_fini(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_goes_over_its_window_row_by_row),
        cmocka_unit_test(a_grid_in_motion_is_straight_after_deskewing),
        cmocka_unit_test(a_rosette_is_bent_by_two_prisms_and_does_not_repeat),
        cmocka_unit_test(surfaces_far_apart_are_returns_of_their_own),
        cmocka_unit_test(surfaces_near_each_other_are_mixed),
        cmocka_unit_test(lines_of_a_cone_are_as_far_from_its_axis_as_its_light),
        cmocka_unit_test(materials_reflect_as_they_say),
        cmocka_unit_test(dust_and_the_sun_shorten_the_reach),
        cmocka_unit_test(dust_sends_light_back),
        cmocka_unit_test(a_blind_sector_has_no_returns),
        cmocka_unit_test(a_robot_sees_itself_unless_it_is_hidden),
        cmocka_unit_test(all_of_it_is_the_same_with_threads_and_after_a_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

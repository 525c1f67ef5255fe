// Soil that varies over the ground, as wheels and feet feel it: maps against the uniform soils that they are
// made of, and against the law itself.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "site_make.h"
#include "soil_rig.h"

// Every number of a soil.
static const char *const numbers[] = {"kc",
                                      "kphi",
                                      "n",
                                      "cohesion",
                                      "friction_angle",
                                      "shear_x",
                                      "shear_x_angle",
                                      "shear_y",
                                      "shear_y_angle",
                                      "density",
                                      "peak_angle",
                                      "peak_angle_slip",
                                      "exit_ratio",
                                      "unload",
                                      "unload_depth",
                                      "repose_angle",
                                      "critical_angle",
                                      "compaction",
                                      "shear_radius",
                                      "slip_sinkage",
                                      "max_curvature"};
enum { N_NUMBER = sizeof numbers / sizeof numbers[0], MOST = 401 };

static us_soil soil_named(const char *name) {
    us_soil soil;
    assert_true(us_soil_find(name, &soil));
    return soil;
}

// A map of a strip along x, two samples wide.
typedef struct strip {
    double value[2 * MOST];
} strip;

static us_soil_map_def strip_map(strip *s, const char *parameter, int32_t n, double spacing) {
    return (us_soil_map_def){.ground = "ground",
                             .parameter = parameter,
                             .values = s->value,
                             .n_x = n,
                             .n_y = 2,
                             .dx = spacing,
                             .dy = 10};
}

static void fill(strip *s, int32_t n, int32_t from, int32_t to, double value) {
    for (int32_t i = from; i < to; i++)
        s->value[i] = s->value[n + i] = value;
}

// The single wheel with a slip of 0.2, at 0.1 m/s from x = -1 m on.
static const char *rig_text(const char *ground, const char *soil) {
    static char text[2400];
    snprintf(text, sizeof text,
             "<scene name=\"rig\" version=\"1\">"
             "<world step=\"1 ms\"><shape name=\"ground\" %s surface=\"soil\"/></world>"
             "<material name=\"aluminium\"/><material name=\"soil\">%s</material>"
             "<object name=\"rig\">"
             "<link name=\"carriage\"><inertial mass=\"5\" inertia=\"0.1 0.1 0.1\"/></link>"
             "<link name=\"lift\"><inertial mass=\"0.5\" inertia=\"0.01 0.01 0.01\"/></link>"
             "<link name=\"wheel\"><inertial mass=\"6\" inertia=\"0.03 0.03 0.03\"/>"
             "<shape type=\"cylinder\" size=\"0.09 0.11\" rpy=\"-90 0 0 deg\" surface=\"aluminium\"/></link>"
             "<joint name=\"travel\" type=\"prismatic\" parent=\"world\" child=\"carriage\" axis=\"1 0 0\" "
             "v=\"0.1\" xyz=\"-1 0 0\"/>"
             "<joint name=\"sink\" type=\"prismatic\" parent=\"carriage\" child=\"lift\" axis=\"0 0 1\" "
             "xyz=\"0 0 0.09\" damping=\"20\"/>"
             "<joint name=\"spin\" type=\"continuous\" parent=\"lift\" child=\"wheel\" axis=\"0 1 0\" "
             "v=\"${0.1/0.072}\"/>"
             "<drive joint=\"travel\" kd=\"1e9\" velocity=\"0.1\"/><drive joint=\"spin\" kd=\"1e7\" "
             "velocity=\"${0.1/0.072}\"/>"
             "</object>"
             "<object name=\"ball\" xyz=\"-1 0.5 0.11\"><link name=\"l\" density=\"3000\"><shape "
             "type=\"sphere\" size=\"0.1\"/></link></object>"
             "<object name=\"box\" xyz=\"-1 -0.5 0.11\"><link name=\"l\" density=\"3000\"><shape "
             "type=\"box\" size=\"0.2 0.2 0.2\"/></link></object>"
             "</scene>",
             ground, soil);
    return text;
}

static void expect_same(const soil_world *a, const soil_world *b, const char *what) {
    us_model_counts n = us_model_get_counts(a->model);
    if (memcmp(us_sim_view_q(a->sim), us_sim_view_q(b->sim), (size_t)n.n_q * sizeof(double)) != 0 ||
        memcmp(us_sim_view_v(a->sim), us_sim_view_v(b->sim), (size_t)n.n_v * sizeof(double)) != 0)
        fail_msg("%s: not the same bits after %lld ticks", what, (long long)us_sim_get_tick(a->sim));
}

static void a_map_of_one_number_everywhere_is_the_uniform_soil_to_the_bit(void **state) {
    (void)state;
    us_soil sand = soil_named("dry_sand");
    static strip strips[N_NUMBER];
    us_soil_map_def maps[N_NUMBER];
    for (int i = 0; i < N_NUMBER; i++) {
        fill(&strips[i], 9, 0, 9, *us_soil_parameter(&sand, numbers[i], NULL, NULL));
        maps[i] = strip_map(&strips[i], numbers[i], 9, 0.7);
    }
    soil_world plain = soil_text(rig_text("type=\"plane\"", "<soil like=\"dry_sand\"/>"), NULL);
    // Clay by its material, of which nothing is left.
    soil_world mapped = soil_text_maps(rig_text("type=\"plane\"", "<soil like=\"clay\"/>"), maps, N_NUMBER);
    for (int i = 0; i < 15; i++) {
        soil_steps(&plain, 100);
        soil_steps(&mapped, 100);
        expect_same(&plain, &mapped, "dry sand");
    }
    assert_true(soil_sunk(&mapped, "rig/wheel").is_wheel && soil_sunk(&mapped, "ball/l").sinkage > 1e-3 &&
                soil_sunk(&mapped, "box/l").sinkage > 1e-5);
    soil_free(&plain);
    soil_free(&mapped);
    // In a patch: what is pressed out, how it flows, and what is left of the rut.
    static const char patch[] =
        "type=\"height-field\" nx=\"61\" ny=\"41\" dx=\"0.05\" dy=\"0.05\" expression=\"0\" bed=\"1 cm\"";
    plain = soil_text(rig_text(patch, "<soil like=\"dry_sand\"/>"), NULL);
    mapped = soil_text_maps(
        rig_text(patch,
                 "<soil like=\"clay\" compaction=\"0.9\" repose-angle=\"0.2\" critical-angle=\"0.3\"/>"),
        maps, N_NUMBER);
    soil_steps(&plain, 1500);
    soil_steps(&mapped, 1500);
    expect_same(&plain, &mapped, "a bed");
    assert_true(us_sim_get_deformable(plain.sim, 0).digest != 0);
    assert_int_equal(us_sim_get_deformable(plain.sim, 0).digest, us_sim_get_deformable(mapped.sim, 0).digest);
    soil_free(&plain);
    soil_free(&mapped);
}

typedef struct reading {
    double sinkage, pull, torque;
} reading;

static reading read_rig(const soil_world *w) {
    return (reading){-soil_q(w, "rig/sink"), -soil_torque(w, "rig/travel"), soil_torque(w, "rig/spin")};
}

static void expect_reading(const char *what, reading is, reading expected) {
    printf("    %s: %.5f mm, %.4f N, %.5f N m; uniform %.5f mm, %.4f N, %.5f N m\n", what, 1e3 * is.sinkage,
           is.pull, is.torque, 1e3 * expected.sinkage, expected.pull, expected.torque);
    // The same forces at the same sinkage. What is left of swinging in and of the step a second ago is below
    // a millionth of a metre and of the load.
    build_near("sinkage", is.sinkage, expected.sinkage, 1e-7);
    build_near("pull", is.pull, expected.pull, 1e-4);
    build_near("torque", is.torque, expected.torque, 1e-5);
}

static void on_either_side_of_a_step_the_wheel_is_as_in_that_soil_alone(void **state) {
    (void)state;
    us_soil sand = soil_named("dry_sand"), clay = soil_named("clay");
    static strip strips[N_NUMBER];
    us_soil_map_def maps[N_NUMBER];
    enum { N = 100 };
    // Samples 5 cm apart, half a sample off the middle: the numbers change from x = -0.025 to 0.025 m.
    for (int i = 0; i < N_NUMBER; i++) {
        fill(&strips[i], N, 0, N / 2, *us_soil_parameter(&sand, numbers[i], NULL, NULL));
        fill(&strips[i], N, N / 2, N, *us_soil_parameter(&clay, numbers[i], NULL, NULL));
        maps[i] = strip_map(&strips[i], numbers[i], N, 0.05);
    }
    soil_world w = soil_text_maps(rig_text("type=\"plane\"", "<soil like=\"lunar\"/>"), maps, N_NUMBER);
    soil_world in_sand = soil_text(rig_text("type=\"plane\"", "<soil like=\"dry_sand\"/>"), NULL);
    soil_world in_clay = soil_text(rig_text("type=\"plane\"", "<soil like=\"clay\"/>"), NULL);
    // At 9 s it is at x = -0.1, at 20 s at 1.
    soil_steps(&w, 9000);
    soil_steps(&in_sand, 9000);
    expect_reading("sand", read_rig(&w), read_rig(&in_sand));
    soil_steps(&w, 11000);
    soil_steps(&in_clay, 9000);
    expect_reading("clay", read_rig(&w), read_rig(&in_clay));
    assert_true(fabs(read_rig(&in_clay).sinkage - read_rig(&in_sand).sinkage) > 1e-3);
    soil_free(&w);
    soil_free(&in_sand);
    soil_free(&in_clay);
}

static us_soil soil_under(const soil_world *w, const char *body) {
    us_body b = us_model_find_body(w->model, body);
    for (int32_t i = 0; i < us_sim_n_soil_contact(w->sim); i++) {
        us_soil soil;
        if (us_sim_get_soil_contact(w->sim, i).body.i != b.i) continue;
        assert_int_equal(us_sim_get_soil_contact_soil(w->sim, i, &soil), US_OK);
        return soil;
    }
    fail_msg("%s is not in soil", body);
    return us_soil_default();
}

static void numbers_and_forces_are_continuous_over_samples_gaps_and_the_edge(void **state) {
    (void)state;
    // Samples of every height at -0.9, -0.7, ... -0.1, one of them missing; beyond the last the material's
    // own number.
    static strip kphi;
    const double values[] = {6e5, 12e5, 4e5, NAN, 15e5};
    for (int i = 0; i < 5; i++)
        fill(&kphi, 5, i, i + 1, values[i]);
    us_soil_map_def map = strip_map(&kphi, "kphi", 5, 0.2);
    soil_world w =
        soil_text_maps(rig_text("type=\"plane\" xyz=\"-0.5 0 0\"", "<soil like=\"lunar\"/>"), &map, 1);
    soil_steps(&w, 500);
    double own = soil_named("lunar").kphi, before = NAN, force = NAN, greatest = 0;
    for (int i = 500; i < 15000; i++) {
        soil_steps(&w, 1);
        double x = -1 + 1e-4 * i, u = (x + 0.9) / 0.2, cell = floor(u), a = own, b = own;
        if (cell >= 0 && cell < 5 && !isnan(values[(int)cell])) a = values[(int)cell];
        if (cell >= -1 && cell < 4 && !isnan(values[(int)cell + 1])) b = values[(int)cell + 1];
        double now = soil_under(&w, "rig/wheel").kphi, load = soil_sunk(&w, "rig/wheel").force.z;
        // By a tenth of a millimetre the carriage may be elsewhere: it is a drive that holds it. Slopes are
        // at most 11e5 in 0.2 m.
        build_near("kphi", now, a + (u - cell) * (b - a), 11e5 / 0.2 * 1e-5);
        if (i > 500) assert_true(fabs(now - before) <= 11e5 / 0.2 * 1.01e-4);
        if (i > 600) greatest = fmax(greatest, fabs(load - force));
        before = now;
        force = load;
    }
    printf("    the load changes by %.4f N in a step at most, of 64 N\n", greatest);
    // In a step the soil is stiffer by 5e-4 of itself at most, and so is the load; a jump from sample to
    // sample would be 50 N.
    assert_true(greatest < 0.15);
    soil_free(&w);
}

// ---- A random layer ----

enum { SITE_N = 300 };
static const double SITE_SPACING = 0.1;
// A level site with a number of its soil that is random: what `understudy terrain random` makes, without its
// hills. The caller frees the samples.
static float *make_random(const char *path, const char *number, double mean, double deviation) {
    us_random_site_def def = us_random_site_def_default();
    us_error err = {0};
    def.height.n_x = def.height.n_y = SITE_N;
    def.height.spacing = SITE_SPACING;
    def.height.covariance = US_COVARIANCE_GAUSSIAN;
    def.height.length = 1;
    def.height.variance = 1e-20;
    def.height.seed = 3;
    def.n_soil = 1;
    snprintf(def.soil[0].name, sizeof def.soil[0].name, "%s", number);
    def.soil[0].field = def.height;
    def.soil[0].field.mean = mean;
    def.soil[0].field.variance = deviation * deviation;
    def.soil[0].field.length = 0.6;
    site_clear(path);
    if (us_site_make_random(&def, path, NULL, &err)) fail_msg("%s", err.message);
    us_site *site = NULL;
    assert_int_equal(us_site_open(path, NULL, &site, &err), US_OK);
    float *all = malloc(sizeof(float) * SITE_N * SITE_N), tile[US_SITE_TILE * US_SITE_TILE];
    assert_non_null(all);
    char name[64];
    snprintf(name, sizeof name, "soil.%s", number);
    int32_t n_x, n_y, layer = us_site_find_layer(site, name);
    for (int32_t v = 0; us_site_tile_size(site, layer, 0, 0, v, &n_x, &n_y); v++) {
        for (int32_t u = 0; us_site_tile_size(site, layer, 0, u, v, &n_x, &n_y); u++) {
            assert_int_equal(us_site_read(site, layer, 0, u, v, tile, &err), US_OK);
            for (int32_t k = 0; k < n_x * n_y; k++)
                all[(v * US_SITE_TILE + k / n_x) * SITE_N + u * US_SITE_TILE + k % n_x] = tile[k];
        }
    }
    us_site_close(site);
    return all;
}

static double bilinear(const float *all, double x, double y) {
    double u = x / SITE_SPACING + 0.5 * (SITE_N - 1), v = y / SITE_SPACING + 0.5 * (SITE_N - 1);
    int32_t i = (int32_t)u, j = (int32_t)v;
    const float *a = all + j * SITE_N + i;
    u -= i;
    v -= j;
    return (1 - v) * ((1 - u) * (double)a[0] + u * (double)a[1]) +
           v * ((1 - u) * (double)a[SITE_N] + u * (double)a[SITE_N + 1]);
}

static void a_random_layer_is_felt_as_the_law_says(void **state) {
    (void)state;
    float *all = make_random("random", "kphi", 8e5, 1.4e5);
    us_soil_map_def map = {.ground = "ground", .parameter = "kphi"};
    soil_world w = soil_text_maps(
        rig_text("type=\"height-field\" file=\"random/\"", "<soil like=\"lunar\" slip-sinkage=\"0\"/>"), &map,
        1);
    us_soil soil = soil_named("lunar");
    const us_soil_wheel wheel = {.radius = 0.09, .width = 0.11};
    soil_steps(&w, 1000);
    double mean_is = 0, mean_law = 0, square_is = 0, square_law = 0, both = 0, worst = 0;
    enum { N = 300 };
    for (int i = 0; i < N; i++) {
        soil_steps(&w, 100);
        // What is under it belongs to where it was at the beginning of the step.
        double x = -1 + 1e-4 * (1000 + 100 * (i + 1) - 1);
        soil.kphi = bilinear(all, x, 0);
        build_near("kphi", soil_under(&w, "rig/wheel").kphi, soil.kphi, 1e-5 * soil.kphi);
        // The load of this moment: hub and lift hang in a damped rail.
        us_soil_contact soil_contact = soil_sunk(&w, "rig/wheel");
        double is = soil_contact.sinkage,
               law = us_soil_wheel_sinkage(&soil, &wheel, (us_soil_history){0, 9.81}, 6.5 * 9.81, 0.2, 0);
        worst = fmax(worst, fabs(is - law) / law);
        mean_is += is / N;
        mean_law += law / N;
        square_is += is * is / N;
        square_law += law * law / N;
        both += is * law / N;
    }
    double spread = sqrt(square_law - mean_law * mean_law);
    double correlation = (both - mean_is * mean_law) / (sqrt(square_is - mean_is * mean_is) * spread);
    printf("    sinkage %.3f +- %.3f mm by the law, worst %.2g of it, correlation %.5f\n", 1e3 * mean_law,
           1e3 * spread, worst, correlation);
    // The law is that of a wheel at rest; this one rises and falls with a few millimetres per second, against
    // rail and soil: some 1e-3 of the load.
    assert_true(spread > 3e-4 && worst < 5e-3 && correlation > 0.999);
    soil_free(&w);
    free(all);
}

// A random layer of a site, and the same as a map in memory.
typedef struct twin_maps {
    us_soil_map_def memory, paged;
    double *values;
} twin_maps;

static twin_maps make_twins(const char *site, const char *parameter, double mean, double spread) {
    float *all = make_random(site, parameter, mean, spread);
    double *values = malloc(sizeof(double) * SITE_N * SITE_N);
    assert_non_null(values);
    for (int i = 0; i < SITE_N * SITE_N; i++)
        values[i] = (double)all[i];
    free(all);
    us_soil_map_def paged = {.ground = "ground", .parameter = parameter}, memory = paged;
    memory.values = values;
    memory.n_x = memory.n_y = SITE_N;
    memory.dx = memory.dy = SITE_SPACING;
    return (twin_maps){memory, paged, values};
}

static void a_paged_layer_is_that_in_memory_in_a_zone_too_with_any_threads_and_scratch(void **state) {
    (void)state;
    twin_maps maps = make_twins("random", "kphi", 8e5, 1.4e5);
    // The border of two tiles is at x = 10.65 of the site, which is at -0.85 here: wheel, ball and box lie
    // over it or come there.
    static const char *const grounds[] = {
        "type=\"height-field\" file=\"random/\" memory=\"5 MB\" xyz=\"-11.5 0 0\"",
        "type=\"height-field\" file=\"random/\" memory=\"5 MB\" xyz=\"-11.5 0 0\" zone=\"4.03 -3 14.5 1\"",
    };
    for (int i = 0; i < 2; i++) {
        soil_world a = soil_text_maps(rig_text(grounds[i], "<soil like=\"lunar\"/>"), &maps.memory, 1);
        soil_world b = soil_text_maps(rig_text(grounds[i], "<soil like=\"lunar\"/>"), &maps.paged, 1);
        us_sim_def def = us_sim_def_default();
        def.n_thread = 2;
        us_sim *other = NULL;
        us_error err = {0};
        assert_int_equal(us_sim_create(b.model, &def, &other, &err), US_OK);
        for (int k = 0; k < 10; k++) {
            soil_steps(&a, 200);
            soil_steps(&b, 200);
            for (int n = 0; n < 200; n++) {
                if (n % 7 == 0) us_sim_poison(other);
                assert_int_equal(us_sim_step(other, NULL), US_OK);
            }
            // In a zone the same place is found from another middle, and by that is elsewhere by a rounding.
            if (i == 0) expect_same(&a, &b, grounds[i]);
            build_near("sinkage", soil_q(&b, "rig/sink"), soil_q(&a, "rig/sink"), 1e-11);
            build_near("torque", soil_torque(&b, "rig/spin"), soil_torque(&a, "rig/spin"), 1e-7);
            assert_int_equal(us_sim_hash(b.sim), us_sim_hash(other));
        }
        // Back to a second ago, and on: the same again.
        size_t length = 0;
        assert_int_equal(us_sim_save(b.sim, NULL, 0, &length), US_OK);
        void *kept = malloc(length);
        assert_int_equal(us_sim_save(b.sim, kept, length, &length), US_OK);
        soil_steps(&b, 500);
        assert_int_equal(us_sim_restore(other, kept, length), US_OK);
        for (int n = 0; n < 500; n++)
            assert_int_equal(us_sim_step(other, NULL), US_OK);
        assert_int_equal(us_sim_hash(b.sim), us_sim_hash(other));
        free(kept);
        us_sim_destroy(other);
        soil_free(&a);
        soil_free(&b);
    }
    free(maps.values);
}

// ---- Beds ----

static void a_patch_flows_by_the_angles_of_the_place_paged_or_not(void **state) {
    (void)state;
    twin_maps maps = make_twins("angles", "repose_angle", 0.15, 0.03);
    static const char ground[] =
        "type=\"height-field\" file=\"angles/\" memory=\"5 MB\" xyz=\"-11.5 0 0\" bed=\"1 cm\"";
    static const char soil[] =
        "<soil like=\"dry_sand\" cohesion=\"0\" repose-angle=\"0.3\" critical-angle=\"0.3\"/>";
    soil_world a = soil_text_maps(rig_text(ground, soil), &maps.memory, 1),
               b = soil_text_maps(rig_text(ground, soil), &maps.paged, 1);
    soil_world plain = soil_text(rig_text(ground, soil), NULL);
    us_sim_def def = us_sim_def_default();
    def.n_thread = 2;
    us_sim *other = NULL;
    us_error err = {0};
    assert_int_equal(us_sim_create(b.model, &def, &other, &err), US_OK);
    for (int k = 0; k < 10; k++) {
        soil_steps(&a, 200);
        soil_steps(&b, 200);
        soil_steps(&plain, 200);
        for (int n = 0; n < 200; n++) {
            if (n % 7 == 0) us_sim_poison(other);
            assert_int_equal(us_sim_step(other, NULL), US_OK);
        }
        expect_same(&a, &b, "angles");
        assert_int_equal(us_sim_get_deformable(a.sim, 0).digest, us_sim_get_deformable(b.sim, 0).digest);
        assert_int_equal(us_sim_hash(b.sim), us_sim_hash(other));
    }
    // Flatter slopes than the material's own: the same rut reaches farther.
    assert_true(us_sim_get_deformable(a.sim, 0).digest != us_sim_get_deformable(plain.sim, 0).digest);
    assert_true(us_sim_get_deformable(a.sim, 0).highest < us_sim_get_deformable(plain.sim, 0).highest);
    us_sim_destroy(other);
    soil_free(&a);
    soil_free(&b);
    soil_free(&plain);
    free(maps.values);
}

// ---- While it runs ----

static void a_soil_that_changes_while_it_runs_changes_where_maps_have_nothing(void **state) {
    (void)state;
    static strip kphi;
    fill(&kphi, 3, 0, 3, 5e5);
    // From x = -3 to 1; the ball stands beside it.
    us_soil_map_def map = strip_map(&kphi, "kphi", 3, 1);
    map.dy = 0.2;
    soil_world w = soil_text_maps(rig_text("type=\"plane\"", "<soil like=\"lunar\"/>"), &map, 1);
    soil_steps(&w, 200);
    us_material material = soil_material(&w, "soil");
    us_soil soil;
    us_error err = {0};
    assert_int_equal(us_sim_get_soil(w.sim, material, &soil), US_OK);
    soil.kphi = 7e5;
    soil.cohesion = 321;
    assert_int_equal(us_sim_set_soil(w.sim, material, &soil, &err), US_OK);
    soil_steps(&w, 200);
    assert_true(soil_under(&w, "rig/wheel").kphi == 5e5 && soil_under(&w, "rig/wheel").cohesion == 321);
    assert_true(soil_under(&w, "ball/l").kphi == 7e5);
    assert_int_equal(us_sim_get_soil_contact_soil(w.sim, 99, &soil), US_ERR_ARG);
    soil_free(&w);
    // A soil that would carry nothing where the map has a 0.
    fill(&kphi, 3, 1, 2, 0);
    w = soil_text_maps(rig_text("type=\"plane\"", "<soil like=\"lunar\"/>"), &map, 1);
    assert_int_equal(us_sim_get_soil(w.sim, material, &soil), US_OK);
    soil.kc = 0;
    assert_int_equal(us_sim_set_soil(w.sim, material, &soil, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "carries nothing"));
    soil_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_of_one_number_everywhere_is_the_uniform_soil_to_the_bit),
        cmocka_unit_test(on_either_side_of_a_step_the_wheel_is_as_in_that_soil_alone),
        cmocka_unit_test(numbers_and_forces_are_continuous_over_samples_gaps_and_the_edge),
        cmocka_unit_test(a_random_layer_is_felt_as_the_law_says),
        cmocka_unit_test(a_paged_layer_is_that_in_memory_in_a_zone_too_with_any_threads_and_scratch),
        cmocka_unit_test(a_patch_flows_by_the_angles_of_the_place_paged_or_not),
        cmocka_unit_test(a_soil_that_changes_while_it_runs_changes_where_maps_have_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Rovers on slopes of soil: bench/slope-k10.xml and bench/slope-rocky7.xml.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "soil_rig.h"

// Placed by the origin of its model the wheels touch the soil to a rounding error: by 1e-17 m, or not at all.
static void a_rover_placed_on_the_surface_starts_on_every_slope(void **state) {
    (void)state;
    static const char *const scenes[] = {"bench/slope-k10.xml", "bench/slope-rocky7.xml"};
    static const char *const soils[] = {"dry_sand", "snow", "heavy_clay", "lunar"};
    for (int i = 0; i <= 30; i++) {
        char slope[48], soil[48];
        snprintf(slope, sizeof slope, "slope=%d deg", i);
        snprintf(soil, sizeof soil, "soil=%s", soils[i / 2 % 4]);
        const char *const parameters[] = {slope, "soil=dry_sand", NULL}, *const other[] = {slope, soil, NULL};
        for (int k = 0; k < 4; k++) {
            soil_world w = soil_file(scenes[k & 1], k < 2 ? parameters : other);
            // A step that fails fails the test, with its message.
            soil_steps(&w, 50);
            assert_true(us_sim_n_soil_contact(w.sim) >= 4);
            soil_free(&w);
        }
    }
}

// Small rovers leave level ground in every soil that carries them; on slopes that are too steep they dig
// themselves in, wheels come up out of their holes and go down again, and nothing diverges.
static void rovers_drive_on_the_level_and_dig_in_on_steep_slopes(void **state) {
    (void)state;
    static const struct {
        const char *scene, *wheel;
    } rovers[] = {{"bench/slope-k10.xml", "k10/rear_left_wheel"},
                  {"bench/slope-rocky7.xml", "rocky7/rear_left_wheel"}};
    static const char *const soils[] = {"soil=dry_sand", "soil=lunar", "soil=mars_crusty"};
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 3; i++) {
            const char *const level[] = {"slope=0 deg", soils[i], NULL}, *const steep[] = {"slope=25 deg",
                                                                                           soils[i], NULL};
            soil_world w = soil_file(rovers[r].scene, level);
            soil_steps(&w, 6000);
            us_soil_contact flat = soil_sunk(&w, rovers[r].wheel);
            soil_free(&w);
            w = soil_file(rovers[r].scene, steep);
            soil_steps(&w, 6000);
            us_soil_contact dug = soil_sunk(&w, rovers[r].wheel);
            printf("    %s, %s: slip %.3f, %.1f mm deep on the level; %.1f mm on 25 deg\n", rovers[r].scene,
                   soils[i], flat.slip, 1e3 * flat.sinkage, 1e3 * dug.sinkage);
            assert_true(fabs(flat.slip) < 0.2 && dug.sinkage > 1.5 * flat.sinkage);
            soil_free(&w);
        }
    }
}

// The fastest of a rover's links over a second, m/s; and how far it got meanwhile, m.
static double creep(soil_world *w, double *out_way) {
    const us_body chassis = {0};
    const us_vec3 from = us_sim_get_pose(w->sim, chassis).p;
    double fastest = 0;
    for (int i = 0; i < 1000; i++) {
        soil_steps(w, 1);
        for (int32_t b = 0; b < us_model_get_counts(w->model).n_body; b++)
            fastest = fmax(fastest, us_vec3_norm(us_sim_get_twist(w->sim, (us_body){b}).v));
    }
    *out_way = us_vec3_norm(us_vec3_sub(us_sim_get_pose(w->sim, chassis).p, from));
    return fastest;
}

// A nanometre per second is asked; what is left is rounding, and on uneven ground what the solver leaves of
// the weight, 1e-10 of it.
static void assert_rests(soil_world *w, const char *what) {
    double way;
    const double fastest = creep(w, &way);
    printf("    %s: %.1e m/s, %.1e m in a second\n", what, fastest, way);
    assert_true(fastest <= 1e-10 && way <= 1e-10);
}

// With its brakes on.
static void a_parked_rover_does_not_creep(void **state) {
    (void)state;
    static const char *const soils[] = {"dry_sand", "sandy_loam", "clay",        "heavy_clay", "lunar",
                                        "fjs1",     "jsc1a",      "mars_crusty", "mars_drift", "snow"};
    for (int i = 0; i < 10; i++) {
        char soil[48], slope[48];
        snprintf(soil, sizeof soil, "soil=%s", soils[i]);
        snprintf(slope, sizeof slope, "slope=%d deg", i % 3 * 5);
        const char *const parked[] = {"speed=0", "hold=2000", "height=0.002", slope, soil, NULL};
        soil_world w = soil_file("bench/slope-k10.xml", parked);
        soil_steps(&w, 12000);
        assert_rests(&w, soil);
        soil_free(&w);
    }
}

// Dropped from 8 cm, with its brakes and without, on uneven soil and on a bed of it: wheels come down rolling
// to and fro in their own prints. After three seconds it stands, wherever it came down: no wheel is turned
// round by the soil step by step, and none sees its own print as soil that comes and goes.
static void a_dropped_rover_comes_to_rest(void **state) {
    (void)state;
    static const char *const scenes[] = {"bench/k10-soil.xml", "bench/k10-ruts.xml"};
    for (int i = 0; i < 32; i++) {
        char place[48];
        snprintf(place, sizeof place, "turn=%g m", 3 + 0.5 * (i / 4));
        const char *const dropped[] = {"speed=0 m/s", i & 1 ? "hold=2000" : "hold=0", place, NULL};
        soil_world w = soil_file(scenes[i / 2 & 1], dropped);
        soil_steps(&w, 3500);
        assert_rests(&w, place);
        soil_free(&w);
    }
}

// Drives that brake by damping alone: the rover rolls down at some millimetres per second, between rest and
// rolling, for as long as it takes.
static void a_rover_that_rolls_down_slowly_goes_on(void **state) {
    (void)state;
    static const char *const slow[] = {"speed=0", "height=0.002", "soil=lunar", NULL};
    soil_world w = soil_file("bench/slope-k10.xml", slow);
    soil_steps(&w, 6000);
    const double early = us_vec3_norm(us_sim_get_twist(w.sim, (us_body){0}).v);
    soil_steps(&w, 9000);
    const double late = us_vec3_norm(us_sim_get_twist(w.sim, (us_body){0}).v);
    printf("    %.4f mm/s after 6 s, %.4f after 15 s\n", 1e3 * early, 1e3 * late);
    assert_true(early > 1e-4 && early < 5e-3);
    assert_true(fabs(late - early) < 1e-3 * early);
    soil_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rover_placed_on_the_surface_starts_on_every_slope),
        cmocka_unit_test(rovers_drive_on_the_level_and_dig_in_on_steep_slopes),
        cmocka_unit_test(a_parked_rover_does_not_creep),
        cmocka_unit_test(a_dropped_rover_comes_to_rest),
        cmocka_unit_test(a_rover_that_rolls_down_slowly_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

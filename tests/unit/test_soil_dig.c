// What grousers pull, and what a wheel that slips digs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "understudy/soil.h"

#define DEG (M_PI / 180)

static const us_soil_wheel small = {.radius = 0.09, .width = 0.11};
static const us_soil_wheel large = {.radius = 0.2, .width = 0.15};
static const us_soil_history earth = {.gravity = 9.81};

// To one part in a million.
static void expect_exact(const char *what, double value, double exact) {
    if (!(fabs(value - exact) <= 1e-6 * fabs(exact)))
        fail_msg("%s: %.10g instead of %.10g", what, value, exact);
}

static double uniform(uint64_t *counter, double from, double to) {
    return from + (to - from) * us_random_uniform(7, 1, (*counter)++);
}

static us_soil fjs1(void) {
    us_soil soil;
    assert_true(us_soil_find("fjs1", &soil));
    return soil;
}

// Within a nanometre: what thousands of small steps leave.
static void expect_near(const char *what, double value, double goal) {
    if (!(fabs(value - goal) <= 1e-9)) fail_msg("%s: %.10g instead of %.10g", what, value, goal);
}

// Grousers closer than their wedges make a larger wheel that shears soil on soil; the wedges that are free
// add a little. Never does the soil give more than its strength along the arc.
static void grousers_pull_more_but_never_more_than_the_soil_is_strong(void **state) {
    (void)state;
    us_soil soil = fjs1();
    us_soil_wheel wheel = small, larger = {.radius = 0.1, .width = 0.11};
    double plain = us_soil_wheel_force(&soil, &wheel, earth, 0.015, 0.3, 0).fx,
           as_large = us_soil_wheel_force(&soil, &larger, earth, 0.015, 0.3, 0).fx;
    wheel.grouser_height = 0.01;
    wheel.n_grouser = 9;
    assert_true(us_soil_wheel_radius(&wheel) > small.radius + 0.004 &&
                us_soil_wheel_radius(&wheel) < small.radius + 0.006);
    double some = us_soil_wheel_force(&soil, &wheel, earth, 0.015, 0.3, 0).fx;
    wheel.n_grouser = 24;
    assert_true(us_soil_wheel_radius(&wheel) == small.radius + 0.01);
    double many = us_soil_wheel_force(&soil, &wheel, earth, 0.015, 0.3, 0).fx;
    printf("    pull %.2f N smooth, %.2f N with 9 grousers, %.2f N with 24; a wheel of their size %.2f N\n",
           plain, some, many, as_large);
    // One wedge of 10 mm in this soil: 0.5 g h^2 N + 2 c h sqrt(N) on 110 mm, and its walls: 4.2 to 5 N.
    assert_true(plain < some && some < many && many > as_large && many < as_large + 5);
    wheel.n_grouser = 48;
    // More of them are no more: the soil between them moves along anyway.
    expect_exact("48 grousers", us_soil_wheel_force(&soil, &wheel, earth, 0.015, 0.3, 0).fx, many);
}

static void the_pull_of_a_lugged_wheel_stays_below_what_shear_can_give(void **state) {
    (void)state;
    uint64_t counter = 1000;
    double most = 0;
    for (int i = 0; i < 3000; i++) {
        const char *name;
        us_soil soil;
        assert_true(us_soil_get(i % 10, &name, &soil, NULL));
        us_soil_wheel wheel = {.radius = uniform(&counter, 0.05, 0.3),
                               .width = uniform(&counter, 0.05, 0.3),
                               .n_grouser = (int32_t)uniform(&counter, 1, 60)};
        wheel.grouser_height = uniform(&counter, 0.01, 0.15) * wheel.radius;
        double r = us_soil_wheel_radius(&wheel), h = uniform(&counter, 0.001, 0.5) * r,
               slip = uniform(&counter, -1, 1);
        wheel.dug = uniform(&counter, 0, 0.8) * h;
        us_wheel_force f = us_soil_wheel_force(&soil, &wheel, earth, h, slip, 0);
        double area = wheel.width * r * (f.entry - f.exit), tangential = fabs(f.moment) / r;
        // The normal force along the arc is the load and what leans: at most their sum.
        double strength = soil.cohesion * area + tan(soil.friction_angle) * 1.5 * (f.fz + fabs(f.fx));
        assert_true(isfinite(f.fx) && isfinite(f.fz));
        if (f.fz > 0 && tangential > strength)
            fail_msg("%s: %g N at a load of %g N where the soil holds %g N", name, tangential, f.fz,
                     strength);
        if (f.fz > 0 && soil.cohesion < 200)
            most = fmax(most, (f.fx - soil.cohesion * area) / (f.fz * tan(soil.friction_angle)));
        // A wheel that turns against the soil loses energy, grousers or not.
        double v = slip >= 0 ? 1 - slip : 1, rim = slip >= 0 ? 1 : 1 + slip;
        assert_true(f.moment / r * rim - f.fx * v >= -1e-9 * (1 + fabs(f.fz)));
    }
    printf("    largest pull less cohesion in lunar soil: %.3f of the load times tan phi\n", most);
    assert_true(most < 1);
}

// Slip sinkage of the size that was measured on a lugged wheel, 4.5 mm without slip and 27 mm at a slip of
// 0.6; its dimensions are assumed, the lugs' height so that Reece's rule, by which a rim with lugs of height
// h digs h s/(1 - s), gives what was measured. And that rule itself.
static void what_is_dug_grows_with_slip_and_lugs_dig_by_reeces_rule(void **state) {
    (void)state;
    us_soil soil = {.kphi = 1,
                    .n = 1,
                    .friction_angle = 32 * DEG,
                    .cohesion = 250,
                    .shear_x = 0.012,
                    .shear_y = 0.012,
                    .density = 1600,
                    .peak_angle = 0.4,
                    .peak_angle_slip = 0.2,
                    .slip_sinkage = 0.75};
    us_soil_wheel wheel = {.radius = 0.157, .width = 0.165, .n_grouser = 24, .grouser_height = 0.015};
    // The stiffness of which 80 N sink in by 4.5 mm.
    double low = 1e4, high = 1e8;
    for (int i = 0; i < 60; i++) {
        soil.kphi = sqrt(low * high);
        if (us_soil_wheel_rolling_sinkage(&soil, &wheel, earth, 80, 0, 0) > 4.5e-3)
            low = soil.kphi;
        else
            high = soil.kphi;
    }
    double at[7];
    for (int i = 0; i < 7; i++) {
        at[i] = us_soil_wheel_rolling_sinkage(&soil, &wheel, earth, 80, 0.1 * i, 0);
        printf("    slip %.1f: %.2f mm\n", 0.1 * i, 1e3 * at[i]);
        assert_true(i == 0 || at[i] > at[i - 1]);
    }
    // Within 40 %.
    assert_true(at[6] > 0.6 * 0.027 && at[6] < 1.4 * 0.027);
    // The lugs alone, in a wheel so large that nothing falls back.
    soil.slip_sinkage = 0;
    us_soil_wheel great = {.radius = 1e4, .width = 0.1, .grouser_height = 0.01, .n_grouser = 100000000};
    expect_exact("Reece", us_soil_wheel_dug(&soil, &great, 0.5, 0.5), 0.01);
    expect_exact("Reece", us_soil_wheel_dug(&soil, &great, 0.5, 0.8), 0.04);
}

// Digging step by step tends to what is dug at a slip, from above and from below, and a wheel that spins on
// the spot digs for ever, down to where the model ends.
static void digging_tends_to_its_slip_and_never_ends_on_the_spot(void **state) {
    (void)state;
    us_soil soil = us_soil_default();
    static const double slips[] = {-0.8, -0.2, 0.1, 0.5, 0.9};
    for (int i = 0; i < 5; i++) {
        double s = slips[i], slide = s, travel = s >= 0 ? 1 - s : 1,
               goal = us_soil_wheel_dug(&soil, &large, 0.03, s);
        for (int from = 0; from < 2; from++) {
            us_soil_wheel wheel = large;
            wheel.dug = from ? 0.029 : 0;
            for (int k = 0; k < 20000; k++)
                wheel.dug = us_soil_wheel_dig(&soil, &wheel, 0.03, 1e-3 * slide, 1e-3 * travel);
            expect_near("dug", wheel.dug, goal);
        }
    }
    us_soil_wheel wheel = large;
    double sinkage = 0, before = 0;
    for (int k = 0; k < 400; k++) {
        sinkage = us_soil_wheel_sinkage(&soil, &wheel, earth, 200, 1, 0);
        assert_true(sinkage >= before && sinkage < 0.95 * 0.2);
        before = sinkage;
        wheel.dug = us_soil_wheel_dig(&soil, &wheel, sinkage, 0.01, 0);
    }
    printf("    after 4 m of slipping on the spot: %.1f mm deep\n", 1e3 * sinkage);
    assert_true(sinkage > 0.15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grousers_pull_more_but_never_more_than_the_soil_is_strong),
        cmocka_unit_test(the_pull_of_a_lugged_wheel_stays_below_what_shear_can_give),
        cmocka_unit_test(what_is_dug_grows_with_slip_and_lugs_dig_by_reeces_rule),
        cmocka_unit_test(digging_tends_to_its_slip_and_never_ends_on_the_spot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Kinetic friction that fades at low speed, mu v / sqrt(v^2 + w^2): `transition-speed` of a pair.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "contact_scene.h"

static const double DEGREE = 3.14159265358979323846 / 180;
static const us_vec3 SIZE = {0.2, 0.2, 0.1};

typedef struct weighted_case {
    double slope, friction, transition, speed, step;
    const char *solver;  // NULL: newton
} weighted_case;

static built box_of(const weighted_case *x) {
    us_pair_def pair = scene_pair(x->friction);
    pair.values.transition_speed = x->transition;
    us_spec *spec = scene_spec_pair(scene_gravity(x->slope, 0), x->step, &pair);
    us_world_settings world = *us_spec_view_world(spec);
    if (x->solver) world.solver = x->solver;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, SIZE.z / 2);
    start.v = us_vec3_make(x->speed, 0, 0);
    scene_box(spec, "box", 1, SIZE, &start);
    return build_sim(spec);
}

// Where gravity along the slope is what friction leaves: tan(slope) = mu v / sqrt(v^2 + w^2).
static void a_box_slides_down_at_the_speed_where_forces_balance(void **state) {
    (void)state;
    const double slope = 20 * DEGREE;
    const weighted_case cases[] = {
        {slope, 0.5, 0.02, 0.3, 1e-3, NULL},           {slope, 0.5, 0.02, 0.003, 1e-3, NULL},
        {slope, 0.5, 0.02, 0.3, 1e-2, NULL},           {slope, 0.5, 2e-3, 0.3, 1e-2, NULL},
        {slope, 0.5, 0.02, 0.3, 1e-3, "gauss-seidel"}, {slope, 0.5, 0.02, 0.3, 1e-3, "rigid-direct"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weighted_case *x = &cases[i];
        built box = box_of(x);
        build_step(&box, (int)(3 / x->step), NULL);
        const double t = tan(x->slope), wanted = x->transition * t / sqrt(x->friction * x->friction - t * t),
                     v = scene_velocity(&box, 0).x;
        printf("    w %g m/s, step %g ms, %s: %.9f mm/s, wanted %.9f\n", x->transition, 1e3 * x->step,
               x->solver ? x->solver : "newton", 1e3 * v, 1e3 * wanted);
        // A fixed point of the step. Sweeps stop when no velocity changes by 1e-5 m/s in one of them.
        build_near("speed", v, wanted, (x->solver ? 1e-5 : 1e-8) * wanted);
        build_free(&box);
    }
}

// v dv/dx = -mu g v / sqrt(v^2 + w^2): the way to a standstill has a closed form.
static void a_thrown_box_stops_after_the_way_of_the_integral(void **state) {
    (void)state;
    const double mu = 0.4, w = 0.05, v0 = 0.8, stick = 1e-3, g = 9.81;
    double error[3];
    for (int i = 0; i < 3; i++) {
        const weighted_case x = {0, mu, w, v0, 1e-3 / (1 << i), NULL};
        built box = box_of(&x);
        int n = 0;
        while (scene_velocity(&box, 0).x > 2 * stick && n++ < 20000)
            build_step(&box, 1, NULL);
        const double v1 = scene_velocity(&box, 0).x,
                     way = (v0 * sqrt(v0 * v0 + w * w) - v1 * sqrt(v1 * v1 + w * w) +
                            w * w * (asinh(v0 / w) - asinh(v1 / w))) /
                           (2 * mu * g);
        error[i] = scene_position(&box, 0).x - way;
        printf("    step %g ms: %.6f m, integral %.6f m\n", 1e3 * x.step, scene_position(&box, 0).x, way);
        build_free(&box);
    }
    // The step is of first order, and half of it halves what is off: v0 h / 2 at first.
    assert_true(fabs(error[0]) < v0 * 1e-3);
    for (int i = 0; i < 2; i++)
        assert_true(fabs(error[i + 1] / error[i] - 0.5) < 0.1);
}

// What stands is held by its anchor and static friction: it does not creep, whatever w is.
static void a_box_that_stands_stays(void **state) {
    (void)state;
    const weighted_case x = {20 * DEGREE, 0.5, 0.1, 0, 1e-3, NULL};
    built box = box_of(&x);
    build_step(&box, 2000, NULL);
    const us_vec3 early = scene_position(&box, 0);
    build_step(&box, 10000, NULL);
    // Positions round at 1e-17.
    build_near("way in 10 s", us_vec3_norm(us_vec3_sub(scene_position(&box, 0), early)), 0, 1e-12);
    build_free(&box);
}

// Friction against the motion takes energy, at any w, step and speed: a box that is thrown, turning, on the
// level never gains any.
static void it_never_gives_energy(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        const weighted_case x = {0,
                                 0.3 + 0.1 * (i % 4),
                                 pow(10, -i % 5),
                                 0.1 + 0.4 * (i % 3),
                                 i % 2 ? 1e-3 : 1e-2,
                                 i % 3 == 2 ? "gauss-seidel" : NULL};
        built box = box_of(&x);
        build_step(&box, 20, NULL);
        double last = us_sim_get_energy(box.sim).kinetic;
        for (int k = 0; k < 500; k++) {
            build_step(&box, 1, NULL);
            const double now = us_sim_get_energy(box.sim).kinetic;
            // Of a box on springs of 1e7 N/m under 10 N, 1e-6 J may come and go.
            assert_true(now <= last + 1e-6);
            last = now;
        }
        build_free(&box);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_slides_down_at_the_speed_where_forces_balance),
        cmocka_unit_test(a_thrown_box_stops_after_the_way_of_the_integral),
        cmocka_unit_test(a_box_that_stands_stays),
        cmocka_unit_test(it_never_gives_energy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// A box on a slope: where it stands, when it slips, how it slides. The ground is level and gravity is turned.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "contact_scene.h"

static const double DEGREE = 3.14159265358979323846 / 180;
static const us_vec3 SIZE = {0.2, 0.2, 0.1};

// The box rests on the ground with its faces along the axes; slopes fall along `direction`.
static built box_on_slope(double slope, double direction, const us_pair_def *pair, double step) {
    us_spec *spec = scene_spec_pair(scene_gravity(slope, direction), step, pair);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, SIZE.z / 2);
    scene_box(spec, "box", 1, SIZE, &start);
    return build_sim(spec);
}

static built simple_box(double slope, double direction, double friction) {
    us_pair_def pair = scene_pair(friction);
    return box_on_slope(slope, direction, &pair, 1e-3);
}

static double along(us_vec3 v, double direction) { return v.x * cos(direction) + v.y * sin(direction); }

// ---- Standing ----

static void a_box_on_a_slope_moves_by_the_stretch_of_its_anchors_and_no_more(void **state) {
    (void)state;
    const double slope = 20 * DEGREE, k = 1e6, a = SIZE.x / 2, b = SIZE.z / 2;
    us_pair_def pair = scene_pair(0.5);
    pair.values.stiffness = k;
    built box = box_on_slope(slope, 0, &pair, 1e-3);
    build_step(&box, 100000, NULL);
    us_vec3 p = scene_position(&box, 0);
    // Four points of stiffness k along and across the ground. The weight's lever about the ground tilts the
    // box by m g sin b / (4 k a^2), and its centre is b above the ground.
    double load = 9.81 * sin(slope), stretch = load / (4 * k) * (1 + b * b / (a * a));
    printf("    moved %.6e m, statics %.6e m\n", p.x, stretch);
    // Statics of the small angles: the next terms are tilt (4e-6 rad) times the displacement.
    build_near("along", p.x, stretch, 1e-10);
    build_near("across", p.y, 0, 1e-12);
    build_near("sunk", p.z - b, -9.81 * cos(slope) / (4 * k), 1e-10);
    assert_true(p.x <= load / k + 1e-9);
    build_free(&box);
}

static void a_box_does_not_creep(void **state) {
    (void)state;
    const double directions[] = {0, 45 * DEGREE};
    for (int i = 0; i < 2; i++) {
        built box = simple_box(atan(0.9 * 0.5), directions[i], 0.5);
        build_step(&box, 5000, NULL);
        us_vec3 early = scene_position(&box, 0);
        build_step(&box, 95000, NULL);
        us_vec3 late = scene_position(&box, 0);
        double creep = us_vec3_norm(us_vec3_sub(late, early)) / 95;
        printf("    creep %.2e m/s at %.0f degrees to the faces\n", creep, directions[i] / DEGREE);
        // 95 s, and positions round at 1e-17.
        assert_true(creep < 1e-12);
        build_free(&box);
    }
}

// Speeding up by more than 0.01 m/s in the second second is slipping; this alone is 0.065 degrees past the
// angle where forces balance.
static bool slips(double slope, double direction) {
    built box = simple_box(slope, direction, 0.5);
    build_step(&box, 1000, NULL);
    double early = us_vec3_norm(scene_velocity(&box, 0));
    build_step(&box, 1000, NULL);
    double late = us_vec3_norm(scene_velocity(&box, 0));
    build_free(&box);
    return late - early > 0.01;
}

static void a_box_slips_at_the_angle_of_friction_in_every_direction(void **state) {
    (void)state;
    const double directions[] = {0, 22.5 * DEGREE, 45 * DEGREE}, right = atan(0.5);
    for (int i = 0; i < 3; i++) {
        double low = 20 * DEGREE, high = 35 * DEGREE;
        assert_false(slips(low, directions[i]));
        assert_true(slips(high, directions[i]));
        while (high - low > 0.002 * DEGREE) {
            double middle = 0.5 * (low + high);
            if (slips(middle, directions[i]))
                high = middle;
            else
                low = middle;
        }
        printf("    slips at %.4f degrees, friction angle %.4f\n", high / DEGREE, right / DEGREE);
        // The criterion adds 0.01 / (9.81 (cos + 0.5 sin)) rad = 0.052 degrees; a friction pyramid would be
        // off by ten degrees on the diagonal.
        assert_true(fabs(high - right) < 0.06 * DEGREE);
    }
}

// ---- Sliding ----

static void a_box_slides_with_what_friction_leaves_of_gravity(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        double direction = i * 45 * DEGREE, slope = 20 * DEGREE;
        built box = simple_box(slope, direction, 0.2);
        build_step(&box, 1000, NULL);
        double early = along(scene_velocity(&box, 0), direction);
        build_step(&box, 1000, NULL);
        double a = along(scene_velocity(&box, 0), direction) - early;
        printf("    %.9f m/s^2\n", a);
        // g (sin 20 - 0.2 cos 20); the contact has settled by 1 s and the sum of normal forces is the weight.
        build_near("acceleration", a, 1.5115407, 1e-7);
        build_near("sideways",
                   scene_velocity(&box, 0).x * sin(direction) - scene_velocity(&box, 0).y * cos(direction), 0,
                   1e-9);
        // It slides on the ground: no deeper than its weight presses it, no higher.
        build_near("height", scene_position(&box, 0).z, SIZE.z / 2, 1e-6);
        build_free(&box);
    }
}

static void a_thrown_box_keeps_to_the_ground(void **state) {
    (void)state;
    const double speeds[] = {0.1, 1, 5};
    for (int i = 0; i < 3; i++) {
        us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.5);
        scene_ground(spec);
        scene_start start = scene_at(0, 0, SIZE.z / 2);
        start.v.x = speeds[i];
        scene_box(spec, "box", 1, SIZE, &start);
        built box = build_sim(spec);
        double highest = -1;
        for (int64_t k = 0; k < 2000; k++) {
            build_step(&box, 1, NULL);
            highest = fmax(highest, scene_position(&box, 0).z - SIZE.z / 2);
        }
        printf("    %.1f m/s: %.2e m above its start, stops after %.6f m\n", speeds[i], highest,
               scene_position(&box, 0).x);
        // The relaxed cone makes a box fly by 17 cm at 5 m/s; exact friction leaves it where its weight puts
        // it.
        assert_true(highest < 1e-7);
        double d = speeds[i] * speeds[i] / (2 * 0.5 * 9.81);
        build_near("distance", scene_position(&box, 0).x, d,
                   1e-3 * speeds[i]);  // first order: half a step of its speed, 5e-4 v
        build_free(&box);
    }
}

static void the_way_of_a_sliding_box_converges_with_the_step(void **state) {
    (void)state;
    const double exact = 2 * 2 / (2 * 0.5 * 9.81);
    double error[4];
    for (int i = 0; i < 4; i++) {
        us_pair_def pair = scene_pair(0.5);
        double step = 4e-3 / (1 << i);
        us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), step, &pair);
        scene_ground(spec);
        scene_start start = scene_at(0, 0, SIZE.z / 2);
        start.v.x = 2;
        scene_box(spec, "box", 1, SIZE, &start);
        built box = build_sim(spec);
        build_step(&box, (int64_t)(1 / step + 0.5), NULL);
        error[i] = scene_position(&box, 0).x - exact;
        printf("    step %.4f s: off by %.6e m\n", step, error[i]);
        build_free(&box);
    }
    // Semi-implicit: half a step of the speed, 2 m/s * h / 2, and less by half with each halving (the last
    // step of the slide is a whole one: some per cent).
    build_near("first order", error[0], -4e-3, 4e-4);
    for (int i = 0; i < 3; i++)
        build_near("ratio", error[i] / error[i + 1], 2, 0.1);
}

// ---- Two coefficients, and changing ones ----

// A force F along x whose line lies in the ground: every point carries the same.
static void pull(built *box, double force) {
    us_wrench w = {.f = {force, 0, 0}, .n = {0, -force * SIZE.z / 2, 0}};
    us_command command = {.wrench = &w};
    build_step(box, 1, &command);
}

static void static_friction_must_be_overcome_and_then_the_kinetic_one_acts(void **state) {
    (void)state;
    us_pair_def pair = scene_pair(0.6);
    pair.values.kinetic_friction = 0.3;
    built box = box_on_slope(0, 0, &pair, 1e-3);
    double broke = 0;
    // From 0 to 7 N at 1 N/s.
    for (int i = 0; i < 7000 && broke == 0; i++) {
        pull(&box, 1e-3 * i);
        if (scene_velocity(&box, 0).x > 1e-3) broke = 1e-3 * i;
    }
    // It gives way at mu_s m g = 5.886 N. The static coefficient counts up to 1 mm/s, and until then only
    // what the force grows by pulls: 1 N/s * t^2 / 2 = 1 mm/s after 45 ms, at 5.931 N.
    printf("    broke loose at %.4f N\n", broke);
    build_near("breaking force", broke, 0.6 * 9.81 + sqrt(2e-3), 3e-3);
    double v = scene_velocity(&box, 0).x;
    for (int i = 0; i < 500; i++)
        pull(&box, 5);
    // 5 N would not have moved it; now it speeds up by what 0.3 m g leaves.
    build_near("acceleration", (scene_velocity(&box, 0).x - v) / 0.5, 5 - 0.3 * 9.81, 1e-3);
    // Let go, it stops, and then stands against 5 N again.
    for (int i = 0; i < 2000; i++)
        pull(&box, 0);
    us_vec3 p = scene_position(&box, 0);
    for (int i = 0; i < 1000; i++)
        pull(&box, 5);
    build_near("stands again", scene_position(&box, 0).x, p.x,
               1e-6);  // the anchors' stretch: 5 N / (4 * 1e7 N/m)
    build_free(&box);
}

static void other_coefficients_at_run_time_let_a_box_slide(void **state) {
    (void)state;
    built box = simple_box(30 * DEGREE, 0, 0.8);
    build_step(&box, 2000, NULL);
    us_vec3 p = scene_position(&box, 0);
    build_step(&box, 2000, NULL);
    build_near("stands", scene_position(&box, 0).x, p.x, 1e-12);
    us_pair_values values;
    us_material any = us_model_find_material(box.model, "default");
    assert_int_equal(us_sim_get_pair(box.sim, any, any, &values), US_OK);
    values.static_friction = values.kinetic_friction = 0.45;
    assert_int_equal(us_sim_set_pair(box.sim, any, any, &values), US_OK);
    build_step(&box, 500, NULL);
    double early = scene_velocity(&box, 0).x;
    build_step(&box, 1000, NULL);
    // g (sin 30 - 0.45 cos 30), by the settled contact.
    build_near("acceleration", scene_velocity(&box, 0).x - early,
               9.81 * (sin(30 * DEGREE) - 0.45 * cos(30 * DEGREE)), 1e-6);
    // And back: it stops.
    values.static_friction = values.kinetic_friction = 0.8;
    assert_int_equal(us_sim_set_pair(box.sim, any, any, &values), US_OK);
    build_step(&box, 5000, NULL);
    p = scene_position(&box, 0);
    build_step(&box, 2000, NULL);
    build_near("stands again", us_vec3_norm(us_vec3_sub(scene_position(&box, 0), p)), 0, 1e-11);
    build_free(&box);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_on_a_slope_moves_by_the_stretch_of_its_anchors_and_no_more),
        cmocka_unit_test(a_box_does_not_creep),
        cmocka_unit_test(a_box_slips_at_the_angle_of_friction_in_every_direction),
        cmocka_unit_test(a_box_slides_with_what_friction_leaves_of_gravity),
        cmocka_unit_test(a_thrown_box_keeps_to_the_ground),
        cmocka_unit_test(the_way_of_a_sliding_box_converges_with_the_step),
        cmocka_unit_test(static_friction_must_be_overcome_and_then_the_kinetic_one_acts),
        cmocka_unit_test(other_coefficients_at_run_time_let_a_box_slide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

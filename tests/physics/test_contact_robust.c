// What used to break: dominoes, things that start in each other, a coin on its rim, crooked towers, hulls
// with bumps, fingers that weigh nothing, slabs in drift soil.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contact_scene.h"

static const double G = 9.81;

static built load(const char *text) {
    us_error err = {0};
    us_spec *spec = NULL;
    if (us_spec_load_text(text, strlen(text), US_SOURCE_DIR "/scenes/test.xml", NULL, &spec, &err))
        fail_msg("%s; %s", err.message, err.remedy);
    return build_sim(spec);
}

static double total(const built *b) {
    const us_energy e = us_sim_get_energy(b->sim);
    return e.kinetic + e.potential;
}

// ---------------------------------------------------------------- no step fails

// A row of thin boxes of 9 g that a ball knocks over: stiff rows on light bodies, many of which stop sliding
// in the same step.
static void dominoes_fall_at_every_step(void **state) {
    (void)state;
    int64_t n_hardened = 0;
    for (int k = 0; k < 3; k++) {
        static const double steps[] = {1e-3, 5e-3, 1e-2};
        us_pair_def pair = scene_pair(0.3);
        us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -G), steps[k], &pair);
        scene_ground(spec);
        const us_vec3 size = {0.008, 0.024, 0.048};
        for (int i = 0; i < 20; i++) {
            char name[16];
            snprintf(name, sizeof name, "d%d", i);
            scene_start start = scene_at(0.025 * i, 0, 0.024);
            scene_box(spec, name, 0.0092, size, &start);
        }
        scene_start ball = scene_at(-0.012, 0, 0.042);
        ball.v = us_vec3_make(1, 0, 0);
        scene_ball(spec, "ball", 0.0027, 0.006, &ball);
        built b = build_sim(spec);
        const double before = total(&b);
        const int n = (int)(1.2 / steps[k]);
        for (int i = 0; i < n; i++) {
            build_step(&b, 1, NULL);
            assert_true(total(&b) <= before * (1 + 1e-6));
        }
        const us_solver_counts c = us_sim_get_solver_counts(b.sim);
        printf("    %g ms: %lld islands, %lld lagged, %lld hardened, %lld shortened\n", 1e3 * steps[k],
               (long long)c.n_island, (long long)c.n_lagged, (long long)c.n_hardened,
               (long long)c.n_shortened);
        assert_true(c.n_island > 0 && c.n_iteration > 0);
        assert_int_equal(c.n_shortened, 0);
        // All of them lie, or lean on the next; at 5 ms the wave may stop on its way.
        for (int i = 0; i < 19 && k == 0; i++)
            assert_true(scene_tilt(&b, i) > 0.5);
        n_hardened += c.n_hardened;
        build_free(&b);
    }
    // Without the third method the row of 5 ms ends here.
    assert_true(n_hardened > 0);
}

// A hand of 1 kg that falls on its side with a finger of 2 mg whose joint goes with that of a plate: the
// stiffness of the coupling is that of its joints, not that of the hand.
static void a_coupled_finger_of_two_milligrams_does_not_stop_the_hand(void **state) {
    (void)state;
    const us_vec3 zero = {0, 0, 0}, axis = {0, 1, 0};
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -G), 0.8);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, 0.2);
    start.v = us_vec3_make(1, 0, 0);
    start.w = us_vec3_make(0, 3, 0);
    const int32_t hand = scene_box(spec, "hand", 1, us_vec3_make(0.1, 0.1, 0.1), &start),
                  plate = build_link(spec, "plate", 0.05, zero, us_vec3_make(7e-5, 7e-5, 7e-5)),
                  finger = build_link(spec, "finger", 2e-6, zero, us_vec3_make(1.1e-9, 1.1e-9, 1.1e-9));
    const int32_t j = build_joint(spec, "j", US_JOINT_CONTINUOUS, hand, plate, zero, axis, 0, 2),
                  k = build_joint(spec, "k", US_JOINT_CONTINUOUS, hand, finger, us_vec3_make(0.07, 0, 0),
                                  axis, 0, 2);
    build_coupling(spec, "jk", j, 1, k, -1, 0);
    built b = build_sim(spec);
    const double before = total(&b);
    for (int i = 0; i < 1500; i++) {
        build_step(&b, 1, NULL);
        assert_true(total(&b) < before + 1e-6);
    }
    const us_solver_counts c = us_sim_get_solver_counts(b.sim);
    printf("    %lld of %lld islands lagged\n", (long long)c.n_lagged, (long long)c.n_island);
    assert_true(c.n_lagged * 20 < c.n_island);
    build_free(&b);
}

// ---------------------------------------------------------------- overlaps

// A box that starts in the ground by d comes up to it, and no higher.
static void what_starts_in_the_ground_is_not_flung(void **state) {
    (void)state;
    static const char *const solvers[] = {"newton", "gauss-seidel", "rigid-direct", "rigid-iterative"};
    for (int k = 0; k < 16; k++) {
        char text[1024];
        const double depth = k & 4 ? 0.06 : 0.001, mass = k & 8 ? 100 : 0.01;
        snprintf(text, sizeof text,
                 "<scene version='1'><world solver='%s'><shape type='plane'/></world>"
                 "<object name='b' xyz='0 0 %g'><link name='b'><inertial mass='%g' inertia='%g %g %g'/>"
                 "<shape type='box' size='0.1 0.1 0.1'/></link></object></scene>",
                 solvers[k & 3], 0.05 - depth, mass, mass / 600, mass / 600, mass / 600);
        built b = load(text);
        double highest = 0, fastest = 0;
        for (int i = 0; i < 1000; i++) {
            build_step(&b, 1, NULL);
            highest = fmax(highest, scene_position(&b, 0).z);
            fastest = fmax(fastest, us_vec3_norm(scene_velocity(&b, 0)));
        }
        // It rests where its weight sinks it, which is 0.1 mm at most; falling that far makes 0.05 m/s.
        build_near("where it rests", scene_position(&b, 0).z, 0.05, 1e-4);
        assert_true(highest < 0.05 + 1e-6);
        assert_true(fastest < 0.05);
        build_free(&b);
    }
}

// Without weight five boxes and five balls that start in each other part, and hardly move on.
static void what_starts_in_each_other_parts_without_energy(void **state) {
    (void)state;
    us_spec *spec = scene_spec(us_vec3_make(0, 0, 0), 0.5);
    for (int i = 0; i < 5; i++) {
        char name[2][16];
        snprintf(name[0], sizeof name[0], "box%d", i);
        snprintf(name[1], sizeof name[1], "ball%d", i);
        scene_start box = scene_at(0.05 * i, 0.02 * sin(3.0 * i), 0),
                    ball = scene_at(0.05 * i, 0.02 * sin(3.0 * i), 1);
        box.q = us_quat_from_rpy(0, 0, 0.3 * i);
        scene_box(spec, name[0], 0.5, us_vec3_make(0.1, 0.1, 0.1), &box);
        scene_ball(spec, name[1], 0.5, 0.05, &ball);
    }
    built b = build_sim(spec);
    double most = 0;
    for (int i = 0; i < 1500; i++) {
        build_step(&b, 1, NULL);
        most = fmax(most, total(&b));
    }
    double deepest = 0;
    for (int32_t i = 0; i < us_sim_n_contact(b.sim); i++)
        deepest = fmin(deepest, us_sim_get_contact(b.sim, i).gap);
    printf("    %.1e J at most, %.1e m deep at the end\n", most, deepest);
    // Pushed out at 1 m/s they would have 2.5 J.
    assert_true(most < 1e-3);
    assert_true(deepest > -1e-5);
    build_free(&b);
}

// A snapshot in the middle of the push goes on with the same bits.
static void an_overlap_is_part_of_the_state(void **state) {
    (void)state;
    us_spec *spec[2];
    built b[2];
    for (int k = 0; k < 2; k++) {
        spec[k] = scene_spec(us_vec3_make(0, 0, -G), 0.5);
        scene_ground(spec[k]);
        scene_start start = scene_at(0, 0, 0.02);
        scene_box(spec[k], "box", 1, us_vec3_make(0.1, 0.1, 0.1), &start);
        b[k] = build_sim(spec[k]);
    }
    build_step(&b[0], 20, NULL);
    static char block[1 << 20];
    size_t size = 0;
    assert_int_equal(us_sim_save(b[0].sim, block, sizeof block, &size), US_OK);
    assert_int_equal(us_sim_restore(b[1].sim, block, size), US_OK);
    for (int k = 0; k < 2; k++)
        build_step(&b[k], 300, NULL);
    assert_true(us_sim_hash(b[0].sim) == us_sim_hash(b[1].sim));
    build_near("height", scene_position(&b[1], 0).z, 0.05, 1e-4);
    for (int k = 0; k < 2; k++)
        build_free(&b[k]);
}

// ---------------------------------------------------------------- energy, rest

// A coin that rolls on its rim: first order errors of the step must not feed it.
static void a_coin_on_its_rim_gains_no_energy(void **state) {
    (void)state;
    static const double steps[] = {1e-4, 5e-4, 1e-3};
    for (int k = 0; k < 3; k++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "<scene version='1'><pair friction='1' viscous='0'/><world step='%g s'><shape "
                 "type='plane'/></world>"
                 "<object name='d' xyz='0 0 0.032699158' rpy='0 60 0 deg'><base angular='-30.023349377 0 0'/>"
                 "<link name='d'><inertial mass='0.4' inertia='0.000142129 0.000142129 0.000284258'/>"
                 "<shape type='cylinder' size='0.0377 0.0002'/></link></object></scene>",
                 steps[k]);
        built b = load(text);
        const double before = total(&b);
        double most = 0;
        const int n = (int)(2 / steps[k]);
        for (int i = 0; i < n; i++) {
            build_step(&b, 1, NULL);
            most = fmax(most, total(&b) - before);
        }
        printf("    %g ms: %.1e J gained, %.2e J in the end of %.4f J\n", 1e3 * steps[k], most,
               total(&b) - before, before);
        // It may lose what a first order step loses.
        assert_true(most < 1e-7);
        assert_true(total(&b) > before * (1 - 2 * steps[k]));
        build_free(&b);
    }
}

// A number in 0 .. 1 for a seed.
static double number_of(int seed, int i) {
    const double x = 43758.5453 * sin(12.9898 * (seed + 1) + 78.233 * (i + 1));
    return x - floor(x);
}

// Balls with their weight beside the middle, and capsules, that roll, tumble and spin.
static void round_bodies_that_roll_gain_no_energy(void **state) {
    (void)state;
    double worst = 0;
    for (int seed = 0; seed < 24; seed++) {
        const double radius = 0.02 + 0.1 * number_of(seed, 0),
                     length = seed % 2 ? 0.3 * number_of(seed, 1) : 0,
                     off = 0.5 * radius * number_of(seed, 2), spin = 30 * number_of(seed, 4),
                     across = 0.4 * (radius + length) * (radius + length), along = 0.4 * radius * radius,
                     step = seed % 3 == 0   ? 1e-4
                            : seed % 3 == 1 ? 5e-4
                                            : 1e-3;
        char text[1024];
        snprintf(text, sizeof text,
                 "<scene version='1'><pair friction='1' viscous='0'/><world step='%g s'><shape "
                 "type='plane'/></world><object name='d' xyz='0 0 %.17g' rpy='%.17g 90 0 deg'>"
                 "<base linear='0 %.17g 0' angular='%.17g %.17g %.17g'/><link name='d'>"
                 "<inertial com='%.17g 0 0' mass='1' inertia='%.17g %.17g %.17g'/>"
                 "<shape type='capsule' size='%.17g %.17g'/></link></object></scene>",
                 step, radius, 360 * number_of(seed, 3), -spin * radius, spin, 4 * (number_of(seed, 5) - 0.5),
                 8 * (number_of(seed, 6) - 0.5), off, across, across, along, radius, length + 1e-6);
        built b = load(text);
        const double before = total(&b);
        double most = 0, least = before;
        for (int i = 0; i < (int)(1 / step); i++) {
            build_step(&b, 1, NULL);
            const double now = total(&b);
            least = fmin(least, now);
            most = fmax(most, now - least);
        }
        printf("    seed %d, %g ms: %.1e J gained of %.3f J\n", seed, 1e3 * step, most, before);
        worst = fmax(worst, most / before);
        build_free(&b);
    }
    // Springs give back what they took: a depth of 0.02 mm at their weight of 10 N and some impacts.
    assert_true(worst < 1e-3);
}

// Boxes of 0.1 m, each off by some millimetres: statics holds them, and they come to rest.
static void a_crooked_tower_comes_to_rest(void **state) {
    (void)state;
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -G), 0.8);
    scene_ground(spec);
    for (int i = 0; i < 25; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", i);
        scene_start start = scene_at(0.005 * sin(i), 0.005 * cos(2 * i), 0.05 + 0.1 * i);
        scene_box(spec, name, 0.1, us_vec3_make(0.1, 0.1, 0.1), &start);
    }
    built b = build_sim(spec);
    build_step(&b, 4000, NULL);
    const us_vec3 early = scene_position(&b, 24);
    build_step(&b, 1000, NULL);
    const double moved = us_vec3_norm(us_vec3_sub(scene_position(&b, 24), early));
    printf("    the topmost moves by %.1e m in a second\n", moved);
    assert_true(moved < 1e-6);
    assert_true(scene_tilt(&b, 24) < 1e-3);
    build_free(&b);
}

// Hulls whose bottom has corners within 0.2 mm: they rest on several faces at once.
static void a_hull_with_bumps_comes_to_rest(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint64_t counter = 0;
        us_vec3 point[48];
        for (int i = 0; i < 40; i++)
            point[i] = us_vec3_make(build_uniform(seed, &counter, -0.3, 0.3),
                                    build_uniform(seed, &counter, -0.2, 0.2),
                                    build_uniform(seed, &counter, 0, 2e-4) - 0.1);
        for (int i = 0; i < 8; i++) {
            const double x = i & 4 ? 0.2 : 0.3, y = i & 4 ? 0.1 : 0.2;
            point[40 + i] = us_vec3_make(i & 1 ? x : -x, i & 2 ? y : -y, i & 4 ? 0.1 : -0.0999);
        }
        us_spec *spec = scene_spec(us_vec3_make(0, 0, -G), 0.8);
        scene_ground(spec);
        scene_start start = scene_at(0, 0, 0.3);
        start.q = us_quat_from_rpy(0.02, 0.01, 0);
        us_shape_def shape = us_shape_def_default(US_SHAPE_CONVEX);
        shape.link = scene_float(spec, "b", 30, scene_box_moments(30, us_vec3_make(0.5, 0.3, 0.2)), &start);
        shape.points = point;
        shape.n_point = 48;
        assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
        built b = build_sim(spec);
        build_step(&b, 5000, NULL);
        const double kinetic = us_sim_get_energy(b.sim).kinetic;
        printf("    seed %d: %.1e J\n", (int)seed, kinetic);
        assert_true(kinetic < 1e-12);
        build_free(&b);
    }
}

// ---------------------------------------------------------------- soil

// What sinks below the lowest point of a field of soil stays in it: slabs, balls and bars from up to 30 m.
static void nothing_falls_out_of_soft_soil(void **state) {
    (void)state;
    static const char *const soils[] = {"mars_drift", "snow", "dry_sand", "lunar"},
                             *const shapes[] = {"<shape type='box' size='0.15 0.1 0.03' surface='rock'/>",
                                                "<shape type='sphere' size='0.05' surface='rock'/>",
                                                "<shape type='capsule' size='0.03 0.2' surface='rock'/>"};
    for (int k = 0; k < 24; k++) {
        char text[1024];
        const double height = k & 1 ? 30 : 1.3;
        snprintf(
            text, sizeof text,
            "<scene version='1'><world><shape type='height-field' nx='41' ny='41' dx='0.1' dy='0.1' "
            "expression='0' surface='soil'/></world><material name='soil'><soil like='%s'/></material>"
            "<material name='rock'/><object name='stone' xyz='0 0 %g'><link name='b' density='2700'>%s</link>"
            "</object></scene>",
            soils[k / 2 % 4], height, shapes[k / 8]);
        built b = load(text);
        build_step(&b, 5000, NULL);
        const us_vec3 v = scene_velocity(&b, 0);
        const double z = scene_position(&b, 0).z;
        if (!(z > -1 && z < height && us_vec3_norm(v) < 5))
            fail_msg("%s from %g m: at %g m with %g m/s", soils[k / 2 % 4], height, z, us_vec3_norm(v));
        build_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dominoes_fall_at_every_step),
        cmocka_unit_test(a_coupled_finger_of_two_milligrams_does_not_stop_the_hand),
        cmocka_unit_test(what_starts_in_the_ground_is_not_flung),
        cmocka_unit_test(what_starts_in_each_other_parts_without_energy),
        cmocka_unit_test(an_overlap_is_part_of_the_state),
        cmocka_unit_test(a_coin_on_its_rim_gains_no_energy),
        cmocka_unit_test(round_bodies_that_roll_gain_no_energy),
        cmocka_unit_test(a_crooked_tower_comes_to_rest),
        cmocka_unit_test(a_hull_with_bumps_comes_to_rest),
        cmocka_unit_test(nothing_falls_out_of_soft_soil),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

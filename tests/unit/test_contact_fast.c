// Fast twins of contact: each switched off alone gives the same step as all of them, on random scenes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "contact_scene.h"
#include "sim/sim.h"

static const us_vec3 Y = {0, 1, 0}, ZERO = {0, 0, 0};

static double some(uint64_t seed, uint64_t *counter, double low, double high) {
    return build_uniform(seed, counter, low, high);
}

static scene_start some_start(uint64_t seed, uint64_t *counter, double x) {
    scene_start start = scene_at(x, some(seed, counter, -0.15, 0.15), some(seed, counter, 0.15, 0.5));
    start.q = build_random_rotation(seed, counter);
    start.v = build_random_vec3(seed, counter, 1);
    start.w = build_random_vec3(seed, counter, 5);
    return start;
}

// Boxes, balls and bars of one link that fall on each other, and a cart of five links with wheels of balls.
static us_spec *scene_of(uint64_t seed) {
    uint64_t counter = 0;
    us_pair_def pair = scene_pair(some(seed, &counter, 0.1, 0.9));
    pair.values.restitution = seed % 3 == 0 ? 0.5 : 0;
    pair.values.rolling_length = seed % 2 == 0 ? 1e-3 : 0;
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), 1e-3, &pair);
    scene_ground(spec);
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "body%d", i);
        scene_start start = some_start(seed, &counter, 0.12 * (i - 4));
        if (i % 3 == 0)
            scene_ball(spec, name, 1, 0.1, &start);
        else
            scene_box(spec, name, i, us_vec3_make(i % 3 == 1 ? 0.4 : 0.15, 0.1, 0.1), &start);
    }
    scene_start cart = scene_at(2, 0, 0.2);
    cart.v = build_random_vec3(seed, &counter, 1);
    int32_t frame = scene_box(spec, "frame", 5, us_vec3_make(0.6, 0.3, 0.05), &cart);
    for (int i = 0; i < 4; i++) {
        char name[2][16];
        snprintf(name[0], sizeof name[0], "wheel%d", i);
        snprintf(name[1], sizeof name[1], "axle%d", i);
        int32_t wheel = build_link(spec, name[0], 0.5, ZERO, scene_ball_moments(0.5, 0.1));
        scene_add_ball(spec, wheel, 0.1, ZERO);
        build_joint(spec, name[1], US_JOINT_CONTINUOUS, frame, wheel,
                    us_vec3_make(i % 2 ? 0.3 : -0.3, i / 2 ? 0.3 : -0.3, -0.08), Y, 0,
                    some(seed, &counter, -5, 5));
    }
    return spec;
}

// Both make each step from the same state: what one step differs by is not multiplied by the next. Returns
// the greatest difference of a velocity, m/s and rad/s.
static double difference_without(uint32_t twins, uint64_t seed, int n_step) {
    built all = build_sim(scene_of(seed)), plain = build_sim(scene_of(seed));
    plain.sim->contacts->fast = USI_FAST_ALL & ~twins;
    double most = 0;
    for (int i = 0; i < n_step; i++) {
        size_t size = 0;
        assert_int_equal(us_sim_save(all.sim, NULL, 0, &size), US_OK);
        void *state = malloc(size);
        assert_int_equal(us_sim_save(all.sim, state, size, &size), US_OK);
        assert_int_equal(us_sim_restore(plain.sim, state, size), US_OK);
        free(state);
        build_step(&all, 1, NULL);
        build_step(&plain, 1, NULL);
        most = fmax(most, build_difference(us_sim_view_v(all.sim), us_sim_view_v(plain.sim), all.n.n_v));
    }
    build_free(&all);
    build_free(&plain);
    return most;
}

typedef struct twin {
    const char *name;
    uint32_t bits;
    double tolerance;  // m/s, rad/s
} twin;

static void each_twin_gives_what_the_plain_code_gives(void **state) {
    (void)state;
    // What is only kept gives the same bits. What computes in another order differs by rounding, 1e-15 of
    // velocities up to 10, and where an impact is solved by the stiffness of its rows over the mass, 1e6 (see
    // IMPACT_STIFFNESS): 1e-8.
    static const twin list[] = {
        {"free", USI_FAST_FREE, 1e-7},    {"branch", USI_FAST_BRANCH, 1e-7}, {"layout", USI_FAST_LAYOUT, 0},
        {"islands", USI_FAST_ISLANDS, 0}, {"skip", USI_FAST_SKIP, 1e-9},     {"poses", USI_FAST_POSES, 0},
        {"boxes", USI_FAST_BOXES, 0},     {"apart", USI_FAST_APART, 0},      {"pair", USI_FAST_PAIR, 0},
        {"all", USI_FAST_ALL, 1e-7},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double most = 0;
        for (uint64_t seed = 1; seed <= 6; seed++)
            most = fmax(most, difference_without(list[i].bits, seed, 400));
        printf("    without %-10s %.1e\n", list[i].name, most);
        assert_true(most <= list[i].tolerance);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_twin_gives_what_the_plain_code_gives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

// Waves of some centimetres under everything, in cells of 15 cm.
static void wavy_ground(us_spec *spec, uint64_t seed, uint64_t *counter) {
    enum { N = 41 };
    double heights[N * N], along = some(seed, counter, 1, 4), across = some(seed, counter, 1, 4);
    for (int j = 0; j < N; j++) {
        for (int i = 0; i < N; i++)
            heights[j * N + i] = 0.03 * (sin(along * 0.15 * i) + sin(across * 0.15 * j));
    }
    us_shape_def shape = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    shape.heights = heights;
    shape.n_x = shape.n_y = N;
    shape.size[0] = shape.size[1] = 0.15 * (N - 1);
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
}

// A capsule or a cylinder along the link's y axis.
static void add_round(us_spec *spec, us_shape_kind kind, int32_t link, double radius, double length) {
    us_shape_def shape = us_shape_def_default(kind);
    shape.link = link;
    shape.X_BG.q = us_quat_exp(us_vec3_make(acos(0), 0, 0));
    shape.size[0] = radius;
    shape.size[1] = length;
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
}

// What the scenes are made of: boxes and balls on a plane, or capsules and wheels that are capsules or
// cylinders among them, on a plane or a height field.
typedef enum scene_kind { BALLS_ON_PLANE, CAPSULES, N_SCENE_KIND } scene_kind;

static void add_body(us_spec *spec, scene_kind kind, int i, const scene_start *start) {
    char name[16];
    snprintf(name, sizeof name, "body%d", i);
    const us_vec3 moments = scene_box_moments(2, us_vec3_make(0.1, 0.3, 0.1));
    if (i % 3 == 0)
        scene_ball(spec, name, 1, 0.1, start);
    else if (kind == CAPSULES && i % 3 == 1)
        add_round(spec, US_SHAPE_CAPSULE, scene_float(spec, name, 2, moments, start), 0.05, 0.2);
    else
        scene_box(spec, name, i, us_vec3_make(i % 3 == 1 ? 0.4 : 0.15, 0.1, 0.1), start);
}

// Nine bodies that fall on each other, and a cart of five links.
static us_spec *scene_of(scene_kind kind, uint64_t seed) {
    uint64_t counter = 0;
    us_pair_def pair = scene_pair(some(seed, &counter, 0.1, 0.9));
    pair.values.restitution = seed % 3 == 0 ? 0.5 : 0;
    pair.values.rolling_length = seed % 2 == 0 ? 1e-3 : 0;
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), 1e-3, &pair);
    if (kind == BALLS_ON_PLANE || seed % 2 == 0)
        scene_ground(spec);
    else
        wavy_ground(spec, seed, &counter);
    for (int i = 0; i < 9; i++) {
        scene_start start = some_start(seed, &counter, 0.12 * (i - 4));
        add_body(spec, kind, i, &start);
    }
    scene_start cart = scene_at(2, 0, 0.2);
    cart.v = build_random_vec3(seed, &counter, 1);
    int32_t frame = scene_box(spec, "frame", 5, us_vec3_make(0.6, 0.3, 0.05), &cart);
    for (int i = 0; i < 4; i++) {
        char name[2][16];
        snprintf(name[0], sizeof name[0], "wheel%d", i);
        snprintf(name[1], sizeof name[1], "axle%d", i);
        int32_t wheel = build_link(spec, name[0], 0.5, ZERO, scene_ball_moments(0.5, 0.1));
        if (kind == BALLS_ON_PLANE)
            scene_add_ball(spec, wheel, 0.1, ZERO);
        else
            add_round(spec, seed % 3 == 1 ? US_SHAPE_CAPSULE : US_SHAPE_CYLINDER, wheel, 0.1, 0.06);
        build_joint(spec, name[1], US_JOINT_CONTINUOUS, frame, wheel,
                    us_vec3_make(i % 2 ? 0.3 : -0.3, i / 2 ? 0.3 : -0.3, -0.08), Y, 0,
                    some(seed, &counter, -5, 5));
    }
    return spec;
}

static void *save(const built *b, size_t *out_size) {
    assert_int_equal(us_sim_save(b->sim, NULL, 0, out_size), US_OK);
    void *state = malloc(*out_size);
    assert_int_equal(us_sim_save(b->sim, state, *out_size, out_size), US_OK);
    return state;
}

// What the step that was taken with these velocities at its end makes of a rounding: the most by which its
// velocities change when each position and velocity of its start is another by up to 1e-15.
static double spread_of(built *b, const void *state, size_t size, const double *v, uint64_t seed) {
    enum { N_TRIAL = 24 };
    const double rounding = 1e-15;
    double max = 0;
    uint64_t counter = 0;
    for (int i = 0; i < N_TRIAL; i++) {
        assert_int_equal(us_sim_restore(b->sim, state, size), US_OK);
        double *q = b->sim->now.q, *start_v = b->sim->now.v;
        for (int k = 0; k < b->n.n_q; k++)
            q[k] += rounding * fmax(1, fabs(q[k])) * some(seed, &counter, -1, 1);
        for (int k = 0; k < b->n.n_v; k++)
            start_v[k] += rounding * fmax(1, fabs(start_v[k])) * some(seed, &counter, -1, 1);
        build_step(b, 1, NULL);
        max = fmax(max, build_difference(us_sim_view_v(b->sim), v, b->n.n_v));
    }
    return max;
}

// What differs by less than this is equal but for rounding, m/s and rad/s: 1e-15 of velocities up to 10, a
// hundred times.
static const double ROUNDED = 1e-12;
// What a rounding may do in a few directions, against what it does in the worst of many.
static const double OFTEN = 30;
// Without points that cannot press Newton's method goes another way, and ends elsewhere within its tolerance:
// a millionth of the impulses, of up to 10 N s, on bodies of 1 kg. Among many scenes others do so too, where
// an iteration more or less is a matter of rounding.
static const double OWN_WAY = 1e-5;

// Both make each step from the same state: what one step differs by is not multiplied by the next. Returns
// the largest difference of a velocity, m/s and rad/s. A step that differs by more than rounding does so by
// no more than what the plain code makes of a rounding of its start: out_excess is the largest ratio of the
// two.
static double difference_without(uint32_t twins, scene_kind kind, uint64_t seed, int n_step,
                                 double *out_excess) {
    built all = build_sim(scene_of(kind, seed)), plain = build_sim(scene_of(kind, seed));
    plain.sim->contacts->fast = USI_FAST_ALL & ~twins;
    double max = 0, *v = malloc((size_t)all.n.n_v * sizeof *v);
    int32_t n_contact = 0;
    for (int i = 0; i < n_step; i++) {
        size_t size = 0;
        void *state = save(&all, &size);
        assert_int_equal(us_sim_restore(plain.sim, state, size), US_OK);
        build_step(&all, 1, NULL);
        build_step(&plain, 1, NULL);
        for (int k = 0; k < all.n.n_v; k++)
            v[k] = us_sim_view_v(plain.sim)[k];
        const double differs = build_difference(us_sim_view_v(all.sim), v, all.n.n_v);
        if (differs > ROUNDED)
            *out_excess = fmax(*out_excess, differs / (spread_of(&plain, state, size, v, seed) + ROUNDED));
        max = fmax(max, differs);
        n_contact += us_sim_n_contact(all.sim);
        free(state);
    }
    assert_true(n_contact > n_step);
    free(v);
    build_free(&all);
    build_free(&plain);
    return max;
}

typedef struct twin {
    const char *name;
    uint32_t bits;
    bool is_exact[N_SCENE_KIND];
    bool has_own_way;
} twin;

static void each_twin_gives_what_the_plain_code_gives(void **state) {
    (void)state;
    // What is only kept gives the same bits. What computes in another order differs by rounding, and where a
    // step multiplies that, by no more than a rounding of its start does. Of a ball's pose nothing is
    // rounded, of the axis of a capsule or cylinder it is.
    static const twin list[] = {
        {"free", USI_FAST_FREE, {false, false}, false},   {"branch", USI_FAST_BRANCH, {false, false}, false},
        {"layout", USI_FAST_LAYOUT, {true, true}, false}, {"islands", USI_FAST_ISLANDS, {true, true}, false},
        {"skip", USI_FAST_SKIP, {false, false}, true},    {"poses", USI_FAST_POSES, {true, false}, false},
        {"boxes", USI_FAST_BOXES, {true, true}, false},   {"apart", USI_FAST_APART, {true, true}, false},
        {"pair", USI_FAST_PAIR, {true, true}, false},     {"all", USI_FAST_ALL, {false, false}, true},
    };
    const bool is_long = getenv("US_LONG_TESTS") != NULL;
    const int n_seed = is_long ? 60 : 6;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double max[N_SCENE_KIND] = {0}, excess[N_SCENE_KIND] = {0};
        for (int kind = 0; kind < N_SCENE_KIND; kind++) {
            for (int seed = 1; seed <= n_seed; seed++)
                max[kind] = fmax(max[kind], difference_without(list[i].bits, (scene_kind)kind, (uint64_t)seed,
                                                               400, &excess[kind]));
        }
        printf("    without %-10s %.1e %.1e; over that of a rounding: %.1e %.1e\n", list[i].name, max[0],
               max[1], excess[0], excess[1]);
        for (int kind = 0; kind < N_SCENE_KIND; kind++) {
            if (list[i].is_exact[kind]) assert_true(max[kind] == 0);
            const bool has_own_way = list[i].has_own_way || is_long;
            assert_true(max[kind] <= (has_own_way ? OWN_WAY : 1e-7) &&
                        (has_own_way || excess[kind] <= OFTEN));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_twin_gives_what_the_plain_code_gives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

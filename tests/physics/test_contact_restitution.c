// Restitution where friction acts too: Newton's rule alone may create energy (Kane 1984), and no impact here
// does.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contact_scene.h"

static const double STIFFNESS = 1e7, PI = 3.14159265358979323846;
static const us_vec3 NONE = {0, 0, 0};

static const us_vec3 BAR = {0.05, 0.05, 1}, PLATE = {0.4, 0.3, 0.02}, BOX = {0.3, 0.2, 0.1};

// One body over the ground, without gravity: its energy changes in contact alone.
static built body_over_ground(us_vec3 size, const char *solver, double step) {
    us_pair_def pair = scene_pair(0.5);
    pair.values.stiffness = STIFFNESS;
    us_spec *spec = scene_spec_pair(NONE, step, &pair);
    us_world_settings world = *us_spec_view_world(spec);
    world.solver = solver;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, 1);
    scene_box(spec, "body", 1, size, &start);
    return build_sim(spec);
}

static double lowest_corner(us_vec3 size, us_quat q) {
    us_vec3 x = us_quat_rotate(q, us_vec3_make(size.x / 2, 0, 0)),
            y = us_quat_rotate(q, us_vec3_make(0, size.y / 2, 0)),
            z = us_quat_rotate(q, us_vec3_make(0, 0, size.z / 2));
    return -(fabs(x.z) + fabs(y.z) + fabs(z.z));
}

static void set_surface(built *b, double e, double mu) {
    us_pair_values values;
    assert_int_equal(us_sim_get_pair(b->sim, (us_material){0}, (us_material){0}, &values), US_OK);
    values.restitution = e;
    values.static_friction = values.kinetic_friction = mu;
    assert_int_equal(us_sim_set_pair(b->sim, (us_material){0}, (us_material){0}, &values), US_OK);
}

// Puts the body `gap` above the ground, with the velocity v of its centre and the angular velocity w, both in
// the world.
static void throw_it(built *b, us_vec3 size, us_quat q, double gap, us_vec3 v, us_vec3 w) {
    us_quat back = us_quat_conj(q);
    v = us_quat_rotate(back, v);
    w = us_quat_rotate(back, w);
    const double state[7] = {q.w, q.x, q.y, q.z, 0, 0, gap - lowest_corner(size, q)},
                 speed[6] = {w.x, w.y, w.z, v.x, v.y, v.z};
    assert_int_equal(us_sim_reset(b->sim), US_OK);
    assert_int_equal(us_sim_set_state(b->sim, state, speed), US_OK);
}

typedef struct gains {
    double most;   // of the energy at the start, in one step
    int n_impact;  // of the bodies that hit the ground
} gains;

static gains random_impacts(us_vec3 size, const char *solver, double step, int n, uint64_t seed) {
    gains out = {0, 0};
    uint64_t counter = 0;
    built b = body_over_ground(size, solver, step);
    for (int k = 0; k < n; k++) {
        // Every fourth lies or stands nearly flat, so that two and four points meet at once; e and mu are at
        // their ends now and then.
        us_quat q = build_random_rotation(seed, &counter);
        us_vec3 small = build_random_vec3(seed, &counter, 1e-3);
        if (k % 4 == 3) q = us_quat_exp(small);
        double e = build_uniform(seed, &counter, -0.1, 1.1), mu = build_uniform(seed, &counter, -0.1, 1.1);
        e = fmin(1, fmax(0, e));
        mu = fmin(1, fmax(0, mu));
        us_vec3 v = build_random_vec3(seed, &counter, 2), w = build_random_vec3(seed, &counter, 10);
        v.z = -fabs(v.z);
        throw_it(&b, size, q, build_uniform(seed, &counter, 0, 1e-3), v, w);
        set_surface(&b, e, mu);
        for (int i = 0; i < 8; i++) {
            double moving = build_total_energy(&b), with_springs = scene_energy(&b, 0, size, STIFFNESS);
            build_step(&b, 1, NULL);
            // Springs that are bent already may push: only steps that begin without them count.
            if (with_springs > moving || !(scene_contact_force(&b, 0).z > 0)) continue;
            double gain = build_total_energy(&b) / moving - 1;
            out.most = fmax(out.most, gain);
            out.n_impact++;
        }
    }
    build_free(&b);
    printf("    %s, %g s, %g x %g x %g m: greatest gain %.2e of the energy in %d impacts\n", solver, step,
           size.x, size.y, size.z, out.most, out.n_impact);
    return out;
}

// What the impulses' rounding and the solver's tolerance leave, of the energy: a share is sought until W <= 0
// by a millionth of it or more, and the balance of Newton's method holds to a millionth, of which the energy
// sees the square.
static const double ROUNDING = 1e-9;

static void no_impact_of_ten_thousand_creates_energy(void **state) {
    (void)state;
    const struct {
        us_vec3 size;
        double step;
        int n;
    } sets[] = {
        {BAR, 1e-3, 4000}, {PLATE, 1e-3, 2000}, {BOX, 1e-3, 2000}, {BAR, 2e-4, 1000}, {BOX, 5e-3, 1000}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        gains x = random_impacts(sets[i].size, "newton", sets[i].step, sets[i].n, 11 + i);
        assert_true(x.n_impact > sets[i].n / 2);
        assert_true(x.most < ROUNDING);
    }
}

static void no_other_solver_creates_energy_either(void **state) {
    (void)state;
    static const char *const names[] = {"gauss-seidel", "rigid-direct", "rigid-iterative"};
    for (uint64_t i = 0; i < 3; i++) {
        gains bar = random_impacts(BAR, names[i], 1e-3, 1000, 21 + i),
              box = random_impacts(BOX, names[i], 1e-3, 1000, 31 + i);
        assert_true(bar.n_impact > 500 && box.n_impact > 500);
        assert_true(bar.most < ROUNDING && box.most < ROUNDING);
    }
}

// ---- Two bodies that move ----

static void two_bars_that_meet_in_space_lose_energy_and_keep_their_momentum(void **state) {
    (void)state;
    uint64_t counter = 0;
    us_pair_def pair = scene_pair(0.5);
    us_spec *spec = scene_spec_pair(NONE, 1e-3, &pair);
    scene_start start = scene_at(0, 0, 0), other = scene_at(0, 0, 1);
    scene_box(spec, "one", 1, BAR, &start);
    scene_box(spec, "two", 2, BAR, &other);
    built b = build_sim(spec);
    int n_impact = 0;
    double most = 0;
    for (int k = 0; k < 1000; k++) {
        // Across each other, anywhere along their lengths, coming together at some metres per second.
        us_quat q =
            us_quat_mul(us_quat_exp(build_random_vec3(3, &counter, 0.5)), us_quat_from_rpy(0, PI / 2, 0));
        us_quat r =
            us_quat_mul(us_quat_exp(build_random_vec3(3, &counter, 0.5)), us_quat_from_rpy(PI / 2, 0, 0));
        us_vec3 p = build_random_vec3(3, &counter, 0.45), v = build_random_vec3(3, &counter, 2),
                w = build_random_vec3(3, &counter, 5);
        us_quat back = us_quat_conj(q);
        v = us_quat_rotate(back, us_vec3_make(v.x, v.y, -3));
        w = us_quat_rotate(back, w);
        const double at[14] = {q.w, q.x, q.y, q.z, p.x, p.y, 0.6, r.w, r.x, r.y, r.z, 0, 0, 0};
        const double speed[12] = {w.x, w.y, w.z, v.x, v.y, v.z, 0, 0, 0, 0, 0, 0};
        assert_int_equal(us_sim_reset(b.sim), US_OK);
        assert_int_equal(us_sim_set_state(b.sim, at, speed), US_OK);
        double mu = build_uniform(3, &counter, 0, 1.5), e = build_uniform(3, &counter, 0, 1.2);
        set_surface(&b, fmin(1, e), mu);
        for (int i = 0; i < 300; i++) {
            double before = build_total_energy(&b);
            us_momentum m = us_sim_get_momentum(b.sim);
            build_step(&b, 1, NULL);
            if (us_vec3_norm(scene_contact_force(&b, 0)) == 0) continue;
            us_momentum now = us_sim_get_momentum(b.sim);
            most = fmax(most, build_total_energy(&b) / before - 1);
            // The balance of Newton's method holds to a millionth of the impulses, which are of 3 m/s and 2/3
            // kg.
            build_near("momentum", us_vec3_norm(us_vec3_sub(now.linear, m.linear)), 0, 1e-6 * 2);
            n_impact++;
            break;
        }
    }
    printf("    greatest gain %.2e of the energy in %d impacts\n", most, n_impact);
    assert_true(n_impact > 300);
    assert_true(most < ROUNDING);
    build_free(&b);
}

// ---- Restitution is met wherever energy allows it ----

static void without_friction_the_end_of_a_bar_rebounds_by_its_restitution(void **state) {
    (void)state;
    uint64_t counter = 0;
    int n_hit = 0;
    built b = body_over_ground(BAR, "newton", 1e-4);
    for (int k = 0; k < 200; k++) {
        us_quat q = build_random_rotation(5, &counter);
        us_vec3 half = us_vec3_scale(0.5, BAR), low = half,
                down = us_quat_rotate(us_quat_conj(q), us_vec3_make(0, 0, -1));
        low.x = copysign(half.x, down.x);
        low.y = copysign(half.y, down.y);
        low.z = copysign(half.z, down.z);
        double e = build_uniform(5, &counter, 0.1, 1);
        throw_it(&b, BAR, q, 1e-6, us_vec3_make(0, 0, -1), NONE);
        set_surface(&b, e, 0);
        build_step(&b, 1, NULL);
        if (us_sim_n_contact(b.sim) != 1) continue;  // it lies flat
        // With the arm that it was hit at. A millionth is lost to the compliance of the row; half the gap of
        // 1e-6 m lengthens the lever of 0.5 m.
        us_vec3 up =
            us_vec3_add(scene_velocity(&b, 0), us_vec3_cross(scene_spin(&b, 0), us_quat_rotate(q, low)));
        build_near("rebound", up.z, e, 1e-5);
        n_hit++;
    }
    assert_true(n_hit > 150);
    build_free(&b);
}

static void a_ball_that_comes_askew_rebounds_by_e_and_slips_or_sticks_by_coulomb(void **state) {
    (void)state;
    static const double es[] = {0.2, 0.5, 0.9, 1}, mus[] = {0, 0.05, 0.2, 0.6, 1};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 5; j++) {
            const double e = es[i], mu = mus[j], v = 3, along = 2, radius = 0.1;
            us_pair_def pair = scene_pair(mu);
            pair.values.restitution = e;
            us_spec *spec = scene_spec_pair(NONE, 1e-4, &pair);
            scene_ground(spec);
            scene_start start = scene_at(0, 0, radius + 1e-6);
            start.v = us_vec3_make(along, 0, -v);
            scene_ball(spec, "ball", 1, radius, &start);
            built b = build_sim(spec);
            build_step(&b, 20, NULL);
            // Sticking takes 2/7 of the slip out as impulse; slipping mu times the normal one.
            double J = fmin(mu * (1 + e) * v, along * 2 / 7);
            us_vec3 u = scene_velocity(&b, 0), w = scene_spin(&b, 0);
            // A millionth is lost to the compliance of the rows; half the gap of 1e-6 m lengthens the lever
            // of 0.1 m by as much again, five times.
            build_near("up", u.z, e * v, 1e-5 * v);
            build_near("along", u.x, along - J, 1e-5 * along);
            build_near("spin", w.y, J * radius / (0.4 * radius * radius), 1e-5 * along / radius);
            build_free(&b);
        }
    }
}

// A bar that is tilted and moves the way it leans, with e = 1 and mu = 1. Kane's case: to stick with its end
// and to rebound with all its speed it would have to gain energy; over most angles it keeps what it has, and
// near the ends, where it slips or is hit along its length, it loses some.
static void a_bar_that_falls_on_its_end_rebounds_as_much_as_its_energy_allows(void **state) {
    (void)state;
    built b = body_over_ground(BAR, "newton", 1e-3);
    for (int k = 1; k < 30; k++) {
        throw_it(&b, BAR, us_quat_from_rpy(0, k * PI / 60, 0), 1e-4, us_vec3_make(0.5, 0, -2), NONE);
        set_surface(&b, 1, 1);
        double before = build_total_energy(&b);
        build_step(&b, 1, NULL);
        double after = build_total_energy(&b) / before;
        printf("    tilted by %d deg: %.6f of the energy\n", 3 * k, after);
        assert_true(after <= 1 + ROUNDING);
        // The share of the restitution is sought to a thousandth of the blow, whose work is up to twice the
        // bar's energy.
        if (k >= 2 && k <= 27) assert_true(after > 1 - 2e-3);
    }
    build_free(&b);
}

// ---- With weight, with joints, over many bounces ----

// Ground of the k-th restitution and friction, and somewhere to start tumbling above it.
static us_spec *bouncing_ground(int k, uint64_t seed, uint64_t *counter, scene_start *out_start) {
    us_pair_def pair = scene_pair(k % 2 ? 1 : 0.4);
    pair.values.restitution = k % 3 ? 1 : 0.9;
    pair.values.stiffness = STIFFNESS;
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), 1e-3, &pair);
    scene_ground(spec);
    *out_start = scene_at(0, 0, 1);
    out_start->q = build_random_rotation(seed, counter);
    out_start->w = build_random_vec3(seed, counter, 5);
    return spec;
}

static void a_bar_that_bounces_for_long_never_has_more_energy_than_at_first(void **state) {
    (void)state;
    uint64_t counter = 0;
    double most = 0;
    for (int k = 0; k < 100; k++) {
        scene_start start;
        us_spec *spec = bouncing_ground(k, 9, &counter, &start);
        scene_box(spec, "bar", 1, BAR, &start);
        built b = build_sim(spec);
        double first = scene_energy(&b, 0, BAR, STIFFNESS);
        for (int i = 0; i < 5000; i++) {
            build_step(&b, 1, NULL);
            most = fmax(most, scene_energy(&b, 0, BAR, STIFFNESS) / first);
        }
        // The place of an impact is known to a step: m g h v is 0.04 J at 4 m/s, of some 12 J.
        assert_true(most < 1 + 4e-3);
        build_free(&b);
    }
    printf("    energy at most %.6f of the first\n", most);
}

// Two balls at the ends of a rod, shapes of their own: what strikes one throws the other down within the same
// step.
static void a_dumbbell_that_bounces_for_long_never_has_more_energy_than_at_first(void **state) {
    (void)state;
    const double radius = 0.03, arm = 0.5;
    uint64_t counter = 0;
    double most = 0;
    for (int k = 0; k < 100; k++) {
        scene_start start;
        us_spec *spec = bouncing_ground(k, 10, &counter, &start);
        int32_t link = scene_float(spec, "dumbbell", 1, scene_box_moments(1, BAR), &start);
        for (int end = -1; end < 2; end += 2) {
            us_shape_def shape = us_shape_def_default(US_SHAPE_SPHERE);
            shape.link = link;
            shape.size[0] = radius;
            shape.X_BG.p = us_vec3_make(0, 0, end * arm);
            assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
        }
        built b = build_sim(spec);
        double first = build_total_energy(&b);
        for (int i = 0; i < 5000; i++) {
            build_step(&b, 1, NULL);
            const double *q = us_sim_view_q(b.sim);
            double now = build_total_energy(&b), up = arm * (1 - 2 * (q[1] * q[1] + q[2] * q[2]));
            for (int end = -1; end < 2; end += 2) {
                double depth = fmax(radius - q[6] - end * up, 0);
                now += 0.5 * STIFFNESS * depth * depth;
            }
            most = fmax(most, now / first);
        }
        build_free(&b);
    }
    printf("    energy at most %.6f of the first\n", most);
    assert_true(most < 1 + 4e-3);
}

static void a_ball_that_loses_nothing_bounces_for_ever(void **state) {
    (void)state;
    us_pair_def pair = scene_pair(0.5);
    pair.values.restitution = 1;
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), 1e-3, &pair);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, 1.1);
    scene_ball(spec, "ball", 1, 0.1, &start);
    built b = build_sim(spec);
    double first = build_total_energy(&b) - 0.1 * 9.81, least = first, most = first;
    for (int i = 0; i < 200000; i++) {
        build_step(&b, 1, NULL);
        double now = build_total_energy(&b) - 0.1 * 9.81;
        least = fmin(least, now);
        most = fmax(most, now);
    }
    // Some 220 bounces. Half a step of the way, m g h v / 2 = 0.02 J of 9.81 J, to either side, and a
    // millionth of the speed in each of them.
    printf("    energy %.6f to %.6f of the first in 200 s\n", least / first, most / first);
    assert_true(most < first * (1 + 2.5e-3) && least > first * (1 - 2.5e-3 - 220 * 2e-6 * 2));
    build_free(&b);
}

static void an_arm_that_beats_the_ground_gains_nothing(void **state) {
    (void)state;
    uint64_t counter = 0;
    us_pair_def pair = scene_pair(0.5);
    us_spec *spec = scene_spec_pair(NONE, 1e-5, &pair);
    scene_ground(spec);
    const us_vec3 y = {0, 1, 0}, rod = {0.02, 0.02, 0.5};
    int32_t upper = build_link(spec, "upper", 1, us_vec3_make(0, 0, -0.25), scene_box_moments(1, rod));
    int32_t lower = build_link(spec, "lower", 1, us_vec3_make(0, 0, -0.25), scene_box_moments(1, rod));
    build_joint(spec, "shoulder", US_JOINT_REVOLUTE, US_WORLD, upper, us_vec3_make(0, 0, 0.8), y, 0, 0);
    build_joint(spec, "elbow", US_JOINT_REVOLUTE, upper, lower, us_vec3_make(0, 0, -0.5), y, 0, 0);
    scene_add_ball(spec, lower, 0.05, us_vec3_make(0, 0, -0.5));
    built b = build_sim(spec);
    double most = 0;
    int n_impact = 0;
    for (int k = 0; k < 1000; k++) {
        // Height of the hand's ball: 0.8 - 0.5 cos a - 0.5 cos(a + b) - 0.05, and it comes down.
        double lift = build_uniform(13, &counter, 0.2, 1),
               bend = acos((0.75 - 1e-6 - 0.5 * cos(lift)) / 0.5) - lift;
        double q[2] = {lift, bend},
               v[2] = {build_uniform(13, &counter, -5, 5), build_uniform(13, &counter, -5, 5)};
        if (sin(lift) * v[0] + sin(lift + bend) * (v[0] + v[1]) > -0.5) continue;
        assert_int_equal(us_sim_reset(b.sim), US_OK);
        assert_int_equal(us_sim_set_state(b.sim, q, v), US_OK);
        set_surface(&b, build_uniform(13, &counter, 0, 1), build_uniform(13, &counter, 0, 1));
        double first = build_total_energy(&b);
        for (int i = 0; i < 10; i++) {
            build_step(&b, 1, NULL);
            if (!(scene_contact_force(&b, lower).z > 0)) continue;
            most = fmax(most, build_total_energy(&b) / first - 1);
            n_impact++;
            break;
        }
    }
    printf("    greatest gain %.2e of the energy in %d impacts\n", most, n_impact);
    // Torques of motion are those of the step's start: the energy of the free arm is held to h w = 1e-4 of
    // itself at 10 rad/s.
    assert_true(n_impact > 200);
    assert_true(most < 1e-4);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_impact_of_ten_thousand_creates_energy),
        cmocka_unit_test(no_other_solver_creates_energy_either),
        cmocka_unit_test(two_bars_that_meet_in_space_lose_energy_and_keep_their_momentum),
        cmocka_unit_test(without_friction_the_end_of_a_bar_rebounds_by_its_restitution),
        cmocka_unit_test(a_ball_that_comes_askew_rebounds_by_e_and_slips_or_sticks_by_coulomb),
        cmocka_unit_test(a_bar_that_falls_on_its_end_rebounds_as_much_as_its_energy_allows),
        cmocka_unit_test(a_bar_that_bounces_for_long_never_has_more_energy_than_at_first),
        cmocka_unit_test(a_dumbbell_that_bounces_for_long_never_has_more_energy_than_at_first),
        cmocka_unit_test(a_ball_that_loses_nothing_bounces_for_ever),
        cmocka_unit_test(an_arm_that_beats_the_ground_gains_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

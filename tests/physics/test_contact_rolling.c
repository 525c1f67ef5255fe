// A ball that rolls, slips, spins: friction at one point that moves over both surfaces.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "contact_scene.h"
#include "sim/sim.h"

static const double DEGREE = 3.14159265358979323846 / 180, R = 0.1, G = 9.81;

static built ball_on(us_vec3 gravity, const us_pair_def *pair, double step, us_vec3 v, us_vec3 w) {
    us_spec *spec = scene_spec_pair(gravity, step, pair);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, R);
    start.v = v;
    start.w = w;
    scene_ball(spec, "ball", 1, R, &start);
    return build_sim(spec);
}

// Velocity of the ball's surface at the ground, along x.
static double slip_of(built *b) { return scene_velocity(b, 0).x - R * scene_spin(b, 0).y; }

static double acceleration(built *b) {
    build_step(b, 500, NULL);
    double early = scene_velocity(b, 0).x;
    build_step(b, 1000, NULL);
    return scene_velocity(b, 0).x - early;
}

static void a_ball_rolls_down_with_five_sevenths_of_gravity(void **state) {
    (void)state;
    const us_vec3 zero = {0, 0, 0};
    us_pair_def pair = scene_pair(0.5);
    built b = ball_on(scene_gravity(20 * DEGREE, 0), &pair, 1e-3, zero, zero);
    double a = acceleration(&b);
    printf("    %.8f m/s^2, slip %.2e m/s\n", a, slip_of(&b));
    // It turns about a point that lies below the surface by its weight over the stiffness, 1e-6 m: 1e-5 of
    // the radius.
    build_near("acceleration", a, 2.3965840, 5e-5);
    build_near("slip", slip_of(&b), 0, 5e-5);
    build_near("sideways", scene_velocity(&b, 0).y, 0, 1e-9);
    build_free(&b);
}

static void a_ball_slips_when_friction_is_less_than_two_sevenths_of_the_slope(void **state) {
    (void)state;
    const double slope = 20 * DEGREE, least = 0.1039915;
    const us_vec3 zero = {0, 0, 0};
    for (int i = 0; i < 2; i++) {
        double mu = least + (i ? 5e-4 : -5e-4);
        us_pair_def pair = scene_pair(mu);
        built b = ball_on(scene_gravity(slope, 0), &pair, 1e-3, zero, zero);
        double a = acceleration(&b), slip = slip_of(&b);
        // Slipping, the centre gets g (sin - mu cos), the surface 5/2 mu g cos / r of spin: the slip grows by
        // g (sin - 7/2 mu cos) t, 25 mm/s in 1.5 s.
        printf("    mu %.4f: %.7f m/s^2, slip %.3e m/s\n", mu, a, slip);
        if (i)
            build_near("slip", slip, 0, 5e-5);
        else
            build_near("slip", slip, 1.5 * G * (sin(slope) - 3.5 * mu * cos(slope)), 5e-5);
        build_near("acceleration", a, i ? 2.3965840 : G * (sin(slope) - mu * cos(slope)), 5e-5);
        build_free(&b);
    }
}

// Thrown without spin at 5 m/s: slides with mu = 0.3 until the surface stands still, then rolls.
static void a_bowling_ball_rolls_after_its_slide(void **state) {
    (void)state;
    us_pair_def pair = scene_pair(0.3);
    const double h = 1e-4;
    built b = ball_on(us_vec3_make(0, 0, -G), &pair, h, us_vec3_make(5, 0, 0), us_vec3_make(0, 0, 0));
    // The slip falls on a straight line. Where that meets 0 the ball rolls.
    build_step(&b, 2000, NULL);
    double s1 = slip_of(&b);
    build_step(&b, 2000, NULL);
    double s2 = slip_of(&b), when = 0.4 + 0.2 * s2 / (s1 - s2);
    int64_t ticks = (int64_t)(when / h);
    build_step(&b, ticks - 4000, NULL);
    double rest = when - (double)ticks * h, x = scene_position(&b, 0).x + rest * scene_velocity(&b, 0).x;
    build_step(&b, 100, NULL);
    double v = scene_velocity(&b, 0).x;
    printf("    rolls after %.7f s, %.7f m, at %.7f m/s\n", when, x, v);
    // v = 5/7 v0 by the angular momentum about a line in the ground; the ball is pressed in by 1e-6 m: 1e-5.
    build_near("speed", v, 3.5714286, 5e-5);
    build_near("time", when, 0.4854133, 2e-5);
    // Semi-implicit: half a step of the change of speed, 0.7e-4 m.
    build_near("distance", x, 2.0803428, 2e-4);
    build_step(&b, 5000, NULL);
    build_near("rolls on", scene_velocity(&b, 0).x, v, 1e-5);
    build_free(&b);
}

static void a_ball_with_spin_about_every_axis_ends_rolling(void **state) {
    (void)state;
    us_pair_def pair = scene_pair(0.3);
    built b = ball_on(us_vec3_make(0, 0, -G), &pair, 1e-3, us_vec3_make(5, 0, 0), us_vec3_make(30, -20, 5));
    build_step(&b, 1500, NULL);
    us_vec3 v = scene_velocity(&b, 0), w = scene_spin(&b, 0);
    printf("    v (%.6f %.6f) m/s, slip (%.1e %.1e) m/s\n", v.x, v.y, v.x - R * w.y, v.y + R * w.x);
    // v + 2/5 r (w about the axis across it) is kept; the ball is pressed in by 1e-6 m of 0.1 m.
    build_near("v.x", v.x, (5 * 5 - 2 * R * 20) / 7, 5e-5);
    build_near("v.y", v.y, -2 * R * 30 / 7, 5e-5);
    // The spin about the vertical stays, and makes nothing slip.
    build_near("spin", w.z, 5, 1e-6);
    build_near("slip", hypot(v.x - R * w.y, v.y + R * w.x), 0, 5e-5);
    build_step(&b, 1000, NULL);
    build_near("straight", scene_velocity(&b, 0).y / scene_velocity(&b, 0).x, v.y / v.x, 1e-6);
    build_free(&b);
}

static void torsion_stops_a_spinning_ball(void **state) {
    (void)state;
    const double w0 = 10, patch = 3e-3;
    us_pair_def pair = scene_pair(0.5);
    for (int has_torsion = 0; has_torsion < 2; has_torsion++) {
        pair.values.torsion_radius = has_torsion ? patch : 0;
        built b = ball_on(us_vec3_make(0, 0, -G), &pair, 1e-3, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, w0));
        double stopped = 0;
        for (int i = 0; i < 6000 && stopped == 0; i++) {
            build_step(&b, 1, NULL);
            if (fabs(scene_spin(&b, 0).z) < 1e-2) stopped = us_sim_get_time(b.sim);
        }
        // I w / (2/3 mu r m g), to the 4 ms that the last 0.01 rad/s take.
        double right = 0.004 * w0 / (2.0 / 3 * 0.5 * patch * G);
        printf("    stopped at %.4f s, theory %.4f s; spin %.3e rad/s\n", stopped, right,
               scene_spin(&b, 0).z);
        if (has_torsion) {
            build_near("time", stopped, right, 6e-3);
            // The torsional spring, 20 N m/rad on 0.004 kg m^2, swings out first.
            build_step(&b, 8000, NULL);
            us_quat q = us_sim_get_pose(b.sim, (us_body){0}).q;
            build_step(&b, 10000, NULL);
            us_quat late = us_sim_get_pose(b.sim, (us_body){0}).q;
            // What is left is the anchored angle: it does not turn on. The balance is solved to 1e-6 of the
            // weight, which leaves the spring 1e-7 rad.
            us_quat turn = us_quat_mul(us_quat_conj(q), late);
            build_near("turns on", 2 * turn.z, 0, 3e-7);
            build_near("spin", scene_spin(&b, 0).z, 0, 1e-6);
        } else {
            build_near("spin", scene_spin(&b, 0).z, w0, 1e-9);
        }
        build_free(&b);
    }
}

static void rolling_resistance_stops_a_ball_at_the_right_distance(void **state) {
    (void)state;
    const double v0 = 0.5, lever = 1e-3;
    us_pair_def pair = scene_pair(0.5);
    pair.values.rolling_length = lever;
    built b =
        ball_on(us_vec3_make(0, 0, -G), &pair, 1e-3, us_vec3_make(v0, 0, 0), us_vec3_make(0, v0 / R, 0));
    build_step(&b, 3000, NULL);
    double slows = (v0 - scene_velocity(&b, 0).x) / 3, right = lever / R * G / 1.4;
    build_step(&b, 9000, NULL);
    us_vec3 p = scene_position(&b, 0);
    printf("    slows by %.6f m/s^2 (theory %.6f), stops after %.5f m (theory %.5f)\n", slows, right, p.x,
           v0 * v0 / (2 * right));
    // Torque b m g on I + m r^2 = 7/5 m r^2. The ball is pressed in by 1e-6 m of 0.1 m; the first steps let
    // it sink.
    build_near("deceleration", slows, right, 2e-4 * right);
    // Half a step of the speed (2.5e-4 m), and v0 / a times the first steps' change of speed.
    build_near("distance", p.x, v0 * v0 / (2 * right), 2e-3);
    // The spring of the rolling row, 20 N m/rad on 0.014 kg m^2, swings out first.
    build_step(&b, 10000, NULL);
    p = scene_position(&b, 0);
    build_step(&b, 10000, NULL);
    build_near("stands", scene_position(&b, 0).x, p.x,
               3e-8);  // the balance is solved to 1e-6 of the weight: 1e-7 rad of the spring, on 0.1 m
    build_free(&b);
}

// More balls than Newton's method takes on, in a box: swept, with rolling rows, and still as anchors make it.
static void a_heap_of_balls_with_rolling_friction_comes_to_rest_and_stays_there(void **state) {
    (void)state;
    enum { N = 48 };
    us_pair_def pair = scene_pair(0.4);
    pair.values.rolling_length = 5e-4;
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), 1e-3, &pair);
    scene_ground(spec);
    for (int i = 0; i < 4; i++) {
        double side = i & 1 ? 0.15 : -0.15;
        scene_add_box(spec, US_WORLD, i & 2 ? us_vec3_make(0.4, 0.1, 1) : us_vec3_make(0.1, 0.4, 1),
                      us_vec3_make(i & 2 ? 0 : side, i & 2 ? side : 0, 0.5));
    }
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "ball%d", i);
        // Layers of nine that do not stand on each other.
        int layer = i / 9, column = i % 3, row = i / 3 % 3;
        scene_start at = scene_at(0.06 * (column - 1) + 0.003 * (layer % 3),
                                  0.06 * (row - 1) - 0.004 * (layer % 2), 0.03 + 0.06 * layer);
        scene_ball(spec, name, 0.2, 0.02 + 0.002 * (i % 4), &at);
    }
    built b = build_sim(spec);
    build_step(&b, 5000, NULL);
    us_vec3 at[N];
    for (int i = 0; i < N; i++)
        at[i] = scene_position(&b, i);
    build_step(&b, 2000, NULL);
    double most = 0;
    for (int i = 0; i < N; i++)
        most = fmax(most, us_vec3_norm(us_vec3_sub(scene_position(&b, i), at[i])));
    printf("    %d contacts; moved %.2e m in 2 s\n", us_sim_n_contact(b.sim), most);
    assert_true(us_sim_n_contact(b.sim) > 2 * N);
    // Springs that have come to rest after five seconds, and rounding. Rows that began each step without
    // their torque would leave 1e-4.
    assert_true(most < 1e-9);
    build_free(&b);
}

// Nothing drives or brakes what rolls on level ground: points of contact that lag behind would push it on,
// points ahead would brake it.
static void what_rolls_slowly_goes_on_as_it_was(void **state) {
    (void)state;
    us_pair_def pair = scene_pair(0.5);
    for (int kind = 0; kind < 3; kind++) {
        static const us_shape_kind kinds[] = {US_SHAPE_SPHERE, US_SHAPE_CYLINDER, US_SHAPE_CAPSULE};
        us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -G), 1e-3, &pair);
        scene_ground(spec);
        const double speed = 3e-3;
        scene_start start = scene_at(0, 0, R);
        start.v.x = speed;
        start.w.y = speed / R;
        int32_t link = scene_float(spec, "roller", 1, us_vec3_make(4e-3, 4e-3, 4e-3), &start);
        us_shape_def shape = us_shape_def_default(kinds[kind]);
        shape.link = link;
        shape.size[0] = R;
        shape.size[1] = 0.2;
        shape.X_BG.q = (us_quat){sqrt(0.5), sqrt(0.5), 0, 0};
        assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
        built b = build_sim(spec);
        build_step(&b, 1000, NULL);
        double before = scene_velocity(&b, 0).x;
        const int64_t n_before = b.sim->contacts->n_iteration;
        build_step(&b, 20000, NULL);
        double after = scene_velocity(&b, 0).x;
        const int64_t n = b.sim->contacts->n_iteration - n_before;
        printf("    %-9s %.3e of its speed in 20 s, %d iterations\n", us_shape_kind_name(kinds[kind]),
               (after - before) / before, (int)n);
        // It has settled: velocities kept as soon as the tolerance allows would be found anew in every fourth
        // step or so for ever.
        assert_true(n <= 200);
        // Points found at the start of each step are right there; what is left is rounding and the balance's
        // tolerance.
        build_near("change of speed", (after - before) / before, 0, 1e-6);
        build_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ball_rolls_down_with_five_sevenths_of_gravity),
        cmocka_unit_test(a_ball_slips_when_friction_is_less_than_two_sevenths_of_the_slope),
        cmocka_unit_test(a_bowling_ball_rolls_after_its_slide),
        cmocka_unit_test(a_ball_with_spin_about_every_axis_ends_rolling),
        cmocka_unit_test(what_rolls_slowly_goes_on_as_it_was),
        cmocka_unit_test(torsion_stops_a_spinning_ball),
        cmocka_unit_test(rolling_resistance_stops_a_ball_at_the_right_distance),
        cmocka_unit_test(a_heap_of_balls_with_rolling_friction_comes_to_rest_and_stays_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

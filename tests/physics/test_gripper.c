// A six-axis arm swings a cube about that it holds between two fingers: scenes/gripper.xml, every joint on a
// sinusoid.
//
// How well a grasp holds is told by the metric of J. R. Taylor, Toward Consistent Robotics Simulation Through
// Validation (George Washington University, 2018), equation 1: the kinetic energy that would bring the cube
// back to where it was gripped within one step,
//
//     T = 1/2 m v.v + 1/2 w.J w,    v = (x* - x) / h + (x*' - x'),    w = 2 G (q* - q) / h + (w* - w)
//
// x*, q* and their rates being those of a cube that is welded to the finger. It is taken for both fingers and
// averaged. A cube that fell passes 1e7 J soon; at 1 kg and 1 ms, 1 J is 1.4 mm.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/sim.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_INSTRUMENTED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(IS_INSTRUMENTED)
static const double LONG = 20, SHORT = 12;  // s; an instrumented program is some twenty times slower
#else
static const double LONG = 100, SHORT = 20;
#endif

static const double PI = 3.14159265358979323846;
static const double STEP = 1e-3;
// The joints' motions repeat after this time: whatever the cube has moved in the hand from one period to the
// next is drift.
static const double PERIOD = 4;

// Amplitudes (rad) and how often each joint swings in a period: the forearm goes 75 degrees to both sides, no
// link meets another or the ground, and the cube feels up to 40 m/s^2.
static const double AMPLITUDE[6] = {1.2, 0.8, 0.7, 1.2, 0.9, 1.5};
static const double CYCLES[6] = {1, 1, 2, 2, 3, 3};

typedef struct world {
    us_model *model;
    us_sim *sim;
    us_body cube, finger[2];
    us_pose X_FC[2];  // of the cube in each finger when it was gripped
    int32_t drive[6];
} world;

static void must(us_status status, const us_error *err) {
    if (status) fail_msg("%s", err->message);
}

// The scene, with one of its texts replaced by another.
static world open_world(const char *old, const char *new) {
    static const char path[] = US_SOURCE_DIR "/scenes/gripper.xml";
    world w = {0};
    us_error err = {0};
    us_spec *spec = NULL;
    char text[16384], changed[20000];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_true(n > 0 && n < sizeof text - 1);
    text[n] = 0;
    char *at = strstr(text, old);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    must(us_spec_load_text(changed, strlen(changed), path, NULL, &spec, &err), &err);
    must(us_model_compile(spec, NULL, &w.model, &err), &err);
    us_spec_destroy(spec);
    must(us_sim_create(w.model, NULL, &w.sim, &err), &err);
    w.cube = us_model_find_body(w.model, "cube/cube");
    w.finger[0] = us_model_find_body(w.model, "arm/left_finger");
    w.finger[1] = us_model_find_body(w.model, "arm/right_finger");
    assert_true(w.cube.i >= 0 && w.finger[0].i >= 0 && w.finger[1].i >= 0);
    for (int k = 0; k < 2; k++)
        w.X_FC[k] =
            us_pose_mul(us_pose_inverse(us_sim_get_pose(w.sim, w.finger[k])), us_sim_get_pose(w.sim, w.cube));
    for (int k = 0; k < 6; k++) {
        char name[32];
        snprintf(name, sizeof name, "arm/joint%d", k + 1);
        w.drive[k] = us_model_find_drive(w.model, name).i;
        assert_true(w.drive[k] >= 0);
    }
    assert_int_equal(us_model_get_counts(w.model).n_drive, 8);
    return w;
}

static void close_world(world *w) {
    us_sim_destroy(w->sim);
    us_model_destroy(w->model);
}

// The drives' command for the end of the next step. The swing grows during the first period and is the same
// in every later one.
static void step(world *w) {
    double q[8] = {0}, v[8] = {0}, t = us_sim_get_time(w->sim) + STEP, x = fmin(t / PERIOD, 1);
    double grown = x * x * (3 - 2 * x), growth = x < 1 ? 6 * x * (1 - x) / PERIOD : 0;
    for (int k = 0; k < 6; k++) {
        double rate = 2 * PI * CYCLES[k] / PERIOD, s = sin(rate * t), c = cos(rate * t);
        q[w->drive[k]] = grown * AMPLITUDE[k] * s;
        v[w->drive[k]] = AMPLITUDE[k] * (growth * s + grown * rate * c);
    }
    us_command command = {.drive_position = q, .drive_velocity = v};
    if (us_sim_step(w->sim, &command)) fail_msg("t = %g s: %s", t, us_sim_view_error(w->sim)->message);
}

static double metric(world *w) {
    us_pose X_WC = us_sim_get_pose(w->sim, w->cube);
    us_twist V_C = us_sim_get_twist(w->sim, w->cube);
    double mean = 0;
    for (int k = 0; k < 2; k++) {
        us_pose X_WF = us_sim_get_pose(w->sim, w->finger[k]), wanted = us_pose_mul(X_WF, w->X_FC[k]);
        us_twist V_F = us_sim_get_twist(w->sim, w->finger[k]);
        us_vec3 rate = us_vec3_add(V_F.v, us_vec3_cross(V_F.w, us_vec3_sub(wanted.p, X_WF.p)));
        us_vec3 v =
            us_vec3_add(us_vec3_scale(1 / STEP, us_vec3_sub(wanted.p, X_WC.p)), us_vec3_sub(rate, V_C.v));
        // 2 G (q* - q): twice the vector part of (q* - q) q^-1, q and -q being the same orientation.
        us_quat turn = us_quat_mul(wanted.q, us_quat_conj(X_WC.q));
        double sign = turn.w < 0 ? -2 : 2;
        us_vec3 omega = us_vec3_add(us_vec3_scale(sign / STEP, us_vec3_make(turn.x, turn.y, turn.z)),
                                    us_vec3_sub(V_F.w, V_C.w));
        // 1 kg; a cube of 0.1 m has the moment m a^2 / 6 about every axis.
        mean += 0.5 * (0.5 * us_vec3_dot(v, v) + 0.5 * (0.01 / 6) * us_vec3_dot(omega, omega));
    }
    return mean;
}

typedef struct report {
    double most, mean, last;  // J: the metric
    double drift, turn;  // m, rad: in the hand, from the end of the second period to the end of the last one
    double accel;        // m/s^2, greatest of the cube
} report;

static report swing(world *w, double seconds) {
    report r = {0};
    int64_t n = llround(seconds / STEP), n_sample = 0;
    us_pose before = us_pose_identity();
    us_vec3 v = {0};
    for (int64_t i = 1; i <= n; i++) {
        step(w);
        if (i % 10 == 0) {
            double T = metric(w);
            us_vec3 now = us_sim_get_twist(w->sim, w->cube).v;
            r.most = fmax(r.most, T);
            r.mean += T;
            r.last = T;
            n_sample++;
            if (i > 1000) r.accel = fmax(r.accel, us_vec3_norm(us_vec3_sub(now, v)) / (10 * STEP));
            v = now;
        }
        us_pose X_FC = us_pose_mul(us_pose_inverse(us_sim_get_pose(w->sim, w->finger[0])),
                                   us_sim_get_pose(w->sim, w->cube));
        if (i == llround(2 * PERIOD / STEP) || i == n - n % llround(PERIOD / STEP)) {
            us_quat turn = us_quat_mul(us_quat_conj(before.q), X_FC.q);
            r.drift = us_vec3_norm(us_vec3_sub(X_FC.p, before.p));
            r.turn = 2 * us_vec3_norm(us_vec3_make(turn.x, turn.y, turn.z));
            before = X_FC;
        }
    }
    r.mean /= (double)n_sample;
    return r;
}

static void print_report(const char *what, double seconds, const report *r) {
    printf("  %s, %g s: metric greatest %.3g J, mean %.3g J, last %.3g J; ", what, seconds, r->most, r->mean,
           r->last);
    printf("drift %.2g m, %.2g rad; up to %.1f m/s^2\n", r->drift, r->turn, r->accel);
}

// At 1 kg and 1 ms. The cube moves on chords and the hand on arcs, so that from step to step they differ in
// velocity by about h a, 0.05 m/s at the greatest acceleration, and in place by h times that: 1.3e-3 J. Five
// times as much is allowed.
static const double MAX_METRIC = 6e-3;  // J
// Friction that only knows velocities would let the cube creep by centimetres in a second. What is left is
// the change of the spring's stretch where contact points change their place, some nanometres.
static const double MAX_DRIFT = 1e-7;  // m, and rad over the cube's 0.1 m

static void hold_and_check(const char *what, const char *old, const char *new, double seconds) {
    world w = open_world(old, new);
    report r = swing(&w, seconds);
    print_report(what, seconds, &r);
    assert_true(r.most < MAX_METRIC);
    assert_true(r.drift < MAX_DRIFT);
    assert_true(r.turn * 0.1 < MAX_DRIFT);
    assert_true(r.accel > 20);  // it was no easy swing
    close_world(&w);
}

static const char BOX[] = "type=\"box\" size=\"0.1 0.1 0.1\"";

static void a_cube_is_held_while_every_joint_swings(void **state) {
    (void)state;
    hold_and_check("box", BOX, BOX, LONG);
}

static void a_cube_of_eight_points_is_held_as_well(void **state) {
    (void)state;
    hold_and_check(
        "convex", BOX,
        "type=\"convex\" points=\"-0.05 -0.05 -0.05 0.05 -0.05 -0.05 -0.05 0.05 -0.05 0.05 0.05 -0.05 "
        "-0.05 -0.05 0.05 0.05 -0.05 0.05 -0.05 0.05 0.05 0.05 0.05 0.05\"",
        SHORT);
}

// 3 N on both sides carry 5.4 N at most: the cube weighs 9.81 N.
static void a_hand_without_strength_loses_the_cube(void **state) {
    (void)state;
    world w = open_world("value=\"100 N\"", "value=\"3 N\"");
    report r = swing(&w, SHORT);
    print_report("weak hand", SHORT, &r);
    assert_true(r.last > 1e7);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cube_is_held_while_every_joint_swings),
        cmocka_unit_test(a_cube_of_eight_points_is_held_as_well),
        cmocka_unit_test(a_hand_without_strength_loses_the_cube),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

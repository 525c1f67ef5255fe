// The firmware without any simulation: the body of these tests does at once what its drives are commanded.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/firmware.h"

// A rover on four wheels that do not steer, with an arm of one joint and a gripper that takes torques alone.
enum { N_WHEEL = 4, ARM = 4, GRIPPER = 5, N_JOINT = 6 };

static const double STEP = 1e-3, RADIUS = 0.2;

static const usi_firmware_joint joints[N_JOINT] = {
    {"front_left", 0, -INFINITY, INFINITY, 20},
    {"front_right", 1, -INFINITY, INFINITY, 20},
    {"rear_left", 2, -INFINITY, INFINITY, 20},
    {"rear_right", 3, -INFINITY, INFINITY, 20},
    {"arm", 4, -1, 2, 3},
    {"gripper", 5, -INFINITY, INFINITY, 0},
};
static const usi_firmware_drive drives[N_JOINT] = {
    {0, USI_DRIVE_BY_VELOCITY, 10}, {1, USI_DRIVE_BY_VELOCITY, 10},   {2, USI_DRIVE_BY_VELOCITY, 10},
    {3, USI_DRIVE_BY_VELOCITY, 10}, {ARM, USI_DRIVE_BY_POSITION, 10}, {GRIPPER, USI_DRIVE_BY_TORQUE, 10},
};

typedef struct rover {
    usi_firmware fw;
    usi_firmware_state *s;
    double q[N_JOINT], v[N_JOINT];
    usi_firmware_readings in;
    usi_firmware_output output[N_JOINT];
    usi_firmware_request request;
} rover;

static void rover_init(rover *r) {
    memset(r, 0, sizeof *r);
    r->fw = (usi_firmware){.step = STEP, .timeout = 0.5, .max_speed = 1, .max_turn = 2};
    r->fw.joint = joints;
    r->fw.drive = drives;
    r->fw.n_joint = r->fw.n_drive = N_JOINT;
    r->fw.locomotion = (usi_locomotion){.kind = USI_LOCOMOTION_SKID, .n_wheel = N_WHEEL, .track_scale = 1};
    for (int i = 0; i < N_WHEEL; i++) {
        r->fw.locomotion.wheel[i] = (usi_loco_wheel){
            .x = i < 2 ? 0.4 : -0.4, .y = i % 2 ? -0.3 : 0.3, .radius = RADIUS, .sign = 1, .steer_sign = 1};
        r->fw.wheel_joint[i] = i;
        r->fw.steer_joint[i] = -1;
    }
    usi_firmware_lay_out(&r->fw);
    r->s = calloc(1, r->fw.state_size);
    assert_non_null(r->s);
    r->in = (usi_firmware_readings){.q = r->q, .v = r->v, .is_powered = true, .is_running = true};
    r->request = (usi_firmware_request){.fw = &r->fw, .s = r->s, .in = &r->in};
    usi_firmware_start(&r->fw, r->s, &r->in);
}

static void rover_fini(rover *r) { free(r->s); }

// The body: joints with a velocity drive turn as fast as commanded, the arm is where it is commanded.
static void run(rover *r, int n) {
    for (int k = 0; k < n; k++) {
        usi_firmware_step(&r->fw, r->s, &r->in, r->output);
        for (int i = 0; i < N_JOINT; i++) {
            const usi_firmware_output *o = &r->output[i];
            double before = r->q[i];
            if (!o->is_enabled || drives[i].kind == USI_DRIVE_BY_TORQUE) {
                r->v[i] = 0;
                continue;
            }
            r->q[i] = drives[i].kind == USI_DRIVE_BY_POSITION ? o->position : r->q[i] + o->velocity * STEP;
            r->v[i] = (r->q[i] - before) / STEP;
        }
        r->in.tick++;
    }
}

static void near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g instead of %.17g, tolerance %.3g", value, expected, tolerance);
}

static void accepted(const rover *r, bool is_accepted) {
    if (!is_accepted) fail_msg("refused: %s", r->request.why);
}

static void refused(const rover *r, bool is_accepted, const char *why) {
    if (is_accepted) fail_msg("accepted rather than refused: %s", why);
    if (!strstr(r->request.why, why)) fail_msg("\"%s\" rather than \"%s\"", r->request.why, why);
}

// ---------------------------------------------------------------- the body's motion

static void a_body_velocity_reaches_the_wheels_and_comes_back_as_odometry(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double body[3] = {0.4, 0, 0.2};
    accepted(&r, usi_firmware_drive_velocity(&r.request, body));
    run(&r, 401);
    // A wheel's goal is one tick ahead of where it is; that is made up for with 10/s, so that after 0.4 s the
    // speed has 2 % of a hundredth too much, and the distance is one tick's longer.
    near(r.output[0].velocity, (0.4 - 0.2 * 0.3) / RADIUS, 1e-3);
    near(r.output[1].velocity, (0.4 + 0.2 * 0.3) / RADIUS, 1e-3);
    near(r.s->odom_v[0], 0.4, 1e-3);
    // 0.401 s on a circle of 2 m.
    near(r.s->odom[0], 2 * sin(0.0802), 2e-5);
    near(r.s->odom[1], 2 * (1 - cos(0.0802)), 2e-5);
    near(r.s->odom[2], 0.0802, 2e-5);
    rover_fini(&r);
}

static void a_velocity_that_is_not_renewed_ends_in_a_safe_stop(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double body[3] = {0.5, 0, 0};
    accepted(&r, usi_firmware_drive_velocity(&r.request, body));
    run(&r, 501);
    assert_int_equal(r.s->motion, USI_MOTION_TWIST);
    run(&r, 1);
    assert_int_equal(r.s->motion, USI_MOTION_STOP);
    assert_int_equal(r.s->n_timeout, 1);
    // The wheels go back the tick that they were ahead, within some 0.1 s.
    run(&r, 2000);
    near(r.output[0].velocity, 0, 1e-9);
    // Renewed in time it goes on.
    for (int i = 0; i < 5; i++) {
        accepted(&r, usi_firmware_drive_velocity(&r.request, body));
        run(&r, 400);
    }
    assert_int_equal(r.s->motion, USI_MOTION_TWIST);
    assert_int_equal(r.s->n_timeout, 1);
    rover_fini(&r);
}

static void the_acceleration_is_limited_where_the_settings_say_so(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    r.fw.max_acceleration = 0.5;
    const double body[3] = {0.4, 0, 0};
    accepted(&r, usi_firmware_drive_velocity(&r.request, body));
    run(&r, 400);
    near(r.s->now[0], 0.2, 1e-9);
    accepted(&r, usi_firmware_drive_velocity(&r.request, body));
    run(&r, 400);
    near(r.s->now[0], 0.4, 1e-9);
    rover_fini(&r);
}

static void arcs_and_rotations_end_where_they_should(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    accepted(&r, usi_firmware_drive_arc(&r.request, -1, 0.5, 0.5));
    r.s->locomotor.state = US_ROVER_MOVING;
    run(&r, 4000);
    // Backwards over a metre of a circle of 2 m; it creeps the last bit at 1 cm/s and stops within 0.1 mm.
    assert_int_equal(r.s->locomotor.state, US_ROVER_DONE);
    near(r.s->odom[0], -2 * sin(0.5), 2e-4);
    near(r.s->odom[2], -0.5, 2e-4);
    accepted(&r, usi_firmware_rotate(&r.request, 1, 0.5));
    run(&r, 4000);
    near(r.s->odom[2], 0.5, 2e-4);
    assert_int_equal(r.s->motion, USI_MOTION_STOP);
    rover_fini(&r);
}

static void a_route_is_followed_from_where_the_estimator_has_the_robot(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double pose[3] = {10, 5, 0};
    const double points[3][2] = {{9, 5}, {11, 5}, {12, 6}};
    usi_firmware_set_pose(&r.request, pose);
    // From the second point on: the first lies behind.
    accepted(&r, usi_firmware_navigate(&r.request, points, 3, 1, 0.5, 0.05));
    r.s->navigator.state = US_ROVER_MOVING;
    run(&r, 8000);
    assert_int_equal(r.s->navigator.state, US_ROVER_DONE);
    // The tolerance, and the tick that the wheels go back.
    near(hypot(r.s->odom[0] - 2, r.s->odom[1] - 1), 0, 0.051);
    rover_fini(&r);
}

// How far it has gone since its pose was set is what that pose's covariance follows from.
static void the_way_is_counted_until_a_pose_is_set(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double there[1][2] = {{2, 0}}, back[1][2] = {{1, 0}}, pose[3] = {10, 5, 0};
    accepted(&r, usi_firmware_navigate(&r.request, there, 1, 0, 0.5, 0.05));
    r.s->navigator.state = US_ROVER_MOVING;
    run(&r, 6000);
    near(r.s->way, 2, 0.06);
    assert_true(r.s->turned < 0.1);
    accepted(&r, usi_firmware_navigate(&r.request, back, 1, 0, 0.5, 0.05));
    r.s->navigator.state = US_ROVER_MOVING;
    run(&r, 12000);
    // It turns while it drives.
    assert_true(r.s->way > 2.9 && r.s->way < 5);
    assert_true(r.s->turned > 2.9);
    usi_firmware_set_pose(&r.request, pose);
    assert_true(r.s->way == 0 && r.s->turned == 0);
    rover_fini(&r);
}

// ---------------------------------------------------------------- drives one by one

static void a_profile_arrives_and_a_stop_holds(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const usi_drive_command profile = {
        .drive = ARM, .mode = USI_DRIVE_PROFILE, .value = 1, .acceleration = 2, .velocity = 1};
    accepted(&r, usi_firmware_command_drives(&r.request, &profile, 1));
    run(&r, 750);
    // Half of 1.5 s: half of the way.
    near(r.q[ARM], 0.5, 1e-9);
    run(&r, 750);
    near(r.q[ARM], 1, 1e-12);
    accepted(&r, usi_firmware_stop(&r.request));
    run(&r, 100);
    near(r.q[ARM], 1, 1e-12);
    rover_fini(&r);
}

static void a_trajectory_passes_its_points(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double first[1] = {0.5}, second[1] = {-0.5}, still[1] = {0};
    const int32_t arm = ARM;
    // A straight line, then a cubic from rest to rest.
    const usi_trajectory_point points[] = {{0.2, first, NULL}, {0.4, first, still}, {1.4, second, still}};
    const usi_trajectory trajectory = {1, 3, &arm, points};
    accepted(&r, usi_firmware_follow(&r.request, &trajectory));
    run(&r, 100);
    near(r.q[ARM], 0.25, 1e-9);
    run(&r, 100);
    near(r.q[ARM], 0.5, 1e-9);
    run(&r, 700);
    near(r.q[ARM], 0, 1e-9);
    near(r.v[ARM], -1.5, 1e-3);
    run(&r, 600);
    near(r.q[ARM], -0.5, 1e-9);
    rover_fini(&r);
}

static void a_torque_or_velocity_that_is_not_renewed_ends_unless_it_lasts(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const usi_drive_command commands[] = {
        {.drive = GRIPPER, .mode = USI_DRIVE_TORQUE, .value = 3},
        {.drive = 0, .mode = USI_DRIVE_VELOCITY, .value = 2, .is_lasting = true},
    };
    accepted(&r, usi_firmware_command_drives(&r.request, commands, 2));
    run(&r, 501);
    near(r.output[GRIPPER].torque, 3, 0);
    run(&r, 1);
    near(r.output[GRIPPER].torque, 0, 0);
    near(r.output[0].velocity, 2, 0);
    assert_int_equal(r.s->n_timeout, 1);
    rover_fini(&r);
}

static void a_refused_command_changes_nothing(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double body[3] = {0.4, 0, 0.2}, fast[3] = {1.1, 0, 0}, side[3] = {0.1, 0.1, 0},
                 bad[3] = {NAN, 0, 0};
    accepted(&r, usi_firmware_drive_velocity(&r.request, body));
    run(&r, 100);
    void *before = malloc(r.fw.state_size);
    memcpy(before, r.s, r.fw.state_size);
    refused(&r, usi_firmware_drive_velocity(&r.request, fast), "speed 1.1 m/s is beyond the limit of 1 m/s");
    refused(&r, usi_firmware_drive_velocity(&r.request, side), "cannot move sideways");
    refused(&r, usi_firmware_drive_velocity(&r.request, bad), "not a finite number");
    refused(&r, usi_firmware_drive_arc(&r.request, 1, 0, 0), "a speed other than 0");
    refused(&r, usi_firmware_rotate(&r.request, 1, 2.1), "turn rate 2.1 rad/s is beyond");
    refused(&r, usi_firmware_navigate(&r.request, (const double(*)[2])body, 1, 0, 0, 1), "must be above 0");
    refused(&r, usi_firmware_navigate(&r.request, (const double(*)[2])body, 0, 0, 1, 1), "0 points");
    // One bad command among good ones.
    usi_drive_command commands[] = {{.drive = 0, .mode = USI_DRIVE_VELOCITY, .value = 1},
                                    {.drive = ARM, .mode = USI_DRIVE_POSITION, .value = 2.1}};
    refused(&r, usi_firmware_command_drives(&r.request, commands, 2), "beyond its limits -1 .. 2");
    commands[1] = (usi_drive_command){.drive = GRIPPER, .mode = USI_DRIVE_POSITION, .value = 0};
    refused(&r, usi_firmware_command_drives(&r.request, commands, 2), "it takes torques only");
    commands[1] = (usi_drive_command){.drive = 1, .mode = USI_DRIVE_VELOCITY, .value = 21};
    refused(&r, usi_firmware_command_drives(&r.request, commands, 2), "beyond its limit of 20");
    commands[1] = (usi_drive_command){.drive = ARM, .mode = USI_DRIVE_PROFILE, .value = 1, .velocity = 1};
    refused(&r, usi_firmware_command_drives(&r.request, commands, 2), "must be above 0");
    const int32_t twice[2] = {ARM, ARM};
    const double zero[2] = {0, 0};
    const usi_trajectory_point points[] = {{1, zero, NULL}, {1, zero, NULL}};
    refused(&r, usi_firmware_follow(&r.request, &(usi_trajectory){2, 1, twice, points}),
            "\"arm\" is named twice");
    refused(&r, usi_firmware_follow(&r.request, &(usi_trajectory){1, 2, twice, points}), "time of point 1");
    refused(&r, usi_firmware_follow(&r.request, &(usi_trajectory){1, 0, twice, points}), "is empty");
    assert_memory_equal(before, r.s, r.fw.state_size);
    free(before);
    rover_fini(&r);
}

// ---------------------------------------------------------------- power, memory, bytes

static void without_power_drives_are_off_and_then_hold_where_they_are(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const usi_drive_command arm = {.drive = ARM, .mode = USI_DRIVE_POSITION, .value = 1};
    accepted(&r, usi_firmware_command_drives(&r.request, &arm, 1));
    run(&r, 1);
    assert_true(r.output[ARM].is_enabled);
    r.in.is_powered = r.in.is_running = false;
    usi_firmware_forget(&r.fw, r.s, &r.in);
    run(&r, 10);
    assert_false(r.output[ARM].is_enabled);
    // It sank meanwhile.
    r.q[ARM] = 0.3;
    run(&r, 1);
    r.in.is_powered = true;
    run(&r, 10);
    assert_true(r.output[ARM].is_enabled);
    near(r.output[ARM].position, 0.3, 0);
    // Drives that are let go while the computer starts have no torque until it runs.
    r.fw.releases_drives = true;
    run(&r, 1);
    assert_false(r.output[ARM].is_enabled);
    r.in.is_running = true;
    usi_firmware_restart(&r.fw, r.s, &r.in);
    run(&r, 1);
    assert_true(r.output[ARM].is_enabled);
    // One that a command has switched off stays off.
    usi_firmware_switch_drive(&r.request, ARM, false);
    run(&r, 1);
    assert_false(r.output[ARM].is_enabled);
    assert_true(r.output[0].is_enabled);
    rover_fini(&r);
}

static void a_restart_loses_odometry_and_commands_and_rolls_nowhere(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double body[3] = {0.4, 0, 0};
    accepted(&r, usi_firmware_drive_velocity(&r.request, body));
    run(&r, 300);
    assert_true(r.s->odom[0] > 0.1);
    double wheel = r.q[0];
    usi_firmware_forget(&r.fw, r.s, &r.in);
    r.in.is_running = false;
    run(&r, 100);
    r.in.is_running = true;
    usi_firmware_restart(&r.fw, r.s, &r.in);
    run(&r, 500);
    near(r.s->odom[0], 0, 1e-12);
    near(r.q[0], wheel, 1e-12);
    rover_fini(&r);
}

static void the_state_is_bytes_that_go_on_elsewhere(void **state) {
    (void)state;
    rover a, b;
    rover_init(&a);
    rover_init(&b);
    const double points[2][2] = {{1, 0.2}, {2, -0.5}};
    accepted(&a, usi_firmware_navigate(&a.request, points, 2, 0, 0.6, 0.05));
    run(&a, 700);
    memcpy(b.s, a.s, a.fw.state_size);
    memcpy(b.q, a.q, sizeof a.q);
    memcpy(b.v, a.v, sizeof a.v);
    memcpy(b.output, a.output, sizeof a.output);
    b.in.tick = a.in.tick;
    run(&a, 2000);
    run(&b, 2000);
    assert_memory_equal(a.s, b.s, a.fw.state_size);
    assert_memory_equal(a.q, b.q, sizeof a.q);
    rover_fini(&a);
    rover_fini(&b);
}

// ---------------------------------------------------------------- motions with an end

static double distance_to(const rover *r, double x, double y) {
    double pose[3];
    usi_firmware_pose(r->s, pose);
    return hypot(pose[0] - x, pose[1] - y);
}

// Places all round: ahead, to the sides, behind, near and far.
static void a_place_is_reached_within_its_tolerance(void **state) {
    (void)state;
    for (int i = 0; i < 40; i++) {
        rover r;
        rover_init(&r);
        const double angle = 2 * 3.14159265358979 * i / 40, far = 0.3 + 0.1 * i,
                     goal[1][2] = {{far * cos(angle), far * sin(angle)}};
        accepted(&r, usi_firmware_navigate(&r.request, goal, 1, 0, 0.5, 0.05));
        r.s->mobility.state = US_ROVER_MOVING;
        usi_firmware_limit_time(&r.request, 60);
        near(usi_firmware_left(r.s), far, 1e-12);
        while (r.s->mobility.state == US_ROVER_MOVING && r.in.tick < 70000)
            run(&r, 1);
        if (r.s->mobility.state != US_ROVER_DONE) fail_msg("place %d: state %d", i, (int)r.s->mobility.state);
        assert_int_equal(r.s->mobility.error, US_ROVER_FINE);
        // It stops where it came within the tolerance; what it rolls on is less than a tick's way.
        run(&r, 500);
        near(distance_to(&r, goal[0][0], goal[0][1]), 0.05, 2e-3);
        // What a wheel is behind, at most 1 mm/s, is made up for with 10/s: e^-5 of it is left.
        near(r.s->odom_v[0], 0, 1e-4);
        near(usi_firmware_left(r.s), 0, 0);
        rover_fini(&r);
    }
}

static void a_route_may_end_with_a_heading(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double goals[2][2] = {{1, 0}, {1, 1}};
    accepted(&r, usi_firmware_navigate(&r.request, goals, 2, 0, 0.5, 0.05));
    accepted(&r, usi_firmware_end_with_heading(&r.request, -3));
    r.s->function_run.state = US_ROVER_MOVING;
    while (r.s->function_run.state == US_ROVER_MOVING && r.in.tick < 60000)
        run(&r, 1);
    assert_int_equal(r.s->function_run.state, US_ROVER_DONE);
    double pose[3];
    usi_firmware_pose(r.s, pose);
    // A turn is done when 0.1 mrad are left.
    near(remainder(pose[2] + 3, 2 * 3.14159265358979), 0, 2e-4);
    near(distance_to(&r, 1, 1), 0.05, 2e-3);
    rover_fini(&r);
}

static void a_motion_that_takes_too_long_fails_with_a_time_out(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double goal[1][2] = {{10, 0}};
    accepted(&r, usi_firmware_navigate(&r.request, goal, 1, 0, 0.5, 0.05));
    r.s->navigator.state = US_ROVER_MOVING;
    usi_firmware_limit_time(&r.request, 2);
    run(&r, 2000);
    assert_int_equal(r.s->navigator.state, US_ROVER_MOVING);
    run(&r, 2);
    assert_int_equal(r.s->navigator.state, US_ROVER_FAILED);
    assert_int_equal(r.s->navigator.error, US_ROVER_TIMEOUT);
    assert_int_equal(r.s->motion, USI_MOTION_STOP);
    assert_int_equal(r.s->n_timeout, 1);
    run(&r, 2000);
    near(r.s->odom_v[0], 0, 1e-9);
    // The time of one motion is not that of the next.
    accepted(&r, usi_firmware_drive_arc(&r.request, 3, 0, 0.5));
    r.s->locomotor.state = US_ROVER_MOVING;
    while (r.s->locomotor.state == US_ROVER_MOVING && r.in.tick < 60000)
        run(&r, 1);
    assert_int_equal(r.s->locomotor.state, US_ROVER_DONE);
    rover_fini(&r);
}

static void a_motion_is_interrupted_by_another_and_fails_without_its_motors(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double goal[1][2] = {{10, 0}}, still[3] = {0, 0, 0};
    accepted(&r, usi_firmware_navigate(&r.request, goal, 1, 0, 0.5, 0.05));
    r.s->mobility.state = US_ROVER_MOVING;
    run(&r, 100);
    accepted(&r, usi_firmware_drive_velocity(&r.request, still));
    assert_int_equal(r.s->mobility.state, US_ROVER_STOPPED);
    assert_int_equal(r.s->mobility.error, US_ROVER_INTERRUPTED);

    accepted(&r, usi_firmware_navigate(&r.request, goal, 1, 0, 0.5, 0.05));
    r.s->mobility = (usi_service_state){.state = US_ROVER_MOVING};
    run(&r, 100);
    usi_firmware_switch_drive(&r.request, ARM, false);  // no part of locomotion
    run(&r, 100);
    assert_int_equal(r.s->mobility.state, US_ROVER_MOVING);
    usi_firmware_switch_drive(&r.request, 2, false);
    run(&r, 2);
    assert_int_equal(r.s->mobility.state, US_ROVER_FAILED);
    assert_int_equal(r.s->mobility.error, US_ROVER_FAILURE);
    assert_non_null(strstr(r.s->mobility.message, "rear_left"));
    rover_fini(&r);
}

static void a_refusal_has_its_kind(void **state) {
    (void)state;
    rover r;
    rover_init(&r);
    const double sideways[3] = {0, 0.1, 0}, fast[3] = {3, 0, 0};
    refused(&r, usi_firmware_drive_velocity(&r.request, sideways), "sideways");
    assert_int_equal(r.request.error, US_ROVER_NOT_SUPPORTED);
    refused(&r, usi_firmware_drive_velocity(&r.request, fast), "beyond the limit");
    assert_int_equal(r.request.error, US_ROVER_BAD_VALUE);
    refused(&r, usi_firmware_set_gait(&r.request, USI_GAIT_WAVE, 0), "no legs");
    assert_int_equal(r.request.error, US_ROVER_NOT_SUPPORTED);
    refused(&r, usi_firmware_end_with_heading(&r.request, NAN), "finite");
    rover_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_reached_within_its_tolerance),
        cmocka_unit_test(a_route_may_end_with_a_heading),
        cmocka_unit_test(a_motion_that_takes_too_long_fails_with_a_time_out),
        cmocka_unit_test(a_motion_is_interrupted_by_another_and_fails_without_its_motors),
        cmocka_unit_test(a_refusal_has_its_kind),
        cmocka_unit_test(a_body_velocity_reaches_the_wheels_and_comes_back_as_odometry),
        cmocka_unit_test(a_velocity_that_is_not_renewed_ends_in_a_safe_stop),
        cmocka_unit_test(the_acceleration_is_limited_where_the_settings_say_so),
        cmocka_unit_test(arcs_and_rotations_end_where_they_should),
        cmocka_unit_test(a_route_is_followed_from_where_the_estimator_has_the_robot),
        cmocka_unit_test(the_way_is_counted_until_a_pose_is_set),
        cmocka_unit_test(a_profile_arrives_and_a_stop_holds),
        cmocka_unit_test(a_trajectory_passes_its_points),
        cmocka_unit_test(a_torque_or_velocity_that_is_not_renewed_ends_unless_it_lasts),
        cmocka_unit_test(a_refused_command_changes_nothing),
        cmocka_unit_test(without_power_drives_are_off_and_then_hold_where_they_are),
        cmocka_unit_test(a_restart_loses_odometry_and_commands_and_rolls_nowhere),
        cmocka_unit_test(the_state_is_bytes_that_go_on_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

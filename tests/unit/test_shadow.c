// Hardware and proxy side by side, both made up: two rovers on the same commands, one of them far away behind
// a bad link, with a clock of its own.
//
// What is tested is what an operator cares for: no alarm in ten minutes of honest driving, and with a fault
// the name of what is wrong.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "switch/shadow.h"

enum { N_WHEEL = 4, N_JOINT = 8, MAX_LETTER = 512, MAX_COMMAND = 64 };

static const double dt = 0.01;
static const double wheel_x[N_WHEEL] = {0.4, 0.4, -0.4, -0.4}, wheel_y[N_WHEEL] = {0.36, -0.36, 0.36, -0.36},
                    radius = 0.18;
static const char *const names[N_JOINT] = {"front_left_drive", "front_right_drive", "rear_left_drive",
                                           "rear_right_drive", "front_left_steer",  "front_right_steer",
                                           "rear_left_steer",  "rear_right_steer"};

typedef enum fault {
    NO_FAULT,
    SMALL_WHEELS,
    SMALL_WHEELS_UNSEEN,
    DEAD_MOTOR,
    STUCK_ENCODER,
    GYRO_BIAS
} fault;

// A message on its way.
typedef struct letter {
    double due;
    usi_estimate_group group;
    int64_t stamp;
    double values[2 * N_JOINT];
} letter;

typedef struct command {
    double due, v, w;
} command;

typedef struct robot {
    uint64_t stream, n_draw;
    double delay, jitter, loss, noise;  // of the link, each way, s; share; factor
    int64_t clock_offset;               // ns
    double clock_drift;
    double steering;  // s: time constant
    fault fault;
    double fault_time;
    command commands[MAX_COMMAND];
    int n_command;
    letter letters[MAX_LETTER];
    int first_letter, n_letter;
    double last_due, last_command_due;
    double want[2], now[2];   // v, w
    double pose[3], odom[3];  // what is, and what it counts
    double odom_v[2], gyro, accelerometer;
    double q[N_JOINT], v[N_JOINT];
    usi_estimate e;
} robot;

typedef struct world {
    usi_shadow shadow;
    robot robots[2];
    double time;
    int64_t clock0;
    int64_t n_step, n_not_ok;
    double least;  // confidence
} world;

static uint64_t seed = 9;  // of the route and of everything random on it

static double uniform(robot *r) { return us_random_uniform(seed + 100, r->stream, r->n_draw++); }
static double normal(robot *r) { return us_random_normal(seed + 100, r->stream, r->n_draw++); }

// ---- a rover ----

static void hear_command(robot *r, double time, double v, double w) {
    if (uniform(r) < r->loss || r->n_command == MAX_COMMAND) return;
    double due = fmax(r->last_command_due, time + r->delay + r->jitter * uniform(r));
    r->last_command_due = due;
    r->commands[r->n_command++] = (command){due, v, w};
}

static void obey(robot *r, double time) {
    int n = 0;
    while (n < r->n_command && r->commands[n].due <= time) {
        r->want[0] = r->commands[n].v;
        r->want[1] = r->commands[n].w;
        n++;
    }
    memmove(r->commands, r->commands + n, (size_t)(r->n_command - n) * sizeof *r->commands);
    r->n_command -= n;
}

static void drive(robot *r, double time) {
    bool has_fault = r->fault != NO_FAULT && time >= r->fault_time;
    double before = r->now[0], scale = 1;
    for (int k = 0; k < 2; k++)
        r->now[k] += fmax(-dt, fmin(dt, r->want[k] - r->now[k]));  // 1 m/s^2, 1 rad/s^2
    if (has_fault && (r->fault == SMALL_WHEELS || r->fault == SMALL_WHEELS_UNSEEN)) scale = 0.97;
    for (int i = 0; i < N_WHEEL; i++) {
        double vx = r->now[0] - r->now[1] * wheel_y[i], vy = r->now[1] * wheel_x[i], speed = hypot(vx, vy);
        double goal = speed > 1e-3 ? atan2(vy, vx) : r->q[4 + i], back = goal > 0 ? goal - M_PI : goal + M_PI;
        if (fabs(goal) > M_PI / 2) {
            goal = back;
            speed = -speed;
        }
        bool is_stuck = has_fault && r->fault == STUCK_ENCODER && i == 2,
             is_dead = has_fault && r->fault == DEAD_MOTOR && i == 0;
        r->v[4 + i] = is_stuck ? 0 : (goal - r->q[4 + i]) / r->steering;
        r->q[4 + i] += dt * r->v[4 + i];
        r->v[i] = is_dead ? 0 : speed / radius;
        r->q[i] += dt * r->v[i];
    }
    double moved[2] = {scale * r->now[0], scale * r->now[1]};
    bool is_seen = r->fault == SMALL_WHEELS;  // the odometry looks at the ground, not at the wheels
    for (int k = 0; k < 2; k++)
        r->odom_v[k] = (is_seen ? moved[k] : r->now[k]) * (1 + 0.02 * r->noise * normal(r));
    double a = r->odom[2] + 0.5 * dt * r->odom_v[1];
    r->odom[0] += dt * cos(a) * r->odom_v[0];
    r->odom[1] += dt * sin(a) * r->odom_v[0];
    r->odom[2] = remainder(r->odom[2] + dt * r->odom_v[1], 2 * M_PI);
    r->pose[2] = remainder(r->pose[2] + dt * moved[1], 2 * M_PI);
    r->gyro = moved[1] + 2e-3 * r->noise * normal(r) + (has_fault && r->fault == GYRO_BIAS ? 0.15 : 0);
    r->accelerometer = (r->now[0] - before) / dt + 0.03 * r->noise * normal(r);
}

static void post(robot *r, double time, usi_estimate_group group) {
    if (uniform(r) < r->loss || r->n_letter == MAX_LETTER) return;
    letter *m = &r->letters[(r->first_letter + r->n_letter++) % MAX_LETTER];
    m->due = fmax(r->last_due, time + r->delay + r->jitter * uniform(r));
    r->last_due = m->due;
    m->group = group;
    m->stamp = r->clock_offset + (int64_t)(1e9 * time * (1 + r->clock_drift));
    if (group == USI_ESTIMATE_ODOM) {
        memcpy(m->values, (const double[]){r->odom[0], r->odom[1], r->odom[2], r->odom_v[0], r->odom_v[1]},
               5 * sizeof(double));
    } else if (group == USI_ESTIMATE_IMU) {
        memcpy(m->values, (const double[]){r->gyro, r->accelerometer, r->pose[2]}, 3 * sizeof(double));
    } else {
        for (int i = 0; i < N_JOINT; i++) {
            m->values[i] = r->q[i] + 2e-4 * r->noise * normal(r);
            m->values[N_JOINT + i] = r->v[i] + 5e-3 * r->noise * normal(r);
        }
    }
}

static us_quat turn(double yaw) { return (us_quat){cos(0.5 * yaw), 0, 0, sin(0.5 * yaw)}; }

static void deliver(world *w, int source) {
    robot *r = &w->robots[source];
    usi_estimate *e = &r->e;
    int64_t now = w->clock0 + (int64_t)(1e9 * w->time);
    for (; r->n_letter > 0 && r->letters[r->first_letter].due <= w->time;
         r->first_letter = (r->first_letter + 1) % MAX_LETTER, r->n_letter--) {
        const letter *m = &r->letters[r->first_letter];
        const double *x = m->values;
        if (m->group == USI_ESTIMATE_ODOM) {
            e->odom_time = m->stamp;
            e->odom_heard = now;
            e->X_OB = (us_pose){.p = {x[0], x[1], 0}, .q = turn(x[2])};
            e->v_B.x = x[3];
            e->w_B.z = x[4];
        } else if (m->group == USI_ESTIMATE_IMU) {
            e->imu_time = m->stamp;
            e->imu_heard = now;
            e->w_I.z = x[0];
            e->a_I.x = x[1];
            e->a_I.z = 9.81;
            e->has_orientation = true;
            e->R_WI = turn(x[2]);
        } else {
            e->joints_time = m->stamp;
            e->joints_heard = now;
            e->n_joint = N_JOINT;
            for (int i = 0; i < N_JOINT; i++) {
                snprintf(e->joint[i].name, sizeof e->joint[i].name, "%s", names[i]);
                e->joint[i].position = x[i];
                e->joint[i].velocity = x[N_JOINT + i];
            }
        }
        usi_shadow_take(&w->shadow, (us_switch_source)source, m->group, e);
    }
}

// ---- a drive ----

// A new command every few seconds, as an operator gives them; among them halts.
static void choose(double time, double *v, double *w) {
    uint64_t i = (uint64_t)(time / 6);
    *v = us_random_uniform(seed, 1, i) < 0.2 ? 0 : 0.3 + 0.2 * us_random_uniform(seed, 2, i);
    *w = us_random_uniform(seed, 3, i) < 0.4 ? 0 : 0.6 * (us_random_uniform(seed, 4, i) - 0.5);
}

static world *new_world(void) {
    static const char urdf[] = "<robot name='x'><joint type=\"continuous\" name=\"front_left_drive\"/><joint "
                               "name='front_right_drive' type='continuous'>"
                               "</joint><joint name=\"rear_left_drive\"\n type=\"continuous\"/><joint "
                               "name=\"front_left_steer\" type=\"revolute\"/>"
                               "<joint name=\"rear_right_drive\" type=\"continuous\"/></robot>";
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->clock0 = INT64_C(123456789012345);
    for (int i = 0; i < 2; i++) {
        w->robots[i].stream = (uint64_t)i;
        w->robots[i].steering = 0.2;
        w->robots[i].fault_time = 60;
    }
    // The proxy is near, exact, and its time begins with it. Its odometry begins elsewhere.
    w->robots[1].clock_offset = 1000000;
    memcpy(w->robots[1].odom, (const double[]){7, -3, 2}, 3 * sizeof(double));
    us_shadow_def def = usi_shadow_def_default();
    usi_shadow_init(&w->shadow, &def, w->clock0);
    usi_shadow_describe(&w->shadow, urdf, sizeof urdf);
    w->least = 1;
    usi_shadow_begin(&w->shadow, w->clock0);
    return w;
}

// The hardware of the worst day that must not give an alarm.
static void set_bad_link(robot *r) {
    r->delay = 0.25;
    r->jitter = 0.05;
    r->loss = 0.05;
    r->noise = 1;
    r->clock_offset = INT64_C(1794819600000000000);  // decades ahead
    r->clock_drift = 1e-4;
    r->steering = 0.22;
}

typedef void command_function(double time, double *v, double *w);

static void run(world *w, double until, command_function *function) {
    for (int64_t i = llround(w->time / dt); w->time < until; i++) {
        double v, turn_rate;
        w->time = (double)(i + 1) * dt;
        function(w->time, &v, &turn_rate);
        for (int k = 0; k < 2; k++) {
            robot *r = &w->robots[k];
            if (i % 5 == 0) hear_command(r, w->time, v, turn_rate);
            obey(r, w->time);
            drive(r, w->time);
            post(r, w->time, USI_ESTIMATE_IMU);
            if (i % 2 == 0) {
                post(r, w->time, USI_ESTIMATE_ODOM);
                post(r, w->time, USI_ESTIMATE_JOINTS);
            }
            deliver(w, k);
        }
        if (i % 5) continue;
        usi_shadow_step(&w->shadow, w->clock0 + (int64_t)(1e9 * w->time));
        if (w->time < 5) continue;
        w->n_step++;
        w->n_not_ok += w->shadow.state != US_SHADOW_OK;
        w->least = fmin(w->least, w->shadow.confidence);
    }
}

static void print_residuals(const usi_shadow *s) {
    char name[USI_RESIDUAL_NAME];
    for (int32_t i = 0; i < USI_MAX_RESIDUAL; i++) {
        const usi_residual *r = &s->residuals[i];
        if (r->compared < 0) continue;
        usi_shadow_residual_name(s, i, name);
        print_message("  %-28s %9.4f / %.4f = %.2f\n", name, r->value, r->tolerance, r->ratio);
    }
}

// ---- tests ----

static void ten_minutes_behind_a_bad_link_give_no_alarm(void **state) {
    (void)state;
    const uint64_t before = seed;
    for (int i = 0; i < 4; i++) {
        world *w = new_world();
        seed = 20 + (uint64_t)i;
        set_bad_link(&w->robots[0]);
        if (i % 2) w->robots[0].delay = 0.3;
        run(w, 600, choose);
        print_message("least confidence %.3f, lag %.3f s\n", w->least, w->shadow.lag.lag);
        if (w->n_not_ok > 0) print_residuals(&w->shadow);
        assert_true(w->n_step > 11000);
        assert_int_equal(w->n_not_ok, 0);
        assert_true(w->shadow.event_time < 0);
        // Not even near: a ratio of 0.85 at most, of 1 that would be degraded and 2 that would be diverged.
        assert_true(w->least > 0.7);
        // Commands go and samples come over the delay, each up to 0.05 s later, half of that on the average;
        // the steering is slower by 0.02 s. The grid of the search is 0.05 s.
        assert_true(w->shadow.lag.is_known);
        assert_true(fabs(w->shadow.lag.lag - (2 * w->robots[0].delay + 0.05 + 0.02)) < 0.05);
        free(w);
    }
    seed = before;
}

static void two_without_a_link_do_the_same(void **state) {
    (void)state;
    world *w = new_world();
    run(w, 60, choose);
    // Equal to rounding, and compared within the band: nothing is left.
    assert_true(w->least > 0.999);
    assert_true(fabs(w->shadow.lag.lag) < 0.02);
    free(w);
}

static void drive_straight(double time, double *v, double *w) {
    *v = fmod(time, 20) < 17 ? 0.5 : 0;
    *w = 0;
}

static void drive_round(double time, double *v, double *w) {
    *v = fmod(time, 20) < 17 ? 0.5 : 0;
    *w = *v;
}

// What diverged first when the hardware has the fault from 60 s on.
static void expect_fault(fault f, command_function *function, double until, const char *expected) {
    world *w = new_world();
    char first[USI_RESIDUAL_NAME], text[480];
    set_bad_link(&w->robots[0]);
    w->robots[0].fault = f;
    run(w, 60, function);
    assert_int_equal(w->n_not_ok, 0);
    run(w, until, function);
    usi_shadow_format_event(&w->shadow, 0, text, sizeof text);
    print_message("%s (after %.1f s)\n", text, w->shadow.deviations[0].time - 60);
    if (w->shadow.state != US_SHADOW_DIVERGED) print_residuals(&w->shadow);
    assert_int_equal(w->shadow.state, US_SHADOW_DIVERGED);
    assert_true(w->shadow.n_deviation >= 1 && w->shadow.deviations[0].time > 60);
    usi_shadow_residual_name(&w->shadow, w->shadow.deviations[0].residual, first);
    assert_memory_equal(first, expected, strlen(expected));
    for (int32_t i = 1; i < w->shadow.n_deviation; i++)
        assert_true(w->shadow.deviations[i].time >= w->shadow.deviations[i - 1].time);
    free(w);
}

static void small_wheels_part_the_pose(void **state) {
    (void)state;
    // 3 % of the way since then against 0.25 m and 1 % of all the way, and twice that to part: 3 % x = 2
    // (0.25 m + 1 % (25 m + x)), x = 100 m.
    expect_fault(SMALL_WHEELS, drive_straight, 300, "pose.x");
}

static void small_wheels_that_odometry_does_not_see_part_the_heading(void **state) {
    (void)state;
    expect_fault(SMALL_WHEELS_UNSEEN, drive_round, 300, "imu.yaw");
}

static void a_dead_motor_is_named(void **state) {
    (void)state;
    expect_fault(DEAD_MOTOR, choose, 90, "front_left_drive.speed");
}

static void a_stuck_encoder_is_named(void **state) {
    (void)state;
    expect_fault(STUCK_ENCODER, choose, 90, "rear_left_steer.");
}

static void a_gyroscope_with_a_bias_is_named(void **state) {
    (void)state;
    expect_fault(GYRO_BIAS, choose, 90, "imu.rate.z");
}

static void parted_stays_until_a_new_comparison(void **state) {
    (void)state;
    world *w = new_world();
    char line[16384];
    w->robots[0].fault = GYRO_BIAS;
    w->robots[0].fault_time = 20;
    run(w, 30, choose);
    assert_int_equal(w->shadow.state, US_SHADOW_DIVERGED);
    size_t n = usi_shadow_encode_event(&w->shadow, "k10", w->clock0 + (int64_t)(1e9 * w->time),
                                       INT64_C(1794819600000000000), line, sizeof line);
    assert_int_equal(n, strlen(line));
    // Wall time now less ten seconds, and the time that it took to be noticed.
    const char *start = "{\"robot\":\"k10\",\"event\":\"diverged\",\"time\":17948195";
    assert_memory_equal(line, start, strlen(start));
    assert_non_null(strstr(line, "\"first\":{\"name\":\"imu.rate.z\""));
    w->robots[0].fault = NO_FAULT;
    run(w, 60, choose);
    assert_true(w->shadow.confidence > 0.9);
    assert_int_equal(w->shadow.state, US_SHADOW_DIVERGED);
    usi_shadow_begin(&w->shadow, w->clock0 + (int64_t)(1e9 * w->time));
    assert_int_equal(w->shadow.state, US_SHADOW_DEGRADED);
    run(w, 65, choose);
    assert_int_equal(w->shadow.state, US_SHADOW_OK);
    n = usi_shadow_encode(&w->shadow, "k10", w->clock0, 0, line, sizeof line);
    assert_int_equal(n, strlen(line));
    assert_non_null(strstr(line, "\"state\":\"ok\""));
    assert_non_null(strstr(line, "{\"name\":\"front_left_drive.speed\",\"value\":"));
    free(w);
}

static void silence_is_no_agreement(void **state) {
    (void)state;
    world *w = new_world();
    run(w, 20, choose);
    assert_int_equal(w->shadow.state, US_SHADOW_OK);
    w->robots[0].loss = 1;
    run(w, 30, choose);
    assert_int_equal(w->shadow.state, US_SHADOW_DEGRADED);
    assert_true(w->shadow.confidence == 0 && w->shadow.worst == -1);
    // A clock that was set while nobody listened, and two that halt: then they are compared again.
    w->robots[0].loss = 0;
    w->robots[0].clock_offset = -INT64_C(500000000000);
    run(w, 40, choose);
    assert_true(w->shadow.confidence > 0);
    free(w);
}

static void impossible_definitions_are_refused(void **state) {
    (void)state;
    us_error err = {0};
    us_shadow_def def = usi_shadow_def_default();
    assert_int_equal(usi_shadow_check(&def, &err), US_OK);
    def.gyro = 0;
    assert_int_equal(usi_shadow_check(&def, &err), US_ERR_VALUE);
    def = usi_shadow_def_default();
    def.yaw_growth = NAN;
    assert_int_equal(usi_shadow_check(&def, &err), US_ERR_VALUE);
    def = usi_shadow_def_default();
    def.time = 2;
    assert_int_equal(usi_shadow_check(&def, &err), US_ERR_VALUE);
    def = usi_shadow_def_default();
    def.diverged = 0.7;
    assert_int_equal(usi_shadow_check(&def, &err), US_ERR_VALUE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_definitions_are_refused),
        cmocka_unit_test(parted_stays_until_a_new_comparison),
        cmocka_unit_test(silence_is_no_agreement),
        cmocka_unit_test(two_without_a_link_do_the_same),
        cmocka_unit_test(ten_minutes_behind_a_bad_link_give_no_alarm),
        cmocka_unit_test(small_wheels_part_the_pose),
        cmocka_unit_test(small_wheels_that_odometry_does_not_see_part_the_heading),
        cmocka_unit_test(a_dead_motor_is_named),
        cmocka_unit_test(a_stuck_encoder_is_named),
        cmocka_unit_test(a_gyroscope_with_a_bias_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

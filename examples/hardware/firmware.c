// The firmware in this rover's computer: readings of its encoders go in, what its motors are to do comes out,
// 500 times a second. The battery and the emergency stop are not the firmware's.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware.h"
#include "understudy/base.h"

const double BATTERY_CAPACITY = 500 * 3600.0, BATTERY_VOLTAGE = 48;

static const double IDLE_POWER = 40;  // W
static const double STEER_RATE = 1;   // rad/s, of the steering motors
static const double BRAKE = 50,
                    BRAKE_SPEED = 1;       // 1/s: of the brakes, much firmer; rad/s: below which they hold
static const double FILTER = 0.05;         // s: velocities are differences of counts, and smoothed
static const double ENCODER_NOISE = 2e-4;  // rad
static const double ROLL_NOISE =
    0.02;  // share of a wheel's distance that it slips or loses in a tick, as odometry sees it

static double clamp(double x, double max) { return fmax(-max, fmin(max, x)); }

double firmware_normal(firmware *f) { return us_random_normal(f->chosen->seed, 1, f->n_draw++); }

double firmware_uniform(firmware *f) { return us_random_uniform(f->chosen->seed, 2, f->n_draw++); }

// ---- settings ----

static void set_wheels(usi_firmware *fw, const body *b) {
    fw->locomotion.kind = USI_LOCOMOTION_ALL_WHEEL;
    fw->locomotion.n_wheel = N_WHEEL;
    fw->locomotion.track_scale = 1;
    fw->locomotion.slow_down = 10;
    for (int i = 0; i < N_WHEEL; i++) {
        const wheel *w = &b->wheels[i];
        usi_loco_wheel *out = &fw->locomotion.wheel[i];
        out->x = w->x;
        out->y = w->y;
        out->radius = w->radius;
        out->sign = out->steer_sign = 1;
        out->steer_lower = b->joints[w->steer].lower;
        out->steer_upper = b->joints[w->steer].upper;
        out->is_steered = true;
        fw->wheel_joint[i] = w->drive;
        fw->steer_joint[i] = w->steer;
    }
}

bool firmware_create(firmware *f, const options *o, const body *b) {
    usi_firmware *fw = &f->settings;
    memset(f, 0, sizeof *f);
    f->chosen = o;
    fw->step = STEP;
    fw->timeout = 0.5;
    fw->max_speed = 0.9;
    fw->max_turn = 1.5;
    fw->max_acceleration = 1;
    fw->joint = f->joint;
    fw->drive = f->drive;
    fw->n_joint = b->n_joint;
    for (int32_t i = 0; i < b->n_joint; i++) {
        const joint *j = &b->joints[i];
        f->joint[i].name = j->name;
        f->joint[i].drive = j->actuator;
        f->joint[i].lower = j->is_limited ? j->lower : -INFINITY;
        f->joint[i].upper = j->is_limited ? j->upper : INFINITY;
        f->joint[i].max_speed = j->max_speed;
        if (j->actuator < 0) continue;
        usi_firmware_drive *drive = &f->drive[j->actuator];
        drive->joint = i;
        drive->kind = j->is_limited ? USI_DRIVE_BY_POSITION : USI_DRIVE_BY_VELOCITY;
        drive->rate = usi_firmware_position_rate(STEP);
        fw->n_drive++;
    }
    set_wheels(fw, b);
    usi_firmware_lay_out(fw);
    f->state = (usi_firmware_state *)malloc(fw->state_size);
    return f->state != NULL;
}

void firmware_destroy(firmware *f) { free(f->state); }

// ---- readings ----

// Odometry and control go by the wheels' counts, telemetry has the encoders' noise too.
static usi_firmware_readings readings_of(const firmware *f) {
    usi_firmware_readings readings = US_ZERO;
    readings.tick = f->tick;
    readings.q = f->counted;
    readings.v = f->v;
    readings.is_powered = !f->is_emergency;
    readings.is_running = true;
    return readings;
}

static void read_encoders(firmware *f, const body *b) {
    const double noise = ENCODER_NOISE * f->chosen->noise, share = STEP / (STEP + FILTER);
    for (int i = 0; i < b->n_joint; i++) {
        const joint *j = &b->joints[i];
        double q = j->q - f->zero[i], v = j->v + noise / FILTER * firmware_normal(f), before = f->v[i];
        f->q[i] = q + noise * firmware_normal(f);
        f->v[i] += share * (v - f->v[i]);
        f->acceleration[i] = (f->v[i] - before) / STEP;
        if (j->is_limited || j->actuator < 0) f->counted[i] = q;
    }
    for (int i = 0; i < N_WHEEL; i++) {
        int32_t k = b->wheels[i].drive;
        double rolled = b->joints[k].q - f->zero[k] - f->rolled[i];
        f->rolled[i] += rolled;
        f->counted[k] += rolled * (1 + ROLL_NOISE * f->chosen->noise * firmware_normal(f));
    }
}

void firmware_boot(firmware *f, const body *b) {
    memset(f->state, 0, f->settings.state_size);
    memset(f->output, 0, sizeof f->output);
    memset(f->v, 0, sizeof f->v);
    memset(f->odom_v, 0, sizeof f->odom_v);
    f->refused_time = -INFINITY;
    for (int i = 0; i < N_WHEEL; i++) {
        // Wheels count from here; steering has absolute encoders.
        const wheel *w = &b->wheels[i];
        f->zero[w->drive] = b->joints[w->drive].q;
        f->counted[w->drive] = f->rolled[i] = 0;
        f->counted[w->steer] = b->joints[w->steer].q;
        f->output[b->joints[w->steer].actuator].position = b->joints[w->steer].q;
    }
    const usi_firmware_readings readings = readings_of(f);
    usi_firmware_restart(&f->settings, f->state, &readings);
}

// ---- commands ----

usi_firmware_request firmware_request(firmware *f, usi_firmware_readings *readings) {
    *readings = readings_of(f);
    usi_firmware_request request = US_ZERO;
    request.fw = &f->settings;
    request.s = f->state;
    request.in = readings;
    return request;
}

bool firmware_close(firmware *f, const usi_firmware_request *c, const char *topic, bool is_accepted) {
    f->state->n_command += is_accepted;
    f->state->n_refused += !is_accepted;
    if (is_accepted) return true;
    f->refused_time = f->time;
    snprintf(f->state->refusal, sizeof f->state->refusal, "%.40s: %.115s", topic, c->why);
    return false;
}

void firmware_take(firmware *f, const double velocity[3]) {
    usi_firmware_readings readings;
    usi_firmware_request c = firmware_request(f, &readings);
    bool is_accepted = f->is_emergency ? usi_firmware_refuse(&c, "the emergency stop is on")
                                       : usi_firmware_drive_velocity(&c, velocity);
    firmware_close(f, &c, "cmd_vel", is_accepted);
}

// The motors' power is cut by a relay that stays as it is until somebody releases it.
void firmware_stop(firmware *f, bool is_emergency) {
    usi_firmware_readings readings;
    f->is_emergency = is_emergency;
    usi_firmware_request c = firmware_request(f, &readings);
    usi_firmware_stop(&c);
    if (is_emergency) memset(f->state->now, 0, sizeof f->state->now);
}

// ---- motors ----

// Steering motors have a speed of their own.
static void set_motors(firmware *f, body *b) {
    for (int32_t k = 0; k < f->settings.n_drive; k++) {
        const usi_firmware_output *out = &f->output[k];
        joint *j = &b->joints[f->drive[k].joint];
        j->commanded += clamp(out->position - j->commanded, STEER_RATE * STEP);
        j->target = body_target(j, j->commanded, out->velocity);
        j->is_held = false;
    }
}

// A joint that is slow is held where it is, on a slope too; one that is fast comes to rest first.
static double hold(joint *j) {
    if (!j->is_held || fabs(j->v) > BRAKE_SPEED) j->held = j->q;
    j->is_held = true;
    return j->held;
}

void firmware_rest(body *b) {
    for (int i = 0; i < N_WHEEL; i++) {
        joint *drive = &b->joints[b->wheels[i].drive], *steer = &b->joints[b->wheels[i].steer];
        drive->target = BRAKE * (hold(drive) - drive->q);
        steer->commanded = hold(steer);
        steer->target = body_target(steer, steer->commanded, 0);
    }
}

static void drain_battery(firmware *f, const body *b) {
    double power = IDLE_POWER;
    for (int i = 0; i < b->n_joint; i++) {
        if (b->joints[i].actuator >= 0) power += fmax(0, b->joints[i].torque * b->joints[i].v);
    }
    f->power = f->energy < BATTERY_CAPACITY ? power : 0;
    f->energy = fmin(f->energy + power * STEP, BATTERY_CAPACITY);
}

void firmware_tick(firmware *f, body *b) {
    f->time += STEP;
    f->tick++;
    read_encoders(f, b);
    drain_battery(f, b);
    const usi_firmware_readings readings = readings_of(f);
    usi_firmware_step(&f->settings, f->state, &readings, f->output);
    for (int k = 0; k < 3; k++)
        f->odom_v[k] += STEP / (STEP + FILTER) * (f->state->odom_v[k] - f->odom_v[k]);
    if (!f->is_emergency) {
        set_motors(f, b);
        return;
    }
    firmware_rest(b);
    // What the brakes let through is not made up for.
    memcpy(f->state->wheel_goal, f->state->wheel_q, sizeof f->state->wheel_goal);
}

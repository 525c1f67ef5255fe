// What the rover's computer does 500 times a second: from commands to wheels, from wheels to odometry.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hardware.h"
#include "understudy/base.h"

const double BATTERY_CAPACITY = 500 * 3600.0, BATTERY_VOLTAGE = 48;

static const double IDLE_POWER = 40;  // W
static const double MAX_SPEED = 0.9, MAX_TURN = 1.5, MAX_ACCELERATION = 1;
static const double STEER_RATE = 1;  // rad/s, of the steering motors
static const double WATCHDOG = 0.5;  // s without a command
static const double HOLD = 10;       // 1/s: how fast a wheel makes up for what a load took from it
static const double SLACK = 0.2;     // rad: more is not made up for
static const double BRAKE = 50,
                    BRAKE_SPEED = 1;       // 1/s: of the brakes, much firmer; rad/s: below which they hold
static const double FILTER = 0.05;         // s: velocities are differences of counts, and smoothed
static const double ENCODER_NOISE = 2e-4;  // rad
static const double ROLL_NOISE =
    0.02;  // share of a wheel's way that it slips or loses in a tick, as odometry sees it

static double clamp(double x, double most) { return fmax(-most, fmin(most, x)); }

double firmware_normal(firmware *f) { return us_random_normal(f->options->seed, 1, f->n_draw++); }

double firmware_uniform(firmware *f) { return us_random_uniform(f->options->seed, 2, f->n_draw++); }

// ---- commands ----

// The wheels and their steering are the body's again.
static void free_joints(firmware *f) {
    for (int i = 0; i < MAX_JOINT; i++)
        f->mode[i] = JOINT_FREE;
}

void firmware_take(firmware *f, const double velocity[3]) {
    double speed = hypot(velocity[0], velocity[1]);
    char why[REFUSAL_SIZE] = "";
    if (!isfinite(speed) || !isfinite(velocity[2])) {
        snprintf(why, sizeof why, "cmd_vel: a velocity is not a finite number");
    } else if (speed > MAX_SPEED * (1 + 1e-9)) {
        snprintf(why, sizeof why, "cmd_vel: speed %.4g m/s is beyond the limit of %.4g m/s", speed,
                 MAX_SPEED);
    } else if (fabs(velocity[2]) > MAX_TURN * (1 + 1e-9)) {
        snprintf(why, sizeof why, "cmd_vel: turn rate %.4g rad/s is beyond the limit of %.4g rad/s",
                 velocity[2], MAX_TURN);
    } else if (f->is_emergency) {
        snprintf(why, sizeof why, "cmd_vel: the emergency stop is on");
    }
    if (why[0]) {
        memcpy(f->refusal, why, sizeof why);
        f->refused_time = f->time;
        f->n_refused++;
        return;
    }
    free_joints(f);
    memcpy(f->want, velocity, sizeof f->want);
    f->motion = MOTION_VELOCITY;
    f->command_time = f->time;
    f->n_taken++;
}

// The motors' power is cut by a relay that stays as it is until somebody releases it.
void firmware_stop(firmware *f, bool is_emergency) {
    free_joints(f);
    f->is_emergency = is_emergency;
    f->motion = MOTION_STOPPED;
    memset(f->want, 0, sizeof f->want);
    if (is_emergency) memset(f->now, 0, sizeof f->now);
}

void firmware_boot(firmware *f, const body *b) {
    const options *o = f->options;
    bool is_emergency = f->is_emergency;
    double energy = f->energy, time = f->time;
    uint64_t n_draw = f->n_draw;
    int64_t n_boot = f->n_boot;
    memset(f, 0, sizeof *f);
    f->options = o;
    f->is_emergency = is_emergency;
    f->energy = energy;
    f->time = time;
    f->n_draw = n_draw;
    f->n_boot = n_boot;
    f->refused_time = -INFINITY;
    for (int i = 0; i < N_WHEEL; i++) {
        // Wheels count from here; steering has absolute encoders.
        f->zero[b->wheel[i].drive] = b->joint[b->wheel[i].drive].q;
        f->steer[i] = b->joint[b->wheel[i].steer].q;
    }
}

// ---- odometry ----

static void read_encoders(firmware *f, const body *b, double step) {
    const double noise = ENCODER_NOISE * f->options->noise, share = step / (step + FILTER);
    for (int i = 0; i < b->n_joint; i++) {
        const joint *j = &b->joint[i];
        double v = j->v + noise / FILTER * firmware_normal(f), before = f->v[i];
        f->q[i] = j->q - f->zero[i] + noise * firmware_normal(f);
        f->v[i] += share * (v - f->v[i]);
        f->acceleration[i] = (f->v[i] - before) / step;
    }
}

// The body's velocity for which the wheels' rims move along as they were seen to, by least squares. With the
// wheels' mean m and the rims' mean velocity s: w = sum (r - m) x (s_i - s) / sum |r - m|^2, and the origin
// moves with s - w x m.
static void count_wheels(firmware *f, const body *b, double step) {
    double rim[N_WHEEL][2], s[2] = {0}, m[2] = {0}, turn = 0, size = 0, body_v[3];
    for (int i = 0; i < N_WHEEL; i++) {
        const wheel *w = &b->wheel[i];
        double rolled = b->joint[w->drive].q - f->zero[w->drive] - f->wheel_before[i];
        f->wheel_before[i] += rolled;
        double v = rolled / step * w->radius * (1 + ROLL_NOISE * f->options->noise * firmware_normal(f));
        rim[i][0] = v * cos(f->q[w->steer]);
        rim[i][1] = v * sin(f->q[w->steer]);
        for (int k = 0; k < 2; k++)
            s[k] += rim[i][k] / N_WHEEL;
        m[0] += w->x / N_WHEEL;
        m[1] += w->y / N_WHEEL;
    }
    for (int i = 0; i < N_WHEEL; i++) {
        double x = b->wheel[i].x - m[0], y = b->wheel[i].y - m[1];
        turn += x * (rim[i][1] - s[1]) - y * (rim[i][0] - s[0]);
        size += x * x + y * y;
    }
    body_v[2] = turn / size;
    body_v[0] = s[0] + body_v[2] * m[1];
    body_v[1] = s[1] - body_v[2] * m[0];
    // Half of the turn first: the middle of the arc's chord.
    double a = f->odom[2] + 0.5 * body_v[2] * step;
    f->odom[0] += step * (cos(a) * body_v[0] - sin(a) * body_v[1]);
    f->odom[1] += step * (sin(a) * body_v[0] + cos(a) * body_v[1]);
    f->odom[2] = remainder(f->odom[2] + body_v[2] * step, 2 * M_PI);
    for (int k = 0; k < 3; k++)
        f->odom_v[k] += step / (step + FILTER) * (body_v[k] - f->odom_v[k]);
}

// ---- wheels ----

// Every wheel along its own velocity, by the nearer of the two angles that do; all of them roll slower until
// the worst of them stands right.
static void roll(firmware *f, body *b, double step) {
    double speed[N_WHEEL], worst = 0;
    for (int k = 0; k < 3; k++)
        f->now[k] += clamp(f->want[k] - f->now[k], MAX_ACCELERATION * step);
    for (int i = 0; i < N_WHEEL; i++) {
        const wheel *w = &b->wheel[i];
        double vx = f->now[0] - f->now[2] * w->y, vy = f->now[1] + f->now[2] * w->x, goal = f->steer[i];
        speed[i] = hypot(vx, vy);
        if (speed[i] > 1e-4) {
            goal = atan2(vy, vx);
            double back = goal > 0 ? goal - M_PI : goal + M_PI;
            bool is_back =
                fabs(goal) > M_PI / 2 + 1e-3 ||
                (fabs(goal) > M_PI / 2 - 1e-3 && fabs(back - f->steer[i]) < fabs(goal - f->steer[i]));
            if (is_back) {
                goal = back;
                speed[i] = -speed[i];
            }
        }
        f->steer[i] += clamp(goal - f->steer[i], STEER_RATE * step);
        worst = fmax(worst, fabs(goal - f->q[w->steer]));
        b->joint[w->steer].target = f->steer[i];
    }
    double share = fmax(0, 1 - worst / 0.4);
    for (int i = 0; i < N_WHEEL; i++) {
        const wheel *w = &b->wheel[i];
        double v = share * speed[i] / w->radius, q = b->joint[w->drive].q - f->zero[w->drive];
        double behind = clamp(f->wheel_goal[i] + v * step - q, SLACK);
        f->wheel_goal[i] = q + behind;
        b->joint[w->drive].target = v + HOLD * behind;
        b->joint[w->drive].is_held = b->joint[w->steer].is_held = false;
    }
}

void firmware_tick(firmware *f, body *b, double step) {
    double power = IDLE_POWER;
    f->time += step;
    read_encoders(f, b, step);
    count_wheels(f, b, step);
    for (int i = 0; i < b->n_joint; i++) {
        if (b->joint[i].actuator >= 0) power += fmax(0, b->joint[i].torque * b->joint[i].v);
    }
    f->energy = fmin(f->energy + power * step, BATTERY_CAPACITY);
    if (f->motion == MOTION_VELOCITY && f->time - f->command_time > WATCHDOG) {
        firmware_stop(f, f->is_emergency);
        f->n_safe_stop++;
    }
    if (f->is_emergency) {
        firmware_rest(b);
        for (int i = 0; i < N_WHEEL; i++)
            f->wheel_goal[i] = b->joint[b->wheel[i].drive].q - f->zero[b->wheel[i].drive];
        return;
    }
    roll(f, b, step);
    motors_tick(f, b, step);
}

// A joint that is slow is held where it is, on a slope too; one that is fast comes to rest first.
static double hold(joint *j) {
    if (!j->is_held || fabs(j->v) > BRAKE_SPEED) j->held = j->q;
    j->is_held = true;
    return j->held;
}

void firmware_rest(body *b) {
    for (int i = 0; i < N_WHEEL; i++) {
        joint *drive = &b->joint[b->wheel[i].drive], *steer = &b->joint[b->wheel[i].steer];
        drive->target = BRAKE * (hold(drive) - drive->q);
        steer->target = hold(steer);
    }
}

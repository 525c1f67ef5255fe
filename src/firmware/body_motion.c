// The motion of the whole body: velocities, arcs, rotations and routes, by wheels or legs, and odometry.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "firmware/firmware__local.h"
#include "kincontrol/odometry.h"

// m/s^2 and rad/s^2 with which a rover comes to rest where the settings have no limit.
static const double DECELERATION = 0.5;

static const double TURN = 6.28318530717958647693;  // rad

// rad that a wheel may be behind or ahead of where its speed should have brought it: more is not made up for.
static const double WHEEL_SLACK = 0.2;

// ---------------------------------------------------------------- odometry

static void read_wheels(const usi_firmware *fw, const usi_firmware_readings *in, double *out_q,
                        double *out_steer) {
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++) {
        out_q[i] = in->q[fw->wheel_joint[i]];
        out_steer[i] = fw->steer_joint[i] >= 0 ? in->q[fw->steer_joint[i]] : 0;
    }
}

static void move_odometry(const usi_firmware *fw, usi_firmware_state *s, const double body[3]) {
    usi_odometry_move(s->odom, body, fw->step);
    memcpy(s->odom_v, body, sizeof s->odom_v);
    const double way = hypot(body[0], body[1]) * fw->step, turned = fabs(body[2]) * fw->step;
    s->way += way;
    s->turned += turned;
    if (s->motion == USI_MOTION_ARC) s->done += way;
    if (s->motion == USI_MOTION_TURN) s->done += turned;
}

// By the feet that stand: how far the base has moved over them since the last tick.
static void count_steps(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    double q[USI_GAIT_LEGS][3], body[3];
    for (int32_t i = 0; i < 3 * fw->gait.n_leg; i++)
        q[i / 3][i % 3] = in->q[fw->leg_joint[i / 3][i % 3]];
    usi_gait_to_body(&fw->gait, &s->gait, (const double(*)[3])q, fw->step, body);
    move_odometry(fw, s, body);
}

// By the wheels: how far each rolled since the last tick, and where it points.
static void count_wheels(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    double q[USI_MAX_WHEEL], steer[USI_MAX_WHEEL], speed[USI_MAX_WHEEL], body[3];
    read_wheels(fw, in, q, steer);
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++) {
        speed[i] = (q[i] - s->wheel_q[i]) / fw->step;
        s->wheel_q[i] = q[i];
    }
    usi_loco_to_body(&fw->locomotion, speed, steer, body);
    move_odometry(fw, s, body);
}

void usi_firmware_count(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    if (fw->locomotion.n_wheel > 0) count_wheels(fw, s, in);
    if (fw->gait.n_leg > 0) count_steps(fw, s, in);
}

// ---------------------------------------------------------------- the body velocity that is wanted

static double deceleration_of(const usi_firmware *fw) {
    return fw->max_acceleration > 0 ? fw->max_acceleration : DECELERATION;
}

// Services whose command moves the body; one of them at a time does.
enum { N_BODY_SERVICE = 4 };

static void list_services(usi_firmware_state *s, usi_service_state *out[N_BODY_SERVICE]) {
    out[0] = &s->locomotor;
    out[1] = &s->navigator;
    out[2] = &s->mobility;
    out[3] = &s->function_run;
}

void usi_firmware_end_motion(usi_firmware_state *s, us_rover_state state, us_rover_error error,
                             const char *message) {
    usi_service_state *services[N_BODY_SERVICE];
    list_services(s, services);
    for (int i = 0; i < N_BODY_SERVICE; i++) {
        usi_service_state *service = services[i];
        if (service->state != US_ROVER_MOVING) continue;
        service->state = (uint8_t)state;
        service->error = (uint8_t)error;
        memset(service->message, 0, sizeof service->message);
        snprintf(service->message, sizeof service->message, "%s", message);
    }
}

static void arrive(usi_firmware_state *s) {
    s->motion = USI_MOTION_STOP;
    s->deadline = 0;
    memset(s->want, 0, sizeof s->want);
    usi_firmware_end_motion(s, US_ROVER_DONE, US_ROVER_FINE, "");
}

void usi_firmware_pose(const usi_firmware_state *s, double out[3]) {
    usi_odometry_compose(s->pose_offset, s->odom, out);
}

double usi_firmware_left(const usi_firmware_state *s) {
    if (s->motion == USI_MOTION_ARC || s->motion == USI_MOTION_TURN) return fmax(s->goal - s->done, 0);
    if (s->motion != USI_MOTION_NAVIGATE) return 0;
    double at[3], left = 0;
    usi_firmware_pose(s, at);
    for (int32_t i = s->next_route; i < s->n_route; i++) {
        left += hypot(s->route[i][0] - at[0], s->route[i][1] - at[1]);
        memcpy(at, s->route[i], sizeof s->route[i]);
    }
    return left;
}

// Of an arc or a rotation: the speed from which it can still come to rest at its end.
static void approach_end(const usi_firmware *fw, usi_firmware_state *s) {
    double left = s->goal - s->done;
    // Within what one tick at creeping speed does there is nothing left to do.
    if (left <= 1e-4) {
        arrive(s);
        return;
    }
    double speed = fmin(s->speed, sqrt(2 * deceleration_of(fw) * fmax(left, 0)));
    double max = fabs(s->motion == USI_MOTION_ARC ? s->want[0] : s->want[2]);
    double scale = max > 0 ? fmax(speed, 0.01) / max : 0;
    for (int i = 0; i < 3; i++)
        s->want[i] *= scale;
}

// rad/s with which it turns on the spot where nobody says how fast.
static double turn_rate_of(const usi_firmware *fw) { return fw->max_turn > 0 ? fw->max_turn : 0.5; }

static void set_want(usi_firmware_state *s, double vx, double vy, double wz) {
    s->want[0] = vx;
    s->want[1] = vy;
    s->want[2] = wz;
}

static void begin_turn(usi_firmware_state *s, double angle, double rate) {
    s->motion = USI_MOTION_TURN;
    s->goal = fabs(angle);
    s->speed = fabs(rate);
    s->done = 0;
    set_want(s, 0, 0, angle < 0 ? -s->speed : s->speed);
}

// A turn to a heading goes by the pose, not by what has been turned: the body still moves when it begins.
static void aim(usi_firmware_state *s) {
    double pose[3];
    usi_firmware_pose(s, pose);
    const double left = remainder(s->end_heading - pose[2], TURN), rate = fmax(fabs(s->want[2]), 0.01);
    s->done = s->goal - fabs(left);
    set_want(s, 0, 0, left < 0 ? -rate : rate);
}

static void follow_route(const usi_firmware *fw, usi_firmware_state *s) {
    double pose[3];
    usi_firmware_pose(s, pose);
    while (s->next_route < s->n_route &&
           hypot(s->route[s->next_route][0] - pose[0], s->route[s->next_route][1] - pose[1]) <= s->tolerance)
        s->next_route++;
    if (s->next_route == s->n_route) {
        if (s->has_end_heading) {
            begin_turn(s, remainder(s->end_heading - pose[2], TURN), turn_rate_of(fw));
        } else {
            arrive(s);
        }
        return;
    }
    const double *goal = s->route[s->next_route];
    usi_pursue(pose, goal[0], goal[1], s->speed, turn_rate_of(fw), deceleration_of(fw),
               fw->gait.n_leg > 0 || fw->locomotion.kind != USI_LOCOMOTION_ACKERMANN, s->want);
}

// Towards the body velocity that is wanted, with the acceleration that is allowed.
static void accelerate(const usi_firmware *fw, usi_firmware_state *s) {
    const double a = fw->max_acceleration;
    for (int i = 0; i < 3; i++) {
        // Rotation has the same limit at a metre's distance.
        s->now[i] = a > 0 ? s->now[i] + usi_clamp_abs(s->want[i] - s->now[i], a * fw->step) : s->want[i];
    }
}

// ---------------------------------------------------------------- wheels and legs

// Legs for the body velocity. They begin where their drives were commanded to be, so that nothing jumps.
static void walk(const usi_firmware *fw, usi_firmware_state *s, usi_firmware_output *output) {
    double q[USI_GAIT_LEGS][3];
    if (!s->gait.is_on) {
        for (int32_t i = 0; i < 3 * fw->gait.n_leg; i++)
            q[i / 3][i % 3] = output[fw->joint[fw->leg_joint[i / 3][i % 3]].drive].position;
        usi_gait_start(&fw->gait, &s->gait, (const double(*)[3])q);
        memset(s->now, 0, sizeof s->now);
    }
    accelerate(fw, s);
    usi_gait_step(&fw->gait, &s->gait, s->now, fw->step, q);
    const usi_drive_state *d = usi_firmware_view_drives(fw, s);
    for (int32_t i = 0; i < 3 * fw->gait.n_leg; i++) {
        const usi_firmware_joint *j = &fw->joint[fw->leg_joint[i / 3][i % 3]];
        usi_firmware_output *out = &output[j->drive];
        if (d[j->drive].mode != USI_DRIVE_KEEP) continue;
        double max = j->max_speed > 0 ? j->max_speed : INFINITY;
        out->velocity = usi_clamp_abs((q[i / 3][i % 3] - out->position) / fw->step, max);
        out->position = q[i / 3][i % 3];
    }
}

// Wheels and steering for the body velocity.
static void roll(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in,
                 usi_firmware_output *output) {
    double q[USI_MAX_WHEEL], steer[USI_MAX_WHEEL];
    usi_loco_command c;
    read_wheels(fw, in, q, steer);
    accelerate(fw, s);
    usi_loco_to_wheels(&fw->locomotion, s->now, steer, s->steer, &c);
    const usi_drive_state *d = usi_firmware_view_drives(fw, s);
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++) {
        int32_t wheel = fw->joint[fw->wheel_joint[i]].drive;
        // The drive gives way to a load; what is lost is made up for, so that a rover that stands on a slope
        // stays there. A wheel that is held fast must not store up rotation.
        double behind = usi_clamp_abs(s->wheel_goal[i] + c.speed[i] * fw->step - q[i], WHEEL_SLACK);
        s->wheel_goal[i] = q[i] + behind;
        if (d[wheel].mode == USI_DRIVE_KEEP)
            output[wheel].velocity = c.speed[i] + fw->drive[wheel].rate * behind;
        if (fw->steer_joint[i] < 0) continue;
        int32_t steering = fw->joint[fw->steer_joint[i]].drive;
        s->steer[i] = c.steer[i];
        if (d[steering].mode == USI_DRIVE_KEEP) output[steering].position = c.steer[i];
    }
}

void usi_firmware_move_body(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in,
                            usi_firmware_output *output) {
    if (s->motion == USI_MOTION_NAVIGATE) follow_route(fw, s);
    if (s->motion == USI_MOTION_TURN && s->has_end_heading) aim(s);
    if (s->motion == USI_MOTION_ARC || s->motion == USI_MOTION_TURN) approach_end(fw, s);
    if (s->motion != USI_MOTION_JOINTS && fw->locomotion.n_wheel > 0) roll(fw, s, in, output);
    if (s->motion != USI_MOTION_JOINTS && fw->gait.n_leg > 0) walk(fw, s, output);
}

// ---------------------------------------------------------------- beginning and ending

bool usi_firmware_is_locomotive(const usi_firmware *fw, int32_t drive) {
    bool is_one = false;
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++)
        is_one = is_one || fw->joint[fw->wheel_joint[i]].drive == drive ||
                 (fw->steer_joint[i] >= 0 && fw->joint[fw->steer_joint[i]].drive == drive);
    for (int32_t i = 0; i < 3 * fw->gait.n_leg; i++)
        is_one = is_one || fw->joint[fw->leg_joint[i / 3][i % 3]].drive == drive;
    return is_one;
}

void usi_firmware_halt(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in) {
    memset(s->want, 0, sizeof s->want);
    s->motion = USI_MOTION_STOP;
    usi_drive_state *d = usi_firmware_drives(fw, s);
    for (int32_t k = 0; k < fw->n_drive; k++) {
        bool is_torque = fw->drive[k].kind == USI_DRIVE_BY_TORQUE;
        if (usi_firmware_is_locomotive(fw, k)) {
            d[k].mode = USI_DRIVE_KEEP;
        } else if (d[k].mode != USI_DRIVE_KEEP) {
            // Holds where it is; what has no gains lets go.
            d[k].mode = is_torque ? USI_DRIVE_TORQUE : USI_DRIVE_POSITION;
            d[k].value = is_torque ? 0 : in->q[fw->drive[k].joint];
        }
    }
}

// A drive that is commanded by itself ends the motion of the body. Wheels that the command does not name go
// on rolling as they did, until the body velocity would have timed out; those of a motion with an end stand.
static void leave_body_motion(usi_firmware_request *c) {
    const usi_firmware *fw = c->fw;
    usi_firmware_state *s = c->s;
    usi_drive_state *d = usi_firmware_drives(fw, s);
    usi_loco_command command;
    double q[USI_MAX_WHEEL], steer[USI_MAX_WHEEL];
    read_wheels(fw, c->in, q, steer);
    usi_loco_to_wheels(&fw->locomotion, s->now, steer, s->steer, &command);
    for (int32_t i = 0; i < fw->locomotion.n_wheel; i++) {
        usi_drive_state *wheel = &d[fw->joint[fw->wheel_joint[i]].drive];
        if (wheel->mode != USI_DRIVE_KEEP) continue;
        wheel->mode = USI_DRIVE_VELOCITY;
        wheel->value = s->motion == USI_MOTION_TWIST ? command.speed[i] : 0;
        wheel->is_lasting = 0;
        wheel->tick = s->motion_tick;
    }
}

void usi_firmware_begin(usi_firmware_request *c, usi_motion motion) {
    const usi_firmware *fw = c->fw;
    usi_firmware_state *s = c->s;
    bool has_body_motion = s->motion != USI_MOTION_SCENE && s->motion != USI_MOTION_JOINTS;
    if (motion == USI_MOTION_JOINTS && has_body_motion && fw->locomotion.n_wheel > 0) leave_body_motion(c);
    if (motion == USI_MOTION_JOINTS) s->gait.is_on = 0;
    usi_firmware_end_motion(s, US_ROVER_STOPPED, US_ROVER_INTERRUPTED, "another command came");
    s->deadline = 0;
    s->has_end_heading = 0;
    // Body motion begins from rest or from the last body motion.
    if (!has_body_motion) {
        memcpy(s->now, s->odom_v, sizeof s->now);
        memcpy(s->wheel_goal, s->wheel_q, sizeof s->wheel_goal);
    }
    usi_drive_state *d = usi_firmware_drives(fw, s);
    for (int32_t k = 0; k < fw->n_drive && motion != USI_MOTION_JOINTS; k++) {
        if (usi_firmware_is_locomotive(fw, k)) d[k].mode = USI_DRIVE_KEEP;
    }
    s->motion = (int32_t)motion;
    s->motion_tick = c->in->tick;
}

// ---------------------------------------------------------------- commands

static bool check_body(usi_firmware_request *c, double vx, double vy, double wz) {
    const usi_firmware *fw = c->fw;
    const double tiny = 1e-9;
    if (!isfinite(vx) || !isfinite(vy) || !isfinite(wz))
        return usi_firmware_refuse(c, "a velocity is not a finite number");
    if (!usi_firmware_can_move(fw))
        return usi_firmware_refuse_as(c, US_ROVER_NOT_SUPPORTED, "this robot has no <locomotion>");
    if (fw->max_speed > 0 && hypot(vx, vy) > fw->max_speed * (1 + tiny))
        return usi_firmware_refuse(c, "speed %.4g m/s is beyond the limit of %.4g m/s", hypot(vx, vy),
                                   fw->max_speed);
    if (fw->max_turn > 0 && fabs(wz) > fw->max_turn * (1 + tiny))
        return usi_firmware_refuse(c, "turn rate %.4g rad/s is beyond the limit of %.4g rad/s", wz,
                                   fw->max_turn);
    bool has_side = fw->gait.n_leg > 0 || fw->locomotion.kind == USI_LOCOMOTION_ALL_WHEEL;
    if (vy != 0 && !has_side)
        return usi_firmware_refuse_as(c, US_ROVER_NOT_SUPPORTED,
                                      "it cannot move sideways (linear.y = %.4g m/s)", vy);
    return true;
}

bool usi_firmware_drive_velocity(usi_firmware_request *c, const double body[3]) {
    if (!check_body(c, body[0], body[1], body[2])) return false;
    usi_firmware_begin(c, USI_MOTION_TWIST);
    set_want(c->s, body[0], body[1], body[2]);
    return true;
}

bool usi_firmware_drive_arc(usi_firmware_request *c, double distance, double curvature, double speed) {
    usi_firmware_state *s = c->s;
    if (!isfinite(distance) || !isfinite(curvature) || !isfinite(speed) || speed == 0)
        return usi_firmware_refuse(c, "an arc needs a distance, a curvature and a speed other than 0");
    if (!check_body(c, speed, 0, speed * curvature)) return false;
    usi_firmware_begin(c, USI_MOTION_ARC);
    // Backwards when one of the two is negative.
    double vx = (speed < 0) != (distance < 0) ? -fabs(speed) : fabs(speed);
    set_want(s, vx, 0, vx * curvature);
    s->goal = fabs(distance);
    s->speed = fabs(speed);
    s->done = 0;
    return true;
}

bool usi_firmware_rotate(usi_firmware_request *c, double angle, double rate) {
    const usi_firmware *fw = c->fw;
    usi_firmware_state *s = c->s;
    if (!usi_firmware_can_move(fw))
        return usi_firmware_refuse_as(c, US_ROVER_NOT_SUPPORTED, "this robot has no <locomotion>");
    if (!isfinite(angle) || !isfinite(rate) || rate == 0)
        return usi_firmware_refuse(c, "a turn needs an angle and a turn rate other than 0");
    if (fw->locomotion.n_wheel > 0 && fw->locomotion.kind == USI_LOCOMOTION_ACKERMANN)
        return usi_firmware_refuse_as(c, US_ROVER_NOT_SUPPORTED, "it cannot turn on the spot");
    if (fw->max_turn > 0 && fabs(rate) > fw->max_turn * (1 + 1e-9))
        return usi_firmware_refuse(c, "turn rate %.4g rad/s is beyond the limit of %.4g rad/s", rate,
                                   fw->max_turn);
    usi_firmware_begin(c, USI_MOTION_TURN);
    begin_turn(s, angle, rate);
    return true;
}

bool usi_firmware_navigate(usi_firmware_request *c, const double (*points)[2], int32_t n, int32_t first,
                           double speed, double tolerance) {
    usi_firmware_state *s = c->s;
    if (n <= 0 || n > USI_ROUTE_POINTS)
        return usi_firmware_refuse(c, "%d points: it takes 1 to %d", (int)n, USI_ROUTE_POINTS);
    if (!(tolerance > 0) || !(speed > 0) || !isfinite(tolerance))
        return usi_firmware_refuse(c, "tolerance and speed must be above 0");
    if (!check_body(c, speed, 0, 0)) return false;
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(points[i][0]) || !isfinite(points[i][1]))
            return usi_firmware_refuse(c, "point %d is not finite", (int)i);
    }
    usi_firmware_begin(c, USI_MOTION_NAVIGATE);
    s->n_route = n - first;
    s->next_route = 0;
    memset(s->route, 0, sizeof s->route);
    memcpy(s->route, points + first, (size_t)(n - first) * sizeof *points);
    s->tolerance = tolerance;
    s->speed = speed;
    return true;
}

void usi_firmware_limit_time(usi_firmware_request *c, double timeout) {
    const usi_firmware *fw = c->fw;
    c->s->deadline = timeout > 0 ? c->in->tick + (int64_t)ceil(fmin(timeout, 1e9) / fw->step) : 0;
}

bool usi_firmware_end_with_heading(usi_firmware_request *c, double heading) {
    const usi_firmware *fw = c->fw;
    if (!isfinite(heading)) return usi_firmware_refuse(c, "the heading is not a finite number");
    if (fw->locomotion.n_wheel > 0 && fw->locomotion.kind == USI_LOCOMOTION_ACKERMANN)
        return usi_firmware_refuse_as(c, US_ROVER_NOT_SUPPORTED, "it cannot turn on the spot");
    c->s->end_heading = heading;
    c->s->has_end_heading = 1;
    return true;
}

bool usi_firmware_stop(usi_firmware_request *c) {
    usi_firmware_begin(c, USI_MOTION_STOP);
    usi_firmware_halt(c->fw, c->s, c->in);
    return true;
}

void usi_firmware_set_pose(usi_firmware_request *c, const double pose[3]) {
    // The offset brings odometry to where the robot is said to be.
    const double none[3] = {0, 0, 0};
    double back[3];
    usi_odometry_between(c->s->odom, none, back);
    usi_odometry_compose(pose, back, c->s->pose_offset);
    c->s->way = c->s->turned = 0;
}

bool usi_firmware_set_gait(usi_firmware_request *c, usi_gait_kind kind, uint32_t spared) {
    if (usi_gait_choose(&c->fw->gait, &c->s->gait, kind, spared)) return true;
    return c->fw->gait.n_leg == 0
               ? usi_firmware_refuse_as(c, US_ROVER_NOT_SUPPORTED, "this robot has no legs")
           : kind == USI_GAIT_WAVE ? usi_firmware_refuse(c, "a wave needs four legs")
                                   : usi_firmware_refuse(c, "tripods need all six legs");
}

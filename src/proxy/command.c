// Commands as the firmware takes them: decoded, checked whole, then taken or refused. A command that is
// refused changes nothing but the record of why; the one before it stays in force.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proxy/robot.h"
#include "wire/motor.h"

typedef struct inbox {
    const usi_robot *r;
    const us_sim *sim;
    usi_robot_state *s;
    usi_motor_reason reason;  // of a refusal, in the words of the motor protocol
    char why[USI_REFUSAL_MAX];
} inbox;

// Says why, and returns false.
static bool refuse(inbox *in, const char *format, ...) US_PRINTF(2, 3);
static bool refuse(inbox *in, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(in->why, sizeof in->why, format, args);
    in->reason = USI_MOTOR_OUTSIDE;
    va_end(args);
    return false;
}

static int64_t tick_now(const inbox *in) { return us_sim_get_tick(in->sim); }

// A drive that is told something for itself ends the motion of the body. Wheels that the command does not
// name go on turning as they did, until the body velocity would have timed out; those of a way with an end
// stand.
static void leave_body_motion(inbox *in) {
    const usi_robot *r = in->r;
    usi_robot_state *s = in->s;
    usi_drive_state *d = usi_drives_of(r, s);
    usi_loco_command c;
    double steer[USI_MAX_WHEEL];
    for (int32_t i = 0; i < r->locomotion.n_wheel; i++)
        steer[i] = r->steer_joint[i] >= 0 ? usi_read_q(r, in->sim, s, r->steer_joint[i]) : 0;
    usi_loco_to_wheels(&r->locomotion, s->now, steer, s->steer, &c);
    for (int32_t i = 0; i < r->locomotion.n_wheel; i++) {
        usi_drive_state *wheel = &d[r->joint[r->wheel_joint[i]].drive];
        if (wheel->mode != USI_DRIVE_KEEP) continue;
        wheel->mode = USI_DRIVE_VELOCITY;
        wheel->value = s->motion == USI_MOTION_TWIST ? c.speed[i] : 0;
        wheel->is_lasting = 0;
        wheel->tick = s->motion_tick;
    }
}

static void begin_motion(inbox *in, usi_motion motion) {
    usi_robot_state *s = in->s;
    bool has_body_motion = s->motion != USI_MOTION_SCENE && s->motion != USI_MOTION_JOINTS;
    if (motion == USI_MOTION_JOINTS && has_body_motion && in->r->locomotion.n_wheel > 0)
        leave_body_motion(in);
    if (motion == USI_MOTION_JOINTS) in->s->gait.is_on = 0;
    if (s->locomotor.state == 1) s->locomotor.state = 3;
    if (s->navigator.state == 1) s->navigator.state = 3;
    // Body motion begins from rest or from the last body motion.
    if (s->motion == USI_MOTION_SCENE || s->motion == USI_MOTION_JOINTS) {
        memcpy(s->now, s->odom_v, sizeof s->now);
        memcpy(s->wheel_goal, s->wheel_q, sizeof s->wheel_goal);
    }
    if (motion != USI_MOTION_JOINTS) {
        usi_drive_state *d = usi_drives_of(in->r, s);
        for (int32_t i = 0; i < in->r->locomotion.n_wheel; i++) {
            d[in->r->joint[in->r->wheel_joint[i]].drive].mode = USI_DRIVE_KEEP;
            if (in->r->steer_joint[i] >= 0)
                d[in->r->joint[in->r->steer_joint[i]].drive].mode = USI_DRIVE_KEEP;
        }
        for (int32_t i = 0; i < 3 * in->r->gait.n_leg; i++)
            d[in->r->joint[in->r->leg_joint[i / 3][i % 3]].drive].mode = USI_DRIVE_KEEP;
    }
    s->motion = (int32_t)motion;
    s->motion_tick = tick_now(in);
}

// ---------------------------------------------------------------- body velocity

static bool check_body(inbox *in, double vx, double vy, double wz) {
    const us_network_def *n = in->r->network;
    const double tiny = 1e-9;
    if (!isfinite(vx) || !isfinite(vy) || !isfinite(wz))
        return refuse(in, "a velocity is not a finite number");
    if (!usi_can_move(in->r)) return refuse(in, "this robot has no <locomotion>");
    if (n->max_speed > 0 && hypot(vx, vy) > n->max_speed * (1 + tiny))
        return refuse(in, "speed %.4g m/s is beyond the limit of %.4g m/s", hypot(vx, vy), n->max_speed);
    if (n->max_turn > 0 && fabs(wz) > n->max_turn * (1 + tiny))
        return refuse(in, "turn rate %.4g rad/s is beyond the limit of %.4g rad/s", wz, n->max_turn);
    bool has_side = in->r->gait.n_leg > 0 || in->r->locomotion.kind == USI_LOCOMOTION_ALL_WHEEL;
    if (vy != 0 && !has_side) return refuse(in, "it cannot move sideways (linear.y = %.4g m/s)", vy);
    return true;
}

static bool take_twist(inbox *in, const us_msg_twist *m) {
    if (!isfinite(m->linear.z) || !isfinite(m->angular.x) || !isfinite(m->angular.y))
        return refuse(in, "a velocity is not a finite number");
    if (!check_body(in, m->linear.x, m->linear.y, m->angular.z)) return false;
    begin_motion(in, USI_MOTION_TWIST);
    in->s->want[0] = m->linear.x;
    in->s->want[1] = m->linear.y;
    in->s->want[2] = m->angular.z;
    return true;
}

// ---------------------------------------------------------------- drives one by one

static int32_t find_joint(const usi_robot *r, const char *name) {
    for (int32_t i = 0; i < r->n_joint; i++) {
        if (strcmp(r->joint[i].name, name) == 0) return i;
    }
    return -1;
}

// A drive by its joint's name or its motor name; -1 with the reason.
static int32_t find_drive(inbox *in, const char *name) {
    const usi_robot *r = in->r;
    for (int32_t k = 0; k < r->n_drive; k++) {
        if (r->drive[k].motor[0] && strcmp(r->drive[k].motor, name) == 0) return k;
    }
    int32_t joint = find_joint(r, name);
    if (joint < 0) {
        refuse(in, "there is no joint \"%.60s\"", name);
    } else if (r->joint[joint].drive < 0) {
        refuse(in, "joint \"%.60s\" has no drive", name);
    } else {
        return r->joint[joint].drive;
    }
    return -1;
}

static bool check_position(inbox *in, int32_t drive, double q) {
    const usi_robot_joint *j = &in->r->joint[in->r->drive[drive].joint];
    if (!isfinite(q)) return refuse(in, "position of \"%.60s\" is not a finite number", j->name);
    // Limits are written with a few digits.
    if (q < j->lower - 1e-6 || q > j->upper + 1e-6)
        return refuse(in, "position %.6g of \"%.60s\" is beyond its limits %.6g .. %.6g", q, j->name,
                      j->lower, j->upper);
    if (in->r->drive[drive].kind == USI_DRIVE_BY_TORQUE)
        return refuse(in, "the drive of \"%.60s\" has no gains: it takes torques only", j->name);
    return true;
}

static bool check_speed(inbox *in, int32_t drive, double v) {
    const usi_robot_joint *j = &in->r->joint[in->r->drive[drive].joint];
    if (!isfinite(v)) return refuse(in, "velocity of \"%.60s\" is not a finite number", j->name);
    if (j->most_speed > 0 && fabs(v) > j->most_speed * (1 + 1e-6))
        return refuse(in, "velocity %.6g of \"%.60s\" is beyond its limit of %.6g", v, j->name,
                      j->most_speed);
    if (in->r->drive[drive].kind == USI_DRIVE_BY_TORQUE)
        return refuse(in, "the drive of \"%.60s\" has no gains: it takes torques only", j->name);
    return true;
}

static bool check_torque(inbox *in, int32_t drive, double torque) {
    const usi_robot_joint *j = &in->r->joint[in->r->drive[drive].joint];
    return isfinite(torque) || refuse(in, "torque of \"%.60s\" is not a finite number", j->name);
}

static void set_drive(inbox *in, int32_t drive, usi_drive_mode mode, double value) {
    usi_drive_state *d = &usi_drives_of(in->r, in->s)[drive];
    d->mode = (int32_t)mode;
    d->value = value;
    d->is_lasting = 0;
    d->tick = tick_now(in);
}

// Positions for drives that have a position gain, velocities for those with a velocity gain, torques for the
// others: in the order of the drives in joint_states.
static bool take_joints(inbox *in, const us_msg_float64_multi_array *m) {
    const usi_robot *r = in->r;
    if (r->n_drive == 0) return refuse(in, "this robot has no drives");
    if ((int64_t)m->data._length != r->n_drive)
        return refuse(in, "%u numbers for %d drives", (unsigned)m->data._length, (int)r->n_drive);
    for (int32_t k = 0; k < r->n_drive; k++) {
        double x = m->data._buffer[k];
        bool is_good = r->drive[k].kind == USI_DRIVE_BY_POSITION   ? check_position(in, k, x)
                       : r->drive[k].kind == USI_DRIVE_BY_VELOCITY ? check_speed(in, k, x)
                                                                   : check_torque(in, k, x);
        if (!is_good) return false;
    }
    begin_motion(in, USI_MOTION_JOINTS);
    for (int32_t k = 0; k < r->n_drive; k++) {
        static const usi_drive_mode modes[] = {USI_DRIVE_POSITION, USI_DRIVE_VELOCITY, USI_DRIVE_TORQUE};
        set_drive(in, k, modes[r->drive[k].kind], m->data._buffer[k]);
    }
    return true;
}

static double seconds_of(const us_msg_duration *d) { return (double)d->sec + 1e-9 * (double)d->nanosec; }

static bool take_trajectory(inbox *in, const us_msg_joint_trajectory *m) {
    const usi_robot *r = in->r;
    uint32_t n = m->joint_names._length, n_point = m->points._length;
    if (n_point == 0 || n == 0) return refuse(in, "the trajectory is empty");
    if (n_point > USI_TRAJECTORY_POINTS)
        return refuse(in, "%u points, and room for %d: send it in parts", (unsigned)n_point,
                      USI_TRAJECTORY_POINTS);
    if ((int64_t)n > r->n_drive)
        return refuse(in, "%u joints, and the robot has %d drives", (unsigned)n, (int)r->n_drive);
    for (uint32_t i = 0; i < n; i++) {
        if (find_drive(in, m->joint_names._buffer[i]) < 0) return false;
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(m->joint_names._buffer[i], m->joint_names._buffer[k]) == 0)
                return refuse(in, "joint \"%.60s\" is named twice", m->joint_names._buffer[i]);
        }
    }
    double before = -1;
    for (uint32_t p = 0; p < n_point; p++) {
        const us_msg_joint_trajectory_point *point = &m->points._buffer[p];
        double time = seconds_of(&point->time_from_start);
        if (time < 0 || time <= before)
            return refuse(in, "the time of point %u is not after that of the one before", (unsigned)p);
        before = time;
        if (point->positions._length != n)
            return refuse(in, "point %u has %u positions for %u joints", (unsigned)p,
                          (unsigned)point->positions._length, (unsigned)n);
        if (point->velocities._length != 0 && point->velocities._length != n)
            return refuse(in, "point %u has %u velocities for %u joints", (unsigned)p,
                          (unsigned)point->velocities._length, (unsigned)n);
        for (uint32_t i = 0; i < n; i++) {
            int32_t k = find_drive(in, m->joint_names._buffer[i]);
            if (!check_position(in, k, point->positions._buffer[i])) return false;
            if (point->velocities._length != 0 && !check_speed(in, k, point->velocities._buffer[i]))
                return false;
        }
    }
    begin_motion(in, USI_MOTION_JOINTS);
    usi_robot_state *s = in->s;
    double *times = usi_times_of(r, s), *positions = usi_positions_of(r, s),
           *velocities = usi_velocities_of(r, s);
    s->n_trajectory = (int32_t)n_point;
    s->trajectory_tick = tick_now(in);
    for (uint32_t p = 0; p < n_point; p++)
        times[p] = seconds_of(&m->points._buffer[p].time_from_start);
    for (uint32_t i = 0; i < n; i++) {
        int32_t k = find_drive(in, m->joint_names._buffer[i]);
        set_drive(in, k, USI_DRIVE_TRAJECTORY, usi_read_q(r, in->sim, s, r->drive[k].joint));
        for (uint32_t p = 0; p < n_point; p++) {
            const us_msg_joint_trajectory_point *point = &m->points._buffer[p];
            positions[k * USI_TRAJECTORY_POINTS + (int32_t)p] = point->positions._buffer[i];
            // Not a number: none given, the way between two points is straight.
            velocities[k * USI_TRAJECTORY_POINTS + (int32_t)p] =
                point->velocities._length ? point->velocities._buffer[i] : NAN;
        }
    }
    return true;
}

// ---------------------------------------------------------------- legs

static int32_t leg_of_joint(const usi_robot *r, int32_t joint) {
    for (int32_t i = 0; i < 3 * r->gait.n_leg && joint >= 0; i++) {
        if (r->leg_joint[i / 3][i % 3] == joint) return i / 3;
    }
    return -1;
}

// "tripod", "wave", or "wave" and joints of legs that shall take no part: "wave front_left_femur".
static bool take_gait(inbox *in, const us_msg_string *m) {
    static const char blanks[] = " \t";
    const char *at = m->data + strspn(m->data, blanks);
    size_t n = strcspn(at, blanks);
    bool is_wave = n == 4 && strncmp(at, "wave", n) == 0;
    if (!is_wave && !(n == 6 && strncmp(at, "tripod", n) == 0))
        return refuse(in, "\"%.*s\" is no gait: tripod or wave", (int)(n < 40 ? n : 40), at);
    uint32_t spared = 0;
    for (at += n; at += strspn(at, blanks), (n = strcspn(at, blanks)) > 0; at += n) {
        char name[100];
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), at);
        int32_t leg = leg_of_joint(in->r, find_joint(in->r, name));
        if (leg < 0) return refuse(in, "no leg has a joint \"%.60s\"", name);
        spared |= UINT32_C(1) << leg;
    }
    if (usi_gait_choose(&in->r->gait, &in->s->gait, is_wave ? USI_GAIT_WAVE : USI_GAIT_TRIPOD, spared))
        return true;
    return is_wave ? refuse(in, "a wave needs four legs") : refuse(in, "tripods need all six legs");
}

// ---------------------------------------------------------------- motors

static bool check_profile(inbox *in, int32_t drive, double acceleration, double velocity, double end,
                          usi_trapezoid *out) {
    const usi_robot_joint *j = &in->r->joint[in->r->drive[drive].joint];
    if (!check_position(in, drive, end) || !check_speed(in, drive, velocity)) return false;
    int32_t joint = in->r->drive[drive].joint;
    if (usi_trapezoid_init(out, acceleration, velocity, usi_read_q(in->r, in->sim, in->s, joint),
                           usi_read_v(in->r, in->sim, in->s, joint), end))
        return refuse(in, "acceleration and velocity of the profile of \"%.60s\" must be above 0", j->name);
    return true;
}

// Mode as in MotorProfile. Checks only when `takes` is false.
static bool motor_command(inbox *in, int32_t drive, int mode, double value, double acceleration,
                          double velocity, bool takes) {
    usi_trapezoid profile;
    double q = usi_read_q(in->r, in->sim, in->s, in->r->drive[drive].joint);
    switch (mode) {
    case 0:
        if (takes)
            set_drive(in, drive,
                      in->r->drive[drive].kind == USI_DRIVE_BY_TORQUE ? USI_DRIVE_TORQUE : USI_DRIVE_POSITION,
                      in->r->drive[drive].kind == USI_DRIVE_BY_TORQUE ? 0 : q);
        return true;
    case 1:
        if (!check_speed(in, drive, value)) return false;
        if (takes) set_drive(in, drive, USI_DRIVE_VELOCITY, value);
        return true;
    case 2:
        if (!check_position(in, drive, value)) return false;
        if (takes) set_drive(in, drive, USI_DRIVE_POSITION, value);
        return true;
    case 3:
        if (!check_profile(in, drive, acceleration, velocity, value, &profile)) return false;
        if (takes) {
            set_drive(in, drive, USI_DRIVE_PROFILE, value);
            usi_drives_of(in->r, in->s)[drive].profile = profile;
        }
        return true;
    case 4:
        if (!check_torque(in, drive, value)) return false;
        if (takes) set_drive(in, drive, USI_DRIVE_TORQUE, value);
        return true;
    default:
        return refuse(in, "motor mode %d is none of 0 stop, 1 velocity, 2 position, 3 trapezoid, 4 torque",
                      mode);
    }
}

static bool take_motors(inbox *in, const us_msg_motor_group_command *m) {
    if (m->motors._length == 0) return refuse(in, "the command names no motor");
    for (int takes = 0; takes < 2; takes++) {
        if (takes) begin_motion(in, USI_MOTION_JOINTS);
        for (uint32_t i = 0; i < m->motors._length; i++) {
            const us_msg_motor_profile *p = &m->motors._buffer[i];
            int32_t drive = find_drive(in, p->name);
            if (drive < 0 ||
                !motor_command(in, drive, p->mode, p->value, p->acceleration, p->velocity, takes))
                return false;
        }
    }
    return true;
}

// A line of the ASCII protocol, as a String that ends with ';'.
static bool take_motor_text(inbox *in, const us_msg_string *m) {
    usi_motor_command c;
    if (usi_motor_parse(m->data, strlen(m->data), &c) != USI_MOTOR_GOOD)
        return refuse(in, "\"%.60s\" is no motor command", m->data);
    if (c.kind == USI_MOTOR_STOP_ALL) {
        begin_motion(in, USI_MOTION_STOP);
        usi_robot_stop(in->r, in->sim, in->s);
        return true;
    }
    int32_t drive = find_drive(in, c.name);
    if (drive < 0) return false;
    usi_drive_state *d = &usi_drives_of(in->r, in->s)[drive];
    if (c.kind == USI_MOTOR_POWER) {
        d->is_off = !c.is_on;
        return true;
    }
    if (d->is_off && c.kind != USI_MOTOR_STOP) {
        refuse(in, "motor %.4s has no power", c.name);
        in->reason = USI_MOTOR_UNPOWERED;
        return false;
    }
    int mode = c.kind == USI_MOTOR_STOP       ? 0
               : c.kind == USI_MOTOR_VELOCITY ? 1
               : c.kind == USI_MOTOR_POSITION ? 2
                                              : 3;
    if (!motor_command(in, drive, mode, c.value, c.acceleration, c.max_velocity, false)) return false;
    begin_motion(in, USI_MOTION_JOINTS);
    motor_command(in, drive, mode, c.value, c.acceleration, c.max_velocity, true);
    // By this protocol a motor turns until it is told otherwise.
    d->is_lasting = 1;
    return true;
}

// ---------------------------------------------------------------- rover services

static bool take_locomotor(inbox *in, const us_msg_locomotor_command *m) {
    usi_robot_state *s = in->s;
    const us_network_def *n = in->r->network;
    double speed = m->speed;
    if (!usi_can_move(in->r)) return refuse(in, "this robot has no <locomotion>");
    switch (m->mode) {
    case 0:
        begin_motion(in, USI_MOTION_STOP);
        usi_robot_stop(in->r, in->sim, s);
        s->locomotor.state = 3;
        return true;
    case 1:
        if (!check_body(in, m->speed, m->side_speed, m->turn_rate)) return false;
        begin_motion(in, USI_MOTION_TWIST);
        s->want[0] = m->speed;
        s->want[1] = m->side_speed;
        s->want[2] = m->turn_rate;
        break;
    case 2:
        if (!isfinite(m->distance) || !isfinite(m->curvature) || !isfinite(speed) || speed == 0)
            return refuse(in, "an arc needs a distance, a curvature and a speed other than 0");
        if (!check_body(in, speed, 0, speed * m->curvature)) return false;
        begin_motion(in, USI_MOTION_ARC);
        s->goal = fabs(m->distance);
        s->speed = fabs(speed);
        // Backwards when one of the two is negative.
        s->want[0] = (speed < 0) != (m->distance < 0) ? -fabs(speed) : fabs(speed);
        s->want[1] = 0;
        s->want[2] = s->want[0] * m->curvature;
        break;
    case 3:
        if (!isfinite(m->angle) || !isfinite(m->turn_rate) || m->turn_rate == 0)
            return refuse(in, "a turn needs an angle and a turn rate other than 0");
        if (in->r->locomotion.n_wheel > 0 && in->r->locomotion.kind == USI_LOCOMOTION_ACKERMANN)
            return refuse(in, "it cannot turn on the spot");
        if (n->max_turn > 0 && fabs(m->turn_rate) > n->max_turn * (1 + 1e-9))
            return refuse(in, "turn rate %.4g rad/s is beyond the limit of %.4g rad/s", m->turn_rate,
                          n->max_turn);
        begin_motion(in, USI_MOTION_TURN);
        s->goal = fabs(m->angle);
        s->speed = fabs(m->turn_rate);
        s->want[0] = s->want[1] = 0;
        s->want[2] = m->angle < 0 ? -s->speed : s->speed;
        break;
    default:
        return refuse(in, "locomotor mode %d is none of 0 stop, 1 velocity, 2 arc, 3 turn", (int)m->mode);
    }
    s->done = 0;
    s->locomotor.state = 1;
    return true;
}

static double yaw_of(double w, double x, double y, double z) {
    return atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
}

static bool take_pose(inbox *in, const us_msg_pose_estimator_command *m) {
    usi_robot_state *s = in->s;
    if (m->mode == 0) return true;
    if (m->mode != 1) return refuse(in, "pose estimator mode %d is none of 0 none, 1 set pose", (int)m->mode);
    const double q[] = {m->pose.orientation.w, m->pose.orientation.x, m->pose.orientation.y,
                        m->pose.orientation.z};
    double norm = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    if (!isfinite(m->pose.position.x) || !isfinite(m->pose.position.y) || !(fabs(norm - 1) < 1e-3))
        return refuse(in, "the pose is not finite, or its quaternion not of length 1");
    // The offset brings odometry to where the robot is said to be.
    const double given[3] = {m->pose.position.x, m->pose.position.y, yaw_of(q[0], q[1], q[2], q[3])},
                 none[3] = {0, 0, 0};
    double back[3];
    usi_odometry_between(s->odom, none, back);
    usi_odometry_compose(given, back, s->pose_offset);
    s->pose.state = 1;
    return true;
}

static bool take_navigator(inbox *in, const us_msg_navigator_command *m) {
    usi_robot_state *s = in->s;
    if (!usi_can_move(in->r)) return refuse(in, "this robot has no <locomotion>");
    if (m->mode == 0) {
        begin_motion(in, USI_MOTION_STOP);
        usi_robot_stop(in->r, in->sim, s);
        s->navigator.state = 3;
        return true;
    }
    if (m->mode > 2)
        return refuse(in, "navigator mode %d is none of 0 stop, 1 go to, 2 go along", (int)m->mode);
    uint32_t n = m->points._length;
    if (n == 0 || n > USI_ROUTE_POINTS)
        return refuse(in, "%u points: it takes 1 to %d", (unsigned)n, USI_ROUTE_POINTS);
    if (!(m->tolerance > 0) || !(m->speed > 0) || !isfinite(m->tolerance))
        return refuse(in, "tolerance and speed must be above 0");
    if (!check_body(in, m->speed, 0, 0)) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(m->points._buffer[i].x) || !isfinite(m->points._buffer[i].y))
            return refuse(in, "point %u is not finite", (unsigned)i);
    }
    begin_motion(in, USI_MOTION_NAVIGATE);
    uint32_t first = m->mode == 1 ? n - 1 : 0;
    s->n_route = (int32_t)(n - first);
    s->next_route = 0;
    memset(s->route, 0, sizeof s->route);
    for (uint32_t i = first; i < n; i++) {
        s->route[i - first][0] = m->points._buffer[i].x;
        s->route[i - first][1] = m->points._buffer[i].y;
    }
    s->tolerance = m->tolerance;
    s->speed = m->speed;
    s->navigator.state = 1;
    return true;
}

// ---------------------------------------------------------------- all

// The number that a service's command carries is told in its status, whether it was taken or not.
static void answer(usi_service_state *service, uint32_t sequence, bool is_taken, const char *why) {
    service->sequence = sequence;
    if (!is_taken) service->state = 4;
    memset(service->message, 0, sizeof service->message);
    if (!is_taken) snprintf(service->message, sizeof service->message, "%.150s", why);
}

// Commands to the rover services, from a topic or in a request.
static bool serve_motors(inbox *in, const us_msg_motor_group_command *m) {
    bool is_taken = take_motors(in, m);
    answer(&in->s->motors, m->sequence, is_taken, in->why);
    return is_taken;
}

static bool serve_locomotor(inbox *in, const us_msg_locomotor_command *m) {
    bool is_taken = take_locomotor(in, m);
    answer(&in->s->locomotor, m->sequence, is_taken, in->why);
    return is_taken;
}

static bool serve_pose(inbox *in, const us_msg_pose_estimator_command *m) {
    bool is_taken = take_pose(in, m);
    answer(&in->s->pose, m->sequence, is_taken, in->why);
    return is_taken;
}

static bool serve_navigator(inbox *in, const us_msg_navigator_command *m) {
    bool is_taken = take_navigator(in, m);
    answer(&in->s->navigator, m->sequence, is_taken, in->why);
    return is_taken;
}

// Every request begins with who asks and with which number.
static void note_request(usi_reply *reply, int32_t topic, uint64_t guid, int64_t seq) {
    reply->service = topic - USI_COMMAND_ASK;
    reply->guid = guid;
    reply->seq = seq;
}

static bool take_message(inbox *in, int32_t topic, const void *m, usi_reply *reply) {
    switch ((usi_command_topic)topic) {
    case USI_COMMAND_TWIST:
        return take_twist(in, m);
    case USI_COMMAND_TWIST_STAMPED:
        return take_twist(in, &((const us_msg_twist_stamped *)m)->twist);
    case USI_COMMAND_TRAJECTORY:
        return take_trajectory(in, m);
    case USI_COMMAND_JOINTS:
        return take_joints(in, m);
    case USI_COMMAND_MOTORS:
        return serve_motors(in, m);
    case USI_COMMAND_LOCOMOTOR:
        return serve_locomotor(in, m);
    case USI_COMMAND_POSE:
        return serve_pose(in, m);
    case USI_COMMAND_NAVIGATOR:
        return serve_navigator(in, m);
    case USI_COMMAND_GAIT:
        return take_gait(in, m);
    case USI_COMMAND_MOTOR_TEXT:
        return take_motor_text(in, m);
    case USI_COMMAND_ASK_MOTORS: {
        const us_msg_motor_group_request *q = m;
        note_request(reply, topic, q->guid, q->seq);
        return serve_motors(in, &q->command);
    }
    case USI_COMMAND_ASK_LOCOMOTOR: {
        const us_msg_locomotor_request *q = m;
        note_request(reply, topic, q->guid, q->seq);
        return serve_locomotor(in, &q->command);
    }
    case USI_COMMAND_ASK_POSE: {
        const us_msg_pose_estimator_request *q = m;
        note_request(reply, topic, q->guid, q->seq);
        return serve_pose(in, &q->command);
    }
    case USI_COMMAND_ASK_NAVIGATOR: {
        const us_msg_navigator_request *q = m;
        note_request(reply, topic, q->guid, q->seq);
        return serve_navigator(in, &q->command);
    }
    default:
        return false;
    }
}

usi_motor_reason usi_robot_command(const usi_robot *r, const us_sim *sim, usi_robot_state *s, int32_t topic,
                                   const void *bytes, size_t length, usi_reply *out_reply) {
    inbox in = {.r = r, .sim = sim, .s = s};
    us_error err = {0};
    const void *m = NULL;
    bool is_taken = false;
    *out_reply = (usi_reply){.service = -1};
    if (us_message_decode(usi_command_type(topic), bytes, length, r->proxy->decoded, r->proxy->n_decoded, &m,
                          &err)) {
        refuse(&in, "%.140s", err.message);
    } else {
        is_taken = take_message(&in, topic, m, out_reply);
    }
    out_reply->is_accepted = is_taken;
    if (!is_taken) memcpy(out_reply->message, in.why, sizeof in.why);
    s->n_command += is_taken;
    s->n_refused += !is_taken;
    if (is_taken) return USI_MOTOR_GOOD;
    s->refused_tick = us_sim_get_tick(sim);
    memset(s->refusal, 0, sizeof s->refusal);
    snprintf(s->refusal, sizeof s->refusal, "%.40s: %.115s", usi_command_name(topic), in.why);
    return in.reason;
}

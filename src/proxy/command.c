// Commands from the network to the firmware: decoded, given to the function of the firmware that they mean,
// and counted. A command that is refused changes nothing but the record of why; the one before it stays in
// force.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/proxy__robot.h"
#include "proxy/rover_link.h"
#include "proxy/rover_property.h"

typedef struct inbox {
    const usi_robot *r;
    const us_sim *sim;
    usi_firmware_request firmware;
    usi_motor_reason reason;  // of a refusal, in the words of the ASCII link
} inbox;

#define refuse(in, ...) usi_firmware_refuse(&(in)->firmware, __VA_ARGS__)

// ---------------------------------------------------------------- body velocity

static bool take_twist(inbox *in, const us_msg_twist *m) {
    if (!isfinite(m->linear.z) || !isfinite(m->angular.x) || !isfinite(m->angular.y))
        return refuse(in, "a velocity is not a finite number");
    const double body[3] = {m->linear.x, m->linear.y, m->angular.z};
    return usi_firmware_drive_velocity(&in->firmware, body);
}

// ---------------------------------------------------------------- drives one by one

static int32_t find_joint(const usi_firmware *fw, const char *name) {
    for (int32_t i = 0; i < fw->n_joint; i++) {
        if (strcmp(fw->joint[i].name, name) == 0) return i;
    }
    return -1;
}

// A drive by its joint's name or its motor name; -1 with the reason.
static int32_t find_drive(inbox *in, const char *name) {
    const usi_firmware *fw = &in->r->model->firmware;
    for (int32_t k = 0; k < fw->n_drive; k++) {
        if (in->r->model->drive[k].motor[0] && strcmp(in->r->model->drive[k].motor, name) == 0) return k;
    }
    int32_t joint = find_joint(fw, name);
    if (joint < 0) {
        usi_firmware_refuse_as(&in->firmware, US_ROVER_UNKNOWN_NAME, "there is no joint \"%.60s\"", name);
    } else if (fw->joint[joint].drive < 0) {
        usi_firmware_refuse_as(&in->firmware, US_ROVER_NOT_SUPPORTED, "joint \"%.60s\" has no drive", name);
    } else {
        return fw->joint[joint].drive;
    }
    return -1;
}

// Positions for drives that have a position gain, velocities for those with a velocity gain, torques for the
// others: in the order of the drives in joint_states.
static bool take_joints(inbox *in, const us_msg_float64_multi_array *m) {
    static const usi_drive_mode modes[] = {USI_DRIVE_POSITION, USI_DRIVE_VELOCITY, USI_DRIVE_TORQUE};
    const usi_firmware *fw = &in->r->model->firmware;
    if (fw->n_drive == 0) return refuse(in, "this robot has no drives");
    if ((int64_t)m->data._length != fw->n_drive)
        return refuse(in, "%u numbers for %d drives", (unsigned)m->data._length, (int)fw->n_drive);
    usi_drive_command *commands = in->r->proxy->commands;
    for (int32_t k = 0; k < fw->n_drive; k++)
        commands[k] =
            (usi_drive_command){.drive = k, .mode = modes[fw->drive[k].kind], .value = m->data._buffer[k]};
    return usi_firmware_command_drives(&in->firmware, commands, fw->n_drive);
}

static double seconds_of(const us_msg_duration *d) { return (double)d->sec + 1e-9 * (double)d->nanosec; }

static bool take_trajectory(inbox *in, const us_msg_joint_trajectory *m) {
    const usi_firmware *fw = &in->r->model->firmware;
    int32_t *drives = (int32_t *)(void *)in->r->proxy->commands;
    uint32_t n = m->joint_names._length, n_point = m->points._length;
    usi_trajectory_point points[USI_TRAJECTORY_POINTS];
    if (n_point > USI_TRAJECTORY_POINTS)
        return refuse(in, "%u points, and room for %d: send it in parts", (unsigned)n_point,
                      USI_TRAJECTORY_POINTS);
    if ((int64_t)n > fw->n_drive)
        return refuse(in, "%u joints, and the robot has %d drives", (unsigned)n, (int)fw->n_drive);
    for (uint32_t i = 0; i < n; i++) {
        drives[i] = find_drive(in, m->joint_names._buffer[i]);
        if (drives[i] < 0) return false;
    }
    for (uint32_t p = 0; p < n_point; p++) {
        const us_msg_joint_trajectory_point *point = &m->points._buffer[p];
        if (point->positions._length != n)
            return refuse(in, "point %u has %u positions for %u joints", (unsigned)p,
                          (unsigned)point->positions._length, (unsigned)n);
        if (point->velocities._length != 0 && point->velocities._length != n)
            return refuse(in, "point %u has %u velocities for %u joints", (unsigned)p,
                          (unsigned)point->velocities._length, (unsigned)n);
        points[p] = (usi_trajectory_point){seconds_of(&point->time_from_start), point->positions._buffer,
                                           point->velocities._length ? point->velocities._buffer : NULL};
    }
    const usi_trajectory trajectory = {(int32_t)n, (int32_t)n_point, drives, points};
    return usi_firmware_follow(&in->firmware, &trajectory);
}

// ---------------------------------------------------------------- legs

static int32_t leg_of_joint(const usi_firmware *fw, int32_t joint) {
    for (int32_t i = 0; i < 3 * fw->gait.n_leg && joint >= 0; i++) {
        if (fw->leg_joint[i / 3][i % 3] == joint) return i / 3;
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
    for (at += n; *(at += strspn(at, blanks)); at += n) {
        n = strcspn(at, blanks);
        char name[100];
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), at);
        int32_t leg = leg_of_joint(&in->r->model->firmware, find_joint(&in->r->model->firmware, name));
        if (leg < 0) return refuse(in, "no leg has a joint \"%.60s\"", name);
        spared |= UINT32_C(1) << leg;
    }
    return usi_firmware_set_gait(&in->firmware, is_wave ? USI_GAIT_WAVE : USI_GAIT_TRIPOD, spared);
}

// ---------------------------------------------------------------- motors

// Mode as in MotorProfile.
static bool read_mode(inbox *in, int mode, usi_drive_mode *out) {
    static const usi_drive_mode modes[] = {USI_DRIVE_KEEP, USI_DRIVE_VELOCITY, USI_DRIVE_POSITION,
                                           USI_DRIVE_PROFILE, USI_DRIVE_TORQUE};
    if (mode < 0 || mode > 4)
        return refuse(in, "motor mode %d is none of 0 stop, 1 velocity, 2 position, 3 trapezoid, 4 torque",
                      mode);
    *out = modes[mode];
    return true;
}

static bool take_motors(inbox *in, const us_msg_motor_group_command *m) {
    if (m->motors._length == 0) return refuse(in, "the command names no motor");
    usi_drive_command *commands = in->r->proxy->commands;
    if ((int64_t)m->motors._length > in->r->proxy->n_commands)
        return refuse(in, "%u motors, and the robot has %d drives", (unsigned)m->motors._length,
                      (int)in->r->model->firmware.n_drive);
    for (uint32_t i = 0; i < m->motors._length; i++) {
        const us_msg_motor_profile *p = &m->motors._buffer[i];
        usi_drive_command *c = &commands[i];
        *c = (usi_drive_command){.drive = find_drive(in, p->name),
                                 .value = p->value,
                                 .acceleration = p->acceleration,
                                 .velocity = p->velocity};
        if (c->drive < 0 || !read_mode(in, p->mode, &c->mode)) return false;
    }
    return usi_firmware_command_drives(&in->firmware, commands, (int32_t)m->motors._length);
}

// A line of the ASCII link, as a String without its ';'.
static bool take_motor_text(inbox *in, const us_msg_string *m) {
    return usi_link_command(in->r, in->sim, &in->firmware, m->data, &in->reason);
}

// ---------------------------------------------------------------- rover services

static bool take_locomotor(inbox *in, const us_msg_locomotor_command *m) {
    usi_firmware_state *s = in->firmware.s;
    const double body[3] = {m->speed, m->side_speed, m->turn_rate};
    bool is_taken = false;
    if (!usi_can_move(in->r))
        return usi_firmware_refuse_as(&in->firmware, US_ROVER_NOT_SUPPORTED,
                                      "this robot has no <locomotion>");
    if (!(m->timeout >= 0)) return refuse(in, "the time-out is not 0 or more");
    switch (m->mode) {
    case 0:
        usi_firmware_stop(&in->firmware);
        s->locomotor.state = US_ROVER_STOPPED;
        return true;
    case 1:
        is_taken = usi_firmware_drive_velocity(&in->firmware, body);
        break;
    case 2:
        is_taken = usi_firmware_drive_arc(&in->firmware, m->distance, m->curvature, m->speed);
        break;
    case 3:
        is_taken = usi_firmware_rotate(&in->firmware, m->angle, m->turn_rate);
        break;
    default:
        return refuse(in, "locomotor mode %d is none of 0 stop, 1 velocity, 2 arc, 3 turn", (int)m->mode);
    }
    if (!is_taken) return false;
    if (m->mode > 1) usi_firmware_limit_time(&in->firmware, m->timeout);
    s->done = 0;
    s->locomotor.state = US_ROVER_MOVING;
    return true;
}

static double yaw_of(double w, double x, double y, double z) {
    return atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
}

// From the frame that a command names to map: map itself or none, the robot's site, its odometry, its base.
static bool place_in_map(inbox *in, const char *frame, const double at[3], double out[3]) {
    const usi_firmware_state *s = in->firmware.s;
    const usi_robot_model *model = in->r->model;
    double pose[3];
    char site[200];
    snprintf(site, sizeof site, "%.180ssite", model->network->frame_prefix);
    if (frame[0] == 0 || strcmp(frame, "map") == 0) {
        memcpy(out, at, 3 * sizeof *at);
    } else if (strcmp(frame, site) == 0) {
        usi_site_to_map(s, at, out);
    } else if (strcmp(frame, model->odom_frame) == 0) {
        usi_odometry_compose(s->pose_offset, at, out);
    } else if (strcmp(frame, model->base_frame) == 0) {
        usi_firmware_pose(s, pose);
        usi_odometry_compose(pose, at, out);
    } else {
        return usi_firmware_refuse_as(&in->firmware, US_ROVER_UNKNOWN_NAME,
                                      "the frame \"%.60s\" is none of map, %.40s, odometry and base", frame,
                                      site);
    }
    return true;
}

static bool take_pose(inbox *in, const us_msg_pose_estimator_command *m) {
    if (m->mode == 0) return true;
    if (m->mode > 2)
        return refuse(in, "pose estimator mode %d is none of 0 none, 1 set pose, 2 set site", (int)m->mode);
    const double q[] = {m->pose.orientation.w, m->pose.orientation.x, m->pose.orientation.y,
                        m->pose.orientation.z};
    double norm = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    if (!isfinite(m->pose.position.x) || !isfinite(m->pose.position.y) || !(fabs(norm - 1) < 1e-3))
        return refuse(in, "the pose is not finite, or its quaternion not of length 1");
    const double pose[3] = {m->pose.position.x, m->pose.position.y, yaw_of(q[0], q[1], q[2], q[3])};
    double place[3];
    if (m->mode == 2) {
        memcpy(in->firmware.s->setting.site, pose, sizeof pose);
        return true;
    }
    if (!place_in_map(in, m->header.frame_id, pose, place)) return false;
    usi_firmware_set_pose(&in->firmware, place);
    in->firmware.s->pose.state = US_ROVER_MOVING;
    return true;
}

static bool take_navigator(inbox *in, const us_msg_navigator_command *m) {
    usi_firmware_state *s = in->firmware.s;
    if (!usi_can_move(in->r))
        return usi_firmware_refuse_as(&in->firmware, US_ROVER_NOT_SUPPORTED,
                                      "this robot has no <locomotion>");
    if (!(m->timeout >= 0)) return refuse(in, "the time-out is not 0 or more");
    if (m->mode == 0) {
        usi_firmware_stop(&in->firmware);
        s->navigator.state = US_ROVER_STOPPED;
        return true;
    }
    if (m->mode > 2)
        return refuse(in, "navigator mode %d is none of 0 stop, 1 go to, 2 go along", (int)m->mode);
    uint32_t n = m->points._length;
    if (n > USI_ROUTE_POINTS) return refuse(in, "%u points: it takes 1 to %d", (unsigned)n, USI_ROUTE_POINTS);
    double points[USI_ROUTE_POINTS][2];
    for (uint32_t i = 0; i < n; i++) {
        const double at[3] = {m->points._buffer[i].x, m->points._buffer[i].y, 0};
        double place[3];
        if (!place_in_map(in, m->header.frame_id, at, place)) return false;
        memcpy(points[i], place, sizeof points[i]);
    }
    int32_t first = m->mode == 1 ? (int32_t)n - 1 : 0;
    if (!usi_firmware_navigate(&in->firmware, (const double(*)[2])points, (int32_t)n, first, m->speed,
                               m->tolerance))
        return false;
    usi_firmware_limit_time(&in->firmware, m->timeout);
    s->navigator.state = US_ROVER_MOVING;
    return true;
}

// ---------------------------------------------------------------- all

// The number that a service's command carries stands in its status, whether it was taken or not.
static void answer(inbox *in, usi_service_state *service, uint32_t sequence, bool is_taken) {
    service->sequence = sequence;
    service->error = (uint8_t)(is_taken ? US_ROVER_FINE : in->firmware.error);
    if (!is_taken) service->state = US_ROVER_REFUSED;
    memset(service->message, 0, sizeof service->message);
    if (!is_taken) snprintf(service->message, sizeof service->message, "%.150s", in->firmware.why);
}

// Commands to the rover services, from a topic or in a request.
static bool serve_motors(inbox *in, const us_msg_motor_group_command *m) {
    bool is_taken = take_motors(in, m);
    answer(in, &in->firmware.s->motors, m->sequence, is_taken);
    return is_taken;
}

static bool serve_locomotor(inbox *in, const us_msg_locomotor_command *m) {
    bool is_taken = take_locomotor(in, m);
    answer(in, &in->firmware.s->locomotor, m->sequence, is_taken);
    return is_taken;
}

static bool serve_pose(inbox *in, const us_msg_pose_estimator_command *m) {
    bool is_taken = take_pose(in, m);
    answer(in, &in->firmware.s->pose, m->sequence, is_taken);
    return is_taken;
}

static bool serve_navigator(inbox *in, const us_msg_navigator_command *m) {
    bool is_taken = take_navigator(in, m);
    answer(in, &in->firmware.s->navigator, m->sequence, is_taken);
    return is_taken;
}

// Who asks, and with which number.
static void note_request(int32_t topic, const void *m, usi_reply *reply) {
    switch ((usi_command_topic)topic) {
    case USI_COMMAND_ASK_MOTORS:
        reply->guid = ((const us_msg_motor_group_request *)m)->guid;
        reply->seq = ((const us_msg_motor_group_request *)m)->seq;
        break;
    case USI_COMMAND_ASK_LOCOMOTOR:
        reply->guid = ((const us_msg_locomotor_request *)m)->guid;
        reply->seq = ((const us_msg_locomotor_request *)m)->seq;
        break;
    case USI_COMMAND_ASK_POSE:
        reply->guid = ((const us_msg_pose_estimator_request *)m)->guid;
        reply->seq = ((const us_msg_pose_estimator_request *)m)->seq;
        break;
    case USI_COMMAND_ASK_NAVIGATOR:
        reply->guid = ((const us_msg_navigator_request *)m)->guid;
        reply->seq = ((const us_msg_navigator_request *)m)->seq;
        break;
    case USI_COMMAND_ASK_PROPERTIES:
        reply->guid = ((const us_msg_properties_request *)m)->guid;
        reply->seq = ((const us_msg_properties_request *)m)->seq;
        break;
    case USI_COMMAND_ASK_WAIT:
        reply->guid = ((const us_msg_wait_request *)m)->guid;
        reply->seq = ((const us_msg_wait_request *)m)->seq;
        break;
    default:
        return;
    }
    reply->service = topic - USI_COMMAND_ASK;
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
    case USI_COMMAND_ASK_MOTORS:
        return serve_motors(in, &((const us_msg_motor_group_request *)m)->command);
    case USI_COMMAND_ASK_LOCOMOTOR:
        return serve_locomotor(in, &((const us_msg_locomotor_request *)m)->command);
    case USI_COMMAND_ASK_POSE:
        return serve_pose(in, &((const us_msg_pose_estimator_request *)m)->command);
    case USI_COMMAND_ASK_NAVIGATOR:
        return serve_navigator(in, &((const us_msg_navigator_request *)m)->command);
    case USI_COMMAND_ASK_PROPERTIES:
        return usi_ask_properties(&in->firmware, m, reply);
    case USI_COMMAND_ASK_WAIT:
        usi_ask_wait(in->r, in->firmware.s, m, reply);
        return true;
    default:
        return false;
    }
}

usi_motor_reason usi_robot_command(const usi_robot *r, const us_sim *sim, usi_robot_state *s,
                                   const usi_mail *mail, usi_reply *out_reply) {
    usi_firmware_state *f = usi_firmware_of(r, s);
    const usi_firmware_readings readings = usi_robot_read(r, sim, s);
    inbox in = {.r = r,
                .sim = sim,
                .firmware = {&r->model->firmware, f, &readings, "", US_ROVER_FINE},
                .reason = USI_MOTOR_OUTSIDE};
    us_error err = {0};
    const void *m = NULL;
    bool is_taken = false;
    *out_reply = (usi_reply){.service = -1};
    if (usi_inlet_of(mail->topic) >= 0) {
        const bool may =
            usi_source_may_command(r, s, mail, readings.tick, in.firmware.why, sizeof in.firmware.why);
        is_taken = usi_interface_command(r, mail, may, &in.firmware, out_reply);
        if (out_reply->is_for_others) return USI_MOTOR_GOOD;
        if (!is_taken && !may) in.reason = USI_MOTOR_BUSY;
    } else if (us_message_decode(usi_command_type(mail->topic), usi_mail_bytes(mail), mail->length,
                                 r->proxy->decoded, r->proxy->n_decoded, &m, &err)) {
        refuse(&in, "%.140s", err.message);
    } else {
        note_request(mail->topic, m, out_reply);
        if (usi_source_may_command(r, s, mail, readings.tick, in.firmware.why, sizeof in.firmware.why)) {
            is_taken = take_message(&in, mail->topic, m, out_reply);
        } else {
            in.reason = USI_MOTOR_BUSY;
            in.firmware.error = US_ROVER_BUSY;
        }
    }
    // A wait has an answer of its own, now or later; that it was asked is no refusal.
    if (mail->topic != USI_COMMAND_ASK_WAIT) {
        out_reply->is_accepted = is_taken;
        out_reply->error = is_taken ? US_ROVER_FINE : in.firmware.error;
    }
    if (!is_taken) memcpy(out_reply->message, in.firmware.why, sizeof in.firmware.why);
    f->n_command += is_taken;
    f->n_refused += !is_taken;
    if (is_taken) {
        usi_source_has_commanded(r, s, mail, readings.tick);
        return USI_MOTOR_GOOD;
    }
    f->refused_tick = readings.tick;
    memset(f->refusal, 0, sizeof f->refusal);
    const int32_t inlet = usi_inlet_of(mail->topic);
    snprintf(f->refusal, sizeof f->refusal, "%.40s: %.115s",
             inlet < 0 ? usi_command_name(r->model->network, mail->topic)
                       : r->model->interface_.inlet[inlet].def->topic,
             in.firmware.why);
    return in.reason;
}

// What a robot tells: state to messages, messages to bytes, bytes on their way.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proxy/robot.h"

bool usi_is_due(double rate, double step, int64_t tick) {
    if (rate <= 0) return false;
    // The small term forgives rounding: at 50 Hz and 1 ms it is every 20th tick exactly.
    return floor((double)tick * step * rate + 1e-6) != floor((double)(tick - 1) * step * rate + 1e-6);
}

int64_t usi_time_of(const us_proxy *p, int64_t tick) {
    // In two parts, so that a step of whole nanoseconds loses nothing in days.
    double ns = p->step * 1e9, whole = nearbyint(ns);
    return fabs(ns - whole) < 1e-6 ? tick * (int64_t)whole : (int64_t)llround((double)tick * ns);
}

static us_msg_time stamp_of(int64_t time) {
    return (us_msg_time){(int32_t)(time / 1000000000), (uint32_t)(time % 1000000000)};
}

// ---------------------------------------------------------------- memory of one message

typedef struct pen {
    us_proxy *p;
    usi_robot *r;
    const us_sim *sim;
    const usi_robot_state *s;
    const usi_firmware_state *firmware;
    int64_t time;
    size_t used;
    usi_sink sink;
} pen;

static void *take(pen *w, size_t n, size_t each) {
    size_t bytes = (n * each + 15) / 16 * 16;
    if (w->used + bytes > w->p->n_message) return NULL;
    void *memory = (char *)w->p->message + w->used;
    w->used += bytes;
    memset(memory, 0, bytes);
    return memory;
}

// Makes a sequence of n elements; of none when there is no room.
#define TAKE(w, sequence, n)                                                               \
    do {                                                                                   \
        (sequence)._buffer = take(w, (size_t)(n), sizeof *(sequence)._buffer);             \
        (sequence)._length = (sequence)._maximum = (sequence)._buffer ? (uint32_t)(n) : 0; \
    } while (0)

// The structs of the IDL compiler have texts that may be written; encoding only reads them.
static char *text(const char *constant) { return usi_text(constant); }

static void head(pen *w, us_msg_header *header, const char *frame) {
    header->stamp = stamp_of(usi_timing_stamp(w->p, w->r, w->time));
    header->frame_id = text(frame);
}

// ---------------------------------------------------------------- sending

static bool encode(us_proxy *p, const us_message_type *type, const void *message, size_t *out_length) {
    if (!us_message_encode(type, message, p->bytes, p->n_byte, out_length)) return true;
    p->n_too_long++;
    return false;
}

us_status usi_proxy_send(us_proxy *p, us_writer *writer, int32_t says, const us_message_type *type,
                         const void *message, int64_t time) {
    size_t length = 0;
    if (!encode(p, type, message, &length)) return US_ERR_LIMIT;
    p->n_sample++;
    if (p->record.sample && says >= 0)
        p->record.sample(p->record.context, says, time, time, p->bytes, length);
    if (writer) usi_outbox_put(p->outbox, writer, p->bytes, length, time, 0);
    usi_channel_count(p, says);
    usi_channel_tap(p, says, time, p->bytes, length);
    return US_OK;
}

// A sample of a robot that leaves at `due` and is there now.
static void deliver(us_proxy *p, usi_robot *r, int32_t outlet, const void *bytes, size_t length, int64_t time,
                    int64_t due) {
    p->n_sample++;
    // Replies have no channel: statuses are recorded.
    if (p->record.sample && outlet < US_TOPIC_COUNT)
        p->record.sample(p->record.context, r->says[outlet], time, due, bytes, length);
    if (r->writer[outlet])
        usi_outbox_put(p->outbox, r->writer[outlet], bytes, length, usi_timing_stamp(p, r, time),
                       usi_timing_due(p, r, time, outlet));
    if (outlet >= US_TOPIC_COUNT) return;
    r->has_told[outlet] = true;
    usi_channel_count(p, r->says[outlet]);
    usi_channel_tap(p, r->says[outlet], time, bytes, length);
}

static void send_outlet(pen *w, int32_t outlet, const us_message_type *type, const void *message) {
    us_proxy *p = w->p;
    usi_robot *r = w->r;
    size_t length = 0;
    if (!encode(p, type, message, &length)) return;
    switch (w->sink) {
    case USI_SINK_TAP:
        usi_channel_tap(p, r->says[outlet], w->time, p->bytes, length);
        return;
    case USI_SINK_RECORDER:
        p->record.sample(p->record.context, r->says[outlet], w->time, w->time, p->bytes, length);
        return;
    default:
        break;
    }
    us_link_model link = usi_link_now(&r->model->network->downlink, w->s, us_sim_get_tick(w->sim));
    if (outlet != US_TOPIC_TRUTH && (!usi_link_is_perfect(&link) || r->downlink_head.used > 0)) {
        // What arrives, and when, is what is sent and recorded.
        usi_link_send(&link, p->seed, 2 * (uint64_t)r->index + 1, &r->downlink, w->time, outlet, p->bytes,
                      length);
        return;
    }
    deliver(p, r, outlet, p->bytes, length, w->time, w->time);
}

static void send_topic(pen *w, us_topic_kind topic, const us_message_type *type, const void *message) {
    send_outlet(w, (int32_t)topic, type, message);
}

// What the downlink lets arrive now.
static void send_arrived(us_proxy *p, usi_robot *r, int64_t time) {
    const usi_link_item *item;
    while (r->downlink.cap > 0 && (item = usi_link_first(&r->downlink, time))) {
        deliver(p, r, item->topic, item + 1, item->length, time, item->due);
        usi_link_drop_first(&r->downlink);
    }
}

// ---------------------------------------------------------------- parts of messages

static us_msg_quaternion quaternion_of(us_quat q) { return (us_msg_quaternion){q.x, q.y, q.z, q.w}; }

static us_msg_quaternion quaternion_of_yaw(double angle) {
    return (us_msg_quaternion){0, 0, sin(0.5 * angle), cos(0.5 * angle)};
}

static us_msg_pose pose_of(us_pose X) { return (us_msg_pose){{X.p.x, X.p.y, X.p.z}, quaternion_of(X.q)}; }

static us_msg_pose pose_of_plane(const double x[3]) {
    return (us_msg_pose){{x[0], x[1], 0}, quaternion_of_yaw(x[2])};
}

static us_msg_transform_stamped transform_of(pen *w, const char *parent, const char *child, us_pose X) {
    us_msg_transform_stamped t = {0};
    head(w, &t.header, parent);
    t.child_frame_id = text(child);
    t.transform.translation = (us_msg_vector3){X.p.x, X.p.y, X.p.z};
    t.transform.rotation = quaternion_of(X.q);
    return t;
}

// ---------------------------------------------------------------- messages

static void tell_joint_states(pen *w) {
    const usi_robot *r = w->r;
    us_msg_joint_state m = {0};
    head(w, &m.header, "");
    TAKE(w, m.name, r->model->firmware.n_joint);
    TAKE(w, m.position, r->model->firmware.n_joint);
    TAKE(w, m.velocity, r->model->firmware.n_joint);
    TAKE(w, m.effort, r->model->firmware.n_joint);
    if (r->model->firmware.n_joint > 0 && m.effort._length == 0) return;
    const double *torque = us_sim_view_torque(w->sim);
    for (int32_t i = 0; i < r->model->firmware.n_joint; i++) {
        const usi_firmware_joint *j = &r->model->firmware.joint[i];
        m.name._buffer[i] = text(j->name);
        m.position._buffer[i] = usi_read_q(r, w->sim, i);
        m.velocity._buffer[i] = usi_read_v(r, w->sim, i);
        m.effort._buffer[i] = j->drive >= 0 ? torque[r->model->drive[j->drive].index] : 0;
    }
    send_topic(w, US_TOPIC_JOINT_STATES, usi_type_joint_state, &m);
}

// Variances of wheel odometry: what a rover on wheels that slip a little can promise, and no promise about
// what it does not measure.
static void odometry_covariance(double *pose, double *twist) {
    static const double known = 1e-3, unknown = 1e6;
    for (int i = 0; i < 6; i++) {
        bool is_known = i < 2 || i == 5;
        pose[7 * i] = is_known ? known : unknown;
        twist[7 * i] = is_known ? known : unknown;
    }
}

static void tell_odom(pen *w) {
    const usi_robot *r = w->r;
    if (!usi_can_move(r)) return;
    us_msg_odometry m = {0};
    head(w, &m.header, r->model->odom_frame);
    m.child_frame_id = text(r->model->base_frame);
    m.pose.pose = pose_of_plane(w->firmware->odom);
    m.twist.twist.linear.x = w->firmware->odom_v[0];
    m.twist.twist.linear.y = w->firmware->odom_v[1];
    m.twist.twist.angular.z = w->firmware->odom_v[2];
    odometry_covariance(m.pose.covariance, m.twist.covariance);
    send_topic(w, US_TOPIC_ODOM, usi_type_odometry, &m);
}

// Where it really is: on a name of its own, for those who test.
static void tell_truth(pen *w) {
    const usi_robot *r = w->r;
    if (r->model->root.i < 0) return;
    us_msg_odometry m = {0};
    head(w, &m.header, "world");
    m.child_frame_id = text(r->model->root_frame);
    m.pose.pose = pose_of(us_sim_get_pose(w->sim, r->model->root));
    if (r->model->floating.i >= 0) {
        const double *v = us_sim_view_v(w->sim) + r->model->base_v;
        m.twist.twist.angular = (us_msg_vector3){v[0], v[1], v[2]};
        m.twist.twist.linear = (us_msg_vector3){v[3], v[4], v[5]};
    }
    send_topic(w, US_TOPIC_TRUTH, usi_type_odometry, &m);
}

// The firmware does not know that something has come off: a frame behind a break is where the last reading of
// its encoder has it. A joint without an encoder is known by its drawing alone.
static us_pose as_remembered(const pen *w, const usi_robot_frame *f) {
    if (f->joint < 0) return f->X_PF;
    double q = usi_read_q(w->r, w->sim, f->joint), half = 0.5 * f->rotation * q;
    us_pose X = {{cos(half), sin(half) * f->axis.x, sin(half) * f->axis.y, sin(half) * f->axis.z},
                 us_vec3_scale(f->distance * q, f->axis)};
    return us_pose_mul(f->X_PF, X);
}

// Frames come from what the encoders say: beyond where the joint is, along its own axis, as far as the
// reading is off.
static us_pose as_read(const pen *w, const usi_robot_frame *f, us_pose X_PC) {
    double off = usi_read_q(w->r, w->sim, f->joint) - us_sim_view_q(w->sim)[w->r->model->joint[f->joint].q];
    if (off == 0) return X_PC;
    double half = 0.5 * f->rotation * off;
    us_pose X = {{cos(half), sin(half) * f->axis.x, sin(half) * f->axis.y, sin(half) * f->axis.z},
                 us_vec3_scale(f->distance * off, f->axis)};
    return us_pose_mul(X_PC, X);
}

static void tell_frames(pen *w, bool is_fixed) {
    const usi_robot *r = w->r;
    int32_t n =
        is_fixed ? r->model->n_fixed_frame : r->model->n_frame - r->model->n_fixed_frame + usi_can_move(r);
    if (n == 0) return;
    us_msg_tf_message m = {0};
    TAKE(w, m.transforms, n);
    if (m.transforms._length == 0) return;
    int32_t k = 0;
    if (!is_fixed && usi_can_move(r)) {
        us_pose X = us_pose_identity();
        X.p = us_vec3_make(w->firmware->odom[0], w->firmware->odom[1], 0);
        X.q = (us_quat){cos(0.5 * w->firmware->odom[2]), 0, 0, sin(0.5 * w->firmware->odom[2])};
        // A frame has one parent: where the base hangs on another link, that one's root is told.
        X = us_pose_mul(X, us_pose_mul(us_pose_inverse(us_sim_get_pose(w->sim, r->model->base)),
                                       us_sim_get_pose(w->sim, r->model->root)));
        m.transforms._buffer[k++] = transform_of(w, r->model->odom_frame, r->model->root_frame, X);
    }
    for (int32_t i = 0; i < r->model->n_frame; i++) {
        const usi_robot_frame *f = &r->model->frame[i];
        if (f->is_fixed != is_fixed) continue;
        us_pose X_PC = us_pose_mul(us_pose_inverse(us_sim_get_pose(w->sim, f->parent_body)),
                                   us_sim_get_pose(w->sim, f->child_body));
        if (f->is_lost) {
            X_PC = as_remembered(w, f);
        } else if (f->joint >= 0) {
            X_PC = as_read(w, f, X_PC);
        }
        m.transforms._buffer[k++] = transform_of(w, f->parent, f->child, X_PC);
    }
    send_topic(w, is_fixed ? US_TOPIC_TF_STATIC : US_TOPIC_TF, usi_type_tf_message, &m);
}

static void tell_imu(pen *w) {
    const usi_robot *r = w->r;
    us_msg_imu m = {0};
    if (r->model->root.i < 0) return;
    head(w, &m.header, r->model->root_frame);
    const double *x = usi_sim_reading(w->sim, r->model->first_sensor + r->model->firmware.n_joint);
    m.orientation = (us_msg_quaternion){x[1], x[2], x[3], x[0]};
    m.angular_velocity = (us_msg_vector3){x[4], x[5], x[6]};
    m.linear_acceleration = (us_msg_vector3){x[7], x[8], x[9]};
    send_topic(w, US_TOPIC_IMU, usi_type_imu, &m);
}

static void tell_battery(pen *w) {
    const us_network_def *n = w->r->model->network;
    if (n->battery_capacity <= 0) return;
    double left = usi_robot_charge(w->r, w->sim);
    us_msg_battery_state m = {0};
    head(w, &m.header, w->r->model->base_frame);
    // A pack's voltage falls by about an eighth from full to empty.
    double voltage = n->battery_voltage * (0.9375 + 0.125 * left);
    m.voltage = (float)voltage;
    m.temperature = NAN;
    m.current = NAN;
    m.capacity = (float)(n->battery_capacity / 3600 / n->battery_voltage);
    m.design_capacity = m.capacity;
    m.charge = (float)((double)m.capacity * left);
    m.percentage = (float)left;
    m.power_supply_status = 2;  // discharging
    m.present = true;
    m.location = text("");
    m.serial_number = text("");
    send_topic(w, US_TOPIC_BATTERY_STATE, usi_type_battery_state, &m);
}

static void tell_description(pen *w) {
    if (!w->r->description) return;
    us_msg_string m = {text(w->r->description)};
    send_topic(w, US_TOPIC_ROBOT_DESCRIPTION, usi_type_string, &m);
}

static void add_value(us_msg_diagnostic_status *status, const char *key, char *buf, size_t cap,
                      const char *format, ...) US_PRINTF(5, 6);
static void add_value(us_msg_diagnostic_status *status, const char *key, char *buf, size_t cap,
                      const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(buf, cap, format, args);
    va_end(args);
    status->values._buffer[status->values._length++] = (us_msg_key_value){text(key), buf};
}

static void tell_diagnostics(pen *w) {
    const usi_robot_state *s = w->s;
    const usi_firmware_state *f = w->firmware;
    const usi_robot *r = w->r;
    const double step = w->p->step;
    enum { N_VALUE = 11, TEXT = 200, FAULTS = 1024 };
    us_msg_diagnostic_array m = {0};
    us_msg_diagnostic_status status = {0};
    us_msg_key_value values[N_VALUE];
    char buf[N_VALUE][TEXT], faults[FAULTS], name[128];
    int32_t n_fault = usi_robot_list_faults(r, w->sim, s, faults, sizeof faults);
    // A refusal is a matter for the operator for ten seconds.
    double age = f->refused_tick < 0 ? INFINITY : (double)(us_sim_get_tick(w->sim) - f->refused_tick) * step;
    int64_t n_dropped = usi_mailbox_n_dropped(r->mailbox);
    // So is a computer that has started anew: what it was told before is lost.
    double up = (double)(us_sim_get_tick(w->sim) - s->faults.boot_tick) * step;
    bool is_new = s->faults.n_boot > 0 && up < 10;
    bool is_empty = r->model->battery.i >= 0 && us_sim_get_battery(w->sim, r->model->battery).energy == 0;
    snprintf(name, sizeof name, "%s: commands", r->name[0] ? r->name : "robot");
    status.level = is_empty || n_fault > 0 ? 2 : is_new || age < 10 || n_dropped > 0 ? 1 : 0;
    status.name = name;
    status.message = is_empty        ? text("the battery is empty")
                     : n_fault > 0   ? text("it has faults")
                     : is_new        ? text("the computer has started anew: commands and odometry are lost")
                     : age < 10      ? text(f->refusal)
                     : n_dropped > 0 ? text("commands came too fast and were dropped")
                                     : text("ok");
    status.hardware_id = text(r->name);
    status.values._buffer = values;
    static const char *const motions[] = {"as the scene says", "stopped", "body velocity", "arc", "turn",
                                          "navigating",        "joints"};
    add_value(&status, "motion", buf[0], TEXT, "%s", motions[f->motion]);
    add_value(&status, "taken", buf[1], TEXT, "%lld", (long long)f->n_command);
    add_value(&status, "refused", buf[2], TEXT, "%lld", (long long)f->n_refused);
    add_value(&status, "last refusal", buf[3], TEXT, "%s", f->refusal);
    add_value(&status, "dropped", buf[4], TEXT, "%lld", (long long)n_dropped);
    add_value(&status, "safe stops", buf[5], TEXT, "%lld", (long long)f->n_timeout);
    add_value(&status, "uplink lost", buf[6], TEXT, "%lld", (long long)(s->uplink.n_lost + s->uplink.n_full));
    add_value(&status, "downlink lost", buf[7], TEXT, "%lld",
              (long long)(r->downlink_head.n_lost + r->downlink_head.n_full));
    add_value(&status, "unsent", buf[8], TEXT, "%lld",
              (long long)(w->p->n_too_long + (w->p->outbox ? usi_outbox_n_unsent(w->p->outbox) : 0)));
    add_value(&status, "boots", buf[9], TEXT, "%lld", (long long)s->faults.n_boot);
    status.values._buffer[status.values._length++] =
        (us_msg_key_value){text("faults"), n_fault > 0 ? faults : text("none")};
    head(w, &m.header, "");
    m.status._buffer = &status;
    m.status._length = m.status._maximum = 1;
    send_topic(w, US_TOPIC_DIAGNOSTICS, usi_type_diagnostic_array, &m);
}

// ---------------------------------------------------------------- rover services

// Of each service: what its status says now. Those of robots without drives or wheels have nothing to say.

static bool make_motors(pen *w, us_msg_motor_group_status *m) {
    const usi_robot *r = w->r;
    memset(m, 0, sizeof *m);
    head(w, &m->header, r->model->base_frame);
    TAKE(w, m->motors, r->model->firmware.n_drive);
    if (r->model->firmware.n_drive == 0 || m->motors._length == 0) return false;
    m->sequence = w->firmware->motors.sequence;
    m->result = w->firmware->motors.state == 4;
    m->message = text(w->firmware->motors.message);
    const usi_drive_state *d = usi_firmware_view_drives(&r->model->firmware, w->firmware);
    const double *torque = us_sim_view_torque(w->sim);
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        int32_t joint = r->model->firmware.drive[k].joint;
        double v = usi_read_v(r, w->sim, joint);
        m->motors._buffer[k] = (us_msg_motor_state){.name = text(r->model->firmware.joint[joint].name),
                                                    .position = usi_read_q(r, w->sim, joint),
                                                    .velocity = v,
                                                    .acceleration = (v - d[k].v_before) / w->p->step,
                                                    .torque = torque[r->model->drive[k].index],
                                                    .powered = !d[k].is_off,
                                                    .fault = text("")};
    }
    return true;
}

static bool make_locomotor(pen *w, us_msg_locomotor_status *m) {
    const usi_firmware_state *s = w->firmware;
    *m = (us_msg_locomotor_status){.sequence = s->locomotor.sequence,
                                   .state = s->locomotor.state,
                                   .message = text(s->locomotor.message),
                                   .speed = s->odom_v[0],
                                   .side_speed = s->odom_v[1],
                                   .turn_rate = s->odom_v[2],
                                   .distance = s->done};
    head(w, &m->header, w->r->model->base_frame);
    return usi_can_move(w->r);
}

static bool make_pose(pen *w, us_msg_pose_estimator_status *m) {
    const usi_firmware_state *s = w->firmware;
    *m = (us_msg_pose_estimator_status){.sequence = s->pose.sequence,
                                        .state = s->pose.state == 4 ? 1 : s->pose.state,
                                        .message = text(s->pose.message)};
    double pose[3];
    usi_odometry_compose(s->pose_offset, s->odom, pose);
    head(w, &m->header, "map");
    m->pose.pose = pose_of_plane(pose);
    m->twist.twist.linear.x = s->odom_v[0];
    m->twist.twist.linear.y = s->odom_v[1];
    m->twist.twist.angular.z = s->odom_v[2];
    odometry_covariance(m->pose.covariance, m->twist.covariance);
    return usi_can_move(w->r);
}

static bool make_navigator(pen *w, us_msg_navigator_status *m) {
    const usi_firmware_state *s = w->firmware;
    *m = (us_msg_navigator_status){.sequence = s->navigator.sequence,
                                   .state = s->navigator.state,
                                   .message = text(s->navigator.message),
                                   .waypoint = (uint32_t)s->next_route};
    double pose[3];
    usi_odometry_compose(s->pose_offset, s->odom, pose);
    if (s->next_route < s->n_route)
        m->distance = hypot(s->route[s->next_route][0] - pose[0], s->route[s->next_route][1] - pose[1]);
    head(w, &m->header, "map");
    return usi_can_move(w->r);
}

static void tell_motors(pen *w) {
    us_msg_motor_group_status m;
    if (make_motors(w, &m)) send_topic(w, US_TOPIC_MOTOR_STATUS, usi_type_motor_group_status, &m);
}

static void tell_locomotor(pen *w) {
    us_msg_locomotor_status m;
    if (make_locomotor(w, &m)) send_topic(w, US_TOPIC_LOCOMOTOR_STATUS, usi_type_locomotor_status, &m);
}

static void tell_pose(pen *w) {
    us_msg_pose_estimator_status m;
    if (make_pose(w, &m)) send_topic(w, US_TOPIC_POSE_STATUS, usi_type_pose_estimator_status, &m);
}

static void tell_navigator(pen *w) {
    us_msg_navigator_status m;
    if (make_navigator(w, &m)) send_topic(w, US_TOPIC_NAVIGATOR_STATUS, usi_type_navigator_status, &m);
}

void usi_robot_reply(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                     const usi_reply *reply) {
    r->stamp_offset = s->stamp_offset;
    if (reply->service < 0 || !r->writer[US_TOPIC_COUNT + reply->service]) return;
    pen w = {.p = p,
             .r = r,
             .sim = sim,
             .s = s,
             .firmware = usi_view_firmware(r, s),
             .time = usi_time_of(p, us_sim_get_tick(sim))};
    int32_t outlet = US_TOPIC_COUNT + reply->service;
    char *message = text(reply->message);
    us_msg_motor_group_response motors = {
        .guid = reply->guid, .seq = reply->seq, .accepted = reply->is_accepted, .message = message};
    us_msg_locomotor_response locomotor = {
        .guid = reply->guid, .seq = reply->seq, .accepted = reply->is_accepted, .message = message};
    us_msg_pose_estimator_response pose = {
        .guid = reply->guid, .seq = reply->seq, .accepted = reply->is_accepted, .message = message};
    us_msg_navigator_response navigator = {
        .guid = reply->guid, .seq = reply->seq, .accepted = reply->is_accepted, .message = message};
    bool is_made = false;
    const us_message_type *type = NULL;
    const void *m = NULL;
    switch ((usi_command_topic)(USI_COMMAND_ASK + reply->service)) {
    case USI_COMMAND_ASK_MOTORS:
        type = usi_type_motor_group_response;
        m = &motors;
        is_made = make_motors(&w, &motors.status);
        break;
    case USI_COMMAND_ASK_LOCOMOTOR:
        type = usi_type_locomotor_response;
        m = &locomotor;
        is_made = make_locomotor(&w, &locomotor.status);
        break;
    case USI_COMMAND_ASK_POSE:
        type = usi_type_pose_estimator_response;
        m = &pose;
        is_made = make_pose(&w, &pose.status);
        break;
    case USI_COMMAND_ASK_NAVIGATOR:
        type = usi_type_navigator_response;
        m = &navigator;
        is_made = make_navigator(&w, &navigator.status);
        break;
    default:
        break;
    }
    if (!is_made) return;
    send_outlet(&w, outlet, type, m);
    usi_outbox_ring(p->outbox);
}

// ---------------------------------------------------------------- all

// What is told once comes first of all, and again when somebody asks.
static bool is_told_once(int32_t topic) {
    return topic == US_TOPIC_TF_STATIC || topic == US_TOPIC_ROBOT_DESCRIPTION;
}

// Whether anybody gets a sample of this topic. A radio carries all or nothing, for each takes the others'
// time.
static bool is_heard(const us_proxy *p, const usi_robot *r, const usi_robot_state *s, int64_t tick,
                     int32_t topic) {
    if (p->outbox || p->record.sample) return true;
    if (!p->tap || r->says[topic] < 0) return false;
    us_link_model link = usi_link_now(&r->model->network->downlink, s, tick);
    return atomic_load_explicit(&p->channel[r->says[topic]].is_wanted, memory_order_relaxed) ||
           !usi_link_is_perfect(&link);
}

static void tell(pen *w, us_topic_kind topic) {
    w->used = 0;
    switch (topic) {
    case US_TOPIC_JOINT_STATES:
        tell_joint_states(w);
        break;
    case US_TOPIC_ODOM:
        tell_odom(w);
        break;
    case US_TOPIC_TF:
        tell_frames(w, false);
        break;
    case US_TOPIC_TF_STATIC:
        tell_frames(w, true);
        break;
    case US_TOPIC_IMU:
        tell_imu(w);
        break;
    case US_TOPIC_ROBOT_DESCRIPTION:
        tell_description(w);
        break;
    case US_TOPIC_BATTERY_STATE:
        tell_battery(w);
        break;
    case US_TOPIC_DIAGNOSTICS:
        tell_diagnostics(w);
        break;
    case US_TOPIC_TRUTH:
        tell_truth(w);
        break;
    case US_TOPIC_MOTOR_STATUS:
        tell_motors(w);
        break;
    case US_TOPIC_LOCOMOTOR_STATUS:
        tell_locomotor(w);
        break;
    case US_TOPIC_POSE_STATUS:
        tell_pose(w);
        break;
    case US_TOPIC_NAVIGATOR_STATUS:
        tell_navigator(w);
        break;
    default:
        break;
    }
}

void usi_robot_repeat(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s, usi_sink sink) {
    r->stamp_offset = s->stamp_offset;
    pen w = {.p = p,
             .r = r,
             .sim = sim,
             .s = s,
             .firmware = usi_view_firmware(r, s),
             .time = usi_time_of(p, us_sim_get_tick(sim)),
             .sink = sink};
    for (int i = 0; i < US_TOPIC_COUNT; i++) {
        if (is_told_once(i) && r->has_told[i]) tell(&w, (us_topic_kind)i);
    }
}

void usi_robot_publish(us_proxy *p, usi_robot *r, us_sim *sim, const usi_robot_state *s, bool is_first) {
    int64_t tick = us_sim_get_tick(sim);
    pen w = {.p = p,
             .r = r,
             .sim = sim,
             .s = s,
             .firmware = usi_view_firmware(r, s),
             .time = usi_time_of(p, tick)};
    // Robots do not speak in step: of a fleet that did, each would wait for all others. A prime spreads them
    // over any period.
    const int64_t phase = tick + 617 * (int64_t)r->index;
    const bool is_up = usi_is_up(s);
    // A computer that has just started tells anew what is told once.
    is_first = is_first || (s->faults.boot_tick != 0 && s->faults.boot_tick == tick);
    r->stamp_offset = s->stamp_offset;
    for (int k = 0; k < US_TOPIC_COUNT; k++) {
        // The truth, which is not the robot's to say, comes before all others: the robot's own then leave one
        // close after the other.
        const int i = k == 0 ? US_TOPIC_TRUTH : k <= US_TOPIC_TRUTH ? k - 1 : k;
        // A computer that is off or starts says nothing. Where the robot really is does not depend on it.
        if (!is_up && i != US_TOPIC_TRUTH) continue;
        bool is_due = is_told_once(i) ? is_first && r->model->network->rate[i] > 0
                                      : is_heard(p, r, s, tick, i) &&
                                            usi_is_due(r->model->network->rate[i], p->step, phase);
        if (is_due) tell(&w, (us_topic_kind)i);
    }
    send_arrived(p, r, w.time);
}

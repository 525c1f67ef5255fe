// The rover on the network: its node, what it publishes and obeys, and a radio link that delays and loses.
//
// Messages are written as plain CDR by hand: a firmware needs no more than this, and nothing of the
// simulation is asked for it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hardware.h"
#include "understudy/bus.h"
#include "understudy/gate.h"

static const double GYRO_NOISE = 2e-3, ACCELEROMETER_NOISE = 0.03, TILT_NOISE = 5e-4;  // rad/s, m/s^2, rad

static const double MAKING = 3e-4;  // s: in which all messages of a tick are made

typedef enum published {
    JOINT_STATES,
    ODOM,
    TF,
    IMU,
    BATTERY,
    DIAGNOSTICS,
    MOTORS,
    DESCRIPTION,
    N_PUBLISHED
} published;
typedef enum subscribed {
    TWIST,
    TWIST_STAMPED,
    JOINTS,
    MOTOR_GROUP,
    EMERGENCY,
    REBOOT,
    N_SUBSCRIBED
} subscribed;

typedef struct topic {
    const char *name, *type;
    double rate;     // Hz; 0: once
    bool is_common;  // not under the robot's namespace
} topic;

// In the order of `published` and of `subscribed`.
static const topic published_topic[N_PUBLISHED] = {
    {"joint_states", "sensor_msgs/msg/JointState", 50, false},
    {"odom", "nav_msgs/msg/Odometry", 50, false},
    {"tf", "tf2_msgs/msg/TFMessage", 50, true},
    {"imu/data", "sensor_msgs/msg/Imu", 100, false},
    {"battery_state", "sensor_msgs/msg/BatteryState", 1, false},
    {"diagnostics", "diagnostic_msgs/msg/DiagnosticArray", 1, true},
    {"motor_group/status", "understudy_msgs/msg/MotorGroupStatus", 25, false},
    {"robot_description", "std_msgs/msg/String", 0, false},
};

static const topic subscribed_topic[N_SUBSCRIBED] = {
    {"cmd_vel", "geometry_msgs/msg/Twist", 0, false},
    {"cmd_vel_stamped", "geometry_msgs/msg/TwistStamped", 0, false},
    {"joint_commands", "std_msgs/msg/Float64MultiArray", 0, false},
    {"motor_group/command", "understudy_msgs/msg/MotorGroupCommand", 0, false},
    {"emergency_stop", "std_msgs/msg/Bool", 0, false},
    {"reboot", "std_msgs/msg/Bool", 0, false},
};

// A message on its way. Those of one direction arrive in order.
typedef struct message {
    double due;
    int32_t topic;
    int64_t stamp;
    uint8_t writer[16];  // of a command: who sent it
    size_t length;
    unsigned char *bytes;
} message;

// Messages: 300 a second for the 4 s that latency and jitter may be, and some to spare.
enum { MAX_WAITING = 2048, MESSAGE_SIZE = 1 << 18, COMMAND_SIZE = 1 << 15 };

typedef struct lag {
    message waiting[MAX_WAITING];
    int first, n;
    double last_due;
    int64_t n_lost;
} lag;

struct network {
    const options *chosen;
    us_bus *bus;
    us_gate *gate;  // commands are obeyed only as it admits them
    int64_t n_end;  // of its leases, that were answered by a stop
    us_writer *writer[N_PUBLISHED];
    us_reader *reader[N_SUBSCRIBED];
    const us_message_type *subscribed_type[N_SUBSCRIBED];
    lag up, down;
    bool has_described;
    int64_t n_unsent, n_dropped;  // samples that DDS did not take; commands that were too long
    size_t inbox_size;
    unsigned char *inbox;
    size_t n;  // of the message that is being written
    unsigned char bytes[MESSAGE_SIZE];
};

// ---- the radio link ----

static bool is_out(const options *o, double time) {
    return o->dropout_every > 0 && fmod(time, o->dropout_every) > o->dropout_every - o->dropout_time;
}

// `sample` has the bytes, the stamp and, of a command, who sent it.
static void lag_put(lag *l, firmware *f, int32_t about, const us_sample *sample) {
    const options *o = f->chosen;
    if ((o->drop > 0 && firmware_uniform(f) < o->drop) || is_out(o, f->time) || l->n == MAX_WAITING) {
        l->n_lost++;
        return;
    }
    double due = f->time + o->latency + (o->jitter > 0 ? o->jitter * firmware_uniform(f) : 0);
    message *m = &l->waiting[(l->first + l->n) % MAX_WAITING];
    m->due = fmax(due, l->last_due);
    m->topic = about;
    m->stamp = sample->source_time;
    memcpy(m->writer, sample->writer, sizeof m->writer);
    m->length = sample->length;
    m->bytes = (unsigned char *)malloc(sample->length);
    if (!m->bytes) return;
    memcpy(m->bytes, sample->bytes, sample->length);
    l->last_due = m->due;
    l->n++;
}

static const message *lag_first(const lag *l, double time) {
    return l->n > 0 && l->waiting[l->first].due <= time ? &l->waiting[l->first] : NULL;
}

static void lag_drop(lag *l) {
    free(l->waiting[l->first].bytes);
    l->first = (l->first + 1) % MAX_WAITING;
    l->n--;
}

// ---- plain CDR: little endian, each member aligned to its size behind the four bytes of the header ----

static void put(network *n, const void *value, size_t size) {
    while ((n->n - 4) % size && n->n < MESSAGE_SIZE)
        n->bytes[n->n++] = 0;
    if (n->n + size > MESSAGE_SIZE) return;
    memcpy(n->bytes + n->n, value, size);
    n->n += size;
}

static void begin(network *n) {
    static const unsigned char header[4] = {0, 1, 0, 0};
    memcpy(n->bytes, header, sizeof header);
    n->n = sizeof header;
}

static void put_byte(network *n, uint8_t x) { put(n, &x, 1); }
static void put_count(network *n, uint32_t x) { put(n, &x, 4); }
static void put_float(network *n, double x) {
    const float narrow = (float)x;
    put(n, &narrow, 4);
}
static void put_number(network *n, double x) { put(n, &x, 8); }

static void put_numbers(network *n, const double *x, int count) {
    for (int i = 0; i < count; i++)
        put_number(n, x[i]);
}

static void put_text(network *n, const char *text) {
    size_t length = strlen(text) + 1;
    put_count(n, (uint32_t)length);
    for (size_t i = 0; i < length; i++)
        put_byte(n, (uint8_t)text[i]);
}

// A frame's name, with the robot's before it.
static void put_frame(network *n, const char *link) {
    char name[2 * NAME_SIZE];
    snprintf(name, sizeof name, "%s/%s", n->chosen->namespace_, link);
    put_text(n, name);
}

static void put_stamp(network *n, int64_t stamp) {
    put_count(n, (uint32_t)(stamp / 1000000000));
    put_count(n, (uint32_t)(stamp % 1000000000));
}

// w x y z here, x y z w there.
static void put_quaternion(network *n, const double q[4]) {
    put_numbers(n, q + 1, 3);
    put_number(n, q[0]);
}

// ---- what it publishes ----

static void write_joints(network *n, const firmware *f, const body *b, int64_t stamp) {
    uint32_t count = (uint32_t)b->n_joint;
    put_stamp(n, stamp);
    put_text(n, "");
    put_count(n, count);
    for (int i = 0; i < b->n_joint; i++)
        put_text(n, b->joints[i].name);
    put_count(n, count);
    put_numbers(n, f->q, b->n_joint);
    put_count(n, count);
    put_numbers(n, f->v, b->n_joint);
    put_count(n, count);
    for (int i = 0; i < b->n_joint; i++)
        put_number(n, b->joints[i].torque);
}

static void yaw_to_quaternion(double yaw, double out[4]) {
    out[0] = cos(0.5 * yaw);
    out[1] = out[2] = 0;
    out[3] = sin(0.5 * yaw);
}

// Only x, y and yaw are measured.
static void put_covariance(network *n) {
    for (int i = 0; i < 36; i++)
        put_number(n, i % 7 != 0 ? 0 : i < 14 || i == 35 ? 1e-3 : 1e6);
}

static void put_place(network *n, const firmware *f) {
    const double place[3] = {f->state->odom[0], f->state->odom[1], 0};
    put_numbers(n, place, 3);
}

static void write_odom(network *n, const firmware *f, const body *b, int64_t stamp) {
    double q[4];
    yaw_to_quaternion(f->state->odom[2], q);
    put_stamp(n, stamp);
    put_frame(n, "odom");
    put_frame(n, b->root);
    put_place(n, f);
    put_quaternion(n, q);
    put_covariance(n);
    const double velocity[6] = {f->odom_v[0], f->odom_v[1], 0, 0, 0, f->odom_v[2]};
    put_numbers(n, velocity, 6);
    put_covariance(n);
}

static void multiply(const double a[4], const double b[4], double out[4]) {
    out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

static void rotate_about(const double axis[3], double angle, double out[4]) {
    double s = sin(0.5 * angle);
    out[0] = cos(0.5 * angle);
    for (int k = 0; k < 3; k++)
        out[1 + k] = s * axis[k];
}

// Fixed axes x, y, z in turn, and then the joint.
static void joint_to_quaternion(const joint *j, double angle, double out[4]) {
    static const double X[3] = {1, 0, 0}, Y[3] = {0, 1, 0}, Z[3] = {0, 0, 1};
    double x[4], y[4], z[4], zy[4], zyx[4], turned[4];
    rotate_about(X, j->rpy[0], x);
    rotate_about(Y, j->rpy[1], y);
    rotate_about(Z, j->rpy[2], z);
    rotate_about(j->axis, angle, turned);
    multiply(z, y, zy);
    multiply(zy, x, zyx);
    multiply(zyx, turned, out);
}

static void write_frames(network *n, const firmware *f, const body *b, int64_t stamp) {
    const double nowhere[3] = {0}, upright[4] = {1};
    double q[4];
    put_count(n, (uint32_t)b->n_joint + 2);
    // It has no map of its own: odometry begins where the map does.
    put_stamp(n, stamp);
    put_text(n, "map");
    put_frame(n, "odom");
    put_numbers(n, nowhere, 3);
    put_quaternion(n, upright);
    put_stamp(n, stamp);
    put_frame(n, "odom");
    put_frame(n, b->root);
    put_place(n, f);
    yaw_to_quaternion(f->state->odom[2], q);
    put_quaternion(n, q);
    for (int i = 0; i < b->n_joint; i++) {
        const joint *j = &b->joints[i];
        put_stamp(n, stamp);
        put_frame(n, j->parent);
        put_frame(n, j->child);
        put_numbers(n, j->xyz, 3);
        joint_to_quaternion(j, f->q[i], q);
        put_quaternion(n, q);
    }
}

static void write_imu(network *n, firmware *f, const body *b, int64_t stamp) {
    const double zero[9] = {0}, noise = f->chosen->noise;
    double tilt[4] = {1, 0, 0, 0}, q[4];
    for (int k = 1; k < 4; k++)
        tilt[k] = 0.5 * noise * TILT_NOISE * firmware_normal(f);
    multiply(b->orientation, tilt, q);
    put_stamp(n, stamp);
    put_frame(n, b->root);
    put_quaternion(n, q);
    put_numbers(n, zero, 9);
    for (int k = 0; k < 3; k++)
        put_number(n, b->gyro[k] + noise * GYRO_NOISE * firmware_normal(f));
    put_numbers(n, zero, 9);
    for (int k = 0; k < 3; k++)
        put_number(n, b->accelerometer[k] + noise * ACCELEROMETER_NOISE * firmware_normal(f));
    put_numbers(n, zero, 9);
}

static void write_battery(network *n, const firmware *f, const body *b, int64_t stamp) {
    double left = 1 - f->energy / BATTERY_CAPACITY, capacity = BATTERY_CAPACITY / 3600 / BATTERY_VOLTAGE;
    put_stamp(n, stamp);
    put_frame(n, b->root);
    double voltage = BATTERY_VOLTAGE * (0.9375 + 0.125 * left);
    put_float(n, voltage);
    put_float(n, NAN);  // the temperature is not measured
    put_float(n, -f->power / voltage);
    put_float(n, capacity * left);
    put_float(n, capacity);
    put_float(n, capacity);
    put_float(n, left);
    put_byte(n, 2);  // discharging; health and technology unknown
    put_byte(n, 0);
    put_byte(n, 0);
    put_byte(n, 1);  // present
    put_count(n, 0);
    put_count(n, 0);
    put_text(n, "");
    put_text(n, "");
}

static void put_value(network *n, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_text(n, key);
    put_text(n, text);
}

static void write_diagnostics(network *n, const firmware *f, int64_t stamp) {
    const int32_t motion = f->state->motion;
    bool is_warning = f->time - f->refused_time < 10;
    char name[2 * NAME_SIZE];
    put_stamp(n, stamp);
    put_text(n, "");
    put_count(n, 1);
    put_byte(n, f->is_emergency ? 2 : is_warning ? 1 : 0);
    snprintf(name, sizeof name, "%s: commands", n->chosen->namespace_);
    put_text(n, name);
    put_text(n, f->is_emergency ? "the emergency stop is on" : is_warning ? f->state->refusal : "ok");
    put_text(n, n->chosen->namespace_);
    put_count(n, f->is_emergency ? 12 : 11);
    put_text(n, "motion");
    put_text(n, motion == USI_MOTION_TWIST    ? "body velocity"
                : motion == USI_MOTION_JOINTS ? "joints"
                                              : "stopped");
    put_value(n, "taken", f->state->n_command);
    put_value(n, "refused", f->state->n_refused);
    put_text(n, "last refusal");
    put_text(n, f->state->refusal);
    put_value(n, "dropped", n->n_dropped);
    put_value(n, "safe stops", f->state->n_timeout);
    put_value(n, "uplink lost", n->up.n_lost);
    put_value(n, "downlink lost", n->down.n_lost);
    put_value(n, "unsent", n->n_unsent);
    put_value(n, "boots", f->n_boot);
    put_text(n, "faults");
    put_text(n, "none");
    if (!f->is_emergency) return;
    put_text(n, "emergency stop");
    put_text(n, "on");
}

static void write_motors(network *n, const firmware *f, const body *b, int64_t stamp) {
    put_stamp(n, stamp);
    put_frame(n, b->root);
    put_count(n, f->state->motors.sequence);
    put_byte(n, f->state->motors.state == US_ROVER_REFUSED);
    put_text(n, f->state->motors.message);
    put_count(n, 2 * N_WHEEL);
    for (int i = 0; i < b->n_joint; i++) {
        const joint *j = &b->joints[i];
        if (j->actuator < 0) continue;
        put_text(n, j->name);
        put_number(n, f->q[i]);
        put_number(n, f->v[i]);
        put_number(n, f->acceleration[i]);
        put_number(n, j->torque);
        put_byte(n, !f->is_emergency);
        put_text(n, f->is_emergency ? "emergency stop" : "");
    }
}

static void publish(network *n, firmware *f, const body *b, published about, int64_t stamp) {
    begin(n);
    switch (about) {
    case JOINT_STATES:
        write_joints(n, f, b, stamp);
        break;
    case ODOM:
        write_odom(n, f, b, stamp);
        break;
    case TF:
        write_frames(n, f, b, stamp);
        break;
    case IMU:
        write_imu(n, f, b, stamp);
        break;
    case BATTERY:
        write_battery(n, f, b, stamp);
        break;
    case DIAGNOSTICS:
        write_diagnostics(n, f, stamp);
        break;
    case MOTORS:
        write_motors(n, f, b, stamp);
        break;
    default:
        put_text(n, b->description);
        break;
    }
    // What is published once is latched: those who come later get it too, and it cannot get lost.
    if (about == DESCRIPTION) {
        n->n_unsent += us_writer_write(n->writer[about], n->bytes, n->n, stamp) != US_OK;
    } else {
        us_sample sample = US_ZERO;
        sample.bytes = n->bytes;
        sample.length = n->n;
        sample.source_time = stamp;
        lag_put(&n->down, f, (int32_t)about, &sample);
    }
}

void network_publish(network *n, firmware *f, const body *b, int64_t tick, double step, int64_t stamp) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t begun = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    for (int i = 0; i < N_PUBLISHED; i++) {
        bool is_due = published_topic[i].rate > 0 ? tick % llround(1 / (published_topic[i].rate * step)) == 0
                                                  : !n->has_described;
        if (is_due) publish(n, f, b, (published)i, stamp);
    }
    n->has_described = true;
    // Messages are made first, and leave by a timer of their own, between other tasks of the computer.
    if (f->chosen->send_jitter > 0 && lag_first(&n->down, f->time)) {
        int64_t due = begun + llround(1e9 * (MAKING + f->chosen->send_jitter * firmware_uniform(f)));
        struct timespec t;
        t.tv_sec = due / 1000000000;
        t.tv_nsec = due % 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
    for (const message *m; (m = lag_first(&n->down, f->time)) != NULL; lag_drop(&n->down))
        n->n_unsent += us_writer_write(n->writer[m->topic], m->bytes, m->length, m->stamp) != US_OK;
}

// ---- what it obeys ----

// Whether the gate lets a command through. An emergency stop is obeyed whoever presses it.
static bool is_admitted(const network *n, const message *m, bool is_on) {
    if (m->topic == EMERGENCY && is_on) return true;
    us_sample sample = US_ZERO;
    memcpy(sample.writer, m->writer, sizeof m->writer);
    return us_gate_admit(n->gate, 0, &sample);
}

// True when it is to reboot.
static bool obey(const network *n, firmware *f, const message *m) {
    const us_message_type *type = n->subscribed_type[m->topic];
    bool is_bool = m->topic == EMERGENCY || m->topic == REBOOT;
    bool is_on = is_bool && us_message_get_number(type, m->bytes, m->length, "data") > 0;
    if (!is_admitted(n, m, is_on)) return false;
    if (is_bool) {
        if (m->topic == REBOOT) return is_on;
        firmware_stop(f, is_on);
        return false;
    }
    if (m->topic == JOINTS || m->topic == MOTOR_GROUP) {
        (m->topic == JOINTS ? motors_take_joints : motors_take_group)(f, m->bytes, m->length);
        return false;
    }
    const char *const paths[2][3] = {{"linear.x", "linear.y", "angular.z"},
                                     {"twist.linear.x", "twist.linear.y", "twist.angular.z"}};
    double velocity[3];
    for (int k = 0; k < 3; k++)
        velocity[k] = us_message_get_number(type, m->bytes, m->length, paths[m->topic == TWIST_STAMPED][k]);
    firmware_take(f, velocity);
    return false;
}

// The next waiting message into the inbox, which grows as it must; 0: none.
static size_t take(network *n, us_reader *reader, us_sample *out) {
    size_t length = 0;
    us_status status = us_reader_take(reader, n->inbox, n->inbox_size, &length, out);
    if (status == US_ERR_LIMIT && length > n->inbox_size) {
        unsigned char *larger = (unsigned char *)realloc(n->inbox, length);
        if (!larger) return 0;
        n->inbox = larger;
        n->inbox_size = length;
        status = us_reader_take(reader, n->inbox, n->inbox_size, &length, out);
    }
    return status == US_OK ? length : 0;
}

bool network_poll(network *n, firmware *f) {
    bool is_reboot = false;
    for (int32_t i = 0; i < N_SUBSCRIBED; i++) {
        size_t length;
        us_sample sample = US_ZERO;
        if (!n->reader[i]) continue;
        // At most as many as the history keeps: a flood waits, and loses its oldest. A command that is longer
        // than any is dropped.
        for (int k = 0; k < 10 && (length = take(n, n->reader[i], &sample)) > 0; k++) {
            if (length > COMMAND_SIZE) {
                n->n_dropped++;
            } else {
                lag_put(&n->up, f, i, &sample);
            }
        }
    }
    for (const message *m; (m = lag_first(&n->up, f->time)) != NULL; lag_drop(&n->up))
        is_reboot = obey(n, f, m) || is_reboot;
    // Whoever commanded does not any more: the rover comes to rest.
    int64_t n_end = us_gate_get_state(n->gate, 0).n_end;
    if (n_end != n->n_end) {
        const double rest[3] = {0, 0, 0};
        firmware_take(f, rest);
    }
    n->n_end = n_end;
    return is_reboot;
}

// ---- joining and leaving ----

static void on_gate(void *context, int32_t robot, us_gate_event event, const char *text) {
    (void)context;
    (void)robot;
    if (event == US_GATE_LAPSED || event == US_GATE_REFUSED) fprintf(stderr, "warning: %s\n", text);
}

// The gate, before the readers of commands: a switch that finds them finds it too.
static us_status open_gate(network *n, us_error *err) {
    us_gate_def def = us_gate_def_default();
    def.bus = n->bus;
    def.n_robot = 1;
    def.robots = &n->chosen->namespace_;
    def.on_event = on_gate;
    return us_gate_open(&def, &n->gate, err);
}

static us_topic_def define(const network *n, const topic *t, int32_t node, char *name, size_t cap) {
    if (t->is_common) {
        snprintf(name, cap, "/%s", t->name);
    } else {
        snprintf(name, cap, "/%s/%s", n->chosen->namespace_, t->name);
    }
    us_topic_def def = US_ZERO;
    def.topic = name;
    def.type = us_message_find(t->type);
    def.node = node;
    def.qos = us_qos_for_topic(name, def.type);
    return def;
}

static us_status join(network *n, us_error *err) {
    us_bus_def def = us_bus_def_default();
    char text[US_BUS_TEXT], name[256];
    int32_t node = -1;
    us_status status = us_bus_def_from_environment(&def, text, sizeof text, err);
    if (n->chosen->domain >= 0) def.domain = n->chosen->domain;
    if (!status) status = us_bus_open(&def, &n->bus, err);
    snprintf(name, sizeof name, "/%s", n->chosen->namespace_);
    if (!status) status = open_gate(n, err);
    if (!status) status = us_bus_add_node(n->bus, name, "driver", &node, err);
    for (int i = 0; i < N_PUBLISHED && !status; i++) {
        us_topic_def made = define(n, &published_topic[i], node, name, sizeof name);
        status = us_bus_add_writer(n->bus, &made, &n->writer[i], err);
    }
    for (int i = 0; i < N_SUBSCRIBED && !status; i++) {
        us_topic_def made = define(n, &subscribed_topic[i], node, name, sizeof name);
        n->subscribed_type[i] = made.type;
        // On Fast DDS a topic has one type.
        if (i == TWIST_STAMPED && strcmp(us_bus_vendor(n->bus), "fastdds") == 0) continue;
        status = us_bus_add_reader(n->bus, &made, NULL, NULL, &n->reader[i], err);
    }
    return status;
}

bool network_open(const options *o, network **out, char *why, size_t cap) {
    us_error err = US_ZERO;
    network *n = (network *)calloc(1, sizeof *n);
    *out = n;
    if (!n) {
        snprintf(why, cap, "out of memory");
        return false;
    }
    n->chosen = o;
    n->inbox_size = 1024;
    n->inbox = (unsigned char *)malloc(n->inbox_size);
    if (!n->inbox) {
        us_error_set(&err, US_ERR_MEMORY, NULL, NULL, "out of memory");
    } else if (join(n, &err) == US_OK) {
        return true;
    }
    us_error_format(&err, why, cap);
    network_close(n);
    *out = NULL;
    return false;
}

void network_close(network *n) {
    if (!n) return;
    us_gate_close(n->gate);
    us_bus_close(n->bus);
    free(n->inbox);
    while (n->up.n > 0)
        lag_drop(&n->up);
    while (n->down.n > 0)
        lag_drop(&n->down);
    free(n);
}

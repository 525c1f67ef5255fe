// State of a source by its own outputs.
//
// A message is decoded once, into memory on the stack, and the fields of the estimate are copied. Numbers
// that are not finite mean "not known": of a joint they stay NaN, and a pose or velocity of the body with one
// of them is ignored.
#include "switch/estimate.h"

#include <stdio.h>
#include <string.h>

#include "switch/switch.h"
#include "wire/messages.h"

// Memory for a decoded message: a JointState of 64 joints with long names fits; larger messages are ignored.
enum { MEMORY_SIZE = 32768 };

// Limit between a sample that was overtaken by a newer one and a clock that was set back, ns.
static const int64_t overtaken = INT64_C(1000000000);

static const char *const usual_names[USI_N_ESTIMATE] = {"/odom", "/joint_states", "/battery_state",
                                                        "/imu/data"};

usi_estimate_group usi_estimate_group_of(const us_message_type *type) {
    if (type == usi_type_odometry) return USI_ESTIMATE_ODOM;
    if (type == usi_type_joint_state) return USI_ESTIMATE_JOINTS;
    if (type == usi_type_battery_state) return USI_ESTIMATE_BATTERY;
    if (type == usi_type_imu) return USI_ESTIMATE_IMU;
    return USI_N_ESTIMATE;
}

static bool has_usual_name(const char *topic, usi_estimate_group group) {
    size_t n = strlen(topic), m = strlen(usual_names[group]);
    return n >= m && !strcmp(topic + n - m, usual_names[group]);
}

// One topic per group: a robot may have a second odometry, or a second inertial unit.
static bool is_chosen(usi_estimate *e, const char *topic, usi_estimate_group group) {
    char *chosen = e->topics[group];
    if (!strncmp(chosen, topic, USI_ESTIMATE_NAME - 1)) return true;
    if (chosen[0] && (has_usual_name(chosen, group) || !has_usual_name(topic, group))) return false;
    snprintf(chosen, USI_ESTIMATE_NAME, "%s", topic);
    return true;
}

// Stores the times of a new sample; false when it was overtaken by a newer one.
static bool take_time(int64_t time, int64_t now, int64_t *io_time, int64_t *io_heard, double *io_period) {
    int64_t step = time - *io_time;
    bool is_first = *io_heard == 0;
    if (!is_first && step <= 0 && -step < overtaken) return false;
    // the mean period, without gaps of lost samples
    if (io_period && !is_first && step > 0 && step < overtaken) {
        double period = 1e-9 * (double)step;
        *io_period += *io_period > 0 ? 0.05 * (fmin(period, 4 * *io_period) - *io_period) : period;
    }
    *io_time = time;
    *io_heard = now;
    return true;
}

static int64_t time_of(const us_msg_header *header, int64_t source_time) {
    int64_t stamp = (int64_t)header->stamp.sec * 1000000000 + header->stamp.nanosec;
    return stamp ? stamp : source_time;
}

static bool is_finite(us_vec3 a) { return isfinite(a.x + a.y + a.z); }

static bool read_quaternion(double w, double x, double y, double z, us_quat *out) {
    double n2 = w * w + x * x + y * y + z * z;
    if (!isfinite(n2) || n2 < 1e-6) return false;
    *out = us_quat_normalize((us_quat){w, x, y, z});
    return true;
}

static bool take_odom(usi_estimate *e, const us_msg_odometry *m, int64_t source_time, int64_t now) {
    us_pose X = {.p = {m->pose.pose.position.x, m->pose.pose.position.y, m->pose.pose.position.z}};
    us_vec3 v = {m->twist.twist.linear.x, m->twist.twist.linear.y, m->twist.twist.linear.z};
    us_vec3 w = {m->twist.twist.angular.x, m->twist.twist.angular.y, m->twist.twist.angular.z};
    if (!read_quaternion(m->pose.pose.orientation.w, m->pose.pose.orientation.x, m->pose.pose.orientation.y,
                         m->pose.pose.orientation.z, &X.q) ||
        !is_finite(X.p) || !is_finite(v) || !is_finite(w)) {
        return false;
    }
    if (!take_time(time_of(&m->header, source_time), now, &e->odom_time, &e->odom_heard, &e->odom_period))
        return false;
    e->X_OB = X;
    e->v_B = v;
    e->w_B = w;
    snprintf(e->odom_frame, sizeof e->odom_frame, "%s", m->header.frame_id);
    snprintf(e->base_frame, sizeof e->base_frame, "%s", m->child_frame_id);
    return true;
}

// The joint of that name, usually at index `guess`; a new one where there is room.
static usi_estimate_joint *find_joint(usi_estimate *e, const char *name, uint32_t guess) {
    if (guess < (uint32_t)e->n_joint && !strncmp(e->joint[guess].name, name, USI_ESTIMATE_NAME - 1))
        return &e->joint[guess];
    for (int32_t i = 0; i < e->n_joint; i++) {
        if (!strncmp(e->joint[i].name, name, USI_ESTIMATE_NAME - 1)) return &e->joint[i];
    }
    if (e->n_joint == USI_MAX_ESTIMATE_JOINT) return NULL;
    usi_estimate_joint *joint = &e->joint[e->n_joint++];
    *joint = (usi_estimate_joint){.position = NAN, .velocity = NAN, .effort = NAN};
    snprintf(joint->name, sizeof joint->name, "%s", name);
    return joint;
}

static double number_at(const double *numbers, uint32_t n, uint32_t i) {
    return i < n && isfinite(numbers[i]) ? numbers[i] : NAN;
}

static bool take_joints(usi_estimate *e, const us_msg_joint_state *m, int64_t source_time, int64_t now) {
    if (!take_time(time_of(&m->header, source_time), now, &e->joints_time, &e->joints_heard,
                   &e->joints_period))
        return false;
    for (uint32_t i = 0; i < m->name._length; i++) {
        usi_estimate_joint *joint = find_joint(e, m->name._buffer[i], i);
        if (!joint) continue;
        joint->position = number_at(m->position._buffer, m->position._length, i);
        joint->velocity = number_at(m->velocity._buffer, m->velocity._length, i);
        joint->effort = number_at(m->effort._buffer, m->effort._length, i);
    }
    return true;
}

static bool take_battery(usi_estimate *e, const us_msg_battery_state *m, int64_t source_time, int64_t now) {
    if (!take_time(time_of(&m->header, source_time), now, &e->battery_time, &e->battery_heard, NULL))
        return false;
    double charge = (double)m->percentage;
    if (!isfinite(charge)) charge = (double)m->charge / (double)m->capacity;
    e->voltage = isfinite(m->voltage) ? (double)m->voltage : NAN;
    e->current = isfinite(m->current) ? (double)m->current : NAN;
    e->charge = charge >= 0 && charge <= 1 ? charge : NAN;
    return true;
}

static bool take_imu(usi_estimate *e, const us_msg_imu *m, int64_t source_time, int64_t now) {
    us_vec3 w = {m->angular_velocity.x, m->angular_velocity.y, m->angular_velocity.z};
    us_vec3 a = {m->linear_acceleration.x, m->linear_acceleration.y, m->linear_acceleration.z};
    if (!is_finite(w) || !is_finite(a) ||
        !take_time(time_of(&m->header, source_time), now, &e->imu_time, &e->imu_heard, &e->imu_period))
        return false;
    e->w_I = w;
    e->a_I = a;
    // By convention a first covariance of -1 says that there is no orientation.
    e->has_orientation =
        m->orientation_covariance[0] >= 0 &&
        read_quaternion(m->orientation.w, m->orientation.x, m->orientation.y, m->orientation.z, &e->R_WI);
    if (!e->has_orientation) e->R_WI = us_quat_identity();
    return true;
}

usi_estimate_group usi_estimate_take(usi_estimate *e, const char *topic, const us_message_type *type,
                                     const void *bytes, size_t length, int64_t source_time, int64_t now) {
    usi_estimate_group group = usi_estimate_group_of(type);
    if (group == USI_N_ESTIMATE) return group;
    _Alignas(16) uint8_t memory[MEMORY_SIZE];
    const void *message = NULL;
    if (us_message_decode(type, bytes, length, memory, sizeof memory, &message, NULL) ||
        !is_chosen(e, topic, group))
        return USI_N_ESTIMATE;
    bool is_taken = false;
    switch (group) {
    case USI_ESTIMATE_ODOM:
        is_taken = take_odom(e, message, source_time, now);
        break;
    case USI_ESTIMATE_JOINTS:
        is_taken = take_joints(e, message, source_time, now);
        break;
    case USI_ESTIMATE_BATTERY:
        is_taken = take_battery(e, message, source_time, now);
        break;
    case USI_ESTIMATE_IMU:
        is_taken = take_imu(e, message, source_time, now);
        break;
    case USI_N_ESTIMATE:
        break;
    }
    return is_taken ? group : USI_N_ESTIMATE;
}

void usi_switch_get_estimate(us_switch *sw, us_switch_source source, usi_estimate *out) {
    *out = (usi_estimate){0};
    if (source != US_SWITCH_HARDWARE && source != US_SWITCH_PROXY) return;
    pthread_mutex_lock(&sw->estimate_lock);
    *out = sw->estimates[source];
    pthread_mutex_unlock(&sw->estimate_lock);
}

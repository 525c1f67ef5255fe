// Samples of what a robot's sensors and firmware know, and of where it really is.
#include <math.h>
#include <stdio.h>

#include "proxy/proxy__sample.h"
#include "spec/sensor_kind.h"

void usi_sample_joint_states(usi_sampling *w) {
    const usi_robot *r = w->r;
    us_msg_joint_state m = {0};
    usi_sampling_head(w, &m.header, "");
    USI_SAMPLING_TAKE(w, m.name, r->model->firmware.n_joint);
    USI_SAMPLING_TAKE(w, m.position, r->model->firmware.n_joint);
    USI_SAMPLING_TAKE(w, m.velocity, r->model->firmware.n_joint);
    USI_SAMPLING_TAKE(w, m.effort, r->model->firmware.n_joint);
    if (r->model->firmware.n_joint > 0 && m.effort._length == 0) return;
    const double *torque = us_sim_view_torque(w->sim);
    for (int32_t i = 0; i < r->model->firmware.n_joint; i++) {
        const usi_firmware_joint *j = &r->model->firmware.joint[i];
        m.name._buffer[i] = usi_text(j->name);
        m.position._buffer[i] = usi_noise_add(w, US_NOISE_JOINT_POSITION, i, usi_read_q(r, w->sim, i));
        m.velocity._buffer[i] = usi_noise_add(w, US_NOISE_JOINT_VELOCITY, i, usi_read_v(r, w->sim, i));
        m.effort._buffer[i] = j->drive >= 0 ? torque[r->model->drive[j->drive].index] : 0;
    }
    usi_sampling_send(w, &m);
}

// Where odometry says that it is: x, y, yaw.
static void read_odom(const usi_sampling *w, double out[3]) {
    out[0] = usi_noise_add(w, US_NOISE_ODOM_POSITION, 0, w->firmware->odom[0]);
    out[1] = usi_noise_add(w, US_NOISE_ODOM_POSITION, 1, w->firmware->odom[1]);
    out[2] = usi_noise_add(w, US_NOISE_ODOM_YAW, 0, w->firmware->odom[2]);
}

void usi_sample_odom(usi_sampling *w) {
    const usi_robot *r = w->r;
    us_msg_odometry m = {0};
    usi_sampling_head(w, &m.header, r->model->odom_frame);
    m.child_frame_id = usi_text(r->model->base_frame);
    double at[3];
    read_odom(w, at);
    m.pose.pose = usi_message_planar_pose(at);
    const double *v = w->firmware->odom_v;
    m.twist.twist.linear.x = usi_noise_add(w, US_NOISE_ODOM_SPEED, 0, v[0]);
    m.twist.twist.linear.y = usi_noise_add(w, US_NOISE_ODOM_SPEED, 1, v[1]);
    m.twist.twist.angular.z = usi_noise_add(w, US_NOISE_ODOM_YAW_RATE, 0, v[2]);
    usi_message_odometry_covariance(m.pose.covariance, m.twist.covariance);
    usi_sampling_send(w, &m);
}

// Where it really is: on a name of its own, for those who test.
void usi_sample_truth(usi_sampling *w) {
    const usi_robot *r = w->r;
    us_msg_odometry m = {0};
    usi_sampling_head(w, &m.header, "world");
    m.child_frame_id = usi_text(r->model->root_frame);
    m.pose.pose = usi_message_pose(us_sim_get_pose(w->sim, r->model->root));
    if (r->model->floating.i >= 0) {
        const double *v = us_sim_view_v(w->sim) + r->model->base_v;
        m.twist.twist.angular = (us_msg_vector3){v[0], v[1], v[2]};
        m.twist.twist.linear = (us_msg_vector3){v[3], v[4], v[5]};
    }
    usi_sampling_send(w, &m);
}

// ---------------------------------------------------------------- frames

static us_msg_transform_stamped transform_of(usi_sampling *w, const char *parent, const char *child,
                                             us_pose X) {
    us_msg_transform_stamped t = {0};
    usi_sampling_head(w, &t.header, parent);
    t.child_frame_id = usi_text(child);
    t.transform.translation = (us_msg_vector3){X.p.x, X.p.y, X.p.z};
    t.transform.rotation = (us_msg_quaternion){X.q.x, X.q.y, X.q.z, X.q.w};
    return t;
}

// The firmware does not know that something has come off: a frame behind a break is where the last reading of
// its encoder has it. A joint without an encoder is known by its drawing alone.
static us_pose as_remembered(const usi_sampling *w, const usi_robot_frame *f) {
    if (f->joint < 0) return f->X_PF;
    double q = usi_noise_add(w, US_NOISE_JOINT_POSITION, f->joint, usi_read_q(w->r, w->sim, f->joint));
    double half = 0.5 * f->rotation * q;
    us_pose X = {{cos(half), sin(half) * f->axis.x, sin(half) * f->axis.y, sin(half) * f->axis.z},
                 us_vec3_scale(f->distance * q, f->axis)};
    return us_pose_mul(f->X_PF, X);
}

// Frames come from what the encoders say: beyond where the joint is, along its own axis, as far as the
// reading is off.
static us_pose as_read(const usi_sampling *w, const usi_robot_frame *f, us_pose X_PC) {
    double q = usi_noise_add(w, US_NOISE_JOINT_POSITION, f->joint, usi_read_q(w->r, w->sim, f->joint));
    double off = q - us_sim_view_q(w->sim)[w->r->model->joint[f->joint].q];
    if (off == 0) return X_PC;
    double half = 0.5 * f->rotation * off;
    us_pose X = {{cos(half), sin(half) * f->axis.x, sin(half) * f->axis.y, sin(half) * f->axis.z},
                 us_vec3_scale(f->distance * off, f->axis)};
    return us_pose_mul(X_PC, X);
}

us_pose usi_sampling_frame(const usi_sampling *w, const usi_robot_frame *f) {
    if (f->is_lost || f->child_body.i < 0) return as_remembered(w, f);
    us_pose X_PC = us_pose_mul(us_pose_inverse(us_sim_get_pose(w->sim, f->parent_body)),
                               us_sim_get_pose(w->sim, f->child_body));
    return f->joint >= 0 ? as_read(w, f, X_PC) : X_PC;
}

static us_pose planar_pose(const double at[3]) {
    us_pose X = us_pose_identity();
    X.p = us_vec3_make(at[0], at[1], 0);
    X.q = (us_quat){cos(0.5 * at[2]), 0, 0, sin(0.5 * at[2])};
    return X;
}

static void sample_frames(usi_sampling *w, bool is_fixed) {
    const usi_robot *r = w->r;
    // Of a robot that moves: where its odometry began by its pose estimator, and its base by odometry.
    // Its site has a frame once it was set down elsewhere than map.
    const double *site = w->firmware->setting.site;
    const bool has_site = usi_can_move(r) && (site[0] != 0 || site[1] != 0 || site[2] != 0);
    const int32_t n_own = (usi_can_move(r) ? 2 : 0) + has_site;
    const bool stands = usi_robot_stands(r->model);
    int32_t n =
        is_fixed ? r->model->n_fixed_frame + stands : r->model->n_frame - r->model->n_fixed_frame + n_own;
    if (n == 0) return;
    us_msg_tf_message m = {0};
    USI_SAMPLING_TAKE(w, m.transforms, n);
    if (m.transforms._length == 0) return;
    int32_t k = 0;
    if (!is_fixed && usi_can_move(r)) {
        m.transforms._buffer[k++] =
            transform_of(w, "map", r->model->odom_frame, planar_pose(w->firmware->pose_offset));
        double at[3];
        read_odom(w, at);
        us_pose X = planar_pose(at);
        // A frame has one parent: where the base hangs on another link, it is that one's root.
        X = us_pose_mul(X, us_pose_mul(us_pose_inverse(us_sim_get_pose(w->sim, r->model->base)),
                                       us_sim_get_pose(w->sim, r->model->root)));
        m.transforms._buffer[k++] = transform_of(w, r->model->odom_frame, r->model->root_frame, X);
    }
    char site_frame[200];
    snprintf(site_frame, sizeof site_frame, "%.180ssite", r->model->network->frame_prefix);
    if (!is_fixed && has_site)
        m.transforms._buffer[k++] = transform_of(w, "map", site_frame, planar_pose(site));
    if (is_fixed && stands)
        m.transforms._buffer[k++] =
            transform_of(w, "map", r->model->root_frame, us_sim_get_pose(w->sim, r->model->root));
    for (int32_t i = 0; i < r->model->n_frame; i++) {
        const usi_robot_frame *f = &r->model->frame[i];
        if (f->is_fixed != is_fixed) continue;
        m.transforms._buffer[k++] = transform_of(w, f->parent, f->child, usi_sampling_frame(w, f));
    }
    usi_sampling_send(w, &m);
}

void usi_sample_tf(usi_sampling *w) { sample_frames(w, false); }
void usi_sample_tf_static(usi_sampling *w) { sample_frames(w, true); }

// ---------------------------------------------------------------- readings

const double *usi_sampling_numbers(const usi_sampling *w) {
    const usi_sensor *k = &w->p->model->sensor[w->sensor];
    return w->is_truth ? w->sim->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_TRUTH)
                       : usi_sim_reading(w->sim, w->sensor);
}

void usi_sample_imu(usi_sampling *w) {
    us_msg_imu m = {0};
    const usi_sensor *k = &w->p->model->sensor[w->sensor];
    const double *x = usi_sampling_numbers(w);
    usi_sampling_head(w, &m.header, k->frame);
    const us_quat q = usi_noise_turn(w, w->sensor, (us_quat){x[0], x[1], x[2], x[3]});
    double rate[3], force[3];
    for (int i = 0; i < 3; i++) {
        rate[i] = usi_noise_add(w, US_NOISE_IMU_RATE, 3 * w->sensor + i, x[4 + i]);
        force[i] = usi_noise_add(w, US_NOISE_IMU_ACCELERATION, 3 * w->sensor + i, x[7 + i]);
    }
    m.orientation = (us_msg_quaternion){q.x, q.y, q.z, q.w};
    m.angular_velocity = (us_msg_vector3){rate[0], rate[1], rate[2]};
    m.linear_acceleration = (us_msg_vector3){force[0], force[1], force[2]};
    const double *parameter = w->sim->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_PARAMETER);
    const int32_t force_noise = usi_find_parameter(k->kind, "force-noise"),
                  spin_noise = usi_find_parameter(k->kind, "spin-noise");
    for (int i = 0; i < 9 && !w->is_truth; i += 4) {
        m.linear_acceleration_covariance[i] = parameter[force_noise] * parameter[force_noise];
        m.angular_velocity_covariance[i] = parameter[spin_noise] * parameter[spin_noise];
    }
    usi_sampling_send(w, &m);
}

void usi_sample_battery(usi_sampling *w) {
    const usi_sensor *k = &w->p->model->sensor[w->sensor];
    const usi_battery *b = &w->p->model->battery[k->battery];
    const double *x = usi_sampling_numbers(w);
    us_msg_battery_state m = {0};
    usi_sampling_head(w, &m.header, k->frame);
    const double left = usi_noise_add(w, US_NOISE_BATTERY_CHARGE, 0, x[0]);
    m.voltage = (float)usi_noise_add(w, US_NOISE_BATTERY_VOLTAGE, 0, x[1]);
    m.temperature = NAN;
    m.current = (float)usi_noise_add(w, US_NOISE_BATTERY_CURRENT, 0, x[2]);
    m.capacity = (float)(b->capacity / 3600 / b->voltage);
    m.design_capacity = m.capacity;
    m.charge = (float)((double)m.capacity * left);
    m.percentage = (float)left;
    m.power_supply_status = 2;  // discharging
    m.present = true;
    m.location = usi_text("");
    m.serial_number = usi_text("");
    usi_sampling_send(w, &m);
}

void usi_sample_description(usi_sampling *w) {
    us_msg_string m = {usi_text(w->r->description)};
    usi_sampling_send(w, &m);
}

// Samples of a robot while they are made: whose, of what moment, and the memory of their arrays.
#ifndef USI_PROXY__SAMPLE_H
#define USI_PROXY__SAMPLE_H

#include "proxy/proxy__robot.h"

typedef struct usi_sampling {
    us_proxy *p;
    usi_robot *r;
    const us_sim *sim;
    const usi_robot_state *s;
    const usi_firmware_state *firmware;
    int64_t time;     // now, ns
    int64_t of_time;  // the moment that the sample is of
    int32_t outlet;   // of the robot
    int32_t sensor;   // of the model, whose reading it is; -1: none
    bool is_truth;    // what a perfect sensor would say
    size_t used;      // of the proxy's memory for one message
    usi_sink sink;
} usi_sampling;

// publish.c: samples of a robot as it is now.
usi_sampling usi_sampling_begin(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s);
// Memory for n things of `each` bytes, all 0; NULL when there is none left.
void *usi_sampling_take(usi_sampling *w, size_t n, size_t each);
// Makes a sequence of n elements; of none when there is no room.
#define USI_SAMPLING_TAKE(w, sequence, n)                                                   \
    do {                                                                                    \
        (sequence)._buffer = usi_sampling_take(w, (size_t)(n), sizeof *(sequence)._buffer); \
        (sequence)._length = (sequence)._maximum = (sequence)._buffer ? (uint32_t)(n) : 0;  \
    } while (0)
void usi_sampling_head(const usi_sampling *w, us_msg_header *header, const char *frame);
// The message leaves on the outlet.
void usi_sampling_send(usi_sampling *w, const void *message);
// So does one that is encoded in the proxy's bytes.
void usi_sampling_pass(usi_sampling *w, size_t length);
// sample.c: the child of a frame in its parent, by the encoders.
us_pose usi_sampling_frame(const usi_sampling *w, const usi_robot_frame *f);

// message_part.c: parts of messages. Variances of wheel odometry: what a rover on wheels that slip a little
// can promise, and no promise about what it does not measure.
us_msg_pose usi_message_pose(us_pose X);
us_msg_pose usi_message_planar_pose(const double x[3]);
void usi_message_odometry_covariance(double *pose, double *twist);

// sample.c, diagnostics.c, service.c: one function per source.
typedef void usi_sample_function(usi_sampling *w);
usi_sample_function usi_sample_joint_states, usi_sample_odom, usi_sample_tf, usi_sample_tf_static,
    usi_sample_imu, usi_sample_description, usi_sample_battery, usi_sample_diagnostics, usi_sample_truth,
    usi_sample_motor_group, usi_sample_locomotor, usi_sample_pose_estimator, usi_sample_navigator,
    usi_sample_points, usi_sample_scan, usi_sample_readings, usi_sample_image, usi_sample_camera_info,
    usi_sample_depth;

// sample_lidar.c: when the turn began that a lidar shows, ns; and whether a topic of so many Hz sends it now.
int64_t usi_lidar_sample_time(const us_sim *sim, int32_t lidar);
bool usi_lidar_is_due(const us_sim *sim, int32_t sensor, double rate);
// The same of its truth, which waits for nothing and is never lost.
bool usi_lidar_truth_is_due(const us_sim *sim, int32_t sensor);

// interface_list.c: a lidar's last whole turn as lists of an interface's samples, of which it takes one or
// more.
typedef struct usi_lidar_list {
    usi_member_list list;  // for usi_members_write
    const struct usi_lidar *l;
    const usi_endpoint *e;
    usi_wire_value *values;
    const float (*from)[4];  // column by column
    size_t first, end;       // shots, ring by ring, of the sample at hand
    uint32_t n;              // points among them
    size_t next;             // where the next point is looked for
} usi_lidar_list;
// Sets out with the first sample; false: there is no turn.
bool usi_lidar_list_begin(usi_lidar_list *t, const usi_sampling *w, const usi_endpoint *e);
// To the next sample; false: that was all.
bool usi_lidar_list_go_on(usi_lidar_list *t);

// What a sensor says, or what would be true.
const double *usi_sampling_numbers(const usi_sampling *w);

// A value with what the robot's instruments add to it (noise.c); `index` distinguishes the components of a
// kind. The truth has none. And an orientation, of the inertial unit `index`.
double usi_noise_of(const usi_sampling *w, us_noise_kind kind, int32_t index, double x);
static inline double usi_noise_add(const usi_sampling *w, us_noise_kind kind, int32_t index, double x) {
    const us_noise *n = &w->r->model->network->noise[kind];
    if (w->is_truth || !(n->deviation > 0 || n->step > 0)) return x;
    return usi_noise_of(w, kind, index, x);
}
us_quat usi_noise_turn(const usi_sampling *w, int32_t index, us_quat q);

// rover_service.c: replies that are no status.
void usi_reply_properties(usi_sampling *w, const usi_reply *reply);
void usi_reply_wait(usi_sampling *w, const usi_reply *reply);

#endif

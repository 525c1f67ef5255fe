// Comparison of hardware and proxy: how far their published states differ, and since when.
//
// No clocks, threads or sockets: it is fed samples and times. docs/switch.md has the mathematics.
#ifndef USI_SWITCH_SHADOW_H
#define USI_SWITCH_SHADOW_H

#include "switch/estimate.h"
#include "switch/track.h"
#include "understudy/switch.h"

// Residuals: of the body and its sensors, and two of each joint.
enum {
    USI_POSE_X,
    USI_POSE_Y,
    USI_POSE_YAW,
    USI_SPEED_X,
    USI_SPEED_Y,
    USI_SPEED_YAW,
    USI_RATE_X,
    USI_RATE_Y,
    USI_RATE_Z,
    USI_ACCELERATION_X,
    USI_ACCELERATION_Y,
    USI_ACCELERATION_Z,
    USI_IMU_YAW,
    USI_FIRST_JOINT,
    USI_MAX_RESIDUAL = USI_FIRST_JOINT + 2 * USI_MAX_ESTIMATE_JOINT
};

enum {
    USI_N_COMPARED = 3,
    USI_MAX_CHANNEL = 3 * USI_MAX_ESTIMATE_JOINT,
    USI_N_FOLLOWER = 3,
    USI_RESIDUAL_NAME = USI_ESTIMATE_NAME + 16
};

typedef struct usi_residual {
    double value, tolerance, ratio;  // hardware less proxy, low-passed
    double compared;                 // our time of the last comparison, s; negative: never
    double onset;                    // since when the ratio is above 1, s; negative: it is not
} usi_residual;

// One of the two sources in the comparison.
typedef struct usi_shadow_side {
    bool has_origin;
    int64_t origin;  // the stamp at which its time is 0, ns
    usi_clock clock;
    usi_track tracks[USI_N_COMPARED];  // odometry, joints, inertial unit
    double yaw, imu_yaw;               // unwrapped
    bool has_yaw, has_imu_yaw;
    double anchor[4];                 // x, y, yaw, imu_yaw where the distance was counted last
    double path, turned, imu_turned;  // distance and rotations so far: m, rad, rad
    double smooth[6], smooth_time;    // inertial unit, low-passed
    double joint_anchor[USI_MAX_ESTIMATE_JOINT], joint_turned[USI_MAX_ESTIMATE_JOINT];
    bool has_joint[USI_MAX_ESTIMATE_JOINT];
} usi_shadow_side;

typedef struct usi_deviation {
    int32_t residual;
    double value, tolerance, time;  // when the ratio came above 1, our time
} usi_deviation;

typedef struct usi_shadow {
    us_shadow_def def;
    int64_t origin;  // our time 0, ns of usi_switch_now
    double begun;    // of the comparison, s
    usi_shadow_side sides[2];
    usi_lag lag;
    double lag_estimated;
    double next[USI_N_COMPARED];  // when each group is compared next, our time
    bool has_reference[USI_N_COMPARED];
    double reference[2][USI_N_COMPARED][USI_MAX_CHANNEL];  // where both were when the comparison began
    // Distance between the two that comes from their headings, m; and the position up to which it is summed.
    double explained[2], explained_at[2];

    int32_t n_joint;
    char joints[USI_MAX_ESTIMATE_JOINT][USI_ESTIMATE_NAME];
    bool is_continuous[USI_MAX_ESTIMATE_JOINT];
    int32_t n_described;  // continuous joints by the robot's description
    char described[USI_MAX_ESTIMATE_JOINT][USI_ESTIMATE_NAME];

    usi_residual residuals[USI_MAX_RESIDUAL];
    double confidence;
    int32_t worst;  // residual; -1: nothing is compared
    us_shadow_state state;
    double since;         // of the state
    double pending;       // since when the confidence asks for another state; negative: it does not
    double event_time;    // negative: there was none
    int32_t n_deviation;  // the first deviation of the event, and those that followed
    usi_deviation deviations[1 + USI_N_FOLLOWER];
    bool is_event_new;

    double values[2][USI_TRACK_SIZE * (8 + 8 + USI_MAX_CHANNEL)];  // of the tracks
} usi_shadow;

us_shadow_def usi_shadow_def_default(void);
us_status usi_shadow_check(const us_shadow_def *def, us_error *err);
void usi_shadow_init(usi_shadow *s, const us_shadow_def *def, int64_t now);
// Begins a comparison: all samples are forgotten.
void usi_shadow_begin(usi_shadow *s, int64_t now);
void usi_shadow_end(usi_shadow *s);
// Which joints are continuous, by the robot's description.
void usi_shadow_describe(usi_shadow *s, const char *urdf, size_t length);
// A new sample of a source, which is in `e`.
void usi_shadow_take(usi_shadow *s, us_switch_source source, usi_estimate_group group, const usi_estimate *e);
// Compares what can be compared by now.
void usi_shadow_step(usi_shadow *s, int64_t now);

void usi_shadow_residual_name(const usi_shadow *s, int32_t i, char out[USI_RESIDUAL_NAME]);

// ---- shadow_report.c ----
// Lines of JSON; `wall` is the wall time, ns, of `now`. The length.
size_t usi_shadow_encode(const usi_shadow *s, const char *robot, int64_t now, int64_t wall, char *out,
                         size_t cap);
size_t usi_shadow_encode_event(const usi_shadow *s, const char *robot, int64_t now, int64_t wall, char *out,
                               size_t cap);
// The event as text for people: its deviations from index `from` on.
void usi_shadow_format_event(const usi_shadow *s, int32_t from, char *out, size_t cap);

#endif

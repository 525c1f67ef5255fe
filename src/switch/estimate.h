// State of a source by its own outputs: the latest odometry, joint states, battery state and inertial sample.
//
// Both sources are observed all the time, whoever is in control: a hand-over reads the state of the source
// that loses control, and the shadow compares the two.
#ifndef USI_SWITCH_ESTIMATE_H
#define USI_SWITCH_ESTIMATE_H

#include "understudy/math.h"
#include "understudy/switch.h"

enum { USI_MAX_ESTIMATE_JOINT = 64, USI_ESTIMATE_NAME = 64 };

typedef enum usi_estimate_group {
    USI_ESTIMATE_ODOM,
    USI_ESTIMATE_JOINTS,
    USI_ESTIMATE_BATTERY,
    USI_ESTIMATE_IMU,
    USI_N_ESTIMATE
} usi_estimate_group;

typedef struct usi_estimate_joint {
    char name[USI_ESTIMATE_NAME];
    double position, velocity, effort;  // NaN: not published
} usi_estimate_joint;

// Each group has the source time of its sample (ns: the stamp of its header, or that of the sample where the
// header has none) and its arrival time (heard, ns of usi_switch_now; 0: never). One topic of each type
// counts: that of the usual name (odom, joint_states, battery_state, imu/data), or the first that was
// received.
typedef struct usi_estimate {
    int64_t odom_time, odom_heard;
    us_pose X_OB;      // the base in the odometry's frame
    us_vec3 v_B, w_B;  // m/s, rad/s, in the base's axes, as nav_msgs/Odometry has it
    char odom_frame[USI_ESTIMATE_NAME], base_frame[USI_ESTIMATE_NAME];
    int64_t joints_time, joints_heard;
    int32_t n_joint;
    usi_estimate_joint joint[USI_MAX_ESTIMATE_JOINT];
    int64_t battery_time, battery_heard;
    double voltage, current, charge;  // V, A, fraction of the capacity; NaN: not published
    int64_t imu_time, imu_heard;
    us_quat R_WI;
    us_vec3 w_I, a_I;                               // rad/s, m/s^2
    double odom_period, joints_period, imu_period;  // s, a running mean of source times; 0: not known yet
    bool has_orientation;                           // R_WI is measured
    char topics[USI_N_ESTIMATE][USI_ESTIMATE_NAME];
} usi_estimate;

// Which group a message of that type belongs to; USI_N_ESTIMATE: none.
usi_estimate_group usi_estimate_group_of(const us_message_type *type);
// Takes an output of a source; types that are no state are ignored. Cheap. The caller guards the estimate.
// Which group is new: USI_N_ESTIMATE when none, for example because the sample is older than the one before,
// or not finite.
usi_estimate_group usi_estimate_take(usi_estimate *e, const char *topic, const us_message_type *type,
                                     const void *bytes, size_t length, int64_t source_time, int64_t now);
// A copy of a source's latest; from any thread.
void usi_switch_get_estimate(us_switch *sw, us_switch_source source, usi_estimate *out);

#endif

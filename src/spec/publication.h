// Topics of robots: where samples come from, on what names they are published, and on what names robots
// listen.
#ifndef USI_SPEC_PUBLICATION_H
#define USI_SPEC_PUBLICATION_H

#include "base/memory.h"
#include "understudy/network.h"

// X(code, name, topic, type, rate in Hz, is_once). A topic with "/" before it is the same for all robots;
// that of the truth is below /understudy/truth: it is not the robot's to say.
#define USI_SOURCE_LIST(X)                                                                                  \
    X(JOINT_STATES, "joint_states", "joint_states", "sensor_msgs/msg/JointState", 50, false)                \
    X(ODOM, "odom", "odom", "nav_msgs/msg/Odometry", 50, false)                                             \
    X(TF, "tf", "/tf", "tf2_msgs/msg/TFMessage", 50, false)                                                 \
    X(TF_STATIC, "tf_static", "/tf_static", "tf2_msgs/msg/TFMessage", 1, true)                              \
    X(IMU, "imu", "imu/data", "sensor_msgs/msg/Imu", 100, false)                                            \
    X(ROBOT_DESCRIPTION, "robot_description", "robot_description", "std_msgs/msg/String", 1, true)          \
    X(BATTERY, "battery", "battery_state", "sensor_msgs/msg/BatteryState", 1, false)                        \
    X(DIAGNOSTICS, "diagnostics", "/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", 1, false)          \
    X(TRUTH, "truth", "odom", "nav_msgs/msg/Odometry", 50, false)                                           \
    X(MOTOR_GROUP, "motor_group", "motor_group/status", "understudy_msgs/msg/MotorGroupStatus", 25, false)  \
    X(LOCOMOTOR, "locomotor", "locomotor/status", "understudy_msgs/msg/LocomotorStatus", 25, false)         \
    X(POSE_ESTIMATOR, "pose_estimator", "pose_estimator/status", "understudy_msgs/msg/PoseEstimatorStatus", \
      25, false)                                                                                            \
    X(NAVIGATOR, "navigator", "navigator/status", "understudy_msgs/msg/NavigatorStatus", 5, false)          \
    X(POINTS, "lidar", "points", "sensor_msgs/msg/PointCloud2", 10, false)                                  \
    X(SCAN, "scanner", "scan", "sensor_msgs/msg/LaserScan", 40, false)                                      \
    X(READINGS, "readings", "data", "understudy_msgs/msg/SensorReadings", 100, false)                       \
    X(IMAGE, "camera", "image_raw", "sensor_msgs/msg/Image", 10, false)                                     \
    X(CAMERA_INFO, "camera_info", "camera_info", "sensor_msgs/msg/CameraInfo", 10, false)                   \
    X(DEPTH, "camera_depth", "depth/image_raw", "sensor_msgs/msg/Image", 10, false)

typedef enum usi_source_kind {
#define USI_SOURCE_ENUM(code, name, topic, type, rate, is_once) USI_SOURCE_##code,
    USI_SOURCE_LIST(USI_SOURCE_ENUM)
#undef USI_SOURCE_ENUM
        USI_SOURCE_COUNT
} usi_source_kind;

// What a robot listens to. X(code, name in the robot's namespace). A topic has one type: which one cmd_vel
// has is a setting, and the other has a name of its own (usi_command_name).
#define USI_COMMAND_LIST(X)                         \
    X(USI_COMMAND_TWIST, "cmd_vel")                 \
    X(USI_COMMAND_TWIST_STAMPED, "cmd_vel_stamped") \
    X(USI_COMMAND_TRAJECTORY, "joint_trajectory")   \
    X(USI_COMMAND_JOINTS, "joint_commands")         \
    X(USI_COMMAND_MOTORS, "motor_group/command")    \
    X(USI_COMMAND_LOCOMOTOR, "locomotor/command")   \
    X(USI_COMMAND_POSE, "pose_estimator/command")   \
    X(USI_COMMAND_GAIT, "gait")                     \
    X(USI_COMMAND_NAVIGATOR, "navigator/command")   \
    X(USI_COMMAND_MOTOR_TEXT, "motors")             \
    X(USI_COMMAND_ASK_MOTORS, "motor_group")        \
    X(USI_COMMAND_ASK_LOCOMOTOR, "locomotor")       \
    X(USI_COMMAND_ASK_POSE, "pose_estimator")       \
    X(USI_COMMAND_ASK_NAVIGATOR, "navigator")       \
    X(USI_COMMAND_ASK_PROPERTIES, "properties")     \
    X(USI_COMMAND_ASK_WAIT, "wait")

typedef enum usi_command_topic {
#define USI_COMMAND_ENUM(code, name) code,
    USI_COMMAND_LIST(USI_COMMAND_ENUM)
#undef USI_COMMAND_ENUM
        USI_COMMAND_COUNT
} usi_command_topic;

// The last six are requests, each answered by a reply. Their names are those of the services.
enum { USI_COMMAND_ASK = USI_COMMAND_ASK_MOTORS, USI_SERVICE_COUNT = USI_COMMAND_COUNT - USI_COMMAND_ASK };

enum {
    USI_LINE_LIMIT = 32,            // inputs and outputs of the ASCII link
    USI_SENSOR_MAX_LATENCY = 10,    // s
    USI_SENSOR_MAX_DELAY = 1,       // s, that a fault adds
    USI_SENSOR_MAX_RATE = 1000000,  // Hz, that can be set while it runs
    USI_SENSOR_LIMIT = 32,          // sensors of a robot beside those that it has anyway
    USI_TOPIC_LIMIT = 128,          // topics that are written for a robot
    USI_TOPIC_NAME = 300,           // bytes of a topic's full name
    USI_ENDPOINT_LIMIT = 64,        // topics of an interface
    USI_INTERFACE_COMMAND_LIMIT = 64,
    USI_BINDING_LIMIT = 1024,
};

// The name of a command's topic, below the namespace.
const char *usi_command_name(const us_network_def *def, int32_t topic);

// Whether samples of a source are readings of a sensor.
static inline bool usi_is_sensor_source(int32_t source) {
    return source == USI_SOURCE_IMU || source == USI_SOURCE_BATTERY || source == USI_SOURCE_POINTS ||
           source == USI_SOURCE_SCAN || source >= USI_SOURCE_READINGS;
}
// Pictures of cameras: they leave when they are made.
static inline bool usi_is_picture_source(int32_t source) {
    return source == USI_SOURCE_IMAGE || source == USI_SOURCE_DEPTH;
}
// Frames of lidars: they leave when a turn is whole.
static inline bool usi_is_frame_source(int32_t source) {
    return source == USI_SOURCE_POINTS || source == USI_SOURCE_SCAN;
}

// The source that a publication names: directly, or through a sensor of the robot. -1: there is none.
int32_t usi_find_source(const us_network_def *d, const char *name);
// The source whose own topic this is, as scenes write it: "odom", "imu/data", "tf", "truth". -1: none.
int32_t usi_find_source_by_topic(const char *topic);
// A sensor that was asked for, by name; NULL: none.
const us_sensor_def *usi_find_sensor_def(const us_network_def *d, const char *name);
// The sensor of a publication's source: of that name, or the camera "eye" of "eye/camera_info" and, where it
// has depths, of "eye/depth".
const us_sensor_def *usi_find_source_sensor(const us_network_def *d, const char *source);
// The last part of its own topic: "data", "points" or "scan"; and the source of what it says.
const char *usi_sensor_topic(const us_sensor_def *sensor);
usi_source_kind usi_sensor_source(const us_sensor_def *sensor);
// Whether its readings have a frame of their own beside the link's.
bool usi_has_own_frame(const us_sensor_def *sensor);
// Hz at which a source is published by default. `name` is one that usi_find_source knows.
double usi_publication_rate(const us_network_def *d, const char *name);
// "/k10/odom" of "odom"; what begins with "/" or "dds:" stays.
void usi_endpoint_topic(const us_network_def *d, const char *name, char out[USI_TOPIC_NAME]);
// The full name of a topic whose name is filled in: "/k10/odom".
void usi_publication_topic(const us_network_def *d, const us_publication_def *t, char out[USI_TOPIC_NAME]);

// The type of the samples of a publication, whose source is known.
const char *usi_publication_type(const us_network_def *d, const us_publication_def *t);

// "/understudy/truth/k10/mast": of a sensor of the robot.
void usi_sensor_truth_topic(const us_network_def *d, const char *sensor, char out[USI_TOPIC_NAME]);

// Sensor i of the robot is good beside those before it. Errors: US_ERR_ARG, US_ERR_NAME, US_ERR_VALUE.
us_status usi_check_sensor(const us_spec *spec, const us_network_def *d, int32_t i, us_error *err);
// Publication i names a source, and its own name can be one.
us_status usi_check_publication(const us_network_def *d, int32_t i, us_error *err);
// All together, of a table that is complete. *out_which: the one that is wrong.
us_status usi_check_publications(const us_spec *spec, const us_network_def *d, int32_t *out_which,
                                 us_error *err);

// Completes the table: all names are filled in, and each source and each sensor that no row names has one. It
// is a new one in the arena. False without memory.
bool usi_complete_publications(usi_arena *arena, us_network_def *d);

#endif

// How a robot of the scene appears on the network: part of the spec.
//
// Every <robot> of a scene has a ROS 2 interface; <network>, <locomotion>, <battery> and <motors> inside it
// say more, and <network enabled="false"/> hides it.
#ifndef UNDERSTUDY_NETWORK_H
#define UNDERSTUDY_NETWORK_H

#include "understudy/interface.h"
#include "understudy/sensor.h"
#include "understudy/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where the samples of a topic come from: the robot's state, its firmware or one of its sensors.
typedef struct us_topic_source {
    const char *name;  // "odom"; that of a sensor is the sensor's
    const char *type;  // "nav_msgs/msg/Odometry"
    double rate;       // Hz, by default
    bool is_once;      // sent once, and again on change: any rate above 0 is on
} us_topic_source;

// Sources by number; NULL beyond the last. Those of sensors stand for the sensor that every robot has ("imu")
// or may have ("battery").
US_API const us_topic_source *us_topic_source_view(int32_t i);
// The topic on which a source is published by default: "/k10/odom" in the namespace "k10",
// "/tf" in any. Empty for a bad number.
US_API void us_topic_source_topic(int32_t i, const char *namespace_, char *buf, size_t cap);

// A topic that a robot publishes.
typedef struct us_publication_def {
    const char *source;  // of a us_topic_source or of a sensor of the robot
    const char *name;    // NULL: the source's own topic. In the robot's namespace, unless it begins with "/"
    double rate;         // Hz, at most one sample a step and one per sample of the sensor; 0: none
} us_publication_def;

typedef enum us_locomotion {
    US_LOCOMOTION_NONE,
    US_LOCOMOTION_SKID,       // wheels that only drive; it turns by different speeds left and right
    US_LOCOMOTION_ACKERMANN,  // some wheels steer, one turning centre on the line of those that do not
    US_LOCOMOTION_ALL_WHEEL,  // every wheel steers: any turning centre, also sideways
    US_LOCOMOTION_TRIPOD,     // six legs, of which three stand while three swing: any turning centre, also
                              // sideways
    US_LOCOMOTION_COUNT
} us_locomotion;

US_API const char *
us_locomotion_name(us_locomotion kind);  // "none", "skid", "ackermann", "all-wheel", "tripod"; "?" outside

typedef struct us_wheel_def {
    int32_t drive;  // of the spec: the drive of the rolling joint; its command is a velocity
    int32_t steer;  // the drive of the steering joint, its command is an angle; -1: it does not steer
    double radius;  // m
} us_wheel_def;

// A leg: its coxa turns about the vertical, femur and tibia about parallel horizontal axes, with all joints
// at 0. The foot is the sphere of the tibia's link. Lengths are measured from the model. Commands are angles.
typedef struct us_leg_def {
    int32_t coxa, femur, tibia;  // drives of the spec
} us_leg_def;

// One direction of the radio link, in simulated time. All 0: a perfect link.
typedef struct us_link_model {
    double delay;      // s
    double jitter;     // s: a further delay, uniform in [0, jitter]; samples of one topic keep their order
    double loss;       // probability that a sample is lost
    double bandwidth;  // bytes/s; 0: no limit
    int32_t n_outage;
    const double
        *outages;  // s: start and end of each window, in order; nothing passes; what was under way is lost
} us_link_model;

// How the robot's own clock and computer show in what it sends. All 0: stamps are simulated time, and a
// sample leaves as soon as it is made.
typedef struct us_timing {
    bool is_wall;   // stamps are the time of day, in a run in real time; else simulated time
    double offset;  // s: by which a stamp is ahead of the moment of its sample; negative: behind
    double drift;   // s that its clock gains in a second
    double delay;   // s of real time from that moment until the samples of one step leave, 0 to 1
    double jitter;  // s: a further delay of these, uniform in [0, jitter], 0 to 1
} us_timing;

// What noise is of: values as the robot publishes them. X(code, name in scenes)
#define US_NOISE_LIST(X)                             \
    X(US_NOISE_JOINT_POSITION, "joint-position")     \
    X(US_NOISE_JOINT_VELOCITY, "joint-velocity")     \
    X(US_NOISE_IMU_ORIENTATION, "imu-orientation")   \
    X(US_NOISE_IMU_RATE, "imu-rate")                 \
    X(US_NOISE_IMU_ACCELERATION, "imu-acceleration") \
    X(US_NOISE_ODOM_POSITION, "odom-position")       \
    X(US_NOISE_ODOM_YAW, "odom-yaw")                 \
    X(US_NOISE_ODOM_SPEED, "odom-speed")             \
    X(US_NOISE_ODOM_YAW_RATE, "odom-yaw-rate")       \
    X(US_NOISE_BATTERY_VOLTAGE, "battery-voltage")   \
    X(US_NOISE_BATTERY_CURRENT, "battery-current")   \
    X(US_NOISE_BATTERY_CHARGE, "battery-charge")

typedef enum us_noise_kind {
#define US_NOISE_ENUM(code, name) code,
    US_NOISE_LIST(US_NOISE_ENUM)
#undef US_NOISE_ENUM
        US_NOISE_COUNT
} us_noise_kind;

#define US_NOISE_MEMORY_MAX 10  // s

// What the instruments of the robot add to a value that it publishes. The robot itself goes by the value
// without it. All 0: nothing.
typedef struct us_noise {
    double deviation;  // standard deviation, in SI units (an orientation's: of each small angle, rad)
    double memory;     // s after which noise is forgotten: its autocorrelation is exp(-t / memory); 0: white
    double step;       // of what the instrument can tell apart; 0: everything
} us_noise;

typedef struct us_motor_def {
    char name[5];   // four characters
    int32_t drive;  // of the spec
} us_motor_def;

// An input or output of the ASCII link. Inputs show readings of the robot's sensors, outputs keep what they
// were told.
typedef enum us_line_kind {
    US_LINE_DIGITAL_IN,   // 1 where the reading is above `threshold`, else 0
    US_LINE_DIGITAL_OUT,  // 0 or 1
    US_LINE_ANALOG_IN,    // scale times the reading plus offset
    US_LINE_ANALOG_OUT,
    US_LINE_KIND_COUNT
} us_line_kind;
US_API const char *us_line_kind_name(us_line_kind kind);  // "digital-in", ...; "?" outside

typedef enum us_line_value {
    US_LINE_NOTHING,  // of outputs
    US_LINE_JOINT_POSITION,
    US_LINE_JOINT_VELOCITY,
    US_LINE_JOINT_TORQUE,
    US_LINE_BATTERY_CHARGE,  // of 1
    US_LINE_BATTERY_VOLTAGE,
    US_LINE_BATTERY_CURRENT,
    US_LINE_VALUE_COUNT
} us_line_value;
US_API const char *us_line_value_name(us_line_value value);  // "", "joint.position", ...; "?" outside

typedef struct us_line_def {
    char name[5];  // four characters
    us_line_kind kind;
    us_line_value value;  // of inputs
    int32_t drive;        // of the spec, whose joint is read; -1 for the battery and outputs
    double scale, offset, threshold;
} us_line_def;

// A fault that the scene has in store for a robot (docs/faults.md). A us_world carries it out.
typedef struct us_fault_def {
    const char *name;   // by which others come after it; NULL: none
    const char *after;  // another of this robot that must have come first; NULL: none
    double at;          // s, not before this time; counted from `after` where there is one
    const char *when;   // what must hold, "odom.x > 3 and battery < 0.5"; NULL: nothing
    double duration;    // s, after which it is undone; 0: it stays
    const char *what;   // as the world command `fault` has it: "motor:front_left_drive=dead"
    const char *file;   // where it was written; NULL when built by calls
    int32_t line;
} us_fault_def;

// A sensor beside those that every robot has: an encoder at each joint with one coordinate, the inertial unit
// "imu" at the root's origin, and "battery" where there is one. One that is named "imu" takes the place of
// that inertial unit.
//
// Published on "NAME/data" (or what its kind says: a lidar on "NAME/points", one of a single beam on
// "NAME/scan") where us_network_def.topics does not say otherwise, at the sensor's rate, or at 100 Hz if it
// samples at every step. Its frame is that of the link; one with a pose of its own has a frame NAME.
typedef struct us_sensor_def {
    const us_sensor_kind *kind;  // sensor.h; NULL: the inertial unit "imu"
    const char *name;            // as a topic's; not that of another source
    int32_t link;                // of the spec, one of the robot's
    us_pose X_BS;                // where it sits on the link: its axes are those of its readings
    double rate;                 // Hz at which it samples; 0: every step; of a lidar: turns per second
    double phase;                // s by which its samples come later than by the rate alone, 0 to a period
    double latency;              // s from a sample until the robot has it, 0 to 10
    uint64_t seed;               // of its random numbers, beside the world's
    const char *preset;          // of the kind; NULL: none
    int32_t n_setting;
    const us_sensor_setting *settings;  // of the kind's parameters, over those of the preset; a joint or link
                                        // is one of the spec
    const struct us_lidar_def *lidar;   // of a lidar (lidar.h); NULL for others
} us_sensor_def;

// Who commands a robot, and before whom. While a source commands, and for `hold` after its last command,
// commands of sources with a lower priority are refused; among equals the last command counts. Stops of
// everybody are obeyed: MSTP of the motor protocol, mode 0 of locomotor and navigator.
//
// A source is a way by which commands come: "network" (the robot's topics on DDS), "motor" (its motor port),
// "page", "foxglove", "world" (world commands and scripts); or a name of its own, with a topic of its own for
// velocities, for example "operator" on "operator/cmd_vel". Sources that are not named have priority 0.
typedef struct us_command_source {
    const char *name;   // at most 20 letters, digits and _
    const char *topic;  // of geometry_msgs/Twist, as us_publication_def has names; NULL for the ways above
    int32_t priority;   // the higher goes first; default 0
    double hold;        // s; default 0.5
    bool is_exclusive;  // its topics have exclusive ownership (us_qos), of "network" and those with a topic
} us_command_source;

typedef struct us_network_def {
    int32_t group;  // the robot
    bool is_off;
    const char *namespace_;  // default: the robot's name; "" for none. Topics are /NAMESPACE/NAME; clock, tf,
                             // tf_static and diagnostics are global
    const char *frame_prefix;  // before every frame id; default "NAME/", "" for a lone robot file
    const char *node;          // default "driver"
    const char *base_frame;  // full name of the link whose motion odometry estimates; default: the root link
    int32_t n_topic;
    const us_publication_def *topics;  // a source that none of them names is published on its own topic
    bool has_services;  // the rover services as requests and replies too, and what ROS tools expect of a node
                        // (parameters, log levels); default true
    bool is_stamped;    // cmd_vel has the type TwistStamped, and Twist comes on cmd_vel_unstamped; default
                        // false: Twist on cmd_vel, TwistStamped on cmd_vel_stamped
    double timeout;     // s: a motion command older than this stops the robot; 0: never; default 0.5
    us_locomotion locomotion;
    int32_t n_wheel;
    const us_wheel_def *wheels;  // of a file: as the kind needs them; an edit may have taken some away
    int32_t n_leg;
    const us_leg_def *legs;  // of a tripod: six
    double body_height;      // m, of the base's origin over the ground; above 0 for a tripod
    double stance;  // m, of a foot from the axis of its coxa in the middle of a step; 0: coxa and femur long
    double step_height, step_time,
        duty;                        // m; s of a cycle; share in which a foot stands; default 0.05, 1, 0.6
    double max_speed, max_turn;      // m/s, rad/s: commands beyond are refused; 0: no limit
    double max_acceleration;         // m/s^2 with which cmd_vel is followed; 0: at once
    double track_scale;              // skid: the track that counts in turning, over the real one; default 1
    us_link_model uplink, downlink;  // towards the robot, away from it
    us_timing timing;
    us_noise noise[US_NOISE_COUNT];
    double battery_capacity, battery_idle, battery_voltage;  // J, W, V; capacity 0: no battery_state
    int32_t motor_port;  // TCP and UDP port of the ASCII motor protocol; 0: none
    int32_t n_motor;
    const us_motor_def *motors;
    double motor_rate;    // Hz: how often MSTA may be sent for a motor that moves; default 25
    double motor_counts;  // of an encoder for a turn or a metre, as motor controllers see them; default 4096
    int32_t n_line;
    const us_line_def *lines;
    bool lets_go;  // its motors have no torque while the computer starts; default: they hold
    int32_t n_sensor;
    const us_sensor_def *sensors;
    int32_t n_source;
    const us_command_source *sources;
    us_interface
        *interface_;  // types of topics of its own; NULL: none. Whoever copies the definition keeps it
    int32_t n_endpoint, n_command, n_binding;
    const us_endpoint_def *endpoints;
    const us_interface_command *commands;
    const us_binding *bindings;
    int32_t n_fault;
    const us_fault_def *faults;
    const char *file;  // where it was written; NULL when built by calls
    int32_t line;
} us_network_def;

// namespace_, frame_prefix and base_frame are NULL: us_spec_set_network fills them in.
US_API us_network_def us_network_def_default(void);
// Replaces the group's definition if it has one; the links and drives that it names are there already. Texts
// and arrays are copied. Errors: US_ERR_ARG for bad indices and a base that is no link of the group,
// US_ERR_VALUE for numbers out of range, wheels or legs that do not fit the kind of locomotion and a port
// that another robot has, US_ERR_NAME for names that cannot be used or are used twice and a source that is
// not there, US_ERR_LIMIT for too many outages (32), sensors (32), topics (128), faults (64), sources (8),
// lines (32) or topics of an interface (64), US_ERR_SYNTAX for a fault or condition that cannot be read.
US_API us_status us_spec_set_network(us_spec *spec, const us_network_def *def);
// What was set for the group, with no text left open and all topics, or NULL. Scenes set it for every robot.
US_API const us_network_def *us_spec_view_network(const us_spec *spec, int32_t group);
// Settings of the whole world's network: rate of /clock in Hz (default 200; 0: off).
US_API us_status us_spec_set_clock_rate(us_spec *spec, double rate);
US_API double us_spec_get_clock_rate(const us_spec *spec);

#ifdef __cplusplus
}
#endif
#endif

// Topics of an interface of the robot's own, with every name found: members as places in the sample, values
// as numbers of joints, sensors and frames. What is sent and taken is then a walk over these rows.
#ifndef USI_MODEL_ROBOT_INTERFACE_H
#define USI_MODEL_ROBOT_INTERFACE_H

#include "understudy/network.h"
#include "wire/member.h"

// Where a value comes from.
typedef enum usi_value_source {
    USI_VALUE_NUMBER,  // a constant
    USI_VALUE_TEXT,
    USI_VALUE_TIME,         // s, of the robot's clock
    USI_VALUE_SECONDS,      // its whole seconds
    USI_VALUE_NANOSECONDS,  // and the rest
    USI_VALUE_JOINT_POSITION,
    USI_VALUE_JOINT_VELOCITY,
    USI_VALUE_JOINT_TORQUE,
    USI_VALUE_ODOM,  // parts: usi_motion_part
    USI_VALUE_POSE,  // by the pose estimator
    USI_VALUE_IMU,
    USI_VALUE_FRAME,
    USI_VALUE_BATTERY,     // parts: charge, voltage, current
    USI_VALUE_CONTROLLER,  // who commands
    USI_VALUE_READING,     // of a sensor, by its number
    USI_VALUE_PARAMETER,   // of a sensor
    USI_VALUE_COPY,        // of the sample that is answered
    USI_VALUE_REFUSAL,     // why it was refused
    // Lists of a lidar's turn: points that came back, how many did of each ring, and all shots. Parts:
    // usi_point_part.
    USI_VALUE_POINT,
    USI_VALUE_ROW,
    USI_VALUE_SHOT,
} usi_value_source;
static inline bool usi_value_is_list(usi_value_source source) { return source >= USI_VALUE_POINT; }

// Parts of a point, in the frame of the lidar.
typedef enum usi_point_part {
    USI_POINT_POSITION = 0,
    USI_POINT_RANGE = 3,
    USI_POINT_AZIMUTH,
    USI_POINT_ELEVATION,
    USI_POINT_INTENSITY,
    USI_POINT_RING,
    USI_POINT_TIME,  // s after the beginning of the turn
} usi_point_part;

// Parts of a motion: position, rotation, velocity.
typedef enum usi_motion_part {
    USI_PART_POSITION = 0,
    USI_PART_QUATERNION = 3,  // w x y z
    USI_PART_MATRIX = 7,      // by rows
    USI_PART_RPY = 16,
    USI_PART_VELOCITY = 19,
    USI_PART_SPIN = 22,
    USI_PART_ACCELERATION = 25,
    USI_PARTS = 28
} usi_motion_part;

typedef struct usi_value {
    usi_value_source source;
    int32_t index;  // of a joint of the robot, a sensor or lidar of the model, a frame of the robot, a copy
    int32_t part;
    double scale, offset;
    bool is_squared;  // before it is scaled
    const char *text;
    uint32_t length;
} usi_value;

// A topic whose samples the robot makes: members in the order of the wire, and their values.
typedef struct usi_endpoint {
    const us_endpoint_def *def;
    const char *topic;  // in full
    const us_message_type *type;
    int32_t n;
    const usi_member *member;
    const usi_value *value;
    int32_t lidar;        // of the model, whose turns its lists are of; -1: it has no lists
    uint32_t most_point;  // of a turn that one sample holds
    size_t size;          // bytes of the longest sample, without texts
} usi_endpoint;

// What a member of a command's sample is for.
typedef enum usi_take_use {
    USI_TAKE_WHEN,   // a condition
    USI_TAKE_VALUE,  // a value of the command: index is usi_command_value
    USI_TAKE_JOINT,  // of a drive: index is usi_joint_value, drive the robot's
    USI_TAKE_COPY    // for answers
} usi_take_use;

typedef enum usi_command_value {
    USI_COMMAND_X,
    USI_COMMAND_Y,
    USI_COMMAND_TURN,
    USI_COMMAND_REST,
    USI_COMMAND_VALUES
} usi_command_value;
typedef enum usi_joint_value {
    USI_JOINT_POSITION,
    USI_JOINT_VELOCITY,
    USI_JOINT_TORQUE,
    USI_JOINT_KP,
    USI_JOINT_KD,
    USI_JOINT_VALUES
} usi_joint_value;

typedef struct usi_take {
    usi_take_use use;
    int32_t command;  // of the endpoint
    int32_t index, drive;
    double scale, offset;  // the wire has scale times the value plus offset
    double number;         // of a condition
    const char *text;
    bool is_constant;  // the value is `number`; there is no member
} usi_take;

typedef enum usi_action {
    USI_ACTION_VELOCITY,
    USI_ACTION_STOP,
    USI_ACTION_GO,
    USI_ACTION_DRIVE,
    USI_ACTION_TURN,
    USI_ACTION_JOINTS,
    USI_ACTION_NONE,
    USI_ACTION_COUNT
} usi_action;

// How a command fares, in the order of us_endpoint_use.
enum { USI_ANSWER_TAKEN, USI_ANSWER_REFUSED, USI_ANSWER_DONE, USI_ANSWER_CANCELED, USI_ANSWERS };

// A topic that the robot takes commands from. Of its rows the first n_member have members, in the order of
// the wire; constants follow.
typedef struct usi_inlet {
    const us_endpoint_def *def;
    const char *topic;
    const us_message_type *type;
    int32_t n, n_member, n_command, n_copy;
    const usi_member *member;
    const usi_take *take;
    const usi_action *action;     // of each command
    int32_t answer[USI_ANSWERS];  // endpoints of those that are taken, refused, done, canceled; -1: none
} usi_inlet;

enum { USI_COPIES = 8 };  // of a command's sample for its answers

typedef struct usi_interface_model {
    int32_t n_endpoint, n_inlet, n_value;  // n_value: of the endpoint or inlet with the most rows
    const usi_endpoint *endpoint;
    const usi_inlet *inlet;
    uint64_t hash;     // of all that was written
    bool has_endings;  // the end of some command is answered
} usi_interface_model;

#endif

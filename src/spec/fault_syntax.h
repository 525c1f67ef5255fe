// Syntax of faults: "motor:front_left_drive=weak:0.3", of world commands and of the scripts of scenes.
#ifndef USI_SPEC_FAULT_SYNTAX_H
#define USI_SPEC_FAULT_SYNTAX_H

#include "understudy/network.h"

// Components that can fail. X(code, name, usage, name in errors)
#define USI_FAULT_COMPONENT_LIST(X)                                                                          \
    X(USI_COMPONENT_MOTOR, "motor", "motor:JOINT=dead, weak:SHARE, blocked, blocked:TORQUE or ok", "motor")  \
    X(USI_COMPONENT_JOINT, "joint", "joint:JOINT=broken or ok", "joint")                                     \
    X(USI_COMPONENT_ENCODER, "encoder", "encoder:JOINT=stuck, jump:ANGLE, drift:SPEED or ok", "encoder")     \
    X(USI_COMPONENT_IMU, "imu", "imu=bias:AX,AY,AZ, bias:AX,AY,AZ,GX,GY,GZ, stuck or ok", "inertial sensor") \
    X(USI_COMPONENT_POWER, "power", "power=brownout, brownout:SECONDS or ok", "power")                       \
    X(USI_COMPONENT_COMPUTER, "computer", "computer=reboot, reboot:SECONDS or ok", "computer")               \
    X(USI_COMPONENT_LINK, "link", "link=outage, outage:SECONDS, loss:PROBABILITY, delay:SECONDS or ok",      \
      "radio link")

typedef enum usi_fault_component {
#define USI_FAULT_COMPONENT_ENUM(code, name, usage, called) code,
    USI_FAULT_COMPONENT_LIST(USI_FAULT_COMPONENT_ENUM)
#undef USI_FAULT_COMPONENT_ENUM
        USI_COMPONENT_COUNT
} usi_fault_component;

// Fault of a component. USI_FAULT_NONE: repaired.
typedef enum usi_fault {
    USI_FAULT_NONE,
    USI_FAULT_DEAD,
    USI_FAULT_WEAK,
    USI_FAULT_BLOCKED,
    USI_FAULT_BROKEN,
    USI_FAULT_STUCK,
    USI_FAULT_JUMP,
    USI_FAULT_DRIFT,
    USI_FAULT_BIAS,
    USI_FAULT_BROWNOUT,
    USI_FAULT_REBOOT,
    USI_FAULT_OUTAGE,
    USI_FAULT_LOSS,
    USI_FAULT_DELAY,
} usi_fault;

enum { USI_FAULT_NUMBERS = 6, USI_FAULT_TEXT = 400 };  // numbers of one fault; bytes of its text

typedef struct usi_fault_words {
    usi_fault_component part;
    usi_fault fault;
    const char *name;  // the joint itself, or that of a motor or encoder; "" for parts that a robot has once
    int32_t n_number;
    double number[USI_FAULT_NUMBERS];
} usi_fault_words;

// Cuts the text in place; the name points into it. Errors: US_ERR_SYNTAX, US_ERR_NAME for a fault that the
// part does not have, US_ERR_VALUE for numbers.
us_status usi_fault_parse(char *text, usi_fault_words *out, us_error *err);
const char *usi_fault_component_name(usi_fault_component part);
bool usi_fault_component_is_named(usi_fault_component part);

// The joint of a robot that a fault names (-1: none), and its drive (-1). US_ERR_NAME when the robot has no
// such motor or encoder; the error names those it has.
us_status usi_fault_find(const us_spec *spec, int32_t group, const usi_fault_words *words, int32_t *out_joint,
                         int32_t *out_drive, us_error *err);
// Checks a fault of a script: parsed and found, nothing is kept.
us_status usi_fault_check(const us_spec *spec, int32_t group, const char *what, usi_fault_words *out_words,
                          us_error *err);

// ---------------------------------------------------------------- when (fault_condition.c)

// "odom.x > 3 and battery < 0.5": comparisons of values with numbers, all of which must hold.
typedef enum usi_compare { USI_LESS, USI_LESS_EQUAL, USI_MORE, USI_MORE_EQUAL } usi_compare;
// Values that the robot itself knows. X(code, name)
#define USI_OWN_VALUE_LIST(X)       \
    X(USI_OWN_ODOM_X, "odom.x")     \
    X(USI_OWN_ODOM_Y, "odom.y")     \
    X(USI_OWN_ODOM_YAW, "odom.yaw") \
    X(USI_OWN_SPEED, "speed")       \
    X(USI_OWN_BATTERY, "battery")
typedef enum usi_own_value {
    USI_OWN_NONE = -1,
#define USI_OWN_VALUE_ENUM(code, name) code,
    USI_OWN_VALUE_LIST(USI_OWN_VALUE_ENUM)
#undef USI_OWN_VALUE_ENUM
        USI_OWN_COUNT
} usi_own_value;

enum { USI_TERM_LIMIT = 8, USI_VALUE_NAME = 256 };

typedef struct usi_term {
    usi_own_value own;          // USI_OWN_NONE: a value of the world
    char name[USI_VALUE_NAME];  // as us_sim_find_value knows it
    usi_compare compare;
    double value;
} usi_term;

typedef struct usi_condition {
    int32_t n_term;
    usi_term term[USI_TERM_LIMIT];
} usi_condition;

// Names are those of the robot first ("front_left_drive.q"), then those of the world ("stone/core.z").
// Errors: US_ERR_SYNTAX, US_ERR_NAME, US_ERR_VALUE, US_ERR_LIMIT for too many comparisons.
us_status usi_condition_read(const us_spec *spec, const us_network_def *network, const char *text,
                             usi_condition *out, us_error *err);

#endif

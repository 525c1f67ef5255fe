// Syntax of faults: "motor:front_left_drive=weak:0.3", of world commands and of the scripts of scenes.
#ifndef USI_BASE_FAULT_SYNTAX_H
#define USI_BASE_FAULT_SYNTAX_H

#include "understudy/base.h"

// Components that can fail. X(code, name, usage, name in errors)
#define USI_FAULT_COMPONENT_LIST(X)                                                                         \
    X(USI_COMPONENT_MOTOR, "motor", "motor:JOINT=dead, weak:SHARE, blocked, blocked:TORQUE or ok", "motor") \
    X(USI_COMPONENT_JOINT, "joint", "joint:JOINT=broken or ok", "joint")                                    \
    X(USI_COMPONENT_ENCODER, "encoder", "encoder:JOINT=stuck, jump:ANGLE, drift:SPEED or ok", "encoder")    \
    X(USI_COMPONENT_IMU, "imu",                                                                             \
      "imu=bias:AX,AY,AZ, bias:AX,AY,AZ,GX,GY,GZ, stuck or ok, or imu:NAME=... of another than \"imu\"",    \
      "inertial sensor")                                                                                    \
    X(USI_COMPONENT_LIDAR, "lidar",                                                                         \
      "lidar=dead, frozen, blind:FROM,TO (deg), beams:FIRST,LAST (rings), dirt:SHARE or ok, or "            \
      "lidar:NAME=... of another than \"lidar\"",                                                           \
      "lidar")                                                                                              \
    X(USI_COMPONENT_SENSOR, "sensor",                                                                       \
      "sensor:NAME=dead, frozen, noisy:FACTOR, delayed:SECONDS, dropping:SHARE, offset:READING,VALUE, "     \
      "noise:READING,DEVIATION or ok",                                                                      \
      "sensor")                                                                                             \
    X(USI_COMPONENT_POWER, "power", "power=brownout, brownout:SECONDS or ok", "power")                      \
    X(USI_COMPONENT_COMPUTER, "computer", "computer=reboot, reboot:SECONDS or ok", "computer")              \
    X(USI_COMPONENT_LINK, "link", "link=outage, outage:SECONDS, loss:PROBABILITY, delay:SECONDS or ok",     \
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
    USI_FAULT_FROZEN,
    USI_FAULT_BLIND,
    USI_FAULT_BEAMS,
    USI_FAULT_DIRT,
    USI_FAULT_NOISY,
    USI_FAULT_DELAYED,
    USI_FAULT_DROPPING,
    USI_FAULT_OFFSET,
    USI_FAULT_NOISE,
} usi_fault;

enum { USI_FAULT_NUMBERS = 6, USI_FAULT_TEXT = 400 };  // numbers of one fault; bytes of its text

typedef struct usi_fault_words {
    usi_fault_component part;
    usi_fault fault;
    const char *name;     // the joint itself, or that of a motor or encoder; of an inertial sensor or lidar,
                          // "imu" or "lidar" unless given; "" for parts that a robot has once
    const char *reading;  // of an offset or a noise; "" of others
    int32_t n_number;
    double number[USI_FAULT_NUMBERS];
} usi_fault_words;

// Cuts the text in place; the name points into it. Errors: US_ERR_SYNTAX, US_ERR_NAME for a fault that the
// part does not have, US_ERR_VALUE for numbers.
us_status usi_fault_parse(char *text, usi_fault_words *out, us_error *err);
const char *usi_fault_component_name(usi_fault_component part);
const char *usi_fault_component_title(usi_fault_component part);  // as errors call it
bool usi_fault_component_is_named(usi_fault_component part);

#endif

// Faults of a scene: which joint and drive they are about, and when its script carries them out.
#ifndef USI_SPEC_FAULT_TARGET_H
#define USI_SPEC_FAULT_TARGET_H

#include "base/fault_syntax.h"
#include "understudy/network.h"

// The joint of a robot that a fault names (-1: none), and its drive (-1). US_ERR_NAME when the robot has no
// such motor or encoder; the error names those it has.
us_status usi_fault_find(const us_spec *spec, int32_t group, const usi_fault_words *words, int32_t *out_joint,
                         int32_t *out_drive, us_error *err);
// Checks a fault of a robot's script: parsed and found, nothing is kept.
us_status usi_fault_check(const us_spec *spec, const us_network_def *robot, const char *what,
                          usi_fault_words *out_words, us_error *err);

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

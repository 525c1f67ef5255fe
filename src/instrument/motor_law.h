// A direct-current motor at a joint, as far as its instruments need it: of the drive's torque in the last
// step,
//
//     current = torque / (k n e) ,   voltage = R current + k n w
//
// with k the motor's constant, n the gear's ratio, e its efficiency, R the resistance, w the joint's
// velocity.
#ifndef USI_INSTRUMENT_MOTOR_LAW_H
#define USI_INSTRUMENT_MOTOR_LAW_H

#include "instrument/measure.h"

enum {
    USI_MOTOR_JOINT,
    USI_MOTOR_CONSTANT,
    USI_MOTOR_RATIO,
    USI_MOTOR_EFFICIENCY,
    USI_MOTOR_RESISTANCE,
    USI_MOTOR_PARAMETERS
};

#define USI_MOTOR_ROWS                                                                          \
    USI_OF_JOINT(NAN, "The joint whose drive it is."),                                          \
        USI_NUMBER("constant", "Nm/A", 1e-9, 1e6, 0.05, "Torque of the motor by its current."), \
        USI_NUMBER("ratio", "1", 1e-6, 1e6, 50,                                                 \
                   "Turns of the motor for one of the joint (1/m of a slide)."),                \
        USI_NUMBER("efficiency", "1", 0.01, 1, 0.8, "Of the gear."),                            \
        USI_NUMBER("resistance", "ohm", 0, 1e6, 0.5, "Of the winding.")

typedef struct usi_motor {
    double current, voltage;  // A, V
} usi_motor;

// False for a joint without a drive or with several coordinates.
static inline bool usi_motor_now(const us_sensor_view *view, usi_motor *out) {
    const double *p = view->parameter;
    double q, v, torque;
    const int32_t joint = (int32_t)p[USI_MOTOR_JOINT];
    if (!usi_joint_motion(view, joint, &q, &v)) return false;
    if (usi_joint_drive(view, joint, &torque) < 0)
        return usi_refuse(view, "name a joint that a drive moves", "its joint has no drive");
    out->current = torque / (p[USI_MOTOR_CONSTANT] * p[USI_MOTOR_RATIO] * p[USI_MOTOR_EFFICIENCY]);
    out->voltage = p[USI_MOTOR_RESISTANCE] * out->current + p[USI_MOTOR_CONSTANT] * p[USI_MOTOR_RATIO] * v;
    return true;
}

#endif

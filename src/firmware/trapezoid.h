// A trapezoid profile: the quickest way from a position and velocity to rest at another position, with one
// acceleration and a greatest velocity.
#ifndef USI_FIRMWARE_TRAPEZOID_H
#define USI_FIRMWARE_TRAPEZOID_H

#include "understudy/base.h"

// Any unit of length (rad for a turning joint, m for a sliding one) with seconds. Constant after init.
typedef struct usi_trapezoid {
    double acceleration;                    // above 0
    double start_position, start_velocity;  // at time 0
    double end_position;
    double first_acceleration;                // signed: of the first phase
    double cruise_position, cruise_velocity;  // at the end of the first phase; the velocity is signed
    double first_end, cruise_end, duration;   // s: ends of the three phases
} usi_trapezoid;

typedef struct usi_trapezoid_point {
    double position, velocity, acceleration;
} usi_trapezoid_point;

// Acceleration and greatest velocity must be above 0, all numbers finite and the duration too: US_ERR_VALUE
// otherwise, and *out is untouched.
us_status usi_trapezoid_init(usi_trapezoid *out, double acceleration, double max_velocity, double position,
                             double velocity, double end_position);

// Where it is at time t: the start for t <= 0, exactly at rest at the end position for t >= duration. At the
// seam of two phases the acceleration is that of the later one.
usi_trapezoid_point usi_trapezoid_at(const usi_trapezoid *profile, double t);

#endif

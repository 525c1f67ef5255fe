// What sensors say: the state at the end of a step in, readings out.
//
// Sensors are rows of the model (usi_encoder, usi_sensor). Readings and faults lie in the state, so that a
// snapshot has them and what acts on a reading acts on the same number after it is restored. A fault sits at
// the sensor: drives close their loops over encoder readings, and firmware and telemetry see no others.
//
// An encoder takes no samples: what it says follows from the state at any moment, so that a step has nothing
// to do for it. The others say what they saw when they were last due.
//
//     encoder   position, velocity                                                    rad or m, rad/s or m/s
//     imu       orientation w x y z, angular velocity, specific force, in its axes    1, rad/s, m/s^2
//     battery   share of its charge, voltage, current (discharging: negative)         1, V, A
#ifndef USI_SENSE_SENSE_H
#define USI_SENSE_SENSE_H

#include "model/model.h"

// What is wrong with an encoder. All 0: nothing.
typedef struct usi_encoder_state {
    double held;       // rad, m: what it says while it is stuck or lost
    double offset;     // rad, m: at the tick `since`
    double drift;      // rad/s, m/s: by which the offset grows
    int64_t since;     // tick
    int64_t is_stuck;  // it sees nothing move
} usi_encoder_state;

typedef struct usi_encoder_reading {
    double q, v;
} usi_encoder_reading;

// By how much it is off at a time of `tick` steps.
static inline double usi_encoder_offset(const usi_encoder_state *s, double step, int64_t tick) {
    return s->drift == 0 ? s->offset : s->offset + s->drift * (step * (double)(tick - s->since));
}

static inline usi_encoder_reading usi_encoder_read(const usi_encoder *k, const usi_encoder_state *s,
                                                   const double *q, const double *v, double step,
                                                   int64_t tick) {
    if (s->is_stuck || k->is_lost) return (usi_encoder_reading){s->held, 0};
    return (usi_encoder_reading){q[k->q] + usi_encoder_offset(s, step, tick), v[k->v] + s->drift};
}

// What a sensor keeps, and what is wrong with it. All 0: nothing.
typedef struct usi_sensor_state {
    int64_t is_stuck;   // the reading stays as it is
    double offset[6];   // imu: of the force, then of the angular velocity
    double before[3];   // at the last call; imu: velocity of its point in the world, m/s; battery: energy, J
    int64_t tick, due;  // of the last sample and of the next
} usi_sensor_state;

typedef struct usi_sense_input {
    const double *q, *v, *battery_energy;
    int64_t tick;
    double time;  // s since the last call; 0: the state was set, and an imu feels no more than gravity
} usi_sense_input;

// All sensors; those that are not due keep their readings. And one of them, now. Cost: per imu some tens of
// nanoseconds for each joint between its link and the world.
void usi_sense(const us_model *m, const usi_sense_input *in, usi_sensor_state *sensor, double *reading);
void usi_sense_one(const us_model *m, const usi_sense_input *in, int32_t i, usi_sensor_state *sensor,
                   double *reading);

// One file per kind. `reading` NULL: it is not due.
void usi_sense_imu(const us_model *m, const usi_sensor *k, const usi_sense_input *in, usi_sensor_state *s,
                   double *reading);
void usi_sense_battery(const us_model *m, const usi_sensor *k, const usi_sense_input *in, usi_sensor_state *s,
                       double *reading);

#endif

// What sensors say: the state at the end of a step in, readings out.
//
// Sensors are rows of the model (usi_sensor). Readings and faults lie in the state, so that a snapshot has
// them and what acts on a reading acts on the same number after it is restored. A fault sits at the sensor:
// drives close their loops over encoder readings, and firmware and telemetry see no others.
//
//     encoder   position, velocity                                                    rad or m, rad/s or m/s
//     imu       orientation w x y z, angular velocity, specific force, in its axes    1, rad/s, m/s^2
//     battery   share of its charge, voltage, current (discharging: negative)         1, V, A
#ifndef USI_SENSE_SENSE_H
#define USI_SENSE_SENSE_H

#include "model/model.h"

// What a sensor keeps, and what is wrong with it. All 0: nothing.
typedef struct usi_sensor_state {
    int64_t is_stuck;   // the reading stays as it is; an encoder sees nothing move
    double drift;       // encoder: by which the offset grows, 1/s
    double offset[6];   // encoder: of the position, the first alone; imu: of the force, then of the angular
                        // velocity
    double before[3];   // at the last call; imu: velocity of its point in the world, m/s; battery: energy, J
    int64_t tick, due;  // of the last sample and of the next, but of encoders
} usi_sensor_state;

typedef struct usi_sense_input {
    const double *q, *v, *battery_energy;
    int64_t tick;
    double time;  // s since the last call; 0: the state was set, and an imu feels no more than gravity
} usi_sense_input;

// All sensors; those that are not due keep their readings. And one of them, now. Cost: some nanoseconds per
// encoder; per imu some tens for each joint between its link and the world.
void usi_sense(const us_model *m, const usi_sense_input *in, usi_sensor_state *sensor, double *reading);
void usi_sense_one(const us_model *m, const usi_sense_input *in, int32_t i, usi_sensor_state *sensor,
                   double *reading);

// One file per kind. Encoders one behind the other sample at every call; `reading` is that of all sensors.
void usi_sense_encoders(const usi_sensor *k, int32_t n, const usi_sense_input *in, usi_sensor_state *s,
                        double *reading);
// `reading` NULL: it is not due.
void usi_sense_imu(const us_model *m, const usi_sensor *k, const usi_sense_input *in, usi_sensor_state *s,
                   double *reading);
void usi_sense_battery(const us_model *m, const usi_sensor *k, const usi_sense_input *in, usi_sensor_state *s,
                       double *reading);

#endif

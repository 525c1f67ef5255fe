// Samples of the library's kinds of sensors without a robot: a view of a sim, parameters by name.
#ifndef TESTS_SUPPORT_INSTRUMENT_VIEW_H
#define TESTS_SUPPORT_INSTRUMENT_VIEW_H

#include "understudy/query.h"
#include "understudy/sensor.h"

typedef struct instrument {
    const us_sensor_kind *kind;
    bool is_started;
    us_sensor_view view;
    double parameter[US_SENSOR_MAX_PARAMETER], state[US_SENSOR_MAX_STATE];
    double truth[US_SENSOR_MAX_READING], reading[US_SENSOR_MAX_READING];
} instrument;

// A sensor of a kind at a pose, at its usual parameters less all noise: every parameter whose name has
// "noise", "bias", "density", "drift" or "nonlinearity" in it is 0. `sim` may be NULL for kinds that ask it
// nothing.
instrument instrument_make(const char *kind, const us_sim *sim, us_pose X_WS);
void instrument_set(instrument *s, const char *parameter, double value);
// A sample one `interval` after the last one; fails the test when there is none.
void instrument_sample(instrument *s, double interval);
// There is none, and a part of the reason is this.
void instrument_refuses(instrument *s, const char *why);
// By name.
double instrument_truth(const instrument *s, const char *reading);
double instrument_reading(const instrument *s, const char *reading);
us_vec3 instrument_truth3(const instrument *s, const char *prefix);  // prefix.x and so on
us_vec3 instrument_reading3(const instrument *s, const char *prefix);

#endif

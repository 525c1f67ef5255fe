// Kinds of sensors as a spec knows them, and the values of their parameters.
#ifndef USI_SPEC_SENSOR_KIND_H
#define USI_SPEC_SENSOR_KIND_H

#include "understudy/network.h"

// As us_spec_add_sensor_kind; errors point at `place`.
us_status usi_add_sensor_kind(us_spec *spec, const us_sensor_kind *kind, const us_place *place,
                              us_error *err);

// The kind of a definition: without one it is the inertial unit.
const us_sensor_kind *usi_sensor_kind_of(const us_sensor_def *d);
static inline bool usi_is_lidar_def(const us_sensor_def *d) { return d->kind && d->kind->is_frame; }

// The number of a parameter, reading or preset of this name; -1: there is none.
int32_t usi_find_parameter(const us_sensor_kind *k, const char *name);
int32_t usi_find_reading(const us_sensor_kind *k, const char *name);
int32_t usi_find_preset(const us_sensor_kind *k, const char *name);
static inline bool usi_is_reference(const us_sensor_parameter *p) {
    return p->type == US_PARAMETER_JOINT || p->type == US_PARAMETER_LINK;
}

// Whether a parameter can have this value; references are not looked at. US_ERR_VALUE names the range.
us_status usi_check_parameter(const us_sensor_parameter *p, double value, us_error *err);
// A value as it is written: "0.02 m/s^2", "true north". Not of a reference. US_ERR_VALUE.
us_status usi_read_parameter(const us_sensor_parameter *p, const char *text, double *out, us_error *err);

// Values of all parameters: usual ones, then those of the preset, then those that were set. `out` has
// US_SENSOR_MAX_PARAMETER. US_ERR_NAME: no such preset or parameter; US_ERR_VALUE: out of range, or one that
// has to be written and is not.
us_status usi_sensor_values(const us_sensor_def *d, double *out, us_error *err);

#endif

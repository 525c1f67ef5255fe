// Between sensors.c and sensor_set.c.
#ifndef USI_SIM__SENSORS_H
#define USI_SIM__SENSORS_H

#include "sim/sim.h"

// After a change of its rate: when it samples next.
void usi_sensor_reschedule(us_sim *s, int32_t sensor);
// The number of what can be set while it runs: a parameter of the kind, and behind these the rate and the
// latency; -1: there is none of that name. And its value now; NaN for a bad number.
int32_t usi_find_setting(const us_sensor_kind *k, const char *name);
double usi_sim_setting(const us_sim *s, int32_t sensor, int32_t at);
// A change of a sensor that was recorded, again.
us_status usi_sim_apply_sensor_input(us_sim *s, const usi_input *in);

#endif

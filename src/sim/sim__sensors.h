// Between sensors.c and sensor_set.c.
#ifndef USI_SIM__SENSORS_H
#define USI_SIM__SENSORS_H

#include "sim/sim.h"

// After a change of its rate: when it samples next.
void usi_sensor_reschedule(us_sim *s, int32_t sensor);
// A change of a sensor that was recorded, again.
us_status usi_sim_apply_sensor_input(us_sim *s, const usi_input *in);

#endif

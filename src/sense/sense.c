// Which sensors sample at a tick.
#include "sense/sense.h"

#include <math.h>

#include "base/rate.h"
#include "model/robots.h"

// The first tick after this one at which it samples: at its rate, at most once a step.
static int64_t next_due(const us_model *m, const usi_sensor *k, int64_t tick) {
    if (k->rate <= 0) return tick + 1;
    const double per_step = m->step * k->rate;
    if (per_step < 1e-15) return INT64_MAX;  // in more than a million years
    const double n = usi_times_due(k->rate, m->step, tick + k->phase) + 1;
    int64_t due = (int64_t)floor((n - 1e-6) / per_step) - k->phase - 1;
    if (due <= tick) due = tick + 1;
    while (!usi_is_due(k->rate, m->step, due + k->phase))
        due++;
    return due;
}

static void sample(const us_model *m, const usi_sensor *k, const usi_sense_input *in, usi_sensor_state *s,
                   double *reading) {
    if (k->kind == USI_SENSOR_IMU) usi_sense_imu(m, k, in, s, reading);
    if (k->kind == USI_SENSOR_BATTERY) usi_sense_battery(m, k, in, s, reading);
    if (!reading) return;
    s->tick = in->tick;
    s->due = next_due(m, k, in->tick);
}

void usi_sense_one(const us_model *m, const usi_sense_input *in, int32_t i, usi_sensor_state *sensor,
                   double *reading) {
    if (m->sensor[i].kind == USI_SENSOR_LIDAR) return;
    sample(m, &m->sensor[i], in, &sensor[i], reading + m->sensor[i].reading);
}

void usi_sense(const us_model *m, const usi_sense_input *in, usi_sensor_state *sensor, double *reading) {
    for (int32_t i = 0; i < m->n_sensor; i++) {
        const usi_sensor *k = &m->sensor[i];
        if (k->kind == USI_SENSOR_LIDAR) continue;  // it needs the whole world: sim/lidar.c
        const bool is_now = in->time == 0 || in->tick >= sensor[i].due;
        // Between samples an IMU needs nothing but the velocity of the tick before the next one.
        if (!is_now && k->kind == USI_SENSOR_IMU && in->tick + 1 < sensor[i].due) continue;
        sample(m, k, in, &sensor[i], is_now ? reading + k->reading : NULL);
    }
}

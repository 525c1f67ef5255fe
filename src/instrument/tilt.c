// A tilt sensor: roll and pitch of its axes against gravity, by the specific force that it feels through a
// pendulum or a bubble that follows with a time constant. While its point accelerates it is wrong, as they
// are.
#include "instrument/measure.h"

enum { NOISE, BIAS, LAG, LIMIT, QUANTUM };
static const us_sensor_parameter parameters[] = {
    USI_NUMBER("noise", "rad", 0, 3, 0.001, "Standard deviation of each angle."),
    USI_NUMBER("bias", "rad", 0, 1, 0, "Deviation of each angle's zero from unit to unit."),
    USI_NUMBER("lag", "s", 0, 100, 0.1, "Time constant with which it follows; 0: at once."),
    USI_NUMBER("limit", "rad", 0, 1.5707, 1.0472, "Largest angle, both ways; 0: any."),
    USI_NUMBER("quantum", "rad", 0, 1, 0, "Angles are whole multiples of it; 0: any."),
};
static const us_sensor_reading readings[] = {{"roll", "rad", false}, {"pitch", "rad", false}};

static double roll_of(us_vec3 up) { return atan2(up.y, up.z); }
static double pitch_of(us_vec3 up) { return atan2(-up.x, hypot(up.y, up.z)); }

static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const double *p = view->parameter;
    const us_vec3 force = usi_in_sensor(view, view->force), up = usi_in_sensor(view, us_vec3_make(0, 0, 1));
    const double kept = view->interval > 0 && p[LAG] > 0 ? exp(-view->interval / p[LAG]) : 0;
    // What it feels, followed exactly as if it had been the same since the sample before.
    state[0] = kept * state[0] + (1 - kept) * force.x;
    state[1] = kept * state[1] + (1 - kept) * force.y;
    state[2] = kept * state[2] + (1 - kept) * force.z;
    const us_vec3 felt = us_vec3_make(state[0], state[1], state[2]);
    truth[0] = roll_of(up);
    truth[1] = pitch_of(up);
    reading[0] = roll_of(felt);
    reading[1] = pitch_of(felt);
    for (int i = 0; i < 2; i++) {
        reading[i] += p[BIAS] * usi_unit_normal(view, i) + p[NOISE] * us_sensor_normal(view, i);
        reading[i] = usi_noise_round(p[QUANTUM], usi_noise_limit(p[LIMIT], reading[i]));
    }
    return true;
}

const us_sensor_kind usi_tilt_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "tilt",
    .about = "a tilt sensor: roll and pitch against gravity",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .n_state = 3,
    .uses_force = true,
    .usual_rate = 10,
    .sample = sample,
};

// The current of a joint's motor, by the law of motor_law.h.
#include "instrument/motor_law.h"

enum { NOISE = USI_MOTOR_PARAMETERS, BIAS, LIMIT, QUANTUM };
static const us_sensor_parameter parameters[] = {
    USI_MOTOR_ROWS,
    USI_NUMBER("noise", "A", 0, 1e4, 0.02, "Standard deviation."),
    USI_NUMBER("bias", "A", 0, 1e4, 0, "Deviation of its zero from unit to unit."),
    USI_NUMBER("limit", "A", 0, 1e4, 0, "Largest reading; 0: any."),
    USI_NUMBER("quantum", "A", 0, 1e4, 0, "Readings are whole multiples of it; 0: any."),
};
static const us_sensor_reading readings[] = {{"current", "A", false}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    const double *p = view->parameter;
    usi_motor motor = {0, 0};
    if (!usi_motor_now(view, &motor)) return false;
    truth[0] = motor.current;
    const double read =
        motor.current + p[BIAS] * usi_unit_normal(view, 0) + p[NOISE] * us_sensor_normal(view, 0);
    reading[0] = usi_noise_round(p[QUANTUM], usi_noise_limit(p[LIMIT], read));
    return true;
}

const us_sensor_kind usi_motor_current_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "motor-current",
    .about = "the current of a joint's motor",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 50,
    .sample = sample,
};

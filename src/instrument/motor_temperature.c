// The temperature of a joint's motor: its winding's losses heat it, its case cools it.
//
//     C dT/dt = R i^2 - (T - ambient) / K
//
// with C the heat capacity and K the thermal resistance; between two samples the loss is taken as it is at
// the later one, and the law is followed exactly.
#include "instrument/motor_law.h"

enum { CAPACITY = USI_MOTOR_PARAMETERS, TO_AIR, AMBIENT, NOISE, QUANTUM };
static const us_sensor_parameter parameters[] = {
    USI_MOTOR_ROWS,
    USI_NUMBER("capacity", "J/K", 1e-3, 1e9, 200, "Heat capacity of motor and case."),
    USI_NUMBER("thermal-resistance", "K/W", 1e-6, 1e6, 3, "From the winding to the surroundings."),
    USI_NUMBER("ambient", "K", 1, 2000, 293.15, "Temperature of the surroundings, and at the start."),
    USI_NUMBER("noise", "K", 0, 1e3, 0.1, "Standard deviation."),
    USI_NUMBER("quantum", "K", 0, 1e3, 0.0625, "Readings are whole multiples of it; 0: any."),
};
static const us_sensor_reading readings[] = {{"temperature", "K", false}};

// What it keeps: how much warmer than the surroundings it is.
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const double *p = view->parameter;
    usi_motor motor = {0, 0};
    if (!usi_motor_now(view, &motor)) return false;
    const double final = p[TO_AIR] * p[USI_MOTOR_RESISTANCE] * motor.current * motor.current,
                 kept = exp(-view->interval / (p[CAPACITY] * p[TO_AIR]));
    state[0] = final + (state[0] - final) * kept;
    truth[0] = p[AMBIENT] + state[0];
    reading[0] = usi_noise_round(p[QUANTUM], truth[0] + p[NOISE] * us_sensor_normal(view, 0));
    return true;
}

// Degrees Celsius.
static const us_sensor_member members[] = {
    {.path = "temperature", .value = "temperature", .offset = -273.15},
    {.path = "variance", .value = "noise", .is_squared = true},
};

const us_sensor_kind usi_motor_temperature_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "motor-temperature",
    .about = "the temperature of a joint's motor",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .n_state = 1,
    .usual_rate = 1,
    .topic = "temperature",
    .message = "sensor_msgs/msg/Temperature",
    .members = members,
    .sample = sample,
};

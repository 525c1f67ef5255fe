// An accelerometer of three axes: specific force in its own axes, +g upwards at rest.
#include "instrument/triad.h"

enum { TEMPERATURE = USI_TRIAD_PARAMETERS, N_PARAMETER };

static const us_sensor_parameter parameters[N_PARAMETER] = {
    USI_TRIAD_ROWS("force", "m/s^2", "m/s^2/sqrt(Hz)", "m/s^2*sqrt(Hz)", "m/s^2/K"),
    USI_NUMBER("temperature", "K", -200, 200, 0, "How much warmer it is than when it was calibrated."),
};
static const us_sensor_reading readings[] = {
    {"force.x", "m/s^2", false}, {"force.y", "m/s^2", false}, {"force.z", "m/s^2", false}};

static void start(const us_sensor_view *view, double *state) { usi_triad_start(view, 0, state); }

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const us_vec3 force = usi_in_sensor(view, view->force);
    const usi_triad t = {view->parameter, state, 0, view->parameter[TEMPERATURE], us_vec3_make(0, 0, 0)};
    usi_put(truth, force);
    usi_put(reading, usi_triad_read(view, &t, force));
    return true;
}

static const us_sensor_member members[] = {
    {.path = "orientation_covariance[0]", .offset = -1},
    {.path = "angular_velocity_covariance[0]", .offset = -1},
    {.path = "linear_acceleration.x", .value = "force.x"},
    {.path = "linear_acceleration.y", .value = "force.y"},
    {.path = "linear_acceleration.z", .value = "force.z"},
    {.path = "linear_acceleration_covariance[0]", .value = "force-noise", .is_squared = true},
    {.path = "linear_acceleration_covariance[4]", .value = "force-noise", .is_squared = true},
    {.path = "linear_acceleration_covariance[8]", .value = "force-noise", .is_squared = true},
};

const us_sensor_kind usi_accelerometer_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "accelerometer",
    .about = "an accelerometer of three axes: specific force in its own axes",
    .n_parameter = N_PARAMETER,
    .n_reading = USI_COUNT(readings),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .n_state = USI_TRIAD_STATES,
    .uses_force = true,
    .usual_rate = 100,
    .message = "sensor_msgs/msg/Imu",
    .members = members,
    .start = start,
    .sample = sample,
};

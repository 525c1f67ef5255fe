// A gyroscope of three axes: angular velocity in its own axes.
#include "instrument/triad.h"

enum { TEMPERATURE = USI_TRIAD_PARAMETERS, N_PARAMETER };

static const us_sensor_parameter parameters[N_PARAMETER] = {
    USI_TRIAD_ROWS("spin", "rad/s", "rad/s/sqrt(Hz)", "rad/s*sqrt(Hz)", "rad/s/K"),
    USI_NUMBER("temperature", "K", -200, 200, 0, "How much warmer it is than when it was calibrated."),
};
static const us_sensor_reading readings[] = {
    {"spin.x", "rad/s", false}, {"spin.y", "rad/s", false}, {"spin.z", "rad/s", false}};

static void start(const us_sensor_view *view, double *state) { usi_triad_start(view, 0, state); }

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const us_vec3 spin = usi_in_sensor(view, view->w_WS);
    const usi_triad t = {view->parameter, state, 0, view->parameter[TEMPERATURE], us_vec3_make(0, 0, 0)};
    usi_put(truth, spin);
    usi_put(reading, usi_triad_read(view, &t, spin));
    return true;
}

// By REP 145 a first covariance of -1 says that there is no such quantity.
static const us_sensor_member members[] = {
    {.path = "orientation_covariance[0]", .offset = -1},
    {.path = "angular_velocity.x", .value = "spin.x"},
    {.path = "angular_velocity.y", .value = "spin.y"},
    {.path = "angular_velocity.z", .value = "spin.z"},
    {.path = "angular_velocity_covariance[0]", .value = "spin-noise", .is_squared = true},
    {.path = "angular_velocity_covariance[4]", .value = "spin-noise", .is_squared = true},
    {.path = "angular_velocity_covariance[8]", .value = "spin-noise", .is_squared = true},
    {.path = "linear_acceleration_covariance[0]", .offset = -1},
};

const us_sensor_kind usi_gyro_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "gyro",
    .about = "a gyroscope of three axes: angular velocity in its own axes",
    .n_parameter = N_PARAMETER,
    .n_reading = USI_COUNT(readings),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .n_state = USI_TRIAD_STATES,
    .usual_rate = 100,
    .message = "sensor_msgs/msg/Imu",
    .members = members,
    .start = start,
    .sample = sample,
};

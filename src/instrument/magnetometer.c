// A magnetometer of three axes: the magnetic field in its own axes.
#include "instrument/ambient_field.h"

static const us_sensor_parameter parameters[] = {USI_FIELD_ROWS};
static const us_sensor_reading readings[] = {
    {"field.x", "T", false}, {"field.y", "T", false}, {"field.z", "T", false}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    const us_vec3 field = usi_ambient_field(view, view->parameter);
    usi_put(truth, field);
    usi_put(reading, usi_field_through_iron(view, view->parameter, field, 0));
    return true;
}

static const us_sensor_member members[] = {
    {.path = "magnetic_field.x", .value = "field.x"},
    {.path = "magnetic_field.y", .value = "field.y"},
    {.path = "magnetic_field.z", .value = "field.z"},
    {.path = "magnetic_field_covariance[0]", .value = "noise", .is_squared = true},
    {.path = "magnetic_field_covariance[4]", .value = "noise", .is_squared = true},
    {.path = "magnetic_field_covariance[8]", .value = "noise", .is_squared = true},
};

const us_sensor_kind usi_magnetometer_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "magnetometer",
    .about = "a magnetometer of three axes: the magnetic field in its own axes",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 50,
    .message = "sensor_msgs/msg/MagneticField",
    .members = members,
    .sample = sample,
};

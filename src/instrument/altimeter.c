// An altimeter: the height over what is below it, whichever way it is turned, as radar with a wide beam has
// it.
#include "instrument/ranging.h"

static const us_sensor_parameter parameters[] = {USI_RANGE_ROWS(0.1, 1000, 0.2, 0.05)};
static const us_sensor_reading readings[] = {{"height", "m", false}, {"valid", "1", true}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    const double *p = view->parameter;
    const us_vec3 down = us_vec3_make(0, 0, -1);
    const double below = usi_free_range(view, down, p[USI_RANGE_MAX], NULL),
                 range = usi_cone_range(view, p, down);
    if (isnan(below) || isnan(range)) return false;
    truth[0] = fmin(below, p[USI_RANGE_MAX]);
    truth[1] = below >= p[USI_RANGE_MIN] && below <= p[USI_RANGE_MAX];
    reading[1] = usi_range_read(view, p, range, &reading[0]);
    return true;
}

static const us_sensor_member members[] = {
    {.path = "radiation_type", .offset = 1},     {.path = "field_of_view", .value = "field-of-view"},
    {.path = "min_range", .value = "min-range"}, {.path = "max_range", .value = "max-range"},
    {.path = "range", .value = "height"},
};

const us_sensor_kind usi_altimeter_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "altimeter",
    .about = "an altimeter: the height over what is below it",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 10,
    .topic = "range",
    .message = "sensor_msgs/msg/Range",
    .members = members,
    .sample = sample,
};

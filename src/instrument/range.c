// A device that measures the range along its x axis: ultrasound, infrared, a laser or a radar. Where nothing
// is seen it says its largest range, and `valid` is 0.
#include "instrument/ranging.h"

enum { WAVES = USI_RANGE_LOSS + 1 };
static const char *const waves[] = {"ultrasound", "infrared", NULL};
static const us_sensor_parameter parameters[] = {
    USI_RANGE_ROWS(0.05, 30, 0, 0.01),
    USI_CHOICE("waves", waves, 1, "What the message says of it: ultrasound, or infrared and all light."),
};
static const us_sensor_reading readings[] = {{"range", "m", false}, {"valid", "1", true}};

static const us_sensor_setting ultrasound[] = {
    {"min-range", 0.2}, {"max-range", 6}, {"field-of-view", 0.5}, {"noise", 0.02}, {"waves", 0}};
static const us_sensor_setting radar[] = {
    {"min-range", 0.5}, {"max-range", 200}, {"field-of-view", 0.1}, {"noise", 0.1}, {"quantum", 0.05}};
static const us_sensor_setting laser[] = {
    {"min-range", 0.05}, {"max-range", 80}, {"noise", 0.003}, {"quantum", 0.001}};
static const us_sensor_preset presets[] = {
    {"ultrasound", "a short wide cone", USI_COUNT(ultrasound), ultrasound},
    {"radar", "far, with coarse ranges", USI_COUNT(radar), radar},
    {"laser", "one fine ray", USI_COUNT(laser), laser},
};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    const double *p = view->parameter;
    const us_vec3 axis = us_quat_rotate(view->X_WS.q, us_vec3_make(1, 0, 0));
    const double range = usi_cone_range(view, p, axis);
    if (isnan(range)) return false;
    truth[0] = fmin(range, p[USI_RANGE_MAX]);
    truth[1] = range >= p[USI_RANGE_MIN] && range <= p[USI_RANGE_MAX];
    reading[1] = usi_range_read(view, p, range, &reading[0]);
    return true;
}

static const us_sensor_member members[] = {
    {.path = "radiation_type", .value = "waves"}, {.path = "field_of_view", .value = "field-of-view"},
    {.path = "min_range", .value = "min-range"},  {.path = "max_range", .value = "max-range"},
    {.path = "range", .value = "range"},
};

const us_sensor_kind usi_range_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "range",
    .about = "a range along its x axis: ultrasound, infrared, a laser or a radar",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .n_preset = USI_COUNT(presets),
    .n_member = USI_COUNT(members),
    .parameters = parameters,
    .readings = readings,
    .presets = presets,
    .usual_rate = 10,
    .topic = "range",
    .message = "sensor_msgs/msg/Range",
    .members = members,
    .sample = sample,
};

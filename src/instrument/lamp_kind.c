// Lamps: lights on links, for cameras (sim/picture_lamp.c). What one says is the power that it gives.
#include "instrument/measure.h"
#include "spec/lamp_device.h"

static const char *const choice[] = {"no", "yes", NULL};
static const us_sensor_parameter parameters[USI_LAMP_N_PARAMETER] = {
    [USI_LAMP_POWER] =
        USI_NUMBER("power", "W", 0, 1e6, 20, "Light that it gives, in all directions together."),
    [USI_LAMP_CONE] =
        USI_NUMBER("cone", "rad", 0.001, 6.2831853071795865, 6.2831853071795865,
                   "The whole angle of the cone that it lights, around its x axis; 360 deg: all around."),
    [USI_LAMP_RED] = USI_NUMBER("red", "1", 0, 1, 1, "Its colour."),
    [USI_LAMP_GREEN] = USI_NUMBER("green", "1", 0, 1, 1, "Its colour."),
    [USI_LAMP_BLUE] = USI_NUMBER("blue", "1", 0, 1, 1, "Its colour."),
    [USI_LAMP_ON] = USI_CHOICE("on", choice, 1, "Whether it shines."),
};
static const us_sensor_reading readings[] = {{"power-now", "W", true}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    truth[0] = reading[0] = view->parameter[USI_LAMP_ON] != 0 ? view->parameter[USI_LAMP_POWER] : 0;
    return true;
}

const us_sensor_kind usi_lamp_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "lamp",
    .about = "a light that shines along its x axis; written as a <light> of the robot",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 1,
    .sample = sample,
};

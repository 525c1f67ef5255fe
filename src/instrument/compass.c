// A compass: the direction of its x axis, clockwise from north, by a magnetometer that is levelled by the
// force that it feels.
#include "instrument/ambient_field.h"

enum { NORTH = USI_FIELD_PARAMETERS, HEADING_NOISE, HEADING_BIAS };
static const char *const norths[] = {"magnetic", "true", NULL};
static const us_sensor_parameter parameters[] = {
    USI_FIELD_ROWS,
    USI_CHOICE("north", norths, 0,
               "Of which north it tells: true is magnetic and the declination of the place."),
    USI_NUMBER("heading-noise", "rad", 0, 3, 0.005,
               "Standard deviation of the heading, beside that of the field."),
    USI_NUMBER("heading-bias", "rad", 0, 3.2, 0, "Deviation of its zero from unit to unit."),
};
static const us_sensor_reading readings[] = {{"heading", "rad", false}};

static double turn_into(double angle) {
    static const double turn = 6.28318530717958647693;
    const double a = fmod(angle, turn);
    return a < 0 ? a + turn : a;
}

// Clockwise from where the level part of a field points, all in the sensor's axes.
static double heading_in(us_vec3 field, us_vec3 up) {
    const us_vec3 forward = us_vec3_make(1, 0, 0), level = us_vec3_sub(forward, us_vec3_scale(up.x, up));
    const us_vec3 east = us_vec3_cross(field, up);
    // `east` is square to `up`: north is up x east.
    return atan2(us_vec3_dot(level, east), us_vec3_dot(level, us_vec3_cross(up, east)));
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    const double *p = view->parameter;
    const us_vec3 up = usi_in_sensor(view, us_vec3_make(0, 0, 1)), field = usi_ambient_field(view, p);
    const us_sky sky = usi_sky_of(view);
    const us_vec3 north = usi_in_sensor(view, us_vec3_make(-sin(sky.heading), cos(sky.heading), 0));
    // How far east of north the level field points.
    const double heading = heading_in(north, up), declination = heading - heading_in(field, up);
    const us_vec3 force = usi_in_sensor(view, view->force);
    const double size = us_vec3_norm(force);
    const us_vec3 felt = size > 0 ? us_vec3_scale(1 / size, force) : up;
    const double read = heading_in(usi_field_through_iron(view, p, field, 0), felt);
    truth[0] = turn_into(p[NORTH] == 1 ? heading : heading - declination);
    reading[0] =
        turn_into(read + (p[NORTH] == 1 ? declination : 0) + p[HEADING_BIAS] * usi_unit_normal(view, 0) +
                  p[HEADING_NOISE] * us_sensor_normal(view, 3));
    return true;
}

const us_sensor_kind usi_compass_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "compass",
    .about = "a compass: the direction of its x axis, clockwise from north",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .uses_force = true,
    .usual_rate = 10,
    .sample = sample,
};

// A sun sensor that looks along its z axis: the direction to the Sun in its own axes, while the Sun is in its
// field of view, above the horizon and not behind anything.
#include "instrument/measure.h"

enum { FIELD, NOISE, BIAS };
static const us_sensor_parameter parameters[] = {
    USI_NUMBER("field-of-view", "rad", 0.01, 6.2832, 2.0944, "The whole angle of the cone that it sees."),
    USI_NUMBER("noise", "rad", 0, 1, 0.002, "Standard deviation of the direction, both ways across it."),
    USI_NUMBER("bias", "rad", 0, 1, 0, "Deviation of its axes from unit to unit."),
};
static const us_sensor_reading readings[] = {{"direction.x", "1", true},
                                             {"direction.y", "1", true},
                                             {"direction.z", "1", true},
                                             {"visible", "1", true}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    if (!usi_has_place(view)) return false;
    const double *p = view->parameter;
    const us_sky sky = usi_sky_of(view);
    const us_vec3 sun_W = us_sky_sun(&sky, view->time), sun = usi_in_sensor(view, sun_W);
    usi_put(truth, sun);
    bool is_visible = sun_W.z > 0 && sun.z > cos(0.5 * p[FIELD]);
    if (is_visible) {
        const double free = usi_free_range(view, sun_W, INFINITY, NULL);
        if (isnan(free)) return false;
        is_visible = isinf(free);
    }
    truth[3] = reading[3] = is_visible;
    us_vec3 seen = us_vec3_make(0, 0, 0);
    if (is_visible) {
        const us_vec3 off =
            us_vec3_make(p[BIAS] * usi_unit_normal(view, 0) + p[NOISE] * us_sensor_normal(view, 0),
                         p[BIAS] * usi_unit_normal(view, 1) + p[NOISE] * us_sensor_normal(view, 1),
                         p[BIAS] * usi_unit_normal(view, 2) + p[NOISE] * us_sensor_normal(view, 2));
        seen = us_quat_rotate(us_quat_exp(off), sun);
    }
    usi_put(reading, seen);
    return true;
}

const us_sensor_kind usi_sun_sensor_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "sun-sensor",
    .about = "a sun sensor that looks along its z axis: the direction to the Sun, where it is seen",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 10,
    .sample = sample,
};

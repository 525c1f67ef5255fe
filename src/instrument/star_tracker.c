// A star tracker that looks along its z axis: its orientation among the stars, the frame of star catalogues
// (ICRS). It has none while it points below the horizon or near the Sun, while it turns too fast, and on a
// planet with air by day.
#include "instrument/measure.h"

enum { ACROSS, ROLL, SUN_ANGLE, MAX_SPIN };
static const us_sensor_parameter parameters[] = {
    USI_NUMBER("noise", "rad", 0, 1, 5e-5, "Standard deviation across where it looks."),
    USI_NUMBER("roll-noise", "rad", 0, 1, 3e-4, "Standard deviation about where it looks."),
    USI_NUMBER("sun-angle", "rad", 0, 3.15, 0.6,
               "It sees nothing where the Sun is nearer than this to its axis."),
    USI_NUMBER("max-spin", "rad/s", 0, 100, 0.02, "It sees nothing while it turns faster."),
};
static const us_sensor_reading readings[] = {{"orientation.w", "1", true},
                                             {"orientation.x", "1", true},
                                             {"orientation.y", "1", true},
                                             {"orientation.z", "1", true},
                                             {"valid", "1", true}};

static void put(double *to, us_quat q, bool is_valid) {
    to[0] = q.w;
    usi_put(to + 1, us_vec3_make(q.x, q.y, q.z));
    to[4] = is_valid;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    if (!usi_has_place(view)) return false;
    const double *p = view->parameter;
    const us_sky sky = usi_sky_of(view);
    const us_vec3 sun = us_sky_sun(&sky, view->time),
                  axis = us_quat_rotate(view->X_WS.q, us_vec3_make(0, 0, 1));
    const us_quat q = us_quat_mul(us_sky_stars(&sky, view->time), view->X_WS.q);
    const bool has_air = sky.planet != US_PLANET_MOON;
    bool is_valid = axis.z > 0 && us_vec3_norm(view->w_WS) <= p[MAX_SPIN] && !(has_air && sun.z > 0) &&
                    (sun.z < 0 || us_vec3_dot(sun, axis) < cos(p[SUN_ANGLE]));
    if (is_valid) {
        const double free = usi_free_range(view, axis, INFINITY, NULL);
        if (isnan(free)) return false;
        is_valid = isinf(free);
    }
    const us_vec3 off =
        us_vec3_make(p[ACROSS] * us_sensor_normal(view, 0), p[ACROSS] * us_sensor_normal(view, 1),
                     p[ROLL] * us_sensor_normal(view, 2));
    put(truth, q, is_valid);
    put(reading, is_valid ? us_quat_mul(q, us_quat_exp(off)) : us_quat_identity(), is_valid);
    return true;
}

const us_sensor_kind usi_star_tracker_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "star-tracker",
    .about = "a star tracker that looks along its z axis: its orientation among the stars",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 2,
    .sample = sample,
};

// The magnetic field at a sensor: the planet's, or one that is given, seen through the iron around it.
#include "instrument/ambient_field.h"

const char *const usi_field_sources[] = {"planet", "given", NULL};

us_vec3 usi_ambient_field(const us_sensor_view *view, const double *p) {
    us_vec3 field = us_vec3_make(p[USI_FIELD_X], p[USI_FIELD_Y], p[USI_FIELD_Z]);
    if (p[USI_FIELD_SOURCE] == 0) {
        const us_sky sky = usi_sky_of(view);
        field = us_sky_magnetic_field(&sky, view->X_WS.p, view->time);
    }
    return usi_in_sensor(view, field);
}

us_vec3 usi_field_through_iron(const us_sensor_view *view, const double *p, us_vec3 field, int32_t draw) {
    const double own[3] = {
        (1 + p[USI_SOFT_X]) * field.x + p[USI_SOFT_XY] * field.y + p[USI_SOFT_XZ] * field.z + p[USI_HARD_X],
        p[USI_SOFT_XY] * field.x + (1 + p[USI_SOFT_Y]) * field.y + p[USI_SOFT_YZ] * field.z + p[USI_HARD_Y],
        p[USI_SOFT_XZ] * field.x + p[USI_SOFT_YZ] * field.y + (1 + p[USI_SOFT_Z]) * field.z + p[USI_HARD_Z]};
    double y[3];
    for (int i = 0; i < 3; i++) {
        y[i] = own[i] + p[USI_FIELD_NOISE] * us_sensor_normal(view, draw + i);
        y[i] = usi_noise_round(p[USI_FIELD_QUANTUM], usi_noise_limit(p[USI_FIELD_LIMIT], y[i]));
    }
    return us_vec3_make(y[0], y[1], y[2]);
}

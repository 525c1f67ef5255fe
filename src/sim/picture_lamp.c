// Lamps: points that send out light, evenly within a cone around their x axis.
//
//     E = P / (2 pi (1 - cos(cone / 2))) cos(incidence) / d^2
//
// Rays go from the lamp to what is seen, so that its own housing does not stop them.
#include <math.h>

#include "model/robots.h"
#include "sim/sim__lidar.h"
#include "sim/sim__picture.h"
#include "spec/lamp_device.h"

static const double PI = 3.14159265358979323846;

int32_t usi_picture_lamps(const us_sim *s, usi_picture_lamp out[USI_PICTURE_LAMPS]) {
    const us_model *m = s->model;
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_sensor && n < USI_PICTURE_LAMPS; i++) {
        const usi_sensor *k = &m->sensor[i];
        if (!usi_sensor_is(k, "lamp") || k->is_lost || s->now.sensor[i].is_dead) continue;
        const double *p = s->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_PARAMETER);
        if (p[USI_LAMP_ON] == 0 || p[USI_LAMP_POWER] == 0) continue;
        const us_pose X = usi_lidar_pose(s, k);
        const double cosine = cos(0.5 * p[USI_LAMP_CONE]);
        out[n++] = (usi_picture_lamp){.place = X.p,
                                      .axis = us_quat_rotate(X.q, us_vec3_make(1, 0, 0)),
                                      .cosine = cosine,
                                      .intensity = p[USI_LAMP_POWER] / (2 * PI * (1 - cosine)),
                                      .colour = {p[USI_LAMP_RED], p[USI_LAMP_GREEN], p[USI_LAMP_BLUE]}};
    }
    return n;
}

void usi_picture_shine(const usi_picture_scene *x, const usi_picture_lamp *lamp, bool has_shadow, int32_t n,
                       const us_vec3 *p, double *out_irradiance, us_vec3 *out_toward) {
    static const double slack = 1e-4;  // m: what a ray meets there is the place itself
    usi_picture_rays rays;
    double distance[USI_PICTURE_RAYS] = {0};
    int32_t of[USI_PICTURE_RAYS] = {0};
    rays.n = 0;
    for (int32_t i = 0; i < n; i++) {
        const us_vec3 v = us_vec3_sub(p[i], lamp->place);
        const double d = us_vec3_norm(v);
        const us_vec3 along = us_vec3_scale(1 / fmax(d, 1e-9), v);
        const bool is_lit = us_vec3_dot(along, lamp->axis) >= lamp->cosine;
        out_toward[i] = us_vec3_scale(-1, along);
        out_irradiance[i] = is_lit ? lamp->intensity / fmax(d * d, 1e-6) : 0;
        if (!is_lit) continue;
        of[rays.n] = i;
        distance[rays.n] = d;
        rays.o[rays.n] = lamp->place;
        rays.d[rays.n++] = along;
    }
    if (!has_shadow) return;
    usi_picture_cast(x, &rays);
    for (int32_t k = 0; k < rays.n; k++) {
        if (rays.hit[k].range < distance[k] - slack) out_irradiance[of[k]] = 0;
    }
}

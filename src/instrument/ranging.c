// One range out of a cone of rays. See ranging.h.
#include "instrument/ranging.h"

enum { N_RAY = 9, DRAW_NOISE = 0, DRAW_LOSS = 1 };

double usi_cone_range(const us_sensor_view *view, const double *p, us_vec3 axis_W) {
    static const double golden = 2.39996322972865332;
    if (!(p[USI_RANGE_MAX] > p[USI_RANGE_MIN])) {
        (void)usi_refuse(view, "write a max-range above min-range", "max-range is not above min-range");
        return NAN;
    }
    const us_quat to_axis = us_quat_from_z(axis_W);
    const double half = 0.5 * p[USI_RANGE_ANGLE];
    double nearest = INFINITY;
    // The axis, and rays that fill the cone evenly up to its edge.
    for (int i = 0; i < (half > 0 ? N_RAY : 1); i++) {
        const double off = half * sqrt((double)i / (N_RAY - 1)), turn = golden * i;
        const us_vec3 d = us_vec3_make(sin(off) * cos(turn), sin(off) * sin(turn), cos(off));
        const double range = usi_free_range(view, us_quat_rotate(to_axis, d), p[USI_RANGE_MAX], NULL);
        if (isnan(range)) return NAN;
        nearest = fmin(nearest, range);
    }
    return nearest;
}

bool usi_range_read(const us_sensor_view *view, const double *p, double range, double *out) {
    *out = p[USI_RANGE_MAX];
    if (!(range >= p[USI_RANGE_MIN] && range <= p[USI_RANGE_MAX])) return false;
    if (p[USI_RANGE_LOSS] > 0 && us_sensor_uniform(view, DRAW_LOSS) < p[USI_RANGE_LOSS]) return false;
    const double deviation = hypot(p[USI_RANGE_NOISE], p[USI_RANGE_NOISE_SHARE] * range);
    range += deviation * us_sensor_normal(view, DRAW_NOISE);
    *out = fmax(0, usi_noise_round(p[USI_RANGE_QUANTUM], range));
    return true;
}

// From the parameters of a camera to its lens.
#include "spec/camera_device.h"

#include <math.h>
#include <string.h>

#include "spec/sensor_kind.h"

bool usi_is_camera_def(const us_sensor_def *d) { return strcmp(usi_sensor_kind_of(d)->name, "camera") == 0; }

// Vectors of CAHVOR(E) from focal lengths and the principal point: with a tilted image plane H and V lie
// square to its axis.
static void make_cahvor(const double *p, us_camera_model *c) {
    const us_vec3 A = us_vec3_make(p[USI_CAMERA_A_X], p[USI_CAMERA_A_Y], 1),
                  O = us_vec3_make(p[USI_CAMERA_O_X], p[USI_CAMERA_O_Y], 1);
    c->A = us_vec3_scale(1 / us_vec3_norm(A), A);
    c->O = us_vec3_scale(1 / us_vec3_norm(O), O);
    const us_vec3 x = us_vec3_make(1, 0, 0),
                  level = us_vec3_sub(x, us_vec3_scale(us_vec3_dot(x, c->A), c->A)),
                  right = us_vec3_scale(1 / us_vec3_norm(level), level), down = us_vec3_cross(c->A, right);
    c->H = us_vec3_add(us_vec3_scale(c->fx, right), us_vec3_scale(c->cx, c->A));
    c->V = us_vec3_add(us_vec3_scale(c->fy, down), us_vec3_scale(c->cy, c->A));
    c->R = us_vec3_make(p[USI_CAMERA_R0], p[USI_CAMERA_R0 + 1], p[USI_CAMERA_R0 + 2]);
    c->E = us_vec3_make(p[USI_CAMERA_E0], p[USI_CAMERA_E0 + 1], p[USI_CAMERA_E0 + 2]);
    c->linearity = p[USI_CAMERA_LINEARITY];
}

us_status usi_camera_lens(const double *p, us_camera_model *out, us_error *err) {
    static const double PI = 3.14159265358979323846;
    const int32_t width = (int32_t)p[USI_CAMERA_WIDTH], height = (int32_t)p[USI_CAMERA_HEIGHT];
    const us_camera_kind kind = (us_camera_kind)p[USI_CAMERA_MODEL];
    const bool is_wide = kind == US_CAMERA_FISHEYE;
    if (!is_wide && p[USI_CAMERA_FOV] >= PI - 1e-6)
        return us_error_set(err, US_ERR_VALUE, NULL, "write less than 180 deg, or model=\"fisheye\"",
                            "fov: %g rad is more than a flat picture can show", p[USI_CAMERA_FOV]);
    us_camera_model c = is_wide ? us_camera_fisheye_from_hfov(width, height, p[USI_CAMERA_FOV])
                                : us_camera_from_hfov(width, height, p[USI_CAMERA_FOV]);
    c.kind = kind;
    c.fy = c.fx * p[USI_CAMERA_ASPECT];
    c.cx += p[USI_CAMERA_CENTRE_X];
    c.cy += p[USI_CAMERA_CENTRE_Y];
    const double *k = p + USI_CAMERA_K1;
    if (is_wide) {
        memcpy(c.k, k, 4 * sizeof *k);
    } else {
        const double of[8] = {k[0], k[1], p[USI_CAMERA_P1], p[USI_CAMERA_P2], k[2], k[3], k[4], k[5]};
        memcpy(c.k, of, sizeof of);
    }
    if (kind == US_CAMERA_CAHVOR || kind == US_CAMERA_CAHVORE) make_cahvor(p, &c);
    us_status status = us_camera_prepare(&c, err);
    if (!status) *out = c;
    return status;
}

bool usi_camera_has_depth(const us_sensor_def *d) {
    double value[US_SENSOR_MAX_PARAMETER];
    return usi_is_camera_def(d) && usi_sensor_values(d, value, NULL) == US_OK && value[USI_CAMERA_DEPTH] != 0;
}

us_status usi_check_camera(const us_sensor_def *d, us_error *err) {
    enum { MAX_PIXEL = 1 << 25 };
    double value[US_SENSOR_MAX_PARAMETER];
    us_camera_model lens;
    us_camera_info info;
    us_status status = usi_sensor_values(d, value, err);
    if (!status && !(d->rate > 0))
        return us_error_set(err, US_ERR_VALUE, NULL, "write rate=\"10 Hz\"",
                            "rate: a camera takes no picture in each step");
    if (!status && value[USI_CAMERA_WIDTH] * value[USI_CAMERA_HEIGHT] > MAX_PIXEL)
        return us_error_set(err, US_ERR_LIMIT, NULL, "write fewer, for example 640 and 480",
                            "width, height: a picture has at most 33554432 pixels");
    if (!status && d->latency * d->rate >= 1)
        return us_error_set(err, US_ERR_VALUE, NULL, "write less than the time from picture to picture",
                            "latency: %g s is more than a camera takes for one", d->latency);
    if (!status) status = usi_camera_lens(value, &lens, err);
    if (!status) status = us_camera_get_info(&lens, &info, err);
    return status;
}

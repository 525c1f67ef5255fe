// Camera models: from a point to a pixel and back, and what ROS 2's camera_info says of them.
//
// Points are in the camera's optical frame: x right, y down, z forward. Pixel centres lie at integers, as in
// OpenCV: the centre of the first pixel is (0, 0), the picture reaches from -0.5 to width - 0.5. Every
// function is pure and safe from any thread; nothing is allocated.
#ifndef UNDERSTUDY_CAMERA_MODEL_H
#define UNDERSTUDY_CAMERA_MODEL_H

#include "understudy/base.h"
#include "understudy/math.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum us_camera_kind {
    US_CAMERA_PINHOLE,  // Brown-Conrady: k1 k2 p1 p2 k3, and k4 k5 k6 of the rational model
    US_CAMERA_FISHEYE,  // equidistant: theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8)
    US_CAMERA_CAHVOR,   // vectors C A H V O R
    US_CAMERA_CAHVORE,  // and E, the moving entrance pupil
    US_CAMERA_KIND_COUNT
} us_camera_kind;

// Camera. Fill it, then call us_camera_prepare. us_camera_from_hfov makes one without distortion.
typedef struct us_camera_model {
    us_camera_kind kind;
    int32_t width, height;  // pixels

    // Pinhole and fish-eye.
    double fx, fy;  // focal lengths, pixels
    double cx, cy;  // principal point, pixels
    double k[8];    // pinhole: k1 k2 p1 p2 k3 k4 k5 k6, in OpenCV's order; fish-eye: k1 k2 k3 k4

    // CAHVOR and CAHVORE, in the optical frame: C (m), A (unit), H and V (pixels), O (unit), R (no unit), E
    // (m).
    us_vec3 C, A, H, V, O, R, E;
    double linearity;  // of CAHVORE: 1 is perspective, 0 equidistant, -1 orthographic

    // Written by us_camera_prepare: how far from the axis the model is one to one. Pinhole and CAHVOR:
    // tangent of the angle; fish-eye: angle (rad); CAHVORE: its chi.
    double limit;
} us_camera_model;

// Pinhole without distortion, square pixels, principal point in the middle: fx = width / (2 tan(hfov / 2)).
// hfov in radians, 0 < hfov < pi.
US_API us_camera_model us_camera_from_hfov(int32_t width, int32_t height, double hfov);

// Equidistant fish-eye whose picture is hfov wide (rad, 0 < hfov < 2 pi): fx = width / hfov.
US_API us_camera_model us_camera_fisheye_from_hfov(int32_t width, int32_t height, double hfov);

// Checks the numbers and computes `limit`; call it once after the camera was filled or changed. US_ERR_VALUE
// names the number that cannot be.
US_API us_status us_camera_prepare(us_camera_model *camera, us_error *err);

// The pixel at which the point p (optical frame, m) is seen. False when the model does not see it: it lies
// behind the camera, or farther from the axis than the model is one to one. The pixel may lie outside the
// picture.
US_API bool us_camera_project(const us_camera_model *camera, us_vec3 p, double *out_u, double *out_v);

// The ray of a pixel: unit direction, and the point that it starts from (may be NULL; it is 0 but for CAHVOR,
// where it is C, and CAHVORE, whose entrance pupil moves along O). False where no ray leads to that pixel.
US_API bool us_camera_unproject(const us_camera_model *camera, double u, double v, us_vec3 *out_direction,
                                us_vec3 *out_origin);

// What sensor_msgs/msg/CameraInfo says of a camera.
typedef struct us_camera_info {
    const char *distortion_model;  // "plumb_bob" (5), "rational_polynomial" (8) or "equidistant" (4)
    int32_t n_d;
    double d[8];
    double k[9];   // row-major 3 x 3
    double r[9];   // identity, until a rectification is written
    double p[12];  // row-major 3 x 4
    // CAHVOR and CAHVORE have no name in ROS 2: then the best Brown-Conrady (field of view below 120 degrees)
    // or equidistant model is given, and here is how far its pixels lie from the camera's at most, over the
    // picture. 0 for the other kinds.
    double max_error;
} us_camera_info;

// `camera` is prepared. US_ERR_VALUE when a CAHVOR(E) camera is like none of the models that have a name.
US_API us_status us_camera_get_info(const us_camera_model *camera, us_camera_info *out_info, us_error *err);

// The camera of a camera_info: `distortion_model`, `n_d`, `d` and `k` are read; it is prepared.
US_API us_status us_camera_from_info(const us_camera_info *info, int32_t width, int32_t height,
                                     us_camera_model *out_camera, us_error *err);

#ifdef __cplusplus
}
#endif
#endif

// Cameras by their parameters: the order of those in the kind "camera", and the lens that they make.
#ifndef USI_SPEC_CAMERA_DEVICE_H
#define USI_SPEC_CAMERA_DEVICE_H

#include "understudy/camera_model.h"
#include "understudy/network.h"

// In the order of the table of instrument/camera_kind.c.
typedef enum usi_camera_parameter {
    USI_CAMERA_WIDTH,
    USI_CAMERA_HEIGHT,
    USI_CAMERA_FOV,
    USI_CAMERA_MODEL,
    USI_CAMERA_ASPECT,
    USI_CAMERA_CENTRE_X,
    USI_CAMERA_CENTRE_Y,
    USI_CAMERA_K1,  // and k2 to k6
    USI_CAMERA_P1 = USI_CAMERA_K1 + 6,
    USI_CAMERA_P2,
    USI_CAMERA_A_X,  // CAHVOR: tilt of the image plane's axis
    USI_CAMERA_A_Y,
    USI_CAMERA_O_X,
    USI_CAMERA_O_Y,
    USI_CAMERA_R0,  // r0 to r2
    USI_CAMERA_E0 = USI_CAMERA_R0 + 3,
    USI_CAMERA_LINEARITY = USI_CAMERA_E0 + 3,
    USI_CAMERA_PIXELS,
    USI_CAMERA_BITS,
    USI_CAMERA_DEPTH,
    USI_CAMERA_RESPONSE,
    USI_CAMERA_EXPOSURE,
    USI_CAMERA_GAIN,
    USI_CAMERA_APERTURE,
    USI_CAMERA_PITCH,
    USI_CAMERA_EFFICIENCY,
    USI_CAMERA_FULL_WELL,
    USI_CAMERA_NOISE,
    USI_CAMERA_READ_NOISE,
    USI_CAMERA_DARK,
    USI_CAMERA_PATTERN,
    USI_CAMERA_VIGNETTING,
    USI_CAMERA_SHADOWS,
    USI_CAMERA_REACH,
    USI_CAMERA_N_PARAMETER
} usi_camera_parameter;

enum { USI_CAMERA_MONO, USI_CAMERA_RGB };                         // of "pixels"
enum { USI_CAMERA_8_BIT, USI_CAMERA_16_BIT };                     // of "bits"
enum { USI_CAMERA_SRGB, USI_CAMERA_LINEAR };                      // of "response"
enum { USI_CAMERA_NO_SHADOW, USI_CAMERA_HARD, USI_CAMERA_SOFT };  // of "shadows"

bool usi_is_camera_def(const us_sensor_def *d);

// The lens of a camera with these parameters, prepared. US_ERR_VALUE: none is like that.
us_status usi_camera_lens(const double *parameter, us_camera_model *out_lens, us_error *err);

// Of a definition whose numbers are good: whether it gives pictures of depths too, and whether its lens can
// be made.
bool usi_camera_has_depth(const us_sensor_def *d);
us_status usi_check_camera(const us_sensor_def *d, us_error *err);

#endif

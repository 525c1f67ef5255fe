// Cameras. A sample is the moment of a picture; the picture itself is made from the state of that moment by
// those who ask for it (sim/camera_renderer.c), so that nothing of it is part of the state.
#include "instrument/measure.h"
#include "spec/camera_device.h"

#define FIXED(name_, unit_, low_, high_, usual_, about_)                                            \
    {                                                                                               \
        .name = name_, .unit = unit_, .low = low_, .high = high_, .usual = usual_, .about = about_, \
        .is_fixed = true                                                                            \
    }
#define FIXED_CHOICE(name_, choices_, usual_, about_)                                              \
    {                                                                                              \
        .name = name_, .unit = "1", .usual = usual_, .about = about_, .type = US_PARAMETER_CHOICE, \
        .choices = choices_, .is_fixed = true                                                      \
    }

// In the order of us_camera_kind and of the lists of spec/camera_device.h.
static const char *const models[] = {"pinhole", "fisheye", "cahvor", "cahvore", NULL};
static const char *const pixels[] = {"mono", "rgb", NULL};
static const char *const bits[] = {"8", "16", NULL};
static const char *const choice[] = {"no", "yes", NULL};
static const char *const responses[] = {"srgb", "linear", NULL};
static const char *const shadows[] = {"none", "hard", "soft", NULL};

static const us_sensor_parameter parameters[USI_CAMERA_N_PARAMETER] = {
    [USI_CAMERA_WIDTH] = USI_WHOLE("width", 1, 16384, 640, "Pixels of a row."),
    [USI_CAMERA_HEIGHT] = USI_WHOLE("height", 1, 16384, 480, "Rows."),
    [USI_CAMERA_FOV] = FIXED("fov", "rad", 1e-5, 6.2831, 1.0471975511965976,
                             "Horizontal field of view of the lens without its distortion."),
    [USI_CAMERA_MODEL] = FIXED_CHOICE(
        "model", models, 0, "Lens: pinhole (Brown-Conrady), fisheye (equidistant), cahvor, cahvore."),
    [USI_CAMERA_ASPECT] = FIXED("aspect", "1", 0.1, 10, 1, "Vertical over horizontal focal length."),
    [USI_CAMERA_CENTRE_X] =
        FIXED("centre-x", "1", -16384, 16384, 0, "Principal point, pixels to the right of the middle."),
    [USI_CAMERA_CENTRE_Y] =
        FIXED("centre-y", "1", -16384, 16384, 0, "Principal point, pixels below the middle."),
    [USI_CAMERA_K1] = FIXED("k1", "1", -100, 100, 0, "Radial distortion; pinhole and fisheye."),
    [USI_CAMERA_K1 + 1] = FIXED("k2", "1", -100, 100, 0, "Radial distortion; pinhole and fisheye."),
    [USI_CAMERA_K1 + 2] = FIXED("k3", "1", -100, 100, 0, "Radial distortion; pinhole and fisheye."),
    [USI_CAMERA_K1 + 3] =
        FIXED("k4", "1", -100, 100, 0, "Pinhole: of the denominator (rational model); fisheye."),
    [USI_CAMERA_K1 + 4] = FIXED("k5", "1", -100, 100, 0, "Pinhole: of the denominator."),
    [USI_CAMERA_K1 + 5] = FIXED("k6", "1", -100, 100, 0, "Pinhole: of the denominator."),
    [USI_CAMERA_P1] = FIXED("p1", "1", -10, 10, 0, "Tangential distortion; pinhole."),
    [USI_CAMERA_P2] = FIXED("p2", "1", -10, 10, 0, "Tangential distortion; pinhole."),
    [USI_CAMERA_A_X] = FIXED("a-x", "1", -1, 1, 0, "CAHVOR: tilt of A to the right, as a tangent."),
    [USI_CAMERA_A_Y] = FIXED("a-y", "1", -1, 1, 0, "CAHVOR: tilt of A downwards, as a tangent."),
    [USI_CAMERA_O_X] = FIXED("o-x", "1", -1, 1, 0, "CAHVOR: tilt of O to the right, as a tangent."),
    [USI_CAMERA_O_Y] = FIXED("o-y", "1", -1, 1, 0, "CAHVOR: tilt of O downwards, as a tangent."),
    [USI_CAMERA_R0] = FIXED("r0", "1", -10, 10, 0, "CAHVOR: first number of R."),
    [USI_CAMERA_R0 + 1] = FIXED("r1", "1", -10, 10, 0, "CAHVOR: second number of R."),
    [USI_CAMERA_R0 + 2] = FIXED("r2", "1", -10, 10, 0, "CAHVOR: third number of R."),
    [USI_CAMERA_E0] = FIXED("e0", "m", -1, 1, 0, "CAHVORE: first number of E."),
    [USI_CAMERA_E0 + 1] = FIXED("e1", "m", -1, 1, 0, "CAHVORE: second number of E."),
    [USI_CAMERA_E0 + 2] = FIXED("e2", "m", -1, 1, 0, "CAHVORE: third number of E."),
    [USI_CAMERA_LINEARITY] =
        FIXED("linearity", "1", -1, 1, 1, "CAHVORE: 1 is perspective, 0 equidistant, -1 orthographic."),
    [USI_CAMERA_PIXELS] = FIXED_CHOICE("pixels", pixels, USI_CAMERA_RGB, "What a pixel has: mono or rgb."),
    [USI_CAMERA_BITS] = FIXED_CHOICE("bits", bits, USI_CAMERA_8_BIT, "Of each number of a picture: 8 or 16."),
    [USI_CAMERA_DEPTH] = FIXED_CHOICE("depth", choice, 0, "Whether it gives pictures of depths too."),
    [USI_CAMERA_RESPONSE] =
        USI_CHOICE("response", responses, USI_CAMERA_SRGB,
                   "How numbers follow from electrons: srgb, as screens show them, or linear."),
    [USI_CAMERA_EXPOSURE] =
        USI_NUMBER("exposure", "s", 0, 10, 0, "Exposure time; 0: each picture gets the one that suits it."),
    [USI_CAMERA_GAIN] = USI_NUMBER("gain", "1", 0.01, 1000, 1, "Of the signal: at 1 a full well is white."),
    [USI_CAMERA_APERTURE] =
        USI_NUMBER("aperture", "1", 0.5, 100, 4, "Focal length over width of the opening."),
    [USI_CAMERA_PITCH] = USI_NUMBER("pitch", "m", 1e-7, 1e-3, 5e-6, "From pixel to pixel on the chip."),
    [USI_CAMERA_EFFICIENCY] =
        USI_NUMBER("efficiency", "1", 1e-6, 1, 0.15,
                   "Electrons for each photon that the light would have, were all of it green (550 nm)."),
    [USI_CAMERA_FULL_WELL] = USI_NUMBER("full-well", "1", 10, 1e7, 1e4, "Electrons that a pixel holds."),
    [USI_CAMERA_NOISE] = USI_CHOICE("noise", choice, 1, "Whether there is noise at all."),
    [USI_CAMERA_READ_NOISE] =
        USI_NUMBER("read-noise", "1", 0, 1e5, 8, "Electrons that reading out adds, standard deviation."),
    [USI_CAMERA_DARK] = USI_NUMBER("dark-current", "1/s", 0, 1e7, 5, "Electrons per second without light."),
    [USI_CAMERA_PATTERN] =
        USI_NUMBER("pattern-noise", "1", 0, 1, 0.005, "Standard deviation of the pixels' sensitivities."),
    [USI_CAMERA_VIGNETTING] = USI_NUMBER("vignetting", "1", 0, 1, 0,
                                         "How much of the fall of light off the axis there is: cos^4 at 1."),
    [USI_CAMERA_SHADOWS] = USI_CHOICE("shadows", shadows, USI_CAMERA_HARD,
                                      "none; hard: of a Sun without size; soft: with penumbras."),
    [USI_CAMERA_REACH] = USI_NUMBER("reach", "m", 1, 10000, 100,
                                    "How far ground that is read in tiles is seen, and throws shadows."),
};
static const us_sensor_reading readings[] = {{"exposure-time", "s", true}};

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    truth[0] = reading[0] = view->parameter[USI_CAMERA_EXPOSURE];
    return true;
}

const us_sensor_kind usi_camera_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "camera",
    .about = "a camera that looks along its x axis, its z axis up: pictures of light and of depths",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 10,
    .topic = "image_raw",
    .message = "sensor_msgs/msg/Image",
    .sample = sample,
};

// Stereo vision: rectification, matching, disparity, points.
//
// Two rectified pictures go in, a disparity for every pixel of the left one comes out. A matcher takes all of
// its memory when it is made; matching allocates nothing. It gives the same bytes for any number of threads.
// A matcher belongs to one thread at a time.
#ifndef UNDERSTUDY_VISION_H
#define UNDERSTUDY_VISION_H

#include "understudy/base.h"
#include "understudy/camera_model.h"
#include "understudy/image.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- matching ----

typedef enum us_stereo_method {
    US_STEREO_BLOCK,        // the best window, for each pixel alone
    US_STEREO_SEMI_GLOBAL,  // sums of paths that pay for steps of the disparity
    US_STEREO_METHOD_COUNT
} us_stereo_method;

// What a pixel of the left and one of the right picture differ by.
typedef enum us_stereo_cost {
    US_STEREO_SAD,  // sum in a window of absolute differences of Sobel gradients; paths: and of brightness /
                    // 4
    US_STEREO_CENSUS_5X5,  // bits that differ of 24: which neighbours are darker than the pixel
    US_STEREO_CENSUS_9X7,  // of 62
    US_STEREO_COST_COUNT
} us_stereo_cost;

typedef enum us_filter_kind {
    US_FILTER_MEDIAN,     // of 3 x 3; pictures and disparities
    US_FILTER_BLUR,       // binomial 3 x 3; pictures
    US_FILTER_NORMALIZE,  // less the mean of `window` x `window`, plus 128; pictures
    US_FILTER_SPECKLE,    // drops regions of fewer than `size` pixels, whose neighbours differ by `range` at
                          // most
    US_FILTER_FILL,       // gives pixels without disparity the farther of the two neighbours in their row
    US_FILTER_KIND_COUNT
} us_filter_kind;

typedef struct us_filter {
    us_filter_kind kind;
    int32_t window;  // US_FILTER_NORMALIZE: odd, 3 to 31
    int32_t size;    // US_FILTER_SPECKLE: pixels
    double range;    // US_FILTER_SPECKLE: pixels of disparity
} us_filter;

enum { US_FILTER_MAX = 8, US_STEREO_MAX_DISPARITY = 512 };

typedef struct us_stereo_def {
    int32_t width, height;
    us_stereo_method method;
    us_stereo_cost cost;    // of US_STEREO_SEMI_GLOBAL; blocks are compared by US_STEREO_SAD
    int32_t min_disparity;  // pixels
    int32_t n_disparity;    // how many are tried: a multiple of 16, up to US_STEREO_MAX_DISPARITY
    int32_t window;         // of US_STEREO_SAD: odd, 1 to 21 (paths: 17); 5 shows details and holes
    int32_t prefilter_cap;  // of US_STEREO_SAD: gradients are cut at this, 1 to 63
    int32_t texture;        // US_STEREO_BLOCK: least sum of the window's gradients; 0: off
    int32_t uniqueness;     // per cent that the second best must cost more than the best, 0 to 99
    int32_t p1, p2;         // US_STEREO_SEMI_GLOBAL: price of a step by one, and by more; 0 < p1 <= p2
    int32_t n_path;         // US_STEREO_SEMI_GLOBAL: 4 or 8
    int32_t left_right;     // disparities from left and from right may differ by this; negative: not compared
    // Of the pictures before they are matched, and of the disparity afterwards, in this order.
    int32_t n_before, n_after;
    us_filter before[US_FILTER_MAX], after[US_FILTER_MAX];
    bool
        is_plain;  // by the plain code that the fast one is tested against: the same bytes, many times slower
} us_stereo_def;

// Block matching: window 9, prefilter_cap 31, texture 10 per pixel of the window. Semi-global: census 5 x 5,
// p1 10, p2 90, 8 paths. Both: 64 disparities from 0, uniqueness 15 %, left_right 1, then median and speckles
// of fewer than 100 pixels.
US_API us_stereo_def us_stereo_def_default(us_stereo_method method, int32_t width, int32_t height);

typedef struct us_stereo us_stereo;

// Makes a matcher. n_thread counts the caller. NULL: the default allocator. US_ERR_VALUE names the setting
// that cannot be.
US_API us_status us_stereo_create(const us_stereo_def *def, int32_t n_thread, const us_allocator *allocator,
                                  us_stereo **out_stereo, us_error *err);
US_API void us_stereo_destroy(us_stereo *stereo);  // NULL is allowed

// Other settings, from the next match on. The size of the picture stays. US_ERR_LIMIT when more disparities
// are asked for than the matcher was made for, or paths or the plain code of one that was made without. On
// error nothing changes.
US_API us_status us_stereo_set(us_stereo *stereo, const us_stereo_def *def, us_error *err);
US_API us_stereo_def us_stereo_get_def(const us_stereo *stereo);

// Disparities of the left picture's pixels, row by row, width x height of them: how many pixels farther left
// a thing stands in the right picture. A pixel without one has us_stereo_invalid. Pictures of any format;
// other than US_PIXEL_MONO8 are reduced to it. US_ERR_ARG for pictures of another size. Costs about 25 ns per
// pixel and 64 disparities (semi-global, one core of 3 GHz).
US_API us_status us_stereo_match(us_stereo *stereo, const us_image *left, const us_image *right,
                                 float *out_disparity);

// min_disparity - 1: as stereo_msgs/DisparityImage marks what has no disparity.
US_API float us_stereo_invalid(const us_stereo_def *def);

// ---- rectification ----

// Two cameras: the pose of the right one's optical frame in the left one's.
typedef struct us_stereo_rig {
    us_camera_model left, right;  // prepared
    us_pose X_LR;
} us_stereo_rig;

// Two ideal cameras that look the same way, side by side, and how they stand in the real ones' optical
// frames.
typedef struct us_rectification {
    int32_t width, height;
    double f;                      // pixels
    double cx_left, cx_right, cy;  // pixels
    double baseline;               // m
    us_quat q_LN, q_RN;            // of the ideal frame N in the left and in the right optical frame
} us_rectification;

// From the geometry of a rig: x along the baseline, z as near the left camera's as can be. The focal length
// is the smaller one of the two. US_ERR_VALUE when the cameras stand in one point, behind each other, or look
// apart.
US_API us_status us_rectify_rig(const us_stereo_rig *rig, us_rectification *out_rectification, us_error *err);

// From a calibration, as camera_info of both cameras has it: rotations `r`, and `p`, whose fourth number is
// -f times the baseline for the right one.
US_API us_status us_rectify_calibration(const us_camera_info *left, const us_camera_info *right,
                                        int32_t width, int32_t height, us_rectification *out_rectification,
                                        us_error *err);

// Table of where each pixel of an ideal camera comes from in the real one's picture.
typedef struct us_remap us_remap;

// `q_SN`: of the ideal frame in the real camera's optical frame (q_LN or q_RN), `cx`: cx_left or cx_right.
US_API us_status us_remap_create(const us_camera_model *camera, const us_rectification *to, us_quat q_SN,
                                 double cx, const us_allocator *allocator, us_remap **out_remap);
US_API void us_remap_destroy(us_remap *remap);

// Bilinear. Both pictures are US_PIXEL_MONO8; what the camera does not see is black. US_ERR_ARG for other
// sizes.
US_API us_status us_remap_apply(const us_remap *remap, const us_image *from, us_image *to);

// ---- calibration files ----

typedef struct us_calibration {
    int32_t width, height;
    char name[64], model[32];
    us_camera_info info;  // its distortion_model is one of the known names, or NULL
} us_calibration;

// A calibration as ROS 2's camera_calibration writes it (YAML: image_width, image_height, camera_name,
// camera_matrix, distortion_model, distortion_coefficients, rectification_matrix, projection_matrix). The
// error has the line.
US_API us_status us_calibration_read(const char *path, us_calibration *out_calibration, us_error *err);
US_API us_status us_calibration_decode(const char *name, const char *text, size_t length,
                                       us_calibration *out_calibration, us_error *err);

// ---- points ----

typedef struct us_stereo_point {
    float x, y, z;  // m, in the ideal left camera's optical frame; NAN where there is none
    uint8_t grey;   // of the left picture
} us_stereo_point;

// The points of a disparity picture, one for each pixel. `grey` (US_PIXEL_MONO8, the rectified left picture)
// may be NULL. Returns how many there are.
US_API int32_t us_stereo_points(const us_rectification *camera, const float *disparity, float invalid,
                                const us_image *grey, us_stereo_point *out_points);

#ifdef __cplusplus
}
#endif
#endif

// OpenCV's stereo matchers, as far as the benchmark needs them.
#ifndef BENCH_STEREO_OPENCV_H
#define BENCH_STEREO_OPENCV_H

#include "understudy/vision.h"

#ifdef __cplusplus
extern "C" {
#endif

// The same settings: StereoBM for US_STEREO_BLOCK, StereoSGBM for US_STEREO_SEMI_GLOBAL, MODE_HH (8 paths)
// or, with `has_five_paths`, MODE_SGBM. Window, prices of a step, uniqueness and so on are those of `def`;
// speckles are those of its last filter. Disparities as us_stereo_match gives them. Returns false when OpenCV
// refuses.
typedef struct opencv_stereo opencv_stereo;
opencv_stereo *opencv_stereo_create(const us_stereo_def *def, bool has_five_paths, int n_thread);
bool opencv_stereo_match(opencv_stereo *stereo, const us_image *left, const us_image *right,
                         float *out_disparity);
void opencv_stereo_destroy(opencv_stereo *stereo);
const char *opencv_version(void);

#ifdef __cplusplus
}
#endif
#endif

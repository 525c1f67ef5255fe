// A second way to see what a lidar sees: by a depth buffer in place of rays. docs/lidar.md has the
// mathematics.
//
// All shapes are drawn as triangles, the nearest surface of each pixel gives its depth, rounded down to a
// number of N bits as a depth buffer keeps it, and each beam reads its range between pixels. Nothing of it
// goes into the state of a sim: it is for comparisons, and for those who have used such a method before.
#ifndef UNDERSTUDY_DEPTH_SCANNER_H
#define UNDERSTUDY_DEPTH_SCANNER_H

#include "understudy/query.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_depth_scanner us_depth_scanner;

typedef struct us_depth_scanner_def {
    int32_t bits;      // of a depth, 8 to 32; default 24
    double near, far;  // m of depth that the buffer holds; 0: half the shortest range of the lidar, and the
                       // longest
    int32_t side;      // pixels of the longer side of a picture, 64 to 16384; default 2048
    double facet;      // m by which triangles may stand off a round surface; default 1e-4
} us_depth_scanner_def;

US_API us_depth_scanner_def us_depth_scanner_def_default(void);

// For the lidars of a model, which must outlive it. Needs EGL and OpenGL 3.3, which draw without a display
// and without a graphics card (Debian: libegl1 and libgl1-mesa-dri): US_ERR_IO where they are not there; the
// error says what is missing. US_ERR_ARG: a number out of range, or no such lidar. US_ERR_LIMIT: ground that
// is paged in, or more triangles than 50 million.
US_API us_status us_depth_scanner_create(const us_model *model, us_lidar lidar,
                                         const us_depth_scanner_def *def, const us_allocator *allocator,
                                         us_depth_scanner **out_scanner, us_error *err);
US_API void us_depth_scanner_destroy(us_depth_scanner *scanner);  // NULL is allowed
// What draws, in the driver's own words.
US_API const char *us_depth_scanner_renderer(const us_depth_scanner *scanner);

// A frame of the lidar as the world stands now: all beams at once, noise and lost returns as those of the
// turn that is going on. Its members and points are those of us_sim_get_lidar_frame; all points are in the
// frame that the sensor has now. Beams are lines, with one return; dust and the sun are left out. `sim` is
// one of the model. Cost: a tenth of a second.
US_API us_status us_depth_scanner_scan(us_depth_scanner *scanner, const us_sim *sim,
                                       us_lidar_frame *out_frame, us_lidar_point *points, int32_t cap,
                                       us_error *err);

// m: how far apart two depths are that a buffer of so many bits can tell apart at a depth, and how large a
// depth may come out off, at most, is half of it. NaN where bits, near < far or the depth are none.
US_API double us_depth_resolution(int32_t bits, double near, double far, double depth);

#ifdef __cplusplus
}
#endif
#endif

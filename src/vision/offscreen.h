// Pictures without a display: which of many triangles each pixel sees, by OpenGL through EGL.
//
// EGL and the driver are loaded when the first picture is asked for; nothing links them. A processor will do:
// Mesa draws without a graphics card.
#ifndef USI_VISION_OFFSCREEN_H
#define USI_VISION_OFFSCREEN_H

#include "understudy/base.h"
#include "understudy/math.h"

typedef struct usi_offscreen usi_offscreen;

// Pictures of at most side by side pixels. US_ERR_IO: EGL, or an OpenGL 3.3 without a display, is not there;
// the error says what is missing. US_ERR_LIMIT: the driver's pictures are smaller.
us_status usi_offscreen_create(int32_t side, const us_allocator *allocator, usi_offscreen **out,
                               us_error *err);
void usi_offscreen_destroy(usi_offscreen *x);  // NULL is allowed
// What draws: the driver's own words, for reports. Belongs to x.
const char *usi_offscreen_renderer(const usi_offscreen *x);

// A view from the origin: what is `depth` m along `forward` and right and up of it by tangents between the
// limits, from near to far. `right` and `up` are square to `forward`.
typedef struct usi_view_window {
    us_vec3 forward, right, up;
    double left_limit, right_limit, low_limit, high_limit;  // tangents
    double near, far;                                       // m
    int32_t width, height;                                  // pixels
} usi_view_window;

// Triangles, three corners each as indices of points: seen by the pictures that follow.
us_status usi_offscreen_set(usi_offscreen *x, int32_t n_point, const float (*points)[3], int32_t n_triangle,
                            const uint32_t (*corners)[3], us_error *err);
// A picture row by row from below: of each pixel 1 + the number of the triangle whose surface is nearest at
// its middle, from either side; 0: none. Any thread may draw, one at a time.
us_status usi_offscreen_draw(usi_offscreen *x, const usi_view_window *view, uint32_t *out_pixels,
                             us_error *err);

#endif

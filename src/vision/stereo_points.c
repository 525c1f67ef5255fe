// Points of a disparity picture: Z = f T / d, and X, Y from where the pixel looks.
#include <math.h>

#include "understudy/vision.h"

int32_t us_stereo_points(const us_rectification *camera, const float *disparity, float invalid,
                         const us_image *grey, us_stereo_point *out_points) {
    // The principal points of the two cameras may differ: then a thing at infinity has this disparity.
    const double at_infinity = camera->cx_left - camera->cx_right, fT = camera->f * camera->baseline;
    int32_t n = 0;
    for (int32_t y = 0; y < camera->height; y++)
        for (int32_t x = 0; x < camera->width; x++) {
            const size_t i = (size_t)y * camera->width + x;
            us_stereo_point p = {NAN, NAN, NAN, 0};
            if (grey) p.grey = ((const uint8_t *)grey->pixels)[(size_t)y * grey->stride + x];
            const double d = (double)disparity[i] - at_infinity;
            if (disparity[i] != invalid && d > 0) {
                const double z = fT / d;
                p.x = (float)((x - camera->cx_left) * z / camera->f);
                p.y = (float)((y - camera->cy) * z / camera->f);
                p.z = (float)z;
                n++;
            }
            out_points[i] = p;
        }
    return n;
}

// Rates of rotation vectors.
#ifndef USI_MATH_ROTATION_H
#define USI_MATH_ROTATION_H

#include "understudy/math.h"

// With R = R0 exp(theta) and the angular velocity w in R's axes, the rate of theta: w + theta x w / 2 + c
// theta x (theta x w), c = (1 - (x/2) cot(x/2)) / x^2, x the length of theta (below 2 pi).
static inline us_vec3 usi_rotation_rate(us_vec3 theta, us_vec3 w) {
    double x2 = us_vec3_dot(theta, theta), x = sqrt(x2);
    double c = x < 0.1 ? 1.0 / 12 + x2 / 720 + x2 * x2 / 30240 : (1 - 0.5 * x / tan(0.5 * x)) / x2;
    us_vec3 once = us_vec3_cross(theta, w), twice = us_vec3_cross(theta, once);
    return us_vec3_add(w, us_vec3_add(us_vec3_scale(0.5, once), us_vec3_scale(c, twice)));
}

#endif

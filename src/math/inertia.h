// Moments and products of inertia, in the order xx yy zz xy xz yz of us_inertia.
#ifndef USI_MATH_INERTIA_H
#define USI_MATH_INERTIA_H

#include "understudy/math.h"

// Adds m (d.d 1 - d d^T): a mass m at the distance d from the point about which I is taken (Steiner).
static inline void usi_inertia_add_point(double I[6], double m, us_vec3 d) {
    I[0] += m * (d.y * d.y + d.z * d.z);
    I[1] += m * (d.x * d.x + d.z * d.z);
    I[2] += m * (d.x * d.x + d.y * d.y);
    I[3] -= m * d.x * d.y;
    I[4] -= m * d.x * d.z;
    I[5] -= m * d.y * d.z;
}

#endif

// Numbers that come from files, before they are believed.
#ifndef USI_BASE_SOUND_H
#define USI_BASE_SOUND_H

#include <math.h>

#include "understudy/base.h"

// Farther, faster or later than anything that runs: beyond it numbers lose their meaning as indices of
// ground.
#define USI_MAX_NUMBER 1e12
#define USI_MAX_TICK (INT64_C(1) << 53)
#define USI_MAX_TIME 4e9  // s: nanoseconds and twice as many fit into 64 bits

static inline bool usi_are_numbers(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(x[i]) <= USI_MAX_NUMBER)) return false;
    }
    return true;
}

#endif

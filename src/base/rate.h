// When something with a rate happens, in ticks.
#ifndef USI_BASE_RATE_H
#define USI_BASE_RATE_H

#include <math.h>

#include "understudy/base.h"

// How often something with this rate (Hz) has happened up to a tick, from 0 on. The small term forgives
// rounding: at 50 Hz and 1 ms it is every 20th tick exactly.
static inline double usi_times_due(double rate, double step, int64_t tick) {
    return floor((double)tick * step * rate + 1e-6);
}

// Whether it happens at this tick; never with a rate of 0.
static inline bool usi_is_due(double rate, double step, int64_t tick) {
    return rate > 0 && usi_times_due(rate, step, tick) != usi_times_due(rate, step, tick - 1);
}

#endif

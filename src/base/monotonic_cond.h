// Conditions that are waited for by the clock that nobody sets.
#ifndef USI_BASE_MONOTONIC_COND_H
#define USI_BASE_MONOTONIC_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

// Times of pthread_cond_timedwait are then of CLOCK_MONOTONIC. False when there is no memory for it.
static inline bool usi_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t by;
    if (pthread_condattr_init(&by)) return false;
    pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
    bool ok = pthread_cond_init(cond, &by) == 0;
    pthread_condattr_destroy(&by);
    return ok;
}

#endif

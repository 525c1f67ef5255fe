// Condition variables whose timeouts are on the monotonic clock.
#ifndef USI_BASE_MONOTONIC_COND_H
#define USI_BASE_MONOTONIC_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

// Initialises a condition; times of pthread_cond_timedwait are then of CLOCK_MONOTONIC. False without memory.
static inline bool usi_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes)) return false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool ok = pthread_cond_init(cond, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return ok;
}

#endif

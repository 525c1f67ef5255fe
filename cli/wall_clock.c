// Waits that a wall clock cannot hold up, for libraries of others.
//
// Cyclone DDS 0.10 waits by the wall clock: until "now and 10 ms". When somebody sets the clock back by an
// hour meanwhile, that is an hour and 10 ms from now, in which its thread sends no heartbeat, answers none,
// and does not announce this program; after 10 s others take it for gone. The libraries find
// pthread_cond_timedwait here, before that of the C library, and what is left of the wait is measured by a
// clock that only goes forward.
//
// This belongs to the program and not to the library, which must not change what other programs do.
#include <pthread.h>
#include <time.h>

// s. The monotonic clock counts from the start of the machine and stays below this for 30 years; the wall
// clock has been above it since 2001. So the two kinds of deadline can be told apart.
static const time_t WALL = 1000000000;

enum { SECOND = 1000000000 };  // ns

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header has reserved names.
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline) {
    struct timespec until = *deadline, wall, now;
    if (until.tv_sec < WALL || until.tv_nsec < 0 || until.tv_nsec >= SECOND)
        return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, deadline);
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &now);
    until.tv_sec += now.tv_sec - wall.tv_sec;
    until.tv_nsec += now.tv_nsec - wall.tv_nsec;
    while (until.tv_nsec < 0) {
        until.tv_sec--;
        until.tv_nsec += SECOND;
    }
    while (until.tv_nsec >= SECOND) {
        until.tv_sec++;
        until.tv_nsec -= SECOND;
    }
    // A deadline before the machine was started has passed.
    if (until.tv_sec < 0) until = (struct timespec){0};
    return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &until);
}

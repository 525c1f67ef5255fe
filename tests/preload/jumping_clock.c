// Wall clock that jumps, for a program that is started with this in LD_PRELOAD: to and fro by an hour, each
// time after US_CLOCK_JUMP seconds. Clocks that only go forward are left as they are.
//
// With US_CLOCK_JUMP=back the program sees a clock that is an hour ahead of the kernel's. So whoever waits by
// the wall clock finds, as soon as the wait has begun, that it was set back by an hour.
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600 };

static void read_clock(clockid_t clock, struct timespec *out) { syscall(SYS_clock_gettime, clock, out); }

static double seconds_of(struct timespec t) { return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec; }

// Right, an hour ahead, right, an hour behind; begun at a moment that all programs share.
static time_t offset(void) {
    static const time_t offsets[] = {0, HOUR, 0, -HOUR};
    struct timespec now;
    const char *text = getenv("US_CLOCK_JUMP");
    if (text && strcmp(text, "back") == 0) return HOUR;
    const double period = text ? strtod(text, NULL) : 0;
    if (!(period > 0)) return 0;
    read_clock(CLOCK_MONOTONIC, &now);
    return offsets[(long)(seconds_of(now) / period) % 4];
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    if (syscall(SYS_clock_gettime, clock, out)) return -1;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) out->tv_sec += offset();
    return 0;
}

// The types of the second argument differ between systems.
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    (void)zone;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    *out = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out) *out = t.tv_sec;
    return t.tv_sec;
}

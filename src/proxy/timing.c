// When what is simulated happens in the world outside: what a robot's clock shows, and when its samples
// leave.
//
// A robot stamps by a clock of its own, which shows the time of day, and its computer takes a while to send.
// A run in real time can have both: the first sample fixes which time of day simulated time 0 is, and from
// then on one follows from the other.
//
//     simulated   0 ------ t ------------------->
//                          |  the moment that a sample is of
//     outside     ahead ---+----+--------+------>
//                               |        stamp: offset later, by a clock that drifts
//                               leaves: delay and jitter later
//
// Nothing here is part of the world's state: it is about what leaves. The jitter follows from seed, robot and
// time alone.
#include <math.h>
#include <time.h>

#include "proxy/proxy__robot.h"

// A world that is behind by more than this has stood still, or is too slow: the clock has gone on, and its
// stamps jump with it. ns
#define PATIENCE INT64_C(1000000000)

// The first sample that a thread sends after a sleep takes twice as long as the next. A robot's firmware has
// been computing until then and has no such first one: the truth, which nobody takes for the robot's, is sent
// this much before the rest. ns
#define TRUTH_EARLY INT64_C(120000)

// Beside those of the links, which count from 0.
static const uint64_t JITTER_STREAM = UINT64_C(1) << 32;

static int64_t read_clock(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t ns_of(double seconds) { return llround(seconds * 1e9); }

bool usi_timing_is_needed(const us_proxy *p) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        const us_timing *t = &p->robot[i].model->network->timing;
        if (t->is_wall || t->delay > 0 || t->jitter > 0) return true;
    }
    return false;
}

void usi_timing_follow(us_proxy *p, int64_t time, bool is_jump) {
    if (!usi_timing_is_needed(p)) return;
    p->now = read_clock(CLOCK_MONOTONIC);
    int64_t late = p->now - (time + p->own_ahead);
    if (!is_jump && late <= PATIENCE) return;
    p->own_ahead += late;
    p->wall_ahead = read_clock(CLOCK_REALTIME) - time;
}

int64_t usi_timing_stamp(const us_proxy *p, const usi_robot *r, int64_t time) {
    const us_timing *t = &r->model->network->timing;
    // A clock that was taken over from elsewhere goes on as it was; one that shows the time of day needs no
    // such help.
    return time + ns_of(t->offset + t->drift * 1e-9 * (double)time) +
           (t->is_wall ? p->wall_ahead : r->stamp_offset);
}

int64_t usi_timing_due(const us_proxy *p, const usi_robot *r, int64_t time, bool is_truth) {
    const us_timing *t = &r->model->network->timing;
    if (t->delay == 0 && t->jitter == 0) return 0;
    // A world that runs faster than time does not pile up what it has to say.
    int64_t moment = time + p->own_ahead < p->now ? time + p->own_ahead : p->now;
    double jitter =
        t->jitter > 0
            ? t->jitter * us_random_uniform(p->seed, JITTER_STREAM + (uint64_t)r->number, (uint64_t)time)
            : 0;
    return moment + ns_of(t->delay + jitter) - (is_truth ? TRUTH_EARLY : 0);
}

// Pace: how many steps are due, and the truth about those that came late.
//
// Step k has its time at start + k step / rate. The loop sleeps until a step is due, does every step that is,
// and compares.
//
//     start     1     2     3     4     5        the steps' times
//       |-------|-----|-----|-----|-----|---->
//                 [1]        sleeping too long
//                             [2 3 4] [5]        caught up: no step is left out, and 2 and 3 may count as
//                                                missed
//
// When the lag grows beyond a second, racing after it would show a world in fast motion: the schedule slips
// instead, by the whole lag, and the sum of all slips is kept.
#include "understudy/pace.h"

#include <math.h>
#include <time.h>

// Shortest sleep asked for. Steps shorter than this are done several at a time.
static const double QUANTUM_NS = 1e6;
// A lag beyond this moves the schedule.
static const double SLIP_NS = 1e9;
// A batch should last about this long: the caller looks after other things in between.
static const double BATCH_NS = 5e6;
// Longest sleep, for the same reason.
static const double MAX_SLEEP_NS = 16e6;

int64_t us_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

us_pace us_pace_start(double rate, double step) {
    const bool is_paced = rate > 0 && isfinite(rate) && step > 0 && isfinite(step);
    us_pace pace = {.rate = is_paced ? rate : 0, .batch = 1, .time = NAN, .step = step};
    pace.start_ns = (double)us_clock_ns();
    pace.wake_ns = (int64_t)pace.start_ns;
    pace.step_ns = is_paced ? 1e9 * step / rate : 0;
    return pace;
}

void us_pace_restart(us_pace *pace, double rate, double step) {
    us_pace fresh = us_pace_start(rate, step);
    fresh.n_done = pace->n_done;
    fresh.n_missed = pace->n_missed;
    fresh.worst_late = pace->worst_late;
    fresh.slipped = pace->slipped;
    fresh.batch = pace->batch;
    fresh.start_ns -= (double)pace->n_done * fresh.step_ns;
    *pace = fresh;
}

// The time of step number k.
static double time_of(const us_pace *pace, int64_t k) { return pace->start_ns + (double)k * pace->step_ns; }

// How late a step may be before it counts as missed.
static double tolerance_ns(const us_pace *pace) { return 2 * fmax(pace->step_ns, QUANTUM_NS); }

static void sleep_until(double when_ns) {
    int64_t ns = (int64_t)when_ns;
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

void us_pace_rest(void) { sleep_until((double)us_clock_ns() + MAX_SLEEP_NS); }

int64_t us_pace_due(us_pace *pace) {
    if (pace->rate <= 0) return pace->batch;
    double now = (double)us_clock_ns(), next = time_of(pace, pace->n_done + 1);
    if (now < next) {
        double n_ahead = ceil(QUANTUM_NS / pace->step_ns);
        sleep_until(
            fmin(time_of(pace, pace->n_done + (n_ahead < 1 ? 1 : (int64_t)n_ahead)), now + MAX_SLEEP_NS));
        now = (double)us_clock_ns();
        if (now < next) return 0;
    }
    double lag = now - next;
    if (lag > SLIP_NS) {
        pace->start_ns += lag;
        pace->slipped += 1e-9 * lag;
        pace->n_missed++;
        pace->worst_late = fmax(pace->worst_late, 1e-9 * lag);
        next = now;
    }
    double n = floor((now - next) / pace->step_ns) + 1;
    return n < (double)pace->batch ? (int64_t)n : pace->batch;
}

void us_pace_done(us_pace *pace, int64_t n_step, int64_t begin_ns, int64_t end_ns) {
    double spent = (double)(end_ns - begin_ns);
    if (n_step == pace->batch && spent < 0.5 * BATCH_NS && pace->batch < ((int64_t)1 << 40)) pace->batch *= 2;
    if (spent > 2 * BATCH_NS && pace->batch > 1) pace->batch /= 2;
    if (pace->rate > 0 && n_step > 0) {
        // Steps of this batch whose time plus tolerance had passed when the batch ended.
        double n_late = floor(((double)end_ns - tolerance_ns(pace) - pace->start_ns) / pace->step_ns) -
                        (double)pace->n_done;
        if (n_late > (double)n_step) n_late = (double)n_step;
        if (n_late > 0) pace->n_missed += (int64_t)n_late;
        double late = 1e-9 * ((double)end_ns - time_of(pace, pace->n_done + 1));
        if (n_late > 0) pace->worst_late = fmax(pace->worst_late, late);
    }
    pace->n_done += n_step;
}

double us_pace_lag(const us_pace *pace) {
    if (!pace || pace->rate <= 0) return 0;
    return 1e-9 * fmax(0, (double)us_clock_ns() - time_of(pace, pace->n_done + 1));
}

us_status us_pace_wait(us_pace *pace, double time) {
    if (!pace) return US_ERR_ARG;
    if (!isfinite(time)) return US_ERR_VALUE;
    // Steps since the last call, by the world's time.
    int64_t n = isnan(pace->time) || !(pace->step > 0) ? 0 : llround((time - pace->time) / pace->step);
    if (n > 0) us_pace_done(pace, n, pace->wake_ns, us_clock_ns());
    if (n < 0) us_pace_restart(pace, pace->rate, pace->step);
    pace->time = time;
    while (pace->rate > 0 && us_pace_due(pace) == 0) {
    }
    pace->wake_ns = us_clock_ns();
    return US_OK;
}

// Pace: how many steps are due, and the truth about those that came late.
//
// Step k has its time at start + k step / rate. The loop sleeps until a step is due, does every step that is,
// and compares.
//
//     start     1     2     3     4     5        the steps' times
//       |-------|-----|-----|-----|-----|---->
//                 [1]        sleeping too long
//                             [2 3 4] [5]        caught up: no step is left out, and 2 and 3 may count as
//                             missed
//
// When the lag grows beyond a second, racing after it would show a world in fast motion: the schedule slips
// instead, by the whole lag, and the sum of all slips is told.
#include <errno.h>
#include <math.h>
#include <time.h>

#include "run.h"

// Shortest sleep asked for. Steps shorter than this are done several at a time.
static const double QUANTUM_NS = 1e6;
// A lag beyond this moves the schedule.
static const double SLIP_NS = 1e9;
// A batch should last about this long: the stop flag, commands, page and status line are looked at in
// between.
static const double BATCH_NS = 5e6;
// Longest sleep, for the same reason.
static const double LOOK_NS = 16e6;

int64_t cli_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void cli_pace_start(cli_pace *pace, double rate, double step) {
    *pace = (cli_pace){.rate = rate, .batch = 1};
    pace->start_ns = (double)cli_now_ns();
    if (rate > 0) {
        pace->step_ns = 1e9 * step / rate;
        pace->tolerance_ns = 2 * fmax(pace->step_ns, QUANTUM_NS);
    }
}

void cli_pace_restart(cli_pace *pace, double rate, double step) {
    cli_pace fresh;
    cli_pace_start(&fresh, rate, step);
    fresh.n_done = pace->n_done;
    fresh.n_missed = pace->n_missed;
    fresh.worst_late_ns = pace->worst_late_ns;
    fresh.slipped_ns = pace->slipped_ns;
    fresh.batch = pace->batch;
    fresh.start_ns -= (double)pace->n_done * fresh.step_ns;
    *pace = fresh;
}

// The time of step number k.
static double time_of(const cli_pace *pace, int64_t k) { return pace->start_ns + (double)k * pace->step_ns; }

static void sleep_until(double when_ns) {
    int64_t ns = (int64_t)when_ns;
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

void cli_pace_rest(void) { sleep_until((double)cli_now_ns() + LOOK_NS); }

int64_t cli_pace_due(cli_pace *pace) {
    if (pace->rate <= 0) return pace->batch;
    double now = (double)cli_now_ns();
    double next = time_of(pace, pace->n_done + 1);
    if (now < next) {
        double n_ahead = ceil(QUANTUM_NS / pace->step_ns);
        sleep_until(fmin(time_of(pace, pace->n_done + (n_ahead < 1 ? 1 : (int64_t)n_ahead)), now + LOOK_NS));
        now = (double)cli_now_ns();
        if (now < next) return 0;
    }
    double lag = now - next;
    if (lag > SLIP_NS) {
        pace->start_ns += lag;
        pace->slipped_ns += lag;
        pace->n_missed++;
        if (lag > pace->worst_late_ns) pace->worst_late_ns = lag;
        next = now;
    }
    double n = floor((now - next) / pace->step_ns) + 1;
    return n < (double)pace->batch ? (int64_t)n : pace->batch;
}

void cli_pace_done(cli_pace *pace, int64_t n_step, int64_t begin_ns, int64_t end_ns) {
    double spent = (double)(end_ns - begin_ns);
    if (n_step == pace->batch && spent < 0.5 * BATCH_NS && pace->batch < ((int64_t)1 << 40)) pace->batch *= 2;
    if (spent > 2 * BATCH_NS && pace->batch > 1) pace->batch /= 2;
    if (pace->rate > 0 && n_step > 0) {
        // Steps of this batch whose time plus tolerance had passed when the batch ended.
        double n_late = floor(((double)end_ns - pace->tolerance_ns - pace->start_ns) / pace->step_ns) -
                        (double)pace->n_done;
        if (n_late > (double)n_step) n_late = (double)n_step;
        if (n_late > 0) pace->n_missed += (int64_t)n_late;
        double late = (double)end_ns - time_of(pace, pace->n_done + 1);
        if (n_late > 0 && late > pace->worst_late_ns) pace->worst_late_ns = late;
    }
    pace->n_done += n_step;
}

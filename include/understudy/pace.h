// Pace: a loop that steps a world in real time, or at any multiple of it, and the truth about steps that came
// late.
//
//     us_pace pace = us_pace_start(1, us_model_get_step(model));
//     while (is_running) {
//         us_pace_wait(&pace, us_sim_get_time(sim));
//         us_sim_step(sim, NULL);
//     }
#ifndef UNDERSTUDY_PACE_H
#define UNDERSTUDY_PACE_H

#include "understudy/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// A plain value in the caller's memory: nothing to destroy.
typedef struct us_pace {
    double rate;        // simulated seconds per second; 0: as fast as possible
    int64_t n_done;     // steps
    int64_t n_missed;   // of them those that ended more than two steps (at least 2 ms) after their time
    double worst_late;  // s, of those
    double slipped;     // s: a lag of more than a second is not caught up, the schedule moves by it
    int64_t batch;      // steps that us_pace_due gives at most, so that they last about 5 ms
    double start_ns;    // of the schedule
    double step_ns;     // of real time; 0: no rate
    double time;        // s, simulated, of step 0; NaN before the first us_pace_wait
    double step;        // s, simulated
    int64_t wake_ns;    // when us_pace_wait last returned
} us_pace;

// Begins now. `step` is the world's, s; a rate of 0, or one that is not a positive number: no waiting.
US_API us_pace us_pace_start(double rate, double step);
// Begins now with another rate or step; the counts go on.
US_API void us_pace_restart(us_pace *pace, double rate, double step);

// To be called before each step with the world's time: sleeps until the step is due, and counts the steps
// since the last call. Steps of less than a millisecond are let through several at a time. A time that goes
// back (reset, restore) begins a new schedule. US_ERR_ARG: no pace; US_ERR_VALUE: a time that is not finite.
US_API us_status us_pace_wait(us_pace *pace, double time);

// For a loop that does several steps at a time and looks after other things in between. How many steps to do
// now: sleeps for at most 16 ms until one is due, and may return 0.
US_API int64_t us_pace_due(us_pace *pace);
// Counts steps that were done from begin to end, by us_clock_ns.
US_API void us_pace_done(us_pace *pace, int64_t n_step, int64_t begin_ns, int64_t end_ns);
// s by which the next step is behind its time; 0 when it is not, or there is no rate.
US_API double us_pace_lag(const us_pace *pace);
// Sleeps as long as us_pace_due does at most: for a world that is paused.
US_API void us_pace_rest(void);

// ns of a clock that nobody sets.
US_API int64_t us_clock_ns(void);

#ifdef __cplusplus
}
#endif
#endif

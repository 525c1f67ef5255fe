// What a source said lately, by its own clock; how that clock goes beside ours; and how much later one of two
// does the same as the other.
#ifndef USI_RECORD_TRACK_H
#define USI_RECORD_TRACK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    USI_TRACK_SIZE = 256,
    USI_TRACK_WIDTH = 256,
    USI_CLOCK_SIZE = 101,
    USI_LAG_SIZE = 256,
    USI_LAG_REACH = 28
};

// The last samples of some channels. Times (s) only grow.
typedef struct usi_track {
    int32_t width;  // channels, at most USI_TRACK_WIDTH
    int32_t n, first;
    double time[USI_TRACK_SIZE];
    double *value;  // USI_TRACK_SIZE * width
} usi_track;

void usi_track_clear(usi_track *t);
void usi_track_put(usi_track *t, double time, const double *values);
double usi_track_oldest(const usi_track *t);  // NaN when it is empty
double usi_track_newest(const usi_track *t);
// The first sample that is not before `time`, counted from the oldest; n when there is none.
int32_t usi_track_find(const usi_track *t, double time);
double usi_track_time(const usi_track *t, int32_t i);
const double *usi_track_view(const usi_track *t, int32_t i);
// Between two samples, on the straight line. False where there are not two, or where they are further apart
// than `gap`.
bool usi_track_at(const usi_track *t, double time, double gap, double *out);
// The longest time between two samples that are still interpolated: three mean periods, at least `min`.
double usi_track_gap(const usi_track *t, double min);

// The distance from one sample to the band that a track's samples of an interval span, channel by channel:
// that nearest to 0, and 0 inside. A difference that a shift in time within the interval explains is none.
//
//     track      ____________
//               /:   :        the track's values from `from` to `to` span a band
//     ________/  :   :
//     sample       x          inside the band: 0; outside: the distance to it
//
// `subtract` writes the differences of a sample to one of the track, at most USI_TRACK_WIDTH, and returns how
// many. False where the track has a gap.
typedef int32_t usi_subtract(const void *context, const double *sample, const double *other, double *out);
bool usi_track_band(const usi_track *t, const double *sample, double from, double to, double gap,
                    usi_subtract *subtract, const void *context, double *out, int32_t *out_n);

// The offset from a source's clock to ours: the median, over some seconds, of when its samples came less when
// they were stamped. A few that were late do not move it, and it follows a clock that drifts.
typedef struct usi_clock {
    int32_t n, next;
    double last;                    // when a sample was taken last, our clock
    double offset[USI_CLOCK_SIZE];  // s
    double median;
} usi_clock;

void usi_clock_clear(usi_clock *c);
void usi_clock_put(usi_clock *c, double stamp, double heard);
void usi_clock_settle(usi_clock *c);  // computes the median

// How much later (s) the first of two does the same as the second: a command reaches one of them later, and
// what it says takes longer. Two signals of each, on a grid of our time.
typedef struct usi_lag {
    int64_t last[2];                    // the newest point of the grid that each has
    double signal[2][USI_LAG_SIZE][2];  // by the grid's number modulo the size; NaN: not known
    double lag;                         // s
    double candidate;                   // one that differs much, and how often in a row it was found
    int32_t n_candidate;
    bool is_known;
} usi_lag;

extern const double usi_lag_step;  // s between points of the grid
void usi_lag_clear(usi_lag *l);
void usi_lag_put(usi_lag *l, int side, int64_t at, double a, double b);
void usi_lag_estimate(usi_lag *l);

#endif

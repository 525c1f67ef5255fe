// Histories and times of two sources that have no clock in common.
//
//     stamp of the source --(+ median of arrival - stamp)--> our time --(- lag)--> when the other one did the
//     same
//
// The offset of a clock contains what the samples need to come, and the lag what the commands need to go:
// neither can be measured alone, and neither has to be.
#include "record/track.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- tracks ----

void usi_track_clear(usi_track *t) { t->n = t->first = 0; }

static int32_t place(const usi_track *t, int32_t i) { return (t->first + i) % USI_TRACK_SIZE; }

void usi_track_put(usi_track *t, double time, const double *values) {
    if (t->n == USI_TRACK_SIZE) {
        t->first = place(t, 1);
        t->n--;
    }
    int32_t at = place(t, t->n++);
    t->time[at] = time;
    memcpy(t->value + (size_t)at * (size_t)t->width, values, (size_t)t->width * sizeof *values);
}

double usi_track_time(const usi_track *t, int32_t i) { return t->time[place(t, i)]; }

const double *usi_track_view(const usi_track *t, int32_t i) {
    return t->value + (size_t)place(t, i) * (size_t)t->width;
}

double usi_track_oldest(const usi_track *t) { return t->n > 0 ? usi_track_time(t, 0) : NAN; }

double usi_track_newest(const usi_track *t) { return t->n > 0 ? usi_track_time(t, t->n - 1) : NAN; }

int32_t usi_track_find(const usi_track *t, double time) {
    int32_t low = 0, high = t->n;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (usi_track_time(t, middle) < time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool usi_track_at(const usi_track *t, double time, double gap, double *out) {
    int32_t i = usi_track_find(t, time);
    if (i == t->n) return false;
    double after = usi_track_time(t, i);
    const double *b = usi_track_view(t, i);
    if (after == time) {
        memcpy(out, b, (size_t)t->width * sizeof *out);
        return true;
    }
    if (i == 0) return false;
    double before = usi_track_time(t, i - 1), share = (time - before) / (after - before);
    if (after - before > gap) return false;
    const double *a = usi_track_view(t, i - 1);
    for (int32_t k = 0; k < t->width; k++)
        out[k] = a[k] + share * (b[k] - a[k]);
    return true;
}

double usi_track_gap(const usi_track *t, double min) {
    return t->n > 1 ? fmax(min, 3 * (usi_track_newest(t) - usi_track_oldest(t)) / (t->n - 1)) : min;
}

bool usi_track_band(const usi_track *t, const double *sample, double from, double to, double gap,
                    usi_subtract *subtract, const void *context, double *out, int32_t *out_n) {
    double other[USI_TRACK_WIDTH], d[USI_TRACK_WIDTH], low[USI_TRACK_WIDTH], high[USI_TRACK_WIDTH];
    if (!usi_track_at(t, from, gap, other)) return false;
    int32_t n = subtract(context, sample, other, low);
    memcpy(high, low, (size_t)n * sizeof *high);
    int32_t first = usi_track_find(t, from), last = usi_track_find(t, to);
    for (int32_t i = first; i <= last; i++) {
        const double *at = other;
        if (i < last) {
            at = usi_track_view(t, i);
        } else if (!usi_track_at(t, to, gap, other)) {
            return false;
        }
        subtract(context, sample, at, d);
        for (int32_t k = 0; k < n; k++) {
            low[k] = fmin(low[k], d[k]);
            high[k] = fmax(high[k], d[k]);
        }
    }
    for (int32_t k = 0; k < n; k++)
        out[k] = low[k] > 0 ? low[k] : high[k] < 0 ? high[k] : isnan(low[k]) ? NAN : 0;
    *out_n = n;
    return true;
}

// ---- clocks ----

static const double clock_every = 0.05;  // s between samples that are looked at: some 5 s in all

void usi_clock_clear(usi_clock *c) { *c = (usi_clock){0}; }

void usi_clock_put(usi_clock *c, double stamp, double heard) {
    if (c->n > 0 && heard - c->last < clock_every) return;
    c->last = heard;
    c->offset[c->next] = heard - stamp;
    c->next = (c->next + 1) % USI_CLOCK_SIZE;
    if (c->n < USI_CLOCK_SIZE) c->n++;
    if (c->n == 1) c->median = heard - stamp;
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void usi_clock_settle(usi_clock *c) {
    double sorted[USI_CLOCK_SIZE];
    if (c->n == 0) return;
    memcpy(sorted, c->offset, (size_t)c->n * sizeof *sorted);
    qsort(sorted, (size_t)c->n, sizeof *sorted, compare_numbers);
    c->median = 0.5 * (sorted[c->n / 2] + sorted[(c->n - 1) / 2]);
}

// ---- lag ----
//
// For each lag k of the grid: the mean distance J(k) of the one's signals to the other's, k points earlier,
// over the last seconds. Where the signals move, J has one deep minimum; where they stand or are constant it
// is flat, and says nothing: then the last lag stays.
//
//     J |\            /
//       | \    __    /
//       |  \__/  \  /        contrast: how much J rises within four points to either side of the least
//       |         \/
//       +----------+-------- k

const double usi_lag_step = 0.05;

enum { WINDOW = 160, NEAR = 4 };  // points: 8 s; four points are 0.2 s
static const double contrast =
    0.4;  // summed over the window: a step of 0.1 m/s makes as much over four points
static const double far_off = 0.1;  // s: a lag that differs by more must be found again
enum { N_AGAIN = 3 };               // and so often in a row

void usi_lag_clear(usi_lag *l) {
    *l = (usi_lag){0};
    for (int side = 0; side < 2; side++) {
        l->last[side] = INT64_MIN;
        for (int i = 0; i < USI_LAG_SIZE; i++)
            l->signal[side][i][0] = l->signal[side][i][1] = NAN;
    }
}

static int32_t slot(int64_t at) { return (int32_t)(((at % USI_LAG_SIZE) + USI_LAG_SIZE) % USI_LAG_SIZE); }

void usi_lag_put(usi_lag *l, int side, int64_t at, double a, double b) {
    if (at <= l->last[side]) return;
    // What lies between was not heard.
    int64_t from = l->last[side] < at - USI_LAG_SIZE ? at - USI_LAG_SIZE : l->last[side];
    for (int64_t i = from + 1; i < at; i++)
        l->signal[side][slot(i)][0] = l->signal[side][slot(i)][1] = NAN;
    l->signal[side][slot(at)][0] = a;
    l->signal[side][slot(at)][1] = b;
    l->last[side] = at;
}

// The sum of distances at a lag of k points, as if all points of the window had counted. NaN when few do. A
// point counts where the other one is known at every lag: those at the edge of what was heard would speak for
// one side.
static double distance_at(const usi_lag *l, int64_t end, int32_t k) {
    double sum = 0;
    int32_t n = 0;
    for (int64_t i = end - WINDOW + 1; i <= end; i++) {
        const double *a = l->signal[0][slot(i)], *b = l->signal[1][slot(i - k)];
        double edges = l->signal[1][slot(i - USI_LAG_REACH)][0] + l->signal[1][slot(i + USI_LAG_REACH)][0];
        double d = fabs(a[0] - b[0]) + fabs(a[1] - b[1]);
        if (isnan(d) || isnan(edges)) continue;
        sum += d;
        n++;
    }
    return n > 40 ? sum * (double)WINDOW / n : NAN;
}

// Near what is known: followed. Otherwise it must be found again and again: while one of them has hardly
// begun to move, much is possible.
static void adopt(usi_lag *l, double found) {
    if (l->is_known && fabs(found - l->lag) <= far_off) {
        l->lag += 0.3 * (found - l->lag);
        l->n_candidate = 0;
        return;
    }
    l->n_candidate = l->n_candidate > 0 && fabs(found - l->candidate) <= far_off ? l->n_candidate + 1 : 1;
    l->candidate = found;
    if (l->n_candidate < N_AGAIN) return;
    l->lag = found;
    l->is_known = true;
    l->n_candidate = 0;
}

void usi_lag_estimate(usi_lag *l) {
    if (l->last[0] == INT64_MIN || l->last[1] == INT64_MIN) return;
    // One that is silent is not compared: its points would be those of another time.
    if (llabs(l->last[0] - l->last[1]) > USI_LAG_REACH) return;
    // Up to here the second has points at every lag.
    int64_t end = l->last[0] < l->last[1] - USI_LAG_REACH ? l->last[0] : l->last[1] - USI_LAG_REACH;
    double distance[2 * USI_LAG_REACH + 1];
    int32_t nearest = -1;
    for (int32_t i = 0; i <= 2 * USI_LAG_REACH; i++) {
        distance[i] = distance_at(l, end, i - USI_LAG_REACH);
        if (isnan(distance[i])) return;
        if (nearest < 0 || distance[i] < distance[nearest]) nearest = i;
    }
    if (nearest < NEAR || nearest > 2 * USI_LAG_REACH - NEAR) return;
    double depth = fmin(distance[nearest - NEAR], distance[nearest + NEAR]) - distance[nearest];
    if (depth < contrast) return;
    // The valley's sides are straight: with equal slopes its bottom lies where they meet.
    double left = distance[nearest - 1] - distance[nearest],
           right = distance[nearest + 1] - distance[nearest];
    double slope = fmax(left, right), shift = slope > 0 ? 0.5 * (left - right) / slope : 0;
    adopt(l, usi_lag_step * (nearest - USI_LAG_REACH + shift));
}

// When a message of a recording is due, as a function of a clock value: no waiting and no clock in here.
//
//     recorded time                 rate 2
//          |                       /
//          |            pause     /
//     anchor_time ......._______./          the anchor is the last bend: where the rate changed, or the start
//          |          / rate 1
//          +---------/------------------ clock
//                          anchor_clock
#include <math.h>
#include <string.h>

#include "understudy/record.h"

static int64_t subtract(int64_t a, int64_t b) {
    int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference)) return difference;
    return a > b ? INT64_MAX : INT64_MIN;
}

static int64_t add(int64_t a, int64_t b) {
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return a > 0 ? INT64_MAX : INT64_MIN;
}

// Rounded up, so that a message is never early; what does not fit is the max number.
static int64_t to_ns(double x) { return x < 9.2e18 ? (int64_t)ceil(x) : INT64_MAX; }

static bool is_rate(double rate) { return rate >= 0; }

us_status us_timeline_init(us_timeline *t, us_recording *recording, double rate, int64_t from) {
    if (!t || !recording || !is_rate(rate)) return US_ERR_ARG;
    memset(t, 0, sizeof *t);
    t->recording = recording;
    t->rate = rate;
    t->anchor_time = from >= 0 ? from : us_recording_get_info(recording).first_time;
    return us_recording_seek(recording, from);
}

int64_t us_timeline_get_time(const us_timeline *t, int64_t clock) {
    if (!t) return 0;
    if (!t->is_anchored || isinf(t->rate) || t->rate == 0) return t->anchor_time;
    int64_t passed = subtract(clock, t->anchor_clock);
    if (passed <= 0) return t->anchor_time;
    double recorded = floor((double)passed * t->rate);
    return add(t->anchor_time, recorded < 9.2e18 ? (int64_t)recorded : INT64_MAX);
}

us_status us_timeline_set_rate(us_timeline *t, int64_t clock, double rate) {
    if (!t || !is_rate(rate)) return US_ERR_ARG;
    t->anchor_time = us_timeline_get_time(t, clock);
    t->anchor_clock = clock;
    t->rate = rate;
    return US_OK;
}

// Clock time from `clock` until the recording's time is `time`; 0 when that has passed.
static int64_t wait_for(const us_timeline *t, int64_t clock, int64_t time) {
    int64_t ahead = subtract(time, t->anchor_time);
    if (ahead <= 0 || isinf(t->rate)) return 0;
    if (t->rate == 0) return INT64_MAX;
    int64_t due = add(t->anchor_clock, to_ns((double)ahead / t->rate));
    return due <= clock ? 0 : subtract(due, clock);
}

us_status us_timeline_next(us_timeline *t, int64_t clock, us_timeline_step *out, us_error *err) {
    if (!t || !t->recording || !out)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "us_timeline_next: timeline or result is NULL");
    memset(out, 0, sizeof *out);
    if (!t->is_anchored) {
        t->anchor_clock = clock;
        t->is_anchored = true;
    }
    // A paused player gives nothing, not even what is late: INT64_MAX is how it says so.
    if (t->rate == 0) {
        out->what = US_TIMELINE_WAIT;
        out->wait = INT64_MAX;
        return US_OK;
    }
    if (!t->has_message) {
        us_status status = us_recording_next(t->recording, &t->message, &t->has_message, err);
        if (status) return status;
    }
    if (!t->has_message) {
        out->what = US_TIMELINE_END;
        return US_OK;
    }
    out->wait = wait_for(t, clock, t->message.log_time);
    if (out->wait > 0) {
        out->what = US_TIMELINE_WAIT;
        return US_OK;
    }
    out->what = US_TIMELINE_DUE;
    out->message = t->message;
    t->has_message = false;
    if (isinf(t->rate) && t->message.log_time > t->anchor_time) t->anchor_time = t->message.log_time;
    return US_OK;
}

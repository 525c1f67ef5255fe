// Two recordings side by side.
//
// Both are read once, the one whose time is behind first. A topic keeps the last 256 samples of each
// (track.h); a sample of the first is compared as soon as the second has come as far.
//
//     A   x    x    x    x     samples of a topic
//     B     o    o    o        x is compared with the line between the two o around it; the last x waits
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "record/track.h"
#include "understudy/record.h"
#include "wire/numbers.h"

static const double MIN_GAP = 0.3;  // s

typedef struct field {
    char path[USI_NUMBER_PATH];
    double max, sum2, max_time, onset;  // onset: the first
    int64_t n;
} field;

typedef struct topic {
    const char *name;
    const us_message_type *type;
    int32_t channel[2];
    int32_t width;  // numbers of a message; -1: none was read yet
    field *fields;  // USI_TRACK_WIDTH
    usi_track tracks[2];
    double next;  // samples of the first before it were compared
} topic;

typedef struct comparison {
    const us_compare_def *def;
    us_recording *recording[2];
    us_recorded message[2];
    bool has[2];
    int64_t origin;  // ns: time 0
    int32_t n_topic, cap_topic;
    topic *topics;
    us_compare_result *result;
} comparison;

us_compare_def us_compare_def_default(void) { return (us_compare_def){.allocator = us_allocator_default()}; }

// ---------------------------------------------------------------- topics

static const us_message_type *type_of(us_channel_info channel) {
    return channel.encoding && strcmp(channel.encoding, "cdr") == 0 ? us_message_find(channel.type) : NULL;
}

static bool is_wanted(const us_compare_def *def, us_channel_info channel) {
    if (!type_of(channel)) return false;
    return def->is_wanted ? def->is_wanted(def->context, channel.topic)
                          : strncmp(channel.topic, "/understudy/", 12) != 0;
}

static int32_t find_channel(const us_recording *recording, us_channel_info wanted) {
    for (int32_t i = 0; i < us_recording_get_info(recording).n_channel; i++) {
        us_channel_info have = us_recording_get_channel(recording, i);
        if (strcmp(have.topic, wanted.topic) == 0 && type_of(have) == type_of(wanted)) return i;
    }
    return -1;
}

static void add_topic(comparison *c, us_channel_info channel, int32_t in_a, int32_t in_b) {
    topic *t = &c->topics[c->n_topic++];
    *t = (topic){.name = channel.topic, .type = type_of(channel), .channel = {in_a, in_b}};
    t->width = -1;
    t->next = -INFINITY;
}

// Room for the samples of a topic, which is a megabyte: only of those that have samples.
static us_status start_topic(const comparison *c, topic *t) {
    const us_allocator *a = &c->def->allocator;
    t->fields = usi_alloc(a, USI_TRACK_WIDTH * sizeof *t->fields, _Alignof(field));
    if (!t->fields) return US_ERR_MEMORY;
    memset(t->fields, 0, USI_TRACK_WIDTH * sizeof *t->fields);
    for (int i = 0; i < 2; i++) {
        t->tracks[i].value =
            usi_alloc(a, (size_t)USI_TRACK_SIZE * USI_TRACK_WIDTH * sizeof(double), _Alignof(double));
        if (!t->tracks[i].value) return US_ERR_MEMORY;
    }
    return US_OK;
}

static void report_alone(const comparison *c, const char *name, int32_t side) {
    const us_compared_field f = {.topic = name, .side = side, .onset = NAN};
    c->result->n_alone++;
    if (c->def->field) c->def->field(c->def->context, &f);
}

static us_status list_topics(comparison *c) {
    int32_t n = us_recording_get_info(c->recording[0]).n_channel,
            n_other = us_recording_get_info(c->recording[1]).n_channel;
    c->cap_topic = n + 1;
    c->topics = usi_alloc(&c->def->allocator, (size_t)c->cap_topic * sizeof *c->topics, _Alignof(topic));
    if (!c->topics) return US_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        us_channel_info channel = us_recording_get_channel(c->recording[0], i);
        if (!is_wanted(c->def, channel)) continue;
        int32_t other = find_channel(c->recording[1], channel);
        if (other < 0) {
            report_alone(c, channel.topic, 0);
        } else {
            add_topic(c, channel, i, other);
        }
    }
    for (int32_t i = 0; i < n_other; i++) {
        us_channel_info channel = us_recording_get_channel(c->recording[1], i);
        if (is_wanted(c->def, channel) && find_channel(c->recording[0], channel) < 0)
            report_alone(c, channel.topic, 1);
    }
    return US_OK;
}

static void release(comparison *c) {
    const us_allocator *a = &c->def->allocator;
    for (int32_t i = 0; i < c->n_topic; i++) {
        usi_release(a, c->topics[i].fields, USI_TRACK_WIDTH * sizeof(field), _Alignof(field));
        for (int k = 0; k < 2; k++)
            usi_release(a, c->topics[i].tracks[k].value,
                        (size_t)USI_TRACK_SIZE * USI_TRACK_WIDTH * sizeof(double), _Alignof(double));
    }
    usi_release(a, c->topics, (size_t)c->cap_topic * sizeof *c->topics, _Alignof(topic));
}

// ---------------------------------------------------------------- samples

typedef struct number_sample {
    topic *t;
    int32_t n;
    bool is_first;  // it names the fields
    double value[USI_TRACK_WIDTH];
} number_sample;

static bool is_stamp(const char *path) {
    const char *end = strrchr(path, '.');
    size_t n = end ? (size_t)(end - path) : 0;
    return n >= 5 && memcmp(end - 5, "stamp", 5) == 0 && (n == 5 || path[n - 6] == '.');
}

static bool take_number(void *context, const char *path, double value) {
    number_sample *s = context;
    if (is_stamp(path)) return true;
    if (s->n == USI_TRACK_WIDTH) return false;
    if (s->is_first) {
        field *f = &s->t->fields[s->n];
        snprintf(f->path, sizeof f->path, "%s", path);
        f->onset = NAN;
    }
    s->value[s->n++] = value;
    return true;
}

// One less the other. What is no number in both is the same.
static int32_t subtract(const void *context, const double *a, const double *b, double *out) {
    const topic *t = context;
    for (int32_t k = 0; k < t->width; k++) {
        bool is_same = a[k] == b[k] || (isnan(a[k]) && isnan(b[k]));
        out[k] = is_same ? 0 : isfinite(a[k] - b[k]) ? a[k] - b[k] : INFINITY;
    }
    return t->width;
}

static void note(comparison *c, topic *t, double time, const double *difference) {
    c->result->n_sample++;
    for (int32_t k = 0; k < t->width; k++) {
        field *f = &t->fields[k];
        double size = fabs(difference[k]);
        f->n++;
        f->sum2 += size * size;
        if (size > f->max) {
            f->max = size;
            f->max_time = time;
        }
        if (isnan(f->onset) && size > c->def->tolerance) f->onset = time;
    }
}

// Compares the samples that the second has come as far as; with `is_end` it comes no further.
static void compare_waiting(comparison *c, topic *t, bool is_end) {
    const usi_track *a = &t->tracks[0], *b = &t->tracks[1];
    double difference[USI_TRACK_WIDTH], slack = c->def->slack;
    int32_t n = 0;
    for (int32_t i = usi_track_find(a, t->next); i < a->n; i++) {
        double time = usi_track_time(a, i);
        if (!is_end && !(b->n > 0 && time + slack <= usi_track_newest(b))) return;
        bool is_matched = b->n > 0 && usi_track_band(b, usi_track_view(a, i), time - slack, time + slack,
                                                     usi_track_gap(b, MIN_GAP), subtract, t, difference, &n);
        if (is_matched) {
            note(c, t, time, difference);
        } else {
            c->result->n_unmatched++;
        }
        t->next = nextafter(time, INFINITY);
    }
}

static us_status take(comparison *c, int side, topic *t, const us_recorded *m) {
    us_status status = t->fields ? US_OK : start_topic(c, t);
    if (status) return status;
    number_sample s = {.t = t, .is_first = t->width < 0};
    usi_message_each_number(t->type, m->bytes, m->length, take_number, &s);
    if (t->width < 0) t->width = t->tracks[0].width = t->tracks[1].width = s.n;
    if (t->width == 0) return US_OK;
    usi_track *track = &t->tracks[side];
    double time = 1e-9 * (double)(m->publish_time - c->origin);
    // A list of another length, or a time that does not grow, has no counterpart.
    bool is_good = s.n == t->width && !(track->n > 0 && time <= usi_track_newest(track));
    // Neither has one that waited for the second until there was no room.
    bool is_full = track->n == USI_TRACK_SIZE && usi_track_oldest(track) >= t->next;
    if (side == 0) c->result->n_unmatched += !is_good + (is_good && is_full);
    if (is_good) usi_track_put(track, time, s.value);
    compare_waiting(c, t, false);
    return US_OK;
}

// ---------------------------------------------------------------- all

static us_status advance(comparison *c, int side, us_error *err) {
    return us_recording_next(c->recording[side], &c->message[side], &c->has[side], err);
}

static us_status read_both(comparison *c, us_error *err) {
    us_status status = advance(c, 0, err);
    if (!status) status = advance(c, 1, err);
    while (!status && (c->has[0] || c->has[1])) {
        int side = !c->has[0] || (c->has[1] && c->message[1].log_time < c->message[0].log_time);
        for (int32_t i = 0; i < c->n_topic && !status; i++) {
            if (c->topics[i].channel[side] == c->message[side].channel)
                status = take(c, side, &c->topics[i], &c->message[side]);
        }
        if (status)
            return us_error_set(err, status, NULL, "compare fewer topics (--topics)",
                                "no memory left to compare the recordings");
        status = advance(c, side, err);
    }
    for (int32_t i = 0; i < c->n_topic; i++)
        compare_waiting(c, &c->topics[i], true);
    return status;
}

static void report(const comparison *c) {
    for (int32_t i = 0; i < c->n_topic; i++) {
        const topic *t = &c->topics[i];
        for (int32_t k = 0; k < t->width; k++) {
            const field *f = &t->fields[k];
            c->result->n_field++;
            if (!(f->max > 0)) continue;
            c->result->n_different++;
            c->result->n_beyond += f->max > c->def->tolerance;
            const us_compared_field out = {.topic = t->name,
                                           .path = f->path,
                                           .n = f->n,
                                           .max = f->max,
                                           .rms = sqrt(f->sum2 / (double)f->n),
                                           .max_time = f->max_time + 1e-9 * (double)c->origin,
                                           .onset = f->onset + 1e-9 * (double)c->origin};
            if (c->def->field) c->def->field(c->def->context, &out);
        }
    }
}

us_status us_recording_compare(us_recording *a, us_recording *b, const us_compare_def *def,
                               us_compare_result *out_result, us_error *err) {
    if (!a || !b || a == b || !out_result)
        return us_error_set(err, US_ERR_ARG, NULL, "pass two recordings and a place for the result",
                            "us_recording_compare: wrong argument");
    us_compare_def d = def ? *def : us_compare_def_default();
    if (!(d.tolerance >= 0 && d.slack >= 0 && isfinite(d.slack)))
        return us_error_set(err, US_ERR_VALUE, NULL, "give 0 or more", "invalid tolerance %g or slack %g s",
                            d.tolerance, d.slack);
    *out_result = (us_compare_result){0};
    int64_t first[2] = {us_recording_get_info(a).first_time, us_recording_get_info(b).first_time};
    comparison c = {.def = &d, .recording = {a, b}, .result = out_result};
    c.origin = first[0] < first[1] ? first[0] : first[1];
    us_status status = us_recording_rewind(a);
    if (!status) status = us_recording_rewind(b);
    if (!status) status = list_topics(&c);
    if (status) {
        us_error_set(err, status, NULL, NULL, "the recordings cannot be compared: %s",
                     us_status_text(status));
    } else {
        status = read_both(&c, err);
    }
    out_result->n_topic = c.n_topic;
    if (!status) report(&c);
    release(&c);
    return status;
}

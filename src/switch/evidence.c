// The evidence of a hand-over: one line of JSON with what was known before and after, on both sides.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "switch/handover.h"

typedef struct line {
    char *text;
    size_t n, cap;
} line;

US_PRINTF(2, 3) static void put(line *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out->text + out->n, out->cap - out->n, format, args);
    va_end(args);
    if (n > 0) out->n += (size_t)n;
    if (out->n >= out->cap) out->n = out->cap - 1;
}

// Names and reasons may hold texts of others: what would break the line becomes a quote.
static void put_text(line *out, const char *key, const char *text) {
    put(out, "\"%s\":\"", key);
    for (const char *s = text; *s; s++) put(out, "%c", (unsigned char)*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7f ? '\'' : *s);
    put(out, "\"");
}

static void put_number(line *out, const char *key, double value) {
    if (isfinite(value)) {
        put(out, "\"%s\":%.9g", key, value);
    } else {
        put(out, "\"%s\":null", key);
    }
}

static void put_state(line *out, const char *key, const usi_estimate *e, int64_t now) {
    put(out, "\"%s\":{", key);
    put_number(out, "age", e->odom_heard ? 1e-9 * (double)(now - e->odom_heard) : NAN);
    if (e->odom_heard) {
        double pose[3], v[3];
        usi_estimate_planar(e, e->odom_heard, pose, v);
        put(out, ",\"stamp\":%lld.%09lld,\"pose\":[%.9g,%.9g,%.9g],\"velocity\":[%.9g,%.9g,%.9g]", (long long)(e->odom_time / 1000000000),
            (long long)(e->odom_time % 1000000000), pose[0], pose[1], pose[2], v[0], v[1], v[2]);
    }
    put(out, ",");
    put_number(out, "charge", e->battery_heard ? e->charge : NAN);
    put(out, ",\"joints\":{");
    for (int32_t i = 0, n = 0; i < e->n_joint; i++) {
        if (isnan(e->joint[i].position)) continue;
        if (n++) put(out, ",");
        put(out, "\"");
        for (const char *s = e->joint[i].name; *s; s++) put(out, "%c", (unsigned char)*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7f ? '\'' : *s);
        put(out, "\":[%.9g", e->joint[i].position);
        if (!isnan(e->joint[i].velocity)) put(out, ",%.9g", e->joint[i].velocity);
        put(out, "]");
    }
    put(out, "}}");
}

static void put_difference(line *out, const char *key, const usi_difference *d) {
    put(out, "\"%s\":{", key);
    put_number(out, "position", d->position);
    put(out, ",");
    put_number(out, "yaw", d->yaw);
    put(out, ",");
    put_number(out, "speed", d->speed);
    put(out, ",");
    put_number(out, "turn", d->turn);
    put(out, ",");
    put_number(out, "joint", d->joint);
    put(out, ",");
    put_text(out, "joint_name", d->name);
    put(out, "}");
}

size_t usi_evidence_write(const usi_handover_record *r, const us_handover_def *def, const char *robot, char *text, size_t cap) {
    line out = {.cap = cap};
    out.text = text;
    put(&out, "{\"time\":%.6f,", 1e-9 * (double)r->time);
    put_text(&out, "robot", robot);
    put(&out, ",\"epoch\":%llu,\"from\":\"%s\",\"to\":\"%s\",\"mode\":\"%s\",\"forced\":%s,", (unsigned long long)r->epoch,
        us_switch_source_name(r->from), us_switch_source_name(r->to), us_switch_mode_name(r->mode), r->is_forced ? "true" : "false");
    put_text(&out, "reason", r->reason);
    put(&out, ",\"verdict\":\"%s\",", r->is_refused ? "refused" : "done");
    put_text(&out, "why", r->why);
    put(&out, ",\"limits\":{\"position\":%.9g,\"yaw\":%.9g,\"speed\":%.9g,\"turn\":%.9g,\"joint\":%.9g},\"before\":{", def->position, def->yaw,
        def->speed, def->turn, def->joint);
    put_state(&out, "hardware", &r->before[US_SWITCH_HARDWARE], r->before_now);
    put(&out, ",");
    put_state(&out, "proxy", &r->before[US_SWITCH_PROXY], r->before_now);
    put(&out, ",");
    put_difference(&out, "difference", &r->before_difference);
    put(&out, "},\"after\":{");
    put_state(&out, "hardware", &r->after[US_SWITCH_HARDWARE], r->after_now);
    put(&out, ",");
    put_state(&out, "proxy", &r->after[US_SWITCH_PROXY], r->after_now);
    put(&out, ",");
    put_difference(&out, "difference", &r->after_difference);
    put(&out, "},\"durations\":{\"adopt\":%.6f,\"look\":%.6f,\"align\":%.6f,\"total\":%.6f},", r->adopt, r->look, r->align, r->total);
    put_number(&out, "lag", r->lag);
    put(&out, "}");
    return out.n;
}

// The evidence of a hand-over: one line of JSON with what was known before and after, on both sides.
#include <math.h>

#include "base/line.h"
#include "switch/handover.h"

static void put_number(usi_line *out, const char *key, double value) {
    if (isfinite(value)) {
        usi_line_put(out, "\"%s\":%.9g", key, value);
    } else {
        usi_line_put(out, "\"%s\":null", key);
    }
}

static void put_state(usi_line *out, const char *key, const usi_estimate *e, int64_t now) {
    usi_line_put(out, "\"%s\":{", key);
    put_number(out, "age", e->odom_heard ? 1e-9 * (double)(now - e->odom_heard) : NAN);
    if (e->odom_heard) {
        double pose[3], v[3];
        usi_estimate_planar(e, e->odom_heard, pose, v);
        usi_line_put(out, ",\"stamp\":%lld.%09lld,\"pose\":[%.9g,%.9g,%.9g],\"velocity\":[%.9g,%.9g,%.9g]",
                     (long long)(e->odom_time / 1000000000), (long long)(e->odom_time % 1000000000), pose[0],
                     pose[1], pose[2], v[0], v[1], v[2]);
    }
    usi_line_put(out, ",");
    put_number(out, "charge", e->battery_heard ? e->charge : NAN);
    usi_line_put(out, ",\"joints\":{");
    for (int32_t i = 0, n = 0; i < e->n_joint; i++) {
        if (isnan(e->joint[i].position)) continue;
        if (n++) usi_line_put(out, ",");
        usi_line_put_quoted(out, e->joint[i].name);
        usi_line_put(out, ":[%.9g", e->joint[i].position);
        if (!isnan(e->joint[i].velocity)) usi_line_put(out, ",%.9g", e->joint[i].velocity);
        usi_line_put(out, "]");
    }
    usi_line_put(out, "}}");
}

static void put_difference(usi_line *out, const char *key, const usi_handover_difference *d) {
    usi_line_put(out, "\"%s\":{", key);
    put_number(out, "position", d->position);
    usi_line_put(out, ",");
    put_number(out, "yaw", d->yaw);
    usi_line_put(out, ",");
    put_number(out, "speed", d->speed);
    usi_line_put(out, ",");
    put_number(out, "turn", d->yaw_rate);
    usi_line_put(out, ",");
    put_number(out, "joint", d->joint);
    usi_line_put(out, ",");
    usi_line_put_text(out, "joint_name", d->name);
    usi_line_put(out, "}");
}

size_t usi_evidence_write(const usi_handover_record *r, const us_handover_def *def, const char *robot,
                          char *text, size_t cap) {
    usi_line out = {.cap = cap};
    out.text = text;
    usi_line_put(&out, "{\"time\":%.6f,", 1e-9 * (double)r->time);
    usi_line_put_text(&out, "robot", robot);
    usi_line_put(&out, ",\"epoch\":%llu,\"from\":\"%s\",\"to\":\"%s\",\"mode\":\"%s\",\"forced\":%s,",
                 (unsigned long long)r->epoch, us_switch_source_name(r->from), us_switch_source_name(r->to),
                 us_switch_mode_name(r->mode), r->is_forced ? "true" : "false");
    usi_line_put_text(&out, "reason", r->reason);
    usi_line_put(&out, ",\"verdict\":\"%s\",", r->is_refused ? "refused" : "done");
    usi_line_put_text(&out, "why", r->why);
    usi_line_put(&out,
                 ",\"limits\":{\"position\":%.9g,\"yaw\":%.9g,\"speed\":%.9g,\"turn\":%.9g,\"joint\":%.9g},"
                 "\"before\":{",
                 def->position, def->yaw, def->speed, def->yaw_rate, def->joint);
    put_state(&out, "hardware", &r->before[US_SWITCH_HARDWARE], r->before_now);
    usi_line_put(&out, ",");
    put_state(&out, "proxy", &r->before[US_SWITCH_PROXY], r->before_now);
    usi_line_put(&out, ",");
    put_difference(&out, "difference", &r->before_difference);
    usi_line_put(&out, "},\"after\":{");
    put_state(&out, "hardware", &r->after[US_SWITCH_HARDWARE], r->after_now);
    usi_line_put(&out, ",");
    put_state(&out, "proxy", &r->after[US_SWITCH_PROXY], r->after_now);
    usi_line_put(&out, ",");
    put_difference(&out, "difference", &r->after_difference);
    usi_line_put(&out, "},\"durations\":{\"adopt\":%.6f,\"look\":%.6f,\"align\":%.6f,\"total\":%.6f},",
                 r->adopt, r->look, r->align, r->total);
    put_number(&out, "lag", r->lag);
    usi_line_put(&out, "}");
    return out.n;
}

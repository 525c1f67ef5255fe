// Reports of the shadow: a line of JSON five times a second, an event when hardware and proxy diverge, and
// the resynchronisation that ends it.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "switch/shadow.h"
#include "switch/switch.h"
#include "wire/messages.h"

static const int64_t step_every = 50 * INT64_C(1000000);      // ns
static const int64_t publish_every = 200 * INT64_C(1000000);  // ns
// Minimum time between two automatic resynchronisations, ns: long enough to see whether the two diverge
// again.
static const int64_t resync_every = INT64_C(5000000000);
// Time after an event in which further deviations are collected before an automatic resynchronisation, ns.
static const int64_t resync_after = INT64_C(1000000000);

// Two halves: a line with all residuals, and the encoded message of it.
enum { LINE_SIZE = 49152 };

// ---- as text ----

static size_t add(char *out, size_t cap, size_t n, const char *format, ...) US_PRINTF(4, 5);
static size_t add(char *out, size_t cap, size_t n, const char *format, ...) {
    if (n >= cap) return n;
    va_list args;
    va_start(args, format);
    int more = vsnprintf(out + n, cap - n, format, args);
    va_end(args);
    return more < 0 ? n : n + (size_t)more;
}

// Joint names come from other programs: characters that would break the line of JSON become a quote.
static void name_of(const usi_shadow *s, int32_t i, char out[USI_RESIDUAL_NAME]) {
    usi_shadow_residual_name(s, i, out);
    for (char *c = out; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == '"' || *c == '\\' || *c == 0x7f) *c = '\'';
    }
}

static double wall_of(const usi_shadow *s, double time, int64_t now, int64_t wall) {
    return 1e-9 * (double)wall + time - 1e-9 * (double)(now - s->origin);
}

size_t usi_shadow_encode(const usi_shadow *s, const char *robot, int64_t now, int64_t wall, char *out,
                         size_t cap) {
    char name[USI_RESIDUAL_NAME] = "";
    const usi_shadow_side *h = &s->sides[0], *p = &s->sides[1];
    bool has_clocks = h->has_origin && p->has_origin;
    // offset from the proxy's stamps to the hardware's
    double clocks =
        has_clocks ? 1e-9 * (double)(h->origin - p->origin) - h->clock.median + p->clock.median : 0;
    name_of(s, s->worst, name);
    size_t n = add(out, cap, 0,
                   "{\"robot\":\"%s\",\"time\":%.3f,\"confidence\":%.4f,\"state\":\"%s\",\"since\":%.3f,"
                   "\"begun\":%.3f,\"worst\":\"%s\",",
                   robot, 1e-9 * (double)wall, s->confidence, us_shadow_state_name(s->state),
                   wall_of(s, s->since, now, wall), wall_of(s, s->begun, now, wall), name);
    n = add(out, cap, n, "\"offset\":{\"lag\":%.3f,\"known\":%s,\"clocks\":%.3f},\"residuals\":[", s->lag.lag,
            s->lag.is_known ? "true" : "false", clocks);
    const char *comma = "";
    for (int32_t i = 0; i < USI_MAX_RESIDUAL; i++) {
        const usi_residual *r = &s->residuals[i];
        if (r->compared < 0) continue;
        name_of(s, i, name);
        n = add(out, cap, n, "%s{\"name\":\"%s\",\"value\":%.5g,\"tolerance\":%.4g,\"ratio\":%.3g}", comma,
                name, r->value, r->tolerance, r->ratio);
        comma = ",";
    }
    return add(out, cap, n, "]}");
}

size_t usi_shadow_encode_event(const usi_shadow *s, const char *robot, int64_t now, int64_t wall, char *out,
                               size_t cap) {
    char name[USI_RESIDUAL_NAME];
    double first = s->n_deviation > 0 ? s->deviations[0].time : s->event_time;
    size_t n = add(out, cap, 0, "{\"robot\":\"%s\",\"event\":\"diverged\",\"time\":%.3f,\"told\":%.3f", robot,
                   wall_of(s, first, now, wall), wall_of(s, s->event_time, now, wall));
    for (int32_t i = 0; i < s->n_deviation; i++) {
        const usi_deviation *deviation = &s->deviations[i];
        name_of(s, deviation->residual, name);
        n = add(out, cap, n, "%s{\"name\":\"%s\",\"value\":%.5g,\"tolerance\":%.4g",
                i == 0   ? ",\"first\":"
                : i == 1 ? ",\"then\":["
                         : ",",
                name, deviation->value, deviation->tolerance);
        n = i == 0 ? add(out, cap, n, "}") : add(out, cap, n, ",\"delay\":%.2f}", deviation->time - first);
    }
    return add(out, cap, n, s->n_deviation > 1 ? "]}" : "}");
}

void usi_shadow_format_event(const usi_shadow *s, int32_t from, char *out, size_t cap) {
    char name[USI_RESIDUAL_NAME];
    size_t n = add(out, cap, 0, from == 0 ? "diverged:" : "");
    for (int32_t i = from; i < s->n_deviation; i++) {
        const usi_deviation *deviation = &s->deviations[i];
        name_of(s, deviation->residual, name);
        if (i > 0)
            n = add(out, cap, n, "%s%.2f s later ", i == from ? "" : ", ",
                    deviation->time - s->deviations[0].time);
        n = add(out, cap, n, "%s%s by %.3g (tolerance %.3g)", i == 0 ? " " : "", name, deviation->value,
                deviation->tolerance);
    }
}

// ---- in the switch ----

us_status usi_switch_open_shadow(us_switch *sw, const us_shadow_def *def, us_error *err) {
    sw->shadow = usi_alloc(&sw->allocator, sizeof *sw->shadow, _Alignof(usi_shadow));
    sw->shadow_line = usi_alloc(&sw->allocator, LINE_SIZE, 16);
    if (!sw->shadow || !sw->shadow_line)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL,
                            "no memory for a comparison of hardware and proxy");
    usi_shadow_init(sw->shadow, def, usi_switch_now());
    const us_qos reliable = {.is_reliable = true, .depth = 10},
                 latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    us_status status = usi_switch_add_report(sw, "/understudy/shadow", reliable, sw->shadow_report, err);
    if (!status)
        status = usi_switch_add_report(sw, "/understudy/shadow/event", latched, sw->shadow_event, err);
    return status;
}

void usi_switch_close_shadow(us_switch *sw) {
    usi_release(&sw->allocator, sw->shadow, sizeof *sw->shadow, _Alignof(usi_shadow));
    usi_release(&sw->allocator, sw->shadow_line, LINE_SIZE, 16);
}

static void write_line(us_switch *sw, us_writer *const writers[2], size_t n) {
    if (n == 0 || n >= LINE_SIZE / 2) return;
    us_msg_string message = {.data = sw->shadow_line};
    uint8_t *bytes = (uint8_t *)sw->shadow_line + LINE_SIZE / 2;
    size_t length = 0;
    if (us_message_encode(usi_type_string, &message, bytes, LINE_SIZE / 2, &length)) {
        atomic_fetch_add(&sw->n_unsent, 1);
        return;
    }
    usi_switch_write_report(sw, writers, bytes, length);
}

bool usi_switch_resync_comparison(us_switch *sw, char *why, size_t cap) {
    us_switch_mode mode = sw->authority.mode;
    if (mode != US_MODE_SHADOW && mode != US_MODE_MIRROR) {
        snprintf(why, cap, "no comparison is running: ask for shadow or mirror first");
        return false;
    }
    us_error err = {0};
    // A proxy in control is not moved under its operators: then only the references are reset.
    bool is_set = !sw->handover.def.is_off && sw->authority.control != US_SWITCH_PROXY;
    us_status status = is_set ? usi_switch_resync(sw, &err) : US_OK;
    if (status) {
        snprintf(why, cap, "%.150s", err.message[0] ? err.message : us_status_text(status));
        return false;
    }
    pthread_mutex_lock(&sw->estimate_lock);
    usi_shadow_begin(sw->shadow, usi_switch_now());
    pthread_mutex_unlock(&sw->estimate_lock);
    usi_switch_log(sw, "compared anew from here%s", is_set ? ", the proxy set to the hardware's state" : "");
    return true;
}

void usi_switch_restart_comparison(us_switch *sw) {
    pthread_mutex_lock(&sw->estimate_lock);
    bool is_on = sw->shadow->state != US_SHADOW_OFF;
    if (is_on) usi_shadow_begin(sw->shadow, usi_switch_now());
    pthread_mutex_unlock(&sw->estimate_lock);
    if (is_on) usi_switch_log(sw, "compared anew from here");
}

// The comparison begins and ends with the mode.
static void follow_mode(us_switch *sw, int64_t now) {
    usi_shadow *s = sw->shadow;
    us_switch_mode mode = sw->authority.mode;
    bool is_wanted = (mode == US_MODE_SHADOW || mode == US_MODE_MIRROR) && !sw->is_withdrawn;
    if (is_wanted == (s->state != US_SHADOW_OFF)) return;
    if (is_wanted) {
        usi_shadow_begin(s, now);
    } else {
        usi_shadow_end(s);
    }
}

// One comparison; an event or a change of state is described in `text` and, for the event's topic, in the
// line.
static bool step_shadow(us_switch *sw, int64_t now, int64_t wall, char *text, size_t cap, size_t *out_line) {
    usi_shadow *s = sw->shadow;
    pthread_mutex_lock(&sw->estimate_lock);
    follow_mode(sw, now);
    us_shadow_state before = s->state;
    usi_shadow_step(s, now);
    bool is_event = s->is_event_new, is_change = s->state != before;
    s->is_event_new = false;
    if (is_event) {
        usi_shadow_format_event(s, is_change ? 0 : sw->n_deviation_logged, text, cap);
        sw->n_deviation_logged = s->n_deviation;
        *out_line = usi_shadow_encode_event(s, sw->robot, now, wall, sw->shadow_line, LINE_SIZE / 2);
    } else if (is_change) {
        snprintf(text, cap, "hardware and proxy: %s, confidence %.2f", us_shadow_state_name(s->state),
                 s->confidence);
    }
    pthread_mutex_unlock(&sw->estimate_lock);
    return is_event || is_change;
}

static bool is_resync_due(us_switch *sw, int64_t now) {
    const usi_shadow *s = sw->shadow;  // only this thread changes its state
    if (!s->def.resync_when_diverged || s->state != US_SHADOW_DIVERGED || now - sw->resynced < resync_every)
        return false;
    return 1e-9 * (double)(now - s->origin) - s->event_time > 1e-9 * (double)resync_after;
}

void usi_switch_step_shadow(us_switch *sw) {
    int64_t now = usi_switch_now();
    if (now - sw->shadow_step_time < step_every) return;
    sw->shadow_step_time = now;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t wall = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    char text[480], why[160];
    size_t n = 0;
    if (step_shadow(sw, now, wall, text, sizeof text, &n)) {
        write_line(sw, sw->shadow_event, n);
        usi_switch_log(sw, "%s", text);
    }
    if (sw->shadow->state != US_SHADOW_OFF && now - sw->shadow_published >= publish_every) {
        sw->shadow_published = now;
        pthread_mutex_lock(&sw->estimate_lock);
        n = usi_shadow_encode(sw->shadow, sw->robot, now, wall, sw->shadow_line, LINE_SIZE / 2);
        pthread_mutex_unlock(&sw->estimate_lock);
        write_line(sw, sw->shadow_report, n);
    }
    if (is_resync_due(sw, now)) {
        sw->resynced = now;
        if (!usi_switch_resync_comparison(sw, why, sizeof why))
            usi_switch_log(sw, "not compared anew: %s", why);
    }
}

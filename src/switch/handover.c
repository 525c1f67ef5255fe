// The hand-over: from a request to the change of control.
//
// Time. The hardware stamps with its own clock, the proxy with simulated time. The adopted state carries the
// hardware's stamp, and the proxy's stamps continue from it. A state (pose, stamp) that arrived dt ago is
// extrapolated by dt, pose and stamp alike: whatever the transport delay, the two belong together, and the
// pose as a function of the stamp has no corner. The delay shows as stamps that lag by a millisecond or two.
//
// Phase. Both publish their state at about the same rate, with some phase between them. Closed at a bad
// moment, the gate would pass two samples at nearly one time, or none for two periods. With the last stamps h
// (old source) and p (new source) and the period P, the gap that operators see when it closes now is P + p -
// h; it is nearest to P when |p - h| <= P/2, which comes true once in every period. Where the new source
// still lags, because its machine is busy, the forwarder drops samples that are older than those already
// passed on.
#include "switch/handover.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/monotonic_cond.h"
#include "kincontrol/odometry.h"
#include "switch/switch.h"
#include "wire/cdr.h"
#include "wire/description.h"
#include "wire/messages.h"
#include "wire/world_status.h"

// Transport delay to the proxy, ns: the state is extrapolated by it.
static const int64_t lead = INT64_C(1000000);

// Maximum extrapolation of a sample, s; and maximum age of a command that is handed over, s.
static const double MAX_EXTRAPOLATION = 2, MAX_COMMAND_AGE = 10;

// Velocity error at which a request counts as reached, m/s and rad/s: sensor noise.
static const double REACHED = 0.05;

// Maximum time step of the ramp, s: the first command after a pause is limited like the others.
static const double MAX_PAUSE = 0.1;

// Repetitions of an adopt command.
enum { MAX_ATTEMPT = 2 };

// Joints that fit one adopt command.
enum { MAX_JOINT = 56 };

static double seconds(int64_t ns) { return 1e-9 * (double)ns; }

static void pause_1ms(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

// ---- states ----

void usi_estimate_planar(const usi_estimate *e, int64_t now, double out_pose[3], double out_velocity[3]) {
    us_vec3 ahead = us_quat_rotate(e->X_OB.q, us_vec3_make(1, 0, 0));
    const double pose[3] = {e->X_OB.p.x, e->X_OB.p.y, atan2(ahead.y, ahead.x)},
                 velocity[3] = {e->v_B.x, e->v_B.y, e->w_B.z};
    memcpy(out_pose, pose, sizeof pose);
    memcpy(out_velocity, velocity, sizeof velocity);
    usi_odometry_move(out_pose, velocity, fmin(seconds(now - e->odom_heard), MAX_EXTRAPOLATION));
}

const char *usi_switch_description(us_switch *sw) {
    char topic[USI_NAME];
    snprintf(topic, sizeof topic, "rt/%s/robot_description", sw->robot);
    int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        const usi_route *route = &sw->routes[i];
        if (route->is_command || route->type != usi_type_string || strcmp(route->topic, topic) != 0) continue;
        for (int k = 0; k < 2; k++) {
            const usi_side *side = &route->sides[k];
            if (side->n_latched == 0) continue;
            const usi_latched *last =
                &side->latched[(side->next_latched + route->qos.depth - 1) % route->qos.depth];
            size_t length = 0;
            const char *text = usi_cdr_view_text(last->bytes, last->sample.length, &length);
            if (text) return text;
        }
    }
    return NULL;
}

bool usi_handover_is_steered(const char *description, const char *joint) {
    usi_description_joint j;
    return description && usi_description_find(description, strlen(description), joint, &j) &&
           strcmp(j.type, "continuous") != 0 && j.effort > 0;
}

static const usi_estimate_joint *find_joint(const usi_estimate *e, const char *name) {
    for (int32_t i = 0; i < e->n_joint; i++) {
        if (strcmp(e->joint[i].name, name) == 0) return &e->joint[i];
    }
    return NULL;
}

usi_handover_difference usi_handover_compare(us_switch *sw, const usi_estimate *a, const usi_estimate *b,
                                             int64_t now) {
    usi_handover_difference d = {.position = NAN, .yaw = NAN, .speed = NAN, .yaw_rate = NAN, .joint = NAN};
    if (a->odom_heard && b->odom_heard) {
        double at[3], to[3], va[3], vb[3];
        usi_estimate_planar(a, now, at, va);
        usi_estimate_planar(b, now, to, vb);
        d.position = hypot(at[0] - to[0], at[1] - to[1]);
        d.yaw = fabs(remainder(at[2] - to[2], 2 * M_PI));
        d.speed = hypot(va[0] - vb[0], va[1] - vb[1]);
        d.yaw_rate = fabs(va[2] - vb[2]);
    }
    // joints; the forwarder writes the description, so the gate is closed
    pthread_rwlock_wrlock(&sw->gate);
    const char *description = usi_switch_description(sw);
    for (int32_t i = 0; i < a->n_joint && description; i++) {
        const usi_estimate_joint *j = &a->joint[i], *other = find_joint(b, j->name);
        double apart = other ? fabs(j->position - other->position) : NAN;
        if (isnan(apart) || (apart <= d.joint) || !usi_handover_is_steered(description, j->name)) continue;
        d.joint = apart;
        snprintf(d.name, sizeof d.name, "%s", j->name);
    }
    pthread_rwlock_unlock(&sw->gate);
    return d;
}

bool usi_handover_agree(const us_handover_def *def, const usi_handover_difference *d, char *out, size_t cap) {
    const double degree = M_PI / 180;
    size_t n = 0;
    out[0] = 0;
    const struct {
        const char *what, *unit;
        double value, limit;
    } rows[] = {
        {"position", "m", d->position, def->position},
        {"yaw", "deg", d->yaw / degree, def->yaw / degree},
        {d->name, "deg", d->joint / degree, def->joint / degree},
        {"speed", "m/s", d->speed, def->speed},
        {"turn", "rad/s", d->yaw_rate, def->yaw_rate},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        // NaN, not published, is not compared
        if (!(rows[i].value > rows[i].limit)) continue;
        int k = snprintf(out + n, cap - n,
                         n ? ", %.30s %.3g %s (%.3g)" : "the states differ: %.30s %.3g %s (limit %.3g)",
                         rows[i].what, rows[i].value, rows[i].unit, rows[i].limit);
        n = k > 0 && n + (size_t)k < cap ? n + (size_t)k : cap - 1;
    }
    return n == 0;
}

// ---- adopt ----

static bool is_plain_name(const char *name) {
    return name[0] &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == strlen(name);
}

// The adopt command that sets the proxy to the hardware's state at time `at`. Joints and battery that the
// proxy does not publish are left out: it has none.
static bool write_adopt_command(us_switch *sw, const usi_estimate *hardware, const usi_estimate *proxy,
                                int64_t now, int64_t at, char *out, size_t cap) {
    usi_handover *h = &sw->handover;
    bool has_odom = hardware->odom_heard > 0;
    int64_t stamp = has_odom ? hardware->odom_time + at - hardware->odom_heard
                             : hardware->joints_time + at - hardware->joints_heard;
    int n = snprintf(out, cap, "adopt %s stamp=%lld,%lld", sw->robot, (long long)(stamp / 1000000000),
                     (long long)(stamp % 1000000000));
    if (has_odom) {
        double pose[3], v[3];
        usi_estimate_planar(hardware, at, pose, v);
        n += snprintf(out + n, cap - (size_t)n, " odom=%.9g,%.9g,%.9g velocity=%.9g,%.9g,%.9g", pose[0],
                      pose[1], pose[2], v[0], v[1], v[2]);
        pthread_mutex_lock(&h->lock);
        // A command that arrives meanwhile has age 0.
        double age = h->requested_time ? fmax(seconds(now - h->requested_time), 0) : INFINITY;
        if (age < MAX_COMMAND_AGE)
            n += snprintf(out + n, cap - (size_t)n, " want=%.9g,%.9g,%.9g,%.4f", h->requested[0],
                          h->requested[1], h->requested[2], age);
        pthread_mutex_unlock(&h->lock);
    }
    if (hardware->battery_heard && proxy->battery_heard && !isnan(hardware->charge) && !isnan(proxy->charge))
        n += snprintf(out + n, cap - (size_t)n, " battery=%.6g", hardware->charge);
    double dt = fmin(seconds(at - hardware->joints_heard), MAX_EXTRAPOLATION);
    int32_t n_joint = 0;
    for (int32_t i = 0; i < hardware->n_joint; i++) {
        const usi_estimate_joint *j = &hardware->joint[i];
        if (isnan(j->position) || !is_plain_name(j->name) || !find_joint(proxy, j->name)) continue;
        double v = isnan(j->velocity) ? 0 : j->velocity;
        int k =
            snprintf(out + n, cap - (size_t)n, isnan(j->velocity) ? " joint:%s=%.9g" : " joint:%s=%.9g,%.9g",
                     j->name, j->position + v * dt, v);
        if (k < 0 || (size_t)(n + k) >= cap || ++n_joint > MAX_JOINT) return false;
        n += k;
    }
    return true;
}

// The world's status has the results of the last commands. Ours is found by its stamp, which is unique.
static void on_status(void *context, const us_sample *sample) {
    us_switch *sw = context;
    usi_handover *h = &sw->handover;
    pthread_mutex_lock(&h->lock);
    usi_status_answer answer;
    size_t length = 0;
    const char *line = usi_cdr_view_text(sample->bytes, sample->length, &length);
    if (line && h->awaited[0] && !h->is_answered &&
        usi_status_find_answer(line, length, h->awaited, &answer)) {
        h->is_answered = true;
        h->is_accepted = answer.is_ok;
        snprintf(h->message, sizeof h->message, "%.*s", (int)sizeof h->message - 1, answer.message);
        pthread_cond_signal(&h->wake);
    }
    pthread_mutex_unlock(&h->lock);
}

static us_status ask_proxy(us_switch *sw, const char *text, int64_t deadline, us_error *err) {
    usi_handover *h = &sw->handover;
    uint8_t bytes[USI_HANDOVER_COMMAND + 64];
    size_t length = 0;
    bool is_lost = false;
    us_msg_string message = {usi_text(text)};
    us_status status = us_message_encode(usi_type_string, &message, bytes, sizeof bytes, &length);
    pthread_mutex_lock(&h->lock);
    snprintf(h->awaited, sizeof h->awaited, "%.*s",
             (int)strcspn(strstr(text, "stamp="), " ") + (int)(strstr(text, "stamp=") - text), text);
    h->is_answered = h->is_accepted = false;
    h->message[0] = 0;
    pthread_mutex_unlock(&h->lock);
    if (!status) status = us_writer_write(h->command, bytes, length, 0);
    pthread_mutex_lock(&h->lock);
    while (!status && !h->is_answered) {
        int64_t now = usi_switch_now(),
                next = now + USI_SWITCH_TICK < deadline ? now + USI_SWITCH_TICK : deadline;
        is_lost = usi_switch_is_lost(sw);
        if (now >= deadline || is_lost) break;
        struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        pthread_cond_timedwait(&h->wake, &h->lock, &until);
    }
    bool is_answered = h->is_answered, is_accepted = h->is_accepted;
    char message_[sizeof h->message];
    memcpy(message_, h->message, sizeof message_);
    h->awaited[0] = 0;
    pthread_mutex_unlock(&h->lock);
    if (status)
        return us_error_set(err, status, NULL, NULL, "the hardware's state could not be sent to the proxy");
    if (!is_answered)
        return us_error_set(err, US_ERR_IO, NULL, NULL,
                            "the proxy did not answer when it was sent the hardware's state%s",
                            is_lost ? ", and now somebody must take over" : "");
    if (!is_accepted)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the proxy refuses the hardware's state: %s",
                            message_);
    return US_OK;
}

// A wait until the proxy has published its state after `since`; false at the deadline or when control is
// lost.
static bool wait_for_proxy(us_switch *sw, int64_t since, int64_t deadline, usi_estimate *out) {
    for (;;) {
        usi_switch_get_estimate(sw, US_SWITCH_PROXY, out);
        bool has_odom = out->odom_heard > since || out->odom_heard == 0,
             has_joints = out->joints_heard > since || out->joints_heard == 0;
        if (has_odom && has_joints) return true;
        if (usi_switch_now() >= deadline || usi_switch_is_lost(sw)) return false;
        pause_1ms();
    }
}

// Sends the hardware's state to the proxy, and checks that it was adopted.
static us_status adopt(us_switch *sw, bool is_forced, us_error *err) {
    usi_handover *h = &sw->handover;
    usi_estimate hardware, proxy;
    usi_switch_get_estimate(sw, US_SWITCH_HARDWARE, &hardware);
    usi_switch_get_estimate(sw, US_SWITCH_PROXY, &proxy);
    const int64_t began = usi_switch_now(), deadline = began + sw->authority.watchdog / 2;
    int64_t heard = hardware.odom_heard ? hardware.odom_heard : hardware.joints_heard;
    char text[USI_HANDOVER_COMMAND], why[160];
    // Hardware that publishes no state has nothing to hand over.
    if (heard == 0) return US_OK;
    if (!is_forced && began - heard > sw->authority.watchdog)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the hardware's state is %.2f s old",
                            seconds(began - heard));
    if (us_writer_n_match(h->command) == 0)
        return us_error_set(err, US_ERR_IO, NULL, NULL,
                            "nobody in the proxy's domain takes world commands: its state cannot be set");

    // the command and its answer
    if (!write_adopt_command(sw, &hardware, &proxy, began, began + lead, text, sizeof text))
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL,
                            "the hardware has too many joints for one command");
    us_status status = ask_proxy(sw, text, deadline, err);
    int64_t taken = usi_switch_now();
    h->record.adopt = seconds(taken - began);
    if (status) return status;

    // The proxy's new state; also where the change is forced, for the ramp begins at it.
    bool is_published = wait_for_proxy(sw, taken, deadline, &proxy);
    if (is_forced) return US_OK;
    if (!is_published)
        return us_error_set(err, US_ERR_IO, NULL, NULL,
                            "the proxy has published no state since it was sent the hardware's");

    // the two beside each other
    usi_switch_get_estimate(sw, US_SWITCH_HARDWARE, &hardware);
    int64_t now = usi_switch_now();
    usi_handover_difference d = usi_handover_compare(sw, &hardware, &proxy, now);
    h->record.look = seconds(now - taken);
    if (hardware.odom_heard && proxy.odom_heard)
        h->record.lag =
            seconds((hardware.odom_time - hardware.odom_heard) - (proxy.odom_time - proxy.odom_heard));
    if (usi_handover_agree(&h->def, &d, why, sizeof why)) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the proxy took the state over, and %s", why);
}

us_status usi_switch_resync(us_switch *sw, us_error *err) { return adopt(sw, false, err); }

// ---- steps of each change ----

static int64_t wall_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void usi_handover_begin(us_switch *sw, const usi_verdict *verdict, bool is_forced) {
    usi_handover *h = &sw->handover;
    usi_handover_record *r = &h->record;
    memset(r, 0, sizeof *r);
    h->is_prepared = false;
    r->time = wall_now();
    r->began = r->before_now = usi_switch_now();
    r->from = sw->authority.control == US_SWITCH_NOBODY ? sw->authority.output_source : sw->authority.control;
    r->to = verdict->control;
    r->mode = verdict->mode;
    r->is_forced = is_forced;
    r->lag = NAN;
    snprintf(r->reason, sizeof r->reason, "%s", verdict->reason);
    for (int i = 0; i < 2; i++)
        usi_switch_get_estimate(sw, (us_switch_source)i, &r->before[i]);
    r->before_difference = usi_handover_compare(sw, &r->before[0], &r->before[1], r->before_now);
}

// The hardware has been silent for nearly as long as the watchdog allows. If it comes back in the last
// moment, control has not changed, and the proxy was set to its state.
void usi_handover_prepare_loss(us_switch *sw) {
    usi_handover *h = &sw->handover;
    usi_verdict verdict = {.mode = US_MODE_PROXY, .control = US_SWITCH_PROXY};
    snprintf(verdict.reason, sizeof verdict.reason, "the hardware is about to be lost");
    us_error err = {0};
    usi_handover_begin(sw, &verdict, true);
    h->is_prepared = true;
    if (usi_handover_prepare(sw, US_POLICY_AGREED, &err))
        usi_switch_log(sw, "the state was not handed over: %s", err.message);
}

us_status usi_handover_prepare(us_switch *sw, us_switch_policy policy, us_error *err) {
    usi_handover *h = &sw->handover;
    const usi_handover_record *r = &h->record;
    if (h->def.is_off || r->from == r->to) return US_OK;
    if (r->to == US_SWITCH_PROXY) return adopt(sw, r->is_forced, err);
    if (r->to != US_SWITCH_HARDWARE || r->is_forced || policy == US_POLICY_UNCONDITIONAL) return US_OK;
    char why[160];
    if (usi_handover_agree(&h->def, &r->before_difference, why, sizeof why)) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, NULL, "%s", why);
}

static void wait_for_phase(us_switch *sw, int64_t began) {
    usi_handover *h = &sw->handover;
    const int64_t since = usi_switch_now();
    for (;;) {
        usi_estimate e[2];
        for (int i = 0; i < 2; i++)
            usi_switch_get_estimate(sw, (us_switch_source)i, &e[i]);
        int64_t period = (int64_t)(1e9 * fmax(e[0].joints_period, e[1].joints_period)),
                now = usi_switch_now();
        int64_t last = e[0].joints_heard < e[1].joints_heard ? e[1].joints_heard : e[0].joints_heard;
        h->record.align = seconds(now - began);
        // below 10 Hz, or without joint states, there is nothing to align
        if (e[0].joints_heard == 0 || e[1].joints_heard == 0 || period <= 0 || period > 100000000 ||
            now - since > 2 * period)
            return;
        if (usi_switch_is_lost(sw)) return;
        // by the stamps, which follow one clock once a state was adopted; else by the arrival times
        int64_t apart = llabs(e[0].joints_time - e[1].joints_time);
        if (apart > 1000000000) apart = llabs(e[0].joints_heard - e[1].joints_heard);
        if (apart <= period / 2 && now - last < period / 4) return;
        pause_1ms();
    }
}

// During the wait the proxy moves on without commands: on a busy machine the two may diverge. Then the state
// is sent again.
us_status usi_handover_align(us_switch *sw, us_error *err) {
    usi_handover *h = &sw->handover;
    const usi_handover_record *r = &h->record;
    const int64_t began = usi_switch_now();
    if (h->def.is_off || r->is_forced || r->from == r->to || r->to == US_SWITCH_NOBODY) return US_OK;
    char why[160];
    for (int i = 0;; i++) {
        wait_for_phase(sw, began);
        if (usi_switch_is_lost(sw))
            return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the %s was lost during the hand-over",
                                us_switch_source_name(r->from));
        if (r->to != US_SWITCH_PROXY) return US_OK;
        usi_estimate e[2];
        for (int k = 0; k < 2; k++)
            usi_switch_get_estimate(sw, (us_switch_source)k, &e[k]);
        usi_handover_difference d = usi_handover_compare(sw, &e[0], &e[1], usi_switch_now());
        if (usi_handover_agree(&h->def, &d, why, sizeof why)) return US_OK;
        if (i == MAX_ATTEMPT)
            return us_error_set(err, US_ERR_VALUE, NULL, NULL, "%s again before the proxy took over", why);
        us_status status = adopt(sw, false, err);
        if (status) return status;
    }
}

void usi_handover_start_ramp(us_switch *sw) {
    usi_handover *h = &sw->handover;
    usi_estimate e;
    us_switch_source to = h->record.to;
    h->is_ramping = false;
    h->changed = usi_switch_now();
    for (int32_t i = 0; i < atomic_load(&sw->n_route); i++)
        sw->routes[i].seen_time = sw->routes[i].last_time;
    if (h->def.is_off || to == US_SWITCH_NOBODY || h->record.from == to) return;
    usi_switch_get_estimate(sw, to, &e);
    if (e.odom_heard == 0) return;
    double pose[3], v[3];
    usi_estimate_planar(&e, e.odom_heard, pose, v);
    pthread_mutex_lock(&h->lock);
    for (int i = 0; i < 3; i++)
        h->ramp[i] = h->requested_time && fabs(h->requested[i] - v[i]) < REACHED ? h->requested[i] : v[i];
    pthread_mutex_unlock(&h->lock);
    h->ramp_time = usi_switch_now();
    h->is_ramping = true;
}

void usi_handover_end(us_switch *sw, uint64_t epoch, const char *why) {
    usi_handover *h = &sw->handover;
    usi_handover_record *r = &h->record;
    r->epoch = epoch;
    r->is_refused = why != NULL;
    snprintf(r->why, sizeof r->why, "%s", why ? why : "");
    r->after_now = usi_switch_now();
    for (int i = 0; i < 2; i++)
        usi_switch_get_estimate(sw, (us_switch_source)i, &r->after[i]);
    r->after_difference = usi_handover_compare(sw, &r->after[0], &r->after[1], r->after_now);
    r->total = seconds(r->after_now - r->began);
    usi_evidence_write(r, &h->def, sw->robot, h->line, USI_HANDOVER_LINE);
    us_msg_string message = {h->line};
    size_t length = 0, cap = USI_HANDOVER_LINE + 64;
    uint8_t *bytes = usi_alloc(&sw->allocator, cap, 16);
    if (bytes && !us_message_encode(usi_type_string, &message, bytes, cap, &length))
        usi_switch_write_report(sw, h->report, bytes, length);
    usi_release(&sw->allocator, bytes, cap, 16);
    usi_event_log_add_evidence(sw, h->line);
}

// ---- the ramp ----

// A step from `from` towards `to`, in n dimensions (up to 2), of at most max_step.
static void approach(double *from, const double *to, int n, double max_step) {
    double d[2] = {0}, length = 0;
    for (int i = 0; i < n; i++) {
        d[i] = to[i] - from[i];
        length = hypot(length, d[i]);
    }
    double fraction = length > max_step ? max_step / length : 1;
    for (int i = 0; i < n; i++)
        from[i] = fraction < 1 ? from[i] + fraction * d[i] : to[i];
}

const us_sample *usi_handover_ramp(us_switch *sw, const usi_route *route, const us_sample *given,
                                   bool is_sent, us_sample *out, uint8_t *buf, size_t cap) {
    usi_handover *h = &sw->handover;
    bool is_stamped = route->type == usi_type_twist_stamped;
    if (!is_stamped && route->type != usi_type_twist) return given;

    // the requested velocity
    _Alignas(16) uint8_t memory[1024];
    const void *message = NULL;
    if (us_message_decode(route->type, given->bytes, given->length, memory, sizeof memory, &message, NULL))
        return given;
    us_msg_twist_stamped stamped = {0};
    if (is_stamped) {
        stamped = *(const us_msg_twist_stamped *)message;
    } else {
        stamped.twist = *(const us_msg_twist *)message;
    }
    us_msg_twist *t = &stamped.twist;
    const double requested[3] = {t->linear.x, t->linear.y, t->angular.z};
    if (!isfinite(requested[0] + requested[1] + requested[2])) return given;
    int64_t now = usi_switch_now();
    pthread_mutex_lock(&h->lock);
    memcpy(h->requested, requested, sizeof requested);
    h->requested_time = now;
    pthread_mutex_unlock(&h->lock);
    if (!h->is_ramping || !is_sent) return given;

    // the next step of the ramp
    double dt = fmin(seconds(now - h->ramp_time), MAX_PAUSE);
    h->ramp_time = now;
    approach(h->ramp, requested, 2, h->def.acceleration > 0 ? h->def.acceleration * dt : INFINITY);
    approach(h->ramp + 2, requested + 2, 1,
             h->def.yaw_acceleration > 0 ? h->def.yaw_acceleration * dt : INFINITY);
    if (memcmp(h->ramp, requested, sizeof requested) == 0) {
        h->is_ramping = false;
        return given;
    }

    // the limited command
    t->linear.x = h->ramp[0];
    t->linear.y = h->ramp[1];
    t->angular.z = h->ramp[2];
    *out = *given;
    out->bytes = buf;
    if (us_message_encode(route->type, is_stamped ? (const void *)&stamped : (const void *)t, buf, cap,
                          &out->length))
        return given;
    return out;
}

// ---- open and close ----

us_status usi_handover_check_def(const us_handover_def *def, us_error *err) {
    const double numbers[] = {def->position,        def->yaw,        def->joint,
                              def->speed,           def->yaw_rate,   def->match_speed,
                              def->match_yaw_rate,  def->match_time, def->acceleration,
                              def->yaw_acceleration};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        // The last two may be 0, which means at once.
        if (numbers[i] > 0 || (i >= 8 && numbers[i] == 0)) continue;
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "Begin with us_switch_def_default() and give numbers above 0.",
                            "invalid limit, speed or rate of a hand-over: %g", numbers[i]);
    }
    return US_OK;
}

us_status usi_handover_open(us_switch *sw, const us_handover_def *def, us_error *err) {
    usi_handover *h = &sw->handover;
    h->def = *def;
    h->def.evidence = NULL;
    snprintf(h->evidence, sizeof h->evidence, "%s", def->evidence ? def->evidence : "");
    usi_cond_init(&h->wake);
    pthread_mutex_init(&h->lock, NULL);
    h->line = usi_alloc(&sw->allocator, USI_HANDOVER_LINE, 1);
    if (!h->line)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for the evidence of hand-overs");
    return US_OK;
}

us_status usi_handover_join(us_switch *sw, us_error *err) {
    usi_handover *h = &sw->handover;
    us_reader *reader = NULL;
    const us_qos latched = {.is_reliable = true, .is_transient_local = true, .depth = 1};
    us_status status = usi_switch_add_report(sw, "/understudy/handover", latched, h->report, err);
    us_topic_def topic = {"/understudy/status",
                          usi_type_string,
                          {.is_reliable = true, .depth = 10},
                          sw->source_node[US_SWITCH_PROXY]};
    if (!status)
        status = us_bus_add_reader(sw->sources[US_SWITCH_PROXY], &topic, on_status, sw, &reader, err);
    topic.topic = "/understudy/command";
    if (!status) status = us_bus_add_writer(sw->sources[US_SWITCH_PROXY], &topic, &h->command, err);
    return status;
}

void usi_handover_close(us_switch *sw) {
    usi_handover *h = &sw->handover;
    usi_release(&sw->allocator, h->line, USI_HANDOVER_LINE, 1);
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->lock);
}

// The switch: opening, its thread, requests, changes of control, and the authority topic.
//
// The switch's thread checks the watchdog and the pending requests every few milliseconds. It alone changes
// who is in control, one change after the other, each in the same order:
//
//     hand-over (handover.c, on_change; samples still flow)
//     -> gate closed
//     -> new authority and epoch, a zero Twist to the old source, latched samples of the new source
//     -> gate open
//     -> logged
//     -> published on /understudy/authority
//
// The watchdog is checked in every cycle of the thread, after every request, and while a hand-over waits,
// which a loss interrupts. The successor of a source that is about to be lost gets its state before the
// watchdog expires. The thread waits for nothing else: events are written by the log's thread (event_log.c),
// topics are discovered by a third (routes.c), and a write to DDS ends after a millisecond.
#include "switch/switch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/monotonic_cond.h"
#include "bus/bus.h"
#include "switch/motor_relay.h"
#include "switch/shadow.h"
#include "wire/cdr.h"
#include "wire/messages.h"
#include "wire/world_status.h"

// Fast discovery after the start of the switch, a loss or a return, ns: new endpoints appear then, and their
// samples do not pass before they are found.
static const int64_t search_for = 5000 * INT64_C(1000000);

// Time before the watchdog expires at which the successor is prepared, ns; at most half of the watchdog. A
// proxy answers in 20 ms; the earlier it is set, the further it drifts from the hardware, and the more often
// the hardware comes back meanwhile.
static const int64_t max_preparation = 100 * INT64_C(1000000);

// Wait for the log before a change is published, ns, so that what is published is logged already. A log that
// takes longer is stuck, and is not waited for until it continues.
static const int64_t log_patience = 5 * INT64_C(1000000);

// Wait for the gates after a change, ns: two answers. The change itself does not depend on it.
static const int64_t lease_patience = 50 * INT64_C(1000000);

static int64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t usi_switch_now(void) { return read_clock(CLOCK_MONOTONIC); }

int64_t usi_switch_wall_time(void) { return read_clock(CLOCK_REALTIME); }

void usi_switch_log(us_switch *sw, const char *format, ...) {
    if (!sw->on_event) return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    usi_event_log_add(sw, usi_switch_wall_time(), text);
}

// The current authority as an event, stamped with the time of the change.
static void log_change(us_switch *sw) {
    char text[512];
    const usi_authority *a = &sw->authority;
    snprintf(text, sizeof text, "%s, %s in control, epoch %llu: %s", us_switch_mode_name(a->mode),
             us_switch_source_name(a->control), (unsigned long long)a->epoch, sw->reason);
    usi_event_log_add(sw, sw->since, text);
}

// ---- the authority topic ----

// A reason may hold texts of other programs: characters that would break the line of JSON become a quote.
static void make_plain(char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\' || *text == 0x7f) *text = '\'';
    }
}

us_status usi_switch_add_report(us_switch *sw, const char *topic, us_qos qos, us_writer *out_writers[2],
                                us_error *err) {
    us_topic_def def = {topic, usi_type_string, qos, sw->source_node[US_SWITCH_PROXY]};
    us_status status = us_bus_add_writer(sw->sources[US_SWITCH_PROXY], &def, &out_writers[0], err);
    def.node = sw->operators_node;
    if (!status && sw->is_visible) status = us_bus_add_writer(sw->operators, &def, &out_writers[1], err);
    return status;
}

void usi_switch_write_report(us_switch *sw, us_writer *const writers[2], const uint8_t *bytes,
                             size_t length) {
    for (int i = 0; i < 2; i++) {
        if (writers[i] && us_writer_write(writers[i], bytes, length, 0)) atomic_fetch_add(&sw->n_unsent, 1);
    }
}

static void publish_line(us_switch *sw, us_writer *writer, const us_switch_state *s, const char *mode,
                         const char *control) {
    char line[1024];
    snprintf(line, sizeof line,
             "{\"robot\":\"%s\",\"mode\":\"%s\",\"control\":\"%s\",\"epoch\":%llu,\"since\":%.3f,\"reason\":"
             "\"%s\",\"hardware\":%s,\"proxy\":%s,"
             "\"terms\":[%llu,%llu],\"answers\":%lld,\"refused\":\"%s\",\"secret\":%s}",
             sw->robot, mode, control, (unsigned long long)s->epoch, 1e-9 * (double)s->since, s->reason,
             s->is_alive[0] ? "true" : "false", s->is_alive[1] ? "true" : "false",
             (unsigned long long)s->term[0], (unsigned long long)s->term[1], (long long)s->n_answer,
             s->refused, sw->is_secret ? "true" : "false");
    us_msg_string message = {.data = line};
    uint8_t bytes[1100];
    size_t length = 0;
    if (us_message_encode(usi_type_string, &message, bytes, sizeof bytes, &length)) return;
    if (us_writer_write(writer, bytes, length, 0)) atomic_fetch_add(&sw->n_unsent, 1);
}

// The authority in the domains of the sources, and in the operators' where that is visible. With is_secret
// the operators learn only that there is a switch, and whether any source is alive.
static void publish_authority(us_switch *sw) {
    us_switch_state s = us_switch_get_state(sw);
    if (s.is_withdrawn || s.is_waiting) return;
    make_plain(s.reason);
    make_plain(s.refused);
    for (int i = 0; i < 2; i++)
        publish_line(sw, sw->source_authority[i], &s, us_switch_mode_name(s.mode),
                     us_switch_source_name(s.control));
    if (!sw->is_visible) return;
    if (!sw->is_secret) {
        publish_line(sw, sw->authority_writer, &s, us_switch_mode_name(s.mode),
                     us_switch_source_name(s.control));
        return;
    }
    s.is_alive[0] = s.is_alive[1] = s.is_alive[0] || s.is_alive[1];
    s.term[0] = s.term[1] = 0;
    s.reason[0] = s.refused[0] = 0;
    publish_line(sw, sw->authority_writer, &s, "secret", "secret");
}

// The text of a String sample into `out`; false when it cannot be decoded or is too long.
static bool read_string(const us_sample *sample, char *out, size_t cap) {
    _Alignas(16) uint8_t memory[2048];
    const void *message = NULL;
    if (us_message_decode(usi_type_string, sample->bytes, sample->length, memory, sizeof memory, &message,
                          NULL))
        return false;
    const us_msg_string *string = message;
    size_t n = strlen(string->data);
    if (n >= cap) return false;
    memcpy(out, string->data, n + 1);
    return true;
}

// A request as text: "proxy", or "k10 proxy" where several robots have a switch; "k10 hardware match" and
// "k10 hardware anyway" add a policy.
static void on_request(void *context, const us_sample *sample) {
    static const char *const names[US_POLICY_COUNT] = {
        [US_POLICY_MATCH] = "match", [US_POLICY_UNCONDITIONAL] = "anyway"};
    us_switch *sw = context;
    char text[256];
    if (!read_string(sample, text, sizeof text)) return;
    char *mode = text;
    size_t n = strlen(sw->robot);
    if (strchr(text, ' ')) {
        if (strncmp(text, sw->robot, n) != 0 || text[n] != ' ') return;  // another robot's
        mode = text + n + 1;
    }
    us_switch_policy policy = US_POLICY_AGREED;
    char *more = strchr(mode, ' ');
    for (int i = US_POLICY_MATCH; more && i < US_POLICY_COUNT; i++) {
        if (strcmp(more + 1, names[i]) != 0) continue;
        policy = (us_switch_policy)i;
        *more = 0;
    }
    us_switch_request_with_policy(
        sw, strcmp(mode, "resync") == 0 ? USI_REQUEST_RESYNC : us_switch_find_mode(mode), policy);
}

// Authority of all switches. Where no source has a gate, a switch of the same robot with a newer epoch has
// taken over: this one withdraws. Gates decide where there are any, and what others publish is not believed.
static void on_authority(void *context, const us_sample *sample) {
    us_switch *sw = context;
    size_t length = 0;
    const char *text = usi_cdr_view_text(sample->bytes, sample->length, &length);
    usi_authority_line line;
    if (!text || !usi_authority_read(text, length, &line) || !line.has_epoch ||
        strcmp(line.robot, sw->robot) != 0)
        return;
    pthread_mutex_lock(&sw->lock);
    if (line.epoch > sw->newest) sw->newest = line.epoch;
    pthread_mutex_unlock(&sw->lock);
}

us_status us_switch_request(us_switch *sw, us_switch_mode mode) {
    return us_switch_request_with_policy(sw, mode, US_POLICY_AGREED);
}

us_status us_switch_request_with_policy(us_switch *sw, us_switch_mode mode, us_switch_policy policy) {
    if (!sw || (unsigned)policy >= (unsigned)US_POLICY_COUNT) return US_ERR_ARG;
    pthread_mutex_lock(&sw->lock);
    bool has_room = sw->n_request < USI_MAX_REQUEST;
    if (has_room) sw->requests[sw->n_request++] = (usi_request){mode, policy};
    pthread_cond_signal(&sw->wake);
    pthread_mutex_unlock(&sw->lock);
    return has_room ? US_OK : US_ERR_LIMIT;
}

us_status us_switch_resync(us_switch *sw) { return us_switch_request(sw, USI_REQUEST_RESYNC); }

us_switch_state us_switch_get_state(us_switch *sw) {
    us_switch_state s = {
        .mode = US_MODE_COUNT, .control = US_SWITCH_NOBODY, .output_source = US_SWITCH_NOBODY};
    if (!sw) return s;
    int64_t now = usi_switch_now();
    pthread_rwlock_rdlock(&sw->gate);
    usi_authority a = sw->authority;
    for (int i = 0; i < 2; i++)
        a.heard[i] = atomic_load(&sw->heard[i]);
    s = (us_switch_state){.mode = a.mode,
                          .control = a.control,
                          .output_source = a.output_source,
                          .epoch = a.epoch,
                          .since = sw->since};
    s.is_withdrawn = sw->is_withdrawn;
    s.is_waiting = !s.is_withdrawn && usi_lease_state(&sw->lease) == USI_TENURE_WAITING;
    s.n_answer = sw->n_answer;
    memcpy(s.reason, sw->reason, sizeof s.reason);
    memcpy(s.refused, sw->refused, sizeof s.refused);
    pthread_rwlock_unlock(&sw->gate);
    for (int i = 0; i < 2; i++)
        s.is_alive[i] = usi_authority_is_alive(&a, (us_switch_source)i, now);
    usi_tenure leases = usi_lease_get(sw);
    for (int i = 0; i < 2; i++) {
        s.has_gate[i] = leases.gates[i].kind == USI_GATE_PRESENT;
        s.term[i] = leases.gates[i].role == US_GATE_NONE ? 0 : leases.gates[i].term;
    }
    s.n_command = atomic_load(&sw->n_command);
    s.n_output = atomic_load(&sw->n_output);
    s.n_copy = atomic_load(&sw->n_copy);
    s.n_fenced = atomic_load(&sw->n_fenced);
    s.n_unsent = atomic_load(&sw->n_unsent);
    s.n_topic = atomic_load(&sw->n_route);
    pthread_mutex_lock(&sw->estimate_lock);
    s.shadow = sw->shadow->state;
    s.confidence = sw->shadow->confidence;
    pthread_mutex_unlock(&sw->estimate_lock);
    return s;
}

int32_t us_switch_motor_port(const us_switch *sw) { return sw ? usi_motor_relay_port(sw->motors) : 0; }

// The log before the topic: what is published is logged already.
static void log_and_publish(us_switch *sw) {
    usi_event_log_drain(sw, log_patience);
    publish_authority(sw);
}

// ---- changes ----

// The lowest epoch that may be used now: milliseconds of wall time. So a restarted switch begins above its
// last epoch, and two that do not know of each other differ.
static uint64_t first_epoch(void) { return (uint64_t)(usi_switch_wall_time() / 1000000); }

static void refuse(usi_verdict *verdict, us_status status, const us_error *err) {
    verdict->is_refused = true;
    verdict->is_change = false;
    snprintf(verdict->reason, sizeof verdict->reason, "%.150s",
             err->message[0] ? err->message : us_status_text(status));
}

// The hand-over of the state, where control changes and it was not handed over beforehand. What goes wrong in
// a forced change is logged, and does not hold it up.
static us_status hand_over_state(us_switch *sw, const usi_verdict *verdict, bool is_forced,
                                 us_switch_policy policy, us_error *err) {
    usi_handover *h = &sw->handover;
    bool is_prepared = h->is_prepared && is_forced && verdict->control == h->record.to;
    if (is_prepared) memcpy(h->record.reason, verdict->reason, sizeof h->record.reason);
    h->is_prepared = false;
    if (is_prepared || sw->authority.control == verdict->control) return US_OK;
    usi_handover_begin(sw, verdict, is_forced);
    us_status status = usi_handover_prepare(sw, policy, err);
    if (status && is_forced) usi_switch_log(sw, "the state was not handed over: %s", err->message);
    return is_forced ? US_OK : status;
}

// The program's own veto; a forced change is only announced to it.
static us_status ask_program(us_switch *sw, const usi_verdict *verdict, bool is_forced, uint64_t min_epoch,
                             us_error *err) {
    const usi_authority *a = &sw->authority;
    if (!sw->on_change) return US_OK;
    us_switch_change what = {.from_mode = a->mode,
                             .to_mode = verdict->mode,
                             .from = a->control,
                             .to = verdict->control,
                             .reason = verdict->reason,
                             .is_forced = is_forced};
    what.epoch = a->epoch + 1 > min_epoch ? a->epoch + 1 : min_epoch;
    us_status status = sw->on_change(sw->context, &what, err);
    return is_forced ? US_OK : status;
}

// The change itself, with the gate closed: no sample passes meanwhile. The new epoch.
static uint64_t apply_change(us_switch *sw, const usi_verdict *verdict, uint64_t min_epoch) {
    usi_authority *a = &sw->authority;
    pthread_rwlock_wrlock(&sw->gate);
    us_switch_source old_control = a->control, old_output = a->output_source;
    bool was_shadow = a->mode == US_MODE_SHADOW;

    // authority and epoch
    usi_authority_apply(a, verdict, min_epoch);
    atomic_store(&sw->epoch, a->epoch);
    sw->since = usi_switch_wall_time();
    memcpy(sw->reason, verdict->reason, sizeof sw->reason);

    // a zero Twist to every source that gets no more commands, or no more copies of them
    bool had_copies = was_shadow && a->mode != US_MODE_SHADOW && a->control != US_SWITCH_PROXY;
    if (old_control != a->control) usi_switch_stop_source(sw, old_control);
    if (had_copies) usi_switch_stop_source(sw, US_SWITCH_PROXY);
    if (a->mode == US_MODE_STOP) {
        usi_switch_stop_source(sw, US_SWITCH_HARDWARE);
        usi_switch_stop_source(sw, US_SWITCH_PROXY);
    }

    // latched samples of the new output source, and the ramp of the first commands
    if (old_output != a->output_source) usi_switch_pass_latched(sw, a->output_source);
    if (old_control != verdict->control) usi_handover_start_ramp(sw);
    // the roles at the gates, behind the zero Twists
    usi_lease_update(sw);
    uint64_t epoch = a->epoch;
    pthread_rwlock_unlock(&sw->gate);
    usi_motor_relay_wake(sw->motors);
    return epoch;
}

static void change(us_switch *sw, usi_verdict *verdict, bool is_forced, us_switch_policy policy) {
    const usi_authority *a = &sw->authority;  // only this thread writes it
    bool is_handover = a->control != verdict->control;
    us_error err = {0};
    us_status status = hand_over_state(sw, verdict, is_forced, policy, &err);
    uint64_t min_epoch = first_epoch();
    if (!status) {
        err = (us_error){0};
        status = ask_program(sw, verdict, is_forced, min_epoch, &err);
    }
    if (!status && is_handover) {
        status = usi_handover_align(sw, &err);
        if (is_forced) status = US_OK;
    }
    if (status) {
        refuse(verdict, status, &err);
        if (is_handover) usi_handover_end(sw, a->epoch, verdict->reason);
        return;
    }
    uint64_t epoch = apply_change(sw, verdict, min_epoch);
    if (verdict->control != US_SWITCH_NOBODY && !usi_lease_wait(sw, verdict->control, lease_patience))
        usi_switch_log(sw, "the %s takes no commands yet: its gate, or that of the other, has not answered",
                       us_switch_source_name(verdict->control));
    log_change(sw);
    if (is_handover) usi_handover_end(sw, epoch, NULL);
    bool has_copies = verdict->mode == US_MODE_MIRROR || verdict->mode == US_MODE_SHADOW;
    if (has_copies) usi_switch_search(sw, 0);
}

// The answer to a request; `refused` NULL: it was met.
static void give_answer(us_switch *sw, us_switch_mode mode, const char *refused) {
    pthread_rwlock_wrlock(&sw->gate);
    sw->n_answer++;
    snprintf(sw->refused, sizeof sw->refused, "%s", refused ? refused : "");
    pthread_rwlock_unlock(&sw->gate);
    const char *name = mode == USI_REQUEST_RESYNC ? "resync" : us_switch_mode_name(mode);
    if (refused) usi_switch_log(sw, "%s refused: %s", name, refused);
}

// A refusal in the evidence of hand-overs.
static void record_refusal(us_switch *sw, const usi_verdict *verdict) {
    usi_handover_begin(sw, verdict, false);
    usi_handover_end(sw, sw->authority.epoch, verdict->reason);
}

// Every request has an answer: the mode it asked for, or a reason. A request to drive the hardware to the
// proxy's pose first is answered on arrival.
static void answer(us_switch *sw, usi_request request) {
    // a request that is still under way
    if (sw->handover.match.is_on) {
        usi_match_end(sw);
        give_answer(sw, US_MODE_HARDWARE,
                    "another request came while the hardware was on its way to the proxy's pose");
    }
    if (request.mode == USI_REQUEST_RESYNC) {
        char reason[160];
        bool is_done = usi_switch_resync_comparison(sw, reason, sizeof reason);
        give_answer(sw, request.mode, is_done ? NULL : reason);
        return;
    }
    usi_verdict verdict = usi_authority_ask(&sw->authority, request.mode, usi_switch_now());
    bool is_refused = verdict.is_refused && verdict.control != sw->authority.control;
    if (!verdict.is_refused && request.policy == US_POLICY_MATCH && verdict.control == US_SWITCH_HARDWARE &&
        verdict.is_change) {
        us_error err = {0};
        us_status status = usi_match_begin(sw, &err);
        if (!status) {
            usi_switch_log(sw, "the hardware is driven to the proxy's pose");
            return;
        }
        refuse(&verdict, status, &err);
        is_refused = true;
    }
    if (is_refused) record_refusal(sw, &verdict);
    if (verdict.is_change) change(sw, &verdict, false, request.policy);
    give_answer(sw, request.mode, verdict.is_refused ? verdict.reason : NULL);
}

// The hardware on its way to the proxy's pose; true when it has arrived, or cannot.
static bool watch_match(us_switch *sw) {
    char why[160];
    usi_match_state state = usi_match_tick(sw, why, sizeof why);
    if (state == USI_MATCH_ARRIVED) answer(sw, (usi_request){US_MODE_HARDWARE, US_POLICY_AGREED});
    if (state == USI_MATCH_FAILED) {
        usi_verdict verdict = usi_authority_ask(&sw->authority, US_MODE_HARDWARE, usi_switch_now());
        snprintf(verdict.reason, sizeof verdict.reason, "%s", why);
        record_refusal(sw, &verdict);
        give_answer(sw, US_MODE_HARDWARE, why);
    }
    return state == USI_MATCH_ARRIVED || state == USI_MATCH_FAILED;
}

// The first of the fired rules that can be followed. Those of a source that has lost control since do not
// count.
static void follow_rules(us_switch *sw, uint32_t fired, us_switch_source by, const char *why) {
    if (by != US_SWITCH_NOBODY && by != sw->authority.control) return;
    for (int32_t i = 0; i < sw->n_rule; i++) {
        const usi_rule *rule = &sw->rules[i];
        if (!(fired >> i & 1)) continue;
        usi_verdict verdict = usi_authority_ask(&sw->authority, rule->mode, usi_switch_now());
        if (verdict.is_refused) {
            usi_switch_log(sw, "rule %s (%s) cannot be followed: %s", rule->text, why, verdict.reason);
            continue;
        }
        snprintf(verdict.reason, sizeof verdict.reason, "%.120s", why);
        if (verdict.is_change) change(sw, &verdict, true, US_POLICY_UNCONDITIONAL);
        return;
    }
}

static void withdraw(us_switch *sw, const char *why) {
    pthread_rwlock_wrlock(&sw->gate);
    sw->is_withdrawn = true;
    sw->authority.control = sw->authority.output_source = US_SWITCH_NOBODY;
    snprintf(sw->reason, sizeof sw->reason, "%s", why);
    pthread_rwlock_unlock(&sw->gate);
    usi_switch_log(sw, "withdrawn: %s", why);
}

// Whether this switch has the leases that it needs. The first time it begins as if it had just been started;
// when they are another's it withdraws.
static bool is_in_office(us_switch *sw, uint64_t newest) {
    usi_tenure_state state = usi_lease_state(&sw->lease);
    if (state == USI_TENURE_OVER) {
        withdraw(sw, usi_lease_get(sw).why);
    } else if (newest > sw->authority.epoch && !usi_lease_has_gate(sw)) {
        char why[160];
        snprintf(why, sizeof why, "another switch of this robot has the epoch %llu",
                 (unsigned long long)newest);
        withdraw(sw, why);
    } else if (state == USI_TENURE_OFFICE && sw->tenure_since == 0) {
        pthread_rwlock_wrlock(&sw->gate);
        sw->tenure_since = usi_switch_now();
        sw->since = usi_switch_wall_time();
        usi_switch_pass_latched(sw, sw->authority.output_source);
        pthread_rwlock_unlock(&sw->gate);
        log_change(sw);
        log_and_publish(sw);
    }
    return state == USI_TENURE_OFFICE && !sw->is_withdrawn;
}

// Sources that were started again, within the watchdog perhaps: lost, until they publish.
static void watch_restarts(us_switch *sw) {
    for (int i = 0; i < 2; i++) {
        if (!atomic_exchange(&sw->lease.is_restarted[i], false)) continue;
        usi_switch_log(sw, "the %s was started again", us_switch_source_name((us_switch_source)i));
        atomic_store(&sw->heard[i], 0);
        pthread_rwlock_wrlock(&sw->gate);
        usi_authority_forget(&sw->authority, (us_switch_source)i);
        pthread_rwlock_unlock(&sw->gate);
        usi_switch_restart_comparison(sw);
    }
}

// Requests, fired rules and foreign epochs that came in since the last cycle.
typedef struct pending {
    usi_request requests[USI_MAX_REQUEST];
    int32_t n_request;
    uint64_t newest;
    bool has_fired;
    usi_fired fired[US_SWITCH_NOBODY + 1];
} pending;

static void observe_sources(us_switch *sw) {
    int64_t heard[2] = {atomic_load(&sw->heard[0]), atomic_load(&sw->heard[1])};
    pthread_rwlock_wrlock(&sw->gate);
    usi_authority_observe(&sw->authority, heard);
    pthread_rwlock_unlock(&sw->gate);
}

bool usi_switch_is_lost(us_switch *sw) {
    usi_authority a = sw->authority;  // only this thread writes it
    usi_authority_observe(&a, (const int64_t[2]){atomic_load(&sw->heard[0]), atomic_load(&sw->heard[1])});
    sw->watchdog_checked = usi_switch_now();
    return usi_authority_silence(&a, sw->watchdog_checked) > a.watchdog;
}

// Makes the proxy ready when the hardware is about to be lost, so that nothing is left to wait for when it
// is.
static void prepare_for_loss(us_switch *sw) {
    const usi_authority *a = &sw->authority;
    usi_handover *h = &sw->handover;
    int64_t now = usi_switch_now(), silence = usi_authority_silence(a, now), half = a->watchdog / 2;
    bool is_near = silence > a->watchdog - (half < max_preparation ? half : max_preparation);
    if (is_near && !h->is_prepared && usi_authority_successor(a) == US_SWITCH_PROXY &&
        usi_authority_is_alive(a, US_SWITCH_PROXY, now)) {
        usi_handover_prepare_loss(sw);
    } else if (!is_near && h->is_prepared) {
        h->is_prepared = false;
        usi_switch_log(
            sw, "the hardware is heard again, after its state was handed over for the case that it was lost");
        usi_switch_restart_comparison(sw);
    }
}

// The watchdog; true when it acted.
static bool watch(us_switch *sw) {
    observe_sources(sw);
    sw->watchdog_checked = usi_switch_now();
    usi_verdict verdict = usi_authority_watch(&sw->authority, sw->watchdog_checked);
    if (!verdict.is_change) return false;
    usi_match_end(sw);
    change(sw, &verdict, true, US_POLICY_AGREED);
    return true;
}

// One cycle of the thread: requests, rules, the watchdog. True when the authority is to be published.
static bool run_cycle(us_switch *sw, const pending *n) {
    if (sw->is_withdrawn || !is_in_office(sw, n->newest)) return false;
    watch_restarts(sw);
    // requests; a hand-over takes its time, so the watchdog is checked before each and after the last
    for (int32_t i = 0; i < n->n_request; i++) {
        watch(sw);
        answer(sw, n->requests[i]);
    }
    // rules; those of operators before those of the robots
    for (int i = US_SWITCH_NOBODY; n->has_fired && i >= 0; i--) {
        if (!n->fired[i].rules) continue;
        watch(sw);
        follow_rules(sw, n->fired[i].rules, (us_switch_source)i, n->fired[i].why);
    }

    // the watchdog, and the successor shortly before it expires
    bool is_to_publish = n->n_request > 0 || n->has_fired;
    if (watch_match(sw)) is_to_publish = true;
    if (watch(sw)) is_to_publish = true;
    prepare_for_loss(sw);
    if (sw->handover.is_prepared && watch(sw)) is_to_publish = true;
    usi_lease_update(sw);

    // sources that came or went
    int64_t now = usi_switch_now();
    for (int i = 0; i < 2; i++) {
        bool is_alive = usi_authority_is_alive(&sw->authority, (us_switch_source)i, now);
        if (is_alive == sw->was_alive[i]) continue;
        sw->was_alive[i] = is_alive;
        usi_switch_search(sw, search_for);
        is_to_publish = true;
        usi_switch_log(sw, "the %s is %s", us_switch_source_name((us_switch_source)i),
                       is_alive ? "heard" : "silent");
    }
    return is_to_publish;
}

// A switch that was stopped has not listened: that time is no silence of the sources.
static void excuse_sources(us_switch *sw, int64_t deaf) {
    if (deaf < sw->authority.watchdog / 2) return;
    int64_t now = usi_switch_now();
    for (int i = 0; i < 2; i++) {
        int64_t heard = atomic_load(&sw->heard[i]), excused = heard + deaf < now ? heard + deaf : now;
        // A sample that came meanwhile is newer.
        if (heard > 0) atomic_compare_exchange_strong(&sw->heard[i], &heard, excused);
    }
}

// Late cycles are logged with what held them up: a watchdog that is not checked does not watch.
static void log_late(us_switch *sw, int64_t before, const char *what) {
    int64_t now = usi_switch_now(),
            gap = now - (before > sw->watchdog_checked ? before : sw->watchdog_checked),
            slack = sw->authority.watchdog / 10;
    if (gap > USI_SWITCH_TICK + (slack < USI_SWITCH_TICK ? USI_SWITCH_TICK : slack))
        usi_switch_log(sw, "late: %s took %.3f s", what, 1e-9 * (double)gap);
}

static void *run(void *context) {
    us_switch *sw = context;
    usi_lease_update(sw);
    for (;;) {
        int64_t until = usi_switch_now() + USI_SWITCH_TICK;
        struct timespec deadline = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
        // Requests wait until this switch is in office; those to another that is are not its own.
        bool is_early = usi_lease_is_early(sw);
        pthread_mutex_lock(&sw->lock);
        if (!sw->is_closing && (is_early || sw->n_request == 0) && !sw->has_fired)
            pthread_cond_timedwait(&sw->wake, &sw->lock, &deadline);
        bool is_closing = sw->is_closing;
        pending n = {
            .n_request = is_early ? 0 : sw->n_request, .newest = sw->newest, .has_fired = sw->has_fired};
        memcpy(n.requests, sw->requests, sizeof n.requests);
        memcpy(n.fired, sw->fired, sizeof n.fired);
        if (!is_early) sw->n_request = 0;
        memset(sw->fired, 0, sizeof sw->fired);
        sw->has_fired = false;
        pthread_mutex_unlock(&sw->lock);
        if (is_closing) return NULL;
        int64_t woken = usi_switch_now();
        excuse_sources(sw, woken - (until - USI_SWITCH_TICK));
        log_late(sw, until - USI_SWITCH_TICK, "the wait for the processor");
        if (run_cycle(sw, &n)) log_and_publish(sw);
        log_late(sw, woken, "requests and changes");
        int64_t compared = usi_switch_now();
        usi_switch_step_shadow(sw);
        log_late(sw, compared, "the comparison");
    }
}

// ---- open and close ----

us_switch_def us_switch_def_default(void) {
    static const char *const shared[] = {"/tf", "/tf_static", "/diagnostics"};
    us_switch_def def = {.allocator = us_allocator_default(),
                         .watchdog = 0.5,
                         .n_shared = 3,
                         .shared = shared,
                         .shadow = usi_shadow_def_default()};
    def.operators = def.hardware = def.proxy = us_bus_def_default();
    def.hardware.domain = 1;
    def.proxy.domain = 2;
    const double five_degrees = 0.0872664625997164788;
    def.handover = (us_handover_def){
        .position = 0.1, .yaw = five_degrees, .joint = five_degrees, .speed = 0.05, .yaw_rate = 0.1};
    def.handover.acceleration = 0.5;
    def.handover.yaw_acceleration = 1;
    def.handover.match_speed = 0.2;
    def.handover.match_yaw_rate = 0.4;
    def.handover.match_time = 60;
    return def;
}

static us_status check_def(const us_switch_def *def, us_error *err) {
    if (!def->allocator.alloc || !def->allocator.release)
        return us_error_set(err, US_ERR_ARG, NULL, "Begin with us_switch_def_default().",
                            "a switch needs an allocator");
    if (!def->robot || !def->robot[0] || strlen(def->robot) > 60 ||
        strspn(def->robot, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
            strlen(def->robot)) {
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "Give the robot's namespace without slashes, for example k10.",
                            "invalid robot name \"%.60s\"", def->robot ? def->robot : "");
    }
    int32_t o = def->operators.domain, h = def->hardware.domain, p = def->proxy.domain;
    if (o == h || o == p || h == p) {
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "Give each a domain of its own: in one, operators would see two robots.",
                            "domains must differ: operators %d, hardware %d, proxy %d", o, h, p);
    }
    if (!(def->watchdog >= 0.01 && def->watchdog <= 3600))
        return us_error_set(err, US_ERR_VALUE, NULL, "Give 0.01 s to 3600 s.", "invalid watchdog %g s",
                            def->watchdog);
    if ((unsigned)def->mode >= (unsigned)US_MODE_COUNT || (unsigned)def->on_loss > (unsigned)US_LOSS_STOP)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "unknown mode %d or rule of loss %d", (int)def->mode,
                            (int)def->on_loss);
    if (def->n_shared < 0 || def->n_shared > USI_MAX_SHARED || def->n_topic < 0 ||
        def->n_topic > USI_MAX_ROUTE)
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "too many topics");
    if ((def->n_shared > 0 && !def->shared) || (def->n_topic > 0 && !def->topics))
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "topics are counted, but the list is NULL");
    for (int32_t i = 0; i < def->n_shared; i++) {
        if (!def->shared[i])
            return us_error_set(err, US_ERR_ARG, NULL, NULL, "shared topic %d has no name", i);
    }
    us_status status = usi_shadow_check(&def->shadow, err);
    return status ? status : usi_handover_check_def(&def->handover, err);
}

static void init_locks(us_switch *sw) {
    pthread_rwlockattr_t gate;
    pthread_rwlockattr_init(&gate);
    // Writers first: a stream of samples must not keep a change waiting.
    pthread_rwlockattr_setkind_np(&gate, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&sw->gate, &gate);
    pthread_rwlockattr_destroy(&gate);
    usi_cond_init(&sw->wake);
    usi_cond_init(&sw->search_wake);
    usi_cond_init(&sw->lease.wake);
    usi_cond_init(&sw->lease.changed);
    pthread_mutex_init(&sw->lease.lock, NULL);
    pthread_mutex_init(&sw->lock, NULL);
    pthread_mutex_init(&sw->queue_lock, NULL);
    pthread_mutex_init(&sw->estimate_lock, NULL);
    pthread_cond_init(&sw->queue_wake, NULL);
}

// The topics of the authority in one domain.
static us_status join_authority(us_switch *sw, us_bus *bus, int32_t node, us_writer **out_writer,
                                us_error *err) {
    us_topic_def topic = {"/understudy/authority",
                          usi_type_string,
                          {.is_reliable = true, .is_transient_local = true, .depth = 1},
                          node};
    us_reader *reader = NULL;
    us_status status = us_bus_add_writer(bus, &topic, out_writer, err);
    // Volatile: authority that was published before this switch started is old.
    topic.qos = (us_qos){.is_reliable = true, .depth = 10};
    if (!status) status = us_bus_add_reader(bus, &topic, on_authority, sw, &reader, err);
    topic.topic = "/understudy/authority/request";
    return status ? status : us_bus_add_reader(bus, &topic, on_request, sw, &reader, err);
}

static us_status join(us_switch *sw, const us_switch_def *def, us_error *err) {
    char name[80];
    snprintf(name, sizeof name, "switch_%s", sw->robot);
    us_status status = us_bus_open(&def->operators, &sw->operators, err);
    if (!status) status = us_bus_open(&def->hardware, &sw->sources[US_SWITCH_HARDWARE], err);
    if (!status) status = us_bus_open(&def->proxy, &sw->sources[US_SWITCH_PROXY], err);
    if (!status) sw->identity = us_hash_bytes(5, sw->operators->id, sizeof sw->operators->id);
    for (int i = 0; i < 2 && !status; i++)
        status = us_bus_add_node(sw->sources[i], "/understudy", name, &sw->source_node[i], err);
    if (!status && sw->is_visible)
        status = us_bus_add_node(sw->operators, "/understudy", name, &sw->operators_node, err);
    // before all that commands: a gate meets the switch first
    if (!status) status = usi_lease_join(sw, def->is_standby, def->is_keeping, err);
    if (!status) status = usi_switch_open_shadow(sw, &def->shadow, err);
    if (!status) status = usi_handover_join(sw, err);
    // Who looks after a source, for example by the proxy's page, subscribes and asks in its domain.
    for (int i = 0; i < 2 && !status; i++)
        status = join_authority(sw, sw->sources[i], sw->source_node[i], &sw->source_authority[i], err);
    if (!status && sw->is_visible)
        status = join_authority(sw, sw->operators, sw->operators_node, &sw->authority_writer, err);
    for (int32_t i = 0; i < def->n_topic && !status; i++)
        status = usi_switch_add_declared(sw, &def->topics[i], err);
    return status;
}

// Copies what the definition says; names without the prefix of ROS topics get it.
static void copy_def(us_switch *sw, const us_switch_def *def) {
    sw->allocator = def->allocator;
    sw->on_change = def->on_change;
    sw->on_event = def->on_event;
    sw->is_visible = def->is_visible;
    sw->is_secret = def->is_secret;
    sw->context = def->context;
    snprintf(sw->robot, sizeof sw->robot, "%s", def->robot);
    if (def->heartbeat)
        snprintf(sw->heartbeat, sizeof sw->heartbeat, "%s%.250s", def->heartbeat[0] == '/' ? "rt" : "",
                 def->heartbeat);
    for (int32_t i = 0; i < def->n_shared; i++) {
        const char *topic = def->shared[i];
        snprintf(sw->shared[sw->n_shared++], USI_NAME, "%s%.250s", topic[0] == '/' ? "rt" : "", topic);
    }
}

// Routes, the forwarder's thread, and the three networks.
static us_status open_routes(us_switch *sw, const us_switch_def *def, us_error *err) {
    sw->routes = usi_alloc(&sw->allocator, USI_MAX_ROUTE * sizeof *sw->routes, _Alignof(usi_route));
    if (!sw->routes)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for the topics of a switch");
    memset(sw->routes, 0, USI_MAX_ROUTE * sizeof *sw->routes);
    sw->has_forwarder = pthread_create(&sw->forwarder, NULL, usi_switch_forward, sw) == 0;
    if (!sw->has_forwarder) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no thread for a switch");
    return join(sw, def, err);
}

// The threads that discover topics and keep the authority.
static us_status start_threads(us_switch *sw, us_error *err) {
    usi_switch_search(sw, search_for);
    sw->has_discoverer = pthread_create(&sw->discoverer, NULL, usi_switch_discover, sw) == 0;
    sw->has_thread = sw->has_discoverer && pthread_create(&sw->thread, NULL, run, sw) == 0;
    return sw->has_thread ? US_OK : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no thread for a switch");
}

us_status us_switch_open(const us_switch_def *def, us_switch **out_switch, us_error *err) {
    if (!def || !out_switch)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "us_switch_open needs a definition and a place for the switch");
    *out_switch = NULL;
    us_status status = check_def(def, err);
    if (status) return status;
    us_switch *sw = usi_alloc(&def->allocator, sizeof *sw, _Alignof(us_switch));
    if (!sw) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a switch");
    memset(sw, 0, sizeof *sw);
    copy_def(sw, def);
    status = usi_switch_read_rules(sw, def->rules, def->n_rule, err);
    if (!status) status = usi_switch_read_selections(sw, def->selections, def->n_selection, err);
    if (status) {
        usi_release(&def->allocator, sw, sizeof *sw, _Alignof(us_switch));
        return status;
    }
    usi_authority_init(&sw->authority, def->mode, def->on_loss, (int64_t)(1e9 * def->watchdog),
                       first_epoch());
    atomic_store(&sw->epoch, sw->authority.epoch);
    sw->since = usi_switch_wall_time();
    snprintf(sw->reason, sizeof sw->reason, "the switch was started");
    init_locks(sw);
    status = usi_handover_open(sw, &def->handover, err);
    us_status log_status = usi_event_log_open(sw, err);
    if (!status) status = log_status;
    if (!status) status = open_routes(sw, def, err);
    if (!status && def->motors.is_on) status = usi_motor_relay_open(sw, &def->motors, &sw->motors, err);
    if (!status) status = start_threads(sw, err);
    if (status) {
        us_switch_close(sw);
        return status;
    }
    *out_switch = sw;
    return US_OK;
}

void us_switch_close(us_switch *sw) {
    if (!sw) return;
    pthread_mutex_lock(&sw->lock);
    sw->is_closing = true;
    pthread_cond_signal(&sw->wake);
    pthread_cond_signal(&sw->search_wake);
    pthread_mutex_unlock(&sw->lock);
    if (sw->has_discoverer) pthread_join(sw->discoverer, NULL);
    if (sw->has_thread) {
        pthread_join(sw->thread, NULL);
        usi_match_end(sw);
    }
    usi_motor_relay_close(sw->motors);
    pthread_mutex_lock(&sw->queue_lock);
    sw->is_queue_closed = true;
    pthread_cond_signal(&sw->queue_wake);
    pthread_mutex_unlock(&sw->queue_lock);
    if (sw->has_forwarder) pthread_join(sw->forwarder, NULL);
    // No sample passes from here on: the buses close one after the other.
    pthread_rwlock_wrlock(&sw->gate);
    if (!sw->is_withdrawn && sw->has_thread) usi_switch_stop_source(sw, sw->authority.control);
    sw->is_withdrawn = true;
    pthread_rwlock_unlock(&sw->gate);
    usi_lease_close(sw);
    us_bus_close(sw->operators);
    us_bus_close(sw->sources[0]);
    us_bus_close(sw->sources[1]);
    usi_switch_release_routes(sw);
    usi_switch_release_types(sw);
    usi_switch_close_shadow(sw);
    usi_event_log_close(sw);
    usi_handover_close(sw);
    usi_release(&sw->allocator, sw->list, (size_t)sw->cap_list * sizeof *sw->list, _Alignof(us_endpoint));
    pthread_rwlock_destroy(&sw->gate);
    pthread_cond_destroy(&sw->lease.wake);
    pthread_cond_destroy(&sw->lease.changed);
    pthread_mutex_destroy(&sw->lease.lock);
    pthread_cond_destroy(&sw->wake);
    pthread_cond_destroy(&sw->search_wake);
    pthread_mutex_destroy(&sw->lock);
    pthread_cond_destroy(&sw->queue_wake);
    pthread_mutex_destroy(&sw->queue_lock);
    pthread_mutex_destroy(&sw->estimate_lock);
    us_allocator allocator = sw->allocator;
    usi_release(&allocator, sw, sizeof *sw, _Alignof(us_switch));
}

#include "switch/lease.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/monotonic_cond.h"
#include "bus/bus.h"
#include "switch/switch.h"
#include "wire/cdr.h"
#include "wire/messages.h"

// Steps of the thread, ns, and how long a switch that is closed waits until its releases are confirmed.
static const int64_t step = 5 * INT64_C(1000000), farewell = 100 * INT64_C(1000000);

static struct timespec deadline_of(int64_t time) {
    return (struct timespec){.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000};
}

// ---- permission ----

// With the lock held.
static void publish_permits(usi_lease_client *c, int64_t now) {
    for (int i = 0; i < 2; i++)
        atomic_store(&c->permit[i], usi_tenure_permit(&c->tenure, (us_switch_source)i, now));
    atomic_store(&c->state, (int)c->tenure.state);
    pthread_cond_broadcast(&c->changed);
}

bool usi_lease_permits(const us_switch *sw, us_switch_source source) {
    return usi_switch_now() < atomic_load(&sw->lease.permit[source]);
}

bool usi_lease_wait(us_switch *sw, us_switch_source source, int64_t timeout) {
    usi_lease_client *c = &sw->lease;
    struct timespec until = deadline_of(usi_switch_now() + timeout);
    bool is_late = false;
    pthread_mutex_lock(&c->lock);
    while (!usi_lease_permits(sw, source) && !is_late)
        is_late = pthread_cond_timedwait(&c->changed, &c->lock, &until) != 0;
    pthread_mutex_unlock(&c->lock);
    return usi_lease_permits(sw, source);
}

void usi_lease_update(us_switch *sw) {
    usi_lease_client *c = &sw->lease;
    const usi_authority *a = &sw->authority;
    us_gate_role roles[2] = {US_GATE_PASSIVE, US_GATE_PASSIVE};
    if (a->mode == US_MODE_SHADOW) roles[US_SWITCH_PROXY] = US_GATE_BESIDE;
    if (sw->handover.match.is_on) roles[US_SWITCH_HARDWARE] = US_GATE_BESIDE;
    if (a->control != US_SWITCH_NOBODY) roles[a->control] = US_GATE_ACTIVE;
    pthread_mutex_lock(&c->lock);
    if (memcmp(roles, c->tenure.wanted, sizeof roles) != 0) {
        usi_tenure_want(&c->tenure, roles);
        publish_permits(c, usi_switch_now());
        pthread_cond_signal(&c->wake);
    }
    pthread_mutex_unlock(&c->lock);
}

// ---- answers and discovery ----

// With the lock held: whether a sample is of a gate of that source.
static bool is_gates(const usi_lease_client *c, us_switch_source source, const us_sample *sample) {
    usi_gate_id writer = usi_gate_id_of(sample->writer);
    return usi_gate_id_is_listed(c->found[source].gates, c->found[source].n_gate, &writer);
}

static void on_answer(void *context, const us_sample *sample) {
    usi_lease_side *side = context;
    us_switch *sw = side->sw;
    usi_lease_client *c = &sw->lease;
    size_t length = 0;
    const char *text = usi_cdr_view_text(sample->bytes, sample->length, &length);
    usi_lease_answer answer;
    if (!text || !usi_lease_answer_read(text, length, &answer) || strcmp(answer.robot, sw->robot) != 0)
        return;
    pthread_mutex_lock(&c->lock);
    if (!is_gates(c, side->source, sample)) {
        pthread_mutex_unlock(&c->lock);
        return;
    }
    int64_t now = usi_switch_now();
    usi_tenure_take(&c->tenure, side->source, &answer, now);
    usi_lease *gate = &c->tenure.gates[side->source];
    if (gate->is_restarted) atomic_store(&c->is_restarted[side->source], true);
    gate->is_restarted = false;
    publish_permits(c, now);
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

void usi_lease_discovered(us_switch *sw, us_switch_source source, const usi_gate_discovery *found) {
    usi_lease_client *c = &sw->lease;
    pthread_mutex_lock(&c->lock);
    c->found[source] = *found;
    usi_tenure_set_kind(&c->tenure, source, found->kind, usi_switch_now());
    usi_tenure_set_ready(&c->tenure, source, found->is_ready);
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

void usi_lease_hear(us_switch *sw) {
    usi_lease_client *c = &sw->lease;
    if (atomic_exchange(&c->is_hearing, true)) return;
    pthread_mutex_lock(&c->lock);
    usi_tenure_hear(&c->tenure);
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

usi_tenure usi_lease_get(us_switch *sw) {
    usi_lease_client *c = &sw->lease;
    pthread_mutex_lock(&c->lock);
    usi_tenure t = c->tenure;
    pthread_mutex_unlock(&c->lock);
    return t;
}

bool usi_lease_has_gate(us_switch *sw) {
    usi_tenure t = usi_lease_get(sw);
    return t.gates[0].kind == USI_GATE_PRESENT || t.gates[1].kind == USI_GATE_PRESENT;
}

bool usi_lease_is_early(us_switch *sw) {
    if (usi_lease_state(&sw->lease) != USI_TENURE_WAITING) return false;
    usi_tenure t = usi_lease_get(sw);
    int64_t now = usi_switch_now();
    return !usi_tenure_is_held_by_another(&t.gates[0], now) &&
           !usi_tenure_is_held_by_another(&t.gates[1], now);
}

// ---- the thread ----

static void send(const usi_lease_side *side, usi_lease_request *request) {
    char line[USI_LEASE_LINE];
    uint8_t bytes[USI_LEASE_LINE + 32];
    size_t length = 0;
    snprintf(request->robot, sizeof request->robot, "%s", side->sw->robot);
    usi_lease_request_write(request, line);
    us_msg_string message = {.data = line};
    if (!us_message_encode(usi_type_string, &message, bytes, sizeof bytes, &length))
        (void)us_writer_write(side->writer, bytes, length, 0);  // one that is lost is sent again
}

static void log_gates(us_switch *sw, const usi_tenure *t, int64_t now) {
    usi_lease_client *c = &sw->lease;
    for (int i = 0; i < 2; i++) {
        usi_lease_side *side = &c->sides[i];
        const char *name = us_switch_source_name((us_switch_source)i);
        if (t->gates[i].kind == USI_GATE_ABSENT && !side->is_absence_logged) {
            side->is_absence_logged = true;
            usi_switch_log(sw,
                           "the %s has no gate: a second switch cannot be kept from commanding it; link "
                           "understudy/gate.h into its program",
                           name);
        }
        if (t->gates[i].n_twin > 2 && !side->is_twin_logged) {
            side->is_twin_logged = true;
            usi_switch_log(sw, "two programs in the domain of the %s answer for %s: end one of them", name,
                           sw->robot);
        }
    }
    bool is_known = t->gates[0].kind == USI_GATE_PRESENT && t->gates[1].kind == USI_GATE_PRESENT;
    if (is_known && usi_tenure_is_ready(t, now) && !c->is_ready_logged) {
        c->is_ready_logged = true;
        usi_switch_log(sw, "ready: the gates answer, and commands would reach the sources");
    }
    bool is_held =
        usi_tenure_is_held_by_another(&t->gates[0], now) || usi_tenure_is_held_by_another(&t->gates[1], now);
    if (t->state == USI_TENURE_WAITING && is_held && !c->is_waiting_logged) {
        c->is_waiting_logged = true;
        usi_switch_log(sw, "waiting: another switch of this robot holds its leases%s",
                       t->is_taking ? " and is asked to give way" : "");
    }
    if (t->state == c->logged) return;
    c->logged = t->state;
    if (t->state == USI_TENURE_OFFICE && usi_lease_has_gate(sw))
        usi_switch_log(sw, "leased: hardware term %llu, proxy term %llu (0: no gate, or it is silent)",
                       (unsigned long long)(t->gates[0].role ? t->gates[0].term : 0),
                       (unsigned long long)(t->gates[1].role ? t->gates[1].term : 0));
}

static void *renew(void *context) {
    us_switch *sw = context;
    usi_lease_client *c = &sw->lease;
    for (bool is_over = false; !is_over;) {
        usi_lease_request requests[2];
        bool is_due[2];
        pthread_mutex_lock(&c->lock);
        struct timespec until = deadline_of(usi_switch_now() + step);
        if (!c->is_closing) pthread_cond_timedwait(&c->wake, &c->lock, &until);
        int64_t now = usi_switch_now();
        usi_tenure_step(&c->tenure, now);
        for (int i = 0; i < 2; i++)
            is_due[i] = usi_tenure_ask(&c->tenure, (us_switch_source)i, now, &requests[i]);
        publish_permits(c, now);
        usi_tenure t = c->tenure;
        is_over = c->is_closing;
        pthread_mutex_unlock(&c->lock);
        for (int i = 0; i < 2; i++) {
            if (is_due[i]) send(&c->sides[i], &requests[i]);
        }
        log_gates(sw, &t, now);
    }
    return NULL;
}

// ---- open and close ----

us_status usi_lease_join(us_switch *sw, bool is_standby, bool is_keeping, us_error *err) {
    usi_lease_client *c = &sw->lease;
    usi_gate_id self[2];
    for (int i = 0; i < 2; i++)
        self[i] = usi_gate_id_of(sw->sources[i]->id);
    char names[2][25];
    for (int i = 0; i < 2; i++)
        usi_gate_id_write(&self[i], names[i]);
    usi_switch_log(sw, "to the gates this switch is the participant %s (hardware) and %s (proxy)", names[0],
                   names[1]);
    usi_tenure_init(&c->tenure, self, !is_standby, !is_keeping, usi_switch_now());
    us_status status = US_OK;
    for (int i = 0; i < 2 && !status; i++) {
        c->sides[i].sw = sw;
        c->sides[i].source = (us_switch_source)i;
        us_topic_def topic = {
            .topic = "/understudy/lease_request", .type = usi_type_string, .node = sw->source_node[i]};
        topic.qos = (us_qos){.is_reliable = true, .depth = 16};
        status = us_bus_add_writer(sw->sources[i], &topic, &c->sides[i].writer, err);
        topic.topic = "/understudy/lease";
        us_reader *reader = NULL;
        if (!status)
            status = us_bus_add_reader(sw->sources[i], &topic, on_answer, &c->sides[i], &reader, err);
    }
    if (status) return status;
    c->has_thread = pthread_create(&c->thread, NULL, renew, sw) == 0;
    return c->has_thread ? US_OK : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no thread for a switch");
}

// Whether a gate may still count this switch as its holder.
static bool is_owing(const usi_lease_client *c, int64_t now) {
    for (int i = 0; i < 2; i++) {
        const usi_lease *g = &c->tenure.gates[i];
        if (g->kind == USI_GATE_PRESENT && g->role != US_GATE_NONE && now < g->until) return true;
    }
    return false;
}

void usi_lease_close(us_switch *sw) {
    usi_lease_client *c = &sw->lease;
    if (!c->has_thread) return;
    pthread_mutex_lock(&c->lock);
    usi_tenure_end(&c->tenure, "the switch is closed");
    publish_permits(c, usi_switch_now());
    pthread_cond_signal(&c->wake);
    int64_t until = usi_switch_now() + farewell;
    struct timespec deadline = deadline_of(until);
    while (is_owing(c, usi_switch_now()) && !pthread_cond_timedwait(&c->changed, &c->lock, &deadline)) {
    }
    c->is_closing = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
}

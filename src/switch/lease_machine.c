// Leases: which switch may command, and for how long.
//
// A switch in office holds the lease of every gate that it can hear, so that two switches that hear the same
// gate are never in office together. In office it gives each gate a role: active at the source in control,
// passive at the other. The active role is asked for only when the other gate has confirmed another role, has
// been silent for longer than any lease lasts, or does not exist: so no two gates take commands as active.
//
//     waiting --- no gate is held by another; hardware first, then proxy ---> office
//     office ---- another has the hardware's gate, or asks to take over ----> over
//
// The hardware's gate decides between two switches that each hold one: who holds the hardware's stays.
// A switch that only waits asks for nothing that another holds; it looks, and may say that it wants to take
// over, which the holder sees in the gate's answers.
#include "switch/lease_machine.h"

#include <stdio.h>
#include <string.h>

void usi_tenure_init(usi_tenure *t, const usi_gate_id self[2], bool is_taking, bool is_yielding,
                     int64_t now) {
    *t = (usi_tenure){.is_taking = is_taking, .is_yielding = is_yielding, .begun = now, .stepped = now};
    for (int i = 0; i < 2; i++) {
        t->gates[i].self = self[i];
        t->gates[i].heard = now;
        t->wanted[i] = US_GATE_PASSIVE;
    }
}

void usi_tenure_set_kind(usi_tenure *t, us_switch_source source, usi_gate_kind kind, int64_t now) {
    usi_lease *g = &t->gates[source];
    if (g->kind == kind) return;
    // A gate that was just discovered gets the time to answer.
    if (kind == USI_GATE_PRESENT && g->heard < now) g->heard = now;
    g->kind = kind;
}

void usi_tenure_set_ready(usi_tenure *t, us_switch_source source, bool is_ready) {
    t->gates[source].is_ready = is_ready;
}

void usi_tenure_hear(usi_tenure *t) { t->is_hearing = true; }

void usi_tenure_want(usi_tenure *t, const us_gate_role wanted[2]) {
    memcpy(t->wanted, wanted, sizeof t->wanted);
}

// ---- what is known of a gate ----

static bool is_held(const usi_lease *g, int64_t now) {
    return g->kind == USI_GATE_PRESENT && g->role != US_GATE_NONE && now < g->until;
}

static bool is_silent(const usi_lease *g, int64_t now) {
    return g->kind != USI_GATE_ABSENT && now - g->heard >= USI_LEASE_SILENCE;
}

bool usi_tenure_is_held_by_another(const usi_lease *g, int64_t now) {
    return g->kind == USI_GATE_PRESENT && g->access == US_GATE_HELD &&
           !usi_gate_id_equal(&g->holder, &g->self) && now < g->free_at;
}

// Nothing more is to be had of this gate before the switch may be in office.
static bool is_settled(const usi_lease *g, int64_t now) {
    return g->kind == USI_GATE_ABSENT || is_held(g, now) || is_silent(g, now);
}

// ---- answers ----

static const usi_lease_sent *find_sent(const usi_lease *g, uint64_t seq) {
    const usi_lease_sent *sent = &g->sent[seq % USI_LEASE_SENT];
    return seq != 0 && sent->seq == seq ? sent : NULL;
}

// The gate has begun anew: what it granted before is gone, and so are its nonces.
static void restart(usi_lease *g, uint64_t boot) {
    g->is_restarted = g->boot != 0;
    g->old_boot = g->boot;
    g->boot = boot;
    g->nonce = g->term = g->own_term = 0;
    g->is_lost = false;
    g->role = US_GATE_NONE;
    g->until = 0;
    g->access = US_GATE_OPEN;
}

static bool is_granted_to_self(const usi_lease *g, const usi_lease_answer *a) {
    return a->access == US_GATE_HELD && usi_gate_id_equal(&a->holder, &g->self);
}

// Terms grow by one with each grant: one that is missing was another's.
static void count_terms(usi_lease *g, const usi_lease_answer *a) {
    bool is_mine = is_granted_to_self(g, a);
    if (g->own_term > 0 && a->term > g->own_term + (is_mine ? 1 : 0)) g->is_lost = true;
    if (is_mine && a->term > g->own_term) g->own_term = a->term;
}

static void take_own(usi_lease *g, const usi_lease_answer *a) {
    const usi_lease_sent *sent = find_sent(g, a->seq);
    if (!sent || a->seq <= g->answered) return;
    g->answered = a->seq;
    g->nonce = a->nonce;
    g->nonce_base = sent->time;
    bool is_mine = is_granted_to_self(g, a);
    g->role = is_mine ? a->role : US_GATE_NONE;
    if (!is_mine) g->until = 0;
    if (is_mine && sent->base > 0 && sent->base + US_GATE_LEASE > g->until)
        g->until = sent->base + US_GATE_LEASE;
}

void usi_tenure_take(usi_tenure *t, us_switch_source source, const usi_lease_answer *a, int64_t now) {
    usi_lease *g = &t->gates[source];
    if (a->boot == 0) return;
    if (a->boot == g->old_boot) {
        // of a gate that is gone, or of a second program of this robot
        g->n_twin++;
        return;
    }
    usi_tenure_set_kind(t, source, USI_GATE_PRESENT, now);
    if (a->boot != g->boot) restart(g, a->boot);
    g->heard = now;
    bool is_own = usi_gate_id_equal(&a->asker, &g->self);
    count_terms(g, a);
    if (is_own) take_own(g, a);
    if (a->is_busy && !usi_gate_id_equal(&a->holder, &g->self)) t->is_busy = true;
    // An answer to another that was overtaken on its way says nothing new.
    if (a->term < g->term || (!is_own && is_held(g, now))) {
        if (!usi_gate_id_is_none(&a->taker)) g->taker = a->taker;
        return;
    }
    g->term = a->term;
    g->access = a->access;
    g->holder = a->holder;
    g->taker = a->taker;
    g->free_at = now + a->left + 2 * INT64_C(1000000);  // `left` is in whole milliseconds
}

// ---- office ----

void usi_tenure_end(usi_tenure *t, const char *why) {
    if (t->state == USI_TENURE_OVER) return;
    t->state = USI_TENURE_OVER;
    snprintf(t->why, sizeof t->why, "%s", why);
}

static bool is_asked_to_yield(const usi_lease *g, int64_t now) {
    return is_held(g, now) && !usi_gate_id_is_none(&g->taker) && !usi_gate_id_equal(&g->taker, &g->self);
}

// A switch that was stopped has not listened: that time is no silence of a gate.
static void count_silence(usi_tenure *t, int64_t now) {
    int64_t deaf = now - t->stepped - USI_LEASE_STEP;
    t->stepped = now;
    for (int i = 0; i < 2 && deaf > 0; i++)
        t->gates[i].heard = t->gates[i].heard + deaf < now ? t->gates[i].heard + deaf : now;
}

void usi_tenure_step(usi_tenure *t, int64_t now) {
    count_silence(t, now);
    const usi_lease *h = &t->gates[US_SWITCH_HARDWARE], *p = &t->gates[US_SWITCH_PROXY];
    if (t->state == USI_TENURE_WAITING) {
        t->gates[0].is_lost = t->gates[1].is_lost = false;
        if (is_settled(h, now) && is_settled(p, now)) t->state = USI_TENURE_OFFICE;
        return;
    }
    if (t->state == USI_TENURE_OVER) return;
    // Who lost a lease to another has nothing to come back to, also when that one is gone since: its commands
    // of before may still be under way, and nobody has asked for its mode again.
    if (h->is_lost || usi_tenure_is_held_by_another(h, now)) {
        usi_tenure_end(t, "another switch of this robot has got the lease of the hardware");
    } else if ((p->is_lost || usi_tenure_is_held_by_another(p, now)) && !is_held(h, now)) {
        usi_tenure_end(t, "another switch of this robot has got the lease of the proxy");
    } else if (t->is_yielding && (is_asked_to_yield(h, now) || is_asked_to_yield(p, now))) {
        usi_tenure_end(t, "another switch of this robot takes over");
    }
}

// ---- requests ----

// Who does not hear what the holder passes on is not ready to follow it: with the leases it would keep those
// away who do. Operators' programs discover a new reader when they do, and nothing in DDS says when.
bool usi_tenure_is_ready(const usi_tenure *t, int64_t now) {
    if (t->is_busy && !t->is_hearing && now - t->begun < USI_LEASE_HEARING) return false;
    for (int i = 0; i < 2; i++) {
        const usi_lease *g = &t->gates[i];
        bool has_answered = g->nonce != 0 && g->is_ready;
        if (g->kind == USI_GATE_PRESENT && !has_answered && !is_silent(g, now)) return false;
    }
    return true;
}

// While waiting: a look at every gate, and a lease where no gate is held by another, the hardware's first.
static us_gate_role choose_waiting(const usi_tenure *t, us_switch_source source, int64_t now) {
    if (!usi_tenure_is_ready(t, now)) return US_GATE_NONE;
    for (int i = 0; i < 2; i++) {
        if (usi_tenure_is_held_by_another(&t->gates[i], now)) return US_GATE_NONE;
    }
    bool is_turn = source == US_SWITCH_HARDWARE || is_settled(&t->gates[US_SWITCH_HARDWARE], now);
    return is_turn ? US_GATE_PASSIVE : US_GATE_NONE;
}

static us_gate_role choose_office(const usi_tenure *t, us_switch_source source, int64_t now) {
    const usi_lease *g = &t->gates[source], *other = &t->gates[1 - (int)source];
    us_gate_role wanted = t->wanted[source];
    if (wanted != US_GATE_ACTIVE || (g->role == US_GATE_ACTIVE && is_held(g, now))) return wanted;
    // Confirmed: the gate has answered a later request than the last for the active role.
    bool is_passive =
        is_held(other, now) && other->role != US_GATE_ACTIVE && other->answered > other->active_seq;
    bool may_be_active = other->kind == USI_GATE_ABSENT || is_passive || is_silent(other, now);
    return may_be_active ? US_GATE_ACTIVE : US_GATE_PASSIVE;
}

bool usi_tenure_ask(usi_tenure *t, us_switch_source source, int64_t now, usi_lease_request *out) {
    usi_lease *g = &t->gates[source];
    if (g->kind == USI_GATE_ABSENT) return false;
    us_gate_role role = t->state == USI_TENURE_WAITING  ? choose_waiting(t, source, now)
                        : t->state == USI_TENURE_OFFICE ? choose_office(t, source, now)
                                                        : US_GATE_NONE;
    // A release is repeated until the gate says that it has it.
    bool is_releasing = t->state == USI_TENURE_OVER;
    if (is_releasing && (g->seq == 0 || (g->role == US_GATE_NONE && g->answered == g->seq))) return false;
    bool is_wanting = role != g->role && !is_silent(g, now);
    bool is_first = g->kind == USI_GATE_PRESENT && g->nonce == 0 && !is_silent(g, now);
    bool is_lapsed = role != US_GATE_NONE && !is_held(g, now) && !is_silent(g, now);
    int64_t last = g->seq ? g->sent[g->seq % USI_LEASE_SENT].time : 0;
    int64_t period = is_wanting || is_first || is_lapsed ? USI_LEASE_RETRY : USI_LEASE_PERIOD;
    bool has_nonce = g->nonce != 0 && now - g->nonce_base < US_GATE_LEASE;
    bool is_new = role != g->asked || (has_nonce && !g->has_asked_with_nonce);
    if (g->seq > 0 && !is_new && now - last < period) return false;

    g->seq++;
    g->asked = role;
    if (role == US_GATE_ACTIVE) g->active_seq = g->seq;
    g->has_asked_with_nonce = has_nonce;
    g->sent[g->seq % USI_LEASE_SENT] =
        (usi_lease_sent){.seq = g->seq, .time = now, .base = g->nonce ? g->nonce_base : 0};
    *out = (usi_lease_request){.seq = g->seq, .boot = g->boot, .nonce = g->nonce, .role = role};
    out->term = t->state == USI_TENURE_OFFICE ? g->own_term : 0;
    out->is_take = t->is_taking && t->state == USI_TENURE_WAITING && usi_tenure_is_ready(t, now);
    return true;
}

int64_t usi_tenure_permit(const usi_tenure *t, us_switch_source source, int64_t now) {
    const usi_lease *g = &t->gates[source], *other = &t->gates[1 - (int)source];
    us_gate_role wanted = t->wanted[source];
    if (t->state != USI_TENURE_OFFICE || (wanted != US_GATE_ACTIVE && wanted != US_GATE_BESIDE)) return 0;
    if (g->kind == USI_GATE_PRESENT) {
        bool is_granted = is_held(g, now) && g->role == wanted && g->asked == wanted;
        return is_granted ? g->until : 0;
    }
    // Without a gate of its own it is the other's lease that keeps a second switch away.
    if (is_held(other, now))
        return other->role != US_GATE_ACTIVE || wanted == US_GATE_BESIDE ? other->until : 0;
    return other->kind != USI_GATE_PRESENT || is_silent(other, now) ? INT64_MAX : 0;
}

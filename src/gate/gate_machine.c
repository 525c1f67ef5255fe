// The gate: who may command a robot.
//
//              request                     release, or role none
//     open ---------------> held ------------------------------> open
//       ^                    | time over
//       |   release          v                request
//       +---------------- closed ----------------------------> held, of a new term
//
// Requests count only with the nonce of a recent answer to the same participant: who cannot hear the gate
// cannot ask for anything, and what is old does nothing. A holder is never put out: another participant that
// asks to take over is named in the answers, and waits until the holder releases or its time is over.
#include "gate/gate_machine.h"

#include <string.h>

bool usi_gate_id_equal(const usi_gate_id *a, const usi_gate_id *b) {
    return memcmp(a->v, b->v, sizeof a->v) == 0;
}

bool usi_gate_id_is_none(const usi_gate_id *id) {
    static const usi_gate_id none;
    return usi_gate_id_equal(id, &none);
}

bool usi_gate_id_is_listed(const usi_gate_id *list, int32_t n, const usi_gate_id *id) {
    for (int32_t i = 0; i < n; i++) {
        if (usi_gate_id_equal(&list[i], id)) return true;
    }
    return false;
}

usi_gate_id usi_gate_id_of(const uint8_t writer[16]) {
    usi_gate_id id;
    memcpy(id.v, writer, sizeof id.v);
    return id;
}

void usi_gate_machine_init(usi_gate_machine *m, uint64_t boot) {
    *m = (usi_gate_machine){.boot = boot, .access = US_GATE_OPEN};
}

static bool is_commanding(us_gate_role role) { return role == US_GATE_ACTIVE || role == US_GATE_BESIDE; }

static void set_role(usi_gate_machine *m, us_gate_role role) {
    if (is_commanding(m->role) && !is_commanding(role)) m->n_end++;
    m->role = role;
}

bool usi_gate_machine_tick(usi_gate_machine *m, int64_t now) {
    if (m->access != US_GATE_HELD || now < m->expiry) return false;
    m->access = US_GATE_CLOSED;
    set_role(m, US_GATE_NONE);
    return true;
}

static bool is_holder(const usi_gate_machine *m, const usi_gate_id *id) {
    return m->access == US_GATE_HELD && usi_gate_id_equal(&m->holder, id);
}

// The time at which a nonce was given to a participant; -1: never, or too long ago.
static int64_t find_nonce(const usi_gate_nonce *list, uint32_t cap, const usi_gate_id *asker, uint64_t value,
                          int64_t now) {
    for (uint32_t i = 0; i < cap; i++) {
        const usi_gate_nonce *n = &list[i];
        if (n->value == value && usi_gate_id_equal(&n->asker, asker) && now - n->time < US_GATE_LEASE)
            return n->time;
    }
    return -1;
}

static void give_nonce(usi_gate_machine *m, const usi_gate_id *asker, int64_t now, uint64_t value) {
    usi_gate_nonce nonce = {.value = value, .time = now, .asker = *asker};
    if (is_holder(m, asker)) {
        m->own[m->n_own++ % USI_GATE_OWN] = nonce;
    } else {
        m->others[m->n_others++ % USI_GATE_OTHERS] = nonce;
    }
}

static usi_gate_asker *find_known(usi_gate_machine *m, const usi_gate_id *id) {
    uint32_t n = m->n_known < USI_GATE_KNOWN ? m->n_known : USI_GATE_KNOWN;
    for (uint32_t i = 0; i < n; i++) {
        if (usi_gate_id_equal(&m->known[i].id, id)) return &m->known[i];
    }
    return NULL;
}

// What a participant asked for before its last request was overtaken on its way.
static bool is_overtaken(usi_gate_machine *m, const usi_gate_id *asker, uint64_t seq) {
    if (usi_gate_id_equal(&m->holder, asker) && seq <= m->seq) return true;
    usi_gate_asker *known = find_known(m, asker);
    if (known && seq <= known->seq) return true;
    if (!known) known = &m->known[m->n_known++ % USI_GATE_KNOWN];
    *known = (usi_gate_asker){.id = *asker, .seq = seq};
    return false;
}

static void grant(usi_gate_machine *m, const usi_gate_id *asker, const usi_lease_request *r, int64_t given) {
    m->access = US_GATE_HELD;
    m->term++;
    m->holder = *asker;
    m->seq = r->seq;
    m->expiry = given + US_GATE_LEASE;
    if (usi_gate_id_equal(&m->taker, asker)) m->taker = (usi_gate_id){{0}};
    set_role(m, r->role);
}

static void release(usi_gate_machine *m) {
    m->access = US_GATE_OPEN;
    set_role(m, US_GATE_NONE);
}

// A request with a nonce that was given at the time `given`.
static void decide(usi_gate_machine *m, const usi_gate_id *asker, const usi_lease_request *r, int64_t given,
                   int64_t now) {
    bool was_holder = usi_gate_id_equal(&m->holder, asker);
    if (was_holder && m->access != US_GATE_OPEN && r->role == US_GATE_NONE) {
        m->seq = r->seq;
        release(m);
    } else if (is_holder(m, asker)) {
        m->seq = r->seq;
        if (given + US_GATE_LEASE > m->expiry) m->expiry = given + US_GATE_LEASE;
        set_role(m, r->role);
    } else if (m->access == US_GATE_HELD) {
        if (r->is_take) {
            m->taker = *asker;
            m->taker_until = now + US_GATE_LEASE;
        }
    } else if (r->role != US_GATE_NONE && (r->term == 0 || r->term == m->term)) {
        // Another term since: commands of the asker's own may still be under way, and it has to know first.
        grant(m, asker, r, given);
    }
}

bool usi_gate_machine_take(usi_gate_machine *m, const usi_gate_id *asker, const usi_lease_request *request,
                           int64_t now, uint64_t fresh, usi_lease_answer *out) {
    usi_gate_machine_tick(m, now);
    if (usi_gate_id_is_none(asker) || (unsigned)request->role >= (unsigned)US_GATE_N_ROLE) return false;
    if (is_overtaken(m, asker, request->seq)) return false;
    if (now >= m->taker_until) m->taker = (usi_gate_id){{0}};
    if (request->boot == m->boot && request->nonce != 0) {
        int64_t given = find_nonce(m->own, USI_GATE_OWN, asker, request->nonce, now);
        if (given < 0) given = find_nonce(m->others, USI_GATE_OTHERS, asker, request->nonce, now);
        if (given >= 0) decide(m, asker, request, given, now);
    }
    give_nonce(m, asker, now, fresh);
    *out = (usi_lease_answer){.boot = m->boot,
                              .asker = *asker,
                              .seq = request->seq,
                              .nonce = fresh,
                              .term = m->term,
                              .access = m->access,
                              .role = m->role,
                              .taker = m->taker,
                              .is_busy = m->admitted > 0 && now - m->admitted < USI_GATE_BUSY};
    memcpy(out->robot, request->robot, sizeof out->robot);
    if (m->access == US_GATE_HELD) {
        out->holder = m->holder;
        out->left = m->expiry - now;
    }
    return true;
}

bool usi_gate_machine_admit(usi_gate_machine *m, const usi_gate_id *writer, int64_t now) {
    usi_gate_machine_tick(m, now);
    bool is_admitted = false;
    switch (m->access) {
    case US_GATE_OPEN:
        is_admitted = !find_known(m, writer);
        break;
    case US_GATE_HELD:
        is_admitted = is_commanding(m->role) && usi_gate_id_equal(&m->holder, writer);
        if (is_admitted) m->admitted = now;
        break;
    default:
        break;
    }
    if (is_admitted) {
        m->n_admitted++;
    } else {
        m->n_refused++;
    }
    return is_admitted;
}

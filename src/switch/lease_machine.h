// The leases of a switch at the gates of its two sources, as a state machine without clocks, threads or
// sockets: it is fed answers and times, and says what to ask for and what may be commanded until when.
// src/gate/gate_machine.h is the other side.
#ifndef USI_SWITCH_LEASE_MACHINE_H
#define USI_SWITCH_LEASE_MACHINE_H

#include "gate/gate_machine.h"
#include "understudy/switch.h"

// ns: between two renewals; between two requests while something is wanted; and silence of a gate after which
// its lease is over, whoever held it; and the longest time between two steps that counts as silence.
#define USI_LEASE_PERIOD (US_GATE_LEASE / 4)
#define USI_LEASE_RETRY (20 * INT64_C(1000000))
#define USI_LEASE_SILENCE (US_GATE_LEASE + 50 * INT64_C(1000000))
#define USI_LEASE_STEP (20 * INT64_C(1000000))

// ns: from the start of a switch, how long it waits to hear the commands that another passes on. DDS repeats
// an announcement that was lost after a second.
#define USI_LEASE_HEARING (3000 * INT64_C(1000000))

enum { USI_LEASE_SENT = 32 };

// What discovery says of a source.
typedef enum usi_gate_kind {
    USI_GATE_UNKNOWN,  // the source was not discovered yet
    USI_GATE_ABSENT,   // it takes commands and has no gate
    USI_GATE_PRESENT,
} usi_gate_kind;

typedef struct usi_lease_sent {
    uint64_t seq;
    int64_t time;  // ns: before it was sent
    int64_t base;  // the same of the request to which the repeated nonce was the answer; 0: without a nonce
} usi_lease_sent;

// The lease at one source.
typedef struct usi_lease {
    usi_gate_kind kind;
    bool is_ready;     // commands would reach the source
    usi_gate_id self;  // this switch's participant in the source's domain

    uint64_t seq, answered;  // of the last request, and of the last that was answered
    uint64_t active_seq;     // of the last request for the active role, which may still be under way
    usi_lease_sent sent[USI_LEASE_SENT];
    us_gate_role asked;         // by the last request
    bool has_asked_with_nonce;  // one that was not too old

    uint64_t boot, old_boot, nonce;
    int64_t nonce_base;
    int64_t heard;  // ns: the last answer, or when the switch, or the gate, came; -> silence

    // What the gate said last.
    us_gate_access access;
    usi_gate_id holder, taker;
    int64_t free_at;  // ns: when the lease of another holder is over
    uint64_t term;

    us_gate_role role;  // granted
    int64_t until;      // ns: the grant may be used until then
    uint64_t own_term;  // of the last grant; 0: none
    bool is_lost;       // another switch was granted a lease since

    bool is_restarted;  // the gate has begun anew; the caller clears it
    int32_t n_twin;     // answers of an earlier start: where they go on, two programs play this robot
} usi_lease;

typedef enum usi_tenure_state {
    USI_TENURE_WAITING,  // nothing is passed on
    USI_TENURE_OFFICE,   // every gate that can be heard has leased to this switch
    USI_TENURE_OVER,     // another switch has, or wants, the leases: nothing is passed on ever again
} usi_tenure_state;

typedef struct usi_tenure {
    usi_lease gates[2];  // by us_switch_source
    usi_tenure_state state;
    bool is_taking;    // asks a holder to give way
    bool is_yielding;  // gives way when asked to
    bool is_busy;      // a gate took commands of another holder since this switch was started
    bool is_hearing;   // operators' commands reach this switch
    us_gate_role wanted[2];
    int64_t begun, stepped;  // ns
    char why[160];           // it is over
} usi_tenure;

void usi_tenure_init(usi_tenure *t, const usi_gate_id self[2], bool is_taking, bool is_yielding, int64_t now);
void usi_tenure_set_kind(usi_tenure *t, us_switch_source source, usi_gate_kind kind, int64_t now);
void usi_tenure_set_ready(usi_tenure *t, us_switch_source source, bool is_ready);
// A command of the operators has come in.
void usi_tenure_hear(usi_tenure *t);
// Whether every gate that can be heard has answered, commands would reach its source, and this switch hears
// those that another passes on.
bool usi_tenure_is_ready(const usi_tenure *t, int64_t now);
// The roles that the switch wants from here on; at most one of them is US_GATE_ACTIVE.
void usi_tenure_want(usi_tenure *t, const us_gate_role wanted[2]);
void usi_tenure_take(usi_tenure *t, us_switch_source source, const usi_lease_answer *answer, int64_t now);
// After each answer and every few milliseconds: whether the switch comes into office, or its tenure is over.
void usi_tenure_step(usi_tenure *t, int64_t now);
// Ends the tenure: leases are released.
void usi_tenure_end(usi_tenure *t, const char *why);
// Whether a request is to be sent to a source's gate now, and which. It counts as sent.
bool usi_tenure_ask(usi_tenure *t, us_switch_source source, int64_t now, usi_lease_request *out);
// ns: commands to the source may be written before that time; 0: none may.
int64_t usi_tenure_permit(const usi_tenure *t, us_switch_source source, int64_t now);
// Whether another switch holds a gate, by its last answers.
bool usi_tenure_is_held_by_another(const usi_lease *gate, int64_t now);

#endif

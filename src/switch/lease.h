// The leases of a switch on the network: requests and answers, and the thread that renews.
//
// The forwarder looks at `permit` before each command, by the monotonic clock: a process that was stopped
// finds its lease over before it writes. What it wrote all the same the gate refuses.
#ifndef USI_SWITCH_LEASE_H
#define USI_SWITCH_LEASE_H

#include <pthread.h>
#include <stdatomic.h>

#include "switch/lease_machine.h"
#include "understudy/bus.h"

enum { USI_MAX_GATE = 8 };

// What discovery found of a source.
typedef struct usi_gate_discovery {
    usi_gate_kind kind;
    bool is_ready;  // commands would reach it
    int32_t n_gate;
    usi_gate_id gates[USI_MAX_GATE];  // their participants: answers of others do not count
} usi_gate_discovery;

typedef struct usi_lease_side {
    us_switch *sw;
    us_switch_source source;
    us_writer *writer;
    bool is_absence_logged, is_twin_logged;
} usi_lease_side;

typedef struct usi_lease_client {
    usi_lease_side sides[2];
    pthread_t thread;
    bool has_thread, is_waiting_logged, is_ready_logged;
    usi_tenure_state logged;       // the last state in the log
    _Atomic int64_t permit[2];     // ns of usi_switch_now: commands may be written before it; 0: none
    _Atomic int state;             // usi_tenure_state
    _Atomic bool is_restarted[2];  // the source has begun anew; the switch's thread clears it
    _Atomic bool is_hearing;       // operators' commands come in

    pthread_mutex_t lock;  // guards what follows
    pthread_cond_t wake, changed;
    bool is_closing;
    usi_tenure tenure;
    usi_gate_discovery found[2];
} usi_lease_client;

// Once the buses are open.
us_status usi_lease_join(us_switch *sw, bool is_standby, bool is_keeping, us_error *err);
// Releases, ends the thread; before the buses are closed.
void usi_lease_close(us_switch *sw);
// What discovery says of a source.
void usi_lease_discovered(us_switch *sw, us_switch_source source, const usi_gate_discovery *found);
// A command of the operators has come in.
void usi_lease_hear(us_switch *sw);
// Asks for the roles that the authority needs as it is now; on the switch's thread. A permission that is not
// wanted any more is gone when it returns.
void usi_lease_update(us_switch *sw);
// Whether a command to that source may be written now.
bool usi_lease_permits(const us_switch *sw, us_switch_source source);
// Waits until it may, at most `timeout` ns; false when it may not then.
bool usi_lease_wait(us_switch *sw, us_switch_source source, int64_t timeout);
static inline usi_tenure_state usi_lease_state(const usi_lease_client *c) {
    return (usi_tenure_state)atomic_load(&c->state);
}
// A copy of what is known, and whether any source has a gate.
usi_tenure usi_lease_get(us_switch *sw);
bool usi_lease_has_gate(us_switch *sw);
// Whether this switch is not in office yet, and no other is as far as it knows.
bool usi_lease_is_early(us_switch *sw);

#endif

// A gate as a state machine without clocks, threads or sockets: it is fed requests, commands, times and
// random numbers. The lines of the lease's two topics are made and read here too.
//
// Why a lease ends at its holder before it ends here: the holder sends a request at s1, the gate answers with
// a fresh nonce at e1 >= s1; the holder repeats the nonce in its next request, and the gate grants until
// e1 + LEASE. When the grant is known the holder uses it until s1 + LEASE, which is never later. Neither
// needs the other's clock, and a grant is as old as the nonce, however long the request was under way.
#ifndef USI_GATE_GATE_MACHINE_H
#define USI_GATE_GATE_MACHINE_H

#include "understudy/gate.h"

enum { USI_GATE_OWN = 8, USI_GATE_OTHERS = 32, USI_GATE_KNOWN = 16, USI_LEASE_LINE = 320 };

// ns: a gate whose last command is older is quiet. Operators' programs send theirs ten times a second and
// more.
#define USI_GATE_BUSY (300 * INT64_C(1000000))

// A participant of the network: the prefix of its GUID.
typedef struct usi_gate_id {
    uint8_t v[12];
} usi_gate_id;

// What a switch asks for on /understudy/lease_request.
typedef struct usi_lease_request {
    char robot[US_GATE_NAME];
    uint64_t seq;          // grows with each request of a participant
    uint64_t boot, nonce;  // of the last answer to this participant; 0: none yet
    us_gate_role role;     // US_GATE_NONE: a release, or only a look
    uint64_t term;         // of the last lease that it was granted and counts on; 0: none
    bool is_take;          // the holder is asked to give the lease away
} usi_lease_request;

// What a gate says on /understudy/lease.
typedef struct usi_lease_answer {
    char robot[US_GATE_NAME];
    uint64_t boot;      // random, of each start of a gate
    usi_gate_id asker;  // whose request is answered
    uint64_t seq, nonce;
    uint64_t term;
    us_gate_access access;
    us_gate_role role;
    usi_gate_id holder;  // zeros: none
    int64_t left;        // ns until the lease ends
    usi_gate_id taker;   // who asks the holder to give way; zeros: nobody
    bool is_busy;        // a command of the holder's was taken lately
} usi_lease_answer;

// A number that was given with an answer. Who repeats it has heard the answer, at or after `time`.
typedef struct usi_gate_nonce {
    uint64_t value;
    int64_t time;
    usi_gate_id asker;
} usi_gate_nonce;

typedef struct usi_gate_asker {
    usi_gate_id id;
    uint64_t seq;  // of its last request
} usi_gate_asker;

typedef struct usi_gate_machine {
    uint64_t boot, term;
    us_gate_access access;
    us_gate_role role;
    usi_gate_id holder;  // or who had the last lease
    uint64_t seq;        // of the last request that it made
    int64_t expiry;      // ns
    usi_gate_id taker;
    int64_t taker_until;
    uint32_t n_own, n_others;          // nonces ever given: to the holder, which others cannot displace,
    usi_gate_nonce own[USI_GATE_OWN];  // and to others
    usi_gate_nonce others[USI_GATE_OTHERS];
    uint32_t n_known;  // participants that asked for a lease: an open gate is not open for them
    usi_gate_asker known[USI_GATE_KNOWN];
    int64_t n_admitted, n_refused, n_end;
    int64_t admitted;  // ns: the holder's last command; 0: none yet
} usi_gate_machine;

bool usi_gate_id_equal(const usi_gate_id *a, const usi_gate_id *b);
bool usi_gate_id_is_none(const usi_gate_id *id);
bool usi_gate_id_is_listed(const usi_gate_id *list, int32_t n, const usi_gate_id *id);
// 24 hexadecimal digits.
void usi_gate_id_write(const usi_gate_id *id, char out[25]);
// The participant of a writer.
usi_gate_id usi_gate_id_of(const uint8_t writer[16]);

void usi_gate_machine_init(usi_gate_machine *m, uint64_t boot);
// Ends a lease whose time is over; true when it did.
bool usi_gate_machine_tick(usi_gate_machine *m, int64_t now);
// A request of `asker`. `fresh` is a random number, not 0. False: no answer (an old request).
bool usi_gate_machine_take(usi_gate_machine *m, const usi_gate_id *asker, const usi_lease_request *request,
                           int64_t now, uint64_t fresh, usi_lease_answer *out);
// Whether a command of that participant is taken; counted. Nobody's zero id is taken but by an open gate.
bool usi_gate_machine_admit(usi_gate_machine *m, const usi_gate_id *writer, int64_t now);

// Lines; the length is below USI_LEASE_LINE. Reading is strict: false for anything that is not such a line.
void usi_lease_request_write(const usi_lease_request *request, char out[USI_LEASE_LINE]);
bool usi_lease_request_read(const char *text, size_t length, usi_lease_request *out);
void usi_lease_answer_write(const usi_lease_answer *answer, char out[USI_LEASE_LINE]);
bool usi_lease_answer_read(const char *text, size_t length, usi_lease_answer *out);

#endif

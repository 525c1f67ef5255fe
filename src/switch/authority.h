// Who is in control, as a state machine without clocks, threads or sockets: it is fed times and requests and
// answers with verdicts. tests/spin/authority.pml is the same machine for the model checker.
#ifndef USI_SWITCH_AUTHORITY_H
#define USI_SWITCH_AUTHORITY_H

#include "understudy/switch.h"

typedef struct usi_authority {
    us_switch_mode mode;
    us_switch_source control, voice;
    us_switch_loss on_loss;
    uint64_t epoch;
    int64_t watchdog;          // ns
    int64_t heard[2];          // ns of a clock that does not go back; 0: never
    int64_t counting;          // the watchdog counts from here on, ns; 0: not yet, nobody was heard
    bool is_waiting;           // both are lost: the first who is heard plays
    us_switch_source lost;     // while it waits: who had control,
    us_switch_mode lost_mode;  // and in which mode
} usi_authority;

// What shall be. Nothing has changed until it is applied.
typedef struct usi_verdict {
    bool is_refused, is_change;
    bool is_waiting;  // a stop until one of the two is heard again
    us_switch_mode mode;
    us_switch_source control, voice;
    char reason[160];  // of the change, or of the refusal
} usi_verdict;

void usi_authority_init(usi_authority *a, us_switch_mode mode, us_switch_loss on_loss, int64_t watchdog,
                        uint64_t epoch);
// The last samples of the sources came at these times (0: never). Times before those known already count for
// nothing.
void usi_authority_hear(usi_authority *a, const int64_t heard[2]);
bool usi_authority_is_alive(const usi_authority *a, us_switch_source source, int64_t now);
usi_verdict usi_authority_ask(const usi_authority *a, us_switch_mode mode, int64_t now);
// How long the one in control has been silent, ns; 0 where nobody is, or the watchdog does not count yet.
int64_t usi_authority_silence(const usi_authority *a, int64_t now);
// Who gets control when the one who has it, or had it last, is lost: NOBODY where the rule says stop.
us_switch_source usi_authority_successor(const usi_authority *a);
usi_verdict usi_authority_watch(const usi_authority *a, int64_t now);
// The epoch grows: to `least` when that is more than one step, so that it keeps growing over restarts.
void usi_authority_apply(usi_authority *a, const usi_verdict *verdict, uint64_t least);

#endif

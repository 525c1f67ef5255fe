// The authority of a switch as a state machine without clocks, threads or sockets: it is fed times and
// requests and answers with verdicts. tests/spin/authority.pml is the same machine for the model checker.
#ifndef USI_SWITCH_AUTHORITY_MACHINE_H
#define USI_SWITCH_AUTHORITY_MACHINE_H

#include "understudy/switch.h"

typedef struct usi_authority {
    us_switch_mode mode;
    us_switch_source control, output_source;
    us_switch_loss on_loss;
    uint64_t epoch;
    int64_t watchdog;          // ns
    int64_t heard[2];          // last sample of each source, ns of a monotonic clock; 0: never
    int64_t counting;          // the watchdog counts from here on, ns; 0: not yet, no source has published
    bool is_restarted[2];      // it was started again, and has not published since
    bool is_waiting;           // both are lost: the first that publishes again gets control
    us_switch_source lost;     // while waiting: which source had control,
    us_switch_mode lost_mode;  // and in which mode
} usi_authority;

// A proposed change, or a refusal. Nothing changes until it is applied.
typedef struct usi_verdict {
    bool is_refused, is_change;
    bool is_waiting;  // a stop until one of the two publishes again
    us_switch_mode mode;
    us_switch_source control, output_source;
    char reason[160];  // of the change, or of the refusal
} usi_verdict;

void usi_authority_init(usi_authority *a, us_switch_mode mode, us_switch_loss on_loss, int64_t watchdog,
                        uint64_t epoch);
// Arrival times of the sources' last samples (0: never). Times before those known already are ignored.
void usi_authority_observe(usi_authority *a, const int64_t heard[2]);
// The source was started again: it is lost until it publishes.
void usi_authority_forget(usi_authority *a, us_switch_source source);
bool usi_authority_is_alive(const usi_authority *a, us_switch_source source, int64_t now);
usi_verdict usi_authority_ask(const usi_authority *a, us_switch_mode mode, int64_t now);
// Silence of the source in control, ns; 0 where none is in control, or the watchdog does not count yet.
int64_t usi_authority_silence(const usi_authority *a, int64_t now);
// The source that gets control when the one that has it, or had it last, is lost; NOBODY: a stop.
us_switch_source usi_authority_successor(const usi_authority *a);
usi_verdict usi_authority_watch(const usi_authority *a, int64_t now);
// Applies a verdict. The epoch grows by one, or to min_epoch where that is more, so that it keeps growing
// over restarts.
void usi_authority_apply(usi_authority *a, const usi_verdict *verdict, uint64_t min_epoch);

#endif

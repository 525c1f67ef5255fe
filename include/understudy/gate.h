// The gate of a robot: the robot's own side of the lease that a switch must hold to command it.
//
// A gate stands in the robot's program (hardware or simulation), on the bus on which its commands arrive. It
// grants leases: at most one participant of the network holds one, in a role that says whether its commands
// are taken. Commands of others are refused while there is a holder, and after a lease that ended without a
// release. A gate that was never leased, or was released, is open: anybody may command, as without a gate.
//
//     us_gate_open(&def, &gate, &err);                   // before the readers of commands
//     in the callback of a command:  if (!us_gate_admit(gate, 0, sample)) return;
//
// A lease ends US_GATE_LEASE after the gate gave the number that the holder's last request repeats, by the
// gate's monotonic clock alone. So a request that lay in a queue, or was sent by a process that was stopped
// meanwhile, renews nothing. docs/switch.md has the protocol and what it guarantees.
//
// All functions may be called from any thread. A gate has a thread that answers. The library of the gate is
// robot-side: it contains nothing of the simulation.
#ifndef UNDERSTUDY_GATE_H
#define UNDERSTUDY_GATE_H

#include "understudy/base.h"
#include "understudy/bus.h"

#ifdef __cplusplus
extern "C" {
#endif

// Lifetime of a lease, ns. A holder renews every US_GATE_LEASE / 4.
#define US_GATE_LEASE INT64_C(400000000)

// Longest name of a robot, with its end.
enum { US_GATE_NAME = 64 };

typedef enum us_gate_role {
    US_GATE_NONE,
    US_GATE_PASSIVE,  // nobody's commands are taken
    US_GATE_BESIDE,  // the holder's are, though another source of its robot is in control: copies of commands
    US_GATE_ACTIVE,  // the holder's are: this source is in control
    US_GATE_N_ROLE
} us_gate_role;
US_API const char *us_gate_role_name(us_gate_role role);  // "none", "passive" ...; "" for a bad number

typedef enum us_gate_access {
    US_GATE_OPEN,    // no lease: anybody's commands are taken
    US_GATE_HELD,    // as the role of the holder says
    US_GATE_CLOSED,  // a lease ended without a release: nobody's commands are taken until the next one
    US_GATE_N_ACCESS
} us_gate_access;

typedef enum us_gate_event {
    US_GATE_LEASED,    // a new holder, or the old one again after its lease had ended
    US_GATE_RELEASED,  // by the holder
    US_GATE_LAPSED,    // the lease ended without a release
    US_GATE_REFUSED,   // commands without a lease: once for each burst of them
    US_GATE_ENDED,     // commands of the holder were taken until now and are not any more: come to rest
} us_gate_event;
// On the gate's thread; `text` is one line with what happened and the remedy, "" for US_GATE_ENDED.
typedef void us_gate_event_function(void *context, int32_t robot, us_gate_event event, const char *text);

typedef struct us_gate us_gate;

typedef struct us_gate_def {
    us_allocator allocator;            // used from several threads
    us_bus *bus;                       // where the robots' commands arrive; must outlive the gate
    int32_t n_robot;                   // robots of this program; each has a lease of its own
    const char *const *robots;         // their namespaces, for example "k10"; copied
    us_gate_event_function *on_event;  // may be NULL
    void *context;
} us_gate_def;

US_API us_gate_def us_gate_def_default(void);  // allocator; the rest is the caller's
// US_ERR_VALUE for an invalid name.
US_API us_status us_gate_open(const us_gate_def *def, us_gate **out_gate, us_error *err);
// After the readers whose callbacks ask it, before the bus; NULL is allowed.
US_API void us_gate_close(us_gate *gate);

// Whether a command of that robot is to be obeyed now. Does not block; may be called in a sample's callback.
// True for a NULL gate.
US_API bool us_gate_admit(us_gate *gate, int32_t robot, const us_sample *sample);

typedef struct us_gate_state {
    us_gate_access access;
    us_gate_role role;   // of the holder
    uint64_t term;       // how many leases were granted; grows by one with each
    uint8_t holder[12];  // the holder's participant: the first bytes of its writers' ids
    int64_t left;        // ns until the lease ends; 0 without one
    int64_t n_admitted, n_refused;
    int64_t n_end;  // how often the holder's commands ceased to be taken: at each the robot comes to rest
} us_gate_state;
US_API us_gate_state us_gate_get_state(us_gate *gate, int32_t robot);  // zeros for a bad number

#ifdef __cplusplus
}
#endif
#endif

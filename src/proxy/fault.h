// Faults of a robot while it runs.
//
// All of them are part of the state: a blockage of the joint's (us_sim_set_blockage), the others of the
// robot's.
#ifndef USI_PROXY_FAULT_H
#define USI_PROXY_FAULT_H

#include "spec/fault_target.h"
#include "understudy/proxy.h"

// From now on the drive of a joint has this share (0 .. 1) of its strength left. `joint` and `robot` as the
// robot calls them. Between steps, on the sim's thread. Errors, after which nothing has changed: US_ERR_NAME
// for a robot that is not on the network and a joint without a drive, US_ERR_VALUE for a part of the strength
// of a drive that has no limit. `out_before` may be NULL.
us_status usi_proxy_set_strength(us_proxy *proxy, us_sim *sim, const char *robot, const char *joint,
                                 double share, double *out_before, us_error *err);

// Any fault but those of motors, or its end; what came of it goes into `reply`. Between steps, on the sim's
// thread. US_ERR_NAME for a robot that is not on the network, and a joint that it does not have.
us_status usi_proxy_set_fault(us_proxy *proxy, us_sim *sim, const char *robot, const usi_fault_words *words,
                              char *reply, size_t cap, us_error *err);

// The faults of a robot one by one: as the command would have them, "motor:front_left_drive=dead", and in
// words.
typedef void usi_fault_function(void *context, const char *what, const char *text);
void usi_proxy_each_fault(const us_proxy *proxy, const us_sim *sim, int32_t robot, usi_fault_function *each,
                          void *context);

// Scripted faults. A definition by number: NULL beyond the last; and whether it has come: 0 not yet, 1 it is
// there, 2 it was undone again.
const us_fault_def *usi_proxy_script(const us_proxy *proxy, int32_t robot, int32_t i);
int32_t usi_proxy_script_state(const us_proxy *proxy, const us_sim *sim, int32_t robot, int32_t i);
// One that is due at the sim's tick, or its end, as a world command; it counts as carried out from now on.
// False when there is none. Between steps, on the sim's thread; cheap when the scene has none.
bool usi_proxy_next_script(us_proxy *proxy, us_sim *sim, char *out, size_t cap);

#endif

// Faults of a robot's drives while it runs.
//
// Strength that is lost is part of the robot's state. A blockage is dry friction of the joint, and so part of the model: an edit brings it about
// (us_joint_def.blockage).
#ifndef USI_PROXY_FAULT_H
#define USI_PROXY_FAULT_H

#include "understudy/proxy.h"

// From now on the drive of a joint has this share (0 .. 1) of its strength left. `joint` and `robot` as the robot calls them. Between steps, on the
// sim's thread. Errors, after which nothing has changed: US_ERR_NAME for a robot that is not on the network and a joint without a drive, US_ERR_VALUE
// for a part of the strength of a drive that has no limit. `out_before` may be NULL.
us_status usi_proxy_set_strength(us_proxy *proxy, us_sim *sim, const char *robot, const char *joint, double share, double *out_before, us_error *err);

#endif

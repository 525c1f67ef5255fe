// A robot of the running simulation takes over the state of another one: where it is, how it moves, what its
// firmware was about to do.
#ifndef USI_PROXY_ADOPT_H
#define USI_PROXY_ADOPT_H

#include "understudy/proxy.h"
#include "wire/world_command.h"

// Between steps, on the sim's thread. Joints with a drive are where the command has them, and those that are
// not named stay. With `odom` the robot is put down on the ground there (usi_sim_settle), which moves its
// other joints; without it the base stays. The firmware goes on from there: odometry, wheels, the last
// command with its timeout; motions of single drives, trajectories and routes end. Faults stay. A line about
// the place goes into `reply`. Errors, after which nothing has changed: US_ERR_NAME for an unknown robot or
// joint, US_ERR_VALUE for what this robot cannot be or has not, and those of usi_sim_settle.
us_status usi_proxy_adopt(us_proxy *proxy, us_sim *sim, const char *robot, const usi_adopt *adopt,
                          char *reply, size_t cap, us_error *err);

#endif

// A robot of the running simulation takes over the state of another one: where it is, how it moves, what its
// firmware was about to do.
#ifndef USI_PROXY_ADOPT_H
#define USI_PROXY_ADOPT_H

#include "understudy/proxy.h"

enum { USI_ADOPT_JOINTS = 56 };  // with all other words they are the 64 that a command may have

enum {
    USI_ADOPT_ODOM = 1,
    USI_ADOPT_ORIGIN = 2,
    USI_ADOPT_VELOCITY = 4,
    USI_ADOPT_WANT = 8,
    USI_ADOPT_BATTERY = 16,
    USI_ADOPT_STAMP = 32,
};

typedef struct usi_adopt_joint {
    const char *name;  // without the robot's
    double q, v;
    bool has_v;
} usi_adopt_joint;

typedef struct usi_adopt {
    uint32_t has;      // USI_ADOPT_...
    double odom[3];    // m, m, rad: the base in the odometry's frame
    double origin[3];  // m, m, rad: the odometry's frame in the world; else that of the robot's start in the
                       // scene
    double velocity[3];   // m/s, m/s, rad/s: of the base in its own axes; else at rest
    double want[3], age;  // the velocity last commanded, and how long ago, s
    double battery;       // share of the charge, 0 .. 1
    int64_t stamp;        // ns: what the robot's clock shows now
    int32_t n_joint;
    usi_adopt_joint joint[USI_ADOPT_JOINTS];
} usi_adopt;

// Between steps, on the sim's thread. Joints with a drive are where they are told, and those that are not
// named stay. With `odom` the robot is put down on the ground there (usi_sim_settle), which moves its other
// joints; without it the base stays. The firmware goes on from there: odometry, wheels, the last command with
// its timeout; motions of single drives, trajectories and routes end. Faults stay. A line about the place
// goes into `reply`. Errors, after which nothing has changed: US_ERR_NAME for an unknown robot or joint,
// US_ERR_VALUE for what this robot cannot be or has not, and those of usi_sim_settle.
us_status usi_proxy_adopt(us_proxy *proxy, us_sim *sim, const char *robot, const usi_adopt *adopt,
                          char *reply, size_t cap, us_error *err);

#endif

// One world in several processes: each owns some of its robots and objects, steps these, and sends the others
// their state at every exchange point (docs/split.md).
//
//     us_split_create(world, bus, &def, &split, &err);     // before us_world_connect and the first step
//     us_split_wait(split, 0.02, &is_ready, &err);         // before each us_world_step
//     us_split_destroy(split);                             // before the world
//
// All run the same scene; every robot has one owner, and objects that nobody names belong to the owner of the
// first robot. All functions are for the thread that steps.
#ifndef UNDERSTUDY_SPLIT_H
#define UNDERSTUDY_SPLIT_H

#include "understudy/world.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_split us_split;

typedef struct us_split_def {
    const char *own;    // names of robots and objects, with commas between
    const char *share;  // the name of the shared world: letters, digits and _; default "world"
    double exchange;    // s, from one exchange point to the next, a multiple of the step; default 0.01
    double timeout;     // s: how long somebody may be silent while others wait; 0: for ever; default 60
} us_split_def;
US_API us_split_def us_split_def_default(void);

// On an open bus, which may be that of the robots. Robots that others own have no network here; world commands
// other than those about time are refused, and so is a recording. US_ERR_ARG when it comes too late.
US_API us_status us_split_create(us_world *world, us_bus *bus, const us_split_def *def, us_split **out_split,
                                 us_error *err);
// Stays up to 2 s for others that still need its last state. NULL is allowed.
US_API void us_split_destroy(us_split *split);
// Whether the next step can be made: others must have come so far. Waits for them, `seconds` at most. US_ERR_NAME,
// US_ERR_TREE and US_ERR_VALUE when owners, scenes or steps do not fit together, US_ERR_LIMIT when the timeout is
// over; err names whom. us_world_step without it fails with US_ERR_ARG where others are behind.
US_API us_status us_split_wait(us_split *split, double seconds, bool *out_is_ready, us_error *err);

#ifdef __cplusplus
}
#endif
#endif

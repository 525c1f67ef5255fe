// What rooms around a live world (view, split) use of it beside its public functions: hooks that it calls,
// and a few things to look at. The world knows none of them by name.
#ifndef USI_WORLD_HOOKS_H
#define USI_WORLD_HOOKS_H

#include "understudy/world.h"
#include "wire/world_command.h"
#include "world/revision.h"

enum { USI_WORLD_HOOKS = 4, USI_WORLD_SNAPSHOTS = 32, USI_WORLD_REPLY = 1024 };

// Functions that a world calls; each may be NULL. All but `log` are called by the thread that steps.
typedef struct usi_world_hooks {
    const char *name;  // of who adds them; must stay
    void *context;
    // A line of the log, from any thread. It must not log itself.
    void (*log)(void *context, int32_t level, double time, const char *text);
    // Another revision, other numbers of a pair, soil or region, or a jump of time.
    void (*changed)(void *context);
    // Whether another process of the same world carries a command out. It is refused here (`check`), and only
    // whoever waits for a reply of this world gets one: answers on the network are those of the other
    // process.
    bool (*is_elsewhere)(void *context, const usi_command *command);
    // Whether a command may be carried out.
    us_status (*check)(void *context, const usi_command *command, us_error *err);
    void (*poll)(void *context);  // with us_world_poll
    // Before a step: whether it can be made now; the wrenches that act in it from outside (NULL: none).
    us_status (*before_step)(void *context, bool *out_is_ready, us_error *err);
    const us_command *(*step_command)(void *context);
    us_status (*after_step)(void *context, us_error *err);
    bool is_partial;  // other processes change the state too: it cannot be recorded for replay
} usi_world_hooks;

// The hooks are copied. US_ERR_LIMIT when there is no room. On the thread that steps, as is removal, which is
// by context; after it none of them is called.
us_status usi_world_add_hooks(us_world *world, const usi_world_hooks *hooks);
void usi_world_remove_hooks(us_world *world, const void *context);
bool usi_world_has_hooks(const us_world *world, const char *name);

const us_allocator *usi_world_allocator(const us_world *world);
bool usi_world_is_connected(const us_world *world);
// Whether a robot's motors listen on another port than the scene's, which was taken; says so in `out`.
bool usi_world_moved_port(const us_world *world, int32_t robot, char *out, size_t cap);
// The tick was set by somebody else than a command: who keeps the pace is notified, and the state is
// published before the next step.
void usi_world_jumped(us_world *world);
// A reference to the revision of now, from any thread: usi_revision_unref gives it back.
usi_revision *usi_world_take_revision(us_world *world);

// Snapshots in the order in which they were made. On the thread that steps.
typedef struct usi_snapshot_info {
    const char *name;
    double time;  // s, simulated
} usi_snapshot_info;
int32_t usi_world_n_snapshot(const us_world *world);
usi_snapshot_info usi_world_get_snapshot(const us_world *world, int32_t i);

// What switches publish about who plays their robots: the last line of JSON of each robot, from any thread;
// returns how many.
enum { USI_AUTHORITY_ROBOTS = 4, USI_AUTHORITY_LINE = 1024 };
int32_t usi_authorities_copy(const us_world *world, char out[USI_AUTHORITY_ROBOTS][USI_AUTHORITY_LINE]);

#endif

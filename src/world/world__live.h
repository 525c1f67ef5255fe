// The inner part of a live world: sim, robots and the revision of now, with the commands that act on them.
//
// It is all that a recording which is run again needs. Time, snapshots, recordings and network belong to the
// world around it (world__inner.h).
#ifndef USI_WORLD_LIVE_H
#define USI_WORLD_LIVE_H

#include <pthread.h>

#include "understudy/proxy.h"
#include "wire/world_command.h"
#include "world/revision.h"

enum { USI_LIVE_ADDED = 32 };  // robots that were added and are still there

// Robots that were added while the world runs come and go. A new one is on the network already; one that
// goes is still there.
typedef void usi_live_robot(void *context, us_proxy *proxy, bool is_new);

typedef struct usi_live {
    us_allocator allocator;
    us_sim *sim;
    us_proxy *proxy;  // of the scene's own robots, the model's first n_own
    int32_t n_own;
    int32_t n_added;
    us_proxy *added[USI_LIVE_ADDED];  // of each of the others, in the model's order
    us_proxy_def proxy_def;
    us_bus *bus;  // NULL: no network
    usi_live_robot *on_robot;
    void *robot_context;
    pthread_mutex_t lock;    // of the pointer `revision`
    usi_revision *revision;  // of now; one reference
    bool is_replay;          // robots get their own commands from a recording: none is posted
    uint32_t last_revision;  // the highest number given so far
    int32_t max_group;       // objects and robots of the world that commands may lead to
} usi_live;

// Takes the reference over; makes the robots and the sim of it.
us_status usi_live_init(usi_live *live, const us_allocator *allocator, usi_revision *revision,
                        const us_proxy_def *proxy, int32_t n_thread, us_error *err);
// Commands may add so many objects to those of now; without it as many as they like.
void usi_live_limit(usi_live *live, int32_t max_object);
void usi_live_fini(usi_live *live);
// Robots that are added from now on are on the network.
us_status usi_live_connect(usi_live *live, us_bus *bus, us_error *err);
// The proxy of a robot, by its name or namespace; of an unknown one that of the scene's.
us_proxy *usi_live_find_proxy(const usi_live *live, const char *robot);
// A command back to the robot that listens to its topic, as us_proxy_post.
us_status usi_live_post(const usi_live *live, const char *topic, const us_message_type *type,
                        const char *source, const void *bytes, size_t length);
// Goes on with another revision: spec, model, robots and sim. On failure all is as before. It takes a
// reference of its own.
us_status usi_live_set_revision(usi_live *live, usi_revision *revision, us_error *err);
// Carries out a command that changes the world: from `pair` on in the list of verbs. `text` is the command as
// it was written. A line about the result goes into `reply` ("" when there is nothing to say). On failure
// nothing has changed.
us_status usi_live_apply(usi_live *live, const usi_command *command, const char *text, char *reply,
                         size_t cap, us_error *err);

// Faults of the scene's own script that are due: at each tick boundary, before the step and after the
// commands. `command` is room for one; `notify` gets each and may be NULL. None of it is recorded: the scene
// is, and the state says which were carried out.
enum { USI_SCRIPT_TEXT = USI_FAULT_TEXT + 256 };
typedef void usi_script_notify(void *context, const char *text, const char *reply);
us_status usi_live_run_scripts(usi_live *live, usi_command *command, usi_script_notify *notify, void *context,
                               us_error *err);

// ---------------------------------------------------------------- edits of a spec (live_edit.c)

// A name of a command: an object, one of its links, or a shape of the world.
typedef struct usi_target {
    int32_t group, link, shape;  // -1: not that; of an object both the group and its root link
    bool is_floating;            // the object is moved in the sim, not in the spec
} usi_target;
us_status usi_target_find(const us_spec *spec, const char *name, usi_target *out, us_error *err);
// True when a command changes what the world is made of.
bool usi_is_edit(const usi_command *command, const usi_target *target);
us_status usi_spec_edit(us_spec *spec, const usi_command *command, us_error *err);
// The pose to which `move`, `raise` and `lower` bring what is at X.
us_pose usi_new_place(us_pose X, const usi_command *command);
// The robot that `fault` names, with joint and drive (-1: the part has none); and the blockage that the
// command wants there.
us_status usi_fault_robot(const us_spec *spec, const usi_command *command, int32_t *out_group,
                          int32_t *out_joint, int32_t *out_drive, us_error *err);
double usi_fault_blockage(const us_spec *spec, const usi_command *command, int32_t drive);
// The joint that `fault` breaks: any joint of a robot or object that does not float already.
us_status usi_break_find(const us_spec *spec, const usi_command *command, int32_t *out_joint, us_error *err);
// All the lines of usi_revision.edits in order.
us_status usi_spec_edit_all(us_spec *spec, const char *edits, us_error *err);

#endif

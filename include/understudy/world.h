// A live world: a sim with its robots on the network, world commands, snapshots and recordings.
//
//     us_world_create(spec, &def, &world, &err);
//     us_world_connect(world, bus, &err);              // or not
//     us_view_create(world, &view_def, &view, &err);   // or not: understudy/view.h
//     for (;;) {
//         us_world_poll(world);                        // commands that wait
//         if it is time: us_world_step(world, &err);   // the caller keeps the pace:
//         us_world_get_pace_request us_view_show(view, &pace);
//     }
//     us_view_destroy(view);
//     us_world_destroy(world);
//
// World commands (docs/world-commands.md) are lines of text that change the world or its time: they enter at
// a tick boundary, are answered and recorded. Edits compile a new model and carry the state over by name; a
// revision counts them. One world in several processes: understudy/split.h. Threads: one thread polls and
// steps; us_world_post and us_world_log are for any thread.
#ifndef UNDERSTUDY_WORLD_H
#define UNDERSTUDY_WORLD_H

#include "understudy/proxy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_world us_world;

typedef struct us_world_def {
    us_allocator allocator;  // several threads use it
    int32_t n_thread;        // of the sim; default 1
    us_proxy_def proxy;
    double rate;         // simulated seconds per second; 0: as fast as possible; default 1
    int32_t max_object;  // objects that commands may add to those of the spec; default 100
    // How the spec was made, for recordings that can be run again. Each may be NULL.
    const char *scene;       // path
    const char *base;        // "fixed", "floating"
    const char *parameters;  // "name=value" lines
    const char *search;      // directories, one per line
    bool exclude_overlaps;   // us_load_def.exclude_overlaps
    // Every line of us_world_log and of the world itself, on the thread that logs it; may be NULL.
    void (*log)(void *context, int32_t level, const char *text);
    void *log_context;
} us_world_def;

US_API us_world_def us_world_def_default(void);

// Compiles (warnings go to the spec), makes the proxy and the sim. The spec is copied.
US_API us_status us_world_create(us_spec *spec, const us_world_def *def, us_world **out_world, us_error *err);
US_API void us_world_destroy(
    us_world *world);  // after view and split, before the bus; ends its recording. NULL is allowed
US_API us_sim *us_world_get_sim(us_world *world);
US_API us_proxy *us_world_get_proxy(us_world *world);
US_API const us_spec *us_world_view_spec(const us_world *world);  // of the revision of now
US_API const us_model *us_world_view_model(const us_world *world);
// Model revision, from 1: indices, ids of values and views of spec and model are invalid when it changes.
// Every edit gives a new number; `reset` and `restore` bring back that of their model.
US_API uint32_t us_world_get_revision(const us_world *world);

// The robots on the network, and the topics /understudy/command (in) and /understudy/status (out, latched).
US_API us_status us_world_connect(us_world *world, us_bus *bus, us_error *err);

// Begins a recording that `us_world_verify` can run again, from the state of now; ends the one before. NULL
// ends it. A recording is one interval of time: `reset` and `restore` end it and begin another, NAME-2.mcap,
// NAME-3.mcap. Calls on the world's sim between ticks are recorded with the commands; those that set the
// whole state begin another interval, us_sim_replace ends the recording with an error in the log.
US_API us_status us_world_record(us_world *world, const char *path, us_error *err);
typedef struct us_world_recording {
    const char *path;  // NULL: nothing is recorded
    us_recorder_info info;
} us_world_recording;
US_API us_world_recording us_world_get_recording(const us_world *world);
// Runs a recording again, robots' commands and world commands alike; see us_proxy_verify. `spec` is that of
// the scene as loaded.
US_API us_status us_world_verify(const us_spec *spec, us_recording *recording,
                                 void (*progress)(void *context, double share), void *context,
                                 us_verify_result *out_result, us_error *err);

// The result of a command: status, and a line of text ("" when there is nothing to say). Called by the thread
// that polls.
typedef void us_world_reply(void *context, int64_t id, us_status status, const char *text);
// A world command; `source` names the sender ("page:3", "cli"). It is copied and enters at the next poll.
// US_ERR_LIMIT when too many wait (64) or it is too long (4096 bytes, and 128 KiB more of a robot's text:
// docs/world-commands.md); then there is no reply. `reply` may be NULL.
US_API us_status us_world_post(us_world *world, const char *source, const char *text, us_world_reply *reply,
                               void *context, int64_t id);
// Takes a context's replies away, for one that ends: none is called afterwards. One that is being called is
// waited for: hold no lock that it takes.
US_API void us_world_forget(us_world *world, const void *context);

// Takes the commands that wait. Never waits for anybody.
US_API void us_world_poll(us_world *world);
// One tick and its samples, also while paused. On failure the last tick is whole and err says why.
US_API us_status us_world_step(us_world *world, us_error *err);

// What the commands ask of the one who keeps the pace.
typedef struct us_pace_request {
    double rate;  // 0: as fast as possible
    bool is_paused;
    int64_t n_step;   // ticks to do while paused; us_world_step counts them down
    uint64_t change;  // another number when any of these, the tick (reset, restore) or the revision has been
                      // changed by a command
} us_pace_request;
US_API us_pace_request us_world_get_pace_request(const us_world *world);

// A line for the log: to us_world_def.log and the view; `level` 0 info, 1 warning, 2 error. Any thread.
US_API void us_world_log(us_world *world, int32_t level, const char *text);

#ifdef __cplusplus
}
#endif
#endif

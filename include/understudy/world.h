// A world on stage: a sim with its robots on the network, world commands, snapshots, recordings and the page.
//
//     us_world_create(spec, &def, &host, &err);
//     us_world_connect(host, bus, &err);              // or not
//     us_world_serve(host, &page_def, &err);          // or not
//     for (;;) {
//         us_world_poll(host);                        // commands that wait
//         if it is time: us_world_step(host, &err);   // the caller keeps the pace: us_world_get_pace_request
//         us_world_show(host, &pace);                 // a picture, when one is due
//     }
//
// World commands (docs/world-commands.md) are lines of text that change the world or its time: they enter at
// a tick boundary, are answered and recorded. Edits compile a new model and carry the state over by name; an
// epoch counts them. Threads: one thread turns, steps and shows; us_world_post is for any thread.
#ifndef UNDERSTUDY_HOST_H
#define UNDERSTUDY_HOST_H

#include "understudy/proxy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_world us_world;

typedef struct us_world_def {
    us_allocator allocator;  // several threads use it
    int32_t n_thread;        // of the sim; default 1
    us_proxy_def proxy;
    double rate;  // simulated seconds per second; 0: as fast as possible; default 1
    // How the spec was made, for recordings that can be run again. Each may be NULL.
    const char *scene;       // path
    const char *base;        // "fixed", "floating"
    const char *parameters;  // "name=value" lines
    const char *search;      // directories, one per line
    // Every line of us_world_log and of the host itself, on the thread that says it; may be NULL.
    void (*log)(void *context, int32_t level, const char *text);
    void *log_context;
} us_world_def;

US_API us_world_def us_world_def_default(void);

// Compiles (warnings go to the spec), makes the proxy and the sim. The spec is copied.
US_API us_status us_world_create(us_spec *spec, const us_world_def *def, us_world **out_host, us_error *err);
US_API void us_world_destroy(us_world *host);  // before the bus; ends a recording of its own. NULL is allowed
US_API us_sim *us_world_get_sim(us_world *host);
US_API us_proxy *us_world_get_proxy(us_world *host);
US_API const us_spec *us_world_view_spec(const us_world *host);  // of the epoch
US_API const us_model *us_world_view_model(const us_world *host);
// From 1; every edit gives a number that was not there before, and `reset` and `restore` bring back that of
// their world. With another number indices, ids of values and views of spec and model are others.
US_API uint32_t us_world_get_revision(const us_world *host);

// The robots on the network, and the topics /understudy/command (in) and /understudy/status (out, latched).
US_API us_status us_world_connect(us_world *host, us_bus *bus, us_error *err);

// One world in several processes: each owns some of its robots and objects, steps these, and tells the others
// where they are at every exchange point (docs/split.md). All run the same scene; every robot has one owner,
// and objects that nobody names belong to the one that owns the first robot.
typedef struct us_split_def {
    const char *own;  // names of robots and objects, with commas between
    const char
        *share;  // what those have in common who share this world: letters, digits and _; default "world"
    double exchange;  // s, from one exchange point to the next, a multiple of the step; default 0.01
    double timeout;   // s: how long somebody may be silent while others wait; 0: for ever; default 60
} us_split_def;
US_API us_split_def us_split_def_default(void);
// Before us_world_connect and the first step, on an open bus, which may be that of the robots. Robots that
// others own have no network here; world commands other than those about time are refused, and so is a
// recording.
US_API us_status us_world_split(us_world *host, us_bus *bus, const us_split_def *def, us_error *err);
// Whether the next step can be made: in a world of several processes others must have come so far. Waits for
// them, `seconds` at most. US_ERR_NAME, US_ERR_TREE and US_ERR_VALUE when owners, scenes or steps do not fit
// together, US_ERR_LIMIT when the timeout is over; err names whom.
US_API us_status us_world_wait(us_world *host, double seconds, bool *out_is_ready, us_error *err);

// Begins a recording that `us_world_verify` can run again, from the state of now; ends the one before. NULL
// ends it. A recording is one stretch of time: `reset` and `restore` end it and begin another, NAME-2.mcap,
// NAME-3.mcap.
US_API us_status us_world_record(us_world *host, const char *path, us_error *err);
typedef struct us_world_recording {
    const char *path;  // NULL: nothing is recorded
    us_recorder_info info;
} us_world_recording;
US_API us_world_recording us_world_get_recording(const us_world *host);
// Runs a recording again, robots' commands and world commands alike; see us_proxy_verify. `spec` is that of
// the scene as loaded.
US_API us_status us_world_verify(const us_spec *spec, us_recording *recording,
                                 void (*progress)(void *context, double share), void *context,
                                 us_verify_result *out_result, us_error *err);

// What came of a command: status, and a line of text ("" when there is nothing to say). Called by the thread
// that turns.
typedef void us_world_reply(void *context, int64_t id, us_status status, const char *text);
// A world command; `source` says who sent it ("page:3", "cli"). It is copied and enters at the next turn.
// US_ERR_LIMIT when too many wait (64) or it is too long (4096 bytes); then there is no reply. `reply` may be
// NULL.
US_API us_status us_world_post(us_world *host, const char *source, const char *text, us_world_reply *reply,
                               void *context, int64_t id);
// Takes a context's replies away, for one that ends: none is called afterwards. One that is being called is
// waited for: hold no lock that it takes.
US_API void us_world_forget(us_world *host, const void *context);

// Takes the commands that wait. Never waits for anybody.
US_API void us_world_poll(us_world *host);
// One tick and its samples, also while paused. On failure the last tick is whole and err says why.
US_API us_status us_world_step(us_world *host, us_error *err);

// What the commands ask of the one who keeps the pace.
typedef struct us_pace_request {
    double rate;  // 0: as fast as possible
    bool is_paused;
    int64_t n_step;   // ticks to do while paused; us_world_step counts them down
    uint64_t change;  // another number when any of these, the tick (reset, restore) or the epoch has been
                      // changed by a command
} us_pace_request;
US_API us_pace_request us_world_get_pace_request(const us_world *host);

// ---- the page ----

typedef struct us_page_def {
    const char *address;  // default "127.0.0.1"
    int32_t port;         // default 8080; 0: any
    const char *token;    // for control from clients of an address that is not loopback; NULL: one is made up
    bool search_free_port;  // when the port is taken, try the next 20; default true
} us_page_def;
US_API us_page_def us_page_def_default(void);
US_API us_status us_world_serve(us_world *host, const us_page_def *def, us_error *err);
US_API const char *us_world_view_url(
    const us_world *host);  // "http://localhost:8080/", with the token where one is needed; NULL: not served

// How the run goes, for the page.
typedef struct us_world_pace {
    double actual;   // simulated seconds per second, of late
    double step_us;  // wall time of a step, of late
    int64_t n_missed;
    double worst_late;  // s
} us_world_pace;
// Hands the world to the page when a picture is due (60 Hz at most) and somebody looks. Cheap when not: call
// it between batches and while paused.
US_API void us_world_show(us_world *host, const us_world_pace *pace);

// A line for the page's log, kept in bounds; `level` 0 info, 1 warning, 2 error. Any thread.
US_API void us_world_log(us_world *host, int32_t level, const char *text);

#ifdef __cplusplus
}
#endif
#endif

// A live world's own: queue of commands, pace, snapshots, recording, network.
//
// One thread polls and steps; the queue of commands, the pointer to the revision of now and the log are for
// any thread.
#ifndef USI_WORLD_INNER_H
#define USI_WORLD_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/text_value.h"
#include "world/hooks.h"
#include "world/world__live.h"
#include "world/world__recording.h"

enum { USI_WORLD_QUEUE = 64, USI_WORLD_SOURCE = 64, USI_WORLD_ANSWERS = 8 };

typedef struct usi_queued_command {
    char source[USI_WORLD_SOURCE];
    char text[USI_COMMAND_MAX + 1];
    char *long_text;  // instead of it, with a robot's text; the world's memory; NULL: none
    us_world_reply *reply;
    void *context;
    int64_t id;
} usi_queued_command;

typedef struct usi_snapshot {
    char name[USI_NAME_MAX + 1];
    usi_revision *revision;  // a reference
    void *bytes;
    size_t length;
    double time;  // s, simulated
} usi_snapshot;

// The result of a command, for subscribers of the status topic.
typedef struct usi_answer {
    char source[USI_WORLD_SOURCE];
    char text[256];  // cut
    bool is_ok;
    char message[USI_WORLD_REPLY];
} usi_answer;

typedef struct usi_topics usi_topics;
typedef struct usi_authorities usi_authorities;
typedef struct usi_simulation usi_simulation;

struct us_world {
    us_allocator allocator;
    us_world_def def;  // its texts lie in `texts`
    usi_arena texts;
    usi_live live;
    usi_revision *first;  // as loaded; a reference
    bool is_fresh;        // nothing was published since create, reset or restore
    us_pace_request request;
    _Atomic double time;  // s, simulated; for the log

    // Commands that wait: a ring.
    pthread_mutex_t queue_lock;
    usi_queued_command *queue;
    int32_t first_queued, n_queued;
    pthread_mutex_t reply_lock;  // recursive; held while a reply is called
    usi_queued_command *now;     // the one being answered
    usi_command *command;        // parsed
    bool is_elsewhere;           // another process carries it out

    int32_t n_snapshot;
    usi_snapshot snapshot[USI_WORLD_SNAPSHOTS];

    usi_world_recording recording;
    usi_world_recording added[USI_LIVE_ADDED];  // of robots that were added: .proxy NULL is free
    us_recorder *recorder;                      // NULL: nothing is recorded
    char *record_path;                          // of the file being written
    char *record_base;  // as it was asked for, and which of its intervals of time this is
    int32_t record_segment;
    bool may_overwrite;
    bool is_record_failed;  // it was logged
    bool has_grown;         // it was said that more room for contacts was made
    bool is_acting;         // a command, a script or a step changes the sim, rather than a call
    bool has_jumped;        // a call has set the whole state since the last tick
    int64_t held_ns;        // when ground that is lost was last looked for

    int32_t n_hooks;
    usi_world_hooks hooks[USI_WORLD_HOOKS];
    pthread_mutex_t hooks_lock;  // of the list, and held while `log` is called

    usi_topics *topics;
    usi_authorities *authorities;
    usi_simulation *simulation;
    int32_t n_answer;  // ever
    usi_answer answer[USI_WORLD_ANSWERS];
};

// snapshot.c. On the stepping thread.
us_status usi_world_snapshot(us_world *world, const char *name, char *reply, size_t cap, us_error *err);
us_status usi_world_restore(us_world *world, const char *name, us_error *err);
us_status usi_world_forget_snapshot(us_world *world, const char *name, us_error *err);
us_status usi_world_reset(us_world *world, bool keeps_edits, us_error *err);
void usi_world_drop_snapshots(us_world *world);
// Time has jumped: what is recorded begins anew, and the state is published before the next step.
void usi_world_land(us_world *world);

// calls.c: what a program sets in the sim itself (us_sim_set_*, us_sim_apply_*) while something is recorded.
void usi_calls_record(us_world *world, bool is_on);
void usi_calls_land(us_world *world);  // begins the next interval where a call has set the whole state
bool usi_is_call(const char *text);
us_status usi_call_apply(us_sim *sim, const char *text, us_error *err);

struct usi_input;
void usi_input_print(const struct usi_input *input, char *out, size_t cap);  // as a line of a recording

// holds.c: ground that is lost while the world runs.
void usi_holds_listen(us_world *world);
void usi_holds_poll(us_world *world);

// hooks.c
void usi_hooks_changed(us_world *world);
void usi_hooks_poll(us_world *world);
bool usi_hooks_are_elsewhere(const us_world *world, const usi_command *command);
us_status usi_hooks_check(us_world *world, const usi_command *command, us_error *err);
us_status usi_hooks_before_step(us_world *world, bool *out_is_ready, us_error *err);
// Wrenches of the one hook that has some; NULL: none.
const us_command *usi_hooks_step_command(us_world *world);
us_status usi_hooks_after_step(us_world *world, us_error *err);
void usi_hooks_log(us_world *world, int32_t level, const char *text);
bool usi_hooks_are_partial(const us_world *world);

// world_record.c
us_status usi_world_record(us_world *world, const char *path, bool may_overwrite, us_error *err);
us_status usi_world_record_end(us_world *world, us_error *err);
// Time has jumped: the interval that is recorded ends, and the next begins with the state of now.
us_status usi_world_record_next(us_world *world, us_error *err);
// A robot that was added comes or goes: its samples are recorded too. usi_live_robot.
void usi_world_record_robot(void *world, us_proxy *proxy, bool is_new);
void usi_world_record_check(us_world *world);  // logs once when the file can no longer be written

// topics.c: /understudy/command and /understudy/status.
us_status usi_topics_create(us_world *world, us_bus *bus, us_error *err);
void usi_topics_destroy(us_world *world);
void usi_topics_publish(us_world *world);  // something has changed
void usi_topics_poll(us_world *world);     // once a second
// Through the thread that sends the status; false when too much waits there.
bool usi_topics_send(us_world *world, us_writer *writer, const void *bytes, size_t length);

// authorities.c
us_status usi_authorities_create(us_world *world, us_bus *bus, int32_t node, us_error *err);
void usi_authorities_destroy(us_world *world);
us_status usi_authorities_ask(us_world *world, const char *robot, const char *mode, us_error *err);

// simulation.c: the services of simulation_interfaces.
us_status usi_simulation_create(us_world *world, us_bus *bus, int32_t node, us_error *err);
void usi_simulation_destroy(us_world *world);
void usi_simulation_poll(us_world *world);

#endif

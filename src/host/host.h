// Inside a host: the stage on which world commands act, and what belongs to the host alone.
//
// The stage is what a recording that is run again needs too: sim, robots and the world of now. Time,
// snapshots, recordings, page and network are the host's. One thread turns, steps and shows; the queue of
// commands, the pointer to the world of now and the log are for any thread.
#ifndef USI_WORLD_HOST_H
#define USI_WORLD_HOST_H

#include <pthread.h>
#include <stdatomic.h>

#include "host/command.h"
#include "host/page.h"
#include "host/world.h"
#include "understudy/world.h"

// ---------------------------------------------------------------- the stage (stage.c, edit.c)

typedef struct usi_live {
    us_allocator allocator;
    us_sim *sim;
    us_proxy *proxy;
    pthread_mutex_t lock;  // of the pointer `world`
    usi_revision *world;   // of now; one reference
    uint32_t last_epoch;   // the greatest that was given
} usi_live;

// Takes the world's reference over; makes the robots and the sim of it.
us_status usi_live_init(usi_live *stage, const us_allocator *allocator, usi_revision *world,
                        const us_proxy_def *proxy, int32_t n_thread, us_error *err);
void usi_live_fini(usi_live *stage);
// Another world takes the stage: spec, model, robots and sim. On failure all is as before. It takes a
// reference of its own.
us_status usi_live_set_world(usi_live *stage, usi_revision *world, us_error *err);
// A command that changes the world: from `pair` on in the list of verbs. `text` is the command as it was
// written. A line about what came of it goes into `reply` ("" when there is nothing to say). On failure
// nothing has changed.
us_status usi_live_apply(usi_live *stage, const usi_command *command, const char *text, char *reply,
                         size_t cap, us_error *err);

// The faults that the scene has in store and that are due: at each tick boundary, before the step and after
// the commands. `command` is room for one; `told` hears of each and may be NULL. Nothing of it is recorded:
// the scene is, and the state says which have come.
enum { USI_SCRIPT_TEXT = USI_FAULT_TEXT + 256 };
typedef void usi_script_told(void *context, const char *text, const char *reply);
us_status usi_live_run_scripts(usi_live *stage, usi_command *command, usi_script_told *told, void *context,
                               us_error *err);

// edit.c: what a command says about a spec alone.
// A name of a command: an object, one of its links, or a shape of the world.
typedef struct usi_target {
    int32_t group, link, shape;  // -1: not that; of an object both the group and its root link
    bool is_floating;            // the object is moved in the sim, not in the spec
} usi_target;
us_status usi_target_find(const us_spec *spec, const char *name, usi_target *out, us_error *err);
// True when a command changes what the world is made of.
bool usi_is_edit(const usi_command *command, const usi_target *target);
us_status usi_spec_edit(us_spec *spec, const usi_command *command, us_error *err);
// Where `move`, `raise` and `lower` put what is at X.
us_pose usi_new_place(us_pose X, const usi_command *command);
// The robot that `fault` names, with joint and drive (-1: the part has none); and the blockage that the
// command wants there.
us_status usi_fault_robot(const us_spec *spec, const usi_command *command, int32_t *out_group,
                          int32_t *out_joint, int32_t *out_drive, us_error *err);
double usi_fault_blockage(const us_spec *spec, const usi_command *command, int32_t drive);
// The joint that `fault` breaks: any joint of a robot or object that does not float already.
us_status usi_break_find(const us_spec *spec, const usi_command *command, int32_t *out_joint, us_error *err);
// All the lines of usi_revision.edits in turn.
us_status usi_spec_edit_all(us_spec *spec, const char *edits, us_error *err);

// ---------------------------------------------------------------- the host

enum {
    USI_WORLD_QUEUE = 64,
    USI_WORLD_SNAPSHOTS = 32,
    USI_WORLD_SOURCE = 64,
    USI_WORLD_REPLY = 1024,
    USI_WORLD_ANSWERS = 8
};

// A command that waits.
typedef struct usi_world_mail {
    char source[USI_WORLD_SOURCE];
    char text[USI_COMMAND_MAX + 1];
    us_world_reply *reply;
    void *context;
    int64_t id;
} usi_world_mail;

typedef struct usi_snapshot {
    char name[USI_NAME_MAX + 1];
    usi_revision *world;  // a reference
    void *bytes;
    size_t length;
    double time;  // s, simulated
} usi_snapshot;

// What came of a command, for those who listen on the network.
typedef struct usi_answer {
    char source[USI_WORLD_SOURCE];
    char text[256];  // cut
    bool is_ok;
    char message[USI_WORLD_REPLY];
} usi_answer;

typedef struct usi_topics usi_topics;
typedef struct usi_authorities usi_authorities;
typedef struct usi_share usi_share;

struct us_world {
    us_allocator allocator;
    us_world_def def;  // its texts lie in `texts`
    usi_arena texts;
    usi_live stage;
    usi_revision *first;  // as loaded; a reference
    bool is_fresh;        // nothing was published since create, reset or restore
    us_pace_request wish;
    _Atomic double time;  // s, simulated; for the log

    // Commands that wait: a ring.
    pthread_mutex_t queue_lock;
    usi_world_mail *queue;
    int32_t first_mail, n_mail;
    pthread_mutex_t reply_lock;  // recursive; held while a reply is called
    usi_world_mail *now;         // the one being answered
    usi_command *command;        // and what it says

    int32_t n_snapshot;
    usi_snapshot snapshot[USI_WORLD_SNAPSHOTS];

    us_recorder *recorder;  // NULL: nothing is recorded
    char *record_path;      // of the file being written
    char *record_base;      // as it was asked for, and which of its stretches of time this is
    int32_t record_segment;
    bool may_overwrite;
    bool is_record_failed;  // it was told

    usi_share *share;  // NULL: the whole world is here
    usi_page *page;    // NULL: not served
    usi_topics *topics;
    usi_authorities *authorities;
    int32_t n_answer;  // ever
    usi_answer answer[USI_WORLD_ANSWERS];
};

// A reference to the world of now, from any thread: usi_revision_unref gives it back.
usi_revision *usi_world_take_world(us_world *host);

// snapshot.c. On the stepping thread.
us_status usi_world_snapshot(us_world *host, const char *name, char *reply, size_t cap, us_error *err);
us_status usi_world_restore(us_world *host, const char *name, us_error *err);
us_status usi_world_forget_snapshot(us_world *host, const char *name, us_error *err);
us_status usi_world_reset(us_world *host, us_error *err);
void usi_world_drop_snapshots(us_world *host);
// In the order in which they were made.
static inline int32_t usi_world_n_snapshot(const us_world *host) { return host->n_snapshot; }
static inline const usi_snapshot *usi_world_view_snapshot(const us_world *host, int32_t i) {
    return &host->snapshot[i];
}

// record.c
us_status usi_world_record(us_world *host, const char *path, bool may_overwrite, us_error *err);
us_status usi_world_record_end(us_world *host, us_error *err);
// The time has jumped: the stretch of time that is recorded ends, and the next begins with the state of now.
us_status usi_world_record_next(us_world *host, us_error *err);
void usi_world_record_watch(us_world *host);  // tells once when the file can no longer be written

// share.c: the part of the world that other processes have. All do nothing when there is none.
void usi_share_destroy(us_world *host);
void usi_share_tend(us_world *host);
// What others push with in the next step, and what is told them after it.
const us_command *usi_share_command(us_world *host);
us_status usi_share_stepped(us_world *host, us_error *err);
// Commands that would change the world in one process alone: US_ERR_ARG.
us_status usi_share_check(const us_world *host, const usi_command *command, us_error *err);

// topics.c: /understudy/command and /understudy/status.
us_status usi_topics_create(us_world *host, us_bus *bus, us_error *err);
void usi_topics_destroy(us_world *host);
void usi_topics_tell(us_world *host);   // something has changed
void usi_topics_watch(us_world *host);  // once a second
// Through the thread that sends the status; false when too much waits there.
bool usi_topics_send(us_world *host, us_writer *writer, const void *bytes, size_t length);

// authority.c: what switches tell about who plays their robots, one line of JSON each.
enum { USI_AUTHORITY_ROBOTS = 4, USI_AUTHORITY_LINE = 1024 };
us_status usi_authorities_create(us_world *host, us_bus *bus, int32_t node, us_error *err);
void usi_authorities_destroy(us_world *host);
// The last line of each robot, from any thread; returns how many.
int32_t usi_authorities_copy(const us_world *host, char out[USI_AUTHORITY_ROBOTS][USI_AUTHORITY_LINE]);
us_status usi_authorities_ask(us_world *host, const char *robot, const char *mode, us_error *err);

#endif

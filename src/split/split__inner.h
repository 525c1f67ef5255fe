// One world in several processes: who owns what, what is exchanged and when, without any I/O.
//
// Bytes of other processes come in by usi_split_receive, the own ones leave by a function that the caller
// gives, and the time of the wall's clock is an argument. docs/split.md has the mathematics.
#ifndef USI_SPLIT_INNER_H
#define USI_SPLIT_INNER_H

#include "sim/sim.h"
#include "understudy/spec.h"
#include "wire/messages.h"

enum { USI_SPLIT_PEERS = 64, USI_SPLIT_LABEL = 80, USI_SPLIT_PUSHES = 1 << 16 };

typedef enum usi_split_kind {
    USI_SHARE_HELLO,
    USI_SHARE_POINT,
    USI_SHARE_RETURN,
    USI_SHARE_END
} usi_split_kind;

// ---------------------------------------------------------------- who owns what (ownership.c)

// A thing that has an owner is a group of the spec that moves: a robot, or an object.
typedef struct usi_ownership {
    const us_spec *spec;
    int32_t n_group, n_tree;
    int32_t *group_of_tree;  // -1: of none, owned by the first process
    bool *must_own;          // per group: somebody must name it
    bool *is_mobile;         // per group: it has a tree
} usi_ownership;

us_status usi_ownership_init(usi_ownership *e, const us_spec *spec, const us_model *model, usi_arena *arena,
                             us_error *err);
// "r1,r2" to marks per group. US_ERR_NAME for one that is not there, that cannot move, or that is named
// twice, and when no robot is among them; US_ERR_ARG when none is named.
us_status usi_ownership_parse(const usi_ownership *e, const char *text, bool *out_owns, us_error *err);
// The first robot of an owner: processes are ranked by it.
int32_t usi_ownership_first(const usi_ownership *e, const bool *owns);
// "r1, r2" of the marks; cut with "..." where it does not fit.
void usi_ownership_list(const usi_ownership *e, const bool *marks, char *out, size_t cap);
// Marks what must have an owner and has none among n owners; false when there is none.
bool usi_ownership_missing(const usi_ownership *e, const bool *const *owns, int32_t n, bool *out_missing);
// Whether what a loop or coupling holds together would have several owners: US_ERR_TREE. `owner` per tree.
us_status usi_ownership_check(const usi_ownership *e, const us_model *model, const int32_t *owner,
                              us_error *err);
// Whether the message of another process is about our own's world, in the same steps; err says what differs.
bool usi_split_fits(const us_msg_world_share *m, const us_msg_world_share *own, us_error *err);

// ---------------------------------------------------------------- the exchange (split.c)

// A message of another process about an exchange point, kept until it is used.
typedef struct usi_state_message {
    int64_t tick;  // -1: none
    void *memory;
    size_t size;
    const us_msg_world_share *message;
} usi_state_message;

typedef struct usi_peer {
    uint64_t id;
    char label[USI_SPLIT_LABEL];
    bool *owns;  // per group
    int32_t first;
    int64_t tick;  // of its last message
    bool has_begun, has_ended, is_logged;
    int64_t heard_ns;
    usi_state_message state[2];   // of its last two exchange points, in any order
    usi_state_message last_seen;  // the last state of our own that it has, for a process that comes back
    usi_state_message ending;     // its last message
} usi_peer;

typedef struct usi_split_def {
    us_allocator allocator;
    const char *own;
    const char *label;
    uint64_t id;
    double exchange;     // s
    int32_t n_interval;  // intervals of that from one exchange point to the next where all is far from what
                         // others own, the same everywhere; 0: one
    double timeout;      // s; 0: for ever
    void (*send)(void *context, const void *bytes, size_t length);
    void (*log)(void *context, int32_t level, const char *text);  // may be NULL
    void *context;
} usi_split_def;

typedef struct usi_split usi_split;

// Spec and sim must outlive it. US_ERR_VALUE when the exchange step is not a whole number of steps; errors of
// usi_ownership_parse.
us_status usi_split_create(const us_spec *spec, us_sim *sim, const usi_split_def *def, usi_split **out,
                           us_error *err);
void usi_split_destroy(usi_split *split);  // NULL is allowed; sends nothing: usi_split_end
bool usi_split_owns(const usi_split *split, int32_t group);
bool usi_split_is_first(
    const usi_split *split);  // it owns the first robot: it has what nobody names, and publishes /clock
// Bytes of anybody on the topic, the own ones included.
void usi_split_receive(usi_split *split, const void *bytes, size_t length, int64_t now_ns);
// Goes on as far as it can. *out_is_ready: the next step may be made. US_ERR_NAME for owners that do not fit
// together, US_ERR_VALUE for another scene or step, US_ERR_LIMIT when somebody has been silent for too long;
// err names whom.
us_status usi_split_poll(usi_split *split, int64_t now_ns, bool *out_is_ready, us_error *err);
// Forces of predecessors in the next step; NULL: none.
const us_command *usi_split_command(usi_split *split);
// After a step.
us_status usi_split_stepped(usi_split *split, us_error *err);
// While time stands still: repeats the last message now and then.
void usi_split_keep_alive(usi_split *split, int64_t now_ns);
void usi_split_end(usi_split *split);
// Whether somebody may still need the last message: a process that ends waits for them a little.
bool usi_split_is_needed(const usi_split *split);

typedef struct usi_split_counts {
    int64_t n_exchange;     // exchange points
    int64_t n_predecessor;  // those with a predecessor
    int64_t n_awake;        // ghosts that were awake
    int64_t n_force;        // forces sent
} usi_split_counts;
usi_split_counts usi_split_get_counts(const usi_split *split);

#endif

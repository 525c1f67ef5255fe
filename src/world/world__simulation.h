// simulation_interfaces: what its files share.
#ifndef USI_WORLD_SIMULATION_H
#define USI_WORLD_SIMULATION_H

#include "understudy/action.h"
#include "wire/messages.h"
#include "world/world__inner.h"

enum {
    USI_SIMULATION_SLOTS = 64,
    USI_ENTITY_NAME = 64,
};

// Results, and those of single services.
enum {
    USI_RESULT_NOT_SUPPORTED,
    USI_RESULT_DONE,
    USI_RESULT_NOT_FOUND,
    USI_RESULT_WRONG_STATE,
    USI_RESULT_FAILED
};
enum {
    USI_RESULT_ALREADY_SO = 101,
    USI_RESULT_NAME_TAKEN = 101,
    USI_RESULT_NAME_INVALID,
    USI_RESULT_FORMAT_UNKNOWN,
    USI_RESULT_NO_RESOURCE,
    USI_RESULT_NAMESPACE_INVALID
};
enum {
    USI_RESULT_NO_ROBOT = 106,
    USI_RESULT_NO_FILE,
    USI_RESULT_NOT_ALLOWED,
    USI_RESULT_SPAWN_POSE_INVALID,
    USI_RESULT_POSE_INVALID = 101
};

typedef enum usi_control_kind {
    USI_CONTROL_FEATURES,
    USI_CONTROL_RESET,
    USI_CONTROL_STEP,
    USI_CONTROL_GET_STATE,
    USI_CONTROL_SET_STATE,
    USI_CONTROL_SPAWN,
    USI_CONTROL_DELETE,
    USI_CONTROL_ENTITIES,
    USI_CONTROL_STATES,
    USI_CONTROL_INFO,
    USI_CONTROL_ENTITY_STATE,
    USI_CONTROL_SET_ENTITY,
    USI_CONTROL_SPAWNABLES,
    USI_CONTROL_N_KIND,
    USI_CONTROL_GOAL = USI_CONTROL_N_KIND,
} usi_control_kind;

typedef enum usi_request_stage {
    USI_SLOT_FREE,
    USI_SLOT_QUEUED,
    USI_SLOT_POSTED,
    USI_SLOT_STEPPING
} usi_request_stage;

typedef struct usi_request_slot {
    _Atomic usi_request_stage stage;
    usi_control_kind kind;
    us_request_id id;
    us_goal_id goal;
    uint8_t *bytes;
    size_t length;
    uint64_t order;
    char name[USI_ENTITY_NAME];   // of what is spawned
    bool is_robot;                // that it is
    int64_t first, target, told;  // ticks: of a step
} usi_request_slot;

typedef struct usi_control_desk {
    usi_simulation *s;
    usi_control_kind kind;
    us_service *service;
} usi_control_desk;

struct usi_simulation {
    us_world *w;
    usi_control_desk desks[USI_CONTROL_N_KIND];
    us_action_server *steps;
    us_action_types types;
    bool is_begun;  // somebody has paused it at the start, where it would be stopped
    _Atomic int32_t n_used;
    pthread_mutex_t lock;  // of the slots, until they are USI_SLOT_POSTED
    uint64_t n_order;
    usi_request_slot slots[USI_SIMULATION_SLOTS];
};

static inline char *usi_message_text(const char *in) {
    union {
        const char *in;
        char *out;
    } u = {.in = in};
    return u.out;
}

// The answer to a request, after which its slot is free: whole; or with a result, and all else empty.
void usi_simulation_send(usi_simulation *s, usi_request_slot *x, const void *message);
void usi_simulation_result(usi_simulation *s, usi_request_slot *x, int code, const char *why);
us_msg_result usi_result_of(int code, const char *why);
// A world command whose reply is the request's.
void usi_simulation_post(usi_simulation *s, usi_request_slot *x, const char *text);
// The group of an entity, -1: there is none of the name.
int32_t usi_simulation_find(const us_spec *spec, const char *name);
// Roll, pitch and yaw of a message's quaternion; false when it is none.
bool usi_read_pose(const us_msg_pose *m, double out_p[3], double out_rpy[3]);
bool usi_is_world_frame(const char *frame);

// simulation_spawn.c: which entities there may be; one of them; and why a robot is none.
void usi_list_spawnables(usi_simulation *s, usi_request_slot *x);
void usi_simulation_spawn(usi_simulation *s, usi_request_slot *x, const us_msg_spawn_entity_request *m);
int usi_spawn_result(us_status status);

#endif

// Actions inside: what server and client share.
#ifndef USI_BUS_ACTION_H
#define USI_BUS_ACTION_H

#include "bus/bus.h"
#include "understudy/action.h"
#include "wire/messages.h"

// Bytes of a message before and behind the goal's id, with which it begins.
enum { USI_GOAL_AT = 4, USI_GOAL_END = USI_GOAL_AT + (int)sizeof(us_goal_id) };

// Names of the parts of an action: "NAME/_action/PART".
us_status usi_action_part(const char *name, const char *part, char out[USI_NAME_LENGTH], us_error *err);
bool usi_action_has_types(const us_action_types *t);

static inline bool usi_goal_is(us_goal_id a, us_goal_id b) {
    for (size_t i = 0; i < sizeof a.bytes; i++) {
        if (a.bytes[i] != b.bytes[i]) return false;
    }
    return true;
}
us_goal_id usi_goal_get(const void *bytes);
void usi_goal_put(void *bytes, us_goal_id id);
int64_t usi_monotonic_ns(void);

#endif

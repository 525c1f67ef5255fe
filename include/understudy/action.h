// Actions on a bus, the way ROS 2 has them: goals that take their time, with feedback, a result, and a way to
// cancel. An action "/understudy/simulate_steps" is three services and two topics below it:
//
//     _action/send_goal     a goal with its id; whether it was accepted
//     _action/cancel_goal   one goal, all, or all up to a time
//     _action/get_result    is answered when the goal has ended
//     _action/feedback      while it is executed
//     _action/status        the state of every goal, kept for those who come late
//
//                  execute               finish
//     ACCEPTED ------------> EXECUTING ----------> SUCCEEDED, ABORTED
//         |                      |                     ^
//         |   on_cancel          |   on_cancel         | finish
//         +----------------------+----> CANCELING -----+----> CANCELED
//
// A goal that was accepted ends in one of three states, once. Services in both dialects
// (understudy/service.h); messages cross this interface as CDR with header (understudy/wire.h), and begin as
// the types of an action do: SendGoal_Request and FeedbackMessage with the goal's id, GetResult_Response with
// its status. Both are written here. All functions may be called from any thread, and none but those for the
// server from its callbacks.
#ifndef UNDERSTUDY_ACTION_H
#define UNDERSTUDY_ACTION_H

#include "understudy/interface.h"
#include "understudy/service.h"

#ifdef __cplusplus
extern "C" {
#endif

// As action_msgs/msg/GoalStatus numbers them. UNKNOWN: the server has no such goal, or had it before it was
// started again.
typedef enum us_goal_status {
    US_GOAL_UNKNOWN,
    US_GOAL_ACCEPTED,
    US_GOAL_EXECUTING,
    US_GOAL_CANCELING,
    US_GOAL_SUCCEEDED,
    US_GOAL_CANCELED,
    US_GOAL_ABORTED,
} us_goal_status;

typedef struct us_goal_id {
    uint8_t bytes[16];
} us_goal_id;

typedef struct us_action_types {
    const us_message_type *send_goal_request, *send_goal_response, *get_result_request, *get_result_response,
        *feedback;
} us_action_types;

// The types of an action, by "simulation_interfaces/action/SimulateSteps". US_ERR_NAME when one is unknown.
US_API us_status us_action_types_find(const char *name, us_action_types *out_types, us_error *err);
// The same of an interface, which has read Dig.action or an IDL file with all of them: "rover/action/Dig".
US_API us_status us_action_types_of(const us_interface *types, const char *name, us_action_types *out_types,
                                    us_error *err);

// ---------------------------------------------------------------- server

typedef struct us_action_server us_action_server;

typedef struct us_action_server_def {
    const char *name;  // ROS name, absolute
    us_action_types types;
    int32_t node;           // us_bus_add_node, or -1
    int32_t max_goal;       // that it remembers, ended ones included; default 64. More are refused
    double result_timeout;  // s that a result is kept after the end; default 900
    // On the bus's own thread. on_goal: whether to accept; `bytes` are SendGoal_Request. The goal exists
    // already and may be executed by another thread. on_cancel: whether it may be cancelled; NULL: always.
    // It is ended by us_action_server_finish as ever.
    bool (*on_goal)(void *context, us_goal_id id, const void *bytes, size_t length);
    bool (*on_cancel)(void *context, us_goal_id id);
    // ns: the time that a goal was accepted at; NULL: CLOCK_REALTIME.
    int64_t (*now)(void *context);
    void *context;
} us_action_server_def;

US_API us_action_server_def us_action_server_def_default(void);
US_API us_status us_bus_add_action_server(us_bus *bus, const us_action_server_def *def,
                                          us_action_server **out_server, us_error *err);
// Goals that are under way end as aborted, and those who wait for their results are told. A callback that is
// under way is waited for: hold no lock that it takes. NULL is allowed.
US_API void us_action_server_remove(us_action_server *server);
US_API us_goal_status us_action_server_get_status(us_action_server *server, us_goal_id id);
// US_ERR_NAME for a goal that is not known, US_ERR_VALUE for one whose state does not allow it: nothing
// happens then.
US_API us_status us_action_server_execute(us_action_server *server, us_goal_id id);
// FeedbackMessage, of a goal that has not ended. US_ERR_SYNTAX for bytes that are not.
US_API us_status us_action_server_send_feedback(us_action_server *server, us_goal_id id, const void *bytes,
                                                size_t length);
// The end: SUCCEEDED, ABORTED, or CANCELED of one that is CANCELING; `bytes` are GetResult_Response.
US_API us_status us_action_server_finish(us_action_server *server, us_goal_id id, us_goal_status status,
                                         const void *bytes, size_t length);

// ---------------------------------------------------------------- client

typedef struct us_action_client us_action_client;

typedef struct us_action_client_def {
    const char *name;
    us_action_types types;
    int32_t node;
    us_dialect dialect;
} us_action_client_def;

// What happened to a goal.
typedef enum us_action_event_kind {
    US_ACTION_NONE,
    US_ACTION_ACCEPTED,   // the result is asked for by itself
    US_ACTION_REFUSED,    // its end
    US_ACTION_FEEDBACK,   // bytes: FeedbackMessage
    US_ACTION_CANCELING,  // the server cancels it
    US_ACTION_KEPT,       // the server does not cancel it: refused, unknown, or ended; or none of all
    US_ACTION_RESULT,     // its end; bytes: GetResult_Response
} us_action_event_kind;

typedef struct us_action_event {
    us_action_event_kind kind;
    us_goal_id id;
    us_goal_status status;  // of a result
} us_action_event;

US_API us_status us_bus_add_action_client(us_bus *bus, const us_action_client_def *def,
                                          us_action_client **out_client, us_error *err);
US_API void us_action_client_remove(us_action_client *client);  // NULL is allowed
US_API bool us_action_client_is_ready(us_action_client *client);
// Sends a goal, SendGoal_Request, with an id of its own. US_ERR_LIMIT while 1024 of this client are open.
US_API us_status us_action_client_send(us_action_client *client, const void *bytes, size_t length,
                                       us_goal_id *out_id);
// Asks to cancel a goal; an id of zeros stands for all.
US_API us_status us_action_client_cancel(us_action_client *client, us_goal_id id);
// The next event; kind NONE: none waits (us_bus_wait waits for one). Its bytes go into buf; *out_length 0: it
// has none. US_ERR_LIMIT: they do not fit, *out_length says what buf has to have, and it stays. What is not
// answered for a second is asked again here, so call it now and then: each goal has one end, REFUSED or
// RESULT, as long as a server is there.
US_API us_status us_action_client_take(us_action_client *client, void *buf, size_t cap, size_t *out_length,
                                       us_action_event *out_event);

#ifdef __cplusplus
}
#endif
#endif

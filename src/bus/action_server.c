// A server of an action: its goals, each with its state, its result, and who waits for that.
//
// Requests come on the attendant's thread (bus/attendant.c); the program executes and finishes goals on its
// own. The table of goals is fixed: an ended goal makes room when its result has been kept for long enough,
// or when there is no other room; a goal that finds none is refused. A goal that is sent again with the same
// id gets the answer of the first time, so that a client may ask again when no answer came.
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "bus/action.h"
#include "bus/request.h"

enum { MAX_WAITING = 64, REPLY_BYTES = 16 };

typedef struct goal {
    us_goal_id id;
    us_goal_status status;  // UNKNOWN: the place is free
    bool is_judged;         // on_goal has accepted it
    int64_t stamp, ended;   // ns: when it was accepted, of the server's clock; and ended, CLOCK_MONOTONIC
    int32_t n_waiting;
    us_request_id waiting[MAX_WAITING];  // requests for its result
    uint8_t *result;
    size_t n_result;
} goal;

struct us_action_server {
    us_bus *bus;
    us_action_server_def def;
    us_service *send_goal, *cancel_goal, *get_result;
    us_writer *feedback, *status;
    pthread_mutex_t lock;  // of what follows
    goal *goals;
    us_msg_goal_status *list;  // max_goal of them, for the status
    uint8_t *bytes;            // of the status, encoded
    size_t n_byte;
};

us_action_server_def us_action_server_def_default(void) {
    return (us_action_server_def){.node = -1, .max_goal = 64, .result_timeout = 900};
}

static bool is_ended(us_goal_status status) { return status >= US_GOAL_SUCCEEDED; }

static goal *find(us_action_server *s, us_goal_id id) {
    for (int32_t i = 0; i < s->def.max_goal; i++) {
        if (s->goals[i].status != US_GOAL_UNKNOWN && usi_goal_is(s->goals[i].id, id)) return &s->goals[i];
    }
    return NULL;
}

static void release_goal(us_action_server *s, goal *g) {
    usi_release(&s->bus->allocator, g->result, g->n_result, 8);
    memset(g, 0, sizeof *g);
}

// A free place, of the goal that ended first where there is no other; NULL: all are under way.
static goal *make_place(us_action_server *s) {
    const int64_t now = usi_monotonic_ns(), keep = (int64_t)(1e9 * s->def.result_timeout);
    goal *found = NULL;
    for (int32_t i = 0; i < s->def.max_goal; i++) {
        goal *g = &s->goals[i];
        if (is_ended(g->status) && now - g->ended > keep) release_goal(s, g);
        if (g->status == US_GOAL_UNKNOWN) {
            found = g;
            break;
        }
        if (is_ended(g->status) && (!found || g->ended < found->ended)) found = g;
    }
    if (found && found->status != US_GOAL_UNKNOWN) release_goal(s, found);
    return found;
}

static us_msg_time time_of(int64_t ns) {
    return (us_msg_time){.sec = (int32_t)(ns / 1000000000), .nanosec = (uint32_t)(ns % 1000000000)};
}

static us_msg_goal_info info_of(const goal *g) {
    us_msg_goal_info info = {.stamp = time_of(g->stamp)};
    memcpy(info.goal_id.uuid, g->id.bytes, sizeof g->id.bytes);
    return info;
}

// The state of every goal. The server is locked, so that the last message is the last state.
static void publish_status(us_action_server *s) {
    us_msg_goal_status_array m = {.status_list = {._buffer = s->list}};
    for (int32_t i = 0; i < s->def.max_goal; i++) {
        const goal *g = &s->goals[i];
        if (g->status == US_GOAL_UNKNOWN || !g->is_judged) continue;
        s->list[m.status_list._length++] =
            (us_msg_goal_status){.goal_info = info_of(g), .status = (int8_t)g->status};
    }
    size_t length = 0;
    if (!us_message_encode(usi_type_goal_status_array, &m, s->bytes, s->n_byte, &length))
        usi_writer_send(s->status, s->bytes, length, 0);
}

// ---- requests ----

// SendGoal_Response: a bool, and at a multiple of 4 the time.
static void answer_goal(us_service *service, us_request_id id, bool is_accepted, int64_t stamp) {
    uint8_t bytes[REPLY_BYTES] = {0, 1, 0, 0, is_accepted};
    const us_msg_time t = time_of(stamp);
    for (int i = 0; i < 4; i++) {
        bytes[8 + i] = (uint8_t)((uint32_t)t.sec >> 8 * i);
        bytes[12 + i] = (uint8_t)(t.nanosec >> 8 * i);
    }
    us_service_reply(service, id, bytes, sizeof bytes);
}

static int64_t accepted_at(const us_action_server *s) {
    if (s->def.now) return s->def.now(s->def.context);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void on_send_goal(void *context, us_service *service, us_request_id id, const void *bytes,
                         size_t length) {
    us_action_server *s = context;
    const us_goal_id goal_id = usi_goal_get(bytes);
    const int64_t stamp = accepted_at(s);
    pthread_mutex_lock(&s->lock);
    goal *g = find(s, goal_id);
    if (g) {  // asked again
        const int64_t first = g->stamp;
        pthread_mutex_unlock(&s->lock);
        answer_goal(service, id, true, first);
        return;
    }
    g = make_place(s);
    if (g) *g = (goal){.id = goal_id, .status = US_GOAL_ACCEPTED, .stamp = stamp};
    pthread_mutex_unlock(&s->lock);
    const bool is_accepted = g && s->def.on_goal(s->def.context, goal_id, bytes, length);
    pthread_mutex_lock(&s->lock);
    g = find(s, goal_id);
    if (g && is_accepted) {
        g->is_judged = true;
        publish_status(s);
    } else if (g) {
        release_goal(s, g);
    }
    pthread_mutex_unlock(&s->lock);
    answer_goal(service, id, is_accepted, is_accepted ? stamp : 0);
}

// Whether a request to cancel means a goal: by its id, or by the time that it was accepted at.
static bool is_meant(const us_msg_goal_info *what, const goal *g, bool has_id, bool has_time) {
    if (has_id && !memcmp(what->goal_id.uuid, g->id.bytes, sizeof g->id.bytes)) return true;
    if (!has_time) return !has_id;
    const int64_t until = (int64_t)what->stamp.sec * 1000000000 + what->stamp.nanosec;
    return g->stamp <= until;
}

// Asks the program about one goal; whether it is being cancelled now.
static bool cancel(us_action_server *s, us_goal_id id, us_msg_goal_info *out_info) {
    pthread_mutex_lock(&s->lock);
    const goal *g = find(s, id);
    bool is_canceling = g && g->status == US_GOAL_CANCELING;
    const bool may = g && (g->status == US_GOAL_ACCEPTED || g->status == US_GOAL_EXECUTING);
    pthread_mutex_unlock(&s->lock);
    const bool is_granted = may && (!s->def.on_cancel || s->def.on_cancel(s->def.context, id));
    pthread_mutex_lock(&s->lock);
    goal *now = find(s, id);
    if (is_granted && now && !is_ended(now->status)) {
        now->status = US_GOAL_CANCELING;
        is_canceling = true;
        publish_status(s);
    }
    if (now) *out_info = info_of(now);
    pthread_mutex_unlock(&s->lock);
    return is_canceling && now;
}

static void on_cancel_goal(void *context, us_service *service, us_request_id id, const void *bytes,
                           size_t length) {
    us_action_server *s = context;
    _Alignas(16) uint8_t memory[128];
    const void *m = NULL;
    if (us_message_decode(usi_type_cancel_goal_request, bytes, length, memory, sizeof memory, &m, NULL))
        return;
    const us_msg_goal_info *what = &((const us_msg_cancel_goal_request *)m)->goal_info;
    static const us_goal_id zeros;
    const bool has_id = memcmp(what->goal_id.uuid, zeros.bytes, sizeof zeros.bytes) != 0;
    const bool has_time = what->stamp.sec != 0 || what->stamp.nanosec != 0;
    const size_t n_max = (size_t)s->def.max_goal;
    us_msg_goal_info *list = usi_alloc(&s->bus->allocator, n_max * sizeof *list, _Alignof(us_msg_goal_info));
    us_goal_id *ids = usi_alloc(&s->bus->allocator, n_max * sizeof *ids, 8);
    us_msg_cancel_goal_response reply = {.return_code = 0, .goals_canceling = {._buffer = list}};
    int32_t n = 0;
    bool is_known = false, is_over = false;
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->def.max_goal && ids; i++) {
        const goal *g = &s->goals[i];
        if (g->status == US_GOAL_UNKNOWN || !g->is_judged) continue;
        if (has_id && !memcmp(what->goal_id.uuid, g->id.bytes, sizeof g->id.bytes)) {
            is_known = true;
            is_over = is_ended(g->status);
        }
        if (is_meant(what, g, has_id, has_time)) ids[n++] = g->id;
    }
    pthread_mutex_unlock(&s->lock);
    for (int32_t i = 0; i < n && list; i++)
        reply.goals_canceling._length += cancel(s, ids[i], &list[reply.goals_canceling._length]);
    if (reply.goals_canceling._length == 0)
        reply.return_code = (int8_t)(has_id && !is_known ? 2 : has_id && is_over ? 3 : 1);
    size_t n_byte = 0;
    us_message_encode(usi_type_cancel_goal_response, &reply, NULL, 0, &n_byte);
    void *buf = usi_alloc(&s->bus->allocator, n_byte, 8);
    if (buf && !us_message_encode(usi_type_cancel_goal_response, &reply, buf, n_byte, &n_byte))
        us_service_reply(service, id, buf, n_byte);
    usi_release(&s->bus->allocator, buf, n_byte, 8);
    usi_release(&s->bus->allocator, ids, n_max * sizeof *ids, 8);
    usi_release(&s->bus->allocator, list, n_max * sizeof *list, _Alignof(us_msg_goal_info));
}

// A result of nothing, for a goal that is not known or was given up.
static void answer_nothing(us_action_server *s, us_service *service, us_request_id id, us_goal_status end) {
    const us_message_type *type = s->def.types.get_result_response;
    const size_t size = us_message_size(type);
    void *message = size ? usi_alloc(&s->bus->allocator, size, 16) : NULL;
    if (!message) return;
    memset(message, 0, size);
    size_t length = 0;
    us_message_encode(type, message, NULL, 0, &length);
    void *buf = usi_alloc(&s->bus->allocator, length, 8);
    if (buf && !us_message_encode(type, message, buf, length, &length)) {
        ((uint8_t *)buf)[USI_GOAL_AT] = (uint8_t)end;
        us_service_reply(service, id, buf, length);
    }
    usi_release(&s->bus->allocator, buf, length, 8);
    usi_release(&s->bus->allocator, message, size, 16);
}

static void on_get_result(void *context, us_service *service, us_request_id id, const void *bytes,
                          size_t length) {
    (void)length;
    us_action_server *s = context;
    bool is_known = false;
    pthread_mutex_lock(&s->lock);
    goal *g = find(s, usi_goal_get(bytes));
    if (g && is_ended(g->status)) {
        is_known = true;
        us_service_reply(service, id, g->result, g->n_result);
    } else if (g) {
        is_known = true;
        // The one that waits for longest makes room.
        if (g->n_waiting == MAX_WAITING)
            memmove(g->waiting, g->waiting + 1, (size_t)--g->n_waiting * sizeof g->waiting[0]);
        g->waiting[g->n_waiting++] = id;
    }
    pthread_mutex_unlock(&s->lock);
    if (!is_known) answer_nothing(s, service, id, US_GOAL_UNKNOWN);
}

// ---- what the program does ----

us_goal_status us_action_server_get_status(us_action_server *s, us_goal_id id) {
    if (!s) return US_GOAL_UNKNOWN;
    pthread_mutex_lock(&s->lock);
    const goal *g = find(s, id);
    const us_goal_status status = g ? g->status : US_GOAL_UNKNOWN;
    pthread_mutex_unlock(&s->lock);
    return status;
}

us_status us_action_server_execute(us_action_server *s, us_goal_id id) {
    if (!s) return US_ERR_ARG;
    pthread_mutex_lock(&s->lock);
    goal *g = find(s, id);
    us_status status = !g ? US_ERR_NAME : g->status != US_GOAL_ACCEPTED ? US_ERR_VALUE : US_OK;
    if (!status) {
        g->status = US_GOAL_EXECUTING;
        publish_status(s);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

us_status us_action_server_send_feedback(us_action_server *s, us_goal_id id, const void *bytes,
                                         size_t length) {
    if (!s || !bytes) return US_ERR_ARG;
    if (!usi_is_message(s->def.types.feedback, bytes, length)) return US_ERR_SYNTAX;
    const us_goal_status status = us_action_server_get_status(s, id);
    if (status == US_GOAL_UNKNOWN) return US_ERR_NAME;
    if (is_ended(status)) return US_ERR_VALUE;
    uint8_t *copy = usi_alloc(&s->bus->allocator, length, 8);
    if (!copy) return US_ERR_MEMORY;
    memcpy(copy, bytes, length);
    usi_goal_put(copy, id);
    const us_status sent = usi_writer_send(s->feedback, copy, length, 0);
    usi_release(&s->bus->allocator, copy, length, 8);
    return sent;
}

us_status us_action_server_finish(us_action_server *s, us_goal_id id, us_goal_status end, const void *bytes,
                                  size_t length) {
    if (!s || !bytes || !is_ended(end) || end > US_GOAL_ABORTED) return US_ERR_ARG;
    if (!usi_is_message(s->def.types.get_result_response, bytes, length)) return US_ERR_SYNTAX;
    uint8_t *copy = usi_alloc(&s->bus->allocator, length, 8);
    if (!copy) return US_ERR_MEMORY;
    memcpy(copy, bytes, length);
    copy[USI_GOAL_AT] = (uint8_t)end;  // GetResult_Response begins with the status
    us_status status = US_OK;
    pthread_mutex_lock(&s->lock);
    goal *g = find(s, id);
    if (!g) {
        status = US_ERR_NAME;
    } else if (is_ended(g->status) || (end == US_GOAL_CANCELED && g->status != US_GOAL_CANCELING) ||
               (end == US_GOAL_SUCCEEDED && g->status == US_GOAL_ACCEPTED)) {
        status = US_ERR_VALUE;
    } else {
        g->status = end;
        g->ended = usi_monotonic_ns();
        g->result = copy;
        g->n_result = length;
        for (int32_t i = 0; i < g->n_waiting; i++)
            us_service_reply(s->get_result, g->waiting[i], copy, length);
        g->n_waiting = 0;
        publish_status(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (status) usi_release(&s->bus->allocator, copy, length, 8);
    return status;
}

// ---- life ----

static us_status add_service(us_action_server *s, const char *part, const us_message_type *request,
                             const us_message_type *response, us_service **out, us_error *err) {
    char name[USI_NAME_LENGTH];
    us_status status = usi_action_part(s->def.name, part, name, err);
    const us_service_def def = {name, request, response, s->def.node};
    return status ? status : us_bus_add_service(s->bus, &def, out, err);
}

static us_status add_topic(us_action_server *s, const char *part, const us_message_type *type, us_qos qos,
                           us_writer **out, us_error *err) {
    char name[USI_NAME_LENGTH];
    us_status status = usi_action_part(s->def.name, part, name, err);
    const us_topic_def def = {name, type, qos, s->def.node};
    return status ? status : us_bus_add_writer(s->bus, &def, out, err);
}

static us_status connect(us_action_server *s, us_error *err) {
    const us_action_types *t = &s->def.types;
    us_status status =
        add_topic(s, "feedback", t->feedback, (us_qos){.is_reliable = true, .depth = 10}, &s->feedback, err);
    if (!status)
        status =
            add_topic(s, "status", usi_type_goal_status_array,
                      (us_qos){.is_reliable = true, .is_transient_local = true, .depth = 1}, &s->status, err);
    if (!status)
        status =
            add_service(s, "get_result", t->get_result_request, t->get_result_response, &s->get_result, err);
    if (!status)
        status = add_service(s, "cancel_goal", usi_type_cancel_goal_request, usi_type_cancel_goal_response,
                             &s->cancel_goal, err);
    if (!status)
        status = add_service(s, "send_goal", t->send_goal_request, t->send_goal_response, &s->send_goal, err);
    if (status) return status;
    us_service_serve(s->get_result, on_get_result, s);
    us_service_serve(s->cancel_goal, on_cancel_goal, s);
    us_service_serve(s->send_goal, on_send_goal, s);
    return US_OK;
}

us_status us_bus_add_action_server(us_bus *bus, const us_action_server_def *def,
                                   us_action_server **out_server, us_error *err) {
    if (!bus || !def || !out_server || !def->on_goal || !usi_action_has_types(&def->types) ||
        def->max_goal < 1 || def->max_goal > 10000 || !(def->result_timeout >= 0))
        return us_error_set(err, US_ERR_ARG, NULL, "Begin with us_action_server_def_default().",
                            "an action's server needs a bus, a name, types, on_goal, 1 to 10000 goals and a "
                            "place for it");
    *out_server = NULL;
    us_action_server *s = usi_alloc(&bus->allocator, sizeof *s, _Alignof(us_action_server));
    if (!s) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for an action");
    memset(s, 0, sizeof *s);
    s->bus = bus;
    s->def = *def;
    pthread_mutex_init(&s->lock, NULL);
    const size_t n = (size_t)def->max_goal;
    s->goals = usi_alloc(&bus->allocator, n * sizeof *s->goals, _Alignof(goal));
    s->list = usi_alloc(&bus->allocator, n * sizeof *s->list, _Alignof(us_msg_goal_status));
    s->n_byte = 64 + 32 * n;  // a goal has 16 + 8 + 1 bytes and what aligns the next
    s->bytes = usi_alloc(&bus->allocator, s->n_byte, 8);
    us_status status = s->goals && s->list && s->bytes ? US_OK : US_ERR_MEMORY;
    if (status) us_error_set(err, status, NULL, NULL, "no memory for an action");
    if (s->goals) memset(s->goals, 0, n * sizeof *s->goals);
    if (!status) status = connect(s, err);
    s->def.name = NULL;  // of the caller
    if (status) {
        us_action_server_remove(s);
        return status;
    }
    pthread_mutex_lock(&s->lock);
    publish_status(s);
    pthread_mutex_unlock(&s->lock);
    *out_server = s;
    return US_OK;
}

// What is under way ends as aborted, and who waits for it is told. Nobody asks any more.
static void give_up(us_action_server *s) {
    bool has_ended = false;
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->def.max_goal && s->goals && s->status; i++) {
        goal *g = &s->goals[i];
        if (g->status == US_GOAL_UNKNOWN || is_ended(g->status)) continue;
        for (int32_t k = 0; k < g->n_waiting; k++)
            answer_nothing(s, s->get_result, g->waiting[k], US_GOAL_ABORTED);
        g->n_waiting = 0;
        g->status = US_GOAL_ABORTED;
        has_ended = true;
    }
    if (has_ended) publish_status(s);
    pthread_mutex_unlock(&s->lock);
}

void us_action_server_remove(us_action_server *s) {
    if (!s) return;
    usi_service_deafen(s->send_goal);
    usi_service_deafen(s->cancel_goal);
    usi_service_deafen(s->get_result);
    give_up(s);
    us_service_remove(s->send_goal);
    us_service_remove(s->cancel_goal);
    us_service_remove(s->get_result);
    us_writer_remove(s->feedback);
    us_writer_remove(s->status);
    const us_allocator *a = &s->bus->allocator;
    const size_t n = (size_t)s->def.max_goal;
    for (size_t i = 0; i < n && s->goals; i++)
        release_goal(s, &s->goals[i]);
    usi_release(a, s->goals, n * sizeof *s->goals, _Alignof(goal));
    usi_release(a, s->list, n * sizeof *s->list, _Alignof(us_msg_goal_status));
    usi_release(a, s->bytes, s->n_byte, 8);
    pthread_mutex_destroy(&s->lock);
    usi_release(a, s, sizeof *s, _Alignof(us_action_server));
}

// A client of an action: its open goals, and what is asked for each.
//
// A goal is asked for in turn: send_goal until that is answered, then get_result until it has ended. What is
// not answered for a second is asked again; a server answers the second time as the first. An answer to a
// goal that has ended here is left out, so that each has one end.
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "bus/action.h"

enum { MAX_OPEN = 1024, MAX_ASKED = 16384, REPLY_BYTES = 64 };
#define ASK_AGAIN 1000000000  // ns

typedef struct open_goal {
    us_goal_id id;
    bool is_accepted;
    int64_t asked;   // ns: when it was last asked for
    uint8_t *bytes;  // SendGoal_Request, until it is answered
    size_t length;
} open_goal;

// Which goal a request is about, by the number of the request.
typedef struct asked {
    int64_t number;
    us_goal_id id;
} asked;

struct us_action_client {
    us_bus *bus;
    us_action_types types;
    us_client *send_goal, *cancel_goal, *get_result;
    us_reader *feedback;
    pthread_mutex_t lock;  // of what follows
    int32_t n_open;
    open_goal open[MAX_OPEN];
    uint32_t n_sent, n_cancel, n_result;  // ever; the place is the remainder
    asked sent[MAX_ASKED], cancel[MAX_ASKED], result[MAX_ASKED];
};

static open_goal *find(us_action_client *c, us_goal_id id) {
    for (int32_t i = 0; i < c->n_open; i++) {
        if (usi_goal_is(c->open[i].id, id)) return &c->open[i];
    }
    return NULL;
}

static void forget_bytes(us_action_client *c, open_goal *g) {
    usi_release(&c->bus->allocator, g->bytes, g->length, 8);
    g->bytes = NULL;
    g->length = 0;
}

static void close_goal(us_action_client *c, open_goal *g) {
    forget_bytes(c, g);
    *g = c->open[--c->n_open];
}

static bool find_asked(const asked *list, int64_t number, us_goal_id *out_id) {
    for (int i = 0; i < MAX_ASKED; i++) {
        if (list[i].number != number) continue;
        *out_id = list[i].id;
        return true;
    }
    return false;
}

// Asks for what a goal waits for. The client is locked.
static us_status ask(us_action_client *c, open_goal *g) {
    int64_t number = 0;
    us_status status = US_OK;
    g->asked = usi_monotonic_ns();
    if (!g->is_accepted) {
        status = us_client_ask(c->send_goal, g->bytes, g->length, &number);
        if (!status) c->sent[c->n_sent++ % MAX_ASKED] = (asked){number, g->id};
        return status;
    }
    uint8_t bytes[USI_GOAL_END] = {0, 1, 0, 0};
    usi_goal_put(bytes, g->id);
    status = us_client_ask(c->get_result, bytes, sizeof bytes, &number);
    if (!status) c->result[c->n_result++ % MAX_ASKED] = (asked){number, g->id};
    return status;
}

static void ask_again(us_action_client *c) {
    const int64_t now = usi_monotonic_ns();
    if (!us_action_client_is_ready(c)) return;
    pthread_mutex_lock(&c->lock);
    for (int32_t i = 0; i < c->n_open; i++) {
        if (now - c->open[i].asked >= ASK_AGAIN) (void)ask(c, &c->open[i]);
    }
    pthread_mutex_unlock(&c->lock);
}

us_status us_action_client_send(us_action_client *c, const void *bytes, size_t length, us_goal_id *out_id) {
    if (!c || !bytes || !out_id) return US_ERR_ARG;
    if (!usi_is_message(c->types.send_goal_request, bytes, length)) return US_ERR_SYNTAX;
    open_goal g = {.length = length, .bytes = usi_alloc(&c->bus->allocator, length, 8)};
    if (!g.bytes) return US_ERR_MEMORY;
    memcpy(g.bytes, bytes, length);
    us_status status = getentropy(g.id.bytes, sizeof g.id.bytes) ? US_ERR_IO : US_OK;
    g.id.bytes[6] =
        (uint8_t)((g.id.bytes[6] & 0x0f) | 0x40);  // an id of random numbers, as RFC 9562 marks it
    g.id.bytes[8] = (uint8_t)((g.id.bytes[8] & 0x3f) | 0x80);
    usi_goal_put(g.bytes, g.id);
    *out_id = g.id;
    pthread_mutex_lock(&c->lock);
    if (!status && c->n_open == MAX_OPEN) status = US_ERR_LIMIT;
    if (!status) {
        c->open[c->n_open] = g;
        (void)ask(c, &c->open[c->n_open++]);  // one that cannot be written is asked again
    }
    pthread_mutex_unlock(&c->lock);
    if (status) usi_release(&c->bus->allocator, g.bytes, length, 8);
    return status;
}

us_status us_action_client_cancel(us_action_client *c, us_goal_id id) {
    if (!c) return US_ERR_ARG;
    us_msg_cancel_goal_request request = {0};
    memcpy(request.goal_info.goal_id.uuid, id.bytes, sizeof id.bytes);
    uint8_t bytes[REPLY_BYTES];
    size_t length = 0;
    us_status status =
        us_message_encode(usi_type_cancel_goal_request, &request, bytes, sizeof bytes, &length);
    int64_t number = 0;
    pthread_mutex_lock(&c->lock);
    if (!status) status = us_client_ask(c->cancel_goal, bytes, length, &number);
    if (!status) c->cancel[c->n_cancel++ % MAX_ASKED] = (asked){number, id};
    pthread_mutex_unlock(&c->lock);
    return status;
}

// ---- events ----

static bool take_acceptance(us_action_client *c, us_action_event *e) {
    uint8_t bytes[REPLY_BYTES];
    size_t length = 0;
    int64_t number = 0;
    while (!us_client_take(c->send_goal, bytes, sizeof bytes, &length, &number) && length > USI_GOAL_AT) {
        const bool is_accepted = bytes[USI_GOAL_AT] != 0;
        pthread_mutex_lock(&c->lock);
        open_goal *g = find_asked(c->sent, number, &e->id) ? find(c, e->id) : NULL;
        const bool is_new = g && !g->is_accepted;
        if (is_new && is_accepted) {
            g->is_accepted = true;
            forget_bytes(c, g);
            (void)ask(c, g);
        } else if (is_new) {
            close_goal(c, g);
        }
        pthread_mutex_unlock(&c->lock);
        if (!is_new) continue;
        e->kind = is_accepted ? US_ACTION_ACCEPTED : US_ACTION_REFUSED;
        return true;
    }
    return false;
}

// An answer to a request to cancel names goals, as many as a server has: only the code is looked at.
static bool take_cancel(us_action_client *c, us_action_event *e) {
    for (size_t cap = 0, length = 0;; cap = length) {
        uint8_t *bytes = cap ? usi_alloc(&c->bus->allocator, cap, 8) : NULL;
        int64_t number = 0;
        const us_status status = us_client_take(c->cancel_goal, bytes, cap, &length, &number);
        const bool is_taken = !status && bytes && length > USI_GOAL_AT;
        const int code = is_taken ? bytes[USI_GOAL_AT] : 0;
        usi_release(&c->bus->allocator, bytes, cap, 8);
        if (status == US_ERR_LIMIT && length > cap) continue;
        if (!is_taken) return false;
        pthread_mutex_lock(&c->lock);
        const bool is_mine = find_asked(c->cancel, number, &e->id);
        pthread_mutex_unlock(&c->lock);
        if (!is_mine) continue;
        e->kind = code == 0 ? US_ACTION_CANCELING : US_ACTION_KEPT;
        return true;
    }
}

static us_status take_feedback(us_action_client *c, void *buf, size_t cap, size_t *out_length,
                               us_action_event *e) {
    for (;;) {
        us_status status = us_reader_take(c->feedback, buf, cap, out_length, NULL);
        if (status || *out_length == 0) return status;
        if (*out_length < USI_GOAL_END) continue;
        e->id = usi_goal_get(buf);
        pthread_mutex_lock(&c->lock);
        const bool is_mine = find(c, e->id) != NULL;
        pthread_mutex_unlock(&c->lock);
        if (!is_mine) continue;
        e->kind = US_ACTION_FEEDBACK;
        return US_OK;
    }
}

static us_status take_result(us_action_client *c, void *buf, size_t cap, size_t *out_length,
                             us_action_event *e) {
    for (;;) {
        int64_t number = 0;
        us_status status = us_client_take(c->get_result, buf, cap, out_length, &number);
        if (status || *out_length == 0) return status;
        if (*out_length <= USI_GOAL_AT) continue;
        pthread_mutex_lock(&c->lock);
        open_goal *g = find_asked(c->result, number, &e->id) ? find(c, e->id) : NULL;
        const bool is_mine = g != NULL;
        if (is_mine) close_goal(c, g);
        pthread_mutex_unlock(&c->lock);
        if (!is_mine) continue;
        e->kind = US_ACTION_RESULT;
        e->status = (us_goal_status)((const uint8_t *)buf)[USI_GOAL_AT];
        return US_OK;
    }
}

us_status us_action_client_take(us_action_client *c, void *buf, size_t cap, size_t *out_length,
                                us_action_event *out_event) {
    if (!c || !out_length || !out_event || (!buf && cap)) return US_ERR_ARG;
    *out_event = (us_action_event){.kind = US_ACTION_NONE};
    *out_length = 0;
    if (take_acceptance(c, out_event)) return US_OK;
    if (take_cancel(c, out_event)) return US_OK;
    us_status status = take_feedback(c, buf, cap, out_length, out_event);
    if (!status && out_event->kind == US_ACTION_NONE)
        status = take_result(c, buf, cap, out_length, out_event);
    if (out_event->kind == US_ACTION_NONE && !status) ask_again(c);
    return status;
}

// ---- life ----

bool us_action_client_is_ready(us_action_client *c) {
    return c && us_client_is_ready(c->send_goal) && us_client_is_ready(c->cancel_goal) &&
           us_client_is_ready(c->get_result) && us_reader_n_match(c->feedback) > 0;
}

static us_status add_client(us_action_client *c, const us_action_client_def *def, const char *part,
                            const us_message_type *request, const us_message_type *response, us_client **out,
                            us_error *err) {
    char name[USI_NAME_LENGTH];
    us_status status = usi_action_part(def->name, part, name, err);
    const us_client_def client = {name, request, response, def->node, def->dialect};
    return status ? status : us_bus_add_client(c->bus, &client, out, err);
}

us_status us_bus_add_action_client(us_bus *bus, const us_action_client_def *def,
                                   us_action_client **out_client, us_error *err) {
    if (!bus || !def || !out_client || !usi_action_has_types(&def->types))
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "an action's client needs a bus, a name, types and a place for it");
    *out_client = NULL;
    us_action_client *c = usi_alloc(&bus->allocator, sizeof *c, _Alignof(us_action_client));
    if (!c) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for an action's client");
    memset(c, 0, sizeof *c);
    c->bus = bus;
    c->types = def->types;
    pthread_mutex_init(&c->lock, NULL);
    const us_action_types *t = &def->types;
    char name[USI_NAME_LENGTH];
    us_status status = usi_action_part(def->name, "feedback", name, err);
    const us_topic_def feedback = {name, t->feedback, {.is_reliable = true, .depth = 10}, def->node};
    if (!status) status = us_bus_add_reader(bus, &feedback, NULL, NULL, &c->feedback, err);
    if (!status)
        status =
            add_client(c, def, "send_goal", t->send_goal_request, t->send_goal_response, &c->send_goal, err);
    if (!status)
        status = add_client(c, def, "cancel_goal", usi_type_cancel_goal_request,
                            usi_type_cancel_goal_response, &c->cancel_goal, err);
    if (!status)
        status = add_client(c, def, "get_result", t->get_result_request, t->get_result_response,
                            &c->get_result, err);
    if (status) {
        us_action_client_remove(c);
        return status;
    }
    *out_client = c;
    return US_OK;
}

void us_action_client_remove(us_action_client *c) {
    if (!c) return;
    us_client_remove(c->send_goal);
    us_client_remove(c->cancel_goal);
    us_client_remove(c->get_result);
    us_reader_remove(c->feedback);
    while (c->n_open > 0)
        close_goal(c, &c->open[0]);
    pthread_mutex_destroy(&c->lock);
    usi_release(&c->bus->allocator, c, sizeof *c, _Alignof(us_action_client));
}

// Foxglove sessions: channels, samples, and commands from clients.
//
//     stepping thread                              server's thread
//     tap --> ring of samples (no lock) ---------> usi_foxglove_wake: to each session that has subscribed
//     tap of wanted channels alone <-------------- first subscriber, last one gone
//     us_proxy_post <----------------------------- a client's message on a channel that a robot listens to
//
// The ring has one writer and one reader. A sample that finds no room is lost and counted; so is one that a
// client's own queue has no room for. The server is woken when the ring was empty: while it is at work it
// looks again before it rests, so a burst costs one wake. Nothing is encoded for channels that nobody has
// subscribed to.
#include "view/view__foxglove_session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proxy/tap.h"

enum {
    RING = 1 << 24,  // bytes; pages that were never used cost nothing
    ADVERTISEMENT = 1 << 24,
    N_ERROR = 20,      // mistakes that a client may make
    SLOT = 16,         // records begin at multiples of it
    CLOCK_MS = 10,     // the time is sent no more often
    REPORT_MS = 1000,  // nor losses
};

// A record of the ring; its bytes follow. `channel` -1: nothing more before the ring's end.
typedef struct record {
    int32_t channel;
    uint32_t length;
    int64_t time;  // ns, simulated
} record;
_Static_assert(sizeof(record) == SLOT, "a record fits wherever one may begin");

// Messages per second of one client that ask for something, and how many at once: each of them is work for
// the server, files of meshes and what is said again to all the most. Samples for a robot's channels are not
// counted: its mailbox has limits of its own.
static const double ASK_RATE = 200, ASK_BURST = 2000;

typedef usi_foxglove_session session;
typedef usi_client_channel client_channel;

// ---------------------------------------------------------------- the ring

static void on_sample(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    usi_foxglove *f = context;
    if (length > RING / 4) {
        atomic_fetch_add(&f->n_lost, 1);
        return;
    }
    const size_t size = (sizeof(record) + length + SLOT - 1) / SLOT * SLOT;
    const uint64_t begin = atomic_load_explicit(&f->head, memory_order_relaxed);
    uint64_t head = begin;
    const size_t left = RING - head % RING;
    const size_t skip = left < size ? left : 0;  // a record is in one piece
    if (head + skip + size - atomic_load(&f->tail) > RING) {
        atomic_fetch_add(&f->n_lost, 1);
        return;
    }
    record r = {.channel = -1};
    if (skip) memcpy(f->ring + head % RING, &r, sizeof r);
    head += skip;
    r = (record){channel, (uint32_t)length, time};
    memcpy(f->ring + head % RING, &r, sizeof r);
    if (length) memcpy(f->ring + head % RING + sizeof r, bytes, length);
    atomic_store(&f->head, head + size);
    if (atomic_load(&f->tail) == begin) usi_web_wake(f->web);
}

// ---------------------------------------------------------------- reports

bool usi_foxglove_send_text(session *s, const usi_bytes *text) {
    return !text->status && usi_web_send(s->client, false, text->at, text->length);
}

void usi_foxglove_begin_text(usi_bytes *text, usi_json *json, const char *op) {
    text->length = 0;
    text->status = US_OK;
    usi_json_init(json, text);
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "op", op);
}

void usi_foxglove_end_text(usi_json *json) {
    usi_json_end(json, '}');
    usi_json_fini(json);
}

// `level` 0 info, 1 warning, 2 error.
static void report(session *s, int32_t level, const char *message) {
    usi_bytes *text = &s->foxglove->text;
    usi_json json;
    usi_foxglove_begin_text(text, &json, "status");
    usi_json_integer(&json, "level", level);
    usi_json_text(&json, "message", message);
    usi_foxglove_end_text(&json);
    (void)usi_foxglove_send_text(s, text);
}

void usi_foxglove_report_error(session *s, const char *message) {
    report(s, 2, message);
    if (++s->n_error <= N_ERROR) return;
    char line[160];
    snprintf(line, sizeof line, "%s disconnected: too many protocol errors", usi_web_client_name(s->client));
    us_world_log(s->foxglove->world, 1, line);
    usi_web_close(s->client, "too many errors");
}

// What was lost, once a second at most, and only when there is room to say so.
static void report_losses(session *s, int64_t now) {
    const uint64_t n_ring = atomic_load(&s->foxglove->n_lost);
    if ((s->n_lost == 0 && s->n_busy == 0 && n_ring == s->n_ring_lost) || now - s->reported < REPORT_MS ||
        usi_web_backlog(s->client) > USI_FOXGLOVE_QUEUE / 2)
        return;
    char text[200];
    s->reported = now;
    if (s->n_lost > 0 || n_ring != s->n_ring_lost) {
        snprintf(text, sizeof text,
                 "%lld samples were left out: they come faster than this connection takes them",
                 (long long)(s->n_lost + (int64_t)(n_ring - s->n_ring_lost)));
        report(s, 1, text);
        s->n_lost = 0;
        s->n_ring_lost = n_ring;
    }
    if (s->n_busy > 0) {
        snprintf(text, sizeof text, "%lld commands were left out: too many wait for the robot",
                 (long long)s->n_busy);
        report(s, 1, text);
        s->n_busy = 0;
    }
}

// A sample as a frame: room for its head, then its bytes. The head differs from session to session.
static bool make_frame(usi_foxglove *f, const unsigned char *bytes, size_t length) {
    f->frame.length = 0;
    f->frame.status = US_OK;
    static const unsigned char head[USI_FOXGLOVE_DATA_HEAD];
    usi_bytes_put(&f->frame, head, sizeof head);
    usi_bytes_put(&f->frame, bytes, length);
    return !f->frame.status;
}

static void hand_out(usi_foxglove *f, const record *r, const unsigned char *bytes) {
    f->time = r->time;
    if (f->n_subscriber[r->channel] == 0) return;
    const bool is_made = make_frame(f, bytes, r->length);
    for (session *s = f->sessions; s; s = s->next) {
        const int64_t subscription = s->subscription[r->channel];
        if (subscription < 0) continue;
        if (is_made) usi_foxglove_put_data((uint8_t *)f->frame.at, (uint32_t)subscription, r->time);
        if (!is_made || !usi_web_send(s->client, true, f->frame.at, f->frame.length)) s->n_lost++;
    }
}

void usi_foxglove_wake(usi_foxglove *f) {
    uint64_t tail = atomic_load_explicit(&f->tail, memory_order_relaxed);
    // Not without end: what comes while this is done waits for the next time, for which the writer need not
    // wake anybody.
    const uint64_t until = atomic_load(&f->head);
    if (tail == until && f->n_session == 0) return;
    while (tail != until) {
        record r;
        memcpy(&r, f->ring + tail % RING, sizeof r);
        if (r.channel < 0) {
            tail += RING - tail % RING;
            continue;
        }
        hand_out(f, &r, f->ring + tail % RING + sizeof r);
        tail += (sizeof(record) + r.length + SLOT - 1) / SLOT * SLOT;
        atomic_store(&f->tail, tail);
    }
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    for (session *s = f->sessions; s; s = s->next) {
        if (f->time >= 0 && f->time != s->time && now - s->clocked >= CLOCK_MS) {
            uint8_t frame[USI_FOXGLOVE_TIME_SIZE];
            usi_foxglove_put_time(frame, f->time);
            if (usi_web_send(s->client, true, frame, sizeof frame)) {
                s->time = f->time;
                s->clocked = now;
            }
        }
        report_losses(s, now);
        usi_foxglove_tell(s);
    }
    if (atomic_load(&f->head) != tail) usi_web_wake(f->web);
}

// ---------------------------------------------------------------- what a client wants

// Channels of the proxy, then those of the scene.
static usi_channel_info channel_info(const usi_foxglove *f, int64_t i) {
    if (i < f->n_proxy) return usi_proxy_get_channel(f->proxy, (int32_t)i);
    if (i >= f->n_channel) return (usi_channel_info){.robot = -1};
    const usi_scenery_content content = (usi_scenery_content)(i - f->n_proxy);
    return (usi_channel_info){.topic = usi_scenery_topic(content),
                              .type = usi_scenery_type(content, true),
                              .is_out = true,
                              .robot = -1};
}

// One more or one fewer listens to a channel.
static void count_subscriber(usi_foxglove *f, int32_t channel, int32_t change) {
    int32_t *n = &f->n_subscriber[channel];
    *n += change;
    if (channel >= f->n_proxy) {
        const int32_t content = channel - f->n_proxy;
        // Who comes gets all that there is; those who have it get it again.
        if (change > 0) atomic_fetch_add(&f->n_arrival[content], 1);
        atomic_store(&f->n_viewer[content], *n);
        atomic_fetch_add(&f->n_scene, change);
        return;
    }
    usi_proxy_want_channel(f->proxy, channel, *n > 0 || (channel == f->clock && f->n_session > 0));
}

static void subscribe(session *s, const usi_foxglove_message *m) {
    usi_foxglove *f = s->foxglove;
    char text[160];
    bool is_latched = false;
    for (int32_t k = 0; k < m->n; k++) {
        const usi_foxglove_entry *e = &m->list[k];
        const usi_channel_info info = channel_info(f, e->channel);
        if (!info.is_out) {
            snprintf(text, sizeof text, "there is no channel %u", e->channel);
            usi_foxglove_report_error(s, text);
            continue;
        }
        bool is_taken = s->subscription[e->channel] >= 0;
        for (int32_t i = 0; i < f->n_channel; i++)
            is_taken |= s->subscription[i] == (int64_t)e->id;
        if (is_taken) {
            snprintf(text, sizeof text,
                     "channel %u is subscribed to already, or another one under the number %u", e->channel,
                     e->id);
            usi_foxglove_report_error(s, text);
            continue;
        }
        s->subscription[e->channel] = e->id;
        count_subscriber(f, (int32_t)e->channel, 1);
        is_latched |= info.is_latched;
    }
    // What was said once is said once more. Those who have heard it hear it again, which changes nothing for
    // them.
    if (is_latched) usi_proxy_resend_latched(f->proxy);
}

static void unsubscribe(session *s, const usi_foxglove_message *m) {
    usi_foxglove *f = s->foxglove;
    for (int32_t k = 0; k < m->n; k++) {
        int32_t i = 0;
        while (i < f->n_channel && s->subscription[i] != (int64_t)m->list[k].id)
            i++;
        if (i == f->n_channel) {
            usi_foxglove_report_error(s, "there is no such subscription");
            continue;
        }
        s->subscription[i] = -1;
        count_subscriber(f, i, -1);
    }
}

// "geometry_msgs/msg/Twist", or as ROS 1 has it, "geometry_msgs/Twist".
static bool is_type(const us_message_type *type, const char *schema) {
    const char *name = us_message_name(type), *middle = strstr(name, "/msg/");
    if (strcmp(name, schema) == 0) return true;
    const size_t n = middle ? (size_t)(middle - name) : 0;
    return middle && strncmp(name, schema, n) == 0 && strcmp(middle + 4, schema + n) == 0;
}

// The channel on which a robot listens; -1 with a text of why not.
static int32_t find_listener(const usi_foxglove *f, const usi_foxglove_channel *wanted, char *why,
                             size_t cap) {
    const char *other = NULL;
    for (int32_t i = 0; i < f->n_proxy; i++) {
        const usi_channel_info info = usi_proxy_get_channel(f->proxy, i);
        if (info.is_out || info.is_request || strcmp(info.topic, wanted->topic) != 0) continue;
        if (is_type(info.type, wanted->schema)) return i;
        other = us_message_name(info.type);
    }
    if (other) {
        snprintf(why, cap, "%s is of type %s, not %s", wanted->topic, other, wanted->schema);
    } else {
        snprintf(why, cap, "no robot listens to %s", wanted->topic);
    }
    return -1;
}

static client_channel *find_said(session *s, uint32_t id) {
    for (int32_t k = 0; k < USI_FOXGLOVE_CLIENT_CHANNELS; k++) {
        if (s->says[k].channel >= 0 && s->says[k].id == id) return &s->says[k];
    }
    return NULL;
}

static void advertise(session *s, const usi_foxglove_message *m) {
    char text[600];
    if (usi_web_get_role(s->client) < USI_ROLE_DRIVE) {
        usi_role_refusal(s->client, USI_ROLE_DRIVE, text, sizeof text);
        usi_foxglove_report_error(s, text);
        return;
    }
    for (int32_t k = 0; k < m->n; k++) {
        const usi_foxglove_channel *c = &m->channels[k];
        int32_t channel = -1;
        if (!c->is_cdr) {
            snprintf(text, sizeof text, "messages for %s must be encoded as cdr", c->topic);
        } else if (find_said(s, c->id)) {
            snprintf(text, sizeof text, "the number %u is in use for another channel", c->id);
        } else {
            channel = find_listener(s->foxglove, c, text, sizeof text);
        }
        client_channel *free = NULL;
        for (int32_t i = 0; channel >= 0 && i < USI_FOXGLOVE_CLIENT_CHANNELS && !free; i++) {
            if (s->says[i].channel < 0) free = &s->says[i];
        }
        if (channel >= 0 && !free)
            snprintf(text, sizeof text, "a client can advertise %d channels", USI_FOXGLOVE_CLIENT_CHANNELS);
        if (free) {
            *free = (client_channel){c->id, channel};
        } else {
            usi_foxglove_report_error(s, text);
        }
    }
}

static void unadvertise(session *s, const usi_foxglove_message *m) {
    for (int32_t k = 0; k < m->n; k++) {
        client_channel *c = find_said(s, m->list[k].id);
        if (c) c->channel = -1;  // one that was refused may be taken back like any other
    }
}

static void command(session *s, const usi_foxglove_message *m) {
    const client_channel *c = find_said(s, m->id);
    if (!c) {
        usi_foxglove_report_error(s, "a message on a channel that was not advertised, or was refused");
        return;
    }
    const usi_foxglove *f = s->foxglove;
    const usi_channel_info info = usi_proxy_get_channel(f->proxy, c->channel);
    const us_status status =
        us_proxy_post(f->proxy, info.topic, info.type, usi_web_client_name(s->client), m->bytes, m->length);
    if (status == US_ERR_LIMIT) {
        s->n_busy++;
    } else if (status) {
        char text[400];
        snprintf(text, sizeof text, "a message for %.255s was refused: %s", info.topic,
                 us_status_text(status));
        usi_foxglove_report_error(s, text);
    }
}

// ---------------------------------------------------------------- what the server calls

static us_status on_open(void *context, usi_web_client *client, void **out_session) {
    usi_foxglove *f = context;
    const us_allocator *a = &f->allocator;
    session *s = usi_alloc(a, sizeof *s, _Alignof(session));
    int64_t *subscription = usi_alloc(a, (size_t)f->n_channel * sizeof *subscription, _Alignof(int64_t));
    if (!s || !subscription) {
        usi_release(a, s, sizeof *s, _Alignof(session));
        usi_release(a, subscription, (size_t)f->n_channel * sizeof *subscription, _Alignof(int64_t));
        return US_ERR_MEMORY;
    }
    *s = (session){.foxglove = f,
                   .client = client,
                   .subscription = subscription,
                   .n_ring_lost = atomic_load(&f->n_lost),
                   .time = -1,
                   .allowance = ASK_BURST};
    for (int32_t i = 0; i < f->n_channel; i++)
        s->subscription[i] = -1;
    for (int32_t k = 0; k < USI_FOXGLOVE_CLIENT_CHANNELS; k++)
        s->says[k].channel = -1;
    (void)usi_foxglove_send_text(s, &f->info[usi_web_get_role(client) >= USI_ROLE_DRIVE]);
    (void)usi_foxglove_send_text(s, &f->channels);
    if (usi_web_get_role(client) >= USI_ROLE_WORLD) (void)usi_foxglove_send_text(s, &f->services);
    s->next = f->sessions;
    f->sessions = s;
    f->n_session++;
    if (f->clock >= 0) count_subscriber(f, f->clock, 0);
    *out_session = s;
    return US_OK;
}

static bool may_ask(session *s) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    s->allowance = fmin(ASK_BURST, s->allowance + ASK_RATE * (now - s->allowed));
    s->allowed = now;
    if (s->allowance < 1) return false;
    s->allowance -= 1;
    return true;
}

static void on_message(void *context, void *of, bool is_binary, const void *bytes, size_t length) {
    usi_foxglove *f = context;
    session *s = of;
    usi_foxglove_message *m = &f->message;
    us_error err = {0};
    char text[160];
    if (usi_foxglove_parse(is_binary, bytes, length, m, &err)) {
        usi_foxglove_report_error(s, err.message);
        return;
    }
    if (m->op != USI_FOXGLOVE_DATA && !may_ask(s)) {
        snprintf(text, sizeof text, "more than %.0f requests per second: send fewer", ASK_RATE);
        usi_foxglove_report_error(s, text);
        return;
    }
    switch (m->op) {
    case USI_FOXGLOVE_SUBSCRIBE:
        subscribe(s, m);
        break;
    case USI_FOXGLOVE_UNSUBSCRIBE:
        unsubscribe(s, m);
        break;
    case USI_FOXGLOVE_ADVERTISE:
        advertise(s, m);
        break;
    case USI_FOXGLOVE_UNADVERTISE:
        unadvertise(s, m);
        break;
    case USI_FOXGLOVE_DATA:
        command(s, m);
        break;
    case USI_FOXGLOVE_GET:
        usi_foxglove_get_parameters(s, m);
        break;
    case USI_FOXGLOVE_SET:
        usi_foxglove_set_parameters(s, m);
        break;
    case USI_FOXGLOVE_WATCH:
    case USI_FOXGLOVE_UNWATCH:
        usi_foxglove_watch_parameters(s, m);
        break;
    case USI_FOXGLOVE_FETCH:
        usi_foxglove_fetch(s, m);
        break;
    case USI_FOXGLOVE_CALL:
        usi_foxglove_call(s, m);
        break;
    case USI_FOXGLOVE_OTHER:
        // Clients say who they are without being asked.
        if (strcmp(m->name, "clientInfo") == 0) break;
        snprintf(text, sizeof text, "\"%s\" is nothing that this server said it could do", m->name);
        usi_foxglove_report_error(s, text);
        break;
    }
}

static void on_close(void *context, void *of) {
    usi_foxglove *f = context;
    session *s = of;
    // Answers that are still on their way find nobody.
    us_world_forget(f->world, s);
    for (session **at = &f->sessions; *at; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        break;
    }
    f->n_session--;
    for (int32_t i = 0; i < f->n_channel; i++) {
        if (s->subscription[i] >= 0) count_subscriber(f, i, -1);
    }
    if (f->clock >= 0) count_subscriber(f, f->clock, 0);
    usi_release(&f->allocator, s->subscription, (size_t)f->n_channel * sizeof *s->subscription,
                _Alignof(int64_t));
    usi_release(&f->allocator, s, sizeof *s, _Alignof(session));
}

// The programs themselves where they are pages inside, the makers' page, and what somebody serves on this
// machine.
static const char *const guests[] = {"file://", "https://app.foxglove.dev", "http://localhost",
                                     "http://127.0.0.1", NULL};

int32_t usi_foxglove_protocols(usi_foxglove *f, usi_web_protocol out[USI_FOXGLOVE_N_PROTOCOL]) {
    static const char *const names[USI_FOXGLOVE_N_PROTOCOL] = {"foxglove.sdk.v1", "foxglove.websocket.v1"};
    for (int32_t k = 0; k < USI_FOXGLOVE_N_PROTOCOL; k++) {
        out[k] = (usi_web_protocol){.name = names[k],
                                    .label = "foxglove",
                                    .max_message = USI_FOXGLOVE_MESSAGE,
                                    .max_queue = USI_FOXGLOVE_QUEUE,
                                    .context = f,
                                    .guests = guests,
                                    .open = on_open,
                                    .message = on_message,
                                    .close = on_close};
    }
    return USI_FOXGLOVE_N_PROTOCOL;
}

// ---------------------------------------------------------------- life

static void write_info(usi_foxglove *f, bool may_control, const char *session_id) {
    usi_json json;
    usi_json_init(&json, &f->info[may_control]);
    usi_json_begin(&json, NULL, '{');
    usi_json_text(&json, "op", "serverInfo");
    usi_json_text(&json, "name", "understudy");
    usi_json_begin(&json, "capabilities", '[');
    usi_json_text(&json, NULL, "time");
    if (may_control) usi_json_text(&json, NULL, "clientPublish");
    if (may_control) usi_json_text(&json, NULL, "services");
    usi_json_text(&json, NULL, "parameters");
    usi_json_text(&json, NULL, "parametersSubscribe");
    usi_json_text(&json, NULL, "assets");
    usi_json_end(&json, ']');
    usi_json_begin(&json, "supportedEncodings", '[');
    usi_json_text(&json, NULL, "cdr");
    usi_json_end(&json, ']');
    usi_json_begin(&json, "metadata", '{');
    usi_json_text(&json, "version", us_version());
    usi_json_end(&json, '}');
    usi_json_text(&json, "sessionId", session_id);
    usi_json_end(&json, '}');
    usi_json_fini(&json);
}

static void write_channels(usi_foxglove *f) {
    usi_json json;
    usi_json_init(&json, &f->channels);
    usi_json_begin(&json, NULL, '{');
    usi_json_text(&json, "op", "advertise");
    usi_json_begin(&json, "channels", '[');
    for (int32_t i = 0; i < f->n_channel; i++) {
        const usi_channel_info info = channel_info(f, i);
        if (!info.is_out || info.is_request) continue;
        usi_json_begin(&json, NULL, '{');
        usi_json_integer(&json, "id", i);
        usi_json_text(&json, "topic", info.topic);
        usi_json_text(&json, "encoding", "cdr");
        usi_json_text(&json, "schemaName", us_message_name(info.type));
        usi_json_text(&json, "schema", us_message_schema(info.type));
        usi_json_text(&json, "schemaEncoding", "ros2msg");
        usi_json_end(&json, '}');
        if (strcmp(info.topic, "/clock") == 0) f->clock = i;
    }
    usi_json_end(&json, ']');
    usi_json_end(&json, '}');
    usi_json_fini(&json);
}

// ---------------------------------------------------------------- the scene

static bool is_scene_wanted(void *context, usi_scenery_content content, uint64_t *out_arrivals) {
    usi_foxglove *f = context;
    *out_arrivals = atomic_load_explicit(&f->n_arrival[content], memory_order_relaxed);
    return atomic_load_explicit(&f->n_viewer[content], memory_order_relaxed) > 0;
}

static void send_scene(void *context, usi_scenery_content content, int64_t time, const void *bytes,
                       size_t length) {
    usi_foxglove *f = context;
    if (f->web) on_sample(f, f->n_proxy + (int32_t)content, time, bytes, length);
}

void usi_foxglove_show(usi_foxglove *f) {
    const us_pace_request request = us_world_get_pace_request(f->world);
    // Written by this thread alone.
    if (request.rate != f->rate || request.is_paused != f->is_paused) {
        usi_foxglove_take_settings(f);
        if (f->web) usi_web_wake(f->web);
    }
    if (atomic_load_explicit(&f->n_scene, memory_order_relaxed) == 0) return;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    usi_scenery_show(f->scene, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
}

us_status usi_foxglove_create(us_world *world, const char *scene, usi_foxglove **out_foxglove,
                              us_error *err) {
    const us_allocator a = *usi_world_allocator(world);
    usi_foxglove *f = usi_alloc(&a, sizeof *f, _Alignof(usi_foxglove));
    if (!f)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for the Foxglove sessions");
    memset(f, 0, sizeof *f);
    f->world = world;
    f->allocator = a;
    f->proxy = us_world_get_proxy(world);
    f->clock = -1;
    f->time = -1;
    f->n_proxy = usi_proxy_n_channel(f->proxy);
    f->n_channel = f->n_proxy + USI_SCENERY_COUNT;
    pthread_mutex_init(&f->lock, NULL);
    usi_foxglove_take_settings(f);
    usi_bytes *buffers[] = {&f->info[0], &f->info[1], &f->channels, &f->services, &f->text, &f->frame};
    for (size_t k = 0; k < sizeof buffers / sizeof buffers[0]; k++)
        usi_bytes_init(buffers[k], &a, ADVERTISEMENT);
    f->ring = usi_alloc(&a, RING, SLOT);
    f->n_subscriber = usi_alloc(&a, (size_t)f->n_channel * sizeof *f->n_subscriber, _Alignof(int32_t));
    if (f->n_subscriber) memset(f->n_subscriber, 0, (size_t)f->n_channel * sizeof *f->n_subscriber);
    // A client that comes back can tell whether it is the same run.
    struct timespec now;
    char id[48];
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(id, sizeof id, "%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
    write_info(f, false, id);
    write_info(f, true, id);
    write_channels(f);
    usi_foxglove_write_services(f);
    const usi_scenery_sink sink = {.context = f,
                                   .is_foxglove = true,
                                   .assets = USI_FOXGLOVE_ASSETS,
                                   .is_wanted = is_scene_wanted,
                                   .send = send_scene};
    const us_status status = usi_scenery_create(world, &sink, &f->scene, err);
    f->scene_name = scene;
    if (status || !f->ring || !f->n_subscriber || f->info[0].status || f->info[1].status ||
        f->channels.status || f->services.status) {
        usi_foxglove_destroy(f);
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for the Foxglove sessions");
    }
    // No sample comes before usi_foxglove_feed: this is the thread that steps. Which ones are wanted, clients
    // may say as soon as there is a server.
    usi_proxy_set_tap(f->proxy, on_sample, f);
    for (int32_t i = 0; i < f->n_proxy; i++)
        usi_proxy_want_channel(f->proxy, i, false);
    *out_foxglove = f;
    return US_OK;
}

void usi_foxglove_feed(usi_foxglove *f, usi_web *web) {
    if (web) {
        f->web = web;
    } else {
        usi_proxy_set_tap(f->proxy, NULL, NULL);
    }
}

void usi_foxglove_destroy(usi_foxglove *f) {
    if (!f) return;
    const us_allocator a = f->allocator;
    usi_bytes *buffers[] = {&f->info[0], &f->info[1], &f->channels, &f->services, &f->text, &f->frame};
    for (size_t k = 0; k < sizeof buffers / sizeof buffers[0]; k++)
        usi_bytes_fini(buffers[k]);
    usi_scenery_destroy(f->scene);
    pthread_mutex_destroy(&f->lock);
    usi_release(&a, f->ring, RING, SLOT);
    usi_release(&a, f->n_subscriber, (size_t)f->n_channel * sizeof *f->n_subscriber, _Alignof(int32_t));
    usi_release(&a, f, sizeof *f, _Alignof(usi_foxglove));
}

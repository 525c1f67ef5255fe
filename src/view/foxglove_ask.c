// What Foxglove clients ask for beside channels: services and parameters, which are commands to the world,
// and files of meshes.
//
//     server's thread                         stepping thread
//     a call, a parameter --us_world_post---> carried out at the next poll
//     usi_foxglove_tell <----on_reply-------- the answer, under the lock
#include <stdio.h>
#include <string.h>

#include "view/view__asset.h"
#include "view/view__foxglove_session.h"
#include "view/view__page.h"

// ---------------------------------------------------------------- services

// Each is a command to the world. Their types are those of std_srvs; the last one takes the command's text.
static const struct {
    const char *name, *type, *request, *command;  // NULL: the request has it
} services[] = {
    {"/understudy/pause", "std_srvs/srv/Trigger", "", "pause"},
    {"/understudy/resume", "std_srvs/srv/Trigger", "", "resume"},
    {"/understudy/step", "std_srvs/srv/Trigger", "", "step"},
    {"/understudy/reset", "std_srvs/srv/Trigger", "", "reset"},
    {"/understudy/tell", "understudy_msgs/srv/Tell", "string command", NULL},
};
enum { N_SERVICE = sizeof services / sizeof services[0] };
static const char RESPONSE[] = "bool success\nstring message";

void usi_foxglove_write_services(usi_foxglove *f) {
    usi_json json;
    usi_foxglove_begin_text(&f->services, &json, "advertiseServices");
    usi_json_begin(&json, "services", '[');
    for (int32_t i = 0; i < N_SERVICE; i++) {
        usi_json_begin(&json, NULL, '{');
        usi_json_integer(&json, "id", i);
        usi_json_text(&json, "name", services[i].name);
        usi_json_text(&json, "type", services[i].type);
        usi_json_text(&json, "requestSchema", services[i].request);
        usi_json_text(&json, "responseSchema", RESPONSE);
        usi_json_end(&json, '}');
    }
    usi_json_end(&json, ']');
    usi_foxglove_end_text(&json);
}

static void fail_call(usi_foxglove_session *s, uint32_t service, uint32_t call, const char *why) {
    usi_bytes *text = &s->foxglove->text;
    usi_json json;
    usi_foxglove_begin_text(text, &json, "serviceCallFailure");
    usi_json_integer(&json, "serviceId", service);
    usi_json_integer(&json, "callId", call);
    usi_json_text(&json, "message", why);
    usi_foxglove_end_text(&json);
    (void)usi_foxglove_send_text(s, text);
}

// The layout of a truth value and a text.
static void answer_call(usi_foxglove_session *s, const usi_foxglove_wait *w) {
    uint8_t frame[USI_FOXGLOVE_REPLY_HEAD + USI_WORLD_REPLY + 64];
    const us_msg_set_parameters_result m = {.successful = w->is_ok, .reason = usi_text(w->text)};
    size_t n = 0;
    usi_foxglove_put_reply(frame, (uint32_t)w->service, w->call);
    if (us_message_encode(usi_type_set_parameters_result, &m, frame + USI_FOXGLOVE_REPLY_HEAD,
                          sizeof frame - USI_FOXGLOVE_REPLY_HEAD, &n) ||
        !usi_web_send(s->client, true, frame, USI_FOXGLOVE_REPLY_HEAD + n))
        s->n_lost++;
}

// ---------------------------------------------------------------- commands to the world

static void on_reply(void *context, int64_t id, us_status status, const char *text) {
    usi_foxglove_session *s = context;
    usi_foxglove *f = s->foxglove;
    usi_foxglove_take_settings(f);
    pthread_mutex_lock(&f->lock);
    usi_foxglove_wait *w = &s->wait[id];
    w->state = USI_WAIT_ANSWERED;
    w->is_ok = status == US_OK;
    snprintf(w->text, sizeof w->text, "%s", text && text[0] ? text : status ? us_status_text(status) : "");
    pthread_mutex_unlock(&f->lock);
    usi_web_wake(f->web);
}

// A text of why it cannot be carried out; NULL: it was posted, and is answered by and by.
static const char *post(usi_foxglove_session *s, const char *command, const usi_foxglove_wait *wait,
                        char *why, size_t cap) {
    usi_foxglove *f = s->foxglove;
    const usi_web_role needed = usi_world_command_role(command);
    if (usi_web_get_role(s->client) < needed) {
        usi_role_refusal(s->client, needed, why, cap);
        return why;
    }
    int32_t slot = 0;
    pthread_mutex_lock(&f->lock);
    while (slot < USI_FOXGLOVE_WAITING && s->wait[slot].state != USI_WAIT_FREE)
        slot++;
    if (slot < USI_FOXGLOVE_WAITING) {
        s->wait[slot] = *wait;
        s->wait[slot].state = USI_WAIT_ASKED;
    }
    pthread_mutex_unlock(&f->lock);
    if (slot == USI_FOXGLOVE_WAITING)
        return "too many of this client's commands wait: send the next one when one was answered";
    if (!us_world_post(f->world, usi_web_client_name(s->client), command, on_reply, s, slot)) return NULL;
    pthread_mutex_lock(&f->lock);
    s->wait[slot].state = USI_WAIT_FREE;
    pthread_mutex_unlock(&f->lock);
    return "too many commands wait, or this one is too long: try again";
}

void usi_foxglove_call(usi_foxglove_session *s, const usi_foxglove_message *m) {
    uint64_t memory[64 + USI_FOXGLOVE_MESSAGE / 64];
    char why[USI_ROLE_TEXT];
    const void *request = NULL;
    if (m->id >= N_SERVICE || !m->is_cdr) {
        fail_call(s, m->id, m->call,
                  m->id >= N_SERVICE ? "there is no such service" : "requests must be encoded as cdr");
        return;
    }
    const char *command = services[m->id].command;
    if (!command &&
        !us_message_decode(usi_type_string, m->bytes, m->length, memory, sizeof memory, &request, NULL))
        command = ((const us_msg_string *)request)->data;
    const usi_foxglove_wait wait = {.service = (int32_t)m->id, .call = m->call};
    const char *refusal = command ? post(s, command, &wait, why, sizeof why)
                                  : "the request is no text of a command, or too long";
    if (refusal) fail_call(s, m->id, m->call, refusal);
}

// ---------------------------------------------------------------- parameters

static const char *const settings[USI_SETTING_COUNT] = {
    [USI_SETTING_RATE] = "/understudy/rate",
    [USI_SETTING_PAUSED] = "/understudy/paused",
    [USI_SETTING_SCENE] = "/understudy/scene",
    [USI_SETTING_VERSION] = "/understudy/version",
};
enum { ALL_SETTINGS = (1 << USI_SETTING_COUNT) - 1 };

void usi_foxglove_take_settings(usi_foxglove *f) {
    const us_pace_request request = us_world_get_pace_request(f->world);
    pthread_mutex_lock(&f->lock);
    f->rate = request.rate;
    f->is_paused = request.is_paused;
    pthread_mutex_unlock(&f->lock);
}

static int32_t find_setting(const char *name) {
    for (int32_t i = 0; i < USI_SETTING_COUNT; i++) {
        if (strcmp(settings[i], name) == 0) return i;
    }
    return -1;
}

// Those of a list of names; of none, all.
static uint32_t settings_of(const usi_foxglove_message *m) {
    uint32_t bits = m->n == 0 ? ALL_SETTINGS : 0;
    for (int32_t k = 0; k < m->n; k++) {
        const int32_t i = find_setting(m->parameters[k].name);
        if (i >= 0) bits |= 1U << i;
    }
    return bits;
}

static void send_settings(usi_foxglove_session *s, uint32_t bits, const char *request) {
    usi_foxglove *f = s->foxglove;
    usi_json json;
    pthread_mutex_lock(&f->lock);
    const double rate = f->rate;
    const bool is_paused = f->is_paused;
    pthread_mutex_unlock(&f->lock);
    usi_foxglove_begin_text(&f->text, &json, "parameterValues");
    usi_json_begin(&json, "parameters", '[');
    for (int32_t i = 0; i < USI_SETTING_COUNT; i++) {
        if (!(bits & 1U << i)) continue;
        usi_json_begin(&json, NULL, '{');
        usi_json_text(&json, "name", settings[i]);
        if (i == USI_SETTING_RATE) {
            usi_json_number(&json, "value", rate);
            usi_json_text(&json, "type", "float64");
        } else if (i == USI_SETTING_PAUSED) {
            usi_json_bool(&json, "value", is_paused);
        } else {
            usi_json_text(&json, "value", i == USI_SETTING_SCENE ? f->scene_name : us_version());
        }
        usi_json_end(&json, '}');
    }
    usi_json_end(&json, ']');
    if (request[0]) usi_json_text(&json, "id", request);
    usi_foxglove_end_text(&json);
    if (usi_foxglove_send_text(s, &f->text)) {
        if (bits & 1U << USI_SETTING_RATE) s->told_rate = rate;
        if (bits & 1U << USI_SETTING_PAUSED) s->told_paused = is_paused;
    }
}

void usi_foxglove_get_parameters(usi_foxglove_session *s, const usi_foxglove_message *m) {
    send_settings(s, settings_of(m), m->request);
}

// The command that sets one; false with the reason when it cannot be set so.
static bool command_of(const usi_foxglove_parameter *p, char *out, size_t cap) {
    const int32_t i = find_setting(p->name);
    if (i == USI_SETTING_RATE && p->kind == USI_FOXGLOVE_NUMBER) {
        snprintf(out, cap, p->number == 0 ? "rate max" : "rate %.17g", p->number);
        return true;
    }
    if (i == USI_SETTING_PAUSED && p->kind == USI_FOXGLOVE_BOOL) {
        snprintf(out, cap, p->number != 0 ? "pause" : "resume");
        return true;
    }
    const char *why = i < 0                     ? "there is no such parameter"
                      : i == USI_SETTING_RATE   ? "it is a number: 1 is real time, 0 as fast as possible"
                      : i == USI_SETTING_PAUSED ? "it is true or false"
                                                : "it cannot be set";
    snprintf(out, cap, "%s: %s", p->name, why);
    return false;
}

void usi_foxglove_set_parameters(usi_foxglove_session *s, const usi_foxglove_message *m) {
    char text[USI_ROLE_TEXT], why[USI_ROLE_TEXT];
    const uint32_t bits = m->n == 0 ? 0 : settings_of(m);
    int32_t n_posted = 0;
    for (int32_t k = 0; k < m->n; k++) {
        // They are carried out in this order: the last one tells.
        usi_foxglove_wait wait = {.service = -1};
        if (k == m->n - 1) {
            wait.parameters = bits;
            snprintf(wait.request, sizeof wait.request, "%s", m->request);
        }
        const char *refusal = text;
        if (command_of(&m->parameters[k], text, sizeof text)) refusal = post(s, text, &wait, why, sizeof why);
        if (refusal) usi_foxglove_report_error(s, refusal);
        n_posted = !refusal && k == m->n - 1;
    }
    // Nobody else tells when the last was refused: then all is as it is now.
    if (n_posted == 0 && m->request[0]) send_settings(s, bits, m->request);
}

void usi_foxglove_watch_parameters(usi_foxglove_session *s, const usi_foxglove_message *m) {
    const uint32_t bits = settings_of(m), before = s->watched;
    s->watched = m->op == USI_FOXGLOVE_WATCH ? before | bits : before & ~bits;
    if (s->watched & ~before) send_settings(s, s->watched & ~before, "");
}

void usi_foxglove_tell(usi_foxglove_session *s) {
    usi_foxglove *f = s->foxglove;
    for (int32_t i = 0; i < USI_FOXGLOVE_WAITING; i++) {
        pthread_mutex_lock(&f->lock);
        const bool is_done = s->wait[i].state == USI_WAIT_ANSWERED;
        const usi_foxglove_wait w = s->wait[i];
        if (is_done) s->wait[i].state = USI_WAIT_FREE;
        pthread_mutex_unlock(&f->lock);
        if (!is_done) continue;
        if (w.service >= 0) {
            answer_call(s, &w);
            continue;
        }
        if (!w.is_ok) usi_foxglove_report_error(s, w.text);
        if (w.parameters && w.request[0]) send_settings(s, w.parameters, w.request);
    }
    pthread_mutex_lock(&f->lock);
    uint32_t bits = f->rate != s->told_rate ? 1U << USI_SETTING_RATE : 0;
    if (f->is_paused != s->told_paused) bits |= 1U << USI_SETTING_PAUSED;
    pthread_mutex_unlock(&f->lock);
    if (bits & s->watched) send_settings(s, bits & s->watched, "");
}

// ---------------------------------------------------------------- assets

// The whole file; NULL when it cannot be read.
static void *read_whole(const us_allocator *a, const char *path, size_t *out_length) {
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    if (!file) return NULL;
    const long n = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (n > 0 && n <= USI_FOXGLOVE_QUEUE && fseek(file, 0, SEEK_SET) == 0) {
        bytes = usi_alloc(a, (size_t)n, 1);
        if (bytes && fread(bytes, 1, (size_t)n, file) != (size_t)n) {
            usi_release(a, bytes, (size_t)n, 1);
            bytes = NULL;
        }
    }
    fclose(file);
    *out_length = bytes ? (size_t)n : 0;
    return bytes;
}

// A shape whose mesh goes by this name, as the robot's description has it. Only files that the scene names
// are ever opened.
static const us_shape_def *find_mesh(const us_spec *spec, const char *uri) {
    const int32_t n = us_spec_get_counts(spec).n_shape;
    for (int32_t i = 0; i < n; i++) {
        const us_shape_def *shape = us_spec_view_shape(spec, i);
        if (shape->mesh && shape->mesh_uri && strcmp(shape->mesh_uri, uri) == 0) return shape;
    }
    return NULL;
}

// "package://understudy/1/3.glb" and "/api/asset/1/3.glb" are our own names; all others are the scene's.
static us_status read_asset(const usi_revision *revision, const us_allocator *a, const char *uri, void **out,
                            size_t *out_length, us_error *err) {
    static const char *const own[] = {USI_FOXGLOVE_ASSETS, "/api/asset/"};
    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
        if (strncmp(uri, own[k], strlen(own[k])) != 0) continue;
        const char *ending = "";
        int32_t number = 0;
        if (!usi_asset_scan(uri + strlen(own[k]), "", &number, &ending) || *ending != '/') break;
        if ((uint32_t)number != revision->number)
            return us_error_set(err, US_ERR_NAME, NULL, NULL, "the world was changed since: %u is now %u",
                                (unsigned)number, (unsigned)revision->number);
        return usi_world_asset(revision, ending + 1, a, out, out_length, err);
    }
    const us_shape_def *shape = find_mesh(revision->spec, uri);
    if (!shape)
        return us_error_set(err, US_ERR_NAME, NULL, NULL,
                            "no mesh of this world is called so: take names from robot_description or "
                            "/understudy/scene");
    *out = read_whole(a, shape->mesh, out_length);
    return *out
               ? US_OK
               : us_error_set(err, US_ERR_IO, NULL, NULL,
                              "the file cannot be read, or is larger than %d bytes", (int)USI_FOXGLOVE_QUEUE);
}

void usi_foxglove_fetch(usi_foxglove_session *s, const usi_foxglove_message *m) {
    usi_foxglove *f = s->foxglove;
    usi_revision *revision = usi_world_take_revision(f->world);
    us_error err = {0};
    void *bytes = NULL;
    size_t length = 0;
    us_status status = read_asset(revision, &f->allocator, m->uri, &bytes, &length, &err);
    usi_revision_unref(revision);
    if (!status && length + USI_FOXGLOVE_ASSET_HEAD > USI_FOXGLOVE_QUEUE)
        status =
            us_error_set(&err, US_ERR_LIMIT, NULL, NULL,
                         "it has %zu bytes, and this connection takes %d: get it by HTTP, /api/asset/...",
                         length, (int)USI_FOXGLOVE_QUEUE);
    const size_t n = strlen(err.message);
    uint8_t head[USI_FOXGLOVE_ASSET_HEAD];
    usi_foxglove_put_asset(head, m->id, status ? (uint32_t)n : 0);
    f->frame.length = 0;
    f->frame.status = US_OK;
    usi_bytes_put(&f->frame, head, sizeof head);
    usi_bytes_put(&f->frame, status ? (const void *)err.message : bytes, status ? n : length);
    usi_release(&f->allocator, bytes, length, 1);
    if (f->frame.status || !usi_web_send(s->client, true, f->frame.at, f->frame.length))
        usi_foxglove_report_error(s, "a file was left out: too much waits for this connection");
}

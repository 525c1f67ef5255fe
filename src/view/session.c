// One client of the page: what it asks for, and what it is sent.
//
// Everything that a client must learn has a number of what it was sent last, so that what its queue has no
// room for is sent later and nothing is lost; frames alone are left out. A client whose queue is not empty
// gets none: it sees fewer, and each is the newest.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/tap.h"
#include "view/view__page.h"
#include "wire/messages.h"

static const double MOVED =
    1e-6;  // m, and in a quaternion: a hundredth of what a screen shows from a metre away
static const double FIRST_HZ = 30;
static const double RUT_PERIOD = 0.1;  // s between two messages with tiles of soil
// Messages per second that a client may send, and how many at once. A page that drives by stick and moves a
// slider sends about 40.
static const double MESSAGE_RATE = 200, MESSAGE_BURST = 400;
enum { SMALL_BACKLOG = 65536 };  // bytes: with more than this waiting, a client gets nothing but answers

// ---------------------------------------------------------------- sending

static bool send_text(usi_session *s, const usi_bytes *text) {
    return usi_web_send(s->client, false, text->at, text->length);
}

// Simulated time, as of the frame that is being shown.
static double shown_time(const us_view *view) { return view->frames[view->front].time; }

static void close_session(usi_session *s, const char *why) {
    if (s->is_closing) return;
    s->is_closing = true;
    char line[200];
    snprintf(line, sizeof line, "%s disconnected: %s", usi_web_client_name(s->client), why);
    usi_page_note(s->view, 1, shown_time(s->view), line);
    usi_web_close(s->client, why);
}

// An error that is no mistake of the protocol. One that there is no room for is dropped: the client does not
// read.
static void send_error(usi_session *s, const char *text) {
    if (usi_text_error(&s->view->buffer, text)) send_text(s, &s->view->buffer);
}

static void count_error(usi_session *s, const us_error *err) {
    char text[sizeof err->message + sizeof err->remedy + 8];
    snprintf(text, sizeof text, err->remedy[0] ? "%s: %s" : "%s", err->message, err->remedy);
    if (++s->n_error == 1) {
        char line[sizeof text + 100];
        snprintf(line, sizeof line, "%s sent an invalid message: %s", usi_web_client_name(s->client), text);
        usi_page_note(s->view, 1, shown_time(s->view), line);
    }
    send_error(s, text);
    if (s->n_error > USI_PAGE_ERRORS) close_session(s, "too many protocol errors");
}

// The answers that have come. False when the queue is full; the rest stays.
static bool send_replies(usi_session *s) {
    for (;;) {
        usi_page_reply reply;
        pthread_mutex_lock(&s->view->lock);
        bool is_there = s->n_reply > 0;
        if (is_there) reply = s->reply[0];
        pthread_mutex_unlock(&s->view->lock);
        if (!is_there) return true;
        if (!usi_text_reply(&s->view->buffer, reply.id, reply.is_ok, reply.text) ||
            !send_text(s, &s->view->buffer))
            return false;
        // Others are only added behind.
        pthread_mutex_lock(&s->view->lock);
        memmove(s->reply, s->reply + 1, (size_t)--s->n_reply * sizeof s->reply[0]);
        pthread_mutex_unlock(&s->view->lock);
    }
}

// An answer without a poll of the world. A client that has no room even for that is not worth keeping: an
// answer is never lost on one that stays.
static void answer_now(usi_session *s, int64_t id, const char *text) {
    if (!usi_text_reply(&s->view->buffer, id, false, text) || !send_text(s, &s->view->buffer))
        close_session(s, "it does not read its answers");
}

void usi_session_reply(void *context, int64_t id, us_status status, const char *text) {
    usi_session *s = context;
    us_view *view = s->view;
    pthread_mutex_lock(&view->lock);
    if (s->n_waiting > 0 && s->n_reply < USI_PAGE_REPLIES) {
        usi_page_reply *reply = &s->reply[s->n_reply++];
        s->n_waiting--;
        reply->id = id;
        reply->is_ok = status == US_OK;
        snprintf(reply->text, sizeof reply->text, "%s",
                 text && text[0] ? text
                 : status        ? us_status_text(status)
                                 : "");
    }
    pthread_mutex_unlock(&view->lock);
    usi_web_wake(view->web);
}

// ---------------------------------------------------------------- frames

static bool has_moved(const float a[7], const float b[7]) {
    for (int i = 0; i < 7; i++) {
        if (!(fabs((double)a[i] - (double)b[i]) <= MOVED)) return true;
    }
    return false;
}

// Time stands still, and so does everything in the frame.
static bool is_still(const usi_session *s, const usi_view_frame *p) {
    if (s->is_full || s->is_dirty || s->tick != p->tick || s->jump != p->jump) return false;
    for (int32_t i = 0; i < p->n_body; i++) {
        if (has_moved(p->pose[i], s->sent[i])) return false;
    }
    return true;
}

static uint8_t *room_for(usi_bytes *buffer, size_t size) {
    buffer->length = 0;
    buffer->status = US_OK;
    return usi_bytes_room(buffer, size);
}

static usi_view_head head_of(const usi_view_frame *p, usi_view_kind kind, int32_t n) {
    return (usi_view_head){
        .kind = kind, .epoch = p->revision->number, .time = p->time, .tick = p->tick, .n = (uint32_t)n};
}

static bool send_poses(usi_session *s, const usi_view_frame *p) {
    usi_bytes *buffer = &s->view->buffer;
    uint8_t *begin = room_for(buffer, USI_VIEW_HEAD_SIZE + (size_t)p->n_body * USI_VIEW_POSE_SIZE),
            *at = begin;
    if (!begin) return false;
    at += USI_VIEW_HEAD_SIZE;
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_body; i++) {
        if (!s->is_full && !has_moved(p->pose[i], s->sent[i])) continue;
        at = usi_view_put_pose(at, (uint32_t)i, p->pose[i]);
        memcpy(s->sent[i], p->pose[i], sizeof s->sent[i]);
        n++;
    }
    usi_view_head head = head_of(p, USI_VIEW_POSES, n);
    head.flags = s->is_full ? USI_VIEW_FULL : 0;
    usi_view_put_head(begin, &head);
    // What was not sent was not seen: after a failure the next frame has all.
    s->is_full = !usi_web_send(s->client, true, begin, (size_t)(at - begin));
    return !s->is_full;
}

static bool send_values(usi_session *s, const usi_view_frame *p) {
    uint8_t *begin = room_for(&s->view->buffer, USI_VIEW_HEAD_SIZE + (size_t)s->n_slot * USI_VIEW_VALUE_SIZE);
    if (!begin) return false;
    usi_view_head head = head_of(p, USI_VIEW_VALUES, s->n_slot);
    head.epoch = s->generation;
    uint8_t *at = usi_view_put_head(begin, &head);
    for (int32_t i = 0; i < s->n_slot; i++)
        at = usi_view_put_value(at, p->value[s->slot[i]]);
    return usi_web_send(s->client, true, begin, (size_t)(at - begin));
}

static bool send_contacts(usi_session *s, const usi_view_frame *p) {
    us_view *view = s->view;
    if (view->contacts_made != p->number) {
        uint8_t *at =
            room_for(&view->contacts, USI_VIEW_HEAD_SIZE + (size_t)p->n_contact * USI_VIEW_CONTACT_SIZE);
        if (!at) return false;
        usi_view_head head = head_of(p, USI_VIEW_CONTACTS, p->n_contact);
        at = usi_view_put_head(at, &head);
        for (int32_t i = 0; i < p->n_contact; i++)
            at = usi_view_put_contact(at, &p->contact[i]);
        view->contacts_made = p->number;
    }
    return usi_web_send(s->client, true, view->contacts.at, view->contacts.length);
}

static bool send_torques(usi_session *s, const usi_view_frame *p) {
    us_view *view = s->view;
    if (view->torques_made != p->number) {
        uint8_t *at =
            room_for(&view->torques, USI_VIEW_HEAD_SIZE + (size_t)p->n_torque * USI_VIEW_TORQUE_SIZE);
        if (!at) return false;
        usi_view_head head = head_of(p, USI_VIEW_TORQUES, p->n_torque);
        at = usi_view_put_head(at, &head);
        for (int32_t i = 0; i < p->n_torque; i++)
            at = usi_view_put_torque(at, p->torque[i]);
        view->torques_made = p->number;
    }
    return usi_web_send(s->client, true, view->torques.at, view->torques.length);
}

static bool can_see_values(const usi_session *s, const usi_view_frame *p) {
    return s->n_slot > 0 && p->watched >= s->needed;
}

static void send_frame(usi_session *s, const usi_view_frame *p, double now) {
    if (s->hz <= 0 || p->number == s->frame || usi_web_backlog(s->client) > 0) return;
    // Frames come on the stepping thread's beat: one that is a little early is meant.
    double period = 1 / s->hz, slack = fmin(period / 2, 0.008);
    if (now + slack < s->due) return;
    s->frame = p->number;
    if (is_still(s, p)) return;
    s->due = fmax(s->due + period, now);
    if (!send_poses(s, p)) return;
    s->tick = p->tick;
    s->jump = p->jump;
    bool is_whole = true;
    if (can_see_values(s, p)) is_whole &= send_values(s, p);
    if (s->enable_contacts && p->has_contacts) is_whole &= send_contacts(s, p);
    if (s->enable_torques && p->has_torques) is_whole &= send_torques(s, p);
    s->is_dirty = !is_whole || (s->n_slot > 0 && !can_see_values(s, p)) ||
                  (s->enable_contacts && !p->has_contacts) || (s->enable_torques && !p->has_torques);
}

// ---------------------------------------------------------------- everything else

static bool send_log(usi_session *s) {
    pthread_mutex_lock(&s->view->lock);
    bool is_new = s->view->n_line != s->log;
    pthread_mutex_unlock(&s->view->lock);
    uint64_t to = s->log;
    if (!is_new) return true;
    if (!usi_text_log(&s->view->buffer, s->view, s->log, &to) || !send_text(s, &s->view->buffer))
        return false;
    s->log = to;
    return true;
}

// Another world: the client forgets all indices, and so do we.
static bool send_revision(usi_session *s, const usi_view_frame *p) {
    if (p->n_body > s->cap_sent) {
        const us_allocator *a = &s->view->allocator;
        void *sent = usi_alloc(a, (size_t)p->n_body * sizeof *s->sent, _Alignof(float));
        if (!sent) return false;
        usi_release(a, s->sent, (size_t)s->cap_sent * sizeof *s->sent, _Alignof(float));
        s->sent = sent;
        s->cap_sent = p->n_body;
        s->is_full = true;
    }
    if (s->revision == p->revision->number) return true;
    if (!usi_text_revision(&s->view->buffer, p->revision->number) || !send_text(s, &s->view->buffer))
        return false;
    s->revision = p->revision->number;
    s->is_full = true;
    return true;
}

static bool send_status(usi_session *s, const usi_view_frame *p) {
    us_view *view = s->view;
    if (s->status == p->status.version) return true;
    if (view->status_made != p->status.version) {
        if (!usi_text_status(&view->status_text, view, &p->status)) return false;
        view->status_made = p->status.version;
    }
    if (!send_text(s, &view->status_text)) return false;
    s->status = p->status.version;
    return true;
}

static bool send_pairs(usi_session *s, const usi_view_frame *p) {
    us_view *view = s->view;
    if (s->pairs == p->pairs.version) return true;
    if (view->pairs_made != p->pairs.version) {
        if (!usi_text_pairs(&view->pairs_text, p)) return false;
        view->pairs_made = p->pairs.version;
    }
    if (!send_text(s, &view->pairs_text)) return false;
    s->pairs = p->pairs.version;
    return true;
}

// Once a second for all that want it; whoever asks in between has the last one.
static bool send_topics(usi_session *s, double now) {
    us_view *view = s->view;
    if (!s->enable_topics) return true;
    if (view->topics_made == 0 || now >= view->topics_time + 1) {
        if (!usi_text_topics(&view->topics_text, view, now - view->topics_time)) return false;
        view->topics_time = now;
        view->topics_made++;
    }
    if (s->topics == view->topics_made) return true;
    if (!send_text(s, &view->topics_text)) return false;
    s->topics = view->topics_made;
    return true;
}

// Which of its names are none: sent when they were looked up, and again in another revision.
static bool send_watching(usi_session *s, const usi_view_frame *p) {
    if (p->watched < s->needed || (s->is_watching_sent && s->watching_revision == p->revision->number))
        return true;
    if (!usi_text_watching(&s->view->buffer, s, p) || !send_text(s, &s->view->buffer)) return false;
    s->is_watching_sent = true;
    s->watching_revision = p->revision->number;
    return true;
}

// The patches of its revision, and then tiles of them that it has not got as they are: ten times a second,
// and only to one who has read all before.
static bool send_ruts(usi_session *s, const usi_view_frame *p, double now) {
    us_view *view = s->view;
    const uint32_t revision = p->revision->number;
    if (s->patches != revision) {
        us_deformable_info patches[USI_RUTS_DEFORMABLES];
        int32_t n;
        if (!usi_ruts_get_deformables(&view->ruts, revision, &n, patches)) return true;
        if (!usi_text_deformables(&view->buffer, revision, n, patches) || !send_text(s, &view->buffer))
            return false;
        s->patches = revision;
        s->rut = 0;
    }
    if (s->hz <= 0 || now < s->rut_due || usi_web_backlog(s->client) > 0) return true;
    uint8_t *begin =
        room_for(&view->buffer, USI_VIEW_HEAD_SIZE + (size_t)USI_RUTS_IN_FRAME * USI_VIEW_RUT_SIZE);
    uint64_t newest = s->rut;
    int32_t n = begin ? usi_ruts_put(&view->ruts, revision, &newest, begin + USI_VIEW_HEAD_SIZE) : 0;
    if (n == 0) return begin != NULL;
    usi_view_head head = head_of(p, USI_VIEW_RUTS, n);
    usi_view_put_head(begin, &head);
    if (!usi_web_send(s->client, true, begin, USI_VIEW_HEAD_SIZE + (size_t)n * USI_VIEW_RUT_SIZE))
        return false;
    s->rut = newest;
    s->rut_due = n == USI_RUTS_IN_FRAME ? now : now + RUT_PERIOD;
    return true;
}

// Turns of lidars, one after the other, to one who has read all before.
static void send_clouds(usi_session *s, const usi_view_frame *p) {
    us_view *view = s->view;
    const uint32_t revision = p->revision->number;
    if (s->points == 0 || s->hz <= 0) return;
    if (s->cloud_revision != revision) s->cloud = 0;
    s->cloud_revision = revision;
    for (int32_t i = 0; i < USI_CLOUDS_LIDARS && usi_web_backlog(s->client) == 0; i++) {
        if (!usi_clouds_put(&view->clouds, revision, s->points, &s->cloud, &view->buffer) ||
            !usi_web_send(s->client, true, view->buffer.at, view->buffer.length))
            return;
    }
}

static void serve(usi_session *s, const usi_view_frame *p, double now) {
    if (s->is_closing || !send_replies(s) || usi_web_backlog(s->client) > SMALL_BACKLOG) return;
    if (!send_log(s)) return;
    // A frame from before it came may be of long ago, when somebody last looked.
    if (!p || p->taken < s->opened) return;
    if (!send_revision(s, p) || !send_pairs(s, p) || !send_status(s, p) || !send_topics(s, now) ||
        !send_watching(s, p))
        return;
    send_frame(s, p, now);
    send_ruts(s, p, now);
    send_clouds(s, p);
}

void usi_page_wake(us_view *view) {
    if (view->table.is_dirty) {
        usi_watch *copy = usi_watch_table_copy(&view->table), *old = NULL;
        if (copy) {
            pthread_mutex_lock(&view->lock);
            old = view->watch;
            view->watch = copy;
            atomic_store(&view->watch_generation, copy->generation);
            pthread_mutex_unlock(&view->lock);
            usi_watch_unref(old);
        }
    }
    const usi_view_frame *frame = usi_view_newest_frame(view);
    double now = usi_view_clock();
    for (usi_session *s = view->sessions; s; s = s->next)
        serve(s, frame, now);
}

void usi_session_drained(void *context, void *session) {
    us_view *view = context;
    serve(session, usi_view_newest_frame(view), usi_view_clock());
}

// ---------------------------------------------------------------- what it says

// The stepping thread is told what all sessions want together.
static void gather_requests(us_view *view) {
    double hz = 0;
    bool contacts = false, torques = false;
    int32_t points = 0;
    for (const usi_session *s = view->sessions; s; s = s->next) {
        hz = fmax(hz, fmax(s->hz, USI_PAGE_STATUS_HZ));
        contacts |= s->enable_contacts && s->hz > 0;
        torques |= s->enable_torques && s->hz > 0;
        if (s->hz > 0 && s->points > points) points = s->points;
    }
    atomic_store(&view->want_contacts, contacts);
    atomic_store(&view->want_torques, torques);
    atomic_store(&view->want_points, points);
    atomic_store(&view->rate, (int32_t)ceil(hz));
}

static void take_view(usi_session *s, const usi_view_message *m) {
    if (m->has & USI_VIEW_HAS_HZ) s->hz = m->hz;
    if (m->has & USI_VIEW_HAS_CONTACTS) s->enable_contacts = m->enable_contacts;
    if (m->has & USI_VIEW_HAS_TORQUES) s->enable_torques = m->enable_torques;
    if (m->has & USI_VIEW_HAS_POINTS) s->points = m->points;
    if (m->has & USI_VIEW_HAS_TOPICS) {
        if (m->enable_topics && !s->enable_topics) s->topics = 0;
        s->enable_topics = m->enable_topics;
    }
    s->due = fmin(s->due, usi_view_clock() + (s->hz > 0 ? 1 / s->hz : 0));
    s->is_dirty = true;
    gather_requests(s->view);
}

static void take_watch(usi_session *s, const usi_view_message *m) {
    usi_watch_table *table = &s->view->table;
    int32_t slot[USI_VIEW_VALUE_COUNT];
    uint64_t needed;
    us_status status = usi_watch_table_take(table, m->n_value, m->values, slot, &needed);
    if (status) {
        send_error(s, status == US_ERR_LIMIT ? "all clients together watch too many values: watch fewer"
                                             : us_status_text(status));
        return;
    }
    usi_watch_table_drop(table, s->n_slot, s->slot);
    if (m->n_value) memcpy(s->slot, slot, (size_t)m->n_value * sizeof slot[0]);
    s->n_slot = m->n_value;
    s->needed = needed;
    s->generation = m->generation;
    s->is_watching_sent = false;
    s->is_dirty = true;
}

// The role that a world command needs. Words that are none need what the most of them do.
usi_web_role usi_world_command_role(const char *text) {
    text += strspn(text, " \t");
    const size_t n = strcspn(text, " \t");
    if (n == 5 && strncmp(text, "drive", n) == 0) return USI_ROLE_DRIVE;
    if (n == 9 && strncmp(text, "authority", n) == 0) return USI_ROLE_SWITCH;
    return USI_ROLE_WORLD;
}

static void take_command(usi_session *s, const usi_view_message *m) {
    us_view *view = s->view;
    const usi_web_role needed = usi_world_command_role(m->text);
    if (usi_web_get_role(s->client) < needed) {
        char text[USI_ROLE_TEXT];
        usi_role_refusal(s->client, needed, text, sizeof text);
        answer_now(s, m->id, text);
        return;
    }
    // Room for the answer is kept before anything is asked.
    pthread_mutex_lock(&view->lock);
    bool has_room = s->n_waiting + s->n_reply < USI_PAGE_REPLIES;
    if (has_room) s->n_waiting++;
    pthread_mutex_unlock(&view->lock);
    if (!has_room) {
        answer_now(s, m->id,
                   "too many of this client's commands wait: send the next one when one was answered");
        return;
    }
    us_status status =
        us_world_post(view->world, usi_web_client_name(s->client), m->text, usi_session_reply, s, m->id);
    if (!status) return;
    pthread_mutex_lock(&view->lock);
    s->n_waiting--;
    pthread_mutex_unlock(&view->lock);
    answer_now(s, m->id,
               status == US_ERR_LIMIT ? "too many commands wait, or this one is too long: try again"
                                      : us_status_text(status));
}

static void take_drive(usi_session *s, const usi_view_message *m) {
    us_view *view = s->view;
    char text[USI_VIEW_NAME + USI_ROLE_TEXT];
    if (usi_web_get_role(s->client) < USI_ROLE_DRIVE) {
        usi_role_refusal(s->client, USI_ROLE_DRIVE, text, sizeof text);
        send_error(s, text);
        return;
    }
    int32_t robot = 0;
    while (robot < view->n_robot && strcmp(view->robots[robot].name, m->robot) != 0)
        robot++;
    const char *topic = robot < view->n_robot ? view->robots[robot].topic : NULL;
    if (!topic) {
        snprintf(text, sizeof text,
                 robot < view->n_robot ? "the robot \"%s\" has no cmd_vel" : "there is no robot \"%s\"",
                 m->robot);
        send_error(s, text);
        return;
    }
    us_msg_twist twist = {.linear = {.x = m->vx, .y = m->vy}, .angular = {.z = m->wz}};
    uint8_t bytes[128];
    size_t length = 0;
    us_status status = us_message_encode(usi_type_twist, &twist, bytes, sizeof bytes, &length);
    if (!status)
        status = us_proxy_post(us_world_get_proxy(view->world), topic, usi_type_twist,
                               usi_web_client_name(s->client), bytes, length);
    if (!status) return;
    snprintf(text, sizeof text, "the robot \"%s\" cannot be driven now: %s", m->robot,
             status == US_ERR_LIMIT ? "too many commands wait for it" : us_status_text(status));
    send_error(s, text);
}

// A client that says more than anybody could mean is told so, and in the end disconnected.
static bool is_allowed(usi_session *s) {
    double now = usi_view_clock();
    s->allowance = fmin(MESSAGE_BURST, s->allowance + MESSAGE_RATE * (now - s->allowed));
    s->allowed = now;
    if (s->allowance < 1) return false;
    s->allowance -= 1;
    return true;
}

void usi_session_message(void *context, void *session, bool is_binary, const void *bytes, size_t length) {
    us_view *view = context;
    usi_session *s = session;
    usi_view_message *m = &view->message;
    us_error err = {0};
    us_status status;
    if (s->is_closing) return;
    if (!is_allowed(s)) {
        status = us_error_set(&err, US_ERR_LIMIT, NULL, "send fewer", "more than %.0f messages per second",
                              MESSAGE_RATE);
    } else if (is_binary) {
        status = us_error_set(&err, US_ERR_SYNTAX, NULL, "send JSON as a text message",
                              "binary messages mean nothing here");
    } else {
        status = usi_view_parse(bytes, length, m, &err);
    }
    if (status) {
        count_error(s, &err);
        return;
    }
    switch (m->op) {
    case USI_VIEW_OP_VIEW:
        take_view(s, m);
        break;
    case USI_VIEW_OP_WATCH:
        take_watch(s, m);
        break;
    case USI_VIEW_OP_FULL:
        s->is_full = true;
        break;
    case USI_VIEW_OP_COMMAND:
        take_command(s, m);
        break;
    case USI_VIEW_OP_DRIVE:
        take_drive(s, m);
        break;
    }
}

// ---------------------------------------------------------------- coming and going

us_status usi_session_open(void *context, usi_web_client *client, void **out_session) {
    us_view *view = context;
    usi_session *s = usi_alloc(&view->allocator, sizeof *s, _Alignof(usi_session));
    if (!s) return US_ERR_MEMORY;
    memset(s, 0, sizeof *s);
    s->view = view;
    s->client = client;
    s->hz = FIRST_HZ;
    s->is_full = true;
    s->opened = s->allowed = s->due = usi_view_clock();
    s->allowance = MESSAGE_BURST;
    s->is_watching_sent = true;  // it watches nothing, and knows
    usi_revision *revision = usi_world_take_revision(view->world);
    s->revision = s->watching_revision = revision->number;
    usi_revision_unref(revision);
    if (!usi_text_hello(&view->buffer, view->scene, s->revision, usi_web_get_role(client)) ||
        !send_text(s, &view->buffer)) {
        usi_release(&view->allocator, s, sizeof *s, _Alignof(usi_session));
        return US_ERR_MEMORY;
    }
    s->next = view->sessions;
    view->sessions = s;
    view->n_session++;
    send_log(s);
    gather_requests(view);
    *out_session = s;
    return US_OK;
}

void usi_session_close(void *context, void *session) {
    us_view *view = context;
    usi_session *s = session, **link = &view->sessions;
    // Answers that are still on their way find nobody. Not under the lock: a reply that is being given takes
    // it.
    us_world_forget(view->world, s);
    while (*link && *link != s)
        link = &(*link)->next;
    if (*link) {
        *link = s->next;
        view->n_session--;
    }
    usi_watch_table_drop(&view->table, s->n_slot, s->slot);
    gather_requests(view);
    usi_release(&view->allocator, s->sent, (size_t)s->cap_sent * sizeof *s->sent, _Alignof(float));
    usi_release(&view->allocator, s, sizeof *s, _Alignof(usi_session));
}

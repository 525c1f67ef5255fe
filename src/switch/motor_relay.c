// The relay of the motor protocol: one thread, a socket for each client and two to the sources for each.
//
//     client --- message ---> the source in control: written while the gate is open, and remembered
//     client <-- answer ------ the source that got the message, once, whoever is in control by then
//     client <-- state ------- the source whose outputs go out
//
// A message whose answer has not come when control changes stays with the source that got it, which answers.
// Then all motors of that source are stopped, behind the message on the same connection. A source that is
// gone before it answered leaves messages of which nobody knows whether they took effect: each is answered
// by the relay, MNAK<copy>,lost. Without a source in control messages are refused with busy, but stops go to
// both.
//
// Nothing is known here of what messages mean but that an answer begins with a letter and ACK or NAK, has the
// copy of its message and, if it is a refusal, a comma and a reason; and that a stop begins with a letter and
// STP.
#include "switch/motor_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "bus/motor_socket.h"
#include "switch/switch.h"
#include "wire/motor.h"

enum {
    MAX_CLIENT = 64,  // of each kind
    MAX_SLOT = 2 * MAX_CLIENT + 1,
    MAX_MESSAGE = 192,  // with the ';'
    MAX_WAITING = 64,   // messages of one client at one source without an answer
    MAX_STATE = 128,    // motors and the like
    KEY = USI_REPORT_KEY,
    BUFFER = 16384,
    ROOM_FOR_STATES = BUFFER / 2,
    N_POLL = 3 * MAX_SLOT + 3,
    PERIOD_MS = 50,
};
#define RETRY INT64_C(200000000)      // ns between two attempts to reach a source
#define PATIENCE INT64_C(1000000000)  // ns for which messages wait for the first of them
#define IDLE INT64_C(60000000000)     // ns after which a silent client of UDP is forgotten
#define STALL INT64_C(5000000000)     // ns for which a client of TCP may read nothing

typedef struct buffer {
    size_t n;
    char bytes[BUFFER];
} buffer;

// A message that a source has, without its ';'.
typedef struct waiting {
    char text[MAX_MESSAGE];
    bool is_mute;  // its answer goes nowhere
} waiting;

// The connection of a client to a source.
typedef struct upstream {
    int fd;  // -1: none
    bool is_connecting;
    int64_t tried;  // ns: the last attempt
    buffer in, out;
    int32_t n_waiting;
    waiting waiting[MAX_WAITING];
} upstream;

typedef struct motor_state {
    char key[KEY];
    char said[2][MAX_MESSAGE];  // by each source, with the ';'
    char sent[MAX_MESSAGE];
} motor_state;

typedef struct client {
    int fd;  // of TCP; -1: of UDP, or the relay's own
    bool is_udp, is_own, is_ending;
    struct sockaddr_storage address;
    socklen_t n_address;
    int64_t heard, moved;  // ns: last byte in, last byte out
    int64_t held;          // ns: since when its next message waits for a source; 0: it does not
    buffer in, out;
    upstream up[2];
    int32_t n_state;
    motor_state states[MAX_STATE];
} client;

struct usi_motor_relay {
    us_switch *sw;
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_closing;
    int wake[2];
    usi_motor_sockets sockets;
    struct sockaddr_storage sources[2];
    socklen_t n_source[2];
    client *clients[MAX_SLOT];
    us_switch_source control, output;  // as last seen
};

// ---- bytes ----

static bool put(buffer *b, const char *bytes, size_t n) {
    if (n > sizeof b->bytes - b->n) return false;
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    return true;
}

static void drop(buffer *b, size_t n) {
    memmove(b->bytes, b->bytes + n, b->n - n);
    b->n -= n;
}

// Sends what it can. False when the connection is broken.
static bool flush(int fd, buffer *b) {
    while (b->n > 0) {
        const ssize_t n = send(fd, b->bytes, b->n, MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        drop(b, (size_t)n);
    }
    return true;
}

// The next whole message, without white space before it: its length without the ';', and how many bytes it
// takes. False: none is complete.
static bool find_message(const buffer *b, const char **out_text, size_t *out_length, size_t *out_taken) {
    const char *end = memchr(b->bytes, ';', b->n), *at = b->bytes;
    if (!end) return false;
    while (at < end && strchr(" \t\r\n", *at))
        at++;
    *out_text = at;
    *out_length = (size_t)(end - at);
    *out_taken = (size_t)(end - b->bytes) + 1;
    return true;
}

// ---- to clients ----

static void send_to_client(usi_motor_relay *r, client *c, const char *bytes, size_t n) {
    if (c->is_own) return;
    if (c->is_udp) {
        (void)sendto(r->sockets.udp, bytes, n, MSG_NOSIGNAL, (const struct sockaddr *)&c->address,
                     c->n_address);
    } else {
        (void)put(&c->out, bytes, n);
    }
}

static void refuse_message(usi_motor_relay *r, client *c, const char *text, size_t n, usi_motor_reason why) {
    char reply[USI_MOTOR_REPLY];
    const size_t length = usi_motor_format_refusal(text, n, why, reply, sizeof reply);
    send_to_client(r, c, reply, length);
}

static void send_state(usi_motor_relay *r, client *c, motor_state *s, us_switch_source output) {
    if (output == US_SWITCH_NOBODY || !s->said[output][0] || !strcmp(s->said[output], s->sent)) return;
    if (c->out.n > ROOM_FOR_STATES) return;
    memcpy(s->sent, s->said[output], sizeof s->sent);
    send_to_client(r, c, s->sent, strlen(s->sent));
}

// ---- sources ----

static void close_upstream(usi_motor_relay *r, client *c, upstream *u) {
    if (u->fd >= 0) close(u->fd);
    u->fd = -1;
    u->is_connecting = false;
    u->in.n = u->out.n = 0;
    for (int32_t i = 0; i < u->n_waiting; i++) {
        const waiting *w = &u->waiting[i];
        if (!w->is_mute) refuse_message(r, c, w->text, strlen(w->text), USI_MOTOR_LOST);
    }
    u->n_waiting = 0;
}

static void connect_upstream(usi_motor_relay *r, client *c, us_switch_source source) {
    upstream *u = &c->up[source];
    const int64_t now = usi_switch_now();
    if (u->fd >= 0 || now - u->tried < RETRY) return;
    u->tried = now;
    u->fd = socket(r->sources[source].ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (u->fd < 0) return;
    usi_motor_socket_tune(u->fd);
    u->is_connecting = true;
    if (connect(u->fd, (const struct sockaddr *)&r->sources[source], r->n_source[source]) &&
        errno != EINPROGRESS)
        close_upstream(r, c, u);
}

static bool is_there(const upstream *u) { return u->fd >= 0 && !u->is_connecting; }

// Writes a message to a source and remembers it. False: there is no room.
static bool give(usi_motor_relay *r, client *c, upstream *u, const char *text, size_t n, bool is_mute) {
    if (u->n_waiting == MAX_WAITING || n + 1 > sizeof u->out.bytes - u->out.n) return false;
    waiting *w = &u->waiting[u->n_waiting++];
    memcpy(w->text, text, n);
    w->text[n] = 0;
    w->is_mute = is_mute;
    put(&u->out, text, n);
    put(&u->out, ";", 1);
    if (!flush(u->fd, &u->out)) close_upstream(r, c, u);
    return true;
}

// ---- from clients ----

static bool is_stop(const char *text, size_t n) { return n >= 4 && !strncmp(text + 1, "STP", 3); }

// Whether a message waits: the source in control is being reached, its gate has not confirmed the change yet,
// or it has too much of this client already. Not for longer than PATIENCE in the first two cases.
static bool is_to_wait(client *c, us_switch_source control, bool is_permitted) {
    if (control == US_SWITCH_NOBODY) return false;
    const upstream *u = &c->up[control];
    const int64_t now = usi_switch_now();
    if (is_there(u) && is_permitted) {
        c->held = 0;
        return u->n_waiting > MAX_WAITING - 8 || u->out.n > 0;
    }
    if (c->held == 0) c->held = now;
    return now - c->held < PATIENCE;
}

static us_switch_source find_control(const us_switch *sw) {
    return sw->is_withdrawn || sw->tenure_since == 0 ? US_SWITCH_NOBODY : sw->authority.control;
}

// One message, with the gate open.
static void pass_message(usi_motor_relay *r, client *c, us_switch_source control, const char *text,
                         size_t n) {
    if (control != US_SWITCH_NOBODY && is_there(&c->up[control])) {
        if (!give(r, c, &c->up[control], text, n, false)) refuse_message(r, c, text, n, USI_MOTOR_BUSY);
        upstream *copy = &c->up[US_SWITCH_PROXY];
        if (r->sw->authority.mode == US_MODE_SHADOW && is_there(copy)) (void)give(r, c, copy, text, n, true);
        return;
    }
    bool is_given = false;
    for (int i = 0; i < 2 && is_stop(text, n); i++)
        is_given = (is_there(&c->up[i]) && give(r, c, &c->up[i], text, n, is_given)) || is_given;
    if (!is_given) refuse_message(r, c, text, n, USI_MOTOR_BUSY);
}

static void take_messages(usi_motor_relay *r, client *c) {
    us_switch *sw = r->sw;
    const char *text = NULL;
    size_t n = 0, taken = 0;
    while (find_message(&c->in, &text, &n, &taken)) {
        pthread_rwlock_rdlock(&sw->gate);
        us_switch_source control = find_control(sw);
        const bool is_permitted = control != US_SWITCH_NOBODY && usi_lease_permits(sw, control);
        const bool is_held = is_to_wait(c, control, is_permitted);
        if (!is_permitted) control = US_SWITCH_NOBODY;
        if (!is_held && n > USI_MOTOR_TEXT) {
            refuse_message(r, c, text, n, USI_MOTOR_TOO_LONG);
        } else if (!is_held && n > 0) {
            pass_message(r, c, control, text, n);
        }
        pthread_rwlock_unlock(&sw->gate);
        if (is_held) return;
        drop(&c->in, taken);
    }
    // What never ends takes no more room than a long message, and is refused when it ends.
    if (c->in.n > 2 * USI_MOTOR_TEXT && !memchr(c->in.bytes, ';', c->in.n)) c->in.n = 2 * USI_MOTOR_TEXT;
}

// ---- from sources ----

// "MACK" and the copy, or "MNAK", the copy, a comma and a reason. *out_n: of the copy; -1: no answer.
static int64_t find_copy(const char *text, size_t n) {
    if (n < 4) return -1;
    if (!strncmp(text + 1, "ACK", 3)) return (int64_t)n - 4;
    if (strncmp(text + 1, "NAK", 3) != 0) return -1;
    size_t comma = n;
    while (comma > 4 && text[comma - 1] != ',')
        comma--;
    return comma > 4 ? (int64_t)comma - 5 : 0;
}

// The message that an answer is to: the first of that text. -1: none.
static int32_t find_waiting(const upstream *u, const char *copy, size_t n) {
    for (int32_t i = 0; i < u->n_waiting; i++) {
        const char *text = u->waiting[i].text;
        if (strlen(text) == n && !memcmp(text, copy, n)) return i;
    }
    return -1;
}

static void take_answer(usi_motor_relay *r, client *c, upstream *u, const char *text, size_t n,
                        size_t n_copy) {
    const int32_t i = find_waiting(u, text + 4, n_copy);
    // A refusal of nothing in particular: the source's own trouble with the relay.
    if (i < 0) return;
    if (!u->waiting[i].is_mute) send_to_client(r, c, text, n + 1);
    u->n_waiting--;
    memmove(&u->waiting[i], &u->waiting[i + 1], (size_t)(u->n_waiting - i) * sizeof u->waiting[0]);
}

static void take_state(usi_motor_relay *r, client *c, us_switch_source source, const char *text, size_t n) {
    char key[KEY] = {0};
    const size_t n_key = usi_report_key(text, n);
    memcpy(key, text, n_key);
    // What is no state was asked for by this client.
    if (n_key == 0 && source == r->output) send_to_client(r, c, text, n + 1);
    if (n_key == 0) return;
    int32_t i = 0;
    while (i < c->n_state && memcmp(c->states[i].key, key, KEY) != 0)
        i++;
    if (i == MAX_STATE || n + 2 > MAX_MESSAGE) return;
    motor_state *s = &c->states[i];
    if (i == c->n_state) {
        c->n_state++;
        memcpy(s->key, key, KEY);
    }
    // A state that found no room gives way to the newer one. One that is said again was asked for.
    memcpy(s->said[source], text, n + 1);
    s->said[source][n + 1] = 0;
    if (source != r->output) return;
    s->sent[0] = 0;
    send_state(r, c, s, source);
}

static void take_reports(usi_motor_relay *r, client *c, us_switch_source source) {
    upstream *u = &c->up[source];
    const char *text = NULL;
    size_t n = 0, taken = 0;
    while (find_message(&u->in, &text, &n, &taken)) {
        const int64_t n_copy = find_copy(text, n);
        // A client of TCP that does not read holds up its own answers.
        if (c->out.n + n + 1 > sizeof c->out.bytes) return;
        if (n_copy >= 0) {
            take_answer(r, c, u, text, n, (size_t)n_copy);
        } else if (n > 0) {
            take_state(r, c, source, text, n);
        }
        drop(&u->in, taken);
    }
    if (u->in.n == sizeof u->in.bytes) u->in.n = 0;
}

// ---- clients come and go ----

static client *add_client(usi_motor_relay *r, bool is_udp) {
    int32_t n = 0, place = -1;
    for (int32_t i = 1; i < MAX_SLOT; i++) {
        n += r->clients[i] && r->clients[i]->is_udp == is_udp;
        if (!r->clients[i]) place = i;
    }
    if (n == MAX_CLIENT || place < 0) return NULL;
    client *c = usi_alloc(&r->sw->allocator, sizeof *c, _Alignof(client));
    if (!c) return NULL;
    memset(c, 0, sizeof *c);
    c->fd = c->up[0].fd = c->up[1].fd = -1;
    c->is_udp = is_udp;
    c->heard = c->moved = usi_switch_now();
    r->clients[place] = c;
    return c;
}

static void remove_client(usi_motor_relay *r, int32_t i) {
    client *c = r->clients[i];
    if (c->fd >= 0) close(c->fd);
    for (int k = 0; k < 2; k++) {
        c->up[k].n_waiting = 0;
        close_upstream(r, c, &c->up[k]);
    }
    usi_release(&r->sw->allocator, c, sizeof *c, _Alignof(client));
    r->clients[i] = NULL;
}

static void accept_clients(usi_motor_relay *r) {
    for (;;) {
        struct sockaddr_storage from;
        socklen_t length = sizeof from;
        const int fd =
            accept4(r->sockets.tcp, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        client *c = add_client(r, false);
        if (!c) {
            (void)send(fd, "MNAK,full;", 10, MSG_NOSIGNAL);
            close(fd);
            continue;
        }
        usi_motor_socket_tune(fd);
        c->fd = fd;
    }
}

// A sender of datagrams is a client from its first good command on.
static bool has_command(const char *bytes, size_t n) {
    usi_motor_session session;
    usi_motor_event event;
    usi_motor_session_init(&session);
    for (size_t at = 0; at < n;) {
        at += usi_motor_session_feed(&session, bytes + at, n - at, &event);
        if (event.kind == USI_MOTOR_COMMAND) return true;
        if (event.kind == USI_MOTOR_NOTHING) return false;
    }
    return false;
}

static void take_datagram(usi_motor_relay *r, const struct sockaddr_storage *from, socklen_t n_from,
                          const char *bytes, size_t n) {
    client *c = NULL;
    for (int32_t i = 1; i < MAX_SLOT && !c; i++) {
        client *other = r->clients[i];
        if (other && other->is_udp && usi_motor_address_is_same(&other->address, from)) c = other;
    }
    if (!c && has_command(bytes, n) && (c = add_client(r, true))) {
        c->address = *from;
        c->n_address = n_from;
    }
    if (!c) return;
    c->heard = usi_switch_now();
    // A datagram has whole messages: what is behind the last ';' is cut.
    size_t whole = n;
    while (whole > 0 && bytes[whole - 1] != ';')
        whole--;
    if (whole < n && bytes[n - 1] != '\n') refuse_message(r, c, bytes + whole, n - whole, USI_MOTOR_CUT);
    if (!put(&c->in, bytes, whole)) refuse_message(r, c, "1", 1, USI_MOTOR_BUSY);
    take_messages(r, c);
}

static void read_datagrams(usi_motor_relay *r) {
    char bytes[4096];
    for (;;) {
        struct sockaddr_storage from;
        memset(&from, 0, sizeof from);
        socklen_t n_from = sizeof from;
        const ssize_t n = recvfrom(r->sockets.udp, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &n_from);
        if (n < 0 && errno != EINTR) return;
        if (n > 0) take_datagram(r, &from, n_from, bytes, (size_t)n);
    }
}

// ---- the thread ----

// Reads what is there. False when the other side has ended or is broken.
static bool fill(int fd, buffer *b) {
    while (b->n < sizeof b->bytes) {
        const ssize_t n = recv(fd, b->bytes + b->n, sizeof b->bytes - b->n, 0);
        if (n == 0) return false;
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        b->n += (size_t)n;
    }
    return true;
}

static void serve_upstream(usi_motor_relay *r, client *c, us_switch_source source, short events) {
    upstream *u = &c->up[source];
    if (u->fd < 0 || events == 0) return;
    if (u->is_connecting) {
        int error = 0;
        socklen_t n = sizeof error;
        if (getsockopt(u->fd, SOL_SOCKET, SO_ERROR, &error, &n) || error) {
            close_upstream(r, c, u);
            return;
        }
        u->is_connecting = false;
    }
    const bool is_open = fill(u->fd, &u->in);
    take_reports(r, c, source);
    if (!is_open || !flush(u->fd, &u->out)) close_upstream(r, c, u);
}

// What a client has read, sent and left. False: it is gone.
static bool serve_client(usi_motor_relay *r, client *c, short events) {
    if (c->is_own) return true;
    const int64_t now = usi_switch_now();
    if (c->is_udp) {
        take_messages(r, c);
        return now - c->heard < IDLE;
    }
    if (events & (POLLIN | POLLHUP | POLLERR)) {
        if (!fill(c->fd, &c->in)) c->is_ending = true;
        c->heard = now;
    }
    take_messages(r, c);
    // Answers that waited for room, and states.
    for (int k = 0; k < 2; k++)
        take_reports(r, c, (us_switch_source)k);
    for (int32_t i = 0; i < c->n_state; i++)
        send_state(r, c, &c->states[i], r->output);
    const size_t n_before = c->out.n;
    if (!flush(c->fd, &c->out)) return false;
    if (c->out.n < n_before || c->out.n == 0) c->moved = now;
    const bool is_due =
        c->up[0].n_waiting + c->up[1].n_waiting > 0 || c->out.n > 0 || memchr(c->in.bytes, ';', c->in.n);
    return now - c->moved < STALL && !(c->is_ending && !is_due);
}

// Stops all motors of the source that lost control, behind what each client gave it; and says how those of
// the other stand.
static void watch_authority(usi_motor_relay *r) {
    us_switch *sw = r->sw;
    pthread_rwlock_rdlock(&sw->gate);
    const us_switch_source before = r->control, control = sw->authority.control;
    const bool is_changed = before != control && before != US_SWITCH_NOBODY;
    for (int32_t i = 0; i < MAX_SLOT && is_changed; i++) {
        client *c = r->clients[i];
        if (c && is_there(&c->up[before])) (void)give(r, c, &c->up[before], "MSTP", 4, true);
    }
    r->control = control;
    const bool is_other = r->output != sw->authority.output_source;
    r->output = sw->authority.output_source;
    pthread_rwlock_unlock(&sw->gate);
    for (int32_t i = 0; i < MAX_SLOT && is_other; i++) {
        for (int32_t k = 0; r->clients[i] && k < r->clients[i]->n_state; k++)
            send_state(r, r->clients[i], &r->clients[i]->states[k], r->output);
    }
}

static short events_of_client(const client *c) {
    short events = c->in.n < sizeof c->in.bytes / 2 && !c->is_ending ? POLLIN : 0;
    if (c->out.n > 0) events |= POLLOUT;
    return events;
}

static void *run_relay(void *context) {
    usi_motor_relay *r = context;
    struct pollfd *polls = calloc(N_POLL, sizeof *polls);
    while (polls && !atomic_load(&r->is_closing)) {
        polls[0] = (struct pollfd){.fd = r->wake[0], .events = POLLIN};
        polls[1] = (struct pollfd){.fd = r->sockets.tcp, .events = POLLIN};
        polls[2] = (struct pollfd){.fd = r->sockets.udp, .events = POLLIN};
        for (int32_t i = 0; i < MAX_SLOT; i++) {
            client *c = r->clients[i];
            struct pollfd *p = &polls[3 + 3 * i];
            p[0] = p[1] = p[2] = (struct pollfd){.fd = -1};
            if (!c) continue;
            p[0] = (struct pollfd){.fd = c->fd, .events = events_of_client(c)};
            for (int k = 0; k < 2; k++) {
                connect_upstream(r, c, (us_switch_source)k);
                const upstream *u = &c->up[k];
                const bool has_output = u->is_connecting || u->out.n > 0;
                p[1 + k] =
                    (struct pollfd){.fd = u->fd, .events = (short)(POLLIN | (has_output ? POLLOUT : 0))};
            }
        }
        poll(polls, N_POLL, PERIOD_MS);
        char bytes[64];
        while (read(r->wake[0], bytes, sizeof bytes) > 0)
            continue;
        watch_authority(r);
        for (int32_t i = 0; i < MAX_SLOT; i++) {
            client *c = r->clients[i];
            const struct pollfd *p = &polls[3 + 3 * i];
            for (int k = 0; c && k < 2; k++)
                serve_upstream(r, c, (us_switch_source)k, p[1 + k].revents);
            if (c && !serve_client(r, c, p[0].revents)) remove_client(r, i);
        }
        if (polls[1].revents) accept_clients(r);
        if (polls[2].revents) read_datagrams(r);
    }
    free(polls);
    return NULL;
}

// ---- open and close ----

static us_status find_source(const char *text, struct sockaddr_storage *out, socklen_t *out_n,
                             us_error *err) {
    char host[128];
    const char *colon = text ? strrchr(text, ':') : NULL;
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    const size_t n = colon ? (size_t)(colon - text) : 0;
    if (n > 0 && n < sizeof host) {
        memcpy(host, text, n);
        host[n] = 0;
    }
    if (n == 0 || n >= sizeof host || !colon[1] || getaddrinfo(host, colon + 1, &hint, &found))
        return us_error_set(err, US_ERR_VALUE, NULL, "Write ADDRESS:PORT, for example 192.168.0.7:5010.",
                            "invalid motor port of a source \"%.100s\"", text ? text : "");
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *out_n = found->ai_addrlen;
    freeaddrinfo(found);
    return US_OK;
}

us_status usi_motor_relay_open(us_switch *sw, const us_switch_motors *def, usi_motor_relay **out_relay,
                               us_error *err) {
    *out_relay = NULL;
    usi_motor_relay *r = usi_alloc(&sw->allocator, sizeof *r, _Alignof(usi_motor_relay));
    if (!r) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for the motor port of a switch");
    memset(r, 0, sizeof *r);
    r->sw = sw;
    r->sockets = (usi_motor_sockets){.tcp = -1, .udp = -1};
    r->wake[0] = r->wake[1] = -1;
    r->control = r->output = US_SWITCH_NOBODY;
    us_status status = find_source(def->hardware, &r->sources[0], &r->n_source[0], err);
    if (!status) status = find_source(def->proxy, &r->sources[1], &r->n_source[1], err);
    if (!status)
        status =
            usi_motor_sockets_open(def->address ? def->address : "127.0.0.1", def->port, 0, &r->sockets, err);
    if (!status && (pipe2(r->wake, O_NONBLOCK | O_CLOEXEC) || !add_client(r, true)))
        status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for the motor port of a switch");
    if (!status) {
        // The relay's own connections: through them motors are stopped that a client left moving.
        r->clients[0] = r->clients[MAX_SLOT - 1];
        r->clients[MAX_SLOT - 1] = NULL;
        r->clients[0]->is_own = true;
        r->has_thread = pthread_create(&r->thread, NULL, run_relay, r) == 0;
        if (!r->has_thread) status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no thread for a switch");
    }
    if (status) {
        usi_motor_relay_close(r);
        return status;
    }
    *out_relay = r;
    return US_OK;
}

void usi_motor_relay_close(usi_motor_relay *r) {
    if (!r) return;
    atomic_store(&r->is_closing, true);
    usi_motor_relay_wake(r);
    if (r->has_thread) pthread_join(r->thread, NULL);
    for (int32_t i = 0; i < MAX_SLOT; i++) {
        if (r->clients[i]) remove_client(r, i);
    }
    usi_motor_sockets_close(&r->sockets);
    for (int i = 0; i < 2; i++) {
        if (r->wake[i] >= 0) close(r->wake[i]);
    }
    us_allocator allocator = r->sw->allocator;
    usi_release(&allocator, r, sizeof *r, _Alignof(usi_motor_relay));
}

int32_t usi_motor_relay_port(const usi_motor_relay *relay) { return relay ? relay->sockets.port : 0; }

void usi_motor_relay_wake(usi_motor_relay *relay) {
    if (relay && relay->wake[1] >= 0) (void)!write(relay->wake[1], "", 1);
}

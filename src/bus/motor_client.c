// One client of the motor server: its messages in, its messages out. motor_server.c describes how the whole
// works.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bus/bus__motor.h"

enum {
    WINDOW = 24,         // commands of one client that may wait for their answer
    STOP_WINDOW = 8,     // and stops beyond that, which go before
    STATUS_ROOM = 1536,  // bytes waiting below which states are added
    DATAGRAM = 1400,     // bytes: fits into one Ethernet frame
    N_DATAGRAM = 64,     // read per round
    USE_MASK = (1 << (31 - USI_MOTOR_SLOT_BITS)) - 1,
    PATIENCE = 1000 * USI_MOTOR_MS,  // ns: answers that did not come by then are not waited for
};
static const int64_t GUEST_TIME = INT64_C(2000) * USI_MOTOR_MS;  // ns
#define DATAGRAM_RATE \
    10000.0  // datagrams/s that are read in all, a few percent of one processor: 64 clients at 150 Hz. The
             // system drops the others

_Static_assert((WINDOW + STOP_WINDOW + 1) * USI_MOTOR_REPLY + STATUS_ROOM + 3 * USI_MOTOR_REPLY <=
                   USI_MOTOR_OUT,
               "all answers must fit beside states and losses");

// A tenth of a second's worth may come at once.
static double max_messages(const usi_motor_server *s) { return s->def.message_rate * 0.1 + 1; }

static double max_bytes(const usi_motor_server *s) { return s->def.byte_rate * 0.1 + (double)USI_MOTOR_IN; }

static void refill(usi_motor_bucket *b, double rate, double max, int64_t now) {
    b->tokens = fmin(max, b->tokens + rate * 1e-9 * (double)(now - b->at));
    b->at = now;
}

static void refill_client(usi_motor_server *s, usi_motor_client *c) {
    refill(&c->messages, s->def.message_rate, max_messages(s), s->now);
    refill(&c->bytes, s->def.byte_rate, max_bytes(s), s->now);
}

// ---- Messages out ----

static size_t waiting(const usi_motor_client *c) { return c->out_end - c->out_at; }

static bool has_room(const usi_motor_client *c, int32_t n_reply) {
    return waiting(c) + (size_t)n_reply * USI_MOTOR_REPLY <= USI_MOTOR_OUT;
}

static void append(usi_motor_client *c, const char *text, size_t length) {
    if (USI_MOTOR_OUT - c->out_end < length) {
        memmove(c->out, c->out + c->out_at, waiting(c));
        c->out_end -= c->out_at;
        c->out_at = 0;
    }
    memcpy(c->out + c->out_end, text, length);
    c->out_end += length;
}

static void append_refusal(usi_motor_client *c, const char *text, size_t length, usi_motor_reason reason) {
    char reply[USI_MOTOR_REPLY];
    append(c, reply, usi_motor_format_refusal(text, length, reason, reply, sizeof reply));
}

static void append_number(usi_motor_client *c, uint32_t number, usi_motor_reason reason) {
    char digits[16];
    int n = snprintf(digits, sizeof digits, "%u", number);
    append_refusal(c, digits, (size_t)n, reason);
}

// ---- Joining and leaving ----

static bool read_stream(usi_motor_server *s, usi_motor_client *c);

// How much a guest is worth when all slots are taken: it waits for the answer to its stop, it has said
// nothing yet, it has said something else or has its answer.
static int32_t worth(const usi_motor_client *c) { return c->n_unanswered > 0 ? 2 : c->in_end == 0 ? 1 : 0; }

// A free slot, or that of the guest that is worth the least, the oldest of them.
static int32_t find_slot(usi_motor_server *s, bool is_udp) {
    const int32_t n = s->n_slot / 2, first = is_udp ? n : 0;
    for (int32_t i = first; i < first + n; i++) {
        if (atomic_load(&s->clients[i].id) < 0) return i;
    }
    int32_t found = first + s->def.max_client;
    for (int32_t i = found + 1; i < first + n; i++) {
        const usi_motor_client *a = &s->clients[i], *b = &s->clients[found];
        if (worth(a) < worth(b) || (worth(a) == worth(b) && a->joined < b->joined)) found = i;
    }
    // What it has said meanwhile may be a stop.
    s->clients[found].is_readable = true;
    if (!is_udp) (void)read_stream(s, &s->clients[found]);
    usi_motor_leave(s, &s->clients[found]);
    return found;
}

// From now on it hears a level, first of all how things stand there.
static void hear(usi_motor_server *s, usi_motor_client *c, usi_motor_level level) {
    if (c->is_guest || c->levels >> level & 1) return;
    c->levels |= 1U << level;
    for (int32_t i = 0; i < s->n_state; i++) {
        if (usi_report_level(s->states[i].kind) == level) c->is_dirty[i] = s->states[i].seen > 0;
    }
}

usi_motor_client *usi_motor_join(usi_motor_server *s, bool is_udp) {
    const int32_t slot = find_slot(s, is_udp);
    usi_motor_client *c = &s->clients[slot];
    c->is_guest = slot % (s->n_slot / 2) >= s->def.max_client;
    usi_motor_session_init(&c->session);
    c->n_use = (c->n_use + 1) & USE_MASK;
    c->fd = -1;
    c->is_udp = is_udp;
    c->is_readable = c->is_hung = c->is_held = c->is_ending = false;
    c->interest = 0;
    c->messages = (usi_motor_bucket){max_messages(s), s->now};
    c->bytes = (usi_motor_bucket){max_bytes(s), s->now};
    c->n_unanswered = 0;
    c->n_busy = 0;
    c->joined = c->heard = c->handed = s->now;
    c->blocked = c->losses_reported = 0;
    c->in_at = c->in_end = c->out_at = c->out_end = 0;
    c->next_state = 0;
    c->levels = 0;
    for (int32_t i = 0; i < s->n_state; i++)
        c->is_dirty[i] = false;
    // A new client gets the state of every motor.
    hear(s, c, USI_LEVEL_MOTOR);
    atomic_store(&c->n_lost, 0);
    atomic_store(&c->id, c->n_use << USI_MOTOR_SLOT_BITS | slot);
    if (c->is_guest) {
        usi_motor_count(&s->n_rejected);
        if (!is_udp) append_refusal(c, "", 0, USI_MOTOR_FULL);
    } else {
        usi_motor_count(&s->n_joined);
        usi_motor_count(is_udp ? &s->n_udp : &s->n_tcp);
    }
    return c;
}

void usi_motor_leave(usi_motor_server *s, usi_motor_client *c) {
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    atomic_store(&c->id, -1);
    if (!c->is_guest) atomic_fetch_sub(c->is_udp ? &s->n_udp : &s->n_tcp, 1);
}

// ---- What waits is sent ----

// What the client must know about what it lost.
static void report_losses(usi_motor_server *s, usi_motor_client *c) {
    if (atomic_load(&c->n_lost) > 0 && has_room(c, 2))
        append_number(c, atomic_exchange(&c->n_lost, 0), USI_MOTOR_LOST);
    if (c->n_busy == 0 || !has_room(c, 2)) return;
    if (s->now - c->losses_reported < 100 * USI_MOTOR_MS) {
        usi_motor_due(s, c->losses_reported + 100 * USI_MOTOR_MS);
        return;
    }
    append_number(c, c->n_busy, USI_MOTOR_BUSY);
    c->n_busy = 0;
    c->losses_reported = s->now;
}

// States that are not sent yet, each in its turn, as long as little waits.
static void add_states(usi_motor_server *s, usi_motor_client *c) {
    for (int32_t k = 0; k < s->n_state && waiting(c) < STATUS_ROOM; k++) {
        int32_t i = c->next_state;
        c->next_state = i + 1 < s->n_state ? i + 1 : 0;
        if (!c->is_dirty[i]) continue;
        char text[USI_MOTOR_REPLY];
        append(c, text, usi_report_format(&s->states[i].now, text, sizeof text));
        c->is_dirty[i] = false;
        usi_motor_count(&s->n_status);
    }
}

// As much of what waits as the socket takes at once, in whole messages for UDP. Returns what send returned.
static ssize_t send_some(usi_motor_server *s, usi_motor_client *c) {
    if (!c->is_udp) return send(c->fd, c->out + c->out_at, waiting(c), MSG_NOSIGNAL);
    size_t n = waiting(c) < DATAGRAM ? waiting(c) : DATAGRAM;
    while (c->out[c->out_at + n - 1] != ';')
        n--;
    ssize_t sent = sendto(s->sockets.udp, c->out + c->out_at, n, MSG_NOSIGNAL, (struct sockaddr *)&c->address,
                          c->address_length);
    // What the network cannot deliver is lost, as datagrams are.
    return sent < 0 && errno != EAGAIN && errno != EINTR ? (ssize_t)n : sent;
}

// False: the client is gone.
bool usi_motor_flush(usi_motor_server *s, usi_motor_client *c) {
    for (;;) {
        report_losses(s, c);
        add_states(s, c);
        if (waiting(c) == 0) {
            c->blocked = 0;
            return true;
        }
        ssize_t n = send_some(s, c);
        if (n > 0) {
            c->out_at += (size_t)n;
            if (waiting(c) == 0) c->out_at = c->out_end = 0;
            c->blocked = 0;
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN) return false;
        if (c->blocked == 0) c->blocked = s->now;
        if (c->is_udp) {
            usi_motor_due(s, s->now + 2 * USI_MOTOR_MS);
            return true;
        }
        if (s->now - c->blocked >= usi_motor_ns(s->def.stall_timeout)) {
            usi_motor_count(&s->n_stalled);
            return false;
        }
        usi_motor_due(s, c->blocked + usi_motor_ns(s->def.stall_timeout));
        return true;
    }
}

// ---- Messages in ----

// The state of this kind and name, counted from the first of its kind; -1: there is none.
static int32_t find_named(usi_motor_server *s, usi_report_kind kind, const char *name) {
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_state; i++) {
        if (s->states[i].kind != kind) continue;
        if (memcmp(s->states[i].name, name, USI_MOTOR_NAME) == 0) return n;
        n++;
    }
    return -1;
}

// A name that nothing has makes a refusal of a command.
static void resolve(usi_motor_server *s, usi_motor_event *e) {
    if (e->kind != USI_MOTOR_COMMAND || e->command.name[0] == 0) return;
    const usi_motor_level level = usi_motor_level_of(e->command.kind);
    const usi_report_kind kind = level == USI_LEVEL_MOTOR  ? USI_REPORT_MOTOR
                                 : level == USI_LEVEL_LINE ? USI_REPORT_LINE
                                                           : USI_REPORT_IMU;
    e->command.motor = find_named(s, kind, e->command.name);
    if (e->command.motor >= 0) return;
    e->kind = USI_MOTOR_REFUSED;
    e->reason = level == USI_LEVEL_MOTOR ? USI_MOTOR_UNKNOWN : USI_MOTOR_UNKNOWN_LINE;
}

// May another message be taken: is there a token, and room for its answer beside those that are due? A stop
// may overdraw both: where messages are dropped, it is dropped last.
static bool may_take(usi_motor_server *s, usi_motor_client *c, bool is_urgent) {
    if (c->n_unanswered >= WINDOW && s->now - c->handed > PATIENCE)
        c->n_unanswered = 0;  // nobody will answer these any more
    int32_t window = is_urgent ? WINDOW + STOP_WINDOW : WINDOW;
    double min_tokens = is_urgent ? 1 - max_messages(s) : 1;
    return c->n_unanswered < window && c->messages.tokens >= min_tokens && has_room(c, c->n_unanswered + 1);
}

static bool is_stop(const usi_motor_event *e) {
    return e->kind == USI_MOTOR_COMMAND && usi_motor_is_stop(e->command.kind);
}

static void take(usi_motor_server *s, usi_motor_client *c, usi_motor_event *e) {
    c->messages.tokens -= 1;
    resolve(s, e);
    if (c->is_guest && e->kind == USI_MOTOR_COMMAND && !is_stop(e)) {
        e->kind = USI_MOTOR_REFUSED;
        e->reason = USI_MOTOR_FULL;
    }
    if (e->kind == USI_MOTOR_REFUSED) {
        usi_motor_count(&s->n_bad);
        append_refusal(c, e->text, e->length, e->reason);
        return;
    }
    hear(s, c, usi_motor_level_of(e->command.kind));
    usi_motor_count(&s->n_command);
    c->n_unanswered++;
    c->handed = s->now;
    if (s->def.on_command)
        s->def.on_command(s->def.context, atomic_load(&c->id), &e->command, e->text, e->length);
}

// Answers from other threads to their clients.
void usi_motor_take_answers(usi_motor_server *s) {
    for (;;) {
        usi_motor_cell *from = &s->cells[s->head % USI_MOTOR_N_CELL];
        if (atomic_load(&from->sequence) != s->head + 1) return;
        usi_motor_client *c = usi_motor_find_client(s, from->client);
        if (c) {
            if (c->n_unanswered > 0) c->n_unanswered--;
            if (has_room(c, 1)) {
                append(c, from->text, from->length);
                usi_motor_count(&s->n_ack);
            } else {
                atomic_fetch_add(&c->n_lost, 1);
                usi_motor_count(&s->n_lost_reply);
            }
        }
        atomic_store(&from->sequence, s->head + USI_MOTOR_N_CELL);
        s->head++;
    }
}

static void take_messages(usi_motor_server *s, usi_motor_client *c) {
    while (c->in_at < c->in_end) {
        if (!may_take(s, c, false)) {
            usi_motor_take_answers(s);
            if (!may_take(s, c, false)) break;
        }
        usi_motor_event e;
        c->in_at += usi_motor_session_feed(&c->session, c->in + c->in_at, c->in_end - c->in_at, &e);
        if (e.kind != USI_MOTOR_NOTHING) take(s, c, &e);
    }
}

// One read, and the messages in it. False: the client is gone.
static bool read_stream(usi_motor_server *s, usi_motor_client *c) {
    refill_client(s, c);
    take_messages(s, c);
    bool may_read = c->in_at == c->in_end && c->bytes.tokens > 0 && !c->is_ending;
    if (may_read && (c->is_readable || c->is_hung)) {
        ssize_t n = recv(c->fd, c->in, USI_MOTOR_IN, 0);
        if (n == 0) c->is_ending = true;
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (n > 0) {
            c->in_at = 0;
            c->in_end = (size_t)n;
            c->bytes.tokens -= (double)n;
            c->heard = s->now;
            take_messages(s, c);
        }
    }
    c->is_readable = false;
    c->is_held = c->in_at < c->in_end || c->bytes.tokens <= 0;
    if (c->is_held || c->is_hung) usi_motor_due(s, s->now + 2 * USI_MOTOR_MS);
    return true;
}

// Whether a guest has had its time, answers to its stops included.
static bool is_guest_over(usi_motor_server *s, const usi_motor_client *c) {
    const int64_t end = c->joined + GUEST_TIME;
    if (s->now < end) usi_motor_due(s, end);
    return s->now >= end;
}

void usi_motor_serve_stream(usi_motor_server *s, usi_motor_client *c) {
    bool is_here = read_stream(s, c);
    usi_motor_take_answers(s);
    is_here = is_here && usi_motor_flush(s, c);
    if (is_here && c->is_ending && c->in_at == c->in_end) {
        // It has said all that it will; it still gets what it is owed, within a second.
        bool is_owed = c->n_unanswered > 0 && s->now - c->heard < PATIENCE;
        if (!is_owed && waiting(c) == 0) is_here = false;
        usi_motor_due(s, s->now + 100 * USI_MOTOR_MS);
    }
    if (is_here && c->is_guest) is_here = !is_guest_over(s, c);
    if (!is_here) {
        usi_motor_leave(s, c);
        return;
    }
    uint32_t interest =
        (c->is_held || c->is_ending ? 0U : (uint32_t)EPOLLIN) | (c->blocked ? (uint32_t)EPOLLOUT : 0U);
    if (!c->is_hung && interest != c->interest)
        usi_motor_watch(s, c->fd, interest, (uint32_t)(c - s->clients), EPOLL_CTL_MOD);
    c->interest = interest;
}

// ---- Datagrams ----

static bool has_good_command(usi_motor_server *s, const char *bytes, size_t length) {
    usi_motor_session session;
    usi_motor_session_init(&session);
    for (size_t at = 0; at < length;) {
        usi_motor_event e;
        at += usi_motor_session_feed(&session, bytes + at, length - at, &e);
        resolve(s, &e);
        if (e.kind == USI_MOTOR_COMMAND) return true;
    }
    return false;
}

// The slot of the client at this address; -1: none.
static int32_t find_sender(usi_motor_server *s, const struct sockaddr_storage *from) {
    for (int32_t i = s->n_slot / 2; i < s->n_slot; i++) {
        usi_motor_client *c = &s->clients[i];
        if (atomic_load(&c->id) >= 0 && usi_motor_address_is_same(&c->address, from)) return i;
    }
    return -1;
}

static void take_datagram(usi_motor_server *s, const struct sockaddr_storage *from, socklen_t from_length,
                          const char *bytes, size_t length) {
    int32_t slot = find_sender(s, from);
    usi_motor_client *c = slot < 0 ? NULL : &s->clients[slot];
    if (slot < 0) {
        if (!has_good_command(s, bytes, length)) {
            usi_motor_count(&s->n_unknown_sender);
            return;
        }
        c = usi_motor_join(s, true);
        c->address = *from;
        c->address_length = from_length;
    }
    c->heard = s->now;
    refill_client(s, c);
    c->bytes.tokens -= (double)length;
    for (size_t at = 0; at <= length;) {
        usi_motor_event e;
        if (at < length) {
            at += usi_motor_session_feed(&c->session, bytes + at, length - at, &e);
        } else {
            usi_motor_session_end(&c->session, &e);
            at++;
        }
        if (e.kind == USI_MOTOR_NOTHING) continue;
        if ((c->bytes.tokens > 0 || is_stop(&e)) && may_take(s, c, is_stop(&e))) {
            take(s, c, &e);
        } else {
            c->n_busy++;
            usi_motor_count(&s->n_busy);
        }
    }
    c->bytes.tokens = fmax(c->bytes.tokens, 0);
}

void usi_motor_read_datagrams(usi_motor_server *s) {
    refill(&s->datagrams, DATAGRAM_RATE, DATAGRAM_RATE * 0.01 + (double)N_DATAGRAM, s->now);
    for (int k = 0; k < N_DATAGRAM; k++) {
        if (s->datagrams.tokens < 1) {
            usi_motor_watch(s, s->sockets.udp, 0, USI_MOTOR_READY_UDP, EPOLL_CTL_MOD);
            s->udp_closed = s->now + 2 * USI_MOTOR_MS;
            return;
        }
        char bytes[USI_MOTOR_IN];
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t from_length = sizeof from;
        ssize_t n = recvfrom(s->sockets.udp, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &from_length);
        if (n < 0) return;
        s->datagrams.tokens -= 1;
        take_datagram(s, &from, from_length, bytes, (size_t)n);
        usi_motor_take_answers(s);
    }
}

void usi_motor_serve_sender(usi_motor_server *s, usi_motor_client *c) {
    (void)usi_motor_flush(s, c);
    if (c->is_guest) {
        if (is_guest_over(s, c)) usi_motor_leave(s, c);
        return;
    }
    int64_t end = c->heard + usi_motor_ns(s->def.idle_timeout);
    if (s->now >= end) {
        usi_motor_count(&s->n_expired);
        usi_motor_leave(s, c);
    } else {
        usi_motor_due(s, end);
    }
}

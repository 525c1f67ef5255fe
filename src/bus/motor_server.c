// The motor server: one thread with epoll, and a few words of memory that other threads may touch.
//
//     client's bytes --> session --> on_command ----------> (simulation, at its next tick)
//                          | refused                            |            |
//     client's queue <-----+---------- answers (a ring) <-- _ack, _refuse    |
//       | and its dirty motors <------ states (one each) <-------------- _status
//       +--> socket
//
// Guarantees, and how they are kept:
//   No caller ever waits. Answers go through a ring of cells, each with a sequence number that shows whether
//   it is
//     empty or full in this cycle (D. Vyukov's bounded queue): a producer takes a cell by one
//     compare-and-swap. A state is three numbers behind a sequence number that is odd while they are written
//     (a seqlock); the thread reads them again when it changed meanwhile.
//   A slow client loses its own oldest states. They are not queued: each client has a flag per state, "the
//   last
//     state is not sent yet". The message is encoded when there is room for it, with the newest state.
//   No MACK is lost. Before a command is read there must be room for its answer, counting those that are
//   still
//     pending (n_unanswered). Without room, or beyond the rate, the bytes stay in the socket: TCP then slows
//     the sender down. Datagrams cannot wait: theirs are dropped, and their number is reported to the sender.
//     Answers that are lost nevertheless (more than one client can take) are reported too.
//   One client cannot starve another. Each gets one read of some kilobytes per cycle.
//   Nobody can keep out a stop. Where there are as many clients as may be, newcomers are guests: each is read
//     as soon as it is accepted, its stops are taken, and it gives way to the next.
//   No amplification. A sender of datagrams is answered only after it has sent a valid command.
#include "bus/motor_server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "bus/bus__motor.h"

enum {
    N_ACCEPT = 16,  // per round
    N_EVENT = 64,
    MAX_CLIENT = 1000,
    MAX_MOTOR = 4096,
};

_Static_assert(2 * (MAX_CLIENT + USI_MOTOR_N_GUEST) <= 1 << USI_MOTOR_SLOT_BITS, "every slot has a number");

static int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// ---- What other threads call ----

static void wake(usi_motor_server *s) {
    if (atomic_exchange(&s->is_woken, true)) return;
    const uint64_t one = 1;
    while (write(s->wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

static us_status answer(usi_motor_server *s, int32_t id, const char *reply, size_t n) {
    uint64_t sequence = atomic_load(&s->tail);
    for (;;) {
        usi_motor_cell *c = &s->cells[sequence % USI_MOTOR_N_CELL];
        uint64_t is = atomic_load(&c->sequence);
        if (is == sequence) {
            if (!atomic_compare_exchange_weak(&s->tail, &sequence, sequence + 1)) continue;
            memcpy(c->text, reply, n);
            c->length = n;
            c->client = id;
            atomic_store(&c->sequence, sequence + 1);
            wake(s);
            return US_OK;
        }
        if (is < sequence) break;  // still full from the last cycle
        sequence = atomic_load(&s->tail);
    }
    usi_motor_count(&s->n_lost_reply);
    usi_motor_client *to = usi_motor_find_client(s, id);
    if (to) atomic_fetch_add(&to->n_lost, 1);
    wake(s);
    return US_ERR_LIMIT;
}

us_status usi_motor_server_ack(usi_motor_server *server, int32_t client, const char *text, size_t length) {
    return usi_motor_server_tell(server, client, text, length, "", 0);
}

us_status usi_motor_server_tell(usi_motor_server *server, int32_t client, const char *text, size_t length,
                                const char *message, size_t message_length) {
    char reply[USI_MOTOR_REPLY];
    if (!server || (!text && length > 0)) return US_ERR_ARG;
    size_t n = usi_motor_format_ack(text, length, reply, sizeof reply);
    if (message_length > sizeof reply - n) return US_ERR_LIMIT;
    memcpy(reply + n, message, message_length);
    return answer(server, client, reply, n + message_length);
}

us_status usi_motor_server_refuse(usi_motor_server *server, int32_t client, const char *text, size_t length,
                                  usi_motor_reason reason) {
    char reply[USI_MOTOR_REPLY];
    if (reason == USI_MOTOR_GOOD || (unsigned)reason >= (unsigned)USI_MOTOR_REASON_COUNT) return US_ERR_ARG;
    if (!server || (!text && length > 0)) return US_ERR_ARG;
    return answer(server, client, reply, usi_motor_format_refusal(text, length, reason, reply, sizeof reply));
}

static us_status report(usi_motor_server *s, usi_motor_slot *m, const double *values) {
    usi_motor_report now;
    if (!usi_report_round(m->kind, m->name, values, &now)) return US_ERR_VALUE;
    const int32_t n = usi_report_n_value(m->kind);
    if (m->has_last && memcmp(m->last.value, now.value, (size_t)n * sizeof *now.value) == 0) return US_OK;
    m->last = now;
    m->has_last = true;
    uint32_t sequence = atomic_load(&m->sequence);
    atomic_store(&m->sequence, sequence + 1);
    for (int32_t i = 0; i < n; i++)
        atomic_store(&m->value[i], now.value[i]);
    atomic_store(&m->sequence, sequence + 2 ? sequence + 2 : 2);
    if (!atomic_exchange(&s->is_status_due, true)) wake(s);
    return US_OK;
}

us_status usi_motor_server_status(usi_motor_server *server, int32_t motor, double acceleration,
                                  double velocity, double position) {
    const double values[] = {acceleration, velocity, position};
    if (!server || motor < 0 || motor >= server->def.n_motor) return US_ERR_ARG;
    return report(server, &server->states[motor], values);
}

us_status usi_motor_server_report(usi_motor_server *server, int32_t i, const double *values) {
    if (!server || !values || i < 0 || i >= server->def.n_report) return US_ERR_ARG;
    return report(server, &server->states[server->def.n_motor + i], values);
}

usi_motor_server_counts usi_motor_server_get_counts(const usi_motor_server *server) {
    usi_motor_server_counts counts;
#define COUNT_GET(name, about) counts.name = atomic_load(&server->name);
    USI_MOTOR_COUNT_LIST(COUNT_GET)
#undef COUNT_GET
    return counts;
}

int32_t usi_motor_server_port(const usi_motor_server *server) { return server ? server->sockets.port : -1; }

void usi_motor_watch(usi_motor_server *s, int fd, uint32_t interest, uint32_t who, int operation) {
    struct epoll_event e = {.events = interest, .data.u32 = who};
    (void)epoll_ctl(s->epoll, operation, fd, &e);
}

// ---- The thread ----

static void accept_clients(usi_motor_server *s) {
    for (int k = 0; k < N_ACCEPT; k++) {
        struct sockaddr_storage from;
        socklen_t from_length = sizeof from;
        int fd =
            accept4(s->sockets.tcp, (struct sockaddr *)&from, &from_length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            // Out of descriptors or memory: the one that waits goes on waiting, and so does the server,
            // rather than spin.
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                usi_motor_watch(s, s->sockets.tcp, 0, USI_MOTOR_READY_LISTENER, EPOLL_CTL_MOD);
                s->listener_closed = s->now + 100 * USI_MOTOR_MS;
            }
            return;
        }
        usi_motor_socket_tune(fd);
        usi_motor_client *c = usi_motor_join(s, false);
        c->fd = fd;
        c->interest = EPOLLIN;
        c->is_readable = true;  // what came with it is read in this round: a guest may not see another
        usi_motor_watch(s, fd, EPOLLIN, (uint32_t)(c - s->clients), EPOLL_CTL_ADD);
    }
}

// False: the writer was always quicker.
static bool read_state(usi_motor_slot *m, uint32_t *out_sequence, usi_motor_report *out) {
    const int32_t n = usi_report_n_value(m->kind);
    for (int k = 0; k < 100; k++) {
        uint32_t before = atomic_load(&m->sequence);
        *out = (usi_motor_report){.kind = m->kind};
        memcpy(out->name, m->name, sizeof out->name);
        for (int32_t i = 0; i < n; i++)
            out->value[i] = atomic_load(&m->value[i]);
        *out_sequence = before;
        if (before % 2 == 0 && atomic_load(&m->sequence) == before) return true;
    }
    return false;
}

static void take_states(usi_motor_server *s) {
    atomic_store(&s->is_status_due, false);
    int64_t period = s->def.status_rate > 0 ? usi_motor_ns(1 / s->def.status_rate) : 0, next = INT64_MAX;
    for (int32_t i = 0; i < s->n_state; i++) {
        usi_motor_slot *m = &s->states[i];
        if (atomic_load(&m->sequence) == m->seen) continue;
        uint32_t sequence;
        usi_motor_report status;
        if (s->now < m->next || !read_state(m, &sequence, &status)) {
            int64_t at = s->now < m->next ? m->next : s->now + USI_MOTOR_MS;
            if (at < next) next = at;
            continue;
        }
        m->seen = sequence;
        m->now = status;
        m->next = s->now + period;
        for (int32_t k = 0; k < s->n_slot; k++) {
            usi_motor_client *c = &s->clients[k];
            if (atomic_load(&c->id) < 0 || c->is_guest || !usi_motor_hears(c, m)) continue;
            if (c->is_dirty[i]) usi_motor_count(&s->n_lost_status);
            c->is_dirty[i] = true;
        }
    }
    if (next == INT64_MAX) return;
    // The thread looks again by itself: until then nobody need wake it for a state.
    usi_motor_due(s, next);
    atomic_store(&s->is_status_due, true);
}

static void mark_ready(usi_motor_server *s, const struct epoll_event *e) {
    if (e->data.u32 >= (uint32_t)s->n_slot) return;
    usi_motor_client *c = &s->clients[e->data.u32];
    if (e->events & EPOLLIN) c->is_readable = true;
    if ((e->events & (EPOLLHUP | EPOLLERR)) && !c->is_hung) {
        // What it has sent is still read; but epoll would go on about it.
        c->is_hung = true;
        usi_motor_watch(s, c->fd, 0, 0, EPOLL_CTL_DEL);
    }
}

static void reopen(usi_motor_server *s) {
    if (s->listener_closed && s->now >= s->listener_closed) {
        usi_motor_watch(s, s->sockets.tcp, EPOLLIN, USI_MOTOR_READY_LISTENER, EPOLL_CTL_MOD);
        s->listener_closed = 0;
    }
    if (s->udp_closed && s->now >= s->udp_closed) {
        usi_motor_watch(s, s->sockets.udp, EPOLLIN, USI_MOTOR_READY_UDP, EPOLL_CTL_MOD);
        s->udp_closed = 0;
    }
    if (s->listener_closed) usi_motor_due(s, s->listener_closed);
    if (s->udp_closed) usi_motor_due(s, s->udp_closed);
}

static void serve_all(usi_motor_server *s) {
    for (int32_t i = 0; i < s->n_slot; i++) {
        usi_motor_client *c = &s->clients[i];
        if (atomic_load(&c->id) < 0) continue;
        if (c->is_udp) {
            usi_motor_serve_sender(s, c);
        } else {
            usi_motor_serve_stream(s, c);
        }
    }
}

static void *serve(void *context) {
    usi_motor_server *s = context;
    while (!atomic_load(&s->is_over)) {
        struct epoll_event events[N_EVENT];
        int64_t left = s->wake_at == INT64_MAX ? -1 : s->wake_at - clock_ns();
        int timeout_ms =
            s->wake_at == INT64_MAX ? -1
            : left <= 0
                ? 0
                : (int)((left < 1000 * USI_MOTOR_MS ? left : 1000 * USI_MOTOR_MS) + USI_MOTOR_MS - 1) /
                      USI_MOTOR_MS;
        int n = epoll_wait(s->epoll, events, N_EVENT, timeout_ms);
        s->now = clock_ns();
        s->wake_at = INT64_MAX;
        bool has_newcomer = false, has_datagram = false;
        for (int i = 0; i < n; i++) {
            uint64_t ignored;
            if (events[i].data.u32 == USI_MOTOR_READY_WAKE && read(s->wake, &ignored, sizeof ignored) > 0)
                atomic_store(&s->is_woken, false);
            has_newcomer = has_newcomer || events[i].data.u32 == USI_MOTOR_READY_LISTENER;
            has_datagram = has_datagram || events[i].data.u32 == USI_MOTOR_READY_UDP;
            mark_ready(s, &events[i]);
        }
        // reads the states of motors / writes the clients' marks
        take_states(s);
        // reads the ring / writes the clients' queues
        usi_motor_take_answers(s);
        if (has_newcomer) accept_clients(s);
        // reads datagrams / calls on_command, writes queues of UDP clients
        if (has_datagram) usi_motor_read_datagrams(s);
        reopen(s);
        // reads streams / calls on_command; sends all queues
        serve_all(s);
    }
    return NULL;
}

// ---- Making and ending ----

usi_motor_server_def usi_motor_server_def_default(void) {
    return (usi_motor_server_def){.allocator = us_allocator_default(),
                                  .address = "127.0.0.1",
                                  .status_rate = 25,
                                  .max_client = 64,
                                  .message_rate = 2000,
                                  .byte_rate = 2e6,
                                  .stall_timeout = 5,
                                  .idle_timeout = 60};
}

static us_status check(const usi_motor_server_def *def, us_error *err) {
    const struct {
        const char *name;
        double value, low, high;
    } settings[] = {
        {"port", def->port, 0, 65535},
        {"n_motor", def->n_motor, 0, MAX_MOTOR},
        {"n_report", def->n_report, 0, MAX_MOTOR},
        {"max_client", def->max_client, 1, MAX_CLIENT},
        {"status_rate", def->status_rate, 0, 1e6},
        {"message_rate", def->message_rate, 1, 1e9},
        {"byte_rate", def->byte_rate, 1, 1e12},
        {"stall_timeout", def->stall_timeout, 1e-3, 1e6},
        {"idle_timeout", def->idle_timeout, 1e-3, 1e6},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (settings[i].value >= settings[i].low && settings[i].value <= settings[i].high) continue;
        char remedy[100];
        snprintf(remedy, sizeof remedy, "It may be from %g to %g.", settings[i].low, settings[i].high);
        return us_error_set(err, US_ERR_VALUE, NULL, remedy, "the motor server's %s is %g", settings[i].name,
                            settings[i].value);
    }
    if ((def->n_motor > 0 && !def->motors) || (def->n_report > 0 && !def->reports))
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "the motor server has no names of motors");
    for (int32_t i = 0; i < def->n_motor; i++) {
        const char *name = def->motors[i].name;
        if (!usi_motor_name_is_valid(name)) {
            const char *remedy = "Write four letters, digits or signs, without space, semicolon and comma.";
            return us_error_set(err, US_ERR_NAME, NULL, remedy, "\"%.5s\" cannot be the name of a motor",
                                name);
        }
        for (int32_t k = 0; k < i; k++) {
            if (memcmp(def->motors[k].name, name, USI_MOTOR_NAME) != 0) continue;
            return us_error_set(err, US_ERR_NAME, NULL, "Give each motor a name of its own.",
                                "two motors have the name \"%.4s\"", name);
        }
    }
    return US_OK;
}

static usi_motor_server *allocate(const usi_motor_server_def *def) {
    us_allocator a = def->allocator;
    size_t size = sizeof(usi_motor_server), n_slot = 2 * (size_t)(def->max_client + USI_MOTOR_N_GUEST),
           n_state = (size_t)def->n_motor + (size_t)def->n_report;
    size_t clients = usi_carve(&size, n_slot, sizeof(usi_motor_client)),
           states = usi_carve(&size, n_state, sizeof(usi_motor_slot));
    size_t cells = usi_carve(&size, USI_MOTOR_N_CELL, sizeof(usi_motor_cell)),
           marks = usi_carve(&size, n_slot * n_state, sizeof(bool));
    size_t outs = usi_carve(&size, n_slot, USI_MOTOR_OUT), ins = usi_carve(&size, n_slot / 2, USI_MOTOR_IN);
    char *block = usi_alloc(&a, size, USI_ALIGN);
    if (!block) return NULL;
    // The queues behind the rest need no start value, and memory that is never touched is never there.
    memset(block, 0, outs);
    usi_motor_server *s = (usi_motor_server *)block;
    s->allocator = a;
    s->size = size;
    s->def = *def;
    s->n_slot = (int32_t)n_slot;
    s->clients = (usi_motor_client *)(block + clients);
    s->n_state = (int32_t)n_state;
    s->states = (usi_motor_slot *)(block + states);
    s->cells = (usi_motor_cell *)(block + cells);
    s->sockets = (usi_motor_sockets){.tcp = -1, .udp = -1};
    s->epoll = s->wake = -1;
    s->wake_at = INT64_MAX;
    for (size_t i = 0; i < n_slot; i++) {
        usi_motor_client *c = &s->clients[i];
        atomic_init(&c->id, -1);
        c->fd = -1;
        c->out = block + outs + i * USI_MOTOR_OUT;
        c->in = i < n_slot / 2 ? block + ins + i * USI_MOTOR_IN : NULL;
        c->is_dirty = (bool *)(block + marks) + i * n_state;
    }
    for (int32_t i = 0; i < def->n_motor; i++) {
        s->states[i].kind = USI_REPORT_MOTOR;
        memcpy(s->states[i].name, def->motors[i].name, USI_MOTOR_NAME);
    }
    for (int32_t i = 0; i < def->n_report; i++) {
        usi_motor_slot *m = &s->states[def->n_motor + i];
        m->kind = def->reports[i].kind;
        memcpy(m->name, def->reports[i].name, sizeof m->name);
    }
    for (size_t i = 0; i < USI_MOTOR_N_CELL; i++)
        atomic_init(&s->cells[i].sequence, i);
    return s;
}

// Signals are for the program's own threads: ours starts with all of them blocked.
static bool start(usi_motor_server *s) {
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before)) return false;
    s->is_started = !pthread_create(&s->thread, NULL, serve, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->is_started;
}

us_status usi_motor_server_create(const usi_motor_server_def *def, usi_motor_server **out_server,
                                  us_error *err) {
    if (!out_server)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "there is no place for the motor server");
    *out_server = NULL;
    if (!def || !def->address)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "the motor server has no definition or no address");
    us_status status = check(def, err);
    if (status) return status;
    usi_motor_server *s = allocate(def);
    if (!s) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for the motor server");
    status = usi_motor_sockets_open(def->address, def->port, def->n_port_more, &s->sockets, err);
    if (!status) {
        // Names and address belong to the caller.
        s->def.address = NULL;
        s->def.motors = NULL;
        s->def.reports = NULL;
        s->epoll = epoll_create1(EPOLL_CLOEXEC);
        s->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (s->epoll < 0 || s->wake < 0) {
            const char *remedy = "Raise the limit of open files (ulimit -n), or run fewer robots.";
            status = us_error_set(err, US_ERR_IO, NULL, remedy,
                                  "the motor server cannot wait for its clients: %s", strerror(errno));
        }
    }
    if (!status) {
        usi_motor_watch(s, s->wake, EPOLLIN, USI_MOTOR_READY_WAKE, EPOLL_CTL_ADD);
        usi_motor_watch(s, s->sockets.tcp, EPOLLIN, USI_MOTOR_READY_LISTENER, EPOLL_CTL_ADD);
        usi_motor_watch(s, s->sockets.udp, EPOLLIN, USI_MOTOR_READY_UDP, EPOLL_CTL_ADD);
        *out_server = s;  // before the first callback
        if (!start(s))
            status = us_error_set(err, US_ERR_LIMIT, NULL, "free memory, or end other programs",
                                  "the motor server's thread cannot be started");
    }
    if (status) {
        *out_server = NULL;
        usi_motor_server_destroy(s);
    }
    return status;
}

void usi_motor_server_destroy(usi_motor_server *server) {
    if (!server) return;
    usi_motor_server *s = server;
    if (s->is_started) {
        atomic_store(&s->is_over, true);
        wake(s);
        pthread_join(s->thread, NULL);
        // What was answered before the end is still sent, as far as it goes.
        usi_motor_take_answers(s);
    }
    for (int32_t i = 0; i < s->n_slot; i++) {
        if (atomic_load(&s->clients[i].id) < 0) continue;
        (void)usi_motor_flush(s, &s->clients[i]);
        usi_motor_leave(s, &s->clients[i]);
    }
    usi_motor_sockets_close(&s->sockets);
    if (s->epoll >= 0) close(s->epoll);
    if (s->wake >= 0) close(s->wake);
    us_allocator a = s->allocator;
    usi_release(&a, s, s->size, USI_ALIGN);
}

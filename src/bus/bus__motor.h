// What the two files of the motor server share: motor_server.c has the thread and what other threads call,
// motor_client.c what happens to one client.
#ifndef USI_BUS_MOTOR_LOCAL_H
#define USI_BUS_MOTOR_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "bus/motor_server.h"
#include "bus/motor_socket.h"

enum {
    USI_MOTOR_IN = 4096,      // bytes of one read
    USI_MOTOR_OUT = 8192,     // bytes that wait for one client: the answers of a full window, what states may
                              // take, and some to spare
    USI_MOTOR_N_CELL = 1024,  // answers under way from other threads; a power of two
    USI_MOTOR_SLOT_BITS = 12,  // of a client's number: its slot. The rest counts how often the slot was used
    USI_MOTOR_MS = 1000000,    // ns
    USI_MOTOR_N_GUEST = 128,   // slots of each kind beyond the clients': who floods has to fill them all
};

// Data of an epoll event: a client's slot, or one of these.
enum { USI_MOTOR_READY_WAKE = 1 << 20, USI_MOTOR_READY_LISTENER, USI_MOTOR_READY_UDP };

// A rate limit: something may be taken while there are tokens, which come back with time.
typedef struct usi_motor_bucket {
    double tokens;
    int64_t at;  // ns
} usi_motor_bucket;

typedef struct usi_motor_client {
    _Atomic int32_t id;       // -1: the slot is free
    _Atomic uint32_t n_lost;  // dropped answers, not reported to it yet
    int32_t n_use;            // of the slot
    int fd;                   // -1 for UDP
    bool is_udp;
    bool is_guest;              // beyond the clients: it may stop motors and no more, and is soon gone
    bool is_readable, is_hung;  // as epoll said; a hung one is not watched any more
    bool is_held;               // it may not be read from just now
    bool is_ending;             // it will send no more: answers are still due
    uint32_t interest;          // what epoll watches
    struct sockaddr_storage address;
    socklen_t address_length;
    usi_motor_session session;
    usi_motor_bucket messages, bytes;
    int32_t n_unanswered;     // commands handed over
    uint32_t n_busy;          // dropped messages, not reported to it yet
    int64_t joined;           // ns
    int64_t heard;            // ns: last byte in
    int64_t handed;           // ns: last command handed over
    int64_t blocked;          // ns: since when nothing goes out; 0: it does
    int64_t losses_reported;  // ns: last report of dropped messages
    char *in, *out;
    size_t in_at, in_end, out_at, out_end;
    uint32_t levels;  // bit i: it hears the states of level i
    bool *is_dirty;   // n_state: the last state is not sent yet
    int32_t next_state;
} usi_motor_client;

// One state on its way from another thread, and here.
typedef struct usi_motor_slot {
    usi_report_kind kind;
    char name[USI_MOTOR_NAME + 1];
    _Atomic uint32_t sequence;  // odd: being written; 0: never
    _Atomic int64_t value[USI_MOTOR_VALUES];
    usi_motor_report last;  // by the caller of _report, who alone uses it
    bool has_last;
    uint32_t seen;         // sequence of `now`
    usi_motor_report now;  // the last one read
    int64_t next;          // ns: not before this may the next be read
} usi_motor_slot;

typedef struct usi_motor_cell {
    _Atomic uint64_t sequence;  // n: free for the n-th answer; n + 1: has it
    int32_t client;
    size_t length;
    char text[USI_MOTOR_REPLY];
} usi_motor_cell;

struct usi_motor_server {
    us_allocator allocator;
    size_t size;
    usi_motor_server_def def;
    usi_motor_sockets sockets;
    int epoll, wake;
    pthread_t thread;
    bool is_started;
    int32_t n_slot;  // the first half for TCP, the second for UDP; in each max_client, then guests
    usi_motor_client *clients;
    int32_t n_state;  // motors, then the other reports
    usi_motor_slot *states;
    usi_motor_cell *cells;

    // For all threads.
    _Alignas(USI_ALIGN) _Atomic uint64_t tail;
    _Alignas(USI_ALIGN) _Atomic bool is_over;
    _Atomic bool is_woken, is_status_due;
#define USI_MOTOR_COUNT_ATOMIC(name, about) _Atomic uint64_t name;
    USI_MOTOR_COUNT_LIST(USI_MOTOR_COUNT_ATOMIC)
#undef USI_MOTOR_COUNT_ATOMIC

    // The thread's own.
    _Alignas(USI_ALIGN) uint64_t head;
    int64_t now, wake_at;                 // ns
    int64_t listener_closed, udp_closed;  // ns: not watched until then; 0: watched
    usi_motor_bucket datagrams;
};

static inline void usi_motor_count(_Atomic uint64_t *n) {
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

static inline int64_t usi_motor_ns(double s) { return (int64_t)(s * 1e9); }

// The thread shall look again at this time.
static inline void usi_motor_due(usi_motor_server *s, int64_t at) {
    if (at < s->wake_at) s->wake_at = at;
}

static inline usi_motor_client *usi_motor_find_client(usi_motor_server *s, int32_t id) {
    int32_t slot = id & ((1 << USI_MOTOR_SLOT_BITS) - 1);
    if (id < 0 || slot >= s->n_slot) return NULL;
    return atomic_load(&s->clients[slot].id) == id ? &s->clients[slot] : NULL;
}

// Whether the client hears a state: those of a level, from its first command of that level on.
static inline bool usi_motor_hears(const usi_motor_client *c, const usi_motor_slot *m) {
    return c->levels >> usi_report_level(m->kind) & 1;
}

// epoll_ctl
void usi_motor_watch(usi_motor_server *s, int fd, uint32_t interest, uint32_t who, int operation);

// ---- motor_client.c, all on the thread ----

// A free slot made ready. When all clients' are taken it is a guest's, in the place of the oldest one where
// these are taken too: nobody can keep a stop out by holding or making connections.
usi_motor_client *usi_motor_join(usi_motor_server *s, bool is_udp);
void usi_motor_leave(usi_motor_server *s, usi_motor_client *c);
// Answers from other threads into their clients' queues.
void usi_motor_take_answers(usi_motor_server *s);
// Sends what waits. False: the client is gone, or must go.
bool usi_motor_flush(usi_motor_server *s, usi_motor_client *c);
// One round for one client; it may leave.
void usi_motor_serve_stream(usi_motor_server *s, usi_motor_client *c);
void usi_motor_serve_sender(usi_motor_server *s, usi_motor_client *c);
// Some datagrams, and the commands in them.
void usi_motor_read_datagrams(usi_motor_server *s);

#endif

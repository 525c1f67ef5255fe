// The thread that sends: takes encoded samples from a ring and writes them to the network, so that the step
// never does.
//
// One puts, one takes, no lock: `put` counts the bytes ever put, `taken` those ever taken, and each is
// written by one side only.
//
//     |......taken######put..........|      # waits to be sent
//
// An item that would reach over the end begins at the start again; what is left before the end is skipped.
#include "proxy/outbox.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "bus/bus.h"
#include "bus/local_socket.h"

enum { RING_SIZE = 8 << 20, WAKE_EARLY = 200000 };  // bytes, ns

typedef struct item {
    us_writer *writer;  // NULL: a datagram, or without a port: skip to the start of the ring
    int64_t time;
    int64_t due;  // CLOCK_MONOTONIC, ns: when it leaves; 0: at once
    uint32_t length;
    uint16_t port;  // of a datagram, whose address is `time`
} item;

struct usi_outbox {
    us_allocator allocator;
    pthread_t thread;
    sem_t bell;
    char *ring;
    _Atomic uint64_t put, taken;
    _Atomic bool is_closing;
    _Atomic int64_t n_unsent;
    int datagrams;  // socket; -1: none
};

// Whole items, so that there is room for one wherever the ring is not at its end.
static uint64_t size_of(uint64_t length) {
    return sizeof(item) + (length + sizeof(item) - 1) / sizeof(item) * sizeof(item);
}
_Static_assert(RING_SIZE % sizeof(item) == 0, "items fill the ring");

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Sleeps until shortly before, and then looks at the clock: a processor that slept is slow at first, and
// late.
static void wait_until(int64_t time) {
    int64_t wake = time - WAKE_EARLY;
    struct timespec t = {.tv_sec = wake / 1000000000, .tv_nsec = wake % 1000000000};
    // A sleep costs its time even where there is none left to sleep.
    while (now() < wake && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
    while (now() < time) {
    }
}

static void send_datagram(usi_outbox *box, const item *head, const char *bytes) {
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(head->port), .sin_addr.s_addr = htonl((uint32_t)head->time)};
    const ssize_t n = sendto(box->datagrams, bytes, head->length, MSG_DONTWAIT | MSG_NOSIGNAL,
                             (const struct sockaddr *)&to, sizeof to);
    if (n != (ssize_t)head->length) atomic_fetch_add(&box->n_unsent, 1);
}

static void send_all(usi_outbox *box) {
    uint64_t taken = atomic_load_explicit(&box->taken, memory_order_relaxed);
    while (taken != atomic_load_explicit(&box->put, memory_order_acquire)) {
        uint64_t at = taken % RING_SIZE;
        item head;
        memcpy(&head, box->ring + at, sizeof head);
        if (head.writer) {
            if (head.due > 0) wait_until(head.due);
            // A sample that cannot be written is lost for one topic at one time: the next follows.
            if (usi_writer_send(head.writer, box->ring + at + sizeof head, head.length, head.time))
                atomic_fetch_add(&box->n_unsent, 1);
            taken += size_of(head.length);
        } else if (head.port != 0) {
            send_datagram(box, &head, box->ring + at + sizeof head);
            taken += size_of(head.length);
        } else {
            taken += RING_SIZE - at;
        }
        atomic_store_explicit(&box->taken, taken, memory_order_release);
    }
}

static void *run(void *context) {
    usi_outbox *box = context;
    while (!atomic_load(&box->is_closing)) {
        while (sem_wait(&box->bell) != 0 && errno == EINTR) {
        }
        send_all(box);
    }
    send_all(box);
    return NULL;
}

void usi_outbox_hurry(usi_outbox *box) {
    // One above the caller's: the lowest of the real-time priorities, where that has none.
    struct sched_param first = {0};
    int policy = 0;
    if (pthread_getschedparam(pthread_self(), &policy, &first) != 0) return;
    first.sched_priority++;
    pthread_setschedparam(box->thread, SCHED_FIFO, &first);
}

us_status usi_outbox_create(const us_allocator *allocator, usi_outbox **out) {
    usi_outbox *box = usi_alloc(allocator, sizeof *box, _Alignof(usi_outbox));
    if (!box) return US_ERR_MEMORY;
    memset(box, 0, sizeof *box);
    box->allocator = *allocator;
    box->datagrams = -1;
    box->ring = usi_alloc(allocator, RING_SIZE, 64);
    if (!box->ring) {
        usi_release(allocator, box, sizeof *box, _Alignof(usi_outbox));
        return US_ERR_MEMORY;
    }
    memset(box->ring, 0, RING_SIZE);
    sem_init(&box->bell, 0, 0);
    if (pthread_create(&box->thread, NULL, run, box) != 0) {
        sem_destroy(&box->bell);
        usi_release(allocator, box->ring, RING_SIZE, 64);
        usi_release(allocator, box, sizeof *box, _Alignof(usi_outbox));
        return US_ERR_LIMIT;
    }
    *out = box;
    return US_OK;
}

void usi_outbox_destroy(usi_outbox *box) {
    if (!box) return;
    atomic_store(&box->is_closing, true);
    sem_post(&box->bell);
    pthread_join(box->thread, NULL);
    if (box->datagrams >= 0) close(box->datagrams);
    sem_destroy(&box->bell);
    us_allocator a = box->allocator;
    usi_release(&a, box->ring, RING_SIZE, 64);
    usi_release(&a, box, sizeof *box, _Alignof(usi_outbox));
}

static bool put(usi_outbox *box, item head, const void *bytes) {
    const size_t length = head.length;
    uint64_t at_end = atomic_load_explicit(&box->put, memory_order_relaxed),
             taken = atomic_load_explicit(&box->taken, memory_order_acquire);
    uint64_t at = at_end % RING_SIZE, need = size_of(length),
             skip = at + need > RING_SIZE ? RING_SIZE - at : 0;
    if (need > RING_SIZE / 2 || at_end + skip + need - taken > RING_SIZE) {
        atomic_fetch_add(&box->n_unsent, 1);
        return false;
    }
    if (skip > 0) {
        item none = {0};
        memcpy(box->ring + at, &none, sizeof none);
        at_end += skip;
        at = 0;
    }
    memcpy(box->ring + at, &head, sizeof head);
    memcpy(box->ring + at + sizeof head, bytes, length);
    atomic_store_explicit(&box->put, at_end + need, memory_order_release);
    return true;
}

bool usi_outbox_put(usi_outbox *box, us_writer *writer, const void *bytes, size_t length, int64_t time,
                    int64_t due) {
    // What is longer has no room, whatever it is; to the bus a time of 0 stands for now.
    const uint32_t bounded = length < RING_SIZE ? (uint32_t)length : RING_SIZE;
    return put(box, (item){writer, time > 0 ? time : 1, due, bounded, 0}, bytes);
}

bool usi_outbox_open_datagrams(usi_outbox *box) {
    if (box->datagrams >= 0) return true;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    // It has a port on every address from its first datagram on, and nobody reads there.
    if (fd >= 0 && usi_socket_hear_nothing(fd)) box->datagrams = fd;
    if (fd >= 0 && box->datagrams < 0) close(fd);
    return box->datagrams >= 0;
}

bool usi_outbox_put_datagram(usi_outbox *box, uint32_t address, uint16_t port, const void *bytes,
                             size_t length) {
    return put(box, (item){NULL, address, 0, (uint32_t)length, port}, bytes);
}

void usi_outbox_ring(usi_outbox *box) {
    int value = 0;
    // One ring that was not answered yet is enough.
    if (sem_getvalue(&box->bell, &value) != 0 || value == 0) sem_post(&box->bell);
}

int64_t usi_outbox_n_unsent(usi_outbox *box) { return atomic_load(&box->n_unsent); }

// What the switch costs: the time that it adds to a sample, and what it loses.
//
//     bench_switch [small] [large]
//
// A source in the hardware's domain writes samples that carry the time of their writing; an operator in
// another domain reads them. The same is measured without the switch, both in one domain: the difference of
// the medians is what the switch adds. The type of the samples is not known to it. Parts: 2000 small samples
// a second, and 50 MB/s in samples of 1 MB.
//
// Beside it stand two floors. The same bytes from one thread to another through plain UDP sockets of the
// loopback, without DDS: a relay receives a sample whole before it can send it, so it cannot add less than
// sending it once takes. And the least that a relay of DDS can be: a reader whose callback hands the sample,
// as it lies in memory, to a thread that writes it to the other domain, with the time that this one call
// takes. (The callback itself must not: a thread of Cyclone's that writes into another domain is no longer
// known to work in its own, where what it uses is then freed under it.)
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "bus/bus.h"
#include "understudy/switch.h"
#include "wire/type.h"

enum { MAX_SAMPLE = 20000, DOMAIN = 190, MAX_QUEUE = 4096 };

// A type that nobody here knows: what crosses is not looked at.
static const us_message_type load_type = {.name = "bench::Load",
                                          .dds_name = "bench::Load",
                                          .hash = "",
                                          .schema = "",
                                          .is_opaque = true,
                                          .other = -1};

static double latencies[MAX_SAMPLE];
static _Atomic int32_t n_heard, n_warm;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// The first characters of the text are the time of writing, ns; "-" while both ends get to know each other.
static void hear(void *context, const us_sample *sample) {
    (void)context;
    const char *text = (const char *)sample->bytes + 8;
    if (sample->length >= 40 && text[0] == '-') atomic_fetch_add(&n_warm, 1);
    if (sample->length < 40 || text[0] == '-') return;
    int32_t n = atomic_load(&n_heard);
    if (n < MAX_SAMPLE) latencies[n] = 1e-3 * (double)(now() - strtoll(text, NULL, 10));
    atomic_store(&n_heard, n + 1);
}

typedef enum way { DIRECT, RELAY, SWITCH } way;

static us_bus *open_bus(int32_t domain) {
    us_bus_def def = us_bus_def_default();
    us_error err = {0};
    us_bus *bus = NULL;
    def.domain = domain;
    if (us_bus_open(&def, &bus, &err)) {
        fprintf(stderr, "bench_switch: %s\n", err.message);
        exit(1);
    }
    return bus;
}

// One puts, one takes.
typedef struct relay {
    us_bus *from, *to;
    us_reader *reader;
    us_writer *writer;
    pthread_t thread;
    sem_t bell;
    uint32_t put, taken;
    _Atomic bool is_over;
    struct {
        us_sample sample;
        void *held;
    } queue[MAX_QUEUE];
    int32_t n;
    double us[MAX_SAMPLE];  // of each writing
} relay;

static void take_over(void *context, const us_sample *sample) {
    relay *r = context;
    r->queue[r->put % MAX_QUEUE].sample = *sample;
    r->queue[r->put++ % MAX_QUEUE].held = usi_bus_hold(r->from, sample);
    sem_post(&r->bell);
}

static void *pass_on(void *context) {
    relay *r = context;
    for (;;) {
        while (sem_wait(&r->bell))
            continue;
        if (atomic_load(&r->is_over) && r->taken == r->put) return NULL;
        const us_sample *sample = &r->queue[r->taken % MAX_QUEUE].sample;
        void *held = r->queue[r->taken++ % MAX_QUEUE].held;
        const char *text = (const char *)sample->bytes + 8;
        bool is_counted = text[0] != '-' && r->n < MAX_SAMPLE;
        int64_t begun = now();
        usi_writer_pass(r->writer, r->from, held, sample);
        if (is_counted) r->us[r->n++] = 1e-3 * (double)(now() - begun);
        usi_bus_release(r->from, held);
    }
}

static void start_relay(relay *r) {
    us_error err = {0};
    us_topic_def topic = {"/k10/load", &load_type, {.is_reliable = true, .depth = 100}, -1};
    us_bus *to = open_bus(DOMAIN);
    *r = (relay){.from = open_bus(DOMAIN + 1), .to = to};
    sem_init(&r->bell, 0, 0);
    us_bus_add_writer(to, &topic, &r->writer, &err);
    pthread_create(&r->thread, NULL, pass_on, r);
    us_bus_add_reader(r->from, &topic, take_over, r, &r->reader, &err);
}

static void end_relay(relay *r) {
    us_reader_remove(r->reader);
    atomic_store(&r->is_over, true);
    sem_post(&r->bell);
    pthread_join(r->thread, NULL);
    us_bus_close(r->from);
    us_bus_close(r->to);
    sem_destroy(&r->bell);
}

static void sleep_until(int64_t time) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
                    &(struct timespec){.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000}, NULL);
}

// The median, us; prints a line.
static double measure(const char *title, way how, size_t size, int32_t n, int64_t period) {
    static const char *const names[] = {"direct", "relay", "switch"};
    static relay between;
    us_error err = {0};
    const us_message_type *type = &load_type;
    us_qos qos = {.is_reliable = true, .depth = 100};
    us_bus *source = open_bus(DOMAIN + 1), *operator_ = open_bus(how == DIRECT ? DOMAIN + 1 : DOMAIN);
    int32_t node = -1;
    us_writer *writer = NULL;
    us_reader *reader = NULL;
    us_switch *sw = NULL;
    us_bus_add_node(source, "/k10", "driver", &node, &err);
    us_bus_add_writer(source, &(us_topic_def){"/k10/load", type, qos, node}, &writer, &err);
    us_bus_add_reader(operator_, &(us_topic_def){"/k10/load", type, qos, -1}, hear, NULL, &reader, &err);
    if (how == RELAY) start_relay(&between);
    if (how == SWITCH) {
        us_switch_def def = us_switch_def_default();
        def.robot = "k10";
        def.operators.domain = DOMAIN;
        def.hardware.domain = DOMAIN + 1;
        def.proxy.domain = DOMAIN + 2;
        if (us_switch_open(&def, &sw, &err)) {
            fprintf(stderr, "bench_switch: %s\n", err.message);
            exit(1);
        }
    }
    uint8_t *bytes = calloc(1, 8 + size);
    bytes[1] = 1;
    uint32_t length = (uint32_t)size;
    memcpy(bytes + 4, &length, sizeof length);
    memset(bytes + 8, '-', size - 1);
    while (us_reader_n_match(reader) == 0 || us_writer_n_match(writer) == 0)
        usleep(1000);
    // A switch passes nothing on before it is in office.
    atomic_store(&n_warm, 0);
    for (int i = 0; i < 20 || (atomic_load(&n_warm) < 10 && i < 2000); i++) {
        us_writer_write(writer, bytes, 8 + size, 0);
        usleep(5000);
    }
    atomic_store(&n_heard, 0);
    int32_t n_unsent = 0;
    int64_t next = now();
    for (int32_t i = 0; i < n; i++, next += period) {
        sleep_until(next);
        bytes[8 + snprintf((char *)bytes + 8, 32, "%019lld", (long long)now())] = '-';
        if (us_writer_write(writer, bytes, 8 + size, 0)) n_unsent++;
    }
    for (int i = 0; i < 2000 && atomic_load(&n_heard) < n; i++)
        usleep(1000);
    if (how == RELAY) end_relay(&between);
    int32_t heard = atomic_load(&n_heard), kept = heard < MAX_SAMPLE ? heard : MAX_SAMPLE;
    qsort(latencies, (size_t)kept, sizeof *latencies, compare);
    double median = kept ? latencies[kept / 2] : 0, late = kept ? latencies[kept * 99 / 100] : 0;
    printf("  %-28s %-8s median %8.1f us, 99 %% %9.1f us, lost %d of %d, unsent %d", title, names[how],
           median, late, n - heard, n, n_unsent);
    if (how == RELAY) {
        qsort(between.us, (size_t)between.n, sizeof *between.us, compare);
        printf(", of which it writes for %.1f us", between.n ? between.us[between.n / 2] : 0);
    }
    putchar('\n');
    fflush(stdout);
    free(bytes);
    us_switch_close(sw);
    us_bus_close(operator_);
    us_bus_close(source);
    return median;
}

// ---- the floor ----

enum { DATAGRAM = 65000, FLOOR_ROUNDS = 50 };

typedef struct floor_receiver {
    int socket;
    size_t size;
    int32_t n;
    double us[FLOOR_ROUNDS];
} floor_receiver;

// Each round is `size` bytes, of which the first eight are the time of sending.
static void *receive_rounds(void *context) {
    floor_receiver *r = context;
    static uint8_t buffer[DATAGRAM];
    for (r->n = 0; r->n < FLOOR_ROUNDS; r->n++) {
        int64_t sent = 0;
        for (size_t have = 0; have < r->size;) {
            ssize_t got = recv(r->socket, buffer, sizeof buffer, 0);
            if (got <= 0) return NULL;
            if (have == 0) memcpy(&sent, buffer, sizeof sent);
            have += (size_t)got;
        }
        r->us[r->n] = 1e-3 * (double)(now() - sent);
    }
    return NULL;
}

// The median time of one transfer, us; 0 when the machine has no loopback.
static double measure_floor(size_t size) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    floor_receiver r = {.socket = socket(AF_INET, SOCK_DGRAM, 0), .size = size};
    int sender = socket(AF_INET, SOCK_DGRAM, 0), room = 4 << 20;
    struct timeval patience = {.tv_sec = 2};
    setsockopt(r.socket, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(r.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(sender, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    pthread_t thread;
    uint8_t *bytes = calloc(1, size);
    if (bytes && bind(r.socket, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockname(r.socket, (struct sockaddr *)&address, &length) == 0 &&
        pthread_create(&thread, NULL, receive_rounds, &r) == 0) {
        for (int i = 0; i < FLOOR_ROUNDS; i++) {
            usleep(20000);
            int64_t time = now();
            memcpy(bytes, &time, sizeof time);
            for (size_t at = 0; at < size; at += DATAGRAM) {
                sendto(sender, bytes + at, size - at < DATAGRAM ? size - at : DATAGRAM, 0,
                       (struct sockaddr *)&address, sizeof address);
            }
        }
        pthread_join(thread, NULL);
    }
    free(bytes);
    close(sender);
    close(r.socket);
    qsort(r.us, (size_t)r.n, sizeof *r.us, compare);
    return r.n > 0 ? r.us[r.n / 2] : 0;
}

static void compare_both(const char *title, size_t size, int32_t n, int64_t period) {
    enum { N_ROUND = 5 };
    double added[N_ROUND], directs[N_ROUND], relayed[N_ROUND], floors[N_ROUND];
    // One after the other in turns: what else the machine does meets both.
    for (int i = 0; i < N_ROUND; i++) {
        floors[i] = measure_floor(size);
        directs[i] = measure(title, DIRECT, size, n, period);
        relayed[i] = measure(title, RELAY, size, n, period) - directs[i];
        added[i] = measure(title, SWITCH, size, n, period) - directs[i];
    }
    qsort(floors, N_ROUND, sizeof *floors, compare);
    qsort(directs, N_ROUND, sizeof *directs, compare);
    double ratio[N_ROUND];
    for (int i = 0; i < N_ROUND; i++)
        ratio[i] = added[i] / relayed[i];
    qsort(ratio, N_ROUND, sizeof *ratio, compare);
    printf("  %s: the switch takes %.2f times what the least relay takes\n", title, ratio[N_ROUND / 2]);
    qsort(relayed, N_ROUND, sizeof *relayed, compare);
    qsort(added, N_ROUND, sizeof *added, compare);
    printf("  %s: the switch adds %.1f us, the least relay %.1f us; DDS without either takes %.1f us, plain "
           "UDP %.1f us (medians of %d rounds)\n",
           title, added[N_ROUND / 2], relayed[N_ROUND / 2], directs[N_ROUND / 2], floors[N_ROUND / 2],
           (int)N_ROUND);
}

int main(int argc, char **argv) {
    bool is_small = argc < 2, is_large = argc < 2;
    for (int i = 1; i < argc; i++) {
        is_small = is_small || !strcmp(argv[i], "small");
        is_large = is_large || !strcmp(argv[i], "large");
    }
    if (is_small) compare_both("2000 small samples/s", 100, 2000, 500000);
    if (is_large) compare_both("50 samples of 1 MB/s", 1000000, 50, 20000000);
    return 0;
}

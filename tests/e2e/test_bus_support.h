// What the tests of the bus share: a domain of their own, other processes, messages with something in every
// field, and the exchange of all types.
//
// The other process is this same test program, started again with the arguments "--peer VENDOR DOMAIN": it
// echoes every type, as fastdds_peer does.
#ifndef UNDERSTUDY_TEST_BUS_SUPPORT_H
#define UNDERSTUDY_TEST_BUS_SUPPORT_H

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "domain.h"
#include "understudy/bus.h"
#include "wire/messages.h"
#include "wire/type.h"

extern char **environ;

enum { MESSAGE_BYTES = 1 << 16, MEMORY_BYTES = 1 << 20 };

// Far beyond what a busy machine needs; reached only when something is broken.
#define PATIENCE 20.0  // s

static inline double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Looks at a condition until it holds; fails when it does not for long.
#define WAIT_FOR(condition)                                                                \
    do {                                                                                   \
        double wait_until_ = clock_now() + PATIENCE;                                       \
        while (!(condition)) {                                                             \
            if (clock_now() > wait_until_) fail_msg("waited in vain for: %s", #condition); \
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);                       \
        }                                                                                  \
    } while (0)

static inline int32_t test_domain(void) { return test_domain_of(0); }

static inline void expect_ok(us_status status, const us_error *err) {
    if (status == US_OK) return;
    char text[1200];
    us_error_format(err, text, sizeof text);
    fail_msg("%s: %s", us_status_text(status), text);
}

static inline us_bus *open_bus_def(const us_bus_def *def) {
    us_error err = {0};
    us_bus *bus = NULL;
    expect_ok(us_bus_open(def, &bus, &err), &err);
    return bus;
}

static inline us_bus *open_bus(const char *vendor, int32_t domain) {
    us_bus_def def = us_bus_def_default();
    def.vendor = vendor;
    def.domain = domain;
    return open_bus_def(&def);
}

static inline us_writer *add_writer(us_bus *bus, const char *topic, const us_message_type *type, us_qos qos) {
    us_error err = {0};
    us_writer *writer = NULL;
    expect_ok(us_bus_add_writer(bus, &(us_topic_def){topic, type, qos, -1}, &writer, &err), &err);
    return writer;
}

static inline us_reader *add_reader(us_bus *bus, const char *topic, const us_message_type *type, us_qos qos,
                                    us_sample_function *on_sample, void *context) {
    us_error err = {0};
    us_reader *reader = NULL;
    expect_ok(
        us_bus_add_reader(bus, &(us_topic_def){topic, type, qos, -1}, on_sample, context, &reader, &err),
        &err);
    return reader;
}

static inline void write_text_message(us_writer *writer, const char *text) {
    union {
        const char *in;
        char *out;
    } data = {.in = text};
    us_msg_string message = {.data = data.out};
    uint8_t bytes[512];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_string, &message, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_writer_write(writer, bytes, length, 0), US_OK);
}

// ---- messages with something in every field
// ---------------------------------------------------------------- Made from the table straight
// as bytes: the encoder of the library is what they are compared with.

typedef struct maker {
    uint8_t *bytes;
    size_t at;
    uint64_t seed, count;
} maker;

static inline uint64_t maker_bits(maker *m) { return us_random_bits(m->seed, 7, m->count++); }

static inline void maker_put(maker *m, const void *bytes, size_t n, size_t align) {
    while ((m->at - 4) % align)
        m->bytes[m->at++] = 0;
    assert_true(m->at + n < MESSAGE_BYTES);
    memcpy(m->bytes + m->at, bytes, n);
    m->at += n;
}

static inline void maker_put_type(maker *m, const us_message_type *type);

static inline void maker_put_element(maker *m, const usi_message_field *f) {
    uint64_t bits = maker_bits(m);
    if (f->kind == USI_KIND_MESSAGE) {
        maker_put_type(m, f->type);
    } else if (f->kind == USI_KIND_STRING) {
        char text[40];
        int n = snprintf(text, sizeof text, "text %llx", (unsigned long long)bits);
        uint32_t length = (uint32_t)n + 1;
        maker_put(m, &length, 4, 4);
        maker_put(m, text, length, 1);
    } else if (f->kind == USI_KIND_BOOL) {
        uint8_t value = bits & 1;
        maker_put(m, &value, 1, 1);
    } else if (f->kind == USI_KIND_FLOAT32) {
        float value = (float)((double)(int64_t)bits * 1e-15);
        maker_put(m, &value, 4, 4);
    } else if (f->kind == USI_KIND_FLOAT64) {
        double value = (double)(int64_t)bits * 1e-15;
        maker_put(m, &value, 8, 8);
    } else {
        maker_put(m, &bits, usi_kind_size(f->kind), usi_kind_size(f->kind));
    }
}

static inline void maker_put_type(maker *m, const us_message_type *type) {
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        uint32_t n = 1;
        if (f->shape == USI_SHAPE_ARRAY) n = f->count;
        if (f->shape == USI_SHAPE_SEQUENCE) {
            n = 1 + (uint32_t)(maker_bits(m) % 3);
            if (f->count && n > f->count) n = f->count;
            maker_put(m, &n, 4, 4);
        }
        for (uint32_t k = 0; k < n; k++)
            maker_put_element(m, f);
    }
}

static inline size_t make_message(const us_message_type *type, uint64_t seed, uint8_t bytes[MESSAGE_BYTES]) {
    maker m = {.bytes = bytes, .at = 4, .seed = seed};
    memcpy(bytes, "\0\1\0\0", 4);
    maker_put_type(&m, type);
    return m.at;
}

// The same message with every gap between its members cleared: other encoders leave there what was in memory.
static inline size_t make_plain(const us_message_type *type, const void *bytes, size_t length,
                                uint8_t out[MESSAGE_BYTES]) {
    static _Alignas(16) uint8_t memory[MEMORY_BYTES];
    const void *message = NULL;
    us_error err = {0};
    size_t n = 0;
    expect_ok(us_message_decode(type, bytes, length, memory, sizeof memory, &message, &err), &err);
    assert_int_equal(us_message_encode(type, message, out, MESSAGE_BYTES, &n), US_OK);
    return n;
}

// "/to_peer/geometry_msgs_Twist" of geometry_msgs/msg/Twist.
static inline void topic_of_type(const char *prefix, const us_message_type *type, char out[256]) {
    const char *name = us_message_name(type);
    const char *slash = strchr(name, '/'), *last = strrchr(name, '/');
    assert_non_null(slash);
    snprintf(out, 256, "%s%.*s_%s", prefix, (int)(slash - name), name, last + 1);
}

// ---- other processes
// ----------------------------------------------------------------

typedef struct peer {
    pid_t pid;
    int in, out;  // its standard input, which keeps it alive, and its standard output
} peer;

// The one that runs. A test that failed left its peer behind: the next one ends it.
static pid_t running_peer;

static inline void end_running_peer(void) {
    if (running_peer <= 0) return;
    kill(running_peer, SIGKILL);
    waitpid(running_peer, NULL, 0);
    running_peer = 0;
}

// Starts a program and waits until it says "ready".
static inline peer start_peer(const char *program, char *const arguments[]) {
    end_running_peer();
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    peer p = {.in = in[1], .out = out[0]};
    assert_int_equal(posix_spawn(&p.pid, program, &actions, NULL, arguments, environ), 0);
    running_peer = p.pid;
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    struct pollfd waiting = {.fd = p.out, .events = POLLIN};
    char text[64] = "";
    assert_int_equal(poll(&waiting, 1, (int)(1e3 * PATIENCE)), 1);
    assert_true(read(p.out, text, sizeof text - 1) > 0);
    assert_int_equal(strncmp(text, "ready", 5), 0);
    return p;
}

static inline peer start_self(const char *vendor, int32_t domain) {
    char program[1024], number[16], name[] = "--peer", kind[32];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(n > 0);
    program[n] = 0;
    snprintf(number, sizeof number, "%d", domain);
    snprintf(kind, sizeof kind, "%s", vendor);
    return start_peer(program, (char *[]){program, name, kind, number, NULL});
}

static inline void stop_peer(const peer *p) {
    int status = 0;
    close(p->in);
    double until = clock_now() + PATIENCE;
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        if (clock_now() > until) {
            end_running_peer();
            fail_msg("the peer did not end");
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    running_peer = 0;
    close(p->out);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

// The other side: echoes every type until its standard input ends. No assertion of cmocka here: it is no
// test.
static inline int run_echo(const char *vendor, int32_t domain) {
    enum { MAX_TYPE = 256 };
    static us_writer *writers[MAX_TYPE];
    static us_reader *readers[MAX_TYPE];
    static uint8_t buf[MESSAGE_BYTES];
    us_bus_def def = us_bus_def_default();
    def.vendor = vendor;
    def.domain = domain;
    us_bus *bus = NULL;
    us_error err = {0};
    if (us_bus_open(&def, &bus, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    us_qos qos = {.is_reliable = true};
    int32_t n = us_message_n_type();
    if (n > MAX_TYPE) return 1;
    for (int32_t i = 0; i < n; i++) {
        const us_message_type *type = us_message_get_type(i);
        char in[256], out[256];
        topic_of_type("/to_peer/", type, in);
        topic_of_type("/from_peer/", type, out);
        if (us_bus_add_writer(bus, &(us_topic_def){out, type, qos, -1}, &writers[i], &err) ||
            us_bus_add_reader(bus, &(us_topic_def){in, type, qos, -1}, NULL, NULL, &readers[i], &err)) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
    }
    printf("ready\n");
    fflush(stdout);
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    for (char byte; read(STDIN_FILENO, &byte, 1) != 0;) {
        if (!us_bus_wait(bus, 0.05)) continue;
        for (int32_t i = 0; i < n; i++) {
            for (size_t length;
                 us_reader_take(readers[i], buf, sizeof buf, &length, NULL) == US_OK && length;) {
                // Full: the reader of the echo has to catch up.
                double until = clock_now() + 30;
                while (us_writer_write(writers[i], buf, length, 0) == US_ERR_LIMIT && clock_now() < until)
                    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            }
        }
    }
    us_bus_close(bus);
    return 0;
}

// ---- the exchange
// ----------------------------------------------------------------

// A match is known on one side before it is on the other, and what is sent in between is not meant for the
// late one. So first a probe goes out again and again until its echo comes; from then on all that is sent
// must come back.

typedef struct echo_line {
    const us_message_type *type;
    us_writer *writer;
    us_reader *reader;
} echo_line;

enum { PROBE = 999 };

static inline void send_made(const echo_line *line, uint64_t seed) {
    static uint8_t bytes[MESSAGE_BYTES];
    size_t n = make_message(line->type, seed, bytes);
    us_status status = US_OK;
    WAIT_FOR((status = us_writer_write(line->writer, bytes, n, 0)) != US_ERR_LIMIT);
    assert_int_equal(status, US_OK);
}

// Takes the next sample if there is one. Its seed must be `seed` or PROBE; returns which, and -1 when there
// is none.
static inline int64_t take_made(const echo_line *line, uint64_t seed) {
    static uint8_t sent[MESSAGE_BYTES], plain[MESSAGE_BYTES], got[MESSAGE_BYTES], got_plain[MESSAGE_BYTES];
    size_t n_got = 0;
    assert_int_equal(us_reader_take(line->reader, got, sizeof got, &n_got, NULL), US_OK);
    if (!n_got) return -1;
    size_t n_got_plain = make_plain(line->type, got, n_got, got_plain);
    for (int k = 0; k < 2; k++) {
        uint64_t which = k ? PROBE : seed;
        size_t n_plain = make_plain(line->type, sent, make_message(line->type, which, sent), plain);
        if (n_got_plain == n_plain && !memcmp(plain, got_plain, n_plain)) return (int64_t)which;
    }
    fail_msg("%s came back changed", us_message_name(line->type));
    return -1;
}

// Sends several messages of every type and compares what comes back.
static inline void exchange_every_type(us_bus *bus) {
    enum { MAX_TYPE = 256, EACH = 3 };
    static echo_line lines[MAX_TYPE];
    static bool is_heard[MAX_TYPE];
    us_qos qos = {.is_reliable = true};
    int32_t n = us_message_n_type(), n_heard = 0;
    assert_true(n > 0 && n <= MAX_TYPE);
    for (int32_t i = 0; i < n; i++) {
        char out[256], in[256];
        lines[i].type = us_message_get_type(i);
        is_heard[i] = false;
        topic_of_type("/to_peer/", lines[i].type, out);
        topic_of_type("/from_peer/", lines[i].type, in);
        lines[i].writer = add_writer(bus, out, lines[i].type, qos);
        lines[i].reader = add_reader(bus, in, lines[i].type, qos, NULL, NULL);
    }
    for (double until = clock_now() + PATIENCE; n_heard < n;) {
        if (clock_now() > until) fail_msg("only %d of %d types come back", n_heard, n);
        for (int32_t i = 0; i < n; i++) {
            if (!is_heard[i]) send_made(&lines[i], PROBE);
        }
        double next = clock_now() + 0.1;
        while (n_heard < n && clock_now() < next && us_bus_wait(bus, next - clock_now())) {
            for (int32_t i = 0; i < n; i++) {
                while (take_made(&lines[i], PROBE) >= 0) {
                    n_heard += !is_heard[i];
                    is_heard[i] = true;
                }
            }
        }
    }
    for (int32_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < EACH; k++)
            send_made(&lines[i], k);
    }
    for (int32_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < EACH; k++)
            WAIT_FOR(take_made(&lines[i], k) == (int64_t)k);
    }
    for (int32_t i = 0; i < n; i++) {
        us_reader_remove(lines[i].reader);
        us_writer_remove(lines[i].writer);
    }
    print_message("%d types\n", n);
}

typedef struct count {
    _Atomic int64_t n, n_wrong;
    _Atomic bool is_heard;
} count;

static inline void count_in_order(void *context, const us_sample *sample) {
    count *c = context;
    int64_t tick = -2;
    if (sample->length >= 12) memcpy(&tick, (const uint8_t *)sample->bytes + 4, sizeof tick);
    if (tick == -1) {
        atomic_store(&c->is_heard, true);
        return;
    }
    if (tick != atomic_load(&c->n)) atomic_fetch_add(&c->n_wrong, 1);
    atomic_fetch_add(&c->n, 1);
}

static inline void send_tick(us_writer *writer, int64_t tick) {
    us_msg_tick_hash message = {.tick = tick, .hash = (uint64_t)tick * 3};
    uint8_t bytes[64];
    size_t length = 0;
    us_status status = us_message_encode(usi_type_tick_hash, &message, bytes, sizeof bytes, &length);
    assert_int_equal(status, US_OK);
    WAIT_FOR((status = us_writer_write(writer, bytes, length, 0)) != US_ERR_LIMIT);
    assert_int_equal(status, US_OK);
}

// n numbered samples to the other side and back, in order, none missing.
static inline void exchange_many(us_bus *bus, int64_t n) {
    us_qos qos = {.is_reliable = true};
    count c = {0};
    us_writer *writer = add_writer(bus, "/to_peer/understudy_msgs_TickHash", usi_type_tick_hash, qos);
    us_reader *reader =
        add_reader(bus, "/from_peer/understudy_msgs_TickHash", usi_type_tick_hash, qos, count_in_order, &c);
    WAIT_FOR((send_tick(writer, -1), atomic_load(&c.is_heard)));
    double started = clock_now();
    for (int64_t i = 0; i < n; i++)
        send_tick(writer, i);
    WAIT_FOR(atomic_load(&c.n) >= n);
    print_message("%lld samples there and back in %.2f s\n", (long long)n, clock_now() - started);
    us_reader_remove(reader);
    us_writer_remove(writer);
    assert_int_equal(atomic_load(&c.n), n);
    assert_int_equal(atomic_load(&c.n_wrong), 0);
}

// A program that may also be the other side.
#define BUS_TEST_MAIN(tests, setup, teardown)                                       \
    int main(int n_argument, char **arguments) {                                    \
        if (n_argument == 4 && !strcmp(arguments[1], "--peer"))                     \
            return run_echo(arguments[2], (int32_t)strtol(arguments[3], NULL, 10)); \
        signal(SIGPIPE, SIG_IGN);                                                   \
        int n_failed = cmocka_run_group_tests(tests, setup, teardown);              \
        end_running_peer();                                                         \
        return n_failed;                                                            \
    }

// How many samples wait in a reader; they are taken.
static inline int32_t take_all(us_reader *reader) {
    uint8_t bytes[1024];
    int32_t n = 0;
    for (size_t length = 1; us_reader_take(reader, bytes, sizeof bytes, &length, NULL) == US_OK && length;)
        n++;
    return n;
}

// Whether the plug-in was built. Without it a test says so and passes.
static inline bool has_fastdds(void) {
    us_bus_def def = us_bus_def_default();
    def.vendor = "fastdds";
    def.domain = test_domain();
    us_bus *bus = NULL;
    us_error err = {0};
    us_status status = us_bus_open(&def, &bus, &err);
    if (status == US_OK) {
        us_bus_close(bus);
        return true;
    }
    assert_non_null(strstr(err.message, "libunderstudy-fastdds.so"));
    assert_non_null(strstr(err.remedy, "US_PLUGIN_PATH"));
    print_message("skipped: the plug-in for Fast DDS is not built\n");
    return false;
}

#endif

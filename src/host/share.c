// The part of the world that other processes have: host/split.c on a bus.
//
//     network's thread   on_sample --> [ list of samples ] --> us_world_wait    the thread that steps
//
// Samples wait in a list under a lock; who steps looks at it for a moment when it has to wait for others, and
// then sleeps on its condition.
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/monotonic_cond.h"
#include "host/host.h"
#include "host/split.h"
#include "proxy/tap.h"

// Samples that may wait. Of each process two are of use at a time; the rest are repetitions.
enum { MAX_WAITING = 1024 };
// Where nothing is near to what others own, so many stretches make one: fewer letters, and ghosts that are
// shown where they were so much earlier.
enum { STRETCHES = 4 };
// ns: how long it looks for what others say before it sleeps. They mostly work as long as this one, and are
// there soon; two threads that wake one after the other, on a processor that has gone to sleep too, take
// longer than that. While it looks it gives way to whoever wants to run.
static const int64_t LOOK_NS = 2000000;
// s: how long one that ends stays for those who may still need what it said last.
static const double LINGER = 2;

typedef struct sample {
    struct sample *next;
    size_t length;
} sample;

struct usi_share {
    us_world *host;
    usi_split *split;
    us_writer *writer;
    us_reader *reader;
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    sample *first, *last;
    _Atomic int32_t n_waiting;
    char label[USI_SPLIT_LABEL];
};

us_split_def us_split_def_default(void) {
    return (us_split_def){.share = "world", .exchange = 0.01, .timeout = 60};
}

static int64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// ---------------------------------------------------------------- in and out

static void *bytes_of(sample *x) { return x + 1; }

static void on_sample(void *context, const us_sample *given) {
    usi_share *w = context;
    sample *x = usi_alloc(&w->host->allocator, sizeof *x + given->length, 16);
    if (!x) return;
    *x = (sample){.length = given->length};
    memcpy(bytes_of(x), given->bytes, given->length);
    pthread_mutex_lock(&w->lock);
    bool has_room = w->n_waiting < MAX_WAITING;
    if (has_room) {
        if (w->last)
            w->last->next = x;
        else
            w->first = x;
        w->last = x;
        w->n_waiting++;
        pthread_cond_signal(&w->arrived);
    }
    pthread_mutex_unlock(&w->lock);
    // What is lost is said again.
    if (!has_room) usi_release(&w->host->allocator, x, sizeof *x + given->length, 16);
}

// Waits for a sample until a time of the wall's clock, then takes all that are there.
static sample *take_all(usi_share *w, int64_t until_ns) {
    struct timespec t = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    pthread_mutex_lock(&w->lock);
    while (!w->first && until_ns > 0) {
        if (pthread_cond_timedwait(&w->arrived, &w->lock, &t) == ETIMEDOUT) break;
    }
    sample *all = w->first;
    w->first = w->last = NULL;
    w->n_waiting = 0;
    pthread_mutex_unlock(&w->lock);
    return all;
}

static void look(const usi_share *w, int64_t until_ns) {
    while (atomic_load_explicit(&w->n_waiting, memory_order_relaxed) == 0 && clock_ns() < until_ns)
        sched_yield();
}

static void receive(usi_share *w, int64_t until_ns) {
    for (sample *x = take_all(w, until_ns), *next; x; x = next) {
        next = x->next;
        usi_split_receive(w->split, bytes_of(x), x->length, clock_ns());
        usi_release(&w->host->allocator, x, sizeof *x + x->length, 16);
    }
}

static void on_send(void *context, const void *bytes, size_t length) {
    const usi_share *w = context;
    // What cannot be sent now is said again.
    (void)us_writer_write(w->writer, bytes, length, 0);
}

static void on_log(void *context, int32_t level, const char *text) {
    const usi_share *w = context;
    us_world_log(w->host, level, text);
}

// ---------------------------------------------------------------- steps

// One that takes up where others saw it jumps in time: whoever keeps the pace learns of it before the next
// step.
static us_status poll_split(usi_share *w, int64_t now, bool *out_is_ready, us_error *err) {
    us_world *h = w->host;
    int64_t tick = us_sim_get_tick(h->stage.sim);
    us_status status = usi_split_poll(w->split, now, out_is_ready, err);
    if (us_sim_get_tick(h->stage.sim) == tick) return status;
    h->wish.change++;
    h->is_fresh = true;
    *out_is_ready = false;
    return status;
}

us_status us_world_wait(us_world *h, double seconds, bool *out_is_ready, us_error *err) {
    if (!h || !out_is_ready || !(seconds >= 0))
        return us_error_set(err, US_ERR_ARG, NULL, "pass a host and a place for the answer",
                            "us_world_wait: an argument is NULL, or the time negative");
    *out_is_ready = true;
    usi_share *w = h->share;
    if (!w) return US_OK;
    int64_t now = clock_ns(), end = now + (int64_t)(1e9 * fmin(seconds, 3600)), until = 0;
    us_status status = poll_split(w, now, out_is_ready, err);
    if (status || *out_is_ready) return status;
    // First what is there already.
    for (const int64_t looks_until = now + LOOK_NS;;) {
        receive(w, until);
        now = clock_ns();
        status = poll_split(w, now, out_is_ready, err);
        if (status || *out_is_ready || now >= end) return status;
        look(w, looks_until < end ? looks_until : end);
        // Now and then it must say that it is there itself.
        until = end < now + 100000000 ? end : now + 100000000;
    }
}

const us_command *usi_share_command(us_world *h) {
    return h->share ? usi_split_command(h->share->split) : NULL;
}

us_status usi_share_stepped(us_world *h, us_error *err) {
    return h->share ? usi_split_stepped(h->share->split, err) : US_OK;
}

void usi_share_tend(us_world *h) {
    if (!h->share) return;
    receive(h->share, 0);
    usi_split_tend(h->share->split, clock_ns());
}

us_status usi_share_check(const us_world *h, const usi_command *c, us_error *err) {
    if (!h->share || c->verb == USI_VERB_PAUSE || c->verb == USI_VERB_RESUME || c->verb == USI_VERB_STEP ||
        c->verb == USI_VERB_RATE)
        return US_OK;
    return us_error_set(
        err, US_ERR_ARG, NULL, "end all its processes, change the scene, and start again",
        "a world in several processes cannot be changed while it runs: the others would not know");
}

// ---------------------------------------------------------------- life

static us_status join_topic(usi_share *w, us_bus *bus, const char *name, us_error *err) {
    char topic[160];
    snprintf(topic, sizeof topic, "/understudy/share/%s", name);
    us_topic_def def = {
        topic, usi_type_world_share, {.is_reliable = true, .is_transient_local = true, .depth = 8}, -1};
    us_status status = us_bus_add_writer(bus, &def, &w->writer, err);
    return status ? status : us_bus_add_reader(bus, &def, on_sample, w, &w->reader, err);
}

static void release(usi_share *w) {
    us_allocator a = w->host->allocator;
    if (w->reader) us_reader_remove(w->reader);
    if (w->writer) us_writer_remove(w->writer);
    for (sample *x = take_all(w, 0), *next; x; x = next) {
        next = x->next;
        usi_release(&a, x, sizeof *x + x->length, 16);
    }
    usi_split_destroy(w->split);
    pthread_cond_destroy(&w->arrived);
    pthread_mutex_destroy(&w->lock);
    usi_release(&a, w, sizeof *w, _Alignof(usi_share));
}

static bool init_lock(usi_share *w) {
    if (pthread_mutex_init(&w->lock, NULL) != 0) return false;
    if (usi_cond_init(&w->arrived)) return true;
    pthread_mutex_destroy(&w->lock);
    return false;
}

// A number that no other process has: host, process and time.
static uint64_t make_id(const char *label) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return us_hash_bytes(us_hash_bytes(0, label, strlen(label)), &t, sizeof t);
}

static bool is_name(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n > 0 && n <= 100 && name[n] == 0 && !(name[0] >= '0' && name[0] <= '9');
}

// Robots that others own are off the network, and the first process tells the time.
static void part_robots(us_world *h, const usi_split *split) {
    for (int32_t i = 0; i < us_proxy_n_robot(h->stage.proxy); i++) {
        const char *name = us_proxy_robot_name(h->stage.proxy, i);
        for (int32_t g = 0; g < us_spec_get_counts(h->stage.world->spec).n_group; g++) {
            if (strcmp(us_spec_view_group(h->stage.world->spec, g)->name, name) == 0 &&
                !usi_split_owns(split, g))
                usi_proxy_set_ghost(h->stage.proxy, i);
        }
    }
    // From here on their states are not carried over from tick to tick: they are the same in both once all is
    // copied.
    usi_sim_plugin(h->stage.sim, 0);
    if (!usi_split_is_first(split)) usi_proxy_mute_clock(h->stage.proxy);
}

us_status us_world_split(us_world *h, us_bus *bus, const us_split_def *def, us_error *err) {
    if (!h || !bus || !def || !def->own || !def->share || h->share || h->topics || h->recorder)
        return us_error_set(err, US_ERR_ARG, NULL,
                            "split a host once, before it is connected or recorded, on a bus that is open",
                            "us_world_split: wrong argument, or too late");
    if (!is_name(def->share))
        return us_error_set(err, US_ERR_NAME, NULL, "write letters, digits and _, for example rovers",
                            "share: \"%.100s\" is no name", def->share);
    if (!(def->timeout >= 0 && isfinite(def->exchange)))
        return us_error_set(err, US_ERR_VALUE, NULL, "write seconds, 0: for ever",
                            "share: %g s is no time to wait", def->timeout);
    usi_share *w = usi_alloc(&h->allocator, sizeof *w, _Alignof(usi_share));
    if (w) memset(w, 0, sizeof *w);
    if (!w || !init_lock(w)) {
        usi_release(&h->allocator, w, sizeof *w, _Alignof(usi_share));
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the shared world");
    }
    w->host = h;
    char machine[48] = "";
    if (gethostname(machine, sizeof machine - 1) != 0) machine[0] = 0;
    snprintf(w->label, sizeof w->label, "%s:%ld", machine, (long)getpid());
    usi_split_def d = {.allocator = h->allocator,
                       .own = def->own,
                       .label = w->label,
                       .id = make_id(w->label),
                       .exchange = def->exchange};
    d.n_stretch = STRETCHES;
    d.timeout = def->timeout;
    d.send = on_send;
    d.log = on_log;
    d.context = w;
    us_status status = usi_split_create(h->stage.world->spec, h->stage.sim, &d, &w->split, err);
    if (!status) status = join_topic(w, bus, def->share, err);
    if (status) {
        release(w);
        return status;
    }
    part_robots(h, w->split);
    h->share = w;
    return US_OK;
}

// The others may need what was said last before they can end themselves.
void usi_share_destroy(us_world *h) {
    usi_share *w = h->share;
    if (!w) return;
    int64_t end = clock_ns() + (int64_t)(1e9 * LINGER);
    while (usi_split_is_needed(w->split) && clock_ns() < end) {
        usi_split_tend(w->split, clock_ns());
        receive(w, clock_ns() + 20000000);
    }
    usi_split_end(w->split);
    h->share = NULL;
    release(w);
}

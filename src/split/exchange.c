// A world in several processes on a bus: the messages of split.c, sent and received.
//
//     network's thread   on_sample --> [ list of samples ] --> us_split_wait    the thread that steps
//
// Samples wait in a list under a lock; the thread that steps spins on it for a moment when it has to wait for
// others, and then sleeps on its condition.
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/monotonic_cond.h"
#include "proxy/fault.h"
#include "proxy/tap.h"
#include "split/split__inner.h"
#include "understudy/split.h"
#include "world/hooks.h"

// Samples that may wait. Of each process two are of use at a time; the rest are repetitions.
enum { MAX_WAITING = 1024 };
// Where nothing is near to what others own, so many intervals make one: fewer messages, and ghosts that are
// shown where they were so much earlier.
enum { INTERVALS = 4 };
// ns: how long it spins before it sleeps. Others mostly work as long as this one, and are there soon; two
// threads that wake one after the other, on a processor that has gone to sleep too, take longer than that.
// While it spins it yields to whoever wants to run.
static const int64_t SPIN_NS = 2000000;
// s: how long a process that ends stays for those who may still need its last message.
static const double LINGER = 2;

static const char HOOKS[] = "split";

typedef struct received_sample {
    struct received_sample *next;
    size_t length;
} received_sample;

struct us_split {
    us_allocator allocator;
    us_world *world;
    usi_split *split;
    us_writer *writer;
    us_reader *reader;
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    received_sample *first, *last;
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

static void *bytes_of(received_sample *x) { return x + 1; }

static void release_sample(const us_split *s, received_sample *x) {
    usi_release(&s->allocator, x, sizeof *x + x->length, 16);
}

static void on_sample(void *context, const us_sample *given) {
    us_split *s = context;
    received_sample *x = usi_alloc(&s->allocator, sizeof *x + given->length, 16);
    if (!x) return;
    *x = (received_sample){.length = given->length};
    memcpy(bytes_of(x), given->bytes, given->length);
    pthread_mutex_lock(&s->lock);
    bool has_room = s->n_waiting < MAX_WAITING;
    if (has_room) {
        if (s->last)
            s->last->next = x;
        else
            s->first = x;
        s->last = x;
        s->n_waiting++;
        pthread_cond_signal(&s->arrived);
    }
    pthread_mutex_unlock(&s->lock);
    // A lost message is repeated by its sender.
    if (!has_room) release_sample(s, x);
}

// Waits for a sample until a time of the monotonic clock, then takes all that are there.
static received_sample *take_all(us_split *s, int64_t until_ns) {
    struct timespec t = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    pthread_mutex_lock(&s->lock);
    while (!s->first && until_ns > 0) {
        if (pthread_cond_timedwait(&s->arrived, &s->lock, &t) == ETIMEDOUT) break;
    }
    received_sample *all = s->first;
    s->first = s->last = NULL;
    s->n_waiting = 0;
    pthread_mutex_unlock(&s->lock);
    return all;
}

static void spin(const us_split *s, int64_t until_ns) {
    while (atomic_load_explicit(&s->n_waiting, memory_order_relaxed) == 0 && clock_ns() < until_ns)
        sched_yield();
}

static void receive(us_split *s, int64_t until_ns) {
    for (received_sample *x = take_all(s, until_ns), *next; x; x = next) {
        next = x->next;
        usi_split_receive(s->split, bytes_of(x), x->length, clock_ns());
        release_sample(s, x);
    }
}

static void on_send(void *context, const void *bytes, size_t length) {
    const us_split *s = context;
    // A message that cannot be sent now is repeated.
    (void)us_writer_write(s->writer, bytes, length, 0);
}

static void on_log(void *context, int32_t level, const char *text) {
    const us_split *s = context;
    us_world_log(s->world, level, text);
}

// ---------------------------------------------------------------- steps

// A process that resumes from what others have of it jumps in time: whoever keeps the pace learns of it
// before the next step.
static us_status poll_split(us_split *s, int64_t now, bool *out_is_ready, us_error *err) {
    const us_sim *sim = us_world_get_sim(s->world);
    int64_t tick = us_sim_get_tick(sim);
    us_status status = usi_split_poll(s->split, now, out_is_ready, err);
    if (us_sim_get_tick(sim) == tick) return status;
    usi_world_jumped(s->world);
    *out_is_ready = false;
    return status;
}

us_status us_split_wait(us_split *s, double seconds, bool *out_is_ready, us_error *err) {
    if (!s || !out_is_ready || !(seconds >= 0))
        return us_error_set(err, US_ERR_ARG, NULL, "pass a split and a place for the answer",
                            "us_split_wait: an argument is NULL, or the time negative");
    int64_t now = clock_ns(), end = now + (int64_t)(1e9 * fmin(seconds, 3600)), until = 0;
    us_status status = poll_split(s, now, out_is_ready, err);
    if (status || *out_is_ready) return status;
    // First what is there already.
    for (const int64_t spin_until = now + SPIN_NS;;) {
        receive(s, until);
        now = clock_ns();
        status = poll_split(s, now, out_is_ready, err);
        if (status || *out_is_ready || now >= end) return status;
        spin(s, spin_until < end ? spin_until : end);
        // Now and then it must send itself.
        until = end < now + 100000000 ? end : now + 100000000;
    }
}

static us_status before_step(void *context, bool *out_is_ready, us_error *err) {
    return us_split_wait(context, 0, out_is_ready, err);
}

static const us_command *step_command(void *context) {
    const us_split *s = context;
    return usi_split_command(s->split);
}

static us_status after_step(void *context, us_error *err) {
    const us_split *s = context;
    return usi_split_stepped(s->split, err);
}

static void on_poll(void *context) {
    us_split *s = context;
    receive(s, 0);
    usi_split_keep_alive(s->split, clock_ns());
}

// The group that `fault` names; -1: there is none.
static int32_t group_of_fault(const us_split *s, const usi_command *c) {
    const us_spec *spec = us_world_view_spec(s->world);
    for (int32_t g = 0; c->verb == USI_VERB_FAULT && g < us_spec_get_counts(spec).n_group; g++) {
        if (strcmp(us_spec_view_group(spec, g)->name, c->name) == 0) return g;
    }
    return -1;
}

static bool is_elsewhere(void *context, const usi_command *c) {
    const us_split *s = context;
    int32_t group = group_of_fault(s, c);
    return group >= 0 && !usi_split_owns(s->split, group);
}

// Faults act in the process that owns the robot, and the others get what follows with its state: not the
// faults of encoders, over which drives close their loops, nor breaks, which change the model.
static us_status check_fault(void *context, const usi_command *c, us_error *err) {
    if (is_elsewhere(context, c))
        return us_error_set(err, US_ERR_NAME, NULL, "send it on /understudy/command: understudy fault",
                            "\"%.100s\" belongs to another process of this world", c->name);
    if (c->part != USI_COMPONENT_ENCODER && c->part != USI_COMPONENT_JOINT) return US_OK;
    return us_error_set(
        err, US_ERR_ARG, NULL, "run the scene in one process",
        "in a world in several processes encoders and joints cannot fail: the others would not "
        "know");
}

// Commands that would change the world in one process alone are refused.
static us_status check_command(void *context, const usi_command *c, us_error *err) {
    if (c->verb == USI_VERB_FAULT) return check_fault(context, c, err);
    if (c->verb == USI_VERB_PAUSE || c->verb == USI_VERB_RESUME || c->verb == USI_VERB_STEP ||
        c->verb == USI_VERB_RATE)
        return US_OK;
    return us_error_set(
        err, US_ERR_ARG, NULL, "end all its processes, change the scene, and start again",
        "a world in several processes cannot be changed while it runs: the others would not know");
}

// ---------------------------------------------------------------- life

static us_status join_topic(us_split *s, us_bus *bus, const char *name, us_error *err) {
    char topic[160];
    snprintf(topic, sizeof topic, "/understudy/share/%s", name);
    us_topic_def def = {
        topic, usi_type_world_share, {.is_reliable = true, .is_transient_local = true, .depth = 8}, -1};
    us_status status = us_bus_add_writer(bus, &def, &s->writer, err);
    return status ? status : us_bus_add_reader(bus, &def, on_sample, s, &s->reader, err);
}

static us_status add_hooks(us_split *s, us_error *err) {
    const usi_world_hooks hooks = {.name = HOOKS,
                                   .context = s,
                                   .is_elsewhere = is_elsewhere,
                                   .check = check_command,
                                   .poll = on_poll,
                                   .before_step = before_step,
                                   .step_command = step_command,
                                   .after_step = after_step,
                                   .is_partial = true};
    us_status status = usi_world_add_hooks(s->world, &hooks);
    return status ? us_error_set(err, status, NULL, NULL, "the world has too many hooks") : US_OK;
}

static void release(us_split *s) {
    us_allocator a = s->allocator;
    if (s->reader) us_reader_remove(s->reader);
    if (s->writer) us_writer_remove(s->writer);
    for (received_sample *x = take_all(s, 0), *next; x; x = next) {
        next = x->next;
        release_sample(s, x);
    }
    usi_split_destroy(s->split);
    pthread_cond_destroy(&s->arrived);
    pthread_mutex_destroy(&s->lock);
    usi_release(&a, s, sizeof *s, _Alignof(us_split));
}

static bool init_lock(us_split *s) {
    if (pthread_mutex_init(&s->lock, NULL) != 0) return false;
    if (usi_cond_init(&s->arrived)) return true;
    pthread_mutex_destroy(&s->lock);
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

// Robots that others own are off the network, and the first process alone publishes /clock.
static void separate_robots(const us_split *s) {
    us_proxy *proxy = us_world_get_proxy(s->world);
    const us_spec *spec = us_world_view_spec(s->world);
    for (int32_t i = 0; i < us_proxy_n_robot(proxy); i++) {
        const char *name = us_proxy_robot_name(proxy, i);
        for (int32_t g = 0; g < us_spec_get_counts(spec).n_group; g++) {
            if (strcmp(us_spec_view_group(spec, g)->name, name) == 0 && !usi_split_owns(s->split, g))
                usi_proxy_set_ghost(proxy, i);
        }
    }
    // From here on their states are not carried over from tick to tick: they are the same in both once all is
    // copied.
    usi_sim_plugin(us_world_get_sim(s->world), 0);
    if (!usi_split_is_first(s->split)) usi_proxy_mute_clock(proxy);
}

// A joint that breaks makes another model.
static us_status check_scripts(const us_proxy *proxy, us_error *err) {
    for (int32_t i = 0; i < us_proxy_n_robot(proxy); i++) {
        const us_fault_def *fault = NULL;
        for (int32_t k = 0; (fault = usi_proxy_script(proxy, i, k)); k++) {
            if (strncmp(fault->what, "joint:", strlen("joint:")) == 0)
                return us_error_set(err, US_ERR_ARG, NULL, "take out this <fault>, or run one process",
                                    "a world in several processes cannot be changed while it runs: \"%.60s\" "
                                    "of \"%.60s\"",
                                    fault->what, us_proxy_robot_name(proxy, i));
        }
    }
    return US_OK;
}

static us_status check(us_world *world, const us_bus *bus, const us_split_def *def, us_error *err) {
    if (!world || !bus || !def || !def->own || !def->share || usi_world_has_hooks(world, HOOKS) ||
        usi_world_is_connected(world) || us_world_get_recording(world).path)
        return us_error_set(err, US_ERR_ARG, NULL,
                            "split a world once, before it is connected or recorded, on a bus that is open",
                            "us_split_create: wrong argument, or too late");
    if (!is_name(def->share))
        return us_error_set(err, US_ERR_NAME, NULL, "write letters, digits and _, for example rovers",
                            "share: invalid name \"%.100s\"", def->share);
    if (!(def->timeout >= 0 && isfinite(def->exchange)))
        return us_error_set(err, US_ERR_VALUE, NULL, "write seconds, 0: for ever",
                            "share: invalid timeout %g s", def->timeout);
    return check_scripts(us_world_get_proxy(world), err);
}

static us_status start(us_split *s, us_bus *bus, const us_split_def *def, us_error *err) {
    char machine[48] = "";
    if (gethostname(machine, sizeof machine - 1) != 0) machine[0] = 0;
    snprintf(s->label, sizeof s->label, "%s:%ld", machine, (long)getpid());
    usi_split_def d = {.allocator = s->allocator,
                       .own = def->own,
                       .label = s->label,
                       .id = make_id(s->label),
                       .exchange = def->exchange,
                       .n_interval = INTERVALS,
                       .timeout = def->timeout,
                       .send = on_send,
                       .log = on_log,
                       .context = s};
    us_status status =
        usi_split_create(us_world_view_spec(s->world), us_world_get_sim(s->world), &d, &s->split, err);
    if (!status) status = join_topic(s, bus, def->share, err);
    return status ? status : add_hooks(s, err);
}

us_status us_split_create(us_world *world, us_bus *bus, const us_split_def *def, us_split **out_split,
                          us_error *err) {
    if (!out_split)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a place for the split",
                            "us_split_create: an argument is NULL");
    us_status status = check(world, bus, def, err);
    if (status) return status;
    us_allocator a = *usi_world_allocator(world);
    us_split *s = usi_alloc(&a, sizeof *s, _Alignof(us_split));
    if (s) memset(s, 0, sizeof *s);
    if (!s || !init_lock(s)) {
        usi_release(&a, s, sizeof *s, _Alignof(us_split));
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the shared world");
    }
    s->allocator = a;
    s->world = world;
    status = start(s, bus, def, err);
    if (status) {
        release(s);
        return status;
    }
    separate_robots(s);
    *out_split = s;
    return US_OK;
}

// The others may need the last message before they can end themselves.
void us_split_destroy(us_split *s) {
    if (!s) return;
    int64_t end = clock_ns() + (int64_t)(1e9 * LINGER);
    while (usi_split_is_needed(s->split) && clock_ns() < end) {
        usi_split_keep_alive(s->split, clock_ns());
        receive(s, clock_ns() + 20000000);
    }
    usi_split_end(s->split);
    usi_world_remove_hooks(s->world, s);
    release(s);
}

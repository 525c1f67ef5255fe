// A gate on a bus: requests come in on the vendor's thread, answers and events leave on the gate's own.
#include "understudy/gate.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/memory.h"
#include "base/monotonic_cond.h"
#include "gate/gate_machine.h"
#include "wire/cdr.h"
#include "wire/messages.h"

// Answers that wait for the gate's thread. More than a switch sends in a second: a flood loses its own.
enum { MAX_ANSWER = 64 };

// Silence after which refused commands are logged again, ns.
static const int64_t burst = INT64_C(1000000000);

// One robot.
typedef struct post {
    char robot[US_GATE_NAME];
    usi_gate_machine machine;
    us_gate_access seen_access;  // what the events have told
    uint64_t seen_term;
    int64_t seen_end;
    int64_t refused;       // ns: the last refusal; 0: none yet
    bool is_refusal_due;   // a burst has begun that no event has told
    usi_gate_id stranger;  // whose
} post;

struct us_gate {
    us_allocator allocator;
    us_gate_event_function *on_event;
    void *context;
    us_reader *reader;
    us_writer *writer;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;  // guards what follows
    pthread_cond_t wake;
    bool is_closing;
    int32_t n_answer;
    usi_lease_answer answers[MAX_ANSWER];
    int32_t n_post;
    post *posts;
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t draw(void) {
    uint64_t x = 0;
    while (x == 0) {
        if (getrandom(&x, sizeof x, 0) != (ssize_t)sizeof x) x = 0;
    }
    return x;
}

// ---- requests and commands ----

static void on_request(void *context, const us_sample *sample) {
    us_gate *g = context;
    size_t length = 0;
    const char *text = usi_cdr_view_text(sample->bytes, sample->length, &length);
    usi_lease_request request;
    if (!text || !usi_lease_request_read(text, length, &request)) return;
    usi_gate_id asker = usi_gate_id_of(sample->writer);
    uint64_t fresh = draw();
    pthread_mutex_lock(&g->lock);
    for (int32_t i = 0; i < g->n_post && g->n_answer < MAX_ANSWER; i++) {
        post *p = &g->posts[i];
        if (strcmp(p->robot, request.robot) != 0) continue;
        // The clock is read with the lock held: times that the machine sees do not go back.
        if (usi_gate_machine_take(&p->machine, &asker, &request, now_ns(), fresh, &g->answers[g->n_answer]))
            g->n_answer++;
        pthread_cond_signal(&g->wake);
    }
    pthread_mutex_unlock(&g->lock);
}

bool us_gate_admit(us_gate *g, int32_t robot, const us_sample *sample) {
    if (!g) return true;
    if (!sample || robot < 0 || robot >= g->n_post) return false;
    usi_gate_id writer = usi_gate_id_of(sample->writer);
    pthread_mutex_lock(&g->lock);
    post *p = &g->posts[robot];
    int64_t now = now_ns();
    bool is_admitted = usi_gate_machine_admit(&p->machine, &writer, now);
    if (!is_admitted) {
        if (p->refused == 0 || now - p->refused > burst) {
            p->is_refusal_due = true;
            p->stranger = writer;
            pthread_cond_signal(&g->wake);
        }
        p->refused = now;
    }
    pthread_mutex_unlock(&g->lock);
    return is_admitted;
}

us_gate_state us_gate_get_state(us_gate *g, int32_t robot) {
    us_gate_state s = {0};
    if (!g || robot < 0 || robot >= g->n_post) return s;
    pthread_mutex_lock(&g->lock);
    usi_gate_machine *m = &g->posts[robot].machine;
    int64_t now = now_ns();
    usi_gate_machine_tick(m, now);
    s = (us_gate_state){.access = m->access,
                        .role = m->role,
                        .term = m->term,
                        .n_admitted = m->n_admitted,
                        .n_refused = m->n_refused,
                        .n_end = m->n_end};
    if (m->access == US_GATE_HELD) {
        memcpy(s.holder, m->holder.v, sizeof s.holder);
        s.left = m->expiry - now;
    }
    pthread_mutex_unlock(&g->lock);
    return s;
}

// ---- the thread ----

// What there is to tell of a robot since the last time.
typedef struct news {
    bool is_ended, is_leased, is_released, is_lapsed, is_refused;
    usi_gate_id holder, stranger;
    uint64_t term;
    us_gate_access access;
    us_gate_role role;
} news;

// With the lock held.
static news collect(post *p, int64_t now) {
    usi_gate_machine *m = &p->machine;
    usi_gate_machine_tick(m, now);
    bool is_new = m->term != p->seen_term;
    news n = {.is_ended = m->n_end != p->seen_end,
              .is_leased = is_new,
              .is_released = m->access == US_GATE_OPEN && (is_new || p->seen_access != US_GATE_OPEN),
              .is_lapsed = m->access == US_GATE_CLOSED && (is_new || p->seen_access != US_GATE_CLOSED),
              .is_refused = p->is_refusal_due,
              .holder = m->holder,
              .stranger = p->stranger,
              .term = m->term,
              .access = m->access,
              .role = m->role};
    p->seen_term = m->term;
    p->seen_end = m->n_end;
    p->seen_access = m->access;
    p->is_refusal_due = false;
    return n;
}

// Without the lock.
static void tell(const us_gate *g, int32_t i, const news *n) {
    if (!g->on_event) return;
    const char *robot = g->posts[i].robot;
    char holder[25], stranger[25], text[400];
    usi_gate_id_write(&n->holder, holder);
    usi_gate_id_write(&n->stranger, stranger);
    if (n->is_leased) {
        snprintf(text, sizeof text, "%s is leased to the participant %s, term %llu", robot, holder,
                 (unsigned long long)n->term);
        g->on_event(g->context, i, US_GATE_LEASED, text);
    }
    if (n->is_ended) g->on_event(g->context, i, US_GATE_ENDED, "");
    if (n->is_released) {
        snprintf(text, sizeof text, "%s is released and takes commands of anybody", robot);
        g->on_event(g->context, i, US_GATE_RELEASED, text);
    }
    if (n->is_lapsed) {
        snprintf(text, sizeof text,
                 "the lease of %s ended without a release: its switch was stopped, cut off or killed; no "
                 "commands are "
                 "taken until a switch leases it (understudy switch %s) or this program is started again",
                 robot, robot);
        g->on_event(g->context, i, US_GATE_LAPSED, text);
    }
    if (!n->is_refused) return;
    const char *why = n->access == US_GATE_CLOSED ? "the last lease ended without a release: start a switch"
                      : n->access == US_GATE_OPEN ? "a switch commands only with a lease"
                      : n->role == US_GATE_ACTIVE || n->role == US_GATE_BESIDE
                          ? "another participant holds the lease: command through its switch"
                          : "the holder of the lease keeps this robot passive: command through its switch";
    snprintf(text, sizeof text, "commands to %s from the participant %s are refused: %s", robot, stranger,
             why);
    g->on_event(g->context, i, US_GATE_REFUSED, text);
}

static void send_answer(const us_gate *g, const usi_lease_answer *answer) {
    char line[USI_LEASE_LINE];
    uint8_t bytes[USI_LEASE_LINE + 32];
    size_t length = 0;
    usi_lease_answer_write(answer, line);
    us_msg_string message = {.data = line};
    if (!us_message_encode(usi_type_string, &message, bytes, sizeof bytes, &length))
        (void)us_writer_write(g->writer, bytes, length, 0);  // one that is lost is asked for again
}

// With the lock held: waits until there is something to do.
static void wait_for_work(us_gate *g) {
    int64_t until = INT64_MAX;
    bool is_due = g->is_closing || g->n_answer > 0;
    for (int32_t i = 0; i < g->n_post; i++) {
        const post *p = &g->posts[i];
        is_due = is_due || p->is_refusal_due || p->machine.term != p->seen_term ||
                 p->machine.n_end != p->seen_end || p->machine.access != p->seen_access;
        if (p->machine.access == US_GATE_HELD && p->machine.expiry < until) until = p->machine.expiry;
    }
    if (is_due) return;
    if (until == INT64_MAX) {
        pthread_cond_wait(&g->wake, &g->lock);
    } else {
        struct timespec t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
        pthread_cond_timedwait(&g->wake, &g->lock, &t);
    }
}

static void *serve(void *context) {
    us_gate *g = context;
    usi_lease_answer answers[MAX_ANSWER];
    for (;;) {
        pthread_mutex_lock(&g->lock);
        wait_for_work(g);
        bool is_closing = g->is_closing;
        int32_t n_answer = g->n_answer;
        memcpy(answers, g->answers, (size_t)n_answer * sizeof answers[0]);
        g->n_answer = 0;
        pthread_mutex_unlock(&g->lock);
        if (is_closing) return NULL;
        for (int32_t i = 0; i < n_answer; i++)
            send_answer(g, &answers[i]);
        for (int32_t i = 0; i < g->n_post; i++) {
            pthread_mutex_lock(&g->lock);
            news n = collect(&g->posts[i], now_ns());
            pthread_mutex_unlock(&g->lock);
            tell(g, i, &n);
        }
    }
}

// ---- open and close ----

us_gate_def us_gate_def_default(void) { return (us_gate_def){.allocator = us_allocator_default()}; }

static us_status check_def(const us_gate_def *def, us_error *err) {
    if (!def->allocator.alloc || !def->allocator.release)
        return us_error_set(err, US_ERR_ARG, NULL, "Begin with us_gate_def_default().",
                            "a gate needs an allocator");
    if (!def->bus || def->n_robot < 1 || !def->robots)
        return us_error_set(err, US_ERR_ARG, NULL, "Give the bus and the names of its robots.",
                            "a gate needs a bus and at least one robot");
    for (int32_t i = 0; i < def->n_robot; i++) {
        const char *name = def->robots[i];
        if (!name || !name[0] || strlen(name) >= US_GATE_NAME || strchr(name, ' '))
            return us_error_set(err, US_ERR_VALUE, NULL,
                                "Give the robot's namespace without slashes, for example k10.",
                                "invalid robot name \"%.60s\"", name ? name : "");
    }
    return US_OK;
}

static us_status join(us_gate *g, us_bus *bus, us_error *err) {
    us_topic_def topic = {.topic = "/understudy/lease", .type = usi_type_string, .node = -1};
    topic.qos = (us_qos){.is_reliable = true, .depth = 16};
    us_status status = us_bus_add_writer(bus, &topic, &g->writer, err);
    topic.topic = "/understudy/lease_request";
    if (!status) status = us_bus_add_reader(bus, &topic, on_request, g, &g->reader, err);
    if (!status) g->has_thread = pthread_create(&g->thread, NULL, serve, g) == 0;
    if (!status && !g->has_thread)
        status = us_error_set(err, US_ERR_MEMORY, NULL, "End other programs.", "no thread for a gate");
    return status;
}

us_status us_gate_open(const us_gate_def *def, us_gate **out_gate, us_error *err) {
    if (!def || !out_gate)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "us_gate_open needs a definition and a place for the gate");
    *out_gate = NULL;
    us_status status = check_def(def, err);
    if (status) return status;
    us_gate *g = usi_alloc(&def->allocator, sizeof *g, _Alignof(us_gate));
    post *posts = usi_alloc(&def->allocator, (size_t)def->n_robot * sizeof *posts, _Alignof(post));
    if (!g || !posts) {
        usi_release(&def->allocator, g, sizeof *g, _Alignof(us_gate));
        usi_release(&def->allocator, posts, (size_t)def->n_robot * sizeof *posts, _Alignof(post));
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a gate");
    }
    *g = (us_gate){.allocator = def->allocator,
                   .on_event = def->on_event,
                   .context = def->context,
                   .n_post = def->n_robot,
                   .posts = posts};
    for (int32_t i = 0; i < g->n_post; i++) {
        posts[i] = (post){0};
        snprintf(posts[i].robot, sizeof posts[i].robot, "%s", def->robots[i]);
        usi_gate_machine_init(&posts[i].machine, draw());
    }
    pthread_mutex_init(&g->lock, NULL);
    usi_cond_init(&g->wake);
    status = join(g, def->bus, err);
    if (status) {
        us_gate_close(g);
        return status;
    }
    *out_gate = g;
    return US_OK;
}

void us_gate_close(us_gate *g) {
    if (!g) return;
    if (g->reader) us_reader_remove(g->reader);
    if (g->has_thread) {
        pthread_mutex_lock(&g->lock);
        g->is_closing = true;
        pthread_cond_signal(&g->wake);
        pthread_mutex_unlock(&g->lock);
        pthread_join(g->thread, NULL);
    }
    if (g->writer) us_writer_remove(g->writer);
    pthread_cond_destroy(&g->wake);
    pthread_mutex_destroy(&g->lock);
    us_allocator allocator = g->allocator;
    usi_release(&allocator, g->posts, (size_t)g->n_post * sizeof *g->posts, _Alignof(post));
    usi_release(&allocator, g, sizeof *g, _Alignof(us_gate));
}

// World commands on the network: /understudy/command in, /understudy/status out.
//
// The status is one line of JSON, kept for those who come late. It carries the last few answers, so that
// whoever asked finds theirs even when others ask at the same moment. A thread of its own sends it: no
// listener holds up time.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/line.h"
#include "proxy/outbox.h"
#include "proxy/tap.h"
#include "wire/messages.h"
#include "world/world__inner.h"

// Eight answers of at most 1.4 KiB, every byte of which may need six in JSON.
enum { MAX_STATUS = 96 * 1024, PAUSED_CLOCK_NS = 100000000 };

struct usi_topics {
    us_reader *reader;
    us_writer *writer;
    usi_outbox *outbox;
    int64_t sent_ns,
        clock_ns;  // of the wall's clock: the last status, the last /clock of a world that stands
    _Atomic int64_t n_lost;
    int64_t n_lost_logged;
    char text[MAX_STATUS];
    uint8_t bytes[MAX_STATUS + 64];
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// ---------------------------------------------------------------- in

static void on_command(void *context, const us_sample *sample) {
    us_world *w = context;
    char source[2 * sizeof sample->writer + 1];
    _Alignas(16) char memory[USI_COMMAND_MAX + 64];
    const void *message = NULL;
    for (size_t i = 0; i < sizeof sample->writer; i++)
        snprintf(source + 2 * i, 3, "%02x", sample->writer[i]);
    if (us_message_decode(usi_type_string, sample->bytes, sample->length, memory, sizeof memory, &message,
                          NULL) ||
        us_world_post(w, source, ((const us_msg_string *)message)->data, NULL, NULL, 0))
        atomic_fetch_add_explicit(&w->topics->n_lost, 1, memory_order_relaxed);
}

// ---------------------------------------------------------------- out

static void put_answer(usi_line *out, const usi_answer *a) {
    usi_line_put(out, "{");
    usi_line_put_text(out, "source", a->source);
    usi_line_put(out, ",");
    usi_line_put_text(out, "text", a->text);
    usi_line_put(out, ",\"ok\":%s,", a->is_ok ? "true" : "false");
    usi_line_put_text(out, "message", a->message);
    usi_line_put(out, "}");
}

static void write_status(us_world *w, usi_line *out) {
    double time = us_sim_get_time(w->live.sim);
    usi_line_put(out,
                 "{\"time\":%.9g,\"tick\":%" PRId64 ",\"paused\":%s,\"rate\":%.9g,\"epoch\":%" PRIu32
                 ",\"last\":",
                 isfinite(time) ? time : 0, us_sim_get_tick(w->live.sim),
                 w->request.is_paused ? "true" : "false", w->request.rate, us_world_get_revision(w));
    if (w->n_answer > 0) {
        put_answer(out, &w->answer[(w->n_answer - 1) % USI_WORLD_ANSWERS]);
    } else {
        usi_line_put(out, "null");
    }
    usi_line_put(out, ",\"answers\":[");
    for (int32_t i = w->n_answer > USI_WORLD_ANSWERS ? w->n_answer - USI_WORLD_ANSWERS : 0, first = i;
         i < w->n_answer; i++) {
        if (i > first) usi_line_put(out, ",");
        put_answer(out, &w->answer[i % USI_WORLD_ANSWERS]);
    }
    usi_line_put(out, "]}");
}

void usi_topics_publish(us_world *w) {
    usi_topics *t = w->topics;
    if (!t) return;
    usi_line out = {t->text, 0, sizeof t->text};
    write_status(w, &out);
    us_msg_string m = {t->text};
    size_t length = 0;
    if (us_message_encode(usi_type_string, &m, t->bytes, sizeof t->bytes, &length)) return;
    usi_outbox_put(t->outbox, t->writer, t->bytes, length, 0, 0);
    usi_outbox_ring(t->outbox);
    t->sent_ns = now_ns();
}

bool usi_topics_send(us_world *w, us_writer *writer, const void *bytes, size_t length) {
    bool is_taken = usi_outbox_put(w->topics->outbox, writer, bytes, length, 0, 0);
    usi_outbox_ring(w->topics->outbox);
    return is_taken;
}

void usi_topics_poll(us_world *w) {
    usi_topics *t = w->topics;
    if (!t) return;
    const int64_t now = now_ns();
    if (w->request.is_paused && now - t->clock_ns >= PAUSED_CLOCK_NS) {
        t->clock_ns = now;
        usi_proxy_repeat_clock(w->live.proxy, w->live.sim);
    }
    if (now - t->sent_ns < 1000000000) return;
    int64_t n_lost = atomic_load_explicit(&t->n_lost, memory_order_relaxed);
    if (n_lost != t->n_lost_logged) {
        char text[160];
        snprintf(text, sizeof text,
                 "%" PRId64
                 " world commands from the network were lost: too many at once, too long, or no text",
                 n_lost - t->n_lost_logged);
        us_world_log(w, 1, text);
        t->n_lost_logged = n_lost;
    }
    usi_topics_publish(w);
}

// ---------------------------------------------------------------- life

// A robot whose keys do not allow these services runs without them.
static us_status offer_simulation(us_world *w, us_bus *bus, int32_t node, us_error *err) {
    us_error why = {0};
    const us_status status = usi_simulation_create(w, bus, node, &why);
    if (status != US_ERR_IO) {
        if (status && err) *err = why;
        return status;
    }
    usi_simulation_destroy(w);
    char text[USI_WORLD_REPLY];
    snprintf(text, sizeof text, "the services of simulation_interfaces are not offered: %.300s; %.300s",
             why.message, why.remedy);
    us_world_log(w, 1, text);
    return US_OK;
}

us_status usi_topics_create(us_world *w, us_bus *bus, us_error *err) {
    usi_topics *t = usi_alloc(&w->allocator, sizeof *t, _Alignof(usi_topics));
    if (!t)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the topics of the world");
    memset(t, 0, sizeof *t);
    atomic_init(&t->n_lost, 0);
    w->topics = t;
    us_topic_def status_topic = {"/understudy/status",
                                 usi_type_string,
                                 {.is_reliable = true, .is_transient_local = true, .depth = 1},
                                 -1};
    us_topic_def command_topic = {
        "/understudy/command", usi_type_string, {.is_reliable = true, .depth = USI_WORLD_QUEUE}, -1};
    us_status status = usi_outbox_create(&w->allocator, &t->outbox);
    if (status)
        return us_error_set(err, status, NULL, "free memory, or end other programs",
                            "the sending thread cannot be made");
    status = us_bus_add_node(bus, "/understudy", "world", &status_topic.node, err);
    command_topic.node = status_topic.node;
    // The publisher first: whoever finds the subscriber is answered.
    if (!status) status = us_bus_add_writer(bus, &status_topic, &t->writer, err);
    if (!status) usi_topics_publish(w);
    if (!status) status = us_bus_add_reader(bus, &command_topic, on_command, w, &t->reader, err);
    if (!status) status = usi_authorities_create(w, bus, status_topic.node, err);
    return status ? status : offer_simulation(w, bus, status_topic.node, err);
}

void usi_topics_destroy(us_world *w) {
    usi_topics *t = w->topics;
    if (!t) return;
    usi_simulation_destroy(w);
    if (t->reader) us_reader_remove(t->reader);
    if (t->outbox) usi_outbox_destroy(t->outbox);
    usi_authorities_destroy(w);
    if (t->writer) us_writer_remove(t->writer);
    w->topics = NULL;
    usi_release(&w->allocator, t, sizeof *t, _Alignof(usi_topics));
}

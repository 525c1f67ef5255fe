// Who plays which robot: what switches (docs/switch.md) publish on /understudy/authority is kept for the
// page, and `authority ROBOT MODE` asks them.
//
// The simulated world takes no part in it: nothing here reaches the state, and a recording that is run again
// passes the command over.
#include <stdio.h>
#include <string.h>

#include "proxy/tap.h"
#include "wire/messages.h"
#include "wire/world_status.h"
#include "world/world__inner.h"

struct usi_authorities {
    us_reader *reader;
    us_writer *writer;
    pthread_mutex_t lock;  // guards what follows; held for a few copies of short texts
    int32_t n;
    char robot[USI_AUTHORITY_ROBOTS][USI_NAME_MAX + 1];
    char line[USI_AUTHORITY_ROBOTS][USI_AUTHORITY_LINE];
};

static void on_line(void *context, const us_sample *sample) {
    usi_authorities *a = context;
    _Alignas(16) char memory[2 * USI_AUTHORITY_LINE];
    char line[USI_AUTHORITY_LINE];
    usi_authority_line read;
    const void *message = NULL;
    if (us_message_decode(usi_type_string, sample->bytes, sample->length, memory, sizeof memory, &message,
                          NULL))
        return;
    const us_msg_string *string = message;
    if (strlen(string->data) >= sizeof line) return;
    usi_text_clean(string->data, line, sizeof line);
    if (!usi_authority_read(line, strlen(line), &read)) return;
    pthread_mutex_lock(&a->lock);
    int32_t i = 0;
    while (i < a->n && strcmp(a->robot[i], read.robot) != 0)
        i++;
    if (i == a->n && a->n < USI_AUTHORITY_ROBOTS) a->n++;
    if (i < USI_AUTHORITY_ROBOTS) {
        memcpy(a->robot[i], read.robot, sizeof a->robot[i]);
        memcpy(a->line[i], line, sizeof line);
    }
    pthread_mutex_unlock(&a->lock);
}

us_status usi_authorities_create(us_world *w, us_bus *bus, int32_t node, us_error *err) {
    usi_authorities *a = usi_alloc(&w->allocator, sizeof *a, _Alignof(usi_authorities));
    if (!a)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the topics of the world");
    memset(a, 0, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    w->authorities = a;
    us_topic_def notify = {"/understudy/authority",
                           usi_type_string,
                           {.is_reliable = true, .is_transient_local = true, .depth = 10},
                           node};
    us_topic_def asked = {
        "/understudy/authority/request", usi_type_string, {.is_reliable = true, .depth = 10}, node};
    us_status status = us_bus_add_writer(bus, &asked, &a->writer, err);
    return status ? status : us_bus_add_reader(bus, &notify, on_line, a, &a->reader, err);
}

void usi_authorities_destroy(us_world *w) {
    usi_authorities *a = w->authorities;
    if (!a) return;
    if (a->reader) us_reader_remove(a->reader);
    if (a->writer) us_writer_remove(a->writer);
    pthread_mutex_destroy(&a->lock);
    w->authorities = NULL;
    usi_release(&w->allocator, a, sizeof *a, _Alignof(usi_authorities));
}

int32_t usi_authorities_copy(const us_world *w, char out[USI_AUTHORITY_ROBOTS][USI_AUTHORITY_LINE]) {
    usi_authorities *a = w->authorities;
    // A switch that is gone is not in charge of anything.
    if (!a || us_writer_n_match(a->writer) == 0) return 0;
    pthread_mutex_lock(&a->lock);
    int32_t n = a->n;
    memcpy(out, a->line, (size_t)n * sizeof a->line[0]);
    pthread_mutex_unlock(&a->lock);
    return n;
}

us_status usi_authorities_ask(us_world *w, const char *robot, const char *mode, us_error *err) {
    usi_authorities *a = w->authorities;
    if (!a)
        return us_error_set(err, US_ERR_ARG, NULL, "run with the network",
                            "authority: this run is on no network");
    bool is_known = false;
    pthread_mutex_lock(&a->lock);
    for (int32_t i = 0; i < a->n; i++)
        is_known = is_known || strcmp(a->robot[i], robot) == 0;
    pthread_mutex_unlock(&a->lock);
    if (!is_known || us_writer_n_match(a->writer) == 0)
        return us_error_set(err, US_ERR_NAME, NULL, "start one: understudy switch ROBOT",
                            "authority: no switch of a robot \"%.60s\" is heard", robot);
    char text[2 * USI_NAME_MAX + 2];
    uint8_t bytes[sizeof text + 16];
    size_t length = 0;
    snprintf(text, sizeof text, "%.*s %.*s", USI_NAME_MAX, robot, USI_NAME_MAX, mode);
    us_msg_string message = {text};
    us_status status = us_message_encode(usi_type_string, &message, bytes, sizeof bytes, &length);
    if (!status && !usi_topics_send(w, a->writer, bytes, length)) status = US_ERR_LIMIT;
    return status ? us_error_set(err, status, NULL, "ask again", "authority: the request could not be sent")
                  : US_OK;
}

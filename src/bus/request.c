#include "bus/request.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

enum {
    N_DIALECT = 2,
    MAX_CLIENT = 256,
    HEADER = 4,
    CARRIED = HEADER + USI_REQUEST_ID,
    MAX_PENDING = 1000,
    MAX_LOOKUP = 16,       // clients that are looked for at a time
    PATIENCE = 100000000,  // ns: for the reader of a client that asks for the first time
    MAX_MISSING = 16,      // readers that never came; then none is waited for
};

// A client that asked. In the dialect of Fast DDS it has an id of 16 bytes, above here a number of 8.
typedef struct requester {
    uint64_t number;
    uint64_t age;
    us_dialect dialect;
    bool has_reader;                // its reader of replies is known to be there
    uint8_t id[USI_ID_LENGTH];      // in the dialect of Fast DDS
    uint8_t writer[USI_ID_LENGTH];  // of its requests
} requester;

// A reply to a client whose reader is not known yet.
typedef struct pending_reply {
    struct pending_reply *next;
    uint64_t client;
    int64_t until;  // ns, CLOCK_MONOTONIC: then it is sent in any case
    size_t length;
    _Alignas(8) uint8_t bytes[];
} pending_reply;

typedef struct inlet {
    us_service *service;
    us_dialect dialect;
} inlet;

struct us_service {
    us_bus *bus;
    us_service *next;
    us_writer *_Atomic writers[N_DIALECT];  // that of the other vendor is on the twin, made when it is wanted
    us_reader *_Atomic readers[N_DIALECT];
    inlet inlets[N_DIALECT];
    us_writer face;  // stands for both writers
    const us_message_type *request, *response;
    int32_t node;
    char request_topic[USI_NAME_LENGTH], reply_topic[USI_NAME_LENGTH];
    uint64_t topic_hash;
    bool is_wanted;  // somebody asks in the other dialect. Of the bus's wait_lock
    bool is_deaf;    // of the bus's attend_lock, as the handler
    us_sample_function *on_request;
    void *context;
    us_request_function *handler;
    void *handler_context;

    pthread_mutex_t lock;  // of what follows
    uint64_t n_request;
    int32_t n_missing;  // clients that were waited for, and had no reader
    int32_t n_pending;
    pending_reply *pending;  // in the order of their sending
    int32_t n_known;
    requester known[MAX_CLIENT];
};

// ---- ids ----

static uint64_t read_u64(const uint8_t *at, bool is_little) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | at[is_little ? 7 - i : i];
    return value;
}

static void write_u64(uint8_t *to, uint64_t value, bool is_little) {
    for (int i = 0; i < 8; i++)
        to[is_little ? i : 7 - i] = (uint8_t)(value >> 8 * i);
}

us_request_id usi_request_id_get(const void *carried) {
    const uint8_t *b = carried;
    const bool is_little = b[1] & 1;
    return (us_request_id){read_u64(b + HEADER, is_little), (int64_t)read_u64(b + HEADER + 8, is_little)};
}

void usi_request_id_put(void *carried, us_request_id id) {
    uint8_t *b = carried;
    const bool is_little = b[1] & 1;
    write_u64(b + HEADER, id.client, is_little);
    write_u64(b + HEADER + 8, (uint64_t)id.number, is_little);
}

// Remembers a client. The one that was silent for longest makes room.
static void note_client(us_service *s, uint64_t number, us_dialect dialect, const uint8_t id[USI_ID_LENGTH],
                        const uint8_t writer[USI_ID_LENGTH]) {
    pthread_mutex_lock(&s->lock);
    requester *place = NULL;
    for (int32_t i = 0; i < s->n_known && !place; i++) {
        if (s->known[i].number == number && s->known[i].dialect == dialect) place = &s->known[i];
    }
    if (!place) {
        place = &s->known[0];
        for (int32_t i = 1; i < s->n_known; i++) {
            if (s->known[i].age < place->age) place = &s->known[i];
        }
        if (s->n_known < MAX_CLIENT) place = &s->known[s->n_known++];
        *place = (requester){.number = number, .dialect = dialect};
        memcpy(place->id, id, USI_ID_LENGTH);
        memcpy(place->writer, writer, USI_ID_LENGTH);
    }
    place->age = ++s->n_request;
    pthread_mutex_unlock(&s->lock);
}

// The client of a number; NULL: it was forgotten. The service is locked.
static requester *find_client(us_service *s, uint64_t number) {
    for (int32_t i = 0; i < s->n_known; i++) {
        if (s->known[i].number == number) return &s->known[i];
    }
    return NULL;
}

static bool is_zero(const uint8_t id[USI_ID_LENGTH]) {
    static const uint8_t zero[USI_ID_LENGTH];
    return memcmp(id, zero, USI_ID_LENGTH) == 0;
}

// A program on Fast DDS may name the reader of its replies as the one who asks.
static us_request_id id_of_fastdds(us_service *s, const us_sample *sample) {
    const uint8_t *who = is_zero(sample->related_writer) ? sample->writer : sample->related_writer;
    const uint64_t number = us_hash_bytes(1, who, USI_ID_LENGTH);
    note_client(s, number, US_DIALECT_FASTDDS, who, sample->writer);
    return (us_request_id){number, sample->sequence};
}

// ---- services ----

static void on_carried(void *context, const us_sample *sample) {
    const inlet *in = context;
    us_service *s = in->service;
    if (in->dialect == US_DIALECT_CYCLONE) {
        if (sample->length < CARRIED) return;
        note_client(s, usi_request_id_get(sample->bytes).client, US_DIALECT_CYCLONE, sample->writer,
                    sample->writer);
        s->on_request(s->context, sample);
        return;
    }
    if (sample->length < HEADER) return;
    const size_t length = sample->length + USI_REQUEST_ID;
    uint8_t *bytes = usi_alloc(&s->bus->allocator, length, 8);
    if (!bytes) return;  // as if it had found a full history
    memcpy(bytes, sample->bytes, HEADER);
    memcpy(bytes + CARRIED, (const uint8_t *)sample->bytes + HEADER, sample->length - HEADER);
    usi_request_id_put(bytes, id_of_fastdds(s, sample));
    us_sample carried = *sample;
    carried.bytes = bytes;
    carried.length = length;
    s->on_request(s->context, &carried);
    usi_release(&s->bus->allocator, bytes, length, 8);
}

us_status usi_service_topics(const char *name, char request[USI_NAME_LENGTH], char reply[USI_NAME_LENGTH],
                             us_error *err) {
    char topic[USI_NAME_LENGTH];
    us_status status = usi_topic_to_dds(name, topic, err);
    if (status) return status;
    if (name[0] != '/' || strlen(name) + 12 > USI_NAME_LENGTH)
        return us_error_set(err, US_ERR_NAME, NULL,
                            "Write a short absolute name, for example /k10/locomotor.",
                            "invalid name of a service \"%.200s\"", name);
    snprintf(request, USI_NAME_LENGTH, "rq%.240sRequest", name);
    snprintf(reply, USI_NAME_LENGTH, "rr%.240sReply", name);
    return US_OK;
}

us_dialect us_bus_dialect(const us_bus *bus) {
    return bus && bus->vendor != usi_cyclone_vendor() ? US_DIALECT_FASTDDS : US_DIALECT_CYCLONE;
}

usi_endpoint_more usi_service_ends(us_bus *bus, const char *key, char user_data[USI_NAME_LENGTH]) {
    user_data[0] = 0;
    if (us_bus_dialect(bus) != US_DIALECT_CYCLONE) return (usi_endpoint_more){USI_MEET_OWN, ""};
    uint8_t id[USI_ID_LENGTH];
    memcpy(id, bus->id, 12);
    pthread_mutex_lock(&bus->lock);
    const uint32_t number = ++bus->n_pair;
    pthread_mutex_unlock(&bus->lock);
    memcpy(id + 12, &number, sizeof number);
    int at = snprintf(user_data, USI_NAME_LENGTH, "%s=", key);
    for (int i = 0; i < USI_ID_LENGTH; i++)
        at += snprintf(user_data + at, (size_t)(USI_NAME_LENGTH - at), "%02x%s", id[i],
                       i + 1 < USI_ID_LENGTH ? "." : ";");
    return (usi_endpoint_more){USI_MEET_OWN, user_data};
}

// The pair of endpoints on a bus, the service's own or its twin, in the dialect of that.
static us_status add_pair(us_service *s, us_bus *bus, us_error *err) {
    const us_dialect dialect = us_bus_dialect(bus);
    const us_qos qos = {.is_reliable = true, .depth = USI_SERVICE_DEPTH};
    const int32_t node = bus == s->bus ? s->node : -1;
    char user_data[USI_NAME_LENGTH];
    const usi_endpoint_more more = usi_service_ends(bus, "serviceid", user_data);
    // First comes the writer: whoever finds the reader is answered.
    us_topic_def topic = {s->reply_topic, s->response, qos, node};
    us_writer *writer = NULL;
    us_status status = usi_bus_add_writer(bus, &topic, &more, &writer, err);
    if (status) return status;
    atomic_store(&s->writers[dialect], writer);
    s->inlets[dialect] = (inlet){s, dialect};
    topic = (us_topic_def){s->request_topic, s->request, qos, node};
    us_reader *reader = NULL;
    status = usi_bus_add_reader(bus, &topic, &more, s->on_request ? on_carried : NULL, &s->inlets[dialect],
                                &reader, err);
    if (status) return status;
    if (s->handler) atomic_store(&reader->is_attended, true);
    atomic_store(&s->readers[dialect], reader);
    return US_OK;
}

// Into the bus's list; whether somebody asks in the other dialect already.
static void link_service(us_service *s) {
    us_bus *bus = s->bus;
    pthread_mutex_lock(&bus->wait_lock);
    s->next = bus->services;
    bus->services = s;
    for (uint32_t i = 0; i < USI_HEARD && i < bus->n_heard; i++)
        s->is_wanted = s->is_wanted || bus->heard[i] == s->topic_hash;
    if (s->is_wanted) {
        bus->has_stranger = true;
        pthread_cond_signal(&bus->attend_cond);
    }
    pthread_mutex_unlock(&bus->wait_lock);
}

us_status usi_bus_add_carried_service(us_bus *bus, const us_service_def *def, us_sample_function *on_request,
                                      void *context, us_service **out_service, us_error *err) {
    if (!bus || !def || !out_service || !def->name || !def->request || !def->response)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "a service needs a bus, a name, two types and a place for it");
    *out_service = NULL;
    char request[USI_NAME_LENGTH], reply[USI_NAME_LENGTH];
    us_status status = usi_service_topics(def->name, request, reply, err);
    if (status) return status;
    us_service *s = usi_alloc(&bus->allocator, sizeof *s, _Alignof(us_service));
    if (!s) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a service");
    memset(s, 0, sizeof *s);
    s->bus = bus;
    s->request = def->request;
    s->response = def->response;
    s->node = def->node;
    s->on_request = on_request;
    s->context = context;
    s->face = (us_writer){.bus = bus, .service = s, .type = def->response, .node = def->node};
    memcpy(s->request_topic, request, sizeof s->request_topic);
    memcpy(s->reply_topic, reply, sizeof s->reply_topic);
    s->topic_hash = us_hash_bytes(0, request, strlen(request));
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_lock(&bus->attend_lock);
    status = usi_attend_watch(bus);
    pthread_mutex_unlock(&bus->attend_lock);
    if (status) us_error_set(err, status, NULL, "End other programs.", "a service cannot be attended to");
    if (!status) status = add_pair(s, bus, err);
    if (!status) link_service(s);
    if (status) {
        us_service_remove(s);
        return status;
    }
    *out_service = s;
    return US_OK;
}

us_status us_bus_add_service(us_bus *bus, const us_service_def *def, us_service **out_service,
                             us_error *err) {
    return usi_bus_add_carried_service(bus, def, NULL, NULL, out_service, err);
}

us_status us_service_serve(us_service *s, us_request_function *handler, void *context) {
    if (!s || !handler || s->on_request) return US_ERR_ARG;
    pthread_mutex_lock(&s->bus->attend_lock);
    s->handler = handler;
    s->handler_context = context;
    for (int i = 0; i < N_DIALECT; i++) {
        us_reader *reader = atomic_load(&s->readers[i]);
        if (reader) atomic_store(&reader->is_attended, true);
    }
    pthread_mutex_unlock(&s->bus->attend_lock);
    usi_attend_wake(s->bus);  // what has come already
    return US_OK;
}

// Stops the attendant's work on it: what a handler does now is waited for.
static void unlink_service(us_service *s) {
    pthread_mutex_lock(&s->bus->attend_lock);
    s->is_deaf = true;
    s->handler = NULL;
    pthread_mutex_unlock(&s->bus->attend_lock);
    pthread_mutex_lock(&s->bus->wait_lock);
    us_service **at = &s->bus->services;
    while (*at && *at != s)
        at = &(*at)->next;
    if (*at) *at = s->next;
    pthread_mutex_unlock(&s->bus->wait_lock);
}

void usi_service_deafen(us_service *s) {
    if (!s) return;
    pthread_mutex_lock(&s->bus->attend_lock);
    s->is_deaf = true;
    pthread_mutex_unlock(&s->bus->attend_lock);
    for (int i = 0; i < N_DIALECT; i++)
        us_reader_remove(atomic_exchange(&s->readers[i], NULL));
}

us_writer *usi_service_writer(us_service *service) { return &service->face; }

// ---- replies ----

static int64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// `a` NULL: a client that was forgotten, taken for one of the service's own dialect.
static us_status send_now(us_service *s, const requester *a, const void *bytes, size_t length) {
    us_writer *writer = atomic_load(&s->writers[a ? a->dialect : us_bus_dialect(s->bus)]);
    if (!writer) return US_ERR_LIMIT;
    if (us_bus_dialect(writer->bus) == US_DIALECT_CYCLONE) return usi_writer_send(writer, bytes, length, 0);
    if (!a) return US_ERR_LIMIT;
    usi_sample_id related = {.sequence = usi_request_id_get(bytes).number};
    memcpy(related.writer, a->id, USI_ID_LENGTH);
    uint8_t *plain = usi_alloc(&s->bus->allocator, length - USI_REQUEST_ID, 8);
    if (!plain) return US_ERR_MEMORY;
    memcpy(plain, bytes, HEADER);
    memcpy(plain + HEADER, (const uint8_t *)bytes + CARRIED, length - CARRIED);
    int64_t sequence = 0;
    us_status status = writer->bus->vendor->write_related(writer->endpoint, plain, length - USI_REQUEST_ID,
                                                          &related, &sequence);
    usi_release(&s->bus->allocator, plain, length - USI_REQUEST_ID, 8);
    return status;
}

// A request may come before its sender's reader of replies is known: what is written then does not reach it.
// So it is kept, and the attendant sends it when the reader is there. The service is locked.
static us_status defer(us_service *s, uint64_t client, const void *bytes, size_t length) {
    if (s->n_pending == MAX_PENDING) return US_ERR_LIMIT;
    pending_reply *o = usi_alloc(&s->bus->allocator, sizeof *o + length, _Alignof(pending_reply));
    if (!o) return US_ERR_MEMORY;
    *o = (pending_reply){.client = client, .until = monotonic_ns() + PATIENCE, .length = length};
    memcpy(o->bytes, bytes, length);
    pending_reply **last = &s->pending;
    while (*last)
        last = &(*last)->next;
    *last = o;
    s->n_pending++;
    return US_OK;
}

us_status usi_service_send(us_service *s, const void *bytes, size_t length) {
    if (length < CARRIED) return US_ERR_SYNTAX;
    const uint64_t client = usi_request_id_get(bytes).client;
    us_status status = US_OK;
    pthread_mutex_lock(&s->lock);
    const requester *found = find_client(s, client);
    const bool has_reader = !found || found->has_reader;
    requester a = {0};
    if (found) a = *found;
    if (!has_reader) status = defer(s, client, bytes, length);
    pthread_mutex_unlock(&s->lock);
    if (has_reader) return send_now(s, found ? &a : NULL, bytes, length);
    if (status) return status;
    atomic_fetch_add(&s->bus->n_pending, 1);
    usi_attend_wake(s->bus);
    return US_OK;
}

// The first pending reply to a client, out of the list; without one its reader is known from now on.
static pending_reply *take_pending(us_service *s, uint64_t client, requester *out_client, bool *out_has) {
    pthread_mutex_lock(&s->lock);
    pending_reply **at = &s->pending;
    while (*at && (*at)->client != client)
        at = &(*at)->next;
    pending_reply *o = *at;
    requester *a = find_client(s, client);
    if (o) {
        *at = o->next;
        s->n_pending--;
    } else if (a) {
        a->has_reader = true;
    }
    *out_has = a != NULL;
    if (a) *out_client = *a;
    pthread_mutex_unlock(&s->lock);
    return o;
}

static void send_pending(us_service *s, uint64_t client) {
    requester a = {0};
    bool has = false;
    for (pending_reply *o; (o = take_pending(s, client, &a, &has));) {
        send_now(s, has ? &a : NULL, o->bytes, o->length);
        usi_release(&s->bus->allocator, o, sizeof *o + o->length, _Alignof(pending_reply));
        atomic_fetch_sub(&s->bus->n_pending, 1);
    }
}

typedef struct look {
    const us_service *service;
    int n;
    struct {
        uint64_t client;
        uint8_t writer[USI_ID_LENGTH];
        us_dialect dialect;
        bool is_due;
    } waiting[MAX_LOOKUP];
} look;

static void visit_reader(void *context, const us_endpoint *e) {
    look *l = context;
    if (e->is_writer || strcmp(e->topic, l->service->reply_topic) != 0) return;
    for (int i = 0; i < l->n; i++)
        l->waiting[i].is_due = l->waiting[i].is_due || !memcmp(e->id, l->waiting[i].writer, 12);
}

// The clients of pending replies, each once.
static void find_waiting(us_service *s, look *l) {
    const int64_t now = monotonic_ns();
    pthread_mutex_lock(&s->lock);
    for (const pending_reply *o = s->pending; o && l->n < MAX_LOOKUP; o = o->next) {
        int i = 0;
        while (i < l->n && l->waiting[i].client != o->client)
            i++;
        if (i < l->n) continue;
        const requester *a = find_client(s, o->client);
        l->waiting[i].client = o->client;
        if (a) memcpy(l->waiting[i].writer, a->writer, USI_ID_LENGTH);
        if (a) l->waiting[i].dialect = a->dialect;
        const bool is_over = now >= o->until;
        l->waiting[i].is_due = !a || is_over || s->n_missing >= MAX_MISSING;
        s->n_missing += is_over;
        l->n++;
    }
    pthread_mutex_unlock(&s->lock);
}

static void send_due(us_service *s) {
    look l = {.service = s};
    find_waiting(s, &l);
    if (l.n == 0) return;
    for (int d = 0; d < N_DIALECT; d++) {
        const us_writer *writer = atomic_load(&s->writers[d]);
        if (writer) (void)writer->bus->vendor->list(writer->bus->participant, visit_reader, &l);
    }
    for (int i = 0; i < l.n; i++) {
        if (l.waiting[i].is_due) send_pending(s, l.waiting[i].client);
    }
}

// All pending replies, whether their readers are known or not.
static void send_all_pending(us_service *s) {
    for (;;) {
        pthread_mutex_lock(&s->lock);
        const bool has = s->pending != NULL;
        const uint64_t client = has ? s->pending->client : 0;
        pthread_mutex_unlock(&s->lock);
        if (!has) return;
        send_pending(s, client);
    }
}

void us_service_remove(us_service *s) {
    if (!s) return;
    usi_service_deafen(s);
    unlink_service(s);
    send_all_pending(s);
    for (int i = 0; i < N_DIALECT; i++)
        us_writer_remove(atomic_load(&s->writers[i]));
    pthread_mutex_destroy(&s->lock);
    usi_release(&s->bus->allocator, s, sizeof *s, _Alignof(us_service));
}

// ---- requests that wait ----

bool usi_request_id_take(void *buf, size_t *length, us_request_id *out_id) {
    if (*length < CARRIED) return false;
    *out_id = usi_request_id_get(buf);
    memmove((uint8_t *)buf + HEADER, (const uint8_t *)buf + CARRIED, *length - CARRIED);
    *length -= USI_REQUEST_ID;
    return true;
}

us_status us_service_take(us_service *s, void *buf, size_t cap, size_t *out_length, us_request_id *out_id) {
    if (!s || !out_length || !out_id) return US_ERR_ARG;
    for (int i = 0; i < N_DIALECT; i++) {
        for (us_reader *reader; (reader = atomic_load(&s->readers[i]));) {
            us_sample sample;
            us_status status = us_reader_take(reader, buf, cap, out_length, &sample);
            if (status) return status;
            if (*out_length == 0) break;
            if (i == US_DIALECT_FASTDDS) {
                *out_id = id_of_fastdds(s, &sample);
                return US_OK;
            }
            if (!usi_request_id_take(buf, out_length, out_id)) continue;
            note_client(s, out_id->client, US_DIALECT_CYCLONE, sample.writer, sample.writer);
            return US_OK;
        }
    }
    *out_length = 0;
    return US_OK;
}

uint8_t *usi_request_id_add(us_bus *bus, const void *bytes, size_t length, us_request_id id) {
    uint8_t *carried = usi_alloc(&bus->allocator, length + USI_REQUEST_ID, 8);
    if (!carried) return NULL;
    memcpy(carried, bytes, HEADER);
    memcpy(carried + CARRIED, (const uint8_t *)bytes + HEADER, length - HEADER);
    usi_request_id_put(carried, id);
    return carried;
}

us_status us_service_reply(us_service *s, us_request_id id, const void *bytes, size_t length) {
    if (!s || !bytes) return US_ERR_ARG;
    if (!usi_is_message(s->response, bytes, length)) return US_ERR_SYNTAX;
    uint8_t *carried = usi_request_id_add(s->bus, bytes, length, id);
    if (!carried) return US_ERR_MEMORY;
    us_status status = usi_service_send(s, carried, length + USI_REQUEST_ID);
    usi_release(&s->bus->allocator, carried, length + USI_REQUEST_ID, 8);
    return status;
}

// ---- what the attendant does ----

bool usi_services_note_stranger(us_bus *bus, uint64_t topic) {
    bool is_meant = false;
    for (us_service *s = bus->services; s; s = s->next) {
        if (s->topic_hash != topic) continue;
        s->is_wanted = true;
        is_meant = true;
    }
    return is_meant;
}

// The next service of the bus, which is not removed while attend_lock is held.
static us_service *next_service(us_bus *bus, const us_service *s) {
    pthread_mutex_lock(&bus->wait_lock);
    us_service *next = s ? s->next : bus->services;
    pthread_mutex_unlock(&bus->wait_lock);
    return next;
}

void usi_services_meet_strangers(us_bus *bus) {
    const us_dialect other =
        us_bus_dialect(bus) == US_DIALECT_CYCLONE ? US_DIALECT_FASTDDS : US_DIALECT_CYCLONE;
    for (us_service *s = NULL; (s = next_service(bus, s));) {
        pthread_mutex_lock(&bus->wait_lock);
        const bool is_wanted = s->is_wanted;
        pthread_mutex_unlock(&bus->wait_lock);
        us_bus *twin = NULL;
        if (!is_wanted || s->is_deaf || atomic_load(&s->writers[other])) continue;
        // Without it there is no service for them, and they know.
        if (usi_bus_twin(bus, &twin, NULL) || !twin) return;
        (void)add_pair(s, twin, NULL);
    }
}

void usi_services_serve(us_bus *bus) {
    size_t cap = 4096;
    uint8_t *buf = NULL;
    for (us_service *s = NULL; (s = next_service(bus, s));) {
        if (!s->handler) continue;
        if (!buf && !(buf = usi_alloc(&bus->allocator, cap, 16))) return;
        for (;;) {
            size_t length = 0;
            us_request_id id;
            const us_status status = us_service_take(s, buf, cap, &length, &id);
            if (status == US_ERR_LIMIT) {
                usi_release(&bus->allocator, buf, cap, 16);
                cap = length;
                if (!(buf = usi_alloc(&bus->allocator, cap, 16))) return;
                continue;
            }
            if (status || length == 0) break;
            if (usi_is_message(s->request, buf, length)) s->handler(s->handler_context, s, id, buf, length);
        }
    }
    usi_release(&bus->allocator, buf, cap, 16);
}

bool usi_services_send_pending(us_bus *bus) {
    for (us_service *s = NULL; atomic_load(&bus->n_pending) > 0 && (s = next_service(bus, s));)
        send_due(s);
    return atomic_load(&bus->n_pending) > 0;
}

#include "bus/request.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

enum {
    N_DIALECT = 2,
    MAX_ASKER = 256,
    HEADER = 4,
    CARRIED = HEADER + USI_REQUEST_ID,
    SERVICE_DEPTH = 1000,
    MAX_LOOK = 50,         // for the reader of somebody who asked for the first time
    LOOK_EVERY = 2000000,  // ns
    MAX_VAIN = 16,         // who asks without a reader may not hold up the others
};

// Somebody who asked. In the dialect of Fast DDS he has an id of 16 bytes, above here a number of 8.
typedef struct asker {
    uint64_t number;
    uint64_t age;
    us_dialect dialect;
    bool is_met;                    // his reader of replies is known to be there
    uint8_t id[USI_ID_LENGTH];      // in the dialect of Fast DDS
    uint8_t writer[USI_ID_LENGTH];  // of his request
} asker;

typedef struct inlet {
    us_service *service;
    us_dialect dialect;
} inlet;

struct us_service {
    us_bus *bus;
    us_writer *writers[N_DIALECT];
    us_reader *readers[N_DIALECT];
    inlet inlets[N_DIALECT];
    us_writer face;  // stands for both writers
    const us_message_type *response;
    char reply_topic[USI_NAME_LENGTH];
    us_sample_function *on_request;
    void *context;

    pthread_mutex_t lock;  // of what follows
    uint64_t n_request;
    int32_t n_vain;  // askers that were waited for, and had no reader
    int32_t n_asker;
    asker askers[MAX_ASKER];
};

struct us_client {
    us_bus *bus;
    us_dialect dialect;
    us_writer *writer;
    us_reader *reader;
    const us_message_type *request;
    uint64_t id;  // in the dialect of Cyclone
    pthread_mutex_t lock;
    int64_t n_asked;
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

// Remembers who asked. The one that was silent for longest makes room.
static void note_asker(us_service *s, uint64_t number, us_dialect dialect, const uint8_t id[USI_ID_LENGTH],
                       const uint8_t writer[USI_ID_LENGTH]) {
    pthread_mutex_lock(&s->lock);
    asker *place = NULL;
    for (int32_t i = 0; i < s->n_asker && !place; i++) {
        if (s->askers[i].number == number && s->askers[i].dialect == dialect) place = &s->askers[i];
    }
    if (!place) {
        place = &s->askers[0];
        for (int32_t i = 1; i < s->n_asker; i++) {
            if (s->askers[i].age < place->age) place = &s->askers[i];
        }
        if (s->n_asker < MAX_ASKER) place = &s->askers[s->n_asker++];
        *place = (asker){.number = number, .dialect = dialect};
        memcpy(place->id, id, USI_ID_LENGTH);
        memcpy(place->writer, writer, USI_ID_LENGTH);
    }
    place->age = ++s->n_request;
    pthread_mutex_unlock(&s->lock);
}

// The asker of a number; once known to be met, for good. Whether there is one.
static bool find_asker(us_service *s, uint64_t number, bool is_met, asker *out) {
    bool has = false;
    pthread_mutex_lock(&s->lock);
    for (int32_t i = 0; i < s->n_asker && !has; i++) {
        has = s->askers[i].number == number;
        if (has && is_met) s->askers[i].is_met = true;
        if (has) *out = s->askers[i];
    }
    pthread_mutex_unlock(&s->lock);
    return has;
}

// A request may come before its sender's reader of replies is known: what is written then does not reach it.

typedef struct look {
    const us_service *service;
    const uint8_t *writer;
    bool has;
} look;

static void visit_reader(void *context, const us_endpoint *e) {
    look *l = context;
    l->has = l->has || (!e->is_writer && !memcmp(e->id, l->writer, 12) &&
                        strcmp(e->topic, l->service->reply_topic) == 0);
}

static void wait_for_reader(us_service *s, const asker *a) {
    look l = {s, a->writer, false};
    pthread_mutex_lock(&s->lock);
    const bool is_hopeful = s->n_vain < MAX_VAIN;
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; is_hopeful && i < MAX_LOOK && !l.has; i++) {
        if (i > 0) nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY}, NULL);
        if (s->bus->vendor->list(s->bus->participant, visit_reader, &l)) break;
    }
    pthread_mutex_lock(&s->lock);
    s->n_vain += !l.has;
    pthread_mutex_unlock(&s->lock);
}

static bool is_zero(const uint8_t id[USI_ID_LENGTH]) {
    static const uint8_t zero[USI_ID_LENGTH];
    return memcmp(id, zero, USI_ID_LENGTH) == 0;
}

// A program on Fast DDS may name the reader of its replies as the one who asks.
static us_request_id id_of_fastdds(us_service *s, const us_sample *sample) {
    const uint8_t *who = is_zero(sample->related_writer) ? sample->writer : sample->related_writer;
    const uint64_t number = us_hash_bytes(1, who, USI_ID_LENGTH);
    note_asker(s, number, US_DIALECT_FASTDDS, who, sample->writer);
    return (us_request_id){number, sample->sequence};
}

// Over Fast DDS the endpoints of the Cyclone dialect are matched by everybody: whose samples are not in it is
// told by what stands beside them, and by the vendor's number, with which ids begin.
static bool is_foreign(us_dialect dialect, const us_sample *sample) {
    const bool is_fastdds = sample->writer[0] == 0x01 && sample->writer[1] == 0x0f;
    return dialect == US_DIALECT_CYCLONE && (is_fastdds || !is_zero(sample->related_writer));
}

// ---- services ----

static void on_carried(void *context, const us_sample *sample) {
    const inlet *in = context;
    us_service *s = in->service;
    if (is_foreign(in->dialect, sample)) return;
    if (in->dialect == US_DIALECT_CYCLONE) {
        if (sample->length < CARRIED) return;
        note_asker(s, usi_request_id_get(sample->bytes).client, US_DIALECT_CYCLONE, sample->writer,
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

static us_status make_topics(const char *name, char request[USI_NAME_LENGTH], char reply[USI_NAME_LENGTH],
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

static bool can_speak(const us_bus *bus, us_dialect dialect) {
    return dialect == US_DIALECT_CYCLONE || bus->vendor->write_related;
}

// The id that ROS puts into the user data of both endpoints, so that they are known to belong together.
static void make_pair_id(us_bus *bus, const char *key, char out[USI_NAME_LENGTH]) {
    uint8_t id[USI_ID_LENGTH];
    memcpy(id, bus->id, 12);
    pthread_mutex_lock(&bus->lock);
    const uint32_t number = ++bus->n_pair;
    pthread_mutex_unlock(&bus->lock);
    memcpy(id + 12, &number, sizeof number);
    int at = snprintf(out, USI_NAME_LENGTH, "%s=", key);
    for (int i = 0; i < USI_ID_LENGTH; i++)
        at += snprintf(out + at, (size_t)(USI_NAME_LENGTH - at), "%02x%s", id[i],
                       i + 1 < USI_ID_LENGTH ? "." : ";");
}

static us_status add_pair(us_service *s, const us_service_def *def, us_dialect dialect, const char *request,
                          const char *reply, us_error *err) {
    static const us_qos qos = {.is_reliable = true, .depth = SERVICE_DEPTH};
    char user_data[USI_NAME_LENGTH] = "";
    usi_endpoint_more more = {USI_MEET_FASTDDS, ""};
    if (dialect == US_DIALECT_CYCLONE) {
        make_pair_id(s->bus, "serviceid", user_data);
        more = (usi_endpoint_more){USI_MEET_CYCLONE, user_data};
    }
    // First comes the writer: whoever finds the reader is answered.
    us_topic_def topic = {reply, def->response, qos, def->node};
    us_status status = usi_bus_add_writer(s->bus, &topic, &more, &s->writers[dialect], err);
    if (status) return status;
    s->inlets[dialect] = (inlet){s, dialect};
    topic = (us_topic_def){request, def->request, qos, def->node};
    return usi_bus_add_reader(s->bus, &topic, &more, s->on_request ? on_carried : NULL, &s->inlets[dialect],
                              &s->readers[dialect], err);
}

us_status usi_bus_add_carried_service(us_bus *bus, const us_service_def *def, us_sample_function *on_request,
                                      void *context, us_service **out_service, us_error *err) {
    if (!bus || !def || !out_service || !def->name || !def->request || !def->response)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "a service needs a bus, a name, two types and a place for it");
    *out_service = NULL;
    char request[USI_NAME_LENGTH], reply[USI_NAME_LENGTH];
    us_status status = make_topics(def->name, request, reply, err);
    if (status) return status;
    us_service *s = usi_alloc(&bus->allocator, sizeof *s, _Alignof(us_service));
    if (!s) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a service");
    memset(s, 0, sizeof *s);
    s->bus = bus;
    s->response = def->response;
    s->on_request = on_request;
    s->context = context;
    s->face = (us_writer){.bus = bus, .service = s, .type = def->response, .node = def->node};
    memcpy(s->reply_topic, reply, sizeof s->reply_topic);
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < N_DIALECT && !status; i++) {
        if (can_speak(bus, (us_dialect)i)) status = add_pair(s, def, (us_dialect)i, request, reply, err);
    }
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

void usi_service_deafen(us_service *s) {
    for (int i = 0; s && i < N_DIALECT; i++) {
        us_reader_remove(s->readers[i]);
        s->readers[i] = NULL;
    }
}

void us_service_remove(us_service *s) {
    if (!s) return;
    usi_service_deafen(s);
    for (int i = 0; i < N_DIALECT; i++)
        us_writer_remove(s->writers[i]);
    pthread_mutex_destroy(&s->lock);
    usi_release(&s->bus->allocator, s, sizeof *s, _Alignof(us_service));
}

us_writer *usi_service_writer(us_service *service) { return &service->face; }

us_status usi_service_send(us_service *s, const void *bytes, size_t length) {
    if (length < CARRIED) return US_ERR_SYNTAX;
    const us_request_id id = usi_request_id_get(bytes);
    usi_sample_id related = {.sequence = id.number};
    asker a = {.dialect = US_DIALECT_CYCLONE};
    if (find_asker(s, id.client, false, &a) && !a.is_met) {
        wait_for_reader(s, &a);
        find_asker(s, id.client, true, &a);
    }
    if (a.dialect == US_DIALECT_CYCLONE)
        return usi_writer_send(s->writers[US_DIALECT_CYCLONE], bytes, length, 0);
    memcpy(related.writer, a.id, USI_ID_LENGTH);
    uint8_t *plain = usi_alloc(&s->bus->allocator, length - USI_REQUEST_ID, 8);
    if (!plain) return US_ERR_MEMORY;
    memcpy(plain, bytes, HEADER);
    memcpy(plain + HEADER, (const uint8_t *)bytes + CARRIED, length - CARRIED);
    int64_t sequence = 0;
    us_status status = s->bus->vendor->write_related(s->writers[US_DIALECT_FASTDDS]->endpoint, plain,
                                                     length - USI_REQUEST_ID, &related, &sequence);
    usi_release(&s->bus->allocator, plain, length - USI_REQUEST_ID, 8);
    return status;
}

// ---- requests that wait ----

// Takes the id out of a message of the Cyclone dialect. False when there is none.
static bool take_id_out(void *buf, size_t *length, us_request_id *out_id) {
    if (*length < CARRIED) return false;
    *out_id = usi_request_id_get(buf);
    memmove((uint8_t *)buf + HEADER, (const uint8_t *)buf + CARRIED, *length - CARRIED);
    *length -= USI_REQUEST_ID;
    return true;
}

us_status us_service_take(us_service *s, void *buf, size_t cap, size_t *out_length, us_request_id *out_id) {
    if (!s || !out_length || !out_id) return US_ERR_ARG;
    for (int i = 0; i < N_DIALECT; i++) {
        while (s->readers[i]) {
            us_sample sample;
            us_status status = us_reader_take(s->readers[i], buf, cap, out_length, &sample);
            if (status) return status;
            if (*out_length == 0) break;
            if (is_foreign((us_dialect)i, &sample)) continue;
            if (i == US_DIALECT_FASTDDS) {
                *out_id = id_of_fastdds(s, &sample);
                return US_OK;
            }
            if (!take_id_out(buf, out_length, out_id)) continue;
            note_asker(s, out_id->client, US_DIALECT_CYCLONE, sample.writer, sample.writer);
            return US_OK;
        }
    }
    *out_length = 0;
    return US_OK;
}

// The message with room for an id behind its header; NULL without memory. For CARRIED - HEADER bytes more.
static uint8_t *put_id_in(us_bus *bus, const void *bytes, size_t length, us_request_id id) {
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
    uint8_t *carried = put_id_in(s->bus, bytes, length, id);
    if (!carried) return US_ERR_MEMORY;
    us_status status = usi_service_send(s, carried, length + USI_REQUEST_ID);
    usi_release(&s->bus->allocator, carried, length + USI_REQUEST_ID, 8);
    return status;
}

// ---- clients ----

us_status us_bus_add_client(us_bus *bus, const us_client_def *def, us_client **out_client, us_error *err) {
    if (!bus || !def || !out_client || !def->name || !def->request || !def->response)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "a client needs a bus, a name, two types and a place for it");
    *out_client = NULL;
    const bool is_cyclone = def->dialect == US_DIALECT_CYCLONE;
    if ((is_cyclone && bus->vendor != usi_cyclone_vendor()) || !can_speak(bus, def->dialect))
        return us_error_set(err, US_ERR_VALUE, NULL, "Ask in the dialect of the bus's own vendor.",
                            "a client over %s cannot ask %.100s in the dialect of %s", bus->vendor->name,
                            def->name, is_cyclone ? "rmw_cyclonedds" : "rmw_fastrtps");
    char request[USI_NAME_LENGTH], reply[USI_NAME_LENGTH], user_data[USI_NAME_LENGTH] = "";
    us_status status = make_topics(def->name, request, reply, err);
    if (status) return status;
    us_client *c = usi_alloc(&bus->allocator, sizeof *c, _Alignof(us_client));
    if (!c) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a client");
    *c = (us_client){.bus = bus, .dialect = def->dialect, .request = def->request};
    pthread_mutex_init(&c->lock, NULL);
    static const us_qos qos = {.is_reliable = true, .depth = SERVICE_DEPTH};
    if (is_cyclone) make_pair_id(bus, "clientid", user_data);
    const usi_endpoint_more more = {is_cyclone ? USI_MEET_CYCLONE : USI_MEET_FASTDDS, user_data};
    us_topic_def topic = {reply, def->response, qos, def->node};
    status = usi_bus_add_reader(bus, &topic, &more, NULL, NULL, &c->reader, err);
    topic = (us_topic_def){request, def->request, qos, def->node};
    if (!status) status = usi_bus_add_writer(bus, &topic, &more, &c->writer, err);
    if (status) {
        us_client_remove(c);
        return status;
    }
    c->id = us_hash_bytes(2, c->writer->id, USI_ID_LENGTH);
    *out_client = c;
    return US_OK;
}

void us_client_remove(us_client *c) {
    if (!c) return;
    us_writer_remove(c->writer);
    us_reader_remove(c->reader);
    pthread_mutex_destroy(&c->lock);
    usi_release(&c->bus->allocator, c, sizeof *c, _Alignof(us_client));
}

bool us_client_is_ready(us_client *c) {
    return c && us_writer_n_match(c->writer) > 0 && us_reader_n_match(c->reader) > 0;
}

static us_status ask_cyclone(us_client *c, const void *bytes, size_t length, int64_t *out_number) {
    pthread_mutex_lock(&c->lock);
    *out_number = ++c->n_asked;
    pthread_mutex_unlock(&c->lock);
    uint8_t *carried = put_id_in(c->bus, bytes, length, (us_request_id){c->id, *out_number});
    if (!carried) return US_ERR_MEMORY;
    us_status status = usi_writer_send(c->writer, carried, length + USI_REQUEST_ID, 0);
    usi_release(&c->bus->allocator, carried, length + USI_REQUEST_ID, 8);
    return status;
}

us_status us_client_ask(us_client *c, const void *bytes, size_t length, int64_t *out_number) {
    if (!c || !bytes || !out_number) return US_ERR_ARG;
    if (!usi_is_message(c->request, bytes, length)) return US_ERR_SYNTAX;
    if (c->dialect == US_DIALECT_CYCLONE) return ask_cyclone(c, bytes, length, out_number);
    // The reader of the replies is named as the one who asks: a server waits until it has matched that. A
    // number below 0 stands for none.
    usi_sample_id related = {.sequence = -((int64_t)1 << 32)};
    memcpy(related.writer, c->reader->id, USI_ID_LENGTH);
    return c->bus->vendor->write_related(c->writer->endpoint, bytes, length, &related, out_number);
}

us_status us_client_take(us_client *c, void *buf, size_t cap, size_t *out_length, int64_t *out_number) {
    if (!c || !out_length || !out_number) return US_ERR_ARG;
    for (;;) {
        us_sample sample;
        us_status status = us_reader_take(c->reader, buf, cap, out_length, &sample);
        if (status || *out_length == 0) return status;
        if (c->dialect == US_DIALECT_FASTDDS) {
            *out_number = sample.related_sequence;
            if (!memcmp(sample.related_writer, c->reader->id, USI_ID_LENGTH) ||
                !memcmp(sample.related_writer, c->writer->id, USI_ID_LENGTH))
                return US_OK;
            continue;
        }
        us_request_id id;
        if (!take_id_out(buf, out_length, &id) || id.client != c->id) continue;
        *out_number = id.number;
        return US_OK;
    }
}

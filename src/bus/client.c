// Clients of services: requests out, replies in.
#include <string.h>

#include "base/memory.h"
#include "bus/request.h"

struct us_client {
    us_bus *bus;  // where its endpoints are: the bus, or its twin
    us_dialect dialect;
    us_writer *writer;
    us_reader *reader;
    const us_message_type *request;
    uint64_t id;  // in the dialect of Cyclone
    pthread_mutex_t lock;
    int64_t n_asked;
};

us_status usi_bus_of_dialect(us_bus *bus, us_dialect dialect, us_bus **out_bus, us_error *err) {
    *out_bus = bus;
    if (us_bus_dialect(bus) == dialect) return US_OK;
    pthread_mutex_lock(&bus->attend_lock);
    us_status status = usi_bus_twin(bus, out_bus, err);
    pthread_mutex_unlock(&bus->attend_lock);
    return status;
}

us_status us_bus_add_client(us_bus *outer, const us_client_def *def, us_client **out_client, us_error *err) {
    if (!outer || !def || !out_client || !def->name || !def->request || !def->response)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "a client needs a bus, a name, two types and a place for it");
    *out_client = NULL;
    if ((unsigned)def->dialect > (unsigned)US_DIALECT_FASTDDS)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "unknown dialect %d", (int)def->dialect);
    char request[USI_NAME_LENGTH], reply[USI_NAME_LENGTH], user_data[USI_NAME_LENGTH];
    us_status status = usi_service_topics(def->name, request, reply, err);
    us_bus *bus = NULL;
    if (!status) status = usi_bus_of_dialect(outer, def->dialect, &bus, err);
    if (status) return status;
    us_client *c = usi_alloc(&bus->allocator, sizeof *c, _Alignof(us_client));
    if (!c) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a client");
    *c = (us_client){.bus = bus, .dialect = def->dialect, .request = def->request};
    pthread_mutex_init(&c->lock, NULL);
    const us_qos qos = {.is_reliable = true, .depth = USI_SERVICE_DEPTH};
    const int32_t node = bus == outer ? def->node : -1;
    const usi_endpoint_more more = usi_service_ends(bus, "clientid", user_data);
    us_topic_def topic = {reply, def->response, qos, node};
    status = usi_bus_add_reader(bus, &topic, &more, NULL, NULL, &c->reader, err);
    topic = (us_topic_def){request, def->request, qos, node};
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
    uint8_t *carried = usi_request_id_add(c->bus, bytes, length, (us_request_id){c->id, *out_number});
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
        if (!usi_request_id_take(buf, out_length, &id) || id.client != c->id) continue;
        *out_number = id.number;
        return US_OK;
    }
}

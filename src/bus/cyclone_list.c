// What Cyclone DDS knows of the network: its built-in topics, read afresh for each question.
//
// A reader of a built-in topic gets all that exists at the moment it is made. So a list is a snapshot,
// nothing is kept between two of them, and a bus that is never asked pays nothing. Who wants to be told of
// writers that come has a reader that stays.
#include <stdio.h>
#include <string.h>

#include "bus/cyclone.h"

enum { MAX_READ = 64 };

static void copy_text(char *to, size_t cap, const char *from) { snprintf(to, cap, "%s", from ? from : ""); }

// The hash of the type as the endpoint's user data has it.
static void read_hash(const dds_qos_t *qos, char *out, size_t cap) {
    static const char key[] = "typehash=";
    void *bytes = NULL;
    size_t n = 0;
    out[0] = 0;
    if (!dds_qget_userdata(qos, &bytes, &n) || !bytes) return;
    const char *text = bytes;
    const char *found = memmem(text, n, key, sizeof key - 1);
    if (found) {
        found += sizeof key - 1;
        const char *end = memchr(found, ';', (size_t)(text + n - found));
        size_t length = (size_t)((end ? end : text + n) - found);
        if (length < cap) {
            memcpy(out, found, length);
            out[length] = 0;
        }
    }
    dds_free(bytes);
}

us_dialect usi_cyclone_dialect_of(const dds_builtintopic_endpoint_t *e) {
    void *bytes = NULL;
    size_t n = 0;
    if (usi_id_is_hashed(e->key.v) && !dds_qget_userdata(e->qos, &bytes, &n)) n = 0;
    const us_dialect dialect = usi_dialect_of(e->key.v, bytes, n);
    dds_free(bytes);
    return dialect;
}

static us_qos read_qos(const dds_qos_t *qos) {
    us_qos out = {.depth = 1};
    dds_reliability_kind_t reliability = DDS_RELIABILITY_BEST_EFFORT;
    dds_durability_kind_t durability = DDS_DURABILITY_VOLATILE;
    dds_history_kind_t history = DDS_HISTORY_KEEP_LAST;
    if (dds_qget_reliability(qos, &reliability, NULL))
        out.is_reliable = reliability == DDS_RELIABILITY_RELIABLE;
    if (dds_qget_durability(qos, &durability))
        out.is_transient_local = durability >= DDS_DURABILITY_TRANSIENT_LOCAL;
    if (dds_qget_history(qos, &history, &out.depth) && history == DDS_HISTORY_KEEP_ALL) out.depth = 0;
    dds_ownership_kind_t ownership = DDS_OWNERSHIP_SHARED;
    out.is_exclusive = dds_qget_ownership(qos, &ownership) && ownership == DDS_OWNERSHIP_EXCLUSIVE;
    if (out.is_exclusive && !dds_qget_ownership_strength(qos, &out.strength)) out.strength = 0;
    dds_liveliness_kind_t live = DDS_LIVELINESS_AUTOMATIC;
    if (dds_qget_liveliness(qos, &live, &out.lease)) out.liveliness = (us_liveliness)live;
    if (!dds_qget_deadline(qos, &out.deadline) || out.deadline == DDS_INFINITY) out.deadline = 0;
    if (!dds_qget_lifespan(qos, &out.lifespan) || out.lifespan == DDS_INFINITY) out.lifespan = 0;
    if (out.lease == DDS_INFINITY) out.lease = 0;
    return out;
}

// Plain CDR is also the representation of an endpoint that announces none.
static bool speaks(const dds_qos_t *qos, dds_data_representation_id_t version) {
    uint32_t n = 0;
    dds_data_representation_id_t *values = NULL;
    bool has = version == DDS_DATA_REPRESENTATION_XCDR1;
    if (!dds_qget_data_representation(qos, &n, &values)) return has;
    if (n > 0) has = false;
    for (uint32_t i = 0; i < n; i++)
        has = has || values[i] == version;
    dds_free(values);
    return has;
}

static void read_partitions(const dds_qos_t *qos, char *out, size_t cap) {
    uint32_t n = 0;
    char **names = NULL;
    out[0] = 0;
    if (!dds_qget_partition(qos, &n, &names)) return;
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = strlen(out);
        copy_text(out + at, cap - at, i > 0 ? "," : "");
        copy_text(out + strlen(out), cap - strlen(out), names[i]);
        dds_free(names[i]);
    }
    dds_free(names);
}

static void visit_endpoint(const dds_builtintopic_endpoint_t *from, bool is_writer, usi_visit_endpoint *visit,
                           void *context) {
    // The readers of these very questions are endpoints too, of this process alone.
    if (!strncmp(from->topic_name, "DCPS", 4)) return;
    us_endpoint to = {.is_writer = is_writer};
    memcpy(to.id, from->key.v, sizeof to.id);
    memcpy(to.participant, from->participant_key.v, sizeof to.participant);
    copy_text(to.topic, sizeof to.topic, from->topic_name);
    copy_text(to.type, sizeof to.type, from->type_name);
    read_hash(from->qos, to.hash, sizeof to.hash);
    to.dialect = usi_cyclone_dialect_of(from);
    to.qos = read_qos(from->qos);
    read_partitions(from->qos, to.partitions, sizeof to.partitions);
    to.is_xcdr1 = speaks(from->qos, DDS_DATA_REPRESENTATION_XCDR1);
    to.is_xcdr2 = speaks(from->qos, DDS_DATA_REPRESENTATION_XCDR2);
    visit(context, &to);
}

static void visit_participant(const dds_builtintopic_participant_t *from, usi_visit_peer *visit,
                              void *context) {
    usi_vendor_peer to = {.host = ""};
    memcpy(to.id, from->key.v, sizeof to.id);
    void *bytes = NULL;
    char *host = NULL;
    if (dds_qget_userdata(from->qos, &bytes, &to.n_user_data) && bytes) {
        to.user_data = bytes;
    } else {
        to.n_user_data = 0;
    }
    if (dds_qget_prop(from->qos, "__Hostname", &host) && host) to.host = host;
    visit(context, &to);
    dds_free(bytes);
    dds_free(host);
}

typedef struct question {
    dds_entity_t topic;
    bool is_writer;
    usi_visit_endpoint *visit_endpoint;
    usi_visit_peer *visit_peer;
    void *context;
} question;

// What waits in a reader of a built-in topic.
static void take_all(dds_entity_t reader, const question *q) {
    void *samples[MAX_READ] = {NULL};
    dds_sample_info_t info[MAX_READ];
    for (;;) {
        dds_return_t n = dds_take(reader, samples, info, MAX_READ, MAX_READ);
        if (n <= 0) break;
        for (dds_return_t i = 0; i < n; i++) {
            if (!info[i].valid_data || info[i].instance_state != DDS_ALIVE_INSTANCE_STATE) continue;
            if (q->visit_endpoint) {
                visit_endpoint(samples[i], q->is_writer, q->visit_endpoint, q->context);
            } else {
                visit_participant(samples[i], q->visit_peer, q->context);
            }
        }
        dds_return_loan(reader, samples, n);
    }
}

static us_status ask(usi_vendor_participant *p, const question *q) {
    dds_entity_t reader = dds_create_reader(p->participant, q->topic, NULL, NULL);
    if (reader < 0) return US_ERR_IO;
    take_all(reader, q);
    dds_delete(reader);
    return US_OK;
}

static void on_writers(dds_entity_t reader, void *context) {
    usi_vendor_participant *p = context;
    take_all(reader,
             &(question){.is_writer = true, .visit_endpoint = p->on_writer, .context = p->writer_context});
}

us_status usi_cyclone_watch_writers(usi_vendor_participant *p, usi_visit_endpoint *visit, void *context) {
    p->on_writer = visit;
    p->writer_context = context;
    dds_listener_t *listener = dds_create_listener(p);
    dds_lset_data_available(listener, on_writers);
    const dds_entity_t reader =
        dds_create_reader(p->participant, DDS_BUILTIN_TOPIC_DCPSPUBLICATION, NULL, listener);
    dds_delete_listener(listener);
    if (reader < 0) return US_ERR_IO;
    p->watcher = reader;
    on_writers(reader, p);  // those that are known already
    return US_OK;
}

us_status usi_cyclone_list(usi_vendor_participant *p, usi_visit_endpoint *visit, void *context) {
    question q = {.topic = DDS_BUILTIN_TOPIC_DCPSPUBLICATION,
                  .is_writer = true,
                  .visit_endpoint = visit,
                  .context = context};
    us_status status = ask(p, &q);
    if (status) return status;
    q.topic = DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION;
    q.is_writer = false;
    return ask(p, &q);
}

us_status usi_cyclone_list_participants(usi_vendor_participant *p, usi_visit_peer *visit, void *context) {
    question q = {.topic = DDS_BUILTIN_TOPIC_DCPSPARTICIPANT, .visit_peer = visit, .context = context};
    return ask(p, &q);
}

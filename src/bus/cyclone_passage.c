// A reader's history in Cyclone DDS that keeps nothing.
//
// By itself Cyclone sorts what arrives by instances and lets readers ask for it. Who passes samples on wants
// each of them as it comes, the ends of instances too, with the very bytes that came; and of types whose keys
// nobody knows there are no instances to sort by. So such a reader has this in place of a history: what
// Cyclone wants to store goes to the callback at once.
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "bus/cyclone.h"
#include <dds/ddsc/dds_rhc.h>
#include <dds/ddsi/q_protocol.h>

typedef struct passage {
    struct dds_rhc head;
    usi_vendor_endpoint *reader;
    pthread_mutex_t lock;  // samples of two writers may come on two threads
} passage;

// Inside Cyclone the words of an id are the machine's.
static void copy_id(const ddsi_guid_t *guid, uint8_t out[16]) {
    uint32_t words[4] = {htonl(guid->prefix.u[0]), htonl(guid->prefix.u[1]), htonl(guid->prefix.u[2]),
                         htonl(guid->entityid.u)};
    memcpy(out, words, sizeof words);
}

static bool passage_store(struct ddsi_rhc *restrict rhc, const struct ddsi_writer_info *restrict writer,
                          struct ddsi_serdata *restrict data, struct ddsi_tkmap_instance *restrict instance) {
    (void)instance;
    static const us_sample_kind kinds[] = {US_SAMPLE_DATA, US_SAMPLE_DISPOSED, US_SAMPLE_UNREGISTERED,
                                           US_SAMPLE_ENDED};
    passage *p = (passage *)rhc;
    us_sample sample = {.source_time = data->timestamp.v, .kind = kinds[data->statusinfo & 3]};
    sample.bytes = usi_cyclone_view(data, &sample.length);
    copy_id(&writer->guid, sample.writer);
    sample.has_key_hash = usi_cyclone_get_hash(data, sample.key_hash);
    // A sample that is data and an end in one: there is no key alone to pass on.
    if (data->kind == SDK_DATA) sample.kind = US_SAMPLE_DATA;
    if (data->kind == SDK_KEY && sample.kind == US_SAMPLE_DATA) return true;
    pthread_mutex_lock(&p->lock);
    p->reader->on_sample(p->reader->context, &sample);
    pthread_mutex_unlock(&p->lock);
    return true;
}

static void passage_unregister(struct ddsi_rhc *restrict rhc,
                               const struct ddsi_writer_info *restrict writer) {
    (void)rhc;
    (void)writer;
}

static void passage_relinquish(struct ddsi_rhc *restrict rhc, const uint64_t writer) {
    (void)rhc;
    (void)writer;
}

static void passage_set_qos(struct ddsi_rhc *rhc, const struct dds_qos *qos) {
    (void)rhc;
    (void)qos;
}

static void passage_free(struct ddsi_rhc *rhc) {
    passage *p = (passage *)rhc;
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static int32_t passage_read(struct dds_rhc *rhc, bool lock, void **values, dds_sample_info_t *infos,
                            uint32_t max, uint32_t mask, dds_instance_handle_t handle,
                            struct dds_readcond *condition) {
    (void)rhc;
    (void)lock;
    (void)values;
    (void)infos;
    (void)max;
    (void)mask;
    (void)handle;
    (void)condition;
    return 0;
}

static int32_t passage_read_cdr(struct dds_rhc *rhc, bool lock, struct ddsi_serdata **values,
                                dds_sample_info_t *infos, uint32_t max, uint32_t sample_states,
                                uint32_t view_states, uint32_t instance_states,
                                dds_instance_handle_t handle) {
    (void)rhc;
    (void)lock;
    (void)values;
    (void)infos;
    (void)max;
    (void)sample_states;
    (void)view_states;
    (void)instance_states;
    (void)handle;
    return 0;
}

static bool passage_add_condition(struct dds_rhc *rhc, struct dds_readcond *condition) {
    (void)rhc;
    (void)condition;
    return false;
}

static void passage_remove_condition(struct dds_rhc *rhc, struct dds_readcond *condition) {
    (void)rhc;
    (void)condition;
}

static uint32_t passage_lock_samples(struct dds_rhc *rhc) {
    (void)rhc;
    return 0;
}

static dds_return_t passage_associate(struct dds_rhc *rhc, struct dds_reader *reader,
                                      const struct ddsi_sertype *type, struct ddsi_tkmap *instances) {
    (void)rhc;
    (void)reader;
    (void)type;
    (void)instances;
    return DDS_RETCODE_OK;
}

static const struct dds_rhc_ops passage_ops = {
    .rhc_ops = {.store = passage_store,
                .unregister_wr = passage_unregister,
                .relinquish_ownership = passage_relinquish,
                .set_qos = passage_set_qos,
                .free = passage_free},
    .read = passage_read,
    .take = passage_read,
    .readcdr = passage_read_cdr,
    .takecdr = passage_read_cdr,
    .add_readcondition = passage_add_condition,
    .remove_readcondition = passage_remove_condition,
    .lock_samples = passage_lock_samples,
    .associate = passage_associate,
};

struct dds_rhc *usi_cyclone_passage(usi_vendor_endpoint *reader) {
    passage *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->head.common.ops = &passage_ops;
    p->reader = reader;
    pthread_mutex_init(&p->lock, NULL);
    return &p->head;
}

// The bus: one participant, its nodes, writers and readers, the same for every vendor.
#include "bus/bus.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/monotonic_cond.h"
#include "bus/descriptors.h"
#include "bus/local_socket.h"
#include "bus/request.h"
#include "understudy/keys.h"
#include "wire/cdr.h"
#include "wire/member.h"

enum { MAX_DOMAIN = 232, MAX_PEER = 128, MAX_ENCLAVE = 200 };

static const char graph_topic[] = "ros_discovery_info";
static const char graph_type[] = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
static const char graph_hash[] =
    "typehash=RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e;";

// ---- open and close ----

static us_status check_def(const us_bus_def *def, us_error *err) {
    if (!def->allocator.alloc || !def->allocator.release) {
        return us_error_set(err, US_ERR_ARG, NULL, "Begin with us_bus_def_default().",
                            "a bus needs an allocator");
    }
    if (def->domain < 0 || def->domain > MAX_DOMAIN) {
        return us_error_set(err, US_ERR_VALUE, NULL, "Domains are 0 to 232.", "invalid domain %d",
                            def->domain);
    }
    if ((unsigned)def->range > (unsigned)US_BUS_SYSTEM_DEFAULT)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "unknown range of discovery %d", (int)def->range);
    if (def->n_peer < 0 || def->n_peer > MAX_PEER || (def->n_peer > 0 && !def->peers)) {
        return us_error_set(err, US_ERR_LIMIT, NULL, "List at most 128 peers.", "too many peers: %d",
                            def->n_peer);
    }
    for (int32_t i = 0; i < def->n_peer; i++) {
        const char *peer = def->peers[i];
        // Names and addresses only: the text goes into a vendor's settings.
        if (!peer || !peer[0] || strlen(peer) > 255 ||
            strspn(peer, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_[]") !=
                strlen(peer)) {
            return us_error_set(err, US_ERR_VALUE, NULL,
                                "Write addresses like 192.168.0.7 or names like rover.local.",
                                "invalid peer address \"%.100s\"", peer ? peer : "");
        }
    }
    if (def->enclave && (strlen(def->enclave) > MAX_ENCLAVE || strpbrk(def->enclave, ";="))) {
        return us_error_set(err, US_ERR_VALUE, NULL, "Write a short name like / or /rover.",
                            "invalid enclave \"%.100s\"", def->enclave);
    }
    return US_OK;
}

static void on_graph_sample(void *context, const us_sample *sample) {
    us_bus *bus = context;
    // own messages come back too
    if (sample->length >= 4 + USI_ID_LENGTH &&
        !memcmp((const uint8_t *)sample->bytes + 4, bus->id, USI_ID_LENGTH))
        return;
    unsigned int layout = 0;
    if (usi_graph_take(&bus->graph, sample->bytes, sample->length, &layout)) return;
    pthread_mutex_lock(&bus->wait_lock);
    if (!(bus->heard_layouts & layout)) {
        bus->heard_layouts |= layout;
        pthread_cond_signal(&bus->attend_cond);
    }
    pthread_mutex_unlock(&bus->wait_lock);
}

static void publish_layout(us_bus *bus, unsigned int layout) {
    size_t length = usi_graph_encode(bus, layout, NULL);
    if (length > bus->cap_graph_bytes) {
        size_t cap = 2 * length;
        void *bytes = usi_alloc(&bus->allocator, cap, _Alignof(max_align_t));
        if (!bytes) return;
        usi_release(&bus->allocator, bus->graph_bytes, bus->cap_graph_bytes, _Alignof(max_align_t));
        bus->graph_bytes = bytes;
        bus->cap_graph_bytes = cap;
    }
    usi_graph_encode(bus, layout, bus->graph_bytes);
    bus->vendor->write(bus->graph_writer, bus->graph_bytes, length, 0);
}

// Publishes the current nodes and endpoints on ros_discovery_info. The bus is locked. Where the vendor cannot
// send it, endpoints have no node name and still work: no error.
void usi_bus_publish_graph(us_bus *bus) {
    if (!bus->graph_writer || bus->n_pause > 0) return;
    if (bus->layouts & USI_LAYOUT_HUMBLE) publish_layout(bus, USI_LAYOUT_HUMBLE);
    if (bus->layouts & USI_LAYOUT_LATER) publish_layout(bus, USI_LAYOUT_LATER);
}

void usi_bus_pause_graph(us_bus *bus) {
    pthread_mutex_lock(&bus->lock);
    bus->n_pause++;
    pthread_mutex_unlock(&bus->lock);
}

void usi_bus_resume_graph(us_bus *bus) {
    pthread_mutex_lock(&bus->lock);
    bus->n_pause--;
    usi_bus_publish_graph(bus);
    pthread_mutex_unlock(&bus->lock);
}

static us_status join_graph(us_bus *bus, us_error *err) {
    usi_vendor_endpoint_def def = {
        .topic = graph_topic,
        .type = graph_type,
        .user_data = bus->layouts == USI_LAYOUT_HUMBLE ? "" : graph_hash,
        // Who comes later hears both layouts.
        .qos = {.is_reliable = true, .is_transient_local = true, .depth = 2},
    };
    if (!bus->hide_from_graph) {
        us_status status = bus->vendor->add_writer(bus->participant, &def, &bus->graph_writer, err);
        if (status) return status;
        pthread_mutex_lock(&bus->attend_lock);
        status = usi_attend(bus);
        pthread_mutex_unlock(&bus->attend_lock);
        if (status) return us_error_set(err, status, NULL, "End other programs.", "no thread for a bus");
    }
    // Keep all: every participant writes the same instance, and a short history would lose one's message to
    // the next one's.
    def.qos.depth = 0;
    def.on_sample = on_graph_sample;
    def.context = bus;
    return bus->vendor->add_reader(bus->participant, &def, &bus->graph_reader, err);
}

// On the network of the definition's range: where that is this machine, no other can reach its sockets.
static us_status open_participant(us_bus *bus, const usi_vendor_open *open, us_error *err) {
    if (!usi_range_is_local(open->range)) return bus->vendor->open(open, &bus->participant, err);
    us_status status = usi_local_sockets_begin(open->peers, open->n_peer, err);
    if (status) return status;
    status = bus->vendor->open(open, &bus->participant, err);
    const int32_t n_socket = usi_local_sockets_end();
    if (status || n_socket > 0) return status;
    const char *uri = getenv("CYCLONEDDS_URI");
    const bool is_set = uri && uri[0] && bus->vendor == usi_cyclone_vendor();
    return us_error_set(
        err, US_ERR_IO, NULL,
        n_socket == 0 && is_set
            ? "leave TCP out of CYCLONEDDS_URI, or set ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET to be reached "
              "from "
              "elsewhere"
            : "use a kernel with socket filters (Linux), and link so that this library's bind is found "
              "before the C library's",
        "the sockets of %s cannot be kept to this machine", bus->vendor->name);
}

us_status us_bus_open(const us_bus_def *def, us_bus **out_bus, us_error *err) {
    if (!def || !out_bus)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "us_bus_open needs a definition and a place for the bus");
    *out_bus = NULL;
    us_status status = check_def(def, err);
    if (!status) status = usi_need_descriptors("the network", err);
    if (status) return status;
    const usi_vendor *vendor = usi_cyclone_vendor();
    const char *name = def->vendor && def->vendor[0] ? def->vendor : "cyclone";
    if (strcmp(name, "cyclone") != 0) {
        if (strcmp(name, "fastdds") != 0) {
            return us_error_set(err, US_ERR_NAME, NULL, "Write \"cyclone\" or \"fastdds\".",
                                "unknown DDS vendor \"%.60s\"", name);
        }
        if ((status = usi_vendor_load(name, &vendor, err))) return status;
    }

    us_bus *bus = usi_alloc(&def->allocator, sizeof *bus, _Alignof(us_bus));
    if (!bus) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a bus");
    memset(bus, 0, sizeof *bus);
    bus->allocator = def->allocator;
    bus->vendor = vendor;
    bus->domain = def->domain;
    bus->layouts = def->use_humble_gid ? USI_LAYOUT_HUMBLE : USI_LAYOUT_LATER;
    bus->hide_from_graph = def->hide_from_graph;
    pthread_mutex_init(&bus->lock, NULL);
    pthread_mutex_init(&bus->attend_lock, NULL);
    pthread_mutex_init(&bus->wait_lock, NULL);
    if (!usi_cond_init(&bus->wait_cond) || !usi_cond_init(&bus->attend_cond) ||
        usi_bus_copy_make(def, &bus->copy) || usi_graph_init(&bus->graph, &bus->allocator)) {
        status = US_ERR_MEMORY;
        usi_bus_copy_release(&bus->copy);
        usi_release(&def->allocator, bus, sizeof *bus, _Alignof(us_bus));
        return us_error_set(err, status, NULL, NULL, "no memory for a bus");
    }
    char user_data[MAX_ENCLAVE + 16];
    snprintf(user_data, sizeof user_data, "enclave=%s;", def->enclave ? def->enclave : "/");
    usi_vendor_open open = {.allocator = def->allocator,
                            .domain = def->domain,
                            .range = def->range,
                            .n_peer = def->n_peer,
                            .peers = def->peers,
                            .user_data = user_data,
                            .keys = def->keys};
    status = def->keys ? us_enclave_check(def->keys, def->domain, err) : US_OK;
    if (!status) status = open_participant(bus, &open, err);
    if (!status) {
        vendor->get_id(bus->participant, bus->id);
        status = join_graph(bus, err);
    }
    if (status) {
        us_bus_close(bus);
        return status;
    }
    *out_bus = bus;
    return US_OK;
}

us_status us_bus_set_linger(us_bus *bus, double seconds) {
    if (!bus || !(seconds >= 0 && seconds <= 1e6)) return US_ERR_ARG;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    bus->vendor->set_linger(bus->participant,
                            (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + (int64_t)(1e9 * seconds));
    pthread_mutex_lock(&bus->attend_lock);
    if (bus->twin) us_bus_set_linger(bus->twin, seconds);
    pthread_mutex_unlock(&bus->attend_lock);
    return US_OK;
}

static void release_writer(us_writer *writer) {
    us_bus *bus = writer->bus;
    bus->vendor->remove(writer->endpoint);
    usi_release(&bus->allocator, writer, sizeof *writer, _Alignof(us_writer));
}

static void release_reader(us_reader *reader) {
    us_bus *bus = reader->bus;
    bus->vendor->remove(reader->endpoint);
    usi_release(&bus->allocator, reader, sizeof *reader, _Alignof(us_reader));
}

void us_bus_close(us_bus *bus) {
    if (!bus) return;
    us_reader *readers = bus->readers;
    us_writer *writers = bus->writers;
    usi_attend_end(bus);
    us_bus_close(bus->twin);
    bus->readers = NULL;
    bus->writers = NULL;
    bus->n_node = 0;
    usi_bus_publish_graph(bus);  // the nodes before their endpoints
    for (us_reader *next; readers; readers = next) {
        next = readers->next;
        release_reader(readers);
    }
    for (us_writer *next; writers; writers = next) {
        next = writers->next;
        release_writer(writers);
    }
    if (bus->graph_reader) bus->vendor->remove(bus->graph_reader);
    if (bus->graph_writer) bus->vendor->remove(bus->graph_writer);
    if (bus->participant) bus->vendor->close(bus->participant);
    usi_graph_fini(&bus->graph);
    usi_release(&bus->allocator, bus->graph_bytes, bus->cap_graph_bytes, _Alignof(max_align_t));
    usi_release(&bus->allocator, bus->nodes, (size_t)bus->cap_node * sizeof *bus->nodes,
                _Alignof(max_align_t));
    usi_bus_copy_release(&bus->copy);
    pthread_cond_destroy(&bus->wait_cond);
    pthread_cond_destroy(&bus->attend_cond);
    pthread_mutex_destroy(&bus->wait_lock);
    pthread_mutex_destroy(&bus->attend_lock);
    pthread_mutex_destroy(&bus->lock);
    us_allocator allocator = bus->allocator;
    usi_release(&allocator, bus, sizeof *bus, _Alignof(us_bus));
}

const char *us_bus_vendor(const us_bus *bus) { return bus ? bus->vendor->name : ""; }
int32_t us_bus_domain(const us_bus *bus) { return bus ? bus->domain : -1; }

// ---- nodes, writers, readers ----

us_status us_bus_add_node(us_bus *bus, const char *namespace_, const char *name, int32_t *out_node,
                          us_error *err) {
    if (!bus || !out_node)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "us_bus_add_node needs a bus and a place for the node");
    usi_graph_node node;
    us_status status = usi_graph_node_check(namespace_, name, &node, err);
    if (status) return status;
    pthread_mutex_lock(&bus->lock);
    for (int32_t i = 0; i < bus->n_node && !status; i++) {
        if (!memcmp(&bus->nodes[i], &node, sizeof node)) {
            status = us_error_set(err, US_ERR_NAME, NULL, "Give each node a name of its own.",
                                  "there is already a node %s in %s", node.name, node.namespace_);
        }
    }
    int32_t free_one = 0;
    while (free_one < bus->n_node && bus->nodes[free_one].name[0])
        free_one++;
    void *nodes = bus->nodes;
    if (!status && free_one == bus->n_node &&
        (status = usi_grow(&bus->allocator, &nodes, bus->n_node, &bus->cap_node, sizeof node))) {
        us_error_set(err, status, NULL, NULL, "no memory for a node");
    }
    if (!status) {
        bus->nodes = nodes;
        bus->nodes[free_one] = node;
        *out_node = free_one;
        if (free_one == bus->n_node) bus->n_node++;
        usi_bus_publish_graph(bus);
    }
    pthread_mutex_unlock(&bus->lock);
    return status;
}

void usi_bus_remove_node(us_bus *bus, int32_t node) {
    pthread_mutex_lock(&bus->lock);
    if (node >= 0 && node < bus->n_node) {
        memset(&bus->nodes[node], 0, sizeof bus->nodes[node]);
        usi_bus_publish_graph(bus);
    }
    pthread_mutex_unlock(&bus->lock);
}

// The definition of an endpoint in the vendor's words. `topic` and `user_data` get its texts.
static us_status translate(us_bus *bus, const us_topic_def *def, const usi_endpoint_more *more,
                           char topic[USI_NAME_LENGTH], char user_data[USI_NAME_LENGTH],
                           usi_vendor_endpoint_def *out, us_error *err) {
    if (!bus || !def)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "an endpoint needs a bus and a definition");
    if (!def->type) {
        return us_error_set(err, US_ERR_ARG, NULL,
                            "us_message_find gives the type of a name, or NULL when it is unknown.",
                            "topic %.200s has no type", def->topic ? def->topic : "");
    }
    us_status status = usi_topic_to_dds(def->topic, topic, err);
    if (status) return status;
    if (def->qos.depth < 0)
        return us_error_set(err, US_ERR_VALUE, NULL, "0 keeps all.", "topic %.200s cannot keep %d samples",
                            def->topic, def->qos.depth);
    pthread_mutex_lock(&bus->lock);
    bool has_node =
        def->node == -1 || (def->node >= 0 && def->node < bus->n_node && bus->nodes[def->node].name[0]);
    pthread_mutex_unlock(&bus->lock);
    if (!has_node)
        return us_error_set(err, US_ERR_ARG, NULL, "us_bus_add_node gives nodes; -1 is none.",
                            "there is no node %d", def->node);
    const char *hash = us_message_hash(def->type);
    const bool has_hash = hash && hash[0];
    snprintf(user_data, USI_NAME_LENGTH, "%s%.80s%s%.120s", has_hash ? "typehash=" : "", has_hash ? hash : "",
             has_hash ? ";" : "", more->user_data);
    *out = (usi_vendor_endpoint_def){.topic = topic,
                                     .type = us_message_dds_name(def->type),
                                     .user_data = user_data,
                                     .qos = def->qos,
                                     .key = def->type->has_key && !def->type->is_opaque ? usi_key_read : NULL,
                                     .key_type = def->type,
                                     .key_bound = usi_key_bound(def->type),
                                     .is_keyed = def->type->has_key && def->type->is_opaque,
                                     .is_xcdr2 = def->type->is_xcdr2,
                                     .has_ends = def->type->has_key && def->type->is_opaque,
                                     .meeting = more->meeting};
    return US_OK;
}

us_status usi_bus_add_writer(us_bus *bus, const us_topic_def *def, const usi_endpoint_more *more,
                             us_writer **out_writer, us_error *err) {
    if (!out_writer)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "us_bus_add_writer needs a place for the writer");
    *out_writer = NULL;
    char topic[USI_NAME_LENGTH], user_data[USI_NAME_LENGTH];
    usi_vendor_endpoint_def vendor_def;
    us_status status = translate(bus, def, more, topic, user_data, &vendor_def, err);
    if (status) return status;
    us_writer *writer = usi_alloc(&bus->allocator, sizeof *writer, _Alignof(us_writer));
    if (!writer) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a writer");
    *writer = (us_writer){.bus = bus, .type = def->type, .node = def->node};
    if ((status = bus->vendor->add_writer(bus->participant, &vendor_def, &writer->endpoint, err))) {
        usi_release(&bus->allocator, writer, sizeof *writer, _Alignof(us_writer));
        return status;
    }
    bus->vendor->get_endpoint_id(writer->endpoint, writer->id);
    pthread_mutex_lock(&bus->lock);
    us_writer **last = &bus->writers;
    while (*last)
        last = &(*last)->next;
    *last = writer;
    usi_bus_publish_graph(bus);
    pthread_mutex_unlock(&bus->lock);
    *out_writer = writer;
    return US_OK;
}

// A sample arrived in a reader without callback: wakes us_bus_wait, or the attendant.
static void signal_sample(void *context) {
    us_reader *reader = context;
    us_bus *bus = reader->bus->outer ? reader->bus->outer : reader->bus;
    pthread_mutex_lock(&bus->wait_lock);
    atomic_store(&reader->has_arrival, true);
    if (atomic_load(&reader->is_attended)) {
        bus->n_call++;
        pthread_cond_signal(&bus->attend_cond);
    } else {
        bus->n_arrival++;
        pthread_cond_broadcast(&bus->wait_cond);
    }
    pthread_mutex_unlock(&bus->wait_lock);
}

us_status usi_bus_add_reader(us_bus *bus, const us_topic_def *def, const usi_endpoint_more *more,
                             us_sample_function *on_sample, void *context, us_reader **out_reader,
                             us_error *err) {
    if (!out_reader)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "us_bus_add_reader needs a place for the reader");
    *out_reader = NULL;
    char topic[USI_NAME_LENGTH], user_data[USI_NAME_LENGTH];
    usi_vendor_endpoint_def vendor_def;
    us_status status = translate(bus, def, more, topic, user_data, &vendor_def, err);
    if (status) return status;
    us_reader *reader = usi_alloc(&bus->allocator, sizeof *reader, _Alignof(us_reader));
    if (!reader) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a reader");
    *reader = (us_reader){.bus = bus, .node = def->node, .has_callback = on_sample != NULL};
    vendor_def.on_sample = on_sample;
    vendor_def.on_data = signal_sample;
    vendor_def.context = on_sample ? context : reader;
    if ((status = bus->vendor->add_reader(bus->participant, &vendor_def, &reader->endpoint, err))) {
        usi_release(&bus->allocator, reader, sizeof *reader, _Alignof(us_reader));
        return status;
    }
    bus->vendor->get_endpoint_id(reader->endpoint, reader->id);
    pthread_mutex_lock(&bus->lock);
    us_reader **last = &bus->readers;
    while (*last)
        last = &(*last)->next;
    *last = reader;
    usi_bus_publish_graph(bus);
    pthread_mutex_unlock(&bus->lock);
    *out_reader = reader;
    return US_OK;
}

static const usi_endpoint_more no_more = {.meeting = USI_MEET_ALL, .user_data = ""};

us_status us_bus_add_writer(us_bus *bus, const us_topic_def *def, us_writer **out_writer, us_error *err) {
    return usi_bus_add_writer(bus, def, &no_more, out_writer, err);
}

us_status us_bus_add_reader(us_bus *bus, const us_topic_def *def, us_sample_function *on_sample,
                            void *context, us_reader **out_reader, us_error *err) {
    return usi_bus_add_reader(bus, def, &no_more, on_sample, context, out_reader, err);
}

void us_writer_remove(us_writer *writer) {
    if (!writer) return;
    us_bus *bus = writer->bus;
    pthread_mutex_lock(&bus->lock);
    us_writer **at = &bus->writers;
    while (*at && *at != writer)
        at = &(*at)->next;
    if (*at) *at = writer->next;
    usi_bus_publish_graph(bus);
    pthread_mutex_unlock(&bus->lock);
    release_writer(writer);
}

void us_reader_remove(us_reader *reader) {
    if (!reader) return;
    us_bus *bus = reader->bus;
    pthread_mutex_lock(&bus->lock);
    us_reader **at = &bus->readers;
    while (*at && *at != reader)
        at = &(*at)->next;
    if (*at) *at = reader->next;
    usi_bus_publish_graph(bus);
    pthread_mutex_unlock(&bus->lock);
    release_reader(reader);
}

// ---- samples ----

// Whether the bytes are a message of the type: a walk over them without keeping anything.
bool usi_is_message(const us_message_type *type, const void *bytes, size_t length) {
    usi_cdr cdr;
    if (type->is_opaque) return length >= 4;  // the header
    if (usi_cdr_open(&cdr, type, bytes, length, NULL)) return false;
    return usi_cdr_skip_message(&cdr, type) && usi_cdr_end(&cdr);
}

us_status us_writer_write(us_writer *writer, const void *bytes, size_t length, int64_t source_time) {
    if (!writer || !bytes) return US_ERR_ARG;
    if (!usi_is_message(writer->type, bytes, length)) return US_ERR_SYNTAX;
    return usi_writer_send(writer, bytes, length, source_time);
}

us_status usi_writer_send(us_writer *writer, const void *bytes, size_t length, int64_t source_time) {
    if (writer->service) return usi_service_send(writer->service, bytes, length);
    return writer->bus->vendor->write(writer->endpoint, bytes, length, source_time);
}

void *usi_bus_hold(const us_bus *bus, const us_sample *sample) {
    return bus->vendor->hold ? bus->vendor->hold(sample) : NULL;
}

void usi_bus_release(const us_bus *bus, void *held) {
    if (held) bus->vendor->release(held);
}

us_status usi_writer_pass(us_writer *writer, const us_bus *from, void *held, const us_sample *sample) {
    const usi_vendor *vendor = writer->bus->vendor;
    const bool is_data = sample->kind == US_SAMPLE_DATA;
    if (is_data && !usi_is_message(writer->type, sample->bytes, sample->length)) return US_ERR_SYNTAX;
    if (is_data && held && from->vendor == vendor)
        return vendor->write_held(writer->endpoint, held, sample->source_time);
    int64_t sequence = 0;
    return vendor->write_sample(writer->endpoint, sample, &sequence);
}

int32_t us_writer_n_match(us_writer *writer) {
    return writer ? writer->bus->vendor->n_match(writer->endpoint) : 0;
}
int32_t us_reader_n_match(us_reader *reader) {
    return reader ? reader->bus->vendor->n_match(reader->endpoint) : 0;
}

us_status us_reader_take(us_reader *reader, void *buf, size_t cap, size_t *out_length,
                         us_sample *out_sample) {
    if (!reader || !out_length || (!buf && cap) || reader->has_callback) return US_ERR_ARG;
    return reader->bus->vendor->take(reader->endpoint, buf, cap, out_length, out_sample);
}

// Whether a sample waits in a reader that stirred since it was last found empty. The flag goes down before
// the reader is looked at: what comes in between raises it again.
static bool look(us_bus *bus) {
    bool has = false;
    pthread_mutex_lock(&bus->lock);
    for (us_reader *r = bus->readers; r && !has; r = r->next) {
        if (r->has_callback || atomic_load(&r->is_attended) || !atomic_exchange(&r->has_arrival, false))
            continue;
        has = bus->vendor->has_sample(r->endpoint);
        if (has) atomic_store(&r->has_arrival, true);
    }
    pthread_mutex_unlock(&bus->lock);
    return has;
}

static bool look_at_twin(us_bus *bus) {
    us_bus *twin = atomic_load(&bus->twin);
    return twin && look(twin);
}

bool us_bus_wait(us_bus *bus, double timeout) {
    if (!bus) return false;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    double whole = timeout > 0 && timeout < 1e9 ? floor(timeout) : timeout > 0 ? 1e9 : 0;
    int64_t ns = until.tv_nsec + (timeout > 0 && timeout < 1e9 ? (int64_t)((timeout - whole) * 1e9) : 0);
    until.tv_sec += (time_t)whole + (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    for (;;) {
        pthread_mutex_lock(&bus->wait_lock);
        uint64_t seen = bus->n_arrival;
        pthread_mutex_unlock(&bus->wait_lock);
        if (look(bus) || look_at_twin(bus)) return true;
        // Whatever came since `seen` was read ends the sleep at once.
        int failed = 0;
        pthread_mutex_lock(&bus->wait_lock);
        while (bus->n_arrival == seen && !failed)
            failed = pthread_cond_timedwait(&bus->wait_cond, &bus->wait_lock, &until);
        bool is_over = bus->n_arrival == seen;
        pthread_mutex_unlock(&bus->wait_lock);
        if (is_over) return false;
    }
}

// ---- the network ----

typedef struct listing {
    us_bus *bus;
    int32_t n, cap;
    us_endpoint *endpoints;
    us_participant *participants;
    us_status status;
} listing;

static void collect_endpoint(void *context, const us_endpoint *endpoint) {
    listing *list = context;
    void *array = list->endpoints;
    if (list->status ||
        (list->status = usi_grow(&list->bus->allocator, &array, list->n, &list->cap, sizeof *endpoint)))
        return;
    list->endpoints = array;
    list->endpoints[list->n++] = *endpoint;
}

static int compare_endpoints(const void *a, const void *b) {
    return memcmp(((const us_endpoint *)a)->id, ((const us_endpoint *)b)->id, USI_ID_LENGTH);
}

static void find_own_node(us_bus *bus, us_endpoint *e) {
    int32_t node = -1;
    pthread_mutex_lock(&bus->lock);
    for (const us_writer *w = bus->writers; w; w = w->next) {
        if (!memcmp(w->id, e->id, USI_ID_LENGTH)) node = w->node;
    }
    for (const us_reader *r = bus->readers; r; r = r->next) {
        if (!memcmp(r->id, e->id, USI_ID_LENGTH)) node = r->node;
    }
    if (node >= 0) usi_graph_node_full_name(&bus->nodes[node], e->node);
    pthread_mutex_unlock(&bus->lock);
}

// Of this bus or its twin.
static bool is_own(us_bus *bus, const uint8_t participant[USI_ID_LENGTH]) {
    const us_bus *twin = atomic_load(&bus->twin);
    return !memcmp(participant, bus->id, USI_ID_LENGTH) ||
           (twin && !memcmp(participant, twin->id, USI_ID_LENGTH));
}

// The last byte of an id says what it is of: a writer or a reader, with keys or without.
static bool has_keyed_id(const us_endpoint *e) {
    enum { KEYED_WRITER = 2, KEYED_READER = 7, KIND = 0x3f };
    return (e->id[USI_ID_LENGTH - 1] & KIND) == (e->is_writer ? KEYED_WRITER : KEYED_READER);
}

us_status us_bus_list(us_bus *bus, us_endpoint *out, int32_t cap, int32_t *out_n) {
    if (!bus || !out_n || cap < 0 || (cap && !out)) return US_ERR_ARG;
    listing list = {.bus = bus};
    us_status status = bus->vendor->list(bus->participant, collect_endpoint, &list);
    if (!status) status = list.status;
    if (!status) {
        if (list.n) qsort(list.endpoints, (size_t)list.n, sizeof *list.endpoints, compare_endpoints);
        for (int32_t i = 0; i < list.n && i < cap; i++) {
            out[i] = list.endpoints[i];
            out[i].is_own = is_own(bus, out[i].participant);
            out[i].is_keyed = has_keyed_id(&out[i]);
            if (out[i].is_own) {
                find_own_node(bus, &out[i]);
            } else {
                usi_graph_find_node(&bus->graph, out[i].participant, out[i].id, out[i].node);
            }
        }
        *out_n = list.n;
    }
    usi_release(&bus->allocator, list.endpoints, (size_t)list.cap * sizeof *list.endpoints,
                _Alignof(max_align_t));
    return status;
}

// Vendors begin the ids of their participants with the number that the standard gave them, where these have
// no keys.
static void name_vendor(us_participant *p, const us_bus *bus, unsigned int number) {
    if (number == 0 && !usi_id_is_hashed(p->id)) number = (unsigned int)p->id[0] << 8 | p->id[1];
    const us_bus *owner = memcmp(p->id, bus->id, USI_ID_LENGTH) ? atomic_load(&bus->twin) : bus;
    if (p->is_own && owner) {
        snprintf(p->vendor, sizeof p->vendor, "%s", owner->vendor->name);
    } else if (number == 0x0110) {
        snprintf(p->vendor, sizeof p->vendor, "cyclone");
    } else if (number == 0x010f) {
        snprintf(p->vendor, sizeof p->vendor, "fastdds");
    } else if (number != 0) {
        snprintf(p->vendor, sizeof p->vendor, "%04x", number);
    }
}

static void collect_participant(void *context, const usi_vendor_peer *peer) {
    listing *list = context;
    us_bus *bus = list->bus;
    us_participant p = {0};
    memcpy(p.id, peer->id, USI_ID_LENGTH);
    p.is_own = is_own(bus, p.id);
    snprintf(p.host, sizeof p.host, "%s", peer->host);
    usi_user_data_get(peer->user_data, peer->n_user_data, "enclave", p.enclave, sizeof p.enclave);
    name_vendor(&p, bus, peer->vendor);
    if (!memcmp(p.id, bus->id, USI_ID_LENGTH)) {
        pthread_mutex_lock(&bus->lock);
        for (int32_t i = 0; i < bus->n_node; i++)
            p.n_node += bus->nodes[i].name[0] != 0;
        pthread_mutex_unlock(&bus->lock);
    } else {
        p.n_node = usi_graph_count_nodes(&bus->graph, p.id);
    }
    void *array = list->participants;
    if (list->status || (list->status = usi_grow(&bus->allocator, &array, list->n, &list->cap, sizeof p)))
        return;
    list->participants = array;
    list->participants[list->n++] = p;
}

static int compare_participants(const void *a, const void *b) {
    return memcmp(((const us_participant *)a)->id, ((const us_participant *)b)->id, USI_ID_LENGTH);
}

us_status us_bus_list_participants(us_bus *bus, us_participant *out, int32_t cap, int32_t *out_n) {
    if (!bus || !out_n || cap < 0 || (cap && !out)) return US_ERR_ARG;
    listing list = {.bus = bus};
    us_status status = bus->vendor->list_participants(bus->participant, collect_participant, &list);
    if (!status) status = list.status;
    if (!status) {
        if (list.n) qsort(list.participants, (size_t)list.n, sizeof *list.participants, compare_participants);
        for (int32_t i = 0; i < list.n && i < cap; i++)
            out[i] = list.participants[i];
        *out_n = list.n;
    }
    usi_release(&bus->allocator, list.participants, (size_t)list.cap * sizeof *list.participants,
                _Alignof(max_align_t));
    return status;
}

// The vendor Cyclone DDS: a domain, a participant, readers and writers of bytes.
//
// Each bus has a Cyclone domain of its own, with its own sockets, threads and settings. Cyclone knows a
// domain by a number, once per process; a second bus on the same network domain gets another number inside
// and the same one outside (ExternalDomainId). So buses of one process meet over the loopback like buses of
// two, and closing one never touches the other.
//
// Samples come on Cyclone's receiving thread, through the listener of the reader: no thread is woken between
// the socket and the callback. The rules for callbacks follow from that: short, and never a call to the bus
// (a write that blocks there would wait for the acknowledgement that the same thread has to receive).
//
// A writer keeps the last samples and overwrites; no reader may hold it up. Cyclone by itself stops a writer
// that has more than some hundred kilobytes unacknowledged, whichever reader does not acknowledge: that
// limit is raised here beyond all that a history holds.
#include "bus/cyclone.h"

#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "bus/bus.h"
#include "understudy/keys.h"
#include <dds/ddsc/dds_rhc.h>

enum {
    MAX_CONFIG = 16384,
    MAX_TAKE = 32,        // samples per look into a reader's history
    INNER_DOMAIN = 1000,  // numbers of further domains of this process; the network's end at 232
    MAX_INNER_DOMAIN = 1256,
    MAX_KEYED_DOMAIN = 230,  // of those that keys can be meant for
    MAX_MATCH = 256,         // endpoints whose vendor is looked at
};
// A write that has to wait longer than this gives up.
#define MAX_BLOCKING DDS_MSECS(1)
// How long the removal of a writer waits for readers to acknowledge, where no time was set.
#define LINGER DDS_SECS(1)

// ---- messages of Cyclone ----

// Cyclone has one log for the process and prints it on stderr by default; a library does not print. The last
// line is kept, because only there Cyclone says what is wrong with its settings.

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_line[400];

static void keep_log(void *context, const dds_log_data_t *data) {
    (void)context;
    pthread_mutex_lock(&log_lock);
    size_t n = data->size < sizeof log_line - 1 ? data->size : sizeof log_line - 1;
    memcpy(log_line, data->message, n);
    while (n > 0 && (log_line[n - 1] == '\n' || log_line[n - 1] == ' '))
        n--;
    log_line[n] = 0;
    pthread_mutex_unlock(&log_lock);
}

static void clear_log(void) {
    dds_set_log_sink(keep_log, NULL);
    pthread_mutex_lock(&log_lock);
    log_line[0] = 0;
    pthread_mutex_unlock(&log_lock);
}

static us_status fail(us_error *err, dds_return_t code, const char *remedy, const char *what) {
    char line[sizeof log_line];
    pthread_mutex_lock(&log_lock);
    memcpy(line, log_line, sizeof line);
    pthread_mutex_unlock(&log_lock);
    us_status status = code == DDS_RETCODE_OUT_OF_RESOURCES ? US_ERR_MEMORY : US_ERR_IO;
    return us_error_set(err, status, NULL, remedy, "%s: %s%s%s", what, dds_strretcode(code),
                        line[0] ? ": " : "", line);
}

// ---- settings ----

typedef struct text {
    char *bytes;
    size_t length, cap;
} text;

US_PRINTF(2, 3) static void add(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t room = t->length < t->cap ? t->cap - t->length : 0;
    int n = vsnprintf(room ? t->bytes + t->length : NULL, room, format, args);
    va_end(args);
    if (n > 0) t->length += (size_t)n;
}

// Cyclone's settings for a range are those of rmw_cyclonedds_cpp, as far as they stay on the machine.
//
// A program of this machine is found by its port, when it has one of those that participants take in turn, or
// by multicast; it may use the loopback alone, or the interface that Cyclone chooses by itself. So a bus in a
// local range announces itself on both; its multicast goes to the loopback (bus/local_socket.h), where all
// hear it. Cyclone has multicast on all of its interfaces or on none.

static void add_local_interfaces(text *t, us_bus_range range, bool has_network) {
    const bool has_multicast = range == US_BUS_LOCALHOST;
    const char *multicast = has_multicast ? "true" : "false";
    add(t, "<Interfaces><NetworkInterface name=\"lo\" multicast=\"%s\"/>", multicast);
    if (has_network && range != US_BUS_OFF)
        add(t, "<NetworkInterface autodetermine=\"true\" multicast=\"%s\"/>", multicast);
    add(t, "</Interfaces><AllowMulticast>%s</AllowMulticast><MulticastTimeToLive>0</MulticastTimeToLive>",
        has_multicast ? "spdp" : "false");
    // On the loopback nothing is gained by cutting samples into what an Ethernet frame holds.
    add(t, "<MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize>");
}

// A tag separates a bus that wants nobody from all others.
static void add_discovery(text *t, const usi_vendor_open *def) {
    if (def->range == US_BUS_SYSTEM_DEFAULT) return;
    if (def->range == US_BUS_OFF) {
        // The address of the definition distinguishes the buses of one process.
        add(t, "<Tag>understudy_%ld_%" PRIuPTR "</Tag><ParticipantIndex>none</ParticipantIndex>",
            (long)getpid(), (uintptr_t)def);
        return;
    }
    add(t, "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>100</"
           "MaxAutoParticipantIndex><Peers>");
    if (usi_range_is_local(def->range)) add(t, "<Peer Address=\"127.0.0.1\"/>");
    for (int32_t i = 0; i < def->n_peer; i++)
        add(t, "<Peer Address=\"%s\"/>", def->peers[i]);
    add(t, "</Peers>");
}

// The first acknowledgement to a writer that was met goes out 10 ms later by default, and on a busy machine
// in one packet with the last message of the handshake, before that. It is encrypted by what that message
// agrees on: Fast DDS drops the packet, Cyclone does not say the last message again, and the two stay
// strangers.
static void add_handshake(text *t) { add(t, "<PreEmptiveAckDelay>1s</PreEmptiveAckDelay>"); }

static us_status make_config(const usi_vendor_open *def, int32_t outer_domain, bool has_network, text *out) {
    text t = *out;
    add(&t, "<CycloneDDS><Domain Id=\"any\"><General>");
    if (usi_range_is_local(def->range)) add_local_interfaces(&t, def->range, has_network);
    add(&t, "</General><Internal><SocketReceiveBufferSize max=\"10MB\"/><SocketSendBufferSize "
            "max=\"4MB\"/><WriterLingerDuration>0s</WriterLingerDuration>"
            "<Watermarks><WhcHigh>512MB</WhcHigh><WhcHighInit>512MB</WhcHighInit><WhcAdaptive>false</"
            "WhcAdaptive></Watermarks>");
    if (def->keys) add_handshake(&t);
    add(&t, "</Internal>");
    add(&t, "<Discovery>");
    if (outer_domain >= 0) add(&t, "<ExternalDomainId>%d</ExternalDomainId>", outer_domain);
    add_discovery(&t, def);
    add(&t, "</Discovery></Domain></CycloneDDS>");
    // the user's own settings come last, and win
    const char *uri = getenv("CYCLONEDDS_URI");
    if (uri && uri[0]) add(&t, ",%s", uri);
    *out = t;
    return t.length < t.cap ? US_OK : US_ERR_LIMIT;
}

// Whether the machine has an interface beside the loopback.
static bool has_network(void) {
    struct ifaddrs *list = NULL;
    bool has = false;
    if (getifaddrs(&list)) return false;
    for (const struct ifaddrs *at = list; at && !has; at = at->ifa_next) {
        const unsigned int flags = at->ifa_flags;
        has =
            at->ifa_addr && at->ifa_addr->sa_family == AF_INET && (flags & IFF_UP) && !(flags & IFF_LOOPBACK);
    }
    freeifaddrs(list);
    return has;
}

// ---- the participant ----

// The number inside this process to try after `number`; -1: there is none. Cyclone asks the permissions about
// this number instead of the network's: with keys it must be one that they are meant for.
static int32_t next_number(const usi_vendor_open *def, int32_t number) {
    if (!def->keys) {
        if (number < INNER_DOMAIN) return INNER_DOMAIN;
        return number + 1 < MAX_INNER_DOMAIN ? number + 1 : -1;
    }
    int32_t next = number == def->domain ? MAX_KEYED_DOMAIN : number - 1;
    while (next >= 0 && (next == def->domain || us_enclave_check(def->keys, next, NULL)))
        next--;
    return next;
}

static us_status open_domain(const usi_vendor_open *def, int32_t *out_number, dds_entity_t *out_domain,
                             us_error *err) {
    char config[MAX_CONFIG];
    int32_t outer = -1;
    for (int32_t number = def->domain; number >= 0; number = next_number(def, number)) {
        if (make_config(def, outer, has_network(), &(text){.bytes = config, .cap = sizeof config})) {
            return us_error_set(
                err, US_ERR_LIMIT, NULL,
                "Put the settings into a file and name that in CYCLONEDDS_URI, or list fewer peers.",
                "the settings for Cyclone DDS are longer than %d bytes", MAX_CONFIG);
        }
        dds_entity_t domain = dds_create_domain((dds_domainid_t)number, config);
        if (domain > 0) {
            *out_domain = domain;
            *out_number = number;
            return US_OK;
        }
        if (domain != DDS_RETCODE_PRECONDITION_NOT_MET) {
            return fail(err, domain,
                        "Look at CYCLONEDDS_URI if it is set; otherwise at the network interfaces of this "
                        "machine (understudy doctor).",
                        "Cyclone DDS cannot join the network");
        }
        outer = def->domain;
    }
    return us_error_set(err, US_ERR_LIMIT, NULL,
                        def->keys ? "Make keys for more domains than this one (understudy keys add KEYSTORE "
                                    "ENCLAVE), or close the other bus."
                                  : "Close some of them.",
                        "too many buses in one process");
}

static us_status cyclone_open(const usi_vendor_open *def, usi_vendor_participant **out_participant,
                              us_error *err) {
    usi_vendor_participant *p = usi_alloc(&def->allocator, sizeof *p, _Alignof(usi_vendor_participant));
    if (!p) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a bus");
    *p = (usi_vendor_participant){.allocator = def->allocator, .is_secured = def->keys != NULL};
    clear_log();
    int32_t number = 0;
    us_status status = open_domain(def, &number, &p->domain, err);
    if (status) goto failed;

    dds_qos_t *qos = dds_create_qos();
    if (def->user_data[0]) dds_qset_userdata(qos, def->user_data, strlen(def->user_data));
    if (def->keys && (status = usi_cyclone_secure(qos, def->keys, err))) {
        dds_delete_qos(qos);
        dds_delete(p->domain);
        goto failed;
    }
    p->participant = dds_create_participant((dds_domainid_t)number, qos, NULL);
    dds_delete_qos(qos);
    if (p->participant < 0) {
        status =
            fail(err, p->participant,
                 def->keys ? "Look whether the keys are meant for this domain, and its permissions are not "
                             "out of date: understudy keys list KEYSTORE."
                           : "Each process takes a port of the domain: is some program started again and "
                             "again?",
                 "Cyclone DDS cannot make a participant");
        dds_delete(p->domain);
        goto failed;
    }
    dds_guid_t id;
    if (dds_get_guid(p->participant, &id) == DDS_RETCODE_OK) memcpy(p->id, id.v, sizeof p->id);
    *out_participant = p;
    return US_OK;
failed:
    usi_release(&def->allocator, p, sizeof *p, _Alignof(usi_vendor_participant));
    return status;
}

static void cyclone_close(usi_vendor_participant *p) {
    if (p->watcher > 0) dds_set_listener(p->watcher, NULL);  // returns when no callback is under way
    dds_delete(p->participant);
    dds_delete(p->domain);
    us_allocator allocator = p->allocator;
    usi_release(&allocator, p, sizeof *p, _Alignof(usi_vendor_participant));
}

static void cyclone_get_id(const usi_vendor_participant *p, uint8_t out_id[16]) {
    memcpy(out_id, p->id, sizeof p->id);
}

// ---- endpoints ----

// A pattern for a partition meets the unnamed one in Cyclone, and not in Fast DDS: so no endpoint of Fast DDS
// without partitions matches. Two of ours match by the other name. Permissions of DDS Security are for the
// unnamed partition alone: there the endpoints of Fast DDS keep away by themselves (plugins/fastdds), those
// of ours, and others are known by their user data.
static void set_meeting(dds_qos_t *qos, usi_meeting meeting, bool is_secured) {
    const char *partitions[] = {"*", USI_REQUEST_PARTITION};
    if (meeting == USI_MEET_OWN && !is_secured) dds_qset_partition(qos, 2, partitions);
}

static void set_partition(dds_qos_t *qos, const char *names) {
    enum { MAX_NAME = 32 };
    const char *name[MAX_NAME];
    char copy[US_PARTITION_TEXT], *save = NULL;
    uint32_t n = 0;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *at = strtok_r(copy, ",", &save); at && n < MAX_NAME; at = strtok_r(NULL, ",", &save))
        name[n++] = at;
    if (n > 0) dds_qset_partition(qos, n, name);
}

static void set_times(dds_qos_t *qos, const us_qos *from, bool is_writer) {
    static const dds_liveliness_kind_t kinds[] = {[US_LIVE_AUTOMATIC] = DDS_LIVELINESS_AUTOMATIC,
                                                  [US_LIVE_BY_PARTICIPANT] =
                                                      DDS_LIVELINESS_MANUAL_BY_PARTICIPANT,
                                                  [US_LIVE_BY_TOPIC] = DDS_LIVELINESS_MANUAL_BY_TOPIC};
    if (from->deadline > 0) dds_qset_deadline(qos, from->deadline);
    if (from->lifespan > 0 && is_writer) dds_qset_lifespan(qos, from->lifespan);
    if (from->lease > 0 || from->liveliness != US_LIVE_AUTOMATIC)
        dds_qset_liveliness(qos, kinds[from->liveliness], from->lease > 0 ? from->lease : DDS_INFINITY);
}

static dds_qos_t *make_qos(const usi_vendor_endpoint_def *def, bool is_writer, bool is_secured) {
    dds_qos_t *qos = dds_create_qos();
    dds_history_kind_t history = def->qos.depth > 0 ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL;
    int32_t depth = def->qos.depth > 0 ? def->qos.depth : 1;
    dds_qset_reliability(qos, def->qos.is_reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                         MAX_BLOCKING);
    dds_qset_durability(qos, def->qos.is_transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL
                                                         : DDS_DURABILITY_VOLATILE);
    dds_qset_history(qos, history, depth);
    // A reader of the second version reads the first too.
    const dds_data_representation_id_t versions[] = {DDS_DATA_REPRESENTATION_XCDR2,
                                                     DDS_DATA_REPRESENTATION_XCDR1};
    dds_qset_data_representation(qos, def->is_xcdr2 && !is_writer ? 2 : 1, versions + !def->is_xcdr2);
    set_times(qos, &def->qos, is_writer);
    dds_qset_ignorelocal(qos, DDS_IGNORELOCAL_NONE);
    if (def->qos.is_exclusive) dds_qset_ownership(qos, DDS_OWNERSHIP_EXCLUSIVE);
    if (def->qos.is_exclusive && is_writer) dds_qset_ownership_strength(qos, def->qos.strength);
    if (is_writer) {
        dds_qset_writer_data_lifecycle(qos, false);
        if (def->qos.is_transient_local) {
            dds_qset_durability_service(qos, 0, history, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                        DDS_LENGTH_UNLIMITED);
        }
    }
    set_partition(qos, def->qos.partition);
    set_meeting(qos, def->meeting, is_secured);
    if (def->user_data[0]) dds_qset_userdata(qos, def->user_data, strlen(def->user_data));
    return qos;
}

// Whether an endpoint that Cyclone has matched is of the other dialect, and does not belong to *e.
static bool is_stranger(const usi_vendor_endpoint *e, const dds_builtintopic_endpoint_t *other) {
    return e->meets_own && usi_cyclone_dialect_of(other) != US_DIALECT_CYCLONE;
}

// The writer behind a local number. Looking it up costs an allocation and a copy of its QoS: so it is
// remembered. One that is gone already has the id 0; a program with keys then counts it as a stranger, for
// nobody knows what dialect it spoke.
static usi_known_writer find_writer(usi_vendor_endpoint *reader, dds_instance_handle_t handle) {
    uint32_t n = reader->n_known < USI_WRITER_MEMORY ? reader->n_known : USI_WRITER_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        if (reader->known[i].handle == handle) return reader->known[i];
    }
    usi_known_writer found = {.handle = handle,
                              .is_stranger = reader->meets_own && reader->owner->is_secured};
    dds_builtintopic_endpoint_t *writer = dds_get_matched_publication_data(reader->entity, handle);
    if (!writer) return found;
    memcpy(found.id, writer->key.v, sizeof found.id);
    found.is_stranger = is_stranger(reader, writer);
    dds_builtintopic_free_endpoint(writer);
    reader->known[reader->n_known++ % USI_WRITER_MEMORY] = found;
    return found;
}

// A sample that came; false: it is for nobody here.
static bool make_sample(usi_vendor_endpoint *reader, const struct ddsi_serdata *data,
                        const dds_sample_info_t *info, us_sample *out) {
    if (!info->valid_data) return false;
    const usi_known_writer writer = find_writer(reader, info->publication_handle);
    *out = (us_sample){.source_time = info->source_timestamp};
    out->bytes = usi_cyclone_view(data, &out->length);
    memcpy(out->writer, writer.id, sizeof out->writer);
    return !writer.is_stranger;
}

// Cyclone calls the listener of one reader from one thread at a time.
static void on_data_available(dds_entity_t entity, void *context) {
    usi_vendor_endpoint *reader = context;
    if (!reader->on_sample) {
        reader->on_data(reader->context);
        return;
    }
    struct ddsi_serdata *data[MAX_TAKE];
    dds_sample_info_t info[MAX_TAKE];
    for (int n = MAX_TAKE; n == MAX_TAKE;) {
        n = dds_takecdr(entity, data, MAX_TAKE, info, DDS_ANY_STATE);
        for (int i = 0; i < n; i++) {
            us_sample sample;
            if (make_sample(reader, data[i], &info[i], &sample)) reader->on_sample(reader->context, &sample);
            ddsi_serdata_unref(data[i]);
        }
    }
}

static void release_endpoint(usi_vendor_endpoint *e) {
    us_allocator allocator = e->allocator;
    pthread_mutex_destroy(&e->lock);
    usi_release(&allocator, e, sizeof *e, _Alignof(usi_vendor_endpoint));
}

static us_status add_endpoint(usi_vendor_participant *p, const usi_vendor_endpoint_def *def, bool is_writer,
                              usi_vendor_endpoint **out_endpoint, us_error *err) {
    usi_vendor_endpoint *e = usi_alloc(&p->allocator, sizeof *e, _Alignof(usi_vendor_endpoint));
    if (!e)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for an endpoint of %s", def->topic);
    *e = (usi_vendor_endpoint){
        .allocator = p->allocator,
        .owner = p,
        .is_writer = is_writer,
        .is_reliable = def->qos.is_reliable,
        .meets_own = def->meeting == USI_MEET_OWN,
        .on_sample = def->on_sample,
        .on_data = def->on_data,
        .context = def->context,
    };
    pthread_mutex_init(&e->lock, NULL);
    clear_log();
    struct ddsi_sertype *type = usi_cyclone_type(def);
    if (!type) {
        release_endpoint(e);
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for the type of %s", def->topic);
    }
    // On success Cyclone owns the type, and may have put an equal one in its place.
    e->topic = dds_create_topic_sertype(p->participant, def->topic, &type, NULL, NULL, NULL);
    if (e->topic < 0) {
        us_status status = e->topic == DDS_RETCODE_NOT_ALLOWED_BY_SECURITY
                               ? usi_security_refuse(err, def->topic, is_writer)
                               : fail(err, e->topic, "Topic names have letters, digits, _ and /.",
                                      "Cyclone DDS refuses the topic");
        ddsi_sertype_unref(type);
        release_endpoint(e);
        return status;
    }
    e->type = type;
    dds_qos_t *qos = make_qos(def, is_writer, p->is_secured);
    if (is_writer) {
        e->entity = dds_create_writer(p->participant, e->topic, qos, NULL);
    } else if (def->has_ends && def->on_sample) {
        struct dds_rhc *passage = usi_cyclone_passage(e);
        e->entity = passage ? dds_create_reader_rhc(p->participant, e->topic, qos, NULL, passage)
                            : DDS_RETCODE_OUT_OF_RESOURCES;
        if (e->entity < 0 && passage) dds_rhc_free(passage);
    } else {
        // The listener goes in with the reader, so that no sample comes before it.
        dds_listener_t *listener = dds_create_listener(e);
        dds_lset_data_available(listener, on_data_available);
        e->entity = dds_create_reader(p->participant, e->topic, qos, listener);
        dds_delete_listener(listener);
    }
    dds_delete_qos(qos);
    if (e->entity < 0) {
        us_status status =
            e->entity == DDS_RETCODE_NOT_ALLOWED_BY_SECURITY
                ? usi_security_refuse(err, def->topic, is_writer)
                : fail(err, e->entity, NULL,
                       is_writer ? "Cyclone DDS cannot make a writer" : "Cyclone DDS cannot make a reader");
        dds_delete(e->topic);
        release_endpoint(e);
        return status;
    }
    dds_guid_t id;
    if (dds_get_guid(e->entity, &id) == DDS_RETCODE_OK) memcpy(e->id, id.v, sizeof e->id);
    *out_endpoint = e;
    return US_OK;
}

static us_status cyclone_add_writer(usi_vendor_participant *p, const usi_vendor_endpoint_def *def,
                                    usi_vendor_endpoint **out_endpoint, us_error *err) {
    return add_endpoint(p, def, true, out_endpoint, err);
}

static us_status cyclone_add_reader(usi_vendor_participant *p, const usi_vendor_endpoint_def *def,
                                    usi_vendor_endpoint **out_endpoint, us_error *err) {
    return add_endpoint(p, def, false, out_endpoint, err);
}

static void cyclone_get_endpoint_id(const usi_vendor_endpoint *e, uint8_t out_id[16]) {
    memcpy(out_id, e->id, sizeof e->id);
}

static void cyclone_set_linger(usi_vendor_participant *p, int64_t until) {
    atomic_store(&p->linger_until, until);
}

// ns that the removal of a writer may wait now.
static dds_duration_t linger(const usi_vendor_participant *p) {
    const int64_t until = atomic_load(&p->linger_until);
    if (until == 0) return LINGER;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t left = until - ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    return left < 0 ? 0 : left < LINGER ? left : LINGER;
}

// Endpoints of the other dialect that Cyclone takes for matched: by the pattern of the partition, though they
// do not match, or with keys by default settings, and they do.
static int32_t n_stranger(const usi_vendor_endpoint *e) {
    dds_instance_handle_t handles[MAX_MATCH];
    dds_return_t n = e->is_writer ? dds_get_matched_subscriptions(e->entity, handles, MAX_MATCH)
                                  : dds_get_matched_publications(e->entity, handles, MAX_MATCH);
    int32_t n_found = 0;
    for (dds_return_t i = 0; i < n && i < MAX_MATCH; i++) {
        dds_builtintopic_endpoint_t *data = e->is_writer
                                                ? dds_get_matched_subscription_data(e->entity, handles[i])
                                                : dds_get_matched_publication_data(e->entity, handles[i]);
        if (!data) continue;
        n_found += is_stranger(e, data);
        dds_builtintopic_free_endpoint(data);
    }
    return n_found;
}

static void cyclone_remove(usi_vendor_endpoint *e) {
    if (!e->is_writer) {
        dds_set_listener(e->entity, NULL);  // returns when no callback is under way
    } else if (e->meets_own && !e->owner->is_secured && n_stranger(e) > 0) {
        // They do not acknowledge.
        dds_wait_for_acks(e->entity, DDS_MSECS(20));
    } else if (e->is_reliable && !atomic_load(&e->owner->has_stalled_reader)) {
        // What was written last may still be under way. The first reader that does not answer ends the
        // waiting for all.
        if (dds_wait_for_acks(e->entity, linger(e->owner)) == DDS_RETCODE_TIMEOUT)
            atomic_store(&e->owner->has_stalled_reader, true);
    }
    dds_delete(e->entity);
    dds_delete(e->topic);
    if (e->waiting) ddsi_serdata_unref(e->waiting);
    release_endpoint(e);
}

// ---- samples ----

static us_status forward(usi_vendor_endpoint *writer, struct ddsi_serdata *data, uint32_t status,
                         int64_t source_time) {
    if (!data) return US_ERR_MEMORY;
    data->statusinfo = status;
    data->timestamp.v = source_time ? source_time : dds_time();
    dds_return_t code = dds_forwardcdr(writer->entity, data);  // takes the sample, whatever it answers
    if (code == DDS_RETCODE_OK) return US_OK;
    return code == DDS_RETCODE_OUT_OF_RESOURCES ? US_ERR_MEMORY : US_ERR_LIMIT;
}

static us_status cyclone_write(usi_vendor_endpoint *writer, const void *bytes, size_t length,
                               int64_t source_time) {
    return forward(writer, usi_cyclone_sample(writer->type, bytes, length), 0, source_time);
}

static us_status cyclone_write_sample(usi_vendor_endpoint *writer, const us_sample *sample,
                                      int64_t *out_sequence) {
    *out_sequence = 0;
    if (sample->kind == US_SAMPLE_DATA)
        return cyclone_write(writer, sample->bytes, sample->length, sample->source_time);
    // Without a key there is nothing to end.
    if (sample->length == 0 && !sample->has_key_hash) return US_ERR_SYNTAX;
    return forward(writer, usi_cyclone_end(writer->type, sample), (uint32_t)sample->kind,
                   sample->source_time);
}

static void *cyclone_hold(const us_sample *sample) { return usi_cyclone_hold(sample->bytes); }

static void cyclone_release(void *held) { ddsi_serdata_unref(held); }

static us_status cyclone_write_held(usi_vendor_endpoint *writer, void *held, int64_t source_time) {
    return forward(writer, usi_cyclone_share(writer->type, held), 0, source_time);
}

// Makes the next sample wait in *reader, which is locked. False when there is none.
static bool fetch(usi_vendor_endpoint *reader) {
    while (!reader->waiting) {
        struct ddsi_serdata *data = NULL;
        dds_sample_info_t info;
        if (dds_takecdr(reader->entity, &data, 1, &info, DDS_ANY_STATE) != 1) return false;
        if (make_sample(reader, data, &info, &reader->waiting_sample)) {
            reader->waiting = data;
        } else {
            ddsi_serdata_unref(data);
        }
    }
    return true;
}

static us_status cyclone_take(usi_vendor_endpoint *reader, void *buf, size_t cap, size_t *out_length,
                              us_sample *out_sample) {
    us_status status = US_OK;
    *out_length = 0;
    pthread_mutex_lock(&reader->lock);
    if (fetch(reader)) {
        us_sample sample = reader->waiting_sample;
        *out_length = sample.length;
        if (sample.length > cap) {
            status = US_ERR_LIMIT;
        } else {
            memcpy(buf, sample.bytes, sample.length);
            sample.bytes = buf;
            if (out_sample) *out_sample = sample;
            ddsi_serdata_unref(reader->waiting);
            reader->waiting = NULL;
        }
    }
    pthread_mutex_unlock(&reader->lock);
    return status;
}

static bool cyclone_has_sample(usi_vendor_endpoint *reader) {
    pthread_mutex_lock(&reader->lock);
    bool has = fetch(reader);
    pthread_mutex_unlock(&reader->lock);
    return has;
}

static int32_t cyclone_n_match(usi_vendor_endpoint *e) {
    dds_return_t n = e->is_writer ? dds_get_matched_subscriptions(e->entity, NULL, 0)
                                  : dds_get_matched_publications(e->entity, NULL, 0);
    if (n > 0 && e->meets_own) n -= n_stranger(e);
    return n > 0 ? n : 0;
}

const usi_vendor *usi_cyclone_vendor(void) {
    static const usi_vendor vendor = {
        .abi = USI_VENDOR_ABI,
        .size = sizeof vendor,
        .name = "cyclone",
        .open = cyclone_open,
        .close = cyclone_close,
        .get_id = cyclone_get_id,
        .add_writer = cyclone_add_writer,
        .add_reader = cyclone_add_reader,
        .get_endpoint_id = cyclone_get_endpoint_id,
        .remove = cyclone_remove,
        .set_linger = cyclone_set_linger,
        .write = cyclone_write,
        .take = cyclone_take,
        .has_sample = cyclone_has_sample,
        .hold = cyclone_hold,
        .release = cyclone_release,
        .write_held = cyclone_write_held,
        .write_sample = cyclone_write_sample,
        .n_match = cyclone_n_match,
        .list = usi_cyclone_list,
        .list_participants = usi_cyclone_list_participants,
        .watch_writers = usi_cyclone_watch_writers,
    };
    return &vendor;
}

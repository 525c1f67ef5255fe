// Cyclone DDS inside: samples as opaque bytes.
#ifndef USI_BUS_CYCLONE_H
#define USI_BUS_CYCLONE_H

#include <pthread.h>
#include <stdatomic.h>

#include "bus/vendor.h"

// Cyclone's own headers say asm, which strict C17 leaves to the program.
#define asm __asm__
#include <dds/dds.h>
#include <dds/ddsi/ddsi_serdata.h>
#include <dds/ddsi/ddsi_sertype.h>
#undef asm

enum { USI_WRITER_MEMORY = 16 };

// A type of which Cyclone knows the name and how to find a sample's key: plain CDR, bytes pass as they are.
// NULL when there is no memory.
struct ddsi_sertype *usi_cyclone_type(const usi_vendor_endpoint_def *def);

// A sample of that type with a copy of the bytes (filled up with zeros to a multiple of 4). NULL when there
// is no memory.
struct ddsi_serdata *usi_cyclone_sample(const struct ddsi_sertype *type, const void *bytes, size_t length);
// The end of an instance: its key, or what the hash of the key tells of it.
struct ddsi_serdata *usi_cyclone_end(const struct ddsi_sertype *type, const us_sample *sample);
// Whether the hash alone of a key came, and its bytes were made of it.
bool usi_cyclone_get_hash(const struct ddsi_serdata *data, uint8_t out_hash[16]);
// A sample of that type with the bytes of another, which it holds. NULL when there is no memory.
struct ddsi_serdata *usi_cyclone_share(const struct ddsi_sertype *type, struct ddsi_serdata *owner);
// One more reference to the sample whose bytes usi_cyclone_view gave.
struct ddsi_serdata *usi_cyclone_hold(const void *bytes);
const void *usi_cyclone_view(const struct ddsi_serdata *data, size_t *out_length);

struct usi_vendor_participant {
    us_allocator allocator;
    bool is_secured;
    dds_entity_t domain, participant;
    uint8_t id[16];
    dds_entity_t watcher;  // reader of what discovery finds; 0: nobody asked for it
    usi_visit_endpoint *on_writer;
    void *writer_context;
    _Atomic bool has_stalled_reader;  // one that did not acknowledge in time
    _Atomic int64_t linger_until;     // ns, CLOCK_MONOTONIC; 0: no time was set
};

// A writer that a reader has discovered: Cyclone gives a local number with each sample, the world knows it by
// its id.
typedef struct usi_known_writer {
    dds_instance_handle_t handle;
    uint8_t id[16];
    bool is_stranger;  // of the other dialect, to a reader that is for its own
} usi_known_writer;

struct usi_vendor_endpoint {
    us_allocator allocator;
    dds_entity_t entity, topic;
    usi_vendor_participant *owner;
    bool is_writer, is_reliable, meets_own;
    uint8_t id[16];
    struct ddsi_sertype *type;  // held by the entity

    // Readers.
    us_sample_function *on_sample;
    void (*on_data)(void *context);
    void *context;
    pthread_mutex_t lock;          // of what follows, for readers without callback
    struct ddsi_serdata *waiting;  // taken from Cyclone, not yet by the caller
    us_sample waiting_sample;
    usi_known_writer known[USI_WRITER_MEMORY];
    uint32_t n_known;  // ever put in; the place is its remainder
};

// A history that keeps nothing: each sample goes to on_sample of the endpoint as it comes, ends of instances
// too. NULL when there is no memory. The reader that is made with it owns it.
struct dds_rhc *usi_cyclone_passage(usi_vendor_endpoint *reader);

// Properties of a participant with the files of DDS Security in `keys`, and Cyclone's plug-ins for it.
us_status usi_cyclone_secure(dds_qos_t *qos, const char *keys, us_error *err);

us_dialect usi_cyclone_dialect_of(const dds_builtintopic_endpoint_t *endpoint);
us_status usi_cyclone_list(usi_vendor_participant *participant, usi_visit_endpoint *visit, void *context);
us_status usi_cyclone_watch_writers(usi_vendor_participant *participant, usi_visit_endpoint *visit,
                                    void *context);
us_status usi_cyclone_list_participants(usi_vendor_participant *participant, usi_visit_peer *visit,
                                        void *context);

#endif

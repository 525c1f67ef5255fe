// What the bus asks of a DDS vendor: one constant table of functions.
//
// A vendor knows DDS and nothing of ROS: topics and types have their DDS names, samples are CDR bytes, user
// data is a text. Names, nodes, the graph and all conventions are made once, above this line. The table of
// Cyclone DDS is linked in; that of Fast DDS comes from a library of its own, written in C++, which takes
// nothing from ours but this header (no symbol of the library is used there, so it loads into any program).
// It begins with `abi` and `size`: a library built against another layout is refused.
//
// All functions may be called from any thread, but an endpoint is removed by one thread while no other uses
// it.
#ifndef USI_BUS_VENDOR_H
#define USI_BUS_VENDOR_H

#include <string.h>

#include "understudy/bus.h"

#ifdef __cplusplus
extern "C" {
#endif

// "USv" and the number of the layout below.
#define USI_VENDOR_ABI 0x55537609u
// The function that a vendor's library exports; it returns its table.
#define USI_VENDOR_SYMBOL "usi_vendor_table"

typedef struct usi_vendor_participant usi_vendor_participant;
typedef struct usi_vendor_endpoint usi_vendor_endpoint;

// Whether nobody but this machine, and named peers, are reached.
static inline bool usi_range_is_local(us_bus_range range) {
    return range != US_BUS_SUBNET && range != US_BUS_SYSTEM_DEFAULT;
}

typedef struct usi_vendor_open {
    us_allocator allocator;
    int32_t domain;
    us_bus_range range;
    int32_t n_peer;
    const char *const *peers;
    const char *user_data;
    const char *keys;  // directory of DDS Security's files, absolute; NULL: open
} usi_vendor_open;

// The key of a sample, or of one that is a key alone, as CDR without header: see usi_key_read of
// wire/member.h.
typedef size_t usi_key_function(const us_message_type *type, const void *bytes, size_t length,
                                bool is_key_alone, bool is_little, uint8_t *out, size_t cap);

// Who meets an endpoint. There are two dialects, on topics and types of the same names (bus/request.c):
// endpoints of the one are announced so that those of the other do not match them. Where they match all the
// same, as with keys and the defaults of Fast DDS, the vendor neither counts them nor hears them.
typedef enum usi_meeting {
    USI_MEET_ALL,
    USI_MEET_OWN,  // endpoints of the vendor's own dialect
} usi_meeting;

// Whether a program has keys: its ids begin with a hash of its certificate's name, whose first bit is 1.
// Others begin with their vendor's number.
static inline bool usi_id_is_hashed(const uint8_t id[16]) { return (id[0] & 0x80) != 0; }

// The dialect of an endpoint by its id and user data. In that of Cyclone the endpoints of services and
// clients say an id of theirs there, those of ours and those of rmw_cyclonedds.
static inline us_dialect usi_dialect_of(const uint8_t id[16], const void *user_data, size_t n) {
    bool is_cyclone = id[0] == 0x01 && id[1] == 0x10;
    if (usi_id_is_hashed(id) && n > 0)
        is_cyclone = memmem(user_data, n, "clientid=", 9) || memmem(user_data, n, "serviceid=", 10);
    return is_cyclone ? US_DIALECT_CYCLONE : US_DIALECT_FASTDDS;
}

// A sample by its writer, and its number among those of the writer.
typedef struct usi_sample_id {
    uint8_t writer[16];
    int64_t sequence;
} usi_sample_id;

// The partition that both sides of the Cyclone way have in common.
#define USI_REQUEST_PARTITION "understudy_requests"

typedef struct usi_vendor_endpoint_def {
    const char *topic;      // "rt/k10/odom"
    const char *type;       // "nav_msgs::msg::dds_::Odometry_"
    const char *user_data;  // "typehash=RIHS01_...;", or ""
    us_qos qos;
    usi_meeting meeting;
    // For readers: on_sample gets each sample as it comes. Without it samples wait for `take`, and on_data
    // says that one came.
    us_sample_function *on_sample;
    void (*on_data)(void *context);
    void *context;
    // Of a type with keys, which outlives the endpoint; else NULL. key_bound: bytes of a key at most.
    usi_key_function *key;
    const us_message_type *key_type;
    size_t key_bound;
    // Of a type of which the name alone is known. is_keyed: it has keys, and nobody knows which; is_xcdr2:
    // written in the second version of CDR, or read in either.
    bool is_keyed, is_xcdr2;
    // For readers with on_sample: it gets the ends of instances too, and each sample as it comes, whatever
    // its instance.
    bool has_ends;
} usi_vendor_endpoint_def;

// One participant of the network, by discovery.
typedef struct usi_vendor_peer {
    uint8_t id[16];
    const char *user_data;  // not always ended by 0: see its length
    size_t n_user_data;
    const char *host;  // "" when not announced
    uint16_t vendor;   // as the standard numbers them; 0: what the id says, nobody knows with keys
} usi_vendor_peer;

typedef void usi_visit_endpoint(void *context, const us_endpoint *endpoint);
typedef void usi_visit_peer(void *context, const usi_vendor_peer *peer);

typedef struct usi_vendor {
    uint32_t abi, size;
    const char *name;

    us_status (*open)(const usi_vendor_open *def, usi_vendor_participant **out_participant, us_error *err);
    // After it no callback runs. Endpoints that are left are removed too.
    void (*close)(usi_vendor_participant *participant);
    void (*get_id)(const usi_vendor_participant *participant, uint8_t out_id[16]);

    us_status (*add_writer)(usi_vendor_participant *participant, const usi_vendor_endpoint_def *def,
                            usi_vendor_endpoint **out_endpoint, us_error *err);
    us_status (*add_reader)(usi_vendor_participant *participant, const usi_vendor_endpoint_def *def,
                            usi_vendor_endpoint **out_endpoint, us_error *err);
    void (*get_endpoint_id)(const usi_vendor_endpoint *endpoint, uint8_t out_id[16]);
    void (*remove)(usi_vendor_endpoint *endpoint);  // waits for a callback that is under way
    // The removal of writers waits for acknowledgements until then (ns, CLOCK_MONOTONIC), all together.
    void (*set_linger)(usi_vendor_participant *participant, int64_t until);

    us_status (*write)(usi_vendor_endpoint *writer, const void *bytes, size_t length, int64_t source_time);
    us_status (*take)(usi_vendor_endpoint *reader, void *buf, size_t cap, size_t *out_length,
                      us_sample *out_sample);
    bool (*has_sample)(usi_vendor_endpoint *reader);
    int32_t (*n_match)(usi_vendor_endpoint *endpoint);

    // Everything that discovery knows now, own things included, in any order. `node` and `is_own` of an
    // endpoint are left to the caller.
    us_status (*list)(usi_vendor_participant *participant, usi_visit_endpoint *visit, void *context);
    us_status (*list_participants)(usi_vendor_participant *participant, usi_visit_peer *visit, void *context);

    // For those who pass samples on without a copy, from on_sample to another participant of the same vendor;
    // all three NULL where a vendor cannot. A sample that is held keeps its bytes until it is released, from
    // any thread and for longer than its reader.
    void *(*hold)(const us_sample *sample);
    void (*release)(void *held);
    us_status (*write_held)(usi_vendor_endpoint *writer, void *held, int64_t source_time);

    // Writes a sample that answers `related`, which is said beside its bytes. *out_sequence is its number.
    // NULL where a vendor cannot, as Cyclone.
    us_status (*write_related)(usi_vendor_endpoint *writer, const void *bytes, size_t length,
                               const usi_sample_id *related, int64_t *out_sequence);

    // From now on every writer of the network is told, those that are known at once and others when they are
    // found, some more than once, on any thread; until the participant is closed. Once per participant.
    us_status (*watch_writers)(usi_vendor_participant *participant, usi_visit_endpoint *visit, void *context);

    // Writes a sample as it came from another participant: its kind, source time and key hash, and what it
    // answers where the vendor can say that. *out_sequence is its number, 0 where it is not known.
    us_status (*write_sample)(usi_vendor_endpoint *writer, const us_sample *sample, int64_t *out_sequence);
} usi_vendor;

typedef const usi_vendor *usi_vendor_function(void);

// The table of Cyclone DDS.
const usi_vendor *usi_cyclone_vendor(void);

#ifdef __cplusplus
}
#endif
#endif

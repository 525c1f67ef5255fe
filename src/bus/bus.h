// Internals of a bus: its participant, writers and readers, and the ROS graph.
//
// Four locks, never held together but in this order: `attend_lock` (services that the attendant works on, and
// the twin), `lock` (what this bus has: nodes, writers, readers), `graph.lock` (what others said of
// themselves), `wait_lock` (who sleeps until a sample comes). Callbacks of the vendor take the last two only,
// so they never wait for a thread that waits for the vendor. Writing takes none.
//
// A bus with services may have a twin: a bus of the other vendor on the same domain, without nodes, which is
// opened when the first program is heard whose requests the own vendor cannot carry (bus/request.c).
#ifndef USI_BUS_BUS_H
#define USI_BUS_BUS_H

#include <pthread.h>
#include <stdatomic.h>

#include "bus/vendor.h"
#include "understudy/service.h"

enum { USI_GID_LENGTH = 16, USI_GID_LENGTH_HUMBLE = 24, USI_ID_LENGTH = 16, USI_NAME_LENGTH = 256 };

// Layouts of ros_discovery_info: with ids of 16 bytes, and of 24 as before Iron.
enum { USI_LAYOUT_LATER = 1, USI_LAYOUT_HUMBLE = 2 };

typedef struct usi_graph_node {
    char namespace_[USI_NAME_LENGTH];
    char name[USI_NAME_LENGTH];
} usi_graph_node;

// What another participant said on ros_discovery_info: the nodes it has and which endpoints are theirs.
typedef struct usi_graph_endpoint {
    uint8_t id[USI_ID_LENGTH];
    int32_t node;
} usi_graph_endpoint;

typedef struct usi_graph_entry {
    uint8_t participant[USI_ID_LENGTH];
    uint64_t age;  // of the last message: the oldest entry makes room
    int32_t n_node, n_endpoint;
    usi_graph_node *nodes;
    usi_graph_endpoint *endpoints;
} usi_graph_entry;

typedef struct usi_graph {
    us_allocator allocator;
    pthread_mutex_t lock;
    uint64_t n_message;
    int32_t n_entry, cap_entry;
    usi_graph_entry *entries;
} usi_graph;

struct us_writer {
    us_bus *bus;
    us_writer *next;
    us_service *service;  // of replies that are carried (bus/request.h), else NULL
    usi_vendor_endpoint *endpoint;
    const us_message_type *type;
    int32_t node;
    uint8_t id[USI_ID_LENGTH];
};

struct us_reader {
    us_bus *bus;
    us_reader *next;
    usi_vendor_endpoint *endpoint;
    int32_t node;
    bool has_callback;
    _Atomic bool is_attended;  // its samples are taken by the attendant
    _Atomic bool has_arrival;  // a sample arrived since the last us_bus_wait
    uint8_t id[USI_ID_LENGTH];
};

// What another bus of the same network is opened by.
typedef struct usi_bus_copy {
    us_bus_def def;  // its texts stand in `text`
    size_t n_text;
    char *text;
} usi_bus_copy;

enum { USI_HEARD = 256 };

struct us_bus {
    us_allocator allocator;
    const usi_vendor *vendor;
    usi_vendor_participant *participant;
    uint8_t id[USI_ID_LENGTH];
    int32_t domain;
    bool hide_from_graph;
    usi_bus_copy copy;

    pthread_mutex_t lock;
    int32_t n_node, cap_node;
    usi_graph_node *nodes;
    uint32_t n_pair;     // of readers and writers of services and clients, ever made
    us_writer *writers;  // in the order of their making
    us_reader *readers;
    usi_vendor_endpoint *graph_writer, *graph_reader;
    int32_t n_pause;       // of those who make endpoints and announce them together
    unsigned int layouts;  // in which nodes are announced: USI_LAYOUT_...
    void *graph_bytes;     // the last message that went out is made in here
    size_t cap_graph_bytes;

    usi_graph graph;

    pthread_mutex_t wait_lock;
    pthread_cond_t wait_cond;
    uint64_t n_arrival;  // samples that came for readers without callback

    // The attendant (attendant.c), who does what callbacks of the vendor must not. Of wait_lock.
    bool has_attendant, is_closing;
    unsigned int heard_layouts;
    uint64_t n_call;    // samples that came for services with a handler
    bool has_stranger;  // a program asks a service in the other dialect: `is_wanted` of that
    uint64_t
        heard[USI_HEARD];  // hashes of topics on which others of the other vendor ask; the oldest makes room
    uint32_t n_heard;
    us_service *services;
    pthread_cond_t attend_cond;
    pthread_t attendant;
    _Atomic int32_t n_pending;  // replies that wait for a reader

    pthread_mutex_t attend_lock;
    us_bus *_Atomic twin;  // NULL: none yet. It stays until the bus is closed
    us_bus *outer;         // of a twin: whose it is
    bool is_watching;
};

// ---- the attendant (attendant.c) ----
// Its thread; and the watch for others' requests, once there are services. Of attend_lock.
us_status usi_attend(us_bus *bus);
us_status usi_attend_watch(us_bus *bus);
void usi_attend_end(us_bus *bus);
void usi_attend_wake(us_bus *bus);
// The twin, opened if need be. Of attend_lock. US_ERR_IO where the other vendor is not installed.
us_status usi_bus_twin(us_bus *bus, us_bus **out_twin, us_error *err);
us_status usi_bus_copy_make(const us_bus_def *def, usi_bus_copy *out);
void usi_bus_copy_release(usi_bus_copy *copy);
// request.c, called by the attendant under attend_lock: requests to services with a handler, replies that
// wait for a reader (whether any is left), and the pair of the other dialect for those that strangers ask.
void usi_services_serve(us_bus *bus);
bool usi_services_send_pending(us_bus *bus);
void usi_services_meet_strangers(us_bus *bus);
// And in a callback: somebody of the other vendor asks on a topic. Of wait_lock; whether a service is meant.
bool usi_services_note_stranger(us_bus *bus, uint64_t topic);

// A node whose endpoints are gone; its number may be given to another. -1 is none.
void usi_bus_remove_node(us_bus *bus, int32_t node);
// Publishes the nodes and endpoints on ros_discovery_info. Of lock.
void usi_bus_publish_graph(us_bus *bus);
// While many endpoints are made: announced once, at the end.
void usi_bus_pause_graph(us_bus *bus);
void usi_bus_resume_graph(us_bus *bus);

// Passing a sample on without a copy. In the callback of a reader of `bus`: holds the sample beyond it. NULL
// where the vendor cannot: copy it then.
void *usi_bus_hold(const us_bus *bus, const us_sample *sample);
void usi_bus_release(const us_bus *bus, void *held);  // NULL is allowed
// Writes a sample of the bus `from`; `held` may be NULL. As us_writer_write.
us_status usi_writer_pass(us_writer *writer, const us_bus *from, void *held, const us_sample *sample);
// Writes bytes that were encoded here: they are not looked at again.
us_status usi_writer_send(us_writer *writer, const void *bytes, size_t length, int64_t source_time);
// Whether the bytes are a message of the type.
bool usi_is_message(const us_message_type *type, const void *bytes, size_t length);

// What services want of their endpoints beyond what a topic has.
typedef struct usi_endpoint_more {
    usi_meeting meeting;
    const char *user_data;  // "key=value;", put behind the bus's own; or ""
} usi_endpoint_more;
us_status usi_bus_add_writer(us_bus *bus, const us_topic_def *def, const usi_endpoint_more *more,
                             us_writer **out_writer, us_error *err);
us_status usi_bus_add_reader(us_bus *bus, const us_topic_def *def, const usi_endpoint_more *more,
                             us_sample_function *on_sample, void *context, us_reader **out_reader,
                             us_error *err);

// Loads libunderstudy-NAME.so and takes its table.
us_status usi_vendor_load(const char *name, const usi_vendor **out_vendor, us_error *err);

// ---- security (security.c) ----

// Memory for texts that a definition refers to.
typedef struct usi_text_room {
    char *at;
    size_t left;
} usi_text_room;

// A copy of the text in the room; NULL when it does not fit.
char *usi_text_keep(usi_text_room *room, const char *text);
// Takes the variables ROS_SECURITY_... into *def.
us_status usi_security_read(us_bus_def *def, usi_text_room *room, us_error *err);
// The error of an endpoint that the permissions do not allow.
us_status usi_security_refuse(us_error *err, const char *topic, bool is_writer);
// "DIRECTORY/NAME" with what a vendor wants before it ("file:", "file://").
us_status usi_security_uri(const char *scheme, const char *directory, const char *name, char *out,
                           size_t cap);

// ---- names (names.c) ----
// "rt/k10/odom" of "/k10/odom". DDS names that begin with rt/, rq/ or rr/ stay as they are,
// and what stands behind "dds:".
us_status usi_topic_to_dds(const char *topic, char out[USI_NAME_LENGTH], us_error *err);
us_status usi_graph_node_check(const char *namespace_, const char *name, usi_graph_node *out_node,
                               us_error *err);
// The value of "key=value;" in user data into out; "" when there is none or it is too long.
void usi_user_data_get(const char *bytes, size_t length, const char *key, char *out, size_t cap);

// ---- the graph (graph.c) ----
us_status usi_graph_init(usi_graph *graph, const us_allocator *allocator);
void usi_graph_fini(usi_graph *graph);
// Takes a message of a participant: CDR of ParticipantEntitiesInfo with ids of 16 or of 24 bytes.
// Bytes that are neither are left out. *out_layout tells which it was; it may be NULL.
us_status usi_graph_take(usi_graph *graph, const void *bytes, size_t length, unsigned int *out_layout);
void usi_graph_node_full_name(const usi_graph_node *node, char out[USI_NAME_LENGTH]);
// Name of the node of an endpoint, "/k10/driver"; "" when it is not known.
void usi_graph_find_node(usi_graph *graph, const uint8_t participant[USI_ID_LENGTH],
                         const uint8_t endpoint[USI_ID_LENGTH], char out[USI_NAME_LENGTH]);
int32_t usi_graph_count_nodes(usi_graph *graph, const uint8_t participant[USI_ID_LENGTH]);
// The bus's own message in a layout into buf (NULL: only its length). The bus is locked by the caller.
size_t usi_graph_encode(const us_bus *bus, unsigned int layout, void *buf);

#endif

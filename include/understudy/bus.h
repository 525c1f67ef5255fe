// The network of a robot: topics of DDS, spoken the way ROS 2 speaks it, through a thin layer over the
// vendor.
//
// Samples cross this interface as CDR bytes (understudy/wire.h makes and reads them). A bus is one DDS
// participant. All functions may be called from any thread. Writing never blocks longer than a moment: a
// reader that does not keep up loses its own old samples. Names are ROS names ("/k10/odom", type
// "nav_msgs/msg/Odometry"); the bus makes "rt/k10/odom" and "nav_msgs::msg::dds_::Odometry_" of them.
#ifndef UNDERSTUDY_BUS_H
#define UNDERSTUDY_BUS_H

#include "understudy/base.h"
#include "understudy/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_bus us_bus;

// Range of discovery.
typedef enum us_bus_range {
    US_BUS_LOCALHOST,       // the programs of this machine: the default
    US_BUS_SUBNET,          // multicast on the network
    US_BUS_OFF,             // none
    US_BUS_LOOPBACK,        // this machine, without multicast but that of the loopback (ROS_LOCALHOST_ONLY)
    US_BUS_SYSTEM_DEFAULT,  // as the vendor does by itself: multicast on the network, no known ports
} us_bus_range;

typedef struct us_bus_def {
    us_allocator allocator;  // used from several threads
    const char
        *vendor;     // "cyclone" (default, built in) or "fastdds" (libunderstudy-fastdds.so, loaded on use)
    int32_t domain;  // 0 .. 232
    us_bus_range range;
    int32_t n_peer;
    const char *const *peers;  // further addresses to look for participants at
    const char *enclave;       // default "/"
    const char *keys;     // directory of the enclave's keys (understudy/keys.h): authenticated and encrypted;
                          // default NULL: open to everybody
    const char *notice;   // from the environment: what to tell the user before it runs; or NULL
    bool use_humble_gid;  // ros_discovery_info begins with 24-byte ids, as before ROS 2 Iron; default false.
                          // Nodes are announced in the other layout too from when it is heard
    bool hide_from_graph;  // announce no node: a bare DDS program
} us_bus_def;

enum { US_BUS_TEXT = 12288 };

// Defaults: cyclone, domain 0, the programs of this machine.
US_API us_bus_def us_bus_def_default(void);
// Takes ROS_DISTRO (up to humble: use_humble_gid), ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE (LOCALHOST,
// SUBNET, OFF, SYSTEM_DEFAULT), ROS_STATIC_PEERS (separated by ;), RMW_IMPLEMENTATION (rmw_cyclonedds_cpp,
// rmw_fastrtps_cpp) and ROS_LOCALHOST_ONLY from the environment into *def. ROS_SECURITY_ENABLE (true, false),
// ROS_SECURITY_STRATEGY (Enforce, Permissive), ROS_SECURITY_KEYSTORE and ROS_SECURITY_ENCLAVE_OVERRIDE become
// `keys` and `enclave`: with Enforce, keys that are missing are an error (US_ERR_IO names the file); with
// Permissive a notice, and the bus is open; keys that do not hold are an error in any case. Texts it makes
// stand in `text` (cap bytes; US_BUS_TEXT is enough). CYCLONEDDS_URI is honoured by Cyclone itself, after
// these settings. US_ERR_VALUE names the variable and what it may be.
US_API us_status us_bus_def_from_environment(us_bus_def *def, char *text, size_t cap, us_error *err);

US_API us_status us_bus_open(const us_bus_def *def, us_bus **out_bus, us_error *err);
// Closes the bus and all its writers and readers; NULL is allowed. No callback runs afterwards.
US_API void us_bus_close(us_bus *bus);
// From now on, for so many seconds (at least 0) in all, the removal of writers waits for readers to
// acknowledge what was written. Without it each may wait for 1 s, until the first reader that does not
// answer.
US_API us_status us_bus_set_linger(us_bus *bus, double seconds);
US_API const char *us_bus_vendor(const us_bus *bus);
US_API int32_t us_bus_domain(const us_bus *bus);

// How a writer shows that it is alive.
typedef enum us_liveliness {
    US_LIVE_AUTOMATIC,
    US_LIVE_BY_PARTICIPANT,
    US_LIVE_BY_TOPIC,
} us_liveliness;

typedef struct us_qos {
    bool is_reliable;
    bool is_transient_local;  // late readers get the last `depth` samples
    int32_t depth;            // keep-last; 0: keep all
    // Ownership of DDS: a reader hears the strongest of its writers alone, and meets exclusive ones only. ROS
    // 2 has shared ownership, the default here.
    bool is_exclusive;
    int32_t strength;  // of an exclusive writer; the higher wins
    // ns; 0: none. What a writer offers and a reader asks for: a sample at least so often, for how long
    // samples are valid, and how soon a writer that died is missed.
    int64_t deadline, lifespan, lease;
    us_liveliness liveliness;
    // Names of DDS partitions with commas between; "": the unnamed one, as ROS 2 has it. Endpoints meet those
    // that have one in common.
    char partition[US_PARTITION_TEXT];
} us_qos;

// By ROS convention for a topic's name (its last part) and type: tf_static and robot_description are
// transient-local with depth 1, and so are the still parts of our scene; tf has depth 100, clock depth 1,
// requests and replies (rq/, rr/) 100, the others reliable, volatile, depth 10. Readers of unknown topics:
// best effort matches every writer.
US_API us_qos us_qos_for_topic(const char *topic, const us_message_type *type);
US_API us_qos us_qos_sensor(void);  // best effort, volatile, depth 5

// A name in the ROS graph. Endpoints belong to a node; -1 stands for none.
US_API us_status us_bus_add_node(us_bus *bus, const char *namespace_, const char *name, int32_t *out_node,
                                 us_error *err);

// What a sample is. Readers of a bus get data alone; those that pass everything on also get the ends of
// instances of types with keys.
typedef enum us_sample_kind {
    US_SAMPLE_DATA,
    US_SAMPLE_DISPOSED,
    US_SAMPLE_UNREGISTERED,
    US_SAMPLE_ENDED,  // both
} us_sample_kind;

typedef struct us_sample {
    const void *bytes;  // CDR with header; borrowed for the call
    size_t length;
    int64_t source_time;  // ns, as the writer stamped it
    uint8_t writer[16];   // the writer's id
    int64_t sequence;     // its number among those of the writer, from 1; 0: not known
    // The sample that this one answers, as the vendor carries it beside the bytes (related sample identity);
    // all 0: none.
    uint8_t related_writer[16];
    int64_t related_sequence;
    us_sample_kind kind;  // of an end the bytes are the key alone, or there are none
    bool has_key_hash;    // as it was said beside the bytes
    uint8_t key_hash[16];
} us_sample;

// Runs on a thread of the vendor, or on the one that writes when the writer belongs to the same bus: keep it
// short, never call a bus from it, this or another one.
typedef void us_sample_function(void *context, const us_sample *sample);

typedef struct us_topic_def {
    const char *topic;  // ROS name, absolute; or a DDS name that begins with rt/, rq/ or rr/; or any DDS name
                        // behind "dds:"
    const us_message_type *type;
    us_qos qos;
    int32_t node;  // us_bus_add_node, or -1
} us_topic_def;

typedef struct us_writer us_writer;
typedef struct us_reader us_reader;

US_API us_status us_bus_add_writer(us_bus *bus, const us_topic_def *def, us_writer **out_writer,
                                   us_error *err);
// `on_sample` may be NULL: then samples wait (as many as the QoS keeps) for us_reader_take.
US_API us_status us_bus_add_reader(us_bus *bus, const us_topic_def *def, us_sample_function *on_sample,
                                   void *context, us_reader **out_reader, us_error *err);
US_API void us_writer_remove(us_writer *writer);
US_API void us_reader_remove(us_reader *reader);

// Sends a sample; `source_time` in ns (0: now). US_ERR_SYNTAX for bytes that are not of the writer's type,
// US_ERR_LIMIT when it had to be dropped.
US_API us_status us_writer_write(us_writer *writer, const void *bytes, size_t length, int64_t source_time);
US_API int32_t us_writer_n_match(us_writer *writer);  // readers that it reaches now
US_API int32_t us_reader_n_match(us_reader *reader);
// The next waiting sample into buf. *out_length 0: none waits. US_ERR_LIMIT: it does not fit, *out_length
// says what it needs, and it stays. `out_sample` may be NULL; its bytes are buf.
US_API us_status us_reader_take(us_reader *reader, void *buf, size_t cap, size_t *out_length,
                                us_sample *out_sample);
// Waits until a sample waits in any reader without callback, or the timeout (s) is over. True when one waits.
US_API bool us_bus_wait(us_bus *bus, double timeout);

// How requests and replies are carried (understudy/service.h).
typedef enum us_dialect {
    US_DIALECT_CYCLONE,  // rmw_cyclonedds_cpp
    US_DIALECT_FASTDDS,  // rmw_fastrtps_cpp
} us_dialect;

// What is on the network: one entry per endpoint of anybody, this bus included, in the order of their ids.
typedef struct us_endpoint {
    bool is_writer;
    bool is_own;
    uint8_t id[16];
    uint8_t participant[16];
    char topic[256];  // as DDS has it: "rt/k10/odom"
    char type[256];   // as DDS has it
    char hash[80];    // "RIHS01_...", or ""
    char node[256];   // "/k10/driver" as ros_discovery_info says, or ""
    us_qos qos;
    bool is_xcdr1;                       // plain CDR can be exchanged
    bool is_xcdr2;                       // the second version of CDR can
    bool is_keyed;                       // its type has keys
    char partitions[US_PARTITION_TEXT];  // their names with commas between; "": the unnamed one
    us_dialect dialect;                  // of a service's endpoint or a client's
} us_endpoint;
// Fills at most cap entries; *out_n is how many there are.
US_API us_status us_bus_list(us_bus *bus, us_endpoint *out, int32_t cap, int32_t *out_n);

typedef struct us_participant {
    uint8_t id[16];
    bool is_own;
    char host[64];    // where it says it runs, "" when it does not
    char vendor[32];  // "cyclone", "fastdds", the vendor's number in hex, or "" where keys hide it
    char enclave[64];
    int32_t n_node;
} us_participant;
US_API us_status us_bus_list_participants(us_bus *bus, us_participant *out, int32_t cap, int32_t *out_n);

#ifdef __cplusplus
}
#endif
#endif

// Internals of a switch: its routes and the locks that guard them.
//
// The gate is a read-write lock. The forwarder holds it for reading from the check of who is in control until
// the sample is written; a change holds it for writing. So no sample of the old source is written after a
// change, and none of the new one before. "Gate open": held for reading; "gate closed": held for writing.
#ifndef USI_SWITCH_SWITCH_H
#define USI_SWITCH_SWITCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "bus/bus.h"
#include "switch/authority_machine.h"
#include "switch/estimate.h"
#include "switch/freshness.h"
#include "switch/handover.h"
#include "switch/lease.h"
#include "understudy/bus.h"
#include "understudy/service.h"

enum {
    USI_MAX_ROUTE = 256,
    USI_MAX_NODE = 16,
    USI_MAX_LATCHED = 16,
    USI_MAX_LATCHED_KEYED = 64,  // of types with keys, where each sample may be of another instance
    USI_MAX_FOREIGN = 4096,
    USI_MAX_SHARED = 16,
    USI_NAME = 256,
    USI_MAX_REQUEST = 16
};
enum { USI_MAX_RULE = 16, USI_MAX_FLAG = 32, USI_MAX_PENDING = 1024, USI_MAX_SELECTION = 128 };
enum { USI_MAX_CONDITION = 8, USI_MAX_PROBE = 256 };

// Period of the switch's thread, ns.
#define USI_SWITCH_TICK (5 * INT64_C(1000000))

// A request beside those for a mode.
#define USI_REQUEST_RESYNC ((us_switch_mode)(US_MODE_COUNT + 1))

// A copy of a latched sample.
typedef struct usi_latched {
    us_sample sample;  // of the bytes below
    void *bytes;
    size_t cap;
} usi_latched;

// One of the two sources of a route.
typedef struct usi_side {
    usi_route *route;
    us_switch_source source;
    us_reader *reader;               // of outputs
    _Atomic(us_writer *) writer;     // of commands
    _Atomic(us_writer *) copies[2];  // of outputs on the operators' side, in the modes mirror and shadow
    // Writers of other robots' nodes on a shared topic; guarded by the gate. At USI_MAX_FOREIGN the oldest
    // are forgotten.
    int32_t n_foreign, cap_foreign, next_foreign;
    uint8_t (*foreign)[16];
    int64_t stamp;                    // ns: source time of the last output; the forwarder's
    int64_t suspect_since;            // ns of usi_switch_now: when its stamps jumped back; 0: they did not
    int32_t n_latched, next_latched;  // a ring; written by the forwarder under the gate for reading
    usi_latched latched[USI_MAX_LATCHED_KEYED];
} usi_side;

// ---- selections of topics and samples: see selection.c ----

typedef enum usi_select_verb {
    USI_SELECT_ONLY,
    USI_SELECT_EXCEPT,
    USI_SELECT_ALSO,
    USI_SELECT_FILTER,
    USI_SELECT_COUNT
} usi_select_verb;

typedef enum usi_comparison {
    USI_LESS,
    USI_LESS_OR_EQUAL,
    USI_MORE,
    USI_MORE_OR_EQUAL,
    USI_EQUAL,
    USI_UNEQUAL
} usi_comparison;

typedef struct usi_select_condition {
    enum { USI_FILTER_MEMBER, USI_FILTER_EVERY, USI_FILTER_RATE } kind;
    usi_comparison comparison;
    double value;
    char member[USI_NAME];
} usi_select_condition;

typedef struct usi_selection {
    usi_select_verb verb;
    char pattern[USI_NAME];
    int32_t n_condition;
    usi_select_condition conditions[USI_MAX_CONDITION];
} usi_selection;

// A condition of a route, and what it counts.
typedef struct usi_filter {
    const usi_select_condition *condition;
    int64_t count, last;
    bool has_last;
} usi_filter;

// A service of which a source heard that it is asked for in another dialect.
typedef struct usi_probe {
    uint64_t service;
    us_switch_source source;
} usi_probe;

// A request that was passed on and has no reply yet: see requests.c.
typedef struct usi_pending {
    uint64_t service;  // 0: none
    us_dialect dialect;
    us_switch_source source;  // that got it
    uint64_t client;          // in the dialect of Cyclone
    int64_t number;           // at the source
    uint8_t asker[16];        // in the dialect of Fast DDS, and his number
    int64_t asked;
} usi_pending;

typedef struct usi_raw_type usi_raw_type;

struct usi_route {
    us_switch *sw;
    bool is_command, is_shared, is_heartbeat;
    uint64_t service;  // of requests and replies, by its name; 0: a topic
    us_dialect dialect;
    int32_t n_filter;  // the forwarder's
    usi_filter filters[USI_MAX_CONDITION];
    bool is_state;         // an output with the robot's state: decoded, not only passed on
    char topic[USI_NAME];  // as DDS has it
    const us_message_type *type;
    us_qos qos;         // of the operators' side
    int32_t node;       // on the operators' side
    us_reader *in;      // of commands, on the operators' side
    us_writer *out;     // of outputs, on the operators' side
    int64_t last_time;  // source time of the last sample passed on; the forwarder's
    int64_t seen_time;  // the same at the last change of control
    usi_side sides[2];
};

typedef struct usi_known_node {
    char full[USI_NAME];  // "/k10/driver"
    int32_t node;
} usi_known_node;

// Flags of a rule that are up.
typedef struct usi_flags {
    int32_t n;
    uint64_t up[USI_MAX_FLAG];
} usi_flags;

typedef struct usi_rule {
    bool is_fault;  // otherwise a Bool
    us_switch_mode mode;
    char operand[USI_NAME];  // the pattern, or the topic as DDS has it
    char text[USI_NAME];
    usi_flags flags[3];  // of hardware, proxy and operators; the forwarder's own
} usi_rule;

// Rules that fired since the last cycle, a bit each, and the reason of the first of them.
typedef struct usi_fired {
    uint32_t rules;
    char why[160];
} usi_fired;

// The queue of the log's thread: see event_log.c.
typedef struct usi_event_log {
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;  // guards what follows
    pthread_cond_t wake, done;
    struct usi_event *first, *last;
    int32_t n_queued;  // with the one that is being written
    int64_t n_lost;
    bool is_stuck, is_closing;
} usi_event_log;

struct us_switch {
    us_allocator allocator;
    usi_event_log event_log;
    char robot[64], heartbeat[USI_NAME];
    char shared[USI_MAX_SHARED][USI_NAME];  // as DDS has them
    int32_t n_shared;
    int32_t n_rule;
    usi_rule rules[USI_MAX_RULE];
    int32_t n_selection;
    usi_selection selections[USI_MAX_SELECTION];
    us_switch_change_function *on_change;
    us_switch_event_function *on_event;
    void *context;
    us_bus *operators, *sources[2];
    int32_t operators_node, source_node[2];  // /understudy/switch_ROBOT in each domain
    us_writer *authority_writer, *source_authority[2];
    bool is_visible;  // /understudy/... is in the operators' domain too; without it that has no such node
    bool is_secret;
    uint64_t identity;  // of this switch, in the ids of its services

    pthread_rwlock_t gate;  // guards what follows; the switch's thread alone writes it
    usi_authority authority;
    bool is_withdrawn;
    int64_t tenure_since;  // ns of usi_switch_now: when this switch came into office; 0: it has not yet
    int64_t since;
    char reason[160], refused[160];
    int64_t n_answer;

    _Atomic uint64_t epoch;  // that of the authority, to be read before the gate
    _Atomic int64_t heard[2];
    _Atomic bool has_gate[2];
    _Atomic int64_t n_command, n_output, n_copy, n_fenced, n_unsent;
    _Atomic int32_t n_route;
    usi_route *routes;  // USI_MAX_ROUTE: they do not move

    pthread_mutex_t estimate_lock;  // guards what follows
    usi_estimate estimates[2];
    struct usi_shadow *shadow;  // the comparison of the two

    // Queue of samples: filled by the vendors' threads, written out by the forwarder alone.
    pthread_t forwarder;
    bool has_forwarder;
    pthread_mutex_t queue_lock;  // guards what follows
    pthread_cond_t queue_wake;
    struct usi_queued_sample *first, *last;
    size_t n_queued;  // bytes
    bool is_queue_closed;
    usi_freshness freshness;  // the forwarder's own
    uint32_t n_pending;       // ever; the place is its remainder
    usi_pending pending[USI_MAX_PENDING];

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;  // guards what follows
    pthread_cond_t wake;
    bool is_closing;
    int32_t n_request;
    usi_request requests[USI_MAX_REQUEST];
    usi_fired fired[US_SWITCH_NOBODY + 1];  // by whom; NOBODY: an operator
    bool has_fired;
    uint64_t newest;       // the highest epoch that a switch of this robot published
    int64_t search_until;  // ns of usi_switch_now: end of fast discovery
    bool is_search_due;
    pthread_cond_t search_wake;

    usi_handover handover;           // has a lock of its own
    usi_lease_client lease;          // too
    struct usi_motor_relay *motors;  // too; NULL: none

    // Used by the switch's thread alone.
    us_writer *shadow_report[2], *shadow_event[2];  // usi_switch_add_report
    char *shadow_line;
    int64_t shadow_step_time, shadow_published, resynced;
    int32_t n_deviation_logged;  // of the event
    int64_t watchdog_checked;    // ns of usi_switch_now
    bool was_alive[2];

    // Used by the discovery's thread alone.
    pthread_t discoverer;
    bool has_discoverer, is_full;
    int32_t n_node;
    usi_known_node nodes[USI_MAX_NODE];
    int64_t nameless_since;  // when an endpoint was first seen whose node is not known yet; 0: there is none
    us_endpoint *list;
    int32_t cap_list;
    int64_t command_added;  // ns of usi_switch_now: when the last topic of commands was; 0: none yet
    int64_t gate_since[2];  // the same of the discovery of a gate
    usi_raw_type *raw_types;
    int32_t n_unserved;
    char unserved[16][USI_NAME];  // services in a dialect that is not spoken, already logged
    int32_t n_probe;
    usi_probe probes[USI_MAX_PROBE];
};

int64_t usi_switch_now(void);        // ns, monotonic
int64_t usi_switch_wall_time(void);  // ns
// Whether the source in control is lost; on the switch's thread. A function that waits there checks it every
// few milliseconds and gives up then: nothing may delay the watchdog.
bool usi_switch_is_lost(us_switch *sw);
void usi_switch_log(us_switch *sw, const char *format, ...) US_PRINTF(2, 3);
// Writers of a String below /understudy: in the proxy's domain, and in the operators' where that is visible,
// else NULL.
us_status usi_switch_add_report(us_switch *sw, const char *topic, us_qos qos, us_writer *out_writers[2],
                                us_error *err);
void usi_switch_write_report(us_switch *sw, us_writer *const writers[2], const uint8_t *bytes, size_t length);

// ---- event_log.c ----
us_status usi_event_log_open(us_switch *sw, us_error *err);
// Writes what is left.
void usi_event_log_close(us_switch *sw);
// An event, and a line of evidence: both are written in their order by a thread of their own. From any
// thread.
void usi_event_log_add(us_switch *sw, int64_t time, const char *text);
void usi_event_log_add_evidence(us_switch *sw, const char *line);
// Waits until all is written, at most `timeout` ns; not at all while the log is stuck.
void usi_event_log_drain(us_switch *sw, int64_t timeout);

// ---- routes.c ----
// The discovery's thread: makes the routes and copies that are missing; `context` is the switch.
void *usi_switch_discover(void *context);
// Discovery at once, also of copies that a mode needs, and fast for the next `duration` ns.
void usi_switch_search(us_switch *sw, int64_t duration);
us_status usi_switch_add_declared(us_switch *sw, const us_switch_topic *topic, us_error *err);
// With the gate closed: the latched samples of `source` are published again.
void usi_switch_pass_latched(us_switch *sw, us_switch_source source);
// A zero Twist on every command topic of that kind.
void usi_switch_stop_source(us_switch *sw, us_switch_source source);
void usi_switch_release_routes(us_switch *sw);
// The forwarder's thread; `context` is the switch.
void *usi_switch_forward(void *context);
// Of endpoints in sw->list, on the discovery's thread: "rt/k10/odom"; "/k10/driver"; writers of a topic,
// without those of nodes that are not the robot's.
bool usi_switch_is_below_robot(const us_switch *sw, const char *topic);
// Endpoints of a bus into sw->list; how many.
int32_t usi_switch_list(us_switch *sw, us_bus *bus);
bool usi_switch_is_robots_node(const us_switch *sw, const char *node);
bool usi_switch_may_be_robots(const us_switch *sw, int32_t n, const us_endpoint *e);
int32_t usi_switch_count_writers(const us_switch *sw, int32_t n, const char *topic);

// ---- raw_type.c ----
// The type of a discovered endpoint, on the discovery's thread: a known one, or a stand-in that belongs to
// the switch. NULL when there is no memory.
const us_message_type *usi_switch_find_type(us_switch *sw, const us_endpoint *e);
void usi_switch_release_types(us_switch *sw);

// ---- requests.c, on the forwarder's thread but for the first two ----
// A number for the service of rq/NAMERequest or rr/NAMEReply; 0 for other topics.
uint64_t usi_request_service_of(const char *topic);
// What endpoints of a route have beyond those of a plain topic, in a dialect. `text` gets the id that ROS
// puts into both endpoints of a service, or of a client.
usi_endpoint_more usi_request_ends(const usi_route *route, us_dialect dialect, const char *who,
                                   char text[USI_NAME]);
// Lets sources know in which dialects operators ask. By the discovery.
void usi_request_follow_askers(us_switch *sw);
// Passes a request on to a source. The reply to a copy is not waited for.
us_status usi_request_pass(us_switch *sw, const usi_route *route, us_switch_source source, us_writer *writer,
                           const us_sample *sample, bool is_copy);
// Passes a reply on to the one who asked, if he has had none.
us_status usi_request_answer(us_switch *sw, const usi_side *side, const us_sample *sample,
                             bool *out_is_passed);

// ---- selection.c ----
us_status usi_switch_read_selections(us_switch *sw, const char *const *texts, int32_t n, us_error *err);
// Whether a topic, by its DDS name, may cross; and whether it crosses though it is not below the robot's.
bool usi_switch_is_selected(const us_switch *sw, const char *topic);
bool usi_switch_is_also(const us_switch *sw, const char *topic);
// The filters of a new route; and whether a sample of it meets them, on the forwarder's thread.
void usi_switch_find_filters(us_switch *sw, usi_route *route);
bool usi_switch_passes_filters(usi_route *route, const us_sample *sample);

// ---- gate_discovery.c ----
// The programs that obey the robot's commands among n endpoints in sw->list, and whether they have a gate. A
// gate comes before the readers of commands, so that one that is not there when they are is none. That there
// is none is believed of the robot's nodes alone: other programs may listen.
void usi_switch_discover_gate(us_switch *sw, us_switch_source source, int32_t n);

// ---- shadow_report.c ----
us_status usi_switch_open_shadow(us_switch *sw, const us_shadow_def *def, us_error *err);
void usi_switch_close_shadow(us_switch *sw);
// Compares and publishes, when it is time to.
void usi_switch_step_shadow(us_switch *sw);
// On the switch's thread: sets the proxy to the hardware's state, where it can be, and restarts the
// comparison. False with the reason in `why`.
bool usi_switch_resync_comparison(us_switch *sw, char *why, size_t cap);
// Restarts the comparison where the proxy was set already; does nothing where none is running.
void usi_switch_restart_comparison(us_switch *sw);

// ---- rules.c ----
us_status usi_switch_read_rules(us_switch *sw, const char *const *rules, int32_t n, us_error *err);
// Checks a sample of a source, or of an operator (US_SWITCH_NOBODY), that is passed on; on the forwarder's
// thread, without the gate.
void usi_switch_check_rules(us_switch *sw, const usi_route *route, us_switch_source source,
                            const us_sample *sample);

#endif

// Routes: topics, and how their samples pass between the domains.
//
// A route is a topic and a direction. It is made when a node of the robot writes the topic (an output) or
// reads it (a command) in either of the two domains; its endpoint on the operators' side stays until the
// switch is closed. The side of each source is added when that source has the topic, with the quality of
// service that it offers or requests, so that sources that differ in it both match.
//
// Discovery has a thread of its own: with many topics it takes a tenth of a second on a busy machine, and the
// thread with the watchdog must not wait for it.
//
// Other programs, a recorder for example, may subscribe in the domains of the sources: only endpoints of
// nodes in the robot's namespace count, and an output never becomes a command, which would make a loop.
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "bus/request.h"
#include "switch/shadow.h"
#include "switch/switch.h"
#include "wire/cdr.h"
#include "wire/messages.h"
#include "wire/type.h"

// Wait for the node's name of a new endpoint, ns. Names come on a topic of their own, a moment after the
// endpoints.
#define NAME_PATIENCE INT64_C(1000000000)

// Periods of discovery, ns: usually, as it takes some milliseconds where there are many topics; and fast,
// when new endpoints are expected.
static const int64_t discover_every = 100 * INT64_C(1000000), search_every = 10 * INT64_C(1000000);

// Minimum history of the switch's writers. Less loses samples of a burst at 2000 a second.
enum { MIN_DEPTH = 64 };

// ns: a step back of stamps that means a new start; time after a hand-over in which the proxy's stamps are
// set; and how long the answer of a gate is waited for that says whether it was one.
#define MAX_STEP_BACK INT64_C(500000000)
#define SETTLING INT64_C(1000000000)
#define VERDICT_PATIENCE INT64_C(300000000)

// Capacity of the forwarder's queue, bytes: seconds of camera images. Beyond it samples are dropped and
// counted.
#define MAX_QUEUED ((size_t)256 << 20)

// ---- samples ----

// A sample that passes between domains: held by the bus from which it comes, or (held NULL) copied.
typedef struct crossing {
    us_sample sample;
    const us_bus *from;
    void *held;
} crossing;

static void count_passed(us_switch *sw, us_status status, _Atomic int64_t *count) {
    atomic_fetch_add_explicit(status ? &sw->n_unsent : count, 1, memory_order_relaxed);
}

static void pass(us_switch *sw, us_writer *writer, const crossing *c, _Atomic int64_t *count) {
    count_passed(sw, usi_writer_pass(writer, c->from, c->held, &c->sample), count);
}

// Stores the last samples of a latched topic, as many as the operators' writer keeps.
static void latch(usi_side *side, const us_sample *sample) {
    const us_allocator *allocator = &side->route->sw->allocator;
    int32_t depth = side->route->qos.depth;
    usi_latched *place = &side->latched[side->next_latched];
    if (sample->length > place->cap) {
        void *bytes = usi_alloc(allocator, sample->length, 16);
        if (!bytes) return;
        usi_release(allocator, place->bytes, place->cap, 16);
        place->bytes = bytes;
        place->cap = sample->length;
    }
    if (sample->length > 0) memcpy(place->bytes, sample->bytes, sample->length);
    place->sample = *sample;
    place->sample.bytes = place->bytes;
    side->next_latched = (side->next_latched + 1) % depth;
    if (side->n_latched < depth) side->n_latched++;
}

static bool is_foreign(const usi_side *side, const uint8_t writer[16]) {
    for (int32_t i = 0; i < side->n_foreign; i++) {
        if (!memcmp(side->foreign[i], writer, 16)) return true;
    }
    return false;
}

// After a hand-over the proxy's stamps may lag a little: for a second, samples that are older than those
// already passed on are dropped.
static bool is_overtaken(const usi_route *route, const us_sample *sample) {
    const int64_t second = INT64_C(1000000000);
    int64_t behind = route->seen_time - sample->source_time;
    return behind >= 0 && behind < second && usi_switch_now() - route->sw->handover.changed < second;
}

// Stamps that jump back: the source was started again, or its world was set back. A source with a gate says
// itself whether it was started again, and its samples wait for that; one without is taken to be.
static bool is_suspect(usi_side *side, const us_sample *sample) {
    us_switch *sw = side->route->sw;
    int64_t now = usi_switch_now(), before = side->stamp;
    side->stamp = sample->source_time;
    bool is_settling = now - sw->handover.changed < SETTLING;
    if (!side->route->is_state || is_settling || atomic_load(&sw->lease.is_restarted[side->source])) {
        side->suspect_since = 0;
        return false;
    }
    if (before - sample->source_time > MAX_STEP_BACK) side->suspect_since = now;
    if (side->suspect_since == 0) return false;
    if (!atomic_load(&sw->has_gate[side->source])) {
        side->suspect_since = 0;
        atomic_store(&sw->lease.is_restarted[side->source], true);
        return true;
    }
    if (now - side->suspect_since < VERDICT_PATIENCE) return true;
    side->suspect_since = 0;
    return false;
}

// A reply: to the one who asked, from the source that was asked.
static void pass_reply(usi_side *side, const us_sample *sample) {
    us_switch *sw = side->route->sw;
    pthread_rwlock_rdlock(&sw->gate);
    if (!sw->is_withdrawn && sw->tenure_since > 0 && usi_lease_state(&sw->lease) == USI_TENURE_OFFICE) {
        bool is_passed = false;
        us_status status = usi_request_answer(sw, side, sample, &is_passed);
        if (is_passed) count_passed(sw, status, &sw->n_output);
    }
    pthread_rwlock_unlock(&sw->gate);
}

static void pass_output(usi_side *side, const crossing *c) {
    usi_route *route = side->route;
    const us_sample *sample = &c->sample;
    us_switch *sw = route->sw;
    if (route->service) {
        pass_reply(side, sample);
        return;
    }
    pthread_rwlock_rdlock(&sw->gate);
    bool is_own = !sw->is_withdrawn && !is_foreign(side, sample->writer);
    if (is_own && route->qos.is_transient_local) latch(side, sample);
    if (is_own && sw->tenure_since > 0 && usi_lease_state(&sw->lease) == USI_TENURE_OFFICE) {
        us_switch_mode mode = sw->authority.mode;
        if (sw->authority.output_source == side->source) {
            if (!is_suspect(side, sample) && !is_overtaken(route, sample) &&
                usi_switch_passes_filters(route, sample)) {
                pass(sw, route->out, c, &sw->n_output);
                route->last_time = sample->source_time;
            }
        } else if (mode == US_MODE_MIRROR || mode == US_MODE_SHADOW) {
            us_writer *copy = atomic_load(&side->copies[mode == US_MODE_SHADOW]);
            if (copy) pass(sw, copy, c, &sw->n_copy);
        }
    }
    pthread_rwlock_unlock(&sw->gate);
    if (is_own && sw->n_rule > 0) usi_switch_check_rules(sw, route, side->source, sample);
}

// A command, or a request, to the source in control; with the gate open. The proxy gets a copy in the mode
// shadow.
static void pass_to_source(usi_route *route, us_switch_source source, const crossing *c, bool is_copy) {
    us_switch *sw = route->sw;
    us_writer *writer = atomic_load(&route->sides[source].writer);
    _Atomic int64_t *count = is_copy ? &sw->n_copy : &sw->n_command;
    if (!writer) return;
    if (route->service) {
        count_passed(sw, usi_request_pass(sw, route, source, writer, &c->sample, is_copy), count);
    } else {
        pass(sw, writer, c, count);
    }
}

// A command belongs to the epoch in which it arrived. While it was queued another may have begun. And to the
// tenure in which it was sent: a predecessor may have passed it on.
static void pass_command(usi_route *route, const crossing *c, uint64_t epoch, usi_arrival received) {
    us_switch *sw = route->sw;
    const us_sample *sample = &c->sample;
    pthread_rwlock_rdlock(&sw->gate);
    us_switch_source control = sw->authority.control;
    uint8_t bytes[1024];
    us_sample limited;
    bool is_fresh =
        usi_freshness_take(&sw->freshness, sample->writer, sample->source_time, received, sw->tenure_since);
    if (sw->is_withdrawn || sw->tenure_since == 0 || !is_fresh || control == US_SWITCH_NOBODY ||
        epoch != sw->authority.epoch) {
        atomic_fetch_add_explicit(&sw->n_fenced, 1, memory_order_relaxed);
    } else if (!usi_lease_permits(sw, control)) {
        usi_handover_ramp(sw, route, sample, false, &limited, bytes, sizeof bytes);
        atomic_fetch_add_explicit(&sw->n_fenced, 1, memory_order_relaxed);
    } else {
        const us_sample *now = usi_handover_ramp(sw, route, sample, true, &limited, bytes, sizeof bytes);
        crossing written = {.sample = *now};
        pass_to_source(route, control, now == sample ? c : &written, false);
        if (sw->authority.mode == US_MODE_SHADOW && usi_lease_permits(sw, US_SWITCH_PROXY))
            pass_to_source(route, US_SWITCH_PROXY, c, true);
    }
    pthread_rwlock_unlock(&sw->gate);
    if (sw->n_rule > 0) usi_switch_check_rules(sw, route, US_SWITCH_NOBODY, sample);
}

// A sample between the vendor's thread that received it and the forwarder. A vendor's thread must not write
// into another domain itself: Cyclone records for each thread in which domain it works, one at a time, and
// would free what the thread still uses in the first.
typedef struct usi_queued_sample {
    struct usi_queued_sample *next;
    usi_side *side;    // of an output; NULL: a command
    usi_route *route;  // of a command
    uint64_t epoch;
    usi_arrival received;
    crossing crossing;
    size_t n_byte;  // of the copy
    _Alignas(16) uint8_t bytes[];
} usi_queued_sample;

static void release_queued_sample(us_switch *sw, usi_queued_sample *queued) {
    usi_bus_release(queued->crossing.from, queued->crossing.held);
    usi_release(&sw->allocator, queued, sizeof *queued + queued->n_byte, _Alignof(usi_queued_sample));
}

static void enqueue(us_switch *sw, usi_side *side, usi_route *route, const us_sample *sample) {
    const us_bus *from = side ? sw->sources[side->source] : sw->operators;
    // Requests may be those of a twin, and go on with other numbers.
    const bool is_held = sample->kind == US_SAMPLE_DATA && !(side ? side->route : route)->service;
    void *held = is_held ? usi_bus_hold(from, sample) : NULL;
    size_t n_byte = held ? 0 : sample->length;
    usi_queued_sample *queued =
        usi_alloc(&sw->allocator, sizeof *queued + n_byte, _Alignof(usi_queued_sample));
    if (!queued) {
        usi_bus_release(from, held);
        atomic_fetch_add(&sw->n_unsent, 1);
        return;
    }
    *queued = (usi_queued_sample){.side = side,
                                  .route = route,
                                  .epoch = atomic_load(&sw->epoch),
                                  .received = {usi_switch_wall_time(), usi_switch_now()},
                                  .crossing = {*sample, from, held},
                                  .n_byte = n_byte};
    if (!held) {
        if (n_byte > 0) memcpy(queued->bytes, sample->bytes, n_byte);
        queued->crossing.sample.bytes = queued->bytes;
    }
    pthread_mutex_lock(&sw->queue_lock);
    bool has_room = !sw->is_queue_closed && sw->n_queued + sample->length <= MAX_QUEUED;
    if (has_room) {
        if (sw->last) {
            sw->last->next = queued;
        } else {
            sw->first = queued;
        }
        sw->last = queued;
        sw->n_queued += sample->length;
        pthread_cond_signal(&sw->queue_wake);
    }
    pthread_mutex_unlock(&sw->queue_lock);
    if (has_room) return;
    atomic_fetch_add(&sw->n_unsent, 1);
    release_queued_sample(sw, queued);
}

// The state in an output. Decoded by the receiving thread and not by the forwarder, which has images to pass
// on.
static void read_state(const usi_side *side, const us_sample *sample) {
    us_switch *sw = side->route->sw;
    usi_estimate *e = &sw->estimates[side->source];
    pthread_mutex_lock(&sw->estimate_lock);
    if (side->route->type == usi_type_string) {
        size_t length = 0;
        const char *text = usi_cdr_view_text(sample->bytes, sample->length, &length);
        if (text) usi_shadow_describe(sw->shadow, text, length);
    } else {
        usi_estimate_group group = usi_estimate_take(e, side->route->topic, side->route->type, sample->bytes,
                                                     sample->length, sample->source_time, usi_switch_now());
        usi_shadow_take(sw->shadow, side->source, group, e);
    }
    pthread_mutex_unlock(&sw->estimate_lock);
}

static void on_output(void *context, const us_sample *sample) {
    usi_side *side = context;
    us_switch *sw = side->route->sw;
    if (side->route->is_heartbeat)
        atomic_store_explicit(&sw->heard[side->source], usi_switch_now(), memory_order_relaxed);
    enqueue(sw, side, NULL, sample);
    if (side->route->is_state) read_state(side, sample);
}

static void on_command(void *context, const us_sample *sample) {
    usi_route *route = context;
    usi_lease_hear(route->sw);
    enqueue(route->sw, NULL, route, sample);
}

void *usi_switch_forward(void *context) {
    us_switch *sw = context;
    for (;;) {
        pthread_mutex_lock(&sw->queue_lock);
        while (!sw->first && !sw->is_queue_closed)
            pthread_cond_wait(&sw->queue_wake, &sw->queue_lock);
        bool is_closed = sw->is_queue_closed;
        usi_queued_sample *queued = sw->first;
        sw->first = sw->last = NULL;
        sw->n_queued = 0;
        pthread_mutex_unlock(&sw->queue_lock);
        for (usi_queued_sample *next; queued; queued = next) {
            next = queued->next;
            if (queued->side) {
                pass_output(queued->side, &queued->crossing);
            } else {
                pass_command(queued->route, &queued->crossing, queued->epoch, queued->received);
            }
            release_queued_sample(sw, queued);
        }
        if (is_closed) return NULL;
    }
}

void usi_switch_pass_latched(us_switch *sw, us_switch_source source) {
    int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        usi_route *route = &sw->routes[i];
        const usi_side *side = &route->sides[source];
        if (route->is_command || side->n_latched == 0) continue;
        // Oldest first; where there are fewer than the writer keeps, some twice, so that late readers get
        // nothing of the other source.
        int32_t depth = route->qos.depth, oldest = side->n_latched < depth ? 0 : side->next_latched;
        for (int32_t k = 0; k < depth; k++) {
            int32_t spare = depth - side->n_latched, at = k < spare ? 0 : k - spare;
            const usi_latched *latched = &side->latched[(oldest + at) % depth];
            crossing c = {.sample = latched->sample};
            pass(sw, route->out, &c, &sw->n_output);
        }
    }
}

void usi_switch_stop_source(us_switch *sw, us_switch_source source) {
    static const char *const names[] = {"geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped"};
    if (source == US_SWITCH_NOBODY || usi_lease_state(&sw->lease) != USI_TENURE_OFFICE) return;
    // A gate brings its robot to rest itself, when it takes no more commands.
    if (atomic_load(&sw->has_gate[source])) return;
    int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        usi_route *route = &sw->routes[i];
        us_writer *writer = atomic_load(&route->sides[source].writer);
        if (!route->is_command || !writer) continue;
        for (int k = 0; k < 2; k++) {
            if (strcmp(us_message_name(route->type), names[k]) != 0) continue;
            _Alignas(16) uint8_t zero[256] = {0}, bytes[256];
            size_t length = 0;
            if (us_message_size(route->type) > sizeof zero ||
                us_message_encode(route->type, zero, bytes, sizeof bytes, &length))
                continue;
            if (us_writer_write(writer, bytes, length, 0)) atomic_fetch_add(&sw->n_unsent, 1);
        }
    }
}

// ---- making routes ----

// A name may stand for several topics of different types: robots of others do that.
static usi_route *find_route(us_switch *sw, const char *topic, const us_message_type *type,
                             us_dialect dialect) {
    int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        usi_route *route = &sw->routes[i];
        if (route->type == type && route->dialect == dialect && !strcmp(route->topic, topic)) return route;
    }
    return NULL;
}

// The robot's node of that full name on the operators' side. Without a name: /ROBOT/ROBOT.
static int32_t find_node(us_switch *sw, const char *full) {
    char text[USI_NAME];
    snprintf(text, sizeof text, "%s", full);
    if (!text[0]) snprintf(text, sizeof text, "/%s/%s", sw->robot, sw->robot);
    for (int32_t i = 0; i < sw->n_node; i++) {
        if (!strcmp(sw->nodes[i].full, text)) return sw->nodes[i].node;
    }
    if (sw->n_node == USI_MAX_NODE) return sw->nodes[0].node;
    usi_known_node *known = &sw->nodes[sw->n_node];
    memcpy(known->full, text, sizeof text);
    char *name = strrchr(text, '/');
    if (!name) return -1;
    *name++ = 0;
    us_error err = {0};
    if (us_bus_add_node(sw->operators, text[0] ? text : "/", name, &known->node, &err)) {
        usi_switch_log(sw, "node %s cannot be announced: %s", known->full, err.message);
        return -1;
    }
    sw->n_node++;
    return known->node;
}

// A DDS name as a bus wants it.
static const char *name_for_bus(const char *topic, char out[USI_NAME + 8]) {
    const bool is_ros = topic[0] == 'r' && topic[1] && strchr("tqr", topic[1]) && topic[2] == '/';
    snprintf(out, USI_NAME + 8, "%s%s", is_ros ? "" : "dds:", topic);
    return out;
}

// The bus of a route's endpoint: requests need one that speaks their dialect, and a twin has no nodes.
static us_status find_bus(const usi_route *route, us_bus *bus, us_bus **out_bus, us_topic_def *def,
                          us_error *err) {
    *out_bus = bus;
    us_status status = route->service ? usi_bus_of_dialect(bus, route->dialect, out_bus, err) : US_OK;
    if (*out_bus != bus) def->node = -1;
    return status;
}

static us_status add_operators_end(us_switch *sw, usi_route *route, us_error *err) {
    char name[USI_NAME + 8], text[USI_NAME];
    us_topic_def def = {.topic = name_for_bus(route->topic, name),
                        .type = route->type,
                        .qos = route->qos,
                        .node = route->node};
    const usi_endpoint_more more = usi_request_ends(route, route->dialect, "serviceid", text);
    us_bus *bus = NULL;
    us_status status = find_bus(route, sw->operators, &bus, &def, err);
    if (status) return status;
    if (!route->is_command) return usi_bus_add_writer(bus, &def, &more, &route->out, err);
    return usi_bus_add_reader(bus, &def, &more, on_command, route, &route->in, err);
}

// A client that finds a service asks at once, and what it asks is not kept for a source that is found later.
static void open_requests(us_switch *sw) {
    const int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        usi_route *route = &sw->routes[i];
        if (!route->service || !route->is_command || route->in) continue;
        int32_t n_match = 0;
        for (int k = 0; k < 2; k++) {
            us_writer *writer = atomic_load(&route->sides[k].writer);
            n_match += writer ? us_writer_n_match(writer) : 0;
        }
        us_error err = {0};
        if (n_match > 0 && add_operators_end(sw, route, &err) && !sw->is_full) {
            sw->is_full = true;
            usi_switch_log(sw, "topic %s is not passed on: %s", route->topic, err.message);
        }
    }
}

// The endpoint on the operators' side. Discovery does not include a writer's history depth: MIN_DEPTH, so
// that a burst is not lost; of latched topics the depth by convention, or one sample for each writer.
static us_status add_route(us_switch *sw, const char *topic, const us_message_type *type, us_dialect dialect,
                           us_qos qos, bool is_command, int32_t node, us_error *err) {
    int32_t n = atomic_load(&sw->n_route);
    if (n == USI_MAX_ROUTE)
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "a switch has room for %d topics",
                            (int)USI_MAX_ROUTE);
    usi_route *route = &sw->routes[n];
    *route = (usi_route){
        .sw = sw, .is_command = is_command, .type = type, .dialect = dialect, .qos = qos, .node = node};
    snprintf(route->topic, sizeof route->topic, "%s", topic);
    route->service = usi_request_service_of(topic);
    usi_switch_find_filters(sw, route);
    if (qos.is_transient_local) {
        int32_t max = type->has_key ? USI_MAX_LATCHED_KEYED : USI_MAX_LATCHED;
        if (route->qos.depth < 1) route->qos.depth = 1;
        if (route->qos.depth > max) route->qos.depth = max;
    } else if (route->qos.depth < MIN_DEPTH) {
        route->qos.depth = MIN_DEPTH;
    }

    // kind of topic
    for (int i = 0; i < sw->n_shared; i++)
        route->is_shared = route->is_shared || !strcmp(sw->shared[i], topic);
    const char *end = strrchr(topic, '/');
    bool is_description = type == usi_type_string && end && !strcmp(end, "/robot_description");
    route->is_state =
        !is_command && !route->is_shared && (is_description || usi_estimate_group_of(type) != USI_N_ESTIMATE);
    route->is_heartbeat =
        sw->heartbeat[0] ? !strcmp(sw->heartbeat, topic) : !route->is_shared && !route->service;
    for (int i = 0; i < 2; i++) {
        route->sides[i].route = route;
        route->sides[i].source = (us_switch_source)i;
    }

    // Requests are read when a source has met what passes them on: open_requests.
    us_status status = is_command && route->service ? US_OK : add_operators_end(sw, route, err);
    if (!status) atomic_store(&sw->n_route, n + 1);
    return status;
}

// A source has the topic of a route: its side begins.
static us_status add_side(us_switch *sw, usi_route *route, us_switch_source source, us_qos qos,
                          us_error *err) {
    usi_side *side = &route->sides[source];
    char name[USI_NAME + 8], text[USI_NAME];
    us_topic_def def = {.topic = name_for_bus(route->topic, name),
                        .type = route->type,
                        .qos = qos,
                        .node = sw->source_node[source]};
    const usi_endpoint_more more = usi_request_ends(route, route->dialect, "clientid", text);
    us_bus *bus = NULL;
    us_status status = find_bus(route, sw->sources[source], &bus, &def, err);
    if (status) return status;
    if (!route->is_command) {
        def.qos.depth = 0;  // keep all: samples are taken as they come
        // What a source promises is for the operators to ask for.
        def.qos.deadline = def.qos.lease = 0;
        def.qos.liveliness = US_LIVE_AUTOMATIC;
        return usi_bus_add_reader(bus, &def, &more, on_output, side, &side->reader, err);
    }
    if (def.qos.depth < MIN_DEPTH) def.qos.depth = MIN_DEPTH;
    us_writer *writer = NULL;
    status = usi_bus_add_writer(bus, &def, &more, &writer, err);
    if (!status) atomic_store(&side->writer, writer);
    sw->command_added = usi_switch_now();
    return status;
}

us_status usi_switch_add_declared(us_switch *sw, const us_switch_topic *topic, us_error *err) {
    if (!topic->topic || !topic->type)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "a topic needs a name and a type");
    char dds[USI_NAME];
    snprintf(dds, sizeof dds, "%s%.250s", topic->topic[0] == '/' ? "rt" : "", topic->topic);
    us_status status = find_route(sw, dds, topic->type, US_DIALECT_CYCLONE)
                           ? US_OK
                           : add_route(sw, dds, topic->type, US_DIALECT_CYCLONE, topic->qos,
                                       topic->is_command, find_node(sw, ""), err);
    usi_route *route = find_route(sw, dds, topic->type, US_DIALECT_CYCLONE);
    for (int i = 0; i < 2 && route && !status; i++)
        status = add_side(sw, route, (us_switch_source)i, topic->qos, err);
    return status;
}

// Writers for the outputs of the source that is not in control, where a mode wants them.
static void make_copies(us_switch *sw, us_switch_mode mode, us_switch_source control) {
    if ((mode != US_MODE_MIRROR && mode != US_MODE_SHADOW) || !sw->is_visible) return;
    us_switch_source source = control == US_SWITCH_PROXY ? US_SWITCH_HARDWARE : US_SWITCH_PROXY;
    bool is_shadow = mode == US_MODE_SHADOW;
    int32_t n = atomic_load(&sw->n_route);
    char prefix[USI_NAME];
    int length = snprintf(prefix, sizeof prefix, "rt/%s/", sw->robot);
    for (int32_t i = 0; i < n; i++) {
        usi_route *route = &sw->routes[i];
        usi_side *side = &route->sides[source];
        if (route->is_command || !side->reader || strncmp(route->topic, "rt/", 3) != 0 ||
            atomic_load(&side->copies[is_shadow]))
            continue;
        char topic[2 * USI_NAME];
        const char *rest =
            strncmp(route->topic, prefix, (size_t)length) == 0 ? route->topic + length : route->topic + 3;
        snprintf(topic, sizeof topic, "rt/understudy/%s/%s/%s", is_shadow ? "shadow" : "mirror", sw->robot,
                 rest);
        us_error err = {0};
        us_writer *writer = NULL;
        us_topic_def def = {topic, route->type, route->qos, sw->operators_node};
        const usi_endpoint_more more = usi_request_ends(route, route->dialect, "", NULL);
        if (usi_bus_add_writer(sw->operators, &def, &more, &writer, &err)) {
            usi_switch_log(sw, "no copies of %s: %s", route->topic, err.message);
        } else {
            atomic_store(&side->copies[is_shadow], writer);
        }
    }
}

void usi_switch_release_routes(us_switch *sw) {
    int32_t n = sw->routes ? atomic_load(&sw->n_route) : 0;
    for (int32_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            usi_side *side = &sw->routes[i].sides[k];
            for (int m = 0; m < USI_MAX_LATCHED_KEYED; m++)
                usi_release(&sw->allocator, side->latched[m].bytes, side->latched[m].cap, 16);
            usi_release(&sw->allocator, side->foreign, (size_t)side->cap_foreign * sizeof *side->foreign, 16);
        }
    }
    usi_release(&sw->allocator, sw->routes, USI_MAX_ROUTE * sizeof *sw->routes, _Alignof(usi_route));
}

// ---- discovery ----

int32_t usi_switch_list(us_switch *sw, us_bus *bus) {
    int32_t n = 0;
    if (us_bus_list(bus, sw->list, sw->cap_list, &n)) return 0;
    if (n <= sw->cap_list) return n;
    int32_t cap = n + 64;
    us_endpoint *list = usi_alloc(&sw->allocator, (size_t)cap * sizeof *list, _Alignof(us_endpoint));
    if (!list) return sw->cap_list;
    usi_release(&sw->allocator, sw->list, (size_t)sw->cap_list * sizeof *list, _Alignof(us_endpoint));
    sw->list = list;
    sw->cap_list = cap;
    if (us_bus_list(bus, list, cap, &n)) return 0;
    return n < cap ? n : cap;
}

// "rt/k10/odom", and of services "rq/k10/..." and "rr/k10/...".
bool usi_switch_is_below_robot(const us_switch *sw, const char *topic) {
    size_t n = strlen(sw->robot);
    return topic[0] == 'r' && (topic[1] == 't' || topic[1] == 'q' || topic[1] == 'r') && topic[2] == '/' &&
           !strncmp(topic + 3, sw->robot, n) && topic[3 + n] == '/';
}

static bool is_shared(const us_switch *sw, const char *topic) {
    for (int32_t i = 0; i < sw->n_shared; i++) {
        if (!strcmp(sw->shared[i], topic)) return true;
    }
    return false;
}

// "/k10/driver" is a node of the robot k10, and so is "/k10", a node of that name without a namespace.
bool usi_switch_is_robots_node(const us_switch *sw, const char *node) {
    size_t n = strlen(sw->robot);
    return node[0] == '/' && !strncmp(node + 1, sw->robot, n) && (node[1 + n] == '/' || node[1 + n] == 0);
}

// Makes room for another foreign writer; false without memory.
static bool grow_foreign(us_switch *sw, usi_side *side) {
    const int32_t cap = side->cap_foreign ? 2 * side->cap_foreign : 32;
    uint8_t(*more)[16] = usi_alloc(&sw->allocator, (size_t)cap * sizeof *more, 16);
    if (!more) return false;
    uint8_t(*old)[16] = side->foreign;
    if (old) memcpy(more, old, (size_t)side->n_foreign * sizeof *more);
    pthread_rwlock_wrlock(&sw->gate);
    side->foreign = more;
    pthread_rwlock_unlock(&sw->gate);
    usi_release(&sw->allocator, old, (size_t)side->cap_foreign * sizeof *old, 16);
    side->cap_foreign = cap;
    return true;
}

// A writer of another robot on a shared topic: its samples are not passed on. Discovery alone changes the
// list.
static void note_foreign(us_switch *sw, usi_side *side, const uint8_t id[16]) {
    if (is_foreign(side, id)) return;
    if (side->n_foreign == side->cap_foreign && side->cap_foreign < USI_MAX_FOREIGN &&
        !grow_foreign(sw, side))
        return;
    pthread_rwlock_wrlock(&sw->gate);
    memcpy(side->foreign[side->next_foreign], id, sizeof side->foreign[0]);
    if (side->n_foreign < side->cap_foreign) side->n_foreign++;
    side->next_foreign = side->next_foreign + 1 < USI_MAX_FOREIGN ? side->next_foreign + 1 : 0;
    pthread_rwlock_unlock(&sw->gate);
}

// Whether requests in the dialect of an endpoint can be carried: where its vendor is installed.
static bool is_spoken(us_switch *sw, us_switch_source source, const us_endpoint *e, us_dialect dialect) {
    us_error err = {0};
    us_bus *bus = NULL;
    if (!usi_bus_of_dialect(sw->operators, dialect, &bus, &err) &&
        !usi_bus_of_dialect(sw->sources[source], dialect, &bus, &err))
        return true;
    for (int32_t i = 0; i < sw->n_unserved; i++) {
        if (!strcmp(sw->unserved[i], e->topic)) return false;
    }
    if (sw->n_unserved == (int32_t)(sizeof sw->unserved / sizeof sw->unserved[0])) return false;
    snprintf(sw->unserved[sw->n_unserved++], USI_NAME, "%s", e->topic);
    usi_switch_log(sw, "%s is not passed on, it is in the dialect of %s: %s", e->topic,
                   dialect == US_DIALECT_CYCLONE ? "rmw_cyclonedds" : "rmw_fastrtps", err.message);
    return false;
}

// Whether an endpoint, one of n in sw->list, may be the robot's. One without a name may, unless its
// participant asks for leases: a switch that was killed before it told its nodes stays in the list for ten
// seconds, and what it writes are commands. A switch announces that it asks before anything of the robot's.
bool usi_switch_may_be_robots(const us_switch *sw, int32_t n, const us_endpoint *e) {
    if (e->node[0]) return usi_switch_is_robots_node(sw, e->node);
    for (int32_t i = 0; i < n; i++) {
        const us_endpoint *other = &sw->list[i];
        if (other->is_writer && !memcmp(other->participant, e->participant, sizeof e->participant) &&
            !strcmp(other->topic, "rt/understudy/lease_request"))
            return false;
    }
    return true;
}

// Writers of a topic, without those that are not the robot's: another switch writes its commands.
int32_t usi_switch_count_writers(const us_switch *sw, int32_t n, const char *topic) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        const us_endpoint *e = &sw->list[i];
        count += e->is_writer && !e->is_own && !strcmp(e->topic, topic) && usi_switch_may_be_robots(sw, n, e);
    }
    return count;
}

// What an endpoint of a source offers, in its partitions. Those of requests are the dialect's.
static us_qos qos_of(const us_endpoint *e) {
    us_qos qos = e->qos;
    if (usi_request_service_of(e->topic) == 0) memcpy(qos.partition, e->partitions, sizeof qos.partition);
    return qos;
}

// History depth and durability of a new route, by what the endpoint offers and what is usual for its topic.
static us_qos choose_qos(const us_switch *sw, const us_endpoint *e, const us_message_type *type, int32_t n) {
    us_qos qos = qos_of(e);
    us_qos usual = us_qos_for_topic(e->topic, type);
    if (usual.depth > qos.depth) qos.depth = usual.depth;
    if (qos.is_transient_local) {
        int32_t n_writer = usi_switch_count_writers(sw, n, e->topic);
        qos.depth = usual.is_transient_local ? usual.depth : 1;
        if (type->has_key) qos.depth = USI_MAX_LATCHED_KEYED;
        if (n_writer > qos.depth) qos.depth = n_writer;
    }
    return qos;
}

// Whether a topic of a service passes already: in the other dialect a service of ours has no node's name.
static bool has_service(us_switch *sw, const char *topic) {
    const int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        if (!strcmp(sw->routes[i].topic, topic)) return true;
    }
    return false;
}

// An endpoint of a source that was discovered, one of n in sw->list. `is_patient`: it waits for its node's
// name.
static void add_endpoint(us_switch *sw, us_switch_source source, const us_endpoint *e, int32_t n,
                         bool is_patient) {
    // endpoints that are no part of the robot
    bool is_common = is_shared(sw, e->topic);
    bool is_inside = is_common || usi_switch_is_below_robot(sw, e->topic) || usi_switch_is_also(sw, e->topic);
    if (e->is_own || !is_inside || (is_common && !e->is_writer) || !usi_switch_is_selected(sw, e->topic))
        return;
    const bool is_service = usi_request_service_of(e->topic) != 0;
    const us_dialect dialect = is_service ? e->dialect : US_DIALECT_CYCLONE;
    // A service reads requests and writes replies; others are its clients.
    if (is_service && (e->is_writer == (e->topic[1] == 'q') || !is_spoken(sw, source, e, dialect))) return;
    const us_message_type *type = usi_switch_find_type(sw, e);
    if (!type) return;
    usi_route *route = find_route(sw, e->topic, type, dialect);
    if (!usi_switch_may_be_robots(sw, n, e)) {
        if (is_common && route) note_foreign(sw, &route->sides[source], e->id);
        return;
    }

    // endpoints that have a route already, or whose node is not known yet
    bool has_side = route && (route->is_command ? atomic_load(&route->sides[source].writer) != NULL
                                                : route->sides[source].reader != NULL);
    if (has_side || (route && route->is_command == e->is_writer)) return;
    if (!e->node[0] && is_patient && !(is_service && has_service(sw, e->topic))) {
        if (sw->nameless_since == 0) sw->nameless_since = usi_switch_now();
        return;
    }
    // a reader of a topic that is also written there: a subscriber to an output
    if (!e->is_writer && !is_service && usi_switch_count_writers(sw, n, e->topic) > 0) return;

    // the route and its side
    us_error err = {0};
    us_status status = US_OK;
    if (!route) {
        us_qos qos = choose_qos(sw, e, type, n);
        status = add_route(sw, e->topic, type, dialect, qos, !e->is_writer, find_node(sw, e->node), &err);
        route = find_route(sw, e->topic, type, dialect);
    }
    if (!status && route) status = add_side(sw, route, source, qos_of(e), &err);
    if (status && !sw->is_full) {
        sw->is_full = true;
        usi_switch_log(sw, "topic %s is not passed on: %s", e->topic, err.message);
    }
}

static void discover_once(us_switch *sw) {
    bool is_patient = sw->nameless_since == 0 || usi_switch_now() - sw->nameless_since < NAME_PATIENCE;
    for (int source = 0; source < 2; source++) {
        int32_t n = usi_switch_list(sw, sw->sources[source]);
        // outputs first: a topic that is written is no command
        for (int pass_ = 0; pass_ < 2; pass_++) {
            for (int32_t i = 0; i < n; i++) {
                if (sw->list[i].is_writer == (pass_ == 0))
                    add_endpoint(sw, (us_switch_source)source, &sw->list[i], n, is_patient);
            }
        }
        usi_switch_discover_gate(sw, (us_switch_source)source, n);
    }
    if (!is_patient) sw->nameless_since = 0;
    open_requests(sw);
    usi_request_follow_askers(sw);
    pthread_rwlock_rdlock(&sw->gate);
    us_switch_mode mode = sw->authority.mode;
    us_switch_source control = sw->authority.control;
    pthread_rwlock_unlock(&sw->gate);
    make_copies(sw, mode, control);
}

void usi_switch_search(us_switch *sw, int64_t duration) {
    pthread_mutex_lock(&sw->lock);
    int64_t until = usi_switch_now() + duration;
    if (until > sw->search_until) sw->search_until = until;
    sw->is_search_due = true;
    pthread_cond_signal(&sw->search_wake);
    pthread_mutex_unlock(&sw->lock);
}

void *usi_switch_discover(void *context) {
    us_switch *sw = context;
    for (;;) {
        discover_once(sw);
        int64_t now = usi_switch_now();
        pthread_mutex_lock(&sw->lock);
        int64_t next = now + (now < sw->search_until ? search_every : discover_every);
        struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        while (!sw->is_closing && !sw->is_search_due) {
            if (pthread_cond_timedwait(&sw->search_wake, &sw->lock, &until)) break;
        }
        sw->is_search_due = false;
        bool is_closing = sw->is_closing;
        pthread_mutex_unlock(&sw->lock);
        if (is_closing) return NULL;
    }
}

// Requests and replies that pass: a request goes to the source in control, and its reply to the one who
// asked.
//
// A service is two topics, rq/NAMERequest and rr/NAMEReply, in one of two dialects (understudy/service.h). In
// that of Cyclone the asker's id and number stand before the message, and both pass as the bytes they are. In
// that of Fast DDS they stand beside it: the request goes on with a number of the switch's own writer, and
// its reply goes back with the asker's.
//
// Each request that was passed on is remembered with the source that got it. A reply passes when it is the
// first to such a request and comes from that source, whoever is in control by then: the asker learns what
// was done. So he gets one reply, or none when the source does not answer (or was changed before it got the
// request). The copy that the proxy gets in the mode shadow is answered too; that goes nowhere.
//
// All of this is the forwarder's own.
#include <stdio.h>
#include <string.h>

#include "bus/request.h"
#include "switch/switch.h"

enum { HEADER = 4, CARRIED = HEADER + USI_REQUEST_ID };

// The number that stands for none in a request of the dialect of Fast DDS.
#define NO_NUMBER (-((int64_t)1 << 32))

static bool is_service_topic(const char *topic) {
    return !strncmp(topic, "rq/", 3) || !strncmp(topic, "rr/", 3);
}

uint64_t usi_request_service_of(const char *topic) {
    static const char *const ends[] = {"Request", "Reply"};
    if (!is_service_topic(topic)) return 0;
    const char *end = ends[topic[1] == 'r'];
    const size_t n = strlen(topic), m = strlen(end);
    if (n < 3 + m || strcmp(topic + n - m, end) != 0) return 0;
    const uint64_t service = us_hash_bytes(3, topic + 2, n - m - 2);
    return service ? service : 1;
}

// The route of the replies to a route of requests, or NULL.
static const usi_route *find_replies(us_switch *sw, const usi_route *requests) {
    const int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        const usi_route *route = &sw->routes[i];
        if (!route->is_command && route->service == requests->service && route->dialect == requests->dialect)
            return route;
    }
    return NULL;
}

static void remember(us_switch *sw, const usi_pending *pending) {
    sw->pending[sw->n_pending++ % USI_MAX_PENDING] = *pending;
}

// A request in the dialect of Fast DDS, whose number among those of the switch's writer is *out_number.
static us_status pass_related(us_switch *sw, const usi_route *route, us_switch_source source,
                              us_writer *writer, const us_sample *sample, int64_t *out_number) {
    const usi_route *replies = find_replies(sw, route);
    const us_reader *reader = replies ? replies->sides[source].reader : NULL;
    us_sample passed = *sample;
    memset(passed.related_writer, 0, sizeof passed.related_writer);
    // Who will read the reply: a server may wait until it has met that.
    if (reader) memcpy(passed.related_writer, reader->id, sizeof passed.related_writer);
    passed.related_sequence = NO_NUMBER;
    return writer->bus->vendor->write_sample(writer->endpoint, &passed, out_number);
}

us_status usi_request_pass(us_switch *sw, const usi_route *route, us_switch_source source, us_writer *writer,
                           const us_sample *sample, bool is_copy) {
    static const uint8_t none[16] = {0};
    usi_pending pending = {.service = route->service, .dialect = route->dialect, .source = source};
    us_status status;
    if (route->dialect == US_DIALECT_CYCLONE) {
        if (sample->length < CARRIED) return US_ERR_SYNTAX;
        const us_request_id id = usi_request_id_get(sample->bytes);
        pending.client = id.client;
        pending.number = id.number;
        status = usi_writer_pass(writer, NULL, NULL, sample);
    } else {
        const bool is_named = memcmp(sample->related_writer, none, sizeof none) != 0;
        memcpy(pending.asker, is_named ? sample->related_writer : sample->writer, sizeof pending.asker);
        pending.asked = sample->sequence;
        status = pass_related(sw, route, source, writer, sample, &pending.number);
    }
    if (!status && !is_copy) remember(sw, &pending);
    return status;
}

// The request that a reply answers, or NULL.
static usi_pending *find_pending(us_switch *sw, const usi_side *side, const us_sample *sample) {
    const usi_route *route = side->route;
    us_request_id id = {0, sample->related_sequence};
    if (route->dialect == US_DIALECT_CYCLONE) {
        if (sample->length < CARRIED) return NULL;
        id = usi_request_id_get(sample->bytes);
    }
    for (int32_t i = 0; i < USI_MAX_PENDING; i++) {
        usi_pending *p = &sw->pending[i];
        if (p->service == route->service && p->dialect == route->dialect && p->source == side->source &&
            p->client == id.client && p->number == id.number)
            return p;
    }
    return NULL;
}

us_status usi_request_answer(us_switch *sw, const usi_side *side, const us_sample *sample,
                             bool *out_is_passed) {
    *out_is_passed = false;
    usi_pending *p = find_pending(sw, side, sample);
    if (!p) return US_OK;
    us_sample passed = *sample;
    memcpy(passed.related_writer, p->asker, sizeof passed.related_writer);
    passed.related_sequence = p->asked;
    *p = (usi_pending){0};
    *out_is_passed = true;
    return usi_writer_pass(side->route->out, NULL, NULL, &passed);
}

// ---- endpoints ----

usi_endpoint_more usi_request_ends(const usi_route *route, us_dialect dialect, const char *who,
                                   char text[USI_NAME]) {
    usi_endpoint_more more = {.user_data = ""};
    if (!route->service) return more;
    more.meeting = USI_MEET_OWN;
    if (dialect == US_DIALECT_CYCLONE) {
        uint8_t id[16];
        const uint64_t words[2] = {route->service, us_hash_bytes(4, who, strlen(who)) ^ route->sw->identity};
        memcpy(id, words, sizeof id);
        int at = snprintf(text, USI_NAME, "%s=", who);
        for (int i = 0; i < 16; i++)
            at += snprintf(text + at, (size_t)(USI_NAME - at), "%02x%s", id[i], i < 15 ? "." : ";");
        more.user_data = text;
    }
    return more;
}

// The route of a topic's requests in a dialect, or NULL.
static const usi_route *find_requests(const us_switch *sw, const char *topic, us_dialect dialect) {
    const int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        const usi_route *route = &sw->routes[i];
        if (route->is_command && route->dialect == dialect && !strcmp(route->topic, topic)) return route;
    }
    return NULL;
}

static bool has_probe(const us_switch *sw, uint64_t service, us_switch_source source) {
    for (int32_t i = 0; i < sw->n_probe; i++) {
        if (sw->probes[i].service == service && sw->probes[i].source == source) return true;
    }
    return false;
}

// An operator asks on a topic in a dialect: sources that have the service in the other one hear of it, once.
static void follow(us_switch *sw, const char *topic, us_dialect dialect) {
    const us_dialect other = dialect == US_DIALECT_CYCLONE ? US_DIALECT_FASTDDS : US_DIALECT_CYCLONE;
    const usi_route *spoken = find_requests(sw, topic, dialect), *known = find_requests(sw, topic, other);
    for (int i = 0; i < 2 && known; i++) {
        const us_switch_source source = (us_switch_source)i;
        const bool is_spoken = spoken && atomic_load(&spoken->sides[source].writer);
        if (is_spoken || !atomic_load(&known->sides[source].writer) || sw->n_probe == USI_MAX_PROBE ||
            has_probe(sw, known->service, source))
            continue;
        us_error err = {0};
        us_bus *bus = NULL;
        us_writer *writer = NULL;
        char text[USI_NAME];
        const us_topic_def def = {
            .topic = topic, .type = known->type, .qos = {.is_reliable = true, .depth = 1}, .node = -1};
        us_status status = usi_bus_of_dialect(sw->sources[source], dialect, &bus, &err);
        const usi_endpoint_more more = usi_request_ends(known, dialect, "clientid", text);
        if (!status) status = usi_bus_add_writer(bus, &def, &more, &writer, &err);
        if (status) usi_switch_log(sw, "%s is not asked for in another dialect: %s", topic, err.message);
        // One that failed is not tried again.
        sw->probes[sw->n_probe++] = (usi_probe){known->service, source};
    }
}

// A source serves in the other dialect when it hears somebody who asks in it (bus/request.c), and operators
// find a service in the dialects in which a source has it. So the switch lets the sources hear that an
// operator asks in another one, with a writer that never writes; what appears there then gets its routes as
// everything does.
void usi_request_follow_askers(us_switch *sw) {
    const int32_t n = usi_switch_list(sw, sw->operators);
    for (int32_t i = 0; i < n; i++) {
        const us_endpoint *e = &sw->list[i];
        if (e->is_own || !e->is_writer || strncmp(e->topic, "rq/", 3) != 0) continue;
        follow(sw, e->topic, e->dialect);
    }
}

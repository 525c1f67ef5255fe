// Which programs of a source have a gate, and whether commands would reach the source.
#include <string.h>

#include "switch/switch.h"

// ns: from the last new topic of commands until the operators' programs have discovered it; the same where
// one of them is known that has sent nothing yet; and from the discovery of a gate until a switch is taken to
// be ready whatever is missing.
static const int64_t meeting = 100 * INT64_C(1000000), max_meeting = 500 * INT64_C(1000000),
                     max_wait = 2000 * INT64_C(1000000);

// Whether a participant has an endpoint of that kind, among n in sw->list.
static bool has_endpoint(const us_switch *sw, int32_t n, const uint8_t participant[16], const char *topic,
                         bool is_writer) {
    for (int32_t i = 0; i < n; i++) {
        const us_endpoint *e = &sw->list[i];
        if (e->is_writer == is_writer && !strcmp(e->topic, topic) &&
            !memcmp(e->participant, participant, sizeof e->participant))
            return true;
    }
    return false;
}

// Operators' programs that write a command, as far as this side of DDS knows: it may know of them before they
// know of it.
static bool has_operator(const us_switch *sw) {
    int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        if (sw->routes[i].is_command && us_reader_n_match(sw->routes[i].in) > 0) return true;
    }
    return false;
}

// Whether a command of the operators would reach the source. A switch that is not ready asks for no lease: it
// would take control from one that is.
static bool is_ready(us_switch *sw, us_switch_source source) {
    int64_t now = usi_switch_now();
    if (sw->gate_since[source] == 0) sw->gate_since[source] = now;
    if (now - sw->gate_since[source] >= max_wait) return true;
    int64_t met = now - sw->command_added;
    if (met < meeting) return false;
    if (met < max_meeting && !atomic_load(&sw->lease.is_hearing) && has_operator(sw)) return false;
    int32_t n = atomic_load(&sw->n_route);
    for (int32_t i = 0; i < n; i++) {
        us_writer *writer = atomic_load(&sw->routes[i].sides[source].writer);
        if (sw->routes[i].is_command && writer && us_writer_n_match(writer) > 0) return true;
    }
    return false;
}

void usi_switch_discover_gate(us_switch *sw, us_switch_source source, int32_t n) {
    usi_gate_discovery found = {.kind = USI_GATE_UNKNOWN};
    for (int32_t i = 0; i < n && found.n_gate < USI_MAX_GATE; i++) {
        const us_endpoint *e = &sw->list[i];
        if (e->is_own || e->is_writer || !usi_switch_is_below_robot(sw, e->topic) ||
            !usi_switch_may_be_robots(sw, n, e))
            continue;
        usi_gate_id participant = usi_gate_id_of(e->participant);
        if (usi_gate_id_is_listed(found.gates, found.n_gate, &participant)) continue;
        bool has_gate = has_endpoint(sw, n, e->participant, "rt/understudy/lease_request", false) &&
                        has_endpoint(sw, n, e->participant, "rt/understudy/lease", true);
        if (has_gate) {
            found.kind = USI_GATE_PRESENT;
            found.gates[found.n_gate++] = participant;
        } else if (e->node[0] && found.kind == USI_GATE_UNKNOWN &&
                   usi_switch_count_writers(sw, n, e->topic) == 0) {
            found.kind = USI_GATE_ABSENT;
        }
    }
    if (found.kind == USI_GATE_UNKNOWN) return;  // what was known of a source that is gone stays
    atomic_store(&sw->has_gate[source], found.kind == USI_GATE_PRESENT);
    found.is_ready = found.kind != USI_GATE_PRESENT || is_ready(sw, source);
    usi_lease_discovered(sw, source, &found);
}

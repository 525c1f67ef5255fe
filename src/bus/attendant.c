// The attendant of a bus: one thread that does what the vendor's callbacks must not, and nobody else should
// wait for.
//
//   - Nodes are announced again when somebody is heard who reads another layout.
//   - The twin is opened, a bus of the other vendor, when a program asks one of the services in its dialect:
//     see request.c. Until then there is none, and none where the other vendor is not installed.
//   - Requests go to the handlers of services that have one.
//   - Replies to somebody whose reader is not known yet are kept until it is.
//
// It sleeps while there is nothing to do; while replies are pending it looks every two milliseconds.
#include <string.h>

#include "base/memory.h"
#include "bus/bus.h"

enum { LOOK_EVERY = 2000000 };  // ns

// ---- the twin ----

us_status usi_bus_copy_make(const us_bus_def *def, usi_bus_copy *out) {
    const char *texts[] = {def->enclave, def->keys};
    size_t n = (size_t)def->n_peer * sizeof(char *);
    for (int i = 0; i < 2; i++)
        n += texts[i] ? strlen(texts[i]) + 1 : 0;
    for (int32_t i = 0; i < def->n_peer; i++)
        n += strlen(def->peers[i]) + 1;
    *out = (usi_bus_copy){.def = *def, .n_text = n + 1};
    out->text = usi_alloc(&def->allocator, out->n_text, _Alignof(char *));
    if (!out->text) return US_ERR_MEMORY;
    usi_text_room room = {out->text + (size_t)def->n_peer * sizeof(char *), n + 1};
    room.left -= (size_t)def->n_peer * sizeof(char *);
    const char **peers = (const char **)(void *)out->text;
    for (int32_t i = 0; i < def->n_peer; i++)
        peers[i] = usi_text_keep(&room, def->peers[i]);
    out->def.peers = peers;
    out->def.enclave = def->enclave ? usi_text_keep(&room, def->enclave) : NULL;
    out->def.keys = def->keys ? usi_text_keep(&room, def->keys) : NULL;
    out->def.notice = NULL;
    return US_OK;
}

void usi_bus_copy_release(usi_bus_copy *copy) {
    usi_release(&copy->def.allocator, copy->text, copy->n_text, _Alignof(char *));
    copy->text = NULL;
}

us_status usi_bus_twin(us_bus *bus, us_bus **out_twin, us_error *err) {
    us_bus *twin = atomic_load(&bus->twin);
    if (!twin) {
        us_bus_def def = bus->copy.def;
        def.vendor = bus->vendor == usi_cyclone_vendor() ? "fastdds" : "cyclone";
        def.hide_from_graph = true;
        us_status status = us_bus_open(&def, &twin, err);
        if (status) return status;
        twin->outer = bus;
        atomic_store(&bus->twin, twin);
    }
    *out_twin = twin;
    return US_OK;
}

// ---- who asks ----

// Runs in the vendor's discovery: remembers, and wakes.
static void on_writer(void *context, const us_endpoint *e) {
    us_bus *bus = context;
    if (strncmp(e->topic, "rq/", 3) != 0 || e->dialect == us_bus_dialect(bus)) return;
    const uint64_t topic = us_hash_bytes(0, e->topic, strlen(e->topic));
    pthread_mutex_lock(&bus->wait_lock);
    bool is_known = false;
    for (uint32_t i = 0; i < USI_HEARD && i < bus->n_heard && !is_known; i++)
        is_known = bus->heard[i] == topic;
    if (!is_known) bus->heard[bus->n_heard++ % USI_HEARD] = topic;
    if (usi_services_note_stranger(bus, topic)) {
        bus->has_stranger = true;
        pthread_cond_signal(&bus->attend_cond);
    }
    pthread_mutex_unlock(&bus->wait_lock);
}

// ---- the thread ----

static void sleep_a_moment(us_bus *bus) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_EVERY;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&bus->attend_cond, &bus->wait_lock, &until);
}

static void *attend(void *context) {
    us_bus *bus = context;
    unsigned int known = bus->layouts;
    uint64_t n_call = 0;
    bool has_pending = false;
    pthread_mutex_lock(&bus->wait_lock);
    for (;;) {
        while (!bus->is_closing && !(bus->heard_layouts & ~known) && bus->n_call == n_call &&
               !bus->has_stranger && !has_pending && atomic_load(&bus->n_pending) == 0)
            pthread_cond_wait(&bus->attend_cond, &bus->wait_lock);
        if (has_pending && !bus->is_closing && bus->n_call == n_call) sleep_a_moment(bus);
        if (bus->is_closing) break;
        const unsigned int layouts = known | bus->heard_layouts;
        const bool has_stranger = bus->has_stranger;
        n_call = bus->n_call;
        bus->has_stranger = false;
        pthread_mutex_unlock(&bus->wait_lock);
        if (layouts != known) {
            pthread_mutex_lock(&bus->lock);
            known = bus->layouts = layouts;
            usi_bus_publish_graph(bus);
            pthread_mutex_unlock(&bus->lock);
        }
        pthread_mutex_lock(&bus->attend_lock);
        if (has_stranger) usi_services_meet_strangers(bus);
        usi_services_serve(bus);
        has_pending = usi_services_send_pending(bus);
        pthread_mutex_unlock(&bus->attend_lock);
        pthread_mutex_lock(&bus->wait_lock);
    }
    pthread_mutex_unlock(&bus->wait_lock);
    return NULL;
}

us_status usi_attend(us_bus *bus) {
    if (!bus->has_attendant) bus->has_attendant = pthread_create(&bus->attendant, NULL, attend, bus) == 0;
    return bus->has_attendant ? US_OK : US_ERR_LIMIT;
}

us_status usi_attend_watch(us_bus *bus) {
    us_status status = usi_attend(bus);
    if (status || bus->is_watching) return status;
    bus->is_watching = true;
    return bus->vendor->watch_writers(bus->participant, on_writer, bus);
}

void usi_attend_wake(us_bus *bus) {
    pthread_mutex_lock(&bus->wait_lock);
    bus->n_call++;
    pthread_cond_signal(&bus->attend_cond);
    pthread_mutex_unlock(&bus->wait_lock);
}

void usi_attend_end(us_bus *bus) {
    if (!bus->has_attendant) return;
    pthread_mutex_lock(&bus->wait_lock);
    bus->is_closing = true;
    pthread_cond_signal(&bus->attend_cond);
    pthread_mutex_unlock(&bus->wait_lock);
    pthread_join(bus->attendant, NULL);
    bus->has_attendant = false;
}

// Requests for a robot's properties, and requests that wait until a command has ended.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/proxy__sample.h"
#include "proxy/rover_property.h"

_Static_assert((int)USI_PROPERTY_COUNT <= (int)USI_REPLY_PROPERTIES, "a reply has room for all properties");

// ---------------------------------------------------------------- properties

static bool find_all(usi_firmware_request *c, const us_msg_properties_request *m, usi_reply *reply) {
    if (m->names._length > USI_REPLY_PROPERTIES)
        return usi_firmware_refuse(c, "%u names: at most %d", (unsigned)m->names._length,
                                   USI_REPLY_PROPERTIES);
    for (uint32_t i = 0; i < m->names._length; i++) {
        const int32_t k = usi_property_find(m->names._buffer[i]);
        if (k < 0)
            return usi_firmware_refuse_as(c, US_ROVER_UNKNOWN_NAME, "there is no property \"%.60s\"",
                                          m->names._buffer[i]);
        reply->property[reply->n_property++] = (int8_t)k;
    }
    return true;
}

// All of them or none.
static bool set_all(usi_firmware_request *c, const us_msg_properties_request *m, const usi_reply *reply) {
    const usi_firmware_setting before = c->s->setting;
    if (m->values._length != m->names._length)
        return usi_firmware_refuse(c, "%u values for %u names", (unsigned)m->values._length,
                                   (unsigned)m->names._length);
    for (int32_t i = 0; i < reply->n_property; i++) {
        if (usi_property_set(c, reply->property[i], m->values._buffer[i])) continue;
        c->s->setting = before;
        return false;
    }
    return true;
}

bool usi_ask_properties(usi_firmware_request *c, const us_msg_properties_request *m, usi_reply *reply) {
    if (m->mode > 2) return usi_firmware_refuse(c, "mode %d is none of 0 list, 1 get, 2 set", (int)m->mode);
    if (m->mode == 0) {
        for (int32_t i = 0; i < USI_PROPERTY_COUNT; i++)
            reply->property[reply->n_property++] = (int8_t)i;
        return true;
    }
    return find_all(c, m, reply) && (m->mode == 1 || set_all(c, m, reply));
}

void usi_reply_properties(usi_sampling *w, const usi_reply *reply) {
    us_msg_properties_response m = {.guid = reply->guid,
                                    .seq = reply->seq,
                                    .accepted = reply->is_accepted,
                                    .error = (uint8_t)reply->error,
                                    .message = usi_text(reply->message)};
    USI_SAMPLING_TAKE(w, m.properties, reply->n_property);
    uint32_t n = 0;
    for (uint32_t i = 0; i < m.properties._length; i++) {
        const usi_property_row *row = &usi_property_rows[reply->property[i]];
        const double value = usi_property_get(w->r, w->sim, w->firmware, reply->property[i]);
        // Of what this robot has not, a list says nothing.
        if (isnan(value)) continue;
        m.properties._buffer[n++] = (us_msg_property){.name = usi_text(row->name),
                                                      .value = value,
                                                      .unit = usi_text(row->unit),
                                                      .writable = row->is_open,
                                                      .about = usi_text(row->about)};
    }
    m.properties._length = n;
    usi_sampling_send(w, &m);
}

// ---------------------------------------------------------------- waits

enum { WAIT_LOCOMOTOR, WAIT_NAVIGATOR, WAIT_FUNCTION, WAIT_COUNT };

static const usi_service_state *service_of(const usi_firmware_state *s, int32_t service) {
    return service == WAIT_LOCOMOTOR   ? &s->locomotor
           : service == WAIT_NAVIGATOR ? &s->navigator
                                       : &s->function_run;
}

// Whether the command has ended, with what is answered then.
static bool is_over(const usi_firmware_state *s, const usi_wait *wait, usi_reply *reply) {
    const usi_service_state *service = service_of(s, wait->service);
    *reply =
        (usi_reply){.service = USI_COMMAND_ASK_WAIT - USI_COMMAND_ASK, .guid = wait->guid, .seq = wait->seq};
    reply->state = service->state;
    if (service->sequence != wait->sequence) {
        reply->error = US_ROVER_INTERRUPTED;
        snprintf(reply->message, sizeof reply->message, "the last command is number %u, not %u",
                 (unsigned)service->sequence, (unsigned)wait->sequence);
        return true;
    }
    if (service->state == US_ROVER_MOVING) return false;
    reply->is_accepted = true;
    reply->error = (us_rover_error)service->error;
    snprintf(reply->message, sizeof reply->message, "%s", service->message);
    return true;
}

static void time_out(usi_reply *reply) {
    reply->error = US_ROVER_TIMEOUT;
    snprintf(reply->message, sizeof reply->message, "the command goes on");
}

void usi_ask_wait(const usi_robot *r, const usi_firmware_state *s, const us_msg_wait_request *m,
                  usi_reply *reply) {
    static const char *const names[WAIT_COUNT] = {"locomotor", "navigator", "function"};
    usi_wait wait = {.guid = m->guid, .seq = m->seq, .is_used = true};
    while (wait.service < WAIT_COUNT && strcmp(names[wait.service], m->service) != 0)
        wait.service++;
    if (wait.service == WAIT_COUNT) {
        reply->error = US_ROVER_UNKNOWN_NAME;
        snprintf(reply->message, sizeof reply->message, "\"%.60s\" is none of locomotor, navigator, function",
                 m->service);
        return;
    }
    if (!(m->timeout >= 0 && m->timeout <= 1e9)) {
        reply->error = US_ROVER_BAD_VALUE;
        snprintf(reply->message, sizeof reply->message, "the time-out is not 0 or more");
        return;
    }
    wait.sequence = m->sequence > 0 ? m->sequence : service_of(s, wait.service)->sequence;
    wait.n_tick = (int64_t)ceil(m->timeout / r->proxy->step);
    if (is_over(s, &wait, reply)) return;
    if (wait.n_tick == 0) {
        time_out(reply);
        return;
    }
    for (int i = 0; i < USI_MAX_WAIT; i++) {
        if (r->wait[i].is_used) continue;
        r->wait[i] = wait;
        reply->service = -1;
        return;
    }
    reply->error = US_ROVER_BUSY;
    snprintf(reply->message, sizeof reply->message, "%d requests wait already", USI_MAX_WAIT);
}

void usi_waits_serve(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    for (int i = 0; i < USI_MAX_WAIT; i++) {
        usi_wait *wait = &r->wait[i];
        usi_reply reply;
        if (!wait->is_used) continue;
        const bool has_ended = is_over(usi_view_firmware(r, s), wait, &reply);
        if (!has_ended && --wait->n_tick > 0) continue;
        if (!has_ended) time_out(&reply);
        wait->is_used = false;
        usi_robot_reply(p, r, sim, s, &reply);
    }
}

void usi_reply_wait(usi_sampling *w, const usi_reply *reply) {
    const us_msg_wait_response m = {.guid = reply->guid,
                                    .seq = reply->seq,
                                    .accepted = reply->is_accepted,
                                    .error = (uint8_t)reply->error,
                                    .state = reply->state,
                                    .message = usi_text(reply->message)};
    usi_sampling_send(w, &m);
}

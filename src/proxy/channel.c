// What robots publish and listen to, by name: topics, types, and one channel for each.
//
// The names are made once and stay as long as the proxy: threads of the network and of the page look at them
// while the world is edited.
#include <stdio.h>
#include <string.h>

#include "proxy/proxy__robot.h"

// ---------------------------------------------------------------- names

// "/k10/cmd_vel".
void usi_topic_name(const usi_robot *r, const char *name, char *out, size_t cap) {
    if (r->model->network->namespace_[0]) {
        snprintf(out, cap, "/%s/%s", r->model->network->namespace_, name);
    } else {
        snprintf(out, cap, "/%s", name);
    }
}

bool usi_has_command(const usi_robot *r, int32_t topic) {
    bool can_move = usi_can_move(r);
    switch ((usi_command_topic)topic) {
    case USI_COMMAND_TWIST:
    case USI_COMMAND_TWIST_STAMPED:
    case USI_COMMAND_LOCOMOTOR:
    case USI_COMMAND_POSE:
    case USI_COMMAND_NAVIGATOR:
        return can_move;
    case USI_COMMAND_GAIT:
        return r->model->firmware.gait.n_leg > 0;
    case USI_COMMAND_MOTOR_TEXT:
        return r->model->network->n_motor > 0 || r->model->network->motor_port > 0;
    case USI_COMMAND_ASK_MOTORS:
        return r->model->network->has_services && r->model->firmware.n_drive > 0;
    case USI_COMMAND_ASK_LOCOMOTOR:
    case USI_COMMAND_ASK_POSE:
    case USI_COMMAND_ASK_NAVIGATOR:
        return r->model->network->has_services && can_move;
    case USI_COMMAND_ASK_PROPERTIES:
    case USI_COMMAND_ASK_WAIT:
        return r->model->network->has_services;
    default:
        return r->model->firmware.n_drive > 0;
    }
}

// ---------------------------------------------------------------- channels

// Finds or adds one. -1 without memory.
int32_t usi_channel_add(us_proxy *p, const char *topic, const us_message_type *type, bool is_out,
                        int32_t robot) {
    for (int32_t i = 0; i < p->n_channel; i++) {
        usi_channel *c = &p->channel[i];
        if (c->is_out != is_out || c->type != type || strcmp(c->topic, topic) != 0) continue;
        if (c->robot != robot) c->robot = -1;
        return i;
    }
    bool is_good = true;
    usi_channel *c = &p->channel[p->n_channel];
    memset(c, 0, sizeof *c);
    c->topic = usi_arena_text(&p->arena, topic, &is_good);
    c->type = type;
    c->is_out = is_out;
    c->qos = us_qos_for_topic(topic, type);
    c->robot = robot;
    atomic_init(&c->is_wanted, true);
    atomic_init(&c->n_message, 0);
    return is_good ? p->n_channel++ : -1;
}

// Where each topic of a robot leaves. A robot that is no URDF file has no description to send.
static us_status make_outlets(us_proxy *p, usi_robot *r) {
    const size_t n =
        (size_t)r->model->n_topic + USI_SERVICE_COUNT + (size_t)r->model->interface_.n_endpoint + 1;
    r->n_topic = r->model->n_topic;
    r->outlet = usi_arena_alloc(&p->arena, n * sizeof *r->outlet, _Alignof(usi_outlet));
    if (!r->outlet) return US_ERR_MEMORY;
    r->n_outlet = (int32_t)n;
    for (size_t i = 0; i < n; i++)
        r->outlet[i] = (usi_outlet){.channel = -1};
    for (int32_t i = 0; i < r->n_topic; i++) {
        const usi_topic *t = &r->model->topic[i];
        usi_outlet *out = &r->outlet[i];
        out->type = t->type;
        if (t->source == USI_SOURCE_ROBOT_DESCRIPTION && !r->description) continue;
        out->channel = usi_channel_add(p, t->name, out->type, true, r->index);
        if (out->channel < 0) return US_ERR_MEMORY;
    }
    return US_OK;
}

static us_status make_command_channels(us_proxy *p, usi_robot *r) {
    char topic[USI_TOPIC_NAME];
    for (int k = 0; k < USI_COMMAND_COUNT; k++) {
        r->command_channel[k] = -1;
        if (!usi_has_command(r, k)) continue;
        usi_topic_name(r, usi_command_name(r->model->network, k), topic, sizeof topic);
        const int32_t channel = usi_channel_add(p, topic, usi_command_type(k), false, r->index);
        if (channel < 0) return US_ERR_MEMORY;
        p->channel[channel].is_request = k >= USI_COMMAND_ASK;
        r->command_channel[k] = channel;
    }
    return US_OK;
}

us_status usi_channels_make(us_proxy *p) {
    size_t max = 1;
    for (int32_t i = 0; i < p->n_robot; i++)
        max += (size_t)p->robot[i].model->n_topic + USI_COMMAND_COUNT +
               (size_t)(p->robot[i].model->interface_.n_endpoint + p->robot[i].model->interface_.n_inlet);
    p->channel = usi_arena_alloc(&p->arena, max * sizeof *p->channel, _Alignof(usi_channel));
    if (!p->channel) return US_ERR_MEMORY;
    p->clock_channel = -1;
    if (p->clock_rate > 0) {
        p->clock_channel = usi_channel_add(p, "/clock", usi_type_clock, true, -1);
        if (p->clock_channel < 0) return US_ERR_MEMORY;
    }
    us_status status = US_OK;
    for (int32_t i = 0; i < p->n_robot && !status; i++) {
        status = make_outlets(p, &p->robot[i]);
        if (!status) status = make_command_channels(p, &p->robot[i]);
        if (!status) status = usi_interface_make(p, &p->robot[i]);
    }
    return status;
}

int32_t usi_proxy_n_channel(const us_proxy *p) { return p ? p->n_channel : 0; }

usi_channel_info usi_proxy_get_channel(const us_proxy *p, int32_t i) {
    if (!p || i < 0 || i >= p->n_channel) return (usi_channel_info){.robot = -1};
    const usi_channel *c = &p->channel[i];
    return (usi_channel_info){.topic = c->topic,
                              .type = c->type,
                              .is_out = c->is_out,
                              .is_latched = c->is_out && c->qos.is_transient_local,
                              .qos = c->qos,
                              .is_request = c->is_request,
                              .robot = c->robot,
                              .n_message = atomic_load_explicit(&c->n_message, memory_order_relaxed)};
}

// One thread counts, any reads.
void usi_channel_count(us_proxy *p, int32_t channel) {
    if (channel < 0) return;
    _Atomic int64_t *n = &p->channel[channel].n_message;
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

// ---------------------------------------------------------------- the tap

void usi_proxy_set_tap(us_proxy *p, usi_tap_function *sample, void *context) {
    p->tap = sample;
    p->tap_context = context;
    for (int32_t i = 0; i < p->n_channel; i++)
        atomic_store(&p->channel[i].is_wanted, true);
}

void usi_proxy_want_channel(us_proxy *p, int32_t channel, bool is_wanted) {
    if (channel >= 0 && channel < p->n_channel) atomic_store(&p->channel[channel].is_wanted, is_wanted);
}

void usi_proxy_resend_latched(us_proxy *p) { atomic_store(&p->owes_tap, true); }

void usi_proxy_tend(us_proxy *p, us_sim *sim) {
    if (!p->tap || !atomic_load_explicit(&p->owes_tap, memory_order_relaxed) ||
        us_sim_view_model(sim) != p->model)
        return;
    atomic_exchange(&p->owes_tap, false);
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_robot_state *s = usi_view_state(&p->robot[i], sim);
        if (s) usi_robot_repeat(p, &p->robot[i], sim, s, USI_SINK_TAP);
    }
}

void usi_channel_tap(us_proxy *p, int32_t channel, int64_t time, const void *bytes, size_t length) {
    if (p->tap && channel >= 0 && atomic_load_explicit(&p->channel[channel].is_wanted, memory_order_relaxed))
        p->tap(p->tap_context, channel, time, bytes, length);
}

// ---------------------------------------------------------------- by name

int32_t us_proxy_n_robot(const us_proxy *p) { return p ? p->n_robot : 0; }

const char *us_proxy_robot_name(const us_proxy *p, int32_t robot) {
    return p && robot >= 0 && robot < p->n_robot ? p->robot[robot].name : NULL;
}

int32_t us_proxy_find_robot(const us_proxy *p, const char *name) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        if (strcmp(p->robot[i].name, name) == 0) return i;
    }
    return -1;
}

const char *us_proxy_command_topic(const us_proxy *p, int32_t robot, int32_t i,
                                   const us_message_type **out_type) {
    if (!p || robot < 0 || robot >= p->n_robot || i < 0) return NULL;
    for (int32_t k = 0; k < USI_COMMAND_COUNT; k++) {
        int32_t channel = p->robot[robot].command_channel[k];
        if (channel < 0 || i-- > 0) continue;
        if (out_type) *out_type = usi_command_type(k);
        return p->channel[channel].topic;
    }
    return NULL;
}

us_status us_proxy_post(us_proxy *p, const char *topic, const us_message_type *type, const char *source,
                        const void *bytes, size_t length) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        for (int32_t k = 0; k < USI_COMMAND_COUNT && !p->robot[i].is_ghost; k++) {
            int32_t channel = p->robot[i].command_channel[k];
            if (usi_command_type(k) != type || channel < 0) continue;
            if (strcmp(p->channel[channel].topic, topic) == 0)
                return usi_mailbox_put(p->robot[i].mailbox, k, source, bytes, length);
        }
        const usi_interface_model *own = &p->robot[i].model->interface_;
        for (int32_t k = 0; k < own->n_inlet && !p->robot[i].is_ghost; k++) {
            // A recording has the type by its name.
            if (strcmp(us_message_name(own->inlet[k].type), us_message_name(type)) == 0 &&
                strcmp(own->inlet[k].topic, topic) == 0)
                return usi_mailbox_put(p->robot[i].mailbox, USI_COMMAND_COUNT + k, source, bytes, length);
        }
    }
    return US_ERR_NAME;
}

us_proxy_counts us_proxy_get_counts(us_proxy *p, const us_sim *sim) {
    us_proxy_counts c = {.n_sample = p->n_sample,
                         .n_unsent = p->n_too_long + (p->outbox ? usi_outbox_n_unsent(p->outbox) : 0)};
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_robot_state *s = usi_view_state(&p->robot[i], sim);
        c.n_dropped += usi_mailbox_n_dropped(p->robot[i].mailbox);
        if (!s) continue;
        const usi_firmware_state *f = usi_view_firmware(&p->robot[i], s);
        c.n_command += f->n_command;
        c.n_refused += f->n_refused;
        c.n_timeout += f->n_timeout;
    }
    return c;
}

void usi_proxy_count_commands(const us_proxy *p, const us_sim *sim, int32_t robot, int64_t *out_taken,
                              int64_t *out_refused) {
    const usi_robot_state *s =
        robot >= 0 && robot < p->n_robot ? usi_view_state(&p->robot[robot], sim) : NULL;
    *out_taken = s ? usi_view_firmware(&p->robot[robot], s)->n_command : 0;
    *out_refused = s ? usi_view_firmware(&p->robot[robot], s)->n_refused : 0;
}

void us_proxy_last_refusal(const us_proxy *p, const us_sim *sim, int32_t robot, char *buf, size_t cap) {
    const usi_robot_state *s =
        robot >= 0 && robot < p->n_robot ? usi_view_state(&p->robot[robot], sim) : NULL;
    snprintf(buf, cap, "%s", s ? usi_view_firmware(&p->robot[robot], s)->refusal : "");
}

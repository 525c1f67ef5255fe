// The messages of a recording. A write that fails is kept by the recorder (us_recorder_info.failed).
#include "world/world__recording.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "proxy/tap.h"
#include "wire/messages.h"

// A command with its topic: more than a mailbox takes.
enum { MAX_MESSAGE = 1 << 20 };

static int64_t time_of(const usi_world_recording *r, int64_t tick) { return usi_time_of(r->proxy, tick); }

static void write_message(const usi_world_recording *r, int32_t channel, const us_message_type *type,
                          const void *message, int64_t time) {
    size_t length = 0;
    if (us_message_encode(type, message, r->bytes, MAX_MESSAGE, &length)) return;
    us_recorder_write(r->recorder, channel, time, time, r->bytes, length);
}

// `kind` is topic and type: Twist and TwistStamped come on one topic.
static void write_command(const usi_world_recording *r, const char *topic, const us_message_type *type,
                          int64_t tick, const char *source, const void *bytes, size_t length) {
    char kind[400];
    snprintf(kind, sizeof kind, "%s %s", topic, us_message_name(type));
    us_msg_command_record m = {.tick = tick, .source = usi_text(source), .topic = kind};
    m.data._buffer = (uint8_t *)usi_text(bytes);
    m.data._length = m.data._maximum = (uint32_t)length;
    write_message(r, r->commands, usi_type_command_record, &m, time_of(r, tick));
}

static void on_sample(void *context, int32_t channel, int64_t time, int64_t due, const void *bytes,
                      size_t length) {
    const usi_world_recording *r = context;
    if (r->channel[channel] >= 0)
        us_recorder_write(r->recorder, r->channel[channel], time, due, bytes, length);
}

static void on_command(void *context, int32_t channel, int64_t tick, const char *source, const void *bytes,
                       size_t length) {
    const usi_world_recording *r = context;
    usi_channel_info info = usi_proxy_get_channel(r->proxy, channel);
    write_command(r, info.topic, info.type, tick, source, bytes, length);
}

// A channel that is there already is found again.
static us_status add_channels(usi_world_recording *r, us_error *err) {
    r->ticks = us_recorder_add_channel(r->recorder, "/understudy/ticks", usi_type_tick_hash, err);
    r->commands = us_recorder_add_channel(r->recorder, "/understudy/commands", usi_type_command_record, err);
    bool is_good = r->ticks >= 0 && r->commands >= 0;
    for (int32_t i = 0; i < r->n_channel && is_good; i++) {
        usi_channel_info info = usi_proxy_get_channel(r->proxy, i);
        const us_offered_qos offered = {info.qos.is_reliable, info.is_latched, info.qos.depth};
        r->channel[i] =
            info.is_out ? us_recorder_add_offered(r->recorder, info.topic, info.type, &offered, err) : -1;
        is_good = r->channel[i] >= 0 || !info.is_out;
    }
    return is_good ? US_OK : US_ERR_IO;
}

us_status usi_world_recording_begin(usi_world_recording *r, const us_allocator *allocator, us_proxy *proxy,
                                    us_recorder *recorder, us_error *err) {
    *r = (usi_world_recording){.allocator = *allocator, .proxy = proxy, .recorder = recorder};
    r->n_channel = usi_proxy_n_channel(proxy);
    r->channel = usi_alloc(allocator, (size_t)r->n_channel * sizeof *r->channel + 1, _Alignof(int32_t));
    r->bytes = usi_alloc(allocator, MAX_MESSAGE, 16);
    us_status status = r->channel && r->bytes ? add_channels(r, err)
                                              : us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                                                             "no memory left for the recording");
    if (status) {
        usi_world_recording_end(r);
        return status;
    }
    usi_proxy_set_record_tap(proxy,
                             &(usi_record_tap){.sample = on_sample, .command = on_command, .context = r});
    return US_OK;
}

us_status usi_world_recording_join(usi_world_recording *r, const usi_world_recording *first, us_proxy *proxy,
                                   us_error *err) {
    return usi_world_recording_begin(r, &first->allocator, proxy, first->recorder, err);
}

void usi_world_recording_end(usi_world_recording *r) {
    if (!r->recorder) return;
    usi_proxy_set_record_tap(r->proxy, NULL);
    usi_release(&r->allocator, r->channel, (size_t)r->n_channel * sizeof *r->channel + 1, _Alignof(int32_t));
    usi_release(&r->allocator, r->bytes, MAX_MESSAGE, 16);
    *r = (usi_world_recording){0};
}

void usi_world_recording_note(usi_world_recording *r, const us_sim *sim, const char *source,
                              const char *text) {
    if (!r->recorder) return;
    const size_t size = strlen(text) + 64;
    uint8_t *bytes = usi_alloc(&r->allocator, size, 16);
    us_msg_string m = {usi_text(text)};
    size_t length = 0;
    if (bytes && !us_message_encode(usi_type_string, &m, bytes, size, &length))
        write_command(r, USI_WORLD_TOPIC, usi_type_string, us_sim_get_tick(sim), source, bytes, length);
    usi_release(&r->allocator, bytes, size, 16);
}

void usi_world_recording_tick(usi_world_recording *r, const us_sim *sim) {
    if (!r->recorder) return;
    int64_t tick = us_sim_get_tick(sim);
    us_msg_tick_hash m = {tick, us_sim_hash(sim)};
    write_message(r, r->ticks, usi_type_tick_hash, &m, time_of(r, tick));
}

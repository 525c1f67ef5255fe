// What a recording of a world holds: the robots' samples, every command, and the state's hash after every
// tick.
//
// The robots' network hands its samples and commands over (proxy/tap.h); world commands and hashes are the
// world's own. All are for the thread that steps.
#ifndef USI_WORLD_RECORDING_H
#define USI_WORLD_RECORDING_H

#include "understudy/proxy.h"

typedef struct usi_world_recording {
    us_allocator allocator;
    us_proxy *proxy;
    us_recorder *recorder;        // NULL: nothing is recorded
    int32_t ticks, commands;      // channels of the recorder
    int32_t n_channel, *channel;  // of the recorder, by channel of the proxy; -1: none
    uint8_t *bytes;               // one message
} usi_world_recording;

// Adds the channels, and is the proxy's record tap from now on. The recorder is not closed.
us_status usi_world_recording_begin(usi_world_recording *recording, const us_allocator *allocator,
                                    us_proxy *proxy, us_recorder *recorder, us_error *err);
// The same for a robot of another proxy, into the channels of commands that the first has.
us_status usi_world_recording_join(usi_world_recording *recording, const usi_world_recording *first,
                                   us_proxy *proxy, us_error *err);
void usi_world_recording_end(usi_world_recording *recording);
// A command to the world itself that enters at the sim's tick. The others do nothing while nothing is
// recorded.
void usi_world_recording_note(usi_world_recording *recording, const us_sim *sim, const char *source,
                              const char *text);
// After us_proxy_publish: the state's hash.
void usi_world_recording_tick(usi_world_recording *recording, const us_sim *sim);

#endif

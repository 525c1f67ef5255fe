// The robots' topics inside the program: which there are, and every sample as it leaves.
//
// A tap is called by the thread that steps, with the bytes that the network gets, also when there is none.
// Without a tap, or on channels that it does not want, nothing is encoded for it.
#ifndef USI_PROXY_TAP_H
#define USI_PROXY_TAP_H

#include "understudy/proxy.h"

// Commands to the world itself stand in recordings under this topic.
#define USI_WORLD_TOPIC "/understudy/command"

// The channels are made with the proxy and stay as long as it does, through us_proxy_replace too: any thread
// may ask. One for each topic, type and direction; several robots may publish on one.
int32_t usi_proxy_n_channel(const us_proxy *proxy);

typedef struct usi_channel_info {
    const char *topic;            // absolute ROS name; NULL for a bad index
    const us_message_type *type;  // of all channels of a topic but cmd_vel it is the only one
    bool is_out;        // a robot, or the world, publishes it; else a robot listens to it: us_proxy_post
    bool is_latched;    // sent once: whoever comes later wants the last samples
    us_qos qos;         // with which it is offered, or asked for
    bool is_request;    // of a service: not a topic that one can see on the network under this name
    int32_t robot;      // -1: of the whole world, or of several robots
    int64_t n_message;  // samples that were sent, or commands that entered, since the proxy was made
} usi_channel_info;
usi_channel_info usi_proxy_get_channel(const us_proxy *proxy, int32_t i);

// `sample` gets each sample of a channel with is_out that is wanted (at first all are); `time` in ns of
// simulated time, the bytes are borrowed. It must not wait. NULL ends it. On the sim's thread, between steps.
typedef void usi_tap_function(void *context, int32_t channel, int64_t time, const void *bytes, size_t length);
void usi_proxy_set_tap(us_proxy *proxy, usi_tap_function *sample, void *context);
// Whether the tap wants a channel. Any thread; heeded at the next publish.
void usi_proxy_want_channel(us_proxy *proxy, int32_t channel, bool is_wanted);

// A recording's tap: every sample of a channel, whether wanted or not, with the time at which it was due, and
// every command that enters. Both are called by the thread that steps; the bytes are borrowed. NULL ends it.
// With a new one the latched samples come once more, to it alone, with the next us_proxy_publish.
typedef struct usi_record_tap {
    void (*sample)(void *context, int32_t channel, int64_t time, int64_t due, const void *bytes,
                   size_t length);
    void (*command)(void *context, int32_t channel, int64_t tick, const char *source, const void *bytes,
                    size_t length);
    void *context;
} usi_record_tap;
void usi_proxy_set_record_tap(us_proxy *proxy, const usi_record_tap *tap);

// The latched samples come once more, to the tap alone, with the next us_proxy_publish or usi_proxy_tend. Any
// thread.
void usi_proxy_resend_latched(us_proxy *proxy);
// A proxy of some of the model's robots: those of the scene have one, and each that was added while the world
// runs has its own, without a clock. On gates its robot is called -1. A sim has them in the order of the
// robots.
typedef struct usi_proxy_part {
    int32_t first, n;
    bool is_added;
} usi_proxy_part;
us_status usi_proxy_create_part(const us_model *model, const us_proxy_def *def, const usi_proxy_part *part,
                                us_proxy **out_proxy, us_error *err);
// us_proxy_replace in two steps, for several proxies of one sim: what the robots are in the other model, of
// which `first` is now the first; then, after the sim's own usi_sim_replace, they go on. What was prepared is
// given back by the second, or by usi_proxy_drop (NULL is allowed).
us_status usi_proxy_prepare(us_proxy *proxy, const us_model *model, int32_t first, us_proxy **out_next,
                            us_error *err);
void usi_proxy_go_on(us_proxy *proxy, us_proxy *next);
void usi_proxy_drop(us_proxy *next);
// A robot that another process has, and a clock that another process publishes: before us_proxy_connect, once
// and for all.
void usi_proxy_set_ghost(us_proxy *proxy, int32_t robot);
void usi_proxy_mute_clock(us_proxy *proxy);
// The robots' computers start anew where the robots are now. Between steps.
void usi_proxy_forget(us_proxy *proxy, us_sim *sim);
// The time once more, to DDS alone: for a world that stands still. Whoever joins then hears what time it is.
void usi_proxy_repeat_clock(us_proxy *proxy, const us_sim *sim);
// Commands of a robot that were taken, and that were refused.
void usi_proxy_count_commands(const us_proxy *proxy, const us_sim *sim, int32_t robot, int64_t *out_taken,
                              int64_t *out_refused);
int64_t usi_time_of(const us_proxy *proxy, int64_t tick);  // ns
// While time stands still: does what usi_proxy_resend_latched asked for. On the sim's thread; cheap when
// nothing was asked.
void usi_proxy_tend(us_proxy *proxy, us_sim *sim);

#endif

// The robots of a world as their own networks know them: commands in at tick boundaries, telemetry out.
//
// A proxy belongs to one sim. It is a part of it (us_plugin): what the robots' firmware keeps (last commands,
// profiles, odometry, battery, what is under way on the radio link) lies in the sim's state, and a world that
// is fed the same commands at the same ticks goes the same way, bit for bit.
//
//     us_proxy_create(model, &def, &proxy, &err);
//     sim_def.parts = &part, where part = us_proxy_get_plugin(proxy);
//     us_sim_create(model, &sim_def, &sim, &err);
//     us_proxy_connect(proxy, bus, &err);            // or not: then commands come by us_proxy_post alone
//     for (;;) { us_sim_step(sim, NULL); us_proxy_publish(proxy, sim); }
//
// Threads: the sim's thread calls plugin, publish and replace; us_proxy_post and the robots' and topics'
// names are for any thread. A thread of its own sends what was published.
#ifndef UNDERSTUDY_PROXY_H
#define UNDERSTUDY_PROXY_H

#include "understudy/bus.h"
#include "understudy/gate.h"
#include "understudy/network.h"
#include "understudy/record.h"
#include "understudy/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_proxy us_proxy;

typedef struct us_proxy_def {
    us_allocator allocator;
    bool enable_motor_servers;        // open the ports of <motors>; default true
    const char *motor_address;        // where they listen; default "127.0.0.1"
    const char *serial_directory;     // where robots with <motors> have serial lines; NULL: nowhere
    us_gate_event_function *on_gate;  // events of the robots' gates, on a thread of their own; may be NULL;
                                      // robot -1: one that was added while the world runs
    void *gate_context;
} us_proxy_def;

US_API us_proxy_def us_proxy_def_default(void);

// The model must outlive it. Its robots are those of the spec with a network interface (us_spec_set_network;
// a scene has one for each robot). `def` may be NULL.
US_API us_status us_proxy_create(const us_model *model, const us_proxy_def *def, us_proxy **out_proxy,
                                 us_error *err);
US_API void us_proxy_destroy(us_proxy *proxy);  // before the bus; NULL is allowed
US_API us_plugin us_proxy_get_plugin(us_proxy *proxy);

// Adds a node and its topics for each robot, and begins to listen and to send, behind a gate
// (understudy/gate.h): while a switch holds a robot's lease, commands of others are refused. What comes over
// the motor ports or by us_proxy_post is not asked for a lease. Opens the motor ports too.
US_API us_status us_proxy_connect(us_proxy *proxy, us_bus *bus, us_error *err);
// Goes on with another model in which the same robots stand, for example after an object was added:
// us_sim_replace, and the robots find their joints again. Their firmware remembers all, and writers, readers,
// motor ports and what waits stay. US_ERR_TREE when a robot's joints, drives or links are others,
// US_ERR_NAME when there are other robots, US_ERR_VALUE for another network interface, step or clock rate;
// err names the robot. On failure nothing has changed. The model must outlive the proxy; the old one may be
// destroyed afterwards. On the sim's thread.
US_API us_status us_proxy_replace(us_proxy *proxy, us_sim *sim, const us_model *model, us_error *err);

// After every step: sends the samples that are due. Never waits for the network. Where time has jumped
// (us_sim_reset, us_sim_restore), /clock and latched topics are sent at once, and what was on its way from
// the robots is lost.
US_API void us_proxy_publish(us_proxy *proxy, us_sim *sim);

US_API int32_t us_proxy_n_robot(const us_proxy *proxy);
US_API const char *us_proxy_robot_name(const us_proxy *proxy, int32_t robot);  // NULL for a bad index
US_API int32_t us_proxy_find_robot(const us_proxy *proxy, const char *name);   // -1 when there is none
// The port on which a robot's motors listen now: that of <motors> (*out_wanted, may be NULL), or one of the
// next 20 where it is taken; 0: none.
US_API int32_t us_proxy_motor_port(const us_proxy *proxy, int32_t robot, int32_t *out_wanted);
// The names of a robot's serial lines, with blanks between them; "" for none. It stays as long as the proxy.
US_API const char *us_proxy_serial_lines(const us_proxy *proxy, int32_t robot);
// The topics that a robot listens to, by number from 0; NULL beyond the last. Absolute ROS names; `out_type`
// may be NULL. Requests (has_services of us_network_def) stand under the name of their service. The text
// stays as long as the proxy.
US_API const char *us_proxy_command_topic(const us_proxy *proxy, int32_t robot, int32_t i,
                                          const us_message_type **out_type);

// A command as if it had come from the network. It enters at the next tick boundary. US_ERR_NAME for a topic
// and type that no robot listens to, US_ERR_LIMIT when too many wait.
US_API us_status us_proxy_post(us_proxy *proxy, const char *topic, const us_message_type *type,
                               const char *source, const void *bytes, size_t length);

typedef struct us_proxy_counts {
    int64_t n_command;  // taken
    int64_t n_refused;  // not valid; the last reason stands in /diagnostics
    int64_t n_dropped;  // too many at once
    int64_t n_timeout;  // safe stops
    int64_t n_sample;   // sent
    int64_t n_unsent;   // samples for which the sending thread had no room
} us_proxy_counts;
US_API us_proxy_counts us_proxy_get_counts(us_proxy *proxy, const us_sim *sim);
// Why the last command of a robot was refused; "" when none was. Into buf.
US_API void us_proxy_last_refusal(const us_proxy *proxy, const us_sim *sim, int32_t robot, char *buf,
                                  size_t cap);

// Runs a recording again from its start state, command by command, and compares the state's hash after every
// tick. `model` is that of the recorded scene. US_OK when every tick came out the same;
// US_ERR_DIVERGED names the first that did not. `progress` may be NULL. Recordings with commands to the world
// itself are for us_world_verify: US_ERR_NAME.
typedef struct us_verify_result {
    int64_t first_tick, n_tick, n_command;
    int64_t bad_tick;  // -1: none
} us_verify_result;
US_API us_status us_proxy_verify(const us_model *model, us_recording *recording,
                                 void (*progress)(void *context, double share), void *context,
                                 us_verify_result *out_result, us_error *err);

#ifdef __cplusplus
}
#endif
#endif

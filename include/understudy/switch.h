// The switch between a robot's hardware and its simulation (the proxy): operators see one robot, and either
// of the two sources can be in control.
//
// A switch joins three DDS domains: that of the operators, that of the hardware and that of the proxy. The
// operators' domain has exactly one set of endpoints for the robot, under the robot's own node names,
// whichever source is in control. Samples pass unchanged, with their source time.
//
//     operators ---- commands ---> [switch] ---> the source in control
//     operators <--- outputs ----- [switch] <--- the source in control
//
// The source in control is published on /understudy/authority (std_msgs/String, latched, one line of JSON)
// and requested on /understudy/authority/request (std_msgs/String: a mode, or a robot's name and a mode), in
// each of the three domains. Each change has an epoch, a number that only grows, also over restarts of the
// switch: a command that arrived under an older epoch is dropped.
//
// A switch commands a source only with a lease of the source's gate (understudy/gate.h), and is in office
// while it holds those of both: so that there are never two. Sources without a gate are commanded without;
// where neither has one a switch withdraws when another one of its robot publishes a newer epoch.
//
// All functions may be called from any thread. A switch has a thread for requests and the watchdog, one for
// discovery, one that passes samples on, and one that writes events.
#ifndef UNDERSTUDY_SWITCH_H
#define UNDERSTUDY_SWITCH_H

#include "understudy/base.h"
#include "understudy/bus.h"
#include "understudy/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum us_switch_source { US_SWITCH_HARDWARE, US_SWITCH_PROXY, US_SWITCH_NOBODY } us_switch_source;

typedef enum us_switch_mode {
    US_MODE_HARDWARE,  // commands to the hardware, its outputs to the operators
    US_MODE_PROXY,     // the same with the proxy
    US_MODE_MIRROR,    // control stays; the other's outputs are published under /understudy/mirror/ROBOT/...
    US_MODE_SHADOW,    // control to the hardware; the proxy gets copies of its commands, and its outputs are
                       // published under /understudy/shadow/ROBOT/...
    US_MODE_STOP,      // no commands to either; the outputs of the source last in control still go out
    US_MODE_COUNT
} us_switch_mode;

US_API const char *us_switch_mode_name(us_switch_mode mode);  // "hardware" ...; "" for a bad number
US_API us_switch_mode us_switch_find_mode(const char *name);  // US_MODE_COUNT when there is none of that name
US_API const char *us_switch_source_name(us_switch_source source);

// Reaction when the source in control is silent for longer than the watchdog. Where the successor is silent
// too: US_MODE_STOP, until one of the two publishes again and gets control.
typedef enum us_switch_loss {
    US_LOSS_PROXY,  // default: the proxy takes over from lost hardware; a lost proxy means US_MODE_STOP
    US_LOSS_OTHER,  // the other source takes over, whichever it is
    US_LOSS_STOP,   // US_MODE_STOP, until another mode is requested
} us_switch_loss;

// Hand-over of control; docs/switch.md has the mathematics.
typedef struct us_handover_def {
    bool is_off;  // control changes at once, without a comparison of the states; default false

    // Maximum difference of the two when the hardware takes over from the proxy.
    double position, yaw;  // m, rad; default 0.1 and 5 degrees
    double joint;          // joints with a motor and limits, such as steering joints: rad; default 5 degrees
    double speed, yaw_rate;  // m/s, rad/s; default 0.05 and 0.1

    // Rate at which velocity commands go from the new source's velocity to the requested one; 0: at once.
    double acceleration, yaw_acceleration;  // m/s^2, rad/s^2; default 0.5 and 1

    // Driving the hardware to the proxy's pose.
    double match_speed, match_yaw_rate;  // m/s, rad/s; default 0.2 and 0.4
    double match_time;                   // timeout, s; default 60

    const char *evidence;  // file to which each hand-over is appended as a line of JSON; default NULL: none
} us_handover_def;

// A declared topic. Its endpoints exist on the operators' side from the start.
typedef struct us_switch_topic {
    const char *topic;  // absolute ROS name, or a DDS name
    const us_message_type *type;
    us_qos qos;
    bool is_command;  // operators to robot; otherwise robot to operators
} us_switch_topic;

typedef struct us_switch_change {
    us_switch_mode from_mode, to_mode;
    us_switch_source from, to;  // which source gets the commands
    uint64_t epoch;             // the new one
    const char *reason;
    bool is_forced;  // by the watchdog or a rule: a refusal is ignored
} us_switch_change;
// Called on the switch's thread before the source changes, after the state was handed over, while the old
// source is still in control and samples flow. Anything but US_OK refuses a request, with err's message as
// the reason. The watchdog waits for it: it must not block.
typedef us_status us_switch_change_function(void *context, const us_switch_change *change, us_error *err);
// One line of text per event (changes, refusals, losses, topics that cannot be passed on), in their order, on
// a thread of its own: it may block. `time` is wall time, ns.
typedef void us_switch_event_function(void *context, int64_t time, const char *text);

// Tolerances of the comparison of hardware and proxy in the modes shadow and mirror. A difference counts by
// its ratio to the tolerance; the confidence is exp(-r^2 / 2) of the largest ratio r. SI units; a tolerance
// with a growth increases with the distance since the comparison began. docs/switch.md has the origin of the
// defaults.
typedef struct us_shadow_def {
    double position, position_growth;  // x and y by odometry: m, and m for each m driven
    double yaw, yaw_growth;      // by odometry and by the inertial unit: rad, and rad for each rad rotated
    double speed, yaw_rate;      // of the body: m/s, rad/s
    double joint, joint_growth;  // rad or m; of continuous joints rad more for each rad rotated
    double joint_speed;          // rad/s or m/s
    double gyro, accelerometer;  // rad/s, m/s^2
    double time;                 // s: delay between the two that is no difference
    double degraded, diverged;  // confidences below which the state is US_SHADOW_DEGRADED, US_SHADOW_DIVERGED
    bool resync_when_diverged;  // default false: us_switch_resync
} us_shadow_def;

typedef enum us_shadow_state {
    US_SHADOW_OFF,
    US_SHADOW_OK,
    US_SHADOW_DEGRADED,
    US_SHADOW_DIVERGED
} us_shadow_state;
US_API const char *us_shadow_state_name(us_shadow_state state);  // "off", "ok" ...; "" for a bad number

// One port of the ASCII motor protocol for the operators, TCP and UDP, in front of those of both sources.
typedef struct us_switch_motors {
    bool is_on;                    // default false
    const char *address;           // default NULL: 127.0.0.1
    int32_t port;                  // 0: any that is free
    const char *hardware, *proxy;  // their ports: "ADDRESS:PORT"
} us_switch_motors;

typedef struct us_switch_def {
    us_allocator allocator;                 // used from several threads
    const char *robot;                      // its namespace, for example "k10"
    us_bus_def operators, hardware, proxy;  // domains 0, 1 and 2; they must differ
    us_switch_mode mode;                    // at the start; default hardware
    double watchdog;                        // s; default 0.5
    us_switch_loss on_loss;
    int32_t n_rule;            // default none
    const char *const *rules;  // "fault [PATTERN] -> MODE", "topic NAME -> MODE": docs/switch.md
    // Topics and samples that cross: "only PATTERN", "except PATTERN", "also PATTERN", "filter PATTERN
    // CONDITION ...": docs/switch.md. Default none: all of the robot's.
    int32_t n_selection;
    const char *const *selections;
    bool is_standby;  // waits while another switch of the robot is in office; default: takes over
    bool is_keeping;  // does not give way to another switch that takes over; default: does
    // Authority, requests, reports and, in the modes mirror and shadow, copies of the other's outputs are in
    // the operators' domain too, below /understudy; default false: in the domains of the sources alone.
    bool is_visible;
    bool is_secret;  // the source in control is not published to the operators; default false
    const char
        *heartbeat;  // the output whose samples show that a source is alive; NULL: any of the namespace
    // Outputs outside the namespace that are passed on too, as far as no other robot's node has written them;
    // default /tf, /tf_static and /diagnostics.
    int32_t n_shared;
    const char *const *shared;
    int32_t n_topic;
    const us_switch_topic *topics;
    us_shadow_def shadow;
    us_handover_def handover;
    us_switch_motors motors;
    us_switch_change_function *on_change;  // may be NULL
    us_switch_event_function *on_event;    // may be NULL
    void *context;                         // of both
} us_switch_def;

typedef struct us_switch us_switch;

US_API us_switch_def us_switch_def_default(void);
// Joins the three domains and starts. Topics are discovered from now on: those below /ROBOT that nodes of
// that namespace write or read, services too, of any type. Texts and arrays of the definition are copied.
// US_ERR_VALUE for domains that do not differ, an invalid name, watchdog or rule.
US_API us_status us_switch_open(const us_switch_def *def, us_switch **out_switch, us_error *err);
US_API void us_switch_close(us_switch *sw);  // NULL is allowed

// Requests a mode, as a message on the request topic does. Answered within a moment: n_answer of the state
// grows, and `refused` has the reason of a refusal.
US_API us_status us_switch_request(us_switch *sw, us_switch_mode mode);
// Requests a restart of the comparison, with the proxy set to the hardware's state where it can be; answered
// in the same way.
US_API us_status us_switch_resync(us_switch *sw);
// Requests a mode with a policy for the hardware to take over from the proxy.
typedef enum us_switch_policy {
    US_POLICY_AGREED,         // if the two states agree
    US_POLICY_MATCH,          // after a drive to the proxy's pose: answered on arrival, or when that fails
    US_POLICY_UNCONDITIONAL,  // whatever the states
    US_POLICY_COUNT
} us_switch_policy;
US_API us_status us_switch_request_with_policy(us_switch *sw, us_switch_mode mode, us_switch_policy policy);

typedef struct us_switch_state {
    us_switch_mode mode;
    us_switch_source control;        // which source gets the commands
    us_switch_source output_source;  // whose outputs go out under the robot's name
    uint64_t epoch;
    int64_t since;      // wall time of the last change, ns
    bool is_alive[2];   // hardware, proxy: a sample within the watchdog
    bool is_waiting;    // for the leases of the sources: nothing is passed on yet
    bool is_withdrawn;  // another switch of this robot has the leases: nothing is passed on any more
    bool has_gate[2];   // hardware, proxy
    uint64_t term[2];   // of the leases that it holds; 0: none
    char reason[160];   // of the last change
    char refused[160];  // why the last request was refused; "" when it was not
    int64_t n_answer;   // requests answered
    int64_t n_command, n_output, n_copy;  // passed on
    int64_t n_fenced;                     // commands dropped: of an older epoch, or no source in control
    int64_t n_unsent;                     // samples that a writer could not take
    int32_t n_topic;
    us_shadow_state shadow;  // agreement of the two; off in other modes than shadow and mirror
    double confidence;       // 0 to 1
} us_switch_state;
US_API us_switch_state us_switch_get_state(us_switch *sw);
US_API int32_t us_switch_motor_port(const us_switch *sw);  // 0: it has none

#ifdef __cplusplus
}
#endif
#endif

// The switch between a robot and its understudy: one robot for the operators, two that can play it.
//
// Three DDS domains meet here: that of the operators, that of the hardware and that of the proxy. The
// operators' domain has exactly one set of endpoints for the robot, under the robot's own node names, whoever
// plays it. Samples cross as the bytes they are, with their source time.
//
//     operators ---- commands ---> [switch] ---> the one in control
//     operators <--- outputs ----- [switch] <--- the one in control
//
// Who is in control is told on /understudy/authority (std_msgs/String, latched, one line of JSON) and asked
// for on /understudy/authority/request (std_msgs/String: a mode, or a robot's name and a mode), in each of
// the three domains. Each change has an epoch, a number that only grows, also over restarts of the switch: a
// command that was taken in under an older one is dropped, and a switch that hears a newer one of its robot
// withdraws.
//
// All functions may be called from any thread. A switch has a thread of its own for discovery, requests and
// the watchdog, one that passes samples on, and one that writes down what happens.
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
    US_MODE_MIRROR,    // who was in control stays so; the outputs of the other are told under
                       // /understudy/mirror/ROBOT/...
    US_MODE_SHADOW,    // the hardware is in control; the proxy gets copies of its commands and is heard under
                       // /understudy/shadow/ROBOT/...
    US_MODE_STOP,      // no commands to anybody; the outputs of who was in control last still go out
    US_MODE_COUNT
} us_switch_mode;

US_API const char *us_switch_mode_name(us_switch_mode mode);  // "hardware" ...; "" for a bad number
US_API us_switch_mode us_switch_find_mode(const char *name);  // US_MODE_COUNT when there is none of that name
US_API const char *us_switch_source_name(us_switch_source source);

// What happens when the one in control is silent for longer than the watchdog. Where the one who would take
// over is silent too, US_MODE_STOP, until one of the two is heard again, who then plays.
typedef enum us_switch_loss {
    US_LOSS_PROXY,  // the proxy takes over from lost hardware, when it is alive; a lost proxy means
                    // US_MODE_STOP. The default
    US_LOSS_OTHER,  // the other takes over, when it is alive, whoever it is
    US_LOSS_STOP,   // US_MODE_STOP, until somebody asks for another mode
} us_switch_loss;

// How control is handed over; docs/switch.md has the mathematics.
typedef struct us_handover_def {
    bool is_off;           // control changes at once, and nobody looks at the states; default false
    double position, yaw;  // how far the hardware may be from the proxy that it takes over from: m, rad;
                           // default 0.1 and 5 degrees
    double joint;  // of joints with a motor and an end, such as those that steer: rad; default 5 degrees
    double speed, turn;  // m/s, rad/s; default 0.05 and 0.1
    double acceleration,
        turn_acceleration;  // at which the first velocities go from what the new one does to what is asked,
                            // m/s^2 and rad/s^2; 0: at once. Default 0.5 and 1
    double match_speed, match_turn;  // with which the hardware is driven to the proxy's pose, m/s and rad/s;
                                     // default 0.2 and 0.4
    double match_time;               // s; default 60
    const char *evidence;  // file to which each hand-over is added as a line of JSON; default NULL: none
} us_handover_def;

// A topic that is known beforehand. Its endpoints stand on the operators' side from the start.
typedef struct us_switch_topic {
    const char *topic;  // absolute ROS name, or a DDS name
    const us_message_type *type;
    us_qos qos;
    bool is_command;  // operators to robot; otherwise robot to operators
} us_switch_topic;

typedef struct us_switch_change {
    us_switch_mode from_mode, to_mode;
    us_switch_source from, to;  // who gets the commands
    uint64_t epoch;             // the new one
    const char *reason;
    bool is_forced;  // the watchdog or a rule asks: a refusal is not heard
} us_switch_change;
// Called on the switch's thread before the source changes, after the state was handed over, while the old one
// is still in control and samples flow. Anything but US_OK refuses a request, with err's message as the
// reason. The watchdog waits for it: it must not block.
typedef us_status us_switch_change_function(void *context, const us_switch_change *change, us_error *err);
// One line of text per event (changes, refusals, losses, topics that cannot be passed on), in their order, on
// a thread of its own: it may block. `time` is wall time, ns.
typedef void us_switch_event_function(void *context, int64_t time, const char *text);

// How far hardware and proxy may differ in the modes shadow and mirror. A difference counts by its ratio to
// the tolerance; the confidence is exp(-r^2 / 2) of the greatest ratio r. SI units; a share grows with the
// way since the comparison began. docs/switch.md says where the defaults come from.
typedef struct us_shadow_def {
    double position, position_share;  // x and y by odometry: m, and m for each m driven
    double yaw, yaw_share;       // by odometry and by the inertial unit: rad, and rad for each rad turned
    double speed, turn_rate;     // of the body: m/s, rad/s
    double joint, joint_share;   // rad or m; of continuous joints rad more for each rad turned
    double joint_speed;          // rad/s or m/s
    double gyro, accelerometer;  // rad/s, m/s^2
    double time;                 // s by which the two may do the same at another time
    double doubtful, parted;     // below these confidences they are
    bool resync_when_parted;     // default false: somebody has to ask
} us_shadow_def;

typedef enum us_shadow_state {
    US_SHADOW_OFF,
    US_SHADOW_OK,
    US_SHADOW_DEGRADED,
    US_SHADOW_DIVERGED
} us_shadow_state;
US_API const char *us_shadow_state_name(us_shadow_state state);  // "off", "ok" ...; "" for a bad number

typedef struct us_switch_def {
    us_allocator allocator;                 // used from several threads
    const char *robot;                      // its namespace, for example "k10"
    us_bus_def operators, hardware, proxy;  // domains 0, 1 and 2; they must differ
    us_switch_mode mode;                    // to begin with; default hardware
    double watchdog;                        // s; default 0.5
    us_switch_loss on_loss;
    int32_t n_rule;            // default none
    const char *const *rules;  // "fault [PATTERN] -> MODE", "topic NAME -> MODE": docs/switch.md
    bool is_secret;            // the operators are not told who is in control; default false
    const char *heartbeat;  // the output whose samples show that a source is alive; default NULL: any below
                            // the namespace
    int32_t n_shared;  // outputs outside the namespace that are passed on too; default /tf, /tf_static and
                       // /diagnostics. Of
    const char *const *shared;  // them only what no node outside the robot's namespace has written
    int32_t n_topic;
    const us_switch_topic *topics;
    us_shadow_def shadow;
    us_handover_def handover;
    us_switch_change_function *on_change;  // may be NULL
    us_switch_event_function *on_event;    // may be NULL
    void *context;                         // of both
} us_switch_def;

typedef struct us_switch us_switch;

US_API us_switch_def us_switch_def_default(void);
// Joins the three domains and begins. Topics are discovered from now on: those below /ROBOT that nodes of
// that namespace write or read, services too. Texts and arrays of the definition are copied. US_ERR_VALUE for
// domains that are not three, a bad name, watchdog or rule.
US_API us_status us_switch_open(const us_switch_def *def, us_switch **out_switch, us_error *err);
US_API void us_switch_close(us_switch *sw);  // NULL is allowed

// Asks for a mode, as a request on the topic would. It is answered within a moment: n_answer of the state
// grows, and `refused` says why not.
US_API us_status us_switch_ask(us_switch *sw, us_switch_mode mode);
// Asks to compare anew from here, the proxy set to the hardware's state where it can be; answered in the same
// way.
US_API us_status us_switch_resync(us_switch *sw);
// The same, and how the hardware shall take over from the proxy.
typedef enum us_switch_how {
    US_HOW_AGREED,  // when both agree
    US_HOW_MATCH,   // after it was driven to the proxy's pose: answered when it is there, or cannot get there
    US_HOW_ANYWAY,  // as it is
    US_HOW_COUNT
} us_switch_how;
US_API us_status us_switch_ask_how(us_switch *sw, us_switch_mode mode, us_switch_how how);

typedef struct us_switch_state {
    us_switch_mode mode;
    us_switch_source control;  // who gets the commands
    us_switch_source voice;    // whose outputs go out under the robot's name
    uint64_t epoch;
    int64_t since;      // wall time of the last change, ns
    bool is_alive[2];   // hardware, proxy: heard within the watchdog
    bool is_withdrawn;  // a newer switch of this robot was heard: nothing is passed on any more
    char reason[160];   // of the last change
    char refused[160];  // why the last request was refused; "" when it was not
    int64_t n_answer;   // requests answered
    int64_t n_command, n_output, n_copy;  // passed on
    int64_t n_fenced;                     // commands dropped: of an older epoch, or nobody in control
    int64_t n_unsent;                     // that a writer could not take
    int32_t n_topic;
    us_shadow_state shadow;  // whether the two do the same; off in other modes than shadow and mirror
    double confidence;       // 0 to 1
} us_switch_state;
US_API us_switch_state us_switch_get_state(us_switch *sw);

#ifdef __cplusplus
}
#endif
#endif

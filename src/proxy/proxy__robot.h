// A robot of the proxy: what never changes about it, and what its firmware remembers, which is part of the
// world's state.
#ifndef USI_PROXY__ROBOT_H
#define USI_PROXY__ROBOT_H

#include <stdatomic.h>

#include "bus/motor_server.h"
#include "bus/request.h"
#include "kincontrol/odometry.h"
#include "model/robots.h"
#include "proxy/link.h"
#include "proxy/mailbox.h"
#include "proxy/outbox.h"
#include "proxy/tap.h"
#include "sim/sim.h"
#include "spec/fault_target.h"
#include "spec/spec.h"
#include "understudy/proxy.h"
#include "wire/messages.h"

const us_message_type *usi_command_type(int32_t topic);

enum {
    USI_UPLINK_SIZE = 64 * 1024,
    USI_UPLINK_SPARE = 8 * 1024,  // of a perfect link, for the day when a fault delays it
};

// Where samples of one topic, or replies of one service, leave.
typedef struct usi_outlet {
    const us_message_type *type;
    us_writer *writer;  // NULL: without a network
    int32_t channel;    // of the proxy; -1: none, as of replies
    bool is_sent;       // a sample has left, and was not lost on the radio
    bool is_shared;     // the writer is another outlet's, or a service's
} usi_outlet;

enum { USI_REPLY_PROPERTIES = 32, USI_MAX_WAIT = 16 };

// A request that waits for the end of a command. No part of the state: its reply is none either.
typedef struct usi_wait {
    uint64_t guid;
    int64_t seq;
    int32_t service;    // usi_wait_service
    uint32_t sequence;  // of the command
    int64_t n_tick;     // that are left
    bool is_used;
} usi_wait;

// ---------------------------------------------------------------- what never changes

// First what follows from the model, and is found again when that is replaced; from `proxy` on what stays as
// long as the proxy, where threads of the network look at it.
typedef struct usi_robot {
    const usi_robot_model *model;
    int32_t (*script_value)[USI_TERM_LIMIT];  // of each script's condition: values of the sim
    // Where its state stands in the plug-in's, and where its arrays, the firmware's state and the radio link
    // are.
    size_t state_at, state_size, scripts_at, open_at, firmware_at, uplink_at, uplink_size;
    int32_t number;  // of the model's robots: what is random about it, and when its samples are due
    // The outside.
    us_proxy *proxy;
    int32_t index;
    bool is_ghost;  // another process has it: here it has neither firmware nor network
    const char *name;
    const char *description;  // the URDF; NULL: there is none
    usi_mailbox *mailbox;
    int32_t gate;               // its number at the proxy's gate; -1: none
    int32_t node_number;        // of the bus; -1: none
    int32_t n_topic, n_outlet;  // n_topic: of the model's robot
    usi_outlet *outlet;         // of each topic, then USI_SERVICE_COUNT of replies, then of the interface's
                                // endpoints; the last is the log's
    us_interface *types;        // of the interface: held while the network uses them
    us_reader **inlet_reader;   // of each inlet of the interface
    int32_t *inlet_channel;
    us_reader *reader[USI_COMMAND_COUNT];
    us_service *service[USI_SERVICE_COUNT];
    usi_wait *wait;                              // USI_MAX_WAIT
    us_reader *own_reader[USI_COMMAND_SOURCES];  // of sources with a topic of their own
    int32_t command_channel[USI_COMMAND_COUNT];  // of the proxy; -1: none
    usi_motor_server *motors;
    struct usi_ros_node *node;  // parameters and log; NULL: none
    int64_t log_time;           // ns: of the last line
    char log_text[160];
    struct usi_faces *faces;          // serial lines; NULL: none
    struct usi_lidar_packet *packet;  // of each of its sensors, lidars that send their maker's; NULL: none
    int32_t n_packet;
    usi_link_head downlink_head;
    usi_link_queue downlink;
    int64_t stamp_offset;  // of the state, as it was when the last samples left
} usi_robot;

// ---------------------------------------------------------------- what it remembers

// Of a scripted fault: the tick after which it came and was undone, counted from 1; 0: not yet.
typedef struct usi_script_state {
    int64_t fired, undone;
} usi_script_state;

// What has failed beside drives and sensors. It outlives the computer's memory.
typedef struct usi_fault_state {
    int64_t power_until;  // tick before which it has no power; 0: it has; INT64_MAX: until somebody mends it
    int64_t boot_until;   // tick before which its computer starts; 0: it runs
    int64_t boot_tick;    // the first tick after the last start; 0: it runs since the world does
    int64_t n_boot;
    int64_t outage_until;  // tick before which the radio link is out; INT64_MAX: until somebody mends it
    double loss, delay;    // of the radio link, on top of the scene's; s
} usi_fault_state;

// A command of the interface that is being carried out: what its end is answered with.
enum { USI_OPEN_TEXT = 256 };
typedef struct usi_open_copy {
    double number;
    int64_t whole;
    uint32_t length;
    uint8_t is_there, is_whole, is_text, reserved;
    char text[USI_OPEN_TEXT];
} usi_open_copy;
typedef struct usi_open_command {
    int64_t tick;    // at which its motion began
    int32_t motion;  // usi_motion; 0: no command is open
    int32_t inlet;
    usi_open_copy copy[USI_COPIES];
} usi_open_command;

// Beside the firmware's state.
typedef struct usi_robot_state {
    int64_t stamp_offset;  // ns: the robot's clock less simulated time
    usi_link_head uplink;
    usi_fault_state faults;
    int64_t
        source_until[USI_COMMAND_SOURCES];  // tick up to which those below this source are refused; 0: not
} usi_robot_state;

// Fraction of its charge that a robot's battery has left; NaN without one.
double usi_robot_charge(const usi_robot *r, const us_sim *sim);

// The arrays behind it.
static inline usi_script_state *usi_scripts_of(const usi_robot *r, usi_robot_state *s) {
    return (usi_script_state *)(void *)((char *)s + r->scripts_at);
}
static inline const usi_script_state *usi_view_scripts(const usi_robot *r, const usi_robot_state *s) {
    return (const usi_script_state *)(const void *)((const char *)s + r->scripts_at);
}
// NULL: the robot answers no command's end.
static inline usi_open_command *usi_open_of(const usi_robot *r, usi_robot_state *s) {
    return r->model->interface_.has_endings ? (usi_open_command *)(void *)((char *)s + r->open_at) : NULL;
}
static inline usi_firmware_state *usi_firmware_of(const usi_robot *r, usi_robot_state *s) {
    return (usi_firmware_state *)(void *)((char *)s + r->firmware_at);
}
static inline const usi_firmware_state *usi_view_firmware(const usi_robot *r, const usi_robot_state *s) {
    return (const usi_firmware_state *)(const void *)((const char *)s + r->firmware_at);
}
static inline bool usi_can_move(const usi_robot *r) { return usi_firmware_can_move(&r->model->firmware); }

// ---------------------------------------------------------------- the proxy

// A topic with its type and direction: see tap.h.
typedef struct usi_channel {
    const char *topic;
    const us_message_type *type;
    bool is_out, is_request;
    us_qos qos;  // that it is offered with
    int32_t robot;
    _Atomic bool is_wanted;
    _Atomic int64_t n_message;
} usi_channel;

struct us_proxy {
    us_allocator allocator;
    us_proxy_def def;
    const us_model *model;
    usi_arena arena;  // of what stays
    usi_arena bound;  // of what follows from the model
    double step;
    uint64_t seed;
    // The model's robots that are this proxy's: all, or one alone that others' proxies are beside.
    int32_t first_robot, n_robot;
    bool is_part;
    usi_robot *robot;
    size_t state_size;
    double *readings;             // positions, then velocities: of as many joints as a robot has at most
    usi_firmware_output *output;  // of as many drives
    usi_drive_command *commands;  // of one message
    int32_t n_reading, n_output, n_commands;
    void *mails;    // USI_MAILBOX_SIZE: what was taken out of a mailbox
    void *decoded;  // of one message
    size_t n_decoded;
    void *message;  // a message under construction: its arrays
    char *bytes;    // and encoded
    size_t n_message, n_byte;
    us_bus *bus;
    us_gate *gate;                // NULL: no robot on the network
    struct usi_cameras *cameras;  // NULL: the model has none
    usi_robot **gated;            // robots by their number at the gate
    usi_outbox *outbox;
    usi_record_tap record;  // .sample NULL: nothing is recorded
    us_writer *clock;
    double clock_rate;
    bool is_clock_off;       // another process publishes it
    usi_wire_value *values;  // of one sample of an interface
    int32_t n_value;
    usi_channel *channel;
    int32_t n_channel, clock_channel;
    usi_tap_function *tap;
    void *tap_context;
    _Atomic bool owes_tap;  // the latched samples, once more
    bool owes_record;       // the same to a recording that has just begun
    bool owes_all;          // the same to everybody: the next publish is as the first one
    int64_t seen_tick;      // at which the last step began or the last samples left: time goes on from here
    int64_t wall_ahead, own_ahead;  // ns: of CLOCK_REALTIME and CLOCK_MONOTONIC over simulated time
    int64_t now;                    // ns: of CLOCK_MONOTONIC at this publish
    int64_t n_sample;
    int64_t n_too_long;  // samples that did not fit into `bytes`
};

// robot.c: the robots of the model, as far as they follow from it.
us_status usi_robots_make(us_proxy *p);
// And what they have on the outside: names, mailboxes, links.
us_status usi_robots_equip(us_proxy *p);

// What a request is answered, beside the status.
typedef struct usi_reply {
    int32_t service;  // counted from USI_COMMAND_ASK; -1: nobody asked
    uint64_t guid;    // of the client, and the number of its request
    int64_t seq;
    bool is_accepted;
    us_rover_error error;
    uint8_t state;       // of a wait: us_rover_state
    int32_t n_property;  // of a request for properties
    int8_t property[USI_REPLY_PROPERTIES];
    bool goes_on;        // a command of the interface whose end comes later
    bool is_for_others;  // a sample of the interface that is not meant for this robot: as if it had not come
    char message[USI_REFUSAL_MAX];
} usi_reply;

typedef enum usi_sink { USI_SINK_ALL, USI_SINK_TAP, USI_SINK_RECORDER } usi_sink;

// command.c: a command has come to the robot: checked, then taken or refused, with the reason in the words of
// the motor protocol. A request that cannot be read has no number and so no reply.
usi_motor_reason usi_robot_command(const usi_robot *r, const us_sim *sim, usi_robot_state *s,
                                   const usi_mail *mail, usi_reply *out_reply);

// Commands of the interface stand behind the others; -1: it is none of them.
static inline int32_t usi_inlet_of(int32_t topic) {
    return topic < USI_COMMAND_COUNT ? -1 : topic - USI_COMMAND_COUNT;
}
static inline int32_t usi_channel_of_command(const usi_robot *r, int32_t topic) {
    return topic < USI_COMMAND_COUNT ? r->command_channel[topic] : r->inlet_channel[usi_inlet_of(topic)];
}
// interface_sample.c: topics of the robot's own interface. Channels and outlets, then the network.
us_status usi_interface_make(us_proxy *p, usi_robot *r);
us_status usi_interface_connect(us_proxy *p, usi_robot *r, int32_t node, us_error *err);
void usi_interface_disconnect(usi_robot *r);
// Its samples that are due.
void usi_interface_publish(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                           bool is_first, usi_sink sink);
// interface_command.c: a sample of an inlet has come: whether it was taken, else why not. `may` says whether
// its sender may command.
// Writes goes_on and is_for_others of the reply.
bool usi_interface_command(const usi_robot *r, const usi_mail *mail, bool may, usi_firmware_request *request,
                           usi_reply *out_reply);
// And answered, where the interface says so. `copy` has USI_COPIES of the command's sample.
void usi_interface_send_answer(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                               int32_t inlet, int32_t answer, const usi_wire_value *copy, const char *why);
// interface_ending.c: a command was taken or refused. One that was taken may end another.
void usi_interface_answer(us_proxy *p, usi_robot *r, const us_sim *sim, usi_robot_state *s,
                          const usi_mail *mail, const usi_reply *reply);
// After the firmware's step: whether the open command has come to its end.
void usi_interface_watch(us_proxy *p, usi_robot *r, const us_sim *sim, usi_robot_state *s);
bool usi_open_is_sound(const usi_robot *r, const usi_robot_state *s);

// rover_service.c: requests for properties and waits. A wait that is not over has reply->service -1.
bool usi_ask_properties(usi_firmware_request *c, const us_msg_properties_request *m, usi_reply *reply);
void usi_ask_wait(const usi_robot *r, const usi_firmware_state *s, const us_msg_wait_request *m,
                  usi_reply *reply);
// After a tick: answers those whose command has ended or whose time is over.
void usi_waits_serve(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s);

// command_source.c: who goes first. Whether a mail may command the robot now, with the reason if not.
bool usi_source_may_command(const usi_robot *r, const usi_robot_state *s, const usi_mail *mail, int64_t tick,
                            char *out_why, size_t cap);
// Its command was taken.
void usi_source_has_commanded(const usi_robot *r, usi_robot_state *s, const usi_mail *mail, int64_t tick);
// The name of the source that others have to wait for, "" for none.
const char *usi_source_in_force(const usi_robot *r, const usi_robot_state *s, int64_t tick);
bool usi_has_exclusive_network(const us_network_def *d);
// "/k10/operator/cmd_vel".
void usi_command_source_topic(const us_network_def *d, const us_command_source *c, char *out, size_t cap);

// robot_tick.c: a tick that does not follow on the last one.
void usi_notice_jump(us_proxy *p, int64_t tick);
// The computer loses its memory; faults, the battery, how the body moved and what is on its way by radio
// stay.
void usi_robot_forget(const usi_robot *r, const us_sim *sim, usi_robot_state *s);

// channel.c: names in the robot's namespace, and which commands it takes.
void usi_topic_name(const usi_robot *r, const char *name, char *out, size_t cap);
bool usi_has_command(const usi_robot *r, int32_t topic);
// The channels are made with the robots.
us_status usi_channels_make(us_proxy *p);
int32_t usi_channel_add(us_proxy *p, const char *topic, const us_message_type *type, bool is_out,
                        int32_t robot);
// Of a message that came or went, and of a sample that the tap may want; -1 is no channel.
void usi_channel_count(us_proxy *p, int32_t channel);
void usi_channel_tap(us_proxy *p, int32_t channel, int64_t time, const void *bytes, size_t length);

// publish.c: the samples of a robot that are due.
void usi_robot_publish(us_proxy *p, usi_robot *r, us_sim *sim, const usi_robot_state *s, bool is_first);
// Those that are sent once, again: to the tap, or to the recorder alone.
void usi_robot_repeat(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s, usi_sink sink);
// Answers a request with the status of now. Nothing without a network.
void usi_robot_reply(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                     const usi_reply *reply);
// service_node.c: what ROS tools expect of the robot's node.
us_status usi_robot_open_node(us_proxy *p, usi_robot *r, int32_t node, us_error *err);
// A line of its log, of a level of bus/node.h. Nothing without a network.
void usi_robot_log(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s, int32_t level,
                   const char *text);
void usi_robot_log_start(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s);
// What is not a robot's: sent to the writer, which may be NULL, and on a channel of the proxy, which may be
// -1.
// The description with the prefix before the name of every link, so that its links are the frames of /tf. The
// text itself where there is no prefix, or it is NULL; NULL when it cannot be read or there is no memory.
const char *usi_description_name_frames(us_proxy *p, const char *text, const char *prefix);

us_status usi_proxy_send(us_proxy *p, us_writer *writer, int32_t channel, const us_message_type *type,
                         const void *message, int64_t time);
// A robot's state in the sim's; NULL when the sim has none.
const usi_robot_state *usi_view_state(const usi_robot *r, const us_sim *sim);
// The same, to be changed between steps.
usi_robot_state *usi_take_state(const usi_robot *r, us_sim *sim);

// What the robot's own sensors say, right or wrong: of a joint position and velocity.
static inline double usi_read_q(const usi_robot *r, const us_sim *sim, int32_t joint) {
    return usi_sim_read_encoder(sim, r->model->first_encoder + joint).q;
}
static inline double usi_read_v(const usi_robot *r, const us_sim *sim, int32_t joint) {
    return usi_sim_read_encoder(sim, r->model->first_encoder + joint).v;
}
// All of them, for the firmware: in the proxy's memory, until the next robot is read.
usi_firmware_readings usi_robot_read(const usi_robot *r, const us_sim *sim, const usi_robot_state *s);

// fault.c: faults as time goes on, before anything else of a tick: power comes back, the computer has
// started.
void usi_robot_age_faults(const usi_robot *r, const us_sim *sim, usi_robot_state *s);
static inline bool usi_has_power(const usi_robot_state *s) { return s->faults.power_until == 0; }
static inline bool usi_is_up(const usi_robot_state *s) {
    return s->faults.power_until == 0 && s->faults.boot_until == 0;
}
// The radio link as it is now, of the scene's.
us_link_model usi_link_now(const us_link_model *scene, const usi_robot_state *s, int64_t tick);
// The faults of a robot as a list, "front_left_femur dead; ..."; what does not fit is left off. How many
// there are.
int32_t usi_robot_list_faults(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, char *out,
                              size_t cap);

// timing.c: when what is simulated happens in the world outside. Whether any robot has a time of its own.
bool usi_timing_is_needed(const us_proxy *p);
// Called with each publish; `is_jump`: simulated time does not follow on the last.
void usi_timing_follow(us_proxy *p, int64_t time, bool is_jump);
// What the robot's clock shows at a simulated time, and when samples of that time leave (as for
// usi_outbox_put), the truth a moment before the rest. ns
int64_t usi_timing_stamp(const us_proxy *p, const usi_robot *r, int64_t time);
int64_t usi_timing_due(const us_proxy *p, const usi_robot *r, int64_t time, bool is_truth);

// lidar_packet.c: memory and a socket where lidars send packets; and what has become full since the last
// call.
us_status usi_lidar_packets_open(us_proxy *p, usi_robot *r, us_error *err);
void usi_lidar_packets_send(us_proxy *p, usi_robot *r, const us_sim *sim);
// sample_lidar.c: bytes of the largest sample that a lidar of the model makes; 0: it has none.
size_t usi_lidar_sample_size(const us_model *m);
// interface_sample.c: the same of those of interfaces.
size_t usi_interface_sample_size(const us_model *m);

#endif

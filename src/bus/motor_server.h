// The ASCII link (wire/motor.h) over TCP and UDP on one port: one thread, many clients, none of which can
// hold up another or the simulation.
//
// The thread passes every valid command to a callback; the answer is given by _ack, _tell or _refuse, from
// any thread. Commands that do not parse, and those to unknown motors, lines and inertial units, are refused
// by the server itself. _status and _report give it the states after every tick; the server sends those that
// changed, to clients that hear their level.
#ifndef USI_BUS_MOTOR_SERVER_H
#define USI_BUS_MOTOR_SERVER_H

#include "understudy/base.h"
#include "understudy/network.h"
#include "wire/motor.h"

typedef struct usi_motor_server usi_motor_server;

// Runs on the server's thread: keep it short. `client` names the sender until it leaves, and never another.
// `text` is the message without its ';', for the answer; it and the command are borrowed for the call.
// command->motor is the index of the motor, line or inertial unit among those of its kind, else -1. Every
// command wants exactly one answer; of one client at most 24 (32 with stops over UDP) are under way without
// one.
typedef void usi_motor_command_function(void *context, int32_t client, const usi_motor_command *command,
                                        const char *text, size_t length);

typedef struct usi_motor_server_def {
    us_allocator allocator;
    const char *address;  // a number, of IPv4 or IPv6; default "127.0.0.1"
    int32_t port;         // of TCP and of UDP; 0: any that is free in both
    int32_t n_port_more;  // further ports to try when `port` is taken; default 0
    int32_t n_motor;
    const us_motor_def *motors;  // names that differ; copied
    int32_t n_report;
    const usi_motor_report *reports;  // kinds and names of the states beside the motors'; copied
    double status_rate;    // Hz, of the wall clock: how often MSTA of one motor may be sent; 0: no limit;
                           // default 25
    int32_t max_client;    // of each kind, TCP and UDP; 1 .. 1000; default 64
    double message_rate;   // messages/s that are taken from one client; default 2000
    double byte_rate;      // bytes/s that are taken from one client; default 2e6
    double stall_timeout;  // s: a TCP client that takes no byte of what waits for it for so long is closed;
                           // default 5
    double idle_timeout;   // s: a UDP client that is silent for so long is forgotten; default 60
    usi_motor_command_function *on_command;
    void *context;
} usi_motor_server_def;

usi_motor_server_def usi_motor_server_def_default(void);

// Listens and starts the thread. US_ERR_IO when the address or port cannot be opened (err has which, and the
// remedy), US_ERR_VALUE for settings out of range, US_ERR_NAME for motors' names that are not valid or not
// different. *out_server is set before the first callback.
us_status usi_motor_server_create(const usi_motor_server_def *def, usi_motor_server **out_server,
                                  us_error *err);
void usi_motor_server_destroy(
    usi_motor_server *server);  // ends the thread, closes all; NULL is allowed. No callback runs afterwards
int32_t usi_motor_server_port(const usi_motor_server *server);

// ---- From any thread, also from the callback. They never wait, and send nothing themselves. ----

// MACK or MNAK to the client. US_ERR_LIMIT: too many answers wait; this one is dropped and the client will be
// notified that one was lost. An answer to a client that has left goes nowhere, without an error.
us_status usi_motor_server_ack(usi_motor_server *server, int32_t client, const char *text, size_t length);
// MACK with a message of the robot's right behind it, for commands that ask for something.
us_status usi_motor_server_tell(usi_motor_server *server, int32_t client, const char *text, size_t length,
                                const char *message, size_t message_length);
us_status usi_motor_server_refuse(usi_motor_server *server, int32_t client, const char *text, size_t length,
                                  usi_motor_reason reason);

// The state of a motor now; one thread at a time per motor. rad/s^2, rad/s, rad. US_ERR_VALUE for numbers
// that cannot be sent, US_ERR_ARG for a bad index.
us_status usi_motor_server_status(usi_motor_server *server, int32_t motor, double acceleration,
                                  double velocity, double position);

// State i of def.reports, as many values as its kind has; one thread at a time per state. The same errors.
us_status usi_motor_server_report(usi_motor_server *server, int32_t i, const double *values);

// X(name, what is counted since the start)
#define USI_MOTOR_COUNT_LIST(X)                                                  \
    X(n_tcp, "TCP clients now")                                                  \
    X(n_udp, "UDP clients now")                                                  \
    X(n_joined, "clients that were accepted")                                    \
    X(n_rejected, "clients that were refused because the server was full")       \
    X(n_stalled, "TCP clients that were closed because they did not read")       \
    X(n_expired, "UDP clients that were silent for too long")                    \
    X(n_command, "commands that were handed over")                               \
    X(n_bad, "messages that were refused by the server")                         \
    X(n_unknown_sender, "datagrams without a good command from unknown senders") \
    X(n_busy, "messages of UDP clients that were dropped unread")                \
    X(n_ack, "answers that were queued for clients")                             \
    X(n_lost_reply, "answers that were dropped")                                 \
    X(n_status, "states that were queued for clients")                           \
    X(n_lost_status, "states that a client never got because a newer one came")

typedef struct usi_motor_server_counts {
#define USI_MOTOR_COUNT_FIELD(name, about) uint64_t name;
    USI_MOTOR_COUNT_LIST(USI_MOTOR_COUNT_FIELD)
#undef USI_MOTOR_COUNT_FIELD
} usi_motor_server_counts;

usi_motor_server_counts usi_motor_server_get_counts(const usi_motor_server *server);

#endif

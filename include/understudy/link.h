// A client of a robot's ASCII link: lines of text over TCP, UDP or a serial line (docs/motor-protocol.md).
//
//     us_link_client *link = NULL;
//     us_link_client_open("tcp:127.0.0.1:5010", NULL, &link, &err);
//     us_link_client_command(link, "MPWRFLDR1", 5, &refusal, &err);   // waits for its acknowledgement
//     us_link_client_move(link, "RGTOR2,0", 60, &state, &err);        // until it is there, or not
//     us_link_client_close(link);
//
// One thread at a time uses a client. Nothing happens between calls: what the robot sends waits in the
// system's buffers. Every call that waits has a time-out, by the monotonic clock.
#ifndef UNDERSTUDY_LINK_H
#define UNDERSTUDY_LINK_H

#include "understudy/base.h"
#include "understudy/rover.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- messages from the robot ----

typedef enum us_link_message_kind {
    US_LINK_ACK,       // text: the command
    US_LINK_REFUSAL,   // text: the command; reason
    US_LINK_MOTOR,     // name; number: acceleration, velocity, position
    US_LINK_ROVER,     // run, state, error; number: x, y, heading, vx, vy, wz, metres or radians left
    US_LINK_FUNCTION,  // text: its name; run, state, error
    US_LINK_VALUE,     // text: a property's name; number[0]
    US_LINK_LINE,      // name; number[0]
    US_LINK_IMU,       // name; number: roll, pitch, three angular velocities, three specific forces
    US_LINK_OTHER      // text: something that this version does not know
} us_link_message_kind;

enum { US_LINK_TEXT = 132, US_LINK_NUMBERS = 8 };

typedef struct us_link_message {
    us_link_message_kind kind;
    uint32_t run;  // of a rover or function: counts its motions, its runs
    us_rover_state state;
    us_rover_error error;
    int32_t n_number;
    double number[US_LINK_NUMBERS];
    char name[5];     // of a motor, line or inertial unit
    char reason[16];  // of a refusal: a word of docs/motor-protocol.md
    char text[US_LINK_TEXT];
} us_link_message;

// Called for each message that is read while the client waits, in their order. It may not call the client.
typedef void us_link_message_function(void *context, const us_link_message *message);

// ---- the client ----

typedef struct us_link_client us_link_client;

typedef struct us_link_client_def {
    us_allocator allocator;
    double timeout;  // s: of connecting, and of what a serial line or a socket does not take; default 5
    us_link_message_function *on_message;  // may be NULL
    void *context;
} us_link_client_def;

US_API us_link_client_def us_link_client_def_default(void);

// "tcp:127.0.0.1:5010", "udp:127.0.0.1:5010" (an address in numbers, or localhost; IPv6 in brackets) or
// "serial:/run/user/1000/k10". `def` NULL: the default. US_ERR_ARG, US_ERR_SYNTAX for an address that cannot
// be read, US_ERR_IO when nobody answers there.
US_API us_status us_link_client_open(const char *address, const us_link_client_def *def,
                                     us_link_client **out_client, us_error *err);
US_API void us_link_client_close(us_link_client *client);  // NULL is allowed
// The descriptor, for select() and poll(): readable when something came.
US_API int us_link_client_descriptor(const us_link_client *client);

// Sends commands, each ended by ';' but for the last, which need not be; does not wait for an answer.
US_API us_status us_link_client_send(us_link_client *client, const char *commands, us_error *err);
// The next message, waiting at most `timeout` s (0: not at all). *out_has false: none came. US_ERR_IO when
// the robot has closed the connection.
US_API us_status us_link_client_poll(us_link_client *client, double timeout, us_link_message *out,
                                     bool *out_has, us_error *err);
// Sends one command and waits for its answer. US_ERR_VALUE: it was refused, and *out_refusal, which may be
// NULL, has the word; US_ERR_LIMIT: no answer came in time (over UDP either may be lost: send it again).
US_API us_status us_link_client_command(us_link_client *client, const char *command, double timeout,
                                        us_link_message *out_refusal, us_error *err);
// Sends a command of the mobility level that moves the rover (RGTO, RARC, RTRN) and waits until that motion
// is over, at most `timeout` s. *out_state, which may be NULL, has how; US_OK for US_ROVER_DONE, US_ERR_VALUE
// for any other end (out_state->error says which), US_ERR_LIMIT when it goes on after that time. A command
// that is refused: as us_link_client_command has it.
US_API us_status us_link_client_move(us_link_client *client, const char *command, double timeout,
                                     us_link_message *out_state, us_error *err);
// One message without its ';', as the client reads it. False: it does not follow the form of its kind.
US_API bool us_link_message_parse(const char *text, size_t length, us_link_message *out);

#ifdef __cplusplus
}
#endif
#endif

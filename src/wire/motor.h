// The ASCII motor protocol as bytes: messages that end with ';', parsed and made without sockets, clocks or
// allocation.
//
//     in   MPWR<name><0|1>;   MMOV<name>V<rad/s>;   MMOV<name>P<rad>;   MMOV<name>T<acc>,<maxvel>,<endpos>;
//     MSTP<name>;   MSTP; out  MSTA<name><acc>,<vel>,<pos>;   MACK<copy of the command>;   MNAK<copy of what
//     was refused>,<reason>;
//
// MNAK is our own: where the protocol would leave a peer in silence, it says why. docs/motor-protocol.md is
// the whole story.
#ifndef USI_WIRE_MOTOR_H
#define USI_WIRE_MOTOR_H

#include "understudy/base.h"

enum {
    USI_MOTOR_NAME = 4,    // characters of a motor's name
    USI_MOTOR_TEXT = 128,  // longest message taken, without its ';': three numbers of 36 characters still fit
    USI_MOTOR_REPLY = 176,  // longest message made, with its ';'
};

// Greatest magnitude of any number, in rad, rad/s or rad/s^2. No motor of a robot gets there; beyond it the
// printed digits would lose their meaning.
#define USI_MOTOR_GREATEST 1e9

// X(code, word on the wire, what it means). The words have no comma and no semicolon.
#define USI_MOTOR_REASON_LIST(X)                                                            \
    X(USI_MOTOR_GOOD, "good", "nothing is wrong")                                           \
    X(USI_MOTOR_BAD_KEYWORD, "keyword", "the message begins with none of MPWR, MMOV, MSTP") \
    X(USI_MOTOR_BAD_NAME, "name", "the name is not four printing characters")               \
    X(USI_MOTOR_BAD_SYNTAX, "syntax", "what follows the name has the wrong form")           \
    X(USI_MOTOR_BAD_VALUE, "value", "a number is out of range")                             \
    X(USI_MOTOR_TOO_LONG, "long", "the message is too long")                                \
    X(USI_MOTOR_CUT, "cut", "the datagram ends before the semicolon")                       \
    X(USI_MOTOR_UNKNOWN, "motor", "there is no motor of this name")                         \
    X(USI_MOTOR_UNPOWERED, "power", "the motor is switched off")                            \
    X(USI_MOTOR_OUTSIDE, "limit", "the motor cannot go there, or not as fast")              \
    X(USI_MOTOR_FULL, "full", "the server has as many clients as it takes")                 \
    X(USI_MOTOR_BUSY, "busy", "commands were dropped unread, because they came too fast")   \
    X(USI_MOTOR_LOST, "lost", "replies were dropped, because the client did not read fast enough")

typedef enum usi_motor_reason {
#define USI_MOTOR_REASON_ENUM(code, word, about) code,
    USI_MOTOR_REASON_LIST(USI_MOTOR_REASON_ENUM)
#undef USI_MOTOR_REASON_ENUM
        USI_MOTOR_REASON_COUNT
} usi_motor_reason;

const char *usi_motor_reason_word(usi_motor_reason reason);   // "?" outside the list
const char *usi_motor_reason_about(usi_motor_reason reason);  // "?" outside the list

typedef enum usi_motor_kind {
    USI_MOTOR_POWER,       // is_on
    USI_MOTOR_VELOCITY,    // value in rad/s
    USI_MOTOR_POSITION,    // value in rad
    USI_MOTOR_TRAJECTORY,  // trapezoid: acceleration, max_velocity, value is the end position
    USI_MOTOR_STOP,        // the named motor
    USI_MOTOR_STOP_ALL,    // every motor; no name
} usi_motor_kind;

typedef struct usi_motor_command {
    usi_motor_kind kind;
    char name[USI_MOTOR_NAME + 1];  // "" for USI_MOTOR_STOP_ALL
    int32_t motor;  // index of the name, for those who have a table of names; the parser writes -1
    bool is_on;
    double value;
    double acceleration, max_velocity;  // both above 0 for USI_MOTOR_TRAJECTORY, else 0
} usi_motor_command;

// Four printing ASCII characters, none of them a space, semicolon or comma, and a 0 behind them.
bool usi_motor_name_is_valid(const char *name);

// One message without its ';'. USI_MOTOR_GOOD fills *out_command; any other reason leaves it alone.
usi_motor_reason usi_motor_parse(const char *text, size_t length, usi_motor_command *out_command);

// A motor's state as MSTA prints it: whole numbers of the last printed digit. Two states with equal numbers
// make the same message: that is what "on change" means.
typedef struct usi_motor_status {
    int64_t acceleration;  // 1e-3 rad/s^2
    int64_t velocity;      // 1e-6 rad/s
    int64_t position;      // 1e-6 rad
} usi_motor_status;

// Rounds to the nearest. False, and *out_status untouched, for numbers that are not finite or beyond
// USI_MOTOR_GREATEST.
bool usi_motor_status_round(double acceleration, double velocity, double position,
                            usi_motor_status *out_status);

// These write one message with its ';' (no 0 behind it) and return its length; 0 when it does not fit into
// cap, which USI_MOTOR_REPLY always does. Bytes of `text` that do not print, and semicolons, become '?'; text
// beyond USI_MOTOR_TEXT is left out.
size_t usi_motor_format_status(const char *name, const usi_motor_status *status, char *buf, size_t cap);
size_t usi_motor_format_ack(const char *text, size_t length, char *buf, size_t cap);
size_t usi_motor_format_refusal(const char *text, size_t length, usi_motor_reason reason, char *buf,
                                size_t cap);

// Reads what usi_motor_format_status writes, without the ';'; digits beyond ours are rounded. out_name has
// room for USI_MOTOR_NAME + 1.
bool usi_motor_parse_status(const char *text, size_t length, char *out_name, usi_motor_status *out_status);

// A session takes bytes as they come, in pieces of any size, and gives messages. After garbage it goes on
// behind the next ';'. White space before a message is skipped, so that a person may type one per line; a
// message without anything in it is ignored.
typedef struct usi_motor_session {
    uint64_t n_command;                          // good ones
    uint64_t n_refused[USI_MOTOR_REASON_COUNT];  // by reason
    uint64_t n_empty;
    size_t length;  // of the message so far
    bool is_too_long;
    char text[USI_MOTOR_TEXT];
} usi_motor_session;

typedef enum usi_motor_event_kind {
    USI_MOTOR_NOTHING,
    USI_MOTOR_COMMAND,
    USI_MOTOR_REFUSED
} usi_motor_event_kind;

typedef struct usi_motor_event {
    usi_motor_event_kind kind;
    usi_motor_reason reason;    // of a refusal
    usi_motor_command command;  // of a command
    const char *text;  // the message as it came, without its ';': in the session, until it is used again; a
                       // long one is cut
    size_t length;
} usi_motor_event;

void usi_motor_session_init(usi_motor_session *session);

// Takes bytes up to the end of the next message and returns how many. USI_MOTOR_NOTHING: all were taken, and
// no message is complete.
size_t usi_motor_session_feed(usi_motor_session *session, const void *bytes, size_t length,
                              usi_motor_event *out_event);

// The end of a datagram: a message that has begun is refused with USI_MOTOR_CUT, and the session is as new
// but for its counts.
void usi_motor_session_end(usi_motor_session *session, usi_motor_event *out_event);

#endif

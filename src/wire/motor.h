// The ASCII link as bytes: messages that end with ';', parsed and made without sockets, clocks or allocation.
// It has three levels, after what is commanded, and beside them inputs, outputs and inertial units:
//
//     motor      in   MPWR<name><0|1>;  MMOV<name>V<rad/s>;  MMOV<name>P<rad>;
//                     MMOV<name>T<acc>,<maxvel>,<endpos>;  MSTP<name>;  MSTP;
//                out  MSTA<name><acc>,<vel>,<pos>;
//     mobility   in   RGTO<R|S><x>,<y>[,<speed>[,<tolerance>[,<timeout>]]];  RDRV<vx>,<vy>,<wz>;
//                     RARC<distance>,<curvature>,<speed>[,<timeout>];  RTRN<angle>,<rate>[,<timeout>];
//                     RPOS<x>,<y>,<heading>;  RGET;  RSTP;
//                out  RSTA<run>,<state>,<error>,<x>,<y>,<heading>,<vx>,<vy>,<wz>,<left>;
//     function   in   FRUN<function>[,<number>...];  FGET<property>;  FSET<property>,<number>;  FSTP;
//                out  FSTA<function>,<run>,<state>,<error>;  FVAL<property>,<number>;
//     lines      in   IOUT<name><value>;  IGET<name>;
//                out  ISTA<name><value>;
//     imu        in   IIMU<name>;
//                out  IMUS<name><roll>,<pitch>,<wx>,<wy>,<wz>,<fx>,<fy>,<fz>;
//     all        out  MACK<copy of the command>;  MNAK<copy of what was refused>,<reason>;
//
// MNAK is our own: where the protocol would leave a peer in silence, it says why. docs/motor-protocol.md is
// the whole story.
#ifndef USI_WIRE_MOTOR_H
#define USI_WIRE_MOTOR_H

#include "understudy/base.h"

enum {
    USI_MOTOR_NAME = 4,    // characters of a motor's name
    USI_MOTOR_TEXT = 128,  // longest message taken, without its ';': three numbers of 36 characters still fit
    USI_MOTOR_REPLY = 176,  // longest answer made, with its ';'
    USI_MOTOR_WORD = 32,    // characters of a function's or property's name, with a 0 behind them
    USI_MOTOR_NUMBERS = 8,  // of one command
    USI_MOTOR_VALUES = 10,  // of one report
};

// Greatest magnitude of any number, in rad, rad/s or rad/s^2. No motor of a robot gets there; beyond it the
// printed digits would lose their meaning.
#define USI_MOTOR_GREATEST 1e9

// X(code, word on the wire, what it means). The words have no comma and no semicolon.
#define USI_MOTOR_REASON_LIST(X)                                                                   \
    X(USI_MOTOR_GOOD, "good", "nothing is wrong")                                                  \
    X(USI_MOTOR_BAD_KEYWORD, "keyword", "the message begins with no keyword of the link")          \
    X(USI_MOTOR_BAD_NAME, "name", "the name has the wrong form")                                   \
    X(USI_MOTOR_BAD_SYNTAX, "syntax", "what follows the name has the wrong form")                  \
    X(USI_MOTOR_BAD_VALUE, "value", "a number is out of range")                                    \
    X(USI_MOTOR_TOO_LONG, "long", "the message is too long")                                       \
    X(USI_MOTOR_CUT, "cut", "the datagram ends before the semicolon")                              \
    X(USI_MOTOR_UNKNOWN, "motor", "there is no motor of this name")                                \
    X(USI_MOTOR_UNPOWERED, "power", "the motor is switched off")                                   \
    X(USI_MOTOR_OUTSIDE, "limit", "the motor cannot go there, or not as fast")                     \
    X(USI_MOTOR_FULL, "full", "the server has as many clients as it takes")                        \
    X(USI_MOTOR_BUSY, "busy", "commands were dropped unread, because they came too fast")          \
    X(USI_MOTOR_LOST, "lost", "replies were dropped, because the client did not read fast enough") \
    X(USI_MOTOR_UNKNOWN_LINE, "line", "there is no line or inertial unit of this name")            \
    X(USI_MOTOR_UNKNOWN_FUNCTION, "function", "there is no function of this name")                 \
    X(USI_MOTOR_UNKNOWN_PROPERTY, "property", "there is no property of this name")                 \
    X(USI_MOTOR_READ_ONLY, "fixed", "a line that is an input, or a property, cannot be set")       \
    X(USI_MOTOR_UNSUPPORTED, "unsupported", "this robot cannot do that")

typedef enum usi_motor_reason {
#define USI_MOTOR_REASON_ENUM(code, word, about) code,
    USI_MOTOR_REASON_LIST(USI_MOTOR_REASON_ENUM)
#undef USI_MOTOR_REASON_ENUM
        USI_MOTOR_REASON_COUNT
} usi_motor_reason;

const char *usi_motor_reason_word(usi_motor_reason reason);   // "?" outside the list
const char *usi_motor_reason_about(usi_motor_reason reason);  // "?" outside the list

// What the link can call by name at its functional level. X(code, name, fewest numbers, most numbers)
#define USI_FUNCTION_LIST(X)                 \
    X(USI_FUNCTION_MOVE, "move", 2, 4)       \
    X(USI_FUNCTION_MOVE_TO, "move_to", 2, 6) \
    X(USI_FUNCTION_ROUTE, "route", 2, 8)     \
    X(USI_FUNCTION_TURN_TO, "turn_to", 1, 3) \
    X(USI_FUNCTION_HOME, "home", 0, 2)       \
    X(USI_FUNCTION_PARK, "park", 0, 0)       \
    X(USI_FUNCTION_POWER, "power", 1, 1)     \
    X(USI_FUNCTION_GAIT, "gait", 1, 1)

typedef enum usi_function {
#define USI_FUNCTION_ENUM(code, name, low, high) code,
    USI_FUNCTION_LIST(USI_FUNCTION_ENUM)
#undef USI_FUNCTION_ENUM
        USI_FUNCTION_COUNT
} usi_function;

const char *usi_function_name(int32_t function);  // "?" outside the list

// Of which level a command is: a client hears the states of a level from its first command of it on, those of
// motors from the beginning.
typedef enum usi_motor_level {
    USI_LEVEL_MOTOR,
    USI_LEVEL_MOBILITY,
    USI_LEVEL_FUNCTION,
    USI_LEVEL_LINE,
    USI_LEVEL_IMU,
    USI_LEVEL_COUNT
} usi_motor_level;

// X(code, keyword, level, is a stop). Commands that begin with the same keyword stand together.
#define USI_MOTOR_KIND_LIST(X)                                   \
    X(USI_MOTOR_POWER, "MPWR", USI_LEVEL_MOTOR, false)           \
    X(USI_MOTOR_VELOCITY, "MMOV", USI_LEVEL_MOTOR, false)        \
    X(USI_MOTOR_POSITION, "MMOV", USI_LEVEL_MOTOR, false)        \
    X(USI_MOTOR_TRAJECTORY, "MMOV", USI_LEVEL_MOTOR, false)      \
    X(USI_MOTOR_STOP, "MSTP", USI_LEVEL_MOTOR, true)             \
    X(USI_MOTOR_STOP_ALL, "MSTP", USI_LEVEL_MOTOR, true)         \
    X(USI_MOTOR_GO_TO, "RGTO", USI_LEVEL_MOBILITY, false)        \
    X(USI_MOTOR_DRIVE, "RDRV", USI_LEVEL_MOBILITY, false)        \
    X(USI_MOTOR_ARC, "RARC", USI_LEVEL_MOBILITY, false)          \
    X(USI_MOTOR_TURN, "RTRN", USI_LEVEL_MOBILITY, false)         \
    X(USI_MOTOR_PLACE, "RPOS", USI_LEVEL_MOBILITY, false)        \
    X(USI_MOTOR_GET_ROVER, "RGET", USI_LEVEL_MOBILITY, false)    \
    X(USI_MOTOR_STOP_ROVER, "RSTP", USI_LEVEL_MOBILITY, true)    \
    X(USI_MOTOR_RUN, "FRUN", USI_LEVEL_FUNCTION, false)          \
    X(USI_MOTOR_GET_PROPERTY, "FGET", USI_LEVEL_FUNCTION, false) \
    X(USI_MOTOR_SET_PROPERTY, "FSET", USI_LEVEL_FUNCTION, false) \
    X(USI_MOTOR_STOP_FUNCTION, "FSTP", USI_LEVEL_FUNCTION, true) \
    X(USI_MOTOR_OUTPUT, "IOUT", USI_LEVEL_LINE, false)           \
    X(USI_MOTOR_GET_LINE, "IGET", USI_LEVEL_LINE, false)         \
    X(USI_MOTOR_GET_IMU, "IIMU", USI_LEVEL_IMU, false)

// POWER: is_on. VELOCITY, POSITION: value in rad/s, rad. TRAJECTORY: acceleration, max_velocity, value is the
// end position. OUTPUT: value. SET_PROPERTY: word, value. RUN: function, number. Those of the mobility level:
// number, as many as n_number says.
typedef enum usi_motor_kind {
#define USI_MOTOR_KIND_ENUM(code, keyword, level, is_stop) code,
    USI_MOTOR_KIND_LIST(USI_MOTOR_KIND_ENUM)
#undef USI_MOTOR_KIND_ENUM
        USI_MOTOR_KIND_COUNT
} usi_motor_kind;

usi_motor_level usi_motor_level_of(usi_motor_kind kind);
bool usi_motor_is_stop(usi_motor_kind kind);
bool usi_motor_has_name(usi_motor_kind kind);  // of a motor, line or inertial unit
// Whether a message begins as a stop does, whatever follows: for places where it is not parsed yet.
bool usi_motor_text_is_stop(const char *text, size_t length);

typedef struct usi_motor_command {
    usi_motor_kind kind;
    char name[USI_MOTOR_NAME + 1];  // of a motor, line or inertial unit; else ""
    int32_t motor;  // index of the name, for those who have a table of names; the parser writes -1
    bool is_on;
    bool is_relative;  // GO_TO: from where the rover is; else in the site's frame
    double value;
    double acceleration, max_velocity;  // both above 0 for USI_MOTOR_TRAJECTORY, else 0
    char word[USI_MOTOR_WORD];          // of a property
    usi_function function;
    int32_t n_number;
    double number[USI_MOTOR_NUMBERS];  // those that were left out are 0
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

// ---- wire/motor_report.c: what the robot says of itself at all levels ----

// A state as it is printed: whole numbers of the last printed digit, so that two reports with equal numbers
// make the same message. X(code, keyword, level, how many values; the decimals of each stand in
// motor_report.c)
#define USI_REPORT_LIST(X)                                \
    X(USI_REPORT_MOTOR, "MSTA", USI_LEVEL_MOTOR, 3)       \
    X(USI_REPORT_ROVER, "RSTA", USI_LEVEL_MOBILITY, 10)   \
    X(USI_REPORT_FUNCTION, "FSTA", USI_LEVEL_FUNCTION, 4) \
    X(USI_REPORT_LINE, "ISTA", USI_LEVEL_LINE, 1)         \
    X(USI_REPORT_IMU, "IMUS", USI_LEVEL_IMU, 8)

typedef enum usi_report_kind {
#define USI_REPORT_ENUM(code, keyword, level, n) code,
    USI_REPORT_LIST(USI_REPORT_ENUM)
#undef USI_REPORT_ENUM
        USI_REPORT_COUNT
} usi_report_kind;

// Of a rover: run, state, error, then x, y, heading, vx, vy, wz, left. Of a function: which, run, state,
// error.
typedef struct usi_motor_report {
    usi_report_kind kind;
    char name[USI_MOTOR_NAME + 1];  // "" of a rover or function
    int64_t value[USI_MOTOR_VALUES];
} usi_motor_report;

int32_t usi_report_n_value(usi_report_kind kind);
usi_motor_level usi_report_level(usi_report_kind kind);
// Rounds to the nearest. False, and *out untouched, for numbers that are not finite or beyond
// USI_MOTOR_GREATEST.
bool usi_report_round(usi_report_kind kind, const char *name, const double *values, usi_motor_report *out);
// One message with its ';'; 0 when it does not fit.
size_t usi_report_format(const usi_motor_report *report, char *buf, size_t cap);
// How many characters at the beginning of a message say of what it is a state, so that a later one with the
// same takes its place; 0: it is none.
enum { USI_REPORT_KEY = 8 };
size_t usi_report_key(const char *text, size_t length);
// FVAL<property>,<number>; with 17 digits at most, so that the number reads back as it was.
size_t usi_report_format_value(const char *property, double value, char *buf, size_t cap);

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

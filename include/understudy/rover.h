// How what a rover was told to do fares, and what went wrong: numbers of messages, words of the ASCII link.
#ifndef UNDERSTUDY_ROVER_H
#define UNDERSTUDY_ROVER_H

#include "understudy/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// What became of a rover's service or function that did not end as it should; the numbers are those of the
// messages of understudy_msgs, the words those of the link. X(code, word, about)
#define US_ROVER_ERROR_LIST(X)                                                                    \
    X(US_ROVER_FINE, "none", "nothing is wrong")                                                  \
    X(US_ROVER_NOT_SUPPORTED, "unsupported", "this robot cannot do that")                         \
    X(US_ROVER_UNKNOWN_NAME, "unknown", "there is no motor, frame, property or service so named") \
    X(US_ROVER_TIMEOUT, "timeout", "it was not done in the time that was given")                  \
    X(US_ROVER_BUSY, "busy", "somebody with a higher priority commands the robot")                \
    X(US_ROVER_INTERRUPTED, "interrupted", "another command came before it was done")             \
    X(US_ROVER_FAILURE, "failure", "the robot could not go on")                                   \
    X(US_ROVER_BAD_VALUE, "value", "a number is out of range, or not a number")

typedef enum us_rover_error {
#define US_ROVER_ERROR_ENUM(code, word, about) code,
    US_ROVER_ERROR_LIST(US_ROVER_ERROR_ENUM)
#undef US_ROVER_ERROR_ENUM
        US_ROVER_ERROR_COUNT
} us_rover_error;

US_API const char *us_rover_error_word(us_rover_error error);   // "?" outside the list
US_API const char *us_rover_error_about(us_rover_error error);  // "?" outside the list

// How a motion or a function fares. X(code, word)
#define US_ROVER_STATE_LIST(X)     \
    X(US_ROVER_IDLE, "idle")       \
    X(US_ROVER_MOVING, "moving")   \
    X(US_ROVER_DONE, "done")       \
    X(US_ROVER_STOPPED, "stopped") \
    X(US_ROVER_REFUSED, "refused") \
    X(US_ROVER_FAILED, "failed")

typedef enum us_rover_state {
#define US_ROVER_STATE_ENUM(code, word) code,
    US_ROVER_STATE_LIST(US_ROVER_STATE_ENUM)
#undef US_ROVER_STATE_ENUM
        US_ROVER_STATE_COUNT
} us_rover_state;

US_API const char *us_rover_state_word(us_rover_state state);  // "?" outside the list

#ifdef __cplusplus
}
#endif
#endif

// Words and texts of how a rover fares.
#include "understudy/rover.h"

const char *us_rover_error_word(us_rover_error error) {
    static const char *const words[] = {
#define ERROR_WORD(code, word, about) word,
        US_ROVER_ERROR_LIST(ERROR_WORD)
#undef ERROR_WORD
    };
    return (unsigned)error < (unsigned)US_ROVER_ERROR_COUNT ? words[error] : "?";
}

const char *us_rover_error_about(us_rover_error error) {
    static const char *const texts[] = {
#define ERROR_ABOUT(code, word, about) about,
        US_ROVER_ERROR_LIST(ERROR_ABOUT)
#undef ERROR_ABOUT
    };
    return (unsigned)error < (unsigned)US_ROVER_ERROR_COUNT ? texts[error] : "?";
}

const char *us_rover_state_word(us_rover_state state) {
    static const char *const words[] = {
#define STATE_WORD(code, word) word,
        US_ROVER_STATE_LIST(STATE_WORD)
#undef STATE_WORD
    };
    return (unsigned)state < (unsigned)US_ROVER_STATE_COUNT ? words[state] : "?";
}

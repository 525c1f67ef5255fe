// Numbers, names and texts that a person wrote: in files, world commands, faults, conditions. Each refusal
// says what to write instead.
#ifndef USI_BASE_WORDS_H
#define USI_BASE_WORDS_H

#include "understudy/base.h"

// Scans one decimal number at `text` (no leading blanks). NULL when all is well, otherwise what is wrong with
// it, to be put after the quoted text: "is not a number", "is too large ...". *out_end is just behind the
// number (or what was taken for one).
const char *usi_number_scan(const char *text, const char **out_end, double *out);
bool usi_is_blank(char c);  // space, tab, line feed, carriage return

// The whole text as one number within the range. `what` names it in errors, which are US_ERR_VALUE.
us_status usi_read_number(const char *what, const char *text, double low, double high, double *out,
                          us_error *err);
// "1,2,3": from `min` to `max` numbers.
us_status usi_read_list(const char *what, const char *text, int min, int max, double low, double high,
                        double *out, int *out_n, us_error *err);
// US_ERR_NAME: there is no `what` of that name; those that are known are named, and the nearest of them is
// suggested.
us_status usi_fail_unknown(const char *what, const char *name, const char *const *known, int32_t n,
                           us_error *err);

// "Did you mean": offer every name there is, then ask. The guess borrows the candidate's text.
typedef struct usi_guess {
    const char *wanted;
    const char *best;  // NULL: nothing is near enough
    int distance;
} usi_guess;
usi_guess usi_guess_start(const char *wanted);
void usi_guess_offer(usi_guess *guess, const char *candidate);

// Bytes of the UTF-8 character at s; 0 when it is none.
size_t usi_utf8_length(const unsigned char *s);
bool usi_is_control(unsigned char c);
// For texts that are shown or sent: a copy that fits, with what is no UTF-8 or a control character replaced
// by "?".
void usi_text_clean(const char *text, char *out, size_t cap);

#endif

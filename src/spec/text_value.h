// Numbers and names in lines of text: world commands, faults, conditions. Each error has a remedy.
#ifndef USI_SPEC_TEXT_VALUE_H
#define USI_SPEC_TEXT_VALUE_H

#include "understudy/base.h"

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

#endif

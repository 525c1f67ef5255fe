#include "spec/text_value.h"

#include <stdio.h>
#include <string.h>

#include "spec/xml.h"

us_status usi_read_number(const char *what, const char *text, double low, double high, double *out,
                          us_error *err) {
    const char *end;
    double value = 0;
    char remedy[160];
    snprintf(remedy, sizeof remedy, "write a number from %g to %g, in SI units, such as 0.25 or -1.5e-3", low,
             high);
    const char *wrong = usi_number_scan(text, &end, &value);
    if (wrong) return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%s: \"%.60s\" %s", what, text, wrong);
    if (*end)
        return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%s: \"%.60s\" is not a number", what, text);
    if (!(value >= low && value <= high))
        return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%s: %g is out of range", what, value);
    *out = value;
    return US_OK;
}

// "1,2,3": from `min` to `max` numbers.
us_status usi_read_list(const char *what, const char *text, int min, int max, double low, double high,
                        double *out, int *out_n, us_error *err) {
    char part[64], remedy[120];
    int n = 0;
    if (min == max) {
        snprintf(remedy, sizeof remedy,
                 min == 1 ? "write one number" : "write %d numbers with commas between, and no blanks", min);
    } else {
        snprintf(remedy, sizeof remedy, "write %d to %d numbers with commas between, and no blanks", min,
                 max);
    }
    for (const char *s = text;; s++) {
        size_t length = strcspn(s, ",");
        if (n == max)
            return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%s: more than %d number%s given", what, max,
                                max == 1 ? " is" : "s are");
        if (length >= sizeof part)
            return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%s: \"%.60s\" is not a number", what, s);
        memcpy(part, s, length);
        part[length] = 0;
        us_status status = usi_read_number(what, part, low, high, &out[n], err);
        if (status) return status;
        n++;
        s += length;
        if (!*s) break;
    }
    if (n < min)
        return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%s: %d number%s given", what, n,
                            n == 1 ? " is" : "s are");
    *out_n = n;
    return US_OK;
}

us_status usi_fail_unknown(const char *what, const char *name, const char *const *known, int32_t n,
                           us_error *err) {
    char remedy[384] = "";
    usi_guess guess = usi_guess_start(name);
    for (int32_t i = 0; i < n; i++)
        usi_guess_offer(&guess, known[i]);
    size_t at = 0;
    if (guess.best) at = (size_t)snprintf(remedy, sizeof remedy, "did you mean \"%s\"? ", guess.best);
    at += (size_t)snprintf(remedy + at, sizeof remedy - at, "known:");
    for (int32_t i = 0; i < n && at + 1 < sizeof remedy; i++)
        at += (size_t)snprintf(remedy + at, sizeof remedy - at, "%s%s", i ? ", " : " ", known[i]);
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "there is no %s \"%.60s\"", what, name);
}

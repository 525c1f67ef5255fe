#include "base/words.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- numbers

bool usi_is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char *usi_number_scan(const char *text, const char **out_end, double *out) {
    // The grammar is checked here, because strtod takes hexadecimal numbers, "inf" and "nan" as well.
    const char *s = text;
    if (*s == '+' || *s == '-') s++;
    const char *digits = s;
    while (is_digit(*s))
        s++;
    int n_digit = (int)(s - digits);
    if (*s == '.') {
        digits = ++s;
        while (is_digit(*s))
            s++;
        n_digit += (int)(s - digits);
    }
    if (n_digit == 0) {
        while (*s && !usi_is_blank(*s))
            s++;
        *out_end = s;
        return "is not a finite number";
    }
    if ((*s == 'e' || *s == 'E') && (is_digit(s[1]) || ((s[1] == '+' || s[1] == '-') && is_digit(s[2])))) {
        s += 2;
        while (is_digit(*s))
            s++;
    }
    *out_end = s;
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return "cannot be read: there is no memory";
    double value = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    if (!(value <= 1e15 && value >= -1e15)) return "is too large: numbers may go up to 1e15";
    *out = value;
    return NULL;
}

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

us_status usi_read_list(const char *what, const char *text, int min, int max, double low, double high,
                        double *out, int *out_n, us_error *err) {
    char part[64], remedy[120];
    int n = 0;
    if (min == max) {
        snprintf(remedy, sizeof remedy,
                 min == 1 ? "write one number" : "write %d numbers with commas between, and no blanks",
                 min);
    } else {
        snprintf(remedy, sizeof remedy, "write %d to %d numbers with commas between, and no blanks", min,
                 max);
    }
    for (const char *s = text;; s++) {
        size_t length = strcspn(s, ",");
        if (n == max)
            return us_error_set(err, US_ERR_VALUE, NULL, remedy, "%s: more than %d number%s given", what,
                                max, max == 1 ? " is" : "s are");
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

// ---------------------------------------------------------------- suggestions

enum { GUESS_LENGTH = 63 };  // longer names are compared by their first bytes

// The number of letters to change, insert, remove or swap with their neighbour, in the first GUESS_LENGTH
// bytes.
static int text_distance(const char *a, const char *b) {
    int n = (int)strnlen(a, GUESS_LENGTH), m = (int)strnlen(b, GUESS_LENGTH);
    int rows[3][GUESS_LENGTH + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= m; j++)
        last[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (last[j] + 1 < best) best = last[j] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        int *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

usi_guess usi_guess_start(const char *wanted) {
    // A third of the letters may differ: further away a suggestion confuses more than it helps.
    int limit = (int)strnlen(wanted, GUESS_LENGTH) / 3;
    usi_guess guess = {.wanted = wanted, .distance = (limit < 1 ? 1 : limit) + 1};
    return guess;
}

void usi_guess_offer(usi_guess *guess, const char *candidate) {
    int distance = text_distance(guess->wanted, candidate);
    if (distance >= guess->distance) return;
    guess->distance = distance;
    guess->best = candidate;
}

// ---------------------------------------------------------------- texts

size_t usi_utf8_length(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
               : s[0] >= 0xe0 && s[0] <= 0xef ? 3
               : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                              : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    // Too long a form, halves of surrogate pairs, beyond the last character.
    if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))) return 0;
    if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))) return 0;
    return n;
}

bool usi_is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

void usi_text_clean(const char *text, char *out, size_t cap) {
    size_t n = 0;
    if (cap == 0) return;
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t length = usi_utf8_length(s);
        bool is_good = length > 0 && !usi_is_control(*s);
        size_t taken = is_good ? length : 1;
        if (n + taken + 1 > cap) break;
        if (is_good) {
            memcpy(out + n, s, taken);
        } else {
            out[n] = '?';
        }
        n += taken;
        s += taken;
    }
    out[n] = 0;
}

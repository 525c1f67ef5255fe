// Dates as scenes write them.
#include <erfa.h>
#include <stdio.h>
#include <string.h>

#include "sky/ephemeris.h"

// Digits, and nothing else, for a whole number of `n` digits.
static bool read_number(const char **text, int n, int *out) {
    *out = 0;
    for (int i = 0; i < n; i++, (*text)++) {
        if (**text < '0' || **text > '9') return false;
        *out = 10 * *out + (**text - '0');
    }
    return true;
}

static bool read_sign(const char **text, char sign) {
    if (**text != sign) return false;
    (*text)++;
    return true;
}

static bool read_fraction(const char **text, double *out) {
    *out = 0;
    if (**text != '.') return true;
    (*text)++;
    double unit = 0.1;
    int n = 0;
    for (; **text >= '0' && **text <= '9'; (*text)++, n++) {
        *out += unit * (**text - '0');
        unit *= 0.1;
    }
    return n > 0;
}

bool us_date_parse(const char *text, double *out_date) {
    int year, month, day, hour = 0, minute = 0, second = 0;
    double fraction = 0, zero, days;
    if (!text || !out_date || !read_number(&text, 4, &year) || !read_sign(&text, '-') ||
        !read_number(&text, 2, &month) || !read_sign(&text, '-') || !read_number(&text, 2, &day))
        return false;
    if (*text) {
        if (!read_sign(&text, 'T') || !read_number(&text, 2, &hour) || !read_sign(&text, ':') ||
            !read_number(&text, 2, &minute) || !read_sign(&text, ':') || !read_number(&text, 2, &second) ||
            !read_fraction(&text, &fraction) || !read_sign(&text, 'Z') || *text)
            return false;
    }
    if (year < 1900 || year > 2100 || hour > 23 || minute > 59 || second > 59 ||
        eraCal2jd(year, month, day, &zero, &days) != 0)
        return false;
    *out_date = 86400 * ((zero - USI_JD_1970) + days) + 3600.0 * hour + 60.0 * minute + second + fraction;
    return true;
}

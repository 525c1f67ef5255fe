// A message of the ASCII link in the making. Once something did not fit, it stays without length.
#ifndef USI_WIRE_MOTOR_TEXT_H
#define USI_WIRE_MOTOR_TEXT_H

#include <string.h>

#include "understudy/base.h"

typedef struct usi_motor_line {
    char *buf;
    size_t cap, length;
    bool is_full;
} usi_motor_line;

static inline usi_motor_line usi_motor_line_begin(char *buf, size_t cap) {
    usi_motor_line w = {.cap = cap};
    w.buf = buf;
    return w;
}

static inline void usi_motor_line_put(usi_motor_line *w, const char *text, size_t length) {
    if (w->is_full || length > w->cap - w->length) {
        w->is_full = true;
        return;
    }
    memcpy(w->buf + w->length, text, length);
    w->length += length;
}

static inline void usi_motor_line_text(usi_motor_line *w, const char *text) {
    usi_motor_line_put(w, text, strlen(text));
}

// scaled / 10^n_decimal with all its decimals, as "%.*f" would in the C locale; zero has no sign.
static inline void usi_motor_line_fixed(usi_motor_line *w, int64_t scaled, int n_decimal) {
    char digits[24];
    size_t at = sizeof digits;
    uint64_t u = scaled < 0 ? 0 - (uint64_t)scaled : (uint64_t)scaled;
    for (int i = 0; i <= n_decimal || u > 0; i++) {
        if (i == n_decimal && n_decimal > 0) digits[--at] = '.';
        digits[--at] = (char)('0' + u % 10);
        u /= 10;
    }
    if (scaled < 0) digits[--at] = '-';
    usi_motor_line_put(w, digits + at, sizeof digits - at);
}

// Ends the message; its length, 0 when it did not fit.
static inline size_t usi_motor_line_finish(usi_motor_line *w) {
    usi_motor_line_put(w, ";", 1);
    return w->is_full ? 0 : w->length;
}

#endif

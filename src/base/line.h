// String builder: a line of text appended piece by piece into the caller's memory. What does not fit is left
// out, and the line ends with a zero in any case.
#ifndef USI_BASE_LINE_H
#define USI_BASE_LINE_H

#include <stddef.h>

#include "understudy/base.h"

typedef struct usi_line {
    char *text;
    size_t n, cap;  // bytes written, without the zero; room, at least 1
} usi_line;

US_PRINTF(2, 3) void usi_line_put(usi_line *out, const char *format, ...);

// JSON strings: the text in quotes; and with a key before it. Control characters become spaces.
void usi_line_put_quoted(usi_line *out, const char *text);
void usi_line_put_text(usi_line *out, const char *key, const char *text);

#endif

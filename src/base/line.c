#include "base/line.h"

#include <stdarg.h>
#include <stdio.h>

void usi_line_put(usi_line *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(out->text + out->n, out->cap - out->n, format, args);
    va_end(args);
    if (n > 0) out->n += (size_t)n;
    if (out->n >= out->cap) out->n = out->cap - 1;
}

void usi_line_put_quoted(usi_line *out, const char *text) {
    usi_line_put(out, "\"");
    for (const char *s = text; *s; s++) {
        bool is_control = (unsigned char)*s < 0x20 || *s == 0x7f;
        usi_line_put(out, *s == '"' || *s == '\\' ? "\\%c" : "%c", is_control ? ' ' : *s);
    }
    usi_line_put(out, "\"");
}

void usi_line_put_text(usi_line *out, const char *key, const char *text) {
    usi_line_put(out, "\"%s\":", key);
    usi_line_put_quoted(out, text);
}

// Status texts and errors with a place and a remedy.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "understudy/base.h"

const char *us_status_text(us_status status) {
    static const char *const texts[] = {
#define STATUS_TEXT(code, text) text,
        US_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    };
    return (unsigned)status < (unsigned)US_STATUS_COUNT ? texts[status] : "unknown status";
}

const char *us_version(void) { return US_VERSION; }

// Copies as much of `text` as fits; a text that is cut ends in "...".
static void copy_text(char *to, size_t cap, const char *text) {
    if (!text) text = "";
    size_t n = strlen(text);
    if (n < cap) {
        memcpy(to, text, n + 1);
        return;
    }
    memcpy(to, text, cap - 4);
    memcpy(to + cap - 4, "...", 4);
}

us_status us_error_set(us_error *err, us_status code, const us_place *place, const char *remedy,
                       const char *format, ...) {
    if (!err) return code;
    memset(err, 0, sizeof *err);
    err->code = code;
    if (place) {
        err->line = place->line;
        err->column = place->column;
        copy_text(err->file, sizeof err->file, place->file);
        copy_text(err->element, sizeof err->element, place->element);
    }
    copy_text(err->remedy, sizeof err->remedy, remedy);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (n >= (int)sizeof err->message) memcpy(err->message + sizeof err->message - 4, "...", 4);
    return code;
}

size_t us_error_format(const us_error *err, char *buf, size_t cap) {
    if (buf && cap) buf[0] = 0;
    if (!err) return 0;
    char place[400] = "";
    if (err->file[0] && err->line > 0 && err->column > 0) {
        snprintf(place, sizeof place, "%s:%d:%d: ", err->file, err->line, err->column);
    } else if (err->file[0] && err->line > 0) {
        snprintf(place, sizeof place, "%s:%d: ", err->file, err->line);
    } else if (err->file[0]) {
        snprintf(place, sizeof place, "%s: ", err->file);
    }
    int n = snprintf(buf, cap, "%s%s%s%s%s%s", place, err->element, err->element[0] ? ": " : "", err->message,
                     err->remedy[0] ? "\n  remedy: " : "", err->remedy);
    return n < 0 ? 0 : (size_t)n;
}

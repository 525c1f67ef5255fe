// Reading lines of JSON whose writers are known: members are found by name, in the order in which they stand.
#include "wire/world_status.h"

#include <string.h>

// Behind the next `what`; NULL when there is none.
static const char *behind(const char *at, const char *end, const char *what) {
    size_t n = strlen(what);
    for (; at && (size_t)(end - at) >= n; at++) {
        if (memcmp(at, what, n) == 0) return at + n;
    }
    return NULL;
}

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// One byte of a JSON text at *io_at, which moves on. -1 at its end quote or the end of the line. Escaped
// characters beyond ASCII become "?".
static int next_byte(const char **io_at, const char *end) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *at = *io_at;
    if (at >= end || *at == '"') return -1;
    if (*at != '\\') {
        *io_at = at + 1;
        return (unsigned char)*at;
    }
    if (end - at < 2) return -1;
    if (at[1] != 'u') {
        const char *name = at[1] ? strchr(names, at[1]) : NULL;
        *io_at = at + 2;
        return name ? (unsigned char)values[name - names] : '?';
    }
    if (end - at < 6) return -1;
    int code = 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex(at[i]);
        if (digit < 0) return -1;
        code = 16 * code + digit;
    }
    *io_at = at + 6;
    return code > 0 && code < 0x80 ? code : '?';
}

static bool begins_with(const char *at, const char *end, const char *text) {
    for (; *text; text++) {
        if (next_byte(&at, end) != (unsigned char)*text) return false;
    }
    return true;
}

// True when the text ends within the line.
static bool copy_text(const char *at, const char *end, char *out, size_t cap) {
    size_t n = 0;
    for (int c; (c = next_byte(&at, end)) >= 0;) {
        if (n + 1 < cap) out[n++] = (char)c;
    }
    out[n] = 0;
    return at < end && *at == '"';
}

bool usi_status_find_answer(const char *line, size_t length, const char *text, usi_status_answer *out) {
    const char *end = line + length;
    for (const char *at = line; (at = behind(at, end, "\"text\":\""));) {
        if (!begins_with(at, end, text)) continue;
        const char *ok = behind(at, end, "\"ok\":"), *message = ok ? behind(ok, end, "\"message\":\"") : NULL;
        if (!message) return false;
        *out = (usi_status_answer){.is_ok = *ok == 't'};
        return copy_text(message, end, out->message, sizeof out->message);
    }
    return false;
}

bool usi_authority_read(const char *line, size_t length, usi_authority_line *out) {
    static const char start[] = "{\"robot\":\"";
    const char *end = line + length;
    *out = (usi_authority_line){0};
    if (length < sizeof start || memcmp(line, start, sizeof start - 1) != 0) return false;
    const char *name = line + sizeof start - 1, *quote = memchr(name, '"', (size_t)(end - name));
    size_t n = quote ? (size_t)(quote - name) : 0;
    if (n == 0 || n >= sizeof out->robot || memchr(name, 0, n)) return false;
    memcpy(out->robot, name, n);
    const char *digit = behind(quote, end, "\"epoch\":");
    for (; digit && digit < end && *digit >= '0' && *digit <= '9'; digit++) {
        out->has_epoch = true;
        out->epoch = 10 * out->epoch + (uint64_t)(*digit - '0');
    }
    return true;
}

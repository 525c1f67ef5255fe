// A robot description, tag by tag.
#include "wire/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// From '<' to '>': `at` is behind the one, `end` before the other.
typedef struct tag {
    const char *at, *end;
} tag;

static const char *find_text(const char *at, const char *end, const char *what) {
    size_t n = strlen(what);
    for (; at + n <= end; at++) {
        if (memcmp(at, what, n) == 0) return at;
    }
    return NULL;
}

// The next tag that is no comment; *io_at is behind it. False when there is none that ends.
static bool next_tag(const char **io_at, const char *end, tag *out) {
    const char *at = *io_at;
    while (at < end && (at = memchr(at, '<', (size_t)(end - at)))) {
        at++;
        if (end - at >= 3 && memcmp(at, "!--", 3) == 0) {
            const char *close = find_text(at + 3, end, "-->");
            if (!close) return false;
            at = close + 3;
            continue;
        }
        // A '>' within quotes does not end the tag.
        char quote = 0;
        for (const char *s = at; s < end; s++) {
            if (quote) {
                if (*s == quote) quote = 0;
            } else if (*s == '"' || *s == '\'') {
                quote = *s;
            } else if (*s == '>') {
                *out = (tag){at, s};
                *io_at = s + 1;
                return true;
            }
        }
        return false;
    }
    return false;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static bool has_name(const tag *t, const char *name) {
    size_t n = strlen(name), length = (size_t)(t->end - t->at);
    return length >= n && memcmp(t->at, name, n) == 0 &&
           (length == n || is_blank(t->at[n]) || t->at[n] == '/');
}

// The value of an attribute; false when there is none, or it does not fit.
static bool read_attribute(const tag *t, const char *name, char *out, size_t cap) {
    size_t n = strlen(name);
    for (const char *s = t->at; s < t->end; s++) {
        // Over blanks to the next attribute: NAME, =, and a quoted value.
        while (s < t->end && !is_blank(*s))
            s++;
        while (s < t->end && is_blank(*s))
            s++;
        const char *key = s;
        while (s < t->end && *s != '=' && !is_blank(*s))
            s++;
        size_t n_key = (size_t)(s - key);
        while (s < t->end && is_blank(*s))
            s++;
        if (s >= t->end || *s != '=') {
            s--;
            continue;
        }
        s++;
        while (s < t->end && is_blank(*s))
            s++;
        if (s >= t->end || (*s != '"' && *s != '\'')) return false;
        const char *value = s + 1, *close = memchr(value, *s, (size_t)(t->end - value));
        if (!close) return false;
        if (n_key == n && memcmp(key, name, n) == 0) {
            size_t length = (size_t)(close - value);
            if (length >= cap) return false;
            memcpy(out, value, length);
            out[length] = 0;
            return true;
        }
        s = close;
    }
    return false;
}

bool usi_description_next(const char *text, size_t length, size_t *io_at, usi_description_joint *out) {
    if (length == 0) return false;
    const char *at = text + *io_at, *end = text + length;
    tag t;
    while (next_tag(&at, end, &t)) {
        *out = (usi_description_joint){0};
        bool is_joint = has_name(&t, "joint") && read_attribute(&t, "name", out->name, sizeof out->name) &&
                        read_attribute(&t, "type", out->type, sizeof out->type);
        if (!is_joint) continue;
        *io_at = (size_t)(at - text);
        // What stands in it: up to </joint>, unless the tag ends itself.
        bool is_open = t.end > t.at && t.end[-1] != '/';
        while (is_open && next_tag(&at, end, &t) && !has_name(&t, "/joint")) {
            char effort[32];
            if (has_name(&t, "limit") && read_attribute(&t, "effort", effort, sizeof effort))
                out->effort = strtod(effort, NULL);
        }
        return true;
    }
    return false;
}

bool usi_description_find(const char *text, size_t length, const char *name, usi_description_joint *out) {
    size_t at = 0;
    while (usi_description_next(text, length, &at, out)) {
        if (strcmp(out->name, name) == 0) return true;
    }
    return false;
}

// A buffer that grows, and JSON written into one.
#include "view/view__bytes.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 4096 };

void usi_bytes_init(usi_bytes *bytes, const us_allocator *allocator, size_t limit) {
    memset(bytes, 0, sizeof *bytes);
    bytes->allocator = *allocator;
    bytes->limit = limit;
}

void usi_bytes_fini(usi_bytes *bytes) {
    usi_release(&bytes->allocator, bytes->at, bytes->cap, 1);
    bytes->at = NULL;
    bytes->length = 0;
    bytes->cap = 0;
}

// Another block for the same bytes.
static bool move_to(usi_bytes *bytes, size_t cap) {
    char *block = usi_alloc(&bytes->allocator, cap, 1);
    if (!block) {
        bytes->status = US_ERR_MEMORY;
        return false;
    }
    if (bytes->length) memcpy(block, bytes->at, bytes->length);
    usi_release(&bytes->allocator, bytes->at, bytes->cap, 1);
    bytes->at = block;
    bytes->cap = cap;
    return true;
}

void *usi_bytes_room(usi_bytes *bytes, size_t length) {
    if (bytes->status) return NULL;
    if (length > bytes->limit || bytes->length > bytes->limit - length) {
        bytes->status = US_ERR_LIMIT;
        return NULL;
    }
    size_t needed = bytes->length + length, cap = bytes->cap ? bytes->cap : FIRST_BYTES;
    while (cap < needed)
        cap *= 2;
    if (cap > bytes->cap && !move_to(bytes, cap)) return NULL;
    void *room = bytes->at + bytes->length;
    bytes->length = needed;
    return room;
}

void usi_bytes_put(usi_bytes *bytes, const void *from, size_t length) {
    if (length == 0) return;
    void *room = usi_bytes_room(bytes, length);
    if (room) memcpy(room, from, length);
}

void usi_bytes_align(usi_bytes *bytes, char fill) {
    size_t more = (4 - bytes->length % 4) % 4;
    void *room = usi_bytes_room(bytes, more);
    if (room) memset(room, fill, more);
}

us_status usi_bytes_take(usi_bytes *bytes, char **out_bytes, size_t *out_length) {
    // The one who releases them knows the length alone.
    if (!bytes->status && bytes->cap != bytes->length) move_to(bytes, bytes->length);
    us_status status = bytes->status;
    *out_bytes = NULL;
    *out_length = 0;
    if (!status) {
        *out_bytes = bytes->at;
        *out_length = bytes->length;
        bytes->at = NULL;
    }
    usi_bytes_fini(bytes);
    return status;
}

// ---- JSON ----

void usi_json_init(usi_json *json, usi_bytes *out) {
    memset(json, 0, sizeof *json);
    json->out = out;
    // The C locale is a constant object of the C library.
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) {
        out->status = US_ERR_MEMORY;
        return;
    }
    json->c_locale = c_locale;
    json->old_locale = uselocale(c_locale);
}

void usi_json_fini(usi_json *json) {
    if (!json->c_locale) return;
    uselocale((locale_t)json->old_locale);
    freelocale((locale_t)json->c_locale);
    json->c_locale = NULL;
}

// The length of the UTF-8 character at `s`, or 0 when there is none: too short, too long for its value, a
// surrogate, beyond U+10FFFF.
static size_t character_length(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
               : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;  // also at the text's end
    }
    bool is_bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
                  (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90);
    return is_bad ? 0 : n;
}

static void put_text(usi_bytes *out, const char *text) {
    usi_bytes_put(out, "\"", 1);
    const unsigned char *s = (const unsigned char *)text, *plain = s;
    while (*s) {
        size_t n = character_length(s);
        if (n > 0 && *s >= 0x20 && *s != '"' && *s != '\\' && *s != 0x7f) {
            s += n;
            continue;
        }
        usi_bytes_put(out, plain, (size_t)(s - plain));
        char escape[8];
        if (n == 0) {
            usi_bytes_put(out, "\xef\xbf\xbd", 3);
        } else if (*s == '"' || *s == '\\') {
            usi_bytes_put(out, (char[2]){'\\', (char)*s}, 2);
        } else {
            snprintf(escape, sizeof escape, "\\u%04x", *s);
            usi_bytes_put(out, escape, 6);
        }
        plain = ++s;
    }
    usi_bytes_put(out, plain, (size_t)(s - plain));
    usi_bytes_put(out, "\"", 1);
}

// What stands before every item.
static void put_key(usi_json *json, const char *key) {
    if (json->needs_comma) usi_bytes_put(json->out, ",", 1);
    json->needs_comma = true;
    if (!key) return;
    put_text(json->out, key);
    usi_bytes_put(json->out, ":", 1);
}

void usi_json_begin(usi_json *json, const char *key, char bracket) {
    put_key(json, key);
    usi_bytes_put(json->out, &bracket, 1);
    json->needs_comma = false;
}

void usi_json_end(usi_json *json, char bracket) {
    usi_bytes_put(json->out, &bracket, 1);
    json->needs_comma = true;
}

void usi_json_null(usi_json *json, const char *key) {
    put_key(json, key);
    usi_bytes_put(json->out, "null", 4);
}

void usi_json_text(usi_json *json, const char *key, const char *text) {
    if (!text) {
        usi_json_null(json, key);
        return;
    }
    put_key(json, key);
    put_text(json->out, text);
}

// The digits of `whole` / 10^n_decimal, without zeros at the end. Returns the length.
static size_t decimal_text(int64_t whole, int n_decimal, char out[32]) {
    bool is_negative = whole < 0;
    uint64_t rest = is_negative ? 0 - (uint64_t)whole : (uint64_t)whole;
    for (; n_decimal > 0 && rest % 10 == 0; n_decimal--)
        rest /= 10;
    size_t at = 32;
    for (int n = 0; rest > 0 || n <= n_decimal; n++, rest /= 10) {
        if (n > 0 && n == n_decimal) out[--at] = '.';
        out[--at] = (char)('0' + rest % 10);
    }
    if (is_negative) out[--at] = '-';
    memmove(out, out + at, 32 - at);
    return 32 - at;
}

void usi_json_integer(usi_json *json, const char *key, int64_t x) {
    char text[32];
    put_key(json, key);
    usi_bytes_put(json->out, text, decimal_text(x, 0, text));
}

void usi_json_number(usi_json *json, const char *key, double x) {
    if (!isfinite(x)) {
        usi_json_null(json, key);
        return;
    }
    // Most numbers of a scene were written with a few digits. When N / 10^9 with a whole N below 2^53 is x
    // after rounding once, then x is the double nearest to that decimal, which therefore brings it back: no
    // search, and none of printf's cost.
    char text[32];
    size_t n;
    double whole = rint(x * 1e9);
    if (fabs(whole) < 9007199254740992.0 && whole / 1e9 == x) {
        n = decimal_text((int64_t)whole, 9, text);
    } else if (fabs(x) < 1e15 && x == floor(x)) {
        n = decimal_text((int64_t)x, 0, text);
    } else {
        n = (size_t)snprintf(text, sizeof text, "%.17g", x);
    }
    put_key(json, key);
    usi_bytes_put(json->out, text, n);
}

void usi_json_bool(usi_json *json, const char *key, bool x) {
    put_key(json, key);
    usi_bytes_put(json->out, x ? "true" : "false", x ? 4 : 5);
}

void usi_json_numbers(usi_json *json, const char *key, const double *x, size_t n) {
    usi_json_begin(json, key, '[');
    for (size_t i = 0; i < n; i++)
        usi_json_number(json, NULL, x[i]);
    usi_json_end(json, ']');
}

void usi_json_float(usi_json *json, const char *key, float x) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", (double)x);
    if (strtof(text, NULL) != x) snprintf(text, sizeof text, "%.9g", (double)x);
    // The double with that text, whose digits are then found again; what is not finite has none.
    usi_json_number(json, key, strtod(text, NULL));
}

void usi_json_floats(usi_json *json, const char *key, const float *x, size_t n) {
    usi_json_begin(json, key, '[');
    for (size_t i = 0; i < n; i++)
        usi_json_float(json, NULL, x[i]);
    usi_json_end(json, ']');
}

void usi_json_vector(usi_json *json, const char *key, us_vec3 a) {
    double x[3] = {a.x, a.y, a.z};
    usi_json_numbers(json, key, x, 3);
}

// Messages as text, and all numbers in them, straight from the bytes.
//
// The text is YAML, laid out as `ros2 topic echo` does it: a line per value, nested messages indented by two,
// elements of an array as lines that begin with "- " below the name, "[]" for an empty one:
//
//     header:
//       stamp:
//         sec: 12
//         nanosec: 500000000
//       frame_id: odom
//     name:
//     - left
//     - right
//
// Numbers read back to the same bits. A float32 is printed as the double that it is equal to, as ROS 2 does.
// A byte is printed as a number, where ROS 2 prints a character.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "wire/cdr.h"
#include "wire/numbers.h"

// ---- where the text goes ----

// Counts everything, keeps what fits.
typedef struct writer {
    char *buf;
    size_t cap, at;
} writer;

static void put(writer *w, const char *text, size_t n) {
    if (w->at < w->cap) memcpy(w->buf + w->at, text, n < w->cap - w->at ? n : w->cap - w->at);
    w->at += n;
}

static void put_text(writer *w, const char *text) { put(w, text, strlen(text)); }

static void put_indent(writer *w, int32_t indent) {
    for (int32_t i = 0; i < indent; i++)
        put(w, " ", 1);
}

// ---- numbers ----

// The shortest decimal number that reads back as x, never without a point: 0.1, 1.0, 1.0e-05, .inf, -.inf,
// .nan.
static void put_double(writer *w, double x) {
    if (!isfinite(x)) {
        put_text(w, isnan(x) ? ".nan" : x > 0 ? ".inf" : "-.inf");
        return;
    }
    // "d.ddde+xx" with 15 digits, which are always true ones, or as many more as it takes; below the normal
    // numbers fewer are true. The point may be another character where the program has set a locale, so the
    // digits are picked out.
    char text[64], digits[24];
    for (int precision = fabs(x) < DBL_MIN ? 0 : 14; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, x);
        if (strtod(text, NULL) == x) break;
    }
    int n = 0;
    const char *c = text;
    for (; *c && *c != 'e'; c++) {
        if (*c >= '0' && *c <= '9' && n < (int)sizeof digits) digits[n++] = *c;
    }
    int exponent = *c ? (int)strtol(c + 1, NULL, 10) : 0;
    while (n > 1 && digits[n - 1] == '0')
        n--;

    if (signbit(x)) put(w, "-", 1);
    if (exponent < -4 || exponent >= 16) {
        char tail[16];
        put(w, digits, 1);
        put(w, ".", 1);
        put(w, n > 1 ? digits + 1 : "0", n > 1 ? (size_t)n - 1 : 1);
        snprintf(tail, sizeof tail, "e%+03d", exponent);
        put_text(w, tail);
    } else if (exponent < 0) {
        put(w, "0.", 2);
        for (int i = -1; i > exponent; i--)
            put(w, "0", 1);
        put(w, digits, (size_t)n);
    } else {
        for (int i = 0; i <= exponent; i++)
            put(w, i < n ? digits + i : "0", 1);
        put(w, ".", 1);
        put(w, n > exponent + 1 ? digits + exponent + 1 : "0",
            n > exponent + 1 ? (size_t)(n - exponent - 1) : 1);
    }
}

static void put_number(writer *w, usi_kind kind, usi_cdr_number v) {
    char text[32] = "";
    switch (kind) {
    case USI_KIND_BOOL:
        put_text(w, v.b ? "true" : "false");
        return;
    case USI_KIND_FLOAT32:
        put_double(w, (double)v.f32);
        return;
    case USI_KIND_FLOAT64:
        put_double(w, v.f64);
        return;
    case USI_KIND_BYTE:
    case USI_KIND_UINT8:
        snprintf(text, sizeof text, "%u", (unsigned)v.u8);
        break;
    case USI_KIND_INT8:
        snprintf(text, sizeof text, "%d", (int)v.i8);
        break;
    case USI_KIND_INT16:
        snprintf(text, sizeof text, "%d", (int)v.i16);
        break;
    case USI_KIND_UINT16:
        snprintf(text, sizeof text, "%u", (unsigned)v.u16);
        break;
    case USI_KIND_INT32:
        snprintf(text, sizeof text, "%ld", (long)v.i32);
        break;
    case USI_KIND_UINT32:
        snprintf(text, sizeof text, "%lu", (unsigned long)v.u32);
        break;
    case USI_KIND_INT64:
        snprintf(text, sizeof text, "%lld", (long long)v.i64);
        break;
    case USI_KIND_UINT64:
        snprintf(text, sizeof text, "%llu", (unsigned long long)v.u64);
        break;
    case USI_KIND_STRING:
    case USI_KIND_MESSAGE:
    case USI_KIND_COUNT:
        break;
    }
    put_text(w, text);
}

// ---- strings ----

// Bytes of the UTF-8 character at s (n bytes are left), 0 when it is none.
static uint32_t utf8_length(const uint8_t *s, uint32_t n) {
    if (s[0] < 0x80) return 1;
    uint32_t k = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
                 : s[0] >= 0xe0 && s[0] <= 0xef ? 3
                 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                                : 0;
    if (k == 0 || k > n) return 0;
    for (uint32_t i = 1; i < k; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    // Longer than needed, a half of a surrogate pair, or beyond the last character.
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return k;
}

// Neither control characters (those of Unicode's second block included) nor bytes that are no UTF-8.
static bool is_printable(const char *text, uint32_t n) {
    const uint8_t *s = (const uint8_t *)text;
    for (uint32_t i = 0, k = 0; i < n; i += k) {
        k = utf8_length(s + i, n - i);
        if (k == 0 || s[i] < 0x20 || s[i] == 0x7f || (s[i] == 0xc2 && s[i + 1] < 0xa0)) return false;
    }
    return true;
}

// True when YAML would take the bare text for a number, a date, a truth value or nothing at all.
static bool is_other_type(const char *text, uint32_t n) {
    static const char *const words[] = {"~",   "null", "true", "false", "yes",  "no",    "on",
                                        "off", "=",    "<<",   ".nan",  ".inf", "-.inf", "+.inf"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) == n && strncasecmp(text, words[i], n) == 0) return true;
    }
    // Whatever begins like a number and has only characters of numbers, times and dates.
    const char *first = text + strspn(text, "+-.");
    return *first >= '0' && *first <= '9' && strspn(text, "0123456789+-.:_eExXabcdfABCDFTZ ") >= n;
}

static bool is_plain(const char *text, uint32_t n) {
    if (n == 0 || is_other_type(text, n)) return false;
    if (strchr(",[]{}#&*!|>'\"%@`", text[0]) || text[0] == ' ' || text[n - 1] == ' ' || text[n - 1] == ':')
        return false;
    if (strchr("-?:", text[0]) && (n == 1 || text[1] == ' ')) return false;
    if (n >= 3 && (memcmp(text, "---", 3) == 0 || memcmp(text, "...", 3) == 0)) return false;
    for (uint32_t i = 0; i + 1 < n; i++) {
        if ((text[i] == ':' && text[i + 1] == ' ') || (text[i] == ' ' && text[i + 1] == '#')) return false;
    }
    return true;
}

static void put_string(writer *w, const char *text, uint32_t n) {
    if (!is_printable(text, n)) {
        put(w, "\"", 1);
        for (uint32_t i = 0, k = 0; i < n; i += k) {
            const uint8_t *s = (const uint8_t *)text + i;
            char escape[8];
            k = utf8_length(s, n - i);
            if (k > 1 && !(s[0] == 0xc2 && s[1] < 0xa0)) {
                put(w, text + i, k);
                continue;
            }
            k = 1;
            const char *names = "\n\t\r\"\\", *name = *s ? strchr(names, *s) : NULL;
            if (name)
                snprintf(escape, sizeof escape, "\\%c", "ntr\"\\"[name - names]);
            else if (*s >= 0x20 && *s < 0x7f)
                snprintf(escape, sizeof escape, "%c", *s);
            else
                snprintf(escape, sizeof escape, "\\x%02x", *s);
            put_text(w, escape);
        }
        put(w, "\"", 1);
    } else if (is_plain(text, n)) {
        put(w, text, n);
    } else {
        put(w, "'", 1);
        for (uint32_t i = 0; i < n; i++)
            put(w, text[i] == '\'' ? "''" : text + i, text[i] == '\'' ? 2 : 1);
        put(w, "'", 1);
    }
}

// ---- messages ----

typedef struct printer {
    usi_cdr r;
    writer w;
    uint32_t max_item;  // 0: no limit
} printer;

static bool print_message(printer *p, const us_message_type *type, int32_t indent, bool is_item);

// A value that stands behind "name: " or "- ", with the end of its line.
static bool print_value(printer *p, const usi_message_field *f) {
    if (f->kind == USI_KIND_STRING) {
        const char *text = NULL;
        uint32_t length = 0;
        if (!usi_cdr_string(&p->r, f, &text, &length)) return false;
        put_string(&p->w, text, length);
    } else {
        usi_cdr_number v = {0};
        if (!usi_cdr_numbers(&p->r, (usi_kind)f->kind, 1, &v)) return false;
        put_number(&p->w, (usi_kind)f->kind, v);
    }
    put(&p->w, "\n", 1);
    return true;
}

// The elements of an array, each on lines of its own; those beyond max_item are read and not shown.
// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool print_items(printer *p, const usi_message_field *f, uint32_t n, int32_t indent) {
    for (uint32_t i = 0; i < n; i++) {
        usi_cdr_at(&p->r, f, i);
        if (p->max_item && i >= p->max_item) {
            if (i == p->max_item) {
                put_indent(&p->w, indent);
                put_text(&p->w, "- '...'\n");
            }
            if (f->kind < USI_KIND_STRING) return usi_cdr_skip_numbers(&p->r, (usi_kind)f->kind, n - i);
            if (!usi_cdr_skip_element(&p->r, f)) return false;
            continue;
        }
        put_indent(&p->w, indent);
        put_text(&p->w, "- ");
        if (f->kind != USI_KIND_MESSAGE) {
            if (!print_value(p, f)) return false;
            continue;
        }
        usi_cdr_enter(&p->r);
        if (!print_message(p, f->type, indent + 2, true)) return false;
        usi_cdr_leave(&p->r);
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool print_field(printer *p, const usi_message_field *f, int32_t indent) {
    uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
    if (f->shape == USI_SHAPE_SEQUENCE && !usi_cdr_count(&p->r, f, &n)) return false;
    put_text(&p->w, f->name);
    if (n == 0) {
        put_text(&p->w, ": []\n");
        return true;
    }
    if (f->shape != USI_SHAPE_ONE) {
        put_text(&p->w, ":\n");
        return print_items(p, f, n, indent);
    }
    if (f->kind != USI_KIND_MESSAGE) {
        put_text(&p->w, ": ");
        return print_value(p, f);
    }
    put_text(&p->w, ":\n");
    usi_cdr_enter(&p->r);
    if (!print_message(p, f->type, indent + 2, false)) return false;
    usi_cdr_leave(&p->r);
    return true;
}

// The discriminant, and the member that it means.
// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool print_union(printer *p, const us_message_type *type, int32_t indent, bool is_item) {
    char text[64];
    int32_t choice = -1;
    if (!usi_cdr_choose(&p->r, type, &choice)) return false;
    if (!is_item) put_indent(&p->w, indent);
    snprintf(text, sizeof text, "%s: %lld\n", type->fields[0].name, (long long)p->r.choice);
    put_text(&p->w, text);
    if (choice < 0) return true;
    usi_cdr_at(&p->r, &type->fields[choice], -1);
    put_indent(&p->w, indent);
    return print_field(p, &type->fields[choice], indent);
}

// `is_item`: the first line begins behind a "- ".
// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool print_message(printer *p, const us_message_type *type, int32_t indent, bool is_item) {
    for (int32_t i = 0; i < type->n_field; i++) {
        usi_cdr_at(&p->r, &type->fields[i], -1);
        if (type->is_union) return print_union(p, type, indent, is_item);
        if (type->is_empty) {
            put_text(&p->w, "{}\n");
            return usi_cdr_skip_field(&p->r, &type->fields[i]);
        }
        if (i > 0 || !is_item) put_indent(&p->w, indent);
        if (!print_field(p, &type->fields[i], indent)) return false;
    }
    return true;
}

us_status us_message_print(const us_message_type *type, const void *bytes, size_t length, int32_t max_item,
                           char *buf, size_t cap, size_t *out_length, us_error *err) {
    if (out_length) *out_length = 0;
    if (buf && cap > 0) buf[0] = 0;
    if (!type || !bytes || max_item < 0 || (cap > 0 && !buf)) {
        return us_error_set(err, US_ERR_ARG, NULL, "give a type, bytes and a buffer",
                            "nothing to print, or nowhere to print to");
    }
    printer p = {.w = {buf, cap, 0}, .max_item = (uint32_t)max_item};
    us_status status = usi_cdr_open(&p.r, type, bytes, length, err);
    if (status) return status;
    if (!print_message(&p, type, 0, false) || !usi_cdr_end(&p.r)) {
        if (cap > 0) buf[0] = 0;
        return usi_cdr_error(&p.r, err);
    }
    if (cap > 0) buf[p.w.at < cap ? p.w.at : cap - 1] = 0;
    if (out_length) *out_length = p.w.at;
    return US_OK;
}

// ---- all numbers ----

typedef struct number_walk {
    usi_cdr r;
    usi_number_function *visit;
    void *context;
    char path[USI_NUMBER_PATH];
} number_walk;

static bool walk_message(number_walk *w, const us_message_type *type, size_t n_path);

static bool walk_element(number_walk *w, const usi_message_field *f, size_t n_path) {
    if (f->kind == USI_KIND_MESSAGE) {
        usi_cdr_enter(&w->r);
        bool is_good = walk_message(w, f->type, n_path);
        usi_cdr_leave(&w->r);
        return is_good;
    }
    if (f->kind == USI_KIND_STRING) return usi_cdr_skip_element(&w->r, f);
    double number = 0;
    int64_t whole = 0;
    bool is_whole = false;
    if (!usi_cdr_value(&w->r, (usi_kind)f->kind, &number, &whole, &is_whole)) return false;
    return w->visit(w->context, w->path, number);
}

static bool walk_message(number_walk *w, const us_message_type *type, size_t n_path) {
    int32_t choice = -1;
    if (type->is_union && !usi_cdr_choose(&w->r, type, &choice)) return false;
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        if (type->is_union && i != choice) continue;
        usi_cdr_at(&w->r, f, -1);
        uint32_t n = f->count;
        if (f->shape == USI_SHAPE_SEQUENCE && !usi_cdr_count(&w->r, f, &n)) return false;
        if (f->shape == USI_SHAPE_ONE) n = 1;
        size_t name = n_path + (size_t)snprintf(w->path + n_path, sizeof w->path - n_path, "%s%s",
                                                n_path ? "." : "", f->name);
        for (uint32_t k = 0; k < n && name < sizeof w->path; k++) {
            size_t end = name;
            if (f->shape != USI_SHAPE_ONE)
                end += (size_t)snprintf(w->path + name, sizeof w->path - name, "[%u]", (unsigned)k);
            if (end >= sizeof w->path || !walk_element(w, f, end)) return false;
        }
    }
    return true;
}

bool usi_message_each_number(const us_message_type *type, const void *bytes, size_t length,
                             usi_number_function *visit, void *context) {
    number_walk w = {.visit = visit, .context = context};
    return !usi_cdr_open(&w.r, type, bytes, length, NULL) && walk_message(&w, type, 0);
}

// Plain CDR (XCDR1 of DDS-XTypes 1.3, 7.4.1) in and out of C structs, driven by the table of members.
//
//     00 01 00 00 | 0a 00 00 00 | 07 00 00 00 | 05 00 00 00 'o' 'd' 'o' 'm' 00 | 00 00 00 | ...
//     header: LE    int32         uint32        string: length with its 0        padding to the next value
//
// A number of n bytes starts at a multiple of n, counted from the end of the header. Strings and sequences
// begin with a uint32 count. A sequence without elements is the count alone: no padding follows that its
// elements would have wanted.
//
// The bytes come from a network and are not believed: a count is compared with the bytes that are left, by
// the least that an element takes, before anything is made of it, so that neither memory nor time can be
// claimed that was not sent.
#include "wire/cdr.h"

#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { HOST_IS_LITTLE = 1 };
#else
enum { HOST_IS_LITTLE = 0 };
#endif

enum { HEADER = 4, MAX_PADDING = 3 };

static size_t align_up(size_t at, size_t align) { return (at + align - 1) & ~(align - 1); }

// n values of `size` bytes, turned round when `swap` says so.
static void copy_numbers(void *to, const void *from, size_t n, size_t size, bool swap) {
    if (!swap || size == 1) {
        memcpy(to, from, n * size);
        return;
    }
    uint8_t *t = to;
    const uint8_t *f = from;
    for (size_t i = 0; i < n; i++, t += size, f += size) {
        for (size_t k = 0; k < size; k++)
            t[k] = f[size - 1 - k];
    }
}

// ---- reading ----

static bool stop(usi_cdr *r, const char *wrong) {
    r->wrong = wrong;
    return false;
}

us_status usi_cdr_error(const usi_cdr *r, us_error *err) {
    char path[256] = "";
    size_t n = 0;
    for (int32_t i = 0; i <= r->depth && r->path[0] && n < sizeof path; i++) {
        n += (size_t)snprintf(path + n, sizeof path - n, "%s%s", i ? "." : "", r->path[i]->name);
        if (r->item[i] >= 0 && n < sizeof path)
            n += (size_t)snprintf(path + n, sizeof path - n, "[%lld]", (long long)r->item[i]);
    }
    us_place place = {.element = r->type->name};
    return us_error_set(
        err, US_ERR_SYNTAX, &place, "check that both sides have the same definition of the type",
        "%s%s%s (byte %zu of %zu)", path, path[0] ? ": " : "", r->wrong, r->at + HEADER, r->length + HEADER);
}

us_status usi_cdr_open(usi_cdr *r, const us_message_type *type, const void *bytes, size_t length,
                       us_error *err) {
    *r = (usi_cdr){.type = type};
    const uint8_t *b = bytes;
    us_place place = {.element = type->name};
    if (length < HEADER)
        return us_error_set(err, US_ERR_SYNTAX, &place, NULL,
                            "%zu bytes are too few for a message: the header alone has 4", length);
    if (b[0] != 0 || b[1] > 1) {
        return us_error_set(err, US_ERR_SYNTAX, &place, "let the sender use plain CDR (XCDR1, as ROS 2 does)",
                            "encoding %02x%02x is not plain CDR (0000 or 0001)", b[0], b[1]);
    }
    r->bytes = b + HEADER;
    r->length = length - HEADER;
    r->swap = (b[1] == 1) != HOST_IS_LITTLE;
    return US_OK;
}

// The start of n values of `size` bytes each, or NULL.
static const uint8_t *take(usi_cdr *r, size_t n, size_t size) {
    size_t at = align_up(r->at, size);
    if (at > r->length || n > (r->length - at) / size) {
        r->wrong = "the message ends before this member does";
        return NULL;
    }
    r->at = at + n * size;
    return r->bytes + at;
}

bool usi_cdr_numbers(usi_cdr *r, usi_kind kind, size_t n, void *out) {
    if (n == 0) return true;
    size_t size = usi_kind_size((uint8_t)kind);
    const uint8_t *from = take(r, n, size);
    if (!from) return false;
    if (kind == USI_KIND_BOOL) {
        for (size_t i = 0; i < n; i++) {
            if (from[i] > 1) return stop(r, "a bool is neither 0 nor 1");
        }
    }
    copy_numbers(out, from, n, size, r->swap);
    return true;
}

bool usi_cdr_skip_numbers(usi_cdr *r, usi_kind kind, size_t n) {
    return n == 0 || take(r, n, usi_kind_size((uint8_t)kind));
}

bool usi_cdr_count(usi_cdr *r, const usi_message_field *f, uint32_t *out_n) {
    if (!usi_cdr_numbers(r, USI_KIND_UINT32, 1, out_n)) return false;
    if (f->count && *out_n > f->count) return stop(r, "the sequence is longer than its type allows");
    if (*out_n > (r->length - r->at) / f->least)
        return stop(r, "the sequence claims more elements than bytes are left");
    return true;
}

bool usi_cdr_string(usi_cdr *r, const usi_message_field *f, const char **out_text, uint32_t *out_length) {
    uint32_t n = 0;
    if (!usi_cdr_numbers(r, USI_KIND_UINT32, 1, &n)) return false;
    if (n > r->length - r->at) return stop(r, "the string claims more bytes than are left");
    const char *text = (const char *)r->bytes + r->at;
    // A length of 0, without the 0 byte, is not quite CDR, but there are writers that mean "" by it.
    if (n == 0) {
        *out_text = "";
        *out_length = 0;
        return true;
    }
    if (text[n - 1] != 0) return stop(r, "the string does not end with a 0 byte");
    if (memchr(text, 0, n - 1)) return stop(r, "the string has a 0 byte inside");
    if (f->bound && n - 1 > f->bound) return stop(r, "the string is longer than its type allows");
    r->at += n;
    *out_text = text;
    *out_length = n - 1;
    return true;
}

bool usi_cdr_end(usi_cdr *r) {
    if (r->length - r->at <= MAX_PADDING) return true;
    r->path[0] = NULL;
    return stop(r, "there is more than one message of this type would take");
}

static bool skip_elements(usi_cdr *r, const usi_message_field *f, uint32_t n) {
    if (f->kind < USI_KIND_STRING) return usi_cdr_skip_numbers(r, (usi_kind)f->kind, n);
    for (uint32_t i = 0; i < n; i++) {
        usi_cdr_at(r, f, f->shape == USI_SHAPE_ONE ? -1 : (int64_t)i);
        if (!usi_cdr_skip_element(r, f)) return false;
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
bool usi_cdr_skip_element(usi_cdr *r, const usi_message_field *f) {
    const char *text = NULL;
    uint32_t length = 0;
    if (f->kind < USI_KIND_STRING) return usi_cdr_skip_numbers(r, (usi_kind)f->kind, 1);
    if (f->kind == USI_KIND_STRING) return usi_cdr_string(r, f, &text, &length);
    usi_cdr_enter(r);
    if (!usi_cdr_skip_message(r, f->type)) return false;
    usi_cdr_leave(r);
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
bool usi_cdr_skip_message(usi_cdr *r, const us_message_type *type) {
    int32_t choice = -1;
    if (type->is_union) {
        usi_cdr_at(r, &type->fields[0], -1);
        return usi_cdr_choose(r, type, &choice) &&
               (choice < 0 || usi_cdr_skip_field(r, &type->fields[choice]));
    }
    for (int32_t i = 0; i < type->n_field; i++) {
        if (!usi_cdr_skip_field(r, &type->fields[i])) return false;
    }
    return true;
}

bool usi_cdr_skip_field(usi_cdr *r, const usi_message_field *f) {
    uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
    usi_cdr_at(r, f, -1);
    if (f->shape == USI_SHAPE_SEQUENCE && !usi_cdr_count(r, f, &n)) return false;
    return skip_elements(r, f, n);
}

// ---- decoding ----

typedef struct decoder {
    usi_cdr r;
    uint8_t *memory;
    size_t cap, used;
    bool is_full;
} decoder;

// n elements of the caller's memory. The alignment of pointers and doubles is enough for every struct of
// ours.
static void *allot(decoder *d, size_t n, size_t each, size_t align) {
    size_t at = align_up(d->used, align);
    if (at > d->cap || n > (d->cap - at) / each) {
        d->is_full = true;
        return NULL;
    }
    d->used = at + n * each;
    return d->memory + at;
}

static bool decode_string(decoder *d, const usi_message_field *f, uint8_t *to) {
    const char *text = NULL;
    uint32_t length = 0;
    if (!usi_cdr_string(&d->r, f, &text, &length)) return false;
    char *copy = f->bound ? (char *)to : allot(d, (size_t)length + 1, 1, 1);
    if (!copy) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    if (!f->bound) memcpy(to, &copy, sizeof copy);
    return true;
}

static bool decode_message(decoder *d, const us_message_type *type, uint8_t *to);

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool decode_elements(decoder *d, const usi_message_field *f, uint8_t *to, uint32_t n) {
    if (f->kind < USI_KIND_STRING) return usi_cdr_numbers(&d->r, (usi_kind)f->kind, n, to);
    for (uint32_t i = 0; i < n; i++, to += f->each) {
        usi_cdr_at(&d->r, f, f->shape == USI_SHAPE_ONE ? -1 : (int64_t)i);
        if (f->kind == USI_KIND_STRING) {
            if (!decode_string(d, f, to)) return false;
            continue;
        }
        usi_cdr_enter(&d->r);
        if (!decode_message(d, f->type, to)) return false;
        usi_cdr_leave(&d->r);
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool decode_message(decoder *d, const us_message_type *type, uint8_t *to) {
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        usi_cdr_at(&d->r, f, -1);
        uint8_t *at = to + f->offset;
        uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
        if (f->shape == USI_SHAPE_SEQUENCE) {
            if (!usi_cdr_count(&d->r, f, &n)) return false;
            usi_sequence sequence;
            memset(&sequence, 0, sizeof sequence);
            if (n > 0) {
                size_t align = f->kind == USI_KIND_MESSAGE  ? f->type->align
                               : f->kind == USI_KIND_STRING ? (f->bound ? 1 : sizeof(char *))
                                                            : f->each;
                sequence._maximum = sequence._length = n;
                sequence._buffer = allot(d, n, f->each, align);
                if (!sequence._buffer) return false;
                // Numbers fill their place; structs have padding, and inline strings an end behind the text.
                if (f->kind >= USI_KIND_STRING) memset(sequence._buffer, 0, n * (size_t)f->each);
            }
            memcpy(at, &sequence, sizeof sequence);
            at = sequence._buffer;
        }
        if (!decode_elements(d, f, at, n)) return false;
    }
    return true;
}

us_status us_message_decode(const us_message_type *type, const void *bytes, size_t length, void *memory,
                            size_t cap, const void **out_message, us_error *err) {
    if (!type || !bytes || !memory || !out_message || (uintptr_t)memory % 16 != 0 || type->size == 0) {
        return us_error_set(err, US_ERR_ARG, NULL,
                            "give a type with a struct, bytes and memory that starts at a multiple of 16",
                            "nothing to decode, or nowhere to decode to");
    }
    decoder d = {.memory = memory, .cap = cap};
    us_status status = usi_cdr_open(&d.r, type, bytes, length, err);
    if (status) return status;
    uint8_t *message = allot(&d, 1, type->size, type->align);
    if (message) {
        memset(message, 0, type->size);
        if (decode_message(&d, type, message) && usi_cdr_end(&d.r)) {
            *out_message = message;
            return US_OK;
        }
    }
    if (d.is_full) {
        us_place place = {.element = type->name};
        return us_error_set(err, US_ERR_LIMIT, &place, "give more memory",
                            "the message does not fit into %zu bytes", cap);
    }
    return usi_cdr_error(&d.r, err);
}

// ---- encoding ----

// Counts all bytes, and writes those that there is room for.
typedef struct cdr_encoder {
    uint8_t *buf;
    size_t cap, at;  // after the header, both
} cdr_encoder;

static void put(cdr_encoder *e, const void *values, size_t n, size_t size) {
    size_t at = align_up(e->at, size), end = at + n * size;
    if (e->buf && end <= e->cap) {
        for (size_t i = e->at; i < at; i++)
            e->buf[i] = 0;
        if (n > 0) copy_numbers(e->buf + at, values, n, size, !HOST_IS_LITTLE);
    }
    e->at = end;
}

static us_status encode_string(cdr_encoder *e, const usi_message_field *f, const uint8_t *from) {
    const char *text = (const char *)from;
    size_t n = 0;
    if (f->bound) {
        n = strnlen(text, (size_t)f->bound + 1);
        if (n > f->bound) return US_ERR_ARG;
    } else {
        memcpy(&text, from, sizeof text);
        if (!text) text = "";
        n = strlen(text);
    }
    if (n >= UINT32_MAX) return US_ERR_ARG;
    uint32_t length = (uint32_t)n + 1;
    put(e, &length, 1, 4);
    put(e, text, length, 1);
    return US_OK;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static us_status encode_message(cdr_encoder *e, const us_message_type *type, const uint8_t *from) {
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        const uint8_t *at = from + f->offset;
        uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
        if (f->shape == USI_SHAPE_SEQUENCE) {
            usi_sequence sequence;
            memcpy(&sequence, at, sizeof sequence);
            n = sequence._length;
            at = sequence._buffer;
            if ((n > 0 && !at) || (f->count && n > f->count)) return US_ERR_ARG;
            put(e, &n, 1, 4);
        }
        if (f->kind < USI_KIND_STRING) {
            if (n > 0) put(e, at, n, usi_kind_size(f->kind));
            continue;
        }
        for (uint32_t k = 0; k < n; k++, at += f->each) {
            us_status status =
                f->kind == USI_KIND_STRING ? encode_string(e, f, at) : encode_message(e, f->type, at);
            if (status) return status;
        }
    }
    return US_OK;
}

us_status us_message_encode(const us_message_type *type, const void *message, void *buf, size_t cap,
                            size_t *out_length) {
    static const uint8_t header[HEADER] = {0, 1, 0, 0};
    if (!type || !message || !out_length || type->size == 0) return US_ERR_ARG;
    bool has_room = buf && cap >= HEADER;
    cdr_encoder e = {.buf = has_room ? (uint8_t *)buf + HEADER : NULL, .cap = has_room ? cap - HEADER : 0};
    if (has_room) memcpy(buf, header, HEADER);
    us_status status = encode_message(&e, type, message);
    if (status) return status;
    *out_length = e.at + HEADER;
    return buf && *out_length > cap ? US_ERR_LIMIT : US_OK;
}

const char *usi_cdr_view_text(const void *bytes, size_t length, size_t *out_length) {
    const uint8_t *b = bytes;
    if (length < 9 || b[0] != 0 || b[1] > 1) return NULL;
    bool is_little = b[1] == 1;
    uint32_t n = 0;
    for (int i = 0; i < 4; i++)
        n |= (uint32_t)b[4 + i] << (is_little ? 8 * i : 24 - 8 * i);
    if (n == 0 || n > length - 8 || b[8 + n - 1] != 0) return NULL;
    *out_length = n - 1;
    return (const char *)b + 8;
}

// Keys of samples: the bytes that tell instances of a topic from each other.
#include <string.h>

#include "wire/member.h"

typedef struct key_writer {
    usi_cdr r;
    uint8_t *out;
    size_t cap, at;
    bool is_little, is_key_alone;
} key_writer;

static void put(key_writer *w, const void *values, size_t n, size_t size) {
    const uint8_t *from = values;
    const size_t at = (w->at + size - 1) & ~(size - 1), end = at + n * size;
    const uint16_t one = 1;
    const bool is_host_little = *(const uint8_t *)&one == 1;
    if (end <= w->cap) {
        memset(w->out + w->at, 0, at - w->at);
        for (size_t i = 0; i < n * size; i++) {
            const size_t k = i % size;
            w->out[at + i] = from[i - k + (w->is_little == is_host_little ? k : size - 1 - k)];
        }
    }
    w->at = end;
}

static bool copy_message(key_writer *w, const us_message_type *type, bool is_all);

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool copy_field(key_writer *w, const usi_message_field *f) {
    const uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t number = 0;
        const char *text = NULL;
        uint32_t length = 0;
        if (f->kind == USI_KIND_MESSAGE) {
            usi_cdr_enter(&w->r);
            const bool is_good = copy_message(w, f->type, !f->type->has_key);
            usi_cdr_leave(&w->r);
            if (!is_good) return false;
        } else if (f->kind == USI_KIND_STRING) {
            if (!usi_cdr_string(&w->r, f, &text, &length)) return false;
            const uint32_t count = length + 1;
            put(w, &count, 1, 4);
            put(w, text, length, 1);
            put(w, "", 1, 1);
        } else {
            if (!usi_cdr_numbers(&w->r, (usi_kind)f->kind, 1, &number)) return false;
            put(w, &number, 1, usi_kind_size(f->kind));
        }
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool copy_message(key_writer *w, const us_message_type *type, bool is_all) {
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        usi_cdr_at(&w->r, f, -1);
        if (is_all || f->is_key ? !copy_field(w, f) : !w->is_key_alone && !usi_cdr_skip_field(&w->r, f))
            return false;
    }
    return true;
}

size_t usi_key_read(const us_message_type *type, const void *bytes, size_t length, bool is_key_alone,
                    bool is_little, uint8_t *out, size_t cap) {
    key_writer w = {.cap = cap, .is_little = is_little, .is_key_alone = is_key_alone};
    w.out = out;
    if (usi_cdr_open(&w.r, type, bytes, length, NULL) || !copy_message(&w, type, false)) return SIZE_MAX;
    return w.at;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static size_t bound_of(const us_message_type *type, bool is_all, size_t at) {
    for (int32_t i = 0; i < type->n_field && at < SIZE_MAX / 4; i++) {
        const usi_message_field *f = &type->fields[i];
        const uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
        if (!is_all && !f->is_key) continue;
        for (uint32_t k = 0; k < n && at < SIZE_MAX / 4; k++) {
            const size_t size = f->kind == USI_KIND_STRING ? 4 : usi_kind_size(f->kind);
            if (f->kind == USI_KIND_MESSAGE) {
                at = bound_of(f->type, !f->type->has_key, at);
            } else {
                at = ((at + size - 1) & ~(size - 1)) + size;
                if (f->kind == USI_KIND_STRING) at = f->bound ? at + f->bound + 1 : SIZE_MAX;
            }
        }
    }
    return at;
}

size_t usi_key_bound(const us_message_type *type) { return bound_of(type, false, 0); }

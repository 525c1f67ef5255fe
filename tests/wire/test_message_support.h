// Messages of any type, filled with numbers and texts that differ everywhere, and compared member by member:
// what the codec tests share. All of it goes by the table of members and never through bytes, so that it has
// no part in what it tests.
#ifndef UNDERSTUDY_TEST_MESSAGE_SUPPORT_H
#define UNDERSTUDY_TEST_MESSAGE_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/messages.h"

// Where the parts of a made message live; freed together.
typedef struct maker {
    uint64_t seed, counter;
    bool is_tame;  // only numbers that JSON can carry: no NaN, no infinity, no negative zero
    bool is_ascii;
    void *blocks[4096];
    int n_block;
} maker;

static inline void *make_block(maker *m, size_t size) {
    assert_true(m->n_block < (int)(sizeof m->blocks / sizeof *m->blocks));
    void *block = calloc(1, size ? size : 1);
    assert_non_null(block);
    m->blocks[m->n_block++] = block;
    return block;
}

static inline void maker_free(maker *m) {
    for (int i = 0; i < m->n_block; i++)
        free(m->blocks[i]);
    m->n_block = 0;
}

static inline uint64_t make_bits(maker *m) { return us_random_bits(m->seed, 7, m->counter++); }

static inline double make_double(maker *m) {
    static const double special[] = {0.0,           1.0,     -1.0, 0.1,  1e-300, 1e300,
                                     123456789.125, -5e-324, 1e15, 1e16, 1e-5,   9007199254740993.0};
    uint64_t pick = make_bits(m) % 40;
    if (pick < sizeof special / sizeof *special) return special[pick];
    if (!m->is_tame && pick == 20) return -0.0;
    if (!m->is_tame && pick == 21) return (double)INFINITY;
    if (!m->is_tame && pick == 22) return (double)NAN;
    return (us_random_uniform(m->seed, 8, m->counter++) - 0.5) * (double)(1ull << pick);
}

static inline void make_numbers(maker *m, usi_kind kind, size_t n, uint8_t *to) {
    size_t size = usi_kind_size((uint8_t)kind);
    for (size_t i = 0; i < n; i++, to += size) {
        uint64_t bits = make_bits(m);
        if (kind == USI_KIND_BOOL) bits &= 1;
        if (kind == USI_KIND_FLOAT32) {
            float x = (float)make_double(m);
            if (m->is_tame && !isfinite(x)) x = 2.5f;
            memcpy(to, &x, sizeof x);
        } else if (kind == USI_KIND_FLOAT64) {
            double x = make_double(m);
            memcpy(to, &x, sizeof x);
        } else {
            memcpy(to, &bits, size);
        }
    }
}

static inline const char *make_text(maker *m) {
    static const char *const texts[] = {"",      "a",          "odom",          "base_link",
                                        "näher", "two words",  "true",          "'quoted'",
                                        "12.5",  "key: value", "tab\tand\nline"};
    const char *text = texts[make_bits(m) % (sizeof texts / sizeof *texts)];
    return m->is_ascii && strcmp(text, "näher") == 0 ? "nearer" : text;
}

static inline void make_message(maker *m, const us_message_type *type, uint8_t *to) {
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        uint8_t *at = to + f->offset;
        uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
        if (f->shape == USI_SHAPE_SEQUENCE) {
            n = (uint32_t)(make_bits(m) % 5);
            if (f->count && n > f->count) n = f->count;
            usi_sequence sequence;
            memset(&sequence, 0, sizeof sequence);
            sequence._maximum = sequence._length = n;
            if (n) sequence._buffer = make_block(m, (size_t)n * f->each);
            memcpy(at, &sequence, sizeof sequence);
            at = sequence._buffer;
        }
        if (f->kind < USI_KIND_STRING) make_numbers(m, (usi_kind)f->kind, n, at);
        for (uint32_t k = 0; k < n && f->kind >= USI_KIND_STRING; k++, at += f->each) {
            if (f->kind == USI_KIND_MESSAGE) {
                make_message(m, f->type, at);
            } else if (f->bound) {
                snprintf((char *)at, f->bound + 1, "%s", make_text(m));
            } else {
                const char *text = make_text(m);
                char *copy = make_block(m, strlen(text) + 1);
                memcpy(copy, text, strlen(text) + 1);
                memcpy(at, &copy, sizeof copy);
            }
        }
    }
    // The byte for "no member" carries nothing.
    if (type->is_empty) to[0] = 0;
}

// A new message of the type; its memory belongs to the maker.
static inline const void *make_any(maker *m, const us_message_type *type) {
    uint8_t *message = make_block(m, us_message_size(type));
    make_message(m, type, message);
    return message;
}

static inline void assert_same_message(const us_message_type *type, const uint8_t *a, const uint8_t *b) {
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        const uint8_t *at_a = a + f->offset, *at_b = b + f->offset;
        uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
        if (f->shape == USI_SHAPE_SEQUENCE) {
            usi_sequence sequence_a, sequence_b;
            memcpy(&sequence_a, at_a, sizeof sequence_a);
            memcpy(&sequence_b, at_b, sizeof sequence_b);
            assert_int_equal(sequence_a._length, sequence_b._length);
            n = sequence_a._length;
            at_a = sequence_a._buffer;
            at_b = sequence_b._buffer;
        }
        if (f->kind < USI_KIND_STRING) {
            if (n) assert_memory_equal(at_a, at_b, (size_t)n * usi_kind_size(f->kind));
            continue;
        }
        for (uint32_t k = 0; k < n; k++, at_a += f->each, at_b += f->each) {
            if (f->kind == USI_KIND_MESSAGE) {
                assert_same_message(f->type, at_a, at_b);
            } else if (f->bound) {
                assert_string_equal((const char *)at_a, (const char *)at_b);
            } else {
                const char *text_a = NULL, *text_b = NULL;
                memcpy(&text_a, at_a, sizeof text_a);
                memcpy(&text_b, at_b, sizeof text_b);
                assert_string_equal(text_a, text_b);
            }
        }
    }
}

// Memory to decode into.
enum { ROOM = 1 << 18 };
static _Alignas(16) uint8_t room[ROOM];

// Length of the encoded message; buf has cap bytes.
static inline size_t encode(const us_message_type *type, const void *message, uint8_t *buf, size_t cap) {
    size_t length = 0, asked = 0;
    assert_int_equal(us_message_encode(type, message, NULL, 0, &asked), US_OK);
    assert_int_equal(us_message_encode(type, message, buf, cap, &length), US_OK);
    assert_int_equal(length, asked);
    return length;
}

static inline const void *decode(const us_message_type *type, const uint8_t *bytes, size_t length) {
    const void *message = NULL;
    us_error err = {0};
    if (us_message_decode(type, bytes, length, room, ROOM, &message, &err))
        fail_msg("%s: %s", type->name, err.message);
    return message;
}

#endif

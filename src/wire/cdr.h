// Reading CDR in place, one value after another, never beyond the end. Decoder and printer share it.
#ifndef USI_WIRE_CDR_H
#define USI_WIRE_CDR_H

#include "wire/type.h"

typedef struct usi_cdr {
    const uint8_t *bytes;  // after the header: alignment counts from here
    size_t length, at;
    bool swap;  // the bytes are of the other endianness than this machine

    // Where the reader is, for errors: the member at each level, and which element of it (-1: it is a single
    // one or the whole).
    const us_message_type *type;
    const usi_message_field *path[USI_MESSAGE_DEPTH];
    int64_t item[USI_MESSAGE_DEPTH];
    int32_t depth;
    const char *wrong;  // what stopped it; NULL while all is well
    int64_t choice;     // the discriminant of the union that was begun last
} usi_cdr;

// One number of any kind, as it stands in memory.
typedef union usi_cdr_number {
    bool b;
    uint8_t u8;
    int8_t i8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
} usi_cdr_number;

// Checks the header. US_ERR_SYNTAX when it is no plain CDR.
us_status usi_cdr_open(usi_cdr *r, const us_message_type *type, const void *bytes, size_t length,
                       us_error *err);

// Each returns false and sets `wrong` when the bytes do not allow it.
bool usi_cdr_numbers(usi_cdr *r, usi_kind kind, size_t n, void *out);  // n values, in the machine's order
bool usi_cdr_skip_numbers(usi_cdr *r, usi_kind kind, size_t n);        // bools are not looked at
bool usi_cdr_count(usi_cdr *r, const usi_message_field *f, uint32_t *out_n);  // of a sequence
bool usi_cdr_string(usi_cdr *r, const usi_message_field *f, const char **out_text,
                    uint32_t *out_length);  // in place, without its 0; may be empty
bool usi_cdr_end(usi_cdr *r);               // nothing but padding is left

// One number of a kind: as a double, and as a whole number where it is one.
bool usi_cdr_value(usi_cdr *r, usi_kind kind, double *out, int64_t *out_whole, bool *out_is_whole);
// The discriminant of a union, and which member follows: -1 for none.
bool usi_cdr_choose(usi_cdr *r, const us_message_type *type, int32_t *out_field);

// Goes over one element, or over a whole member, without keeping it. Strings are checked.
bool usi_cdr_skip_element(usi_cdr *r, const usi_message_field *f);
bool usi_cdr_skip_field(usi_cdr *r, const usi_message_field *f);
bool usi_cdr_skip_message(usi_cdr *r, const us_message_type *type);

// What is wrong and in which member, as an error.
us_status usi_cdr_error(const usi_cdr *r, us_error *err);

// The text of a message that is one String, in place and with its 0; NULL when it is none. *out_length is
// without the 0.
const char *usi_cdr_view_text(const void *bytes, size_t length, size_t *out_length);

// Every walk over a message calls these around its parts, so that errors can say where they are.
static inline void usi_cdr_enter(usi_cdr *r) { r->depth++; }
static inline void usi_cdr_leave(usi_cdr *r) { r->depth--; }
static inline void usi_cdr_at(usi_cdr *r, const usi_message_field *f, int64_t item) {
    r->path[r->depth] = f;
    r->item[r->depth] = item;
}

#endif

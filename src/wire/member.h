// Members of messages by their names, found once, and then read and written in one walk over the bytes.
#ifndef USI_WIRE_MEMBER_H
#define USI_WIRE_MEMBER_H

#include "wire/cdr.h"

// Instead of an element: all of them, one after the other.
enum { USI_MEMBER_EACH = -2 };

// Where a member stands: which field at each level, and which element of it (-1: the field is a single one,
// or the whole is meant; USI_MEMBER_EACH).
typedef struct usi_member {
    int32_t n_step;
    int32_t field[USI_MESSAGE_DEPTH];
    int64_t item[USI_MESSAGE_DEPTH];
    const usi_message_field *leaf;
} usi_member;

// `path` as "motor[3].q"; "[]" stands for the element `open` (-1: it may not stand there). A path that ends
// at an array or sequence means the whole of it: is_whole then, and usi_member_item gives its elements.
// `place` is where errors point.
us_status usi_member_find(const us_message_type *type, const char *path, int64_t open, const us_place *place,
                          usi_member *out, us_error *err);
static inline bool usi_member_is_whole(const usi_member *m) {
    return m->leaf->shape != USI_SHAPE_ONE && m->item[m->n_step - 1] == -1;
}
static inline usi_member usi_member_item(const usi_member *m, int64_t item) {
    usi_member element = *m;
    element.item[m->n_step - 1] = item;
    return element;
}
// In the order of the wire.
int usi_member_compare(const usi_member *a, const usi_member *b);
// Whether both can be in one sample: no member of two cases of a union, no element beside all of them. Of
// members that stand side by side.
bool usi_members_agree(const us_message_type *type, const usi_member *a, const usi_member *b);
// Whether both are of each element of the same array or sequence.
bool usi_member_is_listed(const usi_member *a, const usi_member *b);

// A number or a text. `is_whole`: the number is `whole`, for counts that a double does not hold.
typedef struct usi_wire_value {
    double number;
    int64_t whole;
    const char *text;  // NULL: a number; of what was read not ended by 0
    uint32_t length;   // of the text
    bool is_whole;
    bool is_there;  // of what was read: a sequence may be too short, a union another case
} usi_wire_value;

// The members, in order, out of a sample; false when its bytes are not of the type. Texts point into it.
bool usi_members_read(const us_message_type *type, const void *bytes, size_t length,
                      const usi_member *members, int32_t n, usi_wire_value *out);
// Of members with USI_MEMBER_EACH: how many elements there are for those from `first` on, and the values of
// those from `first` to before `end` for element k. They are asked for in order, from 0.
typedef struct usi_member_list {
    uint32_t (*count)(void *context, int32_t first);
    void (*fill)(void *context, int32_t first, int32_t end, uint32_t k);
    void *context;
} usi_member_list;
// A sample of the members' values, in order: its length, which is more than `cap` when it does not fit.
// Numbers that their type cannot hold become the nearest it can; texts are cut. values: NULL for 0
// everywhere; list: NULL where no member is of each element.
size_t usi_members_write(const us_message_type *type, const usi_member *members, const usi_wire_value *values,
                         int32_t n, const usi_member_list *list, void *buf, size_t cap);

// ---- key.c ----

// The key of a sample as plain CDR without header, in the given order of bytes: of a whole sample, or of one
// that is a key alone. Its length, which is more than `cap` when it does not fit; SIZE_MAX for bytes that are
// not of the type.
size_t usi_key_read(const us_message_type *type, const void *bytes, size_t length, bool is_key_alone,
                    bool is_little, uint8_t *out, size_t cap);
// Bytes that a key can have at most; SIZE_MAX: it has no bound.
size_t usi_key_bound(const us_message_type *type);

#endif

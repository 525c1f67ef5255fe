// What a message is made of: constant tables that tools/idl_types.c makes from idl/*.idl when the library is
// built.
//
// One row per member, in the order of the wire. The reader, the writer and the printer are loops over these
// rows; nothing else in the library knows what a Twist looks like in bytes. Types contain only types that
// stand before them in the IDL, so that recursion over a message is never deeper than USI_MESSAGE_DEPTH (the
// tool refuses more).
#ifndef USI_WIRE_TYPE_H
#define USI_WIRE_TYPE_H

#include "understudy/wire.h"

enum { USI_MESSAGE_DEPTH = 8 };

// X(kind, size on the wire and in the struct, name in a .msg file). Numbers first: the size of the others is
// 0 here.
#define USI_KIND_LIST(X)              \
    X(USI_KIND_BOOL, 1, "bool")       \
    X(USI_KIND_BYTE, 1, "byte")       \
    X(USI_KIND_INT8, 1, "int8")       \
    X(USI_KIND_UINT8, 1, "uint8")     \
    X(USI_KIND_INT16, 2, "int16")     \
    X(USI_KIND_UINT16, 2, "uint16")   \
    X(USI_KIND_INT32, 4, "int32")     \
    X(USI_KIND_UINT32, 4, "uint32")   \
    X(USI_KIND_INT64, 8, "int64")     \
    X(USI_KIND_UINT64, 8, "uint64")   \
    X(USI_KIND_FLOAT32, 4, "float32") \
    X(USI_KIND_FLOAT64, 8, "float64") \
    X(USI_KIND_STRING, 0, "string")   \
    X(USI_KIND_MESSAGE, 0, "")

typedef enum usi_kind {
#define USI_KIND_ENUM(kind, size, name) kind,
    USI_KIND_LIST(USI_KIND_ENUM)
#undef USI_KIND_ENUM
        USI_KIND_COUNT
} usi_kind;

typedef enum usi_shape { USI_SHAPE_ONE, USI_SHAPE_ARRAY, USI_SHAPE_SEQUENCE } usi_shape;

typedef struct usi_message_field {
    const char *name;
    const us_message_type *type;  // of a USI_KIND_MESSAGE, else NULL
    uint32_t offset;              // in the struct
    uint32_t each;                // bytes of one element in the struct
    uint32_t count;               // of an array; the bound of a sequence, 0: none
    uint32_t bound;               // of a string: then it is a char[bound + 1] in the struct; 0: a char *
    uint32_t least;               // bytes that one element takes on the wire at least
    uint8_t kind;                 // usi_kind
    uint8_t shape;                // usi_shape
} usi_message_field;

struct us_message_type {
    const char *name;      // "geometry_msgs/msg/Twist"
    const char *dds_name;  // "geometry_msgs::msg::dds_::Twist_"
    const char *hash;      // "RIHS01_...", "" for a layout that is older than hashes
    const char *schema;
    const usi_message_field *fields;
    int32_t n_field;
    uint32_t size, align;  // of the struct
    uint32_t least;        // bytes on the wire at least
    bool is_empty;         // its only member is the byte that stands for none
    const void *descriptor;
};

// Sorted by name.
extern const us_message_type usi_message_types[];
extern const int32_t usi_message_n_type;

// A sequence as the IDL compiler lays it out, whatever its elements are.
typedef struct usi_sequence {
    uint32_t _maximum;
    uint32_t _length;
    void *_buffer;
    bool _release;
} usi_sequence;

static inline uint32_t usi_kind_size(uint8_t kind) {
    static const uint8_t sizes[] = {
#define USI_KIND_SIZE(kind, size, name) size,
        USI_KIND_LIST(USI_KIND_SIZE)
#undef USI_KIND_SIZE
    };
    return sizes[kind];
}

#endif

// What a message is made of: constant tables that tools/idl_types.c makes from idl/*.idl when the library is
// built, or that a reader makes from files of the user's when they are loaded (wire/interface_types.h). Those
// of the user have no struct in C: their offsets and sizes are 0.
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
    bool is_key;                  // of its message; of a nested one with keys: those
} usi_message_field;

// A value of a union's discriminant, and the member that it means.
typedef struct usi_union_label {
    int64_t value;
    int32_t field;
} usi_union_label;

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
    // Of the user's types.
    bool has_key;    // some of its members are keys
    bool is_opaque;  // nothing is known of it but its names: bytes pass as they are
    bool is_xcdr2;   // of an opaque one: in the second version of CDR
    bool is_inner;   // an array or sequence inside another, as a message of one member without a name
    bool is_union;   // its first member is the discriminant; of the others one follows
    const usi_union_label *labels;
    int32_t n_label, other;  // the member that all other values mean; -1: none
};

// Sorted by name.
extern const us_message_type usi_message_types[];
extern const int32_t usi_message_n_type;

// "geometry_msgs::msg::dds_::Twist_" as "geometry_msgs/msg/Twist"; false for names of another form.
bool usi_ros_type_name(const char *dds_name, char *out, size_t cap);

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

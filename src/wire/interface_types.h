// A set of types while it is read from files, and afterwards.
#ifndef USI_WIRE_INTERFACE_TYPES_H
#define USI_WIRE_INTERFACE_TYPES_H

#include <stdatomic.h>

#include "base/memory.h"
#include "understudy/interface.h"
#include "wire/type.h"

enum {
    USI_INTERFACE_FILES = 256,
    USI_INTERFACE_BYTES = 4 << 20,  // of one file
    USI_INTERFACE_TYPES = 4096,
    USI_INTERFACE_SYMBOLS = 32768,
    USI_INTERFACE_FIELDS = 1024,         // of one type
    USI_INTERFACE_MAX_BYTES = 64 << 20,  // what the smallest sample of a type may take
    USI_INTERFACE_INCLUDES = 32,         // files within files
    USI_INTERFACE_NAME = 200,            // bytes of a full name
    USI_INTERFACE_TEXT = 1024,           // of a constant
};

typedef enum usi_symbol_kind {
    USI_SYMBOL_TYPE,
    USI_SYMBOL_FORWARD,  // declared, not yet defined
    USI_SYMBOL_NUMBER,
    USI_SYMBOL_TEXT,
    USI_SYMBOL_LABEL,  // of an enumeration
    USI_SYMBOL_MODULE
} usi_symbol_kind;

typedef struct usi_symbol {
    const char *name;  // in full: "rapid::k10::joint::FL_DRIVE"
    uint64_t hash;
    usi_symbol_kind kind;
    usi_message_field type;  // of a type: a member of it, without a name
    bool is_struct;          // that others may inherit
    bool is_enum;
    double number;
    int64_t whole;
    bool is_whole;
    const char *text;
} usi_symbol;

struct us_interface {
    us_allocator allocator;
    _Atomic int32_t n_holder;
    usi_arena arena;
    usi_symbol *symbol;
    us_message_type **type;
    int32_t n_symbol, cap_symbol, n_type, cap_type;
};

// Where texts of files come from: the text belongs to the source and stays until the reading is over.
typedef us_status usi_text_function(void *context, const char *path, const us_place *from,
                                    const char **out_text, size_t *out_length, us_error *err);
typedef struct usi_text_source {
    usi_text_function *open;
    bool (*exists)(void *context, const char *path);
    void *context;
} usi_text_source;

// A reading under way.
typedef struct usi_interface_reading {
    us_interface *to;
    usi_text_source source;
    us_error *err;
    us_status status;          // the first failure
    const char *const *files;  // that were asked for
    int32_t n_file;
    const char *path[USI_INTERFACE_FILES];  // all that were read
    int32_t n_path;
} usi_interface_reading;

us_status usi_interface_read(const us_allocator *allocator, const char *const *files, int32_t n,
                             const usi_text_source *source, us_interface **out_interface, us_error *err);

// ---- interface_types.c: what both readers use ----

// Notes the first failure; false.
bool usi_reading_fail(usi_interface_reading *r, us_status status, const char *file, int32_t line,
                      const char *remedy, const char *format, ...) US_PRINTF(6, 7);
// Whether the file is new; it is known from now on. `*out_path` is kept. Failures are noted.
bool usi_reading_enter(usi_interface_reading *r, const char *file, int32_t line, const char *path,
                       const char **out_path, bool *out_is_new);
// The text of a file that was entered.
bool usi_reading_open(usi_interface_reading *r, const us_place *from, const char *path, const char **out_text,
                      size_t *out_length);
const char *usi_reading_text(usi_interface_reading *r, const char *text, size_t n);  // NULL: noted
// `name` beside the file `from`.
bool usi_path_join(const char *from, const char *name, char *out, size_t cap);

usi_symbol *usi_symbol_find(const us_interface *i, const char *name);
// A new one; NULL when the name is taken (said at the place) or there are too many.
usi_symbol *usi_symbol_add(usi_interface_reading *r, const char *file, int32_t line, const char *name,
                           usi_symbol_kind kind);

// A type of the fields, which are copied: its sizes and depth are checked. NULL: noted.
us_message_type *usi_type_add(usi_interface_reading *r, const char *file, int32_t line, const char *name,
                              const usi_message_field *fields, int32_t n);
// A member whose elements are `of`: an array of n, or a sequence of at most n (0: any). What is an array or
// sequence already goes inside a type of its own, or, arrays of arrays, becomes one long array.
bool usi_type_repeat(usi_interface_reading *r, const char *file, int32_t line, const usi_message_field *of,
                     usi_shape shape, uint64_t n, usi_message_field *out);
// Whether its keys can be some.
bool usi_type_check_key(usi_interface_reading *r, const char *file, int32_t line,
                        const us_message_type *type);
int32_t usi_type_depth(const us_message_type *type);

// ---- type_description.c: hashes and definitions of all types; US_ERR_MEMORY ----
us_status usi_interface_describe(us_interface *to);

// ---- idl.c, ros_msg.c ----
bool usi_idl_read(usi_interface_reading *r, const char *path);
bool usi_is_ros_file(const char *path);  // by its name: .msg, .srv, .action
bool usi_ros_msg_read(usi_interface_reading *r, const char *path);

#endif

// The IDL reader inside: what its files share.
#ifndef USI_WIRE_IDL_LOCAL_H
#define USI_WIRE_IDL_LOCAL_H

#include "wire/idl_scan.h"

typedef struct usi_idl {
    usi_idl_scanner s;
    char scope[USI_INTERFACE_NAME];  // modules that are open: "rapid::k10"
    int32_t depth;                   // brackets and modules inside each other
} usi_idl;

enum { USI_IDL_DEPTH = 32 };

// A value of a constant.
typedef struct usi_idl_value {
    double number;
    int64_t whole;
    bool is_whole;
    const char *text;  // of a text; else NULL
} usi_idl_value;

// idl_constant.c: an expression of numbers and constants, or a text.
bool usi_idl_constant(usi_idl *p, usi_idl_value *out);
// A whole number from `low` to `high`.
bool usi_idl_count(usi_idl *p, const char *what, int64_t low, int64_t high, int64_t *out);

// idl.c: "a::b::c" at the scanner, and what it means as seen from the open modules; failures are noted.
bool usi_idl_scoped_name(usi_idl *p, char out[USI_INTERFACE_NAME]);
usi_symbol *usi_idl_look_up(usi_idl *p, const char *name);
bool usi_idl_full_name(usi_idl *p, const char *name, char out[USI_INTERFACE_NAME]);

// idl_type.c: the type at the scanner, as a member without a name.
bool usi_idl_type(usi_idl *p, usi_message_field *out);
// A name with arrays behind it: "x", "x[3]", "x[2][3]".
bool usi_idl_declarator(usi_idl *p, const char *what, const usi_message_field *type,
                        char name[USI_INTERFACE_NAME], usi_message_field *out);

#endif

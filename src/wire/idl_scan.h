// Words of IDL files: names, numbers, texts and signs, with includes, guards and comments seen to.
#ifndef USI_WIRE_IDL_SCAN_H
#define USI_WIRE_IDL_SCAN_H

#include "wire/interface_types.h"

enum { USI_IDL_CONDITIONS = 32, USI_IDL_DEFINES = 512, USI_IDL_KEYLISTS = 256 };

typedef enum usi_idl_token {
    USI_IDL_END,
    USI_IDL_NAME,
    USI_IDL_NUMBER,
    USI_IDL_TEXT,
    USI_IDL_SIGN
} usi_idl_token;

typedef struct usi_idl_file {
    const char *path, *text;
    size_t length, at;
    int32_t line, n_condition;  // conditions that were open when it began
} usi_idl_file;

// "#pragma keylist TYPE MEMBER ...", to be obeyed at the end.
typedef struct usi_idl_keylist {
    const char *file, *text;
    int32_t line;
} usi_idl_keylist;

typedef struct usi_idl_scanner {
    usi_interface_reading *r;
    usi_idl_file file[USI_INTERFACE_INCLUDES];
    int32_t n_file;

    // The word that comes next, and where it stands.
    usi_idl_token token;
    char word[USI_INTERFACE_TEXT];
    const char *path;
    int32_t line;
    // Where the last comment //@key stands.
    const char *key_path;
    int32_t key_line;

    const char *define[USI_IDL_DEFINES];
    int32_t n_define;
    struct {
        bool is_on, was_on;  // whether its lines count now, and whether some did before
    } condition[USI_IDL_CONDITIONS];
    int32_t n_condition;
    usi_idl_keylist keylist[USI_IDL_KEYLISTS];
    int32_t n_keylist;
} usi_idl_scanner;

// Begins with a file. False: the failure is noted in the reading, as of all below.
bool usi_idl_open(usi_idl_scanner *s, const char *path);
bool usi_idl_next(usi_idl_scanner *s);
bool usi_idl_fail(usi_idl_scanner *s, us_status status, const char *remedy, const char *format, ...)
    US_PRINTF(4, 5);
bool usi_idl_is(const usi_idl_scanner *s, const char *word);  // a name or a sign
// Goes over a word that must be there.
bool usi_idl_expect(usi_idl_scanner *s, const char *word);
// The word if it is a name, which is gone over.
bool usi_idl_take_name(usi_idl_scanner *s, const char *what, char out[USI_INTERFACE_NAME]);

#endif

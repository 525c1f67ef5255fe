// Our IDL as tools read it: the types in the order in which they stand, with their comments, and texts that
// grow.
//
// The part of IDL that ROS 2 messages need is read, and the rest refused with file and line:
//     #include "other.idl"                 read once, relative to the file; other # lines are skipped
//     module NAME { ... };                 three deep: package, msg, srv or action, dds_
//     @final struct NAME_ { MEMBERS };
//     TYPE NAME;  TYPE NAME[N];            TYPE a number, string, string<N>, sequence<TYPE>, sequence<TYPE,
//     N>, or a struct read before
//     // a comment                         on the lines before a struct or a member, or behind a member
#ifndef TOOLS_IDL_READ_H
#define TOOLS_IDL_READ_H

#include <stdbool.h>
#include <stddef.h>

enum { MAX_TYPE = 512, MAX_FIELD = 48, MAX_FILE = 64, MAX_NAME = 128, MAX_DEPTH = 8 };

// The kinds of src/wire/type.h, with their names in IDL, in .msg files and in C, their size and their number
// in a type hash (REP 2011).
typedef struct kind_row {
    const char *idl, *msg, *code, *c;
    int size, id;
} kind_row;
enum { N_KIND = 13, STRING = N_KIND - 1, MESSAGE = N_KIND };
extern const kind_row kinds[N_KIND];

typedef enum shape { ONE, ARRAY, SEQUENCE } shape;

typedef struct field {
    char name[MAX_NAME];
    int kind;
    int type;   // of a MESSAGE
    int bound;  // of a string; 0: none
    shape shape;
    int count;  // of an array; the bound of a sequence, 0: none
    // Comments on the lines before it and behind it; NULL: none.
    const char *comment, *note;
} field;

typedef struct type {
    char package[MAX_NAME], name[MAX_NAME];  // without the underscore at the end
    char kind[8];                            // the module between package and dds_: msg, srv, action
    bool is_service;                         // half of a service: NAME_Request or NAME_Response
    char full[2 * MAX_NAME + 8];             // "std_msgs/msg/Header"
    char c_name[2 * MAX_NAME + 16];          // as idlc calls it
    char snake[MAX_NAME + 8];                // "joint_state"
    field fields[MAX_FIELD];
    int n_field, min_size, depth;
    const char *comment;  // on the lines before it; NULL: none
} type;

extern type types[MAX_TYPE];
extern int n_type;
extern char files[MAX_FILE][512];  // as read, so that none is read twice
extern int n_file;

typedef struct text {
    char *s;
    size_t n, cap;
} text;

// Ends the program with a message behind the name of the tool.
extern const char *tool_name;
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void clear(text *t);
void copy_name(char *to, size_t cap, const char *from);
void write_file(const char *path, const text *content);

void read_file(const char *path);

int find_type(const char *full);  // -1: there is none
bool is_humble(const type *t);    // the layout of before Iron
// Whether it has no member but the byte that stands for none: that is part of its hash, not of its .msg text.
bool is_empty(const type *t);
// How many members of a half of a service say who asks, and with which number: they stand before what a .srv
// file has.
int n_request_id(const type *t);
// "float64[36] covariance".
void add_msg_member(text *out, const field *f);

#endif

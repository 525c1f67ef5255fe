// idl_types LIST.h TABLE.c PUBLIC.h FILE.idl...
//
// Reads our IDL and writes what others need to know of it. So the IDL stays the one source.
//     PUBLIC.h   understudy/messages.h: the messages as plain structs that need no header of a DDS vendor
//     LIST.h     for src/wire: the numbers of the types
//     TABLE.c    every type: members, kinds, offsets, schema text, hash; asserts that the structs that
//                Cyclone's idlc makes of the same files lie in memory as those of PUBLIC.h
//
// It reads the part of IDL that ROS 2 messages need, and refuses the rest with file and line:
//     #include "other.idl"                 read once, relative to the file; other # lines are skipped
//     module NAME { ... };                 three deep: package, msg or srv, dds_
//     @final struct NAME_ { MEMBERS };
//     TYPE NAME;  TYPE NAME[N];            TYPE a number, string, string<N>, sequence<TYPE>, sequence<TYPE,
//     N>, or a struct read before
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"

enum { MAX_TYPE = 256, MAX_FIELD = 48, MAX_FILE = 64, MAX_NAME = 128, MAX_DEPTH = 8 };

// The kinds of src/wire/type.h, with their names in IDL, in .msg files and in C, their size and their number
// in a type hash (REP 2011).
typedef struct kind_row {
    const char *idl, *msg, *code, *c;
    int size, id;
} kind_row;
static const kind_row kinds[] = {
    {"boolean", "bool", "BOOL", "bool", 1, 15},      {"octet", "byte", "BYTE", "uint8_t", 1, 16},
    {"int8", "int8", "INT8", "int8_t", 1, 2},        {"uint8", "uint8", "UINT8", "uint8_t", 1, 3},
    {"int16", "int16", "INT16", "int16_t", 2, 4},    {"uint16", "uint16", "UINT16", "uint16_t", 2, 5},
    {"int32", "int32", "INT32", "int32_t", 4, 6},    {"uint32", "uint32", "UINT32", "uint32_t", 4, 7},
    {"int64", "int64", "INT64", "int64_t", 8, 8},    {"uint64", "uint64", "UINT64", "uint64_t", 8, 9},
    {"float", "float32", "FLOAT32", "float", 4, 10}, {"double", "float64", "FLOAT64", "double", 8, 11},
    {"string", "string", "STRING", "char *", 4, 17}};
enum { N_KIND = sizeof kinds / sizeof *kinds, STRING = N_KIND - 1, MESSAGE = N_KIND };
enum { ID_MESSAGE = 1, ID_BOUNDED_STRING = 21, ID_ARRAY = 48, ID_BOUNDED_SEQUENCE = 96, ID_SEQUENCE = 144 };

typedef enum shape { ONE, ARRAY, SEQUENCE } shape;

typedef struct field {
    char name[MAX_NAME];
    int kind;
    int type;   // of a MESSAGE
    int bound;  // of a string; 0: none
    shape shape;
    int count;  // of an array; the bound of a sequence, 0: none
} field;

typedef struct type {
    char package[MAX_NAME], name[MAX_NAME];  // without the underscore at the end
    bool is_service;                         // half of a service: NAME_Request or NAME_Response
    char full[2 * MAX_NAME + 8];             // "std_msgs/msg/Header"
    char c_name[2 * MAX_NAME + 16];          // as idlc calls it
    char snake[MAX_NAME + 8];                // "joint_state"
    field fields[MAX_FIELD];
    int n_field, min_size, depth;
} type;

static type types[MAX_TYPE];
static int n_type;
static char files[MAX_FILE][512];  // as read, so that none is read twice
static int n_file;

// ---- texts that grow
// ----------------------------------------------------------------

typedef struct text {
    char *s;
    size_t n, cap;
} text;

_Noreturn static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("idl_types: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static void add(text *t, const char *format, ...) {
    for (;;) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(t->s ? t->s + t->n : NULL, t->cap - t->n, format, args);
        va_end(args);
        if (n < 0) die("text cannot be formatted");
        if (t->s && t->n + (size_t)n < t->cap) {
            t->n += (size_t)n;
            return;
        }
        t->cap = 2 * t->cap + (size_t)n + 256;
        t->s = realloc(t->s, t->cap);
        if (!t->s) die("out of memory");
    }
}

static void clear(text *t) {
    t->n = 0;
    if (t->s) t->s[0] = 0;
}

static void copy_name(char *to, size_t cap, const char *from) {
    if (snprintf(to, cap, "%s", from) >= (int)cap) die("name too long: %s", from);
}

// ---- reading
// ----------------------------------------------------------------

typedef struct lexer {
    const char *file, *at;
    int line;
    char token[MAX_NAME];  // "" at the end; '"' in front of a text
} lexer;

_Noreturn static void fail(const lexer *l, const char *what) {
    die("%s:%d: %s, not \"%s\"", l->file, l->line, what, l->token);
}

static void read_file(const char *path);

// #include reads the other file at once; include guards and the like need no looking at.
static void read_directive(lexer *l) {
    const char *end = strchr(l->at, '\n');
    size_t n = end ? (size_t)(end - l->at) : strlen(l->at);
    char line[512], path[1024];
    snprintf(line, sizeof line, "%.*s", (int)n, l->at);
    l->at += n;
    char *open = strchr(line, '"'), *close = open ? strchr(open + 1, '"') : NULL;
    if (strncmp(line, "#include", 8) != 0) return;
    if (!close) die("%s:%d: #include \"file\" is expected", l->file, l->line);
    *close = 0;
    const char *slash = strrchr(l->file, '/');
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - l->file) : 0, l->file, open + 1);
    read_file(path);
}

static void next(lexer *l) {
    for (;;) {
        while (isspace((unsigned char)*l->at))
            l->line += *l->at++ == '\n';
        if (l->at[0] == '/' && l->at[1] == '/')
            l->at += strcspn(l->at, "\n");
        else if (*l->at == '#')
            read_directive(l);
        else
            break;
    }
    size_t n = 0;
    if (isalnum((unsigned char)*l->at) || *l->at == '_') {
        while (isalnum((unsigned char)l->at[n]) || l->at[n] == '_')
            n++;
    } else if (l->at[0] == ':' && l->at[1] == ':') {
        n = 2;
    } else if (*l->at) {
        n = 1;
    }
    if (n >= MAX_NAME) die("%s:%d: name too long", l->file, l->line);
    memcpy(l->token, l->at, n);
    l->token[n] = 0;
    l->at += n;
}

static bool is(const lexer *l, const char *token) { return strcmp(l->token, token) == 0; }

static void expect(lexer *l, const char *token) {
    if (!is(l, token)) die("%s:%d: \"%s\" is expected, not \"%s\"", l->file, l->line, token, l->token);
    next(l);
}

static void read_name(lexer *l, char *out, size_t cap) {
    if (!isalpha((unsigned char)l->token[0]) && l->token[0] != '_') fail(l, "a name is expected");
    copy_name(out, cap, l->token);
    next(l);
}

static int read_count(lexer *l) {
    char *end = NULL;
    long n = strtol(l->token, &end, 10);
    if (end == l->token || *end || n < 1 || n > 65536) fail(l, "a number from 1 to 65536 is expected");
    next(l);
    return (int)n;
}

// A struct that was read before: "Header_" of this package, or "std_msgs::msg::dds_::Header_".
static int read_type_name(lexer *l, const char *package) {
    char part[4][MAX_NAME];
    int n = 0;
    read_name(l, part[n++], MAX_NAME);
    while (is(l, "::")) {
        next(l);
        if (n == 4) fail(l, "package::msg::dds_::Name_ is expected");
        read_name(l, part[n++], MAX_NAME);
    }
    if (n == 4 && strcmp(part[1], "msg") == 0 && strcmp(part[2], "dds_") == 0)
        package = part[0];
    else if (n != 1)
        fail(l, "package::msg::dds_::Name_ is expected");
    char *name = part[n - 1];
    for (int i = 0; i < n_type; i++) {
        size_t length = strlen(types[i].name);
        if (strcmp(types[i].package, package) == 0 && strncmp(types[i].name, name, length) == 0 &&
            strcmp(name + length, "_") == 0)
            return i;
    }
    die("%s:%d: type %s of package %s is not known here", l->file, l->line, name, package);
}

// The type of one element.
static void read_element(lexer *l, const char *package, field *f) {
    for (f->kind = 0; f->kind < N_KIND; f->kind++) {
        if (is(l, kinds[f->kind].idl)) break;
    }
    if (f->kind == MESSAGE) {
        f->type = read_type_name(l, package);
        return;
    }
    next(l);
    if (f->kind == STRING && is(l, "<")) {
        next(l);
        f->bound = read_count(l);
        expect(l, ">");
    }
}

static void read_field(lexer *l, type *t) {
    if (t->n_field == MAX_FIELD) fail(l, "too many members");
    field *f = &t->fields[t->n_field];
    if (is(l, "sequence")) {
        next(l);
        expect(l, "<");
        f->shape = SEQUENCE;
        read_element(l, t->package, f);
        if (is(l, ",")) {
            next(l);
            f->count = read_count(l);
        }
        expect(l, ">");
    } else {
        read_element(l, t->package, f);
    }
    // An underscore before a name escapes it from the words of IDL.
    char name[MAX_NAME];
    read_name(l, name, sizeof name);
    copy_name(f->name, sizeof f->name, name[0] == '_' ? name + 1 : name);
    if (is(l, "[")) {
        if (f->shape == SEQUENCE) fail(l, "no array of sequences is expected");
        next(l);
        f->shape = ARRAY;
        f->count = read_count(l);
        expect(l, "]");
    }
    expect(l, ";");
    for (int i = 0; i < t->n_field; i++) {
        if (strcmp(t->fields[i].name, f->name) == 0)
            die("%s:%d: member %s stands twice", l->file, l->line, f->name);
    }
    const type *inner = f->kind == MESSAGE ? &types[f->type] : NULL;
    int min_size = inner ? inner->min_size : kinds[f->kind].size;
    t->min_size += f->shape == SEQUENCE ? 4 : f->shape == ARRAY ? f->count * min_size : min_size;
    if (inner && inner->depth >= t->depth) t->depth = inner->depth + 1;
    if (t->depth > MAX_DEPTH) fail(l, "types are nested too deep");
    t->n_field++;
}

// JointState: joint_state; TFMessage: tf_message; PointCloud2: point_cloud2; MotorGroup_Request:
// motor_group_request.
static void make_snake(const char *name, char *out) {
    for (const char *c = name; *c; c++) {
        bool is_upper = isupper((unsigned char)*c) != 0;
        if (c > name && is_upper && c[-1] != '_' &&
            (!isupper((unsigned char)c[-1]) || islower((unsigned char)c[1])))
            *out++ = '_';
        *out++ = (char)tolower((unsigned char)*c);
    }
    *out = 0;
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), n_end = strlen(end);
    return n > n_end && strcmp(name + n - n_end, end) == 0;
}

static bool is_humble(const type *t) { return ends_with(t->package, "_humble"); }

static void read_struct(lexer *l, char modules[3][MAX_NAME], int n_module) {
    expect(l, "@");
    expect(l, "final");
    expect(l, "struct");
    bool is_service = n_module == 3 && strcmp(modules[1], "srv") == 0;
    if (n_module != 3 || (!is_service && strcmp(modules[1], "msg") != 0) || strcmp(modules[2], "dds_") != 0)
        fail(l, "a struct stands in module PACKAGE::msg::dds_ or PACKAGE::srv::dds_");
    if (n_type == MAX_TYPE) fail(l, "too many types");
    type *t = &types[n_type];
    t->depth = 1;
    copy_name(t->package, sizeof t->package, modules[0]);
    char name[MAX_NAME], snake[2 * MAX_NAME];
    read_name(l, name, sizeof name);
    size_t n = strlen(name);
    if (name[n - 1] != '_') die("%s:%d: the name of struct %s must end with _", l->file, l->line, name);
    snprintf(t->c_name, sizeof t->c_name, "%s_%s_dds__%s", modules[0], modules[1], name);
    name[n - 1] = 0;
    t->is_service = is_service;
    if (is_service && !ends_with(name, "_Request") && !ends_with(name, "_Response"))
        die("%s:%d: the name of struct %s_ must end with _Request_ or _Response_", l->file, l->line, name);
    copy_name(t->name, sizeof t->name, name);
    snprintf(t->full, sizeof t->full, "%s/%s/%s", modules[0], modules[1], name);
    make_snake(name, snake);
    if (snprintf(t->snake, sizeof t->snake, "%s%s", is_humble(t) ? "humble_" : "", snake) >=
        (int)sizeof t->snake)
        fail(l, "a shorter name is expected");
    for (int i = 0; i < n_type; i++) {
        if (strcmp(types[i].snake, t->snake) == 0)
            die("%s:%d: %s would share its short name with %s", l->file, l->line, t->full, types[i].full);
    }
    expect(l, "{");
    while (!is(l, "}"))
        read_field(l, t);
    if (t->n_field == 0) fail(l, "a member is expected");
    next(l);
    expect(l, ";");
    n_type++;
}

static void read_module(lexer *l, char modules[3][MAX_NAME], int n_module) {
    expect(l, "module");
    if (n_module == 3) fail(l, "three modules are enough");
    read_name(l, modules[n_module++], MAX_NAME);
    expect(l, "{");
    while (!is(l, "}")) {
        if (is(l, "module"))
            read_module(l, modules, n_module);
        else
            read_struct(l, modules, n_module);
    }
    next(l);
    expect(l, ";");
}

static void read_file(const char *path) {
    for (int i = 0; i < n_file; i++) {
        if (strcmp(files[i], path) == 0) return;
    }
    if (n_file == MAX_FILE) die("too many files");
    copy_name(files[n_file++], sizeof files[0], path);
    FILE *f = fopen(path, "rb");
    if (!f) die("%s: cannot be read", path);
    text content = {0};
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        add(&content, "%.*s", (int)n, block);
    fclose(f);
    lexer l = {.file = path, .at = content.s ? content.s : "", .line = 1};
    char modules[3][MAX_NAME];
    for (next(&l); l.token[0];)
        read_module(&l, modules, 0);
    free(content.s);
}

// ---- schema and hash
// ----------------------------------------------------------------

// All types inside type t, each once, by name. They stand before t in `types`, which is sorted when this is
// called.
static void mark_inner(int t, bool *is_inside) {
    for (int i = 0; i < types[t].n_field; i++) {
        const field *f = &types[t].fields[i];
        if (f->kind != MESSAGE) continue;
        is_inside[f->type] = true;
        mark_inner(f->type, is_inside);
    }
}

// The byte that stands for no member at all is part of a type's hash, but not of its .msg text.
static bool is_empty(const type *t) {
    return t->n_field == 1 && strcmp(t->fields[0].name, "structure_needs_at_least_one_member") == 0;
}

static void add_msg(text *out, const type *t) {
    for (int i = 0; i < t->n_field && !is_empty(t); i++) {
        const field *f = &t->fields[i];
        if (f->kind == MESSAGE)
            add(out, "%s/%s", types[f->type].package, types[f->type].name);
        else
            add(out, "%s", kinds[f->kind].msg);
        if (f->bound) add(out, "<=%d", f->bound);
        if (f->shape == ARRAY) add(out, "[%d]", f->count);
        if (f->shape == SEQUENCE && f->count) add(out, "[<=%d]", f->count);
        if (f->shape == SEQUENCE && !f->count) add(out, "[]");
        add(out, " %s\n", f->name);
    }
}

static void add_schema(text *out, int t, const bool *is_inside) {
    add_msg(out, &types[t]);
    for (int i = 0; i < n_type; i++) {
        if (!is_inside[i]) continue;
        for (int k = 0; k < 80; k++)
            add(out, "=");
        add(out, "\nMSG: %s/%s\n", types[i].package, types[i].name);
        add_msg(out, &types[i]);
    }
}

// How many members of a half of a service say who asks, and with which number: they stand before what a .srv
// file has.
static int n_request_id(const type *t) {
    bool has = t->is_service && t->n_field >= 2 && strcmp(t->fields[0].name, "guid") == 0 &&
               strcmp(t->fields[1].name, "seq") == 0;
    return has ? 2 : 0;
}

static void add_json(text *out, const type *t) {
    add(out, "{\"type_name\": \"%s\", \"fields\": [", t->full);
    const int first = n_request_id(t);
    for (int i = first; i < t->n_field; i++) {
        const field *f = &t->fields[i];
        int id = f->kind == MESSAGE ? ID_MESSAGE : f->bound ? ID_BOUNDED_STRING : kinds[f->kind].id;
        if (f->shape == ARRAY) id += ID_ARRAY;
        if (f->shape == SEQUENCE) id += f->count ? ID_BOUNDED_SEQUENCE : ID_SEQUENCE;
        add(out,
            "%s{\"name\": \"%s\", \"type\": {\"type_id\": %d, \"capacity\": %d, \"string_capacity\": %d, "
            "\"nested_type_name\": \"%s\"}}",
            i > first ? ", " : "", f->name, id, f->count, f->bound,
            f->kind == MESSAGE ? types[f->type].full : "");
    }
    add(out, "]}");
}

static void finish_hash(text *json, char *out, size_t cap) {
    char hex[65];
    sha256_hex(json->s, json->n, hex);
    snprintf(out, cap, "RIHS01_%s", hex);
    free(json->s);
}

static void make_hash(int t, const bool *is_inside, char *out, size_t cap) {
    text json = {0};
    add(&json, "{\"type_description\": ");
    add_json(&json, &types[t]);
    add(&json, ", \"referenced_type_descriptions\": [");
    int n = 0;
    for (int i = 0; i < n_type; i++) {
        if (!is_inside[i]) continue;
        if (n++) add(&json, ", ");
        add_json(&json, &types[i]);
    }
    add(&json, "]}");
    finish_hash(&json, out, cap);
}

// A service is described as a message of three: request, response, and the event that tells of either. All
// parts of it are announced with the hash of the whole.

static int find_type(const char *full) {
    for (int i = 0; i < n_type; i++) {
        if (strcmp(types[i].full, full) == 0) return i;
    }
    return -1;
}

static void add_nested(text *out, const char *name, const char *service, const char *part, int id,
                       int capacity) {
    add(out,
        "{\"name\": \"%s\", \"type\": {\"type_id\": %d, \"capacity\": %d, \"string_capacity\": 0, "
        "\"nested_type_name\": \"%s%s\"}}",
        name, id, capacity, service, part);
}

static void add_event(text *out, const char *service) {
    add(out, "{\"type_name\": \"%s_Event\", \"fields\": [", service);
    add_nested(out, "info", "service_msgs/msg/ServiceEventInfo", "", ID_MESSAGE, 0);
    add(out, ", ");
    add_nested(out, "request", service, "_Request", ID_MESSAGE + ID_BOUNDED_SEQUENCE, 1);
    add(out, ", ");
    add_nested(out, "response", service, "_Response", ID_MESSAGE + ID_BOUNDED_SEQUENCE, 1);
    add(out, "]}");
}

static void make_service_hash(const type *half, char *out, size_t cap) {
    char service[sizeof half->full], event[sizeof half->full + 8], part[sizeof half->full + 16];
    snprintf(service, sizeof service, "%s", half->full);
    *strrchr(service, '_') = 0;
    snprintf(event, sizeof event, "%s_Event", service);
    bool is_inside[MAX_TYPE] = {false};
    static const char *const parts[] = {"_Request", "_Response"};
    for (int i = 0; i < 3; i++) {
        snprintf(part, sizeof part, "%s%s", i < 2 ? service : "service_msgs/msg/ServiceEventInfo",
                 i < 2 ? parts[i] : "");
        int found = find_type(part);
        if (found < 0) die("%s needs %s beside it", half->full, part);
        is_inside[found] = true;
        mark_inner(found, is_inside);
    }
    text json = {0};
    add(&json, "{\"type_description\": {\"type_name\": \"%s\", \"fields\": [", service);
    add_nested(&json, "request_message", service, "_Request", ID_MESSAGE, 0);
    add(&json, ", ");
    add_nested(&json, "response_message", service, "_Response", ID_MESSAGE, 0);
    add(&json, ", ");
    add_nested(&json, "event_message", service, "_Event", ID_MESSAGE, 0);
    add(&json, "]}, \"referenced_type_descriptions\": [");
    bool has_event = false;
    for (int i = 0, n = 0; i <= n_type; i++) {
        if (!has_event && (i == n_type || strcmp(event, types[i].full) < 0)) {
            if (n++) add(&json, ", ");
            add_event(&json, service);
            has_event = true;
        }
        if (i == n_type || !is_inside[i]) continue;
        if (n++) add(&json, ", ");
        add_json(&json, &types[i]);
    }
    add(&json, "]}");
    finish_hash(&json, out, cap);
}

// ---- writing
// ----------------------------------------------------------------

static int compare_types(const void *a, const void *b) {
    return strcmp(types[*(const int *)a].full, types[*(const int *)b].full);
}

// By name: then the table can be searched, and what a hash refers to stands in its order.
static void sort_types(void) {
    static type sorted[MAX_TYPE];
    int order[MAX_TYPE], place[MAX_TYPE];
    for (int i = 0; i < n_type; i++)
        order[i] = i;
    qsort(order, (size_t)n_type, sizeof *order, compare_types);
    for (int i = 0; i < n_type; i++) {
        place[order[i]] = i;
        sorted[i] = types[order[i]];
    }
    for (int i = 0; i < n_type; i++) {
        for (int k = 0; k < sorted[i].n_field; k++) {
            if (sorted[i].fields[k].kind == MESSAGE)
                sorted[i].fields[k].type = place[sorted[i].fields[k].type];
        }
    }
    memcpy(types, sorted, sizeof types);
}

// The type of a member's elements in C, and as a part of the name of their sequence.
static void element_names(const field *f, char *c, char *name, size_t cap) {
    if (f->kind == MESSAGE) {
        snprintf(c, cap, "us_msg_%s ", types[f->type].snake);
        snprintf(name, cap, "%s", types[f->type].snake);
    } else {
        const char *plain = kinds[f->kind].c;
        snprintf(c, cap, "%s%s", plain, plain[strlen(plain) - 1] == '*' ? "" : " ");
        snprintf(name, cap, "%s", kinds[f->kind].msg);
    }
}

// A sequence's struct, when it is the first of its kind.
static void add_sequence(text *out, const field *f) {
    static char made[MAX_TYPE][MAX_NAME + 16];
    static int n_made;
    char c[2 * MAX_NAME], name[2 * MAX_NAME];
    element_names(f, c, name, sizeof c);
    for (int i = 0; i < n_made; i++) {
        if (strcmp(made[i], name) == 0) return;
    }
    if (n_made == MAX_TYPE) die("too many kinds of sequences");
    copy_name(made[n_made++], sizeof made[0], name);
    add(out,
        "typedef struct us_msg_sequence_%s {\n    uint32_t _maximum;\n    uint32_t _length;\n    "
        "%s*_buffer;\n  "
        "  bool _release;\n} us_msg_sequence_%s;\n\n",
        name, c, name);
}

// A type's struct, after those that it is made of.
static void add_struct(text *out, int t, bool *is_done) {
    if (is_done[t]) return;
    is_done[t] = true;
    for (int i = 0; i < types[t].n_field; i++) {
        if (types[t].fields[i].kind == MESSAGE) add_struct(out, types[t].fields[i].type, is_done);
    }
    for (int i = 0; i < types[t].n_field; i++) {
        if (types[t].fields[i].shape == SEQUENCE) add_sequence(out, &types[t].fields[i]);
    }
    add(out, "typedef struct us_msg_%s {  // %s\n", types[t].snake, types[t].full);
    for (int i = 0; i < types[t].n_field; i++) {
        const field *f = &types[t].fields[i];
        char c[2 * MAX_NAME], name[2 * MAX_NAME];
        element_names(f, c, name, sizeof c);
        if (f->kind == STRING && f->bound && f->shape == SEQUENCE)
            die("a sequence of bounded strings: %s", f->name);
        if (f->shape == SEQUENCE)
            add(out, "    us_msg_sequence_%s %s;\n", name, f->name);
        else if (f->kind == STRING && f->bound)
            add(out, "    char %s", f->name);
        else
            add(out, "    %s%s", c, f->name);
        if (f->shape == ARRAY) add(out, "[%d]", f->count);
        if (f->shape != SEQUENCE && f->kind == STRING && f->bound) add(out, "[%d]", f->bound + 1);
        if (f->shape != SEQUENCE) add(out, ";\n");
    }
    add(out, "} us_msg_%s;\n\n", types[t].snake);
}

static void add_public(text *out) {
    add(out,
        "// The messages as plain structs, for us_message_encode and us_message_decode (understudy/wire.h).\n"
        "//\n"
        "// Made from idl/*.idl by tools/idl_types.c. Strings are char * (bounded ones arrays), which the "
        "encoder\n"
        "// never writes to; NULL is sent as \"\". Sequences have _length elements at _buffer, NULL when "
        "there are\n"
        "// none; _maximum and _release are not looked at.\n"
        "#ifndef UNDERSTUDY_MESSAGES_H\n#define UNDERSTUDY_MESSAGES_H\n\n"
        "#include <stdbool.h>\n#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    bool is_done[MAX_TYPE] = {false};
    for (int i = 0; i < n_type; i++)
        add_struct(out, i, is_done);
    add(out, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

static void add_list(text *out) {
    add(out, "// Made from idl/*.idl by tools/idl_types.c.\n#ifndef USI_WIRE_MESSAGE_LIST_H\n#define "
             "USI_WIRE_MESSAGE_LIST_H\n\n");
    add(out, "#include \"understudy/messages.h\"\n#include \"wire/type.h\"\n\n");
    add(out, "// A program that has messages of its own from the same packages can still be linked with the "
             "static library.\n");
    for (int i = 0; i < n_type; i++)
        add(out, "#define %s_desc usi_descriptor_%s\n", types[i].c_name, types[i].snake);
    add(out, "\n");
    for (int i = 0; i < n_file; i++) {
        const char *slash = strrchr(files[i], '/'), *name = slash ? slash + 1 : files[i];
        add(out, "#include \"%.*s.h\"\n", (int)strcspn(name, "."), name);
    }
    add(out, "\nenum {\n");
    for (int i = 0; i < n_type; i++) {
        add(out, "    USI_MESSAGE_");
        for (const char *c = types[i].snake; *c; c++)
            add(out, "%c", toupper((unsigned char)*c));
        add(out, ",\n");
    }
    add(out, "    USI_MESSAGE_COUNT\n};\n\n");
    for (int i = 0; i < n_type; i++) {
        add(out, "#define usi_type_%s (&usi_message_types[%d])\n", types[i].snake, i);
    }
    add(out, "\n#endif\n");
}

// The struct of idlc and ours are the same in memory, so that either may be given to DDS.
static void add_layout(text *out, int t) {
    const char *ours = types[t].snake, *theirs = types[t].c_name;
    add(out,
        "_Static_assert(sizeof(us_msg_%s) == sizeof(%s) && _Alignof(us_msg_%s) == _Alignof(%s), "
        "\"layout\");\n",
        ours, theirs, ours, theirs);
    for (int i = 0; i < types[t].n_field; i++) {
        const field *f = &types[t].fields[i];
        const char *part = f->shape == ARRAY ? "[0]" : f->shape == SEQUENCE ? "._buffer[0]" : "";
        add(out,
            "_Static_assert(offsetof(us_msg_%s, %s) == offsetof(%s, %s) &&\n"
            "                   sizeof(((us_msg_%s *)0)->%s) == sizeof(((%s *)0)->%s) &&\n"
            "                   sizeof(((us_msg_%s *)0)->%s%s) == sizeof(((%s *)0)->%s%s),\n               "
            "\"layout\");\n",
            ours, f->name, theirs, f->name, ours, f->name, theirs, f->name, ours, f->name, part, theirs,
            f->name, part);
    }
}

static void add_fields(text *out, int t) {
    const char *shapes[] = {"ONE", "ARRAY", "SEQUENCE"};
    add(out, "static const usi_message_field fields_of_%s[] = {\n", types[t].snake);
    for (int i = 0; i < types[t].n_field; i++) {
        const field *f = &types[t].fields[i];
        const type *inner = f->kind == MESSAGE ? &types[f->type] : NULL;
        add(out,
            "    {.name = \"%s\", .offset = offsetof(us_msg_%s, %s), .kind = USI_KIND_%s, .shape = "
            "USI_SHAPE_%s, "
            ".count = %d, .bound = %d, .least = %d",
            f->name, types[t].snake, f->name, inner ? "MESSAGE" : kinds[f->kind].code, shapes[f->shape],
            f->count, f->bound, inner ? inner->min_size : kinds[f->kind].size);
        if (inner) add(out, ", .type = &usi_message_types[%d]", f->type);
        const char *part = f->shape == ARRAY ? "[0]" : f->shape == SEQUENCE ? "._buffer[0]" : "";
        add(out, ", .each = sizeof(((us_msg_%s *)0)->%s%s)", types[t].snake, f->name, part);
        add(out, "},\n");
    }
    add(out, "};\n");
}

// A text as a C literal, a line of it per line.
static void add_literal(text *out, const char *s) {
    add(out, "\n        \"");
    for (; *s; s++) {
        if (*s == '\n')
            add(out, s[1] ? "\\n\"\n        \"" : "\\n");
        else
            add(out, "%c", *s);
    }
    add(out, "\"");
}

static void add_table(text *out) {
    add(out, "// Made from idl/*.idl by tools/idl_types.c.\n#include \"wire/messages.h\"\n\n#include "
             "<stddef.h>\n\n");
    add(out, "// Schemas are longer than the 4095 characters that C promises for a literal; our compilers "
             "have no such limit.\n");
    add(out, "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n");
    for (int i = 0; i < n_type; i++) {
        add_layout(out, i);
        add_fields(out, i);
    }
    add(out, "\nconst us_message_type usi_message_types[] = {\n");
    text schema = {0};
    for (int i = 0; i < n_type; i++) {
        const type *t = &types[i];
        bool is_inside[MAX_TYPE] = {false};
        mark_inner(i, is_inside);
        // The layout of before Iron shares its name on the wire with today's, and is older than hashes.
        int n_package = (int)strlen(t->package) - (is_humble(t) ? 7 : 0);
        char hash[80] = "";
        if (t->is_service)
            make_service_hash(t, hash, sizeof hash);
        else if (!is_humble(t))
            make_hash(i, is_inside, hash, sizeof hash);
        clear(&schema);
        add_schema(&schema, i, is_inside);
        add(out,
            "    {.name = \"%s\",\n     .dds_name = \"%.*s::%s::dds_::%s_\",\n     .hash = \"%s\",\n     "
            ".schema =",
            t->full, n_package, t->package, t->is_service ? "srv" : "msg", t->name, hash);
        add_literal(out, schema.s ? schema.s : "");
        add(out,
            ",\n     .fields = fields_of_%s,\n     .n_field = %d,\n     .size = sizeof(%s),\n     .align = "
            "_Alignof(%s),\n",
            t->snake, t->n_field, t->c_name, t->c_name);
        add(out, "     .least = %d,\n     .is_empty = %s,\n     .descriptor = &%s_desc},\n", t->min_size,
            is_empty(t) ? "true" : "false", t->c_name);
    }
    free(schema.s);
    add(out, "};\nconst int32_t usi_message_n_type = %d;\n", n_type);
}

static void write_file(const char *path, const text *content) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(content->s, 1, content->n, f) != content->n || fclose(f) != 0)
        die("%s: cannot be written", path);
}

int main(int n_arg, char **args) {
    if (n_arg < 5) die("idl_types LIST.h TABLE.c PUBLIC.h FILE.idl...");
    for (int i = 4; i < n_arg; i++)
        read_file(args[i]);
    sort_types();
    text list = {0}, table = {0}, public = {0};
    add_list(&list);
    add_table(&table);
    add_public(&public);
    write_file(args[1], &list);
    write_file(args[2], &table);
    write_file(args[3], &public);
    free(list.s);
    free(table.s);
    free(public.s);
    return 0;
}

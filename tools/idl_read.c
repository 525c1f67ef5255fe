// IDL by recursive descent.
#include "idl_read.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const kind_row kinds[N_KIND] = {
    {"boolean", "bool", "BOOL", "bool", 1, 15},      {"octet", "byte", "BYTE", "uint8_t", 1, 16},
    {"int8", "int8", "INT8", "int8_t", 1, 2},        {"uint8", "uint8", "UINT8", "uint8_t", 1, 3},
    {"int16", "int16", "INT16", "int16_t", 2, 4},    {"uint16", "uint16", "UINT16", "uint16_t", 2, 5},
    {"int32", "int32", "INT32", "int32_t", 4, 6},    {"uint32", "uint32", "UINT32", "uint32_t", 4, 7},
    {"int64", "int64", "INT64", "int64_t", 8, 8},    {"uint64", "uint64", "UINT64", "uint64_t", 8, 9},
    {"float", "float32", "FLOAT32", "float", 4, 10}, {"double", "float64", "FLOAT64", "double", 8, 11},
    {"string", "string", "STRING", "char *", 4, 17}};

type types[MAX_TYPE];
int n_type;
char files[MAX_FILE][512];
int n_file;
const char *tool_name = "idl_read";

// ---- texts that grow
// ----------------------------------------------------------------

_Noreturn void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", tool_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void add(text *t, const char *format, ...) {
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

void clear(text *t) {
    t->n = 0;
    if (t->s) t->s[0] = 0;
}

void copy_name(char *to, size_t cap, const char *from) {
    if (snprintf(to, cap, "%s", from) >= (int)cap) die("name too long: %s", from);
}

void write_file(const char *path, const text *content) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(content->s, 1, content->n, f) != content->n || fclose(f) != 0)
        die("%s: cannot be written", path);
}

// ---- reading
// ----------------------------------------------------------------

typedef struct lexer {
    const char *file, *at;
    int line;
    char token[MAX_NAME];  // "" at the end; '"' in front of a text
    text before, behind;   // comments: on the lines before the token, and behind the last one on its line
} lexer;

_Noreturn static void fail(const lexer *l, const char *what) {
    die("%s:%d: %s, not \"%s\"", l->file, l->line, what, l->token);
}

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
    if (access(path, R_OK) != 0) die("%s:%d: %s cannot be read", l->file, l->line, path);
    read_file(path);
}

// The comment of a line, without its slashes and the blanks around it.
static void read_comment(lexer *l, int last_line) {
    size_t n = strcspn(l->at, "\n");
    const char *from = l->at + 2, *to = l->at + n;
    l->at += n;
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    text *t = l->line == last_line ? &l->behind : &l->before;
    add(t, "%s%.*s", t->n ? "\n" : "", (int)(to - from), from);
}

// Blanks, comments and directives up to the next token. A comment belongs to what follows in the next line.
static void skip(lexer *l) {
    const int last_line = l->token[0] ? l->line : 0;
    clear(&l->before);
    clear(&l->behind);
    for (;;) {
        int n_line = 0;
        for (; isspace((unsigned char)*l->at); l->at++)
            n_line += *l->at == '\n';
        l->line += n_line;
        if (n_line > 1) clear(&l->before);
        if (l->at[0] == '/' && l->at[1] == '/') {
            read_comment(l, last_line);
        } else if (*l->at == '#') {
            clear(&l->before);
            read_directive(l);
        } else {
            return;
        }
    }
}

static void next(lexer *l) {
    skip(l);
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

// A comment's text to keep; NULL when there is none.
static const char *keep(const text *t) {
    if (t->n == 0) return NULL;
    char *copy = malloc(t->n + 1);
    if (!copy) die("out of memory");
    memcpy(copy, t->s, t->n + 1);
    return copy;
}

static void read_field(lexer *l, type *t) {
    if (t->n_field == MAX_FIELD) fail(l, "too many members");
    field *f = &t->fields[t->n_field];
    f->comment = keep(&l->before);
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
    f->note = keep(&l->behind);
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

bool is_humble(const type *t) { return ends_with(t->package, "_humble"); }

static void read_struct(lexer *l, char modules[3][MAX_NAME], int n_module) {
    const char *comment = keep(&l->before);
    expect(l, "@");
    expect(l, "final");
    expect(l, "struct");
    bool is_service = n_module == 3 && strcmp(modules[1], "srv") == 0;
    bool is_action = n_module == 3 && strcmp(modules[1], "action") == 0;
    if (n_module != 3 || (!is_service && !is_action && strcmp(modules[1], "msg") != 0) ||
        strcmp(modules[2], "dds_") != 0)
        fail(l, "a struct stands in module PACKAGE::msg::dds_, PACKAGE::srv::dds_ or PACKAGE::action::dds_");
    if (n_type == MAX_TYPE) fail(l, "too many types");
    type *t = &types[n_type];
    t->depth = 1;
    t->comment = comment;
    copy_name(t->package, sizeof t->package, modules[0]);
    char name[MAX_NAME], snake[2 * MAX_NAME];
    read_name(l, name, sizeof name);
    size_t n = strlen(name);
    if (name[n - 1] != '_') die("%s:%d: the name of struct %s must end with _", l->file, l->line, name);
    snprintf(t->c_name, sizeof t->c_name, "%s_%s_dds__%s", modules[0], modules[1], name);
    name[n - 1] = 0;
    // Two of the parts of an action are services.
    const bool is_half = ends_with(name, "_Request") || ends_with(name, "_Response");
    t->is_service = is_service || (is_action && is_half);
    copy_name(t->kind, sizeof t->kind, modules[1]);
    if (is_service && !is_half)
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

void read_file(const char *path) {
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
    free(l.before.s);
    free(l.behind.s);
}

// ---- what is said of a type
// ----------------------------------------------------------------

int find_type(const char *full) {
    for (int i = 0; i < n_type; i++) {
        if (strcmp(types[i].full, full) == 0) return i;
    }
    return -1;
}

bool is_empty(const type *t) {
    return t->n_field == 1 && strcmp(t->fields[0].name, "structure_needs_at_least_one_member") == 0;
}

int n_request_id(const type *t) {
    bool has = t->is_service && t->n_field >= 2 && strcmp(t->fields[0].name, "guid") == 0 &&
               strcmp(t->fields[1].name, "seq") == 0;
    return has ? 2 : 0;
}

void add_msg_member(text *out, const field *f) {
    if (f->kind == MESSAGE)
        add(out, "%s/%s", types[f->type].package, types[f->type].name);
    else
        add(out, "%s", kinds[f->kind].msg);
    if (f->bound) add(out, "<=%d", f->bound);
    if (f->shape == ARRAY) add(out, "[%d]", f->count);
    if (f->shape == SEQUENCE && f->count) add(out, "[<=%d]", f->count);
    if (f->shape == SEQUENCE && !f->count) add(out, "[]");
    add(out, " %s", f->name);
}

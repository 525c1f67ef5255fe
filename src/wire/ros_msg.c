// Messages, services and actions of ROS 2 (.msg, .srv and .action files): their types, named after the file
// and the directory of its package. Lines of dashes stand between request and response of a service, and
// between goal, result and feedback of an action, whose services and feedback topic have types made of these.
//
//     # a comment
//     uint8 MODE_STOP=0          a constant
//     std_msgs/Header header     a member; of another package: beside this one's directory, or built in
//     float64[12] q              T[N], T[<=N], T[]; string<=N
//     int32 count 5              a value by default, which the wire does not know
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_value.h"
#include "wire/interface_types.h"

enum { MAX_PART = 3 };

typedef struct file_kind {
    const char *end, *directory, *what;
    int32_t n_part;
    const char *parts[MAX_PART];
} file_kind;

static const file_kind kinds[] = {
    {".msg", "msg", "a message", 1, {""}},
    {".srv", "srv", "a service", 2, {"_Request", "_Response"}},
    {".action", "action", "an action", 3, {"_Goal", "_Result", "_Feedback"}},
};
enum { N_KIND = sizeof kinds / sizeof kinds[0] };

typedef struct msg {
    usi_interface_reading *r;
    const char *path;
    int32_t line, depth;
    const struct file_kind *kind;
    const char *part;  // behind the name: "_Request"
    char package[100], name[100];
    usi_message_field *field;
    int32_t n_field;
} msg;

enum { MAX_WORD = 256 };

static const char blanks[] = " \t\r";

#define fail(m, status, remedy, ...) \
    usi_reading_fail((m)->r, status, (m)->path, (m)->line, remedy, __VA_ARGS__)

// NULL: it is no file of ROS 2.
static const file_kind *kind_of(const char *path) {
    for (int i = 0; i < N_KIND; i++) {
        const size_t n = strlen(path), end = strlen(kinds[i].end);
        if (n > end && strcmp(path + n - end, kinds[i].end) == 0) return &kinds[i];
    }
    return NULL;
}

static bool is_name(const char *text, size_t n) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    return n > 0 && n < 100 && (text[0] < '0' || text[0] > '9') && strspn(text, letters) >= n;
}

static bool read_in(usi_interface_reading *r, const char *path, const char *from, int32_t line,
                    int32_t depth);

// ---- types ----

static bool built_in(const char *word, usi_message_field *out) {
#define ROW(kind, size, name) name,
    static const char *const names[] = {USI_KIND_LIST(ROW)};
#undef ROW
    for (int i = 0; i < (int)USI_KIND_MESSAGE; i++) {
        if (strcmp(word, names[i]) != 0) continue;
        *out = (usi_message_field){.kind = (uint8_t)i};
        return true;
    }
    *out = (usi_message_field){.kind = USI_KIND_UINT8};
    return strcmp(word, "char") == 0;
}

// Whether a file of the type stands at one of the places where packages are laid out.
static bool find_file(const msg *m, const char *package, const char *name, char *out, size_t cap) {
    static const char *const before[] = {"", "../", "../", "../../"}, *const behind[] = {"", "/", "/msg/",
                                                                                         "/msg/"};
    const bool is_own = strcmp(package, m->package) == 0;
    char relative[400];
    for (int i = is_own ? 0 : 1; i < 4; i++) {
        snprintf(relative, sizeof relative, "%s%s%s%s.msg", before[i], i ? package : "", behind[i], name);
        if (usi_path_join(m->path, relative, out, cap) && m->r->source.exists(m->r->source.context, out))
            return true;
    }
    return false;
}

static bool read_nested(msg *m, const char *word, usi_message_field *out) {
    char package[100], name[100], full[256], path[1024];
    const char *slash = strchr(word, '/'), *last = strrchr(word, '/');
    const char *own = slash ? last + 1 : word;
    const size_t n = slash ? (size_t)(slash - word) : 0;
    if (!is_name(own, strlen(own)) || (slash && !is_name(word, n)) ||
        (slash && slash != last && strncmp(slash, "/msg/", 5) != 0))
        return fail(m, US_ERR_SYNTAX, "write a type like float64, Point or geometry_msgs/Point",
                    "\"%.60s\" is no type", word);
    snprintf(name, sizeof name, "%s", own);
    snprintf(package, sizeof package, "%.*s", (int)n, word);
    if (!slash)
        snprintf(package, sizeof package, "%s", strcmp(name, "Header") == 0 ? "std_msgs" : m->package);
    snprintf(full, sizeof full, "%s::msg::dds_::%s_", package, name);
    const usi_symbol *symbol = usi_symbol_find(m->r->to, full);
    if (!symbol && find_file(m, package, name, path, sizeof path)) {
        if (!read_in(m->r, path, m->path, m->line, m->depth + 1)) return false;
        symbol = usi_symbol_find(m->r->to, full);
    }
    if (symbol && symbol->kind == USI_SYMBOL_FORWARD)
        return fail(m, US_ERR_TREE, "take the member out of one of them", "\"%.60s\" contains itself", word);
    if (symbol && symbol->kind == USI_SYMBOL_TYPE) {
        *out = symbol->type;
        return true;
    }
    const us_message_type *known = us_message_find(full);
    if (!known)
        return fail(m, US_ERR_NAME, "put its .msg file beside this one, or its package beside this one's",
                    "there is no type \"%.60s\"", word);
    *out = (usi_message_field){.kind = USI_KIND_MESSAGE, .type = known};
    return true;
}

static bool read_count(msg *m, const char *what, const char *text, size_t n, uint64_t *out) {
    char digits[24];
    if (n == 0 || n > 10 || strspn(text, "0123456789") < n)
        return fail(m, US_ERR_VALUE, "write a whole number above 0", "\"%.*s\" is no length of %s",
                    (int)(n < 40 ? n : 40), text, what);
    snprintf(digits, sizeof digits, "%.*s", (int)n, text);
    *out = strtoull(digits, NULL, 10);
    return (*out > 0 && *out <= UINT32_MAX) ||
           fail(m, US_ERR_VALUE, "write a whole number from 1 to 4294967295", "%s is no length of %s", digits,
                what);
}

// "float64[12]", "string<=32[]", "Point[<=4]".
static bool read_type(msg *m, const char *word, usi_message_field *out) {
    char base[MAX_WORD];
    usi_message_field one;
    const char *bracket = strchr(word, '[');
    const size_t n = bracket ? (size_t)(bracket - word) : strlen(word);
    uint64_t count = 0;
    snprintf(base, sizeof base, "%.*s", (int)n, word);
    if (strncmp(base, "wstring", 7) == 0)
        return fail(m, US_ERR_SYNTAX, "use string", "wstring is not read: vendors encode it differently");
    if (strncmp(base, "string<=", 8) == 0) {
        one = (usi_message_field){.kind = USI_KIND_STRING};
        if (!read_count(m, "a string", base + 8, strlen(base + 8), &count)) return false;
        one.bound = (uint32_t)count;
    } else if (!built_in(base, &one) && !read_nested(m, base, &one)) {
        return false;
    }
    *out = one;
    if (!bracket) return true;
    const char *end = strchr(bracket, ']');
    if (!end || end[1])
        return fail(m, US_ERR_SYNTAX, "write T[], T[N] or T[<=N]", "\"%.60s\" is no array", word);
    const bool is_bound = strncmp(bracket + 1, "<=", 2) == 0, is_open = end == bracket + 1;
    const char *number = bracket + 1 + (is_bound ? 2 : 0);
    count = 0;
    if (!is_open && !read_count(m, "an array", number, (size_t)(end - number), &count)) return false;
    return usi_type_repeat(m->r, m->path, m->line, &one,
                           is_open || is_bound ? USI_SHAPE_SEQUENCE : USI_SHAPE_ARRAY, count, out);
}

// ---- lines ----

// "MODE_STOP=0", "NAME = 'text'": behind the type. The value goes to the end of the line.
static bool read_constant(msg *m, const usi_message_field *type, const char *name, size_t n,
                          const char *value) {
    char full[USI_INTERFACE_NAME];
    const char *rest = NULL;
    double number = 0;
    const bool is_text = type->kind == USI_KIND_STRING;
    if (type->shape != USI_SHAPE_ONE || type->kind == USI_KIND_MESSAGE)
        return fail(m, US_ERR_VALUE, "write a number or a string", "the constant \"%.*s\" is neither", (int)n,
                    name);
    if (snprintf(full, sizeof full, "%s::%s::%s%s::%.*s", m->package, m->kind->directory, m->name, m->part,
                 (int)n, name) >= (int)sizeof full)
        return fail(m, US_ERR_LIMIT, "write a shorter one", "a name is too long");
    const bool is_true = strcmp(value, "true") == 0 || strcmp(value, "True") == 0;
    const bool is_false = strcmp(value, "false") == 0 || strcmp(value, "False") == 0;
    const bool is_hex = value[0] == '0' && value[1] == 'x' &&
                        strspn(value + 2, "0123456789abcdefABCDEF") == strlen(value + 2);
    if (is_true || is_false) {
        number = is_true;
    } else if (is_hex && strlen(value) > 2) {
        number = (double)strtoull(value, NULL, 16);
    } else if (!is_text && (usi_number_scan(value, &rest, &number) || *rest)) {
        return fail(m, US_ERR_VALUE, "write a number behind the =", "\"%.60s\" is no number", value);
    }
    usi_symbol *symbol =
        usi_symbol_add(m->r, m->path, m->line, full, is_text ? USI_SYMBOL_TEXT : USI_SYMBOL_NUMBER);
    if (!symbol) return false;
    symbol->number = number;
    symbol->whole = number >= -9e18 && number <= 9e18 ? (int64_t)number : 0;
    symbol->is_whole = type->kind < USI_KIND_FLOAT32;
    const char *text = is_text ? usi_reading_text(m->r, value, strlen(value)) : NULL;
    symbol->text = text;
    return !is_text || text;
}

static bool add_member(msg *m, const usi_message_field *type, const char *name, size_t n) {
    for (int32_t i = 0; i < m->n_field; i++) {
        if (strlen(m->field[i].name) == n && memcmp(m->field[i].name, name, n) == 0)
            return fail(m, US_ERR_NAME, "give each member its own name", "the member \"%.*s\" is there twice",
                        (int)n, name);
    }
    if (m->n_field == USI_INTERFACE_FIELDS)
        return fail(m, US_ERR_LIMIT, "put some of them into a message of their own", "more than %d members",
                    USI_INTERFACE_FIELDS);
    m->field[m->n_field] = *type;
    m->field[m->n_field].name = usi_reading_text(m->r, name, n);
    return m->field[m->n_field++].name != NULL;
}

static bool read_line(msg *m, char *line) {
    char word[MAX_WORD];
    usi_message_field type = {0};
    char *at = line + strspn(line, blanks);
    size_t n = strcspn(at, blanks);
    if (n == 0 || *at == '#') return true;
    if (n >= sizeof word)
        return fail(m, US_ERR_LIMIT, "write a shorter one", "a word has more than %d characters",
                    MAX_WORD - 1);
    snprintf(word, sizeof word, "%.*s", (int)n, at);
    if (!read_type(m, word, &type)) return false;
    at += n;
    at += strspn(at, blanks);
    n = strcspn(at, " \t\r=#");
    if (!is_name(at, n))
        return fail(m, US_ERR_SYNTAX, "write TYPE NAME, or TYPE NAME=VALUE",
                    "the name behind \"%.60s\" is missing or no name", word);
    char *value = at + n;
    value += strspn(value, blanks);
    if (*value != '=' || strncmp(value, "==", 2) == 0) return add_member(m, &type, at, n);
    value += 1 + strspn(value + 1, blanks);
    if (type.kind != USI_KIND_STRING) value[strcspn(value, "#")] = 0;
    for (size_t end = strlen(value); end > 0 && strchr(blanks, value[end - 1]); end--)
        value[end - 1] = 0;
    return read_constant(m, &type, at, n, value);
}

// The lines from *at on, up to one of dashes; *out_has_dashes: that one came.
static bool read_lines(msg *m, const char *text, size_t length, size_t *at, bool *out_has_dashes) {
    char line[USI_INTERFACE_TEXT];
    *out_has_dashes = false;
    for (; *at < length && !*out_has_dashes; m->line++) {
        const char *end = memchr(text + *at, '\n', length - *at);
        const size_t n = end ? (size_t)(end - text) - *at : length - *at;
        const bool is_comment = text[*at] == '#';
        if (!is_comment && n >= sizeof line)
            return fail(m, US_ERR_LIMIT, "break it, or shorten the comment",
                        "a line has more than %d characters", USI_INTERFACE_TEXT - 1);
        snprintf(line, sizeof line, "%.*s", (int)(is_comment ? 0 : n), text + *at);
        *out_has_dashes = strncmp(line, "---", 3) == 0;
        if (*out_has_dashes && m->kind->n_part == 1)
            return fail(m, US_ERR_SYNTAX, "call a service .srv and an action .action",
                        "a line of dashes stands between the parts of a service, not in a message");
        if (!*out_has_dashes && !read_line(m, line)) return false;
        *at += n + 1;
    }
    return true;
}

// ---- a file ----

// "geometry_msgs/msg/Point.msg" and "geometry_msgs/Point.msg" are both of the package geometry_msgs; a file
// without a directory is of the package "interface".
static bool name_after_path(msg *m) {
    const char *slash = strrchr(m->path, '/'), *file = slash ? slash + 1 : m->path;
    const size_t n = strlen(file) - strlen(m->kind->end);
    const char *end = slash;
    if (!is_name(file, n))
        return fail(m, US_ERR_NAME, "name it like JointState.msg", "the file's name is no name of a type");
    snprintf(m->name, sizeof m->name, "%.*s", (int)n, file);
    for (int i = 0; i < 2 && end; i++) {
        const char *start = end;
        while (start > m->path && start[-1] != '/')
            start--;
        const size_t n_directory = strlen(m->kind->directory);
        if ((size_t)(end - start) != n_directory || memcmp(start, m->kind->directory, n_directory) != 0) {
            if (is_name(start, (size_t)(end - start)))
                snprintf(m->package, sizeof m->package, "%.*s", (int)(end - start), start);
            break;
        }
        end = start > m->path ? start - 1 : NULL;
    }
    if (!m->package[0]) snprintf(m->package, sizeof m->package, "interface");
    return true;
}

static void name_type(const msg *m, const char *part, char out[USI_INTERFACE_NAME + 16]) {
    snprintf(out, USI_INTERFACE_NAME + 16, "%s::%s::dds_::%s%s_", m->package, m->kind->directory, m->name,
             part);
}

// A type whose name was said; *out is a member of it.
static bool define(msg *m, const char *part, const usi_message_field *fields, int32_t n,
                   usi_message_field *out) {
    static const usi_message_field empty = {.name = "structure_needs_at_least_one_member",
                                            .kind = USI_KIND_UINT8};
    char full[USI_INTERFACE_NAME + 16];
    name_type(m, part, full);
    us_message_type *type = usi_type_add(m->r, m->path, 0, full, n == 0 ? &empty : fields, n == 0 ? 1 : n);
    if (!type) return false;
    type->is_empty = n == 0;
    *out = (usi_message_field){.kind = USI_KIND_MESSAGE, .type = type};
    usi_symbol *symbol = usi_symbol_find(m->r->to, full);
    if (!symbol) symbol = usi_symbol_add(m->r, m->path, 0, full, USI_SYMBOL_TYPE);
    if (!symbol) return false;
    symbol->kind = USI_SYMBOL_TYPE;
    symbol->is_struct = true;
    symbol->type = *out;
    return true;
}

// The types by which an action is carried, of its parts.
static bool define_action(msg *m, const usi_message_field part[MAX_PART]) {
    usi_message_field id = {.name = "goal_id", .kind = USI_KIND_MESSAGE}, made;
    usi_message_field stamp = {.name = "stamp", .kind = USI_KIND_MESSAGE};
    id.type = us_message_find("unique_identifier_msgs/msg/UUID");
    stamp.type = us_message_find("builtin_interfaces/msg/Time");
    usi_message_field goal = part[0], result = part[1], feedback = part[2];
    goal.name = "goal";
    result.name = "result";
    feedback.name = "feedback";
    const usi_message_field accepted = {.name = "accepted", .kind = USI_KIND_BOOL};
    const usi_message_field status = {.name = "status", .kind = USI_KIND_INT8};
    return define(m, "_SendGoal_Request", (usi_message_field[]){id, goal}, 2, &made) &&
           define(m, "_SendGoal_Response", (usi_message_field[]){accepted, stamp}, 2, &made) &&
           define(m, "_GetResult_Request", &id, 1, &made) &&
           define(m, "_GetResult_Response", (usi_message_field[]){status, result}, 2, &made) &&
           define(m, "_FeedbackMessage", (usi_message_field[]){id, feedback}, 2, &made);
}

static bool read_types_of_file(msg *m, const char *text, size_t length) {
    const file_kind *k = m->kind;
    usi_message_field part[MAX_PART];
    size_t at = 0;
    m->line = 1;
    for (int32_t i = 0; i < k->n_part; i++) {
        char full[USI_INTERFACE_NAME + 16];
        bool has_dashes = false;
        m->part = k->parts[i];
        m->n_field = 0;
        name_type(m, m->part, full);
        if (!usi_symbol_add(m->r, m->path, 0, full, USI_SYMBOL_FORWARD) ||
            !read_lines(m, text, length, &at, &has_dashes))
            return false;
        if (has_dashes != (i + 1 < k->n_part))
            return fail(m, US_ERR_SYNTAX,
                        "write --- between request and response, or goal, result and feedback",
                        "%s has %d parts, with a line of dashes between", k->what, (int)k->n_part);
        if (!define(m, m->part, m->field, m->n_field, &part[i])) return false;
    }
    return k->n_part < MAX_PART || define_action(m, part);
}

static bool read_in(usi_interface_reading *r, const char *path, const char *from, int32_t line,
                    int32_t depth) {
    msg m = {.r = r, .depth = depth, .kind = kind_of(path), .part = ""};
    const char *text = NULL;
    size_t length = 0;
    bool is_new = false;
    const us_place place = {.file = from, .line = line};
    if (depth > USI_MESSAGE_DEPTH)
        return usi_reading_fail(r, US_ERR_LIMIT, from, line, "make it flatter",
                                "messages inside each other deeper than %d", USI_MESSAGE_DEPTH);
    if (!usi_reading_enter(r, from, line, path, &m.path, &is_new) || !is_new) return r->status == US_OK;
    if (!name_after_path(&m) || !usi_reading_open(r, from ? &place : NULL, m.path, &text, &length))
        return false;
    const size_t bytes = USI_INTERFACE_FIELDS * sizeof *m.field;
    m.field = usi_alloc(&r->to->allocator, bytes, _Alignof(usi_message_field));
    if (!m.field) return fail(&m, US_ERR_MEMORY, "free memory", "no memory left for the interface");
    const bool is_good = read_types_of_file(&m, text, length);
    usi_release(&r->to->allocator, m.field, bytes, _Alignof(usi_message_field));
    return is_good;
}

bool usi_is_ros_file(const char *path) { return kind_of(path) != NULL; }
bool usi_ros_msg_read(usi_interface_reading *r, const char *path) { return read_in(r, path, NULL, 0, 0); }

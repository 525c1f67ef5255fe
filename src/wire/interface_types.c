// A set of types: names, the files they come from, and the tables that are made of them.
#include "wire/interface_types.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"

// ---- failures and texts ----

bool usi_reading_fail(usi_interface_reading *r, us_status status, const char *file, int32_t line,
                      const char *remedy, const char *format, ...) {
    if (r->status) return false;
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const us_place place = {.file = file, .line = line};
    r->status = us_error_set(r->err, status, &place, remedy, "%s", message);
    return false;
}

static bool fail_memory(usi_interface_reading *r) {
    return usi_reading_fail(r, US_ERR_MEMORY, NULL, 0, "free memory", "no memory left for the interface");
}

const char *usi_reading_text(usi_interface_reading *r, const char *text, size_t n) {
    char *copy = usi_arena_alloc(&r->to->arena, n + 1, 1);
    if (!copy) {
        fail_memory(r);
        return NULL;
    }
    memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

bool usi_path_join(const char *from, const char *name, char *out, size_t cap) {
    const char *slash = name[0] == '/' ? NULL : strrchr(from, '/');
    const int n = slash ? (int)(slash - from) + 1 : 0;
    return snprintf(out, cap, "%.*s%s", n, from, name) < (int)cap;
}

bool usi_reading_enter(usi_interface_reading *r, const char *file, int32_t line, const char *path,
                       const char **out_path, bool *out_is_new) {
    *out_is_new = false;
    for (int32_t i = 0; i < r->n_path; i++) {
        if (strcmp(r->path[i], path) == 0) return true;
    }
    if (r->n_path == USI_INTERFACE_FILES)
        return usi_reading_fail(r, US_ERR_LIMIT, file, line, "put them into fewer files",
                                "an interface has at most %d files", USI_INTERFACE_FILES);
    *out_path = usi_reading_text(r, path, strlen(path));
    if (!*out_path) return false;
    r->path[r->n_path++] = *out_path;
    *out_is_new = true;
    return true;
}

bool usi_reading_open(usi_interface_reading *r, const us_place *from, const char *path, const char **out_text,
                      size_t *out_length) {
    us_status status = r->source.open(r->source.context, path, from, out_text, out_length, r->err);
    if (status) {
        r->status = status;
        return false;
    }
    const char *text = *out_text;
    int32_t line = 1;
    for (size_t i = 0; i < *out_length; i++) {
        line += text[i] == '\n';
        if (text[i] == 0)
            return usi_reading_fail(r, US_ERR_SYNTAX, path, line, "save it as text",
                                    "there is a 0 byte in it");
    }
    return true;
}

// ---- symbols ----

static uint64_t hash_of(const char *name) { return us_hash_bytes(0, name, strlen(name)); }

usi_symbol *usi_symbol_find(const us_interface *i, const char *name) {
    const uint64_t hash = hash_of(name);
    for (int32_t k = 0; k < i->n_symbol; k++) {
        if (i->symbol[k].hash == hash && strcmp(i->symbol[k].name, name) == 0) return &i->symbol[k];
    }
    return NULL;
}

usi_symbol *usi_symbol_add(usi_interface_reading *r, const char *file, int32_t line, const char *name,
                           usi_symbol_kind kind) {
    us_interface *to = r->to;
    if (usi_symbol_find(to, name)) {
        usi_reading_fail(r, US_ERR_NAME, file, line, "give each its own name, or leave one out",
                         "\"%.100s\" is there already", name);
        return NULL;
    }
    if (to->n_symbol == USI_INTERFACE_SYMBOLS) {
        usi_reading_fail(r, US_ERR_LIMIT, file, line, "leave out what the robot does not need",
                         "more than %d names", USI_INTERFACE_SYMBOLS);
        return NULL;
    }
    void *symbols = to->symbol;
    const char *copy = usi_reading_text(r, name, strlen(name));
    if (!copy) return NULL;
    if (usi_grow(&to->allocator, &symbols, to->n_symbol, &to->cap_symbol, sizeof *to->symbol)) {
        fail_memory(r);
        return NULL;
    }
    to->symbol = symbols;
    usi_symbol *s = &to->symbol[to->n_symbol++];
    *s = (usi_symbol){.name = copy, .hash = hash_of(copy), .kind = kind};
    return s;
}

// ---- types ----

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
int32_t usi_type_depth(const us_message_type *type) {
    int32_t depth = 0;
    for (int32_t i = 0; i < type->n_field; i++) {
        if (type->fields[i].kind != USI_KIND_MESSAGE) continue;
        const int32_t inner = usi_type_depth(type->fields[i].type);
        if (inner > depth) depth = inner;
    }
    return depth + 1;
}

static uint32_t least_of_element(const usi_message_field *f) {
    if (f->kind == USI_KIND_MESSAGE) return f->type->least;
    return f->kind == USI_KIND_STRING ? 4 : usi_kind_size(f->kind);
}

static uint64_t least_of_field(const usi_message_field *f) {
    return f->shape == USI_SHAPE_SEQUENCE ? 4
           : f->shape == USI_SHAPE_ARRAY  ? (uint64_t)f->count * f->least
                                          : f->least;
}

us_message_type *usi_type_add(usi_interface_reading *r, const char *file, int32_t line, const char *name,
                              const usi_message_field *fields, int32_t n) {
    us_interface *to = r->to;
    char ros_name[USI_INTERFACE_NAME + 16];
    void *types = to->type;
    if (to->n_type == USI_INTERFACE_TYPES) {
        usi_reading_fail(r, US_ERR_LIMIT, file, line, "leave out what the robot does not need",
                         "more than %d types", USI_INTERFACE_TYPES);
        return NULL;
    }
    if (!usi_ros_type_name(name, ros_name, sizeof ros_name)) snprintf(ros_name, sizeof ros_name, "%s", name);
    us_message_type *t = usi_arena_alloc(&to->arena, sizeof *t, _Alignof(us_message_type));
    usi_message_field *copy =
        usi_arena_alloc(&to->arena, ((size_t)n + 1) * sizeof *copy, _Alignof(usi_message_field));
    const char *dds_name = usi_reading_text(r, name, strlen(name));
    const char *own_name = usi_reading_text(r, ros_name, strlen(ros_name));
    if (!t || !copy || !dds_name || !own_name ||
        usi_grow(&to->allocator, &types, to->n_type, &to->cap_type, sizeof(void *))) {
        fail_memory(r);
        return NULL;
    }
    to->type = types;
    memset(copy, 0, ((size_t)n + 1) * sizeof *copy);
    uint64_t least = 0;
    *t = (us_message_type){.name = own_name, .dds_name = dds_name, .hash = "", .schema = "", .other = -1};
    for (int32_t i = 0; i < n; i++) {
        copy[i] = fields[i];
        copy[i].least = least_of_element(&fields[i]);
        least += least_of_field(&copy[i]);
        t->has_key = t->has_key || copy[i].is_key;
    }
    t->fields = copy;
    t->n_field = n;
    if (least > USI_INTERFACE_MAX_BYTES) {
        usi_reading_fail(r, US_ERR_LIMIT, file, line, "make its arrays shorter, or sequences",
                         "a sample of \"%.100s\" would have at least %llu bytes", name,
                         (unsigned long long)least);
        return NULL;
    }
    t->least = least > 0 ? (uint32_t)least : 1;
    if (usi_type_depth(t) > USI_MESSAGE_DEPTH) {
        usi_reading_fail(r, US_ERR_LIMIT, file, line, "make it flatter",
                         "\"%.100s\" has types inside each other deeper than %d", name, USI_MESSAGE_DEPTH);
        return NULL;
    }
    to->type[to->n_type++] = t;
    return t;
}

bool usi_type_repeat(usi_interface_reading *r, const char *file, int32_t line, const usi_message_field *of,
                     usi_shape shape, uint64_t n, usi_message_field *out) {
    usi_message_field inner = *of;
    *out = *of;
    out->shape = (uint8_t)shape;
    if (shape == USI_SHAPE_ARRAY && of->shape == USI_SHAPE_ARRAY) n *= of->count;
    if (n > UINT32_MAX)
        return usi_reading_fail(r, US_ERR_LIMIT, file, line, "write a smaller number",
                                "%llu elements are more than 32 bits count", (unsigned long long)n);
    out->count = (uint32_t)n;
    if (of->shape == USI_SHAPE_ONE || (shape == USI_SHAPE_ARRAY && of->shape == USI_SHAPE_ARRAY)) return true;
    inner.name = "items";
    inner.is_key = false;
    us_message_type *type = usi_type_add(r, file, line, "", &inner, 1);
    if (!type) return false;
    type->is_inner = true;
    *out = (usi_message_field){
        .type = type, .kind = USI_KIND_MESSAGE, .shape = (uint8_t)shape, .count = (uint32_t)n};
    return true;
}

// ---- a whole set ----

us_interface *us_interface_keep(us_interface *i) {
    if (i) atomic_fetch_add(&i->n_holder, 1);
    return i;
}

void us_interface_release(us_interface *i) {
    if (!i || atomic_fetch_sub(&i->n_holder, 1) > 1) return;
    const us_allocator allocator = i->allocator;
    usi_release(&allocator, i->symbol, (size_t)i->cap_symbol * sizeof *i->symbol, _Alignof(max_align_t));
    usi_release(&allocator, i->type, (size_t)i->cap_type * sizeof(void *), _Alignof(max_align_t));
    usi_arena_fini(&i->arena);
    usi_release(&allocator, i, sizeof *i, _Alignof(us_interface));
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static bool read_one(usi_interface_reading *r, const char *path) {
    if (ends_with(path, ".idl")) return usi_idl_read(r, path);
    if (usi_is_ros_file(path)) return usi_ros_msg_read(r, path);
    return usi_reading_fail(r, US_ERR_NAME, path, 0, "name a file that ends with .idl, .msg, .srv or .action",
                            "neither an IDL file nor one of ROS 2");
}

// A nested key is a key of its struct alone; whole sequences and unions are none.
// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static const char *bad_key(const us_message_type *type, bool is_all) {
    if (type->is_union) return "a union";
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        if (!is_all && !f->is_key) continue;
        if (f->shape == USI_SHAPE_SEQUENCE) return "a sequence";
        const char *wrong = f->kind == USI_KIND_MESSAGE ? bad_key(f->type, !f->type->has_key) : NULL;
        if (wrong) return wrong;
    }
    return NULL;
}

bool usi_type_check_key(usi_interface_reading *r, const char *file, int32_t line,
                        const us_message_type *type) {
    const char *wrong = type->has_key ? bad_key(type, false) : NULL;
    return !wrong ||
           usi_reading_fail(r, US_ERR_VALUE, file, line, "mark numbers, strings, arrays or structs of them",
                            "\"%.100s\" has %s as its key", type->name, wrong);
}

us_status usi_interface_read(const us_allocator *allocator, const char *const *files, int32_t n,
                             const usi_text_source *source, us_interface **out_interface, us_error *err) {
    *out_interface = NULL;
    us_interface *i = usi_alloc(allocator, sizeof *i, _Alignof(us_interface));
    if (!i) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the interface");
    memset(i, 0, sizeof *i);
    i->allocator = *allocator;
    atomic_init(&i->n_holder, 1);
    usi_arena_init(&i->arena, allocator);
    usi_interface_reading r = {.to = i, .source = *source, .err = err, .files = files, .n_file = n};
    for (int32_t k = 0; k < n && !r.status; k++)
        read_one(&r, files[k]);
    if (!r.status && usi_interface_describe(i)) fail_memory(&r);
    if (r.status) {
        us_interface_release(i);
        return r.status;
    }
    *out_interface = i;
    return US_OK;
}

int32_t us_interface_n_type(const us_interface *i) { return i ? i->n_type : 0; }

const us_message_type *us_interface_get_type(const us_interface *interface_, int32_t i) {
    return interface_ && i >= 0 && i < interface_->n_type ? interface_->type[i] : NULL;
}

const us_message_type *us_interface_find(const us_interface *i, const char *name) {
    for (int32_t k = 0; i && name && k < i->n_type; k++) {
        const us_message_type *t = i->type[k];
        if (!t->is_inner && (strcmp(t->name, name) == 0 || strcmp(t->dds_name, name) == 0)) return t;
    }
    return NULL;
}

// Of the symbols that end with "::name" the only one; NULL: there is none, or there are several.
static const usi_symbol *find_by_end(const us_interface *i, const char *name) {
    const usi_symbol *only = NULL;
    int32_t n = 0;
    for (int32_t k = 0; k < i->n_symbol; k++) {
        const char *full = i->symbol[k].name;
        const size_t length = strlen(full), end = strlen(name);
        if (length <= end + 2 || strcmp(full + length - end, name) != 0 || full[length - end - 1] != ':')
            continue;
        only = &i->symbol[k];
        n++;
    }
    return n == 1 ? only : NULL;
}

double us_interface_get_constant(const us_interface *i, const char *name) {
    if (!i || !name) return NAN;
    const usi_symbol *found = usi_symbol_find(i, name);
    if (!found) found = find_by_end(i, name);
    const bool is_number = found && (found->kind == USI_SYMBOL_NUMBER || found->kind == USI_SYMBOL_LABEL);
    return is_number ? found->number : NAN;
}

// ---- from files ----

typedef struct file_texts {
    usi_arena arena;
} file_texts;

static us_status open_file(void *context, const char *path, const us_place *from, const char **out_text,
                           size_t *out_length, us_error *err) {
    file_texts *f = context;
    const us_place own = {.file = path};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return us_error_set(err, US_ERR_IO, from ? from : &own, "name a file that is there",
                            "\"%.200s\" cannot be read", path);
    if (info.st_size > USI_INTERFACE_BYTES)
        return us_error_set(err, US_ERR_LIMIT, from ? from : &own, "split it",
                            "\"%.200s\" has more than %d bytes", path, (int)USI_INTERFACE_BYTES);
    char *text = usi_arena_alloc(&f->arena, (size_t)info.st_size + 1, 1);
    if (!text) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for a file");
    if (usi_bytes_read(path, text, (size_t)info.st_size, out_length))
        return us_error_set(err, US_ERR_IO, from ? from : &own, "look at its permissions",
                            "\"%.200s\" cannot be read", path);
    *out_text = text;
    return US_OK;
}

static bool file_exists(void *context, const char *path) {
    struct stat info;
    (void)context;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

us_interface_def us_interface_def_default(void) {
    return (us_interface_def){.allocator = us_allocator_default()};
}

us_status us_interface_load(const us_interface_def *def, us_interface **out_interface, us_error *err) {
    if (!def || !out_interface || !def->allocator.alloc || def->n_file <= 0 || !def->files)
        return us_error_set(err, US_ERR_ARG, NULL, "begin with us_interface_def_default() and name files",
                            "an interface needs files and a place for it");
    file_texts texts;
    usi_arena_init(&texts.arena, &def->allocator);
    const usi_text_source source = {open_file, file_exists, &texts};
    us_status status =
        usi_interface_read(&def->allocator, def->files, def->n_file, &source, out_interface, err);
    usi_arena_fini(&texts.arena);
    return status;
}

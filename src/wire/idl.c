// IDL files (OMG IDL 4, the part that robots use): modules, structs and their bases, unions, enumerations,
// typedefs, constants. Valuetypes of RTI's older IDL are structs.
//
// Keys are @key before a member, //@key behind it, or #pragma keylist. Encoding is plain CDR, so members that
// may be absent and mutable types are refused; other annotations mean nothing here.
#include <stdio.h>
#include <string.h>

#include "wire/wire__idl.h"

// ---- names ----

bool usi_idl_full_name(usi_idl *p, const char *name, char out[USI_INTERFACE_NAME]) {
    const int n = snprintf(out, USI_INTERFACE_NAME, "%s%s%s", p->scope, p->scope[0] ? "::" : "", name);
    return n < USI_INTERFACE_NAME ||
           usi_idl_fail(&p->s, US_ERR_LIMIT, "write shorter names", "a full name has at most %d characters",
                        USI_INTERFACE_NAME - 1);
}

bool usi_idl_scoped_name(usi_idl *p, char out[USI_INTERFACE_NAME]) {
    usi_idl_scanner *s = &p->s;
    char part[USI_INTERFACE_NAME];
    size_t n = 0;
    out[0] = 0;
    if (usi_idl_is(s, "::")) n = (size_t)snprintf(out, USI_INTERFACE_NAME, "::");
    if (n > 0 && !usi_idl_next(s)) return false;
    for (;;) {
        if (!usi_idl_take_name(s, "a type or constant", part)) return false;
        if (n + strlen(part) + 3 > USI_INTERFACE_NAME)
            return usi_idl_fail(s, US_ERR_LIMIT, "write a shorter one", "a name is too long");
        n += (size_t)snprintf(out + n, USI_INTERFACE_NAME - n, "%s", part);
        if (!usi_idl_is(s, "::")) return true;
        n += (size_t)snprintf(out + n, USI_INTERFACE_NAME - n, "::");
        if (!usi_idl_next(s)) return false;
    }
}

// From the innermost open module outwards.
usi_symbol *usi_idl_look_up(usi_idl *p, const char *name) {
    const us_interface *to = p->s.r->to;
    char full[2 * USI_INTERFACE_NAME];
    if (strncmp(name, "::", 2) == 0) return usi_symbol_find(to, name + 2);
    size_t n = strlen(p->scope);
    for (;;) {
        snprintf(full, sizeof full, "%.*s%s%s", (int)n, p->scope, n ? "::" : "", name);
        usi_symbol *symbol = usi_symbol_find(to, full);
        if (symbol || n == 0) return symbol;
        while (n > 0 && p->scope[n - 1] != ':')
            n--;
        n = n > 2 ? n - 2 : 0;
    }
}

// A new name in the open modules; a forward declaration gives way.
static usi_symbol *add_symbol(usi_idl *p, int32_t line, const char *name, usi_symbol_kind kind) {
    char full[USI_INTERFACE_NAME];
    if (!usi_idl_full_name(p, name, full)) return NULL;
    usi_symbol *symbol = usi_symbol_find(p->s.r->to, full);
    if (symbol && symbol->kind == USI_SYMBOL_FORWARD) {
        symbol->kind = kind;
        return symbol;
    }
    return usi_symbol_add(p->s.r, p->s.path, line, full, kind);
}

// ---- annotations ----

typedef struct notes {
    bool is_key, has_value;
    int64_t value;
} notes;

static bool skip_brackets(usi_idl *p) {
    int32_t depth = 0;
    do {
        depth += usi_idl_is(&p->s, "(") ? 1 : usi_idl_is(&p->s, ")") ? -1 : 0;
        if (p->s.token == USI_IDL_END)
            return usi_idl_fail(&p->s, US_ERR_SYNTAX, "write \")\"", "an annotation has no end");
        if (!usi_idl_next(&p->s)) return false;
    } while (depth > 0);
    return true;
}

static bool read_notes(usi_idl *p, notes *out) {
    usi_idl_scanner *s = &p->s;
    *out = (notes){0};
    while (usi_idl_is(s, "@")) {
        char name[USI_INTERFACE_NAME];
        if (!usi_idl_next(s) || !usi_idl_scoped_name(p, name)) return false;
        if (strcmp(name, "optional") == 0 || strcmp(name, "mutable") == 0 || strcmp(name, "bit_bound") == 0)
            return usi_idl_fail(s, US_ERR_SYNTAX, "leave it out: samples are plain CDR, of final types",
                                "@%s asks for another encoding", name);
        out->is_key = out->is_key || strcmp(name, "key") == 0;
        if (strcmp(name, "value") == 0) {
            out->has_value = true;
            if (!usi_idl_expect(s, "(") || !usi_idl_count(p, "@value", INT32_MIN, UINT32_MAX, &out->value) ||
                !usi_idl_expect(s, ")"))
                return false;
        } else if (usi_idl_is(s, "(") && !skip_brackets(p)) {
            return false;
        }
    }
    return true;
}

// ---- structs ----

typedef struct members {
    usi_message_field field[USI_INTERFACE_FIELDS];
    int32_t n;
} members;

static bool add_member(usi_idl *p, members *m, const char *name, const usi_message_field *f, bool is_key) {
    for (int32_t i = 0; i < m->n; i++) {
        if (strcmp(m->field[i].name, name) == 0)
            return usi_idl_fail(&p->s, US_ERR_NAME, "give each member its own name",
                                "the member \"%.100s\" is there twice", name);
    }
    if (m->n == USI_INTERFACE_FIELDS)
        return usi_idl_fail(&p->s, US_ERR_LIMIT, "put some of them into a struct of their own",
                            "more than %d members", USI_INTERFACE_FIELDS);
    usi_message_field *to = &m->field[m->n];
    *to = *f;
    to->is_key = is_key;
    to->name = usi_reading_text(p->s.r, name, strlen(name));
    m->n += to->name != NULL;
    return to->name != NULL;
}

// "@key double x, y[3]; //@key"
static bool read_member(usi_idl *p, members *m) {
    usi_idl_scanner *s = &p->s;
    notes n;
    usi_message_field type, f;
    char name[USI_INTERFACE_NAME];
    if (!read_notes(p, &n)) return false;
    if ((usi_idl_is(s, "public") || usi_idl_is(s, "private")) && !usi_idl_next(s)) return false;
    if (!usi_idl_type(p, &type)) return false;
    const int32_t first = m->n;
    for (bool is_more = true; is_more;) {
        if (!usi_idl_declarator(p, "a member", &type, name, &f) || !add_member(p, m, name, &f, n.is_key))
            return false;
        is_more = usi_idl_is(s, ",");
        if (is_more && !usi_idl_next(s)) return false;
    }
    const int32_t line = s->line;
    const char *path = s->path;
    if (!usi_idl_expect(s, ";")) return false;
    if (s->key_path == path && s->key_line == line) {
        for (int32_t i = first; i < m->n; i++)
            m->field[i].is_key = true;
    }
    return true;
}

static bool inherit(usi_idl *p, members *m) {
    char name[USI_INTERFACE_NAME];
    if (!usi_idl_next(&p->s)) return false;
    if (usi_idl_is(&p->s, "truncatable") && !usi_idl_next(&p->s)) return false;
    if (!usi_idl_scoped_name(p, name)) return false;
    const usi_symbol *base = usi_idl_look_up(p, name);
    if (!base || base->kind != USI_SYMBOL_TYPE || !base->is_struct)
        return usi_idl_fail(&p->s, US_ERR_NAME, "define the base before, or include the file that does",
                            "there is no struct \"%.100s\" to inherit", name);
    const us_message_type *type = base->type.type;
    memcpy(m->field, type->fields, (size_t)type->n_field * sizeof *m->field);
    m->n = type->n_field;
    return true;
}

static bool read_struct(usi_idl *p) {
    usi_idl_scanner *s = &p->s;
    char name[USI_INTERFACE_NAME], full[USI_INTERFACE_NAME];
    const int32_t line = s->line;
    const char *path = s->path;
    if (!usi_idl_next(s) || !usi_idl_take_name(s, "a struct", name) || !usi_idl_full_name(p, name, full))
        return false;
    // Until it ends it is only declared: it cannot contain itself.
    usi_symbol *symbol = usi_symbol_find(s->r->to, full);
    if (symbol && symbol->kind != USI_SYMBOL_FORWARD)
        return usi_reading_fail(s->r, US_ERR_NAME, path, line, "give each its own name, or leave one out",
                                "\"%.100s\" is there already", full);
    if (!symbol && !add_symbol(p, line, name, USI_SYMBOL_FORWARD)) return false;
    if (usi_idl_is(s, ";")) return true;
    members *m = usi_alloc(&s->r->to->allocator, sizeof *m, _Alignof(members));
    if (!m) return usi_idl_fail(s, US_ERR_MEMORY, "free memory", "no memory left for the interface");
    m->n = 0;
    bool is_good = (!usi_idl_is(s, ":") || inherit(p, m)) && usi_idl_expect(s, "{");
    while (is_good && !usi_idl_is(s, "}"))
        is_good = read_member(p, m);
    if (is_good && m->n == 0)
        is_good = usi_idl_fail(s, US_ERR_SYNTAX, "give it at least one member",
                               "the struct \"%.100s\" is empty", full);
    us_message_type *type = is_good ? usi_type_add(s->r, path, line, full, m->field, m->n) : NULL;
    usi_release(&s->r->to->allocator, m, sizeof *m, _Alignof(members));
    if (!type || !usi_type_check_key(s->r, path, line, type)) return false;
    symbol = usi_symbol_find(s->r->to, full);
    symbol->kind = USI_SYMBOL_TYPE;
    symbol->is_struct = true;
    symbol->type = (usi_message_field){.kind = USI_KIND_MESSAGE, .type = type};
    return usi_idl_expect(s, "}");
}

// ---- unions ----

static bool add_label(usi_idl *p, usi_union_label *labels, int32_t *n, int64_t value, int32_t field) {
    for (int32_t i = 0; i < *n; i++) {
        if (labels[i].value == value)
            return usi_idl_fail(&p->s, US_ERR_VALUE, "write each value once", "two cases have the value %lld",
                                (long long)value);
    }
    if (*n == USI_INTERFACE_FIELDS)
        return usi_idl_fail(&p->s, US_ERR_LIMIT, "write fewer", "more than %d cases", USI_INTERFACE_FIELDS);
    labels[(*n)++] = (usi_union_label){value, field};
    return true;
}

// "case A: case B: double x;" or "default: long y;"
static bool read_case(usi_idl *p, members *m, usi_union_label *labels, int32_t *n_label, int32_t *other) {
    usi_idl_scanner *s = &p->s;
    bool is_any = false;
    while (usi_idl_is(s, "case") || usi_idl_is(s, "default")) {
        const bool is_default = usi_idl_is(s, "default");
        int64_t value = 0;
        if (!usi_idl_next(s)) return false;
        if (is_default && *other >= 0)
            return usi_idl_fail(s, US_ERR_VALUE, "leave one out", "the union has two default cases");
        if (is_default) *other = m->n;
        if (!is_default && (!usi_idl_count(p, "a case", INT32_MIN, UINT32_MAX, &value) ||
                            !add_label(p, labels, n_label, value, m->n)))
            return false;
        if (!usi_idl_expect(s, ":")) return false;
        is_any = true;
    }
    if (!is_any)
        return usi_idl_fail(s, US_ERR_SYNTAX, "write case VALUE: before each member",
                            "a union's member has no case");
    const int32_t n = m->n;
    if (!read_member(p, m)) return false;
    return m->n == n + 1 ||
           usi_idl_fail(s, US_ERR_SYNTAX, "write one member for each case", "a case has two members");
}

static bool read_discriminant(usi_idl *p, members *m) {
    usi_idl_scanner *s = &p->s;
    usi_message_field type;
    if (!usi_idl_expect(s, "switch") || !usi_idl_expect(s, "(") || !usi_idl_type(p, &type)) return false;
    if (type.shape != USI_SHAPE_ONE || type.kind >= USI_KIND_FLOAT32)
        return usi_idl_fail(s, US_ERR_VALUE, "write switch (long), or an enum",
                            "a union is chosen by a whole number or an enum");
    return add_member(p, m, "_d", &type, false) && usi_idl_expect(s, ")") && usi_idl_expect(s, "{");
}

typedef struct union_parts {
    members m;
    usi_union_label label[USI_INTERFACE_FIELDS];
    int32_t n_label, other;
} union_parts;

static bool finish_union(usi_idl *p, const char *path, int32_t line, const char *name, union_parts *u) {
    usi_idl_scanner *s = &p->s;
    char full[USI_INTERFACE_NAME];
    if (u->m.n < 2)
        return usi_idl_fail(s, US_ERR_SYNTAX, "write at least one case", "the union \"%.100s\" is empty",
                            name);
    if (!usi_idl_full_name(p, name, full)) return false;
    us_message_type *type = usi_type_add(s->r, path, line, full, u->m.field, u->m.n);
    usi_union_label *labels = usi_arena_alloc(&s->r->to->arena, ((size_t)u->n_label + 1) * sizeof *labels,
                                              _Alignof(usi_union_label));
    usi_symbol *symbol = type && labels ? add_symbol(p, line, name, USI_SYMBOL_TYPE) : NULL;
    if (!symbol) return usi_idl_fail(s, US_ERR_MEMORY, "free memory", "no memory left for the interface");
    memcpy(labels, u->label, (size_t)u->n_label * sizeof *labels);
    type->is_union = true;
    type->labels = labels;
    type->n_label = u->n_label;
    type->other = u->other;
    type->least = type->fields[0].least;  // a value that no case has stands alone
    symbol->type = (usi_message_field){.kind = USI_KIND_MESSAGE, .type = type};
    return usi_idl_expect(s, "}");
}

static bool read_union(usi_idl *p) {
    usi_idl_scanner *s = &p->s;
    char name[USI_INTERFACE_NAME];
    const int32_t line = s->line;
    const char *path = s->path;
    if (!usi_idl_next(s) || !usi_idl_take_name(s, "a union", name)) return false;
    union_parts *u = usi_alloc(&s->r->to->allocator, sizeof *u, _Alignof(union_parts));
    if (!u) return usi_idl_fail(s, US_ERR_MEMORY, "free memory", "no memory left for the interface");
    u->m.n = u->n_label = 0;
    u->other = -1;
    bool is_good = read_discriminant(p, &u->m);
    while (is_good && !usi_idl_is(s, "}"))
        is_good = read_case(p, &u->m, u->label, &u->n_label, &u->other);
    is_good = is_good && finish_union(p, path, line, name, u);
    usi_release(&s->r->to->allocator, u, sizeof *u, _Alignof(union_parts));
    return is_good;
}

// ---- enumerations, typedefs, constants ----

static bool read_enum(usi_idl *p) {
    usi_idl_scanner *s = &p->s;
    char name[USI_INTERFACE_NAME];
    int64_t next = 0;
    const int32_t line = s->line;
    if (!usi_idl_next(s) || !usi_idl_take_name(s, "an enum", name)) return false;
    usi_symbol *symbol = add_symbol(p, line, name, USI_SYMBOL_TYPE);
    if (!symbol) return false;
    symbol->type = (usi_message_field){.kind = USI_KIND_INT32};
    symbol->is_enum = true;
    if (!usi_idl_expect(s, "{")) return false;
    for (;;) {
        notes n;
        const int32_t at = s->line;
        if (!read_notes(p, &n) || !usi_idl_take_name(s, "a label", name)) return false;
        if (n.has_value) next = n.value;
        // As RTI's IDL has it.
        if (usi_idl_is(s, "=") &&
            (!usi_idl_next(s) || !usi_idl_count(p, "a label's value", INT32_MIN, UINT32_MAX, &next)))
            return false;
        usi_symbol *label = add_symbol(p, at, name, USI_SYMBOL_LABEL);
        if (!label) return false;
        label->number = (double)next;
        label->whole = next++;
        label->is_whole = true;
        if (!usi_idl_is(s, ",")) break;
        if (!usi_idl_next(s)) return false;
    }
    return usi_idl_expect(s, "}");
}

static bool read_typedef(usi_idl *p) {
    usi_idl_scanner *s = &p->s;
    usi_message_field type, f;
    char name[USI_INTERFACE_NAME];
    if (!usi_idl_next(s) || !usi_idl_type(p, &type)) return false;
    for (;;) {
        const int32_t line = s->line;
        if (!usi_idl_declarator(p, "a typedef", &type, name, &f)) return false;
        usi_symbol *symbol = add_symbol(p, line, name, USI_SYMBOL_TYPE);
        if (!symbol) return false;
        symbol->type = f;
        symbol->is_struct = f.kind == USI_KIND_MESSAGE && f.shape == USI_SHAPE_ONE && !f.type->is_union;
        if (!usi_idl_is(s, ",")) return true;
        if (!usi_idl_next(s)) return false;
    }
}

static bool read_const(usi_idl *p) {
    usi_idl_scanner *s = &p->s;
    usi_message_field type;
    usi_idl_value value;
    char name[USI_INTERFACE_NAME];
    if (!usi_idl_next(s) || !usi_idl_type(p, &type)) return false;
    const int32_t line = s->line;
    if (type.shape != USI_SHAPE_ONE || type.kind == USI_KIND_MESSAGE)
        return usi_idl_fail(s, US_ERR_VALUE, "write a number or a string",
                            "a constant is a number or a text");
    if (!usi_idl_take_name(s, "a constant", name) || !usi_idl_expect(s, "=") || !usi_idl_constant(p, &value))
        return false;
    const bool is_text = type.kind == USI_KIND_STRING;
    if (type.kind == USI_KIND_UINT8 && value.text && strlen(value.text) == 1)
        value = (usi_idl_value){(double)value.text[0], value.text[0], true, NULL};
    if (is_text != (value.text != NULL) || (!is_text && type.kind < USI_KIND_FLOAT32 && !value.is_whole))
        return usi_idl_fail(s, US_ERR_VALUE, "write a value of its type",
                            "the value of \"%.100s\" is of another type", name);
    usi_symbol *symbol = add_symbol(p, line, name, is_text ? USI_SYMBOL_TEXT : USI_SYMBOL_NUMBER);
    if (!symbol) return false;
    symbol->number = value.number;
    symbol->whole = value.whole;
    symbol->is_whole = value.is_whole;
    symbol->text = value.text;
    return true;
}

// ---- modules and files ----

static bool read_definition(usi_idl *p);

// NOLINTNEXTLINE(misc-no-recursion): at most USI_IDL_DEPTH deep
static bool read_module(usi_idl *p) {
    usi_idl_scanner *s = &p->s;
    char name[USI_INTERFACE_NAME], full[USI_INTERFACE_NAME];
    const size_t outer = strlen(p->scope);
    if (!usi_idl_next(s) || !usi_idl_take_name(s, "a module", name) || !usi_idl_full_name(p, name, full))
        return false;
    const usi_symbol *symbol = usi_symbol_find(s->r->to, full);
    if (symbol && symbol->kind != USI_SYMBOL_MODULE)
        return usi_idl_fail(s, US_ERR_NAME, "give the module another name", "\"%.100s\" is there already",
                            full);
    if (!symbol && !add_symbol(p, s->line, name, USI_SYMBOL_MODULE)) return false;
    if (++p->depth > USI_IDL_DEPTH)
        return usi_idl_fail(s, US_ERR_LIMIT, "nest fewer", "modules nest deeper than %d", USI_IDL_DEPTH);
    snprintf(p->scope, sizeof p->scope, "%s", full);
    if (!usi_idl_expect(s, "{")) return false;
    while (!usi_idl_is(s, "}")) {
        if (s->token == USI_IDL_END)
            return usi_idl_fail(s, US_ERR_SYNTAX, "write \"};\"", "the module \"%.100s\" has no end", name);
        if (!read_definition(p)) return false;
    }
    p->depth--;
    p->scope[outer] = 0;
    return usi_idl_next(s);
}

// NOLINTNEXTLINE(misc-no-recursion): at most USI_IDL_DEPTH deep
static bool read_definition(usi_idl *p) {
    static const struct {
        const char *word;
        bool (*read)(usi_idl *p);
    } known[] = {{"module", read_module}, {"struct", read_struct}, {"valuetype", read_struct},
                 {"union", read_union},   {"enum", read_enum},     {"typedef", read_typedef},
                 {"const", read_const}};
    usi_idl_scanner *s = &p->s;
    notes n;
    if (usi_idl_is(s, ";")) return usi_idl_next(s);
    if (!read_notes(p, &n)) return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!usi_idl_is(s, known[i].word)) continue;
        if (!known[i].read(p)) return false;
        // Modules may end without.
        return i == 0 || usi_idl_expect(s, ";");
    }
    return usi_idl_fail(
        s, US_ERR_SYNTAX, "module, struct, valuetype, union, enum, typedef and const are read",
        "\"%.60s\" begins nothing that is known here", s->token == USI_IDL_END ? "the end" : s->word);
}

// "#pragma keylist Type member member": as seen from the whole file.
static bool apply_keylist(usi_idl *p, const usi_idl_keylist *k) {
    char words[USI_INTERFACE_TEXT], *save = NULL;
    snprintf(words, sizeof words, "%s", k->text);
    const char *name = strtok_r(words, " \t\r", &save);
    const us_interface *to = p->s.r->to;
    us_message_type *type = NULL;
    for (int32_t i = 0; i < to->n_type && name; i++) {
        const char *own = to->type[i]->dds_name;
        const size_t n = strlen(own), m = strlen(name);
        const bool is_end = n > m + 2 && strcmp(own + n - m, name) == 0 && own[n - m - 1] == ':';
        if (strcmp(own, name) == 0 || is_end) type = to->type[i];
    }
    if (!type || type->is_union)
        return usi_reading_fail(p->s.r, US_ERR_NAME, k->file, k->line,
                                "write #pragma keylist STRUCT MEMBER ...",
                                "#pragma keylist: there is no struct \"%.100s\"", name ? name : "");
    const size_t bytes = (size_t)type->n_field * sizeof *type->fields;
    usi_message_field *fields = usi_arena_alloc(&p->s.r->to->arena, bytes, _Alignof(usi_message_field));
    if (!fields) return usi_idl_fail(&p->s, US_ERR_MEMORY, "free memory", "no memory left for the interface");
    memcpy(fields, type->fields, bytes);
    for (const char *member; (member = strtok_r(NULL, " \t\r", &save));) {
        int32_t i = 0;
        while (i < type->n_field && strcmp(fields[i].name, member) != 0)
            i++;
        if (i == type->n_field)
            return usi_reading_fail(p->s.r, US_ERR_NAME, k->file, k->line,
                                    "name members of the struct; inside nested ones write @key",
                                    "#pragma keylist: \"%.100s\" has no member \"%.60s\"", type->dds_name,
                                    member);
        fields[i].is_key = true;
        type->has_key = true;
    }
    type->fields = fields;
    return usi_type_check_key(p->s.r, k->file, k->line, type);
}

static bool read_file(usi_idl *p, const char *path) {
    if (!usi_idl_open(&p->s, path)) return false;
    while (p->s.token != USI_IDL_END) {
        if (!read_definition(p)) return false;
    }
    for (int32_t i = 0; i < p->s.n_keylist; i++) {
        if (!apply_keylist(p, &p->s.keylist[i])) return false;
    }
    return p->s.r->status == US_OK;
}

bool usi_idl_read(usi_interface_reading *r, const char *path) {
    usi_idl *p = usi_alloc(&r->to->allocator, sizeof *p, _Alignof(usi_idl));
    if (!p)
        return usi_reading_fail(r, US_ERR_MEMORY, NULL, 0, "free memory", "no memory left for the interface");
    memset(p, 0, sizeof *p);
    p->s.r = r;
    const bool is_good = read_file(p, path);
    usi_release(&r->to->allocator, p, sizeof *p, _Alignof(usi_idl));
    return is_good;
}

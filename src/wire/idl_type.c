// Types of IDL as they stand before a member's name, and the arrays behind it.
#include <stdio.h>
#include <string.h>

#include "wire/wire__idl.h"

static const struct {
    const char *name;
    usi_kind kind;
} simple[] = {{"boolean", USI_KIND_BOOL},   {"octet", USI_KIND_BYTE},    {"char", USI_KIND_UINT8},
              {"int8", USI_KIND_INT8},      {"uint8", USI_KIND_UINT8},   {"int16", USI_KIND_INT16},
              {"uint16", USI_KIND_UINT16},  {"int32", USI_KIND_INT32},   {"uint32", USI_KIND_UINT32},
              {"int64", USI_KIND_INT64},    {"uint64", USI_KIND_UINT64}, {"float", USI_KIND_FLOAT32},
              {"double", USI_KIND_FLOAT64}, {"short", USI_KIND_INT16}};

static const char *const strange[] = {"wchar", "wstring", "fixed", "any", "map", "Object", "ValueBase"};

static bool set(usi_idl *p, usi_kind kind, usi_message_field *out) {
    *out = (usi_message_field){.kind = (uint8_t)kind};
    return usi_idl_next(&p->s);
}

// "long", "long long", "unsigned short", "unsigned long", "unsigned long long".
static bool read_long(usi_idl *p, usi_message_field *out) {
    usi_idl_scanner *s = &p->s;
    const bool is_unsigned = usi_idl_is(s, "unsigned");
    if (is_unsigned) {
        if (!usi_idl_next(s)) return false;
        if (usi_idl_is(s, "short")) return set(p, USI_KIND_UINT16, out);
        if (!usi_idl_is(s, "long"))
            return usi_idl_fail(s, US_ERR_SYNTAX, "write unsigned short, unsigned long or unsigned long long",
                                "\"unsigned %.60s\" is no type", s->word);
    }
    if (!usi_idl_next(s)) return false;
    if (usi_idl_is(s, "double"))
        return usi_idl_fail(s, US_ERR_SYNTAX, "write double", "long double differs from machine to machine");
    if (usi_idl_is(s, "long")) return set(p, is_unsigned ? USI_KIND_UINT64 : USI_KIND_INT64, out);
    *out = (usi_message_field){.kind = is_unsigned ? USI_KIND_UINT32 : USI_KIND_INT32};
    return true;
}

// Bounds may be followed by ">>" where two end at once.
static bool close_bound(usi_idl *p) {
    if (usi_idl_is(&p->s, ">>")) {
        p->s.word[1] = 0;
        return true;
    }
    return usi_idl_expect(&p->s, ">");
}

static bool read_string(usi_idl *p, usi_message_field *out) {
    int64_t bound = 0;
    if (!set(p, USI_KIND_STRING, out)) return false;
    if (!usi_idl_is(&p->s, "<")) return true;
    if (!usi_idl_next(&p->s) || !usi_idl_count(p, "the length of a string", 1, 1 << 30, &bound)) return false;
    out->bound = (uint32_t)bound;
    return close_bound(p);
}

// NOLINTNEXTLINE(misc-no-recursion): at most USI_IDL_DEPTH deep
static bool read_sequence(usi_idl *p, usi_message_field *out) {
    usi_idl_scanner *s = &p->s;
    usi_message_field of;
    int64_t bound = 0;
    const int32_t line = s->line;
    if (++p->depth > USI_IDL_DEPTH)
        return usi_idl_fail(s, US_ERR_LIMIT, "nest fewer", "sequences nest deeper than %d", USI_IDL_DEPTH);
    if (!usi_idl_next(s) || !usi_idl_expect(s, "<") || !usi_idl_type(p, &of)) return false;
    if (usi_idl_is(s, ",")) {
        if (!usi_idl_next(s) || !usi_idl_count(p, "the length of a sequence", 1, UINT32_MAX, &bound))
            return false;
    }
    p->depth--;
    return close_bound(p) &&
           usi_type_repeat(s->r, s->path, line, &of, USI_SHAPE_SEQUENCE, (uint64_t)bound, out);
}

static bool read_named(usi_idl *p, usi_message_field *out) {
    usi_idl_scanner *s = &p->s;
    char name[USI_INTERFACE_NAME];
    const int32_t line = s->line;
    const char *path = s->path;
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        if (usi_idl_is(s, strange[i]))
            return usi_idl_fail(s, US_ERR_SYNTAX, "use numbers, string, sequence, struct, union or enum",
                                "the type %s is not read", strange[i]);
    }
    if (!usi_idl_scoped_name(p, name)) return false;
    const usi_symbol *symbol = usi_idl_look_up(p, name);
    if (symbol && symbol->kind == USI_SYMBOL_FORWARD)
        return usi_reading_fail(s->r, US_ERR_TREE, path, line, "define it whole before it is used",
                                "\"%.100s\" is not complete here: a type cannot contain itself", name);
    if (!symbol || symbol->kind != USI_SYMBOL_TYPE)
        return usi_reading_fail(s->r, US_ERR_NAME, path, line,
                                "define it before, or include the file that does",
                                "there is no type \"%.100s\"", name);
    *out = symbol->type;
    return true;
}

bool usi_idl_type(usi_idl *p, usi_message_field *out) {
    usi_idl_scanner *s = &p->s;
    if (usi_idl_is(s, "unsigned") || usi_idl_is(s, "long")) return read_long(p, out);
    if (usi_idl_is(s, "string")) return read_string(p, out);
    if (usi_idl_is(s, "sequence")) return read_sequence(p, out);
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++) {
        if (usi_idl_is(s, simple[i].name)) return set(p, simple[i].kind, out);
    }
    if (s->token != USI_IDL_NAME && !usi_idl_is(s, "::"))
        return usi_idl_fail(s, US_ERR_SYNTAX, "write a type, for example double or sequence<float>",
                            "a type is missing before \"%.60s\"",
                            s->token == USI_IDL_END ? "the end" : s->word);
    return read_named(p, out);
}

bool usi_idl_declarator(usi_idl *p, const char *what, const usi_message_field *type,
                        char name[USI_INTERFACE_NAME], usi_message_field *out) {
    usi_idl_scanner *s = &p->s;
    uint64_t n = 1;
    bool is_array = false;
    *out = *type;
    if (!usi_idl_take_name(s, what, name)) return false;
    for (; usi_idl_is(s, "["); is_array = true) {
        int64_t count = 0;
        if (!usi_idl_next(s) || !usi_idl_count(p, "the length of an array", 1, UINT32_MAX, &count) ||
            !usi_idl_expect(s, "]"))
            return false;
        if (n > UINT32_MAX) break;
        n *= (uint64_t)count;
    }
    return !is_array || usi_type_repeat(s->r, s->path, s->line, type, USI_SHAPE_ARRAY, n, out);
}

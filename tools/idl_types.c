// idl_types LIST.h TABLE.c PUBLIC.h FILE.idl...
//
// Reads our IDL and writes what others need to know of it. So the IDL stays the one source.
//     PUBLIC.h   understudy/messages.h: the messages as plain structs that need no header of a DDS vendor
//     LIST.h     for src/wire: the numbers of the types
//     TABLE.c    every type: members, kinds, offsets, schema text, hash; asserts that the structs that
//                Cyclone's idlc makes of the same files lie in memory as those of PUBLIC.h
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl_read.h"
#include "base/sha256.h"

// Numbers of a type hash (REP 2011) beside those of the kinds.
enum { ID_MESSAGE = 1, ID_BOUNDED_STRING = 21, ID_ARRAY = 48, ID_BOUNDED_SEQUENCE = 96, ID_SEQUENCE = 144 };

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

static void add_msg(text *out, const type *t) {
    for (int i = 0; i < t->n_field && !is_empty(t); i++) {
        add_msg_member(out, &t->fields[i]);
        add(out, "\n");
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
    usi_sha256_hex(json->s, json->n, hex);
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
            t->full, n_package, t->package, t->kind, t->name, hash);
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

int main(int n_arg, char **args) {
    tool_name = "idl_types";
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

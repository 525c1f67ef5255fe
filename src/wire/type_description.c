// What ROS 2 and readers of recordings want to know of a user's type: its hash (RIHS01 of REP 2011) and its
// definition as .msg text.
//
// Only types with names of ROS 2 ("pkg/msg/Name") have a hash: others are never asked for one. The halves of
// a service ("pkg/srv/Name_Request", "_Response"), those of actions too, have that of the whole, where both
// are there. A union has
// neither hash nor definition, nor has what contains one.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "wire/interface_types.h"

// Numbers of a type description beside those of the kinds.
enum { ID_MESSAGE = 1, ID_BOUNDED_STRING = 21, ID_ARRAY = 48, ID_BOUNDED_SEQUENCE = 96, ID_SEQUENCE = 144 };
enum { MAX_INSIDE = 64 };  // types inside one

// Bytes that grow in the arena of the types; an old block stays until they all go.
typedef struct description {
    usi_arena *arena;
    char *at;
    size_t length, cap;
    bool is_full;
    const us_message_type *inside[MAX_INSIDE];  // sorted by name
    int32_t n;
} description;

static void put(description *d, const char *format, ...) US_PRINTF(2, 3);
static void put(description *d, const char *format, ...) {
    char part[600];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof part) d->is_full = true;
    if (d->is_full) return;
    if (d->length + (size_t)n + 1 > d->cap) {
        const size_t cap = 2 * d->cap + (size_t)n + 1024;
        char *more = usi_arena_alloc(d->arena, cap, 1);
        if (!more) {
            d->is_full = true;
            return;
        }
        if (d->length) memcpy(more, d->at, d->length);
        d->at = more;
        d->cap = cap;
    }
    memcpy(d->at + d->length, part, (size_t)n + 1);
    d->length += (size_t)n;
}

// ---- what is inside ----

static int by_name(const void *a, const void *b) {
    const us_message_type *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

// False for what has no description: a union, a sequence of sequences, too much.
// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool gather(description *d, const us_message_type *type) {
    if (type->is_union || type->is_inner) return false;
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        if (f->kind != USI_KIND_MESSAGE) continue;
        bool is_known = false;
        for (int32_t k = 0; k < d->n; k++)
            is_known = is_known || strcmp(d->inside[k]->name, f->type->name) == 0;
        if (is_known) continue;
        if (d->n == MAX_INSIDE) return false;
        d->inside[d->n++] = f->type;
        if (!gather(d, f->type)) return false;
    }
    return true;
}

static bool is_ros_name(const us_message_type *type) {
    char name[USI_INTERFACE_NAME + 16];
    return usi_ros_type_name(type->dds_name, name, sizeof name);
}

// ---- the hash ----

static int id_of(const usi_message_field *f) {
    static const uint8_t ids[] = {
        [USI_KIND_BOOL] = 15,   [USI_KIND_BYTE] = 16,           [USI_KIND_INT8] = 2,
        [USI_KIND_UINT8] = 3,   [USI_KIND_INT16] = 4,           [USI_KIND_UINT16] = 5,
        [USI_KIND_INT32] = 6,   [USI_KIND_UINT32] = 7,          [USI_KIND_INT64] = 8,
        [USI_KIND_UINT64] = 9,  [USI_KIND_FLOAT32] = 10,        [USI_KIND_FLOAT64] = 11,
        [USI_KIND_STRING] = 17, [USI_KIND_MESSAGE] = ID_MESSAGE};
    int id = f->kind == USI_KIND_STRING && f->bound ? ID_BOUNDED_STRING : ids[f->kind];
    if (f->shape == USI_SHAPE_ARRAY) id += ID_ARRAY;
    if (f->shape == USI_SHAPE_SEQUENCE) id += f->count ? ID_BOUNDED_SEQUENCE : ID_SEQUENCE;
    return id;
}

static void put_type(description *d, const us_message_type *type) {
    put(d, "{\"type_name\": \"%s\", \"fields\": [", type->name);
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        put(d, "%s{\"name\": \"%s\", \"type\": {\"type_id\": %d, \"capacity\": %u, ", i ? ", " : "", f->name,
            id_of(f), (unsigned)f->count);
        put(d, "\"string_capacity\": %u, \"nested_type_name\": \"%s\"}}", (unsigned)f->bound,
            f->kind == USI_KIND_MESSAGE ? f->type->name : "");
    }
    put(d, "]}");
}

static const char *finish_hash(description *d) {
    char hex[65], *hash = usi_arena_alloc(d->arena, 80, 1);
    if (d->is_full || !hash) return NULL;
    usi_sha256_hex(d->at, d->length, hex);
    snprintf(hash, 80, "RIHS01_%s", hex);
    return hash;
}

// A type of a service that no file has: its fields are messages.
static void put_made(description *d, const char *name, const us_message_type *const types[3],
                     const char *const names[3], const char *const fields[3], int id, int capacity) {
    put(d, "{\"type_name\": \"%s\", \"fields\": [", name);
    for (int i = 0; i < 3; i++) {
        const bool is_first = id > ID_MESSAGE && i == 0;
        put(d, "%s{\"name\": \"%s\", \"type\": {\"type_id\": %d, \"capacity\": %d, ", i ? ", " : "",
            fields[i], is_first ? ID_MESSAGE : id, is_first ? 0 : capacity);
        put(d, "\"string_capacity\": 0, \"nested_type_name\": \"%s\"}}",
            types[i] ? types[i]->name : names[i]);
    }
    put(d, "]}");
}

// A service is described as a message of three: request, response, and the event that tells of either.
static void put_service(description *d, const us_message_type *request, const us_message_type *response) {
    char service[USI_INTERFACE_NAME + 16], event[USI_INTERFACE_NAME + 24];
    snprintf(service, sizeof service, "%.*s", (int)(strrchr(request->name, '_') - request->name),
             request->name);
    snprintf(event, sizeof event, "%s_Event", service);
    const us_message_type *info = us_message_find("service_msgs/msg/ServiceEventInfo");
    static const char *const of_service[3] = {"request_message", "response_message", "event_message"};
    static const char *const of_event[3] = {"info", "request", "response"};
    put(d, "{\"type_description\": ");
    put_made(d, service, (const us_message_type *[3]){request, response, NULL},
             (const char *[3]){"", "", event}, of_service, ID_MESSAGE, 0);
    put(d, ", \"referenced_type_descriptions\": [");
    bool has_event = false;
    for (int32_t i = 0; i <= d->n; i++) {
        if (!has_event && (i == d->n || strcmp(event, d->inside[i]->name) < 0)) {
            if (i) put(d, ", ");
            put_made(d, event, (const us_message_type *[3]){info, request, response},
                     (const char *[3]){"", "", ""}, of_event, ID_MESSAGE + ID_BOUNDED_SEQUENCE, 1);
            has_event = true;
            if (i < d->n) put(d, ", ");
        } else if (i && i < d->n) {
            put(d, ", ");
        }
        if (i < d->n) put_type(d, d->inside[i]);
    }
    put(d, "]}");
}

static const char *make_hash(description *d, const us_message_type *type) {
    put(d, "{\"type_description\": ");
    put_type(d, type);
    put(d, ", \"referenced_type_descriptions\": [");
    for (int32_t i = 0; i < d->n; i++) {
        if (i) put(d, ", ");
        put_type(d, d->inside[i]);
    }
    put(d, "]}");
    return finish_hash(d);
}

// Whether it is the request or response of a service; those of an action's goals and results are such.
static bool is_half(const us_message_type *type) {
    static const char *const ends[] = {"_SendGoal_Request", "_SendGoal_Response", "_GetResult_Request",
                                       "_GetResult_Response"};
    const size_t n = strlen(type->name);
    bool is = strstr(type->name, "/srv/") != NULL;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0] && strstr(type->name, "/action/"); i++)
        is = is || (n > strlen(ends[i]) && strcmp(type->name + n - strlen(ends[i]), ends[i]) == 0);
    return is;
}

// The other half of a service, with the end of its name in place of `end`; NULL: there is none.
static const us_message_type *find_half(const us_interface *of, const us_message_type *type,
                                        const char *end) {
    char name[USI_INTERFACE_NAME + 32];
    const char *last = strrchr(type->name, '_');
    if (!is_half(type) || !last) return NULL;
    snprintf(name, sizeof name, "%.*s%s", (int)(last - type->name), type->name, end);
    return us_interface_find(of, name);
}

static const char *make_service_hash(const us_interface *of, usi_arena *arena, const us_message_type *type) {
    const us_message_type *request = find_half(of, type, "_Request"),
                          *response = find_half(of, type, "_Response");
    description d = {.arena = arena};
    if (!request || !response || (type != request && type != response)) return "";
    const us_message_type *parts[3] = {request, response,
                                       us_message_find("service_msgs/msg/ServiceEventInfo")};
    for (int i = 0; i < 3; i++) {
        if (d.n >= MAX_INSIDE - 1) return "";
        d.inside[d.n++] = parts[i];
        if (!gather(&d, parts[i])) return "";
    }
    qsort(d.inside, (size_t)d.n, sizeof d.inside / MAX_INSIDE, by_name);
    put_service(&d, request, response);
    return finish_hash(&d);
}

// ---- the definition ----

// "pkg/Name" of "pkg/msg/Name"; of other names "rover_arm/Joint" of "rover::arm::Joint".
static void short_name(const us_message_type *type, char out[USI_INTERFACE_NAME + 16]) {
    const char *slash = strchr(type->name, '/'), *last = strrchr(type->name, '/');
    if (slash) {
        snprintf(out, USI_INTERFACE_NAME + 16, "%.*s%s", (int)(slash - type->name), type->name, last);
        return;
    }
    size_t n = 0;
    const char *end = strrchr(type->name, ':');
    for (const char *at = type->name; *at && n < USI_INTERFACE_NAME; at++) {
        if (at[0] == ':' && at[1] == ':') {
            out[n++] = at + 1 == end ? '/' : '_';
            at++;
        } else {
            out[n++] = *at;
        }
    }
    out[n] = 0;
}

static void put_members(description *d, const us_message_type *type) {
#define ROW(kind, size, name) name,
    static const char *const names[] = {USI_KIND_LIST(ROW)};
#undef ROW
    for (int32_t i = 0; i < type->n_field && !type->is_empty; i++) {
        const usi_message_field *f = &type->fields[i];
        char name[USI_INTERFACE_NAME + 16];
        if (f->kind == USI_KIND_MESSAGE) short_name(f->type, name);
        put(d, "%s", f->kind == USI_KIND_MESSAGE ? name : names[f->kind]);
        if (f->bound) put(d, "<=%u", (unsigned)f->bound);
        if (f->shape == USI_SHAPE_ARRAY) put(d, "[%u]", (unsigned)f->count);
        if (f->shape == USI_SHAPE_SEQUENCE && f->count) put(d, "[<=%u]", (unsigned)f->count);
        if (f->shape == USI_SHAPE_SEQUENCE && !f->count) put(d, "[]");
        put(d, " %s\n", f->name);
    }
}

static const char *make_schema(description *d, const us_message_type *type) {
    d->at = NULL;
    d->length = d->cap = 0;
    put_members(d, type);
    for (int32_t i = 0; i < d->n; i++) {
        char name[USI_INTERFACE_NAME + 16];
        short_name(d->inside[i], name);
        for (int k = 0; k < 8; k++)
            put(d, "==========");
        put(d, "\nMSG: %s\n", name);
        put_members(d, d->inside[i]);
    }
    return d->is_full ? NULL : d->at ? d->at : "";
}

us_status usi_interface_describe(us_interface *to) {
    for (int32_t i = 0; i < to->n_type; i++) {
        us_message_type *type = to->type[i];
        description d = {.arena = &to->arena};
        if (!gather(&d, type)) continue;
        qsort(d.inside, (size_t)d.n, sizeof d.inside / MAX_INSIDE, by_name);
        bool is_ros = is_ros_name(type);
        for (int32_t k = 0; k < d.n; k++)
            is_ros = is_ros && is_ros_name(d.inside[k]);
        const char *hash = !is_ros         ? ""
                           : is_half(type) ? make_service_hash(to, &to->arena, type)
                                           : make_hash(&d, type);
        const char *schema = make_schema(&d, type);
        if (!hash || !schema) return US_ERR_MEMORY;
        type->hash = hash;
        type->schema = schema;
    }
    return US_OK;
}

// The page's protocol as bytes.
#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "wire/view.h"

// ---------------------------------------------------------------- frames

static uint8_t *put_u32(uint8_t *at, uint32_t x) {
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(x >> (8 * i));
    return at + 4;
}

static uint8_t *put_i16(uint8_t *at, int16_t x) {
    at[0] = (uint8_t)((uint16_t)x & 0xff);
    at[1] = (uint8_t)((uint16_t)x >> 8);
    return at + 2;
}

static uint8_t *put_u64(uint8_t *at, uint64_t x) {
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(x >> (8 * i));
    return at + 8;
}

static uint8_t *put_f32(uint8_t *at, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return put_u32(at, bits);
}

static uint8_t *put_f64(uint8_t *at, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return put_u64(at, bits);
}

uint8_t *usi_view_put_head(uint8_t *at, const usi_view_head *head) {
    at[0] = (uint8_t)head->kind;
    at[1] = head->flags;
    at[2] = at[3] = 0;
    at = put_u32(at + 4, head->epoch);
    at = put_f64(at, head->time);
    at = put_u64(at, (uint64_t)head->tick);
    at = put_u32(at, head->n);
    return put_u32(at, 0);
}

uint8_t *usi_view_put_pose(uint8_t *at, uint32_t body, const float pose[7]) {
    at = put_u32(at, body);
    for (int i = 0; i < 7; i++)
        at = put_f32(at, pose[i]);
    return at;
}

uint8_t *usi_view_put_value(uint8_t *at, double value) { return put_f64(at, value); }

uint8_t *usi_view_put_contact(uint8_t *at, const usi_view_contact *c) {
    at = put_u32(at, (uint32_t)c->body_a);
    at = put_u32(at, (uint32_t)c->body_b);
    for (int i = 0; i < 3; i++)
        at = put_f32(at, c->point[i]);
    for (int i = 0; i < 3; i++)
        at = put_f32(at, c->normal[i]);
    for (int i = 0; i < 3; i++)
        at = put_f32(at, c->force[i]);
    at = put_f32(at, c->gap);
    return put_u32(at, c->is_sliding ? 1 : 0);
}

uint8_t *usi_view_put_torque(uint8_t *at, float torque) { return put_f32(at, torque); }

uint8_t *usi_view_put_rut(uint8_t *at, int32_t patch, int32_t u, int32_t v, float unit,
                          const int16_t change[USI_VIEW_RUT_COLUMNS]) {
    at = put_u32(at, (uint32_t)patch);
    at = put_u32(at, (uint32_t)u);
    at = put_u32(at, (uint32_t)v);
    at = put_f32(at, unit);
    for (int i = 0; i < USI_VIEW_RUT_COLUMNS; i++)
        at = put_i16(at, change[i]);
    return at;
}

uint8_t *usi_view_put_cloud(uint8_t *at, const usi_view_cloud *cloud) {
    at = put_u32(at, cloud->lidar);
    at = put_f32(at, cloud->unit);
    for (int i = 0; i < 3; i++)
        at = put_f64(at, cloud->origin[i]);
    return at;
}

uint8_t *usi_view_put_point(uint8_t *at, const int16_t place[3], uint8_t intensity, uint8_t ring) {
    for (int i = 0; i < 3; i++)
        at = put_i16(at, place[i]);
    *at++ = intensity;
    *at++ = ring;
    return at;
}

float usi_view_float(double value) {
    if (value > (double)FLT_MAX) return FLT_MAX;
    if (value < -(double)FLT_MAX) return -FLT_MAX;
    return (float)value;
}

// ---------------------------------------------------------------- before JSON is read

// The length of the character that begins here, 0 when it is none.
static size_t utf8_length(const uint8_t *s, size_t n) {
    uint8_t c = s[0];
    if (c < 0x80) return 1;
    size_t length = c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    if (length == 0 || length > n) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    // Written longer than needed, half of a surrogate pair, or beyond the last character.
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) ||
        (c == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

bool usi_view_is_utf8(const void *bytes, size_t length) {
    const uint8_t *s = (const uint8_t *)bytes;
    for (size_t at = 0; at < length;) {
        size_t n = utf8_length(s + at, length - at);
        if (n == 0) return false;
        at += n;
    }
    return true;
}

// The library that reads JSON recurses at every bracket, lets control characters into texts and ends a text
// at an escaped 0. None of that gets to it.
static us_status scan(const uint8_t *s, size_t length, us_error *err) {
    const char *remedy = "send one JSON object with \"op\", as docs/viewer-protocol.md says";
    if (length == 0) return us_error_set(err, US_ERR_SYNTAX, NULL, remedy, "the message is empty");
    if (length > USI_VIEW_MESSAGE)
        return us_error_set(err, US_ERR_LIMIT, NULL, "send less at once",
                            "the message has %zu bytes, and %d are the most", length, USI_VIEW_MESSAGE);
    if (!usi_view_is_utf8(s, length))
        return us_error_set(err, US_ERR_SYNTAX, NULL, remedy, "the message is not UTF-8");
    int32_t depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < length; i++) {
        uint8_t c = s[i];
        if (in_text) {
            if (c < 0x20 || c == 0x7f)
                return us_error_set(err, US_ERR_SYNTAX, NULL, "leave it out",
                                    "byte %zu is a control character inside a text", i);
            if (c == '"') in_text = false;
            if (c != '\\') continue;
            if (length - i >= 6 && memcmp(s + i, "\\u0000", 6) == 0)
                return us_error_set(err, US_ERR_SYNTAX, NULL, "leave it out",
                                    "byte %zu begins a zero character inside a text", i);
            i++;
            continue;
        }
        if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
            return us_error_set(err, US_ERR_SYNTAX, NULL, remedy, "byte %zu is a control character", i);
        if (c == '"') in_text = true;
        if ((c == '{' || c == '[') && ++depth > USI_VIEW_DEPTH)
            return us_error_set(err, US_ERR_LIMIT, NULL, remedy, "brackets are nested more than %d deep",
                                USI_VIEW_DEPTH);
        if (c == '}' || c == ']') depth--;
    }
    return US_OK;
}

// ---------------------------------------------------------------- fields

typedef struct json_reader {
    const cJSON *object;
    usi_view_message *out;
    size_t used;  // of out->memory
    us_error *err;
} json_reader;

// Fields that an op may have; "op" itself comes with each.
static const struct {
    const char *name;
    usi_view_op op;
    const char *fields[5];
} ops[] = {
    {"view", USI_VIEW_OP_VIEW, {"hz", "contacts", "torques", "topics", "points"}},
    {"watch", USI_VIEW_OP_WATCH, {"generation", "values"}},
    {"full", USI_VIEW_OP_FULL, {NULL}},
    {"command", USI_VIEW_OP_COMMAND, {"id", "text"}},
    {"drive", USI_VIEW_OP_DRIVE, {"robot", "vx", "vy", "wz"}},
};
enum { N_OP = sizeof ops / sizeof ops[0] };

// What a client wrote, cut to a length that an error has room for.
typedef struct quoted {
    char text[44];
} quoted;

static quoted quote(const char *text) {
    quoted q;
    size_t n = strnlen(text, sizeof q.text - 4), at = 0;
    // Whole characters only.
    while (at < n) {
        size_t more = utf8_length((const uint8_t *)text + at, n - at);
        if (more == 0) break;
        at += more;
    }
    memcpy(q.text, text, at);
    memcpy(q.text + at, text[at] ? "..." : "", text[at] ? 4 : 1);
    return q;
}

static us_status check_fields(const json_reader *r, const char *const fields[5]) {
    for (const cJSON *item = r->object->child; item; item = item->next) {
        if (!item->string) return us_error_set(r->err, US_ERR_SYNTAX, NULL, NULL, "a field has no name");
        bool is_known = strcmp(item->string, "op") == 0;
        for (int i = 0; i < 5 && fields[i]; i++)
            is_known |= strcmp(item->string, fields[i]) == 0;
        if (!is_known) {
            return us_error_set(r->err, US_ERR_NAME, NULL,
                                "see docs/viewer-protocol.md for the fields of each op",
                                "unknown field \"%s\"", quote(item->string).text);
        }
        for (const cJSON *other = item->next; other; other = other->next) {
            if (other->string && strcmp(other->string, item->string) == 0)
                return us_error_set(r->err, US_ERR_NAME, NULL, "write it once",
                                    "the field \"%s\" stands there twice", item->string);
        }
    }
    return US_OK;
}

static bool has(const json_reader *r, const char *field) {
    return cJSON_GetObjectItemCaseSensitive(r->object, field) != NULL;
}

static us_status need(const json_reader *r, const char *field, const cJSON **out) {
    *out = cJSON_GetObjectItemCaseSensitive(r->object, field);
    return *out ? US_OK
                : us_error_set(r->err, US_ERR_VALUE, NULL, NULL, "the field \"%s\" is missing", field);
}

static us_status read_number(const json_reader *r, const char *field, double low, double high, bool is_whole,
                             double *out) {
    const cJSON *item;
    us_status status = need(r, field, &item);
    if (status) return status;
    double x = item->valuedouble;
    if (!cJSON_IsNumber(item) || !(x >= low && x <= high) || (is_whole && x != nearbyint(x))) {
        return us_error_set(r->err, US_ERR_VALUE, NULL, NULL,
                            "the field \"%s\" is not a %snumber from %.17g to %.17g", field,
                            is_whole ? "whole " : "", low, high);
    }
    *out = x;
    return US_OK;
}

static us_status read_bool(const json_reader *r, const char *field, bool *out) {
    const cJSON *item;
    us_status status = need(r, field, &item);
    if (status) return status;
    if (!cJSON_IsBool(item))
        return us_error_set(r->err, US_ERR_VALUE, NULL, NULL, "the field \"%s\" is neither true nor false",
                            field);
    *out = cJSON_IsTrue(item) != 0;
    return US_OK;
}

// A text into the message's memory. All texts together are shorter than the message was: there is room.
static us_status copy_text(json_reader *r, const cJSON *item, const char *field, size_t min, size_t max,
                           const char **out) {
    if (!cJSON_IsString(item) || !item->valuestring)
        return us_error_set(r->err, US_ERR_VALUE, NULL, NULL, "\"%s\" is not a text", field);
    size_t n = strlen(item->valuestring);
    if (n < min) return us_error_set(r->err, US_ERR_VALUE, NULL, NULL, "\"%s\" is an empty text", field);
    if (n > max)
        return us_error_set(r->err, US_ERR_LIMIT, NULL, NULL, "\"%s\" has %zu bytes, and %zu are the most",
                            field, n, max);
    if (n + 1 > sizeof r->out->memory - r->used)
        return us_error_set(r->err, US_ERR_LIMIT, NULL, NULL, "the texts are too long together");
    // Escapes may have made control characters, which would break the lines in which commands are kept.
    for (size_t i = 0; i < n; i++) {
        if ((uint8_t)item->valuestring[i] < 0x20 || item->valuestring[i] == 0x7f)
            return us_error_set(r->err, US_ERR_VALUE, NULL, "write it in one line, with blanks",
                                "\"%s\" has a control character in it", field);
    }
    if (!usi_view_is_utf8(item->valuestring, n))
        return us_error_set(r->err, US_ERR_SYNTAX, NULL, NULL, "\"%s\" is not UTF-8", field);
    *out = memcpy(r->out->memory + r->used, item->valuestring, n + 1);
    r->used += n + 1;
    return US_OK;
}

static us_status read_text(json_reader *r, const char *field, size_t min, size_t max, const char **out) {
    const cJSON *item;
    us_status status = need(r, field, &item);
    return status ? status : copy_text(r, item, field, min, max, out);
}

// ---------------------------------------------------------------- ops

static us_status read_view(json_reader *r) {
    usi_view_message *m = r->out;
    const struct {
        const char *name;
        uint32_t has;
        bool *out;
    } flags[] = {{"contacts", USI_VIEW_HAS_CONTACTS, &m->enable_contacts},
                 {"torques", USI_VIEW_HAS_TORQUES, &m->enable_torques},
                 {"topics", USI_VIEW_HAS_TOPICS, &m->enable_topics}};
    us_status status;
    if (has(r, "hz")) {
        if ((status = read_number(r, "hz", 0, USI_VIEW_HZ, false, &m->hz))) return status;
        m->has |= USI_VIEW_HAS_HZ;
    }
    if (has(r, "points")) {
        double points = 0;
        if ((status = read_number(r, "points", 0, USI_VIEW_MAX_POINT, true, &points))) return status;
        m->points = (int32_t)points;
        m->has |= USI_VIEW_HAS_POINTS;
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (!has(r, flags[i].name)) continue;
        if ((status = read_bool(r, flags[i].name, flags[i].out))) return status;
        m->has |= flags[i].has;
    }
    return US_OK;
}

static us_status read_watch(json_reader *r) {
    double generation = 0;
    const cJSON *list;
    us_status status = read_number(r, "generation", 0, UINT32_MAX, true, &generation);
    if (status || (status = need(r, "values", &list))) return status;
    r->out->generation = (uint32_t)generation;
    if (!cJSON_IsArray(list))
        return us_error_set(r->err, US_ERR_VALUE, NULL, NULL, "the field \"values\" is not a list of names");
    for (const cJSON *item = list->child; item; item = item->next) {
        if (r->out->n_value == USI_VIEW_VALUE_COUNT) {
            return us_error_set(r->err, US_ERR_LIMIT, NULL, "watch fewer at once",
                                "\"values\" has more than %d names", USI_VIEW_VALUE_COUNT);
        }
        if ((status = copy_text(r, item, "values", 1, USI_VIEW_NAME, &r->out->values[r->out->n_value])))
            return status;
        r->out->n_value++;
    }
    return US_OK;
}

static us_status read_command(json_reader *r) {
    const double max = 9007199254740992.0;  // 2^53: whole numbers are exact up to there
    double id = 0;
    us_status status = read_number(r, "id", -max, max, true, &id);
    r->out->id = (int64_t)id;
    return status ? status : read_text(r, "text", 1, USI_VIEW_COMMAND, &r->out->text);
}

static us_status read_drive(json_reader *r) {
    const double max = 1e6;  // far beyond any robot; its own limits are checked where it takes the command
    us_status status =
        read_text(r, "robot", 0, USI_VIEW_NAME, &r->out->robot);  // a robot file alone is the robot ""
    if (!status) status = read_number(r, "vx", -max, max, false, &r->out->vx);
    if (!status) status = read_number(r, "vy", -max, max, false, &r->out->vy);
    if (!status) status = read_number(r, "wz", -max, max, false, &r->out->wz);
    return status;
}

static us_status read_object(json_reader *r) {
    const char *remedy = "the ops are view, watch, full, command and drive";
    if (!cJSON_IsObject(r->object))
        return us_error_set(r->err, US_ERR_SYNTAX, NULL, remedy, "the message is not a JSON object");
    const cJSON *op = cJSON_GetObjectItemCaseSensitive(r->object, "op");
    if (!cJSON_IsString(op) || !op->valuestring)
        return us_error_set(r->err, US_ERR_NAME, NULL, remedy, "the message has no \"op\" that is a text");
    int32_t i = 0;
    while (i < N_OP && strcmp(ops[i].name, op->valuestring) != 0)
        i++;
    if (i == N_OP)
        return us_error_set(r->err, US_ERR_NAME, NULL, remedy, "unknown op \"%s\"",
                            quote(op->valuestring).text);
    us_status status = check_fields(r, ops[i].fields);
    if (status) return status;
    r->out->op = ops[i].op;
    switch (r->out->op) {
    case USI_VIEW_OP_VIEW:
        return read_view(r);
    case USI_VIEW_OP_WATCH:
        return read_watch(r);
    case USI_VIEW_OP_COMMAND:
        return read_command(r);
    case USI_VIEW_OP_DRIVE:
        return read_drive(r);
    case USI_VIEW_OP_FULL:
        break;
    }
    return US_OK;
}

us_status usi_view_parse(const void *bytes, size_t length, usi_view_message *out, us_error *err) {
    memset(out, 0, offsetof(usi_view_message, memory));
    us_status status = scan((const uint8_t *)bytes, length, err);
    if (status) return status;
    const char *end = NULL;
    cJSON *object = cJSON_ParseWithLengthOpts((const char *)bytes, length, &end, false);
    if (!object) {
        size_t at = end && end >= (const char *)bytes ? (size_t)(end - (const char *)bytes) : 0;
        return us_error_set(err, US_ERR_SYNTAX, NULL,
                            "send one JSON object with \"op\", as docs/viewer-protocol.md says",
                            "the message is not JSON from byte %zu on", at);
    }
    // Nothing may follow but blanks.
    const char *stop = (const char *)bytes + length;
    while (end && end < stop && strchr(" \t\r\n", *end) && *end)
        end++;
    json_reader r = {object, out, 0, err};
    if (!end || end != stop) {
        status = us_error_set(err, US_ERR_SYNTAX, NULL, "send each object in a message of its own",
                              "something follows the JSON object");
    } else {
        status = read_object(&r);
    }
    cJSON_Delete(object);
    return status;
}

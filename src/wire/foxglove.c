// Messages of clients of the Foxglove WebSocket protocol.
#include "wire/foxglove.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

// Opcodes of binary messages, from either side.
enum { CLIENT_DATA = 1, SERVER_DATA = 1, SERVER_TIME = 2 };

// ---- Frames ----

static uint8_t *put(uint8_t *at, uint64_t value, int n) {
    for (int k = 0; k < n; k++)
        *at++ = (uint8_t)(value >> 8 * k);
    return at;
}

void usi_foxglove_put_data(uint8_t out[USI_FOXGLOVE_DATA_HEAD], uint32_t subscription, int64_t time) {
    uint8_t *at = put(out, SERVER_DATA, 1);
    at = put(at, subscription, 4);
    put(at, (uint64_t)time, 8);
}

void usi_foxglove_put_time(uint8_t out[USI_FOXGLOVE_TIME_SIZE], int64_t time) {
    put(put(out, SERVER_TIME, 1), (uint64_t)time, 8);
}

// ---- Messages ----

static us_status parse_binary(const uint8_t *bytes, size_t length, usi_foxglove_message *out, us_error *err) {
    if (length == 0) return us_error_set(err, US_ERR_SYNTAX, NULL, NULL, "a binary message is empty");
    out->op = USI_FOXGLOVE_OTHER;
    if (bytes[0] != CLIENT_DATA) return US_OK;
    if (length < 5)
        return us_error_set(err, US_ERR_SYNTAX, NULL, NULL,
                            "a message of a channel ends before its number does");
    out->op = USI_FOXGLOVE_DATA;
    for (int k = 0; k < 4; k++)
        out->id |= (uint32_t)bytes[1 + k] << 8 * k;
    out->bytes = bytes + 5;
    out->length = length - 5;
    return US_OK;
}

// The library that reads JSON recurses at every bracket, and ends a text at an escaped 0. Neither gets to it.
static us_status scan(const char *s, size_t length, us_error *err) {
    int32_t depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < length; i++) {
        if (s[i] == 0) return us_error_set(err, US_ERR_SYNTAX, NULL, NULL, "byte %zu is a zero", i);
        if (in_text) {
            if (s[i] == '"') in_text = false;
            if (s[i] != '\\') continue;
            if (length - i >= 6 && memcmp(s + i, "\\u0000", 6) == 0)
                return us_error_set(err, US_ERR_SYNTAX, NULL, NULL, "byte %zu begins a zero", i);
            i++;
            continue;
        }
        if (s[i] == '"') in_text = true;
        if ((s[i] == '{' || s[i] == '[') && ++depth > USI_FOXGLOVE_DEPTH) {
            return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "brackets are nested more than %d deep",
                                USI_FOXGLOVE_DEPTH);
        }
        if (s[i] == '}' || s[i] == ']') depth--;
    }
    return US_OK;
}

static us_status read_id(const cJSON *item, const char *field, uint32_t *out, us_error *err) {
    const double x = item ? item->valuedouble : -1;
    if (!cJSON_IsNumber(item) || !(x >= 0 && x <= UINT32_MAX) || x != floor(x)) {
        return us_error_set(err, US_ERR_VALUE, NULL, NULL,
                            "\"%s\" is not a whole number from 0 to 4294967295", field);
    }
    *out = (uint32_t)x;
    return US_OK;
}

static us_status read_text(const cJSON *object, const char *field, char *out, size_t cap, us_error *err) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field);
    if (!cJSON_IsString(item) || !item->valuestring)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "\"%s\" is not a text", field);
    const size_t n = strlen(item->valuestring);
    if (n == 0 || n >= cap)
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "\"%s\" is empty or longer than %zu bytes", field,
                            cap - 1);
    for (size_t i = 0; i < n; i++) {
        // Names of topics, types and encodings: nothing else is ever looked for.
        if (item->valuestring[i] <= ' ' || item->valuestring[i] >= 127) {
            return us_error_set(err, US_ERR_VALUE, NULL, NULL,
                                "\"%s\" has a character in it that no name has", field);
        }
    }
    memcpy(out, item->valuestring, n + 1);
    return US_OK;
}

static us_status find_list(const cJSON *object, const char *field, const cJSON **out, us_error *err) {
    *out = cJSON_GetObjectItemCaseSensitive(object, field);
    return cJSON_IsArray(*out) ? US_OK
                               : us_error_set(err, US_ERR_VALUE, NULL, NULL, "\"%s\" is not a list", field);
}

static us_status too_many(const char *field, int32_t max, us_error *err) {
    return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "\"%s\" has more than %d entries", field, max);
}

static us_status read_ids(const cJSON *object, const char *field, usi_foxglove_message *out, us_error *err) {
    const cJSON *list;
    us_status status = find_list(object, field, &list, err);
    for (const cJSON *item = status ? NULL : list->child; item && !status; item = item->next) {
        if (out->n == USI_FOXGLOVE_LIST) return too_many(field, USI_FOXGLOVE_LIST, err);
        status = read_id(item, field, &out->list[out->n++].id, err);
    }
    return status;
}

static us_status read_subscriptions(const cJSON *object, usi_foxglove_message *out, us_error *err) {
    const cJSON *list;
    us_status status = find_list(object, "subscriptions", &list, err);
    for (const cJSON *item = status ? NULL : list->child; item && !status; item = item->next) {
        if (out->n == USI_FOXGLOVE_LIST) return too_many("subscriptions", USI_FOXGLOVE_LIST, err);
        usi_foxglove_entry *entry = &out->list[out->n++];
        status = read_id(cJSON_GetObjectItemCaseSensitive(item, "id"), "id", &entry->id, err);
        if (!status)
            status = read_id(cJSON_GetObjectItemCaseSensitive(item, "channelId"), "channelId",
                             &entry->channel, err);
    }
    return status;
}

static us_status read_channels(const cJSON *object, usi_foxglove_message *out, us_error *err) {
    const cJSON *list;
    char encoding[32];
    us_status status = find_list(object, "channels", &list, err);
    for (const cJSON *item = status ? NULL : list->child; item && !status; item = item->next) {
        if (out->n == USI_FOXGLOVE_CHANNELS) return too_many("channels", USI_FOXGLOVE_CHANNELS, err);
        usi_foxglove_channel *channel = &out->channels[out->n++];
        status = read_id(cJSON_GetObjectItemCaseSensitive(item, "id"), "id", &channel->id, err);
        if (!status) status = read_text(item, "topic", channel->topic, sizeof channel->topic, err);
        if (!status) status = read_text(item, "schemaName", channel->schema, sizeof channel->schema, err);
        if (!status) status = read_text(item, "encoding", encoding, sizeof encoding, err);
        if (!status) channel->is_cdr = strcmp(encoding, "cdr") == 0;
    }
    return status;
}

static us_status read_object(const cJSON *object, usi_foxglove_message *out, us_error *err) {
    const cJSON *item = cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, "op") : NULL;
    const char *op = item && cJSON_IsString(item) ? item->valuestring : NULL;
    if (!op)
        return us_error_set(err, US_ERR_SYNTAX, NULL, NULL, "the message is not a JSON object with \"op\"");
    if (strcmp(op, "subscribe") == 0) {
        out->op = USI_FOXGLOVE_SUBSCRIBE;
        return read_subscriptions(object, out, err);
    }
    if (strcmp(op, "unsubscribe") == 0) {
        out->op = USI_FOXGLOVE_UNSUBSCRIBE;
        return read_ids(object, "subscriptionIds", out, err);
    }
    if (strcmp(op, "advertise") == 0) {
        out->op = USI_FOXGLOVE_ADVERTISE;
        return read_channels(object, out, err);
    }
    if (strcmp(op, "unadvertise") == 0) {
        out->op = USI_FOXGLOVE_UNADVERTISE;
        return read_ids(object, "channelIds", out, err);
    }
    out->op = USI_FOXGLOVE_OTHER;
    size_t n = strspn(op, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    if (n >= sizeof out->name) n = sizeof out->name - 1;
    memcpy(out->name, op, n);
    return US_OK;
}

us_status usi_foxglove_parse(bool is_binary, const void *bytes, size_t length, usi_foxglove_message *out,
                             us_error *err) {
    out->n = 0;
    out->id = 0;
    out->bytes = NULL;
    out->length = 0;
    memset(out->name, 0, sizeof out->name);
    if (length > USI_FOXGLOVE_MESSAGE)
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "the message has more than %d bytes",
                            USI_FOXGLOVE_MESSAGE);
    if (is_binary) return parse_binary((const uint8_t *)bytes, length, out, err);
    us_status status = scan((const char *)bytes, length, err);
    if (status) return status;
    cJSON *object = cJSON_ParseWithLength((const char *)bytes, length);
    if (!object) return us_error_set(err, US_ERR_SYNTAX, NULL, NULL, "the message is not JSON");
    status = read_object(object, out, err);
    cJSON_Delete(object);
    return status;
}

// Messages of clients of the Foxglove WebSocket protocol.
#include "wire/foxglove.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

// Opcodes of binary messages, from either side.
enum {
    CLIENT_DATA = 1,
    CLIENT_CALL = 2,
    SERVER_DATA = 1,
    SERVER_TIME = 2,
    SERVER_REPLY = 3,
    SERVER_ASSET = 4
};

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

void usi_foxglove_put_reply(uint8_t out[USI_FOXGLOVE_REPLY_HEAD], uint32_t service, uint32_t call) {
    static const char encoding[3] = {'c', 'd', 'r'};
    uint8_t *at = put(out, SERVER_REPLY, 1);
    at = put(put(at, service, 4), call, 4);
    memcpy(put(at, sizeof encoding, 4), encoding, sizeof encoding);
}

void usi_foxglove_put_asset(uint8_t out[USI_FOXGLOVE_ASSET_HEAD], uint32_t request, uint32_t n_error) {
    uint8_t *at = put(put(out, SERVER_ASSET, 1), request, 4);
    put(put(at, n_error > 0, 1), n_error, 4);
}

// ---- Messages ----

static uint32_t get_32(const uint8_t *bytes) {
    uint32_t x = 0;
    for (int k = 0; k < 4; k++)
        x |= (uint32_t)bytes[k] << 8 * k;
    return x;
}

static us_status parse_call(const uint8_t *bytes, size_t length, usi_foxglove_message *out, us_error *err) {
    enum { HEAD = 13 };
    const uint32_t n = length < HEAD ? 0 : get_32(bytes + 9);
    if (length < HEAD || n > length - HEAD)
        return us_error_set(err, US_ERR_SYNTAX, NULL, NULL,
                            "the call of a service ends before its head does");
    out->op = USI_FOXGLOVE_CALL;
    out->id = get_32(bytes + 1);
    out->call = get_32(bytes + 5);
    out->is_cdr = n == 3 && memcmp(bytes + HEAD, "cdr", 3) == 0;
    out->bytes = bytes + HEAD + n;
    out->length = length - HEAD - n;
    return US_OK;
}

static us_status parse_binary(const uint8_t *bytes, size_t length, usi_foxglove_message *out, us_error *err) {
    if (length == 0) return us_error_set(err, US_ERR_SYNTAX, NULL, NULL, "a binary message is empty");
    out->op = USI_FOXGLOVE_OTHER;
    if (bytes[0] == CLIENT_CALL) return parse_call(bytes, length, out, err);
    if (bytes[0] != CLIENT_DATA) return US_OK;
    if (length < 5)
        return us_error_set(err, US_ERR_SYNTAX, NULL, NULL,
                            "a message of a channel ends before its number does");
    out->op = USI_FOXGLOVE_DATA;
    out->id = get_32(bytes + 1);
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

static us_status copy_name(const cJSON *item, const char *field, char *out, size_t cap, us_error *err) {
    if (!cJSON_IsString(item) || !item->valuestring)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "\"%s\" is not a text", field);
    const size_t n = strlen(item->valuestring);
    if (n == 0 || n >= cap)
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "\"%s\" is empty or longer than %zu bytes", field,
                            cap - 1);
    for (size_t i = 0; i < n; i++) {
        // Names of topics, types, encodings and files: nothing else is ever looked for.
        if (item->valuestring[i] <= ' ' || item->valuestring[i] >= 127) {
            return us_error_set(err, US_ERR_VALUE, NULL, NULL,
                                "\"%s\" has a character in it that no name has", field);
        }
    }
    memcpy(out, item->valuestring, n + 1);
    return US_OK;
}

static us_status read_text(const cJSON *object, const char *field, char *out, size_t cap, us_error *err) {
    return copy_name(cJSON_GetObjectItemCaseSensitive(object, field), field, out, cap, err);
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

// The text by which a request is known, which may be any; it may have none.
static us_status read_request(const cJSON *object, usi_foxglove_message *out, us_error *err) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, "id");
    if (!item) return US_OK;
    if (!cJSON_IsString(item) || strlen(item->valuestring) > USI_FOXGLOVE_REQUEST)
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "\"id\" is not a text of at most %d bytes",
                            USI_FOXGLOVE_REQUEST);
    memcpy(out->request, item->valuestring, strlen(item->valuestring) + 1);
    return US_OK;
}

static us_status read_names(const cJSON *object, usi_foxglove_message *out, us_error *err) {
    const cJSON *list;
    us_status status = find_list(object, "parameterNames", &list, err);
    for (const cJSON *item = status ? NULL : list->child; item && !status; item = item->next) {
        if (out->n == USI_FOXGLOVE_PARAMETERS)
            return too_many("parameterNames", USI_FOXGLOVE_PARAMETERS, err);
        usi_foxglove_parameter *p = &out->parameters[out->n++];
        p->kind = USI_FOXGLOVE_NOTHING;
        status = copy_name(item, "parameterNames", p->name, sizeof p->name, err);
    }
    return status ? status : read_request(object, out, err);
}

static void read_value(const cJSON *value, usi_foxglove_parameter *out) {
    out->kind = USI_FOXGLOVE_NOTHING;
    out->number = 0;
    out->text[0] = 0;
    if (cJSON_IsBool(value)) {
        out->kind = USI_FOXGLOVE_BOOL;
        out->number = cJSON_IsTrue(value);
    } else if (cJSON_IsNumber(value)) {
        out->kind = USI_FOXGLOVE_NUMBER;
        out->number = value->valuedouble;
    } else if (cJSON_IsString(value) && strlen(value->valuestring) <= USI_FOXGLOVE_VALUE) {
        out->kind = USI_FOXGLOVE_TEXT;
        memcpy(out->text, value->valuestring, strlen(value->valuestring) + 1);
    }
}

static us_status read_parameters(const cJSON *object, usi_foxglove_message *out, us_error *err) {
    const cJSON *list;
    us_status status = find_list(object, "parameters", &list, err);
    for (const cJSON *item = status ? NULL : list->child; item && !status; item = item->next) {
        if (out->n == USI_FOXGLOVE_PARAMETERS) return too_many("parameters", USI_FOXGLOVE_PARAMETERS, err);
        usi_foxglove_parameter *p = &out->parameters[out->n++];
        status = read_text(item, "name", p->name, sizeof p->name, err);
        read_value(cJSON_GetObjectItemCaseSensitive(item, "value"), p);
    }
    return status ? status : read_request(object, out, err);
}

static us_status read_fetch(const cJSON *object, usi_foxglove_message *out, us_error *err) {
    us_status status =
        read_id(cJSON_GetObjectItemCaseSensitive(object, "requestId"), "requestId", &out->id, err);
    return status ? status : read_text(object, "uri", out->uri, sizeof out->uri, err);
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
    if (strcmp(op, "setParameters") == 0) {
        out->op = USI_FOXGLOVE_SET;
        return read_parameters(object, out, err);
    }
    if (strcmp(op, "fetchAsset") == 0) {
        out->op = USI_FOXGLOVE_FETCH;
        return read_fetch(object, out, err);
    }
    static const struct {
        const char *name;
        usi_foxglove_op op;
    } named[] = {{"getParameters", USI_FOXGLOVE_GET},
                 {"subscribeParameterUpdates", USI_FOXGLOVE_WATCH},
                 {"unsubscribeParameterUpdates", USI_FOXGLOVE_UNWATCH}};
    for (size_t k = 0; k < sizeof named / sizeof named[0]; k++) {
        if (strcmp(op, named[k].name) != 0) continue;
        out->op = named[k].op;
        return read_names(object, out, err);
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
    out->id = out->call = 0;
    out->is_cdr = false;
    out->request[0] = out->uri[0] = 0;
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

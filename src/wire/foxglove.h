// The Foxglove WebSocket protocol as bytes: a client's messages, and the binary frames to it (docs/network.md
// has the supported part).
//
// Pure functions: no sockets, no threads. What a client sends is looked at as a whole before anything is made
// of it: its size, its nesting and the kind and range of every field that means something here are bounded.
// Fields that mean nothing here are passed over: clients of other releases send more.
#ifndef USI_WIRE_FOXGLOVE_H
#define USI_WIRE_FOXGLOVE_H

#include "understudy/base.h"

enum {
    USI_FOXGLOVE_MESSAGE = 1 << 18,  // bytes of a client's message at most: advertised channels come with the
                                     // texts of their schemas
    USI_FOXGLOVE_LIST = 1024,        // entries of a list at most
    USI_FOXGLOVE_CHANNELS = 64,      // channels that a client advertises at once, at most
    USI_FOXGLOVE_TOPIC = 255,        // bytes of a topic's name at most
    USI_FOXGLOVE_SCHEMA = 127,       // of a type's
    USI_FOXGLOVE_DEPTH = 16,         // brackets within brackets
    USI_FOXGLOVE_DATA_HEAD = 13,     // bytes before a sample
    USI_FOXGLOVE_TIME_SIZE = 9,
    USI_FOXGLOVE_REPLY_HEAD = 16,  // bytes before the reply of a service, whose encoding is "cdr"
    USI_FOXGLOVE_ASSET_HEAD = 10,  // bytes before an asset, or the text of why there is none
    USI_FOXGLOVE_PARAMETERS = 64,  // parameters in one message at most
    USI_FOXGLOVE_PARAMETER = 127,  // bytes of a parameter's name at most
    USI_FOXGLOVE_VALUE = 255,      // and of its value, where that is a text
    USI_FOXGLOVE_REQUEST = 63,     // of the text that a request is known by
    USI_FOXGLOVE_URI = 1023,
};

typedef enum usi_foxglove_op {
    USI_FOXGLOVE_SUBSCRIBE,    // list: id and channel
    USI_FOXGLOVE_UNSUBSCRIBE,  // list: id
    USI_FOXGLOVE_ADVERTISE,    // channels
    USI_FOXGLOVE_UNADVERTISE,  // list: id
    USI_FOXGLOVE_DATA,         // id of one of its channels, and bytes
    USI_FOXGLOVE_GET,          // parameters: names; request
    USI_FOXGLOVE_SET,          // parameters: names and values; request
    USI_FOXGLOVE_WATCH,        // parameters: names of those whose changes are wanted
    USI_FOXGLOVE_UNWATCH,      // parameters: names
    USI_FOXGLOVE_FETCH,        // uri; id of the request
    USI_FOXGLOVE_CALL,         // id of a service, call, is_cdr, bytes
    USI_FOXGLOVE_OTHER,        // something that this server never said it could do, or that needs no answer
} usi_foxglove_op;

typedef struct usi_foxglove_entry {
    uint32_t id, channel;
} usi_foxglove_entry;

typedef struct usi_foxglove_channel {
    uint32_t id;
    char topic[USI_FOXGLOVE_TOPIC + 1];
    char schema[USI_FOXGLOVE_SCHEMA + 1];
    bool is_cdr;  // its encoding
} usi_foxglove_channel;

typedef enum usi_foxglove_kind {
    USI_FOXGLOVE_NOTHING,  // none, or one that nobody here takes
    USI_FOXGLOVE_NUMBER,
    USI_FOXGLOVE_BOOL,
    USI_FOXGLOVE_TEXT
} usi_foxglove_kind;

typedef struct usi_foxglove_parameter {
    char name[USI_FOXGLOVE_PARAMETER + 1];
    usi_foxglove_kind kind;
    double number;  // of a truth value: 0 or 1
    char text[USI_FOXGLOVE_VALUE + 1];
} usi_foxglove_parameter;

// Only the fields of its op mean anything.
typedef struct usi_foxglove_message {
    usi_foxglove_op op;
    int32_t n;
    usi_foxglove_entry list[USI_FOXGLOVE_LIST];
    usi_foxglove_channel channels[USI_FOXGLOVE_CHANNELS];
    usi_foxglove_parameter parameters[USI_FOXGLOVE_PARAMETERS];
    char request[USI_FOXGLOVE_REQUEST + 1];  // "": none
    char uri[USI_FOXGLOVE_URI + 1];
    uint32_t id, call;
    bool is_cdr;           // the encoding of a call
    const uint8_t *bytes;  // borrowed from what was parsed
    size_t length;
    char name[32];  // of an other op, for an answer; only letters
} usi_foxglove_message;

// US_ERR_SYNTAX for what is no message, US_ERR_VALUE for a field that is missing or of the wrong kind,
// US_ERR_LIMIT for too much of something.
us_status usi_foxglove_parse(bool is_binary, const void *bytes, size_t length, usi_foxglove_message *out,
                             us_error *err);

// The head of a sample's frame, after which its bytes stand; `time` in ns.
void usi_foxglove_put_data(uint8_t out[USI_FOXGLOVE_DATA_HEAD], uint32_t subscription, int64_t time);
void usi_foxglove_put_time(uint8_t out[USI_FOXGLOVE_TIME_SIZE], int64_t time);
// The head of a service's reply, and that of an asset; `n_error` bytes of a text follow the head of one that
// there is not, and 0 that of one that there is.
void usi_foxglove_put_reply(uint8_t out[USI_FOXGLOVE_REPLY_HEAD], uint32_t service, uint32_t call);
void usi_foxglove_put_asset(uint8_t out[USI_FOXGLOVE_ASSET_HEAD], uint32_t request, uint32_t n_error);

#endif

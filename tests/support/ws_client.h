// A small WebSocket and HTTP client for tests, on loopback: it says what it is told to, also what no browser
// would.
#ifndef TEST_WS_CLIENT_H
#define TEST_WS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9 };

typedef struct ws_client {
    int fd;
    bool is_closed;  // the server has gone, or said that it closes
    int close_code;  // what it said; 0: nothing
    uint8_t *in;     // bytes that have come and were not handed out
    size_t n_in, cap_in;
    uint8_t *message;  // the one that was handed out last; ends with a 0 that is not counted
    size_t n_message, cap_message;
    int opcode;
} ws_client;

typedef struct ws_def {
    int port;
    const char *path;      // default "/"; "?token=..." goes here
    const char *protocol;  // default "understudy.v1"
    const char *origin;    // NULL: none, as one who is no browser
    int receive_buffer;    // bytes; 0: as the system likes
} ws_def;

// False when the server does not make a WebSocket of it; *out_status is what it answered (0: nothing).
// out_status may be NULL.
bool ws_open(ws_client *c, const ws_def *def, int *out_status);
void ws_end(ws_client *c);  // without a word
bool ws_send(ws_client *c, int opcode, const void *bytes, size_t length);
bool ws_say(ws_client *c, const char *text);
bool ws_send_raw(ws_client *c, const void *bytes, size_t length);  // bytes as they are, without a frame
// The next whole text or binary message within the time; c->opcode, message and n_message say what. Pings are
// answered.
bool ws_next(ws_client *c, int timeout_ms);

// A whole answer to a GET: the status (0: none), and its body in *out_body (to be freed; ends with a 0 that
// is not counted).
int ws_get(int port, const char *path, char **out_body, size_t *out_length);

#endif

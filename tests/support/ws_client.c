#include "ws_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };  // for the server to answer a request

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int connect_to(int port, int receive_buffer) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0) return -1;
    if (receive_buffer) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

static bool send_all(int fd, const void *bytes, size_t length) {
    for (size_t at = 0; at < length;) {
        ssize_t n = send(fd, (const char *)bytes + at, length - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

// More bytes into a buffer, waiting for at most so long. -1: none came in time; 0: the end.
static ssize_t receive(int fd, uint8_t **buf, size_t *n, size_t *cap, int64_t until) {
    int64_t left = until - now_ms();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, left > 0 ? (int)left : 0) <= 0) return -1;
    if (*cap - *n < 65536) {
        uint8_t *more = realloc(*buf, *cap + 131072);
        if (!more) return 0;
        *buf = more;
        *cap += 131072;
    }
    ssize_t got = recv(fd, *buf + *n, *cap - *n - 1, 0);
    if (got > 0) *n += (size_t)got;
    return got < 0 ? 0 : got;
}

// Up to the end of the headers. The bytes stay; *out_end is where the body begins, 0 when there is none in
// time.
static void read_headers(int fd, uint8_t **buf, size_t *n, size_t *cap, size_t *out_end) {
    int64_t until = now_ms() + PATIENCE_MS;
    *out_end = 0;
    for (;;) {
        const uint8_t *end = *n ? memmem(*buf, *n, "\r\n\r\n", 4) : NULL;
        if (end) *out_end = (size_t)(end - *buf) + 4;
        if (end || receive(fd, buf, n, cap, until) <= 0) return;
    }
}

static int status_of(const uint8_t *answer, size_t n) {
    return n > 12 && memcmp(answer, "HTTP/1.", 7) == 0 ? atoi((const char *)answer + 9) : 0;
}

bool ws_open(ws_client *c, const ws_def *def, int *out_status) {
    memset(c, 0, sizeof *c);
    if (out_status) *out_status = 0;
    c->fd = connect_to(def->port, def->receive_buffer);
    if (c->fd < 0) {
        c->is_closed = true;
        return false;
    }
    char request[2048];
    int n =
        snprintf(request, sizeof request,
                 "GET %s HTTP/1.1\r\nHost: localhost:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: "
                 "13\r\nSec-WebSocket-Protocol: %s\r\n%s%s%s\r\n",
                 def->path ? def->path : "/", def->port, def->protocol ? def->protocol : "understudy.v1",
                 def->origin ? "Origin: " : "", def->origin ? def->origin : "", def->origin ? "\r\n" : "");
    size_t end = 0;
    if (send_all(c->fd, request, (size_t)n)) read_headers(c->fd, &c->in, &c->n_in, &c->cap_in, &end);
    int status = end ? status_of(c->in, end) : 0;
    if (out_status) *out_status = status;
    // What the key above must be answered with.
    if (status != 101 || !memmem(c->in, end, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 28)) {
        ws_end(c);
        return false;
    }
    memmove(c->in, c->in + end, c->n_in - end);
    c->n_in -= end;
    return true;
}

void ws_end(ws_client *c) {
    if (c->fd >= 0) close(c->fd);
    free(c->in);
    free(c->message);
    memset(c, 0, sizeof *c);
    c->fd = -1;
    c->is_closed = true;
}

bool ws_send_raw(ws_client *c, const void *bytes, size_t length) { return send_all(c->fd, bytes, length); }

bool ws_send(ws_client *c, int opcode, const void *bytes, size_t length) {
    static const uint8_t mask[4] = {0x12, 0x34, 0x56, 0x78};
    uint8_t *frame = malloc(length + 14);
    if (!frame) return false;
    size_t at = 0;
    frame[at++] = (uint8_t)(0x80 | opcode);
    int n_size = length < 126 ? 0 : length < 65536 ? 2 : 8;
    frame[at++] = (uint8_t)(0x80 | (n_size == 0 ? length : n_size == 2 ? 126 : 127));
    for (int i = n_size - 1; i >= 0; i--)
        frame[at++] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(frame + at, mask, 4);
    at += 4;
    for (size_t i = 0; i < length; i++)
        frame[at + i] = ((const uint8_t *)bytes)[i] ^ mask[i % 4];
    bool is_sent = send_all(c->fd, frame, at + length);
    free(frame);
    return is_sent;
}

bool ws_say(ws_client *c, const char *text) { return ws_send(c, WS_TEXT, text, strlen(text)); }

// Takes one frame out of what has come. 0: it is not whole yet.
static size_t frame_at(const ws_client *c, size_t *out_head, size_t *out_length) {
    if (c->n_in < 2) return 0;
    size_t head = 2, length = c->in[1] & 0x7f;
    int n_size = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (c->n_in < head + (size_t)n_size) return 0;
    if (n_size) length = 0;
    for (int i = 0; i < n_size; i++)
        length = length << 8 | c->in[head++];
    *out_head = head;
    *out_length = length;
    return c->n_in - head >= length ? head + length : 0;
}

static bool keep(ws_client *c, const uint8_t *bytes, size_t length) {
    if (c->n_message + length + 1 > c->cap_message) {
        uint8_t *more = realloc(c->message, c->n_message + length + 4096);
        if (!more) return false;
        c->message = more;
        c->cap_message = c->n_message + length + 4096;
    }
    memcpy(c->message + c->n_message, bytes, length);
    c->n_message += length;
    c->message[c->n_message] = 0;
    return true;
}

bool ws_next(ws_client *c, int timeout_ms) {
    int64_t until = now_ms() + timeout_ms;
    bool is_new = true;
    while (!c->is_closed) {
        size_t head = 0, length = 0, size = frame_at(c, &head, &length);
        if (size == 0) {
            ssize_t got = receive(c->fd, &c->in, &c->n_in, &c->cap_in, until);
            if (got == 0) c->is_closed = true;
            if (got <= 0) return false;
            continue;
        }
        int opcode = c->in[0] & 0xf;
        bool is_last = (c->in[0] & 0x80) != 0, is_whole = false;
        if (opcode == WS_CLOSE) {
            c->close_code = length >= 2 ? c->in[head] << 8 | c->in[head + 1] : 0;
            c->is_closed = true;
        } else if (opcode == WS_PING) {
            ws_send(c, 10, c->in + head, length);
        } else if (opcode <= WS_BINARY) {
            if (opcode) c->opcode = opcode;
            if (is_new) c->n_message = 0;
            is_new = false;
            is_whole = keep(c, c->in + head, length) && is_last;
        }
        memmove(c->in, c->in + size, c->n_in - size);
        c->n_in -= size;
        if (is_whole) return true;
    }
    return false;
}

int ws_get(int port, const char *path, char **out_body, size_t *out_length) {
    uint8_t *buf = NULL;
    size_t n = 0, cap = 0, end = 0;
    int fd = connect_to(port, 0), status = 0;
    char request[2048];
    *out_body = NULL;
    *out_length = 0;
    if (fd < 0) return 0;
    int length = snprintf(
        request, sizeof request,
        "GET %s HTTP/1.1\r\nHost: localhost:%d\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n", path,
        port);
    if (send_all(fd, request, (size_t)length)) read_headers(fd, &buf, &n, &cap, &end);
    if (end) {
        status = status_of(buf, end);
        buf[end - 1] = 0;
        const char *field = strcasestr((const char *)buf, "content-length:");
        size_t wanted = field ? (size_t)strtoull(field + 15, NULL, 10) : 0;
        int64_t until = now_ms() + PATIENCE_MS;
        while (n - end < wanted && receive(fd, &buf, &n, &cap, until) > 0) {
        }
        *out_length = n - end < wanted ? n - end : wanted;
        *out_body = malloc(*out_length + 1);
        if (*out_body) {
            memcpy(*out_body, buf + end, *out_length);
            (*out_body)[*out_length] = 0;
        }
    }
    free(buf);
    close(fd);
    return status;
}

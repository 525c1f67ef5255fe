// Any bytes as what a client of the page sends after its handshake: a real server, a real socket, a world
// that steps. The connection may be closed at any time; the server goes on.
//
// Each record of the input is a message: one byte of its kind (1 text, 2 binary, 8 close, 9 ping; the highest
// bit: sent as it is, header and all), two of its length, its bytes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "understudy/view.h"
#include "understudy/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_MESSAGE = 65535 };

static us_world *world;
static us_view *view;
static uint16_t port;

static void must(bool is_so) {
    if (!is_so) abort();
}

static void start(void) {
    static const char scene[] =
        "<scene name='s' version='1'><world><shape name='ground' type='half-space' surface='soil'/></world>"
        "<material name='soil'/><object name='stone' xyz='0 0 1'><link name='l' density='1000'>"
        "<shape type='sphere' size='0.1'/></link></object></scene>";
    us_error err = {0};
    us_spec *spec = NULL;
    must(!us_spec_load_text(scene, sizeof scene - 1, "scene.xml", NULL, &spec, &err));
    us_world_def def = us_world_def_default();
    must(!us_world_create(spec, &def, &world, &err));
    us_spec_destroy(spec);
    us_view_def page = us_view_def_default();
    page.port = 0;
    must(!us_view_create(world, &page, &view, &err));
    const char *colon = strrchr(us_view_url(view), ':');
    must(colon != NULL);
    port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

static void turn(void) {
    us_error err = {0};
    us_world_poll(world);
    // What a client asks for may make the motion diverge: a clear error, and here the end of that world.
    if (us_world_step(world, &err)) {
        must(err.message[0] != 0);
        us_view_destroy(view);
        us_world_destroy(world);
        start();
    }
    us_view_show(view, NULL);
}

static int open_socket(void) {
    char hello[400];
    const int n =
        snprintf(hello, sizeof hello,
                 "GET / HTTP/1.1\r\nHost: localhost:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Protocol: understudy.v1\r\n\r\n",
                 (int)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    must(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0 ||
        send(fd, hello, (size_t)n, MSG_NOSIGNAL) != n) {
        close(fd);
        return -1;
    }
    return fd;
}

// A frame with a mask of zeros, as clients must have one.
static size_t frame(uint8_t kind, const uint8_t *bytes, size_t n, uint8_t *out) {
    size_t at = 0;
    out[at++] = (uint8_t)(0x80 | (kind & 15));
    if (n < 126) {
        out[at++] = (uint8_t)(0x80 | n);
    } else {
        out[at++] = 0x80 | 126;
        out[at++] = (uint8_t)(n >> 8);
        out[at++] = (uint8_t)n;
    }
    memset(out + at, 0, 4);
    at += 4;
    memcpy(out + at, bytes, n);
    return at + n;
}

// Takes what the server says, until it is silent or ends the connection.
static void listen_to(int fd, int timeout_ms) {
    char bytes[4096];
    struct pollfd at = {fd, POLLIN, 0};
    for (int n = 0; n < 16 && poll(&at, 1, timeout_ms) > 0; n++) {
        if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t out[MAX_MESSAGE + 16];
    if (!world) start();
    int fd = open_socket();
    if (fd < 0) return 0;
    // Nobody else is there: a server that is busy or full has lost a connection.
    char welcome[12] = "";
    must(recv(fd, welcome, sizeof welcome, MSG_WAITALL) == (ssize_t)sizeof welcome &&
         memcmp(welcome, "HTTP/1.1 101", sizeof welcome) == 0);
    for (size_t at = 0; at + 3 <= size;) {
        size_t n = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
        if (n > size - at - 3) n = size - at - 3;
        const uint8_t *bytes = data + at + 3;
        ssize_t sent = 0;
        if (data[at] & 0x80) {
            sent = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        } else {
            sent = send(fd, out, frame(data[at], bytes, n, out), MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        if (sent < 0) break;
        at += 3 + n;
        turn();
    }
    listen_to(fd, 1);
    turn();
    close(fd);
    turn();
    return 0;
}

// The web server under test, and raw sockets that talk to it: they say what they are told to, also what no
// browser would.
#ifndef UNDERSTUDY_TEST_WEB_SUPPORT_H
#define UNDERSTUDY_TEST_WEB_SUPPORT_H

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocator.h"
#include "bus/web.h"

#define DEADLINE 20.0  // s: for what takes milliseconds; a busy machine may take its time
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  // of KEY, from RFC 6455, 1.3

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define WAIT_UNTIL(condition)                             \
    for (double end_ = now() + DEADLINE; !(condition);) { \
        if (now() > end_) fail_msg("never: " #condition); \
        nanosleep(&(struct timespec){0, 1000000}, NULL);  \
    }

// ---- The server's side ----

enum { MAX_SESSION = 128, PICTURE = 32768 };

typedef struct session {
    usi_web_client *client;
    bool is_flooded;
    struct rig *rig;
} session;

typedef struct rig {
    test_allocator memory;
    usi_web *web;
    int32_t port;
    session sessions[MAX_SESSION];
    atomic_int n_open, n_opened, n_closed, n_message, n_drained, n_wake, n_refused, n_full, n_wrong_thread;
    atomic_int n_sent, n_replaced;
    _Atomic pthread_t thread;
    char last_refused[400];  // by the server's thread; read after n_refused
} rig;

static inline void check_thread(rig *r) {
    if (atomic_load(&r->thread) == 0) atomic_store(&r->thread, pthread_self());
    if (!pthread_equal(atomic_load(&r->thread), pthread_self())) atomic_fetch_add(&r->n_wrong_thread, 1);
}

static inline us_status on_open(void *context, usi_web_client *client, void **out_session) {
    rig *r = context;
    check_thread(r);
    for (int k = 0; k < MAX_SESSION; k++) {
        if (r->sessions[k].client) continue;
        r->sessions[k] = (session){client, strcmp(usi_web_client_protocol(client), "flood.v1") == 0, r};
        *out_session = &r->sessions[k];
        atomic_fetch_add(&r->n_open, 1);
        atomic_fetch_add(&r->n_opened, 1);
        return US_OK;
    }
    return US_ERR_LIMIT;
}

// Echoes, and obeys some words.
static inline void on_message(void *context, void *of, bool is_binary, const void *bytes, size_t length) {
    rig *r = context;
    session *s = of;
    check_thread(r);
    atomic_fetch_add(&r->n_message, 1);
    char text[200];
    if (length == 5 && memcmp(bytes, "close", 5) == 0) {
        usi_web_close(s->client, "as you wish");
        assert_false(usi_web_send(s->client, false, "x", 1));
    } else if (length == 3 && memcmp(bytes, "who", 3) == 0) {
        int n = snprintf(text, sizeof text, "%s %s %d", usi_web_client_name(s->client),
                         usi_web_client_protocol(s->client), usi_web_get_role(s->client) > USI_ROLE_LOOK);
        usi_web_send(s->client, false, text, (size_t)n);
    } else {
        usi_web_send(s->client, is_binary, bytes, length);
    }
}

static inline void on_drained(void *context, void *of) {
    (void)of;
    rig *r = context;
    check_thread(r);
    atomic_fetch_add(&r->n_drained, 1);
}

static inline void on_close(void *context, void *of) {
    rig *r = context;
    session *s = of;
    check_thread(r);
    assert_false(usi_web_send(s->client, false, "x", 1));
    s->client = NULL;
    atomic_fetch_sub(&r->n_open, 1);
    atomic_fetch_add(&r->n_closed, 1);
}

static inline void on_wake(void *context) {
    rig *r = context;
    check_thread(r);
    atomic_fetch_add(&r->n_wake, 1);
    static const unsigned char picture[PICTURE];
    for (int k = 0; k < MAX_SESSION; k++) {
        session *s = &r->sessions[k];
        if (!s->client || !s->is_flooded) continue;
        if (usi_web_send(s->client, true, picture, sizeof picture)) {
            atomic_fetch_add(&r->n_sent, 1);
        } else {
            assert_true(usi_web_backlog(s->client) > 0);
            atomic_fetch_add(&r->n_full, 1);
        }
    }
}

static inline void on_get(void *context, const char *path, usi_web_answer *out) {
    rig *r = context;
    check_thread(r);
    size_t n = strcmp(path, "/api/large") == 0 ? 3000000 : strcmp(path, "/api/small") == 0 ? 5 : 0;
    if (n == 0) {
        *out = (usi_web_answer){.status = strcmp(path, "/api/old") == 0 ? 410 : 404};
        return;
    }
    *out = (usi_web_answer){200, "application/json", usi_alloc(&r->memory.allocator, n, 1), n};
    assert_non_null(out->bytes);
    memset(out->bytes, 'j', n);
}

static inline void on_refused(void *context, const char *text) {
    rig *r = context;
    check_thread(r);
    snprintf(r->last_refused, sizeof r->last_refused, "%s", text);
    if (strstr(text, " has its place")) atomic_fetch_add(&r->n_replaced, 1);
    atomic_fetch_add(&r->n_refused, 1);
}

static const usi_web_file files[] = {
    {"/index.html", "text/html; charset=utf-8", "not really gzip", 15, false},
    {"/assets/app-1a2b.js", "text/javascript", "code", 4, true},
};

static const char *const guests[] = {"http://guest.example", "file://", NULL};

static const usi_web_protocol protocols[] = {
    {"echo.v1", NULL, 65536, 1 << 20, NULL, NULL, on_open, on_message, on_drained, on_close},
    {"flood.v1", "flood", 4096, 1 << 20, NULL, guests, on_open, on_message, NULL, on_close},
};

static inline usi_web_def def_of(rig *r) {
    return (usi_web_def){.allocator = r->memory.allocator,
                         .files = files,
                         .n_file = 2,
                         .protocols = protocols,
                         .n_protocol = 2,
                         .context = r,
                         .get = on_get,
                         .wake = on_wake,
                         .refused = on_refused};
}

static inline rig *make_rig(void) {
    rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    test_allocator_init(&r->memory);
    return r;
}

static inline rig *begin_def(rig *r, const usi_web_def *def) {
    us_error err = {0};
    assert_int_equal(usi_web_create(def, &r->web, &err), US_OK);
    r->port = usi_web_port(r->web);
    assert_in_range(r->port, 1, 65535);
    return r;
}

static inline rig *begin_for(int32_t max_client, const char *token, const char *address, int32_t timeout,
                             int32_t ping) {
    rig *r = make_rig();
    usi_web_def def = def_of(r);
    def.token = token;
    def.address = address;
    def.timeout = timeout;
    def.ping = ping;
    def.max_client = max_client;
    return begin_def(r, &def);
}

static inline rig *begin(const char *token, const char *address, int32_t timeout, int32_t ping) {
    return begin_for(0, token, address, timeout, ping);
}

static inline void end(rig *r) {
    usi_web_destroy(r->web);
    assert_int_equal(r->n_open, 0);
    assert_int_equal(r->n_opened, r->n_closed);
    assert_int_equal(r->n_wrong_thread, 0);
    test_allocator_check(&r->memory);
    free(r);
}

// ---- The client's side ----

// From the address 127.0.0.`last`: each is somebody else.
static inline int dial_from(const rig *r, uint32_t last) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7F000000u | last)};
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)r->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    struct timeval most = {(time_t)DEADLINE, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    return fd;
}

static inline int dial(const rig *r) { return dial_from(r, 1); }

static inline void say(int fd, const void *bytes, size_t length) {
    for (size_t at = 0; at < length;) {
        ssize_t n = send(fd, (const char *)bytes + at, length - at, MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) return;  // it has had enough
        assert_true(n > 0);
        at += (size_t)n;
    }
}

static inline void say_text(int fd, const char *text) { say(fd, text, strlen(text)); }

// Exactly so many bytes; false: it has ended.
static inline bool hear(int fd, void *out, size_t length) {
    for (size_t at = 0; at < length;) {
        ssize_t n = recv(fd, (char *)out + at, length - at, 0);
        if (n < 0 && errno != ECONNRESET) fail_msg("nothing heard: %s", strerror(errno));
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

static inline void hear_end(int fd) {
    char c[256];
    for (;;) {
        ssize_t n = recv(fd, c, sizeof c, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET)) return;
        if (n < 0) fail_msg("it does not end: %s", strerror(errno));
    }
}

// The head of an answer, with the empty line; "" when there is none.
static inline void hear_head(int fd, char *out, size_t cap) {
    size_t n = 0;
    while (n + 1 < cap && (n < 4 || memcmp(out + n - 4, "\r\n\r\n", 4) != 0)) {
        if (!hear(fd, out + n, 1)) break;
        n++;
    }
    out[n] = 0;
}

typedef struct answer {
    int status;
    char head[4096];
    char body[256];
    size_t length;
} answer;

static inline const char *header(const answer *a, const char *name) {
    static char value[600];
    for (const char *line = strstr(a->head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        size_t n = strlen(name);
        if (strncasecmp(line + 2, name, n) != 0 || line[2 + n] != ':') continue;
        const char *at = line + 3 + n + strspn(line + 3 + n, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
        return value;
    }
    return NULL;
}

static inline answer hear_answer(int fd, bool has_body) {
    answer a = {0};
    hear_head(fd, a.head, sizeof a.head);
    if (sscanf(a.head, "HTTP/1.1 %d", &a.status) != 1) return a;
    const char *length = header(&a, "Content-Length");
    if (!length || !has_body) return a;
    size_t left = strtoul(length, NULL, 10);
    char *body = malloc(left + 1);
    assert_non_null(body);
    assert_true(hear(fd, body, left));
    a.length = left;
    memcpy(a.body, body, left < sizeof a.body ? left : sizeof a.body - 1);
    free(body);
    return a;
}

// A whole request on a connection of its own. `more`: header lines.
static inline answer ask(const rig *r, const char *line, const char *more) {
    int fd = dial(r);
    char request[1024];
    snprintf(request, sizeof request, "%s HTTP/1.1\r\n%s%s\r\n", line,
             strstr(more, "Host:") ? "" : "Host: localhost\r\n", more);
    say_text(fd, request);
    answer a = hear_answer(fd, strncmp(line, "HEAD", 4) != 0);
    close(fd);
    return a;
}

// A WebSocket's first words. `more`: header lines; `path` may have a token.
static inline void say_upgrade(int fd, const char *path, const char *protocol, const char *more) {
    char request[1024];
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
             "Sec-WebSocket-Key: " KEY
             "\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: %s\r\n%s\r\n",
             path, protocol, more);
    say_text(fd, request);
}

static inline int join_as(const rig *r, const char *path, const char *protocol, const char *more) {
    int fd = dial(r);
    say_upgrade(fd, path, protocol, more);
    answer a = hear_answer(fd, false);
    assert_int_equal(a.status, 101);
    assert_string_equal(header(&a, "Sec-WebSocket-Accept"), ACCEPT);
    return fd;
}

static inline int join(const rig *r, const char *protocol) { return join_as(r, "/", protocol, ""); }

// One frame, masked, with any first byte.
static inline void say_frame(int fd, unsigned char first, const void *bytes, size_t length) {
    unsigned char *frame = malloc(length + 14);
    assert_non_null(frame);
    static const unsigned char mask[4] = {0x12, 0x34, 0x56, 0x78};
    size_t n = 0;
    frame[n++] = first;
    if (length < 126) {
        frame[n++] = (unsigned char)(0x80 | length);
    } else if (length < 65536) {
        frame[n++] = 0x80 | 126;
        frame[n++] = (unsigned char)(length >> 8);
        frame[n++] = (unsigned char)length;
    } else {
        frame[n++] = 0x80 | 127;
        for (int k = 7; k >= 0; k--)
            frame[n++] = (unsigned char)((uint64_t)length >> 8 * k);
    }
    memcpy(frame + n, mask, 4);
    n += 4;
    for (size_t i = 0; i < length; i++)
        frame[n++] = ((const unsigned char *)bytes)[i] ^ mask[i & 3];
    say(fd, frame, n);
    free(frame);
}

typedef struct frame {
    int first;  // -1: the connection has ended
    size_t length;
    unsigned char bytes[70000];
} frame;

static inline frame *hear_frame(int fd) {
    static frame f;
    unsigned char head[2], more[8];
    f.first = -1;
    f.length = 0;
    if (!hear(fd, head, 2)) return &f;
    assert_int_equal(head[1] & 0x80, 0);
    f.length = head[1] & 0x7F;
    int n = f.length == 126 ? 2 : f.length == 127 ? 8 : 0;
    if (n) {
        f.length = 0;
        if (!hear(fd, more, (size_t)n)) return &f;
        for (int k = 0; k < n; k++)
            f.length = f.length << 8 | more[k];
    }
    assert_true(f.length < sizeof f.bytes);
    if (hear(fd, f.bytes, f.length)) f.first = head[0];
    f.bytes[f.length] = 0;
    return &f;
}

// The code of the close frame that comes next among others; 0: it ended without one.
static inline int hear_close(int fd) {
    for (;;) {
        frame *f = hear_frame(fd);
        if (f->first < 0) return 0;
        if (f->first == 0x88) return f->length >= 2 ? f->bytes[0] << 8 | f->bytes[1] : 1005;
    }
}

static inline void check_echo(int fd) {
    say_frame(fd, 0x81, "hello", 5);
    frame *f = hear_frame(fd);
    while (f->first == 0x89)  // a ping
        f = hear_frame(fd);
    assert_int_equal(f->first, 0x81);
    assert_string_equal((char *)f->bytes, "hello");
}

static inline int count_descriptors(void) {
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

#endif

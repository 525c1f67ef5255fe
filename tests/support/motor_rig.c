#include "motor_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

double rig_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- A server and what it hands over ----

motor_rig rig;

static void on_command(void *context, int32_t client, const usi_motor_command *command, const char *text,
                       size_t length) {
    motor_rig *g = context;
    pthread_mutex_lock(&g->mutex);
    rig_command *t = &g->taken[g->n_taken % RIG_MAX_COMMAND];
    t->client = client;
    t->command = *command;
    memcpy(t->text, text, length);
    t->length = length;
    g->n_taken++;
    bool is_prompt = g->is_prompt;
    if (is_prompt) g->n_answered++;
    pthread_mutex_unlock(&g->mutex);
    if (is_prompt) usi_motor_server_ack(g->server, client, text, length);
}

void rig_answer_all(void) {
    pthread_mutex_lock(&rig.mutex);
    for (; rig.n_answered < rig.n_taken; rig.n_answered++) {
        rig_command *t = &rig.taken[rig.n_answered % RIG_MAX_COMMAND];
        assert_int_equal(usi_motor_server_ack(rig.server, t->client, t->text, t->length), US_OK);
    }
    pthread_mutex_unlock(&rig.mutex);
}

int32_t rig_n_taken(void) {
    pthread_mutex_lock(&rig.mutex);
    int32_t n = rig.n_taken;
    pthread_mutex_unlock(&rig.mutex);
    return n;
}

static const us_motor_def motors[] = {{"FLDR", 0}, {"FRDR", 1}, {"ARM1", 2}};

usi_motor_server_def rig_def(void) {
    usi_motor_server_def def = usi_motor_server_def_default();
    def.n_motor = 3;
    def.motors = motors;
    def.on_command = on_command;
    def.context = &rig;
    return def;
}

void rig_start(const usi_motor_server_def *def, bool is_prompt) {
    rig.n_taken = rig.n_answered = 0;
    rig.is_prompt = is_prompt;
    pthread_mutex_init(&rig.mutex, NULL);
    us_error err;
    if (usi_motor_server_create(def, &rig.server, &err)) fail_msg("%s\n%s", err.message, err.remedy);
}

void rig_stop(void) {
    usi_motor_server_destroy(rig.server);
    rig.server = NULL;
    pthread_mutex_destroy(&rig.mutex);
}

// ---- A client ----

int rig_connect(int kind, int receive_buffer) {
    int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (receive_buffer)
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer), 0);
    struct timeval patience = {.tv_sec = RIG_DEADLINE};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)usi_motor_server_port(rig.server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

rig_peer *rig_open(int kind) {
    rig_peer *p = malloc(sizeof *p);
    assert_non_null(p);
    p->fd = rig_connect(kind, 0);
    p->at = p->end = 0;
    return p;
}

void rig_close(rig_peer *p) {
    close(p->fd);
    free(p);
}

void rig_say(rig_peer *p, const char *text) {
    assert_int_equal(send(p->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

bool rig_hear(rig_peer *p, char *out, size_t cap) {
    for (;;) {
        char *semicolon = memchr(p->in + p->at, ';', p->end - p->at);
        if (semicolon) {
            size_t n = (size_t)(semicolon - (p->in + p->at));
            assert_in_range(n, 0, cap - 1);
            memcpy(out, p->in + p->at, n);
            out[n] = 0;
            p->at += n + 1;
            return true;
        }
        memmove(p->in, p->in + p->at, p->end - p->at);
        p->end -= p->at;
        p->at = 0;
        ssize_t n = recv(p->fd, p->in + p->end, sizeof p->in - p->end, 0);
        if (n < 0 && errno == EAGAIN) fail_msg("the server is silent");
        if (n <= 0) return false;
        p->end += (size_t)n;
    }
}

void rig_hear_next(rig_peer *p, const char *keyword, char *out, size_t cap) {
    do {
        if (!rig_hear(p, out, cap)) fail_msg("the connection ended before a %s came", keyword);
    } while (strncmp(out, keyword, strlen(keyword)) != 0);
}

void rig_expect(rig_peer *p, const char *expected) {
    char text[256];
    if (!rig_hear(p, text, sizeof text)) fail_msg("the connection ended before \"%s\" came", expected);
    assert_string_equal(text, expected);
}

void rig_expect_end(rig_peer *p) {
    char text[256];
    if (rig_hear(p, text, sizeof text)) fail_msg("\"%s\" instead of the connection's end", text);
}

// A client of the ASCII link: a descriptor, a buffer of what came, and calls that wait with a time-out.
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "understudy/link.h"
#include "wire/motor.h"

struct us_link_client {
    us_link_client_def def;
    int fd;
    bool is_datagram, is_socket;
    size_t at, end;
    char in[4096];  // what came and is not read yet: at least the longest message, and a datagram
};

us_link_client_def us_link_client_def_default(void) {
    return (us_link_client_def){.allocator = us_allocator_default(), .timeout = 5};
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Until the descriptor is ready, or the time is over.
static bool wait_for(int fd, short what, double end) {
    for (;;) {
        const double left = end - now();
        struct pollfd p = {.fd = fd, .events = what};
        const int n = poll(&p, 1, left > 0 ? (int)(left < 1e6 ? left * 1e3 + 1 : 1e9) : 0);
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) return true;  // what is wrong is told by what comes next
        if (n == 0 && end - now() <= 0) return false;
    }
}

// ---------------------------------------------------------------- addresses

// "[::1]:5010", "127.0.0.1:5010".
static bool split_address(const char *text, char host[64], char port[8]) {
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || !colon[1] || strlen(colon + 1) >= 8) return false;
    const bool is_bracketed = text[0] == '[' && colon[-1] == ']';
    const char *begin = text + is_bracketed, *end = colon - is_bracketed;
    if (end <= begin || end - begin >= 64) return false;
    snprintf(host, 64, "%.*s", (int)(end - begin), begin);
    snprintf(port, 8, "%s", colon + 1);
    if (strcmp(host, "localhost") == 0) snprintf(host, 64, "127.0.0.1");
    return true;
}

static bool finish_connecting(int fd, double end) {
    int why = 0;
    socklen_t length = sizeof why;
    if (!wait_for(fd, POLLOUT, end)) {
        errno = ETIMEDOUT;
        return false;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &length)) return false;
    errno = why;
    return why == 0;
}

// -1 with errno.
static int open_socket(const struct addrinfo *at, double end) {
    const int fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    bool ok = connect(fd, at->ai_addr, at->ai_addrlen) == 0;
    if (!ok && errno == EINPROGRESS) ok = finish_connecting(fd, end);
    const int one = 1;
    if (ok && at->ai_socktype == SOCK_STREAM)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (ok) return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static us_status open_network(us_link_client *c, const char *address, us_error *err) {
    char host[64], port[8];
    const char *const remedy =
        "Write tcp:ADDRESS:PORT, udp:ADDRESS:PORT or serial:PATH, the address in numbers.";
    struct addrinfo hint = {.ai_family = AF_UNSPEC,
                            .ai_socktype = c->is_datagram ? SOCK_DGRAM : SOCK_STREAM,
                            .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV},
                    *found = NULL;
    if (!split_address(address + 4, host, port) || getaddrinfo(host, port, &hint, &found))
        return us_error_set(err, US_ERR_SYNTAX, NULL, remedy, "\"%.100s\" is no address of a link", address);
    c->fd = open_socket(found, now() + c->def.timeout);
    freeaddrinfo(found);
    if (c->fd >= 0) return US_OK;
    return us_error_set(err, US_ERR_IO, NULL,
                        "See that the robot runs and which port it says it has (\"motors of ...\").",
                        "nobody answers at %.100s: %s", address, strerror(errno));
}

// A line discipline that leaves the bytes alone.
static us_status open_serial(us_link_client *c, const char *path, us_error *err) {
    struct termios t;
    c->fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (c->fd < 0)
        return us_error_set(err, US_ERR_IO, NULL,
                            "See that the robot runs, and with which --serial directory.",
                            "%.200s cannot be opened: %s", path, strerror(errno));
    if (tcgetattr(c->fd, &t) == 0) {
        cfmakeraw(&t);
        (void)tcsetattr(c->fd, TCSANOW, &t);
    }
    return US_OK;
}

us_status us_link_client_open(const char *address, const us_link_client_def *def, us_link_client **out_client,
                              us_error *err) {
    if (!address || !out_client)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "a link needs an address and a place for the client");
    *out_client = NULL;
    us_link_client_def d = def ? *def : us_link_client_def_default();
    us_link_client *c = usi_alloc(&d.allocator, sizeof *c, _Alignof(us_link_client));
    if (!c) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for a client of a link");
    memset(c, 0, sizeof *c);
    c->def = d;
    c->fd = -1;
    c->is_datagram = strncmp(address, "udp:", 4) == 0;
    c->is_socket = c->is_datagram || strncmp(address, "tcp:", 4) == 0;
    us_status status = US_OK;
    if (c->is_socket) {
        status = open_network(c, address, err);
    } else if (strncmp(address, "serial:", 7) == 0) {
        status = open_serial(c, address + 7, err);
    } else {
        status =
            us_error_set(err, US_ERR_SYNTAX, NULL, "Write tcp:ADDRESS:PORT, udp:ADDRESS:PORT or serial:PATH.",
                         "\"%.100s\" is no address of a link", address);
    }
    if (status) {
        us_link_client_close(c);
        return status;
    }
    *out_client = c;
    return US_OK;
}

void us_link_client_close(us_link_client *client) {
    if (!client) return;
    if (client->fd >= 0) close(client->fd);
    us_allocator a = client->def.allocator;
    usi_release(&a, client, sizeof *client, _Alignof(us_link_client));
}

int us_link_client_descriptor(const us_link_client *client) { return client ? client->fd : -1; }

// ---------------------------------------------------------------- out

static us_status ended(us_error *err) {
    return us_error_set(err, US_ERR_IO, NULL, "Connect again.", "the robot has closed the link");
}

us_status us_link_client_send(us_link_client *client, const char *commands, us_error *err) {
    if (!client || !commands) return us_error_set(err, US_ERR_ARG, NULL, NULL, "there is nothing to send");
    char text[2048];
    size_t n = strlen(commands);
    if (n + 2 > sizeof text || (client->is_datagram && n > 1400))
        return us_error_set(err, US_ERR_LIMIT, NULL, "Send them in parts.", "%zu bytes at once", n);
    memcpy(text, commands, n);
    if (n == 0 || text[n - 1] != ';') text[n++] = ';';
    const double end = now() + client->def.timeout;
    for (size_t at = 0; at < n;) {
        const ssize_t done = client->is_socket ? send(client->fd, text + at, n - at, MSG_NOSIGNAL)
                                               : write(client->fd, text + at, n - at);
        if (done >= 0) {
            at += (size_t)done;
        } else if (errno == EAGAIN) {
            if (!wait_for(client->fd, POLLOUT, end))
                return us_error_set(err, US_ERR_LIMIT, NULL, "Send less, or read what the robot sends.",
                                    "the link took nothing for %g s", client->def.timeout);
        } else if (errno != EINTR) {
            return ended(err);
        }
    }
    return US_OK;
}

// ---------------------------------------------------------------- in

// The next whole message of the buffer, without its ';'.
static bool take_text(us_link_client *c, const char **out, size_t *out_length) {
    const char *begin = c->in + c->at, *end = memchr(begin, ';', c->end - c->at);
    if (!end) return false;
    *out = begin;
    *out_length = (size_t)(end - begin);
    c->at += *out_length + 1;
    return true;
}

// One read. False: the other side has ended. What is longer than any message is dropped.
static bool fill(us_link_client *c) {
    memmove(c->in, c->in + c->at, c->end - c->at);
    c->end -= c->at;
    c->at = 0;
    if (c->end > sizeof c->in / 2) c->end = 0;
    const ssize_t n = read(c->fd, c->in + c->end, sizeof c->in - c->end);
    if (n > 0) c->end += (size_t)n;
    // A datagram that reached nobody comes back as a refusal: who listens may still come.
    if (n < 0) return errno == EAGAIN || errno == EINTR || (c->is_datagram && errno == ECONNREFUSED);
    return n > 0 || c->is_datagram;
}

us_status us_link_client_poll(us_link_client *client, double timeout, us_link_message *out, bool *out_has,
                              us_error *err) {
    if (!client || !out || !out_has)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "there is no place for a message");
    const double end = now() + timeout;
    *out_has = false;
    for (;;) {
        const char *text = NULL;
        size_t n = 0;
        while (take_text(client, &text, &n)) {
            if (!us_link_message_parse(text, n, out)) continue;
            if (client->def.on_message) client->def.on_message(client->def.context, out);
            *out_has = true;
            return US_OK;
        }
        if (!wait_for(client->fd, POLLIN, end)) return US_OK;
        if (!fill(client)) return ended(err);
    }
}

// Messages up to the one that `is_it` is looking for. *out_has false: it did not come in time.
typedef bool search_function(const void *context, const us_link_message *m);
static us_status search(us_link_client *c, double end, search_function *is_it, const void *context,
                        us_link_message *out, bool *out_has, us_error *err) {
    for (;;) {
        const double left = end - now();
        us_status status = us_link_client_poll(c, left > 0 ? left : 0, out, out_has, err);
        if (status || !*out_has || is_it(context, out)) return status;
    }
}

static bool is_answer(const void *context, const us_link_message *m) {
    return (m->kind == US_LINK_ACK || m->kind == US_LINK_REFUSAL) && strcmp(m->text, context) == 0;
}

us_status us_link_client_command(us_link_client *client, const char *command, double timeout,
                                 us_link_message *out_refusal, us_error *err) {
    if (!client || !command) return us_error_set(err, US_ERR_ARG, NULL, NULL, "there is no command");
    char copy[US_LINK_TEXT];
    const size_t n = strcspn(command, ";");
    if (n >= sizeof copy || (command[n] == ';' && command[n + 1] != 0))
        return us_error_set(err, US_ERR_ARG, NULL, "Give one command at a time.",
                            "\"%.100s\" is longer than one command", command);
    snprintf(copy, sizeof copy, "%.*s", (int)n, command);
    us_link_message m = {.kind = US_LINK_OTHER};
    bool has = false;
    us_status status = us_link_client_send(client, copy, err);
    if (!status) status = search(client, now() + timeout, is_answer, copy, &m, &has, err);
    if (status) return status;
    if (!has)
        return us_error_set(err, US_ERR_LIMIT, NULL,
                            "Send it again; see that the simulation goes on (it answers between two steps).",
                            "no answer to \"%s\" within %g s", copy, timeout);
    if (m.kind == US_LINK_ACK) return US_OK;
    if (out_refusal) *out_refusal = m;
    return us_error_set(err, US_ERR_VALUE, NULL, "docs/motor-protocol.md explains the word.",
                        "\"%s\" was refused: %s", copy, m.reason);
}

// ---------------------------------------------------------------- motions

static bool is_rover(const void *context, const us_link_message *m) {
    (void)context;
    return m->kind == US_LINK_ROVER;
}

// The end of a motion that came after the one with this number.
static bool is_over(const void *context, const us_link_message *m) {
    const uint32_t before = *(const uint32_t *)context;
    return m->kind == US_LINK_ROVER && m->run != before && m->state != US_ROVER_MOVING;
}

us_status us_link_client_move(us_link_client *client, const char *command, double timeout,
                              us_link_message *out_state, us_error *err) {
    us_link_message m = {.kind = US_LINK_OTHER};
    bool has = false;
    if (!client || !command) return us_error_set(err, US_ERR_ARG, NULL, NULL, "there is no command");
    const double end = now() + timeout;
    // The state that comes with the acknowledgement has the number of the motion before.
    us_status status = us_link_client_command(client, "RGET", client->def.timeout, NULL, err);
    if (!status) status = search(client, now() + client->def.timeout, is_rover, NULL, &m, &has, err);
    if (!status && !has)
        status =
            us_error_set(err, US_ERR_LIMIT, NULL, "Send it again.", "the rover did not say how it stands");
    const uint32_t before = m.run;
    if (!status) status = us_link_client_command(client, command, client->def.timeout, out_state, err);
    if (!status) status = search(client, end, is_over, &before, &m, &has, err);
    if (status) return status;
    if (out_state) *out_state = m;
    if (!has)
        return us_error_set(err, US_ERR_LIMIT, NULL, "Wait longer, or send RSTP.",
                            "\"%.100s\" goes on after %g s", command, timeout);
    if (m.state == US_ROVER_DONE) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, us_rover_error_about(m.error), "\"%.100s\" has %s: %s",
                        command, us_rover_state_word(m.state), us_rover_error_word(m.error));
}

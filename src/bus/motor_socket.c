// Sockets of a motor server, with errors that have a remedy.
#include "bus/motor_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BACKLOG = 512,
    SEND_BUFFER = 65536,  // bytes: some thousand messages. With the system's default of megabytes, a slow
                          // reader would read minutes-old states
    N_TRY = 16,  // ports that are free in TCP but not in UDP are rare: this many in a row do not occur
};

static bool is_same4(const struct sockaddr_in *a, const struct sockaddr_in *b) {
    return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static bool is_same6(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b) {
    return a->sin6_port == b->sin6_port && a->sin6_scope_id == b->sin6_scope_id &&
           memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0;
}

bool usi_motor_address_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    if (a->ss_family != b->ss_family) return false;
    if (a->ss_family == AF_INET)
        return is_same4((const struct sockaddr_in *)a, (const struct sockaddr_in *)b);
    return a->ss_family == AF_INET6 &&
           is_same6((const struct sockaddr_in6 *)a, (const struct sockaddr_in6 *)b);
}

void usi_motor_socket_tune(int fd) {
    const int one = 1, size = SEND_BUFFER;
    // Each is a nicety: a system that refuses one still has a working connection.
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static int32_t port_of(int fd) {
    union {
        struct sockaddr_storage any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    memset(&a, 0, sizeof a);
    socklen_t length = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a.any, &length)) return -1;
    return ntohs(a.any.ss_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

// A bound socket of the kind, or -1 with errno.
static int open_one(const char *address, int32_t port, int kind) {
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hint = {.ai_family = AF_UNSPEC,
                            .ai_socktype = kind,
                            .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE},
                    *found = NULL;
    if (getaddrinfo(address, service, &hint, &found)) {
        errno = EINVAL;
        return -1;
    }
    int fd = socket(found->ai_family, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), why = errno;
    const int one = 1;
    if (fd >= 0) {
        // Connections of a server that has just ended must not keep the next one out. For UDP it would let
        // two servers share a port, unseen.
        bool ok = kind != SOCK_STREAM || !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        ok = ok && !bind(fd, found->ai_addr, found->ai_addrlen) &&
             (kind != SOCK_STREAM || !listen(fd, BACKLOG));
        why = errno;
        if (!ok) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    errno = why;
    return fd;
}

static us_status cannot_open(const char *address, int32_t port, int32_t n_port_more, const char *kind,
                             int why, us_error *err) {
    const char *remedy = "Look at the address and port of the motor server.";
    if (why == EADDRINUSE) {
        remedy = "Give <motors> another port, or end the program that has this one (ss -tulpn shows it). No "
                 "two robots share a port.";
    } else if (why == EACCES) {
        remedy = "Give <motors> a port above 1023: those below belong to the system.";
    } else if (why == EADDRNOTAVAIL || why == EINVAL) {
        remedy = "Write the number of an address that this machine has: 127.0.0.1 for this machine alone, "
                 "0.0.0.0 for all its networks.";
    }
    const char *text = why == EADDRINUSE ? "it is in use by another program"
                       : why == EINVAL   ? "invalid address: give it in numbers"
                                         : strerror(why);
    if (why == EADDRINUSE && port > 0 && n_port_more > 0)
        return us_error_set(err, US_ERR_IO, NULL, remedy,
                            "the motor server cannot open %s ports %d to %d of %s: all are in use", kind,
                            port, port + n_port_more > 65535 ? 65535 : port + n_port_more, address);
    return us_error_set(err, US_ERR_IO, NULL, remedy, "the motor server cannot open %s port %d of %s: %s",
                        kind, port, address, text);
}

// Both sockets on one port; false with errno and the kind of the one that failed.
static bool open_both(const char *address, int32_t port, usi_motor_sockets *out, const char **out_kind) {
    *out_kind = "TCP";
    int tcp = open_one(address, port, SOCK_STREAM);
    if (tcp < 0) return false;
    *out_kind = "UDP";
    int32_t chosen = port_of(tcp);
    int udp = open_one(address, chosen, SOCK_DGRAM), why = errno;
    *out = (usi_motor_sockets){.tcp = tcp, .udp = udp, .port = chosen};
    if (udp >= 0) return true;
    close(tcp);
    *out = (usi_motor_sockets){.tcp = -1, .udp = -1};
    errno = why;
    return false;
}

us_status usi_motor_sockets_open(const char *address, int32_t port, int32_t n_port_more,
                                 usi_motor_sockets *out_sockets, us_error *err) {
    const int32_t n_try = port == 0 ? N_TRY : n_port_more;
    *out_sockets = (usi_motor_sockets){.tcp = -1, .udp = -1};
    int why = EADDRINUSE;
    const char *kind = NULL;
    for (int32_t k = 0; k <= n_try && why == EADDRINUSE; k++) {
        int32_t next = port == 0 ? 0 : port + k;
        if (next > 65535) break;
        if (open_both(address, next, out_sockets, &kind)) return US_OK;
        why = errno;
    }
    return cannot_open(address, port, n_port_more, kind, why, err);
}

void usi_motor_sockets_close(usi_motor_sockets *sockets) {
    if (sockets->tcp >= 0) close(sockets->tcp);
    if (sockets->udp >= 0) close(sockets->udp);
    sockets->tcp = sockets->udp = -1;
}

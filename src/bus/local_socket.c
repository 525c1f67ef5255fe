#include "bus/local_socket.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_PEER = 64 };

typedef struct guard {
    bool is_on, has_failed;
    int32_t n_socket, n_peer;
    uint32_t peer[MAX_PEER];  // IPv4, as the host counts
} guard;

static _Thread_local guard now;

us_status usi_local_sockets_begin(const char *const *peers, int32_t n_peer, us_error *err) {
    now = (guard){0};
    if (n_peer > MAX_PEER)
        return us_error_set(err, US_ERR_LIMIT, NULL, "name fewer peers, or use the range SUBNET",
                            "more than %d peers", MAX_PEER);
    for (int32_t i = 0; i < n_peer; i++) {
        const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
        struct addrinfo *found = NULL;
        if (getaddrinfo(peers[i], NULL, &hints, &found) || !found)
            return us_error_set(err, US_ERR_NAME, NULL,
                                "write addresses or host names that this machine knows",
                                "unknown peer \"%.100s\"", peers[i]);
        struct sockaddr_in address;
        memcpy(&address, found->ai_addr, sizeof address);
        now.peer[now.n_peer++] = ntohl(address.sin_addr.s_addr);
        freeaddrinfo(found);
    }
    now.is_on = true;
    return US_OK;
}

int32_t usi_local_sockets_end(void) {
    now.is_on = false;
    return now.has_failed ? -1 : now.n_socket;
}

// A line of the filter: goes on by so many lines where it is so, and where it is not.
static struct sock_filter load(uint32_t size, int what) {
    return (struct sock_filter)BPF_STMT((uint16_t)(BPF_LD | size | BPF_ABS), (uint32_t)what);
}
static struct sock_filter is(uint32_t value, unsigned int then, unsigned int otherwise) {
    return (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, (uint8_t)then, (uint8_t)otherwise);
}

// Loopback copies of our own multicast, all that comes in on the loopback, and what peers send. A peer's
// address stands in the header of version 4: in one of version 6 there are other bytes at its place, which
// the sender chooses.
static bool attach(int fd) {
    struct sock_filter code[7 + MAX_PEER + 2];
    const unsigned int n = (unsigned int)now.n_peer, refuse = 7 + n, accept = refuse + 1;
    unsigned short at = 0;
    code[at++] = load(BPF_B, SKF_AD_OFF + SKF_AD_PKTTYPE);
    code[at++] = is(PACKET_LOOPBACK, accept - 2, 0);
    code[at++] = load(BPF_W, SKF_AD_OFF + SKF_AD_IFINDEX);
    code[at++] = is(if_nametoindex("lo"), accept - 4, 0);
    code[at++] = load(BPF_W, SKF_AD_OFF + SKF_AD_PROTOCOL);
    code[at++] = is(ETH_P_IP, 0, refuse - 6);
    code[at++] = load(BPF_W, SKF_NET_OFF + 12);
    for (unsigned int i = 0; i < n; i++)
        code[at++] = is(now.peer[i], accept - 8 - i, 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
    const struct sock_fprog program = {at, code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

bool usi_socket_hear_nothing(int fd) {
    struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {1, &refuse};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

static bool is_udp(int fd) {
    int type = 0, family = 0;
    socklen_t length = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length)) return false;
    length = sizeof family;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length)) return false;
    return type == SOCK_DGRAM && (family == AF_INET || family == AF_INET6);
}

// What the socket sends to a group goes to the loopback.
static bool keep_multicast(int fd) {
    const struct ip_mreqn loopback = {.imr_ifindex = (int)if_nametoindex("lo")};
    return syscall(SYS_setsockopt, fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) == 0;
}

// The interface of a request to join a group: by its index, or by its address.
static bool is_on_loopback(const void *value, socklen_t length) {
    struct ip_mreqn request = {0};
    memcpy(&request, value, length < sizeof request ? length : sizeof request);
    if (request.imr_ifindex) return (unsigned int)request.imr_ifindex == if_nametoindex("lo");
    return ntohl(request.imr_address.s_addr) >> 24 == 127;
}

// The symbols are `bind` and `setsockopt`; the names differ, for the C library declares those in a way of its
// own.
US_API int usi_bind(int fd, const struct sockaddr *address, socklen_t length) __asm__("bind");
US_API int usi_bind(int fd, const struct sockaddr *address, socklen_t length) {
    if (now.is_on && is_udp(fd)) {
        now.n_socket++;
        now.has_failed = now.has_failed || !attach(fd) || !keep_multicast(fd);
    }
    return (int)syscall(SYS_bind, fd, address, length);
}

// Joining a group on an interface would be told to the network there. It is not needed: the packets of
// programs of this machine that have joined it reach every socket here.
US_API int usi_setsockopt(int fd, int level, int name, const void *value,
                          socklen_t length) __asm__("setsockopt");
US_API int usi_setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
    if (now.is_on && level == IPPROTO_IP) {
        if (name == IP_MULTICAST_IF) return keep_multicast(fd) ? 0 : -1;
        if (name == IP_ADD_MEMBERSHIP && value && !is_on_loopback(value, length)) return 0;
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}

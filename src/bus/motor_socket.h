// The two sockets of a motor server: TCP and UDP on one address and port, neither of them blocking.
#ifndef USI_BUS_MOTOR_SOCKET_H
#define USI_BUS_MOTOR_SOCKET_H

#include <sys/socket.h>

#include "understudy/base.h"

typedef struct usi_motor_sockets {
    int tcp, udp;  // -1: none
    int32_t port;
} usi_motor_sockets;

// port 0: any that is free in both. n_port_more: further ports to try when `port` is taken. US_ERR_IO has
// which of the two sockets failed, why, and the remedy; then nothing is open.
us_status usi_motor_sockets_open(const char *address, int32_t port, int32_t n_port_more,
                                 usi_motor_sockets *out_sockets, us_error *err);
void usi_motor_sockets_close(usi_motor_sockets *sockets);

// A client's socket as the server wants it: small messages leave at once, a dead peer is noticed, and the
// system queues little that grows old.
void usi_motor_socket_tune(int fd);

bool usi_motor_address_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

#endif

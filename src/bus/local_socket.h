// Sockets that take datagrams of this machine alone.
//
// A DDS vendor that is told to use the loopback still receives on all addresses of the machine, so that a
// forged packet from the network is taken for a local program's. The kernel can tell: what a program of this
// machine sends comes in on the loopback, or is the loopback copy of its own multicast, whatever its
// addresses. A filter on the socket drops the rest before anybody reads it.
//
// Discovery by multicast goes on inside the machine. A socket hears the groups that anybody on its machine
// has joined, whatever interface their packets come by. So groups are joined and sent to on the loopback
// alone, and still programs that use another interface are heard and hear; the kernel tells the network of no
// membership.
//
// Filters must be there before the socket can receive, and the sockets are the vendor's. So this room has the
// functions `bind` and `setsockopt`, which the vendor's libraries find before those of the C library.
#ifndef USI_BUS_LOCAL_SOCKET_H
#define USI_BUS_LOCAL_SOCKET_H

#include "understudy/base.h"

// From now on, until usi_local_sockets_end, each UDP socket that this thread binds takes datagrams of this
// machine and of the peers (host names or addresses, at most 64) alone, and multicast goes to the loopback.
// US_ERR_NAME for a peer that is not known, US_ERR_LIMIT.
us_status usi_local_sockets_begin(const char *const *peers, int32_t n_peer, us_error *err);
// How many sockets were bound since; -1: one of them could not be filtered.
int32_t usi_local_sockets_end(void);

// From now on a socket that only sends takes no datagram from anybody. False with errno.
bool usi_socket_hear_nothing(int fd);

#endif

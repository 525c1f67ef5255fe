// Samples on their way out: a thread of its own writes them, so that no listener holds up time.
#ifndef USI_PROXY_OUTBOX_H
#define USI_PROXY_OUTBOX_H

#include "understudy/bus.h"

typedef struct usi_outbox usi_outbox;
us_status usi_outbox_create(const us_allocator *allocator, usi_outbox **out);
void usi_outbox_destroy(usi_outbox *box);  // sends what waits first
// It leaves at `due` (CLOCK_MONOTONIC, ns; 0: at once), and not before those that were put earlier. False
// when there is no room: the sample is counted as unsent.
bool usi_outbox_put(usi_outbox *box, us_writer *writer, const void *bytes, size_t length, int64_t time,
                    int64_t due);
// Datagrams to programs on this machine, by UDP over IPv4: first the socket (false: there is none to be had).
// `address` in the host's order. Whether anybody listens is not known.
bool usi_outbox_open_datagrams(usi_outbox *box);
bool usi_outbox_put_datagram(usi_outbox *box, uint32_t address, uint16_t port, const void *bytes,
                             size_t length);
void usi_outbox_ring(usi_outbox *box);  // wakes the sender
// Asks the system to let the sender run before others, as samples have their time. Where that is not allowed,
// nothing changes.
void usi_outbox_hurry(usi_outbox *box);
int64_t usi_outbox_n_unsent(usi_outbox *box);

#endif

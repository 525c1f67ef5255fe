// The radio link between the robot and the world: delay, jitter, loss, bandwidth and outages, in simulated
// time.
//
// A queue of messages with the time at which each arrives. What happens to message number n follows from the
// seed, the stream and n alone, so that the same messages at the same ticks always fare alike. The queue is a
// plain block of bytes that the caller owns: that of the way to the robot is part of the world's state.
#ifndef USI_PROXY_LINK_H
#define USI_PROXY_LINK_H

#include "understudy/network.h"

typedef struct usi_link_head {
    uint64_t n_sent;     // messages that came to the link
    int64_t busy_until;  // ns: when the last byte of the last one leaves the sender
    int64_t last_due;    // ns: no message overtakes another
    int64_t n_lost;
    int64_t n_full;  // for want of room in the queue
    uint64_t used;   // bytes of the queue
} usi_link_head;

typedef struct usi_link_queue {
    usi_link_head *head;  // all 0 at the start
    void *bytes;          // cap bytes, aligned to 8
    size_t cap;
} usi_link_queue;

typedef struct usi_link_item {
    int64_t due;  // ns
    int32_t topic;
    uint32_t length;  // of the bytes behind it
} usi_link_item;

static inline bool usi_link_is_perfect(const us_link_model *m) {
    return m->delay == 0 && m->jitter == 0 && m->loss == 0 && m->bandwidth == 0 && m->n_outage == 0;
}

// Sends a message at `now` (ns). It may be lost; that is counted.
void usi_link_send(const us_link_model *m, uint64_t seed, uint64_t stream, usi_link_queue *queue, int64_t now,
                   int32_t topic, const void *bytes, size_t length);
// The first message if it has arrived at `now`, else NULL. Its bytes stand behind it.
const usi_link_item *usi_link_first(const usi_link_queue *queue, int64_t now);
void usi_link_drop_first(usi_link_queue *queue);
int64_t usi_link_count(const usi_link_queue *queue);  // messages under way
// The messages under way one after the other, the place of the first being 0: its bytes, or NULL at the end.
const void *usi_link_next(const usi_link_head *head, const void *bytes, size_t *at, usi_link_item *out);
// Whether a queue that comes from a file is one: its messages fill it, none beyond its end, of topics below
// n_topic.
bool usi_link_is_sound(const usi_link_head *head, const void *bytes, size_t cap, int32_t n_topic);
// Loses all that is under way, and forgets when that was; the counts stay.
void usi_link_clear(usi_link_queue *queue);

#endif

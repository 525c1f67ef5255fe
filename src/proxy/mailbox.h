// Where commands wait for the tick boundary.
//
// Threads of the network put messages in, the step takes them out, all that came until then. Each robot has
// one of its own, of bounded size: what does not fit is lost and counted. The last of its room is kept for
// stops, so that a flood of commands keeps none of them out.
#ifndef USI_PROXY_MAILBOX_H
#define USI_PROXY_MAILBOX_H

#include <pthread.h>

#include "base/memory.h"
#include "understudy/bus.h"
#include "understudy/gate.h"

enum {
    USI_MAIL_MAX = 32 * 1024,
    USI_MAILBOX_SIZE = 128 * 1024,
    USI_MAILBOX_RESERVE = 8 * 1024,  // of it, for stops alone: some 80 of them within a tick
    USI_SOURCE_MAX = 56              // a source's name of 20, a colon, a writer's id of 32
};

// What came: followed by `length` bytes, padded to 8.
typedef struct usi_mail {
    int32_t topic;    // which kind of command: usi_command_topic
    uint32_t length;  // of the bytes behind
    // Who sent it, for the recording and for who goes first: a writer's id, "motor:3", "page:1", or the name
    // of a source with a topic of its own and a writer's id, "operator:0110...".
    char source[USI_SOURCE_MAX];
} usi_mail;

typedef struct usi_mailbox {
    pthread_mutex_t lock;
    size_t used;
    int64_t n_dropped;  // there was no room
    uint64_t bytes[USI_MAILBOX_SIZE / 8];
} usi_mailbox;

void usi_mailbox_init(usi_mailbox *box);
void usi_mailbox_fini(usi_mailbox *box);
// US_ERR_LIMIT when there is no room, or the message is too long.
us_status usi_mailbox_put(usi_mailbox *box, int32_t topic, const char *source, const void *bytes,
                          size_t length);
// A command's topic on the network: its samples go into the box as they come and the gate admits them.
// `context` of the reader is a usi_subscription.
typedef struct usi_subscription {
    usi_mailbox *box;
    int32_t topic;
    us_gate *gate;    // NULL: all are admitted
    int32_t robot;    // of the gate
    char source[24];  // that has the topic for itself; "": it is the robot's own
} usi_subscription;
void usi_mailbox_on_sample(void *context, const us_sample *sample);
// Moves all that waits to `to` (USI_MAILBOX_SIZE bytes) and returns how many bytes that were. Does not wait:
// a lock that is held now leaves the messages for the next tick.
size_t usi_mailbox_take(usi_mailbox *box, void *to);
// The mail at *at, and *at behind it; NULL at the end.
const usi_mail *usi_mail_next(const void *mails, size_t used, size_t *at);
static inline const void *usi_mail_bytes(const usi_mail *mail) { return mail + 1; }
int64_t usi_mailbox_n_dropped(usi_mailbox *box);

#endif

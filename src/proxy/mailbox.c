#include "proxy/mailbox.h"

#include <stdio.h>
#include <string.h>

#include "spec/publication.h"
#include "wire/motor.h"

static size_t padded(size_t length) { return (length + 7) / 8 * 8; }

void usi_mailbox_init(usi_mailbox *box) {
    memset(box, 0, sizeof *box);
    pthread_mutex_init(&box->lock, NULL);
}

void usi_mailbox_fini(usi_mailbox *box) { pthread_mutex_destroy(&box->lock); }

// A stop of the ASCII link, or a velocity of 0, as joysticks send it when they are let go. As encoded: behind
// a header of 4 bytes the length of a text and the text; or, at the end, six numbers.
static bool is_stop(int32_t topic, const void *bytes, size_t length) {
    static const double still[6] = {0};
    const char *const text = bytes, *const end = text + length;
    if (topic == USI_COMMAND_MOTOR_TEXT) return length > 8 && usi_motor_text_is_stop(text + 8, length - 8);
    const bool is_velocity = topic == USI_COMMAND_TWIST || topic == USI_COMMAND_TWIST_STAMPED;
    return is_velocity && length >= 4 + sizeof still && memcmp(end - sizeof still, still, sizeof still) == 0;
}

us_status usi_mailbox_put(usi_mailbox *box, int32_t topic, const char *source, const void *bytes,
                          size_t length) {
    const size_t need = sizeof(usi_mail) + padded(length),
                 room = USI_MAILBOX_SIZE - (is_stop(topic, bytes, length) ? 0 : USI_MAILBOX_RESERVE);
    pthread_mutex_lock(&box->lock);
    bool fits = length <= USI_MAIL_MAX && box->used + need <= room;
    if (fits) {
        char *to = (char *)box->bytes + box->used;
        memset(to, 0, need);
        usi_mail mail = {.topic = topic, .length = (uint32_t)length};
        snprintf(mail.source, sizeof mail.source, "%s", source);
        memcpy(to, &mail, sizeof mail);
        if (length > 0) memcpy(to + sizeof mail, bytes, length);
        box->used += need;
    } else {
        box->n_dropped++;
    }
    pthread_mutex_unlock(&box->lock);
    return fits ? US_OK : US_ERR_LIMIT;
}

void usi_mailbox_on_sample(void *context, const us_sample *sample) {
    const usi_subscription *to = context;
    if (to->gate && !us_gate_admit(to->gate, to->robot, sample)) return;
    char source[USI_SOURCE_MAX], *at = source;
    if (to->source[0]) at += snprintf(source, sizeof source, "%.20s:", to->source);
    for (int i = 0; i < 16; i++)
        snprintf(at + 2 * i, 3, "%02x", sample->writer[i]);
    usi_mailbox_put(to->box, to->topic, source, sample->bytes, sample->length);
}

size_t usi_mailbox_take(usi_mailbox *box, void *to) {
    if (pthread_mutex_trylock(&box->lock) != 0) return 0;
    size_t used = box->used;
    if (used > 0) memcpy(to, box->bytes, used);
    box->used = 0;
    pthread_mutex_unlock(&box->lock);
    return used;
}

const usi_mail *usi_mail_next(const void *mails, size_t used, size_t *at) {
    if (*at >= used) return NULL;
    const usi_mail *mail = (const usi_mail *)(const void *)((const char *)mails + *at);
    *at += sizeof *mail + padded(mail->length);
    return mail;
}

int64_t usi_mailbox_n_dropped(usi_mailbox *box) {
    pthread_mutex_lock(&box->lock);
    int64_t n = box->n_dropped;
    pthread_mutex_unlock(&box->lock);
    return n;
}

#include "proxy/link.h"

#include <string.h>

static int64_t ns_of(double seconds) { return (int64_t)(seconds * 1e9 + 0.5); }

static size_t size_of(uint32_t length) { return sizeof(usi_link_item) + (length + 7u) / 8 * 8; }

static bool is_out(const us_link_model *m, int64_t from, int64_t to) {
    for (int32_t i = 0; i < m->n_outage; i++) {
        if (from < ns_of(m->outages[2 * i + 1]) && to >= ns_of(m->outages[2 * i])) return true;
    }
    return false;
}

void usi_link_send(const us_link_model *m, uint64_t seed, uint64_t stream, usi_link_queue *queue, int64_t now,
                   int32_t topic, const void *bytes, size_t length) {
    usi_link_head *h = queue->head;
    uint64_t n = h->n_sent++;
    // The sender sends one message after the other, at the link's rate, whether they arrive or not.
    int64_t start = h->busy_until > now ? h->busy_until : now, sent = start;
    if (m->bandwidth > 0) sent += ns_of((double)length / m->bandwidth);
    size_t need = size_of((uint32_t)length);
    if (h->used + need > queue->cap) {
        h->n_full++;
        return;
    }
    h->busy_until = sent;
    int64_t due = sent + ns_of(m->delay);
    if (m->jitter > 0) due += ns_of(m->jitter * us_random_uniform(seed, stream, 2 * n));
    bool is_lost = m->loss > 0 && us_random_uniform(seed, stream, 2 * n + 1) < m->loss;
    // What is on its way while the link is out does not arrive.
    if (is_lost || is_out(m, start, due)) {
        h->n_lost++;
        return;
    }
    if (due < h->last_due) due = h->last_due;
    h->last_due = due;
    char *to = (char *)queue->bytes + h->used;
    memset(to, 0, need);
    usi_link_item item = {due, topic, (uint32_t)length};
    memcpy(to, &item, sizeof item);
    if (length > 0) memcpy(to + sizeof item, bytes, length);
    h->used += need;
}

const usi_link_item *usi_link_first(const usi_link_queue *queue, int64_t now) {
    const usi_link_item *item = queue->bytes;
    return queue->head->used > 0 && item->due <= now ? item : NULL;
}

void usi_link_drop_first(usi_link_queue *queue) {
    usi_link_head *h = queue->head;
    const usi_link_item *item = queue->bytes;
    size_t size = size_of(item->length);
    h->used -= size;
    memmove(queue->bytes, (const char *)queue->bytes + size, h->used);
    // What lies behind the last message is part of the state too.
    memset((char *)queue->bytes + h->used, 0, size);
}

const void *usi_link_next(const usi_link_head *head, const void *bytes, size_t *at, usi_link_item *out) {
    if (*at >= head->used) return NULL;
    const char *item = (const char *)bytes + *at;
    memcpy(out, item, sizeof *out);
    *at += size_of(out->length);
    return item + sizeof *out;
}

int64_t usi_link_count(const usi_link_queue *queue) {
    usi_link_item item;
    int64_t n = 0;
    for (size_t at = 0; usi_link_next(queue->head, queue->bytes, &at, &item);)
        n++;
    return n;
}

void usi_link_clear(usi_link_queue *queue) {
    usi_link_head *h = queue->head;
    if (h->used > 0) memset(queue->bytes, 0, h->used);
    h->used = 0;
    h->busy_until = h->last_due = 0;
}

bool usi_link_is_sound(const usi_link_head *h, const void *bytes, size_t cap, int32_t n_topic) {
    size_t at = 0;
    if (h->used > cap || h->busy_until < 0 || h->last_due < 0 || h->n_lost < 0 || h->n_full < 0) return false;
    while (at < h->used) {
        usi_link_item item;
        if (h->used - at < sizeof item) return false;
        memcpy(&item, (const char *)bytes + at, sizeof item);
        if (item.length > h->used - at - sizeof item || item.topic < 0 || item.topic >= n_topic ||
            item.due < 0)
            return false;
        at += size_of(item.length);
    }
    return at == h->used;
}

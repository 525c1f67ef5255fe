#include "switch/freshness.h"

#include <string.h>

// What is known of a client's clock; `age` is that of its sample.
static int64_t learn_excess(usi_freshness *f, const uint8_t writer[16], int64_t age) {
    uint32_t n = f->n < USI_FRESHNESS_CLIENTS ? f->n : USI_FRESHNESS_CLIENTS;
    for (uint32_t i = 0; i < n; i++) {
        if (memcmp(f->clients[i].writer, writer, 16) != 0) continue;
        if (age < f->clients[i].excess) f->clients[i].excess = age;
        return f->clients[i].excess;
    }
    uint32_t at = f->n++ % USI_FRESHNESS_CLIENTS;
    memcpy(f->clients[at].writer, writer, 16);
    f->clients[at].excess = age < 0 || age > USI_FRESHNESS_HORIZON ? age : 0;
    return f->clients[at].excess;
}

bool usi_freshness_take(usi_freshness *f, const uint8_t writer[16], int64_t source_time, usi_arrival received,
                        int64_t since) {
    int64_t age = received.wall - source_time;
    int64_t delay = age - learn_excess(f, writer, age);
    if (received.monotonic < since) return false;
    return received.monotonic - since >= USI_FRESHNESS_HORIZON || received.monotonic - delay >= since;
}

// Whether a command was sent since a switch came into office.
//
// Every switch of a robot hears every command. One that follows another must not pass on what its predecessor
// has: a command that lay in a queue while this process was stopped, or the machine was busy, may have been
// obeyed long ago. What was sent before the tenure began is dropped. By the DDS source time of the sample:
//
//     sent = received - (age - excess)      age = wall clock when it was received - source time
//
// `excess` is what the client's clock is wrong: 0, or less where an age less than 0 was seen. So it is exact
// where clocks agree. A client whose clock is late by x loses its commands in the first x of a tenure,
// HORIZON at most; where it is later than that, what is least of the ages seen is taken for its error.
#ifndef USI_SWITCH_FRESHNESS_H
#define USI_SWITCH_FRESHNESS_H

#include <stdbool.h>
#include <stdint.h>

// ns: an age that is no delay but the error of a clock; and the time after which a tenure drops no more.
#define USI_FRESHNESS_HORIZON (5 * INT64_C(1000000000))

enum { USI_FRESHNESS_CLIENTS = 64 };

typedef struct usi_freshness {
    uint32_t n;  // clients ever seen; the oldest make room
    struct {
        uint8_t writer[16];
        int64_t excess;  // ns
    } clients[USI_FRESHNESS_CLIENTS];
} usi_freshness;

// When a sample was received.
typedef struct usi_arrival {
    int64_t wall, monotonic;  // ns
} usi_arrival;

// Whether a sample of `writer` was sent at or after `since` (ns, monotonic). Every command is to be shown to
// it, also those that are dropped anyway: so it learns the clocks.
bool usi_freshness_take(usi_freshness *f, const uint8_t writer[16], int64_t source_time, usi_arrival received,
                        int64_t since);

#endif

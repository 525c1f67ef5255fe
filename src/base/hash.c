// Hashing of bytes, and random numbers as a pure function of a counter. Both rest on one 64-bit mixing step.
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "understudy/base.h"

uint64_t us_hash_bytes(uint64_t seed, const void *bytes, size_t length) {
    const unsigned char *b = bytes;
    uint64_t h = usi_mix(seed + USI_GOLDEN * (length + 1));
    for (; length >= 8; length -= 8, b += 8) {
        uint64_t word;
        memcpy(&word, b, 8);
        h = usi_mix(h ^ word) + USI_GOLDEN;
    }
    if (length) {
        uint64_t word = 0;
        memcpy(&word, b, length);
        h = usi_mix(h ^ word);
    }
    return h;
}

uint64_t us_random_bits(uint64_t seed, uint64_t stream, uint64_t counter) {
    return usi_random_bits(usi_random_key(seed, stream), counter);
}

double us_random_uniform(uint64_t seed, uint64_t stream, uint64_t counter) {
    return usi_random_uniform(usi_random_key(seed, stream), counter);
}

double us_random_normal(uint64_t seed, uint64_t stream, uint64_t counter) {
    // Box and Muller; the radius takes 1 - u so that the logarithm never sees 0.
    double u = 1.0 - us_random_uniform(seed, stream, 2 * counter),
           t = us_random_uniform(seed, stream, 2 * counter + 1);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * t);
}

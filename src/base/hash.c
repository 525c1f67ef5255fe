// Hashing of bytes, and random numbers as a pure function of a counter. Both rest on one 64-bit mixing step.
#include <math.h>
#include <string.h>

#include "understudy/base.h"

// A bijection of 64-bit numbers in which every input bit changes every output bit about half of the time
// (the finaliser of the SplitMix64 generator, Steele, Lea and Flood 2014).
static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t us_hash_bytes(uint64_t seed, const void *bytes, size_t length) {
    const unsigned char *b = bytes;
    uint64_t h = mix(seed + 0x9e3779b97f4a7c15u * (length + 1));
    for (; length >= 8; length -= 8, b += 8) {
        uint64_t word;
        memcpy(&word, b, 8);
        h = mix(h ^ word) + 0x9e3779b97f4a7c15u;
    }
    if (length) {
        uint64_t word = 0;
        memcpy(&word, b, length);
        h = mix(h ^ word);
    }
    return h;
}

uint64_t us_random_bits(uint64_t seed, uint64_t stream, uint64_t counter) {
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    return mix(mix(mix(seed + golden) ^ (stream * golden + 1)) + counter * golden);
}

double us_random_uniform(uint64_t seed, uint64_t stream, uint64_t counter) { return (double)(us_random_bits(seed, stream, counter) >> 11) * 0x1p-53; }

double us_random_normal(uint64_t seed, uint64_t stream, uint64_t counter) {
    // Box and Muller; the radius takes 1 - u so that the logarithm never sees 0.
    double u = 1.0 - us_random_uniform(seed, stream, 2 * counter), t = us_random_uniform(seed, stream, 2 * counter + 1);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * t);
}

// Counter-based random numbers of understudy/base.h with a key that is computed once from seed and stream,
// for callers that draw many.
#ifndef USI_BASE_RANDOM_H
#define USI_BASE_RANDOM_H

#include <stdint.h>

// A bijection of 64-bit numbers in which every input bit changes every output bit about half of the time
// (the finaliser of the SplitMix64 generator, Steele, Lea and Flood 2014).
static inline uint64_t usi_mix(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static const uint64_t USI_GOLDEN = 0x9e3779b97f4a7c15u;

static inline uint64_t usi_random_key(uint64_t seed, uint64_t stream) {
    return usi_mix(usi_mix(seed + USI_GOLDEN) ^ (stream * USI_GOLDEN + 1));
}
// us_random_bits and us_random_uniform of this seed and stream.
static inline uint64_t usi_random_bits(uint64_t key, uint64_t counter) {
    return usi_mix(key + counter * USI_GOLDEN);
}
static inline double usi_random_uniform(uint64_t key, uint64_t counter) {
    return (double)(usi_random_bits(key, counter) >> 11) * 0x1p-53;
}

#endif

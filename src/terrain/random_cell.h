// Random points by density, from counters: the plane is divided into cells, each with random numbers of its
// own.
#ifndef USI_TERRAIN_RANDOM_CELL_H
#define USI_TERRAIN_RANDOM_CELL_H

#include <math.h>

#include "base/random.h"
#include "math/v4_functions.h"

// Logarithm and exponential with the same bits on every machine.
static inline double usi_log_of(double x) { return usi_v4_log(usi_v4_all(x))[0]; }
static inline double usi_exp_of(double x) {
    return x < -700 ? 0 : usi_v4_exp(usi_v4_all(x < 700 ? x : 700))[0];
}

static inline uint64_t usi_cell_key(uint64_t key, int64_t i, int64_t j) {
    return usi_random_key(usi_random_bits(key, (uint64_t)i), (uint64_t)j);
}

// Poisson-distributed count of mean `mean`: as many as exponential waiting times of mean 1 fit into it.
static inline int32_t usi_cell_count(uint64_t cell, double mean) {
    int32_t n = -1;
    for (double sum = 0; sum < mean; n++)
        sum -= usi_log_of(1 - usi_random_uniform(cell, UINT64_MAX - (uint64_t)(n + 1)));
    return n < 0 ? 0 : n;
}

// Random number q of instance c of a cell, 0 up to 1.
static inline double usi_cell_uniform(uint64_t cell, int32_t c, int32_t q) {
    return usi_random_uniform(cell, (uint64_t)c * 16 + (uint64_t)q);
}

#endif

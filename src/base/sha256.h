// SHA-256 (FIPS 180-4) of a text, as 64 hexadecimal digits: for hashes of types, also in tools. Not made for
// speed.
#ifndef USI_BASE_SHA256_H
#define USI_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline uint32_t usi_sha256_rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

// One block of 64 bytes into the state of 8 words (section 6.2.2).
static inline void usi_sha256_block(uint32_t h[8], const uint8_t block[64]) {
    // The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64];
    for (int t = 0; t < 16; t++) {
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    }
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = usi_sha256_rotate(w[t - 15], 7) ^ usi_sha256_rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = usi_sha256_rotate(w[t - 2], 17) ^ usi_sha256_rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t v[8];
    memcpy(v, h, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t S1 = usi_sha256_rotate(v[4], 6) ^ usi_sha256_rotate(v[4], 11) ^ usi_sha256_rotate(v[4], 25);
        uint32_t S0 = usi_sha256_rotate(v[0], 2) ^ usi_sha256_rotate(v[0], 13) ^ usi_sha256_rotate(v[0], 22);
        uint32_t t1 = v[7] + S1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[t] + w[t];
        uint32_t t2 = S0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

static inline void usi_sha256_hex(const char *bytes, size_t length, char out_hex[65]) {
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    size_t done = 0;
    for (; done + 64 <= length; done += 64)
        usi_sha256_block(h, (const uint8_t *)bytes + done);
    // The rest, a 1 bit, zeros, and the length in bits.
    uint8_t last[128] = {0};
    size_t rest = length - done, n = rest + 9 <= 64 ? 64 : 128;
    memcpy(last, bytes + done, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[n - 1 - (size_t)i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
    for (size_t i = 0; i < n; i += 64)
        usi_sha256_block(h, last + i);
    for (int i = 0; i < 8; i++)
        snprintf(out_hex + 8 * i, 9, "%08x", (unsigned)h[i]);
}

#endif

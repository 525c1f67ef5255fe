// Vectors of small integers: 32 bytes, or 16 numbers of 16 bits, in one AVX2 register.
//
// + - & | ^ and comparisons for equality are GCC's. Minimum, saturating sums and what moves lanes have no
// operator; without AVX2 they are loops, which the compiler turns into what the processor has: same results,
// slower.
#ifndef USI_VISION__LANES_H
#define USI_VISION__LANES_H

#include <stdint.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef uint8_t usi_u8x32 __attribute__((vector_size(32)));
typedef uint16_t usi_u16x16 __attribute__((vector_size(32)));
typedef uint8_t usi_u8x32_unaligned __attribute__((vector_size(32), may_alias, aligned(1)));
typedef uint16_t usi_u16x16_unaligned __attribute__((vector_size(32), may_alias, aligned(2)));

static inline usi_u8x32 usi_u8_load(const uint8_t *a) { return *(const usi_u8x32_unaligned *)a; }
static inline void usi_u8_store(uint8_t *a, usi_u8x32 x) { *(usi_u8x32_unaligned *)a = x; }
static inline usi_u16x16 usi_u16_load(const uint16_t *a) { return *(const usi_u16x16_unaligned *)a; }
static inline void usi_u16_store(uint16_t *a, usi_u16x16 x) { *(usi_u16x16_unaligned *)a = x; }
static inline usi_u8x32 usi_u8_all(uint8_t x) { return (usi_u8x32){0} + x; }
static inline usi_u16x16 usi_u16_all(uint16_t x) { return (usi_u16x16){0} + x; }

#ifdef __AVX2__

static inline usi_u8x32 usi_u8_min(usi_u8x32 a, usi_u8x32 b) {
    return (usi_u8x32)_mm256_min_epu8((__m256i)a, (__m256i)b);
}
static inline usi_u8x32 usi_u8_add_saturated(usi_u8x32 a, usi_u8x32 b) {
    return (usi_u8x32)_mm256_adds_epu8((__m256i)a, (__m256i)b);
}
static inline usi_u8x32 usi_u8_sub_saturated(usi_u8x32 a, usi_u8x32 b) {
    return (usi_u8x32)_mm256_subs_epu8((__m256i)a, (__m256i)b);
}
static inline usi_u16x16 usi_u16_min(usi_u16x16 a, usi_u16x16 b) {
    return (usi_u16x16)_mm256_min_epu16((__m256i)a, (__m256i)b);
}
// Bytes of a and b in turns, in each half of 16: the first eight of a half, and the last eight.
static inline usi_u8x32 usi_u8_mix_low(usi_u8x32 a, usi_u8x32 b) {
    return (usi_u8x32)_mm256_unpacklo_epi8((__m256i)a, (__m256i)b);
}
static inline usi_u8x32 usi_u8_mix_high(usi_u8x32 a, usi_u8x32 b) {
    return (usi_u8x32)_mm256_unpackhi_epi8((__m256i)a, (__m256i)b);
}
// The reverse of widening by mixing with 0: low's and high's numbers, cut at 255.
static inline usi_u8x32 usi_u8_pack(usi_u16x16 low, usi_u16x16 high) {
    return (usi_u8x32)_mm256_packus_epi16((__m256i)low, (__m256i)high);
}
// One bit for each byte whose highest bit is set.
static inline uint32_t usi_u8_bits(usi_u8x32 a) { return (uint32_t)_mm256_movemask_epi8((__m256i)a); }
// The smallest of 16 numbers.
static inline uint16_t usi_u16_smallest(usi_u16x16 a) {
    const __m128i half =
        _mm_min_epu16(_mm256_castsi256_si128((__m256i)a), _mm256_extracti128_si256((__m256i)a, 1));
    return (uint16_t)_mm_cvtsi128_si32(_mm_minpos_epu16(half));
}
// How many bits are set in each byte.
static inline usi_u8x32 usi_u8_count_bits(usi_u8x32 a) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2,
                                           2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i first = _mm256_shuffle_epi8(table, _mm256_and_si256((__m256i)a, low));
    const __m256i second =
        _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16((__m256i)a, 4), low));
    return (usi_u8x32)_mm256_add_epi8(first, second);
}
// The bytes of a moved up by one, with the last byte of `before` as the first; and moved down by one, with
// the first byte of `after` as the last.
static inline usi_u8x32 usi_u8_up(usi_u8x32 before, usi_u8x32 a) {
    const __m256i middle = _mm256_permute2x128_si256((__m256i)before, (__m256i)a, 0x21);
    return (usi_u8x32)_mm256_alignr_epi8((__m256i)a, middle, 15);
}
static inline usi_u8x32 usi_u8_down(usi_u8x32 a, usi_u8x32 after) {
    const __m256i middle = _mm256_permute2x128_si256((__m256i)a, (__m256i)after, 0x21);
    return (usi_u8x32)_mm256_alignr_epi8(middle, (__m256i)a, 1);
}
// The smallest byte of each of four vectors, in all lanes of that vector.
static inline void usi_u8_smallest_of_four(usi_u8x32 v[4]) {
    const __m256i a = (__m256i)v[0], b = (__m256i)v[1], c = (__m256i)v[2], d = (__m256i)v[3];
    const __m256i ab = _mm256_min_epu8(_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
    const __m256i cd = _mm256_min_epu8(_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
    __m256i m = _mm256_min_epu8(_mm256_unpacklo_epi16(ab, cd), _mm256_unpackhi_epi16(ab, cd));
    m = _mm256_min_epu8(m, _mm256_permute2x128_si256(m, m, 1));
    m = _mm256_min_epu8(m, _mm256_shuffle_epi32(m, 0x4e));
    m = _mm256_min_epu8(m, _mm256_shuffle_epi32(m, 0xb1));
    v[0] = (usi_u8x32)_mm256_shuffle_epi8(m, _mm256_set1_epi8(0));
    v[1] = (usi_u8x32)_mm256_shuffle_epi8(m, _mm256_set1_epi8(1));
    v[2] = (usi_u8x32)_mm256_shuffle_epi8(m, _mm256_set1_epi8(2));
    v[3] = (usi_u8x32)_mm256_shuffle_epi8(m, _mm256_set1_epi8(3));
}

#else

static inline usi_u8x32 usi_u8_min(usi_u8x32 a, usi_u8x32 b) {
    for (int i = 0; i < 32; i++)
        a[i] = a[i] < b[i] ? a[i] : b[i];
    return a;
}
static inline usi_u8x32 usi_u8_add_saturated(usi_u8x32 a, usi_u8x32 b) {
    for (int i = 0; i < 32; i++)
        a[i] = (uint8_t)(a[i] + b[i] < 255 ? a[i] + b[i] : 255);
    return a;
}
static inline usi_u8x32 usi_u8_sub_saturated(usi_u8x32 a, usi_u8x32 b) {
    for (int i = 0; i < 32; i++)
        a[i] = (uint8_t)(a[i] > b[i] ? a[i] - b[i] : 0);
    return a;
}
static inline usi_u16x16 usi_u16_min(usi_u16x16 a, usi_u16x16 b) {
    for (int i = 0; i < 16; i++)
        a[i] = a[i] < b[i] ? a[i] : b[i];
    return a;
}
static inline usi_u8x32 usi_u8_mix_low(usi_u8x32 a, usi_u8x32 b) {
    usi_u8x32 r;
    for (int i = 0; i < 32; i++)
        r[i] = (i & 1 ? b : a)[(i & 16) + (i & 15) / 2];
    return r;
}
static inline usi_u8x32 usi_u8_mix_high(usi_u8x32 a, usi_u8x32 b) {
    usi_u8x32 r;
    for (int i = 0; i < 32; i++)
        r[i] = (i & 1 ? b : a)[(i & 16) + 8 + (i & 15) / 2];
    return r;
}
static inline usi_u8x32 usi_u8_pack(usi_u16x16 low, usi_u16x16 high) {
    usi_u8x32 r;
    for (int i = 0; i < 32; i++) {
        const uint16_t x = (i & 8 ? high : low)[(i & 16) / 2 + (i & 7)];
        r[i] = (uint8_t)(x < 255 ? x : 255);
    }
    return r;
}
static inline uint32_t usi_u8_bits(usi_u8x32 a) {
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++)
        bits |= (uint32_t)(a[i] >> 7) << i;
    return bits;
}
static inline uint16_t usi_u16_smallest(usi_u16x16 a) {
    uint16_t r = a[0];
    for (int i = 1; i < 16; i++)
        r = a[i] < r ? a[i] : r;
    return r;
}
static inline usi_u8x32 usi_u8_count_bits(usi_u8x32 a) {
    a -= (a >> 1) & 0x55;
    a = (a & 0x33) + ((a >> 2) & 0x33);
    return (a + (a >> 4)) & 15;
}
static inline usi_u8x32 usi_u8_up(usi_u8x32 before, usi_u8x32 a) {
    usi_u8x32 r;
    r[0] = before[31];
    for (int i = 1; i < 32; i++)
        r[i] = a[i - 1];
    return r;
}
static inline usi_u8x32 usi_u8_down(usi_u8x32 a, usi_u8x32 after) {
    usi_u8x32 r;
    for (int i = 0; i < 31; i++)
        r[i] = a[i + 1];
    r[31] = after[0];
    return r;
}
static inline void usi_u8_smallest_of_four(usi_u8x32 v[4]) {
    for (int k = 0; k < 4; k++) {
        uint8_t least = 255;
        for (int i = 0; i < 32; i++)
            least = v[k][i] < least ? v[k][i] : least;
        v[k] = usi_u8_all(least);
    }
}

#endif

// Bytes to numbers of 16 bits, in the order of the mixes: lanes 0-7 and 16-23 in low, the others in high.
static inline usi_u16x16 usi_u16_low(usi_u8x32 a) { return (usi_u16x16)usi_u8_mix_low(a, (usi_u8x32){0}); }
static inline usi_u16x16 usi_u16_high(usi_u8x32 a) { return (usi_u16x16)usi_u8_mix_high(a, (usi_u8x32){0}); }
static inline usi_u8x32 usi_u8_gap(usi_u8x32 a, usi_u8x32 b) {
    return usi_u8_sub_saturated(a, b) | usi_u8_sub_saturated(b, a);
}

// Where the number of lane i stands in an array of sums that were widened by usi_u16_low and usi_u16_high.
static inline int32_t usi_mixed(int32_t i) { return (i & ~31) | (i & 8) << 1 | (i & 16) >> 1 | (i & 7); }

#endif

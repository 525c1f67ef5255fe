// Hashes of bytes, and random numbers as a function of a counter.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/base.h"

static int bits_of(uint64_t x) {
    int n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

static void every_bit_of_the_input_matters(void **state) {
    (void)state;
    unsigned char bytes[40];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37);
    for (size_t length = 1; length <= sizeof bytes; length++) {
        uint64_t before = us_hash_bytes(0, bytes, length);
        int changed = 0;
        for (size_t bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            uint64_t after = us_hash_bytes(0, bytes, length);
            bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
            assert_int_not_equal(before, after);
            changed += bits_of(before ^ after);
        }
        // Half of the 64 bits change, on average over at least 8 trials: 32 +- 4 / sqrt(8), here within 8
        // sigma.
        double mean = (double)changed / (double)(8 * length);
        assert_true(mean > 20 && mean < 44);
    }
}

static void the_length_and_the_seed_matter(void **state) {
    (void)state;
    const unsigned char zeros[32] = {0};
    for (size_t a = 0; a <= sizeof zeros; a++) {
        for (size_t b = 0; b < a; b++)
            assert_int_not_equal(us_hash_bytes(0, zeros, a), us_hash_bytes(0, zeros, b));
        assert_int_not_equal(us_hash_bytes(0, zeros, a), us_hash_bytes(1, zeros, a));
    }
    assert_int_equal(us_hash_bytes(7, NULL, 0), us_hash_bytes(7, zeros, 0));
}

static void chained_hashes_depend_on_order_and_on_where_pieces_end(void **state) {
    (void)state;
    const char *ab = "abcdefghijklmnop";
    uint64_t one = us_hash_bytes(us_hash_bytes(0, ab, 8), ab + 8, 8),
             other = us_hash_bytes(us_hash_bytes(0, ab + 8, 8), ab, 8);
    uint64_t shifted = us_hash_bytes(us_hash_bytes(0, ab, 7), ab + 7, 9);
    assert_int_not_equal(one, other);
    assert_int_not_equal(one, shifted);
    assert_int_equal(one, us_hash_bytes(us_hash_bytes(0, ab, 8), ab + 8, 8));
}

static void bytes_hash_the_same_wherever_they_lie(void **state) {
    (void)state;
    char room[64];
    const char *text = "the same bytes, anywhere";
    uint64_t want = us_hash_bytes(3, text, strlen(text));
    for (size_t shift = 0; shift < 16; shift++) {
        memset(room, (int)shift, sizeof room);
        memcpy(room + shift, text, strlen(text));
        assert_int_equal(us_hash_bytes(3, room + shift, strlen(text)), want);
    }
}

// These numbers are part of the interface: recordings and golden runs hold them.
static void hashes_and_random_bits_are_those_of_every_other_machine(void **state) {
    (void)state;
    assert_int_equal(us_hash_bytes(0, "understudy", 10), UINT64_C(0x85493ac030323c56));
    assert_int_equal(us_random_bits(1, 2, 3), UINT64_C(0x3a8ef22f3a8db302));
}

static void random_numbers_are_a_pure_function(void **state) {
    (void)state;
    double first[100];
    for (uint64_t i = 0; i < 100; i++)
        first[i] = us_random_normal(5, 6, i);
    for (uint64_t i = 100; i-- > 0;) {
        us_random_uniform(9, 9, i);
        assert_memory_equal(&(double){us_random_normal(5, 6, i)}, &first[i], sizeof(double));
    }
    // Seed, stream and counter each matter, and are not interchangeable.
    assert_int_not_equal(us_random_bits(1, 2, 3), us_random_bits(2, 2, 3));
    assert_int_not_equal(us_random_bits(1, 2, 3), us_random_bits(1, 3, 3));
    assert_int_not_equal(us_random_bits(1, 2, 3), us_random_bits(1, 2, 4));
    assert_int_not_equal(us_random_bits(1, 2, 3), us_random_bits(2, 1, 3));
    assert_int_not_equal(us_random_bits(1, 2, 3), us_random_bits(1, 3, 2));
}

enum { N = 100000 };

static void uniform_numbers_fill_the_unit_interval_evenly(void **state) {
    (void)state;
    double sum = 0, square = 0, product = 0, before = 0;
    int count[20] = {0};
    for (uint64_t i = 0; i < N; i++) {
        double u = us_random_uniform(1, 0, i);
        assert_true(u >= 0 && u < 1);
        count[(int)(20 * u)]++;
        sum += u;
        square += u * u;
        product += (u - 0.5) * (before - 0.5);
        before = u;
    }
    // Five standard deviations of each statistic over 1e5 numbers.
    assert_true(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
    assert_true(fabs(square / N - 1.0 / 3) < 5 * sqrt(4.0 / 45 / N));
    assert_true(fabs(product / N) < 5 * sqrt(1.0 / 144 / N));
    for (int i = 0; i < 20; i++)
        assert_true(fabs(count[i] - N / 20.0) < 5 * sqrt(N / 20.0));
}

static void normal_numbers_have_the_moments_of_the_normal_distribution(void **state) {
    (void)state;
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, across = 0;
    for (uint64_t i = 0; i < N; i++) {
        double x = us_random_normal(42, 7, i), y = us_random_normal(42, 8, i);
        assert_true(isfinite(x));
        m1 += x;
        m2 += x * x;
        m3 += x * x * x;
        m4 += x * x * x * x;
        across += x * y;
    }
    // Five standard deviations: 1, 2, 15 and 96 are the variances of x, x^2, x^3 and x^4.
    assert_true(fabs(m1 / N) < 5 * sqrt(1.0 / N));
    assert_true(fabs(m2 / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(m3 / N) < 5 * sqrt(15.0 / N));
    assert_true(fabs(m4 / N - 3) < 5 * sqrt(96.0 / N));
    assert_true(fabs(across / N) < 5 * sqrt(1.0 / N));
}

static void every_bit_of_the_random_bits_is_a_fair_coin(void **state) {
    (void)state;
    int count[64] = {0};
    for (uint64_t i = 0; i < N; i++) {
        // Counters as a simulation has them: small seed, small stream, one after the other.
        uint64_t bits = us_random_bits(0, 0, i);
        for (int b = 0; b < 64; b++)
            count[b] += (int)(bits >> b & 1);
    }
    for (int b = 0; b < 64; b++)
        assert_true(fabs(count[b] - N / 2.0) < 5 * sqrt(N / 4.0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_of_the_input_matters),
        cmocka_unit_test(the_length_and_the_seed_matter),
        cmocka_unit_test(chained_hashes_depend_on_order_and_on_where_pieces_end),
        cmocka_unit_test(bytes_hash_the_same_wherever_they_lie),
        cmocka_unit_test(hashes_and_random_bits_are_those_of_every_other_machine),
        cmocka_unit_test(random_numbers_are_a_pure_function),
        cmocka_unit_test(uniform_numbers_fill_the_unit_interval_evenly),
        cmocka_unit_test(normal_numbers_have_the_moments_of_the_normal_distribution),
        cmocka_unit_test(every_bit_of_the_random_bits_is_a_fair_coin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

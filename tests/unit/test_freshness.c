// Commands that were sent before a switch came into office, by clocks that agree and by clocks that do not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "switch/freshness.h"
#include "understudy/base.h"

static const int64_t ms = 1000000, second = 1000000000;

// A command that is sent at a time and received later, both in ns of the monotonic clock; the wall clock of
// the switch is `WALL` ahead of it, and that of the client `error` ahead of the switch's.
#define WALL INT64_C(1700000000000000000)

static bool take(usi_freshness *f, uint8_t client, int64_t sent, int64_t received, int64_t error,
                 int64_t since) {
    uint8_t writer[16] = {client};
    return usi_freshness_take(f, writer, WALL + sent + error, (usi_arrival){WALL + received, received},
                              since);
}

static void what_was_sent_before_is_dropped_however_late_it_comes(void **state) {
    (void)state;
    usi_freshness f = {0};
    int64_t since = 100 * second;
    assert_false(take(&f, 1, since - ms, since + ms, 0, since));
    assert_false(take(&f, 1, since - 1, since + 3 * second, 0, since));
    assert_true(take(&f, 1, since, since, 0, since));
    assert_true(take(&f, 1, since + ms, since + 2 * second, 0, since));
    assert_false(take(&f, 1, since - 2 * ms, since - ms, 0, since));
    // a tenure that is older than any delay drops nothing
    assert_true(take(&f, 1, since - ms, since + USI_FRESHNESS_HORIZON, 0, since));
}

static void clocks_of_clients_that_are_wrong_are_learned(void **state) {
    (void)state;
    int64_t since = 100 * second;
    // ahead: what was seen of it before is its error, give or take the delay
    usi_freshness f = {0};
    assert_false(take(&f, 1, since - second, since - second + ms, 3 * second, since));
    assert_false(take(&f, 1, since - 5 * ms, since + 500 * ms, 3 * second, since));
    assert_true(take(&f, 1, since + ms, since + 2 * ms, 3 * second, since));
    // late by an hour, as a robot without a network of its own may be
    f = (usi_freshness){0};
    assert_false(take(&f, 1, since - second, since - second + ms, -3600 * second, since));
    assert_false(take(&f, 1, since - 5 * ms, since + 500 * ms, -3600 * second, since));
    assert_true(take(&f, 1, since + ms, since + 2 * ms, -3600 * second, since));
    // late by a second: its commands of the first second are lost, and no more
    f = (usi_freshness){0};
    assert_false(take(&f, 1, since + 900 * ms, since + 901 * ms, -second, since));
    assert_true(take(&f, 1, since + 1001 * ms, since + 1002 * ms, -second, since));
}

// With clocks that agree nothing that was sent before passes, and everything that was sent after does;
// whatever the delays, the order and the number of clients.
static void random_delays_of_many_clients(void **state) {
    (void)state;
    int n_pass = 0, n_drop = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        usi_freshness f = {0};
        int64_t since = 50 * second;
        for (uint64_t i = 0; i < 1000; i++) {
            uint8_t client = (uint8_t)(us_random_bits(seed, 0, i) % 100);
            int64_t sent = since + (int64_t)(6e9 * (us_random_uniform(seed, 1, i) - 0.5));
            int64_t delay = (int64_t)(1.9e9 * us_random_uniform(seed, 2, i));
            bool is_fresh = take(&f, client, sent, sent + delay, 0, since);
            assert_int_equal(is_fresh, sent >= since);
            n_pass += is_fresh;
            n_drop += !is_fresh;
        }
    }
    assert_true(n_pass > 1000 && n_drop > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_before_is_dropped_however_late_it_comes),
        cmocka_unit_test(clocks_of_clients_that_are_wrong_are_learned),
        cmocka_unit_test(random_delays_of_many_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The gate of a robot, without clocks and sockets: rules one by one, and its lines.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gate/gate_machine.h"

static const int64_t ms = 1000000;
static const usi_gate_id A = {{1, 2, 3}}, B = {{4, 5, 6}}, C = {{7, 8, 9}}, NOBODY = {{0}};

// A participant that asks as a switch does: with the nonce of its last answer.
typedef struct asker {
    usi_gate_id id;
    uint64_t seq, nonce;
} asker;

static uint64_t n_fresh;

static usi_lease_answer ask(usi_gate_machine *m, asker *a, us_gate_role role, bool is_take, int64_t now) {
    usi_lease_request r = {.robot = "k10", .seq = ++a->seq, .boot = m->boot, .nonce = a->nonce, .role = role};
    r.is_take = is_take;
    usi_lease_answer out = {0};
    assert_true(usi_gate_machine_take(m, &a->id, &r, now, ++n_fresh, &out));
    assert_int_equal(out.seq, a->seq);
    a->nonce = out.nonce;
    return out;
}

// The first request brings the nonce, the second the lease.
static void lease(usi_gate_machine *m, asker *a, us_gate_role role, int64_t now) {
    ask(m, a, US_GATE_NONE, false, now);
    usi_lease_answer out = ask(m, a, role, false, now);
    assert_int_equal(out.access, US_GATE_HELD);
    assert_memory_equal(out.holder.v, a->id.v, 12);
}

static usi_gate_machine start(void) {
    usi_gate_machine m;
    usi_gate_machine_init(&m, 77);
    return m;
}

static void a_gate_that_was_never_leased_takes_commands_of_anybody(void **state) {
    (void)state;
    usi_gate_machine m = start();
    assert_true(usi_gate_machine_admit(&m, &A, 0));
    assert_true(usi_gate_machine_admit(&m, &NOBODY, 1));
    // but not of a switch, which has to have a lease
    asker b = {.id = B};
    ask(&m, &b, US_GATE_NONE, false, 2);
    assert_false(usi_gate_machine_admit(&m, &B, 3));
    assert_true(usi_gate_machine_admit(&m, &A, 3));
}

static void the_holder_alone_commands_and_only_in_a_role_for_it(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A};
    lease(&m, &a, US_GATE_PASSIVE, 0);
    assert_false(usi_gate_machine_admit(&m, &A, 1));
    assert_false(usi_gate_machine_admit(&m, &C, 1));
    ask(&m, &a, US_GATE_ACTIVE, false, 1);
    assert_true(usi_gate_machine_admit(&m, &A, 2));
    assert_false(usi_gate_machine_admit(&m, &C, 2));
    assert_false(usi_gate_machine_admit(&m, &NOBODY, 2));
    ask(&m, &a, US_GATE_BESIDE, false, 3);
    assert_true(usi_gate_machine_admit(&m, &A, 4));
    assert_int_equal(m.n_end, 0);
    ask(&m, &a, US_GATE_PASSIVE, false, 5);
    assert_int_equal(m.n_end, 1);
    assert_int_equal(m.term, 1);
    assert_int_equal(ask(&m, &a, US_GATE_NONE, false, 6).access, US_GATE_OPEN);
    assert_true(usi_gate_machine_admit(&m, &C, 7));
    assert_int_equal(m.n_refused, 4);
}

static void a_lease_lasts_from_the_nonce_that_was_repeated(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A};
    ask(&m, &a, US_GATE_NONE, false, 0);           // nonce of 0 ms
    ask(&m, &a, US_GATE_ACTIVE, false, 100 * ms);  // a lease until 400 ms, and a nonce of 100 ms
    assert_true(usi_gate_machine_admit(&m, &A, 400 * ms - 1));
    assert_false(usi_gate_machine_admit(&m, &A, 400 * ms));
    assert_int_equal(m.access, US_GATE_CLOSED);
    assert_int_equal(m.n_end, 1);
    // The nonce of 100 ms is good for another lease until 500 ms, of a new term.
    usi_lease_answer again = ask(&m, &a, US_GATE_ACTIVE, false, 450 * ms);
    assert_int_equal(again.term, 2);
    assert_int_equal(again.left, 50 * ms);
}

static void a_request_that_lay_in_a_queue_renews_nothing(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A};
    lease(&m, &a, US_GATE_ACTIVE, 0);
    // The process of the gate is stopped for 3 s; the request of before is read then.
    usi_lease_answer late = ask(&m, &a, US_GATE_ACTIVE, false, 3000 * ms);
    assert_int_equal(late.access, US_GATE_CLOSED);
    assert_false(usi_gate_machine_admit(&m, &A, 3000 * ms));
}

static void a_lapsed_gate_stays_closed_until_a_lease_or_a_release(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A}, b = {.id = B};
    lease(&m, &a, US_GATE_ACTIVE, 0);
    assert_true(usi_gate_machine_tick(&m, 400 * ms));
    assert_false(usi_gate_machine_tick(&m, 401 * ms));
    assert_false(usi_gate_machine_admit(&m, &C, 10000 * ms));
    // A release of somebody else does nothing; that of the last holder opens it.
    ask(&m, &b, US_GATE_NONE, false, 10000 * ms);
    ask(&m, &b, US_GATE_NONE, false, 10000 * ms);
    assert_int_equal(m.access, US_GATE_CLOSED);
    ask(&m, &a, US_GATE_PASSIVE, false, 10000 * ms);  // its nonce is too old, and it gets another
    assert_int_equal(m.access, US_GATE_CLOSED);
    ask(&m, &a, US_GATE_NONE, false, 10001 * ms);
    assert_int_equal(m.access, US_GATE_OPEN);
    assert_int_equal(m.term, 1);
}

static void nobody_is_put_out_and_who_wants_to_take_over_is_named(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A}, b = {.id = B};
    lease(&m, &a, US_GATE_ACTIVE, 0);
    ask(&m, &b, US_GATE_ACTIVE, true, 1 * ms);  // without a nonce: heard of by nobody
    usi_lease_answer unaware = ask(&m, &a, US_GATE_ACTIVE, false, 2 * ms);
    assert_true(usi_gate_id_is_none(&unaware.taker));
    usi_lease_answer refused = ask(&m, &b, US_GATE_ACTIVE, true, 3 * ms);
    assert_memory_equal(refused.holder.v, A.v, 12);
    assert_false(usi_gate_machine_admit(&m, &B, 3 * ms));
    assert_memory_equal(ask(&m, &a, US_GATE_ACTIVE, false, 4 * ms).taker.v, B.v, 12);
    ask(&m, &a, US_GATE_NONE, false, 5 * ms);
    usi_lease_answer granted = ask(&m, &b, US_GATE_ACTIVE, true, 6 * ms);
    assert_memory_equal(granted.holder.v, B.v, 12);
    assert_int_equal(granted.term, 2);
    assert_true(usi_gate_id_is_none(&granted.taker));
    assert_false(usi_gate_machine_admit(&m, &A, 6 * ms));
}

static void who_counts_on_an_older_term_is_not_granted_another(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A}, b = {.id = B};
    lease(&m, &a, US_GATE_ACTIVE, 0);
    ask(&m, &a, US_GATE_ACTIVE, false, 1);
    lease(&m, &b, US_GATE_ACTIVE, 500 * ms);  // the lease of a is over
    ask(&m, &a, US_GATE_NONE, false, 600 * ms);
    usi_gate_machine_tick(&m, 900 * ms);  // and that of b
    usi_lease_request r = {
        .robot = "k10", .seq = ++a.seq, .boot = 77, .nonce = a.nonce, .term = 1, .role = US_GATE_ACTIVE};
    usi_lease_answer out;
    assert_true(usi_gate_machine_take(&m, &A, &r, 950 * ms, ++n_fresh, &out));
    assert_int_equal(out.access, US_GATE_CLOSED);
    assert_false(usi_gate_machine_admit(&m, &A, 950 * ms));
    r.seq++;
    r.term = 0;
    assert_true(usi_gate_machine_take(&m, &A, &r, 950 * ms, ++n_fresh, &out));
    assert_int_equal(out.term, 3);
}

static void requests_that_were_overtaken_or_forged_do_nothing(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A};
    lease(&m, &a, US_GATE_ACTIVE, 0);
    usi_gate_machine before = m;
    usi_lease_answer out;
    // an older request of the holder
    usi_lease_request r = {.robot = "k10", .seq = a.seq, .boot = 77, .nonce = a.nonce, .role = US_GATE_NONE};
    assert_false(usi_gate_machine_take(&m, &A, &r, 1, ++n_fresh, &out));
    // a release in the holder's name by somebody who does not hear the gate: every guess is wrong
    for (uint64_t guess = 0; guess < 1000; guess++) {
        r.seq = UINT64_MAX - 1000 + guess;
        r.nonce = 1000000 + guess * UINT64_C(0x9e3779b97f4a7c15);
        usi_gate_machine copy = before;
        usi_gate_machine_take(&copy, &A, &r, 1, ++n_fresh, &out);
        assert_int_equal(copy.access, US_GATE_HELD);
        assert_int_equal(copy.role, US_GATE_ACTIVE);
        assert_int_equal(copy.term, before.term);
        assert_int_equal(copy.expiry, before.expiry);
    }
    // another's nonce, and one of another start of the gate
    asker b = {.id = B, .nonce = a.nonce};
    ask(&m, &b, US_GATE_ACTIVE, true, 2);
    assert_true(usi_gate_id_is_none(&m.taker));
    m.boot = 78;
    r = (usi_lease_request){.robot = "k10", .seq = a.seq + 1, .boot = 77, .nonce = a.nonce};
    assert_true(usi_gate_machine_take(&m, &A, &r, 3, ++n_fresh, &out));
    assert_int_equal(m.access, US_GATE_HELD);
}

static void a_flood_of_strangers_does_not_take_the_holders_nonces(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A};
    lease(&m, &a, US_GATE_ACTIVE, 0);
    for (int i = 0; i < 10000; i++) {
        asker stranger = {.id = {{9, (uint8_t)i, (uint8_t)(i >> 8)}}};
        ask(&m, &stranger, US_GATE_ACTIVE, true, ms);
        ask(&m, &stranger, US_GATE_ACTIVE, true, ms);
    }
    usi_lease_answer renewed = ask(&m, &a, US_GATE_ACTIVE, false, 100 * ms);
    assert_memory_equal(renewed.holder.v, A.v, 12);
    assert_int_equal(renewed.left, 300 * ms);
    assert_int_equal(m.term, 1);
}

// The counters of nonces go round after four thousand million, in years: the holder keeps its lease.
static void counters_that_go_round_change_nothing(void **state) {
    (void)state;
    usi_gate_machine m = start();
    m.n_own = m.n_others = m.n_known = UINT32_MAX - 20;
    asker a = {.id = A}, b = {.id = B};
    lease(&m, &a, US_GATE_ACTIVE, 0);
    for (int i = 1; i < 100; i++) {
        const usi_lease_answer out = ask(&m, &a, US_GATE_ACTIVE, false, i * 50 * ms);
        assert_int_equal(out.access, US_GATE_HELD);
        assert_memory_equal(out.holder.v, A.v, 12);
        ask(&m, &b, US_GATE_ACTIVE, false, i * 50 * ms + 1);
        assert_true(usi_gate_machine_admit(&m, &A, i * 50 * ms + 2));
        assert_false(usi_gate_machine_admit(&m, &B, i * 50 * ms + 2));
    }
    assert_true(m.n_own < 100);
}

static void answers_say_whether_the_holder_commands(void **state) {
    (void)state;
    usi_gate_machine m = start();
    asker a = {.id = A}, b = {.id = B};
    // strangers at an open gate are nobody's holder
    assert_true(usi_gate_machine_admit(&m, &C, ms));
    assert_false(ask(&m, &b, US_GATE_NONE, false, 2 * ms).is_busy);
    lease(&m, &a, US_GATE_ACTIVE, 3 * ms);
    assert_false(usi_gate_machine_admit(&m, &C, 4 * ms));
    assert_false(ask(&m, &b, US_GATE_NONE, false, 4 * ms).is_busy);
    assert_true(usi_gate_machine_admit(&m, &A, 5 * ms));
    assert_true(ask(&m, &b, US_GATE_NONE, false, 5 * ms).is_busy);
    assert_true(ask(&m, &b, US_GATE_NONE, false, 4 * ms + USI_GATE_BUSY).is_busy);
    assert_false(ask(&m, &b, US_GATE_NONE, false, 5 * ms + USI_GATE_BUSY).is_busy);
}

// ---- lines ----

static void lines_are_read_as_they_were_written(void **state) {
    (void)state;
    char line[USI_LEASE_LINE];
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t x = us_random_bits(5, 0, i), y = us_random_bits(5, 1, i);
        usi_lease_request r = {.robot = "k10_b",
                               .seq = x >> 8,
                               .boot = x,
                               .nonce = y,
                               .term = y >> 5,
                               .role = (us_gate_role)(x % 4)};
        r.is_take = y & 1;
        usi_lease_request r2;
        usi_lease_request_write(&r, line);
        assert_true(usi_lease_request_read(line, strlen(line), &r2));
        assert_memory_equal(&r, &r2, sizeof r);
        usi_lease_answer a = {.robot = "k10", .boot = y, .seq = x >> 3, .nonce = x, .term = y >> 2};
        a.access = (us_gate_access)(x % 3);
        a.role = (us_gate_role)(y % 4);
        a.left = (int64_t)(x % 401) * ms;
        memcpy(a.asker.v, &x, 8);
        memcpy(a.holder.v + 4, &y, 8);
        memcpy(a.taker.v + 2, &x, 8);
        a.is_busy = x >> 7 & 1;
        usi_lease_answer a2;
        usi_lease_answer_write(&a, line);
        assert_true(usi_lease_answer_read(line, strlen(line), &a2));
        assert_memory_equal(&a, &a2, sizeof a);
    }
}

static void lines_that_were_changed_are_refused_or_say_something_else(void **state) {
    (void)state;
    usi_lease_request r = {.robot = "k10", .seq = 12, .boot = 34, .nonce = 56, .role = US_GATE_ACTIVE}, back;
    char line[USI_LEASE_LINE], changed[USI_LEASE_LINE], again[USI_LEASE_LINE];
    usi_lease_request_write(&r, line);
    size_t n = strlen(line);
    for (size_t i = 0; i < n; i++)
        assert_false(usi_lease_request_read(line, i, &back));
    for (uint64_t i = 0; i < 20000; i++) {
        memcpy(changed, line, n + 1);
        size_t at = (size_t)(us_random_bits(6, 0, i) % n);
        changed[at] = (char)us_random_bits(6, 1, i);
        if (!usi_lease_request_read(changed, n, &back)) continue;
        // Whatever is taken is taken as it stands there; numbers may have zeros in front.
        usi_lease_request_write(&back, again);
        usi_lease_request twice;
        assert_true(usi_lease_request_read(again, strlen(again), &twice));
        assert_memory_equal(&back, &twice, sizeof back);
    }
    static const char *const wrong[] = {
        "",
        " ",
        "lease1",
        "lease2 k10 1 0000000000000000 0000000000000000 0 none wait",
        "lease1 k10 -1 0000000000000000 0000000000000000 0 none wait",
        "lease1 k10 1 0 0 0 none wait",
        "lease1 k10 1 0000000000000000 0000000000000000 0 king wait",
        "lease1 k10 1 0000000000000000 0000000000000000 0 none wait ",
        "lease1  k10 1 0000000000000000 0000000000000000 0 none wait",
        "lease1 k10 99999999999999999999 0000000000000000 0000000000000000 0 none wait"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(usi_lease_request_read(wrong[i], strlen(wrong[i]), &back));
    // A lease that lasts longer than any, up to more nanoseconds than there are numbers.
    static const char *const left[] = {"401", "399000000000000", "9999999999999999999"};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        usi_lease_answer answer;
        snprintf(changed, sizeof changed,
                 "lease1 k10 0000000000000001 000000000000000000000001 1 0000000000000001 3 held active "
                 "000000000000000000000001 %s 000000000000000000000000 quiet",
                 left[i]);
        assert_false(usi_lease_answer_read(changed, strlen(changed), &answer));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gate_that_was_never_leased_takes_commands_of_anybody),
        cmocka_unit_test(the_holder_alone_commands_and_only_in_a_role_for_it),
        cmocka_unit_test(a_lease_lasts_from_the_nonce_that_was_repeated),
        cmocka_unit_test(a_request_that_lay_in_a_queue_renews_nothing),
        cmocka_unit_test(a_lapsed_gate_stays_closed_until_a_lease_or_a_release),
        cmocka_unit_test(nobody_is_put_out_and_who_wants_to_take_over_is_named),
        cmocka_unit_test(who_counts_on_an_older_term_is_not_granted_another),
        cmocka_unit_test(requests_that_were_overtaken_or_forged_do_nothing),
        cmocka_unit_test(a_flood_of_strangers_does_not_take_the_holders_nonces),
        cmocka_unit_test(counters_that_go_round_change_nothing),
        cmocka_unit_test(answers_say_whether_the_holder_commands),
        cmocka_unit_test(lines_are_read_as_they_were_written),
        cmocka_unit_test(lines_that_were_changed_are_refused_or_say_something_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

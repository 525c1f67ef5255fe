// Who is in control, without clocks and sockets: rules one by one, then a long random life.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "switch/authority_machine.h"

static const int64_t second = 1000000000;

static usi_authority start(us_switch_mode mode, us_switch_loss on_loss) {
    usi_authority a;
    usi_authority_init(&a, mode, on_loss, second, 100);
    return a;
}

static void hear(usi_authority *a, int64_t hardware, int64_t proxy) {
    usi_authority_observe(a, (const int64_t[2]){hardware, proxy});
}

static void nobody_is_lost_before_anybody_was_heard(void **state) {
    (void)state;
    usi_authority a = start(US_MODE_HARDWARE, US_LOSS_OTHER);
    assert_false(usi_authority_watch(&a, 1000 * second).is_change);
    // The proxy comes first. The hardware has the time of the watchdog from then on.
    hear(&a, 0, 1000 * second);
    assert_false(usi_authority_watch(&a, 1001 * second).is_change);
    hear(&a, 0, 1001 * second);
    usi_verdict v = usi_authority_watch(&a, 1001 * second + 1);
    assert_true(v.is_change);
    assert_int_equal(v.control, US_SWITCH_PROXY);
    assert_string_equal(v.reason, "the hardware was never heard");
}

static void the_watchdog_gives_control_to_the_living_alone(void **state) {
    (void)state;
    usi_authority a = start(US_MODE_SHADOW, US_LOSS_OTHER);
    hear(&a, 10 * second, 10 * second);
    assert_false(usi_authority_watch(&a, 11 * second).is_change);
    hear(&a, 0, 12 * second);
    usi_verdict v = usi_authority_watch(&a, 12 * second);
    assert_true(v.is_change);
    assert_int_equal(v.mode, US_MODE_PROXY);
    assert_int_equal(v.output_source, US_SWITCH_PROXY);
    assert_string_equal(v.reason, "the hardware has been silent for 2.00 s");
    a.on_loss = US_LOSS_STOP;
    v = usi_authority_watch(&a, 12 * second);
    assert_int_equal(v.mode, US_MODE_STOP);
    assert_int_equal(v.control, US_SWITCH_NOBODY);
    assert_int_equal(v.output_source, US_SWITCH_HARDWARE);
}

static void by_the_usual_rule_hardware_never_gets_control_unasked(void **state) {
    (void)state;
    assert_int_equal(us_switch_def_default().on_loss, US_LOSS_PROXY);
    usi_authority a = start(US_MODE_HARDWARE, US_LOSS_PROXY);
    hear(&a, 10 * second, 12 * second);
    usi_verdict v = usi_authority_watch(&a, 12 * second);
    assert_int_equal(v.mode, US_MODE_PROXY);
    assert_int_equal(v.control, US_SWITCH_PROXY);
    usi_authority_apply(&a, &v, 0);
    // The proxy is lost, the hardware lives: all stands still, and the operators still see who played last.
    hear(&a, 20 * second, 0);
    v = usi_authority_watch(&a, 20 * second);
    assert_int_equal(v.mode, US_MODE_STOP);
    assert_int_equal(v.control, US_SWITCH_NOBODY);
    assert_int_equal(v.output_source, US_SWITCH_PROXY);
    assert_string_equal(v.reason, "the proxy has been silent for 8.00 s");
    // It stays so, whoever is heard, until somebody asks.
    usi_authority_apply(&a, &v, 0);
    hear(&a, 21 * second, 21 * second);
    assert_false(usi_authority_watch(&a, 21 * second).is_change);
    assert_true(usi_authority_ask(&a, US_MODE_HARDWARE, 21 * second).is_change);
}

// Both are lost, in this mode under this rule.
static usi_authority lose_both(us_switch_mode mode, us_switch_loss on_loss) {
    usi_authority a = start(mode, on_loss);
    hear(&a, 10 * second, 10 * second);
    assert_false(usi_authority_watch(&a, 11 * second).is_change);
    usi_verdict v = usi_authority_watch(&a, 11 * second + 1);
    assert_true(v.is_change);
    assert_int_equal(v.mode, US_MODE_STOP);
    assert_int_equal(v.control, US_SWITCH_NOBODY);
    usi_authority_apply(&a, &v, 0);
    assert_false(usi_authority_watch(&a, 20 * second).is_change);
    return a;
}

static void when_both_are_lost_nobody_has_control_and_the_first_to_be_heard_plays_on(void **state) {
    (void)state;
    usi_authority a = lose_both(US_MODE_SHADOW, US_LOSS_PROXY);
    assert_true(usi_authority_ask(&a, US_MODE_HARDWARE, 20 * second).is_refused);
    assert_true(usi_authority_ask(&a, US_MODE_MIRROR, 20 * second).is_refused);
    // Who had control has it again, as it was.
    hear(&a, 20 * second, 0);
    usi_verdict v = usi_authority_watch(&a, 20 * second);
    assert_true(v.is_change);
    assert_int_equal(v.mode, US_MODE_SHADOW);
    assert_int_equal(v.control, US_SWITCH_HARDWARE);
    usi_authority_apply(&a, &v, 0);
    assert_false(a.is_waiting);
    // Or its heir comes first.
    a = lose_both(US_MODE_HARDWARE, US_LOSS_PROXY);
    hear(&a, 0, 20 * second);
    v = usi_authority_watch(&a, 20 * second);
    assert_int_equal(v.mode, US_MODE_PROXY);
    assert_int_equal(v.control, US_SWITCH_PROXY);
    assert_int_equal(v.output_source, US_SWITCH_PROXY);
    // A stop that was asked for meanwhile stays.
    v = usi_authority_ask(&a, US_MODE_STOP, 20 * second);
    assert_true(v.is_change);
    usi_authority_apply(&a, &v, 0);
    assert_false(usi_authority_watch(&a, 20 * second).is_change);
    // A lost proxy means stop by the usual rule, and so it does for both by the rule stop: nobody plays on
    // unasked.
    a = lose_both(US_MODE_PROXY, US_LOSS_PROXY);
    hear(&a, 20 * second, 20 * second);
    assert_false(usi_authority_watch(&a, 20 * second).is_change);
    a = lose_both(US_MODE_HARDWARE, US_LOSS_STOP);
    hear(&a, 20 * second, 20 * second);
    assert_false(usi_authority_watch(&a, 20 * second).is_change);
}

static void a_source_that_dies_is_out_of_control_in_time_whenever_it_was_asked_for(void **state) {
    (void)state;
    usi_authority a = start(US_MODE_HARDWARE, US_LOSS_OTHER);
    hear(&a, 10 * second, 10 * second);
    // The proxy falls silent, is asked for while nobody can know, and does not get the time of the watchdog
    // anew.
    hear(&a, 10 * second + second / 2, 0);
    usi_verdict v = usi_authority_ask(&a, US_MODE_PROXY, 10 * second + second / 2);
    assert_true(v.is_change);
    usi_authority_apply(&a, &v, 0);
    hear(&a, 11 * second + 1, 0);
    assert_false(usi_authority_watch(&a, 11 * second).is_change);
    v = usi_authority_watch(&a, 11 * second + 1);
    assert_true(v.is_change);
    assert_int_equal(v.control, US_SWITCH_HARDWARE);
}

static void control_is_given_to_the_living_alone(void **state) {
    (void)state;
    usi_authority a = start(US_MODE_HARDWARE, US_LOSS_OTHER);
    hear(&a, 10 * second, 0);
    assert_true(usi_authority_ask(&a, US_MODE_PROXY, 10 * second).is_refused);
    assert_true(usi_authority_ask(&a, US_MODE_COUNT, 10 * second).is_refused);
    assert_false(usi_authority_ask(&a, US_MODE_HARDWARE, 10 * second).is_change);
    usi_verdict v = usi_authority_ask(&a, US_MODE_STOP, 10 * second);
    usi_authority_apply(&a, &v, 0);
    assert_int_equal(a.epoch, 101);
    assert_true(usi_authority_ask(&a, US_MODE_MIRROR, 10 * second).is_refused);
    v = usi_authority_ask(&a, US_MODE_SHADOW, 10 * second);
    assert_true(v.is_change && v.control == US_SWITCH_HARDWARE);
    usi_authority_apply(&a, &v, 5000);
    assert_int_equal(a.epoch, 5000);
    assert_int_equal(us_switch_find_mode("shadow"), US_MODE_SHADOW);
    assert_int_equal(us_switch_find_mode("shadows"), US_MODE_COUNT);
}

static void a_long_random_life_keeps_one_in_control_and_growing_epochs(void **state) {
    (void)state;
    usi_authority a = start(US_MODE_HARDWARE, US_LOSS_OTHER);
    int64_t now = second, heard[2] = {0, 0};
    int32_t n_change = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        now += (int64_t)(us_random_bits(3, 1, i) % 200000000);
        uint64_t dice = us_random_bits(3, 2, i) % 100;
        // Each source is dead for long stretches, and loses samples in between.
        for (int k = 0; k < 2; k++) {
            bool is_dead = us_random_bits(3, (uint64_t)(3 + k), i / 50) % 3 == 0;
            if (!is_dead && us_random_uniform(3, (uint64_t)(5 + k), i) > 0.05) heard[k] = now;
        }
        usi_authority_observe(&a, heard);
        uint64_t before = a.epoch;
        usi_verdict v =
            dice < 5 ? usi_authority_ask(&a, (us_switch_mode)(dice % 4), now) : usi_authority_watch(&a, now);
        if (v.is_change) {
            usi_authority_apply(&a, &v, 0);
            n_change++;
        }
        assert_int_equal(a.epoch, before + (v.is_change ? 1 : 0));
        assert_true(a.control == US_SWITCH_NOBODY ? a.mode == US_MODE_STOP && a.is_waiting
                                                  : a.control == a.output_source);
        assert_true(a.mode != US_MODE_HARDWARE || a.control == US_SWITCH_HARDWARE);
        assert_true(a.mode != US_MODE_PROXY || a.control == US_SWITCH_PROXY);
        assert_true(a.mode != US_MODE_SHADOW || a.control == US_SWITCH_HARDWARE);
        // The watchdog looks at intervals of up to 0.2 s, but for requests in its place: nobody who is silent
        // has control after a look, and nobody who is heard has to wait for it.
        if (dice < 5) continue;
        bool is_held = a.control != US_SWITCH_NOBODY && usi_authority_is_alive(&a, a.control, now),
             is_anybody = false;
        for (int k = 0; k < 2; k++)
            is_anybody = is_anybody || usi_authority_is_alive(&a, (us_switch_source)k, now);
        assert_int_equal(is_held, a.control != US_SWITCH_NOBODY || is_anybody);
    }
    assert_true(n_change > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_lost_before_anybody_was_heard),
        cmocka_unit_test(the_watchdog_gives_control_to_the_living_alone),
        cmocka_unit_test(by_the_usual_rule_hardware_never_gets_control_unasked),
        cmocka_unit_test(a_source_that_dies_is_out_of_control_in_time_whenever_it_was_asked_for),
        cmocka_unit_test(when_both_are_lost_nobody_has_control_and_the_first_to_be_heard_plays_on),
        cmocka_unit_test(control_is_given_to_the_living_alone),
        cmocka_unit_test(a_long_random_life_keeps_one_in_control_and_growing_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

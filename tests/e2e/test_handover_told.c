// A hand-over that was refused, and a robot that was stopped: all are alive, and go on when they are told.
#include "test_handover_support.h"

static void what_was_refused_or_stopped_goes_on_when_told(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    theatre *t = open_theatre("", "--watchdog 5");
    drive(t, 0.4, 0);
    wait_steady(t, 0.4, 0.2);
    cJSON_Delete(hand_over(t, "k10 proxy"));
    wait_steady(t, 0.4, 0.8);
    // Refused: the proxy keeps control and drives on, and nothing reaches the hardware.
    int32_t n_told = atomic_load(&t->told.n);
    cJSON_Delete(refusal_of(t, "k10 hardware", "the states differ: position "));
    wait_steady(t, 0.4, 0.5);
    assert_true(controls(t, "proxy"));
    assert_int_equal(atomic_load(&t->told.n), n_told);
    // Stopped: whatever operators send, it comes to rest and stays there.
    write_text_message(t->request, "k10 stop");
    WAIT_FOR(controls(t, "nobody"));
    int64_t since = latest(&t->odom).stamp;
    WAIT_FOR(is_at_rest(t, since));
    since = latest(&t->odom).stamp;
    WAIT_FOR(latest(&t->odom).stamp > since + 500000000);
    assert_true(is_at_rest(t, since));
    // Told to, it goes on with what operators send all the time: first the proxy, then the hardware, which
    // was never told to match.
    cJSON_Delete(hand_over(t, "k10 proxy"));
    WAIT_FOR(controls(t, "proxy"));
    wait_steady(t, 0.4, 0.3);
    cJSON_Delete(hand_over(t, "k10 hardware anyway"));
    wait_steady(t, 0.4, 0.3);
    WAIT_FOR(controls(t, "hardware"));
    assert_true(atomic_load(&t->told.n) > n_told);
    close_theatre(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_refused_or_stopped_goes_on_when_told, use_own_domain,
                                        kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}

// A rover with another engine's physics and its proxy on the same commands: they stay together.
#include "test_shadow_support.h"

static void drive_a_while(operator_ *o) {
    drive_for(o, 0.5, 0, 4);
    drive_for(o, 0.4, 0.15, 4);
    drive_for(o, 0.4, 0.3, 4);
}

static void hardware_and_proxy_stay_together(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    if (IS_INSTRUMENTED) {
        print_message("skipped: with checks in it the proxy cannot keep up with real time\n");
        skip();
    }
    // Behind a link of 0.2 s each way, with a clock that is eleven days behind and gains.
    pair *p = start_pair("--latency 0.2 --jitter 0.02 --drop 0.02 --clock-offset -1e6 --clock-drift 1e-4");
    said d;
    forget_what_was_said(p);
    drive_a_while(p->operator_);
    d = hear_of(p);
    print_message("least confidence %.2f, last most %s, lag %.2f s\n", d.least, d.worst, d.lag);
    if (d.n_not_ok > 0) fail_msg("not together: %s", d.event);
    // Commands go and samples come 0.2 s later: the hardware does the same that much later. What its motors
    // are slower by comes on top.
    assert_true(d.lag > 0.35 && d.lag < 0.8);
    outcome a = ask_switch("--status");
    assert_code(a, 0);
    assert_has(a.out, "mode shadow");
    assert_has(a.out, "side by side: ok, confidence");
    end_pair(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(hardware_and_proxy_stay_together, kill_the_rest)};
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}

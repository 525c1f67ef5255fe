// With --on-diverged resync hardware and proxy that have diverged are brought together without anybody
// asking.
#include "test_shadow_support.h"

static bool log_has(const char *text) {
    char *log = read_text("switch.out");
    bool has = log && strstr(log, text);
    free(log);
    return has;
}

// Nobody asks: who has diverged is brought together by the rule.
static void a_rule_brings_together_what_has_parted(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    if (IS_INSTRUMENTED) {
        print_message("skipped: with checks in it the proxy cannot keep up with real time\n");
        skip();
    }
    pair *p = start_pair_with("--radius-error 0.25", "--on-diverged resync");
    operator_ *o = p->operator_;
    heard h;
    assert_false(log_has("compared anew"));
    command(o, 0.4, 0, 0.5, false);
    WAIT_DRIVING(o, is_state(p, "diverged") && h.n > 0);
    assert_true(hear_of(p).n_event > 0);
    // Straight ahead both do the same: there is nothing to part them again.
    command(o, 0.3, 0, 0, false);
    WAIT_DRIVING(o, is_state(p, "ok") && h.n > 0);
    assert_true(log_has("compared anew"));
    end_pair(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_rule_brings_together_what_has_parted, kill_the_rest)};
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}

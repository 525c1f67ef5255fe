// A rover whose wheels are not what they are said to be, and its proxy on the same commands: they part, it is
// told what diverged, and they come together.
#include "test_shadow_support.h"

static void wrong_wheels_are_told_and_resync_brings_back(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    if (IS_INSTRUMENTED) {
        print_message("skipped: with checks in it the proxy cannot keep up with real time\n");
        skip();
    }
    // Wheels a quarter larger. Odometry counts turns of wheels and does not see it; a curve is faster by a
    // quarter, and the inertial unit feels that.
    pair *p = start_pair("--radius-error 0.25");
    operator_ *o = p->operator_;
    heard h;
    outcome a = ask_switch("--status");
    assert_has(a.out, "side by side: ok");
    int64_t n_event = hear_of(p).n_event;
    command(o, 0.4, 0, 0.5, false);
    WAIT_DRIVING(o, is_state(p, "diverged") && hear_of(p).n_event > n_event && h.n > 0);
    print_message("%s\n", hear_of(p).event);
    cJSON *event = parse_json(hear_of(p).event);
    const cJSON *first = cJSON_GetObjectItem(event, "first");
    assert_string_equal(cJSON_GetObjectItem(event, "robot")->valuestring, "k10");
    double value = cJSON_GetObjectItem(first, "value")->valuedouble,
           tolerance = cJSON_GetObjectItem(first, "tolerance")->valuedouble;
    assert_true(tolerance > 0 && value > tolerance);
    assert_memory_equal(cJSON_GetObjectItem(first, "name")->valuestring, "imu.", 4);
    cJSON_Delete(event);

    drive_for(o, 0.3, 0, 1);
    command(o, 0, 0, 0, false);
    WAIT_DRIVING(o, is_still(&h));
    // At rest they do the same, and are still where they diverged.
    a = ask_switch("--status");
    assert_has(a.out, "side by side: diverged");
    bring_together(p);

    pid_t watcher = start("watch", "switch k10 --proxy %d --watch", (int)test_domain_of(2));
    char *text = NULL;
    WAIT_FOR((free(text), text = read_text("watch.out"), text && count_text(text, "ok, confidence") >= 2));
    free(text);
    end(watcher);
    // In mirror they are compared as well, and in no other mode.
    a = ask_switch("--to mirror --status");
    assert_code(a, 0);
    assert_has(a.out, "mode mirror");
    assert_has(a.out, "side by side: ok");
    assert_code(ask_switch("--to hardware"), 0);
    a = ask_switch("--resync");
    assert_code(a, 3);
    assert_has(a.err, "no comparison is running");
    end_pair(p);
    text = read_text("switch.out");
    assert_has(text, "diverged: imu.");
    assert_has(text, "compared anew");
    free(text);
}

static void bad_tolerances_are_refused(void **state) {
    (void)state;
    outcome a = run("switch k10 --tolerance positoin=0.2");
    assert_code(a, 2);
    assert_has(a.err, "did you mean position?");
    a = run("switch k10 --tolerance position=-1");
    assert_code(a, 2);
    assert_has(a.err, "invalid tolerance");
    a = run("switch k10 --tolerance position=far");
    assert_code(a, 2);
    a = run("switch k10 --on-diverged shrug");
    assert_code(a, 2);
    assert_has(a.err, "write ask or resync");
    a = run("switch k10 --resync --to proxy");
    assert_code(a, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(bad_tolerances_are_refused, kill_the_rest),
        cmocka_unit_test_teardown(wrong_wheels_are_told_and_resync_brings_back, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}

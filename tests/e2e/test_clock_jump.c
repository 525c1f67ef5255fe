// A wall clock that is set while programs run: nothing of theirs waits for it. Clocks of the tests go to and
// fro by an hour, or are an hour behind as soon as somebody waits by them (tests/preload/jumping_clock.c).
#include "test_lease_support.h"

// Programs that are started from here on have such a clock; NULL: a sound one.
static void set_clock(const char *jump) {
    if (jump) {
        setenv("LD_PRELOAD", US_BINARY_DIR "/tests/preload/jumping_clock.so", 1);
        setenv("US_CLOCK_JUMP", jump, 1);
    } else {
        unsetenv("LD_PRELOAD");
        unsetenv("US_CLOCK_JUMP");
    }
}

static const char *const jumps[] = {"0.2", "back"};
enum { N_JUMP = 2 };

static void a_run_keeps_its_pace_and_its_recording(void **state) {
    (void)state;
    for (int i = 0; i < N_JUMP; i++) {
        set_clock(jumps[i]);
        const double begun = clock_now();
        pid_t pid = start("run", "run %s/scenes/flat.xml --headless --time 1 --record jump.mcap --quiet",
                          US_SOURCE_DIR);
        assert_int_equal(wait_for_end(pid), 0);
        set_clock(NULL);
        assert_true(clock_now() - begun >= 1);
        outcome a = run("replay jump.mcap --verify --scene %s/scenes/flat.xml", US_SOURCE_DIR);
        assert_code(a, 0);
        assert_has(a.out, "same: 1000 ticks");
    }
}

static void programs_meet_and_hear_each_other(void **state) {
    (void)state;
    for (int i = 0; i < N_JUMP; i++) {
        set_clock(jumps[i]);
        pid_t robot = start("robot", "run %s/scenes/flat.xml --headless --quiet", US_SOURCE_DIR);
        // Drive waits for the robot, and for what it says.
        outcome a = run("drive k10 --v 0.2 --time 1");
        for (double until = clock_now() + PATIENCE; a.code == 3 && clock_now() < until;)
            a = run("drive k10 --v 0.2 --time 1");
        assert_code(a, 0);
        assert_has(a.out, "moved 0.");
        a = run("record heard.mcap /k10/odom --time 1");
        assert_code(a, 0);
        assert_has(a.out, "of 1 topics");
        end(robot);
        set_clock(NULL);
    }
}

// The switch, its leases and its watchdog: who is in control stays so, and commands go on.
static void a_switch_loses_nobody(void **state) {
    (void)state;
    for (int i = 0; i < N_JUMP; i++) {
        stage *s = open_stage();
        set_clock(jumps[i]);
        pid_t pid = start_switch("switch", "--mode proxy --watchdog 1");
        set_clock(NULL);
        WAIT_FOR(is_flowing(&s->sources[1]));
        const int32_t before = atomic_load(&s->sources[1].n_taken);
        WAIT_FOR(atomic_load(&s->sources[1].n_taken) > before + 200);
        assert_true(controls(s, "proxy"));
        assert_false(has_logged("switch", "lost"));
        assert_int_equal(count_doubles(s), 0);
        end(pid);
        close_stage(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_run_keeps_its_pace_and_its_recording, kill_the_rest),
        cmocka_unit_test_teardown(programs_meet_and_hear_each_other, kill_the_rest),
        cmocka_unit_test_teardown(a_switch_loses_nobody, clear_stage),
    };
    return cmocka_run_group_tests(tests, start_alone, NULL);
}

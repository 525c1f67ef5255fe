// A robot's own clock and computer: what its stamps tell, and when its samples leave.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "proxy/proxy__robot.h"

static int64_t clock_ns(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const int64_t SECOND = 1000000000, MS = 1000000;

typedef struct rig {
    us_network_def network;
    usi_robot_model model;
    usi_robot robot;
    us_proxy proxy;
} rig;

static void init(rig *r, us_timing timing) {
    memset(r, 0, sizeof *r);
    r->network.timing = timing;
    r->model.network = &r->network;
    r->robot.model = &r->model;
    r->proxy.robot = &r->robot;
    r->proxy.n_robot = 1;
    r->proxy.seed = 7;
}

static void without_timing_stamps_are_simulated_time_and_samples_leave_at_once(void **state) {
    (void)state;
    rig r;
    init(&r, (us_timing){0});
    usi_timing_follow(&r.proxy, 5 * SECOND, true);
    assert_int_equal(usi_timing_stamp(&r.proxy, &r.robot, 5 * SECOND), 5 * SECOND);
    assert_int_equal(usi_timing_due(&r.proxy, &r.robot, 5 * SECOND, false), 0);
}

static void stamps_go_on_from_the_time_of_day_by_the_steps_of_simulated_time(void **state) {
    (void)state;
    rig r;
    init(&r, (us_timing){.is_wall = true, .offset = -0.003, .drift = 1e-3});
    int64_t before = clock_ns(CLOCK_REALTIME);
    usi_timing_follow(&r.proxy, 0, true);
    int64_t after = clock_ns(CLOCK_REALTIME), first = usi_timing_stamp(&r.proxy, &r.robot, 0);
    assert_true(first >= before - 3 * MS && first <= after - 3 * MS);
    usi_timing_follow(&r.proxy, SECOND, false);
    // 1 s, and 1 ms that the clock gains in it.
    assert_int_equal(usi_timing_stamp(&r.proxy, &r.robot, SECOND) - first, SECOND + MS);
}

static void samples_leave_after_delay_and_jitter_and_the_same_seed_gives_the_same(void **state) {
    (void)state;
    rig r;
    init(&r, (us_timing){.delay = 0.005, .jitter = 0.002});
    usi_timing_follow(&r.proxy, 0, true);
    int64_t base = r.proxy.now, least = INT64_MAX, most = 0;
    for (int64_t time = 0; time > -SECOND; time -= MS) {
        int64_t late = usi_timing_due(&r.proxy, &r.robot, time, false) - (base + time);
        assert_int_equal(late, usi_timing_due(&r.proxy, &r.robot, time, false) - (base + time));
        assert_true(late >= 5 * MS && late <= 7 * MS);
        least = late < least ? late : least;
        most = late > most ? late : most;
    }
    // Of a thousand uniform draws the ends are nearer than 1 % but once in 20000 seeds; this one is fixed.
    assert_true(least < 5 * MS + 2 * MS / 100 && most > 7 * MS - 2 * MS / 100);
    rig other;
    init(&other, r.network.timing);
    other.proxy.now = r.proxy.now;
    other.proxy.own_ahead = r.proxy.own_ahead;
    assert_int_equal(usi_timing_due(&other.proxy, &other.robot, -3 * MS, false),
                     usi_timing_due(&r.proxy, &r.robot, -3 * MS, false));
}

static void a_fast_world_does_not_pile_up_samples_and_a_paused_one_goes_on_with_the_clock(void **state) {
    (void)state;
    rig r;
    init(&r, (us_timing){.is_wall = true, .delay = 0.005});
    usi_timing_follow(&r.proxy, 0, true);
    usi_timing_follow(&r.proxy, 3600 * SECOND, false);
    assert_int_equal(usi_timing_due(&r.proxy, &r.robot, 3600 * SECOND, false), r.proxy.now + 5 * MS);
    // As if it had begun 10 s earlier, and simulated 1 s since.
    r.proxy.own_ahead -= 10 * SECOND;
    r.proxy.wall_ahead -= 10 * SECOND;
    usi_timing_follow(&r.proxy, SECOND, false);
    int64_t stamp = usi_timing_stamp(&r.proxy, &r.robot, SECOND), now = clock_ns(CLOCK_REALTIME);
    assert_true(stamp <= now && now - stamp < 10 * SECOND / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_timing_stamps_are_simulated_time_and_samples_leave_at_once),
        cmocka_unit_test(stamps_go_on_from_the_time_of_day_by_the_steps_of_simulated_time),
        cmocka_unit_test(samples_leave_after_delay_and_jitter_and_the_same_seed_gives_the_same),
        cmocka_unit_test(a_fast_world_does_not_pile_up_samples_and_a_paused_one_goes_on_with_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

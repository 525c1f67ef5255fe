// Faults of a running robot as its operators see them: commanded on /understudy/command, or in store in the
// scene. What it says stops and comes back, what its sensors say is wrong, and its diagnostics tell of it.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_peer.h"

static net_peer *p;
static int32_t joints, imu, truth, diagnostics, description, status;
static us_writer *command, *cmd_vel;

// ---------------------------------------------------------------- helpers

// Says it, and waits for the answer: the time of the clock then.
static double say(const char *text) {
    char line[200];
    snprintf(line, sizeof line, "%s", text);
    us_msg_string m = {line};
    net_say(command, usi_type_string, &m);
    char quoted[200];
    snprintf(quoted, sizeof quoted, "\"text\":\"%s\",\"ok\":true", text);
    for (double until = net_clock() + NET_PATIENCE; net_clock() < until; net_nap()) {
        if (net_count(p, status) == 0) continue;
        // Blanks in the JSON are nobody's affair.
        const char *told = ((const us_msg_string *)net_decode(p, status, -1))->data;
        char plain[16384];
        size_t n = 0;
        for (bool in_text = false; *told && n + 1 < sizeof plain; told++) {
            if (*told == '"') in_text = !in_text;
            if (in_text || *told != ' ') plain[n++] = *told;
        }
        plain[n] = 0;
        if (strstr(plain, quoted)) return net_time(p);
    }
    net_fail("no answer to", text);
    return 0;
}

static void drive_until(double time) {
    while (net_time(p) < time) {
        net_say(cmd_vel, usi_type_twist, &(us_msg_twist){.linear.x = 0.3});
        net_wait_until(p, net_time(p) + 0.1);
    }
}

// A value of the newest diagnostics.
static bool diagnostics_have(const char *key, const char *part) {
    if (net_count(p, diagnostics) == 0) return false;
    const us_msg_diagnostic_status *s =
        &((const us_msg_diagnostic_array *)net_decode(p, diagnostics, -1))->status._buffer[0];
    if (strcmp(key, "message") == 0) return strstr(s->message, part) != NULL;
    for (uint32_t i = 0; i < s->values._length; i++) {
        if (strcmp(s->values._buffer[i].key, key) == 0)
            return strstr(s->values._buffer[i].value, part) != NULL;
    }
    return false;
}

// The longest silence of a topic that begins between two times; where it begins.
static double longest_gap(int32_t ear, double from, double to, double *out_start) {
    double most = 0;
    *out_start = from;
    for (int64_t i = 1; i < net_count(p, ear); i++) {
        double a = net_stamp(p, ear, i - 1), b = net_stamp(p, ear, i);
        if (a < from || a > to || b - a <= most) continue;
        most = b - a;
        *out_start = a;
    }
    return most;
}

static int64_t count_between(int32_t ear, double from, double to) {
    int64_t n = 0;
    for (int64_t i = 0; i < net_count(p, ear); i++)
        n += net_stamp(p, ear, i) > from && net_stamp(p, ear, i) < to;
    return n;
}

// Silent for so long, and not much longer, while the truth goes on.
static void expect_silence(double from, double seconds) {
    double start = 0, gap = longest_gap(joints, from - 0.1, from + 1, &start);
    // Samples are 20 ms apart, and a busy machine may lose a few.
    if (gap < seconds || gap > seconds + 0.5) fail_msg("silent for %.3f s, not %.3f s", gap, seconds);
    assert_true((double)count_between(truth, start, start + seconds) > 25 * seconds);
}

// ---------------------------------------------------------------- the run

static int run_robot(void **state) {
    (void)state;
    net_write_k10("faults.xml", "<network timeout='10 s'/><fault at='1 s' what='imu=bias:0,0,5' for='1 s'/>");
    p = net_open("cyclone");
    joints = net_listen(p, "/k10/joint_states", usi_type_joint_state);
    imu = net_listen(p, "/k10/imu/data", usi_type_imu);
    truth = net_listen(p, "/understudy/truth/k10/odom", usi_type_odometry);
    diagnostics = net_listen(p, "/diagnostics", usi_type_diagnostic_array);
    description = net_listen(p, "/k10/robot_description", usi_type_string);
    status = net_listen(p, "/understudy/status", usi_type_string);
    net_run("faults.xml --headless --quiet");
    command = net_speak(p, "/understudy/command", usi_type_string);
    cmd_vel = net_speak(p, "/k10/cmd_vel", usi_type_twist);
    net_wait_after(p, imu, 2.3);
    return 0;
}

static int close_all(void **state) {
    net_end(SIGINT);
    net_close(p);
    return net_teardown(state);
}

// ---------------------------------------------------------------- tests

static void a_fault_in_store_comes_and_goes_at_its_time(void **state) {
    (void)state;
    int64_t n = net_count(p, imu), n_off = 0;
    for (int64_t i = 0; i < n; i++) {
        double stamp = net_stamp(p, imu, i);
        const us_msg_imu *m = net_decode(p, imu, i);
        // The first second is for settling on its wheels; a sample at the very tick is of either kind.
        if (stamp < 0.9 || fabs(stamp - 1) < 0.005 || fabs(stamp - 2) < 0.005) continue;
        bool is_off = m->linear_acceleration.z > 9.81 + 2.5;
        n_off += is_off;
        assert_int_equal(is_off, stamp > 1 && stamp < 2);
    }
    assert_true(n_off > 50);
}

static void a_stuck_encoder_says_the_same_while_the_rover_drives(void **state) {
    (void)state;
    say("fault k10 encoder:left_rocker=jump:0.25");
    NET_WAIT(diagnostics_have("faults", "encoder of left_rocker off by 0.25"));
    double stuck_from = say("fault k10 encoder:front_left_steer=stuck") + 0.1;
    drive_until(stuck_from + 0.5);
    double stuck_to = net_time(p);
    int64_t n = 0;
    double held = NAN, jumped = 0;
    for (int64_t i = 0; i < net_count(p, joints); i++) {
        double stamp = net_stamp(p, joints, i);
        if (stamp < stuck_from || stamp > stuck_to) continue;
        const us_msg_joint_state *m = net_decode(p, joints, i);
        for (uint32_t k = 0; k < m->name._length; k++) {
            if (strcmp(m->name._buffer[k], "left_rocker") == 0) jumped = m->position._buffer[k];
            if (strcmp(m->name._buffer[k], "front_left_steer") != 0) continue;
            assert_true(isnan(held) || m->position._buffer[k] == held);
            held = m->position._buffer[k];
            n++;
        }
    }
    assert_true(n > 10);
    // On flat ground the rocker itself stays within a few hundredths.
    assert_true(fabs(jumped - 0.25) < 0.1);
    say("fault k10 encoder:front_left_steer=ok");
    say("fault k10 encoder:left_rocker=ok");
}

static void a_reboot_is_a_silence_after_which_all_is_told_anew(void **state) {
    (void)state;
    int64_t n_description = net_count(p, description);
    double from = say("fault k10 computer=reboot:1");
    NET_WAIT(diagnostics_have("boots", "1"));
    assert_true(diagnostics_have("message", "started anew"));
    NET_WAIT(net_count(p, description) > n_description);
    expect_silence(from, 1);
}

static void a_brownout_is_followed_by_a_start(void **state) {
    (void)state;
    double from = say("fault k10 power=brownout:0.5");
    net_wait_until(p, from + 0.7);
    // Five seconds of starting are long for a test.
    say("fault k10 computer=ok");
    NET_WAIT(diagnostics_have("boots", "2"));
    double start = 0;
    assert_true(longest_gap(joints, from - 0.1, from + 0.5, &start) > 0.5);
}

static void an_outage_is_a_silence_too(void **state) {
    (void)state;
    // Whatever was said before has arrived.
    net_wait_after(p, joints, net_time(p) + 0.2);
    double from = say("fault k10 link=outage:1");
    net_wait_after(p, joints, from + 0.5);
    expect_silence(from, 1);
    NET_WAIT(diagnostics_have("faults", "none"));
}

static void a_fault_that_cannot_be_is_refused_with_the_reason(void **state) {
    (void)state;
    char text[] = "fault k10 encoder:nose=stuck";
    net_say(command, usi_type_string, &(us_msg_string){text});
    NET_WAIT(net_count(p, status) > 0 &&
             strstr(((const us_msg_string *)net_decode(p, status, -1))->data, "has no encoder"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_in_store_comes_and_goes_at_its_time),
        cmocka_unit_test(a_stuck_encoder_says_the_same_while_the_rover_drives),
        cmocka_unit_test(a_reboot_is_a_silence_after_which_all_is_told_anew),
        cmocka_unit_test(a_brownout_is_followed_by_a_start),
        cmocka_unit_test(an_outage_is_a_silence_too),
        cmocka_unit_test(a_fault_that_cannot_be_is_refused_with_the_reason),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, run_robot, close_all);
}

// What a robot says on the network: a real `understudy run` with the K10 on flat ground, heard by a program
// on the same domain.
//
// One run serves all tests of this file. It stands for a while, then drives at 0.4 m/s, and all that is said
// is kept.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_peer.h"

enum {
    JOINTS,
    ODOM,
    TF,
    IMU,
    BATTERY,
    DIAGNOSTICS,
    TRUTH,
    MOTORS,
    LOCOMOTOR,
    POSE,
    NAVIGATOR,
    CLOCK,
    MAST,
    WHEELS,
    N_TOPIC
};

static const struct {
    const char *topic;
    const us_message_type *type;
    double rate;  // Hz of simulated time
} topics[N_TOPIC] = {
    [JOINTS] = {"/k10/joint_states", usi_type_joint_state, 50},
    [ODOM] = {"/k10/odom", usi_type_odometry, 50},
    [TF] = {"/tf", usi_type_tf_message, 50},
    [IMU] = {"/k10/imu/data", usi_type_imu, 100},
    [BATTERY] = {"/k10/battery_state", usi_type_battery_state, 1},
    [DIAGNOSTICS] = {"/diagnostics", usi_type_diagnostic_array, 1},
    [TRUTH] = {"/understudy/truth/k10/odom", usi_type_odometry, 50},
    [MOTORS] = {"/k10/motor_group/status", usi_type_motor_group_status, 25},
    [LOCOMOTOR] = {"/k10/locomotor/status", usi_type_locomotor_status, 25},
    [POSE] = {"/k10/pose_estimator/status", usi_type_pose_estimator_status, 25},
    [NAVIGATOR] = {"/k10/navigator/status", usi_type_navigator_status, 5},
    [CLOCK] = {"/clock", usi_type_clock, 200},
    [MAST] = {"/head/imu", usi_type_imu, 40},
    [WHEELS] = {"/k10/wheels/odometry", usi_type_odometry, 10},
};

static const double REST = 1.5, SPEED = 0.4;  // s, m/s
static net_peer *early, *late, *fast;
static int32_t ear[N_TOPIC], description, late_description, fast_ear[N_TOPIC], fast_description;
static double driving;  // s: when the first command was sent

// ---------------------------------------------------------------- the run

static int listen_and_drive(void **state) {
    (void)state;
    // With patience: a test that is not let run for a while is no operator who has gone.
    net_write_k10("k10.xml",
                  "<sensor type='imu' name='mast' link='base' xyz='0 0 1' rate='40 Hz'/>"
                  "<network timeout='10 s'><topic source='mast' name='/head/imu'/><topic name='odom'/>"
                  "<topic source='odom' name='wheels/odometry' rate='10 Hz'/></network>");
    early = net_open("cyclone");
    for (int i = 0; i < N_TOPIC; i++)
        ear[i] = net_listen(early, topics[i].topic, topics[i].type);
    description = net_listen(early, "/k10/robot_description", usi_type_string);
    fast = net_open("fastdds");
    for (int i = 0; fast && i < N_TOPIC; i++)
        fast_ear[i] = net_listen(fast, topics[i].topic, topics[i].type);
    if (fast) fast_description = net_listen(fast, "/k10/robot_description", usi_type_string);
    net_run("k10.xml --headless --quiet");
    for (int i = 0; i < N_TOPIC; i++)
        net_wait_match(early, ear[i]);
    net_wait_until(early, REST);
    // Who comes late hears what was said once.
    late = net_open("cyclone");
    late_description = net_listen(late, "/k10/robot_description", usi_type_string);
    us_writer *writer = net_speak(early, "/k10/cmd_vel", usi_type_twist);
    us_msg_twist twist = {.linear.x = SPEED};
    driving = net_time(early);
    while (net_time(early) < driving + 3) {
        net_say(writer, usi_type_twist, &twist);
        double time = net_time(early);
        net_wait_until(early, time + 0.1);
    }
    NET_WAIT(net_count(late, late_description) > 0);
    NET_WAIT(!fast || net_count(fast, fast_description) > 0);
    int code = net_end(SIGINT);
    if (code != 0) net_fail("the run ended with an error", "");
    return 0;
}

static int close_all(void **state) {
    if (early) net_close(early);
    if (late) net_close(late);
    if (fast) net_close(fast);
    return net_teardown(state);
}

// ---------------------------------------------------------------- helpers

static bool is_text(const char *a, const char *b) {
    if (strcmp(a, b) != 0) print_message("\"%s\" instead of \"%s\"\n", a, b);
    return strcmp(a, b) == 0;
}

// Stamps that grow, and as many of them as the rate says.
static void expect_rate(net_peer *p, int32_t e, const char *topic, double rate) {
    int64_t n = net_count(p, e);
    if (n < 2) fail_msg("%s: heard %d times", topic, (int)n);
    for (int64_t i = 1; i < n; i++) {
        double a = net_stamp(p, e, i - 1), b = net_stamp(p, e, i);
        if (!(b > a)) fail_msg("%s: stamp %.6f after %.6f", topic, b, a);
    }
    double measured = (double)(n - 1) / (net_stamp(p, e, n - 1) - net_stamp(p, e, 0));
    // Stamps are ticks: the rate is exact. Five percent is room for samples lost on a machine that is busy
    // with other things.
    if (fabs(measured / rate - 1) > 0.05) fail_msg("%s: %.2f Hz instead of %.2f", topic, measured, rate);
}

static int64_t first_after(net_peer *p, int32_t e, double time) {
    int64_t i = 0, n = net_count(p, e);
    while (i < n && net_stamp(p, e, i) < time)
        i++;
    assert_true(i < n);
    return i;
}

// ---------------------------------------------------------------- tests

static void every_topic_has_its_rate_and_its_stamps_grow(void **state) {
    (void)state;
    for (int i = 0; i < N_TOPIC; i++)
        expect_rate(early, ear[i], topics[i].topic, topics[i].rate);
}

static void no_stamp_is_ahead_of_the_clock(void **state) {
    (void)state;
    for (int i = 0; i < N_TOPIC; i++) {
        int64_t n = net_count(early, ear[i]), n_ahead = 0;
        if (i == CLOCK) continue;
        for (int64_t k = 0; k < n; k++) {
            net_heard heard = net_get(early, ear[i], k);
            // The clock goes in steps of 5 ms.
            if (heard.clock >= 0 && net_stamp(early, ear[i], k) > heard.clock + 0.0051) n_ahead++;
        }
        // A packet that the system dropped comes a moment later than those behind it: one in a hundred may.
        if (n_ahead > 1 + n / 100)
            fail_msg("%s: %d of %d stamps are ahead of the clock", topics[i].topic, (int)n_ahead, (int)n);
    }
}

static void joint_states_name_every_joint_and_wheels_turn(void **state) {
    (void)state;
    static const char *const names[] = {
        "left_rocker",     "right_rocker",      "front_left_steer",  "front_left_drive", "rear_left_steer",
        "rear_left_drive", "front_right_steer", "front_right_drive", "rear_right_steer", "rear_right_drive"};
    enum { N = sizeof names / sizeof names[0] };
    const us_msg_joint_state *m = net_decode(early, ear[JOINTS], -1);
    assert_int_equal(m->name._length, N);
    assert_int_equal(m->position._length, N);
    assert_int_equal(m->velocity._length, N);
    assert_int_equal(m->effort._length, N);
    double end[N];
    for (int i = 0; i < N; i++) {
        assert_true(is_text(m->name._buffer[i], names[i]));
        end[i] = m->position._buffer[i];
        // 0.4 m/s on wheels of 0.18 m; drives give way by torque over gain: 3 percent.
        if (strstr(names[i], "_drive")) assert_true(fabs(m->velocity._buffer[i] * 0.18 / SPEED - 1) < 0.03);
    }
    int64_t k = first_after(early, ear[JOINTS], driving + 1);
    double span = net_stamp(early, ear[JOINTS], -1) - net_stamp(early, ear[JOINTS], k);
    m = net_decode(early, ear[JOINTS], k);
    for (int i = 0; i < N; i++) {
        if (strstr(names[i], "_drive"))
            assert_true(fabs((end[i] - m->position._buffer[i]) * 0.18 / (SPEED * span) - 1) < 0.03);
    }
}

static void odometry_tells_frames_speed_and_way(void **state) {
    (void)state;
    const us_msg_odometry *m = net_decode(early, ear[ODOM], -1);
    assert_true(is_text(m->header.frame_id, "k10/odom"));
    assert_true(is_text(m->child_frame_id, "k10/base"));
    // Wheels that slip by a few mm/s, and drives that give way: 3 percent.
    assert_true(fabs(m->twist.twist.linear.x / SPEED - 1) < 0.03);
    assert_true(fabs(m->twist.twist.linear.y) < 0.01 && fabs(m->twist.twist.angular.z) < 0.01);
    assert_true(m->pose.covariance[0] > 0 && m->pose.covariance[35] > 0);
    double x = m->pose.pose.position.x, time = net_stamp(early, ear[ODOM], -1);
    int64_t k = first_after(early, ear[ODOM], driving + 1);
    double way = x - net_number(early, ear[ODOM], k, "pose.pose.position.x");
    assert_true(fabs(way / (SPEED * (time - net_stamp(early, ear[ODOM], k))) - 1) < 0.03);
    // The truth stands on a name of its own, in the world's frame, and on flat ground it is nearly the same.
    m = net_decode(early, ear[TRUTH], -1);
    assert_true(is_text(m->header.frame_id, "world"));
    assert_true(fabs(m->twist.twist.linear.x / SPEED - 1) < 0.03);
    assert_true(fabs(m->pose.pose.position.x - x) < 0.05);
}

static void every_frame_of_the_robot_hangs_on_the_map(void **state) {
    (void)state;
    static const char *const links[] = {"base",
                                        "left_rocker",
                                        "right_rocker",
                                        "front_left_fork",
                                        "front_left_wheel",
                                        "rear_left_fork",
                                        "rear_left_wheel",
                                        "front_right_fork",
                                        "front_right_wheel",
                                        "rear_right_fork",
                                        "rear_right_wheel"};
    const us_msg_tf_message *m = net_decode(early, ear[TF], -1);
    uint32_t n = m->transforms._length;
    const us_msg_transform_stamped *t = m->transforms._buffer;
    assert_int_equal(n, sizeof links / sizeof links[0] + 1);  // and odom
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        char frame[100];
        snprintf(frame, sizeof frame, "k10/%s", links[i]);
        // Up from frame to frame; a tree is not deeper than it has frames.
        for (uint32_t depth = 0; strcmp(frame, "map") != 0; depth++) {
            uint32_t k = 0, n_parent = 0;
            for (uint32_t j = 0; j < n; j++) {
                if (strcmp(t[j].child_frame_id, frame) == 0) {
                    k = j;
                    n_parent++;
                }
            }
            if (n_parent != 1 || depth > n) fail_msg("%s has %u parents", frame, n_parent);
            snprintf(frame, sizeof frame, "%s", t[k].header.frame_id);
        }
    }
    for (uint32_t j = 0; j < n; j++) {
        us_msg_quaternion q = t[j].transform.rotation;
        assert_true(fabs(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z - 1) < 1e-9);
    }
}

static void an_accelerometer_at_rest_reads_gravity_upwards(void **state) {
    (void)state;
    int64_t k = first_after(early, ear[IMU], 1.0), n = 0;
    for (; net_stamp(early, ear[IMU], k) < driving; k++, n++) {
        const us_msg_imu *m = net_decode(early, ear[IMU], k);
        us_msg_vector3 a = m->linear_acceleration, w = m->angular_velocity;
        // One second after it was set down the suspension still swings by less than a hundredth of g.
        assert_true(fabs(sqrt(a.x * a.x + a.y * a.y + a.z * a.z) - 9.81) < 0.1);
        assert_true(a.z > 9.7);
        assert_true(fabs(w.x) < 0.01 && fabs(w.y) < 0.01 && fabs(w.z) < 0.01);
        assert_true(is_text(m->header.frame_id, "k10/base"));
    }
    assert_true(n >= 10);
}

static int count_of(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

// The robot's file, with the prefix of its frames before the names of its links and nowhere else.
static void expect_description(const char *text) {
    static const char *const parts[] = {"<link name=\"", "<parent link=\"", "<child link=\""};
    char *file = net_read_text(US_SOURCE_DIR "/models/k10.urdf"), prefixed[64];
    int n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(prefixed, sizeof prefixed, "%sk10/", parts[i]);
        assert_true(count_of(file, parts[i]) > 0);
        assert_int_equal(count_of(text, parts[i]), count_of(file, parts[i]));
        assert_int_equal(count_of(text, prefixed), count_of(file, parts[i]));
        n += count_of(text, prefixed);
    }
    assert_int_equal(count_of(text, "\"k10/"), n);
    assert_int_equal(count_of(text, "<joint name=\""), count_of(file, "<joint name=\""));
    free(file);
}

static void the_description_has_the_frames_and_late_comers_get_it(void **state) {
    (void)state;
    const us_msg_string *m = net_decode(late, late_description, 0);
    expect_description(m->data);
    assert_int_equal(net_count(late, late_description), 1);
    m = net_decode(early, description, 0);
    expect_description(m->data);
    assert_int_equal(net_count(early, description), 1);
    char *text = strdup(m->data);
    assert_non_null(text);
    // Every frame but those of REP 105 is a link of it, and every joint of joint_states a joint.
    const us_msg_tf_message *tf = net_decode(early, ear[TF], -1);
    char part[200];
    bool has_map = false;
    for (uint32_t i = 0; i < tf->transforms._length; i++) {
        const us_msg_transform_stamped *t = &tf->transforms._buffer[i];
        const bool is_odom = strcmp(t->child_frame_id, "k10/odom") == 0;
        snprintf(part, sizeof part, "<link name=\"%s\"", t->child_frame_id);
        if (!is_odom && !strstr(text, part)) fail_msg("%s is no link", t->child_frame_id);
        if (is_odom) assert_string_equal(t->header.frame_id, "map");
        has_map = has_map || is_odom;
    }
    assert_true(has_map);
    const us_msg_joint_state *joints = net_decode(early, ear[JOINTS], -1);
    for (uint32_t i = 0; i < joints->name._length; i++) {
        snprintf(part, sizeof part, "<joint name=\"%s\"", joints->name._buffer[i]);
        if (!strstr(text, part)) fail_msg("%s is no joint", joints->name._buffer[i]);
    }
    free(text);
}

static void the_battery_falls_by_what_is_used(void **state) {
    (void)state;
    double first = net_number(early, ear[BATTERY], 0, "percentage"),
           last = net_number(early, ear[BATTERY], -1, "percentage");
    double span = net_stamp(early, ear[BATTERY], -1) - net_stamp(early, ear[BATTERY], 0);
    // Of 1 Wh the idle load alone takes 40 W; driving a rover of 100 kg on flat ground takes less than as
    // much again. Floats have 7 digits.
    double idle = 40 * span / 3600;
    assert_true(span > 2.5);
    assert_true(first - last >= idle - 1e-5 && first - last < 2 * idle);
    assert_true(net_number(early, ear[BATTERY], -1, "voltage") <
                net_number(early, ear[BATTERY], 0, "voltage"));
    assert_true(fabs(net_number(early, ear[BATTERY], -1, "voltage") / 48 - 1) < 0.07);
    assert_int_equal((int)net_number(early, ear[BATTERY], -1, "present"), 1);
}

static void diagnostics_count_commands(void **state) {
    (void)state;
    const us_msg_diagnostic_array *m = net_decode(early, ear[DIAGNOSTICS], -1);
    assert_int_equal(m->status._length, 1);
    const us_msg_diagnostic_status *s = &m->status._buffer[0];
    assert_int_equal(s->level, 0);
    assert_true(is_text(s->name, "k10: commands"));
    assert_true(is_text(s->message, "ok"));
    bool has_taken = false;
    for (uint32_t i = 0; i < s->values._length; i++) {
        const us_msg_key_value *v = &s->values._buffer[i];
        // Ten commands a second for at least two seconds before this was said; a busy machine may have let
        // some fall together.
        if (strcmp(v->key, "taken") == 0) has_taken = strtol(v->value, NULL, 10) >= 5;
        if (strcmp(v->key, "refused") == 0 || strcmp(v->key, "dropped") == 0)
            assert_true(is_text(v->value, "0"));
        if (strcmp(v->key, "motion") == 0) assert_true(is_text(v->value, "body velocity"));
    }
    assert_true(has_taken);
}

static void the_services_tell_how_they_fare(void **state) {
    (void)state;
    const us_msg_motor_group_status *m = net_decode(early, ear[MOTORS], -1);
    assert_int_equal(m->motors._length, 8);
    int n_turning = 0;
    for (int i = 0; i < 8; i++) {
        const us_msg_motor_state *motor = &m->motors._buffer[i];
        assert_true(motor->powered);
        assert_true(is_text(motor->fault, ""));
        n_turning += fabs(motor->velocity * 0.18 / SPEED - 1) < 0.03;
    }
    assert_int_equal(n_turning, 4);
    const us_msg_locomotor_status *l = net_decode(early, ear[LOCOMOTOR], -1);
    assert_true(fabs(l->speed / SPEED - 1) < 0.03);
    const us_msg_pose_estimator_status *e = net_decode(early, ear[POSE], -1);
    assert_true(is_text(e->header.frame_id, "map"));
    assert_true(fabs(e->twist.twist.linear.x / SPEED - 1) < 0.03);
    assert_true(e->pose.pose.position.x > 0.5 * SPEED);
    const us_msg_navigator_status *g = net_decode(early, ear[NAVIGATOR], -1);
    assert_int_equal(g->state, 0);
}

static void another_vendor_hears_the_same_bytes(void **state) {
    (void)state;
    if (!fast) {
        print_message("skipped: the plug-in for Fast DDS is not built\n");
        return;
    }
    for (int i = 0; i < N_TOPIC; i++) {
        expect_rate(fast, fast_ear[i], topics[i].topic, topics[i].rate);
        int64_t a = 0, n_same = 0, n = net_count(fast, fast_ear[i]), n_a = net_count(early, ear[i]);
        for (int64_t b = 0; b < n; b++) {
            while (a < n_a && net_stamp(early, ear[i], a) < net_stamp(fast, fast_ear[i], b))
                a++;
            if (a == n_a || net_stamp(early, ear[i], a) > net_stamp(fast, fast_ear[i], b)) continue;
            net_heard x = net_get(early, ear[i], a), y = net_get(fast, fast_ear[i], b);
            // Up to three bytes of padding stand behind a message.
            size_t length = x.length < y.length ? x.length : y.length;
            assert_true(x.length - length < 4 && y.length - length < 4);
            assert_memory_equal(x.bytes, y.bytes, length);
            n_same++;
        }
        assert_true(n_same >= 2);
    }
    const us_msg_string *m = net_decode(fast, fast_description, 0);
    expect_description(m->data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_topic_has_its_rate_and_its_stamps_grow),
        cmocka_unit_test(no_stamp_is_ahead_of_the_clock),
        cmocka_unit_test(joint_states_name_every_joint_and_wheels_turn),
        cmocka_unit_test(odometry_tells_frames_speed_and_way),
        cmocka_unit_test(every_frame_of_the_robot_hangs_on_the_map),
        cmocka_unit_test(an_accelerometer_at_rest_reads_gravity_upwards),
        cmocka_unit_test(the_description_has_the_frames_and_late_comers_get_it),
        cmocka_unit_test(the_battery_falls_by_what_is_used),
        cmocka_unit_test(diagnostics_count_commands),
        cmocka_unit_test(the_services_tell_how_they_fare),
        cmocka_unit_test(another_vendor_hears_the_same_bytes),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, listen_and_drive, close_all);
}

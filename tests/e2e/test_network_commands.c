// What a robot does with commands from the network: follows them, refuses them, and stops when they end.
//
// One run serves all tests of this file, at twice real time; each leaves the robot standing.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_peer.h"

static net_peer *p;
static int32_t joints, odom, motors, locomotor, pose, navigator, diagnostics;

static int start(void **state) {
    (void)state;
    net_write_k10("k10.xml", "<network timeout='0.5 s'><topic name='diagnostics' rate='10 Hz'/></network>");
    p = net_open("cyclone");
    joints = net_listen(p, "/k10/joint_states", usi_type_joint_state);
    odom = net_listen(p, "/k10/odom", usi_type_odometry);
    motors = net_listen(p, "/k10/motor_group/status", usi_type_motor_group_status);
    locomotor = net_listen(p, "/k10/locomotor/status", usi_type_locomotor_status);
    pose = net_listen(p, "/k10/pose_estimator/status", usi_type_pose_estimator_status);
    navigator = net_listen(p, "/k10/navigator/status", usi_type_navigator_status);
    diagnostics = net_listen(p, "/diagnostics", usi_type_diagnostic_array);
    net_run("k10.xml --headless --quiet --rate 2");
    net_wait_match(p, diagnostics);
    net_wait_after(p, diagnostics, 0.3);
    return 0;
}

static int end(void **state) {
    int code = net_end(SIGINT);
    net_close(p);
    net_teardown(state);
    return code;
}

// ---------------------------------------------------------------- helpers

static double speed_now(void) { return net_number(p, odom, -1, "twist.twist.linear.x"); }

// Sends a body velocity ten times a second until the wheels turn that fast.
static void drive_until(us_writer *writer, const us_message_type *type, const void *message, double speed) {
    double until = net_clock() + NET_PATIENCE, sent = -1;
    while (fabs(speed_now() - speed) > 0.02) {
        if (net_clock() > until) net_fail("waited for", "the speed");
        if (net_clock() > sent + 0.05) {
            net_say(writer, type, message);
            sent = net_clock();
        }
        net_nap();
    }
}

static void wait_for_rest(void) {
    NET_WAIT(fabs(speed_now()) < 0.005 && fabs(net_number(p, odom, -1, "twist.twist.angular.z")) < 0.005);
}

// The value of a key in the newest diagnostics; and the message.
static long diagnosed(const char *key, char *out_message, size_t cap) {
    const us_msg_diagnostic_array *m = net_decode(p, diagnostics, -1);
    assert_int_equal(m->status._length, 1);
    const us_msg_diagnostic_status *s = &m->status._buffer[0];
    if (out_message) snprintf(out_message, cap, "%d %s", (int)s->level, s->message);
    for (uint32_t i = 0; i < s->values._length; i++) {
        if (strcmp(s->values._buffer[i].key, key) == 0) return strtol(s->values._buffer[i].value, NULL, 10);
    }
    fail_msg("no \"%s\" in diagnostics", key);
    return 0;
}

// Sends a command and waits until diagnostics tell that it was refused, and why, as a warning.
static void expect_refusal(us_writer *writer, const us_message_type *type, const void *message,
                           const char *why) {
    long before = diagnosed("refused", NULL, 0);
    char text[400];
    double sent = net_time(p);
    net_say(writer, type, message);
    NET_WAIT(diagnosed("refused", NULL, 0) > before);
    diagnosed("refused", text, sizeof text);
    if (text[0] != '1' || !strstr(text, why)) fail_msg("\"%s\" instead of \"1 ...%s...\"", text, why);
    assert_true(net_stamp(p, diagnostics, -1) >= sent);
}

static double joint_now(const char *name, bool is_velocity) {
    const us_msg_joint_state *m = net_decode(p, joints, -1);
    for (uint32_t i = 0; i < m->name._length; i++) {
        if (strcmp(m->name._buffer[i], name) == 0)
            return is_velocity ? m->velocity._buffer[i] : m->position._buffer[i];
    }
    fail_msg("no joint %s", name);
    return NAN;
}

// ---------------------------------------------------------------- body velocity

static void twist_and_twist_stamped_have_a_topic_each(void **state) {
    (void)state;
    us_writer *plain = net_speak(p, "/k10/cmd_vel", usi_type_twist),
              *stamped = net_speak(p, "/k10/cmd_vel_stamped", usi_type_twist_stamped);
    us_msg_twist a = {.linear.x = 0.3};
    us_msg_twist_stamped b = {.header.frame_id = usi_text("k10/base"), .twist.linear.x = -0.2};
    drive_until(plain, usi_type_twist, &a, 0.3);
    drive_until(stamped, usi_type_twist_stamped, &b, -0.2);
    drive_until(plain, usi_type_twist, &(us_msg_twist){0}, 0);
    wait_for_rest();
    us_writer_remove(plain);
    us_writer_remove(stamped);
}

static void another_vendor_drives_it(void **state) {
    (void)state;
    net_peer *fast = net_open("fastdds");
    if (!fast) {
        print_message("skipped: the plug-in for Fast DDS is not built\n");
        return;
    }
    us_writer *writer = net_speak(fast, "/k10/cmd_vel", usi_type_twist);
    drive_until(writer, usi_type_twist, &(us_msg_twist){.linear.x = 0.25}, 0.25);
    drive_until(writer, usi_type_twist, &(us_msg_twist){0}, 0);
    wait_for_rest();
    net_close(fast);
}

static void silence_stops_it_after_the_timeout_and_not_before(void **state) {
    (void)state;
    us_writer *writer = net_speak(p, "/k10/cmd_vel", usi_type_twist);
    us_msg_twist m = {.linear.x = 0.3};
    long before = diagnosed("safe stops", NULL, 0);
    drive_until(writer, usi_type_twist, &m, 0.3);
    double last = net_time(p);
    net_say(writer, usi_type_twist, &m);
    net_wait_after(p, odom, last + 0.5);
    wait_for_rest();
    // The last command came after `last`, so half a second of silence cannot be over before `last` + 0.5.
    // Odometry comes every 0.02 s.
    int64_t i = net_count(p, odom) - 1;
    while (net_number(p, odom, i, "twist.twist.linear.x") < 0.25)
        i--;
    assert_true(net_stamp(p, odom, i) > last + 0.48);
    NET_WAIT(diagnosed("safe stops", NULL, 0) > before);
    us_writer_remove(writer);
}

static void a_refused_velocity_leaves_the_old_one_in_force(void **state) {
    (void)state;
    us_writer *writer = net_speak(p, "/k10/cmd_vel", usi_type_twist);
    us_msg_twist good = {.linear.x = 0.3};
    drive_until(writer, usi_type_twist, &good, 0.3);
    double from = net_time(p);
    net_say(writer, usi_type_twist, &good);
    expect_refusal(writer, usi_type_twist, &(us_msg_twist){.linear.x = 2},
                   "cmd_vel: speed 2 m/s is beyond the limit of 0.9 m/s");
    expect_refusal(writer, usi_type_twist, &(us_msg_twist){.angular.z = -4}, "beyond the limit of 1.5 rad/s");
    expect_refusal(writer, usi_type_twist, &(us_msg_twist){.linear.x = NAN}, "not a finite number");
    wait_for_rest();
    // None of them was followed: it went on at 0.3 m/s until the timeout of the good one.
    for (int64_t i = net_wait_after(p, odom, from), n = net_count(p, odom); i < n; i++) {
        double speed = net_number(p, odom, i, "twist.twist.linear.x");
        assert_true(speed < 0.33 && (speed > 0.25 || net_stamp(p, odom, i) > from + 0.4));
        assert_true(fabs(net_number(p, odom, i, "twist.twist.angular.z")) < 0.05);
    }
    us_writer_remove(writer);
}

// ---------------------------------------------------------------- joints

static void joint_commands_turn_each_drive(void **state) {
    (void)state;
    us_writer *writer = net_speak(p, "/k10/joint_commands", usi_type_float64_multi_array);
    // By the order of joint_states: steer (an angle) and drive (a velocity) of front left, rear left, front
    // right, rear right.
    double values[] = {0.2, 1, 0.2, 1, 0.2, 1, 0.2, 1};
    us_msg_float64_multi_array m = {.data = {._length = 8, ._maximum = 8, ._buffer = values}};
    double until = net_clock() + NET_PATIENCE;
    // Wheels scrub when they steer: 0.02 rad.
    while (fabs(joint_now("rear_right_steer", false) - 0.2) > 0.02 ||
           fabs(joint_now("rear_right_drive", true) - 1) > 0.05) {
        if (net_clock() > until) net_fail("waited for", "joint_commands");
        net_say(writer, usi_type_float64_multi_array, &m);
        for (int i = 0; i < 20; i++)
            net_nap();
    }
    // Velocities must be renewed; angles stay.
    NET_WAIT(fabs(joint_now("rear_right_drive", true)) < 0.02);
    assert_true(fabs(joint_now("rear_right_steer", false) - 0.2) < 0.02);
    m.data._length = 3;
    expect_refusal(writer, usi_type_float64_multi_array, &m, "joint_commands: 3 numbers for 8 drives");
    m.data._length = 8;
    values[0] = 40;
    expect_refusal(writer, usi_type_float64_multi_array, &m, "\"front_left_steer\" is beyond its limits");
    us_writer_remove(writer);
}

static void a_joint_trajectory_ends_at_its_last_point(void **state) {
    (void)state;
    us_writer *writer = net_speak(p, "/k10/joint_trajectory", usi_type_joint_trajectory);
    char *names[] = {usi_text("front_left_steer"), usi_text("rear_left_steer")};
    double first[] = {0, 0}, last[] = {0.3, -0.3};
    us_msg_joint_trajectory_point points[] = {
        {.positions = {._length = 2, ._maximum = 2, ._buffer = first}, .time_from_start = {0, 500000000}},
        {.positions = {._length = 2, ._maximum = 2, ._buffer = last}, .time_from_start = {1, 0}},
    };
    us_msg_joint_trajectory m = {.header.frame_id = usi_text("")};
    m.joint_names._buffer = names;
    m.joint_names._length = 2;
    m.points._buffer = points;
    m.points._length = 2;
    net_say(writer, usi_type_joint_trajectory, &m);
    // Wheels scrub when they steer: 0.03 rad.
    NET_WAIT(fabs(joint_now("front_left_steer", false) - 0.3) < 0.03 &&
             fabs(joint_now("rear_left_steer", false) + 0.3) < 0.03);
    names[1] = usi_text("left_antenna");
    expect_refusal(writer, usi_type_joint_trajectory, &m,
                   "joint_trajectory: there is no joint \"left_antenna\"");
    names[1] = usi_text("rear_left_steer");
    points[1].time_from_start = points[0].time_from_start;
    expect_refusal(writer, usi_type_joint_trajectory, &m, "the time of point 1 is not after");
    us_writer_remove(writer);
}

// ---------------------------------------------------------------- services

static void a_motor_command_is_answered_by_its_number(void **state) {
    (void)state;
    us_writer *writer = net_speak(p, "/k10/motor_group/command", usi_type_motor_group_command);
    us_msg_motor_profile profile = {
        .name = usi_text("front_right_steer"), .mode = 3, .value = -0.25, .acceleration = 2, .velocity = 1};
    us_msg_motor_group_command m = {.header.frame_id = usi_text(""),
                                    .sequence = 41,
                                    .motors = {._length = 1, ._maximum = 1, ._buffer = &profile}};
    net_say(writer, usi_type_motor_group_command, &m);
    NET_WAIT(net_number(p, motors, -1, "sequence") == 41);
    assert_true(net_number(p, motors, -1, "result") == 0);
    NET_WAIT(fabs(joint_now("front_right_steer", false) + 0.25) < 0.03);
    // A refusal has its number too, and stands in the diagnostics.
    m.sequence = 42;
    profile.name = usi_text("claw");
    expect_refusal(writer, usi_type_motor_group_command, &m,
                   "motor_group/command: there is no joint \"claw\"");
    NET_WAIT(net_number(p, motors, -1, "sequence") == 42);
    const us_msg_motor_group_status *status = net_decode(p, motors, -1);
    assert_int_equal(status->result, 1);
    assert_non_null(strstr(status->message, "claw"));
    us_writer_remove(writer);
}

static void a_command_to_one_motor_does_not_leave_the_wheels_rolling(void **state) {
    (void)state;
    us_writer *body = net_speak(p, "/k10/cmd_vel", usi_type_twist);
    us_writer *writer = net_speak(p, "/k10/motor_group/command", usi_type_motor_group_command);
    drive_until(body, usi_type_twist, &(us_msg_twist){.linear.x = 0.3}, 0.3);
    us_msg_motor_profile profile = {.name = usi_text("front_right_steer"), .mode = 2, .value = 0};
    us_msg_motor_group_command m = {.header.frame_id = usi_text(""),
                                    .sequence = 43,
                                    .motors = {._length = 1, ._maximum = 1, ._buffer = &profile}};
    net_say(writer, usi_type_motor_group_command, &m);
    NET_WAIT(net_number(p, motors, -1, "sequence") == 43);
    // Nobody renews the body velocity.
    wait_for_rest();
    us_writer_remove(body);
    us_writer_remove(writer);
}

static void an_arc_is_driven_to_its_end(void **state) {
    (void)state;
    us_writer *writer = net_speak(p, "/k10/locomotor/command", usi_type_locomotor_command);
    double x = net_number(p, odom, -1, "pose.pose.position.x"),
           y = net_number(p, odom, -1, "pose.pose.position.y");
    us_msg_locomotor_command m = {.header.frame_id = usi_text(""),
                                  .sequence = 7,
                                  .mode = 2,
                                  .speed = 0.4,
                                  .distance = 0.6,
                                  .curvature = 0.5};
    net_say(writer, usi_type_locomotor_command, &m);
    NET_WAIT(net_number(p, locomotor, -1, "sequence") == 7 && net_number(p, locomotor, -1, "state") == 2);
    wait_for_rest();
    // Done within a millimetre, by its own account; then the wheels run out.
    assert_true(fabs(net_number(p, locomotor, -1, "distance") - 0.6) < 0.01);
    // The chord of 0.6 m on a circle of 2 m is 2 R sin(s / 2 R) = 0.598 m; wheels that steer into it first: 5
    // percent.
    double chord = hypot(net_number(p, odom, -1, "pose.pose.position.x") - x,
                         net_number(p, odom, -1, "pose.pose.position.y") - y);
    assert_true(fabs(chord / 0.598 - 1) < 0.05);
    m.sequence = 8;
    m.mode = 9;
    expect_refusal(writer, usi_type_locomotor_command, &m, "locomotor mode 9");
    NET_WAIT(net_number(p, locomotor, -1, "sequence") == 8);
    assert_true(net_number(p, locomotor, -1, "state") == 4);
    us_writer_remove(writer);
}

static void the_navigator_drives_to_a_point_of_the_map(void **state) {
    (void)state;
    us_writer *where = net_speak(p, "/k10/pose_estimator/command", usi_type_pose_estimator_command);
    us_writer *go = net_speak(p, "/k10/navigator/command", usi_type_navigator_command);
    us_msg_pose_estimator_command set = {
        .header.frame_id = usi_text("map"), .sequence = 3, .mode = 1, .pose = {{10, 20, 0}, {0, 0, 0, 1}}};
    net_say(where, usi_type_pose_estimator_command, &set);
    NET_WAIT(net_number(p, pose, -1, "sequence") == 3 &&
             fabs(net_number(p, pose, -1, "pose.pose.position.x") - 10) < 0.01);
    assert_true(fabs(net_number(p, pose, -1, "pose.pose.position.y") - 20) < 0.01);
    // Where it is now is known best; the way adds to that.
    const double known = net_number(p, pose, -1, "pose.covariance[0]");
    assert_true(known > 0 && known < 2e-3);
    us_msg_point point = {10.6, 20.1, 0};
    us_msg_navigator_command m = {
        .header.frame_id = usi_text("map"), .sequence = 5, .mode = 1, .tolerance = 0.05, .speed = 0.4};
    m.points._buffer = &point;
    m.points._length = 1;
    net_say(go, usi_type_navigator_command, &m);
    NET_WAIT(net_number(p, navigator, -1, "sequence") == 5 && net_number(p, navigator, -1, "state") == 2);
    wait_for_rest();
    // Within the tolerance, and what it rolls until it stands.
    double after = net_time(p);
    int64_t i = net_wait_after(p, pose, after);
    assert_true(hypot(net_number(p, pose, i, "pose.pose.position.x") - 10.6,
                      net_number(p, pose, i, "pose.pose.position.y") - 20.1) < 0.1);
    assert_true(net_number(p, pose, i, "pose.covariance[0]") > known &&
                net_number(p, pose, i, "pose.covariance[7]") > known);
    us_writer_remove(where);
    us_writer_remove(go);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twist_and_twist_stamped_have_a_topic_each),
        cmocka_unit_test(another_vendor_drives_it),
        cmocka_unit_test(silence_stops_it_after_the_timeout_and_not_before),
        cmocka_unit_test(a_refused_velocity_leaves_the_old_one_in_force),
        cmocka_unit_test(joint_commands_turn_each_drive),
        cmocka_unit_test(a_joint_trajectory_ends_at_its_last_point),
        cmocka_unit_test(a_motor_command_is_answered_by_its_number),
        cmocka_unit_test(a_command_to_one_motor_does_not_leave_the_wheels_rolling),
        cmocka_unit_test(an_arc_is_driven_to_its_end),
        cmocka_unit_test(the_navigator_drives_to_a_point_of_the_map),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start, end);
}

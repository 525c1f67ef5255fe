// What a source says of its own state, from the bytes of its messages.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "switch/estimate.h"
#include "wire/messages.h"

static const int64_t second = 1000000000;

static usi_estimate_group take(usi_estimate *e, const char *topic, const us_message_type *type,
                               const void *message, int64_t now) {
    uint8_t bytes[65536];
    size_t length = 0;
    assert_int_equal(us_message_encode(type, message, bytes, sizeof bytes, &length), US_OK);
    return usi_estimate_take(e, topic, type, bytes, length, 77 * second, now);
}

static us_msg_odometry odometry(int32_t sec, uint32_t nanosec, double x) {
    us_msg_odometry m = {.header = {.stamp = {sec, nanosec}, .frame_id = usi_text("k10/odom")},
                         .child_frame_id = usi_text("k10/base")};
    m.pose.pose.position.x = x;
    m.pose.pose.orientation.w = 2;  // not of unit length: some do not care
    m.twist.twist.linear.x = 0.5;
    m.twist.twist.angular.z = -0.1;
    return m;
}

static void odometry_is_taken_with_both_times(void **state) {
    (void)state;
    usi_estimate e = {0};
    us_msg_odometry m = odometry(10, 0, 1.5);
    assert_int_equal(take(&e, "rt/k10/odom", usi_type_odometry, &m, 3 * second), USI_ESTIMATE_ODOM);
    assert_int_equal(e.odom_time, 10 * second);
    assert_int_equal(e.odom_heard, 3 * second);
    assert_true(e.X_OB.p.x == 1.5 && e.X_OB.q.w == 1 && e.v_B.x == 0.5 && e.w_B.z == -0.1);
    assert_string_equal(e.odom_frame, "k10/odom");
    assert_string_equal(e.base_frame, "k10/base");
    assert_true(e.odom_period == 0);
    for (uint32_t i = 1; i <= 5; i++) {
        m = odometry(10, 20000000 * i, 1.5);
        take(&e, "rt/k10/odom", usi_type_odometry, &m, 4 * second);
    }
    assert_true(fabs(e.odom_period - 0.02) < 1e-9);
    // One that was overtaken is passed over; a clock that was set back is followed; without a stamp the
    // sample's own time holds.
    m = odometry(10, 50000000, 9);
    assert_int_equal(take(&e, "rt/k10/odom", usi_type_odometry, &m, 4 * second), USI_N_ESTIMATE);
    assert_true(e.X_OB.p.x == 1.5);
    m = odometry(2, 0, 3);
    assert_int_equal(take(&e, "rt/k10/odom", usi_type_odometry, &m, 5 * second), USI_ESTIMATE_ODOM);
    m = odometry(0, 0, 4);
    assert_int_equal(take(&e, "rt/k10/odom", usi_type_odometry, &m, 5 * second), USI_ESTIMATE_ODOM);
    assert_int_equal(e.odom_time, 77 * second);
}

static void what_is_not_finite_or_of_another_topic_is_passed_over(void **state) {
    (void)state;
    usi_estimate e = {0};
    us_msg_odometry m = odometry(10, 0, NAN);
    assert_int_equal(take(&e, "rt/k10/odom", usi_type_odometry, &m, second), USI_N_ESTIMATE);
    m = odometry(10, 0, 1);
    m.pose.pose.orientation.w = 0;
    assert_int_equal(take(&e, "rt/k10/odom", usi_type_odometry, &m, second), USI_N_ESTIMATE);
    assert_int_equal(e.odom_heard, 0);
    assert_int_equal(usi_estimate_take(&e, "rt/k10/odom", usi_type_odometry, "\0\1\0\0", 4, 1, 1),
                     USI_N_ESTIMATE);
    us_msg_string text = {.data = usi_text("odom")};
    assert_int_equal(take(&e, "rt/k10/odom", usi_type_string, &text, second), USI_N_ESTIMATE);
    // The usual name wins over the first that was heard, and stays.
    usi_estimate two = {0};
    m = odometry(10, 0, 1);
    assert_int_equal(take(&two, "rt/k10/visual", usi_type_odometry, &m, second), USI_ESTIMATE_ODOM);
    m = odometry(11, 0, 2);
    assert_int_equal(take(&two, "rt/k10/odom", usi_type_odometry, &m, second), USI_ESTIMATE_ODOM);
    m = odometry(12, 0, 3);
    assert_int_equal(take(&two, "rt/k10/visual", usi_type_odometry, &m, second), USI_N_ESTIMATE);
    assert_true(two.X_OB.p.x == 2);
}

static void joints_are_known_by_name(void **state) {
    (void)state;
    usi_estimate e = {0};
    char *names[] = {usi_text("a"), usi_text("b"), usi_text("c")};
    double position[] = {1, 2, NAN}, velocity[] = {0.1, 0.2};
    us_msg_joint_state m = {.header.stamp = {1, 0}};
    m.name._buffer = names;
    m.name._length = 3;
    m.position._buffer = position;
    m.position._length = 3;
    m.velocity._buffer = velocity;
    m.velocity._length = 2;
    assert_int_equal(take(&e, "rt/k10/joint_states", usi_type_joint_state, &m, second), USI_ESTIMATE_JOINTS);
    assert_int_equal(e.n_joint, 3);
    assert_string_equal(e.joint[1].name, "b");
    assert_true(e.joint[1].position == 2 && e.joint[1].velocity == 0.2);
    assert_true(isnan(e.joint[1].effort) && isnan(e.joint[2].position) && isnan(e.joint[2].velocity));
    // Another order, and one alone.
    char *turned[] = {usi_text("c"), usi_text("a")};
    m.header.stamp.sec = 2;
    m.name._buffer = turned;
    m.name._length = 2;
    m.position._length = m.velocity._length = 2;
    take(&e, "rt/k10/joint_states", usi_type_joint_state, &m, second);
    assert_int_equal(e.n_joint, 3);
    assert_true(e.joint[2].position == 1 && e.joint[0].position == 2 && e.joint[1].position == 2);
    // More joints than there is room for: the rest is passed over.
    static char many[100][8];
    char *all[100];
    for (int i = 0; i < 100; i++) {
        snprintf(many[i], sizeof many[i], "j%d", i);
        all[i] = many[i];
    }
    m.header.stamp.sec = 3;
    m.name._buffer = all;
    m.name._length = 100;
    assert_int_equal(take(&e, "rt/k10/joint_states", usi_type_joint_state, &m, second), USI_ESTIMATE_JOINTS);
    assert_int_equal(e.n_joint, USI_MAX_ESTIMATE_JOINT);
}

static void battery_and_inertial_unit_tell_what_they_know(void **state) {
    (void)state;
    usi_estimate e = {0};
    us_msg_battery_state b = {.header.stamp = {1, 0},
                              .voltage = 48.5F,
                              .current = NAN,
                              .charge = 5,
                              .capacity = 10,
                              .percentage = NAN};
    assert_int_equal(take(&e, "rt/k10/battery_state", usi_type_battery_state, &b, second),
                     USI_ESTIMATE_BATTERY);
    assert_true(e.voltage == 48.5 && isnan(e.current) && e.charge == 0.5);
    us_msg_imu i = {
        .header.stamp = {1, 0}, .orientation.w = 1, .angular_velocity.z = 0.3, .linear_acceleration.z = 9.8};
    assert_int_equal(take(&e, "rt/k10/imu/data", usi_type_imu, &i, second), USI_ESTIMATE_IMU);
    assert_true(e.has_orientation && e.w_I.z == 0.3 && e.a_I.z == 9.8);
    i.header.stamp.sec = 2;
    i.orientation_covariance[0] = -1;
    assert_int_equal(take(&e, "rt/k10/imu/data", usi_type_imu, &i, second), USI_ESTIMATE_IMU);
    assert_false(e.has_orientation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odometry_is_taken_with_both_times),
        cmocka_unit_test(what_is_not_finite_or_of_another_topic_is_passed_over),
        cmocka_unit_test(joints_are_known_by_name),
        cmocka_unit_test(battery_and_inertial_unit_tell_what_they_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

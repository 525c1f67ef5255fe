// What a robot's firmware does with commands: followed, refused, timed out.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy_world.h"

// The base's pose in the plane: x, y, angle.
static void where(proxy_world *w, double out[3]) {
    us_pose X = us_sim_get_pose(w->sim, us_model_find_body(w->model, "k10/base"));
    out[0] = X.p.x;
    out[1] = X.p.y;
    out[2] = atan2(2 * (X.q.w * X.q.z + X.q.x * X.q.y), 1 - 2 * (X.q.y * X.q.y + X.q.z * X.q.z));
}

static double joint_q(const proxy_world *w, const char *name) {
    us_joint j = us_model_find_joint(w->model, name);
    assert_true(j.i >= 0);
    return us_sim_view_q(w->sim)[us_model_get_joint(w->model, j).first_q];
}

static double joint_v(const proxy_world *w, const char *name) {
    us_joint j = us_model_find_joint(w->model, name);
    assert_true(j.i >= 0);
    return us_sim_view_v(w->sim)[us_model_get_joint(w->model, j).first_v];
}

static void drive_for(proxy_world *w, double vx, double vy, double wz, int ticks) {
    for (int i = 0; i < ticks; i += 100) {
        assert_int_equal(proxy_world_drive(w, vx, vy, wz), US_OK);
        proxy_world_step(w, 100);
    }
}

static void settle(proxy_world *w) { proxy_world_step(w, 500); }

static void expect_refusal(proxy_world *w, int64_t n, const char *why) {
    char text[200];
    us_proxy_last_refusal(w->proxy, w->sim, 0, text, sizeof text);
    if (us_proxy_get_counts(w->proxy, w->sim).n_refused != n || !strstr(text, why))
        print_message("refusal: %s, not: %s\n", text, why);
    assert_int_equal(us_proxy_get_counts(w->proxy, w->sim).n_refused, n);
    assert_non_null(strstr(text, why));
}

static void cmd_vel_drives_straight_at_the_speed_asked_for(void **state) {
    (void)state;
    proxy_world w;
    double a[3], b[3];
    proxy_world_k10(&w, "");
    settle(&w);
    drive_for(&w, 0.5, 0, 0, 1500);
    where(&w, a);
    drive_for(&w, 0.5, 0, 0, 2000);
    where(&w, b);
    // The wheels' drives give way by torque / kd, a few mm/s, and the tyres' contact stretches: 3 percent.
    assert_true(fabs(b[0] - a[0] - 1.0) < 0.03);
    assert_true(fabs(b[1] - a[1]) < 0.01);
    proxy_world_fini(&w);
}

static void an_arc_has_the_radius_v_over_w_and_crab_goes_sideways(void **state) {
    (void)state;
    proxy_world w;
    double a[3], b[3];
    proxy_world_k10(&w, "");
    settle(&w);
    drive_for(&w, 0.4, 0, 0.2, 2000);
    where(&w, a);
    drive_for(&w, 0.4, 0, 0.2, 3000);
    where(&w, b);
    double turn = remainder(b[2] - a[2], 6.283185307179586), chord = hypot(b[0] - a[0], b[1] - a[1]);
    // Four wheels that all stand square to the centre slip little: 5 percent.
    assert_true(fabs(turn - 0.6) < 0.03);
    assert_true(fabs(chord / (2 * sin(turn / 2)) - 2.0) < 0.1);
    drive_for(&w, 0, 0, 0, 1500);
    where(&w, a);
    drive_for(&w, 0, 0.3, 0, 4000);
    where(&w, b);
    double left = -sin(a[2]) * (b[0] - a[0]) + cos(a[2]) * (b[1] - a[1]);
    assert_true(left > 0.5);
    assert_true(fabs(remainder(b[2] - a[2], 6.283185307179586)) < 0.05);
    proxy_world_fini(&w);
}

static void silence_stops_the_robot_after_the_timeout(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "<network timeout='0.3 s'/>");
    settle(&w);
    drive_for(&w, 0.5, 0, 0, 1000);
    proxy_world_step(&w, 150);
    assert_true(joint_v(&w, "k10/front_left_drive") > 2);
    assert_int_equal(us_proxy_get_counts(w.proxy, w.sim).n_timeout, 0);
    // 0.3 s after the last command, and half a second to slow down from 0.5 m/s at 1 m/s^2.
    proxy_world_step(&w, 1000);
    assert_int_equal(us_proxy_get_counts(w.proxy, w.sim).n_timeout, 1);
    assert_true(fabs(joint_v(&w, "k10/front_left_drive")) < 0.02);
    proxy_world_fini(&w);
}

static void a_bad_velocity_is_refused_and_the_old_one_stays(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "");
    settle(&w);
    drive_for(&w, 0.4, 0, 0, 1000);
    const double bad[][3] = {{NAN, 0, 0}, {0, INFINITY, 0}, {2, 0, 0}, {0, 0, 3}};
    const char *const why[] = {"finite", "finite", "beyond the limit", "beyond the limit"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(proxy_world_drive(&w, bad[i][0], bad[i][1], bad[i][2]), US_OK);
        proxy_world_step(&w, 50);
        expect_refusal(&w, i + 1, why[i]);
        assert_true(joint_v(&w, "k10/front_left_drive") > 1.9);
    }
    // Bytes that are no Twist.
    assert_int_equal(us_proxy_post(w.proxy, "/k10/cmd_vel", usi_type_twist, "test", "\0\1\0\0abc", 7), US_OK);
    proxy_world_step(&w, 1);
    assert_int_equal(us_proxy_get_counts(w.proxy, w.sim).n_refused, 5);
    assert_int_equal(us_proxy_post(w.proxy, "/k11/cmd_vel", usi_type_twist, "test", "", 0), US_ERR_NAME);
    proxy_world_fini(&w);
}

// A topic has one type; which one cmd_vel has is a setting.
static void twist_stamped_has_a_topic_of_its_own(void **state) {
    (void)state;
    static const struct {
        const char *inside, *plain, *stamped;
    } cases[] = {
        {"", "/k10/cmd_vel", "/k10/cmd_vel_stamped"},
        {"<network cmd-vel='TwistStamped'/>", "/k10/cmd_vel_unstamped", "/k10/cmd_vel"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        proxy_world w;
        proxy_world_k10(&w, cases[c].inside);
        settle(&w);
        us_msg_twist_stamped m = {.header.frame_id = TEXT("base"), .twist.linear.x = 0.4};
        assert_int_not_equal(proxy_world_post(&w, cases[c].plain, usi_type_twist_stamped, &m), US_OK);
        assert_int_not_equal(proxy_world_post(&w, cases[c].stamped, usi_type_twist, &m.twist), US_OK);
        for (int i = 0; i < 10; i++) {
            assert_int_equal(proxy_world_post(&w, cases[c].stamped, usi_type_twist_stamped, &m), US_OK);
            proxy_world_step(&w, 100);
        }
        assert_true(fabs(joint_v(&w, "k10/front_left_drive") * 0.18 - 0.4) < 0.03);
        m.twist.linear.x = -0.2;
        for (int i = 0; i < 10; i++) {
            assert_int_equal(proxy_world_post(&w, cases[c].plain, usi_type_twist, &m.twist), US_OK);
            proxy_world_step(&w, 100);
        }
        assert_true(fabs(joint_v(&w, "k10/front_left_drive") * 0.18 + 0.2) < 0.03);
        proxy_world_fini(&w);
    }
}

static const char *const arm =
    "<scene name='a' version='1'><world step='1 ms'/><robot name='arm' file='../models/arm6.urdf'>"
    "<drive joint='joint1' kp='4000' kd='400'/><drive joint='joint2' kp='4000' kd='400'/><drive "
    "joint='joint3' kp='4000' kd='400'/>"
    "<drive joint='joint4' kp='400' kd='40'/><drive joint='joint5' kp='400' kd='40'/><drive joint='joint6' "
    "kp='400' kd='40'/></robot></scene>";

static us_msg_joint_trajectory trajectory(char **names, uint32_t n, us_msg_joint_trajectory_point *points,
                                          uint32_t n_point) {
    us_msg_joint_trajectory m = {.header.frame_id = TEXT("")};
    m.joint_names._buffer = names;
    m.joint_names._length = n;
    m.points._buffer = points;
    m.points._length = n_point;
    return m;
}

static void a_trajectory_is_followed_to_its_end(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_init(&w, arm);
    char *names[] = {TEXT("joint1"), TEXT("joint4")};
    double q[2][2] = {{0.3, -0.2}, {0.5, 0.4}}, v[2][2] = {{0.2, 0}, {0, 0}};
    us_msg_joint_trajectory_point p[2] = {{.time_from_start = {1, 0}}, {.time_from_start = {2, 500000000}}};
    for (int i = 0; i < 2; i++) {
        p[i].positions._buffer = q[i];
        p[i].positions._length = 2;
        p[i].velocities._buffer = v[i];
        p[i].velocities._length = 2;
    }
    us_msg_joint_trajectory m = trajectory(names, 2, p, 2);
    assert_int_equal(proxy_world_post(&w, "/arm/joint_trajectory", usi_type_joint_trajectory, &m), US_OK);
    proxy_world_step(&w, 1000);
    // The drives lag by gravity over stiffness and by acceleration: a hundredth of a radian.
    assert_true(fabs(joint_q(&w, "arm/joint1") - 0.3) < 0.01);
    proxy_world_step(&w, 2500);
    assert_true(fabs(joint_q(&w, "arm/joint1") - 0.5) < 0.002);
    assert_true(fabs(joint_q(&w, "arm/joint4") - 0.4) < 0.02);
    assert_int_equal(us_proxy_get_counts(w.proxy, w.sim).n_timeout, 0);
    proxy_world_fini(&w);
}

static void bad_joint_commands_say_what_is_wrong(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_init(&w, arm);
    char *names[] = {TEXT("joint1"), TEXT("elbow")}, *twice[] = {TEXT("joint1"), TEXT("joint1")};
    double q[2] = {0.1, 0.1}, far[2] = {99, 0}, none[2] = {NAN, 0};
    us_msg_joint_trajectory_point p[2] = {{.time_from_start = {1, 0}}, {.time_from_start = {1, 0}}};
    for (int i = 0; i < 2; i++) {
        p[i].positions._buffer = q;
        p[i].positions._length = 2;
    }
    us_msg_joint_trajectory m = trajectory(names, 2, p, 1);
    int64_t n = 0;
#define REFUSED(type_, topic, message, why)                                          \
    assert_int_equal(proxy_world_post(&w, topic, usi_type_##type_, message), US_OK); \
    proxy_world_step(&w, 1);                                                         \
    expect_refusal(&w, ++n, why)
    REFUSED(joint_trajectory, "/arm/joint_trajectory", &m, "no joint \"elbow\"");
    m = trajectory(twice, 2, p, 1);
    REFUSED(joint_trajectory, "/arm/joint_trajectory", &m, "named twice");
    m = trajectory(names, 1, p, 1);
    REFUSED(joint_trajectory, "/arm/joint_trajectory", &m, "2 positions for 1 joints");
    names[1] = TEXT("joint2");
    m = trajectory(names, 2, p, 2);
    REFUSED(joint_trajectory, "/arm/joint_trajectory", &m, "not after");
    p[0].positions._buffer = far;
    m = trajectory(names, 2, p, 1);
    REFUSED(joint_trajectory, "/arm/joint_trajectory", &m, "beyond its limits");
    p[0].positions._buffer = none;
    REFUSED(joint_trajectory, "/arm/joint_trajectory", &m, "not a finite number");
    us_msg_float64_multi_array a = {0};
    a.data._buffer = q;
    a.data._length = 2;
    REFUSED(float64_multi_array, "/arm/joint_commands", &a, "2 numbers for 6 drives");
    us_msg_motor_profile motor = {.name = TEXT("joint1"), .mode = 9};
    us_msg_motor_group_command g = {.sequence = 7, .header.frame_id = TEXT("")};
    g.motors._buffer = &motor;
    g.motors._length = 1;
    REFUSED(motor_group_command, "/arm/motor_group/command", &g, "motor mode 9");
#undef REFUSED
    assert_int_equal(us_proxy_get_counts(w.proxy, w.sim).n_command, 0);
    proxy_world_fini(&w);
}

static void an_array_of_numbers_sets_every_drive(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_init(&w, arm);
    double q[6] = {0.2, -0.1, 0.15, 0.1, -0.3, 0.25};
    us_msg_float64_multi_array a = {0};
    a.data._buffer = q;
    a.data._length = 6;
    assert_int_equal(proxy_world_post(&w, "/arm/joint_commands", usi_type_float64_multi_array, &a), US_OK);
    proxy_world_step(&w, 4000);
    // What gravity bends the drives by.
    assert_true(fabs(joint_q(&w, "arm/joint1") - 0.2) < 0.05);
    assert_true(fabs(joint_q(&w, "arm/joint6") - 0.25) < 0.05);
    proxy_world_fini(&w);
}

static void motors_by_name_follow_profiles_and_lose_their_power(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "");
    settle(&w);
    us_msg_string m = {TEXT("MMOVFLSTT0.5,0.4,0.6")};
    assert_int_equal(proxy_world_post(&w, "/k10/motors", usi_type_string, &m), US_OK);
    // 0.4/0.5 = 0.8 s to get up and 0.8 s to slow down, 0.32 rad of the way; 0.28 rad at 0.4: 2.3 s.
    proxy_world_step(&w, 1000);
    assert_true(joint_q(&w, "k10/front_left_steer") > 0.1 && joint_q(&w, "k10/front_left_steer") < 0.4);
    proxy_world_step(&w, 1600);
    // A wheel that stands is turned against friction: the drive's stiffness leaves a few hundredths.
    assert_true(fabs(joint_q(&w, "k10/front_left_steer") - 0.6) < 0.05);
    m.data = TEXT("MMOVFLDRV1.5");
    assert_int_equal(proxy_world_post(&w, "/k10/motors", usi_type_string, &m), US_OK);
    proxy_world_step(&w, 1500);
    assert_true(joint_v(&w, "k10/front_left_drive") > 0.5);
    m.data = TEXT("MPWRFLDR0");
    assert_int_equal(proxy_world_post(&w, "/k10/motors", usi_type_string, &m), US_OK);
    proxy_world_step(&w, 10);
    us_drive d = us_model_find_drive(w.model, "k10/front_left_drive");
    assert_true(d.i >= 0);
    assert_true(us_sim_view_torque(w.sim)[d.i] == 0);
    m.data = TEXT("MMOVFLDRV1.5");
    assert_int_equal(proxy_world_post(&w, "/k10/motors", usi_type_string, &m), US_OK);
    proxy_world_step(&w, 1);
    expect_refusal(&w, 1, "no power");
    proxy_world_fini(&w);
}

static void the_locomotor_drives_a_distance_and_turns_by_an_angle(void **state) {
    (void)state;
    proxy_world w;
    double a[3], b[3];
    proxy_world_k10(&w, "");
    settle(&w);
    where(&w, a);
    us_msg_locomotor_command m = {
        .header.frame_id = TEXT(""), .sequence = 1, .mode = 2, .speed = 0.5, .distance = 2};
    assert_int_equal(proxy_world_post(&w, "/k10/locomotor/command", usi_type_locomotor_command, &m), US_OK);
    proxy_world_step(&w, 7000);
    where(&w, b);
    assert_true(fabs(b[0] - a[0] - 2) < 0.06);
    assert_true(fabs(joint_v(&w, "k10/front_left_drive")) < 0.02);
    m = (us_msg_locomotor_command){
        .header.frame_id = TEXT(""), .sequence = 2, .mode = 3, .turn_rate = 0.5, .angle = -1};
    assert_int_equal(proxy_world_post(&w, "/k10/locomotor/command", usi_type_locomotor_command, &m), US_OK);
    proxy_world_step(&w, 7000);
    where(&w, a);
    // Wheels of 0.12 m width on flat ground carry more on one edge than on the other: on the outer ones the
    // circle of 0.54 m is 11 percent wider.
    assert_true(fabs(a[2] - b[2] + 1) < 0.12);
    proxy_world_fini(&w);
}

static void the_navigator_goes_along_its_points(void **state) {
    (void)state;
    proxy_world w;
    double at[3];
    proxy_world_k10(&w, "");
    settle(&w);
    us_msg_point route[] = {{2, 0, 0}, {3, 2, 0}};
    us_msg_navigator_command m = {
        .header.frame_id = TEXT("map"), .sequence = 1, .mode = 2, .tolerance = 0.2, .speed = 0.5};
    m.points._buffer = route;
    m.points._length = 2;
    assert_int_equal(proxy_world_post(&w, "/k10/navigator/command", usi_type_navigator_command, &m), US_OK);
    proxy_world_step(&w, 16000);
    where(&w, at);
    // The tolerance, and what odometry is off after four metres.
    assert_true(hypot(at[0] - 3, at[1] - 2) < 0.4);
    assert_true(fabs(joint_v(&w, "k10/front_left_drive")) < 0.05);
    proxy_world_fini(&w);
}

static void an_empty_battery_leaves_the_drives_without_torque(void **state) {
    (void)state;
    proxy_world w;
    // One second of its idle load, against which the work of the motors is little.
    proxy_world_init(
        &w, "<scene name='a' version='1'><world step='1 ms'/><robot name='arm' file='../models/arm6.urdf'>"
            "<drive joint='joint1' kp='4000' kd='400'/><drive joint='joint2' kp='4000' kd='400' "
            "position='0.5'/><battery capacity='4 kJ' "
            "idle='4 kW' voltage='24 V'/>"
            "</robot></scene>");
    proxy_world_step(&w, 500);
    assert_true(us_sim_view_torque(w.sim)[1] != 0);
    proxy_world_step(&w, 600);
    assert_true(us_sim_view_torque(w.sim)[1] == 0);
    proxy_world_fini(&w);
}

static void before_the_first_command_the_scene_rules(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_init(
        &w, "<scene name='a' version='1'><world step='1 ms'/><robot name='arm' file='../models/arm6.urdf'>"
            "<drive joint='joint1' kp='4000' kd='400' position='0.4'/></robot></scene>");
    proxy_world_step(&w, 3000);
    assert_true(fabs(joint_q(&w, "arm/joint1") - 0.4) < 0.05);
    proxy_world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cmd_vel_drives_straight_at_the_speed_asked_for),
        cmocka_unit_test(an_arc_has_the_radius_v_over_w_and_crab_goes_sideways),
        cmocka_unit_test(silence_stops_the_robot_after_the_timeout),
        cmocka_unit_test(a_bad_velocity_is_refused_and_the_old_one_stays),
        cmocka_unit_test(twist_stamped_has_a_topic_of_its_own),
        cmocka_unit_test(a_trajectory_is_followed_to_its_end),
        cmocka_unit_test(bad_joint_commands_say_what_is_wrong),
        cmocka_unit_test(an_array_of_numbers_sets_every_drive),
        cmocka_unit_test(motors_by_name_follow_profiles_and_lose_their_power),
        cmocka_unit_test(the_locomotor_drives_a_distance_and_turns_by_an_angle),
        cmocka_unit_test(the_navigator_goes_along_its_points),
        cmocka_unit_test(an_empty_battery_leaves_the_drives_without_torque),
        cmocka_unit_test(before_the_first_command_the_scene_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

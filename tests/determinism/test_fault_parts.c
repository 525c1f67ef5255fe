// Faults of encoders, inertial sensor, power, computer and link: what they do, that all behind the sensor
// believes them, that they are state.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "proxy/tap.h"
#include "wire/messages.h"

// A leg of the walker, whose body is bolted to a post: it hangs free.
static const char leg_scene[] =
    "<scene name='leg' version='1'><world step='1 ms'/><default name='leg'><joint armature='0.01'/><drive "
    "kp='400' kd='40'/></default>"
    "<robot name='hexapod' file='../models/hexapod.urdf' xyz='0 0 2' default='leg'>%s"
    "<drive joint='front_left_coxa' default='leg'/><drive joint='front_left_femur' "
    "default='leg'/></robot></scene>";

// ---------------------------------------------------------------- what the robot says

typedef struct heard {
    us_world *world;
    const char *joint;  // of joint_states
    int n_joint_states, n_odom, n_imu, n_diagnostics, n_description, n_truth;
    int64_t stamp, arrival;  // ns, of joint_states
    double q, v, odom[2], imu[3], tf_angle;
    int level;
    char message[200], faults[1100], boots[16];
} heard;

static void hear_diagnostics(heard *h, const us_msg_diagnostic_status *s) {
    h->n_diagnostics++;
    h->level = s->level;
    snprintf(h->message, sizeof h->message, "%s", s->message);
    for (uint32_t i = 0; i < s->values._length; i++) {
        if (strcmp(s->values._buffer[i].key, "faults") == 0)
            snprintf(h->faults, sizeof h->faults, "%s", s->values._buffer[i].value);
        if (strcmp(s->values._buffer[i].key, "boots") == 0)
            snprintf(h->boots, sizeof h->boots, "%s", s->values._buffer[i].value);
    }
}

static void hear(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    heard *h = context;
    static _Alignas(64) char memory[262144];
    usi_channel_info info = usi_proxy_get_channel(us_world_get_proxy(h->world), channel);
    const void *m = NULL;
    us_error err = {0};
    assert_int_equal(us_message_decode(info.type, bytes, length, memory, sizeof memory, &m, &err), US_OK);
    const char *topic = strrchr(info.topic, '/');
    if (strcmp(topic, "/diagnostics") == 0)
        hear_diagnostics(h, &((const us_msg_diagnostic_array *)m)->status._buffer[0]);
    if (strcmp(topic, "/robot_description") == 0) h->n_description++;
    if (strstr(info.topic, "/truth/")) {
        h->n_truth++;
    } else if (strcmp(topic, "/odom") == 0) {
        const us_msg_odometry *o = m;
        h->n_odom++;
        h->odom[0] = o->pose.pose.position.x;
        h->odom[1] = o->pose.pose.position.y;
    }
    if (strcmp(topic, "/data") == 0) {
        const us_msg_imu *i = m;
        h->n_imu++;
        h->imu[0] = i->linear_acceleration.x;
        h->imu[1] = i->angular_velocity.z;
        h->imu[2] = i->linear_acceleration.z;
    }
    if (strcmp(topic, "/tf") == 0 && h->joint) {
        const us_msg_tf_message *t = m;
        for (uint32_t i = 0; i < t->transforms._length; i++) {
            const us_msg_transform_stamped *x = &t->transforms._buffer[i];
            if (strcmp(x->child_frame_id, "hexapod/front_left_coxa") == 0)
                h->tf_angle = 2 * atan2(x->transform.rotation.z, x->transform.rotation.w);
        }
    }
    if (strcmp(topic, "/joint_states") == 0) {
        const us_msg_joint_state *j = m;
        h->n_joint_states++;
        h->stamp = (int64_t)j->header.stamp.sec * 1000000000 + j->header.stamp.nanosec;
        h->arrival = time;
        for (uint32_t i = 0; i < j->name._length; i++) {
            if (h->joint && strcmp(j->name._buffer[i], h->joint) == 0) {
                h->q = j->position._buffer[i];
                h->v = j->velocity._buffer[i];
            }
        }
    }
}

static us_world *open_heard(const char *scene, const char *joint, heard *out) {
    *out = (heard){.world = live_open(scene), .joint = joint};
    usi_proxy_set_tap(us_world_get_proxy(out->world), hear, out);
    return out->world;
}

static us_world *open_leg(const char *network, heard *out) {
    char scene[2048];
    snprintf(scene, sizeof scene, leg_scene, network);
    return open_heard(scene, "front_left_coxa", out);
}

// Drives straight on for n ticks.
static void drive(us_world *world, double v, int n) {
    us_msg_twist m = {{v, 0, 0}, {0, 0, 0}};
    uint8_t bytes[256];
    size_t length = 0;
    for (int i = 0; i < n; i += 100) {
        assert_int_equal(us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length), US_OK);
        assert_int_equal(
            us_proxy_post(us_world_get_proxy(world), "/k10/cmd_vel", usi_type_twist, "test", bytes, length),
            US_OK);
        live_step(world, n - i < 100 ? n - i : 100);
    }
}

// ---------------------------------------------------------------- encoders

static void a_stuck_encoder_says_the_same_for_ever_and_its_drive_pulls_for_ever(void **state) {
    (void)state;
    heard h;
    us_world *world = open_leg("", &h);
    live_done(world, "joint hexapod/front_left_coxa 0.5");
    live_reply r = live_say(world, "fault hexapod encoder:front_left_coxa=stuck");
    assert_string_equal(r.text, "hexapod: encoder of front_left_coxa stuck at 0.5");
    live_step(world, 100);
    // 400 N m/rad times half a radian is beyond the 20 N m that it has, and goes on however far the joint has
    // come.
    live_near(live_value(world, "hexapod/front_left_coxa.torque"), -20, 1e-9);
    live_step(world, 1900);
    assert_true(live_value(world, "hexapod/front_left_coxa.q") < -0.5);
    assert_true(h.q == 0.5 && h.v == 0);
    // Frames follow the encoder, not the joint.
    live_near(h.tf_angle, 0.8726646260 + 0.5, 1e-9);
    live_done(world, "fault hexapod encoder:front_left_coxa=ok");
    live_step(world, 3000);
    live_near(live_value(world, "hexapod/front_left_coxa.q"), 0, 1e-3);
    live_near(h.q, live_value(world, "hexapod/front_left_coxa.q"), 1e-6);
    us_world_destroy(world);
}

static void an_encoder_that_has_jumped_moves_the_joint_by_as_much_the_other_way(void **state) {
    (void)state;
    heard h;
    us_world *world = open_leg("", &h);
    live_step(world, 500);
    double tf = h.tf_angle;
    live_done(world, "fault hexapod encoder:front_left_coxa=jump:0.2");
    live_done(world, "fault hexapod encoder:front_left_coxa=jump:0.1");
    live_step(world, 3000);
    // The drive brings what the encoder says to 0; it hangs about a vertical axis, so that no weight pulls.
    live_near(live_value(world, "hexapod/front_left_coxa.q"), -0.3, 1e-3);
    live_near(h.q, 0, 1e-3);
    live_near(h.tf_angle, tf, 1e-3);
    live_done(world, "fault hexapod encoder:front_left_coxa=ok");
    live_step(world, 3000);
    live_near(live_value(world, "hexapod/front_left_coxa.q"), 0, 1e-3);
    us_world_destroy(world);
}

static void an_encoder_that_drifts_takes_the_joint_along(void **state) {
    (void)state;
    heard h;
    us_world *world = open_leg("", &h);
    live_done(world, "fault hexapod encoder:front_left_coxa=drift:0.1");
    live_step(world, 2000);
    // 2 s at 0.1 rad/s. A drive that follows a ramp in position and in velocity stays on it.
    live_near(live_value(world, "hexapod/front_left_coxa.q"), -0.2, 2e-3);
    live_near(live_value(world, "hexapod/front_left_coxa.v"), -0.1, 1e-3);
    live_near(h.q, 0, 2e-3);
    live_near(h.v, 0, 1e-3);
    us_world_destroy(world);
}

static void wheel_odometry_believes_its_encoders(void **state) {
    (void)state;
    heard h;
    us_world *world = open_heard(live_robot_scene, "front_left_drive", &h);
    live_step(world, 1000);
    double x = h.odom[0], truth = live_pose(world, "k10/base").p.x;
    static const char *const wheels[] = {"front_left", "front_right", "rear_left", "rear_right"};
    char line[128];
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "fault k10 encoder:%s_drive=jump:1", wheels[i]);
        live_done(world, line);
    }
    live_step(world, 100);
    // All four wheels seem to have turned by a radian: 0.18 m, which the rover has not moved.
    live_near(h.odom[0] - x, 0.18, 1e-3);
    live_near(live_pose(world, "k10/base").p.x, truth, 1e-3);
    us_world_destroy(world);
}

static void a_wheel_with_a_stuck_encoder_runs_away(void **state) {
    (void)state;
    heard h;
    us_world *world = open_heard(live_robot_scene, "front_left_drive", &h);
    drive(world, 0.1, 2000);
    live_done(world, "fault k10 encoder:front_left_drive=stuck");
    drive(world, 0.1, 2000);
    // The loop is open: what it is told, and the 0.2 rad that it is thought to be behind at 10/s, would be
    // 102 N m: it gives its 45 and spins, while the others turn at 0.1 m/s over 0.18 m.
    live_near(live_value(world, "k10/front_left_drive.torque"), 45, 1e-9);
    assert_true(live_value(world, "k10/front_left_drive.v") > 20);
    live_near(live_value(world, "k10/rear_left_drive.v"), 0.1 / 0.18, 0.01);
    assert_true(h.v == 0);
    us_world_destroy(world);
}

// ---------------------------------------------------------------- inertial sensor

static void an_inertial_sensor_has_a_bias_or_is_stuck(void **state) {
    (void)state;
    heard h;
    us_world *world = open_leg("", &h);
    live_step(world, 20);
    double before = h.imu[2];
    // Bolted down: only gravity is felt.
    live_near(before, 9.81, 0.01);
    live_done(world, "fault hexapod imu=bias:0.1,0,-0.5,0,0,0.02");
    live_step(world, 20);
    live_near(h.imu[0], 0.1, 1e-12);
    live_near(h.imu[1], 0.02, 1e-12);
    live_near(h.imu[2], before - 0.5, 1e-12);
    live_done(world, "fault hexapod imu=bias:0,0,1");
    live_step(world, 20);
    live_near(h.imu[1], 0, 1e-12);
    live_near(h.imu[2], before + 1, 1e-12);
    live_done(world, "fault hexapod imu=ok");
    live_step(world, 20);
    assert_true(h.imu[2] == before);
    us_world_destroy(world);

    world = open_heard(live_robot_scene, NULL, &h);
    live_step(world, 500);
    drive(world, 0.3, 500);
    live_done(world, "fault k10 imu=stuck");
    live_step(world, 10);
    double held[3];
    memcpy(held, h.imu, sizeof held);
    int n = h.n_imu;
    drive(world, 0.8, 500);
    // It goes on talking, and always says the same.
    assert_true(h.n_imu > n + 40);
    assert_memory_equal(held, h.imu, sizeof held);
    live_done(world, "fault k10 imu=ok");
    live_step(world, 20);
    assert_true(memcmp(held, h.imu, sizeof held) != 0);
    us_world_destroy(world);
}

// ---------------------------------------------------------------- power and computer

static void without_power_there_is_neither_torque_nor_a_word_and_then_it_starts_anew(void **state) {
    (void)state;
    heard h;
    us_world *world = open_leg("", &h);
    live_step(world, 1010);
    assert_string_equal(h.boots, "0");
    live_reply r = live_say(world, "fault hexapod power=brownout:0.15");
    assert_string_equal(r.text, "hexapod: no power until 1.160 s");
    int n = h.n_joint_states, n_description = h.n_description, n_truth = h.n_truth;
    live_step(world, 150);
    assert_true(h.n_truth > n_truth);
    // The leg falls for want of torque: its weight turns it by 0.43 rad in that time.
    assert_true(live_value(world, "hexapod/front_left_femur.torque") == 0);
    assert_true(live_value(world, "hexapod/front_left_femur.q") < -0.3);
    // Then the computer starts, for 5 s, while the drives hold where the leg is: against 0.8 N m of weight.
    live_step(world, 1000);
    double held = live_value(world, "hexapod/front_left_femur.q");
    assert_true(fabs(live_value(world, "hexapod/front_left_femur.torque")) > 0.5);
    live_step(world, 3990);
    assert_int_equal(h.n_joint_states, n);
    live_step(world, 200);
    assert_true(h.n_joint_states > n && h.n_description == n_description + 1);
    live_step(world, 1000);
    assert_int_equal(h.level, 1);
    assert_non_null(strstr(h.message, "started anew"));
    assert_string_equal(h.boots, "1");
    // It still holds, where the drive and the weight were in balance.
    live_near(live_value(world, "hexapod/front_left_femur.q"), held, 1e-3);
    us_world_destroy(world);
}

static double energy_of(us_world *world) {
    us_battery battery = us_model_find_battery(us_world_view_model(world), "k10");
    return us_sim_get_battery(us_world_get_sim(world), battery).energy;
}

// A battery without its robot gives nothing, not even the idle power; that comes back with the power, while
// the computer still starts.
static void a_brownout_draws_no_power_from_the_battery(void **state) {
    (void)state;
    us_world *world = live_open(live_battery_scene);
    drive(world, 0.4, 1000);
    double before = energy_of(world);
    drive(world, 0.4, 1000);
    assert_true(before - energy_of(world) > 40);
    live_done(world, "fault k10 power=brownout:0.5");
    // The step that begins without power is the first that draws none.
    before = energy_of(world);
    drive(world, 0.4, 500);
    assert_true(energy_of(world) == before);
    us_battery battery = us_model_find_battery(us_world_view_model(world), "k10");
    assert_true(us_sim_get_battery(us_world_get_sim(world), battery).power == 0);
    live_step(world, 10);
    before = energy_of(world);
    live_step(world, 1000);
    assert_true(before - energy_of(world) >= 39.999);
    us_world_destroy(world);
}

static void a_computer_that_reboots_forgets_commands_and_odometry(void **state) {
    (void)state;
    heard h;
    us_world *world = open_heard(live_robot_scene, NULL, &h);
    drive(world, 0.5, 2000);
    assert_true(fabs(h.odom[0]) > 0.5);
    us_proxy_counts counts = us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world));
    assert_true(counts.n_command > 0);
    live_done(world, "fault k10 computer=reboot:2");
    int n = h.n_odom;
    // Commands do not reach it.
    drive(world, 0.5, 1900);
    assert_int_equal(h.n_odom, n);
    live_near(live_value(world, "k10/front_left_drive.v"), 0, 0.05);
    live_step(world, 1000);
    assert_true(h.n_odom > n);
    // Counted from where it started anew.
    live_near(h.odom[0], 0, 0.01);
    counts = us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world));
    assert_int_equal(counts.n_command, 0);
    drive(world, 0.5, 2000);
    assert_true(h.odom[0] > 0.5);
    us_world_destroy(world);
}

static void motors_hold_or_let_go_while_the_computer_starts(void **state) {
    (void)state;
    for (int lets_go = 0; lets_go < 2; lets_go++) {
        heard h;
        us_world *world = open_leg(lets_go ? "<network while-booting='free'/>" : "", &h);
        live_step(world, 200);
        double before = live_value(world, "hexapod/front_left_femur.q");
        live_done(world, "fault hexapod computer=reboot:1");
        live_step(world, 500);
        double after = live_value(world, "hexapod/front_left_femur.q");
        if (lets_go) {
            assert_true(after < before - 0.3);
        } else {
            live_near(after, before, 1e-2);
        }
        // Mended at once: it is up with the next tick.
        int n = h.n_joint_states;
        live_done(world, "fault hexapod computer=ok");
        live_step(world, 100);
        assert_true(h.n_joint_states > n);
        us_world_destroy(world);
    }
}

static void power_that_is_mended_comes_back_with_the_next_tick(void **state) {
    (void)state;
    heard h;
    us_world *world = open_leg("", &h);
    live_step(world, 10);
    live_done(world, "fault hexapod power=brownout");
    live_step(world, 3000);
    int n = h.n_joint_states;
    live_done(world, "fault hexapod power=ok");
    live_done(world, "fault hexapod computer=ok");
    live_step(world, 1);
    live_done(world, "fault hexapod computer=ok");
    live_step(world, 100);
    assert_true(h.n_joint_states > n);
    us_world_destroy(world);
}

// ---------------------------------------------------------------- link

static void a_link_that_is_out_carries_nothing_either_way(void **state) {
    (void)state;
    heard h;
    us_world *world = open_heard(live_robot_scene, NULL, &h);
    drive(world, 0.3, 1000);
    live_done(world, "fault k10 link=outage:1.5");
    int n = h.n_odom, n_truth = h.n_truth;
    us_proxy_counts before = us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world));
    drive(world, 0.3, 1400);
    us_proxy_counts during = us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world));
    assert_int_equal(h.n_odom, n);
    assert_true(h.n_truth > n_truth);
    // Nothing was taken, and so it has stopped by itself.
    assert_int_equal(during.n_command, before.n_command);
    assert_int_equal(during.n_timeout, before.n_timeout + 1);
    drive(world, 0.3, 300);
    assert_true(h.n_odom > n);
    assert_true(us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world)).n_command >
                before.n_command);
    us_world_destroy(world);
}

static void a_link_that_is_late_carries_all_in_order(void **state) {
    (void)state;
    heard h;
    us_world *world = open_heard(live_robot_scene, NULL, &h);
    live_step(world, 100);
    live_done(world, "fault k10 link=delay:0.4");
    live_step(world, 1000);
    assert_int_equal(h.arrival - h.stamp, 400000000);
    us_proxy_counts counts = us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world));
    drive(world, 0.3, 399);
    assert_int_equal(us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world)).n_command,
                     counts.n_command);
    drive(world, 0.3, 10);
    assert_true(us_proxy_get_counts(us_world_get_proxy(world), us_world_get_sim(world)).n_command >
                counts.n_command);
    // What is new does not overtake what is on its way; after that it comes at once.
    live_done(world, "fault k10 link=ok");
    int64_t last = h.stamp;
    for (int i = 0; i < 1000; i++) {
        live_step(world, 1);
        assert_true(h.stamp >= last);
        last = h.stamp;
    }
    assert_int_equal(h.arrival, h.stamp);
    us_world_destroy(world);
}

static void a_link_that_loses_half_lets_half_arrive(void **state) {
    (void)state;
    heard h;
    us_world *world = open_heard(live_robot_scene, NULL, &h);
    live_step(world, 100);
    live_done(world, "fault k10 link=loss:0.5");
    int n = h.n_joint_states;
    live_step(world, 10000);
    // 500 samples: the deviation of their number is 11, and the draw is always the same.
    live_near(h.n_joint_states - n, 250, 45);
    live_done(world, "fault k10 link=loss:1");
    n = h.n_joint_states;
    live_step(world, 1000);
    assert_int_equal(h.n_joint_states, n);
    us_world_destroy(world);
}

// ---------------------------------------------------------------- telling, refusing

static void diagnostics_tell_of_every_fault(void **state) {
    (void)state;
    heard h;
    us_world *world = open_leg("", &h);
    live_step(world, 10);
    live_done(world, "fault hexapod encoder:front_left_coxa=jump:0.25");
    live_done(world, "fault hexapod encoder:front_left_femur=drift:-0.5");
    live_done(world, "fault hexapod encoder:rear_left_tibia=stuck");
    live_done(world, "fault hexapod imu=stuck");
    live_done(world, "fault hexapod link=loss:0.001");
    live_step(world, 1000);
    assert_int_equal(h.level, 2);
    assert_string_equal(h.message, "it has faults");
    const char *const parts[] = {"encoder of front_left_coxa off by 0.25",
                                 "encoder of front_left_femur off by -0.",
                                 "drifting by -0.5/s",
                                 "encoder of rear_left_tibia stuck at 0",
                                 "inertial sensor stuck",
                                 "link loses 0.001 of all"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!strstr(h.faults, parts[i])) fail_msg("\"%s\" is not in: %s", parts[i], h.faults);
    }
    live_done(world, "reset");
    live_step(world, 1001);
    assert_string_equal(h.faults, "none");
    us_world_destroy(world);
}

static void faults_that_cannot_be_are_refused_with_what_can(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    live_refused(world, "fault k10 encoder:front_left_drve=stuck", US_ERR_NAME,
                 "did you mean \"front_left_drive\"?");
    live_refused(world, "fault k10 encoder:zzz=stuck", US_ERR_NAME, "it has those of left_rocker");
    live_refused(world, "fault k10 encoder=stuck", US_ERR_SYNTAX, "encoder:JOINT=stuck");
    live_refused(world, "fault k10 encoder:left_rocker=jump", US_ERR_SYNTAX, "needs a number");
    live_refused(world, "fault k10 encoder:left_rocker=jump:far", US_ERR_VALUE, "is not a finite number");
    live_refused(world, "fault k10 encoder:left_rocker=dead", US_ERR_NAME, "known: ok, stuck, jump, drift");
    live_refused(world, "fault k10 imu:=stuck", US_ERR_SYNTAX, "imu=bias");
    live_refused(world, "fault k10 imu:x=stuck", US_ERR_NAME, "\"x\"");
    live_refused(world, "fault k10 link:x=outage", US_ERR_SYNTAX, "link=outage");
    live_refused(world, "fault k10 imu=bias:1,2", US_ERR_VALUE, "3 to 6 numbers");
    live_refused(world, "fault k10 imu=bias:1,2,3,4", US_ERR_VALUE, "three accelerations");
    live_refused(world, "fault k10 power", US_ERR_SYNTAX, "power=brownout");
    live_refused(world, "fault k10 power=brownout:0", US_ERR_VALUE, "out of range");
    live_refused(world, "fault k10 link=loss:2", US_ERR_VALUE, "out of range");
    live_refused(world, "fault k10 link=slow", US_ERR_NAME, "known: ok, outage, loss, delay");
    us_world_destroy(world);
}

// ---------------------------------------------------------------- the same again

// One of each, and a drive in between.
static const char *const all[] = {
    "fault k10 encoder:front_left_drive=stuck",
    "fault k10 encoder:rear_left_drive=jump:0.5",
    "fault k10 encoder:front_right_steer=drift:0.01",
    "fault k10 encoder:left_rocker=stuck",
    "fault k10 imu=bias:0.1,0,0.2",
    "fault k10 link=delay:0.15",
    "fault k10 link=loss:0.2",
    "fault k10 computer=reboot:0.3",
    "fault k10 link=outage:0.2",
    "fault k10 encoder:front_left_drive=ok",
    "fault k10 power=brownout:0.2",
    "fault k10 imu=stuck",
    "fault k10 motor:rear_right_drive=weak:0.5",
};
enum { N_ALL = sizeof all / sizeof all[0] };

static uint64_t live_through(us_world *world) {
    for (int i = 0; i < N_ALL; i++) {
        live_done(world, all[i]);
        drive(world, 0.4, 250);
    }
    return us_sim_hash(us_world_get_sim(world));
}

static void the_same_faults_give_the_same_bits_and_snapshots_bring_them_back(void **state) {
    (void)state;
    us_world *a = live_open(live_robot_scene), *b = live_open(live_robot_scene);
    drive(a, 0.4, 500);
    drive(b, 0.4, 500);
    uint64_t first = live_through(a);
    assert_true(first == live_through(b));
    // In the middle of everything.
    for (int i = 0; i < N_ALL; i++) {
        live_done(b, all[i]);
        drive(b, 0.4, 40);
        live_done(b, "snapshot now");
        drive(b, 0.4, 200);
        uint64_t later = us_sim_hash(us_world_get_sim(b));
        live_done(b, "fault k10 link=ok");
        drive(b, 0.1, 100);
        live_done(b, "restore now");
        drive(b, 0.4, 200);
        assert_true(us_sim_hash(us_world_get_sim(b)) == later);
    }
    live_done(a, "reset");
    drive(a, 0.4, 500);
    assert_true(live_through(a) == first);
    us_world_destroy(a);
    us_world_destroy(b);
}

static void recordings_with_every_fault_verify_bit_for_bit(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(live_robot_scene);
    live_done(world, "fault k10 encoder:front_left_drive=drift:0.02");
    live_done(world, "fault k10 link=delay:0.1");
    drive(world, 0.4, 300);
    live_ok(us_world_record(world, "parts.mcap", &err), &err);
    live_through(world);
    live_ok(us_world_record(world, NULL, &err), &err);
    us_world_destroy(world);
    us_recording *recording = NULL;
    us_verify_result result = {0};
    us_spec *spec = live_load(live_robot_scene);
    live_ok(us_recording_open("parts.mcap", NULL, &recording, &err), &err);
    live_ok(us_world_verify(spec, recording, NULL, NULL, &result, &err), &err);
    assert_int_equal(result.n_tick, 250 * N_ALL);
    us_recording_close(recording);
    us_spec_destroy(spec);
}

// What faults and adoptions do to drive strength, blockage and battery, in one recording. The battery is
// nearly empty at last, so that it ends within the run.
static void recordings_with_strength_blockage_and_battery_verify_bit_for_bit(void **state) {
    (void)state;
    static const char *const commands[] = {
        "fault k10 motor:front_left_drive=weak:0.4",
        "fault k10 motor:rear_left_drive=blocked:3",
        "adopt k10 battery=0.5",
        "fault k10 power=brownout:0.1",
        "fault k10 imu=bias:0.1,0,0.2",
        "fault k10 motor:front_left_drive=ok",
        "fault k10 motor:rear_left_drive=dead",
        "adopt k10 battery=5e-6",
        "fault k10 motor:rear_left_drive=ok",
    };
    enum { N = sizeof commands / sizeof commands[0] };
    us_error err = {0};
    us_world *world = live_open(live_battery_scene);
    drive(world, 0.4, 300);
    live_ok(us_world_record(world, "battery.mcap", &err), &err);
    for (int i = 0; i < N; i++) {
        live_done(world, commands[i]);
        drive(world, 0.4, 200);
    }
    assert_true(energy_of(world) == 0);
    live_ok(us_world_record(world, NULL, &err), &err);
    us_world_destroy(world);
    us_verify_result result = live_verify(live_battery_scene, "battery.mcap");
    assert_int_equal(result.n_tick, 200 * N);
}

// A joint that sticks and an inertial sensor with a fault, in the middle of a drive: what was saved goes on
// as the run did, also in a world that knows nothing of it, with garbage in the scratch.
static void a_blocked_joint_and_an_inertial_sensor_go_on_from_a_snapshot(void **state) {
    (void)state;
    static const char *const faults[] = {"imu=bias:0.1,0,0.2", "imu=stuck", "motor:front_left_drive=blocked",
                                         "motor:front_left_steer=blocked:15"};
    for (int k = 0; k < 4; k++) {
        char text[80];
        us_world *a = live_open(live_battery_scene), *b = live_open(live_battery_scene);
        us_sim *sim = us_world_get_sim(a), *other = us_world_get_sim(b);
        drive(a, 0.4, 400);
        snprintf(text, sizeof text, "fault k10 %s", faults[k]);
        live_done(a, text);
        drive(a, 0.4, 150);
        static char kept[1 << 20];
        size_t length = 0;
        assert_int_equal(us_sim_save(sim, kept, sizeof kept, &length), US_OK);
        assert_int_equal(us_sim_restore(other, kept, length), US_OK);
        assert_true(us_sim_hash(sim) == us_sim_hash(other));
        for (int i = 0; i < 3; i++) {
            us_sim_poison(other);
            drive(a, 0.4, 100);
            drive(b, 0.4, 100);
            assert_true(us_sim_hash(sim) == us_sim_hash(other));
        }
        us_world_destroy(a);
        us_world_destroy(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stuck_encoder_says_the_same_for_ever_and_its_drive_pulls_for_ever),
        cmocka_unit_test(an_encoder_that_has_jumped_moves_the_joint_by_as_much_the_other_way),
        cmocka_unit_test(an_encoder_that_drifts_takes_the_joint_along),
        cmocka_unit_test(wheel_odometry_believes_its_encoders),
        cmocka_unit_test(a_wheel_with_a_stuck_encoder_runs_away),
        cmocka_unit_test(an_inertial_sensor_has_a_bias_or_is_stuck),
        cmocka_unit_test(without_power_there_is_neither_torque_nor_a_word_and_then_it_starts_anew),
        cmocka_unit_test(a_brownout_draws_no_power_from_the_battery),
        cmocka_unit_test(a_computer_that_reboots_forgets_commands_and_odometry),
        cmocka_unit_test(motors_hold_or_let_go_while_the_computer_starts),
        cmocka_unit_test(power_that_is_mended_comes_back_with_the_next_tick),
        cmocka_unit_test(a_link_that_is_out_carries_nothing_either_way),
        cmocka_unit_test(a_link_that_is_late_carries_all_in_order),
        cmocka_unit_test(a_link_that_loses_half_lets_half_arrive),
        cmocka_unit_test(diagnostics_tell_of_every_fault),
        cmocka_unit_test(faults_that_cannot_be_are_refused_with_what_can),
        cmocka_unit_test(the_same_faults_give_the_same_bits_and_snapshots_bring_them_back),
        cmocka_unit_test(recordings_with_every_fault_verify_bit_for_bit),
        cmocka_unit_test(recordings_with_strength_blockage_and_battery_verify_bit_for_bit),
        cmocka_unit_test(a_blocked_joint_and_an_inertial_sensor_go_on_from_a_snapshot),
    };
    return cmocka_run_group_tests_name("fault_parts", tests, NULL, NULL);
}

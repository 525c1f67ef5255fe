// Robots that come and go while the world runs: what is there already goes on to the last bit, the new one
// obeys like any other, and a recording of it all runs again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "sim/sim.h"
#include "wire/messages.h"
#include "world/world__inner.h"

static const char second_rover[] =
    "add robot second file=default.xml#k10 at=0,6,0 rpy=0,0,1.5707963267948966";

// A velocity for a robot that was added, as a program on the network sends it.
static void drive(us_world *world, const char *topic, double v) {
    const us_msg_twist m = {.linear = {v, 0, 0}};
    uint8_t bytes[128];
    size_t n = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &n), US_OK);
    assert_int_equal(usi_live_post(&world->live, topic, usi_type_twist, "test", bytes, n), US_OK);
}

// Every coordinate of the first world's joints has the same bits in the second.
static void same_joints(us_world *a, us_world *b) {
    const us_sim *s = us_world_get_sim(a), *t = us_world_get_sim(b);
    for (int32_t i = 0; i < s->model->n_joint; i++) {
        const usi_joint *j = &s->model->joint[i];
        const int32_t other = us_model_find_joint(t->model, us_model_joint_name(s->model, (us_joint){i})).i;
        assert_true(other >= 0);
        const usi_joint *k = &t->model->joint[other];
        for (int32_t n = 0; n < j->n_q; n++)
            assert_true(s->now.q[j->first_q + n] == t->now.q[k->first_q + n]);
        for (int32_t n = 0; n < j->n_v; n++)
            assert_true(s->now.v[j->first_v + n] == t->now.v[k->first_v + n]);
    }
}

// ---------------------------------------------------------------- coming and going

static void what_is_there_goes_on_to_the_last_bit(void **state) {
    (void)state;
    us_world *world = live_open(live_battery_scene), *other = live_open(live_battery_scene);
    for (int i = 0; i < 3; i++) {
        live_drive(world, 0.5);
        live_drive(other, 0.5);
        live_step(world, 50);
        live_step(other, 50);
    }
    live_done(world, second_rover);
    same_joints(other, world);
    // The firmware too: it goes on with the velocity that it was told before, and stops when that is too old.
    for (int i = 0; i < 60; i++) {
        live_step(world, 10);
        live_step(other, 10);
        same_joints(other, world);
    }
    live_done(world, "remove second");
    same_joints(other, world);
    same_joints(world, other);
    live_drive(world, 0.3);
    live_drive(other, 0.3);
    live_step(world, 100);
    live_step(other, 100);
    assert_true(us_sim_hash(us_world_get_sim(world)) == us_sim_hash(us_world_get_sim(other)));
    us_world_destroy(world);
    us_world_destroy(other);
}

static void a_robot_that_was_added_obeys(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    live_step(world, 200);
    live_done(world, second_rover);
    live_near(live_pose(world, "second/base").p.y, 6, 1e-9);
    live_step(world, 300);
    for (int i = 0; i < 10; i++) {
        drive(world, "/second/cmd_vel", 0.5);
        live_step(world, 100);
    }
    // It looks along y.
    assert_true(live_pose(world, "second/base").p.y > 6.2);
    live_near(live_pose(world, "second/base").p.x, 0, 0.05);
    live_near(live_pose(world, "k10/base").p.x, 0, 0.01);
    // Faults, drives and adoption find it.
    live_done(world, "fault second motor:front_left_drive=dead");
    live_done(world, "fault second motor:front_left_drive=ok");
    live_done(world, "drive second/front_left_steer 0.2");
    live_step(world, 300);
    live_near(live_value(world, "second/front_left_steer.q"), 0.2, 0.05);
    live_done(world, "adopt second odom=1,0,0");
    live_done(world, "move second 0 8 0.2");
    live_near(live_pose(world, "second/base").p.y, 8, 1e-9);
    us_world_destroy(world);
}

static void many_come_and_go(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    char text[160];
    live_step(world, 10);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            snprintf(text, sizeof text, "add robot r%d file=../models/k10.urdf at=%d,8,0.1", i, 3 * i);
            live_done(world, text);
            live_step(world, 3);
        }
        live_refused(world, "add robot r2 file=../models/k10.urdf", US_ERR_NAME, "already");
        live_refused(world, "add robot r9 namespace=k10 file=../models/k10.urdf", US_ERR_NAME, "namespace");
        live_done(world, "remove r1");
        live_step(world, 3);
        live_done(world, "add box crate size=1,1,1 at=0,-9,1");
        // Numbers of robots have moved: each still finds its own.
        live_done(world, "fault r3 computer=reboot");
        live_done(world, round % 2 ? "reset" : "clear");
        assert_false(live_has_link(world, "r0/base"));
        assert_false(live_has_link(world, "crate/body"));
        live_step(world, 3);
    }
    us_world_destroy(world);
}

// ---------------------------------------------------------------- what a robot may be

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 17);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 17) - 1, file) > 0);
    fclose(file);
    return text;
}

static void a_robot_comes_as_a_text(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    char *urdf = read_text(US_SOURCE_DIR "/models/k10.urdf"), *line = calloc(1, 1 << 17);
    assert_non_null(line);
    int n = snprintf(line, 1 << 17, "add robot fourth at=5,5,0.2 xml=");
    for (const char *at = urdf; *at; at++)
        line[n++] = *at == '\n' || *at == '\r' || *at == '\t' ? ' ' : *at;
    live_done(world, line);
    assert_true(live_has_link(world, "fourth/base"));
    live_done(world, "add robot fifth at=5,-5,0.2 xml=<robot name=\"any\" file=\"../models/k10.urdf\" "
                     "base=\"floating\"><drive joint=\"front_left_drive\" kd=\"40\"/></robot>");
    live_step(world, 20);
    live_done(world, "drive fifth/front_left_drive 1");
    free(urdf);
    free(line);
    us_world_destroy(world);
}

static void what_cannot_be_a_robot_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
        us_status status;
    } rows[] = {
        {"add robot a file=nothing.urdf", "does not exist", US_ERR_IO},
        {"add robot a file=/etc/passwd", "may not be opened", US_ERR_ACCESS},
        {"add robot a file=/etc/nothing", "may not be opened", US_ERR_ACCESS},
        {"add robot a file=../CMakeLists.txt", "may not be opened", US_ERR_ACCESS},
        {"add robot a file=default.xml#k11", "did you mean \"k10\"?", US_ERR_NAME},
        {"add robot a file=marbles.xml", "the scene has no robot", US_ERR_NAME},
        {"add robot a xml=<robot", "", US_ERR_SYNTAX},
        {"add robot a xml=<sdf/>", "is no robot", US_ERR_SCHEMA},
        {"add robot a xml=<scene name='s' version='1'/>", "the scene has no robot", US_ERR_NAME},
        {"add robot a xml=<robot name='x' file='/etc/passwd'/>", "may not be opened", US_ERR_ACCESS},
        {"add robot a xml=<robot name='x' file='../models/k10.urdf'><wrong/></robot>", "", US_ERR_SCHEMA},
        {"add robot a xml=<robot name='x'><link name='l'><visual><geometry><mesh "
         "filename='/etc/passwd'/></geometry></visual></link></robot>",
         "may not be opened", US_ERR_ACCESS},
        {"add robot a xml=<scene name='s' version='1'><include file='/etc/passwd'/></scene>",
         "may not be opened", US_ERR_ACCESS},
        {"add robot stone file=../models/k10.urdf", "already", US_ERR_NAME},
    };
    us_world *world = live_open(live_robot_scene);
    live_step(world, 5);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        live_refused(world, rows[i].text, rows[i].status, rows[i].part);
    char *text = calloc(1, 1 << 17);
    assert_non_null(text);
    int n = snprintf(text, 1 << 17, "add robot a xml=<robot name='x'><link name='l0'/>");
    for (int i = 1; i <= 1000; i++)
        n += snprintf(text + n, (size_t)((1 << 17) - n),
                      "<link name='l%d'/><joint name='j%d' type='fixed'><parent link='l0'/><child "
                      "link='l%d'/></joint>",
                      i, i, i);
    snprintf(text + n, (size_t)((1 << 17) - n), "</robot>");
    live_refused(world, text, US_ERR_LIMIT, "1000 links");
    free(text);
    live_refused(world, "remove k10", US_ERR_ARG, "robots stay");
    live_done(world, second_rover);
    live_refused(world, "remove second/base", US_ERR_ARG, "is a part of a robot");
    us_world_destroy(world);
}

// ---------------------------------------------------------------- going back, and again

static void snapshots_and_reset_know_who_was_there(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    us_sim *sim = us_world_get_sim(world);
    live_step(world, 20);
    live_done(world, "snapshot alone");
    const uint64_t alone = us_sim_hash(sim);
    live_done(world, second_rover);
    live_step(world, 20);
    drive(world, "/second/cmd_vel", 0.4);
    live_step(world, 50);
    live_done(world, "snapshot both");
    const uint64_t both = us_sim_hash(sim);
    live_step(world, 80);
    const uint64_t later = us_sim_hash(sim);
    live_done(world, "restore alone");
    assert_true(us_sim_hash(sim) == alone);
    // Another robot of the name, which the snapshot does not mean.
    live_done(world, "add robot second file=../models/k10.urdf at=0,6,0.1");
    live_step(world, 5);
    live_done(world, "restore both");
    assert_true(us_sim_hash(sim) == both);
    live_step(world, 80);
    assert_true(us_sim_hash(sim) == later);
    live_done(world, "reset keep");
    assert_true(live_has_link(world, "second/base") && us_sim_get_tick(sim) == 0);
    live_near(live_pose(world, "second/base").p.y, 6, 1e-9);
    live_step(world, 5);
    live_done(world, "reset");
    assert_false(live_has_link(world, "second/base"));
    us_world_destroy(world);
}

static void all_is_where_it_starts_and_time_goes_on(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    live_step(world, 20);
    live_done(world, second_rover);
    for (int i = 0; i < 5; i++) {
        live_drive(world, 0.5);
        drive(world, "/second/cmd_vel", 0.5);
        live_step(world, 100);
    }
    live_done(world, "move stone 1 1 3");
    live_done(world, "home");
    assert_int_equal(us_sim_get_tick(us_world_get_sim(world)), 520);
    live_near(live_pose(world, "k10/base").p.x, 0, 1e-12);
    live_near(live_pose(world, "second/base").p.y, 6, 1e-12);
    live_near(live_pose(world, "stone/core").p.x, 3, 1e-12);
    live_near(live_value(world, "k10/front_left_drive.q"), 0, 1e-12);
    // Nobody has told the robots to move since then.
    live_step(world, 500);
    live_near(live_pose(world, "k10/base").p.x, 0, 0.02);
    us_world_destroy(world);
}

static void a_recording_runs_again(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(live_robot_scene);
    live_step(world, 30);
    live_done(world, "add robot early file=../models/k10.urdf at=-6,-6,0.1");
    live_step(world, 10);
    live_ok(us_world_record(world, "spawn.mcap", &err), &err);
    live_drive(world, 0.5);
    live_step(world, 50);
    live_done(world, second_rover);
    live_step(world, 50);
    for (int i = 0; i < 3; i++) {
        drive(world, "/second/cmd_vel", 0.5);
        live_step(world, 50);
    }
    live_done(world, "add robot third at=5,-5,0.2 xml=<robot name=\"any\" file=\"../models/k10.urdf\" "
                     "base=\"floating\"><fault at=\"0.4 s\" what=\"computer=reboot\"/></robot>");
    live_done(world, "fault second motor:front_left_drive=dead");
    live_step(world, 50);
    live_done(world, "remove early");
    live_step(world, 30);
    live_done(world, "home");
    drive(world, "/second/cmd_vel", 0.2);
    live_step(world, 60);
    live_done(world, "clear");
    live_step(world, 20);
    const int64_t last = us_sim_get_tick(us_world_get_sim(world));
    live_done(world, "reset");
    live_step(world, 20);
    live_ok(us_world_record(world, NULL, &err), &err);
    us_world_destroy(world);
    const us_verify_result r = live_verify(live_robot_scene, "spawn.mcap"),
                           next = live_verify(live_robot_scene, "spawn-2.mcap");
    assert_int_equal(r.bad_tick, -1);
    assert_int_equal(r.n_tick, last - 40);
    assert_int_equal(next.n_tick, 20);
    // What it said is there too, from when it came.
    us_recording *recording = NULL;
    live_ok(us_recording_open("spawn.mcap", NULL, &recording, &err), &err);
    bool has_odom = false;
    for (int32_t i = 0; i < us_recording_get_info(recording).n_channel; i++) {
        const us_channel_info c = us_recording_get_channel(recording, i);
        has_odom = has_odom || (strcmp(c.topic, "/second/odom") == 0 && c.n_message != 0);
    }
    us_recording_close(recording);
    assert_true(has_odom);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_goes_on_to_the_last_bit),
        cmocka_unit_test(a_robot_that_was_added_obeys),
        cmocka_unit_test(many_come_and_go),
        cmocka_unit_test(a_robot_comes_as_a_text),
        cmocka_unit_test(what_cannot_be_a_robot_is_refused),
        cmocka_unit_test(snapshots_and_reset_know_who_was_there),
        cmocka_unit_test(all_is_where_it_starts_and_time_goes_on),
        cmocka_unit_test(a_recording_runs_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

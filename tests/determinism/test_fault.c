// Faults of drives and joints: what they do, that they are state, and that a run with them comes out the same
// bit for bit.
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

// The scene with the walker as it ships; or its body bolted to a post, so that a leg hangs free.
static const char *walker_scene;
static const char bolted_scene[] =
    "<scene name='bolted' version='1'><world step='1 ms'/><default name='leg'><joint armature='0.01'/><drive "
    "kp='400' kd='40'/></default>"
    "<robot name='hexapod' file='../models/hexapod.urdf' xyz='0 0 2' default='leg'>"
    "<drive joint='front_left_coxa' default='leg'/><drive joint='front_left_femur' default='leg'/>"
    "<drive joint='rear_left_coxa' default='leg'/></robot></scene>";

static int load_walker(void **state) {
    (void)state;
    walker_scene = live_walker_scene(false);
    return 0;
}

// ---------------------------------------------------------------- what they do

static void a_dead_motor_gives_no_torque_and_a_mended_one_does(void **state) {
    (void)state;
    us_world *world = live_open(bolted_scene);
    live_step(world, 300);
    // The femur carries its leg: 0.4 kg at 8.5 cm and 0.3 kg at 17 cm.
    live_near(live_value(world, "hexapod/front_left_femur.torque"), 9.81 * (0.4 * 0.085 + 0.3 * 0.17), 0.02);
    live_reply r = live_say(world, "fault hexapod motor:front_left_femur=dead");
    assert_int_equal(r.status, US_OK);
    assert_string_equal(r.text, "hexapod/front_left_femur: dead");
    live_step(world, 500);
    assert_true(live_value(world, "hexapod/front_left_femur.torque") == 0);
    assert_true(live_value(world, "hexapod/front_left_femur.q") < -0.5);
    live_done(world, "fault hexapod motor:front_left_femur=ok");
    live_step(world, 2000);
    live_near(live_value(world, "hexapod/front_left_femur.q"), 0, 0.01);
    us_world_destroy(world);
}

static void a_weak_motor_gives_a_part_of_its_strength(void **state) {
    (void)state;
    us_world *world = live_open(bolted_scene);
    live_done(world, "fault hexapod motor:front_left_femur=weak:0.02");
    live_step(world, 300);
    // 2 % of 20 N m, less than its leg weighs.
    live_near(live_value(world, "hexapod/front_left_femur.torque"), 0.4, 1e-12);
    assert_true(live_value(world, "hexapod/front_left_femur.q") < -0.1);
    us_world_destroy(world);
}

static void a_blocked_joint_stays_where_it_is(void **state) {
    (void)state;
    us_world *world = live_open(bolted_scene);
    live_done(world, "joint hexapod/front_left_coxa 0.5");
    live_done(world, "fault hexapod motor:front_left_coxa=blocked");
    live_step(world, 1000);
    // Its drive pulls with all its 20 N m, a hundredth of what holds: that gives way by a hundredth of 0.1
    // micrometre.
    live_near(live_value(world, "hexapod/front_left_coxa.torque"), -20, 1e-9);
    live_near(live_value(world, "hexapod/front_left_coxa.q"), 0.5, 1e-6);
    live_done(world, "fault hexapod motor:front_left_coxa=ok");
    live_step(world, 3000);
    live_near(live_value(world, "hexapod/front_left_coxa.q"), 0, 1e-3);
    us_world_destroy(world);
}

static void a_joint_that_is_partly_blocked_stops_where_the_drive_is_no_stronger(void **state) {
    (void)state;
    us_world *world = live_open(bolted_scene);
    live_done(world, "joint hexapod/front_left_coxa 0.5");
    live_done(world, "fault hexapod motor:front_left_coxa=blocked:4");
    live_step(world, 4000);
    // 400 N m/rad pull with 4 N m at 0.01 rad; with that damping it creeps there from above.
    live_near(live_value(world, "hexapod/front_left_coxa.q"), 0.01, 5e-4);
    us_world_destroy(world);
}

static void a_walker_with_a_dead_and_a_blocked_joint_limps_on(void **state) {
    (void)state;
    us_world *world = live_open(walker_scene);
    live_walk(world, 0.15, 2000);
    live_done(world, "fault hexapod motor:middle_left_tibia=dead");
    live_done(world, "fault hexapod motor:middle_right_coxa=blocked");
    double held = live_value(world, "hexapod/middle_right_coxa.q"),
           from = live_pose(world, "hexapod/base").p.x;
    live_walk(world, 0.15, 4000);
    live_near(live_value(world, "hexapod/middle_right_coxa.q"), held, 1e-6);
    us_pose to = live_pose(world, "hexapod/base");
    // It gets on, and does not fall on its belly, which is 5 cm under its middle.
    assert_true(to.p.x - from > 0.2 && to.p.x - from < 0.7);
    assert_true(to.p.z > 0.1);
    us_world_destroy(world);
}

// ---------------------------------------------------------------- what they tell

// The newest diagnostics: level, and the value of "faults".
typedef struct heard {
    us_world *world;
    int level;
    char faults[1100];
} heard;

static void hear(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    heard *h = context;
    (void)time;
    static _Alignas(64) char memory[65536];
    usi_channel_info info = usi_proxy_get_channel(us_world_get_proxy(h->world), channel);
    if (strcmp(info.topic, "/diagnostics") != 0) return;
    const void *m = NULL;
    us_error err = {0};
    assert_int_equal(us_message_decode(info.type, bytes, length, memory, sizeof memory, &m, &err), US_OK);
    const us_msg_diagnostic_status *s = &((const us_msg_diagnostic_array *)m)->status._buffer[0];
    h->level = s->level;
    for (uint32_t i = 0; i < s->values._length; i++) {
        if (strcmp(s->values._buffer[i].key, "faults") == 0)
            snprintf(h->faults, sizeof h->faults, "%s", s->values._buffer[i].value);
    }
}

static void diagnostics_tell_of_faults_until_they_are_mended(void **state) {
    (void)state;
    us_world *world = live_open(bolted_scene);
    heard h = {.world = world};
    usi_proxy_set_tap(us_world_get_proxy(world), hear, &h);
    live_step(world, 1001);
    assert_string_equal(h.faults, "none");
    assert_int_equal(h.level, 0);
    live_done(world, "fault hexapod motor:front_left_coxa=weak:0.3");
    live_done(world, "fault hexapod motor:front_left_femur=blocked:5");
    live_done(world, "fault hexapod motor:rear_left_coxa=dead");
    live_step(world, 1000);
    assert_string_equal(
        h.faults,
        "front_left_coxa weak, 0.3 of its strength; front_left_femur blocked by 5; rear_left_coxa dead");
    assert_int_equal(h.level, 2);
    // One fault takes the place of another.
    live_done(world, "fault hexapod motor:front_left_femur=dead");
    live_done(world, "fault hexapod motor:front_left_coxa=ok");
    live_done(world, "fault hexapod motor:rear_left_coxa=ok");
    live_step(world, 1000);
    assert_string_equal(h.faults, "front_left_femur dead");
    live_done(world, "reset");
    live_step(world, 1001);
    assert_string_equal(h.faults, "none");
    us_world_destroy(world);
}

static void faults_that_cannot_be_are_refused(void **state) {
    (void)state;
    us_world *world = live_open(bolted_scene);
    live_refused(world, "fault hexapot motor:front_left_coxa=dead", US_ERR_NAME, "did you mean \"hexapod\"?");
    live_refused(world, "fault hexapod motor:front_left_coxe=dead", US_ERR_NAME,
                 "did you mean \"front_left_coxa\"?");
    live_refused(world, "fault hexapod motor:middle_left_tibia=dead", US_ERR_NAME, "has no motor");
    us_world_destroy(world);
}

// ---------------------------------------------------------------- the same again

static void snapshots_bring_faults_back(void **state) {
    (void)state;
    us_world *world = live_open(walker_scene);
    us_sim *sim = us_world_get_sim(world);
    live_walk(world, 0.15, 700);
    live_done(world, "fault hexapod motor:front_left_femur=weak:0.2");
    live_done(world, "fault hexapod motor:rear_right_tibia=blocked:3");
    live_walk(world, 0.15, 100);
    live_done(world, "snapshot limping");
    live_walk(world, 0.15, 500);
    uint64_t later = us_sim_hash(sim);
    live_done(world, "fault hexapod motor:front_left_femur=ok");
    live_done(world, "fault hexapod motor:rear_right_tibia=ok");
    live_walk(world, 0.15, 300);
    live_done(world, "restore limping");
    live_walk(world, 0.15, 500);
    assert_true(us_sim_hash(sim) == later);
    us_world_destroy(world);
}

static void recordings_with_steps_and_faults_verify_bit_for_bit(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(walker_scene);
    live_done(world, "fault hexapod motor:middle_left_femur=weak:0.5");
    live_done(world, "fault hexapod motor:middle_left_coxa=blocked");
    live_walk(world, 0.1, 200);
    live_ok(us_world_record(world, "fault.mcap", &err), &err);
    live_walk(world, 0.2, 700);
    live_done(world, "fault hexapod motor:middle_left_coxa=ok");
    live_done(world, "fault hexapod motor:front_right_femur=dead");
    live_walk(world, 0.2, 500);
    live_done(world, "fault hexapod motor:front_right_femur=blocked:2.5");
    live_walk(world, -0.2, 500);
    live_ok(us_world_record(world, NULL, &err), &err);
    us_world_destroy(world);
    us_verify_result result = live_verify(walker_scene, "fault.mcap");
    assert_int_equal(result.first_tick, 200);
    assert_int_equal(result.n_tick, 1700);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_motor_gives_no_torque_and_a_mended_one_does),
        cmocka_unit_test(a_weak_motor_gives_a_part_of_its_strength),
        cmocka_unit_test(a_blocked_joint_stays_where_it_is),
        cmocka_unit_test(a_joint_that_is_partly_blocked_stops_where_the_drive_is_no_stronger),
        cmocka_unit_test(a_walker_with_a_dead_and_a_blocked_joint_limps_on),
        cmocka_unit_test(diagnostics_tell_of_faults_until_they_are_mended),
        cmocka_unit_test(faults_that_cannot_be_are_refused),
        cmocka_unit_test(snapshots_bring_faults_back),
        cmocka_unit_test(recordings_with_steps_and_faults_verify_bit_for_bit),
    };
    return cmocka_run_group_tests_name("fault", tests, load_walker, NULL);
}

// `drive` gives a drive its target: the joint goes there and stays, whoever commands the drive, and a
// recording runs again.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"

// Arms that no robot's firmware commands: a position drive, a velocity drive, a free joint, a drive without
// gains.
#define ARM(name, x)                                                                                      \
    "<link name='" name "' density='500'><shape type='box' size='0.1 0.1 0.1' xyz='0.2 0 0'/></link>"     \
    "<joint name='" name "' type='revolute' parent='base' child='" name "' axis='0 0 1' xyz='0 " x " 1' " \
    "lower='-2' upper='2'/>"
static const char arms[] =
    "<scene name='arms' version='1'><world step='1 ms'/>"
    "<object name='o' base='fixed'><link name='base' density='500'><shape type='box' size='1 1 "
    "0.1'/></link>" ARM("held", "0") ARM("spun", "1") ARM("free", "2") ARM(
        "limp", "3") "<drive joint='held' kp='200' kd='20'/><drive joint='spun' kd='5'/><drive joint='limp'/>"
                     "</object></scene>";

static void a_robots_joint_goes_there_and_stays(void **state) {
    (void)state;
    us_world *w = live_open(live_robot_scene);
    live_step(w, 200);
    double before = live_value(w, "k10/front_left_steer.q");
    // The state alone is undone by the drive.
    live_done(w, "joint k10/front_left_steer 0.4");
    live_step(w, 1500);
    live_near(live_value(w, "k10/front_left_steer.q"), before, 0.05);
    live_done(w, "drive k10/front_left_steer 0.4");
    live_step(w, 1500);
    live_near(live_value(w, "k10/front_left_steer.q"), 0.4, 0.05);
    live_step(w, 2000);
    live_near(live_value(w, "k10/front_left_steer.q"), 0.4, 0.05);
    // Others stay where they were.
    live_near(live_value(w, "k10/front_right_steer.q"), 0, 0.1);
    us_world_destroy(w);
}

static void a_wheel_without_a_position_gain_gets_a_velocity(void **state) {
    (void)state;
    us_world *w = live_open(live_robot_scene);
    live_step(w, 200);
    live_near(live_value(w, "k10/front_left_drive.v"), 0, 0.1);
    live_done(w, "drive k10/front_left_drive 2");
    live_step(w, 300);
    // One wheel drags the other three along, which lag.
    live_near(live_value(w, "k10/front_left_drive.v"), 1.5, 0.5);
    us_world_destroy(w);
}

static void a_drive_without_firmware_gets_its_target(void **state) {
    (void)state;
    us_world *w = live_open(arms);
    live_done(w, "drive o/held 1.2");
    live_done(w, "drive o/spun 0 0.5");  // the last number is the velocity
    live_step(w, 2000);
    live_near(live_value(w, "o/held.q"), 1.2, 1e-3);
    live_near(live_value(w, "o/spun.v"), 0.5, 1e-3);
    live_near(live_value(w, "o/free.q"), 0, 1e-9);
    live_done(w, "drive o/spun -0.25");
    live_done(w, "drive o/held 1.2 0.1");  // a target velocity leaves kd/kp of it
    live_step(w, 2000);
    live_near(live_value(w, "o/spun.v"), -0.25, 1e-3);
    live_near(live_value(w, "o/held.q"), 1.2 + 20 * 0.1 / 200, 1e-3);
    us_world_destroy(w);
}

static void what_cannot_be_driven_is_refused(void **state) {
    (void)state;
    us_world *w = live_open(arms);
    live_refused(w, "drive o/free 1", US_ERR_ARG, "has no drive");
    live_refused(w, "drive o/limp 1", US_ERR_ARG, "has no gains");
    live_refused(w, "drive o/held 2.5", US_ERR_VALUE, "limits");
    live_refused(w, "drive o/hold 1", US_ERR_NAME, "did you mean \"o/held\"");
    live_refused(w, "drive o/held", US_ERR_SYNTAX, "drive NAME POSITION [VELOCITY]");
    live_refused(w, "drive o/held 1 2 3", US_ERR_SYNTAX, "drive NAME POSITION [VELOCITY]");
    live_refused(w, "drive o/held nan", US_ERR_VALUE, "number");
    us_world_destroy(w);
    w = live_open(live_robot_scene);
    live_refused(w, "drive k10/front_left_steer 0.1 0.2", US_ERR_ARG, "position alone");
    live_refused(w, "drive k10/front_left_steer 9", US_ERR_VALUE, "limits");
    us_world_destroy(w);
}

static void a_recording_with_drives_runs_again(void **state) {
    (void)state;
    const char *const scenes[] = {live_robot_scene, arms};
    const char *const commands[] = {"drive k10/rear_left_steer -0.3", "drive o/held 0.7 0.2"};
    for (int i = 0; i < 2; i++) {
        us_error err = {0};
        us_world *w = live_open(scenes[i]);
        live_step(w, 20);
        live_ok(us_world_record(w, "drive.mcap", &err), &err);
        live_step(w, 50);
        live_done(w, commands[i]);
        live_step(w, 100);
        live_done(w, commands[i]);
        live_step(w, 100);
        live_ok(us_world_record(w, NULL, &err), &err);
        us_world_destroy(w);
        us_verify_result r = live_verify(scenes[i], "drive.mcap");
        assert_int_equal(r.n_tick, 250);
        // The world's two, and of a robot its own two.
        assert_int_equal(r.n_command, i == 0 ? 4 : 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_robots_joint_goes_there_and_stays),
        cmocka_unit_test(a_wheel_without_a_position_gain_gets_a_velocity),
        cmocka_unit_test(a_drive_without_firmware_gets_its_target),
        cmocka_unit_test(what_cannot_be_driven_is_refused),
        cmocka_unit_test(a_recording_with_drives_runs_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// A robot takes over a state: it stands where it is told as if it had always stood there, and goes on as it
// is told.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "live_world.h"
#include "proxy/proxy__robot.h"

static const usi_robot_state *robot_state(us_world *host) {
    return usi_view_state(&us_world_get_proxy(host)->robot[0], us_world_get_sim(host));
}

static const usi_firmware_state *firmware(us_world *host) {
    return usi_view_firmware(&us_world_get_proxy(host)->robot[0], robot_state(host));
}

static us_world *open_file(const char *path) {
    us_error err = {0};
    us_spec *spec = NULL;
    us_world *host = NULL;
    live_ok(us_spec_load(path, NULL, &spec, &err), &err);
    us_world_def def = us_world_def_default();
    def.proxy.enable_motor_servers = false;
    live_ok(us_world_create(spec, &def, &host, &err), &err);
    us_spec_destroy(spec);
    return host;
}

static double joint(us_world *host, const char *name) {
    us_sim *sim = us_world_get_sim(host);
    int32_t id = us_sim_find_value(sim, name);
    assert_true(id >= 0);
    return us_sim_get_value(sim, id);
}

// rad between the vertical axes.
static double tilt_between(us_quat a, us_quat b) {
    us_vec3 x = us_quat_rotate(a, us_vec3_make(0, 0, 1)), y = us_quat_rotate(b, us_vec3_make(0, 0, 1));
    return us_vec3_norm(us_vec3_sub(x, y));
}

static void it_goes_on_as_it_is_told(void **state) {
    (void)state;
    us_world *host = live_open(live_robot_scene);
    live_step(host, 500);
    double z = live_pose(host, "k10/base").p.z;
    // 0.4 m/s on a circle of 2 m: the wheels stand and turn as they do there.
    live_done(host, "adopt k10 stamp=1794819600,123456789 odom=3,1,0.7 velocity=0.4,0,0.2 want=0.4,0,0.2,0.1 "
                    "joint:front_left_drive=12.5,1.8 "
                    "joint:front_left_steer=0.2390 joint:rear_left_steer=-0.2390 "
                    "joint:front_right_steer=0.1677 joint:rear_right_steer=-0.1677");
    const usi_firmware_state *s = firmware(host);
    live_near(s->odom[0], 3, 0);
    live_near(s->want[0], 0.4, 0);
    live_near(s->now[0], 0.4, 0);
    live_near(joint(host, "k10/front_left_drive.q"), 12.5, 0);
    live_near(joint(host, "k10/front_left_steer.q"), 0.239, 0);
    int64_t tick = us_sim_get_tick(us_world_get_sim(host));
    assert_int_equal(robot_state(host)->stamp_offset, INT64_C(1794819600123456789) - tick * 1000000);
    us_pose at = live_pose(host, "k10/base");
    live_near(at.p.x, 3, 1e-12);
    live_near(at.p.y, 1, 1e-12);
    // 20 um: what tyres give way differs by the loads of driving; the relaxation ends within a hundredth of
    // the weight.
    live_near(at.p.z, z, 2e-5);
    double pose[3] = {3, 1, 0.7};
    const double body[3] = {0.4, 0, 0.2};
    for (int i = 0; i < 300; i++) {
        live_step(host, 1);
        usi_odometry_move(pose, body, 1e-3);
        s = firmware(host);
        // Within 5 mm, 0.2 degrees and 15 mm/s of the arc it was on: a drive that rolls needs a moment to
        // find its torque.
        live_near(s->odom[0], pose[0], 5e-3);
        live_near(s->odom[1], pose[1], 5e-3);
        live_near(s->odom[2], pose[2], 3.5e-3);
        live_near(s->odom_v[0], 0.4, 0.015);
        live_near(s->odom_v[2], 0.2, 0.03);
        // It neither falls nor pops.
        live_near(live_pose(host, "k10/base").p.z, z, 2e-4);
    }
    // The command was 0.1 s old: 0.5 s after it came the rover stops by itself.
    assert_int_equal(s->motion, USI_MOTION_TWIST);
    live_step(host, 105);
    assert_int_equal(firmware(host)->motion, USI_MOTION_STOP);
    us_world_destroy(host);
}

typedef struct unrest {
    double z, tilt, v;
} unrest;

// On the ground of a crater, with bumps and stones: 20 places and headings. What it does in the tenth of a
// second after it was put down.
static unrest put_down_at_20_places(us_world *host) {
    live_step(host, 10);
    char text[160];
    unrest worst = {0};
    double longest = 0;
    for (int i = 0; i < 20; i++) {
        double r = 1 + 0.2 * i, a = 0.9 * i;
        snprintf(text, sizeof text, "adopt k10 origin=0,0,0 odom=%.6f,%.6f,%.6f", r * cos(a), r * sin(a),
                 1.3 * i);
        clock_t began = clock();
        live_done(host, text);
        longest = fmax(longest, (double)(clock() - began) / CLOCKS_PER_SEC);
        live_near(firmware(host)->odom[0], r * cos(a), 1e-6);
        us_pose from = live_pose(host, "k10/base");
        live_near(from.p.x, r * cos(a), 1e-6);
        live_near(from.p.y, r * sin(a), 1e-6);
        for (int k = 0; k < 100; k++) {
            live_step(host, 1);
            us_pose now = live_pose(host, "k10/base");
            worst.z = fmax(worst.z, fabs(now.p.z - from.p.z));
            worst.tilt = fmax(worst.tilt, tilt_between(now.q, from.q));
            us_twist V = us_sim_get_twist(us_world_get_sim(host),
                                          us_model_find_body(us_world_view_model(host), "k10/base"));
            worst.v = fmax(worst.v, fabs(V.v.z));
        }
    }
    print_message("worst of 20 places in 0.1 s: %.3f mm of height, %.4f deg of tilt, %.2f mm/s; putting it "
                  "down took %.1f ms at most\n",
                  1e3 * worst.z, 180 / 3.14159 * worst.tilt, 1e3 * worst.v, 1e3 * longest);
    us_world_destroy(host);
    return worst;
}

// The soil of the crater that ships, without its rocks and stones.
static us_world *open_soil(void) {
    static char text[32768], bare[3 * sizeof text + sizeof US_SOURCE_DIR + 16];
    FILE *file = fopen(US_SOURCE_DIR "/scenes/default.xml", "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    char *rocks = strstr(text, "<!-- Rock that is part"), *world = strstr(text, "</world>"),
         *stones = strstr(text, "<!-- Stones that lie loose");
    assert_true(rocks && world && stones);
    *rocks = *stones = 0;
    // The robot's file stands beside the scene, which is read from memory here.
    char *robot = strstr(world, "../models/k10.urdf");
    assert_non_null(robot);
    *robot = 0;
    snprintf(bare, sizeof bare, "%s%s%s/%s</scene>", text, world, US_SOURCE_DIR, robot + 3);
    return live_open(bare);
}

static void it_stands_on_uneven_ground_without_falling_or_popping(void **state) {
    (void)state;
    unrest worst = put_down_at_20_places(open_file(US_SOURCE_DIR "/tests/support/crater.xml"));
    // A third of a millimetre and a twentieth of a degree: on a slope it leans into its tyres once the hand
    // that held it lets go.
    assert_true(worst.z < 3e-4);
    assert_true(worst.tilt < 1e-3);
    assert_true(worst.v < 5e-3);
}

static void it_stands_in_soil(void **state) {
    (void)state;
    unrest worst = put_down_at_20_places(open_soil());
    // Wheels have sunk by centimetres; on slopes the soil gives way by millimetres before it holds them.
    assert_true(worst.z < 5e-3);
    assert_true(worst.tilt < 0.015);
    assert_true(worst.v < 0.06);
}

static void what_others_do_stays_as_it_was(void **state) {
    (void)state;
    us_world *host = live_open(live_robot_scene), *other = live_open(live_robot_scene);
    live_step(host, 100);
    live_step(other, 100);
    live_done(host, "adopt k10 odom=0,2,1");
    us_pose a = live_pose(host, "stone/core"), b = live_pose(other, "stone/core");
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(us_sim_get_tick(us_world_get_sim(host)), 100);
    us_world_destroy(host);
    us_world_destroy(other);
}

static void what_cannot_be_is_refused_with_the_reason_and_nothing_changes(void **state) {
    (void)state;
    us_world *host = live_open(live_robot_scene);
    live_step(host, 20);
    static const struct {
        const char *text;
        us_status status;
        const char *part;
    } bad[] = {
        {"adopt k10", US_ERR_SYNTAX, "at least one value"},
        {"adopt k11 odom=0,0,0", US_ERR_NAME, "did you mean \"k10\"?"},
        {"adopt k10 odom=0,0", US_ERR_VALUE, "3 numbers"},
        {"adopt k10 odom=0,0,nan", US_ERR_VALUE, "odom"},
        {"adopt k10 odom=0,0,0 odom=1,1,1", US_ERR_NAME, "said twice"},
        {"adopt k10 odmo=0,0,0", US_ERR_NAME, "odom"},
        {"adopt k10 velocity=1,0,0", US_ERR_VALUE, "odom=X,Y,YAW"},
        {"adopt k10 want=1,0,0,-1", US_ERR_VALUE, "no age"},
        {"adopt k10 battery=2", US_ERR_VALUE, "from 0 to 1"},
        {"adopt k10 battery=0.5", US_ERR_VALUE, "no battery"},
        {"adopt k10 stamp=1.5,0", US_ERR_VALUE, "whole numbers"},
        {"adopt k10 joint:=1", US_ERR_SYNTAX, "no name"},
        {"adopt k10 joint:front_left_steer=1 joint:front_left_steer=1", US_ERR_NAME, "said twice"},
        {"adopt k10 joint:front_left_stear=0", US_ERR_NAME, "did you mean \"front_left_steer\"?"},
        {"adopt k10 joint:front_left_steer=9", US_ERR_VALUE, "beyond the joint's limits"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        live_refused(host, bad[i].text, bad[i].status, bad[i].part);
    us_world_destroy(host);

    // Beyond the edge of the ground there is nothing to stand on.
    host = open_file(US_SOURCE_DIR "/scenes/default.xml");
    live_step(host, 5);
    live_refused(host, "adopt k10 odom=500,0,0", US_ERR_VALUE, "nothing to stand on");
    us_world_destroy(host);
}

static void a_robot_that_stands_on_the_world_takes_its_joints(void **state) {
    (void)state;
    us_world *host = open_file(US_SOURCE_DIR "/scenes/arm.xml");
    const us_proxy *proxy = us_world_get_proxy(host);
    assert_true(proxy->n_robot > 0);
    const usi_robot *r = &proxy->robot[0];
    assert_true(r->model->firmware.n_joint > 1 && r->model->firmware.joint[1].drive >= 0);
    char text[256];
    live_step(host, 20);
    snprintf(text, sizeof text, "adopt %s joint:%s=0.3,0", r->name, r->model->firmware.joint[1].name);
    live_done(host, text);
    live_near(us_sim_view_q(us_world_get_sim(host))[r->model->joint[1].q], 0.3, 0);
    live_step(host, 300);
    // It holds there: 0.05 rad is what gravity bends its drive.
    live_near(us_sim_view_q(us_world_get_sim(host))[r->model->joint[1].q], 0.3, 0.05);
    snprintf(text, sizeof text, "adopt %s odom=0,0,0", r->name);
    live_refused(host, text, US_ERR_VALUE, "does not drive or walk");
    us_world_destroy(host);
}

static void a_walker_takes_over_too(void **state) {
    (void)state;
    us_world *host = open_file(US_SOURCE_DIR "/scenes/hexapod.xml");
    live_step(host, 300);
    double z = live_pose(host, "hexapod/base").p.z;
    live_done(host, "adopt hexapod odom=0.4,0.3,1 velocity=0,0,0");
    live_step(host, 200);
    // 3 mm: its legs are drives that give way, and it stands elsewhere.
    live_near(live_pose(host, "hexapod/base").p.z, z, 3e-3);
    us_world_destroy(host);
}

static us_battery_state battery(us_world *host) {
    return us_sim_get_battery(us_world_get_sim(host),
                              us_model_find_battery(us_world_view_model(host), "k10"));
}

// Drives for a second from where it is; how far it comes.
static double drive_a_second(us_world *host) {
    us_vec3 from = live_pose(host, "k10/base").p;
    for (int i = 0; i < 10; i++) {
        live_drive(host, 0.5);
        live_step(host, 100);
    }
    return us_vec3_norm(us_vec3_sub(live_pose(host, "k10/base").p, from));
}

static void a_battery_that_it_takes_over_feeds_its_drives(void **state) {
    (void)state;
    us_world *host = live_open(live_battery_scene);
    live_step(host, 100);
    live_done(host, "adopt k10 battery=0.25");
    assert_true(battery(host).energy == 0.25 * 500 * 3600);
    assert_true(drive_a_second(host) > 0.2);
    assert_true(battery(host).power > 40);
    // An empty one gives no torque: it stays where it is put.
    live_done(host, "adopt k10 battery=0 odom=0,0,0 velocity=0,0,0");
    assert_true(battery(host).energy == 0);
    live_step(host, 500);
    live_near(drive_a_second(host), 0, 2e-3);
    live_near(live_value(host, "k10/front_left_drive.torque"), 0, 0);
    assert_true(battery(host).energy == 0 && battery(host).power == 0);
    live_done(host, "adopt k10 battery=1");
    assert_true(drive_a_second(host) > 0.2);
    // One that has none takes none.
    us_world *without = live_open(live_robot_scene);
    live_refused(without, "adopt k10 battery=0.5", US_ERR_VALUE, "has no battery");
    live_refused(host, "adopt k10 battery=1.5", US_ERR_VALUE, "battery");
    us_world_destroy(without);
    us_world_destroy(host);
}

// A recording with it runs again to the same bits.
static void a_recording_with_it_verifies(void **state) {
    (void)state;
    us_error err = {0};
    us_world *host = live_open(live_robot_scene);
    live_step(host, 20);
    live_ok(us_world_record(host, "adopt.mcap", &err), &err);
    live_drive(host, 0.5);
    live_step(host, 50);
    live_done(
        host,
        "adopt k10 stamp=5,0 odom=1,-1,0.5 velocity=0.3,0,0.1 want=0.3,0,0.1 joint:front_left_drive=1,2");
    live_step(host, 100);
    us_world_destroy(host);
    us_recording *recording = NULL;
    us_verify_result result = {0};
    us_spec *spec = live_load(live_robot_scene);
    live_ok(us_recording_open("adopt.mcap", NULL, &recording, &err), &err);
    live_ok(us_world_verify(spec, recording, NULL, NULL, &result, &err), &err);
    assert_int_equal(result.n_tick, 150);
    us_recording_close(recording);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_as_it_is_told),
        cmocka_unit_test(it_stands_on_uneven_ground_without_falling_or_popping),
        cmocka_unit_test(it_stands_in_soil),
        cmocka_unit_test(what_others_do_stays_as_it_was),
        cmocka_unit_test(what_cannot_be_is_refused_with_the_reason_and_nothing_changes),
        cmocka_unit_test(a_robot_that_stands_on_the_world_takes_its_joints),
        cmocka_unit_test(a_walker_takes_over_too),
        cmocka_unit_test(a_battery_that_it_takes_over_feeds_its_drives),
        cmocka_unit_test(a_recording_with_it_verifies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

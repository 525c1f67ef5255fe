// Sensors that are changed while they run: by commands, by calls and by faults, recorded and run again.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "understudy/record.h"
#include "understudy/sensing.h"

static us_sensor imu_of(us_world *world) {
    const us_sensor s = us_model_find_sensor(us_sim_view_model(us_world_get_sim(world)), "k10", "imu");
    assert_true(s.i >= 0);
    return s;
}

static double parameter(us_world *world, const char *name) {
    return us_sim_get_sensor_parameter(us_world_get_sim(world), imu_of(world), name);
}

static void commands_set_parameters_all_or_none(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    const live_reply r = live_say(world, "sensor k10/imu rate=50Hz force-noise=0.1m/s^2 latency=20ms");
    assert_int_equal(r.status, US_OK);
    assert_string_equal(r.text, "k10/imu: rate=50 force-noise=0.1 latency=0.02");
    assert_true(parameter(world, "rate") == 50 && parameter(world, "force-noise") == 0.1);
    live_refused(world, "sensor k10/imu rate=20 spin-noise=-1", US_ERR_VALUE, "from 0 to 1000000 rad/s");
    assert_true(parameter(world, "rate") == 50);
    live_refused(world, "sensor k10/imu rat=20", US_ERR_NAME, "did you mean \"rate\"");
    live_refused(world, "sensor k10/imo rate=20", US_ERR_NAME, "did you mean \"k10/imu\"");
    live_refused(world, "sensor k10/imu rate", US_ERR_SYNTAX, "PARAMETER=VALUE");
    live_refused(world, "sensor k10 rate=20", US_ERR_SYNTAX, "sensor ROBOT/NAME");
    live_refused(world, "sensor k10/imu rate=20m", US_ERR_VALUE, "is the unit of a length");
    live_refused(world, "sensor k10/imu latency=10.5", US_ERR_VALUE, "from 0 to 10 s");
    live_refused(world, "fault k10 sensor:imo=dead", US_ERR_NAME, "did you mean \"imu\"");
    live_refused(world, "fault k10 sensor:imu=offset:orientation.w,1", US_ERR_VALUE, "part of a rotation");
    us_world_destroy(world);
}

static void what_was_changed_while_it_ran_runs_again(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(live_robot_scene);
    live_step(world, 20);
    live_ok(us_world_record(world, "sensors.mcap", &err), &err);
    live_drive(world, 0.4);
    live_step(world, 50);
    live_done(world, "sensor k10/imu rate=40Hz force-noise=0.2 latency=30ms");
    live_step(world, 100);
    live_done(world, "fault k10 sensor:imu=noisy:3");
    live_done(world, "fault k10 sensor:imu=dropping:0.3");
    live_done(world, "fault k10 sensor:imu=offset:force.x,0.5");
    live_step(world, 100);
    us_sim *sim = us_world_get_sim(world);
    const us_sensor_fault late = {.noise = 1, .delay = 0.1};
    assert_int_equal(us_sim_set_sensor_parameter(sim, imu_of(world), "spin-noise", 0.01, NULL), US_OK);
    assert_int_equal(us_sim_set_sensor_fault(sim, imu_of(world), &late), US_OK);
    assert_int_equal(us_sim_set_sensor_error(sim, imu_of(world), "spin.z", 0.1, 0.02, NULL), US_OK);
    live_step(world, 200);
    live_done(world, "fault k10 sensor:imu=ok");
    live_step(world, 50);
    live_ok(us_world_record(world, NULL, &err), &err);
    us_world_destroy(world);
    assert_int_equal(live_verify(live_robot_scene, "sensors.mcap").n_tick, 500);
}

static void an_edit_of_the_world_keeps_what_is_under_way(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    live_done(world, "sensor k10/imu latency=50ms force-noise=0.1");
    live_step(world, 100);
    const us_sensor imu = imu_of(world);
    const int64_t before = us_sim_view_sensor_sample(us_world_get_sim(world), imu).number;
    live_done(world, "add box crate size=0.3,0.3,0.3 at=3,0,0.2");
    assert_true(parameter(world, "latency") == 0.05 && parameter(world, "force-noise") == 0.1);
    assert_int_equal(us_sim_view_sensor_sample(us_world_get_sim(world), imu_of(world)).number, before);
    // No sample comes sooner or later for it.
    for (int i = 0; i < 60; i++) {
        live_step(world, 1);
        const us_sim *sim = us_world_get_sim(world);
        const int64_t late = us_sim_get_tick(sim) - us_sim_view_sensor_reading(sim, imu_of(world)).tick;
        assert_true(late >= 50 && late < 60);
    }
    us_world_destroy(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_set_parameters_all_or_none),
        cmocka_unit_test(what_was_changed_while_it_ran_runs_again),
        cmocka_unit_test(an_edit_of_the_world_keeps_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The stand-in hardware of examples/hardware: a robot with another engine's body, driven over the network.
#include "test_hardware_support.h"

static void it_drives_as_commanded_and_stops_when_commands_end(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("");
    operator_ *o = join_as_operator();
    heard h;
    // 15 %: drives give way to loads and wheels slip a little; far less than a wrong direction, wheel radius
    // or lever would make.
    command(o, 0.4, 0, 0, false);
    heard m = measure(o, 0.6);
    assert_near(m.vx, 0.4, 0.06);
    assert_near(m.vy, 0, 0.02);
    assert_near(m.wz, 0, 0.02);
    command(o, 0.3, 0, -0.2, true);
    m = measure(o, 0.6);
    assert_near(m.vx, 0.3, 0.045);
    assert_near(m.wz, -0.2, 0.03);
    // The inertial unit, which knows nothing of wheels, feels the same turn.
    assert_near(m.sum_gyro, -0.2, 0.03);

    // Nobody commands: it comes to rest by itself, says so, and stays.
    o->is_quiet = true;
    WAIT_DRIVING(o, is_still(&h) && strstr(h.diagnostics, "safe stops\n    value: '1'"));
    heard rest = h;
    WAIT_DRIVING(o, h.stamp > rest.stamp + 0.5);
    assert_true(is_still(&h));
    // 2 cm: what the smoothed velocity had not yet told, and the odometry's noise.
    assert_near(hypot(h.x - rest.x, h.y - rest.y), 0, 0.02);

    // Too much is refused, with the reason.
    o->is_quiet = false;
    command(o, 5, 0, 0, false);
    WAIT_DRIVING(o, strstr(h.diagnostics, "cmd_vel: speed 5 m/s is beyond the limit of 0.9 m/s"));
    assert_true(is_still(&h));

    // Sideways, with all wheels across.
    command(o, 0, 0.3, 0, false);
    m = measure(o, 0.6);
    assert_near(m.vy, 0.3, 0.045);
    assert_near(m.vx, 0, 0.02);
    leave(o);
    end(pid);
}

static void the_emergency_stop_holds_until_it_is_released(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("");
    operator_ *o = join_as_operator();
    heard h;
    command(o, 0.4, 0, 0, false);
    WAIT_DRIVING(o, h.vx > 0.3);
    send(o->emergency, usi_type_bool, &(us_msg_bool){.data = true});
    WAIT_DRIVING(o, is_still(&h) && strstr(h.diagnostics, "the emergency stop is on"));
    assert_non_null(strstr(h.diagnostics, "level: 2"));
    assert_non_null(strstr(h.diagnostics, "key: emergency stop\n    value: 'on'"));
    heard rest = h;
    // Commands go on, and are refused.
    WAIT_DRIVING(o, h.stamp > rest.stamp + 1);
    assert_near(h.x, rest.x, 0.02);
    assert_non_null(strstr(h.diagnostics, "cmd_vel: the emergency stop is on"));
    send(o->emergency, usi_type_bool, &(us_msg_bool){.data = false});
    WAIT_DRIVING(o, h.vx > 0.3 && !strstr(h.diagnostics, "message: the emergency stop is on"));
    leave(o);
    end(pid);
}

static void wrong_options_are_named(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    static const char *const wrong[][2] = {
        {"", "the robot's URDF file is missing"},
        {K10 " --drop 2", "--drop 2: must be a number from 0 to 1"},
        {K10 " --latency x", "--latency x: must be a number"},
        {K10 " --friction nan", "--friction nan: must be a number"},
        {K10 " --domain 300", "--domain 300: must be a whole number from 0 to 232"},
        {K10 " --namespace 1k", "--namespace 1k: must be letters"},
        {K10 " --seed -1", "--seed -1: must be a whole number"},
        {K10 " --wind 3", "--wind: there is no such option"},
        {K10 " --mass-error", "--mass-error: needs a value"},
        {K10 " --dropout-every 1 --dropout-time 2", "--dropout-time: must be less than --dropout-every"},
        {K10 " " K10, "one robot only"},
        {"no.urdf", "no.urdf: the file cannot be read"},
        {US_SOURCE_DIR "/scenes/default.xml", "the file is no URDF"},
        {US_SOURCE_DIR "/models/arm6.urdf", "remedy: take a rover with four steered wheels"},
    };
    use_hardware();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        outcome a = run("%s", wrong[i][0]);
        assert_int_equal(a.code, 2);
        assert_has(a.err, wrong[i][1]);
        assert_has(a.err, "remedy:");
    }
    outcome b = run("--help");
    assert_code(b, 0);
    assert_has(b.out, "--radius-error");
    use_understudy();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_drives_as_commanded_and_stops_when_commands_end, use_own_domain,
                                        kill_the_rest),
        cmocka_unit_test_setup_teardown(the_emergency_stop_holds_until_it_is_released, use_own_domain,
                                        kill_the_rest),
        cmocka_unit_test_setup_teardown(wrong_options_are_named, use_own_domain, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}

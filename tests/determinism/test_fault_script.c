// Faults that a scene has in store: when they come and go, what is wrong with those that cannot be, and that
// they come the same way again.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "proxy/fault.h"
#include "wire/messages.h"

static char scene[8192];

// The rover's scene with faults in it.
static const char *with(const char *faults) {
    const char *end = strstr(live_robot_scene, "</robot>");
    snprintf(scene, sizeof scene, "%.*s<battery capacity='1 Wh' idle='100 W'/>%s%s",
             (int)(end - live_robot_scene), live_robot_scene, faults, end);
    return scene;
}

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

static int state_of(us_world *world, int i) {
    return usi_proxy_script_state(us_world_get_proxy(world), us_world_get_sim(world), 0, i);
}

static void add_line(void *context, const char *what, const char *said) {
    char *out = context;
    (void)said;
    strcat(strcat(out, what), " ");
}

static const char *faults_of(us_world *world) {
    static char text[2000];
    text[0] = 0;
    usi_proxy_each_fault(us_world_get_proxy(world), us_world_get_sim(world), 0, add_line, text);
    return text;
}

// ---------------------------------------------------------------- when

static void a_fault_comes_at_its_tick_and_goes_after_its_time(void **state) {
    (void)state;
    us_world *world = live_open(with("<fault at='0.1 s' what='motor:front_left_drive=dead' for='50 ms'/>"));
    live_step(world, 100);
    assert_int_equal(state_of(world, 0), 0);
    assert_string_equal(faults_of(world), "");
    live_step(world, 1);
    assert_int_equal(state_of(world, 0), 1);
    assert_string_equal(faults_of(world), "motor:front_left_drive=dead ");
    live_step(world, 49);
    assert_int_equal(state_of(world, 0), 1);
    live_step(world, 1);
    assert_int_equal(state_of(world, 0), 2);
    assert_string_equal(faults_of(world), "");
    us_world_destroy(world);
}

static void a_fault_comes_when_its_condition_holds(void **state) {
    (void)state;
    us_world *world =
        live_open(with("<fault when='odom.x &gt; 0.5 and speed &gt;= 0.2' what='link=loss:0.5'/>"
                       "<fault when='battery &lt; 0.9' what='imu=stuck'/>"
                       "<fault when='front_left_drive.q &lt;= -1 and time &gt; 2' what='imu=ok'/>"
                       "<fault at='2 s' when='stone/core.z &gt; 0.5' what='motor:rear_left_drive=dead'/>"));
    drive(world, 0.3, 1000);
    assert_int_equal(state_of(world, 0), 0);
    drive(world, 0.3, 1500);
    assert_int_equal(state_of(world, 0), 1);
    // 100 W empty a tenth of 1 Wh in 3.6 s.
    assert_int_equal(state_of(world, 1), 0);
    drive(world, -0.5, 1200);
    assert_int_equal(state_of(world, 1), 1);
    assert_int_equal(state_of(world, 3), 0);
    live_done(world, "move stone 3 0 2");
    live_step(world, 1);
    assert_int_equal(state_of(world, 3), 1);
    us_world_destroy(world);
}

static void a_fault_comes_after_another_and_counts_from_it(void **state) {
    (void)state;
    us_world *world = live_open(
        with("<fault name='first' at='0.2 s' what='encoder:front_left_drive=stuck' for='0.5 s'/>"
             "<fault name='second' after='first' at='0.3 s' what='encoder:front_right_drive=stuck'/>"
             "<fault after='second' what='encoder:rear_left_drive=stuck'/>"));
    live_step(world, 500);
    assert_true(state_of(world, 0) == 1 && state_of(world, 1) == 0 && state_of(world, 2) == 0);
    // What comes after another without a time comes in the same tick.
    live_step(world, 1);
    assert_true(state_of(world, 0) == 1 && state_of(world, 1) == 1 && state_of(world, 2) == 1);
    live_step(world, 200);
    assert_true(state_of(world, 0) == 2 && state_of(world, 1) == 1);
    us_world_destroy(world);
}

// ---------------------------------------------------------------- the same again

static const char every_kind[] =
    "<fault name='a' at='0.2 s' what='motor:front_left_drive=blocked:5' for='0.4 s'/><fault at='0.3 s' "
    "what='encoder:rear_left_drive=drift:0.2'/>"
    "<fault after='a' at='0.1 s' what='link=delay:0.1' for='0.6 s'/><fault when='odom.x &gt; 0.2' "
    "what='imu=bias:1,0,0' for='0.1 s'/>"
    "<fault at='1 s' what='computer=reboot:0.2'/><fault at='1.5 s' what='power=brownout:0.1'/>";

static void scripts_give_the_same_bits_and_go_back_with_time(void **state) {
    (void)state;
    with(every_kind);
    us_world *a = live_open(scene), *b = live_open(scene);
    drive(a, 0.4, 350);
    drive(b, 0.4, 350);
    // While the joint is blocked: the snapshot is of a world that the script has edited.
    live_done(b, "snapshot blocked");
    drive(a, 0.4, 1650);
    drive(b, 0.4, 1650);
    uint64_t end = us_sim_hash(us_world_get_sim(a));
    assert_true(us_sim_hash(us_world_get_sim(b)) == end);
    live_done(b, "restore blocked");
    assert_true(state_of(b, 0) == 1 && state_of(b, 4) == 0);
    drive(b, 0.4, 1650);
    assert_true(us_sim_hash(us_world_get_sim(b)) == end);
    live_done(b, "reset");
    assert_int_equal(state_of(b, 0), 0);
    drive(b, 0.4, 350);
    drive(b, 0.4, 1650);
    assert_true(us_sim_hash(us_world_get_sim(b)) == end);
    us_world_destroy(a);
    us_world_destroy(b);
}

static void recordings_with_scripts_verify_bit_for_bit(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(with(every_kind));
    live_ok(us_world_record(world, "script.mcap", &err), &err);
    drive(world, 0.4, 400);
    // A second one begins in the world that the script has edited.
    live_ok(us_world_record(world, NULL, &err), &err);
    live_ok(us_world_record(world, "script-later.mcap", &err), &err);
    drive(world, 0.4, 1600);
    live_ok(us_world_record(world, NULL, &err), &err);
    us_world_destroy(world);
    assert_int_equal(live_verify(scene, "script.mcap").n_tick, 400);
    us_verify_result later = live_verify(scene, "script-later.mcap");
    assert_true(later.first_tick == 400 && later.n_tick == 1600);
}

// ---------------------------------------------------------------- what is wrong

static void scenes_with_faults_that_cannot_be_are_refused_at_their_line(void **state) {
    (void)state;
    static const struct {
        const char *fault;
        us_status status;
        const char *part;
    } bad[] = {
        {"<fault at='1 s'/>", US_ERR_SCHEMA, "what"},
        {"<fault what='imu=stuck'/>", US_ERR_SCHEMA, "not said when"},
        {"<fault at='-1 s' what='imu=stuck'/>", US_ERR_VALUE, "negative"},
        {"<fault at='1 kg' what='imu=stuck'/>", US_ERR_VALUE, "a time is needed"},
        {"<fault at='1 s' for='0 s' what='imu=stuck'/>", US_ERR_VALUE, "greater than 0"},
        {"<fault at='1 s' for='1 s' what='imu=ok'/>", US_ERR_VALUE, "not undone"},
        {"<fault at='1 s' what='imu=dead'/>", US_ERR_NAME, "there is no fault"},
        {"<fault at='1 s' what='motor:front_left_driv=dead'/>", US_ERR_NAME,
         "did you mean \"front_left_drive\"?"},
        {"<fault at='1 s' what='encoder:nose=stuck'/>", US_ERR_NAME, "has no encoder"},
        {"<fault when='odom.x' what='imu=stuck'/>", US_ERR_SYNTAX, "not compared"},
        {"<fault when='odom.x &gt; far' what='imu=stuck'/>", US_ERR_VALUE, "far"},
        {"<fault when='odom.x &gt; 1 or odom.y &gt; 1' what='imu=stuck'/>", US_ERR_SYNTAX,
         "\"and\" is expected, not \"or\""},
        {"<fault when='odom.x &gt; 1 and' what='imu=stuck'/>", US_ERR_SYNTAX, "a value is missing"},
        {"<fault when='odom.z &gt; 1' what='imu=stuck'/>", US_ERR_NAME, "there is no value \"odom.z\""},
        {"<fault when='nose.q &gt; 1' what='imu=stuck'/>", US_ERR_NAME, "there is no value \"nose.q\""},
        {"<fault after='x' what='imu=stuck'/>", US_ERR_NAME, "there is no fault \"x\" before it"},
        {"<fault name='x' at='1 s' what='imu=stuck'/><fault name='x' at='2 s' what='imu=ok'/>", US_ERR_NAME,
         "used twice"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[4000];
        us_error err = {0};
        us_spec *spec = NULL;
        // On a line of its own.
        snprintf(text, sizeof text, "\n\n%s", bad[i].fault);
        with(text);
        us_status status =
            us_spec_load_text(scene, strlen(scene), US_SOURCE_DIR "/scenes/test.xml", NULL, &spec, &err);
        char told[1500];
        snprintf(told, sizeof told, "%s; %s", err.message, err.remedy);
        if (status != bad[i].status || !strstr(told, bad[i].part) || err.line != 3)
            fail_msg("%s: status %d, line %d, %s", bad[i].fault, (int)status, (int)err.line, told);
        assert_null(spec);
    }
}

static void a_robot_without_battery_or_wheels_has_no_such_values(void **state) {
    (void)state;
    static const char *const bad[] = {"battery &lt; 0.5", "odom.x &gt; 1", "speed &gt; 1"};
    for (int i = 0; i < 3; i++) {
        us_error err = {0};
        us_spec *spec = NULL;
        snprintf(scene, sizeof scene,
                 "<scene name='leg' version='1'><world/><robot name='hexapod' "
                 "file='../models/hexapod.urdf'><fault when='%s' "
                 "what='imu=stuck'/></robot></scene>",
                 bad[i]);
        assert_int_equal(
            us_spec_load_text(scene, strlen(scene), US_SOURCE_DIR "/scenes/test.xml", NULL, &spec, &err),
            US_ERR_NAME);
        assert_non_null(strstr(err.message, "the robot has no"));
    }
}

static void definitions_by_calls_are_checked_too(void **state) {
    (void)state;
    us_spec *spec = live_load(with(""));
    us_network_def d =
        *us_spec_view_network(spec, us_spec_view_link(spec, us_spec_find_link(spec, "k10/base"))->group);
    us_fault_def f[2] = {{.name = "a", .at = 1, .what = "imu=stuck"},
                         {.name = "b", .after = "a", .when = "odom.x > 1", .what = "link=outage"}};
    d.n_fault = 2;
    d.faults = f;
    assert_int_equal(us_spec_set_network(spec, &d), US_OK);
    f[1].after = "b";
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_NAME);
    f[1].after = NULL;
    f[1].name = "a";
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_NAME);
    f[1].name = NULL;
    f[1].when = "odom.x = 1";
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_SYNTAX);
    f[1].when = NULL;
    f[1].at = NAN;
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_VALUE);
    f[1].at = 0;
    f[1].what = NULL;
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_VALUE);
    d.n_fault = 65;
    assert_int_equal(us_spec_set_network(spec, &d), US_ERR_LIMIT);
    // What was set last and good is still there, in its own memory.
    const us_network_def *kept = us_spec_view_network(spec, d.group);
    assert_int_equal(kept->n_fault, 2);
    assert_string_equal(kept->faults[1].what, "link=outage");
    assert_ptr_not_equal(kept->faults, f);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_comes_at_its_tick_and_goes_after_its_time),
        cmocka_unit_test(a_fault_comes_when_its_condition_holds),
        cmocka_unit_test(a_fault_comes_after_another_and_counts_from_it),
        cmocka_unit_test(scripts_give_the_same_bits_and_go_back_with_time),
        cmocka_unit_test(recordings_with_scripts_verify_bit_for_bit),
        cmocka_unit_test(scenes_with_faults_that_cannot_be_are_refused_at_their_line),
        cmocka_unit_test(a_robot_without_battery_or_wheels_has_no_such_values),
        cmocka_unit_test(definitions_by_calls_are_checked_too),
    };
    return cmocka_run_group_tests_name("fault_script", tests, NULL, NULL);
}

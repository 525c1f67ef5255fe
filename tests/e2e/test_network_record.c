// Recordings of a running robot: whole when it is ended, readable when it is killed, and the same bits when
// they are run again.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net_peer.h"

// A second inertial unit, whose noise is part of the state.
#define SENSOR "<sensor type='imu' name='mast' link='base' xyz='0 0 1' force-noise='0.1' spin-noise='0.01'/>"
#include "understudy/proxy.h"

// Runs for some simulated seconds with commands from the network; the last time seen.
static double record(const char *path, double seconds) {
    net_write_k10("k10.xml", SENSOR);
    unlink(path);
    net_run("k10.xml --headless --quiet --record %s", path);
    net_peer *p = net_open("cyclone");
    us_writer *writer = net_speak(p, "/k10/cmd_vel", usi_type_twist);
    double time = net_time(p);
    while (time < seconds) {
        us_msg_twist m = {.linear.x = 0.4, .angular.z = 0.3 * sin(time)};
        net_say(writer, usi_type_twist, &m);
        net_wait_until(p, time + 0.05);
        time = net_time(p);
    }
    net_close(p);
    return time;
}

static us_recording *open_recording(const char *path) {
    us_error err = {0};
    us_recording *recording = NULL;
    us_allocator allocator = us_allocator_default();
    if (us_recording_open(path, &allocator, &recording, &err)) fail_msg("%s", err.message);
    return recording;
}

// Reads every message of a topic: how many there are, and the log time of the last (s).
static int64_t count_messages(us_recording *recording, const char *topic, double *out_last) {
    us_error err = {0};
    us_recorded message;
    int64_t n = 0;
    bool has = true;
    assert_int_equal(us_recording_rewind(recording), US_OK);
    while (has) {
        us_status status = us_recording_next(recording, &message, &has, &err);
        if (status) fail_msg("%s", err.message);
        if (!has || strcmp(us_recording_get_channel(recording, message.channel).topic, topic) != 0) continue;
        n++;
        *out_last = 1e-9 * (double)message.log_time;
    }
    return n;
}

static us_status verify(us_recording *recording, const char *scene, us_verify_result *result, us_error *err) {
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_status status = us_spec_load(scene, NULL, &spec, err);
    if (!status) status = us_model_compile(spec, NULL, &model, err);
    if (status) fail_msg("%s", err->message);
    status = us_proxy_verify(model, recording, NULL, NULL, result, err);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return status;
}

static void a_recording_that_was_ended_is_whole_and_runs_again_to_the_same_bits(void **state) {
    (void)state;
    double time = record("ended.mcap", 2), last = 0;
    assert_int_equal(net_end(SIGINT), 0);
    us_recording *recording = open_recording("ended.mcap");
    us_recording_info info = us_recording_get_info(recording);
    assert_true(info.is_complete);
    assert_true(1e-9 * (double)info.last_time >= time);
    int64_t n_tick = count_messages(recording, "/understudy/ticks", &last);
    // One for every step of 1 ms, and one for the start.
    assert_true(fabs(last - 1e-9 * (double)info.last_time) < 1e-9);
    assert_int_equal(n_tick, llround(last / 1e-3) + 1);
    assert_int_equal(count_messages(recording, "/k10/joint_states", &last), (n_tick - 1) / 20 + 1);
    assert_int_equal(count_messages(recording, "/k10/robot_description", &last), 1);
    int64_t n_command = count_messages(recording, "/understudy/commands", &last);
    assert_true(n_command > 5);

    us_verify_result result;
    us_error err = {0};
    us_status status = verify(recording, "k10.xml", &result, &err);
    if (status) fail_msg("%s", err.message);
    assert_int_equal(result.bad_tick, -1);
    assert_int_equal(result.n_tick, n_tick - 1);
    assert_int_equal(result.n_command, n_command);

    // Firmware that is less patient does the same until it would have stopped between two commands: the first
    // tick that differs is named.
    net_write_k10("other.xml", SENSOR "<network timeout='0.02 s'/>");
    assert_int_equal(verify(recording, "other.xml", &result, &err), US_ERR_DIVERGED);
    assert_true(result.bad_tick > 20);
    char tick[40];
    snprintf(tick, sizeof tick, "tick %lld:", (long long)result.bad_tick);
    assert_non_null(strstr(err.message, tick));
    us_recording_close(recording);
}

static void a_recording_of_a_killed_program_has_all_but_the_last_second(void **state) {
    (void)state;
    double time = record("killed.mcap", 2.5), last = 0;
    assert_int_equal(net_end(SIGKILL), 128 + SIGKILL);
    us_recording *recording = open_recording("killed.mcap");
    us_recording_info info = us_recording_get_info(recording);
    assert_false(info.is_complete);
    static const char *const topics[] = {"/understudy/ticks", "/clock", "/k10/joint_states", "/k10/odom",
                                         "/k10/imu/data",     "/tf",    "/k10/mast/data"};
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        last = 0;
        assert_true(count_messages(recording, topics[i], &last) > 10);
        if (!(last > time - 1)) fail_msg("%s ends at %.3f s, killed after %.3f s", topics[i], last, time);
    }
    // What is there can be run again, too.
    us_verify_result result;
    us_error err = {0};
    us_status status = verify(recording, "k10.xml", &result, &err);
    if (status) fail_msg("%s", err.message);
    assert_int_equal(result.bad_tick, -1);
    assert_true((double)result.n_tick * 1e-3 > time - 1);
    us_recording_close(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_that_was_ended_is_whole_and_runs_again_to_the_same_bits),
        cmocka_unit_test(a_recording_of_a_killed_program_has_all_but_the_last_second),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}

// understudy record and replay: what was said comes back.
#include "test_network_support.h"

#include "understudy/record.h"

// ---- record and replay ----

static void record_writes_the_topics_that_are_named(void **state) {
    (void)state;
    topics_with("/k10/odom", "");
    outcome a = run("record some.mcap /k10/odom clock /k10/odmo --time 2");
    assert_code(a, 0);
    assert_has(a.out, "wrote some.mcap: ");
    assert_has(a.err, "nobody wrote /k10/odmo");
    assert_has(a.err, "did you mean /k10/odom?");
    us_error err = {0};
    us_recording *recording = NULL;
    expect_ok(us_recording_open("some.mcap", NULL, &recording, &err), &err);
    us_recording_info info = us_recording_get_info(recording);
    assert_true(info.is_complete);
    assert_int_equal(info.n_channel, 2);
    bool has = true;
    int64_t n[2] = {0};
    us_recorded message;
    for (;;) {
        expect_ok(us_recording_next(recording, &message, &has, &err), &err);
        if (!has) break;
        us_channel_info channel = us_recording_get_channel(recording, message.channel);
        bool is_odom = strcmp(channel.topic, "/k10/odom") == 0;
        assert_string_equal(channel.topic, is_odom ? "/k10/odom" : "/clock");
        n[is_odom]++;
        // Heard at this machine's time (1.6e18 ns is in the year 2020), sent at the robot's own, which stands
        // in the message.
        const us_message_type *type = us_message_find(channel.type);
        double sec = us_message_get_number(type, message.bytes, message.length,
                                           is_odom ? "header.stamp.sec" : "clock.sec");
        double nanosec = us_message_get_number(type, message.bytes, message.length,
                                               is_odom ? "header.stamp.nanosec" : "clock.nanosec");
        assert_true(message.log_time > INT64_C(1600000000000000000));
        assert_int_equal(message.publish_time, (int64_t)sec * 1000000000 + (int64_t)nanosec);
    }
    assert_true(n[0] > 0 && n[1] > 0);
    us_recording_close(recording);
}

static void record_takes_all_and_names_what_it_leaves_out(void **state) {
    (void)state;
    outcome a = run("record all.mcap --time 1");
    assert_code(a, 0);
    us_error err = {0};
    us_recording *recording = NULL;
    expect_ok(us_recording_open("all.mcap", NULL, &recording, &err), &err);
    assert_true(us_recording_get_info(recording).n_channel > 5);
    us_recording_close(recording);
    outcome b = run("record /nonexistent/all.mcap --time 1");
    assert_int_equal(b.code, 4);
    assert_has(b.err, "remedy:");
}

static int64_t count_messages(const char *path, const char *topic) {
    us_error err = {0};
    us_recording *recording = NULL;
    expect_ok(us_recording_open(path, NULL, &recording, &err), &err);
    int64_t n = 0;
    us_recorded message;
    for (bool has = true; has;) {
        expect_ok(us_recording_next(recording, &message, &has, &err), &err);
        n += has && strcmp(us_recording_get_channel(recording, message.channel).topic, topic) == 0;
    }
    us_recording_close(recording);
    return n;
}

static void count_sample(void *context, const us_sample *sample) {
    (void)sample;
    atomic_fetch_add((_Atomic int64_t *)context, 1);
}

static void replay_says_every_recorded_message_again(void **state) {
    (void)state;
    assert_code(
        run("run %s --headless --offline --set motor_port=0 --time 0.5 --rate max --record half.mcap", scene),
        0);
    use_domain(quiet_domain());
    us_bus *bus = open_bus("cyclone", quiet_domain());
    _Atomic int64_t n_odom = 0, n_clock = 0, n_tick = 0;
    us_qos all = {.is_reliable = true};
    add_reader(bus, "/k10/odom", usi_type_odometry, all, count_sample, &n_odom);
    add_reader(bus, "/clock", usi_type_clock, all, count_sample, &n_clock);
    add_reader(bus, "/understudy/ticks", usi_type_tick_hash, (us_qos){.depth = 1}, count_sample, &n_tick);
    outcome a = run("replay half.mcap --rate 5");
    assert_code(a, 0);
    assert_has(a.out, "played ");
    WAIT_FOR(atomic_load(&n_odom) == count_messages("half.mcap", "/k10/odom"));
    WAIT_FOR(atomic_load(&n_clock) == count_messages("half.mcap", "/clock"));
    assert_true(atomic_load(&n_odom) > 0);
    assert_int_equal(atomic_load(&n_tick), 0);
    // Only what is named.
    int64_t n_before = atomic_load(&n_clock);
    assert_code(run("replay half.mcap --rate max --topics k10/odom"), 0);
    WAIT_FOR(atomic_load(&n_odom) == 2 * count_messages("half.mcap", "/k10/odom"));
    assert_int_equal(atomic_load(&n_clock), n_before);
    us_bus_close(bus);
}

static void replay_is_heard_by_echo(void **state) {
    (void)state;
    assert_code(
        run("run %s --headless --offline --set motor_port=0 --time 0.5 --rate max --record half.mcap", scene),
        0);
    use_domain(quiet_domain());
    // Slow enough that it is still under way when the other has found it.
    pid_t pid = start("replay", "replay half.mcap --rate 0.02");
    outcome a = run("echo /clock --count 2 --timeout 20");
    assert_code(a, 0);
    assert_int_equal(count_text(a.out, "clock:\n"), 2);
    end(pid);
}

static void replay_refuses_what_is_no_recording(void **state) {
    (void)state;
    write_text("text.mcap", "this is no recording");
    static const char *const cases[][2] = {
        {"replay text.mcap", "remedy:"},
        {"replay missing.mcap", "missing.mcap"},
        {"replay some.mcap --rate fast", "invalid pace"},
        {"replay some.mcap --set a=1", "add --verify"},
        {"replay some.mcap --verify --rate 2", "mean nothing"},
        {"replay some.mcap --topics /k10/odmo", "did you mean /k10/odom?"},
        {"replay some.mcap --verify", "which scene"},
        {"echo", "needs a TOPIC"},
        {"echo /a --raw --csv", "give one of the two"},
        {"echo /a --count -1", "negative"},
        {"echo /a --type nav_msgs/msg/Nothing", "not a type"},
        {"topics --wait -1", "negative"},
        {"topics --rates 0", "not above 0"},
        {"drive k10 --v 1 --rate 0", "out of range"},
        {"record a.mcap --time -1", "negative"},
        {"doctor --wait -1", "negative"},
    };
    use_domain(quiet_domain());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        outcome a = run("%s", cases[i][0]);
        if (a.code != 2) print_error("understudy %s\n%s", cases[i][0], a.err);
        assert_int_equal(a.code, 2);
        assert_has(a.err, cases[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(record_writes_the_topics_that_are_named, use_own_domain),
        cmocka_unit_test_setup(record_takes_all_and_names_what_it_leaves_out, use_own_domain),
        cmocka_unit_test_setup(replay_says_every_recorded_message_again, use_own_domain),
        cmocka_unit_test_setup(replay_is_heard_by_echo, use_own_domain),
        cmocka_unit_test_setup(replay_refuses_what_is_no_recording, use_own_domain),
    };
    return cmocka_run_group_tests(tests, start_robot, kill_the_rest);
}

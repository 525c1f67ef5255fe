// What robots say, inside the program: channels, the tap, and what is told once.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "proxy/tap.h"
#include "proxy_world.h"

enum { MOST = 100 };

// What a tap has heard: of each channel how many, and the last.
typedef struct ear {
    us_proxy *proxy;
    int64_t n[MOST], time[MOST];
    uint8_t last[MOST][4096];
    size_t length[MOST];
} ear;

static void hear(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    ear *e = context;
    assert_in_range(channel, 0, usi_proxy_n_channel(e->proxy) - 1);
    e->n[channel]++;
    e->time[channel] = time;
    e->length[channel] = length;
    memcpy(e->last[channel], bytes, length < sizeof e->last[channel] ? length : sizeof e->last[channel]);
}

static int32_t find(const us_proxy *proxy, const char *topic, const us_message_type *type) {
    for (int32_t i = 0; i < usi_proxy_n_channel(proxy); i++) {
        usi_channel_info c = usi_proxy_get_channel(proxy, i);
        if (strcmp(c.topic, topic) == 0 && (!type || c.type == type)) return i;
    }
    fail_msg("no channel %s", topic);
    return -1;
}

// Two arms with fixed frames, which stand on the world.
static const char *const arms =
    "<scene name='two' version='1'><world step='1 ms'/><robot name='a' file='../models/arm6-gripper.urdf' "
    "base='fixed'/>"
    "<robot name='b' file='../models/arm6-gripper.urdf' base='fixed' xyz='3 0 0'/></scene>";

static ear *listen(us_proxy *proxy) {
    ear *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->proxy = proxy;
    usi_proxy_set_tap(proxy, hear, e);
    return e;
}

static void every_topic_is_a_channel_once(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "<network services='true'/>");
    int32_t n = usi_proxy_n_channel(w.proxy);
    assert_in_range(n, 15, MOST);
    for (int32_t i = 0; i < n; i++) {
        usi_channel_info a = usi_proxy_get_channel(w.proxy, i);
        assert_true(a.topic[0] == '/' && a.type != NULL && a.n_message == 0);
        for (int32_t k = 0; k < i; k++) {
            usi_channel_info b = usi_proxy_get_channel(w.proxy, k);
            assert_false(strcmp(a.topic, b.topic) == 0 && a.type == b.type);
        }
    }
    usi_channel_info odom = usi_proxy_get_channel(w.proxy, find(w.proxy, "/k10/odom", NULL));
    assert_true(odom.is_out && !odom.is_latched && !odom.is_request && odom.robot == 0 &&
                odom.type == usi_type_odometry);
    usi_channel_info urdf = usi_proxy_get_channel(w.proxy, find(w.proxy, "/k10/robot_description", NULL));
    assert_true(urdf.is_out && urdf.is_latched);
    usi_channel_info clock = usi_proxy_get_channel(w.proxy, find(w.proxy, "/clock", NULL));
    assert_true(clock.is_out && clock.robot == -1);
    usi_channel_info twist = usi_proxy_get_channel(w.proxy, find(w.proxy, "/k10/cmd_vel", usi_type_twist));
    assert_true(!twist.is_out && !twist.is_latched && twist.robot == 0);
    assert_true(find(w.proxy, "/k10/cmd_vel_stamped", usi_type_twist_stamped) >= 0);
    usi_channel_info ask = usi_proxy_get_channel(w.proxy, find(w.proxy, "/k10/locomotor", NULL));
    assert_true(!ask.is_out && ask.is_request);
    // Beyond the ends there is nothing.
    assert_null(usi_proxy_get_channel(w.proxy, n).topic);
    assert_null(usi_proxy_get_channel(w.proxy, -1).topic);
    // The topics that a robot listens to are these.
    const us_message_type *type = NULL;
    for (int32_t i = 0;; i++) {
        const char *topic = us_proxy_command_topic(w.proxy, 0, i, &type);
        if (!topic) break;
        assert_ptr_equal(topic, usi_proxy_get_channel(w.proxy, find(w.proxy, topic, type)).topic);
    }
    proxy_world_fini(&w);
}

static void a_topic_of_several_robots_is_one_channel(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_init(&w, arms);
    int32_t fixed = find(w.proxy, "/tf_static", NULL);
    assert_int_equal(usi_proxy_get_channel(w.proxy, fixed).robot, -1);
    assert_true(usi_proxy_get_channel(w.proxy, fixed).is_latched);
    assert_int_equal(usi_proxy_get_channel(w.proxy, find(w.proxy, "/b/joint_states", NULL)).robot, 1);
    ear *e = listen(w.proxy);
    proxy_world_step(&w, 3);
    // One sample of each robot.
    assert_int_equal(e->n[fixed], 2);
    assert_int_equal(usi_proxy_get_channel(w.proxy, fixed).n_message, 2);
    free(e);
    proxy_world_fini(&w);
}

static void a_tap_hears_every_sample_without_bus_and_recorder(void **state) {
    (void)state;
    proxy_world w;
    us_error err = {0};
    proxy_world_k10(&w, "");
    int32_t odom = find(w.proxy, "/k10/odom", NULL), clock = find(w.proxy, "/clock", NULL),
            twist = find(w.proxy, "/k10/cmd_vel", usi_type_twist);
    // Nobody listens: what is told once leaves, and nothing else is even made.
    proxy_world_step(&w, 100);
    assert_int_equal(usi_proxy_get_channel(w.proxy, odom).n_message, 0);
    ear *e = listen(w.proxy);
    proxy_world_drive(&w, 0.4, 0, 0);
    proxy_world_step(&w, 400);
    // 50 Hz for 0.4 s, and the clock at 200 Hz.
    assert_int_equal(e->n[odom], 20);
    assert_int_equal(e->n[clock], 80);
    assert_int_equal(e->time[odom], 500000000);
    assert_int_equal(usi_proxy_get_channel(w.proxy, odom).n_message, 20);
    assert_int_equal(usi_proxy_get_channel(w.proxy, twist).n_message, 1);
    uint64_t memory[256];
    const void *m = NULL;
    assert_int_equal(
        us_message_decode(usi_type_odometry, e->last[odom], e->length[odom], memory, sizeof memory, &m, &err),
        US_OK);
    const us_msg_odometry *o = m;
    assert_true(o->twist.twist.linear.x > 0.1);
    assert_string_equal(o->child_frame_id, "k10/base");
    // What is not wanted does not come; what is wanted again does.
    usi_proxy_want_channel(w.proxy, odom, false);
    proxy_world_step(&w, 100);
    assert_int_equal(e->n[odom], 20);
    assert_int_equal(e->n[clock], 100);
    usi_proxy_want_channel(w.proxy, odom, true);
    proxy_world_step(&w, 100);
    assert_int_equal(e->n[odom], 25);
    usi_proxy_want_channel(w.proxy, -1, true);
    usi_proxy_want_channel(w.proxy, 10000, true);
    usi_proxy_set_tap(w.proxy, NULL, NULL);
    proxy_world_step(&w, 100);
    assert_int_equal(e->n[odom], 25);
    free(e);
    proxy_world_fini(&w);
}

static void the_tap_changes_nothing_in_the_world(void **state) {
    (void)state;
    proxy_world w;
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        proxy_world_k10(
            &w, "<network><uplink delay='20 ms' loss='0.2'/><downlink delay='50 ms' loss='0.2'/></network>");
        ear *e = k ? listen(w.proxy) : NULL;
        for (int i = 0; i < 20; i++) {
            proxy_world_drive(&w, 0.3, 0, 0.1);
            proxy_world_step(&w, 20);
        }
        hash[k] = us_sim_hash(w.sim);
        free(e);
        proxy_world_fini(&w);
    }
    assert_true(hash[0] == hash[1]);
}

static void what_is_told_once_comes_again_when_asked_for(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_init(&w, arms);
    int32_t fixed = find(w.proxy, "/tf_static", NULL), urdf = find(w.proxy, "/b/robot_description", NULL);
    proxy_world_step(&w, 50);
    // It was told before anybody listened.
    assert_int_equal(usi_proxy_get_channel(w.proxy, urdf).n_message, 1);
    ear *e = listen(w.proxy);
    proxy_world_step(&w, 50);
    assert_int_equal(e->n[fixed] + e->n[urdf], 0);
    usi_proxy_resend_latched(w.proxy);
    proxy_world_step(&w, 50);
    assert_int_equal(e->n[fixed], 2);
    assert_int_equal(e->n[urdf], 1);
    assert_int_equal(e->time[urdf], 101000000);
    assert_true(e->length[urdf] > 1000);
    // While time stands still, and only for those who want it.
    usi_proxy_want_channel(w.proxy, urdf, false);
    usi_proxy_resend_latched(w.proxy);
    usi_proxy_tend(w.proxy, w.sim);
    usi_proxy_tend(w.proxy, w.sim);
    assert_int_equal(e->n[fixed], 4);
    assert_int_equal(e->n[urdf], 1);
    // The others are not told again.
    assert_int_equal(usi_proxy_get_channel(w.proxy, urdf).n_message, 1);
    free(e);
    proxy_world_fini(&w);
}

// A radio that loses all: what never arrived is not known here either.
static void what_was_lost_on_the_radio_does_not_come_again(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "<network><downlink outages='0 s 1 s'/></network>");
    int32_t urdf = find(w.proxy, "/k10/robot_description", NULL), odom = find(w.proxy, "/k10/odom", NULL);
    ear *e = listen(w.proxy);
    proxy_world_step(&w, 1500);
    usi_proxy_resend_latched(w.proxy);
    proxy_world_step(&w, 10);
    assert_int_equal(e->n[urdf], 0);
    // From 1 s on it speaks again.
    assert_in_range(e->n[odom], 24, 27);
    free(e);
    proxy_world_fini(&w);
}

static void nothing_is_allocated_by_a_tap(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    proxy_world w;
    proxy_world_k10(&w, "");
    us_sim_destroy(w.sim);
    us_proxy_destroy(w.proxy);
    us_proxy_def proxy_def = us_proxy_def_default();
    proxy_def.allocator = t.allocator;
    assert_int_equal(us_proxy_create(w.model, &proxy_def, &w.proxy, NULL), US_OK);
    us_plugin part = us_proxy_get_plugin(w.proxy);
    us_sim_def def = us_sim_def_default();
    def.allocator = t.allocator;
    def.n_plugin = 1;
    def.plugins = &part;
    assert_int_equal(us_sim_create(w.model, &def, &w.sim, NULL), US_OK);
    ear *e = listen(w.proxy);
    int64_t n = t.n_alloc;
    proxy_world_step(&w, 100);
    proxy_world_drive(&w, 0.3, 0, 0);
    usi_proxy_resend_latched(w.proxy);
    usi_world_recording_note(&w.recording, w.sim, "test", "pause");
    proxy_world_step(&w, 200);
    assert_int_equal(us_sim_reset(w.sim), US_OK);
    proxy_world_step(&w, 200);
    assert_int_equal(t.n_alloc, n);
    free(e);
    proxy_world_fini(&w);
    test_allocator_check(&t);
}

// ---------------------------------------------------------------- recordings

static us_recorder *record(proxy_world *w, const char *path) {
    us_error err = {0};
    us_recorder *recorder = NULL;
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    assert_int_equal(us_recorder_open(&def, &recorder, &err), US_OK);
    proxy_world_record(w, recorder);
    return recorder;
}

static void a_note_stands_in_the_recording_at_its_tick(void **state) {
    (void)state;
    proxy_world w;
    us_error err = {0};
    // No robot at all: the world has commands nevertheless.
    proxy_world_init(
        &w, "<scene name='empty' version='1'><world step='1 ms'/><object name='ball' xyz='0 0 1'>"
            "<link name='ball' density='1000'><shape type='sphere' size='0.1'/></link></object></scene>");
    usi_world_recording_note(&w.recording, w.sim, "page:1", "before");
    us_recorder *recorder = record(&w, "note.mcap");
    proxy_world_step(&w, 5);
    usi_world_recording_note(&w.recording, w.sim, "page:1", "pair rubber rock static-friction=0.3");
    usi_world_recording_note(&w.recording, w.sim, "cli", "");
    proxy_world_step(&w, 1);
    proxy_world_record(&w, NULL);
    assert_int_equal(us_recorder_close(recorder, &err), US_OK);
    us_recording *recording = NULL;
    us_recorded m;
    bool has = true;
    int n = 0, n_tick = 0;
    assert_int_equal(us_recording_open("note.mcap", NULL, &recording, &err), US_OK);
    while (!us_recording_next(recording, &m, &has, &err) && has) {
        const char *topic = us_recording_get_channel(recording, m.channel).topic;
        n_tick += strcmp(topic, "/understudy/ticks") == 0;
        if (strcmp(topic, "/understudy/commands") != 0) continue;
        uint64_t memory[256], inner[256];
        const void *record_ = NULL, *text = NULL;
        assert_int_equal(us_message_decode(usi_type_command_record, m.bytes, m.length, memory, sizeof memory,
                                           &record_, &err),
                         US_OK);
        const us_msg_command_record *c = record_;
        assert_int_equal(c->tick, 5);
        assert_int_equal(m.log_time, 5000000);
        // Behind the tick that it changes, before the next.
        assert_int_equal(n_tick, 5);
        assert_string_equal(c->topic, "/understudy/command std_msgs/msg/String");
        assert_string_equal(c->source, n == 0 ? "page:1" : "cli");
        assert_int_equal(us_message_decode(usi_type_string, c->data._buffer, c->data._length, inner,
                                           sizeof inner, &text, &err),
                         US_OK);
        assert_string_equal(((const us_msg_string *)text)->data,
                            n == 0 ? "pair rubber rock static-friction=0.3" : "");
        n++;
    }
    assert_int_equal(n, 2);
    assert_int_equal(n_tick, 6);
    us_recording_close(recording);
    proxy_world_fini(&w);
}

static void a_recording_that_begins_in_the_middle_has_what_was_told_before(void **state) {
    (void)state;
    proxy_world w;
    us_error err = {0};
    proxy_world_init(&w, arms);
    ear *e = listen(w.proxy);
    proxy_world_step(&w, 100);
    us_recorder *recorder = record(&w, "told.mcap");
    proxy_world_step(&w, 100);
    proxy_world_record(&w, NULL);
    assert_int_equal(us_recorder_close(recorder, &err), US_OK);
    us_recording *recording = NULL;
    us_recorded m;
    bool has = true;
    int n = 0;
    assert_int_equal(us_recording_open("told.mcap", NULL, &recording, &err), US_OK);
    while (!us_recording_next(recording, &m, &has, &err) && has) {
        const char *topic = us_recording_get_channel(recording, m.channel).topic;
        n += strcmp(topic, "/tf_static") == 0 || strcmp(topic, "/b/robot_description") == 0;
    }
    assert_int_equal(n, 2 + 1);
    us_recording_close(recording);
    // The others are not bothered.
    assert_int_equal(e->n[find(w.proxy, "/tf_static", NULL)], 2);
    free(e);
    proxy_world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_topic_is_a_channel_once),
        cmocka_unit_test(a_topic_of_several_robots_is_one_channel),
        cmocka_unit_test(a_tap_hears_every_sample_without_bus_and_recorder),
        cmocka_unit_test(the_tap_changes_nothing_in_the_world),
        cmocka_unit_test(what_is_told_once_comes_again_when_asked_for),
        cmocka_unit_test(what_was_lost_on_the_radio_does_not_come_again),
        cmocka_unit_test(nothing_is_allocated_by_a_tap),
        cmocka_unit_test(a_note_stands_in_the_recording_at_its_tick),
        cmocka_unit_test(a_recording_that_begins_in_the_middle_has_what_was_told_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

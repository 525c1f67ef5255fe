// The robots' firmware is part of the state: snapshots, poisoned scratch, recordings that run again bit for
// bit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy_world.h"

static const char *const radio = "<network services='true'><uplink delay='30 ms' jitter='40 ms' "
                                 "loss='0.1'/><downlink delay='50 ms' loss='0.2'/></network>";

// Commands of many kinds at fixed ticks.
static void command_at(proxy_world *w, int tick) {
    if (tick % 90 == 10) proxy_world_drive(w, 0.3, 0, tick % 180 == 10 ? 0.2 : -0.3);
    if (tick % 400 == 350) {
        us_msg_string m = {TEXT("MMOVFLSTT0.5,0.4,0.3")};
        proxy_world_post(w, "/k10/motors", usi_type_string, &m);
    }
    if (tick % 500 == 450) proxy_world_drive(w, 5, 0, 0);  // refused
    if (tick == 700) {
        us_msg_locomotor_command m = {
            .header.frame_id = TEXT(""), .sequence = 3, .mode = 2, .speed = 0.4, .distance = 0.2};
        proxy_world_post(w, "/k10/locomotor/command", usi_type_locomotor_command, &m);
    }
    // A trajectory, and another one when it is over: from then on its points stay as they are.
    if (tick % 350 == 120) {
        double at[2] = {0.1, tick < 200 ? 0.3 : -0.2}, speed = 0.1;
        char *names[] = {TEXT("front_left_steer")};
        us_msg_joint_trajectory_point p[2] = {{.time_from_start = {0, 40000000}},
                                              {.time_from_start = {0, 90000000}}};
        for (int i = 0; i < 2; i++) {
            p[i].positions._buffer = &at[i];
            p[i].positions._length = 1;
        }
        p[1].velocities._buffer = &speed;
        p[1].velocities._length = 1;
        us_msg_joint_trajectory m = {.header.frame_id = TEXT("")};
        m.joint_names._buffer = names;
        m.joint_names._length = 1;
        m.points._buffer = p;
        m.points._length = 2;
        proxy_world_post(w, "/k10/joint_trajectory", usi_type_joint_trajectory, &m);
    }
    if (tick % 300 == 95) {
        us_msg_locomotor_request m = {
            .guid = 9,
            .seq = tick,
            .command = {.header.frame_id = usi_text(""), .sequence = 4, .mode = 1, .speed = 0.2}};
        assert_int_equal(proxy_world_post(w, "/k10/locomotor", usi_type_locomotor_request, &m), US_OK);
    }
}

// The hash of all states on the way.
static uint64_t run(proxy_world *w, int from, int to, bool poisons) {
    uint64_t hash = 0;
    for (int i = from; i < to; i++) {
        command_at(w, i);
        proxy_world_step(w, 1);
        if (poisons) us_sim_poison(w->sim);
        hash = us_hash_bytes(hash, &(uint64_t){us_sim_hash(w->sim)}, sizeof hash);
    }
    return hash;
}

static void the_same_commands_give_the_same_bits_with_poisoned_scratch(void **state) {
    (void)state;
    proxy_world w;
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        proxy_world_k10(&w, radio);
        hash[k] = run(&w, 0, 1000, k == 1);
        assert_true(us_proxy_get_counts(w.proxy, w.sim).n_command > 5);
        assert_true(us_proxy_get_counts(w.proxy, w.sim).n_refused > 0);
        proxy_world_fini(&w);
    }
    assert_true(hash[0] == hash[1]);
}

static void a_snapshot_holds_the_firmware_and_what_is_on_the_radio(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, radio);
    // 12 ms after a command that is 30 to 70 ms under way.
    run(&w, 0, 112, false);
    size_t length = 0;
    us_sim_save(w.sim, NULL, 0, &length);
    void *snapshot = malloc(length);
    assert_int_equal(us_sim_save(w.sim, snapshot, length, &length), US_OK);
    run(&w, 112, 800, false);
    uint64_t hash = us_sim_hash(w.sim);
    assert_int_equal(us_sim_restore(w.sim, snapshot, length), US_OK);
    run(&w, 112, 800, false);
    assert_true(us_sim_hash(w.sim) == hash);
    proxy_world_fini(&w);
    // And in another world that has never seen the commands.
    proxy_world_k10(&w, radio);
    assert_int_equal(us_sim_restore(w.sim, snapshot, length), US_OK);
    run(&w, 112, 800, false);
    assert_true(us_sim_hash(w.sim) == hash);
    proxy_world_fini(&w);
    free(snapshot);
}

static void record_run(const char *path, int from, int to, const char *spoil) {
    proxy_world w;
    us_error err = {0};
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    proxy_world_k10(&w, radio);
    run(&w, 0, from, false);
    us_recorder *recorder = NULL;
    assert_int_equal(us_recorder_open(&def, &recorder, &err), US_OK);
    size_t length = 0;
    us_sim_save(w.sim, NULL, 0, &length);
    void *snapshot = malloc(length);
    assert_int_equal(us_sim_save(w.sim, snapshot, length, &length), US_OK);
    assert_int_equal(us_recorder_attach(recorder, "state", "application/octet-stream", snapshot, length),
                     US_OK);
    free(snapshot);
    proxy_world_record(&w, recorder);
    run(&w, from, to, false);
    if (spoil) {
        // A tick that the world does not have.
        us_msg_tick_hash m = {to + 5, 12345};
        size_t n = 0;
        assert_int_equal(us_message_encode(usi_type_tick_hash, &m, w.bytes, sizeof w.bytes, &n), US_OK);
        int32_t channel = us_recorder_add_channel(recorder, "/understudy/ticks", usi_type_tick_hash, &err);
        assert_int_equal(us_recorder_write(recorder, channel, 0, 0, w.bytes, n), US_OK);
    }
    proxy_world_record(&w, NULL);
    assert_int_equal(us_recorder_close(recorder, &err), US_OK);
    proxy_world_fini(&w);
}

static us_verify_result verify(const char *path, us_status expected) {
    proxy_world w;
    us_error err = {0};
    us_recording *recording = NULL;
    us_verify_result result = {0};
    proxy_world_k10(&w, radio);
    assert_int_equal(us_recording_open(path, NULL, &recording, &err), US_OK);
    us_status status = us_proxy_verify(w.model, recording, NULL, NULL, &result, &err);
    if (status != expected) print_message("%s\n", err.message);
    assert_int_equal(status, expected);
    us_recording_close(recording);
    proxy_world_fini(&w);
    return result;
}

static void a_recording_runs_again_bit_for_bit(void **state) {
    (void)state;
    record_run("whole.mcap", 0, 900, NULL);
    us_verify_result r = verify("whole.mcap", US_OK);
    assert_int_equal(r.n_tick, 900);
    assert_int_equal(r.bad_tick, -1);
    assert_true(r.n_command > 10);
    // From the middle, with messages on the radio.
    record_run("middle.mcap", 112, 600, NULL);
    r = verify("middle.mcap", US_OK);
    assert_int_equal(r.first_tick, 112);
    assert_int_equal(r.n_tick, 600 - 112);
}

static void the_first_tick_that_differs_is_named(void **state) {
    (void)state;
    record_run("spoilt.mcap", 0, 300, "yes");
    us_verify_result r = verify("spoilt.mcap", US_ERR_DIVERGED);
    assert_int_equal(r.bad_tick, 305);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_commands_give_the_same_bits_with_poisoned_scratch),
        cmocka_unit_test(a_snapshot_holds_the_firmware_and_what_is_on_the_radio),
        cmocka_unit_test(a_recording_runs_again_bit_for_bit),
        cmocka_unit_test(the_first_tick_that_differs_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

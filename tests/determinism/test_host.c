// A world on stage goes back and is run again: snapshots and recordings come out the same bit for bit,
// whatever was edited in between.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host_world.h"

// ---------------------------------------------------------------- going back

static void snapshots_bring_back_state_and_world_to_the_bit(void **state) {
    (void)state;
    us_world *host = host_open(host_robot_scene);
    us_sim *sim = us_world_get_sim(host);
    host_step(host, 30);
    host_done(host, "snapshot early");
    uint64_t early = us_sim_hash(sim);
    host_step(host, 10);
    host_done(host, "add box crate size=0.3,0.3,0.3 at=2,2,1");
    host_step(host, 20);
    host_done(host, "snapshot late");
    uint64_t late = us_sim_hash(sim);
    host_step(host, 50);
    uint64_t later = us_sim_hash(sim);
    host_done(host, "restore early");
    assert_true(us_sim_hash(sim) == early);
    assert_int_equal(us_sim_get_tick(sim), 30);
    assert_int_equal(us_world_get_revision(host), 1);
    assert_false(host_has_link(host, "crate/body"));
    host_step(host, 5);
    host_done(host, "remove post");
    assert_int_equal(us_world_get_revision(host), 3);
    host_done(host, "restore late");
    assert_int_equal(us_world_get_revision(host), 2);
    assert_true(us_sim_hash(sim) == late);
    host_step(host, 50);
    assert_true(us_sim_hash(sim) == later);
    host_reply r = host_say(host, "snapshot late");
    assert_non_null(strstr(r.text, "replaced"));
    host_refused(host, "restore erly", US_ERR_NAME, "did you mean \"early\"?");
    host_done(host, "forget early");
    host_refused(host, "restore early", US_ERR_NAME, "late");
    host_refused(host, "forget early", US_ERR_NAME, "no snapshot");
    host_done(host, "forget late");
    host_refused(host, "restore late", US_ERR_NAME, "there are none");
    us_world_destroy(host);
}

static void at_most_32_snapshots_are_kept(void **state) {
    (void)state;
    us_world *host = host_open(host_plain_scene);
    char text[32];
    for (int i = 0; i < 32; i++) {
        snprintf(text, sizeof text, "snapshot s%d", i);
        host_done(host, text);
    }
    host_refused(host, "snapshot one-more", US_ERR_LIMIT, "forget NAME");
    host_done(host, "forget s7");
    host_done(host, "snapshot one-more");
    us_world_destroy(host);
}

static void reset_undoes_all_edits(void **state) {
    (void)state;
    us_world *host = host_open(host_robot_scene), *other = host_open(host_robot_scene);
    host_done(host, "pair rubber soil friction=0.1");
    host_done(host, "move slab 5 5 0");
    host_done(host, "add sphere ball size=0.2 at=1,1,1");
    host_step(host, 40);
    host_done(host, "reset");
    assert_int_equal(us_sim_get_tick(us_world_get_sim(host)), 0);
    assert_int_equal(us_world_get_revision(host), 1);
    assert_true(us_sim_hash(us_world_get_sim(host)) == us_sim_hash(us_world_get_sim(other)));
    host_step(host, 30);
    host_step(other, 30);
    assert_true(us_sim_hash(us_world_get_sim(host)) == us_sim_hash(us_world_get_sim(other)));
    // A number that was given is not given to another world.
    host_done(host, "remove stone");
    assert_int_equal(us_world_get_revision(host), 4);
    us_world_destroy(host);
    us_world_destroy(other);
}

// ---------------------------------------------------------------- recordings

static void recordings_with_edits_pairs_and_jumps_verify_bit_for_bit(void **state) {
    (void)state;
    us_error err = {0};
    us_world *host = host_open(host_robot_scene);
    host_step(host, 20);
    // Edits before the recording are part of its start.
    host_done(host, "add box before size=0.3,0.3,0.3 at=1.2,0,0.2 surface=rock");
    host_done(host, "lower slab 0.01");
    host_step(host, 20);
    host_ok(us_world_record(host, "run.mcap", &err), &err);
    assert_string_equal(us_world_get_recording(host).path, "run.mcap");
    host_drive(host, 0.5);
    host_step(host, 100);
    host_done(host, "pair rubber soil friction=0.4");
    host_drive(host, 0.5);
    host_step(host, 50);
    host_done(host, "add sphere ball size=0.1 at=0.6,0.1,0.6 mass=3 velocity=0,0,-1");
    host_drive(host, 0.3);
    host_done(host, "move ball 0.7 0.1 0.8");
    host_done(host, "joint post/hinge 0.4 1");
    host_done(host, "pause");
    host_done(host, "step 10");
    host_done(host, "raise stone 0.3");
    host_step(host, 100);
    host_done(host, "resume");
    host_done(host, "snapshot here");
    host_refused(host, "remove k10", US_ERR_ARG, "robots stay");
    host_done(host, "remove before");
    host_done(host, "move post -4 0 0.5");
    host_drive(host, 0.6);
    host_step(host, 100);
    int64_t last = us_sim_get_tick(us_world_get_sim(host));
    host_done(host, "restore here");
    assert_string_equal(us_world_get_recording(host).path, "run-2.mcap");
    host_drive(host, -0.2);
    host_step(host, 60);
    host_done(host, "remove ball");
    host_step(host, 60);
    host_done(host, "reset");
    assert_string_equal(us_world_get_recording(host).path, "run-3.mcap");
    host_step(host, 30);
    host_ok(us_world_record(host, NULL, &err), &err);
    assert_null(us_world_get_recording(host).path);
    us_world_destroy(host);
    us_verify_result first = host_verify(host_robot_scene, "run.mcap"),
                     second = host_verify(host_robot_scene, "run-2.mcap"),
                     third = host_verify(host_robot_scene, "run-3.mcap");
    assert_int_equal(first.first_tick, 40);
    assert_int_equal(first.n_tick, last - 40);
    assert_int_equal(second.n_tick, 120);
    assert_int_equal(third.first_tick, 0);
    assert_int_equal(third.n_tick, 30);
}

static void a_recording_of_another_scene_or_without_the_edits_is_refused(void **state) {
    (void)state;
    us_error err = {0};
    us_world *host = host_open(host_plain_scene);
    host_done(host, "add box crate size=0.3,0.3,0.3 at=1.2,0,0.2");
    host_ok(us_world_record(host, "edited.mcap", &err), &err);
    host_step(host, 10);
    us_world_destroy(host);
    assert_int_equal(host_verify(host_plain_scene, "edited.mcap").n_tick, 10);
    us_recording *recording = NULL;
    us_verify_result result;
    host_ok(us_recording_open("edited.mcap", NULL, &recording, &err), &err);
    us_spec *other = host_load(host_robot_scene);
    assert_int_equal(us_world_verify(other, recording, NULL, NULL, &result, &err), US_ERR_SNAPSHOT);
    us_spec_destroy(other);
    us_recording_close(recording);
}

static void commands_record_in_the_run_s_own_directory_and_overwrite_nothing(void **state) {
    (void)state;
    us_world *host = host_open(host_plain_scene);
    unlink("mine.mcap");
    unlink("mine-2.mcap");
    unlink("mine-3.mcap");
    unlink("other.mcap");
    host_refused(host, "record off", US_ERR_ARG, "nothing is recorded");
    host_refused(host, "authority k10 proxy", US_ERR_ARG, "on no network");
    FILE *taken = fopen("mine-2.mcap", "w");
    assert_non_null(taken);
    fclose(taken);
    host_done(host, "record mine.mcap");
    host_step(host, 5);
    host_refused(host, "record mine.mcap", US_ERR_NAME, "being written");
    host_refused(host, "record mine-2.mcap", US_ERR_NAME, "there already");
    // The recording that was under way goes on.
    assert_string_equal(us_world_get_recording(host).path, "mine.mcap");
    host_done(host, "reset");
    assert_string_equal(us_world_get_recording(host).path, "mine-3.mcap");
    host_step(host, 5);
    host_done(host, "record other.mcap");
    host_step(host, 5);
    host_done(host, "record off");
    assert_null(us_world_get_recording(host).path);
    us_world_destroy(host);
    assert_int_equal(host_verify(host_plain_scene, "mine.mcap").n_tick, 5);
    assert_int_equal(host_verify(host_plain_scene, "mine-3.mcap").n_tick, 5);
    assert_int_equal(host_verify(host_plain_scene, "other.mcap").n_tick, 5);
}

// Threads share the work of a step, and edits go on with as many: nothing of it shows.
static void the_number_of_threads_does_not_show_in_a_recording(void **state) {
    (void)state;
    us_error err = {0};
    us_spec *spec = host_load(host_robot_scene);
    us_world *host = NULL;
    us_world_def def = us_world_def_default();
    def.n_thread = 2;
    def.proxy.enable_motor_servers = false;
    host_ok(us_world_create(spec, &def, &host, &err), &err);
    us_spec_destroy(spec);
    host_ok(us_world_record(host, "threads.mcap", &err), &err);
    host_drive(host, 0.4);
    host_step(host, 50);
    host_done(host, "add box crate size=0.4,0.4,0.4 at=0.3,0,1.5 mass=4");
    host_step(host, 100);
    us_world_destroy(host);
    assert_int_equal(host_verify(host_robot_scene, "threads.mcap").n_tick, 150);
}

// The same commands at other ticks make another world: the comparison would see it.
static void a_command_at_another_tick_shows_in_the_hash(void **state) {
    (void)state;
    us_world *a = host_open(host_robot_scene), *b = host_open(host_robot_scene);
    host_step(a, 20);
    host_step(b, 21);
    host_done(a, "add box crate size=0.4,0.4,0.4 at=0.3,0,1.5 mass=4");
    host_done(b, "add box crate size=0.4,0.4,0.4 at=0.3,0,1.5 mass=4");
    host_step(a, 20);
    host_step(b, 19);
    assert_int_equal(us_sim_get_tick(us_world_get_sim(a)), us_sim_get_tick(us_world_get_sim(b)));
    assert_true(us_sim_hash(us_world_get_sim(a)) != us_sim_hash(us_world_get_sim(b)));
    us_world_destroy(a);
    us_world_destroy(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_bring_back_state_and_world_to_the_bit),
        cmocka_unit_test(at_most_32_snapshots_are_kept),
        cmocka_unit_test(reset_undoes_all_edits),
        cmocka_unit_test(recordings_with_edits_pairs_and_jumps_verify_bit_for_bit),
        cmocka_unit_test(a_recording_of_another_scene_or_without_the_edits_is_refused),
        cmocka_unit_test(commands_record_in_the_run_s_own_directory_and_overwrite_nothing),
        cmocka_unit_test(the_number_of_threads_does_not_show_in_a_recording),
        cmocka_unit_test(a_command_at_another_tick_shows_in_the_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

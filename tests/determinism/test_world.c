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

#include "live_world.h"

// ---------------------------------------------------------------- going back

static void snapshots_bring_back_state_and_world_to_the_bit(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene);
    us_sim *sim = us_world_get_sim(world);
    live_step(world, 30);
    live_done(world, "snapshot early");
    uint64_t early = us_sim_hash(sim);
    live_step(world, 10);
    live_done(world, "add box crate size=0.3,0.3,0.3 at=2,2,1");
    live_step(world, 20);
    live_done(world, "snapshot late");
    uint64_t late = us_sim_hash(sim);
    live_step(world, 50);
    uint64_t later = us_sim_hash(sim);
    live_done(world, "restore early");
    assert_true(us_sim_hash(sim) == early);
    assert_int_equal(us_sim_get_tick(sim), 30);
    assert_int_equal(us_world_get_revision(world), 1);
    assert_false(live_has_link(world, "crate/body"));
    live_step(world, 5);
    live_done(world, "remove post");
    assert_int_equal(us_world_get_revision(world), 3);
    live_done(world, "restore late");
    assert_int_equal(us_world_get_revision(world), 2);
    assert_true(us_sim_hash(sim) == late);
    live_step(world, 50);
    assert_true(us_sim_hash(sim) == later);
    live_reply r = live_say(world, "snapshot late");
    assert_non_null(strstr(r.text, "replaced"));
    live_refused(world, "restore erly", US_ERR_NAME, "did you mean \"early\"?");
    live_done(world, "forget early");
    live_refused(world, "restore early", US_ERR_NAME, "late");
    live_refused(world, "forget early", US_ERR_NAME, "no snapshot");
    live_done(world, "forget late");
    live_refused(world, "restore late", US_ERR_NAME, "there are none");
    us_world_destroy(world);
}

static void at_most_32_snapshots_are_kept(void **state) {
    (void)state;
    us_world *world = live_open(live_plain_scene);
    char text[32];
    for (int i = 0; i < 32; i++) {
        snprintf(text, sizeof text, "snapshot s%d", i);
        live_done(world, text);
    }
    live_refused(world, "snapshot one-more", US_ERR_LIMIT, "forget NAME");
    live_done(world, "forget s7");
    live_done(world, "snapshot one-more");
    us_world_destroy(world);
}

static void reset_undoes_all_edits(void **state) {
    (void)state;
    us_world *world = live_open(live_robot_scene), *other = live_open(live_robot_scene);
    live_done(world, "pair rubber soil friction=0.1");
    live_done(world, "move slab 5 5 0");
    live_done(world, "add sphere ball size=0.2 at=1,1,1");
    live_step(world, 40);
    live_done(world, "reset");
    assert_int_equal(us_sim_get_tick(us_world_get_sim(world)), 0);
    assert_int_equal(us_world_get_revision(world), 1);
    assert_true(us_sim_hash(us_world_get_sim(world)) == us_sim_hash(us_world_get_sim(other)));
    live_step(world, 30);
    live_step(other, 30);
    assert_true(us_sim_hash(us_world_get_sim(world)) == us_sim_hash(us_world_get_sim(other)));
    // A number that was given is not given to another world.
    live_done(world, "remove stone");
    assert_int_equal(us_world_get_revision(world), 4);
    us_world_destroy(world);
    us_world_destroy(other);
}

// ---------------------------------------------------------------- recordings

static void recordings_with_edits_pairs_and_jumps_verify_bit_for_bit(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(live_robot_scene);
    live_step(world, 20);
    // Edits before the recording are part of its start.
    live_done(world, "add box before size=0.3,0.3,0.3 at=1.2,0,0.2 surface=rock");
    live_done(world, "lower slab 0.01");
    live_step(world, 20);
    live_ok(us_world_record(world, "run.mcap", &err), &err);
    assert_string_equal(us_world_get_recording(world).path, "run.mcap");
    live_drive(world, 0.5);
    live_step(world, 100);
    live_done(world, "pair rubber soil friction=0.4");
    live_drive(world, 0.5);
    live_step(world, 50);
    live_done(world, "add sphere ball size=0.1 at=0.6,0.1,0.6 mass=3 velocity=0,0,-1");
    live_drive(world, 0.3);
    live_done(world, "move ball 0.7 0.1 0.8");
    live_done(world, "joint post/hinge 0.4 1");
    live_done(world, "pause");
    live_done(world, "step 10");
    live_done(world, "raise stone 0.3");
    live_step(world, 100);
    live_done(world, "resume");
    live_done(world, "snapshot here");
    live_refused(world, "remove k10", US_ERR_ARG, "robots stay");
    live_done(world, "remove before");
    live_done(world, "move post -4 0 0.5");
    live_drive(world, 0.6);
    live_step(world, 100);
    int64_t last = us_sim_get_tick(us_world_get_sim(world));
    live_done(world, "restore here");
    assert_string_equal(us_world_get_recording(world).path, "run-2.mcap");
    live_drive(world, -0.2);
    live_step(world, 60);
    live_done(world, "remove ball");
    live_step(world, 60);
    live_done(world, "reset");
    assert_string_equal(us_world_get_recording(world).path, "run-3.mcap");
    live_step(world, 30);
    live_ok(us_world_record(world, NULL, &err), &err);
    assert_null(us_world_get_recording(world).path);
    us_world_destroy(world);
    us_verify_result first = live_verify(live_robot_scene, "run.mcap"),
                     second = live_verify(live_robot_scene, "run-2.mcap"),
                     third = live_verify(live_robot_scene, "run-3.mcap");
    assert_int_equal(first.first_tick, 40);
    assert_int_equal(first.n_tick, last - 40);
    assert_int_equal(second.n_tick, 120);
    assert_int_equal(third.first_tick, 0);
    assert_int_equal(third.n_tick, 30);
}

static void a_recording_of_another_scene_or_without_the_edits_is_refused(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(live_plain_scene);
    live_done(world, "add box crate size=0.3,0.3,0.3 at=1.2,0,0.2");
    live_ok(us_world_record(world, "edited.mcap", &err), &err);
    live_step(world, 10);
    us_world_destroy(world);
    assert_int_equal(live_verify(live_plain_scene, "edited.mcap").n_tick, 10);
    us_recording *recording = NULL;
    us_verify_result result;
    live_ok(us_recording_open("edited.mcap", NULL, &recording, &err), &err);
    us_spec *other = live_load(live_robot_scene);
    assert_int_equal(us_world_verify(other, recording, NULL, NULL, &result, &err), US_ERR_SNAPSHOT);
    us_spec_destroy(other);
    us_recording_close(recording);
}

static void commands_record_in_the_run_s_own_directory_and_overwrite_nothing(void **state) {
    (void)state;
    us_world *world = live_open(live_plain_scene);
    unlink("mine.mcap");
    unlink("mine-2.mcap");
    unlink("mine-3.mcap");
    unlink("other.mcap");
    live_refused(world, "record off", US_ERR_ARG, "nothing is recorded");
    live_refused(world, "authority k10 proxy", US_ERR_ARG, "on no network");
    FILE *taken = fopen("mine-2.mcap", "w");
    assert_non_null(taken);
    fclose(taken);
    live_done(world, "record mine.mcap");
    live_step(world, 5);
    live_refused(world, "record mine.mcap", US_ERR_NAME, "being written");
    live_refused(world, "record mine-2.mcap", US_ERR_NAME, "there already");
    // The recording that was under way goes on.
    assert_string_equal(us_world_get_recording(world).path, "mine.mcap");
    live_done(world, "reset");
    assert_string_equal(us_world_get_recording(world).path, "mine-3.mcap");
    live_step(world, 5);
    live_done(world, "record other.mcap");
    live_step(world, 5);
    live_done(world, "record off");
    assert_null(us_world_get_recording(world).path);
    us_world_destroy(world);
    assert_int_equal(live_verify(live_plain_scene, "mine.mcap").n_tick, 5);
    assert_int_equal(live_verify(live_plain_scene, "mine-3.mcap").n_tick, 5);
    assert_int_equal(live_verify(live_plain_scene, "other.mcap").n_tick, 5);
}

// Threads share the work of a step, and edits go on with as many: nothing of it shows.
static void the_number_of_threads_does_not_show_in_a_recording(void **state) {
    (void)state;
    us_error err = {0};
    us_spec *spec = live_load(live_robot_scene);
    us_world *world = NULL;
    us_world_def def = us_world_def_default();
    def.n_thread = 2;
    def.proxy.enable_motor_servers = false;
    live_ok(us_world_create(spec, &def, &world, &err), &err);
    us_spec_destroy(spec);
    live_ok(us_world_record(world, "threads.mcap", &err), &err);
    live_drive(world, 0.4);
    live_step(world, 50);
    live_done(world, "add box crate size=0.4,0.4,0.4 at=0.3,0,1.5 mass=4");
    live_step(world, 100);
    us_world_destroy(world);
    assert_int_equal(live_verify(live_robot_scene, "threads.mcap").n_tick, 150);
}

// The same commands at other ticks make another world: the comparison would see it.
static void a_command_at_another_tick_shows_in_the_hash(void **state) {
    (void)state;
    us_world *a = live_open(live_robot_scene), *b = live_open(live_robot_scene);
    live_step(a, 20);
    live_step(b, 21);
    live_done(a, "add box crate size=0.4,0.4,0.4 at=0.3,0,1.5 mass=4");
    live_done(b, "add box crate size=0.4,0.4,0.4 at=0.3,0,1.5 mass=4");
    live_step(a, 20);
    live_step(b, 19);
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

// A tile of ground that is lost while the world runs: what stands there stops with an error that names the
// tile, all else goes on, and what is recorded of it runs again to the same bits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "live_world.h"
#include "sim/sim.h"
#include "site_make.h"
#include "soil/deformable.h"

// 768 m at 1 m: three tiles each way.
enum { N = 769 };
static const char SITE[] = "lost", TILE[] = "lost/height/0/2_2.tile", KEPT[] = "kept.tile";

static char scene[4000];
static live_log logged;

static int setup(void **state) {
    (void)state;
    char directory[2000];
    site_make(SITE, N, N, 1, 1, site_hills);
    assert_non_null(getcwd(directory, sizeof directory));
    snprintf(scene, sizeof scene,
             "<scene name='lost' version='1'><world step='1 ms'><shape name='ground' type='height-field' "
             "file='%s/%s' memory='30 MB' surface='sand' bed='10 cm'/></world>"
             "<material name='sand'><soil like='dry_sand'/></material>"
             "<object name='near' xyz='-300 -300 6'><link name='core' density='2600'><shape type='sphere' "
             "size='0.1'/></link></object>"
             "<object name='far' xyz='-296 -300 6'><link name='core' density='2600'><shape type='sphere' "
             "size='0.1'/></link><link name='arm' density='500'><shape type='box' size='0.4 0.05 0.05' "
             "xyz='0.3 0 0'/></link><joint name='hinge' type='revolute' parent='core' child='arm' "
             "axis='0 1 0'/></object></scene>",
             directory, SITE);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    site_clear(SITE);
    return 0;
}

static void cut_off(const char *from, const char *to) {
    static char bytes[1 << 20];
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n / 2, file), n / 2);
    assert_int_equal(fclose(file), 0);
}

static void expect_log(const char *part) {
    if (!strstr(logged.text, part)) fail_msg("\"%s\" is not in:\n%s", part, logged.text);
}

static void what_stands_on_a_lost_tile_stops_and_all_else_goes_on(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open_logged(scene, &logged);
    us_sim *sim = us_world_get_sim(world);
    live_step(world, 5);
    live_ok(us_world_record(world, "lost.mcap", &err), &err);
    assert_int_equal(rename(TILE, KEPT), 0);
    live_done(world, "move far 300 300 6");
    live_step(world, 400);
    // It hangs where it was put, without speed; the other has fallen meanwhile.
    assert_int_equal(usi_sim_n_held(sim), 1);
    live_near(live_pose(world, "far/core").p.z, 6, 1e-12);
    live_near(live_value(world, "far/hinge.v"), 0, 0);
    assert_true(live_pose(world, "near/core").p.z < 5.5);
    expect_log("2 tick 5: far/core stops, since its ground cannot be read: ");
    expect_log("height/0/2_2.tile: the tile is missing");
    expect_log("put the file back");

    // Half of the tile is as good as none. A snapshot has what is held, and goes on the same way.
    cut_off(KEPT, TILE);
    usi_sim_release_held(sim);
    assert_int_equal(usi_sim_n_held(sim), 1);
    live_step(world, 50);
    static char bytes[1 << 22];
    size_t length = 0;
    assert_int_equal(us_sim_save(sim, bytes, sizeof bytes, &length), US_OK);
    us_sim *other = NULL;
    live_ok(us_sim_create(us_world_view_model(world), NULL, &other, &err), &err);
    assert_int_equal(us_sim_restore(other, bytes, length), US_OK);
    for (int i = 0; i < 50; i++)
        assert_int_equal(us_sim_step(other, NULL), US_OK);
    live_step(world, 50);
    assert_int_equal(usi_sim_n_held(other), 1);
    us_sim_destroy(other);

    // Put back, it falls from where it hung.
    assert_int_equal(rename(KEPT, TILE), 0);
    usi_sim_release_held(sim);
    assert_int_equal(usi_sim_n_held(sim), 0);
    expect_log("far/core goes on: its ground is back");
    live_step(world, 400);
    assert_true(live_pose(world, "far/core").p.z < 5.5);
    us_world_destroy(world);
    us_verify_result result = live_verify(scene, "lost.mcap");
    assert_int_equal(result.n_tick, 900);
}

// At the start nobody is disturbed by an error, and a simulation of a program without a world has its own.
static void ground_that_is_lost_from_the_start_is_an_error(void **state) {
    (void)state;
    us_error err = {0};
    static const char first[] = "lost/height/0/0_0.tile";
    us_world *world = live_open_logged(scene, &logged);
    assert_int_equal(rename(first, KEPT), 0);
    us_world_poll(world);
    assert_int_equal(us_world_step(world, &err), US_ERR_IO);
    assert_non_null(strstr(err.file, first));
    assert_non_null(strstr(err.remedy, "put the file back"));
    assert_int_equal(usi_sim_n_held(us_world_get_sim(world)), 0);
    assert_int_equal(rename(KEPT, first), 0);
    live_step(world, 2);
    us_world_destroy(world);
}

// A state is believed only as far as it is sound.
static void holds_that_are_no_holds_are_refused(void **state) {
    (void)state;
    us_world *world = live_open_logged(scene, &logged);
    us_sim *sim = us_world_get_sim(world);
    const int32_t n = us_world_view_model(world)->n_hold;
    assert_int_equal(n, 3);
    const int32_t bad[][2] = {{-1, 1}, {n, 1}, {0, 2}, {0, -1}};
    for (int i = 0; i < 4; i++)
        assert_int_equal(usi_sim_set_hold(sim, bad[i][0], bad[i][1]), US_ERR_ARG);
    // The flow of soil is held as a whole.
    live_step(world, 1);
    assert_int_equal(usi_sim_set_hold(sim, n - 1, 1), US_OK);
    assert_int_equal(us_sim_step(sim, NULL), US_OK);
    assert_true(sim->patch[0].is_held);
    assert_int_equal(us_sim_reset(sim), US_OK);
    assert_true(!sim->patch[0].is_held && usi_sim_n_held(sim) == 0);
    us_world_destroy(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_on_a_lost_tile_stops_and_all_else_goes_on),
        cmocka_unit_test(ground_that_is_lost_from_the_start_is_an_error),
        cmocka_unit_test(holds_that_are_no_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

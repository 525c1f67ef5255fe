// Calls of a program into the sim of a world that records: each stands in the recording, which runs again to
// the same bits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "live_world.h"

// Sand with a region of rock, a stone, and an arm with a drive that no firmware commands.
static const char scene[] =
    "<scene name='calls' version='1'><world step='1 ms'>"
    "<shape name='ground' type='height-field' nx='81' ny='81' dx='0.1' dy='0.1' expression='0.02*sin(3*x)' "
    "surface='sand'/>"
    "<region name='patch' ground='ground' surface='rock' polygon='2 -1 3 -1 3 1 2 1'/></world>"
    "<material name='sand'><soil like='dry_sand'/></material><material name='rock'/><material "
    "name='rubber'/>"
    "<object name='stone' xyz='2.5 0 0.12'><link name='core' density='2600'><shape type='sphere' size='0.1' "
    "surface='rock'/></link></object>"
    "<object name='arm' base='fixed' xyz='-3 0 1'><link name='base' density='500'><shape type='box' "
    "size='0.1 "
    "0.1 0.1'/></link><link name='rod' density='500'><shape type='box' size='0.4 0.05 0.05' xyz='0.3 0 "
    "0'/></link><joint name='hinge' type='revolute' parent='base' child='rod' axis='0 1 0'/><drive "
    "joint='hinge' kp='200' kd='20'/></object></scene>";

typedef struct parts {
    us_sim *sim;
    us_body stone;
    us_joint hinge;
    us_drive motor;
    us_material sand, rock;
} parts;

static parts parts_of(us_world *world) {
    const us_model *m = us_world_view_model(world);
    parts p = {us_world_get_sim(world),
               us_model_find_body(m, "stone/core"),
               us_model_find_joint(m, "arm/hinge"),
               {0},
               us_model_find_material(m, "sand"),
               us_model_find_material(m, "rock")};
    assert_true(p.stone.i >= 0 && p.hinge.i >= 0 && p.sand.i >= 0 && p.rock.i >= 0);
    return p;
}

// ---------------------------------------------------------------- each call

static void set_drive(const parts *p) {
    assert_int_equal(us_sim_set_drive(p->sim, p->motor, 1.0 / 3, 0.1), US_OK);
}
static void set_torque(const parts *p) {
    assert_int_equal(us_sim_set_drive_torque(p->sim, p->motor, -4.4), US_OK);
}
static void apply_force(const parts *p) {
    us_vec3 at = us_vec3_add(us_sim_get_pose(p->sim, p->stone).p, us_vec3_make(0, 0, 0.03));
    assert_int_equal(us_sim_apply_force(p->sim, p->stone, us_vec3_make(500, 10.0 / 7, 100), at), US_OK);
}
static void apply_wrench(const parts *p) {
    const us_wrench wrench = {{0.1, 0.2, 0.3}, {100, -50, 20}};
    assert_int_equal(us_sim_apply_wrench(p->sim, p->stone, wrench), US_OK);
}
static void set_strength(const parts *p) {
    assert_int_equal(us_sim_set_drive_strength(p->sim, p->motor, 0.1), US_OK);
}
static void set_blockage(const parts *p) {
    assert_int_equal(us_sim_set_blockage(p->sim, p->hinge, 3.3), US_OK);
}
static void set_joint(const parts *p) {
    assert_int_equal(us_sim_set_joint(p->sim, p->hinge, &(double){0.7}, NULL), US_OK);
    assert_int_equal(us_sim_set_joint(p->sim, p->hinge, NULL, &(double){-0.2}), US_OK);
}
static void move(const parts *p) {
    us_pose X = us_sim_get_pose(p->sim, p->stone);
    X.p.z += 0.1 / 3;
    X.q = (us_quat){0.9, 0.1, -0.3, 0.2};
    assert_int_equal(us_sim_move(p->sim, p->stone, X), US_OK);
}
static void set_twist(const parts *p) {
    const us_twist V = {.w = {0.1, 1.0 / 3, 0}, .v = {0.2, 0, 0.7}};
    assert_int_equal(us_sim_set_twist(p->sim, p->stone, V), US_OK);
}
static void set_pair(const parts *p) {
    us_pair_values values;
    assert_int_equal(us_sim_get_pair(p->sim, p->rock, p->rock, &values), US_OK);
    values.static_friction = 0.31;
    values.kinetic_friction = 0.3;
    values.restitution = 0.25;
    assert_int_equal(us_sim_set_pair(p->sim, p->rock, p->rock, &values), US_OK);
}
static void set_pair_model(const parts *p) {
    assert_int_equal(us_sim_set_pair_model(p->sim, p->rock, p->sand, "compliant"), US_OK);
}
static void set_soil(const parts *p) {
    us_soil soil;
    assert_int_equal(us_sim_get_soil(p->sim, p->sand, &soil), US_OK);
    soil.cohesion *= 1.1;
    soil.lateral = soil.lateral == US_LATERAL_ISHIGAMI ? US_LATERAL_ISOTROPIC : US_LATERAL_ISHIGAMI;
    assert_int_equal(us_sim_set_soil(p->sim, p->sand, &soil, NULL), US_OK);
}
static void set_region(const parts *p) { assert_int_equal(us_sim_set_region(p->sim, 0, p->sand), US_OK); }

static void (*const calls[])(const parts *) = {
    set_drive, set_torque, apply_force, apply_wrench,   set_strength, set_blockage, set_joint,
    move,      set_twist,  set_pair,    set_pair_model, set_soil,     set_region};
enum { N = sizeof calls / sizeof calls[0] };

// Each alone changes the state, or this test would prove nothing about it; and each alone verifies.
static void each_call_is_in_the_recording(void **state) {
    (void)state;
    us_error err = {0};
    for (int i = 0; i < N; i++) {
        us_world *world = live_open(scene);
        parts p = parts_of(world);
        live_step(world, 20);
        live_ok(us_world_record(world, "call.mcap", &err), &err);
        live_step(world, 10);
        uint64_t before = us_sim_hash(p.sim);
        calls[i](&p);
        if (us_sim_hash(p.sim) == before) fail_msg("call %d changes nothing", i);
        live_step(world, 30);
        us_world_destroy(world);
        us_verify_result result = live_verify(scene, "call.mcap");
        assert_int_equal(result.n_tick, 40);
        assert_int_equal(result.n_command, calls[i] == set_joint ? 2 : 1);
    }
}

static void calls_and_commands_stand_in_their_order(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(scene);
    parts p = parts_of(world);
    live_ok(us_world_record(world, "order.mcap", &err), &err);
    // Before the first tick, between command and step, and in every tick.
    set_drive(&p);
    live_done(world, "drive arm/hinge -0.3");
    live_step(world, 5);
    live_done(world, "drive arm/hinge 0.6");
    set_drive(&p);
    for (int i = 0; i < 200; i++) {
        apply_force(&p);
        if (i % 50 == 10) calls[(i / 50) % N](&p);
        live_step(world, 1);
    }
    // An edit makes other indices; calls go on.
    live_done(world, "add box crate size=0.3,0.3,0.3 at=0,2,1");
    p = parts_of(world);
    for (int i = 0; i < N; i++) {
        calls[i](&p);
        live_step(world, 5);
    }
    us_world_destroy(world);
    assert_int_equal(live_verify(scene, "order.mcap").n_tick, 205 + 5 * N);
}

// ---------------------------------------------------------------- the whole state

static live_log logged;

// reset, restore, set_state and a step that is not the world's: a recording is one interval of time, the next
// begins with the state they leave, calls that come after them included.
static void a_call_that_sets_the_whole_state_begins_another_recording(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open_logged(scene, &logged);
    parts p = parts_of(world);
    static char kept[1 << 22];
    size_t length = 0;
    live_step(world, 20);
    live_ok(us_world_record(world, "whole.mcap", &err), &err);
    live_step(world, 10);
    assert_int_equal(us_sim_save(p.sim, kept, sizeof kept, &length), US_OK);
    live_step(world, 10);
    assert_int_equal(us_sim_reset(p.sim), US_OK);
    set_drive(&p);
    live_step(world, 11);
    assert_int_equal(us_sim_restore(p.sim, kept, length), US_OK);
    live_step(world, 12);
    apply_force(&p);
    assert_int_equal(us_sim_set_state(p.sim, us_sim_view_q(p.sim), NULL), US_OK);
    apply_force(&p);
    live_step(world, 13);
    assert_int_equal(us_sim_step(p.sim, &(us_command){.drive_torque = &(double){7}}), US_OK);
    live_step(world, 14);
    assert_int_equal(us_sim_step(p.sim, NULL), US_OK);
    us_world_destroy(world);
    static const struct {
        const char *path;
        int64_t first, n;
    } file[] = {{"whole.mcap", 20, 20},
                {"whole-2.mcap", 0, 11},
                {"whole-3.mcap", 30, 12},
                {"whole-4.mcap", 42, 13},
                {"whole-5.mcap", 56, 14}};
    for (int i = 0; i < 5; i++) {
        us_verify_result result = live_verify(scene, file[i].path);
        assert_int_equal(result.first_tick, file[i].first);
        assert_int_equal(result.n_tick, file[i].n);
    }
}

static void another_model_by_a_call_ends_the_recording_and_is_logged(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open_logged(scene, &logged);
    us_model *model = NULL;
    us_spec *spec = live_load(scene);
    live_ok(us_model_compile(spec, NULL, &model, &err), &err);
    live_ok(us_world_record(world, "model.mcap", &err), &err);
    live_step(world, 5);
    live_ok(us_sim_replace(us_world_get_sim(world), model, &err), &err);
    us_world_poll(world);
    assert_null(us_world_get_recording(world).path);
    assert_non_null(strstr(logged.text, "replaced by a call"));
    us_world_destroy(world);
    us_model_destroy(model);
    us_spec_destroy(spec);
    assert_int_equal(live_verify(scene, "model.mcap").n_tick, 5);
}

// ---------------------------------------------------------------- lines that do not fit

// Nobody can post such a line, and nothing is reported once the recording has ended.
static void calls_are_no_commands(void **state) {
    (void)state;
    us_error err = {0};
    us_world *world = live_open(scene);
    parts p = parts_of(world);
    live_refused(world, "call drive 0 0 1 0", US_ERR_NAME, "call");
    live_ok(us_world_record(world, "ended.mcap", &err), &err);
    live_step(world, 5);
    live_ok(us_world_record(world, NULL, &err), &err);
    set_drive(&p);
    assert_int_equal(us_sim_reset(p.sim), US_OK);
    live_step(world, 5);
    us_world_destroy(world);
    assert_int_equal(live_verify(scene, "ended.mcap").n_command, 0);
    assert_true(access("ended-2.mcap", F_OK) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_is_in_the_recording),
        cmocka_unit_test(calls_and_commands_stand_in_their_order),
        cmocka_unit_test(a_call_that_sets_the_whole_state_begins_another_recording),
        cmocka_unit_test(another_model_by_a_call_ends_the_recording_and_is_logged),
        cmocka_unit_test(calls_are_no_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

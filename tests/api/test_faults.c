// Faults of motors and joints, and batteries, as state: what they do, and that they are saved, hashed,
// carried over and run again with the rest.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "contact_scene.h"
#include "understudy/network.h"

static const us_vec3 Y = {0, 1, 0}, ZERO = {0, 0, 0};
static const us_drive MOTOR = {0};
static const us_joint JOINT = {0};
static const us_battery BATTERY = {0};

typedef struct rig {
    bool is_on_ground;
    double friction, blockage, capacity, idle;
    us_integrator integrator;
} rig;

// A robot of one wheel of 0.5 kg m^2 on a hinge about y, with a motor of 20 N m, and a pendulum without one.
// On the ground the wheel rests on a smooth ball about its axis, so that the contact solver moves it.
static us_spec *make_spec(const rig *r) {
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0);
    us_world_settings world = *us_spec_view_world(spec);
    world.integrator = r->integrator;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    if (r->is_on_ground) scene_ground(spec);
    us_group_def group = {.name = "robot"};
    int32_t at = -1;
    assert_int_equal(us_spec_add_group(spec, &group, &at), US_OK);
    us_link_def wheel = us_link_def_default();
    wheel.name = "wheel";
    wheel.group = at;
    wheel.inertia = (us_inertia){2, ZERO, {0.5, 0.5, 0.5, 0, 0, 0}};
    int32_t link = -1;
    assert_int_equal(us_spec_add_link(spec, &wheel, &link), US_OK);
    us_joint_def def = build_joint_at(US_JOINT_REVOLUTE, US_WORLD, link, us_vec3_make(0, 0, 0.0999), Y);
    def.friction = r->friction;
    def.blockage = r->blockage;
    def.group = at;
    int32_t joint = build_joint_def(spec, "axle", &def);
    scene_add_ball(spec, link, 0.1, ZERO);
    build_drive(spec, "motor", joint, 0, 10, 0, 20);
    int32_t rod = build_link(spec, "rod", 1, us_vec3_make(0, 0, -1), us_vec3_make(0.1, 0.1, 0.1));
    build_joint(spec, "pivot", US_JOINT_REVOLUTE, US_WORLD, rod, us_vec3_make(5, 0, 3), Y, 0.5, 0);
    if (r->capacity > 0) {
        us_network_def n = us_network_def_default();
        n.group = at;
        n.battery_capacity = r->capacity;
        n.battery_idle = r->idle;
        assert_int_equal(us_spec_set_network(spec, &n), US_OK);
    }
    return spec;
}

static built make(const rig *r) { return build_sim(make_spec(r)); }

static void turn(built *b, int64_t n, double speed) {
    build_step(b, n, &(us_command){.drive_velocity = &speed});
}

static double speed_of(const built *b) { return us_sim_view_v(b->sim)[0]; }
static double torque_of(const built *b) { return us_sim_view_torque(b->sim)[0]; }

// ---------------------------------------------------------------- what they do

static void a_weak_motor_gives_a_fraction_of_its_limit_and_a_dead_one_nothing(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        built b = make(&(rig){.is_on_ground = k % 2 == 1,
                              .integrator = k < 2 ? US_INTEGRATOR_EULER : US_INTEGRATOR_RK4});
        assert_int_equal(us_sim_set_drive_strength(b.sim, MOTOR, 0.25), US_OK);
        turn(&b, 10, 100);
        build_near("weak", torque_of(&b), 5, 1e-12);
        // Beside the commands' own fraction.
        const double half = 0.5, all = 1;
        build_step(&b, 1, &(us_command){.drive_limit_scale = &half});
        build_near("both", torque_of(&b), 2.5, 1e-12);
        assert_int_equal(us_sim_set_drive_strength(b.sim, MOTOR, 0), US_OK);
        double before = speed_of(&b);
        build_step(&b, 100, &(us_command){.drive_limit_scale = &all});
        assert_true(torque_of(&b) == 0);
        build_near("speed", speed_of(&b), before, 1e-6);
        assert_int_equal(us_sim_set_drive_strength(b.sim, MOTOR, 1), US_OK);
        build_step(&b, 1, NULL);
        build_near("mended", torque_of(&b), 20, 1e-12);
        assert_true(us_sim_get_drive_strength(b.sim, MOTOR) == 1);
        build_free(&b);
    }
}

static void a_blocked_joint_sticks_where_it_is_and_goes_on_when_mended(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        built b = make(&(rig){
            .is_on_ground = k % 2 == 1, .friction = k < 2 ? 0 : 1, .integrator = US_INTEGRATOR_MIDPOINT});
        turn(&b, 300, 2);
        assert_int_equal(us_sim_set_blockage(b.sim, JOINT, 1000), US_OK);
        double at = us_sim_view_q(b.sim)[0];
        build_step(&b, 1000, NULL);
        // 20 N m of 1000 stretch friction by a fiftieth of 0.1 microrad; it stopped 2 rad/s within a step of
        // 1 ms.
        build_near("angle", us_sim_view_q(b.sim)[0], at, 2.1e-3);
        build_near("speed", speed_of(&b), 0, 1e-9);
        build_near("torque", torque_of(&b), 20, 1e-6);
        assert_true(us_sim_get_blockage(b.sim, JOINT) == 1000);
        assert_int_equal(us_sim_set_blockage(b.sim, JOINT, 0), US_OK);
        build_step(&b, 2000, NULL);
        assert_true(speed_of(&b) > 1.8);
        build_free(&b);
    }
}

static void a_joint_that_is_partly_blocked_turns_slower(void **state) {
    (void)state;
    // 10 N m s (2 - v) against 15 N m: 0.5 rad/s.
    for (int k = 0; k < 3; k++) {
        built b = make(&(rig){.is_on_ground = k == 1,
                              .integrator = k == 2 ? US_INTEGRATOR_ADAPTIVE : US_INTEGRATOR_EULER});
        turn(&b, 10, 2);
        assert_int_equal(us_sim_set_blockage(b.sim, JOINT, 15), US_OK);
        build_step(&b, 2000, NULL);
        build_near("speed", speed_of(&b), 0.5, 1e-4);
        build_free(&b);
    }
}

static void the_specs_blockage_is_the_start_value(void **state) {
    (void)state;
    built b = make(&(rig){.blockage = 15, .integrator = US_INTEGRATOR_EULER});
    assert_true(us_sim_get_blockage(b.sim, JOINT) == 15);
    turn(&b, 2000, 2);
    build_near("speed", speed_of(&b), 0.5, 1e-4);
    assert_int_equal(us_sim_set_blockage(b.sim, JOINT, 0), US_OK);
    build_step(&b, 2000, NULL);
    build_near("speed", speed_of(&b), 2, 1e-4);
    assert_int_equal(us_sim_reset(b.sim), US_OK);
    assert_true(us_sim_get_blockage(b.sim, JOINT) == 15);
    build_free(&b);
}

static void a_battery_gives_what_motors_give_and_no_more_when_empty(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        // 15 N m of friction at 2 rad/s: 30 W, beside 10 W idle.
        built b = make(&(rig){.is_on_ground = k == 1,
                              .friction = 15,
                              .capacity = 100,
                              .idle = 10,
                              .integrator = US_INTEGRATOR_EULER});
        assert_int_equal(us_model_find_battery(b.model, "robot").i, 0);
        assert_int_equal(us_model_get_drive_battery(b.model, MOTOR).i, 0);
        assert_string_equal(us_model_battery_name(b.model, BATTERY), "robot");
        assert_true(us_model_get_battery(b.model, BATTERY).capacity == 100);
        turn(&b, 1000, 3.5);
        build_near("speed", speed_of(&b), 2, 1e-3);
        us_battery_state now = us_sim_get_battery(b.sim, BATTERY);
        build_near("power", now.power, 40, 0.05);
        turn(&b, 1000, 3.5);
        build_near("used", now.energy - us_sim_get_battery(b.sim, BATTERY).energy, 40, 0.05);
        // A motor that brakes gives nothing back.
        assert_int_equal(us_sim_set_joint(b.sim, JOINT, NULL, &(double){20}), US_OK);
        double before = us_sim_get_battery(b.sim, BATTERY).energy;
        turn(&b, 10, 0);
        assert_true(torque_of(&b) < 0 && speed_of(&b) > 0);
        build_near("braking", before - us_sim_get_battery(b.sim, BATTERY).energy, 10 * 0.01, 1e-9);
        assert_int_equal(us_sim_set_battery(b.sim, BATTERY, 0.02), US_OK);
        turn(&b, 1000, 3.5);
        now = us_sim_get_battery(b.sim, BATTERY);
        assert_true(now.energy == 0 && now.power == 0);
        assert_true(torque_of(&b) == 0);
        // Friction has stopped it; the contact solve leaves 1e-6 of the weight's impulse.
        build_near("speed", speed_of(&b), 0, 1e-6);
        assert_int_equal(us_sim_set_battery(b.sim, BATTERY, 100), US_OK);
        turn(&b, 100, 3.5);
        assert_true(torque_of(&b) > 0);
        build_free(&b);
    }
}

// ---------------------------------------------------------------- state

static void set_all(us_sim *sim) {
    assert_int_equal(us_sim_set_drive_strength(sim, MOTOR, 0.75), US_OK);
    assert_int_equal(us_sim_set_blockage(sim, JOINT, 3), US_OK);
    assert_int_equal(us_sim_set_battery(sim, BATTERY, 50), US_OK);
}

static const rig FULL = {
    .is_on_ground = true, .capacity = 100, .idle = 1, .integrator = US_INTEGRATOR_MIDPOINT};

static void each_is_hashed_saved_and_restored(void **state) {
    (void)state;
    built b = make(&FULL);
    turn(&b, 100, 2);
    uint64_t hash[4];
    hash[0] = us_sim_hash(b.sim);
    assert_int_equal(us_sim_set_drive_strength(b.sim, MOTOR, 0.75), US_OK);
    hash[1] = us_sim_hash(b.sim);
    assert_int_equal(us_sim_set_blockage(b.sim, JOINT, 3), US_OK);
    hash[2] = us_sim_hash(b.sim);
    assert_int_equal(us_sim_set_battery(b.sim, BATTERY, 50), US_OK);
    hash[3] = us_sim_hash(b.sim);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++)
            assert_true(hash[i] != hash[j]);
    }
    size_t length = 0;
    assert_int_equal(us_sim_save(b.sim, NULL, 0, &length), US_OK);
    void *kept = malloc(length);
    assert_int_equal(us_sim_save(b.sim, kept, length, &length), US_OK);
    build_step(&b, 500, NULL);
    uint64_t later = us_sim_hash(b.sim);
    assert_int_equal(us_sim_reset(b.sim), US_OK);
    assert_true(us_sim_get_drive_strength(b.sim, MOTOR) == 1 && us_sim_get_blockage(b.sim, JOINT) == 0);
    assert_true(us_sim_get_battery(b.sim, BATTERY).energy == 100);
    // Garbage in the scratch changes nothing.
    assert_int_equal(us_sim_restore(b.sim, kept, length), US_OK);
    assert_true(us_sim_hash(b.sim) == hash[3]);
    for (int i = 0; i < 500; i++) {
        us_sim_poison(b.sim);
        build_step(&b, 1, NULL);
    }
    assert_true(us_sim_hash(b.sim) == later);
    free(kept);
    build_free(&b);
}

static void they_go_on_by_name_in_another_model(void **state) {
    (void)state;
    built b = make(&FULL);
    turn(&b, 100, 2);
    set_all(b.sim);
    // Something new, before the robot's own things in no list.
    us_spec *spec = make_spec(&FULL);
    scene_start place = scene_at(3, 0, 1);
    scene_box(spec, "box", 1, us_vec3_make(0.1, 0.1, 0.1), &place);
    us_model *model = NULL;
    us_error err = {0};
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
    us_spec_destroy(spec);
    assert_int_equal(us_sim_replace(b.sim, model, &err), US_OK);
    assert_true(us_sim_get_drive_strength(b.sim, us_model_find_drive(model, "motor")) == 0.75);
    assert_true(us_sim_get_blockage(b.sim, us_model_find_joint(model, "axle")) == 3);
    assert_true(us_sim_get_battery(b.sim, us_model_find_battery(model, "robot")).energy == 50);
    build_step(&b, 100, NULL);
    // A model that starts otherwise is meant so.
    rig other = FULL;
    other.blockage = 7;
    other.capacity = 80;
    spec = make_spec(&other);
    us_model *second = NULL;
    assert_int_equal(us_model_compile(spec, NULL, &second, &err), US_OK);
    us_spec_destroy(spec);
    assert_int_equal(us_sim_replace(b.sim, second, &err), US_OK);
    us_model_destroy(model);
    assert_true(us_sim_get_drive_strength(b.sim, MOTOR) == 0.75);
    assert_true(us_sim_get_blockage(b.sim, JOINT) == 7);
    assert_true(us_sim_get_battery(b.sim, BATTERY).energy == 80);
    build_step(&b, 100, NULL);
    us_sim_destroy(b.sim);
    us_model_destroy(second);
    b.sim = NULL;
    build_free(&b);
}

// ---------------------------------------------------------------- errors

static void bad_arguments_are_refused_and_nothing_changes(void **state) {
    (void)state;
    built b = make(&FULL);
    uint64_t hash = us_sim_hash(b.sim);
    const double bad[] = {-0.1, NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(us_sim_set_drive_strength(b.sim, MOTOR, bad[i]), US_ERR_VALUE);
        assert_int_equal(us_sim_set_blockage(b.sim, JOINT, bad[i]), US_ERR_VALUE);
        assert_int_equal(us_sim_set_battery(b.sim, BATTERY, bad[i]), US_ERR_VALUE);
    }
    assert_int_equal(us_sim_set_drive_strength(b.sim, MOTOR, 1.1), US_ERR_VALUE);
    assert_int_equal(us_sim_set_battery(b.sim, BATTERY, 101), US_ERR_VALUE);
    for (int i = -1; i < 3; i += 3) {
        assert_int_equal(us_sim_set_drive_strength(b.sim, (us_drive){i}, 1), US_ERR_ARG);
        assert_int_equal(us_sim_set_blockage(b.sim, (us_joint){i}, 1), US_ERR_ARG);
        assert_int_equal(us_sim_set_battery(b.sim, (us_battery){i}, 1), US_ERR_ARG);
        assert_true(isnan(us_sim_get_drive_strength(b.sim, (us_drive){i})));
        assert_true(isnan(us_sim_get_blockage(b.sim, (us_joint){i})));
        assert_true(isnan(us_sim_get_battery(b.sim, (us_battery){i}).energy));
        assert_true(isnan(us_model_get_battery(b.model, (us_battery){i}).capacity));
        assert_null(us_model_battery_name(b.model, (us_battery){i}));
        assert_int_equal(us_model_get_drive_battery(b.model, (us_drive){i}).i, -1);
    }
    // The pendulum has no motor.
    us_joint pivot = us_model_find_joint(b.model, "pivot");
    assert_int_equal(us_sim_set_blockage(b.sim, pivot, 1), US_ERR_ARG);
    assert_true(us_sim_get_blockage(b.sim, pivot) == 0);
    assert_int_equal(us_model_find_battery(b.model, "nobody").i, -1);
    assert_int_equal(us_sim_set_drive_strength(NULL, MOTOR, 1), US_ERR_ARG);
    assert_int_equal(us_sim_set_blockage(NULL, JOINT, 1), US_ERR_ARG);
    assert_int_equal(us_sim_set_battery(NULL, BATTERY, 1), US_ERR_ARG);
    assert_true(us_sim_hash(b.sim) == hash);
    build_free(&b);
}

static void faults_and_batteries_allocate_nothing(void **state) {
    (void)state;
    us_error err = {0};
    us_spec *spec = make_spec(&FULL);
    us_model *model = NULL;
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
    us_spec_destroy(spec);
    test_allocator counter;
    test_allocator_init(&counter);
    us_sim_def def = us_sim_def_default();
    def.allocator = counter.allocator;
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(model, &def, &sim, &err), US_OK);
    int64_t before = counter.n_alloc;
    for (int i = 0; i < 100; i++) {
        set_all(sim);
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    }
    assert_int_equal(counter.n_alloc, before);
    us_sim_destroy(sim);
    test_allocator_check(&counter);
    us_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weak_motor_gives_a_fraction_of_its_limit_and_a_dead_one_nothing),
        cmocka_unit_test(a_blocked_joint_sticks_where_it_is_and_goes_on_when_mended),
        cmocka_unit_test(a_joint_that_is_partly_blocked_turns_slower),
        cmocka_unit_test(the_specs_blockage_is_the_start_value),
        cmocka_unit_test(a_battery_gives_what_motors_give_and_no_more_when_empty),
        cmocka_unit_test(each_is_hashed_saved_and_restored),
        cmocka_unit_test(they_go_on_by_name_in_another_model),
        cmocka_unit_test(bad_arguments_are_refused_and_nothing_changes),
        cmocka_unit_test(faults_and_batteries_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

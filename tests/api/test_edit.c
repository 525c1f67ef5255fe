// Worlds that are changed while they run: what is not touched by the edit goes on to the last bit, what is
// changed is as the edit says.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "contact_crowd.h"

// A running world with the spec that it was compiled from.
typedef struct world {
    us_spec *spec;
    us_model *model;
    us_sim *sim;
} world;

static us_model *compile(us_spec *spec) {
    us_model *model = NULL;
    us_error err = {.code = US_OK};
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s: %s", err.element, err.message);
    return model;
}

static world start(us_spec *spec, const us_sim_def *def) {
    world w = {.spec = spec, .model = compile(spec)};
    assert_int_equal(us_sim_create(w.model, def, &w.sim, NULL), US_OK);
    return w;
}

// The sim goes on with what the spec says now.
static void apply(world *w) {
    us_model *model = compile(w->spec);
    us_error err = {.code = US_OK};
    if (us_sim_replace(w->sim, model, &err)) fail_msg("%s", err.message);
    assert_ptr_equal(us_sim_view_model(w->sim), model);
    us_model_destroy(w->model);
    w->model = model;
}

static void run(world *w, int n) {
    for (int i = 0; i < n; i++) {
        if (us_sim_step(w->sim, NULL)) fail_msg("%s", us_sim_view_error(w->sim)->message);
    }
}

static void end(world *w) {
    us_sim_destroy(w->sim);
    us_model_destroy(w->model);
    us_spec_destroy(w->spec);
}

static us_body body(const world *w, const char *name) { return us_model_find_body(w->model, name); }
static us_vec3 position(const world *w, const char *name) { return us_sim_get_pose(w->sim, body(w, name)).p; }

// The coordinates of a joint are the same bits in both worlds.
static void assert_same_joint(const world *a, const world *b, const char *name) {
    us_joint_info x = us_model_get_joint(a->model, us_model_find_joint(a->model, name));
    us_joint_info y = us_model_get_joint(b->model, us_model_find_joint(b->model, name));
    assert_int_equal(x.n_q, y.n_q);
    assert_true(x.n_v > 0);
    assert_memory_equal(us_sim_view_q(a->sim) + x.first_q, us_sim_view_q(b->sim) + y.first_q,
                        (size_t)x.n_q * sizeof(double));
    assert_memory_equal(us_sim_view_v(a->sim) + x.first_v, us_sim_view_v(b->sim) + y.first_v,
                        (size_t)x.n_v * sizeof(double));
}

static const us_vec3 CUBE = {0.2, 0.2, 0.2};

// A leaning stack that has just been let go: it moves, slides a little and settles during the test. Something
// stands before it in the spec.
static us_spec *stack_spec(void) {
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.4);
    scene_ground(spec);
    scene_start at = scene_at(-3, 0, 0.1);
    scene_box(spec, "first", 2, CUBE, &at);
    static const char *const names[] = {"low", "middle", "high", "top"};
    for (int i = 0; i < 4; i++) {
        at = scene_at(0.01 * i, -0.005 * i, 0.1 + 0.201 * i);
        at.v = us_vec3_make(i == 3 ? 0.1 : 0, 0, 0);
        scene_box(spec, names[i], 1, CUBE, &at);
    }
    return spec;
}

static void assert_same_stack(const world *a, const world *b) {
    assert_same_joint(a, b, "low_float");
    assert_same_joint(a, b, "middle_float");
    assert_same_joint(a, b, "high_float");
    assert_same_joint(a, b, "top_float");
}

static us_spec *with_integrator(us_spec *spec, us_integrator integrator) {
    us_world_settings def = *us_spec_view_world(spec);
    def.integrator = integrator;
    assert_int_equal(us_spec_set_world(spec, &def), US_OK);
    return spec;
}

static void go_on_while_a_box_far_away_comes_moves_and_goes(us_integrator integrator) {
    world plain = start(with_integrator(stack_spec(), integrator), NULL),
          edited = start(with_integrator(stack_spec(), integrator), NULL);
    for (int tick = 0; tick < 700; tick++) {
        int32_t far = us_spec_find_link(edited.spec, "far");
        scene_start at = scene_at(5, 1, 0.1);
        us_pose X = {us_quat_from_rpy(0.3, 0.2, 0.1), {6, -1, 0.5}};
        switch (tick) {
        case 60:
            scene_box(edited.spec, "far", 3, CUBE, &at);
            apply(&edited);
            build_near("where the new box begins", position(&edited, "far").x, 5, 0);
            break;
        case 160:
            assert_int_equal(us_spec_move_link(edited.spec, far, X), US_OK);
            apply(&edited);
            // A quaternion and a position that pass through the joint's frame, which is the world's: exact
            // but for the normalisation.
            build_near("where it was moved", position(&edited, "far").z, 0.5, 1e-15);
            break;
        case 260:
            assert_int_equal(us_spec_raise_link(edited.spec, far, 0.25), US_OK);
            apply(&edited);
            build_near("where it was raised", position(&edited, "far").z, 0.75, 1e-15);
            break;
        case 360:
            assert_int_equal(us_spec_raise_link(edited.spec, far, -0.5), US_OK);
            apply(&edited);
            build_near("where it was lowered", position(&edited, "far").z, 0.25, 1e-15);
            break;
        case 460:
            X.p = us_vec3_make(5.5, 0.5, 0.3);
            assert_int_equal(us_sim_move(edited.sim, body(&edited, "far"), X), US_OK);
            break;
        case 510:
            X.p.z = 0.1;  // set down flat, to touch when it goes
            X.q = us_quat_identity();
            assert_int_equal(us_sim_move(edited.sim, body(&edited, "far"), X), US_OK);
            break;
        case 560:
            assert_int_equal(us_spec_remove_link(edited.spec, far), US_OK);
            apply(&edited);
            assert_int_equal(body(&edited, "far").i, -1);
            break;
        case 600:  // what stands before the stack in every list
            assert_int_equal(us_spec_remove_link(edited.spec, us_spec_find_link(edited.spec, "first")),
                             US_OK);
            apply(&edited);
            assert_int_equal(body(&edited, "low").i, 0);
            break;
        default:
            break;
        }
        run(&plain, 1);
        run(&edited, 1);
        assert_same_stack(&plain, &edited);
        assert_int_equal(us_sim_get_tick(edited.sim), tick + 1);
    }
    assert_true(us_sim_n_contact(plain.sim) >= 16);  // the stack did touch: four points between each two
    end(&plain);
    end(&edited);
}

static void a_stack_goes_on_to_the_bit_while_a_box_far_away_comes_moves_and_goes(void **state) {
    (void)state;
    // The error-controlled integrator has one sub-step for all: there a new object may change the last digits
    // of others.
    static const us_integrator integrators[] = {US_INTEGRATOR_MIDPOINT, US_INTEGRATOR_EULER,
                                                US_INTEGRATOR_RK4};
    for (int i = 0; i < 3; i++)
        go_on_while_a_box_far_away_comes_moves_and_goes(integrators[i]);
}

static void what_contacts_remember_is_carried_over(void **state) {
    (void)state;
    // A box that sticks on a slope of 0.3 rad with friction 0.5: its anchors are stretched.
    us_spec *spec = scene_spec(scene_gravity(0.3, 0.4), 0.5);
    scene_ground(spec);
    scene_start at = scene_at(0, 0, 0.1);
    scene_box(spec, "box", 1, CUBE, &at);
    world w = start(spec, NULL);
    run(&w, 200);
    int32_t n = us_sim_n_contact(w.sim);
    us_contact before[16];
    assert_in_range(n, 3, 16);
    for (int32_t i = 0; i < n; i++)
        before[i] = us_sim_get_contact(w.sim, i);
    assert_true(us_vec3_norm(before[0].stretch) > 1e-9);
    at = scene_at(4, 0, 2);
    scene_box(w.spec, "another", 1, CUBE, &at);
    apply(&w);
    assert_int_equal(us_sim_n_contact(w.sim), n);
    for (int32_t i = 0; i < n; i++) {
        us_contact c = us_sim_get_contact(w.sim, i);
        assert_memory_equal(&c.point, &before[i].point, sizeof c.point);
        assert_memory_equal(&c.force, &before[i].force, sizeof c.force);
        assert_memory_equal(&c.stretch, &before[i].stretch, sizeof c.stretch);
    }
    // Another shape in the old one's place has never touched anything.
    us_shape_def shape = *us_spec_view_shape(w.spec, 1);
    shape.size[0] = 0.3;
    assert_int_equal(us_spec_set_shape(w.spec, 1, &shape), US_OK);
    apply(&w);
    assert_int_equal(us_sim_n_contact(w.sim), 0);
    run(&w, 1);
    assert_true(us_sim_n_contact(w.sim) >= 3);
    end(&w);
}

static void a_rover_that_is_moved_by_its_chassis_forgets_the_contacts_of_its_wheels(void **state) {
    (void)state;
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.5);
    scene_ground(spec);
    int32_t moved = crowd_rover(spec, "moved", us_vec3_make(0, 0, 0.151), 1);
    crowd_rover(spec, "other", us_vec3_make(0, 3, 0.151), 1);
    world w = start(spec, NULL);
    run(&w, 200);
    int32_t n = us_sim_n_contact(w.sim);
    us_body wheel = body(&w, "moved_wheel0");
    double angle = us_sim_get_value(w.sim, us_sim_find_value(w.sim, "moved_wheel0.q"));
    assert_true(n >= 8 && angle > 0.01);
    us_pose X = {us_quat_identity(), {1, 0, 0.151}};
    assert_int_equal(us_spec_move_link(w.spec, moved, X), US_OK);
    apply(&w);
    // The wheels are still turned as they were; what they remember of the ground is not.
    build_near("angle of the wheel", us_sim_get_value(w.sim, us_sim_find_value(w.sim, "moved_wheel0.q")),
               angle, 0);
    assert_int_equal(us_sim_n_contact(w.sim), n / 2);
    for (int32_t i = 0; i < n / 2; i++) {
        us_contact c = us_sim_get_contact(w.sim, i);
        assert_true(c.body_a.i != wheel.i && c.body_b.i != wheel.i);
    }
    run(&w, 200);
    build_near("height", position(&w, "moved_chassis").z, 0.15, 2e-3);
    end(&w);
}

// An arm that dry friction of 4 N m holds against 9.81 * 0.2 * cos(q) N m; another one stands before it in
// the spec.
static us_spec *held_arms(void) {
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.5);
    scene_ground(spec);
    static const char *const names[] = {"first", "second"};
    for (int i = 0; i < 2; i++) {
        int32_t link = build_link(spec, names[i], 1, us_vec3_make(0.2, 0, 0), us_vec3_make(0.01, 0.01, 0.01));
        us_joint_def joint =
            build_joint_at(US_JOINT_REVOLUTE, US_WORLD, link, us_vec3_make(0, i, 2), us_vec3_make(0, 1, 0));
        joint.friction = 4;
        joint.q0[0] = 0.3 + 0.1 * i;
        build_joint_def(spec, names[i], &joint);
        scene_add_box(spec, link, us_vec3_make(0.4, 0.1, 0.1), us_vec3_make(0.2, 0, 0));
    }
    return spec;
}

static void where_friction_holds_a_joint_is_carried_over(void **state) {
    (void)state;
    world plain = start(held_arms(), NULL), edited = start(held_arms(), NULL);
    run(&plain, 200);
    run(&edited, 200);
    assert_int_equal(us_spec_remove_link(edited.spec, us_spec_find_link(edited.spec, "first")), US_OK);
    apply(&edited);
    for (int i = 0; i < 200; i++) {
        run(&plain, 1);
        run(&edited, 1);
        assert_same_joint(&plain, &edited, "second");
    }
    // Put elsewhere by hand, it is held there: it sags by its weight over the stiffness of sticking, and does
    // not spring back.
    const double angle = 0.9, rest = 0;
    assert_int_equal(us_sim_set_joint(edited.sim, us_model_find_joint(edited.model, "second"), &angle, &rest),
                     US_OK);
    run(&edited, 1000);
    build_near("where it is held", us_sim_view_q(edited.sim)[0], 0.9, 1e-2);
    end(&plain);
    end(&edited);
}

// g t^2 / 2, and what a step of h adds at first order: g t h / 2.
static double fallen(double t) { return 0.5 * 9.81 * t * (t + 1e-3); }

static void a_box_whose_support_is_removed_falls(void **state) {
    (void)state;
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.5);
    scene_ground(spec);
    scene_add_box(spec, US_WORLD, us_vec3_make(1, 1, 0.5), us_vec3_make(3, 0, 0.25));
    scene_start at = scene_at(0, 0, 0.1);
    scene_box(spec, "lower", 1, CUBE, &at);
    at = scene_at(0, 0, 0.3);
    scene_box(spec, "upper", 1, CUBE, &at);
    at = scene_at(3, 0, 0.6);
    scene_box(spec, "guest", 1, CUBE, &at);
    world w = start(spec, NULL);
    run(&w, 500);
    double upper = position(&w, "upper").z, guest = position(&w, "guest").z;
    build_near("the upper box before", upper, 0.3, 1e-3);
    assert_int_equal(us_spec_remove_link(w.spec, us_spec_find_link(w.spec, "lower")), US_OK);
    assert_int_equal(us_spec_remove_shape(w.spec, 1), US_OK);
    apply(&w);
    run(&w, 100);
    // 49 mm of a fall of 200 mm. The boxes rested at some 1e-6 m/s: 1e-6 m covers that and the order of the
    // integrator.
    build_near("how far the upper box fell", upper - position(&w, "upper").z, fallen(0.1), 1e-6);
    build_near("how far the guest fell", guest - position(&w, "guest").z, fallen(0.1), 1e-6);
    run(&w, 900);
    build_near("the upper box on the ground", position(&w, "upper").z, 0.1, 1e-3);
    build_near("the guest on the ground", position(&w, "guest").z, 0.1, 1e-3);
    end(&w);
}

static void a_platform_that_is_moved_away_or_lowered_lets_go(void **state) {
    (void)state;
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0.5);
    int32_t table = build_link(spec, "table", 5, us_vec3_make(0, 0, 0), us_vec3_make(1, 1, 1));
    us_joint_def fixed =
        build_joint_at(US_JOINT_FIXED, US_WORLD, table, us_vec3_make(0, 0, 1), us_vec3_make(1, 0, 0));
    build_joint_def(spec, "table_joint", &fixed);
    scene_add_box(spec, table, us_vec3_make(1, 1, 0.1), us_vec3_make(0, 0, 0));
    scene_add_box(spec, US_WORLD, us_vec3_make(1, 1, 0.1), us_vec3_make(0, 0, 0));
    scene_start at = scene_at(0, 0, 1.15);
    scene_box(spec, "box", 1, CUBE, &at);
    world w = start(spec, NULL);
    run(&w, 200);
    build_near("on the table", position(&w, "box").z, 1.15, 1e-3);
    assert_int_equal(us_spec_raise_link(w.spec, table, -0.3), US_OK);
    apply(&w);
    assert_int_equal(us_sim_n_contact(w.sim), 0);
    run(&w, 700);
    build_near("on the lowered table", position(&w, "box").z, 0.85, 1e-3);
    us_pose aside = {us_quat_identity(), {2, 0, 0.7}};
    assert_int_equal(us_spec_move_link(w.spec, table, aside), US_OK);
    apply(&w);
    run(&w, 900);
    build_near("on the platform below", position(&w, "box").z, 0.15, 1e-3);
    us_pose lower = {us_quat_identity(), {0, 0, -0.2}};
    assert_int_equal(us_spec_move_shape(w.spec, 1, lower), US_OK);
    apply(&w);
    run(&w, 700);
    build_near("on the lowered platform", position(&w, "box").z, -0.05, 1e-3);
    end(&w);
}

static us_spec *grasp_spec(void) {
    us_spec *spec = scene_grasp(2, 1, 0, false);
    build_drive(spec, "left_drive", us_spec_find_joint(spec, "left_slide"), 0, 0, 0, 0);
    build_drive(spec, "right_drive", us_spec_find_joint(spec, "right_slide"), 0, 0, 0, 0);
    return spec;
}

static void a_grasp_holds_to_the_bit_through_edits(void **state) {
    (void)state;
    world plain = start(grasp_spec(), NULL), edited = start(grasp_spec(), NULL);
    // Commanded once, then carried over by the drives' names.
    const double squeeze[2] = {40, -40};
    us_command command = {.drive_torque = squeeze};
    assert_int_equal(us_sim_step(plain.sim, &command), US_OK);
    assert_int_equal(us_sim_step(edited.sim, &command), US_OK);
    for (int tick = 0; tick < 1000; tick++) {
        if (tick % 200 == 100) {
            scene_start at = scene_at(0, 3, 0.1 + 0.001 * tick);
            scene_box(edited.spec, "guest", 1, CUBE, &at);
            apply(&edited);
        } else if (tick % 200 == 150) {
            assert_int_equal(us_spec_remove_link(edited.spec, us_spec_find_link(edited.spec, "guest")),
                             US_OK);
            apply(&edited);
        }
        run(&plain, 1);
        run(&edited, 1);
        assert_same_joint(&plain, &edited, "left_slide");
        assert_same_joint(&plain, &edited, "cube0_float");
        assert_same_joint(&plain, &edited, "cube1_float");
        assert_memory_equal(us_sim_view_torque(plain.sim), us_sim_view_torque(edited.sim),
                            2 * sizeof(double));
    }
    build_near("the cube is still held", position(&edited, "cube0").z, 1, 1e-3);
    // Without a cube the other one is held just as well once the fingers have closed in: it is the same
    // finger that remembers nothing of the one that went.
    assert_int_equal(us_spec_remove_link(edited.spec, us_spec_find_link(edited.spec, "cube1")), US_OK);
    apply(&edited);
    assert_int_equal(body(&edited, "cube1").i, -1);
    run(&edited, 1);
    for (int32_t i = 0; i < us_sim_n_contact(edited.sim); i++) {
        us_contact c = us_sim_get_contact(edited.sim, i);
        assert_true(c.body_a.i == body(&edited, "left").i || c.body_b.i == body(&edited, "left").i);
    }
    end(&plain);
    end(&edited);
}

static void values_of_materials_and_commands_follow_the_edit_only_where_it_changes_them(void **state) {
    (void)state;
    us_spec *spec = stack_spec();
    us_material_def ice = {.name = "ice"}, rubber = {.name = "rubber"};
    assert_int_equal(us_spec_add_material(spec, &ice, NULL), US_OK);
    assert_int_equal(us_spec_add_material(spec, &rubber, NULL), US_OK);
    world w = start(spec, NULL);
    us_material a = us_model_find_material(w.model, "ice"), b = us_model_find_material(w.model, "rubber");
    us_pair_values changed, read;
    assert_int_equal(us_sim_get_pair(w.sim, a, b, &changed), US_OK);
    changed.static_friction = 0.123;
    changed.kinetic_friction = 0.1;
    assert_int_equal(us_sim_set_pair(w.sim, a, b, &changed), US_OK);
    assert_int_equal(us_sim_set_pair(w.sim, a, a, &changed), US_OK);
    us_pair_def pair = scene_pair(0.7);
    pair.material_a = "ice";
    pair.material_b = "ice";
    assert_int_equal(us_spec_add_pair(w.spec, &pair, NULL), US_OK);
    apply(&w);
    a = us_model_find_material(w.model, "ice");
    b = us_model_find_material(w.model, "rubber");
    assert_int_equal(us_sim_get_pair(w.sim, b, a, &read), US_OK);
    build_near("changed while running", read.static_friction, 0.123, 0);
    assert_int_equal(us_sim_get_pair(w.sim, a, a, &read), US_OK);
    build_near("changed by the edit", read.static_friction, 0.7, 0);
    end(&w);

    w = start(grasp_spec(), NULL);
    const double squeeze[2] = {40, -40};
    us_command command = {.drive_torque = squeeze};
    assert_int_equal(us_sim_step(w.sim, &command), US_OK);
    us_drive_def drive = *us_spec_view_drive(w.spec, 1);
    drive.torque = -5;
    assert_int_equal(us_spec_set_drive(w.spec, 1, &drive), US_OK);
    apply(&w);
    run(&w, 1);
    build_near("the command goes on", us_sim_view_torque(w.sim)[0], 40, 0);
    build_near("the command of the edit", us_sim_view_torque(w.sim)[1], -5, 0);
    end(&w);
}

static void a_failing_edit_leaves_everything_whole(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    us_sim_def def = us_sim_def_default();
    def.allocator = t.allocator;
    world plain = start(stack_spec(), NULL), w = start(stack_spec(), &def);
    run(&plain, 150);
    run(&w, 150);
    uint64_t hash = us_sim_hash(w.sim);
    us_error err = {.code = US_OK};

    // Out of memory at every allocation that a good edit makes.
    us_spec *copy = NULL;
    assert_int_equal(us_spec_copy(w.spec, &copy), US_OK);
    scene_start at = scene_at(5, 0, 0.1);
    scene_box(copy, "far", 1, CUBE, &at);
    us_model *larger = compile(copy);
    int64_t live = t.n_live, before = t.n_alloc;
    int n_failed = 0;
    for (int64_t k = 1;; k++) {
        t.fail_at = t.n_alloc + k;
        us_status status = us_sim_replace(w.sim, larger, &err);
        if (!status) break;
        n_failed++;
        assert_int_equal(status, US_ERR_MEMORY);
        assert_int_equal(err.code, US_ERR_MEMORY);
        assert_true(err.remedy[0] != 0);
        assert_int_equal(t.n_live, live);
        assert_ptr_equal(us_sim_view_model(w.sim), w.model);
        assert_true(us_sim_hash(w.sim) == hash);
    }
    t.fail_at = 0;
    assert_true(n_failed > 10 && t.n_alloc > before);
    // The last one went well, and back again.
    assert_int_equal(us_sim_replace(w.sim, w.model, NULL), US_OK);
    assert_true(us_sim_hash(w.sim) == hash);
    us_model_destroy(larger);

    // Too little room for the contacts there are, and a loop that cannot be closed.
    int32_t low = us_spec_find_link(copy, "low"), far = us_spec_find_link(copy, "far");
    us_world_settings small = *us_spec_view_world(copy);
    small.max_contact = 4;
    assert_int_equal(us_spec_set_world(copy, &small), US_OK);
    us_model *narrow = compile(copy);
    // Room is no part of what a model is: more is made.
    assert_int_equal(us_sim_replace(w.sim, narrow, &err), US_OK);
    assert_int_equal(us_sim_get_room(w.sim).n_growth, 1);
    assert_int_equal(us_sim_replace(w.sim, w.model, NULL), US_OK);
    assert_true(us_sim_hash(w.sim) == hash);
    us_model_destroy(narrow);
    small.max_contact = 0;
    assert_int_equal(us_spec_set_world(copy, &small), US_OK);
    build_loop(copy, "here", US_LOOP_WELD, low, us_vec3_make(0, 0, 0), far, us_vec3_make(0, 0, 0));
    build_loop(copy, "and there", US_LOOP_WELD, low, us_vec3_make(1, 0, 0), far, us_vec3_make(0, 0, 0));
    us_model *torn = compile(copy);
    assert_int_equal(us_sim_replace(w.sim, torn, &err), US_ERR_CONSTRAINT);
    assert_true(us_sim_hash(w.sim) == hash);
    us_model_destroy(torn);
    us_spec_destroy(copy);

    assert_int_equal(us_sim_replace(NULL, w.model, NULL), US_ERR_ARG);
    assert_int_equal(us_sim_replace(w.sim, NULL, &err), US_ERR_ARG);
    for (int i = 0; i < 100; i++) {
        run(&plain, 1);
        run(&w, 1);
        assert_same_stack(&plain, &w);
    }
    end(&plain);
    end(&w);
    test_allocator_check(&t);
}

static void an_object_that_is_set_down_elsewhere_forgets_its_contacts_and_nobody_else_does(void **state) {
    (void)state;
    world plain = start(stack_spec(), NULL), w = start(stack_spec(), NULL);
    run(&plain, 300);
    run(&w, 300);
    us_body first = body(&w, "first");
    us_pose X = {us_quat_from_rpy(0, 0, 0.5), {-4, 2, 0.4}};
    assert_int_equal(us_sim_move(w.sim, first, X), US_OK);
    us_pose now = us_sim_get_pose(w.sim, first);
    build_near("x", now.p.x, -4, 0);
    build_near("yaw", now.q.z, sin(0.25), 1e-15);
    build_near("speed", us_vec3_norm(us_sim_get_twist(w.sim, first).v), 0, 0);
    assert_true(us_sim_n_contact(w.sim) < us_sim_n_contact(plain.sim));
    for (int32_t i = 0; i < us_sim_n_contact(w.sim); i++)
        assert_int_not_equal(us_sim_get_contact(w.sim, i).body_a.i, first.i);
    for (int i = 0; i < 300; i++) {
        run(&plain, 1);
        run(&w, 1);
        assert_same_stack(&plain, &w);
    }
    build_near("it has fallen where it was put", position(&w, "first").x, -4, 1e-6);
    build_near("onto the ground", position(&w, "first").z, 0.1, 1e-3);

    const us_pose bad = {{0, 0, 0, 0}, {0, 0, 0}}, far = {{1, 0, 0, 0}, {INFINITY, 0, 0}};
    uint64_t hash = us_sim_hash(w.sim);
    assert_int_equal(us_sim_move(w.sim, first, bad), US_ERR_VALUE);
    assert_int_equal(us_sim_move(w.sim, first, far), US_ERR_VALUE);
    assert_int_equal(us_sim_move(w.sim, (us_body){-1}, X), US_ERR_ARG);
    assert_int_equal(us_sim_move(w.sim, (us_body){99}, X), US_ERR_ARG);
    assert_int_equal(us_sim_move(NULL, first, X), US_ERR_ARG);
    us_joint joint = us_model_find_joint(w.model, "first_float");
    const double nan_q[7] = {1, 0, 0, 0, NAN, 0, 0}, no_turn[7] = {0}, nan_v[6] = {NAN};
    assert_int_equal(us_sim_set_joint(w.sim, joint, nan_q, NULL), US_ERR_VALUE);
    assert_int_equal(us_sim_set_joint(w.sim, joint, no_turn, NULL), US_ERR_VALUE);
    assert_int_equal(us_sim_set_joint(w.sim, joint, NULL, nan_v), US_ERR_VALUE);
    assert_int_equal(us_sim_set_joint(w.sim, (us_joint){-1}, NULL, NULL), US_ERR_ARG);
    assert_int_equal(us_sim_set_joint(NULL, joint, NULL, NULL), US_ERR_ARG);
    assert_true(us_sim_hash(w.sim) == hash);
    end(&plain);
    end(&w);

    // An arm on a floating base is moved by its hand; one that stands on the world is not.
    built arm = build_sim(build_floating_arm(0, 1e-3, US_INTEGRATOR_MIDPOINT));
    us_body hand = {arm.n.n_body - 1};
    X.p = us_vec3_make(1, 2, 3);
    assert_int_equal(us_sim_move(arm.sim, hand, X), US_OK);
    now = us_sim_get_pose(arm.sim, hand);
    // Four poses multiplied: some rounding errors of lengths of a few metres.
    build_near("the hand", us_vec3_norm(us_vec3_sub(now.p, X.p)), 0, 1e-14);
    build_free(&arm);
    built pendulum = build_sim(build_pendulum(0.1, 0.5, 1e-3, US_INTEGRATOR_MIDPOINT));
    assert_int_equal(us_sim_move(pendulum.sim, (us_body){0}, X), US_ERR_TREE);
    const double angle = 0.25, rate = 2;
    assert_int_equal(us_sim_set_joint(pendulum.sim, (us_joint){0}, &angle, &rate), US_OK);
    build_near("angle", us_sim_view_q(pendulum.sim)[0], 0.25, 0);
    build_near("rate", us_sim_view_v(pendulum.sim)[0], 2, 0);
    build_free(&pendulum);
}

static void an_object_is_set_in_motion_where_it_is(void **state) {
    (void)state;
    world w = start(stack_spec(), NULL);
    run(&w, 300);
    const us_body first = body(&w, "first");
    const us_pose X = {us_quat_from_rpy(0.3, -0.2, 1), {-4, 2, 4}};
    const us_twist V = {.w = {0.5, -1, 2}, .v = {3, -4, 5}}, none = {{0, 0, 0}, {0, 0, 0}};
    assert_int_equal(us_sim_move(w.sim, first, X), US_OK);
    assert_int_equal(us_sim_set_twist(w.sim, first, V), US_OK);
    us_twist now = us_sim_get_twist(w.sim, first);
    // Turned into its own axes and back: rounding.
    build_near("velocity", us_vec3_norm(us_vec3_sub(now.v, V.v)), 0, 1e-14);
    build_near("spin", us_vec3_norm(us_vec3_sub(now.w, V.w)), 0, 1e-14);
    build_near("place", us_vec3_norm(us_vec3_sub(us_sim_get_pose(w.sim, first).p, X.p)), 0, 0);
    // It flies as it was told: in 10 steps of h by v t + g t^2 / 2.
    const double t0 = us_sim_get_time(w.sim);
    run(&w, 10);
    const double t = us_sim_get_time(w.sim) - t0;
    const us_vec3 p = position(&w, "first");
    build_near("x", p.x, X.p.x + V.v.x * t, 1e-12);
    build_near("y", p.y, X.p.y + V.v.y * t, 1e-12);

    const uint64_t hash = us_sim_hash(w.sim);
    const us_twist bad = {.w = {0, NAN, 0}, .v = {0, 0, 0}}, far = {.w = {0, 0, 0}, .v = {INFINITY, 0, 0}};
    assert_int_equal(us_sim_set_twist(w.sim, first, bad), US_ERR_VALUE);
    assert_int_equal(us_sim_set_twist(w.sim, first, far), US_ERR_VALUE);
    assert_int_equal(us_sim_set_twist(w.sim, (us_body){-1}, none), US_ERR_ARG);
    assert_int_equal(us_sim_set_twist(w.sim, (us_body){99}, none), US_ERR_ARG);
    assert_int_equal(us_sim_set_twist(NULL, first, none), US_ERR_ARG);
    assert_true(us_sim_hash(w.sim) == hash);
    end(&w);

    // Of an arm on a floating base the base is set in motion, not the hand; what stands on the world is not.
    built arm = build_sim(build_floating_arm(0, 1e-3, US_INTEGRATOR_MIDPOINT));
    assert_int_equal(us_sim_set_twist(arm.sim, (us_body){0}, V), US_OK);
    now = us_sim_get_twist(arm.sim, (us_body){0});
    build_near("base", us_vec3_norm(us_vec3_sub(now.v, V.v)), 0, 1e-14);
    assert_int_equal(us_sim_set_twist(arm.sim, (us_body){arm.n.n_body - 1}, V), US_ERR_TREE);
    build_free(&arm);
    built pendulum = build_sim(build_pendulum(0.1, 0.5, 1e-3, US_INTEGRATOR_MIDPOINT));
    assert_int_equal(us_sim_set_twist(pendulum.sim, (us_body){0}, V), US_ERR_TREE);
    build_free(&pendulum);
}

static void moving_an_object_does_not_look_at_the_scratch(void **state) {
    (void)state;
    world a = start(stack_spec(), NULL), b = start(stack_spec(), NULL);
    us_pose X = {us_quat_identity(), {-4, 2, 0.4}};
    for (int i = 0; i < 5; i++) {
        run(&a, 40);
        run(&b, 40);
        us_sim_poison(b.sim);
        X.p.z += 0.01;
        assert_int_equal(us_sim_move(a.sim, body(&a, "first"), X), US_OK);
        assert_int_equal(us_sim_move(b.sim, body(&b, "first"), X), US_OK);
        us_sim_poison(a.sim);
        assert_true(us_sim_hash(a.sim) == us_sim_hash(b.sim));
        us_sim_poison(b.sim);
        apply(&b);
        apply(&a);
        assert_true(us_sim_hash(a.sim) == us_sim_hash(b.sim));
    }
    end(&a);
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_goes_on_to_the_bit_while_a_box_far_away_comes_moves_and_goes),
        cmocka_unit_test(what_contacts_remember_is_carried_over),
        cmocka_unit_test(where_friction_holds_a_joint_is_carried_over),
        cmocka_unit_test(a_rover_that_is_moved_by_its_chassis_forgets_the_contacts_of_its_wheels),
        cmocka_unit_test(a_box_whose_support_is_removed_falls),
        cmocka_unit_test(a_platform_that_is_moved_away_or_lowered_lets_go),
        cmocka_unit_test(a_grasp_holds_to_the_bit_through_edits),
        cmocka_unit_test(values_of_materials_and_commands_follow_the_edit_only_where_it_changes_them),
        cmocka_unit_test(a_failing_edit_leaves_everything_whole),
        cmocka_unit_test(an_object_that_is_set_down_elsewhere_forgets_its_contacts_and_nobody_else_does),
        cmocka_unit_test(an_object_is_set_in_motion_where_it_is),
        cmocka_unit_test(moving_an_object_does_not_look_at_the_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

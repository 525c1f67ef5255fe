// Contact of robots: drives at their limit, joints at their stops, dry friction, loops and couplings are
// solved together with it.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contact_scene.h"

static const double G = 9.81;
static const us_vec3 X = {1, 0, 0}, Y = {0, 1, 0}, ZERO = {0, 0, 0};

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }
static us_vec3 down(void) { return at(0, 0, -G); }

// ---- Drives and stops ----

// An arm of 2 kg and 1 m on a hinge about y, 0.5 m over the ground, with a ball at its end.
static us_spec *arm(double friction, double limit, double position) {
    us_spec *spec = scene_spec(down(), friction);
    scene_ground(spec);
    int32_t link = build_link(spec, "arm", 2, at(0.5, 0, 0), at(0.001, 0.17, 0.17));
    int32_t joint = build_joint(spec, "hinge", US_JOINT_REVOLUTE, US_WORLD, link, at(0, 0, 0.5), Y, 0, 0);
    scene_add_ball(spec, link, 0.05, X);
    build_drive(spec, "motor", joint, 1000, 20, position, limit);
    return spec;
}

static void an_arm_presses_on_the_floor_with_its_limit(void **state) {
    (void)state;
    built b = build_sim(arm(0, 20, 1.5));
    build_step(&b, 5000, NULL);
    double q = us_sim_view_q(b.sim)[0], lever = cos(q), force = scene_contact_force(&b, 0).z;
    // The motor wants to go to 1.5 rad and gives all it has; the floor carries that and half of the arm.
    printf("    angle %.6f, motor %.6f N m, floor %.9f N\n", q, us_sim_view_torque(b.sim)[0], force);
    build_near("motor", us_sim_view_torque(b.sim)[0], 20, 1e-12);
    build_near("angle", q, asin(0.45), 1e-5);
    build_near("floor", force, 20 / lever + G,
               1e-3);  // points are looked for again after 20 um: 2e-5 of the lever
    // At rest, and it stays there.
    double still = us_sim_view_q(b.sim)[0];
    build_step(&b, 20000, NULL);
    build_near("creep", us_sim_view_q(b.sim)[0], still, 1e-10);
    build_free(&b);
}

static void an_arm_that_reaches_its_goal_on_the_floor_presses_less(void **state) {
    (void)state;
    // 0.01 rad beyond the floor: 1000 N m/rad * 0.01 rad, less than the limit.
    built b = build_sim(arm(0.5, 20, asin(0.45) + 0.01));
    build_step(&b, 5000, NULL);
    double q = us_sim_view_q(b.sim)[0];
    build_near("motor", us_sim_view_torque(b.sim)[0], 1000 * (asin(0.45) + 0.01 - q), 1e-6);
    build_near("angle", q, asin(0.45), 1e-5);
    build_free(&b);
}

// A finger on a slide along x, and a cube that lies in front of it on a smooth table.
static us_spec *finger(const us_joint_def *slide, double friction) {
    us_spec *spec = scene_spec(down(), friction);
    scene_ground(spec);
    int32_t link = build_link(spec, "finger", 1, ZERO, scene_box_moments(1, at(0.1, 0.1, 0.1)));
    us_joint_def joint = *slide;
    joint.parent = US_WORLD;
    joint.child = link;
    build_joint_def(spec, "slide", &joint);
    scene_add_box(spec, link, at(0.1, 0.1, 0.1), ZERO);
    scene_start start = scene_at(0.1, 0, 0.05);
    scene_box(spec, "cube", 1, at(0.1, 0.1, 0.1), &start);
    return spec;
}

// `force` on the finger along x and `against` on the cube.
static void squeeze(built *b, double force, double against, int64_t n) {
    double torque[7] = {force};
    us_wrench wrench[2] = {{{0, 0, 0}, {0, 0, 0}}};
    wrench[1].f = at(-against, 0, 0);
    us_command command = {.torque = torque, .wrench = wrench};
    build_step(b, n, &command);
}

// Force of the finger on the cube along x.
static double push_on_cube(const built *b) {
    double sum = 0;
    for (int32_t i = 0; i < us_sim_n_contact(b->sim); i++) {
        us_contact c = us_sim_get_contact(b->sim, i);
        if (c.body_a.i == 1 && c.body_b.i == 0) sum += c.force.x;
        if (c.body_a.i == 0 && c.body_b.i == 1) sum -= c.force.x;
    }
    return sum;
}

static void a_finger_at_its_stop_lends_the_stop_to_the_cube(void **state) {
    (void)state;
    us_joint_def slide = build_joint_at(US_JOINT_PRISMATIC, US_WORLD, 0, at(0, 0, 0.06), X);
    slide.has_limits = true;
    slide.lower = -0.1;
    slide.upper = 0.03;
    built b = build_sim(finger(&slide, 0));
    squeeze(&b, 100, 20, 3000);
    double q = us_sim_view_q(b.sim)[0];
    printf("    finger at %.6f m, pushes with %.6f N\n", q, push_on_cube(&b));
    build_near("stop", q, 0.03, 1e-3);  // a stop gives a little
    assert_true(q >= 0.03);             // it leans on it with 80 N
    build_near("push", push_on_cube(&b), 20, 1e-3);
    double still = scene_position(&b, 1).x;
    squeeze(&b, 100, 20, 20000);
    build_near("cube", scene_position(&b, 1).x, still, 1e-10);
    // A stronger push drives the finger off its stop: 50 N on 2 kg.
    squeeze(&b, 100, 150, 20);
    double v = us_sim_view_v(b.sim)[0];
    squeeze(&b, 100, 150, 20);
    build_near("driven back", (us_sim_view_v(b.sim)[0] - v) / 0.02, -25, 0.05);
    build_near("push", push_on_cube(&b), 125, 0.1);
    build_free(&b);
}

static void dry_friction_of_a_joint_holds_what_leans_on_it(void **state) {
    (void)state;
    us_joint_def slide = build_joint_at(US_JOINT_PRISMATIC, US_WORLD, 0, at(0, 0, 0.06), X);
    slide.friction = 10;
    built b = build_sim(finger(&slide, 0));
    squeeze(&b, 0, 8, 1000);
    double still = us_sim_view_q(b.sim)[0];
    squeeze(&b, 0, 8, 10000);
    printf("    8 N: creeps with %.2e m/s\n", (us_sim_view_q(b.sim)[0] - still) / 10);
    build_near("creep", (us_sim_view_q(b.sim)[0] - still) / 10, 0, 1e-9);
    build_near("push", push_on_cube(&b), 8, 1e-3);
    squeeze(&b, 0, 12, 100);
    double v = us_sim_view_v(b.sim)[0];
    squeeze(&b, 0, 12, 100);
    // 12 N against 10 N on 2 kg.
    build_near("acceleration", (us_sim_view_v(b.sim)[0] - v) / 0.1, -1, 1e-3);
    build_near("push", push_on_cube(&b), 11, 1e-3);
    build_free(&b);
}

// ---- Loops ----

// A parallelogram that hangs from two hinges 0.5 m over the ground: cranks of 0.5 m and 1 kg, a coupler of 2
// kg with a ball of 0.1 m that comes down on the ground at cos q = 0.8.
static void add_parallelogram(us_spec *spec, double y, us_loop_type type) {
    int32_t left = build_link(spec, "left", 1, at(0, 0, -0.25), at(0.02, 0.02, 0.001)), right, coupler;
    right = build_link(spec, "right", 1, at(0, 0, -0.25), at(0.02, 0.02, 0.001));
    coupler = build_link(spec, "coupler", 2, at(0.5, 0, 0), at(0.001, 0.17, 0.17));
    build_joint(spec, "left_hinge", US_JOINT_REVOLUTE, US_WORLD, left, at(0, y, 0.5), Y, 1, 0);
    build_joint(spec, "right_hinge", US_JOINT_REVOLUTE, US_WORLD, right, at(1, y, 0.5), Y, 1, 0);
    build_joint(spec, "knee", US_JOINT_REVOLUTE, left, coupler, at(0, 0, -0.5), Y, -1, 0);
    us_loop_def loop = us_loop_def_default(type);
    loop.name = "loop";
    loop.link_a = coupler;
    loop.link_b = right;
    loop.X_AC = loop.X_BD = us_pose_identity();
    // The hinge's axis is z of the loop's frames.
    loop.X_AC.q = loop.X_BD.q = us_quat_from_rpy(-1.5707963267948966, 0, 0);
    loop.X_AC.p = X;
    loop.X_BD.p = at(0, 0, -0.5);
    assert_int_equal(us_spec_add_loop(spec, &loop, NULL), US_OK);
    scene_add_ball(spec, coupler, 0.1, at(0.5, 0, 0));
}

static void a_four_bar_on_the_ground_stays_closed(void **state) {
    (void)state;
    static const us_loop_type types[] = {US_LOOP_POINT, US_LOOP_HINGE};
    for (int k = 0; k < 4; k++) {
        us_spec *spec = scene_spec(down(), k < 2 ? 0 : 0.8);
        scene_ground(spec);
        add_parallelogram(spec, 0, types[k % 2]);
        built b = build_sim(spec);
        double closure = 0;
        for (int i = 0; i < 3000; i++) {
            build_step(&b, 1, NULL);
            closure = fmax(closure, us_sim_get_closure(b.sim));
        }
        double q = us_sim_view_q(b.sim)[0], force = scene_contact_force(&b, 2).z;
        printf("    closed to %.1e m, angle %.7f, force %.6f N\n", closure, q, force);
        assert_true(closure < 1e-9);
        build_near("angle", q, acos(0.8), 1e-4);
        // By virtual work: the coupler and half of each crank. With friction the cranks may jam against the
        // ground.
        if (k < 2)
            build_near("force", force, 3 * G, 1e-3);
        else
            assert_true(force > 0);
        build_step(&b, 10000, NULL);
        build_near("creep", us_sim_view_q(b.sim)[0], q, 1e-7);
        assert_true(us_sim_get_closure(b.sim) < 1e-9);
        build_free(&b);
    }
}

static void loops_and_boxes_beside_each_other_do_not_disturb_each_other(void **state) {
    (void)state;
    // Boxes before and after the mechanism, each an island of its own; with two threads and with one.
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        us_spec *spec = scene_spec(down(), 0.5);
        scene_ground(spec);
        scene_start first = scene_at(0, 3, 0.1), last = scene_at(0, -3, 0.1);
        first.v.x = last.v.x = 1;
        scene_box(spec, "first", 1, at(0.2, 0.2, 0.2), &first);
        add_parallelogram(spec, 0, US_LOOP_HINGE);
        scene_box(spec, "last", 1, at(0.2, 0.2, 0.2), &last);
        us_model *model = NULL;
        us_sim *sim = NULL;
        us_error err;
        memset(&err, 0, sizeof err);
        assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
        us_spec_destroy(spec);
        us_sim_def def = us_sim_def_default();
        def.n_thread = k + 1;
        assert_int_equal(us_sim_create(model, &def, &sim, &err), US_OK);
        double closure = 0;
        for (int i = 0; i < 2000; i++) {
            assert_int_equal(us_sim_step(sim, NULL), US_OK);
            closure = fmax(closure, us_sim_get_closure(sim));
        }
        us_vec3 a = us_sim_get_pose(sim, (us_body){0}).p, z = us_sim_get_pose(sim, (us_body){4}).p;
        // Both boxes slide the same way, 1 / (2 mu g), and stop.
        build_near("first", a.x, 1 / G, 1e-3);
        build_near("last", z.x, a.x, 1e-12);
        assert_true(closure < 1e-9);
        hash[k] = us_sim_hash(sim);
        us_sim_destroy(sim);
        us_model_destroy(model);
    }
    assert_true(hash[0] == hash[1]);
}

// ---- Couplings ----

// A chassis that floats on two rockers with q_left + q_right = 0; each rocker stands on two balls. One ball
// stands on a block of 0.1 m.
static us_spec *rover_on_block(us_vec3 gravity, int32_t *out_chassis, int32_t rocker[2]) {
    us_spec *spec = scene_spec(gravity, 0.8);
    scene_ground(spec);
    us_shape_def block = us_shape_def_default(US_SHAPE_BOX);
    block.link = US_WORLD;
    block.size[0] = 0.3;
    block.size[1] = 0.3;
    block.size[2] = 0.2;
    block.X_BG.p = at(0.5, 0.4, 0);
    assert_int_equal(us_spec_add_shape(spec, &block, NULL), US_OK);
    scene_start start = scene_at(0, 0, 0.55);
    int32_t chassis = scene_float(spec, "chassis", 20, scene_box_moments(20, at(1, 0.6, 0.2)), &start);
    static const char *const names[2][2] = {{"left", "left_hinge"}, {"right", "right_hinge"}};
    for (int i = 0; i < 2; i++) {
        double y = i ? -0.4 : 0.4;
        rocker[i] = build_link(spec, names[i][0], 5, at(0, 0, -0.1), at(0.1, 0.4, 0.4));
        build_joint(spec, names[i][1], US_JOINT_CONTINUOUS, chassis, rocker[i], at(0, y, 0), Y, 0, 0);
        for (int k = 0; k < 2; k++)
            scene_add_ball(spec, rocker[i], 0.1, at(k ? -0.5 : 0.5, 0, -0.3));
    }
    build_coupling(spec, "differential", 1, 1, 2, 1, 0);
    *out_chassis = chassis;
    return spec;
}

static void a_rocker_differential_halves_the_step_under_one_wheel(void **state) {
    (void)state;
    int32_t chassis, rocker[2];
    us_spec *spec = rover_on_block(down(), &chassis, rocker);
    built b = build_sim(spec);
    double closure = 0;
    for (int i = 0; i < 4000; i++) {
        build_step(&b, 1, NULL);
        closure = fmax(closure, us_sim_get_closure(b.sim));
    }
    // Pitch about y of chassis and left rocker, in the world: (R x)_z = -sin.
    double pitch = -asin(us_quat_rotate(us_sim_get_pose(b.sim, (us_body){chassis}).q, X).z),
           left = -asin(us_quat_rotate(us_sim_get_pose(b.sim, (us_body){rocker[0]}).q, X).z),
           right = -asin(us_quat_rotate(us_sim_get_pose(b.sim, (us_body){rocker[1]}).q, X).z);
    us_vec3 load = {0, 0, 0};
    int on_block = 0;
    for (int32_t i = 0; i < us_sim_n_contact(b.sim); i++) {
        us_contact c = us_sim_get_contact(b.sim, i);
        load = us_vec3_add(load, c.body_a.i >= 0 ? c.force : us_vec3_scale(-1, c.force));
        if (fabs(c.point.z - 0.1) < 1e-3) on_block++;
    }
    printf("    closed to %.1e rad, pitch %.6f, left %.6f, right %.2e rad, load %.6f N\n", closure, pitch,
           left, right, load.z);
    assert_true(closure < 1e-9);
    assert_int_equal(on_block, 1);
    // Balls 1 m apart, one of them 0.1 m higher; the other rocker stands level; the chassis takes the mean.
    // It rolls by 0.06 rad and yaws a little, so that angles about y do not quite add up.
    build_near("left", left, -asin(0.1), 1e-3);
    build_near("right", right, 0, 1e-3);
    build_near("chassis", pitch, 0.5 * (left + right), 1e-5);
    build_near("load", load.z, 30 * G, 1e-3);
    us_vec3 p = scene_position(&b, chassis);
    build_step(&b, 10000, NULL);
    build_near("creep", us_vec3_norm(us_vec3_sub(scene_position(&b, chassis), p)), 0, 1e-8);
    build_free(&b);
}

// Up to four couplings are put in beside the factors of the tree's matrix; with more in the world the matrix
// is full. The rover falls, slides down a slope and bumps against the block the same either way.
static void a_differential_moves_the_same_whichever_matrix_it_is_in(void **state) {
    (void)state;
    double q[2][9];
    for (int k = 0; k < 2; k++) {
        int32_t chassis, rocker[2];
        us_spec *spec =
            rover_on_block(scene_gravity(45 * 3.14159265358979323846 / 180, 0.3), &chassis, rocker);
        // Far away, and hanging: a row of coupled pendulums.
        for (int i = 0, last = -1; k == 1 && i < 6; i++) {
            char name[2][16];
            snprintf(name[0], sizeof name[0], "bob%d", i);
            snprintf(name[1], sizeof name[1], "pivot%d", i);
            int32_t bob = build_link(spec, name[0], 1, at(0, 0, -0.1), at(0.01, 0.01, 0.01));
            int32_t pivot =
                build_joint(spec, name[1], US_JOINT_CONTINUOUS, US_WORLD, bob, at(100, i, 5), Y, 0, 0);
            if (i > 0) build_coupling(spec, name[0], last, 1, pivot, -1, 0);
            last = pivot;
        }
        built b = build_sim(spec);
        build_step(&b, 400, NULL);
        for (int i = 0; i < 9; i++)
            q[k][i] = us_sim_view_q(b.sim)[i];
        build_free(&b);
    }
    double difference = build_difference(q[0], q[1], 9);
    printf("    %.1e after sliding to %.3f, %.3f m\n", difference, q[0][4], q[0][5]);
    // Each step is solved to 1e-6 of the impulses in it or much better, which is 1e-11 m.
    assert_true(difference < 1e-8);
    assert_true(fabs(q[0][4]) + fabs(q[0][5]) > 0.05);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arm_presses_on_the_floor_with_its_limit),
        cmocka_unit_test(an_arm_that_reaches_its_goal_on_the_floor_presses_less),
        cmocka_unit_test(a_finger_at_its_stop_lends_the_stop_to_the_cube),
        cmocka_unit_test(dry_friction_of_a_joint_holds_what_leans_on_it),
        cmocka_unit_test(a_four_bar_on_the_ground_stays_closed),
        cmocka_unit_test(loops_and_boxes_beside_each_other_do_not_disturb_each_other),
        cmocka_unit_test(a_rocker_differential_halves_the_step_under_one_wheel),
        cmocka_unit_test(a_differential_moves_the_same_whichever_matrix_it_is_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// What acts on a joint is one law, whether the articulated-body solver moves it, the contact solver, or an
// explicit scheme.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "contact_scene.h"
#include "sim/sim.h"

static const us_vec3 Y = {0, 1, 0}, ZERO = {0, 0, 0};

// A rotor of 0.5 kg m^2 on a hinge about y. On the ground it rests on a smooth ball about its axis: the
// contact is solved and turns nothing.
typedef struct rotor {
    bool is_on_ground;
    us_integrator integrator;
    double lower, upper, friction, stiffness;
    double kp, kd, position, limit;
    double v0;
} rotor;

static built make(const rotor *r) {
    us_spec *spec = scene_spec(us_vec3_make(0, 0, -9.81), 0);
    us_world_settings world = *us_spec_view_world(spec);
    world.integrator = r->integrator;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    if (r->is_on_ground) scene_ground(spec);
    int32_t link = build_link(spec, "part", 2, ZERO, us_vec3_make(0.5, 0.5, 0.5));
    us_joint_def def = build_joint_at(US_JOINT_REVOLUTE, US_WORLD, link, us_vec3_make(0, 0, 0.0999), Y);
    def.has_limits = r->upper > r->lower;
    def.lower = r->lower;
    def.upper = r->upper;
    def.friction = r->friction;
    def.stiffness = r->stiffness;
    def.v0[0] = r->v0;
    int32_t joint = build_joint_def(spec, "joint", &def);
    scene_add_ball(spec, link, 0.1, ZERO);
    if (r->limit > 0) build_drive(spec, "motor", joint, r->kp, r->kd, r->position, r->limit);
    return build_sim(spec);
}

static int32_t count_rows(const us_sim *s) { return s->row_start[s->model->n_actuated]; }

static void a_motor_at_a_limit_rests_alike_in_the_air_and_on_the_ground(void **state) {
    (void)state;
    // 20 N m against a stop of 1e5 N m/rad: 2e-4 rad beyond it.
    for (int k = 0; k < 3; k++) {
        built b = make(&(rotor){.is_on_ground = k == 1,
                                .integrator = k == 2 ? US_INTEGRATOR_RK4 : US_INTEGRATOR_EULER,
                                .lower = -1,
                                .upper = 0.5,
                                .kp = 1000,
                                .kd = 20,
                                .position = 1,
                                .limit = 20});
        double highest = 0;
        for (int i = 0; i < 3000; i++) {
            build_step(&b, 1, NULL);
            double q = us_sim_view_q(b.sim)[0];
            highest = q > highest ? q : highest;
        }
        assert_int_equal(us_sim_n_contact(b.sim) > 0, k == 1);
        build_near("angle", us_sim_view_q(b.sim)[0], 0.5 + 20 / 1e5, 1e-9);
        build_near("effort", us_sim_view_torque(b.sim)[0], 20, 1e-12);
        // Critical damping, which slows a joint down before it is there: it does not swing beyond.
        build_near("highest", highest, 0.5 + 20 / 1e5, 1e-6);
        build_free(&b);
    }
}

static void a_joint_that_hits_its_limit_does_not_bounce(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        built b = make(&(rotor){.is_on_ground = k == 1,
                                .integrator = k == 2   ? US_INTEGRATOR_RK4
                                              : k == 3 ? US_INTEGRATOR_MIDPOINT
                                                       : US_INTEGRATOR_EULER,
                                .lower = -1,
                                .upper = 0.1,
                                .v0 = 2});
        double slowest = 2;
        for (int i = 0; i < 500; i++) {
            build_step(&b, 1, NULL);
            slowest = fmin(slowest, us_sim_view_v(b.sim)[0]);
        }
        printf("    %s: slowest %.2e rad/s, at %.6f rad\n", k == 1 ? "on the ground" : "in the air", slowest,
               us_sim_view_q(b.sim)[0]);
        assert_true(slowest > -1e-3 * 2);
        build_near("angle", us_sim_view_q(b.sim)[0], 0.1, 1e-4);
        build_free(&b);
    }
}

static void springs_and_motors_rest_alike_in_the_air_and_on_the_ground(void **state) {
    (void)state;
    // A spring of 30 N m/rad about 0 against a motor of 70 N m/rad about 1: 0.7 rad.
    for (int k = 0; k < 2; k++) {
        built b = make(&(rotor){.is_on_ground = k == 1,
                                .integrator = US_INTEGRATOR_EULER,
                                .stiffness = 30,
                                .kp = 70,
                                .kd = 20,
                                .position = 1,
                                .limit = 100});
        build_step(&b, 5000, NULL);
        // The contact solve leaves a residual of 1e-6 of the weight's impulse, and with it the last of the
        // way.
        build_near("angle", us_sim_view_q(b.sim)[0], 0.7, k == 1 ? 1e-5 : 1e-9);
        build_near("effort", us_sim_view_torque(b.sim)[0], 21, k == 1 ? 1e-3 : 1e-7);
        build_free(&b);
    }
}

static void friction_stops_a_joint_alike_in_the_air_and_on_the_ground(void **state) {
    (void)state;
    // 2 rad/s against 5 N m of 0.5 kg m^2: 10 rad/s^2, 0.2 s and 0.2 rad. A step is 1 ms: 0.002 rad.
    double angle[2];
    for (int k = 0; k < 2; k++) {
        built b =
            make(&(rotor){.is_on_ground = k == 1, .integrator = US_INTEGRATOR_EULER, .friction = 5, .v0 = 2});
        build_step(&b, 400, NULL);
        angle[k] = us_sim_view_q(b.sim)[0];
        build_near("angle", angle[k], 0.2, 2e-3);
        build_step(&b, 2000, NULL);
        build_near("creep", us_sim_view_q(b.sim)[0], angle[k], 1e-9);
        build_free(&b);
    }
    build_near("in the air and on the ground", angle[0], angle[1], 1e-6);
}

static void rows_that_can_give_no_torque_are_left_out(void **state) {
    (void)state;
    built b = make(&(rotor){.is_on_ground = true,
                            .integrator = US_INTEGRATOR_EULER,
                            .lower = -1,
                            .upper = 1,
                            .friction = 5,
                            .kp = 1000,
                            .kd = 20,
                            .limit = 20});
    build_step(&b, 1, NULL);
    assert_int_equal(b.sim->model->max_joint_row, 4);
    // The motor and friction; both limits are out of reach.
    assert_int_equal(count_rows(b.sim), 2);
    const double none = 0, all = 1;
    build_step(&b, 1, &(us_command){.drive_limit_scale = &none, .drive_position = &all});
    assert_int_equal(count_rows(b.sim), 1);
    assert_true(us_sim_view_torque(b.sim)[0] == 0);
    build_step(&b, 1, &(us_command){.drive_limit_scale = &all});
    assert_int_equal(count_rows(b.sim), 2);
    assert_true(us_sim_view_torque(b.sim)[0] == 20);
    const double near = 0.999;
    assert_int_equal(us_sim_set_joint(b.sim, (us_joint){0}, &near, NULL), US_OK);
    build_step(&b, 1, NULL);
    assert_int_equal(count_rows(b.sim), 3);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_motor_at_a_limit_rests_alike_in_the_air_and_on_the_ground),
        cmocka_unit_test(a_joint_that_hits_its_limit_does_not_bounce),
        cmocka_unit_test(springs_and_motors_rest_alike_in_the_air_and_on_the_ground),
        cmocka_unit_test(friction_stops_a_joint_alike_in_the_air_and_on_the_ground),
        cmocka_unit_test(rows_that_can_give_no_torque_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

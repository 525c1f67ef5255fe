// Joint reactions: weight, tension, contact forces, and nothing where nothing holds.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "query_world.h"

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

static const double G = 9.81;

static us_wrench reaction(const query_world *w, const char *joint) {
    return us_sim_get_joint_reaction(w->sim, query_joint(w, joint));
}

// Three links of 1, 2 and 3 kg, one under the other, the last one fixed to the second; and a weight on a
// slide.
static const char *const chain =
    "<scene name=\"chain\" version=\"1\"><world step=\"1 ms\"/>"
    "<object name=\"c\" xyz=\"1 2 3\">"
    "<link name=\"a\"><inertial mass=\"1\" com=\"0 0 -0.2\" inertia=\"0.01 0.01 0.01\"/></link>"
    "<link name=\"b\"><inertial mass=\"2\" com=\"0 0 -0.2\" inertia=\"0.01 0.01 0.01\"/></link>"
    "<link name=\"d\"><inertial mass=\"3\" com=\"0.1 0 -0.2\" inertia=\"0.01 0.01 0.01\"/></link>"
    "<joint name=\"ja\" type=\"fixed\" parent=\"world\" child=\"a\"/>"
    "<joint name=\"jb\" type=\"revolute\" parent=\"a\" child=\"b\" axis=\"1 0 0\" xyz=\"0 0 -0.4\"/>"
    "<joint name=\"jd\" type=\"fixed\" parent=\"b\" child=\"d\" xyz=\"0 0 -0.4\"/></object></scene>";

static void a_hanging_chain_carries_the_weight_below(void **state) {
    (void)state;
    query_world w = query_world_text(chain);
    assert_true(isnan(reaction(&w, "c/jb").f.z));
    query_world_step(&w, 10);
    // The hinge's axis is x; the last link's centre of mass is 0.1 m along x beside it.
    query_near_vec3("force at d", reaction(&w, "c/jd").f, at(0, 0, 3 * G), 1e-9);
    query_near_vec3("moment at d", reaction(&w, "c/jd").n, at(0, -0.1 * 3 * G, 0), 1e-9);
    query_near_vec3("force at b", reaction(&w, "c/jb").f, at(0, 0, 5 * G), 1e-9);
    query_near_vec3("moment at b", reaction(&w, "c/jb").n, at(0, -0.1 * 3 * G, 0), 1e-9);
    query_near_vec3("force at a", reaction(&w, "c/ja").f, at(0, 0, 6 * G), 1e-9);
    // A force of the last step is carried too, and is gone one step later.
    us_vec3 force = at(0, 3, 7), point = at(1, 2, 2.2);
    assert_int_equal(us_sim_apply_force(w.sim, query_body(&w, "c/d"), force, point), US_OK);
    query_world_step(&w, 1);
    // Along x nothing moves; along z hardly anything does.
    query_near("pulled", reaction(&w, "c/jb").f.z, 5 * G - 7, 0.05);
    query_world_step(&w, 1);
    query_near("let go", reaction(&w, "c/jb").f.z, 5 * G, 0.05);
    assert_true(isnan(us_sim_get_joint_reaction(w.sim, (us_joint){-1}).f.x));
    assert_true(isnan(us_sim_get_joint_reaction(w.sim, (us_joint){3}).f.x));
    assert_int_equal(us_sim_reset(w.sim), US_OK);
    assert_true(isnan(reaction(&w, "c/jb").f.z));
    query_world_free(&w);
}

// The pendulum of scenes/pendulum.xml: 1 kg at 1 m with 0.001 kg m^2. From the horizontal:
// tension = m (w^2 L + g cos q), with w^2 = 2 m g L cos q / (m L^2 + I).
static void a_pendulum_has_the_tension_of_its_swing(void **state) {
    (void)state;
    query_world w = query_world_file("scenes/pendulum.xml");
    for (int i = 0; i < 900; i++) {
        us_vec3 p0 = us_pose_point(us_sim_get_pose(w.sim, (us_body){0}), at(0, 0, -1));
        double q0 = us_sim_view_q(w.sim)[0];
        query_world_step(&w, 1);
        us_vec3 p1 = us_pose_point(us_sim_get_pose(w.sim, (us_body){0}), at(0, 0, -1));
        us_vec3 mean = us_vec3_scale(0.5, us_vec3_add(p0, p1));
        us_vec3 inwards = us_vec3_scale(-1 / us_vec3_norm(mean), mean);
        double angle = 0.5 * (q0 + us_sim_view_q(w.sim)[0]), square = 2 * G * cos(angle) / 1.001;
        us_wrench r = reaction(&w, "pendulum/hinge");
        // The step keeps the energy to 1e-6 of m g L.
        query_near("tension", us_vec3_dot(r.f, inwards), square + G * cos(angle), 1e-4);
        query_near("no torque about the hinge", r.n.y, 0, 1e-9);
    }
    query_world_free(&w);
}

// A rover on its wheels: of its floating root nothing is held by anything, and each wheel's hinge gives what
// the wheel's weight and its contacts need.
static void check_rover(query_world *w, int n, double tolerance) {
    us_model_counts count = us_model_get_counts(w->model);
    double weight = us_model_get_total_mass(w->model) * G;
    query_world_step(w, n);
    for (int step = 0; step < 20; step++) {
        query_world_step(w, 1);
        int n_float = 0, n_wheel = 0;
        for (int32_t j = 0; j < count.n_joint; j++) {
            us_joint_info info = us_model_get_joint(w->model, (us_joint){j});
            us_wrench r = us_sim_get_joint_reaction(w->sim, (us_joint){j});
            if (info.type == US_JOINT_FLOATING) {
                query_near("a floating base is not held", us_vec3_norm(r.f), 0, tolerance * weight);
                query_near("nor turned", us_vec3_norm(r.n), 0, tolerance * weight);
                n_float++;
            }
            us_vec3 contact = at(0, 0, 0);
            int n_point = 0;
            for (int32_t i = 0; i < us_sim_n_contact(w->sim); i++) {
                us_contact c = us_sim_get_contact(w->sim, i);
                if (c.body_a.i == info.child.i) contact = us_vec3_add(contact, c.force);
                if (c.body_b.i == info.child.i) contact = us_vec3_sub(contact, c.force);
                n_point += c.body_a.i == info.child.i || c.body_b.i == info.child.i;
            }
            if (info.type != US_JOINT_CONTINUOUS || n_point == 0) continue;
            // At rest: the hinge takes what the ground gives, less the wheel's own weight.
            us_vec3 want = at(0, 0, us_model_get_inertia(w->model, info.child).mass * G);
            query_near_vec3("wheel", r.f, us_vec3_sub(want, contact), 1e-3 * weight);
            n_wheel++;
        }
        assert_true(n_float > 0 && n_wheel >= 4);
    }
}

static void on_a_standing_rover_wheels_balance_their_contacts(void **state) {
    (void)state;
    query_world w = query_world_text(
        "<scene name=\"rover\" version=\"1\"><world step=\"1 ms\"><shape type=\"plane\"/></world>"
        "<object name=\"r\" xyz=\"0 0 0.101\"><link name=\"body\"><inertial mass=\"10\" com=\"0.03 0.01 0\" "
        "inertia=\"0.2 0.2 0.2\"/></link>"
#define WHEEL(n, x, y)                                                                                    \
    "<link name=\"w" n "\"><inertial mass=\"1\" inertia=\"0.004 0.006 0.004\"/><shape type=\"cylinder\" " \
    "size=\"0.1 0.05\" rpy=\"-90 0 0 deg\"/></link><joint name=\"s" n                                     \
    "\" type=\"continuous\" parent=\"body\" child=\"w" n "\" axis=\"0 1 0\" xyz=\"" x " " y               \
    " 0\"/><drive joint=\"s" n "\" kd=\"5\"/>"
        WHEEL("0", "0.2", "0.2") WHEEL("1", "0.2", "-0.2") WHEEL("2", "-0.2", "0.2")
            WHEEL("3", "-0.2", "-0.2") "</object></scene>");
    check_rover(&w, 1500, 1e-6);
    // Driven off, the wheels' torques go through the hinges: the drive's torque is the moment about the axle.
    for (int i = 0; i < 4; i++)
        assert_int_equal(us_sim_set_drive(w.sim, (us_drive){i}, 0, 3), US_OK);
    for (int step = 0; step < 300; step++) {
        query_world_step(&w, 1);
        for (int i = 0; i < 4; i++) {
            char name[8];
            snprintf(name, sizeof name, "r/s%d", i);
            us_vec3 axle = us_quat_rotate(us_sim_get_pose(w.sim, query_body(&w, "r/body")).q, at(0, 1, 0));
            query_near("torque", us_vec3_dot(reaction(&w, name).n, axle), us_sim_view_torque(w.sim)[i], 1e-3);
        }
    }
    query_world_free(&w);
}

static void nothing_holds_rovers_that_drive_on_soil(void **state) {
    (void)state;
    // Mean over a step of contact rows, slip rows and rolling resistance: all of it is in the sum.
    query_world w = query_world_file("scenes/default.xml");
    query_world_step(&w, 1200);
    int n_soil = 0;
    for (int step = 0; step < 50; step++) {
        query_world_step(&w, 1);
        n_soil += us_sim_n_soil_contact(w.sim);
        us_wrench r = reaction(&w, "k10/floating_base");
        // Of a weight of 900 N.
        query_near("force", us_vec3_norm(r.f), 0, 1e-6);
        query_near("moment", us_vec3_norm(r.n), 0, 1e-6);
    }
    assert_true(n_soil > 100);
    query_world_free(&w);
}

static void a_free_tree_that_tumbles_holds_itself(void **state) {
    (void)state;
    query_world w = query_world_text(
        "<scene name=\"tumble\" version=\"1\"><world step=\"1 ms\"/><object name=\"o\"><base linear=\"1 2 "
        "3\" "
        "angular=\"0.5 1 -2\"/><link name=\"a\"><inertial mass=\"2\" com=\"0.1 0 0\" inertia=\"0.1 0.2 "
        "0.3\"/></link><link name=\"b\"><inertial mass=\"1\" com=\"0 0.2 0\" inertia=\"0.05 0.04 "
        "0.03\"/></link>"
        "<link name=\"c\"><inertial mass=\"0.5\" com=\"0 0 0.3\" inertia=\"0.01 0.02 0.01\"/></link>"
        "<joint name=\"ab\" type=\"continuous\" parent=\"a\" child=\"b\" axis=\"0 1 0\" xyz=\"0.3 0 0\" "
        "v=\"3\"/><joint name=\"bc\" type=\"continuous\" parent=\"b\" child=\"c\" axis=\"1 0 0\" xyz=\"0 0.4 "
        "0\"/><drive joint=\"bc\" torque=\"0.3\"/></object></scene>");
    int32_t root = -1;
    for (int32_t j = 0; j < us_model_get_counts(w.model).n_joint; j++) {
        if (us_model_get_joint(w.model, (us_joint){j}).type == US_JOINT_FLOATING) root = j;
    }
    assert_true(root >= 0);
    for (int i = 0; i < 500; i++) {
        query_world_step(&w, 1);
        us_wrench r = us_sim_get_joint_reaction(w.sim, (us_joint){root});
        // The mean acceleration of a tree that turns is that of its middle up to h^2: 1e-6 of forces of 30 N.
        query_near("force", us_vec3_norm(r.f), 0, 2e-4);
        query_near("moment", us_vec3_norm(r.n), 0, 2e-4);
        us_vec3 axis = us_quat_rotate(us_sim_get_pose(w.sim, query_body(&w, "o/b")).q, at(1, 0, 0));
        query_near("torque", us_vec3_dot(reaction(&w, "o/bc").n, axis), 0.3, 2e-3);
    }
    query_world_free(&w);
}

static void loops_have_no_reaction(void **state) {
    (void)state;
    query_world w = query_world_file("scenes/four-bar.xml");
    query_world_step(&w, 5);
    assert_true(isnan(us_sim_get_joint_reaction(w.sim, (us_joint){0}).f.x));
    query_world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hanging_chain_carries_the_weight_below),
        cmocka_unit_test(a_pendulum_has_the_tension_of_its_swing),
        cmocka_unit_test(on_a_standing_rover_wheels_balance_their_contacts),
        cmocka_unit_test(nothing_holds_rovers_that_drive_on_soil),
        cmocka_unit_test(a_free_tree_that_tumbles_holds_itself),
        cmocka_unit_test(loops_have_no_reaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

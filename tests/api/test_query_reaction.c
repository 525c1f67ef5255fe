// Joint reactions: weight, tension, contact forces, and nothing where nothing holds.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

// ---------------------------------------------------------------- loops

// Three bars of 1 m and 1 kg in the x-z plane, closed by a loop, with pivots `base` m apart; `up` 1: on its
// pivots, -1: it hangs. `v` rad/s of the crank.
static query_world four_bar(const char *step, const char *integrator, const char *loop, int up, double base,
                            double v, const char *more) {
    char text[3000];
    snprintf(text, sizeof text,
             "<scene name='bars' version='1'><world step='%s' integrator='%s'/><object name='o'>"
             "<link name='crank'><inertial mass='1' com='0 0 %g' inertia='0.0833 0.0833 0.001'/></link>"
             "<link name='coupler'><inertial mass='1' com='0.5 0 0' inertia='0.001 0.0833 0.0833'/></link>"
             "<link name='rocker'><inertial mass='1' com='0 0 %g' inertia='0.0833 0.0833 0.001'/></link>"
             "<joint name='a' type='continuous' parent='world' child='crank' axis='0 1 0' v='%g'/>"
             "<joint name='b' type='continuous' parent='crank' child='coupler' xyz='0 0 %d' axis='0 1 0' "
             "v='%g'/>"
             "<joint name='d' type='continuous' parent='world' child='rocker' xyz='%g 0 0' axis='0 1 0' "
             "v='%g'/>"
             "<loop name='c' type='%s'><a link='coupler' xyz='1 0 0' rpy='90 0 0 deg'/><b link='rocker' "
             "xyz='0 0 %d' rpy='90 0 0 deg'/></loop>%s</object></scene>",
             step, integrator, 0.5 * up, 0.5 * up, v, up, -v, base, v, loop, up, more);
    return query_world_text(text);
}

static const char *const integrators[] = {"euler", "midpoint", "rk4", "adaptive"};
static const char *const loop_types[] = {"point", "hinge"};

static void a_hanging_four_bar_carries_its_weight_by_halves(void **state) {
    (void)state;
    for (int k = 0; k < 8; k++) {
        query_world w = four_bar("1 ms", integrators[k / 2], loop_types[k % 2], -1, 1, 0, "");
        assert_true(isnan(us_sim_get_loop_reaction(w.sim, 0).f.z));
        query_world_step(&w, 10);
        // Each bar that hangs carries half of the coupler; the pivots carry it all.
        query_near_vec3("a", reaction(&w, "o/a").f, at(0, 0, 1.5 * G), 1e-9);
        query_near_vec3("b", reaction(&w, "o/b").f, at(0, 0, 0.5 * G), 1e-9);
        query_near_vec3("d", reaction(&w, "o/d").f, at(0, 0, 1.5 * G), 1e-9);
        query_near_vec3("moment", reaction(&w, "o/b").n, at(0, 0, 0), 1e-9);
        // The rocker gives to the coupler.
        query_near_vec3("loop", us_sim_get_loop_reaction(w.sim, 0).f, at(0, 0, 0.5 * G), 1e-9);
        query_near_vec3("loop's moment", us_sim_get_loop_reaction(w.sim, 0).n, at(0, 0, 0), 1e-9);
        assert_true(isnan(us_sim_get_loop_reaction(w.sim, 1).f.x));
        assert_true(isnan(us_sim_get_loop_reaction(w.sim, -1).f.x));
        us_sim_poison(w.sim);
        assert_true(isnan(us_sim_get_loop_reaction(w.sim, 0).f.x));
        query_world_free(&w);
    }
}

// Leaning by an angle, and held there by a drive at the crank: the coupler's weight in the loop goes along
// the rocker, which nothing else turns.
static void a_leaning_four_bar_that_is_held_is_a_matter_of_statics(void **state) {
    (void)state;
    query_world w =
        four_bar("1 ms", "midpoint", "point", 1, 1, 0, "<drive joint='a' kp='1e6' kd='1e4' position='0.5'/>");
    const double q[3] = {0.5, -0.5, 0.5};
    assert_int_equal(us_sim_set_state(w.sim, q, NULL), US_OK);
    query_world_step(&w, 2000);
    const double lean = us_sim_view_q(w.sim)[0];
    // Rocker: its own weight at half its length and the loop's force at its end have no moment about its
    // pivot. Coupler: the loop carries half of its weight, since the other half goes through joint b.
    us_vec3 loop = us_sim_get_loop_reaction(w.sim, 0).f;
    query_near("loop up", loop.z, 0.5 * G, 1e-6);
    query_near("loop along", loop.x, (0.5 * G + 0.5 * G) * tan(lean), 1e-5);
    query_near("sum", reaction(&w, "o/a").f.z + reaction(&w, "o/d").f.z, 3 * G, 1e-6);
    query_near("sum along", reaction(&w, "o/a").f.x + reaction(&w, "o/d").f.x, 0, 1e-6);
    // The drive holds all three: half, the whole and half of a weight at 1 m.
    query_near("drive", reaction(&w, "o/a").n.y, -2 * G * sin(lean), 1e-4);
    query_near("passive", reaction(&w, "o/d").n.y, 0, 1e-6);
    query_world_free(&w);
}

// The judge: poses and twists before and after a step alone give each link's change of momentum, to which
// joints, loops, contacts and gravity must add up.
typedef struct momentum {
    us_vec3 p, L, com;
} momentum;

static momentum momentum_of(const query_world *w, us_body body) {
    us_inertia I = us_model_get_inertia(w->model, body);
    us_pose X = us_sim_get_pose(w->sim, body);
    us_twist V = us_sim_get_twist(w->sim, body);
    us_vec3 arm = us_quat_rotate(X.q, I.com), wl = us_quat_rotate(us_quat_conj(X.q), V.w);
    const double *m = I.about_com;
    us_vec3 L = at(m[0] * wl.x + m[3] * wl.y + m[4] * wl.z, m[3] * wl.x + m[1] * wl.y + m[5] * wl.z,
                   m[4] * wl.x + m[5] * wl.y + m[2] * wl.z);
    return (momentum){us_vec3_scale(I.mass, us_vec3_add(V.v, us_vec3_cross(V.w, arm))),
                      us_quat_rotate(X.q, L), us_vec3_add(X.p, arm)};
}

// A wrench about the point `at_W` as one about the origin of the world; sums have one point then.
static void add_at(us_wrench *sum, double sign, us_wrench x, us_vec3 at_W) {
    us_vec3 n = us_vec3_add(x.n, us_vec3_cross(at_W, x.f));
    sum->f = us_vec3_add(sum->f, us_vec3_scale(sign, x.f));
    sum->n = us_vec3_add(sum->n, us_vec3_scale(sign, n));
}

typedef struct closed {
    const char *body_a, *body_b;
    us_vec3 p_A;  // the loop's point on the first link
} closed;

enum { MAX_LINK = 8 };

// One step; force and moment (about the centre of mass) that are missing, the largest of all links.
static void step_and_judge(query_world *w, const closed *loop, double *out_force, double *out_moment) {
    const us_model_counts n = us_model_get_counts(w->model);
    momentum before[MAX_LINK], after[MAX_LINK];
    us_vec3 origin[MAX_LINK], mid[MAX_LINK];
    us_vec3 place = us_pose_point(us_sim_get_pose(w->sim, query_body(w, loop->body_a)), loop->p_A);
    assert_true(n.n_body <= MAX_LINK);
    for (int32_t b = 0; b < n.n_body; b++) {
        before[b] = momentum_of(w, (us_body){b});
        origin[b] = us_sim_get_pose(w->sim, (us_body){b}).p;
    }
    query_world_step(w, 1);
    us_vec3 place_after = us_pose_point(us_sim_get_pose(w->sim, query_body(w, loop->body_a)), loop->p_A);
    place = us_vec3_scale(0.5, us_vec3_add(place, place_after));
    const double h = us_model_get_step(w->model);
    us_wrench sum[MAX_LINK] = {0};
    for (int32_t b = 0; b < n.n_body; b++) {
        after[b] = momentum_of(w, (us_body){b});
        mid[b] = us_vec3_scale(0.5, us_vec3_add(before[b].com, after[b].com));
        origin[b] = us_vec3_scale(0.5, us_vec3_add(origin[b], us_sim_get_pose(w->sim, (us_body){b}).p));
        us_wrench weight = {{0, 0, 0}, {0, 0, -G * us_model_get_inertia(w->model, (us_body){b}).mass}};
        add_at(&sum[b], 1, weight, mid[b]);
    }
    for (int32_t j = 0; j < n.n_joint; j++) {
        us_joint_info info = us_model_get_joint(w->model, (us_joint){j});
        us_wrench r = us_sim_get_joint_reaction(w->sim, (us_joint){j});
        add_at(&sum[info.child.i], 1, r, origin[info.child.i]);
        if (info.parent.i >= 0) add_at(&sum[info.parent.i], -1, r, origin[info.child.i]);
    }
    us_wrench r = us_sim_get_loop_reaction(w->sim, 0);
    add_at(&sum[query_body(w, loop->body_a).i], 1, r, place);
    if (loop->body_b) add_at(&sum[query_body(w, loop->body_b).i], -1, r, place);
    for (int32_t i = 0; i < us_sim_n_contact(w->sim); i++) {
        us_contact c = us_sim_get_contact(w->sim, i);
        us_wrench f = {{0, 0, 0}, c.force};
        if (c.body_a.i >= 0) add_at(&sum[c.body_a.i], 1, f, c.point);
        if (c.body_b.i >= 0) add_at(&sum[c.body_b.i], -1, f, c.point);
    }
    for (int32_t b = 0; b < n.n_body; b++) {
        us_vec3 need = us_vec3_scale(1 / h, us_vec3_sub(after[b].p, before[b].p)),
                turn = us_vec3_scale(1 / h, us_vec3_sub(after[b].L, before[b].L));
        us_vec3 moment = us_vec3_sub(sum[b].n, us_vec3_cross(mid[b], sum[b].f));
        *out_force = fmax(*out_force, us_vec3_norm(us_vec3_sub(sum[b].f, need)));
        *out_moment = fmax(*out_moment, us_vec3_norm(us_vec3_sub(moment, turn)));
    }
}

typedef struct balance {
    double force, moment;  // N, N m: missing at a link
    double passive;        // N m, along the axes of hinges that nothing turns
    double load;           // N, in the loop
} balance;

// The largest in 1.5 s. The pivots are so near that the cranks go round, and the bars never lie in one line.
static balance swing(const char *step, const char *integrator, const char *type) {
    static const closed loop = {"o/coupler", "o/rocker", {1, 0, 0}};
    static const char *const joints[] = {"o/a", "o/b", "o/d"};
    query_world w = four_bar(step, integrator, type, 1, 0.7, 2, "");
    balance most = {0, 0, 0, 0};
    while (us_sim_get_time(w.sim) < 1.5) {
        step_and_judge(&w, &loop, &most.force, &most.moment);
        for (int j = 0; j < 3; j++)
            most.passive = fmax(most.passive, fabs(reaction(&w, joints[j]).n.y));
        most.load = fmax(most.load, us_vec3_norm(us_sim_get_loop_reaction(w.sim, 0).f));
    }
    print_message("%s, %s, %s: %.3g N, %.3g N m missing, %.3g N m at pivots; loop up to %.3g N\n", step,
                  integrator, type, most.force, most.moment, most.passive, most.load);
    query_world_free(&w);
    assert_true(most.load > 10);
    return most;
}

static double worst(balance b) { return fmax(b.force, fmax(b.moment, b.passive)); }

static void every_link_of_a_four_bar_that_swings_is_in_balance(void **state) {
    (void)state;
    for (int k = 0; k < 8; k++) {
        const char *integrator = integrators[k / 2], *type = loop_types[k % 2];
        balance coarse = swing("1 ms", integrator, type), fine = swing("0.25 ms", integrator, type);
        // Euler's method is of first order in the step, the others of second.
        const double share = k < 2 ? 0.02 : 2e-4, ratio = k < 2 ? 3 : 8;
        if (!(worst(coarse) < share * coarse.load && worst(coarse) > ratio * worst(fine)))
            fail_msg("%s, %s: %g and %g are missing", integrator, type, worst(coarse), worst(fine));
    }
}

// Two legs with a hinge at the top and a cross-bar that a loop ties to the second leg, on the ground.
static void a_loop_on_the_ground_is_in_balance(void **state) {
    (void)state;
    static const char text[] =
        "<scene name='ladder' version='1'><world step='1 ms'><shape type='plane'/></world>"
        "<object name='o' base='floating' xyz='0 0 1'>"
        "<link name='left'><inertial mass='2' com='-0.25 0 -0.5' inertia='0.2 0.2 0.02'/><shape "
        "type='sphere' "
        "size='0.05' xyz='-0.5 0.3 -0.95'/><shape type='sphere' size='0.05' xyz='-0.5 -0.3 -0.95'/></link>"
        "<link name='right'><inertial mass='3' com='0.25 0 -0.5' inertia='0.2 0.2 0.02'/><shape "
        "type='sphere' "
        "size='0.05' xyz='0.5 0.3 -0.95'/><shape type='sphere' size='0.05' xyz='0.5 -0.3 -0.95'/></link>"
        "<link name='bar'><inertial mass='0.5' com='0.25 0 0' inertia='0.001 0.01 0.01'/></link>"
        "<joint name='top' type='continuous' parent='left' child='right' axis='0 1 0'/>"
        "<joint name='bar' type='continuous' parent='left' child='bar' xyz='-0.25 0 -0.5' axis='0 1 0'/>"
        "<loop name='tie' type='%s'><a link='bar' xyz='0.5 0 0' rpy='90 0 0 deg'/><b link='right' xyz='0.25 "
        "0 "
        "-0.5' rpy='90 0 0 deg'/></loop></object></scene>";
    static const closed loop = {"o/bar", "o/right", {0.5, 0, 0}};
    for (int k = 0; k < 2; k++) {
        char scene[3000];
        snprintf(scene, sizeof scene, text, loop_types[k]);
        query_world w = query_world_text(scene);
        query_world_step(&w, 3000);
        double force = 0, moment = 0;
        for (int i = 0; i < 100; i++)
            step_and_judge(&w, &loop, &force, &moment);
        print_message("%s on the ground: %.3g N, %.3g N m missing\n", loop_types[k], force, moment);
        if (!(force < 1e-3 && moment < 1e-3)) fail_msg("%g N, %g N m", force, moment);
        // The bar hangs between two hinges.
        us_vec3 tie = us_sim_get_loop_reaction(w.sim, 0).f;
        query_near("tie", tie.z, 0.25 * G, 1e-3);
        assert_true(fabs(tie.x) > 0.1);
        query_near("bar", reaction(&w, "o/bar").f.z, 0.25 * G, 1e-3);
        query_near("top", reaction(&w, "o/top").n.y, 0, 1e-3);
        query_world_free(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hanging_chain_carries_the_weight_below),
        cmocka_unit_test(a_pendulum_has_the_tension_of_its_swing),
        cmocka_unit_test(on_a_standing_rover_wheels_balance_their_contacts),
        cmocka_unit_test(nothing_holds_rovers_that_drive_on_soil),
        cmocka_unit_test(a_free_tree_that_tumbles_holds_itself),
        cmocka_unit_test(a_hanging_four_bar_carries_its_weight_by_halves),
        cmocka_unit_test(a_leaning_four_bar_that_is_held_is_a_matter_of_statics),
        cmocka_unit_test(every_link_of_a_four_bar_that_swings_is_in_balance),
        cmocka_unit_test(a_loop_on_the_ground_is_in_balance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

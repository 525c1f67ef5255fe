#include "contract_build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

static us_link_def link_def(const char *name, double mass, us_vec3 com, double xx, double yy, double zz) {
    us_link_def d = us_link_def_default();
    d.name = name;
    d.inertia = (us_inertia){mass, com, {xx, yy, zz, 0, 0, 0}};
    return d;
}

int32_t contract_link(us_spec *spec, const char *name, double mass, us_vec3 com, double xx, double yy,
                      double zz) {
    us_link_def d = link_def(name, mass, com, xx, yy, zz);
    int32_t i = -1;
    assert_int_equal(us_spec_add_link(spec, &d, &i), US_OK);
    return i;
}

us_joint_def contract_joint_def(us_joint_type type, const char *name, int32_t parent, int32_t child,
                                us_vec3 p_PF) {
    us_joint_def d = us_joint_def_default(type);
    d.name = name;
    d.parent = parent;
    d.child = child;
    d.X_PF.p = p_PF;
    return d;
}

int32_t contract_add_joint(us_spec *spec, const us_joint_def *def) {
    int32_t i = -1;
    assert_int_equal(us_spec_add_joint(spec, def, &i), US_OK);
    return i;
}

int32_t contract_joint(us_spec *spec, us_joint_type type, const char *name, int32_t parent, int32_t child,
                       us_vec3 p_PF) {
    us_joint_def d = contract_joint_def(type, name, parent, child, p_PF);
    return contract_add_joint(spec, &d);
}

const char *contract_world_name(contract_world world) {
    static const char *const names[] = {"every joint", "loops", "free"};
    return (unsigned)world < (unsigned)CONTRACT_WORLD_COUNT ? names[world] : "?";
}

// ---------------------------------------------------------------- worlds

// The first status that is not US_OK stays; the calls after it do nothing.
typedef struct builder {
    us_spec *spec;
    us_status status;
} builder;

static int32_t add_link(builder *b, const char *name, double mass, us_vec3 com) {
    us_link_def d = link_def(name, mass, com, 0.02 * mass, 0.03 * mass, 0.015 * mass);
    d.inertia.about_com[3] = 0.002 * mass;
    d.inertia.about_com[5] = -0.001 * mass;
    int32_t i = -1;
    if (!b->status) b->status = us_spec_add_link(b->spec, &d, &i);
    return i;
}

static int32_t add_joint(builder *b, const us_joint_def *d) {
    int32_t i = -1;
    if (!b->status) b->status = us_spec_add_joint(b->spec, d, &i);
    return i;
}

static void add_drive(builder *b, const char *name, int32_t joint, int32_t coordinate, double kp, double kd,
                      double position, double limit) {
    us_drive_def d = us_drive_def_default();
    d.name = name;
    d.joint = joint;
    d.coordinate = coordinate;
    d.kp = kp;
    d.kd = kd;
    d.position = position;
    d.limit = limit;
    if (!b->status) b->status = us_spec_add_drive(b->spec, &d, NULL);
}

// Two branches on a fixed base, so that every kind of joint has parents and children of other kinds.
static void every_joint(builder *b) {
    int32_t base = add_link(b, "base", 5, at(0, 0, 0.1)), flange = add_link(b, "flange", 0.2, at(0, 0.05, 0));
    us_joint_def j = contract_joint_def(US_JOINT_FIXED, "mount", US_WORLD, base, at(0.3, -0.2, 1));
    add_joint(b, &j);

    int32_t upper = add_link(b, "upper", 2, at(0, 0, -0.2));
    j = contract_joint_def(US_JOINT_REVOLUTE, "shoulder", base, upper, at(0, 0, 0.2));
    j.axis = at(0, 1, 0.2);
    j.friction = 0.01;
    j.armature = 0.01;
    j.q0[0] = 0.4;
    j.v0[0] = -1;
    j.has_limits = true;
    j.lower = -1;
    j.upper = 0.5;
    int32_t shoulder = add_joint(b, &j);
    j = contract_joint_def(US_JOINT_FIXED, "flange_mount", upper, flange, at(0, 0, -0.4));
    j.X_PF.q = us_quat_from_rpy(0.1, -0.2, 0.3);
    add_joint(b, &j);
    int32_t lower = add_link(b, "lower", 1, at(0.02, 0, -0.15));
    j = contract_joint_def(US_JOINT_UNIVERSAL, "elbow", flange, lower, at(0, 0, -0.05));
    j.axis2 = at(0, 1, 1);
    j.damping = 0.3;
    j.stiffness = 4;
    j.rest = 0.1;
    j.q0[1] = 0.2;
    int32_t elbow = add_joint(b, &j);
    int32_t slider = add_link(b, "slider", 0.5, at(0, 0.01, 0));
    j = contract_joint_def(US_JOINT_PRISMATIC, "slide", lower, slider, at(0, 0, -0.3));
    j.axis = at(0, 0, -2);
    j.damping = 1;
    j.stiffness = 200;
    int32_t slide = add_joint(b, &j);
    int32_t ball = add_link(b, "ball", 0.4, at(0, 0.05, -0.1));
    j = contract_joint_def(US_JOINT_SPHERICAL, "wrist", slider, ball, at(0, 0, -0.1));
    j.damping = 0.02;
    j.q0[0] = 0.9;
    j.q0[1] = 0.3;
    j.v0[2] = 2;
    add_joint(b, &j);
    int32_t wheel = add_link(b, "wheel", 0.3, at(0, 0, 0));
    j = contract_joint_def(US_JOINT_CONTINUOUS, "spin", ball, wheel, at(0, 0.1, 0));
    j.v0[0] = 5;
    int32_t spin = add_joint(b, &j);

    int32_t screw = add_link(b, "screw", 1, at(0.1, 0, 0));
    j = contract_joint_def(US_JOINT_HELICAL, "screw_joint", base, screw, at(0.5, 0, 0));
    j.axis = at(0, 0, 1);
    j.pitch = 0.03;
    j.stiffness = 5;
    j.q0[0] = 0.7;
    add_joint(b, &j);
    int32_t tube = add_link(b, "tube", 0.8, at(0, 0.1, 0));
    j = contract_joint_def(US_JOINT_CYLINDRICAL, "tube_joint", screw, tube, at(0.2, 0, 0));
    j.damping = 0.5;
    j.stiffness = 30;
    int32_t tube_joint = add_joint(b, &j);
    int32_t puck = add_link(b, "puck", 0.6, at(0, 0, 0.02));
    j = contract_joint_def(US_JOINT_PLANAR, "table", tube, puck, at(0, 0.2, 0));
    j.axis = at(0, 0, 1);
    j.damping = 0.4;
    j.stiffness = 50;
    j.v0[0] = 0.3;
    j.v0[2] = 1;
    int32_t table = add_joint(b, &j);
    int32_t leaf = add_link(b, "leaf", 0.1, at(0, 0, 0));
    j = contract_joint_def(US_JOINT_FLOATING, "leaf_joint", puck, leaf, at(0, 0, 0.3));
    j.v0[0] = 1;
    j.v0[5] = 0.5;
    j.damping = 0.1;
    add_joint(b, &j);

    add_drive(b, "shoulder_motor", shoulder, 0, 40, 4, 0.2, 30);
    add_drive(b, "elbow_motor", elbow, 1, 10, 1, -0.2, 0);
    add_drive(b, "slide_motor", slide, 0, 0, 5, 0, 0.5);
    add_drive(b, "spin_motor", spin, 0, 0, 0, 0, 0);
    add_drive(b, "tube_motor", tube_joint, 1, 20, 2, 0.05, 0);
    add_drive(b, "table_motor", table, 2, 0, 0.1, 0, 0);
    us_coupling_def c = us_coupling_def_default();
    c.name = "gear";
    c.n_term = 2;
    c.joint[0] = slide;
    c.factor[0] = 1;
    c.joint[1] = tube_joint;
    c.coordinate[1] = 1;
    c.factor[1] = -0.5;
    c.offset = 0.01;
    if (!b->status) b->status = us_spec_add_coupling(b->spec, &c, NULL);
}

// A planar four-bar of 0.2, 0.4, 0.3 and 0.4 m in the x-z plane; a parallelogram closed by a hinge; a pin
// welded to the world.
static void loops(builder *b) {
    int32_t crank = add_link(b, "crank", 0.5, at(0.1, 0, 0)), rod = add_link(b, "rod", 0.8, at(0.2, 0, 0)),
            rocker = add_link(b, "rocker", 0.6, at(0, 0, 0.15));
    us_joint_def j = contract_joint_def(US_JOINT_REVOLUTE, "crank_joint", US_WORLD, crank, at(0, 0, 0));
    j.axis = at(0, 1, 0);
    j.q0[0] = -1.2;
    j.v0[0] = 2;
    int32_t crank_joint = add_joint(b, &j);
    j = contract_joint_def(US_JOINT_REVOLUTE, "rod_joint", crank, rod, at(0.2, 0, 0));
    j.axis = at(0, 1, 0);
    j.q0[0] = 1;
    j.damping = 0.01;
    add_joint(b, &j);
    j = contract_joint_def(US_JOINT_REVOLUTE, "rocker_joint", US_WORLD, rocker, at(0.4, 0, 0));
    j.axis = at(0, 1, 0);
    j.q0[0] = 0.1;
    j.friction = 0.005;
    add_joint(b, &j);
    us_loop_def l = us_loop_def_default(US_LOOP_POINT);
    l.name = "pin";
    l.link_a = rod;
    l.X_AC.p = at(0.4, 0, 0);
    l.link_b = rocker;
    l.X_BD.p = at(0, 0, 0.3);
    if (!b->status) b->status = us_spec_add_loop(b->spec, &l, NULL);

    int32_t left = add_link(b, "left", 0.5, at(0, 0, -0.2)),
            right = add_link(b, "right", 0.5, at(0, 0, -0.2)), bar = add_link(b, "bar", 0.5, at(0.25, 0, 0));
    j = contract_joint_def(US_JOINT_CONTINUOUS, "left_joint", US_WORLD, left, at(0, 1, 1));
    j.axis = at(0, 1, 0);
    j.q0[0] = 0.5;
    int32_t left_joint = add_joint(b, &j);
    j = contract_joint_def(US_JOINT_CONTINUOUS, "right_joint", US_WORLD, right, at(0.5, 1, 1));
    j.axis = at(0, 1, 0);
    j.q0[0] = 0.5;
    int32_t right_joint = add_joint(b, &j);
    j = contract_joint_def(US_JOINT_CONTINUOUS, "bar_joint", left, bar, at(0, 0, -0.4));
    j.axis = at(0, 1, 0);
    j.q0[0] = -0.5;
    add_joint(b, &j);
    l = us_loop_def_default(US_LOOP_HINGE);
    l.name = "hinge";
    l.link_a = bar;
    l.X_AC.p = at(0.5, 0, 0);
    l.link_b = right;
    l.X_BD.p = at(0, 0, -0.4);
    l.X_AC.q = l.X_BD.q = us_quat_from_z(at(0, 1, 0));
    if (!b->status) b->status = us_spec_add_loop(b->spec, &l, NULL);

    int32_t pin = add_link(b, "anchored", 1, at(0.1, 0, 0));
    j = contract_joint_def(US_JOINT_FLOATING, "anchored_joint", US_WORLD, pin, at(2, 0, 0));
    j.q0[4] = 0.01;
    add_joint(b, &j);
    l = us_loop_def_default(US_LOOP_WELD);
    l.name = "anchor";
    l.link_a = pin;
    l.link_b = US_WORLD;
    l.X_BD.p = at(2, 0, 0);
    if (!b->status) b->status = us_spec_add_loop(b->spec, &l, NULL);

    us_coupling_def c = us_coupling_def_default();
    c.name = "parallel";
    c.n_term = 2;
    c.joint[0] = left_joint;
    c.factor[0] = 1;
    c.joint[1] = right_joint;
    c.factor[1] = -1;
    if (!b->status) b->status = us_spec_add_coupling(b->spec, &c, NULL);
    add_drive(b, "crank_motor", crank_joint, 0, 0, 0.2, 0, 2);
    add_drive(b, "left_motor", left_joint, 0, 5, 0.5, 0.2, 0);
}

static void free_things(builder *b) {
    int32_t body = add_link(b, "rock", 3, at(0.01, -0.02, 0.03)),
            lamp = add_link(b, "lamp", 0.2, at(0, 0, 0.1));
    us_joint_def j = contract_joint_def(US_JOINT_FLOATING, "rock_joint", US_WORLD, body, at(0, 0, 5));
    j.v0[0] = 0.1;
    j.v0[1] = 6;
    j.v0[2] = 0.2;
    j.v0[5] = 3;
    add_joint(b, &j);
    j = contract_joint_def(US_JOINT_FIXED, "lamp_joint", body, lamp, at(0, 0, 0.2));
    add_joint(b, &j);

    int32_t trunk = add_link(b, "trunk", 4, at(0, 0, 0)), arm = add_link(b, "arm", 0.7, at(0, 0, 0.2)),
            leg = add_link(b, "leg", 0.9, at(0, 0, -0.2));
    j = contract_joint_def(US_JOINT_FLOATING, "trunk_joint", US_WORLD, trunk, at(3, 0, 5));
    j.X_PF.q = us_quat_from_rpy(0.3, 0.2, 0.1);
    j.v0[2] = 2;
    j.v0[3] = 1;
    add_joint(b, &j);
    j = contract_joint_def(US_JOINT_REVOLUTE, "arm_joint", trunk, arm, at(0, 0.2, 0.2));
    j.v0[0] = 3;
    j.friction = 0.002;
    int32_t arm_joint = add_joint(b, &j);
    j = contract_joint_def(US_JOINT_SPHERICAL, "leg_joint", trunk, leg, at(0, 0, -0.3));
    j.v0[1] = -2;
    add_joint(b, &j);
    add_drive(b, "arm_motor", arm_joint, 0, 8, 0.3, 0.5, 3);

    int32_t bob = add_link(b, "bob", 1, at(0, 0, -0.5));
    j = contract_joint_def(US_JOINT_SPHERICAL, "bob_joint", US_WORLD, bob, at(-2, 0, 2));
    j.q0[0] = 0.8;
    j.q0[1] = 0.6;
    j.v0[2] = 4;
    add_joint(b, &j);
}

us_status contract_spec(contract_world world, us_integrator integrator, const us_allocator *allocator,
                        us_spec **out_spec) {
    builder b = {NULL, US_OK};
    b.status = us_spec_create(allocator, &b.spec);
    us_world_settings w = us_world_settings_default();
    w.name = contract_world_name(world);
    w.integrator = integrator;
    w.tolerance = 1e-6;
    if (!b.status) b.status = us_spec_set_world(b.spec, &w);
    if (world == CONTRACT_EVERY_JOINT) every_joint(&b);
    if (world == CONTRACT_LOOPS) loops(&b);
    if (world == CONTRACT_FREE) free_things(&b);
    if (b.status) {
        us_spec_destroy(b.spec);
        return b.status;
    }
    *out_spec = b.spec;
    return US_OK;
}

us_model *contract_compile(us_spec *spec) {
    us_model *model = NULL;
    us_error err = {0};
    us_status status = us_model_compile(spec, NULL, &model, &err);
    if (status) {
        char text[1024];
        us_error_format(&err, text, sizeof text);
        us_spec_destroy(spec);
        fail_msg("the model does not compile: %s", text);
    }
    us_spec_destroy(spec);
    return model;
}

us_model *contract_model(contract_world world, us_integrator integrator) {
    us_spec *spec = NULL;
    assert_int_equal(contract_spec(world, integrator, NULL, &spec), US_OK);
    return contract_compile(spec);
}

us_spec *contract_pendulum_spec(void) {
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    int32_t bob = contract_link(spec, "bob", 2, at(0, 0, -0.5), 0.1, 0.1, 0.05);
    us_joint_def j = contract_joint_def(US_JOINT_REVOLUTE, "hinge", US_WORLD, bob, at(0, 0, 1));
    j.axis = at(0, 1, 0);
    us_drive_def d = us_drive_def_default();
    d.name = "motor";
    d.joint = contract_add_joint(spec, &j);
    assert_int_equal(us_spec_add_drive(spec, &d, NULL), US_OK);
    return spec;
}

us_sim *contract_sim(const us_model *model) {
    us_sim *sim = NULL;
    us_error err = {0};
    us_status status = us_sim_create(model, NULL, &sim, &err);
    if (status) {
        char text[1024];
        us_error_format(&err, text, sizeof text);
        fail_msg("the sim cannot be created: %s", text);
    }
    return sim;
}

// Contact against MuJoCo, where the answer does not hang on how soft a contact is: slides, a ball that begins
// to roll, forces at rest, a robot on legs.
//
// MuJoCo runs with elliptic cones, stiff contacts and a tenth of the step. Its friction gives way by a fixed
// part of the load (soft contact without memory): with impratio 100 that is some 1e-4 of what is compared
// here.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <mujoco/mujoco.h>

#include "contact_scene.h"

static const double G = 9.81, DEGREE = 3.14159265358979323846 / 180;
static const us_vec3 Y = {0, 1, 0};

typedef struct peer {
    mjModel *m;
    mjData *d;
} peer;

// `bodies` is what stands in <worldbody> beside the ground, `more` what stands behind it.
static peer load(us_vec3 gravity, double friction, const char *bodies, const char *more) {
    char text[4096], message[1000] = "";
    snprintf(text, sizeof text,
             "<mujoco><compiler autolimits=\"true\"/><option timestep=\"1e-4\" gravity=\"%.17g %.17g %.17g\" "
             "cone=\"elliptic\" impratio=\"100\" "
             "tolerance=\"1e-12\" iterations=\"200\"/>"
             "<default><geom friction=\"%g 0 0\" condim=\"3\" solref=\"0.001 1\"/></default>"
             "<worldbody><geom type=\"plane\" size=\"100 100 1\"/>%s</worldbody>%s</mujoco>",
             gravity.x, gravity.y, gravity.z, friction, bodies, more);
    FILE *file = fopen("scene.xml", "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    peer p = {mj_loadXML("scene.xml", NULL, message, sizeof message), NULL};
    if (!p.m) fail_msg("%s", message);
    p.d = mj_makeData(p.m);
    return p;
}

static void unload(peer *p) {
    mj_deleteData(p->d);
    mj_deleteModel(p->m);
}

static void run(peer *p, double seconds) {
    for (int i = 0; i < (int)(seconds / 1e-4 + 0.5); i++)
        mj_step(p->m, p->d);
}

static void a_sliding_box_goes_as_far(void **state) {
    (void)state;
    us_vec3 gravity = scene_gravity(20 * DEGREE, 30 * DEGREE);
    peer p = load(
        gravity, 0.2,
        "<body pos=\"0 0 0.05\"><freejoint/><geom type=\"box\" size=\"0.1 0.1 0.05\" mass=\"1\"/></body>",
        "");
    us_spec *spec = scene_spec(gravity, 0.2);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, 0.05);
    start.v = us_vec3_make(0, 1, 0);
    scene_box(spec, "box", 1, us_vec3_make(0.2, 0.2, 0.1), &start);
    p.d->qvel[1] = 1;
    built b = build_sim(spec);
    build_step(&b, 1000, NULL);
    run(&p, 1);
    us_vec3 a = scene_position(&b, 0);
    printf("    ours (%.5f %.5f), MuJoCo (%.5f %.5f) m\n", a.x, a.y, p.d->qpos[0], p.d->qpos[1]);
    // The thrown box curves downhill. Half a step of 1.7 m/s is 1e-3 m.
    build_near("x", a.x, p.d->qpos[0], 2e-3);
    build_near("y", a.y, p.d->qpos[1], 2e-3);
    build_free(&b);
    unload(&p);
}

static void a_thrown_ball_rolls_as_fast(void **state) {
    (void)state;
    us_vec3 gravity = {0, 0, -G};
    peer p =
        load(gravity, 0.3,
             "<body pos=\"0 0 0.1\"><freejoint/><geom type=\"sphere\" size=\"0.1\" mass=\"1\"/></body>", "");
    us_spec *spec = scene_spec(gravity, 0.3);
    scene_ground(spec);
    scene_start start = scene_at(0, 0, 0.1);
    // Thrown along x with back spin and side spin: its path bends.
    start.v = us_vec3_make(5, 0, 0);
    start.w = us_vec3_make(30, -20, 5);
    scene_ball(spec, "ball", 1, 0.1, &start);
    p.d->qvel[0] = 5;
    p.d->qvel[3] = 30;
    p.d->qvel[4] = -20;
    p.d->qvel[5] = 5;
    built b = build_sim(spec);
    build_step(&b, 1500, NULL);
    run(&p, 1.5);
    us_vec3 x = scene_position(&b, 0), v = scene_velocity(&b, 0), w = scene_spin(&b, 0);
    printf("    ours v (%.5f %.5f), MuJoCo v (%.5f %.5f) m/s\n", v.x, v.y, p.d->qvel[0], p.d->qvel[1]);
    build_near("v.x", v.x, p.d->qvel[0], 5e-3);
    build_near("v.y", v.y, p.d->qvel[1], 5e-3);
    build_near("w.x", w.x, -10 * v.y, 1e-2);
    build_near("x", x.x, p.d->qpos[0], 1e-2);
    build_near("y", x.y, p.d->qpos[1], 1e-2);
    build_free(&b);
    unload(&p);
}

// A table on three legs with a weight on it: what each leg carries follows from statics alone.
static void three_legs_carry_as_much(void **state) {
    (void)state;
    us_vec3 gravity = {0, 0, -G};
    static const us_vec3 leg[3] = {{0.5, 0, -0.4}, {-0.4, 0.5, -0.4}, {-0.3, -0.6, -0.4}};
    peer p = load(
        gravity, 0.8,
        "<body pos=\"0 0 0.5\"><freejoint/><inertial pos=\"0.1 0.05 0\" mass=\"7\" diaginertia=\"1 1 1\"/>"
        "<geom type=\"sphere\" size=\"0.1\" pos=\"0.5 0 -0.4\"/><geom type=\"sphere\" size=\"0.1\" "
        "pos=\"-0.4 0.5 -0.4\"/>"
        "<geom type=\"sphere\" size=\"0.1\" pos=\"-0.3 -0.6 -0.4\"/></body>",
        "");
    us_spec *spec = scene_spec(gravity, 0.8);
    scene_ground(spec);
    int32_t table = build_link(spec, "table", 7, us_vec3_make(0.1, 0.05, 0), us_vec3_make(1, 1, 1));
    us_joint_def joint = build_joint_at(US_JOINT_FLOATING, US_WORLD, table, us_vec3_make(0, 0, 0.5), Y);
    build_joint_def(spec, "float", &joint);
    for (int i = 0; i < 3; i++)
        scene_add_ball(spec, table, 0.1, leg[i]);
    built b = build_sim(spec);
    build_step(&b, 3000, NULL);
    run(&p, 3);
    assert_int_equal(us_sim_n_contact(b.sim), 3);
    assert_int_equal(p.d->ncon, 3);
    for (int i = 0; i < 3; i++) {
        double ours = NAN, theirs = NAN, force[6];
        for (int k = 0; k < 3; k++) {
            us_contact c = us_sim_get_contact(b.sim, k);
            if (hypot(c.point.x - leg[i].x, c.point.y - leg[i].y) < 0.01) ours = fabs(c.force.z);
            mj_contactForce(p.m, p.d, k, force);
            if (hypot(p.d->contact[k].pos[0] - leg[i].x, p.d->contact[k].pos[1] - leg[i].y) < 0.01)
                theirs = force[0];
        }
        printf("    leg %d: ours %.6f N, MuJoCo %.6f N\n", i, ours, theirs);
        // Both stand level to 1e-5 rad.
        build_near("leg", ours, theirs, 1e-3);
    }
    build_free(&b);
    unload(&p);
}

// Two links on a hinge fall on the ground and fold up: after the first impact velocities agree, later they
// rest in the same place.
static void a_robot_of_two_links_lies_down_as_they_do(void **state) {
    (void)state;
    us_vec3 gravity = {0, 0, -G};
    peer p = load(
        gravity, 0.8,
        "<body name=\"a\" pos=\"0 0 0.5\"><joint name=\"x\" type=\"slide\" axis=\"1 0 0\"/><joint name=\"z\" "
        "type=\"slide\" axis=\"0 0 1\"/>"
        "<joint name=\"r\" type=\"hinge\" axis=\"0 1 0\"/><inertial pos=\"0 0 0\" mass=\"1\" "
        "diaginertia=\"0.02 0.02 0.02\"/>"
        "<geom type=\"sphere\" size=\"0.05\" pos=\"0.2 0 0\"/><geom type=\"sphere\" size=\"0.05\" pos=\"-0.2 "
        "0 0\"/>"
        "<body name=\"b\" pos=\"0.2 0 0\"><joint name=\"k\" type=\"hinge\" axis=\"0 1 0\" damping=\"0.1\"/>"
        "<inertial pos=\"0.2 0 0\" mass=\"1\" diaginertia=\"0.02 0.02 0.02\"/><geom type=\"sphere\" "
        "size=\"0.05\" pos=\"0.4 0 0\"/></body></body>",
        "");
    us_spec *spec = scene_spec(gravity, 0.8);
    scene_ground(spec);
    int32_t slide = build_link(spec, "slide", 0, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 0)),
            lift = build_link(spec, "lift", 0, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 0)),
            a = build_link(spec, "a", 1, us_vec3_make(0, 0, 0), us_vec3_make(0.02, 0.02, 0.02)),
            c = build_link(spec, "b", 1, us_vec3_make(0.2, 0, 0), us_vec3_make(0.02, 0.02, 0.02));
    build_joint(spec, "x", US_JOINT_PRISMATIC, US_WORLD, slide, us_vec3_make(0, 0, 0.5),
                us_vec3_make(1, 0, 0), 0, 0);
    build_joint(spec, "z", US_JOINT_PRISMATIC, slide, lift, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1), 0,
                0);
    build_joint(spec, "r", US_JOINT_CONTINUOUS, lift, a, us_vec3_make(0, 0, 0), Y, 0.3, 0);
    us_joint_def knee = build_joint_at(US_JOINT_CONTINUOUS, a, c, us_vec3_make(0.2, 0, 0), Y);
    knee.damping = 0.1;
    knee.q0[0] = -0.8;
    build_joint_def(spec, "k", &knee);
    scene_add_ball(spec, a, 0.05, us_vec3_make(0.2, 0, 0));
    scene_add_ball(spec, a, 0.05, us_vec3_make(-0.2, 0, 0));
    scene_add_ball(spec, c, 0.05, us_vec3_make(0.4, 0, 0));
    p.d->qpos[2] = 0.3;
    p.d->qpos[3] = -0.8;
    built b = build_sim(spec);
    build_step(&b, 5000, NULL);
    run(&p, 5);
    const double *q = us_sim_view_q(b.sim);
    printf("    ours (%.5f %.5f %.5f %.5f), MuJoCo (%.5f %.5f %.5f %.5f)\n", q[0], q[1], q[2], q[3],
           p.d->qpos[0], p.d->qpos[1], p.d->qpos[2], p.d->qpos[3]);
    // Flat on the ground in the end. How far it has slid meanwhile hangs on the impacts: some millimetres.
    build_near("z", q[1], p.d->qpos[1], 1e-4);
    build_near("r", q[2], p.d->qpos[2], 1e-3);
    build_near("k", q[3], p.d->qpos[3], 1e-3);
    build_near("x", q[0], p.d->qpos[0], 2e-2);
    build_free(&b);
    unload(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sliding_box_goes_as_far),
        cmocka_unit_test(a_thrown_ball_rolls_as_fast),
        cmocka_unit_test(three_legs_carry_as_much),
        cmocka_unit_test(a_robot_of_two_links_lies_down_as_they_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

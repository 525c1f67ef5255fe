// The scene file: what is written is what the spec and the model have.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "understudy/dyn.h"

#define BOX "<inertial mass='1' inertia='1 1 1'/>"
#define MINIMAL US_SOURCE_DIR "/tests/bad/scene/parts/minimal.urdf"

// Loads a scene whose body is given; it must be good.
static us_spec *load(const char *body) {
    char text[8192];
    snprintf(text, sizeof text, "<scene version=\"1\">\n%s\n</scene>", body);
    us_spec *spec = NULL;
    us_error err;
    if (us_spec_load_text(text, strlen(text), "test.xml", NULL, &spec, &err))
        fail_msg("line %d: %s\n%s", (int)err.line, err.message, err.remedy);
    return spec;
}

static const us_joint_def *joint(const us_spec *spec, const char *name) {
    const us_joint_def *j = us_spec_view_joint(spec, us_spec_find_joint(spec, name));
    if (!j) fail_msg("there is no joint %s", name);
    return j;
}

static void near(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g is not %.17g", a, b);
}

static void every_shipped_scene_compiles_without_a_warning(void **state) {
    (void)state;
    static const char *const names[] = {"default", "pendulum", "double-pendulum", "spin",  "four-bar",
                                        "rocker",  "chain-30", "every-joint",     "forest"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        us_spec *spec = NULL;
        us_model *model = NULL;
        us_error err;
        snprintf(path, sizeof path, "%s/scenes/%s.xml", US_SOURCE_DIR, names[i]);
        us_status status = us_spec_load(path, NULL, &spec, &err);
        if (!status) status = us_model_compile(spec, NULL, &model, &err);
        if (status) fail_msg("%s: %s", path, err.message);
        if (us_spec_get_counts(spec).n_warning)
            fail_msg("%s: %s", path, us_spec_view_warning(spec, 0)->message);
        us_model_destroy(model);
        us_spec_destroy(spec);
    }
}

static void the_world_has_its_defaults_and_what_is_written(void **state) {
    (void)state;
    us_spec *spec = load("");
    const us_world_settings *w = us_spec_view_world(spec);
    assert_true(w->step == 1e-3 && w->gravity.z == -9.81 && w->integrator == US_INTEGRATOR_MIDPOINT &&
                w->seed == 1 && w->duration == 0);
    us_spec_destroy(spec);
    spec = load("<world gravity='1 2 3' step='2 ms' integrator='adaptive' tolerance='1e-6' duration='1 min' "
                "seed='1234567890123456789'/>");
    w = us_spec_view_world(spec);
    assert_true(w->gravity.x == 1 && w->gravity.y == 2 && w->gravity.z == 3 && w->step == 2e-3);
    assert_true(w->integrator == US_INTEGRATOR_ADAPTIVE && w->tolerance == 1e-6 && w->duration == 60 &&
                w->seed == 1234567890123456789u);
    us_spec_destroy(spec);
}

static void a_lone_body_floats_and_starts_where_its_object_is(void **state) {
    (void)state;
    us_spec *spec = load("<object name='ball' xyz='1 2 3' quat='0 0 0 1'><link name='l'>" BOX
                         "</link><base linear='4 5 6' angular='7 8 9'/></object>");
    const us_joint_def *j = joint(spec, "ball/floating_base");
    assert_int_equal(j->type, US_JOINT_FLOATING);
    assert_int_equal(j->parent, US_WORLD);
    const double q[7] = {0, 0, 0, 1, 1, 2, 3}, v[6] = {7, 8, 9, 4, 5, 6};
    assert_memory_equal(j->q0, q, sizeof q);
    assert_memory_equal(j->v0, v, sizeof v);
    assert_true(us_spec_view_group(spec, 0)->is_floating);
    us_spec_destroy(spec);
}

static void an_object_can_stand_fixed_or_hang_on_its_own_joints(void **state) {
    (void)state;
    us_spec *spec =
        load("<object name='post' base='fixed' xyz='1 2 3'><link name='l'/></object>"
             "<object name='arm' xyz='0 0 2'><link name='l'>" BOX
             "</link><joint name='j' type='revolute' parent='world' child='l' xyz='1 0 0'/></object>");
    assert_int_equal(joint(spec, "post/fixed_base")->type, US_JOINT_FIXED);
    assert_true(joint(spec, "post/fixed_base")->X_PF.p.z == 3);
    assert_true(joint(spec, "arm/j")->X_PF.p.x == 1 && joint(spec, "arm/j")->X_PF.p.z == 2);
    assert_int_equal(us_spec_get_counts(spec).n_joint, 2);
    assert_false(us_spec_view_group(spec, 1)->is_floating);
    us_spec_destroy(spec);
}

static void things_may_be_used_before_they_are_defined(void **state) {
    (void)state;
    us_spec *spec = load("<record file='x.csv'><value name='b/j.q'/><value name='m.torque'/></record>"
                         "<drive name='m' joint='b/j' kp='3' default='late'/>"
                         "<object name='b' default='late'><joint name='j' type='revolute' parent='a/l' "
                         "child='l'/><link name='l'>" BOX "</link></object>"
                         "<object name='a'><link name='l'>" BOX "</link></object>"
                         "<default name='late'><joint damping='5'/><drive kd='2'/></default>");
    assert_true(joint(spec, "b/j")->damping == 5);
    assert_int_equal(joint(spec, "b/j")->parent, us_spec_find_link(spec, "a/l"));
    assert_int_equal(us_spec_find_drive(spec, "m"), 0);
    assert_true(us_spec_view_drive(spec, 0)->kp == 3 && us_spec_view_drive(spec, 0)->kd == 2);
    us_spec_destroy(spec);
}

static void the_nearest_default_wins(void **state) {
    (void)state;
    us_spec *spec =
        load("<default name='far'><joint damping='1' armature='1' friction='1'/><drive kp='1' kd='1' "
             "limit='1'/></default>"
             "<default name='near'><joint damping='2' armature='2'/><drive kp='2' kd='2'/></default>"
             "<object name='o' default='far'><link name='l'>" BOX "</link>"
             "<joint name='j' type='revolute' parent='world' child='l' damping='3' default='near'/>"
             "<drive joint='j' kp='3' default='near'/></object>");
    const us_joint_def *j = joint(spec, "o/j");
    const us_drive_def *d = us_spec_view_drive(spec, 0);
    assert_true(j->damping == 3 && j->armature == 2 && j->friction == 1);
    assert_true(d->kp == 3 && d->kd == 2 && d->limit == 1);
    assert_string_equal(d->name, "o/j");
    us_spec_destroy(spec);
}

static void a_robot_is_read_from_its_file_and_changed(void **state) {
    (void)state;
    us_spec *spec = load("<default name='d'><joint damping='2' armature='1'/></default>"
                         "<robot name='arm' file='" MINIMAL "' xyz='0 0 1' default='d'>"
                         "<joint name='hinge' q='30 deg' v='1' damping='7'/><drive joint='hinge' kp='10' "
                         "position='1'/></robot>"
                         "<robot name='free' file='" MINIMAL
                         "' base='floating' xyz='0 0 2'><base angular='0 0 3'/></robot>");
    const us_joint_def *j = joint(spec, "arm/hinge");
    near(j->q0[0], 0.52359877559829882, 1e-16);
    assert_true(j->v0[0] == 1 && j->damping == 7 && j->armature == 1);
    assert_true(joint(spec, "arm/fixed_base")->X_PF.p.z == 1);
    assert_true(joint(spec, "free/floating_base")->q0[6] == 2 &&
                joint(spec, "free/floating_base")->v0[2] == 3);
    assert_true(joint(spec, "free/hinge")->damping == 0);
    assert_int_equal(us_spec_find_drive(spec, "arm/hinge"), 0);
    us_spec_destroy(spec);
}

static void density_gives_the_mass_of_the_shapes(void **state) {
    (void)state;
    us_spec *spec = load("<object name='o'><link name='l' density='1000'>"
                         "<shape type='box' size='0.1 0.2 0.3' xyz='1 0 0'/><shape type='box' size='0.1 0.2 "
                         "0.3' xyz='-1 0 0'/>"
                         "<shape type='sphere' size='5' collision='false'/></link></object>");
    const us_inertia *I = &us_spec_view_link(spec, 0)->inertia;
    near(I->mass, 12, 1e-12);
    near(I->com.x, 0, 1e-15);
    near(I->about_com[0], 2 * 6.0 / 12 * (0.04 + 0.09), 1e-12);
    near(I->about_com[2], 2 * (6.0 / 12 * (0.01 + 0.04) + 6), 1e-12);
    assert_int_equal(us_spec_get_counts(spec).n_shape, 3);
    us_spec_destroy(spec);
}

static void an_inertia_is_turned_by_its_own_axes(void **state) {
    (void)state;
    us_spec *spec = load("<object name='o'><link name='l'><inertial mass='1' com='1 2 3' inertia='1 2 3 0 0 "
                         "0' rpy='0 0 90 deg'/></link></object>");
    const us_inertia *I = &us_spec_view_link(spec, 0)->inertia;
    near(I->about_com[0], 2, 1e-15);
    near(I->about_com[1], 1, 1e-15);
    near(I->about_com[2], 3, 1e-15);
    assert_true(I->com.y == 2);
    us_spec_destroy(spec);
}

static void couplings_and_loops_name_what_they_hold(void **state) {
    (void)state;
    us_spec *spec = load("<object name='o'><link name='a'>" BOX "</link><link name='b'>" BOX "</link>"
                         "<joint name='j' type='revolute' parent='world' child='a'/><joint name='k' "
                         "type='planar' parent='world' child='b'/>"
                         "<loop name='close' type='hinge'><a link='b' xyz='1 0 0'/><b link='world' rpy='0 90 "
                         "0 deg'/></loop></object>"
                         "<coupling name='gear' offset='0.5'><term joint='o/j' factor='-2'/><term "
                         "joint='o/k' coordinate='2'/></coupling>");
    const us_coupling_def *c = us_spec_view_coupling(spec, 0);
    assert_int_equal(c->n_term, 2);
    assert_int_equal(c->joint[1], us_spec_find_joint(spec, "o/k"));
    assert_int_equal(c->coordinate[1], 2);
    assert_true(c->factor[0] == -2 && c->factor[1] == 1 && c->offset == 0.5);
    const us_loop_def *l = us_spec_view_loop(spec, 0);
    assert_string_equal(l->name, "o/close");
    assert_int_equal(l->type, US_LOOP_HINGE);
    assert_int_equal(l->link_a, us_spec_find_link(spec, "o/b"));
    assert_int_equal(l->link_b, US_WORLD);
    assert_true(l->X_AC.p.x == 1);
    us_spec_destroy(spec);
}

static void a_drive_takes_the_effort_limit_of_its_joint(void **state) {
    (void)state;
    us_spec *spec =
        load("<object name='o'><link name='l'>" BOX
             "</link><joint name='j' type='revolute' parent='world' child='l' effort='30'/>"
             "<drive joint='j' kp='1'/><drive name='unlimited' joint='j' torque='5' limit='0'/></object>");
    assert_true(us_spec_view_drive(spec, 0)->limit == 30);
    assert_true(us_spec_view_drive(spec, 1)->limit == 0 && us_spec_view_drive(spec, 1)->torque == 5);
    us_spec_destroy(spec);
}

static void doubtful_input_becomes_a_warning(void **state) {
    (void)state;
    us_spec *spec =
        load("<object name='o' quat='2 0 0 0'><link name='l'>" BOX "</link>"
             "<joint name='j' type='revolute' parent='world' child='l' lower='-1' upper='1' q='3'/>"
             "<drive joint='j' position='1'/><drive name='d' joint='j' kp='1' position='5'/></object>");
    assert_int_equal(us_spec_get_counts(spec).n_warning, 4);
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(us_spec_view_warning(spec, i)->line, 2);
        assert_true(us_spec_view_warning(spec, i)->remedy[0] != 0);
    }
    assert_true(joint(spec, "o/j")->X_PF.q.w == 1);
    us_spec_destroy(spec);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void an_included_file_gives_its_contents_and_yields_to_the_outer_one(void **state) {
    (void)state;
    write_file(
        "test_scene_inner.xml",
        "<scene version='1'>\n<parameter name='m' value='1'/>\n<world step='5 ms' duration='3'/>\n"
        "<object name='in'><link name='l'><inertial mass='${m}' inertia='1 1 1'/></link></object>\n</scene>");
    write_file("test_scene_outer.xml", "<scene version='1'>\n<include file='${which}.xml'/>\n<parameter "
                                       "name='which' value='test_scene_inner'/>\n</scene>");
    us_spec *spec = NULL;
    us_error err;
    // The parameter of an include must be known before it.
    assert_int_equal(us_spec_load("test_scene_outer.xml", NULL, &spec, &err), US_ERR_NAME);
    write_file("test_scene_outer.xml", "<scene version='1'>\n<parameter name='which' "
                                       "value='test_scene_inner'/>\n<include file='${which}.xml'/>\n"
                                       "<world step='1 ms'/>\n<parameter name='m' value='7'/>\n</scene>");
    if (us_spec_load("test_scene_outer.xml", NULL, &spec, &err))
        fail_msg("%s:%d: %s", err.file, (int)err.line, err.message);
    const us_world_settings *w = us_spec_view_world(spec);
    assert_true(w->step == 1e-3 && w->duration == 3);
    assert_true(us_spec_view_link(spec, 0)->inertia.mass == 7);
    assert_string_equal(us_spec_view_link(spec, 0)->file, "test_scene_inner.xml");
    assert_int_equal(us_spec_view_link(spec, 0)->line, 4);
    us_spec_destroy(spec);
}

static void includes_deeper_than_16_and_too_many_are_refused(void **state) {
    (void)state;
    char name[64], text[256];
    for (int i = 0; i <= 18; i++) {
        snprintf(name, sizeof name, "test_scene_deep%d.xml", i);
        snprintf(text, sizeof text,
                 "<scene version='1'><include file='test_scene_deep%d.xml'/><include "
                 "file='test_scene_deep%d.xml'/></scene>",
                 i + 1, i + 1);
        // Each file takes the next one in twice: from level 3 there would be 2^15 of them.
        write_file(name, i == 18 ? "<scene version='1'/>" : text);
    }
    us_spec *spec = NULL;
    us_error err;
    assert_int_equal(us_spec_load("test_scene_deep0.xml", NULL, &spec, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "16 levels deep"));
    assert_int_equal(us_spec_load("test_scene_deep3.xml", NULL, &spec, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "1000 files"));
}

// The pose of a two-joint chain's end, by the model.
static us_pose end_of_chain(const char *convention, const double q[2]) {
    char body[2048];
    snprintf(body, sizeof body,
             "<object name='o'><link name='a'>" BOX "</link><link name='b'>" BOX "</link>"
             "<joint name='j' type='revolute' parent='world' child='a'><dh convention='%s' a='0.3' alpha='40 "
             "deg' d='0.2' theta='0.5'/></joint>"
             "<joint name='k' type='prismatic' parent='a' child='b'><dh convention='%s' a='0.1' alpha='-0.7' "
             "d='0.4' theta='1.1'/></joint></object>",
             convention, convention);
    us_spec *spec = load(body);
    us_model *model = NULL;
    us_dyn *dyn = NULL;
    us_error err;
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_dyn_create(model, NULL, &dyn), US_OK);
    assert_int_equal(us_model_get_counts(model).n_q, 2);
    us_pose X[8];
    assert_true(us_model_get_counts(model).n_body <= 8);
    assert_int_equal(us_dyn_poses(dyn, q, X), US_OK);
    us_pose end = X[us_model_find_body(model, "o/b").i];
    us_dyn_destroy(dyn);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return end;
}

static us_pose turn(double x, double z) {
    us_pose X = {us_quat_from_rpy(x, 0, z), {0, 0, 0}};
    return X;
}
static us_pose move(double x, double z) {
    us_pose X = {{1, 0, 0, 0}, {x, 0, z}};
    return X;
}

static void same_pose(us_pose a, us_pose b) {
    us_pose d = us_pose_mul(us_pose_inverse(a), b);
    near(us_vec3_norm(d.p), 0, 1e-14);
    near(us_vec3_norm(us_quat_log(d.q)), 0, 1e-14);
}

static void denavit_hartenberg_parameters_give_the_textbook_poses(void **state) {
    (void)state;
    const double q[2] = {0.9, 0.25}, alpha = 40 * 3.14159265358979323846 / 180;
    // Craig: Rx(alpha) Tx(a) Rz(theta) Tz(d), joint by joint.
    us_pose first = us_pose_mul(us_pose_mul(turn(alpha, 0), move(0.3, 0)),
                                us_pose_mul(turn(0, 0.5 + q[0]), move(0, 0.2)));
    us_pose second =
        us_pose_mul(us_pose_mul(turn(-0.7, 0), move(0.1, 0)), us_pose_mul(turn(0, 1.1), move(0, 0.4 + q[1])));
    same_pose(end_of_chain("craig", q), us_pose_mul(first, second));
    // Paul: Rz(theta) Tz(d) Tx(a) Rx(alpha).
    first = us_pose_mul(us_pose_mul(turn(0, 0.5 + q[0]), move(0, 0.2)),
                        us_pose_mul(move(0.3, 0), turn(alpha, 0)));
    second =
        us_pose_mul(us_pose_mul(turn(0, 1.1), move(0, 0.4 + q[1])), us_pose_mul(move(0.1, 0), turn(-0.7, 0)));
    same_pose(end_of_chain("paul", q), us_pose_mul(first, second));
}

static void the_shipped_arm_weighs_50_kg_and_reaches_1_3_m(void **state) {
    (void)state;
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_dyn *dyn = NULL;
    us_error err;
    if (us_spec_load(US_SOURCE_DIR "/models/arm6.urdf", NULL, &spec, &err)) fail_msg("%s", err.message);
    double mass = 0;
    for (int32_t i = 0; i < us_spec_get_counts(spec).n_link; i++)
        mass += us_spec_view_link(spec, i)->inertia.mass;
    near(mass, 50, 1e-12);
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_dyn_create(model, NULL, &dyn), US_OK);
    const double q[6] = {0};
    us_pose X[16];
    assert_int_equal(us_dyn_poses(dyn, q, X), US_OK);
    // The flange is 0.03 m thick; the shoulder axis is at 0.40 m.
    near(X[us_model_find_body(model, "flange").i].p.z + 0.03 - 0.40, 1.30, 1e-12);
    us_dyn_destroy(dyn);
    us_model_destroy(model);
    us_spec_destroy(spec);
}

// ---- Contact ----

static void every_kind_of_shape_arrives_with_its_numbers(void **state) {
    (void)state;
    us_spec *spec = load("<material name='rubber'/>"
                         "<world>"
                         "<shape type='cone' size='10 20 cm' name='tip' surface='rubber' margin='1 mm' "
                         "group='0x10' mask='3' level='2' xyz='1 2 3'/>"
                         "<shape type='ellipsoid' size='1 2 3'/>"
                         "<shape type='lozenge' size='1 2 0.1'/>"
                         "<shape type='disc' size='1 0.1'/>"
                         "<shape type='triangle' points='0 0 0, 1 0 0, 0 1 0' size='0.1'/>"
                         "<shape type='tetrahedron' points='0 0 0 1 0 0 0 1 0 0 0 1'/>"
                         "<shape type='convex' points='0 0 0 1 0 0 0 1 0 0 0 1 1 1 1'/>"
                         "<shape type='half-space'/><shape type='plane'/>"
                         "<shape type='union'><shape type='box' size='1 1 1'/>"
                         "<shape type='intersection' xyz='0 0 5'><shape type='sphere' size='1'/><shape "
                         "type='box' size='3 3 1'/></shape></shape>"
                         "</world>");
    static const us_shape_kind kinds[] = {
        US_SHAPE_CONE,        US_SHAPE_ELLIPSOID, US_SHAPE_LOZENGE,    US_SHAPE_DISC,       US_SHAPE_TRIANGLE,
        US_SHAPE_TETRAHEDRON, US_SHAPE_CONVEX,    US_SHAPE_HALF_SPACE, US_SHAPE_HALF_SPACE, US_SHAPE_UNION};
    assert_int_equal(us_spec_get_counts(spec).n_shape, 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(us_spec_view_shape(spec, i)->kind, kinds[i]);
        assert_int_equal(us_spec_view_shape(spec, i)->link, US_WORLD);
    }
    const us_shape_def *s = us_spec_view_shape(spec, 0);
    assert_true(s->size[0] == 0.1 && s->size[1] == 0.2 && s->margin == 1e-3 && s->group == 16 &&
                s->mask == 3 && s->level == 2 && s->X_BG.p.z == 3);
    assert_string_equal(s->name, "tip");
    assert_string_equal(s->surface, "rubber");
    // Volumes: a cone's is a third of the cylinder's; exact but for rounding.
    near(s->unit_inertia.mass, 3.14159265358979323846 * 0.01 * 0.2 / 3, 1e-15);
    near(us_spec_view_shape(spec, 5)->unit_inertia.mass, 1.0 / 6, 1e-15);
    assert_true(us_spec_view_shape(spec, 4)->points[1].x == 1 && us_spec_view_shape(spec, 4)->size[0] == 0.1);
    assert_true(us_spec_view_shape(spec, 7)->unit_inertia.mass == 0);
    s = us_spec_view_shape(spec, 9);
    assert_int_equal(s->n_part, 2);
    assert_int_equal(s->parts[1].kind, US_SHAPE_INTERSECTION);
    assert_true(s->parts[1].X_BG.p.z == 5 && s->parts[1].parts[1].size[0] == 3);
    us_model *model = NULL;
    us_error err;
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_model_get_counts(model).n_geom, 9);  // all but the one of another level
    us_model_destroy(model);
    us_spec_destroy(spec);
}

static void a_height_field_is_the_same_from_numbers_a_file_and_a_formula(void **state) {
    (void)state;
    FILE *file = fopen("heights.csv", "w");
    assert_non_null(file);
    fputs("# x runs fastest\n-0.5, 0, 0.5\n0.5;1;1.5\n", file);
    fclose(file);
    us_spec *spec =
        load("<parameter name='slope' value='2'/><world>"
             "<shape type='height-field' nx='3' ny='2' dx='0.5' dy='50 cm' heights='-0.5 0 0.5 0.5 1 1.5'/>"
             "<shape type='height-field' nx='3' ny='2' dx='0.5' dy='0.5' file='heights.csv'/>"
             "<shape type='height-field' nx='3' ny='2' dx='0.5' dy='0.5' expression='x + ${slope}*(y + "
             "1/4)'/></world>");
    for (int i = 0; i < 3; i++) {
        static const double wanted[] = {-0.5, 0, 0.5,
                                        0.5,  1, 1.5};  // at x = -0.5, 0, 0.5 and y = -0.25, 0.25
        const us_shape_def *s = us_spec_view_shape(spec, i);
        assert_true(s->n_x == 3 && s->n_y == 2 && s->size[0] == 0.5 && s->size[1] == 0.5);
        for (int k = 0; k < 6; k++)
            assert_true(s->heights[k] == wanted[k]);
    }
    us_spec_destroy(spec);
}

static void formulas_know_the_usual_functions(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;  // at x = 0.5, y = -0.5
    } rows[] = {
        {"sin(x)", 0.479425538604203},
        {"cos(x)", 0.8775825618903728},
        {"tan(x)", 0.5463024898437905},
        {"asin(x)", 0.5235987755982989},
        {"acos(x)", 1.0471975511965979},
        {"atan(x)", 0.4636476090008061},
        {"exp(x)", 1.6487212707001282},
        {"log(x + 1)", 0.4054651081081644},
        {"sqrt(x - y + 3)", 2},
        {"abs(y)", 0.5},
        {"floor(y)", -1},
        {"tanh(x)", 0.46211715726000973},
        {"min(x, y)", -0.5},
        {"max(x, y)", 0.5},
        {"pow(x, 3)", 0.125},
        {"atan2(y, x)", -0.7853981633974483},
        {"hypot(x, y)", 0.7071067811865476},
        {"sin (2*pi*(x - y)/4)", 1},
        {"max(min(x,1),y)*2", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[300];
        snprintf(body, sizeof body,
                 "<world><shape type='height-field' nx='2' ny='2' dx='1' dy='1' expression='%s'/></world>",
                 rows[i].text);
        us_spec *spec = load(body);
        near(us_spec_view_shape(spec, 0)->heights[1], rows[i].value, 4e-16);  // a rounding of the C library
        us_spec_destroy(spec);
    }
}

static void noise_is_smooth_bounded_and_always_the_same(void **state) {
    (void)state;
    us_spec *spec = load("<world><shape type='height-field' nx='401' ny='11' dx='0.05' dy='0.05' "
                         "expression='noise(x, y)'/></world>");
    const us_shape_def *s = us_spec_view_shape(spec, 0);
    double low = 1, high = -1, step = 0;
    for (int j = 0; j < 11; j++) {
        for (int i = 0; i < 401; i++) {
            double h = s->heights[401 * j + i];
            low = h < low ? h : low;
            high = h > high ? h : high;
            if (i > 0) step = fmax(step, fabs(h - s->heights[401 * j + i - 1]));
        }
    }
    // Twenty cells of random numbers between -1 and 1 go far out; a blend of two of them has at most 1.5
    // times their slope, 2 per metre.
    assert_true(low >= -1 && low < -0.5 && high <= 1 && high > 0.5);
    assert_true(step > 0.01 && step <= 0.05 * 3);
    us_spec *again = load("<world seed='7'><shape type='height-field' nx='401' ny='11' dx='0.05' dy='0.05' "
                          "expression='noise(x, y)'/></world>");
    assert_memory_equal(s->heights, us_spec_view_shape(again, 0)->heights, 401 * 11 * sizeof *s->heights);
    us_spec_destroy(again);
    us_spec_destroy(spec);
}

static void materials_and_pairs_keep_their_values(void **state) {
    (void)state;
    us_spec *spec =
        load("<pair a='rubber' fidelity='high' model='spring-damper' static-friction='1.2' "
             "kinetic-friction='1.1' viscous='0.1' "
             "normal-static='0.2' rotational='0.5' assumed-mass='500 g' restitution='0.6' "
             "reference-speed='3.6 km/h' stiffness='1e6' "
             "damping-ratio='0.7' torsion-radius='5 mm' rolling-length='1 mm' "
             "transition-speed='0.02'><number key='exponent' "
             "value='1.5'/></pair>"
             "<pair friction='0.3'/><pair static-friction='0.4'/><pair kinetic-friction='1.5'/>"
             "<material name='rubber'><string key='maker' value='a b'/><number key='hardness' value='60.5'/>"
             "<integer key='grade' value='-9007199254740993'/></material>"
             "<world solver='rigid-direct' fidelity='high' max-contact='500'/>");
    const us_material_def *m = us_spec_view_material(spec, 0);
    assert_int_equal(m->n_property, 3);
    assert_string_equal(m->properties[0].text, "a b");
    assert_true(m->properties[1].number == 60.5 && m->properties[2].integer == INT64_C(-9007199254740993));
    const us_pair_def *p = us_spec_view_pair(spec, 0);
    const us_pair_values *v = &p->values;
    assert_string_equal(p->material_a, "rubber");
    assert_null(p->material_b);
    assert_string_equal(p->model, "spring-damper");
    assert_true(v->static_friction == 1.2 && v->kinetic_friction == 1.1 && v->viscous == 0.1 &&
                v->normal_static == 0.2 && v->rotational == 0.5);
    assert_true(v->assumed_mass == 0.5 && v->restitution == 0.6 && v->stiffness == 1e6 &&
                v->damping_ratio == 0.7);
    assert_true(v->torsion_radius == 5e-3 && v->rolling_length == 1e-3 && v->transition_speed == 0.02);
    near(v->reference_speed, 1, 1e-15);
    assert_true(p->n_parameter == 1 && p->parameters[0].number == 1.5);
    // One friction alone moves the other's default out of its way.
    v = &us_spec_view_pair(spec, 1)->values;
    assert_true(v->static_friction == 0.3 && v->kinetic_friction == 0.3);
    v = &us_spec_view_pair(spec, 2)->values;
    assert_true(v->static_friction == 0.4 && v->kinetic_friction == 0.4);
    v = &us_spec_view_pair(spec, 3)->values;
    assert_true(v->static_friction == 1.5 && v->kinetic_friction == 1.5);
    const us_world_settings *w = us_spec_view_world(spec);
    assert_string_equal(w->solver, "rigid-direct");
    assert_string_equal(w->fidelity, "high");
    assert_int_equal(w->max_contact, 500);
    us_spec_destroy(spec);
}

static void links_are_excluded_by_their_names(void **state) {
    (void)state;
    us_spec *spec = load("<object name='a'><link name='l'/><link name='m'/><joint name='j' type='fixed' "
                         "parent='l' child='m'/><exclude a='l' b='m'/></object>"
                         "<exclude a='a/m' b='world'/>");
    assert_int_equal(us_spec_get_counts(spec).n_exclude, 2);
    const us_exclude_def *inside = us_spec_view_exclude(spec, 0), *outside = us_spec_view_exclude(spec, 1);
    assert_true(inside->link_a == 0 && inside->link_b == 1 && outside->link_a == 1 &&
                outside->link_b == US_WORLD);
    us_spec_destroy(spec);
}

static void a_robots_links_get_surfaces_and_levels_by_pattern(void **state) {
    (void)state;
    FILE *file = fopen("wheels.urdf", "w");
    assert_non_null(file);
    fputs("<robot name='w'><link name='body'><collision><geometry><box size='1 1 1'/></geometry></collision>"
          "<visual><geometry><box size='1 1 1'/></geometry></visual></link>",
          file);
    for (int i = 0; i < 2; i++)
        fprintf(file,
                "<link name='wheel_%d'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' "
                "ixz='0' iyz='0'/></inertial>"
                "<collision><geometry><sphere radius='1'/></geometry></collision></link>"
                "<joint name='j%d' type='continuous'><parent link='body'/><child link='wheel_%d'/></joint>",
                i, i, i);
    fputs("</robot>", file);
    fclose(file);
    us_spec *spec =
        load("<material name='rubber'/><material name='steel'/><robot name='r' file='wheels.urdf'>"
             "<surface link='*' surface='steel' margin='2 mm'/><surface link='wheel_?' surface='rubber' "
             "part-error='1 mm' group='2' mask='1'/>"
             "<level link='wheel_1' value='1'/></robot>");
    static const char *const surfaces[] = {"steel", NULL, "rubber", "rubber"};
    assert_int_equal(us_spec_get_counts(spec).n_shape, 4);
    for (int i = 0; i < 4; i++) {
        const us_shape_def *s = us_spec_view_shape(spec, i);
        if (!surfaces[i]) {
            assert_true(s->is_visual && !s->surface && s->margin == 0);
            continue;
        }
        assert_string_equal(s->surface, surfaces[i]);
        assert_true(s->is_collision && s->margin == 2e-3);
        assert_int_equal(s->group, i > 1 ? 2 : 1);
    }
    us_model *model = NULL;
    us_error err;
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_model_get_counts(model).n_geom, 2);  // wheel_1 has no shape of level 1
    us_model_destroy(model);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_scene_compiles_without_a_warning),
        cmocka_unit_test(the_world_has_its_defaults_and_what_is_written),
        cmocka_unit_test(a_lone_body_floats_and_starts_where_its_object_is),
        cmocka_unit_test(an_object_can_stand_fixed_or_hang_on_its_own_joints),
        cmocka_unit_test(things_may_be_used_before_they_are_defined),
        cmocka_unit_test(the_nearest_default_wins),
        cmocka_unit_test(a_robot_is_read_from_its_file_and_changed),
        cmocka_unit_test(density_gives_the_mass_of_the_shapes),
        cmocka_unit_test(an_inertia_is_turned_by_its_own_axes),
        cmocka_unit_test(couplings_and_loops_name_what_they_hold),
        cmocka_unit_test(a_drive_takes_the_effort_limit_of_its_joint),
        cmocka_unit_test(doubtful_input_becomes_a_warning),
        cmocka_unit_test(an_included_file_gives_its_contents_and_yields_to_the_outer_one),
        cmocka_unit_test(includes_deeper_than_16_and_too_many_are_refused),
        cmocka_unit_test(denavit_hartenberg_parameters_give_the_textbook_poses),
        cmocka_unit_test(the_shipped_arm_weighs_50_kg_and_reaches_1_3_m),
        cmocka_unit_test(every_kind_of_shape_arrives_with_its_numbers),
        cmocka_unit_test(a_height_field_is_the_same_from_numbers_a_file_and_a_formula),
        cmocka_unit_test(formulas_know_the_usual_functions),
        cmocka_unit_test(noise_is_smooth_bounded_and_always_the_same),
        cmocka_unit_test(materials_and_pairs_keep_their_values),
        cmocka_unit_test(links_are_excluded_by_their_names),
        cmocka_unit_test(a_robots_links_get_surfaces_and_levels_by_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The URDF reader: what it understands, what it repairs, what it says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/model.h"

// ---- Helpers ----

// Loads a text that must load; its warnings must be `n_warning`.
static us_spec *load_base(const char *text, us_base base, int n_warning) {
    us_load_def def = us_load_def_default();
    def.base = base;
    us_spec *spec = NULL;
    us_error err = {0};
    us_status status = us_spec_load_text(text, strlen(text), "robot.urdf", &def, &spec, &err);
    if (status) fail_msg("%s: %s", us_status_text(status), err.message);
    int n = us_spec_get_counts(spec).n_warning;
    for (int i = 0; i < n && n != n_warning; i++)
        print_message("warning: %s\n", us_spec_view_warning(spec, i)->message);
    assert_int_equal(n, n_warning);
    return spec;
}
static us_spec *load(const char *text, int n_warning) { return load_base(text, US_BASE_FIXED, n_warning); }

static const us_error *warning(const us_spec *spec, const char *fragment) {
    for (int i = 0; i < us_spec_get_counts(spec).n_warning; i++) {
        if (strstr(us_spec_view_warning(spec, i)->message, fragment)) return us_spec_view_warning(spec, i);
    }
    fail_msg("no warning says \"%s\"", fragment);
    return NULL;
}

static const us_link_def *link_named(const us_spec *spec, const char *name) {
    const us_link_def *link = us_spec_view_link(spec, us_spec_find_link(spec, name));
    assert_non_null(link);
    return link;
}
static const us_joint_def *joint_named(const us_spec *spec, const char *name) {
    const us_joint_def *joint = us_spec_view_joint(spec, us_spec_find_joint(spec, name));
    assert_non_null(joint);
    return joint;
}

#define INERTIAL(m, xx, yy, zz)                                                  \
    "<inertial><mass value='" m "'/><inertia ixx='" xx "' iyy='" yy "' izz='" zz \
    "' ixy='0' ixz='0' iyz='0'/></inertial>"
#define GOOD INERTIAL("1", "0.1", "0.1", "0.1")
#define JOINT(name, type, parent, child, more)                                                         \
    "<joint name='" name "' type='" type "'><parent link='" parent "'/><child link='" child "'/>" more \
    "</joint>"

// ---- Links and joints ----

static void every_joint_type_is_read(void **state) {
    (void)state;
    us_spec *spec = load(
        "<robot name='r'><link name='a'/><link name='b'>" GOOD "</link><link name='c'>" GOOD
        "</link><link name='d'>" GOOD "</link><link name='e'>" GOOD "</link><link name='f'>" GOOD
        "</link><link name='g'>" GOOD
        "</link>" JOINT("j1", "revolute", "a", "b",
                        "<axis xyz='0 0 1'/><limit lower='-1' upper='2' effort='30' velocity='4'/><dynamics "
                        "damping='0.5' "
                        "friction='0.25'/><origin xyz='1 2 3' rpy='0 0 1.5707963267948966'/>")
            JOINT("j2", "continuous", "a", "c", "")
                JOINT("j3", "prismatic", "a", "d", "<limit lower='0' upper='1' effort='1' velocity='1'/>")
                    JOINT("j4", "fixed", "a", "e", "") JOINT("j5", "floating", "a", "f", "")
                        JOINT("j6", "planar", "a", "g", "<axis xyz='0 0 1'/>") "</robot>",
        0);
    static const us_joint_type types[] = {US_JOINT_REVOLUTE, US_JOINT_CONTINUOUS, US_JOINT_PRISMATIC,
                                          US_JOINT_FIXED,    US_JOINT_FLOATING,   US_JOINT_PLANAR};
    for (int i = 0; i < 6; i++) {
        char name[4] = {'j', (char)('1' + i), 0};
        assert_int_equal(joint_named(spec, name)->type, types[i]);
    }
    const us_joint_def *j = joint_named(spec, "j1");
    assert_true(j->has_limits && j->lower == -1 && j->upper == 2 && j->effort == 30 && j->velocity == 4 &&
                j->damping == 0.5 && j->friction == 0.25);
    assert_true(j->axis.x == 0 && j->axis.y == 0 && j->axis.z == 1);
    assert_true(j->X_PF.p.x == 1 && j->X_PF.p.y == 2 && j->X_PF.p.z == 3);
    assert_true(fabs(j->X_PF.q.w - sqrt(0.5)) < 1e-15 && fabs(j->X_PF.q.z - sqrt(0.5)) < 1e-15);
    assert_string_equal(j->file, "robot.urdf");
    assert_int_equal(j->line, 1);
    j = joint_named(spec, "j2");
    assert_true(!j->has_limits && j->axis.x == 1 && j->axis.y == 0 && j->axis.z == 0);
    assert_true(joint_named(spec, "j5")->q0[0] == 1);
    us_spec_destroy(spec);
}

static void a_fixed_base_is_a_fixed_joint_to_the_world(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'>" GOOD "</link></robot>", 0);
    const us_joint_def *j = joint_named(spec, "fixed_base");
    assert_int_equal(j->type, US_JOINT_FIXED);
    assert_int_equal(j->parent, US_WORLD);
    assert_int_equal(j->child, us_spec_find_link(spec, "a"));
    assert_false(us_spec_view_group(spec, 0)->is_floating);
    us_spec_destroy(spec);
}

static void a_floating_base_is_a_floating_joint_to_the_world(void **state) {
    (void)state;
    us_spec *spec = load_base("<robot name='r'><link name='a'>" GOOD "</link></robot>", US_BASE_FLOATING, 0);
    const us_joint_def *j = joint_named(spec, "floating_base");
    assert_int_equal(j->type, US_JOINT_FLOATING);
    assert_true(j->q0[0] == 1);
    assert_true(us_spec_view_group(spec, 0)->is_floating);
    us_spec_destroy(spec);
}

static void a_root_called_world_stays_fixed_when_floating_is_asked_for(void **state) {
    (void)state;
    us_spec *spec = load_base("<robot name='r'><link name='world'/><link name='a'>" GOOD
                              "</link>" JOINT("j", "fixed", "world", "a", "") "</robot>",
                              US_BASE_FLOATING, 1);
    assert_non_null(warning(spec, "the root link is \"world\""));
    assert_int_equal(joint_named(spec, "fixed_base")->type, US_JOINT_FIXED);
    us_spec_destroy(spec);
}

static void the_file_order_of_links_and_joints_does_not_matter(void **state) {
    (void)state;
    us_spec *spec = load(
        "<robot name='r'>" JOINT("j2", "fixed", "b", "c", "")
            JOINT("j1", "fixed", "a", "b", "") "<link name='c'/><link name='b'/><link name='a'/></robot>",
        0);
    assert_int_equal(joint_named(spec, "fixed_base")->child, us_spec_find_link(spec, "a"));
    us_spec_destroy(spec);
}

static void a_long_axis_is_made_a_unit_vector_and_told(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" GOOD
                         "</link>" JOINT("j", "continuous", "a", "b", "<axis xyz='0 3 4'/>") "</robot>",
                         1);
    assert_non_null(warning(spec, "length 5"));
    assert_true(fabs(joint_named(spec, "j")->axis.y - 0.6) < 1e-15 &&
                fabs(joint_named(spec, "j")->axis.z - 0.8) < 1e-15);
    us_spec_destroy(spec);
}

static void an_axis_with_cut_digits_is_made_a_unit_vector_silently(void **state) {
    (void)state;
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'>" GOOD
             "</link>" JOINT("j", "continuous", "a", "b", "<axis xyz='0 0.707 0.707'/>") "</robot>",
             0);
    assert_true(fabs(us_vec3_norm(joint_named(spec, "j")->axis) - 1) < 1e-15);
    us_spec_destroy(spec);
}

static void a_revolute_joint_without_limit_is_unlimited_and_told(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" GOOD
                         "</link>" JOINT("j", "revolute", "a", "b", "") "</robot>",
                         1);
    assert_non_null(warning(spec, "has no <limit>"));
    assert_false(joint_named(spec, "j")->has_limits);
    us_spec_destroy(spec);
}

static void huge_and_infinite_limits_mean_none(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" GOOD "</link><link name='c'>" GOOD
                         "</link>" JOINT("j", "revolute", "a", "b",
                                         "<limit lower='-1e+16' upper='1e16' effort='1e30' velocity='inf'/>")
                             JOINT("k", "prismatic", "a", "c",
                                   "<limit lower='-0.5' upper='inf' effort='1' velocity='1'/>") "</robot>",
                         0);
    assert_false(joint_named(spec, "j")->has_limits);
    assert_true(joint_named(spec, "j")->effort == 0 && joint_named(spec, "j")->velocity == 0);
    assert_true(joint_named(spec, "k")->has_limits && joint_named(spec, "k")->lower == -0.5 &&
                joint_named(spec, "k")->upper == 1e15);
    us_spec_destroy(spec);
}

static void a_limit_without_bounds_locks_the_joint_and_says_so(void **state) {
    (void)state;
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'>" GOOD
             "</link>" JOINT("j", "revolute", "a", "b", "<limit effort='1' velocity='1'/>") "</robot>",
             1);
    assert_non_null(warning(spec, "URDF takes both as 0"));
    us_spec_destroy(spec);
}

static void a_joint_that_may_not_be_at_zero_starts_at_its_limit(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" GOOD
                         "</link>" JOINT("j", "revolute", "a", "b",
                                         "<limit lower='0.5' upper='1' effort='1' velocity='1'/>") "</robot>",
                         1);
    assert_non_null(warning(spec, "starts at its limit"));
    assert_true(joint_named(spec, "j")->q0[0] == 0.5);
    us_spec_destroy(spec);
}

static void a_mimic_joint_becomes_a_coupling_and_starts_on_it(void **state) {
    (void)state;
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'>" GOOD "</link><link name='c'>" GOOD
             "</link><link name='d'>" GOOD
             "</link>" JOINT("m2", "continuous", "a", "d", "<mimic joint='m1' multiplier='3'/>")
                 JOINT("m1", "continuous", "a", "b", "<mimic joint='lead' multiplier='-2' offset='0.5'/>")
                     JOINT("lead", "continuous", "a", "c", "") "</robot>",
             0);
    assert_int_equal(us_spec_get_counts(spec).n_coupling, 2);
    const us_coupling_def *c = us_spec_view_coupling(spec, 1);
    assert_string_equal(c->name, "m1");
    assert_int_equal(c->n_term, 2);
    assert_int_equal(c->joint[0], us_spec_find_joint(spec, "m1"));
    assert_int_equal(c->joint[1], us_spec_find_joint(spec, "lead"));
    assert_true(c->factor[0] == 1 && c->factor[1] == 2 && c->offset == 0.5);
    assert_true(joint_named(spec, "m1")->q0[0] == 0.5 && joint_named(spec, "m2")->q0[0] == 1.5 &&
                joint_named(spec, "lead")->q0[0] == 0);
    us_spec_destroy(spec);
}

static void names_in_a_scene_carry_the_robots_name(void **state) {
    (void)state;
    FILE *f = fopen("named.urdf", "wb");
    assert_non_null(f);
    fputs("<robot name='r'><link name='a'/><link name='b'>" GOOD "</link><link name='c'>" GOOD
          "</link>" JOINT("j", "continuous", "a", "b", "")
              JOINT("k", "continuous", "a", "c", "<mimic joint='j'/>") "<gazebo reference='a'/></robot>",
          f);
    assert_int_equal(fclose(f), 0);
    us_spec *spec = load("<scene version='1'><robot name='left' file='named.urdf'/><robot name='right' "
                         "file='named.urdf'/></scene>",
                         0);
    assert_true(us_spec_find_link(spec, "left/b") >= 0 && us_spec_find_link(spec, "right/b") >= 0);
    const us_joint_def *joint = joint_named(spec, "right/j");
    assert_int_equal(joint->parent, us_spec_find_link(spec, "right/a"));
    assert_int_equal(joint->child, us_spec_find_link(spec, "right/b"));
    assert_int_equal(joint_named(spec, "right/fixed_base")->child, us_spec_find_link(spec, "right/a"));
    assert_string_equal(us_spec_view_coupling(spec, 1)->name, "right/k");
    assert_int_equal(us_spec_view_coupling(spec, 1)->joint[1], us_spec_find_joint(spec, "right/j"));
    assert_string_equal(us_spec_view_extension(spec, 1)->reference, "right/a");
    us_spec_destroy(spec);
}

// ---- What is known and ignored, what is not known ----

static void safety_controller_and_calibration_make_no_noise(void **state) {
    (void)state;
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'>" GOOD
             "</link>" JOINT("j", "continuous", "a", "b",
                             "<safety_controller k_velocity='1'/><calibration rising='0'/>") "</robot>",
             0);
    us_spec_destroy(spec);
}

static void an_unknown_element_is_told_once_with_a_guess(void **state) {
    (void)state;
    us_spec *spec =
        load("<robot name='r'><link name='a'><colision/></link><link name='b'><colision/></link>" JOINT(
                 "j", "fixed", "a", "b", "") "</robot>",
             1);
    const us_error *w = warning(spec, "<colision> is not known");
    assert_non_null(strstr(w->remedy, "collision"));
    us_spec_destroy(spec);
}

static void an_unknown_attribute_is_told_with_a_guess(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" GOOD
                         "</link>" JOINT("j", "continuous", "a", "b", "<dynamics dampng='1'/>") "</robot>",
                         1);
    assert_non_null(strstr(warning(spec, "\"dampng\" is not known")->remedy, "damping"));
    us_spec_destroy(spec);
}

static void a_second_origin_is_told(void **state) {
    (void)state;
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'>" GOOD
             "</link>" JOINT("j", "fixed", "a", "b", "<origin xyz='1 0 0'/><origin xyz='2 0 0'/>") "</robot>",
             1);
    assert_non_null(warning(spec, "the first one counts"));
    assert_true(joint_named(spec, "j")->X_PF.p.x == 1);
    us_spec_destroy(spec);
}

static void gazebo_and_transmission_are_kept_as_they_are(void **state) {
    (void)state;
    us_spec *spec = load(
        "<robot name='r'><link name='a'>" GOOD "</link><link name='b'>" GOOD "</link>" JOINT(
            "j", "continuous", "a", "b",
            "") "<gazebo reference='a'><mu1 value=\"0.5\"/></gazebo><gazebo><plugin name=\"p\"/></gazebo>"
                "<transmission name='t'><joint name='j'/></transmission></robot>",
        0);
    assert_int_equal(us_spec_get_counts(spec).n_extension, 3);
    const us_extension_def *e = us_spec_view_extension(spec, 0);
    assert_string_equal(e->tag, "gazebo");
    assert_string_equal(e->reference, "a");
    assert_string_equal(e->xml, "<gazebo reference=\"a\"><mu1 value=\"0.5\"/></gazebo>");
    assert_null(us_spec_view_extension(spec, 1)->reference);
    assert_string_equal(us_spec_view_extension(spec, 2)->reference, "j");
    us_spec_destroy(spec);
}

static void a_gazebo_element_that_speaks_of_nobody_is_told(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'>" GOOD "</link><gazebo reference='x'/></robot>", 1);
    assert_non_null(warning(spec, "is no link or joint"));
    us_spec_destroy(spec);
}

// ---- Shapes and materials ----

static void shapes_of_every_kind_are_read_in_order(void **state) {
    (void)state;
    us_spec *spec = load(
        "<robot name='r'><material name='red'><color rgba='1 0 0 0.5'/></material><link name='a'>" GOOD
        "<visual><geometry><box size='1 2 3'/></geometry><material "
        "name='red'/></visual><visual><geometry><sphere radius='2'/></geometry></visual>"
        "<collision><origin xyz='0 0 1'/><geometry><cylinder radius='1' length='4'/></geometry></collision>"
        "<collision><geometry><capsule radius='1' length='4'/></geometry></collision></link></robot>",
        0);
    assert_int_equal(us_spec_get_counts(spec).n_shape, 4);
    const us_shape_def *s = us_spec_view_shape(spec, 0);
    assert_true(s->kind == US_SHAPE_BOX && s->size[0] == 1 && s->size[1] == 2 && s->size[2] == 3 &&
                s->is_visual && !s->is_collision);
    assert_string_equal(s->material, "red");
    assert_true(s->rgba[0] == 1 && s->rgba[1] == 0 && s->rgba[3] == 0.5f);
    assert_true(us_spec_view_shape(spec, 1)->kind == US_SHAPE_SPHERE &&
                us_spec_view_shape(spec, 1)->size[0] == 2);
    s = us_spec_view_shape(spec, 2);
    assert_true(s->kind == US_SHAPE_CYLINDER && s->size[0] == 1 && s->size[1] == 4 && !s->is_visual &&
                s->is_collision && s->X_BG.p.z == 1);
    assert_true(us_spec_view_shape(spec, 3)->kind == US_SHAPE_CAPSULE);
    us_spec_destroy(spec);
}

static void a_material_may_be_defined_in_any_visual_of_the_file(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'>" GOOD
                         "<visual><geometry><sphere radius='1'/></geometry><material name='blue'/></visual>"
                         "<visual><geometry><sphere radius='1'/></geometry><material name='blue'><color "
                         "rgba='0 0 1 1'/></material></visual></link></robot>",
                         0);
    assert_true(us_spec_view_shape(spec, 0)->rgba[2] == 1);
    us_spec_destroy(spec);
}

static void a_material_without_colour_is_told(void **state) {
    (void)state;
    us_spec *spec = load(
        "<robot name='r'><material name='green'><color rgba='0 1 0 1'/></material><link name='a'>" GOOD
        "<visual><geometry><sphere radius='1'/></geometry><material name='gren'/></visual></link></robot>",
        1);
    assert_non_null(strstr(warning(spec, "has no colour")->remedy, "green"));
    us_spec_destroy(spec);
}

static void a_shape_without_extent_is_left_out_and_told(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'>" GOOD
                         "<visual><geometry><box size='0 0 0'/></geometry></visual></link></robot>",
                         1);
    assert_int_equal(us_spec_get_counts(spec).n_shape, 0);
    us_spec_destroy(spec);
}

// ---- Mass properties ----

static void a_good_inertia_passes_bit_for_bit(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'><inertial><origin xyz='0.1 0.2 "
                         "0.3'/><mass value='46.034'/>"
                         "<inertia ixx='0.6022' ixy='-0.02364' ixz='-0.1197' iyy='1.7386' iyz='-0.001544' "
                         "izz='2.0296'/></inertial></link>" JOINT("j", "continuous", "a", "b", "") "</robot>",
                         0);
    const us_inertia *I = &link_named(spec, "b")->inertia;
    static const double expected[6] = {0.6022, 1.7386, 2.0296, -0.02364, -0.1197, -0.001544};
    assert_true(I->mass == 46.034 && I->com.x == 0.1 && I->com.y == 0.2 && I->com.z == 0.3);
    assert_memory_equal(I->about_com, expected, sizeof expected);
    us_spec_destroy(spec);
}

static void the_inertial_frame_is_turned_into_link_axes(void **state) {
    (void)state;
    // A quarter turn about z exchanges xx and yy, and changes the sign of xy: x of the frame is y of the
    // link.
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'><inertial><origin rpy='0 0 "
             "1.5707963267948966'/><mass value='1'/>"
             "<inertia ixx='2' ixy='0.1' ixz='0.2' iyy='3' iyz='0.3' izz='4'/></inertial></link>" JOINT(
                 "j", "continuous", "a", "b", "") "</robot>",
             0);
    const double *I = link_named(spec, "b")->inertia.about_com;
    static const double expected[6] = {3, 2, 4, -0.1, -0.3, 0.2};
    for (int k = 0; k < 6; k++)
        assert_true(fabs(I[k] - expected[k]) < 1e-14);
    us_spec_destroy(spec);
}

static void massless_frames_on_fixed_joints_make_no_noise(void **state) {
    (void)state;
    us_spec *spec = load_base("<robot name='r'><link name='base'><collision><geometry><box size='1 1 "
                              "1'/></geometry></collision></link><link "
                              "name='frame'/><link name='inertial_link'>" GOOD
                              "</link>" JOINT("j", "fixed", "base", "frame", "")
                                  JOINT("k", "fixed", "base", "inertial_link", "") "</robot>",
                              US_BASE_FLOATING, 0);
    assert_true(link_named(spec, "base")->inertia.mass == 0);
    us_spec_destroy(spec);
}

static void a_moving_link_without_inertial_gets_mass_from_its_shapes_and_says_so(void **state) {
    (void)state;
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'><visual><geometry><sphere "
             "radius='5'/></geometry></visual>"
             "<collision><origin xyz='0 0 1' rpy='0 0 1.5707963267948966'/><geometry><box size='0.1 0.2 "
             "0.3'/></geometry></collision></link>" JOINT("j", "continuous", "a", "b", "") "</robot>",
             1);
    assert_non_null(warning(spec, "6 kg and moments computed from its collision shapes at 1000 kg/m^3"));
    const us_inertia *I = &link_named(spec, "b")->inertia;
    assert_true(fabs(I->mass - 6) < 1e-12 && fabs(I->com.z - 1) < 1e-14);
    assert_true(fabs(I->about_com[0] - 0.5 * (0.01 + 0.09)) < 1e-14 &&
                fabs(I->about_com[1] - 0.5 * (0.04 + 0.09)) < 1e-14);
    us_spec_destroy(spec);
}

static void a_moving_link_without_anything_stays_massless_and_says_so(void **state) {
    (void)state;
    us_spec *spec = load(
        "<robot name='r'><link name='a'/><link name='b'/>" JOINT("j", "continuous", "a", "b", "") "</robot>",
        1);
    assert_non_null(strstr(warning(spec, "it stays massless")->remedy, "armature"));
    assert_true(link_named(spec, "b")->inertia.mass == 0);
    us_spec_destroy(spec);
}

static void a_massless_link_that_carries_mass_makes_no_noise(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'/><link name='c'>" GOOD
                         "</link>" JOINT("j", "continuous", "a", "b", "")
                             JOINT("k", "continuous", "b", "c", "<axis xyz='0 1 0'/>") "</robot>",
                         0);
    us_spec_destroy(spec);
}

static void mass_without_inertia_gets_that_of_a_ball_and_says_so(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" INERTIAL(
                             "2", "0", "0", "0") "</link>" JOINT("j", "continuous", "a", "b", "") "</robot>",
                         1);
    assert_non_null(warning(spec, "has a mass but no inertia"));
    double r = cbrt(2 / (4.0 / 3 * 3.14159265358979323846 * 1000));
    for (int k = 0; k < 3; k++)
        assert_true(fabs(link_named(spec, "b")->inertia.about_com[k] - 0.8 * r * r) < 1e-15);
    us_spec_destroy(spec);
}

static void a_point_mass_fixed_to_a_body_is_left_alone(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" GOOD
                         "</link><link name='p'>" INERTIAL("2", "0", "0", "0") "</link>" JOINT(
                             "j", "continuous", "a", "b", "") JOINT("k", "fixed", "b", "p", "") "</robot>",
                         0);
    assert_true(link_named(spec, "p")->inertia.about_com[0] == 0);
    us_spec_destroy(spec);
}

static void inertia_without_mass_is_not_used_and_told(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'>" INERTIAL("0", "1", "1", "1") "</link></robot>", 1);
    assert_non_null(warning(spec, "has inertia but no mass"));
    assert_true(link_named(spec, "a")->inertia.about_com[0] == 0);
    us_spec_destroy(spec);
}

static void moments_that_break_the_triangle_inequality_are_raised_and_told(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" INERTIAL(
                             "1", "1", "2", "5") "</link>" JOINT("j", "continuous", "a", "b", "") "</robot>",
                         1);
    assert_non_null(warning(spec, "principal moments 1, 2, 5 (the largest is more than the sum of the "
                                  "others); they are raised to 2, 3, 5"));
    const double *I = link_named(spec, "b")->inertia.about_com;
    static const double expected[6] = {2, 3, 5, 0, 0, 0};
    for (int k = 0; k < 6; k++)
        assert_true(fabs(I[k] - expected[k]) < 1e-14);
    us_spec_destroy(spec);
}

static void repaired_moments_keep_their_principal_axes(void **state) {
    (void)state;
    // 1, 2, 5 along axes turned by 45 degrees about z: xx = yy = 1.5, xy = -0.5.
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'><inertial><mass value='1'/><inertia ixx='1.5' "
             "iyy='1.5' izz='5' ixy='-0.5' "
             "ixz='0' iyz='0'/></inertial></link>" JOINT("j", "continuous", "a", "b", "") "</robot>",
             1);
    const double *I = link_named(spec, "b")->inertia.about_com;
    static const double expected[6] = {2.5, 2.5, 5, -0.5, 0, 0};
    for (int k = 0; k < 6; k++)
        assert_true(fabs(I[k] - expected[k]) < 1e-14);
    us_spec_destroy(spec);
}

static void a_negative_moment_is_raised_and_told(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" INERTIAL(
                             "1", "-1", "2", "2") "</link>" JOINT("j", "continuous", "a", "b", "") "</robot>",
                         1);
    assert_non_null(warning(spec, "not all are positive"));
    assert_true(fabs(link_named(spec, "b")->inertia.about_com[0] - 2e-6) < 1e-18 &&
                link_named(spec, "b")->inertia.about_com[1] == 2);
    us_spec_destroy(spec);
}

static void rounding_in_the_triangle_inequality_passes_untouched(void **state) {
    (void)state;
    us_spec *spec =
        load("<robot name='r'><link name='a'/><link name='b'>" INERTIAL(
                 "1", "1", "2", "3.000001") "</link>" JOINT("j", "continuous", "a", "b", "") "</robot>",
             0);
    assert_true(link_named(spec, "b")->inertia.about_com[0] == 1);
    us_spec_destroy(spec);
}

static void bad_moments_on_a_fixed_joint_are_told_but_not_touched(void **state) {
    (void)state;
    us_spec *spec = load("<robot name='r'><link name='a'/><link name='b'>" INERTIAL(
                             "1", "1", "2", "5") "</link>" JOINT("j", "fixed", "a", "b", "") "</robot>",
                         1);
    assert_non_null(warning(spec, "used as they are"));
    assert_true(link_named(spec, "b")->inertia.about_com[0] == 1);
    us_spec_destroy(spec);
}

// ---- Real robots ----

// The path of a file in the shared data, or NULL when there is none.
static const char *shared(const char *name) {
    static char path[512];
    const char *root = getenv("US_SHARED");
    snprintf(path, sizeof path, "%s/%s", root ? root : US_SOURCE_DIR "/../shared", name);
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f ? path : NULL;
}

static us_spec *load_shared(const char *name, us_base base) {
    const char *path = shared(name);
    if (!path) {
        print_message("skipped: %s is absent\n", name);
        return NULL;
    }
    us_load_def def = us_load_def_default();
    def.base = base;
    us_spec *spec = NULL;
    us_error err = {0};
    if (us_spec_load(path, &def, &spec, &err)) fail_msg("%s:%d: %s", err.file, (int)err.line, err.message);
    return spec;
}

static void the_husky_loads_without_a_warning(void **state) {
    (void)state;
    us_spec *spec = load_shared("data/models/husky/husky.urdf", US_BASE_FLOATING);
    if (!spec) return;
    us_spec_counts n = us_spec_get_counts(spec);
    assert_int_equal(n.n_warning, 0);
    assert_int_equal(n.n_link, 15);
    assert_int_equal(n.n_joint, 15);
    assert_int_equal(n.n_extension, 12);
    assert_true(link_named(spec, "inertial_link")->inertia.mass == 46.034);
    int n_mesh = 0;
    for (int i = 0; i < n.n_shape; i++) {
        const us_shape_def *s = us_spec_view_shape(spec, i);
        if (s->kind != US_SHAPE_MESH) continue;
        n_mesh++;
        assert_true(s->n_triangle > 0);
        assert_true(us_vec3_norm(us_vec3_sub(s->box_max, s->box_min)) < 2);
    }
    assert_int_equal(n_mesh, 11);
    us_spec_destroy(spec);
}

static void the_ur10_loads_without_a_warning(void **state) {
    (void)state;
    us_spec *spec = load_shared("data/models/ur10/ur10.urdf", US_BASE_FIXED);
    if (!spec) return;
    us_spec_counts n = us_spec_get_counts(spec);
    assert_int_equal(n.n_warning, 0);
    assert_int_equal(n.n_link, 11);
    assert_int_equal(n.n_shape, 15);
    assert_true(joint_named(spec, "elbow_joint")->upper == 3.14159265359);
    us_spec_destroy(spec);
}

static void a_mesh_that_collides_keeps_its_triangles_and_one_that_is_only_seen_does_not(void **state) {
    (void)state;
    us_spec *spec = load_shared("data/models/ur10/ur10.urdf", US_BASE_FIXED);
    if (!spec) return;
    us_spec_counts n = us_spec_get_counts(spec);
    int32_t n_collision = 0;
    for (int i = 0; i < n.n_shape; i++) {
        const us_shape_def *s = us_spec_view_shape(spec, i);
        n_collision += s->is_collision;
        if (s->kind == US_SHAPE_MESH) assert_int_equal(s->triangles != NULL, s->is_collision);
    }
    assert_true(n_collision > 0);
    us_model *model = NULL;
    us_error err;
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_model_get_counts(model).n_geom, n_collision);
    // One hull is much larger than its mesh, and the remedy is named.
    assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
    assert_non_null(strstr(us_spec_view_warning(spec, 0)->remedy, "part-error"));
    us_model_destroy(model);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_joint_type_is_read),
        cmocka_unit_test(a_fixed_base_is_a_fixed_joint_to_the_world),
        cmocka_unit_test(a_floating_base_is_a_floating_joint_to_the_world),
        cmocka_unit_test(a_root_called_world_stays_fixed_when_floating_is_asked_for),
        cmocka_unit_test(the_file_order_of_links_and_joints_does_not_matter),
        cmocka_unit_test(a_long_axis_is_made_a_unit_vector_and_told),
        cmocka_unit_test(an_axis_with_cut_digits_is_made_a_unit_vector_silently),
        cmocka_unit_test(a_revolute_joint_without_limit_is_unlimited_and_told),
        cmocka_unit_test(huge_and_infinite_limits_mean_none),
        cmocka_unit_test(a_limit_without_bounds_locks_the_joint_and_says_so),
        cmocka_unit_test(a_joint_that_may_not_be_at_zero_starts_at_its_limit),
        cmocka_unit_test(a_mimic_joint_becomes_a_coupling_and_starts_on_it),
        cmocka_unit_test(names_in_a_scene_carry_the_robots_name),
        cmocka_unit_test(safety_controller_and_calibration_make_no_noise),
        cmocka_unit_test(an_unknown_element_is_told_once_with_a_guess),
        cmocka_unit_test(an_unknown_attribute_is_told_with_a_guess),
        cmocka_unit_test(a_second_origin_is_told),
        cmocka_unit_test(gazebo_and_transmission_are_kept_as_they_are),
        cmocka_unit_test(a_gazebo_element_that_speaks_of_nobody_is_told),
        cmocka_unit_test(shapes_of_every_kind_are_read_in_order),
        cmocka_unit_test(a_material_may_be_defined_in_any_visual_of_the_file),
        cmocka_unit_test(a_material_without_colour_is_told),
        cmocka_unit_test(a_shape_without_extent_is_left_out_and_told),
        cmocka_unit_test(a_good_inertia_passes_bit_for_bit),
        cmocka_unit_test(the_inertial_frame_is_turned_into_link_axes),
        cmocka_unit_test(massless_frames_on_fixed_joints_make_no_noise),
        cmocka_unit_test(a_moving_link_without_inertial_gets_mass_from_its_shapes_and_says_so),
        cmocka_unit_test(a_moving_link_without_anything_stays_massless_and_says_so),
        cmocka_unit_test(a_massless_link_that_carries_mass_makes_no_noise),
        cmocka_unit_test(mass_without_inertia_gets_that_of_a_ball_and_says_so),
        cmocka_unit_test(a_point_mass_fixed_to_a_body_is_left_alone),
        cmocka_unit_test(inertia_without_mass_is_not_used_and_told),
        cmocka_unit_test(moments_that_break_the_triangle_inequality_are_raised_and_told),
        cmocka_unit_test(repaired_moments_keep_their_principal_axes),
        cmocka_unit_test(a_negative_moment_is_raised_and_told),
        cmocka_unit_test(rounding_in_the_triangle_inequality_passes_untouched),
        cmocka_unit_test(bad_moments_on_a_fixed_joint_are_told_but_not_touched),
        cmocka_unit_test(the_husky_loads_without_a_warning),
        cmocka_unit_test(the_ur10_loads_without_a_warning),
        cmocka_unit_test(a_mesh_that_collides_keeps_its_triangles_and_one_that_is_only_seen_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

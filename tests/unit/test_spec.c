// The editable description: what is added is copied, counted, found again, and can be replaced.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "understudy/spec.h"

static test_allocator memory;

static int set_up(void **state) {
    us_spec *spec = NULL;
    test_allocator_init(&memory);
    assert_int_equal(us_spec_create(&memory.allocator, &spec), US_OK);
    *state = spec;
    return 0;
}

static int tear_down(void **state) {
    us_spec_destroy(*state);
    test_allocator_check(&memory);
    return 0;
}

static void every_joint_type_has_its_name_and_numbers_of_coordinates(void **state) {
    (void)state;
    static const struct {
        us_joint_type type;
        const char *name;
        int32_t n_q, n_v;
    } want[] = {{US_JOINT_FIXED, "fixed", 0, 0},           {US_JOINT_REVOLUTE, "revolute", 1, 1},
                {US_JOINT_CONTINUOUS, "continuous", 1, 1}, {US_JOINT_PRISMATIC, "prismatic", 1, 1},
                {US_JOINT_HELICAL, "helical", 1, 1},       {US_JOINT_CYLINDRICAL, "cylindrical", 2, 2},
                {US_JOINT_UNIVERSAL, "universal", 2, 2},   {US_JOINT_SPHERICAL, "spherical", 4, 3},
                {US_JOINT_PLANAR, "planar", 3, 3},         {US_JOINT_FLOATING, "floating", 7, 6}};
    assert_int_equal(sizeof want / sizeof *want, US_JOINT_COUNT);
    for (int i = 0; i < US_JOINT_COUNT; i++) {
        assert_string_equal(us_joint_type_name(want[i].type), want[i].name);
        assert_int_equal(us_joint_type_n_q(want[i].type), want[i].n_q);
        assert_int_equal(us_joint_type_n_v(want[i].type), want[i].n_v);
    }
    const us_joint_type bad[] = {US_JOINT_COUNT, (us_joint_type)-1, (us_joint_type)1000};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(us_joint_type_name(bad[i]), "?");
        assert_int_equal(us_joint_type_n_q(bad[i]), 0);
        assert_int_equal(us_joint_type_n_v(bad[i]), 0);
    }
}

static void integrators_have_names(void **state) {
    (void)state;
    assert_string_equal(us_integrator_name(US_INTEGRATOR_MIDPOINT), "midpoint");
    assert_string_equal(us_integrator_name(US_INTEGRATOR_EULER), "euler");
    assert_string_equal(us_integrator_name(US_INTEGRATOR_RK4), "rk4");
    assert_string_equal(us_integrator_name(US_INTEGRATOR_ADAPTIVE), "adaptive");
    assert_string_equal(us_integrator_name(US_INTEGRATOR_COUNT), "?");
    assert_string_equal(us_integrator_name((us_integrator)-1), "?");
}

static void defaults_are_those_of_the_header(void **state) {
    (void)state;
    us_world_settings w = us_world_settings_default();
    assert_true(w.gravity.x == 0 && w.gravity.y == 0 && w.gravity.z == -9.81);
    assert_true(w.step == 1e-3 && w.tolerance == 1e-9 && w.duration == 0);
    assert_int_equal(w.integrator, US_INTEGRATOR_MIDPOINT);
    assert_int_equal(w.seed, 1);
    for (int i = 0; i < US_JOINT_COUNT; i++) {
        us_joint_def j = us_joint_def_default((us_joint_type)i);
        assert_int_equal(j.type, i);
        assert_int_equal(j.parent, US_WORLD);
        assert_int_equal(j.group, -1);
        assert_true(j.axis.x == 1 && j.axis.y == 0 && j.axis.z == 0);
        assert_true(j.axis2.x == 0 && j.axis2.y == 1 && j.axis2.z == 0);
        assert_true(j.X_PF.q.w == 1 && j.X_PF.p.x == 0);
        assert_true(j.damping == 0 && j.stiffness == 0 && j.armature == 0 && j.friction == 0 &&
                    !j.has_limits);
        bool has_quaternion = i == US_JOINT_SPHERICAL || i == US_JOINT_FLOATING;
        assert_true(j.q0[0] == (has_quaternion ? 1 : 0));
    }
    assert_int_equal(us_link_def_default().group, -1);
    assert_true(us_link_def_default().inertia.mass == 0);
    us_loop_def l = us_loop_def_default(US_LOOP_WELD);
    assert_int_equal(l.type, US_LOOP_WELD);
    assert_true(l.X_AC.q.w == 1 && l.X_BD.q.w == 1);
    assert_int_equal(us_coupling_def_default().n_term, 0);
    assert_true(us_drive_def_default().limit == 0);
    assert_int_equal(us_record_def_default().n_value, 0);
    us_shape_def s = us_shape_def_default(US_SHAPE_CAPSULE);
    assert_int_equal(s.kind, US_SHAPE_CAPSULE);
    assert_true(s.is_visual && s.is_collision && s.X_BG.q.w == 1);
    assert_true(s.group == 1 && s.mask == UINT32_MAX && s.margin == 0 && s.level == 0 && !s.surface);
    us_pair_def p = us_pair_def_default();
    assert_null(p.model);
    assert_true(p.values.static_friction == 0.9 && p.values.kinetic_friction == 0.8 &&
                p.values.viscous == 0.5);
    assert_string_equal(w.solver, "newton");
    assert_string_equal(w.fidelity, "");
    assert_int_equal(w.max_contact, 0);
}

static void every_kind_of_shape_has_a_name_of_its_own(void **state) {
    (void)state;
    for (int i = 0; i < US_SHAPE_COUNT; i++) {
        assert_true(strlen(us_shape_kind_name((us_shape_kind)i)) > 2);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(us_shape_kind_name((us_shape_kind)i),
                                    us_shape_kind_name((us_shape_kind)k));
    }
    assert_string_equal(us_shape_kind_name(US_SHAPE_COUNT), "?");
    assert_string_equal(us_shape_kind_name(US_SHAPE_HALF_SPACE), "half-space");
    assert_string_equal(us_shape_kind_name(US_SHAPE_INTERSECTION), "intersection");
}

static void a_new_spec_is_an_empty_world_with_defaults(void **state) {
    us_spec *spec = *state;
    us_spec_counts c = us_spec_get_counts(spec), none = {0};
    assert_memory_equal(&c, &none, sizeof c);
    assert_true(us_spec_view_world(spec)->step == 1e-3);
    assert_null(us_spec_view_link(spec, 0));
}

// Writes over a text, as a caller who reuses a buffer does.
static void scribble(char *text) {
    for (; *text; text++)
        *text = '#';
}

static void texts_are_copied_in_every_kind_of_definition(void **state) {
    us_spec *spec = *state;
    char a[] = "name", b[] = "file", c[] = "mesh", d[] = "uri", e[] = "paint", f[] = "value", g[] = "tag",
         h[] = "reference", x[] = "<xml/>";
    us_world_settings world = us_world_settings_default();
    world.name = a;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    us_group_def group = {.name = a, .file = b, .line = 4, .is_floating = true};
    us_link_def link = us_link_def_default();
    us_joint_def joint = us_joint_def_default(US_JOINT_PRISMATIC);
    us_shape_def shape = us_shape_def_default(US_SHAPE_MESH);
    us_coupling_def coupling = us_coupling_def_default();
    us_loop_def loop = us_loop_def_default(US_LOOP_HINGE);
    us_drive_def drive = us_drive_def_default();
    us_record_def record = us_record_def_default();
    const char *values[] = {f, a};
    us_extension_def extension = {.tag = g, .group = -1, .reference = h, .xml = x, .file = b, .line = 9};
    link.name = joint.name = coupling.name = loop.name = drive.name = record.file_name = a;
    link.file = joint.file = shape.file = coupling.file = loop.file = drive.file = record.file = b;
    shape.mesh = c;
    shape.mesh_uri = d;
    shape.material = e;
    record.n_value = 2;
    record.values = values;
    joint.pitch = 0.25;
    drive.kp = 17;
    coupling.offset = -3;
    loop.X_AC.p.y = 8;
    link.inertia.mass = 6;
    int32_t index[8];
    assert_int_equal(us_spec_add_group(spec, &group, &index[0]), US_OK);
    assert_int_equal(us_spec_add_link(spec, &link, &index[1]), US_OK);
    assert_int_equal(us_spec_add_joint(spec, &joint, &index[2]), US_OK);
    assert_int_equal(us_spec_add_shape(spec, &shape, &index[3]), US_OK);
    assert_int_equal(us_spec_add_coupling(spec, &coupling, &index[4]), US_OK);
    assert_int_equal(us_spec_add_loop(spec, &loop, &index[5]), US_OK);
    assert_int_equal(us_spec_add_drive(spec, &drive, &index[6]), US_OK);
    assert_int_equal(us_spec_add_record(spec, &record, &index[7]), US_OK);
    assert_int_equal(us_spec_add_extension(spec, &extension, NULL), US_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(index[i], 0);
    char *const texts[] = {a, b, c, d, e, f, g, h, x};
    for (int i = 0; i < 9; i++)
        scribble(texts[i]);
    values[0] = values[1] = NULL;

    assert_string_equal(us_spec_view_world(spec)->name, "name");
    const us_group_def *vg = us_spec_view_group(spec, 0);
    assert_string_equal(vg->name, "name");
    assert_string_equal(vg->file, "file");
    assert_true(vg->line == 4 && vg->is_floating);
    assert_string_equal(us_spec_view_link(spec, 0)->name, "name");
    assert_string_equal(us_spec_view_link(spec, 0)->file, "file");
    assert_true(us_spec_view_link(spec, 0)->inertia.mass == 6);
    assert_string_equal(us_spec_view_joint(spec, 0)->name, "name");
    assert_string_equal(us_spec_view_joint(spec, 0)->file, "file");
    assert_true(us_spec_view_joint(spec, 0)->pitch == 0.25);
    const us_shape_def *vs = us_spec_view_shape(spec, 0);
    assert_string_equal(vs->mesh, "mesh");
    assert_string_equal(vs->mesh_uri, "uri");
    assert_string_equal(vs->material, "paint");
    assert_string_equal(vs->file, "file");
    assert_string_equal(us_spec_view_coupling(spec, 0)->name, "name");
    assert_true(us_spec_view_coupling(spec, 0)->offset == -3);
    assert_string_equal(us_spec_view_loop(spec, 0)->name, "name");
    assert_true(us_spec_view_loop(spec, 0)->X_AC.p.y == 8);
    assert_string_equal(us_spec_view_drive(spec, 0)->name, "name");
    assert_true(us_spec_view_drive(spec, 0)->kp == 17);
    const us_record_def *vr = us_spec_view_record(spec, 0);
    assert_string_equal(vr->file_name, "name");
    assert_string_equal(vr->values[0], "value");
    assert_string_equal(vr->values[1], "name");
    const us_extension_def *ve = us_spec_view_extension(spec, 0);
    assert_string_equal(ve->tag, "tag");
    assert_string_equal(ve->reference, "reference");
    assert_string_equal(ve->xml, "<xml/>");
    assert_int_equal(ve->line, 9);
}

static void texts_may_be_missing(void **state) {
    us_spec *spec = *state;
    us_link_def link = us_link_def_default();
    link.name = NULL;
    link.file = NULL;
    assert_int_equal(us_spec_add_link(spec, &link, NULL), US_OK);
    assert_null(us_spec_view_link(spec, 0)->name);
    assert_int_equal(us_spec_find_link(spec, "anything"), -1);
    us_joint_def joint = us_joint_def_default(US_JOINT_FIXED);
    joint.name = NULL;
    us_drive_def drive = us_drive_def_default();
    drive.name = NULL;
    assert_int_equal(us_spec_add_joint(spec, &joint, NULL), US_OK);
    assert_int_equal(us_spec_add_drive(spec, &drive, NULL), US_OK);
    assert_int_equal(us_spec_find_joint(spec, "anything"), -1);
    assert_int_equal(us_spec_find_drive(spec, "anything"), -1);
}

static void many_elements_keep_their_order_and_are_found_by_name(void **state) {
    us_spec *spec = *state;
    enum { N = 500 };
    char name[32];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "element %d", i);
        us_link_def link = us_link_def_default();
        us_joint_def joint = us_joint_def_default(US_JOINT_REVOLUTE);
        us_drive_def drive = us_drive_def_default();
        link.name = joint.name = drive.name = name;
        link.line = i;
        int32_t at = -1;
        assert_int_equal(us_spec_add_link(spec, &link, &at), US_OK);
        assert_int_equal(at, i);
        assert_int_equal(us_spec_add_joint(spec, &joint, &at), US_OK);
        assert_int_equal(at, i);
        assert_int_equal(us_spec_add_drive(spec, &drive, &at), US_OK);
        assert_int_equal(at, i);
    }
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "element %d", i);
        assert_int_equal(us_spec_find_link(spec, name), i);
        assert_int_equal(us_spec_find_joint(spec, name), i);
        assert_int_equal(us_spec_find_drive(spec, name), i);
        assert_int_equal(us_spec_view_link(spec, i)->line, i);
        assert_string_equal(us_spec_view_joint(spec, i)->name, name);
    }
    assert_int_equal(us_spec_find_link(spec, "element"), -1);
    us_spec_counts c = us_spec_get_counts(spec);
    assert_true(c.n_link == N && c.n_joint == N && c.n_drive == N && c.n_group == 0);
}

static void views_beyond_the_ends_are_null(void **state) {
    us_spec *spec = *state;
    us_link_def link = us_link_def_default();
    assert_int_equal(us_spec_add_link(spec, &link, NULL), US_OK);
    assert_non_null(us_spec_view_link(spec, 0));
    const int32_t bad[] = {-1, 1, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        assert_null(us_spec_view_group(spec, bad[i]));
        assert_null(us_spec_view_link(spec, bad[i]));
        assert_null(us_spec_view_joint(spec, bad[i]));
        assert_null(us_spec_view_shape(spec, bad[i]));
        assert_null(us_spec_view_coupling(spec, bad[i]));
        assert_null(us_spec_view_loop(spec, bad[i]));
        assert_null(us_spec_view_drive(spec, bad[i]));
        assert_null(us_spec_view_record(spec, bad[i]));
        assert_null(us_spec_view_extension(spec, bad[i]));
        assert_null(us_spec_view_warning(spec, bad[i]));
    }
}

static void definitions_that_cannot_be_kept_are_refused(void **state) {
    us_spec *spec = *state;
    us_joint_def joint = us_joint_def_default(US_JOINT_FIXED);
    joint.type = US_JOINT_COUNT;
    assert_int_equal(us_spec_add_joint(spec, &joint, NULL), US_ERR_ARG);
    joint.type = (us_joint_type)-1;
    assert_int_equal(us_spec_add_joint(spec, &joint, NULL), US_ERR_ARG);
    us_coupling_def coupling = us_coupling_def_default();
    coupling.n_term = US_COUPLING_TERMS + 1;
    assert_int_equal(us_spec_add_coupling(spec, &coupling, NULL), US_ERR_ARG);
    coupling.n_term = -1;
    assert_int_equal(us_spec_add_coupling(spec, &coupling, NULL), US_ERR_ARG);
    us_loop_def loop = us_loop_def_default(US_LOOP_POINT);
    loop.type = US_LOOP_COUNT;
    assert_int_equal(us_spec_add_loop(spec, &loop, NULL), US_ERR_ARG);
    us_shape_def shape = us_shape_def_default(US_SHAPE_BOX);
    shape.kind = US_SHAPE_COUNT;
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_ERR_ARG);
    us_record_def record = us_record_def_default();
    record.n_value = -1;
    assert_int_equal(us_spec_add_record(spec, &record, NULL), US_ERR_ARG);
    record.n_value = 1;
    assert_int_equal(us_spec_add_record(spec, &record, NULL), US_ERR_ARG);
    us_spec_counts c = us_spec_get_counts(spec), none = {0};
    assert_memory_equal(&c, &none, sizeof c);
}

static void a_joint_can_be_replaced_but_not_moved_to_other_links(void **state) {
    us_spec *spec = *state;
    us_joint_def joint = us_joint_def_default(US_JOINT_REVOLUTE);
    joint.name = "elbow";
    joint.parent = 0;
    joint.child = 1;
    assert_int_equal(us_spec_add_joint(spec, &joint, NULL), US_OK);
    char name[] = "elbow";
    joint.name = name;
    joint.damping = 3;
    joint.type = US_JOINT_CONTINUOUS;
    joint.q0[0] = 0.5;
    assert_int_equal(us_spec_set_joint(spec, 0, &joint), US_OK);
    scribble(name);
    const us_joint_def *v = us_spec_view_joint(spec, 0);
    assert_string_equal(v->name, "elbow");
    assert_true(v->damping == 3 && v->type == US_JOINT_CONTINUOUS && v->q0[0] == 0.5);
    us_joint_def other = *v;
    other.damping = 4;
    other.parent = 2;
    assert_int_equal(us_spec_set_joint(spec, 0, &other), US_ERR_ARG);
    other.parent = 0;
    other.child = 0;
    assert_int_equal(us_spec_set_joint(spec, 0, &other), US_ERR_ARG);
    other.child = 1;
    other.type = US_JOINT_COUNT;
    assert_int_equal(us_spec_set_joint(spec, 0, &other), US_ERR_ARG);
    assert_int_equal(us_spec_set_joint(spec, 1, v), US_ERR_ARG);
    assert_int_equal(us_spec_set_joint(spec, -1, v), US_ERR_ARG);
    assert_int_equal(us_spec_set_joint(spec, 0, NULL), US_ERR_ARG);
    assert_true(us_spec_view_joint(spec, 0)->damping == 3);
    // Its own view put back is the same definition.
    assert_int_equal(us_spec_set_joint(spec, 0, us_spec_view_joint(spec, 0)), US_OK);
    assert_string_equal(us_spec_view_joint(spec, 0)->name, "elbow");
}

static void a_drive_can_be_replaced_but_not_moved_to_another_joint(void **state) {
    us_spec *spec = *state;
    us_drive_def drive = us_drive_def_default();
    drive.name = "motor";
    drive.joint = 2;
    drive.coordinate = 1;
    assert_int_equal(us_spec_add_drive(spec, &drive, NULL), US_OK);
    drive.kp = 100;
    assert_int_equal(us_spec_set_drive(spec, 0, &drive), US_OK);
    assert_true(us_spec_view_drive(spec, 0)->kp == 100);
    drive.kp = 200;
    drive.joint = 1;
    assert_int_equal(us_spec_set_drive(spec, 0, &drive), US_ERR_ARG);
    drive.joint = 2;
    drive.coordinate = 0;
    assert_int_equal(us_spec_set_drive(spec, 0, &drive), US_ERR_ARG);
    assert_int_equal(us_spec_set_drive(spec, 1, &drive), US_ERR_ARG);
    assert_int_equal(us_spec_set_drive(spec, 0, NULL), US_ERR_ARG);
    assert_true(us_spec_view_drive(spec, 0)->kp == 100);
}

static void warnings_are_kept_in_order(void **state) {
    us_spec *spec = *state;
    us_error warning;
    for (int i = 0; i < 20; i++) {
        us_error_set(&warning, US_OK, NULL, "r", "warning %d", i);
        assert_int_equal(us_spec_add_warning(spec, &warning), US_OK);
    }
    assert_int_equal(us_spec_get_counts(spec).n_warning, 20);
    assert_string_equal(us_spec_view_warning(spec, 19)->message, "warning 19");
    assert_string_equal(us_spec_view_warning(spec, 0)->message, "warning 0");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_joint_type_has_its_name_and_numbers_of_coordinates),
        cmocka_unit_test(integrators_have_names),
        cmocka_unit_test(defaults_are_those_of_the_header),
        TEST(a_new_spec_is_an_empty_world_with_defaults),
        TEST(texts_are_copied_in_every_kind_of_definition),
        TEST(texts_may_be_missing),
        TEST(many_elements_keep_their_order_and_are_found_by_name),
        TEST(views_beyond_the_ends_are_null),
        TEST(definitions_that_cannot_be_kept_are_refused),
        TEST(a_joint_can_be_replaced_but_not_moved_to_other_links),
        TEST(a_drive_can_be_replaced_but_not_moved_to_another_joint),
        TEST(warnings_are_kept_in_order),
        cmocka_unit_test(every_kind_of_shape_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

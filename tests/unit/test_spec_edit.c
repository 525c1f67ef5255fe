// Changing a spec: copies, removals, other places and shapes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "allocator.h"
#include "contact_crowd.h"

static us_model *compile(us_spec *spec) {
    us_model *model = NULL;
    us_error err = {.code = US_OK};
    if (us_model_compile(spec, NULL, &model, &err)) fail_msg("%s: %s", err.element, err.message);
    return model;
}

static us_spec *small_crowd(void) { return crowd_spec(2, 1, 3, "gauss-seidel"); }

// Two robots of a base, an arm and a hand; a drive on each arm, a coupling and a loop across, a recording of
// both.
static us_spec *two_robots(void) {
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_EULER);
    const us_vec3 zero = {0, 0, 0}, one = {1, 1, 1}, x = {1, 0, 0};
    static const char *const names[2][3] = {{"a/base", "a/arm", "a/hand"}, {"b/base", "b/arm", "b/hand"}};
    int32_t hand[2], joint[2];
    for (int r = 0; r < 2; r++) {
        us_group_def group = {.name = r ? "b" : "a"};
        int32_t g = -1, link[3];
        assert_int_equal(us_spec_add_group(spec, &group, &g), US_OK);
        for (int i = 0; i < 3; i++) {
            us_link_def def = us_link_def_default();
            def.name = names[r][i];
            def.group = g;
            def.inertia.mass = 1;
            def.inertia.about_com[0] = def.inertia.about_com[1] = def.inertia.about_com[2] = 0.1;
            assert_int_equal(us_spec_add_link(spec, &def, &link[i]), US_OK);
            us_joint_def j = build_joint_at(i == 0 ? US_JOINT_FIXED : US_JOINT_REVOLUTE,
                                            i == 0 ? US_WORLD : link[i - 1], link[i], one, x);
            j.group = g;
            joint[r] = build_joint_def(spec, names[r][i], &j);
            scene_add_box(spec, link[i], one, zero);
        }
        hand[r] = link[2];
        build_drive(spec, r ? "b/drive" : "a/drive", joint[r], 1, 1, 0, 0);
    }
    build_coupling(spec, "equal", joint[0], 1, joint[1], -1, 0);
    build_loop(spec, "hands", US_LOOP_POINT, hand[0], zero, hand[1], zero);
    us_exclude_def exclude = {.link_a = hand[0], .link_b = hand[1]};
    assert_int_equal(us_spec_add_exclude(spec, &exclude, NULL), US_OK);
    const char *const values[] = {"a/arm.q", "b/hand.q", "b/drive.torque", "energy"}, *const only[] = {
                                                                                          "a/hand.q"};
    us_record_def record = us_record_def_default(), lone = record;
    record.file_name = "both.csv";
    record.values = values;
    record.n_value = 4;
    lone.file_name = "a.csv";
    lone.values = only;
    lone.n_value = 1;
    assert_int_equal(us_spec_add_record(spec, &record, NULL), US_OK);
    assert_int_equal(us_spec_add_record(spec, &lone, NULL), US_OK);
    us_extension_def note = {.tag = "gazebo", .group = 0, .reference = "a/arm", .xml = "<gazebo/>"},
                     other = note;
    other.group = 1;
    other.reference = "b/arm";
    assert_int_equal(us_spec_add_extension(spec, &note, NULL), US_OK);
    assert_int_equal(us_spec_add_extension(spec, &other, NULL), US_OK);
    return spec;
}

static void a_copy_of_a_spec_compiles_to_the_same_model(void **state) {
    (void)state;
    us_spec *(*const specs[])(void) = {small_crowd, two_robots, build_branched_tree};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        us_spec *spec = specs[i](), *copy = NULL;
        assert_int_equal(us_spec_copy(spec, &copy), US_OK);
        us_spec_counts a = us_spec_get_counts(spec), b = us_spec_get_counts(copy);
        assert_memory_equal(&a, &b, sizeof a);
        us_model *first = compile(spec);
        uint64_t hash = us_model_hash(first);
        us_model_destroy(first);
        us_spec_destroy(spec);  // deep: nothing of the original is needed
        us_model *second = compile(copy);
        assert_true(us_model_hash(second) == hash);
        us_model_destroy(second);
        us_spec_destroy(copy);
    }
    us_spec *none = NULL;
    assert_int_equal(us_spec_copy(NULL, &none), US_ERR_ARG);
    assert_null(none);
}

static void a_copy_without_memory_fails_whole(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    us_spec *spec = NULL, *copy = NULL;
    assert_int_equal(us_spec_create(&t.allocator, &spec), US_OK);
    scene_ground(spec);
    scene_start at = scene_at(0, 0, 1);
    scene_box(spec, "box", 1, us_vec3_make(0.2, 0.2, 0.2), &at);
    int64_t live = t.n_live;
    us_status status = US_ERR_MEMORY;
    int n = 0;
    for (; status; n++) {
        t.fail_at = t.n_alloc + n + 1;
        status = us_spec_copy(spec, &copy);
        if (!status) break;
        assert_int_equal(status, US_ERR_MEMORY);
        assert_int_equal(t.n_live, live);
    }
    t.fail_at = 0;
    assert_true(n > 3);
    us_spec_destroy(copy);
    us_spec_destroy(spec);
    test_allocator_check(&t);
}

static void removing_a_link_takes_all_that_hangs_on_it(void **state) {
    (void)state;
    us_spec *spec = two_robots();
    assert_int_equal(us_spec_remove_link(spec, us_spec_find_link(spec, "a/arm")), US_OK);
    us_spec_counts n = us_spec_get_counts(spec);
    assert_int_equal(n.n_group, 2);
    assert_int_equal(n.n_link, 4);
    assert_int_equal(n.n_joint, 4);
    assert_int_equal(n.n_shape, 4);
    assert_int_equal(n.n_drive, 1);
    assert_int_equal(n.n_coupling, 0);
    assert_int_equal(n.n_loop, 0);
    assert_int_equal(n.n_exclude, 0);
    assert_int_equal(n.n_extension, 1);
    assert_int_equal(us_spec_find_link(spec, "a/hand"), -1);
    // What stays has followed: b/hand hangs on b/arm, its drive and shape are on it.
    int32_t hand = us_spec_find_link(spec, "b/hand"), joint = us_spec_find_joint(spec, "b/hand");
    assert_int_equal(hand, 3);
    assert_int_equal(us_spec_view_joint(spec, joint)->child, hand);
    assert_int_equal(us_spec_view_joint(spec, joint)->parent, us_spec_find_link(spec, "b/arm"));
    assert_int_equal(us_spec_view_drive(spec, 0)->joint, joint);
    assert_int_equal(us_spec_view_shape(spec, 3)->link, hand);
    assert_int_equal(us_spec_view_link(spec, hand)->group, 1);
    // The recording of only a/hand has nothing left and goes; the other one keeps three values.
    assert_int_equal(n.n_record, 1);
    assert_int_equal(us_spec_view_record(spec, 0)->n_value, 3);
    assert_string_equal(us_spec_view_record(spec, 0)->values[0], "b/hand.q");
    us_model_destroy(compile(spec));
    us_spec_destroy(spec);
}

static void removing_a_group_takes_its_links_and_the_group(void **state) {
    (void)state;
    us_spec *spec = two_robots();
    assert_int_equal(us_spec_remove_group(spec, 0), US_OK);
    us_spec_counts n = us_spec_get_counts(spec);
    assert_int_equal(n.n_group, 1);
    assert_int_equal(n.n_link, 3);
    assert_int_equal(n.n_joint, 3);
    assert_int_equal(n.n_drive, 1);
    assert_int_equal(n.n_extension, 1);
    assert_string_equal(us_spec_view_group(spec, 0)->name, "b");
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(us_spec_view_link(spec, i)->group, 0);
        assert_int_equal(us_spec_view_joint(spec, i)->group, 0);
        assert_int_equal(us_spec_view_shape(spec, i)->link, i);
    }
    assert_int_equal(us_spec_view_extension(spec, 0)->group, 0);
    us_model_destroy(compile(spec));
    assert_int_equal(us_spec_remove_group(spec, 0), US_OK);
    assert_int_equal(us_spec_get_counts(spec).n_link, 0);
    us_spec_destroy(spec);
}

static void edits_of_what_is_not_there_change_nothing(void **state) {
    (void)state;
    us_spec *spec = two_robots();
    us_spec_counts before = us_spec_get_counts(spec);
    us_pose X = us_pose_identity(), bad = {{NAN, 0, 0, 0}, {0, 0, 0}};
    us_shape_def shape = us_shape_def_default(US_SHAPE_BOX), wrong = shape;
    wrong.n_point = -1;
    assert_int_equal(us_spec_remove_group(spec, 2), US_ERR_ARG);
    assert_int_equal(us_spec_remove_link(spec, -1), US_ERR_ARG);
    assert_int_equal(us_spec_remove_shape(spec, 99), US_ERR_ARG);
    assert_int_equal(us_spec_set_shape(spec, 99, &shape), US_ERR_ARG);
    assert_int_equal(us_spec_set_shape(spec, 0, NULL), US_ERR_ARG);
    assert_int_equal(us_spec_set_shape(spec, 0, &wrong), US_ERR_ARG);
    assert_int_equal(us_spec_move_shape(spec, -1, X), US_ERR_ARG);
    assert_int_equal(us_spec_move_shape(spec, 0, bad), US_ERR_VALUE);
    assert_int_equal(us_spec_move_link(spec, 99, X), US_ERR_ARG);
    assert_int_equal(us_spec_move_link(spec, 1, X), US_ERR_TREE);
    assert_int_equal(us_spec_move_link(spec, 0, bad), US_ERR_VALUE);
    assert_int_equal(us_spec_raise_link(spec, 1, 1), US_ERR_TREE);
    assert_int_equal(us_spec_raise_link(spec, 0, NAN), US_ERR_VALUE);
    assert_int_equal(us_spec_raise_link(NULL, 0, 1), US_ERR_ARG);
    us_spec_counts after = us_spec_get_counts(spec);
    assert_memory_equal(&before, &after, sizeof before);
    us_spec_destroy(spec);
}

static void a_floating_object_in_a_turned_frame_is_raised_along_the_worlds_z(void **state) {
    (void)state;
    us_spec *spec = build_spec(0, 1e-3, US_INTEGRATOR_EULER);
    int32_t link = build_link(spec, "box", 1, us_vec3_make(0, 0, 0), us_vec3_make(1, 1, 1));
    us_joint_def joint = us_joint_def_default(US_JOINT_FLOATING);
    joint.child = link;
    joint.X_PF = (us_pose){us_quat_from_rpy(0.5, -0.7, 1.2), {1, 2, 3}};
    build_joint_def(spec, "float", &joint);
    us_pose X = {us_quat_from_rpy(0.1, 0.2, 0.3), {-1, 0.5, 2}};
    assert_int_equal(us_spec_move_link(spec, link, X), US_OK);
    assert_int_equal(us_spec_raise_link(spec, link, 0.75), US_OK);
    built b = build_sim(spec);
    us_pose now = us_sim_get_pose(b.sim, (us_body){0});
    // Two turns there and back of lengths of a few metres.
    build_near("x", now.p.x, -1, 1e-14);
    build_near("y", now.p.y, 0.5, 1e-14);
    build_near("z", now.p.z, 2.75, 1e-14);
    build_near("turn", fabs(us_quat_mul(us_quat_conj(now.q), X.q).w), 1, 1e-14);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_of_a_spec_compiles_to_the_same_model),
        cmocka_unit_test(a_copy_without_memory_fails_whole),
        cmocka_unit_test(removing_a_link_takes_all_that_hangs_on_it),
        cmocka_unit_test(removing_a_group_takes_its_links_and_the_group),
        cmocka_unit_test(edits_of_what_is_not_there_change_nothing),
        cmocka_unit_test(a_floating_object_in_a_turned_frame_is_raised_along_the_worlds_z),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

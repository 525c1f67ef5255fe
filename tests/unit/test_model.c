// The compiled model: fixed joints merged with names kept, coordinates in order and named, and a hash that
// sees every number.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contract_build.h"

static us_vec3 at(double x, double y, double z) { return us_vec3_make(x, y, z); }

static us_spec *empty_spec(void) {
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    return spec;
}

static void near(double got, double want) {
    // A dozen roundings of numbers of size 1 to 10.
    if (!(fabs(got - want) < 1e-13)) fail_msg("%.17g rather than %.17g", got, want);
}

static void near_point(us_vec3 got, us_vec3 want) {
    near(got.x, want.x);
    near(got.y, want.y);
    near(got.z, want.z);
}

// ---------------------------------------------------------------- merging

// A lies at the base; B stands 1 m above it, a quarter turn about z. Worked out by hand:
//   mass 2 + 3, mass times centre of mass (0.2, 0, 0) + (-0.6, 0, 3)
//   about A's origin: A (0.1, 0.2, 0.3) + 2 (0, 0.01, 0.01); B turned (0.02, 0.01, 0.03) + 3 (1, 1.04, 0.04),
//   xz 3 * 0.2
static us_model *merged_pair(void) {
    us_spec *spec = empty_spec();
    int32_t a = contract_link(spec, "A", 2, at(0.1, 0, 0), 0.1, 0.2, 0.3),
            b = contract_link(spec, "B", 3, at(0, 0.2, 0), 0.01, 0.02, 0.03);
    contract_joint(spec, US_JOINT_FLOATING, "base", US_WORLD, a, at(0, 0, 0));
    us_joint_def j = contract_joint_def(US_JOINT_FIXED, "weld", a, b, at(0, 0, 1));
    j.X_PF.q = us_quat_exp(at(0, 0, 1.5707963267948966));
    contract_add_joint(spec, &j);
    return contract_compile(spec);
}

static void a_merged_pair_has_the_composite_inertia_worked_out_by_hand(void **state) {
    (void)state;
    us_model *m = merged_pair();
    us_dyn *d = NULL;
    assert_int_equal(us_model_get_counts(m).n_v, 6);
    assert_int_equal(us_model_get_counts(m).n_body, 2);
    assert_int_equal(us_dyn_create(m, NULL, &d), US_OK);
    const double q[7] = {1, 0, 0, 0, 0, 0, 0};
    double h[36];
    assert_int_equal(us_dyn_mass_matrix(d, q, h), US_OK);
    const double want[36] = {3.12, 0,    0.6,  0, -3,   0,    //
                             0,    3.35, 0,    3, 0,    0.4,  //
                             0.6,  0,    0.47, 0, -0.4, 0,    //
                             0,    3,    0,    5, 0,    0,    //
                             -3,   0,    -0.4, 0, 5,    0,    //
                             0,    0.4,  0,    0, 0,    5};
    for (int i = 0; i < 36; i++)
        near(h[i], want[i]);
    us_dyn_destroy(d);
    us_model_destroy(m);
}

static void merged_links_keep_their_names_inertias_and_poses(void **state) {
    (void)state;
    us_model *m = merged_pair();
    us_body b = us_model_find_body(m, "B");
    assert_int_equal(b.i, 1);
    assert_string_equal(us_model_body_name(m, b), "B");
    us_inertia I = us_model_get_inertia(m, b);
    assert_true(I.mass == 3 && I.com.y == 0.2 && I.about_com[2] == 0.03);
    us_joint_info weld = us_model_get_joint(m, us_model_find_joint(m, "weld"));
    assert_int_equal(weld.type, US_JOINT_FIXED);
    assert_int_equal(weld.n_q, 0);
    assert_int_equal(weld.n_v, 0);
    assert_int_equal(weld.parent.i, 0);
    assert_int_equal(weld.child.i, 1);
    us_sim *sim = contract_sim(m);
    // A half turn about x at (1, 2, 3): B's origin is 1 m below that, and B's x is A's y, which points to -y.
    const double q[7] = {0, 1, 0, 0, 1, 2, 3}, v[6] = {0, 0, 2, 0, 0, 0};
    assert_int_equal(us_sim_set_state(sim, q, v), US_OK);
    us_pose X = us_sim_get_pose(sim, b);
    near_point(X.p, at(1, 2, 2));
    near_point(us_quat_rotate(X.q, at(1, 0, 0)), at(0, -1, 0));
    near_point(us_quat_rotate(X.q, at(0, 1, 0)), at(-1, 0, 0));
    // The body turns about its own z, which is the world's -z, through both origins.
    us_twist V = us_sim_get_twist(sim, b);
    near_point(V.w, at(0, 0, -2));
    near_point(V.v, at(0, 0, 0));
    us_momentum p = us_sim_get_momentum(sim);
    near(p.mass, 5);
    near_point(p.com, at(1 - 0.08, 2, 3 - 0.6));
    us_sim_destroy(sim);
    us_model_destroy(m);
}

static void a_chain_of_fixed_joints_moves_as_the_single_link_that_it_is(void **state) {
    (void)state;
    us_spec *chain = empty_spec(), *single = empty_spec();
    // Three equal bars of 1 kg in a row along x, each with its centre of mass in its middle, and one bar of
    // the same mass and inertia.
    int32_t link[3];
    static const char *const names[] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++)
        link[i] = contract_link(chain, names[i], 1, at(0.5, 0, 0), 0, 1.0 / 12, 1.0 / 12);
    us_joint_def hinge = contract_joint_def(US_JOINT_REVOLUTE, "hinge", US_WORLD, link[0], at(0, 0, 2));
    hinge.axis = at(0, 1, 0);
    contract_add_joint(chain, &hinge);
    // The third is added before the second: order of writing does not matter.
    contract_joint(chain, US_JOINT_FIXED, "weld two", link[1], link[2], at(1, 0, 0));
    contract_joint(chain, US_JOINT_FIXED, "weld one", link[0], link[1], at(1, 0, 0));
    hinge.child = contract_link(single, "bar", 3, at(1.5, 0, 0), 0, 27.0 / 12, 27.0 / 12);
    contract_add_joint(single, &hinge);
    us_model *a = contract_compile(chain), *b = contract_compile(single);
    us_sim *sa = contract_sim(a), *sb = contract_sim(b);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(us_sim_step(sa, NULL), US_OK);
        assert_int_equal(us_sim_step(sb, NULL), US_OK);
    }
    near(us_sim_view_q(sa)[0], us_sim_view_q(sb)[0]);
    near(us_sim_view_v(sa)[0], us_sim_view_v(sb)[0]);
    double angle = us_sim_view_q(sa)[0];
    assert_true(angle > 0.3);
    near_point(us_sim_get_pose(sa, (us_body){link[2]}).p, at(2 * cos(angle), 0, 2 - 2 * sin(angle)));
    us_sim_destroy(sa);
    us_sim_destroy(sb);
    us_model_destroy(a);
    us_model_destroy(b);
}

static void links_merged_onto_the_world_stand_still_and_carry_others(void **state) {
    (void)state;
    us_spec *spec = empty_spec();
    int32_t floor = contract_link(spec, "floor", 100, at(0, 0, 0), 1, 1, 1),
            post = contract_link(spec, "post", 10, at(0, 0, 0), 1, 1, 1);
    int32_t arm = contract_link(spec, "arm", 1, at(0, 0, -0.5), 0.1, 0.1, 0.1);
    us_joint_def j = contract_joint_def(US_JOINT_FIXED, "floor_joint", US_WORLD, floor, at(1, 0, 0));
    j.X_PF.q = us_quat_exp(at(0, 0, 1.5707963267948966));
    contract_add_joint(spec, &j);
    contract_joint(spec, US_JOINT_FIXED, "post_joint", floor, post, at(1, 0, 2));
    contract_joint(spec, US_JOINT_REVOLUTE, "arm_joint", post, arm, at(0, 1, 0));
    us_model *m = contract_compile(spec);
    assert_int_equal(us_model_get_counts(m).n_v, 1);
    assert_int_equal(us_model_get_counts(m).n_body, 3);
    us_sim *sim = contract_sim(m);
    for (int i = 0; i < 100; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    near_point(us_sim_get_pose(sim, (us_body){floor}).p, at(1, 0, 0));
    near_point(us_sim_get_pose(sim, (us_body){post}).p, at(1, 1, 2));
    near_point(us_sim_get_pose(sim, (us_body){arm}).p, at(0, 1, 2));
    us_twist V = us_sim_get_twist(sim, (us_body){post});
    assert_true(us_vec3_norm(V.w) == 0 && us_vec3_norm(V.v) == 0);
    near(us_sim_get_momentum(sim).mass, 1);
    us_sim_destroy(sim);
    us_model_destroy(m);
}

static void a_world_in_which_nothing_moves_still_steps(void **state) {
    (void)state;
    us_spec *spec = empty_spec();
    us_model *nothing = contract_compile(spec);
    us_sim *sim = contract_sim(nothing);
    for (int i = 0; i < 10; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    assert_int_equal(us_sim_get_tick(sim), 10);
    us_energy e = us_sim_get_energy(sim);
    assert_true(e.kinetic == 0 && e.potential == 0 && us_sim_get_closure(sim) == 0);
    us_sim_destroy(sim);
    us_model_destroy(nothing);
    spec = empty_spec();
    int32_t rock = contract_link(spec, "rock", 1, at(0, 0, 0), 1, 1, 1);
    contract_joint(spec, US_JOINT_FIXED, "lies", US_WORLD, rock, at(4, 5, 6));
    us_model *still = contract_compile(spec);
    sim = contract_sim(still);
    assert_int_equal(us_sim_step(sim, NULL), US_OK);
    near_point(us_sim_get_pose(sim, (us_body){0}).p, at(4, 5, 6));
    us_sim_destroy(sim);
    us_model_destroy(still);
}

// ---------------------------------------------------------------- order and names

static void coordinates_are_depth_first_in_the_order_of_writing(void **state) {
    (void)state;
    us_spec *spec = empty_spec();
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++)
        contract_link(spec, names[i], 1, at(0, 0, 0), 1, 1, 1);
    // Written:  c-d  world-a  a-b  world-c  a-e.  Depth first:  world-a  a-b  a-e  world-c  c-d.
    contract_joint(spec, US_JOINT_REVOLUTE, "to d", 2, 3, at(0, 0, 0));
    contract_joint(spec, US_JOINT_SPHERICAL, "to a", US_WORLD, 0, at(0, 0, 0));
    contract_joint(spec, US_JOINT_CYLINDRICAL, "to b", 0, 1, at(0, 0, 0));
    contract_joint(spec, US_JOINT_FLOATING, "to c", US_WORLD, 2, at(0, 0, 0));
    contract_joint(spec, US_JOINT_PLANAR, "to e", 0, 4, at(0, 0, 0));
    us_model *m = contract_compile(spec);
    static const struct {
        const char *name;
        int32_t first_q, n_q, first_v, n_v;
    } want[] = {{"to a", 0, 4, 0, 3},
                {"to b", 4, 2, 3, 2},
                {"to e", 6, 3, 5, 3},
                {"to c", 9, 7, 8, 6},
                {"to d", 16, 1, 14, 1}};
    for (int i = 0; i < 5; i++) {
        us_joint_info j = us_model_get_joint(m, us_model_find_joint(m, want[i].name));
        assert_int_equal(j.first_q, want[i].first_q);
        assert_int_equal(j.n_q, want[i].n_q);
        assert_int_equal(j.first_v, want[i].first_v);
        assert_int_equal(j.n_v, want[i].n_v);
    }
    us_model_counts n = us_model_get_counts(m);
    assert_true(n.n_q == 17 && n.n_v == 15 && n.n_node == 15 && n.n_tree == 2 && n.n_joint == 5 &&
                n.n_body == 5);
    // Indices of links and joints are those of the spec.
    assert_int_equal(us_model_find_joint(m, "to d").i, 0);
    assert_int_equal(us_model_find_body(m, "e").i, 4);
    us_model_destroy(m);
}

static void every_coordinate_has_a_name(void **state) {
    (void)state;
    static const char *const positions[US_JOINT_COUNT][7] = {
        {NULL},
        {"j"},
        {"j"},
        {"j"},
        {"j"},
        {"j.angle", "j.distance"},
        {"j.1", "j.2"},
        {"j.qw", "j.qx", "j.qy", "j.qz"},
        {"j.x", "j.y", "j.angle"},
        {"j.qw", "j.qx", "j.qy", "j.qz", "j.x", "j.y", "j.z"}};
    static const char *const velocities[US_JOINT_COUNT][6] = {
        {NULL},
        {"j"},
        {"j"},
        {"j"},
        {"j"},
        {"j.angle", "j.distance"},
        {"j.1", "j.2"},
        {"j.wx", "j.wy", "j.wz"},
        {"j.x", "j.y", "j.angle"},
        {"j.wx", "j.wy", "j.wz", "j.vx", "j.vy", "j.vz"}};
    for (int type = 0; type < US_JOINT_COUNT; type++) {
        us_spec *spec = empty_spec();
        int32_t body = contract_link(spec, "body", 1, at(0, 0, 0), 1, 1, 1);
        contract_joint(spec, (us_joint_type)type, "j", US_WORLD, body, at(0, 0, 0));
        us_model *m = contract_compile(spec);
        char name[32];
        int32_t n_q = us_joint_type_n_q((us_joint_type)type), n_v = us_joint_type_n_v((us_joint_type)type);
        for (int32_t i = 0; i < n_q; i++) {
            assert_int_equal(us_model_position_name(m, i, name, sizeof name), strlen(positions[type][i]));
            assert_string_equal(name, positions[type][i]);
        }
        for (int32_t i = 0; i < n_v; i++) {
            assert_int_equal(us_model_velocity_name(m, i, name, sizeof name), strlen(velocities[type][i]));
            assert_string_equal(name, velocities[type][i]);
        }
        assert_int_equal(us_model_position_name(m, n_q, name, sizeof name), 0);
        assert_string_equal(name, "");
        us_model_destroy(m);
    }
}

static void a_name_that_does_not_fit_is_cut_and_its_length_told(void **state) {
    (void)state;
    us_model *m = contract_compile(contract_pendulum_spec());
    char name[4] = "zzz";
    assert_int_equal(us_model_velocity_name(m, 0, NULL, 0), 5);
    assert_int_equal(us_model_velocity_name(m, 0, name, 3), 5);
    assert_string_equal(name, "hi");
    us_model_destroy(m);
}

static void the_fields_describe_the_whole_block(void **state) {
    (void)state;
    us_model *m = contract_model(CONTRACT_LOOPS, US_INTEGRATOR_MIDPOINT);
    size_t bytes = 0;
    bool has_node = false;
    for (int32_t i = 0; i < us_model_n_field(m); i++) {
        us_field_info f = us_model_get_field(m, i);
        assert_string_equal(f.block, "model");
        assert_true(f.name[0] && f.type[0] && f.about[0]);
        bytes += f.bytes;
        if (strcmp(f.name, "node") == 0) has_node = f.count == (size_t)us_model_get_counts(m).n_node;
    }
    assert_true(has_node);
    assert_true(bytes > 0 && bytes <= us_model_get_counts(m).model_bytes);
    us_model_destroy(m);
}

// ---------------------------------------------------------------- the hash

static us_spec *rich_spec(contract_world world) {
    us_spec *spec = NULL;
    assert_int_equal(contract_spec(world, US_INTEGRATOR_MIDPOINT, NULL, &spec), US_OK);
    return spec;
}

static void the_same_spec_gives_the_same_hash(void **state) {
    (void)state;
    for (int w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        us_model *a = contract_model((contract_world)w, US_INTEGRATOR_MIDPOINT),
                 *b = contract_model((contract_world)w, US_INTEGRATOR_MIDPOINT);
        assert_int_equal(us_model_hash(a), us_model_hash(b));
        us_model_destroy(a);
        us_model_destroy(b);
    }
}

static void settings_of_the_world_change_the_hash(void **state) {
    (void)state;
    uint64_t seen[16];
    int n = 0;
    for (int k = 0; k < 10; k++) {
        us_spec *spec = rich_spec(CONTRACT_FREE);
        us_world_settings w = *us_spec_view_world(spec);
        if (k == 1) w.gravity.x = nextafter(0, 1);
        if (k == 2) w.gravity.y = 1e-9;
        if (k == 3) w.gravity.z = nextafter(w.gravity.z, 0);
        if (k == 4) w.step = nextafter(w.step, 1);
        if (k == 5) w.tolerance = nextafter(w.tolerance, 1);
        if (k == 6) w.seed = 2;
        if (k >= 7) w.integrator = (us_integrator)(k - 6);
        assert_int_equal(us_spec_set_world(spec, &w), US_OK);
        us_model *m = contract_compile(spec);
        seen[n] = us_model_hash(m);
        for (int i = 0; i < n; i++)
            assert_int_not_equal(seen[i], seen[n]);
        n++;
        us_model_destroy(m);
    }
}

// Builds the spec again with one number of one joint, drive or link changed by a little.
static uint64_t changed_hash(const char *kind, int which) {
    us_spec *spec = rich_spec(CONTRACT_EVERY_JOINT);
    if (strcmp(kind, "joint") == 0) {
        int32_t i = us_spec_find_joint(spec, "shoulder");
        us_joint_def j = *us_spec_view_joint(spec, i);
        double *const number[] = {&j.X_PF.q.x, &j.X_PF.p.x, &j.X_PF.p.y,  &j.X_PF.p.z, &j.axis.x,
                                  &j.axis.y,   &j.damping,  &j.stiffness, &j.rest,     &j.armature,
                                  &j.friction, &j.lower,    &j.upper,     &j.q0[0],    &j.v0[0]};
        *number[which] += 1e-9;
        assert_int_equal(us_spec_set_joint(spec, i, &j), US_OK);
    } else if (strcmp(kind, "screw") == 0) {
        int32_t i = us_spec_find_joint(spec, which ? "elbow" : "screw_joint");
        us_joint_def j = *us_spec_view_joint(spec, i);
        *(which ? &j.axis2.x : &j.pitch) += 1e-9;
        assert_int_equal(us_spec_set_joint(spec, i, &j), US_OK);
    } else {
        us_drive_def d = *us_spec_view_drive(spec, 0);
        double *const number[] = {&d.kp, &d.kd, &d.position, &d.velocity, &d.torque, &d.limit};
        *number[which] += 1e-9;
        assert_int_equal(us_spec_set_drive(spec, 0, &d), US_OK);
    }
    us_model *m = contract_compile(spec);
    uint64_t hash = us_model_hash(m);
    us_model_destroy(m);
    return hash;
}

static void every_number_of_joints_and_drives_changes_the_hash(void **state) {
    (void)state;
    us_model *m = contract_model(CONTRACT_EVERY_JOINT, US_INTEGRATOR_MIDPOINT);
    for (int i = 0; i < 15; i++) {
        if (changed_hash("joint", i) == us_model_hash(m)) fail_msg("number %d of a joint", i);
    }
    for (int i = 0; i < 2; i++)
        assert_int_not_equal(changed_hash("screw", i), us_model_hash(m));
    for (int i = 0; i < 6; i++) {
        if (changed_hash("drive", i) == us_model_hash(m)) fail_msg("number %d of a drive", i);
    }
    us_model_destroy(m);
}

// A small world with one of each, in which the number `which` is changed.
static uint64_t small_hash(int which) {
    us_spec *spec = empty_spec();
    double inertia[10] = {2, 0.1, 0.2, 0.3, 1, 1.1, 1.2, 0.01, 0.02, 0.03},
           loop[14] = {1, 0, 0, 0, 1, 2, 3, 1, 0, 0, 0, 4, 5, 6}, coupling[3] = {1, 2, 0.1};
    if (which >= 1 && which <= 10) inertia[which - 1] += 1e-9;
    if (which >= 11 && which <= 24) loop[which - 11] += which == 11 || which == 18 ? 1 : 1e-9;
    if (which >= 25 && which <= 27) coupling[which - 25] += 1e-9;
    us_link_def link = us_link_def_default();
    link.name = which == 28 ? "linl" : "link";
    memcpy(&link.inertia, inertia, sizeof inertia);
    assert_int_equal(us_spec_add_link(spec, &link, NULL), US_OK);
    contract_link(spec, "other", 1, at(0, 0, 0), 1, 1, 1);
    contract_joint(spec, US_JOINT_FLOATING, "free", US_WORLD, 0, at(0, 0, 0));
    contract_joint(spec, US_JOINT_CYLINDRICAL, "held", US_WORLD, 1, at(0, 0, 0));
    us_loop_def l = us_loop_def_default(which == 29 ? US_LOOP_HINGE : US_LOOP_POINT);
    l.name = "loop";
    l.link_a = 0;
    l.link_b = 1;
    memcpy(&l.X_AC, loop, 7 * sizeof(double));
    memcpy(&l.X_BD, loop + 7, 7 * sizeof(double));
    assert_int_equal(us_spec_add_loop(spec, &l, NULL), US_OK);
    us_coupling_def c = us_coupling_def_default();
    c.name = "gear";
    c.n_term = 2;
    c.joint[0] = c.joint[1] = 1;
    c.coordinate[1] = 1;
    c.factor[0] = coupling[0];
    c.factor[1] = coupling[1];
    c.offset = coupling[2];
    assert_int_equal(us_spec_add_coupling(spec, &c, NULL), US_OK);
    us_model *m = contract_compile(spec);
    uint64_t hash = us_model_hash(m);
    us_model_destroy(m);
    return hash;
}

static void every_number_of_links_loops_and_couplings_changes_the_hash(void **state) {
    (void)state;
    uint64_t base = small_hash(0);
    assert_int_equal(small_hash(0), base);
    for (int which = 1; which < 30; which++) {
        // A quaternion (2, 0, 0, 0) is (1, 0, 0, 0) after its length is made 1.
        bool is_length = which == 11 || which == 18;
        if ((small_hash(which) == base) != is_length) fail_msg("number %d", which);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_merged_pair_has_the_composite_inertia_worked_out_by_hand),
        cmocka_unit_test(merged_links_keep_their_names_inertias_and_poses),
        cmocka_unit_test(a_chain_of_fixed_joints_moves_as_the_single_link_that_it_is),
        cmocka_unit_test(links_merged_onto_the_world_stand_still_and_carry_others),
        cmocka_unit_test(a_world_in_which_nothing_moves_still_steps),
        cmocka_unit_test(coordinates_are_depth_first_in_the_order_of_writing),
        cmocka_unit_test(every_coordinate_has_a_name),
        cmocka_unit_test(a_name_that_does_not_fit_is_cut_and_its_length_told),
        cmocka_unit_test(the_fields_describe_the_whole_block),
        cmocka_unit_test(the_same_spec_gives_the_same_hash),
        cmocka_unit_test(settings_of_the_world_change_the_hash),
        cmocka_unit_test(every_number_of_joints_and_drives_changes_the_hash),
        cmocka_unit_test(every_number_of_links_loops_and_couplings_changes_the_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Which model acts in soil: by the pair's row, changed while running, and by a law of one's own; wheels that
// lie in two soils; forces at the nodes under a body.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "soil_rig.h"
#include "understudy/soil_law.h"

static const double G = 9.81;

static void expect_near(const char *what, double is, double wanted, double within) {
    if (!(fabs(is - wanted) <= within)) fail_msg("%s is %.9g, expected %.9g", what, is, wanted);
}

// ---------------------------------------------------------------- the table

// A box of 20 kg and a wheel of 10 kg on sand; the pair's row between them is `row`.
static const char *pair_text(const char *row, const char *fidelity) {
    static char text[1600];
    snprintf(text, sizeof text,
             "<scene name=\"pair\" version=\"1\">"
             "<world step=\"1 ms\" %s><shape name=\"ground\" type=\"plane\" surface=\"sand\"/></world>"
             "<material name=\"steel\"/><material name=\"sand\"><soil like=\"dry_sand\"/></material>%s"
             "<object name=\"box\" xyz=\"0 0 0.1\"><link name=\"l\"><inertial mass=\"20\" inertia=\"0.2 0.2 "
             "0.2\"/><shape type=\"box\" size=\"0.2 0.2 0.2\" surface=\"steel\"/></link></object>"
             "<object name=\"wheel\"><link name=\"l\"><inertial mass=\"10\" inertia=\"0.1 0.1 0.1\"/>"
             "<shape type=\"cylinder\" size=\"0.1 0.1\" rpy=\"-90 0 0 deg\" surface=\"steel\"/></link>"
             "<joint name=\"up\" type=\"prismatic\" parent=\"world\" child=\"l\" axis=\"0 0 1\" xyz=\"0 1 "
             "0.1\"/></object></scene>",
             fidelity, row);
    return text;
}

static double depth_of(const soil_world *w, const char *body) {
    us_pose X = us_sim_get_pose(w->sim, us_model_find_body(w->model, body));
    return 0.1 - X.p.z;
}

static void expect_depths(const char *row, const char *fidelity, bool is_firm) {
    soil_world w = soil_text(pair_text(row, fidelity), NULL);
    soil_steps(&w, 1500);
    const double box = depth_of(&w, "box/l"), wheel = depth_of(&w, "wheel/l");
    // Firm contact gives by micrometres; dry sand carries 5 kPa and 100 N on a line at millimetres.
    if (is_firm ? !(box < 1e-4 && wheel < 1e-4) : !(box > 1e-3 && wheel > 5e-3))
        fail_msg("%s %s: the box is %g m deep, the wheel %g m", row, fidelity, box, wheel);
    soil_free(&w);
}

static void the_model_of_the_pair_decides_whether_soil_acts(void **state) {
    (void)state;
    expect_depths("", "", false);
    expect_depths("<pair a=\"steel\" b=\"sand\" friction=\"0.5\"/>", "", false);
    expect_depths("<pair a=\"steel\" b=\"sand\" model=\"soil\"/>", "", false);
    expect_depths("<pair a=\"steel\" b=\"sand\" model=\"compliant\"/>", "", true);
    expect_depths("<pair a=\"sand\" b=\"steel\" model=\"compliant\"/>", "", true);
    expect_depths("<pair model=\"compliant\"/>", "", true);
    expect_depths("<pair b=\"sand\" model=\"compliant\" fidelity=\"low\"/>", "", false);
    expect_depths("<pair b=\"sand\" model=\"compliant\" fidelity=\"low\"/>", "fidelity=\"low\"", true);
    expect_depths("<pair b=\"sand\" model=\"compliant\"/><pair b=\"sand\" model=\"soil\" fidelity=\"high\"/>",
                  "fidelity=\"high\"", false);
}

static void a_model_of_soil_between_firm_materials_is_refused(void **state) {
    (void)state;
    const char *text = "<scene name=\"x\" version=\"1\"><world/><material name=\"a\"/><material name=\"b\"/>"
                       "<pair a=\"a\" b=\"b\" model=\"soil\"/></scene>";
    us_error err = {.code = US_OK};
    us_spec *spec = NULL;
    us_model *model = NULL;
    const us_load_def def = us_load_def_default();
    assert_int_equal(us_spec_load_text(text, strlen(text), "test.xml", &def, &spec, &err), US_OK);
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "neither material is soil"));
    us_spec_destroy(spec);
}

static void the_model_changes_while_running_and_is_part_of_the_state(void **state) {
    (void)state;
    soil_world w = soil_text(pair_text("", ""), NULL), v = soil_text(pair_text("", ""), NULL);
    const us_material steel = soil_material(&w, "steel"), sand = soil_material(&w, "sand");
    assert_string_equal(us_sim_get_pair_model(w.sim, steel, sand), "soil");
    assert_string_equal(us_sim_get_pair_model(w.sim, steel, steel), "compliant");
    soil_steps(&w, 500);
    const uint64_t before = us_sim_hash(w.sim);
    assert_int_equal(us_sim_set_pair_model(w.sim, steel, sand, "soil"), US_OK);
    assert_int_equal(us_sim_hash(w.sim), before);
    // Firm from now on: what has sunk is pushed out.
    assert_int_equal(us_sim_set_pair_model(w.sim, sand, steel, "compliant"), US_OK);
    assert_string_equal(us_sim_get_pair_model(w.sim, steel, sand), "compliant");
    assert_int_not_equal(us_sim_hash(w.sim), before);
    size_t length = 0;
    assert_int_equal(us_sim_save(w.sim, NULL, 0, &length), US_OK);
    void *saved = malloc(length);
    assert_int_equal(us_sim_save(w.sim, saved, length, &length), US_OK);
    soil_steps(&w, 1500);
    assert_true(depth_of(&w, "box/l") < 1e-4 && depth_of(&w, "wheel/l") < 1e-4);
    assert_int_equal(us_sim_n_soil_contact(w.sim), 0);
    // The same from the snapshot, in another sim.
    assert_int_equal(us_sim_restore(v.sim, saved, length), US_OK);
    assert_string_equal(us_sim_get_pair_model(v.sim, steel, sand), "compliant");
    soil_steps(&v, 1500);
    assert_int_equal(us_sim_hash(v.sim), us_sim_hash(w.sim));
    // And back.
    assert_int_equal(us_sim_set_pair_model(w.sim, steel, sand, "soil"), US_OK);
    soil_steps(&w, 1500);
    assert_true(depth_of(&w, "box/l") > 1e-3 && depth_of(&w, "wheel/l") > 5e-3);
    assert_int_equal(us_sim_reset(w.sim), US_OK);
    assert_string_equal(us_sim_get_pair_model(w.sim, steel, sand), "soil");
    free(saved);
    soil_free(&w);
    soil_free(&v);
}

static void a_model_that_cannot_act_is_refused_and_changes_nothing(void **state) {
    (void)state;
    soil_world w = soil_text(pair_text("", ""), NULL);
    const us_material steel = soil_material(&w, "steel"), sand = soil_material(&w, "sand"), bad = {99};
    const uint64_t hash = us_sim_hash(w.sim);
    assert_int_equal(us_sim_set_pair_model(w.sim, steel, sand, "magic"), US_ERR_NAME);
    assert_int_equal(us_sim_set_pair_model(w.sim, steel, steel, "soil"), US_ERR_VALUE);
    assert_int_equal(us_sim_set_pair_model(w.sim, steel, bad, "soil"), US_ERR_ARG);
    assert_int_equal(us_sim_set_pair_model(w.sim, steel, sand, NULL), US_ERR_ARG);
    assert_int_equal(us_sim_set_pair_model(NULL, steel, sand, "soil"), US_ERR_ARG);
    assert_null(us_sim_get_pair_model(w.sim, steel, bad));
    assert_int_equal(us_sim_hash(w.sim), hash);
    soil_free(&w);
}

// ---------------------------------------------------------------- a law of one's own

// Springs with Coulomb friction; the state counts steps.
static bool act_springs(const us_soil_touch *touch, double *state, us_soil_answer *answer, void *user) {
    const double k = us_property_number(touch->parameters, touch->n_parameter, "stiffness", 1), mu = 0.3;
    const double load = k * fmax(touch->sinkage, 0), u = touch->vx - touch->wheel.radius * touch->spin,
                 over = mu * load / fmax(sqrt(u * u + touch->vy * touch->vy), 0.01);
    *(int *)user = 1;
    answer->force = us_vec3_make(-over * u, -over * touch->vy, load);
    answer->moment = touch->wheel.radius * answer->force.x;
    answer->stiffness = k;
    answer->damping = 2 * sqrt(k * fmax(load, 1) / touch->history.gravity);
    answer->drag[0] = answer->drag[1] = fmax(over, 1e-3);
    answer->friction = mu;
    answer->hold = 100 * k;
    state[0] += 1;
    state[1] = touch->carried;
    return k > 1;
}

static soil_world law_world(const char *text, void *user,
                            bool (*act)(const us_soil_touch *, double *, us_soil_answer *, void *)) {
    const us_soil_law law = {.abi = US_SOIL_LAW_ABI,
                             .size = (int32_t)sizeof law,
                             .name = "springs",
                             .n_state = 2,
                             .user = user,
                             .act = act};
    us_error err = {.code = US_OK};
    soil_world w = {0};
    us_spec *spec = NULL;
    const us_load_def def = us_load_def_default();
    assert_int_equal(us_spec_load_text(text, strlen(text), "test.xml", &def, &spec, &err), US_OK);
    assert_int_equal(us_spec_add_soil_law(spec, &law, &err), US_OK);
    assert_int_equal(us_spec_add_soil_law(spec, &law, &err), US_OK);  // the same again
    if (us_model_compile(spec, NULL, &w.model, &err)) fail_msg("%s", err.message);
    assert_int_equal(us_sim_create(w.model, NULL, &w.sim, &err), US_OK);
    us_spec_destroy(spec);
    return w;
}

static const char SPRINGS[] = "<pair a=\"steel\" b=\"sand\" model=\"springs\"><number key=\"stiffness\" "
                              "value=\"2e4\"/></pair>";

static void a_law_of_ones_own_has_its_analytic_answer(void **state) {
    (void)state;
    int is_asked = 0;
    soil_world w = law_world(pair_text(SPRINGS, ""), &is_asked, act_springs);
    soil_steps(&w, 2000);
    assert_int_equal(is_asked, 1);
    // Critically damped springs of 45 and 63 rad/s: after 2 s nothing is left of the drop. Of bodies at rest
    // the solver leaves a part of 1e-12 of the load, 1e-15 m, which may add up for a while: 1e-12 m is seen.
    // The box stands on four points.
    expect_near("the wheel's depth", depth_of(&w, "wheel/l"), 10 * G / 2e4, 1e-9);
    expect_near("the box's depth", depth_of(&w, "box/l"), 20 * G / (4 * 2e4), 1e-9);
    soil_free(&w);
}

static void what_a_law_keeps_is_saved_hashed_and_goes_on(void **state) {
    (void)state;
    int is_asked = 0;
    soil_world w = law_world(pair_text(SPRINGS, ""), &is_asked, act_springs),
               v = law_world(pair_text(SPRINGS, ""), &is_asked, act_springs);
    soil_steps(&w, 300);
    size_t length = 0;
    assert_int_equal(us_sim_save(w.sim, NULL, 0, &length), US_OK);
    void *saved = malloc(length);
    assert_int_equal(us_sim_save(w.sim, saved, length, &length), US_OK);
    us_sim_poison(v.sim);
    assert_int_equal(us_sim_restore(v.sim, saved, length), US_OK);
    assert_int_equal(us_sim_hash(v.sim), us_sim_hash(w.sim));
    for (int i = 0; i < 200; i++) {
        us_sim_poison(v.sim);
        soil_steps(&v, 1);
        soil_steps(&w, 1);
        assert_int_equal(us_sim_hash(v.sim), us_sim_hash(w.sim));
    }
    free(saved);
    soil_free(&w);
    soil_free(&v);
}

static bool act_badly(const us_soil_touch *touch, double *state, us_soil_answer *answer, void *user) {
    (void)touch, (void)state, (void)user;
    answer->stiffness = -1;
    return true;
}

static void an_answer_that_cannot_be_used_fails_the_step_and_names_the_law(void **state) {
    (void)state;
    soil_world w = law_world(pair_text(SPRINGS, ""), NULL, act_badly);
    assert_int_equal(us_sim_step(w.sim, NULL), US_ERR_VALUE);
    assert_non_null(strstr(us_sim_view_error(w.sim)->message, "springs"));
    assert_int_equal(us_sim_get_tick(w.sim), 0);
    // Another model instead, and it goes on.
    assert_int_equal(
        us_sim_set_pair_model(w.sim, soil_material(&w, "steel"), soil_material(&w, "sand"), "soil"), US_OK);
    soil_steps(&w, 10);
    soil_free(&w);
}

static void laws_that_are_wrong_are_refused(void **state) {
    (void)state;
    us_spec *spec = NULL;
    us_error err = {.code = US_OK};
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    const us_soil_law good = {.abi = US_SOIL_LAW_ABI,
                              .size = (int32_t)sizeof good,
                              .name = "springs",
                              .n_state = 2,
                              .act = act_badly};
    us_soil_law law = good;
    law.size--;
    assert_int_equal(us_spec_add_soil_law(spec, &law, &err), US_ERR_VALUE);
    law = good;
    law.act = NULL;
    assert_int_equal(us_spec_add_soil_law(spec, &law, &err), US_ERR_VALUE);
    law = good;
    law.n_state = US_SOIL_LAW_STATE + 1;
    assert_int_equal(us_spec_add_soil_law(spec, &law, &err), US_ERR_VALUE);
    law = good;
    law.name = "";
    assert_int_equal(us_spec_add_soil_law(spec, &law, &err), US_ERR_NAME);
    law.name = "compliant";
    assert_int_equal(us_spec_add_soil_law(spec, &law, &err), US_ERR_NAME);
    assert_int_equal(us_spec_add_soil_law(spec, &good, &err), US_OK);
    law = good;
    law.n_state = 1;
    assert_int_equal(us_spec_add_soil_law(spec, &law, &err), US_ERR_NAME);
    assert_int_equal(us_spec_add_soil_law(NULL, &good, &err), US_ERR_ARG);
    us_spec_destroy(spec);
}

// ---------------------------------------------------------------- two soils under a wheel

// A driven wheel held at a sinkage of 15 mm, along the edge of two soils at y = 0; a stiff spring measures
// the torque about its heading. `left` lies at y > 0.
static soil_world edge_world(const char *left, const char *right, double y) {
    static char text[3000];
    snprintf(
        text, sizeof text,
        "<scene name=\"edge\" version=\"1\"><world step=\"1 ms\">"
        "<shape name=\"ground\" type=\"plane\" surface=\"%s\"/>"
        "<region name=\"half\" ground=\"ground\" surface=\"%s\" polygon=\"-50 0  50 0  50 50  -50 "
        "50\"/></world>"
        "<material name=\"steel\"/>"
        "<material name=\"clay\"><soil like=\"clay\" slip-sinkage=\"0\"/></material>"
        "<material name=\"sand\"><soil like=\"dry_sand\" slip-sinkage=\"0\"/></material>"
        "<object name=\"rig\">"
        "<link name=\"carriage\"><inertial mass=\"5\" inertia=\"0.1 0.1 0.1\"/></link>"
        "<link name=\"fork\"><inertial mass=\"1\" inertia=\"0.1 0.1 0.1\"/></link>"
        "<link name=\"wheel\"><inertial mass=\"5\" inertia=\"0.05 0.05 0.05\"/>"
        "<shape type=\"cylinder\" size=\"0.1 0.12\" rpy=\"-90 0 0 deg\" surface=\"steel\"/></link>"
        "<joint name=\"travel\" type=\"prismatic\" parent=\"world\" child=\"carriage\" axis=\"1 0 0\" "
        "v=\"0.1\" "
        "xyz=\"0 %.17g 0.085\"/>"
        "<joint name=\"roll\" type=\"continuous\" parent=\"carriage\" child=\"fork\" axis=\"1 0 0\"/>"
        "<joint name=\"spin\" type=\"continuous\" parent=\"fork\" child=\"wheel\" axis=\"0 1 0\" v=\"1.25\"/>"
        "<drive joint=\"travel\" kd=\"1e9\" velocity=\"0.1\"/>"
        "<drive joint=\"roll\" kp=\"1e6\" kd=\"1e4\"/>"
        "<drive joint=\"spin\" kd=\"1e7\" velocity=\"1.25\"/></object></scene>",
        right, left, y);
    soil_world w = soil_text(text, NULL);
    soil_steps(&w, 400);
    return w;
}

typedef struct wheel_total {
    us_vec3 force;  // N: along the heading, to the left, up
    double moment, roll;
    int n;
} wheel_total;

static wheel_total total_of(soil_world *w) {
    wheel_total t = {.roll = soil_torque(w, "rig/roll")};
    for (int32_t i = 0; i < us_sim_n_soil_contact(w->sim); i++) {
        us_soil_contact k = us_sim_get_soil_contact(w->sim, i);
        t.force = us_vec3_add(t.force, k.force);
        t.moment += k.moment;
        t.n++;
    }
    soil_free(w);
    return t;
}

static wheel_total edge_total(const char *left, const char *right, double y) {
    soil_world w = edge_world(left, right, y);
    return total_of(&w);
}

static void half_in_clay_and_half_in_sand_is_the_mean_of_both(void **state) {
    (void)state;
    const wheel_total clay = edge_total("clay", "clay", 0), sand = edge_total("sand", "sand", 0),
                      both = edge_total("clay", "sand", 0), mirrored = edge_total("sand", "clay", 0);
    assert_int_equal(clay.n, 1);
    assert_int_equal(both.n, 2);
    assert_true(clay.force.z > 1.2 * sand.force.z || sand.force.z > 1.2 * clay.force.z);
    // The spring about the heading gives by 1e-5 rad, which moves the middles of the halves by 0.3 um of
    // their 15 mm: 1e-4 of the load.
    const double within = 1e-4 * both.force.z;
    expect_near("the load", both.force.z, 0.5 * (clay.force.z + sand.force.z), within);
    expect_near("the pull", both.force.x, 0.5 * (clay.force.x + sand.force.x), within);
    expect_near("the moment", both.moment, 0.5 * (clay.moment + sand.moment), 0.1 * within);
    // Half the difference of the loads, 3 cm to either side: the firmer side is lifted. What the drive holds
    // back is the opposite.
    const double lift = 0.03 * 0.5 * (clay.force.z - sand.force.z);
    expect_near("the roll moment", -both.roll, lift, 0.02 * fabs(lift));
    expect_near("alone", clay.roll, 0, 1e-3 * fabs(lift));
    // Mirrored: the same forces, the other roll moment.
    expect_near("the mirrored load", mirrored.force.z, both.force.z, 1e-9 * both.force.z);
    expect_near("the mirrored pull", mirrored.force.x, both.force.x, 1e-9 * both.force.z);
    expect_near("the mirrored side force", mirrored.force.y, -both.force.y, 1e-9 * both.force.z);
    expect_near("the mirrored roll moment", mirrored.roll, -both.roll, 1e-9 * both.force.z);
}

static void the_share_of_a_soil_is_that_of_the_width(void **state) {
    (void)state;
    const wheel_total clay = edge_total("clay", "clay", 0), sand = edge_total("sand", "sand", 0);
    // The middle of the wheel from 5 cm right of the edge to 5 cm left of it; its width is 12 cm.
    for (int i = -5; i <= 5; i++) {
        const double y = 0.01 * i, share = (0.06 + y) / 0.12;
        const wheel_total both = edge_total("clay", "sand", y);
        // The stiff spring about the heading gives a little.
        expect_near("the load", both.force.z, share * clay.force.z + (1 - share) * sand.force.z,
                    3e-4 * both.force.z);
    }
    assert_int_equal(edge_total("clay", "sand", 0.07).n, 1);
    assert_int_equal(edge_total("clay", "sand", -0.07).n, 1);
}

// ---------------------------------------------------------------- nodes

static us_vec3 node_sum(const us_sim *sim, int32_t contact, double *out_area, int32_t *out_n) {
    us_vec3 sum = us_vec3_make(0, 0, 0);
    *out_area = 0;
    *out_n = us_sim_n_soil_node(sim, contact);
    for (int32_t i = 0; i < *out_n; i++) {
        us_soil_node node = us_sim_get_soil_node(sim, contact, i);
        sum = us_vec3_add(sum, node.force);
        *out_area += node.area;
    }
    return sum;
}

static void forces_at_the_nodes_add_up_to_that_of_the_contact(void **state) {
    (void)state;
    soil_world w = edge_world("clay", "sand", 0.01);
    assert_int_equal(us_sim_n_soil_contact(w.sim), 2);
    for (int32_t i = 0; i < 2; i++) {
        double area;
        int32_t n;
        // The wheel goes along x: its axes are the world's.
        const us_vec3 want = us_sim_get_soil_contact(w.sim, i).force, is = node_sum(w.sim, i, &area, &n);
        assert_true(n > 10);
        expect_near("x", is.x, want.x, 1e-4 * want.z);
        expect_near("y", is.y, want.y, 1e-4 * want.z);
        expect_near("z", is.z, want.z, 1e-9 * want.z);
        assert_true(area > 0.04 * 0.05 && area < 0.12 * 0.1);
        // Below the hub, on the rim.
        for (int32_t k = 0; k < n; k++) {
            const us_soil_node node = us_sim_get_soil_node(w.sim, i, k);
            assert_true(node.place.z < 0.02 && node.place.z > -0.02);
        }
    }
    assert_true(isnan(us_sim_get_soil_node(w.sim, 0, -1).area));
    assert_true(isnan(us_sim_get_soil_node(w.sim, 0, 1000).force.z));
    assert_int_equal(us_sim_n_soil_node(w.sim, 7), 0);
    soil_free(&w);
}

static void a_foot_on_a_bed_has_a_node_for_each_column(void **state) {
    (void)state;
    soil_world w = soil_text(
        "<scene name=\"bed\" version=\"1\"><world step=\"1 ms\">"
        "<shape name=\"ground\" type=\"height-field\" nx=\"21\" ny=\"21\" dx=\"0.1\" dy=\"0.1\" "
        "expression=\"0\" "
        "surface=\"sand\" bed=\"2 cm\"/></world>"
        "<material name=\"sand\"><soil like=\"dry_sand\"/></material>"
        "<object name=\"ball\" xyz=\"0.005 0 0.1\"><link name=\"l\"><inertial mass=\"20\" inertia=\"0.1 0.1 "
        "0.1\"/><shape type=\"sphere\" size=\"0.1\"/></link></object></scene>",
        NULL);
    soil_steps(&w, 1500);
    double area;
    int32_t n;
    const us_vec3 sum = node_sum(w.sim, 0, &area, &n);
    assert_int_equal(us_sim_n_soil_contact(w.sim), 1);
    assert_true(n > 4);
    expect_near("the load", sum.z, 20 * G, 0.01 * 20 * G);
    expect_near("the area", area, n * 4e-4, 1e-12);
    // The middle carries most.
    double most = 0, at = 1;
    for (int32_t i = 0; i < n; i++) {
        const us_soil_node node = us_sim_get_soil_node(w.sim, 0, i);
        if (node.force.z <= most) continue;
        most = node.force.z;
        at = hypot(node.place.x, node.place.y);
    }
    assert_true(at < 0.025);
    soil_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_of_the_pair_decides_whether_soil_acts),
        cmocka_unit_test(a_model_of_soil_between_firm_materials_is_refused),
        cmocka_unit_test(the_model_changes_while_running_and_is_part_of_the_state),
        cmocka_unit_test(a_model_that_cannot_act_is_refused_and_changes_nothing),
        cmocka_unit_test(a_law_of_ones_own_has_its_analytic_answer),
        cmocka_unit_test(what_a_law_keeps_is_saved_hashed_and_goes_on),
        cmocka_unit_test(an_answer_that_cannot_be_used_fails_the_step_and_names_the_law),
        cmocka_unit_test(laws_that_are_wrong_are_refused),
        cmocka_unit_test(half_in_clay_and_half_in_sand_is_the_mean_of_both),
        cmocka_unit_test(the_share_of_a_soil_is_that_of_the_width),
        cmocka_unit_test(forces_at_the_nodes_add_up_to_that_of_the_contact),
        cmocka_unit_test(a_foot_on_a_bed_has_a_node_for_each_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

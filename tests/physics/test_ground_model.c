// Deformable ground of one's own: analytic answers of simple ground models, their state in snapshots, hashes
// and edits, forces at every node, and models that are wrong.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "understudy/ground_model.h"
#include "understudy/sim.h"

static const double G = 9.81;

static void expect_near(const char *what, double is, double wanted, double within) {
    if (!(fabs(is - wanted) <= within)) fail_msg("%s is %.12g, expected %.12g", what, is, wanted);
}

// ---------------------------------------------------------------- ground models

// Springs under every column, Pa/m, with a damper of 0.1 s, and Coulomb's friction of 0.5. In its state:
// steps settled, nodes told of, and N carried by all of them along their normals; of a column how often it
// has carried something, and its largest force. Its surface follows the body by a tenth of the depth when
// `moves`.
typedef struct springs {
    double stiffness;
    bool moves, fails, has_odd_answer;
    int32_t n_refused;  // writes that were refused in act; test only
} springs;
enum { STEPS, NODES, LOAD, N_STATE };

static bool act_springs(const us_ground *g, const double *state, const us_ground_patch *patch,
                        us_ground_answer *answer, void *user) {
    springs *s = user;
    (void)state;
    const double area = g->spacing * g->spacing;
    const double numbers[2] = {1, 1};
    s->n_refused += !g->set_change(g, 3, 3, -0.01) + !g->set_column(g, 3, 3, numbers);
    for (int32_t i = 0; i < patch->n_node; i++) {
        const us_ground_node *n = &patch->node[i];
        answer[i].force = area * s->stiffness * fmax(n->sinkage, 0);
        answer[i].stiffness = s->has_odd_answer ? -1 : area * s->stiffness;
        answer[i].damping = 0.1 * area * s->stiffness;
        answer[i].friction = 0.5;
        answer[i].hold = 10 * area * s->stiffness;
    }
    return !s->fails;
}

static void settle_springs(const us_ground *g, double *state, const us_ground_patch *patch, int32_t n_patch,
                           void *user) {
    const springs *s = user;
    state[STEPS]++;
    state[NODES] = state[LOAD] = 0;
    for (int32_t p = 0; p < n_patch; p++) {
        for (int32_t i = 0; i < patch[p].n_node; i++) {
            const us_ground_node *n = &patch[p].node[i];
            const double load = us_vec3_dot(n->carried, n->normal);
            const double *old = g->view_column(g, n->i, n->j);
            state[NODES]++;
            state[LOAD] += load;
            if (!(load > 0)) continue;
            assert_true(g->set_column(g, n->i, n->j, (const double[2]){old[0] + 1, fmax(old[1], load)}));
            if (s->moves) assert_true(g->set_change(g, n->i, n->j, 0.1 * fmin(n->bottom, 0)));
        }
    }
}

static bool check_springs(const double *numbers, bool is_column, void *user) {
    (void)user;
    return is_column ? numbers[0] >= 0 : numbers[STEPS] >= 0;
}

static us_ground_model springs_of(springs *s) {
    return (us_ground_model){.abi = US_GROUND_MODEL_ABI,
                             .size = sizeof(us_ground_model),
                             .name = "springs",
                             .n_state = N_STATE,
                             .n_column_state = 2,
                             .user = s,
                             .act = act_springs,
                             .settle = settle_springs,
                             .check = check_springs};
}

// ---------------------------------------------------------------- worlds

typedef struct world {
    us_spec *spec;
    us_model *model;
    us_sim *sim;
} world;

// A field of 2 x 2 m with columns of 2 cm, sloped by `slope` along x, and what else the scene has.
static const char *scene_text(double slope, const char *more) {
    static char text[4000];
    snprintf(
        text, sizeof text,
        "<scene name=\"ground\" version=\"1\"><world step=\"1 ms\">"
        "<shape name=\"ground\" type=\"height-field\" nx=\"41\" ny=\"41\" dx=\"0.05\" dy=\"0.05\" "
        "expression=\"%.17g*x\" surface=\"soil\" xyz=\"0.01 0.01 0\" bed=\"2 cm\" bed-model=\"springs\"/>"
        "</world><material name=\"steel\"/><material name=\"soil\"><soil like=\"dry_sand\"/></material>"
        "%s</scene>",
        slope, more);
    return text;
}

static us_status make(const char *text, const us_ground_model *model, int32_t n_thread, world *out,
                      us_error *err) {
    *out = (world){0};
    us_load_def def = us_load_def_default();
    us_status status = us_spec_load_text(text, strlen(text), "test.xml", &def, &out->spec, err);
    if (!status && model) status = us_spec_add_ground_model(out->spec, model, err);
    if (!status) status = us_model_compile(out->spec, NULL, &out->model, err);
    us_sim_def d = us_sim_def_default();
    d.n_thread = n_thread;
    if (!status) status = us_sim_create(out->model, &d, &out->sim, err);
    return status;
}

static world world_of(const char *text, springs *s, int32_t n_thread) {
    world w;
    us_error err = US_ZERO;
    const us_ground_model model = springs_of(s);
    if (make(text, &model, n_thread, &w, &err)) fail_msg("%s; %s", err.message, err.remedy);
    return w;
}

static void free_world(world *w) {
    us_sim_destroy(w->sim);
    us_model_destroy(w->model);
    us_spec_destroy(w->spec);
}

static void steps(world *w, int n) {
    for (int i = 0; i < n; i++) {
        if (us_sim_step(w->sim, NULL)) fail_msg("%s", us_sim_view_error(w->sim)->message);
    }
}

static const char *const BOX =
    "<object name=\"box\" xyz=\"0 0 0.1\"><link name=\"l\"><inertial mass=\"20\" inertia=\"0.2 0.2 0.2\"/>"
    "<shape type=\"box\" size=\"0.2 0.2 0.2\" surface=\"steel\"/></link></object>";

static us_pose pose_of(const world *w, const char *body) {
    return us_sim_get_pose(w->sim, us_model_find_body(w->model, body));
}

// The sum of the forces at the nodes, and of their moments about the origin.
static us_vec3 node_sum(const world *w, us_vec3 *out_moment) {
    us_vec3 sum = {0, 0, 0}, moment = {0, 0, 0};
    for (int32_t i = 0; i < us_sim_n_soil_contact(w->sim); i++) {
        assert_int_equal(us_sim_n_soil_node(w->sim, i), 1);
        const us_soil_node n = us_sim_get_soil_node(w->sim, i, 0);
        sum = us_vec3_add(sum, n.force);
        moment = us_vec3_add(moment, us_vec3_cross(n.place, n.force));
    }
    *out_moment = moment;
    return sum;
}

// ---------------------------------------------------------------- answers

// 100 columns of 4 cm^2 with 1e6 Pa/m under a box of 20 kg: W / (k A) deep, and each carries the same.
static void a_box_rests_where_the_columns_carry_it(void **state) {
    (void)state;
    springs s = {.stiffness = 1e6};
    world w = world_of(scene_text(0, BOX), &s, 1);
    steps(&w, 2000);
    const double depth = 20 * G / (1e6 * 0.04);
    expect_near("the depth", 0.1 - pose_of(&w, "box/l").p.z, depth, 1e-5 * depth);
    assert_int_equal(us_sim_n_soil_contact(w.sim), 100);
    us_vec3 moment;
    const us_vec3 sum = node_sum(&w, &moment);
    expect_near("the sum of the nodes", sum.z, 20 * G, 1e-5 * 20 * G);
    expect_near("their moment", us_vec3_norm(moment), 0, 1e-4);
    for (int32_t i = 0; i < 100; i++)
        expect_near("a node", us_sim_get_soil_node(w.sim, i, 0).force.z, 0.2 * G, 1e-4 * G);
    // The ground was told of every step, of these nodes, and of the same load.
    int32_t n = 0;
    const double *told = us_sim_view_ground_state(w.sim, 0, &n);
    assert_int_equal(n, N_STATE);
    assert_true(told[STEPS] == 2000 && told[NODES] == 100);
    expect_near("the load that the ground was told", told[LOAD], 20 * G, 1e-5 * 20 * G);
    assert_true(s.n_refused == 2 * 2000);
    // Nobody wrote to a column that nothing was on.
    const double *column = us_sim_view_ground_column(w.sim, 0, 3, 3, &n);
    assert_int_equal(n, 2);
    assert_true(column && column[0] == 0);
    assert_null(us_sim_view_ground_column(w.sim, 0, -1, 0, &n));
    assert_null(us_sim_view_ground_column(w.sim, 1, 0, 0, &n));
    free_world(&w);
}

// A moment tilts the box until the columns, sum of k A x^2, hold it and the weight that leans out with it,
// 0.1 m above the sole.
static void an_eccentric_load_tilts_the_box(void **state) {
    (void)state;
    springs s = {.stiffness = 1e6};
    world w = world_of(scene_text(0, BOX), &s, 1);
    const us_wrench push = {.n = {0, 2, 0}};
    for (int i = 0; i < 2500; i++) {
        assert_int_equal(us_sim_apply_wrench(w.sim, us_model_find_body(w.model, "box/l"), push), US_OK);
        steps(&w, 1);
    }
    // Of ten columns at odd centimetres: sum of x^2 = 10 * 2 * (1 + 9 + 25 + 49 + 81) cm^2.
    const double want = 2 / (1e6 * 4e-4 * 3300e-4 - 0.1 * 20 * G);
    const us_quat q = pose_of(&w, "box/l").q;
    expect_near("the tilt", 2 * q.y, want, 3e-3 * want);  // its cosine, and columns that it slides over
    free_world(&w);
}

// A slope that friction holds holds a box for ever; one that it does not, not.
static void a_slope_holds_what_friction_holds(void **state) {
    (void)state;
    static const char *box =
        "<object name=\"box\" xyz=\"0 0 0.12\" rpy=\"0 %g 0\"><link name=\"l\"><inertial mass=\"20\" "
        "inertia=\"0.2 0.2 0.2\"/><shape type=\"box\" size=\"0.2 0.2 0.2\" "
        "surface=\"steel\"/></link></object>";
    for (int i = 0; i < 2; i++) {
        const double slope = i ? 0.6 : 0.4;
        char more[600];
        snprintf(more, sizeof more, box, -atan(slope));
        springs s = {.stiffness = 1e6};
        world w = world_of(scene_text(slope, more), &s, 1);
        steps(&w, 2000);
        const us_vec3 before = pose_of(&w, "box/l").p;
        steps(&w, 500);
        const double moved = us_vec3_norm(us_vec3_sub(pose_of(&w, "box/l").p, before));
        // At rest within what the columns' numbers round; sliding by (sin - 0.5 cos) g t^2 / 2 and more.
        if (i ? !(moved > 0.05) : !(moved < 1e-7))
            fail_msg("on a slope of %g it moves by %g m", slope, moved);
        us_vec3 moment;
        if (i == 0) expect_near("the load", node_sum(&w, &moment).z, 20 * G, 1e-4 * 20 * G);
        free_world(&w);
    }
}

// Shapes of every kind, whatever their size against the columns, rest on k A per depth or where they fill the
// volume: the nodes carry their weight.
static void nodes_carry_the_weight_of_every_shape(void **state) {
    (void)state;
    static const char *const shapes[] = {
        "type=\"sphere\" size=\"0.1\"",         "type=\"sphere\" size=\"0.004\"",
        "type=\"capsule\" size=\"0.03 0.3\"",   "type=\"cylinder\" size=\"0.1 0.1\" rpy=\"90 0 0 deg\"",
        "type=\"cone\" size=\"0.1 0.2\"",       "type=\"ellipsoid\" size=\"0.1 0.05 0.07\"",
        "type=\"box\" size=\"0.005 0.3 0.01\"", "type=\"box\" size=\"0.7 0.5 0.1\"",
        "type=\"disc\" size=\"0.08 0.02\"",
    };
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        char more[800];
        snprintf(more, sizeof more,
                 "<object name=\"it\" xyz=\"0.013 -0.027 0.12\"><link name=\"l\"><inertial mass=\"2\" "
                 "inertia=\"0.02 0.02 0.02\"/><shape %s surface=\"steel\"/></link><joint name=\"up\" "
                 "type=\"prismatic\" parent=\"world\" child=\"l\" axis=\"0 0 1\" xyz=\"0.013 -0.027 0.12\"/>"
                 "</object>",
                 shapes[k]);
        springs s = {.stiffness = 1e6, .moves = k % 2 == 1};
        world w = world_of(scene_text(0, more), &s, 1);
        steps(&w, 3000);
        us_vec3 moment;
        const us_vec3 sum = node_sum(&w, &moment);
        if (!(fabs(sum.z - 2 * G) < 1e-3 * 2 * G)) fail_msg("%s: the nodes carry %g N", shapes[k], sum.z);
        free_world(&w);
    }
}

// A pair that says another model is not the ground's: the box stands on a firm surface, and the other way
// round while it runs.
static void the_pair_decides_whether_the_ground_acts(void **state) {
    (void)state;
    char more[1000];
    snprintf(more, sizeof more, "<pair a=\"steel\" b=\"soil\" model=\"compliant\"/>%s", BOX);
    springs s = {.stiffness = 1e6};
    world w = world_of(scene_text(0, more), &s, 1);
    steps(&w, 1000);
    assert_true(0.1 - pose_of(&w, "box/l").p.z < 1e-4);
    const us_material steel = us_model_find_material(w.model, "steel"),
                      soil = us_model_find_material(w.model, "soil");
    assert_int_equal(us_sim_set_pair_model(w.sim, steel, soil, "soil"), US_OK);
    steps(&w, 2000);
    const double depth = 20 * G / (1e6 * 0.04);
    expect_near("the depth", 0.1 - pose_of(&w, "box/l").p.z, depth, 1e-5 * depth);
    free_world(&w);
}

// ---------------------------------------------------------------- state

static const char *const TWO =
    "<object name=\"box\" xyz=\"0 0 0.15\"><link name=\"l\"><inertial mass=\"20\" inertia=\"0.2 0.2 0.2\"/>"
    "<shape type=\"box\" size=\"0.2 0.2 0.2\" surface=\"steel\"/></link></object>"
    "<object name=\"ball\" xyz=\"-0.5 0 0.12\"><link name=\"l\"><inertial mass=\"3\" "
    "inertia=\"0.02 0.02 0.02\"/><shape type=\"sphere\" size=\"0.1\" surface=\"steel\"/></link></object>";

static void *save(const world *w, size_t *out_length) {
    assert_int_equal(us_sim_save(w->sim, NULL, 0, out_length), US_OK);
    void *bytes = malloc(*out_length);
    assert_int_equal(us_sim_save(w->sim, bytes, *out_length, out_length), US_OK);
    return bytes;
}

static void its_state_is_saved_hashed_and_goes_on(void **state) {
    (void)state;
    springs s = {.stiffness = 3e5, .moves = true};
    world w = world_of(scene_text(0, TWO), &s, 1), v = world_of(scene_text(0, TWO), &s, 2);
    steps(&w, 400);
    size_t length;
    void *bytes = save(&w, &length);
    const uint64_t hash = us_sim_hash(w.sim);
    assert_int_equal(us_sim_restore(v.sim, bytes, length), US_OK);
    assert_true(us_sim_hash(v.sim) == hash);
    // The same from there, with another number of threads.
    steps(&w, 300);
    steps(&v, 300);
    assert_true(us_sim_hash(w.sim) == us_sim_hash(v.sim));
    int32_t n;
    assert_true(us_sim_view_ground_state(v.sim, 0, &n)[STEPS] == 700);
    // A number of a column that differs by the last bit is another state.
    assert_int_equal(us_sim_restore(v.sim, bytes, length), US_OK);
    const us_deformable_info info = us_sim_get_deformable(v.sim, 0);
    double *column = (double *)us_sim_view_ground_column(v.sim, 0, info.n_x / 2, info.n_y / 2, &n);
    assert_true(column[0] > 0);
    assert_int_equal(us_sim_reset(v.sim), US_OK);
    assert_true(us_sim_view_ground_column(v.sim, 0, info.n_x / 2, info.n_y / 2, &n)[0] == 0);
    assert_true(us_sim_view_ground_state(v.sim, 0, &n)[STEPS] == 0);
    free(bytes);
    free_world(&w);
    free_world(&v);
}

// A snapshot whose numbers the model refuses is no state, and nothing has changed.
static void a_state_that_the_model_refuses_is_refused(void **state) {
    (void)state;
    springs s = {.stiffness = 3e5};
    world w = world_of(scene_text(0, TWO), &s, 1);
    steps(&w, 400);
    // The model's count of steps is the one number of 400 among those of the ground.
    size_t length;
    char *bytes = save(&w, &length);
    const double is = 400;
    const double bad[] = {-1, (double)NAN};
    for (int k = 0; k < 2; k++) {
        bool was_found = false;
        char *changed = malloc(length);
        memcpy(changed, bytes, length);
        for (size_t at = length - sizeof is + 1; at-- > 0 && !was_found;) {
            if (memcmp(changed + at, &is, sizeof is) != 0) continue;
            memcpy(changed + at, &bad[k], sizeof is);
            was_found = true;
        }
        assert_true(was_found);
        // The head: magic, model, length, and a check of what follows, 8 bytes each.
        const uint64_t sum = us_hash_bytes(0, changed + 32, length - 32);
        memcpy(changed + 24, &sum, sizeof sum);
        const uint64_t before = us_sim_hash(w.sim);
        assert_int_equal(us_sim_restore(w.sim, changed, length), US_ERR_SNAPSHOT);
        assert_true(us_sim_hash(w.sim) == before);
        free(changed);
    }
    assert_int_equal(us_sim_restore(w.sim, bytes, length), US_OK);
    free(bytes);
    free_world(&w);
}

// An edit of the world carries the ground's state over; another model of the same name with other numbers
// begins anew.
static void edits_carry_its_state(void **state) {
    (void)state;
    springs s = {.stiffness = 1e6, .moves = true};
    world w = world_of(scene_text(0, BOX), &s, 1), v = world_of(scene_text(0, TWO), &s, 1);
    steps(&w, 500);
    us_error err = US_ZERO;
    if (us_sim_replace(w.sim, v.model, &err)) fail_msg("%s", err.message);
    int32_t n;
    assert_true(us_sim_view_ground_state(w.sim, 0, &n)[STEPS] == 500);
    steps(&w, 10);
    assert_true(us_sim_view_ground_state(w.sim, 0, &n)[STEPS] == 510);
    us_sim_destroy(w.sim);
    w.sim = NULL;
    free_world(&w);
    free_world(&v);
}

// ---------------------------------------------------------------- what is wrong

static void wrong_models_are_refused(void **state) {
    (void)state;
    springs s = {.stiffness = 1e6};
    struct {
        us_ground_model model;
        us_status status;
        const char *says;
    } rows[8];
    for (int i = 0; i < 8; i++)
        rows[i].model = springs_of(&s);
    rows[0].model.abi = 7, rows[0].status = US_ERR_VALUE, rows[0].says = "has abi 7";
    rows[1].model.size = 8, rows[1].status = US_ERR_VALUE, rows[1].says = "size 8";
    rows[2].model.name = "", rows[2].status = US_ERR_NAME, rows[2].says = "no name";
    rows[3].model.act = NULL, rows[3].status = US_ERR_VALUE, rows[3].says = "no function act";
    rows[4].model.n_state = 65, rows[4].status = US_ERR_VALUE, rows[4].says = "a state of 65";
    rows[5].model.n_column_state = -1, rows[5].status = US_ERR_VALUE, rows[5].says = "-1 numbers for each";
    rows[6].model.name = "soil", rows[6].status = US_ERR_NAME, rows[6].says = "another model \"soil\"";
    rows[7].model.name = "other", rows[7].status = US_ERR_NAME, rows[7].says = "no ground model \"springs\"";
    for (int i = 0; i < 8; i++) {
        world w;
        us_error err = US_ZERO;
        assert_int_equal(make(scene_text(0, BOX), &rows[i].model, 1, &w, &err), rows[i].status);
        if (!strstr(err.message, rows[i].says)) fail_msg("%s: %s", rows[i].says, err.message);
        assert_true(err.remedy[0]);
        free_world(&w);
    }
    world w;
    us_error err = US_ZERO;
    assert_int_equal(make(scene_text(0, BOX), NULL, 1, &w, &err), US_ERR_NAME);
    assert_non_null(strstr(err.message, "known: none"));
    free_world(&w);
    // Twice the same changes nothing, another one of the name is refused.
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    us_ground_model model = springs_of(&s);
    assert_int_equal(us_spec_add_ground_model(spec, &model, &err), US_OK);
    assert_int_equal(us_spec_add_ground_model(spec, &model, &err), US_OK);
    model.n_state = 1;
    assert_int_equal(us_spec_add_ground_model(spec, &model, &err), US_ERR_NAME);
    assert_int_equal(us_spec_add_ground_model(NULL, &model, &err), US_ERR_ARG);
    us_spec_destroy(spec);
}

static void a_model_without_an_answer_fails_the_step(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        springs s = {.stiffness = 1e6};
        world w = world_of(scene_text(0, BOX), &s, 1);
        steps(&w, 100);
        s.fails = k == 0;
        s.has_odd_answer = k == 1;
        const uint64_t before = us_sim_hash(w.sim);
        assert_int_equal(us_sim_step(w.sim, NULL), US_ERR_VALUE);
        assert_non_null(strstr(us_sim_view_error(w.sim)->message, "ground model \"springs\""));
        assert_true(us_sim_hash(w.sim) == before);
        s.fails = s.has_odd_answer = false;
        steps(&w, 100);
        free_world(&w);
    }
}

static void a_ground_model_without_a_bed_is_refused(void **state) {
    (void)state;
    static const char *const text =
        "<scene name=\"g\" version=\"1\"><world><shape name=\"g\" type=\"height-field\" nx=\"3\" ny=\"3\" "
        "dx=\"1\" dy=\"1\" expression=\"0\" surface=\"soil\" bed-model=\"springs\"/></world><material "
        "name=\"soil\"><soil like=\"dry_sand\"/></material></scene>";
    springs s = {.stiffness = 1e6};
    const us_ground_model model = springs_of(&s);
    world w;
    us_error err = US_ZERO;
    assert_int_equal(make(text, &model, 1, &w, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "bed-model: the ground has no bed"));
    free_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_rests_where_the_columns_carry_it),
        cmocka_unit_test(an_eccentric_load_tilts_the_box),
        cmocka_unit_test(a_slope_holds_what_friction_holds),
        cmocka_unit_test(nodes_carry_the_weight_of_every_shape),
        cmocka_unit_test(the_pair_decides_whether_the_ground_acts),
        cmocka_unit_test(its_state_is_saved_hashed_and_goes_on),
        cmocka_unit_test(a_state_that_the_model_refuses_is_refused),
        cmocka_unit_test(edits_carry_its_state),
        cmocka_unit_test(wrong_models_are_refused),
        cmocka_unit_test(a_model_without_an_answer_fails_the_step),
        cmocka_unit_test(a_ground_model_without_a_bed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

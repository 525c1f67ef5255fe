// Links of a robot that overlap at the start: found, named, and taken out of the contact on request.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/understudy.h"

enum { TEXT_MAX = 1 << 15, MAX_LINK = 12, MAX_PAIR = MAX_LINK * MAX_LINK };

static us_model *load(const char *text, bool exclude_overlaps) {
    us_load_def def = us_load_def_default();
    def.base = US_BASE_FLOATING;
    def.exclude_overlaps = exclude_overlaps;
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_error err = {0};
    us_status status =
        us_spec_load_text(text, strlen(text), US_SOURCE_DIR "/models/robot.xml", &def, &spec, &err);
    if (!status) status = us_model_compile(spec, NULL, &model, &err);
    if (status) fail_msg("line %d: %s", (int)err.line, err.message);
    us_spec_destroy(spec);
    return model;
}

static int32_t n_overlap(const us_model *model) {
    us_overlap list[MAX_PAIR];
    int32_t n = -1;
    assert_int_equal(us_model_find_overlaps(model, list, MAX_PAIR, &n), US_OK);
    return n;
}

// ---- Balls on random trees ----

typedef struct ball_robot {
    int n;
    int parent[MAX_LINK];
    bool is_fixed[MAX_LINK];  // to its parent
    double radius[MAX_LINK];
    char text[TEXT_MAX];
} ball_robot;

static double uniform(uint64_t seed, uint64_t *count) {
    return (double)(us_random_bits(12, seed, (*count)++) >> 11) * 0x1p-53;
}

static void make_balls(uint64_t seed, ball_robot *r) {
    uint64_t c = 0;
    char *to = r->text;
    r->n = 3 + (int)(uniform(seed, &c) * (MAX_LINK - 3));
    to += sprintf(to, "<robot name='r'>\n");
    for (int i = 0; i < r->n; i++) {
        r->radius[i] = 0.05 + 0.15 * uniform(seed, &c);
        to += sprintf(
            to,
            "<link name='l%d'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1'/></inertial>"
            "<collision><geometry><sphere radius='%.17g'/></geometry></collision></link>\n",
            i, r->radius[i]);
    }
    for (int i = 1; i < r->n; i++) {
        r->parent[i] = (int)(uniform(seed, &c) * i);
        r->is_fixed[i] = uniform(seed, &c) < 0.2;
        to += sprintf(to, "<joint name='j%d' type='%s'><parent link='l%d'/><child link='l%d'/><origin xyz='",
                      i, r->is_fixed[i] ? "fixed" : "continuous", r->parent[i], i);
        for (int k = 0; k < 3; k++)
            to += sprintf(to, "%.17g ", 0.6 * (uniform(seed, &c) - 0.5));
        to += sprintf(to, "' rpy='1 %.17g 0'/><axis xyz='0 0 1'/></joint>\n", 6 * uniform(seed, &c));
    }
    sprintf(to, "</robot>\n");
}

static int body_of(const ball_robot *r, int i) {
    while (i > 0 && r->is_fixed[i])
        i = r->parent[i];
    return i;
}

// Of one body, or of two that a joint joins.
static bool never_collide(const ball_robot *r, int a, int b) {
    int x = body_of(r, a), y = body_of(r, b);
    if (x == y) return true;
    for (int i = 1; i < r->n; i++) {
        if (r->is_fixed[i]) continue;
        int p = body_of(r, r->parent[i]), q = body_of(r, i);
        if ((p == x && q == y) || (p == y && q == x)) return true;
    }
    return false;
}

static void balls_overlap_where_their_centres_are_near(void **state) {
    (void)state;
    static ball_robot r;
    int n_all = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        make_balls(seed, &r);
        us_model *model = load(r.text, false);
        us_sim *sim = NULL;
        assert_int_equal(us_sim_create(model, NULL, &sim, NULL), US_OK);
        us_overlap list[MAX_PAIR];
        int32_t n = 0, n_wanted = 0;
        assert_int_equal(us_model_find_overlaps(model, list, MAX_PAIR, &n), US_OK);
        for (int a = 0; a < r.n; a++) {
            for (int b = a + 1; b < r.n; b++) {
                us_vec3 p = us_sim_get_pose(sim, (us_body){a}).p, q = us_sim_get_pose(sim, (us_body){b}).p;
                double depth = r.radius[a] + r.radius[b] - us_vec3_norm(us_vec3_sub(p, q));
                if (depth < 2e-5 || never_collide(&r, a, b)) continue;
                n_wanted++;
                bool is_found = false;
                for (int32_t i = 0; i < n; i++)
                    is_found |= list[i].a.i == a && list[i].b.i == b && fabs(list[i].depth - depth) < 1e-9;
                if (!is_found) fail_msg("seed %d: l%d and l%d overlap by %g", (int)seed, a, b, depth);
            }
        }
        assert_int_equal(n, n_wanted);
        n_all += n;
        us_model *without = load(r.text, true);
        assert_int_equal(n_overlap(without), 0);
        us_sim_destroy(sim);
        us_model_destroy(model);
        us_model_destroy(without);
    }
    assert_true(n_all > 300);
}

// ---- A leg as public quadrupeds have it ----

#define LEG(name, y)                                                                                        \
    "<link name='" name "_hip'><inertial><mass value='0.5'/><inertia ixx='.001' iyy='.001' izz='.001'/>"    \
    "</inertial><collision><origin rpy='1.5708 0 0'/><geometry><cylinder radius='0.04' length='0.04'/>"     \
    "</geometry></collision></link><link name='" name "_thigh'><inertial><mass value='1'/><inertia "        \
    "ixx='.005' iyy='.005' izz='.001'/></inertial><collision><origin xyz='0 0 -0.1'/><geometry><box "       \
    "size='0.03 0.04 0.26'/></geometry></collision></link><joint name='" name "_roll' type='revolute'>"     \
    "<parent link='trunk'/><child link='" name "_hip'/><origin xyz='0 " y " 0'/><axis xyz='1 0 0'/><limit " \
    "lower='-1' upper='1'/></joint><joint name='" name "_pitch' type='revolute'><parent link='" name        \
    "_hip'/><child link='" name "_thigh'/><axis xyz='0 1 0'/><limit lower='-1' upper='1'/></joint>"

static const char QUADRUPED[] =
    "<robot name='q'><link name='trunk'><inertial><mass value='5'/><inertia ixx='.02' iyy='.05' izz='.06'/>"
    "</inertial><collision><geometry><box size='0.4 0.2 0.1'/></geometry></collision></link>" LEG(
        "left", "0.1") LEG("right", "-0.1") "</robot>";

static double speed_after(const us_model *model, int n_step) {
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(model, NULL, &sim, NULL), US_OK);
    for (int i = 0; i < n_step; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    double largest = 0;
    // The legs against the trunk: all of it falls.
    for (int i = 6; i < us_model_get_counts(model).n_v; i++)
        largest = fmax(largest, fabs(us_sim_view_v(sim)[i]));
    us_sim_destroy(sim);
    return largest;
}

static void overlapping_legs_are_driven_apart_unless_they_are_excluded(void **state) {
    (void)state;
    us_model *as_written = load(QUADRUPED, false), *excluded = load(QUADRUPED, true);
    assert_int_equal(n_overlap(as_written), 2);
    assert_int_equal(n_overlap(excluded), 0);
    assert_true(speed_after(as_written, 5) > 1e-3);
    // In free fall nothing acts on the joints.
    assert_true(speed_after(excluded, 200) < 1e-12);
    us_model_destroy(as_written);
    us_model_destroy(excluded);
}

static void a_robot_of_a_scene_says_it_by_an_attribute_or_by_the_pairs(void **state) {
    (void)state;
    FILE *f = fopen(US_BINARY_DIR "/overlapping.urdf", "w");
    assert_non_null(f);
    fputs(QUADRUPED, f);
    fclose(f);
    static const struct {
        const char *first;  // attributes of the first robot, and what is inside it
        int n;
    } cases[] = {
        {"/>", 4},
        {" exclude-overlaps='false'/>", 4},
        {" exclude-overlaps='true'/>", 2},
        {"><exclude a='trunk' b='left_thigh'/></robot>", 3},
        {"><exclude a='trunk' b='left_thigh'/><exclude a='trunk' b='right_thigh'/></robot>", 2},
        {" exclude-overlaps='true'><exclude a='trunk' b='left_thigh'/></robot>", 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[2000];
        snprintf(text, sizeof text,
                 "<scene name='s' version='1'><robot name='a' base='floating' file='%s'%s"
                 "<robot name='b' base='floating' file='%s' xyz='0 0 2'/></scene>",
                 US_BINARY_DIR "/overlapping.urdf", cases[k].first, US_BINARY_DIR "/overlapping.urdf");
        us_model *model = load(text, false);
        assert_int_equal(n_overlap(model), cases[k].n);
        us_model_destroy(model);
        model = load(text, true);
        assert_int_equal(n_overlap(model), 0);
        us_model_destroy(model);
    }
}

static void arguments_are_looked_at(void **state) {
    (void)state;
    us_model *model = load(QUADRUPED, false);
    us_overlap one[1];
    int32_t n = 7;
    assert_int_equal(us_model_find_overlaps(NULL, one, 1, &n), US_ERR_ARG);
    assert_int_equal(us_model_find_overlaps(model, NULL, 1, &n), US_ERR_ARG);
    assert_int_equal(us_model_find_overlaps(model, one, 1, NULL), US_ERR_ARG);
    assert_int_equal(us_model_find_overlaps(model, one, 1, &n), US_OK);
    assert_int_equal(n, 1);
    us_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balls_overlap_where_their_centres_are_near),
        cmocka_unit_test(overlapping_legs_are_driven_apart_unless_they_are_excluded),
        cmocka_unit_test(a_robot_of_a_scene_says_it_by_an_attribute_or_by_the_pairs),
        cmocka_unit_test(arguments_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

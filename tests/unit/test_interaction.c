// Interaction models: the arithmetic of restitution, the two models of the library, and models of one's own.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "contact/interaction.h"
#include "spec/spec.h"

// Prints both numbers where they differ by more than `tol`; NaN differs from everything.
#define assert_near(have, want, tol) check_near((have), (want), (tol), __LINE__)
static void check_near(double have, double want, double tol, int line) {
    if (!(fabs(have - want) <= tol))
        fail_msg("line %d: %.17g, expected %.17g within %g", line, have, want, tol);
}

// ---- Restitution ----

// D = a v and e to the six digits of the table in docs/interaction.md.
static const struct {
    double D, e;
} table[] = {{0.01, 0.993377}, {0.1, 0.937476}, {0.2, 0.882190}, {0.3, 0.832870}, {0.5, 0.748435},
             {1, 0.593624},    {2, 0.410720},   {5, 0.196980},   {10, 0.099982}};
// The other way round, and half a unit of the last digit that is given.
static const struct {
    double e, D, half_digit;
} inverse_table[] = {{0.9, 0.166482, 5e-7}, {0.8, 0.373146, 5e-7}, {0.7, 0.634828, 5e-7},
                     {0.5, 1.432751, 5e-7}, {0.3, 3.087082, 5e-7}, {0.1, 9.998159, 5e-7},
                     {0.05, 20.0, 0.05}};

static void restitution_of_every_damping_is_that_of_the_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_near(us_damping_restitution(table[i].D, 1), table[i].e,
                    5e-7);  // half a unit of the last digit
        // And back: the table's e is off by up to 5e-7, which dD/de (at most 100, at D = 10) makes 5e-5.
        assert_near(us_restitution_damping(table[i].e, 1), table[i].D,
                    5e-7 * (1.6 + table[i].D * table[i].D));
    }
}

static void damping_of_every_restitution_is_that_of_the_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof inverse_table / sizeof *inverse_table; i++) {
        assert_near(us_restitution_damping(inverse_table[i].e, 1), inverse_table[i].D,
                    inverse_table[i].half_digit);
        // de/dD is below 1 everywhere.
        assert_near(us_damping_restitution(inverse_table[i].D, 1), inverse_table[i].e,
                    inverse_table[i].half_digit);
    }
}

static void damping_and_restitution_solve_their_equation_and_invert_each_other(void **state) {
    (void)state;
    for (int i = 1; i < 1000; i++) {
        double e = i / 1000.0, D = us_restitution_damping(e, 1);
        assert_true(D > 0 && e * D <= 1 + 1e-14);  // D has a relative error of 16 roundings at e = 0.03,
                                                   // where the slope of L is 1/400
        // An error of 1e-14 in e D is one of 1e-8 in the logarithm where e D is within 1e-6 of 1; nearer to
        // it the logarithm says nothing.
        if (1 - e * D > 1e-6) assert_near(log1p(D) - log1p(-e * D), D * (1 + e), 1e-9 * (1 + D));
        // A few roundings, relative.
        assert_near(us_damping_restitution(D, 1), e, 1e-14);
    }
    // Towards e = 1 nothing cancels: e = 1 - 2 D / 3 + 4 D^2 / 9 - ...
    for (int digit = 3; digit <= 12; digit++) {
        double small = pow(10, -digit), D = us_restitution_damping(1 - small, 1), given = 1 - (1 - small);
        assert_near(D / given, 1.5, 1.6 * small + 1e-14);
    }
}

static void damping_scales_with_the_speed_at_which_restitution_is_measured(void **state) {
    (void)state;
    assert_near(us_restitution_damping(0.5, 4), us_restitution_damping(0.5, 1) / 4, 1e-15);
    assert_near(us_damping_restitution(0.25, 2), us_damping_restitution(0.5, 1), 0);
    assert_true(us_damping_restitution(0.5, 0.1) >
                us_damping_restitution(0.5, 1));  // slower impacts rebound better
}

static void restitution_has_its_limits_and_refuses_what_is_none(void **state) {
    (void)state;
    assert_true(isinf(us_restitution_damping(0, 1)));
    assert_true(us_restitution_damping(1, 1) == 0);
    assert_true(us_damping_restitution(0, 1) == 1);
    assert_true(us_damping_restitution(INFINITY, 1) == 0);
    assert_true(us_damping_restitution(5, 0) == 1);
    assert_near(us_damping_restitution(1e6, 1), 1e-6, 1e-21);
    assert_near(us_restitution_damping(1e-6, 1), 1e6, 1e-9);
    const double bad[] = {-0.1, -INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
        assert_true(isnan(us_restitution_damping(bad[i], 1)));
        assert_true(isnan(us_restitution_damping(0.5, bad[i])));
        assert_true(isnan(us_damping_restitution(bad[i], 1)));
        assert_true(isnan(us_damping_restitution(1, bad[i])));
    }
    assert_true(isnan(us_restitution_damping(1.1, 1)));
}

// ---- Laws ----

static us_touch touch_of(const us_pair_values *values, double gap, double v) {
    us_touch t = {.step = 1e-3,
                  .gap = gap,
                  .normal = {0, 0, 1},
                  .velocity = {0, 0, v},
                  .normal_velocity = v,
                  .mass = 1,
                  .load = 9.81,
                  .values = values};
    t.material_a = t.material_b = "default";
    return t;
}

static us_touch_law spring_damper(const us_touch *t) {
    us_touch_law law;
    usi_touch_compliant(t, &law);
    assert_true(usi_touch_spring_damper(t, &law));
    return law;
}

// A mass falls onto the law at speed v: integrated by the fourth-order Runge-Kutta rule with 1 us, which the
// depth's kink at the ends leaves good to 1e-8.
typedef struct impact {
    double e, depth, duration;
} impact;

static double acceleration(const us_pair_values *values, const us_property *exponent, double gap, double v) {
    us_touch t = touch_of(values, gap, v);
    t.parameters = exponent;
    t.n_parameter = 1;
    return gap < 0 ? fmax(0, spring_damper(&t).force) / t.mass : 0;
}

static impact fall(const us_pair_values *values, double exponent, double speed) {
    us_property n = {.key = "exponent", .type = US_PROPERTY_NUMBER, .number = exponent};
    impact out = {0};
    double x = 0, v = -speed, h = 1e-6;
    // The first step starts at a depth of 0.
    for (int i = 0; i < 200000; i++) {
        double k1 = acceleration(values, &n, x, v),
               k2 = acceleration(values, &n, x + h / 2 * v, v + h / 2 * k1);
        double k3 = acceleration(values, &n, x + h / 2 * v + h * h / 4 * k1, v + h / 2 * k2);
        double k4 = acceleration(values, &n, x + h * v + h * h / 2 * k2, v + h * k3);
        double next = x + h * v + h * h / 6 * (k1 + k2 + k3);
        v += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
        if (next >= 0) {
            out.e = v / speed;
            out.duration = h * (i + x / (x - next));
            return out;
        }
        x = next;
        out.depth = fmax(out.depth, -x);
    }
    fail_msg("the mass does not leave");
    return out;
}

static us_pair_values impact_values(void) {
    us_pair_values values = us_pair_def_default().values;
    values.stiffness = 1e5;
    values.restitution = us_damping_restitution(0.5, 1);  // a = 0.5 s/m
    values.reference_speed = 1;
    values.normal_static = 0;
    return values;
}

static void a_mass_that_falls_on_the_spring_damper_rebounds_as_the_formula_says(void **state) {
    (void)state;
    us_pair_values values = impact_values();
    impact hertz = fall(&values, 1.5, 1), linear = fall(&values, 1, 1);
    // Half a unit of the last digit that is given. The times are those at which the depth is 0 again; the
    // integral of dv / (k d^n (1 - a v)) by quadrature gives 33.3825 and 10.0130 ms.
    assert_near(hertz.e, 0.748435, 5e-7);
    assert_near(hertz.depth, 9.7777e-3, 5e-8);
    assert_near(hertz.duration, 33.3825e-3, 5e-8);
    assert_near(linear.e, 0.748435, 5e-7);
    assert_near(linear.depth, 2.7501e-3, 5e-8);
    assert_near(linear.duration, 10.0130e-3, 5e-8);
    // An exponent that takes the general way, and an impact at another speed than the reference one.
    assert_near(fall(&values, 1.25, 1).e, 0.748435, 1e-6);
    assert_near(fall(&values, 1.5, 2).e, us_damping_restitution(0.5, 2), 1e-6);
}

static void the_damper_of_contacts_at_rest_leaves_the_restitution_of_impacts_alone(void **state) {
    (void)state;
    us_pair_values values = impact_values();
    values.normal_static = us_pair_def_default().values.normal_static;
    assert_near(values.normal_static, 0.35, 0);
    // Its work is about 1e-6 of the energy of an impact at 1 m/s.
    assert_near(fall(&values, 1.5, 1).e, 0.748435, 5e-6);
    // Well below its speed of 1 cm/s it acts: without it 1 mm/s would rebound with more than 0.999.
    assert_true(fall(&values, 1.5, 1e-3).e < 0.5);
    values.normal_static = 0;
    assert_true(fall(&values, 1.5, 1e-3).e > 0.999);
}

static void without_restitution_the_spring_damper_keeps_a_twentieth_of_the_speed(void **state) {
    (void)state;
    us_pair_values values = impact_values();
    values.restitution = 0;
    assert_near(fall(&values, 1.5, 1).e, 0.05, 1e-5);
}

static void slopes_of_the_spring_damper_are_its_derivatives(void **state) {
    (void)state;
    us_pair_values values = impact_values();
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++) {
            double depth = 1e-4 * pow(4, i), v = -0.7 + 0.6 * k, step = 1e-4 * depth;
            us_touch at = touch_of(&values, -depth, v), near = at, far = at, slow = at, fast = at;
            near.gap += step;
            far.gap -= step;
            slow.normal_velocity -= 1e-3;
            fast.normal_velocity += 1e-3;
            us_touch_law law = spring_damper(&at);
            // Central differences of a smooth function: off by the square of the step, 1e-8.
            assert_near((spring_damper(&far).force - spring_damper(&near).force) / (2 * step), law.stiffness,
                        1e-7 * law.stiffness);
            assert_near((spring_damper(&slow).force - spring_damper(&fast).force) / 2e-3, law.damping,
                        1e-9 * law.damping);
            assert_near(law.force, 1e5 * depth * sqrt(depth) * (1 - 0.5 * v), 1e-12 * law.force);
        }
    }
}

static void the_spring_damper_never_has_two_slopes_of_zero(void **state) {
    (void)state;
    us_pair_values values = impact_values();
    const double gaps[] = {1e-3, 1e-9, 0, -1e-9, -1e-3};
    const double speeds[] = {-100, -1, 0, 1, 100};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            us_touch t = touch_of(&values, gaps[i], speeds[k]);
            us_touch_law law = spring_damper(&t);
            assert_true(law.stiffness >= 0 && law.damping > 0);
            assert_true(law.tangent_stiffness > 0 && law.tangent_damping > 0);
            if (gaps[i] > 0) assert_true(law.force < 0);
            if (gaps[i] == 0) assert_true(law.force == 0);
        }
    }
    // Apart: along the slope of a depth of 1e-6 m.
    us_touch apart = touch_of(&values, 1e-4, 0);
    assert_near(spring_damper(&apart).stiffness, 1.5 * 1e5 * 1e-3, 1e-9);
    assert_near(spring_damper(&apart).force, -1.5 * 1e5 * 1e-3 * 1e-4, 1e-12);
}

static void the_anchor_of_the_spring_damper_does_not_follow_the_depth(void **state) {
    (void)state;
    us_pair_values values = impact_values();
    us_touch shallow = touch_of(&values, -1e-5, 0), deep = touch_of(&values, -1e-2, 0);
    us_touch_law law = spring_damper(&shallow);
    assert_true(law.tangent_stiffness == spring_damper(&deep).tangent_stiffness);
    // The slope at the depth where four points carry the load.
    double depth = pow(9.81 / 4 / 1e5, 2.0 / 3);
    assert_near(law.tangent_stiffness, 1.5e5 * sqrt(depth), 1e-9 * law.tangent_stiffness);
    assert_near(law.tangent_damping, 2 * sqrt(law.tangent_stiffness), 1e-12 * law.tangent_damping);
    assert_true(law.restitution == 0);
}

static void an_exponent_out_of_range_is_refused(void **state) {
    (void)state;
    us_pair_values values = impact_values();
    us_touch t = touch_of(&values, -1e-3, 0);
    us_touch_law law;
    us_property exponent = {.key = "exponent", .type = US_PROPERTY_INTEGER, .integer = 2};
    t.parameters = &exponent;
    t.n_parameter = 1;
    usi_touch_compliant(&t, &law);
    assert_true(usi_touch_spring_damper(&t, &law));
    assert_near(law.force, 1e5 * 1e-6, 1e-15);
    const double bad[] = {0, 0.99, 4.01, -1, NAN, INFINITY};
    for (int i = 0; i < 6; i++) {
        exponent = (us_property){.key = "exponent", .type = US_PROPERTY_NUMBER, .number = bad[i]};
        assert_false(usi_touch_spring_damper(&t, &law));
    }
    t.n_parameter = 0;
    values.reference_speed = 0;
    assert_false(usi_touch_spring_damper(&t, &law));
}

static void the_compliant_law_is_a_critically_damped_spring_with_an_anchor_alike(void **state) {
    (void)state;
    us_pair_values values = {.static_friction = 0.7,
                             .kinetic_friction = 0.6,
                             .viscous = 0.1,
                             .rotational = 0.5,
                             .assumed_mass = 40,
                             .restitution = 0.2,
                             .reference_speed = 1,
                             .stiffness = 1e6,
                             .damping_ratio = 0.5,
                             .torsion_radius = 0.03,
                             .rolling_length = 0.004};
    us_touch t = touch_of(&values, -2e-3, -0.25);
    t.mass = 4;
    us_touch_law law;
    memset(&law, 0xff, sizeof law);  // every member is written
    usi_touch_compliant(&t, &law);
    assert_near(law.stiffness, 1e6, 0);
    assert_near(law.damping, 2000, 1e-9);  // 2 * 0.5 * sqrt(1e6 * 4)
    assert_near(law.force, 2000 + 500, 1e-9);
    assert_near(law.tangent_stiffness, 1e6, 0);
    assert_near(law.tangent_damping, 4000, 1e-9);
    assert_near(law.static_friction, 0.7, 0);
    assert_near(law.kinetic_friction, 0.6, 0);
    assert_near(law.viscous, 0.1, 0);
    assert_near(law.restitution, 0.2, 0);
    assert_near(law.torsion, 2.0 / 3 * 0.6 * 0.03 * 0.5, 1e-17);
    assert_near(law.rolling, 0.004, 0);
    t.mass = 0;  // unknown: the assumed one
    usi_touch_compliant(&t, &law);
    assert_near(law.tangent_damping, 2 * sqrt(1e6 * 40), 1e-9);
}

static void without_a_stiffness_the_load_gives_one(void **state) {
    (void)state;
    us_pair_values values = us_pair_def_default().values;
    us_touch t = touch_of(&values, -1e-4, 0);
    us_touch_law law;
    usi_touch_compliant(&t, &law);
    assert_near(law.stiffness, 1e7, 0);
    t.load = 1e6;  // four points sink by 1e-4 m
    usi_touch_compliant(&t, &law);
    assert_near(4 * law.stiffness * 1e-4, 1e6, 1e-6);
    // Both models carry the same force at that depth.
    assert_near(spring_damper(&t).force, law.force, 1e-9 * law.force);
}

// ---- Models of one's own ----

static bool double_everything(const us_touch *touch, double memory[US_TOUCH_MEMORY], us_touch_law *law,
                              void *user) {
    (void)touch;
    memory[1] += 1;
    law->force *= *(const double *)user;
    return true;
}

static bool answer(const us_touch *touch, double memory[US_TOUCH_MEMORY], us_touch_law *law, void *user) {
    (void)touch;
    memory[1] = 0;
    if (!user) return false;
    *law = *(const us_touch_law *)user;
    return true;
}

static void a_registered_model_starts_from_the_compliant_law_and_has_its_memory(void **state) {
    (void)state;
    us_pair_values values = us_pair_def_default().values;
    us_touch t = touch_of(&values, -1e-4, 0);
    double factor = 3, memory[US_TOUCH_MEMORY] = {0};
    us_interaction model = {US_INTERACTION_VERSION, "mine", &factor, double_everything};
    us_touch_law plain, law;
    assert_true(usi_touch_ask(USI_MODEL_COMPLIANT, NULL, &t, memory, &plain));
    assert_true(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law));
    assert_true(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law));
    assert_near(law.force, 3 * plain.force, 1e-9);
    assert_near(law.stiffness, plain.stiffness, 0);
    assert_near(memory[0], 0, 0);
    assert_near(memory[1], 2, 0);
    us_touch_law stiff;
    assert_true(usi_touch_ask(USI_MODEL_SPRING_DAMPER, NULL, &t, memory, &stiff));
    assert_true(stiff.damping != plain.damping);
}

static void an_answer_that_cannot_be_used_is_refused(void **state) {
    (void)state;
    us_pair_values values = us_pair_def_default().values;
    us_touch t = touch_of(&values, -1e-4, 0);
    us_touch_law good, bad, law;
    usi_touch_compliant(&t, &good);
    double memory[US_TOUCH_MEMORY] = {0};
    us_interaction model = {US_INTERACTION_VERSION, "mine", &bad, answer};
    const size_t members[] = {offsetof(us_touch_law, force),
                              offsetof(us_touch_law, stiffness),
                              offsetof(us_touch_law, damping),
                              offsetof(us_touch_law, tangent_damping),
                              offsetof(us_touch_law, tangent_stiffness),
                              offsetof(us_touch_law, static_friction),
                              offsetof(us_touch_law, kinetic_friction),
                              offsetof(us_touch_law, viscous),
                              offsetof(us_touch_law, restitution),
                              offsetof(us_touch_law, torsion),
                              offsetof(us_touch_law, rolling)};
    const double values_bad[] = {NAN, INFINITY, -1};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        for (int k = 0; k < 3; k++) {
            bad = good;
            assert_true(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law));
            memcpy((char *)&bad + members[i], &values_bad[k], sizeof(double));
            bool is_negative_force = members[i] == offsetof(us_touch_law, force) && values_bad[k] == -1;
            assert_int_equal(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law),
                             is_negative_force);
        }
    }
    bad = good;
    bad.stiffness = bad.damping = 0;
    assert_false(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law));
    bad = good;
    bad.tangent_stiffness = 0;
    assert_false(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law));
    bad = good;
    bad.restitution = 1.5;
    assert_false(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law));
    bad = good;
    memory[0] = NAN;
    assert_false(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law));
    memory[0] = 0;
    model.user = NULL;  // it cannot say
    assert_false(usi_touch_ask(USI_MODEL_FIRST_REGISTERED, &model, &t, memory, &law));
}

static void a_spec_keeps_models_and_says_what_is_wrong_with_others(void **state) {
    (void)state;
    test_allocator memory;
    test_allocator_init(&memory);
    us_spec *spec = NULL;
    us_error err;
    assert_int_equal(us_spec_create(&memory.allocator, &spec), US_OK);
    char name[] = "mine";
    us_interaction model = {US_INTERACTION_VERSION, name, NULL, answer};
    assert_int_equal(us_spec_add_interaction(spec, &model, &err), US_OK);
    name[0] = 'd';  // the spec has its own copy
    assert_string_equal(spec->interaction[0].name, "mine");
    name[0] = 'm';
    assert_int_equal(us_spec_add_interaction(spec, &model, &err), US_OK);  // the same again
    assert_int_equal(spec->n_interaction, 1);

    struct {
        us_interaction model;
        us_status status;
        const char *message;
    } bad[] = {{{US_INTERACTION_VERSION, "mine", NULL, double_everything},
                US_ERR_NAME,
                "another interaction model \"mine\""},
               {{US_INTERACTION_VERSION, "compliant", NULL, answer},
                US_ERR_NAME,
                "is a model of the library itself"},
               {{US_INTERACTION_VERSION, "spring-damper", NULL, answer},
                US_ERR_NAME,
                "is a model of the library itself"},
               {{US_INTERACTION_VERSION, "", NULL, answer}, US_ERR_NAME, "has no name"},
               {{US_INTERACTION_VERSION, NULL, NULL, answer}, US_ERR_NAME, "has no name"},
               {{US_INTERACTION_VERSION, "x", NULL, NULL}, US_ERR_VALUE, "has no function"},
               {{US_INTERACTION_VERSION + 1, "x", NULL, answer}, US_ERR_VALUE, "has version 2"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(us_spec_add_interaction(spec, &bad[i].model, &err), bad[i].status);
        assert_non_null(strstr(err.message, bad[i].message));
        assert_true(err.remedy[0]);
        assert_int_equal(us_spec_add_interaction(spec, &bad[i].model, NULL), bad[i].status);
    }
    assert_int_equal(us_spec_add_interaction(NULL, &model, &err), US_ERR_ARG);
    assert_int_equal(us_spec_add_interaction(spec, NULL, &err), US_ERR_ARG);
    assert_int_equal(spec->n_interaction, 1);
    us_spec_destroy(spec);
    test_allocator_check(&memory);
}

static void without_memory_a_spec_stays_as_it_is(void **state) {
    (void)state;
    int n_failed = 0;
    for (int64_t at = 1; at <= 3; at++) {
        test_allocator memory;
        test_allocator_init(&memory);
        us_spec *spec = NULL;
        us_error err = {0};
        assert_int_equal(us_spec_create(&memory.allocator, &spec), US_OK);
        memory.fail_at = memory.n_alloc + at;
        us_interaction model = {US_INTERACTION_VERSION, "mine", NULL, answer};
        us_status status = us_spec_add_interaction(spec, &model, &err);
        if (status) {
            assert_int_equal(status, US_ERR_MEMORY);
            assert_int_equal(err.code, US_ERR_MEMORY);
            assert_int_equal(spec->n_interaction, 0);
            n_failed++;
        }
        us_spec_destroy(spec);
        test_allocator_check(&memory);
    }
    assert_true(n_failed >= 2);  // the list and the name
}

static void a_plug_in_that_is_none_is_an_error_with_a_remedy(void **state) {
    (void)state;
    us_spec *spec = NULL;
    us_error err;
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    assert_int_equal(us_spec_load_plugin(spec, "no-such-plugin.so", &err), US_ERR_IO);
    assert_string_equal(err.file, "no-such-plugin.so");
    assert_non_null(strstr(err.message, "cannot be loaded"));
    assert_true(err.remedy[0]);
    FILE *f = fopen("text.so", "w");
    assert_non_null(f);
    fputs("this is no library\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(us_spec_load_plugin(spec, "text.so", &err), US_ERR_IO);
    // A library of the system is not found by its bare name: the name is a file's.
    assert_int_equal(us_spec_load_plugin(spec, "libm.so.6", &err), US_ERR_IO);
    char path[6000];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    assert_int_equal(us_spec_load_plugin(spec, path, &err), US_ERR_LIMIT);
    assert_int_equal(us_spec_load_plugin(spec, NULL, &err), US_ERR_ARG);
    assert_int_equal(us_spec_load_plugin(NULL, "x.so", NULL), US_ERR_ARG);
    us_spec_destroy(spec);
}

static void properties_are_found_by_key_as_numbers(void **state) {
    (void)state;
    const us_property p[] = {{"a", US_PROPERTY_STRING, "text", 1, 2},
                             {"a", US_PROPERTY_NUMBER, NULL, 0.5, 0},
                             {"b", US_PROPERTY_INTEGER, NULL, 0.5, -7}};
    assert_near(us_property_number(p, 3, "a", 9), 0.5, 0);
    assert_near(us_property_number(p, 3, "b", 9), -7, 0);
    assert_near(us_property_number(p, 3, "c", 9), 9, 0);
    assert_near(us_property_number(NULL, 0, "a", 9), 9, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restitution_of_every_damping_is_that_of_the_table),
        cmocka_unit_test(damping_of_every_restitution_is_that_of_the_table),
        cmocka_unit_test(damping_and_restitution_solve_their_equation_and_invert_each_other),
        cmocka_unit_test(damping_scales_with_the_speed_at_which_restitution_is_measured),
        cmocka_unit_test(restitution_has_its_limits_and_refuses_what_is_none),
        cmocka_unit_test(a_mass_that_falls_on_the_spring_damper_rebounds_as_the_formula_says),
        cmocka_unit_test(the_damper_of_contacts_at_rest_leaves_the_restitution_of_impacts_alone),
        cmocka_unit_test(without_restitution_the_spring_damper_keeps_a_twentieth_of_the_speed),
        cmocka_unit_test(slopes_of_the_spring_damper_are_its_derivatives),
        cmocka_unit_test(the_spring_damper_never_has_two_slopes_of_zero),
        cmocka_unit_test(the_anchor_of_the_spring_damper_does_not_follow_the_depth),
        cmocka_unit_test(an_exponent_out_of_range_is_refused),
        cmocka_unit_test(the_compliant_law_is_a_critically_damped_spring_with_an_anchor_alike),
        cmocka_unit_test(without_a_stiffness_the_load_gives_one),
        cmocka_unit_test(a_registered_model_starts_from_the_compliant_law_and_has_its_memory),
        cmocka_unit_test(an_answer_that_cannot_be_used_is_refused),
        cmocka_unit_test(a_spec_keeps_models_and_says_what_is_wrong_with_others),
        cmocka_unit_test(without_memory_a_spec_stays_as_it_is),
        cmocka_unit_test(a_plug_in_that_is_none_is_an_error_with_a_remedy),
        cmocka_unit_test(properties_are_found_by_key_as_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

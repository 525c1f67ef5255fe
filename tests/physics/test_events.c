// Events located in time: impacts, limits and conditions, against analytic moments.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "contact_scene.h"
#include "understudy/query.h"

static const double G = 9.81;

static us_sim *watch(const us_model *model, const us_condition *condition, int32_t n) {
    us_sim_def def = us_sim_def_default();
    us_sim *sim;
    def.enable_events = true;
    def.n_condition = n;
    def.conditions = condition;
    assert_int_equal(us_sim_create(model, &def, &sim, NULL), US_OK);
    return sim;
}

static double first_position(void *context, const us_model *model, const double *q, const double *v,
                             double time) {
    (void)model;
    (void)v;
    (void)time;
    return q[0] - *(const double *)context;
}

static double first_velocity(void *context, const us_model *model, const double *q, const double *v,
                             double time) {
    (void)context;
    (void)model;
    (void)q;
    (void)time;
    return v[0];
}

static double never_a_number(void *context, const us_model *model, const double *q, const double *v,
                             double time) {
    (void)context;
    (void)model;
    (void)q;
    (void)v;
    return time > 0.01 ? NAN : 1;
}

// A point on a rod of 1 m, from rest at 1.2 rad; with limits where `limit` is finite.
static us_model *pendulum(us_integrator integrator, double step, double limit) {
    us_spec *spec = build_spec(G, step, integrator);
    const int32_t link =
        build_link(spec, "bob", 1, us_vec3_make(0, 0, -1), us_vec3_make(1e-12, 1e-12, 1e-12));
    us_joint_def joint =
        build_joint_at(US_JOINT_REVOLUTE, US_WORLD, link, us_vec3_make(0, 0, 0), us_vec3_make(0, 1, 0));
    joint.q0[0] = 1.2;
    joint.has_limits = isfinite(limit);
    joint.lower = limit;
    joint.upper = 3;
    build_joint_def(spec, "hinge", &joint);
    us_model *model;
    us_error err;
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_OK);
    us_spec_destroy(spec);
    return model;
}

// From 1.2 rad to the bottom: K(sin 0.6) / omega, by the arithmetic-geometric mean.
static double quarter_period(void) {
    double a = 1, b = cos(0.6);
    for (int i = 0; i < 20; i++) {
        const double mean = 0.5 * (a + b);
        b = sqrt(a * b);
        a = mean;
    }
    return 0.5 * M_PI / (a * sqrt(G));
}

// The time of the first event of a kind.
static us_event first_event(us_sim *sim, us_event_kind kind, double until) {
    while (us_sim_get_time(sim) < until) {
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        for (int32_t i = 0; i < us_sim_n_event(sim); i++) {
            const us_event e = us_sim_get_event(sim, i);
            assert_true(e.time <= us_sim_get_time(sim) + 1e-12);
            if (e.kind == kind) return e;
        }
    }
    fail_msg("no event");
    return us_sim_get_event(NULL, 0);
}

static double bottom_error(us_integrator integrator, double step) {
    static double zero = 0;
    const us_condition bottom = {"bottom", &zero, first_position, 0};
    us_model *model = pendulum(integrator, step, -INFINITY);
    us_sim *sim = watch(model, &bottom, 1);
    const us_event e = first_event(sim, US_EVENT_CONDITION, 1);
    assert_int_equal(e.index, 0);
    assert_int_equal(e.direction, -1);
    us_sim_destroy(sim);
    us_model_destroy(model);
    return fabs(e.time - quarter_period());
}

static void a_pendulum_passes_the_bottom_when_it_must(void **state) {
    (void)state;
    // Within steps much longer than the accuracy asked for: the sub-steps are the integrator's own.
    const double adaptive = bottom_error(US_INTEGRATOR_ADAPTIVE, 0.037);
    const double coarse = bottom_error(US_INTEGRATOR_MIDPOINT, 4e-3),
                 fine = bottom_error(US_INTEGRATOR_MIDPOINT, 2e-3);
    const double order = log2(bottom_error(US_INTEGRATOR_RK4, 0.02) / bottom_error(US_INTEGRATOR_RK4, 0.01));
    printf("    adaptive %.1e s; midpoint of order %.2f, rk4 of order %.2f\n", adaptive, log2(coarse / fine),
           order);
    assert_true(adaptive < 1e-9);
    assert_true(log2(coarse / fine) > 1.9);
    // A cubic on motion of fourth order.
    assert_true(order > 3.5);
}

static void a_direction_is_waited_for(void **state) {
    (void)state;
    static double zero = 0;
    const us_condition up = {"up", &zero, first_position, 1}, turn = {"turn", NULL, first_velocity, 1};
    const us_condition both[2] = {up, turn};
    us_model *model = pendulum(US_INTEGRATOR_ADAPTIVE, 0.01, -INFINITY);
    us_sim *sim = watch(model, both, 2);
    // The other side after half a period, then the bottom from there.
    const us_event first = first_event(sim, US_EVENT_CONDITION, 3);
    assert_int_equal(first.index, 1);
    assert_true(fabs(first.time - 2 * quarter_period()) < 1e-9);
    const us_event second = first_event(sim, US_EVENT_CONDITION, 3);
    assert_int_equal(second.index, 0);
    assert_true(fabs(second.time - 3 * quarter_period()) < 1e-9);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

// The limit is passed in the step whose ends lie on both sides of it, at the moment that a condition finds.
static void a_limit_is_passed_at_one_moment(void **state) {
    (void)state;
    static const us_integrator kinds[] = {US_INTEGRATOR_MIDPOINT, US_INTEGRATOR_RK4, US_INTEGRATOR_ADAPTIVE};
    static double limit = 0.3;
    for (int i = 0; i < 3; i++) {
        const us_condition same = {"limit", &limit, first_position, 0};
        us_model *model = pendulum(kinds[i], 1e-3, limit);
        us_sim *sim = watch(model, &same, 1);
        const us_event e = first_event(sim, US_EVENT_LIMIT, 2);
        assert_int_equal(us_sim_n_event(sim), 2);
        assert_true(us_sim_get_event(sim, 0).time == us_sim_get_event(sim, 1).time);
        assert_int_equal(e.index, 0);
        assert_int_equal(e.direction, -1);
        assert_true(e.limit == limit && us_sim_view_q(sim)[0] <= limit);
        assert_true(e.time > us_sim_get_time(sim) - 1e-3 && e.time <= us_sim_get_time(sim));
        us_sim_destroy(sim);
        us_model_destroy(model);
    }
}

static built dropped_ball(double height, double step, us_integrator integrator) {
    us_pair_def pair = scene_pair(0.5);
    pair.values.restitution = 0.8;
    us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -G), step, &pair);
    us_world_settings world = *us_spec_view_world(spec);
    world.integrator = integrator;
    assert_int_equal(us_spec_set_world(spec, &world), US_OK);
    scene_ground(spec);
    const scene_start start = scene_at(0, 0, height);
    scene_ball(spec, "ball", 1, 0.1, &start);
    return build_sim(spec);
}

static void a_ball_lands_when_it_must(void **state) {
    (void)state;
    static const us_integrator kinds[] = {US_INTEGRATOR_MIDPOINT, US_INTEGRATOR_ADAPTIVE};
    double worst = 0;
    for (int i = 0; i < 12; i++) {
        const double height = 0.15 + 0.137 * i, step = 1e-3 * (1 + i % 5);
        built b = dropped_ball(height, step, kinds[i % 2]);
        us_sim *sim = watch(b.model, NULL, 0);
        const us_event e = first_event(sim, US_EVENT_IMPACT, 2);
        const double when = sqrt(2 * (height - 0.1) / G);
        worst = fmax(worst, fmax(fabs(e.time - when), fabs(e.speed - G * when)));
        assert_int_equal(e.index, -1);
        us_sim_destroy(sim);
        build_free(&b);
    }
    printf("    off by %.1e s, m/s\n", worst);
    assert_true(worst < 1e-9);
}

// Each bounce once.
static void every_bounce_is_one_event(void **state) {
    (void)state;
    built b = dropped_ball(0.6, 1e-3, US_INTEGRATOR_MIDPOINT);
    us_sim *sim = watch(b.model, NULL, 0);
    us_event last = {.time = 0};
    int n = 0;
    for (int i = 0; i < 4000; i++) {
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        for (int32_t k = 0; k < us_sim_n_event(sim); k++) {
            const us_event e = us_sim_get_event(sim, k);
            // Slower than what some steps of weight give it is coming to rest.
            if (e.speed < 0.05) continue;
            // It flies for as long as 0.8 of its speed takes it. An impact turns it at the end of its step,
            // up to 1 ms late, and with up to a step of weight more, which is 1.6 ms of flight.
            if (n > 0) assert_true(fabs(e.time - last.time - 2 * 0.8 * last.speed / G) < 2.6e-3);
            assert_true(n == 0 || e.speed < last.speed);
            last = e;
            n++;
        }
    }
    printf("    %d bounces\n", n);
    assert_true(n > 10);
    us_sim_destroy(sim);
    build_free(&b);
}

static double first_body_x(void *context, const us_model *model, const double *q, const double *v,
                           double time) {
    (void)model;
    (void)v;
    (void)time;
    return q[4] - *(const double *)context;
}

// A box slides down 30 degrees with friction 0.2 and passes a line.
static void a_condition_sees_what_contact_moves(void **state) {
    (void)state;
    static double line = 0.5;
    const us_condition passes = {"passes", &line, first_body_x, 1};
    us_spec *spec = scene_spec(scene_gravity(M_PI / 6, 0), 0.2);
    scene_ground(spec);
    const scene_start start = scene_at(0, 0, 0.1);
    scene_box(spec, "box", 1, us_vec3_make(0.2, 0.2, 0.2), &start);
    built b = build_sim(spec);
    us_sim *sim = watch(b.model, &passes, 1);
    const us_event e = first_event(sim, US_EVENT_CONDITION, 2);
    const double when = sqrt(2 * line / (G * (sin(M_PI / 6) - 0.2 * cos(M_PI / 6))));
    printf("    after %.5f s, should be %.5f s\n", e.time, when);
    // Contact is of the first order: a step of 1 ms.
    assert_true(fabs(e.time - when) < 1e-3);
    us_sim_destroy(sim);
    build_free(&b);
}

static void watching_changes_nothing(void **state) {
    (void)state;
    static double zero = 0;
    const us_condition bottom = {"bottom", &zero, first_position, 0};
    for (int i = 0; i < 2; i++) {
        us_model *model = pendulum(i ? US_INTEGRATOR_ADAPTIVE : US_INTEGRATOR_MIDPOINT, 0.01, -0.4);
        us_sim *with = watch(model, &bottom, 1), *without;
        assert_int_equal(us_sim_create(model, NULL, &without, NULL), US_OK);
        for (int k = 0; k < 200; k++) {
            assert_int_equal(us_sim_step(with, NULL), US_OK);
            assert_int_equal(us_sim_step(without, NULL), US_OK);
            assert_true(us_sim_hash(with) == us_sim_hash(without));
        }
        us_sim_destroy(with);
        us_sim_destroy(without);
        us_model_destroy(model);
    }
}

static void conditions_that_cannot_be_are_refused(void **state) {
    (void)state;
    us_model *model = pendulum(US_INTEGRATOR_ADAPTIVE, 0.01, -INFINITY);
    us_condition bad = {.name = "bad"};
    us_sim_def def = us_sim_def_default();
    us_sim *sim = NULL;
    us_error err;
    def.n_condition = 1;
    def.conditions = &bad;
    assert_int_equal(us_sim_create(model, &def, &sim, &err), US_ERR_ARG);
    bad.value = never_a_number;
    assert_int_equal(us_sim_create(model, &def, &sim, NULL), US_OK);
    assert_int_equal(us_sim_step(sim, NULL), US_OK);
    const uint64_t whole = us_sim_hash(sim);
    assert_int_equal(us_sim_step(sim, NULL), US_ERR_VALUE);
    assert_true(us_sim_hash(sim) == whole && us_sim_n_event(sim) == 0);
    assert_int_equal(us_sim_get_event(sim, 0).index, -2);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pendulum_passes_the_bottom_when_it_must),
        cmocka_unit_test(a_direction_is_waited_for),
        cmocka_unit_test(a_limit_is_passed_at_one_moment),
        cmocka_unit_test(a_ball_lands_when_it_must),
        cmocka_unit_test(every_bounce_is_one_event),
        cmocka_unit_test(a_condition_sees_what_contact_moves),
        cmocka_unit_test(watching_changes_nothing),
        cmocka_unit_test(conditions_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

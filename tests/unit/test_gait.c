// Legs and the gaits: angles to feet and back, which feet stand when, and that nothing jumps.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/gait.h"
#include "kincontrol/odometry.h"

static const double PI = 3.14159265358979323846, STEP = 1e-3;

// Numbers between -1 and 1, the same in every run.
static uint32_t seed = 1;
static double random_number(void) {
    seed = seed * 1664525U + 1013904223U;
    return (double)(seed >> 8) / 8388608 - 1;
}

// The walker of models/hexapod.urdf, with joints that turn the other way on its right side.
static usi_gait make_gait(void) {
    static const double x[] = {0.25, 0, -0.25, 0.25, 0, -0.25}, heading[] = {50, 90, 130, -50, -90, -130};
    usi_gait g = {.n_leg = USI_GAIT_LEGS, .ground = -0.18, .step_height = 0.06, .period = 1, .duty = 0.6};
    for (int i = 0; i < USI_GAIT_LEGS; i++) {
        usi_leg *l = &g.leg[i];
        *l = (usi_leg){.hip = {x[i], i < 3 ? 0.12 : -0.12, 0.01},
                       .heading = heading[i] * PI / 180,
                       .coxa = 0.06,
                       .femur = 0.17,
                       .tibia = 0.22};
        l->tibia_zero = -PI / 2;
        for (int k = 0; k < 3; k++) {
            l->sign[k] = i < 3 ? 1 : -1;
            l->lower[k] = -1.3;
            l->upper[k] = 1.3;
        }
        l->neutral[0] = l->hip[0] + 0.23 * cos(l->heading);
        l->neutral[1] = l->hip[1] + 0.23 * sin(l->heading);
    }
    usi_gait_assign_tripods(&g);
    return g;
}

// Standing, with the feet in the middle of their steps.
static usi_gait_state stand(const usi_gait *g) {
    usi_gait_state s = {0};
    double q[USI_GAIT_LEGS][3];
    for (int i = 0; i < g->n_leg; i++) {
        double foot[3] = {g->leg[i].neutral[0], g->leg[i].neutral[1], g->ground};
        assert_true(usi_leg_reach(&g->leg[i], foot, q[i]));
    }
    usi_gait_start(g, &s, (const double(*)[3])q);
    usi_gait_observe(g, &s, (const double(*)[3])q);
    return s;
}

static void feet_of(const usi_gait *g, double (*q)[3], double (*out)[3]) {
    for (int i = 0; i < g->n_leg; i++)
        usi_leg_foot(&g->leg[i], q[i], out[i]);
}

// ---------------------------------------------------------------- a leg

static void a_leg_at_zero_stretches_out_level_and_hangs_its_foot(void **state) {
    (void)state;
    usi_gait g = make_gait();
    const double zero[3] = {0, 0, 0};
    double foot[3];
    usi_leg_foot(&g.leg[1], zero, foot);
    // Sums of a few lengths: what is off is rounding.
    assert_true(fabs(foot[0]) < 1e-15 && fabs(foot[1] - 0.35) < 1e-15 && fabs(foot[2] + 0.21) < 1e-15);
    const double up[3] = {0, 0.1, 0};
    usi_leg_foot(&g.leg[1], up, foot);
    assert_true(foot[2] > -0.21);
    const double left[3] = {0.1, 0, 0};
    usi_leg_foot(&g.leg[1], left, foot);
    assert_true(foot[0] < 0);
}

// Both ways by different formulas. 1e-12: some rounding of numbers near 1, magnified by at most the slope of
// a leg that is a per cent from stretched.
static void inverse_kinematics_undoes_forward_kinematics(void **state) {
    (void)state;
    usi_gait g = make_gait();
    int n = 0;
    for (int i = 0; i < 20000; i++) {
        const usi_leg *l = &g.leg[i % USI_GAIT_LEGS];
        double q[3], foot[3], back[3], again[3];
        for (int k = 0; k < 3; k++)
            q[k] = 1.3 * random_number();
        usi_leg_foot(l, q, foot);
        double a = l->sign[1] * q[1], b = -PI / 2 + a + l->sign[2] * q[2],
               reach = l->femur * cos(a) + l->tibia * cos(b);
        // With the knee upwards, outside of the coxa's axis, and neither stretched nor folded.
        bool is_usual = a - b > 0.1 && a - b < PI - 0.1 && l->coxa + reach > 0.02;
        if (!is_usual) continue;
        n++;
        assert_true(usi_leg_reach(l, foot, back));
        for (int k = 0; k < 3; k++)
            assert_true(fabs(back[k] - q[k]) < 1e-12);
        usi_leg_foot(l, back, again);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(again[k] - foot[k]) < 1e-12);
    }
    assert_true(n > 5000);
}

static void a_foot_out_of_reach_is_stretched_for_and_told(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_leg *l = &g.leg[1];
    double q[3], foot[3];
    l->upper[2] = 2;
    const double far[3] = {0, 2, -0.1}, inside[3] = {0, 0.12 + 0.06, 0.01 - 0.02},
                 aside[3] = {-0.3, 0.1, -0.1};
    assert_false(usi_leg_reach(l, far, q));
    usi_leg_foot(l, q, foot);
    // In the right direction and nearly as long as the leg is: 0.45 m less the slack of a thousandth.
    assert_true(fabs(foot[0]) < 1e-12 && foot[1] > 0.12 + 0.448 && foot[1] < 0.12 + 0.45);
    // Nearer than femur and tibia are different in length; and behind the limit of the coxa.
    assert_false(usi_leg_reach(l, inside, q));
    assert_false(usi_leg_reach(l, aside, q));
    for (int k = 0; k < 3; k++)
        assert_true(q[k] >= l->lower[k] && q[k] <= l->upper[k]);
    const double axis[3] = {0, 0.12, -0.1};
    usi_leg_reach(l, axis, q);
    for (int k = 0; k < 3; k++)
        assert_true(isfinite(q[k]));
}

// ---------------------------------------------------------------- the gait

static void neighbours_belong_to_different_tripods(void **state) {
    (void)state;
    usi_gait g = make_gait();
    // Front left, middle left, rear left, front right, middle right, rear right.
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(g.leg[i].tripod, g.leg[i + 3].tripod);
    assert_int_equal(g.leg[0].tripod, g.leg[2].tripod);
    assert_int_not_equal(g.leg[0].tripod, g.leg[1].tripod);
    assert_int_equal(g.leg[0].tripod, g.leg[4].tripod);
}

static void three_feet_always_stand_and_each_one_swings(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = stand(&g);
    const double body[3] = {0.15, 0, 0};
    int n_air[USI_GAIT_LEGS] = {0}, n_all = 0;
    double q[USI_GAIT_LEGS][3], foot[USI_GAIT_LEGS][3], highest = 0;
    for (int i = 0; i < 4000; i++) {
        usi_gait_step(&g, &s, body, STEP, q);
        feet_of(&g, q, foot);
        bool lifts[2] = {false, false};
        for (int k = 0; k < g.n_leg; k++) {
            double lift = foot[k][2] - g.ground;
            assert_true(lift > -1e-9);
            highest = fmax(highest, lift);
            if (lift < 1e-6) continue;
            lifts[g.leg[k].tripod] = true;
            n_air[k]++;
        }
        assert_false(lifts[0] && lifts[1]);
        n_all += !lifts[0] && !lifts[1];
    }
    // 40 % of 4 s; the first and last micrometre of a lift take some ticks.
    for (int k = 0; k < g.n_leg; k++)
        assert_true(n_air[k] > 1500 && n_air[k] <= 1600);
    assert_true(n_all >= 800);
    assert_true(fabs(highest - 0.06) < 1e-5);
}

// Feet that stand move over the ground not at all: put back into the world by where the body is, they stay.
static void feet_that_stand_do_not_move_over_the_ground(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = stand(&g);
    const double body[3] = {0.1, -0.05, 0.3};
    double q[USI_GAIT_LEGS][3], foot[USI_GAIT_LEGS][3], X[3] = {0, 0, 0}, old[USI_GAIT_LEGS][2] = {{0}};
    bool was_down[USI_GAIT_LEGS] = {false};
    int n = 0;
    for (int i = 0; i < 3000; i++) {
        usi_gait_step(&g, &s, body, STEP, q);
        usi_odometry_move(X, body, STEP);
        feet_of(&g, q, foot);
        for (int k = 0; k < g.n_leg; k++) {
            double x = X[0] + cos(X[2]) * foot[k][0] - sin(X[2]) * foot[k][1],
                   y = X[1] + sin(X[2]) * foot[k][0] + cos(X[2]) * foot[k][1];
            bool is_down = foot[k][2] - g.ground < 1e-12;
            // The sums of hundreds of small motions are exact to rounding; a tick in which it lands is not
            // yet one of standing.
            if (is_down && was_down[k]) {
                assert_true(hypot(x - old[k][0], y - old[k][1]) < 1e-12);
                n++;
            }
            old[k][0] = x;
            old[k][1] = y;
            was_down[k] = is_down;
        }
    }
    assert_true(n > 8000);
}

// How far the middle of the body is inside the polygon of the feet that stand, m; negative: outside.
static double margin_of(double (*foot)[3], const bool *is_down, int n) {
    double least = INFINITY;
    // The edges of the hull: pairs of feet with all others on one side.
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            if (i == k || !is_down[i] || !is_down[k]) continue;
            double ex = foot[k][0] - foot[i][0], ey = foot[k][1] - foot[i][1], length = hypot(ex, ey);
            bool is_edge = true;
            for (int m = 0; m < n; m++) {
                if (is_down[m] && ex * (foot[m][1] - foot[i][1]) - ey * (foot[m][0] - foot[i][0]) < -1e-12)
                    is_edge = false;
            }
            if (is_edge) least = fmin(least, (ex * (0 - foot[i][1]) - ey * (0 - foot[i][0])) / length);
        }
    }
    return least;
}

static void in_a_wave_one_foot_swings_at_a_time_and_the_rest_carry_the_body(void **state) {
    (void)state;
    usi_gait g = make_gait();
    // With six legs, and with each one left out.
    for (int lost = -1; lost < g.n_leg; lost++) {
        usi_gait_state s = stand(&g);
        const double rest[3] = {0, 0, 0}, body[3] = {0.05, 0, 0};
        uint32_t spared = lost < 0 ? 0 : UINT32_C(1) << lost;
        int n_air[USI_GAIT_LEGS] = {0};
        double q[USI_GAIT_LEGS][3], foot[USI_GAIT_LEGS][3] = {{0}}, margin = INFINITY;
        assert_true(usi_gait_choose(&g, &s, USI_GAIT_WAVE, spared));
        for (int i = 0; i < 6000; i++)
            usi_gait_step(&g, &s, rest, STEP, q);
        for (int i = 0; i < 8000; i++) {
            bool is_down[USI_GAIT_LEGS];
            int n_up = 0;
            usi_gait_step(&g, &s, body, STEP, q);
            feet_of(&g, q, foot);
            for (int k = 0; k < g.n_leg; k++) {
                is_down[k] = k != lost && foot[k][2] - g.ground < 1e-6;
                n_up += k != lost && !is_down[k];
                n_air[k] += !is_down[k];
            }
            assert_true(n_up <= 1);
            margin = fmin(margin, margin_of(foot, is_down, g.n_leg));
        }
        for (int k = 0; k < g.n_leg; k++)
            assert_true(n_air[k] > 800);
        if (lost >= 0) assert_true(fabs(foot[lost][2] - g.ground - 2 * g.step_height) < 1e-3);
        print_message("without leg %d: the middle of the body is %.3f m inside\n", lost, margin);
        // Of a body that is half a metre long and sways by less than a centimetre.
        assert_true(margin > 0.02);
    }
}

static void a_gait_that_cannot_carry_is_refused(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = stand(&g), before = s;
    assert_false(usi_gait_choose(&g, &s, USI_GAIT_TRIPOD, 1));
    assert_false(usi_gait_choose(&g, &s, USI_GAIT_WAVE, 7));
    assert_memory_equal(&s, &before, sizeof s);
    assert_true(usi_gait_choose(&g, &s, USI_GAIT_WAVE, 3));
}

// Whenever it is told, to and fro, with a leg that is left out and comes back.
static void feet_do_not_jump_when_the_gait_changes(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = stand(&g);
    const double body[3] = {0.08, 0, 0.1};
    double q[USI_GAIT_LEGS][3], last[USI_GAIT_LEGS][3], foot[USI_GAIT_LEGS][3], old[USI_GAIT_LEGS][3];
    int n_change = 0;
    usi_gait_step(&g, &s, body, STEP, last);
    feet_of(&g, last, old);
    for (int i = 0; i < 40000; i++) {
        if (i % 1733 == 0)
            assert_true(usi_gait_choose(&g, &s, i / 1733 % 3 ? USI_GAIT_WAVE : USI_GAIT_TRIPOD,
                                        i / 1733 % 3 == 2 ? 4 : 0));
        int32_t kind = s.kind;
        usi_gait_step(&g, &s, body, STEP, q);
        n_change += s.kind != kind;
        feet_of(&g, q, foot);
        for (int k = 0; k < 3 * g.n_leg; k++) {
            // 2 m/s: a step of a quarter of a metre in 0.4 s begins and ends at rest. A foot that fell from
            // its lift would be 30 times as fast.
            double moved = fabs(foot[k / 3][k % 3] - old[k / 3][k % 3]);
            if (!(moved < 2 * STEP)) fail_msg("foot %d jumps by %g m", k / 3, moved);
        }
        memcpy(old, foot, sizeof foot);
    }
    assert_true(n_change > 10);
}

static void joint_angles_never_jump(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = stand(&g);
    double q[USI_GAIT_LEGS][3], last[USI_GAIT_LEGS][3], body[3] = {0, 0, 0};
    usi_gait_step(&g, &s, body, STEP, last);
    for (int i = 0; i < 20000; i++) {
        // Another velocity all of a sudden, now and then in the middle of a swing.
        if (i % 137 == 0) {
            body[0] = 0.2 * random_number();
            body[1] = 0.1 * random_number();
            body[2] = 0.5 * random_number();
        }
        if (i % 411 == 0) memset(body, 0, sizeof body);
        usi_gait_step(&g, &s, body, STEP, q);
        for (int k = 0; k < 3 * g.n_leg; k++) {
            // 20 rad/s: what a swing may need that is told to go elsewhere when half of its time is over; a
            // jump of a centimetre is more.
            assert_true(fabs(q[k / 3][k % 3] - last[k / 3][k % 3]) < 20 * STEP);
        }
        memcpy(last, q, sizeof q);
    }
}

static void at_rest_the_feet_go_home_and_then_nothing_moves(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = stand(&g);
    const double body[3] = {0.15, 0.05, -0.2}, none[3] = {0, 0, 0};
    double q[USI_GAIT_LEGS][3], last[USI_GAIT_LEGS][3], foot[USI_GAIT_LEGS][3];
    for (int i = 0; i < 2345; i++)
        usi_gait_step(&g, &s, body, STEP, q);
    for (int i = 0; i < 2000; i++)
        usi_gait_step(&g, &s, none, STEP, q);
    memcpy(last, q, sizeof q);
    feet_of(&g, q, foot);
    for (int k = 0; k < g.n_leg; k++) {
        assert_true(hypot(foot[k][0] - g.leg[k].neutral[0], foot[k][1] - g.leg[k].neutral[1]) < 1e-3);
        assert_true(fabs(foot[k][2] - g.ground) < 1e-12);
    }
    for (int i = 0; i < 1000; i++)
        usi_gait_step(&g, &s, none, STEP, q);
    assert_memory_equal(q, last, sizeof q);
}

static void a_speed_for_which_the_legs_are_too_short_is_reduced(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = stand(&g);
    const double body[3] = {3, 0, 0};
    double q[USI_GAIT_LEGS][3], odom[3] = {0, 0, 0}, v[3];
    for (int i = 0; i < 3000; i++) {
        usi_gait_step(&g, &s, body, STEP, q);
        usi_gait_to_body(&g, &s, (const double(*)[3])q, STEP, v);
        usi_odometry_move(odom, v, STEP);
        assert_int_equal(s.is_limited, 1);
        for (int k = 0; k < 3 * g.n_leg; k++) {
            const usi_leg *l = &g.leg[k / 3];
            assert_true(q[k / 3][k % 3] >= l->lower[k % 3] && q[k / 3][k % 3] <= l->upper[k % 3]);
        }
    }
    // It still walks straight on, as fast as it can: a foot that stands 0.23 m beside its hip comes at most
    // 0.33 m before and behind it with a leg of 0.45 m, and has 0.6 s for the way between, which is less
    // than 1.1 m/s.
    assert_true(odom[0] > 1 && odom[0] < 3.3);
    // Aside by no more than the odometry is off where feet touch down within a tick.
    assert_true(fabs(odom[1]) < 1e-4);
}

static void odometry_of_the_feet_is_the_motion_of_the_body(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = stand(&g);
    const double body[3] = {0.12, 0.03, 0.25};
    double q[USI_GAIT_LEGS][3], X[3] = {0, 0, 0}, odom[3] = {0, 0, 0}, v[3];
    for (int i = 0; i < 5000; i++) {
        usi_gait_step(&g, &s, body, STEP, q);
        usi_odometry_move(X, body, STEP);
        usi_gait_to_body(&g, &s, (const double(*)[3])q, STEP, v);
        usi_odometry_move(odom, v, STEP);
    }
    // Feet that touch down or lift off within a tick are counted for all of it: a few such ticks a second,
    // each off by little, for at that moment a foot is nearly at rest over the ground.
    for (int k = 0; k < 3; k++)
        assert_true(fabs(odom[k] - X[k]) < 2e-3);
}

static void a_body_that_lies_low_is_raised_slowly(void **state) {
    (void)state;
    usi_gait g = make_gait();
    usi_gait_state s = {0};
    double q[USI_GAIT_LEGS][3], foot[USI_GAIT_LEGS][3], last = 0;
    for (int i = 0; i < g.n_leg; i++) {
        double at[3] = {g.leg[i].neutral[0], g.leg[i].neutral[1], -0.08};
        assert_true(usi_leg_reach(&g.leg[i], at, q[i]));
    }
    usi_gait_start(&g, &s, (const double(*)[3])q);
    last = -0.08;
    const double none[3] = {0, 0, 0};
    for (int i = 0; i < 1500; i++) {
        usi_gait_step(&g, &s, none, STEP, q);
        feet_of(&g, q, foot);
        assert_true(foot[0][2] <= last + 1e-12 && foot[0][2] > last - 2e-4);
        last = foot[0][2];
    }
    assert_true(fabs(last - g.ground) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leg_at_zero_stretches_out_level_and_hangs_its_foot),
        cmocka_unit_test(inverse_kinematics_undoes_forward_kinematics),
        cmocka_unit_test(a_foot_out_of_reach_is_stretched_for_and_told),
        cmocka_unit_test(neighbours_belong_to_different_tripods),
        cmocka_unit_test(three_feet_always_stand_and_each_one_swings),
        cmocka_unit_test(feet_that_stand_do_not_move_over_the_ground),
        cmocka_unit_test(in_a_wave_one_foot_swings_at_a_time_and_the_rest_carry_the_body),
        cmocka_unit_test(a_gait_that_cannot_carry_is_refused),
        cmocka_unit_test(feet_do_not_jump_when_the_gait_changes),
        cmocka_unit_test(joint_angles_never_jump),
        cmocka_unit_test(at_rest_the_feet_go_home_and_then_nothing_moves),
        cmocka_unit_test(a_speed_for_which_the_legs_are_too_short_is_reduced),
        cmocka_unit_test(odometry_of_the_feet_is_the_motion_of_the_body),
        cmocka_unit_test(a_body_that_lies_low_is_raised_slowly),
    };
    return cmocka_run_group_tests_name("gait", tests, NULL, NULL);
}

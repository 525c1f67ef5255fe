// Wheels and bodies: analytic cases of each kind of locomotion, there and back, at the limits of the
// steering; dead reckoning and pursuit.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/locomotion.h"
#include "kincontrol/odometry.h"

static const double PI = 3.14159265358979323846;

// Closed formulas on both sides, of numbers around 1: what is left is rounding, some 1e-15.
static const double EXACT = 1e-12;

static void near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance)) fail_msg("%.17g rather than %.17g", got, want);
}

static double uniform(uint64_t stream, uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(11, stream, i);
}

// Four wheels at (+-0.4, +-0.36), radius 0.18: front left, front right, rear left, rear right.
static usi_locomotion rover(usi_locomotion_kind kind) {
    usi_locomotion l = {.kind = kind, .n_wheel = 4, .track_scale = 1};
    for (int i = 0; i < 4; i++) {
        l.wheel[i] = (usi_loco_wheel){
            .x = i < 2 ? 0.4 : -0.4, .y = i % 2 ? -0.36 : 0.36, .radius = 0.18, .sign = 1, .steer_sign = 1};
        l.wheel[i].steer_lower = -PI / 2;
        l.wheel[i].steer_upper = PI / 2;
        l.wheel[i].is_steered =
            kind == USI_LOCOMOTION_ALL_WHEEL || (kind == USI_LOCOMOTION_ACKERMANN && i < 2);
    }
    return l;
}

static const double ZERO[USI_LOCOMOTION_WHEELS] = {0};

static usi_loco_command go(const usi_locomotion *l, double vx, double vy, double wz) {
    usi_loco_command c;
    const double body[3] = {vx, vy, wz};
    usi_loco_to_wheels(l, body, ZERO, ZERO, &c);
    return c;
}

// ---------------------------------------------------------------- to the wheels

static void straight_ahead_every_wheel_rolls_alike_and_stands_straight(void **state) {
    (void)state;
    for (int kind = 0; kind <= USI_LOCOMOTION_ALL_WHEEL; kind++) {
        usi_locomotion l = rover((usi_locomotion_kind)kind);
        for (int k = 0; k < 4; k++) {
            double v = 0.6 * k - 0.9;
            usi_loco_command c = go(&l, v, 0, 0);
            for (int i = 0; i < 4; i++) {
                near(c.speed[i], v / 0.18, EXACT);
                near(c.steer[i], 0, EXACT);
            }
            assert_false(c.ignored_side || c.is_limited);
        }
    }
}

static void
on_an_arc_each_wheel_stands_square_to_its_own_radius_and_rolls_as_far_as_its_circle_asks(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    const double radii[] = {5, -5, 1.3, 20, -1.1};
    for (int k = 0; k < 5; k++) {
        double R = radii[k], v = 0.5, w = v / R;
        usi_loco_command c = go(&l, v, 0, w);
        for (int i = 0; i < 4; i++) {
            double x = l.wheel[i].x, y = l.wheel[i].y;
            near(c.steer[i], atan(x / (R - y)), EXACT);
            near(c.speed[i], hypot(R - y, x) * fabs(w) / 0.18, EXACT);
        }
    }
}

static void the_turning_centre_is_one_point_wherever_it_lies(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    for (uint64_t k = 0; k < 1000; k++) {
        double vx = uniform(1, k, -1, 1), vy = uniform(2, k, -1, 1), wz = uniform(3, k, -1, 1);
        usi_loco_command c = go(&l, vx, vy, wz);
        // C from the body: v + wz z x C = 0.
        double cx = -vy / wz, cy = vx / wz;
        for (int i = 0; i < 4; i++) {
            double rx = l.wheel[i].x - cx, ry = l.wheel[i].y - cy, rim = c.speed[i] * 0.18;
            // Its direction is square to the line to C, and its rim moves with wz times that line. Far
            // centres (small wz) lose digits with the length.
            near(rx * cos(c.steer[i]) + ry * sin(c.steer[i]), 0, EXACT * (1 + hypot(rx, ry)));
            near(fabs(rim), fabs(wz) * hypot(rx, ry), EXACT * (1 + hypot(rx, ry)));
        }
    }
}

static void on_the_spot_all_wheels_stand_on_one_circle(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    usi_loco_command c = go(&l, 0, 0, 0.7);
    double r = hypot(0.4, 0.36), angle = atan(0.4 / 0.36);
    // The left wheels roll backwards, the right ones forwards: the nearer solutions from straight ahead.
    const double steer[] = {-angle, angle, angle, -angle}, sign[] = {-1, 1, -1, 1};
    for (int i = 0; i < 4; i++) {
        near(c.steer[i], steer[i], EXACT);
        near(c.speed[i], sign[i] * 0.7 * r / 0.18, EXACT);
    }
}

static void sideways_all_wheels_turn_a_quarter(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    usi_loco_command c = go(&l, 0, 0.4, 0), d = go(&l, 0.3, -0.3, 0);
    for (int i = 0; i < 4; i++) {
        near(fabs(c.steer[i]), PI / 2, EXACT);
        near(c.speed[i] * sin(c.steer[i]), 0.4 / 0.18, EXACT);
        near(d.steer[i], -PI / 4, EXACT);
        near(d.speed[i], 0.3 * sqrt(2) / 0.18, EXACT);
    }
    assert_false(c.ignored_side || c.is_limited);
}

static void a_skid_robot_turns_by_its_sides_and_reports_that_it_cannot_go_sideways(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_SKID);
    l.track_scale = 1.5;
    usi_loco_command c = go(&l, 0.2, 0, 0.8);
    for (int i = 0; i < 4; i++) {
        near(c.speed[i], (0.2 - 0.8 * 1.5 * l.wheel[i].y) / 0.18, EXACT);
        near(c.steer[i], 0, 0);
    }
    assert_false(c.ignored_side);
    usi_loco_command d = go(&l, 0.2, 0.1, 0.8);
    assert_true(d.ignored_side);
    assert_memory_equal(c.speed, d.speed, sizeof c.speed);
}

static void a_car_turns_about_the_line_of_its_rear_wheels(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ACKERMANN);
    // The base is 0.4 m before the rear wheels: the middle of the axle goes with R = v / w on its own circle.
    double v = 0.6, w = 0.2, R = v / w;
    usi_loco_command c = go(&l, v, 0, w);
    for (int i = 0; i < 4; i++) {
        double x = l.wheel[i].x + 0.4, y = l.wheel[i].y;
        near(c.steer[i], i < 2 ? atan(x / (R - y)) : 0, EXACT);
        near(c.speed[i], hypot(R - y, x) * w / 0.18, EXACT);
    }
    // That the base then moves sideways is no wish of anybody's; asking for another sideways velocity is.
    assert_false(c.ignored_side || c.is_limited);
    assert_false(go(&l, v, 0.4 * w, w).ignored_side);
    assert_true(go(&l, v, 0.1, w).ignored_side);
    assert_true(go(&l, v, 0.1, 0).ignored_side);
}

static void a_car_backs_up_with_the_same_steering_and_wheels_that_roll_backwards(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ACKERMANN);
    usi_loco_command c = go(&l, 0.6, 0, 0.2), d = go(&l, -0.6, 0, -0.2);
    for (int i = 0; i < 4; i++) {
        near(d.steer[i], c.steer[i], EXACT);
        near(d.speed[i], -c.speed[i], EXACT);
    }
}

static void joints_that_turn_the_other_way_get_the_other_sign(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL), m = l;
    for (int i = 1; i < 4; i += 2)
        m.wheel[i].sign = -1;
    for (int i = 2; i < 4; i++)
        m.wheel[i].steer_sign = -1;
    usi_loco_command c = go(&l, 0.3, 0.1, 0.4), d = go(&m, 0.3, 0.1, 0.4);
    for (int i = 0; i < 4; i++) {
        near(d.speed[i], i % 2 ? -c.speed[i] : c.speed[i], 0);
        near(d.steer[i], i < 2 ? c.steer[i] : -c.steer[i], 0);
    }
    double body[3];
    usi_loco_to_body(&m, d.speed, d.steer, body);
    near(body[0], 0.3, EXACT);
    near(body[1], 0.1, EXACT);
    near(body[2], 0.4, EXACT);
}

static void at_standstill_the_wheels_keep_the_angles_that_were_commanded(void **state) {
    (void)state;
    const double body[3] = {0, 0, 0}, now[4] = {0.1, 0.2, 0.3, 0.4}, last[4] = {0.5, -0.5, 0.6, -0.6};
    for (int kind = USI_LOCOMOTION_ACKERMANN; kind <= USI_LOCOMOTION_ALL_WHEEL; kind++) {
        usi_locomotion l = rover((usi_locomotion_kind)kind);
        usi_loco_command c;
        usi_loco_to_wheels(&l, body, now, last, &c);
        for (int i = 0; i < 4; i++) {
            near(c.speed[i], 0, 0);
            near(c.steer[i], l.wheel[i].is_steered ? last[i] : 0, 0);
        }
    }
    // A wheel at the turning centre stands still while the others roll.
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    const double about[3] = {0.36 * 0.5, -0.4 * 0.5, 0.5};
    usi_loco_command c;
    usi_loco_to_wheels(&l, about, now, last, &c);
    near(c.speed[0], 0, 0);
    near(c.steer[0], last[0], 0);
    near(fabs(c.speed[3]), 0.5 * hypot(0.8, 0.72) / 0.18, EXACT);
}

// ---------------------------------------------------------------- steering limits

static void of_the_two_angles_the_nearer_one_that_the_joint_reaches_is_taken(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    const double body[3] = {-0.5, 0.1, 0}, want = -atan2(0.1, 0.5);
    usi_loco_command c;
    usi_loco_to_wheels(&l, body, ZERO, ZERO, &c);
    for (int i = 0; i < 4; i++) {
        near(c.steer[i], want, EXACT);
        near(c.speed[i], -hypot(0.5, 0.1) / 0.18, EXACT);
    }
    // Joints that turn for ever keep to where they are, however many turns that is.
    for (int i = 0; i < 4; i++) {
        l.wheel[i].steer_lower = -INFINITY;
        l.wheel[i].steer_upper = INFINITY;
    }
    const double now[4] = {PI, 5 * PI + 0.1, -4 * PI, -3 * PI};
    usi_loco_to_wheels(&l, body, now, ZERO, &c);
    for (int i = 0; i < 4; i++) {
        near(c.steer[i], now[i] - (i == 1 ? 0.1 : 0) + want, 1e-11);
        near(fabs(c.speed[i]), hypot(0.5, 0.1) / 0.18, EXACT);
    }
    near(c.speed[0], hypot(0.5, 0.1) / 0.18, EXACT);
    near(c.speed[2], -hypot(0.5, 0.1) / 0.18, EXACT);
}

static void
no_command_leaves_the_limits_and_beyond_them_the_wheel_rolls_as_far_as_it_points_there(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    for (int i = 0; i < 4; i++) {
        l.wheel[i].steer_lower = -0.5;
        l.wheel[i].steer_upper = 0.7;
    }
    int n_limited = 0;
    for (uint64_t k = 0; k < 2000; k++) {
        double vx = uniform(4, k, -1, 1), vy = uniform(5, k, -1, 1), wz = uniform(6, k, -1, 1);
        usi_loco_command c = go(&l, vx, vy, wz);
        bool is_beyond = false;
        for (int i = 0; i < 4; i++) {
            assert_true(c.steer[i] >= -0.5 && c.steer[i] <= 0.7);
            double ux = vx - wz * l.wheel[i].y, uy = vy + wz * l.wheel[i].x;
            near(c.speed[i] * 0.18, ux * cos(c.steer[i]) + uy * sin(c.steer[i]), EXACT);
            double angle = remainder(atan2(uy, ux), PI);
            if (angle < -0.5 || angle > 0.7) {
                is_beyond = true;
                assert_true(c.steer[i] == -0.5 || c.steer[i] == 0.7);
            }
        }
        assert_int_equal(c.is_limited, is_beyond);
        n_limited += is_beyond;
    }
    assert_true(n_limited > 100 && n_limited < 2000);
}

static void a_quarter_turn_that_was_rounded_down_in_the_file_still_goes_sideways(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    for (int i = 0; i < 4; i++) {
        l.wheel[i].steer_lower = -1.570796;
        l.wheel[i].steer_upper = 1.570796;
    }
    usi_loco_command c = go(&l, 0, 0.4, 0);
    assert_false(c.is_limited);
    for (int i = 0; i < 4; i++)
        near(c.speed[i] * sin(c.steer[i]), 0.4 / 0.18, 1e-9);
}

static void a_car_turns_no_sharper_than_its_inner_wheel_steers_and_not_on_the_spot(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ACKERMANN);
    for (int i = 0; i < 2; i++) {
        l.wheel[i].steer_lower = -0.5;
        l.wheel[i].steer_upper = 0.5;
    }
    // The inner wheel at its limit: R = L / tan + y.
    double sharpest = 0.8 / tan(0.5) + 0.36;
    for (int k = 0; k < 4; k++) {
        double side = k % 2 ? 1 : -1, way = k < 2 ? 1 : -1;
        usi_loco_command c = go(&l, 0.5 * way, 0, 2 * side);
        assert_true(c.is_limited);
        double body[3];
        usi_loco_to_body(&l, c.speed, c.steer, body);
        near(body[0], 0.5 * way, EXACT);
        near(body[2], side * 0.5 / sharpest, EXACT);
        near(fmax(fabs(c.steer[0]), fabs(c.steer[1])), 0.5, EXACT);
        // One that it can do stays as it is.
        c = go(&l, 0.5 * way, 0, 0.99 * side * 0.5 / sharpest);
        assert_false(c.is_limited);
    }
    // A single steered wheel on the left: closer to the centre of a turn to the left, farther from that to
    // the right.
    l.wheel[1].is_steered = false;
    l.wheel[1].x = -0.4;
    for (int side = -1; side < 2; side += 2) {
        usi_loco_command d = go(&l, 0.5, 0, 2 * side);
        double body[3];
        usi_loco_to_body(&l, d.speed, d.steer, body);
        near(body[2], side * 0.5 / (0.8 / tan(0.5) + side * 0.36), EXACT);
        near(d.steer[0], side * 0.5, EXACT);
    }
    usi_loco_command c = go(&l, 0, 0, 1);
    assert_true(c.is_limited);
    for (int i = 0; i < 4; i++)
        near(c.speed[i], 0, 0);
    // With steering of a quarter turn it can.
    l = rover(USI_LOCOMOTION_ACKERMANN);
    c = go(&l, 0, 0, 1);
    assert_false(c.is_limited);
    near(c.speed[2], -0.36 / 0.18, EXACT);
    near(c.speed[3], 0.36 / 0.18, EXACT);
}

static void rear_steering_has_the_same_limits_mirrored(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ACKERMANN), m = l;
    for (int i = 0; i < 4; i++) {
        l.wheel[i].steer_lower = m.wheel[i].steer_lower = -0.3;
        l.wheel[i].steer_upper = m.wheel[i].steer_upper = 0.6;
        m.wheel[i].is_steered = !l.wheel[i].is_steered;
    }
    // Forwards with front steering is backwards with rear steering, seen from behind.
    for (uint64_t k = 0; k < 200; k++) {
        double vx = uniform(7, k, -1, 1), wz = uniform(8, k, -2, 2);
        usi_loco_command c = go(&l, vx, 0, wz), d = go(&m, -vx, 0, wz);
        // Wheel i of the one is the wheel diagonally across of the other.
        for (int i = 0; i < 4; i++) {
            near(d.steer[3 - i], c.steer[i], EXACT);
            near(d.speed[3 - i], -c.speed[i], EXACT);
        }
        assert_int_equal(c.is_limited, d.is_limited);
    }
}

static void drives_slow_down_by_the_cosine_of_the_wheel_that_is_farthest_off(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_ALL_WHEEL);
    const double body[3] = {0.5, 0, 0}, now[4] = {0.2, -1.0, 0, 0.4};
    const double amount[] = {0, 0.5, 1};
    for (int k = 0; k < 3; k++) {
        l.slow_down = amount[k];
        usi_loco_command c;
        usi_loco_to_wheels(&l, body, now, ZERO, &c);
        for (int i = 0; i < 4; i++) {
            near(c.speed[i], 0.5 / 0.18 * (1 - amount[k] * (1 - cos(1.0))), EXACT);
            near(c.steer[i], 0, EXACT);
        }
    }
}

// ---------------------------------------------------------------- to the body

static void there_and_back_ten_thousand_motions_come_out_as_they_went_in(void **state) {
    (void)state;
    usi_locomotion all = rover(USI_LOCOMOTION_ALL_WHEEL), car = rover(USI_LOCOMOTION_ACKERMANN),
                   skid = rover(USI_LOCOMOTION_SKID);
    skid.track_scale = 1.4;
    for (int i = 0; i < 4; i++)
        skid.wheel[i].x += 0.1;  // a base that is not in the middle
    for (uint64_t k = 0; k < 10000; k++) {
        const double body[3] = {uniform(9, k, -2, 2), uniform(10, k, -2, 2), uniform(11, k, -3, 3)};
        double now[4], out[3];
        for (uint64_t i = 0; i < 4; i++)
            now[i] = uniform(12 + i, k, -PI / 2, PI / 2);
        usi_loco_command c;
        usi_loco_to_wheels(&all, body, now, now, &c);
        usi_loco_to_body(&all, c.speed, c.steer, out);
        for (int i = 0; i < 3; i++)
            near(out[i], body[i], EXACT);
        // The others do as much of it as they can: speed and turn.
        usi_loco_to_wheels(&car, body, now, now, &c);
        usi_loco_to_body(&car, c.speed, c.steer, out);
        near(out[0], body[0], EXACT);
        near(out[1], 0.4 * body[2], EXACT);
        near(out[2], body[2], EXACT);
        usi_loco_to_wheels(&skid, body, now, now, &c);
        usi_loco_to_body(&skid, c.speed, c.steer, out);
        near(out[0], body[0], EXACT);
        near(out[1], -0.1 * body[2], EXACT);
        near(out[2], body[2], EXACT);
    }
}

static void wheels_that_contradict_each_other_are_averaged(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_SKID);
    // Speeds of left and right that differ from front to rear: the mean of each side counts.
    const double speed[4] = {1.0, 3.0, 1.4, 2.6};
    double body[3];
    usi_loco_to_body(&l, speed, ZERO, body);
    near(body[0], 0.18 * 2.0, EXACT);
    near(body[1], 0, 0);
    near(body[2], 0.18 * (2.8 - 1.2) / 0.72, EXACT);
    // No other motion fits the measured wheels of an all-wheel rover better.
    usi_locomotion m = rover(USI_LOCOMOTION_ALL_WHEEL);
    const double steer[4] = {0.3, 0.1, -0.2, 0.05};
    double best = 0;
    usi_loco_to_body(&m, speed, steer, body);
    for (int k = 0; k < 7; k++) {
        double try[3] = {body[0], body[1], body[2]}, sum = 0;
        if (k > 0) try[(k - 1) / 2] += k % 2 ? 1e-3 : -1e-3;
        for (int i = 0; i < 4; i++) {
            double ux = try[0] - try[2] * m.wheel[i].y, uy = try[1] + try[2] * m.wheel[i].x,
                   c = cos(steer[i]), s = sin(steer[i]);
            sum += pow(c * ux + s * uy - 0.18 * speed[i], 2) + pow(c * uy - s * ux, 2);
        }
        if (k == 0) best = sum;
        assert_true(sum >= best);
    }
}

static void what_the_wheels_do_not_tell_is_zero(void **state) {
    (void)state;
    usi_locomotion l = rover(USI_LOCOMOTION_SKID);
    l.wheel[1] = l.wheel[0];
    l.n_wheel = 2;  // both on one side
    const double speed[4] = {1, 3, 0, 0};
    double body[3];
    usi_loco_to_body(&l, speed, ZERO, body);
    assert_true(isfinite(body[0]) && isfinite(body[2]));
    near(body[0] - 0.36 * body[2], 0.36, EXACT);
    l = rover(USI_LOCOMOTION_ALL_WHEEL);
    l.n_wheel = 1;
    usi_loco_to_body(&l, speed, ZERO, body);
    near(body[0], 0.18, EXACT);
    near(body[1], 0, EXACT);
    near(body[2], 0, 0);
    l.n_wheel = 0;
    usi_loco_to_body(&l, speed, ZERO, body);
    for (int i = 0; i < 3; i++)
        near(body[i], 0, 0);
}

// ---------------------------------------------------------------- dead reckoning

static void an_arc_closes_after_a_full_turn_in_one_step_or_in_many(void **state) {
    (void)state;
    const double body[3] = {0.7, -0.2, 0.9};
    const int steps[] = {1, 3, 1000};
    for (int k = 0; k < 3; k++) {
        double pose[3] = {1, -2, 0.4};
        for (int i = 0; i < steps[k]; i++)
            usi_odometry_move(pose, body, 2 * PI / 0.9 / steps[k]);
        // 1000 roundings of numbers around 1.
        near(pose[0], 1, 1e-12);
        near(pose[1], -2, 1e-12);
        near(pose[2], 0.4, 1e-12);
    }
}

static void half_a_turn_ends_across_the_circle(void **state) {
    (void)state;
    const double body[3] = {0.5, 0, 0.25};  // radius 2, to the left
    double pose[3] = {0, 0, PI / 2};
    usi_odometry_move(pose, body, PI / 0.25);
    near(pose[0], -4, EXACT);
    near(pose[1], 0, EXACT);
    near(fabs(pose[2]), PI / 2, EXACT);
}

static void straight_ahead_and_a_hair_of_turn_agree(void **state) {
    (void)state;
    // On both sides of the angle where the series takes over the formulas agree with the arc in extended
    // precision.
    const double turn[] = {0, 1e-9, 0.99e-4, 1.01e-4, -0.99e-4, -1.01e-4, 1e-3};
    for (int k = 0; k < 7; k++) {
        const double body[3] = {3, 2, turn[k]};
        double pose[3] = {0, 0, 0};
        usi_odometry_move(pose, body, 1);
        long double a = turn[k], s = a == 0 ? 1 : sinl(a) / a,
                    c = a == 0 ? 0 : 2 * sinl(a / 2) * sinl(a / 2) / a;
        near(pose[0], (double)(s * 3 - c * 2), 2e-15);
        near(pose[1], (double)(c * 3 + s * 2), 2e-15);
        near(pose[2], turn[k], 0);
    }
}

static void what_lies_between_two_poses_leads_from_one_to_the_other(void **state) {
    (void)state;
    for (uint64_t k = 0; k < 1000; k++) {
        double a[3], b[3], step[3], there[3];
        for (uint64_t i = 0; i < 3; i++) {
            a[i] = uniform(20 + i, k, -3, 3);
            b[i] = uniform(24 + i, k, -3, 3);
        }
        usi_odometry_between(a, b, step);
        usi_odometry_compose(a, step, there);
        near(there[0], b[0], EXACT);
        near(there[1], b[1], EXACT);
        near(remainder(there[2] - b[2], 2 * PI), 0, EXACT);
        assert_true(fabs(step[2]) <= PI && fabs(there[2]) <= PI);
        // The result may be one of the arguments.
        usi_odometry_compose(a, step, a);
        assert_memory_equal(a, there, sizeof a);
    }
}

// ---------------------------------------------------------------- pursuit

static void pursuit_arrives_from_anywhere_within_its_limits(void **state) {
    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        bool can_turn = k % 2;
        double pose[3] = {uniform(30, k, -5, 5), uniform(31, k, -5, 5), uniform(32, k, -PI, PI)}, body[3];
        double distance = hypot(pose[0], pose[1]);
        int tick = 0;
        for (; tick < 20000 && distance > 0.01; tick++) {
            usi_pursue(pose, 0, 0, 0.5, 0.8, 0.2, can_turn, body);
            assert_true(body[0] >= 0 && body[0] <= 0.5 && body[1] == 0 && fabs(body[2]) <= 0.8 + EXACT);
            assert_true(body[0] <= sqrt(2 * 0.2 * distance) + EXACT);
            usi_odometry_move(pose, body, 0.01);
            distance = hypot(pose[0], pose[1]);
        }
        if (distance > 0.01) fail_msg("start %d ends %g m away", (int)k, distance);
    }
}

static void a_point_behind_is_turned_to_on_the_spot_by_those_who_can(void **state) {
    (void)state;
    const double pose[3] = {0, 0, 0};
    double body[3];
    usi_pursue(pose, -1, -0.2, 0.5, 0.8, 0, true, body);
    near(body[0], 0, 0);
    near(body[2], -0.8, 0);
    usi_pursue(pose, -1, -0.2, 0.5, 0.8, 0, false, body);
    assert_true(body[0] > 0 && body[2] < 0);
    usi_pursue(pose, 3, 0, 0.5, 0.8, 0, true, body);
    near(body[0], 0.5, 0);
    near(body[2], 0, 0);
    usi_pursue(pose, 0, 0, 0.5, 0.8, 0, true, body);
    near(body[0], 0, 0);
    near(body[2], 0, 0);
    // The arc passes through the point: it lies on the circle of that curvature.
    usi_pursue(pose, 1, 1, 0.5, 0, 0, true, body);
    near(body[2] / body[0], 1, EXACT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(straight_ahead_every_wheel_rolls_alike_and_stands_straight),
        cmocka_unit_test(
            on_an_arc_each_wheel_stands_square_to_its_own_radius_and_rolls_as_far_as_its_circle_asks),
        cmocka_unit_test(the_turning_centre_is_one_point_wherever_it_lies),
        cmocka_unit_test(on_the_spot_all_wheels_stand_on_one_circle),
        cmocka_unit_test(sideways_all_wheels_turn_a_quarter),
        cmocka_unit_test(a_skid_robot_turns_by_its_sides_and_reports_that_it_cannot_go_sideways),
        cmocka_unit_test(a_car_turns_about_the_line_of_its_rear_wheels),
        cmocka_unit_test(a_car_backs_up_with_the_same_steering_and_wheels_that_roll_backwards),
        cmocka_unit_test(joints_that_turn_the_other_way_get_the_other_sign),
        cmocka_unit_test(at_standstill_the_wheels_keep_the_angles_that_were_commanded),
        cmocka_unit_test(of_the_two_angles_the_nearer_one_that_the_joint_reaches_is_taken),
        cmocka_unit_test(
            no_command_leaves_the_limits_and_beyond_them_the_wheel_rolls_as_far_as_it_points_there),
        cmocka_unit_test(a_quarter_turn_that_was_rounded_down_in_the_file_still_goes_sideways),
        cmocka_unit_test(a_car_turns_no_sharper_than_its_inner_wheel_steers_and_not_on_the_spot),
        cmocka_unit_test(rear_steering_has_the_same_limits_mirrored),
        cmocka_unit_test(drives_slow_down_by_the_cosine_of_the_wheel_that_is_farthest_off),
        cmocka_unit_test(there_and_back_ten_thousand_motions_come_out_as_they_went_in),
        cmocka_unit_test(wheels_that_contradict_each_other_are_averaged),
        cmocka_unit_test(what_the_wheels_do_not_tell_is_zero),
        cmocka_unit_test(an_arc_closes_after_a_full_turn_in_one_step_or_in_many),
        cmocka_unit_test(half_a_turn_ends_across_the_circle),
        cmocka_unit_test(straight_ahead_and_a_hair_of_turn_agree),
        cmocka_unit_test(what_lies_between_two_poses_leads_from_one_to_the_other),
        cmocka_unit_test(pursuit_arrives_from_anywhere_within_its_limits),
        cmocka_unit_test(a_point_behind_is_turned_to_on_the_spot_by_those_who_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Vectors, quaternions, poses: identities that hold to rounding.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "understudy/base.h"
#include "understudy/math.h"

static const double PI = 3.14159265358979323846;
// A few roundings of numbers of size 1.
static const double TINY = 1e-14;

static double uniform(uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(11, 0, i);
}
static us_vec3 some_vec3(uint64_t i) {
    return us_vec3_make(uniform(3 * i, -2, 2), uniform(3 * i + 1, -2, 2), uniform(3 * i + 2, -2, 2));
}
static us_quat some_quat(uint64_t i) {
    us_quat q = {us_random_normal(1, 1, 4 * i), us_random_normal(1, 1, 4 * i + 1),
                 us_random_normal(1, 1, 4 * i + 2), us_random_normal(1, 1, 4 * i + 3)};
    return us_quat_normalize(q);
}
static us_pose some_pose(uint64_t i) { return (us_pose){some_quat(i), some_vec3(i)}; }

static double vec3_gap(us_vec3 a, us_vec3 b) { return us_vec3_norm(us_vec3_sub(a, b)); }
// q and -q are the same rotation.
static double quat_gap(us_quat a, us_quat b) {
    double minus = fabs(a.w - b.w) + fabs(a.x - b.x) + fabs(a.y - b.y) + fabs(a.z - b.z);
    double plus = fabs(a.w + b.w) + fabs(a.x + b.x) + fabs(a.y + b.y) + fabs(a.z + b.z);
    return fmin(minus, plus);
}
static void near_vec3(us_vec3 a, us_vec3 b, double tolerance) { assert_true(vec3_gap(a, b) <= tolerance); }
static void near_quat(us_quat a, us_quat b, double tolerance) { assert_true(quat_gap(a, b) <= tolerance); }

static void cross_products_are_perpendicular_and_right_handed(void **state) {
    (void)state;
    near_vec3(us_vec3_cross(us_vec3_make(1, 0, 0), us_vec3_make(0, 1, 0)), us_vec3_make(0, 0, 1), 0);
    near_vec3(us_vec3_cross(us_vec3_make(0, 1, 0), us_vec3_make(0, 0, 1)), us_vec3_make(1, 0, 0), 0);
    for (uint64_t i = 0; i < 100; i++) {
        us_vec3 a = some_vec3(i), b = some_vec3(i + 1000), c = us_vec3_cross(a, b);
        assert_true(fabs(us_vec3_dot(a, c)) < TINY * 10 && fabs(us_vec3_dot(b, c)) < TINY * 10);
        double dot = us_vec3_dot(a, b), lengths = us_vec3_dot(a, a) * us_vec3_dot(b, b);
        assert_true(fabs(us_vec3_dot(c, c) + dot * dot - lengths) < TINY * 100);
        near_vec3(us_vec3_add(us_vec3_sub(a, b), b), a, TINY);
        near_vec3(us_vec3_scale(-2, a), us_vec3_make(-2 * a.x, -2 * a.y, -2 * a.z), 0);
    }
    assert_true(us_vec3_norm(us_vec3_make(2, 3, 6)) == 7);
}

static void hamiltons_rules_hold(void **state) {
    (void)state;
    const us_quat i = {0, 1, 0, 0}, j = {0, 0, 1, 0}, k = {0, 0, 0, 1};
    const us_quat ij = us_quat_mul(i, j), jk = us_quat_mul(j, k), ki = us_quat_mul(k, i),
                  ii = us_quat_mul(i, i);
    assert_memory_equal(&ij, &k, sizeof k);
    assert_memory_equal(&jk, &i, sizeof i);
    assert_memory_equal(&ki, &j, sizeof j);
    assert_true(ii.w == -1 && ii.x == 0 && ii.y == 0 && ii.z == 0);
}

static void quaternions_form_a_group(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        us_quat a = some_quat(i), b = some_quat(i + 500), c = some_quat(i + 900);
        near_quat(us_quat_mul(us_quat_mul(a, b), c), us_quat_mul(a, us_quat_mul(b, c)), TINY);
        near_quat(us_quat_mul(a, us_quat_conj(a)), us_quat_identity(), TINY);
        near_quat(us_quat_mul(a, us_quat_identity()), a, 0);
        us_quat twice = {2 * a.w, 2 * a.x, 2 * a.y, 2 * a.z};
        near_quat(us_quat_normalize(twice), a, TINY);
    }
}

static void rotating_by_quaternion_and_by_matrix_is_the_same(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        us_quat a = some_quat(i), b = some_quat(i + 500);
        us_vec3 p = some_vec3(i);
        us_mat3 R = us_quat_matrix(a);
        near_vec3(us_quat_rotate(a, p), us_mat3_mul_vec(&R, p), TINY);
        near_vec3(us_quat_rotate(us_quat_mul(a, b), p), us_quat_rotate(a, us_quat_rotate(b, p)), TINY);
        assert_true(fabs(us_vec3_norm(us_quat_rotate(a, p)) - us_vec3_norm(p)) < TINY);
    }
}

static void a_quarter_turn_about_z_takes_x_to_y(void **state) {
    (void)state;
    us_quat q = us_quat_exp(us_vec3_make(0, 0, PI / 2));
    near_vec3(us_quat_rotate(q, us_vec3_make(1, 0, 0)), us_vec3_make(0, 1, 0), TINY);
    us_mat3 R = us_quat_matrix(q);
    const double want[9] = {0, -1, 0, 1, 0, 0, 0, 0, 1};
    for (int i = 0; i < 9; i++)
        assert_true(fabs(R.m[i] - want[i]) < TINY);
}

static void log_undoes_exp_up_to_a_half_turn(void **state) {
    (void)state;
    const double angles[] = {0,       1e-300, 1e-20, 1e-12, 9.9e-10, 1.1e-9, 1e-6,    0.99e-4,
                             1.01e-4, 1e-3,   0.1,   1,     2,       3,      3.14159, 3.1415926535};
    for (uint64_t i = 0; i < 100; i++) {
        us_vec3 d = some_vec3(i), u = us_vec3_scale(1 / us_vec3_norm(d), d);
        for (size_t k = 0; k < sizeof angles / sizeof *angles; k++) {
            us_vec3 r = us_vec3_scale(angles[k], u);
            us_quat q = us_quat_exp(r);
            assert_true(fabs(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z - 1) < TINY);
            near_vec3(us_quat_log(q), r, 1e-15 + 4e-15 * angles[k]);
            // The other quaternion of the same rotation has the same rotation vector.
            us_quat minus = {-q.w, -q.x, -q.y, -q.z};
            near_vec3(us_quat_log(minus), r, 1e-15 + 4e-15 * angles[k]);
        }
    }
}

static void exp_undoes_log_for_every_rotation(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 500; i++) {
        us_quat q = some_quat(i);
        us_vec3 r = us_quat_log(q);
        assert_true(us_vec3_norm(r) <= PI * (1 + TINY));
        near_quat(us_quat_exp(r), q, TINY);
    }
    const us_quat half_turns[] = {{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {0, -1, 0, 0}};
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(us_vec3_norm(us_quat_log(half_turns[i])) - PI) < TINY);
        near_quat(us_quat_exp(us_quat_log(half_turns[i])), half_turns[i], TINY);
    }
}

static void exp_has_no_step_where_the_series_takes_over(void **state) {
    (void)state;
    const double n = 1e-4;
    us_quat below = us_quat_exp(us_vec3_make(nextafter(n, 0), 0, 0)),
            above = us_quat_exp(us_vec3_make(n, 0, 0));
    assert_true(fabs(below.w - above.w) < 2.3e-16 && fabs(below.x - above.x) < 1e-19);
    assert_true(fabs(below.x - sin(0.5 * n)) < 1e-19);
}

static void rpy_turns_about_the_fixed_axes_x_then_y_then_z(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        double roll = uniform(i, -3, 3), pitch = uniform(i + 1, -3, 3), yaw = uniform(i + 2, -3, 3);
        double cr = cos(roll), sr = sin(roll), cp = cos(pitch), sp = sin(pitch), cy = cos(yaw), sy = sin(yaw);
        // Rz Ry Rx, multiplied out.
        const double want[9] = {cy * cp,
                                cy * sp * sr - sy * cr,
                                cy * sp * cr + sy * sr,
                                sy * cp,
                                sy * sp * sr + cy * cr,
                                sy * sp * cr - cy * sr,
                                -sp,
                                cp * sr,
                                cp * cr};
        us_mat3 R = us_quat_matrix(us_quat_from_rpy(roll, pitch, yaw));
        for (int k = 0; k < 9; k++)
            assert_true(fabs(R.m[k] - want[k]) < TINY);
    }
    near_vec3(us_quat_rotate(us_quat_from_rpy(PI / 2, 0, PI / 2), us_vec3_make(0, 1, 0)),
              us_vec3_make(0, 0, 1), TINY);
}

static void a_quaternion_comes_back_from_its_matrix_in_all_four_branches(void **state) {
    (void)state;
    int seen[4] = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        us_quat q = some_quat(i);
        const double size[4] = {fabs(q.w), fabs(q.x), fabs(q.y), fabs(q.z)};
        int largest = 0;
        for (int k = 1; k < 4; k++)
            largest = size[k] > size[largest] ? k : largest;
        seen[largest]++;
        near_quat(us_quat_from_matrix(us_quat_matrix(q)), q, 2 * TINY);
    }
    for (int k = 0; k < 4; k++)
        assert_true(seen[k] > 100);
    const us_quat corners[] = {{1, 0, 0, 0},         {0, 1, 0, 0},     {0, 0, 1, 0},     {0, 0, 0, 1},
                               {0.5, 0.5, 0.5, 0.5}, {0, 0.6, 0.8, 0}, {0, 0, 0.6, 0.8}, {0, 0.8, 0, 0.6}};
    for (int k = 0; k < 8; k++)
        near_quat(us_quat_from_matrix(us_quat_matrix(corners[k])), corners[k], TINY);
}

static void from_z_carries_z_onto_any_direction(void **state) {
    (void)state;
    const us_vec3 z = {0, 0, 1};
    for (uint64_t i = 0; i < 300; i++) {
        us_vec3 d = some_vec3(i), u = us_vec3_scale(1 / us_vec3_norm(d), d);
        us_quat q = us_quat_from_z(u);
        near_vec3(us_quat_rotate(q, z), u, TINY);
        // The shortest way: the angle is that between z and u, and the axis lies in the x-y plane.
        assert_true(fabs(us_vec3_norm(us_quat_log(q)) - acos(u.z)) < 1e-7);
        assert_true(q.z == 0);
    }
    near_quat(us_quat_from_z(z), us_quat_identity(), 0);
    near_vec3(us_quat_rotate(us_quat_from_z(us_vec3_make(0, 0, -1)), z), us_vec3_make(0, 0, -1), 0);
    near_quat(us_quat_from_z(us_vec3_make(0, 0, -1)), (us_quat){0, 1, 0, 0}, 0);
}

static void from_z_is_right_close_to_minus_z(void **state) {
    (void)state;
    const double tilts[] = {1e-3, 1e-5, 1e-6, 2e-6, 1e-7, 1e-8, 2e-12, 1e-12, 1e-16};
    for (size_t k = 0; k < sizeof tilts / sizeof *tilts; k++) {
        for (int turn = 0; turn < 16; turn++) {
            us_vec3 d = us_vec3_make(sin(tilts[k]) * cos(turn), sin(tilts[k]) * sin(turn), -cos(tilts[k]));
            us_quat q = us_quat_from_z(d);
            assert_true(fabs(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z - 1) < TINY);
            near_vec3(us_quat_rotate(q, us_vec3_make(0, 0, 1)), d, tilts[k] > 1.5e-12 ? TINY : 1.5e-12);
        }
    }
}

static void poses_form_a_group_and_frames_cancel(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        us_pose X_AB = some_pose(i), X_BC = some_pose(i + 300), X_CD = some_pose(i + 700);
        us_vec3 p = some_vec3(i + 50);
        us_pose X_AC = us_pose_mul(X_AB, X_BC);
        near_vec3(us_pose_point(X_AC, p), us_pose_point(X_AB, us_pose_point(X_BC, p)), 5 * TINY);
        us_pose left = us_pose_mul(X_AC, X_CD), right = us_pose_mul(X_AB, us_pose_mul(X_BC, X_CD));
        near_quat(left.q, right.q, TINY);
        near_vec3(left.p, right.p, 5 * TINY);
        us_pose one = us_pose_mul(X_AB, us_pose_inverse(X_AB));
        near_quat(one.q, us_quat_identity(), TINY);
        near_vec3(one.p, us_vec3_make(0, 0, 0), 5 * TINY);
        near_vec3(us_pose_point(us_pose_inverse(X_AB), us_pose_point(X_AB, p)), p, 5 * TINY);
        us_pose same = us_pose_mul(us_pose_identity(), X_AB);
        near_quat(same.q, X_AB.q, 0);
        near_vec3(same.p, X_AB.p, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_products_are_perpendicular_and_right_handed),
        cmocka_unit_test(hamiltons_rules_hold),
        cmocka_unit_test(quaternions_form_a_group),
        cmocka_unit_test(rotating_by_quaternion_and_by_matrix_is_the_same),
        cmocka_unit_test(a_quarter_turn_about_z_takes_x_to_y),
        cmocka_unit_test(log_undoes_exp_up_to_a_half_turn),
        cmocka_unit_test(exp_undoes_log_for_every_rotation),
        cmocka_unit_test(exp_has_no_step_where_the_series_takes_over),
        cmocka_unit_test(rpy_turns_about_the_fixed_axes_x_then_y_then_z),
        cmocka_unit_test(a_quaternion_comes_back_from_its_matrix_in_all_four_branches),
        cmocka_unit_test(from_z_carries_z_onto_any_direction),
        cmocka_unit_test(from_z_is_right_close_to_minus_z),
        cmocka_unit_test(poses_form_a_group_and_frames_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Four vectors and rotations at once: each lane does what the single ones do, and lanes do not mix.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "math/vec3x4.h"
#include "understudy/base.h"

// A few roundings of numbers of size 1.
static const double TINY = 1e-14;

static us_vec3 some_vec3(uint64_t i, double size) {
    return us_vec3_make(size * us_random_normal(5, 0, 3 * i), size * us_random_normal(5, 0, 3 * i + 1),
                        size * us_random_normal(5, 0, 3 * i + 2));
}
static us_quat some_quat(uint64_t i) {
    us_quat q = {us_random_normal(5, 1, 4 * i), us_random_normal(5, 1, 4 * i + 1),
                 us_random_normal(5, 1, 4 * i + 2), us_random_normal(5, 1, 4 * i + 3)};
    return us_quat_normalize(q);
}

static usi_vec3x4 four_of(const us_vec3 v[4]) {
    return usi_vec3x4_from(usi_v4_from(v[0]), usi_v4_from(v[1]), usi_v4_from(v[2]), usi_v4_from(v[3]), NULL);
}
static us_vec3 lane(usi_vec3x4 v, int l) { return us_vec3_make(v.x[l], v.y[l], v.z[l]); }
static usi_quatx4 quats_of(const us_quat q[4]) {
    return (usi_quatx4){{q[0].w, q[1].w, q[2].w, q[3].w},
                        {{q[0].x, q[1].x, q[2].x, q[3].x},
                         {q[0].y, q[1].y, q[2].y, q[3].y},
                         {q[0].z, q[1].z, q[2].z, q[3].z}}};
}

static void near_vec3(us_vec3 a, us_vec3 b, double tolerance) {
    assert_true(us_vec3_norm(us_vec3_sub(a, b)) <= tolerance);
}
static void near_quat(usi_quatx4 a, int l, us_quat b, double tolerance) {
    assert_true(fabs(a.w[l] - b.w) + fabs(a.v.x[l] - b.x) + fabs(a.v.y[l] - b.y) + fabs(a.v.z[l] - b.z) <=
                tolerance);
}

static void vectors_come_back_from_their_lanes_with_the_spare_one(void **state) {
    (void)state;
    usi_v4 v[4], w[4], spare;
    for (int i = 0; i < 4; i++)
        v[i] = (usi_v4){10 * i + 1, 10 * i + 2, 10 * i + 3, 10 * i + 4};
    usi_vec3x4 f = usi_vec3x4_from(v[0], v[1], v[2], v[3], &spare);
    for (int l = 0; l < 4; l++) {
        near_vec3(lane(f, l), usi_v4_vec3(v[l]), 0);
        assert_true(spare[l] == v[l][3]);
    }
    usi_vec3x4_to(f, spare, &w[0], &w[1], &w[2], &w[3]);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++)
            assert_true(w[i][j] == v[i][j]);
    }
}

static void products_are_those_of_each_lane(void **state) {
    (void)state;
    us_vec3 a[4], b[4], c[3][4];
    for (uint64_t l = 0; l < 4; l++) {
        a[l] = some_vec3(l, 1);
        b[l] = some_vec3(l + 10, 1);
        for (uint64_t k = 0; k < 3; k++)
            c[k][l] = some_vec3(20 + 4 * k + l, 1);
    }
    const usi_vec3x4 A = four_of(a), B = four_of(b), C[3] = {four_of(c[0]), four_of(c[1]), four_of(c[2])};
    usi_v4 dot = usi_vec3x4_dot(A, B);
    for (int l = 0; l < 4; l++) {
        us_vec3 sum =
            us_vec3_add(us_vec3_scale(a[l].x, c[0][l]),
                        us_vec3_add(us_vec3_scale(a[l].y, c[1][l]), us_vec3_scale(a[l].z, c[2][l])));
        assert_true(fabs(dot[l] - us_vec3_dot(a[l], b[l])) <= TINY);
        near_vec3(lane(usi_vec3x4_cross(A, B), l), us_vec3_cross(a[l], b[l]), TINY);
        near_vec3(lane(usi_vec3x4_sub(A, B), l), us_vec3_sub(a[l], b[l]), 0);
        near_vec3(lane(usi_vec3x4_columns(C, A), l), sum, TINY);
    }
}

static void rotations_are_those_of_each_lane(void **state) {
    (void)state;
    us_quat p[4], q[4];
    us_vec3 a[4];
    for (uint64_t l = 0; l < 4; l++) {
        p[l] = some_quat(l);
        q[l] = some_quat(l + 10);
        a[l] = some_vec3(l, 1);
    }
    usi_quatx4 P = quats_of(p), Q = quats_of(q), PQ = usi_quatx4_mul(P, Q);
    for (int l = 0; l < 4; l++) {
        near_quat(PQ, l, us_quat_mul(p[l], q[l]), TINY);
        near_vec3(lane(usi_quatx4_rotate(P, four_of(a)), l), us_quat_rotate(p[l], a[l]), TINY);
        near_vec3(lane(usi_quatx4_rotate(usi_quatx4_conj(P), four_of(a)), l),
                  us_quat_rotate(us_quat_conj(p[l]), a[l]), TINY);
        usi_quatx4 twice = {2 * P.w, usi_vec3x4_scale(usi_v4_all(2), P.v)};
        near_quat(usi_quatx4_normalize(twice), l, p[l], TINY);
    }
}

// Turns from nothing to several times round, small ones beside large ones: series and functions meet at a
// tenth of a radian.
static void turns_of_any_size_are_the_exponential(void **state) {
    (void)state;
    const double sizes[] = {0, 1e-12, 1e-5, 1e-3, 0.03, 0.0999, 0.1001, 0.5, 3, 12};
    const uint64_t n = sizeof sizes / sizeof *sizes;
    for (uint64_t i = 0; i < 50 * n; i++) {
        us_vec3 r[4];
        for (uint64_t l = 0; l < 4; l++) {
            us_vec3 d = some_vec3(4 * i + l, 1);
            r[l] = us_vec3_scale(sizes[(i + 3 * l) % n] / us_vec3_norm(d), d);
        }
        usi_quatx4 e = usi_quatx4_exp(four_of(r));
        for (int l = 0; l < 4; l++)
            near_quat(e, l, us_quat_exp(r[l]), TINY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_come_back_from_their_lanes_with_the_spare_one),
        cmocka_unit_test(products_are_those_of_each_lane),
        cmocka_unit_test(rotations_are_those_of_each_lane),
        cmocka_unit_test(turns_of_any_size_are_the_exponential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

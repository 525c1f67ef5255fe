// Shapes of no thickness, no length or no size at all, in the same place or touching: every pair has an answer in numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "pairs.h"

enum { THIN = 6 };

// A convex shape from which lengths are missing: all, the first, or all but the first; without a radius and with one.
static us_geom thin(us_geom_kind kind, int which) {
    us_geom g = {.kind = kind, .radius = which % 2 ? 0.1 : 0, .size = {0.3, 0.4, 0.5}};
    const us_vec3 flat[4] = {{0, 0, 0}, {0.5, 0, 0}, {0, 0.5, 0}, {0.3, 0.3, 0}};
    for (int i = 0; i < 4; i++) g.point[i] = us_vec3_scale(which < 2 ? 0 : 1, flat[i]);
    if (which == 2 || which == 3) g.point[2] = g.point[3] = us_vec3_make(0.25, 0, 0);
    for (int i = 0; i < 3; i++)
        if (which < 2 || (which < 4 ? i == 0 : i > 0)) g.size[i] = 0;
    return g;
}

static void check_numbers(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB) {
    assert_int_equal(us_geom_check(A, NULL), US_OK);
    us_gap g = pairs_gap(A, X_WA, B, X_WB);
    pairs_check_exchange(A, X_WA, B, X_WB, &g);
    us_vec3 rest = us_vec3_sub(us_vec3_sub(g.p_A, g.p_B), us_vec3_scale(g.distance, g.normal));
    pairs_expect(us_vec3_norm(rest) < 1e-6, "p_A - p_B is not distance * normal, by", us_vec3_norm(rest), 1e-6);
    bool is_known = A->kind <= US_GEOM_CONVEX && B->kind <= US_GEOM_CONVEX && A->kind != US_GEOM_ELLIPSOID && B->kind != US_GEOM_ELLIPSOID;
    if (is_known) {
        double s = pairs_separation(A, X_WA, B, X_WB, g.normal);
        pairs_expect(fabs(s - g.distance) < 1e-6, "separation along the normal", s, g.distance);
    }
    us_manifold m;
    assert_int_equal(us_geom_contact(A, X_WA, B, X_WB, 0.01, &m), US_OK);
    for (int32_t i = 0; i < m.n; i++) {
        double sum = m.gap[i] + us_vec3_dot(m.p_A[i], m.p_B[i]) + us_vec3_norm(m.normal[i]);
        pairs_expect(isfinite(sum), "a contact point is no number", sum, 0);
    }
}

static void poses_of(int k, us_pose *X_WA, us_pose *X_WB) {
    *X_WA = *X_WB = us_pose_identity();
    const us_vec3 offset[6] = {{0, 0, 0}, {0.3, 0, 0}, {0, 0, 0.4}, {0.6, 0, 0}, {1e-9, 0, 0}, {0.25, 0.1, 0}};
    X_WB->p = offset[k % 6];
    if (k >= 6) X_WB->q = us_quat_from_rpy(1.5707963267948966, 0, 0);
    if (k >= 12) X_WA->q = pairs_rotation(3, (uint64_t)k), X_WB->q = pairs_rotation(4, (uint64_t)k);
}

static void thin_shapes_in_one_place_have_distances_and_contacts_in_numbers(void **state) {
    (void)state;
    pairs_shape other[US_GEOM_COUNT];
    for (int b = US_GEOM_CONVEX; b < US_GEOM_COUNT; b++) pairs_shape_make((us_geom_kind)b, 5, &other[b]);
    for (int a = 0; a < US_GEOM_CONVEX; a++) {
        for (int b = a; b < US_GEOM_COUNT; b++) {
            for (int k = 0; k < 18 * THIN * THIN; k++) {
                us_geom A = thin((us_geom_kind)a, k % THIN), B = b < US_GEOM_CONVEX ? thin((us_geom_kind)b, k / THIN % THIN) : other[b].geom;
                // The others do not depend on k / THIN % THIN; and intersections are slow.
                if (b >= US_GEOM_CONVEX && k / THIN % THIN > (b == US_GEOM_INTERSECTION && k % 4 ? -1 : 0)) continue;
                us_pose X_WA, X_WB;
                poses_of(k / THIN / THIN, &X_WA, &X_WB);
                pairs_at((us_geom_kind)a, (us_geom_kind)b, (uint64_t)k);
                check_numbers(&A, X_WA, &B, X_WB);
            }
        }
    }
    for (int b = US_GEOM_CONVEX; b < US_GEOM_COUNT; b++) pairs_shape_free(&other[b]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thin_shapes_in_one_place_have_distances_and_contacts_in_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Unions against every kind: the nearest or deepest of their parts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "pairs.h"

enum { POSES = PAIRS_POSES(10000) };

static void check_union(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB, uint64_t pose) {
    us_gap g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    double least = INFINITY;
    for (int32_t i = 0; i < B->geom.n_part; i++) {
        us_gap part;
        assert_int_equal(us_geom_distance(&A->geom, X_WA, &B->geom.parts[i].geom, us_pose_mul(X_WB, B->geom.parts[i].X_GP), &part), US_OK);
        least = fmin(least, part.distance);
    }
    double size = A->size + B->size;
    // 1e-12: two unions are nested loops whose order decides which radius comes off first.
    pairs_expect(fabs(g.distance - (least - B->geom.radius)) <= 1e-12 * size, "distance of the nearest part", g.distance, least - B->geom.radius);
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    bool is_cut = A->geom.kind == US_GEOM_INTERSECTION, is_surface = A->mesh || A->field;
    // In a surface the depth may change from one triangle's to another's.
    if (!is_surface || g.distance > 0) pairs_check_motion(&A->geom, X_WA, &B->geom, X_WB, &g, size, pose, is_cut ? 1e-5 : 1e-6);
    if (!is_cut && !is_surface) pairs_check_contact(&A->geom, X_WA, &B->geom, X_WB, &g, size);
}

static void a_union_is_as_far_as_its_nearest_part(void **state) {
    (void)state;
    for (int a = 0; a <= US_GEOM_CONVEX; a++) pairs_for_poses((us_geom_kind)a, US_GEOM_UNION, POSES, check_union);
    pairs_for_poses(US_GEOM_HALF_SPACE, US_GEOM_UNION, POSES, check_union);
    pairs_for_poses(US_GEOM_UNION, US_GEOM_UNION, POSES / 2, check_union);
    pairs_for_poses(US_GEOM_MESH, US_GEOM_UNION, POSES / 4, check_union);
    pairs_for_poses(US_GEOM_HEIGHT_FIELD, US_GEOM_UNION, POSES / 10, check_union);
    pairs_for_poses(US_GEOM_INTERSECTION, US_GEOM_UNION, POSES / 50, check_union);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_union_is_as_far_as_its_nearest_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

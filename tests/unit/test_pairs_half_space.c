// Half spaces against every kind: the reference is exact.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "pairs.h"

enum { POSES = PAIRS_POSES(10000) };

static void check_half_space(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB,
                             uint64_t pose) {
    us_gap g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    us_vec3 n = us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1)),
            down = us_quat_rotate(us_quat_conj(X_WA.q), us_vec3_scale(-1, n));
    us_vec3 lowest = us_pose_point(X_WA, pairs_support(&A->twin, down));
    double d = us_vec3_dot(n, us_vec3_sub(lowest, X_WB.p)) - B->geom.radius, size = A->size + 1;
    // Closed form up to rounding; an intersection's farthest point is known to 1e-6.
    double enough = A->geom.kind == US_GEOM_INTERSECTION ? 1e-6 * size : 1e-12 * size;
    pairs_expect(fabs(g.distance - d) <= enough, "distance from a half space", g.distance, d);
    pairs_expect(us_vec3_norm(us_vec3_sub(g.normal, n)) < 1e-12, "the normal is not the plane's, by",
                 us_vec3_norm(us_vec3_sub(g.normal, n)), 1e-12);
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    pairs_check_motion(A, X_WA, B, X_WB, &g, pose, enough);
    pairs_check_contact(&A->geom, X_WA, &B->geom, X_WB, &g, size);
}

static void every_convex_kind_is_as_far_from_a_half_space_as_its_lowest_point(void **state) {
    (void)state;
    for (int a = 0; a < US_GEOM_COUNT; a++)
        if (pairs_is_convex((us_geom_kind)a))
            pairs_for_poses((us_geom_kind)a, US_GEOM_HALF_SPACE, POSES, check_half_space);
}

static void check_corners_over_half_space(const pairs_shape *A, us_pose X_WA, const pairs_shape *B,
                                          us_pose X_WB, uint64_t pose) {
    us_gap g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    us_vec3 n = us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1));
    double least = INFINITY;
    const us_height_field *f = A->field;
    int32_t n_corner = A->mesh ? A->mesh->n_vertex : f->n_x * f->n_y;
    for (int32_t i = 0; i < n_corner; i++) {
        us_vec3 p = A->mesh ? A->mesh->vertex[i] : usi_field_point(f, i % f->n_x, i / f->n_x);
        least = fmin(least, us_vec3_dot(n, us_vec3_sub(us_pose_point(X_WA, p), X_WB.p)));
    }
    least -= A->geom.radius + B->geom.radius;
    pairs_expect(fabs(g.distance - least) < 1e-12 * A->size, "distance of the lowest corner", g.distance,
                 least);
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    pairs_check_motion(A, X_WA, B, X_WB, &g, pose, 1e-12);
}

static void meshes_and_height_fields_are_as_far_from_a_half_space_as_their_lowest_corner(void **state) {
    (void)state;
    pairs_for_poses(US_GEOM_MESH, US_GEOM_HALF_SPACE, POSES, check_corners_over_half_space);
    pairs_for_poses(US_GEOM_HEIGHT_FIELD, US_GEOM_HALF_SPACE, POSES, check_corners_over_half_space);
}

static void check_facing(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB,
                         uint64_t pose) {
    us_gap g;
    // Poses with parallel axes look the same way too; only faces that look at each other have a distance.
    assert_int_equal(us_geom_distance(&A->geom, X_WA, &B->geom, X_WB, &g), US_ERR_ARG);
    us_quat half_turn = {0, 1, 0, 0};
    X_WB.q = us_quat_mul(X_WA.q, half_turn);
    g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    us_vec3 n = us_quat_rotate(X_WA.q, us_vec3_make(0, 0, 1));
    double d = us_vec3_dot(n, us_vec3_sub(X_WB.p, X_WA.p)) - A->geom.radius - B->geom.radius;
    pairs_expect(fabs(g.distance - d) < 1e-12, "distance of two planes", g.distance, d);
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    // Turned they would no longer face each other; moved, the distance is as much greater as they are moved
    // along n.
    us_vec3 u = us_vec3_scale(1e-3, pairs_direction(pose, 500));
    X_WB.p = us_vec3_add(X_WB.p, u);
    double moved = pairs_gap(&A->geom, X_WA, &B->geom, X_WB).distance;
    pairs_expect(fabs(moved - d - us_vec3_dot(n, u)) < 1e-12, "distance of two planes, moved", moved,
                 d + us_vec3_dot(n, u));
}

static void half_spaces_have_a_distance_where_they_face_each_other(void **state) {
    (void)state;
    pairs_for_poses(US_GEOM_HALF_SPACE, US_GEOM_HALF_SPACE, POSES, check_facing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_convex_kind_is_as_far_from_a_half_space_as_its_lowest_point),
        cmocka_unit_test(meshes_and_height_fields_are_as_far_from_a_half_space_as_their_lowest_corner),
        cmocka_unit_test(half_spaces_have_a_distance_where_they_face_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

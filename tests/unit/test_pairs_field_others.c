// Height fields against cylinders to convex polyhedra, meshes and each other; see pairs_surface.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pairs.h"

enum { POSES = PAIRS_POSES(10000) };

static void a_convex_shape_is_as_far_from_a_height_field_as_from_its_nearest_triangle_or_as_deep_as_defined(
    void **state) {
    (void)state;
    for (int a = US_GEOM_CYLINDER; a <= US_GEOM_CONVEX; a++)
        pairs_for_poses((us_geom_kind)a, US_GEOM_HEIGHT_FIELD, POSES, pairs_check_surface);
}

static void
a_height_field_is_as_far_from_another_surface_as_their_nearest_triangles_or_as_deep_as_defined(void **state) {
    (void)state;
    pairs_for_poses(US_GEOM_MESH, US_GEOM_HEIGHT_FIELD, POSES, pairs_check_surfaces);
    pairs_for_poses(US_GEOM_HEIGHT_FIELD, US_GEOM_HEIGHT_FIELD, POSES, pairs_check_surfaces);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_convex_shape_is_as_far_from_a_height_field_as_from_its_nearest_triangle_or_as_deep_as_defined),
        cmocka_unit_test(
            a_height_field_is_as_far_from_another_surface_as_their_nearest_triangles_or_as_deep_as_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

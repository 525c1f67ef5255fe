// Meshes against spheres to boxes; see pairs_surface.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pairs.h"

enum { POSES = PAIRS_POSES(10000) };

static void
a_convex_shape_is_as_far_from_a_mesh_as_from_its_nearest_triangle_or_as_deep_as_defined(void **state) {
    (void)state;
    for (int a = US_GEOM_SPHERE; a <= US_GEOM_BOX; a++)
        pairs_for_poses((us_geom_kind)a, US_GEOM_MESH, POSES, pairs_check_surface);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_convex_shape_is_as_far_from_a_mesh_as_from_its_nearest_triangle_or_as_deep_as_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

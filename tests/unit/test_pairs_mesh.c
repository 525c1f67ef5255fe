// Meshes against every convex kind and each other; see pairs_surface.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pairs.h"

enum { POSES = PAIRS_POSES(10000) };

static void every_convex_kind_is_as_far_from_a_mesh_as_from_its_nearest_triangle(void **state) {
    (void)state;
    for (int a = 0; a < US_GEOM_COUNT; a++)
        if (pairs_is_convex((us_geom_kind)a))
            pairs_for_poses((us_geom_kind)a, US_GEOM_MESH, a == US_GEOM_INTERSECTION ? POSES / 100 : POSES, pairs_check_surface);
}

static void two_meshes_are_as_far_apart_as_their_nearest_triangles(void **state) {
    (void)state;
    pairs_for_poses(US_GEOM_MESH, US_GEOM_MESH, POSES / 2, pairs_check_surfaces);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_convex_kind_is_as_far_from_a_mesh_as_from_its_nearest_triangle),
        cmocka_unit_test(two_meshes_are_as_far_apart_as_their_nearest_triangles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

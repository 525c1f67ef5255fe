// Unions against meshes, height fields, each other and intersections: the nearest or deepest of their parts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pairs.h"

enum { POSES = PAIRS_POSES(10000) };

static void a_union_is_as_far_as_its_nearest_part(void **state) {
    (void)state;
    for (int a = US_GEOM_MESH; a <= US_GEOM_INTERSECTION; a++)
        pairs_for_poses((us_geom_kind)a, US_GEOM_UNION, POSES, pairs_check_union);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_union_is_as_far_as_its_nearest_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Intersections against height fields; see pairs_surface.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pairs.h"

enum { POSES = PAIRS_POSES(10000) };

static void an_intersection_is_as_far_from_a_height_field_as_from_its_nearest_triangle_or_as_deep_as_defined(
    void **state) {
    (void)state;
    pairs_for_poses(US_GEOM_INTERSECTION, US_GEOM_HEIGHT_FIELD, POSES, pairs_check_surface);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            an_intersection_is_as_far_from_a_height_field_as_from_its_nearest_triangle_or_as_deep_as_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

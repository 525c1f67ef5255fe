// Random scenes by seed with more than free bodies on hard ground: robots whose links are down to 1e-5 of
// their bodies, meshes in convex parts, soft ground, dense meshes, soil and beds of soil; sizes from 1 mm to
// 100 m, mass ratios to 1e5, speeds to 50 m/s, steps from 0.1 to 10 ms. None diverges, none gains energy,
// nothing falls through.
//
// A few steps of some seeds by default; 10 s of 160 with US_LONG_TESTS. `test_contact_random_mixed SEED` runs
// one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random_scene.h"

static void mixed_scenes_stay_whole(void **state) {
    (void)state;
    const bool is_long = getenv("US_LONG_TESTS") != NULL;
    const int n = is_long ? 160 : 30;
    int n_bad = 0;
    for (int seed = 1; seed <= n; seed++)
        n_bad += !random_scene_run(random_scene_mixed, (uint64_t)seed, 10, is_long ? INT64_MAX : 200, false);
    // Soil that gave back more than was pressed into it, when other faces of a tetrahedron came down.
    n_bad += !is_long && !random_scene_run(random_scene_mixed, 118, 10, 400, false);
    printf("    %d of %d scenes failed\n", n_bad, n);
    assert_int_equal(n_bad, 0);
}

int main(int argc, char **argv) {
    if (argc > 1)
        return !random_scene_run(random_scene_mixed, strtoull(argv[1], NULL, 10), 10, INT64_MAX, true);
    const struct CMUnitTest tests[] = {cmocka_unit_test(mixed_scenes_stay_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

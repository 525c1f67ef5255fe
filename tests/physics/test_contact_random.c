// Random scenes by seed: any shape, sizes from 1 mm to 100 m, mass ratios to 1e5, speeds to 50 m/s, steps
// from 0.1 to 10 ms, on planes, boxes, meshes and height fields. None diverges, none gains energy, nothing
// falls through.
//
// A few steps of some seeds by default; 10 s of 250 with US_LONG_TESTS. `test_contact_random SEED` runs one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random_scene.h"

static void random_scenes_stay_whole(void **state) {
    (void)state;
    const bool is_long = getenv("US_LONG_TESTS") != NULL;
    const int n = is_long ? 250 : 60;
    int n_bad = 0;
    for (int seed = 1; seed <= n; seed++)
        n_bad += !random_scene_run(random_scene_free, (uint64_t)seed, 10, is_long ? INT64_MAX : 400, false);
    // Jammed at 50 m/s with masses of 1 to 1e5; a shape of one point that rocks on a mesh.
    for (int i = 0; i < 2 && !is_long; i++)
        n_bad += !random_scene_run(random_scene_free, i ? 158 : 151, 10, 400, false);
    printf("    %d of %d scenes failed\n", n_bad, n);
    assert_int_equal(n_bad, 0);
}

int main(int argc, char **argv) {
    if (argc > 1)
        return !random_scene_run(random_scene_free, strtoull(argv[1], NULL, 10), 10, INT64_MAX, true);
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_scenes_stay_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

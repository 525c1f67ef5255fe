// Bodies on deformable ground that is large, or gives way: prints of any size, and no pillars.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "soil_rig.h"

static double height_at(const soil_world *w, double x, double y, double *out_change) {
    us_deformable_info patch = us_sim_get_deformable(w->sim, 0);
    int32_t i = (int32_t)lrint(x / patch.spacing + 0.5 * (patch.n_x - 1)),
            j = (int32_t)lrint(y / patch.spacing + 0.5 * (patch.n_y - 1)), u = i / US_DEFORMABLE_TILE,
            v = j / US_DEFORMABLE_TILE, wide = patch.n_x - u * US_DEFORMABLE_TILE;
    static float height[US_DEFORMABLE_TILE * US_DEFORMABLE_TILE],
        change[US_DEFORMABLE_TILE * US_DEFORMABLE_TILE];
    if (wide > US_DEFORMABLE_TILE) wide = US_DEFORMABLE_TILE;
    assert_int_equal(us_sim_get_deformable_tile(w->sim, 0, u, v, height, change), US_OK);
    int32_t k = (j % US_DEFORMABLE_TILE) * wide + i % US_DEFORMABLE_TILE;
    if (out_change) *out_change = (double)change[k];
    return (double)height[k];
}

static void a_slab_of_any_width_leaves_its_print(void **state) {
    (void)state;
    // Each quarter of it is 40, 120 and 240 columns wide.
    static const char *const spacings[] = {"spacing=0.03", "spacing=0.01", "spacing=0.005"};
    for (int i = 0; i < 3; i++) {
        const char *const parameters[] = {spacings[i], NULL};
        soil_world w = soil_text(
            "<scene name=\"slab\" version=\"1\"><parameter name=\"spacing\" value=\"0.01\"/>"
            "<material name=\"sand\"><soil like=\"lunar\"/></material>"
            "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"61\" ny=\"61\" "
            "dx=\"0.05\" "
            "dy=\"0.05\" expression=\"0\" surface=\"sand\" bed=\"${spacing}\"/></world>"
            "<object name=\"slab\" xyz=\"0 0 0.1\"><link name=\"l\" density=\"8000\"><shape type=\"box\" "
            "size=\"2.4 2.4 0.2\"/></link></object></scene>",
            parameters);
        soil_steps(&w, 60);
        double sinkage = soil_sunk(&w, "slab/l").sinkage, middle, edge, beside;
        height_at(&w, 0.3, 0.3, &middle);
        height_at(&w, 1.15, -1.15, &edge);
        height_at(&w, 1.4, 0, &beside);
        printf("    %s: sunk by %.2f mm, print %.2f mm deep in the middle, %.2f mm at the corner\n",
               spacings[i], 1e3 * sinkage, -1e3 * middle, -1e3 * edge);
        assert_true(sinkage > 2e-3);
        // It still moves a little: a print is as deep as the deepest moment so far.
        assert_true(-middle > 0.9 * sinkage && -edge > 0.9 * sinkage && beside > -1e-4);
        soil_free(&w);
    }
}

static void a_box_on_soil_that_gives_way_comes_down_with_it(void **state) {
    (void)state;
    // A bank of 60 degrees without cohesion, and a light box on its crest.
    soil_world w = soil_text(
        "<scene name=\"bank\" version=\"1\">"
        "<material name=\"sand\"><soil like=\"dry_sand\" cohesion=\"0\" compaction=\"0\"/></material>"
        "<world step=\"1 ms\"><shape name=\"ground\" type=\"height-field\" nx=\"81\" ny=\"41\" dx=\"0.02\" "
        "dy=\"0.02\" expression=\"max(0.01, 0.2 - 1.73*max(0, abs(x) - 0.06))\" "
        "surface=\"sand\" bed=\"2 cm\"/></world>"
        "<object name=\"box\" xyz=\"0 0 0.25\"><link name=\"l\" density=\"1200\"><shape type=\"box\" "
        "size=\"0.1 0.1 0.1\"/></link></object></scene>",
        NULL);
    soil_steps(&w, 4000);
    us_pose X = us_sim_get_pose(w.sim, us_model_find_body(w.model, "box/l"));
    double steepest = 0;
    for (double x = -0.6; x < 0.6; x += 0.02)
        steepest = fmax(steepest, fabs(height_at(&w, x + 0.02, 0, NULL) - height_at(&w, x, 0, NULL)) / 0.02);
    double under = height_at(&w, X.p.x, X.p.y, NULL);
    printf("    box at %.3f %.3f %.3f m, ground under it %.3f m; steepest step %.1f degrees\n", X.p.x, X.p.y,
           X.p.z, under, atan(steepest) * 180 / 3.14159265358979323846);
    // The ground under the box has come down, the box with it, or beside it: it neither stays on a pillar nor
    // hangs in the air, nor is it buried.
    assert_true(under < 0.19 && fabs(X.p.z - 0.05 - under) < 0.02);
    assert_true(atan(steepest) < 37 * 3.14159265358979323846 / 180);
    soil_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slab_of_any_width_leaves_its_print),
        cmocka_unit_test(a_box_on_soil_that_gives_way_comes_down_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

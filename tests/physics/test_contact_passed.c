// Skins that nothing small may pass: struck down on them within one step, or rocking on them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "contact_scene.h"

enum { N = 9 };
static const double SPACING = 0.25;

// A level sheet of triangles, 2 m wide, open below; or the same as a height field.
static void add_sheet(us_spec *spec, bool is_field) {
    static us_vec3 point[N * N];
    static int32_t triangle[2 * (N - 1) * (N - 1)][3];
    static double heights[N * N];
    us_shape_def shape = us_shape_def_default(is_field ? US_SHAPE_HEIGHT_FIELD : US_SHAPE_MESH);
    int n = 0;
    for (int32_t i = 0; i < N * N; i++)
        point[i] = us_vec3_make(SPACING * (i % N - 0.5 * (N - 1)), SPACING * (i / N - 0.5 * (N - 1)), 0);
    for (int32_t i = 0; i + N < N * N; i++) {
        if (i % N == N - 1) continue;
        const int32_t two[2][3] = {{i, i + 1, i + N + 1}, {i, i + N + 1, i + N}};
        for (int k = 0; k < 6; k++)
            triangle[n + k / 3][k % 3] = two[k / 3][k % 3];
        n += 2;
    }
    shape.link = US_WORLD;
    if (is_field) {
        shape.heights = heights;
        shape.n_x = shape.n_y = N;
        shape.size[0] = shape.size[1] = SPACING;
    } else {
        shape.points = point;
        shape.n_point = shape.n_vertex = N * N;
        shape.triangles = triangle[0];
        shape.n_triangle = n;
    }
    assert_int_equal(us_spec_add_shape(spec, &shape, NULL), US_OK);
}

// A bead hangs over the sheet, far outside of what its own motion would reach in a step; a heavy ball comes
// down on it and sends it on at up to twice its own speed: many times its size, and through the sheet.
static void a_bead_that_is_struck_does_not_pass_a_sheet(void **state) {
    (void)state;
    int n_under = 0;
    for (int i = 0; i < 24; i++) {
        const double step = i % 2 ? 5e-3 : 1e-3, speed = 20 + 10 * (i % 4), height = 0.01 + 0.02 * (i % 3),
                     radius = 0.05, bead = 2e-3;
        us_pair_def pair = scene_pair(0.3);
        pair.values.restitution = 0.4 * (i % 3);
        us_spec *spec = scene_spec_pair(us_vec3_make(0, 0, -9.81), step, &pair);
        add_sheet(spec, i >= 12);
        scene_start at = scene_at(0.01, 0.02, height), above = scene_at(0.01, 0.02, height + 0.06 + bead);
        above.v = us_vec3_make(0, 0, -speed);
        if (i % 4 < 2)
            scene_ball(spec, "bead", 1e-4, bead, &at);
        else
            scene_box(spec, "bead", 1e-4, us_vec3_make(2 * bead, 2 * bead, bead), &at);
        scene_ball(spec, "hammer", 10, radius, &above);
        built b = build_sim(spec);
        for (int k = 0; k < 40; k++) {
            build_step(&b, 1, NULL);
            const us_vec3 p = scene_position(&b, 0);
            const bool is_over = fmax(fabs(p.x), fabs(p.y)) < 0.9;
            if (is_over && p.z < -2 * bead && k > 20) {
                printf("    %s, step %g ms, %g m/s: at %.3f m\n", i >= 12 ? "field" : "mesh", 1e3 * step,
                       speed, p.z);
                n_under++;
                break;
            }
        }
        build_free(&b);
    }
    assert_int_equal(n_under, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bead_that_is_struck_does_not_pass_a_sheet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

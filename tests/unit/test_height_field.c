// Height fields: how high they are under a rectangle, and their peaks in an ellipsoid.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "build.h"
#include "geom/geom.h"

enum { N = 37, M = 23 };
static const double DX = 0.3, DY = 0.4;

static us_height_field *hills(void) {
    static double z[M][N];
    uint64_t counter = 0;
    for (int j = 0; j < M; j++) {
        for (int i = 0; i < N; i++)
            z[j][i] = build_uniform(7, &counter, -1, 1);
    }
    us_height_field *f;
    assert_int_equal(us_height_field_create(&z[0][0], N, M, DX, DY, NULL, &f, NULL), US_OK);
    return f;
}

// Over every corner of every cell that the rectangle meets.
static double slow_top(const us_height_field *f, double x0, double y0, double x1, double y1) {
    double top = -INFINITY;
    for (int32_t j = 0; j < M - 1; j++) {
        for (int32_t i = 0; i < N - 1; i++) {
            us_vec3 a = usi_field_point(f, i, j), b = usi_field_point(f, i + 1, j + 1);
            if (x1 < a.x || x0 > b.x || y1 < a.y || y0 > b.y) continue;
            top = fmax(top, fmax(fmax(a.z, b.z),
                                 fmax(usi_field_point(f, i + 1, j).z, usi_field_point(f, i, j + 1).z)));
        }
    }
    return top;
}

static void the_top_of_a_rectangle_is_its_highest_corner(void **state) {
    (void)state;
    us_height_field *f = hills();
    uint64_t counter = 0;
    int n_outside = 0;
    for (int k = 0; k < 2000; k++) {
        double x = build_uniform(8, &counter, -8, 8), y = build_uniform(8, &counter, -7, 7);
        double wide = build_uniform(8, &counter, 0, 5), deep = build_uniform(8, &counter, 0, 5);
        double top = usi_field_top(f, x, y, x + wide, y + deep), slow = slow_top(f, x, y, x + wide, y + deep);
        assert_true(top == slow);
        n_outside += top == -INFINITY;
    }
    assert_true(n_outside > 20 && n_outside < 1000);
    us_height_field_destroy(f);
}

// One peak on flat ground, under an ellipsoid that is turned and rounded off: the contact is as far as a
// point in the peak's place.
static void a_peak_is_as_far_from_an_ellipsoid_as_a_point(void **state) {
    (void)state;
    double z[7][7] = {{0}};
    z[3][3] = 0.5;
    us_height_field *f;
    assert_int_equal(us_height_field_create(&z[0][0], 7, 7, 0.4, 0.4, NULL, &f, NULL), US_OK);
    us_geom ground = {.kind = US_GEOM_HEIGHT_FIELD, .field = f}, point = {.kind = US_GEOM_SPHERE};
    us_geom stone = {.kind = US_GEOM_ELLIPSOID, .size = {0.3, 0.2, 0.1}, .radius = 0.01};
    us_pose X_peak = us_pose_identity();
    X_peak.p.z = 0.5;
    uint64_t counter = 0;
    int n_near = 0;
    for (int k = 0; k < 200; k++) {
        us_pose X = {build_random_rotation(9, &counter),
                     us_vec3_make(build_uniform(9, &counter, -0.04, 0.04),
                                  build_uniform(9, &counter, -0.04, 0.04),
                                  0.5 + build_uniform(9, &counter, 0.08, 0.32))};
        us_manifold m;
        us_gap gap;
        assert_int_equal(us_geom_contact(&stone, X, &ground, us_pose_identity(), 0.02, &m), US_OK);
        assert_int_equal(us_geom_distance(&stone, X, &point, X_peak, &gap), US_OK);
        // Ridges beside the peak may touch too. The general method finds distances to 1e-9 of the size.
        for (int32_t i = 0; i < m.n; i++) {
            if (us_vec3_norm(us_vec3_sub(m.p_B[i], X_peak.p)) > 1e-9) continue;
            build_near("gap", m.gap[i], gap.distance, 1e-8);
            build_near("normal", us_vec3_norm(us_vec3_sub(m.normal[i], gap.normal)), 0, 1e-4);
            n_near++;
        }
        if (gap.distance > 0.021) assert_int_equal(m.n, 0);
    }
    printf("    %d near\n", n_near);
    assert_true(n_near > 10);
    us_height_field_destroy(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_top_of_a_rectangle_is_its_highest_corner),
        cmocka_unit_test(a_peak_is_as_far_from_an_ellipsoid_as_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

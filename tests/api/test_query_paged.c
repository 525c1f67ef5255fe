// Rays into ground that is paged in: the same hits as into the same ground in memory, and the motion goes on.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "site_make.h"
#include "understudy/query.h"

// 2 km at 1 m: 8 by 8 tiles; room for some five of them.
enum { N = 2001 };
static const double SMALL = 6e6;

static built world_on(const us_shape_def *ground) {
    us_spec *spec = build_spec(9.81, 1e-3, US_INTEGRATOR_MIDPOINT);
    assert_int_equal(us_spec_add_shape(spec, ground, NULL), US_OK);
    int32_t link = build_link(spec, "ball", 2, us_vec3_make(0, 0, 0), us_vec3_make(0.05, 0.05, 0.05));
    us_joint_def j =
        build_joint_at(US_JOINT_FLOATING, US_WORLD, link, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1));
    const double q[7] = {1, 0, 0, 0, -400, -300, (double)site_hills(-400, -300) + 0.5},
                 v[6] = {0, 5, 0, 40, 15, 0};
    memcpy(j.q0, q, sizeof q);
    memcpy(j.v0, v, sizeof v);
    build_joint_def(spec, "ball", &j);
    us_shape_def s = us_shape_def_default(US_SHAPE_SPHERE);
    s.link = link;
    s.size[0] = 0.3;
    assert_int_equal(us_spec_add_shape(spec, &s, NULL), US_OK);
    return build_sim(spec);
}

static void rays_hit_paged_ground_as_they_hit_it_in_memory(void **state) {
    (void)state;
    site_make("ground", N, N, 1, 1, site_hills);
    us_shape_def paged = us_shape_def_default(US_SHAPE_HEIGHT_FIELD), dense = paged;
    paged.site = "ground";
    paged.memory = SMALL;
    double *heights = site_heights(N, N, 1, 1, site_hills);
    dense.heights = heights;
    dense.n_x = dense.n_y = N;
    dense.size[0] = dense.size[1] = 1;
    built a = world_on(&paged), b = world_on(&dense);
    free(heights);
    int n_hit = 0, n_far = 0;
    for (int i = 0; i < 150; i++) {
        double r[6];
        for (int k = 0; k < 6; k++)
            r[k] = us_random_uniform(3, (uint64_t)k, (uint64_t)i);
        // From a few metres above the ground, nearly level: most go far.
        double x = 1800 * r[0] - 900, y = 1800 * r[1] - 900;
        us_vec3 o = us_vec3_make(x, y, (double)site_hills(x, y) + 1 + 5 * r[2]);
        us_vec3 d = us_vec3_make(2 * r[3] - 1, 2 * r[4] - 1, 0.02 - 0.1 * r[5]);
        us_sim_hit seen, want;
        assert_int_equal(us_sim_cast_ray(a.sim, o, d, 2000, NULL, &seen), US_OK);
        assert_int_equal(us_sim_cast_ray(b.sim, o, d, 2000, NULL, &want), US_OK);
        assert_int_equal(seen.shape, want.shape);
        if (want.shape < 0) continue;
        build_near("distance", seen.distance, want.distance, 1e-6);
        build_near("normal", us_vec3_dot(seen.normal, want.normal), 1, 1e-9);
        n_hit++;
        n_far += want.distance > 60;
        // A ball at the hit overlaps the ground, one below it too, one above it does not.
        us_geom ball = {.kind = US_GEOM_SPHERE, .radius = 0.1};
        us_pose X = {us_quat_identity(), seen.point};
        int32_t n = -1;
        assert_int_equal(us_sim_overlap(a.sim, &ball, X, NULL, NULL, 0, &n), US_OK);
        assert_int_equal(n, 1);
        X.p.z -= 1;
        assert_int_equal(us_sim_overlap(a.sim, &ball, X, NULL, NULL, 0, &n), US_OK);
        assert_int_equal(n, 1);
        X.p.z += 2;
        assert_int_equal(us_sim_overlap(a.sim, &ball, X, NULL, NULL, 0, &n), US_OK);
        assert_int_equal(n, 0);
        // The rays leave the motion alone.
        build_step(&a, 10, NULL);
        build_step(&b, 10, NULL);
        assert_memory_equal(us_sim_view_q(a.sim), us_sim_view_q(b.sim), 7 * sizeof(double));
        assert_memory_equal(us_sim_view_v(a.sim), us_sim_view_v(b.sim), 6 * sizeof(double));
    }
    assert_true(n_hit > 60 && n_far > 10);
    build_free(&a);
    build_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rays_hit_paged_ground_as_they_hit_it_in_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

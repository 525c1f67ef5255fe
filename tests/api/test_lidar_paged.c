// A lidar over ground that is paged in sees what it sees over the same ground in memory; ground that cannot
// be had is not seen, and the world goes on.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "site_make.h"
#include "understudy/model.h"
#include "understudy/query.h"

// 2 km at 1 m: 8 by 8 tiles.
enum { N = 2001 };

static const char SCENE[] = "<scene name='s' version='1'><world step='1 ms' gravity='0 0 0'/>"
                            "<robot name='r' file='" US_SOURCE_DIR "/tests/support/carrier.urdf'>"
                            "<sensor type='lidar' name='lidar' link='base' xyz='-130 5 6' "
                            "preset='vlp-16' reach='0'/><network/></robot></scene>";

static us_sim *world_on(const us_shape_def *ground, us_model **out_model) {
    us_error err = {0};
    us_spec *spec = NULL;
    us_sim *sim = NULL;
    us_status status = us_spec_load_text(SCENE, strlen(SCENE), "lidar.xml", NULL, &spec, &err);
    if (!status) status = us_spec_add_shape(spec, ground, NULL);
    if (!status) status = us_model_compile(spec, NULL, out_model, &err);
    if (!status) status = us_sim_create(*out_model, NULL, &sim, &err);
    if (status) fail_msg("%s", err.message);
    us_spec_destroy(spec);
    return sim;
}

static us_lidar_point *see(us_sim *sim, int32_t *out_n) {
    us_lidar_frame f = {.turn = -1};
    const us_lidar lidar = {0};
    for (int i = 0; i < 120 && f.turn < 0; i++) {
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
        assert_int_equal(us_sim_get_lidar_frame(sim, lidar, false, &f, NULL, 0), US_OK);
    }
    assert_int_equal(f.turn, 0);
    *out_n = f.n_ring * f.n_column;
    us_lidar_point *points = malloc((size_t)*out_n * sizeof *points);
    assert_non_null(points);
    assert_int_equal(us_sim_get_lidar_frame(sim, lidar, false, &f, points, *out_n), US_OK);
    return points;
}

static int32_t count(const us_lidar_point *p, int32_t n) {
    int32_t k = 0;
    for (int32_t i = 0; i < n; i++)
        k += !isnan(p[i].x);
    return k;
}

static void paged_ground_is_seen_as_it_is_in_memory(void **state) {
    (void)state;
    site_make("ground", N, N, 1, 1, site_hills);
    us_shape_def paged = us_shape_def_default(US_SHAPE_HEIGHT_FIELD), dense = paged;
    paged.site = "ground";
    paged.memory = 6e6;
    double *heights = site_heights(N, N, 1, 1, site_hills);
    dense.heights = heights;
    dense.n_x = dense.n_y = N;
    dense.size[0] = dense.size[1] = 1;
    us_model *model[2] = {NULL, NULL};
    us_sim *a = world_on(&paged, &model[0]), *b = world_on(&dense, &model[1]);
    free(heights);
    int32_t n = 0, m = 0;
    us_lidar_point *seen = see(a, &n), *want = see(b, &m);
    assert_int_equal(n, m);
    assert_true(count(want, n) > 8000);
    assert_int_equal(count(seen, n), count(want, n));
    for (int32_t i = 0; i < n; i++) {
        // Tiles hold heights as floats, which site_heights are too.
        if (isnan(want[i].x)) continue;
        assert_true(fabs((double)seen[i].x - (double)want[i].x) < 1e-5 &&
                    fabs((double)seen[i].y - (double)want[i].y) < 1e-5 &&
                    fabs((double)seen[i].z - (double)want[i].z) < 1e-5);
    }
    free(seen);
    free(want);
    us_sim_destroy(a);
    us_sim_destroy(b);
    us_model_destroy(model[0]);
    us_model_destroy(model[1]);
}

static void ground_that_does_not_fit_is_not_seen_and_the_world_goes_on(void **state) {
    (void)state;
    site_make("ground", N, N, 1, 1, site_hills);
    us_shape_def paged = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    paged.site = "ground";
    paged.memory = 1e5;  // less than one tile
    us_model *model = NULL;
    us_sim *sim = world_on(&paged, &model);
    int32_t n = 0;
    us_lidar_point *seen = see(sim, &n);
    assert_int_equal(count(seen, n), 0);
    free(seen);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paged_ground_is_seen_as_it_is_in_memory),
        cmocka_unit_test(ground_that_does_not_fit_is_not_seen_and_the_world_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

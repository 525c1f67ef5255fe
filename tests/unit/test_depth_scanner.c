// Lidars by a depth buffer: its formula of resolution, shapes whose ranges can be written down, and the same
// scene by rays and by depths.
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lidar_rig.h"
#include "understudy/depth_scanner.h"

// Only where the library is not there at all is nothing tested.
static void need_egl(void) {
    void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) skip();
    dlclose(library);
}

static us_depth_scanner *scanner_of(const lidar_rig *r, const us_depth_scanner_def *def) {
    us_depth_scanner *x = NULL;
    us_error err = {0};
    if (us_depth_scanner_create(r->model, r->lidar, def, NULL, &x, &err))
        fail_msg("%s (%s)", err.message, err.remedy);
    return x;
}

static void scan(lidar_rig *r, const us_depth_scanner_def *def) {
    us_depth_scanner *x = scanner_of(r, def);
    us_error err = {0};
    if (us_depth_scanner_scan(x, r->sim, &r->frame, r->point, r->n, &err)) fail_msg("%s", err.message);
    us_depth_scanner_destroy(x);
}

// ---------------------------------------------------------------- the formula

static void depths_are_as_far_apart_as_the_formula_says(void **state) {
    (void)state;
    static const struct {
        int32_t bits;
        double near, far, depth, want;
    } table[] = {{24, 3, 350, 350, 2.412995e-3},
                 {24, 3, 350, 100, 0.196979e-3},
                 {24, 1, 70, 70, 0.287890e-3},
                 {24, 1, 70, 10, 5.875e-6},
                 {16, 1, 70, 70, 73.7e-3}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const double q = us_depth_resolution(table[i].bits, table[i].near, table[i].far, table[i].depth);
        assert_true(fabs(q / table[i].want - 1) < 1e-3);
    }
    assert_true(isnan(us_depth_resolution(24, 0, 70, 10)));
    assert_true(isnan(us_depth_resolution(24, 70, 1, 10)));
    assert_true(isnan(us_depth_resolution(0, 1, 70, 10)));
}

// ---------------------------------------------------------------- shapes

// 21 by 21 rays of +-2 degrees to a ball of 1 m at 50 m: 49 m straight ahead. Triangles stand off it by 20 um
// at most, along the ray by that over the cosine at which it is met.
static void a_sphere_is_met_where_it_is(void **state) {
    (void)state;
    need_egl();
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"sphere\" size=\"1\" xyz=\"50 0 0\"/>",
                   "pattern=\"grid\" window=\"4 4 deg\" resolution=\"0.2 0.2 deg\" period=\"1 ms\" " PLAIN, 0,
                   0);
    us_depth_scanner_def def = us_depth_scanner_def_default();
    def.near = 3;
    def.far = 350;
    def.facet = 2e-5;
    scan(&r, &def);
    int n = 0;
    for (int32_t ring = 0; ring < 21; ring++) {
        for (int32_t c = 0; c < 21; c++) {
            const us_lidar_point *p = lidar_rig_at(&r, ring, c);
            const double up = (0.2 * ring - 2) * DEGREE, left = (2 - 0.2 * c) * DEGREE;
            const us_vec3 d = us_vec3_make(cos(up) * cos(left), cos(up) * sin(left), sin(up));
            const double b = 50 * d.x, inside = 1 - (2500 - b * b);
            if (inside < -0.01) assert_true(isnan(p->x));
            // Near the rim a pixel sees what is beside the ray: at a cosine of a half it is 1.7 mm wide, over
            // which the sphere falls by 1 mm and curves by less than a micrometre.
            if (inside < 0.25) continue;
            const double range = b - sqrt(inside), quantum = us_depth_resolution(24, 3, 350, range);
            const double off = fabs(range_of(p) - range), most = 0.5 * quantum + 2e-5 / sqrt(inside) + FLOAT;
            if (!(off < most)) fail_msg("ring %d column %d: off by %g m, not %g", ring, c, off, most);
            n++;
        }
    }
    assert_true(n > 60);
    assert_true(fabs(range_of(lidar_rig_at(&r, 10, 10)) - 49) < 47.3e-6);
    lidar_rig_fini(&r);
}

// A wall at 10 m: flat to a quantum by the stretch. Without it, at 20 degrees aside and 10 up, ranges would
// be those of depths, 7.9 % less.
static void a_plane_is_flat_by_the_stretch(void **state) {
    (void)state;
    need_egl();
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"box\" size=\"1 40 40\" xyz=\"10.5 0 0\"/>",
                   "pattern=\"grid\" window=\"40 20 deg\" resolution=\"1 1 deg\" period=\"1 ms\" " PLAIN, 0,
                   0);
    static const int32_t bits[] = {16, 24, 32};
    for (int k = 0; k < 3; k++) {
        us_depth_scanner_def def = us_depth_scanner_def_default();
        def.bits = bits[k];
        def.near = 1;
        def.far = 70;
        scan(&r, &def);
        const double quantum = us_depth_resolution(bits[k], 1, 70, 10);
        for (int32_t i = 0; i < r.n; i++)
            assert_true(fabs((double)r.point[i].x - 10) < 0.5 * quantum + FLOAT);
        const double aside = tan(20 * DEGREE), above = tan(10 * DEGREE) / cos(20 * DEGREE),
                     stretch = range_of(lidar_rig_at(&r, 20, 0)) / (double)lidar_rig_at(&r, 20, 0)->x;
        assert_true(fabs(stretch - sqrt(1 + aside * aside + above * above)) < 1e-6);
        // Of tangents of 20 and of 10 degrees.
        assert_true(fabs(sqrt(1 + aside * aside + tan(10 * DEGREE) * tan(10 * DEGREE)) - 1.07868695) < 1e-8);
    }
    lidar_rig_fini(&r);
}

// Rounding down is made up for: over a floor that is met at all ranges errors are spread evenly around none,
// and their deviation is that of rounding.
static void rounding_down_leaves_no_bias(void **state) {
    (void)state;
    need_egl();
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"plane\" xyz=\"0 0 -2\"/>", "preset=\"hdl-32e\" " PLAIN, 0, 0);
    us_depth_scanner_def def = us_depth_scanner_def_default();
    def.bits = 16;
    def.near = 0.5;
    def.far = 100;
    scan(&r, &def);
    double sum = 0, square = 0, worst = 0;
    int n = 0;
    for (int32_t i = 0; i < r.n; i++) {
        const us_lidar_point *p = &r.point[i];
        if (isnan(p->x)) continue;
        const double range = range_of(p), sine = -(double)p->z / range, x = fabs((double)p->x),
                     y = fabs((double)p->y), depth = fmax(x, fmax(y, fabs((double)p->z)));
        // Between pixels four errors are mixed; that of the range is that of the depth, stretched.
        const double quantum = us_depth_resolution(16, 0.5, 100, depth) * range / depth,
                     off = (range - 2 / sine) / quantum;
        sum += off;
        square += off * off;
        worst = fmax(worst, fabs(off));
        n++;
    }
    assert_true(n > 30000);
    assert_true(worst < 0.55);
    // Neighbours along a ring have the same depth often: some hundred errors are independent, of a deviation
    // of 0.29 and less.
    assert_true(fabs(sum / n) < 0.03);
    assert_true(sqrt(square / n) > 0.1 && sqrt(square / n) < 0.2887 + 0.01);
    lidar_rig_fini(&r);
}

// ---------------------------------------------------------------- both methods

static const char *const yard =
    "<shape type=\"height-field\" nx=\"201\" ny=\"201\" dx=\"0.2\" dy=\"0.2\" xyz=\"0 0 -2\" "
    "expression=\"0.3*sin(x/3)*cos(y/4)\"/>"
    "<shape type=\"sphere\" size=\"0.8\" xyz=\"5 1 -0.8\"/>"
    "<shape type=\"box\" size=\"1.2 2.4 1.6\" xyz=\"3 -5 -0.5\" rpy=\"4 -5 30 deg\"/>"
    "<shape type=\"cylinder\" size=\"0.3 3\" xyz=\"-4 3 0\"/>"
    "<shape type=\"cone\" size=\"1 2\" xyz=\"-6 -4 -0.8\"/>"
    "<shape type=\"capsule\" size=\"0.4 1.5\" xyz=\"0 6 -0.8\" rpy=\"20 0 0 deg\"/>"
    "<shape type=\"ellipsoid\" size=\"1.2 0.6 0.9\" xyz=\"-2 -6 -0.6\"/>"
    "<shape type=\"convex\" points=\"0 0 0 1 0 0 0 1 0 0.2 0.2 1.5 1 1 0.3\" xyz=\"7 5 -1.5\"/>";

// Every range by depths is that by rays, but beside edges, which pixels see a little aside: to half a quantum
// of 32 bits, and what triangles stand off, over the cosine.
static void rays_and_depths_see_the_same(void **state) {
    (void)state;
    need_egl();
    static const char *const lidar[] = {"preset=\"hdl-32e\" " PLAIN,
                                        "preset=\"scan-2d\" rpy=\"10 8 0 deg\" " PLAIN,
                                        "preset=\"os1-32\" " PLAIN};
    for (int k = 0; k < 3; k++) {
        lidar_rig r;
        lidar_rig_init(&r, yard, lidar[k], 0, 0);
        us_depth_scanner_def def = us_depth_scanner_def_default();
        def.bits = 32;
        scan(&r, &def);
        us_lidar_point *depth = malloc((size_t)r.n * sizeof *depth);
        assert_non_null(depth);
        memcpy(depth, r.point, (size_t)r.n * sizeof *depth);
        lidar_rig_see(&r, 0, false);
        int n = 0, n_same = 0, n_other = 0;
        for (int32_t i = 0; i < r.n; i++) {
            const bool is_hit = !isnan(r.point[i].x), is_seen = !isnan(depth[i].x);
            assert_int_equal(r.point[i].ring, depth[i].ring);
            assert_true(r.point[i].time == depth[i].time);
            if (!is_hit && !is_seen) continue;
            n++;
            const double off = fabs(range_of(&r.point[i]) - range_of(&depth[i]));
            const double brighter = (double)r.point[i].intensity - (double)depth[i].intensity;
            const bool is_same = is_hit && is_seen && off < 2e-3 && fabs(brighter) < 3;
            n_same += is_same;
            n_other += !is_same;
        }
        assert_true(n > 200 && n_same + n_other == n);
        if (n_other * 100 > n) fail_msg("lidar %d: of %d points %d differ", k, n, n_other);
        free(depth);
        lidar_rig_fini(&r);
    }
}

// Noise and lost returns are drawn as with rays, shot by shot.
static void noise_is_that_of_the_same_turn_by_rays(void **state) {
    (void)state;
    need_egl();
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"box\" size=\"1 40 40\" xyz=\"10.5 0 0\"/>", "preset=\"vlp-16\"", 0, 0);
    us_depth_scanner_def def = us_depth_scanner_def_default();
    def.bits = 32;
    scan(&r, &def);
    us_lidar_point *depth = malloc((size_t)r.n * sizeof *depth);
    assert_non_null(depth);
    memcpy(depth, r.point, (size_t)r.n * sizeof *depth);
    lidar_rig_see(&r, 0, false);
    double spread = 0;
    int n = 0;
    for (int32_t i = 0; i < r.n; i++) {
        if (isnan(r.point[i].x) || isnan(depth[i].x)) continue;
        // Beside the wall's rim a pixel may see past it. Ranges are rounded to 2 mm.
        if (fabs((double)r.point[i].y) > 19.5) continue;
        assert_true(fabs(range_of(&r.point[i]) - range_of(&depth[i])) < 2.1e-3);
        spread = fmax(spread, fabs((double)r.point[i].x - 10));
        n++;
    }
    assert_true(n > 2000 && spread > 0.05);
    free(depth);
    lidar_rig_fini(&r);
}

// The form that soil has now, and shapes that have moved.
static void what_moves_is_seen_where_it_is(void **state) {
    (void)state;
    need_egl();
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"box\" size=\"1 80 20\" xyz=\"8.5 0 0\"/>",
                   "elevations=\"0 deg\" columns=\"360\" rate=\"10 Hz\" start=\"0\" sweep=\"360 deg\" " PLAIN,
                   1, 0);
    us_depth_scanner *x = scanner_of(&r, NULL);
    us_error err;
    for (int k = 0; k < 3; k++) {
        assert_int_equal(us_depth_scanner_scan(x, r.sim, &r.frame, r.point, r.n, &err), US_OK);
        const double time = us_sim_get_time(r.sim);
        assert_true(fabs((double)lidar_rig_at(&r, 0, 0)->x - (8 - time)) < 1e-4);
        assert_true(fabs(r.frame.X_WS.p.x - time) < 1e-9);
        lidar_rig_step(&r, 200);
    }
    us_depth_scanner_destroy(x);
    lidar_rig_fini(&r);
}

// ---------------------------------------------------------------- refused

static void what_is_no_depth_buffer_is_refused(void **state) {
    (void)state;
    lidar_rig r;
    lidar_rig_init(&r, "<shape type=\"plane\" xyz=\"0 0 -2\"/>", "preset=\"vlp-16\"", 0, 0);
    const us_depth_scanner_def usual = us_depth_scanner_def_default();
    us_depth_scanner_def bad[7] = {usual, usual, usual, usual, usual, usual, usual};
    bad[0].bits = 7;
    bad[1].bits = 33;
    bad[2].near = -1;
    bad[3].near = 200;
    bad[4].side = 10;
    bad[5].side = 100000;
    bad[6].facet = 0;
    for (int k = 0; k < 7; k++) {
        us_error err = {0};
        us_depth_scanner *x = NULL;
        assert_int_equal(us_depth_scanner_create(r.model, r.lidar, &bad[k], NULL, &x, &err), US_ERR_ARG);
        assert_null(x);
        assert_true(err.message[0] && err.remedy[0]);
    }
    us_depth_scanner *x = NULL;
    us_error err = {0};
    assert_int_equal(us_depth_scanner_create(r.model, (us_lidar){1}, NULL, NULL, &x, &err), US_ERR_ARG);
    us_depth_scanner_destroy(NULL);
    lidar_rig_fini(&r);
}

static void points_need_room_and_what_draws_has_a_name(void **state) {
    (void)state;
    need_egl();
    lidar_rig r;
    us_error err = {0};
    us_depth_scanner *x = NULL;
    lidar_rig_init(&r, "<shape type=\"plane\" xyz=\"0 0 -2\"/>", "preset=\"vlp-16\"", 0, 0);
    x = scanner_of(&r, NULL);
    assert_true(us_depth_scanner_renderer(x)[0] != 0);
    assert_int_equal(us_depth_scanner_scan(x, r.sim, &r.frame, r.point, 10, &err), US_ERR_LIMIT);
    us_depth_scanner_destroy(x);
    lidar_rig_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depths_are_as_far_apart_as_the_formula_says),
        cmocka_unit_test(a_sphere_is_met_where_it_is),
        cmocka_unit_test(a_plane_is_flat_by_the_stretch),
        cmocka_unit_test(rounding_down_leaves_no_bias),
        cmocka_unit_test(rays_and_depths_see_the_same),
        cmocka_unit_test(noise_is_that_of_the_same_turn_by_rays),
        cmocka_unit_test(what_moves_is_seen_where_it_is),
        cmocka_unit_test(what_is_no_depth_buffer_is_refused),
        cmocka_unit_test(points_need_room_and_what_draws_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// A tree of boxes for rays, against asking every box; and a world with more shapes than are asked one by one.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geom/box_tree.h"
#include "lidar_rig.h"
#include "understudy/query.h"

enum { N = 400, RAYS = 2000 };

static double uniform(int stream, int i) { return us_random_uniform(11, (uint64_t)stream, (uint64_t)i); }

// Where a ray enters a box, by its six planes; INFINITY: it does not.
static double entry(const us_aabb *b, us_vec3 o, us_vec3 d) {
    const double low[3] = {b->min.x, b->min.y, b->min.z}, high[3] = {b->max.x, b->max.y, b->max.z},
                 at[3] = {o.x, o.y, o.z}, along[3] = {d.x, d.y, d.z};
    double from = 0, to = INFINITY;
    for (int k = 0; k < 3; k++) {
        if (along[k] == 0) {
            if (at[k] < low[k] || at[k] > high[k]) return INFINITY;
            continue;
        }
        const double p = (low[k] - at[k]) / along[k], q = (high[k] - at[k]) / along[k];
        from = fmax(from, fmin(p, q));
        to = fmin(to, fmax(p, q));
    }
    return from <= to ? from : INFINITY;
}

typedef struct seen {
    const us_aabb *box;
    us_vec3 o, d;
    int n;
    int32_t nearest;
    double range;
    bool was[N];
} seen;

static double count(void *context, int32_t box, double until) {
    seen *s = context;
    assert_true(box >= 0 && box < N && !s->was[box]);
    s->was[box] = true;
    s->n++;
    return until;
}

static double find_nearest(void *context, int32_t box, double until) {
    seen *s = context;
    const double range = entry(&s->box[box], s->o, s->d);
    s->n++;
    if (!(range < s->range)) return until;
    s->range = range;
    s->nearest = box;
    return range;
}

static double end_at_once(void *context, int32_t box, double until) {
    seen *s = context;
    (void)box;
    (void)until;
    s->n++;
    return -1;
}

static void fill(us_aabb *box, int n) {
    for (int i = 0; i < n; i++) {
        const double r = 0.1 + uniform(9, i);
        const us_vec3 p = us_vec3_make(40 * uniform(1, i), 40 * uniform(2, i), 3 * uniform(3, i));
        // Some lie in one place, and some are flat.
        const us_vec3 at = i % 7 == 0 ? us_vec3_make(3, 3, 1) : p;
        box[i] = (us_aabb){us_vec3_sub(at, us_vec3_make(r, r, i % 5 ? r : 0)),
                           us_vec3_add(at, us_vec3_make(r, r, i % 5 ? r : 0))};
    }
}

static us_vec3 direction(int i) {
    // Also along axes, where slabs are never left.
    if (i % 10 == 0) return us_vec3_make(i % 20 ? 1 : -1, 0, 0);
    const us_vec3 d = us_vec3_make(uniform(4, i) - 0.5, uniform(5, i) - 0.5, 0.3 * (uniform(6, i) - 0.5));
    return us_vec3_scale(1 / us_vec3_norm(d), d);
}

static void every_box_on_a_ray_is_found_once(void **state) {
    (void)state;
    static us_aabb box[N];
    const us_allocator allocator = us_allocator_default();
    const int sizes[] = {0, 1, 2, 3, 50, N};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        usi_box_tree *tree = NULL;
        fill(box, sizes[k]);
        assert_int_equal(usi_box_tree_create(box, sizes[k], &allocator, &tree), US_OK);
        for (int i = 0; i < RAYS; i++) {
            const us_vec3 o = i % 3 ? us_vec3_make(40 * uniform(7, i), 40 * uniform(8, i), 1)
                                    : us_vec3_make(box[0].min.x, 10, box[0].max.z);
            const double range = i % 4 ? 15 : INFINITY;
            seen all = {.box = box, .o = o, .d = direction(i), .range = range, .nearest = -1}, one = all,
                 ended = all;
            usi_box_tree_cast(tree, o, all.d, range, count, &all);
            usi_box_tree_cast(tree, o, one.d, range, find_nearest, &one);
            usi_box_tree_cast(tree, o, ended.d, range, end_at_once, &ended);
            double nearest = range;
            for (int32_t b = 0; b < sizes[k]; b++) {
                const double at = entry(&box[b], o, all.d);
                if (at < range) assert_true(all.was[b]);
                // None that is far from the ray is asked about: only rounding makes a difference.
                if (all.was[b]) assert_true(at <= range || i % 3 == 0 || i % 10 == 0);
                nearest = fmin(nearest, at);
            }
            assert_true(one.range == nearest || (one.nearest < 0 && !(nearest < range)));
            assert_true(ended.n == (all.n > 0));
            assert_true(one.n <= all.n);
        }
        usi_box_tree_destroy(tree);
    }
    usi_box_tree_destroy(NULL);
}

// Boulders by the hundred: rays and beams meet what the nearest of all shapes says, whatever a filter leaves
// out.
static void a_world_of_many_rocks_is_seen_as_rock_by_rock(void **state) {
    (void)state;
    enum { ROCKS = 150 };
    static char world[32 * 1024];
    size_t used = (size_t)snprintf(world, sizeof world, "<shape type=\"plane\" xyz=\"0 0 -1\"/>");
    for (int i = 0; i < ROCKS; i++) {
        const double turn = 6.283 * uniform(1, i), far = 3 + 30 * uniform(2, i), r = 0.2 + uniform(3, i);
        used += (size_t)snprintf(world + used, sizeof world - used,
                                 i % 3 ? "<shape type=\"sphere\" size=\"%.3f\" xyz=\"%.4f %.4f -1\"/>"
                                       : "<shape type=\"box\" size=\"%.3f 0.7 0.8\" xyz=\"%.4f %.4f -0.9\"/>",
                                 r, far * cos(turn), far * sin(turn));
        assert_true(used < sizeof world);
    }
    lidar_rig r;
    lidar_rig_init(&r, world, "preset=\"os1-32\" " PLAIN, 0, 0);
    assert_non_null(r.model->fixed_tree);
    lidar_rig_see(&r, 0, false);
    int n_rock = 0;
    for (int32_t i = 0; i < r.n; i += 3) {
        const int32_t column = i % r.frame.n_column, ring = i / r.frame.n_column;
        const double azimuth = (180 - 360.0 * column / 1024) * DEGREE,
                     up = (-22.5 + 45.0 * ring / 31) * DEGREE;
        const us_vec3 d = us_vec3_make(cos(up) * cos(azimuth), cos(up) * sin(azimuth), sin(up)),
                      o = us_vec3_make(0, 0, 0);
        us_sim_hit hit;
        bool is_hit = false;
        double nearest = INFINITY;
        int32_t geom = -1;
        for (int32_t k = 0; k < r.model->n_geom; k++) {
            const double range = us_geom_ray(&r.model->geom[k].geom, r.model->geom[k].X_NG, o, d, 100).range;
            if (range > 0 && range < nearest) {
                nearest = range;
                geom = k;
            }
        }
        assert_int_equal(us_sim_cast_ray(r.sim, o, d, 100, NULL, &hit), US_OK);
        // The direction is made a unit vector again, which moves a grazing hit by more than its last digit.
        if (!(hit.geom == geom && (isinf(nearest) || fabs(hit.distance - nearest) < 1e-9)))
            fail_msg("shape %d at %.12g m, not %d at %.12g m", (int)hit.geom, hit.distance, (int)geom,
                     nearest);
        assert_int_equal(us_sim_any_hit(r.sim, 1, &o, &d, 100, NULL, &is_hit), US_OK);
        assert_true(is_hit == isfinite(nearest));
        const us_query_filter nothing = {.mask = 0, .except = {-1}};
        assert_int_equal(us_sim_cast_ray(r.sim, o, d, 100, &nothing, &hit), US_OK);
        assert_true(isinf(hit.distance) && hit.geom == -1);
        const us_lidar_point *p = &r.point[i];
        assert_true(isnan(p->x) == !isfinite(nearest));
        if (isnan(p->x)) continue;
        assert_true(fabs(range_of(p) - nearest) < FLOAT);
        n_rock += r.model->geom[geom].geom.kind != US_GEOM_HALF_SPACE;
    }
    assert_true(n_rock > 1000);
    lidar_rig_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_box_on_a_ray_is_found_once),
        cmocka_unit_test(a_world_of_many_rocks_is_seen_as_rock_by_rock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

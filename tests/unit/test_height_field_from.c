// Height fields made from shapes: samples of the upper side, and volumes that hold the shape.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "pairs.h"

typedef struct made {
    us_height_field *field;
    us_pose X_GF;
    double error;
} made;

static made make(const us_geom *g, int32_t n_x, int32_t n_y, bool is_bound) {
    made m = {0};
    us_error err = {0};
    us_status status =
        us_height_field_create_from(g, n_x, n_y, is_bound, NULL, &m.field, &m.X_GF, &m.error, &err);
    if (status) fail_msg("%s: %s", us_geom_kind_name(g->kind), err.message);
    return m;
}

// The height of a field at (x, y) of G, by a ray.
static double height(const made *m, double x, double y) {
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = m->field};
    double from = m->field->high + 1;
    us_ray_hit hit = us_geom_ray(&g, m->X_GF, us_vec3_make(x, y, from), us_vec3_make(0, 0, -1), 100);
    return from - hit.range;
}

static void samples_of_a_ball_are_its_upper_half(void **state) {
    (void)state;
    us_geom ball = {.kind = US_GEOM_SPHERE, .radius = 0.5};
    made m = make(&ball, 21, 41, false);
    for (int32_t j = 0; j < 41; j++)
        for (int32_t i = 0; i < 21; i++) {
            us_vec3 p = us_pose_point(m.X_GF, usi_field_point(m.field, i, j));
            double across = hypot(p.x, p.y), z = across < 0.5 ? sqrt(0.25 - across * across) : -0.5;
            // At the ball's equator a ray may hit or miss.
            if (fabs(across - 0.5) > 1e-9) assert_true(fabs(p.z - z) < 1e-12);
        }
    // A wall as high as the ball, from its equator down: nothing is off by more than its height, and beside
    // it something is by nearly half.
    assert_true(m.error > 0.3 && m.error <= 1);
    us_height_field_destroy(m.field);
}

static void the_stated_error_shrinks_with_the_square_of_the_spacing_on_a_smooth_side(void **state) {
    (void)state;
    // A ball cut to its middle by a box: smooth wherever there is shape.
    us_geom_part part[2] = {{{.kind = US_GEOM_SPHERE, .radius = 1}, us_pose_identity()},
                            {{.kind = US_GEOM_BOX, .size = {0.3, 0.3, 2}}, us_pose_identity()}};
    us_geom cap = {.kind = US_GEOM_INTERSECTION, .parts = part, .n_part = 2};
    made coarse = make(&cap, 5, 5, false), fine = make(&cap, 9, 9, false);
    double ratio = coarse.error / fine.error;
    // Four, but for the cells' place on the ball; and a chord of 0.15 m on a ball of 1 m stands 0.15^2 / 8
    // off, twice that on a diagonal, a third more where it slopes.
    if (!(ratio > 3 && ratio < 5 && coarse.error < 0.15 * 0.15 / 3 && coarse.error > 0.15 * 0.15 / 16))
        fail_msg("%g, %g", coarse.error, fine.error);
    us_height_field_destroy(coarse.field);
    us_height_field_destroy(fine.field);
}

static void a_box_gives_a_flat_field_without_error(void **state) {
    (void)state;
    us_geom box = {.kind = US_GEOM_BOX, .size = {1, 2, 0.25}};
    for (int is_bound = 0; is_bound < 2; is_bound++) {
        made m = make(&box, 5, 4, is_bound);
        assert_true(m.error <= 1e-6);
        assert_true(fabs(m.field->low - 0.25) <= 1e-6 && fabs(m.field->high - 0.25) <= 1e-6);
        us_height_field_destroy(m.field);
    }
}

static void a_bound_holds_every_kind_and_is_off_by_no_more_than_it_says(void **state) {
    (void)state;
    for (int kind = 0; kind < US_GEOM_COUNT; kind++) {
        if (kind == US_GEOM_HALF_SPACE) continue;
        for (uint64_t k = 0; k < 3; k++) {
            pairs_shape s;
            pairs_shape_make((us_geom_kind)kind, 100 + k, &s);
            us_aabb box = us_geom_box(&s.geom, us_pose_identity());
            if (!(box.max.x - box.min.x > 0 && box.max.y - box.min.y > 0)) continue;
            made m = make(&s.geom, 9, 7, true);
            double tall = box.max.z - box.min.z, least = INFINITY, most = 0;
            for (uint64_t i = 0; i < 400; i++) {
                double x = pairs_random(k, 2 * i, box.min.x, box.max.x),
                       y = pairs_random(k, 2 * i + 1, box.min.y, box.max.y);
                us_ray_hit hit = us_geom_ray(&s.geom, us_pose_identity(), us_vec3_make(x, y, box.max.z + 1),
                                             us_vec3_make(0, 0, -1), tall + 2);
                if (!isfinite(hit.range)) continue;
                double over = height(&m, x, y) - (box.max.z + 1 - hit.range);
                least = fmin(least, over);
                most = fmax(most, over);
            }
            pairs_at((us_geom_kind)kind, US_GEOM_HEIGHT_FIELD, k);
            // 1e-6 of the height, as promised, and what intersections are known to.
            pairs_expect(least >= -2e-6 * (tall + s.size), "the shape stands out of its bound", least, 0);
            // Nowhere is a bound off by more than the shape is tall; the stated error is the worst at
            // samples, not everywhere.
            pairs_expect(most <= tall * (1 + 1e-6) + 1e-6 && m.error <= tall * (1 + 1e-6) + 1e-6,
                         "the bound is higher than the shape", most, tall);
            us_height_field_destroy(m.field);
            pairs_shape_free(&s);
        }
    }
}

static void a_spike_between_the_rays_is_missed_by_samples_and_held_by_a_bound(void **state) {
    (void)state;
    us_geom_part part[2] = {
        {{.kind = US_GEOM_BOX, .size = {1, 1, 0.1}}, us_pose_identity()},
        {{.kind = US_GEOM_CONE, .size = {0.02, 0.5}}, {us_quat_identity(), {0.13, 0.17, 0.5}}}};
    us_geom spiked = {.kind = US_GEOM_UNION, .parts = part, .n_part = 2};
    made samples = make(&spiked, 9, 9, false), bound = make(&spiked, 9, 9, true);
    assert_true(height(&samples, 0.13, 0.17) < 0.2);
    assert_true(height(&bound, 0.13, 0.17) >= 1 - 1e-6);
    // Away from the spike the bound is the plate.
    assert_true(fabs(height(&bound, -0.5, -0.5) - 0.1) < 1e-5);
    us_height_field_destroy(samples.field);
    us_height_field_destroy(bound.field);
}

static void what_has_no_end_or_no_width_is_refused(void **state) {
    (void)state;
    us_geom ground = {.kind = US_GEOM_HALF_SPACE}, line = {.kind = US_GEOM_CAPSULE, .size = {1}},
            ball = {.kind = US_GEOM_SPHERE, .radius = 1};
    us_geom bad = {.kind = US_GEOM_SPHERE, .radius = -1};
    us_height_field *field = NULL;
    us_pose X;
    us_error err;
    assert_int_equal(us_height_field_create_from(&ground, 3, 3, false, NULL, &field, &X, NULL, &err),
                     US_ERR_VALUE);
    assert_int_equal(us_height_field_create_from(&line, 3, 3, true, NULL, &field, &X, NULL, &err),
                     US_ERR_VALUE);
    assert_true(strlen(err.message) > 0 && strlen(err.remedy) > 0);
    assert_int_equal(us_height_field_create_from(&bad, 3, 3, false, NULL, &field, &X, NULL, &err),
                     US_ERR_VALUE);
    assert_int_equal(us_height_field_create_from(&ball, 1, 3, false, NULL, &field, &X, NULL, &err),
                     US_ERR_VALUE);
    assert_int_equal(us_height_field_create_from(&ball, 100000, 100000, false, NULL, &field, &X, NULL, &err),
                     US_ERR_LIMIT);
    assert_int_equal(us_height_field_create_from(NULL, 3, 3, false, NULL, &field, &X, NULL, &err),
                     US_ERR_ARG);
    assert_int_equal(us_height_field_create_from(&ball, 3, 3, false, NULL, NULL, &X, NULL, NULL), US_ERR_ARG);
    assert_null(field);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_a_ball_are_its_upper_half),
        cmocka_unit_test(the_stated_error_shrinks_with_the_square_of_the_spacing_on_a_smooth_side),
        cmocka_unit_test(a_box_gives_a_flat_field_without_error),
        cmocka_unit_test(a_bound_holds_every_kind_and_is_off_by_no_more_than_it_says),
        cmocka_unit_test(a_spike_between_the_rays_is_missed_by_samples_and_held_by_a_bound),
        cmocka_unit_test(what_has_no_end_or_no_width_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

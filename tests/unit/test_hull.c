// Convex polyhedra: that what comes back is one closed, convex surface around all the points, whatever the
// points are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "build.h"
#include "geom/geom.h"

static const double pi = 3.14159265358979323846;

static uint64_t counter;

static us_vec3 random_direction(void) {
    return us_quat_rotate(build_random_rotation(11, &counter), us_vec3_make(0, 0, 1));
}

static us_hull *create(const us_vec3 *p, int32_t n) {
    us_hull *hull = NULL;
    us_error err = {0};
    us_status status = us_hull_create(p, n, NULL, &hull, &err);
    if (status) fail_msg("%s", err.message);
    return hull;
}

// Everything that a hull promises. `slack`: how far a point may stick out of a face. Points within 1e-6 of
// the size are one, and facets are merged up to 2e-7 of it.
static void assert_is_hull(const us_hull *h, const us_vec3 *p, int32_t n, double size) {
    const double slack = 1.5e-6 * size;
    assert_int_equal(h->n_vertex - h->n_edge + h->n_face, 2);
    assert_int_equal(h->face_start[0], 0);
    assert_int_equal(h->face_start[h->n_face], 2 * h->n_edge);
    assert_int_equal(h->neighbour_start[0], 0);
    assert_int_equal(h->neighbour_start[h->n_vertex], 2 * h->n_edge);
    for (int32_t f = 0; f < h->n_face; f++) {
        assert_true(h->face_start[f + 1] - h->face_start[f] >= 3);
        assert_true(fabs(us_vec3_norm(h->normal[f]) - 1) < 1e-14);
        for (int32_t i = 0; i < n; i++)
            assert_true(us_vec3_dot(h->normal[f], p[i]) <= h->offset[f] + slack);
        for (int32_t k = h->face_start[f]; k < h->face_start[f + 1]; k++) {
            assert_true(us_vec3_dot(h->normal[f], h->vertex[h->face_vertex[k]]) >= h->offset[f] - slack);
        }
    }
    for (int32_t e = 0; e < h->n_edge; e++) {
        // The left face has the edge upwards, the right one downwards.
        const int32_t *edge = h->edge[e];
        assert_true(edge[0] < edge[1] && edge[2] != edge[3]);
        for (int side = 0; side < 2; side++) {
            int32_t f = edge[2 + side], first = h->face_start[f], count = h->face_start[f + 1] - first,
                    found = 0;
            for (int32_t k = 0; k < count; k++) {
                int32_t a = h->face_vertex[first + k], b = h->face_vertex[first + (k + 1) % count];
                if (a == edge[side] && b == edge[1 - side]) found++;
            }
            assert_int_equal(found, 1);
            // Each end knows the other.
            int32_t v = edge[side];
            found = 0;
            for (int32_t k = h->neighbour_start[v]; k < h->neighbour_start[v + 1]; k++)
                found += h->neighbour[k] == edge[1 - side];
            assert_int_equal(found, 1);
        }
    }
    // Every vertex is one of the points.
    for (int32_t v = 0; v < h->n_vertex; v++) {
        bool found = false;
        for (int32_t i = 0; i < n && !found; i++)
            found = memcmp(&h->vertex[v], &p[i], sizeof *p) == 0;
        assert_true(found);
    }
}

static void a_cube_has_six_square_faces_whatever_else_lies_in_it(void **state) {
    (void)state;
    // 4 x 4 x 4 points: corners, and points on edges, on faces and inside.
    us_vec3 p[64];
    for (int i = 0; i < 64; i++)
        p[i] = us_vec3_make(i % 4 / 3.0, i / 4 % 4 / 3.0, i / 16 / 3.0);
    us_hull *h = create(p, 64);
    assert_is_hull(h, p, 64, 1);
    assert_int_equal(h->n_vertex, 8);
    assert_int_equal(h->n_face, 6);
    assert_int_equal(h->n_edge, 12);
    us_hull_destroy(h);
}

static void a_cube_from_a_file_with_seven_digits_still_has_six_faces(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        us_quat q = build_random_rotation(11, &counter);
        us_vec3 p[8],
            size = us_vec3_make(1, build_uniform(11, &counter, 0.2, 1), build_uniform(11, &counter, 0.2, 1));
        for (int i = 0; i < 8; i++) {
            us_vec3 x = us_quat_rotate(q, us_vec3_make(i & 1 ? size.x : -size.x, i & 2 ? size.y : -size.y,
                                                       i & 4 ? size.z : -size.z));
            p[i] = us_vec3_make((float)x.x, (float)x.y, (float)x.z);
        }
        us_hull *h = create(p, 8);
        assert_is_hull(h, p, 8, 1);
        assert_int_equal(h->n_vertex, 8);
        assert_int_equal(h->n_face, 6);
        us_hull_destroy(h);
    }
}

static void a_prism_has_two_large_faces_and_a_ring_of_small_ones(void **state) {
    (void)state;
    enum { N = 48 };
    us_vec3 p[2 * N];
    for (int i = 0; i < 2 * N; i++)
        p[i] = us_vec3_make((float)cos(2 * pi * i / N), (float)sin(2 * pi * i / N), i < N ? -1 : 1);
    us_hull *h = create(p, 2 * N);
    assert_is_hull(h, p, 2 * N, 1);
    assert_int_equal(h->n_vertex, 2 * N);
    assert_int_equal(h->n_face, N + 2);
    int large = 0;
    for (int32_t f = 0; f < h->n_face; f++)
        large += h->face_start[f + 1] - h->face_start[f] == N;
    assert_int_equal(large, 2);
    us_hull_destroy(h);
}

static void random_points_of_any_number_size_and_place_get_a_hull(void **state) {
    (void)state;
    static const double sizes[] = {1, 1e-6, 1e6, 1e-12};
    us_vec3 *p = malloc(2000 * sizeof *p);
    for (int round = 0; round < 120; round++) {
        int32_t n = round % 3 == 0 ? 4 + round / 3 : round % 3 == 1 ? 200 : round < 60 ? 1000 : 30;
        double size = sizes[round % 4];
        us_vec3 place = us_vec3_scale(round % 5 == 0 ? 1000 * size : 0, random_direction());
        for (int32_t i = 0; i < n; i++) {
            // On a ball, in a cube, and on a coarse grid with many points in one place.
            us_vec3 d = random_direction(), c = build_random_vec3(11, &counter, 1);
            us_vec3 x = round % 2 == 0   ? d
                        : round % 4 == 1 ? c
                                         : us_vec3_make(floor(3 * c.x), floor(3 * c.y), floor(3 * c.z));
            p[i] = us_vec3_add(place, us_vec3_scale(size, x));
        }
        us_hull *h = create(p, n);
        assert_is_hull(h, p, n, 3 * size);
        us_hull_destroy(h);
    }
    free(p);
}

static void points_that_nearly_coincide_still_get_a_hull_whose_support_points_are_right(void **state) {
    (void)state;
    // A globe of 16 by 9 places, many points in each, scattered by anything from rounding to a tenth: the
    // hard case for merging.
    us_vec3 p[400];
    for (int round = 0; round < 150; round++) {
        double scatter = pow(10, -16 + 0.1 * round);
        for (int i = 0; i < 400; i++) {
            double a = 2 * pi * floor(build_uniform(11, &counter, 0, 16)) / 16,
                   b = pi * floor(build_uniform(11, &counter, 0, 9)) / 8;
            p[i] = us_vec3_add(us_vec3_make(sin(b) * cos(a), sin(b) * sin(a), cos(b)),
                               build_random_vec3(11, &counter, scatter));
        }
        us_hull *h = create(p, 400);
        assert_is_hull(h, p, 400, 1.5);
        us_geom g = {.kind = US_GEOM_CONVEX, .hull = h};
        for (int k = 0; k < 50; k++) {
            us_vec3 d = random_direction();
            double far = -INFINITY;
            for (int i = 0; i < 400; i++)
                far = fmax(far, us_vec3_dot(p[i], d));
            // Points within 1e-6 of each other are one; merging may take 2e-7 more, and its faces may be bent
            // by 3e-6.
            assert_true(us_vec3_dot(usi_core_support(&g, d), d) >= far - 5e-6);
        }
        us_hull_destroy(h);
    }
}

static void thin_plates_keep_their_two_sides(void **state) {
    (void)state;
    us_vec3 p[8];
    for (int i = 0; i < 8; i++)
        p[i] = us_vec3_make(i & 1 ? 1 : -1, i & 2 ? 1 : -1, i & 4 ? 1e-4 : -1e-4);
    us_hull *h = create(p, 8);
    assert_is_hull(h, p, 8, 1);
    assert_int_equal(h->n_face, 6);
    us_hull_destroy(h);
}

static void the_first_vertices_of_a_large_hull_are_spread_over_it(void **state) {
    (void)state;
    us_vec3 p[400];
    for (int i = 0; i < 400; i++)
        p[i] = random_direction();
    us_hull *h = create(p, 400);
    // 16 points spread over a sphere: no direction is farther than 60 degrees from the nearest (36 is the
    // best possible).
    for (int i = 0; i < 1000; i++) {
        us_vec3 d = random_direction();
        double best = -1;
        for (int v = 0; v < 16; v++)
            best = fmax(best, us_vec3_dot(d, h->vertex[v]));
        assert_true(best > 0.5);
    }
    us_hull_destroy(h);
}

static void the_same_points_give_the_same_hull_to_the_last_bit(void **state) {
    (void)state;
    us_vec3 p[300];
    for (int i = 0; i < 300; i++)
        p[i] = random_direction();
    us_hull *a = create(p, 300), *b = create(p, 300);
    assert_int_equal(a->bytes, b->bytes);
    // All arrays lie behind the struct, in one block.
    size_t head = (sizeof *a + 63) / 64 * 64;
    assert_memory_equal((char *)a + head, (char *)b + head, a->bytes - head);
    us_hull_destroy(a);
    us_hull_destroy(b);
}

static void expect_refusal(const us_vec3 *p, int32_t n, us_status status, const char *words) {
    us_error err = {0};
    us_hull *hull = NULL;
    assert_int_equal(us_hull_create(p, n, NULL, &hull, &err), status);
    assert_null(hull);
    if (!strstr(err.message, words)) fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_true(err.remedy[0] != 0);
}

static void points_without_a_solid_are_refused(void **state) {
    (void)state;
    us_vec3 p[20];
    us_hull *hull = NULL;
    for (int i = 0; i < 20; i++)
        p[i] = random_direction();
    expect_refusal(p, 3, US_ERR_VALUE, "3 points");
    expect_refusal(NULL, 4, US_ERR_ARG, "NULL");
    assert_int_equal(us_hull_create(p, 20, NULL, NULL, NULL), US_ERR_ARG);
    us_vec3 keep = p[7];
    p[7].y = NAN;
    expect_refusal(p, 20, US_ERR_VALUE, "point 7");
    p[7].y = INFINITY;
    expect_refusal(p, 20, US_ERR_VALUE, "point 7");
    p[7] = keep;
    us_quat q = build_random_rotation(11, &counter);
    for (int i = 0; i < 20; i++)
        p[i] = us_quat_rotate(q, us_vec3_make(cos(i), sin(i), 0.3));
    expect_refusal(p, 20, US_ERR_VALUE, "plane");
    for (int i = 0; i < 20; i++)
        p[i] = us_quat_rotate(q, us_vec3_make(i, 2, 3));
    expect_refusal(p, 20, US_ERR_VALUE, "line");
    for (int i = 0; i < 20; i++)
        p[i] = us_vec3_make(1, 2, 3);
    expect_refusal(p, 20, US_ERR_VALUE, "place");
    us_hull_destroy(hull);  // NULL is allowed
}

static void without_memory_a_hull_says_so_and_leaves_nothing_behind(void **state) {
    (void)state;
    us_vec3 p[50];
    for (int i = 0; i < 50; i++)
        p[i] = random_direction();
    for (int64_t fail_at = 1;; fail_at++) {
        test_allocator t;
        us_hull *hull = NULL;
        us_error err = {0};
        test_allocator_init(&t);
        t.fail_at = fail_at;
        us_status status = us_hull_create(p, 50, &t.allocator, &hull, &err);
        if (t.n_failed == 0) {
            assert_int_equal(status, US_OK);
            assert_true(fail_at > 2);  // scratch and hull
            us_hull_destroy(hull);
            test_allocator_check(&t);
            break;
        }
        assert_int_equal(status, US_ERR_MEMORY);
        assert_int_equal(err.code, US_ERR_MEMORY);
        assert_null(hull);
        test_allocator_check(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cube_has_six_square_faces_whatever_else_lies_in_it),
        cmocka_unit_test(a_cube_from_a_file_with_seven_digits_still_has_six_faces),
        cmocka_unit_test(a_prism_has_two_large_faces_and_a_ring_of_small_ones),
        cmocka_unit_test(random_points_of_any_number_size_and_place_get_a_hull),
        cmocka_unit_test(points_that_nearly_coincide_still_get_a_hull_whose_support_points_are_right),
        cmocka_unit_test(thin_plates_keep_their_two_sides),
        cmocka_unit_test(the_first_vertices_of_a_large_hull_are_spread_over_it),
        cmocka_unit_test(the_same_points_give_the_same_hull_to_the_last_bit),
        cmocka_unit_test(points_without_a_solid_are_refused),
        cmocka_unit_test(without_memory_a_hull_says_so_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

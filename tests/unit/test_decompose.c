// Convex parts of meshes: their number for shapes that are made of few boxes, what they cover, and whether
// the stated error is true.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "geom/standoff.h"

enum { MAX_VERTICES = 4096, MAX_TRIANGLES = 8192, MAX_PARTS = 64 };

typedef struct drawing {
    int32_t n_vertex, n_triangle;
    us_vec3 vertex[MAX_VERTICES];
    int32_t triangle[MAX_TRIANGLES][3];
} drawing;

static drawing paper;

static void draw_triangle(int32_t a, int32_t b, int32_t c) {
    int32_t *t = paper.triangle[paper.n_triangle++];
    t[0] = a;
    t[1] = b;
    t[2] = c;
}

static bool is_left(const double (*p)[2], int a, int b, int c) {
    return (p[b][0] - p[a][0]) * (p[c][1] - p[a][1]) - (p[b][1] - p[a][1]) * (p[c][0] - p[a][0]) > 1e-12;
}

// A prism over a simple polygon (counter-clockwise): ears are cut off one by one.
static us_mesh *prism(const double (*p)[2], int n, double height) {
    memset(&paper, 0, sizeof paper);
    for (int i = 0; i < 2 * n; i++)
        paper.vertex[paper.n_vertex++] = us_vec3_make(p[i % n][0], p[i % n][1], i < n ? 0 : height);
    for (int i = 0; i < n; i++) {
        int j = (i + 1) % n;
        draw_triangle(i, j, n + j);
        draw_triangle(i, n + j, n + i);
    }
    int left[64], m = n;
    for (int i = 0; i < n; i++)
        left[i] = i;
    while (m > 2) {
        int ear = -1;
        for (int i = 0; i < m && ear < 0; i++) {
            int a = left[(i + m - 1) % m], b = left[i], c = left[(i + 1) % m];
            bool is_ear = is_left(p, a, b, c);
            for (int k = 0; k < m && is_ear; k++) {
                int q = left[k];
                if (q == a || q == b || q == c) continue;
                if (!is_left(p, b, a, q) && !is_left(p, c, b, q) && !is_left(p, a, c, q)) is_ear = false;
            }
            if (is_ear) ear = i;
        }
        assert_true(ear >= 0);
        int a = left[(ear + m - 1) % m], b = left[ear], c = left[(ear + 1) % m];
        draw_triangle(a, c, b);
        draw_triangle(n + a, n + b, n + c);
        for (int k = ear; k + 1 < m; k++)
            left[k] = left[k + 1];
        m--;
    }
    us_mesh *mesh = NULL;
    assert_int_equal(us_mesh_create(paper.vertex, paper.n_vertex, (const int32_t(*)[3])paper.triangle,
                                    paper.n_triangle, NULL, &mesh, NULL),
                     US_OK);
    assert_true(mesh->is_closed);
    return mesh;
}

static us_mesh *torus(double R, double r, int n_around, int n_tube) {
    const double turn = 2 * 3.14159265358979323846;
    memset(&paper, 0, sizeof paper);
    for (int i = 0; i < n_around; i++) {
        for (int j = 0; j < n_tube; j++) {
            double a = turn * i / n_around, b = turn * j / n_tube, out = R + r * cos(b);
            paper.vertex[paper.n_vertex++] = us_vec3_make(out * cos(a), out * sin(a), r * sin(b));
            int i2 = (i + 1) % n_around, j2 = (j + 1) % n_tube;
            draw_triangle(i * n_tube + j, i2 * n_tube + j, i2 * n_tube + j2);
            draw_triangle(i * n_tube + j, i2 * n_tube + j2, i * n_tube + j2);
        }
    }
    us_mesh *mesh = NULL;
    assert_int_equal(us_mesh_create(paper.vertex, paper.n_vertex, (const int32_t(*)[3])paper.triangle,
                                    paper.n_triangle, NULL, &mesh, NULL),
                     US_OK);
    assert_true(mesh->is_closed);
    return mesh;
}

typedef struct parts {
    us_hull *hull[MAX_PARTS];
    int32_t n;
    double error;
} parts;

static void parts_free(parts *p) {
    for (int32_t i = 0; i < p->n; i++)
        us_hull_destroy(p->hull[i]);
}

static double random_in(uint64_t stream, uint64_t counter, double low, double high) {
    return low + (high - low) * us_random_uniform(20, stream, counter);
}

static bool hull_holds(const us_hull *h, us_vec3 p, double by) {
    for (int32_t f = 0; f < h->n_face; f++)
        if (us_vec3_dot(h->normal[f], p) > h->offset[f] + by) return false;
    return true;
}

// Dense random points on all hulls are never farther from the solid than stated, and the stated error is not
// much too large. Random points in the solid are all in some part.
static void check_parts(const us_mesh *mesh, const parts *p, double max_error) {
    double found = 0;
    uint64_t counter = 0;
    us_vec3 low = mesh->node[0].min, high = mesh->node[0].max;
    double size = us_vec3_norm(us_vec3_sub(high, low));
    for (int32_t i = 0; i < p->n; i++) {
        const us_hull *h = p->hull[i];
        for (int32_t f = 0; f < h->n_face; f++) {
            const int32_t *c = h->face_vertex + h->face_start[f];
            for (int32_t k = 1; k + 1 < h->face_start[f + 1] - h->face_start[f]; k++) {
                us_vec3 a = h->vertex[c[0]], e = us_vec3_sub(h->vertex[c[k]], a),
                        g = us_vec3_sub(h->vertex[c[k + 1]], a);
                int n = 20 + (int)(20000 * us_vec3_norm(us_vec3_cross(e, g)) / (size * size));
                for (int s = 0; s < n; s++) {
                    double u = random_in(1, counter, 0, 1), v = random_in(2, counter++, 0, 1);
                    if (u + v > 1) {
                        u = 1 - u;
                        v = 1 - v;
                    }
                    us_vec3 x = us_vec3_add(a, us_vec3_add(us_vec3_scale(u, e), us_vec3_scale(v, g)));
                    double d = usi_mesh_nearest(mesh, x).distance;
                    if (d > found && !usi_mesh_contains(mesh, x)) found = d;
                }
            }
        }
    }
    // 1e-12: rounding of points and distances of about 1 m.
    assert_true(found <= p->error + 1e-12);
    // The bound resolves nothing finer than a fifth of max_error and stops within 5 %; random points come
    // within a tenth of the true maximum.
    assert_true(p->error <= 1.16 * found + 0.21 * max_error);
    int inside = 0;
    for (uint64_t s = 0; s < 4000; s++) {
        us_vec3 x = us_vec3_make(random_in(3, s, low.x, high.x), random_in(4, s, low.y, high.y),
                                 random_in(5, s, low.z, high.z));
        if (!usi_mesh_contains(mesh, x)) continue;
        inside++;
        bool is_held = false;
        for (int32_t i = 0; i < p->n && !is_held; i++)
            is_held = hull_holds(p->hull[i], x, 4e-6 * size);  // hulls may lose 1.5e-6 of their size
        assert_true(is_held);
    }
    assert_true(inside > 100);
}

static parts decomposed(const us_mesh *mesh, double max_error, int32_t max_part) {
    parts p = {0};
    us_error err = {0};
    assert_int_equal(us_mesh_decompose(mesh, max_error, max_part, NULL, p.hull, &p.n, &p.error, &err), US_OK);
    assert_true(p.n >= 1 && p.n <= max_part);
    if (getenv("US_SHOW")) printf("%d parts, error %.3g of %.3g\n", (int)p.n, p.error, max_error);
    return p;
}

static const double ell[6][2] = {{0, 0}, {2, 0}, {2, 0.5}, {0.5, 0.5}, {0.5, 1.5}, {0, 1.5}};
static const double you[8][2] = {{0, 0}, {3, 0}, {3, 2}, {2, 2}, {2, 1}, {1, 1}, {1, 2}, {0, 2}};

static void a_convex_mesh_is_one_part(void **state) {
    (void)state;
    const double hexagon[6][2] = {{1, 0}, {0.5, 0.9}, {-0.5, 0.9}, {-1, 0}, {-0.5, -0.9}, {0.5, -0.9}};
    us_mesh *mesh = prism(hexagon, 6, 0.7);
    parts p = decomposed(mesh, 0.01, 8);
    assert_int_equal(p.n, 1);
    assert_true(
        p.error <=
        0.002);  // the hull's faces are the mesh's; the bound resolves nothing finer than a fifth of the 0.01
    check_parts(mesh, &p, 0.01);
    parts_free(&p);
    us_mesh_destroy(mesh);
}

static void an_ell_is_two_boxes(void **state) {
    (void)state;
    us_mesh *mesh = prism(ell, 6, 0.4);
    parts p = decomposed(mesh, 0.01, 8);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.hull[0]->n_vertex, 8);
    assert_int_equal(p.hull[1]->n_vertex, 8);
    assert_true(p.error <= 0.002);
    check_parts(mesh, &p, 0.01);
    parts_free(&p);
    us_mesh_destroy(mesh);
}

static void a_you_is_three_boxes(void **state) {
    (void)state;
    us_mesh *mesh = prism(you, 8, 1);
    parts p = decomposed(mesh, 0.01, 8);
    assert_int_equal(p.n, 3);
    assert_true(p.error <= 0.002);
    check_parts(mesh, &p, 0.01);
    parts_free(&p);
    us_mesh_destroy(mesh);
}

static void a_star_of_five_points_falls_into_at_most_six_parts(void **state) {
    (void)state;
    const double turn = 2 * 3.14159265358979323846;
    double p10[10][2];
    for (int i = 0; i < 10; i++) {
        double r = i % 2 ? 0.38196601125 : 1;  // a pentagram: its sides run on from point to point
        p10[i][0] = r * cos(turn * i / 10);
        p10[i][1] = r * sin(turn * i / 10);
    }
    us_mesh *mesh = prism((const double(*)[2])p10, 10, 0.3);
    parts p = decomposed(mesh, 0.005, 16);
    assert_true(p.n <= 6);
    assert_true(p.error <= 0.005);
    check_parts(mesh, &p, 0.005);
    parts_free(&p);
    us_mesh_destroy(mesh);
}

static void a_ring_is_cut_until_its_parts_fit(void **state) {
    (void)state;
    us_mesh *mesh = torus(1, 0.25, 48, 16);
    parts p = decomposed(mesh, 0.05, 32);
    assert_true(p.error <= 0.05);
    // An arc of angle t stands off by 0.75 (1 - cos(t/2)): 8.6 arcs would do.
    assert_true(p.n >= 8 && p.n <= 18);
    check_parts(mesh, &p, 0.05);
    parts_free(&p);
    us_mesh_destroy(mesh);
}

static void too_few_parts_say_how_far_they_stand_off(void **state) {
    (void)state;
    us_mesh *mesh = torus(1, 0.25, 32, 12);
    double last = INFINITY;
    for (int32_t n = 1; n <= 8; n *= 2) {
        parts p = decomposed(mesh, 0.01, n);
        assert_int_equal(p.n, n);
        assert_true(p.error > 0.01);
        if (n != 2) assert_true(p.error < last);  // halves of a ring stand off as much as the whole
        last = p.error;
        check_parts(mesh, &p, 0.01);
        parts_free(&p);
    }
    us_mesh_destroy(mesh);
}

static void a_bottle_with_a_narrow_mouth_is_not_taken_for_solid(void **state) {
    (void)state;
    // A wide hollow that opens through a slot of 0.04: seen from the surface alone it would be a dent of
    // 0.02.
    const double bottle[12][2] = {{0, 0},     {2, 0},     {2, 2},     {1.02, 2},   {1.02, 1.8}, {1.8, 1.8},
                                  {1.8, 0.2}, {0.2, 0.2}, {0.2, 1.8}, {0.98, 1.8}, {0.98, 2},   {0, 2}};
    us_mesh *mesh = prism(bottle, 12, 2);
    parts one = decomposed(mesh, 0.05, 1);
    assert_true(one.error > 0.5);
    parts_free(&one);
    parts p = decomposed(mesh, 0.05, 16);
    assert_true(p.n >= 4 && p.n <= 6);
    assert_true(p.error <= 0.05);
    parts_free(&p);
    us_mesh_destroy(mesh);
}

static void the_same_mesh_gives_the_same_parts(void **state) {
    (void)state;
    us_mesh *mesh = torus(1, 0.25, 24, 8);
    parts a = decomposed(mesh, 0.05, 32), b = decomposed(mesh, 0.05, 32);
    assert_int_equal(a.n, b.n);
    assert_true(a.error == b.error);
    for (int32_t i = 0; i < a.n; i++) {
        assert_int_equal(a.hull[i]->n_vertex, b.hull[i]->n_vertex);
        assert_memory_equal(a.hull[i]->vertex, b.hull[i]->vertex,
                            (size_t)a.hull[i]->n_vertex * sizeof(us_vec3));
    }
    parts_free(&a);
    parts_free(&b);
    us_mesh_destroy(mesh);
}

static void what_cannot_be_cut_is_refused_with_a_remedy(void **state) {
    (void)state;
    us_mesh *mesh = prism(ell, 6, 0.4);
    us_hull *hull[8];
    int32_t n = -1;
    double error = -1;
    us_error err;
    assert_int_equal(us_mesh_decompose(NULL, 0.1, 8, NULL, hull, &n, &error, &err), US_ERR_ARG);
    assert_int_equal(us_mesh_decompose(mesh, 0.1, 8, NULL, NULL, &n, &error, &err), US_ERR_ARG);
    assert_int_equal(us_mesh_decompose(mesh, 0, 8, NULL, hull, &n, &error, &err), US_ERR_VALUE);
    assert_true(err.remedy[0]);
    assert_int_equal(us_mesh_decompose(mesh, NAN, 8, NULL, hull, &n, &error, &err), US_ERR_VALUE);
    assert_int_equal(us_mesh_decompose(mesh, 0.1, 0, NULL, hull, &n, &error, &err), US_ERR_VALUE);
    us_mesh_destroy(mesh);
    us_mesh *open = NULL;
    assert_int_equal(us_mesh_create(paper.vertex, paper.n_vertex, (const int32_t(*)[3])paper.triangle,
                                    paper.n_triangle - 1, NULL, &open, NULL),
                     US_OK);
    assert_int_equal(us_mesh_decompose(open, 0.1, 8, NULL, hull, &n, &error, &err), US_ERR_MESH);
    assert_true(err.remedy[0]);
    assert_int_equal(n, -1);
    us_mesh_destroy(open);
}

static void running_out_of_memory_anywhere_leaves_nothing_behind(void **state) {
    (void)state;
    us_mesh *mesh = prism(ell, 6, 0.4);
    bool is_done = false;
    // Few planes are tried on an L, but every one takes memory: each 7th call is made to fail.
    for (int64_t fail_at = 1; !is_done; fail_at += 7) {
        test_allocator t;
        test_allocator_init(&t);
        t.fail_at = fail_at;
        parts p = {0};
        us_error err = {0};
        us_status status = us_mesh_decompose(mesh, 0.01, 8, &t.allocator, p.hull, &p.n, &p.error, &err);
        is_done = t.n_failed == 0;
        assert_int_equal(status, is_done ? US_OK : US_ERR_MEMORY);
        parts_free(&p);
        test_allocator_check(&t);
    }
    us_mesh_destroy(mesh);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convex_mesh_is_one_part),
        cmocka_unit_test(an_ell_is_two_boxes),
        cmocka_unit_test(a_you_is_three_boxes),
        cmocka_unit_test(a_star_of_five_points_falls_into_at_most_six_parts),
        cmocka_unit_test(a_ring_is_cut_until_its_parts_fit),
        cmocka_unit_test(too_few_parts_say_how_far_they_stand_off),
        cmocka_unit_test(a_bottle_with_a_narrow_mouth_is_not_taken_for_solid),
        cmocka_unit_test(the_same_mesh_gives_the_same_parts),
        cmocka_unit_test(what_cannot_be_cut_is_refused_with_a_remedy),
        cmocka_unit_test(running_out_of_memory_anywhere_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

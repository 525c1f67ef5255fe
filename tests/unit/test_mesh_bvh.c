// Triangle meshes and height fields as shapes: what is refused, what is closed, mass properties, and the tree
// of boxes.
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

// A box with corners numbered by bits, seen from outside counter-clockwise.
static const int32_t box_triangles[12][3] = {{0, 2, 1}, {1, 2, 3}, {4, 5, 6}, {5, 7, 6},
                                             {0, 1, 4}, {1, 5, 4}, {2, 6, 3}, {3, 6, 7},
                                             {0, 4, 2}, {2, 4, 6}, {1, 3, 5}, {3, 7, 5}};

static void box_corners(us_vec3 size, us_vec3 centre, us_vec3 *out) {
    for (int i = 0; i < 8; i++)
        out[i] = us_vec3_add(centre, us_vec3_make(i & 1 ? size.x : -size.x, i & 2 ? size.y : -size.y,
                                                  i & 4 ? size.z : -size.z));
}

static us_mesh *create(const us_vec3 *vertices, int32_t n_vertex, const int32_t (*triangles)[3],
                       int32_t n_triangle) {
    us_mesh *mesh = NULL;
    us_error err = {0};
    us_status status = us_mesh_create(vertices, n_vertex, triangles, n_triangle, NULL, &mesh, &err);
    if (status) fail_msg("%s", err.message);
    return mesh;
}

static void assert_close(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g and %.17g differ by more than %g", a, b, tolerance);
}

static void assert_box_inertia(us_inertia I, us_vec3 size, us_vec3 centre, double relative) {
    double m = 8 * size.x * size.y * size.z, x = size.x * size.x, y = size.y * size.y, z = size.z * size.z;
    assert_close(I.mass, m, relative * m);
    assert_close(us_vec3_norm(us_vec3_sub(I.com, centre)), 0, relative);
    double expected[6] = {m / 3 * (y + z), m / 3 * (x + z), m / 3 * (x + y), 0, 0, 0};
    for (int i = 0; i < 6; i++)
        assert_close(I.about_com[i], expected[i], relative * m);
}

// ---- Closed and open ----

static void a_closed_box_of_triangles_weighs_what_the_box_weighs(void **state) {
    (void)state;
    us_vec3 p[8], size = us_vec3_make(0.5, 0.7, 0.9), centre = us_vec3_make(3, -2, 1);
    box_corners(size, centre, p);
    us_mesh *mesh = create(p, 8, box_triangles, 12);
    us_geom g = {.kind = US_GEOM_MESH, .mesh = mesh};
    assert_int_equal(us_geom_check(&g, NULL), US_OK);
    assert_true(mesh->is_closed);
    assert_box_inertia(us_geom_unit_inertia(&g), size, centre, 1e-13);
    us_aabb b = us_geom_box(&g, us_pose_identity());
    assert_close(b.min.x, 2.5, 1e-15);
    assert_close(b.max.z, 1.9, 1e-15);
    // What a swept mesh weighs is not known.
    g.radius = 0.1;
    assert_true(isnan(us_geom_unit_inertia(&g).mass));
    us_mesh_destroy(mesh);
    // A kilometre away, coordinates have lost three digits; nothing else is lost.
    box_corners(size, us_vec3_make(1000, 1000, 1000), p);
    mesh = create(p, 8, box_triangles, 12);
    assert_box_inertia(mesh->unit_inertia, size, us_vec3_make(1000, 1000, 1000), 3e-12);
    us_mesh_destroy(mesh);
}

static void a_missing_triangle_opens_a_mesh(void **state) {
    (void)state;
    us_vec3 p[8];
    box_corners(us_vec3_make(1, 1, 1), us_vec3_make(0, 0, 0), p);
    us_mesh *mesh = create(p, 8, box_triangles, 11);
    us_geom g = {.kind = US_GEOM_MESH, .mesh = mesh};
    assert_false(mesh->is_closed);
    us_inertia I = us_geom_unit_inertia(&g);
    assert_true(isnan(I.mass) && isnan(I.com.x) && isnan(I.about_com[5]));
    us_mesh_destroy(mesh);
    // And so does one that is turned round.
    int32_t t[12][3];
    memcpy(t, box_triangles, sizeof t);
    t[3][0] = box_triangles[3][1];
    t[3][1] = box_triangles[3][0];
    mesh = create(p, 8, (const int32_t(*)[3])t, 12);
    assert_false(mesh->is_closed);
    us_mesh_destroy(mesh);
}

static void triangles_that_share_no_vertices_are_welded_and_those_inside_out_are_turned(void **state) {
    (void)state;
    us_vec3 p[8], own[36], size = us_vec3_make(1, 0.5, 0.25), centre = us_vec3_make(1, 0.5, 0.25);
    int32_t t[12][3];
    // One corner at the origin, some of whose zeros are negative.
    box_corners(size, centre, p);
    for (int i = 0; i < 36; i++) {
        own[i] = p[box_triangles[i / 3][i % 3]];
        if (own[i].x == 0 && i % 2) own[i].x = -0.0;
        t[i / 3][i % 3] = i;
    }
    us_mesh *mesh = create(own, 36, (const int32_t(*)[3])t, 12);
    assert_true(mesh->is_closed);
    assert_box_inertia(mesh->unit_inertia, size, centre, 1e-14);
    us_mesh_destroy(mesh);
    for (int i = 0; i < 12; i++) {
        t[i][0] = box_triangles[i][0];
        t[i][1] = box_triangles[i][2];
        t[i][2] = box_triangles[i][1];
    }
    mesh = create(p, 8, (const int32_t(*)[3])t, 12);
    assert_true(mesh->is_closed);
    assert_box_inertia(mesh->unit_inertia, size, centre, 1e-14);
    // The stored triangles face outwards again: that of the first lies at the bottom.
    const int32_t *c = mesh->triangle[0];
    us_vec3 n = us_vec3_cross(us_vec3_sub(p[c[1]], p[c[0]]), us_vec3_sub(p[c[2]], p[c[0]]));
    assert_true(n.z < 0);
    us_mesh_destroy(mesh);
}

static void triangles_that_are_lines_are_left_out(void **state) {
    (void)state;
    us_vec3 p[9];
    box_corners(us_vec3_make(1, 1, 1), us_vec3_make(0, 0, 0), p);
    p[8] = p[3];
    int32_t t[15][3];
    memcpy(t, box_triangles, sizeof box_triangles);
    t[12][0] = 1;
    t[12][1] = 1;
    t[12][2] = 2;
    t[13][0] = 3;
    t[13][1] = 5;
    t[13][2] = 8;
    t[14][0] = 4;
    t[14][1] = 4;
    t[14][2] = 4;
    us_mesh *mesh = create(p, 9, (const int32_t(*)[3])t, 15);
    assert_int_equal(mesh->n_triangle, 12);
    assert_true(mesh->is_closed);
    us_mesh_destroy(mesh);
    us_mesh *none = NULL;
    us_error err = {0};
    assert_int_equal(us_mesh_create(p, 9, (const int32_t(*)[3])(t + 12), 3, NULL, &none, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "lines or points"));
    assert_null(none);
}

// ---- The tree ----

// Walks the tree with a stack of 64, as queries do, and returns its depth.
static int assert_is_tree(const us_mesh *mesh) {
    struct {
        int32_t node, depth;
    } stack[64];
    int n_stack = 1, deepest = 0;
    int32_t n_seen = 0;
    char *seen = calloc((size_t)mesh->n_triangle, 1);
    stack[0].node = 0;
    stack[0].depth = 0;
    while (n_stack > 0) {
        int32_t at = stack[--n_stack].node, depth = stack[n_stack].depth;
        const usi_bvh_node *node = &mesh->node[at];
        deepest = depth > deepest ? depth : deepest;
        assert_true(node->min.x <= node->max.x && node->min.y <= node->max.y && node->min.z <= node->max.z);
        if (node->count > 0) {
            assert_true(node->count <= 4);
            for (int32_t i = node->first; i < node->first + node->count; i++) {
                int32_t t = mesh->order[i];
                assert_false(seen[t]);
                seen[t] = 1;
                n_seen++;
                for (int k = 0; k < 3; k++) {
                    us_vec3 x = mesh->vertex[mesh->triangle[t][k]];
                    assert_true(x.x >= node->min.x && x.y >= node->min.y && x.z >= node->min.z);
                    assert_true(x.x <= node->max.x && x.y <= node->max.y && x.z <= node->max.z);
                }
            }
            continue;
        }
        for (int k = 0; k < 2; k++) {
            int32_t child = node->first + k;
            assert_true(child > at && child < mesh->n_node);
            us_vec3 low = mesh->node[child].min, high = mesh->node[child].max;
            assert_true(low.x >= node->min.x && low.y >= node->min.y && low.z >= node->min.z);
            assert_true(high.x <= node->max.x && high.y <= node->max.y && high.z <= node->max.z);
            assert_true(n_stack < 64);
            stack[n_stack].node = child;
            stack[n_stack++].depth = depth + 1;
        }
    }
    assert_int_equal(n_seen, mesh->n_triangle);
    free(seen);
    return deepest;
}

enum { N_SOUP = 5000 };

static us_mesh *soup(us_vec3 (*corner)(int32_t triangle, int k)) {
    us_vec3 *p = malloc(3 * N_SOUP * sizeof *p);
    int32_t(*t)[3] = malloc(N_SOUP * sizeof *t);
    for (int32_t i = 0; i < 3 * N_SOUP; i++) {
        p[i] = corner(i / 3, i % 3);
        t[i / 3][i % 3] = i;
    }
    us_mesh *mesh = create(p, 3 * N_SOUP, (const int32_t(*)[3])t, N_SOUP);
    free(p);
    free(t);
    return mesh;
}

static us_vec3 scattered(int32_t triangle, int k) {
    uint64_t c = (uint64_t)triangle * 100;
    us_vec3 centre = build_random_vec3(13, &c, 1);
    c += 50 + 3 * (uint64_t)k;
    return us_vec3_add(centre, build_random_vec3(13, &c, 0.05));
}
static us_vec3 all_alike(int32_t triangle, int k) {
    (void)triangle;
    return us_vec3_make(k == 0, k == 1, k == 2);
}
// Each a constant factor farther out than the last: every split by area takes off a few from the end.
static us_vec3 ever_farther(int32_t triangle, int k) {
    double scale = pow(1.12, triangle % 2500);
    return us_vec3_make(scale * (k == 0 ? 1.01 : 1), scale * (k == 1), scale * (k == 2));
}

static void trees_hold_every_triangle_once_and_are_never_deep(void **state) {
    (void)state;
    us_mesh *mesh = soup(scattered);
    // log2(5000 / 4) = 10.3 levels if all splits were even.
    assert_true(assert_is_tree(mesh) <= 20);
    us_mesh_destroy(mesh);
    mesh = soup(all_alike);
    assert_true(assert_is_tree(mesh) <= 11);
    us_mesh_destroy(mesh);
    mesh = soup(ever_farther);
    int depth = assert_is_tree(mesh);
    // Lopsided to depth 30, then halved.
    assert_true(depth > 20 && depth <= 43);
    us_mesh_destroy(mesh);
}

static void a_tree_leads_to_few_boxes(void **state) {
    (void)state;
    // How many leaves hold a random point: with boxes that hardly overlap, about as many as triangle boxes
    // do.
    us_mesh *mesh = soup(scattered);
    int64_t leaves = 0, triangles = 0;
    enum { POINTS = 300 };
    for (int i = 0; i < POINTS; i++) {
        us_vec3 x = build_random_vec3(17, &counter, 1);
        for (int32_t n = 0; n < mesh->n_node; n++) {
            const usi_bvh_node *b = &mesh->node[n];
            if (b->count == 0) continue;
            if (x.x >= b->min.x && x.y >= b->min.y && x.z >= b->min.z && x.x <= b->max.x && x.y <= b->max.y &&
                x.z <= b->max.z)
                leaves++;
        }
        for (int32_t t = 0; t < mesh->n_triangle; t++) {
            us_vec3 low = mesh->vertex[mesh->triangle[t][0]], high = low;
            for (int k = 1; k < 3; k++) {
                us_vec3 c = mesh->vertex[mesh->triangle[t][k]];
                low = us_vec3_make(fmin(low.x, c.x), fmin(low.y, c.y), fmin(low.z, c.z));
                high = us_vec3_make(fmax(high.x, c.x), fmax(high.y, c.y), fmax(high.z, c.z));
            }
            if (x.x >= low.x && x.y >= low.y && x.z >= low.z && x.x <= high.x && x.y <= high.y &&
                x.z <= high.z)
                triangles++;
        }
    }
    // Boxes of two to four triangles at random are some three times as wide as one; an order that ignored
    // place would give a thousand leaves.
    assert_true(leaves < 10 * triangles + 10 * POINTS);
    us_mesh_destroy(mesh);
}

// ---- Refusals ----

static void expect_refusal(const us_vec3 *p, int32_t n, const int32_t (*t)[3], int32_t m, us_status status,
                           const char *words) {
    us_error err = {0};
    us_mesh *mesh = NULL;
    assert_int_equal(us_mesh_create(p, n, t, m, NULL, &mesh, &err), status);
    assert_null(mesh);
    if (!strstr(err.message, words)) fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_true(err.remedy[0] != 0);
}

static void wrong_vertices_and_indices_are_refused(void **state) {
    (void)state;
    us_vec3 p[8];
    int32_t t[12][3];
    const int32_t(*triangles)[3] = (const int32_t(*)[3])t;
    box_corners(us_vec3_make(1, 1, 1), us_vec3_make(0, 0, 0), p);
    memcpy(t, box_triangles, sizeof t);
    expect_refusal(NULL, 8, triangles, 12, US_ERR_ARG, "NULL");
    expect_refusal(p, 8, NULL, 12, US_ERR_ARG, "NULL");
    expect_refusal(p, 8, triangles, 0, US_ERR_VALUE, "0 triangles");
    expect_refusal(p, 2, triangles, 12, US_ERR_VALUE, "2 vertices");
    t[5][1] = 8;
    expect_refusal(p, 8, triangles, 12, US_ERR_VALUE, "triangle 5 of a mesh has vertex 8 of 8");
    t[5][1] = -1;
    expect_refusal(p, 8, triangles, 12, US_ERR_VALUE, "vertex -1");
    t[5][1] = 5;
    p[6].z = NAN;
    expect_refusal(p, 8, triangles, 12, US_ERR_VALUE, "vertex 6");
    us_mesh_destroy(NULL);
}

static void without_memory_meshes_and_fields_say_so_and_leave_nothing_behind(void **state) {
    (void)state;
    us_vec3 p[8];
    double heights[6] = {0};
    box_corners(us_vec3_make(1, 1, 1), us_vec3_make(0, 0, 0), p);
    for (int what = 0; what < 2; what++) {
        for (int64_t fail_at = 1;; fail_at++) {
            test_allocator t;
            us_mesh *mesh = NULL;
            us_height_field *field = NULL;
            test_allocator_init(&t);
            t.fail_at = fail_at;
            us_status status = what == 0
                                   ? us_mesh_create(p, 8, box_triangles, 12, &t.allocator, &mesh, NULL)
                                   : us_height_field_create(heights, 3, 2, 1, 1, &t.allocator, &field, NULL);
            if (t.n_failed == 0) {
                assert_int_equal(status, US_OK);
                assert_true(fail_at > 1);
                us_mesh_destroy(mesh);
                us_height_field_destroy(field);
                test_allocator_check(&t);
                break;
            }
            assert_int_equal(status, US_ERR_MEMORY);
            assert_true(!mesh && !field);
            test_allocator_check(&t);
        }
    }
}

// ---- Height fields ----

static void a_height_field_is_centred_and_knows_its_extremes(void **state) {
    (void)state;
    double heights[12] = {1, 2, 3, 4, 5, 6, -7, 8, 9, 10, 11, 12};
    us_height_field *f = NULL;
    assert_int_equal(us_height_field_create(heights, 4, 3, 0.5, 2, NULL, &f, NULL), US_OK);
    heights[0] = 100;  // a copy was taken
    assert_true(f->low == -7 && f->high == 12);
    us_vec3 first = usi_field_point(f, 0, 0), last = usi_field_point(f, 3, 2);
    assert_true(first.x == -0.75 && first.y == -2 && first.z == 1);
    assert_true(last.x == 0.75 && last.y == 2 && last.z == 12);
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f, .radius = 0.25};
    us_aabb b = us_geom_box(&g, us_pose_identity());
    assert_true(b.min.x == -1 && b.max.x == 1 && b.min.y == -2.25 && b.max.y == 2.25 && b.min.z == -7.25 &&
                b.max.z == 12.25);
    // Stood on its side, what was z is x.
    us_pose X = us_pose_identity();
    X.q = us_quat_from_rpy(0, pi / 2, 0);
    X.p.x = 100;
    b = us_geom_box(&g, X);
    assert_close(b.min.x, 92.75, 1e-13);
    assert_close(b.max.x, 112.25, 1e-13);
    assert_close(b.min.z, -1, 1e-14);
    assert_close(b.max.z, 1, 1e-14);
    assert_true(isnan(us_geom_unit_inertia(&g).mass));
    us_height_field_destroy(f);
    us_height_field_destroy(NULL);
}

static void height_fields_without_cells_spacing_or_heights_are_refused(void **state) {
    (void)state;
    double heights[4] = {0, 0, 0, NAN};
    us_height_field *f = NULL;
    us_error err = {0};
    assert_int_equal(us_height_field_create(NULL, 2, 2, 1, 1, NULL, &f, &err), US_ERR_ARG);
    assert_int_equal(us_height_field_create(heights, 2, 2, 1, 1, NULL, NULL, &err), US_ERR_ARG);
    assert_int_equal(us_height_field_create(heights, 1, 2, 1, 1, NULL, &f, &err), US_ERR_VALUE);
    assert_int_equal(us_height_field_create(heights, 2, -2, 1, 1, NULL, &f, &err), US_ERR_VALUE);
    assert_int_equal(us_height_field_create(heights, 2, 2, 0, 1, NULL, &f, &err), US_ERR_VALUE);
    assert_int_equal(us_height_field_create(heights, 2, 2, 1, NAN, NULL, &f, &err), US_ERR_VALUE);
    assert_int_equal(us_height_field_create(heights, 100000, 100000, 1, 1, NULL, &f, &err), US_ERR_LIMIT);
    assert_int_equal(us_height_field_create(heights, 2, 2, 1, 1, NULL, &f, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.message, "(1, 1)"));
    assert_null(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_box_of_triangles_weighs_what_the_box_weighs),
        cmocka_unit_test(a_missing_triangle_opens_a_mesh),
        cmocka_unit_test(triangles_that_share_no_vertices_are_welded_and_those_inside_out_are_turned),
        cmocka_unit_test(triangles_that_are_lines_are_left_out),
        cmocka_unit_test(trees_hold_every_triangle_once_and_are_never_deep),
        cmocka_unit_test(a_tree_leads_to_few_boxes),
        cmocka_unit_test(wrong_vertices_and_indices_are_refused),
        cmocka_unit_test(without_memory_meshes_and_fields_say_so_and_leave_nothing_behind),
        cmocka_unit_test(a_height_field_is_centred_and_knows_its_extremes),
        cmocka_unit_test(height_fields_without_cells_spacing_or_heights_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Contact points on meshes of any density: flat ones as on a plane, bumpy ones by a search over every vertex
// and triangle, in any order of the triangles.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "build.h"
#include "geom/geom.h"

typedef int32_t triple[3];

static const double pi = 3.14159265358979323846;

static uint64_t counter;
static double uniform(double low, double high) { return build_uniform(18, &counter, low, high); }

// A grid of n x n cells over a square of that side, each cell two triangles; columns spread unevenly where
// `sliver` is below 1: every other one is that narrow. Triangles in random order where asked for.
typedef struct grid {
    int32_t n;
    double side, height, sliver;
    bool is_shuffled;
    us_pose X;  // of the grid in the mesh
} grid;

static us_mesh *create_grid(const grid *g) {
    const int32_t n = g->n, n_vertex = (n + 1) * (n + 1), n_triangle = 2 * n * n;
    us_vec3 *v = malloc((size_t)n_vertex * sizeof *v);
    triple *t = malloc((size_t)n_triangle * sizeof *t);
    for (int32_t j = 0; j <= n; j++) {
        for (int32_t i = 0; i <= n; i++) {
            // An odd column lies near the even one before it.
            double u = i % 2 && i < n ? i - 1 + g->sliver : i, x = (u / n - 0.5) * g->side,
                   y = ((double)j / n - 0.5) * g->side;
            v[j * (n + 1) + i] =
                us_pose_point(g->X, us_vec3_make(x, y, g->height > 0 ? uniform(-g->height, 0) : 0));
        }
    }
    for (int32_t k = 0; k < n * n; k++) {
        int32_t a = k / n * (n + 1) + k % n, b = a + 1, c = a + n + 1, d = c + 1;
        const triple low = {a, b, d}, high = {a, d, c};
        for (int s = 0; s < 3; s++) {
            t[2 * k][s] = low[s];
            t[2 * k + 1][s] = high[s];
        }
    }
    for (int32_t k = n_triangle - 1; k > 0 && g->is_shuffled; k--) {
        int32_t other = (int32_t)uniform(0, k + 1), first = (int32_t)uniform(0, 3), copy[3];
        for (int s = 0; s < 3; s++)
            copy[s] = t[k][(s + first) % 3];
        for (int s = 0; s < 3; s++) {
            t[k][s] = t[other][s];
            t[other][s] = copy[s];
        }
    }
    us_mesh *mesh = NULL;
    us_error err = {0};
    if (us_mesh_create(v, n_vertex, (const triple *)t, n_triangle, NULL, &mesh, &err))
        fail_msg("%s", err.message);
    free(v);
    free(t);
    return mesh;
}

// A prism of n corners as a hull.
static us_hull *create_prism(int32_t n, double radius, double half) {
    us_vec3 p[64];
    for (int32_t i = 0; i < n; i++) {
        double a = 2 * pi * i / n;
        p[2 * i] = us_vec3_make(radius * cos(a), radius * sin(a), -half);
        p[2 * i + 1] = us_vec3_make(radius * cos(a), radius * sin(a), half);
    }
    us_hull *hull = NULL;
    assert_int_equal(us_hull_create(p, 2 * n, NULL, &hull, NULL), US_OK);
    return hull;
}

enum { SHAPES = 7 };
static us_geom shape_of(int which, double s, const us_hull *hull) {
    switch (which) {
    case 0:
        return (us_geom){.kind = US_GEOM_BOX, .size = {s, 0.7 * s, 0.3 * s}};
    case 1:
        return (us_geom){.kind = US_GEOM_SPHERE, .radius = s};
    case 2:
        return (us_geom){.kind = US_GEOM_CAPSULE, .size = {s}, .radius = 0.3 * s};
    case 3:
        return (us_geom){.kind = US_GEOM_CYLINDER, .size = {0.8 * s, 0.4 * s}};
    case 4:
        return (us_geom){.kind = US_GEOM_CONVEX, .hull = hull};
    case 5:
        return (us_geom){.kind = US_GEOM_BOX, .size = {s, s, 0.01 * s}, .radius = 0.01 * s};
    default:
        return (us_geom){.kind = US_GEOM_CONE, .size = {0.6 * s, 0.4 * s}};
    }
}

static double deepest(const us_manifold *m) {
    double gap = INFINITY;
    for (int32_t i = 0; i < m->n; i++)
        gap = fmin(gap, m->gap[i]);
    return gap;
}

// How far the points that are in reach extend along d.
static double extent(const us_manifold *m, us_vec3 d) {
    double far = -INFINITY;
    for (int32_t i = 0; i < m->n; i++)
        far = fmax(far, us_vec3_dot(d, m->p_B[i]));
    return far;
}

// A shape on the plane z = 0, level or tilted a little, a little above it or in it.
static us_pose pose_on_plane(const us_geom *A, double size, double max_tilt, bool is_lying) {
    us_pose X = us_pose_identity();
    double tilt = uniform(-max_tilt, max_tilt);
    X.q = us_quat_mul(us_quat_from_rpy(tilt, 0.5 * tilt, 0), us_quat_from_rpy(0, 0, uniform(-3, 3)));
    if (is_lying) X.q = us_quat_mul(X.q, us_quat_from_rpy(0, 0.5 * pi, 0));
    us_vec3 down = us_quat_rotate(us_quat_conj(X.q), us_vec3_make(0, 0, -1));
    X.p = us_vec3_make(uniform(-0.3, 0.3) * size, uniform(-0.3, 0.3) * size,
                       us_vec3_dot(down, us_geom_support(A, down)) + uniform(-1e-3, 1e-3) * size);
    return X;
}

// The same number of points, the same depth, the same normal and, to the chord of a rim, the same patch.
static void compare(const us_manifold *mesh, const us_manifold *plane, us_quat q_WG, double size,
                    bool is_round, bool is_level) {
    // A tilted rim has more drawn points on triangles than the four on the plane.
    if (!is_round || is_level) assert_int_equal(mesh->n, plane->n);
    assert_true(mesh->n >= plane->n);
    // A clipped point within 5e-7 of the deepest one stands for it.
    build_near("depth", deepest(mesh), deepest(plane), 1e-6 * size);
    us_vec3 up = us_quat_rotate(q_WG, us_vec3_make(0, 0, 1));
    for (int32_t i = 0; i < mesh->n; i++)
        build_near("normal", us_vec3_norm(us_vec3_sub(mesh->normal[i], up)), 0, 1e-6);
    for (int k = 0; k < 16; k++) {
        us_vec3 d = us_quat_rotate(q_WG, us_vec3_make(cos(pi * k / 8), sin(pi * k / 8), 0));
        // Four points of a rim lie anywhere on it: none nearer to the middle than a square reaches.
        double far = extent(mesh, d), expected = extent(plane, d);
        if (is_round && is_level) assert_true(far > expected - 0.4 * size);
        if (!is_round) build_near("extent", far, expected, 4e-3 * size);
    }
}

static void check_flat(const grid *g, double size, int poses) {
    us_mesh *m = create_grid(g);
    const us_geom mesh = {.kind = US_GEOM_MESH, .mesh = m}, plane = {.kind = US_GEOM_HALF_SPACE};
    us_hull *hull = create_prism(4, size, 0.5 * size);
    for (int which = 0; which < SHAPES; which++) {
        const us_geom A = shape_of(which, size, hull);
        for (int i = 0; i < poses; i++) {
            us_pose X_GA = pose_on_plane(&A, size, i % 3 ? 0.01 : 0, which == 2 && i % 2);
            us_pose X_WB = {build_random_rotation(18, &counter), build_random_vec3(18, &counter, g->side)};
            us_pose X_WG = us_pose_mul(X_WB, g->X), X_WA = us_pose_mul(X_WG, X_GA);
            us_manifold on_mesh, on_plane;
            assert_int_equal(us_geom_contact(&A, X_WA, &mesh, X_WB, 0.01 * size, &on_mesh), US_OK);
            assert_int_equal(us_geom_contact(&A, X_WA, &plane, X_WG, 0.01 * size, &on_plane), US_OK);
            compare(&on_mesh, &on_plane, X_WG.q, size, which == 3 || which == 6, i % 3 == 0);
        }
    }
    us_hull_destroy(hull);
    us_mesh_destroy(m);
}

static void flat_meshes_of_any_density_are_like_the_plane(void **state) {
    (void)state;
    const int32_t n[] = {1, 2, 7, 40, 160};
    const double side[] = {0.05, 1, 500};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 3; k++)
            check_flat(&(grid){n[i], side[k], 0, 1, k > 0, us_pose_identity()}, 0.2 * side[k],
                       i < 4 ? 30 : 10);
}

static void slivers_and_rounding_make_no_difference(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        us_pose X = {build_random_rotation(18, &counter), build_random_vec3(18, &counter, 1)};
        check_flat(&(grid){40, 1, 0, 1, true, X}, 0.2, 8);
        check_flat(&(grid){40, 1, 0, 1e-3, true, us_pose_identity()}, 0.2, 8);
        check_flat(&(grid){40, 1, 0, 1e-9, true, us_pose_identity()}, 0.2, 8);
        check_flat(&(grid){40, 1, 0, 1e-3, true, X}, 0.2, 8);
    }
}

// ---- Bumps ----

// The gap of the nearest triangle, each by itself.
static double least_distance(const us_geom *A, us_pose X_WA, const us_mesh *m) {
    double least = INFINITY;
    for (int32_t t = 0; t < m->n_triangle; t++) {
        us_geom triangle = {.kind = US_GEOM_TRIANGLE};
        us_gap gap;
        for (int k = 0; k < 3; k++)
            triangle.point[k] = m->vertex[m->triangle[t][k]];
        assert_int_equal(us_geom_distance(A, X_WA, &triangle, us_pose_identity(), &gap), US_OK);
        least = fmin(least, gap.distance);
    }
    return least;
}

// Shapes over bumps, apart by less than the margin: the nearest point is among those found, at its distance.
static void the_nearest_bump_is_found_wherever_it_is(void **state) {
    (void)state;
    const int32_t cells[] = {4, 12, 20};
    double worst = 0;
    int n_off = 0;
    for (int i = 0; i < 3; i++) {
        us_mesh *m = create_grid(&(grid){cells[i], 1, 0.04, 1, true, us_pose_identity()});
        const us_geom mesh = {.kind = US_GEOM_MESH, .mesh = m};
        for (int k = 0; k < 42; k++) {
            const double size = k % 2 ? 0.3 : 1.5;
            us_hull *hull = create_prism(7, size, 0.5 * size);
            const us_geom A = shape_of(k % SHAPES, size, hull);
            us_pose X = pose_on_plane(&A, size, 0.2, false);
            const double wanted = uniform(0.1, 0.9) * 0.002;
            // Down or up until they are as near as wanted: the distance changes no faster than the height.
            for (int step = 0; step < 25; step++)
                X.p.z -= 0.9 * (least_distance(&A, X, m) - wanted);
            const double distance = least_distance(&A, X, m);
            us_manifold found;
            assert_int_equal(us_geom_contact(&A, X, &mesh, us_pose_identity(), 0.004, &found), US_OK);
            if (found.n == 0)
                fail_msg("%d cells, shape %d: no point at a distance of %g", (int)cells[i], k % SHAPES,
                         distance);
            worst = fmax(worst, fabs(deepest(&found) - distance));
            // A rim or a corner over a ridge touches with the normal of the shape or of the faces.
            build_near("gap", deepest(&found), distance, 4e-3 * size);
            n_off += fabs(deepest(&found) - distance) > 1e-6;
            us_hull_destroy(hull);
        }
        us_mesh_destroy(m);
    }
    printf("    gap off by at most %.1e m; %d of 126 by more than 1 um\n", worst, n_off);
    assert_true(n_off < 26);
}

// A level slab on bumps: what holds it against small tilts is found. The judge asks all vertices under it.
static void a_slab_is_held_by_the_outermost_bumps(void **state) {
    (void)state;
    for (int k = 0; k < 20; k++) {
        us_mesh *m = create_grid(&(grid){k < 10 ? 60 : 150, 1, 0.004, 1, true, us_pose_identity()});
        const us_geom mesh = {.kind = US_GEOM_MESH, .mesh = m};
        const double half = k % 2 ? 0.6 : 3;
        const us_geom slab = {.kind = US_GEOM_BOX, .size = {half, half, 0.05}};
        us_pose X = us_pose_identity();
        X.p.z = 0.05 - 1e-4;
        us_manifold found;
        assert_int_equal(us_geom_contact(&slab, X, &mesh, us_pose_identity(), 1e-3, &found), US_OK);
        assert_int_equal(found.n, US_MANIFOLD_POINTS);
        double depth = 0, lost = 0;
        for (int32_t v = 0; v < m->n_vertex; v++) {
            us_vec3 p = m->vertex[v];
            if (fabs(p.x) < half && fabs(p.y) < half) depth = fmax(depth, p.z + 1e-4);
        }
        build_near("depth", -deepest(&found), depth, 1e-5);
        // Turned about an edge of the square through the middle by 1 mrad: how deep would a vertex go that
        // is not held by a point found?
        for (int d = 0; d < 8; d++) {
            us_vec3 u = us_vec3_make(cos(pi * d / 4), sin(pi * d / 4), 0);
            double of_all = -INFINITY, of_found = -INFINITY;
            for (int32_t v = 0; v < m->n_vertex; v++) {
                us_vec3 p = m->vertex[v];
                if (fabs(p.x) < half && fabs(p.y) < half)
                    of_all = fmax(of_all, 1e-3 * us_vec3_dot(u, p) + p.z + 1e-4);
            }
            for (int32_t i = 0; i < found.n; i++)
                of_found = fmax(of_found, 1e-3 * us_vec3_dot(u, found.p_B[i]) - found.gap[i]);
            lost = fmax(lost, of_all - of_found);
        }
        // Eight points hold to 0.3 mm what thousands of vertices hold, of 4 mm high bumps.
        if (!(lost < 3e-4)) fail_msg("%d: %g m of %g are not held", k, lost, depth);
        us_mesh_destroy(m);
    }
}

// ---- Edges ----

// A plate of twelve triangles in random order, numbered from a random corner.
static us_mesh *create_plate(us_vec3 half) {
    static const int32_t sides[12][3] = {{0, 2, 3}, {0, 3, 1}, {4, 5, 7}, {4, 7, 6}, {0, 1, 5}, {0, 5, 4},
                                         {2, 6, 7}, {2, 7, 3}, {0, 4, 6}, {0, 6, 2}, {1, 3, 7}, {1, 7, 5}};
    us_vec3 v[8];
    int32_t t[12][3];
    for (int i = 0; i < 8; i++)
        v[i] = us_vec3_make(i & 1 ? half.x : -half.x, i & 2 ? half.y : -half.y, i & 4 ? half.z : -half.z);
    for (int i = 0; i < 12; i++) {
        int other = (int)uniform(0, i + 1), first = (int)uniform(0, 3);
        for (int k = 0; k < 3; k++)
            t[i][k] = t[other][k];
        for (int k = 0; k < 3; k++)
            t[other][k] = sides[i][(k + first) % 3];
    }
    us_mesh *mesh = NULL;
    assert_int_equal(us_mesh_create(v, 8, (const triple *)t, 12, NULL, &mesh, NULL), US_OK);
    return mesh;
}

// A box that hangs over the edge of a plate stands on as much of it as lies over it, whichever triangle comes
// first: its patch is that of two boxes.
static void a_box_over_the_edge_of_a_plate_keeps_its_patch(void **state) {
    (void)state;
    counter = 0;
    for (int i = 0; i < 600; i++) {
        us_vec3 half = us_vec3_make(1, 0.8, 0.1);
        us_mesh *m = create_plate(half);
        const us_geom mesh = {.kind = US_GEOM_MESH, .mesh = m},
                      plate = {.kind = US_GEOM_BOX, .size = {half.x, half.y, half.z}};
        const double size = i % 3 == 0 ? 0.3 : (i % 3 == 1 ? 1.5 : 30);
        const us_geom box = {.kind = US_GEOM_BOX, .size = {size, size, size}};
        us_pose X = us_pose_identity();
        X.q = us_quat_from_rpy(0, 0, i % 2 ? uniform(-3, 3) : 0);
        X.p = us_vec3_make(uniform(-0.9, 0.9) * (size + half.x), uniform(-0.5, 0.5) * (size + half.y),
                           size + half.z - 1e-5 * size);
        us_manifold on_mesh, on_box;
        assert_int_equal(us_geom_contact(&box, X, &plate, us_pose_identity(), 1e-3, &on_box), US_OK);
        assert_int_equal(us_geom_contact(&box, X, &mesh, us_pose_identity(), 1e-3, &on_mesh), US_OK);
        // Edges that are as near as the depth push sideways.
        if (on_box.n == 0 || on_box.normal[0].z < 1) continue;
        for (int k = 0; k < 16; k++) {
            us_vec3 d = us_vec3_make(cos(pi * k / 8), sin(pi * k / 8), 0);
            double far = extent(&on_mesh, d), expected = extent(&on_box, d);
            // Four of five or six corners of a patch may be others.
            if (!(far > expected - 0.5))
                fail_msg("box %d of half size %g at %g %g: %d points reach %g, those of two boxes %g", i,
                         size, X.p.x, X.p.y, (int)on_mesh.n, far, expected);
        }
        us_mesh_destroy(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_meshes_of_any_density_are_like_the_plane),
        cmocka_unit_test(slivers_and_rounding_make_no_difference),
        cmocka_unit_test(the_nearest_bump_is_found_wherever_it_is),
        cmocka_unit_test(a_slab_is_held_by_the_outermost_bumps),
        cmocka_unit_test(a_box_over_the_edge_of_a_plate_keeps_its_patch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Distances that are known, for every kind of pair: round bodies, boxes, half spaces, unions, meshes, height
// fields.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "instrumented.h"

enum { POSES = IS_INSTRUMENTED ? 100 : 1500 };

// Sizes of a few metres and some twenty roundings.
static const double TINY = 1e-13;
// EPA stops at 1e-11 of the size on round bodies.
static const double ROUND = 1e-9;

static us_mesh *cube_mesh;      // a cube of half length 1
static us_height_field *hills;  // gentle waves
static us_height_field *plain;  // height 0.5
static us_mesh *hills_mesh;     // the same surface as triangles
static const us_pose HERE = {{1, 0, 0, 0}, {0, 0, 0}};

static us_pose at(double x, double y, double z) { return (us_pose){{1, 0, 0, 0}, {x, y, z}}; }
static us_pose turned(us_vec3 r, double x, double y, double z) {
    return (us_pose){us_quat_exp(r), {x, y, z}};
}
static const double QUARTER = 1.57079632679489661923;

static bool is_same(us_vec3 a, us_vec3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
static double apart(us_vec3 a, us_vec3 b) { return us_vec3_norm(us_vec3_sub(a, b)); }

// The gap, after checking what holds for every gap: both orders agree, the points are as far apart as it
// says.
static us_gap gap(const us_geom *A, us_pose X, const us_geom *B, us_pose Y) {
    us_gap g, h;
    assert_int_equal(us_geom_distance(A, X, B, Y, &g), US_OK);
    assert_int_equal(us_geom_distance(B, Y, A, X, &h), US_OK);
    assert_true(isfinite(g.distance) && isfinite(us_vec3_norm(g.p_A)) && isfinite(us_vec3_norm(g.p_B)));
    assert_true(fabs(us_vec3_norm(g.normal) - 1) < TINY);
    assert_true(apart(us_vec3_sub(g.p_A, g.p_B), us_vec3_scale(g.distance, g.normal)) < ROUND);
    assert_true(g.distance == h.distance && is_same(g.p_A, h.p_B) && is_same(g.p_B, h.p_A) &&
                is_same(g.normal, us_vec3_scale(-1, h.normal)));
    return g;
}
static void expect(us_gap g, double distance, us_vec3 normal, double tolerance) {
    if (fabs(g.distance - distance) > tolerance || apart(g.normal, normal) > 1e4 * tolerance)
        fail_msg("distance %.17g normal %g %g %g, expected %.17g, %g %g %g", g.distance, g.normal.x,
                 g.normal.y, g.normal.z, distance, normal.x, normal.y, normal.z);
}
static const us_vec3 UP = {0, 0, 1}, DOWN = {0, 0, -1}, WEST = {-1, 0, 0};

static void spheres_are_centre_distance_less_radii_apart(void **state) {
    (void)state;
    us_geom a = {.kind = US_GEOM_SPHERE, .radius = 0.5}, b = {.kind = US_GEOM_SPHERE, .radius = 0.25};
    us_gap g = gap(&a, HERE, &b, at(3, 0, 4));
    expect(g, 4.25, us_vec3_make(-0.6, 0, -0.8), TINY);
    assert_true(apart(g.p_A, us_vec3_make(0.3, 0, 0.4)) < TINY);
    expect(gap(&a, HERE, &b, at(0.5, 0, 0)), -0.25, WEST, TINY);
    // In one place there is no direction: along z of the world, out by both radii. The smaller is first in
    // the fixed order.
    g = gap(&a, HERE, &b, HERE);
    assert_true(fabs(g.distance + 0.75) < TINY && fabs(fabs(g.normal.z) - 1) < TINY);
}

static void capsules_cross_pass_and_lie_in_line(void **state) {
    (void)state;
    us_geom a = {.kind = US_GEOM_CAPSULE, .radius = 0.1, .size = {1}}, b = a;
    b.radius = 0.2;
    us_vec3 quarter = us_vec3_make(0, QUARTER, 0);
    // Crossing at a right angle, 0.5 m above each other in y.
    expect(gap(&a, HERE, &b, turned(quarter, 0.3, 0.5, -0.4)), 0.2, us_vec3_make(0, -1, 0), TINY);
    // The axes meet: apart across both.
    us_gap g = gap(&a, HERE, &b, turned(quarter, 0, 0, 0));
    assert_true(fabs(g.distance + 0.3) < TINY && fabs(fabs(g.normal.y) - 1) < 1e-9);
    // In one line, end to end, and in one line, overlapping: sideways.
    expect(gap(&a, HERE, &b, at(0, 0, 2.5)), 0.2, DOWN, TINY);
    g = gap(&a, HERE, &b, at(0, 0, 1));
    assert_true(fabs(g.distance + 0.3) < TINY && fabs(g.normal.z) < 1e-9);
    // Parallel.
    expect(gap(&a, HERE, &b, at(1, 0, 0.7)), 0.7, WEST, TINY);
}

static void a_ball_meets_a_box_on_face_edge_corner_and_from_inside(void **state) {
    (void)state;
    us_geom box = {.kind = US_GEOM_BOX, .size = {1, 2, 3}}, ball = {.kind = US_GEOM_SPHERE, .radius = 0.5};
    expect(gap(&ball, at(0.3, 0.4, 4), &box, HERE), 0.5, UP, TINY);
    double s = sqrt(0.5), c = sqrt(1.0 / 3);
    expect(gap(&ball, at(2, 0.4, 4), &box, HERE), sqrt(2) - 0.5, us_vec3_make(s, 0, s), TINY);
    expect(gap(&ball, at(2, 3, 4), &box, HERE), sqrt(3) - 0.5, us_vec3_make(c, c, c), TINY);
    expect(gap(&ball, at(-0.8, 0.1, 0.2), &box, HERE), -0.7, WEST, TINY);
    expect(gap(&ball, at(0, 0, 3), &box, HERE), -0.5, UP, TINY);
}

static void boxes_meet_on_faces_edges_and_corners(void **state) {
    (void)state;
    us_geom a = {.kind = US_GEOM_BOX, .size = {1, 1, 1}}, b = {.kind = US_GEOM_BOX, .size = {0.5, 0.5, 0.5}};
    expect(gap(&b, at(0.2, 0.3, 2), &a, HERE), 0.5, UP, TINY);
    expect(gap(&b, at(0.2, 0.3, 1.4), &a, HERE), -0.1, UP, TINY);
    expect(gap(&b, at(0.2, 0.3, 1.5), &a, HERE), 0, UP, TINY);
    // Edge over edge, crossed.
    us_pose roof = turned(us_vec3_make(0.5 * QUARTER, 0, 0), 0, 0, 0),
            ridge = turned(us_vec3_make(0, 0.5 * QUARTER, 0), 0, 0, 2.5);
    expect(gap(&b, ridge, &a, roof), 2.5 - 1.5 * sqrt(2), UP, TINY);
    ridge.p.z = 2;
    expect(gap(&b, ridge, &a, roof), 2 - 1.5 * sqrt(2), UP, 1e-11);
    // A corner over a face: the diagonal upright.
    us_vec3 axis = us_vec3_scale(acos(sqrt(1.0 / 3)) / sqrt(2), us_vec3_make(1, -1, 0));
    expect(gap(&b, turned(axis, 0.1, 0, 2), &a, HERE), 1 - 0.5 * sqrt(3), UP, TINY);
    expect(gap(&b, turned(axis, 0.1, 0, 1.5), &a, HERE), 0.5 - 0.5 * sqrt(3), UP, 1e-11);
}

static void round_bodies_touch_where_geometry_says(void **state) {
    (void)state;
    us_geom cylinder = {.kind = US_GEOM_CYLINDER, .size = {0.5, 1}},
            cone = {.kind = US_GEOM_CONE, .size = {0.5, 1}};
    us_geom ellipsoid = {.kind = US_GEOM_ELLIPSOID, .size = {1, 2, 3}},
            disc = {.kind = US_GEOM_DISC, .size = {1}};
    us_geom box = {.kind = US_GEOM_BOX, .size = {5, 5, 1}}, ball = {.kind = US_GEOM_SPHERE, .radius = 0.1};
    // A cylinder stands on a slab, lies on it, sinks in.
    expect(gap(&cylinder, at(0.3, 0, 2.5), &box, HERE), 0.5, UP, TINY);
    expect(gap(&cylinder, turned(us_vec3_make(QUARTER, 0, 0), 0, 0, 1.75), &box, HERE), 0.25, UP, ROUND);
    expect(gap(&cylinder, turned(us_vec3_make(QUARTER, 0, 0), 0, 0, 1.25), &box, HERE), -0.25, UP, ROUND);
    // The tip of a cone, from above and from the side.
    expect(gap(&ball, at(0, 0, 1.5), &cone, HERE), 0.4, UP, ROUND);
    double slope = atan2(0.5, 2);
    expect(gap(&ball, at(0.25 + cos(slope), 0, sin(slope)), &cone, HERE), 0.9,
           us_vec3_make(cos(slope), 0, sin(slope)), ROUND);
    // Ellipsoid along an axis, outside and in.
    expect(gap(&ball, at(0, 0, 4), &ellipsoid, HERE), 0.9, UP, ROUND);
    us_gap g = gap(&ball, at(0.01, 0, 0), &ellipsoid, HERE);
    expect(g, -1.09, us_vec3_make(1, 0, 0), ROUND);
    // Discs: face to face, side by side in one plane, one through the other.
    expect(gap(&disc, at(0.3, 0, 0.7), &disc, HERE), 0.7, UP, ROUND);
    expect(gap(&disc, at(-2.5, 0, 0), &disc, HERE), 0.5, WEST, ROUND);
    expect(gap(&disc, turned(us_vec3_make(QUARTER, 0, 0), 0, 0, 0.9), &disc, HERE), -0.1, UP, ROUND);
    g = gap(&disc, at(0.5, 0, 0), &disc, HERE);
    assert_true(fabs(g.distance) < ROUND && fabs(fabs(g.normal.z) - 1) < 1e-6);
}

static void a_half_space_is_met_by_the_lowest_point(void **state) {
    (void)state;
    us_geom ground = {.kind = US_GEOM_HALF_SPACE}, raised = {.kind = US_GEOM_HALF_SPACE, .radius = 0.25};
    us_geom box = {.kind = US_GEOM_BOX, .size = {1, 1, 1}, .radius = 0.1},
            ball = {.kind = US_GEOM_SPHERE, .radius = 1};
    us_gap g = gap(&box, turned(us_vec3_make(0.5 * QUARTER, 0, 0), 0, 0, 1), &ground, HERE);
    expect(g, 1 - sqrt(2) - 0.1, UP, TINY);
    assert_true(fabs(g.p_B.z) < TINY);
    expect(gap(&ball, at(7, 8, 2), &raised, HERE), 0.75, UP, TINY);
    expect(gap(&ball, at(0, 0, -5), &ground, HERE), -6, UP, TINY);
    // The faces look at each other, 3 m apart; turned by any angle they overlap without end.
    us_geom ceiling = {.kind = US_GEOM_HALF_SPACE, .radius = 0.5};
    expect(gap(&ceiling, turned(us_vec3_make(2 * QUARTER, 0, 0), 1, 2, 3), &ground, HERE), 2.5, UP, 1e-12);
    us_gap unchanged = {.distance = 42};
    assert_int_equal(us_geom_distance(&ground, HERE, &ceiling, HERE, &unchanged), US_ERR_ARG);
    assert_int_equal(
        us_geom_distance(&ground, HERE, &ceiling, turned(us_vec3_make(1, 0, 0), 0, 0, 3), &unchanged),
        US_ERR_ARG);
    assert_true(unchanged.distance == 42);
    // Surfaces, by their lowest corner.
    us_geom cube = {.kind = US_GEOM_MESH, .mesh = cube_mesh, .radius = 0.1};
    expect(gap(&cube, at(0, 0, 3), &ground, HERE), 1.9, UP, TINY);
    us_geom field = {.kind = US_GEOM_HEIGHT_FIELD, .field = plain};
    expect(gap(&field, at(0, 0, 3), &ground, HERE), 3.5, UP, TINY);
}

static void a_union_is_as_near_as_its_nearest_part(void **state) {
    (void)state;
    us_geom_part part[2] = {{.geom = {.kind = US_GEOM_SPHERE, .radius = 0.5}, .X_GP = at(-2, 0, 0)},
                            {.geom = {.kind = US_GEOM_BOX, .size = {0.5, 0.5, 0.5}}, .X_GP = at(2, 0, 0)}};
    us_geom two = {.kind = US_GEOM_UNION, .parts = part, .n_part = 2, .radius = 0.05},
            ball = {.kind = US_GEOM_SPHERE, .radius = 0.25};
    expect(gap(&ball, at(-2, 0, 2), &two, HERE), 1.2, UP, TINY);
    expect(gap(&ball, at(2, 0, 2), &two, HERE), 1.2, UP, TINY);
    expect(gap(&ball, at(2, 0, 0.6), &two, HERE), -0.2, UP, TINY);
    // Unions of unions, against each other.
    us_geom_part outer[1] = {{.geom = two, .X_GP = at(0, 0, 5)}};
    us_geom nested = {.kind = US_GEOM_UNION, .parts = outer, .n_part = 1};
    expect(gap(&nested, HERE, &two, HERE), 3.9, UP, TINY);
}

static void bad_shapes_are_refused_and_leave_the_answer_alone(void **state) {
    (void)state;
    us_geom ball = {.kind = US_GEOM_SPHERE, .radius = 1}, none = {.kind = US_GEOM_COUNT},
            hull = {.kind = US_GEOM_CONVEX}, mesh = {.kind = US_GEOM_MESH};
    us_geom field = {.kind = US_GEOM_HEIGHT_FIELD}, empty = {.kind = US_GEOM_UNION},
            both = {.kind = US_GEOM_INTERSECTION};
    us_geom_part part = {.geom = hull, .X_GP = HERE};
    us_geom rotten = {.kind = US_GEOM_UNION, .parts = &part, .n_part = 1};
    const us_geom *bad[] = {NULL, &none, &hull, &mesh, &field, &empty, &both, &rotten};
    us_gap g = {.distance = 42};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(us_geom_distance(&ball, HERE, bad[i], HERE, &g), US_ERR_ARG);
        assert_int_equal(us_geom_distance(bad[i], HERE, &ball, HERE, &g), US_ERR_ARG);
    }
    assert_int_equal(us_geom_distance(&ball, HERE, &ball, HERE, NULL), US_ERR_ARG);
    assert_true(g.distance == 42);
}

static us_geom some_convex(int k, uint64_t *i) {
    const us_geom_kind kind[5] = {US_GEOM_SPHERE, US_GEOM_CAPSULE, US_GEOM_BOX, US_GEOM_CYLINDER,
                                  US_GEOM_TRIANGLE};
    us_geom g = {.kind = kind[k % 5], .radius = 0.2 * us_random_uniform(1, 0, (*i)++)};
    for (int j = 0; j < 3; j++)
        g.size[j] = 0.1 + 0.4 * us_random_uniform(1, 0, (*i)++);
    for (int j = 0; j < 3; j++) {
        g.point[j] = us_vec3_make(us_random_normal(2, 0, *i) * 0.3, us_random_normal(2, 1, *i) * 0.3,
                                  us_random_normal(2, 2, *i) * 0.3);
        (*i)++;
    }
    return g;
}
static us_pose some_pose(uint64_t *i, double reach) {
    us_quat q = {us_random_normal(3, 0, *i), us_random_normal(3, 1, *i), us_random_normal(3, 2, *i),
                 us_random_normal(3, 3, *i)};
    us_vec3 p = {us_random_uniform(4, 0, *i), us_random_uniform(4, 1, *i), us_random_uniform(4, 2, *i)};
    (*i)++;
    return (us_pose){us_quat_normalize(q),
                     us_vec3_scale(2 * reach, us_vec3_sub(p, us_vec3_make(0.5, 0.5, 0.5)))};
}

static void a_closed_mesh_of_a_cube_is_as_far_as_the_box(void **state) {
    (void)state;
    us_geom mesh = {.kind = US_GEOM_MESH, .mesh = cube_mesh}, box = {.kind = US_GEOM_BOX, .size = {1, 1, 1}};
    uint64_t seed = 1;
    for (int k = 0; k < POSES; k++) {
        us_geom g = some_convex(k, &seed);
        us_pose X = some_pose(&seed, 4), Y = some_pose(&seed, 1);
        us_gap by_mesh = gap(&g, X, &mesh, Y), by_box = gap(&g, X, &box, Y);
        if (by_box.distance > 1e-6)
            assert_true(fabs(by_mesh.distance - by_box.distance) < ROUND);
        else
            assert_true(by_mesh.distance < 1e-6);
    }
    // Wholly inside: out through the nearest face.
    us_geom ball = {.kind = US_GEOM_SPHERE, .radius = 0.1};
    expect(gap(&ball, at(0.1, 0.2, 0.7), &mesh, HERE), -0.4, UP, TINY);
    expect(gap(&ball, at(-0.8, 0.2, 0.3), &mesh, HERE), -0.3, WEST, TINY);
    // Half in: middle above the face, and below it.
    expect(gap(&ball, at(0.1, 0.2, 1.05), &mesh, HERE), -0.05, UP, TINY);
    expect(gap(&ball, at(0.1, 0.2, 0.95), &mesh, HERE), -0.15, UP, TINY);
}

// The nearest of all triangles, one by one.
static double brute(const us_geom *g, us_pose X, const us_mesh *m) {
    double best = INFINITY;
    for (int32_t i = 0; i < m->n_triangle; i++) {
        us_geom t = {.kind = US_GEOM_TRIANGLE};
        for (int k = 0; k < 3; k++)
            t.point[k] = m->vertex[m->triangle[i][k]];
        best = fmin(best, usi_convex_gap(g, X, &t, HERE).distance);
    }
    return best;
}

static void the_tree_and_the_blocks_find_the_nearest_of_all_triangles(void **state) {
    (void)state;
    us_geom mesh = {.kind = US_GEOM_MESH, .mesh = hills_mesh},
            field = {.kind = US_GEOM_HEIGHT_FIELD, .field = hills};
    uint64_t seed = 1000;
    for (int k = 0; k < POSES / 10; k++) {
        us_geom g = some_convex(k, &seed);
        us_pose X = some_pose(&seed, k % 2 ? 3 : 12);
        double all = brute(&g, X, hills_mesh);
        us_gap by_mesh = gap(&g, X, &mesh, HERE), by_field = gap(&g, X, &field, HERE);
        // An open mesh is a surface; a height field may be deeper, never nearer from above.
        assert_true(fabs(by_mesh.distance - all) < TINY);
        if (by_field.distance > 0)
            assert_true(fabs(by_field.distance - all) < TINY);
        else
            assert_true(by_field.distance <= fmin(all, 0) + TINY);
    }
}

static void a_shape_under_a_height_field_is_lifted_out(void **state) {
    (void)state;
    us_geom field = {.kind = US_GEOM_HEIGHT_FIELD, .field = plain},
            ball = {.kind = US_GEOM_SPHERE, .radius = 0.4},
            box = {.kind = US_GEOM_BOX, .size = {0.3, 0.2, 0.1}};
    // Over it, on it, half in, under it, far under it; on cells' borders and between.
    const double x[3] = {0, 0.03, 0.5};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 60; k++) {
            double z = 2 - 0.1 * k + 0.01;
            expect(gap(&ball, at(x[i], 0.1, z), &field, HERE), z - 0.9, UP, 1e-11);
            expect(gap(&box, at(x[i], 0.1, z), &field, HERE), z - 0.6, UP, 1e-11);
        }
    // Beside the field there is nothing to be under.
    assert_true(gap(&ball, at(100, 0, -3), &field, HERE).distance > 90);
}

static void surfaces_against_surfaces_find_the_nearest_pair_of_triangles(void **state) {
    (void)state;
    us_geom cube = {.kind = US_GEOM_MESH, .mesh = cube_mesh},
            land = {.kind = US_GEOM_MESH, .mesh = hills_mesh};
    us_geom field = {.kind = US_GEOM_HEIGHT_FIELD, .field = hills},
            flat = {.kind = US_GEOM_HEIGHT_FIELD, .field = plain};
    uint64_t seed = 5000;
    for (int k = 0; k < POSES / 50; k++) {
        us_pose X = some_pose(&seed, 2);
        X.p.z += 5;
        double all = INFINITY;
        for (int32_t i = 0; i < cube_mesh->n_triangle; i++) {
            us_geom t = {.kind = US_GEOM_TRIANGLE};
            for (int c = 0; c < 3; c++)
                t.point[c] = cube_mesh->vertex[cube_mesh->triangle[i][c]];
            all = fmin(all, brute(&t, X, hills_mesh));
        }
        assert_true(fabs(gap(&cube, X, &land, HERE).distance - all) < 1e-12);
        assert_true(fabs(gap(&cube, X, &field, HERE).distance - all) < 1e-12);
    }
    // Upside down over each other.
    expect(gap(&flat, turned(us_vec3_make(2 * QUARTER, 0, 0), 0, 0, 3), &flat, HERE), 2, UP, 1e-11);
    expect(gap(&cube, at(0.2, 0.1, 1.25), &flat, HERE), -0.25, UP, 1e-11);
}

static int set_up(void **state) {
    (void)state;
    us_allocator heap = us_allocator_default();
    us_vec3 corner[8];
    for (int i = 0; i < 8; i++)
        corner[i] = us_vec3_make(i & 1 ? 1 : -1, i & 2 ? 1 : -1, i & 4 ? 1 : -1);
    const int32_t face[12][3] = {{0, 2, 3}, {0, 3, 1}, {4, 5, 7}, {4, 7, 6}, {0, 1, 5}, {0, 5, 4},
                                 {2, 6, 7}, {2, 7, 3}, {0, 4, 6}, {0, 6, 2}, {1, 3, 7}, {1, 7, 5}};
    if (us_mesh_create(corner, 8, face, 12, &heap, &cube_mesh, NULL)) return -1;
    enum { N = 21, M = 17 };
    static double wave[M][N], level[M][N];
    static us_vec3 vertex[M * N];
    static int32_t triangle[2 * (M - 1) * (N - 1)][3];
    int32_t n = 0;
    for (int32_t j = 0; j < M; j++)
        for (int32_t i = 0; i < N; i++) {
            wave[j][i] = 0.3 * sin(0.5 * i) * cos(0.4 * j);
            level[j][i] = 0.5;
        }
    if (us_height_field_create(&wave[0][0], N, M, 0.3, 0.4, &heap, &hills, NULL)) return -1;
    if (us_height_field_create(&level[0][0], N, M, 0.3, 0.4, &heap, &plain, NULL)) return -1;
    for (int32_t j = 0; j < M; j++)
        for (int32_t i = 0; i < N; i++) {
            int32_t v = j * N + i;
            vertex[v] = usi_field_point(hills, i, j);
            if (i + 1 == N || j + 1 == M) continue;
            memcpy(triangle[n++], (int32_t[3]){v, v + 1, v + N + 1}, sizeof triangle[0]);
            memcpy(triangle[n++], (int32_t[3]){v, v + N + 1, v + N}, sizeof triangle[0]);
        }
    return us_mesh_create(vertex, M * N, (const int32_t(*)[3])triangle, n, &heap, &hills_mesh, NULL) ? -1 : 0;
}
static int tear_down(void **state) {
    (void)state;
    us_mesh_destroy(cube_mesh);
    us_mesh_destroy(hills_mesh);
    us_height_field_destroy(hills);
    us_height_field_destroy(plain);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spheres_are_centre_distance_less_radii_apart),
        cmocka_unit_test(capsules_cross_pass_and_lie_in_line),
        cmocka_unit_test(a_ball_meets_a_box_on_face_edge_corner_and_from_inside),
        cmocka_unit_test(boxes_meet_on_faces_edges_and_corners),
        cmocka_unit_test(round_bodies_touch_where_geometry_says),
        cmocka_unit_test(a_half_space_is_met_by_the_lowest_point),
        cmocka_unit_test(a_union_is_as_near_as_its_nearest_part),
        cmocka_unit_test(bad_shapes_are_refused_and_leave_the_answer_alone),
        cmocka_unit_test(a_closed_mesh_of_a_cube_is_as_far_as_the_box),
        cmocka_unit_test(the_tree_and_the_blocks_find_the_nearest_of_all_triangles),
        cmocka_unit_test(a_shape_under_a_height_field_is_lifted_out),
        cmocka_unit_test(surfaces_against_surfaces_find_the_nearest_pair_of_triangles),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

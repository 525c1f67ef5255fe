// Shapes: names, checks, support points, boxes and mass properties of every kind.
//
// The reference is a second description of each kind that shares nothing with the library: how far a point is
// from the core. Volumes and moments are summed over a jittered grid with it, and support points must be in
// the shape and beyond every point of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "geom/geom.h"
#include "instrumented.h"

enum { GRID = IS_INSTRUMENTED ? 30 : 80, ROUNDS = IS_INSTRUMENTED ? 20 : 200 };
// A jittered grid of N^3 cells errs only in the cells that the surface cuts, some 6 N^2 of them, each by a
// random half cell: about sqrt(6) N / 2 cells of N^3. Three times that for what is not a cube.
static const double grid_error = 4.0 / ((double)GRID * GRID);

static const double pi = 3.14159265358979323846;

static uint64_t counter;

static double uniform(double low, double high) { return build_uniform(7, &counter, low, high); }

static us_pose random_pose(void) {
    us_pose X = {build_random_rotation(7, &counter), build_random_vec3(7, &counter, 2)};
    return X;
}

static us_vec3 random_direction(void) {
    us_quat q = build_random_rotation(7, &counter);
    return us_quat_rotate(q, us_vec3_make(0, 0, 1));
}

// ---- A second opinion on each kind ----

static double segment_distance(us_vec3 x, us_vec3 a, us_vec3 b) {
    us_vec3 d = us_vec3_sub(b, a);
    double dd = us_vec3_dot(d, d), t = dd > 0 ? us_vec3_dot(us_vec3_sub(x, a), d) / dd : 0;
    t = fmin(1, fmax(0, t));
    return us_vec3_norm(us_vec3_sub(x, us_vec3_add(a, us_vec3_scale(t, d))));
}

static double triangle_distance(us_vec3 x, us_vec3 a, us_vec3 b, us_vec3 c) {
    us_vec3 n = us_vec3_cross(us_vec3_sub(b, a), us_vec3_sub(c, a));
    double nn = us_vec3_norm(n);
    us_vec3 p[3] = {a, b, c};
    bool above = nn > 0;
    double least = INFINITY;
    for (int i = 0; i < 3; i++) {
        us_vec3 from = p[i], to = p[(i + 1) % 3];
        if (us_vec3_dot(n, us_vec3_cross(us_vec3_sub(to, from), us_vec3_sub(x, from))) < 0) above = false;
        least = fmin(least, segment_distance(x, from, to));
    }
    return above ? fabs(us_vec3_dot(n, us_vec3_sub(x, a))) / nn : least;
}

static double hull_distance(const us_hull *h, us_vec3 x) {
    double outside = -INFINITY, least = INFINITY;
    for (int32_t f = 0; f < h->n_face; f++)
        outside = fmax(outside, us_vec3_dot(h->normal[f], x) - h->offset[f]);
    if (outside <= 0) return 0;
    for (int32_t f = 0; f < h->n_face; f++) {
        const int32_t *c = h->face_vertex + h->face_start[f];
        if (us_vec3_dot(h->normal[f], x) < h->offset[f]) continue;
        for (int32_t k = 2; k < h->face_start[f + 1] - h->face_start[f]; k++) {
            least = fmin(least, triangle_distance(x, h->vertex[c[0]], h->vertex[c[k - 1]], h->vertex[c[k]]));
        }
    }
    return least;
}

static double tetrahedron_distance(const us_vec3 *p, us_vec3 x) {
    bool inside = true;
    double least = INFINITY;
    for (int i = 0; i < 4; i++) {
        us_vec3 a = p[(i + 1) % 4], b = p[(i + 2) % 4], c = p[(i + 3) % 4],
                n = us_vec3_cross(us_vec3_sub(b, a), us_vec3_sub(c, a));
        double mine = us_vec3_dot(n, us_vec3_sub(x, a)), other = us_vec3_dot(n, us_vec3_sub(p[i], a));
        if (mine * other <= 0) inside = false;
        least = fmin(least, triangle_distance(x, a, b, c));
    }
    return inside ? 0 : least;
}

// The foot of the perpendicular is at y_i = s_i^2 x_i / (t + s_i^2), with t >= 0 such that y lies on the
// ellipsoid: found by halving.
static double ellipsoid_distance(const double *s, us_vec3 x) {
    double c[3] = {x.x, x.y, x.z}, low = 0, high = us_vec3_norm(x) * fmax(s[0], fmax(s[1], s[2])), at0 = 0,
           d2 = 0;
    for (int i = 0; i < 3; i++)
        at0 += c[i] * c[i] / (s[i] * s[i]);
    if (at0 <= 1) return 0;
    for (int k = 0; k < 60; k++) {
        double t = 0.5 * (low + high), sum = 0;
        for (int i = 0; i < 3; i++)
            sum += pow(s[i] * c[i] / (t + s[i] * s[i]), 2);
        *(sum > 1 ? &low : &high) = t;
    }
    for (int i = 0; i < 3; i++)
        d2 += pow(c[i] * low / (low + s[i] * s[i]), 2);
    return sqrt(d2);
}

// How far x is from the core: 0 inside.
static double core_distance(const us_geom *g, us_vec3 x) {
    const double *s = g->size;
    double rho = hypot(x.x, x.y);
    switch (g->kind) {
    case US_GEOM_SPHERE:
        return us_vec3_norm(x);
    case US_GEOM_CAPSULE:
        return hypot(rho, fmax(0, fabs(x.z) - s[0]));
    case US_GEOM_LOZENGE:
        return hypot(hypot(fmax(0, fabs(x.x) - s[0]), fmax(0, fabs(x.y) - s[1])), x.z);
    case US_GEOM_DISC:
        return hypot(fmax(0, rho - s[0]), x.z);
    case US_GEOM_TRIANGLE:
        return triangle_distance(x, g->point[0], g->point[1], g->point[2]);
    case US_GEOM_BOX:
        return hypot(hypot(fmax(0, fabs(x.x) - s[0]), fmax(0, fabs(x.y) - s[1])), fmax(0, fabs(x.z) - s[2]));
    case US_GEOM_CYLINDER:
        return hypot(fmax(0, rho - s[0]), fmax(0, fabs(x.z) - s[1]));
    case US_GEOM_CONE: {
        us_vec3 p = us_vec3_make(rho, 0, x.z), rim = us_vec3_make(s[0], 0, -s[1]),
                tip = us_vec3_make(0, 0, s[1]), foot = us_vec3_make(0, 0, -s[1]);
        if (fabs(x.z) <= s[1] && rho * 2 * s[1] <= s[0] * (s[1] - x.z)) return 0;
        return fmin(segment_distance(p, rim, tip), segment_distance(p, foot, rim));
    }
    case US_GEOM_ELLIPSOID:
        return ellipsoid_distance(s, x);
    case US_GEOM_TETRAHEDRON:
        return tetrahedron_distance(g->point, x);
    default:
        return hull_distance(g->hull, x);
    }
}

static double excess(const us_geom *g, us_vec3 x) { return core_distance(g, x) - g->radius; }

// A hull of n points on an ellipsoid.
static us_hull *round_hull(int32_t n) {
    us_vec3 *p = malloc((size_t)n * sizeof *p);
    us_hull *hull = NULL;
    us_error err = {0};
    for (int32_t i = 0; i < n; i++) {
        us_vec3 d = random_direction();
        p[i] = us_vec3_make(0.9 * d.x + 0.1, 0.6 * d.y, 0.4 * d.z - 0.2);
    }
    us_status status = us_hull_create(p, n, NULL, &hull, &err);
    if (status) print_message("%s\n", err.message);
    assert_int_equal(status, US_OK);
    free(p);
    return hull;
}

// A shape of a convex kind with random sizes; `hull` serves convex ones.
static us_geom random_shape(us_geom_kind kind, double radius, const us_hull *hull) {
    us_geom g = {.kind = kind, .radius = radius, .hull = hull};
    for (int i = 0; i < 3; i++)
        g.size[i] = uniform(0.2, 1);
    // Four corners of a cube, pushed about.
    for (int i = 0; i < 4; i++) {
        us_vec3 corner = us_vec3_make(i & 1 ? 0.7 : -0.7, i & 2 ? 0.7 : -0.7, i == 1 || i == 2 ? 0.7 : -0.7);
        g.point[i] = us_vec3_add(corner, build_random_vec3(7, &counter, 0.3));
    }
    if (kind == US_GEOM_SPHERE) g.radius += 0.3;
    return g;
}

static void assert_close(double a, double b, double tolerance) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g and %.17g differ by more than %g", a, b, tolerance);
}

static void assert_same_inertia(us_inertia a, us_inertia b, double relative) {
    double size2 = (a.about_com[0] + a.about_com[1] + a.about_com[2]) / a.mass;
    assert_close(a.mass, b.mass, relative * a.mass);
    assert_close(a.com.x, b.com.x, relative * sqrt(size2));
    assert_close(a.com.y, b.com.y, relative * sqrt(size2));
    assert_close(a.com.z, b.com.z, relative * sqrt(size2));
    for (int i = 0; i < 6; i++)
        assert_close(a.about_com[i], b.about_com[i], relative * a.mass * size2);
}

// ---- Names and checks ----

static void kinds_have_the_names_of_the_list(void **state) {
    (void)state;
    assert_string_equal(us_geom_kind_name(US_GEOM_SPHERE), "sphere");
    assert_string_equal(us_geom_kind_name(US_GEOM_HEIGHT_FIELD), "height-field");
    assert_string_equal(us_geom_kind_name(US_GEOM_INTERSECTION), "intersection");
    assert_string_equal(us_geom_kind_name(US_GEOM_COUNT), "?");
    assert_string_equal(us_geom_kind_name((us_geom_kind)-1), "?");
}

static void expect_refusal(us_geom g, us_status status, const char *words) {
    us_error err = {0};
    assert_int_equal(us_geom_check(&g, &err), status);
    assert_int_equal(err.code, status);
    if (!strstr(err.message, words)) fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_true(err.remedy[0] != 0);
    assert_int_equal(us_geom_check(&g, NULL), status);
}

static void check_accepts_zero_sizes_and_refuses_negative_infinite_and_missing_ones(void **state) {
    (void)state;
    us_hull *hull = round_hull(12);
    for (int kind = 0; kind <= US_GEOM_HALF_SPACE; kind++) {
        us_geom g = {.kind = (us_geom_kind)kind, .hull = hull};
        assert_int_equal(us_geom_check(&g, NULL), US_OK);
    }
    us_geom box = {.kind = US_GEOM_BOX, .size = {1, -1, 1}}, bad = box;
    expect_refusal(box, US_ERR_VALUE, "size[1] of a shape of kind box is -1");
    box.size[1] = NAN;
    expect_refusal(box, US_ERR_VALUE, "nan");
    box.size[1] = INFINITY;
    expect_refusal(box, US_ERR_VALUE, "inf");
    box.size[1] = 1;
    box.radius = -1e-9;
    expect_refusal(box, US_ERR_VALUE, "radius");
    bad = (us_geom){.kind = US_GEOM_CAPSULE,
                    .size = {1, -5, NAN}};  // sizes that a kind does not have are not looked at
    assert_int_equal(us_geom_check(&bad, NULL), US_OK);
    bad = (us_geom){.kind = US_GEOM_TRIANGLE};
    bad.point[2].y = NAN;
    expect_refusal(bad, US_ERR_VALUE, "point[2]");
    expect_refusal((us_geom){.kind = US_GEOM_CONVEX}, US_ERR_VALUE, "hull");
    expect_refusal((us_geom){.kind = US_GEOM_MESH}, US_ERR_VALUE, "mesh");
    expect_refusal((us_geom){.kind = US_GEOM_HEIGHT_FIELD}, US_ERR_VALUE, "field");
    expect_refusal((us_geom){.kind = US_GEOM_UNION}, US_ERR_VALUE, "parts");
    expect_refusal((us_geom){.kind = US_GEOM_COUNT}, US_ERR_VALUE, "kind");
    us_error err = {0};
    assert_int_equal(us_geom_check(NULL, &err), US_ERR_ARG);
    us_hull_destroy(hull);
}

static void check_looks_into_parts(void **state) {
    (void)state;
    us_geom_part part = {{.kind = US_GEOM_BOX, .size = {1, 1, 1}}, us_pose_identity()};
    us_geom both = {.kind = US_GEOM_UNION, .parts = &part, .n_part = 1};
    assert_int_equal(us_geom_check(&both, NULL), US_OK);
    part.geom.size[2] = -1;
    expect_refusal(both, US_ERR_VALUE, "size[2]");
    part.geom.size[2] = 1;
    part.X_GP.q.w = 1.1;
    expect_refusal(both, US_ERR_VALUE, "pose");
    part.X_GP = us_pose_identity();
    part.X_GP.p.x = NAN;
    expect_refusal(both, US_ERR_VALUE, "pose");
    part.X_GP = us_pose_identity();
    both.kind = US_GEOM_INTERSECTION;
    assert_int_equal(us_geom_check(&both, NULL), US_OK);
    part.geom.kind = US_GEOM_HALF_SPACE;
    expect_refusal(both, US_ERR_VALUE, "no end");
    us_geom_part apart[2] = {{{.kind = US_GEOM_SPHERE, .radius = 1}, us_pose_identity()},
                             {{.kind = US_GEOM_SPHERE, .radius = 1}, us_pose_identity()}};
    us_geom lens = {.kind = US_GEOM_INTERSECTION, .parts = apart, .n_part = 2};
    apart[1].X_GP.p = us_vec3_make(1.9, 0, 0);
    assert_int_equal(us_geom_check(&lens, NULL), US_OK);
    // Their boxes meet, they do not.
    apart[1].X_GP.p = us_vec3_make(1.5, 1.5, 0);
    expect_refusal(lens, US_ERR_VALUE, "nothing in common");
    apart[1].X_GP.p = us_vec3_make(2.1, 0, 0);
    expect_refusal(lens, US_ERR_VALUE, "nothing in common");
    part.geom.kind = US_GEOM_MESH;
    expect_refusal(both, US_ERR_VALUE, "mesh");
    // A union that is its own part.
    both.kind = US_GEOM_UNION;
    part.geom = both;
    expect_refusal(both, US_ERR_LIMIT, "nested");
}

// ---- Support points ----

static void support_points_are_in_the_shape_and_beyond_every_point_of_it(void **state) {
    (void)state;
    us_hull *small = round_hull(20), *large = round_hull(300);
    for (int kind = 0; kind <= US_GEOM_CONVEX; kind++) {
        for (int round = 0; round < ROUNDS; round++) {
            us_geom g = random_shape((us_geom_kind)kind, round % 2 ? 0.15 : 0, round % 4 < 2 ? small : large);
            us_vec3 d = random_direction(), p = us_geom_support(&g, us_vec3_scale(uniform(0.1, 10), d));
            // On the surface to rounding (the reference for ellipsoids halves 60 times).
            assert_close(fmax(0, excess(&g, p)), 0, 1e-12);
            us_vec3 beyond = us_vec3_add(p, us_vec3_scale(1e-6, d));
            assert_true(excess(&g, beyond) > 0);
            // No point of the shape is farther: tried around the point itself, where it would be, and
            // anywhere.
            for (int i = 0; i < 50; i++) {
                us_vec3 x = i % 2 ? us_vec3_add(p, build_random_vec3(7, &counter, 0.1))
                                  : build_random_vec3(7, &counter, 1.5);
                if (excess(&g, x) <= 0) assert_true(us_vec3_dot(d, x) <= us_vec3_dot(d, p) + 1e-12);
            }
        }
    }
    us_hull_destroy(small);
    us_hull_destroy(large);
}

static void climbing_a_hull_finds_what_looking_at_all_vertices_finds(void **state) {
    (void)state;
    us_hull *hull = round_hull(1000);
    us_geom g = {.kind = US_GEOM_CONVEX, .hull = hull};
    assert_true(hull->n_vertex > 500);
    for (int round = 0; round < 20 * ROUNDS; round++) {
        us_vec3 d = random_direction();
        double far = -INFINITY;
        for (int32_t v = 0; v < hull->n_vertex; v++)
            far = fmax(far, us_vec3_dot(hull->vertex[v], d));
        // The products may be fused differently in the two loops: one unit in the last place of numbers
        // near 1.
        assert_close(us_vec3_dot(usi_core_support(&g, d), d), far, 1e-15);
    }
    us_hull_destroy(hull);
}

static void
support_has_an_answer_for_directions_of_any_length_and_none_for_shapes_that_are_not_convex(void **state) {
    (void)state;
    us_hull *hull = round_hull(40);
    static const double lengths[] = {1e-300, 1e-170, 1, 1e170, 1e300};
    for (int kind = 0; kind <= US_GEOM_CONVEX; kind++) {
        us_geom g = random_shape((us_geom_kind)kind, 0.1, hull);
        us_vec3 d = us_vec3_make(0.48, -0.6, 0.64), p = us_geom_support(&g, d);
        for (int i = 0; i < 5; i++) {
            us_vec3 x = us_geom_support(&g, us_vec3_scale(lengths[i], d));
            // Scaling by these numbers loses a few digits of the direction at most (1e-300 is close to where
            // digits end).
            assert_close(us_vec3_norm(us_vec3_sub(x, p)), 0, 1e-7);
        }
        us_vec3 none = usi_core_support(&g, us_vec3_make(0, 0, 0));
        assert_true(core_distance(&g, none) <= 1e-12);
        none = us_geom_support(&g, us_vec3_make(0, 0, 0));
        assert_true(excess(&g, none) <= 0);
    }
    us_geom plane = {.kind = US_GEOM_HALF_SPACE};
    assert_true(isnan(us_geom_support(&plane, us_vec3_make(0, 0, 1)).x));
    us_hull_destroy(hull);
}

// ---- Boxes ----

static void boxes_hold_all_support_points_and_are_touched_on_each_side(void **state) {
    (void)state;
    us_hull *small = round_hull(20), *large = round_hull(300);
    for (int kind = 0; kind <= US_GEOM_CONVEX; kind++) {
        for (int round = 0; round < ROUNDS; round++) {
            us_geom g = random_shape((us_geom_kind)kind, round % 2 ? 0.15 : 0, round % 4 < 2 ? small : large);
            us_pose X = random_pose();
            us_aabb b = us_geom_box(&g, X);
            us_quat back = us_quat_conj(X.q);
            for (int i = 0; i < 100; i++) {
                us_vec3 p = us_pose_point(X, us_geom_support(&g, random_direction()));
                // Rounding of numbers near 3.
                assert_true(p.x >= b.min.x - 1e-14 && p.y >= b.min.y - 1e-14 && p.z >= b.min.z - 1e-14);
                assert_true(p.x <= b.max.x + 1e-14 && p.y <= b.max.y + 1e-14 && p.z <= b.max.z + 1e-14);
            }
            for (int i = 0; i < 6; i++) {
                us_vec3 axis = us_vec3_make(i / 2 == 0, i / 2 == 1, i / 2 == 2), side = i % 2 ? b.max : b.min;
                us_vec3 p = us_pose_point(
                    X, us_geom_support(&g, us_quat_rotate(back, us_vec3_scale(i % 2 ? 1 : -1, axis))));
                assert_close(us_vec3_dot(axis, p), us_vec3_dot(axis, side), 1e-14);
            }
        }
    }
    us_hull_destroy(small);
    us_hull_destroy(large);
}

static void boxes_of_composed_and_endless_shapes(void **state) {
    (void)state;
    us_geom plane = {.kind = US_GEOM_HALF_SPACE};
    us_aabb b = us_geom_box(&plane, random_pose());
    assert_true(b.min.x == -INFINITY && b.min.z == -INFINITY && b.max.y == INFINITY);
    us_geom_part parts[2] = {{{.kind = US_GEOM_SPHERE, .radius = 1}, us_pose_identity()},
                             {{.kind = US_GEOM_BOX, .size = {1, 2, 3}}, us_pose_identity()}};
    parts[0].X_GP.p.x = 3;
    us_geom g = {.kind = US_GEOM_UNION, .parts = parts, .n_part = 2, .radius = 0.5};
    us_pose X = us_pose_identity();
    X.p.y = 10;
    b = us_geom_box(&g, X);
    assert_true(b.min.x == -1.5 && b.max.x == 4.5 && b.min.y == 7.5 && b.max.y == 12.5 && b.min.z == -3.5 &&
                b.max.z == 3.5);
    g.kind = US_GEOM_INTERSECTION;
    g.radius = 0;
    parts[0].X_GP.p.x = 1.5;
    b = us_geom_box(&g, X);
    assert_true(b.min.x == 0.5 && b.max.x == 1 && b.min.y == 9 && b.max.y == 11 && b.min.z == -1 &&
                b.max.z == 1);
}

// ---- Mass properties ----

static us_inertia grid_inertia(const us_geom *g) {
    us_aabb b = us_geom_box(g, us_pose_identity());
    us_vec3 d = us_vec3_scale(1.0 / GRID, us_vec3_sub(b.max, b.min)), s = us_vec3_make(0, 0, 0);
    double cell = d.x * d.y * d.z, m = 0, q[6] = {0};
    uint64_t n = 0;
    for (int i = 0; i < GRID; i++) {
        for (int j = 0; j < GRID; j++) {
            for (int k = 0; k < GRID; k++, n += 3) {
                us_vec3 x = us_vec3_make(b.min.x + d.x * (i + us_random_uniform(1, 1, n)),
                                         b.min.y + d.y * (j + us_random_uniform(1, 1, n + 1)),
                                         b.min.z + d.z * (k + us_random_uniform(1, 1, n + 2)));
                if (excess(g, x) > 0) continue;
                m += cell;
                s = us_vec3_add(s, us_vec3_scale(cell, x));
                q[0] += cell * x.x * x.x;
                q[1] += cell * x.y * x.y;
                q[2] += cell * x.z * x.z;
                q[3] += cell * x.x * x.y;
                q[4] += cell * x.x * x.z;
                q[5] += cell * x.y * x.z;
            }
        }
    }
    us_inertia I = {.mass = m, .com = us_vec3_scale(1 / m, s)};
    us_vec3 c = I.com;
    double xx = q[0] - m * c.x * c.x, yy = q[1] - m * c.y * c.y, zz = q[2] - m * c.z * c.z;
    I.about_com[0] = yy + zz;
    I.about_com[1] = xx + zz;
    I.about_com[2] = xx + yy;
    I.about_com[3] = m * c.x * c.y - q[3];
    I.about_com[4] = m * c.x * c.z - q[4];
    I.about_com[5] = m * c.y * c.z - q[5];
    return I;
}

static void mass_properties_agree_with_a_sum_over_a_fine_grid(void **state) {
    (void)state;
    us_hull *hull = round_hull(14);
    for (int kind = 0; kind <= US_GEOM_CONVEX; kind++) {
        for (int swept = 0; swept < 2; swept++) {
            bool is_flat = kind == US_GEOM_CAPSULE || kind == US_GEOM_LOZENGE || kind == US_GEOM_DISC ||
                           kind == US_GEOM_TRIANGLE;
            us_geom g = random_shape((us_geom_kind)kind, swept || is_flat ? 0.3 : 0, hull);
            us_inertia exact = us_geom_unit_inertia(&g), grid = grid_inertia(&g);
            assert_same_inertia(exact, grid, grid_error);
        }
    }
    us_hull_destroy(hull);
}

// Rounding only: these are sums of a few dozen terms of one size.
static const double exact = 1e-12;

static us_inertia inertia_of(us_geom g) { return us_geom_unit_inertia(&g); }

static void plain_kinds_have_the_mass_properties_of_the_textbook(void **state) {
    (void)state;
    us_inertia I = inertia_of((us_geom){.kind = US_GEOM_SPHERE, .radius = 2});
    us_inertia ball = {4.0 / 3 * pi * 8, {0, 0, 0}, {0.4 * 4 * I.mass, 0.4 * 4 * I.mass, 0.4 * 4 * I.mass}};
    assert_same_inertia(I, ball, exact);
    I = inertia_of((us_geom){.kind = US_GEOM_BOX, .size = {1, 2, 3}});
    us_inertia box = {48, {0, 0, 0}, {16 * (4 + 9), 16 * (1 + 9), 16 * (1 + 4)}};
    assert_same_inertia(I, box, exact);
    I = inertia_of((us_geom){.kind = US_GEOM_CYLINDER, .size = {2, 3}});
    us_inertia cylinder = {24 * pi, {0, 0, 0}, {24 * pi * (1 + 3), 24 * pi * (1 + 3), 24 * pi * 2}};
    assert_same_inertia(I, cylinder, exact);
    // A cone of height h: centre of mass h/4 above the base, 3/10 m r^2 about its axis, 3/80 m (4 r^2 + h^2)
    // across.
    I = inertia_of((us_geom){.kind = US_GEOM_CONE, .size = {2, 3}});
    double m = pi * 4 * 6 / 3;
    us_inertia cone = {m, {0, 0, -1.5}, {3 * m / 80 * (16 + 36), 3 * m / 80 * (16 + 36), 0.3 * m * 4}};
    assert_same_inertia(I, cone, exact);
    I = inertia_of((us_geom){.kind = US_GEOM_ELLIPSOID, .size = {1, 2, 3}});
    m = 8 * pi;
    us_inertia ellipsoid = {m, {0, 0, 0}, {m / 5 * 13, m / 5 * 10, m / 5 * 5}};
    assert_same_inertia(I, ellipsoid, exact);
    // A regular tetrahedron in a cube of side 2, moved: edge sqrt(8), volume 8/3, m a^2 / 20 about any axis.
    us_vec3 t = us_vec3_make(5, -3, 1);
    us_geom g = {.kind = US_GEOM_TETRAHEDRON, .point = {{6, -2, 2}, {6, -4, 0}, {4, -2, 0}, {4, -4, 2}}};
    us_inertia tetrahedron = {8.0 / 3, t, {16.0 / 15, 16.0 / 15, 16.0 / 15}};
    assert_same_inertia(us_geom_unit_inertia(&g), tetrahedron, exact);
    us_vec3 swap = g.point[2];
    g.point[2] = g.point[3];
    g.point[3] = swap;  // the same, inside out
    assert_same_inertia(us_geom_unit_inertia(&g), tetrahedron, exact);
    // Capsule: a cylinder and two half balls, each with 83/320 m r^2 about its own centre of mass, 3/8 r from
    // the flat side.
    I = inertia_of((us_geom){.kind = US_GEOM_CAPSULE, .size = {3}, .radius = 2});
    double half = 16.0 / 3 * pi, d = 3 + 0.75, across = 24 * pi * (1 + 3) + 2 * half * (83.0 / 80 + d * d);
    us_inertia capsule = {24 * pi + 2 * half, {0, 0, 0}, {across, across, 24 * pi * 2 + 2 * half * 1.6}};
    assert_same_inertia(I, capsule, exact);
    // Disc: a cylinder and half a torus, whose volume Pappus gives: area pi r^2 / 2, centroid 4 r / (3 pi)
    // outside the rim.
    I = inertia_of((us_geom){.kind = US_GEOM_DISC, .size = {2}, .radius = 0.5});
    assert_close(I.mass, pi * 4 + pi * 0.125 * 2 * pi * (2 + 2 / (3 * pi)), 1e-12);
}

static void kinds_that_are_the_same_solid_have_the_same_mass_properties(void **state) {
    (void)state;
    // A swept box by its own formula, and as a swept polyhedron.
    us_vec3 corner[8];
    for (int i = 0; i < 8; i++)
        corner[i] = us_vec3_make(i & 1 ? 0.5 : -0.5, i & 2 ? 0.7 : -0.7, i & 4 ? 0.9 : -0.9);
    us_hull *hull = NULL;
    assert_int_equal(us_hull_create(corner, 8, NULL, &hull, NULL), US_OK);
    us_inertia box = inertia_of((us_geom){.kind = US_GEOM_BOX, .size = {0.5, 0.7, 0.9}, .radius = 0.3});
    assert_same_inertia(box, inertia_of((us_geom){.kind = US_GEOM_CONVEX, .hull = hull, .radius = 0.3}),
                        exact);
    us_hull_destroy(hull);
    // A swept tetrahedron, and as a hull.
    us_geom t = {.kind = US_GEOM_TETRAHEDRON,
                 .radius = 0.2,
                 .point = {{0, 0, 0}, {1, 0.1, 0}, {0.2, 0.8, 0.1}, {0.3, 0.1, 1.2}}};
    assert_int_equal(us_hull_create(t.point, 4, NULL, &hull, NULL), US_OK);
    assert_same_inertia(us_geom_unit_inertia(&t),
                        inertia_of((us_geom){.kind = US_GEOM_CONVEX, .hull = hull, .radius = 0.2}), exact);
    us_hull_destroy(hull);
    // A lozenge, and as a tetrahedron without height; its corners in an order in which they cross.
    us_inertia lozenge = inertia_of((us_geom){.kind = US_GEOM_LOZENGE, .size = {0.5, 0.7}, .radius = 0.3});
    us_geom flat = {.kind = US_GEOM_TETRAHEDRON,
                    .radius = 0.3,
                    .point = {{0.5, 0.7, 0}, {-0.5, -0.7, 0}, {0.5, -0.7, 0}, {-0.5, 0.7, 0}}};
    assert_same_inertia(lozenge, us_geom_unit_inertia(&flat), exact);
    // A triangle, and as a tetrahedron whose fourth point lies in it.
    us_geom triangle = {
        .kind = US_GEOM_TRIANGLE, .radius = 0.3, .point = {{1, 0, 0.2}, {0, 1, 0.1}, {-1, -1, 0}}};
    us_geom with = triangle;
    with.kind = US_GEOM_TETRAHEDRON;
    with.point[3] = us_vec3_make(0, 0, 0.1);
    assert_same_inertia(us_geom_unit_inertia(&triangle), us_geom_unit_inertia(&with), exact);
    // A triangle in a line, and the capsule along it; a triangle in one point, and the ball about it.
    us_inertia capsule = inertia_of((us_geom){.kind = US_GEOM_CAPSULE, .size = {0.5}, .radius = 0.3});
    us_geom line = {
        .kind = US_GEOM_TRIANGLE, .radius = 0.3, .point = {{0, 0, 0.5}, {0, 0, -0.5}, {0, 0, 0.1}}};
    assert_same_inertia(capsule, us_geom_unit_inertia(&line), exact);
    us_geom point = {.kind = US_GEOM_TRIANGLE, .radius = 0.3, .point = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}};
    assert_same_inertia(inertia_of((us_geom){.kind = US_GEOM_SPHERE, .radius = 0.3}),
                        us_geom_unit_inertia(&point), exact);
    // Round kinds where they meet.
    assert_same_inertia(
        capsule, inertia_of((us_geom){.kind = US_GEOM_CYLINDER, .size = {0, 0.5}, .radius = 0.3}), exact);
    assert_same_inertia(capsule, inertia_of((us_geom){.kind = US_GEOM_CONE, .size = {0, 0.5}, .radius = 0.3}),
                        exact);
    us_inertia disc = inertia_of((us_geom){.kind = US_GEOM_DISC, .size = {0.5}, .radius = 0.3});
    assert_same_inertia(disc, inertia_of((us_geom){.kind = US_GEOM_CONE, .size = {0.5, 0}, .radius = 0.3}),
                        exact);
}

static void a_tetrahedron_that_is_pressed_flat_becomes_its_polygon_without_a_jump(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        us_geom g = {.kind = US_GEOM_TETRAHEDRON, .radius = 0.3};
        for (int i = 0; i < 4; i++)
            g.point[i] = us_vec3_make(uniform(-1, 1), uniform(-1, 1), 0);
        // The fourth corner anywhere, within the triangle of the others, or on its side.
        if (round % 3 == 1)
            g.point[3] = us_vec3_scale(1.0 / 3, us_vec3_add(g.point[0], us_vec3_add(g.point[1], g.point[2])));
        if (round % 3 == 2) g.point[3] = us_vec3_scale(0.5, us_vec3_add(g.point[0], g.point[1]));
        us_inertia flat = us_geom_unit_inertia(&g);
        for (int k = 3; k <= 16; k++) {
            double height = pow(10, -k);
            g.point[3].z = height;
            // It grows with the height; thin ones lose half the digits, since their faces' normals do.
            assert_same_inertia(flat, us_geom_unit_inertia(&g), 5 * height + 1e-7);
        }
    }
}

static void swept_ellipsoids_follow_steiners_formula_and_their_limits(void **state) {
    (void)state;
    // The volume of a swept convex solid is V + A r + M r^2 + 4/3 pi r^3 with constants A and M: fitted at
    // two radii, checked at others.
    const double s[3] = {1, 0.6, 0.3}, V = 4.0 / 3 * pi * s[0] * s[1] * s[2];
    double rest[5];
    for (int i = 1; i <= 4; i++) {
        double r = 0.2 * i,
               m = inertia_of((us_geom){.kind = US_GEOM_ELLIPSOID, .size = {s[0], s[1], s[2]}, .radius = r})
                       .mass;
        rest[i] = (m - V - 4.0 / 3 * pi * r * r * r) / r;
    }
    // A sum of 66000 terms: rounding leaves some 1e-13, and the division by r takes another digit.
    assert_close(rest[1] - 2 * rest[2] + rest[3], 0, 1e-11);
    assert_close(rest[2] - 2 * rest[3] + rest[4], 0, 1e-11);
    // Spheroids nearly round, flat, and thin. Half axes below 1e-4 of the size are taken as that.
    us_inertia ball = inertia_of((us_geom){.kind = US_GEOM_SPHERE, .radius = 1.5});
    assert_same_inertia(
        ball, inertia_of((us_geom){.kind = US_GEOM_ELLIPSOID, .size = {1, 1, 1 + 1e-12}, .radius = 0.5}),
        1e-11);
    us_inertia disc = inertia_of((us_geom){.kind = US_GEOM_DISC, .size = {1}, .radius = 0.5});
    assert_same_inertia(
        disc, inertia_of((us_geom){.kind = US_GEOM_ELLIPSOID, .size = {1, 1, 0}, .radius = 0.5}), 2e-4);
    us_inertia capsule = inertia_of((us_geom){.kind = US_GEOM_CAPSULE, .size = {1}, .radius = 0.5});
    assert_same_inertia(
        capsule, inertia_of((us_geom){.kind = US_GEOM_ELLIPSOID, .size = {0, 0, 1}, .radius = 0.5}), 4e-4);
}

static void a_union_of_two_halves_is_the_whole(void **state) {
    (void)state;
    us_geom_part half[2] = {{{.kind = US_GEOM_BOX, .size = {0.5, 2, 3}}, us_pose_identity()},
                            {{.kind = US_GEOM_BOX, .size = {2, 0.5, 3}}, us_pose_identity()}};
    half[0].X_GP.p.x = 0.5;
    half[1].X_GP.p.x = -0.5;
    half[1].X_GP.q = us_quat_from_rpy(0, 0, pi / 2);
    us_geom g = {.kind = US_GEOM_UNION, .parts = half, .n_part = 2};
    assert_same_inertia(inertia_of((us_geom){.kind = US_GEOM_BOX, .size = {1, 2, 3}}),
                        us_geom_unit_inertia(&g), exact);
    // Turned and moved as a whole, it is the box turned and moved; checked through the trace and the largest
    // product.
    us_geom_part whole = {g, random_pose()};
    us_geom outer = {.kind = US_GEOM_UNION, .parts = &whole, .n_part = 1};
    us_inertia I = us_geom_unit_inertia(&outer);
    assert_close(I.about_com[0] + I.about_com[1] + I.about_com[2], 16 * (13 + 10 + 5), 1e-10);
    us_vec3 z = us_quat_rotate(whole.X_GP.q, us_vec3_make(0, 0, 1));
    const double *J = I.about_com;
    double about_z = J[0] * z.x * z.x + J[1] * z.y * z.y + J[2] * z.z * z.z +
                     2 * (J[3] * z.x * z.y + J[4] * z.x * z.z + J[5] * z.y * z.z);
    assert_close(about_z, 16 * 5, 1e-10);
    half[0].geom.kind = US_GEOM_HALF_SPACE;
    assert_true(isnan(us_geom_unit_inertia(&g).mass));
}

static void intersections_weigh_what_their_solid_weighs(void **state) {
    (void)state;
    // Half a ball, cut by a half space; then a quarter, by a turned box, moved.
    us_geom_part part[3] = {{{.kind = US_GEOM_SPHERE, .radius = 2}, us_pose_identity()},
                            {{.kind = US_GEOM_HALF_SPACE}, us_pose_identity()},
                            {{.kind = US_GEOM_BOX, .size = {4, 4, 4}}, us_pose_identity()}};
    us_geom g = {.kind = US_GEOM_INTERSECTION, .parts = part, .n_part = 2};
    double m = 16.0 / 3 * pi, across = m * 4 * 83 / 320;
    us_inertia half = {m, {0, 0, -0.75}, {across, across, 0.4 * m * 4}};
    // Rods at the outline err by a part of a rod each: some 600 of 31000, and as often too much as too
    // little.
    assert_same_inertia(half, us_geom_unit_inertia(&g), 3e-4);
    for (int i = 0; i < 3; i++)
        part[i].X_GP.p.y = 100;
    part[2].X_GP.p.x = 4;
    g.n_part = 3;
    us_inertia I = us_geom_unit_inertia(&g);
    assert_close(I.mass, m / 2, 3e-4 * m);
    // Of the centres of mass of a quarter ball, each of the two cut directions has 3/8 r.
    assert_close(us_vec3_norm(us_vec3_sub(I.com, us_vec3_make(0.75, 100, -0.75))), 0, 1e-3);
    part[2].X_GP.p.x = 10;
    assert_true(us_geom_unit_inertia(&g).mass == 0);  // apart
    g.parts = part + 1;
    g.n_part = 1;
    assert_true(isnan(us_geom_unit_inertia(&g).mass));  // without end
}

static void no_size_gives_a_number_that_is_none(void **state) {
    (void)state;
    us_hull *hull = round_hull(10);
    for (int kind = 0; kind < US_GEOM_CONVEX; kind++) {
        for (int zeros = 0; zeros < 8; zeros++) {
            for (int swept = 0; swept < 2; swept++) {
                us_geom g = {.kind = (us_geom_kind)kind, .radius = swept ? 0.5 : 0};
                for (int i = 0; i < 3; i++)
                    g.size[i] = zeros >> i & 1 ? 0 : 1;
                // Points that coincide, lie in a line or in a plane.
                for (int i = 0; i < 4; i++)
                    g.point[i] =
                        us_vec3_make(zeros & 1 ? 0 : i, zeros & 2 ? 0 : i * i, zeros & 4 ? 0 : i == 3);
                us_inertia I = us_geom_unit_inertia(&g);
                us_aabb b = us_geom_box(&g, random_pose());
                us_vec3 p = us_geom_support(&g, us_vec3_make(0, 0, 1)),
                        q = us_geom_support(&g, random_direction());
                assert_true(isfinite(I.mass) && isfinite(us_vec3_norm(I.com)) && isfinite(us_vec3_norm(p)) &&
                            isfinite(us_vec3_norm(q)));
                assert_true(isfinite(us_vec3_norm(b.min)) && isfinite(us_vec3_norm(b.max)));
                for (int i = 0; i < 6; i++)
                    assert_true(isfinite(I.about_com[i]));
                // A ball of the radius fits into everything that is swept; all that is not swept may be
                // empty.
                assert_true(swept ? I.mass >= 4.0 / 3 * pi * 0.125 * (1 - 1e-9) : I.mass >= 0);
                // Rotations are proper inertias: no moment exceeds the sum of the others.
                assert_true(I.about_com[0] <= I.about_com[1] + I.about_com[2] + 1e-12 * I.mass);
            }
        }
    }
    us_geom plane = {.kind = US_GEOM_HALF_SPACE};
    assert_true(isnan(us_geom_unit_inertia(&plane).mass));
    us_hull_destroy(hull);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_the_names_of_the_list),
        cmocka_unit_test(check_accepts_zero_sizes_and_refuses_negative_infinite_and_missing_ones),
        cmocka_unit_test(check_looks_into_parts),
        cmocka_unit_test(support_points_are_in_the_shape_and_beyond_every_point_of_it),
        cmocka_unit_test(climbing_a_hull_finds_what_looking_at_all_vertices_finds),
        cmocka_unit_test(
            support_has_an_answer_for_directions_of_any_length_and_none_for_shapes_that_are_not_convex),
        cmocka_unit_test(boxes_hold_all_support_points_and_are_touched_on_each_side),
        cmocka_unit_test(boxes_of_composed_and_endless_shapes),
        cmocka_unit_test(mass_properties_agree_with_a_sum_over_a_fine_grid),
        cmocka_unit_test(plain_kinds_have_the_mass_properties_of_the_textbook),
        cmocka_unit_test(kinds_that_are_the_same_solid_have_the_same_mass_properties),
        cmocka_unit_test(a_tetrahedron_that_is_pressed_flat_becomes_its_polygon_without_a_jump),
        cmocka_unit_test(swept_ellipsoids_follow_steiners_formula_and_their_limits),
        cmocka_unit_test(a_union_of_two_halves_is_the_whole),
        cmocka_unit_test(intersections_weigh_what_their_solid_weighs),
        cmocka_unit_test(no_size_gives_a_number_that_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Rays against every kind of shape, compared with distances that are worked out here another way: along a ray
// the distance from a convex shape is a convex function, so its minimum can be bracketed and says whether the
// ray hits; other shapes are sphere-traced.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "instrumented.h"

enum { RAYS = IS_INSTRUMENTED ? 3000 : 10000 };

static const double PI = 3.14159265358979323846;
static const double RANGE = 20;
// Coordinates are of size 10 and a dozen operations are made on each: rounding is 1e-14. Where the ray is
// almost parallel to the surface the root amplifies it by the square root of the ratio of sizes; 1e-9 holds
// with room to spare, and a wrong formula misses it by far.
static const double NEAR = 1e-9;

static double uniform(uint64_t stream, uint64_t i, double low, double high) {
    return low + (high - low) * us_random_uniform(21, stream, i);
}
static us_vec3 in_cube(uint64_t stream, uint64_t i, double side) {
    return us_vec3_make(uniform(stream, 3 * i, -side, side), uniform(stream, 3 * i + 1, -side, side),
                        uniform(stream, 3 * i + 2, -side, side));
}
static us_vec3 unit(us_vec3 a) { return us_vec3_scale(1 / us_vec3_norm(a), a); }
static us_pose some_pose(uint64_t stream, uint64_t i) {
    us_quat q = {us_random_normal(stream, 7, 4 * i), us_random_normal(stream, 7, 4 * i + 1),
                 us_random_normal(stream, 7, 4 * i + 2), us_random_normal(stream, 7, 4 * i + 3)};
    return (us_pose){us_quat_normalize(q), in_cube(stream + 1000, i, 3)};
}

// ---------------------------------------------------------------- distances, the slow way

static double segment_distance(us_vec3 p, us_vec3 a, us_vec3 b) {
    us_vec3 ab = us_vec3_sub(b, a), ap = us_vec3_sub(p, a);
    double length2 = us_vec3_dot(ab, ab), s = length2 > 0 ? us_vec3_dot(ap, ab) / length2 : 0;
    s = fmax(0, fmin(1, s));
    return us_vec3_norm(us_vec3_sub(ap, us_vec3_scale(s, ab)));
}

// Over the face when all three edges say so, otherwise an edge is nearest.
static double triangle_distance(us_vec3 p, const us_vec3 *c) {
    us_vec3 n = us_vec3_cross(us_vec3_sub(c[1], c[0]), us_vec3_sub(c[2], c[0]));
    double area = us_vec3_norm(n), nearest = INFINITY;
    bool is_over = area > 1e-14;
    for (int i = 0; i < 3; i++) {
        us_vec3 a = c[i], b = c[(i + 1) % 3];
        nearest = fmin(nearest, segment_distance(p, a, b));
        is_over = is_over && us_vec3_dot(us_vec3_cross(n, us_vec3_sub(b, a)), us_vec3_sub(p, a)) >= 0;
    }
    return is_over ? fabs(us_vec3_dot(n, us_vec3_sub(p, c[0]))) / area : nearest;
}

// Bisection for the multiplier of the nearest point.
static double ellipsoid_distance(us_vec3 p, const double *a) {
    const double x[3] = {p.x, p.y, p.z};
    double low = 0, high = 100, inside = 0;
    for (int i = 0; i < 3; i++)
        inside += a[i] > 0 ? x[i] * x[i] / (a[i] * a[i]) : x[i] != 0 ? INFINITY : 0;
    if (inside <= 1) return 0;
    for (int step = 0; step < 200; step++) {
        double s = 0.5 * (low + high), sum = 0;
        for (int i = 0; i < 3; i++)
            sum += a[i] > 0 ? pow(a[i] * x[i] / (a[i] * a[i] + s), 2) : 0;
        if (sum > 1)
            low = s;
        else
            high = s;
    }
    double d2 = 0;
    for (int i = 0; i < 3; i++)
        d2 += pow(a[i] > 0 ? x[i] * high / (a[i] * a[i] + high) : x[i], 2);
    return sqrt(d2);
}

static double core_distance(const us_geom *g, us_vec3 p);

static double box_distance(us_vec3 p, double x, double y, double z) {
    us_vec3 q = us_vec3_make(fmax(0, fabs(p.x) - x), fmax(0, fabs(p.y) - y), fmax(0, fabs(p.z) - z));
    return us_vec3_norm(q);
}

static double polyhedron_distance(us_vec3 p, const us_hull *h) {
    double deepest = -INFINITY, nearest = INFINITY;
    for (int32_t i = 0; i < h->n_face; i++)
        deepest = fmax(deepest, us_vec3_dot(h->normal[i], p) - h->offset[i]);
    if (deepest <= 0) return 0;
    for (int32_t i = 0; i < h->n_face; i++) {
        const int32_t *v = h->face_vertex + h->face_start[i];
        for (int32_t k = 1; k + 1 < h->face_start[i + 1] - h->face_start[i]; k++) {
            const us_vec3 c[3] = {h->vertex[v[0]], h->vertex[v[k]], h->vertex[v[k + 1]]};
            nearest = fmin(nearest, triangle_distance(p, c));
        }
    }
    return nearest;
}

static double tetrahedron_distance(us_vec3 p, const us_vec3 *c) {
    double nearest = INFINITY;
    bool is_inside = true;
    for (int i = 0; i < 4; i++) {
        const us_vec3 face[3] = {c[(i + 1) % 4], c[(i + 2) % 4], c[(i + 3) % 4]};
        us_vec3 n = us_vec3_cross(us_vec3_sub(face[1], face[0]), us_vec3_sub(face[2], face[0]));
        double side = us_vec3_dot(n, us_vec3_sub(p, face[0])),
               inner = us_vec3_dot(n, us_vec3_sub(c[i], face[0]));
        is_inside = is_inside && side * inner > 0;
        nearest = fmin(nearest, triangle_distance(p, face));
    }
    return is_inside ? 0 : nearest;
}

// Positive outside, 0 inside the core; less the radius. Of an intersection the largest of the parts', which
// is 0 on the same surface.
static double distance(const us_geom *g, us_vec3 p) { return core_distance(g, p) - g->radius; }

static double core_distance(const us_geom *g, us_vec3 p) {
    const double *a = g->size, rho = hypot(p.x, p.y);
    switch (g->kind) {
    case US_GEOM_SPHERE:
        return us_vec3_norm(p);
    case US_GEOM_CAPSULE:
        return segment_distance(p, us_vec3_make(0, 0, -a[0]), us_vec3_make(0, 0, a[0]));
    case US_GEOM_LOZENGE:
        return box_distance(p, a[0], a[1], 0);
    case US_GEOM_DISC:
        return box_distance(us_vec3_make(rho, 0, p.z), a[0], 0, 0);
    case US_GEOM_TRIANGLE:
        return triangle_distance(p, g->point);
    case US_GEOM_BOX:
        return box_distance(p, a[0], a[1], a[2]);
    case US_GEOM_CYLINDER:
        return box_distance(us_vec3_make(rho, 0, p.z), a[0], 0, a[1]);
    case US_GEOM_CONE: {
        const us_vec3 half_section[3] = {{0, 0, -a[1]}, {a[0], 0, -a[1]}, {0, 0, a[1]}};
        return triangle_distance(us_vec3_make(rho, 0, p.z), half_section);
    }
    case US_GEOM_ELLIPSOID:
        return ellipsoid_distance(p, a);
    case US_GEOM_TETRAHEDRON:
        return tetrahedron_distance(p, g->point);
    case US_GEOM_CONVEX:
        return polyhedron_distance(p, g->hull);
    case US_GEOM_HALF_SPACE:
        return fmax(0, p.z);
    case US_GEOM_UNION:
    case US_GEOM_INTERSECTION: {
        double d = g->kind == US_GEOM_UNION ? INFINITY : -INFINITY;
        for (int32_t i = 0; i < g->n_part; i++) {
            double part = distance(&g->parts[i].geom, us_pose_point(us_pose_inverse(g->parts[i].X_GP), p));
            d = g->kind == US_GEOM_UNION ? fmin(d, part) : fmax(d, part);
        }
        return d;
    }
    default:
        return NAN;
    }
}

// ---------------------------------------------------------------- checks

static double along(const us_geom *g, us_vec3 o, us_vec3 d, double t) {
    return distance(g, us_vec3_add(o, us_vec3_scale(t, d)));
}

// Golden section for the least distance along the ray.
static double nearest_approach(const us_geom *g, us_vec3 o, us_vec3 d, double end) {
    const double golden = 0.61803398874989485;
    double low = 0, high = end, a = high - golden * (high - low), b = low + golden * (high - low),
           fa = along(g, o, d, a), fb = along(g, o, d, b);
    for (int i = 0; i < 80 && fa + fb > 0; i++) {
        if (fa <= fb) {
            high = b;
            b = a;
            fb = fa;
            a = high - golden * (high - low);
            fa = along(g, o, d, a);
        } else {
            low = a;
            a = b;
            fa = fb;
            b = low + golden * (high - low);
            fb = along(g, o, d, b);
        }
    }
    return fa < fb ? a : b;
}

static bool is_unit(us_vec3 n) { return fabs(us_vec3_norm(n) - 1) < 1e-12; }

// One ray in G's frame, cast through a pose. Returns 1 for a hit from outside, 0 for a miss, 2 for a start
// inside.
static int check_convex(const us_geom *g, us_pose X_WG, us_vec3 o, us_vec3 d, bool is_flat) {
    us_ray_hit hit = us_geom_ray(g, X_WG, us_pose_point(X_WG, o), us_quat_rotate(X_WG.q, d), RANGE);
    us_vec3 normal = us_quat_rotate(us_quat_conj(X_WG.q), hit.normal);
    double start = along(g, o, d, 0);
    // `distance` of an unswept solid is 0 inside and says nothing of the depth: a start is surely inside when
    // it is 0.
    if (!is_flat && (start < -NEAR || (g->radius == 0 && start == 0))) {
        assert_true(hit.range == 0 && is_unit(normal));
        assert_true(us_vec3_norm(us_vec3_add(normal, d)) < 1e-12 || start > -NEAR);
        return 2;
    }
    if (start < NEAR) return 2;  // on the surface: either answer is right
    double nearest = nearest_approach(g, o, d, RANGE), least = along(g, o, d, nearest);
    if (hit.range == INFINITY) {
        if (g->radius > 0) {
            assert_true(least > -NEAR);
        } else if (is_flat) {
            assert_true(least > 1e-12);
        } else {
            // Inside over more than a millimetre would have been a hit.
            bool before = along(g, o, d, nearest - 5e-4) <= 0, after = along(g, o, d, nearest + 5e-4) <= 0;
            assert_false(before && least <= 0 && after);
        }
        return 0;
    }
    assert_true(hit.range >= 0 && hit.range <= RANGE);
    // On the surface; nothing nearer, since the distance falls until there; and the normal leads away from
    // the shape.
    assert_true(fabs(along(g, o, d, hit.range)) < NEAR);
    assert_true(hit.range <= nearest + 1e-6);
    assert_true(hit.range < 1e-6 || along(g, o, d, hit.range - 1e-6) > -1e-13);
    assert_true(is_unit(normal));
    assert_true(us_vec3_dot(normal, d) <= 1e-6);
    us_vec3 outside = us_vec3_add(us_vec3_add(o, us_vec3_scale(hit.range, d)), us_vec3_scale(1e-3, normal));
    assert_true(fabs(distance(g, outside) - 1e-3) < 1e-3 * 1e-5);  // the sine of 0.25 degree lost would show
    return 1;
}

// Rays from all sides at a shape of size 1 about the origin; some start inside, some aim past it.
static void check_many(const us_geom *g, bool is_flat, uint64_t stream, int n) {
    int count[3] = {0, 0, 0};
    for (int i = 0; i < n; i++) {
        uint64_t k = (uint64_t)i;
        us_vec3 o = in_cube(stream, k, i % 5 ? 4 : 0.8), target = in_cube(stream + 1, k, 1.3);
        count[check_convex(g, some_pose(stream + 2, k), o, unit(us_vec3_sub(target, o)), is_flat)]++;
    }
    // Enough of each to mean something.
    assert_true(count[0] > n / 100 && count[1] > n / 100 && (is_flat || n < 1000 || count[2] > n / 500));
}

static us_geom shape(us_geom_kind kind, double radius, double x, double y, double z) {
    return (us_geom){.kind = kind, .radius = radius, .size = {x, y, z}};
}

static void spheres_and_capsules_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom sphere = shape(US_GEOM_SPHERE, 0.9, 0, 0, 0), capsule = shape(US_GEOM_CAPSULE, 0.4, 0.8, 0, 0);
    check_many(&sphere, false, 100, RAYS);
    check_many(&capsule, false, 110, RAYS);
    capsule.size[0] = 0;
    check_many(&capsule, false, 120, RAYS / 10);
}

static void lozenges_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom round = shape(US_GEOM_LOZENGE, 0.2, 0.9, 0.5, 0), flat = shape(US_GEOM_LOZENGE, 0, 0.9, 0.5, 0);
    check_many(&round, false, 130, RAYS);
    check_many(&flat, true, 140, RAYS);
}

static void discs_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom round = shape(US_GEOM_DISC, 0.2, 0.8, 0, 0), thin = shape(US_GEOM_DISC, 0, 0.9, 0, 0);
    check_many(&round, false, 150, RAYS);
    check_many(&thin, true, 160, RAYS);
}

static void triangles_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom g = {.kind = US_GEOM_TRIANGLE, .point = {{-0.9, -0.7, 0.1}, {0.9, -0.6, -0.2}, {0.1, 0.9, 0.4}}};
    check_many(&g, true, 170, RAYS);
    g.radius = 0.2;
    check_many(&g, false, 180, RAYS);
    g.point[2] = us_vec3_make(0, -0.65, -0.05);  // on the edge: what is left is a capsule
    check_many(&g, false, 190, RAYS / 10);
}

static void boxes_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom sharp = shape(US_GEOM_BOX, 0, 0.9, 0.5, 0.3), round = shape(US_GEOM_BOX, 0.2, 0.7, 0.4, 0.3),
            flat = shape(US_GEOM_BOX, 0, 0.9, 0, 0.6);
    check_many(&sharp, false, 200, RAYS);
    check_many(&round, false, 210, RAYS);
    check_many(&flat, true, 220, RAYS / 10);
}

static void cylinders_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom sharp = shape(US_GEOM_CYLINDER, 0, 0.6, 0.8, 0),
            round = shape(US_GEOM_CYLINDER, 0.15, 0.5, 0.7, 0), flat = shape(US_GEOM_CYLINDER, 0, 0.8, 0, 0);
    check_many(&sharp, false, 230, RAYS);
    check_many(&round, false, 240, RAYS);
    check_many(&flat, true, 250, RAYS / 10);
}

static void cones_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom sharp = shape(US_GEOM_CONE, 0, 0.7, 0.9, 0), round = shape(US_GEOM_CONE, 0.15, 0.6, 0.6, 0),
            wide = shape(US_GEOM_CONE, 0, 0.9, 0.2, 0), flat = shape(US_GEOM_CONE, 0, 0.9, 0, 0),
            flat_round = shape(US_GEOM_CONE, 0.2, 0.9, 0, 0);
    check_many(&sharp, false, 260, RAYS);
    check_many(&round, false, 270, RAYS);
    check_many(&wide, false, 280, RAYS);
    check_many(&flat, true, 290, RAYS / 10);
    check_many(&flat_round, false, 300, RAYS / 10);
}

static void ellipsoids_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom sharp = shape(US_GEOM_ELLIPSOID, 0, 0.9, 0.5, 0.3),
            round = shape(US_GEOM_ELLIPSOID, 0.2, 0.8, 0.3, 0.1),
            flat = shape(US_GEOM_ELLIPSOID, 0, 0.9, 0, 0.6),
            flat_round = shape(US_GEOM_ELLIPSOID, 0.2, 0.9, 0, 0.6);
    check_many(&sharp, false, 310, RAYS);
    check_many(&round, false, 320,
               RAYS / 4);  // the reference takes 200 bisections at each of 80 points of the ray
    check_many(&flat, true, 330, RAYS / 10);
    check_many(&flat_round, false, 340, RAYS / 10);
}

static void tetrahedra_are_hit_where_they_are(void **state) {
    (void)state;
    us_geom g = {.kind = US_GEOM_TETRAHEDRON,
                 .point = {{-0.9, -0.7, -0.4}, {0.9, -0.6, -0.6}, {0.1, 0.9, -0.4}, {0.2, 0.1, 0.9}}};
    check_many(&g, false, 350, RAYS);
    us_vec3 swap = g.point[0];  // the corners may come in either sense
    g.point[0] = g.point[1];
    g.point[1] = swap;
    g.radius = 0.2;
    check_many(&g, false, 360, RAYS);
    for (int i = 0; i < 4; i++)
        g.point[i].z = 0.1;
    check_many(&g, false, 370, RAYS / 10);
    g.radius = 0;
    check_many(&g, true, 380, RAYS / 10);
}

static void polyhedra_are_hit_where_they_are(void **state) {
    (void)state;
    us_vec3 points[20];
    for (uint64_t i = 0; i < 20; i++)
        points[i] = us_vec3_scale(0.9, unit(in_cube(390, i, 1)));
    us_geom g = {.kind = US_GEOM_CONVEX};
    us_hull *hull = NULL;
    assert_int_equal(us_hull_create(points, 20, NULL, &hull, NULL), US_OK);
    g.hull = hull;
    check_many(&g, false, 400,
               RAYS / 4);  // the reference looks at 36 triangles at each of 80 points of the ray
    g.radius = 0.2;
    check_many(&g, false, 410, RAYS / 4);
    us_hull_destroy(hull);
}

static void half_spaces_are_hit_on_their_plane(void **state) {
    (void)state;
    us_geom g = shape(US_GEOM_HALF_SPACE, 0.3, 0, 0, 0);
    for (uint64_t i = 0; i < RAYS; i++) {
        us_vec3 o = in_cube(420, i, 4), d = unit(in_cube(421, i, 1));
        us_ray_hit hit = us_geom_ray(&g, us_pose_identity(), o, d, RANGE);
        double t = (0.3 - o.z) / d.z;
        if (o.z < 0.3)
            assert_true(hit.range == 0 && us_vec3_norm(us_vec3_add(hit.normal, d)) < 1e-14);
        else if (d.z < 0 && t <= RANGE)
            assert_true(fabs(hit.range - t) < NEAR && hit.normal.z == 1);
        else
            assert_true(hit.range == INFINITY);
    }
}

static void intersections_are_hit_where_all_parts_are(void **state) {
    (void)state;
    // A lens, a ball with a flat side, a rounded box with a cylinder turned against it.
    const us_geom_part part[][2] = {
        {{shape(US_GEOM_SPHERE, 1, 0, 0, 0), {{1, 0, 0, 0}, {0.6, 0, 0}}},
         {shape(US_GEOM_SPHERE, 1, 0, 0, 0), {{1, 0, 0, 0}, {-0.6, 0.1, 0}}}},
        {{shape(US_GEOM_SPHERE, 0.9, 0, 0, 0), {{1, 0, 0, 0}, {0, 0, 0}}},
         {shape(US_GEOM_HALF_SPACE, 0, 0, 0, 0), {{0.8, 0.6, 0, 0}, {0, 0, 0.2}}}},
        {{shape(US_GEOM_BOX, 0.1, 0.5, 0.5, 0.3), {{1, 0, 0, 0}, {0.1, 0, 0}}},
         {shape(US_GEOM_CYLINDER, 0, 0.5, 0.9, 0), {{0.8, 0, 0.6, 0}, {0, 0.2, 0}}}},
    };
    for (uint64_t k = 0; k < 3; k++) {
        us_geom g = {.kind = US_GEOM_INTERSECTION, .parts = part[k], .n_part = 2};
        int hits = 0;
        for (uint64_t i = 0; i < RAYS; i++) {
            us_vec3 o = in_cube(430 + k, i, 3), d = unit(us_vec3_sub(in_cube(440 + k, i, 0.8), o));
            us_ray_hit hit = us_geom_ray(&g, us_pose_identity(), o, d, RANGE);
            double nearest = nearest_approach(&g, o, d, RANGE);
            if (hit.range == INFINITY) {
                // Well inside all parts somewhere: only unswept parts, whose distance inside is 0, may leave
                // the question open.
                assert_true(!(along(&g, o, d, nearest) < -NEAR));
                assert_false(along(&g, o, d, nearest - 5e-4) <= 0 && along(&g, o, d, nearest + 5e-4) <= 0);
            } else if (hit.range > 0) {
                hits++;
                assert_true(fabs(along(&g, o, d, hit.range)) < NEAR && is_unit(hit.normal));
                us_vec3 p = us_vec3_add(o, us_vec3_scale(hit.range, d));
                assert_true(fabs(distance(&g, us_vec3_add(p, us_vec3_scale(1e-3, hit.normal))) - 1e-3) <
                            1e-8);
                for (int j = 0; j < 50; j++)
                    assert_true(along(&g, o, d, hit.range * j / 50) > -NEAR);
            }
        }
        assert_true(hits > RAYS / 20);
    }
    us_geom empty = {.kind = US_GEOM_INTERSECTION};
    assert_true(
        us_geom_ray(&empty, us_pose_identity(), us_vec3_make(0, 0, 0), us_vec3_make(1, 0, 0), 1).range ==
        INFINITY);
}

static void a_swept_intersection_is_hit_where_the_same_body_of_another_kind_is(void **state) {
    (void)state;
    // A rod cut to length by a box, and two boxes that have a smaller one in common: their edges are round
    // once they are swept.
    const us_geom_part part[][2] = {{{shape(US_GEOM_CYLINDER, 0, 0.5, 2, 0), {{1, 0, 0, 0}, {0, 0, 0}}},
                                     {shape(US_GEOM_BOX, 0, 1, 1, 0.4), {{1, 0, 0, 0}, {0, 0, 0}}}},
                                    {{shape(US_GEOM_BOX, 0, 0.8, 0.3, 0.4), {{1, 0, 0, 0}, {0.3, 0, 0}}},
                                     {shape(US_GEOM_BOX, 0, 0.8, 0.9, 0.9), {{1, 0, 0, 0}, {-0.3, 0, 0}}}}};
    const us_geom twin[2] = {shape(US_GEOM_CYLINDER, 0.2, 0.5, 0.4, 0),
                             shape(US_GEOM_BOX, 0.2, 0.5, 0.3, 0.4)};
    for (uint64_t k = 0; k < 2; k++) {
        us_geom g = {.kind = US_GEOM_INTERSECTION, .parts = part[k], .n_part = 2, .radius = 0.2};
        int hits = 0;
        for (uint64_t i = 0; i < RAYS; i++) {
            us_vec3 o = in_cube(450 + k, i, 3), d = unit(us_vec3_sub(in_cube(460 + k, i, 0.8), o));
            us_ray_hit a = us_geom_ray(&g, us_pose_identity(), o, d, RANGE),
                       b = us_geom_ray(&twin[k], us_pose_identity(), o, d, RANGE);
            // Grazing rays may be lost, or found late, by the root of 1e-7.
            const us_ray_hit *either = b.range < INFINITY ? &b : &a;
            if (either->range == INFINITY || fabs(us_vec3_dot(either->normal, d)) < 0.05) continue;
            hits++;
            assert_true(fabs(a.range - b.range) < 1e-5 &&
                        us_vec3_norm(us_vec3_sub(a.normal, b.normal)) < 1e-2);
        }
        assert_true(hits > RAYS / 20);
    }
}

static void unions_are_hit_on_the_nearest_part(void **state) {
    (void)state;
    const us_geom_part inner[] = {
        {shape(US_GEOM_CONE, 0, 0.5, 0.5, 0), {{0.6, 0, 0.8, 0}, {0.5, 0.5, 0}}},
        {shape(US_GEOM_DISC, 0.1, 0.6, 0, 0), {{0.8, 0.6, 0, 0}, {-0.6, 0.4, 0.4}}}};
    const us_geom_part part[] = {
        {shape(US_GEOM_BOX, 0, 0.5, 0.3, 0.2), {{1, 0, 0, 0}, {0.3, -0.5, 0}}},
        {{.kind = US_GEOM_UNION, .parts = inner, .n_part = 2}, {{0.6, 0, 0, 0.8}, {0, 0, 0.3}}},
        {shape(US_GEOM_CAPSULE, 0.2, 0.6, 0, 0), {{0.6, 0.8, 0, 0}, {-0.3, -0.3, -0.5}}}};
    us_geom g = {.kind = US_GEOM_UNION, .parts = part, .n_part = 3};
    int hits = 0;
    for (uint64_t i = 0; i < RAYS; i++) {
        us_vec3 o = in_cube(450, i, 3), d = unit(us_vec3_sub(in_cube(451, i, 1), o));
        us_ray_hit hit = us_geom_ray(&g, us_pose_identity(), o, d, RANGE);
        double end = fmin(hit.range, RANGE);
        if (hit.range == 0) assert_true(along(&g, o, d, 0) < NEAR);
        for (int j = 0; j < 100 && end > 0; j++)
            assert_true(along(&g, o, d, end * j / 100) > -NEAR);
        if (hit.range == INFINITY || hit.range == 0) continue;
        hits++;
        assert_true(fabs(along(&g, o, d, hit.range)) < NEAR);
    }
    assert_true(hits > RAYS / 10);
    // A radius on the union is a radius on every part.
    g.radius = 0.15;
    for (uint64_t i = 0; i < RAYS / 10; i++) {
        us_vec3 o = in_cube(452, i, 3), d = unit(us_vec3_sub(in_cube(453, i, 1), o));
        us_ray_hit hit = us_geom_ray(&g, us_pose_identity(), o, d, RANGE);
        if (hit.range > 0 && hit.range < INFINITY) assert_true(fabs(along(&g, o, d, hit.range)) < NEAR);
    }
}

// ---------------------------------------------------------------- meshes

enum { AROUND = 24, TUBE = 12, TRIANGLES = 2 * AROUND * TUBE };

// A torus about z, radii 0.8 and 0.3; with `n` of its triangles, all of which close it.
static us_mesh *torus(int32_t n) {
    static us_vec3 vertex[AROUND * TUBE];
    static int32_t triangle[TRIANGLES][3];
    for (int32_t i = 0; i < AROUND; i++) {
        for (int32_t j = 0; j < TUBE; j++) {
            double u = 2 * PI * i / AROUND, v = 2 * PI * j / TUBE, r = 0.8 + 0.3 * cos(v);
            vertex[i * TUBE + j] = us_vec3_make(r * cos(u), r * sin(u), 0.3 * sin(v));
            int32_t a = i * TUBE + j, b = (i + 1) % AROUND * TUBE + j,
                    c = (i + 1) % AROUND * TUBE + (j + 1) % TUBE, d = i * TUBE + (j + 1) % TUBE;
            int32_t *t = triangle[2 * a];
            t[0] = a;
            t[1] = b;
            t[2] = c;
            t[3] = a;
            t[4] = c;
            t[5] = d;
        }
    }
    us_mesh *mesh = NULL;
    assert_int_equal(
        us_mesh_create(vertex, AROUND * TUBE, (const int32_t(*)[3])triangle, n, NULL, &mesh, NULL), US_OK);
    return mesh;
}

static void corners(const us_mesh *m, int32_t i, us_vec3 *out) {
    for (int k = 0; k < 3; k++)
        out[k] = m->vertex[m->triangle[i][k]];
}

// How often the surface goes round a point: the sum of the solid angles (van Oosterom and Strackee 1983).
static double winding(const us_mesh *m, us_vec3 p) {
    double sum = 0;
    for (int32_t i = 0; i < m->n_triangle; i++) {
        us_vec3 c[3];
        corners(m, i, c);
        for (int k = 0; k < 3; k++)
            c[k] = us_vec3_sub(c[k], p);
        double a = us_vec3_norm(c[0]), b = us_vec3_norm(c[1]), e = us_vec3_norm(c[2]);
        sum += 2 * atan2(us_vec3_dot(c[0], us_vec3_cross(c[1], c[2])),
                         a * b * e + us_vec3_dot(c[0], c[1]) * e + us_vec3_dot(c[1], c[2]) * a +
                             us_vec3_dot(c[2], c[0]) * b);
    }
    return sum / (4 * PI);
}

// The nearest triangle by solving o + t d = the triangle's plane, for each of them.
static double brute_mesh(const us_mesh *m, us_vec3 o, us_vec3 d, us_vec3 *out_normal) {
    double best = INFINITY;
    for (int32_t i = 0; i < m->n_triangle; i++) {
        us_vec3 c[3];
        corners(m, i, c);
        us_vec3 n = unit(us_vec3_cross(us_vec3_sub(c[1], c[0]), us_vec3_sub(c[2], c[0])));
        double speed = us_vec3_dot(n, d), t = us_vec3_dot(n, us_vec3_sub(c[0], o)) / speed;
        if (speed == 0 || t < 0 || t >= best) continue;
        us_vec3 p = us_vec3_add(o, us_vec3_scale(t, d));
        bool is_in = true;
        for (int k = 0; k < 3; k++)
            is_in =
                is_in &&
                us_vec3_dot(us_vec3_cross(us_vec3_sub(c[(k + 1) % 3], c[k]), us_vec3_sub(p, c[k])), n) >= 0;
        if (is_in) {
            best = t;
            *out_normal = n;
        }
    }
    return best;
}

static void meshes_are_hit_on_the_nearest_triangle(void **state) {
    (void)state;
    for (int open = 0; open < 2; open++) {
        us_mesh *mesh = torus(open ? TRIANGLES / 2 : TRIANGLES);
        assert_true(mesh->is_closed == !open);
        us_geom g = {.kind = US_GEOM_MESH, .mesh = mesh};
        int hits = 0, inside = 0;
        for (uint64_t i = 0; i < RAYS; i++) {
            us_vec3 o = in_cube(460, i, i % 3 ? 2 : 0.9), d = unit(us_vec3_sub(in_cube(461, i, 1.1), o)),
                    normal = {0, 0, 0};
            us_pose X = some_pose(462, i);
            us_ray_hit hit = us_geom_ray(&g, X, us_pose_point(X, o), us_quat_rotate(X.q, d), RANGE);
            double expected = brute_mesh(mesh, o, d, &normal);
            if (!open && winding(mesh, o) > 0.5) {
                assert_true(hit.range == 0);
                inside++;
                continue;
            }
            // A random ray comes nearer to an edge than rounding once in 1e12.
            if (expected == INFINITY) {
                assert_true(hit.range == INFINITY);
                continue;
            }
            hits++;
            assert_true(fabs(hit.range - expected) < NEAR);
            us_vec3 n = us_quat_rotate(us_quat_conj(X.q), hit.normal);
            if (us_vec3_dot(normal, d) > 0)
                normal = us_vec3_scale(-1, normal);  // an open one is seen from behind as well
            assert_true(us_vec3_norm(us_vec3_sub(n, normal)) < NEAR);
            assert_true(
                us_geom_ray(&g, X, us_pose_point(X, o), us_quat_rotate(X.q, d), 0.999 * expected).range ==
                INFINITY);
        }
        assert_true(hits > RAYS / 10 && (open || inside > RAYS / 50));
        us_mesh_destroy(mesh);
    }
}

// Aimed at vertices and edges exactly: a closed surface lets nothing through and is never entered by mistake.
static void closed_meshes_are_watertight_at_edges_and_vertices(void **state) {
    (void)state;
    const us_vec3 v[8] = {{-1, -1, -1}, {1, -1, -1}, {1, 1, -1}, {-1, 1, -1},
                          {-1, -1, 1},  {1, -1, 1},  {1, 1, 1},  {-1, 1, 1}};
    const int32_t t[12][3] = {{0, 2, 1}, {0, 3, 2}, {4, 5, 6}, {4, 6, 7}, {0, 1, 5}, {0, 5, 4},
                              {1, 2, 6}, {1, 6, 5}, {2, 3, 7}, {2, 7, 6}, {3, 0, 4}, {3, 4, 7}};
    us_mesh *mesh = NULL;
    assert_int_equal(us_mesh_create(v, 8, t, 12, NULL, &mesh, NULL), US_OK);
    us_geom g = {.kind = US_GEOM_MESH, .mesh = mesh};
    for (uint64_t i = 0; i < RAYS; i++) {
        // Points of the faces' diagonals and borders, on a lattice, seen from far outside along lattice
        // directions; and from inside.
        us_vec3 p =
            us_vec3_make(floor(uniform(470, 3 * i, -4, 5)) / 4, floor(uniform(470, 3 * i + 1, -4, 5)) / 4, 1);
        us_vec3 o = us_vec3_make(floor(uniform(471, 3 * i, -4, 5)), floor(uniform(471, 3 * i + 1, -4, 5)), 3);
        us_vec3 d = us_vec3_sub(p, o);
        us_ray_hit hit = us_geom_ray(&g, us_pose_identity(), o, d, RANGE);
        bool is_rim = fabs(p.x) == 1 || fabs(p.y) == 1;
        // A face is hit. At the rim of the box the ray may pass by, or meet a side instead.
        if (!is_rim)
            assert_true(fabs(hit.range - us_vec3_norm(d)) < NEAR && hit.normal.z == 1);
        else
            assert_true(hit.range > 0.5);
        us_vec3 within = us_vec3_make(0.2 * o.x, 0.2 * o.y, 0.5);
        assert_true(us_geom_ray(&g, us_pose_identity(), within, us_vec3_sub(p, within), RANGE).range == 0);
    }
    us_mesh_destroy(mesh);
}

// ---------------------------------------------------------------- height fields

enum { N_X = 9, N_Y = 7 };

static us_height_field *hills(void) {
    double h[N_X * N_Y];
    for (int i = 0; i < N_X * N_Y; i++)
        h[i] = uniform(480, (uint64_t)i, -0.3, 0.3);
    us_height_field *f = NULL;
    assert_int_equal(us_height_field_create(h, N_X, N_Y, 0.25, 0.3, NULL, &f, NULL), US_OK);
    return f;
}

// Triangles of the surface, and of walls that go down far enough.
static int32_t field_triangles(const us_height_field *f, us_vec3 (*out)[3]) {
    int32_t n = 0;
    for (int32_t j = 0; j + 1 < f->n_y; j++) {
        for (int32_t i = 0; i + 1 < f->n_x; i++) {
            us_vec3 a = usi_field_point(f, i, j), b = usi_field_point(f, i + 1, j),
                    c = usi_field_point(f, i + 1, j + 1), d = usi_field_point(f, i, j + 1);
            const us_vec3 cell[2][3] = {{a, b, c}, {a, c, d}};
            for (int k = 0; k < 2; k++, n++) {
                out[n][0] = cell[k][0];
                out[n][1] = cell[k][1];
                out[n][2] = cell[k][2];
            }
        }
    }
    for (int side = 0; side < 4; side++) {
        for (int32_t k = 0; k + 1 < (side < 2 ? f->n_x : f->n_y); k++) {
            int32_t end = side == 0 || side == 2 ? 0 : (side < 2 ? f->n_y : f->n_x) - 1;
            us_vec3 a = side < 2 ? usi_field_point(f, k, end) : usi_field_point(f, end, k);
            us_vec3 b = side < 2 ? usi_field_point(f, k + 1, end) : usi_field_point(f, end, k + 1);
            us_vec3 deep_a = us_vec3_make(a.x, a.y, -50), deep_b = us_vec3_make(b.x, b.y, -50);
            const us_vec3 wall[2][3] = {{a, b, deep_b}, {a, deep_b, deep_a}};
            for (int m = 0; m < 2; m++, n++) {
                out[n][0] = wall[m][0];
                out[n][1] = wall[m][1];
                out[n][2] = wall[m][2];
            }
        }
    }
    return n;
}

static us_vec3 (*soup)[3];
static int32_t n_soup;

static double soup_distance(us_vec3 p) {
    double d = INFINITY;
    for (int32_t i = 0; i < n_soup; i++)
        d = fmin(d, triangle_distance(p, soup[i]));
    return d;
}

// Below the surface and within the rectangle: a point of the plane far below is, and each crossing of the
// vertical line changes it.
static bool is_in_field(const us_height_field *f, us_vec3 p) {
    double x = p.x / f->dx + 0.5 * (f->n_x - 1), y = p.y / f->dy + 0.5 * (f->n_y - 1);
    if (x < 0 || y < 0 || x > f->n_x - 1 || y > f->n_y - 1) return false;
    int32_t i = (int32_t)fmin(floor(x), f->n_x - 2), j = (int32_t)fmin(floor(y), f->n_y - 2);
    double u = x - i, v = y - j;
    double z00 = usi_field_point(f, i, j).z, z10 = usi_field_point(f, i + 1, j).z,
           z01 = usi_field_point(f, i, j + 1).z, z11 = usi_field_point(f, i + 1, j + 1).z;
    double z = u > v ? (1 - u) * z00 + (u - v) * z10 + v * z11 : (1 - v) * z00 + (v - u) * z01 + u * z11;
    return p.z < z;
}

// Sphere tracing: steps of the distance less the radius. NaN when it creeps along the surface without an end.
static double trace(us_vec3 o, us_vec3 d, double radius) {
    double t = 0;
    for (int step = 0; step < 400; step++) {
        double f = soup_distance(us_vec3_add(o, us_vec3_scale(t, d))) - radius;
        if (f < 1e-10) return t;
        t += f;
        if (t > RANGE) return INFINITY;
    }
    return NAN;
}

static void check_soup(const us_geom *g, bool (*is_inside)(const us_geom *, us_vec3), uint64_t stream,
                       int n) {
    int hits = 0, inside = 0, misses = 0;
    for (uint64_t i = 0; i < (uint64_t)n; i++) {
        us_vec3 o = in_cube(stream, i, i % 4 ? 2 : 0.7),
                d = unit(us_vec3_sub(in_cube(stream + 1, i, 1.1), o));
        if (i % 16 == 1) d = us_vec3_make(0, 0, i % 32 == 1 ? -1 : 1);  // straight down, straight up
        us_pose X = some_pose(stream + 2, i);
        if (i % 2) X = us_pose_identity();
        us_ray_hit hit = us_geom_ray(g, X, us_pose_point(X, o), us_quat_rotate(X.q, d), RANGE);
        double from_surface = soup_distance(o) - g->radius;
        if (fabs(from_surface) < 1e-8) continue;
        if (is_inside(g, o) || from_surface < 0) {
            assert_true(hit.range == 0);
            inside++;
            continue;
        }
        double expected = trace(o, d, g->radius);
        if (isnan(expected)) continue;
        if (expected == INFINITY) {
            assert_true(hit.range == INFINITY);
            misses++;
            continue;
        }
        if (hit.range == INFINITY) {
            // The tracer stops 1e-10 before the surface: only a ray that grazes may be missed.
            assert_true(soup_distance(us_vec3_add(o, us_vec3_scale(expected + 1e-4, d))) - g->radius > -1e-9);
            continue;
        }
        us_vec3 p = us_vec3_add(o, us_vec3_scale(hit.range, d)),
                normal = us_quat_rotate(us_quat_conj(X.q), hit.normal);
        hits++;
        // Never before the tracer's safe way; on the surface; and only as far behind as 1e-10 is at a slope
        // of 1e-3.
        assert_true(hit.range > expected - NEAR && hit.range < expected + 1e-6);
        assert_true(fabs(soup_distance(p) - g->radius) < 1e-8);
        assert_true(is_unit(normal) && us_vec3_dot(normal, d) < 1e-6);
        // Along the normal the distance grows by the step; so small a step that no second triangle becomes
        // the nearest on the way.
        double grown = soup_distance(us_vec3_add(p, us_vec3_scale(1e-7, normal))) - soup_distance(p);
        if (g->radius > 0) assert_true(fabs(grown - 1e-7) < 1e-11);
    }
    assert_true(hits > n / 10 && inside > n / 100 && misses > n / 100);
}

static bool inside_field(const us_geom *g, us_vec3 p) { return is_in_field(g->field, p); }
static bool inside_mesh(const us_geom *g, us_vec3 p) {
    return g->mesh->is_closed && winding(g->mesh, p) > 0.5;
}

static void height_fields_are_hit_where_the_ray_goes_under(void **state) {
    (void)state;
    static us_vec3 triangles[2 * N_X * N_Y + 8 * (N_X + N_Y)][3];
    us_height_field *f = hills();
    n_soup = field_triangles(f, triangles);
    soup = triangles;
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    check_soup(&g, inside_field, 490, RAYS / 4);  // the reference looks at 152 triangles at each step
    g.radius = 0.1;
    check_soup(&g, inside_field, 500, RAYS / 4);
    g.radius = 0.5;  // more than a cell
    check_soup(&g, inside_field, 510, RAYS / 10);
    us_height_field_destroy(f);
}

static void swept_meshes_are_hit_a_radius_away(void **state) {
    (void)state;
    static us_vec3 triangles[TRIANGLES][3];
    us_mesh *mesh = torus(TRIANGLES);
    for (int32_t i = 0; i < TRIANGLES; i++)
        corners(mesh, i, triangles[i]);
    soup = triangles;
    n_soup = TRIANGLES;
    us_geom g = {.kind = US_GEOM_MESH, .mesh = mesh, .radius = 0.1};
    check_soup(&g, inside_mesh, 520, RAYS / 20);
    us_mesh_destroy(mesh);
}

// Along the grid's lines, over its corners and diagonals, no ray may slip through, and a flat field is hit on
// its plane.
static void height_fields_have_no_seams(void **state) {
    (void)state;
    double flat[25] = {0};
    us_height_field *f = NULL;
    assert_int_equal(us_height_field_create(flat, 5, 5, 0.5, 0.5, NULL, &f, NULL), US_OK);
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    for (uint64_t i = 0; i < RAYS; i++) {
        us_vec3 p =
            us_vec3_make(floor(uniform(530, 5 * i, -8, 9)) / 8, floor(uniform(530, 5 * i + 1, -8, 9)) / 8, 0);
        us_vec3 o =
            us_vec3_make(floor(uniform(530, 5 * i + 2, -8, 9)) / 8, floor(uniform(530, 5 * i + 3, -8, 9)) / 8,
                         floor(uniform(530, 5 * i + 4, 1, 4)));
        us_vec3 d = us_vec3_sub(p, o);
        us_ray_hit hit = us_geom_ray(&g, us_pose_identity(), o, d, RANGE);
        // Exactly on the border the ray may pass by.
        bool is_border = fabs(p.x) == 1 || fabs(p.y) == 1;
        assert_true(is_border || (fabs(hit.range - us_vec3_norm(d)) < NEAR && hit.normal.z == 1));
        assert_true(!is_border || hit.range == INFINITY || fabs(hit.range - us_vec3_norm(d)) < NEAR);
    }
    us_height_field_destroy(f);
}

// ---------------------------------------------------------------- special rays

static void rays_end_where_the_range_ends(void **state) {
    (void)state;
    us_geom g = shape(US_GEOM_SPHERE, 1, 0, 0, 0);
    us_vec3 o = us_vec3_make(-3, 0, 0), d = us_vec3_make(1, 0, 0);
    assert_true(us_geom_ray(&g, us_pose_identity(), o, d, 2).range == 2);
    assert_true(us_geom_ray(&g, us_pose_identity(), o, d, nextafter(2, 0)).range == INFINITY);
    assert_true(us_geom_ray(&g, us_pose_identity(), o, d, INFINITY).range == 2);
    assert_true(us_geom_ray(&g, us_pose_identity(), o, us_vec3_scale(-1, d), INFINITY).range ==
                INFINITY);  // behind
    assert_true(us_geom_ray(&g, us_pose_identity(), o, us_vec3_scale(5, d), 3).range ==
                2);  // any length of direction
}

static void grazing_rays_touch_and_do_not_touch(void **state) {
    (void)state;
    us_geom round[] = {shape(US_GEOM_SPHERE, 1, 0, 0, 0),      shape(US_GEOM_CAPSULE, 1, 1, 0, 0),
                       shape(US_GEOM_CYLINDER, 0, 1, 1, 0),    shape(US_GEOM_CYLINDER, 0.5, 0.5, 1, 0),
                       shape(US_GEOM_ELLIPSOID, 0, 0.7, 1, 2), shape(US_GEOM_BOX, 0.5, 0.5, 0.5, 0.5),
                       shape(US_GEOM_DISC, 0.25, 0.75, 0, 0),  shape(US_GEOM_ELLIPSOID, 0.5, 2, 0.5, 1)};
    for (size_t i = 0; i < sizeof round / sizeof *round; i++) {
        us_vec3 d = us_vec3_make(1, 0, 0);
        us_ray_hit under =
            us_geom_ray(&round[i], us_pose_identity(), us_vec3_make(-5, 1 - 1e-9, 0), d, RANGE);
        assert_true(under.range < 6 && under.normal.y > 0.99);
        assert_true(
            us_geom_ray(&round[i], us_pose_identity(), us_vec3_make(-5, 1 + 1e-9, 0), d, RANGE).range ==
            INFINITY);
    }
    // Along a face of a box the closed set is touched.
    us_geom box = shape(US_GEOM_BOX, 0, 1, 1, 1);
    assert_true(
        us_geom_ray(&box, us_pose_identity(), us_vec3_make(-5, 1, 0), us_vec3_make(1, 0, 0), RANGE).range ==
        4);
    // Along the line of a cone's surface, and down its axis onto the tip.
    us_geom cone = shape(US_GEOM_CONE, 0, 1, 1, 0);
    us_ray_hit tip =
        us_geom_ray(&cone, us_pose_identity(), us_vec3_make(0, 0, 4), us_vec3_make(0, 0, -1), RANGE);
    assert_true(fabs(tip.range - 3) < 1e-14 && tip.normal.z == 1);
    us_ray_hit base =
        us_geom_ray(&cone, us_pose_identity(), us_vec3_make(0.2, 0.1, -4), us_vec3_make(0, 0, 1), RANGE);
    assert_true(fabs(base.range - 3) < 1e-14 && base.normal.z == -1);
    us_ray_hit slant =
        us_geom_ray(&cone, us_pose_identity(), us_vec3_make(-0.5, 0, 3.5), us_vec3_make(0.5, 0, -1), RANGE);
    assert_true(slant.range == INFINITY || slant.normal.x > 0);
}

static void far_rays_lose_only_the_rounding_of_their_range(void **state) {
    (void)state;
    us_geom g[] = {shape(US_GEOM_SPHERE, 1, 0, 0, 0),        shape(US_GEOM_CAPSULE, 1, 1, 0, 0),
                   shape(US_GEOM_CYLINDER, 0, 1, 1, 0),      shape(US_GEOM_ELLIPSOID, 0, 1, 1, 2),
                   shape(US_GEOM_BOX, 0.25, 0.75, 0.5, 0.5), shape(US_GEOM_CONE, 0, 2, 1, 0)};
    for (size_t i = 0; i < sizeof g / sizeof *g; i++) {
        us_ray_hit hit =
            us_geom_ray(&g[i], us_pose_identity(), us_vec3_make(-1e6, 0, 0), us_vec3_make(1, 0, 0), INFINITY);
        assert_true(fabs(hit.range - (1e6 - 1)) < 1e-9);  // 1e6 in double is known to 1e-10
        assert_true(fabs(us_vec3_norm(hit.normal) - 1) < 1e-12 && hit.normal.x < -0.4);
    }
}

static void rays_that_are_none_miss_and_nothing_is_nan_for_sizes_of_zero(void **state) {
    (void)state;
    us_vec3 x = us_vec3_make(1, 0, 0), zero = us_vec3_make(0, 0, 0), nan = us_vec3_make(NAN, 0, 0);
    us_geom ball = shape(US_GEOM_SPHERE, 1, 0, 0, 0);
    assert_true(us_geom_ray(&ball, us_pose_identity(), us_vec3_make(-3, 0, 0), zero, RANGE).range ==
                INFINITY);
    assert_true(us_geom_ray(&ball, us_pose_identity(), nan, x, RANGE).range == INFINITY);
    assert_true(us_geom_ray(&ball, us_pose_identity(), zero, nan, RANGE).range == INFINITY);
    assert_true(us_geom_ray(&ball, us_pose_identity(), zero, x, -1).range == INFINITY);
    assert_true(us_geom_ray(NULL, us_pose_identity(), zero, x, RANGE).range == INFINITY);
    for (int kind = 0; kind < US_GEOM_COUNT; kind++) {
        for (int sizes = 0; sizes < 8; sizes++) {
            for (int r = 0; r < 3; r++) {
                us_geom g =
                    shape((us_geom_kind)kind, 0.5 * r, sizes & 1, sizes & 2 ? 1 : 0, sizes & 4 ? 1 : 0);
                for (uint64_t i = 0; i < 27; i++) {
                    // From and towards lattice points: through corners, along faces, through the middle.
                    us_vec3 o =
                        us_vec3_make((double)(i % 3) - 1, (double)(i / 3 % 3) - 1, (double)(i / 9) - 1);
                    for (uint64_t k = 0; k < 27; k++) {
                        us_vec3 d =
                            us_vec3_make((double)(k % 3) - 1, (double)(k / 3 % 3) - 1, (double)(k / 9) - 1);
                        us_ray_hit hit = us_geom_ray(&g, us_pose_identity(), o, d, RANGE);
                        assert_true(hit.range >= 0);  // false for NaN
                        assert_true(hit.range == INFINITY || is_unit(hit.normal));
                    }
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spheres_and_capsules_are_hit_where_they_are),
        cmocka_unit_test(lozenges_are_hit_where_they_are),
        cmocka_unit_test(discs_are_hit_where_they_are),
        cmocka_unit_test(triangles_are_hit_where_they_are),
        cmocka_unit_test(boxes_are_hit_where_they_are),
        cmocka_unit_test(cylinders_are_hit_where_they_are),
        cmocka_unit_test(cones_are_hit_where_they_are),
        cmocka_unit_test(ellipsoids_are_hit_where_they_are),
        cmocka_unit_test(tetrahedra_are_hit_where_they_are),
        cmocka_unit_test(polyhedra_are_hit_where_they_are),
        cmocka_unit_test(half_spaces_are_hit_on_their_plane),
        cmocka_unit_test(intersections_are_hit_where_all_parts_are),
        cmocka_unit_test(a_swept_intersection_is_hit_where_the_same_body_of_another_kind_is),
        cmocka_unit_test(unions_are_hit_on_the_nearest_part),
        cmocka_unit_test(meshes_are_hit_on_the_nearest_triangle),
        cmocka_unit_test(closed_meshes_are_watertight_at_edges_and_vertices),
        cmocka_unit_test(height_fields_are_hit_where_the_ray_goes_under),
        cmocka_unit_test(swept_meshes_are_hit_a_radius_away),
        cmocka_unit_test(height_fields_have_no_seams),
        cmocka_unit_test(rays_end_where_the_range_ends),
        cmocka_unit_test(grazing_rays_touch_and_do_not_touch),
        cmocka_unit_test(far_rays_lose_only_the_rounding_of_their_range),
        cmocka_unit_test(rays_that_are_none_miss_and_nothing_is_nan_for_sizes_of_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

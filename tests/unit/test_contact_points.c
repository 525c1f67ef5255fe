// Contact points: where they must be for simple shapes, and what holds for all pairs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "instrumented.h"
#include "understudy/geom.h"

enum { MANY = IS_INSTRUMENTED ? 200 : 2000 };

static const double PI = 3.14159265358979323846;
// Roundings of numbers of size 1 through some ten operations.
static const double TINY = 1e-13;

static us_geom box(double x, double y, double z) { return (us_geom){.kind = US_GEOM_BOX, .size = {x, y, z}}; }
static us_geom sphere(double r) { return (us_geom){.kind = US_GEOM_SPHERE, .radius = r}; }
static us_geom capsule(double half, double r) {
    return (us_geom){.kind = US_GEOM_CAPSULE, .size = {half}, .radius = r};
}
static us_geom cylinder(double r, double half) {
    return (us_geom){.kind = US_GEOM_CYLINDER, .size = {r, half}};
}
static us_geom half_space(void) { return (us_geom){.kind = US_GEOM_HALF_SPACE}; }
static us_pose at(double x, double y, double z) { return (us_pose){{1, 0, 0, 0}, {x, y, z}}; }
static us_pose turned(double roll, double pitch, double yaw, double x, double y, double z) {
    return (us_pose){us_quat_from_rpy(roll, pitch, yaw), {x, y, z}};
}

static us_manifold contact(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin) {
    us_manifold m;
    assert_int_equal(us_geom_contact(A, X_WA, B, X_WB, margin, &m), US_OK);
    assert_true(m.n >= 0 && m.n <= US_MANIFOLD_POINTS);
    for (int32_t i = 0; i < m.n; i++) {
        assert_true(fabs(us_vec3_norm(m.normal[i]) - 1) < TINY);
        assert_true(fabs(us_vec3_dot(m.normal[i], us_vec3_sub(m.p_A[i], m.p_B[i])) - m.gap[i]) < 1e-12);
        assert_true(m.gap[i] <= margin + TINY);
    }
    return m;
}
static double deepest(const us_manifold *m) {
    double g = INFINITY;
    for (int32_t i = 0; i < m->n; i++)
        g = fmin(g, m->gap[i]);
    return g;
}
// Is there a point of A at (x, y, z)?
static bool has_point(const us_manifold *m, double x, double y, double z, double tolerance) {
    for (int32_t i = 0; i < m->n; i++) {
        if (us_vec3_norm(us_vec3_sub(m->p_A[i], us_vec3_make(x, y, z))) <= tolerance) return true;
    }
    return false;
}
static void all_normals(const us_manifold *m, us_vec3 n, double tolerance) {
    for (int32_t i = 0; i < m->n; i++)
        assert_true(us_vec3_norm(us_vec3_sub(m->normal[i], n)) <= tolerance);
}
static const us_vec3 UP = {0, 0, 1};

static void a_box_on_a_plane_touches_with_four_corners(void **state) {
    (void)state;
    us_geom b = box(.1, .2, .3), h = half_space();
    us_manifold m = contact(&b, at(1, 2, .3 - .001), &h, at(0, 0, 0), .01);
    assert_int_equal(m.n, 4);
    all_normals(&m, UP, TINY);
    for (int k = 0; k < 4; k++)
        assert_true(has_point(&m, 1 + (k & 1 ? .1 : -.1), 2 + (k & 2 ? .2 : -.2), -.001, TINY));
    double sum = m.gap[0] + m.gap[1] + m.gap[2] + m.gap[3];
    assert_true(fabs(sum + .004) < TINY);
    // Exchanged: the same, turned round.
    us_manifold e = contact(&h, at(0, 0, 0), &b, at(1, 2, .3 - .001), .01);
    assert_int_equal(e.n, 4);
    all_normals(&e, us_vec3_make(0, 0, -1), TINY);
    // Beyond the margin there is nothing; on an edge there are two corners, on a corner one.
    assert_int_equal(contact(&b, at(0, 0, .311), &h, at(0, 0, 0), .01).n, 0);
    double low = .2 * sin(PI / 4) + .3 * cos(PI / 4);
    assert_int_equal(contact(&b, turned(PI / 4, 0, 0, 0, 0, low), &h, at(0, 0, 0), .01).n, 2);
    assert_int_equal(contact(&b, turned(.7, .7, 0, 0, 0, .3), &h, at(0, 0, 0), 1e-9).n > 0, 1);
}

static void a_tilted_plane_gives_points_along_its_normal(void **state) {
    (void)state;
    us_geom b = box(.1, .1, .1), h = half_space();
    us_pose X = turned(.3, -.2, .5, 1, 2, 3);
    us_manifold m = contact(&b, us_pose_mul(X, at(.4, .5, .1 + .002)), &h, X, .01);
    assert_int_equal(m.n, 4);
    all_normals(&m, us_quat_rotate(X.q, UP), TINY);
    for (int k = 0; k < 4; k++)
        assert_true(fabs(m.gap[k] - .002) < TINY);
}

static void stacked_boxes_touch_at_the_corners_of_the_common_face(void **state) {
    (void)state;
    us_geom a = box(.1, .1, .1), b = box(.3, .3, .1);
    us_manifold m = contact(&a, at(.05, 0, .2 - 1e-4), &b, at(0, 0, 0), .002);
    assert_int_equal(m.n, 4);
    all_normals(&m, UP, TINY);
    for (int k = 0; k < 4; k++)
        assert_true(has_point(&m, .05 + (k & 1 ? .1 : -.1), k & 2 ? .1 : -.1, .1 - 1e-4, TINY) &&
                    fabs(m.gap[k] + 1e-4) < TINY);
    // The same box turned by 45 degrees on one of its size: the corners of the octagon, of which four are
    // kept.
    us_manifold t = contact(&a, turned(0, 0, PI / 4, 0, 0, .2), &a, at(0, 0, 0), .002);
    assert_int_equal(t.n, 4);
    double q = .1 * sqrt(2) - .1;
    for (int i = 0; i < 4; i++) {
        double x = fabs(t.p_A[i].x), y = fabs(t.p_A[i].y);
        // The corner is exact; which of the eight is not said.
        assert_true((fabs(x - .1) < TINY && fabs(y - q) < TINY) ||
                    (fabs(y - .1) < TINY && fabs(x - q) < TINY));
        assert_true(fabs(t.gap[i]) < TINY);
    }
    // They surround the middle: a stack stands on them.
    for (int d = 0; d < 16; d++) {
        double far = -1;
        for (int i = 0; i < 4; i++)
            far = fmax(far, cos(d * PI / 8) * t.p_A[i].x + sin(d * PI / 8) * t.p_A[i].y);
        assert_true(far > .03);
    }
}

static void crossing_edges_touch_at_one_point(void **state) {
    (void)state;
    us_geom a = box(.1, .1, .1);
    double r = .1 * sqrt(2);
    // The lower edge of A runs along x, the upper edge of B along y.
    us_manifold m =
        contact(&a, turned(PI / 4, 0, 0, .01, .02, 2 * r - .003), &a, turned(0, PI / 4, 0, 0, 0, 0), .002);
    assert_int_equal(m.n, 1);
    all_normals(&m, UP, 1e-12);
    assert_true(fabs(m.gap[0] + .003) < 1e-12);
    assert_true(has_point(&m, 0, .02, r - .003, 1e-12));
}

static void boxes_side_by_side_touch_on_the_common_part_only(void **state) {
    (void)state;
    us_geom a = box(.1, .1, .1);
    us_manifold m = contact(&a, at(.2 + .0005, .15, 0), &a, at(0, 0, 0), .001);
    assert_int_equal(m.n, 4);
    all_normals(&m, us_vec3_make(1, 0, 0), TINY);
    for (int i = 0; i < 4; i++)
        assert_true(m.p_A[i].y > .05 - TINY && m.p_A[i].y < .1 + TINY);
    // Corner to corner, apart: the true distance, not that of the best of fifteen axes.
    us_manifold d = contact(&a, at(.2 + 3e-3, .2 + 4e-3, 0), &a, at(0, 0, 0), .01);
    assert_true(d.n >= 1);
    assert_true(fabs(deepest(&d) - 5e-3) < 1e-9);
}

static void capsules_lie_on_two_points_and_stand_on_one(void **state) {
    (void)state;
    us_geom c = capsule(.2, .05), h = half_space(), b = box(.1, .1, .1), floor = box(1, 1, .1);
    us_manifold m = contact(&c, turned(0, PI / 2, 0, 0, 0, .049), &h, at(0, 0, 0), .01);
    assert_int_equal(m.n, 2);
    assert_true(has_point(&m, .2, 0, -.001, 1e-12) && has_point(&m, -.2, 0, -.001, 1e-12));
    assert_int_equal(contact(&c, at(0, 0, .249), &h, at(0, 0, 0), .01).n, 1);
    // On a box's face the line is cut at the face's rim.
    m = contact(&c, turned(0, PI / 2, 0, .05, 0, .15), &b, at(0, 0, 0), .01);
    assert_int_equal(m.n, 2);
    assert_true(has_point(&m, .1, 0, .1, 1e-9) && has_point(&m, -.1, 0, .1, 1e-9));
    assert_int_equal(contact(&c, turned(0, PI / 2, .3, 0, 0, .15), &floor, at(0, 0, 0), .01).n, 2);
    // Side by side and across each other.
    m = contact(&c, turned(0, PI / 2, 0, .1, 0, .099), &c, turned(0, PI / 2, 0, 0, 0, 0), .01);
    assert_int_equal(m.n, 2);
    assert_true(has_point(&m, .2, 0, .049, 1e-9) && has_point(&m, -.1, 0, .049, 1e-9));
    m = contact(&c, turned(0, PI / 2, PI / 2, 0, 0, .099), &c, turned(0, PI / 2, 0, 0, 0, 0), .01);
    assert_int_equal(m.n, 1);
    assert_true(fabs(m.gap[0] + .001) < 1e-12);
}

static void a_cylinder_stands_on_its_rim_and_lies_on_a_line(void **state) {
    (void)state;
    us_geom c = cylinder(.1, .2), h = half_space(), floor = box(1, 1, .1);
    us_manifold m = contact(&c, at(0, 0, .199), &h, at(0, 0, 0), .01);
    assert_int_equal(m.n, 4);
    assert_true(has_point(&m, .1, 0, -.001, TINY) && has_point(&m, 0, .1, -.001, TINY) &&
                has_point(&m, -.1, 0, -.001, TINY) && has_point(&m, 0, -.1, -.001, TINY));
    m = contact(&c, turned(PI / 2, 0, 0, 0, 0, .099), &h, at(0, 0, 0), .01);
    assert_int_equal(m.n, 2);
    assert_true(has_point(&m, 0, .2, -.001, TINY) && has_point(&m, 0, -.2, -.001, TINY));
    // Tilted: the lowest point of the rim is .1 sin + .2 cos below the middle.
    for (double tilt = .02; tilt < 1.5; tilt += .1) {
        double low = .1 * sin(tilt) + .2 * cos(tilt);
        m = contact(&c, turned(tilt, 0, .3, 0, 0, low - .001), &h, at(0, 0, 0), .0005);
        assert_true(m.n >= 1);
        assert_true(fabs(deepest(&m) + .001) < 1e-12);
    }
    // On a box: standing and lying. The end is drawn with 16 corners, four are kept.
    m = contact(&c, at(0, 0, .299), &floor, at(0, 0, 0), .01);
    assert_int_equal(m.n, 4);
    for (int i = 0; i < 4; i++) {
        double x = m.p_A[i].x, y = m.p_A[i].y;
        assert_true(fabs(sqrt(x * x + y * y) - .1) < 1e-9);
    }
    // The depth comes from the overlap search, which is exact for flat faces.
    assert_true(fabs(deepest(&m) + .001) < 1e-9);
    m = contact(&c, turned(PI / 2, 0, 0, 0, 0, .1995), &floor, at(0, 0, 0), .01);
    assert_int_equal(m.n, 2);
    assert_true(has_point(&m, 0, .2, .0995, 1e-6) && has_point(&m, 0, -.2, .0995, 1e-6));
}

static us_height_field *make_field(double (*height)(double, double), int32_t n, double step) {
    static double z[201 * 201];
    for (int32_t j = 0; j < n; j++) {
        for (int32_t i = 0; i < n; i++)
            z[j * n + i] = height((i - .5 * (n - 1)) * step, (j - .5 * (n - 1)) * step);
    }
    us_height_field *f = NULL;
    us_allocator a = us_allocator_default();
    assert_int_equal(us_height_field_create(z, n, n, step, step, &a, &f, NULL), US_OK);
    return f;
}
static double flat_ground(double x, double y) { return 0 * (x + y); }
static double slope(double x, double y) { return .3 * x - .1 * y; }
static double bumps(double x, double y) {
    return .06 * sin(2.1 * x) * cos(1.7 * y) + .02 * sin(7 * x + 1) * sin(6 * y);
}
static double valley(double x, double y) { return fabs(x) + 0 * y; }
static double ridge(double x, double y) { return -.5 * fabs(x) + 0 * y; }

static void flat_ground_of_triangles_is_a_plane(void **state) {
    (void)state;
    us_height_field *f = make_field(flat_ground, 41, .1);
    us_geom ground = {.kind = US_GEOM_HEIGHT_FIELD, .field = f}, h = half_space();
    const us_geom shape[4] = {box(.13, .17, .1), sphere(.1), cylinder(.1, .07), capsule(.16, .1)};
    for (int s = 0; s < 4; s++) {
        bool is_lying = s >= 2;
        for (int k = 0; k < MANY; k++) {
            double x = us_random_uniform(1, (uint64_t)s, (uint64_t)k) - .5,
                   y = us_random_uniform(2, (uint64_t)s, (uint64_t)k) - .5;
            us_pose X = turned(is_lying ? PI / 2 : 0, 0, k * .37, x, y, .1 - .001);
            us_manifold m = contact(&shape[s], X, &ground, at(0, 0, 0), .002),
                        p = contact(&shape[s], X, &h, at(0, 0, 0), .002);
            // No seam gives a sideways normal, no corner of the shape is missed, none is deeper than on the
            // plane.
            assert_true(m.n >= p.n);
            all_normals(&m, UP, 1e-9);
            assert_true(fabs(deepest(&m) - deepest(&p)) < 1e-12);
            if (s == 1) assert_int_equal(m.n, 1);
        }
    }
    us_height_field_destroy(f);
}

static void a_sphere_on_a_slope_in_a_valley_and_on_a_ridge(void **state) {
    (void)state;
    us_geom s = sphere(.15);
    us_height_field *f = make_field(slope, 21, .2);
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    double c = sqrt(1 + .3 * .3 + .1 * .1);
    us_vec3 n = us_vec3_make(-.3 / c, .1 / c, 1 / c);
    us_vec3 p = us_vec3_add(us_vec3_make(.33, .21, slope(.33, .21)), us_vec3_scale(.148, n));
    us_manifold m = contact(&s, at(p.x, p.y, p.z), &g, at(0, 0, 0), .01);
    assert_int_equal(m.n, 1);
    all_normals(&m, n, 1e-12);
    assert_true(fabs(m.gap[0] + .002) < 1e-12);
    us_height_field_destroy(f);
    // In a valley with walls of 45 degrees two points, one on each.
    f = make_field(valley, 21, .2);
    g.field = f;
    m = contact(&s, at(0, .05, .15 * sqrt(2) - .001), &g, at(0, 0, 0), .01);
    assert_int_equal(m.n, 2);
    assert_true(fabs(m.gap[0] + .001 / sqrt(2)) < 1e-12 && fabs(m.gap[1] + .001 / sqrt(2)) < 1e-12);
    assert_true(m.normal[0].x * m.normal[1].x < -.4);
    us_height_field_destroy(f);
    // On a ridge one, straight up, in spite of two faces beside it.
    f = make_field(ridge, 21, .2);
    g.field = f;
    m = contact(&s, at(0, .05, .148), &g, at(0, 0, 0), .01);
    assert_int_equal(m.n, 1);
    all_normals(&m, UP, 1e-9);
    assert_true(fabs(m.gap[0] + .002) < 1e-12);
    // A box flat on the ridge touches along it, at the box's rims.
    us_geom b = box(.1, .15, .05);
    m = contact(&b, at(0, .05, .049), &g, at(0, 0, 0), .01);
    assert_true(has_point(&m, 0, -.1, -.001, 1e-9) && has_point(&m, 0, .2, -.001, 1e-9));
    all_normals(&m, UP, 1e-9);
    us_height_field_destroy(f);
}

static void a_sunken_shape_is_pushed_up(void **state) {
    (void)state;
    us_height_field *f = make_field(bumps, 41, .1);
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    const us_geom shape[3] = {box(.1, .1, .1), sphere(.1), cylinder(.1, .1)};
    for (int s = 0; s < 3; s++) {
        for (int k = 0; k < 50; k++) {
            double depth = .01 * k;
            us_manifold m = contact(&shape[s], turned(.1, .2, .3, .21, .13, bumps(.21, .13) - depth), &g,
                                    at(0, 0, 0), .01);
            assert_true(m.n > 0);
            for (int32_t i = 0; i < m.n; i++)
                assert_true(m.normal[i].z > .8);
            // At least the depth of the middle, times the cosine of the steepest slope.
            assert_true(deepest(&m) < -.8 * depth);
        }
    }
    us_height_field_destroy(f);
}

static void a_rolling_wheel_feels_no_jumps(void **state) {
    (void)state;
    us_height_field *f = make_field(bumps, 81, .12);
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    us_geom wheel = cylinder(.2, .08);
    // The steepest slope of the bumps is below .06 * 2.1 + .02 * 7 + ... < .35 in x and y each.
    double steep = 1 / sqrt(1 + 2 * .35 * .35), last = 0;
    const double step = 1e-4;
    int missed = 0;
    for (int k = 0; k < 20 * MANY; k++) {
        double x = -2 + step * k, y = .3 + .05 * x, z = .2 + bumps(x, y) - .004;
        us_manifold m = contact(&wheel, turned(PI / 2, 0, .05, x, y, z), &g, at(0, 0, 0), .05);
        missed += m.n == 0;
        if (m.n == 0) continue;
        double gap = deepest(&m);
        for (int32_t i = 0; i < m.n; i++)
            assert_true(m.normal[i].z > steep - .05);
        // The gap cannot change faster than the wheel moves: horizontally by the step, vertically by the
        // slope times it.
        if (k > 0) assert_true(fabs(gap - last) < 1.5 * step + 1e-6 * .2);
        last = gap;
    }
    assert_int_equal(missed, 0);
    us_height_field_destroy(f);
}

static void the_deepest_point_on_terrain_is_as_far_as_the_distance(void **state) {
    (void)state;
    us_height_field *f = make_field(bumps, 81, .12);
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    const us_geom shape[] = {sphere(.2),
                             {.kind = US_GEOM_ELLIPSOID, .size = {.2, .1, .15}},
                             capsule(.2, .1),
                             cylinder(.2, .1),
                             box(.1, .2, .15),
                             {.kind = US_GEOM_CONE, .size = {.2, .1}},
                             {.kind = US_GEOM_DISC, .size = {.2}, .radius = .02},
                             {.kind = US_GEOM_LOZENGE, .size = {.2, .1}, .radius = .03}};
    for (uint64_t s = 0; s < sizeof shape / sizeof shape[0]; s++) {
        int32_t n_off = 0;
        for (uint64_t i = 0; i < MANY / 10; i++) {
            us_quat q = {us_random_normal(3, s, 4 * i), us_random_normal(3, s, 4 * i + 1),
                         us_random_normal(3, s, 4 * i + 2), us_random_normal(3, s, 4 * i + 3)};
            us_pose X = {us_quat_normalize(q),
                         {4 * us_random_uniform(4, s, i) - 2, 4 * us_random_uniform(5, s, i) - 2, .5}};
            if (i % 2) X.q = us_quat_from_rpy(PI / 2, 0, 6 * us_random_uniform(7, s, i));
            us_gap gap;
            // Lowered to between 4 mm above and 2 mm below first touch: slopes are gentle, so four steps do.
            for (int k = 0; k < 5; k++) {
                assert_int_equal(us_geom_distance(&shape[s], X, &g, at(0, 0, 0), &gap), US_OK);
                if (k < 4) X.p.z -= gap.distance - (.004 - .006 * us_random_uniform(6, s, i));
            }
            us_manifold m = contact(&shape[s], X, &g, at(0, 0, 0), .01);
            assert_true(m.n > 0);
            double off = fabs(deepest(&m) - gap.distance);
            // A rim or a corner that hangs over a ridge touches with the normal of the shape or of the faces:
            // up to 1 % of the size off.
            assert_true(off < 2e-3);
            n_off += off > 1e-6;
            // Smooth shapes are exact but for the search for the ridge's normal.
            if (s < 2) assert_true(off < 1e-9);
        }
        assert_true(n_off <= (int32_t)(MANY / 10) / 5);
    }
    us_height_field_destroy(f);
}

static void a_mesh_box_is_like_a_box(void **state) {
    (void)state;
    const us_vec3 v[8] = {{-1, -1, -1}, {1, -1, -1}, {-1, 1, -1}, {1, 1, -1},
                          {-1, -1, 1},  {1, -1, 1},  {-1, 1, 1},  {1, 1, 1}};
    const int32_t t[12][3] = {{0, 2, 3}, {0, 3, 1}, {4, 5, 7}, {4, 7, 6}, {0, 1, 5}, {0, 5, 4},
                              {2, 6, 7}, {2, 7, 3}, {0, 4, 6}, {0, 6, 2}, {1, 3, 7}, {1, 7, 5}};
    us_mesh *mesh = NULL;
    us_allocator a = us_allocator_default();
    assert_int_equal(us_mesh_create(v, 8, t, 12, &a, &mesh, NULL), US_OK);
    us_geom g = {.kind = US_GEOM_MESH, .mesh = mesh}, b = box(.2, .2, .2), s = sphere(.2);
    us_manifold m = contact(&b, at(.3, .5, 1.199), &g, at(0, 0, 0), .01);
    all_normals(&m, UP, 1e-12);
    for (int k = 0; k < 4; k++)
        assert_true(has_point(&m, .3 + (k & 1 ? .2 : -.2), .5 + (k & 2 ? .2 : -.2), .999, 1e-12));
    assert_true(fabs(deepest(&m) + .001) < 1e-12);
    // Over the rim: pushed up by a millimetre, not sideways by the width.
    m = contact(&b, at(1.1, .5, 1.199), &g, at(0, 0, 0), .01);
    assert_true(m.n >= 2 && fabs(deepest(&m) + .001) < 1e-12);
    all_normals(&m, UP, 1e-12);
    // Spheres on the face, the edge and the corner.
    m = contact(&s, at(.1, .1, 1.199), &g, at(0, 0, 0), .01);
    assert_int_equal(m.n, 1);
    double q = .199 / sqrt(2), r = .199 / sqrt(3);
    m = contact(&s, at(1 + q, .1, 1 + q), &g, at(0, 0, 0), .01);
    assert_int_equal(m.n, 1);
    assert_true(fabs(m.gap[0] + .001) < 1e-9 && fabs(m.normal[0].x - m.normal[0].z) < 1e-9);
    m = contact(&s, at(1 + r, 1 + r, 1 + r), &g, at(0, 0, 0), .01);
    assert_int_equal(m.n, 1);
    assert_true(fabs(m.gap[0] + .001) < 1e-9);
    us_mesh_destroy(mesh);
}

static void a_union_touches_with_its_parts(void **state) {
    (void)state;
    us_geom_part parts[2] = {{box(.1, .1, .1), at(-.5, 0, 0)}, {sphere(.1), at(.5, 0, 0)}};
    us_geom u = {.kind = US_GEOM_UNION, .parts = parts, .n_part = 2}, h = half_space();
    us_manifold m = contact(&u, at(0, 0, .099), &h, at(0, 0, 0), .01);
    assert_int_equal(m.n, 5);
    for (int32_t i = 0; i < m.n; i++) {
        for (int32_t j = 0; j < i; j++)
            assert_true(m.feature[i] != m.feature[j]);
    }
    m = contact(&h, at(0, 0, 0), &u, at(0, 0, .099), .01);
    assert_int_equal(m.n, 5);
    all_normals(&m, us_vec3_make(0, 0, -1), TINY);
}

// ---- All convex pairs ----

static us_hull *some_hull(void) {
    us_vec3 p[14];
    for (uint64_t i = 0; i < 14; i++) {
        us_vec3 d = us_vec3_make(us_random_normal(5, 0, 3 * i), us_random_normal(5, 0, 3 * i + 1),
                                 us_random_normal(5, 0, 3 * i + 2));
        p[i] = us_vec3_scale(.2 / us_vec3_norm(d), d);
    }
    us_hull *hull = NULL;
    us_allocator a = us_allocator_default();
    assert_int_equal(us_hull_create(p, 14, &a, &hull, NULL), US_OK);
    return hull;
}

static us_geom some_shape(us_geom_kind kind, const us_hull *hull, uint64_t seed, uint64_t i) {
    us_geom g = {.kind = kind, .hull = hull};
    for (int k = 0; k < 3; k++)
        g.size[k] = .05 + .2 * us_random_uniform(seed, 1, 3 * i + (uint64_t)k);
    for (int k = 0; k < 4; k++) {
        const double corner[4][3] = {{-.2, -.1, -.1}, {.2, -.15, -.1}, {0, .2, -.1}, {0, 0, .2}};
        double w[3];
        for (int j = 0; j < 3; j++)
            w[j] = corner[k][j] + .05 * us_random_uniform(seed, 2, 12 * i + (uint64_t)(3 * k + j));
        g.point[k] = us_vec3_make(w[0], w[1], w[2]);
    }
    bool is_thin = kind == US_GEOM_SPHERE || kind == US_GEOM_CAPSULE || kind == US_GEOM_LOZENGE ||
                   kind == US_GEOM_DISC || kind == US_GEOM_TRIANGLE;
    g.radius = is_thin ? .02 + .1 * us_random_uniform(seed, 3, i) : (i % 3 == 0 ? .03 : 0);
    return g;
}
static us_quat some_quat(uint64_t seed, uint64_t i) {
    // Every other pair lies square, but for a slight tilt: flat features meet there.
    if (i / 2 % 2) {
        us_vec3 tilt =
            us_vec3_make(1e-3 * us_random_normal(seed, 7, 3 * i), 1e-3 * us_random_normal(seed, 7, 3 * i + 1),
                         us_random_uniform(seed, 7, 3 * i + 2));
        return us_quat_mul(us_quat_exp(tilt),
                           us_quat_from_rpy(PI / 2 * (double)(us_random_bits(seed, 6, i) % 4), 0, 0));
    }
    us_quat q = {us_random_normal(seed, 7, 4 * i), us_random_normal(seed, 7, 4 * i + 1),
                 us_random_normal(seed, 7, 4 * i + 2), us_random_normal(seed, 7, 4 * i + 3)};
    return us_quat_normalize(q);
}

static double surface_distance(const us_geom *g, us_pose X, us_vec3 p) {
    us_geom point = {.kind = US_GEOM_SPHERE};
    us_gap gap;
    assert_int_equal(us_geom_distance(g, X, &point, at(p.x, p.y, p.z), &gap), US_OK);
    return fabs(gap.distance);
}

static void points_of_all_convex_pairs_are_on_the_surfaces_and_as_deep_as_the_distance(void **state) {
    (void)state;
    us_hull *hull = some_hull();
    const double margin = .02, size = .3;
    int with_points = 0, with_more = 0;
    for (us_geom_kind ka = 0; ka <= US_GEOM_CONVEX; ka++) {
        for (us_geom_kind kb = ka; kb <= US_GEOM_CONVEX; kb++) {
            for (uint64_t i = 0; i < MANY / 10; i++) {
                uint64_t seed = 100 + 16 * (uint64_t)ka + (uint64_t)kb;
                us_geom A = some_shape(ka, hull, seed, 2 * i), B = some_shape(kb, hull, seed, 2 * i + 1);
                us_pose XA = {some_quat(seed, 2 * i), {0, 0, 0}},
                        XB = {some_quat(seed, 2 * i + 1), {0, 0, 0}};
                // Near enough to touch: moved along the normal to a gap between -3 cm and +2 cm.
                XA.p = us_vec3_make(us_random_normal(seed, 8, 3 * i), us_random_normal(seed, 8, 3 * i + 1),
                                    us_random_normal(seed, 8, 3 * i + 2));
                XA.p = i % 2 ? us_vec3_make(.1 * XA.p.x, .1 * XA.p.y, 1) : us_vec3_scale(2, XA.p);
                us_gap g;
                assert_int_equal(us_geom_distance(&A, XA, &B, XB, &g), US_OK);
                double wanted = .019 - .05 * us_random_uniform(seed, 9, i);
                XA.p = us_vec3_sub(XA.p, us_vec3_scale(g.distance - wanted, g.normal));
                assert_int_equal(us_geom_distance(&A, XA, &B, XB, &g), US_OK);
                us_manifold m = contact(&A, XA, &B, XB, margin), e = contact(&B, XB, &A, XA, margin);
                assert_true(g.distance > margin || m.n > 0);
                if (m.n == 0) continue;
                with_points++;
                with_more += m.n > 1;
                // 1e-6 of the size, and the bias in favour of faces (5e-4 of the smaller shape).
                double off = fabs(deepest(&m) - g.distance);
                assert_true(off < 1e-6 * size + 5e-4 * .25);
                // The same both ways, within the same bias.
                assert_true(fabs(deepest(&m) - deepest(&e)) < 1e-6 * size + 5e-4 * .25);
                for (int32_t k = 0; k < m.n; k++) {
                    double a = surface_distance(&A, XA, m.p_A[k]), b = surface_distance(&B, XB, m.p_B[k]);
                    assert_true(a < 1e-6 * size && b < 1e-6 * size);
                }
            }
        }
    }
    // The test has met most of what it should.
    assert_true(with_points > 50 * MANY / 10 && with_more > 6 * MANY / 10);
    us_hull_destroy(hull);
}

static void ids_stay_when_resting_shapes_move_by_a_micrometre(void **state) {
    (void)state;
    us_geom floor = box(1, 1, .1), h = half_space();
    us_geom b = box(.1, .1, .1), c = cylinder(.1, .2), cap = capsule(.2, .1);
    const struct {
        const us_geom *A, *B;
        us_pose X_WA;
    } pair[] = {
        {&b, &floor, {{1, 0, 0, 0}, {.1, .2, .1999}}},
        {&b, &h, {{1, 0, 0, 0}, {.1, .2, .0999}}},
        {&b, &b, {{1, 0, 0, 0}, {0, 0, .1999}}},
        {&c, &h, {{1, 0, 0, 0}, {.1, .2, .1999}}},
        {&c, &floor, {{1, 0, 0, 0}, {.1, .2, .2999}}},
        {&c, &h, {{.70710678118654752, .70710678118654752, 0, 0}, {.1, .2, .0999}}},
        {&cap, &floor, {{.70710678118654752, .70710678118654752, 0, 0}, {.1, .2, .1999}}},
        {&cap, &cap, {{1, 0, 0, 0}, {.1999, 0, .1}}},
    };
    for (size_t k = 0; k < sizeof pair / sizeof pair[0]; k++) {
        us_manifold m = contact(pair[k].A, pair[k].X_WA, pair[k].B, at(0, 0, 0), .002);
        assert_true(m.n >= 2);
        for (uint64_t i = 0; i < 100; i++) {
            us_pose X = pair[k].X_WA;
            X.p = us_vec3_add(X.p, us_vec3_make(2e-6 * (us_random_uniform(k, 1, i) - .5),
                                                2e-6 * (us_random_uniform(k, 2, i) - .5),
                                                2e-6 * (us_random_uniform(k, 3, i) - .5)));
            us_vec3 turn = us_vec3_make(2e-6 * (us_random_uniform(k, 4, i) - .5),
                                        2e-6 * (us_random_uniform(k, 5, i) - .5),
                                        2e-6 * (us_random_uniform(k, 6, i) - .5));
            X.q = us_quat_mul(us_quat_exp(turn), X.q);
            us_manifold n = contact(pair[k].A, X, pair[k].B, at(0, 0, 0), .002);
            assert_int_equal(n.n, m.n);
            for (int32_t p = 0; p < m.n; p++) {
                bool is_found = false;
                for (int32_t q = 0; q < n.n; q++) {
                    // 5e-5: the clip tolerance moves a corner by less than 2e-6, the turn moves it by less
                    // than 1e-6.
                    if (n.feature[q] == m.feature[p] && us_vec3_norm(us_vec3_sub(n.p_A[q], m.p_A[p])) < 5e-5)
                        is_found = true;
                }
                assert_true(is_found);
            }
        }
        for (int32_t p = 0; p < m.n; p++) {
            for (int32_t q = 0; q < p; q++)
                assert_true(m.feature[p] != m.feature[q]);
        }
    }
}

static bool same_ids(const us_manifold *a, const us_manifold *b) {
    if (a->n != b->n) return false;
    for (int32_t i = 0; i < a->n; i++) {
        bool is_found = false;
        for (int32_t k = 0; k < b->n; k++)
            is_found |= a->feature[i] == b->feature[k];
        if (!is_found) return false;
    }
    return true;
}

// What contact does to a stack: the upper box is shaken by hundredths of a millimetre and rocks by a tenth of
// a milliradian.
static void a_box_that_rocks_on_another_keeps_its_ids(void **state) {
    (void)state;
    us_geom small = box(.1, .1, .1), floor = box(1, 1, .1), plank = box(.3, .05, .1), h = half_space();
    const struct {
        const us_geom *A, *B;
        us_pose X_WA;
        int32_t n;
    } pair[] = {
        {&small, &floor, {{1, 0, 0, 0}, {.1, .2, .1999}}, 4},
        {&floor, &small, {{1, 0, 0, 0}, {.1, .2, .1999}}, 4},
        {&small, &small, {{1, 0, 0, 0}, {0, 0, .1999}}, 4},
        {&small, &small, {{1, 0, 0, 0}, {.03, -.07, .1999}}, 4},
        {&small, &plank, {{1, 0, 0, 0}, {.25, 0, .1999}}, 4},
        {&plank, &plank, {{.92387953251128674, 0, 0, .38268343236508977}, {.02, .01, .1999}}, 4},
        {&small, &small, {{.92387953251128674, 0, 0, .38268343236508977}, {.001, .002, .1999}}, 4},
        {&small, &h, {{.92387953251128674, 0, 0, .38268343236508977}, {.001, .002, .0999}}, 4},
    };
    for (size_t k = 0; k < sizeof pair / sizeof pair[0]; k++) {
        us_manifold m = contact(pair[k].A, pair[k].X_WA, pair[k].B, at(0, 0, 0), .001);
        assert_int_equal(m.n, pair[k].n);
        for (uint64_t i = 0; i < 200; i++) {
            double r[6];
            for (uint64_t c = 0; c < 6; c++)
                r[c] = 2 * us_random_uniform(70 + k, c, i) - 1;
            us_pose X = pair[k].X_WA;
            X.p = us_vec3_add(X.p, us_vec3_make(1e-5 * r[0], 1e-5 * r[1], 1e-5 * r[2]));
            X.q = us_quat_mul(us_quat_exp(us_vec3_make(1e-4 * r[3], 1e-4 * r[4], 1e-4 * r[5])), X.q);
            us_manifold n = contact(pair[k].A, X, pair[k].B, at(0, 0, 0), .001);
            assert_true(same_ids(&m, &n));
        }
    }
}

// Which triangle of a field of n by n samples is a point over? -1 within a millionth of a cell of an edge.
static int64_t triangle_under(us_vec3 p, int32_t n, double step) {
    double x = p.x / step + .5 * (n - 1), y = p.y / step + .5 * (n - 1), u = x - floor(x), v = y - floor(y);
    if (u < 1e-6 || v < 1e-6 || u > 1 - 1e-6 || v > 1 - 1e-6 || fabs(u - v) < 1e-6) return -1;
    return ((int64_t)floor(y) * n + (int64_t)floor(x)) * 2 + (v > u);
}

static void ids_on_terrain_belong_to_the_triangle_and_the_end_not_to_the_wheels_angle(void **state) {
    (void)state;
    us_height_field *f = make_field(bumps, 41, .25);
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    const us_geom shape[2] = {cylinder(.2, .075), capsule(.1, .1)};
    for (int s = 0; s < 2; s++) {
        static uint64_t id[41 * 41 * 2][2];
        memset(id, 0, sizeof id);
        int32_t n_seen = 0, n_triangle = 0;
        for (int k = 0; k < 5000; k++) {
            double x = .1 + 1e-4 * k, y = .2 + .03 * x, r = s ? .1 : .2;
            // Rolling half a metre along x, the axis along y, tilted a little.
            us_quat q = us_quat_mul(us_quat_from_rpy(-PI / 2 + .02, 0, .1), us_quat_from_rpy(0, 0, x / r));
            us_pose X = {q, {x, y, r + bumps(x, y) - .002}};
            us_manifold m = contact(&shape[s], X, &g, at(0, 0, 0), .005);
            us_vec3 axis = us_quat_rotate(X.q, UP);
            for (int32_t i = 0; i < m.n; i++) {
                int64_t triangle = triangle_under(m.p_B[i], 41, .25);
                if (triangle < 0) continue;  // on an edge: the edge's
                int end = us_vec3_dot(axis, us_vec3_sub(m.p_A[i], X.p)) > 0;
                n_seen++;
                n_triangle += id[triangle][end] == 0;
                if (id[triangle][end] == 0) id[triangle][end] = m.feature[i] + 1;
                assert_true(id[triangle][end] == m.feature[i] + 1);
            }
        }
        // It has stood on faces most of the time, and on several.
        assert_true(n_seen > 2500 && n_triangle > 4);
        for (int64_t a = 0; a < 41 * 41 * 4; a++) {
            for (int64_t b = 0; b < a && id[a / 2][a % 2]; b++)
                assert_true(id[a / 2][a % 2] != id[b / 2][b % 2]);
        }
    }
    us_height_field_destroy(f);
}

static void gaps_on_terrain_change_no_faster_than_the_shape_moves(void **state) {
    (void)state;
    us_height_field *f = make_field(bumps, 41, .12);
    us_geom g = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    const us_geom shape[] = {sphere(.1),
                             capsule(.15, .1),
                             cylinder(.2, .075),
                             cylinder(.15, .2),
                             {.kind = US_GEOM_CYLINDER, .size = {.1, .1}, .radius = .02},
                             box(.1, .15, .2),
                             box(.4, .03, .3),
                             {.kind = US_GEOM_BOX, .size = {.1, .1, .2}, .radius = .02}};
    const double step = 2e-4;
    for (uint64_t s = 0; s < sizeof shape / sizeof shape[0]; s++) {
        for (uint64_t way = 0; way < 8; way++) {
            double yaw = 6.3 * us_random_uniform(20, s, way), tilt = .5 * us_random_uniform(21, s, way),
                   head = 6.3 * us_random_uniform(22, s, way);
            us_pose X = turned(PI / 2 - tilt, 0, yaw, .4 * us_random_uniform(23, s, way),
                               .4 * us_random_uniform(24, s, way), 0);
            double last = 0;
            for (int k = 0; k < MANY; k++) {
                X.p.x += step * cos(head);
                X.p.y += step * sin(head);
                X.p.z = 1;
                us_gap gap;
                if (k == 0 || k % 500 == 0) {
                    // Put down anew from time to time: 2 mm deep, and as high as the ground then takes it.
                    for (int i = 0; i < 4; i++) {
                        assert_int_equal(us_geom_distance(&shape[s], X, &g, at(0, 0, 0), &gap), US_OK);
                        X.p.z -= gap.distance + .002;
                    }
                    last = X.p.z;
                }
                X.p.z = last;
                us_manifold m = contact(&shape[s], X, &g, at(0, 0, 0), .05);
                X.p.x += step * cos(head);
                X.p.y += step * sin(head);
                us_manifold n = contact(&shape[s], X, &g, at(0, 0, 0), .05);
                if (m.n == 0 || n.n == 0 || deepest(&m) < -.01) continue;
                // The distance of solids changes no faster than they move. Sharp rims and edges on ridges are
                // up to 1 % of the size off it, which comes and goes over the width of the ridge: hence as
                // much again.
                assert_true(fabs(deepest(&m) - deepest(&n)) < 2 * step + 1e-9);
            }
        }
    }
    us_height_field_destroy(f);
}

static void degenerate_shapes_give_numbers(void **state) {
    (void)state;
    const us_geom shape[] = {box(0, .1, .1),
                             box(0, 0, .1),
                             box(0, 0, 0),
                             sphere(0),
                             capsule(0, .1),
                             capsule(.1, 0),
                             cylinder(0, .1),
                             cylinder(.1, 0),
                             cylinder(0, 0),
                             {.kind = US_GEOM_DISC, .size = {0}},
                             {.kind = US_GEOM_CONE, .size = {0, .1}},
                             {.kind = US_GEOM_CONE, .size = {.1, 0}},
                             {.kind = US_GEOM_TRIANGLE},
                             {.kind = US_GEOM_TETRAHEDRON},
                             {.kind = US_GEOM_ELLIPSOID, .size = {.1, .1, 0}},
                             {.kind = US_GEOM_LOZENGE, .size = {.1, 0}, .radius = .05}};
    us_height_field *f = make_field(bumps, 21, .1);
    us_geom h = half_space(), field = {.kind = US_GEOM_HEIGHT_FIELD, .field = f};
    const size_t n = sizeof shape / sizeof shape[0];
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n + 2; b++) {
            const us_geom *B = b < n ? &shape[b] : (b == n ? &h : &field);
            for (int k = 0; k < 4; k++) {
                us_pose X = k == 0 ? at(0, 0, 0)
                                   : turned(k == 1 ? 0 : .5, 0, k == 3 ? .3 : 0, k == 1 ? .1 : .01, 0, .05);
                us_manifold m;
                assert_int_equal(us_geom_contact(&shape[a], X, B, at(0, 0, 0), .2, &m), US_OK);
                for (int32_t i = 0; i < m.n; i++) {
                    double sum = m.gap[i] + us_vec3_dot(m.p_A[i], m.p_A[i]) + us_vec3_dot(m.p_B[i], m.p_B[i]);
                    assert_true(isfinite(sum));
                    assert_true(fabs(us_vec3_norm(m.normal[i]) - 1) < 1e-9);
                }
            }
        }
    }
    us_height_field_destroy(f);
}

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    us_geom b = box(.1, .1, .1);
    us_manifold m;
    assert_int_equal(us_geom_contact(NULL, at(0, 0, 0), &b, at(0, 0, 0), 0, &m), US_ERR_ARG);
    assert_int_equal(us_geom_contact(&b, at(0, 0, 0), NULL, at(0, 0, 0), 0, &m), US_ERR_ARG);
    assert_int_equal(us_geom_contact(&b, at(0, 0, 0), &b, at(0, 0, 0), 0, NULL), US_ERR_ARG);
    assert_int_equal(us_geom_contact(&b, at(0, 0, 0), &b, at(0, 0, 0), -1, &m), US_ERR_ARG);
    assert_int_equal(us_geom_contact(&b, at(0, 0, 0), &b, at(0, 0, 0), NAN, &m), US_ERR_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_on_a_plane_touches_with_four_corners),
        cmocka_unit_test(a_tilted_plane_gives_points_along_its_normal),
        cmocka_unit_test(stacked_boxes_touch_at_the_corners_of_the_common_face),
        cmocka_unit_test(crossing_edges_touch_at_one_point),
        cmocka_unit_test(boxes_side_by_side_touch_on_the_common_part_only),
        cmocka_unit_test(capsules_lie_on_two_points_and_stand_on_one),
        cmocka_unit_test(a_cylinder_stands_on_its_rim_and_lies_on_a_line),
        cmocka_unit_test(flat_ground_of_triangles_is_a_plane),
        cmocka_unit_test(a_sphere_on_a_slope_in_a_valley_and_on_a_ridge),
        cmocka_unit_test(a_sunken_shape_is_pushed_up),
        cmocka_unit_test(a_rolling_wheel_feels_no_jumps),
        cmocka_unit_test(the_deepest_point_on_terrain_is_as_far_as_the_distance),
        cmocka_unit_test(a_mesh_box_is_like_a_box),
        cmocka_unit_test(a_union_touches_with_its_parts),
        cmocka_unit_test(points_of_all_convex_pairs_are_on_the_surfaces_and_as_deep_as_the_distance),
        cmocka_unit_test(ids_stay_when_resting_shapes_move_by_a_micrometre),
        cmocka_unit_test(a_box_that_rocks_on_another_keeps_its_ids),
        cmocka_unit_test(ids_on_terrain_belong_to_the_triangle_and_the_end_not_to_the_wheels_angle),
        cmocka_unit_test(gaps_on_terrain_change_no_faster_than_the_shape_moves),
        cmocka_unit_test(degenerate_shapes_give_numbers),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

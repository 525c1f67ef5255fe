// Distance and depth of every pair of convex kinds: proved pose by pose, and compared with a slow search.
//
// The gap of two convex bodies is the greatest separation over all directions: gap = max over unit n of
// -(h_A(-n) + h_B(n)), where h is the farthest extent along a direction (n from B to A). It is the distance
// when they are apart and minus the depth when they overlap. So any direction gives a lower bound, and a pair
// of points, one in each body, an upper bound of the distance. The extents below are this file's own, from
// the definitions of the shapes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "instrumented.h"

enum { POSES = IS_INSTRUMENTED ? 300 : 10000 };
enum { KINDS = US_GEOM_CONVEX + 1, PROBES = 12, SEARCH_EVERY = 200 };

static us_hull *hull;
static us_vec3 probe[PROBES];

static double uniform(uint64_t *i, double low, double high) {
    return low + (high - low) * us_random_uniform(7, 0, (*i)++);
}
static us_vec3 unit(us_vec3 a) { return us_vec3_scale(1 / us_vec3_norm(a), a); }
static us_vec3 some_direction(uint64_t *i) {
    double x = us_random_normal(8, 0, *i), y = us_random_normal(8, 1, *i), z = us_random_normal(8, 2, *i);
    (*i)++;
    return unit(us_vec3_make(x, y, z));
}

static double extent_G(const us_geom *g, us_vec3 d) {
    const double *s = g->size;
    double side = sqrt(d.x * d.x + d.y * d.y), most = -1e300;
    int n = g->kind == US_GEOM_TRIANGLE      ? 3
            : g->kind == US_GEOM_TETRAHEDRON ? 4
            : g->kind == US_GEOM_CONVEX      ? g->hull->n_vertex
                                             : 0;
    const us_vec3 *p = g->kind == US_GEOM_CONVEX ? g->hull->vertex : g->point;
    switch (g->kind) {
    case US_GEOM_SPHERE:
        return 0;
    case US_GEOM_CAPSULE:
        return s[0] * fabs(d.z);
    case US_GEOM_LOZENGE:
        return s[0] * fabs(d.x) + s[1] * fabs(d.y);
    case US_GEOM_DISC:
        return s[0] * side;
    case US_GEOM_BOX:
        return s[0] * fabs(d.x) + s[1] * fabs(d.y) + s[2] * fabs(d.z);
    case US_GEOM_CYLINDER:
        return s[0] * side + s[1] * fabs(d.z);
    case US_GEOM_CONE:
        return fmax(s[1] * d.z, s[0] * side - s[1] * d.z);
    case US_GEOM_ELLIPSOID:
        return sqrt(s[0] * s[0] * d.x * d.x + s[1] * s[1] * d.y * d.y + s[2] * s[2] * d.z * d.z);
    default:
        for (int i = 0; i < n; i++)
            most = fmax(most, us_vec3_dot(p[i], d));
        return most;
    }
}

typedef struct body {
    us_geom g;
    us_pose X;
    us_mat3 R_GW;
} body;
static double extent(const body *b, us_vec3 d) {
    return extent_G(&b->g, us_mat3_mul_vec(&b->R_GW, d)) + us_vec3_dot(b->X.p, d) +
           b->g.radius * us_vec3_norm(d);
}
static double separation(const body *A, const body *B, us_vec3 n) {
    return -extent(A, us_vec3_scale(-1, n)) - extent(B, n);
}

static void place(body *b, us_pose X) {
    b->X = X;
    b->R_GW = us_quat_matrix(us_quat_conj(X.q));
}

// A size that is now and then 0.
static double some_size(uint64_t *i) {
    double s = uniform(i, -0.1, 1);
    return s < 0 ? 0 : s;
}
static us_geom some_geom(us_geom_kind kind, uint64_t *i) {
    us_geom g = {
        .kind = kind, .radius = fmax(0, uniform(i, -0.3, 0.3)), .hull = kind == US_GEOM_CONVEX ? hull : NULL};
    for (int k = 0; k < 3; k++)
        g.size[k] = some_size(i);
    for (int k = 0; k < 4; k++)
        g.point[k] = us_vec3_make(uniform(i, -1, 1), uniform(i, -1, 1), uniform(i, -1, 1));
    return g;
}
static us_pose some_pose(uint64_t *i, double reach) {
    us_quat q = {us_random_normal(9, 0, *i), us_random_normal(9, 1, *i), us_random_normal(9, 2, *i),
                 us_random_normal(9, 3, *i)};
    (*i)++;
    us_pose X = {us_quat_normalize(q),
                 {uniform(i, -reach, reach), uniform(i, -reach, reach), uniform(i, -reach, reach)}};
    // Now and then square to the axes, where faces and edges are parallel.
    if (us_random_uniform(10, 0, *i) < 0.1) X.q = us_quat_identity();
    return X;
}

// The greatest separation by trying directions all round, and then in rings around the best: a ring that
// finds nothing better shrinks. Rings of many directions also follow a crease, where only few of them lead
// up. There may be several ways out of about the same length, so this is done from some directions that are
// well apart.
static double climb(const body *A, const body *B, us_vec3 best, uint64_t *seed) {
    double most = separation(A, B, best), step = 0.1;
    for (int round = 0; round < 300 && step > 1e-6; round++) {
        us_vec3 n = best,
                x = unit(us_vec3_cross(n, fabs(n.x) < 0.6 ? us_vec3_make(1, 0, 0) : us_vec3_make(0, 1, 0))),
                y = us_vec3_cross(n, x);
        double before = most, phase = uniform(seed, 0, 1);
        for (int i = 0; i < 32; i++) {
            double angle = (i + phase) * (6.283185307179586 / 32);
            us_vec3 d = unit(us_vec3_add(
                n, us_vec3_add(us_vec3_scale(step * cos(angle), x), us_vec3_scale(step * sin(angle), y))));
            double s = separation(A, B, d);
            if (s > most) {
                most = s;
                best = d;
            }
        }
        if (most == before) step *= 0.7;
    }
    return most;
}
static double slow_gap(const body *A, const body *B, uint64_t *seed) {
    enum { SAMPLES = 800, STARTS = 8 };
    us_vec3 sample[SAMPLES];
    double value[SAMPLES], most = -INFINITY;
    for (int i = 0; i < SAMPLES; i++)
        sample[i] = some_direction(seed);
    // The axes of both, where flat faces are.
    for (int i = 0; i < 12; i++) {
        us_vec3 axis = us_vec3_make(i % 3 == 0, i % 3 == 1, i % 3 == 2);
        sample[i] = us_vec3_scale(i % 2 ? 1 : -1, us_quat_rotate(i < 6 ? A->X.q : B->X.q, axis));
    }
    for (int i = 0; i < SAMPLES; i++)
        value[i] = separation(A, B, sample[i]);
    for (int start = 0; start < STARTS; start++) {
        int best = 0;
        for (int i = 1; i < SAMPLES; i++)
            if (value[i] > value[best]) best = i;
        us_vec3 n = sample[best];
        most = fmax(most, climb(A, B, n, seed));
        for (int i = 0; i < SAMPLES; i++)
            if (us_vec3_dot(n, sample[i]) > 0.95) value[i] = -INFINITY;
    }
    return most;
}

static bool is_finite(const us_gap *g) {
    return isfinite(g->distance) && isfinite(us_vec3_norm(g->p_A)) && isfinite(us_vec3_norm(g->p_B)) &&
           isfinite(us_vec3_norm(g->normal));
}

// What must hold for every answer.
//   TINY: points of size 1..5 m after some twenty roundings, and what EPA leaves on round bodies (1e-11 of
//   size). SLANT: where cores all but touch (1e-9 m) the normal is off by rounding / distance, and the bound
//   by as much; and a depth that is good to 1e-11 m fixes the place on a round surface of radius 1 m to
//   sqrt(2 * 1e-11) = 5e-6 m.
static const double TINY = 1e-9, SLANT = 1e-5;
static const char *fault(const body *A, const body *B, const us_gap *g) {
    us_vec3 n = g->normal, minus = us_vec3_scale(-1, n);
    if (!is_finite(g)) return "not finite";
    if (fabs(us_vec3_norm(n) - 1) > TINY) return "normal is not of unit length";
    if (us_vec3_norm(us_vec3_sub(us_vec3_sub(g->p_A, g->p_B), us_vec3_scale(g->distance, n))) > TINY)
        return "points are not distance * normal apart";
    double bound = separation(A, B, n);
    if (fabs(bound - g->distance) > SLANT) return "distance is not the separation along the normal";
    if (fabs(extent(A, minus) - us_vec3_dot(g->p_A, minus)) > SLANT) return "p_A is not on A's surface";
    if (fabs(extent(B, n) - us_vec3_dot(g->p_B, n)) > SLANT) return "p_B is not on B's surface";
    for (int i = 0; i < PROBES; i++) {
        if (us_vec3_dot(g->p_A, probe[i]) > extent(A, probe[i]) + SLANT) return "p_A is not in A";
        if (us_vec3_dot(g->p_B, probe[i]) > extent(B, probe[i]) + SLANT) return "p_B is not in B";
        if (separation(A, B, probe[i]) > g->distance + SLANT) return "another direction separates better";
    }
    return NULL;
}

static bool is_same(us_vec3 a, us_vec3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
static bool is_mirror(const us_gap *g, const us_gap *h) {
    return g->distance == h->distance && is_same(g->p_A, h->p_B) && is_same(g->p_B, h->p_A) &&
           is_same(g->normal, us_vec3_scale(-1, h->normal));
}

static void one_pose(us_geom_kind a, us_geom_kind b, int k, uint64_t *seed) {
    body A = {.g = some_geom(a, seed)}, B = {.g = some_geom(b, seed)};
    const double reach[4] = {0.1, 0.6, 1.2, 5};
    place(&A, some_pose(seed, reach[k % 4]));
    place(&B, some_pose(seed, reach[k % 4]));
    us_gap g, h;
    assert_int_equal(us_geom_distance(&A.g, A.X, &B.g, B.X, &g), US_OK);
    const char *what = fault(&A, &B, &g);
    if (what)
        fail_msg("%s, %s, pose %d: %s (distance %.17g, separation %.17g)", us_geom_kind_name(a),
                 us_geom_kind_name(b), k, what, g.distance, separation(&A, &B, g.normal));
    if (k % 3 == 0) {
        assert_int_equal(us_geom_distance(&B.g, B.X, &A.g, A.X, &h), US_OK);
        if (!is_mirror(&g, &h))
            fail_msg("%s, %s, pose %d: not symmetric", us_geom_kind_name(a), us_geom_kind_name(b), k);
    }
    if (k % 8 == 1) {
        // Moving one of them by u changes the distance by |u| at most.
        body moved = B;
        us_vec3 u = us_vec3_scale(pow(10, uniform(seed, -8, -1)), some_direction(seed));
        moved.X.p = us_vec3_add(B.X.p, u);
        assert_int_equal(us_geom_distance(&A.g, A.X, &moved.g, moved.X, &h), US_OK);
        double jump = fabs(h.distance - g.distance) - us_vec3_norm(u);
        if (jump > TINY)
            fail_msg("%s, %s, pose %d: jumps by %g", us_geom_kind_name(a), us_geom_kind_name(b), k, jump);
    }
    // Where the cores are apart, the two points and the plane between them have proved the distance. Depth is
    // proved from one side only (the bodies are apart when moved by it): that no other way out is shorter
    // takes a search.
    if (g.distance + A.g.radius + B.g.radius < -1e-6 &&
        us_random_uniform(11, 0, (*seed)++) < 1.0 / SEARCH_EVERY) {
        double slow = slow_gap(&A, &B, seed);
        // The other side needs no search: the answer's own normal separates by as much as it says.
        if (slow > g.distance + TINY)
            fail_msg("%s, %s, pose %d: %.12g, by search %.12g", us_geom_kind_name(a), us_geom_kind_name(b), k,
                     g.distance, slow);
    }
}

static void every_pair_of_convex_kinds_agrees_with_its_extents_and_with_a_slow_search(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int a = 0; a < KINDS; a++)
        for (int b = a; b < KINDS; b++)
            for (int k = 0; k < POSES; k++)
                one_pose((us_geom_kind)a, (us_geom_kind)b, k, &seed);
}

static void shapes_moved_to_the_point_of_touching_are_as_near_as_they_were_left(void **state) {
    (void)state;
    uint64_t seed = 12345;
    for (int a = 0; a < KINDS; a++)
        for (int b = a; b < KINDS; b++)
            for (int k = 0; k < POSES / 50; k++) {
                body A = {.g = some_geom((us_geom_kind)a, &seed)},
                     B = {.g = some_geom((us_geom_kind)b, &seed)};
                if (k % 2) A.g.radius = B.g.radius = 0;
                place(&A, some_pose(&seed, 3));
                place(&B, some_pose(&seed, 3));
                us_gap g, h;
                assert_int_equal(us_geom_distance(&A.g, A.X, &B.g, B.X, &g), US_OK);
                if (g.distance < 0.1) continue;
                // B moved along the normal up to `left` from A's core (or into it): that is the new distance,
                // or the depth at most.
                double left = pow(10, uniform(&seed, -14, -2)) * (k % 4 < 2 ? 1 : -1),
                       radii = A.g.radius + B.g.radius;
                body moved = B;
                moved.X.p = us_vec3_add(B.X.p, us_vec3_scale(g.distance + radii - left, g.normal));
                assert_int_equal(us_geom_distance(&A.g, A.X, &moved.g, moved.X, &h), US_OK);
                const char *what = fault(&A, &moved, &h);
                double error = h.distance + radii - left;
                // Round bodies that all but touch: thin simplices stop the search early, by up to 2e-7 m in
                // one pose of 15 000; and a face stands in for the nearest point when it is within 1e-7 of
                // the distance between middles (5 m).
                if (what || error < -1e-6 || (left > 0 && error > 1e-6))
                    fail_msg("%s, %s, pose %d, left %g: off by %g, %s", us_geom_kind_name(A.g.kind),
                             us_geom_kind_name(B.g.kind), k, left, error, what ? what : "");
            }
}

static void shapes_without_size_in_any_position_give_finite_symmetric_answers(void **state) {
    (void)state;
    // Every size 0 or 1, poses that coincide, touch, lie in one line or plane.
    const us_vec3 offset[5] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 2}, {1, 1, 0}};
    const us_quat turn[3] = {{1, 0, 0, 0}, {sqrt(0.5), sqrt(0.5), 0, 0}, {sqrt(0.5), 0, 0, sqrt(0.5)}};
    for (int a = 0; a < KINDS; a++)
        for (int b = a; b < KINDS; b++)
            for (int sizes = 0; sizes < 64; sizes++)
                for (int k = 0; k < 15; k++) {
                    body A = {.g = {.kind = (us_geom_kind)a, .hull = a == US_GEOM_CONVEX ? hull : NULL}};
                    body B = {.g = {.kind = (us_geom_kind)b, .hull = b == US_GEOM_CONVEX ? hull : NULL}};
                    for (int i = 0; i < 3; i++) {
                        A.g.size[i] = sizes >> i & 1;
                        B.g.size[i] = sizes >> (3 + i) & 1;
                    }
                    // Triangles and tetrahedra: all corners in one point, in a line, in a plane.
                    for (int i = 0; i < 4; i++) {
                        A.g.point[i] =
                            us_vec3_make(A.g.size[0] * i, A.g.size[1] * (i == 1), A.g.size[2] * (i == 2));
                        B.g.point[i] =
                            us_vec3_make(B.g.size[0] * (i == 2), B.g.size[1] * i, B.g.size[2] * (i == 3));
                    }
                    place(&A, us_pose_identity());
                    place(&B, (us_pose){turn[k % 3], offset[k / 3]});
                    us_gap g, h;
                    assert_int_equal(us_geom_distance(&A.g, A.X, &B.g, B.X, &g), US_OK);
                    assert_int_equal(us_geom_distance(&B.g, B.X, &A.g, A.X, &h), US_OK);
                    const char *what = fault(&A, &B, &g);
                    if (what)
                        fail_msg("%s, %s, sizes %d, place %d: %s (distance %g)", us_geom_kind_name(A.g.kind),
                                 us_geom_kind_name(B.g.kind), sizes, k, what, g.distance);
                    // The same shape in the same place has no order; all others have.
                    bool is_twin =
                        a == b && memcmp(&A.g, &B.g, sizeof A.g) == 0 && memcmp(&A.X, &B.X, sizeof A.X) == 0;
                    assert_true(is_twin || is_mirror(&g, &h));
                }
}

static void far_from_the_origin_nothing_is_lost_but_the_rounding_of_the_places(void **state) {
    (void)state;
    uint64_t seed = 77;
    // 2^20 m: adding it to places that are multiples of 2^-20 m is exact, so the distance must be the same to
    // rounding of sizes.
    const double far = 1048576;
    for (int k = 0; k < 500; k++) {
        us_geom A = some_geom(US_GEOM_BOX, &seed),
                B = some_geom(k % 2 ? US_GEOM_CYLINDER : US_GEOM_TETRAHEDRON, &seed);
        us_pose X = some_pose(&seed, 1), Y = some_pose(&seed, 1);
        double *p[6] = {&X.p.x, &X.p.y, &X.p.z, &Y.p.x, &Y.p.y, &Y.p.z};
        for (int i = 0; i < 6; i++)
            *p[i] = round(*p[i] * far) / far;
        us_gap g, h;
        assert_int_equal(us_geom_distance(&A, X, &B, Y, &g), US_OK);
        X.p = us_vec3_add(X.p, us_vec3_make(far, -far, far));
        Y.p = us_vec3_add(Y.p, us_vec3_make(far, -far, far));
        assert_int_equal(us_geom_distance(&A, X, &B, Y, &h), US_OK);
        assert_true(fabs(g.distance - h.distance) <= 1e-12);
    }
}

static int set_up(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int i = 0; i < PROBES; i++)
        probe[i] = some_direction(&seed);
    us_vec3 point[40];
    for (int i = 0; i < 40; i++)
        point[i] = us_vec3_scale(0.8, some_direction(&seed));
    us_allocator heap = us_allocator_default();
    return us_hull_create(point, 40, &heap, &hull, NULL);
}
static int tear_down(void **state) {
    (void)state;
    us_hull_destroy(hull);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_convex_kinds_agrees_with_its_extents_and_with_a_slow_search),
        cmocka_unit_test(shapes_moved_to_the_point_of_touching_are_as_near_as_they_were_left),
        cmocka_unit_test(shapes_without_size_in_any_position_give_finite_symmetric_answers),
        cmocka_unit_test(far_from_the_origin_nothing_is_lost_but_the_rounding_of_the_places),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

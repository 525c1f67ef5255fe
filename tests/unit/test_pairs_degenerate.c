// Shapes of no thickness, no length or no size at all, in the same place or touching: every pair has an
// answer in numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "geom/geom.h"
#include "pairs.h"

enum { THIN = 6 };

// A convex shape from which lengths are missing: all, the first, or all but the first; without a radius and
// with one.
static us_geom thin(us_geom_kind kind, int which) {
    us_geom g = {.kind = kind, .radius = which % 2 ? 0.1 : 0, .size = {0.3, 0.4, 0.5}};
    const us_vec3 flat[4] = {{0, 0, 0}, {0.5, 0, 0}, {0, 0.5, 0}, {0.3, 0.3, 0}};
    for (int i = 0; i < 4; i++)
        g.point[i] = us_vec3_scale(which < 2 ? 0 : 1, flat[i]);
    if (which == 2 || which == 3) g.point[2] = g.point[3] = us_vec3_make(0.25, 0, 0);
    for (int i = 0; i < 3; i++)
        if (which < 2 || (which < 4 ? i == 0 : i > 0)) g.size[i] = 0;
    return g;
}

static void check_numbers_to(double enough, const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB) {
    assert_int_equal(us_geom_check(A, NULL), US_OK);
    us_gap g = pairs_gap(A, X_WA, B, X_WB);
    pairs_check_exchange(A, X_WA, B, X_WB, &g);
    us_vec3 rest = us_vec3_sub(us_vec3_sub(g.p_A, g.p_B), us_vec3_scale(g.distance, g.normal));
    pairs_expect(us_vec3_norm(rest) < enough, "p_A - p_B is not distance * normal, by", us_vec3_norm(rest),
                 enough);
    bool is_known = A->kind <= US_GEOM_CONVEX && B->kind <= US_GEOM_CONVEX && A->kind != US_GEOM_ELLIPSOID &&
                    B->kind != US_GEOM_ELLIPSOID;
    if (is_known) {
        double s = pairs_separation(A, X_WA, B, X_WB, g.normal);
        pairs_expect(fabs(s - g.distance) < enough, "separation along the normal", s, g.distance);
    }
    us_manifold m;
    assert_int_equal(us_geom_contact(A, X_WA, B, X_WB, 0.01, &m), US_OK);
    for (int32_t i = 0; i < m.n; i++) {
        double sum = m.gap[i] + us_vec3_dot(m.p_A[i], m.p_B[i]) + us_vec3_norm(m.normal[i]);
        pairs_expect(isfinite(sum), "a contact point is no number", sum, 0);
    }
}

static void poses_of(int k, us_pose *X_WA, us_pose *X_WB) {
    *X_WA = *X_WB = us_pose_identity();
    const us_vec3 offset[6] = {{0, 0, 0},   {0.3, 0, 0},  {0, 0, 0.4},
                               {0.6, 0, 0}, {1e-9, 0, 0}, {0.25, 0.1, 0}};
    X_WB->p = offset[k % 6];
    if (k >= 6) X_WB->q = us_quat_from_rpy(1.5707963267948966, 0, 0);
    if (k >= 12) {
        X_WA->q = pairs_rotation(3, (uint64_t)k);
        X_WB->q = pairs_rotation(4, (uint64_t)k);
    }
}

// ---- Slivers ----

enum { SLIVERS = 12 };

typedef struct slivers {
    us_geom geom[SLIVERS];
    us_hull *hull[2];
    us_mesh *mesh[3];
    us_height_field *field[2];
    us_geom_part parts[3][2];
} slivers;

// Needles, plates a nanometre thick, closed meshes without volume, spikes, and unions and intersections of
// the like.
static void make_slivers(slivers *s) {
    const double t = 1e-9;
    us_geom *g = s->geom;
    g[0] = (us_geom){.kind = US_GEOM_TETRAHEDRON, .point = {{0, 0, 0}, {1, 0, 0}, {1, t, 0}, {1, 0, t}}};
    g[1] = (us_geom){
        .kind = US_GEOM_TETRAHEDRON, .point = {{0, 0, 0}, {t, 0, 0}, {0, t, 0}, {0, 0, t}}, .radius = t};
    g[2] = (us_geom){.kind = US_GEOM_TRIANGLE, .point = {{0, 0, 0}, {1, 0, 0}, {0.5, 1e-12, 0}}};
    const us_vec3 plate[8] = {{-1, -1, 0},    {1, -1, 0},    {1, 1, 0},    {-1, 1, 0},
                              {-1, -1, 1e-5}, {1, -1, 1e-5}, {1, 1, 1e-5}, {-1, 1, 1e-5}};
    // Just thicker than the thinnest hull there is (1e-5 of its size).
    const us_vec3 needle[4] = {{0, 0, -1}, {1e-4, 0, -1}, {0, 1e-4, -1}, {0, 0, 1}};
    assert_int_equal(us_hull_create(plate, 8, NULL, &s->hull[0], NULL), US_OK);
    assert_int_equal(us_hull_create(needle, 4, NULL, &s->hull[1], NULL), US_OK);
    g[3] = (us_geom){.kind = US_GEOM_CONVEX, .hull = s->hull[0]};
    g[4] = (us_geom){.kind = US_GEOM_CONVEX, .hull = s->hull[1], .radius = t};
    // Two triangles back to back; a tetrahedron of no height; a single sliver.
    const us_vec3 v[4] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0.3, 0.3, 0}},
                  thin[3] = {{0, 0, 0}, {1, 0, 0}, {0.5, 1e-12, 0}};
    const int32_t back[2][3] = {{0, 1, 2}, {0, 2, 1}},
                  flat[4][3] = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {2, 0, 3}}, single[1][3] = {{0, 1, 2}};
    assert_int_equal(us_mesh_create(v, 3, back, 2, NULL, &s->mesh[0], NULL), US_OK);
    assert_int_equal(us_mesh_create(v, 4, flat, 4, NULL, &s->mesh[1], NULL), US_OK);
    assert_int_equal(us_mesh_create(thin, 3, single, 1, NULL, &s->mesh[2], NULL), US_OK);
    for (int i = 0; i < 3; i++)
        g[5 + i] = (us_geom){.kind = US_GEOM_MESH, .mesh = s->mesh[i], .radius = i == 1 ? 0.1 : 0};
    const double level[4] = {0, 0, 0, 0}, spike[9] = {0, 0, 0, 0, 1e6, 0, 0, 0, 0};
    assert_int_equal(us_height_field_create(level, 2, 2, 1e-6, 1, NULL, &s->field[0], NULL), US_OK);
    assert_int_equal(us_height_field_create(spike, 3, 3, 0.5, 0.5, NULL, &s->field[1], NULL), US_OK);
    g[8] = (us_geom){.kind = US_GEOM_HEIGHT_FIELD, .field = s->field[0]};
    g[9] = (us_geom){.kind = US_GEOM_HEIGHT_FIELD, .field = s->field[1]};
    us_pose aside = us_pose_identity();
    aside.p.x = 0.5;
    // A plate of no thickness cut to half, and a needle beside a point.
    s->parts[0][0] = s->parts[0][1] =
        (us_geom_part){{.kind = US_GEOM_BOX, .size = {0.5, 0.5, 0}}, us_pose_identity()};
    s->parts[0][1].X_GP = aside;
    s->parts[1][0] = (us_geom_part){g[0], aside};
    s->parts[1][1] = (us_geom_part){{.kind = US_GEOM_SPHERE}, us_pose_identity()};
    g[10] = (us_geom){.kind = US_GEOM_INTERSECTION, .parts = s->parts[0], .n_part = 2};
    g[11] = (us_geom){.kind = US_GEOM_UNION, .parts = s->parts[1], .n_part = 2};
}

static void free_slivers(slivers *s) {
    for (int i = 0; i < 2; i++) {
        us_hull_destroy(s->hull[i]);
        us_height_field_destroy(s->field[i]);
    }
    for (int i = 0; i < 3; i++)
        us_mesh_destroy(s->mesh[i]);
}

static void slivers_in_one_place_have_distances_and_contacts_in_numbers(void **state) {
    (void)state;
    slivers s;
    make_slivers(&s);
    us_geom ground = {.kind = US_GEOM_HALF_SPACE};
    for (int a = 0; a < SLIVERS; a++) {
        for (int b = a; b < SLIVERS + 1; b++) {
            const us_geom *A = &s.geom[a], *B = b < SLIVERS ? &s.geom[b] : &ground;
            for (int k = 0; k < 18; k++) {
                us_pose X_WA, X_WB;
                poses_of(k, &X_WA, &X_WB);
                pairs_at(A->kind, B->kind, (uint64_t)(1000 * a + 100 * b + k));
                // A spike of 1000 km leaves 1e-10 of itself, not of the shape beside it. The others are up to
                // 2 m long and within a nanometre of each other, so that the direction of their depth is
                // known to some 1e-6 only.
                check_numbers_to(a == 9 || b == 9 ? 1e-3 : 1e-5, A, X_WA, B, X_WB);
            }
        }
    }
    free_slivers(&s);
}

static void thin_shapes_in_one_place_have_distances_and_contacts_in_numbers(void **state) {
    (void)state;
    pairs_shape other[US_GEOM_COUNT];
    for (int b = US_GEOM_CONVEX; b < US_GEOM_COUNT; b++)
        pairs_shape_make((us_geom_kind)b, 5, &other[b]);
    for (int a = 0; a < US_GEOM_CONVEX; a++) {
        for (int b = a; b < US_GEOM_COUNT; b++) {
            for (int k = 0; k < 18 * THIN * THIN; k++) {
                us_geom A = thin((us_geom_kind)a, k % THIN),
                        B = b < US_GEOM_CONVEX ? thin((us_geom_kind)b, k / THIN % THIN) : other[b].geom;
                // The others do not depend on k / THIN % THIN.
                if (b >= US_GEOM_CONVEX && k / THIN % THIN > 0) continue;
                us_pose X_WA, X_WB;
                poses_of(k / THIN / THIN, &X_WA, &X_WB);
                pairs_at((us_geom_kind)a, (us_geom_kind)b, (uint64_t)k);
                check_numbers_to(1e-6, &A, X_WA, &B, X_WB);
            }
        }
    }
    for (int b = US_GEOM_CONVEX; b < US_GEOM_COUNT; b++)
        pairs_shape_free(&other[b]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slivers_in_one_place_have_distances_and_contacts_in_numbers),
        cmocka_unit_test(thin_shapes_in_one_place_have_distances_and_contacts_in_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

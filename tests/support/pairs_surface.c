// Surfaces made of triangles against other shapes; see pairs.h.
//
// The reference is every triangle by itself, without tree or blocks: apart, the nearest one; where something crosses the surface, at least the
// deepest.
#include "pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "geom/standoff.h"

bool pairs_is_convex(us_geom_kind kind) { return kind <= US_GEOM_CONVEX || kind == US_GEOM_INTERSECTION; }

// Poses of shapes of kind a (A) and b (B), each SHAPES times.
void pairs_for_poses(us_geom_kind a, us_geom_kind b, int n_pose, pairs_check_pose *check) {
    enum { SHAPES = 20 };
    for (int i = 0; i < SHAPES; i++) {
        pairs_shape A, B;
        uint64_t stream = 1000000u * (uint64_t)((int)a * US_GEOM_COUNT + (int)b) + 10000u * (uint64_t)i;
        pairs_shape_make(a, stream + 1, &A);
        pairs_shape_make(b, stream + 2, &B);
        for (int k = 0; k < n_pose / SHAPES; k++) {
            us_pose X_WA, X_WB;
            uint64_t pose = stream + 10 + (uint64_t)k;
            pairs_at(a, b, pose);
            pairs_poses(A.size, B.size, pose, &X_WA, &X_WB);
            check(&A, X_WA, &B, X_WB, pose);
        }
        pairs_shape_free(&A);
        pairs_shape_free(&B);
    }
}

us_gap pairs_gap(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB) {
    us_gap g;
    assert_int_equal(us_geom_distance(A, X_WA, B, X_WB, &g), US_OK);
    bool is_number = isfinite(g.distance) && isfinite(us_vec3_dot(g.p_A, g.p_B)) && fabs(us_vec3_norm(g.normal) - 1) < 1e-9;
    pairs_expect(is_number, "the answer is no number, or the normal no unit", g.distance, us_vec3_norm(g.normal));
    return g;
}

// ---- Surfaces ----

static int32_t n_triangle(const pairs_shape *S) { return S->mesh ? S->mesh->n_triangle : 2 * (S->field->n_x - 1) * (S->field->n_y - 1); }

static us_geom triangle_of(const pairs_shape *S, int32_t i) {
    us_geom t = {.kind = US_GEOM_TRIANGLE};
    if (S->mesh) {
        for (int k = 0; k < 3; k++) t.point[k] = S->mesh->vertex[S->mesh->triangle[i][k]];
        return t;
    }
    const us_height_field *f = S->field;
    int32_t x = i / 2 % (f->n_x - 1), y = i / 2 / (f->n_x - 1);
    t.point[0] = usi_field_point(f, x, y), t.point[1] = usi_field_point(f, x + 1, y + (i % 2)),
    t.point[2] = usi_field_point(f, x + (i % 2 ? 0 : 1), y + 1);
    return t;
}

// Whether a point (in the surface's frame) is in the solid.
static bool is_under(const pairs_shape *S, us_vec3 p) {
    if (S->mesh) return usi_mesh_holds(S->mesh, p);
    us_geom g = S->geom;
    g.radius = 0;
    return us_geom_ray(&g, us_pose_identity(), p, us_vec3_make(0, 0, 1), 1e-9).range == 0;
}

// The least distance of single triangles; those of the second surface one by one, too, when B is one.
static double least_of_triangles(const us_geom *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB) {
    double least = INFINITY;
    for (int32_t i = 0; i < n_triangle(B); i++) {
        us_geom t = triangle_of(B, i);
        us_gap g;
        assert_int_equal(us_geom_distance(A, X_WA, &t, X_WB, &g), US_OK);
        least = fmin(least, g.distance);
    }
    return least;
}

void pairs_check_surface(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB, uint64_t pose) {
    us_gap g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    double size = A->size + B->size, least = least_of_triangles(&A->geom, X_WA, B, X_WB);
    // Every triangle apart: outside, or inside. A shape that reaches through the wall under a height field's rim is where its middle is.
    us_pose X_BA = us_pose_mul(us_pose_inverse(X_WB), X_WA);
    us_vec3 inside = us_vec3_make(0, 0, 0);
    for (int i = 0; i < 6; i++) {
        double sign = i % 2 ? 1 : -1;
        us_vec3 axis = us_vec3_make(i / 2 == 0 ? sign : 0, i / 2 == 1 ? sign : 0, i / 2 == 2 ? sign : 0);
        us_vec3 p = pairs_support(&A->twin, us_quat_rotate(us_quat_conj(X_BA.q), axis));
        inside = us_vec3_add(inside, us_vec3_scale(1.0 / 6, us_pose_point(X_BA, p)));
    }
    double radius = B->geom.radius, enough = A->geom.kind == US_GEOM_INTERSECTION ? 1e-5 : 1e-7;
    if (least > 0 && !is_under(B, inside)) {
        pairs_expect(fabs(g.distance - (least - radius)) <= enough * size, "distance of the nearest triangle", g.distance, least - radius);
        pairs_check_motion(&A->geom, X_WA, &B->geom, X_WB, &g, size, pose, enough);
    } else {
        // The way off a single triangle is never longer than the answer. 1e-6: depths of round bodies.
        pairs_expect(g.distance <= least - radius + fmax(enough, 1e-6) * size, "depth in the deepest triangle", g.distance, least - radius);
        pairs_expect(g.distance <= -radius + 1e-6 * size, "something in the solid is not said to overlap", g.distance, -radius);
        pairs_expect(g.distance >= -2 * size - radius, "deeper than both shapes are large", g.distance, -2 * size);
    }
    us_vec3 rest = us_vec3_sub(us_vec3_sub(g.p_A, g.p_B), us_vec3_scale(g.distance, g.normal));
    pairs_expect(us_vec3_norm(rest) <= fmax(enough, 1e-6) * size, "p_A - p_B is not distance * normal, by", us_vec3_norm(rest), 1e-6 * size);
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
}

void pairs_check_surfaces(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB, uint64_t pose) {
    us_gap g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    double size = A->size + B->size, radius = A->geom.radius + B->geom.radius;
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    if (g.distance > -radius + 1e-9) pairs_check_motion(&A->geom, X_WA, &B->geom, X_WB, &g, size, pose, 1e-9);
    // All pairs of triangles take long: every twentieth pose.
    if (pose % 20) return;
    double least = INFINITY;
    for (int32_t i = 0; i < n_triangle(A); i++) {
        us_geom t = triangle_of(A, i);
        least = fmin(least, least_of_triangles(&t, X_WA, B, X_WB));
    }
    if (least > 0 && g.distance > -radius)
        pairs_expect(fabs(g.distance - (least - radius)) <= 1e-9 * size, "distance of the nearest triangles", g.distance, least - radius);
    else
        pairs_expect(g.distance <= least - radius + 1e-9 * size, "depth of the deepest triangles", g.distance, least - radius);
}

// Distance between any two shapes: which method for which pair, and surfaces made of triangles.
//
//                 convex        half space     mesh            height field
//   convex        gjk + epa     one corner     tree of boxes   blocks of cells, under and near the shape
//   half space                  planes         corners         corners
//   mesh                                       both trees      tree and blocks
//   height field                                               blocks of both
//
// A union is the nearest of its parts. Every pair is computed in one fixed order (usi_is_swapped) and turned
// round afterwards if need be, so that both orders give the same bits. A radius, also that of a mesh or a
// union, is taken off at the end.
//
// Two half spaces have a distance only when their faces look at each other exactly; others overlap without
// end: US_ERR_ARG. An intersection counts as convex: its farthest points are found by cutting planes
// (intersection.c), to 1e-7 of its size. One that is empty or without end is refused: US_ERR_ARG.
//
// Triangle surfaces are answered by surface.c: apart, the exact distance; overlapping, a depth
// that is never more than the true one.
#include "geom/gjk.h"
#include "geom/surface.h"

#include <float.h>

// ---- half spaces
// ----------------------------------------------------------------

// The farthest point of a posed convex shape along the unit vector d, radius included.
static us_vec3 farthest(const us_geom *g, us_pose X_WG, us_vec3 d) {
    us_vec3 core = us_pose_point(X_WG, usi_core_support(g, us_quat_rotate(us_quat_conj(X_WG.q), d)));
    return us_vec3_add(core, us_vec3_scale(g->radius, d));
}

// The half space is A; x is the point of B (in W) that is deepest in it.
static us_gap half_space_gap(us_pose X_WA, us_vec3 x) {
    us_vec3 n = us_quat_rotate(X_WA.q, us_vec3_make(0, 0, 1));
    double d = us_vec3_dot(n, us_vec3_sub(x, X_WA.p));
    return (us_gap){d, us_vec3_sub(x, us_vec3_scale(d, n)), x, us_vec3_scale(-1, n)};
}

// The corner of a surface that is farthest along d (of its own frame).
static us_vec3 farthest_corner(const us_geom *g, us_vec3 d) {
    int32_t n = g->kind == US_GEOM_MESH ? g->mesh->n_vertex : g->field->n_x * g->field->n_y;
    us_vec3 best = us_vec3_make(0, 0, 0);
    double max_along = -DBL_MAX;
    for (int32_t i = 0; i < n; i++) {
        us_vec3 p = g->kind == US_GEOM_MESH ? g->mesh->vertex[i]
                                            : usi_field_point(g->field, i % g->field->n_x, i / g->field->n_x);
        double along = us_vec3_dot(p, d);
        if (along > max_along) {
            max_along = along;
            best = p;
        }
    }
    return best;
}

// Cores of A, a half space, and B, a half space or a surface.
static us_status half_space_core(us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out) {
    us_vec3 n = us_quat_rotate(X_WA.q, us_vec3_make(0, 0, 1));
    if (B->kind != US_GEOM_HALF_SPACE) {
        us_vec3 d_B = us_quat_rotate(us_quat_conj(X_WB.q), us_vec3_scale(-1, n));
        *out = half_space_gap(X_WA, us_pose_point(X_WB, farthest_corner(B, d_B)));
        return US_OK;
    }
    us_vec3 m = us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1)), sum = us_vec3_add(n, m);
    // Within the rounding of two rotations they are parallel.
    if (us_vec3_norm(sum) > 1e-12) return US_ERR_ARG;
    *out = half_space_gap(X_WA, X_WB.p);
    return US_OK;
}

// ---- every pair
// ----------------------------------------------------------------

static bool is_convex(us_geom_kind kind) { return usi_is_convex(kind) || kind == US_GEOM_INTERSECTION; }

static us_status check(const us_geom *g) {
    if (!g || (int)g->kind < 0 || g->kind >= US_GEOM_COUNT) return US_ERR_ARG;
    if (g->kind == US_GEOM_CONVEX && !g->hull) return US_ERR_ARG;
    if (g->kind == US_GEOM_MESH && (!g->mesh || g->mesh->n_node < 1)) return US_ERR_ARG;
    // Of paged ground only what is under robots is known, and the nearest point may be anywhere.
    if (g->kind == US_GEOM_HEIGHT_FIELD &&
        (!g->field || g->field->n_x < 2 || g->field->n_y < 2 || g->field->pager))
        return US_ERR_ARG;
    if (g->kind != US_GEOM_UNION && g->kind != US_GEOM_INTERSECTION) return US_OK;
    if (!g->parts || g->n_part < 1) return US_ERR_ARG;
    for (int32_t i = 0; i < g->n_part; i++) {
        us_geom_kind kind = g->parts[i].geom.kind;
        bool may_meet = is_convex(kind) || kind == US_GEOM_HALF_SPACE;
        if (check(&g->parts[i].geom) || (g->kind == US_GEOM_INTERSECTION && !may_meet)) return US_ERR_ARG;
    }
    return US_OK;
}

static us_status distance(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out);

// B is a union.
static us_status to_union(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out) {
    us_gap best = {.distance = INFINITY};
    for (int32_t i = 0; i < B->n_part; i++) {
        us_gap g;
        us_status status = distance(A, X_WA, &B->parts[i].geom, us_pose_mul(X_WB, B->parts[i].X_GP), &g);
        if (status) return status;
        if (i == 0 || g.distance < best.distance) best = g;
    }
    *out = usi_gap_less_radii(best, 0, B->radius);
    return US_OK;
}

static us_gap posed(us_gap g, us_pose X_WG) {
    return (us_gap){g.distance, us_pose_point(X_WG, g.p_A), us_pose_point(X_WG, g.p_B),
                    us_quat_rotate(X_WG.q, g.normal)};
}

// A before B: kinds in the order of the list, but that an intersection comes before what is not convex.
static us_status ordered(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out) {
    if (B->kind == US_GEOM_INTERSECTION && !is_convex(A->kind)) {
        us_status status = ordered(B, X_WB, A, X_WA, out);
        if (!status) *out = usi_gap_swapped(*out);
        return status;
    }
    if (B->kind == US_GEOM_UNION) return to_union(A, X_WA, B, X_WB, out);
    if (is_convex(B->kind)) {
        *out = usi_convex_gap(A, X_WA, B, X_WB);
        return US_OK;
    }
    if (is_convex(A->kind) && B->kind == US_GEOM_HALF_SPACE) {
        us_vec3 n = us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1));
        *out = usi_gap_less_radii(
            usi_gap_swapped(half_space_gap(X_WB, farthest(A, X_WA, us_vec3_scale(-1, n)))), 0, B->radius);
        return US_OK;
    }
    us_pose X_BA = us_pose_mul(us_pose_inverse(X_WB), X_WA);
    if (is_convex(A->kind)) {
        *out = usi_gap_less_radii(posed(usi_surface_gap_convex(A, X_BA, B), X_WB), 0, B->radius);
        return US_OK;
    }
    us_status status = US_OK;
    if (A->kind == US_GEOM_HALF_SPACE)
        status = half_space_core(X_WA, B, X_WB, out);
    else
        *out = posed(usi_surface_gap(A, X_BA, B), X_WB);
    if (!status) *out = usi_gap_less_radii(*out, A->radius, B->radius);
    return status;
}

static us_status distance(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out) {
    if (!usi_is_swapped(A, X_WA, B, X_WB)) return ordered(A, X_WA, B, X_WB, out);
    us_status status = ordered(B, X_WB, A, X_WA, out);
    if (!status) *out = usi_gap_swapped(*out);
    return status;
}

us_status us_geom_distance(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, us_gap *out_gap) {
    if (!out_gap || check(A) || check(B)) return US_ERR_ARG;
    us_gap gap;
    us_status status = distance(A, X_WA, B, X_WB, &gap);
    // Poses and sizes are numbers, so this is an intersection that is empty or without end.
    if (!status && isnan(gap.distance)) status = US_ERR_ARG;
    if (!status) *out_gap = gap;
    return status;
}

// Distance of two convex shapes (Gilbert, Johnson, Keerthi 1988), with closed forms for points, segments and
// boxes.
//
// A and B are as far apart as their Minkowski difference C = { a - b } is from the origin O. C is never
// built: only its support points are used. A simplex of up to four of them closes in on O:
//
//            w3 . . . . . .
//              \    C      .         v  the point of the simplex nearest to O
//               \           .        w  the farthest point of C along -v: no point of C is nearer to O than
//        O ---v--*           .          v.w/|v|
//               /           .
//              w1 . . . . .          |v| - v.w/|v| is how much better the answer could still get
//
// Where a step ends is found by trying every corner, edge, triangle of the simplex that has the newest point
// in it, and taking the nearest valid one. Trying all costs little more than deciding which to try, and no
// decision can go wrong by rounding: each candidate is a true point of C, so the answer never gets worse, and
// the bound above says how good it is.
//
// Where O lies in C (or nearer than the rounding of its corners allows a direction to be known) epa.c takes
// over. Both work on the cores, so shapes whose radii alone overlap never get there, and their normal is as
// good as that of separate shapes.
#include "geom/gjk.h"

#include "geom/intersection.h"

#include <float.h>
#include <string.h>

// Relative to the size of C: nearer than this the direction of v is no longer good (1e-16 / 1e-10 rad), and
// EPA's faces are better.
static const double TOUCH = 1e-10;
// Relative to |v|: the improvement that is not worth another step. Flat shapes stop by running out of corners
// well before.
static const double ENOUGH = 1e-12;
// Relative to the distance of the middles: a separation that is worth a second test.
static const double SLACK = 1e-8;
// Flat shapes take 3 to 10 steps, round ones 10 to 40.
enum { MAX_STEPS = 64 };

static us_vec3 mul_transposed(const us_mat3 *R, us_vec3 a) {
    const double *m = R->m;
    return us_vec3_make(m[0] * a.x + m[3] * a.y + m[6] * a.z, m[1] * a.x + m[4] * a.y + m[7] * a.z,
                        m[2] * a.x + m[5] * a.y + m[8] * a.z);
}

usi_minkowski_point usi_convex_pair_support(const usi_convex_pair *pair, us_vec3 d) {
    usi_minkowski_point s;
    us_vec3 d_B = mul_transposed(&pair->R_AB, us_vec3_scale(-1, d));
    s.a = pair->intersection_A ? usi_intersection_support(pair->intersection_A, d)
                               : usi_core_support(pair->A, d);
    us_vec3 b_B = pair->intersection_B ? usi_intersection_support(pair->intersection_B, d_B)
                                       : usi_core_support(pair->B, d_B);
    s.b = us_vec3_add(pair->p_AB, us_mat3_mul_vec(&pair->R_AB, b_B));
    s.w = us_vec3_sub(s.a, s.b);
    return s;
}

// ---- the simplex
// ----------------------------------------------------------------

typedef struct simplex {
    int n;
    usi_minkowski_point s[4];
    double share[4];  // v = sum of share * s.w; 0 or more, sum 1
    us_vec3 v;
    double vv;
    bool holds_origin;
} simplex;

// Keeps the candidate with n corners and the barycentric coordinates of the last n - 1, if it is valid and
// the nearest so far.
static void offer(simplex *best, const simplex *from, int n, const int *corner, const double *share) {
    us_vec3 v = from->s[corner[0]].w;
    double first = 1;
    for (int i = 1; i < n; i++) {
        if (!(share[i] > 0)) return;
        first -= share[i];
        v = us_vec3_add(v, us_vec3_scale(share[i], us_vec3_sub(from->s[corner[i]].w, from->s[corner[0]].w)));
    }
    double vv = us_vec3_dot(v, v);
    if (first < 0 || !(vv < best->vv)) return;
    best->n = n;
    best->v = v;
    best->vv = vv;
    for (int i = 0; i < n; i++) {
        best->s[i] = from->s[corner[i]];
        best->share[i] = i ? share[i] : first;
    }
}

// The point nearest to O on each part of the simplex that has the newest corner (the last) in it.
static void offer_edge(simplex *best, const simplex *from, int b) {
    int corner[2] = {from->n - 1, b};
    us_vec3 a = from->s[corner[0]].w, e = us_vec3_sub(from->s[b].w, a);
    double ee = us_vec3_dot(e, e), share[2] = {0, ee > 0 ? -us_vec3_dot(a, e) / ee : 0};
    offer(best, from, 2, corner, share);
}
static void offer_triangle(simplex *best, const simplex *from, int b, int c) {
    int corner[3] = {from->n - 1, b, c};
    us_vec3 a = from->s[corner[0]].w, e = us_vec3_sub(from->s[b].w, a), f = us_vec3_sub(from->s[c].w, a),
            n = us_vec3_cross(e, f);
    double nn = us_vec3_dot(n, n);
    // A triangle flatter than rounding has edges that do as well.
    if (nn <= 1e-28 * us_vec3_dot(e, e) * us_vec3_dot(f, f)) return;
    double share[3] = {0, us_vec3_dot(us_vec3_cross(f, a), n) / nn, us_vec3_dot(us_vec3_cross(a, e), n) / nn};
    offer(best, from, 3, corner, share);
}
static void try_tetrahedron(simplex *best, const simplex *from) {
    us_vec3 a = from->s[3].w, e = us_vec3_sub(from->s[0].w, a), f = us_vec3_sub(from->s[1].w, a),
            g = us_vec3_sub(from->s[2].w, a);
    us_vec3 fg = us_vec3_cross(f, g);
    double volume = us_vec3_dot(e, fg);
    if (fabs(volume) <= 1e-14 * us_vec3_norm(e) * us_vec3_norm(f) * us_vec3_norm(g)) return;
    double x = -us_vec3_dot(a, fg) / volume, y = -us_vec3_dot(a, us_vec3_cross(g, e)) / volume,
           z = -us_vec3_dot(a, us_vec3_cross(e, f)) / volume;
    if (!(x >= 0 && y >= 0 && z >= 0 && x + y + z <= 1)) return;
    *best = *from;
    best->share[0] = x;
    best->share[1] = y;
    best->share[2] = z;
    best->share[3] = 1 - x - y - z;
    best->v = us_vec3_make(0, 0, 0);
    best->vv = 0;
    best->holds_origin = true;
}

// The nearest point of the simplex `from`, whose last corner is new, and the smallest part of it that holds
// that point.
static simplex nearest(const simplex *from) {
    simplex best = {.vv = DBL_MAX};
    int last = from->n - 1, corner[1] = {last};
    double share[1] = {0};
    offer(&best, from, 1, corner, share);
    for (int b = 0; b < last; b++)
        offer_edge(&best, from, b);
    for (int b = 0; b < last; b++)
        for (int c = b + 1; c < last; c++)
            offer_triangle(&best, from, b, c);
    if (last == 3) try_tetrahedron(&best, from);
    return best;
}

static usi_core_gap witness(const simplex *s) {
    usi_core_gap g = {.distance = sqrt(s->vv)};
    for (int i = 0; i < s->n; i++) {
        g.a = us_vec3_add(g.a, us_vec3_scale(s->share[i], s->s[i].a));
        g.b = us_vec3_add(g.b, us_vec3_scale(s->share[i], s->s[i].b));
    }
    g.normal = s->vv > 0 ? us_vec3_scale(1 / g.distance, s->v) : us_vec3_make(0, 0, 1);
    return g;
}

bool usi_gjk(const usi_convex_pair *pair, us_vec3 start, usi_core_gap *out) {
    simplex now = {.n = 1, .share = {1}};
    now.s[0] = usi_convex_pair_support(pair, start);
    now.v = now.s[0].w;
    now.vv = us_vec3_dot(now.v, now.v);
    double size2 = now.vv, gain = 0;
    for (int step = 0; step < MAX_STEPS; step++) {
        if (now.vv <= TOUCH * TOUCH * size2) break;
        usi_minkowski_point s = usi_convex_pair_support(pair, us_vec3_scale(-1, now.v));
        size2 = fmax(size2, us_vec3_dot(s.w, s.w));
        gain = now.vv - us_vec3_dot(now.v, s.w);
        if (gain <= ENOUGH * now.vv + (2 * DBL_EPSILON + pair->noise) * sqrt(size2 * now.vv)) break;
        simplex grown = now;
        grown.s[grown.n++] = s;
        simplex next = nearest(&grown);
        // Without progress beyond rounding the search ends.
        if (!(next.vv < now.vv)) break;
        now = next;
    }
    *out = witness(&now);
    if (now.vv > 0) out->slack = gain / out->distance;
    return now.vv > TOUCH * TOUCH * size2;
}

// ---- closed forms
// ----------------------------------------------------------------

// A unit vector perpendicular to e (any length, also 0), as near to +z of W as can be.
static us_vec3 perpendicular_upwards(us_vec3 e) {
    double ee = us_vec3_dot(e, e);
    us_vec3 up = us_vec3_make(0, 0, 1);
    if (!(ee > 0)) return up;
    for (int try = 0; try < 2; try++) {
        us_vec3 side = us_vec3_sub(up, us_vec3_scale(us_vec3_dot(up, e) / ee, e));
        double length = us_vec3_norm(side);
        if (length > 1e-3) return us_vec3_scale(1 / length, side);
        up = us_vec3_make(1, 0, 0);
    }
    return up;
}

static us_gap gap_between(us_vec3 a, us_vec3 b, us_vec3 normal) {
    us_vec3 v = us_vec3_sub(a, b);
    us_gap g = {us_vec3_dot(v, normal), a, b, normal};
    return g;
}

// Two segments a + s e and b + t f, s and t in [-1, 1]; a point is a segment of no length.
//
// The squared distance is a convex parabola bowl over the square of (s, t). Its minimum is the foot of the
// common perpendicular where that lies in the square, and otherwise on a side, that is at an end of one of
// the segments. All five are tried.
static us_gap segment_segment(us_vec3 a, us_vec3 e, us_vec3 b, us_vec3 f) {
    us_vec3 r = us_vec3_sub(a, b);
    double ee = us_vec3_dot(e, e), ff = us_vec3_dot(f, f), ef = us_vec3_dot(e, f), er = us_vec3_dot(e, r),
           fr = us_vec3_dot(f, r);
    double best = DBL_MAX, best_s = 0, best_t = 0;
    us_vec3 cross = us_vec3_cross(e, f), best_v = r;
    double det = us_vec3_dot(cross, cross);
    for (int i = 0; i < 5; i++) {
        double s, t;
        if (i == 0) {
            if (!(det > 1e-20 * ee * ff)) continue;
            s = fmin(1, fmax(-1, (ef * fr - ff * er) / det));
            t = fmin(1, fmax(-1, (fr + s * ef) / ff));
        } else if (i < 3) {
            s = i == 1 ? -1 : 1;
            t = ff > 0 ? fmin(1, fmax(-1, (fr + s * ef) / ff)) : 0;
        } else {
            t = i == 3 ? -1 : 1;
            s = ee > 0 ? fmin(1, fmax(-1, (t * ef - er) / ee)) : 0;
        }
        us_vec3 v = us_vec3_add(r, us_vec3_sub(us_vec3_scale(s, e), us_vec3_scale(t, f)));
        double vv = us_vec3_dot(v, v);
        if (vv < best) {
            best = vv;
            best_v = v;
            best_s = s;
            best_t = t;
        }
    }
    us_vec3 on_a = us_vec3_add(a, us_vec3_scale(best_s, e)), on_b = us_vec3_add(b, us_vec3_scale(best_t, f));
    double size2 = fmax(us_vec3_dot(r, r), fmax(ee, ff));
    if (best > TOUCH * TOUCH * size2) {
        // From the relative place, not from the two points: those have been rounded where they are in W.
        us_gap g = {sqrt(best), on_a, on_b, us_vec3_scale(1 / sqrt(best), best_v)};
        return g;
    }
    // They cross or lie in one line: apart across both, to the side where a's middle already is.
    us_vec3 normal =
        det > 1e-20 * ee * ff ? us_vec3_scale(1 / sqrt(det), cross) : perpendicular_upwards(ee > ff ? e : f);
    if (us_vec3_dot(normal, r) < 0) normal = us_vec3_scale(-1, normal);
    return gap_between(on_a, on_b, normal);
}

// A point against a box with half lengths h: the nearest point by clamping, or the nearest face from inside.
static us_gap point_box(us_vec3 a_W, const double *h, us_pose X_WB) {
    us_vec3 a_B = us_quat_rotate(us_quat_conj(X_WB.q), us_vec3_sub(a_W, X_WB.p));
    double p[3] = {a_B.x, a_B.y, a_B.z}, c[3], n[3] = {0, 0, 0}, size2 = 0, vv = 0;
    for (int i = 0; i < 3; i++) {
        c[i] = fmin(h[i], fmax(-h[i], p[i]));
        vv += (p[i] - c[i]) * (p[i] - c[i]);
        size2 = fmax(size2, fmax(p[i] * p[i], h[i] * h[i]));
    }
    if (vv > TOUCH * TOUCH * size2) {
        double scale = 1 / sqrt(vv);
        for (int i = 0; i < 3; i++)
            n[i] = scale * (p[i] - c[i]);
    } else {
        int axis = 0;
        for (int i = 1; i < 3; i++)
            if (h[i] - fabs(p[i]) < h[axis] - fabs(p[axis])) axis = i;
        n[axis] = p[axis] < 0 ? -1 : 1;
        c[axis] = n[axis] * h[axis];
    }
    us_vec3 normal = us_quat_rotate(X_WB.q, us_vec3_make(n[0], n[1], n[2])),
            b_W = us_pose_point(X_WB, us_vec3_make(c[0], c[1], c[2]));
    return gap_between(a_W, b_W, normal);
}

// ---- the pair
// ----------------------------------------------------------------

static int compare(const double *a, const double *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int compare_points(const us_vec3 *a, int32_t n_a, const us_vec3 *b, int32_t n_b) {
    if (n_a != n_b) return n_a < n_b ? -1 : 1;
    return a == b ? 0 : memcmp(a, b, (size_t)n_a * sizeof *a);
}

static int compare_poses(us_pose X, us_pose Y) {
    const double place[2][7] = {{X.p.x, X.p.y, X.p.z, X.q.w, X.q.x, X.q.y, X.q.z},
                                {Y.p.x, Y.p.y, Y.p.z, Y.q.w, Y.q.x, Y.q.y, Y.q.z}};
    return compare(place[0], place[1], 7);
}

// Order of shapes by their data; 0 when they are equal.
static int compare_shapes(const us_geom *A, const us_geom *B) {
    if (A->kind != B->kind) return A->kind < B->kind ? -1 : 1;
    int order = compare(&A->radius, &B->radius, 1);
    if (!order) order = compare(A->size, B->size, 3);
    for (int i = 0; !order && i < 4; i++) {
        const double point[2][3] = {{A->point[i].x, A->point[i].y, A->point[i].z},
                                    {B->point[i].x, B->point[i].y, B->point[i].z}};
        order = compare(point[0], point[1], 3);
    }
    if (order) return order;
    switch (A->kind) {
    case US_GEOM_CONVEX:
        return compare_points(A->hull->vertex, A->hull->n_vertex, B->hull->vertex, B->hull->n_vertex);
    case US_GEOM_MESH:
        return compare_points(A->mesh->vertex, A->mesh->n_vertex, B->mesh->vertex, B->mesh->n_vertex);
    case US_GEOM_HEIGHT_FIELD: {
        const us_height_field *f = A->field, *g = B->field;
        if (f->n_x != g->n_x || f->n_y != g->n_y)
            return f->n_x != g->n_x ? (f->n_x < g->n_x ? -1 : 1) : (f->n_y < g->n_y ? -1 : 1);
        const double grid[2][2] = {{f->dx, f->dy}, {g->dx, g->dy}};
        order = compare(grid[0], grid[1], 2);
        if (order || f == g) return order;
        // Of paged ground only its hash is at hand.
        if (f->pager || g->pager) return f->hash != g->hash ? (f->hash < g->hash ? -1 : 1) : 0;
        return compare(f->height, g->height, f->n_x * f->n_y);
    }
    case US_GEOM_UNION:
    case US_GEOM_INTERSECTION:
        if (A->n_part != B->n_part) return A->n_part < B->n_part ? -1 : 1;
        for (int32_t i = 0; !order && i < A->n_part; i++) {
            order = compare_shapes(&A->parts[i].geom, &B->parts[i].geom);
            if (!order) order = compare_poses(A->parts[i].X_GP, B->parts[i].X_GP);
        }
        return order;
    default:
        return 0;
    }
}

bool usi_is_swapped(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB) {
    if (A->kind != B->kind) return A->kind > B->kind;
    int order = compare_poses(X_WA, X_WB);
    return (order ? order : compare_shapes(A, B)) > 0;
}

// Second search for round bodies that all but touch: the triangles of the simplex got so thin that rounding
// stopped the first one, a little too far out. A face of EPA gives a direction to start from. Where that
// leaves the direction open, the face's is taken.
static usi_core_gap search_again(const usi_convex_pair *pair, const usi_core_gap *first) {
    usi_core_gap g = *first, by_face = usi_epa(pair, first), second;
    if (!usi_gjk(pair, us_vec3_scale(-1, by_face.normal), &second)) return usi_epa(pair, &second);
    if (second.distance < g.distance || second.slack < g.slack) g = second;
    return by_face.distance >= g.distance - 10 * SLACK * us_vec3_norm(pair->p_AB) ? by_face : g;
}

static usi_core_gap pair_gap(const usi_convex_pair *pair) {
    usi_core_gap g;
    if (!usi_gjk(pair, pair->p_AB, &g)) return usi_epa(pair, &g);
    return g.slack > SLACK * us_vec3_norm(pair->p_AB) && pair->noise == 0 ? search_again(pair, &g) : g;
}

static us_gap gap_in_world(const usi_core_gap *g, us_pose X_WA) {
    us_gap gap = {g->distance, us_pose_point(X_WA, g->a), us_pose_point(X_WA, g->b),
                  us_quat_rotate(X_WA.q, g->normal)};
    return gap;
}

// Gap of an intersection (B, perhaps A too), which keeps its cutting planes during the search. NaN: it is
// empty or unbounded.
static us_gap intersection_gap(const usi_convex_pair *of, us_pose X_WA) {
    usi_convex_pair pair = *of;
    usi_intersection intersection_A, intersection_B;
    us_gap none = {NAN, {NAN, NAN, NAN}, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
    us_vec3 up = us_vec3_make(0, 0, 1);
    if (!pair.intersection_B) {
        if (!usi_intersection_init(&intersection_B, pair.B) ||
            isnan(usi_intersection_support(&intersection_B, up).x))
            return none;
        pair.intersection_B = &intersection_B;
    }
    // Curved parts only: flat ones are exact. 3e-7: three times what a farthest point may be outside.
    pair.noise = pair.intersection_B->n_part > 0 ? 3e-7 : 0;
    if (pair.A->kind == US_GEOM_INTERSECTION) {
        if (!usi_intersection_init(&intersection_A, pair.A) ||
            isnan(usi_intersection_support(&intersection_A, up).x))
            return none;
        pair.intersection_A = &intersection_A;
        if (intersection_A.n_part > 0) pair.noise = 3e-7;
    }
    usi_core_gap g = pair_gap(&pair);
    return gap_in_world(&g, X_WA);
}

// Cores only. Everything is computed from A's origin, so that shapes far from W's origin lose nothing.
static us_gap core_gap(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB,
                       usi_intersection *intersection_B) {
    if (B->kind <= US_GEOM_CAPSULE) {
        us_vec3 e = A->kind == US_GEOM_CAPSULE ? us_quat_rotate(X_WA.q, us_vec3_make(0, 0, A->size[0]))
                                               : us_vec3_make(0, 0, 0);
        us_vec3 f = B->kind == US_GEOM_CAPSULE ? us_quat_rotate(X_WB.q, us_vec3_make(0, 0, B->size[0]))
                                               : us_vec3_make(0, 0, 0);
        return segment_segment(X_WA.p, e, X_WB.p, f);
    }
    if (A->kind == US_GEOM_SPHERE && B->kind == US_GEOM_BOX) return point_box(X_WA.p, B->size, X_WB);
    us_quat q_AW = us_quat_conj(X_WA.q);
    usi_convex_pair pair = {.A = A,
                            .B = B,
                            .R_AB = us_quat_matrix(us_quat_mul(q_AW, X_WB.q)),
                            .p_AB = us_quat_rotate(q_AW, us_vec3_sub(X_WB.p, X_WA.p)),
                            .up = us_quat_rotate(q_AW, us_vec3_make(0, 0, 1)),
                            .intersection_B = intersection_B};
    if (B->kind == US_GEOM_INTERSECTION) return intersection_gap(&pair, X_WA);
    usi_core_gap g = pair_gap(&pair);
    return gap_in_world(&g, X_WA);
}

us_gap usi_convex_gap_cached(const us_geom *A, us_pose X_WA, usi_intersection *intersection_A,
                             const us_geom *B, us_pose X_WB) {
    if (usi_is_swapped(A, X_WA, B, X_WB))
        return usi_gap_swapped(
            usi_gap_less_radii(core_gap(B, X_WB, A, X_WA, intersection_A), B->radius, A->radius));
    return usi_gap_less_radii(core_gap(A, X_WA, B, X_WB, NULL), A->radius, B->radius);
}

us_gap usi_convex_gap(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB) {
    return usi_convex_gap_cached(A, X_WA, NULL, B, X_WB);
}

// Surfaces made of triangles against other shapes; see pairs.h.
//
// What is tested is the definition (src/geom/surface.c), restated here without tree, blocks or library
// searches. The signed distance d is
//
//   d = min( f(T) over all triangles T,  h(b) over all balls b of the shape with their middle in the solid )
//   f(T)   the largest separation over all directions of the shape and T alone: distance, or minus the
//   shortest way off T h(b)   minus the distance of b's middle from all triangles, minus b's radius
//
// Not above that: every triangle is shown a direction that separates it by d at least, so f(T) >= d for none
// may fail; where the direction comes from does not matter, since the separation is taken anew from the
// definitions of the shapes. And h(b) >= d. Not below it: apart, two points of shape and surface are this
// near. Overlapping, d is h(b) of some ball, or no sampled direction separates the deepest triangle better.
#include "pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "geom/geom.h"

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
    bool is_number = isfinite(g.distance) && isfinite(us_vec3_dot(g.p_A, g.p_B)) &&
                     fabs(us_vec3_norm(g.normal) - 1) < 1e-9;
    pairs_expect(is_number, "the answer is no number, or the normal no unit", g.distance,
                 us_vec3_norm(g.normal));
    return g;
}

// ---- Surfaces ----

static int32_t n_triangle(const pairs_shape *S) {
    return S->mesh ? S->mesh->n_triangle : 2 * (S->field->n_x - 1) * (S->field->n_y - 1);
}
static int32_t n_vertex(const pairs_shape *S) {
    return S->mesh ? S->mesh->n_vertex : S->field->n_x * S->field->n_y;
}

static us_vec3 vertex_of(const pairs_shape *S, int32_t i) {
    return S->mesh ? S->mesh->vertex[i] : usi_field_point(S->field, i % S->field->n_x, i / S->field->n_x);
}

static us_geom triangle_of(const pairs_shape *S, int32_t i) {
    us_geom t = {.kind = US_GEOM_TRIANGLE};
    if (S->mesh) {
        for (int k = 0; k < 3; k++)
            t.point[k] = S->mesh->vertex[S->mesh->triangle[i][k]];
        return t;
    }
    const us_height_field *f = S->field;
    int32_t x = i / 2 % (f->n_x - 1), y = i / 2 / (f->n_x - 1);
    t.point[0] = usi_field_point(f, x, y);
    t.point[1] = usi_field_point(f, x + 1, y + (i % 2));
    t.point[2] = usi_field_point(f, x + (i % 2 ? 0 : 1), y + 1);
    return t;
}

static us_vec3 middle_of(const us_geom *t) {
    return us_vec3_scale(1.0 / 3, us_vec3_add(t->point[0], us_vec3_add(t->point[1], t->point[2])));
}

static double radius_of(const us_geom *t) {
    double r = 0;
    for (int k = 0; k < 3; k++)
        r = fmax(r, us_vec3_norm(us_vec3_sub(t->point[k], middle_of(t))));
    return r;
}

// How often a closed surface goes round p, by the sum of the solid angles of its triangles (Van Oosterom,
// Strackee 1983).
static double winding(const us_mesh *m, us_vec3 p) {
    double sum = 0;
    for (int32_t i = 0; i < m->n_triangle; i++) {
        us_vec3 a = us_vec3_sub(m->vertex[m->triangle[i][0]], p),
                b = us_vec3_sub(m->vertex[m->triangle[i][1]], p);
        us_vec3 c = us_vec3_sub(m->vertex[m->triangle[i][2]], p);
        double la = us_vec3_norm(a), lb = us_vec3_norm(b), lc = us_vec3_norm(c);
        sum += atan2(us_vec3_dot(a, us_vec3_cross(b, c)),
                     la * lb * lc + us_vec3_dot(a, b) * lc + us_vec3_dot(b, c) * la + us_vec3_dot(c, a) * lb);
    }
    return sum / (2 * 3.14159265358979323846);
}

// Whether a point (in the surface's frame) is in the solid; under a height field, by the triangle that is
// over it.
static bool is_inside(const pairs_shape *S, us_vec3 p) {
    if (S->mesh) return winding(S->mesh, p) > 0.5;
    for (int32_t i = 0; i < n_triangle(S); i++) {
        us_geom t = triangle_of(S, i);
        us_vec3 a = t.point[0], e = us_vec3_sub(t.point[1], a), f = us_vec3_sub(t.point[2], a),
                r = us_vec3_sub(p, a);
        double area = e.x * f.y - e.y * f.x, u = (r.x * f.y - r.y * f.x) / area,
               v = (e.x * r.y - e.y * r.x) / area;
        if (u >= 0 && v >= 0 && u + v <= 1) return r.z < u * e.z + v * f.z;
    }
    return false;
}

static double surface_distance(const pairs_shape *S, us_vec3 p) {
    double least = INFINITY;
    for (int32_t i = 0; i < n_triangle(S); i++) {
        us_geom t = triangle_of(S, i);
        least = fmin(least, pairs_point_distance(&t, p));
    }
    return least;
}

// ---- Balls ----

enum { MAX_BALLS = 80 };

typedef struct ball {
    us_vec3 p;
    double r;
} ball;

static int add_signs(ball *b, int n, double x, double y, double z) {
    for (int i = 0; i < 8; i++) {
        if ((i & 1 && x == 0) || (i & 2 && y == 0) || (i & 4 && z == 0)) continue;
        b[n++].p = us_vec3_make(i & 1 ? -x : x, i & 2 ? -y : y, i & 4 ? -z : z);
    }
    return n;
}

static int add_rim(ball *b, int n, double radius, double z) {
    for (int i = 0; i < 16; i++)
        b[n++].p =
            us_vec3_make(radius * cos(0.392699081698724155 * i), radius * sin(0.392699081698724155 * i), z);
    return n;
}

// The balls of a convex shape, in its frame.
static int balls_of(const pairs_shape *A, ball *b) {
    const us_geom *g = &A->geom;
    const double *s = g->size;
    double middle = 0;
    int n = 0;
    us_vec3 sum = us_vec3_make(0, 0, 0);
    switch (g->kind) {
    case US_GEOM_CAPSULE:
        n = add_signs(b, n, 0, 0, s[0]);
        break;
    case US_GEOM_LOZENGE:
        n = add_signs(b, n, s[0], s[1], 0);
        break;
    case US_GEOM_DISC:
        n = add_rim(b, n, s[0], 0);
        break;
    case US_GEOM_BOX:
        n = add_signs(b, n, s[0], s[1], s[2]);
        middle = fmin(s[0], fmin(s[1], s[2]));
        break;
    case US_GEOM_CYLINDER:
        n = add_signs(b, add_rim(b, add_rim(b, n, s[0], s[1]), s[0], -s[1]), 0, 0, s[1]);
        middle = fmin(s[0], s[1]);
        break;
    case US_GEOM_ELLIPSOID:
        n = add_signs(b, add_signs(b, add_signs(b, n, s[0], 0, 0), 0, s[1], 0), 0, 0, s[2]);
        middle = fmin(s[0], fmin(s[1], s[2]));
        break;
    case US_GEOM_CONE:
        n = add_rim(b, n, s[0], -s[1]);
        b[n++].p = us_vec3_make(0, 0, s[1]);
        // Twice the area of the triangle seen from the side, by its circumference.
        middle = 4 * s[0] * s[1] / (2 * s[0] + 2 * hypot(s[0], 2 * s[1]));
        break;
    case US_GEOM_TRIANGLE:
    case US_GEOM_TETRAHEDRON:
        for (; n < (g->kind == US_GEOM_TRIANGLE ? 3 : 4); n++)
            b[n].p = g->point[n];
        break;
    case US_GEOM_CONVEX:
        for (; n < g->hull->n_vertex; n++)
            b[n].p = g->hull->vertex[n];
        break;
    case US_GEOM_INTERSECTION: {
        us_geom core = A->twin;
        core.radius = 0;
        const us_vec3 d[3] = {{1, 0.31, 0.17}, {0.17, 1, 0.31}, {0.31, 0.17, 1}};
        for (; n < 6; n++)
            b[n].p = pairs_support(&core, us_vec3_scale((n % 2 ? -1 : 1) / us_vec3_norm(d[n / 2]), d[n / 2]));
        break;
    }
    default:
        break;
    }
    for (int i = 0; i < n; i++) {
        b[i].r = g->radius;
        sum = us_vec3_add(sum, b[i].p);
    }
    b[n].p = n > 0 ? us_vec3_scale(1.0 / n, sum) : sum;
    if (g->kind == US_GEOM_CONE) b[n].p = us_vec3_make(0, 0, middle - s[1]);
    b[n].r = g->radius + middle;
    return n + 1;
}

// The least h of balls posed in the surface's frame.
static double least_ball(const pairs_shape *S, us_pose X_SA, const ball *b, int n) {
    double least = INFINITY;
    for (int i = 0; i < n; i++) {
        us_vec3 p = us_pose_point(X_SA, b[i].p);
        if (is_inside(S, p)) least = fmin(least, -surface_distance(S, p) - b[i].r);
    }
    return least;
}

static double least_vertex(const pairs_shape *S, us_pose X_SA, const pairs_shape *A) {
    double least = INFINITY;
    for (int32_t i = 0; i < n_vertex(A); i++) {
        us_vec3 p = us_pose_point(X_SA, vertex_of(A, i));
        if (is_inside(S, p)) least = fmin(least, -surface_distance(S, p));
    }
    return least;
}

// ---- Checks ----

// One side of the reference: shows T a direction that separates it from the shape by d (less `enough`), and
// notes the triangle nearest to failing.
typedef struct trial {
    double d, enough, least;
    us_geom A, B;  // the deepest pair so far
} trial;

static void try_pair(trial *t, const us_geom *A, us_pose X_WA, us_vec3 middle_A, double radius_A,
                     const us_geom *B, us_pose X_WB) {
    us_vec3 way = us_vec3_sub(middle_A, us_pose_point(X_WB, middle_of(B)));
    if (us_vec3_norm(way) - radius_A - radius_of(B) > fmax(t->d, t->least)) return;
    us_gap g;
    assert_int_equal(us_geom_distance(A, X_WA, B, X_WB, &g), US_OK);
    double s = pairs_separation(A, X_WA, B, X_WB, g.normal);
    pairs_expect(s >= t->d - t->enough, "a triangle is nearer or deeper", s, t->d);
    if (s < t->least) {
        t->least = s;
        t->A = *A;
        t->B = *B;
    }
}

// Whether a height field's rim, under which its sides are open, is out of reach of the shape: all of it is
// over or under the field, or beside.
static bool is_clear_of_rim(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB) {
    if (!B->field) return true;
    us_vec3 p = us_pose_point(us_pose_inverse(X_WB), X_WA.p);
    double x = 0.5 * (B->field->n_x - 1) * B->field->dx, y = 0.5 * (B->field->n_y - 1) * B->field->dy,
           r = A->size + 0.05;
    bool is_within = fabs(p.x) + r < x && fabs(p.y) + r<y, is_beside = fabs(p.x) - r> x || fabs(p.y) - r > y;
    return is_within || is_beside || p.z - r > B->field->high;
}

static void check_answer(const us_gap *g, double d, const trial *t, double by_ball, double size, us_pose X_WA,
                         us_pose X_WB) {
    us_vec3 rest = us_vec3_sub(us_vec3_sub(g->p_A, g->p_B), us_vec3_scale(g->distance, g->normal));
    pairs_expect(us_vec3_norm(rest) <= fmax(t->enough, 1e-6 * size), "p_A - p_B is not distance * normal, by",
                 us_vec3_norm(rest), 1e-6 * size);
    pairs_expect(d <= by_ball + t->enough, "a ball in the solid is deeper", by_ball, d);
    // Apart, the points have been looked at.
    if (d > 0 || by_ball <= d + t->enough) return;
    pairs_expect(t->least < INFINITY, "deeper than anything, no triangle being near", d, by_ball);
    double best = pairs_best_separation(&t->A, X_WA, &t->B, X_WB);
    // 2e-5: as deep as EPA follows the edges of cones and cylinders.
    pairs_expect(best <= d + fmax(t->enough, 2e-5 * size), "the deepest triangle is left by a shorter way",
                 best, d);
}

// The points of an answer are where they should be: p on the shape, q (without the surface's radius) on the
// surface.
static void check_points(const pairs_shape *A, us_pose X_WA, us_vec3 p, const pairs_shape *B, us_pose X_WB,
                         us_vec3 q, double enough) {
    us_vec3 p_A = us_pose_point(us_pose_inverse(X_WA), p), q_B = us_pose_point(us_pose_inverse(X_WB), q);
    double a = A->mesh || A->field ? surface_distance(A, p_A) : pairs_point_distance(&A->twin, p_A),
           b = surface_distance(B, q_B);
    pairs_expect(a <= enough, "p_A is off A by", a, enough);
    pairs_expect(b <= enough, "p_B is off B by", b, enough);
}

void pairs_check_surface(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB,
                         uint64_t pose) {
    us_gap g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    // Distances to 1e-7, depths of round bodies to 1e-6; those of intersections to 1e-5, and where their
    // farthest point lies on a curved side to 1e-4.
    bool is_cut = A->geom.kind == US_GEOM_INTERSECTION;
    double size = A->size + B->size, d = g.distance + B->geom.radius,
           enough = (is_cut  ? (d > 0 ? 1e-5 : 1e-4)
                     : d > 0 ? 1e-7
                             : 1e-6) *
                    size;
    trial t = {.d = d, .enough = enough, .least = INFINITY};
    for (int32_t i = 0; i < n_triangle(B); i++) {
        us_geom T = triangle_of(B, i);
        try_pair(&t, &A->twin, X_WA, X_WA.p, A->size, &T, X_WB);
    }
    ball b[MAX_BALLS];
    us_pose X_BA = us_pose_mul(us_pose_inverse(X_WB), X_WA);
    double by_ball = least_ball(B, X_BA, b, balls_of(A, b));
    // Where the nearest points of round bodies lie is known to the root of what the distance is known to
    // (1e-11).
    double off = fmax(enough, 5e-6 * size);
    if (d > 0)
        check_points(A, X_WA, g.p_A, B, X_WB, us_vec3_sub(g.p_B, us_vec3_scale(B->geom.radius, g.normal)),
                     off);
    check_answer(&g, d, &t, by_ball, size, X_WA, X_WB);
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    if (is_clear_of_rim(A, X_WA, B, X_WB))
        pairs_check_motion(A, X_WA, B, X_WB, &g, pose, is_cut ? 1e-4 : 1e-6);
}

void pairs_check_surfaces(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB,
                          uint64_t pose) {
    us_gap g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    // Triangles are flat: what is left is rounding, and 1e-8 where they all but touch.
    double size = A->size + B->size, d = g.distance + A->geom.radius + B->geom.radius, enough = 1e-7 * size;
    trial t = {.d = d, .enough = enough, .least = INFINITY};
    for (int32_t i = 0; i < n_triangle(A); i++) {
        us_geom S = triangle_of(A, i);
        us_vec3 middle = us_pose_point(X_WA, middle_of(&S));
        double radius = radius_of(&S);
        for (int32_t k = 0; k < n_triangle(B); k++) {
            us_geom T = triangle_of(B, k);
            try_pair(&t, &S, X_WA, middle, radius, &T, X_WB);
        }
    }
    us_pose X_BA = us_pose_mul(us_pose_inverse(X_WB), X_WA);
    double by_vertex = fmin(least_vertex(B, X_BA, A), least_vertex(A, us_pose_inverse(X_BA), B));
    us_vec3 p = us_vec3_add(g.p_A, us_vec3_scale(A->geom.radius, g.normal)),
            q = us_vec3_sub(g.p_B, us_vec3_scale(B->geom.radius, g.normal));
    if (d > 0) check_points(A, X_WA, p, B, X_WB, q, enough);
    check_answer(&g, d, &t, by_vertex, size, X_WA, X_WB);
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    if (is_clear_of_rim(A, X_WA, B, X_WB) && is_clear_of_rim(B, X_WB, A, X_WA))
        pairs_check_motion(A, X_WA, B, X_WB, &g, pose, 1e-7);
}

void pairs_check_union(const pairs_shape *A, us_pose X_WA, const pairs_shape *B, us_pose X_WB,
                       uint64_t pose) {
    us_gap g = pairs_gap(&A->geom, X_WA, &B->geom, X_WB);
    double least = INFINITY;
    for (int32_t i = 0; i < B->geom.n_part; i++) {
        us_gap part;
        assert_int_equal(us_geom_distance(&A->geom, X_WA, &B->geom.parts[i].geom,
                                          us_pose_mul(X_WB, B->geom.parts[i].X_GP), &part),
                         US_OK);
        least = fmin(least, part.distance);
    }
    double size = A->size + B->size;
    // 1e-12: two unions are nested loops whose order decides which radius comes off first.
    pairs_expect(fabs(g.distance - (least - B->geom.radius)) <= 1e-12 * size, "distance of the nearest part",
                 g.distance, least - B->geom.radius);
    pairs_check_exchange(&A->geom, X_WA, &B->geom, X_WB, &g);
    bool is_cut = A->geom.kind == US_GEOM_INTERSECTION, is_surface = A->mesh || A->field;
    if (is_clear_of_rim(B, X_WB, A, X_WA))
        pairs_check_motion(A, X_WA, B, X_WB, &g, pose, is_cut ? 1e-5 : 1e-6);
    if (!is_cut && !is_surface) pairs_check_contact(&A->geom, X_WA, &B->geom, X_WB, &g, size);
}

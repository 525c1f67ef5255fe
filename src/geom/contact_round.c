// Contact points of round shapes: their flat features, capsules side by side, and anything on a half space.
//
// A cylinder touches with an end, with the line along its side, or with a point of its rim:
//
//        standing            lying              tilted
//        |      |          _________              / /
//        |      |         (_________|            / /
//     ---o------o---    ---o-------o---      ---o------
//        rim points      ends of the line     one point
//
// Which of them it is depends on the direction only. Between them the far points rise out of the margin
// before the feature changes: the line's other end by L sin 18 deg, the end's other side by 2 R sin 18 deg.
#include "geom/contact_candidates.h"

// cos 18 deg.
#define ROUND_FLAT 0.95

// A circle about z, counter-clockwise seen along `side`. The angles are fixed in the shape, so that ids stay
// while it stands.
static void rim(double radius, double z, double side, int32_t n_rim, uint32_t id, usi_feature *f) {
    // Cosines of k pi/8, k = 0 .. 4.
    static const double c[5] = {1, 0.92387953251128674, 0.70710678118654752, 0.38268343236508977, 0};
    f->n = n_rim;
    f->id = id;
    f->normal = us_vec3_make(0, 0, side);
    for (int32_t i = 0; i < n_rim; i++) {
        int32_t k = i * (USI_FEATURE_POINTS / n_rim), quarter = k / 4, m = k % 4;
        double x = c[m], y = c[4 - m];
        double cosine = quarter == 0 ? x : (quarter == 1 ? -y : (quarter == 2 ? -x : y));
        double sine = quarter == 0 ? y : (quarter == 1 ? x : (quarter == 2 ? -y : -x));
        f->p[i] = us_vec3_make(radius * cosine, side * radius * sine, z);
    }
}

static void line(us_vec3 a, us_vec3 b, us_vec3 normal, uint32_t id, usi_feature *f) {
    f->n = 2;
    f->p[0] = a;
    f->p[1] = b;
    f->normal = normal;
    f->id = id;
    if (us_vec3_norm(us_vec3_sub(b, a)) == 0) f->n = 1;
}

bool usi_feature_round(const us_geom *g, us_vec3 d, int32_t n_rim, usi_feature *f) {
    const double *s = g->size;
    double flat = sqrt(d.x * d.x + d.y * d.y);
    us_vec3 radial = flat > 0 ? us_vec3_make(d.x / flat, d.y / flat, 0) : us_vec3_make(1, 0, 0);
    f->n = 1;
    f->id = 0x8000;
    f->normal = d;
    switch (g->kind) {
    case US_GEOM_SPHERE:
    case US_GEOM_ELLIPSOID:
        f->p[0] = usi_core_support(g, d);
        return true;
    case US_GEOM_CAPSULE:
        if (flat > ROUND_FLAT && s[0] > 0) {
            line(us_vec3_make(0, 0, -s[0]), us_vec3_make(0, 0, s[0]), radial, 1, f);
        } else {
            f->p[0] = us_vec3_make(0, 0, d.z < 0 ? -s[0] : s[0]);
            f->id = d.z < 0 ? 0x8000 : 0x8001;
        }
        return true;
    case US_GEOM_DISC:
    case US_GEOM_CYLINDER: {
        double half = g->kind == US_GEOM_DISC ? 0 : s[1];
        if (fabs(d.z) > ROUND_FLAT && s[0] > 0) {
            rim(s[0], d.z < 0 ? -half : half, d.z < 0 ? -1 : 1, n_rim, d.z < 0 ? 2 : 3, f);
        } else if (flat > ROUND_FLAT && half > 0) {
            us_vec3 side = us_vec3_scale(s[0], radial);
            line(us_vec3_make(side.x, side.y, -half), us_vec3_make(side.x, side.y, half), radial, 1, f);
        } else {
            f->p[0] = usi_core_support(g, d);
            f->id = d.z < 0 ? 0x8002 : 0x8003;
        }
        return true;
    }
    case US_GEOM_CONE: {
        double slant = sqrt(s[0] * s[0] + 4 * s[1] * s[1]), out = slant > 0 ? 2 * s[1] / slant : 1,
               up = slant > 0 ? s[0] / slant : 0;
        if (-d.z > ROUND_FLAT && s[0] > 0) {
            rim(s[0], -s[1], -1, n_rim, 2, f);
        } else if (flat * out + d.z * up > ROUND_FLAT && slant > 0) {
            us_vec3 base = us_vec3_scale(s[0], radial);
            line(us_vec3_make(base.x, base.y, -s[1]), us_vec3_make(0, 0, s[1]),
                 us_vec3_make(radial.x * out, radial.y * out, up), 1, f);
        } else {
            f->p[0] = usi_core_support(g, d);
            f->id = flat * out + d.z * up > 0 && d.z > 0 ? 0x8003 : 0x8002;
        }
        return true;
    }
    default:
        return false;
    }
}

// ---- Capsules ----
//
// Each is a segment with a radius: every pair of points on the two segments is a pair of spheres. The nearest
// pair is exact. Where the segments run side by side, the ends of their common stretch give one pair each,
// with a normal of its own: the surfaces between curve away at once, so that the normal in the middle would
// not do for the ends.

// The surface point of a capsule beside the point at s on its axis, along d or, between the ends, along what
// of d is across the axis.
static us_vec3 capsule_side(const us_geom *g, us_pose X, us_vec3 axis, double s, us_vec3 d) {
    double along = us_vec3_dot(d, axis), half = g->size[0];
    bool is_beyond = (s >= half && along > 0) || (s <= -half && along < 0);
    if (!is_beyond) d = usi_vec3_unit(usi_vec3_add_scaled(d, -along, axis), d);
    return usi_vec3_add_scaled(usi_vec3_add_scaled(X.p, s, axis), g->radius, d);
}

void usi_contact_capsules(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                          usi_candidates *c) {
    us_gap g = usi_convex_gap(A, X_WA, B, X_WB);
    if (!(g.distance <= margin)) return;
    double reach = A->radius + B->radius, size = fmin(A->size[0] + A->radius, B->size[0] + B->radius);
    us_vec3 u = us_quat_rotate(X_WA.q, us_vec3_make(0, 0, 1)),
            v = us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1));
    double a = A->size[0], b = B->size[0], along = us_vec3_dot(u, v);
    us_vec3 off = us_vec3_sub(X_WB.p, X_WA.p);
    int32_t first = c->n;
    double min_gap = INFINITY;
    // Side by side: within 0.1 rad, and one beside the other rather than in its way.
    if (fabs(along) > 0.995 && a > 0 && b > 0) {
        double middle = us_vec3_dot(u, off), half = b * fabs(along), low = fmax(-a, middle - half),
               high = fmin(a, middle + half);
        for (int k = 0; k < 2 && high - low > 1e-3 * fmin(a, b); k++) {
            double s = k ? high : low;
            us_vec3 p = usi_vec3_add_scaled(X_WA.p, s, u);
            double t = us_vec3_dot(v, us_vec3_sub(p, X_WB.p));
            t = t < -b ? -b : (t > b ? b : t);
            us_vec3 q = usi_vec3_add_scaled(X_WB.p, t, v), d = us_vec3_sub(p, q);
            double distance = us_vec3_norm(d);
            // Crossing axes have no side: only the nearest pair is a contact.
            if (!(distance > 1e-3 * reach)) continue;
            us_vec3 n = us_vec3_scale(1 / distance, d),
                    p_A = capsule_side(A, X_WA, u, s, us_vec3_scale(-1, n)),
                    p_B = capsule_side(B, X_WB, v, t, n);
            usi_candidates_add(c, margin, n, p_A, p_B, (uint64_t)1 << 50 | (uint64_t)k);
            min_gap = fmin(min_gap, us_vec3_dot(n, us_vec3_sub(p_A, p_B)));
        }
    }
    if (min_gap > g.distance + USI_SAME_DEPTH * size || c->n == first) {
        usi_candidates_put_deepest(c, first, 0.05 * size, margin, g.normal, g.p_A, g.p_B, 1ull << 51);
    }
}

// ---- Half space ----

static void exchange(usi_candidate *a, usi_candidate *b) {
    const usi_candidate t = *a;
    *a = *b;
    *b = t;
}

// Keeps US_MANIFOLD_POINTS of n points: those that press, all but one if need be, and others far from these.
// One that presses and is left out would be missed in the next step, and the body would rock.
static void keep_pressing(usi_candidate *p, int32_t n) {
    int32_t n_deep = 0, k = 0;
    for (int32_t i = 0; i < n; i++)
        n_deep += p[i].gap < 0;
    n_deep = n_deep < 4 ? 4 : n_deep > US_MANIFOLD_POINTS - 1 ? US_MANIFOLD_POINTS - 1 : n_deep;
    for (; k < n_deep; k++) {
        for (int32_t i = k + 1; i < n; i++) {
            if (p[i].gap < p[k].gap) exchange(&p[i], &p[k]);
        }
    }
    for (; k < US_MANIFOLD_POINTS; k++) {
        int32_t best = k;
        double score = -1;
        for (int32_t i = k; i < n; i++) {
            double near = INFINITY;
            for (int32_t j = 0; j < k; j++) {
                const us_vec3 d = us_vec3_sub(p[i].p_A, p[j].p_A);
                near = fmin(near, us_vec3_dot(d, d));
            }
            if (near > score) best = i;
            score = fmax(score, near);
        }
        exchange(&p[k], &p[best]);
    }
}

// The corners of a hull that are near the plane, where these are more than the `n_corner` of its lowest face:
// a bottom that is nearly flat rests on corners of several faces, and face by face it would rock for ever. At
// most US_MANIFOLD_POINTS are kept, the deepest among them. False when the face says all.
static bool add_corners(const us_geom *A, us_pose X_WA, us_vec3 n, us_vec3 at, int32_t n_corner,
                        double margin, usi_candidates *c) {
    const us_hull *hull = A->hull;
    const us_vec3 n_A = us_quat_rotate(us_quat_conj(X_WA.q), n);
    const double height = us_vec3_dot(n, us_vec3_sub(X_WA.p, at)) - A->radius;
    int32_t n_near = 0;
    for (int32_t i = 0; i < hull->n_vertex; i++)
        n_near += height + us_vec3_dot(n_A, hull->vertex[i]) <= margin;
    if (n_near <= n_corner) return false;
    const int32_t first = c->n;
    for (int32_t i = 0; i < hull->n_vertex; i++) {
        const double gap = height + us_vec3_dot(n_A, hull->vertex[i]);
        if (!(gap <= margin)) continue;
        const us_vec3 p = usi_vec3_add_scaled(us_pose_point(X_WA, hull->vertex[i]), -A->radius, n);
        if (c->n == USI_CANDIDATES && c->n - first > US_MANIFOLD_POINTS) {
            keep_pressing(c->at + first, c->n - first);
            c->n = first + US_MANIFOLD_POINTS;
        }
        usi_candidates_add(c, margin, n, p, usi_vec3_add_scaled(p, -gap, n), 1ull << 52 | (uint64_t)i);
    }
    if (c->n - first > US_MANIFOLD_POINTS) {
        keep_pressing(c->at + first, c->n - first);
        c->n = first + US_MANIFOLD_POINTS;
    }
    return true;
}

void usi_contact_half_space(const us_geom *A, us_pose X_WA, us_pose X_WB, double margin, usi_candidates *c) {
    us_vec3 n = us_quat_rotate(X_WB.q, us_vec3_make(0, 0, 1)), down = us_vec3_scale(-1, n);
    us_vec3 d_A = us_quat_rotate(us_quat_conj(X_WA.q), down);
    us_vec3 deepest = usi_vec3_add_scaled(us_pose_point(X_WA, usi_core_support(A, d_A)), A->radius, down);
    double gap = us_vec3_dot(n, us_vec3_sub(deepest, X_WB.p));
    if (!(gap <= margin)) return;
    usi_feature f;
    // Four points of a rim carry a load like the whole rim; all corners of a polygon are tested.
    usi_feature_find(A, X_WA, down, 4, &f);
    if (A->kind == US_GEOM_CONVEX && add_corners(A, X_WA, n, X_WB.p, f.n, margin, c)) return;
    int32_t first = c->n;
    double min_gap = INFINITY, size = usi_geom_extent(A);
    for (int32_t i = 0; i < f.n; i++) {
        double s = us_vec3_dot(n, us_vec3_sub(f.p[i], X_WB.p));
        min_gap = fmin(min_gap, s);
        usi_candidates_add(c, margin, n, f.p[i], usi_vec3_add_scaled(f.p[i], -s, n),
                           (uint64_t)f.id << 16 | (uint64_t)i);
    }
    if (min_gap > gap + USI_SAME_DEPTH * size || c->n == first) {
        // Between two drawn points of a rim it takes the place of the nearer, with its id; else of a point
        // next to it.
        double near = f.n == 4 && A->kind != US_GEOM_BOX ? size : 0.1 * size;
        usi_candidates_put_deepest(c, first, near, margin, n, deepest, usi_vec3_add_scaled(deepest, -gap, n),
                                   1ull << 51 | (uint64_t)f.id << 16);
    }
    usi_candidates_reduce_face(c, first, USI_FACE_POINTS, USI_CLIP_TOLERANCE * size);
}

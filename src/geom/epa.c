// Penetration depth of two convex cores: the expanding polytope algorithm (van den Bergen 2001).
//
// The Minkowski difference C = { a - b } holds the origin O. The depth is the distance from O to C's surface.
// A polytope inside C, with corners on C's surface, is expanded where it is nearest to O, until C has nothing
// beyond its nearest face:
//
//              . w .            the face nearest to O has normal n and offset o
//            .       .          w is the farthest point of C along n
//        p0 *---------* p1      o <= depth <= n.w: equal, done; else w becomes a corner
//          /     ^ n   \        the faces that w sees are dropped, and new ones join w with the edge of the
//         /      O      \       hole (the horizon)
//
// Offsets are signed. While O is outside the polytope the nearest face is the one O is most in front of, and
// the same rule makes the polytope grow over O. So any tetrahedron will do to begin with, and a C that O
// merely touches is no special case: where rounding puts O outside C, the depth comes out as a tiny negative
// number.
//
// Degenerate cases: a C without volume (coplanar triangles, crossing segments, two points) has depth 0 across
// itself; a face that w sees by less than rounding counts as unseen, so no new face is a sliver thinner than
// that; a horizon that is not one simple loop ends the search with the best answer so far. The distance that
// is returned is always the exact extent of C along the normal that is returned: moved by that much the cores
// are apart, whatever went before.
#include "geom/gjk.h"

#include <float.h>

enum { MAX_CORNERS = 256, MAX_FACES = 2 * MAX_CORNERS };
// Tolerances relative to C's size: of no thickness; of convergence; of a visible face; of equal points. A
// face thinner than 1e-12 has a normal that is off by 1e-4 and more; finer figures than these lead round
// bodies into such faces.
static const double FLAT = 1e-12, ENOUGH = 1e-11, SEEN = 2e-12, SAME = 1e-13;

typedef struct polytope_face {
    int corner[3];  // counter-clockwise seen from outside
    int beyond[3];  // the face beyond the edge from corner i to corner i + 1
    us_vec3 normal;
    double offset;
    bool is_alive, is_seen;
} polytope_face;

typedef struct polytope {
    const usi_convex_pair *pair;
    double size;
    int n_corner, n_face;  // n_face: slots used so far; dead ones are used again
    usi_minkowski_point corner[MAX_CORNERS];
    polytope_face face[MAX_FACES];
} polytope;

// The edge of the hole: from corner to corner counter-clockwise, and the face that stays on the other side.
typedef struct horizon_edge {
    int from, to, outside, side;
} horizon_edge;

static us_vec3 corner_at(const polytope *P, int i) { return P->corner[i].w; }

static int new_face(polytope *P, int a, int b, int c) {
    int i = 0;
    while (i < P->n_face && P->face[i].is_alive)
        i++;
    if (i == P->n_face) P->n_face++;
    polytope_face *f = &P->face[i];
    *f = (polytope_face){.corner = {a, b, c}, .beyond = {-1, -1, -1}, .is_alive = true};
    us_vec3 p = corner_at(P, a), q = corner_at(P, b), r = corner_at(P, c);
    us_vec3 n = us_vec3_cross(us_vec3_sub(q, p), us_vec3_sub(r, p));
    double length = us_vec3_norm(n);
    // A face of no area is never the nearest and never seen.
    f->offset = DBL_MAX;
    if (length > 0) {
        f->normal = us_vec3_scale(1 / length, n);
        f->offset = us_vec3_dot(f->normal, us_vec3_add(p, us_vec3_add(q, r))) / 3;
    }
    return i;
}

static bool sees(const polytope *P, us_vec3 w, int f) {
    return us_vec3_dot(P->face[f].normal, w) - P->face[f].offset > SEEN * P->size;
}

static bool is_corner(const polytope *P, us_vec3 w) {
    for (int i = 0; i < P->n_corner; i++) {
        us_vec3 r = us_vec3_sub(P->corner[i].w, w);
        if (us_vec3_dot(r, r) <= SAME * SAME * P->size * P->size) return true;
    }
    return false;
}

// Removes the faces that w sees, beginning at f, and lists the edges of the hole.
static int find_horizon(polytope *P, us_vec3 w, int f, horizon_edge *edge) {
    int todo[MAX_FACES], n_todo = 0, n_edge = 0, done = 0;
    todo[n_todo++] = f;
    P->face[f].is_seen = true;
    for (; done < n_todo; done++)
        for (int k = 0; k < 3; k++) {
            int g = P->face[todo[done]].beyond[k];
            if (P->face[g].is_seen || !sees(P, w, g)) continue;
            P->face[g].is_seen = true;
            todo[n_todo++] = g;
        }
    for (int i = 0; i < n_todo; i++) {
        polytope_face *seen = &P->face[todo[i]];
        for (int k = 0; k < 3; k++) {
            int g = seen->beyond[k];
            if (P->face[g].is_seen) continue;
            horizon_edge e = {seen->corner[k], seen->corner[(k + 1) % 3], g, 0};
            for (int side = 0; side < 3; side++)
                if (P->face[g].corner[side] == e.to) e.side = side;
            edge[n_edge++] = e;
        }
    }
    for (int i = 0; i < n_todo; i++)
        P->face[todo[i]].is_alive = P->face[todo[i]].is_seen = false;
    return n_edge;
}

// Makes w a corner. False where the horizon is not a simple loop.
static bool expand(polytope *P, const usi_minkowski_point *s, int f) {
    horizon_edge edge[3 * MAX_FACES];
    int n_edge = find_horizon(P, s->w, f, edge), w = P->n_corner++, begins[MAX_CORNERS], made[MAX_FACES];
    P->corner[w] = *s;
    for (int i = 0; i < w; i++)
        begins[i] = -1;
    int n_alive = 0;
    for (int i = 0; i < P->n_face; i++)
        n_alive += P->face[i].is_alive;
    if (n_edge < 3 || n_alive + n_edge > MAX_FACES) return false;
    for (int i = 0; i < n_edge; i++) {
        if (begins[edge[i].from] >= 0) return false;
        begins[edge[i].from] = i;
    }
    for (int i = 0; i < n_edge; i++) {
        made[i] = new_face(P, edge[i].from, edge[i].to, w);
        P->face[made[i]].beyond[0] = edge[i].outside;
        P->face[edge[i].outside].beyond[edge[i].side] = made[i];
    }
    for (int i = 0; i < n_edge; i++) {
        int next = begins[edge[i].to];
        if (next < 0) return false;
        P->face[made[i]].beyond[1] = made[next];
        P->face[made[next]].beyond[2] = made[i];
    }
    return true;
}

// ---- the beginning
// ----------------------------------------------------------------

static us_vec3 unit_or(us_vec3 a, us_vec3 otherwise) {
    double length = us_vec3_norm(a);
    return length > 0 ? us_vec3_scale(1 / length, a) : otherwise;
}
static us_vec3 across(us_vec3 e, us_vec3 preferred) {
    us_vec3 side = us_vec3_sub(preferred, us_vec3_scale(us_vec3_dot(preferred, e), e));
    if (us_vec3_norm(side) > 1e-3) return unit_or(side, preferred);
    // `preferred` is along e: the axis that e has the smallest component of.
    us_vec3 axis = fabs(e.x) < 0.6 ? us_vec3_make(1, 0, 0) : us_vec3_make(0, 1, 0);
    return unit_or(us_vec3_sub(axis, us_vec3_scale(us_vec3_dot(axis, e), e)), axis);
}

// Residual of the points: normal * distance - (a - b).
static us_vec3 residual_of(const usi_core_gap *g) {
    return us_vec3_sub(us_vec3_scale(g->distance, g->normal), us_vec3_sub(g->a, g->b));
}
// Moves each point by half of the residual.
static void split_residual(usi_core_gap *g) {
    us_vec3 half = us_vec3_scale(0.5, residual_of(g));
    g->a = us_vec3_add(g->a, half);
    g->b = us_vec3_sub(g->b, half);
}

// Gap where C has no thickness along n: the depth is 0, towards the side where A's middle lies, or upwards.
static usi_core_gap flat_gap(const usi_convex_pair *pair, us_vec3 n, const usi_core_gap *touch) {
    double side = -us_vec3_dot(n, pair->p_AB);
    if (side < 0 || (side == 0 && us_vec3_dot(n, pair->up) < 0)) n = us_vec3_scale(-1, n);
    usi_core_gap g = {us_vec3_dot(n, us_vec3_sub(touch->a, touch->b)), n, touch->a, touch->b, 0};
    split_residual(&g);
    return g;
}

// Corners 0 and 1: those of the six extremes along the axes that are farthest apart. Returns their distance.
static double find_line(polytope *P) {
    const us_vec3 axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    usi_minkowski_point s[6];
    int first = 0, second = 0;
    double longest = 0;
    for (int i = 0; i < 6; i++) {
        s[i] = usi_convex_pair_support(P->pair, us_vec3_scale(i % 2 ? -1 : 1, axis[i / 2]));
        P->size = fmax(P->size, us_vec3_norm(s[i].w));
        for (int j = 0; j < i; j++) {
            double length = us_vec3_norm(us_vec3_sub(s[i].w, s[j].w));
            if (length > longest) {
                longest = length;
                first = j;
                second = i;
            }
        }
    }
    P->corner[0] = s[first];
    P->corner[1] = s[second];
    return longest;
}

// Corner 2: the farthest from the line p + e t among the extremes in eight directions around it; x is across
// e. Returns its distance.
static double find_third(polytope *P, us_vec3 p, us_vec3 e, us_vec3 x) {
    us_vec3 y = us_vec3_cross(e, x);
    double farthest = 0;
    for (int i = 0; i < 8; i++) {
        double cx = i < 4 ? (i % 2 ? 1 : -1) : (i == 4) - (i == 5),
               cy = i < 4 ? (i / 2 ? 1 : -1) : (i == 6) - (i == 7);
        usi_minkowski_point c =
            usi_convex_pair_support(P->pair, us_vec3_add(us_vec3_scale(cx, x), us_vec3_scale(cy, y)));
        us_vec3 r = us_vec3_sub(c.w, p);
        double off = us_vec3_norm(us_vec3_sub(r, us_vec3_scale(us_vec3_dot(r, e), e)));
        if (off > farthest) {
            farthest = off;
            P->corner[2] = c;
        }
    }
    return farthest;
}

// Finds four corners of C with volume between them: along the axes, then across the line and the plane of
// those found. False: C is flat across *out_flat.
static bool find_tetrahedron(polytope *P, us_vec3 *out_flat) {
    const usi_convex_pair *pair = P->pair;
    // Line.
    const double longest = find_line(P);
    *out_flat = pair->up;
    if (!(longest > FLAT * P->size)) return false;
    us_vec3 p = P->corner[0].w, e = us_vec3_scale(1 / longest, us_vec3_sub(P->corner[1].w, p));

    // Triangle.
    us_vec3 x = across(e, pair->up);
    const double farthest = find_third(P, p, e, x);
    *out_flat = x;
    if (!(farthest > FLAT * P->size)) return false;

    // Tetrahedron.
    us_vec3 n = unit_or(us_vec3_cross(e, us_vec3_sub(P->corner[2].w, p)), x);
    usi_minkowski_point above = usi_convex_pair_support(pair, n),
                        below = usi_convex_pair_support(pair, us_vec3_scale(-1, n));
    double up = us_vec3_dot(n, us_vec3_sub(above.w, p)), down = us_vec3_dot(n, us_vec3_sub(p, below.w));
    *out_flat = n;
    if (!(fmax(up, down) > FLAT * P->size)) return false;
    P->corner[3] = up > down ? above : below;
    P->n_corner = 4;
    int a = 0, b = up > down ? 1 : 2,
        c = up > down ? 2 : 1;  // counter-clockwise seen from corner 3

    // Faces: the base from outside, then the three sides.
    new_face(P, a, c, b);
    new_face(P, a, b, 3);
    new_face(P, b, c, 3);
    new_face(P, c, a, 3);
    const int beyond[4][3] = {{3, 2, 1}, {0, 2, 3}, {0, 3, 1}, {0, 1, 2}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            P->face[i].beyond[k] = beyond[i][k];
    return true;
}

// ---- the end
// ----------------------------------------------------------------

// Barycentric coordinates of O on a face along n; returns the smallest of them.
static double foot(const us_vec3 p[3], us_vec3 n, double share[3]) {
    us_vec3 e = us_vec3_sub(p[1], p[0]), f = us_vec3_sub(p[2], p[0]);
    double area = us_vec3_dot(n, us_vec3_cross(e, f));
    if (!(area > 0)) return -DBL_MAX;
    share[1] = us_vec3_dot(n, us_vec3_cross(f, p[0])) / area;
    share[2] = us_vec3_dot(n, us_vec3_cross(p[0], e)) / area;
    share[0] = 1 - share[1] - share[2];
    return fmin(share[0], fmin(share[1], share[2]));
}

// Best answer so far: its face, and the extent of C along the normal.
typedef struct answer {
    polytope_face f;
    double depth;
} answer;

// O falls on the face that gave the answer, or on another as near (in the same plane, or grown over it
// since): the one on which it falls best gives the points.
static usi_core_gap finish(const polytope *P, const answer *best) {
    usi_core_gap g = {-best->depth, us_vec3_scale(-1, best->f.normal), {0, 0, 0}, {0, 0, 0}, 0};
    double max_min_share = -DBL_MAX, share[3] = {0, 0, 0}, best_share[3] = {1, 0, 0}, sum = 0;
    const polytope_face *on = &best->f;
    for (int i = -1; i < P->n_face && max_min_share < 0; i++) {
        const polytope_face *f = i < 0 ? &best->f : &P->face[i];
        if (i >= 0 && (!f->is_alive || f->offset > best->depth + 1e-9 * P->size ||
                       us_vec3_dot(f->normal, best->f.normal) < 0.9))
            continue;
        us_vec3 p[3] = {corner_at(P, f->corner[0]), corner_at(P, f->corner[1]), corner_at(P, f->corner[2])};
        double min_share = foot(p, best->f.normal, share);
        if (!(min_share > max_min_share)) continue;
        max_min_share = min_share;
        on = f;
        for (int k = 0; k < 3; k++)
            best_share[k] = share[k];
    }
    for (int k = 0; k < 3; k++)
        sum += best_share[k] = fmax(0, best_share[k]);
    if (!(sum > 0)) best_share[0] = sum = 1;
    for (int k = 0; k < 3; k++) {
        const usi_minkowski_point *s = &P->corner[on->corner[k]];
        g.a = us_vec3_add(g.a, us_vec3_scale(best_share[k] / sum, s->a));
        g.b = us_vec3_add(g.b, us_vec3_scale(best_share[k] / sum, s->b));
    }
    return g;
}

// Refines the answer for round bodies with many directions of (nearly) the same depth, such as a point on the
// axis of a cylinder, which use up the corners before the faces fit closely. The nearest point of C is found
// by GJK from a point q outside C, straight ahead:
//
//          n'  .            C's surface has a radius of curvature of R >= depth where O is nearest to it; a
//       O -----)----- q     direction that is off by e comes back off by e depth / R
//              .
static void polish(const polytope *P, usi_core_gap *g) {
    for (int i = 0; i < 32; i++) {
        us_vec3 q = us_vec3_scale(g->distance - 1e-3 * P->size, g->normal);
        usi_convex_pair beyond = *P->pair;
        beyond.p_AB = us_vec3_add(beyond.p_AB, q);
        usi_core_gap next;
        if (!usi_gjk(&beyond, beyond.p_AB, &next)) return;
        next.b = us_vec3_sub(next.b, q);
        us_vec3 n = us_vec3_scale(-1, next.normal);
        next.distance = -us_vec3_dot(n, usi_convex_pair_support(P->pair, n).w);
        // Never a greater depth, but perhaps better points; repeated while the depth shrinks.
        double gain = next.distance - g->distance;
        if (gain < 0) {
            next.distance = g->distance;
            next.normal = g->normal;
        }
        if (gain > 0 || us_vec3_norm(residual_of(&next)) < us_vec3_norm(residual_of(g))) *g = next;
        if (gain <= 0.01 * ENOUGH * P->size) return;
    }
}

// The same for smooth surfaces that are nearly as round as a ball around O, where polishing is slow (depth /
// R near 1), by Newton's method. In the direction of the depth the support point along n lies on n itself:
// w(n) = depth n. With t a small step across n,
//
//     w(n + t) - depth (n + t)  has no part across n:   (dw/dn - depth) t = -w(n), across n
//
// dw/dn (the radii of curvature) comes from differences. Where the surface has creases this leads nowhere and
// changes nothing.
static void newton(const polytope *P, usi_core_gap *g) {
    const double step = 1e-4;
    for (int i = 0; i < 8; i++) {
        us_vec3 n = us_vec3_scale(-1, g->normal), x = across(n, P->pair->up), y = us_vec3_cross(n, x),
                w = usi_convex_pair_support(P->pair, n).w;
        double J[2][2], fx = us_vec3_dot(w, x), fy = us_vec3_dot(w, y), depth = us_vec3_dot(w, n);
        for (int k = 0; k < 2; k++) {
            us_vec3 t = us_vec3_scale(step, k ? y : x);
            us_vec3 dw = us_vec3_sub(usi_convex_pair_support(P->pair, us_vec3_add(n, t)).w,
                                     usi_convex_pair_support(P->pair, us_vec3_sub(n, t)).w);
            J[0][k] = us_vec3_dot(dw, x) / (2 * step) - (k == 0) * depth;
            J[1][k] = us_vec3_dot(dw, y) / (2 * step) - (k == 1) * depth;
        }
        double det = J[0][0] * J[1][1] - J[0][1] * J[1][0], tx = J[0][1] * fy - J[1][1] * fx,
               ty = J[1][0] * fx - J[0][0] * fy;
        if (!(fabs(det) > 0) || !(hypot(tx, ty) < 0.1 * fabs(det))) return;
        n = unit_or(us_vec3_add(n, us_vec3_add(us_vec3_scale(tx / det, x), us_vec3_scale(ty / det, y))), n);
        usi_minkowski_point s = usi_convex_pair_support(P->pair, n);
        usi_core_gap next = {-us_vec3_dot(s.w, n), us_vec3_scale(-1, n), s.a, s.b, 0};
        if (next.distance < g->distance - ENOUGH * P->size ||
            !(us_vec3_norm(residual_of(&next)) < us_vec3_norm(residual_of(g))))
            return;
        *g = next;
    }
}

// Near the centre of something like a ball all directions have about the same depth. The line through the two
// points is then as good a normal, and the points stay on the surfaces: its error in depth is the square of
// its error in angle.
static void straighten(const polytope *P, usi_core_gap *g) {
    us_vec3 v = us_vec3_sub(g->a, g->b);
    double length = us_vec3_norm(v);
    if (!(length > 1e-6 * P->size)) return;
    us_vec3 n = us_vec3_scale(1 / length, v);
    double depth = us_vec3_dot(n, usi_convex_pair_support(P->pair, n).w);
    if (depth > 1e-8 * P->size - g->distance) return;
    g->normal = us_vec3_scale(-1, n);
    g->distance = -depth;
}

usi_core_gap usi_epa(const usi_convex_pair *pair, const usi_core_gap *touch) {
    polytope P;
    P.pair = pair;
    P.size = us_vec3_norm(pair->p_AB);
    P.n_corner = P.n_face = 0;
    const double enough = ENOUGH + pair->noise;
    us_vec3 flat;
    if (!find_tetrahedron(&P, &flat)) return flat_gap(pair, flat, touch);
    answer best = {P.face[0], DBL_MAX};
    bool is_converged = false, has_doubt = false;
    while (!is_converged) {
        int nearest = -1;
        for (int i = 0; i < P.n_face; i++)
            if (P.face[i].is_alive && (nearest < 0 || P.face[i].offset < P.face[nearest].offset)) nearest = i;
        if (nearest < 0 || P.face[nearest].offset == DBL_MAX) break;
        polytope_face *f = &P.face[nearest];
        usi_minkowski_point s = usi_convex_pair_support(pair, f->normal);
        double depth = us_vec3_dot(f->normal, s.w);
        P.size = fmax(P.size, us_vec3_norm(s.w));
        if (depth < best.depth) best = (answer){*f, depth};
        is_converged = best.depth - f->offset <= enough * P.size;
        if (is_converged) break;
        if (is_corner(&P, s.w)) {
            // The face claims that one of the polytope's own corners is in front of it: its normal is
            // rounding and says nothing.
            f->offset = DBL_MAX;
            has_doubt = true;
            continue;
        }
        if (P.n_corner == MAX_CORNERS || !expand(&P, &s, nearest)) break;
    }
    if (best.depth == DBL_MAX) return flat_gap(pair, pair->up, touch);
    usi_core_gap g = finish(&P, &best);
    const double loose = 10 * enough * P.size;
    if (!is_converged || has_doubt || us_vec3_norm(residual_of(&g)) > loose) polish(&P, &g);
    if (us_vec3_norm(residual_of(&g)) > loose) newton(&P, &g);
    if (us_vec3_norm(residual_of(&g)) > 1e-6 * P.size) straighten(&P, &g);
    split_residual(&g);
    return g;
}

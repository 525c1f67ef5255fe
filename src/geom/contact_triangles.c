// Contact points of a convex shape on a height field or a mesh: the general method, triangle by triangle.
//
// Only the cells under the shape's box, or the leaves of the tree that meet it, are visited. A surface of
// triangles has three kinds of features, and each touches in its own way:
//
//      face           the shape's flat feature that looks at the face is clipped by the triangle; the normal
//                     is the face's
//      convex edge    the shape rests on a ridge; the normal is between those of the two faces
//      convex corner  a peak pokes into the shape; the normal is in the cone that all edges of the peak leave
//                     free
//
// Flat and concave edges touch nothing themselves: whatever comes near them meets a face first. This is what
// keeps a wheel from catching on the seams of flat ground, for the usual triangle-by-triangle test returns
// sideways normals there.
//
//            n1 \   | n*  / n2    On a ridge the depth along a normal n is s(n) = n . (p(n) - e), p(n) the
//                \  |  /          shape's lowest point along n. The true gap is the greatest s between n1 and
//          _______\_|_/_______    n2, where its derivative f(n) = (u x n) . (p(n) - e) vanishes: where the
//          face 1   e   face 2    lowest point is over the ridge e + u x. f is bracketed by the two faces
//                                 (else one of them is the answer) and the root is found by secants. Where p
//                                 jumps from one corner of the shape to another, the ends of the bracket span
//                                 an edge of the shape, and it is this edge that crosses the ridge.
//
// The method works below the surface as well as above it, with one support point for each step and no search
// for the penetration depth. A deep point that lies nearer to the plane of a neighbour across a sharp convex
// edge belongs to that neighbour: without this rule the side wall of a mesh would push out, sideways, a box
// that has sunk a millimetre into its top. Across blunt edges both faces keep their points, for a wheel needs
// them all.
//
// Limits: of a mesh, at most MESH_TRIANGLES triangles under one shape are visited, in the order of the tree.
// Triangles of a mesh act only on shapes whose middle is on their outer side.
#include "geom/contact_candidates.h"

// Cosine between the normals beside a sharp edge: 45 degrees.
#define SHARP 0.7

enum { MESH_TRIANGLES = 512, TREE_DEPTH = 96, VERTICES_SEEN = 64 };

// Bits of the ids: whose point it is. Faces have none.
enum { OF_RIDGE = 0x1000000, OF_PEAK = 0x2000000, OF_DEPTH = 0x4000000, OF_EDGE = OF_RIDGE | OF_PEAK };

// One triangle of the surface with what lies across its sides. Side k runs from v[k] to v[k + 1].
typedef struct surface_facet {
    us_vec3 v[3], normal;
    double offset;
    uint32_t index;        // of this triangle
    uint32_t vertex[3];    // of the corners
    us_vec3 across[3];     // the far corner of the neighbour; hangs below the edge where there is none
    int64_t neighbour[3];  // index of the neighbour, -1 where there is none
} surface_facet;

// Everything about the shape, in the surface's frame F.
typedef struct surface_query {
    const us_geom *A;
    us_pose X_FA;
    us_mat3 R_FA;
    us_aabb box;  // grown by the margin
    double margin, size, tolerance;
    usi_candidates *c;
    int32_t first;  // of the candidates that belong to this pair
    uint32_t seen[VERTICES_SEEN];
    int32_t n_seen;
} surface_query;

static us_vec3 column(const us_mat3 *R, int k) { return us_vec3_make(R->m[k], R->m[3 + k], R->m[6 + k]); }

// A cylinder or capsule that lies across several faces stands on each with its own part: the ends are looked
// at one by one.
enum { WHOLE, END_MINUS, END_PLUS };

static bool has_ends(const us_geom *g) {
    return (g->kind == US_GEOM_CYLINDER && g->size[1] > 0) || (g->kind == US_GEOM_CAPSULE && g->size[0] > 0);
}

// The lowest point along n of the core, or of one end of it, in F.
static us_vec3 lowest_part(const surface_query *t, us_vec3 n, int part) {
    const us_mat3 *R = &t->R_FA;
    const double *s = t->A->size;
    us_vec3 d = us_vec3_make(-us_vec3_dot(column(R, 0), n), -us_vec3_dot(column(R, 1), n),
                             -us_vec3_dot(column(R, 2), n)),
            p;
    bool is_cylinder = t->A->kind == US_GEOM_CYLINDER;
    if (is_cylinder || part != WHOLE) {
        double flat = sqrt(d.x * d.x + d.y * d.y), r = is_cylinder && flat > 0 ? s[0] / flat : 0,
               half = is_cylinder ? s[1] : s[0];
        p = us_vec3_make(r * d.x, r * d.y, part == END_MINUS || (part == WHOLE && d.z < 0) ? -half : half);
    } else {
        p = usi_core_support(t->A, d);
    }
    return us_vec3_add(t->X_FA.p, us_mat3_mul_vec(R, p));
}
static us_vec3 lowest_point(const surface_query *t, us_vec3 n) { return lowest_part(t, n, WHOLE); }

// Height of the lowest point along n, radius included.
static double lowest(const surface_query *t, us_vec3 n) {
    const us_geom *g = t->A;
    double c = us_vec3_dot(n, t->X_FA.p) - g->radius, z = us_vec3_dot(n, column(&t->R_FA, 2));
    switch (g->kind) {
    case US_GEOM_SPHERE:
        return c;
    case US_GEOM_CAPSULE:
        return c - g->size[0] * fabs(z);
    case US_GEOM_CYLINDER:
        return c - g->size[1] * fabs(z) - g->size[0] * sqrt(fmax(0, 1 - z * z));
    case US_GEOM_BOX:
        return c - g->size[0] * fabs(us_vec3_dot(n, column(&t->R_FA, 0))) -
               g->size[1] * fabs(us_vec3_dot(n, column(&t->R_FA, 1))) - g->size[2] * fabs(z);
    default:
        return us_vec3_dot(n, lowest_point(t, n)) - g->radius;
    }
}

// Adds a point unless there is one at the same place with the same normal, of which the deeper stays.
static void add_point(surface_query *t, us_vec3 n, us_vec3 p_A, us_vec3 p_B, uint64_t id) {
    double gap = us_vec3_dot(n, us_vec3_sub(p_A, p_B));
    if (!(gap <= t->margin)) return;
    for (int32_t i = t->first; i < t->c->n; i++) {
        usi_candidate *q = &t->c->at[i];
        us_vec3 d = us_vec3_sub(q->p_A, p_A), e = us_vec3_sub(q->normal, n);
        if (us_vec3_dot(d, d) > t->tolerance * t->tolerance || us_vec3_dot(e, e) > 1e-6) continue;
        if (gap < q->gap) {
            q->normal = n;
            q->p_A = p_A;
            q->p_B = p_B;
            q->gap = gap;
            q->id = id;
        }
        return;
    }
    usi_candidates_add(t->c, t->margin, n, p_A, p_B, id);
}

static us_vec3 across_normal(const surface_facet *f, int k) {
    us_vec3 a = f->v[k], b = f->v[(k + 1) % 3];
    return usi_vec3_unit(us_vec3_cross(us_vec3_sub(a, b), us_vec3_sub(f->across[k], b)), f->normal);
}

// Points cut off by a ridge that the shape rests on (is_ridden) are left to the ridge, whose normal is the
// better one.
static void touch_face(surface_query *t, const surface_facet *f, us_vec3 p1, const bool is_convex[3],
                       const us_vec3 n2[3], const bool is_ridden[3]) {
    usi_feature A, tri;
    usi_feature_find(t->A, t->X_FA, us_vec3_scale(-1, f->normal), USI_FEATURE_POINTS, &A);
    tri.n = 3;
    tri.id = f->index & 0xffff;
    tri.normal = f->normal;
    for (int k = 0; k < 3; k++)
        tri.p[k] = f->v[k];
    usi_candidates p;
    p.n = 0;
    double least = usi_clip_face(&tri, &A, false, 0, t->margin, &p);
    double low = us_vec3_dot(f->normal, p1) - t->A->radius - f->offset;
    if (least > low + USI_SAME_DEPTH * t->size) {
        // The lowest point itself, where it is over the triangle: a rim, a rounded edge.
        tri.id |= 0x8000;
        A.n = 1;
        A.p[0] = usi_vec3_add_scaled(p1, -t->A->radius, f->normal);
        usi_clip_face(&tri, &A, false, 0, t->margin, &p);
    }
    for (int32_t i = 0; i < p.n; i++) {
        const usi_candidate *q = &p.at[i];
        bool is_others = false;
        uint32_t in = q->id >> 40 & 0xff, out = q->id >> 32 & 0xff;
        for (int k = 0; k < 3; k++) {
            if (is_ridden[k] && (in == 32 + (uint32_t)k || out == 32 + (uint32_t)k)) is_others = true;
            if (!is_convex[k] || f->neighbour[k] < 0 || us_vec3_dot(n2[k], f->normal) > SHARP) continue;
            if (us_vec3_dot(n2[k], us_vec3_sub(q->p_A, f->v[k])) > q->gap + 1e-12 * t->size) is_others = true;
        }
        if (!is_others)
            add_point(t, q->normal, q->p_A, q->p_B,
                      (uint64_t)f->index << 32 | ((q->id >> 32 & 0xffff) << 8 ^ (q->id & 0xffff)));
    }
}

typedef struct ridge_contact {
    us_vec3 e, u, n1, n2;  // the ridge and the normals beside it
    double length;
    us_vec3 p1, p2;  // lowest points along n1 and n2
    double f1, f2;
    int part;
} ridge_contact;

// Does the shape, or a part of it, rest on the ridge rather than on the faces beside it?
// p1 is the part's lowest point along the face's normal.
static bool is_on_ridge(const surface_query *t, const surface_facet *f, int k, us_vec3 n2, int part,
                        us_vec3 p1, ridge_contact *r) {
    us_vec3 edge = us_vec3_sub(f->v[(k + 1) % 3], f->v[k]);
    us_vec3 d1 = us_vec3_sub(p1, f->v[k]);
    // The gap is no less than that along n1 or n2.
    if (!(us_vec3_dot(us_vec3_cross(edge, f->normal), d1) > 0) ||
        us_vec3_dot(f->normal, d1) - t->A->radius > t->margin)
        return false;
    r->length = us_vec3_norm(edge);
    if (!(r->length > 0)) return false;
    r->e = f->v[k];
    r->u = us_vec3_scale(1 / r->length, edge);
    r->n1 = f->normal;
    r->n2 = n2;
    r->part = part;
    r->p1 = p1;
    r->f1 = us_vec3_dot(us_vec3_cross(r->u, r->n1), d1);
    if (!(r->f1 > 0)) return false;
    r->p2 = lowest_part(t, n2, part);
    r->f2 = us_vec3_dot(us_vec3_cross(r->u, n2), us_vec3_sub(r->p2, r->e));
    if (!(r->f2 < 0) || us_vec3_dot(n2, us_vec3_sub(r->p2, r->e)) - t->A->radius > t->margin) return false;
    // Beyond the ridge's ends: p moves from p1 to p2 on an arc that leaves the chord by less than its length;
    // a line may lie along it.
    double a1 = us_vec3_dot(r->u, us_vec3_sub(r->p1, r->e)), a2 = us_vec3_dot(r->u, us_vec3_sub(r->p2, r->e));
    double slack = us_vec3_norm(us_vec3_sub(r->p1, r->p2)) + (part == WHOLE ? 2 * t->size : 0);
    return fmax(a1, a2) + slack >= 0 && fmin(a1, a2) - slack <= r->length;
}

// The normal of the contact on a ridge, and the lowest points at the ends of the bracket around it.
typedef struct ridge_root {
    us_vec3 n, p1, p2;
} ridge_root;

// Finds the normal between those of the two faces at which the lowest point is over the ridge.
static inline ridge_root solve_ridge(const surface_query *t, const ridge_contact *r) {
    us_vec3 e = r->e, u = r->u, n1 = r->n1, n2 = r->n2, p1 = r->p1, p2 = r->p2;
    us_vec3 n = n1;
    double low = 0, high = 1, g1 = r->f1, g2 = r->f2;
    int kept = 0;
    bool is_crossing = false;

    // The lowest point of a cylinder or capsule jumps from one end to the other where the axis is level: both
    // ends are known there.
    double tilt1 = us_vec3_dot(column(&t->R_FA, 2), n1), tilt2 = us_vec3_dot(column(&t->R_FA, 2), n2);
    if (r->part == WHOLE && has_ends(t->A) && (tilt1 > 0) != (tilt2 > 0)) {
        double x = tilt1 / (tilt1 - tilt2);
        n = usi_vec3_unit(usi_vec3_add_scaled(n1, x, us_vec3_sub(n2, n1)), n1);
        us_vec3 a = lowest_part(t, n, tilt1 > 0 ? END_MINUS : END_PLUS),
                b = lowest_part(t, n, tilt1 > 0 ? END_PLUS : END_MINUS);
        double fa = us_vec3_dot(us_vec3_cross(u, n), us_vec3_sub(a, e)),
               fb = us_vec3_dot(us_vec3_cross(u, n), us_vec3_sub(b, e));
        is_crossing = fa > 0 && fb < 0;
        if (fa > 0) {
            p1 = is_crossing ? a : b;
            g1 = is_crossing ? fa : fb;
            low = x;
        }
        if (fa <= 0 || is_crossing) {
            p2 = is_crossing ? b : a;
            g2 = is_crossing ? fb : fa;
            high = x;
        }
    }

    // Secants by the Illinois method: an end that stays twice running counts half. Twelve steps leave 1e-4
    // rad where p jumps, and rounding elsewhere.
    for (int step = 0; step < 40 && !is_crossing; step++) {
        double x = step % 4 == 3 ? 0.5 * (low + high) : low + (high - low) * g1 / (g1 - g2);
        n = usi_vec3_unit(usi_vec3_add_scaled(n1, x, us_vec3_sub(n2, n1)), n1);
        us_vec3 p = lowest_part(t, n, r->part);
        double fx = us_vec3_dot(us_vec3_cross(u, n), us_vec3_sub(p, e));
        if (fx > 0) {
            low = x;
            p1 = p;
            g1 = fx;
            if (kept == 1) g2 *= 0.5;
            kept = 1;
        } else {
            high = x;
            p2 = p;
            g2 = fx;
            if (kept == 2) g1 *= 0.5;
            kept = 2;
        }
        us_vec3 d = us_vec3_sub(p2, p1);
        double jump = us_vec3_dot(d, d);
        if (fabs(fx) < 1e-10 * t->size || jump < 1e-20 * t->size * t->size ||
            (high - low < 1e-3 && jump > 1e-4 * t->size * t->size))
            break;
    }
    return (ridge_root){n, p1, p2};
}

// Adds the contact points of the whole shape on a ridge along the normal n: at the ends of the stretch where
// a line or face of the shape lies along it, else the point p of the shape over the point `on` of the ridge.
static inline void add_on_ridge(surface_query *t, const surface_facet *f, int k, const ridge_contact *r,
                                us_vec3 n, us_vec3 p, us_vec3 on, bool is_within, uint64_t id) {
    usi_feature A, ridge;
    usi_feature_find(t->A, t->X_FA, us_vec3_scale(-1, n), USI_FEATURE_POINTS, &A);
    ridge.n = 2;
    ridge.id = 0;
    ridge.normal = n;
    ridge.p[0] = r->e;
    ridge.p[1] = f->v[(k + 1) % 3];
    usi_candidates q;
    q.n = 0;
    if (A.n == 2) usi_clip_lines(&A, &ridge, n, t->margin, &q);
    // The normal of a face of the shape must leave both faces beside the ridge behind.
    bool is_behind = us_vec3_dot(A.normal, us_vec3_sub(f->across[k], r->e)) >= 0 &&
                     us_vec3_dot(A.normal, us_vec3_sub(f->v[(k + 2) % 3], r->e)) >= 0;
    if (A.n > 2 && is_behind && fabs(us_vec3_dot(A.normal, r->u)) < 0.3)
        usi_clip_face(&A, &ridge, true, 0, t->margin, &q);
    for (int32_t i = 0; i < q.n; i++)
        add_point(t, q.at[i].normal, q.at[i].p_A, q.at[i].p_B, id | (uint64_t)(i + 1));
    if (q.n == 0 && is_within) add_point(t, n, p, on, id);
}

static void touch_ridge(surface_query *t, const surface_facet *f, int k, const ridge_contact *r) {
    us_vec3 e = r->e, u = r->u;
    const ridge_root root = solve_ridge(t, r);
    us_vec3 n = root.n, p1 = root.p1, p2 = root.p2;

    // Where an edge of the shape from p1 to p2 crosses the ridge, the normal is across both.
    us_vec3 d = us_vec3_sub(p2, p1), normal = us_vec3_cross(u, d);
    if (us_vec3_norm(normal) > 1e-3 * t->size) {
        normal = usi_vec3_unit(normal, n);
        if (us_vec3_dot(normal, n) < 0) normal = us_vec3_scale(-1, normal);
        if (us_vec3_dot(normal, n) > 0.9) n = normal;
    }

    // The point of the shape over the ridge, and its foot on it.
    us_vec3 s = us_vec3_cross(u, n);
    double s1 = us_vec3_dot(s, us_vec3_sub(p1, e)), s2 = us_vec3_dot(s, us_vec3_sub(p2, e)), span = s1 - s2;
    double w = span > 0 ? s1 / span : 0.5;
    w = w < 0 ? 0 : (w > 1 ? 1 : w);
    us_vec3 p = usi_vec3_add_scaled(usi_vec3_add_scaled(p1, w, d), -t->A->radius, n);
    double along = us_vec3_dot(u, us_vec3_sub(p, e));
    us_vec3 on = usi_vec3_add_scaled(e, along, u);
    if (!(us_vec3_dot(n, us_vec3_sub(p, on)) <= t->margin)) return;

    uint64_t id = (uint64_t)f->index << 32 | OF_RIDGE | (uint64_t)k << 16 | (uint64_t)r->part << 8;
    bool is_within = along >= 0 && along <= r->length;
    if (r->part == WHOLE)
        add_on_ridge(t, f, k, r, n, p, on, is_within, id);
    else if (is_within)
        add_point(t, n, p, on, id);
}

// The nearest point x of an ellipsoid of half axes e to q is where q - x = t n(x), n the surface's normal,
// not of unit length: x_i = e_i^2 q_i / (t + e_i^2). So t is the largest root of F(t) = sum (e_i q_i / (t +
// e_i^2))^2 - 1, which falls and is convex: Newton's method from the left of it ends there. False near the
// middle, where there is no such root.
static bool ellipsoid_distance(const double e[3], us_vec3 q, double *out_distance, us_vec3 *out_outward) {
    const double y[3] = {q.x, q.y, q.z}, least = fmin(e[0], fmin(e[1], e[2]));
    double t = -INFINITY, n[3], square = 0;
    for (int i = 0; i < 3; i++)
        t = fmax(t, e[i] * (fabs(y[i]) - e[i]));
    if (!(t > (1e-6 - 1) * least * least)) return false;
    for (int step = 0; step < 50; step++) {
        double f = -1, slope = 0;
        square = 0;
        for (int i = 0; i < 3; i++) {
            n[i] = y[i] / (t + e[i] * e[i]);
            double part = e[i] * e[i] * n[i] * n[i];
            f += part;
            slope += 2 * part / (t + e[i] * e[i]);
            square += n[i] * n[i];
        }
        // The first steps may be long, the last ones change nothing.
        if (!(f > 1e-15)) break;
        t += f / slope;
    }
    double length = sqrt(square);
    *out_distance = t * length;
    *out_outward = us_vec3_make(n[0] / length, n[1] / length, n[2] / length);
    return true;
}

// Where a point is as seen by the shape: signed distance, and the outward normal of the surface next to it.
static double point_distance(const surface_query *t, us_vec3 v, us_vec3 *out_outward) {
    const us_geom *g = t->A;
    const us_mat3 *R = &t->R_FA;
    us_vec3 q_F = us_vec3_sub(v, t->X_FA.p);
    us_vec3 q = us_vec3_make(us_vec3_dot(column(R, 0), q_F), us_vec3_dot(column(R, 1), q_F),
                             us_vec3_dot(column(R, 2), q_F)),
            o = q;
    double distance;
    if (g->kind == US_GEOM_SPHERE || g->kind == US_GEOM_CAPSULE) {
        double half = g->kind == US_GEOM_CAPSULE ? g->size[0] : 0;
        o.z -= o.z > half ? half : (o.z < -half ? -half : o.z);
        distance = us_vec3_norm(o);
        o = distance > 0 ? us_vec3_scale(1 / distance, o) : us_vec3_make(1, 0, 0);
    } else if (g->kind == US_GEOM_CYLINDER) {
        double rho = sqrt(q.x * q.x + q.y * q.y), out = rho - g->size[0], end = fabs(q.z) - g->size[1],
               up = q.z < 0 ? -1 : 1;
        us_vec3 radial = rho > 0 ? us_vec3_make(q.x / rho, q.y / rho, 0) : us_vec3_make(1, 0, 0);
        if (out > 0 && end > 0) {
            distance = sqrt(out * out + end * end);
            o = us_vec3_make(radial.x * out / distance, radial.y * out / distance, up * end / distance);
        } else if (out > end) {
            distance = out;
            o = radial;
        } else {
            distance = end;
            o = us_vec3_make(0, 0, up);
        }
    } else if (g->kind != US_GEOM_ELLIPSOID || !ellipsoid_distance(g->size, q, &distance, &o)) {
        us_geom point = {.kind = US_GEOM_SPHERE};
        us_pose X = us_pose_identity();
        X.p = v;
        us_gap gap = usi_convex_gap(t->A, t->X_FA, &point, X);
        *out_outward = us_vec3_scale(-1, gap.normal);
        return gap.distance;
    }
    *out_outward = us_mat3_mul_vec(R, o);
    return distance - g->radius;
}

// Is the corner near the shape, and new?
static bool is_peak_near(surface_query *t, us_vec3 v, uint32_t index, double *out_distance,
                         us_vec3 *out_outward) {
    if (v.x < t->box.min.x || v.x > t->box.max.x || v.y < t->box.min.y || v.y > t->box.max.y ||
        v.z < t->box.min.z)
        return false;
    for (int32_t i = 0; i < t->n_seen; i++) {
        if (t->seen[i] == index) return false;
    }
    if (t->n_seen < VERTICES_SEEN) t->seen[t->n_seen++] = index;
    us_geom_kind kind = t->A->kind;
    if (kind == US_GEOM_SPHERE || kind == US_GEOM_CAPSULE || kind == US_GEOM_CYLINDER) {
        *out_distance = point_distance(t, v, out_outward);
        return *out_distance <= t->margin;
    }
    *out_distance = NAN;
    return true;
}

// `rim` are the n corners at the far ends of the edges that leave the corner; distance and outward are of
// is_peak_near.
static void touch_peak(surface_query *t, us_vec3 v, uint32_t index, us_vec3 face_normal, double distance,
                       us_vec3 outward, const us_vec3 *rim, int32_t n) {
    uint64_t id = (uint64_t)index << 32 | OF_PEAK;
    // A flat face of the shape above the peak speaks first: its normal holds wherever the peak is under it.
    usi_feature A, peak;
    usi_feature_find(t->A, t->X_FA, us_vec3_scale(-1, face_normal), USI_FEATURE_POINTS, &A);
    us_vec3 normal = us_vec3_scale(-1, A.normal);
    bool is_flat = A.n > 2;
    if (!is_flat) {
        // Along the line from the shape's middle most are seen to be out of reach.
        us_vec3 away = usi_vec3_unit(us_vec3_sub(t->X_FA.p, v), face_normal);
        if (isnan(distance) && lowest(t, away) - us_vec3_dot(away, v) > t->margin + 1e-9 * t->size) return;
        if (isnan(distance)) distance = point_distance(t, v, &outward);
        if (!(distance <= t->margin)) return;
        normal = us_vec3_scale(-1, outward);
    }
    for (int32_t i = 0; i < n; i++) {
        if (us_vec3_dot(normal, us_vec3_sub(rim[i], v)) > 0) return;
    }
    if (!is_flat) {
        add_point(t, normal, usi_vec3_add_scaled(v, distance, normal), v, id);
        return;
    }
    peak.n = 1;
    peak.id = 0;
    peak.normal = normal;
    peak.p[0] = v;
    usi_candidates q;
    q.n = 0;
    usi_clip_face(&A, &peak, true, 0, t->margin, &q);
    if (q.n > 0) add_point(t, normal, q.at[0].p_A, q.at[0].p_B, id);
}

// A face and its convex sides. Each ridge is done by the lower of its two triangles.
static void touch_facet(surface_query *t, const surface_facet *f) {
    usi_candidates_make_room(t->c);
    bool is_convex[3];
    us_vec3 n2[3];
    for (int k = 0; k < 3; k++) {
        // Ridges flatter than 1e-6 are flat.
        us_vec3 d = us_vec3_sub(f->across[k], f->v[k]);
        is_convex[k] = us_vec3_dot(f->normal, d) < -1e-6 * us_vec3_norm(d);
        if (is_convex[k]) n2[k] = across_normal(f, k);
    }
    bool is_long = has_ends(t->A);
    bool is_ridden[3] = {false, false, false};
    us_vec3 axis = column(&t->R_FA, 2), p1[3];
    bool is_low_1 = -us_vec3_dot(axis, f->normal) < 0;
    if (is_long) {
        p1[END_MINUS] = lowest_part(t, f->normal, END_MINUS);
        p1[END_PLUS] =
            usi_vec3_add_scaled(p1[END_MINUS], 2 * t->A->size[t->A->kind == US_GEOM_CYLINDER], axis);
        p1[WHOLE] = p1[is_low_1 ? END_MINUS : END_PLUS];
    } else {
        p1[WHOLE] = lowest_point(t, f->normal);
    }
    for (int k = 0; k < 3; k++) {
        bool is_mine = f->neighbour[k] < 0 || f->neighbour[k] > (int64_t)f->index;
        // An end that is the lowest along both normals has been done with the whole.
        bool is_low_2 = is_convex[k] && -us_vec3_dot(axis, n2[k]) < 0;
        int done = is_low_1 != is_low_2 ? WHOLE : (is_low_1 ? END_MINUS : END_PLUS);
        for (int part = WHOLE; is_convex[k] && part <= (is_long && is_mine ? END_PLUS : WHOLE); part++) {
            if (part == done && part != WHOLE) continue;
            ridge_contact r;
            if (!is_on_ridge(t, f, k, n2[k], part, p1[part], &r)) continue;
            if (part == WHOLE) is_ridden[k] = true;
            if (is_mine) touch_ridge(t, f, k, &r);
        }
    }
    touch_face(t, f, p1[WHOLE], is_convex, n2, is_ridden);
}

static void begin(surface_query *t, const us_geom *A, us_pose X_WA, us_pose X_WB, double margin,
                  usi_candidates *c) {
    t->A = A;
    t->X_FA = us_pose_mul(us_pose_inverse(X_WB), X_WA);
    t->R_FA = us_quat_matrix(t->X_FA.q);
    t->margin = margin;
    t->size = usi_geom_extent(A);
    t->tolerance = USI_CLIP_TOLERANCE * t->size;
    t->c = c;
    t->first = c->n;
    t->n_seen = 0;
    t->box = us_geom_box(A, t->X_FA);
    us_vec3 grow = us_vec3_make(margin, margin, margin);
    t->box.min = us_vec3_sub(t->box.min, grow);
    t->box.max = us_vec3_add(t->box.max, grow);
}

// Where a ridge or a peak touches, the faces that end there say the same with a worse normal.
static void drop_face_points(surface_query *t) {
    usi_candidate *p = t->c->at;
    int32_t n = t->first;
    for (int32_t i = t->first; i < t->c->n; i++) {
        bool is_double = false;
        for (int32_t j = t->first; j < t->c->n && !(p[i].id & OF_EDGE); j++) {
            us_vec3 d = us_vec3_sub(p[i].p_B, p[j].p_B);
            is_double |= (p[j].id & OF_EDGE) && us_vec3_dot(d, d) < t->tolerance * t->tolerance;
        }
        p[i].gap = is_double ? INFINITY : p[i].gap;
    }
    for (int32_t i = t->first; i < t->c->n; i++) {
        if (p[i].gap < INFINITY) p[n++] = p[i];
    }
    t->c->n = n;
}

// From the surface's frame to W; the surface's radius is put on.
static void end(surface_query *t, us_pose X_WB, double radius) {
    drop_face_points(t);
    us_mat3 R = us_quat_matrix(X_WB.q);
    for (int32_t i = t->first; i < t->c->n; i++) {
        usi_candidate *p = &t->c->at[i];
        p->p_B = usi_vec3_add_scaled(p->p_B, radius, p->normal);
        p->gap -= radius;
        p->normal = us_mat3_mul_vec(&R, p->normal);
        p->p_A = us_vec3_add(X_WB.p, us_mat3_mul_vec(&R, p->p_A));
        p->p_B = us_vec3_add(X_WB.p, us_mat3_mul_vec(&R, p->p_B));
    }
}

// ---- Height field ----

static bool field_corner(const us_height_field *f, int32_t i, int32_t j, us_vec3 *out) {
    if (i < 0 || j < 0 || i >= f->n_x || j >= f->n_y) return false;
    *out = usi_field_point(f, i, j);
    return true;
}

static int64_t field_index(const us_height_field *f, int32_t i, int32_t j, int k) {
    return ((int64_t)j * (f->n_x - 1) + i) * 2 + k;
}

static void field_facet(const us_height_field *f, int32_t i, int32_t j, int k, surface_facet *t) {
    // Corners as steps from (i, j); neighbours over the sides: their far corner, their cell and which half.
    static const int corner[2][3][2] = {{{0, 0}, {1, 0}, {1, 1}}, {{0, 0}, {1, 1}, {0, 1}}};
    static const int far_corner[2][3][2] = {{{0, -1}, {2, 1}, {0, 1}}, {{1, 0}, {1, 2}, {-1, 0}}};
    static const int cell[2][3][2] = {{{0, -1}, {1, 0}, {0, 0}}, {{0, 0}, {0, 1}, {-1, 0}}};
    t->index = (uint32_t)field_index(f, i, j, k);
    for (int s = 0; s < 3; s++) {
        int32_t a = i + corner[k][s][0], b = j + corner[k][s][1];
        t->v[s] = usi_field_point(f, a, b);
        t->vertex[s] = (uint32_t)b * (uint32_t)f->n_x + (uint32_t)a;
    }
    us_vec3 n = us_vec3_cross(us_vec3_sub(t->v[1], t->v[0]), us_vec3_sub(t->v[2], t->v[0]));
    t->normal = usi_vec3_unit(n, us_vec3_make(0, 0, 1));
    t->offset = us_vec3_dot(t->normal, t->v[0]);
    for (int s = 0; s < 3; s++) {
        int32_t a = i + cell[k][s][0], b = j + cell[k][s][1];
        if (a < 0 || b < 0 || a >= f->n_x - 1 || b >= f->n_y - 1) {
            t->neighbour[s] = -1;
            t->across[s] = t->v[s];
            t->across[s].z -= f->dx + f->dy;
        } else {
            t->neighbour[s] = field_index(f, a, b, 1 - k);
            t->across[s] = usi_field_point(f, i + far_corner[k][s][0], j + far_corner[k][s][1]);
        }
    }
}

// Is the shape apart from everything in the column between two corners and below z = top? One direction is
// tried: from the column's nearest point to the shape's middle.
static bool is_column_apart(const surface_query *t, us_vec3 middle, double x0, double y0, double x1,
                            double y1, double top) {
    us_vec3 q = us_vec3_make(fmin(fmax(middle.x, x0), x1), fmin(fmax(middle.y, y0), y1), fmin(middle.z, top)),
            v = us_vec3_sub(middle, q);
    double length = us_vec3_norm(v);
    if (!(length > 1e-6 * t->size)) return false;
    v = us_vec3_scale(1 / length, v);
    return lowest(t, v) - us_vec3_dot(v, q) > t->margin;
}

// The same for one triangle: from its nearest point to the shape's middle.
static bool is_triangle_apart(const surface_query *t, us_vec3 middle, const us_vec3 v[3], us_vec3 n) {
    double height = us_vec3_dot(n, us_vec3_sub(middle, v[0])), best = INFINITY;
    if (!(height > 0)) return false;
    us_vec3 foot = usi_vec3_add_scaled(middle, -height, n), q = foot;
    for (int k = 0; k < 3; k++) {
        us_vec3 a = v[k], e = us_vec3_sub(v[k < 2 ? k + 1 : 0], a), d = us_vec3_sub(foot, a);
        if (us_vec3_dot(us_vec3_cross(e, n), d) <= 0) continue;
        double s = us_vec3_dot(e, d) / us_vec3_dot(e, e);
        us_vec3 p = usi_vec3_add_scaled(a, s < 0 ? 0 : (s > 1 ? 1 : s), e);
        d = us_vec3_sub(foot, p);
        double far = us_vec3_dot(d, d);
        if (far < best) {
            best = far;
            q = p;
        }
    }
    if (best == INFINITY) return false;  // the plane has been tried
    us_vec3 w = us_vec3_sub(middle, q);
    w = us_vec3_scale(1 / us_vec3_norm(w), w);
    return lowest(t, w) - us_vec3_dot(w, q) > t->margin;
}

// Whether no normal leaves all six edges of a corner behind: it is a saddle, higher than its neighbours along
// one line of the grid and lower along another. `rim` has the neighbours in turn, so that opposite ones are
// three apart.
static bool is_saddle(const us_height_field *f, us_vec3 v, const us_vec3 rim[6]) {
    double least = 1e-9 * (f->dx + f->dy);
    bool is_above = false, is_below = false;
    for (int k = 0; k < 3; k++) {
        double rise = rim[k].z + rim[k + 3].z - 2 * v.z;
        is_above |= rise < -least;
        is_below |= rise > least;
    }
    return is_above && is_below;
}

static int32_t clamp_cell(double x, int32_t n) { return x < 0 ? 0 : (x > n - 2 ? n - 2 : (int32_t)x); }

// The corners of a triangle as peaks in the shape.
static inline void touch_field_peaks(surface_query *t, const us_height_field *f, const surface_facet *face) {
    static const int step[6][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 0}, {-1, -1}, {0, -1}};
    for (int s = 0; s < 3; s++) {
        us_vec3 rim[6], outward = face->normal;
        double distance;
        if (!is_peak_near(t, face->v[s], face->vertex[s], &distance, &outward)) continue;
        int32_t m = 0, a = (int32_t)(face->vertex[s] % (uint32_t)f->n_x),
                b = (int32_t)(face->vertex[s] / (uint32_t)f->n_x);
        for (int r = 0; r < 6; r++)
            m += field_corner(f, a + step[r][0], b + step[r][1], &rim[m]);
        if (m == 6 && is_saddle(f, face->v[s], rim)) continue;
        touch_peak(t, face->v[s], face->vertex[s], face->normal, distance, outward, rim, m);
    }
}

// Contact of a shape far below the surface, where no foot may be in its own triangle: the triangle above the
// shape's middle lifts it.
static inline void lift_from_below(surface_query *t, const us_height_field *f) {
    double x = t->X_FA.p.x / f->dx + 0.5 * (f->n_x - 1), y = t->X_FA.p.y / f->dy + 0.5 * (f->n_y - 1);
    if (!(x >= 0 && y >= 0 && x <= f->n_x - 1 && y <= f->n_y - 1)) return;
    int32_t i = clamp_cell(x, f->n_x), j = clamp_cell(y, f->n_y);
    surface_facet face;
    field_facet(f, i, j, y - j > x - i, &face);
    us_vec3 p = usi_vec3_add_scaled(lowest_point(t, face.normal), -t->A->radius, face.normal);
    double gap = us_vec3_dot(face.normal, p) - face.offset;
    if (us_vec3_dot(face.normal, t->X_FA.p) < face.offset) {
        usi_candidates_add(t->c, t->margin, face.normal, p, usi_vec3_add_scaled(p, -gap, face.normal),
                           (uint64_t)face.index << 32 | OF_DEPTH);
    }
}

void usi_contact_field(const us_geom *A, us_pose X_WA, const us_height_field *f, double radius, us_pose X_WB,
                       double margin, usi_candidates *c) {
    surface_query t;
    begin(&t, A, X_WA, X_WB, margin + radius, c);
    double half_x = 0.5 * (f->n_x - 1), half_y = 0.5 * (f->n_y - 1);
    double x0 = t.box.min.x / f->dx + half_x, x1 = t.box.max.x / f->dx + half_x,
           y0 = t.box.min.y / f->dy + half_y, y1 = t.box.max.y / f->dy + half_y;
    if (!(x1 >= 0 && y1 >= 0 && x0 <= f->n_x - 1 && y0 <= f->n_y - 1 && t.box.min.z <= f->high)) return;
    us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(t.box.min, t.box.max));
    int32_t i0 = clamp_cell(x0, f->n_x), i1 = clamp_cell(x1, f->n_x), j0 = clamp_cell(y0, f->n_y),
            j1 = clamp_cell(y1, f->n_y);
    for (int32_t j = j0; j <= j1; j++) {
        const double *row = f->height + (size_t)j * (size_t)f->n_x, *next = row + f->n_x;
        for (int32_t i = i0; i <= i1; i++) {
            double h00 = row[i], h10 = row[i + 1], h01 = next[i], h11 = next[i + 1], low = t.box.min.z;
            double top = fmax(fmax(h00, h10), fmax(h01, h11)), x = (i - half_x) * f->dx,
                   y = (j - half_y) * f->dy;
            if (top < low || is_column_apart(&t, middle, x, y, x + f->dx, y + f->dy, top)) continue;
            for (int k = 0; k < 2; k++) {
                // The plane first: most triangles are out of reach.
                us_vec3 n = k == 0 ? us_vec3_make((h00 - h10) * f->dy, (h10 - h11) * f->dx, f->dx * f->dy)
                                   : us_vec3_make((h01 - h11) * f->dy, (h00 - h01) * f->dx, f->dx * f->dy);
                n = us_vec3_scale(1 / us_vec3_norm(n), n);
                us_vec3 corner = us_vec3_make(x, y, h00);
                if (lowest(&t, n) - us_vec3_dot(n, corner) > t.margin) continue;
                us_vec3 v[3] = {corner, us_vec3_make(x + f->dx, y + (k ? f->dy : 0), k ? h11 : h10),
                                us_vec3_make(x + (k ? 0 : f->dx), y + f->dy, k ? h01 : h11)};
                if (is_triangle_apart(&t, middle, v, n)) continue;
                surface_facet face;
                field_facet(f, i, j, k, &face);
                touch_facet(&t, &face);
                touch_field_peaks(&t, f, &face);
            }
        }
    }
    if (c->n == t.first) lift_from_below(&t, f);
    end(&t, X_WB, radius);
}

// ---- Mesh ----

static void mesh_facet(const us_mesh *m, const int32_t *list, int32_t n, int32_t index, surface_facet *f) {
    const int32_t *v = m->triangle[index];
    f->index = (uint32_t)index;
    for (int k = 0; k < 3; k++) {
        f->v[k] = m->vertex[v[k]];
        f->vertex[k] = (uint32_t)v[k];
    }
    f->normal = usi_vec3_unit(us_vec3_cross(us_vec3_sub(f->v[1], f->v[0]), us_vec3_sub(f->v[2], f->v[0])),
                              us_vec3_make(0, 0, 0));
    f->offset = us_vec3_dot(f->normal, f->v[0]);
    for (int k = 0; k < 3; k++) {
        int32_t a = v[k], b = v[(k + 1) % 3];
        f->neighbour[k] = -1;
        f->across[k] =
            usi_vec3_add_scaled(f->v[k], -us_vec3_norm(us_vec3_sub(f->v[(k + 1) % 3], f->v[k])), f->normal);
        for (int32_t i = 0; i < n && f->neighbour[k] < 0; i++) {
            const int32_t *w = m->triangle[list[i]];
            for (int s = 0; s < 3 && list[i] != index; s++) {
                if (w[s] == b && w[(s + 1) % 3] == a) {
                    f->neighbour[k] = list[i];
                    f->across[k] = m->vertex[w[(s + 2) % 3]];
                }
            }
        }
    }
}

void usi_contact_mesh(const us_geom *A, us_pose X_WA, const us_mesh *m, double radius, us_pose X_WB,
                      double margin, usi_candidates *c) {
    surface_query t;
    begin(&t, A, X_WA, X_WB, margin + radius, c);
    int32_t list[MESH_TRIANGLES], stack[TREE_DEPTH], n = 0, depth = 0;
    if (m->n_node > 0) stack[depth++] = 0;
    while (depth > 0) {
        const usi_bvh_node *node = &m->node[stack[--depth]];
        if (node->min.x > t.box.max.x || node->max.x < t.box.min.x || node->min.y > t.box.max.y ||
            node->max.y < t.box.min.y || node->min.z > t.box.max.z || node->max.z < t.box.min.z) {
            continue;
        }
        if (node->count > 0) {
            for (int32_t i = 0; i < node->count && n < MESH_TRIANGLES; i++)
                list[n++] = m->order[node->first + i];
        } else if (depth + 2 <= TREE_DEPTH) {
            stack[depth++] = node->first + 1;
            stack[depth++] = node->first;
        }
    }
    us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(t.box.min, t.box.max));
    for (int32_t i = 0; i < n; i++) {
        surface_facet face;
        const int32_t *v = m->triangle[list[i]];
        us_vec3 a = m->vertex[v[0]];
        us_vec3 normal =
            usi_vec3_unit(us_vec3_cross(us_vec3_sub(m->vertex[v[1]], a), us_vec3_sub(m->vertex[v[2]], a)),
                          us_vec3_make(0, 0, 0));
        double offset = us_vec3_dot(normal, a);
        if (us_vec3_dot(normal, normal) == 0 || us_vec3_dot(normal, middle) < offset ||
            lowest(&t, normal) - offset > t.margin)
            continue;
        mesh_facet(m, list, n, list[i], &face);
        touch_facet(&t, &face);
        for (int s = 0; s < 3; s++) {
            us_vec3 rim[32], outward = face.normal;
            double distance;
            if (!is_peak_near(&t, face.v[s], face.vertex[s], &distance, &outward)) continue;
            int32_t r = 0;
            for (int32_t k = 0; k < n && r + 2 <= 32; k++) {
                const int32_t *w = m->triangle[list[k]];
                for (int q = 0; q < 3; q++) {
                    if (w[q] == v[s]) {
                        rim[r++] = m->vertex[w[(q + 1) % 3]];
                        rim[r++] = m->vertex[w[(q + 2) % 3]];
                    }
                }
            }
            touch_peak(&t, face.v[s], face.vertex[s], face.normal, distance, outward, rim, r);
        }
    }
    end(&t, X_WB, radius);
}

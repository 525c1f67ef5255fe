// Contact of a convex shape with a ridge of a surface of triangles; the mathematics stands in
// contact_triangles.c.
#include "geom/geom__triangles.h"

bool usi_is_on_ridge(const usi_surface_query *t, const usi_facet *f, int k, us_vec3 n2, int part, us_vec3 p1,
                     usi_ridge *r) {
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
    r->p2 = usi_lowest_part(t, n2, part);
    r->f2 = us_vec3_dot(us_vec3_cross(r->u, n2), us_vec3_sub(r->p2, r->e));
    if (!(r->f2 < 0) || us_vec3_dot(n2, us_vec3_sub(r->p2, r->e)) - t->A->radius > t->margin) return false;
    // Beyond the ridge's ends: p moves from p1 to p2 on an arc that leaves the chord by less than its length;
    // a line may lie along it.
    double a1 = us_vec3_dot(r->u, us_vec3_sub(r->p1, r->e)), a2 = us_vec3_dot(r->u, us_vec3_sub(r->p2, r->e));
    double slack = us_vec3_norm(us_vec3_sub(r->p1, r->p2)) + (part == USI_WHOLE ? 2 * t->size : 0);
    return fmax(a1, a2) + slack >= 0 && fmin(a1, a2) - slack <= r->length;
}

// The normal of the contact on a ridge, and the lowest points at the ends of the bracket around it.
typedef struct ridge_root {
    us_vec3 n, p1, p2;
} ridge_root;

// Finds the normal between those of the two faces at which the lowest point is over the ridge.
static inline ridge_root solve_ridge(const usi_surface_query *t, const usi_ridge *r) {
    us_vec3 e = r->e, u = r->u, n1 = r->n1, n2 = r->n2, p1 = r->p1, p2 = r->p2;
    us_vec3 n = n1;
    double low = 0, high = 1, g1 = r->f1, g2 = r->f2;
    int kept = 0;
    bool is_crossing = false;

    // The lowest point of a cylinder or capsule jumps from one end to the other where the axis is level: both
    // ends are known there.
    double tilt1 = us_vec3_dot(usi_column(&t->R_FA, 2), n1), tilt2 = us_vec3_dot(usi_column(&t->R_FA, 2), n2);
    if (r->part == USI_WHOLE && usi_has_ends(t->A) && (tilt1 > 0) != (tilt2 > 0)) {
        double x = tilt1 / (tilt1 - tilt2);
        n = usi_vec3_unit(usi_vec3_add_scaled(n1, x, us_vec3_sub(n2, n1)), n1);
        us_vec3 a = usi_lowest_part(t, n, tilt1 > 0 ? USI_END_MINUS : USI_END_PLUS),
                b = usi_lowest_part(t, n, tilt1 > 0 ? USI_END_PLUS : USI_END_MINUS);
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
        us_vec3 p = usi_lowest_part(t, n, r->part);
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
static inline void add_on_ridge(usi_surface_query *t, const usi_facet *f, int k, const usi_ridge *r,
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
    // The normal of a face of the shape must leave both faces beside the ridge behind, within rounding: one
    // of them may lie on it.
    const double least = -1e-9 * t->size;
    bool is_behind = us_vec3_dot(A.normal, us_vec3_sub(f->across[k], r->e)) >= least &&
                     us_vec3_dot(A.normal, us_vec3_sub(f->v[(k + 2) % 3], r->e)) >= least;
    if (A.n > 2 && is_behind && fabs(us_vec3_dot(A.normal, r->u)) < 0.3)
        usi_clip_face(&A, &ridge, true, 0, t->margin, &q);
    for (int32_t i = 0; i < q.n; i++)
        usi_surface_add(t, q.at[i].normal, q.at[i].p_A, q.at[i].p_B, id | (uint64_t)(i + 1));
    if (q.n == 0 && is_within) usi_surface_add(t, n, p, on, id);
}

void usi_collide_ridge(usi_surface_query *t, const usi_facet *f, int k, const usi_ridge *r) {
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

    uint64_t id =
        (uint64_t)f->index << 32 | USI_SURFACE_ID_RIDGE | (uint64_t)k << 16 | (uint64_t)r->part << 8;
    bool is_within = along >= 0 && along <= r->length;
    if (r->part == USI_WHOLE)
        add_on_ridge(t, f, k, r, n, p, on, is_within, id);
    else if (is_within)
        usi_surface_add(t, n, p, on, id);
}

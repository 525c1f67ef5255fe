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
//                \  |  /          shape's lowest point along n. The true gap is the max of s between n1 and
//          _______\_|_/_______    n2, where its derivative f(n) = (u x n) . (p(n) - e) vanishes: where the
//          face 1   e   face 2    lowest point is over the ridge e + u x. f is bracketed by the two faces
//                                 (else one of them is the answer) and the root is found by secants. Where p
//                                 jumps from one corner of the shape to another, the ends of the bracket span
//                                 an edge of the shape, and it is this edge that crosses the ridge.
//
// The method works below the surface as well as above it, with one support point for each step and no search
// for the penetration depth. A deep point that lies nearer to the plane of a neighbour across a sharp convex
// edge belongs to that neighbour: without this rule a box that penetrates the top of a mesh by a millimetre
// would get a sideways force from its side wall. Across blunt edges both faces keep their points, for a wheel
// needs them all.
//
// Where the surface goes on flat beyond a side, the points that the side cuts off are in the middle of the
// patch and are left out: a box on a flat surface of any number of triangles has its four corners.
//
// There is no limit to the triangles under a shape. After USI_PLAIN_TRIANGLES of them, parts of the surface
// that cannot add to the support of the patch (contact_support.c) are left out.
//
// Faces of a mesh act only on shapes whose middle is on their outer side.
#include "geom/geom__triangles.h"

// Cosine between the normals beside a sharp edge: 45 degrees.
#define SHARP_COSINE 0.7

// ---- Query ----

// A point inside the shape. The origin is one but for shapes that are given by their corners.
static us_vec3 inner_point(const us_geom *g) {
    const us_vec3 *p = g->point;
    switch (g->kind) {
    case US_GEOM_TRIANGLE:
        return us_vec3_scale(1.0 / 3, us_vec3_add(p[0], us_vec3_add(p[1], p[2])));
    case US_GEOM_TETRAHEDRON:
        return us_vec3_scale(0.25, us_vec3_add(us_vec3_add(p[0], p[1]), us_vec3_add(p[2], p[3])));
    case US_GEOM_CONVEX:
        return g->hull->middle;
    default:
        return us_vec3_make(0, 0, 0);
    }
}

void usi_surface_begin(usi_surface_query *t, const us_geom *A, us_pose X_WA, us_pose X_WB, double margin,
                       usi_candidates *c) {
    t->A = A;
    t->X_FA = us_pose_mul(us_pose_inverse(X_WB), X_WA);
    t->R_FA = us_quat_matrix(t->X_FA.q);
    t->margin = margin;
    t->size = usi_geom_extent(A);
    t->tolerance = USI_CLIP_TOLERANCE * t->size;
    t->c = c;
    t->first = c->n;
    for (int k = 0; k < USI_SEEN_VERTICES; k++)
        t->seen[k] = 0;
    t->has_feature = t->is_one_sided = t->is_pruned = false;
    t->n_visited = 0;
    t->box = us_geom_box(A, t->X_FA);
    us_vec3 grow = us_vec3_make(margin, margin, margin);
    t->box.min = us_vec3_sub(t->box.min, grow);
    t->box.max = us_vec3_add(t->box.max, grow);
    t->middle = us_pose_point(t->X_FA, inner_point(A));
}

// Points of faces at the position of a ridge or a peak have a worse normal than that: they are dropped.
static void drop_face_points(usi_surface_query *t) {
    usi_candidate *p = t->c->at;
    int32_t n = t->first;
    for (int32_t i = t->first; i < t->c->n; i++) {
        bool is_double = false;
        for (int32_t j = t->first; j < t->c->n && !(p[i].id & USI_SURFACE_ID_EDGE); j++) {
            us_vec3 d = us_vec3_sub(p[i].p_B, p[j].p_B);
            is_double |= (p[j].id & USI_SURFACE_ID_EDGE) && us_vec3_dot(d, d) < t->tolerance * t->tolerance;
        }
        p[i].gap = is_double ? INFINITY : p[i].gap;
    }
    for (int32_t i = t->first; i < t->c->n; i++) {
        if (p[i].gap < INFINITY) p[n++] = p[i];
    }
    t->c->n = n;
}

void usi_surface_end(usi_surface_query *t, us_pose X_WB, double radius) {
    drop_face_points(t);
    usi_surface_reduce(t);
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

// ---- Lowest points ----

us_vec3 usi_lowest_part(const usi_surface_query *t, us_vec3 n, int part) {
    const us_mat3 *R = &t->R_FA;
    const double *s = t->A->size;
    us_vec3 d = us_vec3_make(-us_vec3_dot(usi_column(R, 0), n), -us_vec3_dot(usi_column(R, 1), n),
                             -us_vec3_dot(usi_column(R, 2), n)),
            p;
    bool is_cylinder = t->A->kind == US_GEOM_CYLINDER;
    if (is_cylinder || part != USI_WHOLE) {
        double flat = sqrt(d.x * d.x + d.y * d.y), r = is_cylinder && flat > 0 ? s[0] / flat : 0,
               half = is_cylinder ? s[1] : s[0];
        p = us_vec3_make(r * d.x, r * d.y,
                         part == USI_END_MINUS || (part == USI_WHOLE && d.z < 0) ? -half : half);
    } else {
        p = usi_core_support(t->A, d);
    }
    return us_vec3_add(t->X_FA.p, us_mat3_mul_vec(R, p));
}

double usi_lowest_height(const usi_surface_query *t, us_vec3 n) {
    const us_geom *g = t->A;
    double c = us_vec3_dot(n, t->X_FA.p) - g->radius, z = us_vec3_dot(n, usi_column(&t->R_FA, 2));
    switch (g->kind) {
    case US_GEOM_SPHERE:
        return c;
    case US_GEOM_CAPSULE:
        return c - g->size[0] * fabs(z);
    case US_GEOM_CYLINDER:
        return c - g->size[1] * fabs(z) - g->size[0] * sqrt(fmax(0, 1 - z * z));
    case US_GEOM_BOX:
        return c - g->size[0] * fabs(us_vec3_dot(n, usi_column(&t->R_FA, 0))) -
               g->size[1] * fabs(us_vec3_dot(n, usi_column(&t->R_FA, 1))) - g->size[2] * fabs(z);
    default:
        return us_vec3_dot(n, usi_lowest_point(t, n)) - g->radius;
    }
}

void usi_surface_add(usi_surface_query *t, us_vec3 n, us_vec3 p_A, us_vec3 p_B, uint64_t id) {
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
    if (t->c->n == USI_CANDIDATES) usi_candidates_make_room(t->c, t->first);
    usi_candidates_add(t->c, t->margin, n, p_A, p_B, id);
    if (t->is_pruned) usi_support_add(&t->support, n, p_B, gap);
}

// ---- Faces ----

static us_vec3 across_normal(const usi_facet *f, int k) {
    us_vec3 a = f->v[k], b = f->v[(k + 1) % 3];
    return usi_vec3_unit(us_vec3_cross(us_vec3_sub(a, b), us_vec3_sub(f->across[k], b)), f->normal);
}

// Whether a point is that of a corner of the triangle which is a peak, whose normal is the better one.
static bool is_of_peak(const usi_facet *f, const usi_candidate *q) {
    const uint32_t in = (uint32_t)(q->id >> 40 & 0xff) - 32, out = (uint32_t)(q->id >> 32 & 0xff) - 32;
    return in < 3 && out < 3 && f->is_peak[out == (in + 1) % 3 ? out : in];
}

// Whether a point of the clipped feature is in the middle of the patch: cut off by a side beyond which the
// surface goes on flat. A corner of the shape's feature that rounding has put beyond a side is not.
static bool is_inner(const usi_surface_query *t, const usi_feature *A, const usi_candidate *q,
                     const bool is_flat[3]) {
    int n_side = 0;
    const uint32_t line[2] = {q->id >> 40 & 0xff, q->id >> 32 & 0xff};
    for (int i = 0; i < 2; i++) {
        if (line[i] < 32 || line[i] > 34) continue;
        n_side++;
        if (!is_flat[line[i] - 32]) return false;
    }
    if (n_side == 0) return false;
    const double near = 1e-7 * t->size;
    for (int32_t i = 0; i < A->n; i++) {
        us_vec3 d = us_vec3_sub(q->p_A, A->p[i]);
        if (us_vec3_dot(d, d) < near * near) return false;
    }
    return true;
}

// Adds the point p of the shape where it is over a triangle: within rounding, so that seams have no gap.
static void add_over(const usi_surface_query *t, const usi_feature *tri, us_vec3 p, usi_candidates *c) {
    double gap = us_vec3_dot(tri->normal, us_vec3_sub(p, tri->p[0]));
    for (int k = 0; k < 3; k++) {
        us_vec3 e = us_vec3_sub(tri->p[(k + 1) % 3], tri->p[k]), side = us_vec3_cross(e, tri->normal);
        if (us_vec3_dot(side, us_vec3_sub(p, tri->p[k])) > 1e-12 * t->size * us_vec3_norm(side)) return;
    }
    usi_candidates_add(c, t->margin, tri->normal, p, usi_vec3_add_scaled(p, -gap, tri->normal),
                       (uint64_t)1 << 48 | (uint64_t)63 << 40 | (uint64_t)(tri->id & 0xffff) << 16);
}

// What collide_face must know of the sides of its triangle.
typedef struct face_sides {
    bool is_convex[3], is_flat[3];
    bool is_on_edge[3];  // the shape rests on this side as on a ridge
    us_vec3 n2[3];       // normals across convex sides
} face_sides;

// A face of a mesh whose outer side the shape's middle is not on.
static bool is_behind(const usi_surface_query *t, us_vec3 normal, us_vec3 v) {
    return t->is_one_sided && us_vec3_dot(normal, us_vec3_sub(t->middle, v)) < 1e-9 * t->size;
}

// Points cut off by a ridge that the shape rests on (is_on_edge) are left to the ridge, whose normal is the
// better one.
static void collide_face(usi_surface_query *t, const usi_facet *f, us_vec3 p1, const face_sides *e) {
    const usi_feature *A = usi_surface_feature(t, us_vec3_scale(-1, f->normal));
    usi_feature tri;
    tri.n = 3;
    tri.id = f->index & 0xffff;
    tri.normal = f->normal;
    for (int k = 0; k < 3; k++)
        tri.p[k] = f->v[k];
    usi_candidates p;
    p.n = 0;
    double min_gap = A->n > 1 ? usi_clip_face(&tri, A, false, 0, t->margin, &p) : INFINITY;
    double low = us_vec3_dot(f->normal, p1) - t->A->radius - f->offset;
    if (min_gap > low + USI_SAME_DEPTH * t->size) {
        // The lowest point itself, where it is over the triangle: a rim, a rounded edge.
        tri.id |= 0x8000;
        add_over(t, &tri, usi_vec3_add_scaled(p1, -t->A->radius, f->normal), &p);
    }
    // A neighbour across a sharp edge takes the points that are nearer to it, unless the shape is deeper
    // behind it: then it is not the way out.
    bool is_rival[3];
    for (int k = 0; k < 3; k++) {
        is_rival[k] = e->is_convex[k] && f->neighbour[k] >= 0 &&
                      us_vec3_dot(e->n2[k], f->normal) <= SHARP_COSINE && !is_behind(t, e->n2[k], f->v[k]) &&
                      usi_lowest_height(t, e->n2[k]) - us_vec3_dot(e->n2[k], f->v[k]) >= low;
    }
    for (int32_t i = 0; i < p.n; i++) {
        const usi_candidate *q = &p.at[i];
        bool is_others = is_inner(t, A, q, e->is_flat) || is_of_peak(f, q);
        uint32_t in = q->id >> 40 & 0xff, out = q->id >> 32 & 0xff;
        for (int k = 0; k < 3; k++) {
            if (e->is_on_edge[k] && (in == 32 + (uint32_t)k || out == 32 + (uint32_t)k)) is_others = true;
            if (is_rival[k] && us_vec3_dot(e->n2[k], us_vec3_sub(q->p_A, f->v[k])) > q->gap + 1e-12 * t->size)
                is_others = true;
        }
        if (!is_others)
            usi_surface_add(t, q->normal, q->p_A, q->p_B,
                            (uint64_t)f->index << 32 | ((q->id >> 32 & 0xffff) << 8 ^ (q->id & 0xffff)));
    }
}

void usi_collide_facet(usi_surface_query *t, const usi_facet *f) {
    usi_candidates_make_room(t->c, t->first);
    face_sides e;
    for (int k = 0; k < 3; k++) {
        // Ridges flatter than 1e-6 are flat.
        us_vec3 d = us_vec3_sub(f->across[k], f->v[k]);
        const double rise = us_vec3_dot(f->normal, d), flat = 1e-6 * us_vec3_norm(d);
        e.is_convex[k] = rise < -flat;
        e.is_flat[k] = f->neighbour[k] >= 0 && fabs(rise) <= flat;
        e.is_on_edge[k] = false;
        if (e.is_convex[k]) e.n2[k] = across_normal(f, k);
    }
    bool has_two_ends = usi_has_ends(t->A);
    us_vec3 axis = usi_column(&t->R_FA, 2), p1[3];
    bool is_low_1 = -us_vec3_dot(axis, f->normal) < 0;
    if (has_two_ends) {
        p1[USI_END_MINUS] = usi_lowest_part(t, f->normal, USI_END_MINUS);
        p1[USI_END_PLUS] =
            usi_vec3_add_scaled(p1[USI_END_MINUS], 2 * t->A->size[t->A->kind == US_GEOM_CYLINDER], axis);
        p1[USI_WHOLE] = p1[is_low_1 ? USI_END_MINUS : USI_END_PLUS];
    } else {
        p1[USI_WHOLE] = usi_lowest_point(t, f->normal);
    }
    for (int k = 0; k < 3; k++) {
        if (!e.is_convex[k]) continue;
        // A neighbour that does not act leaves the ridge to this one.
        bool is_mine =
            f->neighbour[k] < 0 || f->neighbour[k] > (int64_t)f->index || is_behind(t, e.n2[k], f->v[k]);
        // An end that is the lowest along both normals has been done with the whole.
        bool is_low_2 = -us_vec3_dot(axis, e.n2[k]) < 0;
        int done = is_low_1 != is_low_2 ? USI_WHOLE : (is_low_1 ? USI_END_MINUS : USI_END_PLUS);
        for (int part = USI_WHOLE; part <= (has_two_ends && is_mine ? USI_END_PLUS : USI_WHOLE); part++) {
            if (part == done && part != USI_WHOLE) continue;
            usi_ridge r;
            if (!usi_is_on_ridge(t, f, k, e.n2[k], part, p1[part], &r)) continue;
            if (part == USI_WHOLE) e.is_on_edge[k] = true;
            if (is_mine) usi_collide_ridge(t, f, k, &r);
        }
    }
    collide_face(t, f, p1[USI_WHOLE], &e);
}

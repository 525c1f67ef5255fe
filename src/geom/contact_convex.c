// Contact points of any two convex shapes, from the flat features that face each other.
//
// The distance (or depth) between two convex shapes is one number and one normal, but a box that rests on a
// floor needs its four corners. They are found from the normal:
//
//        A    |            |     1. usi_convex_gap gives the normal n, from B to A.
//             +--o------o--+     2. usi_feature_find gives, of each shape, the flat feature that looks at the
//     ref  ------v------v-------    other: corner, line or polygon.
//             B  |      |        3. One polygon becomes the reference; the other feature is clipped by the
//                                   planes on the reference's sides, and what is left is projected on the
//                                   reference along its normal.
//
// Every point of the incident feature is on its shape's surface, and its projection is inside the reference
// polygon, so both points of a pair are on the surfaces, whatever the tilt. The features carry the radius: a
// polygon of a rounded box lies on the rounded box. What clipping can miss is the deepest point of a rounded
// edge or of a rim between two drawn corners: the exact deepest pair then replaces its neighbour.
//
// The reference's normal replaces n only where the clipped points reach the exact depth, within a small bias
// in favour of faces. Elsewhere edges cross: one point with the exact normal, or two when the edges run side
// by side.
//
// Ids. A corner of the clipped polygon is where two lines meet: sides of the incident polygon (0 ..) or sides
// of the reference (32 ..). The pair of lines names it, whatever else was cut away; with the ids of both
// features and which shape is the reference this fills 64 bits:
//
//     reference is B: 1 | lines in, out: 8 + 8 | feature of the reference: 16 | of the other: 16
#include "geom/contact_candidates.h"

enum { LINE_OF_REF = 32, LINE_NONE = 63 };

static uint64_t face_id(const usi_feature *ref, const usi_feature *inc, bool ref_is_A, uint32_t in,
                        uint32_t out) {
    return (uint64_t)(!ref_is_A) << 48 | (uint64_t)(in & 0xff) << 40 | (uint64_t)(out & 0xff) << 32 |
           (uint64_t)(ref->id & 0xffff) << 16 | (inc->id & 0xffff);
}

double usi_geom_extent(const us_geom *g) {
    const double *s = g->size;
    double e = 0;
    switch (g->kind) {
    case US_GEOM_SPHERE:
        break;
    case US_GEOM_CAPSULE:
    case US_GEOM_DISC:
        e = s[0];
        break;
    case US_GEOM_LOZENGE:
    case US_GEOM_CYLINDER:
    case US_GEOM_CONE:
        e = fmax(s[0], s[1]);
        break;
    case US_GEOM_BOX:
    case US_GEOM_ELLIPSOID:
        e = fmax(s[0], fmax(s[1], s[2]));
        break;
    default: {
        const us_vec3 axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
        for (int k = 0; k < 3; k++) {
            us_vec3 high = usi_core_support(g, axis[k]),
                    low = usi_core_support(g, us_vec3_scale(-1, axis[k]));
            e = fmax(e, 0.5 * us_vec3_dot(axis[k], us_vec3_sub(high, low)));
        }
    }
    }
    return e + g->radius;
}

// ---- Features ----

// Removes corners that coincide with their predecessor (a box of no thickness has sides of no height).
static void drop_doubles(usi_feature *f) {
    double far2 = 0;
    for (int32_t i = 1; i < f->n; i++) {
        us_vec3 d = us_vec3_sub(f->p[i], f->p[0]);
        far2 = fmax(far2, us_vec3_dot(d, d));
    }
    int32_t n = 1;
    for (int32_t i = 1; i < f->n; i++) {
        us_vec3 d = us_vec3_sub(f->p[i], f->p[n - 1]), e = us_vec3_sub(f->p[i], f->p[0]);
        if (us_vec3_dot(d, d) > 1e-20 * far2 && us_vec3_dot(e, e) > 1e-20 * far2) f->p[n++] = f->p[i];
    }
    f->n = n;
}

// From a polygon to the side that looks along d best, or to a corner: for rounded shapes seen askew, whose
// rounded edges touch first.
static void face_to_edge(us_vec3 d, usi_feature *f) {
    int32_t best = 0;
    for (int32_t i = 1; i < f->n; i++) {
        if (us_vec3_dot(d, f->p[i]) > us_vec3_dot(d, f->p[best])) best = i;
    }
    us_vec3 p = f->p[best], q = f->p[(best + 1) % f->n], o = f->p[(best + f->n - 1) % f->n];
    us_vec3 next = usi_vec3_unit(us_vec3_sub(q, p), us_vec3_make(0, 0, 0)),
            last = usi_vec3_unit(us_vec3_sub(o, p), us_vec3_make(0, 0, 0));
    double slope_next = fabs(us_vec3_dot(d, next)), slope_last = fabs(us_vec3_dot(d, last));
    bool is_next = f->n == 2 ? best == 0 : slope_next <= slope_last;
    double slope = is_next ? slope_next : slope_last;
    us_vec3 u = is_next ? next : last;
    if (slope > 0.2 || f->n == 1) {
        f->n = 1;
        f->p[0] = p;
        f->normal = d;
        f->id = (f->id << 4 | 0x8000u | (uint32_t)best) & 0xffff;
        return;
    }
    f->id = (f->id << 4 | 0x4000u | (uint32_t)(is_next ? best : (best + f->n - 1) % f->n)) & 0xffff;
    f->p[0] = is_next ? p : o;
    f->p[1] = is_next ? q : p;
    f->n = 2;
    f->normal = usi_vec3_unit(usi_vec3_add_scaled(d, -us_vec3_dot(d, u), u), d);
}

static void box_face(const double size[3], us_vec3 d, usi_feature *f) {
    double a[3] = {d.x, d.y, d.z};
    int k = fabs(a[2]) >= fabs(a[0]) && fabs(a[2]) >= fabs(a[1]) ? 2 : (fabs(a[0]) >= fabs(a[1]) ? 0 : 1);
    int i = (k + 1) % 3, j = (k + 2) % 3;
    double side = a[k] < 0 ? -1 : 1;
    static const double corner_sign[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    f->n = 4;
    f->id = (uint32_t)(2 * k + (side > 0));
    for (int c = 0; c < 4; c++) {
        double v[3];
        v[k] = side * size[k];
        v[i] = corner_sign[c][0] * size[i];
        v[j] = side * corner_sign[c][1] * size[j];
        f->p[c] = us_vec3_make(v[0], v[1], v[2]);
    }
    double m[3] = {0, 0, 0};
    m[k] = side;
    f->normal = us_vec3_make(m[0], m[1], m[2]);
}

// The best of the faces of a tetrahedron (or the two of a triangle); none when it is flat to rounding.
static bool simplex_face(const us_vec3 *p, int32_t n_face, us_vec3 d, usi_feature *f) {
    static const int corner[4][3] = {{0, 1, 2}, {0, 3, 1}, {1, 3, 2}, {2, 3, 0}};
    double best = -2;
    double top = us_vec3_dot(d, p[0]), far2 = 0;
    for (int k = 1; k < (n_face == 4 ? 4 : 3); k++)
        top = fmax(top, us_vec3_dot(d, p[k]));
    for (int k = 0; k < n_face; k++) {
        const int *c = corner[k];
        us_vec3 a = us_vec3_sub(p[c[1]], p[c[0]]), b = us_vec3_sub(p[c[2]], p[c[0]]), m = us_vec3_cross(a, b);
        double norm = us_vec3_norm(m);
        far2 = fmax(us_vec3_dot(a, a), us_vec3_dot(b, b));
        if (!(norm > 1e-12 * far2)) continue;
        m = us_vec3_scale(1 / norm, m);
        // Outwards: away from the fourth corner, or towards d for a triangle.
        double flip = n_face == 4 ? us_vec3_dot(m, us_vec3_sub(p[6 - c[0] - c[1] - c[2]], p[c[0]]))
                                  : -us_vec3_dot(m, d);
        bool is_turned = flip > 0;
        if (is_turned) m = us_vec3_scale(-1, m);
        double along = us_vec3_dot(m, d),
               reach = fmax(us_vec3_dot(d, p[c[0]]), fmax(us_vec3_dot(d, p[c[1]]), us_vec3_dot(d, p[c[2]])));
        if (along <= best || reach < top - 1e-12 * sqrt(far2)) continue;
        best = along;
        f->n = 3;
        f->normal = m;
        f->id = (uint32_t)(2 * k + is_turned);
        f->p[0] = p[c[0]];
        f->p[1] = p[c[is_turned ? 2 : 1]];
        f->p[2] = p[c[is_turned ? 1 : 2]];
    }
    return best > -2;
}

// The face of a hull that contains the farthest corner and looks along d best.
static void hull_face(const us_geom *g, us_vec3 d, usi_feature *f) {
    const us_hull *h = g->hull;
    us_vec3 v = usi_core_support(g, d);
    double slack = 1e-9 * (us_vec3_norm(v) + fabs(h->offset[0]));
    int32_t best = -1;
    double along = -2;
    for (int32_t k = 0; k < h->n_face; k++) {
        double a = us_vec3_dot(h->normal[k], d);
        if (a > along && us_vec3_dot(h->normal[k], v) >= h->offset[k] - slack) {
            best = k;
            along = a;
        }
    }
    if (best < 0) {
        f->n = 1;
        f->p[0] = v;
        f->normal = d;
        f->id = 0x8000;
        return;
    }
    int32_t first = h->face_start[best], n = h->face_start[best + 1] - first,
            m = n < USI_FEATURE_POINTS ? n : USI_FEATURE_POINTS;
    for (int32_t i = 0; i < m; i++)
        f->p[i] = h->vertex[h->face_vertex[first + (int32_t)((int64_t)i * n / m)]];
    f->n = m;
    f->normal = h->normal[best];
    f->id = (uint32_t)best & 0x3fff;
}

void usi_feature_find(const us_geom *g, us_pose X_WG, us_vec3 d_W, int32_t n_rim, usi_feature *out) {
    us_vec3 d = us_quat_rotate(us_quat_conj(X_WG.q), d_W);
    out->id = 0;
    out->n = 0;
    if (!usi_feature_round(g, d, n_rim, out)) {
        double flat[3] = {g->size[0], g->size[1], 0};
        bool is_found = true;
        switch (g->kind) {
        case US_GEOM_BOX:
            box_face(g->size, d, out);
            break;
        case US_GEOM_LOZENGE:
            box_face(flat, d, out);
            break;
        case US_GEOM_TRIANGLE:
            is_found = simplex_face(g->point, 1, d, out);
            break;
        case US_GEOM_TETRAHEDRON:
            is_found = simplex_face(g->point, 4, d, out);
            break;
        default:
            hull_face(g, d, out);
            break;
        }
        if (!is_found) {
            out->n = 1;
            out->p[0] = usi_core_support(g, d);
            out->normal = d;
            out->id = 0x8000;
        } else {
            drop_doubles(out);
            double along = us_vec3_dot(out->normal, d);
            if (out->n < 3 || (g->radius > 0 && along < 0.98) || along < 0.2) face_to_edge(d, out);
        }
    }
    if (out->n == 1) out->normal = d;
    us_mat3 R = us_quat_matrix(X_WG.q);
    out->normal = us_mat3_mul_vec(&R, out->normal);
    us_vec3 shift = usi_vec3_add_scaled(X_WG.p, g->radius, out->normal);
    for (int32_t i = 0; i < out->n; i++)
        out->p[i] = us_vec3_add(shift, us_mat3_mul_vec(&R, out->p[i]));
}

// ---- Clipping ----

void usi_candidates_add(usi_candidates *c, double margin, us_vec3 normal, us_vec3 p_A, us_vec3 p_B,
                        uint64_t id) {
    double gap = us_vec3_dot(normal, us_vec3_sub(p_A, p_B));
    if (c->n >= USI_CANDIDATES || !(gap <= margin)) return;
    usi_candidate *p = &c->at[c->n++];
    p->normal = normal;
    p->p_A = p_A;
    p->p_B = p_B;
    p->gap = gap;
    p->id = id;
}

typedef struct clip_corner {
    us_vec3 p;
    uint32_t in, out;  // the lines that meet here
} clip_corner;

// One side of the reference cuts a polygon or, when is_open, a line. Corners outside by less than the
// tolerance are moved onto the side, towards the middle of what is left, so that they keep their id and stay
// on both surfaces.
static int32_t cut(const clip_corner *from, int32_t n, bool is_open, us_vec3 side, double offset,
                   double tolerance, uint32_t line, clip_corner *to) {
    double s[USI_FEATURE_POINTS * 2], max_side = -INFINITY, min_side = INFINITY;
    for (int32_t i = 0; i < n; i++) {
        s[i] = us_vec3_dot(side, from[i].p) - offset;
        max_side = fmax(max_side, s[i]);
        min_side = fmin(min_side, s[i]);
    }
    if (min_side > 0) return 0;
    if (max_side <= 0) {
        for (int32_t i = 0; i < n; i++)
            to[i] = from[i];
        return n;
    }
    us_vec3 middle = us_vec3_make(0, 0, 0);
    for (int32_t i = 0; i < n; i++)
        middle = usi_vec3_add_scaled(middle, 1.0 / n, from[i].p);
    double depth = offset - us_vec3_dot(side, middle);
    bool is_moved[USI_FEATURE_POINTS * 2];
    for (int32_t i = 0; i < n; i++) {
        // Not where the direction to the middle is along the side: the corner would move far.
        is_moved[i] =
            s[i] > 0 && s[i] <= tolerance && depth > 0.1 * us_vec3_norm(us_vec3_sub(middle, from[i].p));
    }
    int32_t m = 0;
    // A convex polygon gains one corner at most; the second condition holds for what rounding makes of it.
    for (int32_t i = 0; i < n && m + 2 <= USI_FEATURE_POINTS * 2; i++) {
        int32_t j = i + 1 < n ? i + 1 : 0;
        bool in_i = s[i] <= 0 || is_moved[i], in_j = s[j] <= 0 || is_moved[j];
        if (in_i) {
            to[m] = from[i];
            if (is_moved[i])
                to[m].p =
                    usi_vec3_add_scaled(from[i].p, s[i] / (s[i] + depth), us_vec3_sub(middle, from[i].p));
            m++;
        }
        if (is_open && j == 0) break;
        if (in_i == in_j) continue;
        double span = s[i] - s[j], t = span != 0 ? s[i] / span : 0;
        t = t < 0 ? 0 : (t > 1 ? 1 : t);
        // Between a moved corner and one that is out, the line meets the side at the moved corner: nothing is
        // added.
        if (is_moved[i] || is_moved[j]) {
            if (is_moved[j]) continue;
            to[m - 1].out = line;
            continue;
        }
        to[m].p = usi_vec3_add_scaled(from[i].p, t, us_vec3_sub(from[j].p, from[i].p));
        to[m].in = in_i ? from[i].out : line;
        to[m].out = in_i ? line : from[i].out;
        m++;
    }
    return m;
}

// A line without tolerance, the case of wheels on terrain: what is left between two fractions of its length.
static int32_t clip_line(const usi_feature *ref, const usi_feature *inc, clip_corner out[2]) {
    us_vec3 u = us_vec3_sub(inc->p[1], inc->p[0]);
    double t0 = 0, t1 = 1;
    uint32_t in = LINE_NONE, end = 1;
    for (int32_t k = 0; k < ref->n; k++) {
        us_vec3 side = us_vec3_cross(us_vec3_sub(ref->p[k + 1 < ref->n ? k + 1 : 0], ref->p[k]), ref->normal);
        double s = us_vec3_dot(side, us_vec3_sub(inc->p[0], ref->p[k])), rise = us_vec3_dot(side, u);
        if (s <= 0 && s + rise <= 0) continue;
        if (s > 0 && s + rise > 0) return 0;
        double t = -s / rise;
        if (rise > 0) {
            if (t < t1) {
                t1 = t;
                end = LINE_OF_REF + (uint32_t)k;
            }
        } else {
            if (t > t0) {
                t0 = t;
                in = LINE_OF_REF + (uint32_t)k;
            }
        }
    }
    if (t0 > t1) return 0;
    out[0].p = t0 > 0 ? usi_vec3_add_scaled(inc->p[0], t0, u) : inc->p[0];
    out[0].in = in;
    out[0].out = 0;
    out[1].p = t1 < 1 ? usi_vec3_add_scaled(inc->p[0], t1, u) : inc->p[1];
    out[1].in = t1 < 1 ? 0 : LINE_NONE;
    out[1].out = end;
    return 2;
}

double usi_clip_face(const usi_feature *ref, const usi_feature *inc, bool ref_is_A, double tolerance,
                     double margin, usi_candidates *c) {
    // Each cut can add one corner: the arrays hold the incident corners and one for each side.
    clip_corner buffer[2][USI_FEATURE_POINTS * 2];
    clip_corner *now = buffer[0], *next = buffer[1];
    int32_t n = inc->n;
    bool is_open = n <= 2;
    for (int32_t i = 0; i < n; i++) {
        now[i].p = inc->p[i];
        now[i].in = is_open ? LINE_NONE : (uint32_t)(i > 0 ? i - 1 : n - 1);
        now[i].out = (uint32_t)i;
    }
    us_vec3 nr = ref->normal;
    bool is_line = n == 2 && tolerance == 0;
    if (is_line) n = clip_line(ref, inc, now);
    for (int32_t k = 0; k < ref->n && n > 0 && !is_line; k++) {
        us_vec3 along = us_vec3_sub(ref->p[k + 1 < ref->n ? k + 1 : 0], ref->p[k]),
                side = us_vec3_cross(along, nr);
        double length = us_vec3_norm(side);
        if (!(length > 1e-12 * us_vec3_norm(along))) continue;
        side = us_vec3_scale(1 / length, side);
        n = cut(now, n, is_open, side, us_vec3_dot(side, ref->p[k]), tolerance, LINE_OF_REF + (uint32_t)k,
                next);
        clip_corner *t = now;
        now = next;
        next = t;
    }
    double min_gap = INFINITY, offset = us_vec3_dot(nr, ref->p[0]);
    us_vec3 normal = ref_is_A ? us_vec3_scale(-1, nr) : nr;
    for (int32_t i = 0; i < n; i++) {
        double gap = us_vec3_dot(nr, now[i].p) - offset;
        us_vec3 on_ref = usi_vec3_add_scaled(now[i].p, -gap, nr);
        uint64_t id = face_id(ref, inc, ref_is_A, now[i].in, now[i].out);
        min_gap = fmin(min_gap, gap);
        usi_candidates_add(c, margin, normal, ref_is_A ? on_ref : now[i].p, ref_is_A ? now[i].p : on_ref, id);
    }
    return min_gap;
}

bool usi_clip_lines(const usi_feature *A, const usi_feature *B, us_vec3 normal, double margin,
                    usi_candidates *c) {
    us_vec3 a = us_vec3_sub(A->p[1], A->p[0]), b = us_vec3_sub(B->p[1], B->p[0]);
    double la = us_vec3_norm(a), lb = us_vec3_norm(b);
    if (!(la > 0 && lb > 0)) return false;
    us_vec3 u = us_vec3_scale(1 / la, a);
    // Parallel within 0.01 rad, seen along the normal: the lines are then apart by less than 1 % of their
    // length at the ends.
    us_vec3 across = us_vec3_cross(u, normal);
    double along = us_vec3_dot(u, b);
    if (fabs(us_vec3_dot(across, b)) > 0.01 * lb || fabs(along) < 0.5 * lb) return false;
    double s0 = us_vec3_dot(u, us_vec3_sub(B->p[0], A->p[0])), s1 = s0 + along;
    double low = fmax(0, fmin(s0, s1)), high = fmin(la, fmax(s0, s1));
    if (!(high - low > 1e-3 * fmin(la, lb))) return false;
    for (int k = 0; k < 2; k++) {
        double s = k ? high : low, t = (s - s0) / along;
        uint64_t id = 1ull << 50 | (uint64_t)k << 40 | (uint64_t)(A->id & 0xffff) << 16 | (B->id & 0xffff);
        usi_candidates_add(c, margin, normal, usi_vec3_add_scaled(A->p[0], s, u),
                           usi_vec3_add_scaled(B->p[0], t, b), id);
    }
    return true;
}

void usi_candidates_put_deepest(usi_candidates *c, int32_t first, double near, double margin, us_vec3 normal,
                                us_vec3 p_A, us_vec3 p_B, uint64_t id) {
    int32_t best = -1;
    double near2 = near * near;
    for (int32_t i = first; i < c->n; i++) {
        us_vec3 d = us_vec3_sub(c->at[i].p_A, p_A);
        double d2 = us_vec3_dot(d, d);
        if (d2 < near2) {
            near2 = d2;
            best = i;
        }
    }
    if (best < 0 && c->n < USI_CANDIDATES) {
        usi_candidates_add(c, margin, normal, p_A, p_B, id);
        return;
    }
    if (best < 0) best = c->n - 1;
    usi_candidate *p = &c->at[best];
    p->normal = normal;
    p->p_A = p_A;
    p->p_B = p_B;
    p->gap = us_vec3_dot(normal, us_vec3_sub(p_A, p_B));
}

// ---- The choice ----

static void exchange(usi_candidates *c, int32_t i, int32_t j) {
    usi_candidate t = c->at[i];
    c->at[i] = c->at[j];
    c->at[j] = t;
}

// The deepest comes first, then the farthest from it, then the corner of the largest triangle, then what adds
// most area to that. A later candidate must win by the tolerance, so that equal ones do not take turns.
void usi_candidates_reduce_face(usi_candidates *c, int32_t first, int32_t keep, double tolerance) {
    if (c->n - first <= keep) return;
    usi_candidate *p = c->at + first;
    int32_t n = c->n - first;
    us_vec3 normal = p[0].normal;
    for (int32_t k = 0; k < keep; k++) {
        int32_t best = k;
        double score = -INFINITY;
        for (int32_t i = k; i < n; i++) {
            double s;
            us_vec3 d = us_vec3_sub(p[i].p_A, p[0].p_A);
            if (k == 0) {
                s = -p[i].gap;
            } else if (k == 1) {
                s = us_vec3_norm(d);
            } else if (k == 2) {
                us_vec3 e = us_vec3_sub(p[1].p_A, p[0].p_A);
                s = fabs(us_vec3_dot(normal, us_vec3_cross(e, d))) / (us_vec3_norm(e) + tolerance);
            } else {
                // Maximum distance outside one of the triangle's sides.
                double winding = us_vec3_dot(normal, us_vec3_cross(us_vec3_sub(p[1].p_A, p[0].p_A),
                                                                   us_vec3_sub(p[2].p_A, p[0].p_A))) < 0
                                     ? -1
                                     : 1;
                s = -INFINITY;
                for (int a = 0; a < 3; a++) {
                    us_vec3 e = us_vec3_sub(p[(a + 1) % 3].p_A, p[a].p_A),
                            f = us_vec3_sub(p[i].p_A, p[a].p_A);
                    s = fmax(s, -winding * us_vec3_dot(normal, us_vec3_cross(e, f)) /
                                    (us_vec3_norm(e) + tolerance));
                }
            }
            if (s > score + (i == k ? 0 : tolerance)) {
                score = s;
                best = i;
            }
        }
        exchange(c, first + k, first + best);
    }
    // The deepest point is lost to the tolerance of the first choice by no more than the others' depth may
    // differ from it.
    int32_t deepest = 0;
    double kept = INFINITY;
    for (int32_t i = 0; i < n; i++) {
        if (p[i].gap < p[deepest].gap) deepest = i;
        if (i < keep) kept = fmin(kept, p[i].gap);
    }
    if (p[deepest].gap < kept - USI_SAME_DEPTH / USI_CLIP_TOLERANCE * tolerance) p[0] = p[deepest];
    c->n = first + keep;
}

void usi_candidates_keep_spread(usi_candidates *c, int32_t first, int32_t keep, double tolerance) {
    int32_t n = c->n - first;
    if (n <= keep) return;
    usi_candidate *p = c->at + first;
    int32_t k = 0;
    for (; k < keep / 2; k++) {
        int32_t best = k;
        for (int32_t i = k + 1; i < n; i++) {
            if (p[i].gap < p[best].gap) best = i;
        }
        exchange(c, first + k, first + best);
    }
    for (; k < keep; k++) {
        int32_t best = k;
        double score = -1;
        for (int32_t i = k; i < n; i++) {
            double near = INFINITY;
            for (int32_t j = 0; j < k; j++) {
                us_vec3 d = us_vec3_sub(p[i].p_A, p[j].p_A);
                near = fmin(near, us_vec3_dot(d, d));
            }
            if (near > score + tolerance * tolerance) {
                score = near;
                best = i;
            }
        }
        exchange(c, first + k, first + best);
    }
    c->n = first + keep;
}

void usi_candidates_to_manifold(usi_candidates *c, double tolerance, us_manifold *out) {
    usi_candidates_keep_spread(c, 0, US_MANIFOLD_POINTS, tolerance);
    int32_t n = out->n = c->n;
    const usi_candidate *p = c->at;
    for (int32_t i = 0; i < n; i++) {
        out->normal[i] = p[i].normal;
        out->p_A[i] = p[i].p_A;
        out->p_B[i] = p[i].p_B;
        out->gap[i] = p[i].gap;
        out->feature[i] = p[i].id;
    }
}

// ---- The pair ----

static bool is_polyhedron(us_geom_kind kind) {
    return kind == US_GEOM_LOZENGE || kind == US_GEOM_TRIANGLE || kind == US_GEOM_BOX ||
           kind == US_GEOM_TETRAHEDRON || kind == US_GEOM_CONVEX;
}

void usi_contact_convex(const us_geom *A, us_pose X_WA, const us_geom *B, us_pose X_WB, double margin,
                        usi_candidates *c) {
    us_gap g = usi_convex_gap(A, X_WA, B, X_WB);
    if (!(g.distance <= margin)) return;
    usi_feature FA, FB;
    usi_feature_find(A, X_WA, us_vec3_scale(-1, g.normal), USI_FEATURE_POINTS, &FA);
    usi_feature_find(B, X_WB, g.normal, USI_FEATURE_POINTS, &FB);
    uint64_t id = 1ull << 51 | (uint64_t)(FA.id & 0xffff) << 16 | (FB.id & 0xffff);
    if (FA.n == 1 || FB.n == 1) {
        usi_candidates_add(c, margin, g.normal, g.p_A, g.p_B, id);
        return;
    }
    double size = fmin(usi_geom_extent(A), usi_geom_extent(B)), bias = USI_FACE_BIAS * size,
           tolerance = USI_CLIP_TOLERANCE * size;
    int32_t first = c->n;
    double along_A = FA.n > 2 ? -us_vec3_dot(FA.normal, g.normal) : -2,
           along_B = FB.n > 2 ? us_vec3_dot(FB.normal, g.normal) : -2;
    bool A_first = along_A >= along_B - 1e-3;
    for (int k = 0; k < 2; k++) {
        bool is_A = (k == 0) == A_first;
        if ((is_A ? along_A : along_B) < 0.2) continue;
        double min_gap = is_A ? usi_clip_face(&FA, &FB, true, tolerance, margin, c)
                              : usi_clip_face(&FB, &FA, false, tolerance, margin, c);
        bool is_aligned = (is_A ? along_A : along_B) > 1 - 1e-9;
        if (c->n > first && (is_aligned || fabs(min_gap - g.distance) <= bias)) {
            if (min_gap > g.distance + USI_SAME_DEPTH * size)
                usi_candidates_put_deepest(c, first, 0.1 * size, margin, g.normal, g.p_A, g.p_B, id);
            usi_candidates_reduce_face(c, first, USI_FACE_POINTS, tolerance);
            return;
        }
        c->n = first;
    }
    // No face reaches the depth: edges meet. Sharp polygons give the edge that looks across.
    if (FA.n > 2 && A->radius == 0 && is_polyhedron(A->kind)) face_to_edge(us_vec3_scale(-1, g.normal), &FA);
    if (FB.n > 2 && B->radius == 0 && is_polyhedron(B->kind)) face_to_edge(g.normal, &FB);
    if (FA.n == 2 && FB.n == 2) usi_clip_lines(&FA, &FB, g.normal, margin, c);
    double min_gap = INFINITY;
    for (int32_t i = first; i < c->n; i++)
        min_gap = fmin(min_gap, c->at[i].gap);
    if (min_gap > g.distance + USI_SAME_DEPTH * size)
        usi_candidates_put_deepest(c, first, 0.1 * size, margin, g.normal, g.p_A, g.p_B, id);
}

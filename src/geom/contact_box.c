// Contact points of two boxes: the fifteen axes, then clipping.
//
// Two boxes are apart exactly when one of fifteen directions shows it: the three face normals of each, and
// the cross products of an edge of one with an edge of the other. The axis on which they overlap least (or
// are farthest apart) gives the normal.
//
//      face axis                       edge axis
//      +--------+   <- incident          \ /
//      |   B    |                         X     one point, where the two edges pass each other
//    ==o========o==  <- reference        / \    .
//
// On a face axis the incident face is cut by the four sides of the reference face, in the reference's own
// coordinates: x and y along its sides, z its height over the face, which is the gap. Up to 8 corners are
// left, of which 4 are kept.
//
// Friction remembers points by their ids, and a tilt of a millionth must not change them. So an edge must be
// better than a face by more than a small bias; of two faces that lie on each other the larger is the
// reference, however they are tilted; of others A's, unless B's is better by more than the bias. Corners that
// stick out of the reference by less than a tolerance stay, moved onto its rim. Among more than four corners
// the choice is made with the same tolerance, in the order of the incident face.
//
// Where the boxes are apart and pass each other corner to corner, no axis of the fifteen shows the true
// distance; then the general method takes over.
#include "geom/contact_candidates.h"

enum { CORNERS = 8, LINE_OF_REF = 32 };

// Cosine of 0.02 rad: faces that lie on each other.
#define PARALLEL 0.9998

typedef struct posed_box {
    us_vec3 axis[3];  // columns of R_WG
    double half[3];
    us_vec3 p;
} posed_box;

static inline posed_box pose_box(const us_geom *g, const us_pose *X) {
    us_mat3 R = us_quat_matrix(X->q);
    posed_box b = {{{R.m[0], R.m[3], R.m[6]}, {R.m[1], R.m[4], R.m[7]}, {R.m[2], R.m[5], R.m[8]}},
                   {g->size[0], g->size[1], g->size[2]},
                   X->p};
    return b;
}

// ---- Edges ----

// The middle of the edge along axis k that lies farthest in direction d. *out_id: which of the four.
static us_vec3 edge_towards(const posed_box *b, int k, us_vec3 d, uint32_t *out_id) {
    us_vec3 p = b->p;
    *out_id = (uint32_t)k << 2;
    for (int m = 1; m < 3; m++) {
        int i = (k + m) % 3;
        double side = us_vec3_dot(b->axis[i], d) < 0 ? -1 : 1;
        p = usi_vec3_add_scaled(p, side * b->half[i], b->axis[i]);
        if (side > 0) *out_id |= (uint32_t)m;
    }
    return p;
}

static inline void put(us_manifold *m, us_vec3 n, us_vec3 p_A, us_vec3 p_B, double gap, uint64_t id) {
    int32_t i = m->n++;
    m->normal[i] = n;
    m->p_A[i] = p_A;
    m->p_B[i] = p_B;
    m->gap[i] = gap;
    m->feature[i] = id;
}

// Where an edge of A passes an edge of B; false when the lines pass beyond an end.
static bool edges_meet(const posed_box *A, int i, const posed_box *B, int j, us_vec3 n, double margin,
                       us_manifold *m) {
    uint32_t id_A, id_B;
    us_vec3 a = edge_towards(A, i, us_vec3_scale(-1, n), &id_A), b = edge_towards(B, j, n, &id_B),
            d = us_vec3_sub(b, a);
    us_vec3 u = A->axis[i], v = B->axis[j];
    double uv = us_vec3_dot(u, v), du = us_vec3_dot(d, u), dv = us_vec3_dot(d, v), w = 1 - uv * uv;
    double s = (du - uv * dv) / w, t = (uv * du - dv) / w, slack = 1 + 1e-9;
    if (!(fabs(s) <= A->half[i] * slack && fabs(t) <= B->half[j] * slack)) return false;
    us_vec3 p_A = usi_vec3_add_scaled(a, s, u), p_B = usi_vec3_add_scaled(b, t, v);
    double gap = us_vec3_dot(n, us_vec3_sub(p_A, p_B));
    if (gap <= margin) put(m, n, p_A, p_B, gap, 1ull << 52 | (uint64_t)id_A << 16 | id_B);
    return true;
}

// ---- Faces ----

typedef struct box_corner {
    double c[3];  // x, y along the reference's sides, z over its face
    uint32_t in,
        out;  // the lines that meet here: sides of the incident face (0 ..) or of the reference (32 ..)
} box_corner;

// Which corners lie beyond a side by no more than the tolerance, and are to be moved onto it, a bit each;
// the middle of all, and how deep inside it lies.
static uint32_t find_moved(const box_corner *from, int32_t n, const double *s, int axis, double sign,
                           double limit, double tolerance, double middle[3], double *out_depth) {
    const double share = 1.0 / n;
    uint32_t moved = 0;
    for (int32_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++)
            middle[k] += share * from[i].c[k];
    }
    const double depth = limit - sign * middle[axis];
    for (int32_t i = 0; i < n; i++) {
        if (!(s[i] > 0 && s[i] <= tolerance)) continue;
        // Not where the direction to the middle is along the side: the corner would move far.
        const double x = middle[0] - from[i].c[0], y = middle[1] - from[i].c[1];
        if (depth > 0 && depth * depth > 0.01 * (x * x + y * y)) moved |= 1u << i;
    }
    *out_depth = depth;
    return moved;
}

// One side of the reference, sign * c[axis] <= limit. Corners outside by less than the tolerance are moved
// onto the side, towards the middle of what is left, so that they keep their id and stay on both faces.
static int32_t cut(const box_corner *from, int32_t n, int axis, double sign, double limit, double tolerance,
                   uint32_t line, box_corner *to) {
    double s[CORNERS + 4], min_side = INFINITY;
    bool is_close = false;
    for (int32_t i = 0; i < n; i++) {
        s[i] = sign * from[i].c[axis] - limit;
        min_side = s[i] < min_side ? s[i] : min_side;
        is_close |= (s[i] > 0) & (s[i] <= tolerance);
    }
    if (min_side > 0) return 0;
    double middle[3] = {0, 0, 0}, depth = 0;
    const uint32_t moved =
        is_close ? find_moved(from, n, s, axis, sign, limit, tolerance, middle, &depth) : 0;
    int32_t m = 0;
    // A convex polygon gains one corner at most; the second condition holds for what rounding makes of it.
    for (int32_t i = 0; i < n && m + 2 <= CORNERS + 4; i++) {
        int32_t j = i + 1 < n ? i + 1 : 0;
        const bool moves_i = moved >> i & 1, moves_j = moved >> j & 1;
        bool in_i = s[i] <= 0 || moves_i, in_j = s[j] <= 0 || moves_j;
        if (in_i) {
            to[m] = from[i];
            if (moves_i) {
                double x = s[i] / (s[i] + depth);
                for (int k = 0; k < 3; k++)
                    to[m].c[k] += x * (middle[k] - from[i].c[k]);
            }
            m++;
        }
        if (in_i == in_j) continue;
        // Between a moved corner and one that is out, the line meets the side at the moved corner: nothing is
        // added.
        if (moves_i || moves_j) {
            if (moves_i) to[m - 1].out = line;
            continue;
        }
        double t = s[i] / (s[i] - s[j]);
        for (int k = 0; k < 3; k++)
            to[m].c[k] = from[i].c[k] + t * (from[j].c[k] - from[i].c[k]);
        to[m].in = in_i ? from[i].out : line;
        to[m].out = in_i ? line : from[i].out;
        m++;
    }
    return m;
}

static inline double area2(const box_corner *a, const box_corner *b, const box_corner *c) {
    return (b->c[0] - a->c[0]) * (c->c[1] - a->c[1]) - (b->c[1] - a->c[1]) * (c->c[0] - a->c[0]);
}

static inline double length2(const box_corner *a, const box_corner *b) {
    double x = b->c[0] - a->c[0], y = b->c[1] - a->c[1];
    return sqrt(x * x + y * y);
}

// Four of n: the deepest, the farthest from it, the corner of the largest triangle, then what lies farthest
// outside of that. A later one must win by the tolerance, so that equal ones do not take turns. The deepest
// of all is among them, within the bias.
static int32_t choose(box_corner *p, int32_t n, double tolerance, double bias) {
    if (n <= USI_FACE_POINTS) return n;
    for (int32_t k = 0; k < USI_FACE_POINTS; k++) {
        int32_t best = k;
        double score = -INFINITY, winding = k == 3 && area2(&p[0], &p[1], &p[2]) < 0 ? -1 : 1,
               scale[3] = {1, 1, 1};
        if (k == 2) scale[0] = 1 / (length2(&p[0], &p[1]) + tolerance);
        for (int a = 0; a < 3 && k == 3; a++)
            scale[a] = -winding / (length2(&p[a], &p[(a + 1) % 3]) + tolerance);
        for (int32_t i = k; i < n; i++) {
            double s;
            if (k == 0) {
                s = -p[i].c[2];
            } else if (k == 1) {
                s = length2(&p[0], &p[i]);
            } else if (k == 2) {
                s = fabs(area2(&p[0], &p[1], &p[i])) * scale[0];
            } else {
                double a = area2(&p[0], &p[1], &p[i]) * scale[0], b = area2(&p[1], &p[2], &p[i]) * scale[1],
                       c = area2(&p[2], &p[0], &p[i]) * scale[2];
                s = a > b ? a : b;
                s = s > c ? s : c;
            }
            if (s > score + (i == k ? 0 : tolerance)) {
                score = s;
                best = i;
            }
        }
        box_corner t = p[k];
        p[k] = p[best];
        p[best] = t;
    }
    int32_t deepest = 0;
    double kept = INFINITY;
    for (int32_t i = 0; i < n; i++) {
        if (p[i].c[2] < p[deepest].c[2]) deepest = i;
        if (i < USI_FACE_POINTS) kept = p[i].c[2] < kept ? p[i].c[2] : kept;
    }
    if (p[deepest].c[2] < kept - bias) p[0] = p[deepest];
    return USI_FACE_POINTS;
}

// Cuts a polygon by the four sides of a face of half lengths `limit`. The corners are in one of two buffers,
// *io_now; returns how many there are.
static inline int32_t cut_by_sides(box_corner **io_now, box_corner *next, const double limit[2],
                                   double tolerance) {
    box_corner *now = *io_now;
    int32_t n = 4;
    for (uint32_t line = 0; line < 4 && n > 0; line++) {
        int axis = (int)(line >> 1);
        double sign = line & 1 ? 1 : -1;
        bool is_out = false;
        for (int32_t i = 0; i < n; i++)
            is_out |= sign * now[i].c[axis] > limit[axis];
        if (!is_out) continue;
        n = cut(now, n, axis, sign, limit[axis], tolerance, LINE_OF_REF + line, next);
        box_corner *swap = now;
        now = next;
        next = swap;
    }
    *io_now = now;
    return n;
}

// The incident face of I on the face k, `side` of the reference Q. R_QI[i][j]: axis i of Q . axis j of I; t:
// I's middle in Q. Returns the minimum gap of the points added, infinite when there is none.
static double faces_meet(const posed_box *Q, const posed_box *I, int k, double side, double R[3][3],
                         const double t[3], bool ref_is_A, double margin, double tolerance, double bias,
                         us_manifold *m) {
    // Incident face: f, `face`.
    int x = (k + 1) % 3, y = (k + 2) % 3, f = 0;
    for (int i = 1; i < 3; i++)
        f = fabs(R[k][i]) > fabs(R[k][f]) ? i : f;
    double face = R[k][f] * side < 0 ? 1 : -1;  // the incident face looks against the reference's normal
    int u = (f + 1) % 3, v = (f + 2) % 3;
    double hu = I->half[u], hv = face * I->half[v], hf = face * I->half[f];

    // Its corners along the reference's axes x, y and its normal.
    box_corner buffer[2][CORNERS + 4], *now = buffer[0], *next = buffer[1];
    double middle[3], along_u[3], along_v[3];
    const int row[3] = {x, y, k};
    for (int c = 0; c < 3; c++) {
        int r = row[c];
        double sign = c == 2 ? side : 1;
        middle[c] = sign * (t[r] + hf * R[r][f]);
        along_u[c] = sign * hu * R[r][u];
        along_v[c] = sign * hv * R[r][v];
    }
    middle[2] -= Q->half[k];
    for (int32_t i = 0; i < 4; i++) {
        double su = i == 1 || i == 2 ? 1 : -1, sv = i >= 2 ? 1 : -1;
        for (int c = 0; c < 3; c++)
            now[i].c[c] = middle[c] + su * along_u[c] + sv * along_v[c];
        now[i].in = (uint32_t)(i > 0 ? i - 1 : 3);
        now[i].out = (uint32_t)i;
    }

    // Points over the reference face, within the margin.
    const double limit[2] = {Q->half[x], Q->half[y]};
    int32_t n = cut_by_sides(&now, next, limit, tolerance);
    double min_gap = INFINITY;
    int32_t n_near = 0;
    for (int32_t i = 0; i < n; i++) {
        min_gap = now[i].c[2] < min_gap ? now[i].c[2] : min_gap;
        if (now[i].c[2] <= margin) now[n_near++] = now[i];
    }
    n = choose(now, n_near, tolerance, bias);

    // Contact points in W.
    us_vec3 nr = us_vec3_scale(side, Q->axis[k]), normal = ref_is_A ? us_vec3_scale(-1, nr) : nr,
            on = usi_vec3_add_scaled(Q->p, Q->half[k], nr);
    uint64_t id =
        (uint64_t)(!ref_is_A) << 48 | (uint64_t)(2 * k + (side > 0)) << 16 | (uint64_t)(2 * f + (face > 0));
    for (int32_t i = 0; i < n; i++) {
        const double *c = now[i].c;
        us_vec3 on_ref = usi_vec3_add_scaled(usi_vec3_add_scaled(on, c[0], Q->axis[x]), c[1], Q->axis[y]),
                on_inc = usi_vec3_add_scaled(on_ref, c[2], nr);
        put(m, normal, ref_is_A ? on_ref : on_inc, ref_is_A ? on_inc : on_ref, c[2],
            id | (uint64_t)now[i].in << 40 | (uint64_t)now[i].out << 32);
    }
    return min_gap;
}

static double face_area(const posed_box *b, int k) { return b->half[(k + 1) % 3] * b->half[(k + 2) % 3]; }

// Two boxes and the separating axes of minimum overlap.
typedef struct box_pair {
    posed_box A, B;
    us_vec3 t_W;            // from A's centre to B's, in W
    usi_v4 R[3], Q[3];      // axis i of A . axis j of B, and its magnitude: lane j
    usi_v4 half_B;          // half lengths of B
    double t[3];            // from A's centre to B's, in A
    usi_v4 t_B;             // and in B
    double face_A, face_B;  // separation on the best face axis of each
    double side_A, side_B;  // towards which side of it
    int best_A, best_B;     // which axis
    double edge;            // separation on the best edge axis
    int edge_i, edge_j;     // edges of A and B; -1: a face axis is better
    double margin, bias, tolerance;
} box_pair;

// The face axes. False: one of them separates the boxes by more than the margin.
static inline bool find_face_axes(box_pair *x) {
    const posed_box *A = &x->A;
    x->face_A = x->face_B = -INFINITY;
    for (int i = 0; i < 3; i++) {
        const double s = fabs(x->t[i]) - (A->half[i] + usi_v4_dot(x->Q[i], x->half_B));
        if (s > x->face_A) {
            x->face_A = s;
            x->best_A = i;
            x->side_A = x->t[i];
        }
    }
    if (!(x->face_A <= x->margin)) return false;
    x->t_B = x->t[0] * x->R[0] + x->t[1] * x->R[1] + x->t[2] * x->R[2];
    const usi_v4 sides =
        usi_v4_abs(x->t_B) - (x->half_B + x->Q[0] * A->half[0] + x->Q[1] * A->half[1] + x->Q[2] * A->half[2]);
    for (int j = 0; j < 3; j++) {
        if (sides[j] > x->face_B) {
            x->face_B = sides[j];
            x->best_B = j;
            x->side_B = x->t_B[j];
        }
    }
    return x->face_B <= x->margin;
}

// The edge axes that are better than the best face axis by more than the bias.
static inline void find_edge_axes(box_pair *x) {
    const posed_box *A = &x->A;
    const usi_v4 half_B1 = __builtin_shufflevector(x->half_B, x->half_B, 1, 2, 0, 3),
                 half_B2 = __builtin_shufflevector(x->half_B, x->half_B, 2, 0, 1, 3);
    x->edge = (x->face_A > x->face_B ? x->face_A : x->face_B) + x->bias;
    x->edge_i = x->edge_j = -1;
    for (int i = 0; i < 3; i++) {
        // The three edges of B in the lanes.
        const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
        const usi_v4 l2 = 1 - x->R[i] * x->R[i],
                     s = usi_v4_abs(x->t[i2] * x->R[i1] - x->t[i1] * x->R[i2]) -
                         (A->half[i1] * x->Q[i2] + A->half[i2] * x->Q[i1] +
                          half_B1 * __builtin_shufflevector(x->Q[i], x->Q[i], 2, 0, 1, 3) +
                          half_B2 * __builtin_shufflevector(x->Q[i], x->Q[i], 1, 2, 0, 3));
        // s is still to be divided by the axis's length, sqrt(l2): most axes fail without that. Parallel
        // edges give the axis of a face.
        const usi_v4 square = s * s, bound = x->edge * x->edge * l2;
        const usi_v4i out = s > 0, is_better = x->edge < 0 ? out | (square < bound) : out & (square > bound);
        if (!usi_v4_any_of_three(is_better & (l2 >= 1e-6))) continue;
        for (int j = 0; j < 3; j++) {
            if (!(l2[j] >= 1e-6)) continue;
            const double distance = s[j] / sqrt(l2[j]);
            if (distance > x->edge) {
                x->edge = distance;
                x->edge_i = i;
                x->edge_j = j;
            }
        }
    }
}

// The contact points of the best face axis. Returns the smallest gap.
static inline double contact_on_face(const box_pair *x, us_manifold *m) {
    bool is_A = x->face_A >= x->face_B - x->bias;
    if (x->Q[x->best_A][x->best_B] > PARALLEL)
        is_A = face_area(&x->A, x->best_A) >= face_area(&x->B, x->best_B);
    double S[3][3], t[3];
    for (int i = 0; i < 3; i++) {
        t[i] = is_A ? x->t[i] : -x->t_B[i];
        for (int j = 0; j < 3; j++)
            S[i][j] = is_A ? x->R[i][j] : x->R[j][i];
    }
    return is_A ? faces_meet(&x->A, &x->B, x->best_A, x->side_A < 0 ? -1 : 1, S, t, true, x->margin,
                             x->tolerance, 0.4 * x->bias, m)
                : faces_meet(&x->B, &x->A, x->best_B, x->side_B < 0 ? 1 : -1, S, t, false, x->margin,
                             x->tolerance, 0.4 * x->bias, m);
}

// Without fmax and fmin, which are calls for the sake of what is not a number.
static inline double longest_half(const posed_box *b) {
    const double longer = b->half[1] > b->half[2] ? b->half[1] : b->half[2];
    return b->half[0] > longer ? b->half[0] : longer;
}

bool usi_contact_boxes(const us_geom *geom_A, const us_pose *X_WA, const us_geom *geom_B, const us_pose *X_WB,
                       double margin, us_manifold *m) {
    m->n = 0;
    // Member by member: an initialiser would clear all of it first.
    box_pair x;
    x.A = pose_box(geom_A, X_WA);
    x.B = pose_box(geom_B, X_WB);
    x.margin = margin;
    const posed_box *A = &x.A, *B = &x.B;
    x.t_W = us_vec3_sub(B->p, A->p);
    x.half_B = usi_v4_set(B->half[0], B->half[1], B->half[2]);
    const usi_v4 row_x = usi_v4_set(B->axis[0].x, B->axis[1].x, B->axis[2].x),
                 row_y = usi_v4_set(B->axis[0].y, B->axis[1].y, B->axis[2].y),
                 row_z = usi_v4_set(B->axis[0].z, B->axis[1].z, B->axis[2].z);
    for (int i = 0; i < 3; i++) {
        const us_vec3 a = A->axis[i];
        x.t[i] = us_vec3_dot(a, x.t_W);
        x.R[i] = a.x * row_x + a.y * row_y + a.z * row_z;
        x.Q[i] = usi_v4_abs(x.R[i]);
    }
    if (!find_face_axes(&x)) return true;

    const double size_A = longest_half(A), size_B = longest_half(B), size = size_A < size_B ? size_A : size_B;
    x.bias = USI_FACE_BIAS * size;
    x.tolerance = USI_CLIP_TOLERANCE * size;
    find_edge_axes(&x);
    if (x.edge_i >= 0 && x.edge > margin) return true;
    if (x.edge_i >= 0) {
        us_vec3 n = usi_vec3_unit(us_vec3_cross(A->axis[x.edge_i], B->axis[x.edge_j]), us_vec3_make(0, 0, 1));
        if (us_vec3_dot(n, x.t_W) > 0) n = us_vec3_scale(-1, n);
        return edges_meet(A, x.edge_i, B, x.edge_j, n, margin, m);
    }

    // Apart, only a point pair that reaches the axis's distance proves it to be the distance.
    double min_gap = contact_on_face(&x, m);
    return m->n > 0 && fabs(min_gap - (x.face_A > x.face_B ? x.face_A : x.face_B)) <= x.bias;
}

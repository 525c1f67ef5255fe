// Contact points of two boxes: the fifteen axes, then clipping.
//
// Two boxes are apart exactly when one of fifteen directions shows it: the three face normals of each, and the cross products of an
// edge of one with an edge of the other. The axis on which they overlap least (or are farthest apart) gives the normal.
//
//      face axis                       edge axis
//      +--------+   <- incident          \ /
//      |   B    |                         X     one point, where the two edges pass each other
//    ==o========o==  <- reference        / \    .
//
// On a face axis the incident face is clipped by the reference face (contact_poly.c): up to 8 corners, of which 4 are kept. A tilt of
// a millionth turns face against edge and A's face against B's, and with them every id, so an edge must be better than a face, and
// B's face better than A's, by more than a small bias.
//
// Where the boxes are apart and pass each other corner to corner, no axis of the fifteen shows the true distance; then, and for
// rounded boxes, the general method takes over.
#include "geom/contact.h"

typedef struct posed_box {
    us_vec3 axis[3];  // columns of R_WG
    double half[3];
    us_vec3 p;
} posed_box;

static posed_box pose_box(const us_geom *g, us_pose X) {
    us_mat3 R = us_quat_matrix(X.q);
    posed_box b = {{{R.m[0], R.m[3], R.m[6]}, {R.m[1], R.m[4], R.m[7]}, {R.m[2], R.m[5], R.m[8]}}, {g->size[0], g->size[1], g->size[2]}, X.p};
    return b;
}

// The face along +-axis k, counter-clockwise seen from outside.
static void face_of(const posed_box *b, int k, double side, usi_feature *f) {
    int i = (k + 1) % 3, j = (k + 2) % 3;
    us_vec3 u = us_vec3_scale(b->half[i], b->axis[i]), v = us_vec3_scale(side * b->half[j], b->axis[j]);
    f->normal = us_vec3_scale(side, b->axis[k]);
    us_vec3 c = usi_vec3_ahead(b->p, b->half[k], f->normal), low = us_vec3_sub(c, u), high = us_vec3_add(c, u);
    f->n = 4, f->id = (uint32_t)(2 * k + (side > 0));
    f->p[0] = us_vec3_sub(low, v), f->p[1] = us_vec3_sub(high, v), f->p[2] = us_vec3_add(high, v), f->p[3] = us_vec3_add(low, v);
}

// The face that looks along d best.
static void face_towards(const posed_box *b, us_vec3 d, usi_feature *f) {
    double a[3], best = -1;
    int k = 0;
    for (int i = 0; i < 3; i++) {
        a[i] = us_vec3_dot(b->axis[i], d);
        if (fabs(a[i]) > best) best = fabs(a[i]), k = i;
    }
    face_of(b, k, a[k] < 0 ? -1 : 1, f);
}

// The middle of the edge along axis k that lies farthest in direction d. *out_id tells which of the four.
static us_vec3 edge_towards(const posed_box *b, int k, us_vec3 d, uint32_t *out_id) {
    us_vec3 p = b->p;
    *out_id = (uint32_t)k << 2;
    for (int m = 1; m < 3; m++) {
        int i = (k + m) % 3;
        double side = us_vec3_dot(b->axis[i], d) < 0 ? -1 : 1;
        p = usi_vec3_ahead(p, side * b->half[i], b->axis[i]);
        if (side > 0) *out_id |= (uint32_t)m;
    }
    return p;
}

// Where an edge of A passes an edge of B; false when the lines pass beyond an end.
static bool edges_meet(const posed_box *A, int i, const posed_box *B, int j, us_vec3 n, double margin, usi_points *c) {
    uint32_t id_A, id_B;
    us_vec3 a = edge_towards(A, i, us_vec3_scale(-1, n), &id_A), b = edge_towards(B, j, n, &id_B), d = us_vec3_sub(b, a);
    us_vec3 u = A->axis[i], v = B->axis[j];
    double uv = us_vec3_dot(u, v), du = us_vec3_dot(d, u), dv = us_vec3_dot(d, v), w = 1 - uv * uv;
    double s = (du - uv * dv) / w, t = (uv * du - dv) / w, slack = 1 + 1e-9;
    if (!(fabs(s) <= A->half[i] * slack && fabs(t) <= B->half[j] * slack)) return false;
    usi_points_add(c, margin, n, usi_vec3_ahead(a, s, u), usi_vec3_ahead(b, t, v), 1ull << 52 | (uint64_t)id_A << 16 | id_B);
    return true;
}

void usi_contact_boxes(const us_geom *geom_A, us_pose X_WA, const us_geom *geom_B, us_pose X_WB, double margin, usi_points *c) {
    if (geom_A->radius > 0 || geom_B->radius > 0) {
        usi_contact_convex(geom_A, X_WA, geom_B, X_WB, margin, c);
        return;
    }
    posed_box A = pose_box(geom_A, X_WA), B = pose_box(geom_B, X_WB);
    us_vec3 t_W = us_vec3_sub(B.p, A.p);
    double R[3][3], Q[3][3], t[3];
    for (int i = 0; i < 3; i++) {
        t[i] = us_vec3_dot(A.axis[i], t_W);
        for (int j = 0; j < 3; j++) R[i][j] = us_vec3_dot(A.axis[i], B.axis[j]), Q[i][j] = fabs(R[i][j]);
    }
    double face_A = -INFINITY, face_B = -INFINITY, side_A = 0, side_B = 0;
    int best_A = 0, best_B = 0;
    for (int i = 0; i < 3; i++) {
        double s = fabs(t[i]) - (A.half[i] + Q[i][0] * B.half[0] + Q[i][1] * B.half[1] + Q[i][2] * B.half[2]);
        if (s > face_A) face_A = s, best_A = i, side_A = t[i];
    }
    if (!(face_A <= margin)) return;
    for (int j = 0; j < 3; j++) {
        double d = t[0] * R[0][j] + t[1] * R[1][j] + t[2] * R[2][j];
        double s = fabs(d) - (B.half[j] + Q[0][j] * A.half[0] + Q[1][j] * A.half[1] + Q[2][j] * A.half[2]);
        if (s > face_B) face_B = s, best_B = j, side_B = d;
    }
    if (!(face_B <= margin)) return;
    double size = fmin(fmax(A.half[0], fmax(A.half[1], A.half[2])), fmax(B.half[0], fmax(B.half[1], B.half[2])));
    double bias = USI_FACE_BIAS * size, tolerance = USI_CLIP_TOLERANCE * size, face = fmax(face_A, face_B);
    double edge = face + bias;
    int edge_i = -1, edge_j = -1;
    for (int i = 0; i < 3; i++) {
        int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
        for (int j = 0; j < 3; j++) {
            int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
            double l2 = 1 - R[i][j] * R[i][j];
            if (l2 < 1e-6) continue;  // parallel edges: a face axis says the same
            double s = fabs(t[i2] * R[i1][j] - t[i1] * R[i2][j]);
            s -= A.half[i1] * Q[i2][j] + A.half[i2] * Q[i1][j] + B.half[j1] * Q[i][j2] + B.half[j2] * Q[i][j1];
            // s is still to be divided by the axis's length, sqrt(l2): most axes fail without that.
            if (s > 0 ? s * s > edge * fabs(edge) * l2 : edge < 0 && s * s < edge * edge * l2) {
                edge = s / sqrt(l2), edge_i = i, edge_j = j;
            }
        }
    }
    if (edge_i >= 0 && edge > margin) return;
    int32_t first = c->n;
    if (edge_i >= 0) {
        us_vec3 n = usi_vec3_unit(us_vec3_cross(A.axis[edge_i], B.axis[edge_j]), us_vec3_make(0, 0, 1));
        if (us_vec3_dot(n, t_W) > 0) n = us_vec3_scale(-1, n);
        if (edges_meet(&A, edge_i, &B, edge_j, n, margin, c)) return;
    } else {
        bool is_A = face_A >= face_B - bias;
        usi_feature ref, inc;
        if (is_A) {
            face_of(&A, best_A, side_A < 0 ? -1 : 1, &ref);
            face_towards(&B, us_vec3_scale(-1, ref.normal), &inc);
        } else {
            face_of(&B, best_B, side_B < 0 ? 1 : -1, &ref);
            face_towards(&A, us_vec3_scale(-1, ref.normal), &inc);
        }
        double least = usi_clip_face(&ref, &inc, is_A, tolerance, margin, c);
        // Apart, only a point pair that reaches the axis's distance proves it to be the distance.
        if (c->n > first && fabs(least - (is_A ? face_A : face_B)) <= bias) {
            usi_points_keep_flat(c, first, USI_FACE_POINTS, tolerance);
            return;
        }
        c->n = first;
    }
    usi_contact_convex(geom_A, X_WA, geom_B, X_WB, margin, c);
}

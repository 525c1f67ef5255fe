// Contact points in closed form: spheres and capsules with each other, with boxes and cylinders, and what
// rests on a half space.
//
// These are most of the pairs of a scene, and most of the time they do not touch: each function first finds
// the one number that says so, without a division or a root where that can be. Points go straight to the
// manifold. Whatever has no unique answer (segments that cross, spheres with a common centre) or needs a
// choice among many points is left to the general methods.
#include "geom/contact_candidates.h"

static inline void put(us_manifold *m, us_vec3 n, us_vec3 p_A, us_vec3 p_B, double gap, uint64_t id) {
    int32_t i = m->n++;
    m->normal[i] = n;
    m->p_A[i] = p_A;
    m->p_B[i] = p_B;
    m->gap[i] = gap;
    m->feature[i] = id;
}

static inline double clamp(double x, double limit) { return x < -limit ? -limit : (x > limit ? limit : x); }

// ---- Half space ----

static bool box_on_plane(const us_geom *A, const us_pose *X_WA, us_vec3 n, double height, double margin,
                         us_manifold *m) {
    if (A->radius > 0) return false;
    us_mat3 R = us_quat_matrix(X_WA->q);
    us_vec3 d = usi_mat3_mul_transposed(&R, n);
    const double *s = A->size;
    double x = s[0] * d.x, y = s[1] * d.y, z = s[2] * d.z;
    if (!(height - fabs(x) - fabs(y) - fabs(z) <= margin)) return true;
    // The corners of the face that looks down: all with its sign along the axis k.
    int k = fabs(d.z) >= fabs(d.x) && fabs(d.z) >= fabs(d.y) ? 2 : (fabs(d.x) >= fabs(d.y) ? 0 : 1);
    int low = (k == 0 ? d.x : (k == 1 ? d.y : d.z)) > 0 ? 0 : 1;
    for (int corner = 0; corner < 8; corner++) {
        if ((corner >> k & 1) != low) continue;
        double gap = height + (corner & 1 ? x : -x) + (corner & 2 ? y : -y) + (corner & 4 ? z : -z);
        if (!(gap <= margin)) continue;
        us_vec3 v =
            us_vec3_make(corner & 1 ? s[0] : -s[0], corner & 2 ? s[1] : -s[1], corner & 4 ? s[2] : -s[2]);
        us_vec3 p = us_vec3_add(X_WA->p, us_mat3_mul_vec(&R, v));
        put(m, n, p, usi_vec3_add_scaled(p, -gap, n), gap, (uint64_t)(USI_ID_CORNER + corner));
    }
    return true;
}

static bool on_plane(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                     double margin, us_manifold *m) {
    const us_vec3 n = usi_quat_z(X_WB->q), at = usi_vec3_add_scaled(X_WB->p, B->radius, n);
    m->n = 0;
    if (A->kind == US_GEOM_BOX)
        return box_on_plane(A, X_WA, n, us_vec3_dot(n, us_vec3_sub(X_WA->p, at)), margin, m);
    usi_plane_contact f;
    if (!usi_contact_on_plane(A, usi_v4_from(X_WA->p), usi_v4_from(usi_quat_z(X_WA->q)), usi_v4_from(n),
                              usi_v4_from(at), margin, &f))
        return false;
    for (int32_t i = 0; i < f.n; i++) {
        us_vec3 p = usi_v4_vec3(f.p[i]);
        put(m, n, p, usi_vec3_add_scaled(p, -f.gap[i], n), f.gap[i], f.feature[i]);
    }
    return true;
}

// ---- Spheres and capsules ----

// Two segments pA + s u and pB + t v, |s| <= a, |t| <= b. The foot of the common perpendicular is clamped to
// one segment, then to the other, then once more to the first, which is exact (Ericson, Real-time collision
// detection, 5.1.9).
static bool on_segment(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                       double margin, us_manifold *m) {
    us_vec3 r = us_vec3_sub(X_WA->p, X_WB->p), e = us_vec3_make(0, 0, 0), f = e, d = r;
    double reach = A->radius + B->radius + margin, a = 0, b = 0, s = 0, t = 0, cosine = 0;
    m->n = 0;
    if (B->kind == US_GEOM_CAPSULE) {
        b = B->size[0];
        f = usi_quat_z(X_WB->q);
        double fr = us_vec3_dot(f, r);
        if (A->kind == US_GEOM_CAPSULE) {
            a = A->size[0];
            e = usi_quat_z(X_WA->q);
            // Far apart, as most are.
            double far = reach + a + b;
            if (us_vec3_dot(r, r) > far * far) return true;
            double er = us_vec3_dot(e, r), det;
            cosine = us_vec3_dot(e, f);
            det = 1 - cosine * cosine;
            s = det > 1e-12 ? clamp((cosine * fr - er) / det, a) : clamp(-er, a);
            t = fr + s * cosine;
            if (fabs(t) > b) {
                t = clamp(t, b);
                s = clamp(t * cosine - er, a);
            }
        } else {
            t = clamp(fr, b);
        }
        d = usi_vec3_add_scaled(usi_vec3_add_scaled(r, s, e), -t, f);
    }
    double dd = us_vec3_dot(d, d);
    if (dd > reach * reach) return true;
    // Crossing axes have no normal of their own; those side by side touch in two places.
    if (dd <= 1e-16 * reach * reach || (fabs(cosine) > 0.995 && a > 0 && b > 0)) return false;
    double distance = sqrt(dd);
    us_vec3 n = us_vec3_scale(1 / distance, d);
    us_vec3 p_A = usi_vec3_add_scaled(usi_vec3_add_scaled(X_WA->p, s, e), -A->radius, n),
            p_B = usi_vec3_add_scaled(usi_vec3_add_scaled(X_WB->p, t, f), B->radius, n);
    put(m, n, p_A, p_B, distance - A->radius - B->radius, USI_ID_POINT);
    return true;
}

// A sphere's centre seen from a box or a cylinder: the nearest point of the core by clamping, or the nearest
// face from inside.
static bool on_box_or_cylinder(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                               double margin, us_manifold *m) {
    us_mat3 R = us_quat_matrix(X_WB->q);
    us_vec3 d = us_vec3_sub(X_WA->p, X_WB->p), p = usi_mat3_mul_transposed(&R, d), n;
    double reach = A->radius + B->radius + margin, size, distance;
    const double *h = B->size;
    m->n = 0;
    if (B->kind == US_GEOM_BOX) {
        double x = fabs(p.x) - h[0], y = fabs(p.y) - h[1], z = fabs(p.z) - h[2];
        us_vec3 out = us_vec3_make(x > 0 ? x : 0, y > 0 ? y : 0, z > 0 ? z : 0);
        double dd = us_vec3_dot(out, out);
        if (dd > reach * reach) return true;
        size = h[0] + h[1] + h[2] + reach;
        if (dd > 1e-20 * size * size) {
            distance = sqrt(dd);
            n = us_vec3_scale(1 / distance, out);
        } else {
            // Nearest to which face? In the order of the axes.
            bool is_x = x >= y && x >= z, is_y = !is_x && y >= z;
            distance = is_x ? x : (is_y ? y : z);
            n = us_vec3_make(is_x, is_y, !is_x && !is_y);
        }
        n = us_vec3_make(copysign(n.x, p.x), copysign(n.y, p.y), copysign(n.z, p.z));
    } else {
        double rho = sqrt(p.x * p.x + p.y * p.y), side = rho - h[0], end = fabs(p.z) - h[1],
               up = p.z < 0 ? -1 : 1;
        if (side > reach || end > reach) return true;
        size = h[0] + h[1] + reach;
        us_vec3 radial = rho > 1e-12 * size ? us_vec3_make(p.x / rho, p.y / rho, 0) : us_vec3_make(1, 0, 0);
        double corner2 = side * side + end * end;
        if (side > 0 && end > 0 && corner2 > 1e-20 * size * size) {
            distance = sqrt(corner2);
            n = us_vec3_make(radial.x * side / distance, radial.y * side / distance, up * end / distance);
        } else if (side > end) {
            distance = side;
            n = radial;
        } else {
            distance = end;
            n = us_vec3_make(0, 0, up);
        }
    }
    double gap = distance - A->radius - B->radius;
    if (!(gap <= margin)) return true;
    n = us_mat3_mul_vec(&R, n);
    us_vec3 p_A = usi_vec3_add_scaled(X_WA->p, -A->radius, n);
    put(m, n, p_A, usi_vec3_add_scaled(p_A, -gap, n), gap, USI_ID_POINT);
    return true;
}

// ---- The pair ----

// A's kind is not behind B's.
static bool ordered(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                    double margin, us_manifold *m) {
    bool has_segment = usi_has_core_segment(A->kind);
    switch (B->kind) {
    case US_GEOM_SPHERE:
    case US_GEOM_CAPSULE:
        return on_segment(A, X_WA, B, X_WB, margin, m);
    case US_GEOM_BOX:
        if (A->kind == US_GEOM_BOX)
            return A->radius == 0 && B->radius == 0 && usi_contact_boxes(A, X_WA, B, X_WB, margin, m);
        return A->kind == US_GEOM_SPHERE && on_box_or_cylinder(A, X_WA, B, X_WB, margin, m);
    case US_GEOM_CYLINDER:
        return A->kind == US_GEOM_SPHERE && on_box_or_cylinder(A, X_WA, B, X_WB, margin, m);
    case US_GEOM_HALF_SPACE:
        return (has_segment || A->kind == US_GEOM_BOX) && on_plane(A, X_WA, B, X_WB, margin, m);
    case US_GEOM_HEIGHT_FIELD:
        if (A->kind == US_GEOM_BOX) return usi_contact_terrain_box(A, X_WA, B, X_WB, margin, m);
        return has_segment && usi_contact_terrain(A, X_WA->p, usi_quat_z(X_WA->q), B, X_WB, margin, m);
    default:
        return false;
    }
}

bool usi_contact_closed_form(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                             double margin, us_manifold *out) {
    if (A->kind <= B->kind) return ordered(A, X_WA, B, X_WB, margin, out);
    if (!ordered(B, X_WB, A, X_WA, margin, out)) return false;
    for (int32_t i = 0; i < out->n; i++) {
        us_vec3 t = out->p_A[i];
        out->p_A[i] = out->p_B[i];
        out->p_B[i] = t;
        out->normal[i] = us_vec3_scale(-1, out->normal[i]);
    }
    return true;
}

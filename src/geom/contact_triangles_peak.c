// Contact of a convex shape with a peak of a surface of triangles: a corner that pokes into the shape.
#include "geom/geom__triangles.h"

// The nearest point x of an ellipsoid of half axes e to q is where q - x = t n(x), n the surface's normal,
// not of unit length: x_i = e_i^2 q_i / (t + e_i^2). So t is the largest root of F(t) = sum (e_i q_i / (t +
// e_i^2))^2 - 1, which falls and is convex: Newton's method from the left of it ends there. False near the
// middle, where there is no such root.
static bool ellipsoid_distance(const double e[3], us_vec3 q, double *out_distance, us_vec3 *out_outward) {
    const double y[3] = {q.x, q.y, q.z}, min_gap = fmin(e[0], fmin(e[1], e[2]));
    double t = -INFINITY, n[3], square = 0;
    for (int i = 0; i < 3; i++)
        t = fmax(t, e[i] * (fabs(y[i]) - e[i]));
    if (!(t > (1e-6 - 1) * min_gap * min_gap)) return false;
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

// Signed distance of a point from the shape, and the outward normal of the shape's surface nearest to it.
static double point_distance(const usi_surface_query *t, us_vec3 v, us_vec3 *out_outward) {
    const us_geom *g = t->A;
    const us_mat3 *R = &t->R_FA;
    us_vec3 q_F = us_vec3_sub(v, t->X_FA.p);
    us_vec3 q = us_vec3_make(us_vec3_dot(usi_column(R, 0), q_F), us_vec3_dot(usi_column(R, 1), q_F),
                             us_vec3_dot(usi_column(R, 2), q_F)),
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

bool usi_find_peak(usi_surface_query *t, us_vec3 v, uint32_t index, us_vec3 face_normal, usi_peak *out) {
    if (v.x < t->box.min.x || v.x > t->box.max.x || v.y < t->box.min.y || v.y > t->box.max.y ||
        v.z < t->box.min.z)
        return false;
    // The flat side of the shape that a corner pokes into depends on the face it is seen from: such a corner
    // is tested with each, and equal points are one.
    uint32_t *seen = &t->seen[index % USI_SEEN_VERTICES];
    if (*seen == index + 1) return false;
    const us_geom_kind kind = t->A->kind;
    us_vec3 outward = face_normal;
    double distance = NAN;
    if (kind == US_GEOM_SPHERE || kind == US_GEOM_CAPSULE || kind == US_GEOM_CYLINDER) {
        distance = point_distance(t, v, &outward);
        if (!(distance <= t->margin)) *seen = index + 1;
        if (!(distance <= t->margin)) return false;
    }

    // Normal: of a flat face of the shape above the peak, wherever the peak is under it; else that of the
    // shape at the point nearest to the peak.
    const usi_feature *A = usi_surface_feature(t, us_vec3_scale(-1, face_normal));
    us_vec3 normal = us_vec3_scale(-1, A->normal);
    const bool is_flat = A->n > 2;
    if (!is_flat) {
        *seen = index + 1;
        // Most peaks are out of reach along the line to the shape's middle.
        us_vec3 away = usi_vec3_unit(us_vec3_sub(t->X_FA.p, v), face_normal);
        if (isnan(distance) && usi_lowest_height(t, away) - us_vec3_dot(away, v) > t->margin + 1e-9 * t->size)
            return false;
        if (isnan(distance)) distance = point_distance(t, v, &outward);
        if (!(distance <= t->margin)) return false;
        normal = us_vec3_scale(-1, outward);
    }
    *out = (usi_peak){v, normal, face_normal, index, is_flat, distance};
    return true;
}

void usi_collide_peak(usi_surface_query *t, const usi_peak *p) {
    const uint64_t id = (uint64_t)p->index << 32 | USI_SURFACE_ID_PEAK;
    if (!p->is_flat) {
        usi_surface_add(t, p->normal, usi_vec3_add_scaled(p->v, p->distance, p->normal), p->v, id);
        return;
    }
    usi_feature peak;
    peak.n = 1;
    peak.id = 0;
    peak.normal = p->normal;
    peak.p[0] = p->v;
    usi_candidates q;
    q.n = 0;
    usi_clip_face(usi_surface_feature(t, us_vec3_scale(-1, p->face_normal)), &peak, true, 0, t->margin, &q);
    if (q.n > 0) usi_surface_add(t, p->normal, q.at[0].p_A, q.at[0].p_B, id);
}

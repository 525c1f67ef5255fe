// Contact with a corner of a height field that is higher than its six neighbours: a peak that pokes into the
// shape. The shape's normal there must lie in the cone that the six edges leave free.
#include "geom/geom__terrain.h"

// Whether the six edges that leave the corner v = (i, j) all fall away from the plane across n, strictly:
// flat ground and ridges have their own contacts.
static inline bool is_peak_along(const us_height_field *f, int32_t i, int32_t j, us_vec3 v, us_vec3 n) {
    static const int step[6][2] = {{1, 0}, {1, 1}, {0, 1}, {-1, 0}, {-1, -1}, {0, -1}};
    const double *h = f->height + (size_t)j * (size_t)f->n_x + i;
    for (int k = 0; k < 6; k++) {
        us_vec3 edge =
            us_vec3_make(step[k][0] * f->dx, step[k][1] * f->dy, h[step[k][0] + step[k][1] * f->n_x] - v.z);
        if (!(us_vec3_dot(n, edge) < -1e-9 * (f->dx + f->dy))) return false;
    }
    return true;
}

static inline void add_peak(usi_terrain_contacts *g, int32_t i, int32_t j, us_vec3 v, us_vec3 n,
                            double distance) {
    usi_terrain_add(g, n, usi_vec3_add_scaled(v, distance, n), distance,
                    (uint64_t)j * (uint64_t)g->f->n_x + (uint64_t)i, USI_TERRAIN_ID_PEAK);
}

// Signed distance from the segment's surface to a point at d from its centre, z along its axis, and the
// normal there, from the point to the shape. False on the axis, where there is no normal.
static inline bool distance_to_segment(const usi_core_segment *s, us_vec3 d, double z, double *out_distance,
                                       us_vec3 *out_normal) {
    const double over = fabs(z) - s->half;
    us_vec3 radial = usi_vec3_add_scaled(d, -z, s->a), axial = z < 0 ? us_vec3_scale(-1, s->a) : s->a, n;
    double rho = us_vec3_norm(radial), out = rho - s->r, distance;
    if (!(rho > 1e-12 * s->size) && over <= 0) return false;
    radial = rho > 0 ? us_vec3_scale(1 / rho, radial) : us_vec3_make(0, 0, 0);
    if (over > 0 && out > 0) {
        distance = sqrt(over * over + out * out);
        n = us_vec3_scale(1 / distance, us_vec3_add(us_vec3_scale(out, radial), us_vec3_scale(over, axial)));
    } else if (s->r == 0 || out > over) {
        distance = out;
        n = radial;
    } else {
        distance = over;
        n = axial;
    }
    *out_normal = us_vec3_scale(-1, n);
    *out_distance = distance;
    return true;
}

void usi_terrain_peak(usi_terrain_contacts *g, int32_t i, int32_t j) {
    const usi_core_segment *s = &g->s;
    // Corner within reach.
    us_vec3 v = usi_field_point(g->f, i, j), d = us_vec3_sub(v, s->c), n;
    double z = us_vec3_dot(s->a, d), near = s->r + s->R + g->reach, distance;
    if (fabs(z) > s->half + s->R + g->margin || (g->is_edge && z > s->half)) return;
    if (us_vec3_dot(d, d) - z * z > near * near) return;

    // Normal and distance; the segment itself may be below the peak.
    if (!distance_to_segment(s, d, z, &distance, &n)) return;
    if (s->r == 0 && n.z < 0) {
        n = us_vec3_scale(-1, n);
        distance = -distance;
    }
    distance -= s->R;
    if (!(distance <= g->margin) || !(us_vec3_dot(n, n) > 0.5)) return;
    if (is_peak_along(g->f, i, j, v, n)) add_peak(g, i, j, v, n, distance);
}

void usi_terrain_peaks_in_face(usi_terrain_contacts *g, const usi_cell_window *w, us_vec3 c,
                               const us_vec3 axis[3], const double half[3], int k, us_vec3 out) {
    const us_height_field *f = g->f;
    int u = (k + 1) % 3, v = (k + 2) % 3;
    us_vec3 n = us_vec3_scale(-1, out);
    double outside = half[k] + g->s.R;
    for (int32_t j = w->j0 + 1; j <= w->j1; j++) {
        const double *h = f->height + (size_t)j * (size_t)f->n_x;
        for (int32_t i = w->i0 + 1; i <= w->i1; i++) {
            us_vec3 p = us_vec3_make((i - w->half_x) * f->dx, (j - w->half_y) * f->dy, h[i]);
            us_vec3 d = us_vec3_sub(p, c);
            double gap = us_vec3_dot(out, d) - outside;
            if (!(gap <= g->margin)) continue;
            if (fabs(us_vec3_dot(axis[u], d)) > half[u] || fabs(us_vec3_dot(axis[v], d)) > half[v]) continue;
            if (is_peak_along(f, i, j, p, n)) add_peak(g, i, j, p, n, gap);
        }
    }
}

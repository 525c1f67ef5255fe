// Contact points of a box on a height field: the closed form for boxes that lie more or less flat.
//
// Such a box touches with the corners of its lower face, with the edges of that face, or with the face itself
// where a peak pokes into it. The four edges are core segments of no radius (or the box's own), each with its
// first corner.
#include "geom/geom__terrain.h"

// Contact of the four edges of a box's lower face k, whose middle is `middle`. False: beyond this method.
static inline bool collide_face_edges(usi_terrain_contacts *g, const us_height_field *f, us_vec3 middle,
                                      const us_vec3 axis[3], const double half[3], int k, double grow) {
    int u = (k + 1) % 3, v = (k + 2) % 3;
    usi_core_segment *s = &g->s;
    // Round the face: along +u, +v, -u, -v, each edge from its first corner.
    for (int e = 0; e < 4; e++) {
        int run = e & 1 ? v : u, off = e & 1 ? u : v;
        double sign = e < 2 ? 1 : -1, side = e == 0 || e == 3 ? -1 : 1;
        s->a = us_vec3_scale(sign, axis[run]);
        s->half = half[run];
        s->size = s->half + s->R;
        s->c = usi_vec3_add_scaled(middle, side * half[off], axis[off]);
        g->prefix = (uint64_t)(4 * k + e + 1) << 58;
        double low = s->c.z - s->half * fabs(s->a.z) - grow;
        usi_cell_window we;
        if (low > f->high || usi_terrain_cells_under(f, s->c, s->half * fabs(s->a.x) + grow,
                                                     s->half * fabs(s->a.y) + grow, &we) != USI_COVER_SOME)
            continue;
        if (!usi_terrain_collide_segment(g, low, &we)) return false;
    }
    return true;
}

// The box's lower face: k of its axis, when it is within some 25 degrees of the ground, so that no other face
// or edge can touch; else -1. dx, dy: slopes of the window as differences of heights.
static inline int lower_face(const us_vec3 axis[3], const double half[3], const usi_cell_window *w,
                             const double dx[2], const double dy[2]) {
    double sx = fmax(fabs(dx[0]), fabs(dx[1])) * w->per_x, sy = fmax(fabs(dy[0]), fabs(dy[1])) * w->per_y;
    int k = fabs(axis[2].z) > 0.8 ? 2 : (fabs(axis[0].z) > 0.8 ? 0 : 1);
    bool is_flat = fabs(axis[k].z) > 0.9 && sx * sx + sy * sy < 0.2;
    return is_flat && half[0] > 0 && half[1] > 0 && half[2] > 0 ? k : -1;
}

bool usi_contact_terrain_box(const us_geom *A, const us_pose *X_WA, const us_geom *B, const us_pose *X_WB,
                             double margin, us_manifold *out) {
    const us_height_field *f = B->field;
    usi_terrain_contacts g;
    us_mat3 R = us_quat_matrix(X_WB->q), R_WA = us_quat_matrix(X_WA->q);
    us_vec3 c = usi_mat3_mul_transposed(&R, us_vec3_sub(X_WA->p, X_WB->p)), axis[3];
    const double *half = A->size;
    for (int k = 0; k < 3; k++)
        axis[k] = usi_mat3_mul_transposed(&R, us_vec3_make(R_WA.m[k], R_WA.m[3 + k], R_WA.m[6 + k]));

    g.f = f;
    g.n = 0;
    g.margin = margin + B->radius;
    g.is_edge = true;
    g.reach = g.margin + fmin(half[0], fmin(half[1], half[2]));
    out->n = 0;

    // Box, the margin included.
    double grow = A->radius + g.margin, ax = grow, ay = grow, az = grow;
    for (int k = 0; k < 3; k++) {
        ax += half[k] * fabs(axis[k].x);
        ay += half[k] * fabs(axis[k].y);
        az += half[k] * fabs(axis[k].z);
    }
    double bottom = c.z - az;
    if (bottom > f->high) return true;
    usi_cell_window w;
    usi_cell_cover under = usi_terrain_cells_under(f, c, ax, ay, &w);
    if (under != USI_COVER_SOME) return under == USI_COVER_NONE;
    double dx[2], dy[2];
    if (usi_terrain_slopes(f, &w, dx, dy) < bottom) return true;

    // Edges of the lower face, then peaks in it.
    const int k = lower_face(axis, half, &w, dx, dy);
    if (k < 0) return false;
    us_vec3 down = axis[k].z > 0 ? us_vec3_scale(-1, axis[k]) : axis[k];
    us_vec3 middle = usi_vec3_add_scaled(c, half[k], down);
    usi_core_segment *s = &g.s;
    s->r = 0;
    s->R = A->radius;
    s->n_end = 2;
    if (!collide_face_edges(&g, f, middle, axis, half, k, grow)) return false;
    g.prefix = (uint64_t)(4 * k) << 58;
    usi_terrain_peaks_in_face(&g, &w, c, axis, half, k, down);

    // All of the box deep below the surface.
    if (g.n == 0 && c.z < f->high) {
        s->c = c;
        s->a = axis[k];
        s->half = half[k];
        s->R = A->radius;
        s->size = s->half + s->R;
        usi_terrain_add_deep(&g, &w);
    }
    usi_terrain_to_manifold(&g, &R, B, X_WB, out);
    return true;
}

// Which points of a shape on a surface of triangles make its manifold.
//
// Points in one plane are those of two flat faces: four of them, as on a half space, so that a body rests on
// a flat mesh as on a plane. Of what is left at most US_MANIFOLD_POINTS stay: the deepest, then always the
// one that is farthest from those chosen; a point that is less deep counts as nearer.
#include "geom/geom__triangles.h"

// Slope at which depth counts against distance: 1 mm less deep is as good as 1 m nearer.
#define GAP_SLOPE 1e-3
// What is one plane: difference of unit normals, and distance over the size.
#define SAME_PLANE 1e-6

static bool is_same_plane(const usi_surface_query *t, const usi_candidate *a, const usi_candidate *b) {
    us_vec3 e = us_vec3_sub(a->normal, b->normal);
    return us_vec3_dot(e, e) < SAME_PLANE * SAME_PLANE &&
           fabs(us_vec3_dot(a->normal, us_vec3_sub(a->p_B, b->p_B))) < SAME_PLANE * t->size;
}

// The exact lowest point of a rim or a rounded edge stands for the drawn points next to it.
static void drop_near_lowest(usi_surface_query *t) {
    usi_candidate *p = t->c->at;
    const double near = 0.1 * t->size;
    for (int32_t i = t->first; i < t->c->n; i++) {
        if ((p[i].id & 0xffffff) != USI_SURFACE_ID_LOWEST || p[i].gap == INFINITY) continue;
        for (int32_t j = t->first; j < t->c->n; j++) {
            us_vec3 d = us_vec3_sub(p[j].p_A, p[i].p_A);
            if (j != i && us_vec3_dot(d, d) < near * near && p[j].gap >= p[i].gap &&
                is_same_plane(t, &p[i], &p[j]))
                p[j].gap = INFINITY;
        }
    }
    int32_t n = t->first;
    for (int32_t i = t->first; i < t->c->n; i++)
        if (p[i].gap < INFINITY) p[n++] = p[i];
    t->c->n = n;
}

// Of points that are equally deep the reduction begins with the first: that is to be an outer one, the
// farthest from their mean.
static void put_outer_first(usi_candidates *c) {
    us_vec3 sum = us_vec3_make(0, 0, 0);
    for (int32_t i = 0; i < c->n; i++)
        sum = us_vec3_add(sum, c->at[i].p_A);
    const us_vec3 mean = us_vec3_scale(1.0 / c->n, sum);
    int32_t outer = 0;
    double max_square = -1;
    for (int32_t i = 0; i < c->n; i++) {
        us_vec3 d = us_vec3_sub(c->at[i].p_A, mean);
        if (us_vec3_dot(d, d) <= max_square) continue;
        max_square = us_vec3_dot(d, d);
        outer = i;
    }
    const usi_candidate first = c->at[0];
    c->at[0] = c->at[outer];
    c->at[outer] = first;
}

static void reduce_planes(usi_surface_query *t) {
    usi_candidates all = *t->c, plane;
    bool is_done[USI_CANDIDATES] = {false};
    t->c->n = t->first;
    for (int32_t i = t->first; i < all.n; i++) {
        if (is_done[i]) continue;
        plane.n = 0;
        for (int32_t j = i; j < all.n; j++) {
            if (is_done[j] || !is_same_plane(t, &all.at[i], &all.at[j])) continue;
            is_done[j] = true;
            plane.at[plane.n++] = all.at[j];
        }
        if (plane.n > USI_FACE_POINTS) put_outer_first(&plane);
        usi_candidates_reduce_face(&plane, 0, USI_FACE_POINTS, t->tolerance);
        for (int32_t j = 0; j < plane.n; j++)
            t->c->at[t->c->n++] = plane.at[j];
    }
}

// Distance of two points, where one size is a turn of the normal by 1 rad.
static double apart(const usi_surface_query *t, const usi_candidate *a, const usi_candidate *b) {
    return us_vec3_norm(us_vec3_sub(a->p_B, b->p_B)) +
           t->size * us_vec3_norm(us_vec3_sub(a->normal, b->normal));
}

static void keep_farthest(usi_surface_query *t) {
    usi_candidate *p = t->c->at + t->first;
    const int32_t n = t->c->n - t->first;
    for (int32_t k = 0; k < US_MANIFOLD_POINTS; k++) {
        int32_t best = k;
        double score = -INFINITY;
        for (int32_t i = k; i < n; i++) {
            double near = k == 0 ? 0 : INFINITY;
            for (int32_t j = 0; j < k; j++)
                near = fmin(near, apart(t, &p[i], &p[j]));
            near -= p[i].gap / GAP_SLOPE;
            if (near > score) {
                score = near;
                best = i;
            }
        }
        usi_candidate other = p[k];
        p[k] = p[best];
        p[best] = other;
    }
    t->c->n = t->first + US_MANIFOLD_POINTS;
}

void usi_surface_reduce(usi_surface_query *t) {
    if (t->c->n - t->first > 1) drop_near_lowest(t);
    if (t->c->n - t->first > USI_FACE_POINTS) reduce_planes(t);
    if (t->c->n - t->first > US_MANIFOLD_POINTS) keep_farthest(t);
}

// Ray, and the span of it that lies in a shape: shared by rays against all kinds. See ray.c.
#ifndef USI_GEOM_RAY_H
#define USI_GEOM_RAY_H

#include "geom/geom.h"

typedef struct usi_ray {
    us_vec3 o, d;  // a point and the unit direction, in the shape's frame
} usi_ray;

typedef struct usi_ray_span {
    double in, out;  // empty when in > out
    us_vec3 normal;  // outward unit normal where the line enters
} usi_ray_span;

#define USI_RAY_MISS ((us_ray_hit){INFINITY, {0, 0, 0}})

static inline usi_ray_span usi_ray_span_all(usi_ray l) {
    return (usi_ray_span){-INFINITY, INFINITY, us_vec3_scale(-1, l.d)};
}
static inline usi_ray_span usi_ray_span_none(usi_ray l) {
    return (usi_ray_span){INFINITY, -INFINITY, us_vec3_scale(-1, l.d)};
}
static inline bool usi_ray_span_is_empty(usi_ray_span s) { return !(s.in <= s.out); }
static inline us_vec3 usi_ray_at(usi_ray l, double t) { return us_vec3_add(l.o, us_vec3_scale(t, l.d)); }

static inline us_vec3 usi_unit_or(us_vec3 a, us_vec3 otherwise) {
    double n = us_vec3_norm(a);
    return n > 0 ? us_vec3_scale(1 / n, a) : otherwise;
}

// Cuts a span by the side n . x <= c of a plane.
static inline void usi_ray_span_cut(usi_ray_span *s, usi_ray l, us_vec3 n, double c) {
    double room = c - us_vec3_dot(n, l.o), speed = us_vec3_dot(n, l.d);
    if (speed == 0) {
        if (room < 0) s->out = -INFINITY;
        return;
    }
    double t = room / speed;
    if (speed > 0) {
        if (t < s->out) s->out = t;
    } else if (t > s->in) {
        s->in = t;
        s->normal = n;
    }
}

// Cuts a span by the slab -h <= n . x <= h.
static inline void usi_ray_span_cut_slab(usi_ray_span *s, usi_ray l, us_vec3 n, double h) {
    usi_ray_span_cut(s, l, n, h);
    usi_ray_span_cut(s, l, us_vec3_scale(-1, n), h);
}

static inline us_ray_hit usi_ray_span_hit(usi_ray_span s, usi_ray l, double range) {
    if (usi_ray_span_is_empty(s) || s.out < 0 || s.in > range || (s.out == 0 && s.in < 0))
        return USI_RAY_MISS;
    if (s.in < 0) return (us_ray_hit){0, us_vec3_scale(-1, l.d)};
    return (us_ray_hit){s.in, s.normal};
}

// Span of the infinite cylinder of radius r about the line through p along the unit vector u.
usi_ray_span usi_ray_span_tube(usi_ray l, us_vec3 p, us_vec3 u, double r);
// Span of a triangle swept by a sphere of radius r.
usi_ray_span usi_ray_span_triangle(usi_ray l, const us_vec3 *corner, double r);

// The first surface within `range` along the line from its point o; `radius` is added all round.
us_ray_hit usi_ray_cast_mesh(const us_mesh *mesh, usi_ray l, double range, double radius);
// The plain twin of that, by the binary tree alone. Bit for bit the same hits.
us_ray_hit usi_ray_cast_mesh_plain(const us_mesh *mesh, usi_ray l, double range, double radius);
// Gives a mesh what the fast one needs, where it pays. US_ERR_MEMORY, and nothing is changed.
us_status usi_mesh_widen(us_mesh *mesh);
void usi_mesh_narrow(us_mesh *mesh);
us_ray_hit usi_ray_cast_field(const us_height_field *f, usi_ray l, double range, double radius);
// Many rays, without a radius, each as far as its own range: the hits of the one above, bit for bit.
void usi_ray_cast_field_many(const us_height_field *f, int32_t n, const usi_ray *l, const double *range,
                             us_ray_hit *out_hit);
// The plain twin of that, without a radius: over every cell. Bit for bit the same hits.
us_ray_hit usi_ray_cast_field_by_cells(const us_height_field *f, usi_ray l, double range);

#endif

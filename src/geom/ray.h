// A straight line and the stretch of it that lies in a shape: what rays of all kinds share. See ray.c.
#ifndef USI_GEOM_RAY_H
#define USI_GEOM_RAY_H

#include "geom/geom.h"

typedef struct usi_line {
    us_vec3 o, d;  // a point and the unit direction, in the shape's frame
} usi_line;

typedef struct usi_span {
    double in, out;  // empty when in > out
    us_vec3 normal;  // outward unit normal where the line enters
} usi_span;

#define USI_MISS ((us_ray_hit){INFINITY, {0, 0, 0}})

static inline usi_span usi_span_all(usi_line l) {
    return (usi_span){-INFINITY, INFINITY, us_vec3_scale(-1, l.d)};
}
static inline usi_span usi_span_none(usi_line l) {
    return (usi_span){INFINITY, -INFINITY, us_vec3_scale(-1, l.d)};
}
static inline bool usi_span_is_empty(usi_span s) { return !(s.in <= s.out); }
static inline us_vec3 usi_line_at(usi_line l, double t) { return us_vec3_add(l.o, us_vec3_scale(t, l.d)); }

static inline us_vec3 usi_unit_or(us_vec3 a, us_vec3 otherwise) {
    double n = us_vec3_norm(a);
    return n > 0 ? us_vec3_scale(1 / n, a) : otherwise;
}

// The side n . x <= c of a plane.
static inline void usi_span_cut(usi_span *s, usi_line l, us_vec3 n, double c) {
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

// -h <= n . x <= h.
static inline void usi_span_cut_slab(usi_span *s, usi_line l, us_vec3 n, double h) {
    usi_span_cut(s, l, n, h);
    usi_span_cut(s, l, us_vec3_scale(-1, n), h);
}

static inline us_ray_hit usi_span_hit(usi_span s, usi_line l, double range) {
    if (usi_span_is_empty(s) || s.out < 0 || s.in > range || (s.out == 0 && s.in < 0)) return USI_MISS;
    if (s.in < 0) return (us_ray_hit){0, us_vec3_scale(-1, l.d)};
    return (us_ray_hit){s.in, s.normal};
}

// Within r of the endless straight line through p along the unit vector u.
usi_span usi_span_tube(usi_line l, us_vec3 p, us_vec3 u, double r);
// A triangle swept by a sphere of radius r.
usi_span usi_span_triangle(usi_line l, const us_vec3 *corner, double r);

// The first surface within `range` along the line from its point o; `radius` is added all round.
us_ray_hit usi_cast_mesh(const us_mesh *mesh, usi_line l, double range, double radius);
us_ray_hit usi_cast_field(const us_height_field *f, usi_line l, double range, double radius);

#endif

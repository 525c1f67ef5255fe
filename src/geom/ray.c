// Rays against every kind of shape.
//
// A straight line meets a convex shape in one span, from `in` to `out`. Everything convex below is written as such a span, in
// the shape's own frame, over the whole line; where the ray starts and ends is looked at last. Spans make the rest short:
//
//   planes, slabs       cut a span shorter
//   intersection        the common part of the parts' spans
//   swept shapes        a convex shape that is a union of convex pieces has the span from the first `in` to the last `out` of
//                       the pieces. A swept polyhedron is the polyhedron, a prism on each face, and a capsule along each edge:
//
//                         ,-----------.       r
//                        ( +---------+ )     ---   prism on the face
//                         \|         |/
//                          +---------+             o capsules along the edges
//
// What has no such pieces (swept boxes would have fifteen; discs, cylinders, cones and ellipsoids roll on quartics) is found by
// Newton's method on f(t) = distance of the line's point from the core, minus the radius. f is convex along the line, so
// Newton's steps from outside never go past the surface, and each one is the crossing with a plane that supports the shape:
// it is the ray cast by conservative advancement, with exact distances. It ends at rounding; a ray that grazes takes about
// twenty-five steps, others four or five.
//
// Precision: the line is first shifted to its point nearest to the shape's origin, so that far away rays lose nothing but
// the rounding of the range itself, and discriminants are formed from cross products rather than from differences of squares.
//
// Spans of surfaces without volume (a box of no height, a triangle) have in = out, and are hit from both sides.
#include <string.h>

#include "geom/geom.h"

// ---------------------------------------------------------------- spans

typedef struct line {
    us_vec3 o, d;  // a point and the unit direction, in the shape's frame
} line;

typedef struct span {
    double in, out;  // empty when in > out
    us_vec3 normal;  // outward unit normal where the line enters
} span;

static const us_ray_hit MISS = {INFINITY, {0, 0, 0}};

static span span_all(line l) { return (span){-INFINITY, INFINITY, us_vec3_scale(-1, l.d)}; }
static span span_none(line l) { return (span){INFINITY, -INFINITY, us_vec3_scale(-1, l.d)}; }
static bool is_empty(span s) { return !(s.in <= s.out); }
static us_vec3 at(line l, double t) { return us_vec3_add(l.o, us_vec3_scale(t, l.d)); }

static span meet(span a, span b) {
    span s = a.in >= b.in ? a : b;
    s.out = a.out < b.out ? a.out : b.out;
    return s;
}

// Of two pieces of one convex shape. An empty one adds nothing.
static span join(span a, span b) {
    if (is_empty(a)) return b;
    if (is_empty(b)) return a;
    span s = a.in <= b.in ? a : b;
    s.out = a.out > b.out ? a.out : b.out;
    return s;
}

static us_vec3 unit_or(us_vec3 a, us_vec3 otherwise) {
    double n = us_vec3_norm(a);
    return n > 0 ? us_vec3_scale(1 / n, a) : otherwise;
}

// The side n . x <= c of a plane.
static void cut(span *s, line l, us_vec3 n, double c) {
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
static void cut_slab(span *s, line l, us_vec3 n, double h) {
    cut(s, l, n, h);
    cut(s, l, us_vec3_scale(-1, n), h);
}

// Where a t^2 + 2 b t + c <= 0 for a > 0, with the discriminant b^2 - a c given. The root of larger size comes first and the other
// one by Vieta, so that neither is a difference of nearly equal numbers. False when there is no such t.
static bool roots(double a, double b, double c, double discriminant, double *t0, double *t1) {
    if (!(discriminant >= 0)) return false;
    double q = b >= 0 ? -(b + sqrt(discriminant)) : -b + sqrt(discriminant);
    double r0 = q / a, r1 = q != 0 ? c / q : 0;
    *t0 = r0 < r1 ? r0 : r1;
    *t1 = r0 < r1 ? r1 : r0;
    return true;
}

static span span_sphere(line l, us_vec3 centre, double r) {
    us_vec3 o = us_vec3_sub(l.o, centre);
    double middle = -us_vec3_dot(o, l.d);
    us_vec3 nearest = us_vec3_add(o, us_vec3_scale(middle, l.d));
    double left = r * r - us_vec3_dot(nearest, nearest);
    if (!(left >= 0)) return span_none(l);
    double half = sqrt(left);
    span s = {middle - half, middle + half, us_vec3_scale(-1, l.d)};
    s.normal = unit_or(us_vec3_sub(nearest, us_vec3_scale(half, l.d)), s.normal);
    return s;
}

// Within r of the endless straight line through p along the unit vector u.
static span span_tube(line l, us_vec3 p, us_vec3 u, double r) {
    us_vec3 o = us_vec3_sub(l.o, p);
    us_vec3 across_o = us_vec3_sub(o, us_vec3_scale(us_vec3_dot(o, u), u)), across_d = us_vec3_sub(l.d, us_vec3_scale(us_vec3_dot(l.d, u), u));
    double a = us_vec3_dot(across_d, across_d), b = us_vec3_dot(across_o, across_d), c = us_vec3_dot(across_o, across_o) - r * r;
    span s = span_all(l);
    if (a < 1e-30) return c <= 0 ? s : span_none(l);  // parallel: the line keeps its distance
    double k = us_vec3_dot(u, us_vec3_cross(across_o, across_d));
    if (!roots(a, b, c, a * r * r - k * k, &s.in, &s.out)) return span_none(l);
    s.normal = unit_or(us_vec3_add(across_o, us_vec3_scale(s.in, across_d)), s.normal);
    return s;
}

static span span_capsule(line l, us_vec3 p, us_vec3 q, double r) {
    span s = join(span_sphere(l, p, r), span_sphere(l, q, r));
    us_vec3 u = us_vec3_sub(q, p);
    double length = us_vec3_norm(u);
    if (length == 0) return s;
    u = us_vec3_scale(1 / length, u);
    span tube = span_tube(l, p, u, r);
    // The ends are inside the spheres or touch them: where the tube is cut is never where the capsule begins.
    cut(&tube, l, u, us_vec3_dot(u, q));
    cut(&tube, l, us_vec3_scale(-1, u), -us_vec3_dot(u, p));
    return join(s, tube);
}

static span span_box(line l, double x, double y, double z) {
    span s = span_all(l);
    cut_slab(&s, l, us_vec3_make(1, 0, 0), x);
    cut_slab(&s, l, us_vec3_make(0, 1, 0), y);
    cut_slab(&s, l, us_vec3_make(0, 0, 1), z);
    return s;
}

static span span_cylinder(line l, double r, double half) {
    span s = span_all(l);
    cut_slab(&s, l, us_vec3_make(0, 0, 1), half);
    return meet(s, span_tube(l, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1), r));
}

// With s = half - z counted downwards from the tip, the double cone is c^2 (x^2 + y^2) <= n^2 s^2, (n, c) the sine and cosine of half
// the opening. A line may be inside it between the roots, on one side of the tip, or outside of them, on both sides: then the
// part that goes down is kept.
static span span_cone(line l, double r, double half) {
    if (half == 0) return span_cylinder(l, r, 0);
    double slant = hypot(r, 2 * half), n = r / slant, c = 2 * half / slant;
    us_vec3 o = us_vec3_make(c * l.o.x, c * l.o.y, n * (half - l.o.z)), d = us_vec3_make(c * l.d.x, c * l.d.y, -n * l.d.z);
    double A = d.x * d.x + d.y * d.y - d.z * d.z, B = o.x * d.x + o.y * d.y - o.z * d.z, C = o.x * o.x + o.y * o.y - o.z * o.z;
    us_vec3 m = us_vec3_cross(o, d);
    double discriminant = m.x * m.x + m.y * m.y - m.z * m.z, t0, t1;
    span s = span_all(l);
    if (fabs(A) < 1e-15) {
        // Parallel to a line of the surface: one root went to infinity.
        if (B == 0 ? C > 0 : false) return span_none(l);
        if (B > 0) s.out = -C / (2 * B);
        if (B < 0) s.in = -C / (2 * B);
    } else if (A > 0) {
        if (!roots(A, B, C, discriminant, &t0, &t1)) return span_none(l);
        s.in = t0, s.out = t1;
    } else {
        // A line inside the opening crosses the surface twice or goes through the tip: never less.
        roots(-A, -B, -C, discriminant > 0 ? discriminant : 0, &t0, &t1);
        if (l.d.z < 0)
            s.in = t1;
        else
            s.out = t0;
    }
    if (isfinite(s.in)) {
        us_vec3 p = at(l, s.in);
        s.normal = unit_or(us_vec3_make(c * c * p.x, c * c * p.y, n * n * (half - p.z)), us_vec3_make(0, 0, 1));
    }
    cut_slab(&s, l, us_vec3_make(0, 0, 1), half);
    return s;
}

// Axes of length 0 leave a slab of no thickness; the others one quadratic.
static span span_ellipsoid(line l, const double *size) {
    const double o[3] = {l.o.x, l.o.y, l.o.z}, d[3] = {l.d.x, l.d.y, l.d.z};
    const us_vec3 axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    span s = span_all(l), round = s;
    double scaled_o[3] = {0, 0, 0}, scaled_d[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        if (size[i] > 0)
            scaled_o[i] = o[i] / size[i], scaled_d[i] = d[i] / size[i];
        else
            cut_slab(&s, l, axis[i], 0);
    }
    us_vec3 so = us_vec3_make(scaled_o[0], scaled_o[1], scaled_o[2]), sd = us_vec3_make(scaled_d[0], scaled_d[1], scaled_d[2]);
    double a = us_vec3_dot(sd, sd), c = us_vec3_dot(so, so) - 1;
    us_vec3 m = us_vec3_cross(so, sd);
    if (a > 0) {
        if (!roots(a, us_vec3_dot(so, sd), c, a - us_vec3_dot(m, m), &round.in, &round.out)) return span_none(l);
        us_vec3 p = us_vec3_add(so, us_vec3_scale(round.in, sd));
        us_vec3 n = us_vec3_make(size[0] > 0 ? p.x / size[0] : 0, size[1] > 0 ? p.y / size[1] : 0, size[2] > 0 ? p.z / size[2] : 0);
        round.normal = unit_or(n, round.normal);
    } else if (c > 0) {
        return span_none(l);
    }
    return meet(s, round);
}

// A flat polygon, counter-clockwise about its unit normal n, thickened to n . x from low to high.
static span span_prism(line l, const us_vec3 *corner, const int32_t *index, int32_t n_corner, us_vec3 n, double low, double high) {
    span s = span_all(l);
    cut(&s, l, n, high);
    cut(&s, l, us_vec3_scale(-1, n), -low);
    for (int32_t i = 0; i < n_corner && !is_empty(s); i++) {
        us_vec3 p = corner[index ? index[i] : i], q = corner[index ? index[(i + 1) % n_corner] : (i + 1) % n_corner];
        us_vec3 side = unit_or(us_vec3_cross(us_vec3_sub(q, p), n), us_vec3_make(0, 0, 0));
        cut(&s, l, side, us_vec3_dot(side, p));
    }
    return s;
}

// Swept by a sphere. One without area is its edges.
static span span_triangle(line l, const us_vec3 *corner, double r) {
    span s = span_none(l);
    us_vec3 zero = us_vec3_make(0, 0, 0), ab = us_vec3_sub(corner[1], corner[0]), ac = us_vec3_sub(corner[2], corner[0]);
    us_vec3 area = us_vec3_cross(ab, ac), n = unit_or(area, zero);
    double height = us_vec3_dot(n, corner[0]), thin = us_vec3_norm(area) / (us_vec3_norm(ab) * us_vec3_norm(ac));
    // The normal of a very thin one is noise. Its edges' capsules hide it then: what they leave out is thin^2 of them.
    if (thin > (r > 0 ? 1e-8 : 0)) s = span_prism(l, corner, NULL, 3, n, height - r, height + r);
    if (r > 0) {
        for (int i = 0; i < 3; i++) s = join(s, span_capsule(l, corner[i], corner[(i + 1) % 3], r));
    }
    return s;
}

// Four faces cut the solid out; each looks away from the corner that is not on it. A flat one is its faces.
static span span_tetrahedron(line l, const us_vec3 *corner, double r) {
    static const int face[4][4] = {{1, 2, 3, 0}, {0, 2, 3, 1}, {0, 1, 3, 2}, {0, 1, 2, 3}};
    span core = span_all(l);
    bool is_flat = false;
    for (int i = 0; i < 4; i++) {
        us_vec3 p = corner[face[i][0]], ab = us_vec3_sub(corner[face[i][1]], p), ac = us_vec3_sub(corner[face[i][2]], p);
        us_vec3 n = unit_or(us_vec3_cross(ab, ac), us_vec3_make(0, 0, 0)), inwards = us_vec3_sub(corner[face[i][3]], p);
        double depth = us_vec3_dot(n, inwards);
        if (fabs(depth) <= 1e-12 * us_vec3_norm(inwards)) is_flat = true;
        if (depth > 0) n = us_vec3_scale(-1, n);
        cut(&core, l, n, us_vec3_dot(n, p));
    }
    if (is_flat) core = span_none(l);
    if (!is_flat && r == 0) return core;
    for (int i = 0; i < 4; i++) {
        us_vec3 triangle[3] = {corner[face[i][0]], corner[face[i][1]], corner[face[i][2]]};
        core = join(core, span_triangle(l, triangle, r));
    }
    return core;
}

static span span_hull(line l, const us_hull *h, double r) {
    span s = span_all(l);
    for (int32_t i = 0; i < h->n_face && !is_empty(s); i++) cut(&s, l, h->normal[i], h->offset[i] + r);
    if (r == 0 || is_empty(s)) return s;
    // The line meets the polyhedron with its planes moved out by r; the swept one is inside that.
    s = span_all(l);
    for (int32_t i = 0; i < h->n_face; i++) cut(&s, l, h->normal[i], h->offset[i]);
    for (int32_t i = 0; i < h->n_face; i++) {
        int32_t first = h->face_start[i], n = h->face_start[i + 1] - first;
        s = join(s, span_prism(l, h->vertex, h->face_vertex + first, n, h->normal[i], h->offset[i], h->offset[i] + r));
    }
    for (int32_t i = 0; i < h->n_edge; i++) s = join(s, span_capsule(l, h->vertex[h->edge[i][0]], h->vertex[h->edge[i][1]], r));
    return s;
}

// ---------------------------------------------------------------- swept shapes by Newton's method

// Vector from the nearest point of the core to p; 0 inside.
static us_vec3 away_from_box(const us_geom *g, us_vec3 p) {
    double x = fabs(p.x) - g->size[0], y = fabs(p.y) - g->size[1], z = fabs(p.z) - g->size[2];
    return us_vec3_make(x > 0 ? copysign(x, p.x) : 0, y > 0 ? copysign(y, p.y) : 0, z > 0 ? copysign(z, p.z) : 0);
}

// Back from the half plane (distance from the z axis, z) in which round shapes are drawn.
static us_vec3 turned(us_vec3 p, double across, double along) {
    double rho = hypot(p.x, p.y), c = rho > 0 ? p.x / rho : 1, s = rho > 0 ? p.y / rho : 0;
    return us_vec3_make(across * c, across * s, along);
}

static us_vec3 away_from_cylinder(us_vec3 p, double r, double half) {
    double across = hypot(p.x, p.y) - r, along = fabs(p.z) - half;
    return turned(p, across > 0 ? across : 0, along > 0 ? copysign(along, p.z) : 0);
}

// In the half plane a cone is a triangle; nearest is its base or its slant.
static us_vec3 away_from_cone(us_vec3 p, double r, double half) {
    double rho = hypot(p.x, p.y), below = -half - p.z;
    if (below <= 0 && rho <= r && 2 * half * rho <= r * (half - p.z)) return us_vec3_make(0, 0, 0);
    double base_x = rho > r ? rho - r : 0, base_z = -below;
    // From the rim (r, -half) to the tip (0, half).
    double length2 = r * r + 4 * half * half, s = length2 > 0 ? (-(rho - r) * r - below * 2 * half) / length2 : 0;
    s = s < 0 ? 0 : s > 1 ? 1 : s;
    double slant_x = rho - (r - s * r), slant_z = p.z - (-half + s * 2 * half);
    bool is_base = base_x * base_x + base_z * base_z < slant_x * slant_x + slant_z * slant_z;
    return is_base ? turned(p, base_x, base_z) : turned(p, slant_x, slant_z);
}

// The nearest point is x_i = a_i^2 p_i / (a_i^2 + s), s the root of |y| = 1, y_i = a_i p_i / (a_i^2 + s): the same equation as that of a
// trust region. 1/|y| is concave and almost straight in s, so Newton's method on it climbs to the root in a few steps.
static us_vec3 away_from_ellipsoid(const double *a, us_vec3 at_p) {
    const double p[3] = {at_p.x, at_p.y, at_p.z};
    double s = 0, away[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) s = fmax(s, a[i] * (fabs(p[i]) - a[i]));  // no term alone may exceed 1
    bool is_over = true;                                                  // over or under the inside of a flat one
    for (int step = 0; step < 60; step++) {
        double y2 = 0, slope = 0;
        for (int i = 0; i < 3; i++) {
            double w = a[i] * a[i] + s, y = a[i] > 0 ? a[i] * p[i] / w : 0;
            y2 += y * y;
            slope += a[i] > 0 ? y * y / w : 0;
        }
        if (step == 0 && s == 0 && y2 <= 1) break;
        is_over = false;
        double y1 = sqrt(y2), rise = (y1 - 1) * y2 / slope;
        if (!(rise > 0) || s + rise == s) break;
        s += rise;
    }
    for (int i = 0; i < 3; i++) {
        if (a[i] == 0)
            away[i] = p[i];
        else if (!is_over)
            away[i] = p[i] * (s / (a[i] * a[i] + s));
    }
    return us_vec3_make(away[0], away[1], away[2]);
}

static us_vec3 away_from(const us_geom *g, us_vec3 p) {
    switch (g->kind) {
    case US_GEOM_BOX: return away_from_box(g, p);
    case US_GEOM_DISC: return away_from_cylinder(p, g->size[0], 0);
    case US_GEOM_CYLINDER: return away_from_cylinder(p, g->size[0], g->size[1]);
    case US_GEOM_CONE: return away_from_cone(p, g->size[0], g->size[1]);
    default: return away_from_ellipsoid(g->size, p);
    }
}

// Walks from t towards `end` along sign * d; the core is within `reach` of the origin. Returns where the surface is, infinity for none.
static double advance(const us_geom *g, line l, double reach, double sign, us_vec3 *out_normal) {
    us_vec3 d = us_vec3_scale(sign, l.d);
    double t = -reach;
    *out_normal = us_vec3_scale(-1, d);
    for (int step = 0; step < 100; step++) {
        us_vec3 away = away_from(g, us_vec3_add(l.o, us_vec3_scale(t, d)));
        double distance = us_vec3_norm(away), f = distance - g->radius;
        if (distance > 0) *out_normal = us_vec3_scale(1 / distance, away);
        double slope = us_vec3_dot(*out_normal, d);
        // At the surface up to the rounding of the point itself.
        if (f <= 1e-16 * reach) return t;
        if (slope >= 0) return INFINITY;
        double next = t - f / slope;
        if (next > reach) return INFINITY;
        if (next == t) return t;
        t = next;
    }
    return t;
}

// The bound of the core about the origin is `bound`.
static span span_swept(const us_geom *g, line l, double bound) {
    // A little more than the shape, so that the walk starts outside even where rounding is against it.
    double reach = (bound + g->radius) * (1 + 1e-9);
    if (us_vec3_dot(l.o, l.o) > reach * reach) return span_none(l);
    span s;
    us_vec3 unused;
    s.in = advance(g, l, reach, 1, &s.normal);
    if (s.in == INFINITY) return span_none(l);
    s.out = -advance(g, l, reach, -1, &unused);
    // A ray that grazes may be found from one side only.
    if (s.out < s.in) s.out = s.in;
    return s;
}

// ---------------------------------------------------------------- convex kinds

// The span of a convex kind, with the line's point o nearest to the origin.
static span span_centred(const us_geom *g, line l) {
    const double *a = g->size, r = g->radius;
    us_vec3 zero = us_vec3_make(0, 0, 0);
    double bound = g->kind == US_GEOM_DISC                                  ? a[0]
                   : g->kind == US_GEOM_CYLINDER || g->kind == US_GEOM_CONE ? hypot(a[0], a[1])
                   : g->kind == US_GEOM_BOX                                 ? sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])
                                                                            : fmax(a[0], fmax(a[1], a[2]));
    // A radius that drowns in the rounding of the core's size is none.
    bool is_swept = r > 1e-12 * bound;
    switch (g->kind) {
    case US_GEOM_SPHERE: return span_sphere(l, zero, r);
    case US_GEOM_CAPSULE: return span_capsule(l, us_vec3_make(0, 0, -a[0]), us_vec3_make(0, 0, a[0]), r);
    case US_GEOM_LOZENGE: {
        span s = span_box(l, a[0], a[1], r);
        if (r == 0) return s;
        const us_vec3 corner[4] = {{-a[0], -a[1], 0}, {a[0], -a[1], 0}, {a[0], a[1], 0}, {-a[0], a[1], 0}};
        for (int i = 0; i < 4; i++) s = join(s, span_capsule(l, corner[i], corner[(i + 1) % 4], r));
        return s;
    }
    case US_GEOM_DISC: return is_swept ? span_swept(g, l, bound) : span_cylinder(l, a[0], 0);
    case US_GEOM_TRIANGLE: return span_triangle(l, g->point, r);
    case US_GEOM_BOX: return is_swept ? span_swept(g, l, bound) : span_box(l, a[0], a[1], a[2]);
    case US_GEOM_CYLINDER: return is_swept ? span_swept(g, l, bound) : span_cylinder(l, a[0], a[1]);
    case US_GEOM_CONE: return is_swept ? span_swept(g, l, bound) : span_cone(l, a[0], a[1]);
    case US_GEOM_ELLIPSOID: return is_swept ? span_swept(g, l, bound) : span_ellipsoid(l, a);
    case US_GEOM_TETRAHEDRON: return span_tetrahedron(l, g->point, r);
    case US_GEOM_CONVEX: return g->hull ? span_hull(l, g->hull, r) : span_none(l);
    default: return span_none(l);
    }
}

static line line_in(us_pose X, line l) {
    us_quat back = us_quat_conj(X.q);
    return (line){us_quat_rotate(back, us_vec3_sub(l.o, X.p)), us_quat_rotate(back, l.d)};
}

// The span of anything convex, parts of an intersection included. `more` is added to every radius.
static span span_of(const us_geom *geom, line l, double more) {
    if (geom->kind == US_GEOM_HALF_SPACE) {
        span s = span_all(l);
        cut(&s, l, us_vec3_make(0, 0, 1), geom->radius + more);
        return s;
    }
    if (geom->kind == US_GEOM_INTERSECTION) {
        // Each part is swept, then cut: where parts meet at an edge, that edge stays sharp.
        span s = geom->n_part > 0 ? span_all(l) : span_none(l);
        for (int32_t i = 0; i < geom->n_part && !is_empty(s); i++) {
            const us_geom_part *part = &geom->parts[i];
            span p = span_of(&part->geom, line_in(part->X_GP, l), geom->radius + more);
            p.normal = us_quat_rotate(part->X_GP.q, p.normal);
            s = meet(s, p);
        }
        return is_empty(s) ? span_none(l) : s;
    }
    us_geom g = *geom;
    g.radius += more;
    double shift = -us_vec3_dot(l.o, l.d);
    span s = span_centred(&g, (line){at(l, shift), l.d});
    s.in += shift;
    s.out += shift;
    return s;
}

static us_ray_hit hit_span(span s, line l, double range) {
    if (is_empty(s) || s.out < 0 || s.in > range || (s.out == 0 && s.in < 0)) return MISS;
    if (s.in < 0) return (us_ray_hit){0, us_vec3_scale(-1, l.d)};
    return (us_ray_hit){s.in, s.normal};
}

// ---------------------------------------------------------------- meshes

// The ray with its axes renamed so that it goes mostly along z, and sheared so that it goes along z exactly. Triangles are then
// looked at in the plane (x, y), the ray being the origin (Woop, Benthin, Wald 2013).
typedef struct shear {
    int x, y, z;
    double sx, sy, sz;
} shear;

typedef struct mesh_cast {
    const us_mesh *mesh;
    line l;
    us_vec3 inverse;  // 1 / direction
    shear shear;
    double radius;
    bool only_front, count;  // ignore back faces; count crossings instead of looking for the nearest
    int32_t crossings;       // times the ray leaves minus times it enters
    double best;
    us_vec3 normal;
    int32_t triangle;  // that was hit; -1: none
} mesh_cast;

static double component(us_vec3 a, int i) { return i == 0 ? a.x : i == 1 ? a.y : a.z; }

static shear shear_of(us_vec3 d) {
    double x = fabs(d.x), y = fabs(d.y), z = fabs(d.z);
    int k = x > y && x > z ? 0 : y > z ? 1 : 2;
    shear s = {(k + 1) % 3, (k + 2) % 3, k, 0, 0, 1 / component(d, k)};
    s.sx = component(d, s.x) * s.sz;
    s.sy = component(d, s.y) * s.sz;
    return s;
}

static us_vec3 sheared(const mesh_cast *c, int32_t vertex) {
    us_vec3 p = us_vec3_sub(c->mesh->vertex[vertex], c->l.o);
    double z = component(p, c->shear.z);
    return us_vec3_make(component(p, c->shear.x) - c->shear.sx * z, component(p, c->shear.y) - c->shear.sy * z, c->shear.sz * z);
}

// On which side of the edge a -> b the ray passes, and never "on it": a tie is decided as if the ray were moved by an infinitely
// small step, the same for all triangles. The edge is always worked out from its smaller vertex, so that the two triangles on
// it get the same number to the last bit, and no ray slips between them or meets both.
static double edge_side(us_vec3 a, us_vec3 b, int32_t index_a, int32_t index_b, bool *out_positive) {
    bool is_swapped = index_a > index_b;
    us_vec3 p = is_swapped ? b : a, q = is_swapped ? a : b;
    double e = p.x * q.y - p.y * q.x;
    bool positive = e > 0 || (e == 0 && (q.y < p.y || (q.y == p.y && q.x > p.x)));
    *out_positive = is_swapped ? !positive : positive;
    return is_swapped ? -e : e;
}

static void cast_triangle(mesh_cast *c, int32_t index) {
    const int32_t *t = c->mesh->triangle[index];
    const us_vec3 corner[3] = {c->mesh->vertex[t[0]], c->mesh->vertex[t[1]], c->mesh->vertex[t[2]]};
    if (c->radius > 0) {
        span s = span_triangle(c->l, corner, c->radius);
        us_ray_hit hit = hit_span(s, c->l, c->best);
        if (hit.range < c->best) c->best = hit.range, c->normal = hit.normal, c->triangle = index;
        return;
    }
    us_vec3 p = sheared(c, t[0]), q = sheared(c, t[1]), r = sheared(c, t[2]);
    bool in_u, in_v, in_w;
    double u = edge_side(q, r, t[1], t[2], &in_u), v = edge_side(r, p, t[2], t[0], &in_v), w = edge_side(p, q, t[0], t[1], &in_w);
    if (in_u != in_v || in_v != in_w) return;
    double area = u + v + w;
    if (area == 0) return;  // seen from its edge
    double range = (u * p.z + v * q.z + w * r.z) / area;
    us_vec3 n = unit_or(us_vec3_cross(us_vec3_sub(corner[1], corner[0]), us_vec3_sub(corner[2], corner[0])), us_vec3_scale(-1, c->l.d));
    bool is_front = us_vec3_dot(n, c->l.d) < 0;
    if (range < 0) return;
    if (c->count) {
        c->crossings += is_front ? -1 : 1;
    } else if (range < c->best && (is_front || !c->only_front)) {
        c->best = range;
        c->normal = n;
        c->triangle = index;
    }
}

// Where the ray enters a node's box; infinity when it does not before the best hit. NaN (0 * infinity) means that the ray lies in a
// face: the comparisons below let it pass.
static double enter_box(const mesh_cast *c, const usi_bvh_node *node) {
    const double o[3] = {c->l.o.x, c->l.o.y, c->l.o.z}, inverse[3] = {c->inverse.x, c->inverse.y, c->inverse.z};
    const double low[3] = {node->min.x, node->min.y, node->min.z}, high[3] = {node->max.x, node->max.y, node->max.z};
    double in = 0, out = c->best;
    for (int i = 0; i < 3; i++) {
        // Three roundings on the way to each t: a box is taken to be larger by that much, so that no triangle in its faces is lost.
        double margin = c->radius + 4e-16 * (fabs(o[i]) + fabs(low[i]) + fabs(high[i]));
        double t0 = (low[i] - margin - o[i]) * inverse[i], t1 = (high[i] + margin - o[i]) * inverse[i];
        double first = t0 < t1 ? t0 : t1, last = t0 < t1 ? t1 : t0;
        if (first > in) in = first;
        if (last < out) out = last;
    }
    return in <= out * (1 + 1e-15) ? in : INFINITY;
}

static void cast_tree(mesh_cast *c, int32_t root) {
    enum { DEPTH = 64 };
    struct {
        int32_t node;
        double in;
    } stack[DEPTH];
    int n = 0;
    const usi_bvh_node *nodes = c->mesh->node;
    stack[n].node = root;
    stack[n++].in = enter_box(c, &nodes[root]);
    while (n > 0) {
        n--;
        if (stack[n].in == INFINITY || (!c->count && stack[n].in > c->best)) continue;
        const usi_bvh_node *node = &nodes[stack[n].node];
        for (int32_t i = 0; i < node->count; i++) cast_triangle(c, c->mesh->order[node->first + i]);
        if (node->count > 0) continue;
        double a = enter_box(c, &nodes[node->first]), b = enter_box(c, &nodes[node->first + 1]);
        int32_t near = a <= b ? node->first : node->first + 1, far = a <= b ? node->first + 1 : node->first;
        if (n + 2 > DEPTH) {
            // A tree this deep is odd, but not wrong.
            cast_tree(c, near);
            cast_tree(c, far);
            continue;
        }
        stack[n].node = far;
        stack[n++].in = a <= b ? b : a;
        stack[n].node = near;
        stack[n++].in = a <= b ? a : b;
    }
}

static us_ray_hit cast_mesh(const us_mesh *mesh, line l, double range, double radius) {
    if (mesh->n_node == 0) return MISS;
    us_vec3 inverse = us_vec3_make(1 / l.d.x, 1 / l.d.y, 1 / l.d.z), low = mesh->node[0].min, high = mesh->node[0].max;
    mesh_cast c = {mesh, l, inverse, shear_of(l.d), radius, false, false, 0, range, {0, 0, 0}, -1};
    bool is_near = l.o.x >= low.x && l.o.x <= high.x && l.o.y >= low.y && l.o.y <= high.y && l.o.z >= low.z && l.o.z <= high.z;
    bool may_be_inside = mesh->is_closed && is_near;
    // Just below infinity, so that a hit is always less.
    if (may_be_inside || c.best == INFINITY)
        c.best = 1e300;
    else
        c.best = nextafter(range, INFINITY);
    double limit = c.best;
    if (radius == 0) cast_tree(&c, 0);
    bool is_back = c.triangle >= 0 && us_vec3_dot(c.normal, l.d) >= 0;
    if (may_be_inside && (is_back || radius > 0)) {
        // The first face shows its back: the ray comes from inside, or it grazes an edge. Counting crossings tells.
        mesh_cast all = c;
        all.radius = 0, all.count = true, all.best = 1e300;
        cast_tree(&all, 0);
        if (all.crossings > 0) return (us_ray_hit){0, us_vec3_scale(-1, l.d)};
    }
    if (radius > 0 || (is_back && mesh->is_closed)) {
        // From outside only fronts can be first.
        c.best = limit, c.triangle = -1, c.only_front = true;
        cast_tree(&c, 0);
    }
    if (c.triangle < 0 || c.best > range) return MISS;
    // An open mesh has two sides; the one that is seen is the one that was hit.
    bool turn = us_vec3_dot(c.normal, l.d) > 0;
    return (us_ray_hit){c.best, turn ? us_vec3_scale(-1, c.normal) : c.normal};
}

// ---------------------------------------------------------------- height fields

// Half the rectangle's sides.
static us_vec3 field_half(const us_height_field *f) { return us_vec3_make(0.5 * (f->n_x - 1) * f->dx, 0.5 * (f->n_y - 1) * f->dy, 0); }

static int32_t field_cell(double x, double half, double spacing, int32_t n) {
    double c = floor((x + half) / spacing);
    return c < 0 ? 0 : c > n - 2 ? n - 2 : (int32_t)c;
}

// The plane of one of a cell's two triangles: height = z + gx (x - x_i) + gy (y - y_j).
typedef struct facet {
    double x, y, z, gx, gy;
} facet;

static facet field_facet(const us_height_field *f, int32_t i, int32_t j, bool is_upper) {
    us_vec3 p = usi_field_point(f, i, j);
    double far = usi_field_point(f, i + 1, j + 1).z, side = is_upper ? usi_field_point(f, i, j + 1).z : usi_field_point(f, i + 1, j).z;
    return is_upper ? (facet){p.x, p.y, p.z, (far - side) / f->dx, (side - p.z) / f->dy}
                    : (facet){p.x, p.y, p.z, (side - p.z) / f->dx, (far - side) / f->dy};
}

static double above(facet t, us_vec3 p) { return p.z - (t.z + t.gx * (p.x - t.x) + t.gy * (p.y - t.y)); }

// Height of a point over the surface; the point's x, y are inside the rectangle.
static double field_above(const us_height_field *f, us_vec3 p) {
    us_vec3 half = field_half(f);
    int32_t i = field_cell(p.x, half.x, f->dx, f->n_x), j = field_cell(p.y, half.y, f->dy, f->n_y);
    us_vec3 corner = usi_field_point(f, i, j);
    return above(field_facet(f, i, j, (p.y - corner.y) / f->dy > (p.x - corner.x) / f->dx), p);
}

// Follows the ray over the cells it crosses:
//
//      +-----+-----+        within a cell the ray is over one triangle and then over the other, and its height over each is
//      |   / |   / |        linear in t. The pieces follow each other without a gap, so the first piece that begins or ends
//      | /  .|.'   |        below the surface has the hit, and no ray slips through a seam.
//      +..'--+-----+
static us_ray_hit walk_field(const us_height_field *f, line l, double t, double end) {
    us_vec3 half = field_half(f), p = at(l, t);
    int32_t i = field_cell(p.x, half.x, f->dx, f->n_x), j = field_cell(p.y, half.y, f->dy, f->n_y);
    int32_t step_x = l.d.x > 0 ? 1 : -1, step_y = l.d.y > 0 ? 1 : -1;
    while (i >= 0 && j >= 0 && i <= f->n_x - 2 && j <= f->n_y - 2) {
        us_vec3 corner = usi_field_point(f, i, j);
        double to_x = l.d.x != 0 ? (corner.x + (l.d.x > 0 ? f->dx : 0) - l.o.x) / l.d.x : INFINITY;
        double to_y = l.d.y != 0 ? (corner.y + (l.d.y > 0 ? f->dy : 0) - l.o.y) / l.d.y : INFINITY;
        double leave = fmax(t, fmin(end, fmin(to_x, to_y)));
        // The diagonal: v - u = 0, with u and v from 0 to 1 across the cell.
        double side = (l.o.y - corner.y) / f->dy - (l.o.x - corner.x) / f->dx, rate = l.d.y / f->dy - l.d.x / f->dx;
        double cross = rate != 0 ? -side / rate : INFINITY, middle = cross > t && cross < leave ? cross : leave;
        double piece[3] = {t, middle, leave};
        for (int k = 0; k < 2; k++) {
            double centre = 0.5 * (piece[k] + piece[k + 1]);
            facet under = field_facet(f, i, j, side + rate * centre > 0);
            double before = above(under, at(l, piece[k])), after = above(under, at(l, piece[k + 1]));
            if (before <= 0 || after <= 0) {
                double share = before <= 0 ? 0 : before / (before - after);
                us_vec3 n = unit_or(us_vec3_make(-under.gx, -under.gy, 1), us_vec3_make(0, 0, 1));
                return (us_ray_hit){piece[k] + share * (piece[k + 1] - piece[k]), n};
            }
        }
        if (leave >= end) return MISS;
        if (to_x <= to_y)
            i += step_x;
        else
            j += step_y;
        t = leave;
    }
    return MISS;
}

// The solid below the surface, radius 0: walls around the rectangle, without end downwards.
static us_ray_hit cast_field(const us_height_field *f, line l, double range) {
    us_vec3 half = field_half(f);
    span s = span_all(l);
    cut_slab(&s, l, us_vec3_make(1, 0, 0), half.x);
    cut_slab(&s, l, us_vec3_make(0, 1, 0), half.y);
    cut(&s, l, us_vec3_make(0, 0, 1), f->high);
    us_ray_hit edge = hit_span(s, l, range);
    if (edge.range == INFINITY) return MISS;
    // Where the ray comes over the rectangle and down to the highest point: already below the surface?
    double t = edge.range, end = fmin(s.out, range), height = field_above(f, at(l, t));
    // A ray that goes down is below everything soon, even one that never leaves the rectangle.
    if (l.d.z < 0) end = fmin(end, fmax(t, (f->low - (f->high - f->low) - f->dx - f->dy - l.o.z) / l.d.z));
    bool is_top = edge.normal.z == 1 && t > 0;
    if (height <= 0 && !is_top) return edge;
    return walk_field(f, l, t, end);
}

// Swept: the solid, a swept triangle for each half cell, and the walls moved out by the radius with round corners. Triangles are
// taken from the cells around one stretch of the ray after another.
static us_ray_hit cast_swept_field(const us_height_field *f, line l, double range, double r) {
    us_vec3 half = field_half(f);
    us_ray_hit best = cast_field(f, l, range);
    span s = span_all(l);
    cut_slab(&s, l, us_vec3_make(1, 0, 0), half.x + r);
    cut_slab(&s, l, us_vec3_make(0, 1, 0), half.y + r);
    cut(&s, l, us_vec3_make(0, 0, 1), f->high + r);
    if (hit_span(s, l, range).range == INFINITY) return MISS;
    // Walls and corners: where the ray enters them, below the surface's border.
    for (int k = 0; k < 4; k++) {
        double sign = k % 2 ? 1 : -1;
        span wall = span_all(l);
        cut_slab(&wall, l, us_vec3_make(1, 0, 0), half.x + (k < 2 ? r : 0));
        cut_slab(&wall, l, us_vec3_make(0, 1, 0), half.y + (k < 2 ? 0 : r));
        cut(&wall, l, k < 2 ? us_vec3_make(-sign, 0, 0) : us_vec3_make(0, -sign, 0), k < 2 ? -half.x : -half.y);
        us_vec3 corner = us_vec3_make(half.x * (k % 2 ? 1 : -1), half.y * (k / 2 ? 1 : -1), 0);
        span pillar = span_tube(l, corner, us_vec3_make(0, 0, 1), r);
        for (int m = 0; m < 2; m++) {
            us_ray_hit hit = hit_span(m ? pillar : wall, l, range);
            if (!(hit.range < best.range)) continue;
            us_vec3 p = m ? corner : at(l, hit.range);
            p.x = fmax(-half.x, fmin(half.x, p.x));
            p.y = fmax(-half.y, fmin(half.y, p.y));
            p.z = at(l, hit.range).z;
            if (field_above(f, p) <= 0) best = hit;
        }
    }
    double t = fmax(s.in, 0), end = fmin(fmin(s.out, range), best.range), stretch = 2 * (f->dx + f->dy) + r;
    // Only over the rectangle's surroundings, so end is finite unless the ray is vertical: then one stretch has it all.
    for (bool is_last = false; !is_last;) {
        double across = hypot(l.d.x, l.d.y), next = across > 1e-9 ? t + stretch / across : end;
        is_last = !(next < end);
        if (is_last) next = end;
        us_vec3 p = at(l, t), q = across > 1e-9 ? at(l, next) : p;
        int32_t i0 = field_cell(fmin(p.x, q.x) - r, half.x, f->dx, f->n_x), i1 = field_cell(fmax(p.x, q.x) + r, half.x, f->dx, f->n_x);
        int32_t j0 = field_cell(fmin(p.y, q.y) - r, half.y, f->dy, f->n_y), j1 = field_cell(fmax(p.y, q.y) + r, half.y, f->dy, f->n_y);
        for (int32_t j = j0; j <= j1; j++) {
            for (int32_t i = i0; i <= i1; i++) {
                const us_vec3 a = usi_field_point(f, i, j), b = usi_field_point(f, i + 1, j), c = usi_field_point(f, i + 1, j + 1),
                              d = usi_field_point(f, i, j + 1);
                const us_vec3 triangle[2][3] = {{a, b, c}, {a, c, d}};
                for (int k = 0; k < 2; k++) {
                    us_ray_hit hit = hit_span(span_triangle(l, triangle[k], r), l, range);
                    if (hit.range < best.range) best = hit;
                }
            }
        }
        if (best.range <= next) break;
        t = next;
    }
    return best;
}

// ---------------------------------------------------------------- all kinds

static us_ray_hit cast(const us_geom *g, line l, double range, double more) {
    double radius = g->radius + more;
    switch (g->kind) {
    case US_GEOM_MESH: return g->mesh ? cast_mesh(g->mesh, l, range, radius) : MISS;
    case US_GEOM_HEIGHT_FIELD:
        if (!g->field || g->field->n_x < 2 || g->field->n_y < 2) return MISS;
        return radius > 0 ? cast_swept_field(g->field, l, range, radius) : cast_field(g->field, l, range);
    case US_GEOM_UNION: {
        us_ray_hit best = MISS;
        for (int32_t i = 0; i < g->n_part; i++) {
            const us_geom_part *part = &g->parts[i];
            us_ray_hit hit = cast(&part->geom, line_in(part->X_GP, l), range, radius);
            if (hit.range < best.range) best = (us_ray_hit){hit.range, us_quat_rotate(part->X_GP.q, hit.normal)};
        }
        return best;
    }
    default: return hit_span(span_of(g, l, more), l, range);
    }
}

us_ray_hit us_geom_ray(const us_geom *geom, us_pose X_WG, us_vec3 origin_W, us_vec3 direction_W, double range) {
    double length = us_vec3_norm(direction_W);
    bool is_ray = geom && length > 0 && isfinite(length) && range >= 0 && isfinite(us_vec3_dot(origin_W, origin_W));
    if (!is_ray) return MISS;
    line l = line_in(X_WG, (line){origin_W, us_vec3_scale(1 / length, direction_W)});
    us_ray_hit hit = cast(geom, l, range, 0);
    if (hit.range < INFINITY) hit.normal = us_quat_rotate(X_WG.q, hit.normal);
    return hit;
}

// Rays against every kind of shape.
//
// A straight line meets a convex shape in one span, from `in` to `out`. Everything convex below is written as
// such a span, in the shape's own frame, over the whole line; where the ray starts and ends is applied last.
// Spans make the rest short:
//
//   planes, slabs       cut a span shorter
//   intersection        the common part of the parts' spans; where it is swept, advanced into from there
//   swept shapes        a convex shape that is a union of convex pieces has the span from the first `in` to
//                       the last `out` of the pieces. A swept polyhedron is the polyhedron, a prism on each
//                       face, and a capsule along each edge:
//
//                         ,-----------.       r
//                        ( +---------+ )     ---   prism on the face
//                         \|         |/
//                          +---------+             o capsules along the edges
//
// What has no such pieces (swept boxes would have fifteen; discs, cylinders, cones and ellipsoids roll on
// quartics) is found by Newton's method on f(t) = distance of the line's point from the core, minus the
// radius. f is convex along the line, so Newton's steps from outside never go past the surface, and each one
// is the crossing with a plane that supports the shape: it is the ray cast by conservative advancement, with
// exact distances. It ends at rounding; a ray that grazes takes about twenty-five steps, others four or five.
//
// Precision: the line is first shifted to its point nearest to the shape's origin, so that far away rays lose
// nothing but the rounding of the range itself, and discriminants are formed from cross products rather than
// from differences of squares.
//
// Spans of surfaces without volume (a box of no height, a triangle) have in = out, and are hit from both
// sides.
#include "geom/ray.h"
#include "geom/intersection.h"
// ---------------------------------------------------------------- spans

static usi_ray_span intersect(usi_ray_span a, usi_ray_span b) {
    usi_ray_span s = a.in >= b.in ? a : b;
    s.out = a.out < b.out ? a.out : b.out;
    return s;
}

// Union of the spans of two pieces of one convex shape. An empty one adds nothing.
static usi_ray_span join(usi_ray_span a, usi_ray_span b) {
    if (usi_ray_span_is_empty(a)) return b;
    if (usi_ray_span_is_empty(b)) return a;
    usi_ray_span s = a.in <= b.in ? a : b;
    s.out = a.out > b.out ? a.out : b.out;
    return s;
}

// Where a t^2 + 2 b t + c <= 0 for a > 0, with the discriminant b^2 - a c given. The root of larger size
// comes first and the other one by Vieta, so that neither is a difference of nearly equal numbers. False when
// there is no such t.
static bool roots(double a, double b, double c, double discriminant, double *t0, double *t1) {
    if (!(discriminant >= 0)) return false;
    double q = b >= 0 ? -(b + sqrt(discriminant)) : -b + sqrt(discriminant);
    double r0 = q / a, r1 = q != 0 ? c / q : 0;
    *t0 = r0 < r1 ? r0 : r1;
    *t1 = r0 < r1 ? r1 : r0;
    return true;
}

static usi_ray_span span_sphere(usi_ray l, us_vec3 centre, double r) {
    us_vec3 o = us_vec3_sub(l.o, centre);
    double middle = -us_vec3_dot(o, l.d);
    us_vec3 nearest = us_vec3_add(o, us_vec3_scale(middle, l.d));
    double left = r * r - us_vec3_dot(nearest, nearest);
    if (!(left >= 0)) return usi_ray_span_none(l);
    double half = sqrt(left);
    usi_ray_span s = {middle - half, middle + half, us_vec3_scale(-1, l.d)};
    s.normal = usi_unit_or(us_vec3_sub(nearest, us_vec3_scale(half, l.d)), s.normal);
    return s;
}

usi_ray_span usi_ray_span_tube(usi_ray l, us_vec3 p, us_vec3 u, double r) {
    us_vec3 o = us_vec3_sub(l.o, p);
    us_vec3 across_o = us_vec3_sub(o, us_vec3_scale(us_vec3_dot(o, u), u)),
            across_d = us_vec3_sub(l.d, us_vec3_scale(us_vec3_dot(l.d, u), u));
    double a = us_vec3_dot(across_d, across_d), b = us_vec3_dot(across_o, across_d),
           c = us_vec3_dot(across_o, across_o) - r * r;
    usi_ray_span s = usi_ray_span_all(l);
    if (a < 1e-30) return c <= 0 ? s : usi_ray_span_none(l);  // parallel: the line keeps its distance
    double k = us_vec3_dot(u, us_vec3_cross(across_o, across_d));
    if (!roots(a, b, c, a * r * r - k * k, &s.in, &s.out)) return usi_ray_span_none(l);
    s.normal = usi_unit_or(us_vec3_add(across_o, us_vec3_scale(s.in, across_d)), s.normal);
    return s;
}

static usi_ray_span span_capsule(usi_ray l, us_vec3 p, us_vec3 q, double r) {
    usi_ray_span s = join(span_sphere(l, p, r), span_sphere(l, q, r));
    us_vec3 u = us_vec3_sub(q, p);
    double length = us_vec3_norm(u);
    if (length == 0) return s;
    u = us_vec3_scale(1 / length, u);
    usi_ray_span tube = usi_ray_span_tube(l, p, u, r);
    // The ends are inside the spheres or touch them: where the tube is cut is never where the capsule begins.
    usi_ray_span_cut(&tube, l, u, us_vec3_dot(u, q));
    usi_ray_span_cut(&tube, l, us_vec3_scale(-1, u), -us_vec3_dot(u, p));
    return join(s, tube);
}

static usi_ray_span span_box(usi_ray l, double x, double y, double z) {
    usi_ray_span s = usi_ray_span_all(l);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(1, 0, 0), x);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(0, 1, 0), y);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(0, 0, 1), z);
    return s;
}

static usi_ray_span span_cylinder(usi_ray l, double r, double half) {
    usi_ray_span s = usi_ray_span_all(l);
    usi_ray_span_cut_slab(&s, l, us_vec3_make(0, 0, 1), half);
    return intersect(s, usi_ray_span_tube(l, us_vec3_make(0, 0, 0), us_vec3_make(0, 0, 1), r));
}

// With s = half - z counted downwards from the tip, the double cone is c^2 (x^2 + y^2) <= n^2 s^2, (n, c) the
// sine and cosine of half the opening. A line may be inside it between the roots, on one side of the tip, or
// outside of them, on both sides: then the part that goes down is kept.
static usi_ray_span span_cone(usi_ray l, double r, double half) {
    if (half == 0) return span_cylinder(l, r, 0);
    double slant = hypot(r, 2 * half), n = r / slant, c = 2 * half / slant;
    us_vec3 o = us_vec3_make(c * l.o.x, c * l.o.y, n * (half - l.o.z)),
            d = us_vec3_make(c * l.d.x, c * l.d.y, -n * l.d.z);
    double A = d.x * d.x + d.y * d.y - d.z * d.z, B = o.x * d.x + o.y * d.y - o.z * d.z,
           C = o.x * o.x + o.y * o.y - o.z * o.z;
    us_vec3 m = us_vec3_cross(o, d);
    double discriminant = m.x * m.x + m.y * m.y - m.z * m.z, t0 = 0, t1 = 0;
    usi_ray_span s = usi_ray_span_all(l);
    if (fabs(A) < 1e-15) {
        // Parallel to a line of the surface: one root went to infinity.
        if (B == 0 ? C > 0 : false) return usi_ray_span_none(l);
        if (B > 0) s.out = -C / (2 * B);
        if (B < 0) s.in = -C / (2 * B);
    } else if (A > 0) {
        if (!roots(A, B, C, discriminant, &t0, &t1)) return usi_ray_span_none(l);
        s.in = t0;
        s.out = t1;
    } else {
        // A line inside the opening crosses the surface twice or goes through the tip: never less.
        roots(-A, -B, -C, discriminant > 0 ? discriminant : 0, &t0, &t1);
        if (l.d.z < 0)
            s.in = t1;
        else
            s.out = t0;
    }
    if (isfinite(s.in)) {
        us_vec3 p = usi_ray_at(l, s.in);
        s.normal =
            usi_unit_or(us_vec3_make(c * c * p.x, c * c * p.y, n * n * (half - p.z)), us_vec3_make(0, 0, 1));
    }
    usi_ray_span_cut_slab(&s, l, us_vec3_make(0, 0, 1), half);
    return s;
}

// Axes of length 0 leave a slab of no thickness; the others one quadratic.
static usi_ray_span span_ellipsoid(usi_ray l, const double *size) {
    const double o[3] = {l.o.x, l.o.y, l.o.z}, d[3] = {l.d.x, l.d.y, l.d.z};
    const us_vec3 axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    usi_ray_span s = usi_ray_span_all(l), round = s;
    double scaled_o[3] = {0, 0, 0}, scaled_d[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        if (size[i] > 0) {
            scaled_o[i] = o[i] / size[i];
            scaled_d[i] = d[i] / size[i];
        } else
            usi_ray_span_cut_slab(&s, l, axis[i], 0);
    }
    us_vec3 so = us_vec3_make(scaled_o[0], scaled_o[1], scaled_o[2]),
            sd = us_vec3_make(scaled_d[0], scaled_d[1], scaled_d[2]);
    double a = us_vec3_dot(sd, sd), c = us_vec3_dot(so, so) - 1;
    us_vec3 m = us_vec3_cross(so, sd);
    if (a > 0) {
        if (!roots(a, us_vec3_dot(so, sd), c, a - us_vec3_dot(m, m), &round.in, &round.out))
            return usi_ray_span_none(l);
        us_vec3 p = us_vec3_add(so, us_vec3_scale(round.in, sd));
        us_vec3 n = us_vec3_make(size[0] > 0 ? p.x / size[0] : 0, size[1] > 0 ? p.y / size[1] : 0,
                                 size[2] > 0 ? p.z / size[2] : 0);
        round.normal = usi_unit_or(n, round.normal);
    } else if (c > 0) {
        return usi_ray_span_none(l);
    }
    return intersect(s, round);
}

// A flat polygon, counter-clockwise about its unit normal n, thickened to n . x from low to high.
static usi_ray_span span_prism(usi_ray l, const us_vec3 *corner, const int32_t *index, int32_t n_corner,
                               us_vec3 n, double low, double high) {
    usi_ray_span s = usi_ray_span_all(l);
    usi_ray_span_cut(&s, l, n, high);
    usi_ray_span_cut(&s, l, us_vec3_scale(-1, n), -low);
    for (int32_t i = 0; i < n_corner && !usi_ray_span_is_empty(s); i++) {
        us_vec3 p = corner[index ? index[i] : i],
                q = corner[index ? index[(i + 1) % n_corner] : (i + 1) % n_corner];
        us_vec3 side = usi_unit_or(us_vec3_cross(us_vec3_sub(q, p), n), us_vec3_make(0, 0, 0));
        usi_ray_span_cut(&s, l, side, us_vec3_dot(side, p));
    }
    return s;
}

// Swept by a sphere. One without area is its edges.
usi_ray_span usi_ray_span_triangle(usi_ray l, const us_vec3 *corner, double r) {
    usi_ray_span s = usi_ray_span_none(l);
    us_vec3 zero = us_vec3_make(0, 0, 0), ab = us_vec3_sub(corner[1], corner[0]),
            ac = us_vec3_sub(corner[2], corner[0]);
    us_vec3 area = us_vec3_cross(ab, ac), n = usi_unit_or(area, zero);
    double height = us_vec3_dot(n, corner[0]),
           thin = us_vec3_norm(area) / (us_vec3_norm(ab) * us_vec3_norm(ac));
    // The normal of a very thin one is noise. Its edges' capsules hide it then: what they leave out is thin^2
    // of them.
    if (thin > (r > 0 ? 1e-8 : 0)) s = span_prism(l, corner, NULL, 3, n, height - r, height + r);
    if (r > 0) {
        for (int i = 0; i < 3; i++)
            s = join(s, span_capsule(l, corner[i], corner[(i + 1) % 3], r));
    }
    return s;
}

// Four faces cut the solid out; each looks away from the corner that is not on it. A flat one is its faces.
static usi_ray_span span_tetrahedron(usi_ray l, const us_vec3 *corner, double r) {
    static const int face[4][4] = {{1, 2, 3, 0}, {0, 2, 3, 1}, {0, 1, 3, 2}, {0, 1, 2, 3}};
    usi_ray_span core = usi_ray_span_all(l);
    bool is_flat = false;
    for (int i = 0; i < 4; i++) {
        us_vec3 p = corner[face[i][0]], ab = us_vec3_sub(corner[face[i][1]], p),
                ac = us_vec3_sub(corner[face[i][2]], p);
        us_vec3 n = usi_unit_or(us_vec3_cross(ab, ac), us_vec3_make(0, 0, 0)),
                inwards = us_vec3_sub(corner[face[i][3]], p);
        double depth = us_vec3_dot(n, inwards);
        if (fabs(depth) <= 1e-12 * us_vec3_norm(inwards)) is_flat = true;
        if (depth > 0) n = us_vec3_scale(-1, n);
        usi_ray_span_cut(&core, l, n, us_vec3_dot(n, p));
    }
    if (is_flat) core = usi_ray_span_none(l);
    if (!is_flat && r == 0) return core;
    for (int i = 0; i < 4; i++) {
        us_vec3 triangle[3] = {corner[face[i][0]], corner[face[i][1]], corner[face[i][2]]};
        core = join(core, usi_ray_span_triangle(l, triangle, r));
    }
    return core;
}

static usi_ray_span span_hull(usi_ray l, const us_hull *h, double r) {
    usi_ray_span s = usi_ray_span_all(l);
    for (int32_t i = 0; i < h->n_face && !usi_ray_span_is_empty(s); i++)
        usi_ray_span_cut(&s, l, h->normal[i], h->offset[i] + r);
    if (r == 0 || usi_ray_span_is_empty(s)) return s;
    // The line meets the polyhedron with its planes moved out by r; the swept one is inside that.
    s = usi_ray_span_all(l);
    for (int32_t i = 0; i < h->n_face; i++)
        usi_ray_span_cut(&s, l, h->normal[i], h->offset[i]);
    for (int32_t i = 0; i < h->n_face; i++) {
        int32_t first = h->face_start[i], n = h->face_start[i + 1] - first;
        s = join(s, span_prism(l, h->vertex, h->face_vertex + first, n, h->normal[i], h->offset[i],
                               h->offset[i] + r));
    }
    for (int32_t i = 0; i < h->n_edge; i++)
        s = join(s, span_capsule(l, h->vertex[h->edge[i][0]], h->vertex[h->edge[i][1]], r));
    return s;
}

// ---------------------------------------------------------------- swept shapes by Newton's method

// Vector from the nearest point of the core to p; 0 inside.
static us_vec3 away_from_box(const us_geom *g, us_vec3 p) {
    double x = fabs(p.x) - g->size[0], y = fabs(p.y) - g->size[1], z = fabs(p.z) - g->size[2];
    return us_vec3_make(x > 0 ? copysign(x, p.x) : 0, y > 0 ? copysign(y, p.y) : 0,
                        z > 0 ? copysign(z, p.z) : 0);
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
    double length2 = r * r + 4 * half * half,
           s = length2 > 0 ? (-(rho - r) * r - below * 2 * half) / length2 : 0;
    s = s < 0 ? 0 : s > 1 ? 1 : s;
    double slant_x = rho - (r - s * r), slant_z = p.z - (-half + s * 2 * half);
    bool is_base = base_x * base_x + base_z * base_z < slant_x * slant_x + slant_z * slant_z;
    return is_base ? turned(p, base_x, base_z) : turned(p, slant_x, slant_z);
}

// The nearest point is x_i = a_i^2 p_i / (a_i^2 + s), s the root of |y| = 1, y_i = a_i p_i / (a_i^2 + s): the
// same equation as that of a trust region. 1/|y| is concave and almost straight in s, so Newton's method on
// it climbs to the root in a few steps.
static us_vec3 away_from_ellipsoid(const double *a, us_vec3 at_p) {
    const double p[3] = {at_p.x, at_p.y, at_p.z};
    double s = 0, away[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        s = fmax(s, a[i] * (fabs(p[i]) - a[i]));  // no term alone may exceed 1
    bool is_over = true;                          // over or under the inside of a flat one
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
    case US_GEOM_BOX:
        return away_from_box(g, p);
    case US_GEOM_DISC:
        return away_from_cylinder(p, g->size[0], 0);
    case US_GEOM_CYLINDER:
        return away_from_cylinder(p, g->size[0], g->size[1]);
    case US_GEOM_CONE:
        return away_from_cone(p, g->size[0], g->size[1]);
    default:
        return away_from_ellipsoid(g->size, p);
    }
}

// Conservative advancement along sign * d from outside; the core is within `reach` of the origin. Returns
// where the surface is, infinity for none.
static double advance(const us_geom *g, usi_ray l, double reach, double sign, us_vec3 *out_normal) {
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
static usi_ray_span span_swept(const us_geom *g, usi_ray l, double bound) {
    // A little more than the shape, so that the walk starts outside even where rounding is against it.
    double reach = (bound + g->radius) * (1 + 1e-9);
    if (us_vec3_dot(l.o, l.o) > reach * reach) return usi_ray_span_none(l);
    usi_ray_span s;
    us_vec3 unused;
    s.in = advance(g, l, reach, 1, &s.normal);
    if (s.in == INFINITY) return usi_ray_span_none(l);
    s.out = -advance(g, l, reach, -1, &unused);
    // A ray that grazes may be found from one side only.
    if (s.out < s.in) s.out = s.in;
    return s;
}

// ---------------------------------------------------------------- convex kinds

// The span of a convex kind, with the line's point o nearest to the origin.
static usi_ray_span span_centred(const us_geom *g, usi_ray l) {
    const double *a = g->size, r = g->radius;
    us_vec3 zero = us_vec3_make(0, 0, 0);
    double bound = g->kind == US_GEOM_DISC                                  ? a[0]
                   : g->kind == US_GEOM_CYLINDER || g->kind == US_GEOM_CONE ? hypot(a[0], a[1])
                   : g->kind == US_GEOM_BOX ? sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])
                                            : fmax(a[0], fmax(a[1], a[2]));
    // A radius that drowns in the rounding of the core's size is none.
    bool is_swept = r > 1e-12 * bound;
    switch (g->kind) {
    case US_GEOM_SPHERE:
        return span_sphere(l, zero, r);
    case US_GEOM_CAPSULE:
        return span_capsule(l, us_vec3_make(0, 0, -a[0]), us_vec3_make(0, 0, a[0]), r);
    case US_GEOM_LOZENGE: {
        usi_ray_span s = span_box(l, a[0], a[1], r);
        if (r == 0) return s;
        const us_vec3 corner[4] = {{-a[0], -a[1], 0}, {a[0], -a[1], 0}, {a[0], a[1], 0}, {-a[0], a[1], 0}};
        for (int i = 0; i < 4; i++)
            s = join(s, span_capsule(l, corner[i], corner[(i + 1) % 4], r));
        return s;
    }
    case US_GEOM_DISC:
        return is_swept ? span_swept(g, l, bound) : span_cylinder(l, a[0], 0);
    case US_GEOM_TRIANGLE:
        return usi_ray_span_triangle(l, g->point, r);
    case US_GEOM_BOX:
        return is_swept ? span_swept(g, l, bound) : span_box(l, a[0], a[1], a[2]);
    case US_GEOM_CYLINDER:
        return is_swept ? span_swept(g, l, bound) : span_cylinder(l, a[0], a[1]);
    case US_GEOM_CONE:
        return is_swept ? span_swept(g, l, bound) : span_cone(l, a[0], a[1]);
    case US_GEOM_ELLIPSOID:
        return is_swept ? span_swept(g, l, bound) : span_ellipsoid(l, a);
    case US_GEOM_TETRAHEDRON:
        return span_tetrahedron(l, g->point, r);
    case US_GEOM_CONVEX:
        return g->hull ? span_hull(l, g->hull, r) : usi_ray_span_none(l);
    default:
        return usi_ray_span_none(l);
    }
}

static usi_ray line_in(us_pose X, usi_ray l) {
    us_quat back = us_quat_conj(X.q);
    return (usi_ray){us_quat_rotate(back, us_vec3_sub(l.o, X.p)), us_quat_rotate(back, l.d)};
}

// Where a line enters a swept intersection, coming from t along `sign` times its direction: as in `advance`,
// but the distance of the core is searched for (intersection.c), to 1e-7 of the size. Infinity: nowhere.
static double advance_to_intersection(const us_geom *core, usi_intersection *planes, usi_ray l, double t,
                                      double end, double radius, double sign, us_vec3 *out_normal) {
    const us_geom point = {.kind = US_GEOM_SPHERE};
    double enough = 1e-7 * (planes->size + radius);
    for (int step = 0; step < 100 && sign * (end - t) >= 0; step++) {
        us_pose X = {{1, 0, 0, 0}, usi_ray_at(l, t)};
        us_gap gap = usi_convex_gap_cached(core, us_pose_identity(), planes, &point, X);
        double f = gap.distance - radius, slope = -sign * us_vec3_dot(gap.normal, l.d);
        *out_normal = us_vec3_scale(-1, gap.normal);
        if (f <= enough) return t;
        if (!(slope < 0)) break;
        t -= sign * f / slope;
    }
    return INFINITY;
}

// `sharp` is the span of the parts' swept sides, whose common edges stay sharp: a swept intersection is
// inside that, rounded.
static usi_ray_span span_swept_intersection(const us_geom *geom, usi_ray l, double radius,
                                            usi_ray_span sharp) {
    usi_intersection planes;
    us_geom core = *geom;
    core.radius = 0;
    if (!isfinite(sharp.in) || !isfinite(sharp.out)) return sharp;
    if (!usi_intersection_init(&planes, &core) || isnan(usi_intersection_support(&planes, l.d).x))
        return usi_ray_span_none(l);
    usi_ray_span s = sharp;
    us_vec3 unused;
    s.in = advance_to_intersection(&core, &planes, l, sharp.in, sharp.out, radius, 1, &s.normal);
    if (s.in == INFINITY) return usi_ray_span_none(l);
    s.out = advance_to_intersection(&core, &planes, l, sharp.out, s.in, radius, -1, &unused);
    if (s.out == INFINITY) s.out = s.in;
    return s;
}

// The span of anything convex, parts of an intersection included. `more` is added to every radius.
static usi_ray_span span_of(const us_geom *geom, usi_ray l, double more) {
    if (geom->kind == US_GEOM_HALF_SPACE) {
        usi_ray_span s = usi_ray_span_all(l);
        usi_ray_span_cut(&s, l, us_vec3_make(0, 0, 1), geom->radius + more);
        return s;
    }
    if (geom->kind == US_GEOM_INTERSECTION) {
        usi_ray_span s = geom->n_part > 0 ? usi_ray_span_all(l) : usi_ray_span_none(l);
        for (int32_t i = 0; i < geom->n_part && !usi_ray_span_is_empty(s); i++) {
            const us_geom_part *part = &geom->parts[i];
            usi_ray_span p = span_of(&part->geom, line_in(part->X_GP, l), geom->radius + more);
            p.normal = us_quat_rotate(part->X_GP.q, p.normal);
            s = intersect(s, p);
        }
        if (usi_ray_span_is_empty(s)) return usi_ray_span_none(l);
        return geom->radius + more > 0 ? span_swept_intersection(geom, l, geom->radius + more, s) : s;
    }
    us_geom g = *geom;
    g.radius += more;
    double shift = -us_vec3_dot(l.o, l.d);
    usi_ray_span s = span_centred(&g, (usi_ray){usi_ray_at(l, shift), l.d});
    s.in += shift;
    s.out += shift;
    return s;
}

// ---------------------------------------------------------------- all kinds

static us_ray_hit cast(const us_geom *g, usi_ray l, double range, double more) {
    double radius = g->radius + more;
    switch (g->kind) {
    case US_GEOM_MESH:
        return g->mesh ? usi_ray_cast_mesh(g->mesh, l, range, radius) : USI_RAY_MISS;
    case US_GEOM_HEIGHT_FIELD:
        return g->field ? usi_ray_cast_field(g->field, l, range, radius) : USI_RAY_MISS;
    case US_GEOM_UNION: {
        us_ray_hit best = USI_RAY_MISS;
        for (int32_t i = 0; i < g->n_part; i++) {
            const us_geom_part *part = &g->parts[i];
            us_ray_hit hit = cast(&part->geom, line_in(part->X_GP, l), range, radius);
            if (hit.range < best.range)
                best = (us_ray_hit){hit.range, us_quat_rotate(part->X_GP.q, hit.normal)};
        }
        return best;
    }
    default:
        return usi_ray_span_hit(span_of(g, l, more), l, range);
    }
}

static bool is_ray(us_vec3 origin, us_vec3 direction, double range) {
    const double length = us_vec3_norm(direction);
    return length > 0 && isfinite(length) && range >= 0 && isfinite(us_vec3_dot(origin, origin));
}

static usi_ray ray_in(us_pose X_WG, us_vec3 origin, us_vec3 direction) {
    return line_in(X_WG, (usi_ray){origin, us_vec3_scale(1 / us_vec3_norm(direction), direction)});
}

static us_ray_hit in_world(us_pose X_WG, us_ray_hit hit) {
    if (hit.range < INFINITY) hit.normal = us_quat_rotate(X_WG.q, hit.normal);
    return hit;
}

us_ray_hit us_geom_ray(const us_geom *geom, us_pose X_WG, us_vec3 origin_W, us_vec3 direction_W,
                       double range) {
    if (!geom || !is_ray(origin_W, direction_W, range)) return USI_RAY_MISS;
    return in_world(X_WG, cast(geom, ray_in(X_WG, origin_W, direction_W), range, 0));
}

void us_geom_rays(const us_geom *geom, us_pose X_WG, int32_t n, const us_vec3 *origins_W,
                  const us_vec3 *directions_W, const double *ranges, us_ray_hit *out_hits) {
    enum { SOME = 64 };
    const bool has_packets = geom && geom->kind == US_GEOM_HEIGHT_FIELD && geom->field && geom->radius == 0;
    for (int32_t first = 0, count; first < n; first += count) {
        usi_ray ray[SOME];
        count = 0;
        while (has_packets && count < SOME && first + count < n &&
               is_ray(origins_W[first + count], directions_W[first + count], ranges[first + count])) {
            ray[count] = ray_in(X_WG, origins_W[first + count], directions_W[first + count]);
            count++;
        }
        if (count > 0) {
            usi_ray_cast_field_many(geom->field, count, ray, ranges + first, out_hits + first);
            for (int32_t i = first; i < first + count; i++)
                out_hits[i] = in_world(X_WG, out_hits[i]);
        } else {
            out_hits[first] = us_geom_ray(geom, X_WG, origins_W[first], directions_W[first], ranges[first]);
            count = 1;
        }
    }
}

// Shapes by themselves: name, check of the data, support point and bounding box of every kind.
//
// A convex shape is known to the distance algorithms only by its support function: the farthest point in a
// direction. The radius is kept out of it, since a sphere-swept shape is touched where its thin core is
// nearest, and the core's distance less the radius is exact:
//
//        _______________            d
//      /  _____________  \        ^        usi_core_support: a corner of the inner rectangle
//     |  |    core     |  |      /         us_geom_support:  that corner, and the radius along d on top
//     |  |_____________|  |     /
//      \ _______________ /    radius all round
//
// Where several points are equally far, any of them is right; round flat faces (disc, cylinder) then give
// their centre, and boxes the corner on the side of the sign bit, so that the same direction always gives the
// same point.
#include "geom/intersection.h"

enum {
    CLIMB_FROM = 48,   // hulls with more vertices are climbed; below that visiting all of them is quicker
    CLIMB_SEEDS = 16,  // the first vertices of a hull, spread over it (hull.c): the climb starts at the best
    MAX_DEPTH = 16,    // of unions within unions; a part that contains itself would never end
};

const char *us_geom_kind_name(us_geom_kind kind) {
    static const char *const names[] = {
#define US_GEOM_NAME(code, name) name,
        US_GEOM_LIST(US_GEOM_NAME)
#undef US_GEOM_NAME
    };
    return (int)kind >= 0 && kind < US_GEOM_COUNT ? names[kind] : "?";
}

// ---- Checks ----

static bool is_finite3(us_vec3 a) { return isfinite(a.x) && isfinite(a.y) && isfinite(a.z); }

static int n_size(us_geom_kind kind) {
    switch (kind) {
    case US_GEOM_CAPSULE:
    case US_GEOM_DISC:
        return 1;
    case US_GEOM_LOZENGE:
    case US_GEOM_CYLINDER:
    case US_GEOM_CONE:
        return 2;
    case US_GEOM_BOX:
    case US_GEOM_ELLIPSOID:
        return 3;
    default:
        return 0;
    }
}

static int n_point(us_geom_kind kind) {
    return kind == US_GEOM_TRIANGLE ? 3 : kind == US_GEOM_TETRAHEDRON ? 4 : 0;
}

static us_status check_at(const us_geom *g, int depth, us_error *err);

// Every intersection has an end, and something in it; one within another need not have an end itself.
static us_status check_intersections(const us_geom *g, us_error *err) {
    us_status status = US_OK;
    for (int32_t i = 0; g->kind == US_GEOM_UNION && i < g->n_part && !status; i++)
        status = check_intersections(&g->parts[i].geom, err);
    if (g->kind != US_GEOM_INTERSECTION) return status;
    us_aabb box = us_geom_box(g, us_pose_identity());
    usi_intersection meet;
    bool is_empty = box.min.x > box.max.x || box.min.y > box.max.y || box.min.z > box.max.z;
    if (!is_empty && !isfinite(us_vec3_norm(us_vec3_sub(box.max, box.min)))) {
        return us_error_set(err, US_ERR_VALUE, NULL, "add a box around it to the parts",
                            "an intersection of half spaces alone may have no end");
    }
    if (!is_empty && !usi_intersection_init(&meet, g)) {
        return us_error_set(err, US_ERR_LIMIT, NULL,
                            "intersect fewer shapes, or give their intersection as one hull",
                            "an intersection has more than %d parts", USI_INTERSECTION_PARTS);
    }
    if (is_empty || isnan(usi_intersection_support(&meet, us_vec3_make(0, 0, 1)).x)) {
        return us_error_set(err, US_ERR_VALUE, NULL, "move the parts together",
                            "the parts of an intersection have nothing in common");
    }
    return US_OK;
}

static us_status check_parts(const us_geom *g, int depth, us_error *err) {
    const char *name = us_geom_kind_name(g->kind);
    if (!g->parts || g->n_part < 1) {
        return us_error_set(err, US_ERR_VALUE, NULL, "give it at least one part",
                            "a shape of kind %s has no parts", name);
    }
    if (depth >= MAX_DEPTH) {
        return us_error_set(err, US_ERR_LIMIT, NULL, "write the parts of the inner shapes into the outer one",
                            "shapes are nested more than %d deep", MAX_DEPTH);
    }
    for (int32_t i = 0; i < g->n_part; i++) {
        const us_geom_part *part = &g->parts[i];
        us_quat q = part->X_GP.q;
        double norm2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
        // 1e-6: well above what a long product of rotations loses, well below what would be seen as a scale.
        if (!is_finite3(part->X_GP.p) || !(fabs(norm2 - 1) < 1e-6)) {
            return us_error_set(err, US_ERR_VALUE, NULL, "use finite numbers and a quaternion of unit length",
                                "part %d of a shape of kind %s has no proper pose", (int)i, name);
        }
        us_geom_kind kind = part->geom.kind;
        if (g->kind == US_GEOM_INTERSECTION && !usi_is_convex(kind) && kind != US_GEOM_HALF_SPACE &&
            kind != US_GEOM_INTERSECTION) {
            return us_error_set(
                err, US_ERR_VALUE, NULL,
                "intersect convex shapes only, and put a union of such intersections around them",
                "part %d of an intersection is of kind %s", (int)i, us_geom_kind_name(kind));
        }
        us_status status = check_at(&part->geom, depth + 1, err);
        if (status) return status;
    }
    return US_OK;
}

static us_status check_at(const us_geom *g, int depth, us_error *err) {
    if ((int)g->kind < 0 || g->kind >= US_GEOM_COUNT) {
        return us_error_set(err, US_ERR_VALUE, NULL, "use a value of us_geom_kind",
                            "invalid kind of shape %d", (int)g->kind);
    }
    const char *name = us_geom_kind_name(g->kind);
    if (!isfinite(g->radius) || g->radius < 0) {
        return us_error_set(err, US_ERR_VALUE, NULL, "use 0 or more, finite",
                            "the radius of a shape of kind %s is %g", name, g->radius);
    }
    for (int i = 0; i < n_size(g->kind); i++) {
        if (!isfinite(g->size[i]) || g->size[i] < 0) {
            return us_error_set(err, US_ERR_VALUE, NULL, "use 0 or more, finite",
                                "size[%d] of a shape of kind %s is %g", i, name, g->size[i]);
        }
    }
    for (int i = 0; i < n_point(g->kind); i++) {
        if (!is_finite3(g->point[i])) {
            return us_error_set(err, US_ERR_VALUE, NULL, "use finite coordinates",
                                "point[%d] of a shape of kind %s is not finite", i, name);
        }
    }
    switch (g->kind) {
    case US_GEOM_CONVEX:
        if (!g->hull)
            return us_error_set(err, US_ERR_VALUE, NULL, "make one by us_hull_create",
                                "a convex shape has no hull");
        break;
    case US_GEOM_MESH:
        if (!g->mesh)
            return us_error_set(err, US_ERR_VALUE, NULL, "make one by us_mesh_create",
                                "a mesh shape has no mesh");
        break;
    case US_GEOM_HEIGHT_FIELD:
        if (!g->field)
            return us_error_set(err, US_ERR_VALUE, NULL, "make one by us_height_field_create",
                                "a height field shape has no field");
        break;
    case US_GEOM_UNION:
    case US_GEOM_INTERSECTION:
        return check_parts(g, depth, err);
    default:
        break;
    }
    return US_OK;
}

us_status us_geom_check(const us_geom *geom, us_error *err) {
    if (!geom) return us_error_set(err, US_ERR_ARG, NULL, "give a shape", "no shape to check");
    us_status status = check_at(geom, 0, err);
    return status ? status : check_intersections(geom, err);
}

// ---- Support points ----

// The farthest of a few points; of equals the first.
static us_vec3 farthest(const us_vec3 *p, int n, us_vec3 d) {
    int best = 0;
    double far = us_vec3_dot(p[0], d);
    for (int i = 1; i < n; i++) {
        double at = us_vec3_dot(p[i], d);
        best = at > far ? i : best;  // without a branch, which could not be predicted
        far = at > far ? at : far;
    }
    return p[best];
}

// From vertex to vertex along edges, always to the best neighbour. On a convex polyhedron a vertex that no
// neighbour beats is the farthest of all, and the way from one of the well spread first vertices is short: a
// dozen steps on a hull of a thousand vertices.
static us_vec3 hull_support(const us_hull *h, us_vec3 d) {
    if (h->n_vertex <= CLIMB_FROM) return farthest(h->vertex, h->n_vertex, d);
    int32_t at = 0;
    double far = us_vec3_dot(h->vertex[0], d);
    for (int32_t i = 1; i < CLIMB_SEEDS; i++) {
        double x = us_vec3_dot(h->vertex[i], d);
        if (x > far) {
            far = x;
            at = i;
        }
    }
    for (;;) {
        int32_t next = at;
        for (int32_t k = h->neighbour_start[at]; k < h->neighbour_start[at + 1]; k++) {
            double x = us_vec3_dot(h->vertex[h->neighbour[k]], d);
            if (x > far) {
                far = x;
                next = h->neighbour[k];
            }
        }
        if (next == at) return h->vertex[at];
        at = next;  // `far` grows at every step, so this ends
    }
}

// Squares of components below this are no longer exact, above its inverse they overflow.
static const double tiny2 = 1e-280, huge2 = 1e280;
// The inverse of anything smaller may overflow: a direction of such a length is none.
static const double smallest = 2.3e-308;

// sqrt(x^2 + y^2) and the factor that makes (x, y) of unit length; 0 and 0 for nothing. Numbers whose squares
// would vanish or overflow are scaled first.
static inline double length2(double x, double y, double *out_inverse) {
    double n2 = x * x + y * y;
    if (n2 > tiny2 && n2 < huge2) {
        double n = sqrt(n2);
        *out_inverse = 1 / n;
        return n;
    }
    double n = hypot(x, y);
    *out_inverse = n > smallest ? 1 / n : 0;
    return n;
}

static us_vec3 ellipsoid_support(const double *s, us_vec3 d) {
    us_vec3 e = us_vec3_make(s[0] * d.x, s[1] * d.y, s[2] * d.z);
    double n2 = us_vec3_dot(e, e);
    if (!(n2 > tiny2 && n2 < huge2)) {
        double largest = fmax(fabs(e.x), fmax(fabs(e.y), fabs(e.z)));
        // Flat where it is looked at (or no direction): every point is as far, and the centre is one of them.
        if (!(largest > smallest)) return us_vec3_make(0, 0, 0);
        e = us_vec3_scale(1 / largest, e);
        n2 = us_vec3_dot(e, e);
    }
    double f = 1 / sqrt(n2);
    return us_vec3_make(f * s[0] * e.x, f * s[1] * e.y, f * s[2] * e.z);
}

us_vec3 usi_core_support(const us_geom *g, us_vec3 d) {
    const double *s = g->size;
    double inverse;
    switch (g->kind) {
    case US_GEOM_SPHERE:
        return us_vec3_make(0, 0, 0);
    case US_GEOM_CAPSULE:
        return us_vec3_make(0, 0, copysign(s[0], d.z));
    case US_GEOM_LOZENGE:
        return us_vec3_make(copysign(s[0], d.x), copysign(s[1], d.y), 0);
    case US_GEOM_DISC:
        length2(d.x, d.y, &inverse);
        return us_vec3_make(s[0] * inverse * d.x, s[0] * inverse * d.y, 0);
    case US_GEOM_TRIANGLE:
        return farthest(g->point, 3, d);
    case US_GEOM_BOX:
        return us_vec3_make(copysign(s[0], d.x), copysign(s[1], d.y), copysign(s[2], d.z));
    case US_GEOM_CYLINDER:
        length2(d.x, d.y, &inverse);
        return us_vec3_make(s[0] * inverse * d.x, s[0] * inverse * d.y, copysign(s[1], d.z));
    case US_GEOM_CONE: {
        double across = length2(d.x, d.y, &inverse);
        if (s[0] * across <= 2 * s[1] * d.z) return us_vec3_make(0, 0, s[1]);
        return us_vec3_make(s[0] * inverse * d.x, s[0] * inverse * d.y, -s[1]);
    }
    case US_GEOM_ELLIPSOID:
        return ellipsoid_support(s, d);
    case US_GEOM_TETRAHEDRON:
        return farthest(g->point, 4, d);
    case US_GEOM_CONVEX:
        return hull_support(g->hull, d);
    case US_GEOM_INTERSECTION: {
        usi_intersection meet;
        return usi_intersection_init(&meet, g) ? usi_intersection_support(&meet, d)
                                               : us_vec3_make(NAN, NAN, NAN);
    }
    default:
        return us_vec3_make(NAN, NAN, NAN);
    }
}

us_vec3 us_geom_support(const us_geom *geom, us_vec3 direction_G) {
    us_vec3 p = usi_core_support(geom, direction_G), d = direction_G;
    if (!(geom->radius > 0)) return p;
    double n2 = us_vec3_dot(d, d);
    if (!(n2 > tiny2 && n2 < huge2)) {
        double largest = fmax(fabs(d.x), fmax(fabs(d.y), fabs(d.z)));
        if (!(largest > smallest)) return p;
        d = us_vec3_scale(1 / largest, d);
        n2 = us_vec3_dot(d, d);
    }
    return us_vec3_add(p, us_vec3_scale(geom->radius / sqrt(n2), d));
}

// ---- Boxes ----

static us_aabb box_around(us_vec3 centre, double x, double y, double z) {
    us_vec3 half = us_vec3_make(x, y, z);
    us_aabb b = {us_vec3_sub(centre, half), us_vec3_add(centre, half)};
    return b;
}

// Minimum and maximum without the care for NaN of fmin and fmax, which costs a call.
static inline double fast_min(double a, double b) { return a < b ? a : b; }
static inline double fast_max(double a, double b) { return a > b ? a : b; }
static inline us_vec3 min3(us_vec3 a, us_vec3 b) {
    return us_vec3_make(fast_min(a.x, b.x), fast_min(a.y, b.y), fast_min(a.z, b.z));
}
static inline us_vec3 max3(us_vec3 a, us_vec3 b) {
    return us_vec3_make(fast_max(a.x, b.x), fast_max(a.y, b.y), fast_max(a.z, b.z));
}

static us_aabb box_of_points(const us_vec3 *p, int32_t n, us_pose X_WG, double radius) {
    us_vec3 first = us_pose_point(X_WG, p[0]);
    us_aabb b = {first, first};
    for (int32_t i = 1; i < n; i++) {
        us_vec3 x = us_pose_point(X_WG, p[i]);
        b.min = min3(b.min, x);
        b.max = max3(b.max, x);
    }
    us_vec3 r = us_vec3_make(radius, radius, radius);
    b.min = us_vec3_sub(b.min, r);
    b.max = us_vec3_add(b.max, r);
    return b;
}

// Box around a rotated box (of G): its half lengths, seen along each axis of W, add up.
static us_aabb box_of_box(us_vec3 min, us_vec3 max, us_pose X_WG, const double *R, double radius) {
    us_vec3 h = us_vec3_scale(0.5, us_vec3_sub(max, min)),
            c = us_pose_point(X_WG, us_vec3_scale(0.5, us_vec3_add(min, max)));
    return box_around(c, radius + fabs(R[0]) * h.x + fabs(R[1]) * h.y + fabs(R[2]) * h.z,
                      radius + fabs(R[3]) * h.x + fabs(R[4]) * h.y + fabs(R[5]) * h.z,
                      radius + fabs(R[6]) * h.x + fabs(R[7]) * h.y + fabs(R[8]) * h.z);
}

// Hulls with many vertices: the support point along each axis of W, there and back.
static us_aabb box_of_hull(const us_geom *g, us_pose X_WG, const double *R) {
    if (g->hull->n_vertex <= CLIMB_FROM)
        return box_of_points(g->hull->vertex, g->hull->n_vertex, X_WG, g->radius);
    double low[3], high[3], p[3] = {X_WG.p.x, X_WG.p.y, X_WG.p.z};
    for (int i = 0; i < 3; i++) {
        us_vec3 axis = us_vec3_make(R[3 * i], R[3 * i + 1], R[3 * i + 2]);
        high[i] = p[i] + us_vec3_dot(axis, hull_support(g->hull, axis)) + g->radius;
        low[i] = p[i] + us_vec3_dot(axis, hull_support(g->hull, us_vec3_scale(-1, axis))) - g->radius;
    }
    us_aabb b = {us_vec3_make(low[0], low[1], low[2]), us_vec3_make(high[0], high[1], high[2])};
    return b;
}

static us_aabb box_of_cone(const us_geom *g, us_pose X_WG, const double *R) {
    double low[3], high[3], p[3] = {X_WG.p.x, X_WG.p.y, X_WG.p.z};
    for (int i = 0; i < 3; i++) {
        double tip = p[i] + R[3 * i + 2] * g->size[1], base = p[i] - R[3 * i + 2] * g->size[1];
        double rim = g->size[0] * sqrt(R[3 * i] * R[3 * i] + R[3 * i + 1] * R[3 * i + 1]);
        low[i] = fast_min(tip, base - rim) - g->radius;
        high[i] = fast_max(tip, base + rim) + g->radius;
    }
    us_aabb b = {us_vec3_make(low[0], low[1], low[2]), us_vec3_make(high[0], high[1], high[2])};
    return b;
}

// Unions: the box around the parts' boxes. Intersections: what the parts' boxes share (min above max where
// that is nothing).
static us_aabb box_of_parts(const us_geom *g, us_pose X_WG) {
    bool is_union = g->kind == US_GEOM_UNION;
    double start = is_union ? INFINITY : -INFINITY, r = g->radius;
    us_aabb b = {us_vec3_make(start, start, start), us_vec3_make(-start, -start, -start)};
    for (int32_t i = 0; i < g->n_part; i++) {
        us_aabb c = us_geom_box(&g->parts[i].geom, us_pose_mul(X_WG, g->parts[i].X_GP));
        if (is_union) {
            b.min = min3(b.min, c.min);
            b.max = max3(b.max, c.max);
        } else {
            b.min = max3(b.min, c.min);
            b.max = min3(b.max, c.max);
        }
    }
    b.min = us_vec3_sub(b.min, us_vec3_make(r, r, r));
    b.max = us_vec3_add(b.max, us_vec3_make(r, r, r));
    return b;
}

us_aabb us_geom_box(const us_geom *geom, us_pose X_WG) {
    us_mat3 matrix = us_quat_matrix(X_WG.q);
    const double *R = matrix.m, *s = geom->size;
    const double r = geom->radius;
    us_vec3 p = X_WG.p;
    double e[3];
    switch (geom->kind) {
    case US_GEOM_SPHERE:
        return box_around(p, r, r, r);
    case US_GEOM_CAPSULE:
        return box_around(p, r + s[0] * fabs(R[2]), r + s[0] * fabs(R[5]), r + s[0] * fabs(R[8]));
    case US_GEOM_LOZENGE:
        return box_of_box(us_vec3_make(-s[0], -s[1], 0), us_vec3_make(s[0], s[1], 0), X_WG, R, r);
    case US_GEOM_BOX:
        return box_of_box(us_vec3_make(-s[0], -s[1], -s[2]), us_vec3_make(s[0], s[1], s[2]), X_WG, R, r);
    case US_GEOM_DISC:
    case US_GEOM_CYLINDER: {
        double half = geom->kind == US_GEOM_DISC ? 0 : s[1];
        for (int i = 0; i < 3; i++)
            e[i] = r + s[0] * sqrt(R[3 * i] * R[3 * i] + R[3 * i + 1] * R[3 * i + 1]) +
                   half * fabs(R[3 * i + 2]);
        return box_around(p, e[0], e[1], e[2]);
    }
    case US_GEOM_CONE:
        return box_of_cone(geom, X_WG, R);
    case US_GEOM_ELLIPSOID:
        for (int i = 0; i < 3; i++) {
            double a = s[0] * R[3 * i], b = s[1] * R[3 * i + 1], c = s[2] * R[3 * i + 2];
            e[i] = r + sqrt(a * a + b * b + c * c);
        }
        return box_around(p, e[0], e[1], e[2]);
    case US_GEOM_TRIANGLE:
        return box_of_points(geom->point, 3, X_WG, r);
    case US_GEOM_TETRAHEDRON:
        return box_of_points(geom->point, 4, X_WG, r);
    case US_GEOM_CONVEX:
        return box_of_hull(geom, X_WG, R);
    case US_GEOM_MESH:
        return box_of_box(geom->mesh->node[0].min, geom->mesh->node[0].max, X_WG, R, r);
    case US_GEOM_HEIGHT_FIELD: {
        const us_height_field *f = geom->field;
        double x = 0.5 * (f->n_x - 1) * f->dx, y = 0.5 * (f->n_y - 1) * f->dy;
        return box_of_box(us_vec3_make(-x, -y, f->low), us_vec3_make(x, y, f->high), X_WG, R, r);
    }
    case US_GEOM_UNION:
    case US_GEOM_INTERSECTION:
        return box_of_parts(geom, X_WG);
    default: {
        us_aabb all = {us_vec3_make(-INFINITY, -INFINITY, -INFINITY),
                       us_vec3_make(INFINITY, INFINITY, INFINITY)};
        // Level ground has an upper side: what is above it need not be tested.
        if (geom->kind == US_GEOM_HALF_SPACE && R[2] == 0 && R[5] == 0 && R[8] > 0) all.max.z = p.z + r;
        return all;
    }
    }
}

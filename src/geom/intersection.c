// Support points of an intersection of convex shapes, by cutting planes (Kelley 1960).
//
// The intersection lies in a box, behind the planes of its flat parts, and behind every plane that touches a
// curved one. The farthest point x of this polyhedron is a linear program in three unknowns. Where x lies
// outside a part, the plane that touches the part at its point nearest to x cuts x off, and the next x is
// nearer:
//
//              x
//             /.\                     n: from the part's nearest point to x
//       -----/-.-\------- new plane
//           / ,-. \                   The new plane's offset is the part's own farthest point along n: it
//          / (part)                   never cuts into the part.
//
// Each cut about halves the angle that is left open, and the error goes as its square: a dozen cuts are
// enough for 1e-7. The planes stay for the next direction, so that the search for a distance pays for them
// once.
//
// The program is solved by the dual simplex method: three planes meet in a corner x, and d is a sum of their
// normals with weights of 0 or more, so that nothing behind these three is farther along d. The plane that x
// is farthest beyond replaces one of them, the one whose weight runs out first; the new corner is less far
// along d. It begins at a corner of the box, and ends behind all planes. A cut is one such exchange.
#include "geom/intersection.h"

#include <float.h>

// Scaled lengths: what counts as behind a plane; as empty; and how far outside a curved part the answer may
// be.
static const double behind = 1e-12, empty = 1e-9, enough = 1e-7;
// Of a direction's parts beside its largest, which is 1.
static const double MIN_WEIGHT = 1e-12;
// 10 to 30 exchanges are usual.
enum { MAX_CUTS = 64, MAX_STEPS = 400 };

// ---- Linear programs ----

static us_vec3 box_side(int k) {
    double sign = k % 2 ? -1 : 1;
    return us_vec3_make(k / 2 == 0 ? sign : 0, k / 2 == 1 ? sign : 0, k / 2 == 2 ? sign : 0);
}

// Three planes that meet in x. d = sum of weight * normal.
typedef struct lp_corner {
    us_vec3 normal[3], across[3];  // across: the vector that is 1 along its own normal and 0 along the others
    double offset[3], weight[3];
    us_vec3 d, x;
} lp_corner;

static us_vec3 sum3(double a, us_vec3 u, double b, us_vec3 v, double c, us_vec3 w) {
    return us_vec3_make(a * u.x + b * v.x + c * w.x, a * u.y + b * v.y + c * w.y,
                        a * u.z + b * v.z + c * w.z);
}

static void find_corner(lp_corner *c) {
    const us_vec3 *n = c->normal;
    us_vec3 yz = us_vec3_cross(n[1], n[2]), zx = us_vec3_cross(n[2], n[0]), xy = us_vec3_cross(n[0], n[1]);
    double scale = 1 / us_vec3_dot(n[0], yz);
    c->across[0] = us_vec3_scale(scale, yz);
    c->across[1] = us_vec3_scale(scale, zx);
    c->across[2] = us_vec3_scale(scale, xy);
    c->x = sum3(c->offset[0], c->across[0], c->offset[1], c->across[1], c->offset[2], c->across[2]);
    // Planes at small angles: once more, with what rounding left.
    double rest[3];
    for (int k = 0; k < 3; k++) {
        rest[k] = c->offset[k] - us_vec3_dot(n[k], c->x);
        double weight = us_vec3_dot(c->d, c->across[k]);
        c->weight[k] = weight > 0 ? weight : 0;
    }
    c->x = us_vec3_add(c->x, sum3(rest[0], c->across[0], rest[1], c->across[1], rest[2], c->across[2]));
}

// A corner of the box. No weight is 0, so that each exchange gains something.
static lp_corner first_corner(const usi_intersection *m, us_vec3 d) {
    const double part[3] = {d.x, d.y, d.z};
    lp_corner c = {.d = d};
    double w[3];
    for (int k = 0; k < 3; k++) {
        double sign = part[k] < 0 ? -1 : 1;
        c.normal[k] = us_vec3_make(k == 0 ? sign : 0, k == 1 ? sign : 0, k == 2 ? sign : 0);
        c.offset[k] = m->half[k];
        w[k] = sign * fmax(fabs(part[k]), MIN_WEIGHT);
    }
    c.d = us_vec3_make(w[0], w[1], w[2]);
    find_corner(&c);
    return c;
}

// Puts a plane that x is beyond in the place of one of the three. False: nothing is behind all four.
static bool exchange(lp_corner *c, us_vec3 normal, double offset) {
    int out = -1;
    double min_ratio = INFINITY;
    for (int k = 0; k < 3; k++) {
        double share = us_vec3_dot(normal, c->across[k]);
        if (share > 1e-10 && c->weight[k] < min_ratio * share) {
            out = k;
            min_ratio = c->weight[k] / share;
        }
    }
    if (out < 0) return false;
    c->normal[out] = normal;
    c->offset[out] = offset;
    find_corner(c);
    return true;
}

// The plane that x is farthest beyond, -1 for none; looks at four planes at once.
static int find_worst(const usi_intersection *m, us_vec3 x, double *out_beyond) {
    usi_v4 px = usi_v4_all(x.x), py = usi_v4_all(x.y), pz = usi_v4_all(x.z), max_beyond = usi_v4_all(behind);
    usi_v4i worst = {-1, -1, -1, -1};
    for (int i = 0; i < (m->n_plane + 3) / 4; i++) {
        usi_v4 beyond = m->normal_x[i] * px + m->normal_y[i] * py + m->normal_z[i] * pz - m->offset[i];
        usi_v4i is_more = beyond > max_beyond, index = {4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3};
        max_beyond = (usi_v4)((is_more & (usi_v4i)beyond) | (~is_more & (usi_v4i)max_beyond));
        worst = (is_more & index) | (~is_more & worst);
    }
    int lane = 0;
    for (int k = 1; k < 4; k++)
        if (max_beyond[k] > max_beyond[lane]) lane = k;
    *out_beyond = max_beyond[lane];
    return (int)worst[lane];
}

// From any corner to one behind all planes.
static bool solve(const usi_intersection *m, lp_corner *c) {
    for (int step = 0; step < MAX_STEPS; step++) {
        double beyond;
        int i = find_worst(m, c->x, &beyond);
        if (i < 0) return true;
        us_vec3 normal =
            us_vec3_make(m->normal_x[i / 4][i % 4], m->normal_y[i / 4][i % 4], m->normal_z[i / 4][i % 4]);
        if (!exchange(c, normal, m->offset[i / 4][i % 4])) return beyond < empty;
    }
    // Round and round among planes that all but coincide: x is beyond none by more than rounding.
    return true;
}

// ---- Planes ----

// normal . x <= offset, in units of the size from the centre.
static void put_plane(usi_intersection *m, int at, us_vec3 normal, double offset) {
    int i = at / 4, k = at % 4;
    if (k == 0 && at >= m->n_plane) {
        // The other lanes of a new group are planes that nothing is beyond.
        m->normal_x[i] = m->normal_y[i] = m->normal_z[i] = usi_v4_zero();
        m->offset[i] = usi_v4_all(DBL_MAX);
    }
    m->normal_x[i][k] = normal.x;
    m->normal_y[i][k] = normal.y;
    m->normal_z[i][k] = normal.z;
    m->offset[i][k] = offset;
}

// The same in the intersection's frame and in metres. Flat ones stay; of the others the oldest makes room.
static bool add_plane(usi_intersection *m, us_vec3 normal, double offset, bool is_flat) {
    int at = m->n_plane;
    if (is_flat && at == USI_INTERSECTION_FLAT) return false;
    if (at == USI_INTERSECTION_PLANES) {
        at = m->n_flat + m->next;
        if (++m->next == USI_INTERSECTION_PLANES - m->n_flat) m->next = 0;
    }
    put_plane(m, at, normal, (offset - us_vec3_dot(normal, m->centre)) / m->size);
    if (at == m->n_plane) m->n_plane++;
    if (is_flat) m->n_flat = m->n_plane;
    return true;
}

static bool add_flat(usi_intersection *m, us_pose X_GP, us_vec3 normal_P, double offset_P) {
    us_vec3 n = us_quat_rotate(X_GP.q, normal_P);
    return add_plane(m, n, offset_P + us_vec3_dot(n, X_GP.p), true);
}

static bool add_tetrahedron(usi_intersection *m, us_pose X_GP, const us_vec3 *p) {
    const int face[4][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}};
    for (int i = 0; i < 4; i++) {
        us_vec3 a = p[face[i][0]],
                n = us_vec3_cross(us_vec3_sub(p[face[i][1]], a), us_vec3_sub(p[face[i][2]], a));
        n = us_vec3_scale(1 / us_vec3_norm(n), n);
        if (us_vec3_dot(n, us_vec3_sub(p[face[i][3]], a)) > 0) n = us_vec3_scale(-1, n);
        if (!add_flat(m, X_GP, n, us_vec3_dot(n, a))) return false;
    }
    return true;
}

// How thick a tetrahedron is beside its size: below 1e-6 its planes mean little.
static bool is_thick(const us_vec3 *p) {
    us_vec3 a = us_vec3_sub(p[1], p[0]), b = us_vec3_sub(p[2], p[0]), c = us_vec3_sub(p[3], p[0]);
    double size = fmax(us_vec3_norm(a), fmax(us_vec3_norm(b), us_vec3_norm(c)));
    return fabs(us_vec3_dot(a, us_vec3_cross(b, c))) > 1e-6 * size * size * size;
}

// One leaf of the tree: flat ones as planes, others as parts.
static bool add_part(usi_intersection *m, const us_geom *g, us_pose X_GP, double radius) {
    if (g->kind == US_GEOM_HALF_SPACE) return add_flat(m, X_GP, us_vec3_make(0, 0, 1), radius);
    bool is_sharp = !(radius > 0);
    if (is_sharp && g->kind == US_GEOM_BOX && m->n_flat + 6 <= USI_INTERSECTION_FLAT) {
        for (int k = 0; k < 6; k++)
            if (!add_flat(m, X_GP, box_side(k), g->size[k / 2])) return false;
        return true;
    }
    if (is_sharp && g->kind == US_GEOM_TETRAHEDRON && is_thick(g->point) &&
        m->n_flat + 4 <= USI_INTERSECTION_FLAT)
        return add_tetrahedron(m, X_GP, g->point);
    if (is_sharp && g->kind == US_GEOM_CONVEX && m->n_flat + g->hull->n_face <= USI_INTERSECTION_FLAT) {
        for (int32_t f = 0; f < g->hull->n_face; f++)
            if (!add_flat(m, X_GP, g->hull->normal[f], g->hull->offset[f])) return false;
        return true;
    }
    if (m->n_part == USI_INTERSECTION_PARTS) return false;
    m->part[m->n_part++] = (usi_intersection_part){g, X_GP, us_quat_matrix(X_GP.q), radius};
    return true;
}

// Parts of parts are parts. The radius of an intersection within is added to each of its parts.
static bool add_parts(usi_intersection *m, const us_geom *g, us_pose X_GQ, double more) {
    for (int32_t i = 0; i < g->n_part; i++) {
        const us_geom *part = &g->parts[i].geom;
        us_pose X_GP = us_pose_mul(X_GQ, g->parts[i].X_GP);
        double radius = part->radius + more;
        bool is_added = part->kind == US_GEOM_INTERSECTION ? add_parts(m, part, X_GP, radius)
                                                           : add_part(m, part, X_GP, radius);
        if (!is_added) return false;
    }
    return true;
}

bool usi_intersection_init(usi_intersection *m, const us_geom *g) {
    us_geom core = *g;
    core.radius = 0;
    us_aabb box = us_geom_box(&core, us_pose_identity());
    us_vec3 side = us_vec3_sub(box.max, box.min);
    double size = 0.5 * fmax(side.x, fmax(side.y, side.z));
    m->n_part = m->n_flat = m->n_plane = m->next = 0;
    if (!isfinite(us_vec3_dot(side, side)) || !(side.x >= 0 && side.y >= 0 && side.z >= 0)) return false;
    m->centre = us_vec3_scale(0.5, us_vec3_add(box.min, box.max));
    m->size = size > 0 ? size : 1;
    m->half[0] = 0.5 * side.x / m->size;
    m->half[1] = 0.5 * side.y / m->size;
    m->half[2] = 0.5 * side.z / m->size;
    for (int k = 0; k < 6; k++) {
        put_plane(m, k, box_side(k), m->half[k / 2]);
        m->n_plane = m->n_flat = k + 1;
    }
    return add_parts(m, g, us_pose_identity(), 0);
}

// ---- Support ----

// A plane that touches a part, and how far beyond it the point is that asked for it.
typedef struct tangent_plane {
    us_vec3 normal;
    double offset, beyond;
} tangent_plane;

// The point of a core nearest to x, both in the part's frame, of kinds where that is one line. False: of
// another kind.
static bool nearest_on_core(const us_geom *g, us_vec3 x, us_vec3 *out) {
    double across = sqrt(x.x * x.x + x.y * x.y), radius = 0, half = 0;
    switch (g->kind) {
    case US_GEOM_SPHERE:
        break;
    case US_GEOM_CAPSULE:
        half = g->size[0];
        break;
    case US_GEOM_DISC:
        radius = g->size[0];
        break;
    case US_GEOM_CYLINDER:
        radius = g->size[0];
        half = g->size[1];
        break;
    default:
        return false;
    }
    double shrink = across > radius ? radius / across : 1;
    *out = us_vec3_make(shrink * x.x, shrink * x.y, x.z > half ? half : x.z < -half ? -half : x.z);
    return true;
}

// Distance from a part's core to x (in metres, from the intersection's origin): its value, and its direction
// where it is not 0.
static double distance_from_core(const usi_intersection_part *part, us_vec3 x, us_vec3 *out_normal) {
    us_vec3 q;
    us_vec3 p = us_vec3_sub(x, part->X_GP.p);
    const double *m = part->R_GP.m;
    us_vec3 x_P = us_vec3_make(m[0] * p.x + m[3] * p.y + m[6] * p.z, m[1] * p.x + m[4] * p.y + m[7] * p.z,
                               m[2] * p.x + m[5] * p.y + m[8] * p.z);
    if (nearest_on_core(part->geom, x_P, &q)) {
        us_vec3 d = us_vec3_sub(x_P, q);
        double length = us_vec3_norm(d);
        if (length > 0) *out_normal = us_mat3_mul_vec(&part->R_GP, us_vec3_scale(1 / length, d));
        return length;
    }
    static const us_geom point = {.kind = US_GEOM_SPHERE};
    usi_convex_pair pair = {
        .A = &point, .B = part->geom, .R_AB = part->R_GP, .p_AB = us_vec3_scale(-1, p), .up = {0, 0, 1}};
    usi_core_gap gap;
    if (!usi_gjk(&pair, pair.p_AB, &gap)) return 0;
    *out_normal = gap.normal;
    return gap.distance;
}

// The plane that cuts x off where it is outside a part. beyond 0: it is inside.
static tangent_plane touch_part(const usi_intersection *m, const usi_intersection_part *part, us_vec3 x) {
    tangent_plane t = {{0, 0, 0}, 0, 0};
    if (distance_from_core(part, x, &t.normal) <= part->radius + enough * m->size) return t;
    us_vec3 n_P = us_quat_rotate(us_quat_conj(part->X_GP.q), t.normal);
    t.offset =
        us_vec3_dot(t.normal, us_pose_point(part->X_GP, usi_core_support(part->geom, n_P))) + part->radius;
    // A flat core with x in its plane, or rounding: nothing would be cut off.
    double beyond = us_vec3_dot(t.normal, x) - t.offset;
    t.beyond = beyond > 0.1 * enough * m->size ? beyond : 0;
    return t;
}

us_vec3 usi_intersection_support(usi_intersection *m, us_vec3 d) {
    us_vec3 x = us_vec3_make(0, 0, 0);
    double largest = fmax(fabs(d.x), fmax(fabs(d.y), fabs(d.z)));
    if (largest > DBL_MIN) d = us_vec3_scale(1 / largest, d);
    lp_corner c = first_corner(m, d);
    for (int cuts = 0; cuts < MAX_CUTS; cuts++) {
        if (!solve(m, &c)) return us_vec3_make(NAN, NAN, NAN);
        x = us_vec3_add(m->centre, us_vec3_scale(m->size, c.x));
        tangent_plane worst = {{0, 0, 0}, 0, 0};
        for (int i = 0; i < m->n_part; i++) {
            tangent_plane t = touch_part(m, &m->part[i], x);
            if (t.beyond > worst.beyond) worst = t;
        }
        if (!(worst.beyond > 0)) break;
        // The newest is the one that x is beyond: the next corner is in it. The planes that the corner stands
        // on may go, it keeps them itself.
        add_plane(m, worst.normal, worst.offset, false);
    }
    return x;
}

// The farthest points of an intersection of convex shapes, by cutting planes (Kelley 1960).
//
// The intersection lies in a box, behind the planes of its flat parts, and behind every plane that touches a curved one. The farthest point x of
// this polyhedron is a linear program in three unknowns. Where x lies outside a part, the plane that touches the part at its point nearest to x
// cuts x off, and the next x is nearer:
//
//              x
//             /.\                     n: from the part's nearest point to x
//       -----/-.-\------- new plane
//           / ,-. \                   the new plane's offset is the part's own farthest point along n: it never cuts into the part
//          / (part)
//
// Each cut about halves the angle that is left open, and the error goes as its square: a dozen cuts are enough for 1e-7. The planes
// stay for the next direction, so that the search for a distance pays for them once.
//
// The program is solved by taking the planes one after another (Seidel 1991): as long as x is behind the next plane nothing changes; otherwise
// the new x lies in that plane, and is found by the same method in two unknowns, and there on a line.
#include "geom/meet.h"

#include <float.h>
#include <string.h>

// Scaled lengths: what counts as behind a plane; as empty; and how far outside a curved part the answer may be.
static const double behind = 1e-13, empty = 1e-9, enough = 1e-7;
enum { MAX_CUTS = 64 };
// Beyond all points of the box, which is at most 1 to each side.
static const double far = 4;

// ---- Linear programs ----

typedef struct row {
    double a, b, c;  // a x + b y <= c
} row;

// The farthest point along (u, v) on the border of rows[i], behind rows 0 .. i - 1.
static bool solve_line(const row *rows, int i, double u, double v, double *x, double *y) {
    double a = rows[i].a, b = rows[i].b, length2 = a * a + b * b;
    if (length2 < 1e-24) return rows[i].c > -empty;
    double length = sqrt(length2), px = a * rows[i].c / length2, py = b * rows[i].c / length2, dx = -b / length, dy = a / length;
    double low = -2 * far, high = 2 * far;
    for (int j = 0; j < i; j++) {
        double speed = rows[j].a * dx + rows[j].b * dy, room = rows[j].c - rows[j].a * px - rows[j].b * py;
        if (fabs(speed) < 1e-14) {
            if (room < -empty) return false;
        } else if (speed > 0) {
            high = room < high * speed ? room / speed : high;
        } else {
            low = room < low * speed ? room / speed : low;
        }
    }
    double t = 0.5 * (low + high), slope = u * dx + v * dy;
    if (low < high && slope != 0) t = slope > 0 ? high : low;
    *x = px + t * dx, *y = py + t * dy;
    return low - high < empty;
}

static bool solve_plane(const row *rows, int n, double u, double v, double *x, double *y) {
    *x = copysign(far, u), *y = copysign(far, v);
    for (int i = 0; i < n; i++)
        if (rows[i].a * *x + rows[i].b * *y > rows[i].c + behind && !solve_line(rows, i, u, v, x, y)) return false;
    return true;
}

static us_vec3 perpendicular(us_vec3 n) {
    us_vec3 axis = fabs(n.x) < 0.6 ? us_vec3_make(1, 0, 0) : us_vec3_make(0, 1, 0), u = us_vec3_cross(n, axis);
    return us_vec3_scale(1 / us_vec3_norm(u), u);
}

static us_vec3 box_side(int k) {
    double sign = k % 2 ? -1 : 1;
    return us_vec3_make(k / 2 == 0 ? sign : 0, k / 2 == 1 ? sign : 0, k / 2 == 2 ? sign : 0);
}

// The planes in the order in which they are looked at: those that face d first. The answer then is found early, and the rest only agree.
typedef struct order {
    int n, at[USI_MEET_PLANES];
} order;

static void order_by(const usi_meet *m, us_vec3 d, order *o) {
    double length = us_vec3_norm(d);
    o->n = 0;
    for (int pass = 0; pass < 3; pass++) {
        double low = (pass == 0 ? 0.9 : pass == 1 ? 0.4 : -2) * length, high = (pass == 0 ? 2 : pass == 1 ? 0.9 : 0.4) * length;
        for (int i = 0; i < m->n_plane; i++) {
            double facing = us_vec3_dot(m->normal[i], d);
            if (facing >= low && facing < high) o->at[o->n++] = i;
        }
    }
}

// The farthest point along d in one plane, behind the first n_before of the others and in the box.
static bool solve_in(const usi_meet *m, const order *o, int n_before, int plane, us_vec3 d, us_vec3 *out) {
    us_vec3 n = m->normal[plane], u = perpendicular(n), v = us_vec3_cross(n, u), p = us_vec3_scale(m->offset[plane], n);
    row rows[USI_MEET_PLANES + 6];
    int n_row = 0;
    for (int k = 0; k < n_before + 6; k++) {
        // The box comes last: it seldom has a say.
        int side = k - n_before, at = side < 0 ? o->at[k] : 0;
        if (side < 0 && at == plane) continue;
        us_vec3 normal = side < 0 ? m->normal[at] : box_side(side);
        double offset = side < 0 ? m->offset[at] : m->half[side / 2];
        rows[n_row++] = (row){us_vec3_dot(normal, u), us_vec3_dot(normal, v), offset - us_vec3_dot(normal, p)};
    }
    double x, y;
    if (!solve_plane(rows, n_row, us_vec3_dot(d, u), us_vec3_dot(d, v), &x, &y)) return false;
    *out = us_vec3_add(p, us_vec3_add(us_vec3_scale(x, u), us_vec3_scale(y, v)));
    return true;
}

static bool solve(const usi_meet *m, const order *o, us_vec3 d, us_vec3 *x) {
    *x = us_vec3_make(copysign(m->half[0], d.x), copysign(m->half[1], d.y), copysign(m->half[2], d.z));
    for (int k = 0; k < o->n; k++) {
        int i = o->at[k];
        if (us_vec3_dot(m->normal[i], *x) > m->offset[i] + behind && !solve_in(m, o, k, i, d, x)) return false;
    }
    return true;
}

// ---- Planes ----

// normal . x <= offset, in the intersection's frame and in metres. Flat ones stay; of the others the oldest makes room.
static bool add_plane(usi_meet *m, us_vec3 normal, double offset, bool is_flat) {
    int at = m->n_plane;
    if (is_flat) {
        if (at == USI_MEET_FLAT) return false;
        m->n_flat = ++m->n_plane;
    } else if (at < USI_MEET_PLANES) {
        m->n_plane++;
    } else {
        at = m->n_flat + m->next;
        m->next = (m->next + 1) % (USI_MEET_PLANES - m->n_flat);
    }
    m->normal[at] = normal;
    m->offset[at] = (offset - us_vec3_dot(normal, m->centre)) / m->size;
    return true;
}

static bool add_flat(usi_meet *m, us_pose X_GP, us_vec3 normal_P, double offset_P) {
    us_vec3 n = us_quat_rotate(X_GP.q, normal_P);
    return add_plane(m, n, offset_P + us_vec3_dot(n, X_GP.p), true);
}

static bool add_tetrahedron(usi_meet *m, us_pose X_GP, const us_vec3 *p) {
    const int face[4][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}};
    for (int i = 0; i < 4; i++) {
        us_vec3 a = p[face[i][0]], n = us_vec3_cross(us_vec3_sub(p[face[i][1]], a), us_vec3_sub(p[face[i][2]], a));
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
static bool add_part(usi_meet *m, const us_geom *g, us_pose X_GP, double radius) {
    if (g->kind == US_GEOM_HALF_SPACE) return add_flat(m, X_GP, us_vec3_make(0, 0, 1), radius);
    bool is_sharp = !(radius > 0);
    if (is_sharp && g->kind == US_GEOM_BOX && m->n_flat + 6 <= USI_MEET_FLAT) {
        for (int k = 0; k < 6; k++)
            if (!add_flat(m, X_GP, box_side(k), g->size[k / 2])) return false;
        return true;
    }
    if (is_sharp && g->kind == US_GEOM_TETRAHEDRON && is_thick(g->point) && m->n_flat + 4 <= USI_MEET_FLAT) return add_tetrahedron(m, X_GP, g->point);
    if (is_sharp && g->kind == US_GEOM_CONVEX && m->n_flat + g->hull->n_face <= USI_MEET_FLAT) {
        for (int32_t f = 0; f < g->hull->n_face; f++)
            if (!add_flat(m, X_GP, g->hull->normal[f], g->hull->offset[f])) return false;
        return true;
    }
    if (m->n_part == USI_MEET_PARTS) return false;
    m->part[m->n_part++] = (usi_meet_part){g, X_GP, us_quat_matrix(X_GP.q), radius};
    return true;
}

// Parts of parts are parts. The radius of an intersection within is added to each of its parts.
static bool add_parts(usi_meet *m, const us_geom *g, us_pose X_GQ, double more) {
    for (int32_t i = 0; i < g->n_part; i++) {
        const us_geom *part = &g->parts[i].geom;
        us_pose X_GP = us_pose_mul(X_GQ, g->parts[i].X_GP);
        double radius = part->radius + more;
        bool is_added = part->kind == US_GEOM_INTERSECTION ? add_parts(m, part, X_GP, radius) : add_part(m, part, X_GP, radius);
        if (!is_added) return false;
    }
    return true;
}

bool usi_meet_init(usi_meet *m, const us_geom *g) {
    us_geom core = *g;
    core.radius = 0;
    us_aabb box = us_geom_box(&core, us_pose_identity());
    us_vec3 side = us_vec3_sub(box.max, box.min);
    double size = 0.5 * fmax(side.x, fmax(side.y, side.z));
    m->n_part = m->n_flat = m->n_plane = m->next = 0;
    if (!isfinite(us_vec3_dot(side, side)) || !(side.x >= 0 && side.y >= 0 && side.z >= 0)) return false;
    m->centre = us_vec3_scale(0.5, us_vec3_add(box.min, box.max));
    m->size = size > 0 ? size : 1;
    m->half[0] = 0.5 * side.x / m->size, m->half[1] = 0.5 * side.y / m->size, m->half[2] = 0.5 * side.z / m->size;
    return add_parts(m, g, us_pose_identity(), 0);
}

// ---- Support ----

// A plane that touches a part, and how far beyond it the point is that asked for it.
typedef struct touch {
    us_vec3 normal;
    double offset, beyond;
} touch;

// The plane that cuts x (in metres, from the intersection's origin) off where it is outside a part. beyond 0: it is inside.
static touch touch_part(const usi_meet *m, const usi_meet_part *part, us_vec3 x) {
    static const us_geom point = {.kind = US_GEOM_SPHERE};
    usi_pair pair = {.A = &point, .B = part->geom, .R_AB = part->R_GP, .p_AB = us_vec3_sub(part->X_GP.p, x), .up = {0, 0, 1}};
    usi_core_gap gap;
    touch t = {{0, 0, 0}, 0, 0};
    if (!usi_gjk(&pair, pair.p_AB, &gap) || gap.distance <= part->radius + enough * m->size) return t;
    us_vec3 n_P = us_quat_rotate(us_quat_conj(part->X_GP.q), gap.normal);
    t.normal = gap.normal;
    t.offset = us_vec3_dot(gap.normal, us_pose_point(part->X_GP, usi_core_support(part->geom, n_P))) + part->radius;
    // A flat core with x in its plane, or rounding: nothing would be cut off.
    double beyond = us_vec3_dot(gap.normal, x) - t.offset;
    t.beyond = beyond > 0.1 * enough * m->size ? beyond : 0;
    return t;
}

us_vec3 usi_meet_support(usi_meet *m, us_vec3 d) {
    us_vec3 x = us_vec3_make(0, 0, 0), scaled;
    double largest = fmax(fabs(d.x), fmax(fabs(d.y), fabs(d.z)));
    if (largest > DBL_MIN) d = us_vec3_scale(1 / largest, d);
    order o;
    int plane = -1;
    for (int cuts = 0; cuts < MAX_CUTS; cuts++) {
        // One plane more: the new answer is in it. Where an old one had to go for it, from the beginning.
        bool is_solved = plane >= 0 && solve_in(m, &o, o.n, plane, d, &scaled);
        if (plane < 0) {
            order_by(m, d, &o);
            is_solved = solve(m, &o, d, &scaled);
        }
        if (!is_solved) return us_vec3_make(NAN, NAN, NAN);
        x = us_vec3_add(m->centre, us_vec3_scale(m->size, scaled));
        touch worst = {{0, 0, 0}, 0, 0};
        for (int i = 0; i < m->n_part; i++) {
            touch t = touch_part(m, &m->part[i], x);
            if (t.beyond > worst.beyond) worst = t;
        }
        if (!(worst.beyond > 0)) break;
        plane = m->n_plane < USI_MEET_PLANES ? m->n_plane : -1;
        add_plane(m, worst.normal, worst.offset, false);
        if (plane < 0) continue;
        // To the front: it faces d as nearly as any.
        memmove(o.at + 1, o.at, (size_t)o.n * sizeof *o.at);
        o.at[0] = plane, o.n++;
    }
    return x;
}

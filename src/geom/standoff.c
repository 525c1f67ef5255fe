// Standoff of a convex polyhedron from the solid inside a closed mesh: a bound that holds for every point,
// not only for samples.
//
// The hull's surface is bounded for certain. Each face is divided into triangles; over a triangle with middle
// c and radius r (to its farthest corner) the distance is at most
//
//     d(c) + r                  since it changes no faster than the point moves
//     r - depth of c            where c is inside the solid, and 0 where that is negative
//     max of d(corner, T)       for any one triangle T of the mesh: the distance from a convex set is convex,
//                               so it is largest at a corner
//
// The last makes faces that lie in the mesh cheap: one query gives 0. A triangle whose bound is above the
// largest distance found so far is halved along its longest side, and so on, until the bound and the largest
// distance found all but agree.
//
//        c *            the point nearest to c by descending the tree of boxes, nearest box first
//          |  d
//     -----*----- T
//
// Inside the hull, a hollow with a narrow mouth or none may be deeper than the surface shows (a bottle). Such
// hollows are searched for on a lattice.
#include "geom/standoff.h"

#include "geom/surface.h"

#include <float.h>

enum {
    STACK = 64,
    LATTICE = 12,        // points along each side of the hull's box
    MAX_LOOKS = 200000,  // per hull: about half a second
};

// ---- The nearest point of a mesh ----

static void corners_of(const us_mesh *mesh, int32_t triangle, us_vec3 out[3]) {
    for (int k = 0; k < 3; k++)
        out[k] = mesh->vertex[mesh->triangle[triangle][k]];
}

static double outside(double x, double low, double high) {
    return x < low ? low - x : x > high ? x - high : 0;
}
static double box_distance2(const usi_bvh_node *node, us_vec3 p) {
    double x = outside(p.x, node->min.x, node->max.x), y = outside(p.y, node->min.y, node->max.y),
           z = outside(p.z, node->min.z, node->max.z);
    return x * x + y * y + z * z;
}

usi_mesh_point usi_mesh_nearest(const us_mesh *mesh, us_vec3 p) {
    usi_mesh_point best = {INFINITY, p, -1};
    double min_distance2 = INFINITY;
    struct {
        int32_t node;
        double distance2;
    } stack[STACK];  // the tree is at most 61 deep, and each level leaves one node behind
    int n = 0;
    stack[n].node = 0;
    stack[n++].distance2 = box_distance2(&mesh->node[0], p);
    while (n > 0) {
        n--;
        if (stack[n].distance2 >= min_distance2) continue;
        const usi_bvh_node *node = &mesh->node[stack[n].node];
        for (int32_t i = node->first; i < node->first + node->count; i++) {
            us_vec3 corner[3];
            corners_of(mesh, mesh->order[i], corner);
            us_vec3 q = usi_triangle_nearest(p, corner[0], corner[1], corner[2]), d = us_vec3_sub(p, q);
            if (us_vec3_dot(d, d) < min_distance2) {
                min_distance2 = us_vec3_dot(d, d);
                best.q = q;
                best.triangle = mesh->order[i];
            }
        }
        if (node->count > 0) continue;
        double a = box_distance2(&mesh->node[node->first], p),
               b = box_distance2(&mesh->node[node->first + 1], p);
        int32_t far = a <= b ? node->first + 1 : node->first;
        stack[n].node = far;
        stack[n++].distance2 = a <= b ? b : a;
        stack[n].node = a <= b ? node->first : node->first + 1;
        stack[n++].distance2 = a <= b ? a : b;
    }
    best.distance = sqrt(min_distance2);
    return best;
}

bool usi_mesh_is_beyond(const us_mesh *mesh, us_vec3 p, double distance) {
    const double square = distance * distance;
    int32_t stack[STACK];
    int n = 0;
    stack[n++] = 0;
    while (n > 0) {
        const usi_bvh_node *node = &mesh->node[stack[--n]];
        if (box_distance2(node, p) > square) continue;
        for (int32_t i = node->first; i < node->first + node->count; i++) {
            us_vec3 corner[3];
            corners_of(mesh, mesh->order[i], corner);
            us_vec3 d = us_vec3_sub(p, usi_triangle_nearest(p, corner[0], corner[1], corner[2]));
            if (us_vec3_dot(d, d) <= square) return false;
        }
        if (node->count > 0) continue;
        // The nearer child first: one triangle that is near enough ends it.
        const bool is_left =
            box_distance2(&mesh->node[node->first], p) <= box_distance2(&mesh->node[node->first + 1], p);
        stack[n++] = is_left ? node->first + 1 : node->first;
        stack[n++] = is_left ? node->first : node->first + 1;
    }
    return true;
}

bool usi_mesh_contains(const us_mesh *mesh, us_vec3 p) {
    // Along no axis, face diagonal or space diagonal of what people draw.
    const us_vec3 odd = {0.36951862, 0.53427561, 0.76026947};
    us_geom g = {.kind = US_GEOM_MESH, .mesh = mesh};
    us_vec3 d = us_vec3_scale(1 / us_vec3_norm(odd), odd);
    // A ray that starts inside a closed mesh hits at 0.
    return mesh->is_closed && us_geom_ray(&g, us_pose_identity(), p, d, DBL_MIN).range == 0;
}

// ---- The bound ----

typedef struct hull_tile {
    us_vec3 corner[3];
} hull_tile;

// What is known over a tile; looks at its middle.
static double look(const hull_tile *t, const us_mesh *mesh, double enough, usi_standoff *s) {
    us_vec3 c = us_vec3_scale(1.0 / 3, us_vec3_add(t->corner[0], us_vec3_add(t->corner[1], t->corner[2])));
    usi_mesh_point near = usi_mesh_nearest(mesh, c);
    double radius = 0, flat = 0;
    us_vec3 T[3];
    corners_of(mesh, near.triangle, T);
    for (int k = 0; k < 3; k++) {
        us_vec3 p = t->corner[k];
        radius = fmax(radius, us_vec3_norm(us_vec3_sub(p, c)));
        flat = fmax(flat, us_vec3_norm(us_vec3_sub(p, usi_triangle_nearest(p, T[0], T[1], T[2]))));
    }
    double bound = fmin(flat, near.distance + radius);
    if (bound <= enough) return bound;
    if (usi_mesh_contains(mesh, c)) return fmin(flat, fmax(0, radius - near.distance));
    if (near.distance > s->found) {
        s->found = near.distance;
        s->worst = c;
        s->q = near.q;
    }
    return bound;
}

// Halves a tile along its longest side: the second half in *t, the first in the result.
static hull_tile halve(hull_tile *t) {
    int k = 0;
    double longest = -1;
    for (int i = 0; i < 3; i++) {
        double length = us_vec3_norm(us_vec3_sub(t->corner[(i + 1) % 3], t->corner[i]));
        if (length > longest) {
            longest = length;
            k = i;
        }
    }
    us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(t->corner[k], t->corner[(k + 1) % 3]));
    hull_tile first = *t;
    first.corner[(k + 1) % 3] = middle;
    t->corner[k] = middle;
    return first;
}

static void bound_tile(const hull_tile *whole, const us_mesh *mesh, double enough, int32_t *looks,
                       usi_standoff *s) {
    hull_tile stack[STACK];
    int n = 0;
    stack[n++] = *whole;
    while (n > 0) {
        hull_tile t = stack[--n];
        double wanted = fmax(enough, 1.05 * s->found), bound = look(&t, mesh, wanted, s);
        wanted = fmax(enough, 1.05 * s->found);
        if (bound <= wanted || n + 2 > STACK || ++*looks > MAX_LOOKS) {
            s->bound = fmax(s->bound, bound);
            continue;
        }
        stack[n] = halve(&t);
        stack[n + 1] = t;
        n += 2;
    }
}

static bool is_in_hull(const us_hull *hull, us_vec3 p) {
    for (int32_t f = 0; f < hull->n_face; f++)
        if (us_vec3_dot(hull->normal[f], p) > hull->offset[f]) return false;
    return true;
}

// Hollows inside the hull.
static void look_inside(const us_hull *hull, const us_mesh *mesh, usi_standoff *s) {
    us_geom g = {.kind = US_GEOM_CONVEX, .hull = hull};
    us_aabb box = us_geom_box(&g, us_pose_identity());
    us_vec3 side = us_vec3_sub(box.max, box.min);
    for (int i = 0; i < LATTICE * LATTICE * LATTICE; i++) {
        int row = i / LATTICE;
        double x = i % LATTICE + 0.5, y = row % LATTICE + 0.5, z = (int)(row / LATTICE) + 0.5;
        us_vec3 p =
            us_vec3_add(box.min, us_vec3_make(x / (double)LATTICE * side.x, y / (double)LATTICE * side.y,
                                              z / (double)LATTICE * side.z));
        if (!is_in_hull(hull, p) || !usi_mesh_is_beyond(mesh, p, s->found)) continue;
        usi_mesh_point near = usi_mesh_nearest(mesh, p);
        if (!(near.distance > s->found) || usi_mesh_contains(mesh, p)) continue;
        s->found = near.distance;
        s->worst = p;
        s->q = near.q;
        s->bound = fmax(s->bound, s->found);
    }
}

usi_standoff usi_hull_standoff(const us_hull *hull, const us_mesh *mesh, double enough, double limit) {
    usi_standoff s = {0};
    int32_t looks = 0;
    // First all tiles once, for a good idea of the largest distance; then each as finely as needed.
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t f = 0; f < hull->n_face; f++) {
            const int32_t *c = hull->face_vertex + hull->face_start[f];
            for (int32_t k = 1; k + 1 < hull->face_start[f + 1] - hull->face_start[f]; k++) {
                hull_tile t = {{hull->vertex[c[0]], hull->vertex[c[k]], hull->vertex[c[k + 1]]}};
                if (pass == 0)
                    look(&t, mesh, enough, &s);
                else
                    bound_tile(&t, mesh, enough, &looks, &s);
                if (s.found > limit) {
                    s.bound = fmax(s.bound, s.found);
                    return s;
                }
            }
        }
    }
    look_inside(hull, mesh, &s);
    return s;
}

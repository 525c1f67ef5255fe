// Rays against triangle meshes, by the tree of boxes.
//
// Whether a ray starts inside a closed mesh is decided by counting: it leaves once more than it enters. Only
// rays whose first face shows its back are asked, all others see the outside.
#include "geom/ray.h"

// The ray with its axes renamed so that it goes mostly along z, and sheared so that it goes along z exactly.
// Triangles are then tested in the plane (x, y), the ray being the origin (Woop, Benthin, Wald 2013).
typedef struct shear {
    int x, y, z;
    double sx, sy, sz;
} shear;

typedef struct mesh_cast {
    const us_mesh *mesh;
    usi_ray l;
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
    return us_vec3_make(component(p, c->shear.x) - c->shear.sx * z,
                        component(p, c->shear.y) - c->shear.sy * z, c->shear.sz * z);
}

// On which side of the edge a -> b the ray passes, and never "on it": a tie is decided as if the ray were
// moved by an infinitely small step, the same for all triangles. The edge is always worked out from its
// smaller vertex, so that the two triangles on it get the same number to the last bit, and no ray slips
// between them or meets both.
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
        usi_ray_span s = usi_ray_span_triangle(c->l, corner, c->radius);
        us_ray_hit hit = usi_ray_span_hit(s, c->l, c->best);
        if (hit.range < c->best) {
            c->best = hit.range;
            c->normal = hit.normal;
            c->triangle = index;
        }
        return;
    }
    us_vec3 p = sheared(c, t[0]), q = sheared(c, t[1]), r = sheared(c, t[2]);
    bool in_u, in_v, in_w;
    double u = edge_side(q, r, t[1], t[2], &in_u), v = edge_side(r, p, t[2], t[0], &in_v),
           w = edge_side(p, q, t[0], t[1], &in_w);
    if (in_u != in_v || in_v != in_w) return;
    double area = u + v + w;
    if (area == 0) return;  // seen from its edge
    double range = (u * p.z + v * q.z + w * r.z) / area;
    us_vec3 n =
        usi_unit_or(us_vec3_cross(us_vec3_sub(corner[1], corner[0]), us_vec3_sub(corner[2], corner[0])),
                    us_vec3_scale(-1, c->l.d));
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

// Where the ray enters a node's box; infinity when it does not before the best hit. NaN (0 * infinity) means
// that the ray lies in a face: the comparisons below let it pass.
static double enter_box(const mesh_cast *c, const usi_bvh_node *node) {
    const double o[3] = {c->l.o.x, c->l.o.y, c->l.o.z},
                 inverse[3] = {c->inverse.x, c->inverse.y, c->inverse.z};
    const double low[3] = {node->min.x, node->min.y, node->min.z},
                 high[3] = {node->max.x, node->max.y, node->max.z};
    double in = 0, out = c->best;
    for (int i = 0; i < 3; i++) {
        // Three roundings on the way to each t: a box is taken to be larger by that much, so that no triangle
        // in its faces is lost.
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
        for (int32_t i = 0; i < node->count; i++)
            cast_triangle(c, c->mesh->order[node->first + i]);
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

us_ray_hit usi_ray_cast_mesh(const us_mesh *mesh, usi_ray l, double range, double radius) {
    if (mesh->n_node == 0) return USI_RAY_MISS;
    us_vec3 inverse = us_vec3_make(1 / l.d.x, 1 / l.d.y, 1 / l.d.z), low = mesh->node[0].min,
            high = mesh->node[0].max;
    mesh_cast c = {mesh, l, inverse, shear_of(l.d), radius, false, false, 0, range, {0, 0, 0}, -1};
    bool is_near = l.o.x >= low.x && l.o.x <= high.x && l.o.y >= low.y && l.o.y <= high.y && l.o.z >= low.z &&
                   l.o.z <= high.z;
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
        // The first face shows its back: the ray comes from inside, or it grazes an edge. Counting crossings
        // tells.
        mesh_cast all = c;
        all.radius = 0;
        all.count = true;
        all.best = 1e300;
        cast_tree(&all, 0);
        if (all.crossings > 0) return (us_ray_hit){0, us_vec3_scale(-1, l.d)};
    }
    if (radius > 0 || (is_back && mesh->is_closed)) {
        // From outside only fronts can be first.
        c.best = limit;
        c.triangle = -1;
        c.only_front = true;
        cast_tree(&c, 0);
    }
    if (c.triangle < 0 || c.best > range) return USI_RAY_MISS;
    // An open mesh has two sides; the one that is seen is the one that was hit.
    bool is_back_face = us_vec3_dot(c.normal, l.d) > 0;
    return (us_ray_hit){c.best, is_back_face ? us_vec3_scale(-1, c.normal) : c.normal};
}

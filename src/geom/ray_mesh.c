// Rays against triangle meshes, by the tree of boxes.
//
// Meshes of many triangles have a second tree with eight branches (wide_tree.h), and in its leaves eight
// triangles at a time are asked in floats whether the ray may pass through them: on one side of all three
// edges, or nearer to them than floats can tell. Those that it may are met exactly. Where two triangles are
// met at the same range to the last bit, the one with the lower number counts, so that hits are those of the
// plain walk in whatever order triangles are met. Rays into 100 000 triangles take half of the time.
//
// Whether a ray starts inside a closed mesh is decided by counting: it leaves once more than it enters. Only
// rays whose first face shows its back are asked, all others see the outside.
#include "geom/ray.h"

#include <string.h>

#include "geom/wide_tree.h"
#ifdef __AVX2__
#include <float.h>
#include <immintrin.h>
#endif

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

// Whether a hit goes before the best so far. What is at the same range goes by its number.
static bool is_before(const mesh_cast *c, double range, int32_t index) {
    return range < c->best || (range == c->best && c->triangle >= 0 && index < c->triangle);
}

static us_vec3 normal_of(const mesh_cast *c, int32_t index) {
    const int32_t *t = c->mesh->triangle[index];
    const us_vec3 *v = c->mesh->vertex;
    return usi_unit_or(us_vec3_cross(us_vec3_sub(v[t[1]], v[t[0]]), us_vec3_sub(v[t[2]], v[t[0]])),
                       us_vec3_scale(-1, c->l.d));
}

static void cast_triangle(mesh_cast *c, int32_t index) {
    const int32_t *t = c->mesh->triangle[index];
    if (c->radius > 0) {
        const us_vec3 corner[3] = {c->mesh->vertex[t[0]], c->mesh->vertex[t[1]], c->mesh->vertex[t[2]]};
        usi_ray_span s = usi_ray_span_triangle(c->l, corner, c->radius);
        us_ray_hit hit = usi_ray_span_hit(s, c->l, c->best);
        if (is_before(c, hit.range, index)) {
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
    if (range < 0) return;
    // The normal of the nearest is made at the end, but where it says what counts.
    const bool is_front = (c->count || c->only_front) && us_vec3_dot(normal_of(c, index), c->l.d) < 0;
    if (c->count) {
        c->crossings += is_front ? -1 : 1;
    } else if (is_before(c, range, index) && (is_front || !c->only_front)) {
        c->best = range;
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

// ---------------------------------------------------------------- eight triangles at once

#ifdef __AVX2__

enum { EIGHT = 8, CORNERS = 9 * EIGHT, WIDE_FROM = 64 };  // from so many triangles on there is a wide tree

us_status usi_mesh_widen(us_mesh *mesh) {
    if (mesh->n_triangle < WIDE_FROM) return US_OK;
    us_status status = usi_wide_tree_create(mesh->node, EIGHT, &mesh->allocator, &mesh->wide);
    if (status || !mesh->wide) return status;
    const int32_t n = usi_wide_tree_n_leaf(mesh->wide);
    const us_vec3 centre = usi_wide_tree_centre(mesh->wide);
    mesh->corner = usi_alloc(&mesh->allocator, (size_t)n * CORNERS * sizeof(float), USI_ALIGN);
    if (!mesh->corner) {
        usi_wide_tree_destroy(mesh->wide);
        mesh->wide = NULL;
        return US_ERR_MEMORY;
    }
    memset(mesh->corner, 0, (size_t)n * CORNERS * sizeof(float));
    for (int32_t i = 0; i < n; i++) {
        const usi_wide_leaf leaf = usi_wide_tree_leaf(mesh->wide, i);
        float *to = mesh->corner + (size_t)i * CORNERS;
        for (int32_t k = 0; k < 3 * leaf.count; k++) {
            const int32_t corner = mesh->triangle[mesh->order[leaf.first + k / 3]][k % 3];
            const us_vec3 p = us_vec3_sub(mesh->vertex[corner], centre);
            for (int axis = 0; axis < 3; axis++)
                to[(3 * (k % 3) + axis) * EIGHT + k / 3] = (float)component(p, axis);
        }
    }
    return US_OK;
}

void usi_mesh_narrow(us_mesh *mesh) {
    if (!mesh->wide) return;
    usi_release(&mesh->allocator, mesh->corner,
                (size_t)usi_wide_tree_n_leaf(mesh->wide) * CORNERS * sizeof(float), USI_ALIGN);
    usi_wide_tree_destroy(mesh->wide);
}

typedef struct side8 {
    __m256 e, unsure;
} side8;

// On which side of the edges p -> q the ray passes, and how near to them floats cannot tell. `place`: by how
// much they may be off in p and q.
static inline side8 side_of(const __m256 p[2], const __m256 q[2], __m256 place) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    const __m256 sum =
        _mm256_add_ps(_mm256_add_ps(_mm256_andnot_ps(sign, p[0]), _mm256_andnot_ps(sign, p[1])),
                      _mm256_add_ps(_mm256_andnot_ps(sign, q[0]), _mm256_andnot_ps(sign, q[1])));
    return (side8){_mm256_sub_ps(_mm256_mul_ps(p[0], q[1]), _mm256_mul_ps(p[1], q[0])),
                   _mm256_mul_ps(_mm256_add_ps(sum, place), _mm256_add_ps(place, place))};
}

// Which of the triangles of a leaf the ray may pass through. Sheared places are sums of five roundings of
// numbers up to twice the size of the mesh.
static unsigned may_pass(const mesh_cast *c, const usi_wide_ray *ray, const float *corner) {
    const shear *s = &c->shear;
    const __m256 ox = _mm256_set1_ps(ray->o[s->x]), oy = _mm256_set1_ps(ray->o[s->y]),
                 oz = _mm256_set1_ps(ray->o[s->z]), sx = _mm256_set1_ps((float)s->sx),
                 sy = _mm256_set1_ps((float)s->sy),
                 place = _mm256_set1_ps((float)(8 * (double)FLT_EPSILON * usi_wide_tree_size(c->mesh->wide)));
    __m256 p[3][2];
    for (int k = 0; k < 3; k++) {
        const float *at = corner + (size_t)(3 * k) * EIGHT;
        const __m256 z = _mm256_sub_ps(_mm256_load_ps(at + s->z * EIGHT), oz);
        p[k][0] = _mm256_sub_ps(_mm256_sub_ps(_mm256_load_ps(at + s->x * EIGHT), ox), _mm256_mul_ps(sx, z));
        p[k][1] = _mm256_sub_ps(_mm256_sub_ps(_mm256_load_ps(at + s->y * EIGHT), oy), _mm256_mul_ps(sy, z));
    }
    const __m256 zero = _mm256_setzero_ps();
    __m256 left = _mm256_cmp_ps(zero, zero, _CMP_EQ_OQ), right = left;
    for (int k = 0; k < 3; k++) {
        const side8 side = side_of(p[(k + 1) % 3], p[(k + 2) % 3], place);
        left = _mm256_and_ps(left, _mm256_cmp_ps(_mm256_add_ps(side.e, side.unsure), zero, _CMP_GE_OQ));
        right = _mm256_and_ps(right, _mm256_cmp_ps(_mm256_sub_ps(side.e, side.unsure), zero, _CMP_LE_OQ));
    }
    return (unsigned)_mm256_movemask_ps(_mm256_or_ps(left, right));
}

static double visit(void *context, const usi_wide_ray *ray, int32_t leaf, double until) {
    mesh_cast *c = context;
    const usi_wide_leaf run = usi_wide_tree_leaf(c->mesh->wide, leaf);
    unsigned may = may_pass(c, ray, c->mesh->corner + (size_t)leaf * CORNERS) & ((1U << run.count) - 1);
    for (; may != 0; may &= may - 1)
        cast_triangle(c, c->mesh->order[run.first + __builtin_ctz(may)]);
    return c->count ? until : c->best;
}

#else

us_status usi_mesh_widen(us_mesh *mesh) {
    (void)mesh;
    return US_OK;
}
void usi_mesh_narrow(us_mesh *mesh) { (void)mesh; }

static double visit(void *context, const usi_wide_ray *ray, int32_t leaf, double until) {
    (void)context;
    (void)ray;
    (void)leaf;
    return until;
}

#endif

// All triangles that matter, by one tree or the other.
static void cast_all(mesh_cast *c, bool is_plain) {
    if (c->mesh->wide && !is_plain && c->radius == 0)
        usi_wide_tree_cast(c->mesh->wide, c->l.o, c->l.d, c->best, visit, c);
    else
        cast_tree(c, 0);
    if (c->triangle >= 0 && c->radius == 0) c->normal = normal_of(c, c->triangle);
}

static us_ray_hit cast_mesh(const us_mesh *mesh, usi_ray l, double range, double radius, bool is_plain) {
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
    if (radius == 0) cast_all(&c, is_plain);
    bool is_back = c.triangle >= 0 && us_vec3_dot(c.normal, l.d) >= 0;
    if (may_be_inside && (is_back || radius > 0)) {
        // The first face shows its back: the ray comes from inside, or it grazes an edge. Counting crossings
        // tells.
        mesh_cast all = c;
        all.radius = 0;
        all.count = true;
        all.best = 1e300;
        cast_all(&all, is_plain);
        if (all.crossings > 0) return (us_ray_hit){0, us_vec3_scale(-1, l.d)};
    }
    if (radius > 0 || (is_back && mesh->is_closed)) {
        // From outside only fronts can be first.
        c.best = limit;
        c.triangle = -1;
        c.only_front = true;
        cast_all(&c, is_plain);
    }
    if (c.triangle < 0 || c.best > range) return USI_RAY_MISS;
    // An open mesh has two sides; the one that is seen is the one that was hit.
    bool is_back_face = us_vec3_dot(c.normal, l.d) > 0;
    return (us_ray_hit){c.best, is_back_face ? us_vec3_scale(-1, c.normal) : c.normal};
}

us_ray_hit usi_ray_cast_mesh(const us_mesh *mesh, usi_ray l, double range, double radius) {
    return cast_mesh(mesh, l, range, radius, false);
}

us_ray_hit usi_ray_cast_mesh_plain(const us_mesh *mesh, usi_ray l, double range, double radius) {
    return cast_mesh(mesh, l, range, radius, true);
}

// A tree of boxes with eight branches (wide_tree.h).
//
// It is made of a binary tree: of a node's branches the one with the largest surface is opened, again and
// again, until there are eight, or only leaves.
//
//          binary                          wide
//            o                     ________ o ________
//          /   \                  |  |  |  |  |  |  | |
//         o     o                 o  o  =  o  =  o  o =        = leaf
//        / \   / \ ...
//
// How much floats leave out: seen from the centre, no coordinate is larger than the size S of the tree, and
// neither are those of the point at which a ray enters it, where it begins here. Rounding these moves them by
// S / 2^24: boxes are larger by four times as much. Differences, reciprocals and products are then off by a
// few parts in 2^24, and so are the distances at which planes are met; they are moved apart by more.
#include "geom/wide_tree.h"

#include <string.h>

#ifdef __AVX2__
#include <float.h>
#include <immintrin.h>

enum { BRANCHES = 8, DEPTH = 62 };

static const double LARGEST = 1e15;  // m: squares of coordinates, and of their sums, are floats

typedef struct wide_node {
    _Alignas(32) float side[2][3][BRANCHES];  // lower and upper sides, seen from the centre
    int32_t branch[BRANCHES];                 // a node, or ~leaf
} wide_node;

struct usi_wide_tree {
    us_allocator allocator;
    size_t size;
    us_vec3 centre;
    us_aabb box;
    double reach;
    int32_t n_node, n_leaf;
    wide_node *node;
    usi_wide_leaf *leaf;
};

// ---------------------------------------------------------------- making

// The items below a node follow each other.
static usi_wide_leaf items_of(const usi_bvh_node *nodes, int32_t i) {
    const usi_bvh_node *left = &nodes[i], *right = &nodes[i];
    while (left->count == 0)
        left = &nodes[left->first];
    while (right->count == 0)
        right = &nodes[right->first + 1];
    return (usi_wide_leaf){left->first, right->first + right->count - left->first};
}

static double surface(const usi_bvh_node *n) {
    const us_vec3 d = us_vec3_sub(n->max, n->min);
    return d.x * d.y + d.y * d.z + d.z * d.x;
}

static bool is_leaf(const usi_bvh_node *nodes, int32_t i, int32_t n_leaf) {
    return nodes[i].count > 0 || items_of(nodes, i).count <= n_leaf;
}

// The branches of the wide node that stands for a binary one; how many.
static int32_t open_node(const usi_bvh_node *nodes, int32_t i, int32_t n_leaf, int32_t out[BRANCHES]) {
    int32_t n = 1;
    out[0] = i;
    while (n < BRANCHES) {
        int32_t best = -1;
        for (int32_t k = 0; k < n; k++) {
            if (is_leaf(nodes, out[k], n_leaf)) continue;
            if (best < 0 || surface(&nodes[out[k]]) > surface(&nodes[out[best]])) best = k;
        }
        if (best < 0) break;
        const int32_t first = nodes[out[best]].first;
        out[best] = first;
        out[n++] = first + 1;
    }
    return n;
}

typedef struct wide_counts {
    int32_t node, leaf;
} wide_counts;

static wide_counts count(const usi_bvh_node *nodes, int32_t n_leaf) {
    int32_t stack[BRANCHES * DEPTH], n = 0;
    wide_counts c = {0, 0};
    stack[n++] = 0;
    while (n > 0) {
        int32_t branch[BRANCHES];
        const int32_t n_branch = open_node(nodes, stack[--n], n_leaf, branch);
        c.node++;
        for (int32_t k = 0; k < n_branch; k++) {
            if (is_leaf(nodes, branch[k], n_leaf))
                c.leaf++;
            else
                stack[n++] = branch[k];
        }
    }
    return c;
}

// The nearest float that is no more.
static float below(double x) {
    const float f = (float)x;
    return (double)f > x ? nextafterf(f, -INFINITY) : f;
}

static void put_box(const usi_wide_tree *t, wide_node *to, int32_t k, const usi_bvh_node *from) {
    const us_vec3 low = us_vec3_sub(from->min, t->centre), high = us_vec3_sub(from->max, t->centre);
    const double a[3] = {low.x, low.y, low.z}, b[3] = {high.x, high.y, high.z},
                 more = 2 * (double)FLT_EPSILON * t->reach;
    for (int axis = 0; axis < 3; axis++) {
        to->side[0][axis][k] = below(a[axis] - more);
        to->side[1][axis][k] = -below(-b[axis] - more);
    }
}

// Nodes stand in the order in which they are opened; until then branch[0] has the binary node.
static void fill(usi_wide_tree *t, const usi_bvh_node *nodes, int32_t n_leaf) {
    t->n_node = 1;
    t->node[0].branch[0] = 0;
    for (int32_t i = 0; i < t->n_node; i++) {
        wide_node *to = &t->node[i];
        int32_t branch[BRANCHES];
        const int32_t n = open_node(nodes, to->branch[0], n_leaf, branch);
        for (int32_t k = 0; k < BRANCHES; k++) {
            for (int axis = 0; k >= n && axis < 3; axis++) {
                to->side[0][axis][k] = INFINITY;
                to->side[1][axis][k] = -INFINITY;
            }
            to->branch[k] = ~0;
            if (k >= n) continue;
            put_box(t, to, k, &nodes[branch[k]]);
            if (is_leaf(nodes, branch[k], n_leaf)) {
                t->leaf[t->n_leaf] = items_of(nodes, branch[k]);
                to->branch[k] = ~t->n_leaf++;
            } else {
                t->node[t->n_node].branch[0] = branch[k];
                to->branch[k] = t->n_node++;
            }
        }
    }
}

us_status usi_wide_tree_create(const usi_bvh_node *nodes, int32_t n_leaf, const us_allocator *allocator,
                               usi_wide_tree **out_tree) {
    const us_vec3 half = us_vec3_scale(0.5, us_vec3_sub(nodes[0].max, nodes[0].min));
    const double reach = fmax(half.x, fmax(half.y, half.z));
    *out_tree = NULL;
    if (!(reach > 1 / LARGEST && reach < LARGEST)) return US_OK;
    const wide_counts n = count(nodes, n_leaf);
    size_t size = sizeof(usi_wide_tree);
    const size_t at_node = usi_carve(&size, (size_t)n.node, sizeof(wide_node)),
                 at_leaf = usi_carve(&size, (size_t)n.leaf, sizeof(usi_wide_leaf));
    usi_wide_tree *t = usi_alloc(allocator, size, USI_ALIGN);
    if (!t) return US_ERR_MEMORY;
    memset((void *)t, 0, size);
    *t = (usi_wide_tree){.allocator = *allocator,
                         .size = size,
                         .centre = us_vec3_add(nodes[0].min, half),
                         .box = {nodes[0].min, nodes[0].max},
                         .reach = reach};
    t->node = (wide_node *)(void *)((char *)t + at_node);
    t->leaf = (usi_wide_leaf *)(void *)((char *)t + at_leaf);
    fill(t, nodes, n_leaf);
    *out_tree = t;
    return US_OK;
}

void usi_wide_tree_destroy(usi_wide_tree *t) {
    if (!t) return;
    const us_allocator a = t->allocator;
    usi_release(&a, t, t->size, USI_ALIGN);
}

int32_t usi_wide_tree_n_leaf(const usi_wide_tree *t) { return t->n_leaf; }
usi_wide_leaf usi_wide_tree_leaf(const usi_wide_tree *t, int32_t leaf) { return t->leaf[leaf]; }
us_vec3 usi_wide_tree_centre(const usi_wide_tree *t) { return t->centre; }
double usi_wide_tree_size(const usi_wide_tree *t) { return t->reach; }

// ---------------------------------------------------------------- rays

// Along no axis at all: so large that it stands for infinity, and finite.
static const double LONGEST = 1e25;

static double inverse_of(double d) { return fabs(d) > 1 / LONGEST ? 1 / d : copysign(LONGEST, d); }

// Where a ray comes into the tree's box, made a little larger; NaN: nowhere before `range`.
static double entry(const usi_wide_tree *t, us_vec3 o, const double inverse[3], double range) {
    const double from[3] = {o.x - t->centre.x, o.y - t->centre.y, o.z - t->centre.z},
                 half[3] = {0.5 * (t->box.max.x - t->box.min.x), 0.5 * (t->box.max.y - t->box.min.y),
                            0.5 * (t->box.max.z - t->box.min.z)};
    double in = 0, out = range;
    for (int axis = 0; axis < 3; axis++) {
        const double h = half[axis] + 1e-9 * t->reach + 1e-15 * fabs(from[axis]),
                     a = (-h - from[axis]) * inverse[axis], b = (h - from[axis]) * inverse[axis],
                     near = a < b ? a : b, far = a < b ? b : a;
        in = near > in ? near : in;
        out = far < out ? far : out;
    }
    return in <= out ? in : NAN;
}

// What of the ray still counts, from where it is followed, as a float that is no less.
static float float_until(const usi_wide_tree *t, double until, double start) {
    const double x = (until - start) * (1 + 1e-6) + 1e-9 * t->reach + 1e-14 * start;
    return x < 1e30 ? (float)x : 1e30F;
}

typedef struct branch_ahead {
    float from;
    int32_t branch;
} branch_ahead;

// The branches of a node that the ray meets, on the stack: the nearest on top.
static inline __attribute__((always_inline)) int push(const wide_node *node, const __m256 o[3],
                                                      const __m256 inverse[3], const int near_side[3],
                                                      __m256 until, branch_ahead *top) {
    const __m256 less = _mm256_set1_ps(1 - 1e-6F), more = _mm256_set1_ps(1 + 1e-6F);
    __m256 in = _mm256_setzero_ps(), out = until;
    for (int axis = 0; axis < 3; axis++) {
        const int side = near_side[axis];
        const __m256 a = _mm256_load_ps(node->side[side][axis]),
                     b = _mm256_load_ps(node->side[1 - side][axis]);
        in = _mm256_max_ps(_mm256_mul_ps(_mm256_sub_ps(a, o[axis]), inverse[axis]), in);
        out = _mm256_min_ps(_mm256_mul_ps(_mm256_sub_ps(b, o[axis]), inverse[axis]), out);
    }
    in = _mm256_mul_ps(in, less);
    unsigned met = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(in, _mm256_mul_ps(out, more), _CMP_LE_OQ));
    float from[BRANCHES];
    _mm256_storeu_ps(from, in);
    int n = 0;
    for (; met != 0; met &= met - 1) {
        const int k = __builtin_ctz(met);
        const branch_ahead w = {from[k], node->branch[k]};
        int at = n++;
        for (; at > 0 && top[at - 1].from < w.from; at--)
            top[at] = top[at - 1];
        top[at] = w;
    }
    return n;
}

void usi_wide_tree_cast(const usi_wide_tree *t, us_vec3 o, us_vec3 d, double range, usi_wide_visit *visit,
                        void *context) {
    const double inverse_d[3] = {inverse_of(d.x), inverse_of(d.y), inverse_of(d.z)},
                 start = entry(t, o, inverse_d, range);
    if (!(start >= 0)) return;
    const us_vec3 first = us_vec3_sub(us_vec3_add(o, us_vec3_scale(start, d)), t->centre);
    const usi_wide_ray ray = {
        start, {(float)first.x, (float)first.y, (float)first.z}, {(float)d.x, (float)d.y, (float)d.z}};
    __m256 from[3], inverse[3];
    int near_side[3];
    for (int axis = 0; axis < 3; axis++) {
        near_side[axis] = inverse_d[axis] < 0;
        from[axis] = _mm256_set1_ps(ray.o[axis]);
        inverse[axis] = _mm256_set1_ps((float)inverse_d[axis]);
    }
    branch_ahead stack[BRANCHES * DEPTH];
    double until = range;
    float most = float_until(t, until, start);
    int n = push(&t->node[0], from, inverse, near_side, _mm256_set1_ps(most), stack);
    while (n > 0) {
        const branch_ahead next = stack[--n];
        if (next.from > most) continue;
        if (next.branch >= 0) {
            n += push(&t->node[next.branch], from, inverse, near_side, _mm256_set1_ps(most), &stack[n]);
            continue;
        }
        const double now = visit(context, &ray, ~next.branch, until);
        if (now < 0) return;
        if (now < until) {
            until = now;
            most = float_until(t, until, start);
        }
    }
}

#else

us_status usi_wide_tree_create(const usi_bvh_node *nodes, int32_t n_leaf, const us_allocator *allocator,
                               usi_wide_tree **out_tree) {
    (void)nodes;
    (void)n_leaf;
    (void)allocator;
    *out_tree = NULL;
    return US_OK;
}
void usi_wide_tree_destroy(usi_wide_tree *t) { (void)t; }
int32_t usi_wide_tree_n_leaf(const usi_wide_tree *t) {
    (void)t;
    return 0;
}
usi_wide_leaf usi_wide_tree_leaf(const usi_wide_tree *t, int32_t leaf) {
    (void)t;
    (void)leaf;
    return (usi_wide_leaf){0, 0};
}
us_vec3 usi_wide_tree_centre(const usi_wide_tree *t) {
    (void)t;
    return us_vec3_make(0, 0, 0);
}
double usi_wide_tree_size(const usi_wide_tree *t) {
    (void)t;
    return 0;
}
void usi_wide_tree_cast(const usi_wide_tree *t, us_vec3 o, us_vec3 d, double range, usi_wide_visit *visit,
                        void *context) {
    (void)t;
    (void)o;
    (void)d;
    (void)range;
    (void)visit;
    (void)context;
}

#endif

// A tree of boxes that never move.
//
// Branches are halved at the middle of their centres' longest spread, or by number where all centres fall to
// one side; a leaf has a few boxes, in a row. A ray goes into the nearer of two branches first, and comes
// back for the other one if it still counts there. Where the processor can, boxes are asked eight at a time.
#include "geom/box_tree.h"

#include <math.h>
#include <string.h>

#include "geom/wide_tree.h"

enum { LEAF = 2, STACK = 96, HALVE_AT = 30 };  // depth from which branches are halved by number

struct usi_box_tree {
    us_allocator allocator;
    size_t size;
    int32_t n, n_node;
    usi_bvh_node *node;  // leaf: boxes order[first ..]
    us_aabb *box;        // in the order of the leaves
    int32_t *order;
    usi_wide_tree *wide;  // NULL: the nodes above do
};

static us_vec3 lower(us_vec3 a, us_vec3 b) {
    return us_vec3_make(fmin(a.x, b.x), fmin(a.y, b.y), fmin(a.z, b.z));
}
static us_vec3 upper(us_vec3 a, us_vec3 b) {
    return us_vec3_make(fmax(a.x, b.x), fmax(a.y, b.y), fmax(a.z, b.z));
}
static double along(us_vec3 a, int axis) { return axis == 0 ? a.x : axis == 1 ? a.y : a.z; }
static us_vec3 twice_centre(us_aabb b) { return us_vec3_add(b.min, b.max); }

// Moves the boxes whose centres are on the lower side to the front; how many.
static int32_t split(usi_box_tree *t, int32_t first, int32_t count, int depth) {
    us_vec3 low = twice_centre(t->box[first]), high = low;
    for (int32_t i = first + 1; i < first + count; i++) {
        low = lower(low, twice_centre(t->box[i]));
        high = upper(high, twice_centre(t->box[i]));
    }
    const us_vec3 spread = us_vec3_sub(high, low);
    const int axis = spread.x >= spread.y && spread.x >= spread.z ? 0 : spread.y >= spread.z ? 1 : 2;
    const double middle = 0.5 * (along(low, axis) + along(high, axis));
    int32_t n = 0;
    for (int32_t i = first; depth < HALVE_AT && i < first + count; i++) {
        if (!(along(twice_centre(t->box[i]), axis) < middle)) continue;
        const us_aabb box = t->box[i];
        const int32_t number = t->order[i];
        t->box[i] = t->box[first + n];
        t->order[i] = t->order[first + n];
        t->box[first + n] = box;
        t->order[first + n++] = number;
    }
    return n > 0 && n < count ? n : count / 2;
}

static void build(usi_box_tree *t) {
    struct {
        int32_t node, depth;
    } stack[STACK];
    int n_stack = 0;
    t->n_node = 1;
    t->node[0] = (usi_bvh_node){.first = 0, .count = t->n};
    stack[n_stack].node = stack[n_stack].depth = 0;
    n_stack++;
    while (n_stack > 0) {
        usi_bvh_node *node = &t->node[stack[--n_stack].node];
        const int depth = stack[n_stack].depth;
        const int32_t first = node->first, count = node->count;
        node->min = t->box[first].min;
        node->max = t->box[first].max;
        for (int32_t i = first + 1; i < first + count; i++) {
            node->min = lower(node->min, t->box[i].min);
            node->max = upper(node->max, t->box[i].max);
        }
        if (count <= LEAF) continue;
        const int32_t left = split(t, first, count, depth), child = t->n_node;
        t->n_node += 2;
        node->first = child;
        node->count = 0;
        t->node[child] = (usi_bvh_node){.first = first, .count = left};
        t->node[child + 1] = (usi_bvh_node){.first = first + left, .count = count - left};
        for (int k = 0; k < 2; k++) {
            stack[n_stack].node = child + k;
            stack[n_stack++].depth = depth + 1;
        }
    }
}

us_status usi_box_tree_create(const us_aabb *boxes, int32_t n, const us_allocator *allocator,
                              usi_box_tree **out_tree) {
    size_t size = sizeof(usi_box_tree);
    const size_t at_node = usi_carve(&size, (size_t)(n > 0 ? 2 * n - 1 : 1), sizeof(usi_bvh_node)),
                 at_box = usi_carve(&size, (size_t)n + 1, sizeof(us_aabb)),
                 at_order = usi_carve(&size, (size_t)n + 1, sizeof(int32_t));
    usi_box_tree *t = usi_alloc(allocator, size, USI_ALIGN);
    if (!t) return US_ERR_MEMORY;
    *t = (usi_box_tree){.allocator = *allocator, .size = size, .n = n};
    t->node = (usi_bvh_node *)(void *)((char *)t + at_node);
    t->box = (us_aabb *)(void *)((char *)t + at_box);
    t->order = (int32_t *)(void *)((char *)t + at_order);
    for (int32_t i = 0; i < n; i++) {
        t->box[i] = boxes[i];
        t->order[i] = i;
    }
    if (n > 0) build(t);
    if (n > 0 && usi_wide_tree_create(t->node, LEAF, allocator, &t->wide)) {
        usi_box_tree_destroy(t);
        return US_ERR_MEMORY;
    }
    *out_tree = t;
    return US_OK;
}

void usi_box_tree_destroy(usi_box_tree *t) {
    if (!t) return;
    const us_allocator a = t->allocator;
    usi_wide_tree_destroy(t->wide);
    usi_release(&a, t, t->size, USI_ALIGN);
}

int32_t usi_box_tree_n(const usi_box_tree *t) { return t ? t->n : 0; }

// ---------------------------------------------------------------- rays

typedef struct slab_ray {
    us_vec3 o, inverse;
} slab_ray;

// Along no axis at all: so large that it stands for infinity, and finite, so that a ray within a face is in.
static double inverse_of(double d) { return fabs(d) > 1e-300 ? 1 / d : copysign(1e300, d); }

static inline void cut(double o, double inverse, double low, double high, double *from, double *to) {
    const double a = (low - o) * inverse, b = (high - o) * inverse;
    const double in = a < b ? a : b, out = a < b ? b : a;
    *from = in > *from ? in : *from;
    *to = out < *to ? out : *to;
}

// Where a ray comes into a box; INFINITY: it does not before `until`. A little more than the box.
static inline double enter(const slab_ray *r, us_vec3 low, us_vec3 high, double until) {
    double from = 0, to = until;
    cut(r->o.x, r->inverse.x, low.x, high.x, &from, &to);
    cut(r->o.y, r->inverse.y, low.y, high.y, &from, &to);
    cut(r->o.z, r->inverse.z, low.z, high.z, &from, &to);
    return from <= to * (1 + 1e-12) ? from : INFINITY;
}

// Boxes of a leaf; how far the ray counts after them.
static inline double visit_run(const usi_box_tree *t, const slab_ray *r, int32_t first, int32_t count,
                               double until, usi_box_visit *visit, void *context) {
    for (int32_t i = first; i < first + count && until >= 0; i++) {
        if (enter(r, t->box[i].min, t->box[i].max, until) <= until)
            until = visit(context, t->order[i], until);
    }
    return until;
}

typedef struct wide_walk {
    const usi_box_tree *t;
    slab_ray r;
    usi_box_visit *visit;
    void *context;
} wide_walk;

static double visit_leaf(void *context, const usi_wide_ray *ray, int32_t leaf, double until) {
    const wide_walk *w = context;
    const usi_wide_leaf run = usi_wide_tree_leaf(w->t->wide, leaf);
    (void)ray;
    return visit_run(w->t, &w->r, run.first, run.count, until, w->visit, w->context);
}

void usi_box_tree_cast(const usi_box_tree *t, us_vec3 o, us_vec3 d, double range, usi_box_visit *visit,
                       void *context) {
    if (!t || t->n == 0) return;
    const slab_ray r = {o, {inverse_of(d.x), inverse_of(d.y), inverse_of(d.z)}};
    if (t->wide) {
        wide_walk w = {t, r, visit, context};
        usi_wide_tree_cast(t->wide, o, d, range, visit_leaf, &w);
        return;
    }
    struct {
        int32_t node;
        double from;
    } stack[STACK];
    int n = 0;
    double until = range;
    int32_t at = enter(&r, t->node[0].min, t->node[0].max, until) <= until ? 0 : -1;
    while (at >= 0) {
        const usi_bvh_node *node = &t->node[at];
        until = visit_run(t, &r, node->first, node->count, until, visit, context);
        if (until < 0) return;
        at = -1;
        if (node->count == 0) {
            const usi_bvh_node *a = &t->node[node->first], *b = a + 1;
            const double left = enter(&r, a->min, a->max, until), right = enter(&r, b->min, b->max, until);
            const bool is_swapped = right < left;
            const double near = is_swapped ? right : left, far = is_swapped ? left : right;
            if (far <= until) {
                stack[n].node = node->first + !is_swapped;
                stack[n++].from = far;
            }
            if (near <= until) at = node->first + is_swapped;
        }
        while (at < 0 && n > 0) {
            n--;
            if (stack[n].from <= until) at = stack[n].node;
        }
    }
}

// Contact points of a convex shape on a mesh by the general method: the triangles in those leaves of the tree
// that the shape can reach.
//
// A body may lie on any number of triangles. Those that could only repeat what is known of the patch are left
// out, node by node (usi_surface_is_open). For that the outermost points must be known early: they are mostly
// under the corners of the shape, so the leaves there are visited first.
#include "geom/geom__triangles.h"

enum {
    MAX_TREE_DEPTH = 64,  // nodes are at most 61 deep, and each level leaves one behind
};

static us_vec3 unit_normal(const us_mesh *m, const int32_t *v) {
    us_vec3 a = m->vertex[v[0]];
    return usi_vec3_unit(us_vec3_cross(us_vec3_sub(m->vertex[v[1]], a), us_vec3_sub(m->vertex[v[2]], a)),
                         us_vec3_make(0, 0, 0));
}

// Triangle `index` with its neighbours.
static void mesh_facet(const us_mesh *m, int32_t index, us_vec3 normal, usi_facet *f) {
    const int32_t *v = m->triangle[index];
    f->index = (uint32_t)index;
    f->normal = normal;
    for (int k = 0; k < 3; k++) {
        f->v[k] = m->vertex[v[k]];
        f->vertex[k] = (uint32_t)v[k];
    }
    f->offset = us_vec3_dot(normal, f->v[0]);
    for (int k = 0; k < 3; k++) {
        const int32_t next = v[(k + 1) % 3], across = m->neighbour[index][k];
        f->neighbour[k] = across;
        if (across < 0) {
            double length = us_vec3_norm(us_vec3_sub(m->vertex[next], f->v[k]));
            f->across[k] = usi_vec3_add_scaled(f->v[k], -length, normal);
            continue;
        }
        // The corner after the side that runs the other way.
        const int32_t *w = m->triangle[across];
        f->across[k] = m->vertex[w[0] == next ? w[2] : (w[1] == next ? w[0] : w[1])];
    }
}

// Whether all edges that leave a vertex fall away.
static bool is_rim_below(const us_mesh *m, const usi_peak *peak) {
    const int32_t v = (int32_t)peak->index;
    bool is_any_below = false;
    for (int32_t i = m->fan_start[v]; i < m->fan_start[v + 1]; i++) {
        const int32_t *w = m->triangle[m->fan[i]];
        for (int k = 0; k < 3; k++)
            if (w[k] != v && !usi_is_rim_below(peak, m->vertex[w[k]], &is_any_below)) return false;
    }
    return is_any_below;
}

// Which corners are peaks under a flat side of the shape.
static void find_flat_peaks(usi_surface_query *t, const us_mesh *m, usi_facet *face) {
    const usi_feature *A = usi_surface_feature(t, us_vec3_scale(-1, face->normal));
    for (int s = 0; s < 3; s++) {
        const usi_peak peak = {
            .v = face->v[s], .normal = us_vec3_scale(-1, A->normal), .index = face->vertex[s]};
        face->is_peak[s] = A->n > 2 && is_rim_below(m, &peak);
    }
}

static void collide_triangle(usi_surface_query *t, const us_mesh *m, int32_t index) {
    // Plane: most triangles are out of reach.
    const int32_t *c = m->triangle[index];
    us_vec3 v[3] = {m->vertex[c[0]], m->vertex[c[1]], m->vertex[c[2]]}, normal = unit_normal(m, c);
    double offset = us_vec3_dot(normal, v[0]);
    if (us_vec3_dot(normal, normal) == 0 || us_vec3_dot(normal, t->middle) < offset ||
        usi_lowest_height(t, normal) - offset > t->margin || usi_is_triangle_apart(t, v, normal))
        return;

    // Face, its ridges, its corners as peaks.
    usi_surface_count(t);
    usi_facet face;
    mesh_facet(m, index, normal, &face);
    find_flat_peaks(t, m, &face);
    usi_collide_facet(t, &face);
    for (int s = 0; s < 3; s++) {
        usi_peak peak;
        if (usi_find_peak(t, face.v[s], face.vertex[s], normal, &peak) &&
            (peak.is_flat ? face.is_peak[s] : is_rim_below(m, &peak)))
            usi_collide_peak(t, &peak);
    }
}

static inline us_aabb box_of(const usi_bvh_node *node) { return (us_aabb){node->min, node->max}; }

static inline bool is_box_apart(const us_aabb *a, const us_aabb *b) {
    return a->min.x > b->max.x || a->max.x < b->min.x || a->min.y > b->max.y || a->max.y < b->min.y ||
           a->min.z > b->max.z || a->max.z < b->min.z;
}

static double square_outside(const us_aabb *box, us_vec3 p) {
    double x = fmax(0, fmax(box->min.x - p.x, p.x - box->max.x)),
           y = fmax(0, fmax(box->min.y - p.y, p.y - box->max.y)),
           z = fmax(0, fmax(box->min.z - p.z, p.z - box->max.z));
    return x * x + y * y + z * z;
}

// The triangles in a leaf near a point: at each node the nearer child.
static void collide_near(usi_surface_query *t, const us_mesh *m, us_vec3 p) {
    const usi_bvh_node *node = &m->node[0];
    while (node->count == 0) {
        const usi_bvh_node *left = &m->node[node->first], *right = left + 1;
        us_aabb a = box_of(left), b = box_of(right);
        node = square_outside(&a, p) <= square_outside(&b, p) ? left : right;
    }
    for (int32_t i = 0; i < node->count; i++)
        collide_triangle(t, m, m->order[node->first + i]);
}

// The leaves under the corners of the flat side of the shape that looks at the surface.
static void collide_corners(usi_surface_query *t, const us_mesh *m) {
    if (!t->has_feature) return;
    const usi_feature side = t->feature;
    for (int32_t i = 0; i < side.n; i++)
        collide_near(t, m, side.p[i]);
}

// Height along n of what a candidate stands on: a triangle, an edge or a vertex.
static double top_of(const us_mesh *m, const usi_candidate *p, us_vec3 n) {
    const int32_t index = (int32_t)(p->id >> 32);
    if (p->id & USI_SURFACE_ID_PEAK) return us_vec3_dot(n, m->vertex[index]);
    const int32_t *c = m->triangle[index];
    const int first = (int)(p->id >> 16 & 3);
    double top = -INFINITY;
    for (int k = 0; k < 3; k++) {
        const bool is_on = !(p->id & USI_SURFACE_ID_RIDGE) || k == first || k == (first + 1) % 3;
        if (is_on) top = fmax(top, us_vec3_dot(n, m->vertex[c[k]]));
    }
    return top;
}

// Drops deep candidates whose normal is not the way out: along that of another one the shape is less than
// half as deep. So are the walls of a small plate under a large body.
static void drop_wrong_ways(usi_surface_query *t, const us_mesh *m) {
    usi_candidate *p = t->c->at;
    const double deep = -1e-3 * t->size;
    int32_t n = t->first;
    bool is_wrong[USI_CANDIDATES] = {false};
    for (int32_t i = t->first; i < t->c->n; i++) {
        for (int32_t j = t->first; j < t->c->n && p[i].gap < deep && !is_wrong[i]; j++) {
            us_vec3 along = p[j].normal;
            is_wrong[i] = p[j].gap > 0.5 * p[i].gap &&
                          usi_lowest_height(t, along) - top_of(m, &p[i], along) > 0.5 * p[i].gap;
        }
    }
    for (int32_t i = t->first; i < t->c->n; i++)
        if (!is_wrong[i]) p[n++] = p[i];
    t->c->n = n;
}

void usi_contact_mesh(const us_geom *A, us_pose X_WA, const us_mesh *m, double radius, us_pose X_WB,
                      double margin, usi_candidates *c) {
    usi_surface_query t;
    usi_surface_begin(&t, A, X_WA, X_WB, margin + radius, c);
    t.is_one_sided = true;
    const double reach = t.margin + 1e-9 * t.size;
    int32_t stack[MAX_TREE_DEPTH], depth = 0;
    stack[depth++] = 0;
    while (depth > 0) {
        const usi_bvh_node *node = &m->node[stack[--depth]];
        const us_aabb box = box_of(node);
        if (is_box_apart(&box, &t.box)) continue;
        const double min_gap = usi_surface_min_gap(&t, &box);
        if (min_gap > reach || (t.is_pruned && !usi_surface_is_open(&t, node->facing, &box, min_gap)))
            continue;
        if (node->count == 0) {
            stack[depth++] = node->first + 1;
            stack[depth++] = node->first;
            continue;
        }
        const bool was_pruned = t.is_pruned;
        for (int32_t i = 0; i < node->count; i++)
            collide_triangle(&t, m, m->order[node->first + i]);
        if (t.is_pruned && !was_pruned) collide_corners(&t, m);
    }
    drop_wrong_ways(&t, m);
    usi_surface_end(&t, X_WB, radius);
}
